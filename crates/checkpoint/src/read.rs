//! Reading pages back: one frame by its reference, and whole chunks with as few requests as their places allow.
//!
//! Invariants:
//! - What is handed out was checked: checksums of frame and reference, key, every length. What is not right is an error
//!   that names object, offset and page.
//! - A reader's memory is bounded: windows of at most [`WINDOW_BYTES_MAX`], a page, a row.

mod windows;

use crate::error::{CheckpointError, damaged, unread};
use crate::frame;
use crate::index_tile::{Leaf, TileAssembly};
use crate::page_ref::{PageChain, PageKey, PageRef};
use crate::rows::{CHUNK_SLOTS, ChunkSize, DecodedPage, SlotState, Slots, read_rows_of};
use crate::writer::ObjectWriter;
use logstead_home::{ObjectId, ObjectReader};
use logstead_types::Csn;
use logstead_wal::FormatError;
use std::collections::BTreeSet;
use std::sync::Arc;
pub(crate) use windows::ReadWindows;
use windows::WINDOW_BYTES_MAX;

/// A reader of single pages keeps buffers of so much between two chunks.
const BUFFER_BYTES_MAX: usize = 512 << 10;

fn other_checksum() -> FormatError {
    FormatError::new("a frame with another checksum than the reference to it", 36)
}

/// Looks for a frame that is damaged, or was cut, in each copy that the home has of its object. True: it is in `into`,
/// as it was written.
fn read_other_copy(objects: &dyn ObjectReader, at: &PageRef, into: &mut Vec<u8>) -> bool {
    into.resize(at.len as usize, 0);
    let Some(copies) = objects.object_copies() else {
        return false;
    };
    (0..copies.object_copy_count()).any(|copy| {
        let got = copies.read_object_copy(copy, at.object, u64::from(at.offset), into);
        // An error is no better than the damage that is known: that is told if no other copy has the frame.
        got.is_ok_and(|got| got == into.len()) && frame::is_intact(into, at.crc)
    })
}

/// Is it worth while to find damage early, because there may be better bytes: in another copy, or past a cache?
fn has_copies(objects: &dyn ObjectReader) -> bool {
    objects.object_copies().is_some()
}

/// What shows before a frame is decoded; all that can be seen of it, where there are other copies.
fn damage_of(objects: &dyn ObjectReader, bytes: &[u8], at: &PageRef) -> Option<FormatError> {
    if frame::checksum(bytes) != at.crc {
        Some(other_checksum())
    } else if has_copies(objects) && !frame::is_intact(bytes, at.crc) {
        Some(FormatError::new("wrong checksum of a frame", 0))
    } else {
        None
    }
}

/// Reads the bytes of a frame into `into`, whole, and compares its checksum with the reference's; where the home has
/// several copies, any that is good. The frame itself is not checked yet.
pub(crate) fn read_frame(
    objects: &dyn ObjectReader,
    at: &PageRef,
    what: impl Fn() -> String,
    into: &mut Vec<u8>,
) -> Result<(), CheckpointError> {
    into.clear();
    into.resize(at.len as usize, 0);
    let got = objects.read_object(at.object, u64::from(at.offset), into);
    let got = got.map_err(|error| unread(&what, at, error))?;
    let why = if got < into.len() {
        Some(FormatError::new("the object ends too early", got))
    } else {
        damage_of(objects, into, at)
    };
    match why {
        Some(why) if !read_other_copy(objects, at, into) => Err(damaged(what(), at, why)),
        _ => Ok(()),
    }
}

/// The chain of a chunk whose pages in the objects of `leave` are stored anew, byte by byte, so that these objects can
/// go.
pub fn move_pages(
    chain: &PageChain,
    leave: &BTreeSet<ObjectId>,
    writer: &mut ObjectWriter<'_>,
) -> Result<PageChain, CheckpointError> {
    let objects = Arc::clone(writer.objects());
    let mut frame = Vec::new();
    chain.map(|at| {
        if !leave.contains(&at.object) {
            return Ok(*at);
        }
        let what = || "a page that is moved".to_owned();
        read_frame(&*objects, at, what, &mut frame)?;
        if !frame::is_intact(&frame, at.crc) {
            return Err(damaged(what(), at, other_checksum()));
        }
        writer.put(&frame)
    })
}

