//! The disk fills at any write: a server with its log on a local disk, and one session, in one thread and on simulated
//! files; others fill the disk from some operation on.
//!
//! What was acknowledged is there, what was refused is not, and nothing is wrong but for want of room; who removes
//! something finds room, as far as others leave the reserve; and when others have gone the server goes on. Behind each
//! checkpoint no more is on the disk than is live and twice what was written between two of them.

use logstead_home::LogHome;
use std::path::Path;
use std::sync::Arc;

use logstead_engine::{CheckpointReport, LeaseOptions, LocalHome, LocalOptions};
use logstead_env::{CrashLoss, Env, SimFiles};

use crate::from_environment;
use crate::life::{Dice, Life, Rows, SEGMENT_BYTES_MAX};

const DISK_BYTES: u64 = 16 << 20;
const RESERVE_BYTES: u64 = 1 << 20;
const STEPS: u64 = 60;
/// One step in so many is a checkpoint.
const CHECKPOINT_ONE_IN: u64 = 6;

/// An error says why there is none.
fn open(env: &Env) -> Result<Life, String> {
    let local = LocalOptions {
        segment_size_bytes: SEGMENT_BYTES_MAX,
        first_segment_size_bytes: 64 << 10,
        segment_size_bytes_min: 32 << 10,
        reserve_bytes_max: RESERVE_BYTES,
        threads: false,
        ..LocalOptions::default()
    };
    let home = LocalHome::open("/data", env, local).map_err(|error| error.to_string())?;
    Life::open(LogHome::from(home), env, LeaseOptions::default())
}

#[derive(Debug, Default)]
struct Outcomes {
    runs: u64,
    refused: u64,
    checkpoints: u64,
    checkpoints_refused: u64,
    starts_refused: u64,
    /// The most that was on the disk beside what is live, and what was allowed then.
    surplus: (u64, u64),
}

