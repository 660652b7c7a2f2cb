//! Parts of a hash join whose table does not fit: both sides are divided by their keys and joined part by part.
//!
//! Owns: dividing what is held when memory runs out, putting rows of both sides into their parts' files, and going
//! from one part to the next.
//! Invariant: rows with equal keys are in the same part, on both sides.

use super::{HashJoinInputs, HashJoinState, KEY, NO_KEY, Phase, ROWS_AT_ONCE};
use crate::batch::BATCH_ROWS;
use crate::batch::Step;
use crate::context::ExecutorContext;
use crate::operator::join::JoinShape;
use crate::operator::join::hash_table::{JoinHashTable, NONE};
use crate::spill::{FANOUT, LEVELS_MAX, ReadStep, Reader, Stream, TempFile, partition_of};
use logstead_sql_plan::JoinKind;
use logstead_sql_types::error::Result;

/// Rows of a table on their way to where they belong.
pub(super) struct Repartition {
    table: JoinHashTable,
    /// The key, and of its rows the next, or `NONE` if it has not been begun.
    key: usize,
    row: u32,
    null_keyed: usize,
}

/// What is being divided.
pub(super) struct Partitioning {
    /// The part that stays in memory, if it does.
    pub(super) resident: Option<usize>,
    pub(super) right: Vec<Stream>,
    pub(super) left: Vec<Stream>,
    pub(super) moving: Option<Box<Repartition>>,
    /// Rows without a key go to one part after the other.
    pub(super) turn: usize,
}

/// The part of a right row.
pub(super) fn part_of(key: Option<&[u8]>, level: u32, turn: &mut usize) -> usize {
    match key {
        Some(key) => partition_of(key, level),
        None => {
            *turn += 1;
            *turn % FANOUT
        }
    }
}

/// A part to be joined, or being joined.
pub(super) struct JoinPartition {
    pub(super) right: Stream,
    pub(super) left: Stream,
    /// At which level it is divided if it has to be.
    pub(super) level: u32,
    pub(super) right_reader: Reader,
    pub(super) left_reader: Reader,
    /// It is joined in chunks, and left rows that have found a match have their bit set.
    pub(super) chunked: bool,
    pub(super) decided: Vec<u64>,
}

/// A join of more than there is room for.
pub(super) struct JoinPartitions {
    pub(super) file: TempFile,
    pub(super) divided: Option<Partitioning>,
    pub(super) waiting: Vec<JoinPartition>,
    /// What is joined now; `None`: the inputs themselves.
    pub(super) current: Option<JoinPartition>,
}

impl JoinPartitions {
    /// Memory held, roughly: blocks being filled, read or waiting to be written, and which left rows are decided.
    pub(super) fn size_bytes(&self) -> usize {
        let divided = self.divided.as_ref();
        let streams = divided.map(|d| d.right.iter().chain(&d.left));
        let filled: usize = streams.into_iter().flatten().map(Stream::open_bytes).sum();
        let read = self.current.as_ref().map_or(0, |part| {
            let readers = part.right_reader.size_bytes() + part.left_reader.size_bytes();
            readers + part.decided.capacity() * 8
        });
        filled + read + self.file.unwritten_bytes()
    }
}

impl HashJoinState {
    /// The table is too large: divides it, further if need be. False: it is a full chunk.
    pub(super) fn overflow(&mut self, held_bytes: usize, cx: &ExecutorContext<'_>) -> Result<bool> {
        let partitions = match &mut self.partitions {
            Some(partitions) => partitions,
            None => {
                let Some(spill) = cx.spill() else {
                    cx.check_memory("A hash join", held_bytes)?;
                    return Ok(true);
                };
                self.partitions.insert(Box::new(JoinPartitions {
                    file: TempFile::new(&spill, cx.hash_mem_bytes()),
                    divided: None,
                    waiting: Vec::new(),
                    current: None,
                }))
            }
        };
        match &mut partitions.divided {
            None => {
                if let Some(part) = &mut partitions.current
                    && (part.chunked || part.level > LEVELS_MAX || self.table.keys.len() <= 1)
                {
                    part.chunked = true;
                    let words = usize::try_from(part.left.rows() / 64).unwrap_or(usize::MAX);
                    part.decided.resize(words + 1, 0);
                    return Ok(false);
                }
                let streams = || (0..FANOUT).map(|_| Stream::default()).collect();
                partitions.divided = Some(Partitioning {
                    resident: Some(0),
                    right: streams(),
                    left: streams(),
                    moving: None,
                    turn: 0,
                });
            }
            Some(divided) => divided.resident = None,
        }
        if let Some(divided) = &mut partitions.divided {
            divided.moving = Some(Box::new(Repartition {
                table: std::mem::take(&mut self.table),
                key: 0,
                row: NONE,
                null_keyed: 0,
            }));
        }
        Ok(true)
    }

