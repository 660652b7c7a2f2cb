//! Pages of rows: what a base or delta page, or a piece of a row, says.
//!
//! A page's payload: u16 number of rows, u16 number of emptied slots, then for each row *gap*, *distance*, *length* and
//! the row's bytes, then a *gap* for each emptied slot. All four are varints. A gap is the number of slots passed over
//! since the row before (or the emptied slot before); a distance is the page's CSN minus the row's. The rows of a page
//! are in the order of their slots, each is there at most once, and none is emptied as well. A base page empties
//! nothing.
//!
//! A page of changes is like one of rows, with what was changed of a row in its place: what the row is, is found in
//! older pages. It empties nothing.
//!
//! A piece's payload, of a row or of a change: slot, distance, total length of the row and offset of the piece in it,
//! all varints, then the bytes.
//!
//! Invariant: a page is parsed to its end before anything of it is handed out.

use crate::frame::{self, FrameError, FrameKind};
use crate::page_ref::PageKey;
use logstead_types::Csn;
use logstead_wal::FormatError;
use logstead_wal::varint::{self, Reader};

/// Slots of a chunk: what is read for a row that is not in memory, and rewritten when many of its rows have changed. A
/// set of them is one word.
pub const CHUNK_SLOTS: u16 = 64;
/// Slots of a chunk in records of formats 1 and 2.
const OLD_CHUNK_SLOTS: u16 = 1024;
/// The largest row that can be stored.
pub const ROW_BYTES_MAX: usize = 1 << 28;
/// The longest change of a row: all columns of the largest, with a number and a length each.
pub(crate) const CHANGE_BYTES_MAX: usize = ROW_BYTES_MAX + (1 << 20);
/// Words of a set of slots, of whichever chunks.
const WORDS: usize = OLD_CHUNK_SLOTS as usize / 64;
/// Bytes for the two counts.
const COUNTS_BYTES: usize = 4;
/// The largest numbers before a row: gap, distance, length.
const ROW_HEAD_BYTES_MAX: usize = 3 + 10 + 5;

/// How many slots the chunks of a record have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkSize {
    /// 1,024, in records of formats 1 and 2. They are read, and [made anew](crate::CheckpointUpgrade) when a server
    /// starts; nobody writes them.
    Of1024,
    /// [`CHUNK_SLOTS`].
    #[default]
    Of64,
}

impl ChunkSize {
    /// The number.
    pub fn slots(self) -> u16 {
        match self {
            ChunkSize::Of1024 => OLD_CHUNK_SLOTS,
            ChunkSize::Of64 => CHUNK_SLOTS,
        }
    }
}

/// Some slots of a chunk of either size.
#[derive(Default)]
pub(crate) struct Slots([u64; WORDS]);

