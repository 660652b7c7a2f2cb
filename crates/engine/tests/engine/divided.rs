//! Divided tables and indexes: which instances transactions lead to, that walks over all virtual partitions see what
//! walks over one tree would see, and that partitions outlive a start.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use logstead_engine::{
    CommitError, DistributionKey, Engine, EngineOptions, FlushMode, Guard, Index, IndexCursor,
    IndexId, InstanceId, Isolation, KeyExtractor, KeyKind, LogHome, MemoryHome, PageFault,
    PartitionId, Replica, RestoredIndex, Rid, RowBuilder, RowRef, ScanCursor, Table, TableId, Txn,
    VIRTUAL_PARTITIONS, Worker, WorkerId, WriteError, partition_of,
};
use logstead_env::Env;

use crate::world::{block_on, commit};

mod inside;
mod memory;
mod replicated;

const TABLE: TableId = TableId(20_000);
const SINGLE: TableId = TableId(20_100);
const BY_KEY: IndexId = IndexId(20_001);
const BY_VALUE: IndexId = IndexId(20_002);

/// Rows are (branch, number, value): the key is branch and number, and they are distributed by branch.
pub(crate) fn row(branch: u32, number: u32, value: u64) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 3);
    builder.push(Some(&branch.to_be_bytes()));
    builder.push(Some(&number.to_be_bytes()));
    builder.push(Some(&value.to_be_bytes()));
    builder.finish().to_vec()
}

pub(crate) fn values(row: RowRef<'_>) -> (u32, u32, u64) {
    let column = |at| row.column(at).expect("not null");
    (
        u32::from_be_bytes(column(0).try_into().expect("four bytes")),
        u32::from_be_bytes(column(1).try_into().expect("four bytes")),
        u64::from_be_bytes(column(2).try_into().expect("eight bytes")),
    )
}

pub(crate) fn key(branch: u32, number: u32) -> Vec<u8> {
    [branch.to_be_bytes(), number.to_be_bytes()].concat()
}

struct ByBranch;

impl DistributionKey for ByBranch {
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        row.column(0).map(|b| out.extend_from_slice(b)).is_some()
    }
}

/// By branch and number, divided by branch; or by value, not divided.
struct Keys {
    by_value: bool,
}

impl KeyExtractor for Keys {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        let (branch, number, value) = values(row);
        match self.by_value {
            true => out.extend_from_slice(&value.to_be_bytes()),
            false => out.extend_from_slice(&key(branch, number)),
        }
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        if self.by_value { 5 } else { 6 }
    }

    fn columns(&self) -> Option<&[usize]> {
        Some(if self.by_value { &[2] } else { &[0, 1] })
    }

    fn is_divided(&self) -> bool {
        !self.by_value
    }

    fn distribution_prefix(&self, key: &[u8]) -> Option<usize> {
        (!self.by_value && key.len() >= 4).then_some(4)
    }
}

pub(crate) struct Place {
    pub(crate) home: MemoryHome,
    pub(crate) engine: Engine,
    pub(crate) workers: Vec<Worker>,
    pub(crate) table: Arc<Table>,
    pub(crate) by_key: Arc<Index>,
    /// Nothing was made of rows.
    pub(crate) restored: bool,
}

impl Place {
    pub(crate) fn open(home: MemoryHome, instances: usize, absent_one_in: u32) -> Place {
        let options = EngineOptions {
            workers: instances,
            instances,
            absent_one_in,
            fault_threads: 0,
            ..EngineOptions::default()
        };
        let env = Env::simulated(1).0;
        let (engine, _) = Engine::open(options, LogHome::from(home.clone()), env).expect("opens");
        let table = engine.create_table(TABLE);
        table.divide(Arc::new(ByBranch));
        let workers: Vec<Worker> = (0..instances as u16)
            .map(|worker| engine.worker(WorkerId(worker)))
            .collect();
        let keys = Arc::new(Keys { by_value: false });
        let restored = engine.restore_index(&table, BY_KEY, true, keys.clone());
        let restored = matches!(restored, Ok(RestoredIndex::Restored(_)));
        let by_key = engine.create_index(&table, BY_KEY, true, keys);
        if !restored {
            let mut txn = workers[0].begin(Isolation::ReadCommitted);
            patient(&mut txn, |txn| match txn.build_index(&table, &by_key) {
                Err(WriteError::Absent(absent)) => Err(absent),
                built => {
                    built.expect("unique");
                    Ok(())
                }
            });
        }
        engine.finish_startup();
        Place {
            home,
            engine,
            workers,
            table,
            by_key,
            restored,
        }
    }

