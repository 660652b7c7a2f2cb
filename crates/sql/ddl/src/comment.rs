//! COMMENT ON.

use super::object_address::{
    large_object_of, name_and_relation, name_of, noun, plain_name, relation_type, type_of,
    with_args,
};
use super::{DdlContext, comment_system, grant, large_objects, policies, routine_lookup, triggers};
use crate::missing_object::no_schema;
use crate::pg_catalog::{PLPGSQL, calls};
use crate::relations::{no_column, wrong_kind};
use crate::types;
use logstead_sql_catalog::classes::{
    PG_AUTHID, PG_CLASS, PG_CONSTRAINT, PG_DATABASE, PG_EXTENSION, PG_NAMESPACE, PG_POLICY,
    PG_PROC, PG_TRIGGER, PG_TYPE,
};
use logstead_sql_catalog::extensions::{EXTENSIONS, extension_of};
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_parse::ast::{AnyName, CommentStmt, Name, ObjectRef, ObjectType, ObjectWithArgs};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Oid, info, user};
use logstead_types::SqlState;

/// Runs COMMENT ON.
pub(super) async fn execute(stmt: &CommentStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let text = stmt.comment.as_deref().filter(|t| !t.is_empty());
    if stmt.objtype == ObjectType::Database {
        cx.lock_databases_shared().await?;
        let plain = plain_name(&stmt.object)?;
        if cx.catalog()?.notes.databases.by_name(plain).is_none() {
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
    let (class, object, sub) = target(stmt.objtype, &stmt.object, cx)?;
    cx.put_comment(class, object, sub, text).await
}

/// The constraint of a domain.
fn domain_constraint(name: &Name, of: &AnyName, cx: &mut DdlContext<'_>) -> Result<Oid> {
    let catalog = cx.catalog()?;
    let lookup = cx.lookup(&catalog);
    let (schema, plain) = calls::lookup_parts(of, lookup)?;
    let found = lookup.user_type(schema.as_deref(), &plain)?;
    let oid = found.ok_or_else(|| no_object("type", &plain))?;
    let ty = catalog.types.get(oid);
    let domain = ty.and_then(|t| t.domain());
    let Some(domain) = domain else {
        return types::not_a_domain(oid, cx);
    };
    let check = domain.checks.iter().find(|c| *c.name == **name);
    let check = check.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "constraint \"{name}\" for domain {} does not exist",
                lookup.types().format_type_bare(oid)
            ),
        )
    })?;
    cx.must_own_type(oid, "type")?;
    Ok(check.oid)
}

/// The constraint of a table.
fn table_constraint(name: &Name, of: &AnyName, cx: &mut DdlContext<'_>) -> Result<Oid> {
    let relation = cx.named_table(of)?;
    let constraint = relation
        .constraints
        .iter()
        .find(|c| *c.name == **name)
        .ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "constraint \"{name}\" for table \"{}\" does not exist",
                    relation.name
                ),
            )
        })?;
    let object = constraint.oid;
    cx.must_own(&relation)?;
    Ok(object)
}

