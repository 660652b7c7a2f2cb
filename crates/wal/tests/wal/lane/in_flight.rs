//! Several blocks in flight, completing in any order; cursors, GSNs, times.

use super::bench::{BUFFER, ENTRY_LEN, NOTHING, bench, bench_with};
use logstead_env::{Env, Instant};
use logstead_home::{LaneAppends, LogHome};
use logstead_types::Csn;
use logstead_wal::recovery::{self, RecoveryOptions};
use logstead_wal::{Cursor, EntryDependencies, FlushMode, FlushOutcome, FlushTimes, LaneConfig};

#[test]
fn t2_blocks_that_complete_out_of_order_harden_in_order() {
    let bench = bench_with(1, 4, None);
    bench.home.set_paused(true);
    let mut ends = Vec::new();
    for csn in [5, 3, 4] {
        ends.push(bench.push(csn).end);
        assert_eq!(bench.lane.flush(FlushMode::Handoff), FlushOutcome::Started);
    }
    assert_eq!(bench.home.waiting(), 3, "all in flight together");
    assert!(bench.home.complete_at(2));
    assert!(bench.home.complete_at(1));
    assert_eq!(bench.lane.hardened(), Cursor(0), "the first is missing");
    assert_eq!(bench.lane.hardened_gsn(), 0);
    assert_eq!(bench.lane.first_not_durable(), Csn(3));
    assert_eq!(bench.lane.flush_times(ends[2]), None);
    assert_eq!(bench.lane.blocks_in_flight(), 3);
    assert_eq!(bench.lane.counters().blocks, 0);
    assert!(bench.events().is_empty());
    assert!(bench.home.complete());
    assert_eq!(bench.lane.hardened(), ends[2]);
    assert_eq!(bench.lane.hardened_gsn(), 3);
    assert_eq!(bench.lane.first_not_durable(), NOTHING);
    assert_eq!(bench.lane.blocks_in_flight(), 0);
    assert_eq!(bench.events(), ["durable 0"]);
    assert_eq!(bench.lane.counters().blocks, 3);
}

#[test]
fn t2_headers_say_how_many_blocks_had_hardened_and_form_a_chain() {
    let bench = bench_with(1, 4, None);
    bench.home.set_paused(true);
    for csn in 1..=4 {
        bench.push(csn);
        bench.lane.flush(FlushMode::Handoff);
        if csn == 3 {
            // Block 1 completes, but counts for nothing while block 0 has not.
            bench.home.complete_at(1);
        }
    }
    while bench.home.complete() {}
    bench.push(5);
    bench.lane.flush(FlushMode::Inline);
    let blocks = bench.stored(0, 5);
    let durable_through: Vec<u64> = blocks
        .iter()
        .map(|block| block.as_ref().unwrap().0.durable_through)
        .collect();
    assert_eq!(durable_through, [0, 0, 0, 0, 4]);
    let mut previous = 0;
    for block in blocks {
        let (header, _) = block.unwrap();
        assert_eq!(header.previous_header_crc, previous);
        previous = header.encode().1;
    }
}