    pub(crate) fn new(instances: usize) -> Place {
        Place::open(MemoryHome::new(8 << 20), instances, 0)
    }

    /// A start after a crash, with perhaps another number of instances.
    pub(crate) fn restarted(self, instances: usize) -> Place {
        let Place {
            home,
            engine,
            workers,
            table,
            by_key,
            ..
        } = self;
        drop((table, by_key, workers, engine));
        home.crash();
        Place::open(home, instances, 0)
    }

    pub(crate) fn flush(&self) {
        for worker in &self.workers {
            worker.flush(FlushMode::Inline);
        }
    }

    pub(crate) fn insert(&self, txn: &mut Txn, branch: u32, number: u32, value: u64) -> Rid {
        let row = row(branch, number, value);
        patient(txn, |txn| write(txn.insert(&self.table, &row)))
    }

    pub(crate) fn get(&self, txn: &mut Txn, branch: u32, number: u32) -> Option<(Rid, u64)> {
        patient(txn, |txn| {
            let guard = Guard::pin();
            let found = txn.get(&self.by_key, &key(branch, number), &guard)?;
            Ok(found.map(|row| (row.rid, values(row.bytes).2)))
        })
    }

    pub(crate) fn update(&self, txn: &mut Txn, at: (u32, u32), to: (u32, u32, u64)) {
        patient(txn, |txn| {
            let guard = Guard::pin();
            let found = txn.get(&self.by_key, &key(at.0, at.1), &guard)?;
            let found = found.expect("it is there");
            let (rid, version) = (found.rid, found.version);
            write(txn.update(&self.table, rid, version, &row(to.0, to.1, to.2)))
        });
    }

    pub(crate) fn delete(&self, txn: &mut Txn, branch: u32, number: u32) {
        patient(txn, |txn| {
            let guard = Guard::pin();
            let found = txn.get(&self.by_key, &key(branch, number), &guard)?;
            let found = found.expect("it is there");
            let (rid, version) = (found.rid, found.version);
            write(txn.delete(&self.table, rid, version))
        });
    }

    pub(crate) fn cursor(
        &self,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
        reverse: bool,
    ) -> IndexCursor {
        IndexCursor::new(&self.by_key, lower, upper, reverse)
    }

