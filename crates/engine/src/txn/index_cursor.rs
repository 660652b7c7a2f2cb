//! A walk over an index, bounded by prefixes.

use std::ops::Bound;
use std::sync::Arc;

use logstead_types::Rid;
use smallvec::SmallVec;

use crate::engine::EngineInner;
use crate::index::{Index, split};
use crate::page_fault::PageFault;
use crate::partition::part_of_range;
use crate::rows::AbsentRow;
use crate::txn::certify::CursorTrack;
use crate::txn::range_walk::{MergedWalk, READ_AHEAD_MAX, RangeWalk};
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
///
/// A divided index is walked in the order of its keys as well: where both bounds begin with one distribution key, in
/// that key's virtual partition, else in all of them at once.
pub struct IndexCursor {
    index: Arc<Index>,
    reverse: bool,
    walk: Walk,
    /// There once it has missed a row.
    rows_ahead: Option<Box<ReadAhead>>,
    /// The rows of this batch were asked for.
    is_asked: bool,
    /// What a SERIALIZABLE transaction notes of the walk.
    pub(crate) track: Option<CursorTrack>,
}

/// What a cursor goes over.
enum Walk {
    One(RangeWalk),
    Merged(Box<Merged>),
}

struct Merged {
    /// The bounds, as keys without their partitions.
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    walk: MergedWalk,
}

impl IndexCursor {
    /// Over the keys between two bounds; `reverse` walks from the upper one down.
    pub fn new(
        index: &Arc<Index>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
        reverse: bool,
    ) -> IndexCursor {
        let partition = match (index.is_divided(), &lower, &upper) {
            (
                true,
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => index.common_partition(lower, upper),
            _ => None,
        };
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
        let walk = match partition {
            Some(partition) => {
                let (start, end) = part_of_range(partition.0, &start, end.as_deref());
                Walk::One(RangeWalk::new(start, Some(end), reverse))
            }
            None if index.is_divided() => Walk::Merged(Box::new(Merged {
                walk: MergedWalk::new(&start, end.as_deref(), reverse),
                start,
                end,
            })),
            None => Walk::One(RangeWalk::new(start, end, reverse)),
        };
        IndexCursor {
            index: index.clone(),
            reverse,
            walk,
            rows_ahead: None,
            is_asked: false,
            track: None,
        }
    }

    /// The index walked.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// The keys it was made to walk: those from the first on, below the second. Without their partitions if it
    /// [goes over all of them](Self::is_merged).
    pub(crate) fn range(&self) -> (&[u8], Option<&[u8]>) {
        match &self.walk {
            Walk::One(walk) => (&walk.start, walk.end.as_deref()),
            Walk::Merged(merged) => (&merged.start, merged.end.as_deref()),
        }
    }

    /// Does it go over all virtual partitions of a divided index?
    pub(crate) fn is_merged(&self) -> bool {
        matches!(self.walk, Walk::Merged(_))
    }

    /// Does it walk from the end down?
    pub(crate) fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// Steps to the next entry and gives its rid.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Rid>, PageFault> {
        match &mut self.walk {
            Walk::One(walk) if !walk.is_used_up() => Ok(Some(walk.step())),
            _ => self.read_on(),
        }
    }

    fn read_on(&mut self) -> Result<Option<Rid>, PageFault> {
        let reads_on = match &self.walk {
            Walk::One(_) => true,
            Walk::Merged(merged) => merged.walk.is_used_up(),
        };
        if reads_on
            && std::mem::take(&mut self.is_asked)
            && let Some(ahead) = &mut self.rows_ahead
        {
            ahead.release();
        }
        match &mut self.walk {
            Walk::One(walk) => Ok(walk.refill(&self.index)?.then(|| walk.step())),
            Walk::Merged(merged) => merged.walk.advance(&self.index),
        }
    }

    /// Takes the last step back: the next one comes to the same entry.
    pub(crate) fn step_back(&mut self) {
        match &mut self.walk {
            Walk::One(walk) => walk.step_back(),
            Walk::Merged(merged) => merged.walk.step_back(),
        }
    }

    /// The row of the next entry is absent: those of the others that were read ahead are asked for, but for those that
    /// lie in its chunk, which it gives.
    #[cold]
    pub(crate) fn read_ahead(&mut self, engine: &EngineInner, missed: AbsentRow) -> SlotSet {
        let AbsentRow(missed) = missed;
        let chunk_of = |rid: Rid| rid.0 / CHUNK_SLOTS as u64;
        let mut beside = SlotSet::NONE;
        let mut others: SmallVec<[Rid; READ_AHEAD_MAX]> = SmallVec::new();
        let mut sort = |rid: Rid| {
            if chunk_of(rid) == chunk_of(missed) {
                beside.insert((rid.0 % CHUNK_SLOTS as u64) as usize);
            } else {
                others.push(rid);
            }
        };
        match &self.walk {
            Walk::One(walk) => walk.rids_ahead().for_each(&mut sort),
            Walk::Merged(merged) => merged.walk.rids_ahead().for_each(&mut sort),
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            let ahead = self.rows_ahead.get_or_insert_default();
            ahead.advance_to_rows(engine, &self.index.rows, others.into_iter());
        }
        beside
    }

    /// The key of the entry last stepped to, with its partition if the index is divided.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        split(match &self.walk {
            Walk::One(walk) => walk.entry(),
            Walk::Merged(merged) => merged.walk.entry(),
        })
        .0
    }
}
