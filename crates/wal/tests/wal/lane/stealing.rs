//! Lanes that take one another's entries along (T14).

use super::bench::{Bench, Count, ENTRY_LEN, NOTHING, bench_with};
use logstead_env::{Env, Instant};
use logstead_home::{HomeError, LaneAppends, LocalHome, LocalOptions, LogHome, MemoryHome};
use logstead_types::Csn;
use logstead_wal::recovery::{self, RecoveryOptions};
use logstead_wal::{
    Cursor, EntryDependencies, FlushMode, FlushOutcome, Lane, LaneConfig, LaneEvent, NoRoom,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

const ALL: usize = usize::MAX;

/// Lanes whose homes answer when told.
fn paused(lanes: u16) -> Bench {
    let bench = bench_with(lanes, 4, None);
    bench.home.set_paused(true);
    bench
}

#[test]
fn stolen_entries_leave_with_the_thief_and_harden_in_their_own_lane() {
    let bench = paused(2);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    bench.now(5);
    let stolen = bench.push_to(1, 7).end;
    bench.push_to(1, 6);
    bench.now(8);
    let own = bench.push_to(0, 9).end;
    assert_eq!(thief.steal(victim, ALL), 2 * ENTRY_LEN as usize);
    assert_eq!((victim.dirty_bytes(), thief.dirty_bytes()), (0, 45));
    assert_eq!(thief.oldest_unflushed_at(), Some(Instant::from_nanos(5)));
    assert_eq!(victim.oldest_unflushed_at(), None);
    assert_eq!(victim.first_not_durable(), Csn(6), "claimed is not durable");
    assert_eq!(thief.first_not_durable(), Csn(9), "its own ones only");
    assert_eq!(
        victim.flush(FlushMode::Handoff),
        FlushOutcome::Queued,
        "not clean"
    );
    assert_eq!(bench.home.waiting(), 0);
    bench.now(10);
    assert_eq!(thief.flush(FlushMode::Handoff), FlushOutcome::Started);
    assert!(!victim.raise_gsn(50), "its entries are on the way");
    bench.now(20);
    bench.home.complete();
    assert_eq!(
        (thief.hardened(), victim.hardened()),
        (own, Cursor(2 * ENTRY_LEN))
    );
    assert_eq!((thief.hardened_gsn(), victim.hardened_gsn()), (1, 2));
    assert_eq!(
        (thief.first_not_durable(), victim.first_not_durable()),
        (NOTHING, NOTHING)
    );
    assert_eq!(bench.events(), ["0: durable 0", "1: durable 0"]);
    let times = victim.flush_times(stolen).unwrap();
    assert_eq!(
        (times.sealed_at.as_nanos(), times.hardened_at.as_nanos()),
        (10, 20)
    );
    assert_eq!(victim.flush(FlushMode::Handoff), FlushOutcome::Clean);
    let counters = thief.counters();
    assert_eq!(
        (counters.entries, counters.steals, counters.stolen_bytes),
        (3, 1, 30)
    );
    assert_eq!(victim.counters().blocks, 0);
    let (header, csns) = bench.stored(0, 1).remove(0).unwrap();
    assert_eq!(
        (header.lane, header.csn_lowest, header.csn_highest),
        (thief.id(), Csn(6), Csn(9))
    );
    assert_eq!(csns, [9, 7, 6]);
}

/// A listener may take its time, or write the next block in its thread: whose bytes went along does not wait for that.
#[test]
fn all_cursors_have_moved_when_anyone_hears_of_it() {
    let home = MemoryHome::new(32 * 1024);
    let (thief, victim) = (lane_of(&home, 0), lane_of(&home, 1));
    let heard = Arc::new(AtomicU64::new(0));
    let (told, of_victim) = (Arc::clone(&heard), victim.clone());
    thief.set_listener(Box::new(move |event| {
        if matches!(event, LaneEvent::Durable) {
            told.store(of_victim.hardened().0, Ordering::SeqCst);
        }
    }));
    for lane in [&thief, &victim] {
        let room = lane.room(1).unwrap();
        lane.push(room, Csn(2), 0, &EntryDependencies::default(), &[0]);
    }
    assert!(thief.steal(&victim, ALL) > 0);
    thief.flush(FlushMode::Handoff);
    assert_eq!(heard.load(Ordering::SeqCst), victim.pushed().0);
}

/// The parking lot: the victim's own block is durable before the one that has its earlier bytes.
#[test]
fn t14_own_bytes_behind_stolen_ones_wait_for_them() {
    let bench = paused(2);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    let first = bench.push_to(1, 3).end;
    thief.steal(victim, ALL);
    thief.flush(FlushMode::Handoff);
    let pushed = bench.push_to(1, 4);
    assert!(
        pushed.was_clean,
        "robbed is clean: whoever pushes sees to a flush"
    );
    assert_eq!(
        victim.flush(FlushMode::Inline),
        FlushOutcome::Started,
        "written, parked"
    );
    assert_eq!(victim.blocks_in_flight(), 0);
    assert_eq!(victim.hardened(), Cursor(0));
    assert_eq!(victim.hardened_gsn(), 0);
    assert_eq!(victim.first_not_durable(), Csn(3));
    assert!(!victim.raise_gsn(9));
    assert!(bench.events().is_empty());
    bench.home.complete();
    assert_eq!(victim.hardened(), pushed.end);
    assert!(victim.hardened() > first);
    assert_eq!(victim.first_not_durable(), NOTHING);
    assert_eq!(bench.events(), ["1: durable 0"]);
    assert_eq!((victim.counters().parked, thief.counters().parked), (1, 0));
    assert_eq!((victim.counters().parked, thief.counters().parked), (1, 0));
}

/// What it took would harden only after its own blocks: a slow lane would slow down others.
#[test]
fn t2_a_thief_with_blocks_in_flight_takes_nothing() {
    let bench = paused(2);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    bench.push_to(0, 1);
    thief.flush(FlushMode::Handoff);
    let own = bench.push_to(1, 2).end;
    assert_eq!(thief.steal(victim, ALL), 0);
    assert_eq!(victim.flush(FlushMode::Inline), FlushOutcome::Durable);
    assert_eq!(victim.hardened(), own);
    bench.home.complete();
    bench.push_to(1, 3);
    assert!(thief.steal(victim, ALL) > 0);
    assert_eq!(thief.flush(FlushMode::Inline), FlushOutcome::Durable);
    assert_eq!(victim.hardened(), victim.pushed());
}

#[test]
fn a_thief_is_robbed_and_robbed_back() {
    let bench = paused(3);
    let [a, b, c] = &bench.lanes[..] else {
        unreachable!()
    };
    for (lane, csn) in [(0, 1), (1, 2), (2, 3)] {
        bench.push_to(lane, csn);
    }
    assert_eq!(a.steal(b, ALL), 15);
    assert_eq!(c.steal(a, ALL), 30);
    assert_eq!((a.steal(b, ALL), b.steal(a, ALL)), (0, 0), "stolen once");
    bench.push_to(1, 4);
    // Lane 1 gets its own first entry back, behind its second.
    assert_eq!(b.steal(c, ALL), 45);
    assert_eq!(a.flush(FlushMode::Inline), FlushOutcome::Queued);
    assert_eq!(b.flush(FlushMode::Handoff), FlushOutcome::Started);
    assert_eq!(bench.stored(1, 1), [None]);
    let lowest = |lane: &Lane| lane.first_not_durable();
    assert_eq!((lowest(a), lowest(b), lowest(c)), (Csn(1), Csn(2), Csn(3)));
    bench.home.complete();
    assert_eq!(
        (lowest(a), lowest(b), lowest(c)),
        (NOTHING, NOTHING, NOTHING)
    );
    assert_eq!(b.hardened(), b.pushed());
    assert_eq!(bench.stored(1, 1).remove(0).unwrap().1, [4, 3, 1, 2]);
}

#[test]
fn a_thief_without_room_takes_nothing() {
    let bench = bench_with(2, 4, None);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    bench.push_to(1, 1);
    let there = ENTRY_LEN as usize;
    assert_eq!(thief.steal(victim, there - 1), 0, "more than asked for");
    assert_eq!(thief.steal(thief, ALL), 0);
    let mut rooms = Vec::new();
    while let Ok(room) = thief.room(1000) {
        rooms.push(room);
    }
    // What is left is less than the smallest room of a thousand, and more than this entry.
    while let Ok(room) = thief.room(0) {
        rooms.push(room);
    }
    for _ in 0..30 {
        bench.push_len(1, 2, 100);
    }
    assert_eq!(thief.steal(victim, ALL), 0, "no room in the buffer");
    drop(rooms);
    bench.home.set_disk_full(true);
    // The segment is used up but for two units.
    for _ in 0..6 {
        bench.push_to(0, 9);
        assert_eq!(thief.flush(FlushMode::Inline), FlushOutcome::Durable);
    }
    bench.push_to(0, 9);
    assert_eq!(thief.steal(victim, ALL), 0, "no room at the home");
    assert_eq!(thief.flush(FlushMode::Inline), FlushOutcome::Durable);
    bench.home.set_disk_full(false);
    let dirty = victim.dirty_bytes();
    assert_eq!(thief.steal(victim, ALL), dirty, "nothing was lost or kept");
    assert_eq!(thief.flush(FlushMode::Inline), FlushOutcome::Durable);
    assert_eq!(victim.hardened(), victim.pushed());
    assert!(thief.failure().is_none());
}

/// A write that fails takes down the lanes whose bytes it held, and those whose bytes they held.
#[test]
fn t14_a_thief_that_fails_ends_whom_it_robbed() {
    let bench = paused(4);
    let [thief, victim, robbed_before, other] = &bench.lanes[..] else {
        unreachable!()
    };
    for (lane, csn) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        bench.push_to(lane, csn);
    }
    victim.steal(robbed_before, ALL);
    victim.flush(FlushMode::Handoff);
    bench.push_to(1, 5);
    thief.steal(victim, ALL);
    thief.flush(FlushMode::Handoff);
    bench.home.set_failing(true);
    bench.home.complete_at(1);
    bench.home.set_failing(false);
    for lane in [thief, victim, robbed_before] {
        assert_eq!(lane.failure().unwrap().lane, thief.id());
        assert!(matches!(lane.room(1), Err(NoRoom::Failed(_))));
    }
    assert_eq!(bench.events(), ["0: failed", "1: failed", "2: failed"]);
    bench.home.complete();
    for (lane, csn) in [(thief, 1), (victim, 2), (robbed_before, 3)] {
        assert_eq!(lane.hardened(), Cursor(0));
        assert_eq!(lane.first_not_durable(), Csn(csn));
    }
    assert_eq!(
        thief.steal(other, ALL),
        0,
        "nobody gives anything to a lane that has failed"
    );
    assert_eq!(other.steal(thief, ALL), 0);
    assert_eq!(other.flush(FlushMode::Inline), FlushOutcome::Durable);
    assert_eq!(bench.events(), ["3: durable 0"]);
}

