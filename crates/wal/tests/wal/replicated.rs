//! Recovery from several copies: what one of them lacks comes from another, and what was adopted is on enough of them.

use crate::rig;

use logstead_env::{Buffer, Clock, Env, SimClock, SimRandom};
use logstead_home::{
    Availability, LaneSegments, LogHome, MemoryHome, OpenPurpose, Position, ReplicatedHome,
    ReplicatedOptions, SideSegments, Source, WriteConcern,
};
use logstead_types::{Csn, LaneId};
use logstead_wal::lease::LeaseOptions;
use logstead_wal::recovery::{RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, FlushMode, inspect};
use rig::beside::Beside;
use rig::{Server, options};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Cluster {
    children: Vec<MemoryHome>,
    env: Env,
    clock: Arc<SimClock>,
}

fn memory() -> MemoryHome {
    MemoryHome::new(64 << 10)
}

impl Cluster {
    fn new(children: usize, seed: u64) -> Cluster {
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(seed);
        Cluster {
            children: (0..children).map(|_| memory()).collect(),
            env: Env {
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                ..env
            },
            clock,
        }
    }

    fn start(&self, list: &[usize], ack: WriteConcern) -> Result<Server, RecoveryError> {
        self.start_lanes(list, ack, 1)
    }

    fn start_lanes(
        &self,
        list: &[usize],
        ack: WriteConcern,
        lanes: u16,
    ) -> Result<Server, RecoveryError> {
        let source = |&child: &usize| Source::of(LogHome::from(self.children[child].clone()));
        let replicated = ReplicatedOptions {
            ack,
            threads: false,
            ..ReplicatedOptions::default()
        };
        let sources = list.iter().map(source).collect();
        let home = ReplicatedHome::open(sources, &self.env, replicated)?;
        let home = LogHome::from(home);
        let clock = Arc::clone(&self.clock);
        let options = RecoveryOptions {
            lanes,
            lease: LeaseOptions {
                take_over: true,
                threads: false,
                pause: Arc::new(move |time| clock.advance(time)),
                ..LeaseOptions::default()
            },
            ..options()
        };
        Server::open(home, &self.env, &options, false)
    }

    fn crash(&self, server: Server) {
        for child in &self.children {
            child.crash();
        }
        drop(server);
    }

    fn pause(&self, paused: bool) {
        for child in &self.children {
            child.set_paused(paused);
        }
    }
}

/// Pushes a transaction and hands what is buffered to the home.
fn write(server: &Server, csn: u64) -> bool {
    let pushed = server.push(0, csn);
    let _outcome = server.lane(0).flush(FlushMode::Handoff);
    pushed
}

fn is_durable(server: &Server, csn: u64) -> bool {
    server.lane(0).first_not_durable() > Csn(csn)
}

fn upto(last: u64) -> Vec<u64> {
    (1..=last).collect()
}

/// T7: recovery builds on a block that one replica of three holds; the replica is gone at the next recovery.
#[test]
fn a_block_on_one_replica_is_adopted_and_outlives_that_replica() {
    for holder in 0..3 {
        let cluster = Cluster::new(3, 1);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert!(write(&server, 1) && is_durable(&server, 1));
        cluster.pause(true);
        assert!(write(&server, 2));
        assert!(cluster.children[holder].complete());
        assert!(!is_durable(&server, 2));
        cluster.crash(server);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert_eq!(server.survivors, upto(2));
        assert!(write(&server, 3) && is_durable(&server, 3));
        cluster.crash(server);
        cluster.children[holder].set_presence(Availability::Refusing);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert_eq!(server.survivors, upto(3), "held by {holder}");
    }
}

