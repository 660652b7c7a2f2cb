//! Side segments of a home of homes, on children that are object stores: who has one whole, and what happens to what is
//! not.

use logstead_env::{Buffer, Env};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{
    Copies, HomeStatus, LaneAppends, LaneSegments, LogHome, ObjectHome, ObjectOptions,
    ReplicatedHome, ReplicatedOptions, RoomRequest, SideSegments, Source, WriteConcern,
};
use logstead_types::{Epoch, LaneId};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LANE: LaneId = LaneId(0);
const ID: u64 = 1 << 32 | 7;
/// The newest that had begun.
const EPOCH: Epoch = Epoch(1);

fn buckets(count: usize) -> Vec<MemoryBucket> {
    let new = |_| MemoryBucket::new(MemoryOptions::plain());
    (0..count).map(new).collect()
}

fn child(bucket: &MemoryBucket) -> ObjectHome {
    let options = ObjectOptions {
        pause_min: Duration::ZERO,
        pause_max: Duration::ZERO,
        ..ObjectOptions::default()
    };
    ObjectHome::open(Arc::new(bucket.handle(1)), &Env::real(), options).unwrap()
}

fn open(buckets: &[MemoryBucket]) -> ReplicatedHome {
    let sources = buckets
        .iter()
        .map(|bucket| Source::of(LogHome::from(child(bucket))));
    let options = ReplicatedOptions {
        ack: WriteConcern::Majority,
        threads: false,
        ..ReplicatedOptions::default()
    };
    ReplicatedHome::open(sources.collect(), &Env::real(), options).unwrap()
}

/// A lane with one append, that every child has.
fn append(home: &ReplicatedHome) {
    home.open_lane(LANE, 0).unwrap();
    home.ensure_room(LANE, 4096, &mut RoomRequest::default())
        .unwrap();
    let at = home.place(LANE, 4096).unwrap();
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |_, result| drop(tell.send(result)));
    let mut block = Buffer::zeroed(4096);
    block.as_mut_slice().fill(1);
    home.append(LANE, at, block, 4096, done);
    told.recv().unwrap().unwrap();
}

fn store(home: &dyn SideSegments, bytes: &[u8]) {
    let (tell, told) = mpsc::channel();
    let mut side = home.begin_side_segment(LANE, ID);
    side.append(bytes.to_vec());
    side.finish(Box::new(move |result| drop(tell.send(result))));
    told.recv().unwrap().unwrap();
}

fn read(home: &dyn SideSegments) -> Option<Vec<u8>> {
    let mut into = vec![0; 100];
    let count = home.get_side_segment(LANE, ID, 0, &mut into).ok()?;
    into.truncate(count);
    Some(into)
}

/// What a server that dies before the end leaves of it, or one that dies while it removes it.
fn halve(bucket: &MemoryBucket) {
    bucket.remove(&format!("side/lane-0000/{ID:016x}/complete"));
    assert_eq!(
        child(bucket).list_side_segments(LANE).unwrap(),
        [ID],
        "it is listed"
    );
    assert_eq!(read(&child(bucket)), None);
}

/// Two members have a half of it, and one nothing.
#[test]
fn a_half_side_segment_does_not_stop_a_start() {
    let buckets = buckets(3);
    let home = open(&buckets);
    append(&home);
    drop(home);
    for bucket in &buckets[..2] {
        store(&child(bucket), b"a large transaction");
        halve(bucket);
    }
    let home = open(&buckets);
    home.copies_completed(EPOCH).unwrap();
    assert!(
        home.report()
            .iter()
            .filter(|(_, state)| state == "member")
            .count()
            == 3
    );
    assert!(
        child(&buckets[2])
            .list_side_segments(LANE)
            .unwrap()
            .is_empty()
    );
    home.remove_side_segment(LANE, ID).unwrap();
    for bucket in &buckets {
        assert!(child(bucket).list_side_segments(LANE).unwrap().is_empty());
    }
}

/// Who has a half of what another one has whole gets all of it.
#[test]
fn a_half_side_segment_is_completed() {
    let buckets = buckets(3);
    let home = open(&buckets);
    append(&home);
    drop(home);
    for bucket in &buckets[..2] {
        store(&child(bucket), b"a large transaction");
    }
    halve(&buckets[0]);
    let home = open(&buckets);
    home.copies_completed(EPOCH).unwrap();
    for bucket in &buckets {
        assert_eq!(read(&child(bucket)).unwrap(), b"a large transaction");
    }
}

/// Its entry is in another lane; this one has nothing else.
#[test]
fn a_lane_with_side_segments_only_is_completed() {
    let buckets = buckets(3);
    drop(open(&buckets));
    for bucket in &buckets[..2] {
        store(&child(bucket), b"a large transaction");
    }
    let home = open(&buckets);
    assert_eq!(home.list_lanes().unwrap(), [LANE]);
    home.copies_completed(EPOCH).unwrap();
    assert_eq!(read(&child(&buckets[2])).unwrap(), b"a large transaction");
}

/// A start that was overtaken while it slept: the other server writes that one itself.
#[test]
fn a_side_segment_of_a_later_epoch_is_left_alone() {
    let buckets = buckets(3);
    drop(open(&buckets));
    store(&child(&buckets[0]), b"a large transaction");
    let home = open(&buckets);
    home.copies_completed(Epoch(0)).unwrap();
    for bucket in &buckets[1..] {
        assert!(child(bucket).list_side_segments(LANE).unwrap().is_empty());
    }
    home.copies_completed(EPOCH).unwrap();
    for bucket in &buckets {
        assert_eq!(read(&child(bucket)).unwrap(), b"a large transaction");
    }
}

/// Two starts that copy one at the same time overwrite one another's parts.
#[test]
fn copies_of_a_side_segment_have_the_same_parts() {
    let parts_of = |bucket: &MemoryBucket| {
        let objects = bucket.objects().into_iter();
        let parts = objects.filter(|(name, _)| name.starts_with("side/"));
        parts
            .map(|(name, _)| (bucket.peek(&name), name))
            .collect::<Vec<_>>()
    };
    let bytes: Vec<u8> = (0..10_u32 << 20).map(|n| (n / 1_000) as u8).collect();
    let mut all = Vec::new();
    // Written in pieces of any size.
    for piece in [70_000, 1 << 20, 3_000_000, 9 << 20] {
        let buckets = buckets(3);
        drop(open(&buckets));
        let holder = child(&buckets[0]);
        let (tell, told) = mpsc::channel();
        let mut side = holder.begin_side_segment(LANE, ID);
        for piece in bytes.chunks(piece) {
            side.append(piece.to_vec());
        }
        side.finish(Box::new(move |result| drop(tell.send(result))));
        told.recv().unwrap().unwrap();
        open(&buckets).copies_completed(EPOCH).unwrap();
        all.push(parts_of(&buckets[1]));
        all.push(parts_of(&buckets[2]));
    }
    assert!(all[0].len() > 2);
    for copy in &all {
        assert_eq!(copy, &all[0]);
    }
}
