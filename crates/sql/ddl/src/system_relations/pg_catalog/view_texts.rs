//! The queries that PostgreSQL's system views are made of, as `pg_get_viewdef` prints them there. Programs read them
//! (`\sv`, `pg_views`); what the views show here is made by code of its own.

use crate::pg_catalog::calls::{oid_arg, relation_arg, relation_by_text};
use crate::pg_catalog::viewdef;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::text::relation_text;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::sync::Arc;

/// As `pg_get_viewdef(oid)` gives them; each behind a line of its name.
const PLAIN: &str = include_str!("system_views.txt");
/// As `pg_get_viewdef(oid, true)` does.
const PRETTY: &str = include_str!("system_views_pretty.txt");

/// The query of a system view; `None` for what PostgreSQL does not have.
pub(crate) fn text_of(schema: &str, name: &str, pretty: bool) -> Option<&'static str> {
    let all = if pretty { PRETTY } else { PLAIN };
    let mut views = all.split("== ");
    views.find_map(|view| {
        let (title, text) = view.split_once('\n')?;
        let (of, called) = title.split_once('.')?;
        (of == schema && called == name).then(|| text.trim_end_matches('\n'))
    })
}

/// A view's query; the second argument asks for the form for people (a number is where lines end: each item has its
/// own).
pub(crate) fn view_text(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let relation = match args.first() {
        Some(Datum::Text(name)) => {
            let path = cx.session.search_path();
            let found = relation_by_text(name, cx.lookup(&path))?;
            found.ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{name}\" does not exist"),
                )
            })?
        }
        _ => match relation_arg(args, 0) {
            Some(oid) => oid,
            None => return Ok(Datum::Null),
        },
    };
    let pretty = matches!(args.get(1), Some(Datum::Bool(true) | Datum::Int4(_)));
    let catalog = Arc::new(cx.catalog.clone());
    if let Some(relation) = catalog.relations.get(&relation)
        && let Some(shown) = viewdef::text(&catalog, relation, pretty, cx.session)?
    {
        return Ok(Datum::text(shown));
    }
    Ok({ super::tables() }
        .find(|table| table.oid == relation)
        .and_then(|table| text_of(table.schema, table.name, pretty))
        .map_or(Datum::Null, Datum::text))
}

/// The rule that makes a view of a relation, by its number in `pg_rewrite`.
pub(crate) fn rule_text(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let Some(rule) = oid_arg(args, 0) else {
        return Ok(Datum::Null);
    };
    let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
    let catalog = Arc::new(cx.catalog.clone());
    let mut relations = catalog.relations.values();
    let Some(relation) = relations.find(|r| r.view().is_some_and(|view| view.rule == rule)) else {
        return Ok(Datum::Null);
    };
    let Some(query) = viewdef::text(&catalog, relation, pretty, cx.session)? else {
        return Ok(Datum::Null);
    };
    let path = if pretty {
        cx.session.search_path().to_vec()
    } else {
        Vec::new()
    };
    let name = relation_text(&catalog, relation.oid, &path);
    let name = name.unwrap_or_else(|| relation.name.clone());
    Ok(Datum::text(format!(
        "CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_two_forms_and_ends_as_a_query_does() {
        let names = |all: &'static str| {
            let titles = all
                .split("== ")
                .skip(1)
                .filter_map(|view| view.split_once('\n'));
            titles.map(|(title, _)| title).collect::<Vec<_>>()
        };
        assert_eq!(names(PLAIN), names(PRETTY));
        for title in names(PLAIN) {
            let (schema, name) = title.split_once('.').unwrap();
            for pretty in [false, true] {
                let text = text_of(schema, name, pretty).unwrap();
                assert!(text.starts_with(' ') && text.ends_with(';'), "{title}");
            }
        }
        assert!(text_of("pg_catalog", "pg_class", false).is_none());
    }
}
