//! Readers beside the machine: backups, branches, going back to restore points, `log verify`, `log dump`, fsck.
//!
//! Each is on a thread of its own and goes on only when the machine lets it ([`Baton`]): between any two of its
//! requests transactions run, blocks are flushed, checkpoints are taken, the log is truncated, the machine stops and
//! comes back. When it has ended, what it made is opened as a server would, and the oracle says whether it is one
//! moment.
//!
//! What a checkpoint holds is known from below: what anybody had been told of when it was begun. That is what a branch
//! at it must hold.
//!
//! Readers that a local home's lock keeps out (`log verify`, `log dump`, fsck) are there only where the home has a
//! lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use logstead_checkpoint::{
    BackupSession, BranchError, Pin, PinKind, RecoveryTarget, backup, create_branch, drop_branch,
    fsck, pin_point, restore_point,
};
use logstead_engine::{Engine, EngineOptions, Env};
use logstead_home::{LogHome, MemoryHome, branch_home};
use logstead_sim::crash::WriterId;
use logstead_types::Csn;
use logstead_wal::inspect::{LogReport, dump_home, manifest_of, verify_home};

use crate::baton::{Baton, Beside};
use crate::opened::{self, Contents};
use crate::script::{Log, Shared};
use crate::watched::Watched;
use logstead_sim::Dice;

const SEGMENT_BYTES: u64 = 256 << 10;
/// So often fsck begins anew because a checkpoint was published meanwhile, as the command does.
const FSCK_TRIES: u32 = 30;

/// Steps of the machine between two requests of a reader.
const GAP_STEPS_MAX: u64 = 200;

type Told = BTreeSet<WriterId>;

/// What became of readers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReaderCounts {
    pub(crate) backups: u64,
    pub(crate) incremental: u64,
    /// Rounds that backups began anew.
    pub(crate) rounds: u64,
    /// Parts of tails that were there from the round before, and stayed.
    pub(crate) parts_kept: u64,
    pub(crate) branches: u64,
    pub(crate) restored: u64,
    pub(crate) points: u64,
    pub(crate) dropped: u64,
    pub(crate) verified: u64,
    /// Those of them whose counts could be judged.
    pub(crate) counted: u64,
    pub(crate) dumped: u64,
    pub(crate) checked: u64,
    /// There was no such point, or it was removed meanwhile.
    pub(crate) nothing: u64,
    /// Copies with transactions that nobody had been told of when the reading began.
    pub(crate) with_later: u64,
    /// Copies without some of those that were visible when they were judged.
    pub(crate) left_out: u64,
    /// Readers that saw the machine stop and come back.
    pub(crate) over_crashes: u64,
    /// Requests of all readers.
    pub(crate) requests: u64,
}

impl ReaderCounts {
    pub(crate) fn add(&mut self, other: &ReaderCounts) {
        self.backups += other.backups;
        self.incremental += other.incremental;
        self.parts_kept += other.parts_kept;
        self.rounds += other.rounds;
        self.branches += other.branches;
        self.restored += other.restored;
        self.points += other.points;
        self.dropped += other.dropped;
        self.verified += other.verified;
        self.counted += other.counted;
        self.dumped += other.dumped;
        self.checked += other.checked;
        self.nothing += other.nothing;
        self.with_later += other.with_later;
        self.left_out += other.left_out;
        self.over_crashes += other.over_crashes;
        self.requests += other.requests;
    }
}

/// What comes of a reader.
enum Found {
    Copy {
        home: LogHome,
        target: BackupTarget,
        parts_kept: u64,
        incremental: bool,
        rounds: u32,
    },
    Branch(Pin, Arc<MemoryHome>),
    Restored(LogHome),
    Dropped,
    Point,
    Verified(Box<LogReport>),
    Dumped,
    Checked,
    /// There is no such point.
    Nothing(String),
}

/// A reader that has begun.
struct UnderWay {
    beside: Beside<Result<Found, String>>,
    what: String,
    told: Told,
    /// The restore point that it makes.
    point: Option<String>,
    /// It may find nothing.
    may_miss: bool,
    life: u64,
    /// One in so many requests comes after a long time.
    haste: u64,
    /// So many steps of the machine before its next request.
    gap: u64,
}

