//! SERIALIZABLE: which transactions under snapshot isolation may commit.
//!
//! Owns: the certifier, which every SERIALIZABLE transaction asks before it draws its CSN. It keeps what certified
//! transactions read and wrote, for as long as an active one may need it; row versions carry nothing of it, and
//! transactions of other levels pay nothing (and are not protected from, as in PostgreSQL).
//!
//! # The rule
//!
//! The Serial Safety Net. Let U -> V mean that V must come after U: V read what U wrote, or overwrote it (then U's
//! place is lower than V's: snapshots see to that), or V overwrote what U read (then either place may be lower).
//! Writers get their place when they are certified. For a transaction T
//!
//! - pstamp(T) is at least the place of every U -> T with a lower place,
//! - sstamp(T) is the least of T's place and the sstamps of all V with T -> V and a lower place: who overwrote what T
//!   read and was certified before T. It is at most the place of anything that T must precede along such edges.
//!
//! T may commit only if sstamp(T) > pstamp(T).
//!
//! Why it is right: suppose committed transactions form a circle. Take F, the one with the lowest place, and walk
//! backwards from it along edges from higher to lower places as far as they go: F <- P1 <- ... <- Pk, and then Q -> Pk
//! with Q's place lower than Pk's (at the latest, Q is F). Then sstamp(Pk) <= ... <= sstamp(F) <= F's place <= Q's
//! place <= pstamp(Pk), so Pk was not allowed to commit.
//!
//! # How the stamps are found
//!
//! 1. A transaction takes its snapshot inside the certifier's mutex and notes the next place, its begin; CSNs of
//!    SERIALIZABLE transactions are drawn inside it too. So it sees exactly the certified writers below its begin, and
//!    the places say all there is to know: no CSN is kept here.
//! 2. Everything it reads comes from places below its begin, so pstamp starts at begin - 1. (Finer, it would be the
//!    newest version examined; but tombstones and index entries of moved rows that were collected would have to leave
//!    their stamps behind, and evicted chunks theirs. The coarse one needs nothing of that. It costs an abort where T
//!    reads nothing newer than F, V overwrote what T read, F what V read, and F was certified before T began.)
//! 3. It notes what it reads ([`reads`]): rows whose visible version was looked at, rejected or not; for an index, keys
//!    looked up and ranges as far as walked; for a scan, the table. A row that a snapshot does not see needs no note
//!    of its own (T5): whoever inserted it gives an index a key or the table a row, and that is found by key, range or
//!    table, whether it was in flight during the read, came later, or was passed over.
//! 4. When it is to commit, its writes are worked out ([`writes`]): rows, and keys rows have now and had not before. A
//!    row that leaves a range, or is deleted, is a row its reader has seen.
//! 5. Under the mutex, sstamp comes from the writers, from its begin on, of what it read; pstamp from the readers of
//!    what it writes ([`certified_history`]). If it may commit, its reads and writes are kept under its place; its
//!    state becomes Committing, and it draws. All that can fail, wait or allocate is done by then (T12): it has its
//!    lane's lock, which it takes under the mutex only if it need not wait. The mutex is released before the entry goes
//!    into the lane: who begins now sees the writer's CSN below its snapshot and waits for its outcome when it meets
//!    its versions (T4).
//!
//! Both directions of "V overwrote what U read" are found whichever is certified first: if V, then its writes are kept
//! when U comes, since U's begin is at or below V's place (else U had read V's version); if U, then its reads are kept
//! when V comes.
//!
//! # Newest versions
//!
//! Checks of uniqueness and references look at newest versions, beyond the snapshot. A version so examined raises
//! pstamp to the newest place there is; what was read in this way counts as overwritten only from the place on that was
//! next *before* it was read. (A writer turns Committing before its place is visible to others, so one that was met
//! running has that place or a later one.)
//!
//! # Readers
//!
//! A transaction that changed nothing has its place right before its begin, between begin - 1 and begin. It draws
//! nothing. Its sources are below; all others that overwrote what it read come after it, and what remains of the rule
//! is that their sstamps must be at or above its begin: it checks those certified already, and leaves begin - 1 behind
//! for the others.
//!
//! If it is declared READ ONLY and no transaction that may write is active when it begins, nothing can have or get an
//! sstamp below its begin together with a place above: its snapshot is *safe*, and nothing is tracked. READ ONLY
//! DEFERRABLE waits for that: until all writers active at its begin have ended; if one of them is committed with an
//! sstamp below its begin, it takes another snapshot.
//!
//! # What is forgotten
//!
//! What is below the begin of the oldest active transaction: writers, since nobody asks for them any more, and read
//! stamps, since the pstamp of everyone active, or to come, is at or above that begin - 1 anyway. When nobody is
//! active, everything. What remains is bounded: see [`certified_history`] and [`reads`].

mod certified_history;
mod ordinal;
pub(crate) mod ranges;
pub(crate) mod reads;
pub(crate) mod state;
pub(crate) mod writes;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use foldhash::fast::FixedState;
use logstead_types::Csn;
use parking_lot::Mutex;

pub(crate) use ordinal::Ordinal;
use reads::ReadSet;
use state::{ActiveTxn, ActiveTxnId, CertifierState, SerializationFailure, SnapshotSafety};
use writes::WriteSet;

struct Shared {
    state: CertifierState,
    wakers: HashMap<ActiveTxnId, Waker, FixedState>,
}

/// The certifier of an engine.
pub(crate) struct Certifier {
    shared: Mutex<Shared>,
    /// The place of the next writer, readable without the mutex.
    next: AtomicU64,
}

