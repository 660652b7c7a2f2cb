//! Answers that say little, and what follows from them (T14).

use super::rig::{self, LANE, TestWriter};
use logstead_home::bucket::memory::{Fault, MemoryBucket, RequestKind};
use logstead_home::{HomeError, HomeStatus, LaneAppends, RoomRequest};

/// The kind of request that appends a block in this bucket.
fn append_of(home: &logstead_home::ObjectHome) -> RequestKind {
    match home.capabilities().appends_in_flight_max {
        1 => RequestKind::Append,
        _ => RequestKind::PutIfAbsent,
    }
}

/// Writes around one block that meets `faults`, one attempt after the other; gives the number of settled ones.
fn survives(bucket: &MemoryBucket, faults: &[Fault]) -> u64 {
    let home = rig::open(bucket);
    let mut writer = TestWriter::open(&home, 1, 1 << 32);
    writer.write_all(2);
    for &fault in faults {
        bucket.plan(append_of(&home), "lane-0000", fault);
    }
    writer.write(500).expect("appends");
    writer.write_all(2);
    bucket.land_all();
    assert_eq!(bucket.plans(), 0, "all faults have happened");
    assert_eq!(rig::chain(&home, 1, 1 << 32).blocks, 5, "{faults:?}");
    rig::reported(&home, "settled")
}

#[test]
fn t14_a_delayed_append_of_our_own_looks_like_a_foreign_one() {
    for bucket in rig::every_kind() {
        // Between the look (one request later) and the second try (two later): the second try finds the place taken.
        assert_eq!(survives(&bucket, &[Fault::Delay(2)]), 1);
    }
    for bucket in rig::every_kind() {
        // Before the look.
        assert_eq!(survives(&bucket, &[Fault::Delay(1)]), 1);
    }
    for bucket in rig::every_kind() {
        // When later blocks have been appended: the provider refuses it, and nobody hears of it.
        assert_eq!(survives(&bucket, &[Fault::Delay(4)]), 0);
    }
    for bucket in rig::every_kind() {
        assert_eq!(survives(&bucket, &[Fault::Delay(u64::MAX)]), 0);
    }
    for bucket in rig::every_kind() {
        // Two tries under way, and both are late.
        assert_eq!(survives(&bucket, &[Fault::Delay(4), Fault::Delay(5)]), 1);
    }
}

#[test]
fn lost_replies_are_settled_and_duplicates_do_no_harm() {
    for bucket in rig::every_kind() {
        assert_eq!(survives(&bucket, &[Fault::LostReply]), 1);
    }
    for bucket in rig::every_kind() {
        assert_eq!(survives(&bucket, &[Fault::Vanishes, Fault::LostReply]), 1);
    }
    for bucket in rig::every_kind() {
        assert_eq!(survives(&bucket, &[Fault::Duplicate(1)]), 0);
    }
}

#[test]
fn what_does_not_act_now_is_tried_again_for_as_long_as_it_takes() {
    for bucket in rig::every_kind() {
        let faults = [Fault::NotNow; 300];
        assert_eq!(survives(&bucket, &faults), 0);
        let usage = rig::open(&bucket).usage();
        assert_eq!(usage[0].provider, "memory");
    }
    for bucket in rig::every_kind() {
        assert_eq!(survives(&bucket, &[Fault::Vanishes; 50]), 0);
    }
}

#[test]
fn the_provider_s_no_is_final_and_said_in_its_words() {
    for bucket in rig::every_kind() {
        for fault in [Fault::Refused, Fault::Full] {
            let home = rig::open(&bucket);
            let first = if fault == Fault::Full {
                2 << 32
            } else {
                1 << 32
            };
            let mut writer = TestWriter::open(&home, 1, first);
            bucket.plan(append_of(&home), "lane-0000", fault);
            let error = writer.write(100).expect_err("refused");
            assert!(matches!(error, HomeError::Io { .. }), "{error:?}");
            assert!(error.to_string().contains("as the test wants it"));
            // The lane has ended.
            assert!(writer.write(100).is_err());
            assert!(
                home.ensure_room(LANE, 100, &mut RoomRequest::default())
                    .is_err()
            );
        }
    }
}

/// A refusal after an attempt that nobody knows of: the attempt may have succeeded.
#[test]
fn a_refusal_after_a_lost_reply_is_looked_into_first() {
    for bucket in rig::every_kind() {
        let faults = [Fault::Delay(2), Fault::Refused];
        assert_eq!(survives(&bucket, &faults), 1);
    }
}

#[test]
fn the_buffer_comes_back() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, 1 << 32);
        for fault in [Fault::Slow(1), Fault::LostReply, Fault::Delay(2)] {
            bucket.plan(append_of(&home), "lane-0000", fault);
            let (_, told) = writer.begin(5000).expect("room");
            let (buffer, result) = told.recv().expect("completes");
            result.expect("appends");
            assert_eq!(buffer.capacity(), 5000);
        }
    }
}

/// A segment that is made in doubt: looked for, and taken if it is ours.
#[test]
fn doubtful_new_segments_are_settled() {
    let faults: [&[Fault]; 6] = [
        &[Fault::LostReply],
        &[Fault::Delay(1)],
        &[Fault::Delay(2)],
        &[Fault::Delay(9)],
        &[Fault::Vanishes, Fault::NotNow, Fault::LostReply],
        &[Fault::Duplicate(3)],
    ];
    for faults in faults {
        for bucket in &rig::every_kind()[..2] {
            let home = rig::open(bucket);
            let mut writer = TestWriter::open(&home, 1, 1 << 32);
            for &fault in faults {
                bucket.plan(RequestKind::Create, "0000000100000001", fault);
            }
            writer.write_all(rig::BLOCKS + 2);
            bucket.land_all();
            assert_eq!(bucket.plans(), 0);
            let blocks = rig::chain(&home, 1, 1 << 32).blocks;
            assert_eq!(u64::from(blocks), rig::BLOCKS + 2, "{faults:?}");
        }
    }
}

/// The second of two steps fails: the object is there and empty.
#[test]
fn a_segment_that_was_made_and_not_filled_is_filled() {
    for fault in [
        Fault::Vanishes,
        Fault::LostReply,
        Fault::Delay(2),
        Fault::Delay(3),
    ] {
        let bucket = &rig::every_kind()[1];
        let home = rig::open(bucket);
        bucket.plan(RequestKind::Append, "0000000100000000", fault);
        let mut writer = TestWriter::open(&home, 1, 1 << 32);
        writer.write_all(3);
        bucket.land_all();
        assert_eq!(rig::chain(&home, 1, 1 << 32).blocks, 3, "{fault:?}");
    }
}