/// How much a reader has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Requests to the home.
    pub requests: u64,
    /// Bytes they brought.
    pub bytes: u64,
    /// Pages handed out.
    pub pages: u64,
}

/// Puts a change over a row, and what comes of it in place of what is in the buffer; or says why it does not fit. Never
/// trusts either.
pub type RowMergeFn = fn(row: &[u8], change: &[u8], into: &mut Vec<u8>) -> Result<(), &'static str>;

/// Which pages of a chain have a row, and what was changed of it: the oldest and the newest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageSpan {
    oldest: u32,
    newest: u32,
}

const NO_SPANS: [PageSpan; CHUNK_SLOTS as usize] = [PageSpan {
    oldest: 0,
    newest: 0,
}; CHUNK_SLOTS as usize];

/// Where the rows of a chunk lie that was read: who wants some of them later need not read the others' pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPageSpans([PageSpan; CHUNK_SLOTS as usize]);

/// A change of a row that is in an older page.
struct Change {
    slot: u16,
    csn: Csn,
    bytes: Vec<u8>,
    /// The newest page that it is in.
    page: u32,
}

/// Reads chunks. One for each thread: buffers are used again.
pub struct PageReader {
    objects: Arc<dyn ObjectReader>,
    windows: ReadWindows,
    /// Where pages are unpacked.
    unpacked: Vec<u8>,
    /// A row that lies in pieces: filled from its end.
    large: Vec<u8>,
    reads: ReadStats,
    /// The slots of the chunk that was read last of which is known what they are.
    known: Slots,
    /// Of that chunk's rows.
    spans: [PageSpan; CHUNK_SLOTS as usize],
    /// And how far its pages were read.
    newer: NewerPages,
    merge: Option<RowMergeFn>,
}

/// The pages of a chain, from the newest back to the first that could not be read, of a chunk of which some could not.
/// Numbered from the oldest, the base, which is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewerPages {
    /// They are those from this one on. No row, or change of one, is in it or in newer ones in part only.
    pub first: usize,
    /// Those of them that say what was changed of rows that are in older pages.
    pub of_changes: Vec<usize>,
}

impl PageReader {
    /// A reader of a home's objects.
    pub fn new(objects: Arc<dyn ObjectReader>) -> PageReader {
        PageReader {
            objects,
            windows: ReadWindows::new(WINDOW_BYTES_MAX),
            unpacked: Vec::new(),
            large: Vec::new(),
            reads: ReadStats::default(),
            known: Slots::default(),
            spans: NO_SPANS,
            newer: NewerPages::default(),
            merge: None,
        }
    }

    /// One that can read chunks with changes that were written where older pages were damaged. Others can do so as long
    /// as they want none of these rows.
    #[must_use]
    pub fn merging(mut self, merge: RowMergeFn) -> PageReader {
        self.merge = Some(merge);
        self
    }

    /// After a chunk was read, or only a part of it because of an error: the slots of which is known what they are, a
    /// bit each. Those of them that were not visited are empty.
    pub fn known(&self) -> u64 {
        self.known.first_word()
    }

    /// Where the rows lie of the chunk that was read last; after an error those in slots that are
    /// [known](PageReader::known).
    pub fn spans(&self) -> Box<RowPageSpans> {
        Box::new(RowPageSpans(self.spans))
    }

    /// Which pages of that chunk were read.
    pub fn newer_pages(&self) -> NewerPages {
        self.newer.clone()
    }

    /// For pages here and there: exactly what is asked for is read, each time.
    #[must_use]
    pub fn of_single_pages(mut self) -> PageReader {
        self.windows.single = true;
        self
    }

