//! One load however many wait, and for whichever rows of a chunk; who goes away takes his request along; failures reach
//! everybody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Wake;

use logstead_types::TableId;

use super::*;
use crate::memory::UNLIMITED;
use crate::memory_queue::MemoryQueue;
use crate::rows::TableRows;

/// Loads what it is told to through a channel, and counts.
struct Slow {
    loads: Arc<AtomicUsize>,
    slots: Arc<Mutex<Vec<SlotRequest>>>,
    begun: Sender<u64>,
    /// How many loads have begun, and how many of them have been told to go on: first come, first told.
    turns: Mutex<(u64, u64)>,
    turned: Condvar,
    go: Mutex<Receiver<Result<(), FaultError>>>,
}

impl Slow {
    /// Says that a load begins, and waits for what the test says to it.
    fn begin(&self, number: u64) -> Result<(), FaultError> {
        let mut turns = self.turns.lock();
        let mine = turns.0;
        turns.0 += 1;
        let _the_test_may_be_over = self.begun.send(number);
        while turns.1 != mine {
            self.turned.wait(&mut turns);
        }
        drop(turns);
        let told = self.go.lock().recv().unwrap_or(Err(FaultError::Closing));
        self.turns.lock().1 += 1;
        self.turned.notify_all();
        told
    }
}

