//! CREATE, ALTER and DROP POLICY, COMMENT ON POLICY, and ALTER TABLE ... ROW LEVEL SECURITY.

use super::alter_table::{system_relation, wrong_kind};
use super::expressions::with_planner;
use super::objects::no_relation;
use super::{DdlContext, view};
use crate::pg_catalog::calls;
use logstead_engine::TableLock;
use logstead_sql_catalog::classes::{PG_CLASS, PG_POLICY};
use logstead_sql_catalog::rights::denied;
use logstead_sql_catalog::role::acl::PUBLIC;
use logstead_sql_catalog::{Policy, Relation, RelationKind, RowSecurity, View, ViewSource};
use logstead_sql_parse::lowered::AlterTableOperation as Op;
use logstead_sql_parse::{PolicyAction, PolicyClause, PolicyCommand, PolicyStatement, RoleName};
use logstead_sql_plan::bind;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use std::sync::Arc;

fn no_policy(name: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("policy \"{name}\" for table \"{table}\" does not exist"),
    )
}

fn taken(name: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("policy \"{name}\" for table \"{table}\" already exists"),
    )
}

/// Is it about a policy that the table has not, and says no more than so?
pub(super) fn finds_nothing(statement: &PolicyStatement, table: &Relation) -> bool {
    matches!(
        statement.action,
        PolicyAction::Drop { .. } | PolicyAction::Comment(_)
    ) && matches!(table.kind, RelationKind::Table)
        && table.security.policy(&statement.name).is_none()
}

fn skipped(statement: &PolicyStatement, table: &Relation, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = &statement.name;
    if !matches!(statement.action, PolicyAction::Drop { if_exists: true }) {
        return Err(no_policy(name, &table.name));
    }
    let table = &table.name;
    let message = format!("policy \"{name}\" for relation \"{table}\" does not exist, skipping");
    cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    Ok(())
}

