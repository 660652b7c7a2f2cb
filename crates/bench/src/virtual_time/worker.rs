//! A worker of the model: what [`logstead_engine::WorkerLoop`] does with a thread, in virtual time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use logstead_engine::{
    Engine, FlushMode, Isolation, ProtocolKind, Worker, WorkerId, WorkerLoop, yield_now,
};
use logstead_env::{JoinHandle, abort_on_panic, spawn};
use parking_lot::Mutex;

use super::VirtualOptions;
use super::home::VirtualHome;
use super::scheduler::Scheduler;
use crate::access::TxnError;
use crate::driver::{Loader, WorkShare, Workload};
use crate::measure::Measurements;
use crate::random::Rng;
use crate::ycsb::Ycsb;

/// The newest idle time counts one in so many in the average, as in [`logstead_engine::WorkerLoop`].
const IDLE_WEIGHT: u64 = 8;
/// Rows looked at by one step of collection, and transactions between two.
const COLLECT_ROWS: usize = 256;
const COLLECT_EVERY: u64 = 64;

/// What the workers' threads share.
pub(super) struct Plan {
    pub(super) engine: Engine,
    pub(super) workload: Ycsb,
    pub(super) options: VirtualOptions,
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) measured: Mutex<Measurements>,
    /// When the first transaction began and the last ended.
    pub(super) span: Mutex<(u64, u64)>,
    pub(super) failure: Mutex<Option<String>>,
}

/// Looks that were not paid for, by who made them.
struct Meter {
    seen: AtomicU64,
    debts: Vec<AtomicU64>,
}

/// Loads the rows.
pub(super) fn load(engine: &Engine, workload: &Ycsb, seed: u64) -> Result<(), String> {
    let worker_loop = WorkerLoop::new(engine, WorkerId(0));
    let mut loader = Loader::alone(worker_loop.worker().clone());
    let seat = WorkShare {
        worker: 0,
        workers: 1,
        session: 0,
    };
    worker_loop
        .block_on(async {
            workload
                .load(seat, Rng::of_part(!seed, 0), &mut loader)
                .await?;
            loader.finish(engine).await
        })
        .map_err(|stop: TxnError| format!("{stop:?}"))
}

/// Runs all workers to their end.
pub(super) fn run_all(plan: &Arc<Plan>, home: &Arc<VirtualHome>) -> std::io::Result<()> {
    let workers = plan.options.workers;
    let path = plan.engine.commit_path().clone();
    let meter = Arc::new(Meter {
        seen: AtomicU64::new(path.looks()),
        debts: (0..=workers).map(|_| AtomicU64::new(0)).collect(),
    });
    let measured = Arc::clone(&meter);
    plan.scheduler.set_meter(Box::new(move |thread| {
        let now = path.looks();
        let looks = now - measured.seen.swap(now, Ordering::Relaxed);
        measured.debts[thread].fetch_add(looks, Ordering::Relaxed);
    }));
    let left = Arc::new(AtomicU64::new(workers as u64));
    let mut threads: Vec<JoinHandle> = Vec::new();
    for number in 0..workers {
        let (plan, meter) = (Arc::clone(plan), Arc::clone(&meter));
        let (left, home) = (Arc::clone(&left), Arc::clone(home));
        threads.push(spawn(&format!("virtual-{number}"), None, move || {
            // All others would wait for ever.
            let _watch = abort_on_panic("running a worker in virtual time");
            plan.scheduler.enter(number);
            work(&plan, &meter, number);
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                home.close();
            }
            plan.scheduler.end(number);
        })?);
    }
    let device = Arc::clone(home);
    threads.push(spawn("virtual-device", None, move || {
        let _watch = abort_on_panic("completing appends in virtual time");
        device.work();
    })?);
    plan.scheduler.begin();
    for thread in threads {
        // One that panics ends the process.
        let _ended = thread.join();
    }
    Ok(())
}

/// Wakes a session, and its worker if that waits.
struct SessionWaker {
    ready: Arc<Mutex<Vec<usize>>>,
    scheduler: Arc<Scheduler>,
    worker: usize,
    wake_ns: u64,
    session: usize,
    queued: AtomicBool,
}

