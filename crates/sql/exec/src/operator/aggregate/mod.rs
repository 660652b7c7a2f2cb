//! Grouping and aggregation by hash.
//!
//! Groups come out in order of arrival. DISTINCT and ORDER BY inside a call make it keep its arguments until the end.
//!
//! When the groups are more than there is room for, no new ones are opened: rows of others are written, with their
//! keys, and looked at later, part by part (`spill::hash_spill`). What a few groups keep of their arguments and is
//! large is sorted on disk (`sort::external`). The states of aggregates stay in memory.

pub(crate) mod per_group;
pub(crate) mod user_aggregate;

use crate::batch::Step;
use crate::batch::{Batch, RowBuffer};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::{eval_in, operand};
use crate::key_table::{KEY_BYTES_MAX, KeyTable};
use crate::operator::PlanState;
use crate::operator::aggregate::per_group::AggPerGroup;
use crate::operator::sort::external::SortResult;
use crate::operator_memory::OperatorMemory;
use crate::spill::ReadStep;
use crate::spill::hash_spill::HashSpill;
use crate::wait::WaitReason;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::instrumentation::{NodeDetail, width};
use logstead_sql_plan::{AggregateCall, GroupingSets, Plan};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, key};
use smallvec::SmallVec;
use std::borrow::Cow;

/// State of an aggregation.
pub(crate) struct AggregateState {
    pub(crate) input: PlanState,
    batch: Batch,
    /// The next row of the batch to be taken; its group, once that is known; and how many calls have taken it.
    row: usize,
    /// The keys of that row, once they are known, and the grouping set that takes it next.
    values: Option<SmallVec<[Datum; 4]>>,
    set: usize,
    group: Option<usize>,
    taken: usize,
    /// Of the keys, and of each call.
    evaluations: Vec<ResumableEvaluation>,
    groups: KeyTable,
    keys: RowBuffer,
    /// With grouping sets: the set of each group.
    sets: Vec<u16>,
    /// Of group g and call c at `g * calls + c`.
    cells: Vec<AggPerGroup>,
    aggregated: bool,
    held: OperatorMemory,
    held_bytes: usize,
    /// Of that, what calls keep of their arguments.
    kept_bytes: usize,
    at: usize,
    /// Values of the group being given.
    given: Vec<Datum>,
    scratch: GroupKeyBuffers,
    /// No group is opened any more: rows of others are written.
    full: bool,
    overflow: Option<Box<HashSpill>>,
    /// Cells that write what they keep, and from which size on it is looked for others.
    writing: Vec<usize>,
    look_bytes: usize,
    /// Cells that have files of their own.
    files: usize,
    most_bytes: usize,
    disk_bytes: u64,
}

/// Grouping sets that take a row between two looks at what is held.
const SETS_AT_ONCE: usize = 64;
/// Cells that may have files of their own.
const FILES_MAX: usize = 64;
/// What a call keeps is written when it is this part of all that the aggregation may hold.
const LARGE_PART: usize = 64;

/// Keys being made.
#[derive(Default)]
pub(crate) struct GroupKeyBuffers {
    pub(crate) key: Vec<u8>,
    pub(crate) order: Vec<u8>,
}

impl AggregateState {
    pub(crate) fn new(input: &Plan) -> AggregateState {
        AggregateState {
            input: PlanState::new(input),
            batch: Batch::default(),
            row: 0,
            values: None,
            set: 0,
            group: None,
            taken: 0,
            evaluations: Vec::new(),
            groups: KeyTable::default(),
            keys: RowBuffer::default(),
            sets: Vec::new(),
            cells: Vec::new(),
            aggregated: false,
            held: OperatorMemory::default(),
            held_bytes: 0,
            kept_bytes: 0,
            at: 0,
            given: Vec::new(),
            scratch: GroupKeyBuffers::default(),
            full: false,
            overflow: None,
            writing: Vec::new(),
            look_bytes: 0,
            files: 0,
            most_bytes: 0,
            disk_bytes: 0,
        }
    }

