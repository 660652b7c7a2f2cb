//! The commit path of one engine: from pre-commit to acknowledgment.
//!
//! 1. [`CommitPath::room`]: place for the entry in lane, home, allocation limit, queue and commit ring (T12).
//! 2. [`CommitPath::enter`]: the lane's lock is taken; then [`CommitPath::draw`]: `reserved` is published, the CSN
//!    drawn.
//! 3. [`CommitPath::push`]: the entry goes into the lane, `reserved` is cleared, the lock given back; the transaction
//!    object goes into the worker's queue.
//! 4. [`CommitPath::precommitted`], after the versions are visible: the protocol is told, and flushes, steals or
//!    acknowledges in the worker's thread as it sees fit; [`CommitPath::idle`] when the worker has nothing else to do.
//! 5. A lane hardens: the horizon moves, the protocol is told, ack queues are looked through. A hardened transaction
//!    that its tracking mode lets pass is set in the commit ring, and those who waited for it go on: clients are woken,
//!    transactions that depend on it are judged again.
//!
//! # While `reserved` is published (T12)
//!
//! The horizon stands still for everybody from the draw until the entry is in its lane. So what may be held up is done
//! before or after, and the order is in the types: a push needs a [`CommitInsertLock`] and consumes the reservation.
//!
//! - *Before*: room; certification, and waking those who waited for its outcome; the lane's lock; memory for the
//!   entry's head and for lists, and the pages of the buffer that the entry fills.
//! - *Between*: one `fetch_add`, the entry's head, a copy and a checksum of at most a quarter of a lane's buffer, some
//!   stores. No lock is taken, no memory asked for or given back. One lock is given back: the certifier's mutex of a
//!   SERIALIZABLE transaction, which must cover the draw and shall not cover the copy. That may wake one thread by a
//!   system call; it waits for nothing.
//! - *After*: the lane's lock is given back, what certification has left is freed, the queue is filled, versions become
//!   visible.
//!
//! So the horizon stands still for longer than that only if the worker's own thread loses the processor just there: for
//! a slice or two of the scheduler's. It is nobody else's: who waits for a lock that a thread without a processor holds
//! has not drawn. What such a slice costs:
//!
//! - In `exact` no acknowledgment waits but those with a floor (changes of the schema, more than 32 predecessors). In
//!   `dsn` those wait that depend on anything that is not yet below the horizon, in `horizon` all. In `gsn` all do that
//!   need other lanes: whoever hardens something raises every empty lane under its lock.
//! - Its lane stands still, for the lock is held: others that push there wait before their draws, a flush waits,
//!   thieves pass by.
//! - Who meets its rows waits for the outcome (T4), leaving the processor now and then.
//! - Versions above the horizon stay in memory; and when as many CSNs are drawn as the commit ring has room for, which
//!   is meant for more than a tenth of a second at a million commits per second, writers wait for room.
//!
//! It cannot be bounded further from here: a thread does not know when it loses the processor, priorities against that
//! need rights that a server should not have, and others could end the push in its place only if the entry were
//! complete before its CSN is known. With a core for each worker it happens when something else wants the machine.
//!
//! # Invariants
//!
//! - Nothing is set in the commit ring that is not hardened and Committed by its mode's rule.
//! - Every hardened transaction not yet Committed lies in an ack queue's heap or is registered with a predecessor, and
//!   whoever moves what it waits for finds it there (T13).
//! - No lock is held while the home is called or a waker is.
//! - What lanes are told to record as the horizon ([`HorizonSource`](logstead_wal::HorizonSource)) is one that was
//!   computed: nothing is published before.
//!
//! Does not: know rows or sessions, or read the clock but for timing and time-outs.

mod ack_future;
mod acknowledge;
mod adaptive_tuner;
mod drive;
mod idle_horizon;
mod observe;
mod round_leader;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use logstead_env::Env;
use logstead_types::{Csn, WorkerId};
use logstead_wal::number_limits::{CSN_END, NumbersExhausted};
use logstead_wal::{
    BlockFeed, Cursor, EntryDependencies, EntryReservation, FlushMode, Lane, LaneCounters,
    LaneEvent, NoRoom, RoomRequest, SideRef,
};
use parking_lot::{Mutex, RwLock};

