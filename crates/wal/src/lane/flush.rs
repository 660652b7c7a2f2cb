//! Blocks on their way to the home and back.
//!
//! Blocks are numbered, placed at the home and chained to one another by their headers in one step under the lock
//! ([`LaneInner::seal`]), so they may then be written side by side and complete in any order. What completed is
//! believed in order only: a block has hardened when it and all earlier ones have completed (T2), and then its claims
//! are written.

use super::buffer::{BlockBuilder, StolenClaim, StolenClaims};
use super::claims::Claim;
use super::interleave::point;
use super::times::append_class;
use super::{Cursor, FlushOutcome, FlushTimes, LaneError, LaneEvent, LaneInner, LaneState};
use crate::block::{FORMAT_VERSION, Header};
use logstead_env::{Instant, abort_on_panic};
use logstead_home::{Buffer, HomeError, InlineAppends, Position};
use logstead_types::{BlockNo, Csn};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

/// A block that has been sealed and has not hardened.
pub(super) struct InFlightBlock {
    completed: bool,
    inline: bool,
    /// The claim for bytes of the lane itself.
    own: Option<u64>,
    stolen: StolenClaims,
    sealed_at: Instant,
    len: u64,
    payload_len: usize,
    entries: u32,
}

impl InFlightBlock {
    /// It has no entries and only records the horizon.
    pub(super) fn is_void(&self) -> bool {
        self.own.is_none() && self.stolen.is_empty()
    }
}

/// A block on its way out of the lock.
pub(super) struct SealedBlock {
    buffer: Buffer,
    /// End of the entries, and of the padding behind them.
    filled: usize,
    len: u64,
    /// Its place at the home.
    at: Result<Position, HomeError>,
    block: u64,
    /// The lane's cursor at its end.
    end: u64,
    /// Who waits for room: sealing makes some.
    waiters: Vec<Waker>,
}

/// What a completion has hardened of one lane.
#[derive(Default)]
struct Hardened {
    moved: bool,
    /// A block without entries has completed.
    void: bool,
    /// What the allocation limit gets back.
    freed_bytes: u64,
}

impl LaneState {
    /// Makes the lane's bytes in the block under construction a claim.
    pub(super) fn claim_own(&mut self) -> Option<u64> {
        let claim = Claim {
            start: self.claimed,
            end: self.pushed,
            csn_lowest: std::mem::replace(&mut self.unclaimed_csn_lowest, Csn(u64::MAX)),
            gsn_end: self.gsn,
        };
        if claim.start == claim.end {
            return None;
        }
        self.claimed = claim.end;
        Some(self.claims.add(claim))
    }

    /// Lowest CSN pushed to this lane and not hardened.
    fn csn_lowest(&self) -> Csn {
        self.claims.csn_lowest().min(self.unclaimed_csn_lowest)
    }
}

impl LaneInner {
    /// Takes what is buffered out of the lock's reach, if another block may be in flight.
    pub(super) fn seal(&self, state: &mut LaneState) -> Option<SealedBlock> {
        match state.building.is_empty() {
            true => None,
            false => self.seal_block(state),
        }
    }

    /// The same also if nothing is buffered: then it is a block without entries, for whose place the caller holds room.
    pub(super) fn seal_block(&self, state: &mut LaneState) -> Option<SealedBlock> {
        if state.failed.is_some() || state.in_flight.len() >= self.blocks_in_flight_max {
            return None;
        }
        let spare = state.spare.pop();
        // At most one buffer more than blocks may be in flight: each of those has one, or has given it back.
        let spare = spare.unwrap_or_else(|| Buffer::zeroed(self.buffer_size));
        let mut building = std::mem::replace(&mut state.building, BlockBuilder::new(spare));
        self.buffered.store(0, Ordering::SeqCst);
        state.flush_asked = false;
        let block = state.blocks_hardened + state.in_flight.len() as u64;
        let header = Header {
            version: FORMAT_VERSION,
            database: self.start.database,
            epoch: self.start.epoch,
            lane: self.start.lane,
            block: BlockNo(block),
            durable_through: state.blocks_hardened,
            payload_len: building.payload_len() as u32,
            entries: building.entries,
            csn_lowest: building.csn_lowest,
            csn_highest: building.csn_highest,
            payload_crc: building.payload_crc(),
            previous_header_crc: state.previous_header_crc,
            horizon: self.horizon(),
        };
        let (header, crc) = header.encode();
        state.previous_header_crc = crc;
        building.close(&header);
        // Claimed under the lock: whoever asks for room next must not count on the place of these bytes.
        let len = self.padded(building.payload_len());
        let own = state.claim_own();
        let at = self.appends.place(self.start.lane, len);
        if let Ok(at) = &at {
            // Elsewhere the lane has failed, and with it all that comes.
            let highest = building.csn_highest;
            state.sealed.add(*at, len, highest, &mut building.sides);
        }
        state.in_flight.push_back(InFlightBlock {
            completed: false,
            inline: false,
            own,
            stolen: std::mem::take(&mut building.stolen),
            sealed_at: self.clock.monotonic(),
            len,
            payload_len: building.payload_len(),
            entries: building.entries,
        });
        Some(SealedBlock {
            filled: building.len(),
            buffer: building.into_buffer(),
            len,
            at,
            block,
            end: state.pushed,
            waiters: std::mem::take(&mut state.waiters),
        })
    }

