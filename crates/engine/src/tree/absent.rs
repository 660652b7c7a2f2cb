//! Leaves that leave memory and come back.
//!
//! Owns: the way of a leaf out of memory ([`Tree::evict`]) and back in ([`Tree::load`]), and what an operation that
//! needs one is told ([`AbsentLeaf`]).
//!
//! # Out
//!
//! Evicted are *clean* leaves ([`super::tiles`]): what is in such a leaf, and its fences, are those of a page that
//! every checkpoint names which was published since. The parent is locked, then the leaf, and it is looked at again
//! under its lock; its link is taken out and it is marked obsolete, as one that is merged away. So a reader that has
//! found it begins again at the root and meets the empty link, a writer cannot lock it any more, and it is freed when
//! nobody looks at it. Nobody is waited for: a leaf that somebody has locked stays.
//!
//! A leaf that was used since the evictor last came by gets a second chance.
//!
//! # Back in
//!
//! - L1 An absent leaf does not change: nothing can be inserted, and it neither splits nor merges, so its fences stay,
//!   be they separators of one parent or, after a split of that, of another.
//! - L2 Of one leaf there is one load at a time (`loading`), from before its page is read until it is there. So what
//!   was read is what the leaf had when it went and has now. Without that rule a slow load could put in what the leaf
//!   had before another one brought it in and it was changed, written and evicted once more.
//! - L3 What is read is looked at: its end must be the leaf's end, its entries in order and within. If they are not
//!   nothing is put in.
//!
//! Entries that take more than a page (it may be that pages were larger when they were written) become several leaves,
//! which count as changed: their fences are not those of a stored page.
//!
//! The same holds for entries of several virtual partitions: late entries of one may wait for an empty stretch of
//! another one's leaf.
//!
//! Does not: read pages, know where they are, or wait.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use logstead_checkpoint::TileBoundaries;

use super::cell::{EpochGuard, RetiredContent};
use super::edit::{PageImage, PageWriteLock, boxed, fresh};
use super::page::{HEAP_END, LINKS_MAX, Page};
use super::reshape::separator;
use super::{Entries, FoundPage, Goal, LatchVersion, SearchStop, Side, Tree};

/// A leaf that is not in memory. What needed it has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbsentLeaf {
    /// Where it begins; empty: with the tree.
    pub(crate) low: Box<[u8]>,
}

/// What eviction has given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafEviction {
    pub(crate) leaves: usize,
    /// What they took; free once nobody looks at them any more.
    pub(crate) bytes: usize,
    /// The hand has come to the end of the tree.
    pub(crate) ended: bool,
}

/// A leaf as it is stored.
#[derive(Default)]
pub(crate) struct StoredLeaf {
    /// Where it ends; nothing: with the tree.
    pub(crate) high: Option<Vec<u8>>,
    /// What is in it, in order.
    pub(crate) entries: Entries,
}

/// Why a leaf was not brought in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoadError<E> {
    /// It could not be read.
    Read(E),
    /// What was read is not that leaf.
    Unfit(LeafMismatch),
}

/// What is wrong with a stored leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafMismatch {
    /// It ends somewhere else than the leaf.
    End,
    /// An entry, or a place where tiles begin, is not above the one before it.
    Order,
    /// An entry is not the leaf's.
    Outside,
    /// It takes more leaves than their parent has room for.
    Size,
}

impl fmt::Display for LeafMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeafMismatch::End => "it does not end where the next leaf begins",
            LeafMismatch::Order => "its entries are not in order",
            LeafMismatch::Outside => "it has entries of other leaves",
            LeafMismatch::Size => "it has more entries than a page of leaves can take",
        })
    }
}

/// The right to put a leaf in (L2).
struct LeafLoadGuard<'t> {
    tree: &'t Tree,
    low: &'t [u8],
}

impl<'t> LeafLoadGuard<'t> {
    /// Nothing: somebody else has it.
    fn begin(tree: &'t Tree, low: &'t [u8]) -> Option<LeafLoadGuard<'t>> {
        let mut loading = tree.loading.lock();
        if loading.iter().any(|other| **other == *low) {
            return None;
        }
        loading.push(low.into());
        Some(LeafLoadGuard { tree, low })
    }
}

