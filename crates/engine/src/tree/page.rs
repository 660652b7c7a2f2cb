//! Pages, and how they are read.
//!
//! A page is a header and words. From the front grow the slots, one word each and in the order of their entries; from
//! the back grows the heap. All entries of a page begin with its *prefix*, kept once at the very end of the heap. A
//! slot is
//!
//! ```text
//! | head: 32 | offset: 16 | length: 16 |
//! ```
//!
//! `head` is the first four bytes after the prefix (with zeros behind, if there are fewer), so that most comparisons
//! are of integers; `length` counts the bytes after the prefix, and those that are not in the head are in the heap
//! at `offset`. An entry longer than [`INLINE_BYTES_MAX`] is a *blob*, kept outside the page: its slot has a head, the
//! flag [`BLOB`] and, for an offset, its number in the page's table of blobs.
//!
//! A page covers the entries from its low fence to below its high fence; no fence means no end. The pages of a level
//! are a chain by their fences: the high fence of one is the low fence of the next, so a walk finds its way by
//! looking for the fence, and there are no links to keep right. In an inner page entries are separators: link `i` leads
//! to what is below separator `i` and not below separator `i - 1`.
//!
//! Bytes are kept in words, the first one highest, and every word is an atomic: who reads without a lock may get
//! anything, and the functions here make no more of it than a wrong answer. The answer counts only after
//! [`Latch::check`].

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::blob::{Blob, Blobs};
use super::cell::{EpochCell, EpochGuard};
use super::interleave;
use super::latch::Latch;
use crate::memory::{Memory, footprint};

/// Size of a page: docs/internals/indexes.md has what was measured.
const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = 64;
/// Words of slots and heap.
pub(super) const WORDS: usize = (PAGE_BYTES - HEADER_BYTES) / 8;
/// Where the heap ends.
pub(super) const HEAP_END: usize = WORDS * 8;
/// Longer entries are kept outside the page, so that a page always has room for several.
pub(super) const INLINE_BYTES_MAX: usize = HEAP_END / 8;
/// Children of an inner page at most.
pub(super) const LINKS_MAX: usize = WORDS / 2;
/// Bytes of an entry that are in its slot.
pub(super) const HEAD_BYTES: usize = 4;
/// Bytes of a rid at the end of an entry.
pub(super) const RID_BYTES: usize = 8;

/// In a slot's length: the entry is a blob.
pub(super) const BLOB: u16 = 1 << 15;

type Links = [EpochCell<Page>; LINKS_MAX];

/// A page of the tree.
#[repr(C, align(64))]
pub(super) struct Page {
    pub(super) latch: Latch,
    /// See [`Meta`].
    pub(super) meta: AtomicU64,
    /// See [`FenceLocation`].
    pub(super) low: AtomicU64,
    pub(super) high: AtomicU64,
    /// The entries (and fences) that are kept outside; none while there are none.
    pub(super) blobs: EpochCell<Blobs>,
    /// The children of an inner page: one more than it has separators. A leaf may be absent: its place is empty.
    links: Option<Box<Links>>,
    /// Whose memory it is.
    memory: &'static Memory,
    /// 0 is a leaf; never changes.
    pub(super) level: u8,
    /// Of a leaf: somebody has been here since the evictor last was.
    touched: AtomicBool,
    /// Of a leaf: see [`super::tiles`]. Written under its lock, and before sharing.
    pub(super) written_in: AtomicU32,
    pub(super) words: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Page>() == PAGE_BYTES);

/// The measures of a page, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meta {
    /// Slots.
    pub(super) count: usize,
    /// Where the heap begins.
    pub(super) heap: usize,
    /// Bytes of the heap that nobody uses any more.
    pub(super) garbage: usize,
    /// Bytes of the prefix.
    pub(super) prefix: usize,
}

impl Meta {
    #[inline]
    pub(super) fn unpack(word: u64) -> Meta {
        Meta {
            count: (word & 0xffff) as usize,
            heap: (word >> 16 & 0xffff) as usize,
            garbage: (word >> 32 & 0xffff) as usize,
            prefix: (word >> 48) as usize,
        }
    }

    #[inline]
    pub(super) fn pack(self) -> u64 {
        self.count as u64
            | (self.heap as u64) << 16
            | (self.garbage as u64) << 32
            | (self.prefix as u64) << 48
    }

