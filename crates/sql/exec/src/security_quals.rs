//! Asks a [`SecurityQuals`] condition: the guard, then the statement's own.

use super::context::ExecutorContext;
use super::eval::holds;
use super::wait::Evaluated;
use crate::write_errors::check_violation;
use logstead_sql_catalog::Relation;
use logstead_sql_plan::Check;
use logstead_sql_plan::SecurityQuals;
use logstead_sql_types::value::Datum;

/// Is a row one that the statement wants? 42501 if the guard is one that refuses it; nothing behind what it does not
/// pass is evaluated.
pub(crate) fn passes<'a>(
    guarded: &'a SecurityQuals,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<bool> {
    if let Some(checks) = guarded.row_security() {
        check_policies(&checks.table, &checks.checks, row, cx)?;
    }
    match guarded.condition() {
        Some(condition) => holds(condition, row, cx),
        None => Ok(true),
    }
}

/// Row security over a full row: NULL is a violation.
pub(crate) fn check_policies<'a>(
    relation: &Relation,
    policies: &'a [Check],
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    for policy in policies {
        if !holds(&policy.expr, row, cx)? {
            return Err(check_violation(relation, policy, row, &[], cx.session).into());
        }
    }
    Ok(())
}
