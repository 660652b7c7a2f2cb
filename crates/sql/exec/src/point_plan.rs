//! Statements by key: what the server exists for, run without operators.
//!
//! [`recognise`] looks at a plan once and finds (a) a SELECT of plain columns by the whole key of a unique index, (b)
//! an UPDATE or DELETE of one row by such a key, (c) an INSERT of one row. [`run`] then encodes the key into a buffer
//! that is used again, asks the engine, and gives the result columns straight from stored bytes, or hands the row to
//! the same writers that the operators use, so both paths mean the same.
//!
//! Invariant: a plan is recognised only if the general path would give the same rows, errors and locks.

use super::context::{ExecutorContext, StatementContext};
use super::eval::{columns_read, eval_in};
use super::wait::{EvalError, ExecError};
use super::{RowSink, deform};
use crate::StoredColumn;
use crate::context::ExecutionState;
use crate::operator::index_scan::push_key;
use crate::operator::write::{
    DeleteWriter, InsertWriter, RowWriteOutcome, RowWriter, UpdateWriter,
};
use logstead_engine::{Engine, Index, Table};
use logstead_sql_catalog::{Catalog, IndexDef, Relation};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Insert, KeyRange, Node, Plan, Scan};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

/// A recognised statement.
pub(crate) struct PointPlan {
    shape: Shape,
    /// The table and the key's index, found at the first run: storage numbers are never used again.
    storage: OnceLock<(Arc<Table>, Option<Arc<Index>>)>,
    gives_rows: bool,
}

enum Shape {
    /// The result columns.
    Select(Vec<StoredColumn>),
    /// Attributes that assignments and RETURNING read, all if there are checks.
    Update(Vec<usize>),
    Delete(Vec<usize>),
    Insert,
}

impl PointPlan {
    fn new(shape: Shape, gives_rows: bool) -> Option<PointPlan> {
        Some(PointPlan {
            shape,
            storage: OnceLock::new(),
            gives_rows,
        })
    }

    /// Whether it gives rows to its sink.
    pub(crate) fn returns_rows(&self) -> bool {
        self.gives_rows
    }

    fn storage(
        &self,
        relation: &Relation,
        index: Option<&IndexDef>,
        engine: &Engine,
        catalog: &Catalog,
    ) -> Result<&(Arc<Table>, Option<Arc<Index>>)> {
        if let Some(storage) = self.storage.get() {
            return Ok(storage);
        }
        let missing = || SqlError::internal(format!("no storage for table {}", relation.name));
        let table = catalog
            .table(relation.storage, engine)
            .ok_or_else(missing)?;
        let index = match index {
            Some(index) => Some(table.index(index.storage).ok_or_else(missing)?),
            None => None,
        };
        Ok(self.storage.get_or_init(|| (table, index)))
    }
}

/// A scan that gives at most one row, found by the whole key of a unique index.
fn by_key(plan: &Plan) -> Option<(&Scan, &Arc<IndexDef>, &KeyRange)> {
    let Node::IndexScan {
        scan, index, range, ..
    } = &plan.node
    else {
        return None;
    };
    let mut key = range.whole_key(index.columns.len())?;
    let plain = key.all(|expr| columns_read(expr, &mut Vec::new()));
    let whole = index.holds_keys_once() && scan.filter.is_empty();
    (whole && plain).then_some((scan, index, range))
}