impl Slots {
    /// Puts a slot in. True: it was not in.
    pub(crate) fn insert(&mut self, slot: u16) -> bool {
        let word = &mut self.0[usize::from(slot / 64)];
        let bit = 1 << (slot % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Those of a chunk of [`CHUNK_SLOTS`].
    pub(crate) fn first_word(&self) -> u64 {
        self.0[0]
    }

    /// Takes a slot out.
    pub(crate) fn remove(&mut self, slot: u16) {
        self.0[usize::from(slot / 64)] &= !(1 << (slot % 64));
    }

    pub(crate) fn contains(&self, slot: u16) -> bool {
        self.0[usize::from(slot / 64)] & 1 << (slot % 64) != 0
    }
}

/// One page being filled; the buffer is used again.
pub struct RowsPageBuilder {
    csn: Csn,
    payload: Vec<u8>,
    rows: u16,
    /// The lowest slot that the next row may have.
    next: u16,
    /// A bit for each emptied slot.
    gone: u64,
}

impl Default for RowsPageBuilder {
    fn default() -> RowsPageBuilder {
        RowsPageBuilder::new()
    }
}

impl RowsPageBuilder {
    /// An empty page.
    pub fn new() -> RowsPageBuilder {
        RowsPageBuilder {
            csn: Csn::ZERO,
            payload: Vec::new(),
            rows: 0,
            next: 0,
            gone: 0,
        }
    }

    /// Empties the page: it will say what the state is below `csn`.
    pub fn begin(&mut self, csn: Csn) {
        self.csn = csn;
        self.payload.clear();
        self.payload.extend_from_slice(&[0; COUNTS_BYTES]);
        self.rows = 0;
        self.next = 0;
        self.gone = 0;
    }

    /// Is nothing in it?
    pub fn is_empty(&self) -> bool {
        self.rows == 0 && self.gone == 0
    }

    /// Its length so far.
    pub fn len_bytes(&self) -> usize {
        self.payload.len()
    }

    /// A row. Slots grow from call to call, and the row's CSN is below the page's: [`FrameError::OutOfOrder`]
    /// otherwise.
    pub fn row(&mut self, slot: u16, csn: Csn, bytes: &[u8]) -> Result<(), FrameError> {
        let distance = self.csn.get().checked_sub(csn.get());
        let room = self.payload.len() + ROW_HEAD_BYTES_MAX + bytes.len();
        let (Some(distance), Some(gap)) = (distance, slot.checked_sub(self.next)) else {
            return Err(FrameError::OutOfOrder);
        };
        if distance == 0 || slot >= CHUNK_SLOTS {
            return Err(FrameError::OutOfOrder);
        }
        if room > frame::PAYLOAD_BYTES_MAX {
            return Err(FrameError::TooLarge);
        }
        varint::put(u64::from(gap), &mut self.payload);
        varint::put(distance, &mut self.payload);
        varint::put(bytes.len() as u64, &mut self.payload);
        self.payload.extend_from_slice(bytes);
        self.rows += 1;
        self.next = slot + 1;
        Ok(())
    }

    /// A slot that had a row in an older page and has none any more. In any order; not together with a row of the same
    /// slot.
    pub fn delete(&mut self, slot: u16) -> Result<(), FrameError> {
        if slot >= CHUNK_SLOTS {
            return Err(FrameError::OutOfOrder);
        }
        self.gone |= 1 << slot;
        Ok(())
    }

    /// The page as a frame.
    pub fn finish<'a>(
        &mut self,
        kind: FrameKind,
        key: &PageKey,
        encoder: &'a mut frame::Encoder,
    ) -> Result<&'a [u8], FrameError> {
        let mut gone = 0u16;
        let mut next = 0;
        for slot in 0..CHUNK_SLOTS {
            if self.gone & 1 << slot != 0 {
                varint::put(u64::from(slot - next), &mut self.payload);
                (gone, next) = (gone + 1, slot + 1);
            }
        }
        self.payload[..2].copy_from_slice(&self.rows.to_le_bytes());
        self.payload[2..COUNTS_BYTES].copy_from_slice(&gone.to_le_bytes());
        encoder.encode(kind, self.csn, &key.encode(), &self.payload)
    }
}

/// Makes the frame of a piece of a row, or of a change.
pub(crate) fn encode_piece<'a>(
    kind: FrameKind,
    key: &PageKey,
    page_csn: Csn,
    piece: &RowFragment<'_>,
    payload: &mut Vec<u8>,
    encoder: &'a mut frame::Encoder,
) -> Result<&'a [u8], FrameError> {
    let distance = page_csn.get().checked_sub(piece.csn.get());
    let distance = distance.filter(|&distance| distance > 0);
    let distance = distance.ok_or(FrameError::OutOfOrder)?;
    payload.clear();
    varint::put(u64::from(piece.slot), payload);
    varint::put(distance, payload);
    varint::put(piece.total as u64, payload);
    varint::put(piece.offset as u64, payload);
    payload.extend_from_slice(piece.bytes);
    encoder.encode(kind, page_csn, &key.encode(), payload)
}

/// What a page says of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState<'a> {
    /// It has this row.
    Row {
        /// The CSN of the transaction that wrote it.
        csn: Csn,
        /// The row.
        bytes: &'a [u8],
    },
    /// It is empty.
    Deleted,
}

/// A piece of a row that is too large for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFragment<'a> {
    /// The row's slot.
    pub slot: u16,
    /// The CSN of the transaction that wrote the row.
    pub csn: Csn,
    /// Length of the whole row.
    pub total: usize,
    /// Where in the row the piece begins.
    pub offset: usize,
    /// The piece.
    pub bytes: &'a [u8],
}

/// A page, checked to its end.
#[derive(Clone, Copy, Debug)]
pub enum DecodedPage<'a> {
    /// Rows and emptied slots.
    Rows(PageRows<'a>),
    /// Changes of rows that older pages have: none is emptied.
    Changes(PageRows<'a>),
    /// A piece of one row.
    RowFragment(RowFragment<'a>),
    /// A piece of a change of a row that older pages have.
    ChangePiece(RowFragment<'a>),
}

/// The rows of a page, checked to their end.
#[derive(Clone, Copy, Debug)]
pub struct PageRows<'a> {
    size: ChunkSize,
    csn: Csn,
    payload: &'a [u8],
}

fn wrong(what: &'static str, offset: usize) -> FormatError {
    FormatError::new(what, offset)
}

/// Reads a frame that must be a page of rows with this key: a base page if `is_base`. `buffer` is where it is unpacked.
pub fn read_rows<'a>(
    bytes: &'a [u8],
    expected: &PageKey,
    is_base: bool,
    buffer: &'a mut Vec<u8>,
) -> Result<DecodedPage<'a>, FrameError> {
    read_rows_of(ChunkSize::Of64, bytes, expected, is_base, buffer)
}

