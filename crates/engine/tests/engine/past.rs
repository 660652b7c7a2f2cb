//! Reads of the past: that they show what was there then, whatever has become of it since; what they hold, and for how
//! long.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use logstead_engine::{
    AsOfDatabase, Engine, EngineOptions, Evictor, Guard, Index, IndexCursor, Isolation,
    KeyExtractor, KeyKind, LogHome, MemoryHome, PageFault, RecoveryTarget, Retention, Rid,
    RowBuilder, RowLock, RowRef, ScanCursor, Table, Txn, Worker, WriteError,
};
use logstead_env::{Clock, Env, SimClock};
use logstead_home::ObjectId;
use logstead_types::{IndexId, TableId, WorkerId};

use crate::eviction::wait;
use crate::world::{Column, balance, column, commit, key, number, row};

const TABLE: TableId = TableId(20_000);
const OTHER: TableId = TableId(20_010);
const BY_KEY: IndexId = IndexId(20_001);
const BY_BALANCE: IndexId = IndexId(20_002);

struct Place {
    memory: MemoryHome,
    clock: Arc<SimClock>,
    engine: Engine,
    worker: Worker,
    table: Arc<Table>,
}

fn open(memory: &MemoryHome, clock: &Arc<SimClock>, memory_bytes: u64) -> Engine {
    let (mut env, _) = Env::simulated(1);
    env.clock = Arc::clone(clock) as Arc<dyn Clock>;
    let options = EngineOptions {
        memory_bytes,
        ..EngineOptions::default()
    };
    let home = LogHome::from(memory.clone());
    Engine::open(options, home, env).expect("opens").0
}

impl Place {
    fn new() -> Place {
        Place::with(
            &MemoryHome::new(8 << 20),
            &Arc::new(SimClock::new()),
            u64::MAX,
        )
    }

