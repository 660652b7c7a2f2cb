//! What a checkpoint writes of a tree: the leaves that have changed, as *tiles*.
//!
//! A tile is a range of the tree, from one fence to below another, and the entries in it. A walk ([`Tree::begin_walk`])
//! goes from left to right and gives a tile of each leaf that is not as it is stored ([`Tree::next_changed`]); when all
//! of them are published, the walk is ([`Tree::published`]). A tile takes the place of all stored ones that begin
//! within its range.
//!
//! # Which leaves
//!
//! A leaf notes the number of the walk that has written it (`written_in`), and forgets it with every change, split,
//! merge or refill: whoever changes a page under its lock does that in giving the lock back. Such a number counts once
//! its walk is published: the leaf is *clean*. So a leaf that is changed after it was written is not clean, published
//! or not, and a walk that comes to nothing leaves nothing clean that was not so before. Its number is never published:
//! the next walk has another one, and has looked at every leaf when it is. There is one walk at a time.
//!
//! # What the tiles are
//!
//! - P1 Tiles of one walk, and the clean leaves between them, follow upon each other without gap and overlap: the walk
//!   goes on where the last one ended, wherever that is by then. If leaves were merged or refilled across that place
//!   meanwhile, the leaf there begins below it. It is given from that place on, and stays unwritten: it is not what is
//!   stored.
//! - P2 So after a publication the stored tiles cover everything, once. For a clean leaf was, as long as it is clean,
//!   the only one in its range, and its tile, which it was written as, is the only one that begins there: the tiles of
//!   later walks come from other leaves. The same holds for an absent leaf, which was clean when it went and has not
//!   changed since.
//! - P3 What was in the tree from the walk's beginning to its end is in exactly one tile. It was in one leaf at any
//!   time; it moves to another one, across the walk's place, in splits and merges only, whose leaves are not clean
//!   after that. Let it move from the right of the walk's place to the left: the leaf to the left then reaches over
//!   that place or ends at it; no entry is below the leaf's high fence that was above the walk's place but in a leaf
//!   that covers that place, which is given from the place on. What moves from the left to the right was in a leaf that
//!   was written, or was stored as it was. (Surplus entries come and go; what a snapshot sees is there all the time,
//!   see [`crate::index`].)
//!
//! A leaf with a fence that no stored tile may have ([`FENCE_BYTES_MAX`]) is never clean: it is given by every walk,
//! stored together with its neighbours up to the next short fence, and never evicted.
//!
//! Does not: write or read pages, or know what they look like.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use logstead_checkpoint::FENCE_BYTES_MAX;

use super::absent::AboveLeaves;
use super::cell::EpochGuard;
use super::page::{self, NOT_WRITTEN, Page};
use super::{Entries, LatchVersion, Relaxed, SearchStop, Tree};

/// A walk over the leaves that have changed, and the tile it gave last.
pub(crate) struct LeafWalk {
    number: u32,
    /// Where it goes on; nothing: it is through.
    place: Option<Vec<u8>>,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    entries: Entries,
}

/// A piece of a tree, to be stored.
#[derive(Clone, Copy)]
pub(crate) struct Tile<'w> {
    /// Where it begins; empty: with the tree.
    pub(crate) low: &'w [u8],
    /// Where it ends; nothing: with the tree.
    pub(crate) high: Option<&'w [u8]>,
    /// What is in it, in order.
    pub(crate) entries: &'w Entries,
}

impl LeafWalk {
    /// Has it looked at every leaf?
    pub(crate) fn is_through(&self) -> bool {
        self.place.is_none()
    }
}

/// What a look for a leaf that is not clean has come to.
enum LeafSearch<'g> {
    Changed(&'g Page, LatchVersion),
    /// There is none below the fence that was stored.
    Further,
    End,
}

impl Tree {
    /// Begins a walk at the left end. What was begun before and not published is given up.
    pub(crate) fn begin_walk(&self) -> LeafWalk {
        LeafWalk {
            number: self.walks.fetch_add(1, AcqRel) + 1,
            place: Some(Vec::new()),
            low: Vec::new(),
            high: None,
            entries: Entries::default(),
        }
    }