    /// Rows of a range in its order, some of them.
    pub(crate) fn range(
        &self,
        txn: &mut Txn,
        (lower, upper): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        reverse: bool,
        limit: usize,
    ) -> Vec<(u32, u32, u64)> {
        let mut cursor = self.cursor(lower, upper, reverse);
        let mut rows = Vec::new();
        while rows.len() < limit {
            let next = patient(txn, |txn| {
                let guard = Guard::pin();
                let next = txn.index_next(&mut cursor, &guard)?;
                Ok(next.map(|row| values(row.bytes)))
            });
            match next {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        rows
    }

    /// Every row, by scan, sorted.
    pub(crate) fn scan(&self, txn: &mut Txn) -> Vec<(u32, u32, u64)> {
        let mut cursor = ScanCursor::new(&self.table);
        let mut rows = Vec::new();
        while let Some(row) = patient(txn, |txn| {
            let guard = Guard::pin();
            let next = txn.scan_next(&mut cursor, &guard)?;
            Ok(next.map(|row| values(row.bytes)))
        }) {
            rows.push(row);
        }
        rows.sort_unstable();
        rows
    }

    /// A branch whose partition is an instance's.
    pub(crate) fn branch_of(&self, instance: u16, after: u32) -> u32 {
        let instances = self.engine.instances();
        let is_own = |branch: &u32| {
            let partition = partition_of(&branch.to_be_bytes());
            instances.of_partition(partition) == InstanceId(instance)
        };
        (after + 1..).find(is_own).expect("there are many")
    }
}

fn patient<T>(txn: &mut Txn, mut operation: impl FnMut(&mut Txn) -> Result<T, PageFault>) -> T {
    loop {
        match operation(txn) {
            Ok(done) => return done,
            Err(absent) => block_on(absent.wait(txn)).expect("it comes"),
        }
    }
}

fn write<T>(done: Result<T, WriteError>) -> Result<T, PageFault> {
    match done {
        Err(WriteError::Absent(absent)) => Err(absent),
        done => Ok(done.expect("is written")),
    }
}

const ALL: (Bound<Vec<u8>>, Bound<Vec<u8>>) = (Bound::Unbounded, Bound::Unbounded);

/// Who keeps to keys of his instance touches nothing of others, from the insert to the collection of what is deleted.
#[test]
fn transactions_of_one_instance_touch_no_other() {
    let place = Place::new(2);
    for instance in 0..2_u16 {
        let worker = &place.workers[usize::from(instance)];
        let one = place.branch_of(instance, 0);
        let branches = [one, place.branch_of(instance, one)];
        let steps: [&dyn Fn(&mut Txn); 5] = [
            &|txn| {
                for (branch, number) in branches.iter().flat_map(|b| (0..200).map(|n| (*b, n))) {
                    place.insert(txn, branch, number, 1);
                }
            },
            &|txn| {
                assert_eq!(
                    place.get(txn, branches[0], 7).map(|(_, value)| value),
                    Some(1)
                );
                assert_eq!(place.get(txn, branches[0], 700), None);
                place.update(txn, (branches[0], 7), (branches[0], 7, 2));
                place.update(txn, (branches[1], 8), (branches[1], 800, 2));
            },
            &|txn| {
                for reverse in [false, true] {
                    let (from, to) = (key(branches[1], 5), key(branches[1], 90));
                    let bounds = (Bound::Included(from), Bound::Excluded(to));
                    assert_eq!(place.range(txn, bounds, reverse, 1_000).len(), 84);
                    let all = key(branches[0], 0)[..4].to_vec();
                    let bounds = (Bound::Included(all.clone()), Bound::Included(all));
                    assert_eq!(place.range(txn, bounds, reverse, 1_000).len(), 200);
                }
            },
            &|txn| (10..40).for_each(|number| place.delete(txn, branches[0], number)),
            &|txn| {
                place.insert(txn, branches[0], 900, 1);
                let before = txn.savepoint();
                place.insert(txn, branches[0], 901, 1);
                assert!(txn.rollback_to(before));
                place.update(txn, (branches[0], 7), (branches[0], 8_000, 2));
            },
        ];
        for (n, step) in steps.into_iter().enumerate() {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            step(&mut txn);
            let touched = txn.instances_touched();
            assert_eq!(
                (touched.foreign, touched.foreign_most),
                (0, None),
                "step {n}"
            );
            assert!(touched.local > 0, "step {n}");
            match n {
                4 => txn.abort(),
                _ => drop(commit(txn)),
            }
        }
        place.flush();
        while worker.collect_garbage(1_000) {}
    }
    let stats = place.engine.stats();
    assert!(stats.versions_collected > 60, "{stats:?}");
    assert_eq!(stats.foreign_accesses, 0);
    assert_eq!(
        (stats.transactions_inside, stats.transactions_across),
        (10, 0)
    );
}

/// Who leads elsewhere is counted: by the owner of the key's partition, as it is assigned at the time.
#[test]
fn accesses_to_what_others_own_are_counted() {
    let place = Place::new(3);
    let worker = &place.workers[0];
    let branches = [0, 1, 2].map(|instance| place.branch_of(instance, 0));
    let begin = || worker.begin(Isolation::ReadCommitted);
    let mut txn = begin();
    for branch in branches {
        place.insert(&mut txn, branch, 1, 1);
    }
    for number in 2..5 {
        place.insert(&mut txn, branches[2], number, 1);
    }
    let touched = txn.instances_touched();
    // A row and an entry each.
    assert_eq!((touched.local, touched.foreign), (2, 10));
    assert_eq!(touched.foreign_most, Some(InstanceId(2)));
    commit(txn);
    assert_eq!(place.engine.stats().transactions_across, 1);
    assert_eq!(place.engine.stats().foreign_accesses, 10);
    let partition = partition_of(&branches[2].to_be_bytes());
    let instances = place.engine.instances();
    assert_eq!(instances.load_of(partition), 8);

    // The partition is given away.
    instances.assign(partition, InstanceId(0));
    let mut txn = begin();
    assert!(place.get(&mut txn, branches[2], 3).is_some());
    assert_eq!(txn.instances_touched().foreign, 0);
    commit(txn);

    // A walk over all partitions leads to all of them.
    let mut txn = begin();
    assert_eq!(place.range(&mut txn, ALL, false, 100).len(), 6);
    assert!(txn.instances_touched().foreign > 0);
    commit(txn);

    // A table that is not divided is one partition's, and so are the indexes of a divided one that are not.
    let home_of = |table: TableId| {
        let partition = PartitionId((table.0 % u32::from(VIRTUAL_PARTITIONS)) as u16);
        instances.of_partition(partition)
    };
    let single = place.engine.create_table(SINGLE);
    assert!(!single.is_divided() && place.table.is_divided());
    for worker in &place.workers {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        txn.insert(&single, &row(1, 1, 1)).expect("inserts");
        let is_own = home_of(SINGLE) == instances.of_worker(worker.id());
        assert_eq!(txn.instances_touched().foreign == 0, is_own);
        commit(txn);
    }
    let keys = Arc::new(Keys { by_value: true });
    place
        .engine
        .create_index(&place.table, BY_VALUE, false, keys);
    for worker in &place.workers {
        let instance = instances.of_worker(worker.id());
        let branch = place.branch_of(instance.0, 1_000);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        place.insert(&mut txn, branch, 1, 1);
        let foreign = u32::from(home_of(TABLE) != instance);
        assert_eq!(txn.instances_touched().foreign, foreign);
        commit(txn);
    }
}

/// With one instance nothing is counted.
#[test]
fn one_instance_counts_nothing() {
    let place = Place::new(1);
    let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
    place.insert(&mut txn, 1, 1, 1);
    assert_eq!(txn.instances_touched(), Default::default());
    commit(txn);
    let stats = place.engine.stats();
    assert_eq!(
        (stats.transactions_inside, stats.transactions_across),
        (0, 0)
    );
    assert_eq!(place.engine.instances().load_of(PartitionId(0)), 0);
}

/// Random numbers of one seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// A bound of keys: of a whole key, of a branch, of part of one, or none.
    fn bound(&mut self) -> Bound<Vec<u8>> {
        let mut bytes = key(self.roll(24) as u32, self.roll(50) as u32);
        bytes.truncate([8, 8, 4, 4, 6, 3][self.roll(6) as usize]);
        match self.roll(5) {
            0 | 1 => Bound::Included(bytes),
            2 | 3 => Bound::Excluded(bytes),
            _ => Bound::Unbounded,
        }
    }
}

/// Does a key lie within the bounds, which are compared with as many bytes as they have?
fn is_within(key: &[u8], (lower, upper): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(bytes) => key >= &bytes[..] || key.starts_with(bytes),
        Bound::Excluded(bytes) => key > &bytes[..] && !key.starts_with(bytes),
    };
    let below = match upper {
        Bound::Unbounded => true,
        Bound::Included(bytes) => key < &bytes[..] || key.starts_with(bytes),
        Bound::Excluded(bytes) => key < &bytes[..],
    };
    above && below
}

