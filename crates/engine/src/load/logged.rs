//! Bringing in a chunk of which only the log has something ([`crate::logged_chunks`]): a page service is asked for its
//! rows, or the log is read again and put over the chunk's pages.
//!
//! # Why what comes is what went
//!
//! - *From a page service.* It answers when it has applied the log up to the chunk's read point, of this life of the
//!   server, and then has of the chunk what went, however far it has come (`crate::version`, `evict_to_log`, 4). A
//!   service that was promoted serves this log no more, its stream ends, and its answers are asked for with the epoch.
//!   One that follows a log with a truncated or annulled end has not applied what is below the horizon by then: it
//!   shows only what no crash takes back, and waits. What it says is checked against the note: rows where there were
//!   rows, and nowhere else, and of those that the newest checkpoint does not have, the same versions. What does not
//!   agree is not served; the log is, and the service is left alone for a while.
//! - *From the log.* See [`super::log_tails`].
//! - *If the chunk is brought in by somebody else meanwhile*, and changed, or a checkpoint is published that has it,
//!   the note is gone or another one, and what was read is put nowhere.
//! - *If an instance was restarted* its notes say only that the log has the chunk. No page service is asked, for
//!   nothing would tell whether it is right; the log is read.
//! - *If the server restarts* there are no notes: the log is replayed. Where a start has no room for what it says, it
//!   leaves notes of its own, and what is read for them is over what the newest checkpoint has.
//!
//! What is brought is at least what the checkpoint does not have; rows that it has stay absent unless they are asked
//! for. The chunk is CHANGED as before, so the next checkpoint writes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logstead_checkpoint::PageReader;
use logstead_types::{Csn, Epoch, TableId};

use super::log_tails::LogTails;
use super::{ChunkLoader, RoomRequest, WaitPolicy};
use crate::fault_error::FaultError;
use crate::logged_chunks::LoggedChunk;
use crate::page_fault::SlotRequest;
use crate::page_store::{PageRead, PageRow, PageServices};
use crate::row::RowRef;
use crate::rows::TableRows;
use crate::version::{
    Absence, CHUNK_BYTES, CHUNK_SLOTS, Chunk, SlotSet, UnsharedSlots, version_bytes,
};

/// Where chunks come from of which only the log has something.
pub(crate) struct LoggedSources {
    pub(crate) services: Arc<PageServices>,
    pub(crate) log: LogTails,
    /// The same for who takes checkpoints: what was read for them is not given up for whoever misses a chunk.
    pub(crate) log_for_checkpoints: LogTails,
    pub(crate) epoch: Epoch,
    /// Chunks that a page service has given, and the log.
    pub(crate) by_services: AtomicU64,
    pub(crate) by_log: AtomicU64,
}

impl LoggedSources {
    /// `log` gives readers of the server's own log.
    pub(crate) fn new(
        services: Arc<PageServices>,
        log: impl Fn() -> LogTails,
        epoch: Epoch,
    ) -> LoggedSources {
        LoggedSources {
            services,
            log: log(),
            log_for_checkpoints: log(),
            epoch,
            by_services: AtomicU64::new(0),
            by_log: AtomicU64::new(0),
        }
    }
}

impl LoggedSources {
    /// How often the log was read.
    pub(crate) fn log_readings(&self) -> u64 {
        self.log.readings() + self.log_for_checkpoints.readings()
    }

    /// How often it had something of the chunks that it was read for.
    pub(crate) fn fruitful_log_readings(&self) -> u64 {
        self.log.fruitful_readings() + self.log_for_checkpoints.fruitful_readings()
    }

    /// What was read of the log for nobody is not kept any longer.
    pub(crate) fn release(&self) {
        self.log.release();
        self.log_for_checkpoints.release();
    }
}

impl ChunkLoader {
    /// Where chunks come from of which only the log has something. Once, of a server that writes one.
    pub(crate) fn set_sources(&self, sources: LoggedSources) {
        let is_first = self.sources.set(sources).is_ok();
        debug_assert!(is_first, "an engine has one log");
    }

    /// The same for others; nothing at a replica.
    pub(crate) fn sources(&self) -> Option<&LoggedSources> {
        self.sources.get()
    }

