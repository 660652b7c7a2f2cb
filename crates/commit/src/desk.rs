//! A worker's desk: its queue, and what was taken out of it and is not yet Committed.
//!
//! Invariants: one thread at a time works at a desk ([`Desk::work`]); who finds somebody there leaves a note, and that one
//! looks again before it leaves. `lowest_floor` and `lowest_gsn` are at most what the desk's heaps wait for, and published
//! before the worker at the desk looks at horizon and GSNs for the last time: so whoever moves those either sees that
//! the desk waits for it, or is seen by it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_types::Csn;
use parking_lot::Mutex;

use crate::pending::Pending;
use crate::queue::{Queue, QueueKind};
use crate::stats::{Latencies, WaitCounts};

/// Nothing is waited for.
pub(crate) const NOTHING: u64 = u64::MAX;

/// A transaction in a heap, by what it waits for.
pub(crate) struct Held {
    pub(crate) until: u64,
    pub(crate) pending: Box<Pending>,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        (self.until, self.pending.csn) == (other.until, other.pending.csn)
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        (self.until, self.pending.csn).cmp(&(other.until, other.pending.csn))
    }
}

/// A heap with the smallest on top.
pub(crate) type Heap = BinaryHeap<Reverse<Held>>;

/// What lies on a desk.
#[derive(Default)]
pub(crate) struct Papers {
    /// Not hardened yet, in the order of their lane.
    pub(crate) unhardened: VecDeque<Pending>,
    /// Hardened, waiting for the horizon.
    pub(crate) floors: Heap,
    /// Hardened, waiting for every lane's GSN.
    pub(crate) gsns: Heap,
    pub(crate) waits: WaitCounts,
    pub(crate) latencies: Latencies,
}

/// See the module's documentation.
pub(crate) struct Desk {
    pub(crate) queue: Queue,
    papers: Mutex<Papers>,
    again: AtomicBool,
    /// The lowest CSN that the horizon must pass for somebody here.
    pub(crate) lowest_floor: AtomicU64,
    /// The lowest GSN waited for here.
    pub(crate) lowest_gsn: AtomicU64,
}

impl Desk {
    pub(crate) fn new(kind: QueueKind) -> Desk {
        Desk {
            queue: Queue::new(kind),
            papers: Mutex::default(),
            again: AtomicBool::new(false),
            lowest_floor: AtomicU64::new(NOTHING),
            lowest_gsn: AtomicU64::new(NOTHING),
        }
    }

    /// Works at the desk, or has whoever is there do it: in either case `work` runs wholly after this was called.
    pub(crate) fn work(&self, mut work: impl FnMut(&mut Papers)) {
        self.again.store(true, Ordering::SeqCst);
        while self.again.load(Ordering::SeqCst) {
            let Some(mut papers) = self.papers.try_lock() else {
                return;
            };
            self.again.store(false, Ordering::SeqCst);
            work(&mut papers);
        }
    }

    /// Looks at the desk, waiting for whoever is there. The caller works at it afterwards: who came meanwhile has left a note.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Papers) -> R) -> R {
        look(&self.papers.lock())
    }

    /// Somebody here waits for the horizon to be `horizon`, or less.
    #[inline]
    pub(crate) fn is_passed(&self, horizon: Csn) -> bool {
        self.lowest_floor.load(Ordering::SeqCst) < horizon.0
    }
}
