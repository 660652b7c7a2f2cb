//! Rows about how values are compared and indexed: access methods, operator classes and families, collations.

use super::OWNER;
use super::cells::{Ch, Id, Nil, row};
use super::extensions::seen;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::PG_CATALOG_NAMESPACE;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Oid, info, multirange, oid, range, user};

type Rows = Result<Vec<Vec<Datum>>>;

/// OID of the B-tree access method.
pub(crate) const BTREE: Oid = 403;
const HASH: Oid = 405;

/// A row of `pg_opclass`, for B-trees.
struct OperatorClass {
    oid: Oid,
    name: &'static str,
    /// What it is for.
    ty: TypeId,
    family: Oid,
    /// It is the type's unless an index names another.
    default: bool,
}

/// The B-tree operator classes of the types that exist here.
#[rustfmt::skip]
const BTREE_CLASSES: &[OperatorClass] = &[
    OperatorClass { oid: 1978, name: "int4_ops", ty: oid::INT4, family: 1976, default: true },
    OperatorClass { oid: 1979, name: "int2_ops", ty: oid::INT2, family: 1976, default: true },
    OperatorClass { oid: 1981, name: "oid_ops", ty: oid::OID, family: 1989, default: true },
    OperatorClass { oid: 3122, name: "date_ops", ty: oid::DATE, family: 434, default: true },
    OperatorClass { oid: 3123, name: "float8_ops", ty: oid::FLOAT8, family: 1970, default: true },
    OperatorClass { oid: 3124, name: "int8_ops", ty: oid::INT8, family: 1976, default: true },
    OperatorClass { oid: 3125, name: "numeric_ops", ty: oid::NUMERIC, family: 1988, default: true },
    OperatorClass { oid: 3126, name: "text_ops", ty: oid::TEXT, family: 1994, default: true },
    OperatorClass { oid: 3127, name: "timestamptz_ops", ty: oid::TIMESTAMPTZ, family: 434, default: true },
    OperatorClass { oid: 3128, name: "timestamp_ops", ty: oid::TIMESTAMP, family: 434, default: true },
    OperatorClass { oid: 10_069, name: "enum_ops", ty: oid::ANYENUM, family: 3522, default: true },
    OperatorClass { oid: 4217, name: "text_pattern_ops", ty: oid::TEXT, family: 2095, default: false },
    OperatorClass { oid: 4218, name: "varchar_pattern_ops", ty: oid::TEXT, family: 2095, default: false },
    OperatorClass { oid: 4219, name: "bpchar_pattern_ops", ty: oid::BPCHAR, family: 2097, default: false },
    OperatorClass { oid: 10_000, name: "array_ops", ty: oid::ANYARRAY, family: 397, default: true },
    OperatorClass { oid: 10_034, name: "record_ops", ty: oid::RECORD, family: 2994, default: true },
    OperatorClass { oid: 10_076, name: "range_ops", ty: oid::ANYRANGE, family: 3901, default: true },
    OperatorClass { oid: 10_080, name: "multirange_ops", ty: oid::ANYMULTIRANGE, family: 4199, default: true },
    OperatorClass { oid: 10_002, name: "bit_ops", ty: oid::BIT, family: 423, default: true },
    OperatorClass { oid: 10_003, name: "bool_ops", ty: oid::BOOL, family: 424, default: true },
    OperatorClass { oid: 10_009, name: "cidr_ops", ty: oid::INET, family: 1974, default: false },
    OperatorClass { oid: 10_015, name: "inet_ops", ty: oid::INET, family: 1974, default: true },
    OperatorClass { oid: 10_024, name: "macaddr_ops", ty: oid::MACADDR, family: 1984, default: true },
    OperatorClass { oid: 10_026, name: "macaddr8_ops", ty: oid::MACADDR8, family: 3371, default: true },
    OperatorClass { oid: 10_004, name: "bpchar_ops", ty: oid::BPCHAR, family: 426, default: true },
    OperatorClass { oid: 10_006, name: "bytea_ops", ty: oid::BYTEA, family: 428, default: true },
    OperatorClass { oid: 10_007, name: "char_ops", ty: oid::CHAR, family: 429, default: true },
    OperatorClass { oid: 10_012, name: "float4_ops", ty: oid::FLOAT4, family: 1970, default: true },
    OperatorClass { oid: 10_022, name: "interval_ops", ty: oid::INTERVAL, family: 1982, default: true },
    OperatorClass { oid: 10_028, name: "name_ops", ty: oid::NAME, family: 1994, default: true },
    OperatorClass { oid: 10_032, name: "oidvector_ops", ty: oid::OIDVECTOR, family: 1991, default: true },
    OperatorClass { oid: 10_038, name: "time_ops", ty: oid::TIME, family: 1996, default: true },
    OperatorClass { oid: 10_041, name: "timetz_ops", ty: oid::TIMETZ, family: 2000, default: true },
    OperatorClass { oid: 10_043, name: "varbit_ops", ty: oid::VARBIT, family: 2002, default: true },
    OperatorClass { oid: 10_044, name: "varchar_ops", ty: oid::TEXT, family: 1994, default: false },
    OperatorClass { oid: 10_047, name: "money_ops", ty: oid::MONEY, family: 2099, default: true },
    OperatorClass { oid: 10_050, name: "tid_ops", ty: oid::TID, family: 2789, default: true },
    OperatorClass { oid: 10_053, name: "xid8_ops", ty: oid::XID8, family: 5067, default: true },
    OperatorClass { oid: 10_067, name: "pg_lsn_ops", ty: oid::PG_LSN, family: 3253, default: true },
    OperatorClass { oid: 10_071, name: "tsvector_ops", ty: oid::TSVECTOR, family: 3626, default: true },
    OperatorClass { oid: 10_074, name: "tsquery_ops", ty: oid::TSQUERY, family: 3683, default: true },
    OperatorClass { oid: 10_065, name: "uuid_ops", ty: oid::UUID, family: 2968, default: true },
    OperatorClass { oid: 10_088, name: "jsonb_ops", ty: oid::JSONB, family: 4033, default: true },
    OperatorClass { oid: 16_076, name: "citext_ops", ty: oid::CITEXT, family: 16_077, default: true },
    OperatorClass { oid: 16_078, name: "citext_pattern_ops", ty: oid::CITEXT, family: 16_079, default: false },
    OperatorClass { oid: 16_158, name: "btree_hstore_ops", ty: oid::HSTORE, family: 16_159, default: true },
];

