//! Who waits for memory, with an evictor at work: what is served in the end, what is refused, and how many checkpoints
//! that takes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use logstead_engine::{
    Evictor, FaultError, FlushMode, Guard, LogHome, MemoryHome, PageFault, Rid, RowBuilder, Txn,
    WorkerId, WriteError,
};

use crate::eviction::{Place, open, wide};
use crate::world::{block_on, commit, number};

fn home() -> (Arc<MemoryHome>, LogHome) {
    let memory = Arc::new(MemoryHome::new(64 << 20));
    let home = LogHome::from(Arc::clone(&memory));
    (memory, home)
}

/// Inserts wide rows until there is no memory at once.
fn fill(place: &Place, txn: &mut Txn) -> PageFault {
    for key in 0.. {
        match txn.insert(&place.table, &wide(key, key)) {
            Ok(_) => {}
            Err(WriteError::Absent(absent)) => return absent,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("memory is finite")
}

/// Inserts wide rows until that is refused.
fn exhaust(place: &Place, txn: &mut Txn) {
    loop {
        let absent = fill(place, txn);
        match block_on(absent.wait(txn)) {
            Ok(()) => {}
            Err(FaultError::OutOfMemory(_)) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A row of `bytes` that no compression makes smaller.
pub(crate) fn noise(key: i64, bytes: usize) -> Vec<u8> {
    let mut state = key as u64 * 2 + 1;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    })
    .take(bytes)
    .collect();
    let mut row = RowBuilder::new();
    row.start(1, 3);
    row.push(Some(&number(key)));
    row.push(Some(&number(key)));
    row.push(Some(&noise));
    row.finish().to_vec()
}

/// Three times the pages' length is more than the budget, the rows are not.
#[test]
fn a_chunk_that_was_written_can_be_read_again() {
    let (_, home) = home();
    let place = open(&home, 16 << 20);
    let _evictor = Evictor::start(&place.engine, false).expect("starts");
    let mut txn = place.begin();
    for key in 0..256 {
        let row = noise(key, 30_000);
        place
            .write(&mut txn, |txn| txn.insert(&place.table, &row))
            .expect("there is room");
    }
    commit(txn);
    place.worker.flush(FlushMode::Inline);
    place.checkpoint();
    for _ in 0..2 {
        place.engine.evict_all();
        let mut txn = place.begin();
        for rid in [0, 255] {
            assert_eq!(
                place.read(&mut txn, rid).map(|(_, found)| found),
                Some(rid as i64)
            );
        }
        txn.abort();
    }
    assert!(place.engine.eviction_stats().chunks_loaded >= 2);
}

/// While checkpoints fail they are tried at the pace of the thread that takes them, and who waits is refused.
#[test]
fn failing_checkpoints_are_no_storm() {
    let (memory, home) = home();
    let place = open(&home, 8 << 20);
    let _evictor = Evictor::start(&place.engine, false).expect("starts");
    memory.set_disk_full(true);
    let begun = std::time::Instant::now();
    for _ in 0..2 {
        let mut txn = place.begin();
        exhaust(&place, &mut txn);
        txn.abort();
    }
    // The first at once, then after pauses of a second and more.
    let allowed = 2 + begun.elapsed().as_secs();
    let failed = place.engine.checkpoint_stats().failed;
    assert!((1..=allowed).contains(&failed), "{failed} of {allowed}");
}

/// The evictor is there while a checkpoint hangs: for who is helped by somebody else's end, and for who is not helped.
#[test]
fn a_checkpoint_that_hangs_keeps_nobody_from_being_served_or_refused() {
    let (memory, home) = home();
    let place = open(&home, 8 << 20);
    let evictor = Evictor::start(&place.engine, false).expect("starts");
    let other = place.engine.worker(WorkerId(1));
    let mut small = place.begin();
    place
        .write(&mut small, |txn| txn.insert(&place.table, &wide(0, 0)))
        .expect("there is room");
    commit(small);
    place.worker.flush(FlushMode::Inline);
    let held = memory.hold_objects();
    let mut large = other.begin(logstead_engine::Isolation::RepeatableRead);
    drop(fill(&place, &mut large));
    let mut waits = place.begin();
    let absent = fill(&place, &mut waits);
    {
        let mut wait = pin!(absent.wait(&mut waits));
        while memory.objects_under_way() == 0 {
            let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "{polled:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        large.abort();
        other.flush(FlushMode::Inline);
        while other.collect_garbage(10_000) {}
        block_on(wait).expect("is served");
    }
    // Somebody's guard may let go of what the other had by and by: who waits for that is served, and refused when there
    // is no more.
    place.engine.set_memory_wait(Duration::from_millis(200));
    exhaust(&place, &mut waits);
    assert_eq!(memory.objects_under_way(), 1, "it still hangs");
    waits.abort();
    drop(held);
    drop(evictor);
}

/// What was evicted and is kept by a guard is a reason to wait.
#[test]
fn what_a_guard_keeps_is_waited_for() {
    let (_, home) = home();
    let place = open(&home, 24 << 20);
    let mut txn = place.begin();
    while place.engine.memory().used_bytes() < 18 << 20 {
        txn.insert(&place.table, &wide(1, 1))
            .expect("there is room");
    }
    commit(txn);
    place.worker.flush(FlushMode::Inline);
    place.worker.collect_garbage(100_000);
    place.checkpoint();
    let (pinned, is_pinned) = channel();
    let (release, released) = channel::<()>();
    let holder = std::thread::spawn(move || {
        let guard = Guard::pin();
        pinned.send(()).expect("waits");
        let _told = released.recv();
        drop(guard);
    });
    is_pinned.recv().expect("pinned");
    let _evictor = Evictor::start(&place.engine, false).expect("starts");
    let mut txn = place.begin();
    let absent = fill(&place, &mut txn);
    {
        let mut wait = pin!(absent.wait(&mut txn));
        // Longer than anybody's patience.
        for _ in 0..1000 {
            let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "{polled:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        release.send(()).expect("waits");
        block_on(wait).expect("is served");
    }
    txn.abort();
    holder.join().expect("ends");
}

/// A load for which there is no room is refused, also while others commit and checkpoints are published.
#[test]
fn a_load_without_room_is_refused() {
    let (_, home) = home();
    let place = open(&home, 24 << 20);
    let mut txn = place.begin();
    // One row as large as a chunk: of several, those that nobody needs would be left out.
    let row = noise(0, 64 * 56_000);
    txn.insert(&place.table, &row).expect("there is room");
    commit(txn);
    place.worker.flush(FlushMode::Inline);
    place.checkpoint();
    assert_eq!(place.engine.evict_all(), 1);
    let _evictor = Evictor::start(&place.engine, false).expect("starts");
    let mut full = place.begin();
    exhaust(&place, &mut full);
    let other = place.engine.worker(WorkerId(1));
    let mut reader = place.begin();
    let absent = {
        let guard = Guard::pin();
        reader
            .read(&place.table, Rid(0), &guard)
            .expect_err("absent")
            .with_neighbours()
    };
    {
        let mut wait = pin!(absent.wait(&mut reader));
        let outcome = loop {
            if let Poll::Ready(outcome) =
                wait.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                break outcome;
            }
            // What the checkpoints that are taken for it publish is newer each time.
            let mut txn = other.begin(logstead_engine::Isolation::ReadCommitted);
            match txn.insert(&place.table, &wide(1, 1)) {
                Ok(_) => {
                    commit(txn);
                }
                Err(_) => txn.abort(),
            }
            other.flush(FlushMode::Inline);
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(
            matches!(outcome, Err(FaultError::OutOfMemory(_))),
            "{outcome:?}"
        );
    }
    reader.abort();
    full.abort();
}

/// A snapshot that sees nothing of rows that came later does not keep them in memory.
#[test]
fn rows_that_came_after_a_snapshot_may_go() {
    let (_, home) = home();
    let place = open(&home, u64::MAX);
    let mut old = place.begin();
    old.begin_statement();
    assert!(place.read(&mut old, 0).is_none());
    let mut txn = place.begin();
    txn.insert(&place.table, &wide(7, 7)).expect("inserts");
    commit(txn);
    place.worker.flush(FlushMode::Inline);
    place.checkpoint();
    assert_eq!(place.engine.evict_all(), 1);
    assert!(place.read(&mut old, 0).is_none(), "it came later");
    let mut new = place.begin();
    assert_eq!(place.read(&mut new, 0).map(|(_, found)| found), Some(7));
    assert_eq!(place.engine.eviction_stats().chunks_loaded, 1);
    old.abort();
    new.abort();
}
