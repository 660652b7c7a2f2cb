//! Random histories, cut at a random moment: what was acknowledged survives, nothing that survives misses what it read,
//! and what was dropped stays away, through any number of crashes.
//!
//! The model knows what each transaction really depends on; the log only holds what its tracking mode writes.
//! `LOGSTEAD_SEEDS` says how many histories; a failure names its seed.

use crate::rig;

use logstead_env::{Env, Fault};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::Csn;
use logstead_wal::recovery::{self, RecoveryError, RecoveryOptions, RedoHandler};
use logstead_wal::{EntryDependencies, inspect};
use rig::forge::{Arrives, Forge, Tx};
use rig::{Machine, options, row_of};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of a lane in flight together, at most.
const IN_FLIGHT_MAX: usize = 4;
/// Long enough that lanes are read by threads.
const SEGMENT_BYTES: u64 = 5 << 19;
/// As in entries: more predecessors than this fall back to a floor.
const LIST_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Horizon,
    Gsn,
    Dsn,
    Exact,
}

const MODES: [Mode; 4] = [Mode::Horizon, Mode::Gsn, Mode::Dsn, Mode::Exact];

/// A transaction as the model knows it.
#[derive(Clone, Debug)]
struct Known {
    tx: Tx,
    /// What it read or overwrote, Committed or not.
    reads: Vec<u64>,
    gsn: u64,
    hardened: bool,
    acknowledged: bool,
}

struct Block {
    txs: Vec<u64>,
    durable_through: usize,
    done: bool,
}

#[derive(Default)]
struct Lane {
    buffer: Vec<u64>,
    blocks: Vec<Block>,
    gsn: u64,
}

impl Lane {
    /// Leading blocks that are durable.
    fn hardened(&self) -> usize {
        self.blocks.iter().take_while(|block| block.done).count()
    }
}

/// One life of a server.
struct Life {
    env: Env,
    mode: Mode,
    base: u64,
    counter: u64,
    /// Survivors of earlier lives: anybody may read them.
    settled: Vec<u64>,
    txs: BTreeMap<u64, Known>,
    lanes: Vec<Lane>,
}

impl Life {
    fn below(&self, limit: usize) -> usize {
        (self.env.random.u64() % limit.max(1) as u64) as usize
    }

    /// Lowest CSN that is drawn and not hardened.
    fn horizon(&self) -> u64 {
        let pending = self.txs.values().find(|known| !known.hardened);
        pending.map_or(self.counter, |known| known.tx.csn)
    }

    fn is_committed(&self, csn: u64) -> bool {
        csn < self.base || self.txs[&csn].acknowledged
    }

    /// A transaction reads some of what is there, the newest most often, and pre-commits.
    fn precommit(&mut self) {
        let csn = self.counter;
        self.counter += 1;
        let many = self.below(60) == 0;
        let count = if many { 45 } else { self.below(5) };
        let mut reads = BTreeSet::new();
        for _ in 0..count {
            let back = 1 + self.below(if many { 60 } else { 12 }) as u64;
            match csn.checked_sub(back).filter(|csn| *csn >= self.base) {
                Some(recent) => reads.insert(recent),
                None if self.settled.is_empty() => false,
                None => reads.insert(self.settled[self.below(self.settled.len())]),
            };
        }
        let open: Vec<u64> = reads
            .iter()
            .copied()
            .filter(|csn| !self.is_committed(*csn))
            .collect();
        let newest = reads.last().copied().unwrap_or(0);
        let floor = |floor| EntryDependencies::floor(Csn(floor));
        let deps = match self.mode {
            Mode::Horizon => floor(csn - 1),
            Mode::Dsn => floor(newest),
            Mode::Gsn | Mode::Exact if open.len() > LIST_MAX => floor(newest),
            Mode::Gsn | Mode::Exact => EntryDependencies {
                floor: Csn(0),
                list: open.iter().copied().map(Csn).collect(),
            },
        };
        let index = self.below(self.lanes.len());
        let seen = reads
            .iter()
            .filter_map(|csn| self.txs.get(csn))
            .map(|known| known.gsn)
            .max();
        let lane = &mut self.lanes[index];
        lane.gsn = lane.gsn.max(seen.unwrap_or(0)) + 1;
        lane.buffer.push(csn);
        let known = Known {
            gsn: lane.gsn,
            tx: Tx {
                csn,
                deps,
                side: self.env.random.u64().is_multiple_of(16),
            },
            reads: reads.into_iter().collect(),
            hardened: false,
            acknowledged: false,
        };
        self.txs.insert(csn, known);
    }

    /// Seals what a lane holds, with part of what another one holds (log stealing).
    fn seal(&mut self, index: usize) {
        let victim = self.below(self.lanes.len() * 3);
        let flying = self.lanes[index]
            .blocks
            .iter()
            .filter(|block| !block.done)
            .count();
        if flying >= IN_FLIGHT_MAX {
            return;
        }
        let mut txs = std::mem::take(&mut self.lanes[index].buffer);
        if victim < self.lanes.len() && victim != index {
            let count = self.below(self.lanes[victim].buffer.len() + 1);
            txs.extend(self.lanes[victim].buffer.drain(..count));
        }
        if !txs.is_empty() {
            let lane = &mut self.lanes[index];
            let durable_through = lane.hardened();
            let done = false;
            lane.blocks.push(Block {
                txs,
                durable_through,
                done,
            });
        }
    }

