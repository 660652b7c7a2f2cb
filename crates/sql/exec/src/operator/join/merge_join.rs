//! Merge joins: both sides come sorted by the keys, and each is read once from its beginning to its end.
//!
//! A left row's matches are the right rows with the same key, which stand together: the *group*. It is kept while left
//! rows with that key come. Mostly it lies within a batch of the right side, and is read there; one that goes on in the
//! next batch is kept apart, beyond `work_mem` in a temporary file.
//!
//! Invariants:
//! - Right rows before the group have met whoever they could: their fate is decided, and they are gone.
//! - A row with a NULL in its keys has no match; it is given, by kinds that give such rows, where it stands, wherever
//!   its side
//!   sorts NULLs. So only the order of rows without NULLs matters, which is the order of their keys' bytes.
//! - A side that goes back in this order ends the statement (XX000): pairs would be missed.
//! - Keys of a row are evaluated once.

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::eval_in;
use crate::operator::PlanState;
use crate::operator::join::{JoinPair, JoinShape};
use crate::operator_memory::OperatorMemory;
use crate::spill::{ReadStep, Spool, SpoolReader};
use crate::wait::WaitReason;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{JoinKind, MergeKey, Node, Plan};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, key};
use std::cmp::Ordering;

/// Pairs checked between two looks at the clock.
const PAIRS_AT_ONCE: usize = 256;

/// One side: where it is read, and the key of the row it stands at.
struct MergeJoinSide {
    running: PlanState,
    batch: Batch,
    at: usize,
    ended: bool,
    /// The key of the row it stands at, or of the last one before that had one.
    key: Vec<u8>,
    /// A key being made.
    made: Vec<u8>,
    /// Whether the row has a key, once it has been looked at.
    has_key: Option<bool>,
    evaluation: ResumableEvaluation,
}

impl MergeJoinSide {
    fn new(plan: &Plan) -> MergeJoinSide {
        MergeJoinSide {
            running: PlanState::new(plan),
            batch: Batch::default(),
            at: 0,
            ended: false,
            key: Vec::new(),
            made: Vec::new(),
            has_key: None,
            evaluation: ResumableEvaluation::default(),
        }
    }

    fn row(&self) -> &[Datum] {
        self.batch.row(self.at)
    }

    fn pass(&mut self) {
        self.at += 1;
        self.has_key = None;
    }

    /// Goes to the next batch, or to the end. A step that comes before.
    fn fill<'a>(&mut self, plan: &'a Plan, cx: &mut ExecutorContext<'a>) -> Result<Option<Step>> {
        if self.at < self.batch.len() || self.ended {
            return Ok(None);
        }
        self.at = 0;
        self.has_key = None;
        self.batch.start(0);
        match self.running.next(plan, cx, &mut self.batch)? {
            Step::Batch => {}
            Step::Done => self.ended = true,
            step => return Ok(Some(step)),
        }
        Ok(None)
    }

    /// Makes the key of the row it stands at. A step that comes before.
    fn look<'a>(
        &mut self,
        keys: &'a [MergeKey],
        of: fn(&'a MergeKey) -> &'a Expr,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        if self.has_key.is_some() || self.at >= self.batch.len() {
            return Ok(None);
        }
        let row = self.batch.row(self.at);
        let made = &mut self.made;
        let evaluated = self.evaluation.of(keys.iter().map(of), cx, |cx| {
            made.clear();
            for part in keys {
                let expr = of(part);
                let datum = eval_in(expr, row, cx)?;
                if datum.is_null() {
                    return Ok(false);
                }
                key::encode_key(expr.ty().oid, &datum, part.desc, false, made);
            }
            Ok(true)
        })?;
        let has_key = match evaluated {
            Ok(has_key) => has_key,
            Err(obstacle) => return Ok(Some(Step::Wait(obstacle))),
        };
        if has_key {
            if self.made < self.key {
                return Err(SqlError::internal(
                    "the rows of a merge join are out of order",
                ));
            }
            std::mem::swap(&mut self.made, &mut self.key);
        }
        self.has_key = Some(has_key);
        cx.worked(1);
        Ok(None)
    }

    fn rewind(&mut self, plan: &Plan, cx: &mut ExecutorContext<'_>) {
        self.running.rewind(plan, cx);
        self.batch.start(0);
        self.at = 0;
        self.ended = false;
        self.key.clear();
        self.has_key = None;
        self.evaluation.reset();
    }
}

