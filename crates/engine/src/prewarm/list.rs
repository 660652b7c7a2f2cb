//! The list: its bounds, and its bytes.
//!
//! Invariant: [`PrewarmList::decode`] gives no more than the bounds allow, whatever it is given.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use logstead_types::{DatabaseId, IndexId, TableId};

use crate::delta::{put_varint, take_varint};
use crate::tree::ResidentLeaves;
use crate::version::SlotSet;

/// The most runs of chunks that a list has: some 5 MB, and a fifth of that as bytes.
pub const ROW_RUNS_MAX: usize = 1 << 17;
/// The most runs of leaves.
pub const LEAF_RUNS_MAX: usize = 1 << 14;
/// Of where leaves begin and end so much is told. What is longer is cut, and tells of some leaves more or less.
const KEY_BYTES_MAX: usize = 128;
/// What the bytes begin with. Another form of the list has another number.
const FORM: u64 = 1;

/// Chunks of a table that follow upon each other, with the same rows of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRun {
    pub(crate) table: TableId,
    pub(crate) first: u64,
    pub(crate) chunks: u64,
    pub(crate) slots: SlotSet,
    pub(crate) is_hot: bool,
}

impl RowRun {
    /// Does a chunk with these rows go on where it ends?
    pub(super) fn is_before(&self, table: TableId, number: u64, slots: &SlotSet) -> bool {
        let is_next = self.first + self.chunks == number;
        self.table == table && is_next && self.slots == *slots
    }
}

/// Leaves of an index that follow upon each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeafRun {
    pub(crate) table: TableId,
    pub(crate) index: IndexId,
    pub(crate) leaves: ResidentLeaves,
}

impl LeafRun {
    pub(super) fn new(table: TableId, index: IndexId, mut leaves: ResidentLeaves) -> LeafRun {
        leaves.low.truncate(KEY_BYTES_MAX);
        if let Some(high) = &mut leaves.high {
            high.truncate(KEY_BYTES_MAX);
        }
        LeafRun {
            table,
            index,
            leaves,
        }
    }
}

/// A run of either kind.
pub(super) trait Run {
    /// How much is lost if it is left out, and a number by chance: those that are kept come from everywhere.
    fn rank(&self) -> (u64, u64);
    fn is_hot(&self) -> bool;
}

impl Run for RowRun {
    fn rank(&self) -> (u64, u64) {
        let rows = self.chunks.saturating_mul(self.slots.len() as u64);
        let chance = FixedState::default().hash_one((self.table, self.first));
        (rows, chance)
    }

    fn is_hot(&self) -> bool {
        self.is_hot
    }
}

impl Run for LeafRun {
    fn rank(&self) -> (u64, u64) {
        let chance = FixedState::default().hash_one((self.index, &self.leaves.low));
        (self.leaves.count, chance)
    }

    fn is_hot(&self) -> bool {
        self.leaves.is_hot
    }
}

/// Runs while they are collected: at most twice as many hot ones, and others, as are kept in the end.
pub(super) struct Kept<R> {
    hot: Vec<R>,
    others: Vec<R>,
    runs_max: usize,
}

impl<R: Run> Kept<R> {
    pub(super) fn new(runs_max: usize) -> Kept<R> {
        Kept {
            hot: Vec::new(),
            others: Vec::new(),
            runs_max,
        }
    }

    fn of(&mut self, is_hot: bool) -> &mut Vec<R> {
        match is_hot {
            true => &mut self.hot,
            false => &mut self.others,
        }
    }

    /// The last one that was put in.
    pub(super) fn last_mut(&mut self, is_hot: bool) -> Option<&mut R> {
        self.of(is_hot).last_mut()
    }

    pub(super) fn push(&mut self, run: R) {
        let runs_max = self.runs_max;
        let runs = self.of(run.is_hot());
        if runs.len() >= 2 * runs_max {
            keep_largest(runs, runs_max);
        }
        runs.push(run);
    }

    /// Those that are kept, hot ones first.
    fn into_runs(self) -> Vec<R> {
        let Kept {
            mut hot,
            mut others,
            runs_max,
        } = self;
        keep_largest(&mut hot, runs_max);
        keep_largest(&mut others, runs_max - hot.len());
        hot.append(&mut others);
        hot.shrink_to_fit();
        hot
    }
}

/// Leaves out the smallest ones, so that `count` are left, in their order. Of those that are alike it leaves out any,
/// the same ones however often it is called on the way.
fn keep_largest<R: Run>(runs: &mut Vec<R>, count: usize) {
    let Some(less) = runs.len().checked_sub(count).filter(|less| *less > 0) else {
        return;
    };
    let mut ranks: Vec<(u64, u64)> = runs.iter().map(Run::rank).collect();
    let (_, last, _) = ranks.select_nth_unstable(less - 1);
    let last = *last;
    runs.retain(|run| run.rank() > last);
}

