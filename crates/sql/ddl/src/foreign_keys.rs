//! Foreign keys: making them, what depends on them, changing when they are checked.
//!
//! Locks, which are PostgreSQL's: making one takes SHARE ROW EXCLUSIVE on both tables, so that whoever writes there has
//! ended, and plans anew with the key in sight (rule F3 of `logstead_sql_exec::after_triggers`); plans that only read
//! have no keys. Whoever writes while one is validated has it in sight already: so that takes SHARE UPDATE EXCLUSIVE on
//! the referencing table and ROW SHARE on the referenced one.

use super::DdlContext;
use super::choose_name::{columns_part, free_name};
use super::columns::{NewConstraint, NewConstraintKind, NewForeign};
use crate::cascade_messages::still_used;
use crate::relations::{no_constraint, no_relation, relation, system_relation, table_label};
use logstead_engine::TableLock;
use logstead_sql_catalog::{
    Constraint, ConstraintKind, ForeignKey, ReferentialAction, Relation, RelationKind, Timing,
};
use logstead_sql_exec::{self as exec, StatementContext};
use logstead_sql_parse::ast::RangeVar;
use logstead_sql_plan::constraints::{ForeignRule, key_types};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Oid, SqlType};
use logstead_types::SqlState;
use std::sync::Arc;

/// Most columns of a foreign key.
const KEY_COLUMNS_MAX: usize = 32;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_FOREIGN_KEY, message)
}

fn positions(relation: &Relation, names: &[String]) -> Result<Vec<usize>> {
    if names.len() > KEY_COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot have more than {KEY_COLUMNS_MAX} keys in a foreign key"),
        ));
    }
    let find = |name: &String| {
        let found = relation
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == *name);
        found.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" referenced in foreign key constraint does not exist"),
            )
        })
    };
    names.iter().map(find).collect()
}

/// The referenced attributes and the index that holds them once.
fn target(parent: &Relation, names: &[String]) -> Result<(Vec<usize>, RelationId)> {
    let unusable = |what: &str| {
        SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "cannot use a deferrable {what} for referenced table \"{}\"",
                parent.name
            ),
        )
    };
    if names.is_empty() {
        let key = parent.indexes.iter().find(|i| i.primary).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "there is no primary key for referenced table \"{}\"",
                    parent.name
                ),
            )
        })?;
        if key.deferrable {
            return Err(unusable("primary key"));
        }
        let columns = key.positions().unwrap_or_default();
        return Ok((columns, key.oid));
    }
    let wanted = positions(parent, names)?;
    for (at, position) in wanted.iter().enumerate() {
        if wanted.iter().skip(at + 1).any(|p| p == position) {
            return Err(invalid(
                "foreign key referenced-columns list must not contain duplicates",
            ));
        }
    }
    let mut deferrable = false;
    // Partial indexes and those on expressions do not hold every row's key.
    for index in parent.indexes.iter().filter(|i| i.unique && i.is_plain()) {
        let key = index.positions().unwrap_or_default();
        let same = key.len() == wanted.len() && wanted.iter().all(|p| key.contains(p));
        if same && !index.deferrable {
            return Ok((wanted, index.oid));
        }
        deferrable |= same;
    }
    if deferrable {
        return Err(unusable("unique constraint"));
    }
    Err(invalid(format!(
        "there is no unique constraint matching given keys for referenced table \"{}\"",
        parent.name
    )))
}

/// Fails with 42804 if the columns of a key cannot be compared.
pub(super) fn check_types(
    name: &str,
    child: &Relation,
    columns: &[usize],
    parent: &Relation,
    referenced: &[usize],
    types: TypeLookup<'_>,
) -> Result<()> {
    for (own, other) in columns.iter().zip(referenced) {
        let (Some(own), Some(other)) = (child.columns.get(*own), parent.columns.get(*other)) else {
            continue;
        };
        if key_types(own.ty.oid, other.ty.oid)?.is_none() {
            let shown = |ty: SqlType| types.format_type(SqlType::of(ty.oid));
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("foreign key constraint \"{name}\" cannot be implemented"),
            )
            .detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name,
                other.name,
                shown(own.ty),
                shown(other.ty)
            )));
        }
    }
    Ok(())
}

/// Fails for actions that would write to a generated column.
fn refuse_generated(child: &Relation, columns: &[usize], key: &NewForeign) -> Result<()> {
    let generated = |p: &usize| child.columns.get(*p).is_some_and(|c| c.generated);
    if !columns.iter().any(generated) {
        return Ok(());
    }
    let sets = |action| {
        matches!(
            action,
            ReferentialAction::SetNull | ReferentialAction::SetDefault
        )
    };
    let wrong = match (key.on_update, key.on_delete) {
        (update, _) if sets(update) || update == ReferentialAction::Cascade => "ON UPDATE",
        (_, delete) if sets(delete) => "ON DELETE",
        _ => return Ok(()),
    };
    Err(SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("invalid {wrong} action for foreign key constraint containing generated column"),
    ))
}

