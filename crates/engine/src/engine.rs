//! The engine: opening, tables and indexes by number, the horizon, acknowledgment, failure.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use crossbeam_utils::CachePadded;
use foldhash::fast::FixedState;
use logstead_commit::{
    Horizon, HorizonTracking, LogFailed, Progress, Reached, Tracking, Watermark,
};
use logstead_env::Env;
use logstead_home::LogHome;
use logstead_types::{Csn, Dsn, IndexId, TableId, WorkerId};
use logstead_wal::{FlushMode, Lane, LaneEvent};
use parking_lot::{Mutex, RwLock};

use crate::error::OpenError;
use crate::garbage::Garbage;
use crate::index::{Index, KeyExtractor};
use crate::memory::{Account, Charge, Memory};
use crate::serializable::Certifier;
use crate::snapshots::{Bounds, Published};
use crate::stats::{Counters, Stats};
use crate::table::Table;
use crate::wait::WaitGraph;
use crate::worker::Worker;

/// How an engine is opened.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Worker threads.
    pub workers: usize,
    /// Workers that share a lane: 1 is a lane per worker.
    pub workers_per_lane: usize,
    /// Open a log that is corrupt before its end, losing what follows.
    pub accept_data_loss: bool,
    /// The most that rows, indexes and buffers may take.
    pub memory_bytes: u64,
    /// Threads that apply the log at the start; 0 stands for as many as there are cores, 1 for the calling one alone.
    pub replay_threads: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            workers: 1,
            workers_per_lane: 1,
            accept_data_loss: false,
            memory_bytes: u64::MAX,
            replay_threads: 0,
        }
    }
}

type FailureHook = Box<dyn Fn(&LogFailed) + Send + Sync>;

pub(crate) struct EngineInner {
    pub(crate) horizon: Horizon,
    /// The horizon, for those who wait for it.
    mark: Watermark,
    pub(crate) tracking: Box<dyn Tracking>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) workers_per_lane: usize,
    pub(crate) published: Box<[CachePadded<Published>]>,
    pub(crate) counters: Box<[CachePadded<Counters>]>,
    pub(crate) workers_taken: Box<[AtomicBool]>,
    /// Worker handles made so far: keeps transaction numbers apart.
    pub(crate) handles: AtomicU64,
    pub(crate) tables: RwLock<HashMap<TableId, Arc<Table>, FixedState>>,
    pub(crate) waits: WaitGraph,
    /// How many tables were dropped: their garbage need not be collected row by row.
    pub(crate) drops: AtomicU64,
    pub(crate) certifier: Certifier,
    /// Garbage of workers whose handles are gone.
    pub(crate) orphans: Mutex<Vec<Garbage>>,
    failure_hook: Mutex<Option<FailureHook>>,
    /// The lanes' buffers.
    _buffers: Charge,
    account: Account,
}

/// The engine. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

impl AsRef<Watermark> for Engine {
    fn as_ref(&self) -> &Watermark {
        &self.0.mark
    }
}

impl EngineInner {
    /// Every lane's lowest CSN that is not durable.
    fn lanes_lowest(&self) -> Csn {
        self.lanes
            .iter()
            .map(Lane::first_not_durable)
            .min()
            .unwrap_or(Csn(u64::MAX))
    }

    fn advance_horizon(&self) {
        if self.horizon.advance(|| self.lanes_lowest()).is_some() {
            self.mark.advance(self.horizon.get().0);
        }
    }

    #[inline]
    pub(crate) fn memory(&self) -> &'static Memory {
        self.account.memory()
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::read(&self.horizon, &self.published)
    }

    fn fail(&self, failure: LogFailed) {
        self.mark.fail(failure.clone());
        if let Some(hook) = &*self.failure_hook.lock() {
            hook(&failure);
        }
    }
}

impl Engine {
    /// Opens the log at `home`, brings back every table's rows, and begins a new epoch. Indexes are made again by
    /// [`Engine::create_index`] and [`Txn::build_index`](crate::Txn::build_index).
    pub fn open(
        options: EngineOptions,
        home: Arc<dyn LogHome>,
        env: Env,
    ) -> Result<(Engine, crate::RecoveryReport), OpenError> {
        if options.workers == 0
            || options.workers > usize::from(u16::MAX)
            || options.workers_per_lane == 0
        {
            return Err(OpenError::Options(
                "workers and workers per lane must be at least 1".into(),
            ));
        }
        crate::replay::open(options, home, env)
    }

    /// An engine over open lanes, drawing CSNs from `next` on.
    pub(crate) fn with_lanes(
        options: &EngineOptions,
        lanes: Vec<Lane>,
        next: Csn,
        tables: HashMap<TableId, Arc<Table>, FixedState>,
        account: Account,
        buffers: Charge,
    ) -> Engine {
        let workers = options.workers;
        let horizon = Horizon::new(workers, next);
        let engine = Engine(Arc::new(EngineInner {
            mark: Watermark::new(horizon.get().0),
            horizon,
            tracking: Box::new(HorizonTracking),
            lanes,
            workers_per_lane: options.workers_per_lane,
            published: (0..workers).map(|_| Published::new()).collect(),
            counters: (0..workers).map(|_| CachePadded::default()).collect(),
            workers_taken: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            handles: AtomicU64::new(1),
            tables: RwLock::new(tables),
            waits: WaitGraph::default(),
            drops: AtomicU64::new(0),
            certifier: Certifier::new(),
            orphans: Mutex::default(),
            failure_hook: Mutex::default(),
            _buffers: buffers,
            account,
        }));
        for lane in &engine.0.lanes {
            let weak = Arc::downgrade(&engine.0);
            lane.set_listener(Box::new(move |event| {
                let Some(engine) = weak.upgrade() else { return };
                match event {
                    LaneEvent::Durable => engine.advance_horizon(),
                    LaneEvent::Failed(error) => engine.fail(LogFailed::new(error.to_string())),
                    // Who waits for room registered a waker with the lane.
                    LaneEvent::Room => {}
                }
            }));
        }
        engine
    }

