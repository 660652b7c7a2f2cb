//! The functions that read types from text and print them, as far as SQL may call them: `uuid_in(cstring)`, `uuid_out(uuid)`, `point_send(point)`.

use super::Volatility::{Immutable, Stable};
use super::numbers::bad_args;
use super::{Body, Function, FunctionContext, coerce_typmod};
use crate::function as f;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::binary_io::binary_output;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::text_io::{self, OutputStyle};
use logstead_sql_types::value::{Datum, SqlType};
use std::sync::Arc;

/// Reads a value of a type; its modifier is the third argument of those that have one.
fn read<const TYPE: u32>(cx: &dyn FunctionContext, a: &[Datum]) -> Result<Datum> {
    let value = text_io::input(SqlType::of(TYPE), a[0].as_str()?, Some(cx))?;
    match a {
        [_, _, Datum::Int4(typmod)] => {
            let (oid, typmod) = (TYPE, *typmod);
            coerce_typmod(value, SqlType { oid, typmod }, false)
        }
        _ => Ok(value),
    }
}

/// A value as its type prints it.
fn written(cx: &dyn FunctionContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let ([ty], [value]) = (types, a) else {
        return Err(bad_args(a));
    };
    text_io::to_text(value, *ty, &OutputStyle::of(cx)).map(Datum::text)
}

