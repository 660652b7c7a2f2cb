//! Indexes in checkpoints: what comes back of them after a crash, with the log behind it (T11); which ones do not; what
//! a start reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use logstead_engine::{
    Checkpoint, Engine, EngineOptions, ExpectPresent, FaultError, Guard, Index, IndexCursor,
    Isolation, KeyExtractor, KeyKind, LogHome, MemoryHome, PageFault, RecoveryReport,
    RestoredIndex, Rid, RowBuilder, RowRef, ScanCursor, Table, Txn, VersionId, Worker, WriteError,
};
use logstead_env::Env;
use logstead_types::{IndexId, TableId, WorkerId};

use crate::world::{block_on, commit, number};

pub(crate) const TABLE: TableId = TableId(30_000);
pub(crate) const UNIQUE: IndexId = IndexId(30_001);
pub(crate) const PLAIN: IndexId = IndexId(30_002);
const LONG: IndexId = IndexId(30_003);
const PARTIAL: IndexId = IndexId(30_004);

/// Random numbers of one seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % sides
    }
}

/// A key of one column and much filling: few entries fill a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Padded {
    pub(crate) column: usize,
    before: usize,
    behind: usize,
    partial: bool,
    keys: u64,
}

impl KeyExtractor for Padded {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        let Some(bytes) = row.column(self.column) else {
            return KeyKind::Absent;
        };
        if self.partial && bytes[7] % 3 != 0 {
            return KeyKind::Absent;
        }
        if self.before > 0 {
            // Entries of one of seven kinds begin with the same long text.
            out.extend(std::iter::repeat_n(bytes[7] % 7, self.before));
        }
        out.extend_from_slice(bytes);
        out.extend(std::iter::repeat_n(bytes[7], self.behind));
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn columns(&self) -> Option<&[usize]> {
        Some(std::slice::from_ref(&self.column))
    }
}

pub(crate) const KINDS: [(IndexId, bool, Padded); 4] = {
    let padded = Padded {
        column: 0,
        before: 0,
        behind: 380,
        partial: false,
        keys: 7,
    };
    [
        (UNIQUE, true, padded),
        (
            PLAIN,
            false,
            Padded {
                column: 1,
                ..padded
            },
        ),
        // Its fences are longer than those of tiles may be.
        (
            LONG,
            false,
            Padded {
                before: 2_500,
                behind: 0,
                column: 1,
                ..padded
            },
        ),
        (
            PARTIAL,
            true,
            Padded {
                partial: true,
                ..padded
            },
        ),
    ]
};

pub(crate) struct Place {
    pub(crate) memory: MemoryHome,
    pub(crate) home: LogHome,
    pub(crate) engine: Engine,
    pub(crate) worker: Worker,
    pub(crate) table: Arc<Table>,
    /// How many were not built from rows.
    pub(crate) restored: usize,
    pub(crate) report: RecoveryReport,
}

