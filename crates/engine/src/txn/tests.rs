//! What needs a step between two of a read's own.

use std::sync::Arc;

use logstead_env::Env;
use logstead_home::MemoryHome;
use logstead_types::{TableId, WorkerId};

use super::*;
use crate::{Engine, EngineOptions, RowBuilder};

fn row(value: u8) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 1);
    builder.push(Some(&[value]));
    builder.finish().to_vec()
}

#[test]
fn the_newest_row_is_the_last_of_two_versions_with_one_csn() {
    let home = Arc::new(MemoryHome::new(4 << 20));
    let (engine, _) =
        Engine::open(EngineOptions::default(), home, Env::simulated(1).0).expect("opens");
    let table = engine.create_table(TableId(20_000));
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let rid = txn.insert(&table, &row(0)).expect("inserts");
    txn.try_precommit().expect("room");

    let guard = Guard::pin();
    let mut writer = worker.begin(Isolation::ReadCommitted);
    let write = |writer: &mut Txn, value| {
        writer.begin_statement();
        let base = writer.read(&table, rid, &guard).expect("is there").version;
        writer
            .update(&table, rid, base, &row(value))
            .expect("updates");
    };
    write(&mut writer, 1);
    // A reader that gets so far, and no further before the writer has written again and committed.
    let stale = table.rows.head(rid, &guard);
    write(&mut writer, 2);
    writer.try_precommit().expect("room");

    let mut reader = worker.begin(Isolation::ReadCommitted);
    let found = reader.newest_below(&table, rid, stale, &guard);
    assert_eq!(found.err(), Some(HeadMoved), "the first of the two");
    let newest = reader.read_newest(&table, rid, &guard).expect("is there");
    assert_eq!(newest.bytes.column(0), Some(&[2][..]));
}
