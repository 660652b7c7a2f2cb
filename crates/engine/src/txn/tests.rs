//! What needs a step between two of a read's own.

use std::sync::Arc;
use std::task::{Context, Waker};

use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{IndexId, TableId, WorkerId};

use super::*;
use crate::{
    Engine, EngineOptions, ExpectPresent, KeyExtractor, KeyKind, RowBuilder, RowLock, RowRef,
    TableLock,
};

fn row(value: u8) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 1);
    builder.push(Some(&[value]));
    builder.finish().to_vec()
}

/// A row that a running transaction has written twice.
struct Twice {
    table: Arc<Table>,
    rid: Rid,
    worker: crate::Worker,
    writer: Option<Txn>,
}

impl Twice {
    /// Calls `between` with the row after the first of the two writes.
    fn new(between: impl FnOnce(&Table, Rid)) -> Twice {
        let home = Arc::new(MemoryHome::new(4 << 20));
        let env = Env::simulated(1).0;
        let (engine, _) =
            Engine::open(EngineOptions::default(), LogHome::from(home), env).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let rid = txn.insert(&table, &row(0)).expect("inserts");
        txn.try_precommit().expect("room");
        let mut writer = worker.begin(Isolation::ReadCommitted);
        let write = |writer: &mut Txn, value| {
            let guard = Guard::pin();
            writer.begin_statement();
            let found = writer
                .read(&table, rid, &guard)
                .expect_present()
                .expect("is there");
            let base = found.version;
            writer
                .update(&table, rid, base, &row(value))
                .expect("updates");
        };
        write(&mut writer, 1);
        between(&table, rid);
        write(&mut writer, 2);
        Twice {
            table,
            rid,
            worker,
            writer: Some(writer),
        }
    }

    fn commit(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.try_precommit().expect("room");
        }
    }

    fn newest_is(&self, value: u8) {
        let guard = Guard::pin();
        let mut reader = self.worker.begin(Isolation::ReadCommitted);
        let newest = reader
            .read_newest(&self.table, self.rid, &guard)
            .expect_present();
        assert_eq!(
            newest.expect("is there").bytes.column(0),
            Some(&[value][..])
        );
    }
}

#[test]
fn a_writer_that_writes_the_row_again_supersedes_what_a_reader_has_reached() {
    let guard = Guard::pin();
    let mut stale = None;
    let mut twice = Twice::new(|table, rid| {
        // The reader gets so far, and no further before the writer has written again and committed.
        stale = table.rows.head(rid, &guard).expect("is in memory");
    });
    twice.commit();
    let mut reader = twice.worker.begin(Isolation::ReadCommitted);
    let found = reader.newest_below(&twice.table, twice.rid, stale, u32::MAX, &guard, || ());
    assert_eq!(found.err(), Some(Superseded), "the first of the two");
    twice.newest_is(2);
}

#[test]
fn a_writer_that_commits_supersedes_what_is_below_its_newest_version() {
    let guard = Guard::pin();
    let mut twice = Twice::new(|_, _| ());
    let (table, rid) = (twice.table.clone(), twice.rid);
    let mut reader = twice.worker.begin(Isolation::ReadCommitted);
    let head = table.rows.head(rid, &guard).expect("is in memory");
    // It is running when the reader passes its second version, and has committed when the reader comes to the first.
    let found = reader.newest_below(&table, rid, head, u32::MAX, &guard, || twice.commit());
    assert_eq!(found.err(), Some(Superseded), "the first of the two");
    twice.newest_is(2);
}

#[test]
fn what_is_below_a_running_writer_is_the_newest() {
    let twice = Twice::new(|_, _| ());
    twice.newest_is(0);
}

struct ByValue;

impl KeyExtractor for ByValue {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        out.extend_from_slice(row.column(0).unwrap_or_default());
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1
    }
}

/// A table with a unique index and committed rows.
fn table_of(rows: u8) -> (crate::Worker, Arc<Table>, Vec<Rid>) {
    let home = Arc::new(MemoryHome::new(4 << 20));
    let env = Env::simulated(1).0;
    let (engine, _) =
        Engine::open(EngineOptions::default(), LogHome::from(home), env).expect("opens");
    let table = engine.create_table(TableId(20_000));
    engine.create_index(&table, IndexId(20_001), true, Arc::new(ByValue));
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let insert = |value| txn.insert(&table, &row(value)).expect("inserts");
    let rids = (0..rows).map(insert).collect();
    txn.try_precommit().expect("room");
    (worker, table, rids)
}

fn version(txn: &mut Txn, table: &Table, rid: Rid) -> VersionId {
    let guard = Guard::pin();
    txn.begin_statement();
    let found = txn.read(table, rid, &guard).expect_present();
    found.expect("is there").version
}

