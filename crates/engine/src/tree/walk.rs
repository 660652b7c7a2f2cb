//! Walks: entries in order, upwards and downwards, many under one check.
//!
//! A walk holds nothing between leaves: it goes on at the fence of the leaf it has read, wherever that is by then. What
//! was there from the walk's beginning to its end is met once. One that comes to an absent leaf gives what it has met
//! so far; if that is nothing, the leaf.

use super::cell::EpochGuard;
use super::page::{self, Meta, Page};
use super::{AbsentLeaf, Goal, Side, Tree};

/// Entries, copied out.
#[derive(Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Entries {
    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.ends[at]]
    }

    #[inline]
    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.ends[at - 1] }
    }

    fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.start(count));
        self.ends.truncate(count);
    }

    /// Appends one, which is to be above all others.
    pub(crate) fn push(&mut self, entry: &[u8]) {
        self.bytes.extend_from_slice(entry);
        self.ends.push(self.bytes.len());
    }

    /// Appends entries of a page, `at` after `at`.
    #[inline]
    pub(super) fn take(
        &mut self,
        page: &Page,
        meta: Meta,
        ats: impl Iterator<Item = usize>,
        pin: &EpochGuard,
    ) {
        /// Entries up to this length are put together here and copied at once.
        const SHORT: usize = 64;
        // The prefix stays at the beginning from one entry to the next.
        let mut short = [0; SHORT + 8];
        let prefix = meta.prefix.min(SHORT);
        page.load_prefix(prefix, &mut short);
        for at in ats {
            let slot = page.slot(at);
            if !slot.is_blob() && meta.prefix + slot.length() <= SHORT {
                page.load_suffix(slot, &mut short[prefix..]);
                self.bytes
                    .extend_from_slice(&short[..prefix + slot.length()]);
            } else {
                page.copy_entry(meta, slot, pin, &mut self.bytes);
            }
            self.ends.push(self.bytes.len());
        }
    }
}

impl Tree {
    /// Appends entries in ascending order until `out` has `limit`: from `from` on (or, `after` it, above it) to below
    /// `end`. False if it came to the end.
    pub(crate) fn walk_up(
        &self,
        from: &[u8],
        after: bool,
        end: Option<&[u8]>,
        limit: usize,
        out: &mut Entries,
    ) -> Result<bool, AbsentLeaf> {
        let pin = EpochGuard::new();
        let mut fence: Option<Vec<u8>> = None;
        let mut next = Vec::new();
        loop {
            let known = out.len();
            let more = Tree::retry(|| {
                out.truncate(known);
                let (from, after) = match &fence {
                    Some(fence) => (fence.as_slice(), false),
                    None => (from, after),
                };
                let found = self.find(Goal::At(from, Side::From), 0, &pin)?;
                let page = found.page;
                let meta = page.meta();
                let count = meta.count.min(page::WORDS);
                let place = page.find(meta, from, &pin);
                let first = place.at + usize::from(after && place.exact);
                let last = end.map_or(count, |end| page.find(meta, end, &pin).at);
                let stop = last.min(first + (limit - known));
                out.take(page, meta, first..stop, &pin);
                // Is the end of the walk in another leaf?
                let more = out.len() < limit && last == count && {
                    next.clear();
                    page.copy_fence(&page.high, &pin, &mut next)
                        && end.is_none_or(|end| next.as_slice() < end)
                };
                page.latch.check(found.version)?;
                Ok(more)
            });
            match more {
                Ok(true) => std::mem::swap(fence.get_or_insert_default(), &mut next),
                Ok(false) => return Ok(out.len() == limit),
                // What was met before it is given first.
                Err(_) if out.len() > 0 => return Ok(true),
                Err(absent) => return Err(absent),
            }
        }
    }

    /// Appends entries in descending order until `out` has `limit`: from below `below` (from the last one, if there is
    /// no such bound) down to `end`. False if it came to the end.
    pub(crate) fn walk_down(
        &self,
        below: Option<&[u8]>,
        end: &[u8],
        limit: usize,
        out: &mut Entries,
    ) -> Result<bool, AbsentLeaf> {
        let pin = EpochGuard::new();
        let mut fence: Option<Vec<u8>> = None;
        let mut next = Vec::new();
        loop {
            let known = out.len();
            let more = Tree::retry(|| {
                out.truncate(known);
                let below = fence.as_deref().or(below);
                let goal = below.map_or(Goal::End, |bytes| Goal::At(bytes, Side::Below));
                let found = self.find(goal, 0, &pin)?;
                let page = found.page;
                let meta = page.meta();
                let count = meta.count.min(page::WORDS);
                let first = below.map_or(count, |bytes| page.find(meta, bytes, &pin).at);
                let last = page.find(meta, end, &pin).at;
                let stop = last.max(first.saturating_sub(limit - known));
                out.take(page, meta, (stop..first).rev(), &pin);
                let more = out.len() < limit && last == 0 && {
                    next.clear();
                    page.copy_fence(&page.low, &pin, &mut next) && next.as_slice() > end
                };
                page.latch.check(found.version)?;
                Ok(more)
            });
            match more {
                Ok(true) => std::mem::swap(fence.get_or_insert_default(), &mut next),
                Ok(false) => return Ok(out.len() == limit),
                // What was met before it is given first.
                Err(_) if out.len() > 0 => return Ok(true),
                Err(absent) => return Err(absent),
            }
        }
    }
}