pub use ack_future::AckFuture;
pub use adaptive_tuner::{AdaptiveStatus, DecisionRecord};
pub use observe::{CommitStage, Observer};

use crate::ack_queue::AckQueue;
use crate::commit_ring::CommitRing;
use crate::commit_wait::CommitWait;
use crate::commit_waiters::CommitWaiters;
use crate::dependency_set::{DependencySet, IsCommitted};
use crate::horizon::{Horizon, Reservation};
use crate::lane_mapping::LaneMapping;
use crate::options::CommitOptions;
use crate::pending_commit::PendingCommit;
use crate::protocol::{Protocol, ProtocolConfig};
use crate::stats::{Latencies, Phase, WaitCounts};
use crate::tracking::{DurabilityProgress, Tracking};
use crate::tuning::LiveTuning;
use crate::watermark::{LogFailed, Watermark};
use adaptive_tuner::AdaptiveTuner;
use idle_horizon::{IdleHorizonRecorder, PublishedHorizon};
use round_leader::Committer;

/// Wakes a worker's thread.
pub type WakeFn = Arc<dyn Fn() + Send + Sync>;

type FailureHook = Arc<dyn Fn(&LogFailed) + Send + Sync>;

/// Shards of what clients record when they go on.
const ACKNOWLEDGMENT_SHARDS: usize = 16;

/// What a worker shows of itself.
struct WorkerSlot {
    /// It has no session ready to run.
    idle: AtomicBool,
    /// It has said so itself, and nothing since: who hardens something of it acknowledges (`AckTiming::AtRandom`).
    /// Unlike `idle`, this stays when somebody wakes one of its sessions: it may never say again that it is idle.
    rests: AtomicBool,
    wake_hook: RwLock<Option<WakeFn>>,
    /// State of its random numbers.
    dice: AtomicU64,
    /// Commits since somebody looked that have hardened, and for how long they had waited for their blocks to be
    /// sealed.
    commits: AtomicU64,
    wait_ns: AtomicU64,
}

/// See the module's documentation.
pub struct CommitPath {
    env: Env,
    options: CommitOptions,
    /// What of it is fixed; see [`CommitPath::protocol_config`].
    protocol_config: ProtocolConfig,
    /// What of it may change.
    tuning: LiveTuning,
    mapping: LaneMapping,
    adapting: Option<AdaptiveTuner>,
    tracking: Tracking,
    horizon: Horizon,
    /// The horizon, for those who wait for it.
    horizon_watermark: Arc<Watermark>,
    commit_ring: CommitRing,
    /// By the commit ring's word: when it was set.
    decided_at: Box<[AtomicU64]>,
    waits: CommitWaiters,
    lanes: Vec<Lane>,
    ack_queues: Box<[CachePadded<AckQueue>]>,
    worker_slots: Box<[CachePadded<WorkerSlot>]>,
    protocol: Protocol,
    /// When a block of the lane completed last.
    hardened_at: Box<[CachePadded<AtomicU64>]>,
    /// The newest GSN of any lane, and the smallest hardened one.
    gsn_newest: CachePadded<AtomicU64>,
    gsn_hardened: CachePadded<AtomicU64>,
    /// The latter, for those who wait for it.
    gsn_watermark: Arc<Watermark>,
    committer: Committer,
    pause: IdleHorizonRecorder,
    /// Blocks of the lanes, for those who follow by a stream.
    feed: Arc<BlockFeed>,
    acknowledgments: Box<[CachePadded<Mutex<Latencies>>]>,
    failure_hook: Mutex<Option<FailureHook>>,
    observer: OnceLock<Observer>,
    this: Weak<CommitPath>,
}

/// Place for one transaction on the commit path. Given back when dropped.
#[must_use]
pub struct CommitReservation {
    room: EntryReservation,
    /// The lane it is in: the entry goes there, whatever lane its worker pushes to by then.
    lane: usize,
}

