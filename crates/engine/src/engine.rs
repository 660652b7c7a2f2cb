//! The engine: opening, tables and indexes by number, the horizon, acknowledgment, failure.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use foldhash::fast::FixedState;
use logstead_commit::{
    AckFuture, CommitOptions, CommitPath, CommitWait, Handovers, Horizon, LaneStats, Latencies,
    LogFailed, PriorLockHolder,
};
use logstead_env::Env;
use logstead_home::LogHome;
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId, WorkerId};
use logstead_wal::Lane;
use logstead_wal::lease::{Lease, LeaseOptions};
use parking_lot::{Mutex, RwLock};

use crate::as_of::AsOfDatabases;
use crate::fault_error::FaultError;
use crate::garbage::Garbage;
use crate::index::{Index, KeyExtractor};
use crate::load::{ChunkLoader, FaultLoader, LogTails, LoggedSources};
use crate::logged_chunks::LoggedTotals;
use crate::memory::{Account, Charge, Memory};
use crate::memory_queue::MemoryQueue;
use crate::page_loader::FaultQueue;
use crate::page_store::{
    CheckpointBase, Checkpoints, NewestCheckpoint, PageLoader, PageServices, ReplicaBase,
    ReplicaHolds, ReplicaTables,
};
use crate::partition::Instances;
use crate::prewarm_stats::PrewarmCounters;
use crate::rows::TableRows;
use crate::serializable::Certifier;
use crate::snapshot_pins::SnapshotPins;
use crate::snapshots::{PublishedSnapshots, VisibilityBounds};
use crate::stats::{Counters, Stats};
use crate::table::{TEMPORARY_AT_REPLICAS, Table};
use crate::wait_graph::{LockWaitInfo, WaitGraph};
use crate::xid::XidRegistry;

/// How an engine is opened.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Worker threads.
    pub workers: usize,
    /// Among how many instances the workers, and the rows of divided tables, are divided: at least one, and at most as
    /// many as there are workers and virtual partitions. What is more than that counts as that.
    pub instances: usize,
    /// How transactions are committed.
    pub commit: CommitOptions,
    /// Records of updates carry the changed columns only; else whole rows (to measure what that saves).
    pub delta_records: bool,
    /// Open a log that is corrupt before its end, losing what follows.
    pub accept_data_loss: bool,
    /// The most that rows, indexes and buffers may take.
    pub memory_bytes: u64,
    /// How the right to write is taken, at homes that no kernel's lock keeps.
    pub lease: LeaseOptions,
    /// Threads that load the checkpoint and apply the log at the start; 0 stands for as many as there are cores, 1 for
    /// the calling one alone.
    pub replay_threads: usize,
    /// The most that checkpoints write in a second; 0 stands for no limit.
    pub checkpoint_bandwidth_bytes: u64,
    /// Which checkpoints are kept as restore points.
    pub retention: logstead_checkpoint::Retention,
    /// How long the log and older checkpoints are kept for replicas that follow by a stream and need them; zero: not at
    /// all.
    pub replica_keep_time: Duration,
    /// Threads that bring in what is not in memory; 0: who waits for it does.
    pub fault_threads: usize,
    /// For tests of those who call: one in so many operations, by chance that is the same every time, finds absent what
    /// is there. 0: none. Heeded only where debug assertions are.
    pub absent_one_in: u32,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            workers: 1,
            instances: 1,
            commit: CommitOptions::default(),
            delta_records: true,
            accept_data_loss: false,
            memory_bytes: u64::MAX,
            lease: LeaseOptions::default(),
            replay_threads: 0,
            checkpoint_bandwidth_bytes: 0,
            retention: logstead_checkpoint::Retention::default(),
            replica_keep_time: Duration::ZERO,
            fault_threads: 4,
            absent_one_in: 0,
        }
    }
}

