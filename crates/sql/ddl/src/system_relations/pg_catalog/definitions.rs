//! Texts of definitions: `pg_get_indexdef`, `pg_get_constraintdef`.
//!
//! Owns: the statement's text of an index and the clause's text of a constraint, with names as a search path sees
//! them.

use super::calls::{default_shown, int_arg, names_shown, oid_arg, relation_arg, text};
use logstead_sql_catalog::text::{quote_ident, relation_text};
use logstead_sql_catalog::{
    Catalog, Constraint, ConstraintKind, ForeignKey, IndexDef, ReferentialAction, Relation, Timing,
};
use logstead_sql_func::extensions::stored_text_shown;
use logstead_sql_plan::bind::VALUE;
use logstead_sql_types::RelationId;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::user::TypeSpelling;
use std::sync::Arc;

pub(super) fn find_index(
    catalog: &Catalog,
    index: RelationId,
) -> Option<(&Arc<Relation>, &Arc<IndexDef>)> {
    let table = catalog.relations.get(catalog.index_tables.get(&index)?)?;
    Some((table, table.indexes.iter().find(|i| i.oid == index)?))
}

pub(super) fn index_text(catalog: &Catalog, args: &[Datum], path: &[String]) -> Datum {
    let Some((table, index)) = relation_arg(args, 0).and_then(|oid| find_index(catalog, oid))
    else {
        return Datum::Null;
    };
    let types = catalog.types.lookup(path);
    match int_arg(args, 1).unwrap_or(0) {
        0 => {
            let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
            let found =
                pretty && catalog.object_by_name(None, &table.name, path) == Some(table.oid);
            let schema = format!(" ON {}.", quote_ident(&table.schema_name));
            let options = catalog.notes.options.get(&index.oid);
            let full = index.definition(table, options.map_or(&[], Vec::as_slice), pretty, types);
            let full = names_shown(catalog, &full, path);
            text(if found {
                full.replacen(&schema, " ON ", 1)
            } else {
                full
            })
        }
        n => usize::try_from(n - 1)
            .ok()
            .and_then(|at| match index.columns.get(at) {
                Some(key) => {
                    let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
                    Some(names_shown(
                        catalog,
                        &key.spelled(table, pretty, types),
                        path,
                    ))
                }
                None => {
                    let included = index.include.get(at - index.columns.len())?;
                    Some(quote_ident(&table.columns.get(*included)?.name))
                }
            })
            .map_or(text(""), text),
    }
}

/// The constraint as `ALTER TABLE ... ADD CONSTRAINT` would spell it.
pub(crate) fn constraint_definition(
    catalog: &Catalog,
    path: &[String],
    table: &Relation,
    constraint: &Constraint,
) -> String {
    let keys = |index: RelationId| {
        let index = table.indexes.iter().find(|i| i.oid == index);
        let keys = index.into_iter().flat_map(|i| i.columns.iter());
        let keys: Vec<String> = keys.map(|k| quote_ident(k.name(table))).collect();
        match index.filter(|i| !i.include.is_empty()) {
            Some(index) => format!("({}) INCLUDE ({})", keys.join(", "), index.included(table)),
            None => format!("({})", keys.join(", ")),
        }
    };
    let mut out = match &constraint.kind {
        ConstraintKind::Check(text) => format!("CHECK ({})", default_shown(catalog, text, path)),
        ConstraintKind::PrimaryKey(index) => format!("PRIMARY KEY {}", keys(*index)),
        ConstraintKind::Unique(index) => {
            let not_distinct = table
                .indexes
                .iter()
                .any(|i| i.oid == *index && i.nulls_not_distinct);
            let words = if not_distinct {
                " NULLS NOT DISTINCT"
            } else {
                ""
            };
            format!("UNIQUE{words} {}", keys(*index))
        }
        ConstraintKind::Foreign(key) => foreign_definition(catalog, path, table, key),
    };
    match constraint.timing {
        Timing::Immediate => {}
        Timing::Deferrable => out.push_str(" DEFERRABLE"),
        Timing::Deferred => out.push_str(" DEFERRABLE INITIALLY DEFERRED"),
    }
    if !constraint.validated {
        out.push_str(" NOT VALID");
    }
    out
}

fn foreign_definition(
    catalog: &Catalog,
    path: &[String],
    table: &Relation,
    key: &ForeignKey,
) -> String {
    let list = |relation: &Relation, positions: &[usize]| {
        let names = positions.iter().filter_map(|p| relation.columns.get(*p));
        names
            .map(|c| quote_ident(&c.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let parent = catalog.relations.get(&key.table);
    let mut out = format!(
        "FOREIGN KEY ({}) REFERENCES {}({})",
        list(table, &key.columns),
        relation_text(catalog, key.table, path).unwrap_or_default(),
        parent.map_or_else(String::new, |p| list(p, &key.referenced))
    );
    if key.full {
        out.push_str(" MATCH FULL");
    }
    for (when, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != ReferentialAction::NoAction {
            out.push_str(&format!(" ON {when} {}", action.words()));
        }
    }
    if !key.set_columns.is_empty() {
        out.push_str(&format!(" ({})", list(table, &key.set_columns)));
    }
    out
}

pub(super) fn constraint_text(catalog: &Catalog, args: &[Datum], path: &[String]) -> Datum {
    let Some(wanted) = oid_arg(args, 0) else {
        return Datum::Null;
    };
    let types = catalog.types.lookup(path);
    let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
    if let Some(table) = catalog.table_of_constraint(wanted)
        && let Some(constraint) = table.constraints.iter().find(|c| c.oid == wanted)
    {
        return match &constraint.kind {
            ConstraintKind::Check(stored) if pretty => {
                let tail = if constraint.validated {
                    ""
                } else {
                    " NOT VALID"
                };
                let shown = logstead_sql_catalog::deparse::pretty(stored, types);
                let shown = names_shown(catalog, &shown, path);
                text(format!("CHECK ({shown}){tail}"))
            }
            _ => text(constraint_definition(catalog, path, table, constraint)),
        };
    }
    for ty in catalog.types.all() {
        let checks = ty.domain().map_or(&[][..], |d| &d.checks);
        if let Some(check) = checks.iter().find(|c| c.oid == wanted) {
            let tail = if check.validated { "" } else { " NOT VALID" };
            let condition = match pretty {
                true => {
                    crate::with_value(&logstead_sql_catalog::deparse::pretty(&check.text, types))
                }
                false => stored_text_shown(&check.text, TypeSpelling::named(types)),
            };
            let condition = names_shown(catalog, &condition, path);
            return text(format!("CHECK ({condition}){tail}"));
        }
    }
    Datum::Null
}

/// A stored condition with VALUE as it is written: in capitals.
pub(crate) fn with_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        out.push_str(if word == VALUE { "VALUE" } else { word });
        word.clear();
    };
    for c in text.chars() {
        let inside = quote.is_some();
        if quote == Some(c) {
            quote = None;
        } else if !inside && matches!(c, '\'' | '"') {
            quote = Some(c);
        }
        if !inside && (c.is_alphanumeric() || matches!(c, '_' | '$')) {
            word.push(c);
            continue;
        }
        flush(&mut word, &mut out);
        out.push(c);
    }
    flush(&mut word, &mut out);
    out
}