    /// Bytes in use.
    pub(super) fn used(self) -> usize {
        self.count * 8 + (HEAP_END - self.heap) - self.garbage
    }
}

/// No walk has written the leaf as it is.
pub(super) const NOT_WRITTEN: u32 = 0;

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u64);

impl Slot {
    pub(super) fn new(head: u32, offset: u16, length: u16) -> Slot {
        Slot(u64::from(head) << 32 | u64::from(offset) << 16 | u64::from(length))
    }

    #[inline]
    pub(super) fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Where the bytes are that are not in the head, or the blob's number.
    #[inline]
    pub(super) fn offset(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }

    #[inline]
    pub(super) fn is_blob(self) -> bool {
        self.0 as u16 & BLOB != 0
    }

    /// Bytes after the prefix, of one that is no blob.
    #[inline]
    pub(super) fn length(self) -> usize {
        usize::from(self.0 as u16 & !BLOB)
    }

    /// Bytes in the heap.
    #[inline]
    pub(super) fn heap_bytes(self) -> usize {
        if self.is_blob() {
            0
        } else {
            self.length().saturating_sub(HEAD_BYTES)
        }
    }
}

/// Where a fence is: nowhere, in the heap, or outside as a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FenceLocation {
    None,
    Heap { offset: u16, length: u16 },
    Blob { number: u16 },
}

impl FenceLocation {
    pub(super) fn pack(self) -> u64 {
        match self {
            FenceLocation::None => 0,
            FenceLocation::Heap { offset, length } => {
                1 << 32 | u64::from(offset) << 16 | u64::from(length)
            }
            FenceLocation::Blob { number } => 2 << 32 | u64::from(number),
        }
    }

    fn unpack(word: u64) -> FenceLocation {
        match word >> 32 {
            0 => FenceLocation::None,
            1 => FenceLocation::Heap {
                offset: (word >> 16) as u16,
                length: word as u16,
            },
            _ => FenceLocation::Blob {
                number: word as u16,
            },
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.memory.add(-(Page::memory_bytes(self.level) as i64));
    }
}

/// The first bytes of `suffix` as an integer that compares as they do.
#[inline]
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<HEAD_BYTES>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD_BYTES];
            head[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(head)
        }
    }
}

/// Up to eight bytes as an integer, the first one highest.
#[inline]
fn chunk(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(all) => u64::from_be_bytes(*all),
        None => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    }
}

/// Keeps the first `n` (1 to 8) bytes.
#[inline]
fn first_bytes(word: u64, n: usize) -> u64 {
    word & (u64::MAX << (64 - 8 * n))
}

/// Where something is among a page's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryPosition {
    /// How many entries are below it.
    pub(super) at: usize,
    /// The entry there is it.
    pub(super) exact: bool,
}

