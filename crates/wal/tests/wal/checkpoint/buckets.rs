//! Truncated logs in buckets: objects that are appended to, and one object per append. Fences outlive the log that they
//! ended.

use super::rig::{Server, options};
use logstead_env::{Clock, Env, SimClock, sleep};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{
    HomeError, LogHome, ObjectHome, ObjectOptions, ReplicatedHome, ReplicatedOptions, Source,
    WriteConcern,
};
use logstead_types::{Csn, LaneId};
use logstead_wal::lease::LeaseOptions;
use logstead_wal::recovery::RecoveryOptions;
use logstead_wal::{EntryDependencies, FlushMode};
use std::sync::Arc;
use std::time::Duration;

const BLOCKS: u64 = 8;

fn kinds() -> [MemoryBucket; 3] {
    // The head and the margin for fences take two.
    let appendable = || MemoryOptions::appendable(BLOCKS + 2);
    let two_steps = MemoryOptions {
        creates_in_two_steps: true,
        ..appendable()
    };
    let kinds = [appendable(), two_steps, MemoryOptions::plain()];
    kinds.map(MemoryBucket::new)
}

fn home(bucket: &MemoryBucket, env: &Env) -> LogHome {
    let small = ObjectOptions {
        appends_per_segment_max: BLOCKS,
        pause_min: Duration::ZERO,
        pause_max: Duration::ZERO,
        ..ObjectOptions::default()
    };
    LogHome::from(ObjectHome::open(Arc::new(bucket.clone()), env, small).expect("opens"))
}

/// A server that takes the bucket over from whoever has it.
fn start(bucket: &MemoryBucket, lanes: u16) -> Server {
    start_at(&|env| home(bucket, env), lanes)
}

/// The same in several buckets, where two of three are enough.
fn start_in(buckets: &[&MemoryBucket]) -> Server {
    let open = |env: &Env| -> LogHome {
        let sources = buckets.iter().map(|bucket| Source::of(home(bucket, env)));
        let majority = ReplicatedOptions {
            ack: WriteConcern::Majority,
            threads: false,
            ..ReplicatedOptions::default()
        };
        LogHome::from(ReplicatedHome::open(sources.collect(), env, majority).expect("opens"))
    };
    start_at(&open, 1)
}

fn start_at(open: &dyn Fn(&Env) -> LogHome, lanes: u16) -> Server {
    let clock = Arc::new(SimClock::new());
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..Env::real()
    };
    let home = open(&env);
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
    Server::open(home, &env, &options, false).expect("starts")
}

/// False if the lane fails.
fn commit_one(server: &Server, lane: u16, csn: u64) -> bool {
    if !server.push(lane, csn) {
        return false;
    }
    let lane = server.lane(lane);
    let _outcome = lane.flush(FlushMode::Handoff);
    while lane.first_not_durable() <= Csn(csn) {
        if lane.failure().is_some() {
            return false;
        }
        sleep(Duration::from_micros(50));
    }
    true
}

fn commit(server: &Server, csns: std::ops::RangeInclusive<u64>) {
    for csn in csns {
        let lane = (csn % server.log.lanes.len() as u64) as u16;
        assert!(commit_one(server, lane, csn), "{csn}");
    }
}

#[test]
fn a_log_in_a_bucket_begins_at_its_checkpoint() {
    for bucket in kinds() {
        let server = start(&bucket, 2);
        commit(&server, 1..=29);
        let starts = server.starts();
        assert!(starts.iter().any(|start| start.at.offset > 0));
        let truncated = server.checkpoint(30).unwrap();
        assert_eq!(truncated.segments, 2);
        commit(&server, 30..=50);
        drop(server);
        for lanes in [1, 3] {
            let server = start(&bucket, lanes);
            assert_eq!(server.survivors, (30..=50).collect::<Vec<_>>());
        }
        // More checkpoints than segments.
        let server = start(&bucket, 1);
        for csn in 51..=80 {
            commit(&server, csn..=csn);
            server.checkpoint(csn + 1).unwrap();
        }
        assert!(server.segments(0).len() <= 3, "{:?}", server.segments(0));
        for lane in 1..3 {
            assert!(server.segments(lane).is_empty(), "{lane}");
        }
        commit(&server, 81..=82);
        drop(server);
        assert_eq!(start(&bucket, 1).survivors, [81, 82]);
    }
}

