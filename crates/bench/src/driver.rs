//! Runs a workload: loads, drives sessions on every worker, measures, and checks what is left.
//!
//! A worker's thread is an [`Executor`] with many sessions. A session draws a transaction, runs it, pre-commits, waits
//! for the acknowledgment, and begins again; while it waits, other sessions of the worker run. Latencies are taken at
//! three moments: the beginning (open loop: the scheduled arrival, however late it is served), the end of forward
//! processing, just before the pre-commit, and the acknowledgment.
//!
//! Does not: know any workload, or print.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BinaryHeap};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use logstead_engine::{
    Awaits, Csn, Engine, EngineOptions, Env, Executor, FlushMode, Idle, Isolation, LogHome,
    RecoveryReport, Stats, Table, Txn, Worker, WorkerId, yield_now,
};
use logstead_env::{Clock, JoinHandle};
use parking_lot::Mutex;

use crate::access::Stop;
use crate::home;
use crate::measure::{Measured, STEP_NS};
use crate::options::{Cell as Configured, Common, Home, Until};
use crate::path::PathFigures;
use crate::random::Rng;
use crate::spent::Spent;
use crate::{BenchError, Progress};

/// Rows inserted by one transaction of the load.
const LOAD_BATCH_ROWS: usize = 500;
/// Bytes of a load that wait in a lane before they are written.
const LOAD_FLUSH_BYTES: usize = 256 << 10;
/// Rows looked at by one step of garbage collection between loads.
const COLLECT_ROWS: usize = 1024;
/// An arrival nearer than this is waited for without parking: a parked thread comes back late.
const SPIN_NS: u64 = 60_000;
/// A thread parked for an arrival looks around so often.
const PARK_NS_MAX: u64 = 50_000_000;
/// A transaction that met another one is run again after a random pause of up to this, twice as long after each try, up
/// to the second. Run again at once, transactions that want the same rows would do little but meet again.
const PAUSE_NS: u64 = 20_000;
const PAUSE_NS_MAX: u64 = 5_000_000;
/// How often the main thread looks at its workers.
const WATCH: Duration = Duration::from_millis(5);

/// How a transaction wants to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Commit,
    /// As the workload's specification demands.
    RollBack,
}

/// Which part of the work is a thread's or a session's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// The worker, and how many there are.
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    /// The session of the worker.
    pub(crate) session: usize,
}

impl Seat {
    /// This worker's part of `0..count`.
    pub(crate) fn part(&self, count: u64) -> std::ops::Range<u64> {
        let at = |worker: usize| {
            (u128::from(count) * worker as u128 / self.workers.max(1) as u128) as u64
        };
        at(self.worker)..at(self.worker + 1)
    }
}

/// A condition that must hold after a run.
#[derive(Clone, Debug)]
pub struct Check {
    /// What must hold.
    pub name: String,
    /// What is wrong, if it does not.
    pub result: Result<(), String>,
}

impl Check {
    pub(crate) fn new(name: impl Into<String>, result: Result<(), String>) -> Check {
        Check {
            name: name.into(),
            result,
        }
    }
}

/// A workload. One value is shared by all sessions; each has a client of its own.
pub(crate) trait Workload: Send + Sync + Sized + 'static {
    /// What a session keeps: its random numbers, the drawn transaction's inputs, and buffers.
    type Client: 'static;

    /// The kinds of transactions, by number.
    const KINDS: &'static [&'static str];

    /// Loads this worker's part of the data.
    fn load(
        &self,
        seat: Seat,
        rng: Rng,
        into: &mut Loader,
    ) -> impl Future<Output = Result<(), Stop>>;

    /// A session's client.
    fn client(&self, seat: Seat, rng: Rng) -> Self::Client;

    /// Chooses the next transaction and its inputs; gives its kind. A transaction that is run again keeps them.
    fn draw(&self, client: &mut Self::Client) -> usize;

    /// The transaction's forward processing.
    fn execute(
        &self,
        client: &mut Self::Client,
        txn: &mut Txn,
    ) -> impl Future<Output = Result<Verdict, Stop>>;

    /// The transaction drawn last is committed, with a CSN if it wrote: what the checks expect changes.
    fn committed(&self, client: &mut Self::Client, csn: Option<Csn>);

    /// What must hold when all sessions have ended; `txn` sees everything.
    fn check(&self, txn: &mut Txn) -> Vec<Check>;
}

