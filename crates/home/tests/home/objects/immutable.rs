//! Immutable objects in a bucket: doubtful answers, late requests, what they cost.

use super::rig;
use logstead_home::bucket::memory::{Fault, RequestKind};
use logstead_home::{
    HomeError, ImmutableObjects, LogHome, NamedValues, OBJECT_BYTES_MAX, ObjectHome, ObjectId,
    ObjectReader, conformance,
};
use logstead_types::Epoch;

fn id(counter: u32) -> ObjectId {
    ObjectId::new(Epoch(7), counter)
}

const NAME: &str = "objects/0000000700000001";

fn whole(home: &ObjectHome, id: ObjectId) -> Result<Vec<u8>, HomeError> {
    let mut bytes = vec![0; 1 << 20];
    let count = home.read_object(id, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn the_largest_objects_are_kept() {
    let bucket = rig::plain();
    conformance::check_objects(&LogHome::from(rig::open(&bucket)), OBJECT_BYTES_MAX);
}

#[test]
fn an_object_lies_where_the_format_says_and_costs_one_request() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    home.put_object(id(1), &[7; 5000]).expect("puts");
    assert_eq!(bucket.objects(), [(NAME.to_owned(), 5000)]);
    assert_eq!(bucket.peek(NAME), Some(vec![7; 5000]));
    assert_eq!(bucket.requests(), 1);
    home.read_object(id(1), 100, &mut [0; 100]).expect("reads");
    assert_eq!(bucket.requests(), 2);
    home.list_objects().expect("lists");
    home.remove_object(id(1)).expect("removes");
    assert_eq!(bucket.requests(), 4);
    assert!(bucket.objects().is_empty());
}

#[test]
fn what_else_lies_there_is_none_of_ours() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    home.put_object(id(1), b"one").expect("puts");
    // Names that no version of ours gives.
    for name in ["objects/readme", "objects/0000000700000002/part"] {
        home.put_if_absent(name, b"foreign").expect("puts");
    }
    let listed = home.list_objects().expect("lists");
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].id, listed[0].size_bytes), (id(1), 3));
}

#[test]
fn doubtful_puts_are_settled_by_what_is_there() {
    for (faults, settled) in [
        (vec![Fault::LostReply], 1),
        (vec![Fault::Vanishes], 0),
        (vec![Fault::Vanishes, Fault::LostReply], 1),
        (vec![Fault::NotNow; 20], 0),
        (vec![Fault::Duplicate(1)], 0),
        (vec![Fault::Duplicate(3)], 0),
        // Before the look, between the look and the second try, after it.
        (vec![Fault::Delay(1)], 1),
        (vec![Fault::Delay(2)], 1),
        (vec![Fault::Delay(4)], 0),
        (vec![Fault::Delay(u64::MAX)], 0),
        (vec![Fault::Delay(4), Fault::Delay(5)], 1),
    ] {
        for bucket in rig::every_kind() {
            let home = rig::open(&bucket);
            for &fault in &faults {
                bucket.plan(RequestKind::PutIfAbsent, NAME, fault);
            }
            let bytes = vec![9; 10_000];
            home.put_object(id(1), &bytes).expect("puts");
            assert_eq!(whole(&home, id(1)).expect("reads"), bytes);
            for counter in 2..6 {
                home.put_object(id(counter), b"others").expect("puts");
            }
            bucket.land_all();
            assert_eq!(bucket.plans(), 0, "all faults have happened");
            assert_eq!(whole(&home, id(1)).expect("reads"), bytes, "{faults:?}");
            assert_eq!(rig::reported(&home, "settled"), settled, "{faults:?}");
            assert_eq!(home.list_objects().expect("lists").len(), 5);
        }
    }
}