/// A row of `pg_opfamily`, for B-trees.
struct OperatorFamily {
    oid: Oid,
    name: &'static str,
}

/// The B-tree operator families.
#[rustfmt::skip]
const BTREE_FAMILIES: &[OperatorFamily] = &[
    OperatorFamily { oid: 397, name: "array_ops" },
    OperatorFamily { oid: 423, name: "bit_ops" },
    OperatorFamily { oid: 424, name: "bool_ops" },
    OperatorFamily { oid: 426, name: "bpchar_ops" },
    OperatorFamily { oid: 428, name: "bytea_ops" },
    OperatorFamily { oid: 429, name: "char_ops" },
    OperatorFamily { oid: 434, name: "datetime_ops" },
    OperatorFamily { oid: 1970, name: "float_ops" },
    OperatorFamily { oid: 1974, name: "network_ops" },
    OperatorFamily { oid: 1976, name: "integer_ops" },
    OperatorFamily { oid: 1982, name: "interval_ops" },
    OperatorFamily { oid: 1984, name: "macaddr_ops" },
    OperatorFamily { oid: 1988, name: "numeric_ops" },
    OperatorFamily { oid: 1989, name: "oid_ops" },
    OperatorFamily { oid: 1991, name: "oidvector_ops" },
    OperatorFamily { oid: 1994, name: "text_ops" },
    OperatorFamily { oid: 1996, name: "time_ops" },
    OperatorFamily { oid: 2000, name: "timetz_ops" },
    OperatorFamily { oid: 2002, name: "varbit_ops" },
    OperatorFamily { oid: 2095, name: "text_pattern_ops" },
    OperatorFamily { oid: 2097, name: "bpchar_pattern_ops" },
    OperatorFamily { oid: 2099, name: "money_ops" },
    OperatorFamily { oid: 2789, name: "tid_ops" },
    OperatorFamily { oid: 2968, name: "uuid_ops" },
    OperatorFamily { oid: 2994, name: "record_ops" },
    OperatorFamily { oid: 3253, name: "pg_lsn_ops" },
    OperatorFamily { oid: 3371, name: "macaddr8_ops" },
    OperatorFamily { oid: 3522, name: "enum_ops" },
    OperatorFamily { oid: 3626, name: "tsvector_ops" },
    OperatorFamily { oid: 3683, name: "tsquery_ops" },
    OperatorFamily { oid: 3901, name: "range_ops" },
    OperatorFamily { oid: 4033, name: "jsonb_ops" },
    OperatorFamily { oid: 4199, name: "multirange_ops" },
    OperatorFamily { oid: 5067, name: "xid8_ops" },
    OperatorFamily { oid: 16_077, name: "citext_ops" },
    OperatorFamily { oid: 16_079, name: "citext_pattern_ops" },
    OperatorFamily { oid: 16_159, name: "btree_hstore_ops" },
];

