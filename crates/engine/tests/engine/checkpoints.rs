//! Checkpoints: what comes back from one, with the log behind it; that they hold up nobody; what fails leaves what was.

use std::collections::BTreeMap;
use std::sync::Arc;

use logstead_engine::{
    CheckpointError, CheckpointReport, Checkpointer, Csn, Engine, EngineOptions, Evictor,
    ExpectPresent, FaultError, Guard, Isolation, LogHome, MemoryHome, Rid, RowBuilder, ScanCursor,
    Table, TableId, Worker, WorkerId,
};
use logstead_env::Env;

use crate::world::{block_on, commit, number};

pub(crate) const TABLES: [TableId; 3] = [TableId(20_000), TableId(20_001), TableId(20_002)];

/// Random numbers of one seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % sides
    }
}

fn options(workers: usize) -> EngineOptions {
    EngineOptions {
        workers,
        ..EngineOptions::default()
    }
}

fn open(home: &LogHome) -> (Engine, logstead_engine::RecoveryReport) {
    let (env, _) = Env::simulated(1);
    let (engine, report) = Engine::open(options(1), home.clone(), env).expect("opens");
    engine.bring_all(|| true).expect("everything can be read");
    (engine, report)
}

/// One engine with one worker, over a home that can be opened again.
pub(crate) struct Place {
    pub(crate) memory: MemoryHome,
    pub(crate) home: LogHome,
    pub(crate) engine: Engine,
    pub(crate) worker: Worker,
}

impl Place {
    pub(crate) fn new() -> Place {
        let memory = MemoryHome::new(1 << 20);
        let home = LogHome::from(memory.clone());
        Place::over(memory, home)
    }

    pub(crate) fn over(memory: MemoryHome, home: LogHome) -> Place {
        let (engine, _) = open(&home);
        for id in TABLES {
            engine.create_table(id);
        }
        let worker = engine.worker(WorkerId(0));
        Place {
            memory,
            home,
            engine,
            worker,
        }
    }

    /// The machine stops and starts again.
    pub(crate) fn restarted(self) -> (Place, logstead_engine::RecoveryReport) {
        let Place {
            memory,
            home,
            engine,
            worker,
        } = self;
        drop((engine, worker));
        memory.crash();
        let (engine, report) = open(&home);
        for id in TABLES {
            engine.create_table(id);
        }
        let worker = engine.worker(WorkerId(0));
        let place = Place {
            memory,
            home,
            engine,
            worker,
        };
        (place, report)
    }

    pub(crate) fn table(&self, id: TableId) -> Arc<Table> {
        self.engine.table(id).expect("there")
    }

    pub(crate) fn rows(&self) -> Rows {
        rows(&self.engine, &self.worker)
    }

    pub(crate) fn insert(&self, id: TableId, row: &[u8]) -> Rid {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let rid = txn.insert(&self.table(id), row).expect("insert");
        commit(txn);
        rid
    }

    /// Gives the row new bytes, or deletes it.
    pub(crate) fn change(&self, id: TableId, rid: Rid, row: Option<&[u8]>) {
        let table = self.table(id);
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let guard = Guard::pin();
        let version = txn
            .read(&table, rid, &guard)
            .expect_present()
            .expect("a row")
            .version;
        match row {
            Some(row) => txn.update(&table, rid, version, row).expect("update"),
            None => txn.delete(&table, rid, version).expect("delete"),
        }
        drop(guard);
        commit(txn);
    }

    pub(crate) fn fill(&self, id: TableId, count: i64) {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        for n in 0..count {
            txn.insert(&self.table(id), &row(n, 20)).expect("insert");
        }
        commit(txn);
    }

    pub(crate) fn flush(&self) {
        block_on(self.engine.flush_all_and_wait()).expect("flushed");
    }

    pub(crate) fn checkpoint(&self) -> CheckpointReport {
        self.engine.checkpoint().expect("taken")
    }

    pub(crate) fn objects(&self) -> Vec<u64> {
        let objects = self.home.objects.list_objects().expect("listed");
        objects.into_iter().map(|info| info.id.0).collect()
    }
}

type Rows = BTreeMap<(TableId, Rid), Vec<u8>>;

/// All rows of all tables, with their numbers.
fn rows(engine: &Engine, worker: &Worker) -> Rows {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let mut rows = Rows::new();
    for table in engine.tables() {
        let guard = Guard::pin();
        let mut cursor = ScanCursor::new(&table);
        while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
            rows.insert((table.id(), row.rid), row.bytes.bytes().to_vec());
        }
    }
    rows
}

