//! What cannot be read for a while: inserts go elsewhere, checkpoints go on, and what can be read again is whole.

use std::collections::BTreeMap;

use logstead_engine::{
    Engine, EngineOptions, FaultError, FlushMode, Guard, LogHome, MemoryHome, Rid, ScanCursor, Txn,
    WriteError,
};

use logstead_env::Env;
use logstead_home::ObjectId;

use crate::eviction::{Place, TABLE, look, of_bytes, open};
use crate::room::noise;
use crate::world::{block_on, column, commit};

const CHUNK: u64 = 64;

struct World {
    memory: MemoryHome,
    home: LogHome,
}

impl World {
    fn new() -> World {
        let memory = MemoryHome::new(64 << 20);
        let home = LogHome::from(memory.clone());
        World { memory, home }
    }

    fn open(&self) -> Place {
        open(&self.home, u64::MAX)
    }

    fn restart(&self, place: Place) -> Place {
        place.worker.flush(FlushMode::Inline);
        drop(place);
        self.memory.crash();
        self.open()
    }

    /// The object with most of the pages.
    fn largest(&self) -> ObjectId {
        let objects = self.home.objects.list_objects().expect("listed");
        let largest = objects.iter().max_by_key(|info| info.size_bytes);
        largest.expect("some").id
    }

    fn bytes(&self, id: ObjectId) -> Vec<u8> {
        let objects = self.home.objects.list_objects().expect("listed");
        let info = objects.iter().find(|info| info.id == id).expect("there");
        let mut bytes = vec![0; info.size_bytes as usize];
        self.home
            .objects
            .read_object(id, 0, &mut bytes)
            .expect("read");
        bytes
    }

    fn replace(&self, id: ObjectId, bytes: &[u8]) {
        self.home.objects.remove_object(id).expect("removed");
        self.home.objects.put_object(id, bytes).expect("stored");
    }

    /// Makes what lies in its first chunk unreadable, in one way or the other, and gives what makes it whole again.
    fn damage(&self, id: ObjectId, by_flip: bool) -> Vec<u8> {
        let whole = self.bytes(id);
        if by_flip {
            let mut damaged = whole.clone();
            damaged[whole.len() / 8] ^= 0x10;
            self.replace(id, &damaged);
        } else {
            self.unreadable(id);
        }
        whole
    }

    /// The pages; not the directory behind them.
    fn unreadable(&self, id: ObjectId) {
        let pages = self.bytes(id).len() as u64 / 4 * 3;
        self.memory.set_unreadable(Some((id, pages)));
    }

    /// Damages the nodes of the directory that lie behind the pages, and gives what makes them whole again.
    fn damage_nodes(&self, id: ObjectId) -> Vec<u8> {
        /// More than they take: the last pages are damaged too.
        const NODES_BYTES: usize = 12 << 10;
        let whole = self.bytes(id);
        let mut damaged = whole.clone();
        for at in (whole.len() - NODES_BYTES..whole.len()).step_by(50) {
            damaged[at] ^= 0x10;
        }
        self.replace(id, &damaged);
        whole
    }

    fn mend(&self, id: ObjectId, whole: &[u8]) {
        self.memory.set_unreadable(None);
        self.replace(id, whole);
    }
}

/// All rows, by number.
fn scan(place: &Place) -> Result<BTreeMap<u64, i64>, FaultError> {
    let mut txn = place.begin();
    let mut cursor = ScanCursor::new(&place.table);
    let mut rows = BTreeMap::new();
    loop {
        let next = {
            let guard = Guard::pin();
            let next = txn.scan_next(&mut cursor, &guard);
            next.map(|row| row.map(|row| (row.rid.0, column(&row, 1))))
        };
        match next {
            Ok(Some((rid, balance))) => assert_eq!(rows.insert(rid, balance), None),
            Ok(None) => return Ok(rows),
            Err(absent) => block_on(absent.wait(&mut txn))?,
        }
    }
}

fn fill(place: &Place, rows: u64) {
    let mut txn = place.begin();
    for rid in 0..rows {
        let put = txn.insert(&place.table, &noise(rid as i64, 1000));
        assert_eq!(put.expect("inserts"), Rid(rid));
    }
    commit(txn);
    place.collect();
}

fn write<T>(
    place: &Place,
    write: impl FnMut(&mut Txn) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let mut txn = place.begin();
    let written = place.write(&mut txn, write)?;
    commit(txn);
    place.collect();
    Ok(written)
}

fn insert(place: &Place) -> u64 {
    let new = noise(9_000, 1000);
    let put = write(place, |txn| txn.insert(&place.table, &new));
    put.expect("inserts, somewhere").0
}

