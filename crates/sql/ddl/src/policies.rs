//! CREATE, ALTER and DROP POLICY, COMMENT ON POLICY, and ALTER TABLE ... ROW LEVEL SECURITY. Which policies hold
//! for a statement is decided in `plan::bind::policy`.

use super::expressions::with_planner;
use super::object_address::{name_and_relation, unexpected_object};
use super::{DdlContext, view};
use crate::pg_catalog::calls::QualifiedName;
use crate::relations::{no_relation, system_relation, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::role::acl::ACL_ID_PUBLIC;
use logstead_sql_catalog::{
    Policy, Relation, RelationKind, RowSecurity, View, ViewObject, ViewSource,
};
use logstead_sql_parse::PolicyCommand;
use logstead_sql_parse::ast::{
    AlterPolicyStmt, AlterTableCmd, AnyName, CreatePolicyStmt, DropStmt, Expr, Name, RenameStmt,
    RoleSpec, RoleSpecKind, TextRange,
};
use logstead_sql_plan::bind;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_sql_types::{RelationId, RoleId};
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

/// Has the table no policy of this name? Then there is nothing to own.
pub(super) fn finds_nothing(name: &str, table: &Relation) -> bool {
    matches!(table.kind, RelationKind::Table) && table.security.policy(name).is_none()
}

/// The table that a statement names; none if it is not there and need not be.
fn table_of(
    name: &impl QualifiedName,
    missing_ok: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Relation>>> {
    let Some((oid, plain)) = cx.find_relation(name, missing_ok)? else {
        return Ok(None);
    };
    let catalog = cx.catalog()?;
    match catalog.relations.get(&oid) {
        Some(table) if matches!(table.kind, RelationKind::Table) => Ok(Some(Arc::clone(table))),
        Some(table) if matches!(table.kind, RelationKind::Virtual(_)) => {
            Err(system_relation(&plain))
        }
        _ => Err(wrong_kind(&plain, "a table")),
    }
}

/// The table that a statement changes a policy of, locked.
async fn locked_table(name: &impl QualifiedName, cx: &mut DdlContext<'_>) -> Result<Arc<Relation>> {
    let table = table_of(name, false, cx)?.ok_or_else(|| no_relation(name))?;
    let locked = cx.lock_table(table.oid, TableLock::AccessExclusive).await?;
    let (table, _) = locked.ok_or_else(|| no_relation(name))?;
    must_own(&table, "table", cx)?;
    Ok(table)
}

/// Runs CREATE POLICY.
pub(super) async fn create(stmt: &CreatePolicyStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let table = locked_table(&stmt.table, cx).await?;
    let (using, check) = (stmt.qual.as_ref(), stmt.with_check.as_ref());
    refuse_clauses(stmt.command, using.is_some(), check.is_some(), true)?;
    let roles = named_roles(&stmt.roles, cx).await?;
    let using = condition(using, stmt.qual_range, &table, cx).await?;
    let check = condition(check, stmt.with_check_range, &table, cx).await?;
    let name = &*stmt.policy_name;
    if table.security.policy(name).is_some() {
        return Err(taken(name, &table.name));
    }
    let policy = Policy {
        oid: cx.new_oid()?,
        name: name.to_string(),
        command: stmt.command,
        permissive: stmt.permissive,
        roles,
        using,
        check,
    };
    change(&table, cx, |security| {
        security.policies.push(Arc::new(policy));
    })
    .await
}

/// Runs ALTER POLICY.
pub(super) async fn alter(stmt: &AlterPolicyStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let table = locked_table(&stmt.table, cx).await?;
    let (using, check) = (stmt.qual.as_ref(), stmt.with_check.as_ref());
    let mut policy = policy_of(&stmt.policy_name, &table)?;
    refuse_clauses(policy.command, using.is_some(), check.is_some(), false)?;
    if !stmt.roles.is_empty() {
        policy.roles = named_roles(&stmt.roles, cx).await?;
    }
    if using.is_some() {
        policy.using = condition(using, stmt.qual_range, &table, cx).await?;
    }
    if check.is_some() {
        policy.check = condition(check, stmt.with_check_range, &table, cx).await?;
    }
    replace(&table, policy, cx).await
}

/// Runs ALTER POLICY ... RENAME TO.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (name, table) = name_and_relation(&stmt.object)?;
    let table = locked_table(table, cx).await?;
    let new = stmt.newname.to_string();
    if table.security.policy(&new).is_some() {
        return Err(taken(&new, &table.name));
    }
    let mut policy = policy_of(name, &table)?;
    policy.name = new;
    replace(&table, policy, cx).await
}

/// Runs DROP POLICY.
pub(super) async fn drop(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let [object] = stmt.objects.as_slice() else {
        return Err(unexpected_object());
    };
    let (name, of) = name_and_relation(object)?;
    if cx.skips_schema(of, stmt.missing_ok)? {
        return Ok(());
    }
    let Some(table) = table_of(of, stmt.missing_ok, cx)? else {
        return Ok(());
    };
    if finds_nothing(name, &table) {
        return absent(name, &table, stmt.missing_ok, cx);
    }
    let locked = cx.lock_table(table.oid, TableLock::AccessExclusive).await?;
    let (table, _) = locked.ok_or_else(|| no_relation(of))?;
    must_own(&table, "relation", cx)?;
    // It may have been dropped during the wait.
    if finds_nothing(name, &table) {
        return absent(name, &table, stmt.missing_ok, cx);
    }
    change(&table, cx, |security| {
        security.policies.retain(|policy| *policy.name != **name);
    })
    .await
}

/// Notice or error for a policy that is not there.
fn absent(name: &str, table: &Relation, missing_ok: bool, cx: &mut DdlContext<'_>) -> Result<()> {
    let table = &table.name;
    if !missing_ok {
        return Err(no_policy(name, table));
    }
    let message = format!("policy \"{name}\" for relation \"{table}\" does not exist, skipping");
    cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    Ok(())
}

/// The policy that COMMENT is on.
pub(super) fn commented(name: &Name, table: &AnyName, cx: &mut DdlContext<'_>) -> Result<Oid> {
    let table = table_of(table, false, cx)?.ok_or_else(|| no_relation(table))?;
    let policy = policy_of(name, &table)?.oid;
    must_own(&table, "relation", cx)?;
    Ok(policy)
}

fn policy_of(name: &str, table: &Relation) -> Result<Policy> {
    let policy = table.security.policy(name);
    let policy = policy.ok_or_else(|| no_policy(name, &table.name))?;
    Ok(Policy::clone(policy))
}

/// 42501 unless the table is the role's; PostgreSQL has two words for it.
fn must_own(relation: &Relation, word: &str, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, relation.oid))? {
        true => Ok(()),
        false => Err(not_owner(relation, word)),
    }
}