/// What the certifier answers a writer.
pub(crate) enum CertifyOutcome<T> {
    /// It may commit, and has drawn.
    Yes(T),
    No(SerializationFailure),
    /// Its lane is busy: it comes again with the lane's lock. Nothing has changed.
    Busy,
    /// Its writes must be worked out again.
    Stale,
}

impl Certifier {
    pub(crate) fn new() -> Certifier {
        let state = CertifierState::new();
        Certifier {
            next: AtomicU64::new(state.next().0),
            shared: Mutex::new(Shared {
                state,
                wakers: HashMap::default(),
            }),
        }
    }

    /// The place of the next writer. Loaded before something is read, the read is older than that writer's versions;
    /// loaded after, everyone whose outcome was seen is below it.
    pub(crate) fn next(&self) -> Ordinal {
        Ordinal(self.next.load(Ordering::SeqCst))
    }

    /// Begins a transaction, whose snapshot `snapshot` takes. Nothing is to be tracked if it is read-only and safe.
    pub(crate) fn begin(
        &self,
        read_only: bool,
        snapshot: impl FnOnce() -> Csn,
    ) -> (Csn, Option<ActiveTxn>) {
        let mut shared = self.shared.lock();
        let begun = shared.state.begin(read_only);
        (snapshot(), begun)
    }

    /// Takes a snapshot that sees exactly the certified writers below the place given with it.
    pub(crate) fn observe(&self, snapshot: impl FnOnce() -> Csn) -> (Csn, Ordinal) {
        let shared = self.shared.lock();
        (snapshot(), shared.state.next())
    }

    pub(crate) fn begin_waiting(
        &self,
        snapshot: impl FnOnce() -> Csn,
    ) -> (Csn, Option<ActiveTxnId>) {
        let mut shared = self.shared.lock();
        let ticket = shared.state.begin_waiting();
        (snapshot(), ticket)
    }

    /// Must the transaction fail, whatever it does from here on?
    pub(crate) fn check(
        &self,
        begun: ActiveTxn,
        reads: &ReadSet,
    ) -> Result<(), SerializationFailure> {
        self.shared.lock().state.check(begun.begin, reads)
    }

    /// Ends a transaction without changes.
    pub(crate) fn certify_reader(
        &self,
        begun: ActiveTxn,
        reads: &ReadSet,
    ) -> Result<(), SerializationFailure> {
        let mut shared = self.shared.lock();
        let decision = shared.state.certify_reader(begun, reads);
        self.next.store(shared.state.next().0, Ordering::SeqCst);
        Self::wake_settled(&mut shared);
        decision
    }

    /// Ends a transaction with changes, if `fresh` still says that `writes` are all its writes, and `enter` has its
    /// lane without waiting. `draw` sets it Committing and draws its CSN. After `No` it is not active any more.
    pub(crate) fn certify<L, T>(
        &self,
        begun: ActiveTxn,
        reads: &ReadSet,
        writes: &WriteSet,
        fresh: impl FnOnce() -> bool,
        enter: impl FnOnce() -> Option<L>,
        draw: impl FnOnce(L, &dyn Fn()) -> T,
    ) -> CertifyOutcome<T> {
        let mut shared = self.shared.lock();
        if !fresh() {
            return CertifyOutcome::Stale;
        }
        let Some(lane) = enter() else {
            return CertifyOutcome::Busy;
        };
        let decision = shared.state.certify(begun, reads, writes);
        // Before the draw: a waker may take locks and allocate (T12). Who is woken comes here first, and waits for the
        // mutex.
        Self::wake_settled(&mut shared);
        match decision {
            Ok(()) => {
                let next = shared.state.next().0;
                CertifyOutcome::Yes(draw(lane, &|| self.next.store(next, Ordering::SeqCst)))
            }
            Err(dangerous) => {
                // In this order: giving room in a lane back may mean waiting for it.
                drop(shared);
                drop(lane);
                CertifyOutcome::No(dangerous)
            }
        }
    }

    /// A transaction ended without being certified.
    pub(crate) fn end(&self, begun: ActiveTxn) {
        let mut shared = self.shared.lock();
        shared.state.end(begun.ticket, None);
        Self::wake_settled(&mut shared);
    }

    fn wake_settled(shared: &mut Shared) {
        if shared.wakers.is_empty() {
            return;
        }
        for ticket in shared.state.settled() {
            if let Some(waker) = shared.wakers.remove(&ticket) {
                waker.wake();
            }
        }
    }

    /// What has become of a wait for a safe snapshot; `waker` is woken when that changes.
    pub(crate) fn poll_safety(&self, ticket: ActiveTxnId, waker: &Waker) -> SnapshotSafety {
        let mut shared = self.shared.lock();
        let safety = shared.state.safety(ticket);
        match safety {
            SnapshotSafety::Unknown => {
                shared.wakers.insert(ticket, waker.clone());
            }
            SnapshotSafety::Safe | SnapshotSafety::Unsafe => {
                shared.wakers.remove(&ticket);
            }
        }
        safety
    }

    pub(crate) fn stop_waiting(&self, ticket: ActiveTxnId) {
        let mut shared = self.shared.lock();
        shared.state.stop_waiting(ticket);
        shared.wakers.remove(&ticket);
    }

    /// Transactions that began at or below this must not rely on the keys of an index attached just now: writers may
    /// have been certified since that knew nothing of it.
    pub(crate) fn index_attached(&self) -> Ordinal {
        let shared = self.shared.lock();
        if shared.state.is_idle() {
            shared.state.next().before()
        } else {
            shared.state.next()
        }
    }
}