/// A branch, and what it must hold.
struct Branch {
    pin: Pin,
    own: Arc<MemoryHome>,
    told: Told,
}

/// See the module's documentation.
pub(crate) struct Readers {
    home: Arc<Watched>,
    env: Env,
    options: EngineOptions,
    leased: bool,
    /// The tables are divided.
    pub(crate) divided: bool,
    dice: Dice,
    under_way: Option<UnderWay>,
    number: u64,
    life: u64,
    /// What had been told when the checkpoint that is being taken was begun.
    begun: Option<Told>,
    /// The same of the newest one that is known to be published.
    newest: Option<Told>,
    /// Of restore points that were made by hand.
    points: Vec<(String, Told)>,
    branches: Vec<Branch>,
    /// The backup before, that nobody has used.
    target: Option<BackupTarget>,
    pub(crate) counts: ReaderCounts,
}

impl Readers {
    /// `env` has random numbers of its own.
    pub(crate) fn new(
        home: &Arc<Watched>,
        env: Env,
        options: EngineOptions,
        leased: bool,
        seed: u64,
    ) -> Readers {
        Readers {
            home: Arc::clone(home),
            env,
            options: EngineOptions {
                workers: 1,
                replay_threads: 1,
                ..options
            },
            leased,
            divided: false,
            dice: Dice::new(seed ^ 0x5eed_4ead),
            under_way: None,
            number: 0,
            life: 0,
            begun: None,
            newest: None,
            points: Vec::new(),
            branches: Vec::new(),
            target: None,
            counts: ReaderCounts::default(),
        }
    }

    pub(crate) fn checkpoint_begun(&mut self, told: Told) {
        self.begun = Some(told);
    }

    pub(crate) fn checkpoint_published(&mut self) {
        self.newest = self.begun.take().or(self.newest.take());
    }

    pub(crate) fn crashed(&mut self) {
        self.life += 1;
        self.begun = None;
    }

    /// The machine has taken a step: a reader begins, or goes on, or is judged.
    pub(crate) fn step(&mut self, log: &Log) -> Result<(), String> {
        let Some(reader) = &mut self.under_way else {
            if self.dice.one_in(4) {
                self.begin(&log.borrow());
            }
            return Ok(());
        };
        reader.gap = reader.gap.saturating_sub(1);
        while reader.gap == 0 && reader.beside.baton.step() {
            self.counts.requests += 1;
            // Usually it is quick. Sometimes whole transactions come and go between two of its requests.
            reader.gap = match self.dice.roll(reader.haste) {
                0 => self.dice.roll(GAP_STEPS_MAX),
                1 | 2 => 1 + self.dice.roll(4),
                _ => 0,
            };
        }
        match reader.beside.baton.has_ended() {
            true => self.end(&log.borrow()),
            false => Ok(()),
        }
    }

    /// The machine is through: readers go to their ends, and branches are looked at once more.
    pub(crate) fn finish(&mut self, log: &Log) -> Result<(), String> {
        if let Some(reader) = &self.under_way {
            while reader.beside.baton.step() {}
            self.end(&log.borrow())?;
        }
        for branch in std::mem::take(&mut self.branches) {
            let home = self.branch_home(&branch.pin, &branch.own);
            self.judge(&log.borrow(), &branch.told, &home, "a branch, later")?;
        }
        Ok(())
    }

