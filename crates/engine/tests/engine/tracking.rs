//! What a commit waits for, mode by mode, through the whole engine.

use std::sync::Arc;
use std::time::Duration;

use logstead_engine::{
    CommitOptions, CommitReceipt, EngineOptions, FlushMode, Isolation, MemoryHome, ProtocolKind,
    Tracking, Worker, WorkerId,
};

use crate::world::*;

fn world(tracking: Tracking, workers: usize) -> (World, Vec<Worker>) {
    let options = EngineOptions {
        workers,
        commit: CommitOptions {
            tracking,
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    let world = World::open_as(MemoryHome::new(4 << 20), options).expect("opens");
    let (world, first) = world.fill(2000);
    let mut all = vec![first];
    all.extend((1..workers as u16).map(|id| world.engine.worker(WorkerId(id))));
    (world, all)
}

/// Reads some accounts and adds to one.
fn add(world: &World, worker: &Worker, reads: &[i64], to: i64) -> CommitReceipt {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for &k in reads {
        world.get(&mut txn, k).expect("is there");
    }
    world.update(&mut txn, to, |n| n + 1).expect("free");
    commit(txn)
}

/// Which modes let the transaction pass now.
fn passes(scene: impl Fn(&World, &[Worker]) -> CommitReceipt) -> Vec<&'static str> {
    let mut passed = Vec::new();
    for tracking in Tracking::ALL {
        let (world, workers) = world(tracking, 3);
        let receipt = scene(&world, &workers);
        if world.engine.is_committed(&receipt.waits_for) {
            passed.push(tracking.name());
        }
        // Whatever it waited for has come.
        for worker in &workers {
            worker.flush(FlushMode::Inline);
        }
        for worker in &workers {
            worker.idle(true, None);
        }
        assert!(
            world.engine.is_committed(&receipt.waits_for),
            "{tracking:?}: never acknowledged"
        );
    }
    passed
}

#[test]
fn nobody_is_acknowledged_before_its_own_bytes_are_durable() {
    let passed = passes(|world, workers| add(world, &workers[0], &[], 1));
    assert!(passed.is_empty(), "{passed:?}");
}

#[test]
fn a_lower_csn_of_another_lane_holds_back_only_transaction_level_tracking() {
    let passed = passes(|world, workers| {
        add(world, &workers[0], &[], 1);
        // Another chunk, so that pages do not meet.
        let receipt = add(world, &workers[1], &[], 1900);
        workers[1].flush(FlushMode::Inline);
        receipt
    });
    assert_eq!(passed, ["gsn", "dsn", "exact"]);
}

#[test]
fn another_row_of_the_same_chunk_holds_back_page_level_tracking() {
    let passed = passes(|world, workers| {
        add(world, &workers[0], &[], 1);
        let receipt = add(world, &workers[1], &[], 2);
        workers[1].flush(FlushMode::Inline);
        receipt
    });
    assert_eq!(passed, ["dsn", "exact"]);
}

/// The paper's Figure 8 (b): what it depends on is durable, an older one that it has nothing to do with is not.
#[test]
fn an_older_stranger_below_the_newest_predecessor_holds_back_all_but_exact() {
    let passed = passes(|world, workers| {
        add(world, &workers[0], &[], 1);
        add(world, &workers[1], &[], 1900);
        workers[1].flush(FlushMode::Inline);
        let receipt = add(world, &workers[2], &[1900], 1000);
        workers[2].flush(FlushMode::Inline);
        receipt
    });
    assert_eq!(passed, ["exact"]);
}

#[test]
fn what_was_read_is_waited_for_in_every_mode() {
    let passed = passes(|world, workers| {
        add(world, &workers[0], &[], 1);
        let receipt = add(world, &workers[1], &[1], 1900);
        workers[1].flush(FlushMode::Inline);
        receipt
    });
    assert!(passed.is_empty(), "{passed:?}");
}

#[test]
fn a_dependency_of_a_dependency_is_waited_for() {
    let passed = passes(|world, workers| {
        add(world, &workers[0], &[], 1);
        add(world, &workers[1], &[1], 1900);
        workers[1].flush(FlushMode::Inline);
        let receipt = add(world, &workers[2], &[1900], 1000);
        workers[2].flush(FlushMode::Inline);
        receipt
    });
    assert!(passed.is_empty(), "{passed:?}");
}

/// An autocommit read of what is not durable is answered when it is, and of what is Committed at once.
#[test]
fn a_reader_waits_for_what_it_met_and_nothing_else() {
    for tracking in Tracking::ALL {
        let (world, workers) = world(tracking, 3);
        add(&world, &workers[0], &[], 1);
        let read = |k| {
            let mut txn = workers[2].begin(Isolation::ReadCommitted);
            world.get(&mut txn, k).expect("is there");
            commit(txn).waits_for
        };
        let (met, other) = (read(1), read(1900));
        assert!(!world.engine.is_committed(&met), "{tracking:?}");
        assert!(world.engine.is_committed(&other), "{tracking:?}");
        workers[0].flush(FlushMode::Inline);
        assert!(world.engine.is_committed(&met), "{tracking:?}");
    }
}

/// More predecessors than an entry can list become one floor; nobody is lost.
#[test]
fn many_predecessors_fall_back_to_a_floor() {
    for tracking in [Tracking::Gsn, Tracking::Exact] {
        let (world, workers) = world(tracking, 3);
        for k in 1..=40 {
            add(&world, &workers[0], &[], k);
        }
        let reads: Vec<i64> = (1..=40).collect();
        let receipt = add(&world, &workers[1], &reads, 1900);
        workers[1].flush(FlushMode::Inline);
        assert!(!world.engine.is_committed(&receipt.waits_for));
        workers[0].flush(FlushMode::Inline);
        workers[1].idle(true, None);
        assert!(
            world.engine.is_committed(&receipt.waits_for),
            "{tracking:?}"
        );
    }
}

/// Every protocol flushes and acknowledges what an idle worker holds, whatever the mode and however lanes are shared.
#[test]
fn an_idle_worker_is_acknowledged_by_every_protocol() {
    for protocol in ProtocolKind::ALL {
        for tracking in Tracking::ALL {
            for workers_per_lane in [1, 2, 3] {
                let options = EngineOptions {
                    workers: 3,
                    commit: CommitOptions {
                        protocol,
                        tracking,
                        workers_per_lane,
                        threads: false,
                        ..CommitOptions::default()
                    },
                    ..EngineOptions::default()
                };
                let world = World::open_as(MemoryHome::new(4 << 20), options).expect("opens");
                let (world, first) = world.fill(10);
                let workers = [
                    first,
                    world.engine.worker(WorkerId(1)),
                    world.engine.worker(WorkerId(2)),
                ];
                let receipts: Vec<CommitReceipt> = (0..9)
                    .map(|n| add(&world, &workers[n % 3], &[1], n as i64 + 1))
                    .collect();
                for worker in &workers {
                    worker.idle(true, None);
                    world.engine.commit_path().background_round();
                }
                for (n, receipt) in receipts.iter().enumerate() {
                    assert!(
                        world.engine.is_committed(&receipt.waits_for),
                        "{protocol:?} {tracking:?} {workers_per_lane}: {n}"
                    );
                }
            }
        }
    }
}

/// Two workers of one lane on a home with slow appends share every append: who comes back first waits a moment for the
/// other, which the append has set free as well.
#[test]
fn workers_set_free_together_share_the_next_append() {
    let options = EngineOptions {
        workers: 2,
        commit: CommitOptions {
            workers_per_lane: 2,
            blocks_in_flight_max: 1,
            gather: Duration::from_millis(1),
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    let world = World::open_as(MemoryHome::new(4 << 20), options).expect("opens");
    let (world, first) = world.fill(10);
    let workers = [first, world.engine.worker(WorkerId(1))];
    // Nobody waits for a worker that has not begun.
    workers[1].busy();
    world.home.set_paused(true);
    for round in 1..4 {
        let before = world.home.appends();
        let bell = Arc::new(Bell::default());
        let mut waits = Vec::new();
        for (n, worker) in workers.iter().enumerate() {
            let receipt = add(&world, worker, &[], n as i64 + 1);
            let mut wait = Box::pin(world.engine.acknowledged(receipt.waits_for));
            assert!(poll(wait.as_mut(), &bell).is_pending());
            waits.push(wait);
            let again = worker.idle(false, None);
            assert_eq!(
                again.is_some(),
                n == 0,
                "round {round}: the first one waits"
            );
        }
        assert_eq!(world.home.appends() - before, 1, "round {round}");
        assert!(world.home.complete());
        assert_eq!(bell.rings(), 2);
    }
}