    /// Lets go of what a large page or row has taken, so that a reader that is kept keeps little.
    pub fn shrink_buffers(&mut self) {
        let kept = &mut self.windows.kept;
        kept.retain(|window| window.bytes.capacity() <= BUFFER_BYTES_MAX);
        for buffer in [&mut self.unpacked, &mut self.large] {
            if buffer.capacity() > BUFFER_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }

    /// Reads pages that will be asked for next, several at once where they lie together, `bytes_max` in all at most.
    /// They are used until [`PageReader::discard_read_ahead`].
    pub fn read_ahead(&mut self, pages: Vec<PageRef>, bytes_max: usize) {
        let PageReader {
            objects,
            windows,
            reads,
            ..
        } = self;
        windows.read_ahead(&**objects, pages, bytes_max, reads);
    }

    /// Lets go of what was read ahead.
    pub fn discard_read_ahead(&mut self) {
        self.windows.ahead.clear();
    }

    /// What it has read so far.
    pub fn reads(&self) -> ReadStats {
        self.reads
    }

    /// The bytes of a page of `key`, of which the checksum is the reference's, and where to unpack them.
    fn frame(
        &mut self,
        key: &PageKey,
        at: &PageRef,
    ) -> Result<(&[u8], &mut Vec<u8>), CheckpointError> {
        let what = || format!("a page of {key}");
        if at.is_special() {
            let hidden = "where it lies is in a node of the page directory that cannot be read";
            return Err(damaged(what(), at, FormatError::new(hidden, 0)));
        }
        let loaded = self.windows.load(&*self.objects, at);
        if loaded.map_err(|error| unread(what, at, error))? {
            self.reads.requests += 1;
            let newest = self.windows.kept.first();
            self.reads.bytes += newest.map_or(0, |window| window.bytes.len() as u64);
        }
        let why = match self.windows.front(at) {
            None => Some(FormatError::new("the object ends too early", 0)),
            Some(bytes) => damage_of(&*self.objects, bytes, at),
        };
        if let Some(why) = why {
            let mut bytes = Vec::new();
            if !read_other_copy(&*self.objects, at, &mut bytes) {
                return Err(damaged(what(), at, why));
            }
            // Of this frame alone: what lies around it may be damaged too.
            self.windows.put(at, bytes);
        }
        let Some(bytes) = self.windows.front(at) else {
            let short = FormatError::new("the object ends too early", 0);
            return Err(damaged(what(), at, short));
        };
        self.reads.pages += 1;
        Ok((bytes, &mut self.unpacked))
    }

    /// A page of rows, checked.
    fn page(
        &mut self,
        size: ChunkSize,
        key: &PageKey,
        at: &PageRef,
        is_base: bool,
    ) -> Result<DecodedPage<'_>, CheckpointError> {
        let (bytes, unpacked) = self.frame(key, at)?;
        read_rows_of(size, bytes, key, is_base, unpacked)
            .map_err(|why| damaged(format!("a page of {key}"), at, why))
    }

    /// Reads a tile of an index. After an error nothing in `into` is of any use.
    pub fn leaf(
        &mut self,
        key: &PageKey,
        chain: &PageChain,
        into: &mut Leaf,
    ) -> Result<(), CheckpointError> {
        let PageKey::Leaf { low, .. } = key else {
            return Err(CheckpointError::Misuse("a chunk that is read as a tile"));
        };
        let bad = |at: &PageRef, why| damaged(format!("a page of {key}"), at, why);
        let mut assembly = TileAssembly::new(low, into);
        for at in chain.pages() {
            let (bytes, unpacked) = self.frame(key, at)?;
            assembly
                .push(bytes, key, unpacked)
                .map_err(|why| bad(at, why))?;
        }
        assembly.finish().map_err(|why| bad(&chain.base(), why))
    }

    /// Visits the rows of a chunk, each slot at most once, in no order. After an error what was visited counts only if
    /// the slot is [known](PageReader::known).
    pub fn chunk(
        &mut self,
        key: &PageKey,
        chain: &PageChain,
        visit: impl FnMut(u16, Csn, &[u8]),
    ) -> Result<(), CheckpointError> {
        self.chunk_of(ChunkSize::Of64, key, chain, visit)
    }

    /// The same of a record whose chunks have another size: `key` is the key that the chunk has there.
    pub fn chunk_of(
        &mut self,
        size: ChunkSize,
        key: &PageKey,
        chain: &PageChain,
        mut visit: impl FnMut(u16, Csn, &[u8]),
    ) -> Result<(), CheckpointError> {
        let all = |_| true;
        self.rows_of(size, key, chain, all, |slot, csn, row| {
            if let Some(row) = row {
                visit(slot, csn, row);
            }
        })
    }

    /// Visits the rows of a chunk like [`PageReader::chunk`], with the bytes of those alone that are wanted: nothing is
    /// put together for the others.
    pub fn rows(
        &mut self,
        key: &PageKey,
        chain: &PageChain,
        wanted: impl Fn(u16) -> bool,
        visit: impl FnMut(u16, Csn, Option<&[u8]>),
    ) -> Result<(), CheckpointError> {
        self.rows_of(ChunkSize::Of64, key, chain, wanted, visit)
    }

