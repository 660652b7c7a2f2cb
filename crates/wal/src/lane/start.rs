//! From where on a lane is needed by who has everything before: a checkpoint.
//!
//! A *start* is the place between two blocks. Whoever asks for it ([`Lane::log_start`]) and draws a CSN `S` after that
//! knows that every entry at or above `S` lies there or behind, in this lane or any other whose start was asked for
//! too: it is pushed after its CSN was drawn, and what is pushed, or stolen from another lane's buffer, goes into a
//! block that is not sealed yet.
//!
//! Invariants: a start is given under the lock under which blocks are sealed, so it lies between the same two blocks
//! for everybody; side segments are known to the lane that sealed their entry, whichever pushed it, by the highest CSN
//! of that block: none of the block's entries is above it.

use super::Lane;
use crate::entry::SideRef;
use crate::manifest::RedoPoint;
use logstead_home::Position;
use logstead_types::Csn;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Starts that a lane remembers to have given: more than anybody asks for until one of them is used.
const STARTS_KEPT: usize = 64;

/// What a lane knows of the blocks it has sealed.
pub(super) struct SealedBlocks {
    /// Where the last one ends.
    end: Position,
    /// Highest CSN in any of them.
    csn_highest: Csn,
    /// Side segments of their entries, with the highest CSN of the block that holds the entry.
    sides: Vec<(Csn, SideRef)>,
    /// Starts that were given, and the highest CSN before each.
    given: VecDeque<(RedoPoint, Csn)>,
}

impl SealedBlocks {
    pub(super) fn new(first_segment: u64) -> SealedBlocks {
        SealedBlocks {
            end: Position::start_of(first_segment),
            csn_highest: Csn::ZERO,
            sides: Vec::new(),
            given: VecDeque::new(),
        }
    }

    /// The segment that the last one lies in.
    pub(super) fn segment(&self) -> u64 {
        self.end.segment
    }

    /// A block of `len` bytes at `at`.
    pub(super) fn add(
        &mut self,
        at: Position,
        len: u64,
        csn_highest: Csn,
        sides: &mut SmallVec<[SideRef; 1]>,
    ) {
        self.end = Position {
            offset: at.offset + len,
            ..at
        };
        self.csn_highest = self.csn_highest.max(csn_highest);
        self.sides
            .extend(sides.drain(..).map(|side| (csn_highest, side)));
    }
}

impl Lane {
    /// Is the room that the home has kept for what frees room? See
    /// [`LaneAppends::is_short_of_space`](logstead_home::LaneAppends::is_short_of_space).
    #[inline]
    pub fn is_short_of_space(&self) -> bool {
        self.shared.appends.is_short_of_space()
    }

    /// The place of the next block to be sealed: every entry that is pushed from now on lies there or behind, in this
    /// lane or in another one.
    pub fn log_start(&self) -> RedoPoint {
        let state = &mut *self.shared.state.lock();
        let start = RedoPoint {
            lane: self.id(),
            at: state.sealed.end,
            block: state.blocks_hardened + state.in_flight.len() as u64,
            previous_header_crc: state.previous_header_crc,
        };
        let sealed = &mut state.sealed;
        if sealed.given.back().is_none_or(|(last, _)| *last != start) {
            if sealed.given.len() == STARTS_KEPT {
                sealed.given.pop_front();
            }
            sealed.given.push_back((start, sealed.csn_highest));
        }
        start
    }

    /// Does everything below `csn`, and nothing else, lie before `start`, or durably behind it?
    pub(crate) fn check_start(&self, start: &RedoPoint, csn: Csn) -> Result<(), &'static str> {
        let state = self.shared.state.lock();
        let mut given = state.sealed.given.iter();
        let found = given.find(|(given, _)| given == start);
        let (_, highest) = found.ok_or("a start that its lane has not given")?;
        if *highest >= csn {
            return Err("an entry at or above a checkpoint's CSN lies before its start");
        }
        drop(state);
        if self.first_not_durable() < csn {
            return Err("an entry below a checkpoint's CSN is not durable");
        }
        Ok(())
    }

    /// Side segments of entries below `csn`, as far as that is known.
    pub(crate) fn sides_below(&self, csn: Csn) -> Vec<SideRef> {
        let state = self.shared.state.lock();
        let sides = state.sealed.sides.iter();
        let below = sides.filter(|(highest, _)| *highest < csn);
        below.map(|(_, side)| *side).collect()
    }

    /// They are gone.
    pub(crate) fn forget_sides_below(&self, csn: Csn) {
        let sides = &mut self.shared.state.lock().sealed.sides;
        sides.retain(|(highest, _)| *highest >= csn);
    }
}