/// Looks for a statement by key.
pub(crate) fn recognise(plan: &Plan) -> Option<PointPlan> {
    match &plan.node {
        // At most one row comes: a constant LIMIT of one or more changes nothing.
        Node::Limit {
            input,
            limit: Some(Expr::Const(Datum::Int8(rows), _)),
            offset: None,
            ..
        } if *rows > 0 => {
            recognise(input).filter(|point_plan| matches!(point_plan.shape, Shape::Select(_)))
        }
        Node::Project { input, exprs } => {
            let (scan, ..) = by_key(input)?;
            let mut columns = Vec::with_capacity(exprs.len());
            for expr in exprs {
                let Expr::Column(at, _) = expr else {
                    return None;
                };
                columns.push(StoredColumn::of(&scan.table, *scan.columns.get(*at)?).ok()?);
            }
            PointPlan::new(Shape::Select(columns), true)
        }
        Node::IndexScan { .. } => {
            let (scan, ..) = by_key(plan).filter(|(scan, ..)| !scan.row_id)?;
            let columns: Result<Vec<_>> = scan
                .columns
                .iter()
                .map(|at| StoredColumn::of(&scan.table, *at))
                .collect();
            PointPlan::new(Shape::Select(columns.ok()?), true)
        }
        Node::Update(update) => {
            whole_row_by_key(&update.source, &update.table)?;
            if !update.policies.is_empty() {
                return None;
            }
            let mut read = Vec::new();
            let all = update.assignments.iter().map(|(_, expr)| expr);
            let all = all.chain(update.checks.iter().map(|check| &check.expr));
            let mut all = all.chain(update.returning.iter().flatten());
            if !all.all(|expr| columns_read(expr, &mut read)) || reads_hidden(&read, &update.table)
            {
                return None;
            }
            PointPlan::new(Shape::Update(read), update.returning.is_some())
        }
        Node::Delete(delete) => {
            whole_row_by_key(&delete.source, &delete.table)?;
            let mut read = Vec::new();
            if !delete
                .returning
                .iter()
                .flatten()
                .all(|expr| columns_read(expr, &mut read))
                || reads_hidden(&read, &delete.table)
            {
                return None;
            }
            PointPlan::new(Shape::Delete(read), delete.returning.is_some())
        }
        Node::Insert(insert) => {
            single_row(insert)?;
            if !insert.policies.is_empty() || insert.hidden {
                return None;
            }
            let conflict = insert
                .conflict
                .as_ref()
                .and_then(|conflict| conflict.update.as_ref());
            let mut all = insert
                .values
                .iter()
                .chain(insert.generated.iter().map(|(_, expr)| expr))
                .chain(insert.checks.iter().map(|check| &check.expr));
            let conflict = conflict.map(|update| {
                update
                    .assignments
                    .iter()
                    .map(|(_, expr)| expr)
                    .chain(update.wanted.exprs())
                    .chain(update.policies.iter().map(|check| &check.expr))
            });
            let mut rest = insert
                .returning
                .iter()
                .flatten()
                .chain(conflict.into_iter().flatten());
            let plain = all.all(|expr| columns_read(expr, &mut Vec::new()))
                && rest.all(|expr| columns_read(expr, &mut Vec::new()));
            if !plain {
                return None;
            }
            PointPlan::new(Shape::Insert, insert.returning.is_some())
        }
        _ => None,
    }
}

/// Is something read that is hidden of a row, which is not decoded of it?
fn reads_hidden(read: &[usize], target: &Relation) -> bool {
    read.iter().any(|column| *column >= target.columns.len())
}

/// The source of an UPDATE or DELETE that reads one row of its target by key and nothing else.
fn whole_row_by_key<'p>(
    source: &'p Plan,
    target: &Relation,
) -> Option<(&'p Scan, &'p Arc<IndexDef>, &'p KeyRange)> {
    let columns = target.columns.len();
    let (scan, index, range) = match &source.node {
        Node::Project { input, exprs } => {
            let (scan, index, range) = by_key(input)?;
            let whole = exprs.len() == columns + 2
                && exprs[..columns].iter().enumerate().all(|(position, expr)| match expr {
                    Expr::Column(at, _) => scan.columns.get(*at) == Some(&position),
                    Expr::Const(Datum::Null, _) => target.columns[position].dropped,
                    _ => false,
                })
                && (columns..columns + 2).all(|at| {
                    matches!(&exprs[at], Expr::Column(from, _) if *from == scan.columns.len() + at - columns)
                });
            if !whole {
                return None;
            }
            (scan, index, range)
        }
        _ => {
            let (scan, index, range) = by_key(source)?;
            if !scan.columns.iter().copied().eq(0..columns) {
                return None;
            }
            (scan, index, range)
        }
    };
    (scan.row_id && scan.table.oid == target.oid).then_some((scan, index, range))
}