/// The same of a chunk of another size.
pub(crate) fn read_rows_of<'a>(
    size: ChunkSize,
    bytes: &'a [u8],
    expected: &PageKey,
    is_base: bool,
    buffer: &'a mut Vec<u8>,
) -> Result<DecodedPage<'a>, FrameError> {
    let frame = frame::decode(bytes, buffer)?;
    if frame.key != &expected.encode()[..] {
        return Err(wrong("another page", frame::HEADER_BYTES).into());
    }
    let page = match (frame.kind, is_base) {
        (FrameKind::RowsBase, true) | (FrameKind::RowsDelta | FrameKind::RowChanges, false) => {
            let rows = PageRows {
                size,
                csn: frame.csn,
                payload: frame.payload,
            };
            let gone = rows.parse(|_, _| ())?;
            let is_of_changes = frame.kind == FrameKind::RowChanges;
            if (is_base || is_of_changes) && gone > 0 {
                return Err(wrong("a page that empties slots and may not", 0).into());
            }
            if is_of_changes {
                DecodedPage::Changes(rows)
            } else {
                DecodedPage::Rows(rows)
            }
        }
        (FrameKind::RowPiece, false) => {
            DecodedPage::RowFragment(parse_piece(size, frame.csn, frame.payload, ROW_BYTES_MAX)?)
        }
        (FrameKind::ChangePiece, false) => DecodedPage::ChangePiece(parse_piece(
            size,
            frame.csn,
            frame.payload,
            CHANGE_BYTES_MAX,
        )?),
        _ => return Err(wrong("another kind of page", 10).into()),
    };
    Ok(page)
}

fn slot_after(size: ChunkSize, next: u16, gap: u64, at: usize) -> Result<u16, FormatError> {
    u16::try_from(gap)
        .ok()
        .and_then(|gap| next.checked_add(gap))
        .filter(|&slot| slot < size.slots())
        .ok_or(wrong("a slot beyond the chunk", at))
}

fn csn_before(page: Csn, distance: u64, at: usize) -> Result<Csn, FormatError> {
    page.get()
        .checked_sub(distance)
        .filter(|_| distance > 0)
        .map(Csn)
        .ok_or(wrong("a row that is newer than its page", at))
}

impl<'a> PageRows<'a> {
    /// The CSN below which the page says everything.
    pub fn csn(&self) -> Csn {
        self.csn
    }

    /// Every slot that the page knows, rows first.
    pub fn visit(&self, visit: impl FnMut(u16, SlotState<'a>)) {
        let parsed = self.parse(visit);
        debug_assert!(parsed.is_ok(), "it was parsed before");
    }

    /// Number of emptied slots.
    fn parse(&self, mut visit: impl FnMut(u16, SlotState<'a>)) -> Result<u16, FormatError> {
        let mut from = Reader::new(self.payload);
        let counts = from.u32_le()?;
        let (rows, gone) = (counts as u16, (counts >> 16) as u16);
        let slots = self.size.slots();
        if rows > slots || gone > slots - rows {
            return Err(wrong("more rows than a chunk has", 0));
        }
        let mut full = Slots::default();
        let mut next = 0;
        for _ in 0..rows {
            let at = from.at();
            let slot = slot_after(self.size, next, from.number()?, at)?;
            let csn = csn_before(self.csn, from.number()?, at)?;
            let len = from.number()?;
            let bytes = from.bytes(len)?;
            full.insert(slot);
            next = slot + 1;
            visit(slot, SlotState::Row { csn, bytes });
        }
        next = 0;
        for _ in 0..gone {
            let at = from.at();
            let slot = slot_after(self.size, next, from.number()?, at)?;
            if full.contains(slot) {
                return Err(wrong("a slot that is full and empty", at));
            }
            next = slot + 1;
            visit(slot, SlotState::Deleted);
        }
        if !from.is_empty() {
            return Err(wrong("bytes behind the rows", from.at()));
        }
        Ok(gone)
    }
}

fn parse_piece(
    size: ChunkSize,
    page_csn: Csn,
    payload: &[u8],
    total_max: usize,
) -> Result<RowFragment<'_>, FormatError> {
    let mut from = Reader::new(payload);
    let slot = slot_after(size, 0, from.number()?, 0)?;
    let csn = csn_before(page_csn, from.number()?, from.at())?;
    let at = from.at();
    let (total, offset) = (from.number()?, from.number()?);
    let bytes = from.rest();
    let end = offset.checked_add(bytes.len() as u64);
    if bytes.is_empty() || total > total_max as u64 || end.is_none_or(|end| end > total) {
        return Err(wrong("impossible length of a row's piece", at));
    }
    Ok(RowFragment {
        slot,
        csn,
        total: total as usize,
        offset: offset as usize,
        bytes,
    })
}
