//! Joins: hash join for equalities, nested loop for everything else.
//!
//! A nested loop whose right side depends on the left row (*lateral*: index joins, LATERAL) starts the right side over for each
//! left row; any other keeps the right side's rows in memory. Both remember which right rows matched when the kind asks
//! for those that did not.

use super::batch::{BATCH_ROWS, Batch, Rows, check_memory};
use super::context::{Cx, Evaluation};
use super::eval::{eval_in, holds};
use super::fixed::is_fixed;
use super::held::Held;
use super::keytable::KeyTable;
use super::operator::{Running, Step, pull};
use super::stats::width;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{JoinKind, Node, Plan};
use crate::value::{Datum, key};
use logstead_engine::Absent;

/// No row: ends a chain.
const NONE: u32 = u32::MAX;

/// What happens to a joined pair or a row without partner; the same for both joins.
#[derive(Clone, Copy)]
struct Shape {
    kind: JoinKind,
    left_width: usize,
    right_width: usize,
}

impl Shape {
    fn of(kind: JoinKind, left: &Plan, right: &Plan) -> Shape {
        Shape {
            kind,
            left_width: width(left),
            right_width: width(right),
        }
    }

    fn width(self) -> usize {
        if self.left_only() {
            self.left_width
        } else {
            self.left_width + self.right_width
        }
    }

    /// Semi and anti joins give the left row alone.
    fn left_only(self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }

    /// Right rows without partner come out at the end.
    fn keeps_right(self) -> bool {
        matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }

    /// What a left row gives when its partners are exhausted.
    fn end_left(self, left: &[Datum], matched: bool, out: &mut Batch) {
        match self.kind {
            JoinKind::Left | JoinKind::Full if !matched => out.push_padded(left, self.right_width),
            JoinKind::Anti if !matched => out.push_row(left),
            JoinKind::Semi if matched => out.push_row(left),
            _ => {}
        }
    }

    /// Gives right rows that matched nothing, from `at` on; false when there are no more.
    fn unmatched(self, rows: &Rows, matched: &[bool], at: &mut usize, out: &mut Batch) {
        while *at < rows.len() && !out.is_full() {
            if !matched.get(*at).copied().unwrap_or(false) {
                for _ in 0..self.left_width {
                    out.push(Datum::Null);
                }
                for datum in rows.row(*at) {
                    out.push(datum.clone());
                }
                out.end_row();
            }
            *at += 1;
        }
    }
}

/// A pair being judged.
#[derive(Default)]
struct Pair {
    row: Vec<Datum>,
    evaluation: Evaluation,
}

impl Pair {
    /// Whether the further condition holds for a pair; or what is absent: then it is called again for the same one.
    fn holds<'a>(
        &mut self,
        condition: Option<&'a Expr>,
        left: &[Datum],
        right: &[Datum],
        cx: &mut Cx<'a>,
    ) -> Result<Result<bool, Absent>> {
        let Some(condition) = condition else {
            return Ok(Ok(true));
        };
        self.row.clear();
        self.row.extend_from_slice(left);
        self.row.extend_from_slice(right);
        let row = &self.row;
        self.evaluation
            .of([condition], cx, |cx| holds(condition, row, cx))
    }
}

/// State of a nested loop.
pub(crate) struct LoopState {
    pub(crate) left: Running,
    pub(crate) right: Running,
    left_batch: Batch,
    left_at: usize,
    /// Partners of the current left row: a batch of the right side, or the kept rows.
    right_batch: Batch,
    kept: Rows,
    held: Held,
    kept_complete: bool,
    right_at: usize,
    /// In the middle of a left row.
    open: bool,
    matched: bool,
    /// The right side has been started before.
    started: bool,
    right_matched: Vec<bool>,
    left_done: bool,
    pair: Pair,
    /// Copy of the current left row, for a lateral right side.
    outer_row: Vec<Datum>,
    unmatched_at: usize,
    /// Whether the kept rows stay right when started over; found out the first time.
    right_fixed: Option<bool>,
}