    fn with(memory: &MemoryHome, clock: &Arc<SimClock>, memory_bytes: u64) -> Place {
        let engine = open(memory, clock, memory_bytes);
        let table = engine.create_table(TABLE);
        let worker = engine.worker(WorkerId(0));
        for (id, unique, at) in [(BY_KEY, true, 0), (BY_BALANCE, false, 1)] {
            let index = engine.create_index(&table, id, unique, Arc::new(Column(at)));
            let mut txn = worker.begin(Isolation::ReadCommitted);
            txn.use_memory_reserve();
            loop {
                match txn.build_index(&table, &index) {
                    Ok(_) => break,
                    Err(WriteError::Absent(absent)) => wait(&mut txn, absent),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        engine.finish_startup();
        Place {
            memory: memory.clone(),
            clock: Arc::clone(clock),
            engine,
            worker,
            table,
        }
    }

    fn restarted(self) -> Place {
        let (memory, clock) = (self.memory.clone(), Arc::clone(&self.clock));
        drop(self);
        memory.crash();
        Place::with(&memory, &clock, u64::MAX)
    }

    fn begin(&self) -> Txn {
        self.worker.begin(Isolation::ReadCommitted)
    }

    fn insert(&self, table: &Arc<Table>, keys: std::ops::Range<i64>, balance: i64) {
        let mut txn = self.begin();
        for key in keys {
            write(&mut txn, |txn| txn.insert(table, &row(key, balance)));
        }
        commit(txn);
    }

    fn change(&self, rid: u64, new: Option<i64>) {
        let mut txn = self.begin();
        let (version, key) = patient(&mut txn, |txn| {
            let guard = Guard::pin();
            let found = txn.read(&self.table, Rid(rid), &guard)?.expect("a row");
            Ok((found.version, column(&found, 0)))
        });
        write(&mut txn, |txn| match new {
            Some(new) => txn.update(&self.table, Rid(rid), version, &row(key, new)),
            None => txn.delete(&self.table, Rid(rid), version),
        });
        commit(txn);
    }

    fn checkpoint(&self) {
        self.engine.checkpoint().expect("a checkpoint");
    }

    fn past(&self, which: &RecoveryTarget) -> Option<Arc<AsOfDatabase>> {
        let past = self.engine.past(which)?;
        let mut txn = self.begin();
        patient(&mut txn, |_| past.opened());
        Some(past)
    }

    fn named(&self, name: &str) -> Option<Arc<AsOfDatabase>> {
        self.past(&RecoveryTarget::Named(name.to_owned()))
    }

    /// Every row of a table, key and balance.
    fn rows(&self, table: &Arc<Table>) -> BTreeMap<i64, i64> {
        let (mut rows, mut txn) = (BTreeMap::new(), self.begin());
        let mut cursor = ScanCursor::new(table);
        loop {
            let next = patient(&mut txn, |txn| {
                let guard = Guard::pin();
                let next = txn.scan_next(&mut cursor, &guard)?;
                Ok(next.map(|row| (column(&row, 0), balance(&row))))
            });
            match next {
                Some((key, balance)) => assert_eq!(rows.insert(key, balance), None),
                None => return rows,
            }
        }
    }

    /// The same by an index of the past.
    fn rows_by(&self, past: &Arc<AsOfDatabase>, id: IndexId) -> BTreeMap<i64, i64> {
        let (mut rows, mut txn) = (BTreeMap::new(), self.begin());
        let index = self.index(past, id);
        let mut cursor = IndexCursor::new(&index, Bound::Unbounded, Bound::Unbounded, false);
        loop {
            let next = patient(&mut txn, |txn| {
                let guard = Guard::pin();
                let next = txn.index_next(&mut cursor, &guard)?;
                Ok(next.map(|row| (column(&row, 0), balance(&row))))
            });
            match next {
                Some((key, balance)) => assert_eq!(rows.insert(key, balance), None),
                None => return rows,
            }
        }
    }

    fn index(&self, past: &Arc<AsOfDatabase>, id: IndexId) -> Arc<Index> {
        let (at, unique) = if id == BY_KEY { (0, true) } else { (1, false) };
        assert!(past.define_index(TABLE, id, unique, Arc::new(Column(at))));
        patient(&mut self.begin(), |_| past.indexed(TABLE));
        let table = past.table(TABLE).expect("it was there");
        table.index(id).expect("it was there")
    }

    fn objects(&self) -> BTreeSet<ObjectId> {
        let listed = self.engine.home().objects.list_objects().expect("listed");
        listed.into_iter().map(|info| info.id).collect()
    }

    fn evict(&self) -> u64 {
        assert!(self.engine.open_pasts() > 0);
        self.engine.evict_all()
    }
}

fn patient<T>(txn: &mut Txn, mut operation: impl FnMut(&mut Txn) -> Result<T, PageFault>) -> T {
    loop {
        match operation(txn) {
            Ok(done) => return done,
            Err(absent) => wait(txn, absent),
        }
    }
}

fn write<T>(txn: &mut Txn, mut write: impl FnMut(&mut Txn) -> Result<T, WriteError>) -> T {
    loop {
        match write(txn) {
            Ok(done) => return done,
            Err(WriteError::Absent(absent)) => wait(txn, absent),
            Err(error) => panic!("{error}"),
        }
    }
}

fn all(keys: std::ops::Range<i64>, balance: i64) -> BTreeMap<i64, i64> {
    keys.map(|key| (key, balance)).collect()
}

#[test]
fn the_past_is_as_it_was() {
    let place = Place::new();
    place.insert(&place.table, 0..3000, 100);
    let other = place.engine.create_table(OTHER);
    place.insert(&other, 0..10, 1);
    place.engine.create_restore_point("then").expect("made");
    // Everything that can become of a row: changed, deleted, its number used again, new ones behind it.
    for rid in 0..50 {
        place.change(rid, Some(200));
    }
    for rid in 50..100 {
        place.change(rid, None);
    }
    while place.worker.collect_garbage(1000) {}
    place.insert(&place.table, 5000..6000, 7);
    place.engine.drop_table(OTHER);
    place.engine.create_table(TableId(20_020));
    place.checkpoint();
    let past = place.named("then").expect("it was made");
    assert_eq!(past.names(), ["then"]);
    let then = past.table(TABLE).expect("it was there");
    assert!(past.table(TableId(20_020)).is_none(), "it was not there");
    let expected = all(0..3000, 100);
    let loaded = || place.engine.eviction_stats().chunks_loaded;
    let before = loaded();
    assert_eq!(place.rows(&then), expected);
    assert!(loaded() > before, "it was read");
    let before = loaded();
    assert_eq!(place.rows(&then), expected);
    assert_eq!(loaded(), before, "it is in memory");
    assert_eq!(
        place.rows(&past.table(OTHER).expect("there")),
        all(0..10, 1)
    );
    assert_eq!(place.rows_by(&past, BY_KEY), expected);
    assert_eq!(place.rows_by(&past, BY_BALANCE), expected);
    // What follows in the present does not touch it, also when it has to be read again.
    for round in 0..5 {
        for rid in 100..150 {
            place.change(rid, Some(round));
        }
        place.checkpoint();
        assert!(place.evict() > 0);
        for index in [BY_KEY, BY_BALANCE] {
            place.index(&past, index).evict_all_leaves();
            assert!(place.index(&past, index).absent_leaf_count() > 0);
        }
        assert_eq!(place.rows(&then), expected);
        assert_eq!(place.rows_by(&past, BY_KEY), expected);
        assert_eq!(place.rows_by(&past, BY_BALANCE), expected);
    }
    let now = place.rows(&place.table);
    assert_eq!(now.len(), 3000 - 50 + 1000);
    assert_eq!(now[&120], 4);
    // A single row by its key, and one that is not there yet.
    let index = place.index(&past, BY_KEY);
    let get = |wanted| {
        patient(&mut place.begin(), |txn| {
            let guard = Guard::pin();
            Ok(txn
                .get(&index, &key(wanted), &guard)?
                .map(|row| balance(&row)))
        })
    };
    assert_eq!(get(120), Some(100));
    assert_eq!(get(70), Some(100));
    assert_eq!(get(5000), None);
}

#[test]
fn nobody_changes_the_past() {
    let place = Place::new();
    place.insert(&place.table, 0..100, 100);
    place.checkpoint();
    let past = place.past(&RecoveryTarget::Newest).expect("there");
    let then = past.table(TABLE).expect("there");
    let mut txn = place.begin();
    let version = patient(&mut txn, |txn| {
        let guard = Guard::pin();
        Ok(txn.read(&then, Rid(5), &guard)?.expect("a row").version)
    });
    let refused = |outcome: Result<(), WriteError>| {
        assert!(matches!(outcome, Err(WriteError::Past)), "{outcome:?}");
    };
    refused(txn.insert(&then, &row(1000, 1)).map(drop));
    refused(txn.update(&then, Rid(5), version, &row(5, 1)));
    refused(txn.delete(&then, Rid(5), version));
    refused(txn.lock_row(&then, Rid(5), version, RowLock::KeyShare));
    refused(txn.lock_row(&then, Rid(5), version, RowLock::Update));
    commit(txn);
    assert_eq!(place.rows(&then), all(0..100, 100));
    // Nor does a checkpoint know it: the next one has the present alone.
    place.change(5, Some(7));
    place.checkpoint();
    let newest = place.past(&RecoveryTarget::Newest).expect("there");
    assert!(!Arc::ptr_eq(&past, &newest));
    assert_eq!(place.rows(&newest.table(TABLE).expect("there"))[&5], 7);
}

/// Keys as they are made today, but not as they were.
struct Otherwise;

impl KeyExtractor for Otherwise {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        Column(0).key(row, out)
    }

    fn keys(&self) -> u64 {
        2
    }
}

#[test]
fn an_index_that_was_not_there_is_not_there() {
    let place = Place::new();
    place.insert(&place.table, 0..100, 100);
    place.checkpoint();
    let past = place.past(&RecoveryTarget::Newest).expect("there");
    let keys = || Arc::new(Column(0));
    assert!(!past.define_index(TABLE, IndexId(20_003), true, keys()));
    assert!(!past.define_index(OTHER, BY_KEY, true, keys()));
    assert!(!past.define_index(TABLE, BY_KEY, true, Arc::new(Otherwise)));
    assert!(past.indexed(TABLE).is_ok(), "there is none to be attached");
    assert!(past.define_index(TABLE, BY_KEY, true, keys()));
    assert!(past.indexed(TABLE).is_err(), "it is to be read first");
    place.index(&past, BY_KEY);
    // Once it is attached it is the one there is.
    assert!(past.define_index(TABLE, BY_KEY, true, keys()));
    assert!(past.indexed(TABLE).is_ok());
}

/// Checkpoints that are not kept by anything else stay while they are read, and go when nobody has done so for a
/// minute.
#[test]
fn what_is_read_stays_and_then_goes() {
    let place = Place::new();
    place.insert(&place.table, 0..2000, 100);
    place.checkpoint();
    let past = place.past(&RecoveryTarget::Newest).expect("there");
    let time = RecoveryTarget::At(past.taken_at_micros());
    let then = past.table(TABLE).expect("there");
    assert_eq!(place.rows(&then), all(0..2000, 100));
    let needed = place.objects();
    for round in 0..20 {
        place.clock.advance(Duration::from_secs(10));
        // All of it, so that no page of the past serves the present as well.
        for rid in 0..2000 {
            place.change(rid, Some(round));
        }
        place.checkpoint();
    }
    assert!(place.evict() > 0);
    assert_eq!(place.rows(&then), all(0..2000, 100));
    assert_eq!(place.engine.restore_points().len(), 1, "only the newest");
    // Who has it shares it with those who come to it; it cannot be found by a time any more.
    assert!(place.engine.past(&time).is_none());
    let again = Arc::clone(&past);
    drop(past);
    place.clock.advance(Duration::from_secs(1000));
    place.engine.tidy_pasts();
    assert_eq!(place.engine.open_pasts(), 1, "somebody has it");
    assert_eq!(place.rows(&then), all(0..2000, 100));
    drop((again, then));
    place.engine.tidy_pasts();
    place.clock.advance(Duration::from_secs(59));
    place.engine.tidy_pasts();
    assert_eq!(place.engine.open_pasts(), 1, "not a minute yet");
    assert!(place.objects().is_superset(&needed), "nothing is missing");
    place.clock.advance(Duration::from_secs(1));
    place.change(0, Some(99));
    place.checkpoint();
    assert_eq!(place.engine.open_pasts(), 0);
    assert_eq!(place.engine.closed_pasts(), 1);
    assert!(
        place.objects().is_disjoint(&needed),
        "all of it was changed"
    );
}

/// Who drops a restore point has it dropped; who reads it then goes on, and what it needs is removed afterwards.
#[test]
fn a_point_that_is_dropped_while_it_is_read() {
    let place = Place::new();
    place.insert(&place.table, 0..2000, 100);
    place.engine.create_restore_point("then").expect("made");
    let past = place.named("then").expect("there");
    let other = place.named("then").expect("there");
    assert!(Arc::ptr_eq(&past, &other), "one for all who read it");
    drop(other);
    let needed = place.objects();
    let then = past.table(TABLE).expect("there");
    assert_eq!(place.rows(&then), all(0..2000, 100));
    for rid in 0..2000 {
        place.change(rid, Some(200));
    }
    place.checkpoint();
    place.engine.drop_restore_point("then").expect("dropped");
    assert!(place.named("then").is_none(), "it has no name any more");
    for _ in 0..3 {
        place.change(0, Some(300));
        place.checkpoint();
    }
    assert!(place.evict() > 0);
    assert_eq!(place.rows(&then), all(0..2000, 100));
    assert_eq!(place.rows_by(&past, BY_KEY), all(0..2000, 100));
    assert!(place.objects().is_superset(&needed), "nothing is missing");
    drop((past, then));
    place.engine.tidy_pasts();
    place.clock.advance(Duration::from_secs(60));
    place.change(0, Some(301));
    place.checkpoint();
    assert!(!place.objects().is_superset(&needed), "it was let go of");
    assert_eq!(place.engine.open_pasts(), 0);
}

#[test]
fn a_crash_leaves_nothing_of_a_past() {
    let objects = |reads: bool| {
        let place = Place::new();
        place.insert(&place.table, 0..2000, 100);
        place.engine.create_restore_point("kept").expect("made");
        place.insert(&place.table, 2000..3000, 100);
        place.checkpoint();
        let past = reads.then(|| place.past(&RecoveryTarget::Newest).expect("there"));
        for rid in 0..3000 {
            place.change(rid, Some(200));
        }
        for _ in 0..3 {
            place.change(0, Some(300));
            place.checkpoint();
        }
        if let Some(past) = &past {
            let then = past.table(TABLE).expect("there");
            assert_eq!(place.rows(&then), all(0..3000, 100));
        }
        let before = place.objects();
        drop(past);
        let place = place.restarted();
        place.change(0, Some(301));
        place.checkpoint();
        // A point that was made by hand can be read in the next life.
        let kept = place.named("kept").expect("it is kept");
        assert_eq!(
            place.rows(&kept.table(TABLE).expect("there")),
            all(0..2000, 100)
        );
        assert_eq!(place.rows_by(&kept, BY_KEY), all(0..2000, 100));
        (before, place.objects())
    };
    let (before, after) = objects(true);
    let (less, control) = objects(false);
    assert!(before.len() > less.len(), "it was held");
    assert_eq!(after.len(), control.len());
}

#[test]
fn by_time_the_last_one_taken_by_then() {
    let place = Place::new();
    assert!(
        place.engine.past(&RecoveryTarget::Newest).is_none(),
        "no checkpoint yet"
    );
    let mut times = Vec::new();
    for round in 1..=3 {
        place.clock.advance(Duration::from_secs(10));
        place.insert(&place.table, round * 100..round * 100 + 1, round);
        let name = format!("point {round}");
        place.engine.create_restore_point(&name).expect("made");
        times.push(
            place
                .engine
                .restore_points()
                .last()
                .expect("one")
                .taken_at_micros,
        );
    }
    let count = |time| {
        let past = place.past(&RecoveryTarget::At(time))?;
        Some(place.rows(&past.table(TABLE).expect("there")).len())
    };
    assert_eq!(count(times[0] - 1), None);
    assert_eq!(count(times[0]), Some(1));
    assert_eq!(count(times[1] - 1), Some(1));
    assert_eq!(count(times[1]), Some(2));
    assert_eq!(count(times[2]), Some(3));
    assert_eq!(count(i64::MAX), Some(3));
    assert_eq!(place.engine.open_pasts(), 3);
}

/// Retention lets go of a point that is read only for those who come later.
#[test]
fn retention_does_not_take_away_what_is_read() {
    let memory = MemoryHome::new(8 << 20);
    let clock = Arc::new(SimClock::new());
    let (mut env, _) = Env::simulated(1);
    env.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let options = EngineOptions {
        retention: Retention {
            interval: Duration::from_secs(10),
            retention: Duration::from_secs(100),
        },
        ..EngineOptions::default()
    };
    let home = LogHome::from(memory.clone());
    let (engine, _) = Engine::open(options, home, env).expect("opens");
    let table = engine.create_table(TABLE);
    let worker = engine.worker(WorkerId(0));
    let place = Place {
        memory,
        clock,
        engine,
        worker,
        table,
    };
    let mut first = None;
    for round in 0..30 {
        place.clock.advance(Duration::from_secs(10));
        place.insert(&place.table, round * 100..round * 100 + 100, round);
        place.checkpoint();
        if round == 3 {
            first = place.past(&RecoveryTarget::At(i64::MAX));
        }
    }
    let oldest = place.engine.restore_points()[0].taken_at_micros;
    let past = first.expect("opened");
    assert!(
        oldest > past.taken_at_micros(),
        "it is beyond the retention"
    );
    assert!(
        place
            .engine
            .past(&RecoveryTarget::At(past.taken_at_micros()))
            .is_none()
    );
    place.evict();
    assert_eq!(place.rows(&past.table(TABLE).expect("there")).len(), 400);
}

/// A row that takes a kilobyte.
fn wide(key: i64, balance: i64) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 3);
    builder.push(Some(&number(key)));
    builder.push(Some(&number(balance)));
    builder.push(Some(&[b'x'; 1000]));
    builder.finish().to_vec()
}

