//! Changing a page under its lock: single entries in place, and the whole page from a [`PageImage`].

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::blob::{Blob, Blobs, Usage};
use super::cell::{EpochCell, EpochGuard, RetiredContent};
use super::interleave;
use super::latch::{LatchVersion, Restart};
use super::page::{
    BLOB, EntryPosition, FenceLocation, HEAD_BYTES, HEAP_END, INLINE_BYTES_MAX, LINKS_MAX, Meta,
    NOT_WRITTEN, Page, Slot, WORDS, head_of,
};

/// Longer fences are kept outside the page.
const FENCE_BYTES_MAX: usize = 64;
/// Garbage that is worth a rebuild: less, and a full page would be rebuilt with every change.
const GARBAGE_BYTES_MIN: usize = HEAP_END / 16;

/// How many bytes two entries have in common at their start.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Can a page take an entry?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryFit {
    /// As it is.
    InPlace,
    /// When it is written anew: with a shorter prefix, or without garbage.
    Rebuilt,
    No,
}

/// A page's entries, taken out of it.
#[derive(Default)]
pub(super) struct PageImage {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

enum Item {
    /// A range of `bytes`.
    Inline(Range<usize>),
    Outside(Arc<Blob>),
}

impl PageImage {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn entry(&self, at: usize) -> &[u8] {
        match &self.items[at] {
            Item::Inline(range) => &self.bytes[range.clone()],
            Item::Outside(blob) => blob.bytes(),
        }
    }

    fn item(&mut self, entry: &[u8], usage: &Arc<Usage>) -> Item {
        if entry.len() > INLINE_BYTES_MAX {
            return Item::Outside(Blob::new(entry, usage));
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        Item::Inline(start..self.bytes.len())
    }

    pub(super) fn insert(&mut self, at: usize, entry: &[u8], usage: &Arc<Usage>) {
        let item = self.item(entry, usage);
        self.items.insert(at, item);
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.items.remove(at);
    }

    /// Appends all of another one's.
    pub(super) fn append(&mut self, other: PageImage) {
        let by = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.items
            .extend(other.items.into_iter().map(|item| match item {
                Item::Inline(range) => Item::Inline(range.start + by..range.end + by),
                outside @ Item::Outside(_) => outside,
            }));
    }

    /// The prefix that the entries in `range` get: what they have in common, as long as a longer one saves bytes.
    fn prefix(&self, range: &Range<usize>) -> usize {
        if range.len() < 2 {
            return 0;
        }
        let inline = |item: &Item| match item {
            Item::Inline(range) => Some(range.len()),
            Item::Outside(_) => None,
        };
        // For heads to differ, where no entry is in the page.
        let enough = match self.items[range.clone()].iter().filter_map(inline).max() {
            Some(longest) => longest.saturating_sub(HEAD_BYTES),
            None => FENCE_BYTES_MAX,
        };
        let (first, last) = (self.entry(range.start), self.entry(range.end - 1));
        common_prefix(first, last).min(enough)
    }

    /// What the entries take in a page, fences aside. Up to [`HEAP_END`] they can be put into one.
    pub(super) fn entries_bytes(&self, range: &Range<usize>) -> usize {
        let prefix = self.prefix(range);
        let rest = |item: &Item| match item {
            Item::Inline(range) => range.len().saturating_sub(prefix + HEAD_BYTES),
            Item::Outside(_) => 0,
        };
        let rests: usize = self.items[range.clone()].iter().map(rest).sum();
        prefix + range.len() * 8 + rests
    }

    /// Do the entries fit into one page, leaving `spare` bytes and room for fences?
    pub(super) fn fits(&self, range: Range<usize>, spare: usize) -> bool {
        self.entries_bytes(&range) + 2 * FENCE_BYTES_MAX + spare <= HEAP_END
    }

    fn fits_alone(&self) -> bool {
        self.fits(0..self.len(), 0)
    }

    /// How many of the first entries take about half of the bytes; at least one stays on either side.
    pub(super) fn half(&self) -> usize {
        let weight = |item: &Item| match item {
            Item::Inline(range) => range.len() + 8,
            Item::Outside(_) => 8,
        };
        let total: usize = self.items.iter().map(weight).sum();
        let (mut sum, mut at) = (0, 0);
        for item in &self.items {
            sum += weight(item);
            if sum * 2 > total {
                break;
            }
            at += 1;
        }
        at.clamp(1, (self.items.len() - 1).max(1))
    }
}

/// The right to change a page, until it is dropped.
pub(super) struct PageWriteLock<'g> {
    page: &'g Page,
    version: LatchVersion,
    changed: bool,
    obsolete: bool,
}

impl std::ops::Deref for PageWriteLock<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        self.page
    }
}