/// The lane's lock, held for one transaction; see [`CommitPath::enter`].
#[must_use]
pub struct CommitInsertLock<'p> {
    lane: logstead_wal::LaneInsertLock<'p>,
    number: usize,
    /// When, if anybody wants to know.
    entered_at: Option<u64>,
}

impl CommitInsertLock<'_> {
    /// Gives the lane's lock back, and keeps the place in it.
    pub fn leave(self) -> CommitReservation {
        CommitReservation {
            lane: self.number,
            room: self.lane.leave(),
        }
    }
}

/// What a lane has done, and what its workers' transactions waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneStats {
    /// Transactions hardened and looked at.
    pub commits: u64,
    /// Blocks, bytes and entries.
    pub lane: LaneCounters,
    /// Why they waited.
    pub waits: WaitCounts,
    /// How often somebody looked through its workers' transactions.
    pub looks: u64,
}

/// A pushed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushedTxn {
    /// The lane was clean.
    pub was_clean: bool,
    /// Its lane's cursor behind the entry.
    pub end: Cursor,
    /// Its entry's GSN.
    pub gsn: u64,
    /// Its lane.
    pub lane: usize,
}

impl IsCommitted for CommitPath {
    #[inline]
    fn horizon(&self) -> Csn {
        self.horizon.get()
    }

    #[inline]
    fn is_committed(&self, csn: Csn) -> bool {
        self.commit_ring.is_committed(csn, || self.horizon.get())
    }
}

impl DurabilityProgress for CommitPath {
    #[inline]
    fn hardened_gsn(&self) -> u64 {
        self.gsn_hardened.load(Ordering::SeqCst)
    }
}

impl CommitPath {
    /// The commit path of `workers` workers over these lanes, which nobody has pushed to, drawing CSNs from `next` on.
    ///
    /// # Panics
    /// If the number of lanes is not [`CommitOptions::lanes`]; where lanes in use may change, fewer will do.
    pub fn new(
        options: &CommitOptions,
        workers: usize,
        lanes: Vec<Lane>,
        next: Csn,
        env: &Env,
    ) -> std::io::Result<Arc<CommitPath>> {
        let protocol_config = options.protocol_config(workers);
        let (moves, least) = (options.moves_lanes(), protocol_config.lanes());
        let most = if moves { workers } else { least };
        assert!(
            (least..=most).contains(&lanes.len()),
            "{} lanes for {workers} workers",
            lanes.len()
        );
        let horizon = Horizon::new(workers, next);
        // Every worker may be between its look and its draw.
        let commit_ring = CommitRing::new(
            options
                .log_allocation_limit_csns
                .max(2 * workers as u64 + 64),
        );
        let worker_slot = |worker: usize| WorkerSlot {
            // Nobody waits for one who has never run anything.
            idle: AtomicBool::new(true),
            rests: AtomicBool::new(true),
            wake_hook: RwLock::default(),
            dice: AtomicU64::new(worker as u64 + 1),
            commits: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
        };
        let decisions = if options.timing {
            commit_ring.capacity()
        } else {
            0
        };
        let path = Arc::new_cyclic(|this| CommitPath {
            env: env.clone(),
            options: *options,
            tracking: options.tracking,
            horizon_watermark: Arc::new(Watermark::new(horizon.get().0)),
            horizon,
            decided_at: (0..decisions).map(|_| AtomicU64::new(0)).collect(),
            commit_ring,
            waits: CommitWaiters::new(),
            ack_queues: (0..workers)
                .map(|_| CachePadded::new(AckQueue::new(options.queue)))
                .collect(),
            worker_slots: (0..workers)
                .map(|w| CachePadded::new(worker_slot(w)))
                .collect(),
            protocol: Protocol::new(options.protocol, &protocol_config),
            hardened_at: lanes.iter().map(|_| CachePadded::default()).collect(),
            gsn_newest: CachePadded::default(),
            gsn_hardened: CachePadded::default(),
            gsn_watermark: Arc::default(),
            committer: Committer::default(),
            pause: IdleHorizonRecorder::new(next),
            feed: Arc::default(),
            acknowledgments: (0..ACKNOWLEDGMENT_SHARDS)
                .map(|_| CachePadded::default())
                .collect(),
            failure_hook: Mutex::default(),
            observer: OnceLock::new(),
            mapping: LaneMapping::new(&protocol_config, lanes.len(), moves),
            tuning: LiveTuning::new(&protocol_config),
            adapting: AdaptiveTuner::new(options, &protocol_config, lanes.len(), env),
            lanes,
            protocol_config,
            this: this.clone(),
        });
        for (number, lane) in path.lanes.iter().enumerate() {
            lane.set_horizon_source(Arc::new(PublishedHorizon {
                horizon_watermark: Arc::clone(&path.horizon_watermark),
                recorded: Arc::clone(&path.pause.recorded),
            }));
            lane.set_feed(Arc::clone(&path.feed));
            let weak = path.this.clone();
            lane.set_listener(Box::new(move |event| {
                let Some(path) = weak.upgrade() else { return };
                match event {
                    LaneEvent::Durable => path.hardened(number),
                    LaneEvent::Failed(error) => path.fail(LogFailed::new(error.to_string())),
                    // Who waits for room registered a waker with the lane.
                    LaneEvent::Room => {}
                }
            }));
        }
        path.start_committer()?;
        path.start_pause()?;
        Ok(path)
    }

