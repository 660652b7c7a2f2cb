//! Writing what the log behind the checkpoint before says of a chunk that nobody has read since the start: the tail is
//! put over the older rows that it changes, aside, and what comes of it is written behind the chunk's pages. Nothing
//! comes into memory for longer than that, and nobody is asked for room.
//!
//! Why it is what the checkpoint has to hold: the chunk was absent from the start to the moment in which it was found
//! so, which was after the checkpoint's CSN was drawn; so nobody has changed anything in it below that CSN. Who brings
//! it in meanwhile has the same rows, from the pages before with the same tail, and what he changes is newer.
//!
//! A page that is damaged, or cannot be read, costs its own rows. What the log says of others is written; so is what it
//! has changed of these, as changes that count when the page is whole again
//! ([`logstead_checkpoint::ChunkWriter::change`]), for their rows must not be served as they were before. Until then
//! who wants them is told of the damage, and so is the log of the server, once by each start that has a tail there. So
//! nothing that the log says of the chunk is in the log alone behind this, and it may go like the rest of it, whatever
//! could not be read: a row that the log has inserted or deleted is written as it is, one that it has changed as what
//! was changed of it, however long that is. A change that does not fit the row that was read is written as a change
//! too: the row it is for is not there, and who wants it is told.
//!
//! Does not: write a chunk whole, unless it has no pages. One for which it is time is brought in before, where there is
//! room.

use logstead_checkpoint::{ImageKind, PageChain, PageKey};
use logstead_wal::RowRecord;

use super::take::Checkpoint;
use crate::chunk_tail::ChunkTail;
use crate::load::{LoadedChunk, read_chunk, unfit, unreadable};
use crate::page_store::CheckpointError;
use crate::page_store::base::ChunkChange;
use crate::table::Table;
use crate::version::{CHUNK_SLOTS, SlotSet};

/// Older rows that are aside at a time take no more than this, but for a single one.
const ASIDE_BYTES_MAX: u64 = logstead_checkpoint::PAGE_BYTES as u64;

/// The lower half of a set of several slots.
fn first_half(slots: &SlotSet) -> SlotSet {
    let mut half = SlotSet::NONE;
    for slot in slots.iter().take(slots.len() / 2) {
        half.insert(slot);
    }
    half
}

impl Checkpoint {
    /// Writes what a tail says of a chunk behind what the checkpoint before has of it.
    pub(super) fn write_tail(
        &mut self,
        table_at: usize,
        table: &Table,
        number: u64,
        key: PageKey,
        tail: &ChunkTail,
        is_moved: bool,
    ) -> Result<bool, CheckpointError> {
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        let chain = base.pages().chain_to_change(&key)?;
        let extent = match chain {
            Some(_) => ImageKind::Delta,
            None => ImageKind::Whole,
        };
        self.pages.begin(key.clone(), extent, self.csn);
        let (mut present, mut doubtful) = (SlotSet::NONE, SlotSet::NONE);
        // Changed by the log, of older rows that cannot be read.
        let mut lost = SlotSet::NONE;
        let mut damage = None;
        let mut left = *tail.touched();
        while !left.is_empty() {
            let mut some = left;
            let older = loop {
                match self.read_older(&key, chain.as_ref(), &some)? {
                    Some(older) => break older,
                    None => some = first_half(&some),
                }
            };
            let LoadedChunk {
                mut slots,
                saved,
                known,
                damage: found,
            } = older;
            damage = found.map(|found| found.to_string()).or(damage);
            lost = lost.union(&tail.changed().both(&some).minus(&known));
            if let Err(why) = tail.apply_to(&mut slots, &some.minus(&lost)) {
                let slot = SlotSet::one((why.rid.0 % CHUNK_SLOTS as u64) as usize);
                let unfit = unfit(&why, &key, chain.as_ref());
                if tail.changed().both(&slot).minus(&lost).is_empty() {
                    return Err(unfit.into());
                }
                // Once more, without it.
                damage = Some(unfit.to_string());
                lost = lost.union(&slot);
                continue;
            }
            let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
            for slot in some.iter() {
                if let Some((csn, row)) = slots.committed(slot) {
                    self.pages.row(slot as u16, csn, row, writer)?;
                    self.report.rows += 1;
                    present.insert(slot);
                } else if lost.contains(slot) {
                    present.insert(slot);
                } else if saved.contains(slot) || !known.contains(slot) {
                    self.pages.delete(slot as u16)?;
                }
            }
            left = left.minus(&some);
            if left.is_empty() {
                doubtful = table.rows.unknown(number, &known).minus(tail.touched());
                let others = saved.union(&doubtful);
                present = present.union(&others.minus(tail.touched()));
            }
        }
        if !lost.is_empty() {
            // One for each row, but not in the order of their slots where there was nothing to fold.
            for slot in lost.iter() {
                let of_slot = |(_, record): &(_, RowRecord<'_>)| {
                    record.rid().0 % CHUNK_SLOTS as u64 == slot as u64
                };
                if let Some((csn, RowRecord::Update { delta, .. })) = tail.records().find(of_slot) {
                    let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
                    self.pages.change(slot as u16, csn, delta, writer)?;
                }
            }
        }
        if let Some(damage) = damage {
            self.report_lost(&key, &damage, lost.len());
        }
        let chain = if present.is_empty() {
            None
        } else {
            Some(self.push_pages(chain, is_moved)?)
        };
        self.changes.push(ChunkChange {
            table: table_at,
            chunk: number,
            present: Some(present),
            doubtful,
            changed: true,
            by_tail: true,
            chain,
        });
        Ok(true)
    }

    /// Tells that something is damaged that the log has changed.
    fn report_lost(&self, key: &PageKey, damage: &str, lost: usize) {
        tracing::error!(
            "{damage}: rows of {key} that are there alone cannot be read, {lost} of which the log has changed since; what it says of the others of that chunk is kept"
        );
        let mut stats = self.engine.inner().checkpoints.stats.lock();
        stats.damaged_chunks += 1;
        stats.last_damage = Some(damage.to_owned());
    }

    /// Some rows of a chunk as the checkpoint before has them; `None` if several of them are too much to be aside
    /// together.
    fn read_older(
        &mut self,
        key: &PageKey,
        chain: Option<&PageChain>,
        some: &SlotSet,
    ) -> Result<Option<LoadedChunk>, CheckpointError> {
        let memory = self.engine.memory();
        let mut fits = true;
        let goes_on = |bytes| {
            fits = bytes <= ASIDE_BYTES_MAX || some.len() == 1;
            fits
        };
        let (reader, since) = (&mut self.reader, self.since);
        let older = read_chunk(reader, key, chain, some, since, memory, goes_on)
            .map_err(|why| unreadable(why, key, chain))?;
        Ok(fits.then_some(older))
    }

    /// Ends the pages that were begun, and gives the chain with them.
    fn push_pages(
        &mut self,
        chain: Option<PageChain>,
        is_moved: bool,
    ) -> Result<PageChain, CheckpointError> {
        let moved = match &chain {
            // What cannot be moved stays where it is, and so does its object.
            Some(chain) if is_moved => self.move_pages(chain).ok(),
            _ => None,
        };
        let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
        let written = self.pages.finish(writer)?;
        match moved.or(chain) {
            None => {
                self.report.pages += written.len() as u64;
                // A page is always made of a whole chunk.
                PageChain::whole(written).ok_or(CheckpointError::Busy)
            }
            Some(mut chain) => {
                self.report.delta_pages += written.len() as u64;
                chain.push(written);
                Ok(chain)
            }
        }
    }
}