impl Drop for PageWriteLock<'_> {
    fn drop(&mut self) {
        if self.changed && self.page.is_leaf() {
            self.set_written_in(NOT_WRITTEN);
        }
        self.page
            .latch
            .unlock(self.version, self.changed, self.obsolete);
    }
}

impl Page {
    /// Locks the page if the version still stands.
    #[inline]
    pub(super) fn lock(&self, version: LatchVersion) -> Result<PageWriteLock<'_>, Restart> {
        self.latch.lock(version)?;
        Ok(self.locked(version))
    }

    /// Locks the page if nobody has.
    pub(super) fn lock_now(&self) -> Result<PageWriteLock<'_>, Restart> {
        let version = self.latch.lock_now()?;
        Ok(self.locked(version))
    }

    fn locked(&self, version: LatchVersion) -> PageWriteLock<'_> {
        PageWriteLock {
            page: self,
            version,
            changed: false,
            obsolete: false,
        }
    }
}

impl<'g> PageWriteLock<'g> {
    /// The page, for longer than the lock is held.
    pub(super) fn page(&self) -> &'g Page {
        self.page
    }

    fn set(&self, at: usize, word: u64) {
        interleave::point();
        self.page.words[at].store(word, Relaxed);
    }

    fn set_meta(&self, meta: Meta) {
        interleave::point();
        self.page.meta.store(meta.pack(), Relaxed);
    }

    /// A walk has written the leaf as it is, or the leaf is not as it is written anywhere.
    pub(super) fn set_written_in(&self, walk: u32) {
        interleave::point();
        self.page.written_in.store(walk, Relaxed);
    }

    /// The page has left the tree.
    pub(super) fn retire(&mut self) {
        self.obsolete = true;
    }

    /// Writes bytes into the heap.
    fn write(&self, offset: usize, bytes: &[u8]) {
        let (mut at, mut left) = (offset, bytes);
        while !left.is_empty() {
            let (word, skip) = (at / 8, at % 8);
            let n = left.len().min(8 - skip);
            let mut chunk = [0; 8];
            chunk[skip..skip + n].copy_from_slice(&left[..n]);
            let mask = (u64::MAX << (64 - 8 * n)) >> (8 * skip);
            let old = self.page.words[word].load(Relaxed);
            self.set(word, old & !mask | u64::from_be_bytes(chunk));
            at += n;
            left = &left[n..];
        }
    }

    /// Can the page take `entry`, which belongs at `place`?
    #[inline]
    pub(super) fn fit(
        &self,
        place: EntryPosition,
        entry: &[u8],
        usage: &Arc<Usage>,
        pin: &EpochGuard,
    ) -> EntryFit {
        let meta = self.meta();
        if !self.is_leaf() && meta.count + 2 > LINKS_MAX {
            return EntryFit::No;
        }
        let prefix = if meta.count == 0 { 0 } else { meta.prefix };
        let worthwhile = if meta.count == 0 || self.compare_prefix(meta, entry).is_eq() {
            let rest = if entry.len() > INLINE_BYTES_MAX {
                0
            } else {
                entry.len().saturating_sub(prefix + HEAD_BYTES)
            };
            if (meta.count + 1) * 8 + rest <= meta.heap {
                return EntryFit::InPlace;
            }
            meta.garbage >= GARBAGE_BYTES_MIN
        } else {
            true
        };
        if worthwhile && self.with(place, entry, usage, pin).fits_alone() {
            EntryFit::Rebuilt
        } else {
            EntryFit::No
        }
    }

    /// The page's entries with one more.
    fn with(
        &self,
        place: EntryPosition,
        entry: &[u8],
        usage: &Arc<Usage>,
        pin: &EpochGuard,
    ) -> PageImage {
        let mut image = self.image(pin);
        image.insert(place.at, entry, usage);
        image
    }

    /// Puts in an entry that is not there; `fit` has said how it fits at `place`. An inner page's link to what is above
    /// it is put in with it.
    pub(super) fn insert(
        &mut self,
        place: EntryPosition,
        fit: EntryFit,
        entry: &[u8],
        link: Option<RetiredContent<Page>>,
        usage: &Arc<Usage>,
        pin: &EpochGuard,
    ) {
        self.changed = true;
        let meta = self.meta();
        match fit {
            EntryFit::InPlace => self.insert_in_place(meta, place.at, entry, usage, pin),
            EntryFit::Rebuilt | EntryFit::No => {
                assert!(fit == EntryFit::Rebuilt, "who inserts has asked for room");
                let image = self.with(place, entry, usage, pin);
                let (low, high) = self.fences(pin);
                let all = 0..image.len();
                self.rebuild(&image, all, low.as_deref(), high.as_deref(), usage, pin);
            }
        }
        if let Some(link) = link {
            for at in (place.at + 1..=meta.count).rev() {
                self.move_link(at, at + 1, pin);
            }
            self.page.links()[place.at + 1].put(link, pin);
        }
    }

    fn insert_in_place(
        &self,
        mut meta: Meta,
        at: usize,
        entry: &[u8],
        usage: &Arc<Usage>,
        pin: &EpochGuard,
    ) {
        if meta.count == 0 {
            // Without entries any prefix is right; none is simplest, and what there was is garbage.
            meta.garbage += meta.prefix;
            meta.prefix = 0;
        }
        let suffix = entry.get(meta.prefix..).unwrap_or_default();
        let slot = if entry.len() > INLINE_BYTES_MAX {
            let mut table = self.page.blobs.load(pin).cloned().unwrap_or_default();
            let number = table.add(Blob::new(entry, usage));
            self.page
                .blobs
                .put(RetiredContent::new(Box::new(table)), pin);
            Slot::new(head_of(suffix), number, BLOB)
        } else {
            let rest = suffix.get(HEAD_BYTES..).unwrap_or_default();
            meta.heap -= rest.len();
            self.write(meta.heap, rest);
            Slot::new(head_of(suffix), meta.heap as u16, suffix.len() as u16)
        };
        for i in (at..meta.count).rev() {
            self.set(i + 1, self.page.words[i].load(Relaxed));
        }
        self.set(at, slot.0);
        meta.count += 1;
        self.set_meta(meta);
    }

    /// Takes out the entry at `at`.
    pub(super) fn remove(&mut self, at: usize, pin: &EpochGuard) {
        self.changed = true;
        let mut meta = self.meta();
        let slot = self.slot(at);
        if slot.is_blob() {
            let mut table = self.page.blobs.load(pin).cloned().unwrap_or_default();
            table.remove(slot.offset());
            self.set_blobs(table, pin);
        }
        for i in at + 1..meta.count {
            self.set(i - 1, self.page.words[i].load(Relaxed));
        }
        let bytes = slot.heap_bytes();
        if bytes > 0 && slot.offset() == meta.heap {
            meta.heap += bytes;
        } else {
            meta.garbage += bytes;
        }
        meta.count -= 1;
        self.set_meta(meta);
    }

    /// Takes out the separator at `at` and the link above it.
    pub(super) fn remove_child(
        &mut self,
        at: usize,
        pin: &EpochGuard,
    ) -> Option<RetiredContent<Page>> {
        let count = self.meta().count;
        self.remove(at, pin);
        let gone = self.page.links()[at + 1].take(pin);
        for i in at + 2..=count {
            self.move_link(i, i - 1, pin);
        }
        gone
    }

    /// Puts another separator in the place of the one at `at`. False if there is no room for it.
    pub(super) fn replace(
        &mut self,
        at: usize,
        entry: &[u8],
        usage: &Arc<Usage>,
        pin: &EpochGuard,
    ) -> bool {
        let mut image = self.image(pin);
        image.remove(at);
        image.insert(at, entry, usage);
        if !image.fits_alone() {
            return false;
        }
        let (low, high) = self.fences(pin);
        let all = 0..image.len();
        self.rebuild(&image, all, low.as_deref(), high.as_deref(), usage, pin);
        true
    }

    fn move_link(&self, from: usize, to: usize, pin: &EpochGuard) {
        if let Some(link) = self.page.links()[from].take(pin) {
            self.page.links()[to].put(link, pin);
        }
    }

    /// Takes all links out, those of absent leaves as nothing.
    pub(super) fn take_links(&mut self, pin: &EpochGuard) -> Vec<Option<RetiredContent<Page>>> {
        self.changed = true;
        let links = &self.page.links()[..=self.meta().count];
        links.iter().map(|link| link.take(pin)).collect()
    }

    /// Puts links in, from the first place on; the places were empty.
    pub(super) fn put_links(
        &mut self,
        links: impl IntoIterator<Item = Option<RetiredContent<Page>>>,
        pin: &EpochGuard,
    ) {
        self.changed = true;
        for (at, link) in links.into_iter().enumerate() {
            if let Some(link) = link {
                self.page.links()[at].put(link, pin);
            }
        }
    }

    /// Takes one link out: its leaf is absent from here on.
    pub(super) fn take_link(
        &mut self,
        at: usize,
        pin: &EpochGuard,
    ) -> Option<RetiredContent<Page>> {
        self.changed = true;
        self.page.links()[at].take(pin)
    }

    /// Puts one in: its leaf is there.
    pub(super) fn put_link(&mut self, at: usize, link: RetiredContent<Page>, pin: &EpochGuard) {
        self.changed = true;
        self.page.links()[at].put(link, pin);
    }

    fn set_blobs(&self, table: Blobs, pin: &EpochGuard) {
        if table.is_empty() {
            drop(self.page.blobs.take(pin));
        } else {
            self.page
                .blobs
                .put(RetiredContent::new(Box::new(table)), pin);
        }
    }

    /// The page's entries.
    pub(super) fn image(&self, pin: &EpochGuard) -> PageImage {
        let meta = self.meta();
        let mut image = PageImage::default();
        for at in 0..meta.count {
            let slot = self.slot(at);
            let item = match self.slot_blob(slot, pin) {
                Some(blob) => Item::Outside(blob.clone()),
                None => {
                    let start = image.bytes.len();
                    self.copy_entry(meta, slot, pin, &mut image.bytes);
                    Item::Inline(start..image.bytes.len())
                }
            };
            image.items.push(item);
        }
        image
    }

    /// The page's fences.
    pub(super) fn fences(&self, pin: &EpochGuard) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let [low, high] = [&self.page.low, &self.page.high].map(|fence| {
            let mut bytes = Vec::new();
            self.copy_fence(fence, pin, &mut bytes).then_some(bytes)
        });
        (low, high)
    }

    /// Writes the page anew: the image's entries in `range`, between the fences. Links stay as they are.
    pub(super) fn rebuild(
        &mut self,
        image: &PageImage,
        range: Range<usize>,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        usage: &Arc<Usage>,
        pin: &EpochGuard,
    ) {
        self.changed = true;
        let mut draft = PageBuilder::new(image, range);
        let room = |draft: &PageBuilder, fence: Option<&[u8]>| {
            fence.is_none_or(|f| f.len() <= FENCE_BYTES_MAX && f.len() <= draft.room())
        };
        let low_in_heap = room(&draft, low);
        let low = draft.fence(low, low_in_heap, usage);
        let high_in_heap = room(&draft, high);
        let high = draft.fence(high, high_in_heap, usage);
        for (at, word) in draft.words.iter().enumerate() {
            if at < draft.meta.count || at >= draft.meta.heap / 8 {
                self.set(at, *word);
            }
        }
        self.set_meta(draft.meta);
        self.page.low.store(low.pack(), Relaxed);
        self.page.high.store(high.pack(), Relaxed);
        self.set_blobs(draft.blobs, pin);
    }
}

