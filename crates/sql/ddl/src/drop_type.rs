//! DROP TYPE and DROP DOMAIN.
//!
//! Does not: look for what depends on a type (`drop_dependents`), or delete it (`types`).

use crate::object_address::ObjectAddress;
use crate::object_address::type_of;
use crate::types;
use crate::types::{delete, no_type};
use crate::{DdlContext, drop_dependents};
use logstead_sql_parse::ast::{DropBehavior, DropStmt, ObjectType};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypeClass;
use logstead_sql_types::value::{info, user};
use logstead_types::SqlState;

/// Runs DROP TYPE and DROP DOMAIN.
pub(crate) async fn drop(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let domain = stmt.remove_type == ObjectType::Domain;
    let if_exists = stmt.missing_ok;
    let names = stmt
        .objects
        .iter()
        .map(|object| type_of(object, "DROP TYPE"));
    let names: Vec<_> = names.collect::<Result<_>>()?;
    let mut targets: Vec<TypeId> = Vec::new();
    for name in &names {
        let name = name.as_slice();
        let (schema, plain) = cx.lookup_parts(name)?;
        let system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
        if system && let Some(oid) = info::by_name(&plain) {
            cx.must_own_type(oid, "type")?;
            let shown = cx.format_type_bare(oid)?;
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {shown} because it is required by the database system"),
            ));
        }
        let catalog = cx.catalog()?;
        if cx.skips_schema(name, if_exists)? {
            continue;
        }
        let Some(oid) = cx.lookup(&catalog).user_type(schema.as_deref(), &plain)? else {
            if !if_exists {
                return Err(no_type(name));
            }
            let shown = schema.map_or_else(|| plain.clone(), |s| format!("{s}.{plain}"));
            cx.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!("type \"{shown}\" does not exist, skipping"),
            );
            continue;
        };
        if user::class(oid) == Some(UserTypeClass::Array) {
            let (array, element) = (
                cx.format_type_bare(oid)?,
                cx.format_type_bare(user::element_under(oid))?,
            );
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {array} because type {element} requires it"),
            )
            .hint(format!("You can drop type {element} instead.")));
        }
        if user::class(oid) == Some(UserTypeClass::Multirange) {
            let (shown, range) = (
                cx.format_type_bare(oid)?,
                cx.format_type_bare(user::made(oid))?,
            );
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {shown} because type {range} requires it"),
            )
            .hint(format!("You can drop type {range} instead.")));
        }
        if let Some((word, relation)) = types::refuse_row_type_of(&*cx.catalog()?, oid) {
            let shown = cx.format_type_bare(oid)?;
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {shown} because {word} {relation} requires it"),
            )
            .hint(format!("You can drop {word} {relation} instead.")));
        }
        if user::class(oid) == Some(UserTypeClass::Base) {
            let shown = cx.format_type_bare(oid)?;
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {shown} because extension {plain} requires it"),
            )
            .hint(format!("You can drop extension {plain} instead.")));
        }
        if domain && user::class(oid) != Some(UserTypeClass::Domain) {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{plain}\" is not a domain"),
            ));
        }
        let Some(ty) = catalog.types.get(oid) else {
            return Err(no_type(name));
        };
        cx.must_own_type_or_schema(ty)?;
        if let Some(ty) = cx.lock_type(oid).await?
            && !targets.contains(&oid)
        {
            cx.must_own_type_or_schema(&ty)?;
            targets.push(oid);
        }
    }
    drop_locked_types(targets, stmt.behavior == DropBehavior::Cascade, cx).await
}

/// Drops types that are held.
pub(crate) async fn drop_locked_types(
    targets: Vec<TypeId>,
    cascade: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let objects: Vec<ObjectAddress> = targets.iter().copied().map(ObjectAddress::Type).collect();
    drop_dependents::report_dependents(&objects, None, cascade, cx).await?;
    for oid in targets {
        delete(oid, cx).await?;
    }
    Ok(())
}
