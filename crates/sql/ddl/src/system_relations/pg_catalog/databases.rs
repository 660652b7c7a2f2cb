//! Rows about what is shared by all databases, besides roles: the databases, their comments and those of roles, and
//! tablespaces.

use super::OWNER;
use super::cells::{Ch, Id, Nil, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::{PG_AUTHID, PG_DATABASE};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

type Rows = Result<Vec<Vec<Datum>>>;

/// `pg_database`
pub(super) fn pg_database(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx.catalog.notes.databases.all().map(|database| {
        row![
            database.oid,
            &database.name,
            cx.catalog.owner_of(database.oid),
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
            super::relations::acl(cx.catalog, database.oid)
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
        .map(|((class, object, _), text)| row![Id(*object), *class, &**text])
        .collect())
}

/// `pg_tablespace`
pub(super) fn pg_tablespace(_: &VirtualContext<'_>) -> Rows {
    Ok(vec![
        row![Id(1663), "pg_default", OWNER, Nil, Nil],
        row![Id(1664), "pg_global", OWNER, Nil, Nil],
    ])
}
