//! Runs a workload: loads, drives sessions on every worker, measures, and checks what is left.
//!
//! A worker's thread is a [`WorkerLoop`] with many sessions. A session draws a transaction, runs it, pre-commits, waits
//! for the acknowledgment, and begins again; while it waits, other sessions of the worker run. Latencies are taken at
//! three moments: the beginning (open loop: the scheduled arrival, however late it is served), the end of forward
//! processing, just before the pre-commit, and the acknowledgment.
//!
//! Does not: know any workload, or print.

mod sessions;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use logstead_engine::{
    CommitWait, Csn, Engine, EngineOptions, Env, FlushMode, Isolation, LogHome, RecoveryReport,
    Stats, Table, Txn, Worker, WorkerId, WorkerLoop, yield_now,
};
use logstead_env::JoinHandle;
use parking_lot::Mutex;

use self::sessions::{Plan, run_worker};
use crate::access::TxnError;
use crate::home;
use crate::measure::Measurements;
use crate::options::{CommonOptions, RunConfig as Configured, RunLimit};
use crate::path::PathFigures;
use crate::random::Rng;
use crate::resource_usage::ResourceUsage;
use crate::{BenchError, ProgressListener};

/// Rows inserted by one transaction of the load.
const LOAD_BATCH_ROWS: usize = 500;
/// Bytes of a load that wait in a lane before they are written.
const LOAD_FLUSH_BYTES: usize = 256 << 10;
/// Rows looked at by one step of garbage collection between loads.
const COLLECT_ROWS: usize = 1024;
/// How often the main thread looks at its workers.
pub(crate) const WATCH: Duration = Duration::from_millis(5);

/// How a transaction wants to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    Commit,
    /// As the workload's specification demands.
    RollBack,
}

/// Which part of the work is a thread's or a session's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkShare {
    /// The worker, and how many there are.
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    /// The session of the worker.
    pub(crate) session: usize,
}

