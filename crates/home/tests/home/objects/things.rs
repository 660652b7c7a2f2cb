//! Named things and side segments: doubtful answers, other processes, what is left half way.

use super::rig::{self, LANE};
use logstead_env::Env;
use logstead_home::bucket::memory::{Fault, RequestKind};
use logstead_home::{
    HomeError, LogHome, NamedValues, NoRoom, ObjectHome, ReplicatedHome, ReplicatedOptions,
    SideSegments, Source, Timer, WriteConcern,
};
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn doubtful_changes_of_named_things_are_settled() {
    for fault in [
        Fault::LostReply,
        Fault::Vanishes,
        Fault::NotNow,
        Fault::Delay(1),
        Fault::Delay(2),
        Fault::Delay(5),
        Fault::Duplicate(1),
    ] {
        let bucket = rig::plain();
        let home = rig::open(&bucket);
        bucket.plan(RequestKind::PutIfAbsent, "thing", fault);
        let first = home.put_if_absent("thing", b"one").expect("puts");
        bucket.plan(RequestKind::Replace, "thing", fault);
        let second = home
            .compare_and_swap("thing", first, b"two")
            .expect("swaps");
        assert_ne!(first, second);
        let third = home
            .compare_and_swap("thing", second, b"three")
            .expect("swaps");
        bucket.land_all();
        assert_eq!(bucket.plans(), 0);
        let there = home.get("thing").expect("reads").expect("is there");
        assert_eq!(there, (b"three".to_vec(), third), "{fault:?}");
    }
}

#[test]
fn of_two_that_change_a_thing_one_is_told_of_a_conflict() {
    for fault in [Fault::Vanishes, Fault::Delay(u64::MAX), Fault::Hold] {
        let bucket = rig::plain();
        let (ours, theirs) = (rig::open(&bucket), rig::open(&bucket.handle(1)));
        let tag = ours.put_if_absent("thing", b"one").expect("puts");
        let (_, seen) = theirs.get("thing").expect("reads").expect("is there");
        // Ours is lost or late, and theirs comes before the second try.
        bucket.plan(RequestKind::Replace, "thing", fault);
        bucket.plan(RequestKind::Get, "thing", Fault::Hold);
        std::thread::scope(|scope| {
            let change = scope.spawn(|| ours.compare_and_swap("thing", tag, b"ours"));
            let (kind, then) = match fault {
                Fault::Hold => (RequestKind::Replace, None),
                _ => (RequestKind::Get, Some(())),
            };
            let held = rig::held(&bucket, kind, "thing");
            theirs
                .compare_and_swap("thing", seen, b"theirs")
                .expect("swaps");
            assert!(bucket.land(held));
            let result = change.join().expect("no panic");
            assert!(
                matches!(result, Err(HomeError::Conflict(_))),
                "{fault:?} {then:?} {result:?}"
            );
        });
        bucket.land_all();
        let (bytes, _) = theirs.get("thing").expect("reads").expect("is there");
        assert_eq!(bytes, b"theirs");
    }
}

const LIMIT: Duration = Duration::from_secs(1);

/// A change whose answer does not come within the limit is looked for and made again, with twice the time; the lost
/// request does nothing when it arrives at last, or it was the one that did it.
#[test]
fn a_change_without_an_answer_is_settled_when_its_time_is_over() {
    for arrives in [false, true] {
        let bucket = rig::plain();
        let (timer, hand) = Timer::by_hand();
        let home = rig::open_with(&bucket, timer);
        let tag = home.put_if_absent("thing", b"one").expect("puts");
        home.limit_name_requests(LIMIT);
        bucket.plan(RequestKind::Replace, "thing", Fault::Hold);
        bucket.plan(RequestKind::Get, "thing", Fault::Hold);
        let changed = std::thread::scope(|scope| {
            let change = scope.spawn(|| home.compare_and_swap("thing", tag, b"two"));
            let lost = rig::held(&bucket, RequestKind::Replace, "thing");
            assert_eq!(hand.times(), [LIMIT]);
            hand.pass();
            // Reading it back gets lost, too.
            rig::held(&bucket, RequestKind::Get, "thing");
            assert_eq!(hand.times(), [LIMIT]);
            if arrives {
                assert!(bucket.land(lost));
            } else {
                bucket.plan(RequestKind::Replace, "thing", Fault::Hold);
            }
            hand.pass();
            if !arrives {
                let again = loop {
                    let waiting = bucket.in_network();
                    let mut of_kind = waiting.iter().rev();
                    let is_it = |(id, kind, _): &&(u64, RequestKind, String)| {
                        *kind == RequestKind::Replace && *id != lost
                    };
                    if let Some((id, _, _)) = of_kind.find(is_it) {
                        break *id;
                    }
                    std::thread::yield_now();
                };
                assert_eq!(hand.times(), [2 * LIMIT], "twice the time");
                assert!(bucket.land(again));
            }
            change.join().expect("no panic").expect("changes")
        });
        bucket.land_all();
        let there = home.get("thing").expect("reads").expect("is there");
        assert_eq!(there, (b"two".to_vec(), changed), "arrives: {arrives}");
    }
}

