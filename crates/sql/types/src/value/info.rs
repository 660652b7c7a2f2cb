//! The table of built-in types: what `pg_type` says of each, lookup by SQL name, and printing of type names.
//!
//! Owns: [`TypeInfo`], [`by_oid`], [`by_name`], the spelling of built-in types ([`format_built_in`]). Numbers and names
//! are PostgreSQL 15's; clients depend on them.

use super::types::{Oid, SqlType, oid};
use super::user::{self, UNKNOWN, UserTypeClass, UserTypes};
use crate::TypeId;
use crate::error::{Result, SqlError};
use foldhash::HashMap;
use logstead_types::SqlState;
use std::borrow::Cow;
use std::sync::OnceLock;

/// One row of `pg_type`.
#[derive(Clone, Copy, Debug)]
pub struct TypeInfo {
    /// `oid`
    pub oid: TypeId,
    /// `typname`
    pub name: &'static str,
    /// `typlen`
    pub len: i16,
    /// `typbyval`
    pub by_value: bool,
    /// `typtype`: b base, c composite, e enum, m multirange, p pseudo, r range
    pub kind: char,
    /// `typcategory`
    pub category: char,
    /// `typispreferred`
    pub preferred: bool,
    /// `typarray`: the array type over this one, if there is one
    pub array: Option<TypeId>,
    /// `typelem`: element type, if it has one
    pub elem: Option<TypeId>,
    /// `typalign`
    pub align: char,
    /// `typstorage`
    pub storage: char,
    /// `typinput`
    pub input: &'static str,
    /// `typoutput`
    pub output: &'static str,
    /// `typreceive` (empty for none)
    pub receive: &'static str,
    /// `typsend` (empty for none)
    pub send: &'static str,
    /// `typmodin` (empty for none)
    pub modin: &'static str,
    /// `typmodout` (empty for none)
    pub modout: &'static str,
}

impl TypeInfo {
    /// `typdelim`: what stands between the elements of an array of it.
    pub fn delimiter(&self) -> char {
        match self.oid {
            oid::BOX | oid::BOX_ARRAY => ';',
            _ => ',',
        }
    }

    /// True for types made of elements that are real arrays (`int2vector` and `oidvector` included).
    pub fn is_array(&self) -> bool {
        self.category == 'A'
    }

    /// `typcollation`: default for strings, C for name, none elsewhere.
    pub fn collation(&self) -> Oid {
        match (self.oid, self.elem) {
            (oid::NAME, _) | (_, Some(oid::NAME)) => 950,
            (oid::CHAR, _) | (oid::NAME_ARRAY, _) => 0,
            (oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::CITEXT, _)
            | (_, Some(oid::TEXT | oid::VARCHAR | oid::BPCHAR)) => 100,
            _ => 0,
        }
    }
}

