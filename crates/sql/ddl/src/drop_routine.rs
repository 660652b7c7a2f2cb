//! DROP FUNCTION and its like.
//!
//! Does not: look for what depends on a routine (`drop_dependents`), or delete it (`routines`).

use crate::object_address::ObjectAddress;
use crate::object_address::with_args;
use crate::routine_lookup::{lookup, must_own};
use crate::routines::{delete, lock_routine};
use crate::{DdlContext, drop_dependents};
use logstead_sql_parse::ast::{DropBehavior, DropStmt, ObjectType};
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Runs DROP FUNCTION and its like.
pub(crate) async fn drop(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let kind = stmt.remove_type;
    let cascade = stmt.behavior == DropBehavior::Cascade;
    let mut targets: Vec<FunctionId> = Vec::new();
    for object in &stmt.objects {
        let Some(routine) = lookup(kind, with_args(object)?, stmt.missing_ok, cx)? else {
            continue;
        };
        if kind == ObjectType::Function && routine.aggregate.is_some() {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is an aggregate function", routine.name),
            )
            .hint("Use DROP AGGREGATE to drop aggregate functions."));
        }
        let schema = routine.schema;
        if !cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, schema))? {
            must_own(&routine, cx)?;
        }
        if lock_routine(routine.oid, cx).await?.is_some() && !targets.contains(&routine.oid) {
            targets.push(routine.oid);
        }
    }
    let objects: Vec<ObjectAddress> = targets
        .iter()
        .copied()
        .map(ObjectAddress::Routine)
        .collect();
    drop_dependents::report_dependents(&objects, None, cascade, cx).await?;
    for oid in targets {
        delete(oid, cx).await?;
    }
    Ok(())
}
