//! The home of homes: the conformance suite over children of every kind, what is acknowledged when, and who may be a
//! member.

use logstead_env::{Buffer, Clock, Env, SimClock};
use logstead_home::simulated::{Fault, FaultRates, Model, SimulatedOptions};
use logstead_home::{
    Availability, Copies, HomeError, HomeStatus, ImmutableObjects, LaneAppends, LaneSegments,
    LogHome, MemoryHome, NamedValues, ObjectCopies, ObjectId, ObjectReader, OpenPurpose, Position,
    ReplicatedHome, ReplicatedOptions, RoomRequest, SideSegments, SimulatedHome, Source,
    WriteConcern, conformance,
};
use logstead_types::{Epoch, LaneId};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LANE: LaneId = LaneId(0);

fn memories(count: usize) -> Vec<MemoryHome> {
    (0..count).map(|_| MemoryHome::new(64 << 10)).collect()
}

fn options(ack: WriteConcern) -> ReplicatedOptions {
    ReplicatedOptions {
        ack,
        threads: false,
        return_pause_min: Duration::ZERO,
        ..ReplicatedOptions::default()
    }
}

fn sources(homes: &[MemoryHome]) -> Vec<Source> {
    let source = |home: &MemoryHome| Source::of(LogHome::from(home.clone()));
    homes.iter().map(source).collect()
}

fn open_with(
    homes: &[MemoryHome],
    options: ReplicatedOptions,
) -> Result<ReplicatedHome, HomeError> {
    ReplicatedHome::open(sources(homes), &Env::real(), options)
}

fn open(homes: &[MemoryHome], ack: WriteConcern) -> Result<ReplicatedHome, HomeError> {
    open_with(homes, options(ack))
}

fn refused(homes: &[MemoryHome], ack: WriteConcern) -> String {
    match open(homes, ack) {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    }
}

fn block(fill: u8) -> Buffer {
    let mut block = Buffer::zeroed(4096);
    block.as_mut_slice().fill(fill);
    block
}

type Answers = mpsc::Receiver<Result<(), HomeError>>;

fn append(home: &ReplicatedHome, fill: u8) -> (Position, Answers) {
    home.ensure_room(LANE, 4096, &mut RoomRequest::default())
        .expect("room");
    let at = home.place(LANE, 4096).expect("a place");
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |_, result| drop(tell.send(result)));
    home.append(LANE, at, block(fill), 4096, done);
    (at, told)
}

fn is_durable(told: &Answers) -> bool {
    told.try_recv().is_ok_and(|result| result.is_ok())
}

/// What a child holds at a place.
fn holds(home: &MemoryHome, at: Position, fill: u8) -> bool {
    let mut into = Buffer::zeroed(4096);
    home.read(LANE, at, &mut into).expect("reads") == 4096
        && into.as_slice().iter().all(|&byte| byte == fill)
}

fn state_of(home: &ReplicatedHome, child: usize) -> String {
    let name = format!("replica {child} state");
    let report = home.report();
    let found = report.into_iter().find(|(what, _)| *what == name);
    found.expect("reported").1
}

#[test]
fn conforms_over_memory() {
    for ack in [WriteConcern::All, WriteConcern::Majority] {
        for threads in [false, true] {
            let options = ReplicatedOptions {
                threads,
                ..options(ack)
            };
            let home = open_with(&memories(3), options).expect("opens");
            let home = LogHome::from(home);
            conformance::check(&home);
        }
    }
}