/// The type of this number, 0 being none, as `pg_type.dat` has it.
const fn some_type(oid: u32) -> Option<TypeId> {
    match oid {
        0 => None,
        oid => Some(TypeId::new(oid)),
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "one call per row of a literal table"
)]
const fn t(
    oid: u32,
    name: &'static str,
    len: i16,
    by_value: bool,
    kind: char,
    category: char,
    preferred: bool,
    array: u32,
    elem: u32,
    align: char,
    storage: char,
    io: [&'static str; 6],
) -> TypeInfo {
    let [input, output, receive, send, modin, modout] = io;
    TypeInfo {
        oid: TypeId::new(oid),
        name,
        len,
        by_value,
        kind,
        category,
        preferred,
        array: some_type(array),
        elem: some_type(elem),
        align,
        storage,
        input,
        output,
        receive,
        send,
        modin,
        modout,
    }
}

/// All built-in types, by OID.
#[rustfmt::skip]
pub static TYPES: &[TypeInfo] = &[
    t(16, "bool", 1, true, 'b', 'B', true, 1000, 0, 'c', 'p', ["boolin", "boolout", "boolrecv", "boolsend", "", ""]),
    t(17, "bytea", -1, false, 'b', 'U', false, 1001, 0, 'i', 'x', ["byteain", "byteaout", "bytearecv", "byteasend", "", ""]),
    t(18, "char", 1, true, 'b', 'Z', false, 1002, 0, 'c', 'p', ["charin", "charout", "charrecv", "charsend", "", ""]),
    t(19, "name", 64, false, 'b', 'S', false, 1003, 18, 'c', 'p', ["namein", "nameout", "namerecv", "namesend", "", ""]),
    t(20, "int8", 8, true, 'b', 'N', false, 1016, 0, 'd', 'p', ["int8in", "int8out", "int8recv", "int8send", "", ""]),
    t(21, "int2", 2, true, 'b', 'N', false, 1005, 0, 's', 'p', ["int2in", "int2out", "int2recv", "int2send", "", ""]),
    t(22, "int2vector", -1, false, 'b', 'A', false, 1006, 21, 'i', 'p', ["int2vectorin", "int2vectorout", "int2vectorrecv", "int2vectorsend", "", ""]),
    t(23, "int4", 4, true, 'b', 'N', false, 1007, 0, 'i', 'p', ["int4in", "int4out", "int4recv", "int4send", "", ""]),
    t(24, "regproc", 4, true, 'b', 'N', false, 1008, 0, 'i', 'p', ["regprocin", "regprocout", "regprocrecv", "regprocsend", "", ""]),
    t(25, "text", -1, false, 'b', 'S', true, 1009, 0, 'i', 'x', ["textin", "textout", "textrecv", "textsend", "", ""]),
    t(26, "oid", 4, true, 'b', 'N', true, 1028, 0, 'i', 'p', ["oidin", "oidout", "oidrecv", "oidsend", "", ""]),
    t(27, "tid", 6, false, 'b', 'U', false, 1010, 0, 's', 'p', ["tidin", "tidout", "tidrecv", "tidsend", "", ""]),
    t(28, "xid", 4, true, 'b', 'U', false, 1011, 0, 'i', 'p', ["xidin", "xidout", "xidrecv", "xidsend", "", ""]),
    t(29, "cid", 4, true, 'b', 'U', false, 1012, 0, 'i', 'p', ["cidin", "cidout", "cidrecv", "cidsend", "", ""]),
    t(30, "oidvector", -1, false, 'b', 'A', false, 1013, 26, 'i', 'p', ["oidvectorin", "oidvectorout", "oidvectorrecv", "oidvectorsend", "", ""]),
    t(114, "json", -1, false, 'b', 'U', false, 199, 0, 'i', 'x', ["json_in", "json_out", "json_recv", "json_send", "", ""]),
    t(142, "xml", -1, false, 'b', 'U', false, 143, 0, 'i', 'x', ["xml_in", "xml_out", "xml_recv", "xml_send", "", ""]),
    t(143, "_xml", -1, false, 'b', 'A', false, 0, 142, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(194, "pg_node_tree", -1, false, 'b', 'Z', false, 0, 0, 'i', 'x', ["pg_node_tree_in", "pg_node_tree_out", "pg_node_tree_recv", "pg_node_tree_send", "", ""]),
    t(199, "_json", -1, false, 'b', 'A', false, 0, 114, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(271, "_xid8", -1, false, 'b', 'A', false, 0, 5069, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(600, "point", 16, false, 'b', 'G', false, 1017, 701, 'd', 'p', ["point_in", "point_out", "point_recv", "point_send", "", ""]),
    t(601, "lseg", 32, false, 'b', 'G', false, 1018, 600, 'd', 'p', ["lseg_in", "lseg_out", "lseg_recv", "lseg_send", "", ""]),
    t(602, "path", -1, false, 'b', 'G', false, 1019, 0, 'd', 'x', ["path_in", "path_out", "path_recv", "path_send", "", ""]),
    t(603, "box", 32, false, 'b', 'G', false, 1020, 600, 'd', 'p', ["box_in", "box_out", "box_recv", "box_send", "", ""]),
    t(604, "polygon", -1, false, 'b', 'G', false, 1027, 0, 'd', 'x', ["poly_in", "poly_out", "poly_recv", "poly_send", "", ""]),
    t(628, "line", 24, false, 'b', 'G', false, 629, 701, 'd', 'p', ["line_in", "line_out", "line_recv", "line_send", "", ""]),
    t(629, "_line", -1, false, 'b', 'A', false, 0, 628, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(650, "cidr", -1, false, 'b', 'I', false, 651, 0, 'i', 'm', ["cidr_in", "cidr_out", "cidr_recv", "cidr_send", "", ""]),
    t(651, "_cidr", -1, false, 'b', 'A', false, 0, 650, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(700, "float4", 4, true, 'b', 'N', false, 1021, 0, 'i', 'p', ["float4in", "float4out", "float4recv", "float4send", "", ""]),
    t(701, "float8", 8, true, 'b', 'N', true, 1022, 0, 'd', 'p', ["float8in", "float8out", "float8recv", "float8send", "", ""]),
    t(705, "unknown", -2, false, 'p', 'X', false, 0, 0, 'c', 'p', ["unknownin", "unknownout", "unknownrecv", "unknownsend", "", ""]),
    t(718, "circle", 24, false, 'b', 'G', false, 719, 0, 'd', 'p', ["circle_in", "circle_out", "circle_recv", "circle_send", "", ""]),
    t(719, "_circle", -1, false, 'b', 'A', false, 0, 718, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(774, "macaddr8", 8, false, 'b', 'U', false, 775, 0, 'i', 'p', ["macaddr8_in", "macaddr8_out", "macaddr8_recv", "macaddr8_send", "", ""]),
    t(775, "_macaddr8", -1, false, 'b', 'A', false, 0, 774, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(790, "money", 8, true, 'b', 'N', false, 791, 0, 'd', 'p', ["cash_in", "cash_out", "cash_recv", "cash_send", "", ""]),
    t(791, "_money", -1, false, 'b', 'A', false, 0, 790, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(829, "macaddr", 6, false, 'b', 'U', false, 1040, 0, 'i', 'p', ["macaddr_in", "macaddr_out", "macaddr_recv", "macaddr_send", "", ""]),
    t(869, "inet", -1, false, 'b', 'I', true, 1041, 0, 'i', 'm', ["inet_in", "inet_out", "inet_recv", "inet_send", "", ""]),
    t(1000, "_bool", -1, false, 'b', 'A', false, 0, 16, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1001, "_bytea", -1, false, 'b', 'A', false, 0, 17, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1002, "_char", -1, false, 'b', 'A', false, 0, 18, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1003, "_name", -1, false, 'b', 'A', false, 0, 19, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1005, "_int2", -1, false, 'b', 'A', false, 0, 21, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1006, "_int2vector", -1, false, 'b', 'A', false, 0, 22, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1007, "_int4", -1, false, 'b', 'A', false, 0, 23, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1008, "_regproc", -1, false, 'b', 'A', false, 0, 24, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1009, "_text", -1, false, 'b', 'A', false, 0, 25, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1010, "_tid", -1, false, 'b', 'A', false, 0, 27, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1011, "_xid", -1, false, 'b', 'A', false, 0, 28, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1012, "_cid", -1, false, 'b', 'A', false, 0, 29, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1013, "_oidvector", -1, false, 'b', 'A', false, 0, 30, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1014, "_bpchar", -1, false, 'b', 'A', false, 0, 1042, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "bpchartypmodin", "bpchartypmodout"]),
    t(1015, "_varchar", -1, false, 'b', 'A', false, 0, 1043, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "varchartypmodin", "varchartypmodout"]),
    t(1016, "_int8", -1, false, 'b', 'A', false, 0, 20, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1017, "_point", -1, false, 'b', 'A', false, 0, 600, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1018, "_lseg", -1, false, 'b', 'A', false, 0, 601, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1019, "_path", -1, false, 'b', 'A', false, 0, 602, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1020, "_box", -1, false, 'b', 'A', false, 0, 603, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1021, "_float4", -1, false, 'b', 'A', false, 0, 700, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1022, "_float8", -1, false, 'b', 'A', false, 0, 701, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1027, "_polygon", -1, false, 'b', 'A', false, 0, 604, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1028, "_oid", -1, false, 'b', 'A', false, 0, 26, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1033, "aclitem", 12, false, 'b', 'U', false, 1034, 0, 'i', 'p', ["aclitemin", "aclitemout", "", "", "", ""]),
    t(1034, "_aclitem", -1, false, 'b', 'A', false, 0, 1033, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1040, "_macaddr", -1, false, 'b', 'A', false, 0, 829, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1041, "_inet", -1, false, 'b', 'A', false, 0, 869, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1042, "bpchar", -1, false, 'b', 'S', false, 1014, 0, 'i', 'x', ["bpcharin", "bpcharout", "bpcharrecv", "bpcharsend", "bpchartypmodin", "bpchartypmodout"]),
    t(1043, "varchar", -1, false, 'b', 'S', false, 1015, 0, 'i', 'x', ["varcharin", "varcharout", "varcharrecv", "varcharsend", "varchartypmodin", "varchartypmodout"]),
    t(1082, "date", 4, true, 'b', 'D', false, 1182, 0, 'i', 'p', ["date_in", "date_out", "date_recv", "date_send", "", ""]),
    t(1083, "time", 8, true, 'b', 'D', false, 1183, 0, 'd', 'p', ["time_in", "time_out", "time_recv", "time_send", "timetypmodin", "timetypmodout"]),
    t(1114, "timestamp", 8, true, 'b', 'D', false, 1115, 0, 'd', 'p', ["timestamp_in", "timestamp_out", "timestamp_recv", "timestamp_send", "timestamptypmodin", "timestamptypmodout"]),
    t(1115, "_timestamp", -1, false, 'b', 'A', false, 0, 1114, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "timestamptypmodin", "timestamptypmodout"]),
    t(1182, "_date", -1, false, 'b', 'A', false, 0, 1082, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1183, "_time", -1, false, 'b', 'A', false, 0, 1083, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "timetypmodin", "timetypmodout"]),
    t(1184, "timestamptz", 8, true, 'b', 'D', true, 1185, 0, 'd', 'p', ["timestamptz_in", "timestamptz_out", "timestamptz_recv", "timestamptz_send", "timestamptztypmodin", "timestamptztypmodout"]),
    t(1185, "_timestamptz", -1, false, 'b', 'A', false, 0, 1184, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "timestamptztypmodin", "timestamptztypmodout"]),
    t(1186, "interval", 16, false, 'b', 'T', true, 1187, 0, 'd', 'p', ["interval_in", "interval_out", "interval_recv", "interval_send", "intervaltypmodin", "intervaltypmodout"]),
    t(1187, "_interval", -1, false, 'b', 'A', false, 0, 1186, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "intervaltypmodin", "intervaltypmodout"]),
    t(1231, "_numeric", -1, false, 'b', 'A', false, 0, 1700, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "numerictypmodin", "numerictypmodout"]),
    t(1263, "_cstring", -1, false, 'b', 'A', false, 0, 2275, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(1266, "timetz", 12, false, 'b', 'D', false, 1270, 0, 'd', 'p', ["timetz_in", "timetz_out", "timetz_recv", "timetz_send", "timetztypmodin", "timetztypmodout"]),
    t(1270, "_timetz", -1, false, 'b', 'A', false, 0, 1266, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "timetztypmodin", "timetztypmodout"]),
    t(1560, "bit", -1, false, 'b', 'V', false, 1561, 0, 'i', 'x', ["bit_in", "bit_out", "bit_recv", "bit_send", "bittypmodin", "bittypmodout"]),
    t(1561, "_bit", -1, false, 'b', 'A', false, 0, 1560, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "bittypmodin", "bittypmodout"]),
    t(1562, "varbit", -1, false, 'b', 'V', true, 1563, 0, 'i', 'x', ["varbit_in", "varbit_out", "varbit_recv", "varbit_send", "varbittypmodin", "varbittypmodout"]),
    t(1563, "_varbit", -1, false, 'b', 'A', false, 0, 1562, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "varbittypmodin", "varbittypmodout"]),
    t(1700, "numeric", -1, false, 'b', 'N', false, 1231, 0, 'i', 'm', ["numeric_in", "numeric_out", "numeric_recv", "numeric_send", "numerictypmodin", "numerictypmodout"]),
    t(1790, "refcursor", -1, false, 'b', 'U', false, 2201, 0, 'i', 'x', ["textin", "textout", "textrecv", "textsend", "", ""]),
    t(2201, "_refcursor", -1, false, 'b', 'A', false, 0, 1790, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2202, "regprocedure", 4, true, 'b', 'N', false, 2207, 0, 'i', 'p', ["regprocedurein", "regprocedureout", "regprocedurerecv", "regproceduresend", "", ""]),
    t(2203, "regoper", 4, true, 'b', 'N', false, 2208, 0, 'i', 'p', ["regoperin", "regoperout", "regoperrecv", "regopersend", "", ""]),
    t(2204, "regoperator", 4, true, 'b', 'N', false, 2209, 0, 'i', 'p', ["regoperatorin", "regoperatorout", "regoperatorrecv", "regoperatorsend", "", ""]),
    t(2205, "regclass", 4, true, 'b', 'N', false, 2210, 0, 'i', 'p', ["regclassin", "regclassout", "regclassrecv", "regclasssend", "", ""]),
    t(2206, "regtype", 4, true, 'b', 'N', false, 2211, 0, 'i', 'p', ["regtypein", "regtypeout", "regtyperecv", "regtypesend", "", ""]),
    t(2207, "_regprocedure", -1, false, 'b', 'A', false, 0, 2202, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2208, "_regoper", -1, false, 'b', 'A', false, 0, 2203, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2209, "_regoperator", -1, false, 'b', 'A', false, 0, 2204, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2210, "_regclass", -1, false, 'b', 'A', false, 0, 2205, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2211, "_regtype", -1, false, 'b', 'A', false, 0, 2206, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2249, "record", -1, false, 'p', 'P', false, 2287, 0, 'd', 'x', ["record_in", "record_out", "record_recv", "record_send", "", ""]),
    t(2275, "cstring", -2, false, 'p', 'P', false, 1263, 0, 'c', 'p', ["cstring_in", "cstring_out", "cstring_recv", "cstring_send", "", ""]),
    t(2276, "any", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["any_in", "any_out", "", "", "", ""]),
    t(2277, "anyarray", -1, false, 'p', 'P', false, 0, 0, 'd', 'x', ["anyarray_in", "anyarray_out", "anyarray_recv", "anyarray_send", "", ""]),
    t(2278, "void", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["void_in", "void_out", "void_recv", "void_send", "", ""]),
    t(2279, "trigger", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["trigger_in", "trigger_out", "", "", "", ""]),
    t(2280, "language_handler", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["language_handler_in", "language_handler_out", "", "", "", ""]),
    t(2281, "internal", 8, true, 'p', 'P', false, 0, 0, 'd', 'p', ["internal_in", "internal_out", "", "", "", ""]),
    t(2283, "anyelement", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["anyelement_in", "anyelement_out", "", "", "", ""]),
    t(2287, "_record", -1, false, 'p', 'P', false, 0, 2249, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2776, "anynonarray", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["anynonarray_in", "anynonarray_out", "", "", "", ""]),
    t(2949, "_txid_snapshot", -1, false, 'b', 'A', false, 0, 2970, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2950, "uuid", 16, false, 'b', 'U', false, 2951, 0, 'c', 'p', ["uuid_in", "uuid_out", "uuid_recv", "uuid_send", "", ""]),
    t(2951, "_uuid", -1, false, 'b', 'A', false, 0, 2950, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(2970, "txid_snapshot", -1, false, 'b', 'U', false, 2949, 0, 'd', 'x', ["txid_snapshot_in", "txid_snapshot_out", "txid_snapshot_recv", "txid_snapshot_send", "", ""]),
    t(3220, "pg_lsn", 8, true, 'b', 'U', false, 3221, 0, 'd', 'p', ["pg_lsn_in", "pg_lsn_out", "pg_lsn_recv", "pg_lsn_send", "", ""]),
    t(3221, "_pg_lsn", -1, false, 'b', 'A', false, 0, 3220, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3500, "anyenum", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["anyenum_in", "anyenum_out", "", "", "", ""]),
    t(3614, "tsvector", -1, false, 'b', 'U', false, 3643, 0, 'i', 'x', ["tsvectorin", "tsvectorout", "tsvectorrecv", "tsvectorsend", "", ""]),
    t(3615, "tsquery", -1, false, 'b', 'U', false, 3645, 0, 'i', 'p', ["tsqueryin", "tsqueryout", "tsqueryrecv", "tsquerysend", "", ""]),
    t(3643, "_tsvector", -1, false, 'b', 'A', false, 0, 3614, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3645, "_tsquery", -1, false, 'b', 'A', false, 0, 3615, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3734, "regconfig", 4, true, 'b', 'N', false, 3735, 0, 'i', 'p', ["regconfigin", "regconfigout", "regconfigrecv", "regconfigsend", "", ""]),
    t(3735, "_regconfig", -1, false, 'b', 'A', false, 0, 3734, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3769, "regdictionary", 4, true, 'b', 'N', false, 3770, 0, 'i', 'p', ["regdictionaryin", "regdictionaryout", "regdictionaryrecv", "regdictionarysend", "", ""]),
    t(3770, "_regdictionary", -1, false, 'b', 'A', false, 0, 3769, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3802, "jsonb", -1, false, 'b', 'U', false, 3807, 0, 'i', 'x', ["jsonb_in", "jsonb_out", "jsonb_recv", "jsonb_send", "", ""]),
    t(3807, "_jsonb", -1, false, 'b', 'A', false, 0, 3802, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3831, "anyrange", -1, false, 'p', 'P', false, 0, 0, 'd', 'x', ["anyrange_in", "anyrange_out", "", "", "", ""]),
    t(3904, "int4range", -1, false, 'r', 'R', false, 3905, 0, 'i', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]),
    t(3905, "_int4range", -1, false, 'b', 'A', false, 0, 3904, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3906, "numrange", -1, false, 'r', 'R', false, 3907, 0, 'i', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]),
    t(3907, "_numrange", -1, false, 'b', 'A', false, 0, 3906, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3908, "tsrange", -1, false, 'r', 'R', false, 3909, 0, 'd', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]),
    t(3909, "_tsrange", -1, false, 'b', 'A', false, 0, 3908, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3910, "tstzrange", -1, false, 'r', 'R', false, 3911, 0, 'd', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]),
    t(3911, "_tstzrange", -1, false, 'b', 'A', false, 0, 3910, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3912, "daterange", -1, false, 'r', 'R', false, 3913, 0, 'i', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]),
    t(3913, "_daterange", -1, false, 'b', 'A', false, 0, 3912, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(3926, "int8range", -1, false, 'r', 'R', false, 3927, 0, 'd', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]),
    t(3927, "_int8range", -1, false, 'b', 'A', false, 0, 3926, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(4072, "jsonpath", -1, false, 'b', 'U', false, 4073, 0, 'i', 'x', ["jsonpath_in", "jsonpath_out", "jsonpath_recv", "jsonpath_send", "", ""]),
    t(4073, "_jsonpath", -1, false, 'b', 'A', false, 0, 4072, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(4089, "regnamespace", 4, true, 'b', 'N', false, 4090, 0, 'i', 'p', ["regnamespacein", "regnamespaceout", "regnamespacerecv", "regnamespacesend", "", ""]),
    t(4090, "_regnamespace", -1, false, 'b', 'A', false, 0, 4089, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(4096, "regrole", 4, true, 'b', 'N', false, 4097, 0, 'i', 'p', ["regrolein", "regroleout", "regrolerecv", "regrolesend", "", ""]),
    t(4097, "_regrole", -1, false, 'b', 'A', false, 0, 4096, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(4191, "regcollation", 4, true, 'b', 'N', false, 4192, 0, 'i', 'p', ["regcollationin", "regcollationout", "regcollationrecv", "regcollationsend", "", ""]),
    t(4192, "_regcollation", -1, false, 'b', 'A', false, 0, 4191, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(4451, "int4multirange", -1, false, 'm', 'R', false, 6150, 0, 'i', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]),
    t(4532, "nummultirange", -1, false, 'm', 'R', false, 6151, 0, 'i', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]),
    t(4533, "tsmultirange", -1, false, 'm', 'R', false, 6152, 0, 'd', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]),
    t(4534, "tstzmultirange", -1, false, 'm', 'R', false, 6153, 0, 'd', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]),
    t(4535, "datemultirange", -1, false, 'm', 'R', false, 6155, 0, 'i', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]),
    t(4536, "int8multirange", -1, false, 'm', 'R', false, 6157, 0, 'd', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]),
    t(4537, "anymultirange", -1, false, 'p', 'P', false, 0, 0, 'd', 'x', ["anymultirange_in", "anymultirange_out", "", "", "", ""]),
    t(5038, "pg_snapshot", -1, false, 'b', 'U', false, 5039, 0, 'd', 'x', ["pg_snapshot_in", "pg_snapshot_out", "pg_snapshot_recv", "pg_snapshot_send", "", ""]),
    t(5039, "_pg_snapshot", -1, false, 'b', 'A', false, 0, 5038, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(5069, "xid8", 8, true, 'b', 'U', false, 271, 0, 'd', 'p', ["xid8in", "xid8out", "xid8recv", "xid8send", "", ""]),
    t(5077, "anycompatible", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["anycompatible_in", "anycompatible_out", "", "", "", ""]),
    t(5078, "anycompatiblearray", -1, false, 'p', 'P', false, 0, 0, 'd', 'x', ["anycompatiblearray_in", "anycompatiblearray_out", "anycompatiblearray_recv", "anycompatiblearray_send", "", ""]),
    t(5079, "anycompatiblenonarray", 4, true, 'p', 'P', false, 0, 0, 'i', 'p', ["anycompatiblenonarray_in", "anycompatiblenonarray_out", "", "", "", ""]),
    t(6150, "_int4multirange", -1, false, 'b', 'A', false, 0, 4451, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(6151, "_nummultirange", -1, false, 'b', 'A', false, 0, 4532, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(6152, "_tsmultirange", -1, false, 'b', 'A', false, 0, 4533, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(6153, "_tstzmultirange", -1, false, 'b', 'A', false, 0, 4534, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(6155, "_datemultirange", -1, false, 'b', 'A', false, 0, 4535, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
    t(6157, "_int8multirange", -1, false, 'b', 'A', false, 0, 4536, 'd', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]),
];

fn index() -> &'static HashMap<TypeId, &'static TypeInfo> {
    static INDEX: OnceLock<HashMap<TypeId, &'static TypeInfo>> = OnceLock::new();
    INDEX.get_or_init(|| TYPES.iter().map(|t| (t.oid, t)).collect())
}

/// The type with this OID. Of a user's type it says what all of its kind have alike: its OID, name, element and array
/// are those of the pseudo-type that stands for them. What may be a domain is asked by [`UserTypes::type_info`].
pub fn by_oid(ty: TypeId) -> Option<&'static TypeInfo> {
    match user::class(ty) {
        None => index().get(&ty).copied(),
        Some(UserTypeClass::Enum) => Some(&ENUM),
        // A domain has no values of its own: it is what its base type is, which a catalog knows.
        Some(UserTypeClass::Domain) => None,
        Some(UserTypeClass::Array) if user::domain_in(ty).is_some() => None,
        Some(UserTypeClass::Array) => Some(&USER_ARRAY),
        Some(UserTypeClass::Composite) => Some(&COMPOSITE),
        Some(UserTypeClass::Range) => Some(&RANGE),
        Some(UserTypeClass::Multirange) => Some(&MULTIRANGE),
        Some(UserTypeClass::Base) if ty == oid::HSTORE => Some(&HSTORE),
        Some(UserTypeClass::Base) => Some(&CITEXT),
        Some(UserTypeClass::Other) => None,
    }
}

/// What all enums have alike.
#[rustfmt::skip]
pub static ENUM: TypeInfo =
    t(3500, "anyenum", 4, true, 'e', 'E', false, 0, 0, 'i', 'p', ["enum_in", "enum_out", "enum_recv", "enum_send", "", ""]);

/// What all composite types have alike.
#[rustfmt::skip]
pub static COMPOSITE: TypeInfo =
    t(2249, "record", -1, false, 'c', 'C', false, 0, 0, 'd', 'x', ["record_in", "record_out", "record_recv", "record_send", "", ""]);

/// What all ranges of users have alike.
#[rustfmt::skip]
pub static RANGE: TypeInfo =
    t(3831, "anyrange", -1, false, 'r', 'R', false, 0, 0, 'i', 'x', ["range_in", "range_out", "range_recv", "range_send", "", ""]);

/// What all their multiranges have alike.
#[rustfmt::skip]
pub static MULTIRANGE: TypeInfo =
    t(4537, "anymultirange", -1, false, 'm', 'R', false, 0, 0, 'i', 'x', ["multirange_in", "multirange_out", "multirange_recv", "multirange_send", "", ""]);

/// The type of the extension of this name.
#[rustfmt::skip]
pub static CITEXT: TypeInfo =
    t(16_006, "citext", -1, false, 'b', 'S', false, 16_007, 0, 'i', 'x', ["citextin", "citextout", "citextrecv", "citextsend", "", ""]);

/// Likewise.
#[rustfmt::skip]
pub static HSTORE: TypeInfo =
    t(16_014, "hstore", -1, false, 'b', 'U', false, 16_015, 0, 'i', 'x', ["hstore_in", "hstore_out", "hstore_recv", "hstore_send", "", ""]);

/// What all arrays over users' types have alike.
#[rustfmt::skip]
pub static USER_ARRAY: TypeInfo =
    t(2277, "_anyenum", -1, false, 'b', 'A', false, 0, 0, 'i', 'x', ["array_in", "array_out", "array_recv", "array_send", "", ""]);

/// `pg_type.typname` of a built-in type, or "???" as PostgreSQL prints for an unknown one.
pub fn built_in_name(oid: TypeId) -> &'static str {
    by_oid(oid)
        .filter(|_| user::class(oid).is_none())
        .map_or(UNKNOWN, |t| t.name)
}

/// `pg_type.typname` of a type, as the running statement sees it: values that are read tell so what they are not.
pub(super) fn type_name(oid: TypeId) -> Cow<'static, str> {
    match user::class(oid) {
        None => Cow::Borrowed(built_in_name(oid)),
        Some(_) => Cow::Owned(user::name(oid)),
    }
}

/// Category of a type ('N' numeric, 'S' string, 'D' date/time, ...); 'X' for unknown ones.
pub fn category(oid: TypeId) -> char {
    by_oid(oid).map_or('X', |t| t.category)
}

/// Element type of an array type (vectors included); `None` for other types. No expression and no value is of a domain:
/// what may be declared as one is asked by [`UserTypes::element_of`].
pub fn element_of(array: TypeId) -> Option<TypeId> {
    match user::class(array) {
        None => built_in_element(array),
        Some(_) if user::domain_in(array).is_some() => None,
        Some(class) => (class == UserTypeClass::Array).then(|| user::element_under(array)),
    }
}

/// [`element_of`] of a built-in type.
pub(super) fn built_in_element(array: TypeId) -> Option<TypeId> {
    by_oid(array)
        .filter(|t| t.category == 'A' || t.oid == oid::RECORD_ARRAY)
        .and_then(|t| t.elem)
}

/// The element type of an array type, without a modifier but for records, which have the fields that the array's says.
pub fn element_type(array: SqlType) -> Option<SqlType> {
    let typmod = array.typmod;
    element_of(array.oid).map(|oid| SqlType { oid, typmod }.plain())
}

/// The type of arrays of elements of a type, without a modifier but for records, whose fields it says.
pub fn array_type(element: SqlType) -> Option<SqlType> {
    let typmod = element.typmod;
    array_of(element.oid).map(|oid| SqlType { oid, typmod }.plain())
}

/// Array type over an element type; `None` if there is none.
pub fn array_of(element: TypeId) -> Option<TypeId> {
    if let Some(class) = user::class(element) {
        let has = !matches!(class, UserTypeClass::Array | UserTypeClass::Other);
        return has.then(|| user::array_over(element));
    }
    by_oid(element)?.array
}

/// Type by `pg_type.typname` or by one of SQL's own spellings (lower case, single blanks), with `[]` suffixes for
/// arrays.
pub fn by_name(name: &str) -> Option<TypeId> {
    static NAMES: OnceLock<HashMap<&'static str, TypeId>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut m: HashMap<&'static str, TypeId> = TYPES.iter().map(|t| (t.name, t.oid)).collect();
        for &(alias, oid) in ALIASES {
            m.insert(alias, oid);
        }
        m
    });
    if let Some(&o) = names.get(name) {
        return Some(o);
    }
    let base = name.strip_suffix("[]")?.trim_end_matches("[]").trim_end();
    array_of(by_name(base)?)
}