/// Walks over ranges of a divided index see what is in them, in the order of the keys, whatever the bounds fix, while
/// rows come and go, leaves and rows are absent, and keys move to other partitions.
#[test]
fn walks_over_all_partitions_are_in_the_order_of_keys() {
    for seed in 1..9_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let absent_one_in = if seed % 2 == 0 { 13 } else { 0 };
        let mut place = Place::open(MemoryHome::new(8 << 20), 2, absent_one_in);
        let mut model: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for round in 0..6 {
            let worker = &place.workers[round % 2];
            let mut txn = worker.begin(Isolation::ReadCommitted);
            for _ in 0..150 {
                txn.begin_statement();
                let at = (dice.roll(24) as u32, dice.roll(50) as u32);
                let value = dice.roll(1 << 20);
                match model.contains_key(&at) {
                    false => {
                        let row = row(at.0, at.1, value);
                        patient(&mut txn, |txn| write(txn.insert(&place.table, &row)));
                        model.insert(at, value);
                    }
                    true if value.is_multiple_of(3) => {
                        place.delete(&mut txn, at.0, at.1);
                        model.remove(&at);
                    }
                    true => {
                        let to = (dice.roll(24) as u32, dice.roll(50) as u32);
                        let to = if model.contains_key(&to) { at } else { to };
                        place.update(&mut txn, at, (to.0, to.1, value));
                        model.remove(&at);
                        model.insert(to, value);
                    }
                }
            }
            commit(txn);
            place.flush();
            while place
                .workers
                .iter()
                .any(|worker| worker.collect_garbage(500))
            {}
            match dice.roll(3) {
                0 => drop(place.engine.checkpoint().expect("a checkpoint")),
                1 => {
                    place.engine.checkpoint().expect("a checkpoint");
                    place.engine.evict_all();
                    place.by_key.evict_all_leaves();
                }
                _ if absent_one_in == 0 => {
                    place = place.restarted(1 + dice.roll(3) as usize);
                    while place.workers.len() < 2 {
                        place = place.restarted(2);
                    }
                }
                _ => {}
            }
            let mut txn = place.workers[0].begin(Isolation::RepeatableRead);
            let expected: Vec<_> = model.iter().map(|(k, v)| (k.0, k.1, *v)).collect();
            assert_eq!(place.scan(&mut txn), expected, "seed {seed}");
            for _ in 0..12 {
                let bounds = (dice.bound(), dice.bound());
                let (reverse, limit) = (dice.roll(2) == 0, 1 + dice.roll(400) as usize);
                let within = |k: &&(u32, u32)| is_within(&key(k.0, k.1), &bounds);
                let mut expected: Vec<_> = model.keys().filter(within).copied().collect();
                if reverse {
                    expected.reverse();
                }
                expected.truncate(limit);
                let found = place.range(&mut txn, bounds.clone(), reverse, limit);
                let found: Vec<_> = found.iter().map(|row| (row.0, row.1)).collect();
                assert_eq!(
                    found, expected,
                    "seed {seed}, {bounds:?}, {reverse}, {limit}"
                );
            }
            for _ in 0..20 {
                let at = (dice.roll(24) as u32, dice.roll(50) as u32);
                let found = place.get(&mut txn, at.0, at.1).map(|(_, value)| value);
                assert_eq!(found, model.get(&at).copied(), "seed {seed}");
            }
            drop(txn);
            if place.by_key.absent_leaf_count() == 0 {
                place.by_key.check().expect("in order");
            }
        }
    }
}

