//! How far the log may run ahead of durability: memory stays bounded when the home stalls, and nobody waits for ever
//! (T12).

use super::bench::{Bench, Count, ENTRY_LEN, bench_with};
use logstead_types::Csn;
use logstead_wal::entry::OVERHEAD_MAX;
use logstead_wal::{EntryDependencies, FlushMode, FlushOutcome, LogAllocationLimit, NoRoom};
use std::sync::Arc;

const LIMIT: u64 = 2000;

/// What a room for [`Bench::push`] takes.
const ROOM: u64 = 10 + OVERHEAD_MAX as u64;

fn stalled(lanes: u16) -> (Bench, Arc<LogAllocationLimit>) {
    let allowance = Arc::new(LogAllocationLimit::new(LIMIT));
    let bench = bench_with(lanes, 4, Some(&allowance));
    bench.home.set_paused(true);
    (bench, allowance)
}

/// Pushes to a lane until it says that there is no room; returns how many.
fn fill(bench: &Bench, lane: usize) -> u64 {
    let mut pushed = 0;
    loop {
        match bench.lanes[lane].room(10) {
            Ok(room) => {
                let deps = EntryDependencies::default();
                bench.lanes[lane].push(room, Csn(1), 0, &deps, &[0; 10]);
                pushed += 1;
            }
            Err(NoRoom::Full) => return pushed,
            Err(other) => panic!("{other}"),
        }
        assert!(pushed < 10_000, "nothing bounds it");
    }
}

#[test]
fn t12_a_stalled_home_bounds_what_waits_over_all_lanes() {
    let (bench, allowance) = stalled(3);
    let pushed = fill(&bench, 0);
    assert!(allowance.used_bytes() <= LIMIT);
    assert!(
        pushed * ENTRY_LEN > LIMIT - 2 * ROOM,
        "it was used up: {pushed}"
    );
    assert_eq!(
        bench.lanes[0].blocks_in_flight(),
        1,
        "who is refused flushes"
    );
    let counters = bench.lanes[0].counters();
    assert_eq!((counters.refused_allowance, counters.refused_full), (1, 0));
    // A slow lane does not keep the others from writing one entry after the other.
    for lane in [1, 2] {
        assert_eq!(fill(&bench, lane), 1);
        bench.lanes[lane].flush(FlushMode::Handoff);
        assert_eq!(fill(&bench, lane), 0);
    }
    assert!(allowance.used_bytes() <= LIMIT + 2 * ROOM, "{allowance:?}");
    // Whoever waits is woken by what hardens in its own lane ...
    let counts: Vec<Arc<Count>> = (0..3).map(|_| Arc::default()).collect();
    for (lane, count) in bench.lanes.iter().zip(&counts) {
        lane.wait_room(&count.waker());
        assert!(matches!(lane.room(10), Err(NoRoom::Full)));
    }
    assert!(bench.home.complete_at(1));
    assert!(counts[1].get() > 0);
    assert_eq!(fill(&bench, 1), 1);
    // ... and by what hardens elsewhere.
    bench.lanes[2].wait_room(&counts[2].waker());
    let before = counts[2].get();
    assert!(bench.home.complete());
    assert!(counts[2].get() > before);
    assert!(bench.lanes[2].room(10).is_ok());
    bench.home.set_paused(false);
    while bench.home.complete() {}
    for lane in &bench.lanes {
        let outcome = lane.flush(FlushMode::Inline);
        assert!(matches!(
            outcome,
            FlushOutcome::Durable | FlushOutcome::Clean
        ));
    }
    assert_eq!(allowance.used_bytes(), 0, "all is given back");
}

#[test]
fn rooms_take_from_the_allowance_and_give_back() {
    let (bench, allowance) = stalled(2);
    let rooms: Vec<_> = (0..LIMIT / ROOM)
        .map(|_| bench.lane.room(10).unwrap())
        .collect();
    assert_eq!(allowance.used_bytes(), LIMIT / ROOM * ROOM);
    assert!(matches!(bench.lane.room(10), Err(NoRoom::Full)));
    let other = bench.lanes[1].room(10).expect("the only one of its lane");
    assert!(matches!(bench.lanes[1].room(10), Err(NoRoom::Full)));
    let count = Arc::new(Count::default());
    bench.lanes[1].wait_room(&count.waker());
    drop(rooms);
    assert!(count.get() > 0, "woken by another lane's rooms");
    drop(other);
    assert_eq!(allowance.used_bytes(), 0);
}

