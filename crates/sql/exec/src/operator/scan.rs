//! Leaves: table scans, system relations, functions in FROM. Index scans are in `index_scan`.

use crate::StoredColumn;
use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::{columns_read, holds};
pub(crate) use crate::operator::index_scan::IndexScanState;
use crate::operator::row_by_row::{SetResult, call_table};
use crate::operator_memory::OperatorMemory;
use crate::stored_predicate::StoredPredicate;
use crate::wait::EvalError;
use crate::wait::WaitReason;
use logstead_engine::{Guard, PageFault, Row, RowRef, ScanCursor, Table, Txn, VersionId};
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_func::Function;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{ROW_NUMBER, Scan, walk};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// How a scan turns stored rows into output rows; the same for table and index scans.
pub(crate) struct ScanProjection {
    columns: Vec<StoredColumn>,
    /// Output columns that the filter reads: decoded first, the others only for rows that pass.
    first: Vec<usize>,
    rest: Vec<usize>,
    /// Whether each column is decoded while the filter is asked.
    judged: Vec<bool>,
    /// By condition of the filter: what decides it without values of its columns; otherwise the columns that it is the
    /// first to read, as what comes before may have refused the row.
    stages: Vec<(Option<StoredPredicate>, Vec<usize>)>,
    /// The row while it is checked.
    scratch: Cell<Vec<Datum>>,
    row_id: bool,
    /// Columns that nobody but the filter reads: NULL in the output.
    unread: Vec<bool>,
    /// The filter has one, and may be evaluated again for a row.
    has_subquery: bool,
}

impl ScanProjection {
    pub(crate) fn new(scan: &Scan) -> ScanProjection {
        let columns: Vec<StoredColumn> = scan
            .columns
            .iter()
            .filter_map(|&position| StoredColumn::of(&scan.table, position).ok())
            .collect();
        let mut first = Vec::new();
        let all = 0..columns.len();
        if let Some(filter) = scan.filter.condition() {
            if columns_read(filter, &mut first) {
                first.retain(|column| *column < columns.len());
            } else {
                first = all.clone().collect();
            }
        }
        let rest = all
            .clone()
            .filter(|column| !first.contains(column))
            .collect();
        // Decoded before all conditions are asked, where a condition may look at more than columns.
        let in_stages = !scan.row_id && !scan.filter.condition().is_some_and(walk::may_wait);
        let mut decoded: Vec<usize> = Vec::new();
        let mut stages = Vec::new();
        for condition in scan.filter.conjuncts() {
            let quick = StoredPredicate::of(condition, &columns).filter(|_| in_stages);
            if quick.is_some() {
                stages.push((quick, Vec::new()));
                continue;
            }
            let mut read = Vec::new();
            if !columns_read(condition, &mut read) {
                read = all.clone().collect();
            }
            read.retain(|column| *column < columns.len() && !decoded.contains(column));
            read.sort_unstable();
            read.dedup();
            decoded.extend_from_slice(&read);
            stages.push((None, read));
        }
        ScanProjection {
            judged: all.map(|column| decoded.contains(&column)).collect(),
            columns,
            first,
            rest,
            stages,
            scratch: Cell::default(),
            row_id: scan.row_id,
            unread: scan.unread.clone(),
            has_subquery: scan.filter.condition().is_some_and(walk::may_wait),
        }
    }

    #[inline]
    fn is_unread(&self, column: usize) -> bool {
        self.unread.get(column).copied().unwrap_or(false)
    }

    /// Columns of an output row.
    pub(crate) fn width(&self) -> usize {
        self.columns.len() + if self.row_id { 2 } else { 0 }
    }

    /// Adds `row` to `out` if it passes the filter. If that finds something absent, the scan waits and comes with the
    /// same row again.
    pub(crate) fn emit<'a>(
        &self,
        scan: &'a Scan,
        row: &Row<'_>,
        evaluation: &mut ResumableEvaluation,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Result<(), WaitReason>> {
        if self.columns.len() != scan.columns.len() {
            return Err(SqlError::internal(format!(
                "a scan of {} names a column it does not have",
                scan.table.name
            )));
        }
        if scan.filter.is_empty() {
            for (at, column) in self.columns.iter().enumerate() {
                out.push(match self.is_unread(at) {
                    true => Datum::Null,
                    false => column.decode(row.bytes)?,
                });
            }
            self.push_row_id(row, out);
            out.end_row();
            return Ok(Ok(()));
        }
        // A condition may look at the hidden columns.
        if !self.has_subquery && !self.row_id {
            let mut scratch = self.scratch.take();
            let passes = self.passes(scan, row, &mut scratch, cx);
            if let Ok(true) = passes {
                for (at, column) in self.columns.iter().enumerate() {
                    match scratch.get_mut(at) {
                        _ if self.is_unread(at) => out.push(Datum::Null),
                        Some(judged) if self.judged[at] => out.push(std::mem::take(judged)),
                        _ => out.push(column.decode(row.bytes)?),
                    }
                }
                self.push_row_id(row, out);
                out.end_row();
            }
            self.scratch.set(scratch);
            return passes.map(|_| Ok(()));
        }
        for _ in 0..self.columns.len() {
            out.push(Datum::Null);
        }
        self.push_row_id(row, out);
        for &column in &self.first {
            out.open_row()[column] = self.columns[column].decode(row.bytes)?;
        }
        let holds = if self.has_subquery {
            match evaluation.run(cx, |cx| {
                crate::security_quals::passes(&scan.filter, out.open_row(), cx)
            })? {
                Ok(holds) => holds,
                Err(absent) => {
                    out.abandon_row();
                    return Ok(Err(absent));
                }
            }
        } else {
            let passes = crate::security_quals::passes(&scan.filter, out.open_row(), cx);
            passes.map_err(EvalError::unsuspended)?
        };
        if holds {
            for &column in &self.rest {
                out.open_row()[column] = self.columns[column].decode(row.bytes)?;
            }
            out.end_row();
        } else {
            out.abandon_row();
        }
        Ok(Ok(()))
    }