/// Who reads beside a server has opened the homes when one member was enough to judge by. Since then a server
/// acknowledges by majority: one member is enough no more, once the reader has read the manifest that server has
/// written.
#[test]
fn a_reader_judges_by_the_rule_of_the_server_whose_manifest_it_has_read() {
    let cluster = Cluster::new(3, 8);
    let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
    assert!(write(&server, 1) && is_durable(&server, 1));
    let sources = cluster.children.iter();
    let sources = sources.map(|child| Source::of(LogHome::from(child.clone())));
    let reading = ReplicatedOptions {
        purpose: OpenPurpose::Reading,
        threads: false,
        ..ReplicatedOptions::default()
    };
    let reader = ReplicatedHome::open(sources.collect(), &cluster.env, reading).unwrap();
    let reader = LogHome::from(reader);
    inspect::manifest_of(&reader).unwrap();
    cluster.crash(server);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    cluster.children[2].set_paused(true);
    assert!(write(&server, 2) && is_durable(&server, 2));
    let manifest = inspect::manifest_of(&reader).unwrap();
    assert_eq!(manifest.epoch, server.log.epoch);
    for child in 0..2 {
        cluster.children[child].set_presence(Availability::Refusing);
    }
    let listed = reader.segments.list_segments(LaneId(0)).map(drop);
    assert!(listed.is_err(), "one member of three is not enough");
}

/// Blocks that are damaged in one copy or another are read from the next.
#[test]
fn damage_of_one_copy_is_read_around() {
    let cluster = Cluster::new(3, 2);
    let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
    for csn in 1..=20 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    let lane = LaneId(0);
    let segment = cluster.children[0].list_segments(lane).unwrap()[0].segment;
    cluster.crash(server);
    for (child, offset) in [(0, 4096 * 3), (1, 4096 * 7), (0, 4096 * 19)] {
        let at = Position { segment, offset };
        let zeros = Buffer::zeroed(4096);
        cluster.children[child]
            .rewrite(lane, at, &zeros, 4096)
            .unwrap();
    }
    let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
    assert_eq!(server.survivors, upto(20));
}

/// A side segment that is damaged in one copy, or two, is read from the next, and what is good replaces it.
#[test]
fn a_damaged_copy_of_a_side_segment_is_replaced() {
    let lane = LaneId(0);
    for damaged in [vec![0], vec![1], vec![0, 1], vec![1, 2], vec![0, 1, 2]] {
        let cluster = Cluster::new(3, 2);
        let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
        assert!(write(&server, 1) && server.push_side(0, 2, &EntryDependencies::floor(Csn(1))));
        assert!(write(&server, 3) && is_durable(&server, 3));
        let id = cluster.children[0].list_side_segments(lane).unwrap()[0];
        cluster.crash(server);
        let bytes = |child: usize| {
            let mut into = vec![0; 1000];
            let child = &cluster.children[child];
            let count = child.get_side_segment(lane, id, 0, &mut into).unwrap();
            into.truncate(count);
            into
        };
        let good = bytes(0);
        for &child in &damaged {
            let mut bad = good.clone();
            bad[5] ^= 1;
            cluster.children[child]
                .remove_side_segment(lane, id)
                .unwrap();
            let mut side = cluster.children[child].begin_side_segment(lane, id);
            side.append(bad);
            side.finish(Box::new(|stored| stored.unwrap()));
        }
        let started = cluster.start(&[0, 1, 2], WriteConcern::All);
        if damaged.len() == 3 {
            let error = started.map(drop).expect_err("it is lost").to_string();
            assert!(error.contains("wrong checksum"), "{error}");
            continue;
        }
        assert_eq!(started.unwrap().survivors, upto(3), "{damaged:?}");
        for child in 0..3 {
            // The last one needs nothing: whoever comes first is good.
            let after_good = (0..child).any(|before| !damaged.contains(&before));
            let replaced = bytes(child) == good;
            assert!(replaced || after_good, "{damaged:?}: {child}");
        }
    }
}