fn delete(place: &Place, rid: u64) {
    let mut txn = place.begin();
    place.delete(&mut txn, rid);
    commit(txn);
    place.collect();
}

fn update(place: &Place, rid: u64, balance: i64) {
    let mut txn = place.begin();
    place.update(&mut txn, rid, balance).expect("updates");
    commit(txn);
    place.collect();
}

/// A free slot that is known to be free is used, though the chunk that it lies in has gone and cannot be read any more;
/// its other rows are there when it can be.
#[test]
fn inserts_do_not_need_pages_that_cannot_be_read() {
    for by_flip in [true, false] {
        let world = World::new();
        let place = world.open();
        fill(&place, 2 * CHUNK);
        for rid in [5, 6, 7] {
            delete(&place, rid);
        }
        place.checkpoint();
        let place = world.restart(place);
        assert_eq!(scan(&place).expect("read").len() as u64, 2 * CHUNK - 3);
        assert_eq!(place.engine.evict_all(), 2);
        let object = world.largest();
        let whole = world.damage(object, by_flip);
        let mut put = [insert(&place), insert(&place), insert(&place)];
        put.sort_unstable();
        assert_eq!(put, [5, 6, 7], "{by_flip}");
        assert_eq!(insert(&place), 2 * CHUNK);
        assert!(look(&place, 4).is_err(), "it cannot be read");
        place.checkpoint();
        world.mend(object, &whole);
        assert_eq!(look(&place, 4), Ok(Some(4)));
        let rows = scan(&place).expect("read");
        assert_eq!(rows.len() as u64, 2 * CHUNK + 1);
        assert!(put.iter().all(|rid| rows[rid] == 9_000));
    }
}

/// A chunk of which a part could be read when it came first has slots that may hold rows or be free. When all of it can
/// be read, those are free again that were; it can be scanned, written, saved and evicted like any other.
#[test]
fn a_chunk_is_whole_again_when_it_can_be_read() {
    for (by_flip, with_tail) in [(true, false), (false, false), (true, true), (false, true)] {
        let world = World::new();
        let place = world.open();
        fill(&place, CHUNK);
        for rid in [5, 6, 7] {
            delete(&place, rid);
        }
        place.checkpoint();
        let object = world.largest();
        let mut place = world.restart(place);
        // A page of its own, newer than the others.
        update(&place, 10, 1_010);
        if with_tail {
            place = world.restart(place);
            assert!(place.engine.chunk_counts().with_tails > 0);
        } else {
            place.checkpoint();
            place = world.restart(place);
            assert_eq!(place.engine.chunk_counts().with_tails, 0);
        }
        let whole = world.damage(object, by_flip);
        if with_tail {
            place.checkpoint();
            assert_eq!(place.engine.checkpoint_stats().damaged_chunks, 1);
            assert!(look(&place, 10).is_err(), "what changed of it is saved");
        } else {
            assert_eq!(look(&place, 10), Ok(Some(1_010)));
        }
        assert!(look(&place, 3).is_err());
        assert!(scan(&place).is_err());
        let put = insert(&place);
        assert!(put >= CHUNK, "{put}: nothing is known to be free");
        place.checkpoint();
        place.engine.evict_all();
        world.mend(object, &whole);
        let mut expected: BTreeMap<u64, i64> = (0..CHUNK).map(|rid| (rid, rid as i64)).collect();
        expected.extend([(10, 1_010), (put, 9_000)]);
        expected.retain(|rid, _| !(5..8).contains(rid));
        assert_eq!(scan(&place), Ok(expected.clone()), "{by_flip} {with_tail}");
        let mut again = [insert(&place), insert(&place), insert(&place)];
        again.sort_unstable();
        assert_eq!(again, [5, 6, 7], "{by_flip} {with_tail}");
        expected.extend(again.map(|rid| (rid, 9_000)));
        place.checkpoint();
        assert!(place.engine.evict_all() > 0, "nothing keeps it");
        assert_eq!(scan(&place), Ok(expected.clone()));
        delete(&place, 6);
        expected.remove(&6);
        place.checkpoint();
        let place = world.restart(place);
        assert_eq!(scan(&place), Ok(expected), "{by_flip} {with_tail}");
    }
}