    /// How it was set up.
    pub fn options(&self) -> &CommitOptions {
        &self.options
    }

    /// How dependencies are tracked.
    #[inline]
    pub fn tracking(&self) -> Tracking {
        self.tracking
    }

    /// The counter and the horizon.
    #[inline]
    pub fn csns(&self) -> &Horizon {
        &self.horizon
    }

    /// The horizon, for those who wait for it. All below it was in [`CommitPath::feed`] before it moved there.
    pub fn horizon_watermark(&self) -> &Arc<Watermark> {
        &self.horizon_watermark
    }

    /// The lanes' newest blocks, for those who follow the log by a stream.
    pub fn feed(&self) -> &Arc<BlockFeed> {
        &self.feed
    }

    /// The lanes.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// How many workers there are.
    pub fn worker_count(&self) -> usize {
        self.protocol_config.workers
    }

    /// The lane that a worker pushes to now.
    #[inline]
    pub fn lane_of(&self, worker: WorkerId) -> &Lane {
        &self.lanes[self.lane_number_of(worker)]
    }

    /// The number of the lane that a worker pushes to now.
    #[inline]
    pub fn lane_number_of(&self, worker: WorkerId) -> usize {
        self.mapping.lane_of(usize::from(worker.0))
    }

    /// The lanes in which a worker may have something that is not hardened; the one it pushes to first.
    pub fn lanes_of(&self, worker: WorkerId) -> impl Iterator<Item = &Lane> {
        let lanes = self.mapping.lanes_of(usize::from(worker.0));
        lanes.into_iter().map(|lane| &self.lanes[lane])
    }

    /// How many lanes are in use; those that are not hold at most what was pushed there before.
    pub fn lanes_in_use(&self) -> usize {
        self.mapping.in_use()
    }

    /// Has so many lanes used from now on: each worker follows between two transactions. False where lanes are fixed
    /// ([`CommitOptions::moves_lanes`]), and nothing changes.
    pub fn use_lanes(&self, lanes: usize) -> bool {
        self.mapping.set_in_use(lanes)
    }

    /// A lane may have several workers: each sees to its own sessions.
    #[inline]
    pub fn shares_lanes(&self) -> bool {
        self.mapping.shares()
    }

    /// The oldest unflushed entry waits no longer than this while sessions are ready: the number in force.
    pub fn flush_timeout(&self) -> Duration {
        Duration::from_nanos(self.protocol_config().flush_timeout_ns)
    }

    /// The numbers in force.
    #[inline]
    pub(crate) fn protocol_config(&self) -> ProtocolConfig {
        self.tuning.protocol_config(&self.protocol_config)
    }

