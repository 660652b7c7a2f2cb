//! Rows of the registry: citext. They stand among the built-in ones, and are shown, and of use, where the extension is.

use super::CastContext::{Assignment, Implicit};
use super::Volatility::Immutable;
use super::citext::{self, compared_folded};
use super::{Function, FunctionImpl, cast, network, patterns};
use crate::function as f;
use crate::pg_rows::c;
use crate::pg_rows::o;
use crate::pg_rows::{CastRow, Operator};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(16011, "citext", &[BPCHAR], None, CITEXT, true, Immutable, FunctionImpl::Pure(cast::to_text)),
    f(16012, "citext", &[BOOL], None, CITEXT, true, Immutable, FunctionImpl::Pure(cast::to_text)),
    f(16013, "citext", &[INET], None, CITEXT, true, Immutable, FunctionImpl::Pure(network::show)),
    f(16014, "citext_eq", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_eq))),
    f(16015, "citext_ne", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_ne))),
    f(16016, "citext_lt", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_lt))),
    f(16017, "citext_le", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_le))),
    f(16018, "citext_gt", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_gt))),
    f(16019, "citext_ge", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_ge))),
    f(16020, "citext_cmp", &[CITEXT, CITEXT], None, INT4, true, Immutable, FunctionImpl::Pure(citext::cmp)),
    f(16021, "citext_pattern_lt", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_lt))),
    f(16022, "citext_pattern_le", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_le))),
    f(16023, "citext_pattern_gt", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_gt))),
    f(16024, "citext_pattern_ge", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_folded!(is_ge))),
    f(16025, "citext_pattern_cmp", &[CITEXT, CITEXT], None, INT4, true, Immutable, FunctionImpl::Pure(citext::cmp)),
    f(16026, "texticlike", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(citext::like)),
    f(16027, "texticnlike", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(citext::not_like)),
    f(16028, "texticregexeq", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(patterns::regex_ieq)),
    f(16029, "texticregexne", &[CITEXT, CITEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(patterns::regex_ine)),
    f(16030, "texticlike", &[CITEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(citext::like)),
    f(16031, "texticnlike", &[CITEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(citext::not_like)),
    f(16032, "texticregexeq", &[CITEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(patterns::regex_ieq)),
    f(16033, "texticregexne", &[CITEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(patterns::regex_ine)),
    f(16034, "regexp_match", &[CITEXT, CITEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(citext::regexp_match)),
    f(16035, "regexp_match", &[CITEXT, CITEXT, TEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(citext::regexp_match)),
    f(16036, "regexp_matches", &[CITEXT, CITEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Set(citext::regexp_matches)),
    f(16037, "regexp_matches", &[CITEXT, CITEXT, TEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Set(citext::regexp_matches)),
    f(16038, "regexp_replace", &[CITEXT, CITEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(citext::regexp_replace)),
    f(16039, "regexp_replace", &[CITEXT, CITEXT, TEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(citext::regexp_replace)),
    f(16040, "regexp_split_to_array", &[CITEXT, CITEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(citext::regexp_split_to_array)),
    f(16041, "regexp_split_to_array", &[CITEXT, CITEXT, TEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(citext::regexp_split_to_array)),
    f(16042, "regexp_split_to_table", &[CITEXT, CITEXT], None, TEXT, true, Immutable, FunctionImpl::Set(citext::regexp_split_to_table)),
    f(16043, "regexp_split_to_table", &[CITEXT, CITEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Set(citext::regexp_split_to_table)),
    f(16044, "strpos", &[CITEXT, CITEXT], None, INT4, true, Immutable, FunctionImpl::Pure(citext::strpos)),
    f(16045, "replace", &[CITEXT, CITEXT, CITEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(citext::replace)),
    f(16046, "split_part", &[CITEXT, CITEXT, INT4], None, TEXT, true, Immutable, FunctionImpl::Pure(citext::split_part)),
    f(16047, "translate", &[CITEXT, CITEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(citext::translate)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(16048, "=", CITEXT, CITEXT, BOOL, 16014, 16048, 16049),
    o(16049, "<>", CITEXT, CITEXT, BOOL, 16015, 16049, 16048),
    o(16050, "<", CITEXT, CITEXT, BOOL, 16016, 16053, 16052),
    o(16051, "<=", CITEXT, CITEXT, BOOL, 16017, 16052, 16053),
    o(16052, ">=", CITEXT, CITEXT, BOOL, 16019, 16051, 16050),
    o(16053, ">", CITEXT, CITEXT, BOOL, 16018, 16050, 16051),
    o(16054, "~<~", CITEXT, CITEXT, BOOL, 16021, 16057, 16056),
    o(16055, "~<=~", CITEXT, CITEXT, BOOL, 16022, 16056, 16057),
    o(16056, "~>=~", CITEXT, CITEXT, BOOL, 16024, 16055, 16054),
    o(16057, "~>~", CITEXT, CITEXT, BOOL, 16023, 16054, 16055),
    o(16058, "~", CITEXT, CITEXT, BOOL, 16028, 0, 16060),
    o(16059, "~*", CITEXT, CITEXT, BOOL, 16028, 0, 16061),
    o(16060, "!~", CITEXT, CITEXT, BOOL, 16029, 0, 16058),
    o(16061, "!~*", CITEXT, CITEXT, BOOL, 16029, 0, 16059),
    o(16062, "~~", CITEXT, CITEXT, BOOL, 16026, 0, 16064),
    o(16063, "~~*", CITEXT, CITEXT, BOOL, 16026, 0, 16065),
    o(16064, "!~~", CITEXT, CITEXT, BOOL, 16027, 0, 16062),
    o(16065, "!~~*", CITEXT, CITEXT, BOOL, 16027, 0, 16063),
    o(16066, "~", CITEXT, TEXT, BOOL, 16032, 0, 16068),
    o(16067, "~*", CITEXT, TEXT, BOOL, 16032, 0, 16069),
    o(16068, "!~", CITEXT, TEXT, BOOL, 16033, 0, 16066),
    o(16069, "!~*", CITEXT, TEXT, BOOL, 16033, 0, 16067),
    o(16070, "~~", CITEXT, TEXT, BOOL, 16030, 0, 16072),
    o(16071, "~~*", CITEXT, TEXT, BOOL, 16030, 0, 16073),
    o(16072, "!~~", CITEXT, TEXT, BOOL, 16031, 0, 16070),
    o(16073, "!~~*", CITEXT, TEXT, BOOL, 16031, 0, 16071),
];

/// Casts.
#[rustfmt::skip]
pub(super) static CASTS: &[CastRow] = &[
    c(CITEXT, TEXT, 0, Implicit, false),
    c(CITEXT, VARCHAR, 0, Implicit, false),
    c(CITEXT, BPCHAR, 0, Assignment, false),
    c(TEXT, CITEXT, 0, Assignment, false),
    c(VARCHAR, CITEXT, 0, Assignment, false),
    c(BPCHAR, CITEXT, 16011, Assignment, false),
    c(BOOL, CITEXT, 16012, Assignment, false),
    c(INET, CITEXT, 16013, Assignment, false),
];
