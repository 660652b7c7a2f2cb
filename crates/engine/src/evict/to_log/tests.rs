//! What only the log has, in the moments that no replica and no restart bring about for certain: a checkpoint that
//! reads the log while chunks come back, a start that is not through, tables that are dropped, and chunks out of reach.

use std::sync::Arc;

use logstead_checkpoint::PageKey;
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Rid, WorkerId};

use super::*;
use crate::page_store::PageServiceOffer;
use crate::row::RowBuilder;
use crate::table::Table;
use crate::txn::{Isolation, Txn};
use crate::version::CHUNK_SLOTS;
use crate::worker::Worker;
use crate::{Checkpoint, EngineOptions, FaultError, PageFault, WriteError};

const TABLE: TableId = TableId(20_000);
const SLOTS: u64 = CHUNK_SLOTS as u64;

struct Place {
    engine: Engine,
    worker: Worker,
    table: Arc<Table>,
    home: MemoryHome,
}

fn row(fill: u8) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 1);
    builder.push(Some(&[fill; 100]));
    builder.finish().to_vec()
}

fn open(home: &MemoryHome, memory_bytes: u64) -> Place {
    let options = EngineOptions {
        memory_bytes,
        ..EngineOptions::default()
    };
    let opened = Engine::open(options, LogHome::from(home.clone()), Env::simulated(1).0);
    let (engine, _) = opened.expect("opens");
    Place {
        table: engine.create_table(TABLE),
        worker: engine.worker(WorkerId(0)),
        engine,
        home: home.clone(),
    }
}

/// Does it again until nothing is absent.
fn patient<T>(
    txn: &mut Txn,
    mut operation: impl FnMut(&mut Txn) -> Result<T, PageFault>,
) -> Result<T, FaultError> {
    loop {
        match operation(txn) {
            Ok(done) => return Ok(done),
            Err(absent) => absent.load_here(txn)?,
        }
    }
}

impl Place {
    /// Full chunks that a checkpoint has.
    fn saved(chunks: u64) -> Place {
        let place = open(&MemoryHome::new(64 << 20), u64::MAX);
        place.insert(chunks * SLOTS);
        place.engine.checkpoint().expect("taken");
        place
    }

    fn commit(&self, txn: Txn) {
        txn.try_precommit().expect("there is room");
        self.engine.inner().path.flush_all();
        while self.worker.collect_garbage(1_000) {}
    }

    fn insert(&self, rows: u64) {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        for _ in 0..rows {
            txn.insert(&self.table, &row(1)).expect("inserts");
        }
        self.commit(txn);
    }

    /// Gives a row another content, or none.
    fn write(&self, rid: u64, fill: Option<u8>) {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let version = patient(&mut txn, |txn| {
            let guard = Guard::pin();
            let found = txn.read(&self.table, Rid(rid), &guard)?;
            Ok(found.expect("it is there").version)
        });
        let version = version.expect("reads");
        let written = match fill {
            Some(fill) => txn.update(&self.table, Rid(rid), version, &row(fill)),
            None => txn.delete(&self.table, Rid(rid), version),
        };
        written.expect("writes");
        self.commit(txn);
    }

    /// Is there such a row?
    fn look(&self, rid: u64) -> Result<bool, FaultError> {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        patient(&mut txn, |txn| {
            let guard = Guard::pin();
            Ok(txn.read(&self.table, Rid(rid), &guard)?.is_some())
        })
    }

    /// A replica that gives rows back, as far as anybody asks.
    fn service(&self) -> PageServiceOffer {
        let offer = self.engine.page_services().offer();
        offer.gives_rows();
        offer
    }

    /// Changes a row of each of these chunks, and lets go of all that have changed. Nobody gives them back but the log.
    fn leave(&self, chunks: u64) {
        (0..chunks).for_each(|chunk| self.write(chunk * SLOTS, Some(2)));
        let _service = self.service();
        assert_eq!(self.engine.evict_all_to_log(), chunks);
        assert_eq!(self.in_log(), chunks);
    }

    fn in_log(&self) -> u64 {
        self.engine.eviction_stats().chunks_in_log
    }

    fn readings(&self) -> u64 {
        self.engine.eviction_stats().log_readings
    }

    fn note(&self, chunk: u64) -> Arc<LoggedChunk> {
        self.table
            .rows
            .logged
            .get(chunk)
            .expect("only the log has it")
    }

