//! Rows about extensions and languages.

use super::OWNER;
use super::cells::{Id, Nil, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::{PG_CATALOG_NAMESPACE, PG_EXTENSION};
use logstead_sql_catalog::extensions::{EXTENSIONS, Extension, extension_of};
use logstead_sql_catalog::routine::LANGUAGE_PLPGSQL;
use logstead_sql_func::extensions::AVAILABLE;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, FIRST_EXTENSION_OID, FIRST_USER_OID, Oid};

type Rows = Result<Vec<Vec<Datum>>>;

/// OID of the one extension that is always there.
pub(crate) const PLPGSQL: Oid = 13_559;

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

/// `pg_extension`
pub(super) fn pg_extension(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = vec![row![
        Id(PLPGSQL),
        "plpgsql",
        OWNER,
        PG_CATALOG_NAMESPACE,
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
                cx.catalog.owner_of((PG_EXTENSION, extension_of(ty.oid))),
                ty.schema,
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
            cx.catalog.owner_of((PG_EXTENSION, extension.oid)),
            extension.schema,
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
            OWNER,
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
