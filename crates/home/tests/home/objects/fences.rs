//! Another process takes a lane over (T3), with the old writer in every state it can be in.

use super::rig::{self, BLOCKS, LANE, TestWriter, is_fenced};
use logstead_home::bucket::memory::{Fault, MemoryBucket, Rates, RequestKind};
use logstead_home::{HomeError, LaneAppends, LaneSegments, NoRoom, ObjectHome, Position};
use std::sync::mpsc;

const FIRST: u64 = 1 << 32;

/// The old writer's home and the one that takes over.
fn two(bucket: &MemoryBucket) -> (ObjectHome, ObjectHome) {
    (rig::open(bucket), rig::open(&bucket.handle(1)))
}

/// The old writer cannot go on, whatever it does, and its lane holds what it was told.
fn is_shut(mut old: TestWriter<'_>, new: &ObjectHome, acknowledged: u64) {
    let before = rig::chain(new, old.id, FIRST);
    assert!(u64::from(before.blocks) >= acknowledged, "{before:?}");
    for _ in 0..3 {
        let result = old.write(100);
        assert!(is_fenced(&result), "{result:?}");
    }
    assert_eq!(rig::chain(new, old.id, FIRST), before);
}

/// Waits until the segment behind this one has been made.
pub(crate) fn successor_is_there(bucket: &MemoryBucket, segment: u64) {
    let name = format!("{:016x}", segment + 1);
    while !bucket
        .objects()
        .iter()
        .any(|(known, _)| known.ends_with(&name))
    {
        std::thread::yield_now();
    }
}

#[test]
fn t3_a_fence_reaches_the_active_object_with_and_without_a_successor() {
    for count in 0..BLOCKS * 3 {
        for bucket in rig::every_kind() {
            let (ours, theirs) = two(&bucket);
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(count);
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            is_shut(old, &theirs, count);
        }
    }
}

/// A copy that was completed, whose writer goes on in the segment behind and has not written there yet: the fence
/// reaches the name that it will use.
#[test]
fn t3_a_fence_reaches_the_first_name_behind_what_was_completed() {
    for bucket in rig::every_kind() {
        let (ours, theirs) = two(&bucket);
        for segment in FIRST..FIRST + 3 {
            let block = rig::block(1, 0, 100);
            let at = Position::start_of(segment);
            let len = block.capacity();
            ours.rewrite(LANE, at, &block, len).expect("completes");
        }
        let mut old = TestWriter::open(&ours, 1, FIRST + 3);
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        let result = old.write(100);
        assert!(is_fenced(&result), "{result:?}");
    }
}

/// The active object is full and its successor is there: the old writer's next append goes into the successor, which is
/// where the fence must be too; and as long as the active one has room, there.
#[test]
fn t3_a_fence_reaches_the_successor_that_is_open_ahead() {
    for count in BLOCKS / 2..=BLOCKS {
        let bucket = rig::appendable();
        let (ours, theirs) = two(&bucket);
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(count);
        successor_is_there(&bucket, FIRST);
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        is_shut(old, &theirs, count);
    }
}

/// The fencer has seen only object k; before it acts, the old writer is in k+1 already, and has k+2 made.
#[test]
fn t3_the_fence_hits_object_k_while_the_old_writer_holds_k_plus_1() {
    for more in 0..BLOCKS * 3 {
        for bucket in rig::every_kind() {
            let (ours, theirs) = two(&bucket);
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(1);
            // Plain: the fence itself; appendable: the tombstone. Both come after the listing.
            bucket
                .handle(1)
                .plan(RequestKind::PutIfAbsent, "lane-0000", Fault::Hold);
            std::thread::scope(|scope| {
                let fencing = scope.spawn(|| theirs.fence(LANE, FIRST, "server b"));
                let held = rig::held(&bucket, RequestKind::PutIfAbsent, "lane-0000");
                old.write_all(more);
                assert!(bucket.land(held));
                fencing.join().expect("no panic").expect("fences");
            });
            is_shut(old, &theirs, 1 + more);
        }
    }
}

