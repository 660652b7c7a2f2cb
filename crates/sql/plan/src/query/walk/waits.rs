//! What a plan or an expression may have to wait for that is no row: functions that the session runs, advisory locks.

use super::{any, plan_exprs};
use crate::query::expr::Expr;
use crate::query::user_aggregate::Transitions;
use crate::{Node, Plan, UserAggregate};
use logstead_sql_func::{AdvisoryLockFunction, FunctionImpl, ServerFunction};
use std::sync::Arc;

/// Functions that wait for an advisory lock: `pg_advisory_lock`, `pg_advisory_lock_shared`, and those of transactions.
pub fn waits_for_advisory_lock(function: &logstead_sql_func::Function) -> bool {
    matches!(
        function.body,
        FunctionImpl::Server(ServerFunction::Advisory(AdvisoryLockFunction::Lock(_)))
    )
}

/// What evaluating it comes to may have to be waited for: a subquery, or an advisory lock.
pub fn may_wait(expr: &Expr) -> bool {
    any(expr, &|e| match e {
        Expr::Subquery(_) | Expr::SubLink(_) => true,
        Expr::Call { function, .. } => waits_for_advisory_lock(function),
        _ => false,
    })
}

/// Scans the rows of a function that the session runs. Expressions are not looked at.
pub(crate) fn scans_routine(plan: &Plan) -> bool {
    scans(plan, false)
}

/// Is a function of an aggregate run by the session?
pub(crate) fn runs_routine(user: &UserAggregate) -> bool {
    runs(user, false)
}

fn runs(user: &UserAggregate, volatile: bool) -> bool {
    user.any(&|e| matches!(e, Expr::Subquery(subquery) if scans(&subquery.plan, volatile)))
}

/// The same; of a volatile one only, if asked so.
fn scans(plan: &Plan, volatile: bool) -> bool {
    let called = |user: &Arc<UserAggregate>| runs(user, volatile);
    let own = match &plan.node {
        Node::RoutineScan { callee, .. } => !volatile || callee.volatile,
        Node::Aggregate { aggregates, .. } => aggregates
            .iter()
            .filter_map(|call| call.user.as_ref())
            .any(called),
        Node::Window { window, .. } => window
            .calls
            .iter()
            .filter_map(|call| call.user.as_ref())
            .any(called),
        _ => false,
    };
    own || { crate::instrumentation::children(plan).into_iter() }
        .any(|child| scans(child, volatile))
}

/// Are rows of such a function scanned in the plan, or in a subquery of one of its expressions?
fn calls(plan: &Plan, volatile: bool) -> bool {
    let within =
        |e: &Expr| matches!(e, Expr::Subquery(subquery) if scans(&subquery.plan, volatile));
    let mut found = scans(plan, volatile);
    plan_exprs(plan, 0, &mut |expr, _| {
        found = found || any(expr, &within);
    });
    found
}

/// Calls a function that the session runs, be it in a subquery of an expression.
pub fn has_routine(plan: &Plan) -> bool {
    calls(plan, false)
}

/// Calls a volatile function that the session runs, be it in a subquery of an expression.
pub fn calls_volatile(plan: &Plan) -> bool {
    calls(plan, true)
}

impl UserAggregate {
    /// Does one of its functions hold an expression of this kind?
    pub fn any(&self, wanted: &dyn Fn(&Expr) -> bool) -> bool {
        let all = self.plain.exprs();
        let mut all = all.chain(self.moving.iter().flat_map(Transitions::exprs));
        all.any(|expr| any(expr, wanted))
    }
}
