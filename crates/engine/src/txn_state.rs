//! A writing transaction as others see it: its state, and those who wait for it.
//!
//! Running -> Committing -> Precommitted(csn), or Running -> Aborted. Only the owner moves it. Committing lasts from
//! before the CSN is drawn until the entry is in its lane (T4); nothing in between parks or yields, so readers spin.
//! Who restarts an instance may *condemn* a Running one ([`TxnState::condemn`]): then it cannot commit, and stays
//! Running until its owner has rolled it back. Where that may happen the owner *closes* the state before it commits,
//! and of the two the first wins.
//! Who waits for its outcome registers and looks again (T13); for a row of its, the row is noted, and the first of the
//! row's queue is woken. The owner wakes them after every move, and when a savepoint is rolled back, which frees row
//! locks while the transaction goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use logstead_types::{Csn, Rid};
use parking_lot::Mutex;

use crate::tree::interleave::point;
use crate::txn_id::TxnId;

const RUNNING: u64 = 0;
const COMMITTING: u64 = 1;
const ABORTED: u64 = 2;
/// The low bits of a Precommitted state; the CSN is above them.
const PRECOMMITTED: u64 = 3;
/// Marks on a Running state, one of the two: it cannot commit any more; or it is about to, and nobody hinders it.
const CONDEMNED: u64 = 1 << 2;
const CLOSED: u64 = 1 << 3;

/// What has become of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    Committing,
    Precommitted(Csn),
    Aborted,
}

/// A writing transaction as others see it.
pub(crate) struct TxnState {
    word: AtomicU64,
    /// Moves whenever row locks were given back: at the end and when a savepoint is rolled back.
    releases: AtomicU64,
    id: TxnId,
    waiters: Mutex<Waiters>,
}

/// The queues of a table's rows, as a transaction sees them that holds locks others wait for.
pub(crate) trait RowQueues: Send + Sync + 'static {
    /// The first of the row's queue tries.
    fn wake_first(&self, rid: Rid);
}

/// Who is to be told when locks are given back.
#[derive(Default)]
struct Waiters {
    /// Those who wait for the outcome.
    outcome: Vec<(TxnId, Waker)>,
    /// Rows in whose queues somebody waits for this transaction.
    rows: Vec<(Arc<dyn RowQueues>, Rid)>,
}

