//! Reading back: windows, patches, growth, damage; what is removed and what is not.

use super::fences::successor_is_there;
use super::rig::{self, BLOCKS, LANE, TestWriter};
use logstead_home::bucket::memory::{Fault, RequestKind};
use logstead_home::{Buffer, LaneAppends, LaneSegments, NamedValues, Position, SideSegments};

const FIRST: u64 = 1 << 32;

#[test]
fn windows_of_any_size_read_the_same() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, FIRST);
        let mut expected = Vec::new();
        for number in 0..BLOCKS as u32 - 1 {
            let len = 100 + 37 * number as usize;
            expected.extend_from_slice(rig::block(1, number, len).as_slice());
            writer.write(len).expect("appends");
        }
        for window in [1, 7, 99, 100, 101, 256, 1 << 20] {
            assert_eq!(rig::bytes_of(&home, FIRST, window), expected, "{window}");
        }
    }
}

/// Blocks behind a hole are part of the segment, also for windows that lie within the hole, or end there.
#[test]
fn a_hole_of_any_length_reads_as_zeros() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    let mut writer = TestWriter::open(&home, 1, FIRST);
    writer.write_all(1);
    let mut lost = Vec::new();
    for _ in 0..2 {
        bucket.plan(RequestKind::PutIfAbsent, "lane-0000", Fault::Hold);
        lost.push(writer.begin(100).expect("a place"));
        while bucket.in_network().len() < lost.len() {
            std::thread::yield_now();
        }
    }
    let (at, _behind) = writer.begin(100).expect("a place");
    while bucket.objects().len() < 2 {
        std::thread::yield_now();
    }
    let reader = rig::open(&bucket);
    let mut expected = rig::block(1, 0, 100).as_slice().to_vec();
    expected.resize(at.offset as usize, 0);
    expected.extend_from_slice(rig::block(1, 3, 100).as_slice());
    for window in [7, 50, 99, 100, 101, 150, 250, 399, 400, 1000] {
        assert_eq!(rig::bytes_of(&reader, FIRST, window), expected, "{window}");
    }
}

#[test]
fn reads_that_fail_are_tried_again() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, FIRST);
        writer.write_all(3);
        for fault in [
            Fault::NotNow,
            Fault::Vanishes,
            Fault::Truncated,
            Fault::LostReply,
        ] {
            bucket.plan(RequestKind::GetRange, "lane-0000", fault);
            bucket.plan(RequestKind::List, "lane-0000", fault);
            assert_eq!(rig::chain(&home, 1, FIRST).blocks, 3, "{fault:?}");
        }
        assert_eq!(bucket.plans(), 0);
        bucket.plan(RequestKind::GetRange, "lane-0000", Fault::Refused);
        let mut into = Buffer::zeroed(100);
        home.read(LANE, Position::start_of(FIRST), &mut into)
            .expect_err("refused");
    }
}

/// A lane must not end early because something in front of the store says that a listed object is not there.
#[test]
fn t7_an_answer_that_denies_a_listed_object_is_no_end() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, FIRST);
        writer.write_all(3);
        assert_eq!(home.list_segments(LANE).expect("lists").len(), 1);
        bucket.plan(RequestKind::GetRange, "lane-0000", Fault::Absent);
        let mut into = Buffer::zeroed(100);
        home.read(LANE, Position::start_of(FIRST), &mut into)
            .expect_err("it is there");
        assert_eq!(bucket.plans(), 0);
    }
}

#[test]
fn what_another_process_appends_is_read_although_it_was_not_listed() {
    for bucket in rig::every_kind() {
        let (home, reader) = (rig::open(&bucket), rig::open(&bucket.handle(1)));
        let mut writer = TestWriter::open(&home, 1, FIRST);
        for count in 1..BLOCKS as usize {
            writer.write_all(1);
            assert_eq!(rig::bytes_of(&reader, FIRST, 64).len(), count * 100);
        }
    }
}

/// A recovery that brings a block to a copy that does not have it, behind the fence.
#[test]
fn a_block_behind_the_fence_is_patched_in() {
    for bucket in rig::every_kind() {
        let (ours, theirs) = (rig::open(&bucket), rig::open(&bucket.handle(1)));
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(3);
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        let at = rig::chain(&theirs, 1, FIRST).end;
        let patches = rig::reported(&theirs, "patches");
        for (number, at) in [
            (3, at),
            (
                4,
                Position {
                    offset: at.offset + 200,
                    ..at
                },
            ),
        ] {
            let block = rig::block(1, number, 200);
            bucket
                .handle(1)
                .plan(RequestKind::PutIfAbsent, "patch", Fault::LostReply);
            theirs.rewrite(LANE, at, &block, 200).expect("patches");
            // Once more, by another who recovers: it is there.
            rig::open(&bucket)
                .rewrite(LANE, at, &block, 200)
                .expect("is there");
        }
        assert_eq!(rig::reported(&theirs, "patches"), patches + 2);
        for home in [&theirs, &rig::open(&bucket.handle(2))] {
            let chain = rig::chain(home, 1, FIRST);
            assert_eq!((chain.blocks, chain.end.offset), (5, 700));
        }
        assert!(old.write(100).is_err());
        // Another content for the same place is a contradiction.
        theirs
            .rewrite(LANE, at, &rig::block(9, 9, 200), 200)
            .expect_err("refused");
        theirs.trim(LANE, FIRST).expect("trims");
        assert!(
            !bucket
                .objects()
                .iter()
                .any(|(name, _)| name.contains("patch"))
        );
    }
}

#[test]
fn rewriting_what_is_there_writes_nothing() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, FIRST);
        writer.write_all(2);
        let before = bucket.objects();
        let at = Position {
            segment: FIRST,
            offset: 100,
        };
        home.rewrite(LANE, at, &rig::block(1, 1, 100), 100)
            .expect("is there");
        assert_eq!(bucket.objects(), before);
        assert_eq!(rig::reported(&home, "patches"), 0);
    }
}

/// T8: a segment goes, with all that is its own and nothing else.
#[test]
fn t8_trimming_removes_a_segment_and_nothing_else() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, FIRST);
        writer.write_all(BLOCKS * 3);
        home.open_lane(logstead_types::LaneId(1), FIRST)
            .expect("opens");
        home.put_if_absent("manifest", b"m").expect("puts");
        let mut side = home.begin_side_segment(LANE, FIRST);
        side.append(vec![1; 10]);
        let (tell, told) = std::sync::mpsc::channel();
        side.finish(Box::new(move |result| {
            tell.send(result).expect("the test waits")
        }));
        told.recv().expect("told").expect("stores");
        // The successor is made in the background.
        if home.capabilities().appends_in_flight_max == 1 {
            successor_is_there(&bucket, FIRST + 2);
        }
        let mut expected = bucket.objects();
        home.trim(LANE, FIRST + 1).expect("trims");
        expected.retain(|(name, _)| !name.starts_with("log/lane-0000/0000000100000001"));
        assert_eq!(bucket.objects(), expected);
        home.trim(LANE, FIRST + 1).expect("a missing one is fine");
        assert_eq!(bucket.objects(), expected);
        let segments = home.list_segments(LANE).expect("lists");
        assert!(segments.iter().all(|info| info.segment != FIRST + 1));
    }
}
