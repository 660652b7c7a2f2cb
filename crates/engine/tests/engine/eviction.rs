//! Chunks that leave memory and come back: what may go (T6), that what comes back is what went, that nobody is told
//! otherwise, and that a table larger than the memory budget works.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use logstead_engine::{
    Engine, EngineOptions, Evictor, FaultError, FlushMode, Guard, Isolation, LogHome, MemoryHome,
    PageFault, Rid, RowLock, ScanCursor, Table, TableId, Txn, VersionId, Worker, WorkerId,
    WriteError,
};
use logstead_env::Env;

use crate::world::{block_on, column, commit, number, row};

pub(crate) const TABLE: TableId = TableId(20_000);
/// Rows of a chunk.
const CHUNK: i64 = 64;

/// Random numbers of one seed.
pub(crate) struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// One engine with two workers on this thread.
pub(crate) struct Place {
    pub(crate) engine: Engine,
    pub(crate) worker: Worker,
    pub(crate) table: Arc<Table>,
}

pub(crate) fn open(home: &LogHome, memory_bytes: u64) -> Place {
    let (env, _) = Env::simulated(1);
    let options = EngineOptions {
        workers: 2,
        memory_bytes,
        ..EngineOptions::default()
    };
    let (engine, _) = Engine::open(options, home.clone(), env).expect("opens");
    let table = engine.create_table(TABLE);
    let worker = engine.worker(WorkerId(0));
    Place {
        engine,
        worker,
        table,
    }
}

/// The second column of a row, whoever has to bring it.
pub(crate) fn look(place: &Place, rid: u64) -> Result<Option<i64>, FaultError> {
    let mut txn = place.begin();
    loop {
        let absent = {
            let guard = Guard::pin();
            match txn.read(&place.table, Rid(rid), &guard) {
                Ok(row) => return Ok(row.map(|row| column(&row, 1))),
                Err(absent) => absent,
            }
        };
        block_on(absent.wait(&mut txn))?;
    }
}

impl Place {
    /// With rows 0 to `count`, whose rids are their keys, in a checkpoint.
    pub(crate) fn saved(count: i64) -> Place {
        let home = LogHome::from(MemoryHome::new(8 << 20));
        Place::saved_in(&home, count)
    }

    pub(crate) fn saved_in(home: &LogHome, count: i64) -> Place {
        let place = open(home, u64::MAX);
        let mut txn = place.begin();
        for key in 0..count {
            let rid = txn.insert(&place.table, &row(key, 100)).expect("insert");
            assert_eq!(rid, Rid(key as u64));
        }
        commit(txn);
        place.checkpoint();
        place
    }

    pub(crate) fn begin(&self) -> Txn {
        self.worker.begin(Isolation::RepeatableRead)
    }

    pub(crate) fn checkpoint(&self) {
        self.engine.checkpoint().expect("a checkpoint");
    }

    /// Lets the collector do what it can, and frees what nobody sees any more.
    pub(crate) fn collect(&self) {
        self.worker.flush(FlushMode::Inline);
        while self.worker.collect_garbage(1000) {}
    }

    pub(crate) fn read(&self, txn: &mut Txn, rid: u64) -> Option<(VersionId, i64)> {
        patient(txn, |txn| {
            let guard = Guard::pin();
            let found = txn.read(&self.table, Rid(rid), &guard)?;
            Ok(found.map(|found| (found.version, column(&found, 1))))
        })
    }

    pub(crate) fn balance(&self, txn: &mut Txn, rid: u64) -> Option<i64> {
        self.read(txn, rid).map(|(_, balance)| balance)
    }

    /// Writes again until nothing is absent.
    pub(crate) fn write<T>(
        &self,
        txn: &mut Txn,
        mut write: impl FnMut(&mut Txn) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        loop {
            match write(txn) {
                Err(WriteError::Absent(absent)) => wait(txn, absent),
                done => return done,
            }
        }
    }