pub(crate) struct EngineInner {
    pub(crate) path: Arc<CommitPath>,
    home: LogHome,
    database: DatabaseId,
    epoch: Epoch,
    pub(crate) delta_records: bool,
    pub(crate) absent_one_in: u32,
    pub(crate) instances: Instances,
    /// Each worker's, and behind them whoever takes a checkpoint.
    pub(crate) published: Box<[CachePadded<PublishedSnapshots>]>,
    pub(crate) counters: Box<[CachePadded<Counters>]>,
    pub(crate) workers_taken: Box<[AtomicBool]>,
    /// Blocks of transaction numbers that workers have taken, each for itself; the first is 1.
    pub(crate) txn_id_blocks: AtomicU64,
    pub(crate) tables: Arc<TableMap>,
    pub(crate) waits: WaitGraph,
    /// How many tables were dropped: their garbage need not be collected row by row.
    pub(crate) drops: AtomicU64,
    pub(crate) faults: FaultQueue,
    pub(crate) pages: Arc<PageLoader>,
    pub(crate) chunks: Arc<ChunkLoader>,
    /// Who wants memory, and what was evicted.
    pub(crate) memory_queue: Arc<MemoryQueue>,
    /// What was brought in of what the engine before had in memory.
    pub(crate) prewarm: PrewarmCounters,
    /// The newest published checkpoint.
    pub(crate) newest: Arc<NewestCheckpoint>,
    pub(crate) certifier: Certifier,
    /// Locks of rows that were given back, by mode, without a version that tells of it.
    pub(crate) rows_handed_over: Handovers,
    /// The same of locks that are the callers' own.
    callers_handed_over: Handovers,
    /// Ids of transactions.
    pub(crate) xids: XidRegistry,
    /// Snapshots that transactions hand to others.
    pub(crate) exported: SnapshotPins,
    /// Garbage of workers whose handles are gone.
    pub(crate) orphans: Mutex<Vec<Garbage>>,
    lease: Option<Arc<Lease>>,
    pub(crate) env: Env,
    pub(crate) checkpoints: Checkpoints,
    /// Restore points that are read.
    pub(crate) pasts: AsOfDatabases,
    /// The log that it follows, if it is a replica.
    pub(crate) replica_base: Option<Arc<ReplicaBase>>,
    /// The lanes' buffers.
    _buffers: Charge,
    account: Account,
}

/// Tables by their numbers.
type TableMap = RwLock<HashMap<TableId, Arc<Table>, FixedState>>;

/// A log that is open for writing.
pub(crate) struct OpenLog {
    pub(crate) home: LogHome,
    pub(crate) lanes: Vec<Lane>,
    /// The right to write, where no kernel's lock gives it.
    pub(crate) lease: Option<Arc<Lease>>,
    /// The first CSN to be drawn.
    pub(crate) next: Csn,
    /// What the next checkpoint is taken from.
    pub(crate) base: CheckpointBase,
    /// Whose log it is; of a replica, whose it follows.
    pub(crate) database: DatabaseId,
    /// Of a replica, whose lanes and base are nobody's: the log that it follows.
    pub(crate) replica_base: Option<Arc<ReplicaBase>>,
    /// What the start has left to the log.
    pub(crate) logged: Arc<LoggedTotals>,
}

/// The engine. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<EngineInner>);

impl EngineInner {
    #[inline]
    pub(crate) fn horizon(&self) -> &Horizon {
        self.path.csns()
    }

    #[inline]
    pub(crate) fn memory(&self) -> &'static Memory {
        self.account.memory()
    }

    /// Where the snapshot of a checkpoint is published.
    pub(crate) fn published_by_checkpoints(&self) -> &PublishedSnapshots {
        &self.published[self.counters.len()]
    }

    /// Reads rows, at a replica again if they are gone because there is a newer checkpoint.
    pub(crate) fn read_rows<T>(
        &self,
        mut read: impl FnMut() -> Result<T, FaultError>,
    ) -> Result<T, FaultError> {
        match &self.replica_base {
            Some(base) => base.read_rows(read),
            None => read(),
        }
    }

    pub(crate) fn bounds(&self) -> VisibilityBounds {
        VisibilityBounds::read(self.horizon(), &self.published, &self.exported)
    }
}

/// The tables of an engine that follows a log.
struct TablesOfReplica {
    tables: Arc<TableMap>,
    memory_queue: Arc<MemoryQueue>,
}

impl ReplicaTables for TablesOfReplica {
    fn rows_of(&self, table: TableId) -> Option<Arc<TableRows>> {
        let tables = self.tables.read();
        tables.get(&table).map(|table| Arc::clone(&table.rows))
    }

    fn all_rows(&self) -> Vec<Arc<TableRows>> {
        let tables = self.tables.read();
        let rows = tables.values().filter(|table| !table.is_temporary());
        rows.map(|table| Arc::clone(&table.rows)).collect()
    }

    fn has_adopted(&self) {
        self.memory_queue.checkpoint_begins();
        self.memory_queue.checkpoint_ends(Ok(()));
    }
}