impl Page {
    pub(super) fn new(level: u8, memory: &'static Memory) -> Page {
        memory.add(Page::memory_bytes(level) as i64);
        Page {
            latch: Latch::new(),
            meta: AtomicU64::new(
                Meta {
                    heap: HEAP_END,
                    ..Meta::default()
                }
                .pack(),
            ),
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
            blobs: EpochCell::EMPTY,
            links: (level > 0).then(|| Box::new([const { EpochCell::EMPTY }; LINKS_MAX])),
            memory,
            level,
            touched: AtomicBool::new(true),
            written_in: AtomicU32::new(NOT_WRITTEN),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// What a page of this level takes in memory, blobs aside.
    pub(super) fn memory_bytes(level: u8) -> usize {
        let links = if level == 0 { 0 } else { size_of::<Links>() };
        footprint(PAGE_BYTES) + footprint(links)
    }

    /// A leaf has none.
    #[inline]
    pub(super) fn links(&self) -> &[EpochCell<Page>] {
        self.links.as_deref().map_or(&[], |links| links)
    }

    #[inline]
    pub(super) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// Somebody has use for the leaf.
    #[inline]
    pub(super) fn touch(&self) {
        // Reading it costs nothing, for the latch is in the same line; writing it would take the line from all others.
        if !self.touched.load(Relaxed) {
            self.touched.store(true, Relaxed);
        }
    }

    /// Was somebody here since the last call of [`Page::take_touched`]?
    pub(super) fn is_touched(&self) -> bool {
        self.touched.load(Relaxed)
    }

    /// Was somebody here since the last call?
    pub(super) fn take_touched(&self) -> bool {
        self.touched.load(Relaxed) && self.touched.swap(false, Relaxed)
    }

    /// Is what a published walk has written just what is in the leaf? See [`super::tiles`].
    pub(super) fn is_clean(&self, published: u32) -> bool {
        interleave::point();
        let written_in = self.written_in.load(Relaxed);
        written_in != NOT_WRITTEN && written_in <= published
    }

    /// Appends where the child at a link begins; nothing if it begins with the tree.
    pub(super) fn copy_low_of(&self, link: usize, pin: &EpochGuard, out: &mut Vec<u8>) {
        match link.checked_sub(1) {
            None => {
                self.copy_fence(&self.low, pin, out);
            }
            Some(at) => self.copy_entry(self.meta(), self.slot(at), pin, out),
        }
    }

    /// Appends where the child at a link ends; false if it does with the tree.
    pub(super) fn copy_high_of(&self, link: usize, pin: &EpochGuard, out: &mut Vec<u8>) -> bool {
        let meta = self.meta();
        if link < meta.count {
            self.copy_entry(meta, self.slot(link), pin, out);
            return true;
        }
        self.copy_fence(&self.high, pin, out)
    }

    #[inline]
    pub(super) fn meta(&self) -> Meta {
        interleave::point();
        Meta::unpack(self.meta.load(Relaxed))
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        interleave::point();
        self.words.get(at).map_or(0, |word| word.load(Relaxed))
    }

    #[inline]
    pub(super) fn slot(&self, at: usize) -> Slot {
        Slot(self.word(at))
    }

    /// Eight bytes of the heap; zeros beyond its end.
    #[inline]
    fn eight(&self, offset: usize) -> u64 {
        let (word, bits) = (offset / 8, offset % 8 * 8);
        let first = self.word(word);
        if bits == 0 {
            first
        } else {
            first << bits | self.word(word + 1) >> (64 - bits)
        }
    }

    /// Appends bytes of the heap to `out`.
    #[inline]
    fn copy(&self, offset: usize, length: usize, out: &mut Vec<u8>) {
        // What is torn is not believed, but neither may it take all memory.
        let length = length.min(HEAP_END);
        let mut done = 0;
        while done < length {
            let n = (length - done).min(8);
            out.extend_from_slice(&self.eight(offset + done).to_be_bytes()[..n]);
            done += n;
        }
    }

    /// Compares `length` bytes of the heap with `bytes`.
    #[inline]
    fn compare(&self, offset: usize, length: usize, bytes: &[u8]) -> Ordering {
        let common = length.min(bytes.len());
        let mut done = 0;
        while done < common {
            let n = (common - done).min(8);
            let ours = first_bytes(self.eight(offset + done), n);
            let theirs = first_bytes(chunk(&bytes[done..]), n);
            if ours != theirs {
                return ours.cmp(&theirs);
            }
            done += n;
        }
        length.cmp(&bytes.len())
    }

    fn blob<'g>(&'g self, number: usize, pin: &'g EpochGuard) -> Option<&'g Arc<Blob>> {
        self.blobs.load(pin)?.get(number)
    }

    /// The blob of a slot that has one.
    pub(super) fn slot_blob<'g>(
        &'g self,
        slot: Slot,
        pin: &'g EpochGuard,
    ) -> Option<&'g Arc<Blob>> {
        if slot.is_blob() {
            self.blob(slot.offset(), pin)
        } else {
            None
        }
    }

    fn slot_bytes<'g>(&'g self, slot: Slot, pin: &'g EpochGuard) -> &'g [u8] {
        self.blob(slot.offset(), pin)
            .map_or(&[], |blob| blob.bytes())
    }

    /// The byte that the first entry begins with; nothing if there is none.
    #[inline]
    pub(super) fn first_byte(&self, meta: Meta) -> Option<u8> {
        if meta.count == 0 {
            return None;
        }
        let first = match HEAP_END.checked_sub(meta.prefix) {
            Some(prefix) if prefix < HEAP_END => self.eight(prefix).to_be_bytes()[0],
            _ => self.slot(0).head().to_be_bytes()[0],
        };
        Some(first)
    }

    /// Appends the prefix to `out`.
    #[inline]
    pub(super) fn copy_prefix(&self, meta: Meta, out: &mut Vec<u8>) {
        self.copy(HEAP_END.saturating_sub(meta.prefix), meta.prefix, out);
    }