/// A new member gets everything before it counts; so does one that was away.
#[test]
fn members_that_are_new_or_were_away_are_completed() {
    let cluster = Cluster::new(4, 3);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    for csn in 1..=40 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    cluster.crash(server);
    // 2 misses a life.
    cluster.children[2].set_presence(Availability::Refusing);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    for csn in 41..=60 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    cluster.crash(server);
    // And another one, that writes nothing.
    cluster.crash(cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap());
    cluster.children[2].set_presence(Availability::Up);
    cluster.crash(cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap());
    cluster.children[0].set_presence(Availability::Refusing);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    assert_eq!(server.survivors, upto(60), "from 1 and 2");
    cluster.crash(server);
    // 0 is lost for good; 3 takes its place.
    let server = cluster.start(&[3, 1, 2], WriteConcern::Majority).unwrap();
    assert_eq!(server.survivors, upto(60));
    cluster.crash(server);
    cluster.children[1].set_presence(Availability::Refusing);
    let server = cluster.start(&[3, 1, 2], WriteConcern::Majority).unwrap();
    assert_eq!(server.survivors, upto(60), "from 2 and 3");
    let lane = LaneId(0);
    for info in cluster.children[2].list_segments(lane).unwrap() {
        let mut bytes = [2, 3].map(|child: usize| {
            let mut into = Buffer::zeroed(64 << 10);
            let at = Position::start_of(info.segment);
            let count = cluster.children[child].read(lane, at, &mut into).unwrap();
            into.as_slice()[..count].to_vec()
        });
        for bytes in &mut bytes {
            bytes.truncate(
                bytes
                    .iter()
                    .rposition(|&byte| byte != 0)
                    .map_or(0, |at| at + 1),
            );
        }
        assert!(bytes[0] == bytes[1], "segment {}", info.segment);
    }
}

/// Each copy is a log that can be looked at by itself.
#[test]
fn a_copy_is_verified_by_itself() {
    let cluster = Cluster::new(3, 5);
    let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
    for csn in 1..=5 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    let lane = LaneId(0);
    let segment = cluster.children[0].list_segments(lane).unwrap()[0].segment;
    cluster.crash(server);
    for child in &cluster.children {
        let verified = inspect::verify_home(&LogHome::from(child.clone())).unwrap();
        assert!(verified.is_copy);
        assert_eq!(verified.report.entries, 5);
    }
    let at = Position { segment, offset: 0 };
    cluster.children[1]
        .rewrite(lane, at, &Buffer::zeroed(4096), 4096)
        .unwrap();
    let bad = inspect::verify_home(&LogHome::from(cluster.children[1].clone())).map(drop);
    assert!(bad.unwrap_err().to_string().contains("durable"));
    assert!(inspect::verify_home(&LogHome::from(cluster.children[2].clone())).is_ok());
}

/// A member that was away for a life, and knows of no later one, is read alone: what it lacks is no damage of the log.
#[test]
fn what_a_member_lacks_that_was_left_out_is_told_as_that() {
    let cluster = Cluster::new(3, 5);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    for csn in 1..=9 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    let lane = LaneId(0);
    let segment = cluster.children[0].list_segments(lane).unwrap()[0].segment;
    cluster.crash(server);
    let offset = 4096 * 4;
    let zeros = Buffer::zeroed(4096);
    let child = &cluster.children[2];
    child
        .rewrite(lane, Position { segment, offset }, &zeros, 4096)
        .unwrap();
    let found = inspect::verify_home(&LogHome::from(child.clone())).map(drop);
    assert!(
        matches!(found, Err(RecoveryError::Incomplete(_))),
        "{found:?}"
    );
    let mut out = Vec::new();
    inspect::dump_home(&LogHome::from(child.clone()), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("NOT IN THIS COPY") && !text.contains("CORRUPT"),
        "{text}"
    );
}

/// One member alone has a block that is on its way, and goes away at any request of a reader: also between the passes
/// of a moment, which have met the block, and the reading. The others give another moment.
#[test]
fn a_member_that_goes_away_while_a_moment_is_read_is_no_damage() {
    let (mut with, mut without) = (0, 0);
    for at in 0.. {
        let cluster = Cluster::new(3, 4);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert!(write(&server, 1) && is_durable(&server, 1));
        cluster.pause(true);
        assert!(write(&server, 2));
        assert!(cluster.children[2].complete());
        let sources = cluster.children.iter();
        let sources = sources.map(|child| Source::of(LogHome::from(child.clone())));
        let reading = ReplicatedOptions {
            purpose: OpenPurpose::Reading,
            threads: false,
            ..ReplicatedOptions::default()
        };
        let reader = ReplicatedHome::open(sources.collect(), &cluster.env, reading).unwrap();
        let reader = LogHome::from(reader);
        let child = cluster.children[2].clone();
        let from = Beside::new(&reader, move |request| {
            if request == at {
                child.set_presence(Availability::Refusing);
            }
        });
        let found = inspect::verify_home(&from.home());
        match found {
            Ok(found) => {
                assert!([1, 2].contains(&found.report.entries), "at {at}");
                with += u32::from(found.report.entries == 2);
                without += u32::from(found.report.entries == 1);
            }
            Err(error) => panic!("at {at}: {error}"),
        }
        if at >= from.requests() {
            break;
        }
    }
    assert!(with > 0 && without > 3, "{with} {without}");
}

