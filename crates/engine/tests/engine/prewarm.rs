//! Memory that is warm in the next engine: what the list names, and what comes in of it.

use std::ops::Bound;
use std::sync::Arc;

use logstead_engine::{
    Engine, Evictor, FlushMode, Guard, IndexCursor, LogHome, MemoryHome, PrewarmList, PrewarmState,
    PrewarmStats, Table, TableId, Warmup,
};

use crate::eviction::{Place, look, of_bytes, open};
use crate::stored_indexes::{self, KINDS, UNIQUE};
use crate::world::{block_on, commit};

/// Rows of a chunk.
const CHUNK: u64 = 64;
const CHUNKS: u64 = 40;
const OTHER: TableId = TableId(20_001);

/// Everything in a checkpoint, and nothing in memory.
fn saved() -> (MemoryHome, LogHome, Place) {
    let memory = MemoryHome::new(8 << 20);
    let home = LogHome::from(memory.clone());
    let place = Place::saved_in(&home, (CHUNKS * CHUNK) as i64);
    assert_eq!(place.engine.evict_all(), CHUNKS);
    (memory, home, place)
}

fn read(place: &Place, rids: impl Iterator<Item = u64>) {
    for rid in rids {
        assert_eq!(look(place, rid).expect("read"), Some(100));
    }
}

/// Another life over the same home.
fn reopened(place: Place, memory: &MemoryHome, home: &LogHome, bytes: u64) -> Place {
    place.worker.flush(FlushMode::Inline);
    drop(place);
    memory.crash();
    open(home, bytes)
}

fn list(engine: &Engine) -> PrewarmList {
    let list = engine.prewarm_list(|| true);
    let other = PrewarmList::decode(&list.encode()).expect("a list");
    assert_eq!(other, list);
    other
}

fn rows_loaded(engine: &Engine) -> u64 {
    engine.eviction_stats().rows_loaded
}

fn chunks(stats: PrewarmStats) -> (u64, u64, u64) {
    (
        stats.chunks_listed,
        stats.chunks_loaded,
        stats.chunks_skipped,
    )
}

/// Whole chunks, and single rows of chunks, come in as they were there; who reads them finds them.
#[test]
fn what_is_listed_comes_in_and_nothing_else() {
    let (memory, home, place) = saved();
    assert_eq!(list(&place.engine).chunk_count(), 0);
    for chunk in [3, 4, 30] {
        for slot in 0..CHUNK {
            // Each in a transaction of its own: one that reads two gets the chunk.
            read(&place, std::iter::once(chunk * CHUNK + slot));
        }
    }
    let single = [7 * CHUNK + 1, 9 * CHUNK + 63];
    read(&place, single.into_iter());
    let before = list(&place.engine);
    assert_eq!((before.chunk_count(), before.run_count()), (5, 4));
    let place = reopened(place, &memory, &home, u64::MAX);
    assert_eq!(place.engine.prewarm_stats(), PrewarmStats::default());
    place.engine.prewarm(&before, || true);
    let stats = place.engine.prewarm_stats();
    assert_eq!(chunks(stats), (5, 5, 0));
    assert_eq!(stats.state, PrewarmState::Ended);
    assert_eq!(rows_loaded(&place.engine), 3 * CHUNK + 2);
    read(&place, 3 * CHUNK..5 * CHUNK);
    read(&place, 30 * CHUNK..31 * CHUNK);
    read(&place, single.into_iter());
    assert_eq!(rows_loaded(&place.engine), 3 * CHUNK + 2, "they were there");
    // What is there already is skipped.
    let again = list(&place.engine);
    assert_eq!(again.chunk_count(), 5);
    place.engine.prewarm(&again, || true);
    assert_eq!(chunks(place.engine.prewarm_stats()), (5, 5, 5));
    assert_eq!(rows_loaded(&place.engine), 3 * CHUNK + 2);
}

