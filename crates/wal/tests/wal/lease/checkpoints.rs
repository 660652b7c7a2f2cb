//! Checkpoints at a home with a lease: who was overtaken names none, and what it removes late is nobody's.

use super::{World, all, lease};
use crate::rig::{Renews, Server, renewed};
use logstead_home::{HomeError, LogHome};
use logstead_types::{Csn, LaneId};
use logstead_wal::EntryDependencies;
use logstead_wal::recovery::{self, RecoveryError};
use parking_lot::Mutex;
use std::sync::Arc;

/// Transactions `csns`, every third with a side segment, over all lanes.
fn commit(server: &Server, csns: std::ops::Range<u64>) {
    let lanes = server.log.lanes.len() as u64;
    for csn in csns {
        let lane = (csn % lanes) as u16;
        let deps = EntryDependencies::floor(Csn(csn - 1));
        let pushed = if csn.is_multiple_of(3) {
            server.push_side(lane, csn, &deps)
        } else {
            server.push(lane, csn)
        };
        assert!(pushed && server.flush(lane), "{csn}");
    }
}

fn is_fenced<T: std::fmt::Debug>(result: Result<T, HomeError>) -> bool {
    matches!(result, Err(HomeError::Fenced(_)))
}

/// Under the lease that was just claimed, which goes on, and once only.
#[test]
fn a_checkpoint_that_is_stored_anew_is_named_under_the_lease() {
    let world = World::new();
    let server = world.process(1).lanes(2).start().unwrap();
    commit(&server, 1..20);
    let at = server.checkpoint_at(20, server.starts());
    server.publish(at.clone()).unwrap();
    commit(&server, 20..25);
    world.ends(1);
    let open = |number, refuses| {
        let process = world.process(number).lanes(1);
        let home = LogHome::from(process.home.clone());
        let mut renews = Renews {
            refuses,
            ..Renews::default()
        };
        recovery::open_with(&home, &process.env(), &process.options, false, &mut renews)
            .map(|log| (log, renews.taken))
    };
    assert!(matches!(open(2, true), Err(RecoveryError::Refused(_))));
    assert_eq!(world.manifest().checkpoint, Some(renewed(&at)));
    assert_eq!(world.manifest().epoch, at.epoch);
    let (log, taken) = open(3, false).unwrap();
    assert_eq!(taken.checkpoint, Some(renewed(&at)));
    assert_eq!(taken.survivors, (20..25).collect::<Vec<_>>());
    let manifest = world.manifest();
    assert_eq!(manifest.checkpoint, Some(renewed(&at)));
    assert!(manifest.epoch > at.epoch && manifest == log.manifest_writer.manifest());
}

/// Who stores a checkpoint anew is told when another server has taken over meanwhile.
#[test]
fn who_was_overtaken_while_a_checkpoint_is_stored_anew_is_told() {
    let world = Arc::new(World::new());
    let server = world.process(1).lanes(2).start().unwrap();
    commit(&server, 1..20);
    let at = server.checkpoint_at(20, server.starts());
    server.publish(at).unwrap();
    world.ends(1);
    let there = Arc::clone(&world);
    let mut renews = Renews {
        meanwhile: Some(Box::new(move || {
            drop(there.process(3).lanes(1).taking_over().start().unwrap());
        })),
        ..Renews::default()
    };
    let process = world.process(2).lanes(1);
    let home = LogHome::from(process.home.clone());
    let late = recovery::open_with(&home, &process.env(), &process.options, false, &mut renews);
    let late = late.map(drop).unwrap_err();
    assert!(
        matches!(late, RecoveryError::Home(HomeError::Fenced(_))),
        "{late}"
    );
    assert!(renews.is_overtaken);
}

#[test]
fn who_was_overtaken_names_no_checkpoint() {
    let world = World::new();
    let old = world.process(1).lanes(2).start().unwrap();
    commit(&old, 1..20);
    let starts = old.starts();
    let new = world.process(2).lanes(2).taking_over().start().unwrap();
    assert_eq!(new.survivors, (1..20).collect::<Vec<_>>());
    let before = world.manifest();
    assert!(is_fenced(
        old.publish(old.checkpoint_at(20, starts.clone()))
    ));
    assert!(is_fenced(old.publish(old.checkpoint_at(20, starts))));
    assert_eq!(world.manifest(), before);
    assert_eq!(old.log.manifest_writer.manifest().checkpoint, None);
    assert_eq!(
        old.log.manifest_writer.truncate(None).unwrap(),
        Default::default()
    );
    commit(&new, 20..25);
    world.ends(2);
    let after = world.process(3).start().unwrap();
    assert_eq!(after.survivors, all(&after.survivors));
}