#[test]
fn conforms_over_different_services_with_faults() {
    for seed in 0..10 {
        for ack in [WriteConcern::All, WriteConcern::Majority] {
            let clock = Arc::new(SimClock::new());
            let (env, _) = Env::simulated(seed);
            let env = Env {
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                ..env
            };
            let mut steps = Vec::new();
            let mut sources = Vec::new();
            for (number, name) in ["s3express", "gp3", "s3express"].iter().enumerate() {
                let mut model = Model::named(name).expect("known");
                model.segment_size_bytes = (64 - 8 * number as u64) << 10;
                model.appends_per_segment = model.appends_per_segment.min(9);
                let mut options = SimulatedOptions::new(model, seed + number as u64);
                if *name == "s3express" && seed > 0 {
                    options.faults = FaultRates::default()
                        .with(Fault::LostReply, 0.05)
                        .with(Fault::Delay, 0.05)
                        .with(Fault::Transient, 0.05)
                        .with(Fault::Outage, 0.01);
                }
                let home = SimulatedHome::in_virtual_time(&options, &env, Arc::clone(&clock));
                let home = home.expect("opens");
                steps.push(home.clone());
                sources.push(Source::of(LogHome::from(home)));
            }
            let home = ReplicatedHome::open(sources, &env, options(ack)).expect("opens");
            assert_eq!(home.capabilities().block_alignment, 4096);
            let home = LogHome::from(home);
            // The child that is due first goes on.
            conformance::check_stepping(&home, &|| {
                let next = steps
                    .iter()
                    .min_by_key(|home| home.next_event().map_or(u64::MAX, |due| due.as_nanos()));
                next.is_some_and(|home| home.step())
            });
        }
    }
}

#[test]
fn all_waits_for_every_child_and_majority_for_enough() {
    for (ack, enough) in [(WriteConcern::All, 3), (WriteConcern::Majority, 2)] {
        let children = memories(3);
        let home = open(&children, ack).expect("opens");
        home.open_lane(LANE, 0).expect("opens");
        for child in &children {
            child.set_paused(true);
        }
        let (at, told) = append(&home, 1);
        for (number, child) in children.iter().enumerate() {
            assert!(!is_durable(&told) || number >= enough);
            assert!(child.complete());
            assert!(holds(child, at, 1));
            if number + 1 == enough {
                assert!(is_durable(&told), "{ack:?} with {enough}");
            }
        }
    }
}

/// T2, for each child: what it has behind a hole does not count.
#[test]
fn a_child_counts_only_for_what_it_has_from_the_beginning() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    home.open_lane(LANE, 0).expect("opens");
    for child in &children {
        child.set_paused(true);
    }
    let (_, first) = append(&home, 1);
    let (_, second) = append(&home, 2);
    // The first child has both, the second child only the second block, the third only the first one.
    assert!(children[0].complete() && children[0].complete());
    assert!(children[1].complete_at(1));
    assert!(!is_durable(&first) && !is_durable(&second));
    assert!(children[2].complete());
    assert!(is_durable(&first));
    assert!(!is_durable(&second), "one child has all up to the second");
    assert!(children[1].complete());
    assert!(is_durable(&second));
}

#[test]
fn a_child_that_never_answers_does_not_stop_a_majority() {
    let children = memories(3);
    let options = ReplicatedOptions {
        threads: true,
        lag_bytes_max: 40 << 10,
        patience: Duration::from_millis(200),
        ..options(WriteConcern::Majority)
    };
    let home = open_with(&children, options.clone()).expect("opens");
    home.open_lane(LANE, 0).expect("opens");
    let mut tag = home.put_if_absent("thing", b"0").expect("puts");
    children[2].set_presence(Availability::Silent);
    for number in 1..100u8 {
        let (_, told) = append(&home, number);
        told.recv().expect("told").expect("durable");
        if number % 10 == 0 {
            tag = home
                .compare_and_swap("thing", tag, &[number])
                .expect("swaps");
            assert_eq!(home.get("thing").expect("reads"), Some((vec![number], tag)));
        }
    }
    assert!(state_of(&home, 2).starts_with("left out: it cannot follow"));
    drop(home);
    // Nor does it stop the next start, its fences and its reading.
    for child in &children {
        child.crash();
    }
    let home = open_with(&children, options).expect("opens");
    home.fence(LANE, 0, "the test").expect("fences");
    let mut into = Buffer::zeroed(4096);
    let at = Position::start_of(0);
    assert_eq!(home.read(LANE, at, &mut into).expect("reads"), 4096);
    assert_eq!(into.as_slice()[0], 1);
    assert_eq!(home.get("thing").expect("reads").expect("is there").0, [90]);
    assert!(state_of(&home, 2).starts_with("left out"));
    children[2].set_presence(Availability::Up);
}