    /// Visits one row of a chunk, if it has it, and reads the pages alone that have it: `spans` are those of the same
    /// chain.
    pub fn row(
        &mut self,
        key: &PageKey,
        chain: &PageChain,
        spans: &RowPageSpans,
        slot: u16,
        mut visit: impl FnMut(Csn, &[u8]),
    ) -> Result<(), CheckpointError> {
        let span = spans.0.get(usize::from(slot)).copied().unwrap_or_default();
        let is_it = |other| other == slot;
        self.rows_within(
            ChunkSize::Of64,
            key,
            chain,
            Some(span),
            is_it,
            |other, csn, row| {
                if let Some(row) = row.filter(|_| other == slot) {
                    visit(csn, row);
                }
            },
        )
    }

    pub(crate) fn rows_of(
        &mut self,
        size: ChunkSize,
        key: &PageKey,
        chain: &PageChain,
        wanted: impl Fn(u16) -> bool,
        visit: impl FnMut(u16, Csn, Option<&[u8]>),
    ) -> Result<(), CheckpointError> {
        self.rows_within(size, key, chain, None, wanted, visit)
    }

    /// The same of some pages alone: what others say of rows that are not wanted is not known then.
    fn rows_within(
        &mut self,
        size: ChunkSize,
        key: &PageKey,
        chain: &PageChain,
        within: Option<PageSpan>,
        wanted: impl Fn(u16) -> bool,
        visit: impl FnMut(u16, Csn, Option<&[u8]>),
    ) -> Result<(), CheckpointError> {
        let mut spans = NO_SPANS;
        let read = self.rows_and_spans(size, key, chain, within, wanted, visit, &mut spans);
        self.spans = spans;
        read
    }