impl Drop for LeafLoadGuard<'_> {
    fn drop(&mut self) {
        let mut loading = self.tree.loading.lock();
        loading.retain(|other| **other != *self.low);
    }
}

impl Page {
    /// Why there is no child at a link that a search came to.
    #[cold]
    pub(super) fn without_child(
        &self,
        version: LatchVersion,
        link: usize,
        pin: &EpochGuard,
    ) -> SearchStop {
        let mut low = Vec::new();
        self.copy_low_of(link, pin, &mut low);
        if self.level == 1 && self.latch.check(version).is_ok() {
            SearchStop::Absent(AbsentLeaf { low: low.into() })
        } else {
            SearchStop::Restart
        }
    }

    /// The link that leads to what covers `bytes`.
    pub(super) fn link_to(&self, bytes: &[u8], pin: &EpochGuard) -> usize {
        let place = self.find(self.meta(), bytes, pin);
        place.at + usize::from(place.exact)
    }

    /// What is freed with the page.
    fn evicted_bytes(&self, pin: &EpochGuard) -> usize {
        Page::memory_bytes(self.level)
            + self.blobs.load(pin).map_or(0, |blobs| blobs.memory_bytes())
    }
}

/// A page above the leaves, at a link.
pub(super) struct AboveLeaves<'g> {
    pub(super) page: &'g Page,
    pub(super) version: LatchVersion,
    /// Leads to the leaf that was looked for.
    pub(super) link: usize,
    /// Its last link.
    pub(super) last: usize,
}