/// Removing is never what a member is left out for, nor what stops anything.
#[test]
fn who_is_slow_to_remove_or_cannot_stays_a_member() {
    let children = memories(3);
    let options = ReplicatedOptions {
        threads: true,
        patience: Duration::from_millis(200),
        ..options(WriteConcern::Majority)
    };
    let home = open_with(&children, options).expect("opens");
    for child in &children {
        child.open_lane(LANE, 0).expect("opens");
        child.put_object(ObjectId(9), b"not needed").expect("puts");
    }
    let remove = || {
        home.remove_side_segment(LANE, 7).expect("is asked for");
        home.remove_object(ObjectId(9)).expect("is asked for");
        home.seal(LANE, Position::start_of(0))
            .expect("is asked for");
        home.trim(LANE, 0).expect("is asked for");
    };
    for (slow, presence) in [
        (1, Availability::Silent),
        (1, Availability::Refusing),
        (3, Availability::Silent),
        (3, Availability::Refusing),
    ] {
        for child in &children[..slow] {
            child.set_presence(presence);
        }
        remove();
        for (index, child) in children.iter().enumerate() {
            child.set_presence(Availability::Up);
            assert_eq!(state_of(&home, index), "member", "{slow} {presence:?}");
        }
    }
    remove();
    for child in &children {
        let mut left = child.list_segments(LANE).expect("lists");
        left.retain(|info| info.segment == 0);
        assert!(left.is_empty(), "{left:?}");
        assert!(child.list_objects().expect("lists").is_empty());
    }
}

#[test]
fn errors_leave_one_child_out_and_appends_wait_for_enough() {
    let children = memories(3);
    for ack in [WriteConcern::Majority, WriteConcern::All] {
        let home = open(&children, ack).expect("opens");
        home.copies_completed(Epoch(0)).expect("settles");
        let segment = match ack {
            WriteConcern::Majority => 1 << 32,
            WriteConcern::All => 2 << 32,
        };
        home.open_lane(LANE, segment).expect("opens");
        children[0].set_presence(Availability::Refusing);
        let (at, told) = append(&home, 1);
        assert_eq!(is_durable(&told), ack == WriteConcern::Majority);
        assert!(holds(&children[1], at, 1) && holds(&children[2], at, 1));
        assert!(state_of(&home, 0).starts_with("left out"));
        children[1].set_presence(Availability::Refusing);
        let (_, second) = append(&home, 2);
        assert_eq!(second.try_recv().err(), Some(mpsc::TryRecvError::Empty));
        // One alone is there, and has it: it becomes durable when there are enough again, each in its place.
        for (index, child) in children[..2].iter().enumerate() {
            child.set_presence(Availability::Up);
            for _ in 0..10 {
                home.bring_children_back();
            }
            assert_eq!(state_of(&home, index), "member");
        }
        assert!(is_durable(&second));
        for child in &children {
            assert!(holds(child, at, 1));
        }
    }
}

/// Whatever they are left out for.
#[test]
fn appends_wait_when_reading_has_left_too_many_out() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    home.open_lane(LANE, 0).expect("opens");
    let (at, told) = append(&home, 1);
    assert!(is_durable(&told));
    for child in &children {
        child.set_paused(true);
    }
    let (_, told) = append(&home, 2);
    let mut into = Buffer::zeroed(4096);
    for child in [0, 1] {
        children[child].set_presence(Availability::Refusing);
        let _left_out = home.read_copy(child, LANE, at, &mut into);
    }
    children[2].set_paused(false);
    while children[2].complete() {}
    assert_eq!(told.try_recv().err(), Some(mpsc::TryRecvError::Empty));
    home.place(LANE, 4096).expect("more may be given meanwhile");
}

#[test]
fn reading_fails_rather_than_judge_by_too_few() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    home.open_lane(LANE, 0).expect("opens");
    let (at, told) = append(&home, 1);
    assert!(is_durable(&told));
    let mut into = Buffer::zeroed(4096);
    children[0].set_presence(Availability::Refusing);
    assert_eq!(home.read_copy(0, LANE, at, &mut into).expect("enough"), 0);
    children[1].set_presence(Availability::Refusing);
    assert!(home.read_copy(1, LANE, at, &mut into).is_err());
    assert!(home.read(LANE, at, &mut into).is_err());
}

