//! The memory budget: what counts, what happens at its end, and the way back.

use logstead_engine::{
    ALLOWANCE_BYTES_MAX, FlushMode, Isolation, OpenError, Txn, Worker, WriteError,
};
use logstead_home::{ImmutableObjects, MemoryHome, NamedValues};
use logstead_types::TableId;

use crate::world::*;

const BUDGET: u64 = 16 << 20;

/// A row with a filling, so that rows weigh more than their entries.
fn wide_row(k: i64, bytes: usize) -> Vec<u8> {
    let mut builder = logstead_engine::RowBuilder::new();
    builder.start(1, 3);
    builder.push(Some(&number(k)));
    builder.push(Some(&number(k)));
    builder.push(Some(&vec![b'x'; bytes]));
    builder.finish().to_vec()
}

/// Collects until `memory` is as it should be. What is unlinked is freed when no thread of the process can look at it
/// any more, those of other tests included, so it takes a while.
fn collect_until(worker: &Worker, done: impl Fn(u64) -> bool) -> u64 {
    let used = || worker.engine().memory().used_bytes();
    for _ in 0..20_000 {
        while worker.collect_garbage(1000) {}
        if done(used()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    used()
}

/// Inserts rows of 1 kB, ten per transaction, until there is no memory left. Gives how many keys stand.
fn fill(world: &World, worker: &Worker) -> i64 {
    let mut k = 0;
    loop {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        for i in 0..10 {
            match txn.insert(&world.table, &wide_row(k + i, 1000)) {
                Ok(_) => {}
                Err(WriteError::OutOfMemory(error)) => {
                    assert_eq!(error.budget_bytes, BUDGET);
                    txn.abort();
                    worker.flush(FlushMode::Inline);
                    return k;
                }
                Err(other) => panic!("{other}"),
            }
        }
        k += 10;
        commit(txn);
        worker.flush(FlushMode::Inline);
    }
}

fn delete_where(world: &World, txn: &mut Txn, keys: impl Iterator<Item = i64>) {
    for k in keys {
        world.delete(txn, k).expect("a delete uses the reserve");
    }
}

#[test]
fn at_the_end_of_the_budget_reads_deletes_and_collection_go_on() {
    let world = World::open_within(MemoryHome::new(64 << 20), 2, BUDGET).expect("opens");
    let memory = world.engine.memory();
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    let count = fill(&world, &worker);
    let used = memory.used_bytes();
    assert!(
        used <= BUDGET - BUDGET / 8 + 2 * ALLOWANCE_BYTES_MAX,
        "{used}"
    );
    assert!(
        used > BUDGET / 2 && memory.is_scarce(),
        "{used} of {BUDGET}"
    );

    // Every ordinary write is refused and leaves nothing; reads go on.
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let refused = txn.insert(&world.table, &wide_row(-1, 4_000_000));
    assert!(matches!(refused, Err(WriteError::OutOfMemory(_))));
    assert_eq!(world.get(&mut txn, -1), None);
    assert_eq!(world.get(&mut txn, 0), Some(0));
    assert_eq!(
        world.walk(&mut txn, &world.by_key, true).len() as i64,
        count
    );
    txn.abort();

    // Rollback needs none; deletes come out of the reserve; then there is room again.
    let mut txn = worker.begin(Isolation::ReadCommitted);
    delete_where(&world, &mut txn, 0..count / 2);
    txn.abort();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    delete_where(&world, &mut txn, 0..count / 2);
    commit(txn);
    worker.flush(FlushMode::Inline);
    let left = collect_until(&worker, |left| left < used * 2 / 3);
    assert!(left < used * 2 / 3, "{left} of {used}");
    for k in 0..count / 4 {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        txn.insert(&world.table, &wide_row(k, 1000))
            .expect("there is room");
        commit(txn);
        worker.flush(FlushMode::Inline);
    }
}

#[test]
fn tables_may_ask_for_the_reserve() {
    let world = World::open_within(MemoryHome::new(64 << 20), 1, BUDGET).expect("opens");
    let catalog = world.engine.create_table(TableId(30_000));
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    fill(&world, &worker);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    while txn.insert(&world.table, &wide_row(-1, 100)).is_ok() {
        txn.abort();
        txn = worker.begin(Isolation::ReadCommitted);
        // Its key is taken by nobody: each attempt is rolled back and only moves the account closer to its end.
        let mut more = worker.begin(Isolation::ReadCommitted);
        let full = more.insert(&world.table, &wide_row(-2, 30_000)).is_err();
        more.abort();
        if full {
            break;
        }
    }
    txn.abort();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let refused = txn.insert(&catalog, &wide_row(1, 100_000));
    assert!(matches!(refused, Err(WriteError::OutOfMemory(_))));
    catalog.use_memory_reserve();
    txn.insert(&catalog, &wide_row(1, 100_000))
        .expect("from the reserve");
    commit(txn);
}

/// What is allocated and freed comes out even: nothing is counted twice or never.
#[test]
fn an_account_returns_to_where_it_was() {
    let world = World::new(1);
    let memory = world.engine.memory();
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    let cycle = |settled: u64| {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        for k in 0..500 {
            txn.insert(&world.table, &wide_row(k, 200)).expect("insert");
        }
        commit(txn);
        for round in 0..3 {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            for k in 0..500 {
                world.update(&mut txn, k, |b| b + 1).expect("update");
            }
            if round == 1 {
                txn.abort();
            } else {
                commit(txn);
            }
        }
        let mut txn = worker.begin(Isolation::ReadCommitted);
        delete_where(&world, &mut txn, 0..500);
        commit(txn);
        worker.flush(FlushMode::Inline);
        assert!(memory.used_bytes() > settled, "rows count");
        collect_until(&worker, |used| used <= settled)
    };
    // Buffers and lists of free row numbers stay. If only the tombstones of each round were not given back, that would
    // be more after thirty.
    let settled = memory.used_bytes() + (256 << 10);
    for _ in 0..30 {
        let used = cycle(settled);
        assert!(used <= settled, "{used}: each round frees what it took");
    }
}

#[test]
fn a_log_that_does_not_fit_is_refused_with_what_it_needs() {
    let home = MemoryHome::new(64 << 20);
    let world = World::open_within(home.clone(), 1, BUDGET).expect("opens");
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    let count = fill(&world, &worker);
    let used = world.engine.memory().used_bytes();
    drop((worker, world.engine));
    home.crash();
    match World::open_within(home.clone(), 1, BUDGET / 2).map(|_| ()) {
        Err(OpenError::Memory {
            needed_bytes,
            budget_bytes,
        }) => {
            assert_eq!(budget_bytes, BUDGET / 2);
            // Indexes are not in it.
            assert!(
                needed_bytes > used * 2 / 3 && needed_bytes < used * 11 / 10,
                "{needed_bytes} of {used}"
            );
        }
        other => panic!("{other:?}"),
    }
    home.crash();
    // The refusal has cost nothing, and what a server held it can hold again.
    let world = World::open_within(home, 1, BUDGET).expect("opens");
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.scan(&mut txn).len() as i64, count);
}

/// The first checkpoint of a large index has a change for each of its leaves.
#[test]
fn what_a_checkpoint_is_to_change_counts_until_it_is_over() {
    let (world, worker) = World::with_accounts(1, 20_000);
    block_on(world.engine.flush_all_and_wait()).expect("flushed");
    while worker.collect_garbage(1_000) {}
    let used = || world.engine.memory().used_bytes();
    let mut checkpoint = world.engine.begin_checkpoint().expect("begins");
    let before = used();
    while checkpoint.walk(50).expect("walks") {}
    let during = used();
    let report = checkpoint.publish().expect("published");
    let after = used();
    assert!(report.tiles > 50);
    assert!(during > before + report.tiles * 100, "{before} {during}");
    assert!(after + report.tiles * 100 < during, "{during} {after}");
}

/// A database of an older format that needs more memory than there is, as soon as it is made anew, stays what it was.
#[test]
fn an_upgrade_that_would_not_fit_changes_nothing() {
    use logstead_checkpoint::{CheckpointRecord, ChunkSize};

    use logstead_wal::manifest::{CheckpointRef, Manifest};
    let home = MemoryHome::new(64 << 20);
    let world = World::open_within(home.clone(), 1, BUDGET).expect("opens");
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.insert(&world.table, &wide_row(1, 200)).expect("insert");
    commit(txn);
    world.engine.checkpoint().expect("a checkpoint");
    drop((worker, world.engine));
    home.crash();
    let (bytes, tag) = home.get("manifest").expect("read").expect("there");
    let mut manifest = Manifest::decode(&bytes).expect("a manifest");
    let newest = manifest.checkpoint.take().expect("a checkpoint");
    let mut record = CheckpointRecord::read(&home, manifest.database, newest.object, newest.crc)
        .expect("a record");
    record.chunk_size = ChunkSize::Of1024;
    // Each chunk of 64 takes something, whether it has rows or not.
    record.tables[0].rid_end = BUDGET;
    let object = logstead_home::ObjectId::new(manifest.epoch, 1 << 20);
    let bytes = record.encode(object).expect("encoded");
    home.put_object(object, &bytes).expect("stored");
    manifest.checkpoint = Some(CheckpointRef {
        object,
        crc: crc32c::crc32c(&bytes),
        ..newest
    });
    let tag = home.compare_and_swap("manifest", tag, &manifest.encode());
    let (tag, objects) = (tag.expect("stored"), home.list_objects().expect("listed"));
    let refused = match World::open_within(home.clone(), 1, BUDGET).map(|_| ()) {
        Err(error) => error.to_string(),
        Ok(()) => panic!("it opens"),
    };
    assert!(refused.contains("memory budget of at least"), "{refused}");
    let (_, now) = home.get("manifest").expect("read").expect("there");
    assert_eq!(now, tag);
    assert_eq!(home.list_objects().expect("listed"), objects);
}