/// The type that `pg_type` has under exactly this name, as a quoted name means it.
pub fn by_catalog_name(name: &str) -> Option<TypeId> {
    static NAMES: OnceLock<HashMap<&'static str, TypeId>> = OnceLock::new();
    let names = NAMES.get_or_init(|| TYPES.iter().map(|t| (t.name, t.oid)).collect());
    names.get(name).copied()
}

const ALIASES: &[(&str, TypeId)] = &[
    ("boolean", oid::BOOL),
    ("bool", oid::BOOL),
    ("smallint", oid::INT2),
    ("int", oid::INT4),
    ("integer", oid::INT4),
    ("bigint", oid::INT8),
    ("real", oid::FLOAT4),
    ("float", oid::FLOAT8),
    ("double precision", oid::FLOAT8),
    ("decimal", oid::NUMERIC),
    ("dec", oid::NUMERIC),
    // "char" in quotes is its own type and reaches us as `"char"`; the bare word is character(1).
    ("char", oid::BPCHAR),
    ("\"char\"", oid::CHAR),
    ("character", oid::BPCHAR),
    ("nchar", oid::BPCHAR),
    ("national character", oid::BPCHAR),
    ("character varying", oid::VARCHAR),
    ("char varying", oid::VARCHAR),
    ("national character varying", oid::VARCHAR),
    ("timestamp without time zone", oid::TIMESTAMP),
    ("timestamp with time zone", oid::TIMESTAMPTZ),
    ("time without time zone", oid::TIME),
    ("time with time zone", oid::TIMETZ),
    ("bit varying", oid::VARBIT),
];

