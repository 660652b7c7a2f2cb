//! COMMENT ON what nobody can make here, but everybody has: operators and their classes and families, aggregates,
//! casts, languages, access methods, collations, text search objects; and the rule of a view.
//!
//! Such an object is found as a row of the catalogue that shows it. Its owner is the first superuser.

use super::DdlContext;
use super::object_address::{name_and_relation, name_of, noun, unexpected_object, with_args};
use crate::pg_catalog::operator_class_name;
use logstead_sql_catalog::classes::{PG_OPCLASS, PG_OPERATOR};
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_catalog::{RelationKind, VirtualContext};
use logstead_sql_parse::ast::{ObjectRef, ObjectType, ObjectWithArgs};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, Oid, SqlType, info, oid, text_io};
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;

/// The aggregate of this signature that everybody has, if there is one.
pub(super) fn aggregate(named: &ObjectWithArgs, cx: &mut DdlContext<'_>) -> Result<Option<Oid>> {
    let name = match cx.lookup_parts(&named.objname)? {
        (Some(schema), name) => format!("{schema}.{name}"),
        (None, name) => name,
    };
    let types = named.objargs.iter().flatten().flatten();
    let types: Vec<String> = types.map(ToString::to_string).collect();
    let text = format!("{name}({})", types.join(", "));
    Ok(by_text(&text, oid::REGPROCEDURE, cx).ok())
}

/// 42501 unless who asks owns what the first superuser owns.
pub(super) fn must_own(what: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    let role = cx.session.current_role();
    match cx.catalog()?.roles.is_superuser(role) {
        true => Ok(()),
        false => Err(denied(format!("must be owner of {what}"))),
    }
}

/// An operator as `regoperator` reads it.
fn regoperator(object: &ObjectWithArgs) -> Result<String> {
    let operator = object.operator.as_ref().ok_or_else(unexpected_object)?;
    let schema = operator.schema.iter();
    let schema: String = schema
        .map(|name| format!("{}.", quote_ident(name)))
        .collect();
    let types = object.objargs.iter().flatten().map(|arg| match arg {
        Some(name) => name.to_string(),
        None => "none".to_owned(),
    });
    let types: Vec<String> = types.collect();
    Ok(format!("{schema}{}({})", operator.name, types.join(", ")))
}

/// Which object it is: its catalogue's number and its own.
pub(super) fn target(
    kind: ObjectType,
    object: &ObjectRef,
    cx: &mut DdlContext<'_>,
) -> Result<(RelationId, Oid)> {
    let found = match (kind, object) {
        (ObjectType::Conversion, _) => return Err(SqlError::unsupported("COMMENT ON CONVERSION")),
        (ObjectType::OpClass | ObjectType::OpFamily, ObjectRef::OfMethod { name, method }) => {
            let is_class = kind == ObjectType::OpClass;
            let name = cx.lookup_parts(name)?.1;
            let known = row(cx, "pg_am", &[("amname", method)])?;
            let (_, number) =
                known.ok_or_else(|| missing(format!("access method \"{method}\"")))?;
            let number = number.to_string();
            let (catalogue, columns) = match is_class {
                true => ("pg_opclass", ["opcname", "opcmethod"]),
                false => ("pg_opfamily", ["opfname", "opfmethod"]),
            };
            let wanted = [(columns[0], name.as_str()), (columns[1], number.as_str())];
            let found = match row(cx, catalogue, &wanted)? {
                // Classes that share another's operators are not all shown.
                None if is_class => {
                    let known = operator_class_name(&name).filter(|_| &**method == "btree");
                    known.map(|(class, _)| (PG_OPCLASS, class))
                }
                found => found,
            };
            found.ok_or_else(|| {
                let what = noun(kind);
                let message =
                    format!("{what} \"{name}\" does not exist for access method \"{method}\"");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            })?
        }
        (ObjectType::Operator, _) => {
            let text = regoperator(with_args(object)?)?;
            let found = by_text(&text, oid::REGOPERATOR, cx);
            let catalog = cx.catalog()?;
            let types = cx.lookup(&catalog).types();
            (
                PG_OPERATOR,
                found.map_err(|e| no_operator(e, &text, types))?,
            )
        }
        (ObjectType::Cast, ObjectRef::Cast { source, target }) => {
            let (from, to) = (cx.sql_type(source)?.oid, cx.sql_type(target)?.oid);
            let (source, target) = (from.to_string(), to.to_string());
            let wanted = [
                ("castsource", source.as_str()),
                ("casttarget", target.as_str()),
            ];
            let found = row(cx, "pg_cast", &wanted)?;
            let (from, to) = (cx.format_type_bare(from)?, cx.format_type_bare(to)?);
            found.ok_or_else(|| missing(format!("cast from type {from} to type {to}")))?
        }
        (ObjectType::Rule, _) => {
            let (name, table) = name_and_relation(object)?;
            let relation = cx.named_table(table)?;
            cx.must_own(&relation)?;
            return match relation.view() {
                Some(view) if &**name == "_RETURN" => Ok((RelationId::new(2618), view.rule)),
                _ => Err(missing(format!(
                    "rule \"{name}\" for relation \"{}\"",
                    relation.name
                ))),
            };
        }
        _ => {
            let name = cx.lookup_parts(name_of(object)?)?.1;
            let Some((catalogue, column)) = catalogue_of(kind) else {
                return Err(missing(format!("{} \"{name}\"", noun(kind))));
            };
            let found = row(cx, catalogue, &[(column, &name)])?;
            found.ok_or_else(|| {
                let encoding = match kind {
                    ObjectType::Collation => " for encoding \"UTF8\"",
                    _ => "",
                };
                missing(format!("{} \"{name}\"{encoding}", noun(kind)))
            })?
        }
    };
    must_own(
        match kind {
            ObjectType::Cast => "type",
            _ => noun(kind),
        },
        cx,
    )?;
    Ok(found)
}