/// It ends when it is told to, and where nothing is left to be listed.
#[test]
fn it_ends_when_it_is_told_to() {
    let (memory, home, place) = saved();
    read(&place, 0..CHUNKS * CHUNK);
    let all = list(&place.engine);
    assert_eq!(all.chunk_count(), CHUNKS);
    assert_eq!(place.engine.prewarm_list(|| false).chunk_count(), 0);
    let place = reopened(place, &memory, &home, u64::MAX);
    let asked = std::cell::Cell::new(0);
    place.engine.prewarm(&all, || {
        asked.set(asked.get() + 1);
        rows_loaded(&place.engine) < 5 * CHUNK
    });
    assert_eq!(chunks(place.engine.prewarm_stats()), (CHUNKS, 5, 0));
    assert!(asked.get() >= 5);
}

/// What is of another database, of no table, or behind the end of one is passed over, however much it is said to be.
#[test]
fn what_there_is_not_is_skipped() {
    let (memory, home, place) = saved();
    let other = place.engine.create_table(OTHER);
    let mut txn = place.begin();
    for _ in 0..3 * CHUNK {
        txn.insert(&other, &of_bytes(1, 1, 10, b'x'))
            .expect("inserts");
    }
    commit(txn);
    place.checkpoint();
    read(&place, 0..2 * CHUNK);
    let both = list(&place.engine);
    assert_eq!(both.chunk_count(), 5);
    // The database's identity is behind the number of the form.
    let bytes = both.encode();
    drop(other);
    let place = reopened(place, &memory, &home, u64::MAX);
    place.engine.drop_table(OTHER);
    place.engine.prewarm(&both, || true);
    assert_eq!(chunks(place.engine.prewarm_stats()), (5, 2, 3));

    let mut foreign = bytes.clone();
    foreign[1] ^= 1;
    let foreign = PrewarmList::decode(&foreign).expect("a list of another database");
    let place = reopened(place, &memory, &home, u64::MAX);
    place.engine.prewarm(&foreign, || true);
    assert_eq!(chunks(place.engine.prewarm_stats()), (5, 0, 5));
    assert_eq!(rows_loaded(&place.engine), 0);

    // A smaller database with the same tables.
    let small_memory = MemoryHome::new(8 << 20);
    let small = Place::saved_in(&LogHome::from(small_memory.clone()), CHUNK as i64);
    small.engine.evict_all();
    small.engine.prewarm(&both, || true);
    let stats = small.engine.prewarm_stats();
    assert_eq!(
        chunks(stats),
        (5, 1, 4),
        "simulated databases have one identity"
    );
}

/// A table of which the chunks that are hot come last, and a budget for a part of it.
#[test]
fn what_is_hot_comes_first_and_nothing_is_evicted_for_it() {
    const BUDGET: u64 = 16 << 20;
    const ROWS: u64 = 40_000;
    let memory = MemoryHome::new(64 << 20);
    let home = LogHome::from(memory.clone());
    let place = open(&home, u64::MAX);
    for first in (0..ROWS).step_by(1000) {
        let mut txn = place.begin();
        for key in first..first + 1000 {
            txn.insert(&place.table, &of_bytes(key as i64, 100, 1000, b'x'))
                .expect("inserts");
        }
        commit(txn);
    }
    place.checkpoint();
    let place = reopened(place, &memory, &home, u64::MAX);
    place.engine.bring_all(|| true).expect("brought in");
    // The warm-up is no reason to think that anybody has use for it.
    let hot = ROWS - 20 * CHUNK..ROWS;
    read(&place, hot.clone());
    let all = list(&place.engine);
    assert_eq!((all.chunk_count(), all.run_count()), (ROWS / CHUNK, 2));

    let place = reopened(place, &memory, &home, BUDGET);
    let evictor = Evictor::start(&place.engine, false).expect("starts");
    place.engine.prewarm(&all, || true);
    let stats = place.engine.prewarm_stats();
    assert!(
        stats.chunks_loaded > 20 && stats.chunks_loaded < stats.chunks_listed / 2,
        "{stats:?}"
    );
    assert_eq!(stats.chunks_skipped, 0);
    let used = place.engine.memory().used_bytes();
    let usable = BUDGET - place.engine.memory().reserve_bytes();
    assert!(
        used > usable / 2 && used < usable * 8 / 10,
        "{used} of {usable}"
    );
    let before = rows_loaded(&place.engine);
    read(&place, hot);
    assert_eq!(rows_loaded(&place.engine), before, "what is hot is there");
    assert_eq!(place.engine.eviction_stats().rows_evicted, 0);
    drop(evictor);
}

