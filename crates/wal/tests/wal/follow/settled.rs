//! A server has ended, and another one has settled its epoch: what lies above the first gap is judged as it was then.

use super::rig::beside::Work;
use super::rig::{Machine, options};
use super::{Receiver, from_to, start};
use logstead_home::{LocalHome, LogHome, MemoryHome};
use logstead_types::{Csn, Epoch};
use logstead_wal::recovery::RecoveryOptions;
use logstead_wal::recovery::follow::{FollowError, Follower};

/// 5 was on its way. 6 hangs on it and is stored; 7 does not, and is stored.
fn with_gap(memory: &MemoryHome) -> Work {
    let mut work = Work::new(start(memory, 2));
    (0..4).for_each(|csn| work.commit(csn % 2, &[csn]));
    memory.set_paused(true);
    assert!(work.write(0, &[5], false));
    work.send(0);
    assert!(work.write(1, &[5], false) && work.write(1, &[6], false));
    work.send(1);
    assert!(memory.complete_at(1));
    work.settle();
    work
}

#[test]
fn what_survives_above_a_gap_comes_with_the_mark() {
    for follows in [true, false] {
        let memory = MemoryHome::new(32 << 10);
        let work = with_gap(&memory);
        let home = work.server.home.clone();
        let mut given = Receiver::default();
        let mut early = Follower::open(&home).unwrap();
        let progress = given.take(&mut early);
        // What is above the gap waits: nobody has told of more.
        assert_eq!((progress.next, progress.waiting), (Csn(5), 2));
        drop(work);
        memory.crash();
        assert_eq!(given.take(&mut early).next, Csn(5));
        let mut next = Work::new(start(&memory, 3));
        assert_eq!(next.server.survivors, [1, 2, 3, 4, 7]);
        (0..3).for_each(|lane| next.commit(lane, &[1]));
        assert!(next.server.log.lanes[2].record_horizon());
        let mut follower = match follows {
            true => early,
            // From the beginning, with the mark there.
            false => {
                given = Receiver::default();
                Follower::open(&home).unwrap()
            }
        };
        let progress = given.take(&mut follower);
        assert_eq!(given.0, [1, 2, 3, 4, 7, 8, 9, 10]);
        assert_eq!((progress.next, progress.epoch), (Csn(11), Epoch(2)));
    }
}

/// Epochs without an entry, of several servers, some of them without lanes in the manifest's marks.
#[test]
fn epochs_that_wrote_nothing_are_passed() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 2));
    let home = work.server.home.clone();
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    assert_eq!(given.take(&mut follower).next, Csn(1));
    work.commit(1, &[1]);
    for (life, lanes) in [(2, 1), (3, 4), (4, 2)] {
        drop(work);
        memory.crash();
        work = Work::new(start(&memory, lanes));
        if life != 3 {
            let progress = given.take(&mut follower);
            assert_eq!((progress.next, progress.epoch), (Csn(2), Epoch(life)));
        }
    }
    work.commit(1, &[1]);
    assert!(work.server.log.lanes[0].record_horizon());
    assert_eq!(given.take(&mut follower).next, Csn(3));
    assert_eq!(given.0, [1, 2]);
}

/// A start has accepted a loss: a follower that has handed over what is lost ends, and one that has not goes on.
#[test]
fn an_accepted_loss_ends_who_has_handed_it_over() {
    for (read_to, ends) in [(4, false), (6, true)] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
        let mut follower = Follower::open(&home).unwrap();
        let mut given = Receiver::default();
        let commit = |csns: std::ops::RangeInclusive<u64>| {
            csns.for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
        };
        commit(1..=read_to + 1);
        assert_eq!(given.take(&mut follower).next, Csn(read_to + 1));
        commit(read_to + 2..=10);
        drop(server);
        // The third block of lane 1, which holds 5, is bad.
        let damage = |bytes: &mut Vec<u8>| bytes[2 * 4096 + 200] ^= 1;
        machine
            .files
            .tamper(&Machine::segment(1, 0), damage)
            .unwrap();
        let accepting = RecoveryOptions {
            accept_data_loss: true,
            lanes: 2,
            ..options()
        };
        let server = machine.start_with(accepting).unwrap();
        assert_eq!(server.survivors, from_to(1, 4));
        let next = server.log.next_csn.get();
        assert!(server.commit(0, next) && server.lane(1).record_horizon());
        match given.round(&mut follower) {
            Ok(progress) => {
                assert!(!ends);
                assert_eq!(progress.next, Csn(next + 1));
                assert_eq!(given.0, [1, 2, 3, 4, next]);
            }
            Err(FollowError::Annulled { from }) => {
                assert!(ends);
                assert_eq!(from, Csn(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The same who has taken a part of it: the error came while it was handed over.
#[test]
fn an_accepted_loss_ends_who_has_begun_what_is_lost() {
    for (fails_at, ends) in [(4, false), (5, true)] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
        let mut follower = Follower::open(&home).unwrap();
        (1..=10).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
        let failed = follower.round(&mut |csn, _| match csn == Csn(fails_at) {
            true => Err("no memory".into()),
            false => Ok(()),
        });
        assert!(failed.is_err());
        assert_eq!(follower.progress().next, Csn(fails_at));
        drop(server);
        // The third block of lane 1, which holds 5, is bad.
        let damage = |bytes: &mut Vec<u8>| bytes[2 * 4096 + 200] ^= 1;
        machine
            .files
            .tamper(&Machine::segment(1, 0), damage)
            .unwrap();
        let accepting = RecoveryOptions {
            accept_data_loss: true,
            lanes: 2,
            ..options()
        };
        let server = machine.start_with(accepting).unwrap();
        assert_eq!(server.survivors, from_to(1, 4));
        match follower.round(&mut |_, _| Ok(())) {
            Ok(_) => assert!(!ends),
            Err(FollowError::Annulled { from }) => {
                assert!(ends);
                assert_eq!(from, Csn(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// What the home holds is not what it held.
#[test]
fn another_database_in_its_place_is_told() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 1));
    work.commit(0, &[1]);
    let home = LogHome::from(memory.clone());
    let mut follower = Follower::open(&home).unwrap();
    let other = MemoryHome::new(32 << 10);
    let (env, _) = logstead_env::Env::simulated(2);
    let _other =
        super::Server::open(LogHome::from(other.clone()), &env, &options(), false).unwrap();
    let bytes = logstead_home::NamedValues::get(&other, "manifest")
        .unwrap()
        .unwrap()
        .0;
    let (_, tag) = logstead_home::NamedValues::get(&memory, "manifest")
        .unwrap()
        .unwrap();
    logstead_home::NamedValues::compare_and_swap(&memory, "manifest", tag, &bytes).unwrap();
    let error = Receiver::default().round(&mut follower).unwrap_err();
    assert!(matches!(error, FollowError::Replaced(_)), "{error}");
}
