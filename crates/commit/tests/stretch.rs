//! Between `reserved` and the entry in its lane (T12): what has been taken before, what the horizon does meanwhile, and
//! whom a worker that loses the processor there holds up.

use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use logstead_commit::{
    CommitInsertLock, CommitOptions, CommitPath, CommitRing, CommitWait, DependencySet,
    ProtocolKind, PushBody, PushedTxn, Tracking,
};
use logstead_env::{Clock, Env, Instant};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, WorkerId};
use logstead_wal::recovery::{self, RecoveryOptions};
use logstead_wal::{FlushMode, LaneConfig, NoRoom, RoomRequest};

/// Stands still, and calls whoever wants to look when it is asked.
#[derive(Default)]
struct Watching {
    path: OnceLock<Weak<CommitPath>>,
}

impl Clock for Watching {
    fn monotonic(&self) -> Instant {
        if let Some(path) = self.path.get().and_then(Weak::upgrade) {
            look(&path);
        }
        Instant::from_nanos(1)
    }

    fn now_micros_since_2000(&self) -> i64 {
        0
    }
}

/// Computes the horizon as whoever hardens something does, without any lock.
fn look(path: &CommitPath) {
    let lowest = || {
        let lanes = path.lanes().iter().map(|lane| lane.first_not_durable());
        lanes.min().expect("there are lanes")
    };
    path.csns().advance(lowest);
}

struct World {
    path: Arc<CommitPath>,
    clock: Arc<Watching>,
}

impl World {
    fn new(workers: usize, commit: CommitOptions) -> World {
        let commit = CommitOptions {
            protocol: ProtocolKind::Autonomous,
            threads: false,
            ..commit
        };
        let clock = Arc::new(Watching::default());
        let env = Env {
            clock: clock.clone(),
            ..Env::simulated(1).0
        };
        let home = LogHome::from(MemoryHome::new(4 << 20));
        let options = RecoveryOptions {
            lanes: commit.lanes(workers) as u16,
            lane: LaneConfig {
                buffer_size_bytes: 64 << 10,
                ..LaneConfig::default()
            },
            accept_data_loss: false,
            lease: logstead_wal::lease::LeaseOptions::default(),
        };
        let recovered = recovery::open(&home, &env, &options, &mut |_, _| Ok(())).expect("opens");
        let next = recovered.next_csn;
        let path = CommitPath::new(&commit, workers, recovered.lanes, next, &env);
        World {
            path: path.expect("no thread is started"),
            clock,
        }
    }

    fn enter(&self, worker: u16, dependency_set: &mut DependencySet) -> CommitInsertLock<'_> {
        let (worker, asked) = (WorkerId(worker), &mut RoomRequest::default());
        let place = self.path.room(worker, RECORD.len(), asked).expect("room");
        self.path.enter(place, dependency_set)
    }

    fn commit(&self, worker: u16, mut dependency_set: DependencySet) -> (Csn, PushedTxn) {
        let entrance = self.enter(worker, &mut dependency_set);
        let worker = WorkerId(worker);
        let drawn = self.path.draw(worker);
        let csn = drawn.0;
        let body = PushBody::Inline(RECORD);
        let pushed = self
            .path
            .push(worker, entrance, drawn, &mut dependency_set, body, 0);
        self.path.precommitted(worker, &pushed);
        (csn, pushed)
    }

    fn flush(&self) {
        for lane in self.path.lanes() {
            lane.flush(FlushMode::Inline);
        }
    }

    /// How many CSNs are drawn and not below the horizon.
    fn ahead(&self) -> u64 {
        self.path.csns().counter().0 - self.path.csns().get().0
    }
}

const RECORD: &[u8] = &[7; 10];

/// Whoever computes the horizon while an entry goes into its lane does not pass its CSN. The lane asks the time in the
/// middle of the push, and the path after it.
#[test]
fn t12_the_horizon_stands_until_the_entry_is_in_its_lane() {
    for tracking in Tracking::ALL {
        let options = CommitOptions {
            tracking,
            ..CommitOptions::default()
        };
        let world = World::new(2, options);
        let watched = world.clock.path.set(Arc::downgrade(&world.path));
        watched.expect("nobody watches yet");
        for n in 0..20 {
            let before = world.path.csns().get();
            let (csn, _) = world.commit(n % 2, world.path.new_dependency_set());
            look(&world.path);
            let horizon = world.path.csns().get();
            assert!(
                horizon <= csn,
                "{horizon} is above {csn}, which is not durable"
            );
            assert_eq!(before, horizon, "nothing was made durable");
            if n % 5 == 4 {
                world.flush();
                assert_eq!(world.path.csns().get(), Csn(csn.0 + 1));
            }
        }
    }
}