    /// Writes the padding, and wakes who waits for room, both without the lock; returns the length to write.
    fn finish(&self, sealed: &mut SealedBlock) -> usize {
        // The buffer's capacity is a multiple of the alignment, so the padded length fits a usize.
        let len = sealed.len as usize;
        sealed.buffer.as_mut_slice()[sealed.filled..len].fill(0);
        self.wake(std::mem::take(&mut sealed.waiters));
        point();
        len
    }

    pub(super) fn write_inline(
        self: &Arc<Self>,
        inline: &dyn InlineAppends,
        mut sealed: SealedBlock,
    ) -> FlushOutcome {
        // The block would stay in flight for ever, and everybody who waits for it with it.
        let _watch = abort_on_panic("writing the log");
        let len = self.finish(&mut sealed);
        let written = sealed.at.and_then(|at| {
            inline.append_inline(self.start.lane, at, &sealed.buffer, len)?;
            self.publish(at, &sealed.buffer, sealed.filled);
            Ok(())
        });
        if !self.complete(sealed.block, sealed.buffer, true, written) {
            return FlushOutcome::Failed;
        }
        if self.hardened.load(Ordering::SeqCst) >= sealed.end {
            FlushOutcome::Durable
        } else {
            // Earlier blocks, or earlier bytes in another lane's block, are still on their way.
            FlushOutcome::Started
        }
    }

    pub(super) fn write_handed_off(self: &Arc<Self>, mut sealed: SealedBlock) {
        let len = self.finish(&mut sealed);
        match sealed.at {
            Ok(at) => {
                let shared = Arc::clone(self);
                let (block, filled) = (sealed.block, sealed.filled);
                let completion = move |buffer: Buffer, result: Result<(), HomeError>| {
                    if result.is_ok() {
                        shared.publish(at, &buffer, filled);
                    }
                    shared.complete(block, buffer, false, result);
                };
                self.appends.append(
                    self.start.lane,
                    at,
                    sealed.buffer,
                    len,
                    Box::new(completion),
                );
            }
            Err(error) => {
                self.fail(error);
            }
        }
    }

    /// A block is written: whoever follows by a stream gets it, before anybody hears that it is durable.
    fn publish(&self, at: Position, block: &Buffer, filled: usize) {
        if let Some(feed) = self.feed.get() {
            feed.publish(self.start.lane, at, &block.as_slice()[..filled]);
        }
    }

