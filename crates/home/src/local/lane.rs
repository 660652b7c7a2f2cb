//! One lane's files: where the next append goes, and the segment after.
//!
//! Invariants:
//! - `offset <= current.size_bytes`; places are handed out in order and never twice.
//! - `next` has the number after `current`'s.
//! - The listener is called without the lock.

use super::ALIGNMENT;
use super::queue::Queue;
use crate::{Buffer, Completion, HomeError, NoRoom, Position, RoomListener};
use logstead_env::{Env, File};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// A prepared segment.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) size_bytes: u64,
    pub(super) file: Arc<dyn File>,
}

/// One lane.
pub(super) struct LaneFiles {
    pub(super) id: LaneId,
    state: Mutex<State>,
    listener: OnceLock<RoomListener>,
    writer: Option<Queue<Append>>,
    /// What the writer's thread shares with inline appends.
    files: Arc<Open>,
}

struct State {
    current_number: u64,
    current_size_bytes: u64,
    offset: u64,
    next: Next,
}

/// The segment after the present one.
enum Next {
    /// Nobody has asked for it.
    Unasked,
    /// It is being made. `disk_was_full`: the attempt before failed for lack of space, so whoever needs the room now
    /// is told so instead of being left to wait.
    Preparing { disk_was_full: bool },
    /// It is there.
    Ready { size_bytes: u64 },
    /// The last attempt found the disk full.
    DiskFull,
    /// The last attempt failed otherwise; there will be no other.
    Failed(HomeError),
}

/// Files that may still be written to: the present segment, the one before (its last append may be in flight) and the
/// next.
struct Open {
    id: LaneId,
    segments: Mutex<Vec<Segment>>,
}

/// Segments kept open.
const OPEN_MAX: usize = 4;

struct Append {
    at: Position,
    block: Buffer,
    len: usize,
    done: Completion,
}

/// The answer to "is there room?".
pub(super) struct Room {
    pub(super) result: Result<(), NoRoom>,
    /// The next segment should be started now.
    pub(super) prepare: bool,
}

impl LaneFiles {
    pub(super) fn new(
        id: LaneId,
        first: Segment,
        env: &Env,
        threads: bool,
    ) -> std::io::Result<LaneFiles> {
        let state = State {
            current_number: first.number,
            current_size_bytes: first.size_bytes,
            offset: 0,
            next: Next::Unasked,
        };
        let files = Arc::new(Open {
            id,
            segments: Mutex::new(vec![first]),
        });
        let writer = if threads {
            let files = Arc::clone(&files);
            Some(Queue::start(
                env,
                &format!("log-{}", id.get()),
                move |job: Append| {
                    let result = files.write(job.at, &job.block, job.len);
                    (job.done)(job.block, result);
                },
            )?)
        } else {
            None
        };
        Ok(LaneFiles {
            id,
            state: Mutex::new(state),
            listener: OnceLock::new(),
            writer,
            files,
        })
    }

    pub(super) fn set_listener(&self, listener: RoomListener) {
        // The interface says once; a second one is ignored.
        let _ignored = self.listener.set(listener);
    }

    pub(super) fn room(&self, bytes: u64) -> Room {
        let state = self.state.lock();
        let fits = bytes <= state.current_size_bytes - state.offset;
        let (beyond, prepare) = match &state.next {
            Next::Ready { size_bytes } if bytes <= *size_bytes => (Ok(()), false),
            Next::Ready { .. } => {
                let what = "more room asked for than a segment has";
                (
                    Err(NoRoom::Failed(HomeError::Misuse {
                        lane: self.id,
                        what,
                    })),
                    false,
                )
            }
            Next::Unasked => (Err(NoRoom::Busy), true),
            Next::Preparing {
                disk_was_full: false,
            } => (Err(NoRoom::Busy), false),
            Next::Preparing {
                disk_was_full: true,
            } => (Err(NoRoom::DiskFull), false),
            Next::DiskFull => (Err(NoRoom::DiskFull), true),
            Next::Failed(error) => (Err(NoRoom::Failed(error.clone())), false),
        };
        // While the present segment has room a failed attempt is not repeated: it would be, for every transaction.
        Room {
            result: if fits { Ok(()) } else { beyond },
            prepare: prepare && !fits,
        }
    }