    /// Moves rows of a table that is divided to where they belong.
    pub(super) fn divide(&mut self, cx: &mut ExecutorContext<'_>) -> Result<Option<Step>> {
        let Some(partitions) = &mut self.partitions else {
            return Ok(None);
        };
        let level = partitions.current.as_ref().map_or(0, |part| part.level);
        let Some(divided) = &mut partitions.divided else {
            return Ok(None);
        };
        let mut moved = 0;
        while let Some(moving) = &mut divided.moving {
            if moved % ROWS_AT_ONCE == 0 {
                if let Some(obstacle) = partitions.file.behind()? {
                    return Ok(Some(Step::Wait(obstacle)));
                }
                if cx.tick()? {
                    return Ok(Some(Step::Yield));
                }
                cx.worked(ROWS_AT_ONCE);
            }
            moved += 1;
            let old = &moving.table;
            let (key, row) = if let Some((first, _)) = old.chains.get(moving.key) {
                let row = match moving.row {
                    NONE => *first,
                    row => row,
                };
                let number = moving.key;
                moving.row = old.next.get(row as usize).copied().unwrap_or(NONE);
                moving.key += usize::from(moving.row == NONE);
                (Some(old.keys.key(number)), row)
            } else if let Some(row) = old.null_keyed.get(moving.null_keyed) {
                moving.null_keyed += 1;
                (None, *row)
            } else {
                divided.moving = None;
                break;
            };
            let row = old.rows.row(row as usize);
            let part = part_of(key, level, &mut divided.turn);
            if divided.resident == Some(part) {
                self.row.clear();
                self.row.extend_from_slice(row);
                self.table.push(key, &mut self.row);
                continue;
            }
            self.key.clear();
            match key {
                Some(key) => {
                    self.key.push(KEY);
                    self.key.extend_from_slice(key);
                }
                None => self.key.extend_from_slice(NO_KEY),
            }
            divided.right[part].push(&self.key, row, &mut partitions.file)?;
        }
        Ok(None)
    }

    /// Brings left rows into the batch. A step that comes before; at the end there are none.
    pub(super) fn fill_left<'a>(
        &mut self,
        sides: HashJoinInputs<'a>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        self.left_first += self.left_batch.len();
        self.left_at = 0;
        self.left_batch.start(0);
        if let Some(partitions) = &mut self.partitions {
            let held_bytes = self.table.size_bytes() + partitions.size_bytes();
            self.held.set(held_bytes, cx.memory())?;
            if let Some(obstacle) = partitions.file.behind()? {
                return Ok(Some(Step::Wait(obstacle)));
            }
            if let Some(part) = &mut partitions.current {
                let (keys, ends) = &mut self.left_keys;
                keys.clear();
                ends.clear();
                self.left_batch.start(sides.shape.left_width);
                while ends.len() < BATCH_ROWS && !self.left_batch.is_full() {
                    match part.left_reader.advance(&part.left, &partitions.file)? {
                        ReadStep::Row => {}
                        ReadStep::End => break,
                        ReadStep::Wait(obstacle) if self.left_batch.is_empty() => {
                            return Ok(Some(Step::Wait(obstacle)));
                        }
                        ReadStep::Wait(_) => break,
                    }
                    let reader = &part.left_reader;
                    self.left_batch.push_decoded(|row| reader.row(row))?;
                    keys.extend_from_slice(reader.key());
                    ends.push(keys.len());
                }
                return Ok(None);
            }
        }
        // No match for anybody: inner, right and semi joins need not look.
        let nothing = self.table.keys.len() == 0
            && self.partitions.is_none()
            && matches!(
                sides.shape.kind,
                JoinKind::Inner | JoinKind::Semi | JoinKind::Right
            );
        if nothing {
            return Ok(None);
        }
        match self.left.next(sides.left, cx, &mut self.left_batch)? {
            Step::Batch | Step::Done => Ok(None),
            step => Ok(Some(step)),
        }
    }

    /// What is joined now is done: goes to its next chunk, or to the next part.
    pub(super) fn next_part(&mut self, shape: JoinShape) -> Result<()> {
        let Some(partitions) = &mut self.partitions else {
            // The table may be wanted again.
            self.phase = Phase::Done;
            return Ok(());
        };
        self.table.clear();
        self.partner = None;
        self.left_batch.start(0);
        (self.left_at, self.left_first) = (0, 0);
        if let Some(part) = &mut partitions.current
            && part.chunked
            && !self.right_ended
        {
            part.left_reader = Reader::default();
            self.batches += 1;
            self.phase = Phase::Build;
            return Ok(());
        }
        let level = match partitions.current.take() {
            Some(part) => {
                part.right.free(&mut partitions.file);
                part.left.free(&mut partitions.file);
                part.level + 1
            }
            None => 1,
        };
        if let Some(divided) = partitions.divided.take() {
            for (mut right, mut left) in divided.right.into_iter().zip(divided.left) {
                let wanted = match shape.kind {
                    JoinKind::Inner | JoinKind::Semi => left.rows() > 0 && right.rows() > 0,
                    JoinKind::Left | JoinKind::Anti => left.rows() > 0,
                    JoinKind::Right => right.rows() > 0,
                    JoinKind::Full => left.rows() > 0 || right.rows() > 0,
                };
                right.finish(&mut partitions.file)?;
                left.finish(&mut partitions.file)?;
                if !wanted {
                    right.free(&mut partitions.file);
                    left.free(&mut partitions.file);
                    continue;
                }
                partitions.waiting.push(JoinPartition {
                    right,
                    left,
                    level,
                    right_reader: Reader::default(),
                    left_reader: Reader::default(),
                    chunked: false,
                    decided: Vec::new(),
                });
            }
        }
        partitions.current = partitions.waiting.pop();
        self.right_ended = false;
        self.phase = match partitions.current {
            Some(_) => {
                self.batches += 1;
                Phase::Build
            }
            None => Phase::Done,
        };
        Ok(())
    }
}