/// Inserts rows in batches.
pub(crate) struct Loader {
    worker: Worker,
    txn: Option<Txn>,
    rows: usize,
    newest: Awaits,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Loader {
    /// Inserts a row.
    pub(crate) async fn insert(&mut self, table: &Arc<Table>, row: &[u8]) -> Result<(), Stop> {
        let worker = &self.worker;
        let txn = self
            .txn
            .get_or_insert_with(|| worker.begin(Isolation::ReadCommitted));
        txn.insert(table, row)?;
        self.rows += 1;
        if self.rows.is_multiple_of(LOAD_BATCH_ROWS) {
            self.commit().await?;
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), Stop> {
        if let Some(txn) = self.txn.take() {
            self.newest.merge(&txn.precommit().await?.waits_for);
            self.done.store(self.rows as u64, Ordering::Relaxed);
            if self.worker.lane_dirty_bytes() >= LOAD_FLUSH_BYTES {
                self.worker.flush(FlushMode::Handoff);
            }
            self.worker.collect_garbage(COLLECT_ROWS);
            yield_now().await;
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stop::Broken(INTERRUPTED.into()));
        }
        Ok(())
    }
}

/// The failure of a load that was interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted before anything was measured";

/// What one run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run.
    pub cell: Configured,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Where the log went, as the home itself says.
    pub home: String,
    /// Rows loaded.
    pub rows: u64,
    /// Seconds that took.
    pub load_seconds: f64,
    /// Seconds measured.
    pub seconds: f64,
    /// Names of the kinds.
    pub kinds: Vec<&'static str>,
    /// What was measured.
    pub measured: Measured,
    /// What the engine counted during the run, warm-up included.
    pub stats: Stats,
    /// What the commit path counted, likewise.
    pub path: PathFigures,
    /// Other figures, by name with unit.
    pub figures: BTreeMap<String, f64>,
    /// What was checked.
    pub checks: Vec<Check>,
    /// It was ended from outside.
    pub interrupted: bool,
}

impl Outcome {
    /// Nothing yet.
    pub(crate) fn empty(cell: &Configured) -> Outcome {
        Outcome {
            cell: cell.clone(),
            repetition: 0,
            home: String::new(),
            rows: 0,
            load_seconds: 0.0,
            seconds: 0.0,
            kinds: Vec::new(),
            measured: Measured::default(),
            stats: Stats::default(),
            path: PathFigures::default(),
            figures: BTreeMap::new(),
            checks: Vec::new(),
            interrupted: false,
        }
    }

    /// Worker threads.
    pub fn workers(&self) -> usize {
        self.cell.common.workers
    }
}

/// Seconds as nanoseconds.
pub(crate) fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// An engine to run on, and what all threads share.
pub(crate) struct Stage {
    pub(crate) engine: Engine,
    pub(crate) env: Env,
    pub(crate) workers: usize,
    pub(crate) stop: Arc<AtomicBool>,
    home: String,
    failure: Arc<Mutex<Option<String>>>,
    /// Per worker: rows loaded, or transactions done.
    done: Vec<Arc<AtomicU64>>,
}

impl Stage {
    /// Opens an engine. `run` tells the runs of one command apart, if there are several.
    pub(crate) fn open(
        common: &Common,
        run: Option<usize>,
        env: &Env,
        stop: &Arc<AtomicBool>,
    ) -> Result<Stage, BenchError> {
        let home = home::open(&common.home, run, env)?;
        Stage::on(common, home, env, stop).map(|(stage, _)| stage)
    }

    /// The same on a home that may hold a log already.
    pub(crate) fn on(
        common: &Common,
        home: Arc<dyn LogHome>,
        env: &Env,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Stage, RecoveryReport), BenchError> {
        let workers = common.workers;
        let described = home.describe();
        let options = EngineOptions {
            workers,
            commit: common.commit,
            delta_records: common.delta_records,
            ..EngineOptions::default()
        };
        let (engine, report) = Engine::open(options, home, env.clone())
            .map_err(|error| BenchError::Open(error.to_string()))?;
        let failure = Arc::new(Mutex::new(None));
        let (told, stopped) = (Arc::clone(&failure), Arc::clone(stop));
        engine.set_failure_hook(Box::new(move |failed| {
            told.lock().get_or_insert(failed.to_string());
            stopped.store(true, Ordering::Relaxed);
        }));
        let stage = Stage {
            engine,
            env: env.clone(),
            workers,
            stop: Arc::clone(stop),
            home: described,
            failure,
            done: (0..workers).map(|_| Arc::default()).collect(),
        };
        Ok((stage, report))
    }