/// A page can be read again while a checkpoint is writing its chunk, in which slots turn out to be free: its rows come
/// at once, and who wants one of these slots waits, and reads it a few times.
#[test]
fn a_chunk_that_is_whole_again_does_not_wait_for_a_checkpoint() {
    let world = World::new();
    let place = world.open();
    fill(&place, CHUNK);
    for rid in [5, 6, 7] {
        delete(&place, rid);
    }
    place.checkpoint();
    let object = world.largest();
    let place = world.restart(place);
    update(&place, 10, 1_010);
    place.checkpoint();
    let place = world.restart(place);
    world.unreadable(object);
    assert_eq!(look(&place, 10), Ok(Some(1_010)));
    update(&place, 10, 1_011);
    let held = world.memory.hold_objects();
    std::thread::scope(|scope| {
        let engine = place.engine.clone();
        let checkpoint = scope.spawn(move || engine.checkpoint().expect("taken"));
        while world.memory.objects_under_way() == 0 {
            std::thread::yield_now();
        }
        world.memory.set_unreadable(None);
        assert_eq!(look(&place, 3), Ok(Some(3)));
        assert!(!checkpoint.is_finished());
        let before = world.memory.object_reads().0;
        let memory = &world.memory;
        scope.spawn(move || {
            // The chunk has been read, and a free slot found.
            while memory.object_reads().0 == before {
                std::thread::yield_now();
            }
            drop(held);
        });
        assert_eq!(look(&place, 5), Ok(None));
        let reads = memory.object_reads().0 - before;
        assert!(reads < 20, "{reads}");
    });
    let mut again = [insert(&place), insert(&place), insert(&place)];
    again.sort_unstable();
    assert_eq!(again, [5, 6, 7]);
    let rows = scan(&place).expect("read");
    assert_eq!((rows.len() as u64, rows[&10]), (CHUNK, 1_011));
}

/// A page under what the log has changed cannot be read, or a change of one of its rows is longer than any page: the
/// checkpoint has all the same what the log says, names what it could not read, and the log may go. When the page can
/// be read, it is all there.
#[test]
fn a_checkpoint_goes_on_where_a_page_cannot_be_read() {
    const LONG: usize = 40 << 20;
    let world = World::new();
    let place = world.open();
    fill(&place, 2 * CHUNK);
    place.checkpoint();
    let object = world.largest();
    let mut place = world.restart(place);
    update(&place, 4, 1_004);
    let long = of_bytes(3, 1_003, LONG, b'y');
    let mut txn = place.begin();
    let (version, _) = place.read(&mut txn, 3).expect("a row");
    place
        .write(&mut txn, |txn| {
            txn.update(&place.table, Rid(3), version, &long)
        })
        .expect("updates");
    commit(txn);
    place.collect();
    delete(&place, 5);
    // In the other chunk.
    update(&place, CHUNK + 1, 1_065);
    place = world.restart(place);
    world.unreadable(object);
    for life in 0..2 {
        place.checkpoint();
        let stats = place.engine.checkpoint_stats();
        let damaged = if life == 0 { 2 } else { 0 };
        assert_eq!(stats.damaged_chunks, damaged, "{stats:?}");
        assert_eq!(stats.last_damage.is_some(), life == 0);
        assert_eq!(place.engine.chunk_counts().with_tails, 0);
        for rid in [3, 4, CHUNK + 1] {
            let told = look(&place, rid).expect_err("it cannot be read");
            assert!(matches!(told, FaultError::Unreachable(_)), "{told}");
        }
        place = world.restart(place);
        assert_eq!(
            place.engine.chunk_counts().with_tails,
            0,
            "nothing is in the log alone"
        );
    }
    world.memory.set_unreadable(None);
    let rows = scan(&place).expect("read");
    let mut expected: BTreeMap<u64, i64> = (0..2 * CHUNK).map(|rid| (rid, rid as i64)).collect();
    expected.extend([(3, 1_003), (4, 1_004), (CHUNK + 1, 1_065)]);
    expected.remove(&5);
    assert_eq!(rows, expected);
    let mut txn = place.begin();
    place.balance(&mut txn, 3);
    let guard = Guard::pin();
    let row = txn.read(&place.table, Rid(3), &guard).expect("in memory");
    assert!(row.expect("there").bytes.bytes() == &long[..], "all of it");
}