    fn begin(&mut self, log: &Shared) {
        self.number += 1;
        let number = self.number;
        let baton = Baton::new();
        let pause = Arc::clone(&baton);
        let seed = self.dice.roll(u64::MAX);
        let reader_beside = self
            .home
            .home
            .reader_beside(Some(seed), self.leased, move || pause.pause());
        let source = LogHome::from(reader_beside);
        let env = self.env.clone();
        let mut told = log.oracle.told();
        let (mut point, mut may_miss) = (None, false);
        let choice = self.dice.roll(if self.leased { 16 } else { 10 });
        let (what, beside) = match choice {
            0..5 => {
                let target = match self.target.take().filter(|_| self.dice.one_in(2)) {
                    Some(before) => before,
                    None => (Arc::new(MemoryHome::new(SEGMENT_BYTES)), Arc::default()),
                };
                let rounds = 1 + self.dice.roll(4);
                let read = move || back_up(&source, &target, rounds, &env);
                ("a backup".to_owned(), Beside::begin(&self.env, baton, read))
            }
            5 => {
                let name = format!("point{number}");
                told = self.newest.clone().unwrap_or_default();
                may_miss = self.newest.is_none();
                point = Some(name.clone());
                let what = format!("restore point {name}");
                let read = move || make_point(&source, &name);
                (what, Beside::begin(&self.env, baton, read))
            }
            6 if !self.branches.is_empty() => {
                let at = self.dice.roll(self.branches.len() as u64) as usize;
                let Branch { pin, own, .. } = self.branches.swap_remove(at);
                let what = format!("dropping {}", pin.name);
                let read = move || {
                    let dropped = drop_branch(&source, &pin.name, &env, |_| {
                        Ok(LogHome::from(Arc::clone(&own)))
                    });
                    dropped.map_err(|error| error.to_string())?;
                    Ok(Found::Dropped)
                };
                (what, Beside::begin(&self.env, baton, read))
            }
            6..10 => {
                let which = match (self.dice.roll(3), self.points.is_empty()) {
                    (0, false) => {
                        let at = self.dice.roll(self.points.len() as u64) as usize;
                        told = self.points[at].1.clone();
                        RecoveryTarget::Named(self.points[at].0.clone())
                    }
                    (1, _) => {
                        // Which one it is, nobody knows.
                        (told, may_miss) = (Told::new(), true);
                        let now = self.env.clock.now_micros_since_2000();
                        RecoveryTarget::At(now - self.dice.roll(20_000) as i64)
                    }
                    _ => {
                        told = self.newest.clone().unwrap_or_default();
                        may_miss = self.newest.is_none();
                        RecoveryTarget::Newest
                    }
                };
                let own = Arc::new(MemoryHome::new(SEGMENT_BYTES));
                if self.dice.one_in(3) {
                    // What nobody pins may go while it is copied.
                    may_miss |= !matches!(which, RecoveryTarget::Named(_));
                    let what = format!("going back to {which:?}");
                    let read = move || go_back(&source, &which, own, &env);
                    (what, Beside::begin(&self.env, baton, read))
                } else {
                    let what = format!("a branch at {which:?}");
                    let name = format!("branch{number}");
                    let read = move || make_branch(&source, &name, &which, own, &env);
                    (what, Beside::begin(&self.env, baton, read))
                }
            }
            10..14 => {
                let read = move || {
                    let verified = verify_home(&source).map_err(|e| e.to_string())?;
                    Ok(Found::Verified(Box::new(verified)))
                };
                (
                    "log verify".to_owned(),
                    Beside::begin(&self.env, baton, read),
                )
            }
            14 => {
                let read = move || dump(&source);
                ("log dump".to_owned(), Beside::begin(&self.env, baton, read))
            }
            _ => {
                let read = move || check(&source);
                ("fsck".to_owned(), Beside::begin(&self.env, baton, read))
            }
        };
        let meanwhile = Arc::clone(&beside.baton);
        self.home.let_in(Some((meanwhile, self.dice.fork())));
        self.under_way = Some(UnderWay {
            beside,
            what,
            told,
            point,
            may_miss,
            life: self.life,
            haste: [3, 6, 12][self.dice.roll(3) as usize],
            gap: 0,
        });
    }