fn missing(what: String) -> SqlError {
    let message = format!("{what} does not exist");
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// The message of an operator that does not exist as COMMENT has it.
fn no_operator(error: SqlError, text: &str, types: TypeLookup<'_>) -> SqlError {
    let shown = |ty: &str| {
        let known = info::by_name(ty.trim());
        known.map_or_else(|| ty.trim().to_owned(), |ty| types.format_type_bare(ty))
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

/// The catalogue that shows objects of a kind, with its column of names; none if there are no such objects.
fn catalogue_of(kind: ObjectType) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        ObjectType::Language => ("pg_language", "lanname"),
        ObjectType::AccessMethod => ("pg_am", "amname"),
        ObjectType::Collation => ("pg_collation", "collname"),
        ObjectType::TsConfiguration => ("pg_ts_config", "cfgname"),
        ObjectType::TsDictionary => ("pg_ts_dict", "dictname"),
        ObjectType::TsParser => ("pg_ts_parser", "prsname"),
        ObjectType::TsTemplate => ("pg_ts_template", "tmplname"),
        _ => return None,
    })
}

/// The row of a catalogue that has these texts in these columns: the catalogue's number and its own.
fn row(
    cx: &mut DdlContext<'_>,
    catalogue: &str,
    wanted: &[(&str, &str)],
) -> Result<Option<(RelationId, Oid)>> {
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
fn by_text(text: &str, ty: TypeId, cx: &DdlContext<'_>) -> Result<Oid> {
    match text_io::input(SqlType::of(ty), text, Some(cx.session))? {
        Datum::Oid(found) => Ok(found),
        _ => Err(missing(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::Stmt;

    #[test]
    fn operators_as_regoperator_reads_them() -> Result<()> {
        for (named, wanted) in [
            ("pg_catalog.+ (INT, text)", "pg_catalog.+(integer, text)"),
            ("\"S\".<> (text, NONE)", "\"S\".<>(text, none)"),
            ("- (NONE, \"T\")", "-(none, \"T\")"),
        ] {
            let text = format!("COMMENT ON OPERATOR {named} IS NULL");
            match &**logstead_sql_parse::parse(&text)?.remove(0).statement {
                Stmt::Comment(comment) => {
                    let operator = regoperator(with_args(&comment.object)?)?;
                    assert_eq!(operator, wanted);
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        Ok(())
    }
}
