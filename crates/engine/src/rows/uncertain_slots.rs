//! What is not known of a table's chunks because a page could not be read, so that it can be made good when the page is
//! whole again.
//!
//! - *Doubtful slots.* A chunk came without what a damaged page says of some slots, or the log behind the checkpoint
//!   was written behind such a page. These slots count as rows that are absent, but they may as well be free. When all
//!   pages can be read, those that turn out to be free become so.
//! - *Chunks aside.* A chunk could not be read. Its free row numbers are kept out of the list that inserts take theirs
//!   from, or one of them would fail every insert into the table; they come back when the chunk has been read.
//!
//! Why a doubtful slot may become free while others look on: it is absent from the moment in which the doubt began
//! until it is brought ([`crate::version`]), so nobody has put anything there, and every checkpoint has of it what the
//! one has that was read. Its row number was given to nobody: no list had it.
//!
//! Invariant: the lock here is taken inside of that of the free row numbers, never the other way round.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::FixedState;
use logstead_types::Rid;
use parking_lot::Mutex;

use crate::version::SlotSet;

#[derive(Debug, Default)]
struct State {
    /// By chunk.
    slots: HashMap<u64, SlotSet, FixedState>,
    /// By chunk: free row numbers in it.
    aside: HashMap<u64, Vec<Rid>, FixedState>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct UncertainSlots {
    state: Mutex<State>,
    /// Spares others the mutex: there usually are none.
    some_slots: AtomicBool,
    any_quarantined: AtomicBool,
}

impl UncertainSlots {
    /// The doubtful slots of a chunk.
    pub(crate) fn slots(&self, chunk: u64) -> SlotSet {
        if !self.some_slots.load(Ordering::SeqCst) {
            return SlotSet::NONE;
        }
        let state = self.state.lock();
        state.slots.get(&chunk).copied().unwrap_or_default()
    }

    /// More slots of a chunk are doubtful.
    pub(crate) fn add(&self, chunk: u64, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let doubtful = state.slots.entry(chunk).or_default();
        *doubtful = doubtful.union(slots);
        self.some_slots.store(true, Ordering::SeqCst);
    }

    /// These are not doubtful any more.
    pub(crate) fn settle(&self, chunk: u64, known: &SlotSet) {
        if !self.some_slots.load(Ordering::SeqCst) {
            return;
        }
        let mut state = self.state.lock();
        if let Some(doubtful) = state.slots.get_mut(&chunk) {
            *doubtful = doubtful.minus(known);
            if doubtful.is_empty() {
                state.slots.remove(&chunk);
            }
        }
        self.some_slots
            .store(!state.slots.is_empty(), Ordering::SeqCst);
    }

    /// Is any chunk aside?
    #[inline]
    pub(crate) fn any_quarantined(&self) -> bool {
        self.any_quarantined.load(Ordering::SeqCst)
    }

    /// A free row number, which is kept here if its chunk is aside. False: it is not.
    pub(super) fn keep(&self, chunk: u64, rid: Rid) -> bool {
        let mut state = self.state.lock();
        let aside = state.aside.get_mut(&chunk);
        aside.map(|rids| rids.push(rid)).is_some()
    }

    /// A chunk cannot be read. False: that is known.
    pub(super) fn quarantine(&self, chunk: u64, rids: impl FnOnce() -> Vec<Rid>) -> bool {
        let mut state = self.state.lock();
        if state.aside.contains_key(&chunk) {
            return false;
        }
        state.aside.insert(chunk, rids());
        self.any_quarantined.store(true, Ordering::SeqCst);
        true
    }

    /// A chunk has been read: its free row numbers.
    pub(super) fn take_back(&self, chunk: u64) -> Vec<Rid> {
        let mut state = self.state.lock();
        let rids = state.aside.remove(&chunk).unwrap_or_default();
        self.any_quarantined
            .store(!state.aside.is_empty(), Ordering::SeqCst);
        rids
    }
}
