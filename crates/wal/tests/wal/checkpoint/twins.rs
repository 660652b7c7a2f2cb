//! Two logs live the same life: one keeps everything, the other takes checkpoints and removes what they make
//! superfluous. At every restart the checkpoint and what is left of the second log are what the first one gives.
//!
//! Random histories on several lanes with blocks in flight, log stealing, side segments, crashes with anything on its
//! way, lanes that become more and fewer, checkpoints that are published late or never, and truncations that a crash
//! leaves out.

use super::rig::{Server, options, row_of};
use logstead_env::{Env, SimRandom};
use logstead_home::{LaneSegments, LogHome, MemoryHome, SideSegments};
use logstead_types::{Csn, LaneId};
use logstead_wal::manifest::{CheckpointRef, RedoPoint};
use logstead_wal::recovery::RecoveryOptions;
use logstead_wal::{EntryDependencies, FlushMode, SideRef};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;

const SEGMENT_BYTES: u64 = 32 << 10;
const LIVES: usize = 6;

/// One of the two logs.
struct Twin {
    memory: MemoryHome,
    env: Env,
    server: Option<Server>,
}

impl Twin {
    fn new(seed: u64) -> Twin {
        let (env, _) = Env::simulated(seed);
        Twin {
            memory: MemoryHome::new(SEGMENT_BYTES),
            env,
            server: None,
        }
    }

    fn start(&mut self, lanes: u16, ahead: bool) {
        let home = LogHome::from(self.memory.clone());
        let options = RecoveryOptions { lanes, ..options() };
        let server = Server::open(home, &self.env, &options, ahead).expect("starts");
        self.server = Some(server);
        self.memory.set_paused(true);
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("runs")
    }

    fn crash(&mut self) {
        self.memory.crash();
        self.server = None;
    }

    fn side(&self, lane: u16, csn: u64) -> SideRef {
        let (done, finished) = channel();
        let mut side = self.server().lane(lane).begin_side_segment().unwrap();
        side.append(row_of(Csn(csn)));
        side.finish(Box::new(move |result| done.send(result).expect("waits")));
        finished.recv().expect("told").expect("stored")
    }

    /// False if there is no room now.
    fn push(&self, lane: u16, csn: u64, deps: &EntryDependencies, aside: bool) -> bool {
        let lane_of = self.server().lane(lane);
        if !aside {
            return self.server().push_with(lane, csn, deps);
        }
        let Ok(room) = lane_of.room(0) else {
            return false;
        };
        let side = self.side(lane, csn);
        lane_of.push_side(room, Csn(csn), 0, deps, &side);
        true
    }

    fn sides(&self) -> Vec<(u16, u64)> {
        let lanes = (0..8).map(LaneId);
        let of_lane = |lane| (self.memory.list_side_segments(lane).expect("lists"), lane);
        let sides = lanes.map(of_lane);
        sides
            .flat_map(|(ids, lane)| ids.into_iter().map(move |id| (lane.0, id)))
            .collect()
    }
}

/// How eventful histories were.
#[derive(Debug, Default)]
struct Events {
    published: u64,
    restarts_from_older_epochs: u64,
    passed_over: u64,
    dropped: u64,
    survivors_above_gaps: u64,
    segments: u64,
    sides: u64,
    stolen: u64,
}

struct History {
    random: SimRandom,
    full: Twin,
    short: Twin,
    counter: u64,
    base: u64,
    /// What a checkpoint of the second log would hold: survivors below its CSN.
    held: BTreeSet<u64>,
    /// All survivors before this life.
    settled: Vec<u64>,
    /// A checkpoint that is being taken.
    pending: Option<(u64, Vec<RedoPoint>)>,
    what: String,
    events: Events,
}

impl History {
    fn below(&self, limit: u64) -> u64 {
        self.random.below(limit.max(1))
    }

    fn lane(&self) -> u16 {
        self.below(self.full.server().log.lanes.len() as u64) as u16
    }

    fn deps(&self) -> EntryDependencies {
        let csn = self.counter;
        if self.below(3) == 0 {
            return EntryDependencies::floor(Csn(csn - 1));
        }
        let first = self.base.max(csn.saturating_sub(9));
        let recent = (0..self.below(4)).map(|_| first + self.below(csn - first));
        let list = recent.filter(|of| (first..csn).contains(of)).map(Csn);
        EntryDependencies {
            floor: Csn(0),
            list: list.collect(),
        }
    }

    fn step(&mut self) {
        let (lane, other) = (self.lane(), self.lane());
        match self.below(20) {
            0..7 => {
                let (csn, deps) = (self.counter, self.deps());
                let aside = self.below(8) == 0;
                let pushed =
                    [&self.full, &self.short].map(|twin| twin.push(lane, csn, &deps, aside));
                assert_eq!(pushed[0], pushed[1], "{}", self.what);
                self.counter += u64::from(pushed[0]);
            }
            7..11 => {
                for twin in [&self.full, &self.short] {
                    let _outcome = twin.server().lane(lane).flush(FlushMode::Handoff);
                }
            }
            11..13 => {
                let stolen = [&self.full, &self.short].map(|twin| {
                    let server = twin.server();
                    server.lane(lane).steal(server.lane(other), usize::MAX)
                });
                assert_eq!(stolen[0], stolen[1], "{}", self.what);
                self.events.stolen += u64::from(stolen[0] > 0);
            }
            13..19 => {
                let waiting = self.full.memory.waiting() as u64;
                assert_eq!(waiting, self.short.memory.waiting() as u64, "{}", self.what);
                let index = self.below(waiting) as usize;
                for twin in [&self.full, &self.short] {
                    twin.memory.complete_at(index);
                }
            }
            _ if self.pending.is_none() && self.counter > 1 => {
                self.pending = Some((self.counter, self.short.server().starts()));
            }
            _ => {}
        }
        self.publish_if_due();
    }