    /// How it went.
    pub(crate) fn detail(&self, keys: &[Expr]) -> NodeDetail {
        let overflow = self.overflow.as_ref();
        let disk_bytes = self.disk_bytes + overflow.map_or(0, |overflow| overflow.peak_bytes());
        if keys.is_empty() && disk_bytes == 0 {
            return NodeDetail::None;
        }
        NodeDetail::Groups {
            batches: overflow.map_or(1, |overflow| overflow.passes()),
            memory_kib: (self.most_bytes as u64).div_ceil(1024),
            disk_kib: disk_bytes.div_ceil(1024),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        sets: Option<&'a GroupingSets>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(keys.len() + calls.len() + sets.map_or(0, |sets| sets.calls.len()));
        loop {
            if !self.aggregated {
                if let Some(step) = self.aggregate(input, (keys, calls, sets), cx)? {
                    return Ok(step);
                }
                self.aggregated = true;
            }
            if let Some(step) = self.give(keys, calls, sets, cx, out)? {
                return Ok(match out.is_empty() {
                    true => step,
                    false => Step::Batch,
                });
            }
            // What comes next may have to wait.
            if !out.is_empty() {
                return Ok(Step::Batch);
            }
            let next = match &mut self.overflow {
                Some(overflow) => overflow.next_part()?,
                None => false,
            };
            if !next {
                return Ok(Step::Done);
            }
            self.forget_groups();
        }
    }

    /// Takes all of the input, or all of a part. A step that comes before.
    fn aggregate<'a>(
        &mut self,
        input: &'a Plan,
        (keys, calls, sets): (&'a [Expr], &'a [AggregateCall], Option<&'a GroupingSets>),
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        let reading = self.overflow.as_ref().is_some_and(|o| o.is_reading());
        if !reading && self.groups.len() == 0 {
            if let Some(sets) = sets {
                self.open_empty_sets(keys, calls, sets);
            } else if keys.is_empty() {
                self.groups.insert(&[]);
                self.open_group(calls);
            }
        }
        self.evaluations
            .resize_with(1 + calls.len(), ResumableEvaluation::default);
        loop {
            while self.row < self.batch.len() {
                if cx.take_pending_yield() {
                    return Ok(Some(Step::Yield));
                }
                // A row can be one of thousands of groups: what is held and written is looked at in between.
                if let Some(sets) = sets
                    && !reading
                    && self.group.is_none()
                {
                    if let Some(step) = self.make_room(cx)? {
                        return Ok(Some(step));
                    }
                    cx.worked(sets.sets.len().min(SETS_AT_ONCE));
                    if cx.tick()? {
                        return Ok(Some(Step::Yield));
                    }
                }
                let taken = match reading {
                    true => self.take_again(keys, calls, sets.is_some(), cx)?,
                    false => self.take(keys, calls, sets, cx)?,
                };
                if let Err(obstacle) = taken {
                    return Ok(Some(Step::Wait(obstacle)));
                }
            }
            if let Some(step) = self.make_room(cx)? {
                return Ok(Some(step));
            }
            self.row = 0;
            self.batch.start(0);
            if reading {
                if cx.tick()? {
                    return Ok(Some(Step::Yield));
                }
                let Some(overflow) = &mut self.overflow else {
                    return Ok(None);
                };
                match overflow.advance()? {
                    ReadStep::Row => {
                        self.batch.start(width(input) + keys.len());
                        self.batch.push_decoded(|row| overflow.row(row))?;
                    }
                    ReadStep::End => return Ok(None),
                    ReadStep::Wait(obstacle) => return Ok(Some(Step::Wait(obstacle))),
                }
            } else {
                match self.input.next(input, cx, &mut self.batch)? {
                    Step::Batch => {}
                    Step::Done => return Ok(None),
                    step => return Ok(Some(step)),
                }
            }
        }
    }

    /// Sees to it that no more is held than may be: closes the table, or has what calls keep written. What to wait for.
    fn make_room(&mut self, cx: &mut ExecutorContext<'_>) -> Result<Option<Step>> {
        loop {
            let mut step = None;
            while let Some(cell) = self.writing.last() {
                let kept = self.cells.get_mut(*cell).and_then(|c| c.kept.as_mut());
                if let Some(kept) = kept {
                    step = kept.sorter.work(cx)?;
                }
                if step.is_some() {
                    break;
                }
                self.writing.pop();
            }
            let held_bytes = self.keys.size_bytes() + self.groups.size_bytes() + self.held_bytes;
            if step.is_some() {
                // What is on its way to a file is no longer a group's, and not yet gone.
                let charged = held_bytes + self.writing_bytes();
                self.held.set(charged, cx.memory())?;
                return Ok(step);
            }
            self.most_bytes = self.most_bytes.max(held_bytes);
            let open_bytes = self.overflow.as_ref().map_or(0, |o| o.size_bytes());
            let charged = held_bytes + open_bytes + self.writing_bytes();
            self.held.set(charged, cx.memory())?;
            let room = cx.hash_mem_bytes().min(KEY_BYTES_MAX);
            if held_bytes > cx.work_mem_bytes && held_bytes > room {
                if self.kept_bytes > room / 2
                    && held_bytes > self.look_bytes
                    && self.write_large(room, held_bytes, cx)
                {
                    continue;
                }
                if !self.full && !self.groups_are_fixed() {
                    if self.overflow.is_none()
                        && let Some(spill) = cx.spill()
                    {
                        self.overflow = Some(Box::new(HashSpill::new(&spill, room)));
                    }
                    self.full = self.overflow.is_some();
                }
                cx.check_memory("An aggregation", held_bytes)?;
            }
            return Ok(match &self.overflow {
                Some(overflow) => overflow.behind()?.map(Step::Wait),
                None => None,
            });
        }
    }

    /// What sorters that are being written hold beside what is counted of their groups.
    fn writing_bytes(&self) -> usize {
        let cells = self.writing.iter().filter_map(|cell| self.cells.get(*cell));
        let kept = cells.filter_map(|cell| cell.kept.as_ref());
        kept.map(|kept| kept.sorter.beside_bytes()).sum()
    }

    /// All rows are of one group.
    fn groups_are_fixed(&self) -> bool {
        self.keys.len() == 0
    }

    /// Has what is large of what calls keep written; false if nothing is.
    fn write_large(&mut self, room: usize, held_bytes: usize, cx: &ExecutorContext<'_>) -> bool {
        self.look_bytes = held_bytes + room / 8;
        let Some(spill) = cx.spill() else {
            return false;
        };
        for (number, cell) in self.cells.iter_mut().enumerate() {
            let Some(kept) = &mut cell.kept else {
                continue;
            };
            let bytes = kept.size_bytes();
            let has_file = kept.sorter.is_on_disk();
            if bytes < room / LARGE_PART || !has_file && self.files == FILES_MAX {
                continue;
            }
            self.files += usize::from(!has_file);
            kept.seen = KeyTable::default();
            kept.sorter.write_run(&spill, room / 4);
            self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
            self.held_bytes = self.held_bytes.saturating_sub(bytes);
            self.writing.push(number);
        }
        if !self.writing.is_empty() {
            self.look_bytes = 0;
        }
        !self.writing.is_empty()
    }

    /// Gives groups until the batch is full or there are no more. A step that comes before.
    fn give<'a>(
        &mut self,
        keys: &[Expr],
        calls: &'a [AggregateCall],
        sets: Option<&GroupingSets>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        let held_bytes = self.keys.size_bytes() + self.groups.size_bytes() + self.held_bytes;
        while self.at < self.groups.len() && !out.is_full() {
            let cells = self.cells.iter_mut().skip(self.at * calls.len());
            for (cell, call) in cells.zip(calls).skip(self.given.len()) {
                let finished = cell.finish(call, cx)?;
                if let Some(kept) = &cell.kept
                    && (kept.disk_bytes > 0 || kept.sorter.is_on_disk())
                {
                    // Runs are being joined, or the last ones are being read.
                    let merging_bytes = kept.ordered.as_ref().map_or(0, SortResult::size_bytes)
                        + kept.sorter.beside_bytes();
                    self.held.set(held_bytes + merging_bytes, cx.memory())?;
                }
                match finished {
                    Ok(value) => self.given.push(value),
                    Err(step) => return Ok(Some(step)),
                }
                if let Some(kept) = &cell.kept {
                    self.disk_bytes += kept.disk_bytes;
                }
            }
            if !keys.is_empty() {
                for datum in self.keys.row(self.at) {
                    out.push(datum.clone());
                }
            }
            for datum in self.given.drain(..) {
                out.push(datum);
            }
            if let Some(sets) = sets {
                let set = self.sets.get(self.at).map_or(0, |set| usize::from(*set));
                let has = sets.sets.get(set).map_or(&[][..], Vec::as_slice);
                for asked in &sets.calls {
                    let bits = asked
                        .iter()
                        .fold(0, |bits, key| bits << 1 | i32::from(!has.contains(key)));
                    out.push(Datum::Int4(bits));
                }
            }
            out.end_row();
            self.at += 1;
        }
        Ok(None)
    }