/// The tombstone is in place, and the fence on its way to the active object is overtaken by appends.
#[test]
fn t3_the_old_writer_is_faster_than_the_fence_in_its_object() {
    for more in 0..BLOCKS {
        let bucket = rig::appendable();
        let (ours, theirs) = two(&bucket);
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(1);
        bucket
            .handle(1)
            .plan(RequestKind::Append, "lane-0000", Fault::Hold);
        let mut written = 1;
        std::thread::scope(|scope| {
            let fencing = scope.spawn(|| theirs.fence(LANE, FIRST, "server b"));
            let held = rig::held(&bucket, RequestKind::Append, "lane-0000");
            for _ in 0..more {
                // From half of the segment on, the old writer may have met the tombstone.
                match old.write(100) {
                    Ok(_) => written += 1,
                    result => assert!(is_fenced(&result), "{result:?}"),
                }
            }
            assert!(bucket.land(held));
            fencing.join().expect("no panic").expect("fences");
        });
        assert!(written > more.min(BLOCKS / 2 - 2));
        is_shut(old, &theirs, written);
    }
}

/// The old writer's request for its next segment is in the network while the lane is fenced, and lands when that is
/// done.
#[test]
fn t3_a_delayed_create_comes_too_late() {
    for bucket in &rig::every_kind()[..2] {
        let (ours, theirs) = two(bucket);
        bucket.plan(RequestKind::Create, "0000000100000001", Fault::Hold);
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(BLOCKS);
        let create = rig::held(bucket, RequestKind::Create, "0000000100000001");
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        assert!(bucket.land(create));
        is_shut(old, &theirs, BLOCKS);
    }
}

/// The same, and the new server has removed meanwhile whatever lies behind the lane's end: the tombstone must outlive
/// that.
#[test]
fn t8_fences_outlive_the_segments_they_shut() {
    for bucket in &rig::every_kind()[..2] {
        let (ours, theirs) = two(bucket);
        bucket.plan(RequestKind::Create, "0000000100000001", Fault::Hold);
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(BLOCKS);
        let create = rig::held(bucket, RequestKind::Create, "0000000100000001");
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        for info in theirs.list_segments(LANE).expect("lists") {
            theirs.trim(LANE, info.segment).expect("trims");
        }
        for segment in FIRST..FIRST + 3 {
            theirs.trim(LANE, segment).expect("trims");
        }
        assert!(theirs.list_segments(LANE).expect("lists").is_empty());
        assert!(theirs.list_lanes().expect("lists").is_empty());
        assert!(bucket.land(create));
        let result = old.write(100);
        assert!(is_fenced(&result), "{result:?}");
    }
    for count in 0..BLOCKS * 2 {
        for bucket in rig::every_kind() {
            let (ours, theirs) = two(&bucket);
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(count);
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            for segment in FIRST..FIRST + 4 {
                theirs.trim(LANE, segment).expect("trims");
            }
            assert!(theirs.list_segments(LANE).expect("lists").is_empty());
            let result = old.write(100);
            assert!(is_fenced(&result), "{count}: {result:?}");
        }
    }
}

/// The old writer's create is late; it looks, finds nothing, and is about to try again. The first one lands, the new
/// server fences the object and removes it; then the second one lands.
#[test]
fn t8_a_segment_that_was_made_and_never_written_leaves_its_fence() {
    const NEXT: &str = "0000000100000001";
    for bucket in &rig::every_kind()[..2] {
        let (ours, theirs) = two(bucket);
        bucket.plan(RequestKind::Create, NEXT, Fault::Delay(u64::MAX));
        bucket.plan(RequestKind::Create, NEXT, Fault::Hold);
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(BLOCKS);
        let creates = loop {
            let network = bucket.in_network();
            let creates = network
                .iter()
                .filter(|(_, kind, _)| *kind == RequestKind::Create);
            let creates: Vec<u64> = creates.map(|&(id, ..)| id).collect();
            if creates.len() == 2 {
                break creates;
            }
            std::thread::yield_now();
        };
        assert!(bucket.land(creates[0]));
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        for segment in FIRST..FIRST + 4 {
            theirs.trim(LANE, segment).expect("trims");
        }
        assert!(theirs.list_segments(LANE).expect("lists").is_empty());
        assert!(bucket.land(creates[1]));
        let result = old.write(100);
        assert!(is_fenced(&result), "{result:?}");
    }
}

/// Something in front of the store says once that the active object is not there.
#[test]
fn t3_an_object_is_fenced_although_one_answer_denies_it() {
    for bucket in &rig::every_kind()[..2] {
        for kind in [RequestKind::Stat, RequestKind::Append] {
            let (ours, theirs) = two(bucket);
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(1);
            bucket.handle(1).plan(kind, "lane-0000", Fault::Absent);
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            assert_eq!(bucket.handle(1).plans(), 0, "{kind:?}");
            is_shut(old, &theirs, 1);
            bucket.remove("");
        }
    }
}