    pub(crate) fn update(&self, txn: &mut Txn, rid: u64, balance: i64) -> Result<(), WriteError> {
        let (version, _) = self.read(txn, rid).expect("a row");
        self.update_version(txn, rid, version, balance)
    }

    fn update_version(
        &self,
        txn: &mut Txn,
        rid: u64,
        version: VersionId,
        balance: i64,
    ) -> Result<(), WriteError> {
        let new = row(rid as i64, balance);
        self.write(txn, |txn| txn.update(&self.table, Rid(rid), version, &new))
    }

    pub(crate) fn delete(&self, txn: &mut Txn, rid: u64) {
        let (version, _) = self.read(txn, rid).expect("a row");
        self.write(txn, |txn| txn.delete(&self.table, Rid(rid), version))
            .expect("deletes");
    }

    /// Every visible row.
    pub(crate) fn scan(&self, txn: &mut Txn) -> BTreeMap<i64, i64> {
        let mut rows = BTreeMap::new();
        let mut cursor = ScanCursor::new(&self.table);
        loop {
            let next = patient(txn, |txn| {
                let guard = Guard::pin();
                let next = txn.scan_next(&mut cursor, &guard)?;
                Ok(next.map(|row| (column(&row, 0), column(&row, 1))))
            });
            match next {
                Some((key, balance)) => assert_eq!(rows.insert(key, balance), None),
                None => return rows,
            }
        }
    }
}

pub(crate) fn wait(txn: &mut Txn, absent: PageFault) {
    block_on(absent.wait(txn)).expect("it comes");
}

/// Does it again until nothing is absent.
fn patient<T>(txn: &mut Txn, mut operation: impl FnMut(&mut Txn) -> Result<T, PageFault>) -> T {
    loop {
        match operation(txn) {
            Ok(done) => return done,
            Err(absent) => wait(txn, absent),
        }
    }
}