    /// Before the next part, or another run.
    fn forget_groups(&mut self) {
        self.batch.start(0);
        (self.row, self.set, self.group, self.taken) = (0, 0, None, 0);
        self.values = None;
        self.sets.clear();
        self.evaluations
            .iter_mut()
            .for_each(ResumableEvaluation::reset);
        self.groups.clear();
        self.keys = RowBuffer::default();
        self.cells.clear();
        self.given.clear();
        self.writing.clear();
        self.aggregated = false;
        self.full = false;
        (self.held_bytes, self.kept_bytes, self.look_bytes) = (0, 0, 0);
        self.files = 0;
        self.at = 0;
    }

    /// The groups that are there without any row: those of sets without keys.
    fn open_empty_sets(&mut self, keys: &[Expr], calls: &[AggregateCall], sets: &GroupingSets) {
        let empty = |set: &(usize, &Vec<usize>)| set.1.is_empty();
        for (number, _) in sets.sets.iter().enumerate().filter(empty) {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            self.groups.insert(&number.to_be_bytes());
            self.keys.push(&vec![Datum::Null; keys.len()]);
            self.sets.push(number);
            self.open_group(calls);
        }
    }

    /// The group of the row whose keys are `values` in the grouping set that takes it next, which has the keys `set`.
    fn group_in_set(
        &mut self,
        values: &[Datum],
        keys: &[Expr],
        calls: &[AggregateCall],
        set: &[usize],
    ) -> Result<Option<usize>> {
        // There are fewer than 65,536 of them.
        let number = u16::try_from(self.set).unwrap_or(u16::MAX);
        let key = &mut self.scratch.key;
        key.clear();
        key.extend_from_slice(&number.to_be_bytes());
        for &part in set {
            if let (Some(expr), Some(datum)) = (keys.get(part), values.get(part)) {
                key::encode_key(expr.ty().oid, datum, false, false, key);
            }
        }
        if let Some(group) = self.groups.find(&self.scratch.key) {
            return Ok(Some(group));
        }
        let mut row = vec![Datum::Null; keys.len()];
        for &part in set {
            if let (Some(to), Some(from)) = (row.get_mut(part), values.get(part)) {
                to.clone_from(from);
            }
        }
        self.new_group(&row, Some(number), calls)
    }

