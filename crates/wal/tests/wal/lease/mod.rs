//! The lease: who may write a home that no kernel's lock keeps, and who may answer (T3, T15).

mod checkpoints;
mod handed_over;
mod model;
use crate::rig;
mod shelf;

use logstead_env::{Clock, Env, Instant, Processes, SimClock, SimProcesses, SimRandom};
use logstead_home::bucket::memory::{Fault, MemoryBucket, MemoryOptions, RequestKind};
use logstead_home::{
    HomeError, LaneAppends, LogHome, NamedValues, ObjectHome, ObjectOptions, Timer,
};
use logstead_wal::lease::{Lease, LeaseEvent, LeaseOptions};
use logstead_wal::manifest::{self, Manifest};
use logstead_wal::recovery::{self, RecoveryError, RecoveryOptions};
use parking_lot::Mutex;
use rig::Server;
use shelf::Shelf;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(10);

/// Time, and the processes on a machine, that all servers of a test share.
#[derive(Clone)]
struct World {
    clock: Arc<SimClock>,
    shelf: Shelf,
    gone: Arc<Mutex<Vec<u32>>>,
}

/// One process.
#[derive(Clone)]
struct Starter {
    world: World,
    number: u32,
    home: Shelf,
    options: RecoveryOptions,
    events: Arc<Mutex<Vec<LeaseEvent>>>,
}

struct Machine {
    own: SimProcesses,
    gone: Arc<Mutex<Vec<u32>>>,
}

impl Processes for Machine {
    fn identity(&self) -> logstead_env::ProcessIdentity {
        self.own.identity()
    }

    fn is_gone(&self, process: &logstead_env::ProcessIdentity) -> bool {
        self.gone.lock().contains(&process.process)
    }
}

impl World {
    fn new() -> World {
        World {
            clock: Arc::new(SimClock::new()),
            shelf: Shelf::new(),
            gone: Arc::default(),
        }
    }

    fn process(&self, number: u32) -> Starter {
        let (clock, gone) = (Arc::clone(&self.clock), Arc::clone(&self.gone));
        let events: Arc<Mutex<Vec<LeaseEvent>>> = Arc::default();
        let told = Arc::clone(&events);
        let lease = LeaseOptions {
            duration: LEASE,
            take_over: false,
            predecessor: None,
            // Who is said to have ended has.
            machine_is_never_copied: true,
            threads: false,
            processes: Arc::new(Machine {
                own: SimProcesses::new(number),
                gone,
            }),
            pause: Arc::new(move |time| clock.advance(time)),
            events: Arc::new(move |event| told.lock().push(event.clone())),
        };
        Starter {
            world: self.clone(),
            number,
            home: self.shelf.handle(),
            options: RecoveryOptions {
                lease,
                ..rig::options()
            },
            events,
        }
    }

    /// A process of that number is known to have ended.
    fn ends(&self, number: u32) {
        self.gone.lock().push(number);
    }

    fn manifest(&self) -> Manifest {
        let (bytes, _) = self.shelf.handle().get(manifest::NAME).unwrap().unwrap();
        Manifest::decode(&bytes).unwrap()
    }
}

impl Starter {
    fn taking_over(mut self) -> Starter {
        self.options.lease.take_over = true;
        self
    }

    fn lanes(mut self, lanes: u16) -> Starter {
        self.options.lanes = lanes;
        self
    }

    fn env(&self) -> Env {
        let (env, _) = Env::simulated(1);
        Env {
            clock: Arc::clone(&self.world.clock) as Arc<dyn Clock>,
            random: Arc::new(SimRandom::new(u64::from(self.number))),
            ..env
        }
    }

    fn start(&self) -> Result<Server, RecoveryError> {
        let home = LogHome::from(self.home.clone());
        Server::open(home, &self.env(), &self.options, false)
    }

    fn events(&self) -> Vec<String> {
        let events = self.events.lock();
        let name = |event: &LeaseEvent| {
            let text = format!("{event:?}");
            text.split(['(', ' ']).next().unwrap().to_owned()
        };
        events.iter().map(name).collect()
    }
}