    /// Runs `body` on a thread of each worker and waits for all of them, telling `progress` how far they are.
    pub(crate) fn on_all(
        &self,
        body: impl Fn(usize) + Clone + Send + 'static,
        mut progress: impl FnMut(u64),
    ) -> Result<(), BenchError> {
        for done in &self.done {
            done.store(0, Ordering::Relaxed);
        }
        let threads: Vec<JoinHandle> = (0..self.workers)
            .map(|worker| {
                let body = body.clone();
                self.env
                    .spawn(&format!("worker-{worker}"), Some(worker), move || {
                        body(worker);
                    })
            })
            .collect::<Result<_, _>>()
            .map_err(|error| BenchError::Open(format!("cannot start a worker: {error}")))?;
        while !threads.iter().all(JoinHandle::is_finished) {
            logstead_env::sleep(WATCH);
            progress(self.done.iter().map(|d| d.load(Ordering::Relaxed)).sum());
        }
        for thread in threads {
            thread
                .join()
                .map_err(|_| BenchError::Failed("a worker panicked".into()))?;
        }
        match self.failure.lock().take() {
            Some(failure) if failure == INTERRUPTED => Err(BenchError::Interrupted),
            Some(failure) => Err(BenchError::Failed(failure)),
            None => Ok(()),
        }
    }

    /// Loads; gives rows and seconds. Everything is durable then.
    pub(crate) fn load<W: Workload>(
        &self,
        workload: &Arc<W>,
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<(u64, f64), BenchError> {
        let begun = self.env.clock.monotonic();
        let (engine, workers) = (self.engine.clone(), self.workers);
        let (stop, failure, done) = (self.stop.clone(), self.failure.clone(), self.done.clone());
        let workload = Arc::clone(workload);
        let body = move |worker: usize| {
            let executor = Executor::new(&engine, WorkerId(worker as u16));
            let seat = Seat {
                worker,
                workers,
                session: 0,
            };
            let mut loader = Loader {
                worker: executor.worker().clone(),
                txn: None,
                rows: 0,
                newest: Awaits::none(),
                stop: stop.clone(),
                done: done[worker].clone(),
            };
            let result = executor.block_on(async {
                let rng = Rng::of_part(!seed, worker as u64);
                workload.load(seat, rng, &mut loader).await?;
                loader.commit().await?;
                done[worker].store(loader.rows as u64, Ordering::Relaxed);
                engine
                    .acknowledged(loader.newest)
                    .await
                    .map_err(|error| Stop::Broken(error.to_string()))
            });
            if let Err(stopped) = result {
                failure.lock().get_or_insert(describe(stopped));
                stop.store(true, Ordering::Relaxed);
            }
            while executor.worker().collect_garbage(COLLECT_ROWS) {}
        };
        let mut rows = 0;
        self.on_all(body, |done| {
            rows = done;
            progress.loading(done);
        })?;
        let seconds = self.env.clock.monotonic().since(begun).as_secs_f64();
        rows = self.done.iter().map(|d| d.load(Ordering::Relaxed)).sum();
        Ok((rows, seconds))
    }

    /// Runs sessions until the end, and checks.
    pub(crate) fn run<W: Workload>(
        &self,
        workload: &Arc<W>,
        cell: &Configured,
        progress: &mut dyn Progress,
    ) -> Result<Outcome, BenchError> {
        let common = &cell.common;
        let before = self.engine.stats();
        let path_before = PathFigures::of(&self.engine);
        let spent_before = Spent::at(self.engine.home().as_ref(), &self.env);
        let now = self.env.clock.monotonic().as_nanos();
        let (from, until, transactions) = match common.until {
            Until::Seconds { measured, warmup } => {
                let from = now + nanos(warmup);
                (from, from + nanos(measured), None)
            }
            Until::Transactions(n) => (0, u64::MAX, Some(n)),
        };
        let all = Arc::new(Mutex::new(Measured::new(W::KINDS.len())));
        let (into, plan) = (
            Arc::clone(&all),
            Arc::new(Plan {
                workload: Arc::clone(workload),
                engine: self.engine.clone(),
                clock: Arc::clone(&self.env.clock),
                stop: Arc::clone(&self.stop),
                failure: Arc::clone(&self.failure),
                done: self.done.clone(),
                common: common.clone(),
                workers: self.workers,
                now,
                from,
                until,
                transactions,
            }),
        );
        self.on_all(
            move |worker| {
                let measured = run_worker(&plan, worker);
                into.lock().add(&measured);
            },
            |done| {
                let part = match transactions {
                    Some(n) => done as f64 / n as f64,
                    None => {
                        let at = self.env.clock.monotonic().as_nanos();
                        at.saturating_sub(now) as f64 / (until - now) as f64
                    }
                };
                progress.running(done, part);
            },
        )?;
        let end = self.env.clock.monotonic().as_nanos();
        let path = PathFigures::of(&self.engine).since(&path_before);
        let spent = Spent::at(self.engine.home().as_ref(), &self.env).since(&spent_before);
        let stats = difference(&self.engine.stats(), &before);
        let interrupted = self.stop.load(Ordering::Relaxed);
        let measured = std::mem::take(&mut *all.lock());
        let seconds = match common.until {
            Until::Transactions(_) => measured.span.map_or(0, |(a, b)| b - a),
            Until::Seconds { .. } => end.min(until).saturating_sub(from),
        };
        progress.checking();
        let worker = self.engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::RepeatableRead);
        let checks = workload.check(&mut txn);
        drop(txn);
        Ok(Outcome {
            home: self.home.clone(),
            seconds: seconds as f64 / 1e9,
            kinds: W::KINDS.to_vec(),
            measured,
            figures: spent.figures(stats.commits, "commit"),
            stats,
            path,
            checks,
            interrupted,
            ..Outcome::empty(cell)
        })
    }
}

