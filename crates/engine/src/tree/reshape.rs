//! Splits and merges: what changes more than one page.
//!
//! Both lock the parent first, at the version under which it led to the page, then the pages; and both give up and
//! begin again if a lock is not to be had at once. Readers that are on their way find the parent's or the page's
//! version moved. A page that is merged away is marked obsolete before its lock is given back, so nobody reads from it
//! any more.
//!
//! Splits: in the middle, as bytes go; where entries arrive in order, near the end they arrive at, so that pages stay
//! full. If the parent has no room for the separator it is split first. An entry that does not begin with a full page's
//! prefix is below or above all of its entries: it gets a page to itself, and the others keep their prefix.
//!
//! Merges: a page less than a quarter full takes in its neighbour under the same parent if both fit into one page with
//! some room to spare, else the two share what they have. So a page without neighbours does not last: its parent is all
//! but empty and shares with its own neighbour. A root with a single child makes way for it.
//!
//! In the tree of a divided index a leaf is split at the border as well when an entry of another virtual partition
//! comes to it, and it is merged, or shares, with a leaf of its own partition or an empty one only.
//!
//! A neighbour that is absent is left alone: the one on the other side is taken, or the page stays as it is. Splits and
//! merges of inner pages move empty links like all others.

use super::cell::{EpochGuard, RetiredContent};
use super::edit::{EntryFit, PageImage, PageWriteLock, boxed, common_prefix, fresh};
use super::page::{EntryPosition, HEAP_END, LINKS_MAX, Page};
use super::{AbsentLeaf, FoundPage, Goal, Relaxed, SearchStop, Side, Tree};

/// Pages with fewer bytes in use are merged or filled up.
const SPARSE_BYTES: usize = HEAP_END / 4;
/// Left free in a page that comes of a merge.
const MERGE_SPARE_BYTES: usize = HEAP_END / 8;
/// Of this many entries one goes to the new page when they arrive in order.
const APPEND_KEEP: usize = 16;

/// What became of two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinResult {
    Merged,
    Redistributed,
    /// There was no way: the parent has no room for the new separator.
    Unchanged,
}

/// The shortest separator: above `left`, not above `right`.
pub(super) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let length = common_prefix(left, right) + 1;
    &right[..length.min(right.len())]
}

impl PageWriteLock<'_> {
    /// Has the page so little in it that it should be merged?
    pub(super) fn is_sparse(&self) -> bool {
        let meta = self.meta();
        if self.is_leaf() {
            meta.used() < SPARSE_BYTES
        } else {
            // Short separators fill the links before they fill the bytes.
            meta.used() < SPARSE_BYTES && meta.count < LINKS_MAX / 4
        }
    }

    /// How many entries stay when the page is split because `entry` does not fit; of an inner page, how many
    /// separators stay below the one that goes up.
    fn split_point(&self, image: &PageImage, entry: &[u8], pin: &EpochGuard) -> usize {
        let meta = self.meta();
        let at = self.find(meta, entry, pin).at;
        let count = image.len();
        let most = if self.is_leaf() { count } else { count - 1 };
        if self.compare_prefix(meta, entry).is_ne() || count == 1 {
            return at.min(most);
        }
        let few = count.div_ceil(APPEND_KEEP);
        if at == count {
            count - few
        } else if at == 0 {
            few.min(most)
        } else {
            image.half().min(most)
        }
    }
}

impl Tree {
    /// Can a page take `entry`, which belongs at `place`? A leaf of a divided index takes no entry of another virtual
    /// partition than it has (I5).
    #[inline]
    pub(super) fn fit(
        &self,
        page: &PageWriteLock<'_>,
        place: EntryPosition,
        entry: &[u8],
        pin: &EpochGuard,
    ) -> EntryFit {
        if self.divided && page.is_leaf() && self.is_of_others(page, entry) {
            return EntryFit::No;
        }
        page.fit(place, entry, &self.usage, pin)
    }

