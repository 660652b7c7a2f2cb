//! Guesses about rows and costs. Costs are in PostgreSQL's unit (one sequential page read) scaled to rows in memory; only their
//! order matters.

use crate::expr::Expr;
use crate::func::{self, Comparison};

/// Rows assumed of a stored table that has fewer: plans are kept while tables grow.
pub(crate) const ROWS_MIN: f64 = 1_000.0;
/// Share of rows that equal a value.
pub(crate) const EQUAL: f64 = 0.005;
/// Share of rows on one side of a value.
pub(crate) const RANGE: f64 = 1.0 / 3.0;

/// Taking a row through a window.
pub(crate) const WINDOW: f64 = 0.02;

/// Reading a whole table.
pub(crate) fn seq_scan(rows: f64) -> f64 {
    1.0 + rows * 0.02
}

/// Reading `rows` rows through an index.
pub(crate) fn index_scan(rows: f64) -> f64 {
    0.3 + rows * 0.04
}

/// Sorting.
pub(crate) fn sort(rows: f64) -> f64 {
    let rows = rows.max(2.0);
    rows * rows.log2() * 0.01
}

/// Share of `rows` rows for which a condition holds.
pub(crate) fn selectivity(condition: &Expr, rows: f64) -> f64 {
    match condition {
        Expr::Call { function, .. } => match func::operator_class(function.oid) {
            Some((Comparison::Eq, _, _)) => EQUAL.max(1.0 / rows.max(1.0)).min(1.0),
            Some((Comparison::Ne, _, _)) => 0.995,
            Some(_) => RANGE,
            None => match function.name {
                "textlike" | "texticlike" | "textregexeq" | "texticregexeq" | "namelike" => 0.05,
                _ => 0.5,
            },
        },
        Expr::InList { list, negated, .. } => {
            let share = (list.len() as f64 * EQUAL).min(0.5);
            if *negated { 1.0 - share } else { share }
        }
        Expr::ArrayCompare { all: false, .. } => 0.05,
        Expr::And(all) => all.iter().map(|c| selectivity(c, rows)).product(),
        Expr::Or(all) => all
            .iter()
            .map(|c| selectivity(c, rows))
            .sum::<f64>()
            .min(0.9),
        Expr::Not(inner) => 1.0 - selectivity(inner, rows),
        Expr::IsNull(_, negated) => {
            if *negated {
                0.99
            } else {
                0.01
            }
        }
        _ => 0.5,
    }
}
