//! A machine in one thread and in virtual time: workers, clients, the home; a seed decides who goes on, and when it
//! stops.
//!
//! What the loop of a worker does with its thread, this does for all workers, one step at a time: polls what is
//! ready, tells the commit path of the moments between tasks and of idleness, leads the background's rounds. A step of
//! the home is one event of storage. If nobody can go on and clients still wait, somebody was forgotten: that is an
//! error too (T13).

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use logstead_engine::{
    AckTiming, AdaptiveSettings, Checkpoint, CheckpointError, CheckpointReport, CommitOptions,
    CommitWait, Engine, EngineOptions, Env, ForceCommit, LeaseOptions, OpenError, PagesError,
    ProtocolKind, QueueKind, RestartError, Retention, Tracking, VIRTUAL_PARTITIONS, Worker,
};
use logstead_env::{Clock, Instant, SimClock};
use logstead_home::simulated::{Fault, Model, ServiceKind};
use logstead_home::{
    HomeError, LaneSegments, LogHome, SideSegments, SimulatedHome, SimulatedOptions,
};
use logstead_sim::crash::CrashReport;
use logstead_types::{Csn, InstanceId, LaneId, PartitionId, WorkerId};

use crate::follower::FollowerBeside;
use crate::opened::{self, Contents};
use crate::outcomes::Outcomes;
use crate::readers::Readers;
use crate::script::{Client, Log, Tables};
use crate::watched::Watched;
use logstead_sim::Dice;

const LANE_BUFFER_BYTES: usize = 16 << 10;
/// More than a quarter of a buffer: the records of such a transaction go into a side segment.
const LARGE_BYTES: usize = 5 << 10;
/// Little, but more than a transaction takes.
const ALLOWANCE_BYTES: u64 = 40 << 10;
/// What is neither live nor log: the manifest, the record of a checkpoint, and dead bytes of objects that are not
/// worth emptying.
const SMALL_BYTES_MAX: u64 = 48 << 10;
/// A life is over by then.
const STEPS_MAX: u64 = 20_000;

/// What is run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) protocol: ProtocolKind,
    pub(crate) tracking: Tracking,
    pub(crate) queue: QueueKind,
    pub(crate) workers: usize,
    pub(crate) workers_per_lane: usize,
    pub(crate) steal_group: usize,
    pub(crate) model: &'static str,
    pub(crate) clients_per_worker: u64,
    pub(crate) transactions: u64,
    /// Requests fail for a moment (objects), or for good (devices: the process would stop).
    pub(crate) faults: bool,
    pub(crate) flush_unit_bytes: usize,
    pub(crate) blocks_in_flight_max: usize,
    pub(crate) ack_group: usize,
    pub(crate) gather_us: u64,
    /// The log may run ahead of durability by little.
    pub(crate) short_allowance: bool,
    /// Workers write by themselves, where the model offers that.
    pub(crate) inline: bool,
    /// The number of lanes in use changes now and then (`grouped-lanes`).
    pub(crate) remaps: bool,
    pub(crate) dead_lane: Option<u16>,
    /// A lane that takes many times as long as the others.
    pub(crate) slow_lane: Option<u16>,
    /// Checkpoints are taken all the time, a step now and then.
    pub(crate) checkpoints: bool,
    /// One transaction in so many has records for a side segment.
    pub(crate) large_one_in: u64,
    /// One in so many steps is one of theirs.
    pub(crate) checkpoint_one_in: u64,
    /// Others read the home beside the machine.
    pub(crate) readers: bool,
    /// Somebody follows the log beside the machine.
    pub(crate) follower: bool,
    /// No kernel's lock keeps others out: the machine takes a lease.
    pub(crate) leased: bool,
    /// With `autonomous`.
    pub(crate) acknowledging: AckTiming,
    pub(crate) force_commit: ForceCommit,
    /// The tables are divided, each life has so many instances as the dice say, and partitions are given away now and
    /// then.
    pub(crate) divided: bool,
    /// Instead of wherever the dice say.
    pub(crate) crash: Option<CrashAt>,
}

