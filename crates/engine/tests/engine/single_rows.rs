//! Rows that leave memory and come back one by one: what a miss brings, what a row in use keeps, and that checkpoints
//! have rows that are absent while they are taken.

use logstead_engine::{
    FaultError, FlushMode, Guard, LogHome, MemoryHome, PageFault, Rid, Row, RowLock, Txn,
};

use crate::eviction::{Place, open, wait, wide};
use crate::room::noise;
use crate::world::{block_on, column, commit, row};

/// Rows of a chunk.
const CHUNK: u64 = 64;

/// What the first look at a row that is absent gives.
fn miss(place: &Place, txn: &mut Txn, rid: u64) -> PageFault {
    let guard = Guard::pin();
    let read = txn.read(&place.table, Rid(rid), &guard).map(|_| ());
    read.expect_err("it is absent")
}

/// Is the row in memory?
fn is_there(place: &Place, txn: &mut Txn, rid: u64) -> bool {
    let guard = Guard::pin();
    txn.read(&place.table, Rid(rid), &guard).is_ok()
}

fn balance(place: &Place, txn: &mut Txn, rid: u64) -> Option<i64> {
    place.read(txn, rid).map(|(_, balance)| balance)
}

fn home() -> (MemoryHome, LogHome) {
    let memory = MemoryHome::new(64 << 20);
    let home = LogHome::from(memory.clone());
    (memory, home)
}

/// A place with these rows, in a checkpoint.
fn saved(home: &LogHome, rows: impl IntoIterator<Item = Vec<u8>>) -> Place {
    let place = open(home, u64::MAX);
    let mut txn = place.begin();
    for row in rows {
        txn.insert(&place.table, &row).expect("inserts");
    }
    commit(txn);
    place.checkpoint();
    place
}