/// A page in the making.
struct PageBuilder {
    words: Box<[u64; WORDS]>,
    meta: Meta,
    blobs: Blobs,
}

impl PageBuilder {
    fn new(image: &PageImage, range: Range<usize>) -> PageBuilder {
        let mut draft = PageBuilder {
            words: Box::new([0; WORDS]),
            meta: Meta {
                heap: HEAP_END,
                prefix: image.prefix(&range),
                ..Meta::default()
            },
            blobs: Blobs::default(),
        };
        assert!(
            image.entries_bytes(&range) <= HEAP_END,
            "who rebuilds a page knows that it fits"
        );
        let prefix = draft.meta.prefix;
        if prefix > 0 {
            draft.write(&image.entry(range.start)[..prefix]);
        }
        for at in range {
            let suffix = &image.entry(at)[prefix..];
            let head = head_of(suffix);
            let slot = match &image.items[at] {
                Item::Outside(blob) => Slot::new(head, draft.blobs.add(blob.clone()), BLOB),
                Item::Inline(_) => {
                    let offset = draft.write(suffix.get(HEAD_BYTES..).unwrap_or_default());
                    Slot::new(head, offset, suffix.len() as u16)
                }
            };
            draft.words[draft.meta.count] = slot.0;
            draft.meta.count += 1;
        }
        draft
    }

