//! Plain scans: a SELECT of columns of one table, whose rows go from stored bytes to the sink without becoming datums.
//!
//! Nothing is between the scan and the client that would need values, except a filter, for which only the columns it
//! reads are decoded. What [`recognise`] accepts gives the same rows in the same order as the operators would.

use super::context::{ExecutionState, ExecutorContext, StatementContext};
use super::wait::ExecError;
use super::{Progress, RowSink};
use crate::StoredColumn;
use crate::operator::scan::{EXAMINED_MAX, IndexScanState, ScanProjection, SeqScanState};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Node, Plan, Scan, walk};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;

/// The result columns of a plain scan, if `plan` is one.
pub(crate) fn recognise(plan: &Plan) -> Option<Vec<StoredColumn>> {
    let (scan, exprs) = match &plan.node {
        Node::Project { input, exprs } => (scan_of(input)?, Some(exprs)),
        _ => (scan_of(plan)?, None),
    };
    let at = |column: usize| StoredColumn::of(&scan.table, *scan.columns.get(column)?).ok();
    match exprs {
        Some(exprs) => exprs
            .iter()
            .map(|expr| match expr {
                Expr::Column(column, _) => at(*column),
                _ => None,
            })
            .collect(),
        None if scan.row_id => None,
        None => (0..scan.columns.len()).map(at).collect(),
    }
}

fn scan_of(plan: &Plan) -> Option<&Scan> {
    match &plan.node {
        // A subquery in the filter may take long: operators know how to yield then. What is hidden of a row they know,
        // too.
        Node::SeqScan(scan) | Node::IndexScan { scan, .. }
            if !scan.filter.condition().is_some_and(walk::may_wait)
                && (!scan.row_id || scan.filter.is_empty()) =>
        {
            Some(scan)
        }
        _ => None,
    }
}

/// A plain scan being run.
pub(crate) struct DirectScan {
    source: Source,
    emitter: ScanProjection,
    shared: ExecutionState,
    scratch: Vec<Datum>,
}

enum Source {
    Table(Box<SeqScanState>),
    Index(Box<IndexScanState>),
}

impl DirectScan {
    /// A run that has not started; `None` if the plan is no plain scan.
    pub(crate) fn new(plan: &Plan) -> Option<DirectScan> {
        let input = match &plan.node {
            Node::Project { input, .. } => input,
            _ => plan,
        };
        let source = match &input.node {
            Node::SeqScan(scan) => Source::Table(Box::new(SeqScanState::new(scan))),
            Node::IndexScan { scan, .. } => Source::Index(Box::new(IndexScanState::new(scan))),
            _ => return None,
        };
        Some(DirectScan {
            source,
            emitter: ScanProjection::new(scan_of(input)?),
            shared: ExecutionState::default(),
            scratch: Vec::new(),
        })
    }

    /// Gives rows until `rows_max` are given (0: all), the sink is full, or the end.
    pub(crate) async fn run(
        &mut self,
        plan: &Plan,
        columns: &[StoredColumn],
        cx: &mut StatementContext<'_>,
        rows_max: u64,
        out: &mut dyn RowSink,
    ) -> Result<Progress> {
        let input = match &plan.node {
            Node::Project { input, .. } => input,
            _ => plan,
        };
        let scan =
            scan_of(input).ok_or_else(|| SqlError::internal("a plain scan changed its shape"))?;
        let mut cx = ExecutorContext::of(cx, &mut self.shared, false);
        let mut given = 0;
        loop {
            if cx.tick()? {
                tokio::task::yield_now().await;
            }
            let mut examined = 0;
            let mut absent = None;
            match (&mut self.source, &input.node) {
                (Source::Table(state), _) => state.open(scan, &mut cx)?,
                (
                    Source::Index(state),
                    Node::IndexScan {
                        index,
                        range,
                        reverse,
                        ..
                    },
                ) => {
                    let opened = state.open(scan, index, range, *reverse, &mut cx)?;
                    if let Err(absent) = opened {
                        cx.wait(absent).await.map_err(ExecError::without_calls)?;
                        continue;
                    }
                }
                _ => return Err(SqlError::internal("a plain scan changed its shape")),
            }
            let reverse = matches!(&input.node, Node::IndexScan { reverse: true, .. });
            let guard = cx.txn()?.pin();
            while examined < EXAMINED_MAX {
                if rows_max > 0 && given == rows_max {
                    return Ok(Progress::Suspended);
                }
                if out.is_full() {
                    return Ok(Progress::Full { rows: given });
                }
                let row = match &mut self.source {
                    Source::Table(state) => state.advance(cx.txn()?, &guard),
                    Source::Index(state) => state.advance(reverse, cx.txn()?, &guard),
                };
                let row = match row {
                    Ok(Some(row)) => row,
                    Ok(None) => return Ok(Progress::Done { rows: given }),
                    Err(missing) => {
                        absent = Some(missing);
                        break;
                    }
                };
                examined += 1;
                if self
                    .emitter
                    .passes(scan, &row, &mut self.scratch, &mut cx)?
                {
                    out.stored_row(row.bytes, columns)?;
                    given += 1;
                }
            }
            drop(guard);
            cx.worked(examined);
            if let Some(absent) = absent {
                cx.wait(absent.into())
                    .await
                    .map_err(ExecError::without_calls)?;
            }
        }
    }
}
