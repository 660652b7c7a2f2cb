//! Large transactions: their records go into a side segment while they run, and only a reference into the lane.
//!
//! Owns: the checksum and length of what was appended, and the segment's number. A side segment that is not finished, or
//! whose entry is never pushed, is nobody's: the home removes the one, the next recovery the other (T8).

use super::{Lane, NoRoom, Shared};
use crate::entry::SideRef;
use logstead_home::SideWriter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Told where the records were put, or why not.
pub type SideDone = Box<dyn FnOnce(Result<SideRef, NoRoom>) + Send>;

/// A side segment being written. Dropping it gives it up.
pub struct Side {
    shared: Arc<Shared>,
    writer: Box<dyn SideWriter>,
    at: SideRef,
}

impl Side {
    /// Appends records. They are written behind the caller's back; what goes wrong is told by [`Side::finish`].
    pub fn append(&mut self, records: Vec<u8>) {
        self.at.crc = crc32c::crc32c_append(self.at.crc, &records);
        self.at.length += records.len() as u64;
        self.writer.append(records);
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
    pub fn finish(self, done: SideDone) {
        let Side { shared, writer, at } = self;
        let failed = shared.state.lock().failed.clone();
        if let Some(error) = failed {
            return done(Err(NoRoom::Failed(error)));
        }
        let completion = move |result| match result {
            Ok(()) => {
                shared.state.lock().counters.sides += 1;
                done(Ok(at));
            }
            Err(logstead_home::NoRoom::DiskFull) => done(Err(NoRoom::DiskFull)),
            Err(logstead_home::NoRoom::Busy) => done(Err(NoRoom::Full)),
            Err(logstead_home::NoRoom::Failed(error)) => {
                let error = shared.fail(error);
                done(Err(NoRoom::Failed(error)));
            }
        };
        writer.finish(Box::new(completion));
    }
}

impl Lane {
    /// Begins a side segment: the records of a large transaction go into it while the transaction runs.
    pub fn begin_side(&self) -> Side {
        let shared = &self.shared;
        let start = shared.start;
        // The epoch in the number: a later life never takes the name of an earlier one's orphan.
        let count = shared.side_ids.fetch_add(1, Ordering::Relaxed);
        let id = u64::from(start.epoch.get()) << 32 | count & 0xffff_ffff;
        Side {
            shared: Arc::clone(shared),
            writer: shared.home.begin_side(start.lane, id),
            at: SideRef {
                lane: start.lane,
                id,
                length: 0,
                crc: 0,
            },
        }
    }
}