/// Runs a statement about a policy.
pub(super) async fn execute(statement: &PolicyStatement, cx: &mut DdlContext<'_>) -> Result<()> {
    let PolicyStatement {
        name,
        table,
        action,
    } = statement;
    let (schema, plain) = calls::lookup_parts(table)?;
    let catalog = cx.catalog()?;
    let found = catalog.object_by_name(schema.as_deref(), &plain, cx.search_path);
    let Some(oid) = found else {
        if matches!(action, PolicyAction::Drop { if_exists: true }) {
            let message = format!("relation \"{plain}\" does not exist, skipping");
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        return Err(no_relation(table));
    };
    match catalog.relations.get(&oid).map(|r| &r.kind) {
        Some(RelationKind::Table) => {}
        Some(RelationKind::Virtual(_)) => return Err(system_relation(&plain)),
        _ => return Err(wrong_kind(&plain, "a table")),
    }
    if let Some(relation) = catalog.relations.get(&oid)
        && finds_nothing(statement, relation)
    {
        return skipped(statement, relation, cx);
    }
    if let PolicyAction::Comment(text) = action {
        let relation = table_now(oid, table, cx)?;
        must_own(&relation, action, cx)?;
        let policy = relation.security.policy(name);
        let policy = policy.ok_or_else(|| no_policy(name, &relation.name))?.oid;
        let text = text.as_deref().filter(|text| !text.is_empty());
        return cx.put_comment(PG_POLICY, policy, 0, text).await;
    }
    let Some((relation, _)) = cx.lock_table(oid, TableLock::Exclusive).await? else {
        return Err(no_relation(table));
    };
    must_own(&relation, action, cx)?;
    let at = relation
        .security
        .policies
        .iter()
        .position(|policy| policy.name == *name);
    match action {
        PolicyAction::Create {
            permissive,
            command,
            roles,
            using,
            check,
        } => {
            refuse_clauses(*command, using.is_some(), check.is_some(), true)?;
            let roles = named_roles(roles, cx).await?;
            let using = condition(using.as_ref(), &relation, cx).await?;
            let check = condition(check.as_ref(), &relation, cx).await?;
            if at.is_some() {
                return Err(taken(name, &relation.name));
            }
            let policy = Policy {
                oid: cx.new_oid()?,
                name: cx.name(name),
                command: *command,
                permissive: *permissive,
                roles,
                using,
                check,
            };
            change(oid, table, cx, |security| {
                security.policies.push(Arc::new(policy));
            })
            .await
        }
        PolicyAction::Drop { .. } => {
            // It may have been dropped during the wait.
            if at.is_none() {
                return skipped(statement, &relation, cx);
            }
            change(oid, table, cx, |security| {
                security.policies.retain(|policy| policy.name != *name);
            })
            .await
        }
        PolicyAction::Rename(new) => {
            let new = cx.name(new);
            if relation.security.policy(&new).is_some() {
                return Err(taken(&new, &relation.name));
            }
            let old = at.and_then(|at| relation.security.policies.get(at));
            let old = old.ok_or_else(|| no_policy(name, &relation.name))?;
            let mut policy = Policy::clone(old);
            policy.name = new;
            replace(oid, table, policy, cx).await
        }
        PolicyAction::Alter {
            roles,
            using,
            check,
        } => {
            let old = at.and_then(|at| relation.security.policies.get(at));
            let old = old.ok_or_else(|| no_policy(name, &relation.name))?;
            refuse_clauses(old.command, using.is_some(), check.is_some(), false)?;
            let mut policy = Policy::clone(old);
            if let Some(roles) = roles {
                policy.roles = named_roles(roles, cx).await?;
            }
            if using.is_some() {
                policy.using = condition(using.as_ref(), &relation, cx).await?;
            }
            if check.is_some() {
                policy.check = condition(check.as_ref(), &relation, cx).await?;
            }
            replace(oid, table, policy, cx).await
        }
        PolicyAction::Comment(_) => Ok(()),
    }
}

/// 42501 unless the table is the role's; PostgreSQL has two wordings of it.
fn must_own(relation: &Relation, action: &PolicyAction, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.judged(|judge, role| judge.owns(role, PG_CLASS, relation.oid))? {
        true => Ok(()),
        false => Err(not_owner(relation, action)),
    }
}

/// That error.
pub(super) fn not_owner(relation: &Relation, action: &PolicyAction) -> SqlError {
    let word = match action {
        PolicyAction::Drop { .. } | PolicyAction::Comment(_) => "relation",
        _ => "table",
    };
    denied(format!("must be owner of {word} {}", relation.name))
}

/// 42601 for a clause that says nothing of the command.
fn refuse_clauses(command: PolicyCommand, using: bool, check: bool, new: bool) -> Result<()> {
    let message = match (command, new) {
        (PolicyCommand::Select | PolicyCommand::Delete, true) if check => {
            "WITH CHECK cannot be applied to SELECT or DELETE"
        }
        (PolicyCommand::Select | PolicyCommand::Delete, false) if check => {
            "only USING expression allowed for SELECT, DELETE"
        }
        (PolicyCommand::Insert, _) if using => "only WITH CHECK expression allowed for INSERT",
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

/// The roles of TO, which stay until the policy is stored; 0 is PUBLIC.
async fn named_roles(names: &[RoleName], cx: &mut DdlContext<'_>) -> Result<Vec<Oid>> {
    if names.contains(&RoleName::Public) {
        if names.len() > 1 {
            cx.notices.push(super::Notice {
                severity: "WARNING",
                code: SqlState::INVALID_PARAMETER_VALUE,
                message: "ignoring specified roles other than PUBLIC".to_owned(),
                detail: None,
                hint: Some("All roles are members of the PUBLIC role."),
            });
        }
        return Ok(vec![PUBLIC]);
    }
    let mut roles = Vec::with_capacity(names.len());
    for name in names {
        roles.push(cx.find_role(name)?.oid);
    }
    cx.hold_roles(&roles).await?;
    Ok(roles)
}

/// A condition as it is kept; what it reads is locked.
async fn condition(
    clause: Option<&PolicyClause>,
    relation: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<View>>> {
    let Some(PolicyClause { expr, range }) = clause else {
        return Ok(None);
    };
    let (bound, catalog) = loop {
        let catalog = cx.catalog()?;
        let text = cx.text;
        let bound = with_planner(cx, &catalog, |plan| {
            bind::bind_policy(expr, text, relation, plan)
        })?;
        let reads = bound.tables().read.clone();
        let bound = cx.may_define(bound)?;
        for (_, routine, _) in &bound.query.routines {
            super::routines::hold(*routine, cx).await?;
        }
        for read in &reads {
            cx.lock_storage(read.storage, TableLock::Read).await?;
        }
        if cx.catalog()?.version == catalog.version {
            break (bound, catalog);
        }
    };
    let live = relation.columns.iter().enumerate();
    let own = ViewSource {
        relation: relation.oid,
        schema: relation.schema_name.clone(),
        name: relation.name.clone(),
        columns: live
            .filter(|(_, column)| !column.dropped)
            .map(|(at, column)| (at, column.name.clone()))
            .collect(),
        used: bound.used,
    };
    let types = logstead_sql_catalog::type_name::types_in(expr);
    let around = format!("SELECT (\n) FROM {}", logstead_sql_catalog::source_name(0));
    let around = around.split_once('\n').unwrap_or_default();
    let (query, sources) = view::numbered_text(
        *range,
        &types,
        vec![own],
        Some(around),
        &bound.query,
        cx.text,
        &catalog,
    )?;
    let view = View::new(0, query, sources, None);
    // Reads back as it was meant, before anybody relies on it.
    view.tree()?;
    Ok(Some(Arc::new(view)))
}

fn table_now(
    oid: Oid,
    name: &logstead_sql_parse::lowered::ObjectName,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<Relation>> {
    let found = cx.catalog()?.relations.get(&oid).cloned();
    found.ok_or_else(|| no_relation(name))
}

async fn change(
    oid: Oid,
    name: &logstead_sql_parse::lowered::ObjectName,
    cx: &mut DdlContext<'_>,
    edit: impl FnOnce(&mut RowSecurity),
) -> Result<()> {
    let mut changed = Relation::clone(&*table_now(oid, name, cx)?);
    edit(&mut changed.security);
    cx.update_relation(changed).await.map(drop)
}

async fn replace(
    oid: Oid,
    name: &logstead_sql_parse::lowered::ObjectName,
    policy: Policy,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    change(oid, name, cx, |security| {
        for old in &mut security.policies {
            if old.oid == policy.oid {
                *old = Arc::new(policy.clone());
            }
        }
    })
    .await
}

/// Drops a policy that something was dropped under.
pub(super) async fn delete(table: Oid, policy: Oid, cx: &mut DdlContext<'_>) -> Result<()> {
    let Some(table) = cx.catalog()?.relations.get(&table).cloned() else {
        return Ok(());
    };
    let mut changed = Relation::clone(&table);
    changed.security.policies.retain(|old| old.oid != policy);
    cx.update_relation(changed).await.map(drop)
}

/// Takes a role out of all policies; those that name nobody else go.
pub(super) async fn forget_role(role: Oid, cx: &mut DdlContext<'_>) -> Result<()> {
    let names = |policy: &Arc<Policy>| policy.roles.contains(&role);
    let catalog = cx.catalog()?;
    let tables = catalog.relations.values();
    let mut naming: Vec<Oid> = tables
        .filter(|table| table.security.policies.iter().any(names))
        .map(|table| table.oid)
        .collect();
    naming.sort_unstable();
    for oid in naming {
        let Some((table, _)) = cx.lock_table(oid, TableLock::Exclusive).await? else {
            continue;
        };
        let mut changed = Relation::clone(&table);
        for policy in &mut changed.security.policies {
            let mut without = Policy::clone(policy);
            without.roles.retain(|named| *named != role);
            *policy = Arc::new(without);
        }
        changed
            .security
            .policies
            .retain(|policy| !policy.roles.is_empty());
        cx.update_relation(changed).await?;
    }
    Ok(())
}

/// ALTER TABLE ... ROW LEVEL SECURITY; false for any other operation.
pub(super) async fn alter_table(
    operation: &Op,
    table: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<bool> {
    let mut changed = table.clone();
    let security = &mut changed.security;
    match operation {
        Op::EnableRowLevelSecurity => security.enabled = true,
        Op::DisableRowLevelSecurity => security.enabled = false,
        Op::ForceRowLevelSecurity => security.forced = true,
        Op::NoForceRowLevelSecurity => security.forced = false,
        _ => return Ok(false),
    }
    cx.update_relation(changed).await?;
    Ok(true)
}

/// 0A000 for a column that a policy names: its type stays.
pub(super) fn refuse_type_change(
    table: &Relation,
    position: usize,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let readers = catalog.dependent_relations(table.oid).into_iter();
    let all = readers.flat_map(|owner| {
        let policies = owner.security.policies.iter();
        policies.map(move |policy| (policy.oid, owner, policy))
    });
    let reading = all.filter(|(_, _, policy)| policy.reads(table.oid, Some(position)));
    let Some((_, owner, policy)) = reading.min_by_key(|(oid, ..)| *oid) else {
        return Ok(());
    };
    let column = table.columns.get(position).map_or("?", |c| c.name.as_str());
    let label = super::foreign::table_label(&catalog, cx.search_path, owner);
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot alter type of a column used in a policy definition",
    )
    .detail(format!(
        "policy {} on table {label} depends on column \"{column}\"",
        policy.name
    )))
}
