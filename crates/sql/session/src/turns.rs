//! Whose turn it is on a worker: short statements before long ones.
//!
//! All sessions of a worker share its thread. A statement that has used [`LONG_NS`] of it is *long*; from then on it
//! goes on only in turns of the
//! long ones. There is one
//! - when nobody else had anything to do for a round, and has little to do altogether: whatever was ready has run, the
//!   sockets were looked at, and no session has
//!   taken a step; or
//! - when their share is due: of a thread that is busy long statements get one part in [`SHARE`], so none starves, and
//!   none that holds locks holds them for ever.
//!   They get no more of it, though there be free rounds: whoever comes in the middle of a turn waits for its end, and
//!   clients on the same machine need
//!   processors too. Who waits for its share then sleeps.
//!
//! A turn is what a statement does between two yields, of which long ones have more (`exec::context`), or between two
//! pauses in the middle of
//! a computation (`logstead_sql_types::interrupt`), so that whoever comes meanwhile does not wait for long. In a round
//! there is one turn at most, however many long statements there are; they have theirs in the order in which they ask.
//!
//! Why not threads of their own: a transaction belongs to its worker (its snapshots, its lane, its garbage), so a
//! statement that turns out to be long could
//! not move in the middle; and on a machine whose cores the workers already use, the system would give other threads
//! half of them, whatever waits.
//!
//! Does not: measure the first poll of a statement, unless it pauses in it. Most statements end in it, and read no
//! clock for this.

use super::signals::Signals;
use crate::scheduler::WorkerScheduler;
use logstead_env::Instant;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A statement that has used so much of its worker's time is long: some hundred times what one by key takes.
const LONG_NS: u64 = 5_000_000;

/// Long statements together get one part in so many of a worker that is busy.
const SHARE: u32 = 10;

/// How long who waits for its share sleeps at a time: the runtime's clock knows nothing shorter.
const NAP: Duration = Duration::from_millis(1);

/// What who wants to go on is told.
#[derive(Debug, PartialEq, Eq)]
enum ScheduleDecision {
    GoOn,
    /// Others have something to do: ask again when they have done it.
    NextRound,
    /// The share is not due.
    Sleep,
}

/// Runs `work` in turns. It stays where it is: statements are large.
pub(super) async fn in_turns<T>(
    signals: &Signals,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> T {
    let mut turn = ScheduledStatement::of(signals);
    let mut nap = pin!(None);
    poll_fn(|cx| {
        ready!(turn.poll(nap.as_mut(), cx));
        let polled = work.as_mut().poll(cx);
        turn.end();
        polled
    })
    .await
}

/// In the middle of a poll, which has gone on since then: the others have their turns, and it goes on when it has its
/// own, or is to end.
pub(super) fn pause(signals: &Signals, since: Instant) {
    let mut turn = ScheduledStatement::of(signals);
    // What comes behind it is measured, be it in the first poll.
    signals.used().started.store(true, Ordering::Relaxed);
    turn.began = Some(since);
    turn.end();
    let mut nap = pin!(None);
    let mut first = true;
    let others = pin!(poll_fn(|cx| {
        if std::mem::take(&mut first) {
            next_round(cx);
            return Poll::Pending;
        }
        // Nobody else looks at its time limit meanwhile.
        let clock = signals.scheduler().clock();
        let goes_on = signals
            .statement()
            .check_at(|| clock.now_micros_since_2000());
        match goes_on {
            Ok(()) => turn.poll(nap.as_mut(), cx),
            Err(_) => Poll::Ready(()),
        }
    }));
    let _have_had_their_turns = logstead_fiber::wait(others);
    let now = signals.scheduler().clock.monotonic().as_nanos();
    signals.used().resumed_ns.store(now, Ordering::Relaxed);
}

/// Has the task woken when all others had their turn.
fn next_round(cx: &mut Context<'_>) {
    // The future is made for this one poll.
    let _is_pending = pin!(tokio::task::yield_now()).poll(cx);
}

/// A statement's place among the others.
struct ScheduledStatement<'s> {
    signals: &'s Signals,
    /// When the poll began that is being measured.
    began: Option<Instant>,
    /// Its place in the line, while it waits.
    ticket: Option<u64>,
    /// Steps and long turns when it last asked or ran.
    seen: Option<(u64, u64)>,
}

