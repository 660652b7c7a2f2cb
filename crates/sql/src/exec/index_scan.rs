//! Index scans: from a key range's expressions to encoded bounds, and rows in key order.
//!
//! A range is turned into byte bounds once per (re)start. Bounds work on prefixes of keys: everything that begins with
//! `prefix` lies between `prefix` and its *successor*, the smallest byte string above all of them.

use super::batch::Batch;
use super::context::Cx;
use super::eval::eval_in;
use super::operator::Step;
use super::scan::{EXAMINED_MAX, Emitter};
use crate::catalog::{IndexDef, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{KeyRange, Scan};
use crate::value::{Datum, key};
use logstead_engine::{Guard, Index, IndexCursor, Row, Txn};
use std::ops::Bound;
use std::sync::Arc;

/// State of an index scan.
pub(crate) struct IndexState {
    emitter: Emitter,
    index: Option<Arc<Index>>,
    at: At,
}

/// Where an index scan stands.
enum At {
    /// Bounds not computed yet.
    Start,
    /// One whole key of a unique index.
    Point(Vec<u8>),
    /// In the last of the ranges, which are taken from the end.
    Ranges(Vec<Range>, Option<IndexCursor>),
    Done,
}

/// Bounds of one run through the index.
pub(crate) struct Range {
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl IndexState {
    pub(crate) fn new(scan: &Scan) -> IndexState {
        IndexState {
            emitter: Emitter::new(scan),
            index: None,
            at: At::Start,
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        scan: &'a Scan,
        definition: &'a IndexDef,
        range: &'a KeyRange,
        reverse: bool,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(self.emitter.width());
        if matches!(self.at, At::Done) {
            return Ok(Step::Done);
        }
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        self.open(scan, definition, range, reverse, cx)?;
        let guard = cx.txn()?.pin();
        let mut examined = 0;
        while !out.is_full() && examined < EXAMINED_MAX && !cx.owed {
            let Some(row) = self.advance(reverse, cx.txn()?, &guard) else {
                break;
            };
            examined += 1;
            self.emitter.emit(scan, &row, cx, out)?;
        }
        cx.worked(examined);
        Ok(if !out.is_empty() {
            Step::Batch
        } else if matches!(self.at, At::Done) {
            Step::Done
        } else {
            Step::Yield
        })
    }

    /// Computes where to look, unless that is known.
    pub(crate) fn open<'a>(
        &mut self,
        scan: &'a Scan,
        definition: &'a IndexDef,
        range: &'a KeyRange,
        reverse: bool,
        cx: &mut Cx<'a>,
    ) -> Result<()> {
        if self.index.is_none() {
            self.index = Some(cx.index(scan.table.storage, definition.storage)?);
        }
        if matches!(self.at, At::Start) {
            self.at = start(&scan.table, definition, range, reverse, cx)?;
        }
        Ok(())
    }

    /// The next row of an open scan.
    pub(crate) fn advance<'g>(
        &mut self,
        reverse: bool,
        txn: &mut Txn,
        guard: &'g Guard,
    ) -> Option<Row<'g>> {
        let index = self.index.as_ref()?;
        match &mut self.at {
            At::Point(key) => {
                let row = txn.get(index, key, guard);
                self.at = At::Done;
                return row;
            }
            At::Ranges(ranges, cursor) => loop {
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
                match txn.index_next(running, guard) {
                    Some(row) => return Some(row),
                    None => *cursor = None,
                }
            },
            At::Start | At::Done => {}
        }
        self.at = At::Done;
        None
    }

    pub(crate) fn rewind(&mut self) {
        self.at = At::Start;
    }
}

/// Computes where to look.
fn start<'a>(
    relation: &Relation,
    index: &IndexDef,
    range: &'a KeyRange,
    reverse: bool,
    cx: &mut Cx<'a>,
) -> Result<At> {
    let mut prefix = Vec::with_capacity(32);
    for (i, expr) in range.equal.iter().enumerate() {
        if !push_key(relation, index, i, expr, &mut prefix, cx)? {
            return Ok(At::Done);
        }
    }
    let next = range.equal.len();
    if let Some(any) = &range.any {
        let mut keys = any_keys(relation, index, next, any, &prefix, cx)?;
        // Taken from the end.
        if !reverse {
            keys.reverse();
        }
        return Ok(At::Ranges(
            keys.into_iter().map(whole_prefix).collect(),
            None,
        ));
    }
    if range.lower.is_none() && range.upper.is_none() {
        if index.unique && next == index.columns.len() {
            return Ok(At::Point(prefix));
        }
        return Ok(At::Ranges(vec![whole_prefix(prefix)], None));
    }
    Ok(match bounds(relation, index, range, prefix, cx)? {
        Some(range) => At::Ranges(vec![range], None),
        None => At::Done,
    })
}

