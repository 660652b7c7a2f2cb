//! What the log behind the checkpoint says of absent chunks, where memory is small beside it: starts that need no more
//! than the life before had, and first checkpoints that need no room for what the log has changed ([pending]).

use std::collections::BTreeMap;
use std::time::Duration;

use logstead_engine::{FaultError, FlushMode, Guard, LogHome, MemoryHome, Rid, Txn, WriteError};

use crate::eviction::{Place, TABLE, look, of_bytes, open};
use crate::room::noise;
use crate::world::commit;

const BUDGET: u64 = 16 << 20;
const ROWS: u64 = 40_000;
/// Rows of a chunk.
const CHUNK: u64 = 64;

fn home() -> (MemoryHome, LogHome) {
    let memory = MemoryHome::new(64 << 20);
    let home = LogHome::from(memory.clone());
    (memory, home)
}

/// What makes a row a kilobyte, in its first or a later state.
fn filled(rid: u64, balance: i64, filling: u8) -> Vec<u8> {
    of_bytes(rid as i64, balance, 1000, filling)
}

/// 2.5 times the budget, in a checkpoint.
fn larger_than_memory(home: &LogHome) -> Place {
    let place = open(home, BUDGET);
    for first in (0..ROWS).step_by(1000) {
        let mut txn = place.begin();
        for rid in first..first + 1000 {
            let new = filled(rid, 0, b'x');
            let put = place.write(&mut txn, |txn| txn.insert(&place.table, &new));
            assert_eq!(put.expect("inserts"), Rid(rid));
        }
        commit(txn);
        place.collect();
        place.checkpoint();
        evict(&place);
    }
    place
}

/// Evicts what can go, and waits a while until it is free: other tests of the process may look at something.
fn evict(place: &Place) {
    place.engine.evict_all();
    for _ in 0..80 {
        if place.engine.memory().used_bytes() < BUDGET / 2 {
            return;
        }
        drop(Guard::pin());
        place.collect();
        std::thread::sleep(Duration::from_micros(250));
    }
}

/// Gives rows other balances, and another filling.
fn change(place: &Place, rids: impl Iterator<Item = u64>, balance: i64, filling: u8) {
    let rids: Vec<u64> = rids.collect();
    for some in rids.chunks(100) {
        let mut txn = place.begin();
        for rid in some {
            let (version, _) = place.read(&mut txn, *rid).expect("a row");
            let new = filled(*rid, balance, filling);
            let rid = Rid(*rid);
            place
                .write(&mut txn, |txn| txn.update(&place.table, rid, version, &new))
                .expect("updates");
        }
        commit(txn);
        place.collect();
        evict(place);
    }
}

fn crash(place: Place, memory: &MemoryHome) {
    place.worker.flush(FlushMode::Inline);
    drop(place);
    memory.crash();
}

fn assert_balances(place: &Place, balance: impl Fn(u64) -> i64) {
    for first in (0..ROWS).step_by(1000) {
        let mut txn = place.begin();
        for rid in first..first + 1000 {
            assert_eq!(place.balance(&mut txn, rid), Some(balance(rid)), "{rid}");
        }
        txn.abort();
        evict(place);
    }
}

/// Some rows of every chunk were changed, more than an eighth of the budget, and all chunks together are larger than
/// memory: the rows that were in memory before the crash are all that is needed after it.
#[test]
fn a_start_needs_what_the_life_before_had_changed() {
    let (memory, home) = home();
    let place = larger_than_memory(&home);
    let is_changed = |rid: u64| rid % CHUNK < 10;
    change(&place, (0..ROWS).filter(|rid| is_changed(*rid)), 7, b'y');
    crash(place, &memory);
    let place = open(&home, BUDGET);
    let used = place.engine.memory().used_bytes();
    assert!(used > BUDGET / 3, "{used}: more than a little was kept");
    place.checkpoint();
    assert_balances(&place, |rid| if is_changed(rid) { 7 } else { 0 });
}

