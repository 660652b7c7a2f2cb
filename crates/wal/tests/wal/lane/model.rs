//! Random orders of pushes, flushes, thefts, completions and failures against a simple model of what may be
//! durable: an entry is if its block and all earlier ones of the lane that wrote it are written, and all entries
//! pushed before it to its own lane are durable too.

use super::bench::{BUFFER, Bench, ENTRY_LEN, bench_with};
use logstead_types::Csn;
use logstead_wal::block::HEADER_LEN;
use logstead_wal::{Cursor, FlushMode, FlushOutcome, NoRoom};
use proptest::prelude::*;
use std::collections::VecDeque;

const LANES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Pushes `count` entries.
    Push(usize, usize),
    Flush(usize, FlushMode),
    Steal(usize, usize, usize),
    Complete(usize),
    Fail(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let lane = || 0..LANES;
    let mode = prop_oneof![Just(FlushMode::Inline), Just(FlushMode::Handoff)];
    prop_oneof![
        6 => (lane(), prop_oneof![1usize..4, 100usize..200]).prop_map(|(at, count)| Step::Push(at, count)),
        4 => (lane(), mode).prop_map(|(at, mode)| Step::Flush(at, mode)),
        5 => (lane(), lane(), prop_oneof![Just(60usize), Just(100_000)])
            .prop_map(|(thief, victim, most)| Step::Steal(thief, victim, most)),
        5 => (0usize..8).prop_map(Step::Complete),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let failure = (0usize..80, prop::option::weighted(0.3, 0usize..8));
    (prop::collection::vec(step(), 1..120), failure).prop_map(|(mut steps, (at, failure))| {
        if let Some(which) = failure {
            steps.insert(at.min(steps.len()), Step::Fail(which));
        }
        steps
    })
}

/// An entry: its lane, and its number there.
type Id = (usize, usize);

struct Block {
    entries: Vec<Id>,
    written: bool,
}

#[derive(Default)]
struct LaneModel {
    /// CSN of every entry pushed here, in order.
    csns: Vec<u64>,
    building: Vec<Id>,
    /// All blocks ever sealed.
    blocks: Vec<Block>,
    flush_asked: bool,
    failed: bool,
    /// Frozen when it fails.
    durable: usize,
}

impl LaneModel {
    fn blocks_hardened(&self) -> usize {
        self.blocks.iter().take_while(|block| block.written).count()
    }
}

struct Model {
    lanes: Vec<LaneModel>,
    in_flight_max: usize,
    /// What waits at the home: lane and block.
    waiting: VecDeque<(usize, usize)>,
}

impl Model {
    fn payload(&self, lane: usize) -> usize {
        self.lanes[lane].building.len() * ENTRY_LEN as usize
    }

    /// Seals what is buffered, if another block may be in flight.
    fn seal(&mut self, at: usize) -> Option<usize> {
        let max = self.in_flight_max;
        let lane = &mut self.lanes[at];
        if lane.building.is_empty() || lane.blocks.len() - lane.blocks_hardened() >= max {
            return None;
        }
        lane.flush_asked = false;
        let entries = std::mem::take(&mut lane.building);
        lane.blocks.push(Block {
            entries,
            written: false,
        });
        Some(lane.blocks.len() - 1)
    }

    fn flush(&mut self, at: usize, mode: FlushMode) -> FlushOutcome {
        if self.lanes[at].failed {
            return FlushOutcome::Failed;
        }
        if self.lanes[at].building.is_empty() {
            let lane = &self.lanes[at];
            let clean =
                lane.durable == lane.csns.len() && lane.blocks_hardened() == lane.blocks.len();
            return if clean {
                FlushOutcome::Clean
            } else {
                FlushOutcome::Queued
            };
        }
        let Some(block) = self.seal(at) else {
            self.lanes[at].flush_asked = true;
            return FlushOutcome::Queued;
        };
        if mode == FlushMode::Handoff {
            self.waiting.push_back((at, block));
            return FlushOutcome::Started;
        }
        // All of its own that is not stolen lies in this block or before it.
        let pushed = self.lanes[at].csns.len();
        self.written(at, block);
        if self.lanes[at].durable == pushed {
            FlushOutcome::Durable
        } else {
            FlushOutcome::Started
        }
    }

    fn written(&mut self, at: usize, block: usize) {
        if self.lanes[at].failed {
            return;
        }
        self.lanes[at].blocks[block].written = true;
        self.settle();
        if self.lanes[at].flush_asked
            && let Some(block) = self.seal(at)
        {
            self.waiting.push_back((at, block));
        }
    }

    /// Durable is what the words at the top say.
    fn settle(&mut self) {
        let mut hardened: Vec<Vec<bool>> = self
            .lanes
            .iter()
            .map(|lane| vec![false; lane.csns.len()])
            .collect();
        for lane in &self.lanes {
            for block in lane.blocks.iter().take_while(|block| block.written) {
                for &(owner, number) in &block.entries {
                    assert!(!hardened[owner][number], "an entry in two blocks");
                    hardened[owner][number] = true;
                }
            }
        }
        for (lane, hardened) in self.lanes.iter_mut().zip(hardened) {
            if !lane.failed {
                lane.durable = hardened.iter().take_while(|hardened| **hardened).count();
            }
        }
    }

    fn fail(&mut self, at: usize) {
        if std::mem::replace(&mut self.lanes[at].failed, true) {
            return;
        }
        let hardened = self.lanes[at].blocks_hardened();
        let lane = &self.lanes[at];
        let held: Vec<Id> = lane.blocks[hardened..]
            .iter()
            .flat_map(|block| &block.entries)
            .chain(&lane.building)
            .copied()
            .collect();
        for (owner, _) in held {
            self.fail(owner);
        }
    }

    fn steal(&mut self, thief: usize, victim: usize, most: usize) -> usize {
        let bytes = self.payload(victim);
        let free = BUFFER - HEADER_LEN - self.payload(thief);
        if thief == victim
            || bytes == 0
            || bytes > most.min(free)
            || self.lanes[thief].failed
            || self.lanes[thief].blocks_hardened() < self.lanes[thief].blocks.len()
            || self.lanes[victim].failed
        {
            return 0;
        }
        let mut moved = std::mem::take(&mut self.lanes[victim].building);
        self.lanes[victim].flush_asked = false;
        self.lanes[thief].building.append(&mut moved);
        bytes
    }
}

struct Run {
    bench: Bench,
    model: Model,
    csn: u64,
}

impl Run {
    fn push(&mut self, at: usize) {
        let lane = &self.bench.lanes[at];
        match lane.room(10) {
            Ok(room) => {
                // Neighbours swap: a shared lane is not in CSN order. One byte as a varint.
                self.csn = self.csn % 126 + 1;
                let csn = self.csn ^ 1;
                let csn = csn.max(1);
                let deps = logstead_wal::EntryDependencies::floor(Csn(csn - 1));
                let pushed = lane.push(room, Csn(csn), 0, &deps, &[0; 10]);
                let model = &mut self.model.lanes[at];
                assert_eq!(pushed.was_clean, model.building.is_empty());
                model.building.push((at, model.csns.len()));
                model.csns.push(csn);
                assert_eq!(pushed.end, Cursor(model.csns.len() as u64 * ENTRY_LEN));
                assert_eq!(pushed.gsn, model.csns.len() as u64);
            }
            Err(NoRoom::Full) => {
                // As if it had been flushed.
                assert!(self.model.payload(at) > BUFFER / 2, "full without cause");
                let _outcome = self.model.flush(at, FlushMode::Handoff);
            }
            Err(NoRoom::Failed(_)) => assert!(self.model.lanes[at].failed),
            Err(other) => panic!("{other}"),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Push(at, count) => (0..count).for_each(|_| self.push(at)),
            Step::Flush(at, mode) => {
                let outcome = self.bench.lanes[at].flush(mode);
                assert_eq!(outcome, self.model.flush(at, mode));
            }
            Step::Steal(thief, victim, most) => {
                let lanes = &self.bench.lanes;
                let moved = lanes[thief].steal(&lanes[victim], most);
                assert_eq!(moved, self.model.steal(thief, victim, most));
            }
            Step::Complete(index) => {
                if let Some((at, block)) = self.model.waiting.remove(index) {
                    self.model.written(at, block);
                    assert!(self.bench.home.complete_at(index));
                }
            }
            Step::Fail(index) => {
                if let Some((at, _)) = self.model.waiting.remove(index) {
                    self.model.fail(at);
                    self.bench.home.set_failing(true);
                    assert!(self.bench.home.complete_at(index));
                    self.bench.home.set_failing(false);
                }
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.bench.home.waiting(), self.model.waiting.len());
        for (lane, model) in self.bench.lanes.iter().zip(&self.model.lanes) {
            assert_eq!(lane.failure().is_some(), model.failed);
            assert_eq!(lane.pushed(), Cursor(model.csns.len() as u64 * ENTRY_LEN));
            assert_eq!(lane.hardened(), Cursor(model.durable as u64 * ENTRY_LEN));
            assert_eq!(lane.hardened_gsn(), model.durable as u64);
            let lowest = model.csns[model.durable..].iter().min();
            let first = lane.first_not_durable();
            if model.failed {
                // What is pushed with a room taken before can only lower it.
                assert!(lowest.is_none_or(|&lowest| first <= Csn(lowest)));
            } else {
                assert_eq!(first, lowest.map_or(Csn(u64::MAX), |&csn| Csn(csn)));
            }
            assert_eq!(
                lane.dirty_bytes(),
                model.building.len() * ENTRY_LEN as usize
            );
            if !model.failed {
                let in_flight = model.blocks.len() - model.blocks_hardened();
                assert_eq!(lane.blocks_in_flight(), in_flight);
                assert!(in_flight <= self.model.in_flight_max);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn t14_random_orders_agree_with_the_model(steps in steps(), in_flight_max in 1usize..5) {
        let bench = bench_with(LANES as u16, in_flight_max, None);
        bench.home.set_paused(true);
        let model = Model {
            lanes: (0..LANES).map(|_| LaneModel::default()).collect(),
            in_flight_max,
            waiting: VecDeque::new(),
        };
        let mut run = Run { bench, model, csn: 0 };
        for &step in &steps {
            run.step(step);
            run.check();
        }
        // In the end everything of a log that has not failed hardens.
        for _ in 0..2 {
            for at in 0..LANES {
                run.step(Step::Flush(at, FlushMode::Handoff));
            }
            while !run.model.waiting.is_empty() {
                run.step(Step::Complete(0));
                run.check();
            }
        }
        for (lane, model) in run.bench.lanes.iter().zip(&run.model.lanes) {
            prop_assert!(model.failed || lane.hardened() == lane.pushed());
        }
    }
}
