//! Logs that begin at a checkpoint: what is read of them, and what may be removed. Each test names the scenario it
//! stands for.
//!
//! What a checkpoint would hold is known to the test: all survivors below its CSN.

mod buckets;
mod crashes;
mod damage;
use crate::rig;
mod scenarios;
mod twins;

use logstead_home::HomeError;
use logstead_types::Csn;
use logstead_wal::inspect;
use logstead_wal::manifest::Manifest;
use logstead_wal::recovery::{self, RecoveryError};
use rig::{Machine, Renews, Server, options, renewed};

fn from_to(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

/// Commits these, lane after lane.
fn commit(server: &Server, csns: std::ops::RangeInclusive<u64>) {
    let lanes = server.log.lanes.len() as u64;
    for csn in csns {
        assert!(server.commit((csn % lanes) as u16, csn), "{csn}");
    }
}

#[test]
fn only_what_a_checkpoint_does_not_hold_is_handed_over() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=60);
    let truncated = server.checkpoint(61).unwrap();
    assert!(truncated.segments >= 4, "{truncated:?}");
    commit(&server, 61..=75);
    drop(server);
    for life in 0..3 {
        machine.files.reboot();
        let server = machine.start(2).unwrap();
        assert_eq!(server.survivors, from_to(61, 75), "life {life}");
        assert_eq!(server.log.report.checkpoint, Csn(61));
        assert_eq!(server.log.next_csn, Csn(76));
    }
    let verified = inspect::verify("/db", &machine.env).unwrap();
    assert_eq!((verified.records, verified.next_csn), (15, Csn(76)));
    // The next one makes all of that superfluous.
    let server = machine.start(3).unwrap();
    commit(&server, 76..=80);
    server.checkpoint(81).unwrap();
    assert!(server.log.manifest_writer.manifest().marks.is_empty());
    drop(server);
    let server = machine.start(1).unwrap();
    assert!(server.survivors.is_empty());
    assert_eq!(server.log.next_csn, Csn(81));
    commit(&server, 81..=82);
    drop(server);
    assert_eq!(machine.start(2).unwrap().survivors, [81, 82]);
}

/// The checkpoint that is stored anew is named before anything is loaded: a start that fails then has changed nothing
/// else, and the next one has it.
#[test]
fn a_checkpoint_that_is_stored_anew_is_named_before_anything_else() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=20);
    server.checkpoint(21).unwrap();
    commit(&server, 21..=25);
    let before = server.log.manifest_writer.manifest();
    drop(server);
    let open = |refuses| {
        machine.files.reboot();
        let home = machine.home()?;
        let mut renews = Renews {
            refuses,
            ..Renews::default()
        };
        let opened = recovery::open_with(&home, &machine.env, &options(), false, &mut renews);
        opened.map(|log| (log, renews.taken))
    };
    assert!(matches!(open(true), Err(RecoveryError::Refused(_))));
    let now = inspect::manifest_of(&machine.home().unwrap()).unwrap();
    let named = renewed(before.checkpoint.as_ref().unwrap());
    let expected = Manifest {
        checkpoint: Some(named.clone()),
        ..before
    };
    assert_eq!(now, expected);
    let (log, taken) = open(false).unwrap();
    assert_eq!(taken.survivors, from_to(21, 25));
    assert_eq!(taken.checkpoint.as_ref(), Some(&named));
    assert_eq!(log.manifest_writer.manifest().checkpoint, Some(named));
}

#[test]
fn who_knows_nothing_of_checkpoints_refuses_to_begin_at_one() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    commit(&server, 1..=3);
    server.checkpoint(4).unwrap();
    drop(server);
    let home = machine.home().unwrap();
    let opened = recovery::open(&home, &machine.env, &options(), &mut |_, _| Ok(()));
    let Err(error @ RecoveryError::Refused(_)) = opened else {
        panic!("it goes on without what lies before")
    };
    assert!(error.to_string().contains("below CSN 4"), "{error}");
}

#[test]
fn what_is_no_checkpoint_of_the_log_is_not_named() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=6);
    let early = server.starts();
    let refused = |checkpoint, part: &str| {
        let before = server.log.manifest_writer.manifest();
        let Err(HomeError::Misuse { what, .. }) = server.publish(checkpoint) else {
            panic!("{part}: it is named")
        };
        assert!(what.contains(part), "{what}");
        assert_eq!(server.log.manifest_writer.manifest(), before);
    };
    refused(
        server.checkpoint_at(6, early.clone()),
        "lies before its start",
    );
    let mut forged = early.clone();
    forged[1].block += 1;
    refused(server.checkpoint_at(7, forged), "has not given");
    refused(
        server.checkpoint_at(7, early[..1].to_vec()),
        "not those of its epoch's lanes",
    );
    assert!(server.push(1, 7));
    refused(server.checkpoint_at(8, early.clone()), "is not durable");
    let mut other_epoch = server.checkpoint_at(7, early.clone());
    other_epoch.epoch.0 += 1;
    refused(other_epoch, "no epoch there was");
    assert!(server.flush(1));
    server.checkpoint(8).unwrap();
    refused(server.checkpoint_at(7, early.clone()), "goes back");
    refused(server.checkpoint_at(9, early), "goes back");
    refused(server.checkpoint_at(7, server.starts()), "goes back");
}
