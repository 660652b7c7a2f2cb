//! What the log behind the checkpoint says of absent chunks, where memory is small beside it: starts that need no more than the life before had, and
//! first checkpoints that need no room for what the log has changed ([pending]).

use std::sync::Arc;
use std::time::Duration;

use logstead_engine::{FlushMode, Guard, LogHome, MemoryHome, Rid};

use crate::eviction::{Place, of_bytes, open};
use crate::world::commit;

const BUDGET: u64 = 16 << 20;
const ROWS: u64 = 40_000;
/// Rows of a chunk.
const CHUNK: u64 = 64;

fn home() -> (MemoryHome, Arc<dyn LogHome>) {
    let memory = MemoryHome::new(64 << 20);
    let home: Arc<dyn LogHome> = Arc::new(memory.clone());
    (memory, home)
}

/// What makes a row a kilobyte, in its first or a later state.
fn filled(rid: u64, balance: i64, filling: u8) -> Vec<u8> {
    of_bytes(rid as i64, balance, 1000, filling)
}

/// 2.5 times the budget, in a checkpoint.
fn larger_than_memory(home: &Arc<dyn LogHome>) -> Place {
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

/// Some rows of every chunk were changed, more than an eighth of the budget, and all chunks together are larger than memory: the rows that were in
/// memory before the crash are all that is needed after it.
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

/// One life after the other changes rows that the next one does not read, a few bytes of each: together they are more than memory holds, and no
/// checkpoint needs them there.
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
