//! Time, and what happens in it.
//!
//! Invariant: events are ordered by their moments, and by the order of scheduling within one.

use super::SideKey;
use crate::{Buffer, Completion, HomeError, NoRoom, Position, SideCompletion};
use logstead_env::{Clock, Instant, SimClock};
use logstead_types::LaneId;
use std::sync::Arc;
use std::time::Duration;

/// How time passes.
pub(super) enum TimeSource {
    Real(Arc<dyn Clock>),
    Virtual(Arc<SimClock>),
}

impl TimeSource {
    pub(super) fn now(&self) -> Instant {
        match self {
            TimeSource::Real(clock) => clock.monotonic(),
            TimeSource::Virtual(clock) => clock.monotonic(),
        }
    }

    /// Lets so much time pass.
    pub(super) fn wait(&self, time: Duration) {
        match self {
            TimeSource::Real(clock) => {
                let due = clock.monotonic() + time;
                // A sleeping thread wakes some 60 us late.
                if let Some(coarse) = time.checked_sub(Duration::from_micros(100)) {
                    logstead_env::sleep(coarse);
                }
                while clock.monotonic() < due {
                    std::thread::yield_now();
                }
            }
            TimeSource::Virtual(clock) => clock.advance(time),
        }
    }
}

/// An append under way.
pub(super) struct Append {
    pub(super) lane: LaneId,
    pub(super) at: Position,
    pub(super) block: Buffer,
    pub(super) len: usize,
    pub(super) done: Completion,
    pub(super) attempts: u32,
}

impl Append {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.block.as_slice()[..self.len]
    }
}

/// What happens at a moment.
pub(super) enum Event {
    /// The service has stored the append, or not, and its reply arrives.
    Reply {
        append: Append,
        stores: bool,
        flips: bool,
        error: bool,
    },
    /// The client gives up waiting and asks how long the object is.
    TimedOut(Append),
    /// The answer to that arrives.
    Settle(Append),
    /// The client sends the append again.
    Retry(Append),
    /// A request arrives that nobody waits for.
    Late {
        lane: LaneId,
        at: Position,
        bytes: Vec<u8>,
    },
    /// A piece of a side segment is stored.
    Piece { key: SideKey, len: usize },
    /// A side segment is complete.
    Side {
        key: SideKey,
        bytes: Vec<u8>,
        done: SideCompletion,
    },
}

/// An event and its moment; those of one moment happen in the order in which they were scheduled.
pub(super) struct Scheduled {
    pub(super) due: Instant,
    pub(super) order: u64,
    pub(super) event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.order == other.order
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

/// What is told outside the lock.
pub(super) enum Delivery {
    Append(Completion, Buffer, Result<(), HomeError>),
    Side(SideCompletion, Result<(), NoRoom>),
}

impl Delivery {
    pub(super) fn complete(self) {
        match self {
            Delivery::Append(done, buffer, result) => done(buffer, result),
            Delivery::Side(done, result) => done(result),
        }
    }
}
