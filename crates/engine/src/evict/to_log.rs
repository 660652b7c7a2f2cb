//! Letting go of chunks that have changed since the newest checkpoint: the log has them, and a page service reads it.
//!
//! The rule ([`LogEviction`]): only while memory is short, and rows that the newest checkpoint has and nobody has used
//! lately are not enough; only while a replica is connected that gives rows back and answers; and only as long as a
//! start can bear it. That keeps what the log behind the newest checkpoint says of chunks, and has to read the log
//! again for what does not fit ([`crate::logged_chunks`], L4), as a checkpoint of this server's own has. So what has
//! left counts with what its changed rows took: if that comes to more than [`LEFT_PERCENT_MAX`] of the budget nothing
//! more goes, and a checkpoint is asked for.
//!
//! Where all page services have gone, a checkpoint is taken soon: with it nothing is in the log alone any more. Until
//! then who misses a chunk has the log read.
//!
//! Does not: tell whether a chunk may go ([`crate::version`]).

use std::sync::atomic::Ordering;
use std::time::Duration;

use logstead_types::{Csn, TableId};

use super::{SweepResult, Swept, tables};
use crate::engine::{Engine, EngineInner};
use crate::logged_chunks::LoggedChunk;
use crate::snapshot_pins::SnapshotPins;
use crate::snapshots::VisibilityBounds;
use crate::version::{Guard, LogEvictionBounds, RetainReason};

/// What has left may have taken this part of the budget.
const LEFT_PERCENT_MAX: u64 = 100;
/// So long none may answer before a checkpoint is taken because of it: a replica that begins again is back soon.
const WITHOUT_SERVICE: Duration = Duration::from_secs(5);

/// Whether chunks may leave that only the log has.
#[derive(Debug, Default)]
pub(super) struct LogEviction {
    /// Since when no page service answers, in nanoseconds of the monotonic clock.
    without_since: Option<u64>,
}

impl LogEviction {
    /// May chunks leave now?
    pub(super) fn is_open(inner: &EngineInner) -> bool {
        let Some(sources) = inner.chunks.sources() else {
            return false;
        };
        // Where there is no checkpoint at all a start has to have room for the whole log.
        inner.checkpoints.evicts_to_log.load(Ordering::Relaxed)
            && inner.newest.get().csn > Csn::ZERO
            && !Self::is_at_limit(inner)
            && sources.services.any_answers()
    }

    /// Has so much left that a checkpoint is due?
    pub(super) fn is_at_limit(inner: &EngineInner) -> bool {
        let budget = inner.memory().budget_bytes();
        let left = inner.memory_queue.logged.dirty_bytes();
        left > budget / 100 * LEFT_PERCENT_MAX
    }

    /// Is a checkpoint due because nobody gives back what has left, or because a start has left something?
    pub(super) fn wants_checkpoint(&mut self, inner: &EngineInner) -> bool {
        let logged = &inner.memory_queue.logged;
        // Only this server's own checkpoints take these over, and until then each start and reload reads the log for
        // them.
        if logged.of_start() + logged.of_restarts() > 0 {
            // A checkpoint that is taken before its indexes are attached would forget them.
            let tables = inner.tables.read();
            return !tables.values().any(|table| table.rows.tails.is_starting());
        }
        let is_needed = inner.memory_queue.logged.chunks() > 0
            && inner
                .chunks
                .sources()
                .is_some_and(|sources| !sources.services.any_answers());
        if !is_needed {
            self.without_since = None;
            return false;
        }
        let now = inner.env.clock.monotonic().as_nanos();
        let since = *self.without_since.get_or_insert(now);
        now.saturating_sub(since) >= WITHOUT_SERVICE.as_nanos() as u64
    }
}

