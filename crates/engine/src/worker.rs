//! A worker's own part of the engine: what only its thread touches.
//!
//! Does not: begin transactions (`txn`), which are of a worker and know it.

pub(crate) mod collect;

use crate::index_entries::KeyBuffers;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use logstead_commit::WakeFn;
use logstead_types::{Csn, InstanceId, WorkerId};
use logstead_wal::{FlushMode, FlushOutcome, Lane};

use crate::engine::{Engine, EngineInner};
use crate::garbage::Garbage;
use crate::memory::{ALLOWANCE_BYTES_MAX, OutOfMemory};
use crate::rows::TableRows;
use crate::snapshots::{Snapshots, VisibilityBounds};
use crate::stats::{Counters, Stats, add};
use crate::txn_id::TxnId;
use crate::write_set::TxnBuffers;

/// Commits between two looks at what may be collected in line.
const COMMITS_PER_BOUNDS: u32 = 16;
/// Idle transaction buffers kept.
const POOL_MAX: usize = 64;
/// A buffer that grew beyond this is not kept.
const POOLED_BYTES_MAX: usize = 1 << 16;
/// Rows looked at by a writer that finds the memory budget used up, before it gives up.
const COLLECTED_IN_WANT: usize = 1024;

/// Transaction numbers that a worker takes at a time. Two workers never have the same one, however long they run.
const TXN_IDS: u64 = 1 << 32;

pub(crate) struct WorkerInner {
    pub(crate) engine: Engine,
    pub(crate) id: WorkerId,
    /// Whose worker it is.
    pub(crate) instance: InstanceId,
    /// There are other instances: accesses are counted.
    pub(crate) counts_accesses: bool,
    snapshots: RefCell<Snapshots>,
    /// The next transaction's number; a multiple of [`TXN_IDS`] if another block is to be taken first.
    next_txn: Cell<u64>,
    pool: RefCell<Vec<TxnBuffers>>,
    pub(crate) scratch: RefCell<KeyBuffers>,
    pub(crate) garbage: RefCell<Garbage>,
    bounds: RefCell<VisibilityBounds>,
    commits_until_bounds: Cell<u32>,
    /// Bytes the worker may take before it looks at the memory account again.
    allowance: Cell<u64>,
    dirty_hook: RefCell<Option<Rc<dyn Fn()>>>,
    /// Decides what tests play absent.
    chance: Cell<u64>,
}

/// A worker's handle on the engine, used on its own thread. Clones are the same worker.
#[derive(Clone)]
pub struct Worker(pub(crate) Rc<WorkerInner>);

impl WorkerInner {
    pub(crate) fn inner(&self) -> &EngineInner {
        self.engine.inner()
    }

    /// Does the home keep the room that is left for who removes, and for the checkpoint that frees what was removed?
    #[inline]
    pub(crate) fn is_short_of_space(&self) -> bool {
        let path = &self.inner().path;
        path.lane_of(self.id).is_short_of_space()
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        &self.inner().counters[usize::from(self.id.0)]
    }

    #[inline]
    pub(crate) fn acquire_snapshot(&self) -> Csn {
        let engine = self.inner();
        self.snapshots
            .borrow_mut()
            .acquire(engine.horizon(), &engine.published[usize::from(self.id.0)])
    }

    /// Is what is looked at next to be taken for absent, though it is not? Only in tests.
    #[inline]
    pub(crate) fn simulates_absence(&self, rows: &TableRows) -> bool {
        cfg!(debug_assertions)
            && self.inner().absent_one_in != 0
            && !rows.stays()
            && self.draw_absent()
    }

    #[cold]
    fn draw_absent(&self) -> bool {
        // An xorshift generator's step.
        let mut chance = self.chance.get();
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        self.chance.set(chance);
        (chance >> 32).is_multiple_of(u64::from(self.inner().absent_one_in))
    }

    pub(crate) fn adopt_snapshot(&self, snapshot: Csn) {
        let published = &self.inner().published[usize::from(self.id.0)];
        self.snapshots.borrow_mut().adopt(snapshot, published);
    }

    pub(crate) fn share_snapshot(&self, snapshot: Csn) {
        self.snapshots.borrow_mut().share(snapshot);
    }

    #[inline]
    pub(crate) fn release_snapshot(&self, snapshot: Csn) {
        self.snapshots
            .borrow_mut()
            .release(snapshot, &self.inner().published[usize::from(self.id.0)]);
    }

    pub(crate) fn next_txn_id(&self) -> TxnId {
        let mut id = self.next_txn.get();
        if id.is_multiple_of(TXN_IDS) {
            // The block is used up, or none was taken yet.
            id = self.inner().txn_id_blocks.fetch_add(1, Ordering::Relaxed) * TXN_IDS + 1;
        }
        self.next_txn.set(id + 1);
        TxnId(id)
    }