pub(crate) fn row(n: i64, bytes: usize) -> Vec<u8> {
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&number(n)));
    let filling: Vec<u8> = (0..bytes).map(|at| (at as i64 * n) as u8).collect();
    row.push(Some(&filling));
    row.finish().to_vec()
}

/// Random transactions, checkpoints in between, collection, rolled back work, and restarts: the same rows each time.
#[test]
fn all_rows_are_equal_through_many_checkpoints_and_restarts() {
    let (mut deltas, mut restarts_with_tail, mut reused) = (0, 0, 0);
    for seed in 0..5 {
        let mut dice = Dice(seed);
        let mut place = Place::new();
        place.fill(TABLES[0], 3_000);
        for _ in 0..6 {
            for _ in 0..dice.roll(60) {
                step(&place, &mut dice, &mut reused);
            }
            if dice.roll(4) > 0 {
                deltas += place.checkpoint().delta_pages;
            }
            for _ in 0..dice.roll(20) {
                step(&place, &mut dice, &mut reused);
            }
            place.flush();
            let before = place.rows();
            let taken = place.engine.checkpoint_stats().last.map(|last| last.csn);
            let (again, report) = place.restarted();
            restarts_with_tail += u64::from(taken.is_some() && report.entries > 0);
            place = again;
            assert!(before == place.rows(), "seed {seed}: {report:?}");
        }
    }
    assert!(deltas > 0 && restarts_with_tail > 0 && reused > 0);
}

fn step(place: &Place, dice: &mut Dice, reused: &mut u64) {
    let id = TABLES[dice.roll(3) as usize];
    let table = place.table(id);
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    // Now and then large: its records go into a side segment.
    let (changes, bytes) = match dice.roll(20) {
        0 if dice.roll(3) == 0 => (150, 8_000),
        1..4 => (30, 40),
        _ => (1 + dice.roll(3), dice.roll(60) as usize),
    };
    for _ in 0..changes {
        txn.begin_statement();
        let guard = Guard::pin();
        let end = table.row_count_estimate() + 4;
        let rid = Rid(dice.roll(end.max(1)));
        let found = txn
            .read(&table, rid, &guard)
            .expect_present()
            .map(|row| row.version);
        let new = row(dice.roll(1_000_000) as i64, bytes);
        match (found, dice.roll(4)) {
            (Some(version), 0 | 1) => txn.update(&table, rid, version, &new).expect("update"),
            (Some(version), 2) => txn.delete(&table, rid, version).expect("delete"),
            _ => {
                let rid = txn.insert(&table, &new).expect("insert");
                *reused += u64::from(rid.0 + 1 < end);
            }
        }
    }
    if dice.roll(8) == 0 {
        txn.abort();
    } else {
        commit(txn);
    }
    if dice.roll(3) == 0 {
        place.flush();
        while place.worker.collect_garbage(64) {}
    }
}

/// What changed since the checkpoint alone comes from the log; a checkpoint without changes writes nothing.
#[test]
fn a_start_reads_the_checkpoint_and_the_log_behind_it_alone() {
    let place = Place::new();
    for n in 0..50 {
        place.insert(TABLES[0], &row(n, 100));
    }
    let report = place.checkpoint();
    assert!(report.written && report.rows == 50, "{report:?}");
    assert!(report.csn <= place.engine.horizon());
    let objects = place.objects();
    let again = place.checkpoint();
    assert!(!again.written && again.bytes == 0, "{again:?}");
    assert_eq!(place.objects(), objects);
    place.change(TABLES[0], Rid(7), Some(&row(70, 10)));
    place.change(TABLES[0], Rid(8), None);
    place.flush();
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 2);
    assert!(before == place.rows());
    assert_eq!(before.len(), 49);
}

/// One changed row is one row in a small page, until those are a quarter of the whole.
#[test]
fn a_changed_row_does_not_rewrite_its_chunk() {
    let place = Place::new();
    place.fill(TABLES[0], 128);
    let whole = place.checkpoint();
    assert_eq!((whole.pages, whole.delta_pages), (2, 0), "{whole:?}");
    place.change(TABLES[0], Rid(100), Some(&row(1, 20)));
    place.change(TABLES[0], Rid(101), None);
    let one = place.checkpoint();
    assert_eq!((one.pages, one.delta_pages, one.rows), (0, 1, 1), "{one:?}");
    // Half of the chunk is more than a quarter of it.
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    for rid in 0..32 {
        let (table, guard) = (place.table(TABLES[0]), Guard::pin());
        let version = txn
            .read(&table, Rid(rid), &guard)
            .expect_present()
            .expect("a row")
            .version;
        let new = row(rid as i64 * 77, 20);
        txn.update(&table, Rid(rid), version, &new).expect("update");
    }
    commit(txn);
    let half = place.checkpoint();
    assert_eq!((half.pages, half.delta_pages), (1, 0), "{half:?}");
    place.flush();
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 0, "all of it is in the checkpoint");
    assert!(before == place.rows());
}