fn describe(stop: Stop) -> String {
    match stop {
        Stop::Conflict => "a serialization failure while nobody else wrote".into(),
        Stop::Deadlock => "a deadlock while nobody else wrote".into(),
        Stop::Broken(why) => why,
    }
}

/// What was counted between two looks.
pub(crate) fn difference(after: &Stats, before: &Stats) -> Stats {
    let mut stats = *after;
    stats.commits -= before.commits;
    stats.commits_read_only -= before.commits_read_only;
    stats.aborts -= before.aborts;
    stats.log_bytes -= before.log_bytes;
    stats.flushes -= before.flushes;
    stats.versions_installed -= before.versions_installed;
    stats.versions_collected -= before.versions_collected;
    stats.chain_steps -= before.chain_steps;
    stats
}

/// What the workers' threads get.
struct Plan<W> {
    workload: Arc<W>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    done: Vec<Arc<AtomicU64>>,
    common: Common,
    workers: usize,
    now: u64,
    from: u64,
    until: u64,
    transactions: Option<u64>,
}

/// What a worker's sessions share.
struct Context<W> {
    plan: Arc<Plan<W>>,
    worker: Worker,
    done: Arc<AtomicU64>,
    /// Transactions that may still begin.
    left: Cell<u64>,
    arrivals: Option<RefCell<Arrivals>>,
    timers: RefCell<Timers>,
    /// Draws the pauses.
    pauses: RefCell<Rng>,
    measured: RefCell<Measured>,
}

/// A Poisson process.
struct Arrivals {
    rng: Rng,
    mean_ns: f64,
    next: f64,
}

impl Arrivals {
    fn step(&mut self) {
        self.next += self.rng.exponential() * self.mean_ns;
    }
}

/// Sessions that wait for a moment, the earliest on top.
#[derive(Default)]
struct Timers(BinaryHeap<Timer>);

struct Timer {
    at: u64,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.at == other.at
    }
}
impl Eq for Timer {}
impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        other.at.cmp(&self.at)
    }
}