    pub(crate) fn take_buffers(&self) -> TxnBuffers {
        let pooled = self.pool.borrow_mut().pop();
        pooled.unwrap_or_else(|| TxnBuffers::new(self.inner().memory()))
    }

    pub(crate) fn give_buffers(&self, mut buffers: TxnBuffers) {
        buffers.clear();
        let mut pool = self.pool.borrow_mut();
        if pool.len() < POOL_MAX && buffers.capacity_bytes() <= POOLED_BYTES_MAX {
            pool.push(buffers);
        }
    }

    /// A transaction has committed: what it has superseded is garbage.
    pub(crate) fn add_garbage(&self, csn: Csn, buffers: TxnBuffers) {
        let spare = self.garbage.borrow_mut().add(csn, buffers);
        if let Some(buffers) = spare {
            self.give_buffers(buffers);
        }
    }

    /// What in-line pruning may drop; looked up anew every few commits.
    pub(crate) fn bounds(&self) -> std::cell::Ref<'_, VisibilityBounds> {
        self.bounds.borrow()
    }

    pub(crate) fn refresh_bounds(&self) {
        let published = &self.inner().published[usize::from(self.id.0)];
        self.snapshots.borrow_mut().publish(published);
        *self.bounds.borrow_mut() = self.inner().bounds();
        self.commits_until_bounds.set(COMMITS_PER_BOUNDS);
    }

    #[inline]
    pub(crate) fn count_commit(&self) {
        match self.commits_until_bounds.get().checked_sub(1) {
            Some(left) => self.commits_until_bounds.set(left),
            None => self.refresh_bounds(),
        }
    }

    /// May `bytes` more be taken? Asked before anything is allocated.
    #[inline]
    pub(crate) fn admit(&self, bytes: usize, from_reserve: bool) -> Result<(), OutOfMemory> {
        match self.allowance.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.allowance.set(left);
                Ok(())
            }
            None => self.look_and_admit(bytes as u64, from_reserve),
        }
    }

    /// Counts what was taken along with something admitted.
    #[inline]
    pub(crate) fn took(&self, bytes: usize) {
        self.allowance
            .set(self.allowance.get().saturating_sub(bytes as u64));
    }

    #[cold]
    fn look_and_admit(&self, bytes: u64, from_reserve: bool) -> Result<(), OutOfMemory> {
        let memory = self.inner().memory();
        let memory_queue = &self.inner().memory_queue;
        memory_queue.wake_if_scarce();
        // Who came before is served before.
        let refused =
            || memory_queue.is_queued(from_reserve) || memory.left_bytes(from_reserve) < bytes;
        if refused() {
            collect::collect(self, COLLECTED_IN_WANT);
            if refused() {
                return Err(memory.exhausted());
            }
        }
        // What others have been allowed meanwhile is not known: near the end the looks come closer together.
        let workers = self.inner().counters.len() as u64;
        let left = memory.left_bytes(false).saturating_sub(bytes);
        self.allowance
            .set(ALLOWANCE_BYTES_MAX.min(left / (4 * workers)));
        Ok(())
    }

    pub(crate) fn call_dirty_hook(&self) {
        // Cloned out, so that the hook may do anything, replacing itself included.
        let hook = self.dirty_hook.borrow().clone();
        if let Some(hook) = hook {
            hook();
        }
    }
}

impl Drop for WorkerInner {
    fn drop(&mut self) {
        let engine = self.engine.inner();
        engine.orphans.lock().push(self.garbage.take());
        engine.workers_taken[usize::from(self.id.0)].store(false, Ordering::SeqCst);
    }
}

impl Engine {
    /// The handle of a worker, to be used on that worker's thread.
    ///
    /// # Panics
    /// If there is no such worker, or its handle is in use: two threads that draw as one worker would break the
    /// horizon.
    pub fn worker(&self, id: WorkerId) -> Worker {
        let taken = &self.0.workers_taken[usize::from(id.0)];
        assert!(
            !taken.swap(true, Ordering::SeqCst),
            "the handle of worker {id} is in use"
        );
        Worker::new(self.clone(), id)
    }

    /// A bounded step of garbage collection on `worker`; see [`Worker::collect_garbage`].
    pub fn collect_garbage(&self, worker: &Worker, budget: usize) -> bool {
        worker.collect_garbage(budget)
    }
}