#[test]
fn other_bytes_are_a_conflict_also_behind_a_lost_reply() {
    for fault in [None, Some(Fault::LostReply), Some(Fault::Vanishes)] {
        let bucket = rig::plain();
        let (ours, theirs) = (rig::open(&bucket), rig::open(&bucket.handle(1)));
        theirs.put_object(id(1), b"theirs").expect("puts");
        if let Some(fault) = fault {
            bucket.plan(RequestKind::PutIfAbsent, NAME, fault);
        }
        for other in [b"ours!!".as_slice(), b"their", b"theirs!", b""] {
            let conflict = ours.put_object(id(1), other);
            assert!(matches!(conflict, Err(HomeError::Conflict(_))), "{fault:?}");
        }
        ours.put_object(id(1), b"theirs").expect("the same bytes");
        assert_eq!(rig::reported(&ours, "settled"), 0, "nothing was in doubt");
        assert_eq!(whole(&ours, id(1)).expect("reads"), b"theirs");
    }
}

#[test]
fn the_provider_s_no_is_final_and_said_in_its_words() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    bucket.plan(RequestKind::PutIfAbsent, NAME, Fault::Refused);
    let error = home.put_object(id(1), b"one").expect_err("refused");
    assert!(matches!(error, HomeError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("as the test wants it"));
    assert!(!error.is_disk_full());
    assert!(bucket.objects().is_empty());
    home.put_object(id(1), b"one").expect("another time");
}

#[test]
fn reads_that_are_cut_or_lost_are_repeated() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    let bytes: Vec<u8> = (0..10_000u32).map(|at| at as u8).collect();
    home.put_object(id(1), &bytes).expect("puts");
    for fault in [Fault::Truncated, Fault::Vanishes, Fault::NotNow] {
        bucket.plan(RequestKind::GetRange, NAME, fault);
        assert_eq!(whole(&home, id(1)).expect("reads"), bytes, "{fault:?}");
        bucket.plan(RequestKind::Delete, "objects", fault);
        home.remove_object(id(2)).expect("removes");
        bucket.plan(RequestKind::List, "objects", fault);
        assert_eq!(home.list_objects().expect("lists").len(), 1);
    }
    assert_eq!(bucket.plans(), 0);
}

/// An answer that ends too early, and does not say so, is no end of the object: whoever reads gets all of it, and who
/// settles what became of a put finds its own bytes.
#[test]
fn half_an_answer_ends_no_object() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    let bytes: Vec<u8> = (0..10_000u32).map(|at| at as u8).collect();
    home.put_object(id(1), &bytes).expect("puts");
    let short = || bucket.plan(RequestKind::GetRange, NAME, Fault::Short);
    short();
    assert!(whole(&home, id(1)).expect("reads") == bytes);
    short();
    let mut part = [0; 1000];
    let read = |at: u64, part: &mut [u8]| home.read_object(id(1), at, part).expect("reads");
    assert_eq!(read(500, &mut part), 1000);
    assert_eq!(part, bytes[500..1500]);
    short();
    assert_eq!(read(9_500, &mut part), 500);
    assert_eq!(part[..500], bytes[9_500..]);
    short();
    home.put_object(id(1), &bytes).expect("is there");
    assert_eq!(bucket.plans(), 0);
    // An object that does end earlier is another one.
    let longer = home.put_object(id(1), &[bytes, vec![7]].concat());
    assert!(matches!(longer, Err(HomeError::Conflict(_))), "{longer:?}");
}

/// A put that was on its way when its server died lands whenever it likes: whole, and under a number that no later
/// server uses.
#[test]
fn t14_a_put_that_is_late_brings_back_what_was_meant() {
    let bucket = rig::plain();
    let dead = rig::open(&bucket);
    bucket.plan(RequestKind::PutIfAbsent, NAME, Fault::Delay(u64::MAX));
    dead.put_object(id(1), b"late").expect("the second try");
    drop(dead);
    let next = rig::open(&bucket.handle(1));
    next.remove_object(id(1)).expect("removes");
    let successor = ObjectId::new(Epoch(8), 1);
    next.put_object(successor, b"of the next epoch")
        .expect("puts");
    bucket.land_all();
    assert_eq!(whole(&next, id(1)).expect("is back"), b"late");
    assert_eq!(
        whole(&next, successor).expect("reads"),
        b"of the next epoch"
    );
    next.remove_object(id(1)).expect("collected again");
    assert_eq!(next.list_objects().expect("lists").len(), 1);
}
