//! Index scans: from a key range's expressions to encoded bounds, and rows in key order.
//!
//! A range is turned into byte bounds once per (re)start. Bounds are beginnings of keys, and include or exclude all
//! keys that begin so. Both are bytes of encoded columns, nothing else: by those that they have in common the engine
//! finds the virtual partition of a divided index that all of the range lies in.

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::eval_in;
use crate::operator::scan::{EXAMINED_MAX, OpenRow, ScanProjection};
use crate::wait::Evaluated;
use crate::wait::WaitReason;
use logstead_engine::{Guard, Index, IndexCursor, PageFault, Row, Txn};
use logstead_sql_catalog::{IndexDef, Relation};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{KeyBound, KeyRange, Scan, ScanKey};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, key};
use logstead_types::SqlState;
use std::ops::Bound;
use std::sync::Arc;

/// State of an index scan.
pub(crate) struct IndexScanState {
    emitter: ScanProjection,
    index: Option<Arc<Index>>,
    at: ScanPosition,
    /// The row that the scan has gone past and whose filter is to be evaluated again.
    open: OpenRow,
    evaluation: ResumableEvaluation,
    /// Of where to look.
    start: ResumableEvaluation,
}

/// Where an index scan stands.
enum ScanPosition {
    /// Bounds not computed yet.
    Start,
    /// One whole key of a unique index.
    Point(Vec<u8>),
    /// In the last of the ranges, which are taken from the end.
    Ranges(Vec<ScanRange>, Option<IndexCursor>),
    Done,
}

/// Bounds of one run through the index.
pub(crate) struct ScanRange {
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl ScanRange {
    /// Whether no key can be above the lower end and below the upper one.
    fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Included(l), Bound::Included(u)) => l > u && !l.starts_with(u),
            (Bound::Included(l), Bound::Excluded(u)) => l >= u,
            (Bound::Excluded(l), Bound::Included(u)) => {
                u.starts_with(l) || l > u && !l.starts_with(u)
            }
            (Bound::Excluded(l), Bound::Excluded(u)) => u.starts_with(l) || l >= u,
            _ => false,
        }
    }
}

impl IndexScanState {
    pub(crate) fn new(scan: &Scan) -> IndexScanState {
        IndexScanState {
            emitter: ScanProjection::new(scan),
            index: None,
            at: ScanPosition::Start,
            open: OpenRow::default(),
            evaluation: ResumableEvaluation::default(),
            start: ResumableEvaluation::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        scan: &'a Scan,
        definition: &'a IndexDef,
        range: &'a KeyRange,
        reverse: bool,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(self.emitter.width());
        if matches!(self.at, ScanPosition::Done) && !self.open.is_some() {
            return Ok(Step::Done);
        }
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        if let Err(absent) = self.open(scan, definition, range, reverse, cx)? {
            return Ok(Step::Wait(absent));
        }
        let guard = cx.txn()?.pin();
        let mut examined = 0;
        while !out.is_full() && examined < EXAMINED_MAX && !cx.yield_pending {
            let open = std::mem::take(&mut self.open);
            let row = match open.row() {
                Some(row) => row,
                None => match self.advance(reverse, cx.txn()?, &guard) {
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
        } else if matches!(self.at, ScanPosition::Done) && !self.open.is_some() {
            Step::Done
        } else {
            Step::Yield
        })
    }

    /// Computes where to look, unless that is known; or says what is absent: then it is called again.
    pub(crate) fn open<'a>(
        &mut self,
        scan: &'a Scan,
        definition: &'a IndexDef,
        range: &'a KeyRange,
        reverse: bool,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        if self.index.is_none() {
            let index = cx.index(scan.table.storage, definition.storage)?;
            if !definition.computed.is_empty() && !index.serves(cx.txn()?.snapshot()) {
                return Err(SqlError::new(
                    SqlState::SERIALIZATION_FAILURE,
                    format!(
                        "could not serialize access: index \"{}\" was made after the snapshot was taken",
                        definition.name
                    ),
                ));
            }
            self.index = Some(index);
        }
        if matches!(self.at, ScanPosition::Start) {
            let start =
                |cx: &mut ExecutorContext<'a>| start(&scan.table, definition, range, reverse, cx);
            match self.start.of(range.exprs(), cx, start)? {
                Ok(at) => self.at = at,
                Err(absent) => return Ok(Err(absent)),
            }
        }
        Ok(Ok(()))
    }

    /// The next row of an open scan.
    pub(crate) fn advance<'g>(
        &mut self,
        reverse: bool,
        txn: &mut Txn,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        let Some(index) = &self.index else {
            return Ok(None);
        };
        match &mut self.at {
            ScanPosition::Point(key) => {
                let row = txn.get(index, key, guard)?;
                self.at = ScanPosition::Done;
                return Ok(row);
            }
            ScanPosition::Ranges(ranges, cursor) => loop {
                let running = match cursor {
                    Some(running) => running,
                    None => match ranges.pop() {
                        Some(range) => cursor.insert(IndexCursor::new(
                            index,
                            range.lower,
                            range.upper,
                            reverse,
                        )),
                        None => break,
                    },
                };
                match txn.index_next(running, guard)? {
                    Some(row) => return Ok(Some(row)),
                    None => *cursor = None,
                }
            },
            ScanPosition::Start | ScanPosition::Done => {}
        }
        self.at = ScanPosition::Done;
        Ok(None)
    }