/// Right rows with one key.
#[derive(Default)]
struct Group {
    key: Vec<u8>,
    /// Those in the right side's batch that have not been moved aside; the first ones are in `kept`, if any are.
    from: usize,
    to: usize,
    kept: Spool,
    reader: SpoolReader,
    brought: Batch,
    brought_at: Option<usize>,
    /// Which have found a match, where it matters.
    matched: Vec<bool>,
}

impl Group {
    fn len(&self) -> usize {
        self.kept.len() + (self.to - self.from)
    }

    /// Begins anew at a row of the right side's batch.
    fn start(&mut self, key: &[u8], at: usize) {
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.from, self.to) = (at, at);
        self.clear();
    }

    fn clear(&mut self) {
        if self.kept.len() > 0 {
            self.kept = Spool::default();
            self.reader = SpoolReader::default();
            self.brought_at = None;
        }
        self.matched.clear();
    }

    /// Brings a row that is in a file; what to wait for.
    fn bring(&mut self, at: usize, width: usize) -> Result<Option<WaitReason>> {
        let in_file = at < self.kept.len() && self.kept.in_memory(at).is_none();
        if !in_file || self.brought_at == Some(at) {
            return Ok(None);
        }
        self.brought_at = None;
        self.brought.start(width);
        match self.reader.read(at, &self.kept, &mut self.brought)? {
            ReadStep::Row => {
                self.brought_at = Some(at);
                Ok(None)
            }
            ReadStep::Wait(obstacle) => Ok(Some(obstacle)),
            ReadStep::End => Err(SqlError::internal("a row that was kept is gone")),
        }
    }

    /// A row that is there, or has been brought.
    fn row<'r>(&'r self, at: usize, batch: &'r Batch) -> &'r [Datum] {
        match at.checked_sub(self.kept.len()) {
            Some(behind) => batch.row(self.from + behind),
            None => match self.kept.in_memory(at) {
                Some(row) => row,
                None => self.brought.row(0),
            },
        }
    }

    fn size_bytes(&self) -> usize {
        self.kept.size_bytes() + self.matched.capacity() + self.key.capacity()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// To the next left row.
    Left,
    /// The left row looks for its matches.
    Seek,
    /// The group is gathered.
    Gather,
    /// The left row meets the group.
    Match,
    /// The group's rows that have met nobody are given.
    Close,
    /// There are no more left rows: right rows that are left are given.
    Rest,
    Done,
}

/// State of a merge join.
pub(crate) struct MergeJoinState {
    left: MergeJoinSide,
    right: MergeJoinSide,
    phase: Phase,
    group: Group,
    /// The group is whole; of its key.
    grouped: bool,
    /// The next of the group that the left row meets, or that is given.
    group_at: usize,
    matched: bool,
    pair: JoinPair,
    held: OperatorMemory,
}

/// The parts of a join's plan.
#[derive(Clone, Copy)]
struct MergeJoinInputs<'a> {
    left: &'a Plan,
    right: &'a Plan,
    keys: &'a [MergeKey],
    condition: Option<&'a Expr>,
    shape: JoinShape,
}

