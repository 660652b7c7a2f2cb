//! How deep a plan is, and on how much stack it is run.
//!
//! Nodes and expressions are run, shown and dropped by functions that call themselves. A plan of more than [`SHALLOW`]
//! levels gets a stack of its own for that ([`logstead_sql_parse::on_enough_stack`]).

use super::{Plan, walk};
use crate::instrumentation::children;
use crate::query::expr::{Expr, Subquery};

/// Levels for which any stack has room.
const SHALLOW: usize = 100;
/// Stack for a level: what running one takes at most, where nothing is optimized.
const LEVEL_BYTES: usize = 64 << 10;

/// Stack for whoever runs, shows or drops a plan; 0 if any has it.
pub fn stack_bytes(plan: &Plan) -> usize {
    match levels(plan) {
        ..=SHALLOW => 0,
        deep => deep * LEVEL_BYTES,
    }
}

fn levels(plan: &Plan) -> usize {
    let mut expressions = 0;
    walk::plan_exprs(plan, 0, &mut |expr, _| {
        expressions = expressions.max(within(expr));
    });
    walk::change_exprs(plan, &mut |expr| {
        expressions = expressions.max(within(expr));
    });
    nodes(plan) + expressions
}

fn nodes(plan: &Plan) -> usize {
    let below = children(plan).into_iter().map(nodes).max();
    1 + below.unwrap_or(0)
}

fn within(expr: &Expr) -> usize {
    let mut below = match expr {
        Expr::Subquery(subquery) => {
            let subquery: &Subquery = subquery;
            levels(&subquery.plan)
        }
        _ => 0,
    };
    walk::children(expr, &mut |child| below = below.max(within(child)));
    1 + below
}