/// The last chunk, which new row numbers lie in, cannot be read: that is found out once, and not again for each of its
/// row numbers.
#[test]
fn a_last_chunk_that_cannot_be_read_is_tried_once() {
    const ROWS: u64 = 40;
    let world = World::new();
    let place = world.open();
    fill(&place, ROWS);
    place.checkpoint();
    let object = world.largest();
    // The log behind it has one more, so that nothing of the chunk comes without its pages.
    assert_eq!(insert(&place), ROWS);
    let place = world.restart(place);
    world.unreadable(object);
    for n in 0..3 {
        assert_eq!(insert(&place), CHUNK + n);
        assert_eq!(world.memory.refused_object_reads(), 1, "insert {n}");
    }
    world.memory.set_unreadable(None);
    assert_eq!(look(&place, 39), Ok(Some(39)));
    let mut again: Vec<u64> = (ROWS + 1..CHUNK).map(|_| insert(&place)).collect();
    again.sort_unstable();
    assert!(again.into_iter().eq(ROWS + 1..CHUNK), "none is lost");
    place.checkpoint();
    let place = world.restart(place);
    assert_eq!(scan(&place).expect("read").len() as u64, CHUNK + 3);
}

/// A row is changed all the time in a chunk of which the oldest page cannot be read: its pages do not become more and
/// more, and what they say of other rows, changed, deleted, or changed by the log alone, stays.
#[test]
fn deltas_over_a_page_that_cannot_be_read_do_not_pile_up() {
    for by_flip in [true, false] {
        let world = World::new();
        let place = world.open();
        fill(&place, CHUNK);
        place.checkpoint();
        let object = world.largest();
        let place = world.restart(place);
        for rid in [5, 6, 7] {
            delete(&place, rid);
        }
        update(&place, 20, 1_020);
        let mut again = [insert(&place), insert(&place), insert(&place)];
        again.sort_unstable();
        assert_eq!(again, [5, 6, 7]);
        let place = world.restart(place);
        let whole = world.damage(object, by_flip);
        place.checkpoint();
        assert!(look(&place, 20).is_err(), "its change is saved");
        let mut expected: BTreeMap<u64, i64> = (0..CHUNK).map(|rid| (rid, rid as i64)).collect();
        expected.extend([(20, 1_020), (6, 9_000)]);
        for n in 0..40 {
            update(&place, 5, n);
            expected.insert(5, n);
            match n {
                1 => update(&place, 6, 6_006),
                // The older page has a row there.
                2 => delete(&place, 7),
                _ => {}
            }
            place.checkpoint();
            place.engine.evict_all();
        }
        expected.insert(6, 6_006);
        expected.remove(&7);
        let before = world.memory.object_reads().0;
        assert_eq!(look(&place, 5), Ok(Some(39)));
        let reads = world.memory.object_reads().0 - before;
        assert!(reads < 12, "{reads}");
        assert_eq!(look(&place, 6), Ok(Some(6_006)));
        assert!(look(&place, 20).is_err() && look(&place, 3).is_err());
        let place = world.restart(place);
        assert_eq!(look(&place, 5), Ok(Some(39)));
        world.mend(object, &whole);
        assert_eq!(scan(&place), Ok(expected.clone()), "{by_flip}");
        update(&place, 5, 50);
        expected.insert(5, 50);
        place.checkpoint();
        let place = world.restart(place);
        assert_eq!(scan(&place), Ok(expected), "{by_flip}");
    }
}

/// Nodes of the pages' directory cannot be read under which the log has changed rows, and under which new ones come:
/// the checkpoint has all of that, names the damage, and the log may go. What the nodes name is there when they can be
/// read again.
#[test]
fn a_checkpoint_goes_on_where_a_node_of_the_directory_cannot_be_read() {
    const CHUNKS: u64 = 200;
    const HIDDEN: u64 = 100 * CHUNK;
    let world = World::new();
    let place = world.open();
    let mut txn = place.begin();
    for rid in 0..CHUNKS * CHUNK {
        let put = txn.insert(&place.table, &noise(rid as i64, 60));
        assert_eq!(put.expect("inserts"), Rid(rid));
    }
    commit(txn);
    place.collect();
    place.checkpoint();
    let object = world.largest();
    let place = world.restart(place);
    // The root, and the first leaf, are in another object.
    update(&place, 3, 1_003);
    place.checkpoint();
    let mut place = world.restart(place);
    update(&place, HIDDEN + 4, 1_004);
    delete(&place, HIDDEN + 5);
    let whole = world.damage_nodes(object);
    place = world.restart(place);
    assert!(place.engine.chunk_counts().with_tails > 0);
    let mut expected: BTreeMap<u64, i64> =
        (0..CHUNKS * CHUNK).map(|rid| (rid, rid as i64)).collect();
    expected.extend([(3, 1_003), (HIDDEN + 4, 1_004)]);
    expected.remove(&(HIDDEN + 5));
    for life in 0..3 {
        let new = insert(&place);
        assert!(new >= CHUNKS * CHUNK, "{new}");
        expected.insert(new, 9_000);
        update(&place, new, 9_001 + life);
        expected.insert(new, 9_001 + life);
        update(&place, 7, 70 + life);
        expected.insert(7, 70 + life);
        place.checkpoint();
        let stats = place.engine.checkpoint_stats();
        let told = stats.last_damage.expect("it is told");
        assert!(told.contains("page directory") || life == 0, "{told}");
        assert_eq!(place.engine.chunk_counts().with_tails, 0);
        place.engine.evict_all();
        assert_eq!(look(&place, new), Ok(Some(9_001 + life)));
        assert_eq!(look(&place, 7), Ok(Some(70 + life)));
        assert_eq!(look(&place, 9), Ok(Some(9)));
        for rid in [HIDDEN + 4, HIDDEN + 6] {
            assert!(look(&place, rid).is_err(), "it cannot be found");
        }
        place = world.restart(place);
        assert_eq!(
            place.engine.chunk_counts().with_tails,
            0,
            "nothing is in the log alone"
        );
    }
    world.mend(object, &whole);
    let place = world.restart(place);
    assert_eq!(scan(&place), Ok(expected.clone()));
    update(&place, HIDDEN + 6, 1_006);
    expected.insert(HIDDEN + 6, 1_006);
    place.checkpoint();
    assert_eq!(place.engine.checkpoint_stats().last_damage, None);
    let place = world.restart(place);
    assert_eq!(scan(&place), Ok(expected));
}

