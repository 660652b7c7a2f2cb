//! Lanes that are open for appending: places, segments, and who is told what.
//!
//! Invariants:
//! - Places follow one another; a segment is left when it has taken as many appends or bytes as it may, and the next
//!   number follows. A place, once claimed, is never taken back.
//! - Appendable: the object of segment n+1 is made ahead, but not before the first append into segment n has completed.
//!   So a writer has at most two objects that it may ever append to again, and at most one name that it may still
//!   create: what a fence must reach (T3).
//! - Plain: an append is told to have succeeded only after every earlier one of its lane has; so the first one that a
//!   fence keeps out keeps out all later ones, wherever they are (T2).
//!
//! Does not: send requests.

use super::append::PendingBlock;
use super::io::{Counts, ObjectCore};
use crate::{HomeError, NoRoom, Position, RoomListener};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// How far a segment may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentLimits {
    /// Appends of blocks; the head and a margin for fences have been taken off.
    pub(super) appends: u64,
    /// Bytes of blocks.
    pub(super) bytes: u64,
    /// Bytes of one append, and of a room.
    pub(super) room: u64,
    /// Segments are objects that must be made.
    pub(super) appendable: bool,
}

/// A lane; see the module's documentation.
pub(super) struct Lane {
    pub(super) id: LaneId,
    limits: SegmentLimits,
    state: Mutex<State>,
    /// Told when a segment has been made, or the lane has failed.
    changed: Notify,
    listener: OnceLock<RoomListener>,
}

struct State {
    next: Position,
    /// Claimed in the segment of `next`.
    appends: u64,
    /// The next append begins a segment.
    ended: bool,
    /// The highest segment whose object is there.
    made: u64,
    making: bool,
    /// The highest segment into which an append has completed.
    begun: Option<u64>,
    /// Somebody was told that there is no room yet.
    room_wanted: bool,
    failed: Option<HomeError>,
    /// Plain: the first append in order that failed takes all later ones with it.
    broken: Option<HomeError>,
    /// Plain: claimed and not told, in order.
    claimed: VecDeque<Claimed>,
}

struct Claimed {
    at: Position,
    answer: Option<(PendingBlock, Result<(), HomeError>)>,
}

impl Lane {
    /// A lane whose first segment has been made.
    pub(super) fn new(id: LaneId, first_segment: u64, limits: SegmentLimits) -> Lane {
        Lane {
            id,
            limits,
            state: Mutex::new(State {
                next: Position::start_of(first_segment),
                appends: 0,
                ended: false,
                made: first_segment,
                making: false,
                begun: None,
                room_wanted: false,
                failed: None,
                broken: None,
                claimed: VecDeque::new(),
            }),
            changed: Notify::new(),
            listener: OnceLock::new(),
        }
    }

    pub(super) fn set_listener(&self, listener: RoomListener) {
        // A second one would break the interface's rules; the first stays.
        let _set_once = self.listener.set(listener);
    }

    fn misuse(&self, what: &'static str) -> HomeError {
        let lane = self.id;
        HomeError::Misuse { lane, what }
    }

    /// Room for so many bytes. The second answer: the segment to make now.
    pub(super) fn ensure_room(
        &self,
        core: &ObjectCore,
        bytes: u64,
    ) -> (Result<(), NoRoom>, Option<u64>) {
        let mut state = self.state.lock();
        if let Some(error) = &state.failed {
            return (Err(NoRoom::Failed(error.clone())), None);
        }
        if bytes > self.limits.room {
            let error = self.misuse("more room asked for than an append may have");
            return (Err(NoRoom::Failed(error)), None);
        }
        let fits = !state.ended
            && state.appends < self.limits.appends
            && bytes <= self.limits.bytes.saturating_sub(state.next.offset);
        if !self.limits.appendable || fits || state.made > state.next.segment {
            return (Ok(()), None);
        }
        // A place would still be found, and its append would wait: better that its writers do.
        state.room_wanted = true;
        core.counts.busy.fetch_add(1, Ordering::Relaxed);
        let make = self.to_make(&mut state);
        (Err(NoRoom::Busy), make)
    }

