//! Row security in statements: the conditions of policies, bound where a table stands.
//!
//! What USING says of rows that are there is the *guard* of a FROM item ([`super::Rel::guard`]): every scan of the item
//! asks it before any condition of the statement's own, in this order, and goes on to none of those for a row that it
//! refuses. So functions and errors of the statement see no row that its role does not, and the planner joins and looks
//! up as ever; a guard may be answered by an index, too. What is asked of rows that are written are checks, asked
//! before the table's own.
//!
//! Whose policies hold is decided as privileges are: for the role that runs the statement, or the owner of the view in
//! whose query the table stands. Columns that a policy names take no privileges; the tables that its subqueries read
//! take those of the same role, and have policies of their own.
//!
//! Invariant: a plan that was made with a table that has row security says so ([`Binder::role_matters`]), whoever it
//! was made for: it is good for that role only.

use super::scope::NsColumnSource;
use super::select::push_conjuncts;
use super::{Binder, COLUMN_BASE, Clause, ColId, Frame};
use crate::permissions::Bound;
use crate::query::expr::Expr;
use crate::{Check, CheckKind, Layout, Plan, PlanContext, PolicyCheck};
use logstead_sql_catalog::privileges::{AsOfRowSecurity, as_of_row_security, refuse_as_of};
use logstead_sql_catalog::{Policy, Relation, View};
use logstead_sql_parse::ast;
use logstead_sql_parse::{PolicyCommand, policy_expr};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// What the policies of a table say of a row: the one condition that the permissive ones come to, and those of the
/// restrictive ones by their names.
struct RowSecurityQuals {
    permissive: Expr,
    restrictive: Vec<(String, Expr)>,
}

/// Which condition of a policy is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyQualKind {
    Using,
    /// WITH CHECK, or USING where there is none.
    Check,
}

/// What INSERT asks of rows.
pub(super) struct InsertPolicies {
    /// Of those that are proposed.
    pub(super) proposed: Vec<Check>,
    /// Of those in the way that DO UPDATE would change.
    pub(super) conflicting: Vec<Check>,
    /// Of what it makes of them.
    pub(super) updated: Vec<Check>,
}

/// What MERGE asks of rows.
#[derive(Default)]
pub(super) struct MergePolicies {
    /// Of those that an UPDATE is to change.
    pub(super) updating: Vec<Check>,
    /// Of what it makes of them.
    pub(super) updated: Vec<Check>,
    /// Of those that are to be deleted.
    pub(super) deleting: Vec<Check>,
    /// Of those that are inserted.
    pub(super) inserted: Vec<Check>,
}

/// 42501 with `row_security` off, for a role, perhaps the owner, that is subject to policies.
pub fn refused_by_row_security(relation: &Relation, owner: bool) -> SqlError {
    let error = SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!(
            "query would be affected by row-level security policy for table \"{}\"",
            relation.name
        ),
    );
    match owner {
        true => error.hint("To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY."),
        false => error,
    }
}

fn truth(value: bool) -> Expr {
    Expr::Const(Datum::Bool(value), SqlType::of(oid::BOOL))
}

fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(Datum::Bool(true), _))
}

