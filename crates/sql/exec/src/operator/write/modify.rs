//! What UPDATE and DELETE have in common: row after row of the source, each written once, across waits.
//!
//! Owns: the source's batches, the row that is open, the triggers of the statement and what RETURNING gives. What is
//! done with a row is the node's own ([`ModifyTableNode`]): `update` and `delete`, which also look again at a row that
//! another transaction changed while it was waited for (PostgreSQL's EvalPlanQual).

use super::{Returning, RowWriteOutcome};
use crate::batch::{BATCH_ROWS, Batch, Step};
use crate::context::ExecutorContext;
use crate::operator::{PlanState, pull};
use crate::trigger::StatementTriggers;
use logstead_engine::Table;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::Plan;
use logstead_sql_plan::constraints::RuleSet;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use std::sync::Arc;

/// A node that changes rows of its target, which the source rows number.
pub(crate) trait ModifyTableNode: Sized {
    /// What is kept of the row that is being written.
    type RowWriter: RowWriter<Self>;
    /// What the triggers of the statement fire on.
    const EVENT: TriggerEvent;

    fn source(&self) -> &Plan;
    fn target(&self) -> &Relation;
    fn rules(&self) -> Option<&Arc<RuleSet>>;
    fn returning(&self) -> &Option<Vec<Expr>>;
}

/// Writes rows one at a time.
pub(crate) trait RowWriter<N>: Default {
    /// Starts with a source row (row id and token included).
    fn start(&mut self, source: &[Datum]);
    /// Writes the row of `rid`, whose source row it has started with; after `Wait` it is called again.
    fn write<'a>(
        &mut self,
        node: &'a N,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome>;
    /// Shows a view's row, which is the source row, to the view's triggers, which do what is to be done.
    fn instead<'a>(&mut self, node: &'a N, cx: &mut ExecutorContext<'a>)
    -> Result<RowWriteOutcome>;
    /// What RETURNING sees after `Written`.
    fn returned(&self) -> &[Datum];
}

/// The row id of a source row, which with the version's token is hidden behind its columns.
pub(super) fn row_number(row: &[Datum]) -> Result<Option<Rid>> {
    let hidden = row.len().checked_sub(2).and_then(|at| row.get(at));
    match hidden {
        Some(Datum::Int8(rid)) => Ok(Some(Rid(rid.cast_unsigned()))),
        Some(Datum::Null) => Ok(None),
        Some(_) => Err(SqlError::internal("a row id of another type")),
        None => Err(SqlError::internal("a source row without a row id")),
    }
}

/// State of a node that changes rows.
pub(crate) struct ModifyTableState<N: ModifyTableNode> {
    pub(crate) source: PlanState,
    batch: Batch,
    at: usize,
    /// The row being written, across waits.
    open: Option<Rid>,
    table: Option<Arc<Table>>,
    writer: N::RowWriter,
    returning: Returning,
    statement: StatementTriggers,
}

impl<N: ModifyTableNode> ModifyTableState<N> {
    pub(crate) fn new(node: &N) -> ModifyTableState<N> {
        ModifyTableState {
            source: PlanState::new(node.source()),
            batch: Batch::of(BATCH_ROWS),
            at: 0,
            open: None,
            table: None,
            writer: N::RowWriter::default(),
            returning: Returning::default(),
            statement: StatementTriggers::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        node: &'a N,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(node.returning().as_ref().map_or(0, Vec::len));
        let (source, target) = (node.source(), node.target());
        let events = [(N::EVENT, node.rules())];
        if let Some(obstacle) = self.statement.begin(&events, cx)? {
            return Ok(Step::Wait(obstacle));
        }
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(target.storage)?),
        };
        loop {
            if cx.yield_pending && !out.is_empty() {
                return Ok(Step::Batch);
            }
            if cx.take_pending_yield() {
                return Ok(Step::Yield);
            }
            let rid = match self.open {
                Some(rid) => rid,
                None => {
                    if self.at == self.batch.len() {
                        if !out.is_empty() {
                            return Ok(Step::Batch);
                        }
                        self.at = 0;
                        self.batch.start(0);
                        if !pull!(self.source, source, cx, &mut self.batch) {
                            self.statement.end(&events, cx)?;
                            return Ok(Step::Done);
                        }
                    }
                    self.at += 1;
                    let row = self.batch.row(self.at - 1);
                    let rid = match row_number(row)? {
                        Some(rid) => rid,
                        // A view's rows have no number.
                        None if target.view().is_some() => Rid(0),
                        None => continue,
                    };
                    self.writer.start(row);
                    rid
                }
            };
            self.open = Some(rid);
            let outcome = match self.returning.is_pending() {
                true => RowWriteOutcome::Written,
                false if target.view().is_some() => self.writer.instead(node, cx)?,
                false => self.writer.write(node, table, rid, cx)?,
            };
            let row = self.writer.returned();
            match self
                .returning
                .give(outcome, node.returning(), row, cx, out)?
            {
                Some(_) if !out.is_empty() => return Ok(Step::Batch),
                Some(obstacle) => return Ok(Step::Wait(obstacle)),
                None => self.open = None,
            }
        }
    }
}