/// That error.
pub(super) fn not_owner(relation: &Relation, word: &str) -> SqlError {
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

/// The roles of TO, which stay until the policy is stored; `ACL_ID_PUBLIC` is everybody.
async fn named_roles(names: &[RoleSpec], cx: &mut DdlContext<'_>) -> Result<Vec<RoleId>> {
    if names.iter().any(|name| name.kind == RoleSpecKind::Public) {
        if names.len() > 1 {
            cx.notices.push(super::Notice {
                severity: "WARNING",
                code: SqlState::INVALID_PARAMETER_VALUE,
                message: "ignoring specified roles other than PUBLIC".to_owned(),
                detail: None,
                hint: Some("All roles are members of the PUBLIC role."),
            });
        }
        return Ok(vec![ACL_ID_PUBLIC]);
    }
    let mut roles = Vec::with_capacity(names.len());
    for name in names {
        roles.push(cx.find_role(name)?.oid);
    }
    cx.lock_named_roles(&roles).await?;
    Ok(roles)
}

/// A condition as it is kept; what it reads is locked.
async fn condition(
    clause: Option<&Expr>,
    range: TextRange,
    relation: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<View>>> {
    let Some(expr) = clause else {
        return Ok(None);
    };
    let range = range_of(range)?;
    let (bound, catalog) = loop {
        let catalog = cx.catalog()?;
        let text = cx.text;
        let bound = with_planner(cx, &catalog, |plan| {
            bind::bind_policy(expr, text, relation, plan)
        })?;
        let reads = bound.tables().read.clone();
        let bound = cx.may_define(bound)?;
        for (_, routine, _) in &bound.query.routines {
            super::routines::lock_routine(*routine, cx).await?;
        }
        for read in &reads {
            cx.lock_storage(read.storage, TableLock::AccessShare)
                .await?;
        }
        if cx.catalog()?.version == catalog.version {
            break (bound, catalog);
        }
    };
    let live = relation.columns.iter().enumerate();
    let own = ViewSource {
        object: ViewObject::Relation(relation.oid),
        schema: relation.schema_name.clone(),
        name: relation.name.clone(),
        columns: live
            .filter(|(_, column)| !column.dropped)
            .map(|(at, column)| (at, column.name.clone()))
            .collect(),
        used: bound.used,
    };
    let types = logstead_sql_catalog::type_name::types_in(expr, cx.lookup(&catalog));
    let around = format!("SELECT (\n) FROM {}", logstead_sql_catalog::source_name(0));
    let around = around.split_once('\n').unwrap_or_default();
    let (query, sources) = view::numbered_text(
        range,
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

/// Where a condition in parentheses stands in the text.
pub(super) fn range_of(range: TextRange) -> Result<(usize, usize)> {
    let range = range.bytes();
    range.ok_or_else(|| SqlError::internal("a condition that stands nowhere"))
}

async fn change(
    table: &Relation,
    cx: &mut DdlContext<'_>,
    edit: impl FnOnce(&mut RowSecurity),
) -> Result<()> {
    let now = cx.catalog()?.relations.get(&table.oid).cloned();
    let now = now.ok_or_else(|| no_relation([Name::from(table.name.as_str())].as_slice()))?;
    let mut changed = Relation::clone(&now);
    edit(&mut changed.security);
    cx.update_relation(changed).await.map(std::mem::drop)
}

async fn replace(table: &Relation, policy: Policy, cx: &mut DdlContext<'_>) -> Result<()> {
    change(table, cx, |security| {
        for old in &mut security.policies {
            if old.oid == policy.oid {
                *old = Arc::new(policy.clone());
            }
        }
    })
    .await
}

/// Drops a policy that something was dropped under.
pub(super) async fn delete(table: RelationId, policy: Oid, cx: &mut DdlContext<'_>) -> Result<()> {
    let Some(table) = cx.catalog()?.relations.get(&table).cloned() else {
        return Ok(());
    };
    let mut changed = Relation::clone(&table);
    changed.security.policies.retain(|old| old.oid != policy);
    cx.update_relation(changed).await.map(std::mem::drop)
}

/// Takes a role out of all policies; those that name nobody else go.
pub(super) async fn forget_role(role: RoleId, cx: &mut DdlContext<'_>) -> Result<()> {
    let names = |policy: &Arc<Policy>| policy.roles.contains(&role);
    let catalog = cx.catalog()?;
    let tables = catalog.relations.values();
    let mut naming: Vec<RelationId> = tables
        .filter(|table| table.security.policies.iter().any(names))
        .map(|table| table.oid)
        .collect();
    naming.sort_unstable();
    for oid in naming {
        let Some((table, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
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

/// ALTER TABLE ... ROW LEVEL SECURITY; false for any other action.
pub(super) async fn alter_table(
    cmd: &AlterTableCmd,
    table: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<bool> {
    let mut changed = table.clone();
    let security = &mut changed.security;
    match cmd {
        AlterTableCmd::EnableRowSecurity => security.enabled = true,
        AlterTableCmd::DisableRowSecurity => security.enabled = false,
        AlterTableCmd::ForceRowSecurity => security.forced = true,
        AlterTableCmd::NoForceRowSecurity => security.forced = false,
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
    let label = crate::relations::table_label(&catalog, cx.search_path, owner);
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot alter type of a column used in a policy definition",
    )
    .detail(format!(
        "policy {} on table {label} depends on column \"{column}\"",
        policy.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::Stmt;

    fn part(text: &str, expr: Option<&Expr>, range: TextRange) -> Result<Option<String>> {
        if expr.is_none() {
            return Ok(None);
        }
        let (start, end) = range_of(range)?;
        Ok(text.get(start..end).map(str::to_owned))
    }

    #[test]
    fn the_texts_of_conditions_are_without_their_parentheses() -> Result<()> {
        let policy = "CREATE POLICY p ON t USING ( ((a) = 'é') ) WITH CHECK (b /* c */)";
        let trigger = "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW WHEN (new.a > (1)) EXECUTE FUNCTION f()";
        for text in [policy, trigger] {
            let stmt = logstead_sql_parse::parse(text)?.remove(0).statement;
            match &**stmt {
                Stmt::CreatePolicy(create) => {
                    let using = part(text, create.qual.as_ref(), create.qual_range)?;
                    assert_eq!(using.as_deref(), Some("((a) = 'é')"));
                    let check = create.with_check.as_ref();
                    let check = part(text, check, create.with_check_range)?;
                    assert_eq!(check.as_deref(), Some("b"));
                }
                Stmt::CreateTrig(create) => {
                    let when = part(text, create.when_clause.as_ref(), create.when_range)?;
                    assert_eq!(when.as_deref(), Some("new.a > (1)"));
                }
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }
}