impl Wake for SessionWaker {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::SeqCst) {
            self.ready.lock().push(self.session);
            let at = self.scheduler.now() + self.wake_ns;
            self.scheduler.wake(self.worker, at);
        }
    }
}

/// What the sessions of a worker share.
struct Context {
    plan: Arc<Plan>,
    meter: Arc<Meter>,
    number: usize,
    worker: Worker,
    /// Transactions that may still begin.
    left: Cell<u64>,
    done: Cell<u64>,
    steals: Cell<u64>,
    probes: u64,
    timers: RefCell<BTreeMap<(u64, u64), Waker>>,
    timed: Cell<u64>,
    measured: RefCell<Measurements>,
    rng: RefCell<Rng>,
}

type Session = Pin<Box<dyn Future<Output = ()>>>;

fn work(plan: &Arc<Plan>, meter: &Arc<Meter>, number: usize) {
    let options = &plan.options;
    let worker = plan.engine.worker(WorkerId(number as u16));
    let ready: Arc<Mutex<Vec<usize>>> = Arc::default();
    let scheduler = Arc::clone(&plan.scheduler);
    let wake_ns = options.prices.wake;
    worker.set_wake_hook(Arc::new(move || {
        scheduler.wake(number, scheduler.now() + wake_ns);
    }));
    let steals = options.commit.protocol == ProtocolKind::Autonomous;
    let group = options.commit.steal_group.min(options.workers) as u64;
    let part = WorkShare {
        worker: number,
        workers: options.workers,
        session: 0,
    }
    .part(options.transactions);
    let context = Rc::new(Context {
        plan: Arc::clone(plan),
        meter: Arc::clone(meter),
        number,
        left: Cell::new(part.end - part.start),
        done: Cell::new(0),
        steals: Cell::new(0),
        probes: if steals { group.saturating_sub(1) } else { 0 },
        timers: RefCell::default(),
        timed: Cell::new(0),
        measured: RefCell::new(Measurements::new(Ycsb::KINDS.len())),
        rng: RefCell::new(Rng::of_part(options.seed, (number as u64) << 32)),
        worker,
    });
    let mut sessions: Vec<Option<(Session, Arc<SessionWaker>)>> = Vec::new();
    for session in 0..options.sessions {
        let waker = Arc::new(SessionWaker {
            ready: Arc::clone(&ready),
            scheduler: Arc::clone(&plan.scheduler),
            worker: number,
            wake_ns,
            session,
            queued: AtomicBool::new(false),
        });
        Waker::from(Arc::clone(&waker)).wake();
        let body: Session = Box::pin(run_session(Rc::clone(&context), session));
        sessions.push(Some((body, waker)));
    }
    context.drive(&ready, &mut sessions);
    let worker = &context.worker;
    if worker.lane_dirty() {
        worker.flush(FlushMode::Handoff);
    }
    plan.measured.lock().add(&context.measured.borrow());
}

impl Context {
    /// Runs what is ready until all sessions have ended.
    fn drive(
        &self,
        ready: &Mutex<Vec<usize>>,
        sessions: &mut [Option<(Session, Arc<SessionWaker>)>],
    ) {
        let scheduler = &self.plan.scheduler;
        let mut live = sessions.len();
        let (mut idle_since, mut idle_average) = (None, 0_u64);
        while live > 0 {
            let next_timer = self.fire_timers();
            let batch = std::mem::take(&mut *ready.lock());
            if batch.is_empty() {
                let since = *idle_since.get_or_insert(scheduler.now());
                let expected = idle_average.max(scheduler.now() - since);
                let again = self.worker.idle(true, Some(expected));
                self.pay();
                if !ready.lock().is_empty() {
                    continue;
                }
                let ns = |time: std::time::Duration| time.as_nanos() as u64;
                let asks = again.map(|again| scheduler.now() + ns(again));
                let until = asks.into_iter().chain(next_timer).min();
                scheduler.wait(self.number, until);
                continue;
            }
            if let Some(since) = idle_since.take() {
                self.worker.busy();
                let idle = scheduler.now().saturating_sub(since);
                idle_average = idle_average - idle_average / IDLE_WEIGHT + idle / IDLE_WEIGHT;
            }
            for number in batch {
                let Some((session, waker)) = &mut sessions[number] else {
                    continue;
                };
                waker.queued.store(false, Ordering::SeqCst);
                let task = Waker::from(Arc::clone(waker));
                let mut context = TaskContext::from_waker(&task);
                if session.as_mut().poll(&mut context).is_ready() {
                    sessions[number] = None;
                    live -= 1;
                }
            }
            self.worker.between_tasks();
            self.pay();
        }
    }