#[test]
fn a_victim_that_failed_hardens_nothing_more() {
    let bench = paused(2);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    bench.push_to(1, 1);
    thief.steal(victim, ALL);
    bench.push_to(0, 2);
    thief.flush(FlushMode::Handoff);
    bench.push_to(1, 3);
    bench.home.set_failing(true);
    assert_eq!(victim.flush(FlushMode::Inline), FlushOutcome::Failed);
    bench.home.set_failing(false);
    bench.home.complete();
    assert_eq!(
        (victim.hardened(), victim.first_not_durable()),
        (Cursor(0), Csn(1))
    );
    assert_eq!(thief.hardened(), thief.pushed(), "the thief goes on");
    assert!(thief.failure().is_none());
}

#[test]
fn being_robbed_makes_room() {
    let bench = paused(2);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    // Every block of the victim that may be in flight is, and the buffer is full.
    for csn in 1..=4 {
        bench.push_to(1, csn);
        victim.flush(FlushMode::Handoff);
    }
    while let Ok(room) = victim.room(400) {
        victim.push(room, Csn(9), 0, &EntryDependencies::default(), &[0; 400]);
    }
    let count = Arc::new(Count::default());
    victim.wait_room(&count.waker());
    assert!(matches!(victim.room(400), Err(NoRoom::Full)));
    assert!(thief.steal(victim, ALL) > 6000);
    assert_eq!(count.get(), 1);
    assert!(victim.room(400).is_ok());
}