#[test]
fn two_servers_race_for_a_named_thing_and_one_wins() {
    let children = memories(3);
    let first = open(&children, WriteConcern::Majority).expect("opens");
    let second = open(&children, WriteConcern::Majority).expect("opens");
    let old = first.put_if_absent("thing", b"one").expect("puts");
    assert_eq!(
        second.get("thing").expect("reads"),
        Some((b"one".to_vec(), old))
    );
    let new = second
        .compare_and_swap("thing", old, b"two")
        .expect("swaps");
    assert!(matches!(
        first.compare_and_swap("thing", old, b"three"),
        Err(HomeError::Conflict(_))
    ));
    assert!(matches!(
        first.put_if_absent("thing", b"three"),
        Err(HomeError::Conflict(_))
    ));
    // Any majority has it.
    for away in &children {
        away.set_presence(Availability::Refusing);
        assert_eq!(
            first.get("thing").expect("reads"),
            Some((b"two".to_vec(), new))
        );
        away.set_presence(Availability::Up);
    }
    children[0].set_presence(Availability::Refusing);
    children[1].set_presence(Availability::Refusing);
    assert!(first.get("thing").is_err(), "a minority says nothing");
    assert!(first.compare_and_swap("thing", new, b"x").is_err());
}

#[test]
fn lists_that_do_not_fit_are_refused_with_the_reason() {
    let children = memories(5);
    drop(open(&children[..3], WriteConcern::Majority).expect("opens"));
    let list = |of: &[usize]| of.iter().map(|&i| children[i].clone()).collect::<Vec<_>>();
    assert!(refused(&list(&[0]), WriteConcern::All).contains("two or more"));
    assert!(refused(&list(&[0, 1, 1]), WriteConcern::All).contains("the same place"));
    assert!(refused(&list(&[0, 3, 4]), WriteConcern::Majority).contains("a majority"));
    let others = memories(3);
    drop(open(&others, WriteConcern::All).expect("opens"));
    let mut mixed = list(&[0, 1]);
    mixed.push(others[2].clone());
    assert!(refused(&mixed, WriteConcern::Majority).contains("another log"));
    let alone = MemoryHome::new(64 << 10);
    alone
        .put_if_absent("manifest", b"logstead manifest 1\n")
        .expect("puts");
    mixed[2] = alone;
    assert!(refused(&mixed, WriteConcern::Majority).contains("a log of its own"));
    // With `all` each must answer; a new log needs all.
    children[2].set_presence(Availability::Refusing);
    assert!(refused(&list(&[0, 1, 2]), WriteConcern::All).contains("must answer"));
    open(&list(&[0, 1, 2]), WriteConcern::Majority).expect("two of three");
    let fresh = memories(3);
    fresh[1].set_presence(Availability::Refusing);
    assert!(refused(&fresh, WriteConcern::Majority).contains("a new log needs all"));
}

/// One member's record is damaged, in whatever way: a majority goes on, nothing is written there, and once it is
/// emptied it is filled again.
#[test]
fn a_damaged_record_of_one_member_refuses_no_start() {
    type Damage = fn(&[u8]) -> Vec<u8>;
    let cut = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[40] ^= 1;
        bytes
    };
    let empty = |_: &[u8]| Vec::new();
    let zeros = |bytes: &[u8]| vec![0; bytes.len()];
    let damages: [Damage; 4] = [cut, flipped, empty, zeros];
    for damage in damages {
        let mut children = memories(3);
        let home = open(&children, WriteConcern::Majority).expect("opens");
        home.put_if_absent("thing", b"precious").expect("puts");
        drop(home);
        let (good, tag) = children[1].get("manifest").expect("reads").expect("there");
        let bad = damage(&good);
        children[1]
            .compare_and_swap("manifest", tag, &bad)
            .expect("damages it");
        let said = refused(&children, WriteConcern::All);
        assert!(said.contains("one of several homes"), "{said}");
        let home = open(&children, WriteConcern::Majority).expect("two of three");
        let state = state_of(&home, 1);
        assert!(state.contains("empty that place"), "{state}");
        let thing = home.get("thing").expect("reads").expect("there");
        assert_eq!(thing.0, b"precious");
        home.compare_and_swap("thing", thing.1, b"changed")
            .expect("swaps");
        home.copies_completed(Epoch(9)).expect("settles");
        drop(home);
        let untouched = children[1].get("manifest").expect("reads").expect("there");
        assert_eq!(untouched.0, bad);
        children[1] = MemoryHome::new(64 << 10);
        let home = open(&children, WriteConcern::Majority).expect("opens");
        assert_eq!(state_of(&home, 1), "not counted yet");
        home.copies_completed(Epoch(9)).expect("settles");
        assert_eq!(state_of(&home, 1), "member");
    }
}

