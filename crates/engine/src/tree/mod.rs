//! A B+-tree of byte strings that many threads read and change at once.
//!
//! # Optimistic lock coupling
//!
//! Every page has a version word ([`latch`]). Readers take no locks: they note a page's version, read, and check that
//! it still stands; if it does not, they begin again at the root. On the way down they note the child's version before
//! they check the parent's: at that moment the parent led to the child and the child covered what they look for.
//! Writers come down in the same way and lock the leaf at the version they noted, so it is still the right one. Nobody
//! else is locked, except for splits and merges, which lock the parent and the pages they change ([`reshape`]).
//!
//! Locks are taken without waiting: who does not get one lets go of all he has and begins again. So there are no
//! deadlocks among them. The exception is [`Tree::insert_and_check`], which holds the leaf that stands for a key and
//! waits for leaves to the right of it; since all such waits go to the right, they cannot close a circle, and since
//! nobody else waits with a lock in his hand, they end.
//!
//! Pages that have left the tree are freed when nobody can look at them any more ([`cell`]).
//!
//! # What stands for a key
//!
//! Entries are a key and a rid. A key's entries can span leaves, but exactly one leaf covers the bare key, which is
//! below all of them. Its lock is the key's lock (T11): while it is held the leaf neither splits nor merges, so every
//! checker of the key comes to the same one.
//!
//! # Absent leaves
//!
//! A leaf whose stored page says all that is in it can be given up ([`absent`]): its place in the parent is empty then,
//! and its fences are the parent's separators beside that. Whoever needs it gets [`AbsentLeaf`], and has changed
//! nothing: it is brought in, and he begins again. After a start it may stand for several ([`restore`]). A leaf that is
//! the root is never absent, inner pages never are. What is written for a checkpoint, and when a leaf is as it is
//! written, is told in [`tiles`].
//!
//! # Invariants
//!
//! - I1 The pages of a level cover all byte strings, each once: one's high fence is the next one's low fence.
//! - I2 A page's entries are in order, within its fences, and begin with its prefix.
//! - I3 Link `i` of an inner page leads to a page of the level below whose fences are the separators beside the link,
//!   or the page's own fences at its ends. Only a link to a leaf may be empty: between its fences lies what is stored.
//! - I4 A page is changed under its lock only, and its version moves when it is.
//! - I5 In the tree of a divided index all entries of a leaf have the same first byte, which is their virtual
//!   partition. Whoever inserts an entry of another one splits the leaf there, and leaves that are not empty are not
//!   merged across it.
//!
//! [`Tree::check`] looks at all of them.

mod absent;
mod blob;
#[allow(
    unsafe_code,
    reason = "epoch-protected places: the tree's one module with unsafe code"
)]
mod cell;
mod check;
mod edit;
pub(crate) mod interleave;
mod latch;
mod page;
mod reshape;
mod resident;
mod restore;
mod tiles;
mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use parking_lot::Mutex;
use smallvec::SmallVec;

pub(crate) use absent::{AbsentLeaf, LeafEviction, LoadError, StoredLeaf};
pub use check::TreeReport;
pub(crate) use resident::ResidentLeaves;
pub(crate) use tiles::{LeafWalk, Tile};
pub(crate) use walk::Entries;

use blob::Usage;
use cell::{EpochCell, EpochGuard, RetiredContent};
use edit::{EntryFit, PageWriteLock};
use latch::{Latch, LatchVersion, Restart, pause};
use page::{EntryPosition, Page, RID_BYTES};

use crate::memory::Memory;

/// A B+-tree.
pub(crate) struct Tree {
    /// Guards `root`, as a parent's latch guards its links.
    latch: Latch,
    root: EpochCell<Page>,
    /// Those in memory.
    leaves: AtomicUsize,
    absent_leaves: AtomicUsize,
    inner_pages: AtomicUsize,
    usage: Arc<Usage>,
    /// The newest walk whose tiles are published; see [`tiles`].
    published: AtomicU32,
    /// Walks begun.
    walks: AtomicU32,
    /// Where absent leaves begin that stand for several, perhaps; see [`restore`].
    ranges: Mutex<BTreeSet<Box<[u8]>>>,
    late: restore::DeferredInserts,
    /// Where absent leaves begin that are being loaded.
    loading: Mutex<Vec<Box<[u8]>>>,
    /// How far the evictor has come.
    hand: Mutex<Vec<u8>>,
    /// Of a divided index (I5).
    divided: bool,
}