impl LoopState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> LoopState {
        LoopState {
            left: Running::new(left),
            right: Running::new(right),
            left_batch: Batch::default(),
            left_at: 0,
            right_batch: Batch::default(),
            kept: Rows::default(),
            held: Held::default(),
            kept_complete: false,
            right_at: 0,
            open: false,
            matched: false,
            started: false,
            right_matched: Vec::new(),
            left_done: false,
            pair: Pair::default(),
            outer_row: Vec::new(),
            unmatched_at: 0,
            right_fixed: None,
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let Node::NestedLoop {
            left,
            right,
            kind,
            condition,
            lateral,
        } = &plan.node
        else {
            return Err(SqlError::internal(
                "a nested loop was given another node's plan",
            ));
        };
        let shape = Shape::of(*kind, left, right);
        let condition = condition.as_ref();
        out.start(shape.width());
        if !*lateral && !self.kept_complete {
            while pull!(self.right, right, cx, &mut self.right_batch) {
                self.kept.append(&mut self.right_batch);
                let held_bytes = self.kept.size_bytes();
                check_memory("A nested loop", held_bytes, cx.memory_bytes_max)?;
                self.held.set(held_bytes, cx.memory())?;
            }
            self.kept_complete = true;
            if shape.keeps_right() {
                self.right_matched = vec![false; self.kept.len()];
            }
        }
        loop {
            if self.left_done {
                if shape.keeps_right() {
                    shape.unmatched(&self.kept, &self.right_matched, &mut self.unmatched_at, out);
                }
                return Ok(if out.is_empty() {
                    Step::Done
                } else {
                    Step::Batch
                });
            }
            if !self.open {
                if self.left_at == self.left_batch.len() {
                    if !out.is_empty() {
                        return Ok(Step::Batch);
                    }
                    self.left_batch.set_capacity(if *lateral {
                        out.capacity().clamp(16, BATCH_ROWS)
                    } else {
                        BATCH_ROWS
                    });
                    self.left_at = 0;
                    self.left_batch.start(0);
                    if !pull!(self.left, left, cx, &mut self.left_batch) {
                        self.left_done = true;
                        continue;
                    }
                }
                if *lateral && std::mem::replace(&mut self.started, true) {
                    self.right.rewind(right, cx);
                }
                if *lateral {
                    self.outer_row.clear();
                    self.outer_row
                        .extend_from_slice(self.left_batch.row(self.left_at));
                }
                self.open = true;
                self.matched = false;
                self.right_at = 0;
                self.right_batch.start(0);
            }
            let ended = if *lateral {
                self.lateral_row(shape, right, condition, cx, out)?
            } else {
                self.kept_row(shape, condition, cx, out)?
            };
            match ended {
                Ended::Row => {}
                Ended::Step(step) if out.is_empty() => return Ok(step),
                // What made it stop says so again at the next call.
                Ended::Step(_) | Ended::Full => return Ok(Step::Batch),
            }
            shape.end_left(self.left_batch.row(self.left_at), self.matched, out);
            self.left_at += 1;
            self.open = false;
            if out.is_full() {
                return Ok(Step::Batch);
            }
        }
    }

    /// Goes on with the current left row against the kept rows.
    fn kept_row<'a>(
        &mut self,
        shape: Shape,
        condition: Option<&'a Expr>,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Ended> {
        let left = self.left_batch.row(self.left_at);
        while self.right_at < self.kept.len() {
            if out.is_full() {
                return Ok(Ended::Full);
            }
            if cx.tick()? {
                return Ok(Ended::Step(Step::Yield));
            }
            let right = self.kept.row(self.right_at);
            let holds = match self.pair.holds(condition, left, right, cx)? {
                Ok(holds) => holds,
                Err(absent) => return Ok(Ended::Step(Step::Wait(absent.into()))),
            };
            let at = self.right_at;
            self.right_at += 1;
            if !holds {
                continue;
            }
            self.matched = true;
            if let Some(matched) = self.right_matched.get_mut(at) {
                *matched = true;
            }
            if shape.left_only() {
                break;
            }
            out.push_joined(left, right);
        }
        Ok(Ended::Row)
    }

    /// Goes on with the current left row against a right side that depends on it.
    fn lateral_row<'a>(
        &mut self,
        shape: Shape,
        right: &'a Plan,
        condition: Option<&'a Expr>,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Ended> {
        if shape.keeps_right() {
            return Err(SqlError::internal(
                "a RIGHT or FULL join cannot depend on its left side",
            ));
        }
        loop {
            while self.right_at < self.right_batch.len() {
                if out.is_full() {
                    return Ok(Ended::Full);
                }
                let (left, row) = (
                    self.left_batch.row(self.left_at),
                    self.right_batch.row(self.right_at),
                );
                let holds = match self.pair.holds(condition, left, row, cx)? {
                    Ok(holds) => holds,
                    Err(absent) => return Ok(Ended::Step(Step::Wait(absent.into()))),
                };
                self.right_at += 1;
                if !holds {
                    continue;
                }
                self.matched = true;
                if shape.left_only() {
                    return Ok(Ended::Row);
                }
                out.push_joined(left, row);
            }
            self.right_at = 0;
            self.right_batch
                .set_capacity(if shape.left_only() && condition.is_none() {
                    1
                } else {
                    BATCH_ROWS
                });
            cx.outer.push(std::mem::take(&mut self.outer_row));
            let step = self.right.next(right, cx, &mut self.right_batch);
            self.outer_row = cx.outer.pop().unwrap_or_default();
            match step? {
                Step::Batch => {}
                Step::Done => return Ok(Ended::Row),
                other => return Ok(Ended::Step(other)),
            }
        }
    }

    pub(crate) fn rewind(&mut self, left: &Plan, right: &Plan, lateral: bool, cx: &mut Cx<'_>) {
        self.left.rewind(left, cx);
        if lateral {
            self.right.rewind(right, cx);
        } else if !self.kept_complete || !*self.right_fixed.get_or_insert_with(|| is_fixed(right)) {
            self.right.rewind(right, cx);
            self.kept = Rows::default();
            self.kept_complete = false;
        } else {
            self.right_matched.fill(false);
        }
        self.started = false;
        self.left_batch.start(0);
        self.left_at = 0;
        self.right_batch.start(0);
        self.right_at = 0;
        self.open = false;
        self.left_done = false;
        self.unmatched_at = 0;
        self.pair.evaluation.reset();
    }
}

