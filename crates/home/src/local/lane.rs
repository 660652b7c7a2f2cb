//! One lane's files: where the next append goes, and the segment after.
//!
//! Invariants:
//! - `offset <= current.size_bytes`; places are handed out in order and never twice.
//! - `next` has the number after `current`'s.
//! - Who asks for room hears of a full disk only what an attempt found that began after they asked first
//!   ([`RoomRequest`]): attempts are
//!   numbered in the order in which they begin, over all lanes. That outcome is kept while the next attempt is under
//!   way, so nobody who has waited for one waits for another, however many come and ask.
//! - The listener is called without the lock.

use super::ALIGNMENT;
use super::io_method::{AppendWrite, IoMethodRunner, LaneWriteOrder, Piece};
use crate::{Buffer, Completion, HomeError, NoRoom, Position, RoomListener, RoomRequest};
use logstead_env::{Env, File, JobQueue};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// The lane's own thread, if the way of writing has one.
    writer: Option<JobQueue<AppendWrite>>,
    order: Arc<LaneWriteOrder>,
    /// Files that may still be written to: the present segment, those before it whose last appends may be in flight,
    /// and the next.
    open: Mutex<Vec<Segment>>,
}

struct State {
    current_number: u64,
    current_size_bytes: u64,
    offset: u64,
    next: Next,
    /// The newest attempt that found the disk full, if none has succeeded since; else 0.
    found_full: u64,
}

/// The segment after the present one.
enum Next {
    /// Nobody has asked for it.
    Unasked,
    /// This attempt is making it; whoever needs it waits for the outcome.
    Preparing { attempt: u64 },
    /// It is there.
    Ready { size_bytes: u64 },
    /// The last attempt found the disk full. Those who waited for it hear so; who comes later starts another one,
    /// because space may have been freed.
    DiskFull,
    /// The last attempt failed otherwise; there will be no other.
    Failed(HomeError),
}

/// How many attempts to make a segment have begun, in all lanes of a home.
#[derive(Default)]
pub(super) struct SegmentAttempts(AtomicU64);

impl SegmentAttempts {
    fn begun(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// The next one's number. What it finds it looks for later: whoever saw a lower count asked before.
    fn begin(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// A lane's next segment is made once this part (one in so many) of the present one is used: late enough that a
/// server which writes little makes none, early enough that it is there in time.
const PREPARE_AFTER_PART: u64 = 4;

/// Segments kept open: the next one, the present one, and one for each of up to 8 appends that have been placed and not
/// yet given ([`IoMethod::appends_in_flight_max`](super::io_method::Way::appends_in_flight_max)).
const OPEN_MAX: usize = 10;

/// An append as the home is given it.
pub(super) struct Append {
    pub(super) at: Position,
    pub(super) block: Buffer,
    pub(super) len: usize,
    pub(super) done: Completion,
    /// What must stay until it is done.
    pub(super) keep: Arc<dyn Send + Sync>,
}

/// The answer to who wants a certain place.
pub(super) enum Claim {
    /// It is theirs; the next segment should be started now if `prepare` says so.
    Claimed { prepare: bool },
    /// Its segment is not there yet; it should be started now if `prepare` says so.
    Later { prepare: bool },
    /// Its segment is not there, and the last attempt to make it found the disk full.
    DiskFull,
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
        ways: &IoMethodRunner,
    ) -> std::io::Result<LaneFiles> {
        let state = State {
            current_number: first.number,
            current_size_bytes: first.size_bytes,
            offset: 0,
            next: Next::Unasked,
            found_full: 0,
        };
        Ok(LaneFiles {
            id,
            state: Mutex::new(state),
            listener: OnceLock::new(),
            writer: ways.lane_writer(env, &format!("log-{}", id.get()))?,
            order: Arc::new(LaneWriteOrder::new(id)),
            open: Mutex::new(vec![first]),
        })
    }

    pub(super) fn set_listener(&self, listener: RoomListener) {
        // The interface says once; a second one is ignored.
        let _ignored = self.listener.set(listener);
    }

    pub(super) fn room(
        &self,
        bytes: u64,
        request: &mut RoomRequest,
        attempts: &SegmentAttempts,
    ) -> Room {
        let state = self.state.lock();
        // Before anything is looked at: an attempt that begins from here on counts.
        let before = request.attempts_before(attempts.begun());
        if bytes <= state.current_size_bytes - state.offset {
            return Room {
                result: Ok(()),
                prepare: false,
            };
        }
        let (result, prepare) = match &state.next {
            Next::Ready { size_bytes } if bytes <= *size_bytes => (Ok(()), false),
            Next::Ready { .. } => {
                let what = "more room asked for than a segment has";
                let error = HomeError::Misuse {
                    lane: self.id,
                    what,
                };
                (Err(NoRoom::Failed(error)), false)
            }
            Next::Failed(error) => (Err(NoRoom::Failed(error.clone())), false),
            _ if state.found_full > before => (Err(NoRoom::DiskFull), false),
            Next::Unasked | Next::DiskFull => (Err(NoRoom::Busy), true),
            Next::Preparing { .. } => (Err(NoRoom::Busy), false),
        };
        Room { result, prepare }
    }

    /// The number of the segment to make and the size of the one before it, unless one is ready or under way.
    pub(super) fn begin_preparing(&self, attempts: &SegmentAttempts) -> Option<(u64, u64)> {
        let mut state = self.state.lock();
        match state.next {
            Next::Unasked | Next::DiskFull => {}
            Next::Preparing { .. } | Next::Ready { .. } | Next::Failed(_) => return None,
        }
        state.next = Next::Preparing {
            attempt: attempts.begin(),
        };
        Some((state.current_number + 1, state.current_size_bytes))
    }

    /// Does somebody still want the segment that is being prepared?
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.state.lock().next, Next::Preparing { .. })
    }