    /// Appends what comes after the prefix, of one that is no blob.
    #[inline]
    pub(super) fn copy_suffix(&self, slot: Slot, out: &mut Vec<u8>) {
        let head = slot.head().to_be_bytes();
        out.extend_from_slice(&head[..slot.length().min(HEAD_BYTES)]);
        self.copy(slot.offset(), slot.heap_bytes(), out);
    }

    /// Stores `length` bytes of the heap at the beginning of `out`, which has up to seven bytes more to spare.
    #[inline]
    fn load(&self, offset: usize, length: usize, out: &mut [u8]) {
        for (n, bytes) in out.chunks_exact_mut(8).enumerate().take(length.div_ceil(8)) {
            bytes.copy_from_slice(&self.eight(offset + n * 8).to_be_bytes());
        }
    }

    /// Stores the first bytes of the prefix at the beginning of `out`, and something behind them.
    #[inline]
    pub(super) fn load_prefix(&self, length: usize, out: &mut [u8]) {
        self.load(HEAP_END - length, length, out);
    }

    /// Stores what comes after the prefix, of one that is no blob, at the beginning of `out`, and something behind it.
    /// `out` has eight bytes to spare.
    #[inline]
    pub(super) fn load_suffix(&self, slot: Slot, out: &mut [u8]) {
        if let Some((head, rest)) = out.split_first_chunk_mut::<HEAD_BYTES>() {
            *head = slot.head().to_be_bytes();
            self.load(slot.offset(), slot.heap_bytes(), rest);
        }
    }

    /// Appends the whole entry.
    #[inline]
    pub(super) fn copy_entry(&self, meta: Meta, slot: Slot, pin: &EpochGuard, out: &mut Vec<u8>) {
        if slot.is_blob() {
            out.extend_from_slice(self.slot_bytes(slot, pin));
        } else {
            self.copy_prefix(meta, out);
            self.copy_suffix(slot, out);
        }
    }

    /// How `bytes` compare with the prefix: `Equal` if they begin with it. (Less and within: the bytes end inside of
    /// the prefix, so every entry begins with them and is above them.)
    #[inline]
    pub(super) fn compare_prefix(&self, meta: Meta, bytes: &[u8]) -> Ordering {
        if meta.prefix == 0 {
            return Ordering::Equal;
        }
        let offset = HEAP_END.saturating_sub(meta.prefix);
        if bytes.len() < meta.prefix {
            self.compare(offset, meta.prefix, bytes).reverse()
        } else {
            self.compare(offset, meta.prefix, &bytes[..meta.prefix])
                .reverse()
        }
    }