/// The old writer finds its append refused, and before it looks why, the new server has removed the segment, fence and
/// all.
#[test]
fn t8_an_object_that_is_gone_when_we_look_was_another_one_s() {
    let bucket = rig::plain();
    let (ours, theirs) = two(&bucket);
    let mut old = TestWriter::open(&ours, 1, FIRST);
    old.write_all(1);
    theirs.fence(LANE, FIRST, "server b").expect("fences");
    bucket.plan(RequestKind::Get, "lane-0000", Fault::Hold);
    let (_, told) = old.begin(100).expect("a place");
    let look = rig::held(&bucket, RequestKind::Get, "lane-0000");
    // Not by us: somebody has emptied the bucket.
    bucket.remove("log/");
    assert!(bucket.land(look));
    let (_, result) = told.recv().expect("told");
    assert!(is_fenced(&result), "{result:?}");
}

#[test]
fn t3_fences_are_repeated_by_others_and_tombstones_stand_at_the_end() {
    for count in [0, 1, BLOCKS - 1, BLOCKS, BLOCKS + 1] {
        for bucket in rig::every_kind() {
            let (ours, theirs) = two(&bucket);
            let third = rig::open(&bucket.handle(2));
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(count);
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            let segments = theirs.list_segments(LANE).expect("lists").len();
            third.fence(LANE, FIRST, "server c").expect("fences");
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            let after = third.list_segments(LANE).expect("lists");
            assert_eq!(after.len(), segments, "no further segment comes up");
            is_shut(old, &third, count);
        }
    }
}

/// A start was paused before its fence, and overtaken: it must not shut out the server that overtook it.
#[test]
fn t3_a_fence_that_comes_late_spares_the_lanes_of_a_later_epoch() {
    for count in [0, 1, BLOCKS + 1] {
        for bucket in rig::every_kind() {
            let (ours, late) = two(&bucket);
            let third = rig::open(&bucket.handle(2));
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(count);
            third.fence(LANE, FIRST, "server c").expect("fences");
            let mut new = TestWriter::open(&third, 2, 2 * FIRST);
            new.write_all(1);
            late.fence(LANE, FIRST, "server b").expect("fences");
            new.write_all(2 * BLOCKS);
            is_shut(old, &third, count);
        }
    }
}

/// Two that fence at the same time, both at work on the same names.
#[test]
fn t3_two_fence_at_once() {
    for round in 0..40 {
        for bucket in rig::every_kind() {
            let (ours, theirs) = two(&bucket);
            let third = rig::open(&bucket.handle(2));
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(round % (BLOCKS * 2));
            std::thread::scope(|scope| {
                let one = scope.spawn(|| theirs.fence(LANE, FIRST, "server b"));
                let other = scope.spawn(|| third.fence(LANE, FIRST, "server c"));
                one.join().expect("no panic").expect("fences");
                other.join().expect("no panic").expect("fences");
            });
            is_shut(old, &theirs, round % (BLOCKS * 2));
        }
    }
}

/// A server that recovers has chosen its lanes' first segments and not opened them yet.
#[test]
fn t3_a_lane_without_segments_is_shut_before_it_opens() {
    for bucket in rig::every_kind() {
        let (ours, theirs) = two(&bucket);
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        match ours.open_lane(LANE, FIRST) {
            Err(NoRoom::Failed(HomeError::Fenced(_))) => {}
            other => panic!("{other:?}"),
        }
        // The lane of the next epoch is another matter.
        let mut new = TestWriter::open(&theirs, 2, 2 << 32);
        new.write_all(3);
    }
    // It has listed, and is about to make the first one.
    for bucket in rig::every_kind() {
        let (ours, theirs) = two(&bucket);
        bucket.plan(RequestKind::Create, "lane-0000", Fault::Hold);
        bucket.plan(RequestKind::PutIfAbsent, "lane-0000", Fault::Hold);
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| {
                ours.open_lane(LANE, FIRST)?;
                let mut old = TestWriter::opened(&ours, 1);
                old.write(100).map_err(NoRoom::Failed)
            });
            let held = loop {
                if let Some((id, ..)) = bucket.in_network().first() {
                    break *id;
                }
                std::thread::yield_now();
            };
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            assert!(bucket.land(held));
            match opening.join().expect("no panic") {
                Err(NoRoom::Failed(HomeError::Fenced(_))) => {}
                other => panic!("{other:?}"),
            }
        });
    }
}