#[test]
fn a_write_that_comes_to_nothing_holds_nothing() {
    let (worker, table, rids) = table_of(3);
    let [free, taken] = [rids[0], rids[1]];
    let mut holder = worker.begin(Isolation::ReadCommitted);
    let base = version(&mut holder, &table, taken);
    holder.delete(&table, taken, base).expect("deletes");
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let base = version(&mut txn, &table, free);
    txn.lock_row(&table, free, base, RowLock::Update)
        .expect("locks");
    let held = txn.held_bytes.get();
    assert!(held > 0);
    let base = version(&mut txn, &table, taken);
    for _ in 0..3 {
        let update = txn.update(&table, taken, base, &row(9));
        assert!(matches!(update, Err(WriteError::Blocked(_))));
        assert_eq!(txn.held_bytes.get(), held, "update");
        let delete = txn.delete(&table, taken, base);
        assert!(matches!(delete, Err(WriteError::Blocked(_))));
        assert_eq!(txn.held_bytes.get(), held, "delete");
        for lock in [RowLock::KeyShare, RowLock::Update] {
            let lock = txn.lock_row(&table, taken, base, lock);
            assert!(matches!(lock, Err(WriteError::Blocked(_))));
            assert_eq!(txn.held_bytes.get(), held, "lock");
        }
        let insert = txn.insert(&table, &row(2));
        assert!(matches!(insert, Err(WriteError::Unique { .. })));
        assert_eq!(txn.held_bytes.get(), held, "insert");
        // What it holds already is not taken again.
        let base = version(&mut txn, &table, free);
        txn.lock_row(&table, free, base, RowLock::Share)
            .expect("is held");
        assert_eq!(txn.held_bytes.get(), held, "held");
    }
    txn.insert(&table, &row(4)).expect("a key of its own");
    assert!(txn.held_bytes.get() > held);
}

#[test]
fn who_begins_to_roll_back_gives_way_before_it_has_undone_everything() {
    for to_savepoint in [false, true] {
        let (worker, table, rids) = table_of(1);
        let mut holder = worker.begin(Isolation::ReadCommitted);
        let base = version(&mut holder, &table, rids[0]);
        holder.delete(&table, rids[0], base).expect("deletes");
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let savepoint = to_savepoint.then(|| txn.savepoint());
        for value in 10..13 {
            txn.insert(&table, &row(value)).expect("inserts");
        }
        let mut reader = worker.begin(Isolation::ReadCommitted);
        reader
            .lock_table(&table, TableLock::AccessShare)
            .expect("free");
        let base = version(&mut txn, &table, rids[0]);
        let strong = txn.lock_table(&table, TableLock::AccessExclusive);
        assert!(strong.is_err(), "the reader is in its way");
        let mut cx = Context::from_waker(Waker::noop());
        let mut wait = Box::pin(blocker(txn.delete(&table, rids[0], base)).wait(&mut txn));
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        let mut behind = worker.begin(Isolation::ReadCommitted);
        let base = version(&mut behind, &table, rids[0]);
        let blocked = blocker(behind.delete(&table, rids[0], base));
        let mut waits_behind = Box::pin(blocked.wait(&mut behind));
        assert!(waits_behind.as_mut().poll(&mut cx).is_pending());
        holder.abort();
        assert!(wait.as_mut().poll(&mut cx).is_ready());
        drop(wait);
        // It is its turn, and it wants the table alone.
        assert!(waits_behind.as_mut().poll(&mut cx).is_pending());
        let mut other = worker.begin(Isolation::ReadCommitted);
        assert!(other.lock_table(&table, TableLock::AccessShare).is_err());
        assert!(txn.unwind(savepoint, 1), "there is more to undo");
        assert!(waits_behind.as_mut().poll(&mut cx).is_ready(), "its turn");
        other
            .lock_table(&table, TableLock::AccessShare)
            .expect("free");
    }
}

fn blocker(done: Result<(), WriteError>) -> LockConflict {
    match done {
        Err(WriteError::Blocked(blocker)) => blocker,
        other => panic!("expected a blocker, got {other:?}"),
    }
}

/// The numbers of a transaction's commands end: it writes no more, and reads and commits what it has.
#[test]
fn a_transaction_near_the_end_of_its_commands_writes_no_more() {
    let home = Arc::new(MemoryHome::new(4 << 20));
    let env = Env::simulated(1).0;
    let (engine, _) =
        Engine::open(EngineOptions::default(), LogHome::from(home), env).expect("opens");
    let table = engine.create_table(TableId(20_000));
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.commands = COMMANDS_END - 2;
    txn.begin_statement();
    let rid = txn.insert(&table, &row(1)).expect("the last one");
    for _ in 0..3 {
        txn.begin_statement();
        let guard = Guard::pin();
        let found = txn.read(&table, rid, &guard).expect_present();
        let found = found.expect("what was written before is seen");
        assert_eq!(found.bytes.column(0), Some(&[1][..]));
        let base = found.version;
        let refused = [
            txn.insert(&table, &row(2)).map(drop),
            txn.update(&table, rid, base, &row(2)),
            txn.delete(&table, rid, base),
            txn.lock_row(&table, rid, base, RowLock::Update),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(WriteError::TooManyCommands)));
        }
    }
    txn.try_precommit().expect("room");
    let guard = Guard::pin();
    let mut reader = worker.begin(Isolation::ReadCommitted);
    let found = reader.read(&table, rid, &guard).expect_present();
    assert_eq!(found.expect("is there").bytes.column(0), Some(&[1][..]));
}