impl Binder<'_> {
    /// The role for which the policies of a table hold here; none if there are none, or the role is exempt. 42501 if
    /// they would and `row_security` is off.
    pub(super) fn secured_for(&mut self, relation: &Relation) -> Result<Option<RoleId>> {
        if !self.secures {
            return Ok(None);
        }
        let role = self
            .uses
            .as_role
            .unwrap_or_else(|| self.cx.session.current_role());
        let catalog = self.cx.catalog;
        if catalog.past.is_some() {
            return self.secured_in_past(relation, role).map(|()| None);
        }
        if !relation.security.enabled {
            return Ok(None);
        }
        self.role_matters = true;
        let acl_checker = catalog.acl_checker(&catalog.roles);
        let Some(owner) = acl_checker.is_secured_for(role, relation) else {
            return Ok(None);
        };
        if !self.cx.session.row_security() {
            return Err(refused_by_row_security(relation, owner));
        }
        Ok(Some(role))
    }

    /// Who reads the past does so with the privileges of the present, and policies of the present may name what the
    /// past did not have: a table that has row security now, or had it then, is read by those only who are exempt. What
    /// is found here holds for now: `SessionContext::may_use` asks again whenever the plan is run.
    fn secured_in_past(&mut self, relation: &Relation, role: RoleId) -> Result<()> {
        let Some(now) = self.cx.session.present_catalog() else {
            return Err(refuse_as_of(relation));
        };
        let security = as_of_row_security(relation, role, now.acl_checker(&now.roles));
        self.role_matters |= security != AsOfRowSecurity::None;
        match security {
            AsOfRowSecurity::None | AsOfRowSecurity::Exempt => Ok(()),
            AsOfRowSecurity::Subject => Err(refuse_as_of(relation)),
        }
    }

    /// A FROM item over a table: what its role sees of it.
    pub(super) fn guard_item(&mut self, rel: usize, relation: &Arc<Relation>) -> Result<()> {
        self.range.rels[rel].as_role = self.uses.as_role;
        self.guard(rel, relation, &[PolicyCommand::Select])
    }

    /// Rows of an item are locked: policies for UPDATE hold, too.
    pub(super) fn guard_locked(&mut self, rel: usize, relation: &Arc<Relation>) -> Result<()> {
        let role = self.range.rels[rel].as_role;
        let before = std::mem::replace(&mut self.uses.as_role, role);
        let done = self.guard(rel, relation, &[PolicyCommand::Update]);
        self.uses.as_role = before;
        done
    }

    /// The target of UPDATE, DELETE or MERGE, once all that names its columns is bound.
    pub(super) fn guard_target(
        &mut self,
        rel: usize,
        relation: &Arc<Relation>,
        command: Option<PolicyCommand>,
    ) -> Result<()> {
        let mut commands: Vec<PolicyCommand> = command.into_iter().collect();
        if self.target_is_read() {
            commands.push(PolicyCommand::Select);
        }
        self.as_target(|b| b.guard(rel, relation, &commands))
    }

    fn guard(
        &mut self,
        rel: usize,
        relation: &Arc<Relation>,
        commands: &[PolicyCommand],
    ) -> Result<()> {
        let Some(role) = self.secured_for(relation)? else {
            return Ok(());
        };
        let (first, width) = (self.range.rels[rel].first, self.range.rels[rel].width);
        // What only a policy names takes no privilege.
        let named: Vec<bool> = (first..first + width)
            .map(|id| self.info(id).named)
            .collect();
        let mut guard = Vec::new();
        for command in commands {
            let ruled = self.ruled(relation, *command, PolicyQualKind::Using, role, first)?;
            let restrictive = ruled
                .restrictive
                .into_iter()
                .map(|(_, condition)| condition);
            for condition in restrictive.chain([ruled.permissive]) {
                push_conjuncts(condition, &mut guard);
            }
        }
        for (id, named) in (first..first + width).zip(named) {
            self.range.columns[id - COLUMN_BASE].named = named;
        }
        self.range.rels[rel].guard.extend(guard);
        Ok(())
    }

    /// What UPDATE asks of the rows that it makes.
    pub(super) fn update_policies(&mut self, relation: &Arc<Relation>) -> Result<Vec<Check>> {
        let read = self.target_is_read();
        self.as_target(|b| {
            let mut checks = Vec::new();
            b.checks_of(
                relation,
                PolicyCommand::Update,
                PolicyQualKind::Check,
                PolicyCheck::NewRow,
                &mut checks,
            )?;
            if read {
                b.checks_of(
                    relation,
                    PolicyCommand::Select,
                    PolicyQualKind::Using,
                    PolicyCheck::NewRow,
                    &mut checks,
                )?;
            }
            Ok(checks)
        })
    }

    /// What INSERT asks, `updates` if it is one with DO UPDATE.
    pub(super) fn insert_policies(
        &mut self,
        relation: &Arc<Relation>,
        updates: bool,
    ) -> Result<InsertPolicies> {
        use PolicyCheck as C;
        use PolicyCommand as P;
        let read = self.target_is_read();
        self.as_target(|b| {
            let mut all = InsertPolicies {
                proposed: Vec::new(),
                conflicting: Vec::new(),
                updated: Vec::new(),
            };
            b.checks_of(
                relation,
                P::Insert,
                PolicyQualKind::Check,
                C::NewRow,
                &mut all.proposed,
            )?;
            if read {
                b.checks_of(
                    relation,
                    P::Select,
                    PolicyQualKind::Using,
                    C::NewRow,
                    &mut all.proposed,
                )?;
            }
            if updates {
                b.checks_of(
                    relation,
                    P::Update,
                    PolicyQualKind::Using,
                    C::Conflicting,
                    &mut all.conflicting,
                )?;
                b.checks_of(
                    relation,
                    P::Update,
                    PolicyQualKind::Check,
                    C::NewRow,
                    &mut all.updated,
                )?;
                if read {
                    b.checks_of(
                        relation,
                        P::Select,
                        PolicyQualKind::Using,
                        C::Conflicting,
                        &mut all.conflicting,
                    )?;
                    b.checks_of(
                        relation,
                        P::Select,
                        PolicyQualKind::Using,
                        C::NewRow,
                        &mut all.updated,
                    )?;
                }
            }
            Ok(all)
        })
    }

    /// What MERGE asks: policies for UPDATE and DELETE fail instead of hiding rows, since what is done with a row is
    /// decided late.
    pub(super) fn merge_policies(&mut self, relation: &Arc<Relation>) -> Result<MergePolicies> {
        use PolicyCheck as C;
        use PolicyCommand as P;
        let read = self.target_is_read();
        self.as_target(|b| {
            let mut all = MergePolicies::default();
            b.checks_of(
                relation,
                P::Update,
                PolicyQualKind::Using,
                C::Target,
                &mut all.updating,
            )?;
            b.checks_of(
                relation,
                P::Update,
                PolicyQualKind::Check,
                C::NewRow,
                &mut all.updated,
            )?;
            if read {
                b.checks_of(
                    relation,
                    P::Select,
                    PolicyQualKind::Using,
                    C::NewRow,
                    &mut all.updated,
                )?;
            }
            b.checks_of(
                relation,
                P::Delete,
                PolicyQualKind::Using,
                C::Target,
                &mut all.deleting,
            )?;
            b.checks_of(
                relation,
                P::Insert,
                PolicyQualKind::Check,
                C::NewRow,
                &mut all.inserted,
            )?;
            Ok(all)
        })
    }

    fn checks_of(
        &mut self,
        relation: &Arc<Relation>,
        command: PolicyCommand,
        asked: PolicyQualKind,
        kind: PolicyCheck,
        out: &mut Vec<Check>,
    ) -> Result<()> {
        let Some(role) = self.secured_for(relation)? else {
            return Ok(());
        };
        // Columns of a row that no scan gives.
        let first = COLUMN_BASE + self.range.columns.len();
        for column in &relation.columns {
            self.column(column.name.as_str().into(), column.ty, None, usize::MAX);
        }
        let layout = Layout::new((first..first + relation.columns.len()).collect());
        let ruled = self.ruled(relation, command, asked, role, first)?;
        let all = [(String::new(), ruled.permissive)]
            .into_iter()
            .chain(ruled.restrictive);
        for (name, condition) in all.filter(|(_, condition)| !is_true(condition)) {
            // NULL lets no row through.
            let mut holds = Expr::IsBool {
                arg: Box::new(condition),
                value: Some(true),
                negated: false,
            };
            self.put_over_row(&mut holds, &layout)?;
            out.push(Check {
                name,
                expr: holds,
                kind: CheckKind::Policy(kind),
            });
        }
        Ok(())
    }

    /// The conditions of a table's policies over columns from `first` on. Without a permissive one no row is let
    /// through.
    fn ruled(
        &mut self,
        relation: &Arc<Relation>,
        command: PolicyCommand,
        asked: PolicyQualKind,
        role: RoleId,
        first: ColId,
    ) -> Result<RowSecurityQuals> {
        let catalog = Arc::clone(self.cx.catalog);
        let acl_checker = catalog.acl_checker(&catalog.roles);
        let holds = |policy: &&Arc<Policy>| {
            let member = |own: &RoleId| acl_checker.members.has_privileges_of(role, *own);
            policy.is_about(command) && (policy.is_everybodys() || policy.roles.iter().any(member))
        };
        let condition = |policy: &Policy| match asked {
            PolicyQualKind::Check if policy.check.is_some() => policy.check.clone(),
            _ => policy.using.clone(),
        };
        let all = relation.security.policies.iter().filter(holds);
        let all = all.filter_map(|policy| Some((policy, condition(policy)?)));
        let (granting, restricting): (Vec<_>, Vec<_>) =
            all.partition(|(policy, _)| policy.permissive);
        // A condition that decides nothing is not bound, so that nobody needs the rights that it takes: without a
        // permissive policy no row is let through, whatever the restrictive ones say, and beside one that lets all rows
        // through the other permissive ones say nothing.
        let mut restrictive = Vec::new();
        if !granting.is_empty() {
            for (policy, condition) in restricting {
                let bound = self.policy_condition(relation, &condition, first)?;
                restrictive.push((policy.name.clone(), bound));
            }
        }
        restrictive.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut permissive: Vec<Option<Expr>> = vec![None; granting.len()];
        let reads_others = |(_, condition): &(&Arc<Policy>, Arc<View>)| condition.sources.len() > 1;
        for others in [false, true] {
            for (bound, policy) in permissive.iter_mut().zip(&granting) {
                if reads_others(policy) == others {
                    let condition = self.policy_condition(relation, &policy.1, first)?;
                    if is_true(&condition) {
                        return Ok(RowSecurityQuals {
                            permissive: truth(true),
                            restrictive,
                        });
                    }
                    *bound = Some(condition);
                }
            }
        }
        let mut permissive: Vec<Expr> = permissive.into_iter().flatten().collect();
        let permissive = match permissive.len() {
            0 => truth(false),
            1 => permissive.swap_remove(0),
            _ => Expr::Or(permissive),
        };
        Ok(RowSecurityQuals {
            permissive,
            restrictive,
        })
    }

    /// Binds a condition of a policy over the columns of its table from `first` on.
    fn policy_condition(
        &mut self,
        relation: &Arc<Relation>,
        condition: &Arc<View>,
        first: ColId,
    ) -> Result<Expr> {
        if self.expanding.contains(&relation.oid) {
            return Err(SqlError::new(
                SqlState::new(b"42P17"),
                format!(
                    "infinite recursion detected in policy for relation \"{}\"",
                    relation.name
                ),
            ));
        }
        let role = self.uses.as_role;
        let whole = std::mem::replace(&mut self.whole_conditions, false);
        let outer_joins = std::mem::take(&mut self.outer_joins);
        let top = std::mem::replace(&mut self.top, false);
        let bound = self.stored_body(relation.oid, condition, role, |b, tree| {
            let expr = policy_expr(tree)
                .ok_or_else(|| SqlError::internal("a policy without a condition"))?;
            b.frames.push(Frame::new());
            let bound = b.over_row(relation, condition, first, |b| {
                b.in_clause(Clause::Policy, |b| b.condition_of(expr, "POLICY"))
            });
            b.frames.pop();
            bound
        });
        self.top = top;
        self.outer_joins = outer_joins;
        self.whole_conditions = whole;
        bound
    }

    /// Puts the row of a policy's table into the innermost frame, named as the policy knew it.
    pub(super) fn over_row<T>(
        &mut self,
        relation: &Arc<Relation>,
        condition: &View,
        first: ColId,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let what = (0..relation.columns.len()).map(|i| NsColumnSource::Column(first + i));
        let item =
            self.relation_names(relation, what.collect(), None, condition.sources.first())?;
        self.frame()?.ns.push(item);
        bind(self)
    }

    /// Does the statement read columns of its target, so that policies for SELECT hold?
    fn target_is_read(&self) -> bool {
        self.uses
            .target
            .first()
            .is_some_and(|number| self.is_read(*number))
    }

    /// Binds as who owns the place where the table under the target stands.
    fn as_target<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let role = self.target_role();
        let before = std::mem::replace(&mut self.uses.as_role, role);
        let bound = bind(self);
        self.uses.as_role = before;
        bound
    }
}

