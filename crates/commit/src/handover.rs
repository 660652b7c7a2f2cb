//! What locks hand over: whom their next holder depends on.
//!
//! Locks are free at pre-commit, before what their holder did is durable (early lock release). Where something was
//! written, the next holder meets the version and depends on its writer. A lock under which nothing was written leaves
//! no version behind: who gives it back notes its CSN here, and who takes it looks here.
//!
//! One word per mode at a place that the lock's hash gives: nothing is allocated or freed, however many locks there
//! are. It has the newest CSN that was noted there, and whether others are meant that may not be Committed either: then
//! it stands for everything up to it. Two locks that share a place make the next holder of one depend on the former of
//! the other, too: it may wait longer, never too short.
//!
//! Invariant: who gives back notes first, and who takes looks last. So of all holders before it whose lock conflicts
//! with its own, the taker is told, or they are Committed.

use std::sync::atomic::AtomicU64;

use logstead_types::Csn;

use crate::atomic_facade::AtomicWord;
use crate::dependency_set::IsCommitted;

/// Modes that a lock may have: strengths of a row's.
const MODES: usize = 4;
/// Places of the server's; a power of two. With as many locks given back per flush as this, every other one would find
/// itself alone.
const PLACES: usize = 4096;
/// The lowest bit of a word: the CSN above it is not alone.
const SEVERAL: u64 = 1;

/// Who had a lock before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorLockHolder {
    /// This transaction.
    By(Csn),
    /// Transactions up to this one.
    UpTo(Csn),
}

impl PriorLockHolder {
    fn of(word: u64) -> PriorLockHolder {
        let csn = Csn(word >> 1);
        match word & SEVERAL {
            0 => PriorLockHolder::By(csn),
            _ => PriorLockHolder::UpTo(csn),
        }
    }

    fn word(self) -> u64 {
        match self {
            PriorLockHolder::By(csn) => csn.0 << 1,
            PriorLockHolder::UpTo(csn) => csn.0 << 1 | SEVERAL,
        }
    }

    fn csn(self) -> Csn {
        let (PriorLockHolder::By(csn) | PriorLockHolder::UpTo(csn)) = self;
        csn
    }

    fn is_committed(self, done: &impl IsCommitted) -> bool {
        match self {
            PriorLockHolder::By(csn) => done.is_committed(csn),
            PriorLockHolder::UpTo(csn) => csn < done.horizon(),
        }
    }
}

/// See the module's documentation.
pub struct Handovers<W: AtomicWord = AtomicU64> {
    places: Box<[[W; MODES]]>,
}

impl Default for Handovers {
    fn default() -> Handovers {
        Handovers::new(PLACES)
    }
}

impl<W: AtomicWord> Handovers<W> {
    /// With so many places, a power of two.
    fn new(places: usize) -> Handovers<W> {
        assert!(places.is_power_of_two(), "a mask finds the place");
        Handovers {
            places: (0..places)
                .map(|_| std::array::from_fn(|_| W::new(0)))
                .collect(),
        }
    }

    fn words(&self, hash: u64) -> &[W; MODES] {
        &self.places[hash as usize & (self.places.len() - 1)]
    }

    /// The lock with this hash is about to be given back, which was held in `mode`. Called before anybody can take it.
    pub fn note(&self, hash: u64, mode: usize, by: PriorLockHolder, done: &impl IsCommitted) {
        let word = &self.words(hash)[mode];
        loop {
            let before = word.load();
            let noted = PriorLockHolder::of(before);
            let after = if noted == by || by.is_committed(done) {
                return;
            } else if noted.is_committed(done) {
                by
            } else {
                PriorLockHolder::UpTo(noted.csn().max(by.csn()))
            };
            if after == noted || word.swap_if(before, after.word()) {
                return;
            }
        }
    }