#[test]
fn lanes_without_their_record_are_a_damaged_member() {
    let mut children = memories(3);
    drop(open(&children, WriteConcern::Majority).expect("opens"));
    let lost = MemoryHome::new(64 << 10);
    lost.open_lane(LANE, 0).expect("opens");
    children[2] = lost.clone();
    let home = open(&children, WriteConcern::Majority).expect("two of three");
    assert!(state_of(&home, 2).contains("lanes of a log"));
    assert!(lost.get("manifest").expect("reads").is_none());
}

#[test]
fn a_member_is_replaced_and_the_old_list_is_refused() {
    let children = memories(4);
    let list = |of: [usize; 3]| of.map(|i| children[i].clone());
    let home = open(&list([0, 1, 2]), WriteConcern::Majority).expect("opens");
    assert!(home.copies_behind().is_empty());
    home.put_if_absent("thing", b"one").expect("puts");
    home.open_lane(LANE, 0).expect("opens");
    let mut side = home.begin_side_segment(LANE, 7);
    side.append(b"a large transaction".to_vec());
    side.finish(Box::new(|stored| stored.expect("stores")));
    drop(home);
    let home = open(&list([0, 1, 3]), WriteConcern::Majority).expect("opens");
    assert_eq!(
        home.copies_behind(),
        [0, 1, 2],
        "whatever the old members had"
    );
    assert_eq!(state_of(&home, 2), "not counted yet");
    home.copies_completed(Epoch(9)).expect("settles");
    assert_eq!(state_of(&home, 2), "member");
    assert_eq!(children[3].list_side_segments(LANE).expect("lists"), [7]);
    drop(home);
    assert!(refused(&list([2, 0, 2]), WriteConcern::Majority).contains("the same place"));
    children[0].set_presence(Availability::Refusing);
    // The one that went is no member, however new its record is.
    assert!(refused(&list([0, 2, 3]), WriteConcern::Majority).contains("a majority"));
    let home = open(&list([0, 1, 3]), WriteConcern::Majority).expect("opens");
    assert_eq!(
        home.get("thing").expect("reads").expect("is there").0,
        b"one"
    );
    home.copies_completed(Epoch(9)).expect("settles");
    drop(home);
    // What was away is marked, and completed when it is back.
    children[0].set_presence(Availability::Up);
    let home = open(&list([0, 1, 3]), WriteConcern::Majority).expect("opens");
    assert_eq!(home.copies_behind(), [0]);
    home.copies_completed(Epoch(9)).expect("settles");
    drop(home);
    let home = open(&list([0, 1, 3]), WriteConcern::All).expect("opens");
    assert_eq!(
        home.copies_behind(),
        [0, 1, 2],
        "all must have what a majority has"
    );
}

#[test]
fn who_has_lost_the_lease_does_not_change_the_members() {
    let children = memories(4);
    let list = |of: [usize; 3]| of.map(|i| children[i].clone());
    let first = open(&list([0, 1, 2]), WriteConcern::Majority).expect("opens");
    let tag = first.put_if_absent("manifest", b"first").expect("puts");
    let second = open(&list([0, 1, 3]), WriteConcern::Majority).expect("opens");
    let tag = second
        .compare_and_swap("manifest", tag, b"second")
        .expect("claims");
    let taken = first
        .compare_and_swap("manifest", tag, b"first again")
        .expect("claims");
    // It may well have seen so.
    assert_eq!(
        second.get("manifest").expect("reads").expect("there").1,
        taken
    );
    assert!(matches!(
        second.copies_completed(Epoch(9)),
        Err(HomeError::Fenced(_))
    ));
    first.copies_completed(Epoch(9)).expect("settles");
    drop((first, second));
    open(&list([1, 2, 3]), WriteConcern::Majority).expect("0, 1 and 2 are still the members");
    assert!(refused(&list([0, 3, 3]), WriteConcern::Majority).contains("the same place"));
    children[1].set_presence(Availability::Refusing);
    assert!(refused(&list([0, 1, 3]), WriteConcern::Majority).contains("a majority"));
}