impl MergeJoinState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> MergeJoinState {
        MergeJoinState {
            left: MergeJoinSide::new(left),
            right: MergeJoinSide::new(right),
            phase: Phase::Left,
            group: Group::default(),
            grouped: false,
            group_at: 0,
            matched: false,
            pair: JoinPair::default(),
            held: OperatorMemory::default(),
        }
    }

    /// The inputs.
    pub(crate) fn inputs(&self) -> (&PlanState, &PlanState) {
        (&self.left.running, &self.right.running)
    }

    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let Node::MergeJoin {
            left,
            right,
            kind,
            keys,
            condition,
        } = &plan.node
        else {
            return Err(SqlError::internal(
                "a merge join was given another node's plan",
            ));
        };
        let sides = MergeJoinInputs {
            left,
            right,
            keys,
            condition: condition.as_ref(),
            shape: JoinShape::of(*kind, left, right),
        };
        out.start(sides.shape.width());
        loop {
            if out.is_full() {
                return Ok(Step::Batch);
            }
            let step = match cx.tick()? {
                true => Some(Step::Yield),
                false => self.work(sides, cx, out)?,
            };
            match step {
                None => {}
                Some(Step::Done) if !out.is_empty() => return Ok(Step::Batch),
                // What made it stop says so again at the next call.
                Some(step) if !out.is_empty() => return Ok(cx.batch_before(&step)),
                Some(step) => return Ok(step),
            }
        }
    }

    /// Goes one step on.
    fn work<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        match self.phase {
            Phase::Left => self.next_left(sides, cx, out),
            Phase::Seek => self.seek(sides, cx, out),
            Phase::Gather => self.gather(sides, cx),
            Phase::Match => self.meet(sides, cx, out),
            Phase::Close => self.close(sides, cx, out),
            Phase::Rest => {
                if let Some(step) = self.right.fill(sides.right, cx)? {
                    return Ok(Some(step));
                }
                if self.right.at >= self.right.batch.len() {
                    self.phase = Phase::Done;
                    return Ok(None);
                }
                sides.shape.end_right(self.right.row(), out);
                self.right.pass();
                Ok(None)
            }
            Phase::Done => Ok(Some(Step::Done)),
        }
    }

    fn next_left<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        if let Some(step) = self.left.fill(sides.left, cx)? {
            return Ok(Some(step));
        }
        if self.left.ended {
            self.group_at = 0;
            self.phase = match (self.grouped, sides.shape.keeps_right()) {
                (true, _) => Phase::Close,
                (false, true) => Phase::Rest,
                (false, false) => Phase::Done,
            };
            return Ok(None);
        }
        let step = self.left.look(sides.keys, |key| &key.left, cx)?;
        if step.is_some() {
            return Ok(step);
        }
        if self.left.has_key == Some(false) {
            sides.shape.end_left(self.left.row(), false, out);
            self.left.pass();
        } else {
            self.phase = Phase::Seek;
        }
        Ok(None)
    }

    /// Brings the right side to the left row's key.
    fn seek<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        let shape = sides.shape;
        if self.grouped {
            self.group_at = 0;
            self.matched = false;
            self.phase = match self.group.key == self.left.key {
                true => Phase::Match,
                false => Phase::Close,
            };
            return Ok(None);
        }
        if let Some(step) = self.right.fill(sides.right, cx)? {
            return Ok(Some(step));
        }
        if self.right.at >= self.right.batch.len() {
            // Nobody finds a match any more.
            if matches!(
                shape.kind,
                JoinKind::Inner | JoinKind::Semi | JoinKind::Right
            ) {
                self.phase = Phase::Done;
                return Ok(None);
            }
            self.end_left(shape, false, out);
            return Ok(None);
        }
        let step = self.right.look(sides.keys, |key| &key.right, cx)?;
        if step.is_some() {
            return Ok(step);
        }
        let order = match self.right.has_key {
            Some(true) => self.right.key.cmp(&self.left.key),
            _ => Ordering::Less,
        };
        match order {
            Ordering::Less => {
                if shape.keeps_right() {
                    shape.end_right(self.right.row(), out);
                }
                self.right.pass();
            }
            Ordering::Greater => self.end_left(shape, false, out),
            // That there is one is all that is asked.
            Ordering::Equal if shape.left_only() && sides.condition.is_none() => {
                self.end_left(shape, true, out);
            }
            Ordering::Equal => {
                self.group.start(&self.right.key, self.right.at);
                self.phase = Phase::Gather;
            }
        }
        Ok(None)
    }

    fn end_left(&mut self, shape: JoinShape, matched: bool, out: &mut Batch) {
        shape.end_left(self.left.row(), matched, out);
        self.left.pass();
        self.phase = Phase::Left;
    }

    /// Takes right rows into the group until one has another key, or a batch ends.
    fn gather<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        while self.right.at < self.right.batch.len() {
            let step = self.right.look(sides.keys, |key| &key.right, cx)?;
            if step.is_some() {
                return Ok(step);
            }
            if self.right.has_key != Some(true) || self.right.key != self.group.key {
                return self.gathered(sides, cx);
            }
            self.group.to = self.right.at + 1;
            self.right.pass();
        }
        if self.right.ended {
            return self.gathered(sides, cx);
        }
        // The batch goes: its rows of the group are kept apart.
        if let Some(obstacle) = self.group.kept.behind()? {
            return Ok(Some(Step::Wait(obstacle)));
        }
        for at in self.group.from..self.group.to {
            let row = self.right.batch.row(at);
            let kept = &mut self.group.kept;
            kept.push(row, cx.work_mem_bytes, || cx.spill())?;
        }
        (self.group.from, self.group.to) = (0, 0);
        let held_bytes = self.group.size_bytes();
        self.held.set(held_bytes, cx.memory())?;
        cx.check_memory("A merge join", held_bytes)?;
        // Where it is started over nothing of the old batch is left to be kept.
        self.right.batch.start(0);
        self.right.at = 0;
        self.right.fill(sides.right, cx)
    }

    fn gathered<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        if sides.shape.keeps_right() && sides.condition.is_some() {
            self.group.matched.resize(self.group.len(), false);
            let held_bytes = self.group.size_bytes();
            self.held.set(held_bytes, cx.memory())?;
            cx.check_memory("A merge join", held_bytes)?;
        }
        self.grouped = true;
        self.phase = Phase::Seek;
        Ok(None)
    }

    /// The left row and the group.
    fn meet<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        let shape = sides.shape;
        let len = self.group.len();
        let mut judged = 0;
        while self.group_at < len {
            // What is full is given, and what has worked for long yields, before the next one.
            if out.is_full() || judged == PAIRS_AT_ONCE || cx.yield_pending {
                return Ok(None);
            }
            judged += 1;
            let at = self.group_at;
            if let Some(obstacle) = self.group.bring(at, shape.right_width)? {
                return Ok(Some(Step::Wait(obstacle)));
            }
            let (left, right) = (self.left.row(), self.group.row(at, &self.right.batch));
            let holds = match self.pair.holds(sides.condition, left, right, cx)? {
                Ok(holds) => holds,
                Err(obstacle) => return Ok(Some(Step::Wait(obstacle))),
            };
            cx.worked(1);
            self.group_at += 1;
            if !holds {
                continue;
            }
            self.matched = true;
            if shape.left_only() {
                self.group_at = len;
                break;
            }
            out.push_joined(left, right);
            if let Some(matched) = self.group.matched.get_mut(at) {
                *matched = true;
            }
        }
        if !out.is_full() {
            let matched = self.matched;
            self.end_left(shape, matched, out);
        }
        Ok(None)
    }

    /// No left row with the group's key comes any more.
    fn close<'a>(
        &mut self,
        sides: MergeJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        let mut looked = 0;
        // Without a further condition all have met the left rows they were gathered for.
        while self.group_at < self.group.matched.len() {
            if out.is_full() || looked == PAIRS_AT_ONCE {
                return Ok(None);
            }
            looked += 1;
            cx.worked(1);
            let at = self.group_at;
            if !self.group.matched.get(at).copied().unwrap_or(true) {
                if let Some(obstacle) = self.group.bring(at, sides.shape.right_width)? {
                    return Ok(Some(Step::Wait(obstacle)));
                }
                let row = self.group.row(at, &self.right.batch);
                sides.shape.end_right(row, out);
            }
            self.group_at += 1;
        }
        self.group.clear();
        (self.group.from, self.group.to) = (0, 0);
        self.held.set(self.group.size_bytes(), cx.memory())?;
        self.grouped = false;
        self.phase = match (self.left.ended, sides.shape.keeps_right()) {
            (false, _) => Phase::Seek,
            (true, true) => Phase::Rest,
            (true, false) => Phase::Done,
        };
        Ok(None)
    }

    pub(crate) fn rewind(&mut self, left: &Plan, right: &Plan, cx: &mut ExecutorContext<'_>) {
        self.left.rewind(left, cx);
        self.right.rewind(right, cx);
        self.phase = Phase::Left;
        self.group.clear();
        (self.group.from, self.group.to) = (0, 0);
        self.grouped = false;
        self.group_at = 0;
        self.matched = false;
        self.pair.evaluation.reset();
    }
}