/// Two of three stores lose the write of a register: it goes on when the limit is over, not when the home's patience
/// is.
#[test]
fn a_replicated_home_limits_the_requests_of_its_children() {
    let buckets = [rig::plain(), rig::plain(), rig::plain()];
    let (timer, hand) = Timer::by_hand();
    let child = |bucket| Source::of(LogHome::from(rig::open_with(bucket, timer.clone())));
    let options = ReplicatedOptions {
        ack: WriteConcern::Majority,
        patience: Duration::from_secs(3600),
        ..ReplicatedOptions::default()
    };
    let sources = buckets.iter().map(child).collect();
    let home = ReplicatedHome::open(sources, &Env::real(), options).expect("opens");
    let tag = home.put_if_absent("thing", b"one").expect("puts");
    home.limit_name_requests(LIMIT);
    for bucket in &buckets[..2] {
        bucket.plan(RequestKind::Replace, "manifest", Fault::Hold);
    }
    std::thread::scope(|scope| {
        let change = scope.spawn(|| home.compare_and_swap("thing", tag, b"two"));
        for bucket in &buckets[..2] {
            rig::held(bucket, RequestKind::Replace, "manifest");
        }
        assert!(!hand.times().is_empty());
        hand.pass();
        change.join().expect("no panic").expect("changes");
    });
    let there = home.get("thing").expect("reads").expect("is there");
    assert_eq!(there.0, b"two");
}

#[test]
fn a_state_that_was_never_seen_is_a_conflict() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    let mut tag = home.put_if_absent("thing", b"0").expect("puts");
    let old = tag;
    for number in 1..100 {
        tag = home
            .compare_and_swap("thing", tag, format!("{number}").as_bytes())
            .expect("swaps");
    }
    assert!(matches!(
        home.compare_and_swap("thing", old, b"late"),
        Err(HomeError::Conflict(_))
    ));
    assert!(matches!(
        rig::open(&bucket).compare_and_swap("thing", tag, b"another home's tag"),
        Err(HomeError::Conflict(_))
    ));
    bucket.plan(RequestKind::Replace, "thing", Fault::Refused);
    assert!(matches!(
        home.compare_and_swap("thing", tag, b"x"),
        Err(HomeError::Io { .. })
    ));
}

fn store(home: &ObjectHome, id: u64, pieces: &[&[u8]]) -> Result<(), NoRoom> {
    let mut writer = home.begin_side_segment(LANE, id);
    for piece in pieces {
        writer.append(piece.to_vec());
    }
    let (tell, told) = mpsc::channel();
    writer.finish(Box::new(move |result| {
        tell.send(result).expect("the test waits")
    }));
    told.recv().expect("told")
}

fn read(home: &ObjectHome, id: u64) -> Result<Vec<u8>, HomeError> {
    let mut bytes = vec![0; 1 << 20];
    let count = home.get_side_segment(LANE, id, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn side_segments_survive_what_goes_wrong() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    let pieces: Vec<Vec<u8>> = (0..40u8).map(|fill| vec![fill; 999]).collect();
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    for (id, fault) in [
        Fault::NotNow,
        Fault::Vanishes,
        Fault::LostReply,
        Fault::Slow(9),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as u64;
        bucket.plan(RequestKind::Put, "side", fault);
        bucket.plan(RequestKind::Put, "complete", fault);
        store(&home, id, &pieces).expect("stores");
        assert_eq!(
            read(&home, id).expect("reads"),
            pieces.concat(),
            "{fault:?}"
        );
    }
    // An answer that ends too early, and does not say so.
    bucket.plan(RequestKind::GetRange, "side", Fault::Short);
    assert_eq!(read(&home, 0).expect("reads"), pieces.concat());
    assert_eq!(bucket.plans(), 0);
    store(&home, 9, &[]).expect("an empty one");
    assert_eq!(read(&home, 9).expect("reads"), b"");
    assert_eq!(
        home.list_side_segments(LANE).expect("lists"),
        [0, 1, 2, 3, 9]
    );
}

#[test]
fn pieces_are_put_together_while_others_are_on_their_way() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    bucket.plan(RequestKind::Put, "side", Fault::Hold);
    let mut writer = home.begin_side_segment(LANE, 1);
    for _ in 0..100 {
        writer.append(vec![7; 100]);
    }
    assert_eq!(writer.backlog_bytes(), 10_000);
    let first = rig::held(&bucket, RequestKind::Put, "side");
    assert!(bucket.land(first));
    let (tell, told) = mpsc::channel();
    writer.finish(Box::new(move |result| {
        tell.send(result).expect("the test waits")
    }));
    told.recv().expect("told").expect("stores");
    // The first piece, all others, and the last object.
    assert_eq!(bucket.requests_of(RequestKind::Put), 3);
    assert_eq!(read(&home, 1).expect("reads"), vec![7; 10_000]);
}