/// A function or procedure of a user, or an aggregate that everybody has.
fn routine(kind: ObjectType, named: &ObjectWithArgs, cx: &mut DdlContext<'_>) -> Result<Oid> {
    match routine_lookup::named(kind, named, cx) {
        Ok(routine) => {
            routine_lookup::must_own(&routine, cx)?;
            Ok(routine.oid.get())
        }
        Err(error) if kind == ObjectType::Aggregate => {
            match comment_system::aggregate(named, cx)? {
                Some(known) => comment_system::must_own("aggregate", cx).map(|()| known),
                None => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

fn no_object(kind: &str, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("{kind} \"{name}\" does not exist"),
    )
}

/// The class, the number and the column of an object that the current role may comment on.
fn target(
    kind: ObjectType,
    object: &ObjectRef,
    cx: &mut DdlContext<'_>,
) -> Result<(RelationId, Oid, i32)> {
    let catalog = cx.catalog()?;
    match kind {
        ObjectType::Column => {
            let (column, table) = match name_of(object)?.names.as_slice() {
                [table @ .., column] if !table.is_empty() => (&**column, table),
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "column name must be qualified",
                    ));
                }
            };
            let (schema, table) = calls::name_parts(table)?;
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
            let position = position.ok_or_else(|| no_column(column, &relation.name))?;
            cx.must_own(relation)?;
            Ok((
                PG_CLASS,
                relation.oid.get(),
                i32::try_from(position + 1).unwrap_or(i32::MAX),
            ))
        }
        ObjectType::Table
        | ObjectType::Index
        | ObjectType::Sequence
        | ObjectType::View
        | ObjectType::MatView => {
            let name = name_of(object)?;
            let (oid, plain) = cx.named_relation(name)?;
            let relation = catalog.relations.get(&oid);
            let actual = relation.map_or(ObjectType::Index, |relation| relation_type(relation));
            if actual != kind {
                let article = if kind == ObjectType::Index { "an" } else { "a" };
                return Err(wrong_kind(&plain, &format!("{article} {}", noun(kind))));
            }
            Ok((PG_CLASS, oid.get(), 0))
        }
        ObjectType::Schema => {
            let plain = plain_name(object)?;
            let schema = catalog.schema(plain).ok_or_else(|| no_schema(plain))?;
            Ok((PG_NAMESPACE, schema.oid.get(), 0))
        }
        ObjectType::Database => {
            let database = grant::database(plain_name(object)?, &catalog)?;
            Ok((PG_DATABASE, database.get(), 0))
        }
        ObjectType::Role => {
            let role = cx.role_named(plain_name(object)?)?;
            Ok((PG_AUTHID, role.oid.get(), 0))
        }
        ObjectType::Type | ObjectType::Domain => {
            let name = type_of(object, "COMMENT ON TYPE")?;
            let lookup = cx.lookup(&catalog);
            let (schema, plain) = calls::lookup_parts(name.as_slice(), lookup)?;
            let built_in = schema
                .as_deref()
                .is_none_or(|schema| schema == "pg_catalog");
            let ty = info::by_name(&plain).filter(|_| built_in);
            let ty = match ty {
                Some(ty) => Some(ty),
                None => lookup.user_type(schema.as_deref(), &plain)?,
            };
            let ty = ty.ok_or_else(|| no_object("type", &plain))?;
            if user::relation_of_row_type(ty).is_some() {
                return Err(SqlError::unsupported(
                    "COMMENT ON the type of a table's rows",
                ));
            }
            if kind == ObjectType::Domain && user::class(ty) != Some(user::UserTypeClass::Domain) {
                let message = format!("\"{plain}\" is not a domain");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            cx.must_own_type(
                logstead_sql_types::value::user::of_users(ty).unwrap_or(ty),
                "type",
            )?;
            Ok((PG_TYPE, ty.get(), 0))
        }
        ObjectType::Extension => {
            let plain = &**plain_name(object)?;
            if plain == "plpgsql" {
                cx.must_own_extension(PLPGSQL, plain)?;
                return Ok((PG_EXTENSION, PLPGSQL, 0));
            }
            let types = &catalog.types;
            if let Some(made) = types.extensions().iter().find(|e| e.name == plain) {
                cx.must_own_extension(made.oid, plain)?;
                return Ok((PG_EXTENSION, made.oid, 0));
            }
            let found = EXTENSIONS.iter().find(|e| e.name == plain);
            let there = found.filter(|e| types.get(e.ty).is_some());
            let there = there.ok_or_else(|| no_object("extension", plain))?;
            cx.must_own_extension(extension_of(there.ty), plain)?;
            Ok((PG_EXTENSION, extension_of(there.ty), 0))
        }
        ObjectType::TabConstraint => {
            let (name, table) = name_and_relation(object)?;
            Ok((PG_CONSTRAINT, table_constraint(name, table, cx)?, 0))
        }
        ObjectType::DomConstraint => {
            let (name, domain) = name_and_relation(object)?;
            Ok((PG_CONSTRAINT, domain_constraint(name, domain, cx)?, 0))
        }
        ObjectType::Policy => {
            let (name, table) = name_and_relation(object)?;
            Ok((PG_POLICY, policies::commented(name, table, cx)?, 0))
        }
        ObjectType::Trigger => {
            let (name, table) = name_and_relation(object)?;
            Ok((PG_TRIGGER, triggers::commented(name, table, cx)?, 0))
        }
        ObjectType::LargeObject => {
            let object = large_object_of(object)?;
            large_objects::must_own(object, cx)?;
            Ok((PG_LARGEOBJECT, object, 0))
        }
        ObjectType::Function
        | ObjectType::Procedure
        | ObjectType::Routine
        | ObjectType::Aggregate => Ok((PG_PROC, routine(kind, with_args(object)?, cx)?, 0)),
        _ => {
            let (class, object) = comment_system::target(kind, object, cx)?;
            Ok((class, object, 0))
        }
    }
}
