//! Which rows of which tables a cursor's rows come from, for WHERE CURRENT OF.
//!
//! The plan of a cursor is made to give the numbers of these rows behind its own columns: of the tables whose rows it
//! locks, or else of the one table that it scans, if nothing but conditions, expressions and LIMIT stands between the
//! scan and the cursor. That is PostgreSQL's rule.

use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Node, OutputColumn, Plan};
use logstead_sql_types::RelationId;
use logstead_sql_types::value::{SqlType, oid};

/// A cursor's plan with the numbers of rows behind its columns.
pub(super) struct CurrentOfPlan {
    pub(super) plan: Plan,
    /// The table of each of these columns.
    pub(super) tables: Vec<RelationId>,
    /// The plan locks these rows.
    pub(super) locks: bool,
}

/// `plan` made to tell its rows; `None` if nobody can say which they are.
pub(super) fn current_of_plan(plan: &Plan) -> Option<CurrentOfPlan> {
    let mut plan = plan.clone();
    let width = plan.columns.len();
    let mut locks = false;
    let found = give(&mut plan, &mut locks)?;
    // In one order behind the cursor's columns, whatever else the plan gives.
    let columns = plan.columns.iter().take(width).cloned();
    let mut columns: Vec<OutputColumn> = columns.collect();
    let mut exprs: Vec<Expr> = (0..width)
        .map(|at| Expr::Column(at, columns[at].ty))
        .collect();
    for (_, at) in &found {
        exprs.push(row_number(*at));
        columns.push(hidden());
    }
    let plan = logstead_sql_plan::build::project(plan, exprs, columns);
    Some(CurrentOfPlan {
        plan,
        tables: found.into_iter().map(|(table, _)| table).collect(),
        locks,
    })
}

fn row_number(at: usize) -> Expr {
    Expr::Column(at, SqlType::of(oid::INT8))
}

fn hidden() -> OutputColumn {
    OutputColumn {
        name: String::new(),
        ty: SqlType::of(oid::INT8),
        domain: None,
        origin: None,
    }
}

/// Makes a node give row numbers: the tables, and where in its rows they are.
fn give(plan: &mut Plan, locks: &mut bool) -> Option<Vec<(RelationId, usize)>> {
    match &mut plan.node {
        Node::SeqScan(scan) | Node::IndexScan { scan, .. } => {
            if !std::mem::replace(&mut scan.row_id, true) {
                plan.columns.extend([hidden(), hidden()]);
            }
            Some(vec![(scan.table.oid, scan.columns.len())])
        }
        Node::LockRows { targets, .. } => {
            *locks = true;
            let found = targets.iter().map(|t| (t.table.oid, t.row_id));
            Some(found.collect())
        }
        Node::Filter { input, .. } | Node::Limit { input, .. } => {
            let found = give(input, locks)?;
            plan.columns.clone_from(&input.columns);
            Some(found)
        }
        Node::With { body, .. } => {
            let found = give(body, locks)?;
            plan.columns.clone_from(&body.columns);
            Some(found)
        }
        Node::Project { input, exprs } => {
            let mut found = give(input, locks)?;
            for (_, at) in &mut found {
                exprs.push(row_number(*at));
                *at = exprs.len() - 1;
                plan.columns.push(hidden());
            }
            Some(found)
        }
        _ => None,
    }
}