/// Adds a foreign key to the stored table `oid`; `fresh` if it is new and has no rows.
pub(super) async fn add(
    cx: &mut DdlContext<'_>,
    oid: RelationId,
    new: NewConstraint,
    fresh: bool,
) -> Result<()> {
    let NewConstraintKind::Foreign(key) = &new.kind else {
        return Ok(());
    };
    let parent = referenced_table(cx, &key.table, oid).await?;
    let child = relation(cx, oid)?;
    let columns = positions(&child, &key.columns)?;
    let mut set_columns = positions(&child, &key.set_columns)?;
    if let Some(at) = set_columns.iter().position(|p| !columns.contains(p)) {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "column \"{}\" referenced in ON DELETE SET action must be part of foreign key",
                key.set_columns.get(at).map_or("?", String::as_str)
            ),
        ));
    }
    // Named twice, a column is set once.
    let mut once = Vec::with_capacity(set_columns.len());
    set_columns.retain(|p| {
        !once.contains(p) && {
            once.push(*p);
            true
        }
    });
    let only = match (child.is_temporary(), parent.is_temporary()) {
        (true, false) => Some("temporary"),
        (false, true) => Some("permanent"),
        _ => None,
    };
    if let Some(only) = only {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("constraints on {only} tables may reference only {only} tables"),
        ));
    }
    let catalog = cx.catalog()?;
    if catalog.persistence_of(&parent) == 'u' && catalog.persistence_of(&child) == 'p' {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "constraints on permanent tables may reference only permanent tables",
        ));
    }
    refuse_generated(&child, &columns, key)?;
    let (referenced, index) = target(&parent, &key.referenced)?;
    // A table that is being made is its maker's.
    if !(fresh && parent.oid == oid) {
        cx.must_reference(&parent, &referenced)?;
    }
    if columns.len() != referenced.len() {
        return Err(invalid(
            "number of referencing and referenced columns for foreign key disagree",
        ));
    }
    let name = constraint_name(cx, &child, new.name.as_deref(), &key.columns)?;
    let catalog = cx.catalog()?;
    let types = cx.lookup(&catalog).types();
    check_types(&name, &child, &columns, &parent, &referenced, types)?;
    let foreign = ForeignKey {
        columns,
        table: parent.oid,
        referenced,
        index,
        on_update: key.on_update,
        on_delete: key.on_delete,
        set_columns,
        full: key.full,
    };
    let kind = ConstraintKind::Foreign(Box::new(foreign));
    let mut constraint = Constraint::new(cx.new_oid()?, name, kind);
    constraint.timing = new.timing;
    constraint.validated = fresh || !new.not_valid;
    if !fresh && !new.not_valid {
        validate(cx, &child, &constraint).await?;
    }
    let mut changed = Relation::clone(&*relation(cx, oid)?);
    changed.constraints.push(Arc::new(constraint));
    cx.update_relation(changed).await.map(drop)
}

/// Finds and locks the referenced table.
async fn referenced_table(
    cx: &mut DdlContext<'_>,
    name: &RangeVar,
    child: RelationId,
) -> Result<Arc<Relation>> {
    let parent = cx.named_table(name)?;
    let (oid, plain) = (parent.oid, &parent.name);
    match parent.kind {
        RelationKind::Table => {}
        RelationKind::Virtual(_) => return Err(system_relation(plain)),
        _ => {
            let message = format!("referenced relation \"{plain}\" is not a table");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
    }
    if oid == child {
        return relation(cx, oid);
    }
    match cx.lock_table(oid, TableLock::ShareRowExclusive).await? {
        Some((parent, _)) => Ok(parent),
        None => Err(no_relation(name)),
    }
}

fn constraint_name(
    cx: &mut DdlContext<'_>,
    child: &Relation,
    given: Option<&str>,
    columns: &[String],
) -> Result<String> {
    if let Some(given) = given {
        let name = given.to_string();
        if child.constraints.iter().any(|c| c.name == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_OBJECT,
                format!(
                    "constraint \"{name}\" for relation \"{}\" already exists",
                    child.name
                ),
            ));
        }
        return Ok(name);
    }
    let catalog = cx.catalog()?;
    let taken = |name: &str| {
        let name = (child.schema, name.to_owned());
        catalog.constraint_names.contains_key(&name)
    };
    let second = columns_part(columns.iter().map(String::as_str));
    Ok(free_name(&child.name, Some(&second), "fkey", taken))
}

/// Fails with 23503 if a stored row of `child` breaks the constraint. Locks the referenced table.
pub(crate) async fn validate(
    cx: &mut DdlContext<'_>,
    child: &Arc<Relation>,
    constraint: &Constraint,
) -> Result<()> {
    let Some(key) = constraint.foreign() else {
        return Ok(());
    };
    if key.table != child.oid {
        cx.lock_table(key.table, TableLock::RowShare).await?;
    }
    let catalog = cx.catalog()?;
    let rule = ForeignRule::new(&catalog, child, constraint, key)?;
    let engine = cx.store.engine().clone();
    let mut run = StatementContext {
        txn: cx.txn,
        params: &[],
        session: cx.session,
        catalog: &catalog,
        engine: &engine,
        cancel: cx.cancel,
        events: &mut *cx.events,
        work_mem_bytes: cx.work_mem_bytes,
        spill: cx.spill,
    };
    exec::validate(&mut run, &rule).await
}