/// Prints a type without a modifier, as the running statement sees it: values that are read tell so what they are not.
pub(super) fn format_type_bare(oid: TypeId) -> String {
    format_with(SqlType::of(oid), false, &user::format)
}

/// A built-in type as regtype prints it; `None` if there is none.
pub fn built_in_text(ty: TypeId) -> Option<String> {
    user::class(ty).is_none().then(|| by_oid(ty))??;
    Some(format_built_in(SqlType::of(ty), false))
}

/// Prints a built-in type, where a modifier is given or not.
pub fn format_built_in(ty: SqlType, given: bool) -> String {
    format_with(ty, given, &|_| UNKNOWN.to_owned())
}

/// Prints a type, where a modifier is given or not; `user_type` prints a user's that is no array.
pub(super) fn format_with(
    ty: SqlType,
    given: bool,
    user_type: &impl Fn(TypeId) -> String,
) -> String {
    if ty.oid == oid::INVALID {
        return "-".to_owned();
    }
    match user::class(ty.oid) {
        None => {}
        Some(UserTypeClass::Array) => {
            let mut s = user_type(user::element_under(ty.oid));
            // An array of nothing is nothing, too.
            if s != UNKNOWN {
                s.push_str("[]");
            }
            return s;
        }
        Some(_) => return user_type(ty.oid),
    }
    let Some(info) = by_oid(ty.oid) else {
        return UNKNOWN.to_owned();
    };
    let array = info.category == 'A' && !matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR);
    if let Some(oid) = info.elem.filter(|_| array || ty.oid == oid::RECORD_ARRAY) {
        let element = SqlType { oid, ..ty };
        let mut s = format_with(element, given, user_type);
        s.push_str("[]");
        return s;
    }
    let m = ty.typmod;
    let precision = |word: &str, tail: &str| {
        if m >= 0 {
            format!("{word}({m}){tail}")
        } else {
            format!("{word}{tail}")
        }
    };
    match ty.oid {
        oid::BOOL => "boolean".into(),
        oid::INT2 => "smallint".into(),
        oid::INT4 => "integer".into(),
        oid::INT8 => "bigint".into(),
        oid::FLOAT4 => "real".into(),
        oid::FLOAT8 => "double precision".into(),
        oid::CHAR if given && m >= 0 => format!("\"char\"({m})"),
        oid::CHAR => "\"char\"".into(),
        oid::NUMERIC if m >= 4 => {
            let (p, s) = numeric_typmod(m).unwrap_or((0, 0));
            format!("numeric({p},{s})")
        }
        oid::BPCHAR if m >= 4 => format!("character({})", m - 4),
        oid::BPCHAR if given => "bpchar".into(),
        oid::BPCHAR => "character".into(),
        oid::VARCHAR if m >= 4 => format!("character varying({})", m - 4),
        oid::VARCHAR => "character varying".into(),
        oid::TIME => precision("time", " without time zone"),
        oid::TIMETZ => precision("time", " with time zone"),
        oid::BIT if m > 0 => format!("bit({m})"),
        // Without a modifier it is of any length, and the bare word means one bit.
        oid::BIT if given => "\"bit\"".into(),
        oid::BIT => "bit".into(),
        oid::VARBIT if m > 0 => format!("bit varying({m})"),
        oid::VARBIT => "bit varying".into(),
        oid::TIMESTAMP => precision("timestamp", " without time zone"),
        oid::TIMESTAMPTZ => precision("timestamp", " with time zone"),
        oid::INTERVAL => {
            let fields = super::datetime::fields::words(super::datetime::fields::of(m));
            if m >= 0 && m & 0xffff != 0xffff {
                format!("interval{fields}({})", m & 0xffff)
            } else {
                format!("interval{fields}")
            }
        }
        oid::ANY => "\"any\"".into(),
        // Its modifier is the number of a shape: see `record`.
        oid::RECORD => "record".into(),
        _ if given && m >= 0 => format!("{}({m})", info.name),
        _ => info.name.into(),
    }
}

