//! What LeanStore's rule loses, and that the safe ways of tracking do not: one scene, and random ones.
//!
//! The scene: A changes a row and stays in the buffer of its lane. B, of another lane, reads it and changes a row of
//! its own page. C, of B's lane, reads what B wrote. B and C harden. C has kept to pages of its own lane.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use logstead_engine::{
    CommitOptions, CommitReceipt, Engine, EngineOptions, Env, ExpectPresent, FlushMode, Guard,
    Isolation, OpenError, ScanCursor, Table, Tracking, Txn, Worker,
};
use logstead_env::{Clock, SimClock};
use logstead_home::simulated::Model;
use logstead_home::{LogHome, SimulatedHome, SimulatedOptions};
use logstead_types::{TableId, WorkerId};

use crate::machine::Machine;
use crate::script::{number_of, row, value_of};
use crate::{from_environment, setup};

/// Each in a page of its own.
const TABLES: u32 = 3;

fn table(engine: &Engine, number: u32) -> Arc<Table> {
    engine.create_table(TableId(20_000 + number))
}

fn committed(txn: Txn) -> CommitReceipt {
    let polled = pin!(txn.precommit()).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(receipt) = polled else {
        panic!("there is room")
    };
    receipt.expect("nobody is in the way")
}

/// The row of a table: its value.
fn read(txn: &mut Txn, engine: &Engine, number: u32) -> Option<Vec<u8>> {
    let guard = Guard::pin();
    let mut cursor = ScanCursor::new(&table(engine, number));
    let found = txn.scan_next(&mut cursor, &guard).expect_present()?;
    assert_eq!(number_of(found.bytes), u64::from(number));
    Some(value_of(found.bytes))
}

/// Gives the row of a table this value.
fn write(txn: &mut Txn, engine: &Engine, number: u32, value: &[u8]) {
    let guard = Guard::pin();
    let table = table(engine, number);
    let mut cursor = ScanCursor::new(&table);
    let found = txn.scan_next(&mut cursor, &guard).expect_present();
    let new = row(u64::from(number), value);
    match found {
        None => txn.insert(&table, &new).map(|_| ()).expect("inserts"),
        Some(old) => {
            let done = txn.update(&table, old.rid, old.version, &new);
            done.expect("nobody is in the way");
        }
    }
}

/// A transaction that copies what one table has to another.
fn copy(worker: &Worker, engine: &Engine, from: u32, to: u32) -> CommitReceipt {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let value = read(&mut txn, engine, from).expect("is there");
    write(&mut txn, engine, to, &value);
    committed(txn)
}

/// Plays the scene: whether B and C were acknowledged, and what a crash then left of all three.
fn play(tracking: Tracking) -> ([bool; 2], Vec<Vec<u8>>) {
    let clock = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(1);
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..env
    };
    let model = Model::named("nvme").expect("a model");
    let options = SimulatedOptions::new(model, 1);
    let home = SimulatedHome::in_virtual_time(&options, &env, clock).expect("opens");
    let options = EngineOptions {
        workers: 2,
        commit: CommitOptions {
            tracking,
            may_lose: !tracking.is_safe(),
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    let open = || {
        let opened = Engine::open(options.clone(), LogHome::from(home.clone()), env.clone());
        opened.expect("opens").0
    };
    let engine = open();
    let [first, second] = [0, 1].map(|number| engine.worker(WorkerId(number)));
    let mut txn = first.begin(Isolation::ReadCommitted);
    for number in 0..TABLES {
        write(&mut txn, &engine, number, b"old");
    }
    let begun = committed(txn);
    first.flush(FlushMode::Handoff);
    while home.step() {}
    first.idle(true, None);
    second.idle(true, None);
    assert!(engine.is_committed(&begun.waits_for), "{tracking:?}");

    let mut txn = first.begin(Isolation::ReadCommitted);
    write(&mut txn, &engine, 0, b"new");
    let a = committed(txn);
    let b = copy(&second, &engine, 0, 1);
    let c = copy(&second, &engine, 1, 2);
    second.flush(FlushMode::Handoff);
    while home.step() {}
    second.idle(true, None);
    assert!(!engine.is_committed(&a.waits_for), "{tracking:?}");
    let told = [b, c].map(|receipt| engine.is_committed(&receipt.waits_for));

    home.crash();
    drop((first, second, engine));
    home.reboot();
    let engine = open();
    engine.bring_all(|| true).expect("brings");
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let left = (0..TABLES).map(|number| read(&mut txn, &engine, number).expect("is there"));
    (told, left.collect())
}

#[test]
fn leanstore_loses_what_an_acknowledged_transaction_was_built_on() {
    let (told, left) = play(Tracking::LeanStore);
    assert_eq!(told, [false, true], "C is acknowledged, B before it is not");
    assert_eq!(left, [b"old", b"new", b"new"], "C tells of what never was");
    for tracking in Tracking::ALL {
        let (told, left) = play(tracking);
        assert_eq!(told, [false, false], "{tracking:?}");
        assert_eq!(left, [b"old", b"old", b"old"], "{tracking:?}");
    }
}

/// The oracle that finds nothing wrong with the others finds this one out. What comes back may be so wrong that a
/// unique index cannot be made of it: that is a panic.
#[test]
fn leanstore_is_found_out_by_random_crashes() {
    let mut found = Vec::new();
    for seed in 0..from_environment("LOGSTEAD_SEEDS", 96) / 4 {
        let mut setup = setup(seed);
        setup.tracking = Tracking::LeanStore;
        setup.workers = setup.workers.max(2);
        setup.workers_per_lane = 1;
        match catch_unwind(AssertUnwindSafe(|| Machine::new(&setup).run(3))) {
            Ok(Ok(_)) => {}
            Ok(Err(what)) => found.push(what),
            Err(_) => found.push("what came back makes no sense".to_owned()),
        }
    }
    println!("{} seeds: {:?}", found.len(), found.first());
    assert!(
        found.iter().any(|what| what.contains("hardened")),
        "{found:?}"
    );
}

#[test]
fn an_engine_refuses_a_way_of_tracking_that_loses() {
    let (env, _) = Env::simulated(1);
    let options = EngineOptions {
        commit: CommitOptions {
            tracking: Tracking::LeanStore,
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    let home = Arc::new(logstead_home::MemoryHome::new(4 << 20));
    let refused = Engine::open(options, LogHome::from(home), env)
        .map(|_| ())
        .expect_err("unsafe");
    assert!(matches!(refused, OpenError::Options(_)));
    let text = refused.to_string();
    assert!(
        text.contains("leanstore") && text.contains("logstead bench"),
        "{text}"
    );
    assert_eq!(Tracking::from_name("leanstore"), None);
}