/// Default B-tree operator class of a column type; 0 if it has no order.
pub(crate) fn operator_class(ty: TypeId) -> Oid {
    let key = match ty {
        oid::VARCHAR => oid::TEXT,
        oid::CIDR => oid::INET,
        oid::REGCLASS
        | oid::REGTYPE
        | oid::REGPROC
        | oid::REGNAMESPACE
        | oid::REGPROCEDURE
        | oid::REGOPER
        | oid::REGOPERATOR
        | oid::REGCOLLATION
        | oid::REGROLE
        | oid::REGCONFIG
        | oid::REGDICTIONARY => oid::OID,
        _ if user::is_enum(ty) => oid::ANYENUM,
        _ if user::is_composite(ty) => oid::RECORD,
        _ if range::is_range(ty) => oid::ANYRANGE,
        _ if multirange::is_multirange(ty) => oid::ANYMULTIRANGE,
        _ => ty,
    };
    let exact = BTREE_CLASSES.iter().find(|c| c.ty == key && c.default);
    let array = || {
        info::by_oid(key)
            .filter(|t| t.category == 'A')
            .and_then(|_| BTREE_CLASSES.iter().find(|c| c.name == "array_ops"))
    };
    exact.or_else(array).map_or(0, |c| c.oid)
}

/// Finds a B-tree operator class by name: its OID and the type it is for.
pub(crate) fn operator_class_name(name: &str) -> Option<(Oid, TypeId)> {
    BTREE_CLASSES
        .iter()
        .find(|c| c.name == name)
        .map(|c| (c.oid, c.ty))
}

/// `pg_opclass`
pub(super) fn pg_opclass(cx: &VirtualContext<'_>) -> Rows {
    let class = |c: &OperatorClass| {
        let key = if c.name == "name_ops" { 2275 } else { 0 };
        row![
            Id(c.oid),
            Id(BTREE),
            c.name,
            PG_CATALOG_NAMESPACE,
            OWNER,
            Id(c.family),
            c.ty,
            c.default,
            Id(key)
        ]
    };
    Ok(seen(cx, BTREE_CLASSES.iter().map(class).collect()))
}

/// `pg_opfamily`
pub(super) fn pg_opfamily(cx: &VirtualContext<'_>) -> Rows {
    let families = BTREE_FAMILIES
        .iter()
        .map(|f| row![Id(f.oid), Id(BTREE), f.name, PG_CATALOG_NAMESPACE, OWNER]);
    Ok(seen(cx, families.collect()))
}

/// `pg_am`
pub(super) fn pg_am(_: &VirtualContext<'_>) -> Rows {
    Ok(vec![
        row![Id(2), "heap", Id(3), Ch('t')],
        row![Id(BTREE), "btree", Id(330), Ch('i')],
        row![Id(HASH), "hash", Id(331), Ch('i')],
    ])
}

/// `pg_collation`
pub(super) fn pg_collation(_: &VirtualContext<'_>) -> Rows {
    let collation = |oid: Oid, name: &str, provider: char, locale: Option<&str>| {
        row![
            Id(oid),
            name,
            PG_CATALOG_NAMESPACE,
            OWNER,
            Ch(provider),
            true,
            -1_i32,
            locale,
            locale,
            Nil,
            Nil
        ]
    };
    Ok(vec![
        collation(100, "default", 'd', None),
        collation(950, "C", 'c', Some("C")),
        collation(951, "POSIX", 'c', Some("POSIX")),
    ])
}
