//! Nodes that the planner puts on top of a plan: filters, projections, sorts, limits, and what they cost.

use crate::layout::Layout;
use crate::planner::Planner;
use crate::query::expr::Expr;
use crate::{JoinKind, Node, OutputColumn, Plan, SetOpKind, SortKey, cost};
use logstead_sql_types::value::{Datum, SqlType};

impl Planner<'_> {
    /// Conditions over a plan's row; identities are resolved here.
    pub(crate) fn filtered(&self, plan: Plan, conditions: Vec<Expr>, layout: &Layout) -> Plan {
        let share = self.share(conditions.iter(), plan.rows);
        let Some(condition) = crate::query::expr::and(conditions) else {
            return plan;
        };
        let rows = (plan.rows * share).max(1.0);
        let cost = plan.cost + plan.rows * cost::CONDITION;
        let columns = plan.columns.clone();
        let node = Node::Filter {
            input: Box::new(plan),
            condition: layout.resolve(condition),
        };
        Plan {
            node,
            columns,
            rows,
            cost,
        }
    }
}

/// New columns out of a plan's row; left out when nothing changes but names.
pub fn project(mut plan: Plan, exprs: Vec<Expr>, columns: Vec<OutputColumn>) -> Plan {
    let identity = exprs.len() == plan.columns.len()
        && exprs
            .iter()
            .enumerate()
            .all(|(i, e)| matches!(e, Expr::Column(index, _) if *index == i));
    if identity {
        plan.columns = columns;
        return plan;
    }
    let (rows, cost) = (plan.rows, plan.cost + plan.rows * 0.01);
    Plan {
        node: Node::Project {
            input: Box::new(plan),
            exprs,
        },
        columns,
        rows,
        cost,
    }
}

/// ORDER BY; keys are over the plan's row already.
pub fn sort(plan: Plan, keys: Vec<SortKey>) -> Plan {
    if keys.is_empty() {
        return plan;
    }
    let (rows, cost, columns) = (
        plan.rows,
        plan.cost + cost::sort(plan.rows),
        plan.columns.clone(),
    );
    Plan {
        node: Node::Sort {
            input: Box::new(plan),
            keys,
        },
        columns,
        rows,
        cost,
    }
}

/// LIMIT / OFFSET.
pub(crate) fn limit(plan: Plan, limit: Option<Expr>, offset: Option<Expr>) -> Plan {
    limit_with_ties(plan, limit, offset, Vec::new())
}

/// LIMIT / OFFSET, and with the last row those that agree with it in `ties`, which the plan is sorted by.
pub(crate) fn limit_with_ties(
    plan: Plan,
    limit: Option<Expr>,
    offset: Option<Expr>,
    ties: Vec<Expr>,
) -> Plan {
    if limit.is_none() && offset.is_none() {
        return plan;
    }
    let rows = limit_rows(limit.as_ref())
        .map_or(plan.rows, |l| l.min(plan.rows))
        .max(1.0);
    let (cost, columns) = (plan.cost, plan.columns.clone());
    Plan {
        node: Node::Limit {
            input: Box::new(plan),
            limit,
            offset,
            ties,
        },
        columns,
        rows,
        cost,
    }
}

/// What LIMIT says, if it is a number.
pub(crate) fn limit_rows(limit: Option<&Expr>) -> Option<f64> {
    match limit {
        Some(Expr::Const(Datum::Int8(n), _)) => Some(*n as f64),
        _ => None,
    }
}

/// Literal rows.
pub fn values(rows: Vec<Vec<Expr>>, columns: Vec<OutputColumn>) -> Plan {
    let count = rows.len() as f64;
    Plan {
        node: Node::Values(rows),
        columns,
        rows: count,
        cost: count * 0.01,
    }
}

/// UNION, INTERSECT, EXCEPT.
pub(crate) fn set_operation(
    kind: SetOpKind,
    all: bool,
    left: Plan,
    right: Plan,
    types: &[SqlType],
) -> Plan {
    let columns: Vec<OutputColumn> = left
        .columns
        .iter()
        .zip(types)
        .map(|(c, ty)| OutputColumn {
            domain: None,
            name: c.name.clone(),
            ty: *ty,
            origin: None,
        })
        .collect();
    let rows = match kind {
        SetOpKind::Union => left.rows + right.rows,
        SetOpKind::Intersect => left.rows.min(right.rows),
        SetOpKind::Except => left.rows,
    };
    let cost = left.cost + right.cost + rows * 0.01;
    let union_distinct = kind == SetOpKind::Union && !all;
    let node = Node::SetOp {
        kind,
        all: all || union_distinct,
        left: Box::new(left),
        right: Box::new(right),
    };
    let plan = Plan {
        node,
        columns: columns.clone(),
        rows,
        cost,
    };
    if union_distinct {
        return Plan {
            node: Node::Distinct(Box::new(plan)),
            columns,
            rows,
            cost: cost + rows * 0.01,
        };
    }
    plan
}

/// Whether a join kind gives left's columns only.
pub(crate) fn is_half(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Semi | JoinKind::Anti)
}
