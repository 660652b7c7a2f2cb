//! Large transactions: their records go into a side segment while they run, and only a reference into the lane.
//!
//! Owns: the checksum and length of what was appended, and the segment's number. A side segment that is not finished is
//! removed by the home. One that is finished and whose commit then fails is removed by [`Lane::give_up_side_segment`];
//! should the server stop before that, by the next recovery (T8).
//!
//! Pieces that wait to be written are taken from the lane's allocation limit, also beyond its limit: their transaction
//! looks at [`SideSegmentWriter::is_held_back`] before it hands over more. What is taken is brought up to date whenever
//! the side segment is used, so it may be too much for a while, never too little.

use super::{Lane, LaneInner, NoRoom};
use crate::entry::SideRef;
use crate::number_limits::first_number;
use crate::number_limits::{NumbersExhausted, SIDES_END};
use logstead_home::SideWriter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Told where the records were put, or why not.
pub type SideSegmentCallback = Box<dyn FnOnce(Result<SideRef, NoRoom>) + Send>;

/// A side segment being written. Dropping it gives it up.
pub struct SideSegmentWriter {
    shared: Arc<LaneInner>,
    writer: Box<dyn SideWriter>,
    at: SideRef,
    taken: AllocationCharge,
}

/// What the pieces of a side segment have taken from the allocation limit.
struct AllocationCharge {
    shared: Arc<LaneInner>,
    bytes: u64,
}

impl AllocationCharge {
    fn set(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if let Some(allocation_limit) = &self.shared.allocation_limit {
            allocation_limit.force(bytes.saturating_sub(before));
            allocation_limit.give_back(before.saturating_sub(bytes));
        }
    }
}

impl Drop for AllocationCharge {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl SideSegmentWriter {
    /// Appends records. They are written behind the caller's back; what goes wrong is told by
    /// [`SideSegmentWriter::finish`].
    pub fn append(&mut self, records: Vec<u8>) {
        self.at.crc = crc32c::crc32c_append(self.at.crc, &records);
        self.at.length += records.len() as u64;
        self.taken.set(self.taken.bytes + records.len() as u64);
        self.writer.append(records);
        self.taken.set(self.writer.backlog_bytes() as u64);
    }

    /// The log is as far ahead of durability as it may be: more records had better wait with their transaction.
    pub fn is_held_back(&mut self) -> bool {
        self.taken.set(self.writer.backlog_bytes() as u64);
        let allocation_limit = self.shared.allocation_limit.as_ref();
        allocation_limit.is_some_and(|allocation_limit| allocation_limit.is_used_up())
    }

    /// The lane it belongs to: the entry that names it goes there (T8).
    pub fn lane(&self) -> Lane {
        Lane {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Bytes appended so far.
    pub fn len(&self) -> u64 {
        self.at.length
    }

    /// Nothing has been appended.
    pub fn is_empty(&self) -> bool {
        self.at.length == 0
    }

    /// Bytes appended and not yet written.
    pub fn backlog_bytes(&self) -> usize {
        self.writer.backlog_bytes()
    }

    /// An empty buffer to fill again, if one has been written.
    pub fn spare(&mut self) -> Option<Vec<u8>> {
        self.writer.spare()
    }

    /// All records are there. `done` is called once they are durable, possibly before this returns and on any thread.
    /// The CSN is drawn only after that (T8).
    pub fn finish(self, done: SideSegmentCallback) {
        let SideSegmentWriter {
            shared,
            writer,
            at,
            taken,
        } = self;
        let failed = shared.state.lock().failed.clone();
        if let Some(error) = failed {
            return done(Err(NoRoom::Failed(error)));
        }
        let completion = move |result| {
            drop(taken);
            match result {
                Ok(()) => {
                    shared.state.lock().counters.sides += 1;
                    done(Ok(at));
                }
                Err(logstead_home::NoRoom::DiskFull) => done(Err(NoRoom::DiskFull)),
                Err(logstead_home::NoRoom::Busy) => done(Err(NoRoom::Full)),
                Err(logstead_home::NoRoom::Unavailable) => done(Err(NoRoom::Unavailable)),
                Err(logstead_home::NoRoom::Failed(error)) => {
                    let error = shared.fail(error);
                    done(Err(NoRoom::Failed(error)));
                }
            }
        };
        writer.finish(Box::new(completion));
    }
}

impl Lane {
    /// Begins a side segment: the records of a large transaction go into it while the transaction runs. Fails if the
    /// lane has no number left for it.
    pub fn begin_side_segment(&self) -> Result<SideSegmentWriter, NumbersExhausted> {
        let shared = &self.shared;
        let start = shared.start;
        let next = |count: u64| (count < SIDES_END).then_some(count + 1);
        let count = shared
            .side_ids
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        // The epoch in the number: a later life never takes the name of an earlier one's orphan.
        let id = first_number(start.epoch) + count.map_err(|_| NumbersExhausted::Sides)?;
        Ok(SideSegmentWriter {
            taken: AllocationCharge {
                shared: Arc::clone(shared),
                bytes: 0,
            },
            shared: Arc::clone(shared),
            writer: shared.sides.begin_side_segment(start.lane, id),
            at: SideRef {
                lane: start.lane,
                id,
                length: 0,
                crc: 0,
            },
        })
    }

    /// Removes a side segment that was finished and whose entry is never pushed, because its commit failed after that.
    /// Waits for no request, so by any thread; what cannot be removed stays for the next recovery.
    ///
    /// # Panics
    /// If it is not this life's: it may belong to an entry.
    pub fn give_up_side_segment(&self, side: &SideRef) {
        let epoch = u64::from(self.shared.start.epoch.get());
        assert!(side.id >> 32 == epoch, "a side segment of another epoch");
        self.shared.sides.give_up_side_segment(side.lane, side.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::{LaneConfig, LaneStart};
    use logstead_env::SimClock;
    use logstead_home::{LaneAppends, LogHome, MemoryHome};
    use logstead_types::{DatabaseId, Epoch, LaneId};

    /// Numbers of side segments end before those of the next epoch begin, and none is taken twice.
    #[test]
    fn side_segments_near_the_end_of_their_numbers_are_refused() {
        let home = MemoryHome::new(32 * 1024);
        home.open_lane(LaneId(0), 0).expect("opens");
        let start = LaneStart {
            database: DatabaseId(1),
            epoch: Epoch(7),
            lane: LaneId(0),
            first_segment: 0,
        };
        let clock = Arc::new(SimClock::new());
        let lane = Lane::new(LogHome::from(home), clock, start, LaneConfig::default());
        lane.shared.side_ids.store(SIDES_END - 2, Ordering::Relaxed);
        let ids: Vec<u64> = (0..2)
            .map(|_| {
                lane.begin_side_segment()
                    .map(|side| side.at.id)
                    .unwrap_or_default()
            })
            .collect();
        let end = (7 << 32) + SIDES_END;
        assert_eq!(ids, [end - 2, end - 1]);
        for _ in 0..3 {
            assert_eq!(
                lane.begin_side_segment().map(drop),
                Err(NumbersExhausted::Sides)
            );
        }
        assert!(end < 8 << 32);
        assert!(lane.room(100).is_ok(), "small transactions go on");
    }
}