/// Rows that compress well: a delta with one of them takes more than a quarter of their page, and is written all the
/// same, four times. Then the chunk is written whole.
#[test]
fn changes_of_rows_that_compress_well_do_not_rewrite_their_chunk() {
    let place = Place::new();
    let alike = |n: u8| {
        let mut row = RowBuilder::new();
        row.start(1, 1);
        row.push(Some(&[n; 100]));
        row.finish().to_vec()
    };
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    for _ in 0..64 {
        txn.insert(&place.table(TABLES[0]), &alike(0))
            .expect("insert");
    }
    commit(txn);
    place.checkpoint();
    let mut written = Vec::new();
    for round in 0..10 {
        place.change(TABLES[0], Rid(round * 3), Some(&alike(round as u8)));
        let report = place.checkpoint();
        written.push((report.pages, report.delta_pages, report.rows));
    }
    let cycle = [(0, 1, 1), (0, 1, 1), (0, 1, 1), (0, 1, 1), (1, 0, 64)];
    assert_eq!(written, [cycle, cycle].concat());
    place.flush();
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 0, "all of it is in the checkpoint");
    assert!(before == place.rows());
}

/// A row that is deleted, collected, and whose number is used again, all between two checkpoints.
#[test]
fn numbers_used_again_between_checkpoints() {
    let place = Place::new();
    place.fill(TABLES[0], 10);
    place.checkpoint();
    place.change(TABLES[0], Rid(3), None);
    place.change(TABLES[0], Rid(4), None);
    place.flush();
    while place.worker.collect_garbage(64) {}
    let reused = place.insert(TABLES[0], &row(99, 5));
    assert!(reused.0 == 3 || reused.0 == 4, "{reused}");
    let report = place.checkpoint();
    assert_eq!(report.rows, 1, "{report:?}");
    let before = place.rows();
    let (place, _) = place.restarted();
    assert!(before == place.rows());
    // And the emptied number is free, once.
    let rid = place.insert(TABLES[0], &row(100, 5));
    assert_eq!(rid.0, 7 - reused.0);
    assert_eq!(place.insert(TABLES[0], &row(101, 5)).0, 10);
}

/// Old snapshots see what they saw, and the checkpoint has what is newest below its CSN.
#[test]
fn a_checkpoint_among_old_snapshots_and_running_writers() {
    let place = Place::new();
    place.fill(TABLES[0], 100);
    let mut old = place.worker.begin(Isolation::RepeatableRead);
    old.snapshot();
    let table = place.table(TABLES[0]);
    for rid in 0..50 {
        place.change(
            TABLES[0],
            Rid(rid),
            (rid % 2 == 0).then(|| row(5, 5)).as_deref(),
        );
    }
    // Running while the checkpoint looks, committed after it.
    let mut running = place.worker.begin(Isolation::ReadCommitted);
    let guard = Guard::pin();
    let version = running
        .read(&table, Rid(60), &guard)
        .expect_present()
        .expect("a row")
        .version;
    running
        .update(&table, Rid(60), version, &row(6, 6))
        .expect("update");
    drop(guard);
    let inserted = running.insert(&table, &row(7, 7)).expect("insert");
    let taken = place.checkpoint();
    assert_eq!(taken.rows, 75);
    commit(running);
    let guard = Guard::pin();
    for rid in 0..100 {
        let seen = old
            .read(&table, Rid(rid), &guard)
            .expect_present()
            .expect("as it was");
        assert_eq!(seen.bytes.bytes(), row(rid as i64, 20), "{rid}");
    }
    assert!(
        old.read(&table, inserted, &guard)
            .expect_present()
            .is_none()
    );
    drop((guard, old));
    // Nothing was committed in the two chunks since but what ran then.
    let next = place.checkpoint();
    assert_eq!((next.rows, next.delta_pages), (2, 2), "{next:?}");
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 0);
    assert!(before == place.rows());
}

