//! Immutable objects of a home of homes: who must have one, who may be asked, who is completed, and trims while a
//! server runs.

use logstead_env::{Env, SimClock};
use logstead_home::simulated::{Model, SimulatedOptions};
use logstead_home::{
    Availability, Copies, HomeError, HomeStatus, ImmutableObjects, LogHome, MemoryHome,
    NamedValues, ObjectCopies, ObjectId, ObjectReader, ReplicatedHome, ReplicatedOptions,
    SimulatedHome, Source, WriteConcern,
};
use logstead_types::Epoch;
use std::sync::Arc;
use std::time::Duration;

fn memories(count: usize) -> Vec<MemoryHome> {
    (0..count).map(|_| MemoryHome::new(64 << 10)).collect()
}

fn options(ack: WriteConcern) -> ReplicatedOptions {
    ReplicatedOptions {
        ack,
        threads: false,
        ..ReplicatedOptions::default()
    }
}

fn open_with(homes: &[MemoryHome], options: ReplicatedOptions) -> ReplicatedHome {
    let source = |home: &MemoryHome| Source::of(LogHome::from(home.clone()));
    let sources = homes.iter().map(source).collect();
    ReplicatedHome::open(sources, &Env::real(), options).expect("opens")
}

fn open(homes: &[MemoryHome], ack: WriteConcern) -> ReplicatedHome {
    open_with(homes, options(ack))
}

fn id(counter: u32) -> ObjectId {
    ObjectId::new(Epoch(7), counter)
}

fn whole(home: &dyn ObjectReader, id: ObjectId) -> Result<Vec<u8>, HomeError> {
    let mut bytes = vec![0; 1000];
    let count = home.read_object(id, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

fn is_missing(home: &dyn ObjectReader, id: ObjectId) -> bool {
    matches!(whole(home, id), Err(HomeError::Missing(_)))
}

fn ids(home: &dyn ImmutableObjects) -> Vec<ObjectId> {
    let infos = home.list_objects().expect("lists");
    infos.into_iter().map(|info| info.id).collect()
}

/// Takes the lease, as a server does before it changes anything.
fn claim(home: &ReplicatedHome) {
    let claimed = match home.get("manifest").expect("reads") {
        Some((_, tag)) => home.compare_and_swap("manifest", tag, b"claimed"),
        None => home.put_if_absent("manifest", b"claimed"),
    };
    claimed.expect("claims");
}

fn state_of(home: &ReplicatedHome, child: usize) -> String {
    let name = format!("replica {child} state");
    let report = home.report();
    let found = report.into_iter().find(|(what, _)| *what == name);
    found.expect("reported").1
}

#[test]
fn all_wants_every_child_and_majority_enough() {
    let children = memories(3);
    let home = open(&children, WriteConcern::All);
    home.put_object(id(1), b"one").expect("puts");
    for child in &children {
        assert_eq!(whole(child, id(1)).expect("everywhere"), b"one");
    }
    children[2].set_failing(true);
    assert!(home.put_object(id(2), b"two").is_err());
    assert_eq!(state_of(&home, 2), "member", "nobody can be done without");
    children[2].set_failing(false);
    home.put_object(id(2), b"two").expect("tried again");

    let children = memories(3);
    let home = open(&children, WriteConcern::Majority);
    children[2].set_disk_full(true);
    home.put_object(id(1), b"one").expect("two of three");
    assert!(state_of(&home, 2).starts_with("left out: storing an object"));
    children[1].set_disk_full(true);
    let full = home.put_object(id(2), b"two").expect_err("one of three");
    assert!(full.is_disk_full(), "{full}");
    assert_eq!(state_of(&home, 1), "member");
    children[1].set_disk_full(false);
    home.put_object(id(2), b"two").expect("space was freed");
}

#[test]
fn a_conflict_is_the_caller_s_and_nobody_is_left_out() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority);
    children[1].put_object(id(1), b"other").expect("puts");
    let conflict = home.put_object(id(1), b"one");
    assert!(matches!(conflict, Err(HomeError::Conflict(_))));
    assert_eq!(state_of(&home, 1), "member");
}

#[test]
fn an_object_is_read_wherever_its_bytes_come_from() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority);
    home.put_object(id(1), b"one").expect("puts");
    home.put_object(id(2), b"two").expect("puts");
    // One has lost it, one does not answer: neither is left out for that.
    children[0].remove_object(id(1)).expect("removes");
    children[1].set_presence(Availability::Refusing);
    for _ in 0..3 {
        assert_eq!(whole(&home, id(1)).expect("reads"), b"one");
    }
    assert_eq!(state_of(&home, 1), "member");
    children[2].set_presence(Availability::Refusing);
    let failed = whole(&home, id(1)).expect_err("who would know does not answer");
    assert!(!matches!(failed, HomeError::Missing(_)), "{failed}");
    children[1].set_presence(Availability::Up);
    assert_eq!(whole(&home, id(1)).expect("reads"), b"one");
    children[2].set_presence(Availability::Up);
    assert!(is_missing(&home, id(3)), "all say so");
    let mut copy = [0; 3];
    assert!(home.read_object_copy(0, id(1), 0, &mut copy).is_err());
    let count = home.read_object_copy(1, id(1), 1, &mut copy);
    assert_eq!((count.expect("reads"), &copy[..2]), (2, b"ne".as_slice()));
}