impl Tree {
    /// The page above the leaf that covers `bytes`, or that leaf if it is the root.
    pub(super) fn find_above<'g>(
        &'g self,
        bytes: &[u8],
        pin: &'g EpochGuard,
    ) -> Result<Result<AboveLeaves<'g>, FoundPage<'g>>, SearchStop> {
        let top = self.latch.read()?;
        let is_leaf = self.root.load(pin).ok_or(SearchStop::Restart)?.is_leaf();
        self.latch.check(top)?;
        let goal = Goal::At(bytes, Side::From);
        let found = self.find(goal, u8::from(!is_leaf), pin)?;
        if is_leaf {
            return match found.parent {
                None => Ok(Err(found)),
                // It is not the root any more.
                Some(_) => Err(SearchStop::Restart),
            };
        }
        let (page, version) = (found.page, found.version);
        let link = page.link_to(bytes, pin);
        let last = page.meta().count.min(LINKS_MAX - 1);
        page.latch.check(version)?;
        Ok(Ok(AboveLeaves {
            page,
            version,
            link,
            last,
        }))
    }

    /// Takes clean leaves that nobody has used since the hand was there last out of memory, from the hand on, until
    /// they take `bytes`. Stops at the end of the tree at the latest; the next call begins again at its start. One at a
    /// time.
    pub(crate) fn evict(&self, bytes: usize) -> LeafEviction {
        let mut hand = self.hand.lock();
        self.evict_from(&mut hand, bytes, Page::take_touched)
    }

    /// Takes all clean leaves out of memory, used or not.
    pub(crate) fn evict_all(&self) -> LeafEviction {
        self.evict_from(&mut Vec::new(), usize::MAX, |_| false)
    }

    fn evict_from(
        &self,
        hand: &mut Vec<u8>,
        bytes: usize,
        spare: fn(&Page) -> bool,
    ) -> LeafEviction {
        let mut evicted = LeafEviction::default();
        let mut next = Vec::new();
        while !evicted.ended && evicted.bytes < bytes {
            // A pin per page: what is given up is to be freed.
            let pin = EpochGuard::new();
            let step =
                Tree::retry(|| self.evict_some(hand, bytes, spare, &mut evicted, &mut next, &pin));
            // Pages above leaves are never absent.
            let more = step.unwrap_or(false);
            std::mem::swap(hand, &mut next);
            if !more {
                hand.clear();
                evicted.ended = true;
            }
        }
        evicted
    }

    /// Goes over the leaves of one parent. Stores where to go on; false at the end.
    fn evict_some(
        &self,
        from: &[u8],
        bytes: usize,
        spare: fn(&Page) -> bool,
        evicted: &mut LeafEviction,
        next: &mut Vec<u8>,
        pin: &EpochGuard,
    ) -> Result<bool, SearchStop> {
        next.clear();
        let published = self.published.load(Acquire);
        let Ok(above) = self.find_above(from, pin)? else {
            return Ok(false);
        };
        let AboveLeaves { page, last, .. } = above;
        let links = &page.links()[above.link..=last];
        let candidates: Vec<usize> = links
            .iter()
            .enumerate()
            .filter(|(_, link)| {
                link.load(pin)
                    .is_some_and(|leaf| leaf.is_clean(published) && !spare(leaf))
            })
            .map(|(at, _)| above.link + at)
            .collect();
        if candidates.is_empty() {
            let more = page.copy_high_of(last, pin, next);
            page.latch.check(above.version)?;
            return Ok(more);
        }
        let mut parent = page.lock(above.version)?;
        let mut end = last;
        for at in candidates {
            if evicted.bytes >= bytes {
                end = at - 1;
                break;
            }
            let Some(leaf) = page.links()[at].load(pin) else {
                continue;
            };
            // Somebody has use for it.
            let Ok(mut leaf) = leaf.lock_now() else {
                continue;
            };
            if !leaf.is_clean(published) {
                continue;
            }
            evicted.leaves += 1;
            evicted.bytes += leaf.page().evicted_bytes(pin);
            leaf.retire();
            drop(parent.take_link(at, pin));
            self.leaves.fetch_sub(1, Relaxed);
            self.absent_leaves.fetch_add(1, Relaxed);
        }
        Ok(page.copy_high_of(end, pin, next))
    }

    /// Brings in the leaf that begins at `low`, if it is absent and nobody else does: `read` is called then and gives
    /// what is stored. It must look for it in the newest published checkpoint, as of its call. Whoever needs the leaf
    /// tries again in any case, and comes back if it is, or another one, absent. If that stands for a range, `divide`
    /// is called first, with where it ends, and gives places where stored tiles begin; if there are some, nothing is
    /// read.
    pub(crate) fn load_or_divide<E>(
        &self,
        low: &[u8],
        divide: impl FnOnce(Option<&[u8]>) -> Result<TileBoundaries, E>,
        read: impl FnOnce() -> Result<StoredLeaf, E>,
    ) -> Result<(), LoadError<E>> {
        let Some(_loading) = LeafLoadGuard::begin(self, low) else {
            return Ok(());
        };
        let pin = EpochGuard::new();
        let Some(high) = self.absent_end(low, &pin) else {
            return Ok(());
        };
        // The home may take its time.
        drop(pin);
        let high = high.as_deref();
        if self.is_range(low) {
            let division = divide(high).map_err(LoadError::Read)?;
            let divided = self.divide(low, high, &division);
            if divided.map_err(LoadError::Unfit)? {
                return Ok(());
            }
        }
        let stored = read().map_err(LoadError::Read)?;
        let late = self.late.within(low, high);
        let image = stored
            .image(low, high, &late, self)
            .map_err(LoadError::Unfit)?;
        let pin = EpochGuard::new();
        let leaves = self.leaves_of(&image, low, high, late.is_empty(), &pin);
        self.put_absent(low, leaves, &pin)
            .map_err(LoadError::Unfit)?;
        self.late.put_in(&late);
        Ok(())
    }

    /// Where the leaf that begins at `low` ends, if it is absent.
    fn absent_end(&self, low: &[u8], pin: &EpochGuard) -> Option<Option<Vec<u8>>> {
        let found = Tree::retry(|| {
            let Ok(above) = self.find_above(low, pin)? else {
                return Ok(None);
            };
            let (page, link) = (above.page, above.link);
            let is_absent = page.links()[link].load(pin).is_none();
            let (mut begin, mut end) = (Vec::new(), Vec::new());
            page.copy_low_of(link, pin, &mut begin);
            let has_end = page.copy_high_of(link, pin, &mut end);
            page.latch.check(above.version)?;
            Ok((is_absent && begin == low).then_some(has_end.then_some(end)))
        });
        found.unwrap_or(None)
    }

    /// The first absent leaf that ends above `from`.
    pub(crate) fn next_absent(&self, from: &[u8]) -> Option<AbsentLeaf> {
        let pin = EpochGuard::new();
        let mut from = from.to_vec();
        let mut next = Vec::new();
        loop {
            let step = Tree::retry(|| {
                next.clear();
                let Ok(above) = self.find_above(&from, &pin)? else {
                    return Ok((None, false));
                };
                let AboveLeaves {
                    page, link, last, ..
                } = above;
                let absent = (link..=last).find(|at| page.links()[*at].load(&pin).is_none());
                let more = match absent {
                    Some(at) => {
                        page.copy_low_of(at, &pin, &mut next);
                        false
                    }
                    None => page.copy_high_of(last, &pin, &mut next),
                };
                page.latch.check(above.version)?;
                Ok((absent, more))
            });
            match step {
                Ok((None, true)) => std::mem::swap(&mut from, &mut next),
                Ok((Some(_), _)) => return Some(AbsentLeaf { low: next.into() }),
                Ok((None, false)) => return None,
                // Pages above leaves are never absent.
                Err(absent) => return Some(absent),
            }
        }
    }

    /// Pages for the entries of a leaf: one, if they are not too many. It is clean if all of them are stored. Nobody
    /// else sees them yet.
    fn leaves_of(
        &self,
        image: &PageImage,
        low: &[u8],
        high: Option<&[u8]>,
        is_stored: bool,
        pin: &EpochGuard,
    ) -> Vec<NewLeaf> {
        let parts = parts(image, self.divided);
        let is_whole = is_stored && parts.len() == 1;
        let lows: Vec<&[u8]> = parts
            .iter()
            .map(|part| match part.start.checked_sub(1) {
                Some(last) => separator(image.entry(last), image.entry(part.start)),
                None => low,
            })
            .collect();
        let published = self.published.load(Acquire);
        let leaf = |(at, part): (usize, Range<usize>)| {
            let page = fresh(0, &self.usage);
            if let Ok(mut leaf) = page.lock_now() {
                let low = Some(lows[at]).filter(|low| !low.is_empty());
                let high = lows.get(at + 1).copied().or(high);
                leaf.rebuild(image, part, low, high, &self.usage, pin);
            }
            if is_whole && let Ok(leaf) = page.lock_now() {
                leaf.set_written_in(published);
            }
            NewLeaf {
                low: lows[at].to_vec(),
                page: boxed(page),
            }
        };
        parts.into_iter().enumerate().map(leaf).collect()
    }

    /// Puts leaves in the place of the absent one that begins at `low`. Only this thread may do so (L2), so it is
    /// absent.
    fn put_absent(
        &self,
        low: &[u8],
        leaves: Vec<NewLeaf>,
        pin: &EpochGuard,
    ) -> Result<(), LeafMismatch> {
        let count = leaves.len();
        let more: Vec<&[u8]> = leaves[1..].iter().map(|leaf| &leaf.low[..]).collect();
        let place = Tree::retry(|| self.lock_place(low, &more, pin));
        let Ok(Some(mut place)) = place else {
            return Err(LeafMismatch::Size);
        };
        let pages = leaves.into_iter().map(|leaf| Some(leaf.page));
        place.put(pages.collect(), self, pin);
        let parent = place.parent;
        self.leaves.fetch_add(count, Relaxed);
        self.absent_leaves.fetch_sub(1, Relaxed);
        let is_alone = parent.meta().count == 0;
        drop(parent);
        if is_alone {
            // If the parent is the root it makes way for the leaf, as it could not while that was absent.
            self.consolidate(low, 1, pin);
        }
        Ok(())
    }

    /// Locks the parent of the leaf that begins at `low`, with room for `more` separators. Nothing if there cannot be.
    pub(super) fn lock_place<'g>(
        &'g self,
        low: &[u8],
        more: &[&[u8]],
        pin: &'g EpochGuard,
    ) -> Result<Option<LeafPosition<'g>>, SearchStop> {
        let Ok(above) = self.find_above(low, pin)? else {
            return Ok(None);
        };
        let parent = above.page.lock(above.version)?;
        let link = above.link;
        if more.is_empty() {
            return Ok(Some(LeafPosition {
                parent,
                link,
                separators: None,
            }));
        }
        let separators = parent.with_separators(link, more, self, pin);
        if separators.is_some() {
            return Ok(Some(LeafPosition {
                parent,
                link,
                separators,
            }));
        }
        if parent.meta().count < SPLIT_SEPARATORS_MIN {
            return Ok(None);
        }
        drop(parent);
        self.split_unless(low, 1, pin, |page| {
            page.meta().count < SPLIT_SEPARATORS_MIN
                || page
                    .with_separators(page.link_to(low, pin), more, self, pin)
                    .is_some()
        })?;
        Err(SearchStop::Restart)
    }
}

