//! A worker's loop, and commits that are awaited.

use logstead_home::LogHome;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use logstead_engine::{
    CommitOptions, Engine, EngineOptions, ExpectPresent, IdleAction, Isolation, LocalHome,
    LocalOptions, MemoryHome, Worker, WorkerLoop, WriteError, yield_now,
};
use logstead_env::Env;
use logstead_types::WorkerId;

use crate::world::*;

/// Adds to an account, waiting for who holds it.
async fn add(world: &World, worker: &Worker, k: i64, amount: i64) {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let mut result = world.update(&mut txn, k, |n| n + amount);
    loop {
        match result {
            Ok(()) => break,
            Err(WriteError::Blocked(blocker)) => {
                blocker.wait(&mut txn).await.expect("no deadlock");
            }
            Err(WriteError::Changed) => {}
            Err(error) => panic!("{error}"),
        }
        result = world.update_newest(&mut txn, k, |n| n + amount);
    }
    // Others meet the row while it is locked.
    yield_now().await;
    let engine = worker.engine().clone();
    let receipt = txn.commit().await.expect("commits");
    assert!(
        engine.is_committed(&receipt.waits_for),
        "acknowledged before it was durable"
    );
}

#[test]
fn a_commit_is_visible_at_once_and_ready_when_durable() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |n| n + 1).expect("update");
    let mut commit = std::pin::pin!(txn.commit());
    let mut other = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut other, 1), Some(101), "not pre-committed");
    let bell = Arc::new(Bell::default());
    assert!(poll(commit.as_mut(), &bell).is_pending());
    worker.flush(logstead_engine::FlushMode::Inline);
    assert_eq!(bell.rings(), 1);
    assert!(poll(commit.as_mut(), &bell).is_ready());
}

#[test]
fn tasks_of_two_workers_share_rows_and_flushes() {
    let (world, worker) = World::with_accounts(2, 3);
    drop(worker);
    let world = Arc::new(world);
    let appends_before = world.home.appends();
    let threads: Vec<_> = (0..2)
        .map(|id| {
            let world = world.clone();
            std::thread::spawn(move || {
                let worker_loop = WorkerLoop::new(&world.engine, WorkerId(id));
                for task in 0..10 {
                    let (world, worker) = (world.clone(), worker_loop.worker().clone());
                    worker_loop.spawn(async move {
                        for step in 0..50 {
                            add(&world, &worker, 1 + (task + step) % 3, 1).await;
                        }
                    });
                }
                worker_loop.run();
                assert_eq!(worker_loop.task_count(), 0);
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    block_on(world.engine.flush_all_and_wait()).expect("durable");
    let worker = world.engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let sum: i64 = world.scan(&mut txn).iter().map(|(_, n)| n).sum();
    assert_eq!(sum, 300 + 2 * 10 * 50);
    let appends = world.home.appends() - appends_before;
    assert!(
        appends < 2 * 10 * 50,
        "{appends} appends: nothing shared one"
    );
}

#[test]
fn a_lane_with_enough_bytes_is_flushed_while_tasks_are_ready() {
    let options = EngineOptions {
        commit: CommitOptions {
            flush_unit_bytes: 1,
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    let world = World::open_as(MemoryHome::new(4 << 20), options).expect("opens");
    let (world, worker) = world.fill(1);
    drop(worker);
    let worker_loop = WorkerLoop::new(&world.engine, WorkerId(0));
    let (world, done) = (Arc::new(world), Rc::new(Cell::new(false)));
    let busy = done.clone();
    worker_loop.spawn(async move {
        // Never idle, so nothing is written because of that.
        let mut yields = 0;
        while !busy.get() {
            yields += 1;
            assert!(yields < 100_000, "the lane is not flushed");
            yield_now().await;
        }
    });
    let worker = worker_loop.worker().clone();
    worker_loop.spawn(async move {
        add(&world, &worker, 1, 1).await;
        done.set(true);
    });
    worker_loop.run();
}

#[test]
fn block_on_runs_tasks_and_run_goes_on_with_them() {
    let (world, worker) = World::with_accounts(1, 1);
    drop(worker);
    let worker_loop = WorkerLoop::new(&world.engine, WorkerId(0));
    let (count, gate) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    for _ in 0..3 {
        let (count, gate) = (count.clone(), gate.clone());
        worker_loop.spawn(async move {
            count.set(count.get() + 1);
            while !gate.get() {
                yield_now().await;
            }
            count.set(count.get() + 10);
        });
    }
    assert_eq!(worker_loop.block_on(async { 7 }), 7);
    let seen = count.clone();
    worker_loop.block_on(async move {
        while seen.get() < 3 {
            yield_now().await;
        }
    });
    assert_eq!((count.get(), worker_loop.task_count()), (3, 3));
    gate.set(true);
    worker_loop.run();
    assert_eq!((count.get(), worker_loop.task_count()), (33, 0));
}

#[test]
fn a_parked_executor_is_woken_from_another_thread() {
    let (world, worker) = World::with_accounts(1, 1);
    drop(worker);
    let worker_loop = WorkerLoop::new(&world.engine, WorkerId(0));
    let mut idle = 0;
    let (send, receive) = std::sync::mpsc::channel::<std::task::Waker>();
    let helper = std::thread::spawn(move || receive.recv().expect("a waker").wake());
    let mut send = Some(send);
    worker_loop.spawn(std::future::poll_fn(move |cx| match send.take() {
        Some(send) => {
            send.send(cx.waker().clone()).expect("it listens");
            std::task::Poll::Pending
        }
        None => std::task::Poll::Ready(()),
    }));
    worker_loop.run_with(&mut |would_park| {
        idle += u32::from(would_park);
        IdleAction::Park
    });
    helper.join().expect("no panic");
}

#[test]
fn a_local_log_is_opened_again_after_a_drop() {
    let (env, _files) = Env::simulated(5);
    let open = || {
        let options = LocalOptions {
            threads: false,
            ..LocalOptions::default()
        };
        let home = LocalHome::open("/bank", &env, options).expect("not in use");
        let (engine, _) = Engine::open(EngineOptions::default(), LogHome::from(home), env.clone())
            .expect("opens");
        let table = engine.create_table(TABLE);
        let index = engine.create_index(&table, BY_KEY, true, Arc::new(Column(0)));
        (engine, table, index)
    };
    {
        let (engine, table, _) = open();
        let worker_loop = WorkerLoop::new(&engine, WorkerId(0));
        let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
        for k in 0..10 {
            txn.insert(&table, &row(k, k)).expect("insert");
        }
        worker_loop.block_on(txn.commit()).expect("durable");
    }
    let (engine, table, index) = open();
    let worker_loop = WorkerLoop::new(&engine, WorkerId(0));
    let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
    txn.build_index(&table, &index).expect("unique");
    let guard = logstead_engine::Guard::pin();
    let found = txn
        .get(&index, &key(7), &guard)
        .expect_present()
        .expect("it is back");
    assert_eq!(balance(&found), 7);
}