impl WorkShare {
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
pub struct ConsistencyCheck {
    /// What must hold.
    pub name: String,
    /// What is wrong, if it does not.
    pub result: Result<(), String>,
}

impl ConsistencyCheck {
    pub(crate) fn new(name: impl Into<String>, result: Result<(), String>) -> ConsistencyCheck {
        ConsistencyCheck {
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
        seat: WorkShare,
        rng: Rng,
        into: &mut Loader,
    ) -> impl Future<Output = Result<(), TxnError>>;

    /// A session's client.
    fn client(&self, seat: WorkShare, rng: Rng) -> Self::Client;

    /// Chooses the next transaction and its inputs; gives its kind. A transaction that is run again keeps them.
    fn draw(&self, client: &mut Self::Client) -> usize;

    /// The transaction's forward processing.
    fn execute(
        &self,
        client: &mut Self::Client,
        txn: &mut Txn,
    ) -> impl Future<Output = Result<TransactionEnd, TxnError>>;

    /// The transaction drawn last is committed, with a CSN if it wrote: what the checks expect changes.
    fn committed(&self, client: &mut Self::Client, csn: Option<Csn>);

    /// What must hold when all sessions have ended; `txn` sees everything.
    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck>;
}

/// Inserts rows in batches.
pub(crate) struct Loader {
    worker: Worker,
    txn: Option<Txn>,
    rows: usize,
    newest: CommitWait,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Loader {
    /// For who loads everything by one worker.
    pub(crate) fn alone(worker: Worker) -> Loader {
        Loader {
            worker,
            txn: None,
            rows: 0,
            newest: CommitWait::none(),
            stop: Arc::default(),
            done: Arc::default(),
        }
    }

    /// Commits the rest and waits until all of it is durable.
    pub(crate) async fn finish(mut self, engine: &Engine) -> Result<(), TxnError> {
        self.commit().await?;
        let acknowledged = engine.acknowledged(self.newest).await;
        acknowledged.map_err(|error| TxnError::Broken(error.to_string()))
    }

    /// Inserts a row.
    pub(crate) async fn insert(&mut self, table: &Arc<Table>, row: &[u8]) -> Result<(), TxnError> {
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

    async fn commit(&mut self) -> Result<(), TxnError> {
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
            return Err(TxnError::Broken(INTERRUPTED.into()));
        }
        Ok(())
    }
}

/// The failure of a load that was interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted before anything was measured";

/// What one run gave.
#[derive(Clone, Debug)]
pub struct RunOutcome {
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
    pub measured: Measurements,
    /// What the engine counted during the run, warm-up included.
    pub stats: Stats,
    /// What the commit path counted, likewise.
    pub path: PathFigures,
    /// Other figures, by name with unit.
    pub figures: BTreeMap<String, f64>,
    /// What was checked.
    pub checks: Vec<ConsistencyCheck>,
    /// It was ended from outside.
    pub interrupted: bool,
}

impl RunOutcome {
    /// Nothing yet.
    pub(crate) fn empty(cell: &Configured) -> RunOutcome {
        RunOutcome {
            cell: cell.clone(),
            repetition: 0,
            home: String::new(),
            rows: 0,
            load_seconds: 0.0,
            seconds: 0.0,
            kinds: Vec::new(),
            measured: Measurements::default(),
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
pub(crate) struct BenchEngine {
    pub(crate) engine: Engine,
    pub(crate) env: Env,
    pub(crate) workers: usize,
    pub(crate) stop: Arc<AtomicBool>,
    home: String,
    failure: Arc<Mutex<Option<String>>>,
    /// Per worker: rows loaded, or transactions done.
    done: Vec<Arc<AtomicU64>>,
}

impl BenchEngine {
    /// Opens an engine. `run` tells the runs of one command apart, if there are several.
    pub(crate) fn open(
        common: &CommonOptions,
        run: Option<usize>,
        env: &Env,
        stop: &Arc<AtomicBool>,
    ) -> Result<BenchEngine, BenchError> {
        let home = home::open(&common.home, run, env)?;
        BenchEngine::on(common, home, env, stop).map(|(stage, _)| stage)
    }

    /// The same on a home that may hold a log already.
    pub(crate) fn on(
        common: &CommonOptions,
        home: LogHome,
        env: &Env,
        stop: &Arc<AtomicBool>,
    ) -> Result<(BenchEngine, RecoveryReport), BenchError> {
        let workers = common.workers;
        let described = home.describe();
        let options = EngineOptions {
            workers,
            instances: common.instances,
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
        let stage = BenchEngine {
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
        progress: &mut dyn ProgressListener,
    ) -> Result<(u64, f64), BenchError> {
        let begun = self.env.clock.monotonic();
        let (engine, workers) = (self.engine.clone(), self.workers);
        let (stop, failure, done) = (self.stop.clone(), self.failure.clone(), self.done.clone());
        let workload = Arc::clone(workload);
        let body = move |worker: usize| {
            let worker_loop = WorkerLoop::new(&engine, WorkerId(worker as u16));
            let seat = WorkShare {
                worker,
                workers,
                session: 0,
            };
            let mut loader = Loader {
                worker: worker_loop.worker().clone(),
                txn: None,
                rows: 0,
                newest: CommitWait::none(),
                stop: stop.clone(),
                done: done[worker].clone(),
            };
            let result = worker_loop.block_on(async {
                let rng = Rng::of_part(!seed, worker as u64);
                workload.load(seat, rng, &mut loader).await?;
                loader.commit().await?;
                done[worker].store(loader.rows as u64, Ordering::Relaxed);
                engine
                    .acknowledged(loader.newest)
                    .await
                    .map_err(|error| TxnError::Broken(error.to_string()))
            });
            if let Err(stopped) = result {
                failure.lock().get_or_insert(describe(stopped));
                stop.store(true, Ordering::Relaxed);
            }
            while worker_loop.worker().collect_garbage(COLLECT_ROWS) {}
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
        progress: &mut dyn ProgressListener,
    ) -> Result<RunOutcome, BenchError> {
        let common = &cell.common;
        let before = self.engine.stats();
        let path_before = PathFigures::of(&self.engine);
        let spent_before = ResourceUsage::at(self.engine.home(), &self.env);
        let now = self.env.clock.monotonic().as_nanos();
        let (from, until, transactions) = match common.until {
            RunLimit::Seconds { measured, warmup } => {
                let from = now + nanos(warmup);
                (from, from + nanos(measured), None)
            }
            RunLimit::Transactions(n) => (0, u64::MAX, Some(n)),
        };
        let all = Arc::new(Mutex::new(Measurements::new(W::KINDS.len())));
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
        let spent = ResourceUsage::at(self.engine.home(), &self.env).since(&spent_before);
        let stats = difference(&self.engine.stats(), &before);
        let interrupted = self.stop.load(Ordering::Relaxed);
        let measured = std::mem::take(&mut *all.lock());
        let seconds = match common.until {
            RunLimit::Transactions(_) => measured.span.map_or(0, |(a, b)| b - a),
            RunLimit::Seconds { .. } => end.min(until).saturating_sub(from),
        };
        progress.checking();
        let worker = self.engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::RepeatableRead);
        let checks = workload.check(&mut txn);
        drop(txn);
        let mut figures = spent.figures(stats.commits, "commit");
        figures.extend(instance_figures(&stats));
        Ok(RunOutcome {
            home: self.home.clone(),
            seconds: seconds as f64 / 1e9,
            kinds: W::KINDS.to_vec(),
            measured,
            figures,
            stats,
            path,
            checks,
            interrupted,
            ..RunOutcome::empty(cell)
        })
    }
}

fn describe(stop: TxnError) -> String {
    match stop {
        TxnError::Conflict => "a serialization failure while nobody else wrote".into(),
        TxnError::Deadlock => "a deadlock while nobody else wrote".into(),
        TxnError::Broken(why) => why,
    }
}

/// How transactions kept to the instances of their workers, if there are several.
fn instance_figures(stats: &Stats) -> Vec<(String, f64)> {
    let transactions = stats.transactions_inside + stats.transactions_across;
    if transactions == 0 {
        return Vec::new();
    }
    let each = |count: u64| count as f64 / transactions as f64;
    vec![
        (
            "transactions inside one instance, per 100".into(),
            each(stats.transactions_inside) * 100.0,
        ),
        (
            "foreign accesses per transaction".into(),
            each(stats.foreign_accesses),
        ),
    ]
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
    stats.transactions_inside -= before.transactions_inside;
    stats.transactions_across -= before.transactions_across;
    stats.foreign_accesses -= before.foreign_accesses;
    stats
}
