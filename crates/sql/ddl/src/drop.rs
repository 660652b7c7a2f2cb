//! DROP and TRUNCATE: relations and schemas are dropped here, other objects by the file of their kind. What
//! depends on them, and goes with CASCADE, is `drop_dependents`'.

use super::drop_dependents;
use super::object_address::{dotted_names, name_of, noun};
use super::{DdlContext, extensions, foreign_keys, permissions, policies, sequence, triggers};
use crate::cascade_messages::{cascade_notice, still_used};
use crate::column_defaults::{default_users, drop_default};
use crate::drop_routine;
use crate::drop_type;
use crate::find_dependents;
use crate::missing_object::missing_object;
use crate::object_address::ObjectAddress;
use crate::relations::{system_relation, wrong_kind};
use logstead_engine::{RowLock, TableLock};
use logstead_sql_catalog::classes::is_required_schema;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::routine::Routine;
use logstead_sql_catalog::temporary::{ALIAS, is_temporary_schema};
use logstead_sql_catalog::{ConstraintKind, Relation, RelationKind};
use logstead_sql_parse::ast::{AnyName, DropBehavior, DropStmt, ObjectType, TruncateStmt};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{self, UserTypeClass};
use logstead_sql_types::{FunctionId, RelationId, TypeId};
use logstead_types::SqlState;
use std::collections::HashSet;
use std::sync::Arc;

/// Runs DROP (`RemoveObjects`).
pub(super) async fn execute(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let cascade = stmt.behavior == DropBehavior::Cascade;
    match stmt.remove_type {
        ObjectType::Table
        | ObjectType::Index
        | ObjectType::Sequence
        | ObjectType::View
        | ObjectType::MatView => {}
        ObjectType::Schema => {
            let names = dotted_names(&stmt.objects)?;
            return drop_schemas(&names, stmt.missing_ok, cascade, cx).await;
        }
        ObjectType::Function
        | ObjectType::Procedure
        | ObjectType::Routine
        | ObjectType::Aggregate => return drop_routine::drop(stmt, cx).await,
        ObjectType::Type | ObjectType::Domain => return drop_type::drop(stmt, cx).await,
        ObjectType::Policy => return policies::drop(stmt, cx).await,
        ObjectType::Trigger => return triggers::drop(stmt, cx).await,
        ObjectType::Extension => return extensions::drop(stmt, cx).await,
        _ => return drop_absent(stmt, cx),
    }
    let mut targets = Vec::new();
    for object in &stmt.objects {
        if let Some(oid) = find(stmt.remove_type, name_of(object)?, stmt.missing_ok, cx)?
            && !targets.contains(&oid)
        {
            targets.push(oid);
        }
    }
    together(stmt.remove_type, targets, cascade, cx).await
}

/// What nobody can make: that it is not there is said as of other objects.
fn drop_absent(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    for name in dotted_names(&stmt.objects)? {
        let (what, code) = (noun(stmt.remove_type), SqlState::UNDEFINED_OBJECT);
        missing_object(&name, what, code, stmt.missing_ok, cx)?;
    }
    Ok(())
}

/// Drops objects of one kind.
pub(super) async fn together(
    kind: ObjectType,
    targets: Vec<RelationId>,
    cascade: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    // Tables dropped together take their sequences with them whatever the order.
    let dropping: HashSet<RelationId> = targets.iter().copied().collect();
    if kind != ObjectType::Index {
        for oid in &targets {
            if kind != ObjectType::Sequence {
                cx.lock_table(*oid, TableLock::AccessExclusive).await?;
                cx.refuse_pending(*oid, "DROP TABLE")?;
            }
        }
        // Whose they are may have changed during a wait.
        let catalog = cx.catalog()?;
        for relation in targets.iter().filter_map(|oid| catalog.relations.get(oid)) {
            cx.must_own_or_schema(relation)?;
        }
        let objects: Vec<ObjectAddress> = targets
            .iter()
            .copied()
            .map(ObjectAddress::Relation)
            .collect();
        drop_dependents::report_dependents(&objects, None, cascade, cx).await?;
    }
    for oid in targets {
        match kind {
            ObjectType::View | ObjectType::MatView => drop_view(oid, cx).await?,
            ObjectType::Table => drop_table(oid, cascade, &dropping, cx).await?,
            ObjectType::Sequence => drop_sequence(oid, cascade, &dropping, cx).await?,
            _ => drop_index(oid, cascade, cx).await?,
        }
    }
    Ok(())
}