/// After the type of a column changed: foreign keys on either side must still make sense, and their rows fit.
pub(super) async fn recheck(
    cx: &mut DdlContext<'_>,
    table: RelationId,
    position: usize,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let concerned = dependents(cx, &[table], |child, _, key| {
        (child.oid == table && key.columns.contains(&position))
            || (key.table == table && key.referenced.contains(&position))
    })?;
    for (child, constraint) in concerned {
        let Some(key) = constraint.foreign() else {
            continue;
        };
        let parent = catalog
            .relations
            .get(&key.table)
            .ok_or_else(|| SqlError::internal("a foreign key has lost its table"))?;
        let name = &constraint.name;
        let types = cx.lookup(&catalog).types();
        check_types(name, &child, &key.columns, parent, &key.referenced, types)?;
        if constraint.validated {
            validate(cx, &child, &constraint).await?;
        }
    }
    Ok(())
}

/// Foreign keys of and to these tables that `wanted` picks, oldest first.
pub(super) fn dependents(
    cx: &mut DdlContext<'_>,
    tables: &[RelationId],
    wanted: impl Fn(&Relation, &Constraint, &ForeignKey) -> bool,
) -> Result<Vec<(Arc<Relation>, Arc<Constraint>)>> {
    let catalog = cx.catalog()?;
    let mut found = Vec::new();
    for table in tables {
        let own = catalog.relations.get(table);
        let own = own
            .iter()
            .flat_map(|own| own.constraints.iter().map(move |c| (*own, c)));
        let all = own.chain(catalog.references_to(*table));
        for (child, constraint) in all {
            if let Some(key) = constraint.foreign()
                && wanted(child, constraint, key)
            {
                found.push((Arc::clone(child), Arc::clone(constraint)));
            }
        }
    }
    // A key between two of the tables is met twice.
    found.sort_by_key(|(_, c)| c.oid);
    found.dedup_by_key(|(_, c)| c.oid);
    Ok(found)
}

/// A foreign key's name in such messages.
pub(super) fn label(
    cx: &mut DdlContext<'_>,
    child: &Relation,
    constraint: &Constraint,
) -> Result<String> {
    let catalog = cx.catalog()?;
    let table = table_label(&catalog, cx.search_path, child);
    Ok(format!("constraint {} on table {table}", constraint.name))
}

/// Drops foreign keys that stand in the way of dropping `what` because they depend on `on`; 2BP01 unless `cascade`.
pub(super) async fn drop_dependents(
    cx: &mut DdlContext<'_>,
    found: Vec<(Arc<Relation>, Arc<Constraint>)>,
    cascade: bool,
    what: &str,
    on: &str,
) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let mut labels = Vec::new();
    for (child, constraint) in &found {
        labels.push(label(cx, child, constraint)?);
    }
    if !cascade {
        let lines: Vec<_> = labels
            .iter()
            .map(|l| format!("{l} depends on {on}"))
            .collect();
        return Err(still_used(what, &lines.join("\n")));
    }
    crate::cascade_messages::cascade_notice(cx, &labels);
    for (child, constraint) in found {
        drop_key(cx, child.oid, constraint.oid).await?;
    }
    Ok(())
}

/// Takes a foreign key out of its table.
pub(super) async fn drop_key(
    cx: &mut DdlContext<'_>,
    child: RelationId,
    constraint: Oid,
) -> Result<()> {
    let Some((child, _)) = cx.lock_table(child, TableLock::AccessExclusive).await? else {
        return Ok(());
    };
    cx.refuse_pending(child.oid, "ALTER TABLE")?;
    let mut changed = Relation::clone(&child);
    changed.constraints.retain(|c| c.oid != constraint);
    cx.update_relation(changed).await.map(drop)
}

/// ALTER TABLE ... ALTER CONSTRAINT, of a table that is locked.
pub(super) async fn alter_timing(
    name: &str,
    timing: Timing,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(at) = table.constraints.iter().position(|c| c.name == name) else {
        return Err(no_constraint(name, &table.name));
    };
    let mut changed = Relation::clone(table);
    if let Some(slot) = changed.constraints.get_mut(at) {
        let Some(key) = slot.foreign() else {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                    table.name
                ),
            ));
        };
        // Whoever deletes from the referenced table plans with the old timing until he has ended.
        if key.table != table.oid {
            cx.lock_table(key.table, TableLock::Share).await?;
        }
        let mut copy = Constraint::clone(slot);
        copy.timing = timing;
        *slot = Arc::new(copy);
    }
    cx.update_relation(changed).await.map(drop)
}