/// One key, two rows: refused, in whichever partitions the rows lie.
#[test]
fn keys_are_unique_in_a_divided_index() {
    let place = Place::new(2);
    let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
    for branch in 0..40 {
        place.insert(&mut txn, branch, 1, 1);
    }
    commit(txn);
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    for branch in 0..40 {
        let again = txn.insert(&place.table, &row(branch, 1, 2));
        assert!(
            matches!(again, Err(WriteError::Unique { index: BY_KEY, .. })),
            "{branch}"
        );
    }
    // A row moves to another partition: its place stays, its entry goes there, and it is found.
    let (rid, _) = place.get(&mut txn, 3, 1).expect("there");
    place.update(&mut txn, (3, 1), (300, 1, 7));
    txn.begin_statement();
    assert_eq!(place.get(&mut txn, 300, 1), Some((rid, 7)));
    assert_eq!(place.get(&mut txn, 3, 1), None);
    place.insert(&mut txn, 3, 1, 8);
    commit(txn);
    place.flush();
    while place
        .workers
        .iter()
        .any(|worker| worker.collect_garbage(500))
    {}
    assert_eq!(place.by_key.entry_count(), 41);
    place.by_key.check().expect("in order");
}

/// After a start, with whatever number of instances, rows go where their keys say, the stored index is used, and no
/// number is given to two rows.
#[test]
fn partitions_outlive_a_start() {
    let mut place = Place::new(2);
    let mut used: BTreeSet<Rid> = BTreeSet::new();
    for (life, instances) in [2, 3, 1, 2].into_iter().enumerate() {
        for round in 0..2 {
            let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
            for branch in [1, 2, 3] {
                for number in 0..100 {
                    let number = (life as u32 * 2 + round) * 100 + number;
                    let rid = place.insert(&mut txn, branch, number, 1);
                    let partition = partition_of(&branch.to_be_bytes());
                    let chunk = rid.0 / 64 % u64::from(VIRTUAL_PARTITIONS);
                    assert_eq!(chunk, u64::from(partition.0), "life {life}");
                    assert!(used.insert(rid), "{rid} twice");
                }
            }
            commit(txn);
            place.flush();
            if round == 0 {
                place.engine.checkpoint().expect("a checkpoint");
            }
        }
        place = place.restarted(instances);
        assert!(place.restored, "life {life}");
        // Three partitions have rows, and a start makes nothing for the gaps between their chunks.
        let counts = place.engine.chunk_counts();
        assert!(
            counts.all <= used.len() as u64 / 64 + 3,
            "life {life}: {counts:?}"
        );
        let mut txn = place.workers[0].begin(Isolation::RepeatableRead);
        let rows = place.range(&mut txn, ALL, false, usize::MAX);
        assert_eq!(rows.len(), used.len());
        assert_eq!(rows, place.scan(&mut txn));
        place.by_key.check().expect("in order");
    }
}