/// An inner page with fewer separators is not worth splitting for room.
const SPLIT_SEPARATORS_MIN: usize = 2;

/// A leaf that nobody else sees yet.
struct NewLeaf {
    low: Vec<u8>,
    page: RetiredContent<Page>,
}

/// Where an absent leaf is to be put.
pub(super) struct LeafPosition<'g> {
    parent: PageWriteLock<'g>,
    link: usize,
    /// The parent's separators with those between several leaves.
    separators: Option<PageImage>,
}

impl LeafPosition<'_> {
    /// Puts leaves, or nothing for those that are absent, in the place of the absent one.
    pub(super) fn put(
        &mut self,
        leaves: Vec<Option<RetiredContent<Page>>>,
        tree: &Tree,
        pin: &EpochGuard,
    ) {
        let (parent, link) = (&mut self.parent, self.link);
        match self.separators.take() {
            None => leaves
                .into_iter()
                .flatten()
                .for_each(|leaf| parent.put_link(link, leaf, pin)),
            Some(separators) => {
                let mut links = parent.take_links(pin);
                links.splice(link..=link, leaves);
                let (low, high) = parent.fences(pin);
                let all = 0..separators.len();
                let (low, high) = (low.as_deref(), high.as_deref());
                parent.rebuild(&separators, all, low, high, &tree.usage, pin);
                parent.put_links(links, pin);
            }
        }
    }
}