impl<'s> ScheduledStatement<'s> {
    fn of(signals: &'s Signals) -> ScheduledStatement<'s> {
        ScheduledStatement {
            signals,
            began: None,
            ticket: None,
            seen: None,
        }
    }

    /// Is the statement to end? That is seen to by who polls it.
    fn is_cancelled(&self) -> bool {
        self.signals.statement().is_set()
    }

    /// Ready when it may go on.
    fn poll(
        &mut self,
        mut nap: Pin<&mut Option<tokio::time::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if let Some(sleeps) = nap.as_mut().as_pin_mut() {
            if sleeps.poll(cx).is_pending() && !self.is_cancelled() {
                return Poll::Pending;
            }
            nap.set(None);
        }
        match self.begin() {
            ScheduleDecision::GoOn => Poll::Ready(()),
            ScheduleDecision::NextRound => {
                next_round(cx);
                Poll::Pending
            }
            ScheduleDecision::Sleep => {
                nap.set(Some(tokio::time::sleep(NAP)));
                if let Some(sleeps) = nap.as_mut().as_pin_mut() {
                    let _registers_its_waker = sleeps.poll(cx);
                }
                Poll::Pending
            }
        }
    }

    /// May it go on now?
    fn begin(&mut self) -> ScheduleDecision {
        let (turns, used) = (self.signals.scheduler(), self.signals.used());
        if !used.started.load(Ordering::Relaxed) {
            used.started.store(true, Ordering::Relaxed);
            return ScheduleDecision::GoOn;
        }
        let now = turns.clock.monotonic();
        if self.signals.statement().is_long() {
            let answer = self.ask(turns, now);
            if answer != ScheduleDecision::GoOn {
                return answer;
            }
        } else {
            turns.step();
        }
        self.began = Some(now);
        ScheduleDecision::GoOn
    }

    fn ask(&mut self, turns: &WorkerScheduler, now: Instant) -> ScheduleDecision {
        let mut line = turns.line.lock();
        let ticket = match self.ticket {
            Some(ticket) => ticket,
            None => {
                let ticket = line.next_ticket;
                line.next_ticket += 1;
                line.waiting.push_back(ticket);
                *self.ticket.insert(ticket)
            }
        };
        let sees = (turns.steps.load(Ordering::Relaxed), line.turns);
        line.measure(now, sees.0);
        // It asks once in a round: nothing has happened since the last time, nothing in a whole round.
        let free = self.seen.replace(sees) == Some(sees) && !turns.held.load(Ordering::Relaxed);
        let may = now >= line.due || (free && !line.busy);
        if !may || line.waiting.front() != Some(&ticket) {
            return match line.busy && free {
                true => ScheduleDecision::Sleep,
                false => ScheduleDecision::NextRound,
            };
        }
        line.waiting.pop_front();
        self.ticket = None;
        ScheduleDecision::GoOn
    }

    /// It has had its turn.
    fn end(&mut self) {
        let (turns, used) = (self.signals.scheduler(), self.signals.used());
        let resumed_ns = used.resumed_ns.swap(0, Ordering::Relaxed);
        let resumed = (resumed_ns > 0).then(|| Instant::from_nanos(resumed_ns));
        let Some(began) = self.began.take().max(resumed) else {
            return;
        };
        let now = turns.clock.monotonic();
        let took = now.since(began);
        if self.signals.statement().is_long() {
            let mut line = turns.line.lock();
            line.turns += 1;
            line.due = now + took * (SHARE - 1);
            self.seen = Some((turns.steps.load(Ordering::Relaxed), line.turns));
            return;
        }
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let ns = used.ns.load(Ordering::Relaxed).saturating_add(ns);
        used.ns.store(ns, Ordering::Relaxed);
        if ns >= LONG_NS {
            self.signals.statement().set_long();
        }
    }
}

impl Drop for ScheduledStatement<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut line = self.signals.scheduler().line.lock();
            line.waiting.retain(|waiting| *waiting != ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_env::{Clock, SimClock};
    use std::sync::Arc;

    struct World {
        clock: Arc<SimClock>,
        turns: Arc<WorkerScheduler>,
    }

    impl World {
        fn new() -> World {
            let clock = Arc::new(SimClock::new());
            let turns = Arc::new(WorkerScheduler::new(Arc::clone(&clock) as Arc<dyn Clock>));
            World { clock, turns }
        }

        fn session(&self) -> Signals {
            Signals::new(Arc::clone(&self.turns))
        }

        /// A poll that takes so many microseconds, if the statement may go on.
        fn poll(&self, turn: &mut ScheduledStatement<'_>, us: u64) -> bool {
            let begins = turn.begin() == ScheduleDecision::GoOn;
            if begins {
                self.clock.advance(Duration::from_micros(us));
                turn.end();
            }
            begins
        }

        /// Polls until the statement is long; how often.
        fn until_long(&self, turn: &mut ScheduledStatement<'_>) -> usize {
            (1..1000)
                .find(|_| {
                    assert!(self.poll(turn, 1000), "what is short does not wait");
                    turn.signals.statement().is_long()
                })
                .unwrap()
        }
    }

    #[test]
    fn a_statement_is_long_when_it_has_used_some_milliseconds_and_the_next_one_is_not() {
        let world = World::new();
        let session = world.session();
        let mut turn = ScheduledStatement::of(&session);
        assert_eq!(world.until_long(&mut turn), 6, "the first is not measured");
        drop(turn);
        session.begin_statement();
        assert!(!session.statement().is_long());
        assert_eq!(world.until_long(&mut ScheduledStatement::of(&session)), 6);
    }

    #[test]
    fn a_long_one_goes_on_when_a_round_was_free() {
        let world = World::new();
        let session = world.session();
        let mut turn = ScheduledStatement::of(&session);
        world.until_long(&mut turn);
        assert!(world.poll(&mut turn, 10), "the share is due: none had one");
        assert!(world.poll(&mut turn, 10), "nobody else did anything");
        world.turns.step();
        assert!(!world.poll(&mut turn, 10), "somebody did");
        assert!(world.poll(&mut turn, 10));
        world.turns.hold(true);
        assert!(!world.poll(&mut turn, 10));
        assert!(!world.poll(&mut turn, 10));
        world.turns.hold(false);
        assert!(world.poll(&mut turn, 10));
    }

    #[test]
    fn on_a_worker_that_is_never_free_the_long_ones_get_their_share() {
        let world = World::new();
        let session = world.session();
        let mut turn = ScheduledStatement::of(&session);
        world.until_long(&mut turn);
        let before = world.turns.long_turns();
        for _ in 0..16_000 {
            world.turns.step();
            if !world.poll(&mut turn, 100) {
                world.clock.advance(Duration::from_micros(10));
            }
        }
        // Nine parts of 100 us are 90 rounds of the others.
        let had = world.turns.long_turns() - before;
        assert!((170..=180).contains(&had), "{had}");
        // Free rounds of a busy worker are nobody's.
        assert!(!world.poll(&mut turn, 100));
        assert_eq!(turn.begin(), ScheduleDecision::Sleep);
        // A worker that has had little to do for a while is not busy.
        for _ in 0..2 {
            world.clock.advance(Duration::from_millis(20));
            assert!(world.poll(&mut turn, 100), "the share is due");
        }
        world.turns.step();
        assert!(!world.poll(&mut turn, 100));
        assert!(world.poll(&mut turn, 100), "a free round");
    }

    #[test]
    fn several_take_turns_one_in_a_round() {
        let world = World::new();
        let sessions: Vec<Signals> = (0..3).map(|_| world.session()).collect();
        let mut turns: Vec<ScheduledStatement<'_>> =
            sessions.iter().map(ScheduledStatement::of).collect();
        for turn in &mut turns {
            world.until_long(turn);
        }
        let mut had = [0; 3];
        for _ in 0..30 {
            let mut in_round = 0;
            for (turn, had) in turns.iter_mut().zip(&mut had) {
                let polled = usize::from(world.poll(turn, 10));
                (*had, in_round) = (*had + polled, in_round + polled);
            }
            assert!(in_round <= 1);
        }
        // Whoever comes first in a round sees then only that the last one had its turn.
        assert!(had.iter().all(|had| (7..=10).contains(had)), "{had:?}");
        // Who is cancelled while it waits is in nobody's way.
        turns.remove(0);
        let before = world.turns.long_turns();
        for _ in 0..10 {
            for turn in &mut turns {
                world.poll(turn, 10);
            }
        }
        assert!(world.turns.long_turns() - before >= 6);
    }
}