    /// No further segment is made: the lane's writer is shut out.
    pub(super) fn stop_preparing(&self, why: HomeError) {
        self.state.lock().next = Next::Failed(why);
    }

    pub(super) fn end_preparing(&self, made: Result<Segment, HomeError>) {
        let mut state = self.state.lock();
        // One attempt at a time; nobody else ends it, but for who shuts the lane's writer out.
        let Next::Preparing { attempt } = state.next else {
            return;
        };
        let next = match made {
            Ok(segment) => {
                let size_bytes = segment.size_bytes;
                let mut open = self.open.lock();
                if open.len() >= OPEN_MAX {
                    open.remove(0);
                }
                open.push(segment);
                state.found_full = 0;
                Next::Ready { size_bytes }
            }
            Err(error) if error.is_disk_full() => {
                state.found_full = attempt;
                Next::DiskFull
            }
            Err(error) => Next::Failed(error),
        };
        state.next = next;
        drop(state);
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }

    /// Claims a place; also says whether it is time to make the next segment.
    pub(super) fn place(&self, len: u64) -> Result<(Position, bool), HomeError> {
        let mut state = self.state.lock();
        if !len.is_multiple_of(ALIGNMENT as u64) {
            return Err(HomeError::Misuse {
                lane: self.id,
                what: "length is not aligned",
            });
        }
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
        }
        let at = Position {
            segment: state.current_number,
            offset: state.offset,
        };
        state.offset += len;
        let used = state.offset > state.current_size_bytes / PREPARE_AFTER_PART;
        Ok((at, used && matches!(state.next, Next::Unasked)))
    }

    /// Claims the place that somebody else has chosen: the next one, or the start of the next segment.
    pub(super) fn claim(&self, at: Position, len: u64) -> Result<Claim, HomeError> {
        let misuse = |what| HomeError::Misuse {
            lane: self.id,
            what,
        };
        let mut state = self.state.lock();
        if !len.is_multiple_of(ALIGNMENT as u64) {
            return Err(misuse("length is not aligned"));
        }
        if at.segment.checked_sub(1) == Some(state.current_number) && at.offset == 0 {
            match &state.next {
                Next::Ready { size_bytes } => {
                    state.current_size_bytes = *size_bytes;
                    state.current_number += 1;
                    state.offset = 0;
                    state.next = Next::Unasked;
                }
                Next::Preparing { .. } => return Ok(Claim::Later { prepare: false }),
                Next::Unasked => return Ok(Claim::Later { prepare: true }),
                Next::DiskFull => return Ok(Claim::DiskFull),
                Next::Failed(error) => return Err(error.clone()),
            }
        }
        let next = Position {
            segment: state.current_number,
            offset: state.offset,
        };
        if at != next {
            return Err(misuse("append at a place that does not follow"));
        }
        if len > state.current_size_bytes - state.offset {
            return Err(misuse("append larger than what is left of its segment"));
        }
        state.offset += len;
        let used = state.offset > state.current_size_bytes / PREPARE_AFTER_PART;
        Ok(Claim::Claimed {
            prepare: used && matches!(state.next, Next::Unasked),
        })
    }

    /// The segment that the next append goes to, as far as is known.
    pub(super) fn current_segment(&self) -> u64 {
        self.state.lock().current_number
    }

    /// A segment that is trimmed is never written to any more: its file may become another one.
    pub(super) fn forget(&self, segment: u64) {
        self.open.lock().retain(|open| open.number != segment);
    }

    /// The file that holds `at`, if `len` bytes fit there.
    fn file(&self, at: Position, len: usize) -> Result<Arc<dyn File>, HomeError> {
        let misuse = |what| HomeError::Misuse {
            lane: self.id,
            what,
        };
        let open = self.open.lock();
        let segment = open.iter().find(|segment| segment.number == at.segment);
        let segment = segment.ok_or(misuse("append to a segment that is not open"))?;
        if at.offset + len as u64 > segment.size_bytes {
            return Err(misuse("append beyond the segment"));
        }
        Ok(Arc::clone(&segment.file))
    }

    pub(super) fn append(&self, ways: &IoMethodRunner, append: Append) {
        let Append {
            at,
            block,
            len,
            done,
            keep,
        } = append;
        let file = match self.checked(&block, len).and_then(|_| self.file(at, len)) {
            Ok(file) => file,
            Err(error) => return done(block, Err(error)),
        };
        let write = AppendWrite {
            order: Arc::clone(&self.order),
            file,
            at,
            block,
            len,
            done,
            keep,
        };
        ways.hand_off(self.writer.as_ref(), write);
    }

    pub(super) fn append_inline(
        &self,
        ways: &IoMethodRunner,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let bytes = self.checked(block, len)?;
        let file = self.file(at, len)?;
        ways.write_inline(&self.order, file.as_ref(), Piece { at, bytes })
    }

    fn checked<'b>(&self, block: &'b Buffer, len: usize) -> Result<&'b [u8], HomeError> {
        let bytes = block.as_slice().get(..len);
        bytes.ok_or(HomeError::Misuse {
            lane: self.id,
            what: "append longer than its buffer",
        })
    }
}

#[cfg(test)]
mod tests;