/// How a stretch of work on one left row ended.
enum Ended {
    /// Its partners are exhausted.
    Row,
    /// `out` is full.
    Full,
    /// The right side has to wait.
    Step(Step),
}

/// State of a hash join.
pub(crate) struct HashJoinState {
    pub(crate) left: Running,
    pub(crate) right: Running,
    built: bool,
    keys: KeyTable,
    rows: Rows,
    held: Held,
    /// First and last row of each key's chain; the next row of each row.
    chains: Vec<(u32, u32)>,
    next: Vec<u32>,
    right_matched: Vec<bool>,
    right_batch: Batch,
    left_batch: Batch,
    left_at: usize,
    /// Next partner of the current left row; `None` before its lookup.
    partner: Option<u32>,
    matched: bool,
    left_done: bool,
    unmatched_at: usize,
    key: Vec<u8>,
    pair: Pair,
    /// Of the keys of either side.
    evaluation: Evaluation,
    /// The next row of the right side's batch to be taken into the table.
    right_at: usize,
    /// Whether the table stays right when started over; found out the first time.
    right_fixed: Option<bool>,
}

impl HashJoinState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> HashJoinState {
        HashJoinState {
            left: Running::new(left),
            right: Running::new(right),
            built: false,
            keys: KeyTable::default(),
            rows: Rows::default(),
            held: Held::default(),
            chains: Vec::new(),
            next: Vec::new(),
            right_matched: Vec::new(),
            right_batch: Batch::default(),
            left_batch: Batch::default(),
            left_at: 0,
            partner: None,
            matched: false,
            left_done: false,
            unmatched_at: 0,
            key: Vec::new(),
            pair: Pair::default(),
            evaluation: Evaluation::default(),
            right_at: 0,
            right_fixed: None,
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let Node::HashJoin {
            left,
            right,
            kind,
            left_keys,
            right_keys,
            condition,
        } = &plan.node
        else {
            return Err(SqlError::internal(
                "a hash join was given another node's plan",
            ));
        };
        let shape = Shape::of(*kind, left, right);
        let condition = condition.as_ref();
        out.start(shape.width());
        if !self.built {
            loop {
                if let Err(absent) = self.build((&left_keys[..], &right_keys[..]), shape, cx)? {
                    return Ok(Step::Wait(absent.into()));
                }
                self.right_at = 0;
                self.right_batch.start(0);
                if !pull!(self.right, right, cx, &mut self.right_batch) {
                    break;
                }
            }
            self.built = true;
            if shape.keeps_right() {
                self.right_matched = vec![false; self.rows.len()];
            }
        }
        loop {
            if self.left_done {
                if shape.keeps_right() {
                    shape.unmatched(&self.rows, &self.right_matched, &mut self.unmatched_at, out);
                }
                return Ok(if out.is_empty() {
                    Step::Done
                } else {
                    Step::Batch
                });
            }
            if self.left_at == self.left_batch.len() {
                if !out.is_empty() {
                    return Ok(Step::Batch);
                }
                // No partner for anybody: inner, right and semi joins need not look.
                let nothing = self.keys.len() == 0
                    && matches!(kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Right);
                self.left_at = 0;
                self.left_batch.start(0);
                if nothing || !pull!(self.left, left, cx, &mut self.left_batch) {
                    self.left_done = true;
                    continue;
                }
            }
            // Long chains of partners that a further condition refuses are work too.
            if cx.tick()? {
                return Ok(if out.is_empty() {
                    Step::Yield
                } else {
                    Step::Batch
                });
            }
            let row = self.left_batch.row(self.left_at);
            let mut partner = match self.partner {
                Some(partner) => partner,
                None => {
                    self.matched = false;
                    let (key, all) = (&mut self.key, left_keys.iter().chain(right_keys));
                    let evaluate = |cx: &mut Cx<'a>| hash_key(left_keys, row, key, cx);
                    let has_key = match self.evaluation.of(all, cx, evaluate)? {
                        Ok(has_key) => has_key,
                        Err(absent) if out.is_empty() => return Ok(Step::Wait(absent.into())),
                        // It is met again with the next batch.
                        Err(_) => return Ok(Step::Batch),
                    };
                    if has_key {
                        self.keys
                            .find(&self.key)
                            .map_or(NONE, |number| self.chains[number].0)
                    } else {
                        NONE
                    }
                }
            };
            while partner != NONE {
                if out.is_full() {
                    self.partner = Some(partner);
                    return Ok(Step::Batch);
                }
                let at = partner as usize;
                let holds = match self.pair.holds(condition, row, self.rows.row(at), cx)? {
                    Ok(holds) => holds,
                    Err(absent) => {
                        self.partner = Some(partner);
                        return Ok(match out.is_empty() {
                            true => Step::Wait(absent.into()),
                            // It is met again with the next batch.
                            false => Step::Batch,
                        });
                    }
                };
                partner = self.next[at];
                cx.worked(1);
                if !holds {
                    continue;
                }
                self.matched = true;
                if let Some(matched) = self.right_matched.get_mut(at) {
                    *matched = true;
                }
                if shape.left_only() {
                    break;
                }
                out.push_joined(row, self.rows.row(at));
            }
            if out.is_full() {
                self.partner = Some(NONE);
                return Ok(Step::Batch);
            }
            shape.end_left(row, self.matched, out);
            self.left_at += 1;
            self.partner = None;
        }
    }