/// What CREATE POLICY must know of a condition.
pub struct PolicyQuery {
    /// The columns of its own table that it uses.
    pub used: Vec<usize>,
    /// The rest, as of a view's query; its plan is none.
    pub query: super::ViewQuery,
}

/// Binds a condition of CREATE or ALTER POLICY. `text` is what its spans count in.
pub fn bind_policy(
    expr: &ast::Expr,
    text: &str,
    relation: &Arc<Relation>,
    cx: &PlanContext<'_>,
) -> Result<Bound<PolicyQuery>> {
    let mut binder = Binder::new(cx, text);
    binder.secures = false;
    binder.recorded = Some(Vec::new());
    binder.inlines = false;
    let (first, width) = binder.relation_frame(relation, None)?;
    let bound = binder.in_clause(Clause::Policy, |b| b.condition_of(expr, "POLICY"));
    binder.frames.pop();
    bound?;
    let used = (0..width).filter(|i| binder.info(first + i).used);
    let used = used.collect();
    let query = binder.view_query(&Plan::nothing())?;
    Ok(binder.into_bound_expression(PolicyQuery { used, query }))
}

/// The condition of a policy as it is shown.
pub fn policy_shown(
    relation: &Arc<Relation>,
    condition: &Arc<View>,
    cx: &PlanContext<'_>,
) -> Result<ast::Expr> {
    let shown = super::viewdef::stored_query_shown(relation, condition, cx)?;
    policy_output(&shown).ok_or_else(|| SqlError::internal("a policy without a condition"))
}

fn policy_output(query: &ast::SelectStmt) -> Option<ast::Expr> {
    logstead_sql_parse::policy_expr(query).cloned()
}