fn lease(server: &Server) -> &Arc<Lease> {
    server.log.lease.as_ref().unwrap()
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The first so many CSNs.
fn all(survivors: &[u64]) -> Vec<u64> {
    (1..=survivors.len() as u64).collect()
}

#[test]
fn t3_claim_then_fence_then_read_then_mark() {
    let world = World::new();
    let first = world.process(1).lanes(3);
    let server = first.start().unwrap();
    assert!(server.log.report.created);
    assert!(server.commit(0, 1) && server.commit(2, 2));
    world.ends(1);
    let second = world.process(2);
    assert_eq!(second.start().unwrap().survivors, [1, 2]);
    let requests = second.home.requests();
    let position = |what: &str| {
        requests
            .iter()
            .position(|request| request.starts_with(what))
    };
    let last = |what: &str| {
        requests
            .iter()
            .rposition(|request| request.starts_with(what))
    };
    let claimed = position("swap manifest").unwrap();
    assert_eq!(
        requests[..claimed],
        ["get manifest"],
        "nothing is read before"
    );
    let fences: Vec<&str> = requests[claimed + 1..claimed + 4]
        .iter()
        .map(|r| &r[..5])
        .collect();
    assert_eq!(
        fences, ["fence"; 3],
        "all lanes of the epoch before, at once"
    );
    assert_eq!(last("fence"), Some(claimed + 3));
    for read in ["segments", "read", "rewrite", "lanes", "open"] {
        assert!(position(read).unwrap() > claimed + 3, "{read}");
    }
    let mark = last("swap manifest").unwrap();
    assert!(mark > last("read").unwrap() && mark > last("rewrite").unwrap());
    assert!(position("open").unwrap() > mark);
    let fresh = world.manifest().lanes[0].first_segment;
    assert_eq!(fresh, 2 << 32, "an epoch has segment numbers of its own");
}

#[test]
fn t3_whatever_the_old_server_writes_meanwhile_is_there_or_was_refused() {
    let mut written = [0; 2];
    for request in 0.. {
        let world = World::new();
        let old = Arc::new(world.process(1).lanes(2).start().unwrap());
        assert!(old.commit(0, 1));
        let done = Arc::new(Mutex::new(false));
        let new = world.process(2).lanes(1).taking_over();
        let (writer, told) = (Arc::clone(&old), Arc::clone(&done));
        // A block that fits, and one that opens the next segment, too.
        new.home.before(request, move || {
            *told.lock() = writer.commit(1, 2);
        });
        let server = new.start().unwrap();
        if !new.home.is_past() {
            assert!(request > 10, "all requests of a start");
            break;
        }
        let acknowledged = *done.lock();
        written[usize::from(acknowledged)] += 1;
        let expected: &[u64] = if acknowledged { &[1, 2] } else { &[1] };
        assert_eq!(server.survivors, expected, "request {request}");
        assert!(
            !old.commit(0, 3),
            "nothing is acknowledged after the take-over"
        );
        assert!(!lease(&old).is_valid(), "and nothing answered");
        let next = server.log.next_csn.get();
        assert!(server.commit(0, next));
    }
    assert!(written[0] > 0 && written[1] > 0, "{written:?}");
}

#[test]
fn a_start_that_dies_at_any_step_loses_nothing_and_hinders_nobody() {
    for request in 0.. {
        let world = World::new();
        let old = world.process(1).start().unwrap();
        assert!(old.commit(0, 1) && old.commit(0, 2));
        let dying = world.process(2).lanes(2).taking_over();
        dying.home.dies_at(request);
        let died = dying.start().is_err();
        world.ends(2);
        // The first server goes on if it was not fenced; it may notice only later.
        let third = old.commit(0, 3);
        let survivors: &[u64] = if third { &[1, 2, 3] } else { &[1, 2] };
        let next = world.process(3).taking_over().start().unwrap();
        assert_eq!(next.survivors, survivors, "request {request}");
        assert!(
            !lease(&old).is_valid(),
            "who may answer next waits for who did"
        );
        assert!(!old.commit(0, 9));
        let csn = next.log.next_csn.get();
        assert!(next.commit(0, csn));
        lease(&next).release();
        let after = world.process(4).start().unwrap();
        assert_eq!(after.survivors.last(), Some(&csn));
        if !died {
            assert!(request > 10);
            break;
        }
    }
}

/// A start is paused before each of its requests in turn, while another server takes over, writes and goes on; then it
/// wakes up.
#[test]
fn a_start_that_wakes_up_after_it_was_overtaken_harms_nobody() {
    for request in 0.. {
        let world = World::new();
        let first = world.process(1).lanes(2).start().unwrap();
        assert!(first.commit(0, 1) && first.commit(1, 2));
        world.ends(1);
        // Fewer lanes, then more: the later ones are not in its manifest.
        let paused = world.process(2).lanes(1);
        let other = world.process(3).lanes(4).taking_over();
        let running: Arc<Mutex<Option<Server>>> = Arc::default();
        let slot = Arc::clone(&running);
        paused.home.before(request, move || {
            let server = other.start().unwrap();
            assert_eq!(server.survivors, [1, 2]);
            let next = server.log.next_csn.get();
            for lane in 0..4 {
                assert!(server.commit(lane, next + u64::from(lane)));
            }
            *slot.lock() = Some(server);
        });
        let late = paused.start();
        let Some(server) = running.lock().take() else {
            assert!(request > 10 && late.is_ok());
            break;
        };
        let next = server.log.next_csn.get();
        match late {
            // It had not begun: it meets a server that has fallen silent, and takes its turn after it.
            Ok(late) => {
                let expected: Vec<u64> = [1, 2].into_iter().chain(next..next + 4).collect();
                assert_eq!(late.survivors, expected, "request {request}");
                assert!(!lease(&server).is_valid() && !server.commit(0, next + 4));
                continue;
            }
            Err(RecoveryError::Home(HomeError::Fenced(_))) => {}
            Err(error) => panic!("request {request}: {error}"),
        }
        // The running server goes on, and everything is there at the next start, which reads it all.
        assert!(server.commit(3, next + 4), "request {request}");
        lease(&server).release();
        let after = world.process(4).lanes(1).start().unwrap();
        let expected: Vec<u64> = [1, 2].into_iter().chain(next..next + 5).collect();
        assert_eq!(after.survivors, expected, "request {request}");
    }
}

#[test]
fn two_first_starts_at_an_empty_home_make_one_database() {
    for request in 0..4 {
        let world = World::new();
        let slow = world.process(1);
        let quick = world.process(2);
        let running: Arc<Mutex<Option<Server>>> = Arc::default();
        let slot = Arc::clone(&running);
        slow.home.before(request, move || {
            let server = quick.start();
            if let Ok(server) = server {
                assert!(server.commit(0, 1));
                *slot.lock() = Some(server);
            }
        });
        let result = slow.start();
        let quick = running.lock().take();
        match (result, quick) {
            // Nobody renewed the quick one's lease while the slow one watched, so that ran out.
            (Ok(slow), Some(quick)) => {
                assert_eq!(slow.survivors, all(&slow.survivors));
                assert_eq!(slow.log.database, quick.log.database);
                assert_eq!(slow.survivors, [1]);
                assert!(!lease(&quick).is_valid() && !quick.commit(0, 2));
            }
            (Ok(slow), None) => assert!(slow.log.report.created),
            (Err(RecoveryError::Home(HomeError::Fenced(_))), Some(quick)) => {
                assert!(quick.commit(0, 2));
            }
            (Err(error), _) => panic!("request {request}: {error}"),
        }
    }
}

#[test]
fn a_living_server_is_not_disturbed() {
    let world = World::new();
    let server = world.process(1).start().unwrap();
    let mut second = world.process(2);
    let (alive, clock) = (Arc::clone(lease(&server)), Arc::clone(&world.clock));
    second.options.lease.pause = Arc::new(move |time| {
        clock.advance(time);
        alive.tick();
    });
    let error = second.start().map(|_| ()).unwrap_err();
    assert!(matches!(error, RecoveryError::InUse { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "the shelf",
        "host simulated (process 1,",
        "--take-over",
        "2000-01-01 00:00:00 UTC",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(second.events(), ["Watching"]);
    assert!(lease(&server).is_valid() && server.commit(0, 1));
}

#[test]
fn who_is_silent_is_replaced_when_the_lease_has_run_out() {
    let world = World::new();
    let server = world.process(1).start().unwrap();
    assert!(server.commit(0, 1));
    let begun = world.clock.monotonic();
    let second = world.process(2).start().unwrap();
    assert_eq!(second.survivors, [1]);
    let waited = world.clock.monotonic().since(begun);
    assert!(waited >= LEASE, "{waited:?}");
    assert!(!lease(&server).is_valid());
    assert!(
        lease(&second).is_valid(),
        "a lease that was renewed meanwhile"
    );
}

#[test]
fn a_process_that_ended_or_stopped_in_order_is_replaced_at_once() {
    for orderly in [false, true] {
        let world = World::new();
        let server = world.process(1).start().unwrap();
        assert!(server.commit(0, 1));
        if orderly {
            lease(&server).release();
            assert!(!lease(&server).is_valid(), "it answers nobody any more");
            assert!(world.manifest().holder.unwrap().is_released());
            // Nor does a checkpoint that comes too late take it again.
            let late = lease(&server).update(|_| {});
            assert!(matches!(late, Err(HomeError::Fenced(_))), "{late:?}");
            assert!(world.manifest().holder.unwrap().is_released());
        } else {
            world.ends(1);
        }
        let begun = world.clock.monotonic();
        let second = world.process(2);
        assert_eq!(second.start().unwrap().survivors, [1]);
        assert_eq!(world.clock.monotonic(), begun);
        assert!(second.events().is_empty());
    }
}

#[test]
fn t15_a_take_over_waits_until_the_old_server_answers_nobody() {
    let world = World::new();
    let old = world.process(1).start().unwrap();
    world.clock.advance(LEASE / 2);
    lease(&old).tick();
    assert!(lease(&old).is_valid());
    let new = world.process(2).taking_over();
    let begun = world.clock.monotonic();
    let server = new.start().unwrap();
    assert!(!lease(&old).is_valid());
    assert!(lease(&server).is_valid());
    assert!(world.clock.monotonic().since(begun) >= LEASE);
    assert_eq!(new.events(), ["TakenFrom", "WaitsFor"]);
    // The old one finds out, once, and for good.
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    lease(&old).set_loss_listener(move |lost| {
        assert!(lost.to_string().contains("process 2"), "{lost}");
        count.fetch_add(1, Ordering::SeqCst);
    });
    lease(&old).tick();
    lease(&old).tick();
    assert_eq!(told.load(Ordering::SeqCst), 1);
    let fenced = lease(&old).update(|_| {});
    assert!(matches!(fenced, Err(HomeError::Fenced(_))), "{fenced:?}");
    lease(&old).release();
    assert_eq!(
        world.manifest(),
        lease(&server).manifest(),
        "it changed nothing"
    );
}

/// A machine's clocks: one stands still while it is suspended.
struct Suspended {
    running: SimClock,
    asleep: SimClock,
}

impl Clock for Suspended {
    fn monotonic(&self) -> Instant {
        self.running.monotonic()
    }

    fn boot_time(&self) -> Instant {
        self.running.monotonic() + self.asleep.monotonic().since(Instant::default())
    }

    fn now_micros_since_2000(&self) -> i64 {
        self.running.now_micros_since_2000()
    }
}

#[test]
fn t15_a_machine_that_was_suspended_answers_nobody_with_the_lease_of_before() {
    let world = World::new();
    let process = world.process(1);
    let clock = Arc::new(Suspended {
        running: SimClock::new(),
        asleep: SimClock::new(),
    });
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..process.env()
    };
    let home = LogHome::from(process.home.clone());
    let lease = Lease::claim(&home, &env, &process.options.lease).unwrap();
    assert!(lease.is_valid());
    clock.asleep.advance(LEASE);
    assert!(!lease.is_valid());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(lease.valid()).as_mut().poll(&mut cx).is_pending());
    // It is due at once, however little the machine has run.
    lease.tick();
    assert!(lease.is_valid());
}

/// A machine is copied while its server runs: both have the same owner's number, state and random numbers. Clocks alone
/// differ, and by little.
#[test]
fn t15_of_a_server_and_its_copy_one_is_renewed() {
    for copy_first in [false, true] {
        let (one, other) = (World::new(), World::new());
        let (original, copy) = (one.process(1), other.process(1));
        let servers = [original.start().unwrap(), copy.start().unwrap()];
        assert_eq!(one.manifest(), other.manifest(), "alike to the last bit");
        copy.home.moves_to(&one.shelf);
        one.clock.advance(LEASE / 2);
        other.clock.advance(LEASE / 2 + Duration::from_nanos(1));
        let [first, second] = [0, 1].map(|turn| lease(&servers[turn ^ usize::from(copy_first)]));
        first.tick();
        second.tick();
        assert!(first.is_valid() && first.lost().is_none());
        let lost = second.lost().map(|lost| lost.to_string());
        assert!(lost.is_some_and(|lost| lost.contains("copied while it ran")));
        assert!(!second.is_valid(), "copy first: {copy_first}");
    }
}

#[test]
fn t15_what_is_owed_to_a_living_server_outlives_the_one_that_took_over() {
    let world = World::new();
    let old = world.process(1).start().unwrap();
    // The second takes over and fails to start: what it finds is refused.
    let second = world.process(2).taking_over();
    let home = LogHome::from(second.home.clone());
    assert!(old.commit(0, 1));
    let refused = recovery::open(&home, &second.env(), &second.options, &mut |_, _| {
        Err("not today".into())
    });
    assert!(matches!(refused, Err(RecoveryError::Apply { .. })));
    assert!(world.manifest().holder.unwrap().is_released());
    assert!(lease(&old).is_valid(), "the first may still answer");
    let third = world.process(3);
    let server = third.start().unwrap();
    assert_eq!(server.survivors, [1]);
    assert!(!lease(&old).is_valid(), "so the third had to wait");
    world.clock.advance(LEASE / 2);
    lease(&server).tick();
    assert_eq!(world.manifest().holder.unwrap().owed_ms, 0, "that is over");
}

#[test]
fn t15_a_lease_that_ran_out_holds_answers_back_and_a_renewal_lets_them_go() {
    let world = World::new();
    let process = world.process(1);
    let server = process.start().unwrap();
    let lease = lease(&server);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    assert!(pin!(lease.valid()).as_mut().poll(&mut cx).is_ready());
    process.home.dies_at(0);
    world.clock.advance(LEASE);
    let mut answer = pin!(lease.valid());
    assert!(answer.as_mut().poll(&mut cx).is_pending());
    lease.tick();
    lease.tick();
    assert_eq!(process.events(), ["Lapsed"], "told once");
    assert!(answer.as_mut().poll(&mut cx).is_pending());
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    // The home can be reached again.
    process.home.dies_at(usize::MAX);
    lease.tick();
    assert_eq!(process.events(), ["Lapsed", "Recovered"]);
    assert!(woken.0.load(Ordering::SeqCst) > 0);
    assert!(answer.as_mut().poll(&mut cx).is_ready());
    // Another server takes over while it is out of reach.
    process.home.dies_at(0);
    let mut late = pin!(lease.valid());
    let _new = world.process(2).taking_over().start().unwrap();
    assert!(late.as_mut().poll(&mut cx).is_pending());
    process.home.dies_at(usize::MAX);
    lease.tick();
    match late.as_mut().poll(&mut cx) {
        Poll::Ready(Err(lost)) => assert!(lost.to_string().contains("process 2")),
        other => panic!("{other:?}"),
    }
}

/// The home does not answer: that the lease has run out is told at that moment, not when the home is back.
#[test]
fn a_lease_that_runs_out_while_the_home_is_asked_is_told_at_once() {
    let world = World::new();
    let process = world.process(1);
    let server = process.start().unwrap();
    assert!(process.events().is_empty());
    assert_eq!(process.home.limit(), Some(LEASE / 6));
    world.clock.advance(LEASE / 2);
    let next = process.home.requests().len();
    let (watched, clock) = (Arc::clone(lease(&server)), Arc::clone(&world.clock));
    let events = process.clone();
    process.home.before(next, move || {
        assert!(watched.look() <= LEASE, "still valid");
        assert!(events.events().is_empty());
        clock.advance(LEASE);
        watched.look();
        watched.look();
        assert_eq!(events.events(), ["Lapsed"], "once");
        let told = format!("{:?}", events.events.lock()[0]);
        assert!(
            told.contains("the shelf has not answered for 10.0 s"),
            "{told}"
        );
    });
    lease(&server).tick();
    assert!(process.home.is_past());
    assert_eq!(
        process.events(),
        ["Lapsed"],
        "it counts from when it was sent"
    );
    lease(&server).tick();
    assert_eq!(process.events(), ["Lapsed", "Recovered"]);
    // Nobody is told of a lease that was given back.
    lease(&server).release();
    world.clock.advance(LEASE);
    lease(&server).look();
    assert_eq!(process.events(), ["Lapsed", "Recovered"]);
}

/// A renewal is lost on its way to a bucket while another server waits for the lease to run out.
#[test]
fn a_renewal_that_is_lost_lets_nobody_take_over() {
    let bucket = MemoryBucket::new(MemoryOptions::plain());
    let world = World::new();
    let (timer, hand) = Timer::by_hand();
    let open = |process: u32, timer: Timer| -> LogHome {
        let options = ObjectOptions {
            pause_min: Duration::ZERO,
            pause_max: Duration::ZERO,
            timer,
            ..ObjectOptions::default()
        };
        let bucket = Arc::new(bucket.handle(process));
        LogHome::from(ObjectHome::open(bucket, &Env::real(), options).unwrap())
    };
    let (first, second) = (world.process(1), world.process(2));
    let home = open(1, timer);
    let owner = Lease::claim(&home, &first.env(), &first.options.lease).unwrap();
    world.clock.advance(owner.renewed_every());
    bucket
        .handle(1)
        .plan(RequestKind::Replace, "manifest", Fault::Hold);
    let result = std::thread::scope(|scope| {
        let is_renewed = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&is_renewed);
        let owner = &owner;
        let renewal = scope.spawn(move || {
            owner.tick();
            tells.store(true, Ordering::SeqCst);
        });
        while bucket.in_network().is_empty() {
            std::thread::yield_now();
        }
        let limits = hand.times();
        let sent = world.clock.monotonic();
        let mut options = second.options.lease.clone();
        let (clock, hand, requests) = (Arc::clone(&world.clock), hand.clone(), bucket.clone());
        options.pause = Arc::new(move |time| {
            clock.advance(time);
            let over = limits
                .first()
                .is_some_and(|limit| clock.monotonic().since(sent) >= *limit);
            if over && !hand.times().is_empty() {
                let before = requests.requests_of(RequestKind::Replace);
                hand.pass();
                // It is asked for again, unless that has happened before the time passed.
                while requests.requests_of(RequestKind::Replace) == before
                    && !is_renewed.load(Ordering::SeqCst)
                {
                    std::thread::yield_now();
                }
            }
        });
        let result = Lease::claim(&open(2, Timer::default()), &second.env(), &options);
        // Without a limit it would still be waiting.
        bucket.land_all();
        renewal.join().unwrap();
        result.map(drop)
    });
    assert!(
        matches!(result, Err(RecoveryError::InUse { .. })),
        "{result:?}"
    );
    assert!(owner.is_valid());
}

#[test]
fn a_lost_reply_is_settled_by_reading_and_a_late_request_counts_for_nothing() {
    let world = World::new();
    let process = world.process(1);
    let server = process.start().unwrap();
    let lease = lease(&server);
    world.clock.advance(LEASE / 2);
    process.home.lose_reply();
    lease.tick();
    world.clock.advance(LEASE * 6 / 10);
    assert!(lease.is_valid(), "it did arrive");
    // This one is on its way for long.
    process.home.delay();
    lease.tick();
    world.clock.advance(LEASE / 2);
    assert!(!lease.is_valid(), "nobody knows whether it did");
    assert!(process.home.deliver());
    assert!(!lease.is_valid());
    // The next attempt meets it, adopts it, and counts nothing for it; the one after that succeeds.
    lease.tick();
    assert!(!lease.is_valid());
    lease.tick();
    assert!(lease.is_valid());
    // A late one that meets a newer state does nothing: no state comes back.
    world.clock.advance(LEASE / 2);
    process.home.delay();
    lease.tick();
    lease.tick();
    assert!(lease.is_valid());
    let before = world.manifest();
    assert!(!process.home.deliver());
    assert_eq!(world.manifest(), before);
    // A claim whose reply is lost is a claim.
    let second = world.process(2).taking_over();
    second.home.lose_reply();
    let error = second.start().map(|_| ()).unwrap_err();
    assert!(
        matches!(error, RecoveryError::Home(HomeError::Io { .. })),
        "{error}"
    );
    world.ends(2);
    let third = world.process(3).start().unwrap();
    assert_eq!(third.survivors, all(&third.survivors));
}

#[test]
fn changes_of_the_manifest_go_through_the_lease() {
    let world = World::new();
    let server = world.process(1).start().unwrap();
    let before = world.manifest();
    let kept = lease(&server);
    kept.update(|manifest| {
        manifest.discarded.push(manifest::DiscardedSegments {
            lane: rig::lane(7),
            first_segment: 1,
            last_segment: 2,
        })
    })
    .unwrap();
    let after = world.manifest();
    assert_eq!(after, kept.manifest());
    assert_eq!(after.discarded.len(), 1);
    let renewals = |manifest: &Manifest| manifest.holder.as_ref().unwrap().renewals;
    assert!(
        renewals(&after) > renewals(&before),
        "each state is another one"
    );
}

#[test]
fn a_home_that_is_not_empty_and_has_no_manifest_is_refused() {
    let world = World::new();
    let foreign = world.shelf.handle();
    foreign.open_lane(rig::lane(0), 0).unwrap();
    let error = world.process(1).start().map(|_| ()).unwrap_err();
    assert!(matches!(error, RecoveryError::NoManifest(_)), "{error}");
    assert!(world.shelf.handle().get(manifest::NAME).unwrap().is_none());
}

#[test]
fn the_thread_renews_and_ends_with_the_lease() {
    let shelf = Shelf::new();
    let home = LogHome::from(shelf.clone());
    let options = LeaseOptions {
        duration: Duration::from_millis(30),
        processes: Arc::new(SimProcesses::new(1)),
        ..LeaseOptions::default()
    };
    let lease = Lease::claim(&home, &Env::real(), &options).unwrap();
    let swaps = || {
        let requests = shelf.requests();
        requests.iter().filter(|r| r.starts_with("swap")).count()
    };
    while swaps() < 3 {
        logstead_env::sleep(Duration::from_millis(1));
    }
    lease.release();
    assert!(!lease.is_valid());
    let weak = Arc::downgrade(&lease);
    drop(lease);
    while weak.strong_count() > 0 {
        logstead_env::sleep(Duration::from_millis(1));
    }
}