    /// The next leaf that is not as it is stored; nothing at the end.
    pub(crate) fn next_changed<'w>(&self, walk: &'w mut LeafWalk) -> Option<Tile<'w>> {
        let mut next = Vec::new();
        loop {
            let pin = EpochGuard::new();
            let place = walk.place.take()?;
            let found = Tree::retry(|| match self.look(&place, &mut next, &pin)? {
                // Absent leaves are passed over, like clean ones.
                LeafSearch::End => Ok((false, None)),
                LeafSearch::Further => Ok((false, Some(next.clone()))),
                LeafSearch::Changed(leaf, version) => {
                    walk.write(leaf, version, &place, &pin)?;
                    Ok((true, walk.high.clone()))
                }
            });
            let Ok((is_tile, next)) = found else {
                // Pages above leaves are never absent. A walk that stops here is not through.
                walk.place = Some(place);
                return None;
            };
            walk.place = next;
            if is_tile {
                return Some(Tile {
                    low: &walk.low,
                    high: walk.high.as_deref(),
                    entries: &walk.entries,
                });
            }
        }
    }

    /// Looks for a leaf that is not clean, from `place` on, below one parent. Stores where that ends.
    fn look<'g>(
        &'g self,
        place: &[u8],
        next: &mut Vec<u8>,
        pin: &'g EpochGuard,
    ) -> Result<LeafSearch<'g>, SearchStop> {
        next.clear();
        let published = self.published.load(Acquire);
        let above = match self.find_above(place, pin)? {
            Ok(above) => above,
            Err(root) if root.page.is_clean(published) => {
                root.page.latch.check(root.version)?;
                return Ok(LeafSearch::End);
            }
            Err(root) => return Ok(LeafSearch::Changed(root.page, root.version)),
        };
        let AboveLeaves { page, last, .. } = above;
        for link in &page.links()[above.link..=last] {
            let Some(leaf) = link.load(pin) else { continue };
            if leaf.is_clean(published) {
                continue;
            }
            let version = leaf.latch.read()?;
            page.latch.check(above.version)?;
            return Ok(LeafSearch::Changed(leaf, version));
        }
        let more = page.copy_high_of(last, pin, next);
        page.latch.check(above.version)?;
        Ok(if more {
            LeafSearch::Further
        } else {
            LeafSearch::End
        })
    }

    /// Everything that the walk has given is published.
    ///
    /// # Panics
    /// If it is not through.
    pub(crate) fn published(&self, walk: &LeafWalk) {
        assert!(walk.is_through(), "a checkpoint is of all leaves");
        self.published.store(walk.number, Release);
    }

    /// No leaf counts as stored any more. All are in memory.
    pub(crate) fn forget_published(&self) {
        self.published.store(NOT_WRITTEN, Release);
    }

    /// The leaf that covers `bytes`, if it is in memory, is not as it is stored: the next walk gives it.
    pub(crate) fn mark_changed(&self, bytes: &[u8]) -> bool {
        let pin = EpochGuard::new();
        match self.lock_leaf(bytes, &pin) {
            Ok(leaf) => {
                leaf.set_written_in(NOT_WRITTEN);
                true
            }
            Err(_) => false,
        }
    }

    /// Calls `see` with every leaf in memory, left to right. What it saw of a leaf that changed meanwhile may be
    /// anything.
    fn see_leaves(&self, mut see: impl FnMut(&Page)) {
        let mut place = Vec::new();
        let mut next = Vec::new();
        loop {
            let pin = EpochGuard::new();
            let found = Tree::retry(|| {
                next.clear();
                match self.find_above(&place, &pin)? {
                    Ok(above) => {
                        let leaves = &above.page.links()[above.link..=above.last];
                        let leaves: Vec<&Page> =
                            leaves.iter().filter_map(|leaf| leaf.load(&pin)).collect();
                        let more = above.page.copy_high_of(above.last, &pin, &mut next);
                        above.page.latch.check(above.version)?;
                        Ok((leaves, more))
                    }
                    Err(root) => Ok((vec![root.page], false)),
                }
            });
            // Pages above leaves are never absent.
            let Ok((leaves, more)) = found else { return };
            leaves.into_iter().for_each(&mut see);
            if !more {
                return;
            }
            std::mem::swap(&mut place, &mut next);
        }
    }

    /// How many entries there are in the leaves in memory, by a look at each of them. Those of absent leaves are not
    /// counted.
    pub(crate) fn entry_count(&self) -> usize {
        let mut entries = 0;
        self.see_leaves(|leaf| entries += leaf.meta().count);
        entries
    }

    /// How many of the leaves in memory are not as they are stored.
    pub(crate) fn changed_leaves(&self) -> usize {
        let published = self.published.load(Relaxed);
        let mut changed = 0;
        self.see_leaves(|leaf| changed += usize::from(!leaf.is_clean(published)));
        changed
    }
}

impl LeafWalk {
    /// Copies a leaf from `place` on, and notes in it that it is written, if this is all of it.
    pub(super) fn write(
        &mut self,
        leaf: &Page,
        version: LatchVersion,
        place: &[u8],
        pin: &EpochGuard,
    ) -> Result<(), SearchStop> {
        self.low.clear();
        self.entries.clear();
        let mut high = self.high.take().unwrap_or_default();
        high.clear();
        leaf.copy_fence(&leaf.low, pin, &mut self.low);
        let has_high = leaf.copy_fence(&leaf.high, pin, &mut high);
        let meta = leaf.meta();
        let count = meta.count.min(page::WORDS);
        let reaches_below = self.low.as_slice() < place;
        let first = if reaches_below {
            leaf.find(meta, place, pin).at
        } else {
            0
        };
        self.entries.take(leaf, meta, first..count, pin);
        // Also says that nothing was torn.
        let leaf = leaf.lock(version)?;
        let is_long = |fence: &[u8]| fence.len() > FENCE_BYTES_MAX;
        leaf.set_written_in(if reaches_below || is_long(&self.low) || is_long(&high) {
            NOT_WRITTEN
        } else {
            self.number
        });
        drop(leaf);
        if reaches_below {
            self.low.clear();
            self.low.extend_from_slice(place);
        }
        self.high = has_high.then_some(high);
        Ok(())
    }
}