    /// The number of the segment to make, unless one is ready or under way.
    pub(super) fn begin_preparing(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let disk_was_full = match state.next {
            Next::Unasked => false,
            Next::DiskFull => true,
            Next::Preparing { .. } | Next::Ready { .. } | Next::Failed(_) => return None,
        };
        state.next = Next::Preparing { disk_was_full };
        Some(state.current_number + 1)
    }

    pub(super) fn end_preparing(&self, made: Result<Segment, HomeError>) {
        let next = match made {
            Ok(segment) => {
                let size_bytes = segment.size_bytes;
                let mut open = self.files.segments.lock();
                if open.len() >= OPEN_MAX {
                    open.remove(0);
                }
                open.push(segment);
                Next::Ready { size_bytes }
            }
            Err(error) if error.is_disk_full() => Next::DiskFull,
            Err(error) => Next::Failed(error),
        };
        self.state.lock().next = next;
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }

    /// Claims a place; also says whether the lane went on to its next segment.
    pub(super) fn place(&self, len: u64) -> Result<(Position, bool), HomeError> {
        let mut state = self.state.lock();
        if !len.is_multiple_of(ALIGNMENT as u64) {
            return Err(HomeError::Misuse {
                lane: self.id,
                what: "length is not aligned",
            });
        }
        let mut switched = false;
        if len > state.current_size_bytes - state.offset {
            let Next::Ready { size_bytes } = state.next else {
                return Err(HomeError::Misuse {
                    lane: self.id,
                    what: "append without ensured room",
                });
            };
            if len > size_bytes {
                return Err(HomeError::Misuse {
                    lane: self.id,
                    what: "append larger than a segment",
                });
            }
            state.current_number += 1;
            state.current_size_bytes = size_bytes;
            state.offset = 0;
            state.next = Next::Unasked;
            switched = true;
        }
        let at = Position {
            segment: state.current_number,
            offset: state.offset,
        };
        state.offset += len;
        Ok((at, switched))
    }

    pub(super) fn append(&self, at: Position, block: Buffer, len: usize, done: Completion) {
        match &self.writer {
            Some(writer) => writer.push(Append {
                at,
                block,
                len,
                done,
            }),
            None => {
                let result = self.files.write(at, &block, len);
                done(block, result);
            }
        }
    }

    pub(super) fn write(&self, at: Position, block: &Buffer, len: usize) -> Result<(), HomeError> {
        self.files.write(at, block, len)
    }
}

impl Open {
    fn write(&self, at: Position, block: &Buffer, len: usize) -> Result<(), HomeError> {
        let misuse = |what| HomeError::Misuse {
            lane: self.id,
            what,
        };
        let bytes = block
            .as_slice()
            .get(..len)
            .ok_or(misuse("append longer than its buffer"))?;
        let file = {
            let segments = self.segments.lock();
            let segment = segments.iter().find(|segment| segment.number == at.segment);
            let segment = segment.ok_or(misuse("append to a segment that is not open"))?;
            if at.offset + len as u64 > segment.size_bytes {
                return Err(misuse("append beyond the segment"));
            }
            Arc::clone(&segment.file)
        };
        let what = || {
            format!(
                "append to lane {} segment {} offset {}",
                self.id, at.segment, at.offset
            )
        };
        file.write_all_at(at.offset, bytes)
            .map_err(|error| HomeError::io(what(), error))?;
        if !file.writes_are_durable() {
            file.sync().map_err(|error| HomeError::io(what(), error))?;
        }
        Ok(())
    }
}