    /// Claims a place. The second answer: the segment to make now.
    pub(super) fn place(&self, len: u64) -> Result<(Position, Option<u64>), HomeError> {
        if len > self.limits.room {
            return Err(self.misuse("an append larger than a room"));
        }
        let mut state = self.state.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let full = state.ended
            || state.appends >= self.limits.appends
            || len > self.limits.bytes.saturating_sub(state.next.offset);
        if full {
            state.next = Position::start_of(state.next.segment + 1);
            state.appends = 0;
            state.ended = false;
        }
        let at = state.next;
        state.next.offset += len;
        state.appends += 1;
        if !self.limits.appendable {
            state.claimed.push_back(Claimed { at, answer: None });
        }
        let make = self.to_make(&mut state);
        Ok((at, make))
    }

    /// The next append begins a segment. The answer: the segment to make now.
    pub(super) fn end_segment(&self) -> Option<u64> {
        let mut state = self.state.lock();
        state.ended = state.appends > 0;
        self.to_make(&mut state)
    }

    /// The segment that should be made now: the next one when half of this one is used or somebody waits for it, or
    /// this one if it is missing.
    fn to_make(&self, state: &mut State) -> Option<u64> {
        if !self.limits.appendable || state.making || state.failed.is_some() {
            return None;
        }
        let current = state.next.segment;
        // Whoever was refused wants more than what is left of this one.
        let half = state.room_wanted
            || state.ended
            || state.appends.saturating_mul(2) >= self.limits.appends
            || state.next.offset.saturating_mul(2) >= self.limits.bytes;
        let next = state.made + 1;
        let wanted = state.made < current || state.made == current && half;
        // The invariant that fences count on.
        let begun = state.begun.is_some_and(|begun| begun >= state.made);
        let make = wanted && begun;
        state.making |= make;
        make.then_some(next)
    }

    /// A segment has been made, or not. The answer: the segment to make now.
    pub(super) fn made(&self, segment: u64, result: Result<(), HomeError>) -> Option<u64> {
        let (tell, make) = {
            let mut state = self.state.lock();
            state.making = false;
            match result {
                Ok(()) => state.made = segment,
                Err(error) => {
                    state.failed.get_or_insert(error);
                }
            }
            let make = self.to_make(&mut state);
            (std::mem::take(&mut state.room_wanted), make)
        };
        self.changed.notify_waiters();
        if tell && let Some(listener) = self.listener.get() {
            listener();
        }
        make
    }

    /// Waits until the segment has been made.
    pub(super) async fn is_made(&self, segment: u64) -> Result<(), HomeError> {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.made >= segment {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// An append has been answered: tells whoever may be told now. The answer: the segment to make now.
    pub(super) fn answered(
        &self,
        core: &ObjectCore,
        at: Position,
        pending: PendingBlock,
        result: Result<(), HomeError>,
    ) -> Option<u64> {
        let mut told = VecDeque::new();
        let (tell, make) = {
            let mut state = self.state.lock();
            if let Err(error) = &result {
                state.failed.get_or_insert_with(|| error.clone());
            } else {
                state.begun = state.begun.max(Some(at.segment));
            }
            if self.limits.appendable {
                told.push_back((pending, result));
            } else if let Some(claimed) = state.claimed.iter_mut().find(|claimed| claimed.at == at)
            {
                claimed.answer = Some((pending, result));
                while let Some((pending, mut result)) = state
                    .claimed
                    .front_mut()
                    .and_then(|front| front.answer.take())
                {
                    state.claimed.pop_front();
                    if let Some(error) = &state.broken {
                        result = Err(error.clone());
                    } else if let Err(error) = &result {
                        state.broken = Some(error.clone());
                    }
                    told.push_back((pending, result));
                }
            } else {
                let error = self.misuse("an append at a place that was not claimed");
                told.push_back((pending, result.and(Err(error))));
            }
            let make = self.to_make(&mut state);
            let tell = state.failed.is_some() && std::mem::take(&mut state.room_wanted);
            (tell, make)
        };
        if tell {
            self.changed.notify_waiters();
        }
        for (pending, result) in told {
            if result.is_ok() {
                Counts::add(&core.counts.appends);
            }
            pending.finish(result);
        }
        if tell && let Some(listener) = self.listener.get() {
            listener();
        }
        make
    }
}

/// Lanes by number.
pub(super) type Lanes = std::collections::HashMap<LaneId, Arc<Lane>>;