/// An object that was made and not filled when the fence came.
#[test]
fn t3_a_half_made_segment_is_shut() {
    let bucket = &rig::every_kind()[1];
    let (ours, theirs) = two(bucket);
    let mut old = TestWriter::open(&ours, 1, FIRST);
    old.write_all(1);
    bucket.plan(RequestKind::Append, "0000000100000001", Fault::Hold);
    old.write_all(BLOCKS - 1);
    let fill = rig::held(bucket, RequestKind::Append, "0000000100000001");
    theirs.fence(LANE, FIRST, "server b").expect("fences");
    assert!(bucket.land(fill));
    is_shut(old, &theirs, BLOCKS);
}

/// T2: an append in flight leaves a hole; later ones of its lane have been stored and are not told, and the fence goes
/// into the hole.
#[test]
fn t2_holes_in_plain_lanes_hold_back_what_lies_behind_them() {
    for before in 0..BLOCKS + 2 {
        for hole in 0..4 {
            let bucket = rig::plain();
            let (ours, theirs) = two(&bucket);
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(before);
            let stored = bucket.objects().len();
            let mut told = Vec::new();
            for number in 0..4 {
                if number == hole {
                    // Not one of those before, which may still be on their way.
                    while (bucket.objects().len() as u64) < stored as u64 + number {
                        std::thread::yield_now();
                    }
                    bucket.plan(RequestKind::PutIfAbsent, "lane-0000", Fault::Hold);
                }
                let (at, answer) = old.begin(100).expect("a place");
                if number == hole {
                    rig::held(&bucket, RequestKind::PutIfAbsent, "lane-0000");
                }
                told.push((at, answer));
            }
            while bucket.objects().len() < stored + 3 {
                std::thread::yield_now();
            }
            let held = rig::held(&bucket, RequestKind::PutIfAbsent, "lane-0000");
            theirs.fence(LANE, FIRST, "server b").expect("fences");
            let chain = rig::chain(&theirs, 1, FIRST);
            assert_eq!(u64::from(chain.blocks), before + hole, "up to the hole");
            assert!(bucket.land(held));
            for (number, (_, answer)) in told.into_iter().enumerate() {
                let (_, result) = answer.recv().expect("told");
                if (number as u64) < hole {
                    result.expect("appended before the hole");
                } else {
                    assert!(is_fenced(&result), "{number}: {result:?}");
                }
            }
            assert_eq!(rig::chain(&theirs, 1, FIRST), chain);
            is_shut(old, &theirs, before + hole);
        }
    }
}

/// The hole closes in time: all are told, in order.
#[test]
fn t2_appends_of_a_plain_lane_are_told_in_order() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    let mut writer = TestWriter::open(&home, 1, FIRST);
    let (tell, told) = mpsc::channel();
    bucket.plan(RequestKind::PutIfAbsent, "000000000000", Fault::Hold);
    for number in 0..4u32 {
        let at = home.place(LANE, 100).expect("a place");
        let tell = tell.clone();
        let done = move |_, result: Result<(), HomeError>| {
            result.expect("appends");
            tell.send(number).expect("the test waits");
        };
        let block = rig::block(1, number, 100);
        home.append(LANE, at, block, 100, Box::new(done));
    }
    while bucket.objects().len() < 3 {
        std::thread::yield_now();
    }
    assert!(told.try_recv().is_err(), "the first one is missing");
    let held = rig::held(&bucket, RequestKind::PutIfAbsent, "000000000000");
    assert!(bucket.land(held));
    for number in 0..4 {
        assert_eq!(told.recv().expect("told"), number);
    }
    writer.skip(4);
    writer.write_all(1);
    assert_eq!(rig::chain(&home, 1, FIRST).blocks, 5);
}

/// The answers to the fence itself are lost, late, or twice.
#[test]
fn t3_doubtful_fences_are_settled() {
    for fault in [
        Fault::LostReply,
        Fault::Vanishes,
        Fault::NotNow,
        Fault::Delay(1),
        Fault::Delay(2),
        Fault::Delay(3),
        Fault::Delay(7),
        Fault::Duplicate(1),
        Fault::Full,
    ] {
        for count in [1, BLOCKS / 2, BLOCKS] {
            for bucket in rig::every_kind() {
                let (ours, theirs) = two(&bucket);
                let mut old = TestWriter::open(&ours, 1, FIRST);
                old.write_all(count);
                let theirs_of = bucket.handle(1);
                if fault != Fault::Full {
                    theirs_of.plan(RequestKind::PutIfAbsent, "lane-0000", fault);
                    theirs_of.plan(RequestKind::Append, "lane-0000", fault);
                    theirs.fence(LANE, FIRST, "server b").expect("fences");
                    is_shut(old, &theirs, count);
                }
                bucket.land_all();
                assert_eq!(u64::from(rig::chain(&theirs, 1, FIRST).blocks), count);
            }
        }
    }
}