    pub(crate) fn rewind(&mut self) {
        self.at = ScanPosition::Start;
        self.open = OpenRow::default();
        self.evaluation.reset();
        self.start.reset();
    }
}

/// Computes where to look.
fn start<'a>(
    relation: &Relation,
    index: &IndexDef,
    range: &'a KeyRange,
    reverse: bool,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<ScanPosition> {
    if index.holds_keys_once() && range.whole_key(index.columns.len()).is_some() {
        let mut key = Vec::with_capacity(32);
        for (i, scan_key) in range.equal.iter().enumerate() {
            let ScanKey::Value(expr) = scan_key else {
                continue;
            };
            if !push_key(relation, index, i, expr, &mut key, cx)? {
                return Ok(ScanPosition::Done);
            }
        }
        return Ok(ScanPosition::Point(key));
    }
    let mut prefixes = vec![Vec::with_capacity(32)];
    for (i, scan_key) in range.equal.iter().enumerate() {
        match scan_key {
            ScanKey::Value(expr) => {
                let mut key = Vec::new();
                if !push_key(relation, index, i, expr, &mut key, cx)? {
                    return Ok(ScanPosition::Done);
                }
                prefixes.iter_mut().for_each(|p| p.extend_from_slice(&key));
            }
            ScanKey::Null => {
                let mut key = Vec::new();
                encode(relation, index, i, &Datum::Null, &mut key)?;
                prefixes.iter_mut().for_each(|p| p.extend_from_slice(&key));
            }
            ScanKey::Any(any) => {
                let keys = any_keys(relation, index, i, any, cx)?;
                // Keys of columns are prefix-free: in order by columns, in order as a whole.
                let longer = prefixes.iter().flat_map(|prefix| {
                    let join = |key: &Vec<u8>| [prefix.as_slice(), key].concat();
                    keys.iter().map(join)
                });
                prefixes = longer.collect();
            }
        }
    }
    let mut ranges = if range.has_bounds() {
        let Some(tail) = RangeSuffix::of(relation, index, range, cx)? else {
            return Ok(ScanPosition::Done);
        };
        let all = prefixes.into_iter().map(|prefix| tail.after(prefix));
        all.filter(|range| !range.is_empty()).collect()
    } else {
        prefixes.into_iter().map(whole_prefix).collect::<Vec<_>>()
    };
    // Taken from the end.
    if !reverse {
        ranges.reverse();
    }
    Ok(ScanPosition::Ranges(ranges, None))
}

/// Everything that begins with `prefix`.
fn whole_prefix(prefix: Vec<u8>) -> ScanRange {
    if prefix.is_empty() {
        return ScanRange {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        };
    }
    ScanRange {
        lower: Bound::Included(prefix.clone()),
        upper: Bound::Included(prefix),
    }
}

