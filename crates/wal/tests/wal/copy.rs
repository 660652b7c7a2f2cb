//! Tails copied to other homes: what survives comes over, by number, and nothing else.

use crate::rig;

use logstead_env::RealClock;
use logstead_home::{LogHome, MemoryHome, NamedValues};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::copy::{CopiedTail, Destination, TailCopy, orphans};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{self, CheckpointRef, Manifest, UnfinishedCopy};
use logstead_wal::recovery::RecoveryError;
use logstead_wal::{EntryDependencies, recovery};
use rig::{Machine, Server, Taken, options};

const PLACE: Destination = Destination {
    database: DatabaseId(77),
    epoch: Epoch(5),
    lane: LaneId(3),
};

fn copy(from: &LogHome, to: &LogHome, place: Destination) -> (CopiedTail, Option<CheckpointRef>) {
    let manifest = manifest_of(from).unwrap();
    let tail = TailCopy::read(from, &manifest, &RealClock::new(), to, place).unwrap();
    (tail.finish().unwrap(), manifest.checkpoint)
}

/// The manifest of a copy.
fn manifest_with(tail: &CopiedTail, checkpoint: Option<CheckpointRef>) -> Manifest {
    Manifest {
        epoch: Epoch(PLACE.epoch.get() + 1),
        checkpoint,
        marks: tail.mark.clone().into_iter().collect(),
        ..Manifest::first(PLACE.database)
    }
}

/// What a server finds that starts on the copy.
fn survivors(copy: &Machine) -> Result<(Vec<u64>, u64), RecoveryError> {
    let mut taken = Taken::default();
    let log = recovery::open_with(&copy.home()?, &copy.env, &options(), false, &mut taken)?;
    Ok((taken.survivors, log.next_csn.get()))
}

/// Two lives, two lanes, a checkpoint in the first one, a side segment, and an entry whose predecessor is not there.
fn source() -> (Machine, Server) {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    (1..=6).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
    server.checkpoint(7).unwrap();
    assert!(server.commit(0, 7) && server.commit(1, 8));
    drop(server);
    let server = machine.start(2).unwrap();
    let next = server.log.next_csn.get();
    assert_eq!(next, 9);
    assert!(server.commit(0, 9) && server.commit(1, 10));
    assert!(server.push_side(1, 11, &EntryDependencies::floor(Csn(10))) && server.flush(1));
    // 12 was never written: 13 does not hang on it and survives, 14 does and does not.
    assert!(server.push_with(0, 13, &EntryDependencies::floor(Csn(11))) && server.flush(0));
    assert!(server.push_with(1, 14, &EntryDependencies::floor(Csn(13))) && server.flush(1));
    (machine, server)
}

const SURVIVORS: [u64; 6] = [7, 8, 9, 10, 11, 13];

#[test]
fn what_survives_comes_over_beside_the_server() {
    let (_, server) = source();
    let target = Machine::new(2);
    let to = target.home().unwrap();
    let (tail, checkpoint) = copy(&server.home, &to, PLACE);
    assert_eq!(tail.entries, 6);
    assert_eq!(checkpoint.as_ref().map(|at| at.csn), Some(Csn(7)));
    let mark = tail.mark.as_ref().unwrap();
    assert_eq!((mark.base, mark.first_unaccounted), (Csn(7), Csn(12)));
    assert!(mark.next > Csn(14), "no CSN is drawn twice");
    to.names
        .put_if_absent(manifest::NAME, &manifest_with(&tail, checkpoint).encode())
        .unwrap();
    drop(to);
    for _ in 0..2 {
        let (found, next) = survivors(&target).unwrap();
        assert_eq!(
            (found.as_slice(), next),
            (SURVIVORS.as_slice(), mark.next.get())
        );
    }
    // The source has not noticed.
    assert!(server.commit(0, 15));
}