/// A table is dropped of whose pages some cannot be found: those that can go at once, the others when they can be
/// found, in whatever life that is.
#[test]
fn the_pages_of_a_dropped_table_go_when_they_can_be_found() {
    const CHUNKS: u64 = 200;
    let world = World::new();
    let place = world.open();
    let mut txn = place.begin();
    for rid in 0..CHUNKS * CHUNK {
        let put = txn.insert(&place.table, &noise(rid as i64, 60));
        assert_eq!(put.expect("inserts"), Rid(rid));
    }
    commit(txn);
    place.collect();
    place.checkpoint();
    let object = world.largest();
    let place = world.restart(place);
    // The root, and the first and the last leaf, are in another object.
    update(&place, 3, 1_003);
    update(&place, CHUNKS * CHUNK - 1, 1_004);
    let all = place.engine.checkpoint().expect("taken").bytes_live;
    let whole = world.damage_nodes(object);
    let place = world.restart(place);
    place.engine.drop_table(TABLE);
    let left = place.engine.checkpoint().expect("taken").bytes_live;
    assert!(0 < left && left < all, "{left} of {all}");
    assert!(place.engine.checkpoint_stats().last_damage.is_some());
    drop(place);
    world.mend(object, &whole);
    world.memory.crash();
    // Nobody makes the table again.
    let (env, _) = Env::simulated(1);
    let options = EngineOptions {
        workers: 2,
        ..EngineOptions::default()
    };
    let (engine, _) = Engine::open(options, world.home.clone(), env).expect("opens");
    assert_eq!(engine.checkpoint().expect("taken").bytes_live, 0);
    assert_eq!(engine.checkpoint_stats().last_damage, None);
}

/// The root of the pages' directory cannot be read from the start on: it may be a fork, so checkpoints fail and the log
/// stays, which has what has changed. What is known of the directory once stays known.
#[test]
fn no_checkpoint_is_taken_while_a_root_that_was_never_read_cannot_be() {
    let world = World::new();
    let place = world.open();
    fill(&place, 2 * CHUNK);
    place.checkpoint();
    let object = world.largest();
    let mut place = world.restart(place);
    update(&place, 4, 1_004);
    delete(&place, 5);
    let whole = world.bytes(object);
    for _life in 0..2 {
        world.memory.set_unreadable(Some((object, u64::MAX)));
        place = world.restart(place);
        assert!(place.engine.chunk_counts().with_tails > 0);
        for _ in 0..2 {
            place.engine.checkpoint().expect_err("not known");
        }
        assert!(look(&place, 6).is_err());
    }
    world.mend(object, &whole);
    let mut expected: BTreeMap<u64, i64> = (0..2 * CHUNK).map(|rid| (rid, rid as i64)).collect();
    expected.insert(4, 1_004);
    expected.remove(&5);
    assert_eq!(scan(&place), Ok(expected.clone()));
    // A node from here on, whether it can be read or not.
    world.memory.set_unreadable(Some((object, u64::MAX)));
    place.checkpoint();
    world.mend(object, &whole);
    place.checkpoint();
    let place = world.restart(place);
    assert_eq!(scan(&place), Ok(expected));
}
