//! Hash joins, in memory or in parts.
//!
//! The right side is put into a table, the left side looks its matches up. If the table is more than
//! `hash_mem_multiplier` times `work_mem`, both sides are divided by the hash of their keys: one part stays in memory
//! (a *hybrid* join), the others go to temporary files and are joined one after the other. A part that is too large is
//! divided again, by other bits of the hash. What cannot be divided, because its rows are alike, is joined in chunks:
//! as many right rows as there is room for, then all left rows of the part beside them, and again with the next ones.
//!
//! Invariants:
//! - A left row is looked for where its matches are: in the table, or, if they were written, in the part with their
//!   hash. Left rows without a key have none and are given at once; right rows without a key are kept, for kinds that
//!   give them, in any part.
//! - In chunks a left row's fate is a bit (`decided`): whether it has found a match in any chunk. What depends on its
//!   having none is given with the last chunk.
//! - Keys are evaluated once for each row, and written with it.

mod partitions;

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::operand;
use crate::operator::PlanState;
use crate::operator::join::hash_table::{JoinHashTable, NONE};
use crate::operator::join::{JoinPair, JoinShape};
use crate::operator_memory::OperatorMemory;
use crate::rescan_invariant::is_rescan_invariant_by;
use crate::spill::{ReadStep, partition_of};
use crate::wait::Evaluated;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::instrumentation::NodeDetail;
use logstead_sql_plan::{JoinKind, Node, Plan};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, key};
use partitions::{JoinPartitions, part_of};

/// Rows moved between two looks at the clock.
const ROWS_AT_ONCE: usize = 256;
/// What is written in front of a key, and instead of one that there is not.
const KEY: u8 = 1;
const NO_KEY: &[u8] = &[0];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Right rows are taken.
    Build,
    /// Left rows look for their matches.
    Probe,
    /// Right rows without a match are given.
    Unmatched,
    /// What was joined is done.
    Next,
    Done,
}

/// State of a hash join.
pub(crate) struct HashJoinState {
    pub(crate) left: PlanState,
    pub(crate) right: PlanState,
    phase: Phase,
    table: JoinHashTable,
    partitions: Option<Box<JoinPartitions>>,
    held: OperatorMemory,
    right_batch: Batch,
    /// The next row of the right side's batch to be taken into the table.
    right_at: usize,
    /// The right side of what is joined now has ended.
    right_ended: bool,
    left_batch: Batch,
    left_at: usize,
    /// Of a part's left rows in the batch: their keys, where each ends, and the number of the first.
    left_keys: (Vec<u8>, Vec<usize>),
    left_first: usize,
    /// Next match of the current left row; `None` before its lookup.
    partner: Option<u32>,
    matched: bool,
    unmatched_at: usize,
    key: Vec<u8>,
    row: Vec<Datum>,
    pair: JoinPair,
    /// Of the keys of either side.
    evaluation: ResumableEvaluation,
    /// Whether the table stays right when started over; found out the first time.
    right_fixed: Option<bool>,
    batches: u64,
    most_bytes: usize,
}

/// The parts of a join's plan.
#[derive(Clone, Copy)]
struct HashJoinInputs<'a> {
    left: &'a Plan,
    right: &'a Plan,
    left_keys: &'a [Expr],
    right_keys: &'a [Expr],
    condition: Option<&'a Expr>,
    shape: JoinShape,
}