/// OID of an object of the right kind; `None` if it does not exist and need not.
fn find(
    kind: ObjectType,
    name: &AnyName,
    if_exists: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<RelationId>> {
    let (schema, plain) = cx.lookup_parts(name)?;
    if cx.skips_schema(name, if_exists)? {
        return Ok(None);
    }
    let catalog = cx.catalog()?;
    let Some(oid) = catalog.object_by_name(schema.as_deref(), &plain, cx.search_path) else {
        let code = if kind == ObjectType::Index {
            SqlState::UNDEFINED_OBJECT
        } else {
            SqlState::UNDEFINED_TABLE
        };
        missing_object(&plain, noun(kind), code, if_exists, cx)?;
        return Ok(None);
    };
    let found = match catalog.relations.get(&oid).map(|r| &r.kind) {
        None => ObjectType::Index,
        Some(RelationKind::Table) => ObjectType::Table,
        Some(RelationKind::Sequence(_)) => ObjectType::Sequence,
        Some(RelationKind::View(_)) => ObjectType::View,
        Some(RelationKind::Materialized(..)) => ObjectType::MatView,
        Some(RelationKind::Virtual(_)) => return Err(system_relation(&plain)),
    };
    if found == kind {
        return Ok(Some(oid));
    }
    let article = |kind| if kind == ObjectType::Index { "an" } else { "a" };
    let upper = noun(found).to_uppercase();
    Err(
        wrong_kind(&plain, &format!("{} {}", article(kind), noun(kind))).hint(format!(
            "Use DROP {upper} to remove {} {}.",
            article(found),
            noun(found)
        )),
    )
}

async fn drop_view(oid: RelationId, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.lock_table(oid, TableLock::AccessExclusive).await? {
        Some((view, _)) => cx.delete_relation(&view).await,
        None => Ok(()),
    }
}

async fn drop_table(
    oid: RelationId,
    cascade: bool,
    dropping: &HashSet<RelationId>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some((table, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
        return Ok(());
    };
    cx.delete_relation(&table).await?;
    for column in table.columns.iter().filter(|c| !c.dropped) {
        let Some(owned) = column.sequence else {
            continue;
        };
        let catalog = cx.catalog()?;
        let Some(sequence) = catalog.relations.get(&owned).cloned() else {
            continue;
        };
        let users: Vec<_> = default_users(&catalog, owned, None)
            .into_iter()
            .filter(|(user, _)| !dropping.contains(&user.oid))
            .collect();
        if !cascade && let Some((user, position)) = users.first() {
            let name = user.columns.get(*position).map_or("?", |c| c.name.as_str());
            let detail = format!(
                "default value for column {name} of table {} depends on sequence {}",
                user.name, sequence.name
            );
            return Err(still_used(&format!("table {}", table.name), &detail));
        }
        for (user, position) in users {
            drop_default(cx, user.oid, position).await?;
        }
        cx.delete_relation(&sequence).await?;
    }
    Ok(())
}

async fn drop_sequence(
    oid: RelationId,
    cascade: bool,
    dropping: &HashSet<RelationId>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let Some(sequence) = catalog.relations.get(&oid).cloned() else {
        return Ok(());
    };
    let owner = sequence::owner_of(cx, oid)?;
    if let Some((table, position)) = &owner
        && let Some(column) = table.columns.get(*position)
        && column.identity.is_some()
    {
        let (column, table) = (&column.name, &table.name);
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot drop sequence {} because column {column} of table {table} requires it",
                sequence.name
            ),
        )
        .hint(format!(
            "You can drop column {column} of table {table} instead."
        )));
    }
    let users: Vec<_> = default_users(&catalog, oid, None)
        .into_iter()
        .filter(|(table, _)| !dropping.contains(&table.oid))
        .collect();
    if !cascade && !users.is_empty() {
        let lines: Vec<_> = users
            .iter()
            .map(|(table, position)| {
                let column = table
                    .columns
                    .get(*position)
                    .map_or("?", |c| c.name.as_str());
                format!(
                    "default value for column {column} of table {} depends on sequence {}",
                    table.name, sequence.name
                )
            })
            .collect();
        return Err(still_used(
            &format!("sequence {}", sequence.name),
            &lines.join("\n"),
        ));
    }
    if let [(table, position)] = users.as_slice() {
        let column = table
            .columns
            .get(*position)
            .map_or("?", |c| c.name.as_str());
        let message = format!(
            "drop cascades to default value for column {column} of table {}",
            table.name
        );
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    }
    for (table, position) in users {
        drop_default(cx, table.oid, position).await?;
    }
    if let Some((table, position)) = owner {
        drop_default_owner(cx, table.oid, position, oid).await?;
    }
    cx.delete_relation(&sequence).await
}