    /// Are the leaf's entries of another virtual partition?
    fn is_of_others(&self, leaf: &PageWriteLock<'_>, entry: &[u8]) -> bool {
        let first = leaf.first_byte(leaf.meta());
        first.is_some() && first != entry.first().copied()
    }

    fn split_point(
        &self,
        page: &PageWriteLock<'_>,
        image: &PageImage,
        entry: &[u8],
        pin: &EpochGuard,
    ) -> usize {
        if self.divided && page.is_leaf() && self.is_of_others(page, entry) {
            // Below or above all of them.
            return page.find(page.meta(), entry, pin).at;
        }
        page.split_point(image, entry, pin)
    }

    /// May two neighbours become one page, or share what they have?
    fn may_join(&self, one: &PageWriteLock<'_>, other: &PageWriteLock<'_>) -> bool {
        let firsts = [one, other].map(|page| page.first_byte(page.meta()));
        !self.divided || !one.is_leaf() || firsts.contains(&None) || firsts[0] == firsts[1]
    }

    /// Splits the page of `level` that covers `entry` unless the entry fits into it by now.
    pub(super) fn make_room(
        &self,
        entry: &[u8],
        level: u8,
        pin: &EpochGuard,
    ) -> Result<(), AbsentLeaf> {
        Tree::retry(|| self.split(entry, level, pin))
    }

    fn split(&self, entry: &[u8], level: u8, pin: &EpochGuard) -> Result<(), SearchStop> {
        self.split_unless(entry, level, pin, |page| {
            let place = page.find(page.meta(), entry, pin);
            self.fit(page, place, entry, pin) != EntryFit::No
        })
    }