/// A server that truncates is paused before each of its requests in turn, while another one takes over, writes, takes
/// checkpoints of its own and truncates; then it wakes up.
#[test]
fn a_truncation_that_wakes_up_after_it_was_overtaken_harms_nobody() {
    let mut removed_late = 0;
    for request in 0.. {
        let world = World::new();
        // An epoch with more lanes lies before.
        let first = world.process(1).lanes(3).start().unwrap();
        commit(&first, 1..20);
        world.ends(1);
        let late = world.process(2).lanes(2);
        let server = late.start().unwrap();
        commit(&server, 20..60);
        server
            .publish(server.checkpoint_at(60, server.starts()))
            .unwrap();
        commit(&server, 60..70);
        let other = world.process(3).lanes(3).taking_over();
        let running: Arc<Mutex<Option<Server>>> = Arc::default();
        let slot = Arc::clone(&running);
        let count = late.home.requests().len();
        late.home.before(count + request, move || {
            let server = other.start().unwrap();
            assert_eq!(server.survivors, (60..70).collect::<Vec<_>>());
            commit(&server, 70..100);
            if request % 2 == 0 {
                server.checkpoint(100).unwrap();
            }
            commit(&server, 100..110);
            *slot.lock() = Some(server);
        });
        let truncated = server.log.manifest_writer.truncate(None).unwrap();
        let Some(next) = running.lock().take() else {
            assert!(request > 10 && truncated.segments > 5, "{truncated:?}");
            break;
        };
        removed_late += late.home.requests().len() - count - request;
        // The running server goes on, and everything is there at the next start.
        commit(&next, 110..120);
        lease(&next).release();
        let after = world.process(4).lanes(1).start().unwrap();
        let held = if request % 2 == 0 { 100 } else { 60 };
        assert_eq!(after.log.report.checkpoint, Csn(held));
        let expected: Vec<u64> = (held..120).collect();
        assert_eq!(after.survivors, expected, "request {request}");
        let next = after.log.next_csn.get();
        commit(&after, next..next + 3);
    }
    assert!(removed_late > 20, "{removed_late}");
}

#[test]
fn a_reply_that_was_lost_is_settled_by_reading() {
    let world = World::new();
    let process = world.process(1).lanes(1);
    let server = process.start().unwrap();
    commit(&server, 1..30);
    process.home.lose_reply();
    server
        .publish(server.checkpoint_at(30, server.starts()))
        .unwrap();
    let named = world.manifest().checkpoint.map(|named| named.csn);
    assert_eq!(named, Some(Csn(30)));
    assert!(server.log.manifest_writer.truncate(None).unwrap().segments > 0);
}

/// The compare and swap was not answered and arrives at some time, or never: nothing is removed before it is known to
/// be there.
#[test]
fn nothing_is_removed_while_it_is_not_known_whether_a_checkpoint_is_named() {
    for arrives in [None, Some(0), Some(1), Some(2)] {
        let world = World::new();
        let process = world.process(1).lanes(1);
        let server = process.start().unwrap();
        commit(&server, 1..30);
        let manifest_writer = &server.log.manifest_writer;
        process.home.delay();
        let published = server.publish(server.checkpoint_at(30, server.starts()));
        assert!(
            matches!(published, Err(HomeError::Io { .. })),
            "{published:?}"
        );
        let segments = server.segments(0);
        if arrives == Some(0) {
            assert!(process.home.deliver());
        }
        assert_eq!(manifest_writer.manifest().checkpoint, None);
        assert_eq!(manifest_writer.truncate(None).unwrap(), Default::default());
        assert_eq!(server.segments(0), segments);
        // It lapses, or is found.
        manifest_writer.update(|_| {}).unwrap();
        if arrives == Some(1) {
            assert!(!process.home.deliver(), "another state is there by now");
        }
        let named = arrives == Some(0);
        assert_eq!(manifest_writer.manifest().checkpoint.is_some(), named);
        assert_eq!(
            manifest_writer.manifest().checkpoint,
            world.manifest().checkpoint
        );
        assert_eq!(manifest_writer.truncate(None).unwrap().segments > 0, named);
        if arrives == Some(2) {
            assert!(!process.home.deliver());
        }
        world.ends(1);
        let after = world.process(2).start().unwrap();
        let first = if named { 30 } else { 1 };
        assert_eq!(after.survivors, (first..30).collect::<Vec<u64>>());
    }
}