/// A replica gets rows with their numbers, also while it learns that their table is divided. Whoever takes over the log
/// goes on in the same partitions, and gives no number twice.
#[test]
fn a_replica_has_the_partitions_of_its_primary() {
    let place = Place::new(2);
    let mut used: BTreeSet<Rid> = BTreeSet::new();
    let mut fill = |place: &Place, numbers: std::ops::Range<u32>| {
        let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
        for branch in 1..=3 {
            for number in numbers.clone() {
                let rid = place.insert(&mut txn, branch, number, 1);
                assert!(used.insert(rid), "{rid} twice");
            }
        }
        commit(txn);
        place.flush();
    };
    fill(&place, 0..100);
    place.engine.checkpoint().expect("a checkpoint");
    fill(&place, 100..150);
    let home = LogHome::from(place.home.clone());
    let options = EngineOptions {
        workers: 2,
        instances: 2,
        ..EngineOptions::default()
    };
    let mut replica = Replica::open(options, &home, Env::simulated(2).0).expect("opens");
    let engine = replica.engine().clone();
    let mut follow = |place: &Place| {
        replica.learn(place.engine.epoch(), place.engine.next_csn());
        replica.round(&mut |_| {}).expect("follows");
    };
    follow(&place);
    fill(&place, 150..200);
    let table = engine.create_table(TABLE);
    table.divide(Arc::new(ByBranch));
    follow(&place);
    fill(&place, 200..250);
    follow(&place);
    let session = engine.worker(WorkerId(0));
    let by_key = engine.create_index(&table, BY_KEY, true, Arc::new(Keys { by_value: false }));
    let mut txn = session.begin(Isolation::RepeatableRead);
    patient(&mut txn, |txn| match txn.build_index(&table, &by_key) {
        Err(WriteError::Absent(absent)) => Err(absent),
        built => {
            built.expect("unique");
            Ok(())
        }
    });
    let mut cursor = IndexCursor::new(&by_key, Bound::Unbounded, Bound::Unbounded, false);
    let mut found = Vec::new();
    while let Some((rid, row)) = patient(&mut txn, |txn| {
        let guard = Guard::pin();
        let next = txn.index_next(&mut cursor, &guard)?;
        Ok(next.map(|row| (row.rid, values(row.bytes))))
    }) {
        assert!(used.contains(&rid));
        found.push((row.0, row.1));
    }
    let expected: Vec<_> = (1..=3)
        .flat_map(|b| (0..250).map(move |n| (b, n)))
        .collect();
    assert_eq!(found, expected);
    drop((txn, session, table, by_key, cursor, engine, replica));
    let promoted = place.restarted(2);
    let mut fill = |numbers: std::ops::Range<u32>| {
        let mut txn = promoted.workers[1].begin(Isolation::ReadCommitted);
        for (branch, number) in (1..=3).flat_map(|b| numbers.clone().map(move |n| (b, n))) {
            let rid = promoted.insert(&mut txn, branch, number, 1);
            assert!(used.insert(rid), "{rid} twice");
            let partition = partition_of(&branch.to_be_bytes());
            assert_eq!(
                rid.0 / 64 % u64::from(VIRTUAL_PARTITIONS),
                u64::from(partition.0)
            );
        }
        commit(txn);
    };
    fill(250..300);
}