impl PageWriteLock<'_> {
    /// The page's separators with `more` behind the link, if they fit.
    fn with_separators(
        &self,
        link: usize,
        more: &[&[u8]],
        tree: &Tree,
        pin: &EpochGuard,
    ) -> Option<PageImage> {
        let mut image = self.image(pin);
        for (n, separator) in more.iter().enumerate() {
            image.insert(link + n, separator, &tree.usage);
        }
        let fits = image.len() < LINKS_MAX && image.fits(0..image.len(), 0);
        fits.then_some(image)
    }
}

/// What goes into one page each. If the index is `divided`, a page has entries of one virtual partition.
fn parts(image: &PageImage, divided: bool) -> Vec<Range<usize>> {
    let all = 0..image.len();
    let first_byte = |at: usize| image.entry(at).first();
    let is_border = |end: usize| divided && first_byte(end - 1) != first_byte(end);
    let borders = divided && (1..image.len()).any(is_border);
    if !borders && image.entries_bytes(&all) <= HEAP_END {
        return vec![all];
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for end in 1..=image.len() {
        if end == image.len() || is_border(end) || !image.fits(start..end + 1, 0) {
            parts.push(start..end);
            start = end;
        }
    }
    parts
}

impl StoredLeaf {
    /// The entries of the leaf between two fences, if that is what it is (L3), with those that are `late`, in order.
    fn image(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
        late: &[Box<[u8]>],
        tree: &Tree,
    ) -> Result<PageImage, LeafMismatch> {
        if self.high.as_deref() != high {
            return Err(LeafMismatch::End);
        }
        let mut image = PageImage::default();
        let mut last: Option<&[u8]> = None;
        let mut late = late.iter().peekable();
        for entry in (0..self.entries.len()).map(|at| self.entries.get(at)) {
            if last.is_some_and(|last| last >= entry) {
                return Err(LeafMismatch::Order);
            }
            if entry < low || high.is_some_and(|high| entry >= high) {
                return Err(LeafMismatch::Outside);
            }
            while let Some(late) = late.next_if(|late| ***late < *entry) {
                image.insert(image.len(), late, &tree.usage);
            }
            // One that is stored as well.
            let _stored = late.next_if(|late| ***late == *entry);
            image.insert(image.len(), entry, &tree.usage);
            last = Some(entry);
        }
        for late in late {
            image.insert(image.len(), late, &tree.usage);
        }
        Ok(image)
    }
}
