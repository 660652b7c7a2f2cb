//! Interleavings of push, flush, theft and completion under shuttle, each with a crash somewhere: what a lane called
//! hardened is there afterwards, and at no moment is a CSN passed that is not hardened.

use super::interleave::{point, set_hook};
use super::*;
use crate::recovery::{self, RecoveryOptions};
use logstead_env::Env;
use logstead_home::MemoryHome;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, MaxSteps, Runner, thread};

const LANES: usize = 3;

/// How often, by LOGSTEAD_STRESS_ROUNDS.
fn explore(schedules: usize, test: fn()) {
    let schedules = std::env::var("LOGSTEAD_STRESS_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(schedules);
    let mut config = Config::default();
    config.max_steps = MaxSteps::None;
    let runner = Runner::new(RandomScheduler::new(schedules), config);
    runner.run(move || {
        set_hook(None);
        test();
        set_hook(None);
    });
}

struct World {
    home: MemoryHome,
    lanes: Vec<Lane>,
    /// CSN, lane and end of every entry pushed.
    pushed: Mutex<Vec<(Csn, usize, Cursor)>>,
    crashed: std::sync::atomic::AtomicBool,
    running: AtomicUsize,
}

fn options() -> RecoveryOptions {
    RecoveryOptions {
        lanes: LANES as u16,
        lane: LaneConfig {
            buffer_size_bytes: 8192,
            blocks_in_flight_max: Some(3),
            allocation_limit: Some(Arc::new(LogAllocationLimit::new(4000))),
        },
        accept_data_loss: false,
        lease: crate::lease::LeaseOptions::default(),
    }
}

fn open(home: &MemoryHome) -> (Vec<Lane>, Vec<Csn>) {
    let (env, _) = Env::simulated(1);
    let mut found = Vec::new();
    let home = LogHome::from(home.clone());
    let log = recovery::open(&home, &env, &options(), &mut |csn, _| {
        found.push(csn);
        Ok(())
    });
    (log.expect("recovers").lanes, found)
}

impl World {
    fn new() -> Arc<World> {
        let home = MemoryHome::new(64 * 1024);
        let (lanes, _) = open(&home);
        home.set_paused(true);
        Arc::new(World {
            home,
            lanes,
            pushed: Mutex::default(),
            crashed: false.into(),
            running: AtomicUsize::new(0),
        })
    }

    /// A worker of lane `at`, which takes along what lane `victim` holds.
    fn work(&self, at: usize, victim: usize) {
        let lane = &self.lanes[at];
        for step in 0..4_u64 {
            let Ok(room) = lane.room(10) else {
                point();
                continue;
            };
            let csn = Csn(1 + step * LANES as u64 + at as u64);
            let pushed = lane.push(room, csn, 0, &EntryDependencies::default(), &[0; 10]);
            self.pushed.lock().push((csn, at, pushed.end));
            point();
            match thread_rng().gen_range(0..5) {
                0 => {
                    lane.flush(FlushMode::Inline);
                }
                1 => {
                    lane.flush(FlushMode::Handoff);
                }
                2 => {
                    lane.steal(&self.lanes[victim], usize::MAX);
                    lane.flush(FlushMode::Handoff);
                }
                // It may be robbed of them in turn.
                3 => {
                    lane.steal(&self.lanes[victim], usize::MAX);
                }
                _ => {}
            }
            self.look();
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// First the CSN, then the cursor, which moves before it.
    fn look(&self) {
        for (at, lane) in self.lanes.iter().enumerate() {
            let pushed: Vec<_> = self.pushed.lock().clone();
            let first = lane.first_not_durable();
            point();
            let hardened = lane.hardened();
            for &(csn, of, end) in pushed.iter().filter(|(_, of, _)| *of == at) {
                assert!(first <= csn || hardened >= end, "{csn} of lane {of}");
            }
        }
    }

    /// Completes appends in any order while anybody works, then all that are left.
    fn be_the_home(&self) {
        while self.running.load(Ordering::SeqCst) > 0 || self.home.waiting() > 0 {
            if self.crashed.load(Ordering::SeqCst) {
                return;
            }
            let waiting = self.home.waiting();
            if waiting > 0 {
                self.home.complete_at(thread_rng().gen_range(0..waiting));
            }
            thread::yield_now();
        }
    }

    /// What the lanes call hardened now survives.
    fn crash(&self) {
        let hardened: Vec<Cursor> = self.lanes.iter().map(Lane::hardened).collect();
        let pushed = self.pushed.lock().clone();
        set_hook(None);
        self.crashed.store(true, Ordering::SeqCst);
        self.home.crash();
        let (_lanes, found) = open(&self.home);
        for (csn, at, end) in pushed {
            assert!(
                end > hardened[at] || found.contains(&csn),
                "{csn} of lane {at} was hardened and is gone"
            );
        }
        let mut once = found.clone();
        once.dedup();
        assert_eq!(once, found, "an entry in two blocks");
    }
}

fn run(crash: bool) {
    let world = World::new();
    world.running.store(LANES, Ordering::SeqCst);
    set_hook(Some(thread::yield_now));
    let workers: Vec<_> = (0..LANES)
        .map(|at| {
            let world = Arc::clone(&world);
            let work = move || world.work(at, (at + 1) % LANES);
            thread::spawn(work)
        })
        .collect();
    let of_home = Arc::clone(&world);
    let home = thread::spawn(move || of_home.be_the_home());
    if crash {
        for _ in 0..thread_rng().gen_range(0..150) {
            thread::yield_now();
        }
        return world.crash();
    }
    for worker in workers {
        worker.join().expect("works");
    }
    home.join().expect("completes");
    set_hook(None);
    // What is left leaves with one more flush of each lane.
    world.home.set_paused(false);
    for lane in &world.lanes {
        lane.flush(FlushMode::Handoff);
    }
    for lane in &world.lanes {
        assert!(lane.failure().is_none());
        assert_eq!(lane.hardened(), lane.pushed());
        assert_eq!(lane.first_not_durable(), Csn(u64::MAX));
    }
    world.crash();
}

#[test]
fn t14_what_is_called_hardened_survives_a_crash_in_any_interleaving() {
    explore(400, || run(true));
}

#[test]
fn t14_all_hardens_in_the_end_in_any_interleaving() {
    explore(400, || run(false));
}