fn open(home: &LogHome) -> (Engine, RecoveryReport) {
    let (env, _) = Env::simulated(1);
    let options = EngineOptions {
        workers: 1,
        fault_threads: 0,
        ..EngineOptions::default()
    };
    Engine::open(options, home.clone(), env).expect("opens")
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::with(&KINDS)
    }

    pub(crate) fn with(kinds: &[(IndexId, bool, Padded)]) -> Place {
        let memory = MemoryHome::new(1 << 20);
        let home = LogHome::from(memory.clone());
        Place::over(memory, home, kinds)
    }

    pub(crate) fn over(
        memory: MemoryHome,
        home: LogHome,
        kinds: &[(IndexId, bool, Padded)],
    ) -> Place {
        let (engine, report) = open(&home);
        let table = engine.create_table(TABLE);
        let worker = engine.worker(WorkerId(0));
        let mut place = Place {
            memory,
            home,
            engine,
            worker,
            table,
            restored: 0,
            report,
        };
        for kind in kinds {
            place.restored += usize::from(place.bring(kind));
        }
        place.engine.finish_startup();
        place
    }

    /// An index as a start makes it. True if no rows were looked at.
    fn bring(&self, (id, unique, padded): &(IndexId, bool, Padded)) -> bool {
        let keys = Arc::new(*padded);
        let restored = self
            .engine
            .restore_index(&self.table, *id, *unique, keys.clone());
        match restored.expect("read") {
            RestoredIndex::Restored(_) => return true,
            RestoredIndex::NotStored => {}
            RestoredIndex::Damaged(what) => panic!("{what}"),
        }
        let index = self.engine.create_index(&self.table, *id, *unique, keys);
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        txn.build_index(&self.table, &index).expect("built");
        false
    }

    pub(crate) fn stop(self) -> (MemoryHome, LogHome) {
        let Place {
            memory,
            home,
            engine,
            worker,
            ..
        } = self;
        drop((engine, worker, self.table));
        memory.crash();
        (memory, home)
    }

    pub(crate) fn restarted(self) -> Place {
        let (memory, home) = self.stop();
        Place::over(memory, home, &KINDS)
    }

    pub(crate) fn flush(&self) {
        block_on(self.engine.flush_all_and_wait()).expect("flushed");
    }

    pub(crate) fn index(&self, id: IndexId) -> Arc<Index> {
        self.table.index(id).expect("there")
    }

    pub(crate) fn begin(&self) -> Txn {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        txn
    }

    /// Every row is found through every index, in its order and once; nothing else is.
    pub(crate) fn verify(&self, model: &Model) {
        self.verify_kinds(model, &KINDS);
    }

    pub(crate) fn verify_kinds(&self, model: &Model, kinds: &[(IndexId, bool, Padded)]) {
        let mut txn = self.begin();
        let mut rows = Model::new();
        {
            let mut scan = ScanCursor::new(&self.table);
            loop {
                let next = {
                    let guard = Guard::pin();
                    let next = txn.scan_next(&mut scan, &guard);
                    next.map(|row| row.map(|row| (row.rid, values(row.bytes))))
                };
                match next {
                    Ok(Some((rid, values))) => rows.insert(rid, values),
                    Ok(None) => break,
                    Err(absent) => {
                        block_on(absent.wait(&mut txn)).expect("brought in");
                        None
                    }
                };
            }
        }
        assert_eq!(&rows, model);
        for (id, _, padded) in kinds {
            let index = self.index(*id);
            let mut expected: Vec<(Vec<u8>, Rid)> = Vec::new();
            for (rid, (k, v)) in model {
                let mut key = Vec::new();
                if padded.key(RowRef::new(&row(*k, *v)), &mut key).has_entry() {
                    expected.push((key, *rid));
                }
            }
            expected.sort();
            let expected: Vec<Rid> = expected.into_iter().map(|(_, rid)| rid).collect();
            let mut found = Vec::new();
            let mut cursor = IndexCursor::new(&index, Bound::Unbounded, Bound::Unbounded, false);
            loop {
                let next = {
                    let guard = Guard::pin();
                    let next = txn.index_next(&mut cursor, &guard);
                    next.map(|row| row.map(|row| row.rid))
                };
                match next {
                    Ok(Some(rid)) => found.push(rid),
                    Ok(None) => break,
                    Err(absent) => block_on(absent.wait(&mut txn)).expect("brought in"),
                }
            }
            assert_eq!(found, expected, "index {id}");
            index.check().expect("in order");
        }
    }

    /// Waits for what is absent, and tries again.
    pub(crate) fn retry<T>(
        &self,
        txn: &mut Txn,
        mut attempt: impl FnMut(&mut Txn) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        loop {
            match attempt(txn) {
                Err(WriteError::Absent(absent)) => {
                    block_on(absent.wait(txn)).expect("brought in");
                }
                other => return other,
            }
        }
    }

    pub(crate) fn version(&self, txn: &mut Txn, rid: Rid) -> VersionId {
        loop {
            let absent = {
                let guard = Guard::pin();
                match txn.read(&self.table, rid, &guard) {
                    Ok(row) => break row.expect("there").version,
                    Err(absent) => absent,
                }
            };
            block_on(absent.wait(txn)).expect("brought in");
        }
    }

    /// A transaction of a few random changes.
    pub(crate) fn step(&self, dice: &mut Dice, model: &mut Model) {
        let mut txn = self.begin();
        let mut own = model.clone();
        for _ in 0..1 + dice.roll(6) {
            txn.begin_statement();
            let (k, v) = (dice.roll(KEYS) as i64, dice.roll(50) as i64);
            let taken = own.values().any(|(other, _)| *other == k);
            let victim = own.keys().nth(dice.roll(own.len().max(1) as u64) as usize);
            match (victim.copied(), dice.roll(4)) {
                (Some(rid), change @ (0..=2)) => {
                    let old = own[&rid];
                    let version = self.version(&mut txn, rid);
                    if change == 2 {
                        self.retry(&mut txn, |txn| txn.delete(&self.table, rid, version))
                            .expect("deleted");
                        own.remove(&rid);
                        continue;
                    }
                    let k = if change == 0 { old.0 } else { k };
                    let done = self.retry(&mut txn, |txn| {
                        txn.update(&self.table, rid, version, &row(k, v))
                    });
                    match done {
                        Ok(()) => {
                            assert!(k == old.0 || !taken, "two rows with key {k}");
                            own.insert(rid, (k, v));
                        }
                        Err(WriteError::Unique { .. }) => {
                            assert!(k != old.0 && taken, "key {k} is free");
                            txn.abort();
                            return;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                _ => {
                    let done = self.retry(&mut txn, |txn| txn.insert(&self.table, &row(k, v)));
                    match done {
                        Ok(rid) => {
                            assert!(!taken, "two rows with key {k}");
                            own.insert(rid, (k, v));
                        }
                        Err(WriteError::Unique { .. }) => {
                            assert!(taken, "key {k} is free");
                            txn.abort();
                            return;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        if dice.roll(8) == 0 {
            txn.abort();
            return;
        }
        commit(txn);
        *model = own;
        if dice.roll(4) == 0 {
            self.flush();
            while self.worker.collect_garbage(64) {}
        }
    }
}

/// Keys that rows may have: few enough to meet one that is taken now and then.
const KEYS: u64 = 900;

pub(crate) type Model = BTreeMap<Rid, (i64, i64)>;

pub(crate) fn row(k: i64, v: i64) -> Vec<u8> {
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&number(k)));
    row.push(Some(&number(v)));
    row.finish().to_vec()
}

pub(crate) fn values(row: RowRef<'_>) -> (i64, i64) {
    let value = |at| {
        let bytes: [u8; 8] = row.column(at).expect("there").try_into().expect("eight");
        (u64::from_be_bytes(bytes) ^ (1 << 63)) as i64
    };
    (value(0), value(1))
}

/// T11: checkpoints that walk among splits, merges, evictions, rolled back and collected work, with crashes in between.
/// After each every row has its entry in every index, and the unique ones still refuse keys that are taken.
#[test]
fn t11_every_row_is_in_every_index_after_any_crash() {
    let (mut restored, mut evicted, mut published, mut tiles) = (0, 0, 0, 0);
    for seed in 0..10 {
        let mut dice = Dice(seed);
        let mut place = Place::new();
        let mut model = Model::new();
        for life in 0..5 {
            for _ in 0..2 + dice.roll(3) {
                // More rows at first, fewer later.
                for _ in 0..dice.roll(60) {
                    place.step(&mut dice, &mut model);
                }
                place.flush();
                let mut checkpoint: Checkpoint = place.engine.begin_checkpoint().expect("begun");
                for _ in 0..dice.roll(4) {
                    place.step(&mut dice, &mut model);
                }
                place.flush();
                let full = dice.roll(6) == 0;
                place.memory.set_disk_full(full);
                let taken = loop {
                    match checkpoint.walk(1 + dice.roll(6) as usize) {
                        Ok(false) => break checkpoint.publish(),
                        Ok(true) if dice.roll(60) == 0 => {
                            break Err(logstead_engine::CheckpointError::Stopped);
                        }
                        Ok(true) => {}
                        Err(error) => break Err(error),
                    }
                    if dice.roll(2) == 0 && !full {
                        place.step(&mut dice, &mut model);
                    }
                };
                place.memory.set_disk_full(false);
                if let Ok(report) = &taken {
                    published += 1;
                    tiles += report.tiles;
                }
                if dice.roll(2) == 0 {
                    for (id, _, _) in &KINDS {
                        evicted += place.index(*id).evict_all_leaves();
                    }
                }
                for _ in 0..dice.roll(20) {
                    place.step(&mut dice, &mut model);
                }
            }
            place.flush();
            if dice.roll(3) == 0 {
                place.verify(&model);
            }
            let open = dice.roll(3) == 0;
            let unfinished = open.then(|| place.engine.begin_checkpoint().expect("begun"));
            drop(unfinished);
            place = place.restarted();
            restored += place.restored;
            place.verify(&model);
            // Nothing that is taken can be taken again, and what is free can be.
            let mut txn = place.begin();
            let taken: Vec<i64> = model.values().map(|(k, _)| *k).collect();
            for k in taken.iter().copied().step_by(7) {
                txn.begin_statement();
                let done = place.retry(&mut txn, |txn| txn.insert(&place.table, &row(k, 1)));
                assert!(
                    matches!(done, Err(WriteError::Unique { .. })),
                    "seed {seed} life {life} key {k}: {done:?}"
                );
            }
            let free = (0..KEYS as i64).find(|k| !taken.contains(k)).expect("one");
            place
                .retry(&mut txn, |txn| txn.insert(&place.table, &row(free, 1)))
                .expect("free");
            txn.abort();
        }
    }
    assert!(
        restored > 40 && evicted > 200 && published > 40 && tiles > 1_000,
        "restored {restored}, evicted {evicted}, published {published}, tiles {tiles}"
    );
}

/// Rows with keys from `from` to below `to`.
pub(crate) fn fill(place: &Place, from: i64, to: i64) -> Model {
    let mut model = Model::new();
    let mut txn = place.begin();
    for k in from..to {
        let done = place.retry(&mut txn, |txn| txn.insert(&place.table, &row(k, k % 50)));
        model.insert(done.expect("inserted"), (k, k % 50));
    }
    commit(txn);
    place.flush();
    model
}

fn restore(place: &Place, (id, unique, padded): (IndexId, bool, Padded)) -> RestoredIndex {
    place
        .engine
        .restore_index(&place.table, id, unique, Arc::new(padded))
        .expect("read")
}

/// What is not in the checkpoint as it is now wanted, or was not complete there, is not restored.
#[test]
fn only_indexes_that_the_checkpoint_has_whole_are_restored() {
    let place = Place::new();
    fill(&place, 0, 200);
    // One that is being built, one that is dropped.
    let half = IndexId(30_009);
    let (_, _, padded) = KINDS[1];
    let built = place
        .engine
        .create_index(&place.table, half, false, Arc::new(padded));
    let mut txn = place.begin();
    let mut next = 0;
    let more = txn.build_index_step(&place.table, &built, &mut next, 10);
    assert!(more.expect("a step"));
    txn.abort();
    place.engine.drop_index(&place.table, PARTIAL);
    place.engine.checkpoint().expect("taken");
    // A life of its own publishes nothing that it could restore.
    assert!(matches!(
        restore(&place, KINDS[0]),
        RestoredIndex::NotStored
    ));
    let (memory, home) = place.stop();
    let place = Place::over(memory, home, &[]);
    // The start is through.
    assert!(matches!(
        restore(&place, KINDS[0]),
        RestoredIndex::NotStored
    ));
    let (memory, home) = place.stop();
    let (engine, report) = open(&home);
    let place = Place {
        table: engine.create_table(TABLE),
        worker: engine.worker(WorkerId(0)),
        engine,
        memory,
        home,
        restored: 0,
        report,
    };
    let other_keys = Padded { keys: 8, ..padded };
    for kind in [
        (half, false, padded),
        KINDS[3],
        (PLAIN, false, other_keys),
        (IndexId(1), false, padded),
    ] {
        assert!(matches!(restore(&place, kind), RestoredIndex::NotStored));
    }
    assert!(matches!(
        restore(&place, KINDS[0]),
        RestoredIndex::Restored(_)
    ));
    // What nobody has claimed is not in the next checkpoint.
    place.engine.finish_startup();
    place.engine.checkpoint().expect("taken");
    let place = place.restarted();
    assert_eq!(place.restored, 1);
}

/// A start reads no leaves, nor where they begin, but those that get much of what the tail has inserted.
#[test]
fn a_start_reads_the_leaves_that_the_tail_fills_and_no_others() {
    let mut reads = Vec::new();
    for (rows, more) in [(1_000, 3), (4_000, 3), (4_000, 60)] {
        let place = Place::with(&KINDS[..2]);
        let mut model = fill(&place, 0, rows);
        place.engine.checkpoint().expect("taken");
        model.extend(fill(&place, rows, rows + more));
        let (memory, home) = place.stop();
        let before = memory.object_reads().0;
        let place = Place::over(memory, home, &KINDS[..2]);
        assert_eq!(place.restored, 2);
        reads.push(place.memory.object_reads().0 - before);
        let index = place.index(UNIQUE);
        let here = index.check().expect("in order").leaves;
        if more == 3 {
            assert_eq!((here, index.absent_leaf_count()), (0, 1));
            assert_eq!(index.late_entry_count(), more as usize);
        } else {
            // Ten entries to a leaf: more than one would be when it is loaded.
            assert!(here > 3 && index.late_entry_count() < 12, "{here}");
            assert!(index.absent_leaf_count() < 100);
        }
        place.verify_kinds(&model, &KINDS[..2]);
        assert_eq!(
            (index.absent_leaf_count(), index.late_entry_count()),
            (0, 0)
        );
    }
    assert_eq!(reads[0], reads[1]);
    assert!(reads[2] < reads[1] + 60, "{reads:?}");
}

/// Damage to a leaf: told to who needs it, or at the start, when it is built from rows instead. Never served.
#[test]
fn a_damaged_leaf_is_told_and_never_served() {
    let place = Place::new();
    let model = fill(&place, 0, 600);
    place.engine.checkpoint().expect("taken");
    let before: BTreeSet<_> = ids(&place.home);
    // What comes now are tiles alone, but for a chunk and nodes.
    let table = Arc::clone(&place.table);
    let mut txn = place.begin();
    let first = *model.keys().next().expect("one");
    let guard = Guard::pin();
    let version = txn.read(&table, first, &guard).expect_present();
    let version = version.expect("there").version;
    drop(guard);
    txn.update(&table, first, version, &row(0, 49))
        .expect("updated");
    commit(txn);
    place.flush();
    place.engine.checkpoint().expect("taken");
    let (memory, home) = place.stop();
    let objects: Vec<_> = ids(&home).into_iter().collect();
    assert!(objects.iter().any(|id| !before.contains(id)));
    let (mut told, mut rebuilt, mut fine) = (0, 0, 0);
    for id in objects {
        let size = home.objects.list_objects().expect("listed");
        let size = size.iter().find(|info| info.id == id).expect("there");
        let mut bytes = vec![0; size.size_bytes as usize];
        home.objects.read_object(id, 0, &mut bytes).expect("read");
        for at in (0..bytes.len()).step_by(bytes.len() / 37 + 1) {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            home.objects.remove_object(id).expect("removed");
            home.objects.put_object(id, &bad).expect("stored");
            let (env, _) = Env::simulated(1);
            let options = EngineOptions {
                fault_threads: 0,
                ..EngineOptions::default()
            };
            memory.crash();
            let damaged = id;
            // A damaged record stops the start.
            if let Ok((engine, _)) = Engine::open(options, home.clone(), env) {
                let table = engine.create_table(TABLE);
                let (id, unique, padded) = KINDS[0];
                let restored = engine.restore_index(&table, id, unique, Arc::new(padded));
                match restored.expect("read") {
                    RestoredIndex::Restored(index) => match look_through(&engine, &index) {
                        Ok(found) => {
                            assert_eq!(found, 600);
                            fine += 1;
                        }
                        Err(FaultError::Damaged(what)) => {
                            // A tile, or a page of rows or a node of the directory that is needed by the way.
                            assert!(what.contains(&format!("object {damaged}")), "{what}");
                            told += 1;
                        }
                        Err(other) => panic!("{other}"),
                    },
                    RestoredIndex::Damaged(_) => rebuilt += 1,
                    RestoredIndex::NotStored => panic!("it is stored"),
                }
            }
            home.objects.remove_object(id).expect("removed");
            home.objects.put_object(id, &bytes).expect("stored");
        }
    }
    assert!(
        told > 5 && fine > 5,
        "told {told}, rebuilt {rebuilt}, fine {fine}"
    );
}

fn ids(home: &LogHome) -> BTreeSet<logstead_home::ObjectId> {
    let objects = home.objects.list_objects().expect("listed");
    objects.into_iter().map(|info| info.id).collect()
}

fn look_through(engine: &Engine, index: &Arc<Index>) -> Result<usize, FaultError> {
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut cursor = IndexCursor::new(index, Bound::Unbounded, Bound::Unbounded, false);
    let mut found = 0;
    loop {
        let next: Result<bool, PageFault> = {
            let guard = Guard::pin();
            txn.index_next(&mut cursor, &guard).map(|row| row.is_some())
        };
        match next {
            Ok(true) => found += 1,
            Ok(false) => return Ok(found),
            Err(absent) => block_on(absent.wait(&mut txn))?,
        }
    }
}