    /// Nanoseconds of the environment's clock; 0 if times are not taken.
    #[inline]
    pub fn now(&self) -> u64 {
        if self.options.timing { self.clock() } else { 0 }
    }

    /// Nanoseconds of the environment's clock.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.env.clock.monotonic().as_nanos()
    }

    /// A transaction's empty collection of dependencies.
    #[inline]
    pub fn new_dependency_set(&self) -> DependencySet {
        self.tracking.new_dependency_set()
    }

    /// What a client waits for that is told of what was collected.
    pub fn commit_wait(&self, dependency_set: &DependencySet) -> CommitWait {
        self.tracking.commit_wait(dependency_set)
    }

    /// Takes place for a transaction of `worker` with `bytes` bytes of records. On [`NoRoom::Full`] see
    /// [`CommitPath::poll_room`]; who asks again for the same transaction hands in the same `asked`.
    pub fn room(
        &self,
        worker: WorkerId,
        bytes: usize,
        asked: &mut RoomRequest,
    ) -> Result<CommitReservation, NoRoom> {
        let lane = self.adopt(usize::from(worker.0));
        self.room_in(worker, lane, bytes, asked)
    }

    /// The same in this lane, which need not be the one that the worker pushes to.
    fn room_in(
        &self,
        worker: WorkerId,
        lane: usize,
        bytes: usize,
        asked: &mut RoomRequest,
    ) -> Result<CommitReservation, NoRoom> {
        let ack_queue = &self.ack_queues[usize::from(worker.0)];
        while !ack_queue.queue.has_room() {
            // If another thread is at the ack queue, it empties the queue before it leaves, and waits for nothing
            // meanwhile.
            self.acknowledge(usize::from(worker.0));
            std::hint::spin_loop();
        }
        if self.horizon.counter() >= CSN_END {
            return Err(NumbersExhausted::Csns.into());
        }
        if self.is_far_ahead() {
            // Behind a lane that has failed the horizon moves no more.
            let failed = self.lanes.iter().find_map(Lane::failure);
            return Err(failed.map_or(NoRoom::Full, NoRoom::Failed));
        }
        let room = self.lanes[lane].room_for(bytes, asked)?;
        Ok(CommitReservation { room, lane })
    }

    /// Has `waker` woken once when there may be room in this lane: register first, then ask again. A second refusal may
    /// have another reason: see [`CommitPath::poll_room`].
    fn wait_room(&self, lane: usize, waker: &Waker) {
        if self.is_far_ahead() {
            self.horizon_watermark.notify(waker);
        } else {
            self.lanes[lane].wait_room(waker);
        }
    }

    /// Takes place, or has `waker` woken when there may be some.
    pub fn poll_room(
        &self,
        worker: WorkerId,
        bytes: usize,
        asked: &mut RoomRequest,
        waker: &Waker,
    ) -> Poll<Result<CommitReservation, NoRoom>> {
        let lane = self.adopt(usize::from(worker.0));
        self.poll_room_in(worker, lane, bytes, asked, waker)
    }

    /// The same in this lane, which need not be the one that the worker pushes to.
    pub fn poll_room_in(
        &self,
        worker: WorkerId,
        lane: usize,
        bytes: usize,
        asked: &mut RoomRequest,
        waker: &Waker,
    ) -> Poll<Result<CommitReservation, NoRoom>> {
        // One lane all the time: who is refused registers where it was refused. The commit ring, the allocation limit,
        // or the buffer and the home: after as many refusals all of them are waited for.
        for _ in 0..4 {
            match self.room_in(worker, lane, bytes, asked) {
                Err(NoRoom::Full) => self.wait_room(lane, waker),
                other => return Poll::Ready(other),
            }
        }
        Poll::Pending
    }

    /// As many CSNs are ahead of the horizon as the commit ring holds. Others may draw between this look and the draw,
    /// each once.
    fn is_far_ahead(&self) -> bool {
        let ahead = self.horizon.counter().0 + self.protocol_config.workers as u64;
        ahead >= self.horizon.get().0 + self.commit_ring.capacity()
    }

    /// Publishes `reserved` and draws a CSN; see [`Horizon::draw`].
    #[inline]
    pub fn draw(&self, worker: WorkerId) -> (Csn, Reservation<'_>) {
        self.horizon.draw(worker)
    }

    /// Takes the lane's lock for a transaction that has everything else it needs, and drops dependencies that have
    /// become Committed. Between this and the push the caller draws the CSN, and does nothing that fails, allocates,
    /// waits or takes long: the lane stands still meanwhile. May wait for the lock, so it comes before the state is
    /// Committing, which others wait for, too.
    #[inline]
    pub fn enter(
        &self,
        place: CommitReservation,
        dependency_set: &mut DependencySet,
    ) -> CommitInsertLock<'_> {
        dependency_set.prune(self);
        self.entered(place.lane, self.lanes[place.lane].enter(place.room))
    }

    /// The same for who holds a lock that others want, and so must not wait: gives the place back if somebody has the
    /// lane's lock.
    pub fn try_enter(
        &self,
        place: CommitReservation,
        dependency_set: &mut DependencySet,
    ) -> Result<CommitInsertLock<'_>, CommitReservation> {
        dependency_set.prune(self);
        let CommitReservation { lane, room } = place;
        match self.lanes[lane].try_enter(room) {
            Ok(entered) => Ok(self.entered(lane, entered)),
            Err(room) => Err(CommitReservation { lane, room }),
        }
    }

    fn entered<'p>(
        &self,
        number: usize,
        lane: logstead_wal::LaneInsertLock<'p>,
    ) -> CommitInsertLock<'p> {
        CommitInsertLock {
            lane,
            number,
            entered_at: self.observes().then(|| self.clock()),
        }
    }

    /// Puts the entry of a transaction into its lane, clears `reserved`, gives back the lane's lock, and puts the
    /// transaction into its worker's queue. Does not fail, wait or do I/O; up to the clearing it takes no lock and does
    /// not allocate.
    ///
    /// The transaction comes into the queue after the horizon may have passed its CSN: who hardens its entry before may
    /// not find it there, so [`CommitPath::precommitted`] looks again. Nobody depends on it yet: its versions are not
    /// visible.
    pub fn push(
        &self,
        worker: WorkerId,
        entrance: CommitInsertLock<'_>,
        (csn, reservation): (Csn, Reservation<'_>),
        dependency_set: &mut DependencySet,
        body: PushBody<'_>,
        began_at: u64,
    ) -> PushedTxn {
        let CommitInsertLock {
            mut lane,
            number,
            entered_at,
        } = entrance;
        // Not before: who has the lane's lock may still be refused by the certifier, and would stay a member.
        self.mapping.pushes(usize::from(worker.0), number);
        let deps = self.tracking.take_deps(csn, dependency_set);
        let gsn_min = dependency_set.gsn() + 1;
        let pushed = match body {
            PushBody::Inline(records) => lane.push(csn, gsn_min, &deps, records),
            PushBody::Side(side) => lane.push_side(csn, gsn_min, &deps, &side),
        };
        drop(reservation);
        // Only now: giving back a lock may mean waking somebody.
        drop(lane);
        if let Some(entered_at) = entered_at {
            self.observed_at(csn, CommitStage::Entered, entered_at);
            self.observed(csn, CommitStage::Pushed);
        }
        let worker = usize::from(worker.0);
        self.mapping.pushed(worker, number, pushed.end.0);
        if self.tracking.is_by_page() {
            self.gsn_newest.fetch_max(pushed.gsn, Ordering::SeqCst);
        }
        let precommitted_at = self.now();
        let EntryDependencies { floor, list } = deps;
        let pending = PendingCommit {
            csn,
            // As many as there are workers at most, and those are numbered so.
            lane: number as u16,
            end: pushed.end.0,
            dsn: dependency_set.dsn(),
            floor,
            gsn: pushed.gsn,
            local: dependency_set.is_local_to(number),
            execution_ns: precommitted_at.saturating_sub(began_at),
            precommitted_at,
            list,
            flushed: None,
        };
        self.ack_queues[worker].queue.push(pending);
        PushedTxn {
            was_clean: pushed.was_clean,
            end: pushed.end,
            gsn: pushed.gsn,
            lane: number,
        }
    }

    /// Is all of it Committed?
    #[inline]
    pub fn is_reached(&self, commit_wait: &CommitWait) -> bool {
        commit_wait.floor < self.horizon.get()
            && commit_wait.list.iter().all(|csn| self.is_committed(*csn))
            && commit_wait.gsn <= self.gsn_watermark.get()
    }

    /// Calls `hook` when the log cannot be written any more: the process must stop.
    pub fn set_failure_hook(&self, hook: Box<dyn Fn(&LogFailed) + Send + Sync>) {
        let hook: FailureHook = Arc::from(hook);
        *self.failure_hook.lock() = Some(hook.clone());
        // Failed before: who failed it may have found no hook. Told twice is told.
        if let Some(failure) = self.horizon_watermark.failure() {
            hook(&failure);
        }
    }

    /// Nothing is acknowledged any more, and the hook is called: the log cannot be written, or it is somebody else's
    /// now.
    pub fn fail(&self, failure: LogFailed) {
        self.horizon_watermark.fail(failure.clone());
        self.gsn_watermark.fail(failure.clone());
        for waker in self.waits.take_clients() {
            waker.wake();
        }
        let hook = self.failure_hook.lock().clone();
        if let Some(hook) = hook {
            hook(&failure);
        }
    }

    /// Why nothing can be acknowledged any more, if so it is.
    pub fn failure(&self) -> Option<LogFailed> {
        self.horizon_watermark.failure()
    }

    /// Begins the write of whatever lanes hold.
    pub fn flush_all(&self) {
        for lane in &self.lanes {
            lane.flush(FlushMode::Handoff);
        }
    }

    /// What each lane has done, and what the transactions of those who push there now have waited for.
    pub fn lane_stats(&self) -> Vec<LaneStats> {
        let mut all: Vec<LaneStats> = self
            .lanes
            .iter()
            .map(|lane| LaneStats {
                lane: lane.counters(),
                ..LaneStats::default()
            })
            .collect();
        for (worker, ack_queue) in self.ack_queues.iter().enumerate() {
            let stats = &mut all[self.mapping.lane_of(worker)];
            ack_queue.look(|pending_acks| {
                stats.waits.add(&pending_acks.waits);
            });
            stats.looks += ack_queue.looks();
            // Who found the ack queue taken meanwhile has left a note.
            self.acknowledge(worker);
        }
        for stats in &mut all {
            let waits = &stats.waits;
            stats.commits = waits.none + waits.horizon + waits.gsn + waits.predecessor;
        }
        all
    }

    /// How often anybody has looked through a worker's transactions for some to acknowledge.
    pub fn looks(&self) -> u64 {
        self.ack_queues
            .iter()
            .map(|ack_queue| ack_queue.looks())
            .sum()
    }

    /// Where the time of all commits went.
    pub fn latencies(&self) -> Latencies {
        let mut all = Latencies::default();
        for (worker, ack_queue) in self.ack_queues.iter().enumerate() {
            ack_queue.look(|pending_acks| all.add(&pending_acks.latencies));
            self.acknowledge(worker);
        }
        for shard in &self.acknowledgments {
            all.add(&shard.lock());
        }
        all
    }

    /// Whoever waited for `csn` goes on.
    #[inline]
    fn record_acknowledgment(&self, csn: Csn) {
        if let Some(at) = self.decided_at.get(self.commit_ring.place(csn)) {
            // Another CSN's if the commit ring has come around: it came later, and the time is nothing.
            let waited = self.clock().saturating_sub(at.load(Ordering::Relaxed));
            self.acknowledgments[csn.0 as usize % ACKNOWLEDGMENT_SHARDS]
                .lock()
                .record(Phase::Acknowledgment, waited);
        }
    }
}

/// Where a transaction's records are.
#[derive(Clone, Copy, Debug)]
pub enum PushBody<'a> {
    /// Here.
    Inline(&'a [u8]),
    /// In a side segment that is durable.
    Side(SideRef),
}