#[test]
fn members_that_changed_before_the_lease_was_claimed_are_noticed() {
    let children = memories(4);
    let list = |of: [usize; 3]| of.map(|i| children[i].clone());
    for with_fence in [true, false] {
        let (old, new) = match with_fence {
            true => ([0, 1, 2], [0, 1, 3]),
            false => ([0, 1, 3], [0, 1, 2]),
        };
        let waiting = open(&list(old), WriteConcern::Majority).expect("opens");
        let quick = open(&list(new), WriteConcern::Majority).expect("opens");
        let tag = quick.get("manifest").expect("reads").map(|(_, tag)| tag);
        let tag = match tag {
            Some(tag) => quick.compare_and_swap("manifest", tag, b"quick"),
            None => quick.put_if_absent("manifest", b"quick"),
        };
        let tag = tag.expect("claims");
        quick.copies_completed(Epoch(9)).expect("settles");
        waiting
            .compare_and_swap("manifest", tag, b"waiting")
            .expect("claims");
        let result = match with_fence {
            true => waiting.fence(LANE, 0, "the test"),
            false => waiting.copies_completed(Epoch(9)),
        };
        assert!(matches!(result, Err(HomeError::Conflict(_))), "{result:?}");
    }
}

#[test]
fn a_mark_made_with_the_lease_is_no_other_list() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    home.open_lane(LANE, 0).expect("opens");
    children[2].set_presence(Availability::Refusing);
    let (_, told) = append(&home, 1);
    assert!(is_durable(&told));
    home.put_if_absent("manifest", b"claimed").expect("puts");
    home.fence(LANE, 0, "the test").expect("fences");
    home.copies_completed(Epoch(9)).expect("settles");
}

#[test]
fn a_steady_state_costs_one_write_per_child() {
    let clock = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(1);
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..env
    };
    let simulated = || {
        let model = Model::named("s3express").expect("known");
        let options = SimulatedOptions::new(model, 1);
        SimulatedHome::in_virtual_time(&options, &env, Arc::clone(&clock)).expect("opens")
    };
    let children = [simulated(), simulated(), simulated()];
    let sources = children
        .iter()
        .map(|home| Source::of(LogHome::from(home.clone())));
    let home =
        ReplicatedHome::open(sources.collect(), &env, options(WriteConcern::All)).expect("opens");
    let mut tag = home.put_if_absent("manifest", b"0").expect("puts");
    for number in 0..10 {
        tag = home
            .compare_and_swap("manifest", tag, &[number])
            .expect("swaps");
    }
    let before: Vec<_> = children.iter().map(SimulatedHome::requests).collect();
    for number in 0..10 {
        tag = home
            .compare_and_swap("manifest", tag, &[number])
            .expect("swaps");
    }
    for (child, before) in children.iter().zip(before) {
        assert_eq!(child.requests() - before, 10);
    }
}

fn opened_for(
    homes: &[MemoryHome],
    ack: WriteConcern,
    purpose: OpenPurpose,
) -> Result<ReplicatedHome, HomeError> {
    let options = ReplicatedOptions {
        purpose,
        ..options(ack)
    };
    open_with(homes, options)
}

/// What lies in each child under the name that the register's records have.
fn records(children: &[MemoryHome]) -> Vec<Option<(Vec<u8>, logstead_home::Tag)>> {
    let record = |child: &MemoryHome| child.get("manifest").expect("reads");
    children.iter().map(record).collect()
}