    /// Whether `row` passes the filter, decoding into `scratch` only what the filter reads.
    pub(crate) fn passes<'a>(
        &self,
        scan: &'a Scan,
        row: &Row<'_>,
        scratch: &mut Vec<Datum>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<bool> {
        scratch.resize(self.columns.len(), Datum::Null);
        for (condition, (quick, columns)) in scan.filter.conjuncts().iter().zip(&self.stages) {
            if let Some(quick) = quick {
                match quick.holds(&self.columns, row.bytes) {
                    Some(true) => continue,
                    Some(false) => return Ok(false),
                    None => {
                        let column = quick.column;
                        scratch[column] = self.columns[column].decode(row.bytes)?;
                    }
                }
            }
            for &column in columns {
                scratch[column] = self.columns[column].decode(row.bytes)?;
            }
            // What waits has gone the other way: `has_subquery`.
            if !holds(condition, scratch, cx).map_err(EvalError::unsuspended)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The hidden columns.
    fn push_row_id(&self, row: &Row<'_>, out: &mut Batch) {
        if self.row_id {
            out.push(Datum::Int8(row.rid.get().cast_signed()));
            out.push(Datum::Int8(row.version.token()));
        }
    }
}

/// Rows examined in one call when few pass the filter.
pub(crate) const EXAMINED_MAX: usize = 1024;

/// A row whose evaluation waits for something, with its columns: were it to be read again when that is there, it might
/// have left memory, and what brings it back might take the other out. So every wait brings a statement on.
#[derive(Default)]
pub(crate) struct OpenRow(Option<(Rid, VersionId, Box<[u8]>)>);

impl OpenRow {
    pub(crate) fn of(row: &Row<'_>) -> OpenRow {
        OpenRow(Some((row.rid, row.version, row.bytes.bytes().into())))
    }

    pub(crate) fn row(&self) -> Option<Row<'_>> {
        let (rid, version, bytes) = self.0.as_ref()?;
        Some(Row {
            rid: *rid,
            version: *version,
            bytes: RowRef::new(bytes),
        })
    }

    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

/// State of a table scan.
pub(crate) struct SeqScanState {
    emitter: ScanProjection,
    table: Option<Arc<Table>>,
    cursor: Option<ScanCursor>,
    done: bool,
    /// The row that the cursor has gone past and whose filter is to be evaluated again.
    open: OpenRow,
    evaluation: ResumableEvaluation,
}

impl SeqScanState {
    pub(crate) fn new(scan: &Scan) -> SeqScanState {
        SeqScanState {
            emitter: ScanProjection::new(scan),
            table: None,
            cursor: None,
            done: false,
            open: OpenRow::default(),
            evaluation: ResumableEvaluation::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        scan: &'a Scan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(self.emitter.width());
        if self.done {
            return Ok(Step::Done);
        }
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        self.open(scan, cx)?;
        let guard = cx.txn()?.pin();
        let mut examined = 0;
        while !out.is_full() && examined < EXAMINED_MAX && !cx.yield_pending {
            let open = std::mem::take(&mut self.open);
            let row = match open.row() {
                Some(row) => row,
                None => match self.advance(cx.txn()?, &guard) {
                    Ok(Some(row)) => row,
                    Ok(None) => break,
                    Err(absent) if out.is_empty() => return Ok(Step::Wait(absent.into())),
                    // It is met again with the next batch.
                    Err(_) => break,
                },
            };
            examined += 1;
            let emitted = self
                .emitter
                .emit(scan, &row, &mut self.evaluation, cx, out)?;
            if let Err(absent) = emitted {
                let met = (!open.is_some()).then(|| OpenRow::of(&row));
                self.open = met.unwrap_or(open);
                if out.is_empty() {
                    return Ok(Step::Wait(absent));
                }
                break;
            }
        }
        cx.worked(examined);
        Ok(if !out.is_empty() {
            Step::Batch
        } else if self.done {
            Step::Done
        } else {
            Step::Yield
        })
    }

    /// Opens the cursor, unless it is open.
    pub(crate) fn open(&mut self, scan: &Scan, cx: &mut ExecutorContext<'_>) -> Result<()> {
        if self.cursor.is_none() {
            let table = match &self.table {
                Some(table) => table,
                None => self.table.insert(cx.table(scan.table.storage)?),
            };
            self.cursor = Some(ScanCursor::new(table));
        }
        Ok(())
    }

    /// The next row of an open scan.
    pub(crate) fn advance<'g>(
        &mut self,
        txn: &mut Txn,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(None);
        };
        let row = txn.scan_next(cursor, guard)?;
        self.done = row.is_none();
        Ok(row)
    }

    pub(crate) fn rewind(&mut self) {
        self.cursor = None;
        self.done = false;
        self.open = OpenRow::default();
        self.evaluation.reset();
    }
}

/// State of a scan of a system relation.
#[derive(Default)]
pub(crate) struct VirtualScanState {
    rows: Option<Rc<Vec<Vec<Datum>>>>,
    at: usize,
    evaluation: ResumableEvaluation,
}

impl VirtualScanState {
    pub(crate) fn next<'a>(
        &mut self,
        table: &'static VirtualTable,
        columns: &'a [usize],
        filter: Option<&'a Expr>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(columns.len());
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        let rows = match &self.rows {
            Some(rows) => Rc::clone(rows),
            None => {
                let rows = system_rows(table, cx)?;
                self.rows = Some(Rc::clone(&rows));
                rows
            }
        };
        let start = self.at;
        while let Some(row) = rows
            .get(self.at)
            .filter(|_| !out.is_full() && !cx.yield_pending)
        {
            for &column in columns {
                out.push(match row.get(column) {
                    Some(value) => value.clone(),
                    None if column == ROW_NUMBER => Datum::Int8(self.at as i64),
                    None => Datum::Null,
                });
            }
            let wanted = self.evaluation.of(filter, cx, |cx| {
                filter.map_or(Ok(true), |filter| holds(filter, out.open_row(), cx))
            });
            match wanted? {
                Ok(true) => out.end_row(),
                Ok(false) => out.abandon_row(),
                Err(absent) => {
                    out.abandon_row();
                    if out.is_empty() {
                        return Ok(Step::Wait(absent));
                    }
                    // It is met again with the next batch.
                    break;
                }
            }
            self.at += 1;
        }
        cx.worked(self.at - start);
        Ok(if !out.is_empty() {
            Step::Batch
        } else if self.at < rows.len() {
            Step::Yield
        } else {
            Step::Done
        })
    }