/// While a checkpoint is taken, transactions commit between any two of its steps, and rows are collected: it has what
/// was there at its CSN, and the next one the rest.
#[test]
fn transactions_go_on_between_the_steps_of_a_checkpoint() {
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let mut place = Place::new();
        let mut reused = 0;
        for id in TABLES {
            place.fill(id, 1_500);
        }
        for _ in 0..4 {
            let mut taking = place.engine.begin_checkpoint().expect("begins");
            step(&place, &mut dice, &mut reused);
            place.flush();
            assert!(taking.is_durable().expect("the log is fine"));
            while taking.walk(1).expect("walks") {
                step(&place, &mut dice, &mut reused);
            }
            step(&place, &mut dice, &mut reused);
            taking.publish().expect("published");
            place.flush();
            let before = place.rows();
            let (again, _) = place.restarted();
            place = again;
            assert!(before == place.rows(), "seed {seed}");
        }
    }
}

/// Transactions commit, and are acknowledged, while an object of the checkpoint is on its way and does not arrive.
#[test]
fn a_checkpoint_that_hangs_holds_up_no_transaction() {
    let place = Place::new();
    place.fill(TABLES[0], 100);
    let held = place.memory.hold_objects();
    let engine = place.engine.clone();
    let taking = std::thread::spawn(move || engine.checkpoint());
    while place.memory.objects_under_way() == 0 {
        std::thread::yield_now();
    }
    let begun = place.engine.next_csn();
    for rid in 0..50 {
        place.change(TABLES[0], Rid(rid), Some(&row(9, 9)));
    }
    place.insert(TABLES[1], &row(1, 1));
    place.flush();
    assert!(
        place.engine.horizon() >= Csn(begun.0 + 51),
        "all are acknowledged"
    );
    assert!(!taking.is_finished());
    assert_eq!(place.engine.checkpoint_stats().published, 0);
    while place.worker.collect_garbage(64) {}
    drop(held);
    let report = taking.join().expect("no panic").expect("taken");
    assert!(report.csn <= begun && report.rows == 100, "{report:?}");
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(report.entries, 51);
    assert!(before == place.rows());
}

/// What is Precommitted below its CSN is not in a checkpoint before it is durable.
#[test]
fn a_checkpoint_waits_until_what_it_holds_is_durable() {
    let place = Place::new();
    place.fill(TABLES[0], 10);
    place.flush();
    place.memory.set_paused(true);
    place.change(TABLES[0], Rid(0), None);
    let mut taking = place.engine.begin_checkpoint().expect("begins");
    assert!(!taking.is_durable().expect("the log is fine"));
    let busy = place.engine.begin_checkpoint().map(|_| ());
    assert!(matches!(busy, Err(CheckpointError::Busy)), "{busy:?}");
    while place.memory.complete() {}
    assert!(taking.is_durable().expect("the log is fine"));
    assert!(taking.walk(1).expect("walks"));
    assert_eq!(taking.publish().expect("published").rows, 9);
}

/// A full disk, then a failing one: the checkpoint before stays in force, and the next one has everything.
#[test]
fn a_failed_checkpoint_leaves_the_one_before() {
    let place = Place::new();
    place.fill(TABLES[0], 100);
    let first = place.checkpoint();
    for rid in 0..10 {
        place.change(TABLES[0], Rid(rid), None);
    }
    place.flush();
    place.memory.set_disk_full(true);
    let failed = place.engine.checkpoint();
    assert!(
        matches!(failed, Err(CheckpointError::DiskFull(_))),
        "{failed:?}"
    );
    place.memory.set_disk_full(false);
    let stats = place.engine.checkpoint_stats();
    assert_eq!(
        (stats.failed, stats.last.map(|last| last.csn)),
        (1, Some(first.csn))
    );
    assert!(stats.last_error.is_some());
    // What failed was no loss.
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!(
        (place.engine.checkpoint_stats().loaded, report.entries),
        (Some(first.csn), 10)
    );
    assert!(before == place.rows());
    place.change(TABLES[0], Rid(20), None);
    place.flush();
    place.memory.set_failing(true);
    let failed = place.engine.checkpoint();
    assert!(
        matches!(failed, Err(CheckpointError::Pages(_))),
        "{failed:?}"
    );
    assert!(failed.is_err_and(|error| !error.is_final()));
    place.memory.set_failing(false);
    place.checkpoint();
    assert!(place.engine.checkpoint_stats().last_error.is_none());
    let before = place.rows();
    let (place, report) = place.restarted();
    assert_eq!((before.len(), report.entries), (89, 0));
    assert!(before == place.rows());
}