/// A value in the form in which clients get it that ask for binary values.
fn sent(_: &dyn FunctionContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let ([ty], [value]) = (types, a) else {
        return Err(bad_args(a));
    };
    let mut out = Vec::new();
    binary_output(value, *ty, &mut out)?;
    Ok(Datum::Bytea(Arc::from(out)))
}

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(31, "byteaout", &[BYTEA], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(33, "charout", &[CHAR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(34, "namein", &[CSTRING], None, NAME, true, Immutable, Body::Context(read::<{ NAME }>)),
    f(35, "nameout", &[NAME], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(38, "int2in", &[CSTRING], None, INT2, true, Immutable, Body::Context(read::<{ INT2 }>)),
    f(39, "int2out", &[INT2], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(40, "int2vectorin", &[CSTRING], None, INT2VECTOR, true, Immutable, Body::Context(read::<{ INT2VECTOR }>)),
    f(41, "int2vectorout", &[INT2VECTOR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(42, "int4in", &[CSTRING], None, INT4, true, Immutable, Body::Context(read::<{ INT4 }>)),
    f(43, "int4out", &[INT4], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(44, "regprocin", &[CSTRING], None, REGPROC, true, Stable, Body::Context(read::<{ REGPROC }>)),
    f(45, "regprocout", &[REGPROC], None, CSTRING, true, Stable, Body::Typed(written)),
    f(46, "textin", &[CSTRING], None, TEXT, true, Immutable, Body::Context(read::<{ TEXT }>)),
    f(47, "textout", &[TEXT], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(48, "tidin", &[CSTRING], None, TID, true, Immutable, Body::Context(read::<{ TID }>)),
    f(49, "tidout", &[TID], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(50, "xidin", &[CSTRING], None, XID, true, Immutable, Body::Context(read::<{ XID }>)),
    f(51, "xidout", &[XID], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(52, "cidin", &[CSTRING], None, CID, true, Immutable, Body::Context(read::<{ CID }>)),
    f(53, "cidout", &[CID], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(54, "oidvectorin", &[CSTRING], None, OIDVECTOR, true, Immutable, Body::Context(read::<{ OIDVECTOR }>)),
    f(55, "oidvectorout", &[OIDVECTOR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(117, "point_in", &[CSTRING], None, POINT, true, Immutable, Body::Context(read::<{ POINT }>)),
    f(118, "point_out", &[POINT], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(119, "lseg_in", &[CSTRING], None, LSEG, true, Immutable, Body::Context(read::<{ LSEG }>)),
    f(120, "lseg_out", &[LSEG], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(121, "path_in", &[CSTRING], None, PATH, true, Immutable, Body::Context(read::<{ PATH }>)),
    f(122, "path_out", &[PATH], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(123, "box_in", &[CSTRING], None, BOX, true, Immutable, Body::Context(read::<{ BOX }>)),
    f(124, "box_out", &[BOX], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(196, "pg_node_tree_out", &[PG_NODE_TREE], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(200, "float4in", &[CSTRING], None, FLOAT4, true, Immutable, Body::Context(read::<{ FLOAT4 }>)),
    f(201, "float4out", &[FLOAT4], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(214, "float8in", &[CSTRING], None, FLOAT8, true, Immutable, Body::Context(read::<{ FLOAT8 }>)),
    f(215, "float8out", &[FLOAT8], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(321, "json_in", &[CSTRING], None, JSON, true, Immutable, Body::Context(read::<{ JSON }>)),
    f(322, "json_out", &[JSON], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(347, "poly_in", &[CSTRING], None, POLYGON, true, Immutable, Body::Context(read::<{ POLYGON }>)),
    f(348, "poly_out", &[POLYGON], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(436, "macaddr_in", &[CSTRING], None, MACADDR, true, Immutable, Body::Context(read::<{ MACADDR }>)),
    f(437, "macaddr_out", &[MACADDR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(460, "int8in", &[CSTRING], None, INT8, true, Immutable, Body::Context(read::<{ INT8 }>)),
    f(461, "int8out", &[INT8], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(886, "cash_in", &[CSTRING], None, MONEY, true, Stable, Body::Context(read::<{ MONEY }>)),
    f(887, "cash_out", &[MONEY], None, CSTRING, true, Stable, Body::Typed(written)),
    f(910, "inet_in", &[CSTRING], None, INET, true, Immutable, Body::Context(read::<{ INET }>)),
    f(911, "inet_out", &[INET], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1031, "aclitemin", &[CSTRING], None, ACLITEM, true, Stable, Body::Context(read::<{ ACLITEM }>)),
    f(1032, "aclitemout", &[ACLITEM], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1044, "bpcharin", &[CSTRING, OID, INT4], None, BPCHAR, true, Immutable, Body::Context(read::<{ BPCHAR }>)),
    f(1045, "bpcharout", &[BPCHAR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1046, "varcharin", &[CSTRING, OID, INT4], None, VARCHAR, true, Immutable, Body::Context(read::<{ VARCHAR }>)),
    f(1047, "varcharout", &[VARCHAR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1084, "date_in", &[CSTRING], None, DATE, true, Stable, Body::Context(read::<{ DATE }>)),
    f(1085, "date_out", &[DATE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(1143, "time_in", &[CSTRING, OID, INT4], None, TIME, true, Stable, Body::Context(read::<{ TIME }>)),
    f(1144, "time_out", &[TIME], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1150, "timestamptz_in", &[CSTRING, OID, INT4], None, TIMESTAMPTZ, true, Stable, Body::Context(read::<{ TIMESTAMPTZ }>)),
    f(1151, "timestamptz_out", &[TIMESTAMPTZ], None, CSTRING, true, Stable, Body::Typed(written)),
    f(1160, "interval_in", &[CSTRING, OID, INT4], None, INTERVAL, true, Immutable, Body::Context(read::<{ INTERVAL }>)),
    f(1161, "interval_out", &[INTERVAL], None, CSTRING, true, Stable, Body::Typed(written)),
    f(1242, "boolin", &[CSTRING], None, BOOL, true, Immutable, Body::Context(read::<{ BOOL }>)),
    f(1243, "boolout", &[BOOL], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1244, "byteain", &[CSTRING], None, BYTEA, true, Immutable, Body::Context(read::<{ BYTEA }>)),
    f(1245, "charin", &[CSTRING], None, CHAR, true, Immutable, Body::Context(read::<{ CHAR }>)),
    f(1267, "cidr_in", &[CSTRING], None, CIDR, true, Immutable, Body::Context(read::<{ CIDR }>)),
    f(1312, "timestamp_in", &[CSTRING, OID, INT4], None, TIMESTAMP, true, Stable, Body::Context(read::<{ TIMESTAMP }>)),
    f(1313, "timestamp_out", &[TIMESTAMP], None, CSTRING, true, Stable, Body::Typed(written)),
    f(1350, "timetz_in", &[CSTRING, OID, INT4], None, TIMETZ, true, Stable, Body::Context(read::<{ TIMETZ }>)),
    f(1351, "timetz_out", &[TIMETZ], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1427, "cidr_out", &[CIDR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1450, "circle_in", &[CSTRING], None, CIRCLE, true, Immutable, Body::Context(read::<{ CIRCLE }>)),
    f(1451, "circle_out", &[CIRCLE], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1490, "line_in", &[CSTRING], None, LINE, true, Immutable, Body::Context(read::<{ LINE }>)),
    f(1491, "line_out", &[LINE], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1564, "bit_in", &[CSTRING, OID, INT4], None, BIT, true, Immutable, Body::Context(read::<{ BIT }>)),
    f(1565, "bit_out", &[BIT], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1579, "varbit_in", &[CSTRING, OID, INT4], None, VARBIT, true, Immutable, Body::Context(read::<{ VARBIT }>)),
    f(1580, "varbit_out", &[VARBIT], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1701, "numeric_in", &[CSTRING, OID, INT4], None, NUMERIC, true, Immutable, Body::Context(read::<{ NUMERIC }>)),
    f(1702, "numeric_out", &[NUMERIC], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(1798, "oidin", &[CSTRING], None, OID, true, Immutable, Body::Context(read::<{ OID }>)),
    f(1799, "oidout", &[OID], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(2212, "regprocedurein", &[CSTRING], None, REGPROCEDURE, true, Stable, Body::Context(read::<{ REGPROCEDURE }>)),
    f(2213, "regprocedureout", &[REGPROCEDURE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(2214, "regoperin", &[CSTRING], None, REGOPER, true, Stable, Body::Context(read::<{ REGOPER }>)),
    f(2215, "regoperout", &[REGOPER], None, CSTRING, true, Stable, Body::Typed(written)),
    f(2216, "regoperatorin", &[CSTRING], None, REGOPERATOR, true, Stable, Body::Context(read::<{ REGOPERATOR }>)),
    f(2217, "regoperatorout", &[REGOPERATOR], None, CSTRING, true, Stable, Body::Typed(written)),
    f(2218, "regclassin", &[CSTRING], None, REGCLASS, true, Stable, Body::Context(read::<{ REGCLASS }>)),
    f(2219, "regclassout", &[REGCLASS], None, CSTRING, true, Stable, Body::Typed(written)),
    f(2220, "regtypein", &[CSTRING], None, REGTYPE, true, Stable, Body::Context(read::<{ REGTYPE }>)),
    f(2221, "regtypeout", &[REGTYPE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(2893, "xml_in", &[CSTRING], None, XML, true, Stable, Body::Context(read::<{ XML }>)),
    f(2894, "xml_out", &[XML], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(2899, "xml_send", &[XML], None, BYTEA, true, Stable, Body::Typed(sent)),
    f(2939, "txid_snapshot_in", &[CSTRING], None, TXID_SNAPSHOT, true, Immutable, Body::Context(read::<{ TXID_SNAPSHOT }>)),
    f(2940, "txid_snapshot_out", &[TXID_SNAPSHOT], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(2429, "point_send", &[POINT], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2481, "lseg_send", &[LSEG], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2483, "path_send", &[PATH], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2485, "box_send", &[BOX], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2487, "poly_send", &[POLYGON], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2489, "line_send", &[LINE], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2491, "circle_send", &[CIRCLE], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(2952, "uuid_in", &[CSTRING], None, UUID, true, Immutable, Body::Context(read::<{ UUID }>)),
    f(2953, "uuid_out", &[UUID], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(3229, "pg_lsn_in", &[CSTRING], None, PG_LSN, true, Immutable, Body::Context(read::<{ PG_LSN }>)),
    f(3230, "pg_lsn_out", &[PG_LSN], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(3239, "pg_lsn_send", &[PG_LSN], None, BYTEA, true, Immutable, Body::Typed(sent)),
    f(3507, "enum_out", &[ANYENUM], None, CSTRING, true, Stable, Body::Typed(written)),
    f(3610, "tsvectorin", &[CSTRING], None, TSVECTOR, true, Immutable, Body::Context(read::<{ TSVECTOR }>)),
    f(3611, "tsvectorout", &[TSVECTOR], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(3612, "tsqueryin", &[CSTRING], None, TSQUERY, true, Stable, Body::Context(read::<{ TSQUERY }>)),
    f(3613, "tsqueryout", &[TSQUERY], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(3736, "regconfigin", &[CSTRING], None, REGCONFIG, true, Stable, Body::Context(read::<{ REGCONFIG }>)),
    f(3737, "regconfigout", &[REGCONFIG], None, CSTRING, true, Stable, Body::Typed(written)),
    f(3771, "regdictionaryin", &[CSTRING], None, REGDICTIONARY, true, Stable, Body::Context(read::<{ REGDICTIONARY }>)),
    f(3772, "regdictionaryout", &[REGDICTIONARY], None, CSTRING, true, Stable, Body::Typed(written)),
    f(3804, "jsonb_out", &[JSONB], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(3806, "jsonb_in", &[CSTRING], None, JSONB, true, Immutable, Body::Context(read::<{ JSONB }>)),
    f(3835, "range_out", &[ANYRANGE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(4001, "jsonpath_in", &[CSTRING], None, JSONPATH, true, Immutable, Body::Context(read::<{ JSONPATH }>)),
    f(4003, "jsonpath_out", &[JSONPATH], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(4084, "regnamespacein", &[CSTRING], None, REGNAMESPACE, true, Stable, Body::Context(read::<{ REGNAMESPACE }>)),
    f(4085, "regnamespaceout", &[REGNAMESPACE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(4092, "regroleout", &[REGROLE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(4098, "regrolein", &[CSTRING], None, REGROLE, true, Stable, Body::Context(read::<{ REGROLE }>)),
    f(4110, "macaddr8_in", &[CSTRING], None, MACADDR8, true, Immutable, Body::Context(read::<{ MACADDR8 }>)),
    f(4111, "macaddr8_out", &[MACADDR8], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(4193, "regcollationin", &[CSTRING], None, REGCOLLATION, true, Stable, Body::Context(read::<{ REGCOLLATION }>)),
    f(4194, "regcollationout", &[REGCOLLATION], None, CSTRING, true, Stable, Body::Typed(written)),
    f(4232, "multirange_out", &[ANYMULTIRANGE], None, CSTRING, true, Stable, Body::Typed(written)),
    f(5055, "pg_snapshot_in", &[CSTRING], None, PG_SNAPSHOT, true, Immutable, Body::Context(read::<{ PG_SNAPSHOT }>)),
    f(5056, "pg_snapshot_out", &[PG_SNAPSHOT], None, CSTRING, true, Immutable, Body::Typed(written)),
    f(5070, "xid8in", &[CSTRING], None, XID8, true, Immutable, Body::Context(read::<{ XID8 }>)),
    f(5081, "xid8out", &[XID8], None, CSTRING, true, Immutable, Body::Typed(written)),
];