    /// The home says that some block is durable: any of those in flight.
    fn complete(&mut self, index: usize) {
        let flying = self.lanes[index].blocks.iter().enumerate();
        let flying: Vec<usize> = flying.filter(|(_, b)| !b.done).map(|(n, _)| n).collect();
        if flying.is_empty() {
            return;
        }
        let block = flying[self.below(flying.len())];
        self.lanes[index].blocks[block].done = true;
    }

    /// Moves on what is hardened and acknowledged.
    fn acknowledge(&mut self) {
        for lane in &self.lanes {
            for block in &lane.blocks[..lane.hardened()] {
                for csn in &block.txs {
                    self.txs.get_mut(csn).unwrap().hardened = true;
                }
            }
        }
        let horizon = self.horizon();
        let pending = self.txs.values().filter(|known| !known.hardened);
        let gsn_durable = pending.map(|known| known.gsn - 1).min().unwrap_or(u64::MAX);
        let csns: Vec<u64> = self.txs.keys().copied().collect();
        // Lists name smaller CSNs only, so one pass is enough.
        for csn in csns {
            let known = &self.txs[&csn];
            let EntryDependencies { floor, list } = &known.tx.deps;
            let covered = floor.0 < horizon && known.hardened;
            let yes = match self.mode {
                Mode::Horizon => csn < horizon,
                Mode::Dsn => covered,
                Mode::Gsn => covered && known.gsn <= gsn_durable,
                Mode::Exact => covered && list.iter().all(|csn| self.is_committed(csn.0)),
            };
            self.txs.get_mut(&csn).unwrap().acknowledged |= yes;
        }
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let lane = self.below(self.lanes.len());
            match self.below(10) {
                0..5 => self.precommit(),
                5..7 => self.seal(lane),
                _ => self.complete(lane),
            }
            self.acknowledge();
        }
    }

    /// The crash: what of each lane reaches the disk. Gives what a reader finds before each lane's end.
    fn write(&self, forge: &mut Forge) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for (index, lane) in self.lanes.iter().enumerate() {
            let mut whole = true;
            for block in &lane.blocks {
                let arrives = match self.below(4) {
                    _ if block.done => Arrives::Whole,
                    0 => Arrives::Whole,
                    1 => Arrives::Torn(1 + self.below(400)),
                    _ => Arrives::Absent,
                };
                whole &= arrives == Arrives::Whole;
                if whole {
                    found.extend(&block.txs);
                }
                let txs: Vec<Tx> = block
                    .txs
                    .iter()
                    .map(|csn| self.txs[csn].tx.clone())
                    .collect();
                forge.block(index as u16, block.durable_through as u64, &txs, arrives);
            }
        }
        found
    }

    /// The rule, applied to everything that was found.
    fn survivors(&self, found: &BTreeSet<u64>) -> Vec<u64> {
        let gap = (self.base..).find(|csn| !found.contains(csn)).unwrap();
        let mut survivors = BTreeSet::new();
        for csn in found {
            let EntryDependencies { floor, list } = &self.txs[csn].tx.deps;
            let lives = |dep: &Csn| dep.0 < self.base || survivors.contains(&dep.0);
            if floor.0 < gap && list.iter().all(lives) {
                survivors.insert(*csn);
            }
        }
        survivors.into_iter().collect()
    }

    fn check(&self, survivors: &[u64], what: &str) {
        let there: BTreeSet<u64> = survivors.iter().copied().collect();
        for known in self.txs.values() {
            let csn = known.tx.csn;
            if known.acknowledged {
                assert!(
                    there.contains(&csn),
                    "{what}: {csn} was acknowledged and is gone"
                );
            }
            if there.contains(&csn) {
                for read in &known.reads {
                    assert!(
                        there.contains(read),
                        "{what}: {csn} survives without {read}, which it read"
                    );
                }
            }
        }
    }
}

/// Collects survivors, checking their bytes and their order.
#[derive(Default)]
struct Collected(Vec<u64>);

impl RedoHandler for Collected {
    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        assert_eq!(records, row_of(csn), "the bytes of {csn:?}");
        assert!(
            self.0.last().is_none_or(|last| *last < csn.0),
            "out of order"
        );
        self.0.push(csn.0);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        Ok(())
    }
}

fn open(
    home: &LogHome,
    env: &Env,
    lanes: u16,
    ahead: bool,
) -> Result<(recovery::RecoveredLog, Vec<u64>), RecoveryError> {
    let mut collected = Collected::default();
    let options = RecoveryOptions { lanes, ..options() };
    let log = recovery::open_with(home, env, &options, ahead, &mut collected)?;
    Ok((log, collected.0))
}

