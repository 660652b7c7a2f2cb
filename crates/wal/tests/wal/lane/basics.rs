//! One lane, one block in flight: what is published when, what room means, a home that is full or broken.

use super::bench::{BUFFER, Count, NOTHING, bench};
use logstead_home::LogHome;
use logstead_types::Csn;
use logstead_wal::{EntryDependencies, FlushMode, FlushOutcome, LaneConfig, NoRoom};
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn push_publishes_and_an_inline_flush_hardens() {
    let bench = bench();
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Clean);
    assert_eq!(bench.lane.first_not_durable(), NOTHING);
    // A shared lane: entries are not in CSN order.
    for csn in [7, 5, 9] {
        bench.push(csn);
    }
    assert_eq!(bench.lane.first_not_durable(), Csn(5));
    assert!(bench.lane.is_dirty());
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Durable);
    assert_eq!(bench.lane.first_not_durable(), NOTHING);
    assert_eq!(bench.events(), ["durable 0"]);
    let counters = bench.lane.counters();
    assert_eq!(
        (counters.blocks, counters.entries, counters.bytes),
        (1, 3, 4096)
    );
    assert_eq!(
        (counters.flushes_inline, counters.flushes_handed_off),
        (1, 0)
    );
}

#[test]
fn bytes_pushed_during_a_flush_are_not_acknowledged_by_it() {
    let bench = bench();
    bench.home.set_paused(true);
    bench.push(3);
    assert_eq!(bench.lane.flush(FlushMode::Handoff), FlushOutcome::Started);
    bench.push(2);
    bench.push(4);
    assert_eq!(bench.lane.first_not_durable(), Csn(2));
    assert!(bench.lane.in_flight());
    assert!(bench.home.complete());
    assert_eq!(bench.lane.first_not_durable(), Csn(2));
    assert_eq!(bench.home.waiting(), 0, "nobody asked for another flush");
    assert_eq!(bench.events(), ["durable 2"]);
}

#[test]
fn a_flush_asked_for_meanwhile_goes_on_by_itself() {
    let bench = bench();
    bench.home.set_paused(true);
    bench.push(1);
    bench.lane.flush(FlushMode::Handoff);
    bench.push(2);
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Queued);
    assert_eq!(bench.home.waiting(), 1, "one block in flight");
    bench.push(3);
    assert!(bench.home.complete());
    assert_eq!(
        bench.home.waiting(),
        1,
        "the second block, with everything pushed until then"
    );
    assert_eq!(bench.lane.first_not_durable(), Csn(2));
    assert!(bench.home.complete());
    assert_eq!(bench.lane.first_not_durable(), NOTHING);
    assert_eq!(bench.lane.counters().entries, 3);
}

/// However little of a buffer is used: every entry finds room in an empty one, and who is refused is told of more.
#[test]
fn a_limited_buffer_is_a_smaller_one() {
    let bench = bench();
    let largest = bench.lane.inline_size_max();
    let fill = || -> Vec<_> { std::iter::from_fn(|| bench.lane.room(1000).ok()).collect() };
    let rooms = |bytes| {
        bench.lane.limit_buffer(bytes);
        fill().len()
    };
    let (all, half) = (rooms(usize::MAX), rooms(0));
    assert!(half >= 1 && half < all, "{half} of {all}");
    assert!(half.abs_diff(all / 2) <= 1, "{half} of {all}");
    assert_eq!(rooms(BUFFER), all);
    bench.lane.limit_buffer(0);
    let room = bench.lane.room(largest).expect("the largest entry fits");
    let others = fill();
    let count = Arc::new(Count::default());
    bench.lane.wait_room(&count.waker());
    drop(room);
    assert_eq!(count.get(), 1, "space has come up");
    drop(others);
}

#[test]
fn room_is_bounded_given_back_and_announced() {
    let bench = bench();
    assert!(matches!(bench.lane.room(BUFFER), Err(NoRoom::TooLarge)));
    let mut rooms = Vec::new();
    let refused = loop {
        match bench.lane.room(1000) {
            Ok(room) => rooms.push(room),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, NoRoom::Full));
    assert_eq!(bench.lane.counters().refused_full, 1);
    assert!((2..8).contains(&rooms.len()), "{}", rooms.len());
    let count = Arc::new(Count::default());
    bench.lane.wait_room(&count.waker());
    bench.lane.wait_room(&count.waker());
    drop(rooms.pop());
    assert_eq!(count.get(), 1, "a waker registered twice is woken once");
    assert_eq!(bench.events(), ["room"]);
    assert!(bench.lane.room(1000).is_ok());
    assert_eq!(
        bench.lane.first_not_durable(),
        NOTHING,
        "rooms are no entries"
    );
}