/// The drop of a table is not durable when the engine hears of it: a checkpoint from before still has the table, and a
/// crash brings both back. Once it is durable, nothing of the table stays.
#[test]
fn a_dropped_table_is_in_checkpoints_until_its_drop_is_durable() {
    let place = Place::new();
    place.fill(TABLES[0], 3_000);
    place.fill(TABLES[1], 10);
    place.checkpoint();
    place.change(TABLES[0], Rid(1), Some(&row(1, 1)));
    place.flush();
    let before = place.rows();
    let mut taking = place.engine.begin_checkpoint().expect("begins");
    assert!(taking.is_durable().expect("the log is fine"));
    // The drop: a row of another table says so, and the engine forgets the table before anything is durable.
    place.memory.set_paused(true);
    place.change(TABLES[1], Rid(0), None);
    place.engine.drop_table(TABLES[0]);
    while taking.walk(1).expect("walks") {}
    let report = taking.publish().expect("published");
    assert_eq!(report.rows, 1);
    let (place, _) = place.restarted();
    place.memory.set_paused(false);
    assert!(before == place.rows(), "the drop is lost, the table is not");

    place.change(TABLES[1], Rid(0), None);
    place.engine.drop_table(TABLES[0]);
    let report = place.checkpoint();
    assert!(report.objects_removed > 0, "{report:?}");
    let (place, _) = place.restarted();
    assert_eq!(place.rows().len(), 9);
    assert!(place.rows().keys().all(|(table, _)| *table == TABLES[1]));
}

/// A table that is dropped while a checkpoint looks at it, and made, filled and dropped meanwhile.
#[test]
fn tables_come_and_go_during_a_checkpoint() {
    let place = Place::new();
    place.fill(TABLES[0], 3_000);
    let (dropped, made) = (TableId(20_010), TableId(20_011));
    place.engine.create_table(dropped);
    place.fill(dropped, 2_000);
    place.flush();
    let mut taking = place.engine.begin_checkpoint().expect("begins");
    assert!(taking.walk(1).expect("walks"));
    place.engine.drop_table(dropped);
    place.engine.create_table(made);
    place.fill(made, 5);
    place.flush();
    while place.worker.collect_garbage(64) {}
    while taking.walk(1).expect("walks") {}
    assert_eq!(taking.publish().expect("published").rows, 5_000);
    place.checkpoint();
    let before = place.rows();
    let (place, _) = place.restarted();
    assert!(
        place
            .engine
            .table(dropped)
            .is_none_or(|table| table.row_count_estimate() == 0)
    );
    assert!(before == place.rows());
}

/// A database larger than the memory budget starts, as soon as its record is read, and serves every row.
#[test]
fn a_database_larger_than_memory_starts_and_serves() {
    let place = Place::new();
    place.fill(TABLES[0], 20_000);
    place.checkpoint();
    // The tail: a row here and there.
    for rid in [7, 9_999, 19_999] {
        place.change(TABLES[0], Rid(rid), Some(&row(-1, 20)));
    }
    place.flush();
    let before = place.rows();
    let Place {
        memory,
        home,
        engine,
        worker,
    } = place;
    drop((engine, worker));
    for threads in [1, 3] {
        memory.crash();
        let (env, _) = Env::simulated(1);
        let little = EngineOptions {
            memory_bytes: 900_000,
            replay_threads: threads,
            commit: logstead_engine::CommitOptions {
                lane_buffer_bytes: 16 << 10,
                blocks_in_flight_max: 1,
                ..Default::default()
            },
            ..options(1)
        };
        let (engine, report) = Engine::open(little, home.clone(), env).expect("opens");
        assert_eq!(report.checkpoint_pages, 0, "nothing is read");
        assert_eq!(report.tails_kept, 3, "chunks with rows in the log");
        let counts = engine.chunk_counts();
        assert_eq!((counts.all, counts.present), (313, 0));
        // What comes in the background leaves room.
        engine.bring_all(|| true).expect("can be read");
        let counts = engine.chunk_counts();
        assert!(
            counts.present > 3 && counts.present < counts.all,
            "{counts:?}"
        );
        let evictor = Evictor::start(&engine, false).expect("starts");
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let table = engine.table(TABLES[0]).expect("there");
        let rows: Rows = (0..20_000)
            .map(|rid| {
                let bytes = loop {
                    let absent = {
                        let guard = Guard::pin();
                        match txn.read(&table, Rid(rid), &guard) {
                            Ok(row) => break row.expect("a row").bytes.bytes().to_vec(),
                            Err(absent) => absent,
                        }
                    };
                    block_on(absent.wait(&mut txn)).expect("it comes");
                };
                ((TABLES[0], Rid(rid)), bytes)
            })
            .collect();
        assert!(rows == before, "what was there before");
        drop(txn);
        drop(evictor);
    }
}

