//! What needs a step between two of a read's own.

use std::sync::Arc;

use logstead_env::Env;
use logstead_home::MemoryHome;
use logstead_types::{TableId, WorkerId};

use super::*;
use crate::{Engine, EngineOptions, Present, RowBuilder};

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
        let (engine, _) = Engine::open(EngineOptions::default(), home, env).expect("opens");
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
    let found = reader.newest_below(&twice.table, twice.rid, stale, &guard, || ());
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
    let found = reader.newest_below(&table, rid, head, &guard, || twice.commit());
    assert_eq!(found.err(), Some(Superseded), "the first of the two");
    twice.newest_is(2);
}

#[test]
fn what_is_below_a_running_writer_is_the_newest() {
    let twice = Twice::new(|_, _| ());
    twice.newest_is(0);
}
