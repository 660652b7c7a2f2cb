//! Writing chunks that left memory with changes that only the log has, in a checkpoint that this server takes itself:
//! the log is read for them, for many at a time ([`crate::load`], `log_tails`), and put over their older pages aside,
//! as for what a start has found there ([`super::tail`]). Nothing comes into memory for longer than that.
//!
//! Why it is what the checkpoint at `S` has to hold: a chunk is found absent with a note, WRITING. All its changes
//! until it left are below `S` (`crate::version`, `evict_to_log`, 5), and who brings it in and changes it has a CSN at
//! or above `S`: he finds it absent after `S` was drawn.
//!
//! It may come back while the log is read, whose end is only then looked at: then the tail may have what is at `S` or
//! above, and is not used. The chunk is in memory, and WRITING keeps it there, so it is written as any other. While the
//! note is still the same after the reading, the chunk was away all the time.
//!
//! Does not: decide what leaves, or note what was published ([`super::publish`]).

use logstead_checkpoint::{ImageKind, PageChain, PageKey};

use super::take::Checkpoint;
use crate::chunk_tail::ChunkTail;
use crate::fault_error::FaultError;
use crate::load::{read_chunk, unfit, unreadable};
use crate::logged_chunks::LoggedChunk;
use crate::page_store::CheckpointError;
use crate::page_store::base::ChunkChange;
use crate::table::Table;
use crate::version::{Chunk, SlotSet};
use std::sync::Arc;

/// A chunk whose older rows take more than this is not written whole: what the log says of it is put behind them.
const WHOLE_BYTES_MAX: u64 = 1 << 20;

impl Checkpoint {
    /// Writes a chunk of which only the log has something. `None`: it has come into memory meanwhile.
    pub(crate) fn write_logged(
        &mut self,
        (table_at, table): (usize, &Table),
        number: u64,
        key: PageKey,
        logged: &Arc<LoggedChunk>,
        is_moved: bool,
    ) -> Result<Option<bool>, CheckpointError> {
        let engine = self.engine.clone();
        let sources = engine.inner().chunks.sources();
        let sources = sources.ok_or(CheckpointError::Replica)?;
        let found = sources
            .log_for_checkpoints
            .tail(&table.rows, number, logged)?;
        let noted = table.rows.logged.get(number);
        if !noted.is_some_and(|noted| Arc::ptr_eq(&noted, logged)) {
            return Ok(None);
        }
        let differs = || {
            let what = format!("{key}: what is stored of it and the log are not what it was");
            CheckpointError::from(FaultError::Damaged(what))
        };
        if found.since != self.since {
            return Err(differs());
        }
        let tail = &found.tail;
        if tail.touched().is_empty() {
            return self.keep_pages((table_at, table), number, &key, is_moved);
        }
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        let chain = base.pages().chain_to_change(&key)?;
        if let Some(chain) = &chain
            && chain.is_due_for_merge(tail.len_bytes(), 0)
            && self.write_logged_whole((table_at, number), &key, chain, tail, logged)?
        {
            return Ok(Some(true));
        }
        let at = self.changes.len();
        let is_written = self.write_tail(table_at, table, number, key.clone(), tail, is_moved)?;
        let written = self.changes.get(at);
        let is_it = written.is_some_and(|change| {
            let present = change.present.unwrap_or_default();
            !change.doubtful.is_empty() || logged.agrees(&present, &SlotSet::ALL)
        });
        match is_it {
            true => Ok(Some(is_written)),
            false => {
                self.changes.truncate(at);
                Err(differs())
            }
        }
    }

    /// The log has nothing of it: what had marked it as changed was undone, and its pages have it.
    fn keep_pages(
        &mut self,
        (table_at, table): (usize, &Table),
        number: u64,
        key: &PageKey,
        is_moved: bool,
    ) -> Result<Option<bool>, CheckpointError> {
        // It was in memory, so this is known.
        let chunk = table.rows.chunk(number);
        let present = chunk.and_then(Chunk::saved_before);
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        let chain = base.pages().chain_to_change(key)?;
        let moved = match &chain {
            // What cannot be moved stays where it is, and so does its object.
            Some(chain) if is_moved => self.move_pages(chain).ok(),
            _ => None,
        };
        self.changes.push(ChunkChange {
            table: table_at,
            chunk: number,
            present: Some(present.ok_or(CheckpointError::Busy)?),
            doubtful: SlotSet::NONE,
            changed: true,
            by_tail: true,
            chain: moved.or(chain),
        });
        Ok(Some(true))
    }

    /// Writes all of its rows anew. False: its older pages cannot be read, or have more than is kept aside, and nothing
    /// was written.
    fn write_logged_whole(
        &mut self,
        (table_at, number): (usize, u64),
        key: &PageKey,
        chain: &PageChain,
        tail: &ChunkTail,
        logged: &LoggedChunk,
    ) -> Result<bool, CheckpointError> {
        let memory = self.engine.memory();
        let (reader, all) = (&mut self.reader, SlotSet::ALL);
        let mut fits = true;
        let goes_on = |bytes| {
            fits = bytes <= WHOLE_BYTES_MAX;
            fits
        };
        let older = read_chunk(reader, key, Some(chain), &all, self.since, memory, goes_on);
        let older = older.map_err(|why| unreadable(why, key, Some(chain)))?;
        if !fits || older.damage.is_some() {
            return Ok(false);
        }
        let mut slots = older.slots;
        tail.apply(&mut slots)
            .map_err(|why| unfit(&why, key, Some(chain)))?;
        let present = slots.filled();
        let csn_of = |slot| slots.committed(slot).map(|(csn, _)| csn);
        if !logged.is_as_it_was(&present, &SlotSet::ALL, csn_of) {
            return Ok(false);
        }
        let written = match present.is_empty() {
            true => None,
            false => {
                self.pages.begin(key.clone(), ImageKind::Whole, self.csn);
                let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
                for slot in present.iter() {
                    if let Some((csn, row)) = slots.committed(slot) {
                        self.pages.row(slot as u16, csn, row, writer)?;
                        self.report.rows += 1;
                    }
                }
                let written = self.pages.finish(writer)?;
                self.report.pages += written.len() as u64;
                // A page is always made of a whole chunk.
                Some(PageChain::whole(written).ok_or(CheckpointError::Busy)?)
            }
        };
        self.changes.push(ChunkChange {
            table: table_at,
            chunk: number,
            present: Some(present),
            doubtful: SlotSet::NONE,
            changed: true,
            by_tail: true,
            chain: written,
        });
        Ok(true)
    }
}