    /// Who gave the lock back that held it in `mode`, unless that is Committed. Called by who has the lock.
    pub fn from(&self, hash: u64, mode: usize, done: &impl IsCommitted) -> Option<PriorLockHolder> {
        let noted = PriorLockHolder::of(self.words(hash)[mode].load());
        (!noted.is_committed(done)).then_some(noted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::atomic::{AtomicU64 as LoomU64, Ordering};

    struct Done {
        horizon: u64,
        also: &'static [u64],
    }

    impl IsCommitted for Done {
        fn horizon(&self) -> Csn {
            Csn(self.horizon)
        }
        fn is_committed(&self, csn: Csn) -> bool {
            csn.0 < self.horizon || self.also.contains(&csn.0)
        }
    }

    const NOTHING: Done = Done {
        horizon: 1,
        also: &[],
    };

    #[test]
    fn one_is_named_and_several_are_everything_up_to_the_newest() {
        let locks: Handovers = Handovers::new(8);
        assert_eq!(locks.from(3, 0, &NOTHING), None);
        locks.note(3, 0, PriorLockHolder::By(Csn(7)), &NOTHING);
        locks.note(3, 0, PriorLockHolder::By(Csn(7)), &NOTHING);
        let by_7 = Some(PriorLockHolder::By(Csn(7)));
        assert_eq!(locks.from(3, 0, &NOTHING), by_7);
        assert_eq!(locks.from(3, 1, &NOTHING), None, "another mode");
        assert_eq!(locks.from(4, 0, &NOTHING), None, "another lock");
        // Late: a newer one had the lock after it.
        locks.note(3, 0, PriorLockHolder::By(Csn(5)), &NOTHING);
        let up_to_7 = Some(PriorLockHolder::UpTo(Csn(7)));
        assert_eq!(locks.from(3, 0, &NOTHING), up_to_7);
        let seven = Done {
            horizon: 5,
            also: &[7],
        };
        assert_eq!(locks.from(3, 0, &seven), up_to_7, "5 is still meant");
        let all = Done {
            horizon: 8,
            also: &[],
        };
        assert_eq!(locks.from(3, 0, &all), None);
        locks.note(3, 0, PriorLockHolder::By(Csn(9)), &all);
        let by_9 = Some(PriorLockHolder::By(Csn(9)));
        assert_eq!(locks.from(3, 0, &all), by_9, "what was before is Committed");
        locks.note(3, 0, PriorLockHolder::By(Csn(6)), &all);
        assert_eq!(locks.from(3, 0, &all), by_9, "and so is what comes late");
    }

    /// Two locks at one place, given back at the same time: who takes both is told of both.
    #[test]
    fn no_note_is_lost_to_another_one_at_its_place() {
        loom::model(|| {
            let locks: loom::sync::Arc<Handovers<LoomU64>> =
                loom::sync::Arc::new(Handovers::new(1));
            let held = [LoomU64::new(1), LoomU64::new(1)];
            let held = loom::sync::Arc::new(held);
            let gives_back = |at: usize, csn: u64| {
                let (locks, held) = (locks.clone(), held.clone());
                loom::thread::spawn(move || {
                    locks.note(at as u64, 0, PriorLockHolder::By(Csn(csn)), &NOTHING);
                    held[at].store(0, Ordering::SeqCst);
                })
            };
            let (one, other) = (gives_back(0, 5), gives_back(1, 6));
            let free = |at: usize| held[at].load(Ordering::SeqCst) == 0;
            if free(0) {
                let told = locks.from(0, 0, &NOTHING);
                assert!(
                    matches!(
                        told,
                        Some(PriorLockHolder::By(Csn(5)) | PriorLockHolder::UpTo(Csn(6)))
                    ),
                    "{told:?}"
                );
            }
            one.join().expect("gives back");
            other.join().expect("gives back");
            let told = locks.from(1, 0, &NOTHING);
            assert_eq!(told, Some(PriorLockHolder::UpTo(Csn(6))));
        });
    }
}