/// A past, and a present, that are each larger than the budget; and one that nobody uses makes way.
#[test]
fn the_past_lives_within_the_budget() {
    const BUDGET: u64 = 6 << 20;
    const ROWS: i64 = 8_000;
    let memory = MemoryHome::new(64 << 20);
    let engine = open(&memory, &Arc::new(SimClock::new()), BUDGET);
    let place = Place {
        table: engine.create_table(TABLE),
        worker: engine.worker(WorkerId(0)),
        clock: Arc::new(SimClock::new()),
        memory,
        engine,
    };
    let evictor = Evictor::start(&place.engine, false).expect("starts");
    for first in (0..ROWS).step_by(100) {
        let mut txn = place.begin();
        for key in first..first + 100 {
            let new = wide(key, 100);
            write(&mut txn, |txn| txn.insert(&place.table, &new));
        }
        commit(txn);
    }
    place.engine.create_restore_point("then").expect("made");
    let past = place.named("then").expect("there");
    let then = past.table(TABLE).expect("there");
    for round in 0..2 {
        for rid in (0..ROWS as u64).step_by(500) {
            place.change(rid, Some(round));
            while place.worker.collect_garbage(1000) {}
        }
        assert_eq!(place.rows(&then), all(0..ROWS, 100));
        assert_eq!(place.rows(&place.table).len() as i64, ROWS);
        assert!(place.engine.memory().used_bytes() <= BUDGET);
    }
    let evicted = place.engine.eviction_stats().chunks_evicted;
    assert!(evicted > 0, "there was not room for all");
    assert_eq!(place.engine.open_pasts(), 1);
    drop((past, then));
    // The present wants all of it.
    while place.engine.open_pasts() > 0 {
        assert_eq!(place.rows(&place.table).len() as i64, ROWS);
    }
    drop(evictor);
}