    fn checkpoint(&self) -> Checkpoint {
        let checkpoint = self.engine.begin_checkpoint().expect("begins");
        self.engine.inner().path.flush_all();
        assert!(checkpoint.is_durable().expect("the log stands"));
        checkpoint
    }

    /// Has a checkpoint write a chunk that it has found with this note.
    fn write_logged(
        &self,
        checkpoint: &mut Checkpoint,
        chunk: u64,
        note: &Arc<LoggedChunk>,
    ) -> Option<bool> {
        let key = PageKey::Rows {
            table: TABLE,
            chunk,
        };
        let at = (0, &*self.table);
        let written = checkpoint.write_logged(at, chunk, key, note, false);
        written.expect("nothing is damaged")
    }
}

/// A chunk has come back since a checkpoint has found its note, and has changed: the log has what the checkpoint is not
/// to have, and the chunk itself is looked at.
#[test]
fn a_checkpoint_does_not_take_from_the_log_what_has_come_back_meanwhile() {
    let place = Place::saved(2);
    place.leave(2);
    let mut checkpoint = place.checkpoint();
    let (first, second) = (place.note(0), place.note(1));
    place.write(5, None);
    assert_eq!(place.write_logged(&mut checkpoint, 0, &first), None);
    // It has left again since: still not the note that was found.
    drop(checkpoint);
    place.write(6, Some(3));
    let _service = place.service();
    assert_eq!(place.engine.evict_all_to_log(), 1);
    let mut checkpoint = place.checkpoint();
    assert_eq!(place.write_logged(&mut checkpoint, 0, &first), None);
    assert_eq!(place.write_logged(&mut checkpoint, 1, &second), Some(true));
}

/// What was read of the log for a checkpoint is not given up for whoever misses a chunk meanwhile, nor read again.
#[test]
fn a_checkpoint_and_who_misses_chunks_read_the_log_once_each() {
    const CHUNKS: u64 = 6;
    let place = Place::saved(CHUNKS);
    place.leave(CHUNKS);
    let before = place.readings();
    let mut checkpoint = place.checkpoint();
    assert!(checkpoint.walk(1).expect("writes one"), "there are more");
    assert_eq!(place.readings() - before, 1);
    assert!(place.look((CHUNKS - 1) * SLOTS).expect("reads"));
    assert_eq!(place.readings() - before, 2);
    while checkpoint.walk(1).expect("writes the others") {}
    assert_eq!(place.readings() - before, 2, "none was given up");
    checkpoint.publish().expect("published");
    assert_eq!(place.in_log(), 0);
}

/// Of a chunk whose change was undone the log has nothing: such a reading is counted, and not among the fruitful ones.
#[test]
fn readings_of_the_log_that_find_nothing_are_counted_apart() {
    let place = Place::saved(2);
    let counted = || {
        let stats = place.engine.eviction_stats();
        (stats.log_readings, stats.fruitful_log_readings)
    };
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    let version = {
        let guard = Guard::pin();
        let found = txn.read(&place.table, Rid(3), &guard).expect("in memory");
        found.expect("it is there").version
    };
    txn.update(&place.table, Rid(3), version, &row(2))
        .expect("writes");
    txn.abort();
    while place.worker.collect_garbage(1_000) {}
    {
        let _service = place.service();
        assert_eq!(place.engine.evict_all_to_log(), 1);
    }
    let (all, fruitful) = counted();
    assert!(place.look(3).expect("reads"));
    assert_eq!(counted(), (all + 1, fruitful));
    place.write(SLOTS, Some(2));
    {
        let _service = place.service();
        assert_eq!(
            place.engine.evict_all_to_log(),
            2,
            "the first is as changed as before"
        );
    }
    assert!(place.look(SLOTS).expect("reads"));
    assert_eq!(counted(), (all + 2, fruitful + 1));
}

/// A checkpoint that is taken before the indexes are attached would forget them: who leaves chunks to the log at a
/// start asks for one when that is through, and not before.
#[test]
fn a_checkpoint_for_what_a_start_has_left_waits_for_the_start() {
    const CHUNKS: u64 = 400;
    let place = Place::saved(1);
    for _ in 0..CHUNKS / 8 {
        place.insert(8 * SLOTS);
    }
    let home = place.home.clone();
    drop(place);
    home.crash();
    let place = open(&home, 4 << 20);
    let totals = &place.engine.inner().memory_queue.logged;
    assert!(totals.of_start() > 0, "there is room for all of it");
    let mut eviction = LogEviction::default();
    let mut wants = || eviction.wants_checkpoint(place.engine.inner());
    assert!(!wants(), "the start is not through");
    place.engine.finish_startup();
    assert!(wants());
    place.engine.checkpoint().expect("taken");
    assert_eq!(totals.of_start(), 0);
    assert!(!wants());
}