/// Three copies of two lanes: 1 and 3 in the first one, 2 in the second one, which these of the copies have lost.
fn without_the_second_lane(copies: impl Iterator<Item = usize>) -> Cluster {
    let cluster = Cluster::new(3, 5);
    let server = cluster
        .start_lanes(&[0, 1, 2], WriteConcern::Majority, 2)
        .unwrap();
    for (lane, csn) in [(0, 1), (1, 2), (0, 3)] {
        assert!(server.push_with(lane, csn, &EntryDependencies::default()));
        server.lane(lane).flush(FlushMode::Handoff);
        server.tell_horizon();
        assert_eq!(server.lane(lane).first_not_durable(), Csn(u64::MAX));
    }
    cluster.crash(server);
    let lane = LaneId(1);
    let segment = cluster.children[0].list_segments(lane).unwrap()[0].segment;
    for copy in copies {
        let at = Position { segment, offset: 0 };
        let zeros = Buffer::zeroed(4096);
        cluster.children[copy]
            .rewrite(lane, at, &zeros, 4096)
            .unwrap();
    }
    cluster
}

/// A copy's lane may end before another lane's blocks say so: the other copies have the rest. If none has, it is lost.
#[test]
fn what_one_copy_lacks_of_a_lanes_end_is_no_loss() {
    for holder in 0..3 {
        let cluster = without_the_second_lane((0..3).filter(|copy| *copy != holder));
        for (copy, child) in cluster.children.iter().enumerate() {
            let verified = inspect::verify_home(&LogHome::from(child.clone())).unwrap();
            assert!(verified.is_copy);
            // 3 names nothing.
            let entries = if copy == holder { 3 } else { 2 };
            assert_eq!(verified.report.entries, entries);
        }
        let server = cluster
            .start_lanes(&[0, 1, 2], WriteConcern::Majority, 2)
            .unwrap();
        assert_eq!(server.survivors, upto(3), "held by {holder}");
    }
    let cluster = without_the_second_lane(0..3);
    let started = cluster.start_lanes(&[0, 1, 2], WriteConcern::Majority, 2);
    let Err(RecoveryError::Corrupt(found)) = started.map(drop) else {
        panic!("it starts")
    };
    assert_eq!(found.lane, LaneId(1));
    assert!(found.proof.contains("CSN 2,"), "{found}");
}

/// The copy that recovery has read from goes away before the others are completed: another one that has the block
/// serves as well.
#[test]
fn a_copy_that_goes_away_during_a_start_stops_no_majority() {
    for gone in 0..2 {
        let cluster = Cluster::new(3, 6);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        cluster.children[2].set_paused(true);
        for csn in 1..=9 {
            assert!(write(&server, csn) && is_durable(&server, csn));
        }
        cluster.crash(server);
        let child = cluster.children[gone].clone();
        // Each child's turn at the first rewrite: before it, and after it.
        cluster.children[1].before_rewrite(move || child.set_presence(Availability::Refusing));
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert_eq!(server.survivors, upto(9), "without {gone}");
        assert!(write(&server, 10) && is_durable(&server, 10));
    }
}