/// The one source row of an INSERT ... VALUES.
fn single_row(insert: &Insert) -> Option<&[Expr]> {
    match &insert.source.node {
        Node::OneRow => Some(&[]),
        Node::Values(rows) => match rows.as_slice() {
            [row] if row.iter().all(|expr| columns_read(expr, &mut Vec::new())) => Some(row),
            _ => None,
        },
        _ => None,
    }
}

thread_local! {
    /// Buffers of this worker's statements by key, taken for the time of one statement.
    static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static UPDATER: Cell<Option<Box<UpdateWriter>>> = const { Cell::new(None) };
    static INSERTER: Cell<Option<Box<InsertWriter>>> = const { Cell::new(None) };
}

/// Runs a recognised statement to its end; the number of rows given or written.
pub(crate) async fn run(
    plan: &Plan,
    point_plan: &PointPlan,
    cx: &mut StatementContext<'_>,
    out: &mut dyn RowSink,
) -> Result<u64> {
    cx.cancel.check()?;
    match (&point_plan.shape, &plan.node) {
        (Shape::Select(columns), _) => select(plan, point_plan, columns, cx, out).await,
        (Shape::Update(read), Node::Update(update)) => {
            let Some((scan, index, range)) = whole_row_by_key(&update.source, &update.table) else {
                return Err(unrecognised());
            };
            let mut writer = UPDATER.take().unwrap_or_default();
            let mut shared = ExecutionState::default();
            let mut cx = ExecutorContext::of(cx, &mut shared, false);
            let row = writer.start_sparse();
            let Some((table, rid)) =
                target(point_plan, scan, index, range, read, row, &mut cx).await?
            else {
                UPDATER.set(Some(writer));
                return Ok(0);
            };
            let written = loop {
                match writer.write(update, table, rid, &mut cx)? {
                    RowWriteOutcome::Written => break true,
                    RowWriteOutcome::Skipped => break false,
                    RowWriteOutcome::Wait(blocker) => {
                        cx.wait(blocker).await.map_err(ExecError::without_calls)?
                    }
                }
            };
            if let (true, Some(returning)) = (written, &update.returning) {
                give(returning, writer.returned(), &mut cx, out)?;
            }
            UPDATER.set(Some(writer));
            Ok(u64::from(written))
        }
        (Shape::Delete(read), Node::Delete(delete)) => {
            let Some((scan, index, range)) = whole_row_by_key(&delete.source, &delete.table) else {
                return Err(unrecognised());
            };
            let mut writer = DeleteWriter::default();
            let mut shared = ExecutionState::default();
            let mut cx = ExecutorContext::of(cx, &mut shared, false);
            let row = writer.row_mut();
            let Some((table, rid)) =
                target(point_plan, scan, index, range, read, row, &mut cx).await?
            else {
                return Ok(0);
            };
            let written = loop {
                match writer.write(delete, table, rid, &mut cx)? {
                    RowWriteOutcome::Written => break true,
                    RowWriteOutcome::Skipped => break false,
                    RowWriteOutcome::Wait(blocker) => {
                        cx.wait(blocker).await.map_err(ExecError::without_calls)?
                    }
                }
            };
            if let (true, Some(returning)) = (written, &delete.returning) {
                give(returning, writer.returned(), &mut cx, out)?;
            }
            Ok(u64::from(written))
        }
        (Shape::Insert, Node::Insert(insert)) => {
            let Some(source) = single_row(insert) else {
                return Err(unrecognised());
            };
            let mut writer = INSERTER.take().unwrap_or_default();
            let (table, _) = point_plan.storage(&insert.table, None, cx.engine, cx.catalog)?;
            writer.start();
            let mut shared = ExecutionState::default();
            let mut cx = ExecutorContext::of(cx, &mut shared, false);
            let mut row: SmallVec<[Datum; 8]> = SmallVec::with_capacity(source.len());
            for expr in source {
                row.push(eval_in(expr, &[], &mut cx).map_err(EvalError::unsuspended)?);
            }
            let written = loop {
                match writer.write(insert, table, &row, &mut cx)? {
                    RowWriteOutcome::Written => break true,
                    RowWriteOutcome::Skipped => break false,
                    RowWriteOutcome::Wait(blocker) => {
                        cx.wait(blocker).await.map_err(ExecError::without_calls)?
                    }
                }
            };
            if let (true, Some(returning)) = (written, &insert.returning) {
                give(returning, writer.returned(), &mut cx, out)?;
            }
            INSERTER.set(Some(writer));
            Ok(u64::from(written))
        }
        _ => Err(unrecognised()),
    }
}

