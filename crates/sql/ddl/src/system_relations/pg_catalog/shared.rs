//! Rows about what every database has: databases, roles, tablespaces, access methods, operator classes, collations,
//! languages, settings.

use super::OWNER;
use super::cells::{Ch, Id, Nil, regtype_array, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::{PG_AUTHID, PG_DATABASE, PG_EXTENSION};
use logstead_sql_catalog::extensions::{EXTENSIONS, Extension, extension_of};
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::routine::LANGUAGE_PLPGSQL;
use logstead_sql_func::extensions::AVAILABLE;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{
    Datum, FIRST_EXTENSION_OID, FIRST_USER_OID, Oid, info, multirange, oid, range, user,
};

type Rows = Result<Vec<Vec<Datum>>>;

/// `logstead_large_object_rights`: of what belongs to another than the bootstrap superuser, or was granted to somebody
pub(crate) fn large_object_rights(cx: &VirtualContext<'_>) -> Rows {
    let known = cx.catalog.privileges.objects.iter();
    let mut known: Vec<_> = known
        .filter(|((class, _), _)| *class == PG_LARGEOBJECT)
        .map(|((_, object), privileges)| (*object, privileges.owner))
        .collect();
    known.sort_unstable();
    let row = |(object, owner)| {
        let acl = super::relations::acl(cx.catalog, PG_LARGEOBJECT, object);
        row![Id(object), Id(owner), acl]
    };
    Ok(known.into_iter().map(row).collect())
}

/// OID of the B-tree access method.
pub(crate) const BTREE: Oid = 403;
const HASH: Oid = 405;

/// OID of the one extension that is always there.
pub(crate) const PLPGSQL: Oid = 13_559;

/// (OID, name, type, family, default) of the B-tree operator classes of the types that exist here.
const BTREE_CLASSES: &[(Oid, &str, Oid, Oid, bool)] = &[
    (1978, "int4_ops", oid::INT4, 1976, true),
    (1979, "int2_ops", oid::INT2, 1976, true),
    (1981, "oid_ops", oid::OID, 1989, true),
    (3122, "date_ops", oid::DATE, 434, true),
    (3123, "float8_ops", oid::FLOAT8, 1970, true),
    (3124, "int8_ops", oid::INT8, 1976, true),
    (3125, "numeric_ops", oid::NUMERIC, 1988, true),
    (3126, "text_ops", oid::TEXT, 1994, true),
    (3127, "timestamptz_ops", oid::TIMESTAMPTZ, 434, true),
    (3128, "timestamp_ops", oid::TIMESTAMP, 434, true),
    (10_069, "enum_ops", oid::ANYENUM, 3522, true),
    (4217, "text_pattern_ops", oid::TEXT, 2095, false),
    (4218, "varchar_pattern_ops", oid::TEXT, 2095, false),
    (4219, "bpchar_pattern_ops", oid::BPCHAR, 2097, false),
    (10_000, "array_ops", oid::ANYARRAY, 397, true),
    (10_034, "record_ops", oid::RECORD, 2994, true),
    (10_076, "range_ops", oid::ANYRANGE, 3901, true),
    (10_080, "multirange_ops", oid::ANYMULTIRANGE, 4199, true),
    (10_002, "bit_ops", oid::BIT, 423, true),
    (10_003, "bool_ops", oid::BOOL, 424, true),
    (10_009, "cidr_ops", oid::INET, 1974, false),
    (10_015, "inet_ops", oid::INET, 1974, true),
    (10_024, "macaddr_ops", oid::MACADDR, 1984, true),
    (10_026, "macaddr8_ops", oid::MACADDR8, 3371, true),
    (10_004, "bpchar_ops", oid::BPCHAR, 426, true),
    (10_006, "bytea_ops", oid::BYTEA, 428, true),
    (10_007, "char_ops", oid::CHAR, 429, true),
    (10_012, "float4_ops", oid::FLOAT4, 1970, true),
    (10_022, "interval_ops", oid::INTERVAL, 1982, true),
    (10_028, "name_ops", oid::NAME, 1994, true),
    (10_032, "oidvector_ops", oid::OIDVECTOR, 1991, true),
    (10_038, "time_ops", oid::TIME, 1996, true),
    (10_041, "timetz_ops", oid::TIMETZ, 2000, true),
    (10_043, "varbit_ops", oid::VARBIT, 2002, true),
    (10_044, "varchar_ops", oid::TEXT, 1994, false),
    (10_047, "money_ops", oid::MONEY, 2099, true),
    (10_050, "tid_ops", oid::TID, 2789, true),
    (10_053, "xid8_ops", oid::XID8, 5067, true),
    (10_067, "pg_lsn_ops", oid::PG_LSN, 3253, true),
    (10_071, "tsvector_ops", oid::TSVECTOR, 3626, true),
    (10_074, "tsquery_ops", oid::TSQUERY, 3683, true),
    (10_065, "uuid_ops", oid::UUID, 2968, true),
    (10_088, "jsonb_ops", oid::JSONB, 4033, true),
    (16_076, "citext_ops", oid::CITEXT, 16_077, true),
    (16_078, "citext_pattern_ops", oid::CITEXT, 16_079, false),
    (16_158, "btree_hstore_ops", oid::HSTORE, 16_159, true),
];

/// (OID, name) of the B-tree operator families.
const BTREE_FAMILIES: &[(Oid, &str)] = &[
    (397, "array_ops"),
    (423, "bit_ops"),
    (424, "bool_ops"),
    (426, "bpchar_ops"),
    (428, "bytea_ops"),
    (429, "char_ops"),
    (434, "datetime_ops"),
    (1970, "float_ops"),
    (1974, "network_ops"),
    (1976, "integer_ops"),
    (1982, "interval_ops"),
    (1984, "macaddr_ops"),
    (1988, "numeric_ops"),
    (1989, "oid_ops"),
    (1991, "oidvector_ops"),
    (1994, "text_ops"),
    (1996, "time_ops"),
    (2000, "timetz_ops"),
    (2002, "varbit_ops"),
    (2095, "text_pattern_ops"),
    (2097, "bpchar_pattern_ops"),
    (2099, "money_ops"),
    (2789, "tid_ops"),
    (2968, "uuid_ops"),
    (2994, "record_ops"),
    (3253, "pg_lsn_ops"),
    (3371, "macaddr8_ops"),
    (3522, "enum_ops"),
    (3626, "tsvector_ops"),
    (3683, "tsquery_ops"),
    (3901, "range_ops"),
    (4033, "jsonb_ops"),
    (4199, "multirange_ops"),
    (5067, "xid8_ops"),
    (16_077, "citext_ops"),
    (16_079, "citext_pattern_ops"),
    (16_159, "btree_hstore_ops"),
];

/// Default B-tree operator class of a column type; 0 if it has no order.
pub(crate) fn operator_class(ty: Oid) -> Oid {
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
    let exact = BTREE_CLASSES.iter().find(|c| c.2 == key && c.4);
    let array = || {
        info::by_oid(key)
            .filter(|t| t.category == 'A')
            .and_then(|_| BTREE_CLASSES.iter().find(|c| c.0 == 10_000))
    };
    exact.or_else(array).map_or(0, |c| c.0)
}

/// Finds a B-tree operator class by name: its OID and the type it is for.
pub(crate) fn operator_class_name(name: &str) -> Option<(Oid, Oid)> {
    BTREE_CLASSES
        .iter()
        .find(|c| c.1 == name)
        .map(|c| (c.0, c.2))
}

/// Of rows that begin with OIDs those that are there: what an extension brings is where it is.
pub(super) fn seen(cx: &VirtualContext<'_>, mut rows: Vec<Vec<Datum>>) -> Vec<Vec<Datum>> {
    let has = |extension: &Extension| cx.catalog.types.get(extension.ty).is_some();
    if EXTENSIONS.iter().all(has) {
        return rows;
    }
    let there = |of: Oid| {
        let whose = EXTENSIONS.iter().rfind(|extension| extension.first <= of);
        !(FIRST_EXTENSION_OID..FIRST_USER_OID).contains(&of) || whose.is_some_and(has)
    };
    rows.retain(|row| !matches!(row.first(), Some(Datum::Oid(of)) if !there(*of)));
    rows
}

/// `pg_opclass`
pub(super) fn pg_opclass(cx: &VirtualContext<'_>) -> Rows {
    let class = |c: &(Oid, &str, Oid, Oid, bool)| {
        let key = if c.1 == "name_ops" { 2275 } else { 0 };
        row![
            Id(c.0),
            Id(BTREE),
            c.1,
            Id(11),
            Id(OWNER),
            Id(c.3),
            Id(c.2),
            c.4,
            Id(key)
        ]
    };
    Ok(seen(cx, BTREE_CLASSES.iter().map(class).collect()))
}

/// `pg_opfamily`
pub(super) fn pg_opfamily(cx: &VirtualContext<'_>) -> Rows {
    let families = BTREE_FAMILIES
        .iter()
        .map(|f| row![Id(f.0), Id(BTREE), f.1, Id(11), Id(OWNER)]);
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

/// `pg_database`
pub(super) fn pg_database(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx.catalog.notes.databases.all().map(|database| {
        row![
            Id(database.oid),
            &database.name,
            Id(cx.catalog.owner_of(PG_DATABASE, database.oid)),
            6_i32,
            Ch('c'),
            database.is_template,
            database.allow_connections,
            database.connection_limit,
            Id(0),
            Id(1),
            Id(1663),
            &database.collate,
            &database.ctype,
            Nil,
            Nil,
            super::relations::acl(cx.catalog, PG_DATABASE, database.oid)
        ]
    });
    Ok(rows.collect())
}

/// `pg_shdescription`
pub(super) fn pg_shdescription(cx: &VirtualContext<'_>) -> Rows {
    let mut all: Vec<_> = cx
        .catalog
        .notes
        .comments
        .iter()
        .filter(|((class, ..), _)| matches!(*class, PG_DATABASE | PG_AUTHID))
        .collect();
    all.sort_unstable_by_key(|(key, _)| **key);
    Ok(all
        .into_iter()
        .map(|((class, object, _), text)| row![Id(*object), Id(*class), &**text])
        .collect())
}

/// `pg_tablespace`
pub(super) fn pg_tablespace(_: &VirtualContext<'_>) -> Rows {
    Ok(vec![
        row![Id(1663), "pg_default", Id(OWNER), Nil, Nil],
        row![Id(1664), "pg_global", Id(OWNER), Nil, Nil],
    ])
}

/// `pg_collation`
pub(super) fn pg_collation(_: &VirtualContext<'_>) -> Rows {
    let collation = |oid: Oid, name: &str, provider: char, locale: Option<&str>| {
        row![
            Id(oid),
            name,
            Id(11),
            Id(OWNER),
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

/// `pg_extension`
pub(super) fn pg_extension(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = vec![row![
        Id(PLPGSQL),
        "plpgsql",
        Id(OWNER),
        Id(11),
        false,
        "1.0",
        Nil,
        Nil
    ]];
    for extension in &EXTENSIONS {
        if let Some(ty) = cx.catalog.types.get(extension.ty) {
            rows.push(row![
                Id(extension_of(ty.oid)),
                extension.name,
                Id(cx.catalog.owner_of(PG_EXTENSION, extension_of(ty.oid))),
                Id(ty.schema),
                true,
                extension.version,
                Nil,
                Nil
            ]);
        }
    }
    rows.extend(cx.catalog.types.extensions().iter().map(|extension| {
        row![
            Id(extension.oid),
            extension.name.as_str(),
            Id(cx.catalog.owner_of(PG_EXTENSION, extension.oid)),
            Id(extension.schema),
            true,
            extension.version.as_str(),
            Nil,
            Nil
        ]
    }));
    Ok(rows)
}

/// What the extension is that is always there, as `pg_description` says.
pub(super) const PLPGSQL_COMMENT: &str = "PL/pgSQL procedural language";

/// `pg_available_extensions`
pub(super) fn pg_available_extensions(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = vec![row!["plpgsql", "1.0", "1.0", PLPGSQL_COMMENT]];
    for extension in &EXTENSIONS {
        let there = cx.catalog.types.get(extension.ty);
        let installed = there.map(|_| extension.version);
        rows.push(row![
            extension.name,
            extension.version,
            installed,
            extension.comment
        ]);
    }
    let made = cx.catalog.types.extensions();
    rows.extend(AVAILABLE.iter().map(|available| {
        let there = made.iter().find(|e| e.name == available.name);
        let installed = there.map(|_| available.version);
        row![
            available.name,
            available.version,
            installed,
            available.comment
        ]
    }));
    Ok(rows)
}

/// `pg_language`
pub(super) fn pg_language(_: &VirtualContext<'_>) -> Rows {
    let language = |oid: Oid, name: &str, trusted: bool, functions: [Oid; 3]| {
        let [handler, inline, validator] = functions;
        row![
            Id(oid),
            name,
            Id(OWNER),
            name == "plpgsql",
            trusted,
            Id(handler),
            Id(inline),
            Id(validator),
            Nil
        ]
    };
    Ok(vec![
        language(12, "internal", false, [0, 0, 2246]),
        language(13, "c", false, [0, 0, 2247]),
        language(14, "sql", true, [0, 0, 2248]),
        language(LANGUAGE_PLPGSQL, "plpgsql", true, [13_560, 13_561, 13_562]),
    ])
}

/// `pg_locks`: advisory locks only
pub(super) fn pg_locks(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .server()?
        .advisory_locks()
        .into_iter()
        .map(|lock| {
            row![
                "advisory",
                Id(lock.database),
                Nil,
                Nil,
                Nil,
                Nil,
                Nil,
                Id(lock.class),
                Id(lock.object),
                lock.kind,
                Nil,
                lock.pid,
                lock.mode,
                lock.granted,
                false,
                Nil
            ]
        });
    Ok(rows.collect())
}

/// `pg_prepared_statements`
pub(super) fn pg_prepared_statements(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .session_objects()?
        .prepared_statements()
        .into_iter()
        .map(|p| {
            row![
                p.name,
                p.statement,
                Datum::TimestampTz(p.prepared_at),
                regtype_array(p.types),
                p.from_sql,
                p.runs,
                0i64
            ]
        });
    Ok(rows.collect())
}

/// `pg_cursors`
pub(super) fn pg_cursors(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .session_objects()?
        .cursors()
        .into_iter()
        .map(|c| {
            row![
                c.name,
                c.statement,
                c.holdable,
                c.binary,
                c.scrollable,
                Datum::TimestampTz(c.created)
            ]
        });
    Ok(rows.collect())
}

/// `pg_file_settings`
pub(super) fn pg_file_settings(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .server()?
        .file_settings()?
        .into_iter()
        .zip(1i32..);
    let rows = rows.map(|(setting, number)| {
        row![
            &setting.line.file,
            setting.line.line,
            number,
            &setting.line.name,
            &setting.line.value,
            setting.applied,
            setting.error.as_ref()
        ]
    });
    Ok(rows.collect())
}

/// `pg_settings`
pub(super) fn pg_settings(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx
        .session
        .session_objects()?
        .settings()
        .into_iter()
        .map(|s| {
            row![
                &s.name,
                &s.value,
                s.unit.as_ref(),
                s.category.as_str(),
                &s.description,
                Nil,
                s.context.as_str(),
                s.kind.as_str(),
                s.source.as_str(),
                s.min.as_ref(),
                s.max.as_ref(),
                (!s.values.is_empty()).then(|| super::cells::text_array(&s.values)),
                &s.default,
                &s.reset,
                s.place.as_ref().map(|(file, _)| file.as_str()),
                s.place.as_ref().map(|(_, line)| *line),
                s.pending_restart,
            ]
        });
    Ok(rows.collect())
}