#[test]
fn a_full_buffer_flushes_itself() {
    let bench = bench();
    let mut csn = 0;
    let mut flushed = 0;
    while flushed < 3 {
        match bench.lane.room(500) {
            Ok(room) => {
                csn += 1;
                bench
                    .lane
                    .push(room, Csn(csn), 0, &EntryDependencies::default(), &[1; 500]);
            }
            Err(NoRoom::Full) => {
                flushed += 1;
                assert_eq!(
                    bench.lane.first_not_durable(),
                    NOTHING,
                    "the memory home is quick"
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_full_disk_refuses_before_anything_is_reserved_and_passes() {
    let bench = bench();
    bench.home.set_disk_full(true);
    let mut csn = 0;
    let refused = loop {
        match bench.lane.room(100) {
            Ok(room) => {
                csn += 1;
                bench
                    .lane
                    .push(room, Csn(csn), 0, &EntryDependencies::default(), &[1; 100]);
                assert_eq!(
                    bench.lane.flush(FlushMode::Inline),
                    FlushOutcome::Durable,
                    "what got room is written"
                );
            }
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, NoRoom::DiskFull));
    assert_eq!(bench.lane.counters().refused_home, 1);
    assert!(csn >= 7, "the segment was used: {csn}");
    let (done, told) = std::sync::mpsc::channel();
    let mut side = bench.lane.begin_side_segment().unwrap();
    side.append(vec![0; 10]);
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    assert!(matches!(told.recv().unwrap(), Err(NoRoom::DiskFull)));
    let count = Arc::new(Count::default());
    bench.lane.wait_room(&count.waker());
    bench.home.set_disk_full(false);
    assert_eq!(count.get(), 1);
    assert!(bench.lane.room(100).is_ok());
    assert!(bench.lane.failure().is_none());
}

#[test]
fn a_failed_write_ends_the_lane_and_acknowledges_nothing() {
    let bench = bench();
    bench.push(1);
    bench.lane.flush(FlushMode::Inline);
    bench.home.set_failing(true);
    bench.push(2);
    let room = bench.lane.room(10).unwrap();
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Failed);
    bench.home.set_failing(false);
    bench
        .lane
        .push(room, Csn(3), 0, &EntryDependencies::default(), &[]);
    assert_eq!(bench.lane.flush(FlushMode::Handoff), FlushOutcome::Failed);
    assert_eq!(bench.lane.first_not_durable(), Csn(2), "for good");
    assert!(matches!(bench.lane.room(10), Err(NoRoom::Failed(_))));
    assert_eq!(bench.events(), ["durable 0", "failed"]);
    assert_eq!(bench.home.appends(), 2, "never tried again");
}

#[test]
#[should_panic(expected = "an entry larger than its room")]
fn an_entry_larger_than_its_room_is_a_bug() {
    let bench = bench();
    let room = bench.lane.room(5).unwrap();
    bench
        .lane
        .push(room, Csn(1), 0, &EntryDependencies::default(), &[0; 6]);
}

/// Many threads on one lane over a real disk: at every moment the published CSN is at or below every CSN that is not
/// durable, and in the end everything is there.
#[test]
fn threads_share_a_lane() {
    use logstead_env::Env;
    use logstead_home::{HomeError, LocalHome, LocalOptions};
    use logstead_wal::recovery::{self, RecoveryOptions};
    use std::sync::atomic::AtomicU64;
    let dir = tempfile::tempdir().unwrap();
    let env = Env::real();
    let sizes = LocalOptions {
        segment_size_bytes: 128 * 1024,
        first_segment_size_bytes: 64 * 1024,
        segment_size_bytes_min: 64 * 1024,
        threads: true,
        ..LocalOptions::default()
    };
    let options = RecoveryOptions {
        lanes: 1,
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
    let lane = log.lanes[0].clone();
    let counter = Arc::new(AtomicU64::new(1));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (lane, counter) = (lane.clone(), Arc::clone(&counter));
            let work = move || {
                for _ in 0..300 {
                    let room = loop {
                        match lane.room(200) {
                            Ok(room) => break room,
                            Err(NoRoom::Full) => std::thread::yield_now(),
                            Err(other) => panic!("{other}"),
                        }
                    };
                    let csn = counter.fetch_add(1, Ordering::SeqCst);
                    lane.push(
                        room,
                        Csn(csn),
                        0,
                        &EntryDependencies::floor(Csn(csn - 1)),
                        &[number; 200],
                    );
                    let mode = if number % 2 == 0 {
                        FlushMode::Inline
                    } else {
                        FlushMode::Handoff
                    };
                    let outcome = lane.flush(mode);
                    if outcome == FlushOutcome::Durable {
                        assert_ne!(
                            lane.first_not_durable(),
                            Csn(csn),
                            "an inline flush hardens what was pushed before"
                        );
                    }
                }
            };
            logstead_env::spawn("pusher", None, work).unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    while lane.first_not_durable() != NOTHING {
        lane.flush(FlushMode::Inline);
        std::thread::yield_now();
    }
    assert_eq!(lane.counters().entries, 1200);
    drop((lane, log));
    let mut found = Vec::new();
    let log = open(&mut found);
    assert_eq!(found, (1..=1200).collect::<Vec<u64>>());
    assert_eq!(log.next_csn, Csn(1201));
}

#[test]
fn a_push_tells_who_has_to_see_to_a_flush() {
    let bench = bench();
    assert!(bench.push(1).was_clean, "clean before");
    assert!(!bench.push(2).was_clean, "whoever pushed first flushes");
    bench.lane.flush(FlushMode::Inline);
    assert!(
        bench.push(3).was_clean,
        "clean again, whenever anybody looked"
    );
}

/// Who waits because the home has no room yet is woken by the home: not by the room that others, or he himself, take
/// and give back meanwhile, which would keep him asking without end.
#[test]
fn a_room_given_back_wakes_only_those_it_kept_out() {
    let bench = bench();
    let count = Arc::new(Count::default());
    bench.lane.wait_room(&count.waker());
    drop(bench.lane.room(100).expect("there is room"));
    assert_eq!(count.get(), 0);
    let mut rooms = Vec::new();
    while let Ok(room) = bench.lane.room(bench.lane.inline_size_max()) {
        rooms.push(room);
    }
    bench.lane.wait_room(&count.waker());
    drop(rooms.pop());
    assert_eq!(count.get(), 1, "this one was refused for want of space");
}
