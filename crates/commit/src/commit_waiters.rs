//! Who waits for a CSN to be Committed: clients, and transactions that depend on it.
//!
//! Invariant (T13): who waits is registered before it looks once more; who commits a CSN says so in the commit ring
//! before it looks who waits. Either the one sees the other. `parked` spares the look under the lock when nobody waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use logstead_types::Csn;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::atomic_facade::{AtomicWord, Lock};
use crate::pending_commit::PendingCommit;

/// A power of two; neighbouring CSNs are in different ones.
const SHARDS: usize = 64;

/// The first number that no thread has taken.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
/// A thread takes so many at once: every client that waits needs one, and the counter is shared.
const NUMBERS_OF_THREAD: u64 = 1024;

thread_local! {
    static MY_NUMBERS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// A number for a client that waits, which no other one has.
pub(crate) fn client_number() -> u64 {
    let (mut next, mut end) = MY_NUMBERS.get();
    if next == end {
        next = NUMBERS.fetch_add(NUMBERS_OF_THREAD, Ordering::Relaxed);
        end = next + NUMBERS_OF_THREAD;
    }
    MY_NUMBERS.set((next + 1, end));
    next
}

/// Somebody who waits.
pub(crate) enum CommitWaiter {
    /// A task, under the number it registered with.
    Client(u64, Waker),
    /// A transaction whose predecessor it is.
    Dependent(Box<PendingCommit>),
}

type List = Vec<(Csn, CommitWaiter)>;

struct Shard<W, L> {
    /// How many there are. Moved under the lock.
    parked: W,
    waiting: L,
}

impl<W: AtomicWord, L> Shard<W, L> {
    /// One more is registered; who commits a CSN after this looks at the list.
    fn count_in(&self) {
        self.parked.fetch_add(1);
    }

    fn count_out(&self, count: usize) {
        self.parked.fetch_add((count as u64).wrapping_neg());
    }

    fn take_out(&self, waiting: &mut List, csn: Csn, number: u64) {
        let is = |of: &CommitWaiter| matches!(of, CommitWaiter::Client(of, _) if *of == number);
        let found = waiting.iter().position(|(at, of)| *at == csn && is(of));
        if let Some(found) = found {
            waiting.swap_remove(found);
            self.count_out(1);
        }
    }
}

/// See the module's documentation.
pub(crate) struct CommitWaiters<W = AtomicU64, L = Mutex<List>> {
    shards: Box<[CachePadded<Shard<W, L>>]>,
}

impl<W: AtomicWord, L: Lock<List>> CommitWaiters<W, L> {
    pub(crate) fn new() -> CommitWaiters<W, L> {
        let shard = |_| {
            CachePadded::new(Shard {
                parked: W::new(0),
                waiting: L::new(Vec::new()),
            })
        };
        CommitWaiters {
            shards: (0..SHARDS).map(shard).collect(),
        }
    }

    #[inline]
    fn shard(&self, csn: Csn) -> &Shard<W, L> {
        &self.shards[csn.0 as usize & (SHARDS - 1)]
    }

    /// Has a task woken when `csn` is Committed; again under the same number, the waker is replaced. False, and nothing
    /// is registered, if `committed` says yes after the registration.
    pub(crate) fn register(
        &self,
        csn: Csn,
        number: u64,
        waker: &Waker,
        committed: impl FnOnce() -> bool,
    ) -> bool {
        let shard = self.shard(csn);
        shard.waiting.with(|waiting| {
            let known = waiting.iter_mut().find_map(|(at, waiting)| match waiting {
                CommitWaiter::Client(of, waker) if *at == csn && *of == number => Some(waker),
                _ => None,
            });
            match known {
                Some(known) => known.clone_from(waker),
                None => {
                    waiting.push((csn, CommitWaiter::Client(number, waker.clone())));
                    shard.count_in();
                }
            }
            if !committed() {
                return true;
            }
            shard.take_out(waiting, csn, number);
            false
        })
    }

    /// Takes a task out again.
    pub(crate) fn deregister(&self, csn: Csn, number: u64) {
        let shard = self.shard(csn);
        shard
            .waiting
            .with(|waiting| shard.take_out(waiting, csn, number));
    }

    /// Parks a transaction until `csn` is Committed. Given back if `committed` says yes after the registration.
    pub(crate) fn park(
        &self,
        csn: Csn,
        pending: Box<PendingCommit>,
        committed: impl FnOnce() -> bool,
    ) -> Option<Box<PendingCommit>> {
        let shard = self.shard(csn);
        shard.waiting.with(|waiting| {
            shard.count_in();
            if committed() {
                shard.count_out(1);
                return Some(pending);
            }
            waiting.push((csn, CommitWaiter::Dependent(pending)));
            None
        })
    }

    /// `csn` has been set in the commit ring: hands out who waited for it.
    #[inline]
    pub(crate) fn take(&self, csn: Csn, out: &mut SmallVec<[CommitWaiter; 4]>) {
        let shard = self.shard(csn);
        if shard.parked.load() == 0 {
            return;
        }
        shard.waiting.with(|waiting| {
            let before = waiting.len();
            let mut at = 0;
            while at < waiting.len() {
                if waiting[at].0 == csn {
                    out.push(waiting.swap_remove(at).1);
                } else {
                    at += 1;
                }
            }
            shard.count_out(before - waiting.len());
        });
    }

    /// Every task, because nothing will be Committed any more.
    pub(crate) fn take_clients(&self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for shard in &self.shards {
            shard.waiting.with(|waiting| {
                for (_, waiting) in waiting {
                    if let CommitWaiter::Client(_, waker) = waiting {
                        wakers.push(waker.clone());
                    }
                }
            });
        }
        wakers
    }

    /// How many clients and transactions wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let len = |shard: &CachePadded<Shard<W, L>>| shard.waiting.with(|waiting| waiting.len());
        self.shards.iter().map(len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit_ring::CommitRing;
    use crate::pending_commit::tests::sample;
    use shuttle::sync::Mutex as ShuttleMutex;
    use shuttle::sync::atomic::AtomicU64 as ShuttleU64;
    use std::sync::Arc;

    type ShuttleWaits = CommitWaiters<ShuttleU64, ShuttleMutex<List>>;

    /// T13: committed between the first look and the registration, nobody would wake the waiter any more.
    #[test]
    fn who_registers_looks_again() {
        let waits: CommitWaiters = CommitWaiters::new();
        assert!(!waits.register(Csn(5), 1, Waker::noop(), || true));
        assert!(
            waits
                .park(Csn(5), Box::new(sample(9, 1)), || true)
                .is_some()
        );
        assert_eq!(waits.len(), 0, "nothing is left behind");
        assert!(waits.register(Csn(5), 1, Waker::noop(), || false));
        assert!(waits.register(Csn(5), 1, Waker::noop(), || false));
        assert_eq!(waits.len(), 1, "registered once");
        assert!(
            waits
                .park(Csn(5), Box::new(sample(9, 1)), || false)
                .is_none()
        );
        assert!(waits.register(Csn(5 + SHARDS as u64), 2, Waker::noop(), || false));
        let mut out = SmallVec::new();
        waits.take(Csn(5), &mut out);
        assert_eq!((out.len(), waits.len()), (2, 1), "and no one else's");
        waits.deregister(Csn(5 + SHARDS as u64), 2);
        assert_eq!(waits.len(), 0);
        assert_eq!(waits.shard(Csn(5)).parked.load(Ordering::SeqCst), 0);
    }

    /// Looks for `csn` in the ring, and waits if it is not there, with every interleaving of who sets it.
    fn who_waits_goes_on(wait: fn(&ShuttleWaits, &dyn Fn() -> bool) -> bool) {
        let explored = move || {
            let ring: Arc<CommitRing<ShuttleU64>> = Arc::new(CommitRing::new(8));
            let waits: Arc<ShuttleWaits> = Arc::new(CommitWaiters::new());
            let committer = {
                let (ring, waits) = (ring.clone(), waits.clone());
                shuttle::thread::spawn(move || {
                    let mut out = SmallVec::new();
                    ring.set(Csn(5));
                    waits.take(Csn(5), &mut out);
                    out.len()
                })
            };
            let waiting = wait(&waits, &|| ring.has(Csn(5)));
            let woken = committer.join().expect("commits");
            assert_eq!(woken, usize::from(waiting), "woken, or told at once");
            assert_eq!(waits.len(), 0);
        };
        shuttle::check_dfs(explored, None);
    }

    /// T13: whoever waits for a CSN is taken out by who commits it, or sees for himself that it is Committed.
    #[test]
    fn clients_and_dependents_are_never_forgotten() {
        who_waits_goes_on(|waits, committed| {
            !committed() && waits.register(Csn(5), 1, Waker::noop(), committed)
        });
        who_waits_goes_on(|waits, committed| {
            !committed()
                && waits
                    .park(Csn(5), Box::new(sample(9, 1)), committed)
                    .is_none()
        });
    }
}