/// Which child of a page a search takes if a separator is just what it looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The one whose entries begin there.
    From,
    /// The one whose entries end below it.
    Below,
}

/// What a search looks for.
#[derive(Clone, Copy)]
enum Goal<'k> {
    At(&'k [u8], Side),
    /// Above everything.
    End,
}

/// Why an attempt has come to nothing.
#[derive(Debug)]
enum SearchStop {
    /// Something moved: begin again.
    Restart,
    /// It cannot be done without this leaf.
    Absent(AbsentLeaf),
}

impl From<Restart> for SearchStop {
    #[inline]
    fn from(Restart: Restart) -> SearchStop {
        SearchStop::Restart
    }
}

/// A page found, with its parent as it was.
struct FoundPage<'g> {
    parent: Option<(&'g Page, LatchVersion)>,
    /// Of the latch above the root.
    top: LatchVersion,
    page: &'g Page,
    version: LatchVersion,
}

impl Tree {
    /// An empty one, of an index that is divided, or not.
    pub(crate) fn new(memory: &'static Memory, divided: bool) -> Tree {
        let tree = Tree::bare(memory, divided);
        let root = edit::fresh(0, &tree.usage);
        tree.count_pages(0).fetch_add(1, Relaxed);
        tree.root.put(RetiredContent::new(root), &EpochGuard::new());
        tree
    }

    /// A tree that has no root yet.
    fn bare(memory: &'static Memory, divided: bool) -> Tree {
        Tree {
            latch: Latch::new(),
            root: EpochCell::EMPTY,
            leaves: AtomicUsize::new(0),
            absent_leaves: AtomicUsize::new(0),
            inner_pages: AtomicUsize::new(0),
            usage: Usage::new(memory),
            published: AtomicU32::new(page::NOT_WRITTEN),
            walks: AtomicU32::new(page::NOT_WRITTEN),
            ranges: Mutex::default(),
            late: restore::DeferredInserts::new(memory),
            loading: Mutex::default(),
            hand: Mutex::default(),
            divided,
        }
    }

    /// Leaves that are not in memory.
    pub(crate) fn absent_leaves(&self) -> usize {
        self.absent_leaves.load(Relaxed)
    }

