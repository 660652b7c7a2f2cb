//! What depends on what is dropped: told in PostgreSQL's order, and dropped along.
//!
//! Owns: which of it is in the way, and the order in which CASCADE drops it. `cascade_messages` has the words of both.
//!
//! Does not: find it (`find_dependents`), or drop what a statement names (`drop`, `drop_type`, `drop_routine`).

use super::{DdlContext, composites, foreign_keys, routines, types};
use crate::cascade_messages::{CASCADE_HINT, cascade_notice, still_used};
use crate::column_defaults;
use crate::find_dependents::{describe, find_dependent_objects};
use crate::object_address::ObjectAddress;
use logstead_engine::TableLock;
use logstead_sql_catalog::Catalog;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Finds what depends on `targets`. Without CASCADE that is in the way (2BP01); with it, a notice tells of it and it is
/// dropped, the targets are not. `what` is the one target as the message names it.
pub(super) async fn report_dependents(
    targets: &[ObjectAddress],
    what: Option<&str>,
    cascade: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    // Locking may wait, and others may come to depend on the targets meanwhile.
    let found = loop {
        let catalog = cx.catalog()?;
        let found = find_dependent_objects(&catalog, targets);
        if found.is_empty() {
            return Ok(());
        }
        if !cascade {
            return Err(in_the_way(&catalog, cx.search_path, targets, what, &found));
        }
        for (object, _) in &found {
            match object {
                ObjectAddress::Relation(oid)
                | ObjectAddress::Column(oid, _)
                | ObjectAddress::Foreign(oid, _)
                | ObjectAddress::Default(oid, _)
                | ObjectAddress::Constraint(oid, _)
                | ObjectAddress::Policy(oid, _)
                | ObjectAddress::Trigger(oid, _)
                | ObjectAddress::Index(oid, _) => {
                    cx.lock_table(*oid, TableLock::AccessExclusive).await?;
                }
                ObjectAddress::Routine(oid) => {
                    routines::lock_routine(*oid, cx).await?;
                }
                ObjectAddress::Type(oid)
                | ObjectAddress::DomainCheck(oid, _)
                | ObjectAddress::Attribute(oid, _) => {
                    if !types::is_implied(*oid) {
                        cx.lock_type(*oid).await?;
                    }
                }
            }
        }
        if cx.catalog()?.version == catalog.version {
            break found;
        }
    };
    let catalog = cx.catalog()?;
    let labels: Vec<String> = found
        .iter()
        .map(|(object, _)| describe(&catalog, cx.search_path, *object))
        .collect();
    cascade_notice(cx, &labels);
    drop_dependents(&found, cx).await
}

/// Drops what [`find_dependent_objects`] has found: what depends on others goes before them.
pub(super) async fn drop_dependents(
    found: &[(ObjectAddress, ObjectAddress)],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    for (object, _) in found.iter().rev() {
        match object {
            ObjectAddress::Relation(oid) => {
                let relation = cx.catalog()?.relations.get(oid).cloned();
                if let Some(relation) = relation {
                    cx.delete_relation(&relation).await?;
                }
            }
            ObjectAddress::Foreign(table, constraint) => {
                foreign_keys::drop_key(cx, *table, *constraint).await?;
            }
            ObjectAddress::Column(table, position) => {
                crate::column_removal::remove_column(*table, *position, true, cx).await?;
            }
            ObjectAddress::Default(table, position) => {
                column_defaults::drop_default(cx, *table, *position).await?
            }
            ObjectAddress::Constraint(table, constraint) => {
                if let Some(table) = cx.catalog()?.relations.get(table) {
                    let mut changed = logstead_sql_catalog::Relation::clone(table);
                    changed.constraints.retain(|c| c.oid != *constraint);
                    cx.update_relation(changed).await?;
                }
            }
            ObjectAddress::Index(table, index) => {
                if let Some(table) = cx.catalog()?.relations.get(table).cloned()
                    && let Some(index) = table.indexes.iter().find(|i| i.oid == *index)
                {
                    cx.delete_index(&table, index).await?;
                }
            }
            ObjectAddress::Policy(table, policy) => {
                super::policies::delete(*table, *policy, cx).await?;
            }
            ObjectAddress::Trigger(table, trigger) => {
                // Its table may have gone before it, with it.
                if cx.catalog()?.triggers.get(*trigger).is_some() {
                    // What it is owed already is forgotten.
                    cx.refuse_used(*table, "DROP TRIGGER", false)?;
                    super::triggers::delete(*table, *trigger, cx).await?;
                }
            }
            ObjectAddress::Type(oid) => types::delete(*oid, cx).await?,
            ObjectAddress::Routine(oid) => routines::delete(*oid, cx).await?,
            ObjectAddress::Attribute(ty, number) => {
                composites::remove_attribute(*ty, *number, cx).await?;
            }
            ObjectAddress::DomainCheck(domain, check) => {
                types::remove_check(*domain, *check, cx).await?;
            }
        }
    }
    Ok(())
}

/// 2BP01 with everything that is in the way.
fn in_the_way(
    catalog: &Catalog,
    path: &[String],
    targets: &[ObjectAddress],
    what: Option<&str>,
    found: &[(ObjectAddress, ObjectAddress)],
) -> SqlError {
    let lines: Vec<String> = found
        .iter()
        .map(|(object, on)| {
            let on = match (what, targets) {
                (Some(what), [target]) if target == on => what.to_owned(),
                _ => describe(catalog, path, *on),
            };
            format!("{} depends on {on}", describe(catalog, path, *object))
        })
        .collect();
    let detail = lines.join("\n");
    match (what, targets) {
        (Some(what), _) => still_used(what, &detail),
        (None, [target]) => still_used(&describe(catalog, path, *target), &detail),
        _ => SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop desired object(s) because other objects depend on them",
        )
        .detail(detail)
        .hint(CASCADE_HINT),
    }
}