/// Lets go of chunks that only the log has, until `wanted` bytes were. `spare_hot`: not of those that somebody has used
/// since the round before.
pub(super) fn sweep_to_log(inner: &EngineInner, wanted: u64, spare_hot: bool) -> SweepResult {
    let memory_queue = &inner.memory_queue;
    let mut found = SweepResult::default();
    let Some(sources) = inner.chunks.sources() else {
        return found;
    };
    let mut hands = memory_queue.hands.lock();
    let hand = &mut hands.to_log;
    let mut tables = tables(inner);
    // Those of the past do not change, and what indexes are being made of stays.
    tables.retain(|swept| swept.which.0 == 0 && !swept.table.rows.tails.is_starting());
    let chunks = tables.iter().map(|swept| swept.table.rows.chunk_end());
    let mut left: u64 = chunks.sum();
    let mut at = tables.partition_point(|swept| swept.which < hand.0);
    let mut number = match tables.get(at) {
        Some(swept) if swept.which == hand.0 => hand.1,
        _ => 0,
    };
    let below = bound(inner);
    while left > 0 && found.bytes < wanted && !LogEviction::is_at_limit(inner) {
        let Some(Swept {
            table, saved_below, ..
        }) = tables.get(at)
        else {
            (at, number) = (0, 0);
            continue;
        };
        let rows = &table.rows;
        if number >= rows.chunk_end() {
            (at, number) = (at + 1, 0);
            continue;
        }
        left -= 1;
        let this = number;
        number += 1;
        let Some(chunk) = rows.chunk(this).filter(|chunk| chunk.is_changed()) else {
            continue;
        };
        // Of one that was brought in with a damaged page it is not known what it is.
        if spare_hot && chunk.is_hot() || !rows.doubts.slots(this).is_empty() {
            continue;
        }
        let bounds = LogEvictionBounds {
            published: *saved_below,
            below,
        };
        // A guard each: what was evicted is not to be held back by who evicts.
        let gone = chunk.evict_to_log(&bounds, &Guard::pin(), |left| {
            // While all its slots are frozen: at or above the horizon by which the last deletion there was collected.
            let (read_point, totals) = (sources.log.horizon(), &memory_queue.logged);
            let logged = LoggedChunk::new(read_point, &left, totals, rows.memory());
            rows.logged.keep(this, logged);
        });
        match gone {
            Ok(evicted) => {
                found.rows += evicted.rows as u64;
                found.chunks += 1;
                found.bytes += evicted.bytes as u64;
            }
            Err(RetainReason::Absent | RetainReason::InUse) => {}
            Err(RetainReason::Unsaved) => found.unsaved = true,
        }
    }
    *hand = match tables.get(at) {
        Some(swept) => (swept.which, number),
        None => ((0, TableId(0)), 0),
    };
    drop(hands);
    let counted = [
        (&memory_queue.rows_evicted, found.rows),
        (&memory_queue.chunks_evicted, found.chunks),
        (&memory_queue.chunks_evicted_to_log, found.chunks),
    ];
    for (counter, count) in counted {
        counter.fetch_add(count, Ordering::Relaxed);
    }
    found
}

/// What is below is durable, and no checkpoint that is being taken, or will be, is at it or below.
fn bound(inner: &EngineInner) -> Csn {
    let horizon = inner.horizon().get();
    let of_checkpoints = &inner.published[inner.counters.len()..];
    let bounds = VisibilityBounds::read(inner.horizon(), of_checkpoints, &SnapshotPins::default());
    horizon.min(bounds.oldest())
}

impl Engine {
    /// Lets go of every chunk that has changed since the newest checkpoint and that may go, if a page service gives it
    /// back, and tells how many those were. For tests.
    pub fn evict_all_to_log(&self) -> u64 {
        if !LogEviction::is_open(self.inner()) {
            return 0;
        }
        let found = sweep_to_log(self.inner(), u64::MAX, false);
        Guard::pin().flush();
        found.chunks
    }

    /// May chunks leave memory that have changed since the newest checkpoint, while a page service gives them back?
    pub fn set_evicts_to_log(&self, may: bool) {
        let evicts = &self.inner().checkpoints.evicts_to_log;
        evicts.store(may, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
