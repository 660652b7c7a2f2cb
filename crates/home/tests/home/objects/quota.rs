//! A bucket with a quota: what is refused is told or waits, others are told that there is no room, and what frees
//! room has the reserve.

use super::rig::{LANE, appendable, block, plain, reported};
use logstead_env::Env;
use logstead_home::bucket::memory::MemoryBucket;
use logstead_home::{
    HomeError, ImmutableObjects, LaneAppends, NoRoom, ObjectHome, ObjectId, ObjectOptions,
    SideSegments, Timer,
};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

const RESERVE_BYTES: u64 = 100_000;

fn open(bucket: &MemoryBucket, reserve_bytes: u64, timer: Timer) -> ObjectHome {
    let options = ObjectOptions {
        pause_min: Duration::ZERO,
        pause_max: Duration::ZERO,
        reserve_bytes,
        timer,
        ..ObjectOptions::default()
    };
    ObjectHome::open(Arc::new(bucket.clone()), &Env::real(), options).expect("opens")
}

fn used(bucket: &MemoryBucket) -> u64 {
    bucket.objects().iter().map(|(_, bytes)| bytes).sum()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is_so() {
            return;
        }
        logstead_env::sleep(Duration::from_micros(500));
    }
    panic!("never: {what}");
}

/// Appends a block; its outcome comes later.
fn append(home: &ObjectHome, number: u32, len: usize) -> mpsc::Receiver<Result<(), HomeError>> {
    let (tell, told) = mpsc::channel();
    let at = home.place(LANE, len as u64).expect("a place");
    let done = Box::new(move |_, result| {
        let _heard = tell.send(result);
    });
    home.append(LANE, at, block(1, number, len), len, done);
    told
}

#[test]
fn without_a_reserve_what_is_refused_passes_when_the_quota_grows() {
    for bucket in [appendable(), plain()] {
        let (timer, hand) = Timer::by_hand();
        let home = open(&bucket, 0, timer);
        home.open_lane(LANE, 0).expect("opens");
        let first = append(&home, 1, 1000).recv().expect("told");
        first.expect("there is room");
        assert!(!home.is_short_of_space());
        bucket.set_quota(Some(used(&bucket) + 100));

        let object = home.put_object(ObjectId(1), &[7; 5000]);
        let error = object.expect_err("more than the quota");
        assert!(error.is_disk_full(), "{error}");
        assert!(home.is_short_of_space());
        let mut side = home.begin_side_segment(LANE, 9);
        side.append(vec![1; 4000]);
        let (tell, told) = mpsc::channel();
        side.finish(Box::new(move |result| {
            let _heard = tell.send(result);
        }));
        let side = told.recv().expect("told");
        assert!(matches!(side, Err(NoRoom::DiskFull)), "{side:?}");
        // A block whose number was drawn cannot be taken back: it waits.
        let waiting = append(&home, 2, 1000);
        let tries = reported(&home, "retries");
        until("tried again", || reported(&home, "retries") > tries + 3);
        assert!(waiting.try_recv().is_err());
        // What is small enough goes on.
        home.remove_object(ObjectId(77)).expect("removes");

        bucket.set_quota(None);
        waiting.recv().expect("told").expect("there is room");
        until("it is known that there is room", || {
            hand.pass();
            !home.is_short_of_space()
        });
        home.put_object(ObjectId(1), &[7; 5000]).expect("room");
        assert!(bucket.peek("probe/reserve").is_none(), "nothing is kept");
    }
}

#[test]
fn the_reserve_gives_way_to_what_frees_room_and_is_put_back() {
    for bucket in [appendable(), plain()] {
        let (timer, hand) = Timer::by_hand();
        let home = open(&bucket, RESERVE_BYTES, timer);
        home.open_lane(LANE, 0).expect("opens");
        home.put_object(ObjectId(1), &[7; 90_000]).expect("room");
        until("room is kept", || bucket.peek("probe/reserve").is_some());
        bucket.set_quota(Some(used(&bucket) + 10));

        // The block finds the room that was kept.
        let appended = append(&home, 1, 1000).recv().expect("told");
        appended.expect("in the reserve");
        assert!(home.is_short_of_space(), "others are refused");
        assert!(bucket.peek("probe/reserve").is_none());
        // So does a checkpoint's object; until something is removed nothing is put back.
        home.put_object(ObjectId(2), &[7; 50_000]).expect("room");
        hand.pass();
        assert!(home.is_short_of_space());
        home.remove_object(ObjectId(1)).expect("removes");
        until("it is put back", || {
            hand.pass();
            !home.is_short_of_space()
        });
        assert!(bucket.peek("probe/reserve").is_some());
    }
}

#[test]
fn an_object_finds_the_reserve_by_itself() {
    let bucket = plain();
    let (timer, _hand) = Timer::by_hand();
    let home = open(&bucket, RESERVE_BYTES, timer);
    home.open_lane(LANE, 0).expect("opens");
    until("room is kept", || bucket.peek("probe/reserve").is_some());
    bucket.set_quota(Some(used(&bucket)));
    // Perhaps it was the other one who removed the reserve: then it is told, and the next try finds the room.
    let first = home.put_object(ObjectId(1), &[7; 80_000]);
    if let Err(error) = first {
        assert!(error.is_disk_full(), "{error}");
        home.put_object(ObjectId(1), &[7; 80_000]).expect("room");
    }
    let error = home.put_object(ObjectId(2), &[7; 80_000]);
    let error = error.expect_err("more than the quota");
    assert!(error.is_disk_full(), "{error}");
}