impl Engine {
    /// An engine over an open log.
    pub(crate) fn with_lanes(
        options: &EngineOptions,
        log: OpenLog,
        tables: HashMap<TableId, Arc<Table>, FixedState>,
        account: Account,
        buffers: Charge,
        env: &Env,
    ) -> std::io::Result<Engine> {
        let OpenLog {
            home,
            lanes,
            lease,
            next,
            base,
            database,
            replica_base,
            logged,
        } = log;
        let workers = options.workers;
        let (newest, leaves, epoch) = match &replica_base {
            Some(followed) => (
                Arc::clone(&followed.newest),
                Arc::clone(&followed.leaves),
                followed.epoch,
            ),
            None => (base.shared(), base.leaves(), base.pages.epoch()),
        };
        let pages = Arc::new(PageLoader::new(home.clone(), leaves));
        let path = CommitPath::new(&options.commit, workers, lanes, next, env)?;
        if let Some(lease) = &lease {
            let path = Arc::downgrade(&path);
            lease.set_loss_listener(move |lost| {
                if let Some(path) = path.upgrade() {
                    path.fail(LogFailed::new(lost.to_string()));
                }
            });
        }
        let memory_queue = MemoryQueue::new(account.memory(), logged);
        let pasts = AsOfDatabases::new(base.place());
        let chunks = Arc::new(ChunkLoader::new(
            home.clone(),
            Arc::clone(&newest),
            Arc::clone(&memory_queue),
            account.memory(),
        ));
        let checkpoints = Checkpoints::new(
            base,
            options.checkpoint_bandwidth_bytes,
            options.retention,
            options.replica_keep_time,
            &env.clock,
        );
        if replica_base.is_none() {
            let log = || LogTails::new(home.clone(), Arc::clone(&path), epoch, account.memory());
            chunks.set_sources(LoggedSources::new(
                Arc::clone(&checkpoints.page_services),
                log,
                epoch,
            ));
        }
        let loader = FaultLoader::new(
            Arc::clone(&chunks),
            Arc::clone(&pages),
            replica_base.clone(),
        );
        let engine = Engine(Arc::new(EngineInner {
            path,
            home,
            database,
            epoch,
            delta_records: options.delta_records,
            absent_one_in: options.absent_one_in,
            instances: Instances::new(options.instances, workers),
            published: (0..=workers).map(|_| PublishedSnapshots::new()).collect(),
            counters: (0..workers).map(|_| CachePadded::default()).collect(),
            workers_taken: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            txn_id_blocks: AtomicU64::new(1),
            tables: Arc::new(RwLock::new(tables)),
            waits: WaitGraph::default(),
            drops: AtomicU64::new(0),
            faults: FaultQueue::new(Box::new(loader), options.fault_threads),
            pages,
            chunks,
            memory_queue,
            prewarm: PrewarmCounters::default(),
            newest,
            certifier: Certifier::new(),
            rows_handed_over: Handovers::default(),
            callers_handed_over: Handovers::default(),
            xids: XidRegistry::new(next),
            exported: SnapshotPins::default(),
            orphans: Mutex::default(),
            lease,
            env: env.clone(),
            pasts,
            replica_base,
            checkpoints,
            _buffers: buffers,
            account,
        }));
        if let Some(base) = &engine.0.replica_base {
            base.set_tables(Box::new(TablesOfReplica {
                tables: Arc::clone(&engine.0.tables),
                memory_queue: Arc::clone(&engine.0.memory_queue),
            }));
        }
        Ok(engine)
    }

    pub(crate) fn inner(&self) -> &EngineInner {
        &self.0
    }

    /// Clock, random numbers and files.
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// This life of the home: each start has a greater one.
    pub fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    /// What is kept for replicas that follow its log by a stream.
    pub fn replica_holds(&self) -> &Arc<ReplicaHolds> {
        &self.0.checkpoints.replica_holds
    }

    /// Replicas that write the pages of its checkpoints.
    pub fn page_services(&self) -> &Arc<PageServices> {
        &self.0.checkpoints.page_services
    }

    /// The instances that its workers and virtual partitions are divided among.
    pub fn instances(&self) -> &Instances {
        &self.0.instances
    }

    /// How many workers it has.
    pub fn worker_count(&self) -> usize {
        self.0.counters.len()
    }

    /// How long a reader of a replica waits, from now on, for a row of which nothing is left but a checkpoint that
    /// holds more than the replica has applied. Then he gets [`FaultError::TooOld`]. Elsewhere it means nothing.
    pub fn set_replica_wait(&self, most: Duration) {
        if let Some(base) = &self.0.replica_base {
            base.set_behind_wait(most);
        }
    }

    /// Where its log lives.
    pub fn home(&self) -> &LogHome {
        &self.0.home
    }

