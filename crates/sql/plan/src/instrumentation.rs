//! What EXPLAIN ANALYZE shows of each node. The executor measures it (`exec::operator`), `explain` prints it.

use super::{Node, Plan};

/// Measurements of one plan node; times include the nodes below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Rows given, over all loops.
    pub rows: u64,
    /// Times it was started; 0 if never.
    pub loops: u64,
    /// Time spent, by the session's clock.
    pub time_us: u64,
    /// How it did what it did.
    pub detail: NodeDetail,
}

/// What some kinds of nodes tell besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeDetail {
    /// Nothing.
    #[default]
    None,
    /// A sort.
    Sort {
        /// PostgreSQL's name of the method.
        method: &'static str,
        /// On disk, or in memory.
        disk: bool,
        /// How much of that it took.
        kib: u64,
    },
    /// A hash join.
    Hash {
        /// Parts that were joined one after the other, and how many would have been enough by what was expected.
        batches: u64,
        /// The most that its table held.
        memory_kib: u64,
    },
    /// A hash table of groups.
    Groups {
        /// Parts that were grouped one after the other.
        batches: u64,
        /// The most that its table held.
        memory_kib: u64,
        /// The most that was on disk.
        disk_kib: u64,
    },
}

/// A node's inputs, in the order in which statistics list them: a node comes before its inputs (pre-order). WITH:
/// definition, recursive term, body. Subqueries inside expressions are not listed.
pub fn children(plan: &Plan) -> Vec<&Plan> {
    match &plan.node {
        Node::OneRow
        | Node::Values(_)
        | Node::SeqScan(_)
        | Node::RowScan { .. }
        | Node::IndexScan { .. }
        | Node::VirtualScan { .. }
        | Node::FunctionScan { .. }
        | Node::RoutineScan { .. }
        | Node::CteScan { .. } => Vec::new(),
        Node::ProjectSet { input, .. }
        | Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Aggregate { input, .. }
        | Node::Sort { input, .. }
        | Node::Window { input, .. }
        | Node::Limit { input, .. }
        | Node::Distinct(input)
        | Node::DistinctOn { input, .. }
        | Node::LockRows { input, .. } => vec![input],
        Node::NestedLoop { left, right, .. }
        | Node::HashJoin { left, right, .. }
        | Node::MergeJoin { left, right, .. }
        | Node::SetOp { left, right, .. } => {
            vec![left, right]
        }
        Node::With {
            definition,
            recursive,
            body,
            ..
        } => {
            let mut plans: Vec<&Plan> = vec![definition];
            plans.extend(recursive.iter().map(|(plan, _)| &**plan));
            plans.push(body);
            plans
        }
        Node::Insert(insert) => vec![&insert.source],
        Node::Update(update) => vec![&update.source],
        Node::Delete(delete) => vec![&delete.source],
        Node::Merge(merge) => vec![&merge.source],
    }
}

/// Statistics of a node that never ran and of all below it.
pub fn never_ran(plan: &Plan, out: &mut Vec<NodeStats>) {
    out.push(NodeStats::default());
    for child in children(plan) {
        never_ran(child, out);
    }
}

/// Number of columns in a node's output rows.
pub fn width(plan: &Plan) -> usize {
    match &plan.node {
        Node::OneRow => 0,
        Node::Values(rows) => rows.first().map_or(plan.columns.len(), Vec::len),
        Node::SeqScan(scan) | Node::IndexScan { scan, .. } | Node::RowScan { scan, .. } => {
            scan.columns.len() + if scan.row_id { 2 } else { 0 }
        }
        Node::VirtualScan { columns, .. } => columns.len(),
        Node::FunctionScan { .. } | Node::RoutineScan { .. } | Node::CteScan { .. } => {
            plan.columns.len()
        }
        Node::ProjectSet { exprs, .. } | Node::Project { exprs, .. } => exprs.len(),
        Node::Filter { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Distinct(input)
        | Node::DistinctOn { input, .. }
        | Node::LockRows { input, .. } => width(input),
        Node::NestedLoop {
            left, right, kind, ..
        }
        | Node::HashJoin {
            left, right, kind, ..
        }
        | Node::MergeJoin {
            left, right, kind, ..
        } => {
            use super::JoinKind::{Anti, Semi};
            if matches!(kind, Semi | Anti) {
                width(left)
            } else {
                width(left) + width(right)
            }
        }
        Node::Aggregate {
            keys,
            aggregates,
            sets,
            ..
        } => keys.len() + aggregates.len() + sets.as_ref().map_or(0, |sets| sets.calls.len()),
        Node::Window { input, window } => width(input) + window.calls.len(),
        Node::SetOp { left, .. } => width(left),
        Node::With { body, .. } => width(body),
        Node::Insert(insert) => insert.returning.as_ref().map_or(0, Vec::len),
        Node::Update(update) => update.returning.as_ref().map_or(0, Vec::len),
        Node::Delete(delete) => delete.returning.as_ref().map_or(0, Vec::len),
        Node::Merge(_) => 0,
    }
}
