//! Rows of the registry: hstore. They stand among the built-in ones, and are shown, and of use, where the extension is.

use super::CastContext::Explicit;
use super::Volatility::{Immutable, Stable};
use super::hstore::{self, compared_pairs};
use super::{Function, FunctionImpl};
use crate::function as f;
use crate::pg_rows::c;
use crate::pg_rows::{CastRow, Operator};
use crate::pg_rows::{PREFIX, o};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(16101, "fetchval", &[HSTORE, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(hstore::fetch)),
    f(16102, "slice_array", &[HSTORE, TEXT_ARRAY], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(hstore::slice_array)),
    f(16103, "slice", &[HSTORE, TEXT_ARRAY], None, HSTORE, true, Immutable, FunctionImpl::Pure(hstore::slice)),
    f(16104, "isexists", &[HSTORE, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::exists)),
    f(16105, "exist", &[HSTORE, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::exists)),
    f(16106, "exists_any", &[HSTORE, TEXT_ARRAY], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::exists_any)),
    f(16107, "exists_all", &[HSTORE, TEXT_ARRAY], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::exists_all)),
    f(16108, "isdefined", &[HSTORE, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::defined)),
    f(16109, "defined", &[HSTORE, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::defined)),
    f(16110, "delete", &[HSTORE, TEXT], None, HSTORE, true, Immutable, FunctionImpl::Pure(hstore::delete_key)),
    f(16111, "delete", &[HSTORE, TEXT_ARRAY], None, HSTORE, true, Immutable, FunctionImpl::Pure(hstore::delete_keys)),
    f(16112, "delete", &[HSTORE, HSTORE], None, HSTORE, true, Immutable, FunctionImpl::Pure(hstore::delete_pairs)),
    f(16113, "hs_concat", &[HSTORE, HSTORE], None, HSTORE, true, Immutable, FunctionImpl::Pure(hstore::concat)),
    f(16114, "hs_contains", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::contains)),
    f(16115, "hs_contained", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(hstore::contained)),
    f(16116, "tconvert", &[TEXT, TEXT], None, HSTORE, false, Immutable, FunctionImpl::Pure(hstore::of_text)),
    f(16117, "hstore", &[TEXT, TEXT], None, HSTORE, false, Immutable, FunctionImpl::Pure(hstore::of_text)),
    f(16118, "hstore", &[TEXT_ARRAY, TEXT_ARRAY], None, HSTORE, false, Immutable, FunctionImpl::Pure(hstore::of_arrays)),
    f(16119, "hstore", &[TEXT_ARRAY], None, HSTORE, true, Immutable, FunctionImpl::Pure(hstore::of_array)),
    f(16120, "hstore_to_json", &[HSTORE], None, JSON, true, Immutable, FunctionImpl::Pure(hstore::to_json)),
    f(16121, "hstore_to_json_loose", &[HSTORE], None, JSON, true, Immutable, FunctionImpl::Pure(hstore::to_json_loose)),
    f(16122, "hstore_to_jsonb", &[HSTORE], None, JSONB, true, Immutable, FunctionImpl::Pure(hstore::to_jsonb)),
    f(16123, "hstore_to_jsonb_loose", &[HSTORE], None, JSONB, true, Immutable, FunctionImpl::Pure(hstore::to_jsonb_loose)),
    f(16124, "hstore", &[RECORD], None, HSTORE, false, Stable, FunctionImpl::Typed(hstore::of_record)),
    f(16125, "hstore_to_array", &[HSTORE], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(hstore::to_array)),
    f(16126, "hstore_to_matrix", &[HSTORE], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(hstore::to_matrix)),
    f(16127, "akeys", &[HSTORE], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(hstore::keys_array)),
    f(16128, "avals", &[HSTORE], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(hstore::values_array)),
    f(16129, "skeys", &[HSTORE], None, TEXT, true, Immutable, FunctionImpl::Set(hstore::keys_set)),
    f(16130, "svals", &[HSTORE], None, TEXT, true, Immutable, FunctionImpl::Set(hstore::values_set)),
    f(16131, "each", &[HSTORE], None, RECORD, true, Immutable, FunctionImpl::Set(hstore::each)),
    f(16132, "hstore_eq", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_pairs!(is_eq))),
    f(16133, "hstore_ne", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_pairs!(is_ne))),
    f(16134, "hstore_gt", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_pairs!(is_gt))),
    f(16135, "hstore_ge", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_pairs!(is_ge))),
    f(16136, "hstore_lt", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_pairs!(is_lt))),
    f(16137, "hstore_le", &[HSTORE, HSTORE], None, BOOL, true, Immutable, FunctionImpl::Pure(compared_pairs!(is_le))),
    f(16138, "hstore_cmp", &[HSTORE, HSTORE], None, INT4, true, Immutable, FunctionImpl::Pure(hstore::cmp)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(16139, "->", HSTORE, TEXT, TEXT, 16101, 0, 0),
    o(16140, "->", HSTORE, TEXT_ARRAY, TEXT_ARRAY, 16102, 0, 0),
    o(16141, "?", HSTORE, TEXT, BOOL, 16105, 0, 0),
    o(16142, "?|", HSTORE, TEXT_ARRAY, BOOL, 16106, 0, 0),
    o(16143, "?&", HSTORE, TEXT_ARRAY, BOOL, 16107, 0, 0),
    o(16144, "-", HSTORE, TEXT, HSTORE, 16110, 0, 0),
    o(16145, "-", HSTORE, TEXT_ARRAY, HSTORE, 16111, 0, 0),
    o(16146, "-", HSTORE, HSTORE, HSTORE, 16112, 0, 0),
    o(16147, "||", HSTORE, HSTORE, HSTORE, 16113, 0, 0),
    o(16148, "@>", HSTORE, HSTORE, BOOL, 16114, 16149, 0),
    o(16149, "<@", HSTORE, HSTORE, BOOL, 16115, 16148, 0),
    o(16150, "%%", PREFIX, HSTORE, TEXT_ARRAY, 16125, 0, 0),
    o(16151, "%#", PREFIX, HSTORE, TEXT_ARRAY, 16126, 0, 0),
    o(16152, "=", HSTORE, HSTORE, BOOL, 16132, 16152, 16153),
    o(16153, "<>", HSTORE, HSTORE, BOOL, 16133, 16153, 16152),
    o(16154, "#<#", HSTORE, HSTORE, BOOL, 16136, 16156, 16157),
    o(16155, "#<=#", HSTORE, HSTORE, BOOL, 16137, 16157, 16156),
    o(16156, "#>#", HSTORE, HSTORE, BOOL, 16134, 16154, 16155),
    o(16157, "#>=#", HSTORE, HSTORE, BOOL, 16135, 16155, 16154),
];

/// Casts.
#[rustfmt::skip]
pub(super) static CASTS: &[CastRow] = &[
    c(TEXT_ARRAY, HSTORE, 16119, Explicit, false),
    c(HSTORE, JSON, 16120, Explicit, false),
    c(HSTORE, JSONB, 16122, Explicit, false),
];
