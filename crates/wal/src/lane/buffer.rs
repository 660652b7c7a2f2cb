//! A block under construction: room for the header, then entries one after the other.

use crate::block::HEADER_LEN;
use logstead_home::Buffer;
use logstead_types::Csn;

/// A block under construction. Invariant: `HEADER_LEN <= len <= buffer.capacity()`; the CSN bounds hold once there is an
/// entry.
pub(super) struct Building {
    buffer: Buffer,
    len: usize,
    pub(super) entries: u32,
    pub(super) csn_lowest: Csn,
    pub(super) csn_highest: Csn,
}

impl Building {
    pub(super) fn new(buffer: Buffer) -> Building {
        Building {
            buffer,
            len: HEADER_LEN,
            entries: 0,
            csn_lowest: Csn(u64::MAX),
            csn_highest: Csn::ZERO,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(super) fn payload_len(&self) -> usize {
        self.len - HEADER_LEN
    }

    pub(super) fn payload(&self) -> &[u8] {
        &self.buffer.as_slice()[HEADER_LEN..self.len]
    }

    /// The caller holds room for it.
    pub(super) fn append(&mut self, csn: Csn, head: &[u8], records: &[u8]) {
        let bytes = self.buffer.as_mut_slice();
        bytes[self.len..self.len + head.len()].copy_from_slice(head);
        self.len += head.len();
        bytes[self.len..self.len + records.len()].copy_from_slice(records);
        self.len += records.len();
        self.entries += 1;
        self.csn_lowest = self.csn_lowest.min(csn);
        self.csn_highest = self.csn_highest.max(csn);
    }

    /// Puts the header in place and zeros behind the entries.
    pub(super) fn close(&mut self, header: &[u8; HEADER_LEN], padded_len: usize) {
        let bytes = self.buffer.as_mut_slice();
        bytes[..HEADER_LEN].copy_from_slice(header);
        bytes[self.len..padded_len].fill(0);
    }

    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    pub(super) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}