/// A crash with blocks in flight: recovery ends before the first that is missing, whatever of the later ones is there.
#[test]
fn t2_what_hardened_survives_a_crash_with_later_blocks_written() {
    let bench = bench_with(1, 8, None);
    let home = LogHome::from(bench.home.clone());
    let (env, _) = Env::simulated(7);
    let options = RecoveryOptions {
        lanes: 2,
        lane: LaneConfig {
            buffer_size_bytes: BUFFER,
            ..LaneConfig::default()
        },
        accept_data_loss: false,
        lease: logstead_wal::lease::LeaseOptions::default(),
    };
    // The bench's own lanes are no log; this one begins afresh.
    bench.home.crash();
    for lane in home.segments.list_lanes().unwrap() {
        home.segments.trim(lane, 0).unwrap();
    }
    let log = recovery::open(&home, &env, &options, &mut |_, _| Ok(())).unwrap();
    let lane = &log.lanes[1];
    assert_eq!(lane.blocks_in_flight_max(), 8, "the home's, by default");
    bench.home.set_paused(true);
    for csn in 1..=5 {
        let room = lane.room(10).unwrap();
        lane.push(
            room,
            Csn(csn),
            0,
            &EntryDependencies::floor(Csn(csn - 1)),
            &[1; 10],
        );
        lane.flush(FlushMode::Handoff);
    }
    // 0 and 1 harden; 3 and 4 are written, 2 is not.
    for index in [0, 0, 1, 1] {
        bench.home.complete_at(index);
    }
    assert_eq!(lane.first_not_durable(), Csn(3));
    bench.home.crash();
    drop(log);
    let mut found = Vec::new();
    recovery::open(&home, &env, &options, &mut |csn, _| {
        found.push(csn.get());
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [1, 2]);
}

#[test]
fn no_more_blocks_are_in_flight_than_may_be() {
    let bench = bench_with(1, 2, None);
    bench.home.set_paused(true);
    for csn in 1..=2 {
        bench.push(csn);
        assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Durable);
    }
    // The inline ones were written at once; two handed off ones are in flight now.
    for csn in 3..=4 {
        bench.push(csn);
        bench.lane.flush(FlushMode::Handoff);
    }
    bench.push(5);
    assert_eq!(bench.lane.flush(FlushMode::Handoff), FlushOutcome::Queued);
    assert_eq!(bench.home.waiting(), 2);
    // The second one completes, but the first still counts: what may be lost in a crash is bounded.
    bench.home.complete_at(1);
    assert_eq!(
        (bench.home.waiting(), bench.lane.blocks_in_flight()),
        (1, 2)
    );
    assert!(bench.lane.is_dirty());
    bench.home.complete();
    assert_eq!(
        bench.home.waiting(),
        1,
        "the flush asked for goes on by itself"
    );
    assert!(!bench.lane.is_dirty());
    assert_eq!(bench.lane.first_not_durable(), Csn(5));
}

#[test]
fn an_inline_flush_behind_a_block_in_flight_is_not_durable() {
    let bench = bench_with(1, 4, None);
    bench.home.set_paused(true);
    bench.push(1);
    bench.lane.flush(FlushMode::Handoff);
    let second = bench.push(2).end;
    // Written, in this thread, but not hardened (T2).
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Started);
    assert_eq!(bench.lane.hardened(), Cursor(0));
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Queued);
    bench.home.complete();
    assert_eq!(bench.lane.hardened(), second);
    assert_eq!(bench.lane.flush(FlushMode::Inline), FlushOutcome::Clean);
    let counters = bench.lane.counters();
    assert_eq!(
        (counters.flushes_inline, counters.flushes_handed_off),
        (1, 1)
    );
}

#[test]
fn a_failed_block_ends_what_was_in_flight_behind_it() {
    let bench = bench_with(1, 4, None);
    bench.home.set_paused(true);
    for csn in 1..=3 {
        bench.push(csn);
        bench.lane.flush(FlushMode::Handoff);
    }
    bench.home.set_failing(true);
    bench.home.complete_at(1);
    bench.home.set_failing(false);
    bench.home.complete_at(1);
    bench.home.complete();
    assert_eq!(bench.lane.hardened(), Cursor(0), "nothing after the error");
    assert_eq!(bench.lane.first_not_durable(), Csn(1), "for good");
    assert_eq!(bench.events(), ["failed"], "told once");
    assert!(!bench.lane.raise_gsn(100));
}