/// Encodes the value of `expr` as column `i` of the key; false if it is NULL, which equals nothing.
pub(crate) fn push_key<'a>(
    relation: &Relation,
    index: &IndexDef,
    i: usize,
    expr: &'a Expr,
    out: &mut Vec<u8>,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<bool> {
    // Parameters and constants need no copy.
    let computed;
    let datum = match expr {
        Expr::Param(at, _) if *at < cx.params.len() => &cx.params[*at],
        Expr::Const(datum, _) => datum,
        _ => {
            computed = eval_in(expr, &[], cx)?;
            &computed
        }
    };
    if datum.is_null() {
        return Ok(false);
    }
    encode(relation, index, i, datum, out)?;
    Ok(true)
}

fn encode(
    relation: &Relation,
    index: &IndexDef,
    i: usize,
    datum: &Datum,
    out: &mut Vec<u8>,
) -> Result<()> {
    let column = index
        .columns
        .get(i)
        .ok_or_else(|| SqlError::internal("a key has more columns than its index"))?;
    let ty = column.ty(relation);
    key::encode_key(ty.oid, datum, column.desc, column.nulls_first, out);
    Ok(())
}

/// Sorted, distinct keys of `column = ANY (array)`.
fn any_keys<'a>(
    relation: &Relation,
    index: &IndexDef,
    i: usize,
    any: &'a Expr,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Vec<Vec<u8>>> {
    let array = match eval_in(any, &[], cx)? {
        Datum::Array(array) => array,
        Datum::Null => return Ok(Vec::new()),
        _ => {
            return Err(SqlError::internal("= ANY over something that is no array").into());
        }
    };
    let mut keys = Vec::with_capacity(array.items.len());
    for item in array.items.iter().filter(|item| !item.is_null()) {
        let mut bytes = Vec::new();
        encode(relation, index, i, item, &mut bytes)?;
        keys.push(bytes);
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// One end of a range, after a prefix.
enum RangeEnd {
    /// Everything from what begins with these bytes on (a lower end), or up to that (an upper one).
    With(Vec<u8>),
    /// Nothing that begins with these bytes.
    Without(Vec<u8>),
}

/// The range after the columns that are looked up: the same for each prefix.
struct RangeSuffix {
    from: RangeEnd,
    to: RangeEnd,
}

impl RangeSuffix {
    /// `None` when the range is empty because a bound is NULL.
    fn of<'a>(
        relation: &Relation,
        index: &IndexDef,
        range: &'a KeyRange,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Option<RangeSuffix>> {
        let i = range.equal.len();
        let column = index
            .columns
            .get(i)
            .ok_or_else(|| SqlError::internal("a range beyond the index's columns"))?;
        // A descending column stores greater values first: its lower bound comes last.
        let (from, to) = if column.desc {
            (&range.upper, &range.lower)
        } else {
            (&range.lower, &range.upper)
        };
        let mut null = Vec::new();
        encode(relation, index, i, &Datum::Null, &mut null)?;
        let mut end =
            |bound: &'a Option<KeyBound>, nulls_here: bool| -> Evaluated<Option<RangeEnd>> {
                let Some(bound) = bound else {
                    // NULLs satisfy no range: they are left out where they stand.
                    return Ok(Some(if nulls_here {
                        RangeEnd::Without(null.clone())
                    } else {
                        RangeEnd::With(Vec::new())
                    }));
                };
                let mut bytes = Vec::new();
                for (at, key) in bound.keys.iter().enumerate() {
                    if !push_key(relation, index, i + at, key, &mut bytes, cx)? {
                        return Ok((at > 0).then_some(RangeEnd::With(bytes)));
                    }
                }
                Ok(Some(if bound.inclusive {
                    RangeEnd::With(bytes)
                } else {
                    RangeEnd::Without(bytes)
                }))
            };
        let from = end(from, column.nulls_first)?;
        let to = end(to, !column.nulls_first)?;
        Ok(from.zip(to).map(|(from, to)| RangeSuffix { from, to }))
    }

    /// The range of keys that begin with `prefix`.
    fn after(&self, prefix: Vec<u8>) -> ScanRange {
        let join = |bytes: &[u8]| [prefix.as_slice(), bytes].concat();
        ScanRange {
            lower: match &self.from {
                RangeEnd::With(bytes) => Bound::Included(join(bytes)),
                RangeEnd::Without(bytes) => Bound::Excluded(join(bytes)),
            },
            upper: match &self.to {
                RangeEnd::With(bytes) => Bound::Included(join(bytes)),
                RangeEnd::Without(bytes) => Bound::Excluded(join(bytes)),
            },
        }
    }
}
