//! Blocks without entries: an idle server tells its last horizon.

use super::rig::beside::Beside;
use super::rig::{Machine, Server};
use super::{Receiver, from_to, start};
use logstead_home::{LocalHome, LogHome, MemoryHome};
use logstead_types::Csn;
use logstead_wal::recovery::follow::Follower;
use logstead_wal::{LaneEvent, inspect};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn commit(server: &Server, csns: std::ops::RangeInclusive<u64>) {
    csns.for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
}

/// The last commits before a pause are shown when some lane has recorded the horizon, and not before.
#[test]
fn the_last_commits_show_once_the_horizon_is_recorded() {
    for lane in 0..2 {
        let memory = MemoryHome::new(32 << 10);
        let server = start(&memory, 2);
        commit(&server, 1..=5);
        let mut follower = Follower::open(&server.home).unwrap();
        let mut given = Receiver::default();
        (0..3).for_each(|_| assert_eq!(given.take(&mut follower).next, Csn(5)));
        let blocks = server.lane(lane).counters().blocks;
        assert!(server.lane(lane).record_horizon());
        assert_eq!(server.lane(lane).counters().blocks, blocks + 1);
        assert_eq!(given.take(&mut follower).next, Csn(6));
        assert_eq!(given.0, from_to(1, 5));
    }
}

/// A round that finds nothing asks for little: of each lane a listing and a read, however many entries wait.
#[test]
fn an_idle_round_asks_for_little() {
    let memory = MemoryHome::new(4 << 20);
    let server = start(&memory, 3);
    (1..=300).for_each(|csn| assert!(server.commit((csn % 3) as u16, csn)));
    let from = Beside::new(&server.home, |_| {});
    let home = from.home();
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    given.take(&mut follower);
    for _ in 0..3 {
        let before = from.requests();
        let progress = given.take(&mut follower);
        assert_eq!((progress.next, progress.waiting), (Csn(300), 1));
        assert_eq!(from.requests() - before, 6);
    }
}

/// A lane that has something buffered or on its way does not: its next block will.
#[test]
fn a_lane_that_is_not_idle_records_nothing() {
    let memory = MemoryHome::new(32 << 10);
    let server = start(&memory, 1);
    commit_one(&server, 1);
    assert!(server.push(0, 2));
    assert!(!server.lane(0).record_horizon());
    memory.set_paused(true);
    server.lane(0).flush(logstead_wal::FlushMode::Handoff);
    assert!(!server.lane(0).record_horizon());
    assert!(memory.complete());
    server.tell_horizon();
    assert!(server.lane(0).record_horizon());
    assert!(!server.lane(0).record_horizon(), "one is on its way");
    // Whoever wants to flush hears when it has landed.
    let outcome = server.lane(0).flush(logstead_wal::FlushMode::Handoff);
    assert_eq!(outcome, logstead_wal::FlushOutcome::Queued);
    let told = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&told);
    server.lane(0).set_listener(Box::new(move |event| {
        hears.fetch_add(
            usize::from(matches!(event, LaneEvent::Durable)),
            Ordering::SeqCst,
        );
    }));
    // What is pushed meanwhile goes behind it, in order.
    assert!(server.push(0, 3));
    server.lane(0).flush(logstead_wal::FlushMode::Handoff);
    assert_eq!(memory.waiting(), 2);
    assert!(memory.complete_at(1));
    assert_eq!(server.lane(0).first_not_durable(), Csn(3));
    assert!(memory.complete());
    assert_eq!(server.lane(0).first_not_durable(), Csn(u64::MAX));
    assert_eq!(server.lane(0).counters().entries, 3);
    assert_eq!(told.load(Ordering::SeqCst), 1);
    assert!(server.lane(0).record_horizon() && memory.complete());
    assert_eq!(
        told.load(Ordering::SeqCst),
        2,
        "of a block without entries too"
    );
}

fn commit_one(server: &Server, csn: u64) {
    assert!(server.commit(0, csn));
}

/// A disk without room for it is no error.
#[test]
fn without_room_nothing_is_recorded() {
    let memory = MemoryHome::new(32 << 10);
    let server = start(&memory, 1);
    memory.set_disk_full(true);
    let mut recorded = 0;
    while server.lane(0).record_horizon() {
        recorded += 1;
        assert!(recorded < 100);
    }
    assert_eq!(recorded, 7, "as long as an entry would find room");
    memory.set_disk_full(false);
    assert!(server.lane(0).record_horizon());
    commit_one(&server, 1);
    assert!(server.lane(0).failure().is_none());
}

/// Whoever reads a log finds such blocks to be blocks: starts, checks and dumps, with a checkpoint and without.
#[test]
fn logs_with_such_blocks_are_read_as_ever() {
    let machine = Machine::new(1);
    let mut committed = 0;
    for life in 0..4 {
        let server = machine.start(2).unwrap();
        let held = server.log.report.checkpoint.get().max(1);
        assert_eq!(server.survivors, from_to(held, committed));
        for _ in 0..6 {
            let next = committed + 1;
            commit(&server, next..=next + 2);
            committed += 3;
            (0..2).for_each(|lane| assert!(server.lane(lane).record_horizon()));
        }
        if life == 2 {
            server.checkpoint(committed + 1).unwrap();
        }
        drop(server);
        let found = inspect::verify("/db", &machine.env).unwrap();
        assert_eq!(found.next_csn, Csn(committed + 1));
        let mut dump = Vec::new();
        inspect::dump("/db", &machine.env, &mut dump).unwrap();
        let dump = String::from_utf8(dump).unwrap();
        assert!(!dump.contains("CORRUPT"), "{dump}");
        assert!(
            life == 2 || dump.contains(": no entries, durable through"),
            "{dump}"
        );
    }
    let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
    let mut given = Receiver::default();
    given.take(&mut Follower::open(&home).unwrap());
    assert_eq!(given.0.last(), Some(&committed));
}