/// Where the machine stops: at which request of each life, and of the first recovery after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashAt {
    pub(crate) life: u64,
    pub(crate) recovery: u64,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Task {
    worker: usize,
    future: Pin<Box<dyn Future<Output = ()>>>,
    ready: Arc<Flag>,
}

/// A worker's thread, as far as the commit path knows it.
struct Seat {
    worker: Worker,
    /// It has not been told that it is idle since something ran or it was roused.
    owes_idle: bool,
    kicked: Arc<AtomicBool>,
    ask_again: Option<Instant>,
}

pub(crate) struct Machine {
    setup: Setup,
    home: Arc<Watched>,
    env: Env,
    clock: Arc<SimClock>,
    dice: Dice,
    /// What concerns instances: the other draws of a seed are what they are without.
    instance_dice: Dice,
    instances: usize,
    log: Log,
    readers: Option<Readers>,
    followed: Option<FollowerBeside>,
    /// What was written of the log when the last checkpoint that was published was begun, and the one under way.
    log_bytes: (u64, u64),
    outcomes: Outcomes,
}

impl Machine {
    pub(crate) fn new(setup: &Setup) -> Machine {
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(setup.seed);
        let env = Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..env
        };
        let mut model = Model::named(setup.model).expect("a model");
        // Lanes go on to other segments.
        model.appends_per_segment = model.appends_per_segment.min(5);
        model.segment_size_bytes = model.segment_size_bytes.min(128 << 10);
        let mut options = SimulatedOptions::new(model, setup.seed);
        if setup.faults && options.model.kind == ServiceKind::Blocks {
            for fault in [Fault::LostReply, Fault::Transient] {
                options.faults = options.faults.with(fault, 0.01);
            }
        } else if setup.faults {
            let faults = [Fault::LostReply, Fault::Delay, Fault::Duplicate];
            for fault in faults.into_iter().chain([Fault::Transient, Fault::Stall]) {
                options.faults = options.faults.with(fault, 0.03);
            }
        }
        let home = SimulatedHome::in_virtual_time(&options, &env, Arc::clone(&clock));
        let mut home = home.expect("opens");
        if setup.inline {
            home = home.with_inline_writes();
        }
        let mut machine = Machine {
            setup: setup.clone(),
            home: Arc::new(Watched::new(home, setup.leased)),
            env,
            clock,
            dice: Dice::new(setup.seed),
            instance_dice: Dice::new(!setup.seed),
            instances: 1,
            log: Log::default(),
            readers: None,
            followed: None,
            log_bytes: (0, 0),
            outcomes: Outcomes::default(),
        };
        if setup.readers {
            machine.log.borrow_mut().oracle.keep_history();
            let (own, _) = Env::simulated(!setup.seed);
            let env = Env {
                clock: Arc::clone(&machine.env.clock),
                ..own
            };
            let options = machine.options();
            let mut readers = Readers::new(&machine.home, env, options, setup.leased, setup.seed);
            readers.divided = setup.divided;
            machine.readers = Some(readers);
        }
        if setup.follower {
            let followed =
                FollowerBeside::new(&machine.home, &machine.env, setup.leased, setup.seed);
            machine.followed = Some(followed);
        }
        machine
    }

    /// Lives and crashes, one after the other. An error is what was wrong.
    pub(crate) fn run(mut self, lives: u64) -> Result<Outcomes, String> {
        for _ in 0..lives {
            let tables = self.recover()?;
            self.live(&tables)?;
            self.outcomes.lives += 1;
            let stats = tables.engine.stats();
            let instances = &mut self.outcomes.instances;
            instances.inside += stats.transactions_inside;
            instances.across += stats.transactions_across;
            self.stop();
        }
        let _last = self.recover()?;
        if let Some(readers) = &mut self.readers {
            readers.finish(&self.log)?;
            self.outcomes.readers = readers.counts;
        }
        if let Some(followed) = self.followed.take() {
            self.outcomes.follower = followed.finish()?;
        }
        self.outcomes.counts = self.log.borrow().counts;
        Ok(self.outcomes)
    }

    fn options(&self) -> EngineOptions {
        let setup = &self.setup;
        let mut commit = CommitOptions {
            protocol: setup.protocol,
            tracking: setup.tracking,
            may_lose: !setup.tracking.is_safe(),
            queue: setup.queue,
            workers_per_lane: setup.workers_per_lane,
            adapt: AdaptiveSettings {
                lanes: setup.remaps,
                ..AdaptiveSettings::NOTHING
            },
            lane_buffer_bytes: LANE_BUFFER_BYTES,
            blocks_in_flight_max: setup.blocks_in_flight_max,
            flush_unit_bytes: setup.flush_unit_bytes,
            flush_timeout: Duration::from_millis(2),
            gather: Duration::from_micros(setup.gather_us),
            ack_group: setup.ack_group,
            acknowledging: setup.acknowledging,
            force_commit: setup.force_commit,
            steal_group: setup.steal_group,
            threads: false,
            ..CommitOptions::default()
        };
        if setup.short_allowance {
            commit.log_allocation_limit_bytes = ALLOWANCE_BYTES;
            commit.log_allocation_limit_csns = 1;
        }
        let clock = Arc::clone(&self.clock);
        let mut options = EngineOptions {
            workers: setup.workers,
            instances: self.instances,
            commit,
            lease: LeaseOptions {
                threads: false,
                pause: Arc::new(move |time| clock.advance(time)),
                ..LeaseOptions::default()
            },
            ..EngineOptions::default()
        };
        if setup.readers {
            options.retention = Retention {
                interval: Duration::from_millis(2),
                retention: Duration::from_secs(3600),
            };
        }
        options
    }

    fn stop(&mut self) {
        self.home.home.crash();
        self.home.begin_life();
        self.home.home.reboot();
        if let Some(followed) = &mut self.followed {
            followed.crashed(&self.log);
        }
        let log = &mut *self.log.borrow_mut();
        log.writers.clear();
        log.large.clear();
        log.unacknowledged.clear();
        if let Some(readers) = &mut self.readers {
            readers.crashed();
        }
    }

    /// Starts the engine, crashing at its requests as often as the dice say, and judges what came back.
    fn recover(&mut self) -> Result<Tables, String> {
        let mut again = match (self.setup.crash, self.outcomes.lives) {
            (None, _) => self.dice.roll(3),
            // Not while the database is made.
            (Some(_), lives) => lives.min(1),
        };
        if self.setup.divided {
            self.instances = 1 + self.instance_dice.roll(self.setup.workers as u64) as usize;
        }
        loop {
            let home = self.home.home.clone();
            match self.setup.crash {
                Some(at) if again > 0 => home.crash_at(home.requests() + at.recovery),
                None if again > 0 && self.dice.one_in(2) => {
                    home.crash_at(home.requests() + self.dice.roll(40));
                }
                _ => {}
            }
            let opened = Engine::open(
                self.options(),
                LogHome::from(self.home.clone()),
                self.env.clone(),
            );
            // The indexes are a part of the start, and as likely to be cut off.
            let opened =
                opened.and_then(
                    |(engine, _)| match opened::tables(engine, self.setup.divided) {
                        Ok((tables, restored)) => {
                            self.outcomes.checkpoints.indexes += restored;
                            Ok(tables)
                        }
                        Err(error) => Err(OpenError::Options(error)),
                    },
                );
            if home.is_down() {
                drop(opened);
                self.outcomes.crashes_in_recovery += 1;
                self.stop();
                again -= u64::from(again > 0);
                continue;
            }
            home.crash_at(u64::MAX);
            let tables = opened.map_err(|error| format!("recovery: {error}"))?;
            tables
                .engine
                .bring_all(|| true)
                .map_err(|error| format!("bringing rows in: {error}"))?;
            let loaded = tables.engine.checkpoint_stats().loaded.is_some();
            self.outcomes.checkpoints.loaded += u64::from(loaded);
            self.judge(&tables)?;
            if let Some(followed) = &mut self.followed {
                followed.recovered(&self.log)?;
            }
            if again > 0 {
                // The same once more, from what this recovery has left.
                again -= 1;
                drop(tables);
                self.stop();
                continue;
            }
            return Ok(tables);
        }
    }

    fn judge(&mut self, tables: &Tables) -> Result<(), String> {
        let Contents { ledger, rows } = Contents::of(tables)?;
        let CrashReport {
            survived,
            survived_unacknowledged,
            lost,
            lost_though_hardened,
        } = self.log.borrow_mut().oracle.crashed(&ledger, &rows)?;
        self.outcomes.survived += survived;
        self.outcomes.survived_unacknowledged += survived_unacknowledged;
        self.outcomes.lost += lost;
        self.outcomes.lost_though_hardened += lost_though_hardened;
        Ok(())
    }

    fn live(&mut self, tables: &Tables) -> Result<(), String> {
        if let Some(lane) = self.setup.dead_lane {
            self.home.home.kill_lane(LaneId(lane));
        }
        if let Some(lane) = self.setup.slow_lane {
            self.home.home.slow_down(LaneId(lane), 20.0);
        }
        let mut seats: Vec<Seat> = (0..self.setup.workers)
            .map(|number| {
                let worker = tables.engine.worker(WorkerId(number as u16));
                let kicked = Arc::new(AtomicBool::new(false));
                let kick = Arc::clone(&kicked);
                worker.set_wake_hook(Arc::new(move || kick.store(true, Ordering::SeqCst)));
                Seat {
                    worker,
                    owes_idle: true,
                    kicked,
                    ask_again: None,
                }
            })
            .collect();
        let mut tasks: Vec<Task> = Vec::new();
        for (number, seat) in seats.iter().enumerate() {
            for _ in 0..self.setup.clients_per_worker {
                let client = Client {
                    tables: tables.clone(),
                    worker: seat.worker.clone(),
                    log: Rc::clone(&self.log),
                    home: Arc::clone(&self.home),
                    dice: self.dice.fork(),
                    large_bytes: LARGE_BYTES,
                    large_one_in: self.setup.large_one_in,
                };
                let ready = Arc::new(Flag::default());
                ready.0.store(true, Ordering::SeqCst);
                tasks.push(Task {
                    worker: number,
                    future: Box::pin(client.run(self.setup.transactions)),
                    ready,
                });
            }
        }
        let home = self.home.home.clone();
        let anywhere = self.setup.dead_lane.is_none() && self.setup.crash.is_none();
        let steps = if anywhere && !self.dice.one_in(4) {
            let clients = self.setup.clients_per_worker * self.setup.workers as u64;
            // Who reads needs time.
            let each = if self.setup.readers || self.setup.follower {
                400
            } else {
                60
            };
            self.dice.roll(each * clients)
        } else {
            // To the end.
            STEPS_MAX
        };
        if let Some(at) = self.setup.crash {
            home.crash_at(home.requests() + at.life);
        } else if anywhere && self.dice.one_in(3) {
            let most = if self.setup.readers || self.setup.follower {
                400
            } else {
                60
            };
            home.crash_at(home.requests() + self.dice.roll(most));
        }
        let mut taking = None;
        for step in 0..=steps {
            self.give_a_partition_away(&tables.engine);
            self.restart_an_instance(&tables.engine);
            let went_on =
                if self.setup.checkpoints && self.dice.one_in(self.setup.checkpoint_one_in) {
                    self.checkpoint(&tables.engine, &mut taking)?;
                    true
                } else {
                    self.step(tables, &mut seats, &mut tasks)?
                };
            if let Some(readers) = &mut self.readers {
                readers.step(&self.log)?;
            }
            if let Some(followed) = &mut self.followed {
                followed.step(&tables.engine);
                if followed.is_pause() {
                    tables.engine.commit_path().record_horizon();
                }
            }
            if home.is_down() {
                self.outcomes.crashes_in_life += 1;
                self.outcomes.checkpoints.cut_short += u64::from(taking.is_some());
                return Ok(());
            }
            if tasks.is_empty() {
                return Ok(());
            }
            if !went_on {
                return self.all_wait(tables, tasks.len());
            }
            if step == STEPS_MAX {
                return Err("the clients never come to an end".to_owned());
            }
        }
        Ok(())
    }

    /// Gives a partition to another instance, now and then, in the middle of whatever goes on.
    fn give_a_partition_away(&mut self, engine: &Engine) {
        let instances = engine.instances();
        if instances.count() == 1 || !self.instance_dice.one_in(8) {
            return;
        }
        let partition = self.instance_dice.roll(u64::from(VIRTUAL_PARTITIONS));
        let to = self.instance_dice.roll(instances.count() as u64);
        instances.assign(PartitionId(partition as u16), InstanceId(to as u16));
        self.outcomes.instances.given_away += 1;
    }

    /// Drops what an instance has in memory, now and then: all that nobody is in the way of in this moment. Who is
    /// cannot commit any more.
    fn restart_an_instance(&mut self, engine: &Engine) {
        let count = engine.instances().count();
        if count == 1 || !self.instance_dice.one_in(32) {
            return;
        }
        let number = self.instance_dice.roll(count as u64);
        let counts = &mut self.outcomes.instances;
        let dropped = engine.drop_instance(InstanceId(number as u16), 1, |round| {
            counts.condemned += round.condemned.len() as u64;
        });
        match dropped {
            Ok(dropped) => {
                counts.restarted += 1;
                counts.chunks_dropped += dropped.chunks();
            }
            // A checkpoint is being taken, or somebody is in the way.
            Err(RestartError::Busy(_) | RestartError::InTheWay { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Nobody goes on: right only if a dead lane is the reason, for each one who waits.
    fn all_wait(&mut self, tables: &Tables, tasks: usize) -> Result<(), String> {
        if self.setup.dead_lane.is_none() {
            return Err(format!("{tasks} clients wait, and nobody goes on"));
        }
        self.look_at_waits(&tables.engine);
        Ok(())
    }

    /// Compares who waits with who must, when all that can go on has.
    fn look_at_waits(&mut self, engine: &Engine) {
        let log = self.log.borrow();
        for (&writer, &csn) in &log.unacknowledged {
            let waits = !engine.is_committed(&CommitWait::of(csn));
            if waits && log.oracle.committable(writer) {
                self.outcomes.false_waits += 1;
            } else if waits {
                self.outcomes.true_waits += 1;
            }
        }
    }

    fn hear_of_hardened(&mut self) {
        self.log.borrow_mut().hear_of_hardened(&self.home);
    }

    /// One step of somebody. False: nobody can go on.
    fn step(
        &mut self,
        tables: &Tables,
        seats: &mut [Seat],
        tasks: &mut Vec<Task>,
    ) -> Result<bool, String> {
        for seat in &mut *seats {
            seat.owes_idle |= seat.kicked.swap(false, Ordering::SeqCst);
        }
        let is_ready = |task: &Task| task.ready.0.load(Ordering::SeqCst);
        let ready: Vec<usize> = (0..tasks.len())
            .filter(|&at| is_ready(&tasks[at]))
            .collect();
        let busy: BTreeSet<usize> = ready.iter().map(|&at| tasks[at].worker).collect();
        let owing: Vec<usize> = (0..seats.len())
            .filter(|worker| seats[*worker].owes_idle && !busy.contains(worker))
            .collect();
        let path = tables.engine.commit_path().clone();
        let round = path.wants_round();
        let storage = self.home.home.next_event();
        let quiet = ready.is_empty() && owing.is_empty() && !round;
        if quiet {
            self.look_at_waits(&tables.engine);
            return Ok(self.let_time_pass(seats, storage));
        }
        // Storage may be quick or slow compared with the workers.
        let choices = ready.len() as u64 * 2
            + owing.len() as u64
            + u64::from(round)
            + u64::from(storage.is_some());
        let mut choice = self.dice.roll(choices);
        if choice < ready.len() as u64 * 2 {
            let at = ready[choice as usize / 2];
            self.poll(seats, tasks, at);
        } else {
            choice -= ready.len() as u64 * 2;
            if choice < owing.len() as u64 {
                self.idle(&mut seats[owing[choice as usize]]);
            } else if round && choice == owing.len() as u64 {
                path.background_round();
            } else {
                self.home.home.step();
            }
        }
        self.hear_of_hardened();
        let wrong = self.log.borrow().wrong.clone();
        wrong.map_or(Ok(true), Err)
    }

    /// A step of taking checkpoints, one after the other: transactions go on between any two.
    fn checkpoint(
        &mut self,
        engine: &Engine,
        taking: &mut Option<Checkpoint>,
    ) -> Result<(), String> {
        let Some(checkpoint) = taking else {
            if let Some(readers) = &mut self.readers {
                readers.checkpoint_begun(self.log.borrow().oracle.told());
            }
            self.log_bytes.1 = self.home.log_bytes();
            *taking = Some(engine.begin_checkpoint().map_err(|e| e.to_string())?);
            return Ok(());
        };
        let stepped = match checkpoint.is_durable() {
            Ok(false) => return Ok(()),
            Ok(true) => checkpoint.walk(1),
            Err(error) => Err(error),
        };
        let done = match stepped {
            Ok(true) => return Ok(()),
            Ok(false) => taking.take().map_or(Ok(None), |c| c.publish().map(Some)),
            Err(error) => Err(error),
        };
        let counts = &mut self.outcomes.checkpoints;
        match done {
            Ok(report) => {
                let report = report.unwrap_or_default();
                if report.written
                    && let Some(readers) = &mut self.readers
                {
                    readers.checkpoint_published();
                }
                counts.published += u64::from(report.written);
                counts.delta_pages += report.delta_pages;
                counts.objects_removed += report.objects_removed;
                counts.segments_removed += report.segments_removed;
                counts.sides_removed += report.sides_removed;
                let removed = report.written && report.collection_failed.is_none();
                if removed && !self.setup.faults {
                    self.sides_are_few(report.csn)?;
                    self.space_is_bounded(&report)?;
                }
                if report.written {
                    self.log_bytes.0 = self.log_bytes.1;
                }
                Ok(())
            }
            Err(_) if self.home.home.is_down() => Ok(()),
            // What its own lanes know to be wrong.
            Err(CheckpointError::Pages(PagesError::Home(error @ HomeError::Misuse { .. }))) => {
                Err(format!("checkpoint: {error}"))
            }
            // A request that failed, or a log that has: the next one begins anew.
            Err(CheckpointError::Pages(PagesError::Home(_)) | CheckpointError::LogFailed(_)) => {
                counts.failed += 1;
                *taking = None;
                Ok(())
            }
            Err(error) => Err(format!("checkpoint: {error}")),
        }
    }

    /// Beside the lanes is only what the checkpoint below `csn` does not hold, however little of their segments large
    /// transactions fill.
    fn sides_are_few(&self, csn: Csn) -> Result<(), String> {
        let home = &self.home.home;
        let count = || {
            let mut sides = 0;
            for lane in home.list_lanes()? {
                sides += home.list_side_segments(lane)?.len();
            }
            Ok::<_, HomeError>(sides)
        };
        let sides = match count() {
            Ok(sides) => sides,
            // The machine stops at these requests too.
            Err(_) if home.is_down() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let above = self.log.borrow().large.range(csn..).count();
        // Each client may have one that is not Precommitted, and one that was not sealed when the checkpoint was begun:
        // that is known by its block.
        let clients = self.setup.clients_per_worker as usize * self.setup.workers;
        match sides <= above + 2 * clients {
            true => Ok(()),
            false => Err(format!(
                "{sides} side segments behind a checkpoint at CSN {csn}, {above} of entries that it does not hold"
            )),
        }
    }

    /// No more is stored than is live and twice what was written between two checkpoints, whatever the sizes of
    /// transactions; but for what restore points,
    /// branches and backups keep.
    fn space_is_bounded(&mut self, report: &CheckpointReport) -> Result<(), String> {
        if self.readers.is_some() {
            return Ok(());
        }
        let home = &self.home.home;
        let first_segments = || {
            let mut bytes = 0;
            for lane in home.list_lanes()? {
                bytes += home
                    .list_segments(lane)?
                    .first()
                    .map_or(0, |first| first.size_bytes);
            }
            Ok::<_, HomeError>(bytes)
        };
        // A lane is cut between segments.
        let segments = match first_segments() {
            Ok(bytes) => bytes,
            // The machine stops at these requests too.
            Err(_) if home.is_down() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let (last, this) = self.log_bytes;
        let distance = (this - last).max(self.home.log_bytes() - this);
        let allowed = 2 * distance + segments + SMALL_BYTES_MAX;
        let stored = home.usage().stored_bytes.unwrap_or(u64::MAX);
        let surplus = stored.saturating_sub(report.bytes_live);
        let most = &mut self.outcomes.checkpoints.surplus_max;
        *most = (surplus * 1000 / allowed).max(*most);
        match surplus <= allowed {
            true => Ok(()),
            false => Err(format!(
                "{surplus} bytes are stored beside {} that are live, with {distance} between two checkpoints and {segments} in first segments: {report:?}",
                report.bytes_live
            )),
        }
    }

    fn let_time_pass(&mut self, seats: &mut [Seat], storage: Option<Instant>) -> bool {
        let asks = seats.iter().filter_map(|seat| seat.ask_again).min();
        match (asks, storage) {
            (Some(at), _) if storage.is_none_or(|due| at < due) => {
                self.clock.advance(at.since(self.clock.monotonic()));
                for seat in seats {
                    if seat.ask_again == Some(at) {
                        self.idle(seat);
                    }
                }
            }
            (_, Some(_)) => {
                self.home.home.step();
            }
            _ => return false,
        }
        self.hear_of_hardened();
        true
    }

    fn idle(&mut self, seat: &mut Seat) {
        let alone = self.dice.one_in(2);
        let average = self.dice.one_in(4).then(|| self.dice.roll(60_000));
        // Who says that it goes on by itself asks again.
        seat.owes_idle = average.is_some();
        let again = seat.worker.idle(alone, average);
        // Not at this very moment: a clock that stands still would never come to the end of a time-out.
        let not_before = Duration::from_micros(1);
        seat.ask_again = again.map(|time| self.clock.monotonic() + time.max(not_before));
    }

    fn poll(&mut self, seats: &mut [Seat], tasks: &mut Vec<Task>, at: usize) {
        if self.setup.remaps && self.dice.one_in(6) {
            let lanes = 1 + self.dice.roll(self.setup.workers as u64) as usize;
            let path = seats[0].worker.engine().commit_path().clone();
            self.outcomes.remaps += u64::from(path.use_lanes(lanes));
        }
        let task = &mut tasks[at];
        let seat = &mut seats[task.worker];
        seat.worker.busy();
        seat.owes_idle = true;
        seat.ask_again = None;
        task.ready.0.store(false, Ordering::SeqCst);
        // A transaction takes some time.
        self.clock
            .advance(Duration::from_micros(self.dice.roll(50)));
        let waker = Waker::from(Arc::clone(&task.ready));
        let polled = task.future.as_mut().poll(&mut Context::from_waker(&waker));
        self.hear_of_hardened();
        seat.worker.between_tasks();
        if self.dice.one_in(8) {
            seat.worker.collect_garbage(8);
        }
        if polled == Poll::Ready(()) {
            tasks.swap_remove(at);
        }
    }
}
