//! When is a hardened transaction Committed, and what does its entry say? Four answers, of one shape; and a fifth that
//! is wrong, to compare with.
//!
//! On storage all of them write a floor and a list: an entry survives a crash only if every CSN on the list survives,
//! and every CSN up to the floor is accounted for. A mode is right if a transaction it acknowledges survives by that
//! rule. All of [`Tracking::ALL`] are; [`Tracking::LeanStore`] is not, and only benchmarks may ask for it.
//!
//! Pure: no clock, no disk, no state.

mod dsn;
mod exact;
mod gsn;
mod horizon;
mod leanstore;

use logstead_types::Csn;
use logstead_wal::EntryDependencies;

use crate::commit_wait::CommitWait;
use crate::dependency_set::{DependencySet, IsCommitted};
use crate::pending_commit::PendingCommit;

/// How dependencies are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tracking {
    /// Transaction level: everything drawn before. The baseline of both papers.
    Horizon,
    /// Page level, with remote flush avoidance, and predecessors by name: LeanStore's made safe.
    Gsn,
    /// Record level, by the newest predecessor: Milliscale's.
    Dsn,
    /// Record level, by name: no false dependency at all.
    #[default]
    Exact,
    /// LeanStore's rule to the letter: **can lose what it has acknowledged** (see `tracking/leanstore.rs`). For
    /// comparisons: an engine refuses it unless [`CommitOptions::may_lose`](crate::CommitOptions::may_lose) says that
    /// nobody minds.
    LeanStore,
}

/// How far durability has come, as far as a verdict needs to know.
pub trait DurabilityProgress: IsCommitted {
    /// Every entry with a GSN up to it is hardened, in whatever lane.
    fn hardened_gsn(&self) -> u64;
}

/// May a hardened transaction be acknowledged?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// Yes: it is Committed.
    Committed,
    /// When the horizon is above this CSN.
    Horizon(Csn),
    /// When every lane has hardened this GSN.
    Gsn(u64),
    /// When this predecessor is Committed: ask again then.
    Predecessor(Csn),
}

impl Tracking {
    /// All that are safe.
    pub const ALL: [Tracking; 4] = [
        Tracking::Horizon,
        Tracking::Gsn,
        Tracking::Dsn,
        Tracking::Exact,
    ];

    /// Its name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Tracking::Horizon => "horizon",
            Tracking::Gsn => "gsn",
            Tracking::Dsn => "dsn",
            Tracking::Exact => "exact",
            Tracking::LeanStore => "leanstore",
        }
    }

    /// The one with this name, if it is safe.
    pub fn from_name(name: &str) -> Option<Tracking> {
        Tracking::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The one with this name, safe or not: for who loses nothing by a loss.
    pub fn for_comparison(name: &str) -> Option<Tracking> {
        let unsafe_too = Tracking::ALL.into_iter().chain([Tracking::LeanStore]);
        unsafe_too.into_iter().find(|mode| mode.name() == name)
    }

    /// What it acknowledges survives.
    pub fn is_safe(self) -> bool {
        self != Tracking::LeanStore
    }

    /// It goes by the GSNs of chunks and lanes.
    #[inline]
    pub fn is_by_page(self) -> bool {
        matches!(self, Tracking::Gsn | Tracking::LeanStore)
    }

    /// An empty collection of dependencies, as detailed as this mode needs it.
    pub fn new_dependency_set(self) -> DependencySet {
        DependencySet::new(matches!(self, Tracking::Gsn | Tracking::Exact))
    }

    /// What the entry of the transaction that drew `csn` says on storage; the list is handed over. Allocates nothing.
    pub fn take_deps(self, csn: Csn, dependency_set: &mut DependencySet) -> EntryDependencies {
        match self {
            Tracking::Horizon => horizon::deps(csn),
            Tracking::Dsn => dsn::deps(csn, dependency_set),
            Tracking::Gsn | Tracking::Exact | Tracking::LeanStore => dependency_set.take_deps(csn),
        }
    }

    /// May this transaction be acknowledged? It is hardened: asked earlier, the answer would mean nothing.
    pub fn judge(self, pending: &PendingCommit, progress: &impl DurabilityProgress) -> AckDecision {
        match self {
            Tracking::Horizon => horizon::judge(pending, progress),
            Tracking::Gsn => gsn::judge(pending, progress),
            Tracking::Dsn => dsn::judge(pending, progress),
            Tracking::Exact => exact::judge(pending, progress),
            Tracking::LeanStore => leanstore::judge(pending, progress),
        }
    }

    /// What the client of a transaction that changed nothing waits for, or who hears of rows in an error.
    pub fn commit_wait(self, dependency_set: &DependencySet) -> CommitWait {
        if self == Tracking::LeanStore {
            return leanstore::commit_wait(dependency_set);
        }
        dependency_set.commit_wait()
    }
}

#[cfg(test)]
mod tests;