#[test]
fn a_child_that_is_silent_is_left_out_by_a_put_and_not_by_a_read() {
    let children = memories(3);
    let options = ReplicatedOptions {
        threads: true,
        patience: Duration::from_millis(100),
        ..options(WriteConcern::Majority)
    };
    let home = open_with(&children, options);
    home.put_object(id(1), b"one").expect("puts");
    children[0].set_presence(Availability::Silent);
    for _ in 0..10 {
        assert_eq!(whole(&home, id(1)).expect("of another"), b"one");
    }
    assert_eq!(state_of(&home, 0), "member");
    home.put_object(id(2), b"two").expect("two of three");
    assert!(state_of(&home, 0).starts_with("left out"));
    // The lease's requests do not wait behind objects that get nowhere.
    home.put_if_absent("thing", b"1").expect("puts");
    children[0].set_presence(Availability::Up);
}

#[test]
fn who_was_away_is_completed_before_it_counts_and_brings_nothing_back() {
    let children = memories(3);
    let home = open(&children, WriteConcern::Majority);
    for counter in 1..=3 {
        home.put_object(id(counter), b"before").expect("puts");
    }
    children[2].set_presence(Availability::Refusing);
    home.put_object(id(4), b"while it was away").expect("puts");
    home.remove_object(id(1)).expect("removes");
    // Whatever names the new object is a change of the register, which marks who has been left out.
    claim(&home);
    drop(home);
    children[2].set_presence(Availability::Up);
    let home = open(&children, WriteConcern::Majority);
    assert_eq!(home.copies_behind(), [2]);
    claim(&home);
    assert_eq!(
        whole(&home, id(4)).expect("of others"),
        b"while it was away"
    );
    home.copies_completed(Epoch(9)).expect("settles");
    assert_eq!(
        whole(&children[2], id(4)).expect("copied"),
        b"while it was away"
    );
    for child in &children[..2] {
        assert!(is_missing(child, id(1)), "removed is removed");
    }
    // It is listed, so that whoever knows what is alive removes it again.
    assert_eq!(ids(&home), [id(1), id(2), id(3), id(4)]);
    home.remove_object(id(1)).expect("removes");
    assert_eq!(ids(&home), [id(2), id(3), id(4)]);
    drop(home);
    // From now on it counts: the other two may go.
    children[0].set_presence(Availability::Refusing);
    let home = open(&children, WriteConcern::Majority);
    children[1].set_presence(Availability::Refusing);
    assert_eq!(whole(&home, id(4)).expect("reads"), b"while it was away");
}

#[test]
fn a_new_child_gets_all_objects_and_one_that_cannot_take_them_does_not_count() {
    let children = memories(4);
    let home = open(&children[..3], WriteConcern::Majority);
    for counter in 1..=5 {
        let bytes = vec![counter as u8; 900];
        home.put_object(id(counter), &bytes).expect("puts");
    }
    drop(home);
    // A holder that has lost one, and one that cannot be read: the third has it.
    children[0].remove_object(id(3)).expect("removes");
    let list = [0, 1, 3].map(|child| children[child].clone());
    children[3].set_disk_full(true);
    let home = open(&list, WriteConcern::Majority);
    home.copies_completed(Epoch(9)).expect("settles without it");
    assert!(state_of(&home, 2).starts_with("left out: completing it"));
    drop(home);
    children[3].set_disk_full(false);
    let home = open(&list, WriteConcern::Majority);
    home.copies_completed(Epoch(9)).expect("settles");
    assert_eq!(state_of(&home, 2), "member");
    for counter in 1..=5 {
        let bytes = vec![counter as u8; 900];
        assert_eq!(whole(&children[3], id(counter)).expect("copied"), bytes);
    }
    assert_eq!(whole(&children[0], id(3)).expect("made good"), [3; 900]);
}

#[test]
fn where_nothing_is_missing_completing_costs_a_listing() {
    let clock = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(1);
    let simulated = || {
        let model = Model::named("s3express").expect("known");
        let options = SimulatedOptions::new(model, 1);
        SimulatedHome::in_virtual_time(&options, &env, Arc::clone(&clock)).expect("opens")
    };
    let children = [simulated(), simulated(), simulated()];
    let open = || {
        let sources = children
            .iter()
            .map(|home| Source::of(LogHome::from(home.clone())));
        ReplicatedHome::open(sources.collect(), &env, options(WriteConcern::All)).expect("opens")
    };
    let home = open();
    for counter in 0..20 {
        home.put_object(id(counter), &[1; 1000]).expect("puts");
    }
    home.copies_completed(Epoch(9)).expect("settles");
    let usage = |child: &SimulatedHome| {
        let usage = SimulatedHome::usage(child);
        (usage.writes, usage.reads, usage.lists)
    };
    drop(home);
    let home = open();
    home.get("thing").expect("reads");
    let before = children.each_ref().map(usage);
    home.copies_completed(Epoch(9)).expect("settles");
    for (child, before) in children.iter().zip(before) {
        let after = usage(child);
        // Lanes and objects.
        assert_eq!(after.2 - before.2, 2);
        assert!(after.1 - before.1 <= 1, "{before:?} {after:?}");
    }
}