/// What is, or was, in an engine's memory, hottest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrewarmList {
    database: DatabaseId,
    rows: Vec<RowRun>,
    leaves: Vec<LeafRun>,
}

impl PrewarmList {
    pub(super) fn new(
        database: DatabaseId,
        rows: Kept<RowRun>,
        leaves: Kept<LeafRun>,
    ) -> PrewarmList {
        PrewarmList {
            database,
            rows: rows.into_runs(),
            leaves: leaves.into_runs(),
        }
    }

    pub(super) fn database(&self) -> DatabaseId {
        self.database
    }

    pub(super) fn rows(&self) -> &[RowRun] {
        &self.rows
    }

    pub(super) fn leaves(&self) -> &[LeafRun] {
        &self.leaves
    }

    /// How many chunks it names.
    pub fn chunk_count(&self) -> u64 {
        let counts = self.rows.iter().map(|run| run.chunks);
        counts.fold(0, u64::saturating_add)
    }

    /// How many leaves of indexes it names.
    pub fn leaf_count(&self) -> u64 {
        let counts = self.leaves.iter().map(|run| run.leaves.count);
        counts.fold(0, u64::saturating_add)
    }

    /// How many runs it consists of.
    pub fn run_count(&self) -> usize {
        self.rows.len() + self.leaves.len()
    }

    /// For another process.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(FORM, &mut out);
        put_varint(self.database.get(), &mut out);
        put_varint(self.rows.len() as u64, &mut out);
        let mut end = 0;
        for run in &self.rows {
            put_varint(
                u64::from(run.table.get()) << 1 | u64::from(run.is_hot),
                &mut out,
            );
            // Most are not far behind the one before.
            put_varint(run.first.wrapping_sub(end), &mut out);
            put_varint(run.chunks, &mut out);
            // All of them are a zero.
            put_varint((!run.slots.bits()).reverse_bits(), &mut out);
            end = run.first.wrapping_add(run.chunks);
        }
        put_varint(self.leaves.len() as u64, &mut out);
        let put_key = |key: &[u8], out: &mut Vec<u8>| {
            put_varint(key.len() as u64, out);
            out.extend_from_slice(key);
        };
        for run in &self.leaves {
            let LeafRun {
                table,
                index,
                leaves,
            } = run;
            put_varint(
                u64::from(table.get()) << 1 | u64::from(leaves.is_hot),
                &mut out,
            );
            put_varint(
                u64::from(index.get()) << 1 | u64::from(leaves.high.is_some()),
                &mut out,
            );
            put_varint(leaves.count, &mut out);
            put_key(&leaves.low, &mut out);
            if let Some(high) = &leaves.high {
                put_key(high, &mut out);
            }
        }
        out
    }

    /// What [`PrewarmList::encode`] has made. `None`: it is something else.
    pub fn decode(mut bytes: &[u8]) -> Option<PrewarmList> {
        let bytes = &mut bytes;
        let number = |bytes: &mut &[u8]| take_varint(bytes).ok();
        let id = |marked: u64| u32::try_from(marked >> 1).ok();
        let count = |bytes: &mut &[u8], most: usize| {
            let count = usize::try_from(number(bytes)?).ok()?;
            (count <= most).then_some(count)
        };
        if number(bytes)? != FORM {
            return None;
        }
        let database = DatabaseId(number(bytes)?);
        // What is promised may not be there: nothing is allocated for it.
        let (mut rows, mut leaves) = (Vec::new(), Vec::new());
        let mut end = 0u64;
        for _ in 0..count(bytes, ROW_RUNS_MAX)? {
            let table = number(bytes)?;
            let first = end.wrapping_add(number(bytes)?);
            let chunks = number(bytes)?;
            end = first.checked_add(chunks)?;
            rows.push(RowRun {
                table: TableId(id(table)?),
                first,
                chunks,
                slots: SlotSet::of_bits(!number(bytes)?.reverse_bits()),
                is_hot: table & 1 == 1,
            });
        }
        let key = |bytes: &mut &[u8]| {
            let length = count(bytes, KEY_BYTES_MAX)?;
            let (key, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Some(key.to_vec())
        };
        for _ in 0..count(bytes, LEAF_RUNS_MAX)? {
            let table = number(bytes)?;
            let index = number(bytes)?;
            let count = number(bytes)?;
            let low = key(bytes)?;
            let high = match index & 1 {
                0 => None,
                _ => Some(key(bytes)?),
            };
            leaves.push(LeafRun {
                table: TableId(id(table)?),
                index: IndexId(id(index)?),
                leaves: ResidentLeaves {
                    low,
                    high,
                    count,
                    is_hot: table & 1 == 1,
                },
            });
        }
        bytes.is_empty().then_some(PrewarmList {
            database,
            rows,
            leaves,
        })
    }
}