/// Waits until no more than this is used: what was evicted is free when no thread of this process looks at it any more.
fn wait_until_used(place: &Place, at_most: u64) {
    let memory = place.engine.memory();
    for _ in 0..20_000 {
        if memory.used_bytes() <= at_most {
            return;
        }
        Guard::pin();
        place.collect();
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    panic!("{} of {at_most} bytes", memory.used_bytes());
}

#[test]
fn a_miss_brings_one_row_and_is_charged_for_one() {
    let (_, home) = home();
    let place = saved(&home, (0..3 * CHUNK as i64).map(|key| wide(key, 100)));
    let full = place.engine.memory().used_bytes();
    assert_eq!(place.engine.evict_all(), 3);
    let rows = 3 * CHUNK * 1000;
    wait_until_used(&place, full - rows);
    let before = place.engine.memory().used_bytes();
    let mut txn = place.begin();
    let absent = miss(&place, &mut txn, 5);
    assert_eq!(absent.to_string(), "row 5 of table 20000 is not in memory");
    wait(&mut txn, absent);
    assert!(is_there(&place, &mut txn, 5));
    for other in [0, 4, 6, CHUNK - 1, CHUNK + 5] {
        assert!(!is_there(&place, &mut txn, other), "row {other}");
    }
    let stats = place.engine.eviction_stats();
    assert_eq!((stats.rows_loaded, stats.chunks_loaded), (1, 1));
    // Its slots, the row and what the transaction takes: not the other 63 kilobytes.
    let used = place.engine.memory().used_bytes();
    let taken = used.saturating_sub(before);
    assert!(taken < 8 << 10, "{taken} bytes");
    // It goes alone, and comes again.
    txn.abort();
    place.engine.evict_all();
    wait_until_used(&place, before + 512);
    let mut txn = place.begin();
    assert_eq!(balance(&place, &mut txn, 5), Some(100));
    // Another transaction, another row of the chunk.
    let mut other = place.begin();
    assert_eq!(balance(&place, &mut other, 7), Some(100));
    assert_eq!(place.engine.eviction_stats().rows_loaded, 3);
}

/// Who misses one row of a chunk and then another has all of it brought; who goes over a table has from the first.
#[test]
fn who_goes_over_rows_that_lie_together_loads_once_or_twice() {
    let place = Place::saved(2 * CHUNK as i64);
    assert_eq!(place.engine.evict_all(), 2);
    let mut txn = place.begin();
    for rid in 0..CHUNK {
        assert_eq!(balance(&place, &mut txn, rid), Some(100));
    }
    let stats = place.engine.eviction_stats();
    assert_eq!((stats.rows_loaded, stats.chunks_loaded), (CHUNK, 2));
    assert_eq!(place.engine.evict_all(), 1);
    let rows = place.scan(&mut txn);
    assert_eq!(rows.len() as u64, 2 * CHUNK);
    let stats = place.engine.eviction_stats();
    assert_eq!((stats.rows_loaded, stats.chunks_loaded), (3 * CHUNK, 4));
}

/// T6 by rows: what is in use, or newer than any checkpoint, stays; its neighbours go, and are as they were.
#[test]
fn a_row_in_use_keeps_itself_alone() {
    let (memory, home) = home();
    let place = saved(&home, (0..CHUNK as i64).map(|key| row(key, 100)));
    let mut old = place.begin();
    assert_eq!(balance(&place, &mut old, 1), Some(100));
    let mut txn = place.begin();
    place.update(&mut txn, 1, 200).expect("updates");
    place.delete(&mut txn, 2);
    commit(txn);
    place.worker.flush(FlushMode::Inline);
    let mut writer = place.begin();
    place.update(&mut writer, 3, 300).expect("updates");
    let (version, _) = place.read(&mut writer, 4).expect("a row");
    let locked = writer.lock_row(&place.table, Rid(4), version, RowLock::Update);
    locked.expect("locks");
    let evicted = || place.engine.eviction_stats().rows_evicted;
    assert_eq!(place.engine.evict_all(), 0);
    assert_eq!(evicted(), CHUNK - 4);
    for rid in 0..CHUNK {
        let stays = (1..5).contains(&rid);
        assert_eq!(is_there(&place, &mut old, rid), stays, "row {rid}");
    }
    // A checkpoint has what is committed; the snapshot keeps what it sees.
    place.checkpoint();
    place.collect();
    place.engine.evict_all();
    assert_eq!(evicted(), CHUNK - 4);
    for rid in [1, 2, 5] {
        assert_eq!(balance(&place, &mut old, rid), Some(100), "row {rid}");
    }
    old.abort();
    place.collect();
    place.engine.evict_all();
    // Row 5 had come, and row 1 is alone in its slot now.
    assert_eq!(evicted(), CHUNK - 2);
    let mut txn = place.begin();
    assert_eq!(balance(&place, &mut txn, 1), Some(200));
    assert_eq!(balance(&place, &mut txn, 2), None);
    commit(writer);
    txn.abort();
    block_on(place.engine.flush_all_and_wait()).expect("flushed");
    drop(place);
    memory.crash();
    let place = open(&home, u64::MAX);
    let rows = place.scan(&mut place.begin());
    assert_eq!(rows.len() as u64, CHUNK - 1);
    assert_eq!((rows[&1], rows[&3], rows[&4]), (200, 300, 100));
}

/// A chunk is written in deltas and anew while most of its rows are absent. Nothing comes into memory for that, and
/// nothing is lost.
#[test]
fn checkpoints_have_rows_that_are_absent() {
    // As they are, copied one by one, and in pieces.
    let plain: Vec<Vec<u8>> = (0..CHUNK as i64).map(|key| wide(key, 0)).collect();
    let large: Vec<Vec<u8>> = (0..30).map(|key| noise(key, 100_000)).collect();
    let pieces: Vec<Vec<u8>> = (0..4).map(|key| noise(key, 5_000_000)).collect();
    for (rows, rounds) in [(plain, 20), (large, 6), (pieces, 3)] {
        let (memory, home) = home();
        let count = rows.len() as u64;
        let place = saved(&home, rows.iter().cloned());
        let mut written_anew = 0;
        for round in 1..=rounds {
            place.engine.evict_all();
            let mut txn = place.begin();
            for rid in [0, round % count] {
                let (version, _) = place.read(&mut txn, rid).expect("a row");
                let key = rid as i64;
                let new = if count == CHUNK {
                    wide(key, round as i64)
                } else {
                    noise(key + 1000 * round as i64, rows[rid as usize].len() - 100)
                };
                let updated = place.write(&mut txn, |txn| {
                    txn.update(&place.table, Rid(rid), version, &new)
                });
                match updated {
                    Ok(()) | Err(logstead_engine::WriteError::SelfModified) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            commit(txn);
            place.collect();
            place.engine.evict_all();
            let loaded = place.engine.eviction_stats().rows_loaded;
            let report = place.engine.checkpoint().expect("a checkpoint");
            written_anew += u64::from(report.pages > 0);
            assert_eq!(place.engine.eviction_stats().rows_loaded, loaded);
        }
        assert!(written_anew > 0, "of {count} rows");
        let before = contents(&place, count);
        drop(place);
        memory.crash();
        let place = open(&home, u64::MAX);
        assert!(contents(&place, count) == before, "of {count} rows");
        for (rid, row) in before.iter().enumerate() {
            let untouched = count == CHUNK && rid > 20;
            assert!(!untouched || *row == rows[rid], "row {rid}");
        }
    }
}

/// Who reads single rows of a chunk with many pages reads all of them once; from then on those that have the row.
#[test]
fn a_row_of_a_large_chunk_costs_its_own_pages() {
    const COUNT: u64 = 40;
    let (memory, home) = home();
    let place = saved(&home, (0..COUNT as i64).map(|key| noise(key, 1 << 20)));
    place.engine.evict_all();
    let bytes = |rid: u64| {
        let before = memory.object_reads().1;
        let mut txn = place.begin();
        assert_eq!(balance(&place, &mut txn, rid), Some(rid as i64));
        memory.object_reads().1 - before
    };
    assert!(bytes(3) > 32 << 20);
    for rid in [30, 4, 39, 0] {
        let read = bytes(rid);
        assert!(read < 6 << 20, "{read} bytes for row {rid}");
    }
    // Another chain: what was known of the one before is not used.
    let mut txn = place.begin();
    place.update(&mut txn, 20, 1_020).expect("updates");
    commit(txn);
    place.collect();
    place.checkpoint();
    place.engine.evict_all();
    for (rid, expected) in [(20, 1_020), (21, 21), (20, 1_020)] {
        let mut txn = place.begin();
        assert_eq!(balance(&place, &mut txn, rid), Some(expected));
        txn.abort();
        place.engine.evict_all();
    }
}

/// All rows, bit by bit.
fn contents(place: &Place, count: u64) -> Vec<Vec<u8>> {
    let mut txn = place.begin();
    let mut read = |rid| {
        loop {
            let absent = {
                let guard = Guard::pin();
                match txn.read(&place.table, Rid(rid), &guard) {
                    Ok(row) => break row.expect("a row").bytes.bytes().to_vec(),
                    Err(absent) => absent,
                }
            };
            wait(&mut txn, absent);
        }
    };
    (0..count).map(&mut read).collect()
}

/// Damage of rows that are absent is told to who needs one. It does not stop checkpoints, which go on to write what has
/// changed.
#[test]
fn damaged_rows_that_are_absent_do_not_stop_checkpoints() {
    let (memory, home) = home();
    let place = saved(&home, (0..CHUNK as i64).map(|key| noise(key, 1000)));
    let objects = home.objects.list_objects().expect("listed");
    let largest = objects.iter().max_by_key(|info| info.size_bytes);
    let largest = largest.expect("some");
    let mut bytes = vec![0; largest.size_bytes as usize];
    home.objects
        .read_object(largest.id, 0, &mut bytes)
        .expect("read");
    let mut txn = place.begin();
    // It comes before the damage does.
    place.engine.evict_all();
    for rid in 0..30 {
        wait_for(&place, &mut txn, rid);
        txn.abort();
        txn = place.begin();
    }
    bytes[largest.size_bytes as usize / 2] ^= 0x10;
    home.objects.remove_object(largest.id).expect("removed");
    home.objects.put_object(largest.id, &bytes).expect("stored");
    for round in 0..3 {
        for rid in 0..30 {
            let (version, _) = place.read(&mut txn, rid).expect("a row");
            let new = noise(1000 * (round + 1) + rid as i64, 1000);
            txn.update(&place.table, Rid(rid), version, &new)
                .expect("updates");
        }
        commit(txn);
        place.collect();
        place.checkpoint();
        txn = place.begin();
    }
    let absent = miss(&place, &mut txn, 40);
    let told = block_on(absent.wait(&mut txn));
    assert!(matches!(told, Err(FaultError::Damaged(_))), "{told:?}");
    txn.abort();
    drop(place);
    memory.crash();
    let place = open(&home, u64::MAX);
    let mut txn = place.begin();
    let absent = miss(&place, &mut txn, 40);
    let told = block_on(absent.wait(&mut txn));
    assert!(matches!(told, Err(FaultError::Damaged(_))), "{told:?}");
}

fn wait_for(place: &Place, txn: &mut Txn, rid: u64) {
    let absent = miss(place, txn, rid);
    wait(txn, absent);
}

/// A row that was deleted is not there, whatever is brought beside it from a checkpoint that still has it.
#[test]
fn a_deleted_row_does_not_come_back_with_its_neighbours() {
    let place = Place::saved(CHUNK as i64);
    let mut txn = place.begin();
    place.delete(&mut txn, 5);
    commit(txn);
    place.collect();
    for saved in [false, true] {
        if saved {
            place.checkpoint();
        }
        place.engine.evict_all();
        let mut txn = place.begin();
        assert_eq!(balance(&place, &mut txn, 4), Some(100));
        assert_eq!(balance(&place, &mut txn, 5), None);
        assert_eq!(place.scan(&mut txn).len() as u64, CHUNK - 1);
    }
    // Its number is used again, beside rows that are absent.
    place.engine.evict_all();
    let mut txn = place.begin();
    let new = row(5, 7);
    let rid = place
        .write(&mut txn, |txn| txn.insert(&place.table, &new))
        .expect("inserts");
    assert_eq!(rid, Rid(5));
    commit(txn);
    place.engine.evict_all();
    place.checkpoint();
    place.engine.evict_all();
    let mut txn = place.begin();
    assert_eq!(balance(&place, &mut txn, 5), Some(7));
    assert_eq!(balance(&place, &mut txn, 6), Some(100));
}

/// Two who wait for different rows of one chunk.
#[test]
fn what_two_wait_for_at_once_comes_for_both() {
    let place = Place::saved(CHUNK as i64);
    place.engine.evict_all();
    let (mut one, mut two) = (place.begin(), place.begin());
    let (first, second) = (miss(&place, &mut one, 5), miss(&place, &mut two, 9));
    wait(&mut one, first);
    // Evicted again before the other one waits.
    place.engine.evict_all();
    wait(&mut two, second);
    for (txn, rid) in [(&mut one, 5), (&mut two, 9)] {
        let guard = Guard::pin();
        let key = |found: Row<'_>| column(&found, 0);
        let read = txn.read(&place.table, Rid(rid), &guard);
        match read {
            Ok(found) => assert_eq!(found.map(key), Some(rid as i64)),
            Err(_) => assert_eq!(rid, 5, "it was evicted"),
        }
    }
}
