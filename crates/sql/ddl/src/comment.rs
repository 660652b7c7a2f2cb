//! COMMENT ON.

use super::alter_table::{no_column, wrong_kind};
use super::objects::{no_relation, no_schema};
use super::{DdlContext, grant};
use crate::pg_catalog::{PLPGSQL, calls};
use logstead_sql_catalog::classes::{
    PG_AUTHID, PG_CLASS, PG_CONSTRAINT, PG_DATABASE, PG_EXTENSION, PG_NAMESPACE, PG_TYPE,
};
use logstead_sql_catalog::extensions::{EXTENSIONS, extension_of};
use logstead_sql_catalog::text::fold;
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_parse::CommentOn;
use logstead_sql_parse::lowered::{self as ast, CommentObject};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{info, user};
use logstead_types::SqlState;

/// Runs COMMENT ON.
pub(super) async fn execute(
    kind: &CommentObject,
    name: &ast::ObjectName,
    text: Option<&str>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let text = text.filter(|t| !t.is_empty());
    if matches!(kind, CommentObject::Database) {
        cx.hold_databases().await?;
        let plain = calls::name_parts(name)?.1;
        if cx.catalog()?.notes.databases.by_name(&plain).is_none() {
            // As PostgreSQL has it: whoever restores a dump may have renamed its database.
            cx.notices.push(super::Notice {
                severity: "WARNING",
                code: SqlState::INVALID_CATALOG_NAME,
                message: format!("database \"{plain}\" does not exist"),
                detail: None,
                hint: None,
            });
            return Ok(());
        }
    }
    let (class, object, sub) = target(kind, name, cx)?;
    cx.put_comment(class, object, sub, text).await
}

/// What COMMENT calls a relation.
pub(super) fn kind_of(relation: &Relation) -> CommentObject {
    match relation.kind {
        RelationKind::Sequence(_) => CommentObject::Sequence,
        RelationKind::View(_) => CommentObject::View,
        RelationKind::Materialized(..) => CommentObject::MaterializedView,
        RelationKind::Table | RelationKind::Virtual(_) => CommentObject::Table,
    }
}

/// Runs COMMENT ON CONSTRAINT, and on what [`CommentOn::other`] names.
pub(super) async fn on_constraint(on: &CommentOn, cx: &mut DdlContext<'_>) -> Result<()> {
    if let Some(other) = &on.other {
        let (class, object) = super::comment_system::target(other, cx)?;
        let text = on.comment.as_deref().filter(|t| !t.is_empty());
        return cx.put_comment(class, object, 0, text).await;
    }
    if on.domain {
        let (schema, name) = calls::lookup_parts(&on.owner)?;
        let catalog = cx.catalog()?;
        let found = user::find(schema.as_deref(), &name)?;
        let oid = found.ok_or_else(|| no_object("type", &name))?;
        let ty = catalog.types.get(oid);
        let domain = ty.and_then(|t| t.domain());
        let domain = domain.ok_or_else(|| super::domains::not_a_domain(oid))?;
        let check = domain.checks.iter().find(|c| c.name == on.constraint);
        let check = check.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "constraint \"{}\" for domain {} does not exist",
                    on.constraint,
                    info::format_type_bare(oid)
                ),
            )
        })?;
        cx.must_own_type(oid, "type")?;
        let text = on.comment.as_deref().filter(|t| !t.is_empty());
        return cx.put_comment(PG_CONSTRAINT, check.oid, 0, text).await;
    }
    let catalog = cx.catalog()?;
    let (schema, plain) = calls::lookup_parts(&on.owner)?;
    let relation = catalog
        .relation(schema.as_deref(), &plain, cx.search_path)
        .ok_or_else(|| no_relation(&on.owner))?;
    let constraint = relation
        .constraints
        .iter()
        .find(|c| c.name == on.constraint)
        .ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "constraint \"{}\" for table \"{}\" does not exist",
                    on.constraint, relation.name
                ),
            )
        })?;
    let object = constraint.oid;
    cx.must_own(relation)?;
    let text = on.comment.as_deref().filter(|t| !t.is_empty());
    cx.put_comment(PG_CONSTRAINT, object, 0, text).await
}

fn no_object(kind: &str, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("{kind} \"{name}\" does not exist"),
    )
}

