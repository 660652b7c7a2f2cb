//! A tree of which nothing is in memory, as a start makes it; where its leaves begin is found out when somebody needs
//! them.
//!
//! # Ranges
//!
//! A link to a leaf that is absent may stand for several leaves: a *range*. At first all of the tree is one. Whoever
//! needs a leaf is told where the range begins, as if it were a leaf; who loads it divides it
//! ([`Tree::load_or_divide`]) by places at which stored tiles begin, and whoever needed it comes again and meets a
//! smaller one, until it is a single tile, which is loaded. So a start reads nothing, and the first use of a leaf reads
//! a node of each level of the directory.
//!
//! - R1 `ranges` has where each range begins. It is changed before the lock of the page with their links is given back,
//!   so whoever meets a link knows what it stands for.
//! - R2 A range is absent, so nothing in it changes (L1): whatever newer checkpoints there are, all have the same tiles
//!   of it, and a range begins and ends where tiles do. Nobody knows a place within it, so who loads or divides it has
//!   it alone (L2).
//!
//! # Late entries
//!
//! A start has entries for leaves that are absent: those of rows that the log behind the checkpoint has inserted. They
//! are kept in order, and put in when their leaf is loaded, before anybody sees that.
//!
//! - R3 A late entry lies in an absent leaf or range, until it is put in; entries become late while nobody uses the
//!   tree yet. So no operation misses one: it needs the leaf first.
//! - R4 A leaf with late entries put in is not clean: the next walk of a checkpoint gives it. A walk passes over absent
//!   leaves, so whoever begins one has brought in those with late entries before ([`Tree::first_late_leaf`]).

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use logstead_checkpoint::TileBoundaries;
use parking_lot::Mutex;

use super::absent::{AbsentLeaf, LeafMismatch};
use super::cell::EpochGuard;
use super::edit::{PageImage, boxed, fresh};
use super::page::{HEAP_END, LINKS_MAX};
use super::{Relaxed, SearchStop, Tree};
use crate::memory::{Memory, footprint};

/// A range is divided by separators of at most so many bytes at once, and at most so many: their page has room for
/// them.
const DIVIDED_BYTES_MAX: usize = HEAP_END / 2;
const DIVIDED_MAX: usize = LINKS_MAX / 2;
/// What a late entry takes beside its bytes.
const LATE_BYTES: usize = 2 * size_of::<Box<[u8]>>();

/// Entries that are put in when their leaf is.
pub(super) struct DeferredInserts {
    entries: Mutex<BTreeSet<Box<[u8]>>>,
    /// How many: spares others the mutex.
    count: AtomicUsize,
    memory: &'static Memory,
}

fn late_bytes(entry: &[u8]) -> i64 {
    (footprint(entry.len()) + LATE_BYTES) as i64
}

impl DeferredInserts {
    pub(super) fn new(memory: &'static Memory) -> DeferredInserts {
        DeferredInserts {
            entries: Mutex::default(),
            count: AtomicUsize::new(0),
            memory,
        }
    }

    fn is_empty(&self) -> bool {
        self.count.load(SeqCst) == 0
    }

    /// Those of a leaf or range.
    pub(super) fn within(&self, low: &[u8], high: Option<&[u8]>) -> Vec<Box<[u8]>> {
        if self.is_empty() {
            return Vec::new();
        }
        let to = high.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.entries.lock();
        let within = entries.range::<[u8], _>((Bound::Included(low), to));
        within.cloned().collect()
    }

    /// They are in the tree.
    pub(super) fn put_in(&self, put_in: &[Box<[u8]>]) {
        if put_in.is_empty() {
            return;
        }
        let mut entries = self.entries.lock();
        for entry in put_in {
            if entries.remove(entry) {
                self.memory.add(-late_bytes(entry));
            }
        }
        self.count.store(entries.len(), SeqCst);
    }
}

impl Drop for DeferredInserts {
    fn drop(&mut self) {
        let bytes: i64 = self.entries.get_mut().iter().map(|e| late_bytes(e)).sum();
        self.memory.add(-bytes);
    }
}

/// Up to so many separators as can be put into a page at once, evenly chosen.
fn chosen(lows: &[Vec<u8>]) -> Vec<&[u8]> {
    let bytes: usize = lows.iter().map(|low| low.len() + 8).sum();
    let parts = bytes.div_ceil(DIVIDED_BYTES_MAX);
    let step = parts.max(lows.len().div_ceil(DIVIDED_MAX)).max(1);
    let mut left = DIVIDED_BYTES_MAX;
    let mut chosen: Vec<&[u8]> = Vec::new();
    for low in lows.iter().skip(step / 2).step_by(step) {
        let taken = low.len() + 8;
        if taken > left && !chosen.is_empty() {
            break;
        }
        left = left.saturating_sub(taken);
        chosen.push(low);
    }
    chosen
}

