//! A walk over one range of an index, and over the ranges of all virtual partitions in the order of their keys.

use std::sync::Arc;

use logstead_types::Rid;

use crate::index::{Index, split};
use crate::page_fault::PageFault;
use crate::partition::{VIRTUAL_PARTITIONS, part_of_range};
use crate::tree::Entries;

/// Entries read ahead at most.
pub(super) const READ_AHEAD_MAX: usize = 128;

/// A walk over the entries from `start` on, below `end`, or from there down.
pub(super) struct RangeWalk {
    pub(super) start: Vec<u8>,
    pub(super) end: Option<Vec<u8>>,
    reverse: bool,
    /// The last entry read ahead, if any was.
    last: Option<Vec<u8>>,
    batch: Entries,
    /// How many entries of the batch were stepped to.
    next: usize,
    /// How many entries to read with the next look; grows, so that a walk that stops early reads little.
    ahead: usize,
    finished: bool,
}

impl RangeWalk {
    pub(super) fn new(start: Vec<u8>, end: Option<Vec<u8>>, reverse: bool) -> RangeWalk {
        let finished = end.as_ref().is_some_and(|end| *end <= start);
        RangeWalk {
            start,
            end,
            reverse,
            last: None,
            batch: Entries::default(),
            next: 0,
            ahead: 4,
            finished,
        }
    }

    /// Is nothing left of what was read ahead?
    #[inline]
    pub(super) fn is_used_up(&self) -> bool {
        self.next == self.batch.len()
    }

    /// Steps to the next entry that was read ahead; there is one.
    #[inline]
    pub(super) fn step(&mut self) -> Rid {
        let at = self.next;
        self.next += 1;
        split(self.batch.get(at)).1
    }

    /// Takes the last step back.
    pub(super) fn step_back(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    /// The entry last stepped to.
    #[inline]
    pub(super) fn entry(&self) -> &[u8] {
        match self.next.checked_sub(1) {
            Some(at) => self.batch.get(at),
            None => &[],
        }
    }

    /// The next entry that was read ahead; there is one.
    fn next_entry(&self) -> &[u8] {
        self.batch.get(self.next)
    }

    /// The rows of the entries that were read ahead and not stepped to.
    pub(super) fn rids_ahead(&self) -> impl Iterator<Item = Rid> + '_ {
        (self.next..self.batch.len()).map(|at| split(self.batch.get(at)).1)
    }

    /// Reads on; everything that was read ahead was stepped to. False: there is nothing more. If a leaf is absent, the
    /// next look begins where this one did.
    pub(super) fn refill(&mut self, index: &Arc<Index>) -> Result<bool, PageFault> {
        if self.finished {
            return Ok(false);
        }
        if let Some(last) = self.batch.len().checked_sub(1) {
            let position = self.last.get_or_insert_default();
            position.clear();
            position.extend_from_slice(self.batch.get(last));
        }
        self.batch.clear();
        self.next = 0;
        let tree = &index.tree;
        let more = if self.reverse {
            let below = self.last.as_deref().or(self.end.as_deref());
            tree.walk_down(below, &self.start, self.ahead, &mut self.batch)
        } else {
            let (from, after) = match &self.last {
                Some(last) => (last.as_slice(), true),
                None => (self.start.as_slice(), false),
            };
            tree.walk_up(
                from,
                after,
                self.end.as_deref(),
                self.ahead,
                &mut self.batch,
            )
        };
        self.finished = !more.map_err(|leaf| index.absent(&leaf))?;
        self.ahead = (self.ahead * 4).min(READ_AHEAD_MAX);
        Ok(self.batch.len() > 0)
    }
}

/// A walk over the same range of keys in each virtual partition of a divided index, merged in the order of the keys.
pub(super) struct MergedWalk {
    /// One for each partition.
    walks: Vec<RangeWalk>,
    /// The first so many were looked at.
    opened: usize,
    /// Those that have an entry which was not stepped to, but for `current`: a heap, the one that comes next on top.
    heap: Vec<usize>,
    /// The one last stepped in.
    current: Option<usize>,
    /// The last step was taken back.
    again: bool,
    reverse: bool,
}

