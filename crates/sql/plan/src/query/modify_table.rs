//! INSERT, UPDATE, DELETE and MERGE in the logical tree.
//!
//! Owns: [`BoundChange`], a plan's node over column identities with a query in the place of its source rows.
//!
//! Invariant: what a clause says of the source row is over identities until the source is planned. What it says of the
//! row that is written is over positions, as that row is the table's.

use super::{FromList, QueryTree};
use crate::query::expr::Expr;
use crate::{MergeAction, Node, OutputColumn};
use logstead_sql_catalog::Relation;
use std::sync::Arc;

/// A statement that changes a table, bound.
#[derive(Clone)]
pub(crate) struct BoundChange {
    /// The change, whose source is nothing yet.
    pub node: Node,
    /// The columns of RETURNING.
    pub columns: Vec<OutputColumn>,
    /// Where its source rows come from.
    pub source: ChangeSource,
}

/// Where the source rows of a change come from.
#[derive(Clone)]
pub(crate) enum ChangeSource {
    /// INSERT: values are over the positions of its columns.
    Query(QueryTree),
    /// UPDATE, DELETE and MERGE: rows of the target joined with others.
    Rows(ChangedRows),
}

/// The rows of a target that are to be changed, with what they are joined with.
#[derive(Clone)]
pub(crate) struct ChangedRows {
    pub relation: Arc<Relation>,
    /// The target's item in FROM.
    pub rel: usize,
    pub list: FromList,
}

impl BoundChange {
    /// It has a RETURNING clause.
    pub(crate) fn gives_rows(&self) -> bool {
        match &self.node {
            Node::Insert(insert) => insert.returning.is_some(),
            Node::Update(update) => update.returning.is_some(),
            Node::Delete(delete) => delete.returning.is_some(),
            _ => false,
        }
    }

    /// The expressions that may be over the source row, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match &mut self.node {
            Node::Insert(insert) => insert.values.iter_mut().for_each(f),
            Node::Update(update) => {
                update.assignments.iter_mut().for_each(|(_, e)| f(e));
                update.returning.iter_mut().flatten().for_each(f);
            }
            Node::Delete(delete) => delete.returning.iter_mut().flatten().for_each(f),
            Node::Merge(merge) => {
                merge.on.condition_mut().into_iter().for_each(&mut *f);
                for when in merge.matched.iter_mut().chain(&mut merge.unmatched) {
                    when.condition.iter_mut().for_each(&mut *f);
                    match &mut when.action {
                        MergeAction::Update(update) => {
                            update.assignments.iter_mut().for_each(|(_, e)| f(e));
                        }
                        MergeAction::Insert(insert) => insert.values.iter_mut().for_each(&mut *f),
                        MergeAction::Delete(_) | MergeAction::Nothing => {}
                    }
                }
            }
            _ => {}
        }
    }
}
