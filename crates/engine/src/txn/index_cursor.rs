//! A walk over an index, bounded by prefixes.

use std::ops::Bound;
use std::sync::Arc;

use logstead_types::Rid;
use smallvec::SmallVec;

use crate::engine::EngineInner;
use crate::index::{Index, split};
use crate::page_fault::PageFault;
use crate::rows::AbsentRow;
use crate::tree::Entries;
use crate::txn::certify::CursorTrack;
use crate::txn::read_ahead::ReadAhead;
use crate::version::{CHUNK_SLOTS, SlotSet};

/// The least bytes above everything that begins with `prefix`; `None` if there are none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

/// A walk over an index in key order. It holds no lock and no reference between steps: it survives awaits, and finds
/// its place again.
///
/// Bounds are compared with as many bytes of a key as they have: `Included(prefix)` takes in all keys that begin with
/// the prefix, at either end, and `Excluded(prefix)` leaves them all out.
pub struct IndexCursor {
    index: Arc<Index>,
    /// Entries from here on.
    start: Vec<u8>,
    /// Entries below this.
    end: Option<Vec<u8>>,
    reverse: bool,
    /// The last entry read ahead, if any was.
    last: Option<Vec<u8>>,
    batch: Entries,
    /// How many entries of the batch were stepped to.
    next: usize,
    /// Entries to read with the next look; grows, so that a walk that stops early reads little.
    ahead: usize,
    finished: bool,
    /// There once it has missed a row.
    rows_ahead: Option<Box<ReadAhead>>,
    /// The rows of this batch were asked for.
    is_asked: bool,
    /// What a SERIALIZABLE transaction notes of the walk.
    pub(crate) track: Option<CursorTrack>,
}

/// Entries read ahead at most.
const READ_AHEAD_MAX: usize = 128;

impl IndexCursor {
    /// Over the keys between two bounds; `reverse` walks from the upper one down.
    pub fn new(
        index: &Arc<Index>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
        reverse: bool,
    ) -> IndexCursor {
        let (start, nothing) = match lower {
            Bound::Unbounded => (Vec::new(), false),
            Bound::Included(prefix) => (prefix, false),
            Bound::Excluded(prefix) => match after_prefix(&prefix) {
                Some(start) => (start, false),
                None => (Vec::new(), true),
            },
        };
        let end = match upper {
            _ if nothing => Some(Vec::new()),
            Bound::Unbounded => None,
            Bound::Included(prefix) => after_prefix(&prefix),
            Bound::Excluded(prefix) => Some(prefix),
        };
        let finished = end.as_ref().is_some_and(|end| *end <= start);
        IndexCursor {
            index: index.clone(),
            start,
            end,
            reverse,
            last: None,
            batch: Entries::default(),
            next: 0,
            ahead: 4,
            finished,
            rows_ahead: None,
            is_asked: false,
            track: None,
        }
    }

    /// The index walked.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// The keys it was made to walk: those from the first on, below the second.
    pub(crate) fn range(&self) -> (&[u8], Option<&[u8]>) {
        (&self.start, self.end.as_deref())
    }

    /// Does it walk from the end down?
    pub(crate) fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// Steps to the next entry and gives its rid.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Rid>, PageFault> {
        if self.next == self.batch.len() && !self.refill()? {
            return Ok(None);
        }
        let at = self.next;
        self.next += 1;
        Ok(Some(split(self.batch.get(at)).1))
    }

    /// Takes the last step back: the next one comes to the same entry.
    pub(crate) fn step_back(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    /// The row of the next entry is absent: those of the others that were read ahead are asked for, but for those that
    /// lie in its chunk, which it gives.
    #[cold]
    pub(crate) fn read_ahead(&mut self, engine: &EngineInner, missed: AbsentRow) -> SlotSet {
        let AbsentRow(missed) = missed;
        let chunk_of = |rid: Rid| rid.0 / CHUNK_SLOTS as u64;
        let mut beside = SlotSet::NONE;
        let mut others: SmallVec<[Rid; READ_AHEAD_MAX]> = SmallVec::new();
        for at in self.next..self.batch.len() {
            let (_, rid) = split(self.batch.get(at));
            if chunk_of(rid) == chunk_of(missed) {
                beside.insert((rid.0 % CHUNK_SLOTS as u64) as usize);
            } else {
                others.push(rid);
            }
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            let ahead = self.rows_ahead.get_or_insert_default();
            ahead.advance_to_rows(engine, &self.index.rows, others.into_iter());
        }
        beside
    }

    /// The key of the entry last stepped to.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.next.checked_sub(1) {
            Some(at) => split(self.batch.get(at)).0,
            None => &[],
        }
    }

    /// If a leaf is absent, the next look begins where this one did.
    fn refill(&mut self) -> Result<bool, PageFault> {
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
        if std::mem::take(&mut self.is_asked)
            && let Some(ahead) = &mut self.rows_ahead
        {
            ahead.release();
        }
        let tree = &self.index.tree;
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
        self.finished = !more.map_err(|leaf| self.index.absent(&leaf))?;
        self.ahead = (self.ahead * 4).min(READ_AHEAD_MAX);
        Ok(self.batch.len() > 0)
    }
}