impl Tree {
    /// A tree that is stored and absent, all of it, as published.
    pub(crate) fn restore(memory: &'static Memory, divided: bool) -> Tree {
        let mut tree = Tree::bare(memory, divided);
        let pin = EpochGuard::new();
        // A leaf that is the root is never absent: there is a page above it, which makes way if a single leaf is
        // loaded.
        let root = fresh(1, &tree.usage);
        tree.count_pages(1).fetch_add(1, Relaxed);
        if let Ok(mut page) = root.lock_now() {
            page.rebuild(&PageImage::default(), 0..0, None, None, &tree.usage, &pin);
            page.put_links(vec![None], &pin);
        }
        tree.root.put(boxed(root), &pin);
        tree.ranges.get_mut().insert(Box::default());
        *tree.absent_leaves.get_mut() = 1;
        *tree.walks.get_mut() = LOADED;
        *tree.published.get_mut() = LOADED;
        tree
    }

    /// Does the absent leaf that begins at `low` stand for several, perhaps?
    pub(super) fn is_range(&self, low: &[u8]) -> bool {
        self.ranges.lock().contains(low)
    }

    /// How many links stand for ranges.
    pub(crate) fn range_count(&self) -> usize {
        self.ranges.lock().len()
    }

    /// Divides a range, which the caller alone may do. False: it was a single leaf, and is one now.
    pub(super) fn divide(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
        division: &TileBoundaries,
    ) -> Result<bool, LeafMismatch> {
        let mut last = low;
        for next in &division.lows {
            if next.as_slice() <= last || high.is_some_and(|high| next.as_slice() >= high) {
                return Err(LeafMismatch::Order);
            }
            last = next;
        }
        let lows = chosen(&division.lows);
        if lows.is_empty() {
            if !division.exact {
                return Err(LeafMismatch::Size);
            }
            self.ranges.lock().remove(low);
            return Ok(false);
        }
        let pin = EpochGuard::new();
        let place = Tree::retry(|| self.lock_place(low, &lows, &pin));
        let Ok(Some(mut place)) = place else {
            return Err(LeafMismatch::Size);
        };
        place.put(
            std::iter::repeat_n((), lows.len() + 1)
                .map(|()| None)
                .collect(),
            self,
            &pin,
        );
        self.absent_leaves.fetch_add(lows.len(), Relaxed);
        let mut ranges = self.ranges.lock();
        if division.exact && lows.len() == division.lows.len() {
            ranges.remove(low);
        } else {
            ranges.extend(lows.into_iter().map(Box::from));
        }
        // R1: before the page's lock is given back.
        drop(ranges);
        drop(place);
        Ok(true)
    }

    /// Keeps an entry that lies in an absent leaf until that is loaded (R3). Nobody uses the tree yet.
    pub(crate) fn add_late(&self, entry: &[u8]) {
        let mut entries = self.late.entries.lock();
        if entries.insert(entry.into()) {
            self.late.memory.add(late_bytes(entry));
        }
        self.late.count.store(entries.len(), SeqCst);
    }

    /// How many entries are put in when their leaf is loaded.
    pub(crate) fn late_count(&self) -> usize {
        self.late.count.load(SeqCst)
    }

    /// The absent leaf that the first late entry waits for; nothing if there are none.
    pub(crate) fn first_late_leaf(&self) -> Option<AbsentLeaf> {
        loop {
            if self.late.is_empty() {
                return None;
            }
            let first = self.late.entries.lock().first()?.clone();
            let pin = EpochGuard::new();
            let found = Tree::retry(|| {
                let Ok(above) = self.find_above(&first, &pin)? else {
                    return Ok(None);
                };
                let is_absent = above.page.links()[above.link].load(&pin).is_none();
                let mut low = Vec::new();
                above.page.copy_low_of(above.link, &pin, &mut low);
                above
                    .page
                    .latch
                    .check(above.version)
                    .map_err(SearchStop::from)?;
                Ok(is_absent.then_some(AbsentLeaf { low: low.into() }))
            });
            match found {
                Ok(Some(absent)) => return Some(absent),
                // Its leaf has come in this moment, and it is in there.
                Ok(None) => std::thread::yield_now(),
                // Pages above leaves are never absent.
                Err(absent) => return Some(absent),
            }
        }
    }
}

/// The checkpoint that a tree is restored from counts as its first walk.
const LOADED: u32 = 1;