    /// What the tree takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Tree>()
            + self.leaves.load(Relaxed) * Page::memory_bytes(0)
            + self.inner_pages.load(Relaxed) * Page::memory_bytes(1)
            + self.usage.blob_bytes()
    }

    fn count_pages(&self, level: u8) -> &AtomicUsize {
        if level == 0 {
            &self.leaves
        } else {
            &self.inner_pages
        }
    }

    /// The page of `level` that covers what is looked for.
    #[inline]
    fn find<'g>(
        &'g self,
        goal: Goal<'_>,
        level: u8,
        pin: &'g EpochGuard,
    ) -> Result<FoundPage<'g>, SearchStop> {
        let top = self.latch.read()?;
        let mut page = self.root.load(pin).ok_or(Restart)?;
        let mut version = page.latch.read()?;
        self.latch.check(top)?;
        let mut parent = None;
        while page.level > level {
            let meta = page.meta();
            let link = match goal {
                Goal::End => meta.count,
                Goal::At(bytes, side) => {
                    let place = page.find(meta, bytes, pin);
                    place.at + usize::from(place.exact && side == Side::From)
                }
            };
            let Some(child) = page.links().get(link).and_then(|link| link.load(pin)) else {
                return Err(page.without_child(version, link, pin));
            };
            let below = child.latch.read()?;
            page.latch.check(version)?;
            parent = Some((page, version));
            (page, version) = (child, below);
        }
        if page.level < level {
            return Err(SearchStop::Restart);
        }
        if level == 0 {
            page.touch();
        }
        Ok(FoundPage {
            parent,
            top,
            page,
            version,
        })
    }

    /// Runs `attempt` until it does not have to begin again.
    #[inline]
    fn retry<T>(mut attempt: impl FnMut() -> Result<T, SearchStop>) -> Result<T, AbsentLeaf> {
        let mut spins = 0;
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(SearchStop::Restart) => pause(&mut spins),
                Err(SearchStop::Absent(absent)) => return Err(absent),
            }
        }
    }

    /// The leaf that covers `bytes`, locked.
    fn lock_leaf<'g>(
        &'g self,
        bytes: &[u8],
        pin: &'g EpochGuard,
    ) -> Result<PageWriteLock<'g>, AbsentLeaf> {
        Self::retry(|| {
            let found = self.find(Goal::At(bytes, Side::From), 0, pin)?;
            Ok(found.page.lock(found.version)?)
        })
    }

    /// Inserts `entry` if it is not there.
    pub(crate) fn insert(&self, entry: &[u8]) -> Result<(), AbsentLeaf> {
        let pin = EpochGuard::new();
        loop {
            let mut leaf = self.lock_leaf(entry, &pin)?;
            let place = leaf.find(leaf.meta(), entry, &pin);
            if place.exact {
                return Ok(());
            }
            let fit = self.fit(&leaf, place, entry, &pin);
            if fit != EntryFit::No {
                leaf.insert(place, fit, entry, None, &self.usage, &pin);
                return Ok(());
            }
            drop(leaf);
            self.make_room(entry, 0, &pin)?;
        }
    }

    /// Inserts `entry`, a key and a rid, and calls `judge` with every other rid that has an entry of the key, with no
    /// other call of this for the key in between. If it refuses, its answer is given and the entry is not inserted; if
    /// it was there before, it stays. Nobody is judged if a leaf is absent that the key's entries, or the new one, are
    /// in: nothing is loaded under the key's lock.
    pub(crate) fn insert_and_check<E>(
        &self,
        entry: &[u8],
        mut judge: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Result<(), E>, AbsentLeaf> {
        let Some((key, own)) = entry.split_last_chunk::<RID_BYTES>() else {
            return Ok(Ok(()));
        };
        let own = u64::from_be_bytes(*own);
        let pin = EpochGuard::new();
        loop {
            // The key's lock, held to the end.
            let mut home = self.lock_leaf(key, &pin)?;
            let meta = home.meta();
            let first = home.find(meta, key, &pin);
            let mut others: SmallVec<[u64; 8]> = SmallVec::new();
            let mut other_leaf = None;
            // Mostly there is no entry of the key and one of a higher key follows, which says it all.
            let next = (first.at < meta.count).then(|| home.slot(first.at));
            let alone = next.is_some_and(|slot| home.rid_of_key(meta, slot, key, &pin).is_none());
            let place = if alone {
                EntryPosition {
                    at: first.at,
                    exact: false,
                }
            } else {
                if self.rids_in(&home, first.at, key, &pin, &mut others) {
                    self.rids_beyond(&home, key, &pin, &mut others)?;
                }
                // The leaf the entry belongs to, if it is another one: to the right of the key's.
                if !home.covers(entry, &pin) {
                    other_leaf = Some(self.lock_leaf(entry, &pin)?);
                }
                let leaf = other_leaf.as_ref().unwrap_or(&home);
                leaf.find(leaf.meta(), entry, &pin)
            };
            let leaf = other_leaf.as_mut().unwrap_or(&mut home);
            let fit = if place.exact {
                EntryFit::InPlace
            } else {
                self.fit(leaf, place, entry, &pin)
            };
            if fit == EntryFit::No {
                // Before anybody is judged: from here on nothing may fail.
                drop(other_leaf);
                drop(home);
                self.make_room(entry, 0, &pin)?;
                continue;
            }
            for rid in others.into_iter().filter(|rid| *rid != own) {
                if let Err(refused) = judge(rid) {
                    return Ok(Err(refused));
                }
            }
            if !place.exact {
                leaf.insert(place, fit, entry, None, &self.usage, &pin);
            }
            return Ok(Ok(()));
        }
    }

    /// Appends the rids of the key's entries in a locked leaf. True if there may be more in the next one.
    fn rids_in(
        &self,
        leaf: &PageWriteLock<'_>,
        first: usize,
        key: &[u8],
        pin: &EpochGuard,
        rids: &mut SmallVec<[u64; 8]>,
    ) -> bool {
        let meta = leaf.meta();
        for at in first..meta.count {
            match leaf.rid_of_key(meta, leaf.slot(at), key, pin) {
                Some(rid) => rids.push(rid),
                None => return false,
            }
        }
        leaf.may_go_on(key, pin)
    }

    /// Appends the rids of the key's entries to the right of its own leaf. Nobody adds one meanwhile.
    #[cold]
    fn rids_beyond(
        &self,
        home: &PageWriteLock<'_>,
        key: &[u8],
        pin: &EpochGuard,
        rids: &mut SmallVec<[u64; 8]>,
    ) -> Result<(), AbsentLeaf> {
        let mut from = Vec::new();
        home.copy_fence(&home.high, pin, &mut from);
        let before = rids.len();
        let mut next = Vec::new();
        while from.starts_with(key) {
            let known = rids.len();
            let more = Self::retry(|| {
                rids.truncate(known);
                next.clear();
                let found = self.find(Goal::At(&from, Side::From), 0, pin)?;
                let meta = found.page.meta();
                for at in 0..meta.count.min(page::WORDS) {
                    match found.page.rid_of_key(meta, found.page.slot(at), key, pin) {
                        Some(rid) => rids.push(rid),
                        None => break,
                    }
                }
                let more = found.page.copy_fence(&found.page.high, pin, &mut next);
                found.page.latch.check(found.version)?;
                Ok(more)
            })?;
            if !more {
                break;
            }
            std::mem::swap(&mut from, &mut next);
        }
        // A leaf that took over part of another one's entries between two looks shows them twice.
        rids[before..].sort_unstable();
        rids.dedup();
        Ok(())
    }

    /// Removes `entry` if it is there and `unneeded`, called under its leaf's lock, says so. True if it did.
    pub(crate) fn remove_if(
        &self,
        entry: &[u8],
        unneeded: impl FnOnce() -> bool,
    ) -> Result<bool, AbsentLeaf> {
        let pin = EpochGuard::new();
        let mut leaf = self.lock_leaf(entry, &pin)?;
        let place = leaf.find(leaf.meta(), entry, &pin);
        if !place.exact || !unneeded() {
            return Ok(false);
        }
        leaf.remove(place.at, &pin);
        let sparse = leaf.is_sparse();
        drop(leaf);
        if sparse {
            self.consolidate(entry, 0, &pin);
        }
        Ok(true)
    }

    /// Calls `found` with the rids of `key` until it returns false. If a leaf is absent it may have been called with
    /// some of them.
    #[inline]
    pub(crate) fn lookup(
        &self,
        key: &[u8],
        mut found: impl FnMut(u64) -> bool,
    ) -> Result<(), AbsentLeaf> {
        /// Rids read under one version.
        const BATCH: usize = 32;
        let pin = EpochGuard::new();
        let mut rids: SmallVec<[u64; BATCH]> = SmallVec::new();
        // Where to go on: at the key, or where the last batch ended.
        let mut from: Option<Vec<u8>> = None;
        loop {
            let next = Self::retry(|| {
                rids.clear();
                let start = from.as_deref().unwrap_or(key);
                let leaf = self.find(Goal::At(start, Side::From), 0, &pin)?;
                let meta = leaf.page.meta();
                let first = leaf.page.find(meta, start, &pin).at;
                let count = meta.count.min(page::WORDS);
                let mut next = None;
                for at in first.. {
                    if at == count {
                        if leaf.page.may_go_on(key, &pin) {
                            let mut fence = Vec::new();
                            leaf.page.copy_fence(&leaf.page.high, &pin, &mut fence);
                            next = Some(fence);
                        }
                        break;
                    }
                    let Some(rid) = leaf.page.rid_of_key(meta, leaf.page.slot(at), key, &pin)
                    else {
                        break;
                    };
                    if rids.len() == BATCH {
                        // The first one not taken is where the next batch begins.
                        let mut entry = key.to_vec();
                        entry.extend_from_slice(&rid.to_be_bytes());
                        next = Some(entry);
                        break;
                    }
                    rids.push(rid);
                }
                leaf.page.latch.check(leaf.version)?;
                Ok(next)
            })?;
            if !rids.iter().all(|rid| found(*rid)) || next.is_none() {
                return Ok(());
            }
            from = next;
        }
    }
}

#[cfg(test)]
mod tests;