    /// A reader has ended: judges what came of it.
    fn end(&mut self, log: &Shared) -> Result<(), String> {
        let Some(reader) = self.under_way.take() else {
            return Ok(());
        };
        self.home.let_in(None);
        let UnderWay {
            beside,
            what,
            told,
            point,
            may_miss,
            life,
            ..
        } = reader;
        self.counts.over_crashes += u64::from(life != self.life);
        let found = beside
            .found()
            .unwrap_or_else(|| Err("it panicked".to_owned()));
        match found.map_err(|error| format!("{what}: {error}"))? {
            Found::Copy {
                home,
                target,
                parts_kept,
                incremental,
                rounds,
            } => {
                self.counts.backups += 1;
                self.counts.parts_kept += parts_kept;
                self.counts.incremental += u64::from(incremental);
                self.counts.rounds += u64::from(rounds);
                self.target = Some(target);
                self.judge(log, &told, &home, &what)
            }
            Found::Branch(pin, own) => {
                self.counts.branches += 1;
                let home = self.branch_home(&pin, &own);
                self.branches.push(Branch {
                    pin,
                    own,
                    told: told.clone(),
                });
                self.judge(log, &told, &home, &what)
            }
            Found::Restored(home) => {
                self.counts.restored += 1;
                self.judge(log, &told, &home, &what)
            }
            Found::Verified(verified) => {
                self.counts.verified += 1;
                if life == self.life && verified.manifest.marks.is_empty() {
                    self.counts.counted += 1;
                    let counted = self.judge_counts(log, &told, &verified);
                    counted.map_err(|error| format!("{what}: {error}"))?;
                }
                Ok(())
            }
            Found::Point => {
                self.counts.points += 1;
                self.points.extend(point.map(|name| (name, told)));
                Ok(())
            }
            Found::Dropped => {
                self.counts.dropped += 1;
                Ok(())
            }
            Found::Dumped => {
                self.counts.dumped += 1;
                Ok(())
            }
            Found::Checked => {
                self.counts.checked += 1;
                Ok(())
            }
            Found::Nothing(why) if may_miss => {
                self.counts.nothing += 1;
                drop(why);
                Ok(())
            }
            Found::Nothing(why) => Err(format!("{what}: {why}")),
        }
    }

    fn branch_home(&self, pin: &Pin, own: &Arc<MemoryHome>) -> LogHome {
        let parent = self.home.home.reader_beside(None, self.leased, || {});
        own.crash();
        branch_home(
            LogHome::from(Arc::clone(own)),
            Arc::new(parent),
            pin.record.object.epoch(),
        )
    }

    /// Opens a copy as a server does.
    fn judge(
        &mut self,
        log: &Shared,
        told: &Told,
        home: &LogHome,
        what: &str,
    ) -> Result<(), String> {
        let wrong = |error: String| format!("{what}, opened: {error}");
        let opened = Engine::open(self.options.clone(), home.clone(), self.env.clone());
        let (engine, _) = opened.map_err(|error| wrong(error.to_string()))?;
        let (tables, _) = opened::tables(engine, self.divided).map_err(wrong)?;
        let brought = tables.engine.bring_all(|| true);
        brought.map_err(|error| wrong(error.to_string()))?;
        let Contents { ledger, rows } = Contents::of(&tables).map_err(wrong)?;
        let copied = log.oracle.copied(told, &ledger, &rows).map_err(wrong)?;
        self.counts.with_later += u64::from(copied.later > 0);
        self.counts.left_out += u64::from(copied.left_out > 0);
        Ok(())
    }

    /// What `log verify` has counted in a log of one epoch: all entries of the lanes up to the ends that it tells, and
    /// survivors that can be those of one moment.
    fn judge_counts(&self, log: &Shared, told: &Told, verified: &LogReport) -> Result<(), String> {
        let report = &verified.report;
        let mut read: BTreeSet<Csn> = BTreeSet::new();
        for lane in &report.lanes {
            let blocks = lane.first_block..lane.blocks;
            read.extend(self.home.entries(lane.lane, blocks));
        }
        let counted = [
            report.entries,
            report.entries_dropped,
            report.entries_in_checkpoint,
            report.entries_later,
        ];
        if counted.iter().sum::<u64>() != read.len() as u64 {
            return Err(format!("{counted:?} entries, and {} are there", read.len()));
        }
        let held = |csn: &Csn| *csn < report.checkpoint;
        let is_in = |csn: &Csn| held(csn) || (read.contains(csn) && *csn <= verified.moment);
        let of = |wanted: &dyn Fn(&Csn) -> bool| -> Told {
            let wanted = log.writers.iter().filter(|(csn, _)| wanted(csn));
            wanted.map(|(_, writer)| *writer).collect()
        };
        let there = of(&is_in);
        let told: Told = told.intersection(&of(&|_| true)).copied().collect();
        if let Some(gone) = told.difference(&there).next() {
            return Err(format!("somebody was told of {gone}, and it is not read"));
        }
        let closed = log.oracle.closed(&there);
        let behind = of(&|csn| !held(csn));
        let is_void = |csn: &&Csn| !held(csn) && is_in(csn) && !log.writers.contains_key(csn);
        let voids = read.iter().filter(is_void).count();
        let least = told.intersection(&behind).count() as u64;
        let most = (closed.intersection(&behind).count() + voids) as u64;
        if !(least..=most).contains(&report.entries) {
            return Err(format!(
                "{} survivors, and of what was read {least} to {most} can be those of one moment",
                report.entries
            ));
        }
        Ok(())
    }
}