/// A start does not read pages, so a damaged one does not stop it. Whoever needs it is told what is damaged; everything
/// else is served, and nothing is changed by that.
#[test]
fn a_damaged_page_is_told_to_who_needs_it() {
    const CHUNK: u64 = 64;
    let place = Place::new();
    place.fill(TABLES[0], 180);
    place.checkpoint();
    let objects = place.home.objects.list_objects().expect("listed");
    let largest = objects
        .iter()
        .max_by_key(|info| info.size_bytes)
        .expect("some");
    let mut bytes = vec![0; largest.size_bytes as usize];
    place
        .home
        .objects
        .read_object(largest.id, 0, &mut bytes)
        .expect("read");
    let id = largest.id;
    let mut damaged = bytes.clone();
    // In the first of three pages.
    damaged[bytes.len() / 8] ^= 0x40;
    let Place {
        memory,
        home,
        engine,
        worker,
    } = place;
    drop((engine, worker));
    memory.crash();
    for there in [&damaged, &bytes] {
        memory.crash();
        home.objects.remove_object(id).expect("removed");
        home.objects.put_object(id, there).expect("stored");
        let (env, _) = Env::simulated(1);
        let (engine, _) = Engine::open(options(1), home.clone(), env).expect("opens");
        let table = engine.table(TABLES[0]).expect("there");
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let mut outcomes = Vec::new();
        for rid in [5, CHUNK + 5, 2 * CHUNK + 5] {
            let absent = {
                let guard = Guard::pin();
                txn.read(&table, Rid(rid), &guard)
                    .map(|_| ())
                    .expect_err("nothing is read at the start")
            };
            outcomes.push(block_on(absent.wait(&mut txn)));
        }
        let sound = there == &bytes;
        match &outcomes[0] {
            Ok(()) => assert!(sound),
            Err(FaultError::Damaged(what)) => {
                assert!(!sound, "{what}");
                for part in [
                    id.to_string(),
                    format!("table {}", TABLES[0]),
                    "chunk 0".to_owned(),
                    "offset".to_owned(),
                ] {
                    assert!(what.contains(&part), "{part} in {what}");
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(outcomes[1..], [Ok(()), Ok(())]);
        let guard = Guard::pin();
        for (rid, there) in [(5, sound), (CHUNK + 5, true), (2 * CHUNK + 5, true)] {
            let found = txn.read(&table, Rid(rid), &guard).map(|row| row.is_some());
            assert_eq!(found.ok(), there.then_some(true), "row {rid}");
        }
        drop(guard);
        if !sound {
            // Whatever wants to write goes on, in chunks that are sound.
            for n in 0..3 {
                let inserted = txn.insert(&table, &row(n, 20));
                assert!(inserted.is_ok(), "{inserted:?}");
            }
        }
        txn.abort();
    }
}

/// The thread takes checkpoints by itself, tells of each, and ends when the log has failed.
#[test]
fn the_thread_takes_checkpoints_until_the_log_fails() {
    let place = Place::new();
    place.fill(TABLES[0], 10);
    place.flush();
    let (tell, told) = std::sync::mpsc::channel();
    let listener = move |taken: &Result<CheckpointReport, CheckpointError>| {
        let told = taken.as_ref().map(|report| report.written);
        let _nobody_hears = tell.send(told.map_err(CheckpointError::is_final));
    };
    let often = Some(std::time::Duration::from_millis(1));
    let thread = Checkpointer::start(&place.engine, often, Box::new(listener)).expect("starts");
    assert_eq!(told.recv(), Ok(Ok(true)));
    assert_eq!(told.recv(), Ok(Ok(false)), "nothing has changed");
    place.insert(TABLES[0], &row(1, 1));
    while told.recv() != Ok(Ok(true)) {}
    thread.set_interval(None);
    place.memory.set_failing(true);
    place.insert(TABLES[0], &row(1, 1));
    assert!(block_on(place.engine.flush_all_and_wait()).is_err());
    thread.ask();
    let last = told.iter().last();
    assert_eq!(last, Some(Err(true)), "its listener is gone with it");
    drop(thread);
}