#[test]
fn a_lane_keeps_a_little_of_it_unless_somebody_waits() {
    const LARGE: u64 = 8 << 20;
    let allowance = Arc::new(LogAllocationLimit::new(LARGE));
    let bench = bench_with(2, 4, Some(&allowance));
    bench.push_to(0, 1);
    bench.lanes[0].flush(FlushMode::Inline);
    assert_eq!(allowance.used_bytes(), ROOM, "kept for the next one");
    for csn in 2..100 {
        bench.push_to(0, csn);
        assert_eq!(allowance.used_bytes(), ROOM, "which uses it");
        bench.lanes[0].flush(FlushMode::Inline);
    }
    // Another lane waits for what a side segment has taken.
    bench.home.set_paused(true);
    let mut side = bench.lanes[1].begin_side_segment().unwrap();
    side.append(vec![1; LARGE as usize]);
    assert_eq!(fill(&bench, 1), 1);
    let count = Arc::new(Count::default());
    bench.lanes[1].wait_room(&count.waker());
    bench.push_to(0, 100);
    bench.lanes[0].flush(FlushMode::Handoff);
    assert_eq!(allowance.used_bytes(), LARGE + 2 * ROOM);
    assert!(bench.home.complete_at(1));
    assert_eq!(allowance.used_bytes(), LARGE + ROOM, "nothing is kept");
    assert_eq!(count.get(), 1);
}

#[test]
fn a_refusal_of_the_home_gives_back() {
    let (bench, allowance) = stalled(1);
    bench.home.set_paused(false);
    bench.home.set_disk_full(true);
    loop {
        match bench.lane.room(10) {
            Ok(room) => {
                bench
                    .lane
                    .push(room, Csn(1), 0, &EntryDependencies::default(), &[0; 10]);
                bench.lane.flush(FlushMode::Inline);
            }
            Err(NoRoom::DiskFull) => break,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(allowance.used_bytes(), 0);
}

#[test]
fn stolen_bytes_count_until_they_harden() {
    let (bench, allowance) = stalled(2);
    let pushed = fill(&bench, 1);
    assert!(pushed > 0);
    bench.push_to(0, 2);
    let (thief, victim) = (&bench.lanes[0], &bench.lanes[1]);
    bench.home.complete();
    bench.push_to(1, 3);
    let used = allowance.used_bytes();
    assert_eq!(thief.steal(victim, usize::MAX), ENTRY_LEN as usize);
    assert_eq!(allowance.used_bytes(), used);
    thief.flush(FlushMode::Handoff);
    assert_eq!(allowance.used_bytes(), used);
    bench.home.complete();
    assert_eq!(allowance.used_bytes(), 0);
}

#[test]
fn pieces_of_side_segments_count_until_they_are_written() {
    let (bench, allowance) = stalled(2);
    let mut side = bench.lane.begin_side_segment().unwrap();
    assert!(!side.is_held_back());
    side.append(vec![1; 3000]);
    assert_eq!(allowance.used_bytes(), 3000, "beyond the limit");
    assert!(side.is_held_back());
    // Entries go on, one at a time.
    assert_eq!(fill(&bench, 1), 1);
    bench.home.set_paused(false);
    assert!(!side.is_held_back(), "the home has caught up");
    bench.home.complete();
    bench.lanes[1].flush(FlushMode::Inline);
    assert_eq!(allowance.used_bytes(), 0);
    bench.home.set_paused(true);
    side.append(vec![1; 500]);
    assert_eq!(allowance.used_bytes(), 3500);
    side.finish(Box::new(|result| assert!(result.is_ok())));
    assert_eq!(allowance.used_bytes(), 0, "finished");
    let mut side = bench.lane.begin_side_segment().unwrap();
    side.append(vec![1; 700]);
    assert_eq!(allowance.used_bytes(), 700);
    drop(side);
    assert_eq!(allowance.used_bytes(), 0, "given up");
}

/// The limit is below what one entry takes: each lane still gets one at a time.
#[test]
fn an_entry_larger_than_the_allowance_goes_alone() {
    let allowance = Arc::new(LogAllocationLimit::new(100));
    let bench = bench_with(1, 4, Some(&allowance));
    for csn in 1..=5 {
        let room = bench.lane.room(1000).expect("nothing is on the way");
        assert!(matches!(bench.lane.room(10), Err(NoRoom::Full)));
        bench
            .lane
            .push(room, Csn(csn), 0, &EntryDependencies::default(), &[0; 1000]);
        assert!(
            matches!(bench.lane.room(10), Err(NoRoom::Full)),
            "and flushes"
        );
        assert_eq!(allowance.used_bytes(), 0);
    }
}