/// T3: a server was overtaken, and all that it wrote is in a checkpoint by now and removed. It wakes up: nothing it
/// writes succeeds, no checkpoint of it is named, and what it removes is nobody's.
#[test]
fn t3_who_was_overtaken_cannot_write_when_its_log_is_gone() {
    // With a block on each lane, with a checkpoint of its own, and with nothing written at all.
    for blocks in [0, 6, 29] {
        for bucket in kinds() {
            let old = start(&bucket, 2);
            if blocks > 0 {
                commit(&old, 1..=blocks);
            }
            if blocks > 6 {
                old.publish(old.checkpoint_at(blocks + 1, old.starts()))
                    .unwrap();
            }
            let starts = old.starts();
            let new = start(&bucket, 1);
            let next = new.log.next_csn.0;
            assert_eq!(next, blocks + 1);
            commit(&new, next..=next + 20);
            new.checkpoint(next + 21).unwrap();
            commit(&new, next + 21..=next + 22);
            let published = old.publish(old.checkpoint_at(next, starts));
            assert!(
                matches!(published, Err(HomeError::Fenced(_))),
                "{published:?}"
            );
            // Also after it has removed what it once could.
            let _late = old.log.manifest_writer.truncate(None);
            for lane in [0, 1] {
                assert!(
                    !commit_one(&old, lane, next),
                    "lane {lane}, {blocks} blocks"
                );
            }
            commit(&new, next + 23..=next + 24);
            drop(new);
            let after = start(&bucket, 1);
            let expected: Vec<u64> = (next + 21..=next + 24).collect();
            assert_eq!(after.survivors, expected, "{blocks} blocks");
        }
    }
}

#[test]
fn t8_side_segments_in_a_bucket_go_with_the_checkpoint_that_holds_their_entries() {
    for bucket in kinds() {
        let server = start(&bucket, 1);
        let sides = |server: &Server| {
            server
                .home
                .sides
                .list_side_segments(LaneId(0))
                .unwrap()
                .len()
        };
        for csn in 1..=20 {
            let (done, stored) = std::sync::mpsc::channel();
            let mut side = server.lane(0).begin_side_segment().unwrap();
            side.append(super::rig::row_of(Csn(csn)));
            side.finish(Box::new(move |result| done.send(result).unwrap()));
            let side = stored.recv().unwrap().unwrap();
            let room = server.lane(0).room(0).unwrap();
            let deps = EntryDependencies::floor(Csn(csn - 1));
            server.lane(0).push_side(room, Csn(csn), 0, &deps, &side);
            let _outcome = server.lane(0).flush(FlushMode::Handoff);
            while server.lane(0).first_not_durable() <= Csn(csn) {
                sleep(Duration::from_micros(50));
            }
        }
        let truncated = server.checkpoint(21).unwrap();
        assert_eq!((truncated.segments, truncated.sides), (2, 20));
        assert_eq!(sides(&server), 0);
        commit(&server, 21..=22);
        drop(server);
        let server = start(&bucket, 1);
        assert_eq!(
            (server.survivors.clone(), sides(&server)),
            (vec![21, 22], 0)
        );
    }
}

/// A bucket that is new among several gets the log from the start on. Its segment begins with a hole, and is all there
/// is when the others are lost one by one.
#[test]
fn a_bucket_that_lacks_what_lies_before_a_start_has_all_of_the_log() {
    for kind in 0..kinds().len() {
        let empty = || kinds()[kind].clone();
        let first = [empty(), empty(), empty()];
        let server = start_in(&[&first[0], &first[1], &first[2]]);
        commit(&server, 1..=20);
        let start = server.starts()[0];
        assert!(start.at.offset > 0);
        assert_eq!(server.checkpoint(21).unwrap().segments, 2);
        commit(&server, 21..=33);
        drop(server);
        let second = empty();
        let server = start_in(&[&second, &first[1], &first[2]]);
        assert_eq!(server.survivors, (21..=33).collect::<Vec<_>>());
        drop(server);
        let third = empty();
        let server = start_in(&[&second, &third, &first[2]]);
        assert_eq!(server.survivors, (21..=33).collect::<Vec<_>>());
        drop(server);
        let fourth = empty();
        let server = start_in(&[&second, &third, &fourth]);
        assert_eq!(server.survivors, (21..=33).collect::<Vec<_>>());
        commit(&server, 34..=40);
        drop(server);
        let server = start_in(&[&second, &third, &fourth]);
        assert_eq!(server.survivors, (21..=40).collect::<Vec<_>>());
    }
}