/// A life on `home`, up to its crash. Gives the survivors that must come of it, those of earlier lives included.
fn live(
    home: &LogHome,
    env: &Env,
    log: &recovery::RecoveredLog,
    settled: &[u64],
    mode: Mode,
    steps: usize,
    what: &str,
) -> Vec<u64> {
    let mut life = Life {
        env: env.clone(),
        mode,
        base: log.next_csn.0,
        counter: log.next_csn.0,
        settled: settled.to_vec(),
        txs: BTreeMap::new(),
        lanes: log.lanes.iter().map(|_| Lane::default()).collect(),
    };
    life.run(steps);
    let found = life.write(&mut Forge::new(home.clone(), log));
    let mut survivors = settled.to_vec();
    survivors.extend(life.survivors(&found));
    // The rule itself is right, whatever recovery makes of it.
    life.check(&survivors, what);
    survivors
}

fn seeds(by_default: u64) -> u64 {
    let asked = std::env::var("LOGSTEAD_SEEDS").ok();
    asked
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(by_default)
}

#[test]
fn acknowledged_survives_survivors_are_closed_and_annulled_stays_annulled() {
    let (mut dropped, mut holes) = (0, 0);
    let seeds = seeds(40);
    for seed in 0..seeds {
        for mode in MODES {
            let (env, _) = Env::simulated(seed * 4 + mode as u64);
            let memory = MemoryHome::new(SEGMENT_BYTES);
            let home = LogHome::from(memory.clone());
            let mut expected = Vec::new();
            for life in 0..4 {
                let what = format!("seed {seed}, {mode:?}, life {life}");
                let lanes = 1 + (env.random.u64() % 4) as u16;
                let ahead = env.random.u64().is_multiple_of(2);
                let (log, survivors) = open(&home, &env, lanes, ahead).expect(&what);
                assert_eq!(survivors, expected, "{what}");
                dropped += log.report.entries_dropped;
                let steps = (env.random.u64() % 150) as usize;
                expected = live(&home, &env, &log, &survivors, mode, steps, &what);
                let high = *expected.last().unwrap_or(&0);
                holes += u64::from(high > expected.len() as u64);
                drop(log);
                memory.crash();
            }
        }
    }
    let tame = dropped < seeds * 20 || holes < seeds * 4;
    assert!(!tame, "{dropped} dropped, {holes} with holes: too tame");
}

/// Crashes at every I/O of recovery, of the recovery after that, and so on: the database is the same, and so it is
/// after more work and more crashes.
#[test]
fn nested_crashes_of_recovery_give_the_same_database() {
    let mut crashes = 0;
    for seed in 0..seeds(2) {
        let mode = MODES[3 - seed as usize % 4];
        let machine = Machine::new(seed);
        let mut expected = Vec::new();
        // Two lives, so that a mark with gaps, dropped entries and side segments is there already.
        for life in 0..2 {
            let home = machine.home().unwrap();
            let (log, survivors) = open(&home, &machine.env, 3, false).unwrap();
            assert_eq!(survivors, expected);
            let what = format!("seed {seed}, {mode:?}, life {life}");
            expected = live(&home, &machine.env, &log, &survivors, mode, 110, &what);
            drop((log, home));
            machine.files.reboot();
        }
        let recover = |machine: &Machine, ahead| {
            let home = machine.home()?;
            open(&home, &machine.env, 2, ahead)
        };
        let ios = {
            let whole = machine.fork(seed);
            let (_log, survivors) = recover(&whole, true).unwrap();
            assert_eq!(survivors, expected, "seed {seed}");
            whole.files.operations()
        };
        assert!(ios > 10, "{ios}");
        for first in 0..ios {
            let machine = machine.fork(first);
            machine.files.fail_at(first, Fault::Crash);
            assert!(recover(&machine, false).is_err());
            machine.files.reboot();
            for second in (first % 7..ios).step_by(7) {
                let machine = machine.fork(second);
                machine.files.fail_at(second, Fault::Crash);
                // The second recovery may have less to do.
                let through = recover(&machine, false).is_ok();
                machine.files.reboot();
                let what = format!("seed {seed}, crash at {first}, then at {second}");
                for _ in 0..2 {
                    let (_log, survivors) = recover(&machine, false).expect(&what);
                    assert_eq!(survivors, expected, "{what}");
                }
                crashes += u64::from(!through);
            }
            // Work, a crash, and again.
            let mut expected = expected.clone();
            for _ in 0..2 {
                let home = machine.home().unwrap();
                let (log, survivors) = open(&home, &machine.env, 2, false).unwrap();
                let what = format!("seed {seed}, crash at {first}, then work");
                assert_eq!(survivors, expected, "{what}");
                expected = live(&home, &machine.env, &log, &survivors, mode, 30, &what);
                drop((log, home));
                machine.files.reboot();
            }
            let verified = inspect::verify("/db", &machine.env).unwrap();
            assert_eq!(verified.records, expected.len() as u64);
        }
    }
    assert!(crashes > 100, "{crashes}");
}
