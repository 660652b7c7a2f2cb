//! Type identity: OIDs as in PostgreSQL's `pg_type`, and type modifiers.

use crate::TypeId;

/// An object identifier, PostgreSQL's numbering for built-in objects.
pub type Oid = u32;

/// First OID of user objects; numbers below belong to the system catalog.
pub const FIRST_USER_OID: Oid = 16_384;

/// First OID of what extensions bring: each has its own in every database that has the extension. Users' types have the
/// same lowest bits.
pub const FIRST_EXTENSION_OID: Oid = 16_000;

/// A type with its modifier (length of varchar, precision and scale of numeric, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// `pg_type.oid`.
    pub oid: TypeId,
    /// `atttypmod`; -1 for none.
    pub typmod: i32,
}

impl SqlType {
    /// The type without a modifier.
    pub const fn of(oid: TypeId) -> SqlType {
        SqlType { oid, typmod: -1 }
    }

    /// The type without its modifier, which records and arrays of records keep: theirs says what fields they have.
    pub const fn plain(self) -> SqlType {
        match self.oid {
            oid::RECORD | oid::RECORD_ARRAY => self,
            oid => SqlType::of(oid),
        }
    }
}

/// OIDs of the built-in types.
pub mod oid {
    #![allow(missing_docs, reason = "each constant is the pg_type name it spells")]
    use super::TypeId;
    /// `InvalidOid`: the type of a value where nobody has said which, as of a key or the elements of an array.
    pub const INVALID: TypeId = TypeId::new(0);
    pub const BOOL: TypeId = TypeId::new(16);
    pub const BYTEA: TypeId = TypeId::new(17);
    pub const CHAR: TypeId = TypeId::new(18); // "char"
    pub const NAME: TypeId = TypeId::new(19);
    pub const INT8: TypeId = TypeId::new(20);
    pub const INT2: TypeId = TypeId::new(21);
    pub const INT2VECTOR: TypeId = TypeId::new(22);
    pub const INT4: TypeId = TypeId::new(23);
    pub const REGPROC: TypeId = TypeId::new(24);
    pub const TEXT: TypeId = TypeId::new(25);
    pub const OID: TypeId = TypeId::new(26);
    pub const TID: TypeId = TypeId::new(27);
    pub const XID: TypeId = TypeId::new(28);
    pub const CID: TypeId = TypeId::new(29);
    pub const OIDVECTOR: TypeId = TypeId::new(30);
    pub const JSON: TypeId = TypeId::new(114);
    pub const XML: TypeId = TypeId::new(142);
    pub const XML_ARRAY: TypeId = TypeId::new(143);
    pub const PG_NODE_TREE: TypeId = TypeId::new(194);
    pub const JSON_ARRAY: TypeId = TypeId::new(199);
    pub const POINT: TypeId = TypeId::new(600);
    pub const LSEG: TypeId = TypeId::new(601);
    pub const PATH: TypeId = TypeId::new(602);
    pub const BOX: TypeId = TypeId::new(603);
    pub const POLYGON: TypeId = TypeId::new(604);
    pub const LINE: TypeId = TypeId::new(628);
    pub const LINE_ARRAY: TypeId = TypeId::new(629);
    pub const CIRCLE: TypeId = TypeId::new(718);
    pub const CIRCLE_ARRAY: TypeId = TypeId::new(719);
    pub const POINT_ARRAY: TypeId = TypeId::new(1017);
    pub const LSEG_ARRAY: TypeId = TypeId::new(1018);
    pub const PATH_ARRAY: TypeId = TypeId::new(1019);
    pub const BOX_ARRAY: TypeId = TypeId::new(1020);
    pub const POLYGON_ARRAY: TypeId = TypeId::new(1027);
    pub const PG_LSN: TypeId = TypeId::new(3220);
    pub const PG_LSN_ARRAY: TypeId = TypeId::new(3221);
    pub const CIDR: TypeId = TypeId::new(650);
    pub const CIDR_ARRAY: TypeId = TypeId::new(651);
    pub const FLOAT4: TypeId = TypeId::new(700);
    pub const FLOAT8: TypeId = TypeId::new(701);
    pub const UNKNOWN: TypeId = TypeId::new(705);
    pub const MACADDR8: TypeId = TypeId::new(774);
    pub const MACADDR8_ARRAY: TypeId = TypeId::new(775);
    pub const MONEY: TypeId = TypeId::new(790);
    pub const MONEY_ARRAY: TypeId = TypeId::new(791);
    pub const MACADDR: TypeId = TypeId::new(829);
    pub const INET: TypeId = TypeId::new(869);
    pub const BPCHAR: TypeId = TypeId::new(1042);
    pub const VARCHAR: TypeId = TypeId::new(1043);
    pub const DATE: TypeId = TypeId::new(1082);
    pub const TIME: TypeId = TypeId::new(1083);
    pub const TIMESTAMP: TypeId = TypeId::new(1114);
    pub const TIMESTAMPTZ: TypeId = TypeId::new(1184);
    pub const INTERVAL: TypeId = TypeId::new(1186);
    pub const TIMETZ: TypeId = TypeId::new(1266);
    pub const TIMETZ_ARRAY: TypeId = TypeId::new(1270);
    pub const BIT: TypeId = TypeId::new(1560);
    pub const BIT_ARRAY: TypeId = TypeId::new(1561);
    pub const VARBIT: TypeId = TypeId::new(1562);
    pub const VARBIT_ARRAY: TypeId = TypeId::new(1563);
    pub const NUMERIC: TypeId = TypeId::new(1700);
    pub const REFCURSOR: TypeId = TypeId::new(1790);
    pub const REGCLASS: TypeId = TypeId::new(2205);
    pub const REGTYPE: TypeId = TypeId::new(2206);
    pub const VOID: TypeId = TypeId::new(2278);
    pub const TRIGGER: TypeId = TypeId::new(2279);
    pub const ANYENUM: TypeId = TypeId::new(3500);
    pub const UUID: TypeId = TypeId::new(2950);
    pub const TXID_SNAPSHOT: TypeId = TypeId::new(2970);
    pub const PG_SNAPSHOT: TypeId = TypeId::new(5038);
    pub const XID8: TypeId = TypeId::new(5069);
    pub const REGNAMESPACE: TypeId = TypeId::new(4089);
    pub const REGPROCEDURE: TypeId = TypeId::new(2202);
    pub const REGOPER: TypeId = TypeId::new(2203);
    pub const REGOPERATOR: TypeId = TypeId::new(2204);
    pub const REGCOLLATION: TypeId = TypeId::new(4191);
    pub const REGROLE: TypeId = TypeId::new(4096);
    pub const RECORD: TypeId = TypeId::new(2249);
    pub const RECORD_ARRAY: TypeId = TypeId::new(2287);
    pub const JSONB: TypeId = TypeId::new(3802);
    pub const JSONPATH: TypeId = TypeId::new(4072);
    pub const TSVECTOR: TypeId = TypeId::new(3614);
    pub const TSQUERY: TypeId = TypeId::new(3615);
    pub const REGCONFIG: TypeId = TypeId::new(3734);
    pub const REGDICTIONARY: TypeId = TypeId::new(3769);
    pub const JSONPATH_ARRAY: TypeId = TypeId::new(4073);
    pub const JSONB_ARRAY: TypeId = TypeId::new(3807);
    pub const ANYRANGE: TypeId = TypeId::new(3831);
    pub const INT4RANGE: TypeId = TypeId::new(3904);
    pub const NUMRANGE: TypeId = TypeId::new(3906);
    pub const TSRANGE: TypeId = TypeId::new(3908);
    pub const TSTZRANGE: TypeId = TypeId::new(3910);
    pub const DATERANGE: TypeId = TypeId::new(3912);
    pub const INT8RANGE: TypeId = TypeId::new(3926);
    pub const ANYMULTIRANGE: TypeId = TypeId::new(4537);
    pub const INT4MULTIRANGE: TypeId = TypeId::new(4451);
    pub const NUMMULTIRANGE: TypeId = TypeId::new(4532);
    pub const TSMULTIRANGE: TypeId = TypeId::new(4533);
    pub const TSTZMULTIRANGE: TypeId = TypeId::new(4534);
    pub const DATEMULTIRANGE: TypeId = TypeId::new(4535);
    pub const INT8MULTIRANGE: TypeId = TypeId::new(4536);
    /// Of the extension of this name: it is there where that is.
    pub const CITEXT: TypeId = TypeId::new(16_006);
    pub const CITEXT_ARRAY: TypeId = TypeId::new(16_007);
    /// Likewise.
    pub const HSTORE: TypeId = TypeId::new(16_014);
    pub const HSTORE_ARRAY: TypeId = TypeId::new(16_015);
    pub const BOOL_ARRAY: TypeId = TypeId::new(1000);
    pub const BYTEA_ARRAY: TypeId = TypeId::new(1001);
    pub const CHAR_ARRAY: TypeId = TypeId::new(1002);
    pub const NAME_ARRAY: TypeId = TypeId::new(1003);
    pub const INT2_ARRAY: TypeId = TypeId::new(1005);
    pub const INT4_ARRAY: TypeId = TypeId::new(1007);
    pub const TEXT_ARRAY: TypeId = TypeId::new(1009);
    pub const BPCHAR_ARRAY: TypeId = TypeId::new(1014);
    pub const VARCHAR_ARRAY: TypeId = TypeId::new(1015);
    pub const INT8_ARRAY: TypeId = TypeId::new(1016);
    pub const FLOAT4_ARRAY: TypeId = TypeId::new(1021);
    pub const FLOAT8_ARRAY: TypeId = TypeId::new(1022);
    pub const OID_ARRAY: TypeId = TypeId::new(1028);
    pub const ACLITEM_ARRAY: TypeId = TypeId::new(1034);
    pub const MACADDR_ARRAY: TypeId = TypeId::new(1040);
    pub const INET_ARRAY: TypeId = TypeId::new(1041);
    pub const TIMESTAMP_ARRAY: TypeId = TypeId::new(1115);
    pub const DATE_ARRAY: TypeId = TypeId::new(1182);
    pub const TIME_ARRAY: TypeId = TypeId::new(1183);
    pub const TIMESTAMPTZ_ARRAY: TypeId = TypeId::new(1185);
    pub const NUMERIC_ARRAY: TypeId = TypeId::new(1231);
    pub const UUID_ARRAY: TypeId = TypeId::new(2951);
    pub const INT2VECTOR_ARRAY: TypeId = TypeId::new(1006);
    pub const REGPROC_ARRAY: TypeId = TypeId::new(1008);
    pub const XID_ARRAY: TypeId = TypeId::new(1011);
    pub const OIDVECTOR_ARRAY: TypeId = TypeId::new(1013);
    pub const ACLITEM: TypeId = TypeId::new(1033);
    pub const INTERVAL_ARRAY: TypeId = TypeId::new(1187);
    pub const REGCLASS_ARRAY: TypeId = TypeId::new(2210);
    pub const REGTYPE_ARRAY: TypeId = TypeId::new(2211);
    pub const CSTRING: TypeId = TypeId::new(2275);
    pub const ANYNONARRAY: TypeId = TypeId::new(2776);
    pub const ANYCOMPATIBLE: TypeId = TypeId::new(5077);
    pub const ANYCOMPATIBLEARRAY: TypeId = TypeId::new(5078);
    pub const ANYCOMPATIBLENONARRAY: TypeId = TypeId::new(5079);
    pub const ANYARRAY: TypeId = TypeId::new(2277);
    pub const ANYELEMENT: TypeId = TypeId::new(2283);
    pub const ANY: TypeId = TypeId::new(2276);
}