/// What is appended while somebody fences is either told and found, or neither.
#[test]
fn t3_a_fence_while_the_old_writer_writes_as_fast_as_it_can() {
    for round in 0..30 {
        for bucket in rig::every_kind() {
            let (ours, theirs) = two(&bucket);
            let mut old = TestWriter::open(&ours, 1, FIRST);
            old.write_all(round % BLOCKS);
            let (chain, written) = std::thread::scope(|scope| {
                let writing = scope.spawn(|| {
                    let mut written = round % BLOCKS;
                    // A real one ends when it cannot renew its lease; in a plain lane nothing else makes it slower than
                    // the fence.
                    while written < 500 && old.write(100).is_ok() {
                        written += 1;
                    }
                    written
                });
                theirs.fence(LANE, FIRST, "server b").expect("fences");
                let chain = rig::chain(&theirs, 1, FIRST);
                (chain, writing.join().expect("no panic"))
            });
            assert_eq!(u64::from(chain.blocks), written);
            is_shut(old, &theirs, written);
        }
    }
}

/// Fences stay for ever, so there are more of them with every start: listing lanes asks for none of them where blocks
/// tell, and a listing of segments for each once.
#[test]
fn fences_that_pile_up_cost_little() {
    const STARTS: u64 = 40;
    let bucket = rig::plain();
    for epoch in 1..=STARTS {
        let home = rig::open(&bucket.handle(epoch as u32));
        let mut writer = TestWriter::open(&home, 1, epoch << 32);
        writer.write_all(3);
        drop(home);
        let next = rig::open(&bucket.handle(epoch as u32 + 1));
        next.fence(LANE, epoch << 32, "the next start")
            .expect("fences");
    }
    let home = rig::open(&bucket);
    let before = bucket.requests_of(RequestKind::GetRange);
    assert_eq!(home.list_lanes().expect("lists"), [LANE]);
    assert_eq!(bucket.requests_of(RequestKind::GetRange), before);
    let segments = home.list_segments(LANE).expect("lists");
    assert_eq!(segments.len() as u64, STARTS, "fences are no segments");
    let asked = bucket.requests_of(RequestKind::GetRange) - before;
    let fences = bucket
        .objects()
        .iter()
        .filter(|(_, len)| *len == 60)
        .count() as u64;
    assert!(asked >= STARTS && asked == fences, "{asked} for {fences}");
    // A lane of nothing but fences is none.
    home.fence(logstead_types::LaneId(5), 1 << 32, "somebody")
        .expect("fences");
    assert_eq!(home.list_lanes().expect("lists"), [LANE]);
}

/// An answer may end in the middle. Half a fence is not taken for something else: a segment is as long as it reads, and
/// a tombstone, which is a segment with nothing but a fence, stays when the segment is removed.
#[test]
fn t3_half_an_answer_makes_no_fence_a_block() {
    for bucket in rig::every_kind() {
        let (ours, theirs) = two(&bucket);
        let mut old = TestWriter::open(&ours, 1, FIRST);
        old.write_all(BLOCKS + 1);
        theirs.fence(LANE, FIRST, "server b").expect("fences");
        let listed = || theirs.list_segments(LANE).expect("lists");
        let whole = listed();
        let objects = bucket.objects().len();
        bucket.set_rates(Rates {
            short: 300,
            ..Rates::default()
        });
        for _ in 0..100 {
            assert_eq!(listed(), whole);
        }
        let chain = rig::chain(&theirs, 1, FIRST);
        assert_eq!(u64::from(chain.blocks), BLOCKS + 1);
        // What is behind the end holds fences alone.
        for _ in 0..100 {
            for segment in FIRST + 2..FIRST + 6 {
                theirs.trim(LANE, segment).expect("trims");
            }
        }
        assert_eq!(bucket.objects().len(), objects);
        bucket.set_rates(Rates::default());
        is_shut(old, &theirs, BLOCKS + 1);
    }
}