    /// Where `bytes` are, or would be, among the entries.
    #[inline]
    pub(super) fn find(&self, meta: Meta, bytes: &[u8], pin: &EpochGuard) -> EntryPosition {
        let outside = |at| EntryPosition { at, exact: false };
        match self.compare_prefix(meta, bytes) {
            Ordering::Less => return outside(0),
            Ordering::Greater => return outside(meta.count.min(WORDS)),
            Ordering::Equal => {}
        }
        let suffix = bytes.get(meta.prefix..).unwrap_or_default();
        let head = head_of(suffix);
        let (mut low, mut high) = (0, meta.count.min(WORDS));
        while low < high {
            let middle = (low + high) / 2;
            let slot = self.slot(middle);
            let order = match slot.head().cmp(&head) {
                Ordering::Equal => self.compare_rest(slot, suffix, bytes, pin),
                order => order,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    return EntryPosition {
                        at: middle,
                        exact: true,
                    };
                }
            }
        }
        outside(low)
    }

    /// Compares an entry whose head is that of `suffix`, which is the end of `bytes`.
    #[inline]
    fn compare_rest(&self, slot: Slot, suffix: &[u8], bytes: &[u8], pin: &EpochGuard) -> Ordering {
        if slot.is_blob() {
            return self.slot_bytes(slot, pin).cmp(bytes);
        }
        match suffix.get(HEAD_BYTES..) {
            Some(rest) if slot.length() >= HEAD_BYTES => {
                self.compare(slot.offset(), slot.length() - HEAD_BYTES, rest)
            }
            // One of them ends within the head, with zeros behind: it is the shorter one.
            _ => slot.length().cmp(&suffix.len()),
        }
    }

    /// The rid at the end of an entry, if the entry is one of `key`. Of the entries from where the key would be on,
    /// those of the key come first.
    #[inline]
    pub(super) fn rid_of_key(
        &self,
        meta: Meta,
        slot: Slot,
        key: &[u8],
        pin: &EpochGuard,
    ) -> Option<u64> {
        if slot.is_blob() {
            let entry = self.slot_bytes(slot, pin);
            let (entry_key, rid) = entry.split_last_chunk::<RID_BYTES>()?;
            return (entry_key == key).then(|| u64::from_be_bytes(*rid));
        }
        if meta.prefix + slot.length() != key.len() + RID_BYTES {
            return None;
        }
        let rest = slot.length().saturating_sub(HEAD_BYTES);
        match key.get(meta.prefix..) {
            // The key ends inside of the prefix.
            None => {
                let common = &key[..key.len().min(meta.prefix)];
                let offset = HEAP_END.saturating_sub(meta.prefix);
                if self.compare(offset, common.len(), common) != Ordering::Equal {
                    return None;
                }
            }
            Some(suffix) => {
                let n = suffix.len().min(HEAD_BYTES);
                let differing = u64::from(slot.head() ^ head_of(suffix)) >> (8 * (HEAD_BYTES - n));
                if differing != 0 || self.compare_prefix(meta, key) != Ordering::Equal {
                    return None;
                }
                if let Some(tail) = suffix.get(HEAD_BYTES..)
                    && self.compare(slot.offset(), tail.len(), tail) != Ordering::Equal
                {
                    return None;
                }
            }
        }
        if rest >= RID_BYTES {
            return Some(self.eight(slot.offset() + rest - RID_BYTES));
        }
        // The rid begins in the head, or in the prefix.
        let (mut rid, mut bytes) = (0, 0);
        if rest > 0 {
            rid = self.eight(slot.offset()) >> (64 - 8 * rest);
            bytes = rest;
        }
        let in_head = slot.length().min(HEAD_BYTES);
        if in_head > 0 {
            let head = u64::from(slot.head()) >> (8 * (HEAD_BYTES - in_head));
            rid |= head << (8 * bytes);
            bytes += in_head;
        }
        if bytes < RID_BYTES {
            let n = (RID_BYTES - bytes).min(meta.prefix);
            let tail = self.eight(HEAP_END.saturating_sub(n));
            if n > 0 {
                rid |= (tail >> (64 - 8 * n)) << (8 * bytes);
            }
        }
        Some(rid)
    }

    /// Appends a fence to `out`; false if there is none.
    pub(super) fn copy_fence(
        &self,
        fence: &AtomicU64,
        pin: &EpochGuard,
        out: &mut Vec<u8>,
    ) -> bool {
        interleave::point();
        match FenceLocation::unpack(fence.load(Relaxed)) {
            FenceLocation::None => false,
            FenceLocation::Heap { offset, length } => {
                self.copy(usize::from(offset), usize::from(length), out);
                true
            }
            FenceLocation::Blob { number } => {
                if let Some(blob) = self.blob(usize::from(number), pin) {
                    out.extend_from_slice(blob.bytes());
                }
                true
            }
        }
    }

    /// Does the high fence begin with `key`? Only then the key's entries can go on in the next page: a fence above the
    /// key and not above some entry of it begins with it.
    pub(super) fn may_go_on(&self, key: &[u8], pin: &EpochGuard) -> bool {
        match FenceLocation::unpack(self.high.load(Relaxed)) {
            FenceLocation::None => false,
            FenceLocation::Heap { offset, length } => {
                usize::from(length) >= key.len()
                    && self.compare(usize::from(offset), key.len(), key).is_eq()
            }
            FenceLocation::Blob { number } => self
                .blob(usize::from(number), pin)
                .is_some_and(|blob| blob.bytes().starts_with(key)),
        }
    }

    /// Is the page's high fence above `bytes`?
    pub(super) fn covers(&self, bytes: &[u8], pin: &EpochGuard) -> bool {
        match FenceLocation::unpack(self.high.load(Relaxed)) {
            FenceLocation::None => true,
            FenceLocation::Heap { offset, length } => {
                self.compare(usize::from(offset), usize::from(length), bytes) == Ordering::Greater
            }
            FenceLocation::Blob { number } => self
                .blob(usize::from(number), pin)
                .is_some_and(|blob| blob.bytes() > bytes),
        }
    }
}