fn target(
    kind: &CommentObject,
    name: &ast::ObjectName,
    cx: &mut DdlContext<'_>,
) -> Result<(u32, u32, i32)> {
    let catalog = cx.catalog()?;
    match kind {
        CommentObject::Column => {
            let mut parts: Vec<String> = name.0.iter().map(fold).collect();
            let column = parts.pop().unwrap_or_default();
            let (schema, table) = match parts.as_slice() {
                [table] => (None, table.clone()),
                [schema, table] | [_, schema, table] => (Some(schema.clone()), table.clone()),
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "column name must be qualified",
                    ));
                }
            };
            let relation = catalog
                .relation(schema.as_deref(), &table, cx.search_path)
                .ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("relation \"{table}\" does not exist"),
                    )
                })?;
            let position = relation
                .columns
                .iter()
                .position(|c| !c.dropped && c.name == column);
            let position = position.ok_or_else(|| no_column(&column, &relation.name))?;
            cx.must_own(relation)?;
            Ok((
                PG_CLASS,
                relation.oid,
                i32::try_from(position + 1).unwrap_or(i32::MAX),
            ))
        }
        CommentObject::Table
        | CommentObject::Index
        | CommentObject::Sequence
        | CommentObject::View
        | CommentObject::MaterializedView => {
            let (schema, plain) = calls::lookup_parts(name)?;
            let found = catalog.object_by_name(schema.as_deref(), &plain, cx.search_path);
            let oid = found.ok_or_else(|| no_relation(name))?;
            let relation = catalog.relations.get(&oid);
            let actual = relation.map_or(CommentObject::Index, |relation| kind_of(relation));
            if actual != *kind {
                let what = match kind {
                    CommentObject::Index => "an index",
                    CommentObject::Sequence => "a sequence",
                    CommentObject::View => "a view",
                    CommentObject::MaterializedView => "a materialized view",
                    _ => "a table",
                };
                return Err(wrong_kind(&plain, what));
            }
            Ok((PG_CLASS, oid, 0))
        }
        CommentObject::Schema => {
            let plain = calls::name_parts(name)?.1;
            let schema = catalog.schema(&plain).ok_or_else(|| no_schema(&plain))?;
            Ok((PG_NAMESPACE, schema.oid, 0))
        }
        CommentObject::Database => {
            let plain = calls::name_parts(name)?.1;
            Ok((PG_DATABASE, grant::database(&plain, &catalog)?, 0))
        }
        CommentObject::Role => {
            let plain = calls::name_parts(name)?.1;
            let role = catalog.roles.by_name(&plain);
            let role = role.ok_or_else(|| no_object("role", &plain))?;
            Ok((PG_AUTHID, role.oid, 0))
        }
        CommentObject::Type | CommentObject::Domain => {
            let (schema, plain) = calls::lookup_parts(name)?;
            let built_in = schema
                .as_deref()
                .is_none_or(|schema| schema == "pg_catalog");
            let ty = info::by_name(&plain).filter(|_| built_in);
            let ty = match ty {
                Some(ty) => Some(ty),
                None => user::find(schema.as_deref(), &plain)?,
            };
            let ty = ty.ok_or_else(|| no_object("type", &plain))?;
            if user::relation_of_row_type(ty).is_some() {
                return Err(SqlError::unsupported(
                    "COMMENT ON the type of a table's rows",
                ));
            }
            if *kind == CommentObject::Domain && user::class(ty) != Some(user::Class::Domain) {
                let message = format!("\"{plain}\" is not a domain");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            cx.must_own_type(
                logstead_sql_types::value::user::of_users(ty).unwrap_or(ty),
                "type",
            )?;
            Ok((PG_TYPE, ty, 0))
        }
        CommentObject::Extension => {
            let plain = calls::name_parts(name)?.1;
            if plain == "plpgsql" {
                cx.must_own_extension(PLPGSQL, &plain)?;
                return Ok((PG_EXTENSION, PLPGSQL, 0));
            }
            let types = &catalog.types;
            if let Some(made) = types.extensions().iter().find(|e| e.name == plain) {
                cx.must_own_extension(made.oid, &plain)?;
                return Ok((PG_EXTENSION, made.oid, 0));
            }
            let found = EXTENSIONS.iter().find(|e| e.name == plain);
            let there = found.filter(|e| types.get(e.ty).is_some());
            let there = there.ok_or_else(|| no_object("extension", &plain))?;
            cx.must_own_extension(extension_of(there.ty), &plain)?;
            Ok((PG_EXTENSION, extension_of(there.ty), 0))
        }
    }
}