impl MergedWalk {
    pub(super) fn new(start: &[u8], end: Option<&[u8]>, reverse: bool) -> MergedWalk {
        let walk = |partition| {
            let (start, end) = part_of_range(partition, start, end);
            RangeWalk::new(start, Some(end), reverse)
        };
        MergedWalk {
            walks: (0..VIRTUAL_PARTITIONS).map(walk).collect(),
            opened: 0,
            heap: Vec::new(),
            current: None,
            again: false,
            reverse,
        }
    }

    /// Will the next step read on?
    pub(super) fn is_used_up(&self) -> bool {
        let is_used_up = |at: usize| self.walks[at].is_used_up();
        !self.again && self.current.is_none_or(is_used_up)
    }

    /// Steps to the next entry of all. If a leaf is absent it has not moved, and keeps what was read of others.
    pub(super) fn advance(&mut self, index: &Arc<Index>) -> Result<Option<Rid>, PageFault> {
        if std::mem::take(&mut self.again)
            && let Some(at) = self.current
        {
            return Ok(Some(split(self.walks[at].entry()).1));
        }
        while self.opened < self.walks.len() {
            if self.walks[self.opened].refill(index)? {
                self.push(self.opened);
            }
            self.opened += 1;
        }
        if let Some(at) = self.current {
            if !self.walks[at].is_used_up() || self.walks[at].refill(index)? {
                self.push(at);
            }
            self.current = None;
        }
        let Some(at) = self.pop() else {
            return Ok(None);
        };
        self.current = Some(at);
        Ok(Some(self.walks[at].step()))
    }

    /// Takes the last step back.
    pub(super) fn step_back(&mut self) {
        self.again = self.current.is_some();
    }

    /// The entry last stepped to.
    pub(super) fn entry(&self) -> &[u8] {
        match self.current {
            Some(at) => self.walks[at].entry(),
            None => &[],
        }
    }

    /// The rows that it will come to soon, as far as they are known.
    pub(super) fn rids_ahead(&self) -> impl Iterator<Item = Rid> + '_ {
        let of_current = self.current.into_iter().map(|at| &self.walks[at]);
        let of_others = self.heap.iter().map(|at| &self.walks[*at]);
        // The others' next ones, and what follows in the one that it is in.
        let next = of_others.filter_map(|walk| walk.rids_ahead().next());
        next.chain(of_current.flat_map(RangeWalk::rids_ahead))
            .take(READ_AHEAD_MAX)
    }

    /// Does the next entry of the one walk come before that of the other? Their partitions do not matter.
    fn is_before(&self, one: usize, other: usize) -> bool {
        let next = |at: usize| self.walks[at].next_entry().get(1..);
        match self.reverse {
            true => next(one) > next(other),
            false => next(one) < next(other),
        }
    }

    fn push(&mut self, walk: usize) {
        let mut at = self.heap.len();
        self.heap.push(walk);
        while let Some(above) = at.checked_sub(1).map(|below| below / 2)
            && self.is_before(self.heap[at], self.heap[above])
        {
            self.heap.swap(at, above);
            at = above;
        }
    }

    fn pop(&mut self) -> Option<usize> {
        if self.heap.is_empty() {
            return None;
        }
        let top = self.heap.swap_remove(0);
        let mut at = 0;
        loop {
            let below = [2 * at + 1, 2 * at + 2].into_iter();
            let mut below = below.filter(|below| *below < self.heap.len());
            let Some(mut least) = below.next() else { break };
            if let Some(other) = below.next()
                && self.is_before(self.heap[other], self.heap[least])
            {
                least = other;
            }
            if !self.is_before(self.heap[least], self.heap[at]) {
                break;
            }
            self.heap.swap(at, least);
            at = least;
        }
        Some(top)
    }
}
