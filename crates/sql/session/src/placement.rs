//! Where a session belongs: at the instance that owns what its transactions look at.
//!
//! Rule: a transaction is *of* the instance that it ran in if more than half of its accesses were to what that one
//! owns, else of the one that most of its foreign accesses were to. When so many transactions in a row are of one other
//! instance (`session_move_threshold`), the session is to move there. Each move, or look that finds that it cannot,
//! doubles the number that the next one needs, up to [`DOUBLED_MAX`] times, and as many transactions as [`SETTLED`]
//! such numbers in a row at home halve it again: a session that takes turns moves ever more rarely, one that stays
//! where it is well placed may move soon when its keys change.
//!
//! Pure: accesses in, a wish out. Does not: move a session (`session_move`), nor know whether there is room for it.

use logstead_engine::InstancesTouched;
use logstead_types::InstanceId;
use std::cmp::Ordering;

/// How often the number of transactions is doubled at most.
const DOUBLED_MAX: u32 = 10;
/// So many times the number of transactions that a move needs, all at home, make the next one easier.
const SETTLED: u32 = 64;

/// Where one session's transactions have led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionPlacement {
    /// The instance of the last transactions, and how many in a row were its.
    last: Option<(InstanceId, u32)>,
    /// How often the number that a move needs is doubled.
    doubled: u32,
    /// Where the session is to move.
    wish: Option<InstanceId>,
}

/// The instance to which most accesses of a transaction that ran at `home` have led.
fn owner(home: InstanceId, touched: InstancesTouched) -> Option<InstanceId> {
    match touched.local.cmp(&touched.foreign) {
        Ordering::Greater => Some(home),
        Ordering::Equal => None,
        Ordering::Less => touched.foreign_most,
    }
}

impl SessionPlacement {
    /// A transaction that ran at `home` is over. `threshold` is not 0.
    pub(crate) fn transaction(
        &mut self,
        home: InstanceId,
        touched: InstancesTouched,
        threshold: u32,
    ) {
        if touched.local == 0 && touched.foreign == 0 {
            return;
        }
        let Some(owner) = owner(home, touched) else {
            self.last = None;
            self.wish = None;
            return;
        };
        let in_a_row = match self.last {
            Some((last, count)) if last == owner => count.saturating_add(1),
            _ => 1,
        };
        self.last = Some((owner, in_a_row));
        let needed = self.needed(threshold);
        if owner == home {
            self.wish = None;
            if self.doubled > 0 && in_a_row >= needed.saturating_mul(SETTLED) {
                self.doubled -= 1;
                self.last = Some((owner, 0));
            }
        } else {
            self.wish = (in_a_row >= needed).then_some(owner);
        }
    }

    fn needed(&self, threshold: u32) -> u32 {
        threshold.saturating_mul(1 << self.doubled)
    }

    /// Where the session is to go.
    #[inline]
    pub(crate) fn wish(&self) -> Option<InstanceId> {
        self.wish
    }

    /// It goes, or it has been found that it cannot: either way the next wish needs twice as many transactions.
    pub(crate) fn decided(&mut self) {
        self.wish = None;
        self.last = None;
        self.doubled = (self.doubled + 1).min(DOUBLED_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: u32 = 4;

    /// A session, the instance it is at, and how often it has moved.
    struct Moving {
        placement: SessionPlacement,
        at: InstanceId,
        moves: usize,
    }

    impl Moving {
        fn new() -> Moving {
            Moving {
                placement: SessionPlacement::default(),
                at: InstanceId(0),
                moves: 0,
            }
        }

        fn run(&mut self, accesses: InstancesTouched) {
            self.placement.transaction(self.at, accesses, THRESHOLD);
            if let Some(to) = self.placement.wish() {
                assert_ne!(to, self.at);
                self.placement.decided();
                self.at = to;
                self.moves += 1;
            }
        }

        /// Transactions whose keys are all of one instance.
        fn of(&mut self, instance: u16, transactions: usize) {
            for _ in 0..transactions {
                let all_of = |instance: InstanceId| match instance == self.at {
                    true => accesses(3, &[]),
                    false => accesses(0, &[(instance.0, 3)]),
                };
                self.run(all_of(InstanceId(instance)));
            }
        }
    }

    fn accesses(local: u32, foreign: &[(u16, u32)]) -> InstancesTouched {
        let mut touched = InstancesTouched::default();
        touched.local = local;
        touched.foreign = foreign.iter().map(|(_, count)| count).sum();
        let most = foreign.iter().max_by_key(|(_, count)| count);
        touched.foreign_most = most.map(|(instance, _)| InstanceId(*instance));
        touched
    }

    #[test]
    fn a_session_follows_its_keys() {
        let mut session = Moving::new();
        session.of(2, 3);
        assert_eq!(session.moves, 0, "not yet");
        session.of(2, 1);
        assert_eq!((session.moves, session.at), (1, InstanceId(2)));
        session.of(2, 1000);
        assert_eq!(session.moves, 1);
    }

    #[test]
    fn what_looks_at_nothing_tells_nothing() {
        let mut session = Moving::new();
        for _ in 0..4 {
            session.of(1, 1);
            session.run(accesses(0, &[]));
        }
        assert_eq!(session.at, InstanceId(1));
    }

    #[test]
    fn who_is_spread_stays() {
        let mut session = Moving::new();
        for _ in 0..100 {
            session.run(accesses(0, &[(1, 1)]));
            session.run(accesses(1, &[(1, 1)]));
            session.run(accesses(0, &[(2, 1)]));
            session.run(accesses(2, &[(1, 1), (2, 1)]));
        }
        for _ in 0..100 {
            session.of(1, 3);
            session.run(accesses(1, &[(1, 1)]));
        }
        assert_eq!(session.moves, 0);
    }

    #[test]
    fn who_takes_turns_moves_ever_more_rarely() {
        for period in [1, 2, 3, 4, 5, 8, 13, 50] {
            let mut session = Moving::new();
            for turn in 0..2000 {
                session.of(turn % 2, period);
            }
            // Twice as many each time; whoever has stayed long between two moves has earned the next.
            let earned = 2000 * period / 500;
            assert!(session.moves <= earned + 10, "{period}: {}", session.moves);
            if period < THRESHOLD as usize {
                assert_eq!(session.moves, 0);
            }
        }
    }

    #[test]
    fn who_has_settled_may_move_soon_again() {
        let mut session = Moving::new();
        session.of(1, 4);
        session.of(2, 8);
        session.of(1, 15);
        assert_eq!((session.moves, session.at), (2, InstanceId(2)));
        session.of(1, 1);
        assert_eq!(session.moves, 3);
        session.of(1, SETTLED as usize * (32 + 16 + 8));
        session.of(2, 4);
        assert_eq!((session.moves, session.at), (4, InstanceId(2)));
    }

    #[test]
    fn who_finds_no_room_asks_again_later() {
        let mut placement = SessionPlacement::default();
        let mut wishes = 0;
        for _ in 0..40 {
            placement.transaction(InstanceId(0), accesses(0, &[(1, 2)]), THRESHOLD);
            if placement.wish().is_some() {
                placement.decided();
                wishes += 1;
            }
        }
        // After 4, 8 and 16 transactions more.
        assert_eq!(wishes, 3);
    }
}