    /// Takes what is left of a batch of the right side into the table.
    fn build<'a>(
        &mut self,
        (left_keys, right_keys): (&'a [Expr], &'a [Expr]),
        shape: Shape,
        cx: &mut Cx<'a>,
    ) -> Result<Result<(), Absent>> {
        while self.right_at < self.right_batch.len() {
            let row = self.right_batch.row(self.right_at);
            let (key, all) = (&mut self.key, left_keys.iter().chain(right_keys));
            let evaluate = |cx: &mut Cx<'a>| hash_key(right_keys, row, key, cx);
            let has_key = match self.evaluation.of(all, cx, evaluate)? {
                Ok(has_key) => has_key,
                Err(absent) => return Ok(Err(absent)),
            };
            self.right_at += 1;
            if !has_key && !shape.keeps_right() {
                continue;
            }
            let number = self.rows.len();
            self.rows.push(row);
            self.next.push(NONE);
            if !has_key {
                continue;
            }
            let (key, new) = self.keys.insert(&self.key);
            if new {
                self.chains.push((number as u32, number as u32));
            } else {
                let last = &mut self.chains[key].1;
                self.next[*last as usize] = number as u32;
                *last = number as u32;
            }
        }
        let held_bytes = self.rows.size_bytes() + self.keys.size_bytes() + self.next.len() * 4;
        check_memory(
            "A hash join",
            held_bytes,
            cx.memory_bytes_max.min(NONE as usize),
        )?;
        self.held.set(held_bytes, cx.memory())?;
        Ok(Ok(()))
    }

    pub(crate) fn rewind(&mut self, left: &Plan, right: &Plan, cx: &mut Cx<'_>) {
        self.left.rewind(left, cx);
        self.evaluation.reset();
        self.pair.evaluation.reset();
        self.right_batch.start(0);
        self.right_at = 0;
        if !self.built || !*self.right_fixed.get_or_insert_with(|| is_fixed(right)) {
            self.right.rewind(right, cx);
            self.built = false;
            self.keys.clear();
            self.rows = Rows::default();
            self.chains.clear();
            self.next.clear();
        } else {
            self.right_matched.fill(false);
        }
        self.left_batch.start(0);
        self.left_at = 0;
        self.partner = None;
        self.left_done = false;
        self.unmatched_at = 0;
    }
}

/// Encodes join keys; false if one is NULL, which matches nothing.
fn hash_key<'a>(
    keys: &'a [Expr],
    row: &[Datum],
    out: &mut Vec<u8>,
    cx: &mut Cx<'a>,
) -> Result<bool> {
    out.clear();
    for expr in keys {
        let datum = eval_in(expr, row, cx)?;
        if datum.is_null() {
            return Ok(false);
        }
        key::encode_key(expr.ty().oid, &datum, false, false, out);
    }
    Ok(true)
}
