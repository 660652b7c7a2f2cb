//! The rows of one chunk into pages: cuts what is too large for one page.
//!
//! Invariant: the pages of a whole chunk begin with a base page, those of a delta have none; the pieces of a row follow
//! one another in the order of their offsets.

use crate::error::CheckpointError;
use crate::frame::{Encoder, FrameKind};
use crate::page_ref::{PageKey, PageRef};
use crate::rows::{CHANGE_BYTES_MAX, ROW_BYTES_MAX, RowFragment, RowsPageBuilder, encode_piece};
use crate::writer::ObjectWriter;
use logstead_types::Csn;

/// A page ends where its rows pass this, and a larger row is cut in pieces of it.
pub const PAGE_BYTES: usize = 4 << 20;

/// A change that is longer than so many pages is cut in pieces, which older servers do not know.
const CHANGE_PAGES: usize = 4;

/// Is a chunk written whole, or what changed of it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// All its rows.
    Whole,
    /// Rows and emptied slots that changed.
    Delta,
}

/// Writes chunks, one after the other; buffers are used again.
pub struct ChunkWriter {
    key: PageKey,
    extent: ImageKind,
    csn: Csn,
    /// What the next page of rows is.
    kind: FrameKind,
    page: RowsPageBuilder,
    page_bytes: usize,
    payload: Vec<u8>,
    encoder: Encoder,
    pages: Vec<PageRef>,
}

impl Default for ChunkWriter {
    fn default() -> ChunkWriter {
        ChunkWriter::new()
    }
}

impl ChunkWriter {
    /// A writer. Begin a chunk before anything else.
    pub fn new() -> ChunkWriter {
        ChunkWriter {
            key: PageKey::Rows {
                table: Default::default(),
                chunk: 0,
            },
            extent: ImageKind::Whole,
            csn: Csn::ZERO,
            kind: FrameKind::RowsBase,
            page: RowsPageBuilder::new(),
            page_bytes: PAGE_BYTES,
            payload: Vec::new(),
            encoder: Encoder::new(),
            pages: Vec::new(),
        }
    }

    /// The same with pages of another length.
    pub fn with_page_bytes(mut self, bytes: usize) -> ChunkWriter {
        self.page_bytes = bytes.clamp(1, PAGE_BYTES);
        self
    }

    /// Begins a chunk, as of all transactions below `csn`. Whatever was begun and not finished is forgotten.
    pub fn begin(&mut self, key: PageKey, extent: ImageKind, csn: Csn) {
        self.key = key;
        self.extent = extent;
        self.csn = csn;
        self.kind = match extent {
            ImageKind::Whole => FrameKind::RowsBase,
            ImageKind::Delta => FrameKind::RowsDelta,
        };
        self.page.begin(csn);
        self.pages.clear();
    }

    fn end_page(&mut self, writer: &mut ObjectWriter<'_>) -> Result<(), CheckpointError> {
        let frame = self.page.finish(self.kind, &self.key, &mut self.encoder)?;
        self.pages.push(writer.put(frame)?);
        self.kind = FrameKind::RowsDelta;
        self.page.begin(self.csn);
        Ok(())
    }

    /// A row. Slots grow from call to call; the row's CSN is below the chunk's.
    pub fn row(
        &mut self,
        slot: u16,
        csn: Csn,
        bytes: &[u8],
        writer: &mut ObjectWriter<'_>,
    ) -> Result<(), CheckpointError> {
        if bytes.len() > self.page_bytes {
            return self.large_row(slot, csn, bytes, writer);
        }
        self.page.row(slot, csn, bytes)?;
        if self.page.len_bytes() > self.page_bytes {
            self.end_page(writer)?;
        }
        Ok(())
    }

    fn large_row(
        &mut self,
        slot: u16,
        csn: Csn,
        bytes: &[u8],
        writer: &mut ObjectWriter<'_>,
    ) -> Result<(), CheckpointError> {
        if bytes.len() > ROW_BYTES_MAX {
            return Err(CheckpointError::Misuse("a row is too large"));
        }
        if self.kind == FrameKind::RowsBase {
            self.end_page(writer)?;
        }
        self.pieces(FrameKind::RowPiece, slot, csn, bytes, writer)
    }

    fn pieces(
        &mut self,
        kind: FrameKind,
        slot: u16,
        csn: Csn,
        bytes: &[u8],
        writer: &mut ObjectWriter<'_>,
    ) -> Result<(), CheckpointError> {
        let mut offset = 0;
        for bytes_of_piece in bytes.chunks(self.page_bytes) {
            let piece = RowFragment {
                slot,
                csn,
                total: bytes.len(),
                offset,
                bytes: bytes_of_piece,
            };
            let (key, csn) = (&self.key, self.csn);
            let (payload, encoder) = (&mut self.payload, &mut self.encoder);
            let frame = encode_piece(kind, key, csn, &piece, payload, encoder)?;
            self.pages.push(writer.put(frame)?);
            offset += bytes_of_piece.len();
        }
        Ok(())
    }

    /// A slot that is empty and was not when the chunk was written before. Deltas only; in any order.
    pub fn delete(&mut self, slot: u16) -> Result<(), CheckpointError> {
        if self.extent == ImageKind::Whole {
            return Err(CheckpointError::Misuse("a base page empties no slots"));
        }
        Ok(self.page.delete(slot)?)
    }

    /// What was changed of a row that older pages have. Behind all rows and emptied slots; slots grow from call to
    /// call. Deltas only.
    pub fn change(
        &mut self,
        slot: u16,
        csn: Csn,
        change: &[u8],
        writer: &mut ObjectWriter<'_>,
    ) -> Result<(), CheckpointError> {
        if self.extent == ImageKind::Whole {
            return Err(CheckpointError::Misuse("a base page changes no rows"));
        }
        if self.kind != FrameKind::RowChanges {
            if !self.page.is_empty() {
                self.end_page(writer)?;
            }
            self.kind = FrameKind::RowChanges;
        }
        if change.len() > CHANGE_PAGES * self.page_bytes {
            if change.len() > CHANGE_BYTES_MAX {
                return Err(CheckpointError::Misuse("a change is too large"));
            }
            return self.pieces(FrameKind::ChangePiece, slot, csn, change, writer);
        }
        self.page.row(slot, csn, change)?;
        if self.page.len_bytes() > self.page_bytes {
            self.end_page(writer)?;
            self.kind = FrameKind::RowChanges;
        }
        Ok(())
    }

    /// Bytes of the chunk so far, before compression, but for pages that are already cut off.
    pub fn len_bytes(&self) -> usize {
        self.page.len_bytes()
    }

    /// Ends the chunk. Its pages, oldest first: for [`PageChain::whole`](crate::PageChain::whole), or for
    /// [`PageChain::push`](crate::PageChain::push). A delta in which nothing was put has none.
    pub fn finish(&mut self, writer: &mut ObjectWriter<'_>) -> Result<&[PageRef], CheckpointError> {
        if self.kind == FrameKind::RowsBase || !self.page.is_empty() {
            self.end_page(writer)?;
        }
        Ok(&self.pages)
    }
}