    /// What its rows, indexes and buffers take, and the most they may.
    pub fn memory(&self) -> &'static Memory {
        self.0.memory()
    }

    /// The table with this number, made if there is none.
    pub fn create_table(&self, id: TableId) -> Arc<Table> {
        let (workers, instances) = (self.worker_count(), self.0.instances.count());
        self.0
            .tables
            .write()
            .entry(id)
            .or_insert_with(|| {
                let table = Table::new(id, workers, instances, self.0.memory());
                if self.0.replica_base.is_some() {
                    table.rows.follow();
                }
                Arc::new(table)
            })
            .clone()
    }

    /// A new temporary table: what is written to it is neither logged nor in checkpoints. It is for one session, whose
    /// transactions come one after the other; see [`Table::is_temporary`]. Nobody else may have used the number.
    ///
    /// # Panics
    /// At a replica, if the log may use the number ([`TEMPORARY_AT_REPLICAS`](crate::TEMPORARY_AT_REPLICAS)): the table
    /// would get its records.
    pub fn create_temporary_table(&self, id: TableId) -> Arc<Table> {
        assert!(
            self.0.replica_base.is_none() || id >= TEMPORARY_AT_REPLICAS,
            "table {id} may be one of the log that is followed"
        );
        let workers = self.worker_count();
        self.0
            .tables
            .write()
            .entry(id)
            .or_insert_with(|| Arc::new(Table::temporary(id, workers, self.0.memory())))
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

    /// Forgets a table. Its memory is free when those who still have it are done with it; garbage collection lets go of
    /// it by itself.
    pub fn drop_table(&self, id: TableId) {
        if let Some(table) = self.0.tables.write().remove(&id) {
            table.mark_dropped();
            table.rows.logged.uncount();
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
        self.0.horizon().get()
    }

    /// The next CSN to be drawn.
    pub fn next_csn(&self) -> Csn {
        self.0.horizon().counter()
    }

    /// The right to write, and to answer, where no kernel's lock gives it: answers leave while it is valid (T15).
    #[inline]
    pub fn lease(&self) -> Option<&Arc<Lease>> {
        self.0.lease.as_ref()
    }

    /// The identity of the database, which its replicas have too.
    pub fn database(&self) -> DatabaseId {
        self.0.database
    }

    /// The way from pre-commit to acknowledgment.
    pub fn commit_path(&self) -> &Arc<CommitPath> {
        &self.0.path
    }

    /// May whoever waits for this be answered?
    #[inline]
    pub fn is_committed(&self, commit_wait: &CommitWait) -> bool {
        self.0.path.is_reached(commit_wait)
    }

    /// Ready when all of it is Committed: at once, without allocating, if it is.
    #[inline]
    pub fn acknowledged(&self, commit_wait: CommitWait) -> AckFuture<'_> {
        self.0.path.acknowledged(commit_wait)
    }

    /// A lock of the caller's own, of which `hash` tells the name, is about to be given back by whoever has committed
    /// `csn`, and all that this depends on; it was held in `mode`, one of four. The engine's own locks need no such
    /// call.
    pub fn hand_over(&self, hash: u64, mode: usize, csn: Csn) {
        let path = &self.0.path;
        let by = PriorLockHolder::By(csn);
        self.0.callers_handed_over.note(hash, mode, by, &**path);
    }

    /// What was done by those who gave the lock back, held in `mode`, as far as it is not Committed: asked once the
    /// lock is had. Whoever has it now depends on that, and is not told before that it has it.
    pub fn handed_over(&self, hash: u64, mode: usize) -> CommitWait {
        let path = &self.0.path;
        match self.0.callers_handed_over.from(hash, mode, &**path) {
            None => CommitWait::none(),
            Some(PriorLockHolder::By(csn)) => CommitWait::of(csn),
            Some(PriorLockHolder::UpTo(csn)) => CommitWait::floor(csn),
        }
    }

    /// Calls `hook` when the log cannot be written any more, or is somebody else's: the process must stop.
    pub fn set_failure_hook(&self, hook: Box<dyn Fn(&LogFailed) + Send + Sync>) {
        self.0.path.set_failure_hook(hook);
    }

    /// Flushes every lane and waits until everything drawn so far is durable: for shutdown.
    pub async fn flush_all_and_wait(&self) -> Result<(), LogFailed> {
        let last = self.0.horizon().counter();
        self.0.path.flush_all();
        self.acknowledged(CommitWait::floor(Csn(last.0 - 1))).await
    }

    /// What each lane has done, and what its transactions waited for.
    pub fn lane_stats(&self) -> Vec<LaneStats> {
        self.0.path.lane_stats()
    }

    /// Where the time of all commits went.
    pub fn latencies(&self) -> Latencies {
        self.0.path.latencies()
    }

    /// The oldest snapshot in use, or what the next one would be.
    pub fn oldest_snapshot(&self) -> Csn {
        self.0.bounds().oldest()
    }

    /// Who waits for a lock now, and for whom.
    pub fn lock_waits(&self) -> Vec<LockWaitInfo> {
        self.0.waits.all()
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

    /// Those of one worker.
    pub fn worker_stats(&self, worker: WorkerId) -> Stats {
        let mut stats = Stats::default();
        if let Some(counters) = self.0.counters.get(usize::from(worker.0)) {
            stats.add(counters);
        }
        stats
    }
}