    /// The rule of who takes a checkpoint: it may be named when the horizon has reached its CSN.
    fn publish_if_due(&mut self) {
        let server = self.short.server();
        let horizon = server.horizon(self.counter);
        assert_eq!(horizon, self.full.server().horizon(self.counter));
        let Some((csn, _)) = self.pending.as_ref().filter(|(csn, _)| *csn <= horizon) else {
            return;
        };
        // Some are given up, or come late.
        if self.below(3) == 0 {
            return;
        }
        let csn = *csn;
        let (_, starts) = self.pending.take().expect("pending");
        let checkpoint: CheckpointRef = server.checkpoint_at(csn, starts);
        server.publish(checkpoint).expect(&self.what);
        self.held = self.settled.iter().copied().chain(self.base..csn).collect();
        self.events.published += 1;
        if self.below(4) > 0 {
            let truncated = server.log.manifest_writer.truncate(None).expect(&self.what);
            self.events.segments += truncated.segments;
            self.events.sides += truncated.sides;
        }
    }

    fn restart(&mut self, life: usize) {
        let lanes = 1 + self.below(4) as u16;
        let ahead = self.below(2) == 0;
        self.full.crash();
        self.short.crash();
        self.full.start(lanes, ahead);
        self.short.start(lanes, ahead);
        let (full, short) = (self.full.server(), self.short.server());
        let what = format!("{}, life {life}", self.what);
        let survivors = full.survivors.clone();
        let joined: Vec<u64> = self.held.iter().chain(&short.survivors).copied().collect();
        assert_eq!(
            joined, survivors,
            "{what}: {:?}",
            short.log.report.checkpoint
        );
        let next_csn = full.log.next_csn;
        assert_eq!(short.log.next_csn, next_csn, "{what}");
        let report = &short.log.report;
        let manifest = short.log.manifest_writer.manifest();
        let older = manifest
            .checkpoint
            .filter(|of| of.epoch.0 + 1 < short.log.epoch.0);
        let gap = survivors.iter().zip(1..).any(|(csn, at)| *csn != at);
        let events = &mut self.events;
        events.restarts_from_older_epochs += u64::from(older.is_some());
        events.passed_over += report.entries_in_checkpoint;
        events.dropped += report.entries_dropped;
        events.survivors_above_gaps += u64::from(gap);
        (self.base, self.counter) = (next_csn.0, next_csn.0);
        self.settled = survivors;
        self.pending = None;
    }

    /// At the end everything is durable and in a checkpoint: nothing of earlier epochs is left.
    fn end(&mut self) {
        while self.full.memory.complete() {}
        while self.short.memory.complete() {}
        self.restart(LIVES);
        let server = self.short.server();
        self.short.memory.set_paused(false);
        let csn = self.counter;
        if csn == 1 {
            return;
        }
        server.checkpoint(csn).expect(&self.what);
        let manifest = server.log.manifest_writer.manifest();
        assert!(manifest.marks.is_empty(), "{}", self.what);
        assert_eq!(self.short.sides(), [], "{}", self.what);
        for lane in self.short.memory.list_lanes().expect("lists") {
            let origin = manifest.lanes.iter().find(|origin| origin.lane == lane);
            let first = origin.unwrap_or_else(|| panic!("{}: lane {lane} is left", self.what));
            let segments = server.segments(lane.0);
            let left = segments.iter().find(|of| **of < first.first_segment);
            assert_eq!(left, None, "{}: lane {lane}", self.what);
        }
    }
}

#[test]
fn a_checkpoint_and_the_truncated_log_are_the_whole_log() {
    let asked = std::env::var("LOGSTEAD_SEEDS").ok();
    let seeds = asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    let mut all = Events::default();
    for seed in 0..seeds {
        let mut history = History {
            random: SimRandom::new(seed),
            full: Twin::new(seed),
            short: Twin::new(seed),
            counter: 1,
            base: 1,
            held: BTreeSet::new(),
            settled: Vec::new(),
            pending: None,
            what: format!("seed {seed}"),
            events: Events::default(),
        };
        history.full.start(2, false);
        history.short.start(2, false);
        for life in 0..LIVES {
            // Some lives are too short for a checkpoint.
            let steps = if history.below(3) == 0 { 30 } else { 500 };
            for _ in 0..history.below(steps) {
                history.step();
            }
            history.restart(life);
        }
        history.end();
        let events = history.events;
        all.published += events.published;
        all.restarts_from_older_epochs += events.restarts_from_older_epochs;
        all.passed_over += events.passed_over;
        all.dropped += events.dropped;
        all.survivors_above_gaps += events.survivors_above_gaps;
        all.segments += events.segments;
        all.sides += events.sides;
        all.stolen += events.stolen;
    }
    let Events {
        published,
        restarts_from_older_epochs,
        passed_over,
        dropped,
        survivors_above_gaps,
        segments,
        sides,
        stolen,
    } = all;
    for count in [
        published,
        restarts_from_older_epochs,
        passed_over,
        dropped,
        survivors_above_gaps,
        segments,
        sides,
        stolen,
    ] {
        assert!(count > seeds / 2, "too tame: {all:?}");
    }
    println!("{all:?}");
}
