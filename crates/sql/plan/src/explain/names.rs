//! What the columns of a node's rows are called.

use super::{Names, Reader, expr_text, qualified};
use crate::instrumentation::children;
use crate::query::expr::Expr;
use crate::{AggregateCall, Node, Plan, ROW_NUMBER, WindowCall, WindowFunction};
use logstead_sql_types::value::user::TypeLookup;

impl Reader<'_> {
    /// Names of the row a node's expressions see.
    pub(super) fn input_names(&self, plan: &Plan) -> Names {
        match &plan.node {
            Node::SeqScan(_)
            | Node::RowScan { .. }
            | Node::IndexScan { .. }
            | Node::VirtualScan { .. } => self.names(plan),
            Node::NestedLoop { left, right, .. }
            | Node::HashJoin { left, right, .. }
            | Node::MergeJoin { left, right, .. } => {
                let mut names = self.names(left);
                names.extend(self.names(right));
                names
            }
            Node::With { body, .. } => self.names(body),
            _ => children(plan)
                .first()
                .map(|c| self.names(c))
                .unwrap_or_default(),
        }
    }

    /// Names of a node's output columns.
    pub(super) fn names(&self, plan: &Plan) -> Names {
        match &plan.node {
            Node::SeqScan(scan) | Node::IndexScan { scan, .. } | Node::RowScan { scan, .. } => {
                let mut names: Names = scan
                    .columns
                    .iter()
                    .filter_map(|&p| scan.table.columns.get(p))
                    .map(|c| qualified(&scan.alias, &c.name, self.qualify))
                    .collect();
                if scan.row_id {
                    names.extend(["ctid".to_owned(), "xmin".to_owned()]);
                }
                names
            }
            Node::VirtualScan {
                table,
                columns,
                alias,
                ..
            } => columns
                .iter()
                .map(|&p| match (table.columns.get(p), p) {
                    (Some((name, _)), _) => qualified(alias, name, self.qualify),
                    (None, ROW_NUMBER) => "ctid".to_owned(),
                    (None, _) => "xmin".to_owned(),
                })
                .collect(),
            Node::Project { input, exprs } | Node::ProjectSet { input, exprs } => {
                let names = self.names(input);
                exprs
                    .iter()
                    .map(|e| expr_text(e, &names, &[], self.types))
                    .collect()
            }
            Node::Aggregate {
                input,
                keys,
                aggregates,
                sets,
            } => {
                let names = self.names(input);
                let keys: Names = keys
                    .iter()
                    .map(|k| expr_text(k, &names, &[], self.types))
                    .collect();
                let calls = sets.iter().flat_map(|sets| &sets.calls).map(|asked| {
                    let asked = asked.iter().filter_map(|key| keys.get(*key));
                    let asked: Vec<&str> = asked.map(String::as_str).collect();
                    format!("GROUPING({})", asked.join(", "))
                });
                let calls: Names = calls.collect();
                let aggregates = aggregates
                    .iter()
                    .map(|a| aggregate_text(a, &names, self.types));
                keys.iter()
                    .cloned()
                    .chain(aggregates)
                    .chain(calls)
                    .collect()
            }
            Node::Window { input, window } => {
                let mut names = self.names(input);
                let calls = window
                    .calls
                    .iter()
                    .map(|call| window_text(call, &names, self.types));
                let calls: Names = calls.collect();
                names.extend(calls);
                names
            }
            Node::NestedLoop {
                left, right, kind, ..
            }
            | Node::HashJoin {
                left, right, kind, ..
            }
            | Node::MergeJoin {
                left, right, kind, ..
            } => {
                let mut names = self.names(left);
                if !crate::planner::build::is_half(*kind) {
                    names.extend(self.names(right));
                }
                names
            }
            Node::Filter { input, .. }
            | Node::Sort { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct(input)
            | Node::DistinctOn { input, .. }
            | Node::LockRows { input, .. } => self.names(input),
            Node::With { body, .. } => self.names(body),
            Node::FunctionScan { alias, .. } | Node::RoutineScan { alias, .. } => plan
                .columns
                .iter()
                .map(|c| qualified(alias, &c.name, self.qualify))
                .collect(),
            Node::CteScan { name, .. } => plan
                .columns
                .iter()
                .map(|c| qualified(name, &c.name, self.qualify))
                .collect(),
            Node::Values(rows) => {
                let width = rows.first().map_or(plan.columns.len(), Vec::len);
                (1..=width)
                    .map(|n| qualified("*VALUES*", &format!("column{n}"), self.qualify))
                    .collect()
            }
            _ => plan.columns.iter().map(|c| c.name.clone()).collect(),
        }
    }
}

/// Whether an expression over a node's row is more than a column of a relation.
pub(super) fn is_computed(expr: &Expr, below: &Plan) -> bool {
    let &Expr::Column(index, _) = expr else {
        return !matches!(expr, Expr::Outer { .. });
    };
    let column = |index| Expr::Column(index, expr.ty());
    match &below.node {
        Node::Project { input, exprs } | Node::ProjectSet { input, exprs } => {
            exprs.get(index).is_some_and(|e| is_computed(e, input))
        }
        Node::Aggregate { input, keys, .. } => {
            keys.get(index).is_none_or(|key| is_computed(key, input))
        }
        Node::Window { input, .. } => {
            index >= crate::instrumentation::width(input) || is_computed(expr, input)
        }
        Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } => {
            is_computed(expr, input)
        }
        Node::NestedLoop { left, right, .. }
        | Node::HashJoin { left, right, .. }
        | Node::MergeJoin { left, right, .. } => {
            let width = crate::instrumentation::width(left);
            match index.checked_sub(width) {
                None => is_computed(expr, left),
                Some(index) => is_computed(&column(index), right),
            }
        }
        _ => false,
    }
}

fn aggregate_text(call: &AggregateCall, input: &Names, types: TypeLookup<'_>) -> String {
    let args: Vec<String> = call
        .args
        .iter()
        .map(|a| expr_text(a, input, &[], types))
        .collect();
    let args = if args.is_empty() {
        "*".to_owned()
    } else {
        args.join(", ")
    };
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    format!("{}({distinct}{args})", call.name())
}

fn window_text(call: &WindowCall, input: &Names, types: TypeLookup<'_>) -> String {
    let args: Vec<String> = call
        .args
        .iter()
        .map(|a| expr_text(a, input, &[], types))
        .collect();
    let args = match call.function {
        WindowFunction::Aggregate(_) if args.is_empty() => "*".to_owned(),
        _ => args.join(", "),
    };
    let filter = call.filter.as_ref().map_or_else(String::new, |filter| {
        format!(" FILTER (WHERE {})", expr_text(filter, input, &[], types))
    });
    format!("{}({args}){filter} OVER (?)", call.name())
}