    pub(crate) fn inner(&self) -> &EngineInner {
        &self.0
    }

    /// How many workers it has.
    pub fn worker_count(&self) -> usize {
        self.0.published.len()
    }

    /// The handle of a worker, to be used on that worker's thread.
    ///
    /// # Panics
    /// If there is no such worker, or its handle is in use: two threads that draw as one worker would break the horizon.
    pub fn worker(&self, id: WorkerId) -> Worker {
        let taken = &self.0.workers_taken[usize::from(id.0)];
        assert!(
            !taken.swap(true, Ordering::SeqCst),
            "the handle of worker {id} is in use"
        );
        Worker::new(self.clone(), id)
    }

    /// What its rows, indexes and buffers take, and the most they may.
    pub fn memory(&self) -> &'static Memory {
        self.0.memory()
    }

    /// The table with this number, made if there is none.
    pub fn create_table(&self, id: TableId) -> Arc<Table> {
        let workers = self.worker_count();
        self.0
            .tables
            .write()
            .entry(id)
            .or_insert_with(|| Arc::new(Table::new(id, workers, self.0.memory())))
            .clone()
    }

    /// The table with this number.
    pub fn table(&self, id: TableId) -> Option<Arc<Table>> {
        self.0.tables.read().get(&id).cloned()
    }

    /// All tables.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.0.tables.read().values().cloned().collect()
    }

    /// Forgets a table. Its memory is free when those who still have it are done with it; garbage collection lets go of it
    /// by itself.
    pub fn drop_table(&self, id: TableId) {
        if let Some(table) = self.0.tables.write().remove(&id) {
            table.mark_dropped();
            self.0.drops.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Keeps a new index with the table: every later write maintains it. It starts empty;
    /// [`Txn::build_index_step`](crate::Txn::build_index_step) fills it while writers go on. Gives the one that has the
    /// number already, if any.
    pub fn create_index(
        &self,
        table: &Arc<Table>,
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
    ) -> Arc<Index> {
        let index = table.attach(Index::new(id, unique, extractor, table.rows.clone()));
        index.set_attached(self.0.certifier.index_attached());
        index
    }

    /// Forgets an index.
    pub fn drop_index(&self, table: &Arc<Table>, id: IndexId) {
        table.detach(id);
    }

    /// Every CSN below it is durable and committed.
    pub fn horizon(&self) -> Csn {
        self.0.horizon.get()
    }

    /// The next CSN to be drawn.
    pub fn next_csn(&self) -> Csn {
        self.0.horizon.counter()
    }

    /// May the transaction with this CSN be acknowledged?
    #[inline]
    pub fn is_committed(&self, csn: Csn) -> bool {
        let progress = Progress {
            horizon: Csn(self.0.mark.get()),
            hardened: true,
        };
        self.0.tracking.may_acknowledge(csn, Dsn(csn.0), progress)
    }

    /// Ready when the horizon has passed `csn`: at once, without allocating, if it has.
    #[inline]
    pub fn acknowledged(&self, csn: Csn) -> Acknowledged {
        Acknowledged(Watermark::wait(self.clone(), csn.0 + 1))
    }

    /// Calls `hook` when the log cannot be written any more: the process must stop.
    pub fn set_failure_hook(&self, hook: Box<dyn Fn(&LogFailed) + Send + Sync>) {
        if let Some(failure) = self.0.mark.failure() {
            hook(&failure);
        }
        *self.0.failure_hook.lock() = Some(hook);
    }

    /// Flushes every lane and waits until everything drawn so far is durable: for shutdown.
    pub async fn flush_all_and_wait(&self) -> Result<(), LogFailed> {
        let last = self.0.horizon.counter();
        for lane in &self.0.lanes {
            lane.flush(FlushMode::Handoff);
        }
        if last.0 > 1 {
            self.acknowledged(Csn(last.0 - 1)).await
        } else {
            Ok(())
        }
    }

    /// The oldest snapshot in use, or what the next one would be.
    pub fn oldest_snapshot(&self) -> Csn {
        self.0.bounds().oldest()
    }

    /// A bounded step of garbage collection on `worker`; see [`Worker::collect_garbage`].
    pub fn collect_garbage(&self, worker: &Worker, budget: usize) -> bool {
        worker.collect_garbage(budget)
    }

    /// What all workers have counted.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            lock_waiters: self.0.waits.len() as u64,
            ..Stats::default()
        };
        for counters in &self.0.counters {
            stats.add(counters);
        }
        stats
    }
}

/// Future of [`Engine::acknowledged`].
#[must_use = "a wait does nothing unless polled"]
pub struct Acknowledged(Reached<Engine>);

impl Future for Acknowledged {
    type Output = Result<(), LogFailed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}