/// By the thread that brings in everything after a start: what is listed comes before the rest, on several threads.
#[test]
fn the_warmup_begins_with_it() {
    let (memory, home, place) = saved();
    read(&place, 20 * CHUNK..30 * CHUNK);
    let ten = list(&place.engine);
    let place = reopened(place, &memory, &home, u64::MAX);
    let (told, heard) = std::sync::mpsc::channel();
    let engine = place.engine.clone();
    let warmup = Warmup::start(&place.engine, Some(ten), move |ended| {
        told.send((ended, engine.prewarm_stats()))
            .expect("somebody listens");
    });
    let (ended, stats) = heard.recv().expect("it ends");
    ended.expect("everything can be read");
    drop(warmup.expect("starts"));
    assert_eq!(
        (chunks(stats), stats.state),
        ((10, 10, 0), PrewarmState::Ended)
    );
    let counts = place.engine.chunk_counts();
    assert_eq!(
        (counts.all, counts.present),
        (CHUNKS, CHUNKS),
        "and then the rest"
    );
}

/// The first entries of an index, from a key on.
fn walk(place: &stored_indexes::Place, from: Bound<Vec<u8>>, count: usize) {
    let index = place.index(UNIQUE);
    let mut txn = place.begin();
    let mut cursor = IndexCursor::new(&index, from, Bound::Unbounded, false);
    let mut found = 0;
    while found < count {
        let next = {
            let guard = Guard::pin();
            txn.index_next(&mut cursor, &guard).map(|row| row.is_some())
        };
        match next {
            Ok(true) => found += 1,
            Ok(false) => panic!("there are not so many"),
            Err(absent) => block_on(absent.wait(&mut txn)).expect("brought in"),
        }
    }
}

/// Leaves come in as well, those that were there.
#[test]
fn leaves_come_in() {
    let place = stored_indexes::Place::with(&KINDS[..1]);
    let table: Arc<Table> = Arc::clone(&place.table);
    for first in 0..40 {
        let mut txn = place.begin();
        for k in first * 100..(first + 1) * 100 {
            txn.insert(&table, &stored_indexes::row(k, k))
                .expect("inserts");
        }
        commit(txn);
    }
    drop(table);
    place.flush();
    place.engine.checkpoint().expect("taken");
    let index = place.index(UNIQUE);
    assert!(index.evict_all_leaves() > 100);
    assert_eq!(place.engine.prewarm_list(|| true).leaf_count(), 0);
    drop(index);
    let from = crate::world::number(2_000).to_vec();
    walk(&place, Bound::Included(from.clone()), 500);
    let warm = list(&place.engine);
    let leaves = warm.leaf_count();
    assert!(leaves > 10 && leaves < 100, "{leaves}");
    let (memory, home) = place.stop();
    let place = stored_indexes::Place::over(memory, home, &KINDS[..1]);
    assert_eq!(place.restored, 1);
    place.engine.prewarm(&warm, || true);
    let stats = place.engine.prewarm_stats();
    assert_eq!(stats.leaves_listed, leaves);
    assert!(stats.leaves_loaded >= leaves, "{stats:?}");
    let index = place.index(UNIQUE);
    let (absent, ranges) = (index.absent_leaf_count(), index.absent_range_count());
    walk(&place, Bound::Included(from), 500);
    assert_eq!(
        (index.absent_leaf_count(), index.absent_range_count()),
        (absent, ranges),
        "they were there"
    );
    assert_eq!(list(&place.engine).leaf_count(), leaves);
    index.check().expect("in order");
    // Without the index they are passed over.
    let table = Arc::clone(&place.table);
    place.engine.drop_index(&table, UNIQUE);
    place.engine.prewarm(&warm, || true);
    assert!(table.index(UNIQUE).is_none());
}