impl Worker {
    pub(crate) fn new(engine: Engine, id: WorkerId) -> Worker {
        Worker(Rc::new(WorkerInner {
            id,
            instance: engine.0.instances.of_worker(id),
            counts_accesses: engine.0.instances.is_divided(),
            snapshots: RefCell::default(),
            next_txn: Cell::new(0),
            pool: RefCell::default(),
            scratch: RefCell::default(),
            garbage: RefCell::default(),
            bounds: RefCell::default(),
            commits_until_bounds: Cell::new(0),
            allowance: Cell::new(0),
            dirty_hook: RefCell::default(),
            chance: Cell::new(u64::from(id.0) + 0x9e37_79b9_7f4a_7c15),
            engine,
        }))
    }

    /// Its number.
    pub fn id(&self) -> WorkerId {
        self.0.id
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Calls `hook` whenever the worker's lane goes from clean to dirty, and at every commit if lanes are shared.
    pub fn set_dirty_hook(&self, hook: Box<dyn Fn()>) {
        *self.0.dirty_hook.borrow_mut() = Some(Rc::from(hook));
    }

    /// Do entries wait for a flush in the worker's lane, or in one that it has left with something in it?
    pub fn lane_dirty(&self) -> bool {
        self.lanes().any(Lane::is_dirty)
    }

    /// Bytes that wait for a flush there.
    pub fn lane_dirty_bytes(&self) -> usize {
        self.lanes().map(Lane::dirty_bytes).sum()
    }

    /// Is a block of one of those lanes being written?
    pub fn lane_in_flight(&self) -> bool {
        self.lanes().any(Lane::in_flight)
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.0.inner().path.lanes_of(self.0.id)
    }

    /// The worker has sessions to run again, after [`Worker::idle`].
    #[inline]
    pub fn busy(&self) {
        self.0.inner().path.busy(self.0.id);
    }

    /// Nobody of the worker is in the middle of something.
    #[inline]
    pub fn at_rest(&self) {
        self.0.inner().path.at_rest(self.0.id);
    }

    /// Nothing is ready to run on this worker; see [`CommitPath::idle`](logstead_commit::CommitPath::idle). May write
    /// the log in this thread. Answers when to call again, if nothing happens before.
    pub fn idle(&self, alone: bool, average_idle_ns: Option<u64>) -> Option<Duration> {
        self.0.inner().path.idle(self.0.id, alone, average_idle_ns)
    }

    /// Between two tasks, with more to run: what has waited for too long is flushed.
    #[inline]
    pub fn between_tasks(&self) {
        self.0.inner().path.between_tasks(self.0.id);
    }

    /// Has `wake_hook` called, from any thread, when the worker should look whether it is idle.
    pub fn set_wake_hook(&self, wake_hook: WakeFn) {
        self.0.inner().path.set_wake_hook(self.0.id, wake_hook);
    }

    /// Writes what the worker's lane holds: in this thread, or by the lane's writer. Lanes that it has left with
    /// something in them are written too, by their writers; the answer is about its own.
    pub fn flush(&self, mode: FlushMode) -> FlushOutcome {
        let path = &self.0.inner().path;
        for left in path.lanes_of(self.0.id).skip(1) {
            // Told when it is durable, as everybody who has something there.
            left.flush(FlushMode::Handoff);
        }
        let outcome = path.lane_of(self.0.id).flush(mode);
        if matches!(outcome, FlushOutcome::Durable | FlushOutcome::Started) {
            add(&self.0.counters().flushes, 1);
        }
        outcome
    }

    /// A bounded step of garbage collection: looks at up to `budget` rows. True if more can be done now.
    pub fn collect_garbage(&self, budget: usize) -> bool {
        crate::worker::collect::collect(&self.0, budget)
    }

    /// What this worker has counted.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        stats.add(self.0.counters());
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineOptions, Isolation};
    use logstead_env::Env;
    use logstead_home::{LogHome, MemoryHome};
    use std::collections::HashSet;
    use std::sync::Arc;

    /// Who runs for long comes to the end of his numbers, and not to those of his neighbour.
    #[test]
    fn transactions_of_two_workers_never_have_the_same_number() {
        let options = EngineOptions {
            workers: 2,
            ..EngineOptions::default()
        };
        let home = Arc::new(MemoryHome::new(4 << 20));
        let (engine, _) =
            Engine::open(options, LogHome::from(home), Env::simulated(1).0).expect("opens");
        let (one, other) = (engine.worker(WorkerId(0)), engine.worker(WorkerId(1)));
        let mut seen = HashSet::new();
        let mut begin = |worker: &Worker| {
            let id = worker.begin(Isolation::ReadCommitted).id();
            assert!(seen.insert(id), "{id:?} twice");
            id
        };
        let (first, _) = (begin(&one), begin(&other));
        // The last of the block.
        let last = (first.0 / TXN_IDS + 1) * TXN_IDS - 1;
        one.0.next_txn.set(last);
        assert_eq!(begin(&one).0, last);
        for _ in 0..4 {
            begin(&one);
            begin(&other);
        }
    }
}
