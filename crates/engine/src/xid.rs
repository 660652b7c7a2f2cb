//! Which ids belong to transactions that run, and to which CSN those belong that have committed.
//!
//! Does not: give ids (`txn::xid`, which has the invariants).

use logstead_types::Csn;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;

/// Pairs of CSN and id that are remembered, 16 bytes each.
pub const PAIRS_MAX: usize = 1 << 19;

/// Ids of transactions that were rolled back that are remembered.
pub(crate) const ABORTED_MAX: usize = 1 << 12;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum XidState {
    Active,
    /// It may have drawn its CSN.
    Committing,
}

#[derive(Default)]
pub(crate) struct XidSets {
    pub(crate) running: BTreeMap<u64, XidState>,
    /// So many ids may have been drawn that are not among them yet.
    pub(crate) drawing: usize,
    /// CSN and id of those that have committed and changed something, by CSN.
    pub(crate) pairs: VecDeque<(u64, u64)>,
    pub(crate) aborted: BTreeSet<u64>,
    /// Nothing is known of ids up to this one that is not in the lists.
    pub(crate) forgotten: u64,
    /// The newest CSN whose pair has been let go.
    pub(crate) paired_from: u64,
}

/// All ids of an engine.
#[derive(Default)]
pub(crate) struct XidRegistry {
    pub(crate) ids: Mutex<XidSets>,
    /// There are pairs: nobody else needs the lock to read a row's name.
    pub(crate) some: AtomicBool,
}

/// What has become of a transaction, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    /// It runs.
    InProgress,
    /// It has committed.
    Committed,
    /// It was rolled back.
    Aborted,
    /// It was so long ago that nobody knows.
    Forgotten,
    /// No transaction has that id yet.
    Future,
}

/// The ids that a snapshot does not see, of those below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidSnapshot {
    /// Every id below that is not in the list has ended, seen or rolled back.
    pub end: u64,
    /// Those that ran, in order.
    pub running: Vec<u64>,
}

impl XidRegistry {
    /// Ids below are of earlier lives.
    pub(crate) fn new(next: Csn) -> XidRegistry {
        let xids = XidRegistry::default();
        xids.ids.lock().forgotten = next.0.saturating_sub(1);
        xids
    }
}
