//! COMMENT ON what nobody can make here, but everybody has: operators and their classes and families, aggregates,
//! casts, languages, access methods, collations, text search objects; and the rule of a view.
//!
//! Such an object is found as a row of the catalogue that shows it. Its owner is the first superuser.

use super::DdlContext;
use super::objects::no_relation;
use crate::pg_catalog::{calls, operator_class_name};
use logstead_sql_catalog::classes::PG_PROC;
use logstead_sql_catalog::rights::denied;
use logstead_sql_catalog::{RelationKind, VirtualContext};
use logstead_sql_parse::Commented;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, SqlType, info, oid, text_io};
use logstead_types::SqlState;

/// Is there an aggregate of this signature?
pub(super) fn is_there(aggregate: &Commented, cx: &mut DdlContext<'_>) -> bool {
    match aggregate {
        Commented::Aggregate(text) => by_text(text, oid::REGPROCEDURE, cx).is_ok(),
        _ => false,
    }
}

/// Which object it is: its catalogue's number and its own.
pub(super) fn target(object: &Commented, cx: &mut DdlContext<'_>) -> Result<(Oid, Oid)> {
    let found = match object {
        Commented::Named {
            kind: "conversion", ..
        } => return Err(SqlError::unsupported("COMMENT ON CONVERSION")),
        Commented::Named { kind, name } => {
            let name = calls::lookup_parts(name)?.1;
            let Some((catalogue, column)) = catalogue_of(kind) else {
                return Err(missing(format!("{} \"{name}\"", noun(kind))));
            };
            let found = row(cx, catalogue, &[(column, &name)])?;
            found.ok_or_else(|| {
                let name = match *kind {
                    "collation" => format!("collation \"{name}\" for encoding \"UTF8\""),
                    _ => format!("{} \"{name}\"", noun(kind)),
                };
                missing(name)
            })?
        }
        Commented::OfMethod { kind, name, method } => {
            let name = calls::lookup_parts(name)?.1;
            let known = row(cx, "pg_am", &[("amname", method)])?;
            let (_, number) =
                known.ok_or_else(|| missing(format!("access method \"{method}\"")))?;
            let number = number.to_string();
            let (catalogue, columns) = match *kind {
                "operator class" => ("pg_opclass", ["opcname", "opcmethod"]),
                _ => ("pg_opfamily", ["opfname", "opfmethod"]),
            };
            let wanted = [(columns[0], name.as_str()), (columns[1], number.as_str())];
            let found = match row(cx, catalogue, &wanted)? {
                // Classes that share another's operators are not all shown.
                None if *kind == "operator class" => {
                    let known = operator_class_name(&name).filter(|_| method == "btree");
                    known.map(|(class, _)| (2616, class))
                }
                found => found,
            };
            found.ok_or_else(|| {
                let message =
                    format!("{kind} \"{name}\" does not exist for access method \"{method}\"");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            })?
        }
        Commented::Operator(text) => {
            let found = by_text(text, oid::REGOPERATOR, cx);
            (2617, found.map_err(|e| no_operator(e, text))?)
        }
        Commented::Aggregate(text) => (PG_PROC, by_text(text, oid::REGPROCEDURE, cx)?),
        Commented::Cast(from, to) => {
            let (from, to) = (
                logstead_sql_catalog::type_name::sql_type(from)?.oid,
                logstead_sql_catalog::type_name::sql_type(to)?.oid,
            );
            let (source, target) = (from.to_string(), to.to_string());
            let wanted = [
                ("castsource", source.as_str()),
                ("casttarget", target.as_str()),
            ];
            let found = row(cx, "pg_cast", &wanted)?;
            found.ok_or_else(|| {
                let (from, to) = (info::format_type_bare(from), info::format_type_bare(to));
                missing(format!("cast from type {from} to type {to}"))
            })?
        }
        Commented::Rule { name, table } => {
            let (schema, plain) = calls::lookup_parts(table)?;
            let catalog = cx.catalog()?;
            let relation = catalog.relation(schema.as_deref(), &plain, cx.search_path);
            let relation = relation.ok_or_else(|| no_relation(table))?;
            cx.must_own(relation)?;
            return match relation.view() {
                Some(view) if name == "_RETURN" => Ok((2618, view.rule)),
                _ => Err(missing(format!(
                    "rule \"{name}\" for relation \"{}\"",
                    relation.name
                ))),
            };
        }
    };
    let role = cx.session.current_role();
    if !cx.catalog()?.roles.is_superuser(role) {
        let what = match object {
            Commented::Named { kind, .. } | Commented::OfMethod { kind, .. } => noun(kind),
            Commented::Operator(_) => "operator",
            Commented::Aggregate(_) => "aggregate",
            Commented::Cast(..) | Commented::Rule { .. } => "type",
        };
        return Err(denied(format!("must be owner of {what}")));
    }
    Ok(found)
}