/// One life after the other changes rows that the next one does not read, a few bytes of each: together they are more
/// than memory holds, and no checkpoint needs them there.
#[test]
fn a_first_checkpoint_needs_no_room_for_what_the_log_has_changed() {
    let (memory, home) = home();
    let mut place = larger_than_memory(&home);
    let life_of = |rid: u64| rid / CHUNK % 6;
    for life in 0..3 {
        let rids = (0..ROWS).filter(|rid| life_of(*rid) == life);
        change(&place, rids, 10 + life as i64, b'x');
        crash(place, &memory);
        place = open(&home, BUDGET);
    }
    let counts = place.engine.chunk_counts();
    assert!(counts.with_tails * CHUNK * 1000 > BUDGET, "{counts:?}");
    place.checkpoint();
    let counts = place.engine.chunk_counts();
    assert_eq!(counts.with_tails, 0);
    let balance = |rid| match life_of(rid) {
        life @ 0..3 => 10 + life as i64,
        _ => 0,
    };
    assert_balances(&place, balance);
    crash(place, &memory);
    assert_balances(&open(&home, BUDGET), balance);
}

/// One write in a transaction of its own.
fn write<T>(place: &Place, mut write: impl FnMut(&mut Txn) -> Result<T, WriteError>) -> T {
    let mut txn = place.begin();
    let written = place.write(&mut txn, &mut write).expect("written");
    commit(txn);
    place.collect();
    written
}

fn update(place: &Place, rid: u64, balance: i64) {
    let mut txn = place.begin();
    place.update(&mut txn, rid, balance).expect("updates");
    commit(txn);
    place.collect();
}

fn delete(place: &Place, rid: u64) {
    let mut txn = place.begin();
    place.delete(&mut txn, rid);
    commit(txn);
    place.collect();
}

/// A damaged page costs the rows that are there alone. What the log says of others in its chunk is in the next
/// checkpoint, and so are all other chunks; what it has changed of lost ones counts when the page is whole again.
#[test]
fn a_damaged_page_under_a_tail_costs_its_own_rows() {
    const NEW: i64 = 9_000;
    // The chunk is full, or has slots that were never used.
    for count in [2 * CHUNK, 40] {
        let (memory, home) = home();
        let place = open(&home, u64::MAX);
        let mut txn = place.begin();
        for rid in 0..count {
            let put = txn.insert(&place.table, &noise(rid as i64, 1000));
            assert_eq!(put.expect("inserts"), Rid(rid));
        }
        commit(txn);
        place.collect();
        place.checkpoint();
        let objects = home.objects.list_objects().expect("listed");
        let largest = objects.iter().max_by_key(|info| info.size_bytes);
        let largest = largest.expect("some");
        let mut whole = vec![0; largest.size_bytes as usize];
        home.objects
            .read_object(largest.id, 0, &mut whole)
            .expect("read");
        let mut damaged = whole.clone();
        damaged[whole.len() / 8] ^= 0x10;
        let crash_with = |place: Place, bytes: &[u8]| {
            crash(place, &memory);
            home.objects.remove_object(largest.id).expect("removed");
            home.objects.put_object(largest.id, bytes).expect("stored");
            open(&home, u64::MAX)
        };
        // The log: changed, deleted, deleted and used again, new.
        update(&place, 10, NEW);
        update(&place, 3, NEW);
        delete(&place, 6);
        delete(&place, 4);
        let new = noise(NEW, 1000);
        let again = write(&place, |txn| txn.insert(&place.table, &new)).0;
        let added = write(&place, |txn| txn.insert(&place.table, &new)).0;
        let last = write(&place, |txn| txn.insert(&place.table, &new)).0;
        assert!(again < CHUNK && added < CHUNK && last == count);
        delete(&place, 8);
        let mut expected: BTreeMap<u64, Option<i64>> =
            (0..count).map(|rid| (rid, Some(rid as i64))).collect();
        expected.extend([(3, Some(NEW)), (10, Some(NEW)), (8, None)]);
        expected.extend([again, added, last].map(|rid| (rid, Some(NEW + 3))));

        let mut place = crash_with(place, &damaged);
        assert!(place.engine.chunk_counts().with_tails > 0);
        let is_lost = |place: &Place, rid: u64| match look(place, rid) {
            Err(FaultError::Damaged(what)) => {
                what.contains("chunk 0") && what.contains(&largest.id.to_string())
            }
            _ => false,
        };
        assert!(is_lost(&place, 3) && is_lost(&place, 10));
        place.checkpoint();
        let stats = place.engine.checkpoint_stats();
        assert_eq!(stats.damaged_chunks, 1, "{stats:?}");
        let told = stats.last_damage.expect("told");
        assert!(told.contains("chunk 0"), "{told}");
        for life in 0..3 {
            assert_eq!(place.engine.chunk_counts().with_tails, 0);
            for rid in [again, added, last] {
                assert_eq!(look(&place, rid), Ok(Some(NEW + life)), "row {rid}");
            }
            assert!(is_lost(&place, 3) && is_lost(&place, 10), "life {life}");
            if life == 0 {
                assert_eq!(look(&place, 8), Ok(None));
            }
            // What can be read can be written, and is in the next checkpoint.
            for rid in [again, added, last] {
                update(&place, rid, NEW + life + 1);
            }
            let one_more = write(&place, |txn| txn.insert(&place.table, &new)).0;
            expected.insert(one_more, Some(NEW));
            place.checkpoint();
            place.engine.evict_all();
            assert_eq!(look(&place, one_more), Ok(Some(NEW)));
            assert!(is_lost(&place, 3) && is_lost(&place, 10), "life {life}");
            place = crash_with(place, &damaged);
        }
        // Whole again.
        let place = crash_with(place, &whole);
        assert!(expected.len() as u64 > count + 1);
        for (rid, expected) in expected {
            assert_eq!(look(&place, rid), Ok(expected), "row {rid} of {count}");
        }
        place.checkpoint();
        let stats = place.engine.checkpoint_stats();
        assert_eq!(stats.damaged_chunks, 0, "{stats:?}");
    }
}