struct Machine {
    env: Env,
    files: Arc<SimFiles>,
    dice: Dice,
    rows: Rows,
    /// Since the checkpoint before the last one, and since the last one.
    written: (u64, u64),
    outcomes: Outcomes,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let (env, files) = Env::simulated(seed);
        files.set_capacity(Some(DISK_BYTES));
        Machine {
            env,
            files,
            dice: Dice(seed << 8 | 1),
            rows: Rows::new(),
            written: (0, 0),
            outcomes: Outcomes::default(),
        }
    }

    /// Starts; if there is no room to, others make some.
    fn start(&mut self) -> Life {
        for _ in 0..2 {
            match open(&self.env) {
                Ok(life) => {
                    assert_eq!(
                        life.rows(),
                        self.rows,
                        "what was acknowledged, and nothing else"
                    );
                    return life;
                }
                Err(error) => {
                    let free = self.env.files.free_space(Path::new("/data"));
                    assert!(free.expect("known") < RESERVE_BYTES, "{error}");
                    self.outcomes.starts_refused += 1;
                    self.files.freed_by_others();
                }
            }
        }
        panic!("a server that does not start though there is room");
    }

    fn checkpoint(&mut self, life: &Life) -> bool {
        match life.checkpoint() {
            Some(report) if report.written => {
                self.outcomes.checkpoints += 1;
                self.space_is_bounded(&report);
                self.written = (self.written.1, 0);
            }
            // Nothing had changed.
            Some(_) => {}
            None => {
                self.outcomes.checkpoints_refused += 1;
                return false;
            }
        }
        true
    }

    /// Live bytes, and twice the distance of checkpoints: what was written since the one before the last, with segments
    /// that are made before they are written.
    fn space_is_bounded(&mut self, report: &CheckpointReport) {
        let distance = self.written.0.max(self.written.1) + 2 * SEGMENT_BYTES_MAX;
        let surplus = self.files.used().saturating_sub(report.bytes_live);
        assert!(
            surplus <= 2 * distance,
            "{surplus} bytes beside what is live, {distance} between two checkpoints: {report:?}"
        );
        if surplus > self.outcomes.surplus.0 {
            self.outcomes.surplus = (surplus, 2 * distance);
        }
    }

    fn step(&mut self, life: &Life) -> bool {
        if self.dice.roll(CHECKPOINT_ONE_IN) == 0 {
            return self.checkpoint(life);
        }
        let (rows, dice) = (&mut self.rows, &mut self.dice);
        let done = life.transact(rows, dice, &mut self.written.1);
        self.outcomes.refused += u64::from(!done);
        done
    }

    /// A life in which others fill the disk, but for `left` bytes, from the operation on that has this number; how many
    /// operations there were.
    fn run(mut self, at: u64, left: u64) -> (u64, Outcomes) {
        self.files.filled_by_others_at(at, left);
        let life = self.start();
        for _ in 0..STEPS {
            self.step(&life);
        }
        let operations = self.files.operations();
        assert_eq!(life.rows(), self.rows, "reading goes on");
        if left >= RESERVE_BYTES {
            // Writers fill what is left, but for the reserve. There is a way out from within.
            let mut steps = 0;
            while life.insert(&mut self.rows, &mut self.dice, &mut self.written.1) {
                steps += 1;
                assert!(steps < 1_000, "the disk never became full");
            }
            self.outcomes.refused += 1;
            assert!(!life.assign_xid(), "an id is a write like others");
            for rid in self.rows.keys().copied().collect::<Vec<_>>() {
                life.delete(&mut self.rows, rid);
            }
            assert!(
                self.checkpoint(&life),
                "room is kept for the checkpoint that frees room"
            );
        }
        // Others have gone: the same server goes on.
        self.files.freed_by_others();
        let went_on =
            (0..5).filter(|_| life.transact(&mut self.rows, &mut self.dice, &mut self.written.1));
        assert!(went_on.count() >= 4, "there is room");
        assert!(self.checkpoint(&life), "there is room");
        assert!(life.assign_xid(), "there is room");
        for _ in 0..10 {
            self.step(&life);
        }
        drop(life);
        self.files.reboot();
        let life = self.start();
        assert!(life.transact(&mut self.rows, &mut self.dice, &mut self.written.1));
        self.outcomes.runs += 1;
        (operations, self.outcomes)
    }
}

impl Machine {
    /// The disk is full from the operation on that has this number, for a few steps; false if there is none of that
    /// number.
    fn refused_for_a_moment(&mut self, at: u64, steps: u64) -> bool {
        self.files
            .set_loss([CrashLoss::All, CrashLoss::Random][at as usize % 2]);
        self.files.filled_by_others_at(at, 0);
        let mut life = self.start();
        let mut left = 1 + self.dice.roll(4);
        for _ in 0..steps {
            self.step(&life);
            if self.files.operations() > at {
                left = left.saturating_sub(1);
            }
            if left == 0 {
                self.files.freed_by_others();
            }
        }
        let reached = self.files.operations() > at;
        // Stopped while it is full, or later.
        drop(life);
        self.files.reboot();
        life = self.start();
        self.files.freed_by_others();
        for _ in 0..5 {
            assert!(life.transact(&mut self.rows, &mut self.dice, &mut self.written.1));
        }
        assert!(self.checkpoint(&life), "there is room");
        drop(life);
        self.files.reboot();
        drop(self.start());
        reached
    }
}

fn runs(left: u64) -> Outcomes {
    let mut all = Outcomes::default();
    let first = from_environment("LOGSTEAD_SEED", 1);
    for seed in first..first + from_environment("LOGSTEAD_SEEDS", 96).div_ceil(48) {
        let (operations, _) = Machine::new(seed).run(u64::MAX, left);
        let mut at = seed % 3;
        while at < operations {
            println!("seed {seed}, filled at {at} of {operations}, {left} left");
            let (_, one) = Machine::new(seed).run(at, left);
            all.runs += one.runs;
            all.refused += one.refused;
            all.checkpoints += one.checkpoints;
            all.checkpoints_refused += one.checkpoints_refused;
            all.starts_refused += one.starts_refused;
            all.surplus = all.surplus.max(one.surplus);
            at += 7;
        }
    }
    println!("{all:?}");
    all
}