/// Everything that begins with `prefix`.
fn whole_prefix(prefix: Vec<u8>) -> Range {
    if prefix.is_empty() {
        return Range {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
        };
    }
    let upper = below_successor(prefix.clone());
    Range {
        lower: Bound::Included(prefix),
        upper,
    }
}

/// Encodes the value of `expr` as column `i` of the key; false if it is NULL, which equals nothing.
pub(crate) fn push_key<'a>(
    relation: &Relation,
    index: &IndexDef,
    i: usize,
    expr: &'a Expr,
    out: &mut Vec<u8>,
    cx: &mut Cx<'a>,
) -> Result<bool> {
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
    prefix: &[u8],
    cx: &mut Cx<'a>,
) -> Result<Vec<Vec<u8>>> {
    let array = match eval_in(any, &[], cx)? {
        Datum::Array(array) => array,
        Datum::Null => return Ok(Vec::new()),
        _ => return Err(SqlError::internal("= ANY over something that is no array")),
    };
    let mut keys = Vec::with_capacity(array.items.len());
    for item in array.items.iter().filter(|item| !item.is_null()) {
        let mut bytes = prefix.to_vec();
        encode(relation, index, i, item, &mut bytes)?;
        keys.push(bytes);
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// Bounds of a range on the column after `prefix`; `None` when it is empty because a bound is NULL.
fn bounds<'a>(
    relation: &Relation,
    index: &IndexDef,
    range: &'a KeyRange,
    prefix: Vec<u8>,
    cx: &mut Cx<'a>,
) -> Result<Option<Range>> {
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
    let mut bytes = prefix.clone();
    let lower = match from {
        Some((expr, inclusive)) => {
            if !push_key(relation, index, i, expr, &mut bytes, cx)? {
                return Ok(None);
            }
            if *inclusive {
                Bound::Included(bytes)
            } else {
                above_prefix(bytes)
            }
        }
        // NULLs satisfy no range: start behind them.
        None if column.nulls_first => {
            encode(relation, index, i, &Datum::Null, &mut bytes)?;
            above_prefix(bytes)
        }
        None => Bound::Included(bytes),
    };
    let mut bytes = prefix;
    let upper = match to {
        Some((expr, inclusive)) => {
            if !push_key(relation, index, i, expr, &mut bytes, cx)? {
                return Ok(None);
            }
            if *inclusive {
                below_successor(bytes)
            } else {
                Bound::Excluded(bytes)
            }
        }
        None if column.nulls_first => below_successor(bytes),
        None => {
            encode(relation, index, i, &Datum::Null, &mut bytes)?;
            Bound::Excluded(bytes)
        }
    };
    let empty = match (&lower, &upper) {
        (Bound::Included(l), Bound::Excluded(u)) => l >= u,
        _ => false,
    };
    Ok(if empty {
        None
    } else {
        Some(Range { lower, upper })
    })
}

/// Lower bound behind everything that begins with `prefix`. Nothing is behind a prefix without a successor, and such a
/// prefix stays as an exclusive bound: keys never consist of 0xFF bytes alone.
fn above_prefix(mut prefix: Vec<u8>) -> Bound<Vec<u8>> {
    if successor(&mut prefix) {
        Bound::Included(prefix)
    } else {
        Bound::Excluded(vec![0xFF; 64])
    }
}

/// Upper bound that takes in everything that begins with `prefix`.
fn below_successor(mut prefix: Vec<u8>) -> Bound<Vec<u8>> {
    if successor(&mut prefix) {
        Bound::Excluded(prefix)
    } else {
        Bound::Unbounded
    }
}

/// Turns `prefix` into the smallest string above all that begin with it; false if there is none.
fn successor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.last_mut() {
        if *last < 0xFF {
            *last += 1;
            return true;
        }
        prefix.pop();
    }
    false
}
