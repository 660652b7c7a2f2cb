//! What is only known inside of the engine.

use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{TableId, WorkerId};

use super::*;
use crate::page_fault::{FaultTarget, PageFault};
use crate::txn::{Isolation, Txn};
use crate::worker::Worker;
use crate::{EngineOptions, RestorePointError, RowBuilder};

struct Place {
    engine: Engine,
    home: MemoryHome,
    table: Arc<Table>,
    worker: Worker,
}

/// Three instances, and a table that is not divided.
fn place() -> Place {
    let options = EngineOptions {
        workers: 3,
        instances: 3,
        ..EngineOptions::default()
    };
    let home = MemoryHome::new(8 << 20);
    let opened = Engine::open(options, LogHome::from(home.clone()), Env::simulated(1).0);
    let (engine, _) = opened.expect("opens");
    let table = engine.create_table(TableId(20_000));
    engine.finish_startup();
    Place {
        worker: engine.worker(WorkerId(0)),
        engine,
        home,
        table,
    }
}

fn row(fill: u8) -> Vec<u8> {
    let mut row = RowBuilder::new();
    row.start(1, 1);
    row.push(Some(&[fill; 100]));
    row.finish().to_vec()
}

impl Place {
    fn commit<T>(&self, change: impl FnOnce(&mut Txn) -> T) -> T {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let changed = change(&mut txn);
        txn.try_precommit().expect("room");
        changed
    }

    fn insert(&self, fill: u8) -> Rid {
        self.commit(|txn| txn.insert(&self.table, &row(fill)).expect("inserts"))
    }

    fn delete(&self, rid: Rid) {
        self.commit(|txn| {
            let guard = Guard::pin();
            let found = txn.read(&self.table, rid, &guard).expect("there");
            let version = found.expect("visible").version;
            txn.delete(&self.table, rid, version).expect("nobody else");
        });
    }
}

/// Restarts the table's instance, and has all of it in memory again.
fn restart(engine: &Engine, table: &Table) {
    let owner = engine.instances();
    let owner = owner.of_partition(table.rows.home_partition());
    let dropped = engine.drop_instance(owner, 60_000, |_| {});
    let dropped = dropped.expect("dropped");
    assert!(engine.bring_back_instance(dropped, || true) > 0);
}

fn is_lost<T>(found: Result<T, PageFault>) -> bool {
    matches!(found, Err(fault) if matches!(*fault.wanted, FaultTarget::Lost))
}

/// A row is in memory, and what an old snapshot sees of it is not: that is not told as something to wait for.
#[test]
fn what_a_snapshot_has_lost_is_not_waited_for() {
    let place = place();
    let (kept, gone) = (place.insert(1), place.insert(2));
    let mut old = place.worker.begin(Isolation::RepeatableRead);
    {
        let guard = Guard::pin();
        let seen = old.read(&place.table, gone, &guard);
        assert!(seen.expect("there").is_some());
    }
    place.delete(gone);
    restart(&place.engine, &place.table);
    let guard = Guard::pin();
    assert!(is_lost(old.read(&place.table, gone, &guard)));
    let mut scan = crate::ScanCursor::new(&place.table);
    let first = old.scan_next(&mut scan, &guard).expect("there");
    assert_eq!(first.expect("visible").rid, kept);
    assert!(is_lost(old.scan_next(&mut scan, &guard)));
}

/// Who looks again at a row that he has come to by his snapshot does not take another row for it, which has got its
/// number.
#[test]
fn a_number_that_was_given_anew_is_not_taken_for_the_row() {
    let place = place();
    let (_kept, gone) = (place.insert(1), place.insert(2));
    let mut statement = place.worker.begin(Isolation::ReadCommitted);
    statement.begin_statement();
    {
        let guard = Guard::pin();
        let seen = statement.read(&place.table, gone, &guard);
        assert!(seen.expect("there").is_some());
    }
    place.delete(gone);
    restart(&place.engine, &place.table);
    assert_eq!(place.insert(3), gone, "its number is free");
    let guard = Guard::pin();
    assert!(is_lost(statement.read_newest_outside(
        &place.table,
        gone,
        &guard
    )));
    // The next statement has come to it as it is.
    statement.begin_statement();
    let found = statement.read(&place.table, gone, &guard).expect("there");
    assert_eq!(found.expect("visible").bytes.bytes(), row(3));
    let found = statement.read_newest_outside(&place.table, gone, &guard);
    assert!(found.expect("there").is_some());
}

/// A restore point whose checkpoint was given up for a restart is made all the same.
#[test]
fn a_restore_point_is_begun_anew_behind_a_restart() {
    let place = place();
    let rid = place.insert(1);
    let (engine, table, home) = (&place.engine, &place.table, &place.home);
    let checkpoints = &engine.inner().checkpoints;
    home.set_paused(true);
    std::thread::scope(|scope| {
        // The checkpoint waits for the log, and gives up waiting when the restart comes.
        let made = scope.spawn(|| engine.create_restore_point("then"));
        while home.waiting() == 0 {
            std::thread::yield_now();
        }
        let restarted = scope.spawn(|| restart(engine, table));
        while checkpoints.given_up().is_none() {
            std::thread::yield_now();
        }
        while checkpoints.given_up().is_some() {
            std::thread::yield_now();
        }
        home.set_paused(false);
        while home.complete() {}
        restarted.join().expect("restarted");
        let made: Result<(), RestorePointError> = made.join().expect("no panic");
        made.expect("made");
    });
    let points = place.engine.restore_points();
    assert!(
        points
            .iter()
            .any(|point| point.name.as_deref() == Some("then"))
    );
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    let guard = Guard::pin();
    let found = txn.read(&place.table, rid, &guard);
    assert!(found.expect("there").is_some());
}

/// Of a row with older versions the newest comes back: that is what a load is given room for, however often.
#[test]
fn what_is_to_come_back_is_the_newest_versions() {
    let place = place();
    let rid = place.insert(7);
    let Place {
        engine,
        table,
        worker,
        ..
    } = place;
    let rows = &table.rows;
    let instance = engine.instances().of_partition(rows.home_partition());
    let row = &row(7);
    engine.checkpoint().expect("taken");
    let mut expected = None;
    for _ in 0..3 {
        // Older versions stay for it.
        let mut old = worker.begin(Isolation::RepeatableRead);
        assert!(
            old.read(&table, rid, &Guard::pin())
                .expect("there")
                .is_some()
        );
        for _ in 0..5 {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            let guard = Guard::pin();
            let found = txn
                .read(&table, rid, &guard)
                .expect("there")
                .expect("visible");
            txn.update(&table, rid, found.version, row)
                .expect("nobody else");
            txn.try_precommit().expect("room");
        }
        let dropped = engine.drop_instance(instance, 60_000, |_| {});
        let dropped = dropped.expect("dropped");
        assert_eq!(dropped.rows, 1);
        let chunk = rows.chunk(0).expect("its shell stays");
        let absence = chunk.absence(&Guard::pin()).expect("nobody brings it");
        let needed = chunk.absent_bytes(&absence, &crate::version::SlotSet::ALL);
        let needed = needed.expect("known");
        assert_eq!(needed, *expected.get_or_insert(needed));
        assert!(needed < dropped.bytes + crate::version::CHUNK_BYTES as u64);
        assert!(engine.bring_back_instance(dropped, || true) > 0);
        drop(old);
    }
}
