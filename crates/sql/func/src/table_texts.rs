//! Rows of the registry: bytes by their bits, Unicode, encodings, order of text by its bytes, OVERLAPS. Numbers are
//! PostgreSQL's.

use super::Volatility::{Immutable, Stable};
use super::arithmetic::{compared, compared_blank};
use super::{Function, FunctionImpl, bytes, encodings, like, math, overlaps, system, unicode};
use crate::function as f;
use crate::pg_rows::Operator;
use crate::pg_rows::o;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(723, "get_bit", &[BYTEA, INT8], None, INT4, true, Immutable, FunctionImpl::Pure(bytes::get_bit)),
    f(724, "set_bit", &[BYTEA, INT8, INT4], None, BYTEA, true, Immutable, FunctionImpl::Pure(bytes::set_bit)),
    f(749, "overlay", &[BYTEA, BYTEA, INT4, INT4], None, BYTEA, true, Immutable, FunctionImpl::Pure(bytes::overlay)),
    f(752, "overlay", &[BYTEA, BYTEA, INT4], None, BYTEA, true, Immutable, FunctionImpl::Pure(bytes::overlay)),
    f(6163, "bit_count", &[BYTEA], None, INT8, true, Immutable, FunctionImpl::Pure(bytes::bit_count)),
    f(2005, "bytealike", &[BYTEA, BYTEA], None, BOOL, true, Immutable, FunctionImpl::Pure(bytes::like)),
    f(2006, "byteanlike", &[BYTEA, BYTEA], None, BOOL, true, Immutable, FunctionImpl::Pure(bytes::not_like)),
    f(2007, "like", &[BYTEA, BYTEA], None, BOOL, true, Immutable, FunctionImpl::Pure(bytes::like)),
    f(2008, "notlike", &[BYTEA, BYTEA], None, BOOL, true, Immutable, FunctionImpl::Pure(bytes::not_like)),
    f(2009, "like_escape", &[BYTEA, BYTEA], None, BYTEA, true, Immutable, FunctionImpl::Pure(bytes::like_escape)),
    f(1569, "like", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(like::like)),
    f(1570, "notlike", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(like::not_like)),
    f(1571, "like", &[NAME, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(like::like)),
    f(1572, "notlike", &[NAME, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(like::not_like)),
    f(2074, "substring", &[TEXT, TEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(like::substring_similar)),
    f(2160, "text_pattern_lt", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(2161, "text_pattern_le", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(2163, "text_pattern_ge", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(2164, "text_pattern_gt", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(2174, "bpchar_pattern_lt", &[BPCHAR, BPCHAR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared_blank!(is_lt))),
    f(2175, "bpchar_pattern_le", &[BPCHAR, BPCHAR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared_blank!(is_le))),
    f(2177, "bpchar_pattern_ge", &[BPCHAR, BPCHAR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared_blank!(is_ge))),
    f(2178, "bpchar_pattern_gt", &[BPCHAR, BPCHAR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared_blank!(is_gt))),
    f(1713, "length", &[BYTEA, NAME], None, INT4, true, Stable, FunctionImpl::Pure(encodings::length)),
    f(1813, "convert", &[BYTEA, NAME, NAME], None, BYTEA, true, Stable, FunctionImpl::Pure(encodings::convert)),
    f(1845, "to_ascii", &[TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(encodings::to_ascii)),
    f(1846, "to_ascii", &[TEXT, INT4], None, TEXT, true, Immutable, FunctionImpl::Pure(encodings::to_ascii)),
    f(1847, "to_ascii", &[TEXT, NAME], None, TEXT, true, Immutable, FunctionImpl::Pure(encodings::to_ascii)),
    f(3419, "sha224", &[BYTEA], None, BYTEA, true, Immutable, FunctionImpl::Pure(encodings::sha224)),
    f(3421, "sha384", &[BYTEA], None, BYTEA, true, Immutable, FunctionImpl::Pure(encodings::sha384)),
    f(3422, "sha512", &[BYTEA], None, BYTEA, true, Immutable, FunctionImpl::Pure(encodings::sha512)),
    f(4350, "normalize", &[TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(unicode::normalize)),
    f(4350, "normalize", &[TEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(unicode::normalize)),
    f(4351, "is_normalized", &[TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(unicode::is_normalized)),
    f(4351, "is_normalized", &[TEXT, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(unicode::is_normalized)),
    f(6198, "unistr", &[TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(unicode::unistr)),
    f(1268, "parse_ident", &[TEXT], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(unicode::parse_ident)),
    f(1268, "parse_ident", &[TEXT, BOOL], None, TEXT_ARRAY, true, Immutable, FunctionImpl::Pure(unicode::parse_ident)),
    f(3218, "width_bucket", &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY], None, INT4, true, Immutable, FunctionImpl::Pure(math::width_bucket_among)),
    f(3334, "pg_size_bytes", &[TEXT], None, INT8, true, Immutable, FunctionImpl::Pure(system::size_bytes)),
    f(274, "timeofday", &[], None, TEXT, true, super::Volatility::Volatile, FunctionImpl::DateTime(system::time_of_day)),
    f(1271, "overlaps", &[TIMETZ, TIMETZ, TIMETZ, TIMETZ], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1304, "overlaps", &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1305, "overlaps", &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, INTERVAL], None, BOOL, false, Stable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1306, "overlaps", &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL], None, BOOL, false, Stable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1307, "overlaps", &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ], None, BOOL, false, Stable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1308, "overlaps", &[TIME, TIME, TIME, TIME], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1309, "overlaps", &[TIME, INTERVAL, TIME, INTERVAL], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1310, "overlaps", &[TIME, TIME, TIME, INTERVAL], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(1311, "overlaps", &[TIME, INTERVAL, TIME, TIME], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(2041, "overlaps", &[TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(2042, "overlaps", &[TIMESTAMP, INTERVAL, TIMESTAMP, INTERVAL], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(2043, "overlaps", &[TIMESTAMP, TIMESTAMP, TIMESTAMP, INTERVAL], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
    f(2044, "overlaps", &[TIMESTAMP, INTERVAL, TIMESTAMP, TIMESTAMP], None, BOOL, false, Immutable, FunctionImpl::DateTime(overlaps::overlaps)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(2016, "~~", BYTEA, BYTEA, BOOL, 2005, 0, 2017),
    o(2017, "!~~", BYTEA, BYTEA, BOOL, 2006, 0, 2016),
    o(2314, "~<~", TEXT, TEXT, BOOL, 2160, 2318, 2317),
    o(2315, "~<=~", TEXT, TEXT, BOOL, 2161, 2317, 2318),
    o(2317, "~>=~", TEXT, TEXT, BOOL, 2163, 2315, 2314),
    o(2318, "~>~", TEXT, TEXT, BOOL, 2164, 2314, 2315),
    o(2326, "~<~", BPCHAR, BPCHAR, BOOL, 2174, 2330, 2329),
    o(2327, "~<=~", BPCHAR, BPCHAR, BOOL, 2175, 2329, 2330),
    o(2329, "~>=~", BPCHAR, BPCHAR, BOOL, 2177, 2327, 2326),
    o(2330, "~>~", BPCHAR, BPCHAR, BOOL, 2178, 2326, 2327),
];