#[test]
fn cursors_and_gsns_grow_and_follow_what_hardens() {
    let bench = bench();
    let first = bench.push(5);
    assert_eq!((first.end, first.gsn), (Cursor(ENTRY_LEN), 1));
    let room = bench.lane.room(10).unwrap();
    let deps = EntryDependencies::floor(Csn(3));
    let second = bench.lane.push(room, Csn(4), 70, &deps, &[0; 10]);
    assert_eq!((second.end, second.gsn), (Cursor(2 * ENTRY_LEN), 70));
    let third = bench.push(6);
    assert_eq!(third.gsn, 71, "above the lane's last");
    assert_eq!(bench.lane.pushed(), third.end);
    assert!(!bench.lane.raise_gsn(100), "entries are buffered");
    assert_eq!(bench.lane.hardened_gsn(), 0);
    bench.home.set_paused(true);
    bench.lane.flush(FlushMode::Handoff);
    let fourth = bench.push(7);
    assert!(!bench.lane.raise_gsn(100), "entries are in flight");
    bench.home.complete();
    assert_eq!(
        (bench.lane.hardened(), bench.lane.hardened_gsn()),
        (third.end, 71)
    );
    assert!(!bench.lane.raise_gsn(100), "one is buffered");
    bench.home.set_paused(false);
    bench.lane.flush(FlushMode::Handoff);
    assert_eq!(
        (bench.lane.hardened(), bench.lane.hardened_gsn()),
        (fourth.end, 72)
    );
    assert!(bench.lane.raise_gsn(50), "nothing to raise");
    assert_eq!(bench.lane.hardened_gsn(), 72);
    // A room is no entry: what comes of it gets a larger GSN.
    let room = bench.lane.room(10).unwrap();
    assert!(bench.lane.raise_gsn(100));
    assert_eq!(bench.lane.hardened_gsn(), 100);
    let later = bench.lane.push(room, Csn(9), 3, &deps, &[0; 10]);
    assert_eq!(later.gsn, 101);
    assert_eq!(bench.lane.hardened_gsn(), 100);
}

#[test]
fn times_of_flushes_and_of_the_oldest_entry_that_waits() {
    let bench = bench_with(1, 2, None);
    bench.home.set_paused(true);
    assert_eq!(bench.lane.oldest_unflushed_at(), None);
    bench.now(10);
    let first = bench.push(1).end;
    bench.now(11);
    let second = bench.push(2).end;
    assert_eq!(
        bench.lane.oldest_unflushed_at(),
        Some(Instant::from_nanos(10))
    );
    bench.now(20);
    bench.lane.flush(FlushMode::Handoff);
    assert_eq!(bench.lane.oldest_unflushed_at(), None);
    bench.now(21);
    let third = bench.push(3).end;
    assert_eq!(
        bench.lane.oldest_unflushed_at(),
        Some(Instant::from_nanos(21))
    );
    bench.now(25);
    bench.lane.flush(FlushMode::Handoff);
    bench.now(30);
    bench.home.complete_at(1);
    assert_eq!(bench.lane.flush_times(third), None);
    bench.now(40);
    bench.home.complete();
    let times = |end, sealed, hardened| {
        Some(FlushTimes {
            end,
            sealed_at: Instant::from_nanos(sealed),
            hardened_at: Instant::from_nanos(hardened),
        })
    };
    assert_eq!(bench.lane.flush_times(first), times(second, 20, 40));
    assert_eq!(bench.lane.flush_times(second), times(second, 20, 40));
    assert_eq!(bench.lane.flush_times(third), times(third, 25, 40));
    assert_eq!(bench.lane.flush_times(Cursor(third.0 + 1)), None);
}

#[test]
fn buffers_are_made_when_needed_and_counted() {
    let capabilities = bench().home.capabilities();
    let config = LaneConfig {
        buffer_size_bytes: BUFFER,
        ..LaneConfig::default()
    };
    assert_eq!(config.buffer_bytes_max(&capabilities), 9 * BUFFER);
    let config = LaneConfig {
        blocks_in_flight_max: Some(1),
        ..config
    };
    assert_eq!(config.buffer_bytes_max(&capabilities), 2 * BUFFER);
    let config = LaneConfig {
        blocks_in_flight_max: Some(100),
        ..config
    };
    assert_eq!(
        config.buffer_bytes_max(&capabilities),
        9 * BUFFER,
        "no more than the home is worth"
    );
}