/// A column that owned a dropped sequence without using it as its default forgets it.
async fn drop_default_owner(
    cx: &mut DdlContext<'_>,
    table: RelationId,
    position: usize,
    sequence: RelationId,
) -> Result<()> {
    let Some((table, _)) = cx.lock_table(table, TableLock::AccessExclusive).await? else {
        return Ok(());
    };
    let mut changed = Relation::clone(&table);
    match changed.columns.get_mut(position) {
        Some(column) if column.sequence == Some(sequence) => column.sequence = None,
        _ => return Ok(()),
    }
    cx.update_relation(changed).await.map(drop)
}

async fn drop_index(oid: RelationId, cascade: bool, cx: &mut DdlContext<'_>) -> Result<()> {
    let Some(table) = cx.catalog()?.index_tables.get(&oid).copied() else {
        return Ok(());
    };
    let Some((table, _)) = cx.lock_table(table, TableLock::AccessExclusive).await? else {
        return Ok(());
    };
    let Some(index) = table.indexes.iter().find(|i| i.oid == oid).cloned() else {
        return Ok(());
    };
    if !cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, table.schema))? {
        cx.must_own_index(&table, &index.name)?;
    }
    let owner = table.constraints.iter().find(
        |c| matches!(c.kind, ConstraintKind::PrimaryKey(i) | ConstraintKind::Unique(i) if i == oid),
    );
    if let Some(constraint) = owner {
        let (name, table) = (&constraint.name, &table.name);
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot drop index {} because constraint {name} on table {table} requires it",
                index.name
            ),
        )
        .hint(format!(
            "You can drop constraint {name} on table {table} instead."
        )));
    }
    cx.refuse_pending(table.oid, "DROP INDEX")?;
    let needed = foreign_keys::dependents(cx, &[table.oid], |_, _, key| key.index == oid)?;
    let what = format!("index {}", index.name);
    foreign_keys::drop_dependents(cx, needed, cascade, &what, &what).await?;
    let table = crate::relations::relation(cx, table.oid)?;
    cx.delete_index(&table, &index).await
}

