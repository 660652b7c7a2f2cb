//! Rows of the registry: network addresses. Numbers are PostgreSQL's.

use super::CastContext::{Assignment, Implicit};
use super::Volatility::{Immutable, Stable};
use super::arithmetic::compared;
use super::{Function, FunctionImpl, network};
use crate::catalog_function::ServerFunction;
use crate::function as f;
use crate::pg_rows::c;
use crate::pg_rows::{CastRow, Operator};
use crate::pg_rows::{PREFIX, o};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(830, "macaddr_eq", &[MACADDR, MACADDR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(831, "macaddr_lt", &[MACADDR, MACADDR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(832, "macaddr_le", &[MACADDR, MACADDR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(833, "macaddr_gt", &[MACADDR, MACADDR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(834, "macaddr_ge", &[MACADDR, MACADDR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(835, "macaddr_ne", &[MACADDR, MACADDR], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(4113, "macaddr8_eq", &[MACADDR8, MACADDR8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(4114, "macaddr8_lt", &[MACADDR8, MACADDR8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(4115, "macaddr8_le", &[MACADDR8, MACADDR8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(4116, "macaddr8_gt", &[MACADDR8, MACADDR8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(4117, "macaddr8_ge", &[MACADDR8, MACADDR8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(4118, "macaddr8_ne", &[MACADDR8, MACADDR8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(920, "network_eq", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(921, "network_lt", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(922, "network_le", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(923, "network_gt", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(924, "network_ge", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(925, "network_ne", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(926, "network_cmp", &[INET, INET], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(836, "macaddr_cmp", &[MACADDR, MACADDR], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(4119, "macaddr8_cmp", &[MACADDR8, MACADDR8], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(3562, "network_larger", &[INET, INET], None, INET, true, Immutable, FunctionImpl::Pure(network::larger)),
    f(3563, "network_smaller", &[INET, INET], None, INET, true, Immutable, FunctionImpl::Pure(network::smaller)),
    f(927, "network_sub", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pure(network::sub)),
    f(928, "network_subeq", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pure(network::sub_equal)),
    f(929, "network_sup", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pure(network::sup)),
    f(930, "network_supeq", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pure(network::sup_equal)),
    f(3551, "network_overlap", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pure(network::overlap)),
    f(598, "abbrev", &[INET], None, TEXT, true, Immutable, FunctionImpl::Pure(network::abbrev)),
    f(599, "abbrev", &[CIDR], None, TEXT, true, Immutable, FunctionImpl::Pure(network::abbrev_cidr)),
    f(605, "set_masklen", &[INET, INT4], None, INET, true, Immutable, FunctionImpl::Pure(network::set_masklen)),
    f(635, "set_masklen", &[CIDR, INT4], None, CIDR, true, Immutable, FunctionImpl::Pure(network::set_masklen_cidr)),
    f(711, "family", &[INET], None, INT4, true, Immutable, FunctionImpl::Pure(network::family)),
    f(683, "network", &[INET], None, CIDR, true, Immutable, FunctionImpl::Pure(network::to_cidr)),
    f(696, "netmask", &[INET], None, INET, true, Immutable, FunctionImpl::Pure(network::netmask)),
    f(697, "masklen", &[INET], None, INT4, true, Immutable, FunctionImpl::Pure(network::masklen)),
    f(698, "broadcast", &[INET], None, INET, true, Immutable, FunctionImpl::Pure(network::broadcast)),
    f(699, "host", &[INET], None, TEXT, true, Immutable, FunctionImpl::Pure(network::host)),
    f(730, "text", &[INET], None, TEXT, true, Immutable, FunctionImpl::Pure(network::show)),
    f(1362, "hostmask", &[INET], None, INET, true, Immutable, FunctionImpl::Pure(network::hostmask)),
    f(1715, "cidr", &[INET], None, CIDR, true, Immutable, FunctionImpl::Pure(network::to_cidr)),
    f(2627, "inetnot", &[INET], None, INET, true, Immutable, FunctionImpl::Pure(network::not)),
    f(2628, "inetand", &[INET, INET], None, INET, true, Immutable, FunctionImpl::Pure(network::and)),
    f(2629, "inetor", &[INET, INET], None, INET, true, Immutable, FunctionImpl::Pure(network::or)),
    f(2630, "inetpl", &[INET, INT8], None, INET, true, Immutable, FunctionImpl::Pure(network::plus)),
    f(2631, "int8pl_inet", &[INT8, INET], None, INET, true, Immutable, FunctionImpl::Pure(network::plus)),
    f(2632, "inetmi_int8", &[INET, INT8], None, INET, true, Immutable, FunctionImpl::Pure(network::minus)),
    f(2633, "inetmi", &[INET, INET], None, INT8, true, Immutable, FunctionImpl::Pure(network::minus)),
    f(4071, "inet_same_family", &[INET, INET], None, BOOL, true, Immutable, FunctionImpl::Pure(network::same_family)),
    f(4063, "inet_merge", &[INET, INET], None, CIDR, true, Immutable, FunctionImpl::Pure(network::merge)),
    f(753, "trunc", &[MACADDR], None, MACADDR, true, Immutable, FunctionImpl::Pure(network::mac_trunc)),
    f(3144, "macaddr_not", &[MACADDR], None, MACADDR, true, Immutable, FunctionImpl::Pure(network::mac_not)),
    f(3145, "macaddr_and", &[MACADDR, MACADDR], None, MACADDR, true, Immutable, FunctionImpl::Pure(network::mac_and)),
    f(3146, "macaddr_or", &[MACADDR, MACADDR], None, MACADDR, true, Immutable, FunctionImpl::Pure(network::mac_or)),
    f(4112, "trunc", &[MACADDR8], None, MACADDR8, true, Immutable, FunctionImpl::Pure(network::mac_trunc)),
    f(4120, "macaddr8_not", &[MACADDR8], None, MACADDR8, true, Immutable, FunctionImpl::Pure(network::mac_not)),
    f(4121, "macaddr8_and", &[MACADDR8, MACADDR8], None, MACADDR8, true, Immutable, FunctionImpl::Pure(network::mac_and)),
    f(4122, "macaddr8_or", &[MACADDR8, MACADDR8], None, MACADDR8, true, Immutable, FunctionImpl::Pure(network::mac_or)),
    f(4123, "macaddr8", &[MACADDR], None, MACADDR8, true, Immutable, FunctionImpl::Pure(network::mac_to_mac8)),
    f(4124, "macaddr", &[MACADDR8], None, MACADDR, true, Immutable, FunctionImpl::Pure(network::mac8_to_mac)),
    f(4125, "macaddr8_set7bit", &[MACADDR8], None, MACADDR8, true, Immutable, FunctionImpl::Pure(network::mac8_set7bit)),
    f(2196, "inet_client_addr", &[], None, INET, false, Stable, FunctionImpl::Server(ServerFunction::InetClientAddr)),
    f(2198, "inet_server_addr", &[], None, INET, false, Stable, FunctionImpl::Server(ServerFunction::InetServerAddr)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(1220, "=", MACADDR, MACADDR, BOOL, 830, 1220, 1221),
    o(1221, "<>", MACADDR, MACADDR, BOOL, 835, 1221, 1220),
    o(1222, "<", MACADDR, MACADDR, BOOL, 831, 1224, 1225),
    o(1223, "<=", MACADDR, MACADDR, BOOL, 832, 1225, 1224),
    o(1224, ">", MACADDR, MACADDR, BOOL, 833, 1222, 1223),
    o(1225, ">=", MACADDR, MACADDR, BOOL, 834, 1223, 1222),
    o(3147, "~", PREFIX, MACADDR, MACADDR, 3144, 0, 0),
    o(3148, "&", MACADDR, MACADDR, MACADDR, 3145, 0, 0),
    o(3149, "|", MACADDR, MACADDR, MACADDR, 3146, 0, 0),
    o(3362, "=", MACADDR8, MACADDR8, BOOL, 4113, 3362, 3363),
    o(3363, "<>", MACADDR8, MACADDR8, BOOL, 4118, 3363, 3362),
    o(3364, "<", MACADDR8, MACADDR8, BOOL, 4114, 3366, 3367),
    o(3365, "<=", MACADDR8, MACADDR8, BOOL, 4115, 3367, 3366),
    o(3366, ">", MACADDR8, MACADDR8, BOOL, 4116, 3364, 3365),
    o(3367, ">=", MACADDR8, MACADDR8, BOOL, 4117, 3365, 3364),
    o(3368, "~", PREFIX, MACADDR8, MACADDR8, 4120, 0, 0),
    o(3369, "&", MACADDR8, MACADDR8, MACADDR8, 4121, 0, 0),
    o(3370, "|", MACADDR8, MACADDR8, MACADDR8, 4122, 0, 0),
    o(1201, "=", INET, INET, BOOL, 920, 1201, 1202),
    o(1202, "<>", INET, INET, BOOL, 925, 1202, 1201),
    o(1203, "<", INET, INET, BOOL, 921, 1205, 1206),
    o(1204, "<=", INET, INET, BOOL, 922, 1206, 1205),
    o(1205, ">", INET, INET, BOOL, 923, 1203, 1204),
    o(1206, ">=", INET, INET, BOOL, 924, 1204, 1203),
    o(931, "<<", INET, INET, BOOL, 927, 933, 0),
    o(932, "<<=", INET, INET, BOOL, 928, 934, 0),
    o(933, ">>", INET, INET, BOOL, 929, 931, 0),
    o(934, ">>=", INET, INET, BOOL, 930, 932, 0),
    o(3552, "&&", INET, INET, BOOL, 3551, 3552, 0),
    o(2634, "~", PREFIX, INET, INET, 2627, 0, 0),
    o(2635, "&", INET, INET, INET, 2628, 0, 0),
    o(2636, "|", INET, INET, INET, 2629, 0, 0),
    o(2637, "+", INET, INT8, INET, 2630, 2638, 0),
    o(2638, "+", INT8, INET, INET, 2631, 2637, 0),
    o(2639, "-", INET, INT8, INET, 2632, 0, 0),
    o(2640, "-", INET, INET, INT8, 2633, 0, 0),
];

/// Casts.
#[rustfmt::skip]
pub(super) static CASTS: &[CastRow] = &[
    c(MACADDR, MACADDR8, 4123, Implicit, false),
    c(MACADDR8, MACADDR, 4124, Implicit, false),
    c(CIDR, INET, 0, Implicit, false),
    c(INET, CIDR, 1715, Assignment, false),
    c(CIDR, TEXT, 730, Assignment, false),
    c(INET, TEXT, 730, Assignment, false),
    c(CIDR, VARCHAR, 730, Assignment, false),
    c(INET, VARCHAR, 730, Assignment, false),
    c(CIDR, BPCHAR, 730, Assignment, false),
    c(INET, BPCHAR, 730, Assignment, false),
];