    fn now(&self) -> u64 {
        self.plan.scheduler.now()
    }

    /// How often it has taken along what another lane held.
    fn stolen(&self) -> u64 {
        let id = WorkerId(self.number as u16);
        let path = self.plan.engine.commit_path();
        path.lane_of(id).counters().steals
    }

    /// Spends what this worker has done for the log and not paid for yet.
    fn pay(&self) {
        let prices = &self.plan.options.prices;
        self.plan.scheduler.meter(self.number);
        let looks = self.meter.debts[self.number].swap(0, Ordering::Relaxed);
        let steals = self.stolen();
        let stolen = steals - self.steals.replace(steals);
        let ns = looks * prices.look + stolen * prices.steal;
        self.plan.scheduler.sleep(self.number, ns);
    }

    /// Wakes who has waited long enough; when the next one has.
    fn fire_timers(&self) -> Option<u64> {
        let mut timers = self.timers.borrow_mut();
        let later = timers.split_off(&(self.now() + 1, 0));
        let due = std::mem::replace(&mut *timers, later);
        due.into_values().for_each(Waker::wake);
        timers.keys().next().map(|(at, _)| *at)
    }

    async fn wait_until(&self, at: u64) {
        let mut waits = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut waits, true) && self.now() >= at {
                return Poll::Ready(());
            }
            self.timed.set(self.timed.get() + 1);
            let key = (at, self.timed.get());
            self.timers.borrow_mut().insert(key, cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

async fn run_session(context: Rc<Context>, session: usize) {
    let plan = Arc::clone(&context.plan);
    let options = &plan.options;
    let seat = WorkShare {
        worker: context.number,
        workers: options.workers,
        session,
    };
    let part = (context.number as u64) << 32 | (session as u64 + 1);
    let mut client = plan.workload.client(seat, Rng::of_part(options.seed, part));
    while let Some(left) = context.left.get().checked_sub(1) {
        context.left.set(left);
        if options.think_ns > 0 {
            let drawn = context.rng.borrow_mut().exponential() * options.think_ns as f64;
            context.wait_until(context.now() + drawn as u64).await;
        }
        let began = context.now();
        let kind = plan.workload.draw(&mut client);
        if let Err(stop) = transact(&context, &mut client, kind, began).await {
            plan.failure.lock().get_or_insert(format!("{stop:?}"));
            return;
        }
        let done = context.done.get() + 1;
        context.done.set(done);
        if done.is_multiple_of(COLLECT_EVERY) {
            context.worker.collect_garbage(COLLECT_ROWS);
        }
        yield_now().await;
    }
}

async fn transact(
    context: &Context,
    client: &mut <Ycsb as Workload>::Client,
    kind: usize,
    began: u64,
) -> Result<(), TxnError> {
    let plan = &context.plan;
    let prices = &plan.options.prices;
    plan.scheduler.sleep(context.number, prices.execute);
    let mut txn = context.worker.begin(Isolation::ReadCommitted);
    plan.workload.execute(client, &mut txn).await?;
    let worked = context.now();
    let receipt = txn.precommit().await?;
    plan.workload.committed(client, receipt.csn);
    let wrote = receipt.csn.is_some();
    if wrote {
        plan.scheduler
            .sleep(context.number, context.probes * prices.probe);
    }
    context.pay();
    let acknowledged = plan.engine.acknowledged(receipt.waits_for).await;
    acknowledged.map_err(|error| TxnError::Broken(error.to_string()))?;
    let end = context.now();
    let mut measured = context.measured.borrow_mut();
    let counts = &mut measured.kinds[kind];
    counts.committed += 1;
    counts.commit.saturating_record(end - worked);
    if wrote {
        counts.writing.saturating_record(end - worked);
    }
    counts.whole.saturating_record(end - began);
    let mut span = plan.span.lock();
    *span = (span.0.min(began), span.1.max(end));
    Ok(())
}