/// A start dies while it completes a copy that lacks many blocks at the end: the next one sees what is still missing,
/// however far the first had come.
#[test]
fn a_copy_whose_completion_was_interrupted_is_not_taken_for_complete() {
    const BLOCKS: u64 = 150;
    for written in [0, 1, 63, 64, 65, 100, 140] {
        let cluster = Cluster::new(3, 4);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert!(write(&server, 1) && is_durable(&server, 1));
        cluster.children[2].set_paused(true);
        for csn in 2..=1 + BLOCKS {
            assert!(write(&server, csn) && is_durable(&server, csn));
        }
        cluster.crash(server);
        // The tail is written to all first; what is counted is what goes to this one alone.
        let others = [0, 1].map(|child: usize| {
            let count = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&count);
            cluster.children[child].before_rewrite(move || {
                counter.fetch_add(1, Ordering::SeqCst);
            });
            count
        });
        let (count, all) = (Arc::new(AtomicUsize::new(0)), cluster.children.clone());
        let counter = Arc::clone(&count);
        cluster.children[2].before_rewrite(move || {
            let before = counter.fetch_add(1, Ordering::SeqCst);
            let to_all = others[0]
                .load(Ordering::SeqCst)
                .max(others[1].load(Ordering::SeqCst));
            if before == to_all + written {
                // Nobody answers any more: as good as dead.
                for child in &all {
                    child.set_presence(Availability::Refusing);
                }
            }
        });
        assert!(cluster.start(&[0, 1, 2], WriteConcern::Majority).is_err());
        assert!(count.load(Ordering::SeqCst) > written);
        for child in &cluster.children {
            child.before_rewrite(|| {});
            child.crash();
            child.set_presence(Availability::Up);
        }
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert_eq!(server.survivors, upto(1 + BLOCKS));
        cluster.crash(server);
        // It counts now: with it and another one everything is there, block by block.
        cluster.children[0].set_presence(Availability::Refusing);
        let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
        assert_eq!(server.survivors, upto(1 + BLOCKS), "after {written}");
        let lane = LaneId(0);
        for info in cluster.children[1].list_segments(lane).unwrap() {
            let copies = [1, 2].map(|child: usize| {
                let mut into = Buffer::zeroed(64 << 10);
                let at = Position::start_of(info.segment);
                let count = cluster.children[child].read(lane, at, &mut into).unwrap();
                let bytes = &into.as_slice()[..count];
                let end = bytes.iter().rposition(|&byte| byte != 0);
                bytes[..end.map_or(0, |at| at + 1)].to_vec()
            });
            assert!(
                copies[0] == copies[1],
                "segment {} after {written}",
                info.segment
            );
        }
    }
}

/// Members that are new or were away get what is needed, from the checkpoint's starts on: their lanes begin with a
/// hole. What was removed while one was away is removed from it, too.
#[test]
fn members_are_completed_from_the_starts_of_a_checkpoint_on() {
    let cluster = Cluster::new(4, 5);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    for csn in 1..=20 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    cluster.crash(server);
    // 2 misses a life with a checkpoint in the middle of a segment, and has all of the log before.
    cluster.children[2].set_presence(Availability::Refusing);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    for csn in 21..=60 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    let start = server.starts()[0];
    assert!(start.at.offset > 0);
    let truncated = server.checkpoint(61).unwrap();
    assert!(truncated.segments >= 3, "{truncated:?}");
    for csn in 61..=70 {
        assert!(write(&server, csn) && is_durable(&server, csn));
    }
    cluster.crash(server);
    cluster.children[2].set_presence(Availability::Up);
    cluster.crash(cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap());
    let lane = LaneId(0);
    let first = |child: usize| {
        let segments = cluster.children[child].list_segments(lane).unwrap();
        segments.first().map(|info| info.segment)
    };
    assert_eq!(first(2), Some(start.at.segment), "what came before is gone");
    cluster.children[0].set_presence(Availability::Refusing);
    let server = cluster.start(&[0, 1, 2], WriteConcern::Majority).unwrap();
    assert_eq!(
        server.survivors,
        (61..=70).collect::<Vec<_>>(),
        "from 1 and 2"
    );
    cluster.crash(server);
    // 0 is lost for good; 3 takes its place, and then 1 is lost: all there is lies behind a hole.
    let server = cluster.start(&[3, 1, 2], WriteConcern::Majority).unwrap();
    cluster.crash(server);
    cluster.children[1].set_presence(Availability::Refusing);
    let server = cluster.start(&[3, 1, 2], WriteConcern::Majority).unwrap();
    assert_eq!(
        server.survivors,
        (61..=70).collect::<Vec<_>>(),
        "from 2 and 3"
    );
    // The copy of 3 alone, bytes compared, has nothing before the start.
    let mut before = Buffer::zeroed(usize::try_from(start.at.offset).unwrap());
    let at = Position::start_of(start.at.segment);
    cluster.children[3].read(lane, at, &mut before).unwrap();
    assert!(before.as_slice().iter().all(|byte| *byte == 0), "a hole");
}

