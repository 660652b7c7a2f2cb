//! Checkpoints remove what a follower has not read: it says so, or needs nothing of it.

use super::rig::beside::Beside;
use super::rig::{Machine, Server};
use super::{Receiver, from_to};
use logstead_home::{LocalHome, LogHome};
use logstead_types::Csn;
use logstead_wal::recovery::follow::{FollowError, Follower};
use std::sync::Arc;

fn commit(server: &Server, csns: std::ops::RangeInclusive<u64>) {
    csns.for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
}

fn home_of(machine: &Machine) -> LogHome {
    LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap())
}

/// The server takes a checkpoint and removes the log before it, at any place of the first rounds. Whoever missed
/// something begins again at that checkpoint; nobody takes what is left for all.
#[test]
fn a_checkpoint_at_any_place_of_a_round() {
    let (mut removed, mut went_on) = (0, 0);
    for read_before in [0, 40] {
        for at in 0.. {
            let machine = Machine::new(1);
            let server = Arc::new(machine.start(2).unwrap());
            commit(&server, 1..=read_before);
            let beside = Arc::clone(&server);
            let armed = Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
            let when = Arc::clone(&armed);
            let from = Beside::new(&home_of(&machine), move |request| {
                let armed = when.load(std::sync::atomic::Ordering::SeqCst);
                if armed.checked_add(at) == Some(request) {
                    beside.checkpoint(41).unwrap();
                    // Segments are made of those that were removed.
                    commit(&beside, 41..=80);
                    assert!(beside.lane(1).record_horizon());
                }
            });
            let home = from.home();
            let mut given = Receiver::default();
            let mut follower = Follower::open(&home).unwrap();
            given.take(&mut follower);
            commit(&server, read_before + 1..=40);
            armed.store(from.requests(), std::sync::atomic::Ordering::SeqCst);
            let mut first = 1;
            let mut asked = None;
            while given.0.last() != Some(&80) {
                match given.round(&mut follower) {
                    Ok(_) => assert_eq!(
                        given.0,
                        from_to(first, given.0.last().copied().unwrap_or(0)),
                        "at {at}"
                    ),
                    Err(FollowError::Removed { next, checkpoint }) => {
                        assert!(
                            next < checkpoint && checkpoint == Csn(41),
                            "at {at}: {next}"
                        );
                        assert_eq!(first, 1, "once");
                        follower = Follower::open(&home).unwrap();
                        first = follower.begin().unwrap().csn.get();
                        given = Receiver::default();
                        removed += 1;
                    }
                    Err(error) => panic!("at {at}: {error}"),
                }
                let first_round = from.requests() - armed.load(std::sync::atomic::Ordering::SeqCst);
                asked.get_or_insert(first_round);
                if given.0.last() == Some(&39) || given.0.last() == Some(&40) {
                    // Nothing happened in this round: it is over.
                    break;
                }
            }
            went_on += usize::from(first == 1 && given.0.len() == 80);
            if asked.is_some_and(|asked| at >= asked) {
                break;
            }
        }
    }
    assert!(removed > 3 && went_on > 3, "{removed} {went_on}");
}

/// Blocks that were removed held nothing but horizons: they are passed over.
#[test]
fn blocks_without_entries_may_be_removed_unread() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=4);
    (0..2).for_each(|lane| assert!(server.lane(lane).record_horizon()));
    let home = home_of(&machine);
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    assert_eq!(given.take(&mut follower).next, Csn(5));
    (0..40).for_each(|_| assert!(server.lane(0).record_horizon()));
    let truncated = server.checkpoint(5).unwrap();
    assert!(truncated.segments > 1, "{truncated:?}");
    commit(&server, 5..=8);
    assert!(server.lane(1).record_horizon());
    given.take(&mut follower);
    assert_eq!(given.take(&mut follower).next, Csn(9));
    assert_eq!(given.0, from_to(1, 8));
}

/// Two servers and a checkpoint later, the epoch that was read has left no trace.
#[test]
fn an_epoch_without_a_mark_is_not_skipped() {
    for behind in [true, false] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        commit(&server, 1..=20);
        (0..2).for_each(|lane| assert!(server.lane(lane).record_horizon()));
        let home = home_of(&machine);
        let mut given = Receiver::default();
        let mut follower = Follower::open(&home).unwrap();
        given.take(&mut follower);
        if behind {
            commit(&server, 21..=30);
        }
        drop(server);
        let server = machine.start(1).unwrap();
        let next = server.log.next_csn.get();
        assert!(server.commit(0, next));
        server.checkpoint(next + 1).unwrap();
        assert!(server.commit(0, next + 1) && server.lane(0).record_horizon());
        let error = given.round(&mut follower).unwrap_err();
        assert!(
            matches!(error, FollowError::Removed { checkpoint, .. } if checkpoint.get() == next + 1),
            "{error}"
        );
        let mut follower = Follower::open(&home).unwrap();
        assert_eq!(follower.begin().unwrap().csn.get(), next + 1);
        let mut given = Receiver::default();
        given.take(&mut follower);
        assert_eq!(given.0, [next + 1]);
    }
}

/// While a settled epoch is read, the next one's first entries go into a checkpoint: they are missing, though nothing
/// of the settled epoch is.
#[test]
fn what_a_checkpoint_of_the_next_epoch_holds_is_not_skipped() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=20);
    drop(server);
    let server = machine.start(2).unwrap();
    let home = home_of(&machine);
    let mut follower = Follower::open(&home).unwrap();
    commit(&server, 21..=30);
    // Nothing is removed yet.
    server
        .publish(server.checkpoint_at(31, server.starts()))
        .unwrap();
    commit(&server, 31..=33);
    let mut given = Receiver::default();
    let error = given.round(&mut follower).unwrap_err();
    let FollowError::Removed { next, checkpoint } = error else {
        panic!("{error}")
    };
    assert_eq!((next, checkpoint), (Csn(21), Csn(31)));
    assert_eq!(given.0, from_to(1, 20));
}

/// A checkpoint's CSN is a horizon: what it holds was durable when it was named.
#[test]
fn a_checkpoint_tells_of_the_last_commits() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=4);
    let home = home_of(&machine);
    let mut given = Receiver::default();
    let mut follower = Follower::open(&home).unwrap();
    assert_eq!(given.take(&mut follower).next, Csn(4));
    server.checkpoint(5).unwrap();
    assert_eq!(given.take(&mut follower).next, Csn(5));
    assert_eq!(follower.manifest().checkpoint.as_ref().unwrap().csn, Csn(5));
    assert!(follower.begin().is_none());
    assert_eq!(given.0, from_to(1, 4));
}
