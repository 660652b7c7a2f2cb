//! Type identity: OIDs as in PostgreSQL's `pg_type`, and type modifiers.

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
    pub oid: Oid,
    /// `atttypmod`; -1 for none.
    pub typmod: i32,
}

impl SqlType {
    /// The type without a modifier.
    pub const fn of(oid: Oid) -> SqlType {
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
    use super::Oid;
    pub const BOOL: Oid = 16;
    pub const BYTEA: Oid = 17;
    pub const CHAR: Oid = 18; // "char"
    pub const NAME: Oid = 19;
    pub const INT8: Oid = 20;
    pub const INT2: Oid = 21;
    pub const INT2VECTOR: Oid = 22;
    pub const INT4: Oid = 23;
    pub const REGPROC: Oid = 24;
    pub const TEXT: Oid = 25;
    pub const OID: Oid = 26;
    pub const TID: Oid = 27;
    pub const XID: Oid = 28;
    pub const CID: Oid = 29;
    pub const OIDVECTOR: Oid = 30;
    pub const JSON: Oid = 114;
    pub const XML: Oid = 142;
    pub const XML_ARRAY: Oid = 143;
    pub const PG_NODE_TREE: Oid = 194;
    pub const JSON_ARRAY: Oid = 199;
    pub const POINT: Oid = 600;
    pub const LSEG: Oid = 601;
    pub const PATH: Oid = 602;
    pub const BOX: Oid = 603;
    pub const POLYGON: Oid = 604;
    pub const LINE: Oid = 628;
    pub const LINE_ARRAY: Oid = 629;
    pub const CIRCLE: Oid = 718;
    pub const CIRCLE_ARRAY: Oid = 719;
    pub const POINT_ARRAY: Oid = 1017;
    pub const LSEG_ARRAY: Oid = 1018;
    pub const PATH_ARRAY: Oid = 1019;
    pub const BOX_ARRAY: Oid = 1020;
    pub const POLYGON_ARRAY: Oid = 1027;
    pub const PG_LSN: Oid = 3220;
    pub const PG_LSN_ARRAY: Oid = 3221;
    pub const CIDR: Oid = 650;
    pub const CIDR_ARRAY: Oid = 651;
    pub const FLOAT4: Oid = 700;
    pub const FLOAT8: Oid = 701;
    pub const UNKNOWN: Oid = 705;
    pub const MACADDR8: Oid = 774;
    pub const MACADDR8_ARRAY: Oid = 775;
    pub const MONEY: Oid = 790;
    pub const MONEY_ARRAY: Oid = 791;
    pub const MACADDR: Oid = 829;
    pub const INET: Oid = 869;
    pub const BPCHAR: Oid = 1042;
    pub const VARCHAR: Oid = 1043;
    pub const DATE: Oid = 1082;
    pub const TIME: Oid = 1083;
    pub const TIMESTAMP: Oid = 1114;
    pub const TIMESTAMPTZ: Oid = 1184;
    pub const INTERVAL: Oid = 1186;
    pub const TIMETZ: Oid = 1266;
    pub const TIMETZ_ARRAY: Oid = 1270;
    pub const BIT: Oid = 1560;
    pub const BIT_ARRAY: Oid = 1561;
    pub const VARBIT: Oid = 1562;
    pub const VARBIT_ARRAY: Oid = 1563;
    pub const NUMERIC: Oid = 1700;
    pub const REFCURSOR: Oid = 1790;
    pub const REGCLASS: Oid = 2205;
    pub const REGTYPE: Oid = 2206;
    pub const VOID: Oid = 2278;
    pub const TRIGGER: Oid = 2279;
    pub const ANYENUM: Oid = 3500;
    pub const UUID: Oid = 2950;
    pub const TXID_SNAPSHOT: Oid = 2970;
    pub const PG_SNAPSHOT: Oid = 5038;
    pub const XID8: Oid = 5069;
    pub const REGNAMESPACE: Oid = 4089;
    pub const REGPROCEDURE: Oid = 2202;
    pub const REGOPER: Oid = 2203;
    pub const REGOPERATOR: Oid = 2204;
    pub const REGCOLLATION: Oid = 4191;
    pub const REGROLE: Oid = 4096;
    pub const RECORD: Oid = 2249;
    pub const RECORD_ARRAY: Oid = 2287;
    pub const JSONB: Oid = 3802;
    pub const JSONPATH: Oid = 4072;
    pub const TSVECTOR: Oid = 3614;
    pub const TSQUERY: Oid = 3615;
    pub const REGCONFIG: Oid = 3734;
    pub const REGDICTIONARY: Oid = 3769;
    pub const JSONPATH_ARRAY: Oid = 4073;
    pub const JSONB_ARRAY: Oid = 3807;
    pub const ANYRANGE: Oid = 3831;
    pub const INT4RANGE: Oid = 3904;
    pub const NUMRANGE: Oid = 3906;
    pub const TSRANGE: Oid = 3908;
    pub const TSTZRANGE: Oid = 3910;
    pub const DATERANGE: Oid = 3912;
    pub const INT8RANGE: Oid = 3926;
    pub const ANYMULTIRANGE: Oid = 4537;
    pub const INT4MULTIRANGE: Oid = 4451;
    pub const NUMMULTIRANGE: Oid = 4532;
    pub const TSMULTIRANGE: Oid = 4533;
    pub const TSTZMULTIRANGE: Oid = 4534;
    pub const DATEMULTIRANGE: Oid = 4535;
    pub const INT8MULTIRANGE: Oid = 4536;
    /// Of the extension of this name: it is there where that is.
    pub const CITEXT: Oid = 16_006;
    pub const CITEXT_ARRAY: Oid = 16_007;
    /// Likewise.
    pub const HSTORE: Oid = 16_014;
    pub const HSTORE_ARRAY: Oid = 16_015;
    pub const BOOL_ARRAY: Oid = 1000;
    pub const BYTEA_ARRAY: Oid = 1001;
    pub const CHAR_ARRAY: Oid = 1002;
    pub const NAME_ARRAY: Oid = 1003;
    pub const INT2_ARRAY: Oid = 1005;
    pub const INT4_ARRAY: Oid = 1007;
    pub const TEXT_ARRAY: Oid = 1009;
    pub const BPCHAR_ARRAY: Oid = 1014;
    pub const VARCHAR_ARRAY: Oid = 1015;
    pub const INT8_ARRAY: Oid = 1016;
    pub const FLOAT4_ARRAY: Oid = 1021;
    pub const FLOAT8_ARRAY: Oid = 1022;
    pub const OID_ARRAY: Oid = 1028;
    pub const ACLITEM_ARRAY: Oid = 1034;
    pub const MACADDR_ARRAY: Oid = 1040;
    pub const INET_ARRAY: Oid = 1041;
    pub const TIMESTAMP_ARRAY: Oid = 1115;
    pub const DATE_ARRAY: Oid = 1182;
    pub const TIME_ARRAY: Oid = 1183;
    pub const TIMESTAMPTZ_ARRAY: Oid = 1185;
    pub const NUMERIC_ARRAY: Oid = 1231;
    pub const UUID_ARRAY: Oid = 2951;
    pub const INT2VECTOR_ARRAY: Oid = 1006;
    pub const REGPROC_ARRAY: Oid = 1008;
    pub const XID_ARRAY: Oid = 1011;
    pub const OIDVECTOR_ARRAY: Oid = 1013;
    pub const ACLITEM: Oid = 1033;
    pub const INTERVAL_ARRAY: Oid = 1187;
    pub const REGCLASS_ARRAY: Oid = 2210;
    pub const REGTYPE_ARRAY: Oid = 2211;
    pub const CSTRING: Oid = 2275;
    pub const ANYNONARRAY: Oid = 2776;
    pub const ANYCOMPATIBLE: Oid = 5077;
    pub const ANYCOMPATIBLEARRAY: Oid = 5078;
    pub const ANYCOMPATIBLENONARRAY: Oid = 5079;
    pub const ANYARRAY: Oid = 2277;
    pub const ANYELEMENT: Oid = 2283;
    pub const ANY: Oid = 2276;
}
