//! The functions that read types from text and print them, as far as SQL may call them: `uuid_in(cstring)`,
//! `uuid_out(uuid)`, `point_send(point)`.

use super::Volatility::{Immutable, Stable};
use super::arithmetic::bad_args;
use super::{Function, FunctionImpl, coerce_typmod};
use crate::function as f;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::binary_io::binary_output;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::text_io::{self, OutputStyle};
use logstead_sql_types::value::{Datum, SqlType};
use std::sync::Arc;

/// Reads a value of a type; its modifier is the third argument of those that have one.
fn read<const TYPE: u32>(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let value = text_io::input(SqlType::of(TypeId::new(TYPE)), a[0].as_str()?, Some(cx))?;
    match a {
        [_, _, Datum::Int4(typmod)] => {
            let (oid, typmod) = (TypeId::new(TYPE), *typmod);
            coerce_typmod(value, SqlType { oid, typmod }, false)
        }
        _ => Ok(value),
    }
}

/// A value as its type prints it.
fn written(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let ([ty], [value]) = (types, a) else {
        return Err(bad_args(a));
    };
    text_io::to_text(value, *ty, &OutputStyle::of(cx)).map(Datum::text)
}

/// A value in the form in which clients get it that ask for binary values.
fn sent(_: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
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
    f(31, "byteaout", &[BYTEA], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(33, "charout", &[CHAR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(34, "namein", &[CSTRING], None, NAME, true, Immutable, FunctionImpl::Io(read::<{ NAME.get() }>)),
    f(35, "nameout", &[NAME], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(38, "int2in", &[CSTRING], None, INT2, true, Immutable, FunctionImpl::Io(read::<{ INT2.get() }>)),
    f(39, "int2out", &[INT2], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(40, "int2vectorin", &[CSTRING], None, INT2VECTOR, true, Immutable, FunctionImpl::Io(read::<{ INT2VECTOR.get() }>)),
    f(41, "int2vectorout", &[INT2VECTOR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(42, "int4in", &[CSTRING], None, INT4, true, Immutable, FunctionImpl::Io(read::<{ INT4.get() }>)),
    f(43, "int4out", &[INT4], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(44, "regprocin", &[CSTRING], None, REGPROC, true, Stable, FunctionImpl::Io(read::<{ REGPROC.get() }>)),
    f(45, "regprocout", &[REGPROC], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(46, "textin", &[CSTRING], None, TEXT, true, Immutable, FunctionImpl::Io(read::<{ TEXT.get() }>)),
    f(47, "textout", &[TEXT], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(48, "tidin", &[CSTRING], None, TID, true, Immutable, FunctionImpl::Io(read::<{ TID.get() }>)),
    f(49, "tidout", &[TID], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(50, "xidin", &[CSTRING], None, XID, true, Immutable, FunctionImpl::Io(read::<{ XID.get() }>)),
    f(51, "xidout", &[XID], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(52, "cidin", &[CSTRING], None, CID, true, Immutable, FunctionImpl::Io(read::<{ CID.get() }>)),
    f(53, "cidout", &[CID], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(54, "oidvectorin", &[CSTRING], None, OIDVECTOR, true, Immutable, FunctionImpl::Io(read::<{ OIDVECTOR.get() }>)),
    f(55, "oidvectorout", &[OIDVECTOR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(117, "point_in", &[CSTRING], None, POINT, true, Immutable, FunctionImpl::Io(read::<{ POINT.get() }>)),
    f(118, "point_out", &[POINT], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(119, "lseg_in", &[CSTRING], None, LSEG, true, Immutable, FunctionImpl::Io(read::<{ LSEG.get() }>)),
    f(120, "lseg_out", &[LSEG], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(121, "path_in", &[CSTRING], None, PATH, true, Immutable, FunctionImpl::Io(read::<{ PATH.get() }>)),
    f(122, "path_out", &[PATH], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(123, "box_in", &[CSTRING], None, BOX, true, Immutable, FunctionImpl::Io(read::<{ BOX.get() }>)),
    f(124, "box_out", &[BOX], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(196, "pg_node_tree_out", &[PG_NODE_TREE], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(200, "float4in", &[CSTRING], None, FLOAT4, true, Immutable, FunctionImpl::Io(read::<{ FLOAT4.get() }>)),
    f(201, "float4out", &[FLOAT4], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(214, "float8in", &[CSTRING], None, FLOAT8, true, Immutable, FunctionImpl::Io(read::<{ FLOAT8.get() }>)),
    f(215, "float8out", &[FLOAT8], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(321, "json_in", &[CSTRING], None, JSON, true, Immutable, FunctionImpl::Io(read::<{ JSON.get() }>)),
    f(322, "json_out", &[JSON], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(347, "poly_in", &[CSTRING], None, POLYGON, true, Immutable, FunctionImpl::Io(read::<{ POLYGON.get() }>)),
    f(348, "poly_out", &[POLYGON], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(436, "macaddr_in", &[CSTRING], None, MACADDR, true, Immutable, FunctionImpl::Io(read::<{ MACADDR.get() }>)),
    f(437, "macaddr_out", &[MACADDR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(460, "int8in", &[CSTRING], None, INT8, true, Immutable, FunctionImpl::Io(read::<{ INT8.get() }>)),
    f(461, "int8out", &[INT8], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(886, "cash_in", &[CSTRING], None, MONEY, true, Stable, FunctionImpl::Io(read::<{ MONEY.get() }>)),
    f(887, "cash_out", &[MONEY], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(910, "inet_in", &[CSTRING], None, INET, true, Immutable, FunctionImpl::Io(read::<{ INET.get() }>)),
    f(911, "inet_out", &[INET], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1031, "aclitemin", &[CSTRING], None, ACLITEM, true, Stable, FunctionImpl::Io(read::<{ ACLITEM.get() }>)),
    f(1032, "aclitemout", &[ACLITEM], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1044, "bpcharin", &[CSTRING, OID, INT4], None, BPCHAR, true, Immutable, FunctionImpl::Io(read::<{ BPCHAR.get() }>)),
    f(1045, "bpcharout", &[BPCHAR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1046, "varcharin", &[CSTRING, OID, INT4], None, VARCHAR, true, Immutable, FunctionImpl::Io(read::<{ VARCHAR.get() }>)),
    f(1047, "varcharout", &[VARCHAR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1084, "date_in", &[CSTRING], None, DATE, true, Stable, FunctionImpl::Io(read::<{ DATE.get() }>)),
    f(1085, "date_out", &[DATE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(1143, "time_in", &[CSTRING, OID, INT4], None, TIME, true, Stable, FunctionImpl::Io(read::<{ TIME.get() }>)),
    f(1144, "time_out", &[TIME], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1150, "timestamptz_in", &[CSTRING, OID, INT4], None, TIMESTAMPTZ, true, Stable, FunctionImpl::Io(read::<{ TIMESTAMPTZ.get() }>)),
    f(1151, "timestamptz_out", &[TIMESTAMPTZ], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(1160, "interval_in", &[CSTRING, OID, INT4], None, INTERVAL, true, Immutable, FunctionImpl::Io(read::<{ INTERVAL.get() }>)),
    f(1161, "interval_out", &[INTERVAL], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(1242, "boolin", &[CSTRING], None, BOOL, true, Immutable, FunctionImpl::Io(read::<{ BOOL.get() }>)),
    f(1243, "boolout", &[BOOL], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1244, "byteain", &[CSTRING], None, BYTEA, true, Immutable, FunctionImpl::Io(read::<{ BYTEA.get() }>)),
    f(1245, "charin", &[CSTRING], None, CHAR, true, Immutable, FunctionImpl::Io(read::<{ CHAR.get() }>)),
    f(1267, "cidr_in", &[CSTRING], None, CIDR, true, Immutable, FunctionImpl::Io(read::<{ CIDR.get() }>)),
    f(1312, "timestamp_in", &[CSTRING, OID, INT4], None, TIMESTAMP, true, Stable, FunctionImpl::Io(read::<{ TIMESTAMP.get() }>)),
    f(1313, "timestamp_out", &[TIMESTAMP], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(1350, "timetz_in", &[CSTRING, OID, INT4], None, TIMETZ, true, Stable, FunctionImpl::Io(read::<{ TIMETZ.get() }>)),
    f(1351, "timetz_out", &[TIMETZ], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1427, "cidr_out", &[CIDR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1450, "circle_in", &[CSTRING], None, CIRCLE, true, Immutable, FunctionImpl::Io(read::<{ CIRCLE.get() }>)),
    f(1451, "circle_out", &[CIRCLE], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1490, "line_in", &[CSTRING], None, LINE, true, Immutable, FunctionImpl::Io(read::<{ LINE.get() }>)),
    f(1491, "line_out", &[LINE], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1564, "bit_in", &[CSTRING, OID, INT4], None, BIT, true, Immutable, FunctionImpl::Io(read::<{ BIT.get() }>)),
    f(1565, "bit_out", &[BIT], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1579, "varbit_in", &[CSTRING, OID, INT4], None, VARBIT, true, Immutable, FunctionImpl::Io(read::<{ VARBIT.get() }>)),
    f(1580, "varbit_out", &[VARBIT], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1701, "numeric_in", &[CSTRING, OID, INT4], None, NUMERIC, true, Immutable, FunctionImpl::Io(read::<{ NUMERIC.get() }>)),
    f(1702, "numeric_out", &[NUMERIC], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(1798, "oidin", &[CSTRING], None, OID, true, Immutable, FunctionImpl::Io(read::<{ OID.get() }>)),
    f(1799, "oidout", &[OID], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(2212, "regprocedurein", &[CSTRING], None, REGPROCEDURE, true, Stable, FunctionImpl::Io(read::<{ REGPROCEDURE.get() }>)),
    f(2213, "regprocedureout", &[REGPROCEDURE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(2214, "regoperin", &[CSTRING], None, REGOPER, true, Stable, FunctionImpl::Io(read::<{ REGOPER.get() }>)),
    f(2215, "regoperout", &[REGOPER], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(2216, "regoperatorin", &[CSTRING], None, REGOPERATOR, true, Stable, FunctionImpl::Io(read::<{ REGOPERATOR.get() }>)),
    f(2217, "regoperatorout", &[REGOPERATOR], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(2218, "regclassin", &[CSTRING], None, REGCLASS, true, Stable, FunctionImpl::Io(read::<{ REGCLASS.get() }>)),
    f(2219, "regclassout", &[REGCLASS], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(2220, "regtypein", &[CSTRING], None, REGTYPE, true, Stable, FunctionImpl::Io(read::<{ REGTYPE.get() }>)),
    f(2221, "regtypeout", &[REGTYPE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(2893, "xml_in", &[CSTRING], None, XML, true, Stable, FunctionImpl::Io(read::<{ XML.get() }>)),
    f(2894, "xml_out", &[XML], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(2899, "xml_send", &[XML], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2939, "txid_snapshot_in", &[CSTRING], None, TXID_SNAPSHOT, true, Immutable, FunctionImpl::Io(read::<{ TXID_SNAPSHOT.get() }>)),
    f(2940, "txid_snapshot_out", &[TXID_SNAPSHOT], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(2429, "point_send", &[POINT], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2481, "lseg_send", &[LSEG], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2483, "path_send", &[PATH], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2485, "box_send", &[BOX], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2487, "poly_send", &[POLYGON], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2489, "line_send", &[LINE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2491, "circle_send", &[CIRCLE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2952, "uuid_in", &[CSTRING], None, UUID, true, Immutable, FunctionImpl::Io(read::<{ UUID.get() }>)),
    f(2953, "uuid_out", &[UUID], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(3229, "pg_lsn_in", &[CSTRING], None, PG_LSN, true, Immutable, FunctionImpl::Io(read::<{ PG_LSN.get() }>)),
    f(3230, "pg_lsn_out", &[PG_LSN], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(3239, "pg_lsn_send", &[PG_LSN], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3507, "enum_out", &[ANYENUM], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(3610, "tsvectorin", &[CSTRING], None, TSVECTOR, true, Immutable, FunctionImpl::Io(read::<{ TSVECTOR.get() }>)),
    f(3611, "tsvectorout", &[TSVECTOR], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(3612, "tsqueryin", &[CSTRING], None, TSQUERY, true, Stable, FunctionImpl::Io(read::<{ TSQUERY.get() }>)),
    f(3613, "tsqueryout", &[TSQUERY], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(3736, "regconfigin", &[CSTRING], None, REGCONFIG, true, Stable, FunctionImpl::Io(read::<{ REGCONFIG.get() }>)),
    f(3737, "regconfigout", &[REGCONFIG], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(3771, "regdictionaryin", &[CSTRING], None, REGDICTIONARY, true, Stable, FunctionImpl::Io(read::<{ REGDICTIONARY.get() }>)),
    f(3772, "regdictionaryout", &[REGDICTIONARY], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(3804, "jsonb_out", &[JSONB], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(3806, "jsonb_in", &[CSTRING], None, JSONB, true, Immutable, FunctionImpl::Io(read::<{ JSONB.get() }>)),
    f(3835, "range_out", &[ANYRANGE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(4001, "jsonpath_in", &[CSTRING], None, JSONPATH, true, Immutable, FunctionImpl::Io(read::<{ JSONPATH.get() }>)),
    f(4003, "jsonpath_out", &[JSONPATH], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(4084, "regnamespacein", &[CSTRING], None, REGNAMESPACE, true, Stable, FunctionImpl::Io(read::<{ REGNAMESPACE.get() }>)),
    f(4085, "regnamespaceout", &[REGNAMESPACE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(4092, "regroleout", &[REGROLE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(4098, "regrolein", &[CSTRING], None, REGROLE, true, Stable, FunctionImpl::Io(read::<{ REGROLE.get() }>)),
    f(4110, "macaddr8_in", &[CSTRING], None, MACADDR8, true, Immutable, FunctionImpl::Io(read::<{ MACADDR8.get() }>)),
    f(4111, "macaddr8_out", &[MACADDR8], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(4193, "regcollationin", &[CSTRING], None, REGCOLLATION, true, Stable, FunctionImpl::Io(read::<{ REGCOLLATION.get() }>)),
    f(4194, "regcollationout", &[REGCOLLATION], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(4232, "multirange_out", &[ANYMULTIRANGE], None, CSTRING, true, Stable, FunctionImpl::Typed(written)),
    f(5055, "pg_snapshot_in", &[CSTRING], None, PG_SNAPSHOT, true, Immutable, FunctionImpl::Io(read::<{ PG_SNAPSHOT.get() }>)),
    f(5056, "pg_snapshot_out", &[PG_SNAPSHOT], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(5070, "xid8in", &[CSTRING], None, XID8, true, Immutable, FunctionImpl::Io(read::<{ XID8.get() }>)),
    f(5081, "xid8out", &[XID8], None, CSTRING, true, Immutable, FunctionImpl::Typed(written)),
    f(324, "json_send", &[JSON], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2401, "array_send", &[ANYARRAY], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2403, "record_send", &[RECORD], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2405, "int2send", &[INT2], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2407, "int4send", &[INT4], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2409, "int8send", &[INT8], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2411, "int2vectorsend", &[INT2VECTOR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2413, "byteasend", &[BYTEA], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2415, "textsend", &[TEXT], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2419, "oidsend", &[OID], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2421, "oidvectorsend", &[OIDVECTOR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2423, "namesend", &[NAME], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2425, "float4send", &[FLOAT4], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2427, "float8send", &[FLOAT8], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2431, "bpcharsend", &[BPCHAR], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2433, "varcharsend", &[VARCHAR], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2435, "charsend", &[CHAR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2437, "boolsend", &[BOOL], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2439, "tidsend", &[TID], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2441, "xidsend", &[XID], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2443, "cidsend", &[CID], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2445, "regprocsend", &[REGPROC], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2447, "regproceduresend", &[REGPROCEDURE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2449, "regopersend", &[REGOPER], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2451, "regoperatorsend", &[REGOPERATOR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2453, "regclasssend", &[REGCLASS], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2455, "regtypesend", &[REGTYPE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2457, "bit_send", &[BIT], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2459, "varbit_send", &[VARBIT], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2461, "numeric_send", &[NUMERIC], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2469, "date_send", &[DATE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2471, "time_send", &[TIME], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2473, "timetz_send", &[TIMETZ], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2475, "timestamp_send", &[TIMESTAMP], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2477, "timestamptz_send", &[TIMESTAMPTZ], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2479, "interval_send", &[INTERVAL], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2493, "cash_send", &[MONEY], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2495, "macaddr_send", &[MACADDR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2497, "inet_send", &[INET], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2499, "cidr_send", &[CIDR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2501, "cstring_send", &[CSTRING], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(2942, "txid_snapshot_send", &[TXID_SNAPSHOT], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(2962, "uuid_send", &[UUID], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3447, "macaddr8_send", &[MACADDR8], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3638, "tsvectorsend", &[TSVECTOR], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3640, "tsquerysend", &[TSQUERY], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3739, "regconfigsend", &[REGCONFIG], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3774, "regdictionarysend", &[REGDICTIONARY], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3803, "jsonb_send", &[JSONB], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(3837, "range_send", &[ANYRANGE], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(4004, "jsonpath_send", &[JSONPATH], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(4088, "regnamespacesend", &[REGNAMESPACE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(4095, "regrolesend", &[REGROLE], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(4197, "regcollationsend", &[REGCOLLATION], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(4234, "multirange_send", &[ANYMULTIRANGE], None, BYTEA, true, Stable, FunctionImpl::Typed(sent)),
    f(5058, "pg_snapshot_send", &[PG_SNAPSHOT], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
    f(5083, "xid8send", &[XID8], None, BYTEA, true, Immutable, FunctionImpl::Typed(sent)),
];