impl TxnState {
    pub(crate) fn new(id: TxnId) -> TxnState {
        TxnState {
            word: AtomicU64::new(RUNNING),
            releases: AtomicU64::new(0),
            id,
            waiters: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> TxnId {
        self.id
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        let word = self.word.load(Ordering::SeqCst);
        match word & 3 {
            RUNNING => Phase::Running,
            COMMITTING => Phase::Committing,
            ABORTED => Phase::Aborted,
            _ => Phase::Precommitted(Csn(word >> 2)),
        }
    }

    /// The CSN, once Precommitted.
    #[inline]
    pub(crate) fn committed(&self) -> Option<Csn> {
        match self.phase() {
            Phase::Precommitted(csn) => Some(csn),
            _ => None,
        }
    }

    /// The outcome, after spinning while Committing: its CSN, or `None` if it runs or was rolled back.
    #[inline]
    pub(crate) fn settled(&self) -> Option<Csn> {
        let mut spins = 0u32;
        loop {
            match self.phase() {
                Phase::Running | Phase::Aborted => return None,
                Phase::Precommitted(csn) => return Some(csn),
                Phase::Committing => {
                    point();
                    spins += 1;
                    if spins.is_multiple_of(64) {
                        // Its thread may have lost the processor in between.
                        std::thread::yield_now();
                    } else {
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }

    fn step(&self, from: u64, to: u64) {
        let before = self.word.swap(to, Ordering::SeqCst);
        assert!(
            before & 3 == from,
            "a transaction's state moves along its one path"
        );
    }

    /// Of a Running one: from now on it cannot commit, and its owner rolls it back when he finds out. False: it is
    /// about to commit, or is not Running any more. Any thread's.
    pub(crate) fn condemn(&self) -> bool {
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        match self
            .word
            .compare_exchange(RUNNING, RUNNING | CONDEMNED, set, get)
        {
            Ok(_) => true,
            Err(word) => word == RUNNING | CONDEMNED,
        }
    }

    /// Can it not commit any more?
    pub(crate) fn is_condemned(&self) -> bool {
        self.word.load(Ordering::SeqCst) == RUNNING | CONDEMNED
    }

    /// Of a Running one, before it commits: nobody condemns it from now on. False: somebody has.
    pub(crate) fn close(&self) -> bool {
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        let closed = self
            .word
            .compare_exchange(RUNNING, RUNNING | CLOSED, set, get);
        closed.is_ok() || closed == Err(RUNNING | CLOSED)
    }

    /// Running -> Committing, before the CSN is drawn.
    #[inline]
    pub(crate) fn begin_commit(&self) {
        self.step(RUNNING, COMMITTING);
    }

    /// Committing -> Precommitted: its versions become visible, its row locks are free.
    #[inline]
    pub(crate) fn precommitted(&self, csn: Csn) {
        self.step(COMMITTING, csn.0 << 2 | PRECOMMITTED);
    }

    /// Running -> Aborted, after its versions are gone.
    pub(crate) fn aborted(&self) {
        self.step(RUNNING, ABORTED);
    }

    /// How often locks were given back so far.
    pub(crate) fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// Has it no outcome yet?
    pub(crate) fn is_unsettled(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Committing)
    }

    /// Is a wait that began at `releases` still to be waited?
    pub(crate) fn holds_since(&self, releases: u64) -> bool {
        self.is_unsettled() && self.releases() == releases
    }

    /// Wakes everyone who waits for the outcome, and the first of every row's queue.
    pub(crate) fn wake(&self) {
        self.releases.fetch_add(1, Ordering::SeqCst);
        let waiters = std::mem::take(&mut *self.waiters.lock());
        for (_, waker) in waiters.outcome {
            waker.wake();
        }
        for (queues, rid) in waiters.rows {
            queues.wake_first(rid);
        }
    }

    /// Somebody in the row's queue waits for this transaction. The caller looks at the row again afterwards.
    pub(crate) fn note_row(&self, table: &Arc<impl RowQueues>, rid: Rid) {
        let rows = &mut self.waiters.lock().rows;
        let address = Arc::as_ptr(table).cast::<()>();
        let is_noted = |(of, other): &(Arc<dyn RowQueues>, Rid)| {
            *other == rid && Arc::as_ptr(of).cast::<()>() == address
        };
        if !rows.iter().any(is_noted) {
            rows.push((Arc::clone(table) as Arc<dyn RowQueues>, rid));
        }
    }

    /// Registers `waiter`, replacing its former waker. The caller looks at the state again afterwards.
    pub(crate) fn register(&self, waiter: TxnId, waker: &Waker) {
        let waiters = &mut self.waiters.lock().outcome;
        match waiters.iter_mut().find(|(id, _)| *id == waiter) {
            Some((_, old)) => old.clone_from(waker),
            None => waiters.push((waiter, waker.clone())),
        }
    }

    /// Takes `waiter` out.
    pub(crate) fn deregister(&self, waiter: TxnId) {
        self.waiters.lock().outcome.retain(|(id, _)| *id != waiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of condemning and closing the first wins, and for others a condemned one runs until it is rolled back.
    #[test]
    fn who_is_condemned_cannot_commit() {
        let state = TxnState::new(TxnId(1));
        assert!(state.condemn() && state.condemn());
        assert!(!state.close());
        assert_eq!(state.phase(), Phase::Running);
        assert!(state.is_condemned() && state.is_unsettled());
        state.aborted();
        assert!(!state.condemn());
        assert_eq!(state.phase(), Phase::Aborted);
        let state = TxnState::new(TxnId(2));
        assert!(state.close() && state.close());
        assert!(!state.condemn() && !state.is_condemned());
        assert_eq!(state.phase(), Phase::Running);
        state.begin_commit();
        assert!(!state.condemn());
        state.precommitted(Csn(7));
        assert!(!state.condemn());
        assert_eq!(state.committed(), Some(Csn(7)));
    }
}
