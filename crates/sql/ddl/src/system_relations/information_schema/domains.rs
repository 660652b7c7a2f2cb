//! What `information_schema` tells of domains.

use super::rows::{live, shape, tables_of};
use crate::pg_catalog::calls;
use crate::pg_catalog::cells::{Nil, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::{self, Domain, UserType};
use logstead_sql_types::value::{Datum, oid};

type Rows = Result<Vec<Vec<Datum>>>;

/// All domains.
pub(super) fn all<'a>(
    cx: &'a VirtualContext<'_>,
) -> impl Iterator<Item = (&'a UserType, &'a Domain)> {
    let types = cx.catalog.types.all().into_iter();
    types.filter_map(|ty| Some((&**ty, ty.domain()?)))
}

/// Schema and name of the type that a domain is made over.
fn over<'c>(domain: &Domain, cx: &VirtualContext<'c>) -> (&'c str, String) {
    let over = domain.over.oid;
    let schema = cx.catalog.types.schema_of(over).unwrap_or("pg_catalog");
    (schema, cx.catalog.types.type_name(over).into_owned())
}

/// `domains`
pub(super) fn domains(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let rows = all(cx).map(|(ty, domain)| {
        let s = shape(domain.over);
        let default = domain.default.as_deref().map(|text| {
            let path = cx.session.search_path();
            calls::default_shown(cx.catalog, text, &path)
        });
        let name_collation = domain.base.oid == oid::NAME;
        let (schema, name) = over(domain, cx);
        let shown = match user::class(domain.over.oid) {
            None => cx
                .catalog
                .types
                .lookup(&[])
                .format_type_bare(domain.over.oid),
            Some(_) => "USER-DEFINED".to_owned(),
        };
        row![
            database,
            &ty.schema_name,
            &ty.name,
            shown,
            s.length,
            s.octets,
            Nil,
            Nil,
            Nil,
            name_collation.then_some(database),
            name_collation.then_some("pg_catalog"),
            name_collation.then_some("C"),
            s.precision,
            s.radix,
            s.scale,
            s.datetime,
            Nil,
            Nil,
            default,
            database,
            schema,
            name,
            Nil,
            Nil,
            Nil,
            Nil,
            "1",
        ]
    });
    Ok(rows.collect())
}

/// `domain_constraints`
pub(super) fn domain_constraints(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let rows = all(cx).flat_map(|(ty, domain)| {
        domain.checks.iter().map(move |check| {
            row![
                database,
                &ty.schema_name,
                &check.name,
                database,
                &ty.schema_name,
                &ty.name,
                "NO",
                "NO",
            ]
        })
    });
    Ok(rows.collect())
}

/// `domain_udt_usage`
pub(super) fn domain_udt_usage(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let rows = all(cx).map(|(ty, domain)| {
        let (schema, name) = over(domain, cx);
        row![database, schema, name, database, &ty.schema_name, &ty.name]
    });
    Ok(rows.collect())
}

/// `column_domain_usage`
pub(super) fn column_domain_usage(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for (_, column) in live(table) {
            let domain = column.domain.and_then(|d| cx.catalog.types.get(d));
            if let Some(ty) = domain {
                rows.push(row![
                    database,
                    &ty.schema_name,
                    &ty.name,
                    database,
                    &table.schema_name,
                    &table.name,
                    &column.name
                ]);
            }
        }
    }
    Ok(rows)
}