/// No checkpoint has what a dropped table has left in the log: it counts no more, and nobody takes one for it.
#[test]
fn what_dropped_tables_have_left_is_not_waited_for() {
    let place = Place::saved(3);
    place.leave(3);
    let totals = &place.engine.inner().memory_queue.logged;
    assert!(totals.dirty_bytes() > 0);
    place.engine.drop_table(TABLE);
    assert_eq!((totals.chunks(), totals.dirty_bytes()), (0, 0));
    // Once only, whoever looks at the notes still.
    let notes: Vec<_> = (0..3).map(|chunk| place.note(chunk)).collect();
    drop((notes, place.table));
    assert_eq!((totals.chunks(), totals.dirty_bytes()), (0, 0));
}

/// Who still reads a table that was dropped, and that the newest checkpoint does not have, is told so.
#[test]
fn who_reads_what_a_dropped_table_has_left_is_told_that_it_was_dropped() {
    let place = Place::saved(2);
    place.leave(2);
    place.engine.drop_table(TABLE);
    // Nothing of it has to be in the log behind that.
    place.engine.create_table(TableId(20_002));
    let mut txn = place.worker.begin(Isolation::ReadCommitted);
    let other = place.engine.table(TableId(20_002)).expect("it was made");
    txn.insert(&other, &row(1)).expect("inserts");
    place.commit(txn);
    assert!(place.engine.checkpoint().expect("taken").written);
    let told = place.look(0).expect_err("it is gone").to_string();
    assert!(told.ends_with("the table was dropped"), "{told}");
}

/// The free row numbers of a chunk that only the log has and that could not be read are used again when it has come.
#[test]
fn row_numbers_of_what_was_out_of_reach_are_used_again() {
    let place = Place::saved(2);
    place.write(7, None);
    place.write(SLOTS, Some(2));
    {
        let _service = place.service();
        assert_eq!(place.engine.evict_all_to_log(), 2);
    }
    let objects = LogHome::from(place.home.clone()).objects;
    let listed = objects.list_objects().expect("lists");
    let pages = listed.iter().max_by_key(|info| info.size_bytes);
    let pages = pages.expect("there is a checkpoint");
    place
        .home
        .set_unreadable(Some((pages.id, pages.size_bytes)));
    place.look(0).expect_err("its pages cannot be read");
    let insert = || {
        let mut txn = place.worker.begin(Isolation::ReadCommitted);
        let rid = loop {
            match txn.insert(&place.table, &row(4)) {
                Ok(rid) => break rid,
                Err(WriteError::Absent(absent)) => absent.load_here(&txn).expect("reads"),
                Err(error) => panic!("{error}"),
            }
        };
        place.commit(txn);
        rid
    };
    assert_eq!(insert(), Rid(2 * SLOTS), "a new one: it is out of reach");
    place.home.set_unreadable(None);
    assert!(place.look(0).expect("reads"));
    assert_eq!(insert(), Rid(7));
}

/// What a restarted instance has left to the log is taken over by the next checkpoint, which is asked for.
#[test]
fn what_a_restart_has_left_asks_for_a_checkpoint() {
    let options = EngineOptions {
        workers: 2,
        instances: 2,
        ..EngineOptions::default()
    };
    let home = LogHome::from(MemoryHome::new(8 << 20));
    let (engine, _) = Engine::open(options, home, Env::simulated(1).0).expect("opens");
    let table = engine.create_table(TABLE);
    engine.finish_startup();
    let mut txn = engine.worker(WorkerId(0)).begin(Isolation::ReadCommitted);
    txn.insert(&table, &row(1)).expect("inserts");
    txn.try_precommit().expect("room");
    let mut eviction = LogEviction::default();
    assert!(!eviction.wants_checkpoint(engine.inner()));
    let owner = engine.instances().of_partition(table.rows.home_partition());
    let dropped = engine.drop_instance(owner, 60_000, |_| {});
    assert_eq!(dropped.expect("dropped").chunks_logged, 1);
    assert!(eviction.wants_checkpoint(engine.inner()));
    engine.checkpoint().expect("taken");
    assert!(!eviction.wants_checkpoint(engine.inner()));
}