pub(super) async fn drop_schemas(
    names: &[String],
    if_exists: bool,
    cascade: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    for name in names {
        let catalog = cx.catalog()?;
        // What a session calls its own is no schema's name.
        let named = catalog.schema(name).filter(|_| name != ALIAS);
        let Some(schema) = named.cloned() else {
            missing_object(name, "schema", SqlState::INVALID_SCHEMA_NAME, if_exists, cx)?;
            continue;
        };
        if is_required_schema(schema.oid) {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop schema {name} because it is required by the database system"),
            ));
        }
        // Who makes something in it is waited for, and what was made is seen; who comes later waits, and finds no
        // schema.
        if !cx.lock_schema(schema.oid, RowLock::Update).await? {
            missing_object(name, "schema", SqlState::INVALID_SCHEMA_NAME, if_exists, cx)?;
            continue;
        }
        if !cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, schema.oid))? {
            return Err(denied(format!("must be owner of schema {name}")));
        }
        let catalog = cx.catalog()?;
        let mut inside: Vec<_> = catalog
            .dependent_relations(schema.oid)
            .into_iter()
            .filter(|r| r.schema == schema.oid)
            .cloned()
            .collect();
        inside.sort_unstable_by_key(|r| r.oid);
        // Sequences that columns own go with their tables.
        let owned: HashSet<RelationId> = inside
            .iter()
            .flat_map(|r| &r.columns)
            .filter_map(|c| c.sequence)
            .collect();
        inside.retain(|r| !owned.contains(&r.oid));
        let dropping: HashSet<RelationId> = inside.iter().map(|r| r.oid).collect();
        let types: Vec<TypeId> = catalog
            .dependent_types(schema.oid)
            .into_iter()
            .filter(|t| t.schema == schema.oid)
            .map(|t| t.oid)
            .collect();
        for ty in &types {
            cx.lock_type(*ty).await?;
        }
        let mut targets: Vec<ObjectAddress> = inside
            .iter()
            .map(|r| ObjectAddress::Relation(r.oid))
            .collect();
        targets.extend(types.iter().copied().map(ObjectAddress::Type));
        let inside_too = |r: &&Arc<Routine>| r.schema == schema.oid;
        let functions = catalog.dependent_routines(schema.oid).into_iter();
        let functions = functions.filter(inside_too);
        let functions: Vec<FunctionId> = functions.map(|routine| routine.oid).collect();
        for function in &functions {
            super::routines::lock_routine(*function, cx).await?;
        }
        targets.extend(functions.iter().copied().map(ObjectAddress::Routine));
        // From the oldest on, whatever they are.
        targets.sort_by_key(|target| match target {
            ObjectAddress::Relation(oid) => oid.get(),
            ObjectAddress::Type(oid) => oid.get(),
            ObjectAddress::Routine(oid) => oid.get(),
            _ => 0,
        });
        for relation in &inside {
            if !matches!(relation.kind, RelationKind::Sequence(_)) {
                cx.lock_table(relation.oid, TableLock::AccessExclusive)
                    .await?;
                cx.refuse_pending(relation.oid, "DROP TABLE")?;
            }
        }
        let catalog = cx.catalog()?;
        // Each relation, then what depends on it.
        let mut lines: Vec<(String, String)> = Vec::new();
        let mut found: Vec<(ObjectAddress, ObjectAddress)> = Vec::new();
        for target in &targets {
            if found.iter().any(|(object, _)| object == target) {
                continue;
            }
            let shown = match target {
                ObjectAddress::Type(ty) if user::class(*ty) == Some(UserTypeClass::Base) => {
                    format!("extension {}", catalog.types.type_name(*ty))
                }
                target => find_dependents::describe(&catalog, cx.search_path, *target),
            };
            lines.push((shown, format!("schema {name}")));
            found.push((*target, *target));
            for (object, on) in
                find_dependents::find_dependent_objects(&catalog, std::slice::from_ref(target))
            {
                let goes = match object {
                    ObjectAddress::Foreign(child, _)
                    | ObjectAddress::Column(child, _)
                    | ObjectAddress::Default(child, _)
                    | ObjectAddress::Constraint(child, _)
                    | ObjectAddress::Policy(child, _)
                    | ObjectAddress::Trigger(child, _)
                    | ObjectAddress::Index(child, _) => dropping.contains(&child),
                    _ => found.iter().any(|(known, _)| *known == object),
                };
                if goes {
                    continue;
                }
                let describe = |o| find_dependents::describe(&catalog, cx.search_path, o);
                lines.push((describe(object), describe(on)));
                found.push((object, on));
            }
        }
        if !lines.is_empty() && !cascade {
            let lines: Vec<_> = lines
                .iter()
                .map(|(what, on)| format!("{what} depends on {on}"))
                .collect();
            return Err(still_used(&format!("schema {name}"), &lines.join("\n")));
        }
        let labels: Vec<String> = lines.into_iter().map(|(what, _)| what).collect();
        cascade_notice(cx, &labels);
        // Views first, wherever they are: nothing may read what is gone.
        let outside = |o: &ObjectAddress| !targets.contains(o);
        let others: Vec<_> = found.iter().filter(|(o, _)| outside(o)).copied().collect();
        drop_dependents::drop_dependents(&others, cx).await?;
        for relation in inside {
            match relation.kind {
                RelationKind::Sequence(_) => {
                    drop_sequence(relation.oid, true, &dropping, cx).await?
                }
                RelationKind::View(_) | RelationKind::Materialized(..) => {
                    drop_view(relation.oid, cx).await?;
                }
                _ => drop_table(relation.oid, true, &dropping, cx).await?,
            }
        }
        for function in functions {
            if cx.catalog()?.routines.get(function).is_some() {
                super::routines::delete(function, cx).await?;
            }
        }
        for ty in types {
            super::types::delete(ty, cx).await?;
        }
        // What new objects in it would have had goes with it.
        let catalog = cx.catalog()?;
        let defaults = catalog.privileges.defaults.keys();
        let defaults: Vec<_> = defaults
            .filter(|key| key.1 == Some(schema.oid))
            .copied()
            .collect();
        for key in defaults {
            cx.store_default_privileges(key, None).await?;
        }
        // A session's own stays, empty: it is in no stored catalog.
        if !is_temporary_schema(&schema.name) {
            cx.delete_schema(schema.oid).await?;
        }
    }
    Ok(())
}

