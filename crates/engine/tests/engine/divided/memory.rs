//! What is in memory of each instance, of one budget that nothing divides but need.

use std::sync::Arc;

use logstead_engine::{
    Engine, EngineOptions, InstanceId, Isolation, LogHome, MemoryHome, PartitionMemory, RowBuilder,
    WorkerId, partition_of,
};
use logstead_env::Env;

use super::{ByBranch, Place, TABLE, patient, write};
use crate::world::commit;

const BUDGET: u64 = 48 << 20;
const FILLING: usize = 4_000;

fn row(branch: u32) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 2);
    builder.push(Some(&branch.to_be_bytes()));
    builder.push(Some(&[7; FILLING]));
    builder.finish().to_vec()
}

/// What an instance has.
fn of(engine: &Engine, instance: InstanceId) -> PartitionMemory {
    let partitions = (0..).zip(engine.partition_memory());
    let mut sum = PartitionMemory::default();
    for (partition, memory) in partitions {
        let partition = logstead_engine::PartitionId(partition);
        if engine.instances().of_partition(partition) == instance {
            sum.chunks += memory.chunks;
            sum.bytes += memory.bytes;
        }
    }
    sum
}

/// One instance has half of the budget of three, and nothing has to go for it, as the others need little.
#[test]
fn an_instance_takes_what_the_others_do_not_need() {
    let options = EngineOptions {
        workers: 3,
        instances: 3,
        memory_bytes: BUDGET,
        ..EngineOptions::default()
    };
    let home = LogHome::from(MemoryHome::new(8 << 20));
    let (engine, _) = Engine::open(options, home, Env::simulated(1).0).expect("opens");
    let table = engine.create_table(TABLE);
    table.divide(Arc::new(ByBranch));
    engine.finish_startup();
    let instance = |branch: u32| {
        let partition = partition_of(&branch.to_be_bytes());
        engine.instances().of_partition(partition)
    };
    let worker = engine.worker(WorkerId(1));
    let mut rows = [0_u64; 3];
    let mut insert = |branch: u32| {
        rows[usize::from(instance(branch).0)] += 1;
        let mut txn = worker.begin(Isolation::ReadCommitted);
        patient(&mut txn, |txn| write(txn.insert(&table, &row(branch))));
        commit(txn);
    };
    let busy = (0..).filter(|branch| instance(*branch) == InstanceId(1));
    busy.take(6_500).for_each(&mut insert);
    (0..30).for_each(&mut insert);
    engine.checkpoint().expect("taken");
    let found = [0, 1, 2].map(|number| of(&engine, InstanceId(number)));
    assert!(found[1].bytes > BUDGET / 2, "{found:?}");
    assert_eq!(engine.eviction_stats().rows_evicted, 0);
    for (memory, rows) in found.iter().zip(rows) {
        let least = rows * FILLING as u64;
        assert!(memory.chunks > 0);
        // Rows have headers, chunks have empty slots, and allocations are rounded up.
        let most = least + rows * 1_200 + memory.chunks * 1_024;
        assert!((least..most).contains(&memory.bytes), "{found:?} {rows}");
    }
}

/// Tables that are not divided are in one partition, and temporary ones in none.
#[test]
fn what_is_counted_are_the_partitions_rows() {
    let place = Place::new(2);
    let memory = || place.engine.partition_memory();
    assert_eq!(memory(), vec![PartitionMemory::default(); 64]);
    let branch = place.branch_of(1, 0);
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    place.insert(&mut txn, branch, 1, 1);
    commit(txn);
    let at = usize::from(partition_of(&branch.to_be_bytes()).0);
    let found = memory();
    assert_eq!(found[at].chunks, 1);
    assert_eq!(found.iter().map(|of| of.chunks).sum::<u64>(), 1);
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    place.update(&mut txn, (branch, 1), (branch, 1, 2));
    commit(txn);
    assert!(
        memory()[at].bytes > found[at].bytes,
        "its older version is there"
    );
}