#[test]
fn others_take_all_of_the_disk() {
    let all = runs(0);
    assert!(all.runs > 20 && all.refused > 100, "{all:?}");
    assert!(
        all.checkpoints_refused > 20 && all.starts_refused > 0,
        "{all:?}"
    );
}

#[test]
fn others_leave_the_reserve_and_a_little() {
    let all = runs(RESERVE_BYTES + (RESERVE_BYTES >> 2));
    assert!(
        all.runs > 20 && all.refused > 100 && all.checkpoints > 100,
        "{all:?}"
    );
}

/// A checkpoint that would put small objects together, and has no room for both, is taken without that; where there is
/// room it is made up for.
#[test]
fn a_checkpoint_without_room_to_compact_is_taken_all_the_same() {
    let mut machine = Machine::new(1);
    let life = machine.start();
    let Machine {
        files, dice, rows, ..
    } = &mut machine;
    let disk_bytes = 4 * DISK_BYTES;
    files.set_capacity(Some(disk_bytes));
    let mut written = 0;
    let mut small = 0;
    // Small ones, each of one whole chunk, until the next checkpoint has enough of them to put together.
    for _ in 0..8 {
        for _ in 0..64 {
            assert!(life.insert(rows, dice, &mut written), "there is room");
        }
        let report = life.checkpoint().expect("there is room");
        assert_eq!(report.bytes_moved, 0, "{report:?}");
        small = report.objects_in_use;
    }
    let delete_one = |rows: &mut Rows| {
        let rid = *rows.keys().next().expect("a row");
        life.delete(rows, rid);
    };
    files.set_capacity(Some(files.used() + RESERVE_BYTES));
    let mut operations = Vec::new();
    for _ in 0..3 {
        delete_one(rows);
        let before = files.operations();
        let report = life.checkpoint().expect("what has changed has room");
        assert!(report.written && report.bytes_moved == 0, "{report:?}");
        operations.push(files.operations() - before);
    }
    // It was tried; the next one does not try where it is known that there is no room, and the one behind it does.
    assert!(
        operations[1] < operations[0] && operations[1] < operations[2],
        "{operations:?}"
    );
    files.set_capacity(Some(disk_bytes));
    delete_one(rows);
    let report = life.checkpoint().expect("there is room");
    assert!(
        report.bytes_moved > 0 && report.objects_in_use < small,
        "{report:?}"
    );
    assert_eq!(life.rows(), *rows);
}

/// Every write in turn is refused for want of room, and what is written in the next moments; then there is room
/// again, then the machine stops. Nothing that was
/// acknowledged is lost, nothing that was refused is there, and the server starts.
#[test]
fn whichever_write_is_refused_nothing_acknowledged_is_lost() {
    let mut all = Outcomes::default();
    let first = from_environment("LOGSTEAD_SEED", 1);
    for seed in first..first + from_environment("LOGSTEAD_SEEDS", 96).div_ceil(96) {
        let mut at = 0;
        loop {
            let mut machine = Machine::new(seed);
            let steps = [STEPS / 2, STEPS / 3, STEPS][at as usize % 3];
            if !machine.refused_for_a_moment(at, steps) {
                break;
            }
            all.runs += 1;
            all.refused += machine.outcomes.refused;
            all.checkpoints_refused += machine.outcomes.checkpoints_refused;
            all.starts_refused += machine.outcomes.starts_refused;
            at += 1;
        }
        assert!(at > 100, "{at} writes");
    }
    println!("{all:?}");
    assert!(
        all.refused > 20 && all.checkpoints_refused > 5 && all.starts_refused > 0,
        "{all:?}"
    );
}
