//! What runs on a worker's thread: sessions that draw transactions, run them, wait for their acknowledgment, and record
//! how long it took.
//!
//! Latencies are taken at three moments; see [`super`].

use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use logstead_engine::{Engine, IdleAction, Worker, WorkerId, WorkerLoop, yield_now};
use logstead_env::Clock;
use parking_lot::Mutex;

use super::{TransactionEnd, WorkShare, Workload};
use crate::access::TxnError;
use crate::measure::{Measurements, STEP_NS};
use crate::options::{CommonOptions, Home};
use crate::random::Rng;

/// An arrival nearer than this is waited for without parking: a parked thread comes back late.
const SPIN_NS: u64 = 60_000;
/// A thread parked for an arrival looks around so often.
const PARK_NS_MAX: u64 = 50_000_000;
/// A transaction that met another one is run again after a random pause of up to this, twice as long after each try, up
/// to the second. Run again at once, transactions that want the same rows would do little but meet again.
const PAUSE_NS: u64 = 20_000;
const PAUSE_NS_MAX: u64 = 5_000_000;

/// What the workers' threads get.
pub(super) struct Plan<W> {
    pub(super) workload: Arc<W>,
    pub(super) engine: Engine,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) failure: Arc<Mutex<Option<String>>>,
    pub(super) done: Vec<Arc<AtomicU64>>,
    pub(super) common: CommonOptions,
    pub(super) workers: usize,
    pub(super) now: u64,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) transactions: Option<u64>,
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
    measured: RefCell<Measurements>,
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

pub(super) fn run_worker<W: Workload>(plan: &Arc<Plan<W>>, worker: usize) -> Measurements {
    let common = &plan.common;
    let worker_loop = WorkerLoop::new(&plan.engine, WorkerId(worker as u16));
    let seat = |session| WorkShare {
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
        worker: worker_loop.worker().clone(),
        done: plan.done[worker].clone(),
        left: Cell::new(transactions),
        arrivals,
        timers: RefCell::default(),
        pauses: RefCell::new(stream(common.in_flight + 1)),
        measured: RefCell::new(Measurements::new(W::KINDS.len())),
        plan: Arc::clone(plan),
    });
    for session in 0..common.in_flight {
        let client = plan.workload.client(seat(session), stream(session + 1));
        worker_loop.spawn(run_session(Rc::clone(&context), client));
    }
    worker_loop.run_with(&mut |would_park| context.turn(would_park));
    drop(worker_loop);
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
    fn turn(&self, would_park: bool) -> IdleAction {
        let mut timers = self.timers.borrow_mut();
        if timers.0.is_empty() {
            return IdleAction::Park;
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
            _ if woken || !would_park => IdleAction::Recheck,
            Some(timer) if timer.at > now + SPIN_NS => IdleAction::ParkFor(Duration::from_nanos(
                (timer.at - now - SPIN_NS).min(PARK_NS_MAX),
            )),
            Some(_) => IdleAction::Recheck,
            None => IdleAction::Park,
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
                Ok(TransactionEnd::Commit) => match txn.precommit().await.map_err(TxnError::from) {
                    Ok(receipt) => {
                        plan.workload.committed(client, receipt.csn);
                        let wrote = receipt.csn.is_some();
                        if waits {
                            let acknowledged = plan.engine.acknowledged(receipt.waits_for).await;
                            acknowledged.map_err(|error| error.to_string())?;
                        }
                        self.record(kind, (TransactionEnd::Commit, wrote), began, worked);
                        return Ok(());
                    }
                    Err(failed) => failed,
                },
                Ok(TransactionEnd::RollBack) => {
                    // The answer tells of what was read.
                    let read = txn.commit_wait();
                    txn.abort();
                    if waits {
                        let acknowledged = plan.engine.acknowledged(read).await;
                        acknowledged.map_err(|error| error.to_string())?;
                    }
                    self.record(kind, (TransactionEnd::RollBack, false), began, worked);
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
                    TxnError::Conflict => counts.conflicts += 1,
                    TxnError::Deadlock => counts.deadlocks += 1,
                    TxnError::Broken(why) => return Err(why),
                }
            }
            self.pause(tries).await;
            tries += 1;
            if plan.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn record(
        &self,
        kind: usize,
        (verdict, wrote): (TransactionEnd, bool),
        began: u64,
        worked: u64,
    ) {
        let plan = &*self.plan;
        let end = self.now();
        self.done
            .store(self.done.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // What ends within the time counts. What began within it and ends later has waited, too: left out, a run would
        // end without its slowest transactions.
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
                TransactionEnd::Commit => counts.committed += 1,
                TransactionEnd::RollBack => counts.rolled_back += 1,
            }
        }
        counts.commit.saturating_record(end - worked);
        if wrote {
            counts.writing.saturating_record(end - worked);
        }
        counts.whole.saturating_record(end - began);
    }
}