    /// Opens a group for the key that was made; or, if the table is full, writes the row, with its keys' values behind
    /// it.
    fn new_group(
        &mut self,
        values: &[Datum],
        set: Option<u16>,
        calls: &[AggregateCall],
    ) -> Result<Option<usize>> {
        if self.full
            && let Some(overflow) = &mut self.overflow
        {
            let mut row = self.batch.row(self.row).to_vec();
            // A row that comes from a part already has them.
            if !overflow.is_reading() {
                row.extend_from_slice(values);
            }
            overflow.push(&self.scratch.key, &self.scratch.key, &row)?;
            return Ok(None);
        }
        let (group, _) = self.groups.insert(&self.scratch.key);
        self.keys.push(values);
        self.sets.extend(set);
        self.open_group(calls);
        Ok(Some(group))
    }

    /// Adds a row that comes from a part to its group, whose key was written with it.
    fn take_again<'a>(
        &mut self,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        has_sets: bool,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        let group = match self.group {
            Some(group) => Some(group),
            None => {
                let key = &mut self.scratch.key;
                key.clear();
                if let Some(overflow) = &self.overflow {
                    key.extend_from_slice(overflow.key());
                }
                match self.groups.find(key) {
                    Some(group) => Some(group),
                    None => {
                        let row = self.batch.row(self.row);
                        let values = row.get(row.len().saturating_sub(keys.len())..);
                        let values = values.unwrap_or_default().to_vec();
                        // With grouping sets, the set's number stands in front of the key.
                        let set = self.scratch.key.first_chunk().copied();
                        let set = set.filter(|_| has_sets);
                        self.new_group(&values, set.map(u16::from_be_bytes), calls)?
                    }
                }
            }
        };
        if let Some(group) = group
            && let Err(obstacle) = self.take_into(group, calls, cx)?
        {
            return Ok(Err(obstacle));
        }
        self.row += 1;
        Ok(Ok(()))
    }

    /// Adds the next row of the batch to its groups, with grouping sets to some of them at once; or says what is
    /// absent, and is called again for the same row.
    fn take<'a>(
        &mut self,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        sets: Option<&'a GroupingSets>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        let Some(sets) = sets else {
            return self.take_once(keys, calls, cx);
        };
        let values = match self.values.take() {
            Some(values) => values,
            None => {
                let row = self.batch.row(self.row);
                let evaluate = |cx: &mut ExecutorContext<'a>| {
                    let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(keys.len());
                    for expr in keys {
                        values.push(eval_in(expr, row, cx)?);
                    }
                    Ok(values)
                };
                match self.evaluations[0].of(keys, cx, evaluate)? {
                    Ok(values) => values,
                    Err(absent) => return Ok(Err(absent)),
                }
            }
        };
        let first = self.set;
        while let Some(set) = sets.sets.get(self.set) {
            let behind = self.overflow.as_ref().is_some_and(|o| o.is_behind());
            if self.group.is_none()
                && self.set > first
                && (behind || self.set - first >= SETS_AT_ONCE)
            {
                self.values = Some(values);
                return Ok(Ok(()));
            }
            let group = match self.group {
                Some(group) => Some(group),
                None => self.group_in_set(&values, keys, calls, set)?,
            };
            if let Some(group) = group
                && let Err(absent) = self.take_into(group, calls, cx)?
            {
                self.values = Some(values);
                return Ok(Err(absent));
            }
            self.set += 1;
        }
        (self.row, self.set) = (self.row + 1, 0);
        Ok(Ok(()))
    }

    /// Adds the row to its group where there is but one set of keys.
    fn take_once<'a>(
        &mut self,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        let row = self.batch.row(self.row);
        let group = match self.group {
            Some(group) => Some(group),
            None if keys.is_empty() => Some(0),
            None => {
                let key = &mut self.scratch.key;
                let evaluate = |cx: &mut ExecutorContext<'a>| {
                    let mut values: SmallVec<[Cow<'_, Datum>; 4]> = SmallVec::new();
                    key.clear();
                    for expr in keys {
                        let datum = operand(expr, row, cx)?;
                        key::encode_key(expr.ty().oid, &datum, false, false, key);
                        values.push(datum);
                    }
                    Ok(values)
                };
                let values = match self.evaluations[0].of(keys, cx, evaluate)? {
                    Ok(values) => values,
                    Err(absent) => return Ok(Err(absent)),
                };
                match self.groups.find(&self.scratch.key) {
                    Some(group) => Some(group),
                    None => {
                        let values: SmallVec<[Datum; 4]> =
                            values.into_iter().map(Cow::into_owned).collect();
                        self.new_group(&values, None, calls)?
                    }
                }
            }
        };
        if let Some(group) = group
            && let Err(absent) = self.take_into(group, calls, cx)?
        {
            return Ok(Err(absent));
        }
        self.row += 1;
        Ok(Ok(()))
    }

    /// Gives the row to the calls of a group that have not taken it yet.
    fn take_into<'a>(
        &mut self,
        group: usize,
        calls: &'a [AggregateCall],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        self.group = Some(group);
        let row = self.batch.row(self.row);
        let cells = self
            .cells
            .get_mut(group * calls.len()..)
            .unwrap_or_default();
        let evaluations = self.evaluations.iter_mut().skip(1);
        let each = cells.iter_mut().zip(calls).zip(evaluations);
        for ((cell, call), evaluation) in each.skip(self.taken) {
            let scratch = &mut self.scratch;
            let order = call.order.iter().map(|key| &key.expr);
            let step = call.user.iter().map(|user| &user.plain.step);
            let exprs = call
                .args
                .iter()
                .chain(&call.filter)
                .chain(order)
                .chain(step);
            match evaluation.of(exprs, cx, |cx| cell.take(call, row, scratch, cx))? {
                Ok(bytes) => {
                    self.held_bytes += bytes;
                    self.kept_bytes += if cell.kept.is_some() { bytes } else { 0 };
                }
                Err(absent) => return Ok(Err(absent)),
            }
            self.taken += 1;
        }
        (self.group, self.taken) = (None, 0);
        Ok(Ok(()))
    }

    fn open_group(&mut self, calls: &[AggregateCall]) {
        for call in calls {
            let cell = AggPerGroup::new(call);
            self.held_bytes += cell.size_bytes();
            self.cells.push(cell);
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.forget_groups();
        self.overflow = None;
    }
}