/// An attempt of one's own that arrives late is no other server: what was to be changed is changed after it.
#[test]
fn a_checkpoint_is_named_although_an_earlier_one_arrives_late() {
    for renewal in [false, true] {
        let world = World::new();
        let process = world.process(1).lanes(1);
        let server = process.start().unwrap();
        commit(&server, 1..30);
        process.home.delay();
        if renewal {
            world.clock.advance(super::LEASE / 2);
            lease(&server).tick();
        } else {
            let first = server.publish(server.checkpoint_at(30, server.starts()));
            assert!(matches!(first, Err(HomeError::Io { .. })), "{first:?}");
        }
        commit(&server, 30..35);
        assert!(process.home.deliver());
        server
            .publish(server.checkpoint_at(35, server.starts()))
            .unwrap();
        let named = world.manifest().checkpoint.unwrap();
        assert_eq!(named.csn, Csn(35));
        // It is judged by what it follows, too.
        let back = server.publish(server.checkpoint_at(34, server.starts()));
        assert!(matches!(back, Err(HomeError::Misuse { .. })), "{back:?}");
    }
}

/// Who fences a lane looks for its writer where that writes: the segment of a start stays although nothing in it is
/// needed.
#[test]
fn the_segment_that_is_written_to_stays() {
    let world = World::new();
    let server = world.process(1).lanes(2).start().unwrap();
    for csn in 1..40 {
        commit(&server, csn..csn + 1);
        server.checkpoint(csn + 1).unwrap();
        for start in server.starts() {
            let LaneId(lane) = start.lane;
            assert!(server.segments(lane).contains(&start.at.segment), "{csn}");
        }
    }
    let next = world.process(2).taking_over().start().unwrap();
    assert!(next.survivors.is_empty());
    assert!(!server.commit(0, 40));
}

/// Without a lease: the compare and swap happened, its reply was lost, and nothing more is answered for a while.
#[test]
fn a_name_that_could_not_be_looked_at_is_settled_before_the_next_change() {
    for (happened, silent_for) in [(true, 1), (true, 2), (false, 1)] {
        let world = World::new();
        let mut process = world.process(1);
        process.home = process.home.locked();
        let server = process.start().unwrap();
        assert!(server.log.lease.is_none());
        commit(&server, 1..30);
        let home = &process.home;
        if happened {
            home.lose_reply();
        } else {
            home.delay();
        }
        let manifest_writer = &server.log.manifest_writer;
        // From the first or the second look on.
        home.dies_at(home.requests().len() + silent_for);
        let published = server.publish(server.checkpoint_at(30, server.starts()));
        assert!(
            matches!(published, Err(HomeError::Io { .. })),
            "{published:?}"
        );
        assert!(
            manifest_writer.update(|_| {}).is_err(),
            "it is not known yet"
        );
        assert_eq!(manifest_writer.manifest().checkpoint, None);
        assert_eq!(manifest_writer.truncate(None).unwrap(), Default::default());
        home.lives();
        let swaps = |home: &super::Shelf| {
            let requests = home.requests();
            requests.iter().filter(|of| of.starts_with("swap")).count()
        };
        let before = swaps(home);
        manifest_writer.update(|_| {}).unwrap();
        assert_eq!(swaps(home) - before, usize::from(happened), "written again");
        assert_eq!(manifest_writer.manifest().checkpoint.is_some(), happened);
        assert_eq!(manifest_writer.manifest(), world.manifest());
        assert_eq!(
            manifest_writer.truncate(None).unwrap().segments > 0,
            happened
        );
        server
            .publish(server.checkpoint_at(30, server.starts()))
            .unwrap();
        assert!(manifest_writer.manifest().checkpoint.is_some());
    }
}