fn run_worker<W: Workload>(plan: &Arc<Plan<W>>, worker: usize) -> Measured {
    let common = &plan.common;
    let executor = Executor::new(&plan.engine, WorkerId(worker as u16));
    let seat = |session| Seat {
        worker,
        workers: plan.workers,
        session,
    };
    let transactions = plan.transactions.map_or(u64::MAX, |n| {
        let part = seat(0).part(n);
        part.end - part.start
    });
    // Each stream of random numbers has a number of its own: arrivals, then sessions.
    let stream = |n: usize| {
        let part = (worker as u64) << 32 | n as u64;
        Rng::of_part(common.seed, part)
    };
    let arrivals = common.open_loop.map(|rate| {
        let mut arrivals = Arrivals {
            rng: stream(0),
            mean_ns: 1e9 * plan.workers as f64 / rate,
            next: plan.now as f64,
        };
        arrivals.step();
        RefCell::new(arrivals)
    });
    let context = Rc::new(Context {
        worker: executor.worker().clone(),
        done: plan.done[worker].clone(),
        left: Cell::new(transactions),
        arrivals,
        timers: RefCell::default(),
        pauses: RefCell::new(stream(common.in_flight + 1)),
        measured: RefCell::new(Measured::new(W::KINDS.len())),
        plan: Arc::clone(plan),
    });
    for session in 0..common.in_flight {
        let client = plan.workload.client(seat(session), stream(session + 1));
        executor.spawn(run_session(Rc::clone(&context), client));
    }
    executor.run_with(&mut |would_park| context.turn(would_park));
    drop(executor);
    context.measured.take()
}

async fn run_session<W: Workload>(context: Rc<Context<W>>, mut client: W::Client) {
    let plan = Arc::clone(&context.plan);
    while let Some(began) = context.begin().await {
        let kind = plan.workload.draw(&mut client);
        match context.transact(kind, began, &mut client).await {
            Ok(()) => {}
            Err(why) => {
                plan.failure.lock().get_or_insert(why);
                plan.stop.store(true, Ordering::Relaxed);
                return;
            }
        }
        // A session that never waits lets the others have their turn.
        yield_now().await;
    }
}

impl<W: Workload> Context<W> {
    fn now(&self) -> u64 {
        self.plan.clock.monotonic().as_nanos()
    }

    /// Waits for the next transaction to begin; `None`: there is none. Gives when it began, or should have.
    async fn begin(&self) -> Option<u64> {
        let plan = &*self.plan;
        if plan.stop.load(Ordering::Relaxed) {
            return None;
        }
        let now = self.now();
        let Some(arrivals) = &self.arrivals else {
            self.left.set(self.left.get().checked_sub(1)?);
            return (now < plan.until).then_some(now);
        };
        let at = {
            let mut arrivals = arrivals.borrow_mut();
            if now >= plan.until {
                self.count_unserved(&mut arrivals);
                return None;
            }
            let at = arrivals.next as u64;
            if at >= plan.until {
                return None;
            }
            arrivals.step();
            at
        };
        self.wait_until(at).await;
        (!plan.stop.load(Ordering::Relaxed)).then_some(at)
    }

    /// Waits for a moment; not at all if it is past, and no longer than until the run is stopped.
    async fn wait_until(&self, at: u64) {
        let mut waits = false;
        poll_fn(|cx| {
            if self.now() >= at || (waits && self.plan.stop.load(Ordering::Relaxed)) {
                return Poll::Ready(());
            }
            waits = true;
            self.timers.borrow_mut().0.push(Timer {
                at,
                waker: cx.waker().clone(),
            });
            Poll::Pending
        })
        .await;
    }

    /// Lets some time pass before a transaction is run again for the `tries`th time.
    async fn pause(&self, tries: u32) {
        let most = PAUSE_NS
            .saturating_mul(1 << tries.min(16))
            .min(PAUSE_NS_MAX);
        let pause = self.pauses.borrow_mut().below(most);
        self.wait_until(self.now() + pause).await;
    }

    /// Who arrived and was not served has waited until now at least: left out, an overload would look quick.
    fn count_unserved(&self, arrivals: &mut Arrivals) {
        let mut measured = self.measured.borrow_mut();
        while (arrivals.next as u64) < self.plan.until {
            let at = arrivals.next as u64;
            measured.backlog += 1;
            measured.unserved.0.saturating_record(self.plan.until - at);
            arrivals.step();
        }
    }

