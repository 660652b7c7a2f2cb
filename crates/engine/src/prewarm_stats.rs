//! What was brought in of what the engine before had in memory ([`crate::prewarm`]): counters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What was brought in of what was in memory before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrewarmStats {
    /// It has begun, and ended.
    pub state: PrewarmState,
    /// Chunks that the list names.
    pub chunks_listed: u64,
    /// Of these, those of which rows were brought in.
    pub chunks_loaded: u64,
    /// Of these, those of which nothing was: they were there, do not exist any more, or cannot be read. The rest had no
    /// room.
    pub chunks_skipped: u64,
    /// Leaves of indexes that the list names.
    pub leaves_listed: u64,
    /// Reads that have brought some of them.
    pub leaves_loaded: u64,
}

/// How far the bringing in of a list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrewarmState {
    /// There was no list.
    #[default]
    None,
    /// It is under way.
    Loading,
    /// It has ended.
    Ended,
}

/// Where that is counted.
#[derive(Default)]
pub(crate) struct PrewarmCounters {
    begun: AtomicBool,
    ended: AtomicBool,
    chunks_listed: AtomicU64,
    pub(crate) chunks_loaded: AtomicU64,
    pub(crate) chunks_skipped: AtomicU64,
    leaves_listed: AtomicU64,
    pub(crate) leaves_loaded: AtomicU64,
}

impl PrewarmCounters {
    /// A list is there, and comes in sooner or later.
    pub(crate) fn expect(&self, chunks: u64, leaves: u64) {
        self.chunks_listed.store(chunks, Ordering::Relaxed);
        self.leaves_listed.store(leaves, Ordering::Relaxed);
        self.begun.store(true, Ordering::SeqCst);
    }

    /// Nothing more of it comes in.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// What is counted.
    pub(crate) fn stats(&self) -> PrewarmStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let state = match (
            self.begun.load(Ordering::SeqCst),
            self.ended.load(Ordering::SeqCst),
        ) {
            (false, _) => PrewarmState::None,
            (true, false) => PrewarmState::Loading,
            (true, true) => PrewarmState::Ended,
        };
        PrewarmStats {
            state,
            chunks_listed: get(&self.chunks_listed),
            chunks_loaded: get(&self.chunks_loaded),
            chunks_skipped: get(&self.chunks_skipped),
            leaves_listed: get(&self.leaves_listed),
            leaves_loaded: get(&self.leaves_loaded),
        }
    }
}