fn missing(what: String) -> SqlError {
    let message = format!("{what} does not exist");
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// The message of an operator that does not exist as COMMENT has it.
fn no_operator(error: SqlError, text: &str) -> SqlError {
    let shown = |ty: &str| {
        let known = info::by_name(ty.trim());
        known.map_or_else(|| ty.trim().to_owned(), info::format_type_bare)
    };
    let parts = text.strip_suffix(')').and_then(|t| t.split_once('('));
    let Some((name, (left, right))) = parts.and_then(|(n, t)| Some((n, t.split_once(',')?))) else {
        return error;
    };
    if error.code() != SqlState::UNDEFINED_FUNCTION {
        return error;
    }
    let operator = match left.trim().eq_ignore_ascii_case("none") {
        true => format!("{name} {}", shown(right)),
        false => format!("{} {name} {}", shown(left), shown(right)),
    };
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {operator}"),
    )
}

/// What messages call a kind of object.
fn noun(kind: &'static str) -> &'static str {
    match kind {
        "foreign data wrapper" => "foreign-data wrapper",
        "statistics" => "statistics object",
        other => other,
    }
}

/// The catalogue that shows objects of a kind, with its column of names; none if there are no such objects.
fn catalogue_of(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "language" => ("pg_language", "lanname"),
        "access method" => ("pg_am", "amname"),
        "collation" => ("pg_collation", "collname"),
        "text search configuration" => ("pg_ts_config", "cfgname"),
        "text search dictionary" => ("pg_ts_dict", "dictname"),
        "text search parser" => ("pg_ts_parser", "prsname"),
        "text search template" => ("pg_ts_template", "tmplname"),
        _ => return None,
    })
}

/// The row of a catalogue that has these texts in these columns: the catalogue's number and its own.
fn row(
    cx: &mut DdlContext<'_>,
    catalogue: &str,
    wanted: &[(&str, &str)],
) -> Result<Option<(Oid, Oid)>> {
    let catalog = cx.catalog()?;
    let relation = catalog.relation(Some("pg_catalog"), catalogue, &[]);
    let Some(RelationKind::Virtual(table)) = relation.map(|relation| &relation.kind) else {
        return Err(SqlError::internal(format!("no catalogue {catalogue}")));
    };
    let rows = (table.rows)(&VirtualContext {
        catalog: &catalog,
        session: cx.session,
    })?;
    let place = |name: &str| table.columns.iter().position(|(column, _)| *column == name);
    let fits = |row: &Vec<Datum>| {
        wanted.iter().all(
            |(column, text)| match place(column).and_then(|at| row.get(at)) {
                Some(Datum::Text(found)) => **found == **text,
                Some(Datum::Oid(found)) => found.to_string() == *text,
                _ => false,
            },
        )
    };
    let found = rows.iter().find(|row| fits(row));
    let own = found.and_then(|row| match row.get(place("oid")?) {
        Some(Datum::Oid(own)) => Some(*own),
        _ => None,
    });
    Ok(own.map(|own| (table.oid, own)))
}

/// An object as `regoperator` or `regprocedure` reads it.
fn by_text(text: &str, ty: Oid, cx: &DdlContext<'_>) -> Result<Oid> {
    match text_io::input(SqlType::of(ty), text, Some(cx.session))? {
        Datum::Oid(found) => Ok(found),
        _ => Err(missing(text.to_owned())),
    }
}
