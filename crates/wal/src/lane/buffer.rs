//! A block under construction: room for the header, then entries one after the other.

use super::{Lane, LaneInner};
use crate::block::HEADER_LEN;
use crate::entry::SideRef;
use logstead_env::Instant;
use logstead_home::Buffer;
use logstead_types::Csn;
use smallvec::SmallVec;
use std::sync::Weak;

/// What the system gives memory by, at least.
const PAGE: usize = 4096;

/// A claim of another lane in a block of this one. Weak: lanes that hold one another's bytes must not keep each other
/// alive.
pub(super) struct StolenClaim {
    pub(super) from: Weak<LaneInner>,
    pub(super) claim: u64,
}

impl Lane {
    /// The most that its buffers take.
    pub fn buffer_bytes_max(&self) -> usize {
        let buffers = self.shared.blocks_in_flight_max.saturating_add(1);
        self.shared.buffer_size.saturating_mul(buffers)
    }
}

/// The claims of other lanes in one block.
pub(super) type StolenClaims = SmallVec<[StolenClaim; 2]>;

/// A block under construction. Invariant: `HEADER_LEN <= len <= buffer.capacity()`; what is touched is the whole pages
/// before `touched`; `payload_crc` is the checksum of
/// the entries there are; CSN bounds and `oldest_at` hold once there is an entry.
pub(super) struct BlockBuilder {
    buffer: Buffer,
    len: usize,
    /// Up to here its memory has been written to, at some time.
    touched: usize,
    payload_crc: u32,
    pub(super) entries: u32,
    pub(super) csn_lowest: Csn,
    pub(super) csn_highest: Csn,
    /// When the oldest entry was pushed.
    pub(super) oldest_at: Instant,
    pub(super) stolen: StolenClaims,
    /// Side segments of the entries.
    pub(super) sides: SmallVec<[SideRef; 1]>,
}

impl BlockBuilder {
    pub(super) fn new(buffer: Buffer) -> BlockBuilder {
        BlockBuilder {
            buffer,
            len: HEADER_LEN,
            touched: 0,
            payload_crc: 0,
            entries: 0,
            csn_lowest: Csn(u64::MAX),
            csn_highest: Csn::ZERO,
            oldest_at: Instant::default(),
            stolen: StolenClaims::new(),
            sides: SmallVec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(super) fn payload_len(&self) -> usize {
        self.len - HEADER_LEN
    }

    /// Length of header and entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn payload_crc(&self) -> u32 {
        self.payload_crc
    }

    fn copy(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.buffer.as_mut_slice()[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    fn count(&mut self, entries: u32, csn_lowest: Csn, csn_highest: Csn, since: usize) {
        let added = &self.buffer.as_slice()[since..self.len];
        self.payload_crc = crc32c::crc32c_append(self.payload_crc, added);
        self.entries += entries;
        self.csn_lowest = self.csn_lowest.min(csn_lowest);
        self.csn_highest = self.csn_highest.max(csn_highest);
    }

    /// The caller is about to append an entry of at most `bytes` bytes, for which it holds room: takes what that may
    /// need from the system now. Pages that were never written are written to, and there is room for one more side
    /// segment.
    #[inline]
    pub(super) fn prepare(&mut self, bytes: usize) {
        self.sides.reserve(1);
        let end = (self.len + bytes).min(self.buffer.capacity());
        if end > self.touched {
            self.touch(end);
        }
    }

    #[cold]
    fn touch(&mut self, end: usize) {
        let from = self.touched.max(self.len);
        let fresh = &mut self.buffer.as_mut_slice()[from..end];
        // What is here is written over before it leaves, with entries or with padding.
        fresh.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
        if let Some(last) = fresh.last_mut() {
            *last = 0;
        }
        // The rest of the last page is there, too: the buffer begins with one.
        self.touched = end.next_multiple_of(PAGE);
    }

    /// The caller holds room for it. `now` is asked only when the block begins.
    pub(super) fn append(
        &mut self,
        csn: Csn,
        head: &[u8],
        records: &[u8],
        now: impl FnOnce() -> Instant,
    ) {
        if self.is_empty() {
            self.oldest_at = now();
        }
        let since = self.len;
        self.copy(head);
        self.copy(records);
        self.count(1, csn, csn, since);
    }

    /// Moves all entries of `from`, which is empty afterwards, behind those of this block. The caller holds room for
    /// them and has seen to the claims.
    pub(super) fn take_all(&mut self, from: &mut BlockBuilder) {
        self.oldest_at = if self.is_empty() {
            from.oldest_at
        } else {
            self.oldest_at.min(from.oldest_at)
        };
        let since = self.len;
        self.copy(&from.buffer.as_slice()[HEADER_LEN..from.len]);
        self.count(from.entries, from.csn_lowest, from.csn_highest, since);
        self.stolen.append(&mut from.stolen);
        self.sides.append(&mut from.sides);
        from.len = HEADER_LEN;
        from.payload_crc = 0;
        from.entries = 0;
        from.csn_lowest = Csn(u64::MAX);
        from.csn_highest = Csn::ZERO;
    }

    /// Puts the header in place.
    pub(super) fn close(&mut self, header: &[u8; HEADER_LEN]) {
        self.buffer.as_mut_slice()[..HEADER_LEN].copy_from_slice(header);
    }

    pub(super) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}