#[test]
fn a_side_segment_that_fails_leaves_nothing() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    for name in ["side", "complete"] {
        bucket.plan(RequestKind::Put, name, Fault::Refused);
        assert!(matches!(store(&home, 1, &[b"abc"]), Err(NoRoom::Failed(_))));
        assert!(home.list_side_segments(LANE).expect("lists").is_empty());
        assert!(bucket.objects().is_empty());
    }
}

/// T8: what a process that died half way has left is nobody's, and the next recovery can see it and remove it; what is
/// being written now is not seen.
#[test]
fn t8_orphans_of_the_dead_are_listed_and_removed_and_those_under_way_are_not() {
    let bucket = rig::plain();
    let dead = rig::open(&bucket);
    bucket.plan(RequestKind::Put, "complete", Fault::Hold);
    let mut writer = dead.begin_side_segment(LANE, 5);
    writer.append(vec![1; 1000]);
    let (tell, told) = mpsc::channel();
    writer.finish(Box::new(move |result| drop(tell.send(result))));
    let last = rig::held(&bucket, RequestKind::Put, "complete");
    assert!(
        dead.list_side_segments(LANE).expect("lists").is_empty(),
        "its own, under way"
    );
    drop(dead);
    told.recv().expect("told").expect_err("closed");
    let next = rig::open(&bucket.handle(1));
    assert_eq!(next.list_side_segments(LANE).expect("lists"), [5]);
    assert!(
        matches!(read(&next, 5), Err(HomeError::Missing(_))),
        "not whole"
    );
    next.remove_side_segment(LANE, 5).expect("removes");
    assert!(bucket.objects().is_empty());
    // The dead one's last object is late: nothing stands behind it, and the recovery after that one removes it.
    assert!(bucket.land(last));
    assert!(matches!(read(&next, 5), Err(HomeError::Missing(_))));
    assert_eq!(next.list_side_segments(LANE).expect("lists"), [5]);
    next.remove_side_segment(LANE, 5).expect("removes");
    assert!(next.list_side_segments(LANE).expect("lists").is_empty());
}

/// Who waits for a side segment is told once, whatever its writer was waiting for when the home was closed; also after
/// it was.
#[test]
fn whoever_waits_for_a_side_segment_hears_that_the_home_was_closed() {
    // A part under way and more behind it, the last object under way, and nothing: closed before the end was asked for.
    for (held, closed_first) in [("part", false), ("complete", false), ("part", true)] {
        let bucket = rig::plain();
        let home = rig::open(&bucket);
        let name = if held == "part" { "side" } else { held };
        bucket.plan(RequestKind::Put, name, Fault::Hold);
        let mut writer = home.begin_side_segment(LANE, 5);
        writer.append(vec![1; 1000]);
        writer.append(vec![2; 1000]);
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |result| tell.send(result).expect("the test waits"));
        if closed_first {
            rig::held(&bucket, RequestKind::Put, name);
            drop(home);
            writer.finish(done);
        } else {
            writer.finish(done);
            rig::held(&bucket, RequestKind::Put, name);
            drop(home);
        }
        let result = told.recv().expect("told");
        assert!(
            matches!(&result, Err(NoRoom::Failed(error)) if error.to_string().contains("closed")),
            "{held}: {result:?}"
        );
        assert!(told.recv().is_err(), "{held}: once");
    }
}

/// By the home's own thread, which could not wait for itself, and while the store does not answer.
#[test]
fn a_whole_side_segment_is_given_up_without_waiting() {
    let bucket = rig::plain();
    let home = Arc::new(rig::open(&bucket));
    bucket.plan(RequestKind::List, "side", Fault::Hold);
    let mut writer = home.begin_side_segment(LANE, 1);
    writer.append(vec![1; 1000]);
    let (tell, told) = mpsc::channel();
    let own = Arc::clone(&home);
    writer.finish(Box::new(move |result| {
        result.expect("stores");
        own.give_up_side_segment(LANE, 1);
        tell.send(()).expect("the test waits");
    }));
    told.recv().expect("told");
    let list = rig::held(&bucket, RequestKind::List, "side");
    assert_eq!(bucket.objects().len(), 2);
    assert!(home.list_side_segments(LANE).expect("lists").is_empty());
    assert!(bucket.land(list));
    while !bucket.objects().is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_side_segment_given_up_is_removed() {
    let bucket = rig::plain();
    let home = rig::open(&bucket);
    bucket.plan(RequestKind::Put, "side", Fault::Hold);
    let mut writer = home.begin_side_segment(LANE, 1);
    writer.append(vec![1; 1000]);
    let held = rig::held(&bucket, RequestKind::Put, "side");
    drop(writer);
    assert!(bucket.land(held));
    // Removed in the background, and not listed meanwhile.
    while !bucket.objects().is_empty() || bucket.requests_of(RequestKind::Delete) == 0 {
        assert!(home.list_side_segments(LANE).expect("lists").is_empty());
        std::thread::yield_now();
    }
}