/// Locks the tables that TRUNCATE empties, with those that CASCADE adds, and asks whether it may.
pub(super) async fn truncated(
    truncate: &TruncateStmt,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<RelationId>> {
    let mut targets = Vec::new();
    for target in &truncate.relations {
        let (oid, plain) = cx.named_relation(target)?;
        match cx.catalog()?.relations.get(&oid).map(|r| &r.kind) {
            Some(RelationKind::Table) => {}
            Some(RelationKind::Virtual(_)) => return Err(system_relation(&plain)),
            _ => return Err(wrong_kind(&plain, "a table")),
        }
        if !targets.contains(&oid) {
            targets.push(oid);
        }
    }
    let cascade = truncate.behavior == DropBehavior::Cascade;
    let mut locked = 0;
    // Locking may wait, and what references the tables may be other tables afterwards.
    while let Some(oid) = targets.get(locked).copied() {
        cx.lock_table(oid, TableLock::AccessExclusive).await?;
        let relation = cx.catalog()?.relations.get(&oid).cloned();
        if let Some(relation) = relation {
            // Those that CASCADE adds, too.
            cx.with_acl_checker(|acl_checker, role| {
                permissions::may_truncate(&relation, acl_checker, role)
            })??;
        }
        cx.refuse_pending(oid, "TRUNCATE")?;
        locked += 1;
        if locked < targets.len() {
            continue;
        }
        let found = foreign_keys::dependents(cx, &targets, |child, _, key| {
            targets.contains(&key.table) && !targets.contains(&child.oid)
        })?;
        for (child, constraint) in found {
            if !cascade {
                let catalog = cx.catalog()?;
                let parent = constraint
                    .foreign()
                    .and_then(|key| catalog.relations.get(&key.table))
                    .map_or("?", |r| r.name.as_str());
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot truncate a table referenced in a foreign key constraint",
                )
                .detail(format!("Table \"{}\" references \"{parent}\".", child.name))
                .hint(format!(
                    "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                    child.name
                )));
            }
            if !targets.contains(&child.oid) {
                cx.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("truncate cascades to table \"{}\"", child.name),
                );
                targets.push(child.oid);
            }
        }
    }
    Ok(targets)
}

/// Runs TRUNCATE: every table gets a new, empty storage.
pub(super) async fn truncate(truncate: &TruncateStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let restart = truncate.restart_seqs;
    for oid in truncated(truncate, cx).await? {
        let Some((table, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
            continue;
        };
        if restart {
            for owned in table
                .columns
                .iter()
                .filter(|c| !c.dropped)
                .filter_map(|c| c.sequence)
            {
                let found = cx.catalog()?.relations.get(&owned).cloned();
                if let Some(sequence) = found
                    && let RelationKind::Sequence(def) = &sequence.kind
                {
                    cx.with_acl_checker(|acl_checker, role| {
                        acl_checker.must_own(role, &sequence)
                    })??;
                    sequence::restart(cx, &sequence, def.clone(), def.start, false).await?;
                }
            }
        }
        empty(&table, cx).await?;
    }
    Ok(())
}

/// Gives a table that is locked a new, empty storage.
pub(super) async fn empty(table: &Relation, cx: &mut DdlContext<'_>) -> Result<()> {
    let changed = super::distribution::new_storage(table, cx)?;
    for index in &changed.indexes {
        cx.attach(&changed, index).await?;
    }
    cx.state.unused(table.storage);
    cx.update_relation(changed).await.map(drop)
}