/// Damage of one copy at the place where the log begins is read around, and so is the hole of another.
#[test]
fn damage_at_a_start_is_read_around() {
    for damaged in 0..3 {
        let cluster = Cluster::new(3, 6);
        let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
        for csn in 1..=5 {
            assert!(write(&server, csn) && is_durable(&server, csn));
        }
        let at = server.starts()[0].at;
        server.checkpoint(6).unwrap();
        for csn in 6..=9 {
            assert!(write(&server, csn) && is_durable(&server, csn));
        }
        cluster.crash(server);
        let zeros = Buffer::zeroed(4096);
        let child = &cluster.children[damaged];
        child.rewrite(LaneId(0), at, &zeros, 4096).unwrap();
        let server = cluster.start(&[0, 1, 2], WriteConcern::All).unwrap();
        assert_eq!(server.survivors, [6, 7, 8, 9], "damaged: {damaged}");
    }
}

/// Children that are slow, fail, go away and come back, one lost for good, and servers that crash at any moment and
/// come back with other children in reach: what was acknowledged survives, and what has survived once stays.
#[test]
fn whatever_was_acknowledged_survives_whoever_is_left() {
    let mut adopted = 0;
    for seed in 0..150 {
        adopted += run(seed);
    }
    assert!(
        adopted > 50,
        "blocks that were not acknowledged come back too: {adopted}"
    );
}

fn run(seed: u64) -> u64 {
    let random = SimRandom::new(seed);
    let mut cluster = Cluster::new(3, seed);
    let ack = [
        WriteConcern::Majority,
        WriteConcern::Majority,
        WriteConcern::All,
    ][random.below(3) as usize];
    // What was handed over once, and what was acknowledged since.
    let mut expected: Vec<u64> = Vec::new();
    let mut adopted = 0;
    // The CSN of the newest checkpoint that was surely named.
    let mut named = 0;
    let mut list = vec![0, 1, 2];
    for life in 0..8 {
        let all: Vec<usize> = list.clone();
        for &child in &all {
            cluster.children[child].set_presence(Availability::Up);
        }
        if life == 4 {
            // One is lost for good, and replaced.
            list[random.below(3) as usize] = cluster.children.len();
            cluster.children.push(memory());
        } else if life > 0 && ack == WriteConcern::Majority && random.below(2) == 0 {
            let away = list[random.below(3) as usize];
            cluster.children[away].set_presence(Availability::Refusing);
        }
        let server = cluster
            .start(&list, ack)
            .unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
        let held = server.log.report.checkpoint.get();
        assert!(held >= named, "seed {seed}, life {life}: {named} was named");
        let below = expected.iter().copied().filter(|csn| *csn < held);
        let found: Vec<u64> = below.chain(server.survivors.iter().copied()).collect();
        assert!(
            found.starts_with(&expected),
            "seed {seed}, life {life}: {expected:?} became {found:?}"
        );
        adopted += u64::from(found.len() > expected.len());
        expected = found;
        cluster.pause(true);
        let first = server.log.next_csn.get();
        let mut csn = first;
        for _ in 0..random.below(60) {
            match random.below(9) {
                7.. if csn > 1 && random.below(2) == 0 && is_durable(&server, csn - 1) => {
                    let named_now = server.publish(server.checkpoint_at(csn, server.starts()));
                    if named_now.is_ok() {
                        named = csn;
                        let _children_may_be_away = server.log.manifest_writer.truncate(None);
                    }
                }
                0..3 if write(&server, csn) => csn += 1,
                0..3 => {}
                3..7 => {
                    let child = &cluster.children[list[random.below(3) as usize]];
                    let waiting = child.waiting() as u64;
                    if waiting > 0 {
                        child.complete_at(random.below(waiting.min(8)) as usize);
                    }
                }
                _ if random.below(6) == 0 => {
                    let child = &cluster.children[list[random.below(3) as usize]];
                    child.set_presence(Availability::Refusing);
                }
                _ => {}
            }
        }
        let durable = server.lane(0).first_not_durable().get().min(csn);
        expected.extend(first..durable);
        // What is under way arrives, or not.
        for &child in &list {
            for _ in 0..random.below(3) {
                cluster.children[child].complete();
            }
        }
        cluster.crash(server);
    }
    adopted
}