    /// Bytes between slots and heap.
    fn room(&self) -> usize {
        self.meta.heap - self.meta.count * 8
    }

    /// Puts bytes into the heap and gives their offset.
    fn write(&mut self, bytes: &[u8]) -> u16 {
        self.meta.heap -= bytes.len();
        for (i, byte) in bytes.iter().enumerate() {
            let at = self.meta.heap + i;
            self.words[at / 8] |= u64::from(*byte) << (56 - at % 8 * 8);
        }
        self.meta.heap as u16
    }

    fn fence(&mut self, fence: Option<&[u8]>, in_heap: bool, usage: &Arc<Usage>) -> FenceLocation {
        match fence {
            None => FenceLocation::None,
            Some(bytes) if in_heap => FenceLocation::Heap {
                length: bytes.len() as u16,
                offset: self.write(bytes),
            },
            Some(bytes) => FenceLocation::Blob {
                number: self.blobs.add(Blob::new(bytes, usage)),
            },
        }
    }
}

/// A page that nobody else can see yet.
pub(super) fn fresh(level: u8, usage: &Usage) -> Box<Page> {
    Box::new(Page::new(level, usage.memory()))
}

/// What a cell holds, to be put into a page's links.
pub(super) fn boxed(page: Box<Page>) -> RetiredContent<Page> {
    RetiredContent::new(page)
}

/// All cells empty from `count` on? For checking.
pub(super) fn links_end(links: &[EpochCell<Page>], count: usize, pin: &EpochGuard) -> bool {
    links
        .iter()
        .skip(count)
        .all(|link| link.load(pin).is_none())
}
