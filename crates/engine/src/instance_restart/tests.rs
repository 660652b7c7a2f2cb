//! What is only known inside of the engine.

use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{TableId, WorkerId};

use super::*;
use crate::txn::Isolation;
use crate::{EngineOptions, RowBuilder};

/// Of a row with older versions the newest comes back: that is what a load is given room for, however often.
#[test]
fn what_is_to_come_back_is_the_newest_versions() {
    let options = EngineOptions {
        workers: 3,
        instances: 3,
        ..EngineOptions::default()
    };
    let home = LogHome::from(MemoryHome::new(8 << 20));
    let (engine, _) = Engine::open(options, home, Env::simulated(1).0).expect("opens");
    let table = engine.create_table(TableId(20_000));
    engine.finish_startup();
    let rows = &table.rows;
    let instance = engine.instances().of_partition(rows.home_partition());
    let worker = engine.worker(WorkerId(0));
    let mut row = RowBuilder::new();
    row.start(1, 1);
    row.push(Some(&[7; 100]));
    let row = row.finish();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let rid = txn.insert(&table, row).expect("inserts");
    txn.try_precommit().expect("room");
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