    /// Wakes who has waited long enough, and says for how long the thread may park.
    fn turn(&self, would_park: bool) -> Idle {
        let mut timers = self.timers.borrow_mut();
        if timers.0.is_empty() {
            return Idle::Park;
        }
        let now = self.now();
        let stop = self.plan.stop.load(Ordering::Relaxed);
        let mut woken = false;
        while timers.0.peek().is_some_and(|timer| stop || timer.at <= now) {
            if let Some(timer) = timers.0.pop() {
                timer.waker.wake();
                woken = true;
            }
        }
        match timers.0.peek() {
            _ if woken || !would_park => Idle::Again,
            Some(timer) if timer.at > now + SPIN_NS => Idle::ParkFor(Duration::from_nanos(
                (timer.at - now - SPIN_NS).min(PARK_NS_MAX),
            )),
            Some(_) => Idle::Again,
            None => Idle::Park,
        }
    }

    /// Runs the drawn transaction until it is committed, or rolled back as it should be.
    async fn transact(
        &self,
        kind: usize,
        began: u64,
        client: &mut W::Client,
    ) -> Result<(), String> {
        let plan = &*self.plan;
        // Without a log worth waiting for, a transaction is complete when it is visible.
        let waits = plan.common.home != Home::Discarded;
        let mut tries = 0;
        loop {
            let mut txn = self.worker.begin(plan.common.isolation);
            let verdict = plan.workload.execute(client, &mut txn).await;
            let worked = self.now();
            let failed = match verdict {
                Ok(Verdict::Commit) => match txn.precommit().await.map_err(Stop::from) {
                    Ok(receipt) => {
                        plan.workload.committed(client, receipt.csn);
                        let wrote = receipt.csn.is_some();
                        if waits {
                            let acknowledged = plan.engine.acknowledged(receipt.waits_for).await;
                            acknowledged.map_err(|error| error.to_string())?;
                        }
                        self.record(kind, (Verdict::Commit, wrote), began, worked);
                        return Ok(());
                    }
                    Err(failed) => failed,
                },
                Ok(Verdict::RollBack) => {
                    // The answer tells of what was read.
                    let read = txn.awaits();
                    txn.abort();
                    if waits {
                        let acknowledged = plan.engine.acknowledged(read).await;
                        acknowledged.map_err(|error| error.to_string())?;
                    }
                    self.record(kind, (Verdict::RollBack, false), began, worked);
                    return Ok(());
                }
                Err(failed) => {
                    txn.abort();
                    failed
                }
            };
            {
                let mut measured = self.measured.borrow_mut();
                let counts = &mut measured.kinds[kind];
                match failed {
                    Stop::Conflict => counts.conflicts += 1,
                    Stop::Deadlock => counts.deadlocks += 1,
                    Stop::Broken(why) => return Err(why),
                }
            }
            self.pause(tries).await;
            tries += 1;
            if plan.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn record(&self, kind: usize, (verdict, wrote): (Verdict, bool), began: u64, worked: u64) {
        let plan = &*self.plan;
        let end = self.now();
        self.done
            .store(self.done.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // What ends within the time counts. What began within it and ends later has waited, too: left out, a run would end
        // without its slowest transactions.
        if end < plan.from || began >= plan.until {
            return;
        }
        let mut measured = self.measured.borrow_mut();
        let measured = &mut *measured;
        let counts = &mut measured.kinds[kind];
        if end < plan.until {
            let span = measured.span.get_or_insert((began, end));
            *span = (span.0.min(began), span.1.max(end));
            let first = plan.from.max(plan.now);
            let step = (end.saturating_sub(first) / STEP_NS) as usize;
            if measured.timeline.len() <= step {
                measured.timeline.resize(step + 1, 0);
            }
            measured.timeline[step] += 1;
            match verdict {
                Verdict::Commit => counts.committed += 1,
                Verdict::RollBack => counts.rolled_back += 1,
            }
        }
        counts.commit.saturating_record(end - worked);
        if wrote {
            counts.writing.saturating_record(end - worked);
        }
        counts.whole.saturating_record(end - began);
    }
}