/// Also beside a server, with any one member away, and without what members that were away have not heard of.
#[test]
fn reading_takes_a_majority_and_changes_nothing() {
    let children = memories(3);
    let away = |child: Option<usize>| {
        for (index, memory) in children.iter().enumerate() {
            memory.set_presence(match child == Some(index) {
                true => Availability::Refusing,
                false => Availability::Up,
            });
        }
    };
    let reader = || opened_for(&children, WriteConcern::All, OpenPurpose::Reading);
    assert!(matches!(reader(), Err(HomeError::Missing(_))), "no log yet");
    assert!(records(&children).iter().all(Option::is_none));

    let home = open(&children, WriteConcern::Majority).expect("opens");
    home.open_lane(LANE, 0).expect("opens");
    let tag = home.put_if_absent("thing", b"old").expect("puts");
    let first = append(&home, 1);
    // From here on the third has nothing of what is acknowledged.
    away(Some(2));
    home.put_object(ObjectId(9), b"object").expect("puts");
    home.compare_and_swap("thing", tag, b"new").expect("swaps");
    let second = append(&home, 2);
    assert!(is_durable(&first.1) && is_durable(&second.1));
    away(None);
    let before = records(&children);
    for gone in [None, Some(0), Some(1), Some(2)] {
        away(gone);
        let read = reader().expect("a majority is there");
        let (thing, tag) = read.get("thing").expect("reads").expect("is there");
        assert_eq!(thing, b"new", "without {gone:?}");
        assert_eq!(read.list_segments(LANE).expect("lists").len(), 1);
        for (at, fill) in [(first.0, 1), (second.0, 2)] {
            let mut into = Buffer::zeroed(4096);
            assert_eq!(read.read(LANE, at, &mut into).expect("reads"), 4096);
            assert_eq!(into.as_slice()[0], fill, "without {gone:?}");
        }
        let mut object = [0; 6];
        read.read_object(ObjectId(9), 0, &mut object)
            .expect("reads");
        assert_eq!(&object, b"object");
        assert!(read.compare_and_swap("thing", tag, b"newer").is_err());
        assert!(read.put_if_absent("other", b"").is_err());
        away(None);
        assert_eq!(records(&children), before, "without {gone:?}");
    }
    children[0].set_presence(Availability::Refusing);
    children[1].set_presence(Availability::Refusing);
    assert!(reader().is_err(), "the third alone does not say");
}

/// A change that one member alone has heard of: what is read was chosen, or follows from what was.
#[test]
fn reading_does_not_complete_what_is_under_way() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    let tag = home.put_if_absent("thing", b"old").expect("puts");
    for child in &children[1..] {
        child.set_presence(Availability::Refusing);
    }
    assert!(home.compare_and_swap("thing", tag, b"new").is_err());
    for child in &children[1..] {
        child.set_presence(Availability::Up);
    }
    let before = records(&children);
    for (gone, value) in [(0, "old"), (1, "new"), (2, "new")] {
        children[gone].set_presence(Availability::Refusing);
        let read = opened_for(&children, WriteConcern::All, OpenPurpose::Reading).expect("opens");
        let (thing, _) = read.get("thing").expect("reads").expect("is there");
        assert_eq!(thing, value.as_bytes(), "without {gone}");
        children[gone].set_presence(Availability::Up);
        assert_eq!(records(&children), before);
    }
}

#[test]
fn a_place_of_its_own_begins_with_most_of_its_homes() {
    let children = memories(3);
    children[0].set_presence(Availability::Refusing);
    assert!(refused(&children, WriteConcern::Majority).contains("needs all of its homes"));
    assert!(opened_for(&children, WriteConcern::All, OpenPurpose::NewPlace).is_err());
    let two_away = memories(3);
    for child in &two_away[..2] {
        child.set_presence(Availability::Refusing);
    }
    assert!(opened_for(&two_away, WriteConcern::Majority, OpenPurpose::NewPlace).is_err());

    let home = opened_for(&children, WriteConcern::Majority, OpenPurpose::NewPlace).expect("opens");
    home.put_if_absent("thing", b"x").expect("puts");
    home.put_object(ObjectId(9), b"object").expect("puts");
    drop(home);
    children[0].set_presence(Availability::Up);
    // Until a start has completed the first, both others are needed.
    children[1].set_presence(Availability::Refusing);
    assert!(refused(&children, WriteConcern::Majority).contains("a majority of the log's homes"));
    children[1].set_presence(Availability::Up);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    assert_eq!(home.get("thing").expect("reads").expect("is there").0, b"x");
    assert_eq!(state_of(&home, 0), "not counted yet");
    home.copies_completed(Epoch(9)).expect("completes");
    assert_eq!(state_of(&home, 0), "member");
    drop(home);
    children[1].set_presence(Availability::Refusing);
    let home = open(&children, WriteConcern::Majority).expect("opens");
    let mut object = [0; 6];
    home.read_object_copy(0, ObjectId(9), 0, &mut object)
        .expect("was copied");
    assert_eq!(&object, b"object");
}