impl HashJoinState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> HashJoinState {
        HashJoinState {
            left: PlanState::new(left),
            right: PlanState::new(right),
            phase: Phase::Build,
            table: JoinHashTable::default(),
            partitions: None,
            held: OperatorMemory::default(),
            right_batch: Batch::default(),
            right_at: 0,
            right_ended: false,
            left_batch: Batch::default(),
            left_at: 0,
            left_keys: Default::default(),
            left_first: 0,
            partner: None,
            matched: false,
            unmatched_at: 0,
            key: Vec::new(),
            row: Vec::new(),
            pair: JoinPair::default(),
            evaluation: ResumableEvaluation::default(),
            right_fixed: None,
            batches: 1,
            most_bytes: 0,
        }
    }

    /// How it was joined.
    pub(crate) fn detail(&self) -> NodeDetail {
        NodeDetail::Hash {
            batches: self.batches,
            memory_kib: (self.most_bytes as u64).div_ceil(1024),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
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
        let sides = HashJoinInputs {
            left,
            right,
            left_keys,
            right_keys,
            condition: condition.as_ref(),
            shape: JoinShape::of(*kind, left, right),
        };
        out.start(sides.shape.width());
        loop {
            let step = match self.phase {
                Phase::Build => self.build(sides, cx)?,
                Phase::Probe => self.probe(sides, cx, out)?,
                Phase::Unmatched => {
                    if sides.shape.keeps_right() {
                        let JoinHashTable { rows, matched, .. } = &self.table;
                        sides
                            .shape
                            .unmatched(rows, matched, &mut self.unmatched_at, out);
                    }
                    out.is_full().then_some(Step::Batch)
                }
                // What comes next may have to wait.
                Phase::Next | Phase::Done if !out.is_empty() => Some(Step::Batch),
                Phase::Next => {
                    self.next_part(sides.shape)?;
                    continue;
                }
                Phase::Done => return Ok(Step::Done),
            };
            match step {
                None => {}
                // What made it stop says so again at the next call.
                Some(step) if !out.is_empty() => return Ok(cx.batch_before(&step)),
                Some(step) => return Ok(step),
            }
            self.phase = match self.phase {
                Phase::Build => {
                    if sides.shape.keeps_right() {
                        self.table.matched = vec![false; self.table.rows.len()];
                    }
                    Phase::Probe
                }
                Phase::Probe => {
                    self.unmatched_at = 0;
                    Phase::Unmatched
                }
                Phase::Unmatched | Phase::Next | Phase::Done => Phase::Next,
            };
        }
    }

    /// Takes right rows until they end, or until a chunk is full. A step that comes before.
    fn build<'a>(
        &mut self,
        sides: HashJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        loop {
            // Rows go to parts as fast as they come, whether a table is being divided or has long been.
            if let Some(partitions) = &self.partitions
                && let Some(obstacle) = partitions.file.behind()?
            {
                return Ok(Some(Step::Wait(obstacle)));
            }
            if let Some(step) = self.divide(cx)? {
                return Ok(Some(step));
            }
            let taken = match self
                .partitions
                .as_ref()
                .is_some_and(|p| p.current.is_some())
            {
                true => self.take_of_part(cx)?,
                false => self.take_batch(sides, cx)?,
            };
            if let Some(step) = taken {
                return Ok(Some(step));
            }
            let held_bytes = self.table.size_bytes();
            self.most_bytes = self.most_bytes.max(held_bytes);
            let open_bytes = self.partitions.as_ref().map_or(0, |p| p.size_bytes());
            self.held.set(held_bytes + open_bytes, cx.memory())?;
            if held_bytes > cx.work_mem_bytes.min(NONE as usize)
                && held_bytes > cx.hash_mem_bytes().min(NONE as usize)
                && !self.overflow(held_bytes, cx)?
            {
                return Ok(None);
            }
            if self
                .partitions
                .as_ref()
                .is_some_and(|p| p.divided.as_ref().is_some_and(|d| d.moving.is_some()))
            {
                continue;
            }
            if self.right_ended {
                return Ok(None);
            }
            if self
                .partitions
                .as_ref()
                .is_some_and(|p| p.current.is_some())
            {
                continue;
            }
            self.right_at = 0;
            self.right_batch.start(0);
            match self.right.next(sides.right, cx, &mut self.right_batch)? {
                Step::Batch => {}
                Step::Done => self.right_ended = true,
                step => return Ok(Some(step)),
            }
        }
    }

    /// Takes what is left of a batch of the right side.
    fn take_batch<'a>(
        &mut self,
        sides: HashJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        while self.right_at < self.right_batch.len() {
            let at = self.right_at;
            let row = self.right_batch.row(at);
            let key = &mut self.key;
            let all = sides.left_keys.iter().chain(sides.right_keys);
            let evaluate = |cx: &mut ExecutorContext<'a>| hash_key(sides.right_keys, row, key, cx);
            let has_key = match self.evaluation.of(all, cx, evaluate)? {
                Ok(has_key) => has_key,
                Err(obstacle) => return Ok(Some(Step::Wait(obstacle))),
            };
            self.right_at += 1;
            if !has_key && !sides.shape.keeps_right() {
                continue;
            }
            let key = has_key.then(|| self.key.get(1..)).flatten();
            let key_written = if has_key { &self.key } else { NO_KEY };
            if let Some(partitions) = &mut self.partitions
                && let Some(divided) = &mut partitions.divided
            {
                let part = part_of(key, 0, &mut divided.turn);
                if divided.resident != Some(part) {
                    divided.right[part].push(key_written, row, &mut partitions.file)?;
                    continue;
                }
            }
            self.table.push(key, self.right_batch.row_mut(at));
        }
        Ok(None)
    }

    /// Takes some right rows of a part.
    fn take_of_part(&mut self, cx: &mut ExecutorContext<'_>) -> Result<Option<Step>> {
        let Some(partitions) = &mut self.partitions else {
            return Ok(None);
        };
        let Some(part) = &mut partitions.current else {
            return Ok(None);
        };
        if cx.tick()? {
            return Ok(Some(Step::Yield));
        }
        for _ in 0..ROWS_AT_ONCE {
            match part.right_reader.advance(&part.right, &partitions.file)? {
                ReadStep::Row => {}
                ReadStep::End => {
                    self.right_ended = true;
                    break;
                }
                ReadStep::Wait(obstacle) => return Ok(Some(Step::Wait(obstacle))),
            }
            cx.worked(1);
            self.row.clear();
            part.right_reader.row(&mut self.row)?;
            let written = part.right_reader.key();
            let key = written.split_first().filter(|(first, _)| **first == KEY);
            let key = key.map(|(_, key)| key);
            if let Some(divided) = &mut partitions.divided {
                let to = part_of(key, part.level, &mut divided.turn);
                if divided.resident != Some(to) {
                    divided.right[to].push(written, &self.row, &mut partitions.file)?;
                    continue;
                }
            }
            self.table.push(key, &mut self.row);
        }
        Ok(None)
    }

    /// Has left rows look for their matches, until they end. A step that comes before.
    fn probe<'a>(
        &mut self,
        sides: HashJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        let shape = sides.shape;
        loop {
            if self.left_at == self.left_batch.len() {
                if !out.is_empty() {
                    return Ok(Some(Step::Batch));
                }
                if let Some(step) = self.fill_left(sides, cx)? {
                    return Ok(Some(step));
                }
                if self.left_batch.is_empty() {
                    return Ok(None);
                }
            }
            // Long chains of matches that a further condition refuses are work too.
            if cx.tick()? {
                return Ok(Some(Step::Yield));
            }
            let mut partner = match self.partner {
                Some(partner) => partner,
                None => match self.look_up(sides, cx)? {
                    ProbeResult::First(partner) => partner,
                    ProbeResult::Spilled => {
                        self.left_at += 1;
                        continue;
                    }
                    ProbeResult::Step(step) => return Ok(Some(step)),
                },
            };
            let row = self.left_batch.row(self.left_at);
            let mut looked = 0;
            while partner != NONE {
                if out.is_full() {
                    self.partner = Some(partner);
                    return Ok(Some(Step::Batch));
                }
                looked += 1;
                if looked % ROWS_AT_ONCE == 0 && cx.tick()? {
                    self.partner = Some(partner);
                    return Ok(Some(Step::Yield));
                }
                let at = partner as usize;
                let right = self.table.rows.row(at);
                let holds = match self.pair.holds(sides.condition, row, right, cx)? {
                    Ok(holds) => holds,
                    Err(obstacle) => {
                        self.partner = Some(partner);
                        return Ok(Some(Step::Wait(obstacle)));
                    }
                };
                partner = self.table.next[at];
                cx.worked(1);
                if !holds {
                    continue;
                }
                self.matched = true;
                if let Some(matched) = self.table.matched.get_mut(at) {
                    *matched = true;
                }
                if shape.left_only() {
                    break;
                }
                out.push_joined(row, right);
            }
            if out.is_full() {
                self.partner = Some(NONE);
                return Ok(Some(Step::Batch));
            }
            let chunk = self.partitions.as_mut().and_then(|p| p.current.as_mut());
            let mut is_last = true;
            if let Some(part) = chunk.filter(|part| part.chunked) {
                is_last = self.right_ended;
                let number = self.left_first + self.left_at;
                if self.matched
                    && let Some(word) = part.decided.get_mut(number / 64)
                {
                    *word |= 1 << (number % 64);
                }
            }
            if is_last || shape.kind == JoinKind::Semi {
                shape.end_left(row, self.matched, out);
            }
            self.left_at += 1;
            self.partner = None;
        }
    }

    /// Finds the first match of the current left row, or sends it where its matches are.
    fn look_up<'a>(
        &mut self,
        sides: HashJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<ProbeResult> {
        self.matched = false;
        let row = self.left_batch.row(self.left_at);
        let current = self.partitions.as_ref().and_then(|p| p.current.as_ref());
        let has_key = match current {
            Some(part) => {
                let number = self.left_first + self.left_at;
                let word = part.decided.get(number / 64).copied().unwrap_or(0);
                self.matched = part.chunked && word >> (number % 64) & 1 == 1;
                if self.matched && sides.shape.left_only() {
                    return Ok(ProbeResult::Spilled);
                }
                let (keys, ends) = &self.left_keys;
                let start = match self.left_at {
                    0 => 0,
                    at => ends[at - 1],
                };
                self.key.clear();
                self.key.extend_from_slice(&keys[start..ends[self.left_at]]);
                true
            }
            None => {
                let key = &mut self.key;
                let all = sides.left_keys.iter().chain(sides.right_keys);
                let evaluate =
                    |cx: &mut ExecutorContext<'a>| hash_key(sides.left_keys, row, key, cx);
                match self.evaluation.of(all, cx, evaluate)? {
                    Ok(has_key) => has_key,
                    Err(obstacle) => return Ok(ProbeResult::Step(Step::Wait(obstacle))),
                }
            }
        };
        if !has_key {
            return Ok(ProbeResult::First(NONE));
        }
        let bare = self.key.get(1..).unwrap_or_default();
        if let Some(partitions) = &mut self.partitions
            && let Some(divided) = &mut partitions.divided
        {
            let level = partitions.current.as_ref().map_or(0, |part| part.level);
            let part = partition_of(bare, level);
            if divided.resident != Some(part) {
                if divided.right[part].rows() == 0 {
                    return Ok(ProbeResult::First(NONE));
                }
                divided.left[part].push(&self.key, row, &mut partitions.file)?;
                return Ok(ProbeResult::Spilled);
            }
        }
        Ok(ProbeResult::First(self.table.first(bare)))
    }

    pub(crate) fn rewind(
        &mut self,
        left: &Plan,
        right: &Plan,
        right_keys: &[Expr],
        cx: &mut ExecutorContext<'_>,
    ) {
        self.left.rewind(left, cx);
        self.evaluation.reset();
        self.pair.evaluation.reset();
        self.right_batch.start(0);
        self.right_at = 0;
        let built = self.partitions.is_none() && self.phase != Phase::Build;
        if !built
            || !*self
                .right_fixed
                .get_or_insert_with(|| is_rescan_invariant_by(right, right_keys))
        {
            self.right.rewind(right, cx);
            self.phase = Phase::Build;
            self.right_ended = false;
            self.table.clear();
            self.partitions = None;
        } else {
            self.table.matched.fill(false);
            self.phase = Phase::Probe;
        }
        self.left_batch.start(0);
        (self.left_at, self.left_first) = (0, 0);
        self.partner = None;
        self.unmatched_at = 0;
    }
}

/// What a lookup came to.
enum ProbeResult {
    /// The first match, or none.
    First(u32),
    /// It needs not be looked for here.
    Spilled,
    /// It has to wait.
    Step(Step),
}

/// Encodes join keys, behind the byte that says that there are any; false if one is NULL, which matches nothing.
fn hash_key<'a>(
    keys: &'a [Expr],
    row: &[Datum],
    out: &mut Vec<u8>,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<bool> {
    out.clear();
    out.push(KEY);
    for expr in keys {
        let datum = operand(expr, row, cx)?;
        if datum.is_null() {
            return Ok(false);
        }
        key::encode_key(expr.ty().oid, &datum, false, false, out);
    }
    Ok(true)
}