/// Every worker takes room, then every worker draws, and nothing becomes durable: no more CSNs are drawn than the
/// commit ring has words, or one would stand for two of them.
#[test]
fn t12_no_more_csns_are_ahead_of_the_horizon_than_the_commit_ring_holds() {
    for (limit, workers) in [(64, 2), (100, 3), (1, 16), (200, 16)] {
        let options = CommitOptions {
            log_allocation_limit_csns: limit,
            ..CommitOptions::default()
        };
        let world = World::new(usize::from(workers), options);
        let ring: CommitRing = CommitRing::new(limit.max(2 * u64::from(workers) + 64));
        let mut refused = false;
        while !refused {
            let path = &world.path;
            let mut places = Vec::new();
            for worker in (0..workers).map(WorkerId) {
                match path.room(worker, RECORD.len(), &mut RoomRequest::default()) {
                    Ok(place) => places.push((worker, place)),
                    Err(NoRoom::Full) => refused = true,
                    Err(error) => panic!("{error}"),
                }
            }
            for (worker, place) in places {
                let mut dependency_set = path.new_dependency_set();
                let entrance = path.enter(place, &mut dependency_set);
                let drawn = path.draw(worker);
                let body = PushBody::Inline(RECORD);
                path.push(worker, entrance, drawn, &mut dependency_set, body, 0);
            }
            assert!(
                world.ahead() <= ring.capacity(),
                "{} CSNs in a ring of {}",
                world.ahead(),
                ring.capacity()
            );
        }
        // As many as were promised, and who is refused is told when there is room again.
        let least = ring.capacity() - 2 * u64::from(workers);
        assert!(world.ahead() >= least.min(limit), "{}", world.ahead());
        let told = Arc::new(Told::default());
        let waker = Waker::from(told.clone());
        let ask = || {
            let asked = &mut RoomRequest::default();
            let path = &world.path;
            path.poll_room(WorkerId(0), RECORD.len(), asked, &waker)
        };
        assert!(ask().is_pending());
        world.flush();
        assert!(told.0.get().is_some(), "the horizon has moved");
        assert!(matches!(ask(), Poll::Ready(Ok(_))));
    }
}

#[derive(Default)]
struct Told(OnceLock<()>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        let _again = self.0.set(());
    }
}

/// A worker has drawn and loses the processor before its entry is in its lane: the horizon stands still for everybody,
/// as it must. But in `exact` who has drawn later is acknowledged all the same, whoever it depends on by name; the
/// modes that ask the horizon wait.
#[test]
fn who_stands_between_draw_and_push_holds_up_no_acknowledgment_by_name() {
    // In `gsn` whoever hardens something looks into every lane, and waits for each.
    for tracking in [Tracking::Exact, Tracking::Dsn, Tracking::Horizon] {
        let options = CommitOptions {
            tracking,
            ..CommitOptions::default()
        };
        let world = World::new(3, options);
        let mut none = world.path.new_dependency_set();
        let entrance = world.enter(0, &mut none);
        let stands = world.path.draw(WorkerId(0));
        let (first, _) = world.commit(1, world.path.new_dependency_set());
        let mut dependency_set = world.path.new_dependency_set();
        dependency_set.cover(first, &*world.path);
        let (second, _) = world.commit(2, dependency_set);
        let lanes = world.path.lanes();
        for lane in &lanes[1..] {
            lane.flush(FlushMode::Inline);
        }
        let is_told = |csn| {
            let mut told = std::pin::pin!(world.path.acknowledged(CommitWait::of(csn)));
            let told = Future::poll(told.as_mut(), &mut Context::from_waker(Waker::noop()));
            told.is_ready()
        };
        assert_eq!(world.path.csns().get(), stands.0, "it stands still");
        let told = [is_told(first), is_told(second)];
        match tracking {
            Tracking::Exact => assert_eq!(told, [true, true]),
            // What depends on nothing needs no horizon.
            Tracking::Dsn => assert_eq!(told, [true, false]),
            Tracking::Horizon | Tracking::Gsn | Tracking::LeanStore => {
                assert_eq!(told, [false, false]);
            }
        }
        let body = PushBody::Inline(RECORD);
        let path = &world.path;
        path.push(WorkerId(0), entrance, stands, &mut none, body, 0);
        world.flush();
        assert_eq!(world.path.csns().get(), Csn(second.0 + 1), "it goes on");
        assert!(is_told(first) && is_told(second), "{tracking:?}");
    }
}