    /// The home has answered for a block. False if the lane has failed.
    fn complete(
        self: &Arc<Self>,
        block: u64,
        buffer: Buffer,
        inline: bool,
        result: Result<(), HomeError>,
    ) -> bool {
        if let Err(error) = result {
            // The block stays in flight for good: what it holds never becomes durable.
            self.fail(error);
            return false;
        }
        point();
        let now = self.clock.monotonic();
        let mut stolen: SmallVec<[(StolenClaim, Instant); 4]> = SmallVec::new();
        let (hardened, next, waiters) = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            if state.failed.is_some() {
                return false;
            }
            state.spare.push(buffer);
            let index = usize::try_from(block - state.blocks_hardened).unwrap_or(usize::MAX);
            let of_block = &mut state.in_flight[index];
            assert!(!of_block.completed, "a block completes once");
            of_block.completed = true;
            of_block.inline = inline;
            let took = now.as_nanos().saturating_sub(of_block.sealed_at.as_nanos());
            state.appends[append_class(of_block.len)].add(took);
            let is_void = of_block.is_void();
            // Later ones that have completed wait for the first that has not (T2).
            while state.in_flight.front().is_some_and(|block| block.completed) {
                let Some(block) = state.in_flight.pop_front() else {
                    break;
                };
                state.blocks_hardened += 1;
                state.count(&block);
                if let Some(own) = block.own {
                    let parked = state.claims.written(own, block.sealed_at);
                    state.counters.parked += u64::from(parked);
                }
                let sealed_at = block.sealed_at;
                stolen.extend(block.stolen.into_iter().map(|stolen| (stolen, sealed_at)));
            }
            let hardened = Hardened {
                void: is_void,
                ..self.harden(state, now)
            };
            let next = if state.flush_asked {
                self.seal(state)
            } else {
                None
            };
            (hardened, next, std::mem::take(&mut state.waiters))
        };
        // All cursors move before anyone hears of it: a listener may take its time.
        let mut robbed: SmallVec<[_; 4]> = SmallVec::new();
        for (stolen, sealed_at) in stolen {
            point();
            if let Some(owner) = stolen.from.upgrade()
                && let Some((hardened, waiters)) =
                    owner.stolen_written(stolen.claim, sealed_at, now)
            {
                robbed.push((owner, hardened, waiters));
            }
        }
        // The next write starts before anyone hears of this one: the disk should not idle meanwhile.
        if let Some(sealed) = next {
            self.write_handed_off(sealed);
        }
        self.announce(hardened, waiters);
        for (owner, hardened, waiters) in robbed {
            owner.announce(hardened, waiters);
        }
        true
    }

    /// Bytes of this lane that lay in a block of another one are durable. Returns what is to be announced.
    fn stolen_written(
        &self,
        claim: u64,
        sealed_at: Instant,
        now: Instant,
    ) -> Option<(Hardened, Vec<Waker>)> {
        let mut state = self.state.lock();
        if state.failed.is_some() {
            return None;
        }
        let parked = state.claims.written(claim, sealed_at);
        state.counters.parked += u64::from(parked);
        let hardened = self.harden(&mut state, now);
        Some((hardened, std::mem::take(&mut state.waiters)))
    }

    /// Moves the hardened cursor over the claims that allow it.
    fn harden(&self, state: &mut LaneState, now: Instant) -> Hardened {
        let mut hardened = Hardened::default();
        while let Some(written) = state.claims.next_hardened() {
            let claim = written.claim;
            hardened.moved = true;
            hardened.freed_bytes += claim.end - claim.start;
            self.hardened.store(claim.end, Ordering::SeqCst);
            self.hardened_gsn.store(claim.gsn_end, Ordering::SeqCst);
            state.flushed.add(
                claim.start,
                FlushTimes {
                    end: Cursor(claim.end),
                    sealed_at: written.sealed_at,
                    hardened_at: now,
                },
            );
        }
        if hardened.moved {
            let lowest = state.csn_lowest();
            self.first_not_durable.store(lowest.get(), Ordering::SeqCst);
            hardened.freed_bytes += std::mem::take(&mut state.taken_in_excess_bytes);
            if let Some(allocation_limit) = &self.allocation_limit {
                let kept = allocation_limit.keeps(hardened.freed_bytes);
                hardened.freed_bytes -= kept;
                state.taken_in_excess_bytes = kept;
            }
        }
        hardened
    }

    fn announce(&self, hardened: Hardened, waiters: Vec<Waker>) {
        if hardened.moved {
            self.give_back(hardened.freed_bytes);
        }
        if hardened.moved || hardened.void {
            self.notify(LaneEvent::Durable);
        }
        self.wake(waiters);
    }

    /// The home has failed: this lane ends, and with it every lane whose bytes it holds, whose bytes those hold, and
    /// so on.
    pub(super) fn fail(&self, error: HomeError) -> Arc<LaneError> {
        let error = Arc::new(LaneError {
            lane: self.start.lane,
            source: error,
        });
        let mut robbed = match self.end(&error) {
            Ok(robbed) => robbed,
            Err(first) => return first,
        };
        while let Some(stolen) = robbed.pop() {
            point();
            if let Some(owner) = stolen.from.upgrade() {
                // One that has ended before has told whom it robbed.
                robbed.extend(owner.end(&error).into_iter().flatten());
            }
        }
        error
    }

    /// Ends this lane; returns what it holds of others, or the error that has ended it before.
    fn end(&self, error: &Arc<LaneError>) -> Result<Vec<StolenClaim>, Arc<LaneError>> {
        let (robbed, waiters) = {
            let mut state = self.state.lock();
            if let Some(first) = &state.failed {
                return Err(Arc::clone(first));
            }
            state.failed = Some(Arc::clone(error));
            let mut robbed: Vec<StolenClaim> = state.building.stolen.drain(..).collect();
            for block in &mut state.in_flight {
                robbed.extend(block.stolen.drain(..));
            }
            (robbed, std::mem::take(&mut state.waiters))
        };
        self.notify(LaneEvent::Failed(Arc::clone(error)));
        self.wake(waiters);
        Ok(robbed)
    }
}

impl LaneState {
    fn count(&mut self, block: &InFlightBlock) {
        let counters = &mut self.counters;
        counters.blocks += 1;
        counters.bytes += block.len;
        counters.payload_bytes += block.payload_len as u64;
        counters.entries += u64::from(block.entries);
        if block.inline {
            counters.flushes_inline += 1;
        } else {
            counters.flushes_handed_off += 1;
        }
    }
}