#[test]
fn lanes_that_hold_one_anothers_entries_are_freed() {
    let token = Arc::new(());
    let home = MemoryHome::new(32 * 1024);
    let fresh = |number: u16| {
        let kept = Arc::clone(&token);
        let lane = lane_of(&home, number);
        lane.set_listener(Box::new(move |_: LaneEvent| {
            let _kept = &kept;
        }));
        lane
    };
    let (a, b) = (fresh(0), fresh(1));
    for (lane, csn) in [(&a, 1), (&b, 2)] {
        let room = lane.room(1).unwrap();
        lane.push(room, Csn(csn), 0, &EntryDependencies::default(), &[0]);
    }
    assert!(a.steal(&b, ALL) > 0);
    let room = b.room(1).unwrap();
    b.push(room, Csn(3), 0, &EntryDependencies::default(), &[0]);
    assert!(b.steal(&a, ALL) > 0);
    assert_eq!(Arc::strong_count(&token), 3);
    drop((a, b));
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
#[should_panic(expected = "lanes of two logs")]
fn lanes_of_two_logs_do_not_mix() {
    let bench = paused(1);
    bench.push(1);
    let home = MemoryHome::new(32 * 1024);
    lane_of(&home, 0).steal(&bench.lane, ALL);
}

fn lane_of(home: &MemoryHome, number: u16) -> Lane {
    use logstead_types::{DatabaseId, Epoch, LaneId};
    home.open_lane(LaneId(number), 0).unwrap();
    let start = logstead_wal::LaneStart {
        database: DatabaseId(2),
        epoch: Epoch(1),
        lane: LaneId(number),
        first_segment: 0,
    };
    let clock = Arc::new(logstead_env::SimClock::new());
    Lane::new(
        LogHome::from(home.clone()),
        clock,
        start,
        LaneConfig::default(),
    )
}

/// Threads that push, flush and rob one another over a real disk: the published CSN never passes what is not hardened,
/// cursors never go back, and a restart finds every entry once.
#[test]
fn threads_rob_one_another() {
    const LANES: u16 = 4;
    const EACH: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let env = Env::real();
    let sizes = LocalOptions {
        segment_size_bytes: 256 * 1024,
        first_segment_size_bytes: 128 * 1024,
        segment_size_bytes_min: 128 * 1024,
        threads: true,
        ..LocalOptions::default()
    };
    let options = RecoveryOptions {
        lanes: LANES,
        lane: LaneConfig {
            buffer_size_bytes: 16 * 1024,
            ..LaneConfig::default()
        },
        accept_data_loss: false,
        lease: logstead_wal::lease::LeaseOptions::default(),
    };
    let open = |found: &mut Vec<u64>| {
        // The writer's thread lets go of the old one only after it has told that the last block is durable.
        let opened =
            (0..1_000_000).find_map(|_| match LocalHome::open(dir.path(), &env, sizes.clone()) {
                Err(HomeError::InUse(_)) => {
                    std::thread::yield_now();
                    None
                }
                other => Some(other.unwrap()),
            });
        let home = LogHome::from(opened.expect("the old one is let go of"));
        recovery::open(&home, &env, &options, &mut |csn, _| {
            found.push(csn.get());
            Ok(())
        })
        .unwrap()
    };
    let log = open(&mut Vec::new());
    let counter = Arc::new(AtomicU64::new(1));
    let start = Arc::new(Barrier::new(usize::from(LANES)));
    let threads: Vec<_> = (0..usize::from(LANES))
        .map(|number| {
            let lanes = log.lanes.clone();
            let (counter, start) = (Arc::clone(&counter), Arc::clone(&start));
            let work = move || {
                start.wait();
                let lane = &lanes[number];
                let mut waiting: Vec<(u64, Cursor)> = Vec::new();
                for step in 0..EACH {
                    let room = loop {
                        match lane.room(200) {
                            Ok(room) => break room,
                            Err(NoRoom::Full) => std::thread::yield_now(),
                            Err(other) => panic!("{other}"),
                        }
                    };
                    let csn = counter.fetch_add(1, Ordering::SeqCst);
                    let deps = EntryDependencies::floor(Csn(csn - 1));
                    let pushed = lane.push(room, Csn(csn), 0, &deps, &[number as u8; 200]);
                    waiting.push((csn, pushed.end));
                    // First the CSN, then the cursor, which moves before it.
                    let first = lane.first_not_durable();
                    let hardened = lane.hardened();
                    for &(csn, end) in &waiting {
                        assert!(
                            first <= Csn(csn) || hardened >= end,
                            "{csn} {first} {hardened:?}"
                        );
                    }
                    waiting.retain(|&(_, end)| end > hardened);
                    match (step + number as u64) % 3 {
                        0 => {
                            let victim = &lanes[(number + 1 + step as usize % 3) % lanes.len()];
                            lane.steal(victim, 8192);
                            lane.flush(FlushMode::Handoff);
                        }
                        1 => {
                            lane.flush(FlushMode::Inline);
                        }
                        _ => {}
                    }
                }
            };
            logstead_env::spawn("robber", None, work).unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    while log.lanes.iter().any(|lane| lane.hardened() < lane.pushed()) {
        for lane in &log.lanes {
            lane.flush(FlushMode::Inline);
            assert!(lane.failure().is_none());
        }
        std::thread::yield_now();
    }
    assert!(
        log.lanes
            .iter()
            .all(|lane| lane.first_not_durable() == NOTHING)
    );
    drop(log);
    let mut found = Vec::new();
    open(&mut found);
    assert_eq!(found, (1..=EACH * u64::from(LANES)).collect::<Vec<u64>>());
}