/// Ends a SERIALIZABLE transaction. False: it could not be serialized.
fn ends(txn: Txn) -> bool {
    match block_on(txn.precommit()) {
        Ok(_) => true,
        Err(CommitError::Serialization) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Two transactions each walk over all partitions and insert. If each comes to what the other has walked, one fails; a
/// row outside of it is no conflict, in whichever partition it lies and however little its neighbours there were
/// looked at.
#[test]
fn serializable_walks_over_all_partitions_cover_what_they_have_seen() {
    // Numbers are walked within branches 10 to 20, or until some rows were seen.
    let between = || (Bound::Included(key(10, 0)), Bound::Included(key(20, 0)));
    let mut conflicts = 0;
    for branch in 0..40_u32 {
        for case in 0..8 {
            let (reverse, a_commits_first) = (case % 2 == 1, case / 2 % 2 == 1);
            let limit = if case < 4 { usize::MAX } else { 3 };
            let place = Place::new(1);
            let worker = &place.workers[0];
            let begin = || worker.begin(Isolation::Serializable);
            let mut setup = begin();
            for branch in 0..40 {
                place.insert(&mut setup, branch, 0, 1);
            }
            assert!(ends(setup));
            let (mut a, mut b) = (begin(), begin());
            let seen = place.range(&mut a, between(), reverse, limit);
            // The other has read what this one writes.
            assert!(place.get(&mut b, 100, 0).is_none());
            place.insert(&mut a, 100, 0, 1);
            place.insert(&mut b, branch, 5, 1);
            let inserted = key(branch, 5);
            let (first, last) = (seen[0], seen[seen.len() - 1]);
            let is_seen = match (limit, reverse) {
                (usize::MAX, _) => is_within(&inserted, &between()),
                (_, false) => inserted >= key(10, 0) && inserted <= key(last.0, last.1),
                (_, true) => inserted >= key(last.0, last.1) && inserted <= key(first.0, first.1),
            };
            let (first, second) = if a_commits_first { (a, b) } else { (b, a) };
            assert!(ends(first));
            assert_eq!(!ends(second), is_seen, "{branch}, {case}");
            conflicts += usize::from(is_seen);
        }
    }
    assert_eq!(conflicts, 2 * (10 + 10 + 2 + 2));
}