#[test]
fn what_is_evicted_comes_back_as_it_was() {
    let place = Place::saved(3 * CHUNK + 10);
    let memory = place.engine.memory();
    let full = memory.used_bytes();
    let rows = 3 * CHUNK as u64 * 64;
    assert_eq!(place.engine.evict_all(), 4);
    assert_eq!(place.engine.evict_all(), 0, "they are gone");
    // What was evicted is free when no thread of this process looks at it any more.
    for _ in 0..20_000 {
        if memory.used_bytes() + rows < full {
            break;
        }
        Guard::pin();
        place.collect();
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    let empty = memory.used_bytes();
    assert!(empty + rows < full, "{empty} of {full}");
    let mut txn = place.begin();
    {
        let guard = Guard::pin();
        let absent = txn.read(&place.table, Rid(5), &guard).expect_err("absent");
        drop(guard);
        assert_eq!(absent.to_string(), "row 5 of table 20000 is not in memory");
    }
    let rows = place.scan(&mut txn);
    assert_eq!(rows.len() as i64, 3 * CHUNK + 10);
    assert!(rows.values().all(|balance| *balance == 100));
    assert_eq!(memory.used_bytes(), full, "as much as before");
    let stats = place.engine.eviction_stats();
    assert_eq!((stats.chunks_evicted, stats.chunks_loaded), (4, 4));
}

/// Who waits for a chunk finds it, whatever his worker does first: where few chunks fit they would go round for ever
/// otherwise.
#[test]
fn what_is_waited_for_stays_until_who_waits_has_come_back() {
    let place = Place::saved(CHUNK);
    assert_eq!(place.engine.evict_all(), 1);
    let mut txn = place.begin();
    let absent = {
        let guard = Guard::pin();
        let read = txn.read(&place.table, Rid(5), &guard).map(|_| ());
        read.expect_err("it is absent")
    };
    {
        let mut wait = pin!(absent.wait(&mut txn));
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
        while place.engine.eviction_stats().chunks_loaded == 0 {
            std::thread::yield_now();
        }
        assert_eq!(place.engine.evict_all(), 0, "it is waited for");
        let came = block_on(wait);
        came.expect("it has come");
    }
    assert_eq!(place.balance(&mut txn, 5), Some(100));
    assert_eq!(place.engine.evict_all(), 1);
    // Whoever gives up waiting holds nothing.
    let absent = {
        let guard = Guard::pin();
        let read = txn.read(&place.table, Rid(5), &guard).map(|_| ());
        read.expect_err("it is absent")
    };
    {
        let mut wait = pin!(absent.wait(&mut txn));
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(place.balance(&mut txn, 6), Some(100));
    assert_eq!(place.engine.evict_all(), 1);
}

/// T6: an old snapshot keeps in memory what only memory has for it.
#[test]
fn an_old_snapshot_keeps_its_versions_in_memory() {
    let place = Place::saved(2 * CHUNK);
    let mut old = place.begin();
    assert_eq!(place.balance(&mut old, 5), Some(100));
    let mut txn = place.begin();
    place.update(&mut txn, 5, 200).expect("updates");
    place.delete(&mut txn, 6);
    commit(txn);
    place.checkpoint();
    place.collect();
    assert_eq!(place.engine.evict_all(), 1, "the other chunk alone");
    assert_eq!(place.balance(&mut old, 5), Some(100));
    assert_eq!(place.balance(&mut old, 6), Some(100));
    old.abort();
    place.collect();
    // The emptied slot is saved once more: the collector left it empty.
    place.checkpoint();
    assert_eq!(place.engine.evict_all(), 1);
    let mut txn = place.begin();
    assert_eq!(place.balance(&mut txn, 5), Some(200));
    assert_eq!(place.balance(&mut txn, 6), None);
}

/// T6: who has read a row before its chunk went, and writes after it has come back, meets what others have written
/// meanwhile.
#[test]
fn a_later_writer_meets_who_was_quicker() {
    let place = Place::saved(CHUNK);
    let (mut slow, mut quick) = (place.begin(), place.begin());
    let (version, _) = place.read(&mut slow, 5).expect("a row");
    let (other, _) = place.read(&mut slow, 6).expect("a row");
    assert_eq!(place.engine.evict_all(), 1);
    place.update(&mut quick, 5, 200).expect("updates");
    commit(quick);
    place.checkpoint();
    place.engine.evict_all();
    let refused = place.update_version(&mut slow, 5, version, 300);
    assert!(
        matches!(refused, Err(WriteError::Serialization)),
        "{refused:?}"
    );
    place
        .update_version(&mut slow, 6, other, 300)
        .expect("nobody else wrote this one");
    commit(slow);
    let mut txn = place.begin();
    assert_eq!(place.balance(&mut txn, 5), Some(200));
    assert_eq!(place.balance(&mut txn, 6), Some(300));
}

/// T6: two SERIALIZABLE transactions that each read what the other writes are not both let through because the chunk
/// went and came back between.
#[test]
fn serializable_holds_over_evictions() {
    let place = Place::saved(2 * CHUNK);
    let (first, second) = (5, CHUNK as u64 + 5);
    let begin = || place.worker.begin(Isolation::Serializable);
    let (mut one, mut two) = (begin(), begin());
    for txn in [&mut one, &mut two] {
        assert_eq!(place.balance(txn, first), Some(100));
        assert_eq!(place.balance(txn, second), Some(100));
        assert_eq!(place.engine.evict_all(), 2);
    }
    place.update(&mut one, first, 0).expect("updates");
    place.update(&mut two, second, 0).expect("updates");
    commit(one);
    place.checkpoint();
    place.engine.evict_all();
    let refused = block_on(two.precommit());
    assert!(refused.is_err(), "one of two must fail");
}

/// T6: a chunk that the running checkpoint writes stays until that is published; so does what was changed since.
#[test]
fn a_running_checkpoint_keeps_what_it_writes() {
    let place = Place::saved(3 * CHUNK);
    let mut txn = place.begin();
    place.update(&mut txn, 5, 200).expect("updates");
    commit(txn);
    block_on(place.engine.flush_all_and_wait()).expect("flushed");
    let mut checkpoint = place.engine.begin_checkpoint().expect("begins");
    assert!(checkpoint.is_durable().expect("no failure"));
    while checkpoint.walk(1).expect("writes") {}
    assert_eq!(place.engine.evict_all(), 2, "not the one that is written");
    let mut txn = place.begin();
    place.update(&mut txn, CHUNK as u64, 300).expect("updates");
    commit(txn);
    checkpoint.publish().expect("publishes");
    place.collect();
    assert_eq!(
        place.engine.evict_all(),
        1,
        "not the one that has changed since"
    );
    place.checkpoint();
    assert_eq!(place.engine.evict_all(), 1);
    // One that is given up writes nothing that may be read back.
    let mut txn = place.begin();
    place.update(&mut txn, 5, 400).expect("updates");
    commit(txn);
    block_on(place.engine.flush_all_and_wait()).expect("flushed");
    place.collect();
    let mut checkpoint = place.engine.begin_checkpoint().expect("begins");
    while checkpoint.walk(1).expect("writes") {}
    drop(checkpoint);
    place.collect();
    assert_eq!(place.engine.evict_all(), 0, "it was not saved");
    let mut txn = place.begin();
    assert_eq!(place.balance(&mut txn, 5), Some(400));
    assert_eq!(place.balance(&mut txn, CHUNK as u64), Some(300));
}

#[test]
fn a_deleted_row_does_not_come_back() {
    let place = Place::saved(CHUNK);
    let mut txn = place.begin();
    place.delete(&mut txn, 5);
    commit(txn);
    place.collect();
    assert_eq!(place.engine.evict_all(), 0, "the checkpoint still has it");
    place.checkpoint();
    place.collect();
    assert_eq!(place.engine.evict_all(), 1);
    let mut txn = place.begin();
    assert_eq!(place.balance(&mut txn, 5), None);
    assert_eq!(place.balance(&mut txn, 4), Some(100));
}

/// A free row number may be of a chunk that has gone: who gets it waits for the chunk, and has it then.
#[test]
fn a_free_rid_of_an_absent_chunk_is_used_again() {
    let place = Place::saved(2 * CHUNK);
    let mut txn = place.begin();
    place.delete(&mut txn, 5);
    commit(txn);
    place.checkpoint();
    place.collect();
    assert_eq!(place.engine.evict_all(), 2);
    let mut txn = place.begin();
    let refused = txn.insert(&place.table, &row(5, 7));
    assert!(matches!(refused, Err(WriteError::Absent(_))), "{refused:?}");
    let new = row(5, 7);
    let rid = place
        .write(&mut txn, |txn| txn.insert(&place.table, &new))
        .expect("inserts");
    assert_eq!(rid, Rid(5));
    commit(txn);
    let mut txn = place.begin();
    assert_eq!(place.scan(&mut txn).len() as i64, 2 * CHUNK);
}

#[test]
fn locks_and_writers_in_flight_keep_their_chunks() {
    let place = Place::saved(4 * CHUNK);
    let at = |chunk: i64| (chunk * CHUNK) as u64;
    let mut txn = place.begin();
    place.update(&mut txn, at(0), 1).expect("updates");
    for (chunk, lock) in [(1, RowLock::Update), (2, RowLock::KeyShare)] {
        let (version, _) = place.read(&mut txn, at(chunk)).expect("a row");
        txn.lock_row(&place.table, Rid(at(chunk)), version, lock)
            .expect("locks");
    }
    assert_eq!(place.engine.evict_all(), 1, "the fourth");
    place.checkpoint();
    assert_eq!(place.engine.evict_all(), 0);
    txn.abort();
    place.collect();
    place.checkpoint();
    assert_eq!(place.engine.evict_all(), 3);
    let mut txn = place.begin();
    assert_eq!(place.balance(&mut txn, at(0)), Some(100));
}

/// A random history of transactions, checkpoints and evictions against a model; now and then the machine stops.
#[test]
fn a_history_with_evictions_is_what_it_is_without() {
    for seed in 1..=6 {
        history(seed);
    }
}

fn history(seed: u64) {
    let memory = MemoryHome::new(8 << 20);
    let home = LogHome::from(memory.clone());
    let mut place = open(&home, u64::MAX);
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut model: BTreeMap<i64, (Rid, i64)> = BTreeMap::new();
    let mut next = 0;
    let mut evicted = 0;
    for step in 0..200 {
        match dice.roll(20) {
            0..10 => {
                let mut txn = place.begin();
                let mut changed = model.clone();
                for _ in 0..dice.roll(6) + 1 {
                    let some = changed
                        .keys()
                        .nth(dice.roll(changed.len().max(1) as u64) as usize);
                    match (dice.roll(4), some.copied()) {
                        (0 | 1, _) | (_, None) => {
                            for _ in 0..dice.roll(400) {
                                let new = row(next, step);
                                let rid = place
                                    .write(&mut txn, |txn| txn.insert(&place.table, &new))
                                    .expect("inserts");
                                changed.insert(next, (rid, step));
                                next += 1;
                            }
                        }
                        (2, Some(key)) => {
                            let (rid, _) = changed[&key];
                            let (version, balance) =
                                place.read(&mut txn, rid.0).expect("what was written");
                            assert_eq!(balance, changed[&key].1, "seed {seed}");
                            let new = row(key, step);
                            match place
                                .write(&mut txn, |txn| txn.update(&place.table, rid, version, &new))
                            {
                                Ok(()) => drop(changed.insert(key, (rid, step))),
                                Err(WriteError::SelfModified) => {}
                                Err(error) => panic!("{error}, seed {seed}"),
                            }
                        }
                        (_, Some(key)) => {
                            let (rid, _) = changed[&key];
                            place.delete(&mut txn, rid.0);
                            changed.remove(&key);
                        }
                    }
                    txn.begin_statement();
                }
                if dice.roll(5) == 0 {
                    txn.abort();
                } else {
                    commit(txn);
                    model = changed;
                }
            }
            10..13 => place.checkpoint(),
            13..16 => evicted += place.engine.evict_all(),
            16..18 => place.collect(),
            18 => {
                let mut txn = place.begin();
                let expected: BTreeMap<i64, i64> = model
                    .iter()
                    .map(|(key, (_, balance))| (*key, *balance))
                    .collect();
                assert_eq!(place.scan(&mut txn), expected, "seed {seed}, step {step}");
            }
            _ => {
                block_on(place.engine.flush_all_and_wait()).expect("flushed");
                drop(place);
                memory.crash();
                place = open(&home, u64::MAX);
            }
        }
    }
    let mut txn = place.begin();
    let expected: BTreeMap<i64, i64> = model
        .iter()
        .map(|(key, (_, balance))| (*key, *balance))
        .collect();
    assert_eq!(place.scan(&mut txn), expected, "seed {seed}");
    assert!(evicted > 0, "seed {seed}");
}

/// A row of a kilobyte.
pub(crate) fn wide(key: i64, balance: i64) -> Vec<u8> {
    of_bytes(key, balance, 1000, b'x')
}

/// A row with so many bytes beside its numbers.
pub(crate) fn of_bytes(key: i64, balance: i64, bytes: usize, filling: u8) -> Vec<u8> {
    let mut builder = logstead_engine::RowBuilder::new();
    builder.start(1, 3);
    builder.push(Some(&number(key)));
    builder.push(Some(&number(balance)));
    builder.push(Some(&vec![filling; bytes]));
    builder.finish().to_vec()
}

/// A table several times the memory budget, with an evictor that takes checkpoints when it needs them: every write and
/// read waits for its turn and none is refused.
#[test]
fn a_table_larger_than_memory_is_written_and_read() {
    const BUDGET: u64 = 12 << 20;
    let home = LogHome::from(MemoryHome::new(64 << 20));
    let place = open(&home, BUDGET);
    let evictor = Evictor::start(&place.engine, false).expect("starts");
    let memory = place.engine.memory();
    let mut model = Vec::new();
    let mut most = 0;
    for batch in 0..400 {
        let mut txn = place.begin();
        for key in batch * 100..(batch + 1) * 100 {
            let new = wide(key, key);
            let rid = place
                .write(&mut txn, |txn| txn.insert(&place.table, &new))
                .expect("there is room, in time");
            model.push((rid, key));
        }
        commit(txn);
        place.worker.flush(FlushMode::Inline);
        most = most.max(memory.used_bytes());
    }
    let size = model.len() as u64 * 1000;
    assert!(size > 3 * BUDGET, "larger than memory");
    let mut dice = Dice(7);
    for _ in 0..500 {
        let at = dice.roll(model.len() as u64) as usize;
        let (rid, balance) = model[at];
        let mut txn = place.begin();
        let (version, found) = place.read(&mut txn, rid.0).expect("a row");
        assert_eq!(found, balance);
        let new = wide(at as i64, balance + 1);
        place
            .write(&mut txn, |txn| txn.update(&place.table, rid, version, &new))
            .expect("updates");
        commit(txn);
        place.worker.flush(FlushMode::Inline);
        place.worker.collect_garbage(100);
        model[at].1 += 1;
        most = most.max(memory.used_bytes());
    }
    let mut txn = place.begin();
    let rows = place.scan(&mut txn);
    assert_eq!(rows.len(), model.len());
    for (key, (_, balance)) in model.iter().enumerate() {
        assert_eq!(rows[&(key as i64)], *balance);
    }
    assert!(most <= BUDGET, "{most} of {BUDGET}");
    let stats = place.engine.eviction_stats();
    assert!(
        stats.chunks_evicted > 30 && stats.chunks_loaded > 30,
        "{stats:?}"
    );
    drop(txn);
    drop(evictor);
}

/// Rows of one chunk that do not fit in memory together: a scan, and who reads one after the other, gets them one by
/// one.
#[test]
fn a_chunk_larger_than_memory_is_read() {
    const BUDGET: u64 = 16 << 20;
    let home = LogHome::from(MemoryHome::new(64 << 20));
    let place = open(&home, BUDGET);
    let evictor = Evictor::start(&place.engine, false).expect("starts");
    for key in 0..CHUNK {
        let mut txn = place.begin();
        let new = of_bytes(key, key * 7, 1 << 20, b'x');
        let rid = place
            .write(&mut txn, |txn| txn.insert(&place.table, &new))
            .expect("there is room, in time");
        assert_eq!(rid, Rid(key as u64));
        commit(txn);
        place.worker.flush(FlushMode::Inline);
    }
    let mut txn = place.begin();
    let rows = place.scan(&mut txn);
    assert_eq!(rows.len(), CHUNK as usize);
    assert!(rows.iter().all(|(key, balance)| *balance == key * 7));
    for rid in (0..CHUNK as u64).rev() {
        assert_eq!(place.balance(&mut txn, rid), Some(rid as i64 * 7));
    }
    drop(txn);
    drop(evictor);
}

/// What cannot be evicted because it is not committed is refused in the end, and the way back is open.
#[test]
fn a_transaction_larger_than_memory_is_refused() {
    const BUDGET: u64 = 16 << 20;
    let home = LogHome::from(MemoryHome::new(64 << 20));
    let place = open(&home, BUDGET);
    let _evictor = Evictor::start(&place.engine, false).expect("starts");
    let mut txn = place.begin();
    let refused = (0..40_000).find_map(|key| {
        let new = wide(key, key);
        match txn.insert(&place.table, &new) {
            Ok(_) => None,
            Err(WriteError::Absent(absent)) => block_on(absent.wait(&mut txn)).err(),
            Err(error) => panic!("{error}"),
        }
    });
    let Some(FaultError::OutOfMemory(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.budget_bytes, BUDGET);
    txn.abort();
    let mut txn = place.begin();
    let new = wide(1, 1);
    place
        .write(&mut txn, |txn| txn.insert(&place.table, &new))
        .expect("there is room again");
    commit(txn);
}