    pub(crate) fn rewind(&mut self) {
        self.at = 0;
        self.evaluation.reset();
    }
}

/// All rows of a system relation, computed once per execution.
fn system_rows(
    table: &'static VirtualTable,
    cx: &mut ExecutorContext<'_>,
) -> Result<Rc<Vec<Vec<Datum>>>> {
    if let Some(rows) = cx.shared.system.get(&table.oid) {
        return Ok(Rc::clone(rows));
    }
    let session = cx.session;
    let catalog = cx.storage()?.catalog;
    let rows = Rc::new((table.rows)(&VirtualContext { catalog, session })?);
    cx.shared.system.insert(table.oid, Rc::clone(&rows));
    Ok(rows)
}

/// State of a function in FROM.
#[derive(Default)]
pub(crate) struct FunctionScanState {
    set: Option<SetResult>,
    at: usize,
    held: OperatorMemory,
    evaluation: ResumableEvaluation,
}

impl FunctionScanState {
    pub(crate) fn next<'a>(
        &mut self,
        function: &'static Function,
        args: &'a [Expr],
        ordinality: bool,
        width: usize,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(width);
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        let set = match &mut self.set {
            Some(set) => set,
            none => {
                let call = |cx: &mut ExecutorContext<'a>| call_table(function, args, cx);
                match self.evaluation.of(args, cx, call)? {
                    Ok(set) => {
                        let held_bytes = set.size_bytes();
                        self.held.set(held_bytes, cx.memory())?;
                        cx.check_memory("A set", held_bytes)?;
                        none.insert(set)
                    }
                    Err(absent) => return Ok(Step::Wait(absent)),
                }
            }
        };
        let own = width - usize::from(ordinality && width > 0);
        while !out.is_full() {
            match set {
                SetResult::Rows(rows) => {
                    let Some(row) = rows.get_mut(self.at) else {
                        break;
                    };
                    row.resize(own, Datum::Null);
                    for datum in row.drain(..) {
                        out.push(datum);
                    }
                }
                SetResult::Series(series) => {
                    let Some(value) = series.next(cx.session)? else {
                        break;
                    };
                    out.push(value);
                    for _ in 1..own {
                        out.push(Datum::Null);
                    }
                }
            }
            self.at += 1;
            if ordinality {
                out.push(Datum::Int8(self.at as i64));
            }
            out.end_row();
        }
        cx.worked(out.len());
        Ok(if out.is_empty() {
            Step::Done
        } else {
            Step::Batch
        })
    }
}