    /// The same, with where they lie.
    #[allow(clippy::too_many_arguments, reason = "what is read, and for whom")]
    fn rows_and_spans(
        &mut self,
        size: ChunkSize,
        key: &PageKey,
        chain: &PageChain,
        within: Option<PageSpan>,
        wanted: impl Fn(u16) -> bool,
        mut visit: impl FnMut(u16, Csn, Option<&[u8]>),
        spans: &mut [PageSpan; CHUNK_SLOTS as usize],
    ) -> Result<(), CheckpointError> {
        self.known = Slots::default();
        // Of rows that are in older pages, the newest first.
        let mut changes: Vec<Change> = Vec::new();
        let mut merged = [Vec::new(), Vec::new()];
        let merge = self.merge;
        // A row that is met for the first time, in pages that begin at the one that has it, with what has been changed
        // since.
        let mut met = |slot, csn, row: &[u8], changes: &[Change], mut span: PageSpan| {
            let newest = changes.iter().find(|change| change.slot == slot);
            span.newest = newest.map_or(span.newest, |change| change.page);
            if let Some(known) = spans.get_mut(usize::from(slot)) {
                *known = span;
            }
            if !wanted(slot) {
                visit(slot, csn, None);
                return Ok(());
            }
            let mut since = changes.iter().rev().filter(|change| change.slot == slot);
            let Some(first) = since.next() else {
                visit(slot, csn, Some(row));
                return Ok(());
            };
            let merge = merge.ok_or("a change of a row, for who cannot put it over the row")?;
            let [new, old] = &mut merged;
            merge(row, &first.bytes, new)?;
            let mut csn = first.csn;
            for change in since {
                std::mem::swap(new, old);
                merge(old, &change.bytes, new)?;
                csn = change.csn;
            }
            visit(slot, csn, Some(new));
            Ok(())
        };
        // The row, or change, in pieces that is being put together: its slot and CSN, and what is missing at its front.
        let mut open: Option<(u16, Csn, usize)> = None;
        let mut is_change = false;
        // The newest page of these pieces.
        let mut newest = 0;
        let mut page_at = chain.pages().count() as u32;
        self.newer.first = page_at as usize;
        self.newer.of_changes.clear();
        for at in chain.pages().rev() {
            page_at -= 1;
            if within.is_some_and(|span| page_at < span.oldest || page_at > span.newest) {
                continue;
            }
            let is_base = *at == chain.base();
            let mut large = std::mem::take(&mut self.large);
            let mut known = std::mem::take(&mut self.known);
            let mut unfit: Result<(), &'static str> = Ok(());
            let page = match self.page(size, key, at, is_base) {
                Ok(page) => page,
                Err(damage) => {
                    self.known = known;
                    return Err(damage);
                }
            };
            let is_of_changes =
                matches!(page, DecodedPage::Changes(_) | DecodedPage::ChangePiece(_));
            let piece = match page {
                DecodedPage::Rows(rows) => {
                    if open.is_none() {
                        rows.visit(|slot, state| {
                            if unfit.is_err() || !known.insert(slot) {
                                return;
                            }
                            unfit = match state {
                                SlotState::Row { csn, bytes } => {
                                    let span = PageSpan {
                                        oldest: page_at,
                                        newest: page_at,
                                    };
                                    met(slot, csn, bytes, &changes, span)
                                }
                                SlotState::Deleted if changes.iter().any(|c| c.slot == slot) => {
                                    Err("a change of a row that is gone")
                                }
                                SlotState::Deleted => Ok(()),
                            };
                            if unfit.is_err() {
                                known.remove(slot);
                            }
                        });
                    }
                    None
                }
                DecodedPage::Changes(rows) => {
                    rows.visit(|slot, state| {
                        if let SlotState::Row { csn, bytes } = state
                            && !known.contains(slot)
                        {
                            // Of what is not wanted it is known that it has changed, no more.
                            let bytes = if wanted(slot) { bytes } else { &[] };
                            changes.push(Change {
                                slot,
                                csn,
                                bytes: bytes.to_vec(),
                                page: page_at,
                            });
                        }
                    });
                    None
                }
                DecodedPage::RowFragment(piece) => Some((piece, false)),
                DecodedPage::ChangePiece(piece) => Some((piece, true)),
            };
            // Told below, when what is known of newer pages has been put back.
            const MISSING: Result<(), &str> = Err("a row of which a piece is missing");
            match (piece, open) {
                (None, Some(_)) => (unfit, open) = (MISSING, None),
                (None, None) => {}
                (Some((piece, _)), None) if piece.offset + piece.bytes.len() != piece.total => {
                    unfit = MISSING;
                }
                (Some((piece, of_change)), None) => {
                    (is_change, newest) = (of_change, page_at);
                    // Grows with the pieces that there are, whatever the length says.
                    large.clear();
                    if wanted(piece.slot) {
                        large.extend(piece.bytes.iter().rev());
                    }
                    open = Some((piece.slot, piece.csn, piece.offset));
                }
                (Some((piece, of_change)), Some((slot, csn, missing))) => {
                    let end = piece.offset + piece.bytes.len();
                    let continues = (piece.slot, piece.csn, end, of_change);
                    if continues == (slot, csn, missing, is_change) {
                        if wanted(slot) {
                            large.extend(piece.bytes.iter().rev());
                        }
                        open = Some((slot, csn, piece.offset));
                    } else {
                        (unfit, open) = (MISSING, None);
                    }
                }
            }
            if let Some((slot, csn, 0)) = open {
                large.reverse();
                if is_change {
                    if !known.contains(slot) {
                        let bytes = std::mem::take(&mut large);
                        changes.push(Change {
                            slot,
                            csn,
                            bytes,
                            page: newest,
                        });
                    }
                } else if known.insert(slot) {
                    let span = PageSpan {
                        oldest: page_at,
                        newest,
                    };
                    unfit = met(slot, csn, &large, &changes, span);
                    if unfit.is_err() {
                        known.remove(slot);
                    }
                }
                open = None;
            }
            self.large = large;
            self.known = known;
            if is_of_changes {
                self.newer.of_changes.push(page_at as usize);
            }
            if open.is_none() && unfit.is_ok() {
                self.newer.first = page_at as usize;
            }
            if let Err(why) = unfit {
                return Err(damaged(
                    format!("a page of {key}"),
                    at,
                    FormatError::new(why, 0),
                ));
            }
        }
        let known = &self.known;
        let is_lost = |c: &&Change| !known.contains(c.slot) && (within.is_none() || wanted(c.slot));
        let lost = changes.iter().find(is_lost);
        match (open, lost) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(damaged(
                format!("a page of {key}"),
                &chain.base(),
                FormatError::new("a change of a row that is in no page", 0),
            )),
            (Some(_), _) => Err(damaged(
                format!("a page of {key}"),
                &chain.base(),
                FormatError::new("a row of which a piece is missing", 0),
            )),
        }
    }
}