/// Where blocks lie at any offset, and entries are too many for one.
#[test]
fn places_in_another_kind_of_home_are_its_own() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    (1..=400).for_each(|csn| assert!(server.commit(0, csn)));
    let to = MemoryHome::new(64 << 10);
    let (tail, checkpoint) = copy(&server.home, &LogHome::from(to.clone()), PLACE);
    assert_eq!((tail.entries, checkpoint), (400, None));
    let span = tail.mark.as_ref().unwrap().spans[0];
    assert!(span.end.segment > 0 && span.blocks > 1, "{span:?}");
    to.put_if_absent(manifest::NAME, &manifest_with(&tail, None).encode())
        .unwrap();
    let to = LogHome::from(to);
    let mut taken = Taken::default();
    recovery::open_with(&to, &machine.env, &options(), false, &mut taken).unwrap();
    assert_eq!(taken.survivors, (1..=400).collect::<Vec<_>>());
}

/// A later copy into the same home takes the place of the one before, whatever attempts in between have left.
#[test]
fn the_tail_before_stays_until_the_next_one_counts() {
    let (_, server) = source();
    let target = Machine::new(2);
    let to = target.home().unwrap();
    let (first, checkpoint) = copy(&server.home, &to, PLACE);
    let tag = to
        .names
        .put_if_absent(manifest::NAME, &manifest_with(&first, checkpoint).encode())
        .unwrap();
    let place = |lane: u16| Destination {
        epoch: Epoch(7),
        lane: LaneId(lane),
        ..PLACE
    };
    // Stored, and never named.
    drop(copy(&server.home, &to, place(0)));
    let found = manifest_of(&to).unwrap();
    assert_eq!(found.marks.as_slice(), first.mark.as_slice());
    let (second, checkpoint) = copy(&server.home, &to, place(1));
    let next = Manifest {
        epoch: Epoch(8),
        ..manifest_with(&second, checkpoint)
    };
    let orphans = orphans(&to, &second).unwrap();
    to.names
        .compare_and_swap(manifest::NAME, tag, &next.encode())
        .unwrap();
    // From now on a server may be at work there: what it writes is not the copy's to remove.
    to.appends.open_lane(LaneId(2), 1).unwrap();
    orphans.remove(&to).unwrap();
    for (lane, there) in [(0, false), (1, true), (2, true), (3, false)] {
        let segments = to.segments.list_segments(LaneId(lane)).unwrap();
        assert_eq!(!segments.is_empty(), there, "lane {lane}");
    }
    drop(to);
    assert_eq!(survivors(&target).unwrap().0, SURVIVORS);
}

/// The end is in the mark: what a copy has lost is missed.
#[test]
fn a_copy_that_lost_its_end_is_damaged_not_shorter() {
    let (_, server) = source();
    let target = Machine::new(2);
    let to = target.home().unwrap();
    let (tail, checkpoint) = copy(&server.home, &to, PLACE);
    let span = tail.mark.as_ref().unwrap().spans[0];
    to.names
        .put_if_absent(manifest::NAME, &manifest_with(&tail, checkpoint).encode())
        .unwrap();
    drop(to);
    let segment = Machine::segment(span.lane.get(), span.end.segment);
    let cut = (span.end.offset - 4096) as usize;
    target
        .files
        .tamper(&segment, |file| file[cut..].fill(0))
        .unwrap();
    let found = survivors(&target);
    assert!(matches!(found, Err(RecoveryError::Corrupt(_))), "{found:?}");
}

#[test]
fn what_is_not_completed_is_never_opened() {
    let target = Machine::new(1);
    let to = target.home().unwrap();
    let unfinished = UnfinishedCopy {
        database: DatabaseId(1),
        source: DatabaseId(2),
    };
    let bytes = unfinished.encode();
    assert_eq!(UnfinishedCopy::decode(&bytes), Some(unfinished));
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert_eq!(UnfinishedCopy::decode(&bad), None);
    }
    to.names.put_if_absent(manifest::NAME, &bytes).unwrap();
    let found = manifest_of(&to).unwrap_err();
    assert!(found.to_string().contains("repeat the command"), "{found}");
    drop(to);
    let found = survivors(&target);
    assert!(
        matches!(found, Err(RecoveryError::UnfinishedCopy(_))),
        "{found:?}"
    );
}