impl FaultHandler for Slow {
    fn load(&self, wanted: &FaultTarget, slots: &SlotRequest) -> Result<(), FaultError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.slots.lock().push(*slots);
        let FaultTarget::Rows { number, .. } = wanted else {
            return Ok(());
        };
        self.begin(*number)
    }

    fn load_run(
        &self,
        run: &Prefetch,
        next: &dyn Fn(u64, &SlotSet) -> PrefetchDecision,
        done: &dyn Fn(u64),
    ) {
        for (number, slots) in run.rest() {
            match next(*number, slots) {
                PrefetchDecision::Load => {
                    let _whatever_comes = self.begin(*number);
                    done(*number);
                }
                PrefetchDecision::Skip => {}
                PrefetchDecision::Defer => return,
            }
        }
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct World {
    /// Dropped first: a test that fails must not wait for loads that nobody lets go on.
    go: Sender<Result<(), FaultError>>,
    faults: FaultQueue,
    loads: Arc<AtomicUsize>,
    slots: Arc<Mutex<Vec<SlotRequest>>>,
    begun: Receiver<u64>,
    rows: Arc<TableRows>,
    waker: Waker,
}

impl World {
    fn new(threads: usize) -> World {
        let loads = Arc::new(AtomicUsize::new(0));
        let (begun_in, begun) = channel();
        let (go, go_out) = channel();
        let slots = Arc::new(Mutex::default());
        let loader = Slow {
            loads: loads.clone(),
            slots: Arc::clone(&slots),
            begun: begun_in,
            turns: Mutex::default(),
            turned: Condvar::new(),
            go: Mutex::new(go_out),
        };
        World {
            faults: FaultQueue::new(Box::new(loader), threads),
            loads,
            slots,
            begun,
            go,
            rows: Arc::new({
                let rows = TableRows::new(TableId(1), &UNLIMITED);
                rows.expect(100 * 64);
                rows
            }),
            waker: Waker::from(Arc::new(Unpark(std::thread::current()))),
        }
    }

    fn ask(&self, number: u64, slot: usize) -> FaultPoll {
        let wanted = Arc::new(FaultTarget::Rows {
            rows: self.rows.clone(),
            number,
            slots: SlotRequest::of(SlotSet::one(slot)),
        });
        self.faults.ask(&wanted, &self.waker)
    }

    /// Asks for chunks ahead, on behalf of nobody.
    fn run(&self, chunks: &[u64]) -> Arc<Prefetch> {
        let run = Prefetch::of(
            &self.rows,
            chunks,
            &MemoryQueue::new(&UNLIMITED, Arc::default()),
        );
        self.faults.request_read_ahead(&run);
        run
    }

    fn ticket(&self, number: u64) -> FaultTicket {
        self.ticket_for(number, 0)
    }

    fn ticket_for(&self, number: u64, slot: usize) -> FaultTicket {
        match self.ask(number, slot) {
            FaultPoll::Waiting(ticket) => ticket,
            FaultPoll::Done(outcome) => panic!("done at once: {outcome:?}"),
        }
    }

    /// Parks until the ticket is called.
    fn outcome(&self, ticket: &FaultTicket) -> Result<(), FaultError> {
        loop {
            match ticket.poll(&self.waker) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

/// Runs that nobody wants any more, and those that are too many, do not gather while the threads have no time for them.
#[test]
fn few_runs_wait_for_a_thread() {
    let world = World::new(2);
    let first = world.run(&[1]);
    assert_eq!(
        world.begun.recv(),
        Ok(1),
        "the one thread for runs is at it"
    );
    let waiting = || world.faults.shared.state.lock().ahead.len();
    for _ in 0..2 * RUNS_MAX {
        world.run(&[2, 3]).release();
    }
    assert!(waiting() <= RUNS_MAX, "{}", waiting());
    let wanted: Vec<_> = (0..2 * RUNS_MAX).map(|_| world.run(&[4, 5])).collect();
    assert_eq!(waiting(), RUNS_MAX);
    let queued = wanted.iter().filter(|run| run.rest().len() == 2).count();
    assert_eq!(queued, RUNS_MAX, "those of the dead made room for them");
    wanted.iter().for_each(|run| run.release());
    world.go.send(Ok(())).expect("is listened to");
    while !world.faults.has_no_runs() {
        // None of the others is begun.
        assert!(world.begun.try_recv().is_err());
        std::thread::yield_now();
    }
    drop(first);
}

#[test]
fn all_who_wait_for_one_thing_share_a_load_and_its_outcome() {
    let world = World::new(2);
    let first = world.ticket(7);
    assert_eq!(world.begun.recv(), Ok(7));
    let second = world.ticket(7);
    let other = world.ticket(8);
    assert_eq!(
        world.begun.recv(),
        Ok(8),
        "another thread takes it meanwhile"
    );
    world.go.send(Ok(())).expect("is listened to");
    world.go.send(Ok(())).expect("is listened to");
    for ticket in [&first, &second, &other] {
        assert_eq!(world.outcome(ticket), Ok(()));
    }
    assert_eq!(world.loads.load(Ordering::SeqCst), 2);

    let failing = [world.ticket(7), world.ticket(7)];
    let damaged = FaultError::Damaged("chunk 7".into());
    world.go.send(Err(damaged.clone())).expect("is listened to");
    for ticket in &failing {
        assert_eq!(world.outcome(ticket), Err(damaged.clone()));
    }
    let again = world.ticket(7);
    world.go.send(Ok(())).expect("is listened to");
    assert_eq!(world.outcome(&again), Ok(()), "a failure is not remembered");
    assert_eq!(world.loads.load(Ordering::SeqCst), 4);
}

#[test]
fn what_nobody_waits_for_any_more_is_not_loaded() {
    let world = World::new(1);
    let first = world.ticket(1);
    assert_eq!(world.begun.recv(), Ok(1));
    drop(world.ticket(2));
    let (left, stayed) = (world.ticket(3), world.ticket(3));
    drop(left);
    let last = world.ticket(4);
    for _ in 0..3 {
        world.go.send(Ok(())).expect("is listened to");
    }
    for ticket in [&first, &stayed, &last] {
        assert_eq!(world.outcome(ticket), Ok(()));
    }
    let begun: Vec<u64> = world.begun.try_iter().collect();
    assert_eq!(begun, [3, 4]);
    // It may have begun before nobody waits.
    world.go.send(Ok(())).expect("is listened to");
    drop(world.ticket(2));
}

/// Rows of one chunk are one load, as long as it has not begun; who comes later is told to look again, and then asks
/// anew.
#[test]
fn rows_of_a_chunk_are_loaded_together() {
    let world = World::new(1);
    let first = world.ticket_for(1, 5);
    assert_eq!(world.begun.recv(), Ok(1));
    let late = world.ticket_for(1, 7);
    let queued = [2, 3, 2].map(|slot| world.ticket_for(2, slot));
    for _ in 0..2 {
        world.go.send(Ok(())).expect("is listened to");
    }
    for ticket in [&first, &late].into_iter().chain(&queued) {
        assert_eq!(world.outcome(ticket), Ok(()));
    }
    let again = world.ticket_for(1, 7);
    world.go.send(Ok(())).expect("is listened to");
    assert_eq!(world.outcome(&again), Ok(()));
    let both = SlotSet::one(2).union(&SlotSet::one(3));
    let expected = [SlotSet::one(5), both, SlotSet::one(7)];
    let needed: Vec<SlotSet> = world
        .slots
        .lock()
        .iter()
        .map(|slots| slots.needed)
        .collect();
    assert_eq!(needed, expected);
    assert!(
        world
            .slots
            .lock()
            .iter()
            .all(|slots| slots.beside.is_empty())
    );
}

#[test]
fn without_threads_who_waits_loads() {
    let world = World::new(0);
    world.go.send(Ok(())).expect("is listened to");
    assert!(matches!(world.ask(1, 0), FaultPoll::Done(Ok(()))));
    world
        .go
        .send(Err(FaultError::Closing))
        .expect("is listened to");
    assert!(matches!(
        world.ask(1, 0),
        FaultPoll::Done(Err(FaultError::Closing))
    ));
}

#[test]
fn whoever_waits_when_it_closes_hears_of_it() {
    let world = World::new(1);
    let loading = world.ticket(1);
    assert_eq!(world.begun.recv(), Ok(1));
    let queued = world.ticket(2);
    world.go.send(Ok(())).expect("is listened to");
    let World {
        faults, go, waker, ..
    } = world;
    drop(go);
    drop(faults);
    assert_eq!(loading.poll(&waker), Poll::Ready(Ok(())));
    let Poll::Ready(outcome) = queued.poll(&waker) else {
        panic!("it would wait for ever");
    };
    assert!(matches!(outcome, Ok(()) | Err(FaultError::Closing)));
}

/// Half of the threads read ahead, the others are left for who waits; and what is read ahead already is not read again
/// for him.
#[test]
fn who_comes_to_what_is_being_read_ahead_waits_for_that() {
    let world = World::new(4);
    let _runs = [world.run(&[10, 11]), world.run(&[20]), world.run(&[30])];
    let mut begun = [world.begun.recv(), world.begun.recv()];
    begun.sort_unstable_by_key(|begun| begun.unwrap_or(0));
    assert_eq!(begun, [Ok(10), Ok(20)]);
    let came = world.ticket(10);
    let other = world.ticket(5);
    // Not the third run, though there are threads.
    assert_eq!(world.begun.recv(), Ok(5));
    assert!(world.begun.try_recv().is_err());
    for _ in 0..5 {
        world.go.send(Ok(())).expect("is listened to");
    }
    assert_eq!(world.outcome(&came), Ok(()));
    assert_eq!(world.outcome(&other), Ok(()));
    let mut rest = [world.begun.recv(), world.begun.recv()];
    rest.sort_unstable_by_key(|begun| begun.unwrap_or(0));
    assert_eq!(rest, [Ok(11), Ok(30)]);
    assert_eq!(world.loads.load(Ordering::SeqCst), 1, "chunk 5 alone");
}

/// A thread leaves a run when somebody waits whom no other serves, and comes back to it; what was passed meanwhile is
/// left out.
#[test]
fn a_run_waits_for_those_who_wait() {
    let world = World::new(2);
    let run = world.run(&[10, 11, 12]);
    assert_eq!(world.begun.recv(), Ok(10));
    let needed = [world.ticket(1), world.ticket(2), world.ticket(3)];
    assert_eq!(world.begun.recv(), Ok(1));
    assert!(!run.pass(12));
    for expected in [2, 3, 12] {
        world.go.send(Ok(())).expect("is listened to");
        assert_eq!(world.begun.recv(), Ok(expected));
    }
    for _ in 0..2 {
        world.go.send(Ok(())).expect("is listened to");
    }
    for ticket in &needed {
        assert_eq!(world.outcome(ticket), Ok(()));
    }
    assert!(run.pass(13));
}