/// A target, and who makes backups in it, one after the other.
type BackupTarget = (Arc<MemoryHome>, Arc<Mutex<BackupSession>>);

fn back_up(
    source: &LogHome,
    (target, session): &BackupTarget,
    rounds: u64,
    env: &Env,
) -> Result<Found, String> {
    let mut parts_kept = 0;
    let mut round = || {
        let mut session = session.lock();
        session.opened_anew();
        let done = session.round(source, &LogHome::from(Arc::clone(target)), env);
        // As a process that ends: what it had open is open no more.
        target.crash();
        parts_kept += done.as_ref().map_or(0, |done| done.parts_kept);
        done.map_err(|error| error.to_string())
    };
    for _ in 1..rounds {
        round()?;
    }
    let done = round()?;
    // A copy of the copy is opened: the copy stays what the next one goes on from.
    let again = MemoryHome::new(SEGMENT_BYTES);
    let of_target = LogHome::from(Arc::clone(target));
    backup(&of_target, &LogHome::from(again.clone()), env)
        .map_err(|error| format!("copied again: {error}"))?;
    again.crash();
    Ok(Found::Copy {
        home: LogHome::from(again),
        target: (Arc::clone(target), Arc::clone(session)),
        parts_kept,
        incremental: done.incremental,
        rounds: done.rounds,
    })
}

fn make_point(source: &LogHome, name: &str) -> Result<Found, String> {
    let pin = |_: &_, record| {
        Ok::<_, BranchError>(Pin {
            kind: PinKind::Point,
            name: name.to_owned(),
            record,
        })
    };
    let manifest = || Ok(manifest_of(source)?);
    match pin_point(source, &RecoveryTarget::Newest, pin, manifest) {
        Ok(Some(_)) => Ok(Found::Point),
        Ok(None) => Ok(Found::Nothing("there is no checkpoint".to_owned())),
        Err(error) => Err(error.to_string()),
    }
}

fn make_branch(
    source: &LogHome,
    name: &str,
    which: &RecoveryTarget,
    own: Arc<MemoryHome>,
    env: &Env,
) -> Result<Found, String> {
    let open = |_: &Pin| Ok(LogHome::from(Arc::clone(&own)));
    match create_branch(source, name, which, env, open) {
        Ok(pin) => Ok(Found::Branch(pin, own)),
        Err(error @ BranchError::NoPoint(_)) => Ok(Found::Nothing(error.to_string())),
        Err(error) => Err(error.to_string()),
    }
}

fn go_back(
    source: &LogHome,
    which: &RecoveryTarget,
    to: Arc<MemoryHome>,
    env: &Env,
) -> Result<Found, String> {
    match restore_point(source, which, &LogHome::from(to.clone()), env) {
        Ok(_) => Ok(Found::Restored(LogHome::from(to))),
        Err(error @ (BranchError::NoPoint(_) | BranchError::Checkpoint(_))) => {
            Ok(Found::Nothing(error.to_string()))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn dump(source: &LogHome) -> Result<Found, String> {
    let mut out = Vec::new();
    dump_home(source, &mut out).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&out);
    let bad = text
        .lines()
        .find(|line| line.contains("CORRUPT") || line.contains("bad "));
    match bad {
        Some(line) => Err(line.to_owned()),
        None => Ok(Found::Dumped),
    }
}

/// As the command does.
fn check(source: &LogHome) -> Result<Found, String> {
    let wrong = |error: logstead_wal::recovery::RecoveryError| error.to_string();
    for _ in 0..FSCK_TRIES {
        let manifest = manifest_of(source).map_err(wrong)?;
        let newest = manifest.checkpoint.as_ref();
        let report = fsck(source, manifest.database, newest).map_err(|e| e.to_string())?;
        if report.is_clean() {
            return Ok(Found::Checked);
        }
        if manifest_of(source).map_err(wrong)?.checkpoint == manifest.checkpoint {
            return Err(format!("{:?}", report.damage));
        }
    }
    Err("checkpoints are taken faster than they can be read".to_owned())
}