/// Precision and scale of a numeric modifier; `None` if it has none.
pub fn numeric_typmod(typmod: i32) -> Option<(i32, i32)> {
    if typmod < 4 {
        return None;
    }
    let m = typmod - 4;
    // The scale is an 11-bit two's complement number since version 15.
    Some(((m >> 16) & 0xffff, (((m & 0x7ff) ^ 1024) - 1024)))
}

/// Makes the modifier for a type from the numbers in parentheses, as its `typmodin` does.
pub fn typmod_in(ty: TypeId, args: &[i64], types: &UserTypes) -> Result<i32> {
    let bad = |code, text: String| Err(SqlError::new(code, text));
    let invalid = SqlState::INVALID_PARAMETER_VALUE;
    // An array's modifier is its elements'.
    let ty = match types.element_of(ty) {
        Some(element) if !args.is_empty() => element,
        _ => ty,
    };
    match (ty, args) {
        (_, []) => Ok(-1),
        (oid::VARCHAR | oid::BPCHAR, &[n]) => {
            let word = if ty == oid::VARCHAR {
                "varchar"
            } else {
                "char"
            };
            if n < 1 {
                return bad(
                    invalid,
                    format!("length for type {word} must be at least 1"),
                );
            }
            if n > 10_485_760 {
                return bad(
                    invalid,
                    format!("length for type {word} cannot exceed 10485760"),
                );
            }
            Ok(n as i32 + 4)
        }
        (oid::NUMERIC, &[p] | &[p, _]) => {
            let s = args.get(1).copied().unwrap_or(0);
            if !(1..=1000).contains(&p) {
                return bad(
                    invalid,
                    format!("NUMERIC precision {p} must be between 1 and 1000"),
                );
            }
            if !(-1000..=1000).contains(&s) {
                return bad(
                    invalid,
                    format!("NUMERIC scale {s} must be between -1000 and 1000"),
                );
            }
            Ok((((p as i32) << 16) | (s as i32 & 0x7ff)) + 4)
        }
        (oid::NUMERIC, _) => bad(invalid, "invalid NUMERIC type modifier".into()),
        (oid::BIT | oid::VARBIT, &[n]) => {
            const BIT_LENGTH_MAX: i64 = 83_886_080;
            let word = types.type_name(ty);
            if n < 1 {
                return bad(
                    invalid,
                    format!("length for type {word} must be at least 1"),
                );
            }
            if n > BIT_LENGTH_MAX {
                return bad(
                    invalid,
                    format!("length for type {word} cannot exceed {BIT_LENGTH_MAX}"),
                );
            }
            Ok(n as i32)
        }
        // Fields, and the digits of seconds.
        (oid::INTERVAL, &[range, p]) => {
            let any = super::datetime::fields::ANY_PRECISION;
            if p < 0 {
                return bad(
                    invalid,
                    format!("INTERVAL({p}) precision must not be negative"),
                );
            }
            let p = match i32::try_from(p) {
                Ok(p) if p == any => p,
                _ => p.min(6) as i32,
            };
            Ok(((range as i32) << 16) | p)
        }
        (oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL, &[p]) => {
            let word = match ty {
                oid::TIME | oid::TIMETZ => "TIME",
                oid::INTERVAL => "INTERVAL",
                _ => "TIMESTAMP",
            };
            let zone = if matches!(ty, oid::TIMESTAMPTZ | oid::TIMETZ) {
                " WITH TIME ZONE"
            } else {
                ""
            };
            if p < 0 {
                return bad(
                    invalid,
                    format!("{word}({p}){zone} precision must not be negative"),
                );
            }
            // PostgreSQL warns and reduces a larger one to 6.
            let p = p.min(6) as i32;
            Ok(if ty == oid::INTERVAL {
                (0x7fff << 16) | p
            } else {
                p
            })
        }
        (
            oid::VARCHAR
            | oid::BPCHAR
            | oid::BIT
            | oid::VARBIT
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL,
            _,
        ) => bad(invalid, "invalid type modifier".into()),
        _ => bad(
            SqlState::SYNTAX_ERROR,
            format!(
                "type modifier is not allowed for type \"{}\"",
                types.type_name(ty)
            ),
        ),
    }
}