/// A table is dropped before a checkpoint has what the log says of it: who still has it is told so, and does not wait
/// for a checkpoint that never comes.
#[test]
fn a_row_of_a_dropped_table_is_not_waited_for() {
    let (memory, home) = home();
    let place = Place::saved_in(&home, CHUNK as i64);
    update(&place, 3, 7);
    crash(place, &memory);
    let place = open(&home, u64::MAX);
    assert_eq!(place.engine.chunk_counts().with_tails, 1);
    place.engine.drop_table(TABLE);
    place.checkpoint();
    for rid in [3, 4] {
        let told = look(&place, rid).expect_err("no checkpoint has it");
        assert!(told.to_string().contains("dropped"), "{told}");
    }
}

/// The pages under what the log has changed, and of rows that are absent of chunks that are written whole, are read
/// together where they lie together.
#[test]
fn a_checkpoint_reads_older_pages_together() {
    const CHUNKS: u64 = 128;
    let (memory, home) = home();
    let place = open(&home, u64::MAX);
    let mut txn = place.begin();
    for rid in 0..CHUNKS * CHUNK {
        let put = txn.insert(&place.table, &noise(rid as i64, 60));
        assert_eq!(put.expect("inserts"), Rid(rid));
    }
    commit(txn);
    place.collect();
    place.checkpoint();
    let touch = |place: &Place, balance: i64| {
        let mut txn = place.begin();
        for chunk in 0..CHUNKS {
            place
                .update(&mut txn, chunk * CHUNK + 3, balance)
                .expect("updates");
        }
        commit(txn);
        place.collect();
    };
    touch(&place, 7);
    crash(place, &memory);
    let place = open(&home, u64::MAX);
    assert_eq!(place.engine.chunk_counts().with_tails, CHUNKS);
    let checkpoint = |round: i64| {
        let before = memory.object_reads().0;
        place.checkpoint();
        let reads = memory.object_reads().0 - before;
        assert!(reads < CHUNKS / 2, "{reads} in checkpoint {round}");
    };
    checkpoint(0);
    let mut whole = 0;
    for round in 1..7 {
        place.engine.evict_all();
        touch(&place, 10 + round);
        place.engine.evict_all();
        checkpoint(round);
        let stats = place.engine.checkpoint_stats();
        whole += stats.last.expect("one was taken").pages;
    }
    assert!(whole >= CHUNKS, "{whole}: all were written whole once");
    let mut txn = place.begin();
    for rid in 0..CHUNKS * CHUNK {
        let known = if rid % CHUNK == 3 { 16 } else { rid as i64 };
        assert_eq!(place.balance(&mut txn, rid), Some(known), "{rid}");
    }
}