    /// Brings rows of a chunk of which only the log has something. `None`: it has come meanwhile, or something else has
    /// changed, and the caller looks again. Otherwise it tells how much they take.
    pub(super) fn load_logged(
        &self,
        rows: &TableRows,
        number: u64,
        (chunk, absence): (&Chunk, &Absence),
        logged: &Arc<LoggedChunk>,
        (needs, patience): (&SlotRequest, WaitPolicy<'_>),
        reader: &mut PageReader,
    ) -> Result<Option<u64>, FaultError> {
        let Some(sources) = self.sources.get() else {
            return Err(FaultError::Closing);
        };
        if *absence.slots() != SlotSet::ALL {
            // It has left since, or has come.
            std::thread::yield_now();
            return Ok(None);
        }
        if matches!(patience, WaitPolicy::Warmup { .. }) {
            // It was let go of, for want of room.
            return Ok(Some(0));
        }
        let mut wanted = needs.all().union(&logged.dirty);
        let large = self.room.limit(false) / super::GUESS_PART;
        if chunk
            .absent_bytes(absence, &wanted)
            .is_some_and(|bytes| bytes > large)
        {
            wanted = needs.needed.union(&logged.dirty);
        }
        let table = rows.table;
        let from_service = match &logged.present {
            Some(_) => {
                let is_still = || chunk.is_still(absence);
                let at = (table, number);
                self.read_from_service(sources, at, (logged, &wanted), patience, is_still)?
            }
            None => None,
        };
        let mut saved = SlotSet::NONE;
        let counter = match &from_service {
            Some(_) => &sources.by_services,
            None => &sources.by_log,
        };
        let (slots, allowed) = match from_service {
            Some(read) => read,
            // Somebody else has brought it, and what was given is for nothing.
            None if !chunk.is_still(absence) => return Ok(None),
            // The log is long: it is not read for what nobody waits for.
            None if matches!(patience, WaitPolicy::GiveUp(_)) => return Ok(Some(0)),
            None => {
                let found = sources.log.tail(rows, number, logged)?;
                let stored = self.newest.of(rows);
                if stored.csn != found.since {
                    std::thread::yield_now();
                    return Ok(None);
                }
                let is_new = logged.is_newer_than(stored.csn);
                if logged.present.is_none()
                    && !stored.has_table(table)
                    && stored.publication > 0
                    && !is_new
                {
                    // No checkpoint has it, nor the pages that the tail is to be put over, and nothing tells what
                    // there was.
                    return Err(FaultError::Damaged(format!(
                        "chunk {number} of table {table} is gone: the table was dropped"
                    )));
                }
                wanted = wanted.union(found.tail.touched());
                let asked = RoomRequest {
                    wanted: &wanted,
                    tail: Some(&found.tail),
                    known: None,
                    patience,
                };
                let read = self.read(&stored, rows, number, &asked, reader);
                let (filled, allowed) = match read {
                    Ok((filled, allowed)) => match filled.damage {
                        None => (filled, allowed),
                        Some(_) if self.newest.is_after(rows, &stored) => return Ok(None),
                        Some(damage) => return Err(damage.into()),
                    },
                    Err(error @ (FaultError::OutOfMemory(_) | FaultError::Closing)) => {
                        return Err(error);
                    }
                    // Its objects may have been removed meanwhile.
                    Err(_) if self.newest.is_after(rows, &stored) => return Ok(None),
                    Err(error) => return Err(error),
                };
                let csn_of = |slot| filled.slots.committed(slot).map(|(csn, _)| csn);
                if !logged.is_as_it_was(&filled.slots.filled(), &wanted, csn_of) {
                    return match chunk.is_still(absence) {
                        false => Ok(None),
                        // No checkpoint has it any more, nor the pages that the tail is to be put over.
                        true if rows.logged.is_dropped() => Err(FaultError::Damaged(format!(
                            "chunk {number} of table {table} is gone: the table was dropped"
                        ))),
                        true => Err(FaultError::Damaged(format!(
                            "chunk {number} of table {}: what is stored of it and the log are not what it was",
                            rows.table
                        ))),
                    };
                }
                saved = filled.saved;
                (filled.slots, allowed)
            }
        };
        let (taken, count) = (slots.bytes(), slots.filled().both(&wanted).len());
        let brought = rows.bring_logged(number, absence, slots, (&wanted, &saved), logged);
        drop(allowed);
        if !brought {
            return Ok(None);
        }
        rows.take_back(number);
        self.room.count_loaded(count);
        counter.fetch_add(1, Ordering::Relaxed);
        self.room.wake_if_scarce();
        Ok(Some(taken))
    }

    /// The rows, as a page service has them; nothing if none gives them as they were.
    fn read_from_service<'l>(
        &'l self,
        sources: &LoggedSources,
        (table, number): (TableId, u64),
        (logged, wanted): (&LoggedChunk, &SlotSet),
        patience: WaitPolicy<'l>,
        is_still: impl Fn() -> bool,
    ) -> Result<Option<(UnsharedSlots, super::Allowed<'l>)>, FaultError> {
        let asked = PageRead {
            number: 0,
            epoch: sources.epoch,
            from: logged.read_point,
            table,
            chunk: number,
            slots: wanted.bits(),
        };
        let Some(told) = sources.services.read(asked) else {
            return Ok(None);
        };
        let mut found = SlotSet::NONE;
        let mut csns = [Csn::ZERO; CHUNK_SLOTS];
        let mut bytes = CHUNK_BYTES as u64;
        let mut are_rows = true;
        for PageRow { slot, csn, row } in &told.rows {
            let slot = usize::from(*slot);
            are_rows &= slot < CHUNK_SLOTS
                && !found.contains(slot)
                && *csn < logged.read_point
                && RowRef::parse(row).is_ok();
            if !are_rows {
                break;
            }
            found.insert(slot);
            csns[slot] = *csn;
            bytes += version_bytes(row.len()) as u64;
        }
        if !are_rows || !logged.is_as_it_was(&found, wanted, |slot| csns.get(slot).copied()) {
            // Where somebody else has brought it in meanwhile, and changed it, that is what is told.
            if is_still() {
                let what = format!("chunk {number} of table {table}");
                sources.services.were_wrong(&told, &what);
            }
            return Ok(None);
        }
        // As long as nobody waits for it, what has been received is not counted: a chunk for each loader.
        let mut allowed = self.allow(bytes, bytes, patience)?;
        let mut slots = UnsharedSlots::new(self.memory);
        for PageRow { slot, csn, row } in &told.rows {
            slots.replace(usize::from(*slot), *csn, Some(row));
        }
        let _fits = allowed.took(slots.bytes());
        Ok(Some((slots, allowed)))
    }
}