    /// Splits the page of `level` that covers `entry` unless there is `room` in it.
    pub(super) fn split_unless(
        &self,
        entry: &[u8],
        level: u8,
        pin: &EpochGuard,
        room: impl FnOnce(&PageWriteLock<'_>) -> bool,
    ) -> Result<(), SearchStop> {
        let found = self.find(Goal::At(entry, Side::From), level, pin)?;
        let Some((parent, parent_version)) = found.parent else {
            return self.split_root(&found, entry, pin, room);
        };
        let mut parent = parent.lock(parent_version)?;
        let mut page = found.page.lock(found.version)?;
        if room(&page) {
            return Ok(());
        }
        let image = page.image(pin);
        let at = self.split_point(&page, &image, entry, pin);
        let middle = self.middle(&page, &image, at, entry);
        let link_place = parent.find(parent.meta(), &middle, pin);
        let fit = parent.fit(link_place, &middle, &self.usage, pin);
        if fit == EntryFit::No {
            drop(page);
            drop(parent);
            self.split(&middle, level + 1, pin)?;
            return Err(SearchStop::Restart);
        }
        let right = self.move_right(&mut page, &image, at, &middle, pin);
        parent.insert(link_place, fit, &middle, Some(right), &self.usage, pin);
        Ok(())
    }

    fn split_root(
        &self,
        found: &FoundPage<'_>,
        entry: &[u8],
        pin: &EpochGuard,
        room: impl FnOnce(&PageWriteLock<'_>) -> bool,
    ) -> Result<(), SearchStop> {
        self.latch.lock(found.top)?;
        let result = self.grow(found, entry, pin, room);
        self.latch.unlock(found.top, result.is_ok(), false);
        result
    }

    /// Puts a new root above the old one, which is split. The latch above the root is locked.
    fn grow(
        &self,
        found: &FoundPage<'_>,
        entry: &[u8],
        pin: &EpochGuard,
        room: impl FnOnce(&PageWriteLock<'_>) -> bool,
    ) -> Result<(), SearchStop> {
        let mut page = found.page.lock(found.version)?;
        if room(&page) {
            return Ok(());
        }
        let image = page.image(pin);
        let at = self.split_point(&page, &image, entry, pin);
        let middle = self.middle(&page, &image, at, entry);
        let root = fresh(found.page.level + 1, &self.usage);
        self.count_pages(root.level).fetch_add(1, Relaxed);
        let right = self.move_right(&mut page, &image, at, &middle, pin);
        {
            let mut root = root.lock_now()?;
            root.put_links([self.root.take(pin)], pin);
            let first = root.find(root.meta(), &middle, pin);
            let fit = root.fit(first, &middle, &self.usage, pin);
            root.insert(first, fit, &middle, Some(right), &self.usage, pin);
        }
        self.root.put(boxed(root), pin);
        Ok(())
    }

    /// What separates the two pages of a split.
    fn middle(
        &self,
        page: &PageWriteLock<'_>,
        image: &PageImage,
        at: usize,
        entry: &[u8],
    ) -> Vec<u8> {
        if !page.is_leaf() {
            return image.entry(at).to_vec();
        }
        let below = if at == 0 { entry } else { image.entry(at - 1) };
        let above = if at == image.len() {
            entry
        } else {
            image.entry(at)
        };
        separator(below, above).to_vec()
    }

    /// Moves what is from `at` on into a new page, which begins at `middle`.
    fn move_right(
        &self,
        page: &mut PageWriteLock<'_>,
        image: &PageImage,
        at: usize,
        middle: &[u8],
        pin: &EpochGuard,
    ) -> RetiredContent<Page> {
        let right = fresh(page.level, &self.usage);
        self.count_pages(page.level).fetch_add(1, Relaxed);
        let (low, high) = page.fences(pin);
        // The separator between two pages is in neither of them.
        let skip = usize::from(!page.is_leaf());
        if let Ok(mut right) = right.lock_now() {
            right.rebuild(
                image,
                at + skip..image.len(),
                Some(middle),
                high.as_deref(),
                &self.usage,
                pin,
            );
            if !page.is_leaf() {
                let mut links = page.take_links(pin);
                right.put_links(links.drain(at + 1..), pin);
                page.put_links(links, pin);
            }
        }
        page.rebuild(image, 0..at, low.as_deref(), Some(middle), &self.usage, pin);
        boxed(right)
    }

    /// Merges or fills up the page of `level` that covers `entry`, if it is sparse.
    pub(super) fn consolidate(&self, entry: &[u8], level: u8, pin: &EpochGuard) {
        match Tree::retry(|| self.merge(entry, level, pin)) {
            // A sparse page that has left memory meanwhile waits for the next removal.
            Ok(_) | Err(AbsentLeaf { .. }) => {}
        }
    }

    /// True if something was done.
    fn merge(&self, entry: &[u8], level: u8, pin: &EpochGuard) -> Result<bool, SearchStop> {
        let found = self.find(Goal::At(entry, Side::From), level, pin)?;
        let Some((parent, parent_version)) = found.parent else {
            return self.shrink_root(&found, pin);
        };
        let mut parent = parent.lock(parent_version)?;
        let mut page = found.page.lock(found.version)?;
        if !page.is_sparse() {
            return Ok(false);
        }
        let count = parent.meta().count;
        if count == 0 {
            drop(page);
            drop(parent);
            return if self.merge(entry, level + 1, pin)? {
                Err(SearchStop::Restart)
            } else {
                Ok(false)
            };
        }
        let place = parent.find(parent.meta(), entry, pin);
        let link = place.at + usize::from(place.exact);
        // With the right neighbour; with the left one if that is absent, or another partition's, or there is none.
        let links = parent.page().links();
        let on_the_right = (link < count).then_some((link, link + 1));
        let on_the_left = link.checked_sub(1).map(|left| (left, left));
        let mut present = None;
        for (between, at) in on_the_right.into_iter().chain(on_the_left) {
            if let Some(neighbour) = links.get(at).and_then(|link| link.load(pin)) {
                let neighbour = neighbour.lock_now()?;
                if self.may_join(&page, &neighbour) {
                    present = Some((between, neighbour));
                    break;
                }
            }
        }
        let Some((between, mut neighbour)) = present else {
            return Ok(false);
        };
        let (left, right) = if link == between {
            (&mut page, &mut neighbour)
        } else {
            (&mut neighbour, &mut page)
        };
        let joined = self.join(&mut parent, between, left, right, pin);
        let sparse = joined == JoinResult::Merged && parent.is_sparse();
        drop(page);
        drop(neighbour);
        drop(parent);
        if sparse {
            // The page is in order; what becomes of its parent is another matter, taken up as often as needed.
            self.consolidate(entry, level + 1, pin);
        }
        Ok(joined != JoinResult::Unchanged)
    }

    /// Merges two neighbours, separated by the parent's separator `between`, or shares out what they have.
    fn join(
        &self,
        parent: &mut PageWriteLock<'_>,
        between: usize,
        left: &mut PageWriteLock<'_>,
        right: &mut PageWriteLock<'_>,
        pin: &EpochGuard,
    ) -> JoinResult {
        let leaf = left.is_leaf();
        let mut both = left.image(pin);
        if !leaf {
            let meta = parent.meta();
            let mut middle = Vec::new();
            parent.copy_entry(meta, parent.slot(between), pin, &mut middle);
            both.insert(both.len(), &middle, &self.usage);
        }
        both.append(right.image(pin));
        let (low, _) = left.fences(pin);
        let (_, high) = right.fences(pin);
        let all = 0..both.len();
        if both.fits(all.clone(), MERGE_SPARE_BYTES) && (leaf || both.len() < LINKS_MAX / 8 * 7) {
            if !leaf {
                let mut links = left.take_links(pin);
                links.extend(right.take_links(pin));
                left.put_links(links, pin);
            }
            left.rebuild(
                &both,
                all,
                low.as_deref(),
                high.as_deref(),
                &self.usage,
                pin,
            );
            right.retire();
            self.count_pages(left.level).fetch_sub(1, Relaxed);
            drop(parent.remove_child(between, pin));
            return JoinResult::Merged;
        }
        let at = both.half();
        let middle = if leaf {
            separator(both.entry(at - 1), both.entry(at)).to_vec()
        } else {
            both.entry(at).to_vec()
        };
        let skip = usize::from(!leaf);
        if !both.fits(0..at, 0)
            || !both.fits(at + skip..both.len(), 0)
            || (!leaf && at.max(both.len() - at - 1) >= LINKS_MAX)
            || !parent.replace(between, &middle, &self.usage, pin)
        {
            return JoinResult::Unchanged;
        }
        if !leaf {
            let mut links = left.take_links(pin);
            links.extend(right.take_links(pin));
            right.put_links(links.drain(at + 1..), pin);
            left.put_links(links, pin);
        }
        left.rebuild(
            &both,
            0..at,
            low.as_deref(),
            Some(&middle),
            &self.usage,
            pin,
        );
        right.rebuild(
            &both,
            at + skip..both.len(),
            Some(&middle),
            high.as_deref(),
            &self.usage,
            pin,
        );
        JoinResult::Redistributed
    }

    /// A root with a single child makes way for it.
    pub(super) fn shrink_root(
        &self,
        found: &FoundPage<'_>,
        pin: &EpochGuard,
    ) -> Result<bool, SearchStop> {
        if found.page.is_leaf() {
            return Ok(false);
        }
        self.latch.lock(found.top)?;
        let result = self.shrink(found, pin);
        self.latch
            .unlock(found.top, matches!(result, Ok(true)), false);
        result
    }

    fn shrink(&self, found: &FoundPage<'_>, pin: &EpochGuard) -> Result<bool, SearchStop> {
        let mut page = found.page.lock(found.version)?;
        if page.meta().count > 0 {
            return Ok(false);
        }
        // A leaf that is the root is never absent.
        let Some(child) = page.take_link(0, pin) else {
            return Ok(false);
        };
        page.retire();
        self.count_pages(page.level).fetch_sub(1, Relaxed);
        self.root.put(child, pin);
        Ok(true)
    }
}