fn unrecognised() -> SqlError {
    SqlError::internal("a statement by key changed its shape")
}

async fn select(
    plan: &Plan,
    point_plan: &PointPlan,
    columns: &[StoredColumn],
    cx: &mut StatementContext<'_>,
    out: &mut dyn RowSink,
) -> Result<u64> {
    let mut node = plan;
    let (scan, index, range) = loop {
        match &node.node {
            Node::Limit { input, .. } | Node::Project { input, .. } => node = input,
            _ => break by_key(node).ok_or_else(unrecognised)?,
        }
    };
    let (_, Some(storage)) = point_plan.storage(&scan.table, Some(index), cx.engine, cx.catalog)?
    else {
        return Err(unrecognised());
    };
    let mut key = KEY.take();
    key.clear();
    let mut shared = ExecutionState::default();
    let mut cx = ExecutorContext::of(cx, &mut shared, false);
    let mut given = 0;
    if push_whole_key(scan, index, range, &mut key, &mut cx)? {
        loop {
            let absent = {
                let txn = cx.txn()?;
                let guard = txn.pin();
                match txn.get(storage, &key, &guard) {
                    Ok(Some(row)) => {
                        out.stored_row(row.bytes, columns)?;
                        given = 1;
                        break;
                    }
                    Ok(None) => break,
                    Err(absent) => absent,
                }
            };
            cx.wait(absent.into())
                .await
                .map_err(ExecError::without_calls)?;
        }
    }
    KEY.set(key);
    Ok(given)
}

/// Finds the row to write and decodes the columns that are read; the others stay NULL.
async fn target<'f, 'a>(
    point_plan: &'f PointPlan,
    scan: &'a Scan,
    index: &'a IndexDef,
    range: &'a KeyRange,
    read: &[usize],
    row: &mut Vec<Datum>,
    cx: &mut ExecutorContext<'a>,
) -> Result<Option<(&'f Arc<Table>, Rid)>> {
    let at = cx.storage()?;
    let found = point_plan.storage(&scan.table, Some(index), at.engine, at.catalog)?;
    let (table, Some(storage)) = found else {
        return Err(unrecognised());
    };
    let mut key = KEY.take();
    key.clear();
    let mut found = None;
    if push_whole_key(scan, index, range, &mut key, cx)? {
        loop {
            let absent = {
                let txn = cx.txn()?;
                let guard = txn.pin();
                match txn.get(storage, &key, &guard) {
                    Ok(Some(current)) => {
                        row.clear();
                        row.resize(scan.table.columns.len(), Datum::Null);
                        for &position in read {
                            if let Some(datum) = row.get_mut(position) {
                                *datum = deform::decode(&scan.table, current.bytes, position)?;
                            }
                        }
                        found = Some((table, current.rid));
                        break;
                    }
                    Ok(None) => break,
                    Err(absent) => absent,
                }
            };
            cx.wait(absent.into())
                .await
                .map_err(ExecError::without_calls)?;
        }
    }
    KEY.set(key);
    Ok(found)
}

fn push_whole_key<'a>(
    scan: &'a Scan,
    index: &'a IndexDef,
    range: &'a KeyRange,
    key: &mut Vec<u8>,
    cx: &mut ExecutorContext<'a>,
) -> Result<bool> {
    let Some(exprs) = range.whole_key(index.columns.len()) else {
        return Err(unrecognised());
    };
    for (i, expr) in exprs.enumerate() {
        let pushed = push_key(&scan.table, index, i, expr, key, cx);
        if !pushed.map_err(EvalError::unsuspended)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn give<'a>(
    returning: &'a [Expr],
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
    out: &mut dyn RowSink,
) -> Result<()> {
    let mut datums: SmallVec<[Datum; 8]> = SmallVec::with_capacity(returning.len());
    for expr in returning {
        datums.push(eval_in(expr, row, cx).map_err(EvalError::unsuspended)?);
    }
    out.row(&datums)
}
