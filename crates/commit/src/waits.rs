//! Who waits for a CSN to be Committed: clients, and transactions that depend on it.
//!
//! Invariant (T13): who waits is registered before it looks once more; who commits a CSN says so in the commit ring before
//! it looks who waits. Either the one sees the other. `parked` spares the look under the lock when nobody waits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use logstead_types::Csn;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::pending::Pending;

/// A power of two; neighbouring CSNs are in different ones.
const SHARDS: usize = 64;

/// Somebody who waits.
pub(crate) enum Waiting {
    /// A task, under the number it registered with.
    Client(u64, Waker),
    /// A transaction whose predecessor it is.
    Dependent(Box<Pending>),
}

#[derive(Default)]
struct Shard {
    parked: AtomicUsize,
    waiting: Mutex<Vec<(Csn, Waiting)>>,
}

/// See the module's documentation.
pub(crate) struct Waits {
    shards: Box<[CachePadded<Shard>]>,
    numbers: AtomicU64,
}

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            numbers: AtomicU64::new(1),
        }
    }

    #[inline]
    fn shard(&self, csn: Csn) -> &Shard {
        &self.shards[csn.0 as usize & (SHARDS - 1)]
    }

    /// A number for a client.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Has a task woken when `csn` is Committed; again under the same number, the waker is replaced. False, and nothing is
    /// registered, if `committed` says yes after the registration.
    pub(crate) fn register(
        &self,
        csn: Csn,
        number: u64,
        waker: &Waker,
        committed: impl FnOnce() -> bool,
    ) -> bool {
        let shard = self.shard(csn);
        let mut waiting = shard.waiting.lock();
        let known = waiting.iter_mut().find_map(|(at, waiting)| match waiting {
            Waiting::Client(of, waker) if *at == csn && *of == number => Some(waker),
            _ => None,
        });
        match known {
            Some(known) => known.clone_from(waker),
            None => {
                waiting.push((csn, Waiting::Client(number, waker.clone())));
                shard.parked.fetch_add(1, Ordering::SeqCst);
            }
        }
        if !committed() {
            return true;
        }
        Self::take_out(shard, &mut waiting, |at, of| at == csn && of == number);
        false
    }

    /// Takes a task out again.
    pub(crate) fn deregister(&self, csn: Csn, number: u64) {
        let shard = self.shard(csn);
        let mut waiting = shard.waiting.lock();
        Self::take_out(shard, &mut waiting, |at, of| at == csn && of == number);
    }

    fn take_out(shard: &Shard, waiting: &mut Vec<(Csn, Waiting)>, is: impl Fn(Csn, u64) -> bool) {
        let found = waiting
            .iter()
            .position(|(at, waiting)| matches!(waiting, Waiting::Client(of, _) if is(*at, *of)));
        if let Some(found) = found {
            waiting.swap_remove(found);
            shard.parked.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Parks a transaction until `csn` is Committed. Given back if `committed` says yes after the registration.
    pub(crate) fn park(
        &self,
        csn: Csn,
        pending: Box<Pending>,
        committed: impl FnOnce() -> bool,
    ) -> Option<Box<Pending>> {
        let shard = self.shard(csn);
        let mut waiting = shard.waiting.lock();
        shard.parked.fetch_add(1, Ordering::SeqCst);
        if committed() {
            shard.parked.fetch_sub(1, Ordering::SeqCst);
            return Some(pending);
        }
        waiting.push((csn, Waiting::Dependent(pending)));
        None
    }

    /// `csn` has been set in the commit ring: hands out who waited for it.
    #[inline]
    pub(crate) fn take(&self, csn: Csn, out: &mut SmallVec<[Waiting; 4]>) {
        let shard = self.shard(csn);
        if shard.parked.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = shard.waiting.lock();
        let before = waiting.len();
        let mut at = 0;
        while at < waiting.len() {
            if waiting[at].0 == csn {
                out.push(waiting.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
        shard
            .parked
            .fetch_sub(before - waiting.len(), Ordering::SeqCst);
    }

    /// Every task, because nothing will be Committed any more.
    pub(crate) fn take_clients(&self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for shard in &self.shards {
            for (_, waiting) in &*shard.waiting.lock() {
                if let Waiting::Client(_, waker) = waiting {
                    wakers.push(waker.clone());
                }
            }
        }
        wakers
    }

    /// How many clients and transactions wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|s| s.waiting.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::tests::sample;

    /// T13: committed between the first look and the registration, nobody would wake the waiter any more.
    #[test]
    fn who_registers_looks_again() {
        let waits = Waits::new();
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
}
