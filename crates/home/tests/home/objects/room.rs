//! Segments are made ahead: crossing into the next one costs no pause.

use super::rig::{self, BLOCKS, LANE, TestWriter};
use logstead_home::bucket::memory::{Fault, MemoryBucket, MemoryOptions, RequestKind};
use logstead_home::{LaneAppends, NamedValues, NoRoom, RoomRequest};
use std::sync::mpsc;

/// Where in the log of requests a line stands first.
fn first(log: &[String], what: &str) -> usize {
    let found = log.iter().position(|line| line.contains(what));
    found.unwrap_or_else(|| panic!("no {what} in {log:#?}"))
}

#[test]
fn crossing_the_limit_costs_no_pause() {
    let bucket = rig::appendable();
    let home = rig::open(&bucket);
    bucket.log();
    let mut writer = TestWriter::open(&home, 1, 1 << 32);
    let segments = 10;
    for number in 0..segments * BLOCKS {
        // The successor is there before this segment's last place is claimed; so there is nothing to wait for.
        if number % BLOCKS == BLOCKS - 1 {
            let name = format!("000000010000{:04x}", number / BLOCKS + 1);
            let made = || {
                let objects = bucket.objects();
                objects.iter().any(|(known, _)| known.ends_with(&name))
            };
            // Time for it: the home's requests go through one thread.
            let mut requests = 0;
            while !made() {
                home.get("manifest").expect("reads");
                requests += 1;
                assert!(requests < 100, "{name} is not made ahead");
            }
        }
        home.ensure_room(LANE, 100, &mut RoomRequest::default())
            .expect("room at once");
        let (at, told) = writer.begin(100).expect("a place");
        assert_eq!(at.segment, (1 << 32) + number / BLOCKS);
        told.recv().expect("completes").1.expect("appends");
    }
    assert_eq!(rig::reported(&home, "room_refused"), 0);
    let log = bucket.log();
    for segment in 1..segments {
        let create = first(
            &log,
            &format!("Create log/lane-0000/000000010000{segment:04x}: ok"),
        );
        let into = format!("Append log/lane-0000/000000010000{:04x}: ok", segment - 1);
        let appends = log[..create].iter().filter(|line| line.contains(&into));
        let appends = appends.count() as u64;
        assert!(
            (BLOCKS / 2 - 1..BLOCKS).contains(&appends),
            "made when half is used: {appends}"
        );
    }
}

/// A fence reaches the last two objects and the next name: so the one after the next is not made before the first
/// append into the next has completed, however small segments are and however much room is asked for.
#[test]
fn t3_no_more_than_one_segment_is_ahead_of_the_appends() {
    // One block per segment.
    let bucket = MemoryBucket::new(MemoryOptions::appendable(3));
    let home = rig::open(&bucket);
    let mut writer = TestWriter::open(&home, 1, 1 << 32);
    writer.write_all(1);
    for segment in 1..6 {
        let into = format!("{:016x}", (1u64 << 32) + segment);
        let behind = format!("{:016x}", (1u64 << 32) + segment + 1);
        bucket.plan(RequestKind::Append, &into, Fault::Hold);
        writer.room(100).expect("room");
        let (_, told) = writer.begin(100).expect("a place");
        let append = rig::held(&bucket, RequestKind::Append, &into);
        assert!(matches!(
            home.ensure_room(LANE, 100, &mut RoomRequest::default()),
            Err(NoRoom::Busy)
        ));
        // Time for whatever else the home may be about: its requests go through one thread.
        for _ in 0..20 {
            home.get("manifest").expect("reads");
        }
        let made = |name: &str| {
            bucket
                .objects()
                .iter()
                .any(|(known, _)| known.ends_with(name))
        };
        assert!(made(&into) && !made(&behind), "segment {segment}");
        assert!(bucket.land(append));
        told.recv().expect("told").1.expect("appends");
        // Now it is.
        writer.room(100).expect("room");
        assert!(made(&behind));
    }
}

