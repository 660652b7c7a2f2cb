//! For who measures: the moments of each transaction on the commit path.
//!
//! Costs one load per moment when nobody looks.

use logstead_types::Csn;

use super::CommitPath;

/// A moment of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitStage {
    /// It has its lane's lock and is about to publish `reserved`.
    Entered,
    /// Its entry is in the lane, and `reserved` cleared: until now the horizon stood still for it.
    Pushed,
    /// It is hardened and looked at for the first time, just before it is judged.
    Hardened,
    /// It was not Committed then.
    Waits,
    /// It is Committed, and everybody can see that.
    Committed,
}

/// Hears of moments, with the clock's nanoseconds. Called with a worker's pending acks at hand: it must be quick and
/// must not call the commit path.
pub type Observer = Box<dyn Fn(Csn, CommitStage, u64) + Send + Sync>;

impl CommitPath {
    /// Has every later moment told to `observer`. Once only: another one is given back.
    pub fn observe(&self, observer: Observer) -> Result<(), Observer> {
        self.observer.set(observer)
    }

    #[inline]
    pub(super) fn observes(&self) -> bool {
        self.observer.get().is_some()
    }

    #[inline]
    pub(super) fn observed(&self, csn: Csn, moment: CommitStage) {
        if let Some(observer) = self.observer.get() {
            observer(csn, moment, self.clock());
        }
    }

    /// The same of a moment that is over.
    pub(super) fn observed_at(&self, csn: Csn, moment: CommitStage, at: u64) {
        if let Some(observer) = self.observer.get() {
            observer(csn, moment, at);
        }
    }
}