#[test]
fn a_successor_that_is_late_makes_writers_wait_and_then_tells_them() {
    let bucket = rig::appendable();
    let home = rig::open(&bucket);
    let mut writer = TestWriter::open(&home, 1, 1 << 32);
    let (tell, told) = mpsc::channel();
    let listener = move || tell.send(()).expect("the test listens");
    home.set_room_listener(LANE, Box::new(listener));
    bucket.plan(RequestKind::Create, "0000000100000001", Fault::Hold);
    writer.write_all(BLOCKS - 1);
    let create = rig::held(&bucket, RequestKind::Create, "0000000100000001");
    // Room in this segment is room.
    home.ensure_room(LANE, 100, &mut RoomRequest::default())
        .expect("one more fits");
    writer.write_all(1);
    assert!(matches!(
        home.ensure_room(LANE, 100, &mut RoomRequest::default()),
        Err(NoRoom::Busy)
    ));
    assert_eq!(rig::reported(&home, "room_refused"), 1);
    // What was ensured before by somebody else still finds its place, and waits for it.
    let (at, appended) = writer.begin(100).expect("a place");
    assert_eq!((at.segment, at.offset), ((1 << 32) + 1, 0));
    assert!(told.try_recv().is_err(), "nothing to tell yet");
    assert!(bucket.land(create));
    told.recv().expect("told that there is room");
    home.ensure_room(LANE, 100, &mut RoomRequest::default())
        .expect("room");
    appended.recv().expect("completes").1.expect("appends");
    assert_eq!(u64::from(rig::chain(&home, 1, 1 << 32).blocks), BLOCKS + 1);
}

#[test]
fn segments_are_left_for_their_bytes_too() {
    for bucket in rig::every_kind() {
        let options = logstead_home::ObjectOptions {
            segment_size_bytes_max: 10_000,
            ..Default::default()
        };
        let env = logstead_env::Env::real();
        let home = logstead_home::ObjectHome::open(std::sync::Arc::new(bucket), &env, options);
        let home = home.expect("opens");
        assert_eq!(home.capabilities().room_size_bytes_max, 10_000);
        let mut writer = TestWriter::open(&home, 1, 1 << 32);
        for _ in 0..6 {
            writer.write(4_000).expect("appends");
        }
        assert_eq!(rig::chain(&home, 1, 1 << 32).end.segment, (1 << 32) + 2);
        // More is asked for than what is left, early in a segment: the next one is made for that.
        writer.write(4_000).expect("appends");
        writer.room(9_500).expect("room in the end");
        assert!(
            home.ensure_room(LANE, 10_001, &mut RoomRequest::default())
                .is_err()
        );
        assert!(home.place(LANE, 10_001).is_err());
    }
}

/// A home can be closed while the provider does not answer, and nobody is left without an answer.
#[test]
fn closing_answers_what_is_under_way() {
    for bucket in rig::every_kind() {
        let home = rig::open(&bucket);
        let mut writer = TestWriter::open(&home, 1, 1 << 32);
        let kind = match home.capabilities().appends_in_flight_max {
            1 => RequestKind::Append,
            _ => RequestKind::PutIfAbsent,
        };
        bucket.plan(kind, "lane-0000", Fault::Hold);
        let (_, told) = writer.begin(100).expect("a place");
        let held = rig::held(&bucket, kind, "lane-0000");
        drop(home);
        let (buffer, result) = told.recv().expect("told");
        assert_eq!(buffer.capacity(), 100);
        result.expect_err("nobody knows");
        // It is in the network all the same.
        assert!(bucket.land(held));
        assert_eq!(rig::chain(&rig::open(&bucket), 1, 1 << 32).blocks, 1);
    }
}

#[test]
fn calls_wait_in_any_thread_but_the_home_s_own() {
    let bucket = rig::appendable();
    let home = std::sync::Arc::new(rig::open(&bucket));
    home.open_lane(LANE, 0).expect("opens");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("builds");
    runtime.block_on(async { home.put_if_absent("thing", b"one").expect("puts") });
    let (tell, told) = mpsc::channel();
    let at = home.place(LANE, 100).expect("a place");
    let of_completion = std::sync::Arc::clone(&home);
    let done = move |_, _| {
        tell.send(of_completion.get("thing"))
            .expect("the test waits")
    };
    home.append(LANE, at, rig::block(1, 0, 100), 100, Box::new(done));
    told.recv()
        .expect("told")
        .expect_err("refused instead of waiting for itself");
}
