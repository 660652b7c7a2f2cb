//! A workload on many workers of which one runs at a time; see the [module above](super).
//!
//! The baton goes on before a transaction's pre-commit, after it, and after each round of the worker's loop: so CSNs
//! are drawn by one worker after the other, as on a machine where all of them run.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_engine::{
    CommitOptions, Engine, EngineOptions, Env, IdleAction, Isolation, Worker, WorkerId, WorkerLoop,
    yield_now,
};
use logstead_env::{Clock, JoinHandle, SimClock, abort_on_panic, spawn};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::baton::{Baton, Mark, WORKERS_MAX};
use crate::access::TxnError;
use crate::discard::discard_home;
use crate::driver::{Loader, TransactionEnd, WorkShare, Workload};
use crate::options::{Tpcc as TpccScale, Ycsb as YcsbParameters};
use crate::random::{Distribution, Rng};
use crate::{BenchError, machine, tpcc, ycsb};

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TracedWorkload {
    /// One operation to a transaction, keys of any worker.
    Ycsb {
        /// Share of the transactions that only read.
        read_ratio: f64,
        /// Rows for each worker.
        rows_per_worker: u64,
    },
    /// A warehouse for each worker; as small as loading under the tracer asks for.
    Tpcc {
        /// Items, and rows of stock for each warehouse.
        items: u32,
        /// Customers for each district.
        customers: u32,
    },
}

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct TracedOptions {
    /// What.
    pub workload: TracedWorkload,
    /// Workers: as many as the modelled machine has cores.
    pub workers: usize,
    /// Instances that they are divided among, with sessions that keep to keys of theirs; 1: nothing is divided, and
    /// keys are anybody's.
    pub instances: usize,
    /// With several instances: the share of the transactions of YCSB that lead to others.
    pub cross_instance: f64,
    /// Sessions of each.
    pub sessions: usize,
    /// Transactions of each worker before the window, and in it.
    pub warmup: u64,
    /// See `warmup`.
    pub measured: u64,
    /// All threads run at once and nothing is traced: how long it takes here.
    pub is_free: bool,
    /// Determines every random number.
    pub seed: u64,
}

/// What the window took, where nothing traces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Transactions.
    pub transactions: u64,
    /// Seconds by the clock.
    pub seconds: f64,
    /// Seconds of processor time of all threads, if the system tells.
    pub cpu_seconds: Option<f64>,
}

impl RunTimes {
    /// Processor time of a transaction. Where the system does not tell, the clock's: right if one worker runs alone.
    pub(super) fn processor_ns(&self) -> f64 {
        let seconds = self.cpu_seconds.unwrap_or(self.seconds);
        seconds * 1e9 / self.transactions.max(1) as f64
    }
}

/// The line that tells a reader of the trace where the marks are.
pub fn announcement() -> String {
    format!("@marks {:x}\n", super::baton::lines_address())
}

/// A moment by the clock, in nanoseconds, and the processor time spent until then, in seconds.
type Moment = (u64, Option<f64>);

/// What threads share.
struct Plan<W> {
    engine: Engine,
    workload: W,
    options: TracedOptions,
    baton: Baton,
    env: Env,
    done: AtomicU64,
    loaded: AtomicU64,
    stop: AtomicBool,
    /// Clock and processor time at the window's two ends.
    window: Mutex<[Option<Moment>; 2]>,
    failure: Mutex<Option<String>>,
}

/// Runs it.
pub fn run(options: &TracedOptions) -> Result<RunTimes, BenchError> {
    if !(1..=WORKERS_MAX).contains(&options.workers) || options.sessions == 0 {
        let why = format!("1 to {WORKERS_MAX} workers with at least one session are expected");
        return Err(BenchError::Failed(why));
    }
    let clock = Arc::new(SimClock::new());
    // The system's clock is behind a page of the kernel's, which valgrind does not have.
    let env = if options.is_free {
        Env::real()
    } else {
        Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..Env::simulated(options.seed).0
        }
    };
    let (engine, _) = Engine::open(
        EngineOptions {
            workers: options.workers,
            instances: options.instances,
            commit: CommitOptions {
                threads: false,
                ..CommitOptions::default()
            },
            replay_threads: 1,
            fault_threads: 0,
            ..EngineOptions::default()
        },
        discard_home(),
        env.clone(),
    )
    .map_err(|error| BenchError::Open(error.to_string()))?;
    match options.workload {
        TracedWorkload::Ycsb {
            read_ratio,
            rows_per_worker,
        } => {
            let parameters = YcsbParameters {
                table_size: rows_per_worker * options.workers as u64,
                read_ratio,
                read_modify_write: false,
                operations: 1,
                distribution: Distribution::Uniform,
                traced: false,
            };
            let workload =
                ycsb::Ycsb::new(&engine, &parameters).placed(&engine, options.cross_instance);
            run_all(engine, workload, options, env, clock)
        }
        TracedWorkload::Tpcc { items, customers } => {
            let scale = TpccScale {
                warehouses: options.workers as u32,
                items,
                customers,
            };
            let workload = tpcc::Tpcc::new(&engine, scale, options.seed);
            run_all(engine, workload, options, env, clock)
        }
    }
}

fn run_all<W: Workload>(
    engine: Engine,
    workload: W,
    options: &TracedOptions,
    env: Env,
    clock: Arc<SimClock>,
) -> Result<RunTimes, BenchError> {
    let plan = Arc::new(Plan {
        engine,
        workload,
        options: *options,
        baton: Baton::new(options.workers, options.is_free, options.seed, clock),
        env,
        done: AtomicU64::new(0),
        loaded: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        window: Mutex::default(),
        failure: Mutex::default(),
    });
    let threads: Vec<JoinHandle> = (0..options.workers)
        .map(|worker| {
            let plan = Arc::clone(&plan);
            spawn(&format!("traced-{worker}"), Some(worker), move || {
                // All others would wait for ever.
                let _watch = abort_on_panic("running a traced worker");
                plan.baton.enter(worker);
                work(&plan, worker);
                plan.baton.leave(worker);
            })
        })
        .collect::<Result<_, _>>()
        .map_err(|error| BenchError::Open(format!("cannot start a worker: {error}")))?;
    for thread in threads {
        // One that panics ends the process.
        let _ended = thread.join();
    }
    if let Some(why) = plan.failure.lock().take() {
        return Err(BenchError::Failed(why));
    }
    let [Some(begin), Some(end)] = *plan.window.lock() else {
        return Err(BenchError::Failed("the window never ended".to_owned()));
    };
    Ok(RunTimes {
        transactions: options.measured * options.workers as u64,
        seconds: end.0.saturating_sub(begin.0) as f64 / 1e9,
        cpu_seconds: end.1.zip(begin.1).map(|(end, begin)| end - begin),
    })
}

impl<W: Workload> Plan<W> {
    fn fail(&self, stop: &TxnError) {
        self.failure.lock().get_or_insert(format!("{stop:?}"));
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts a transaction; the window begins and ends with one.
    fn count(&self) {
        let (workers, options) = (self.options.workers as u64, &self.options);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let begins = done == options.warmup * workers;
        let ends = done == (options.warmup + options.measured) * workers;
        if ends {
            Mark::WindowEnd.set();
        }
        if begins || ends {
            let at = (
                self.env.clock.monotonic().as_nanos(),
                machine::cpu_seconds(&self.env),
            );
            self.window.lock()[usize::from(ends)] = Some(at);
            self.stop.fetch_or(ends, Ordering::Relaxed);
        }
        if begins {
            Mark::WindowBegin.set();
        }
    }
}

fn work<W: Workload>(plan: &Arc<Plan<W>>, number: usize) {
    let options = &plan.options;
    let worker_loop = WorkerLoop::new(&plan.engine, WorkerId(number as u16));
    let seat = |session| WorkShare {
        worker: number,
        workers: options.workers,
        session,
    };
    let mut loader = Loader::alone(worker_loop.worker().clone());
    let loaded = worker_loop.block_on(async {
        let rng = Rng::of_part(!options.seed, number as u64);
        plan.workload.load(seat(0), rng, &mut loader).await?;
        loader.finish(&plan.engine).await
    });
    if let Err(stop) = loaded {
        plan.fail(&stop);
    }
    plan.loaded.fetch_add(1, Ordering::SeqCst);
    // All rows are there before anybody looks for one.
    while plan.loaded.load(Ordering::SeqCst) < options.workers as u64 {
        plan.baton.pass(number);
        std::hint::spin_loop();
    }
    let plan = Rc::new((Arc::clone(plan), worker_loop.worker().clone()));
    for session in 0..options.sessions {
        let part = (number as u64) << 32 | (session as u64 + 1);
        let rng = Rng::of_part(options.seed, part);
        let client = plan.0.workload.client(seat(session), rng);
        let plan = Rc::clone(&plan);
        worker_loop.spawn(async move {
            let (plan, worker) = &*plan;
            if let Err(stop) = run_session(plan, worker, client, number).await {
                plan.fail(&stop);
            }
        });
    }
    worker_loop.run_with(&mut |would_park| {
        plan.0.baton.pass(number);
        match (would_park, plan.0.options.is_free) {
            (true, true) => IdleAction::Park,
            _ => IdleAction::Recheck,
        }
    });
}

async fn run_session<W: Workload>(
    plan: &Plan<W>,
    worker: &Worker,
    mut client: W::Client,
    number: usize,
) -> Result<(), TxnError> {
    while !plan.stops() {
        plan.workload.draw(&mut client);
        while !plan.stops() {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            let executed = plan.workload.execute(&mut client, &mut txn).await;
            let waits_for = match executed {
                Ok(TransactionEnd::Commit) => {
                    plan.baton.pass(number);
                    match txn.precommit().await.map_err(TxnError::from) {
                        Ok(receipt) => {
                            plan.workload.committed(&mut client, receipt.csn);
                            Some(receipt.waits_for)
                        }
                        Err(TxnError::Conflict | TxnError::Deadlock) => None,
                        Err(stop) => return Err(stop),
                    }
                }
                Ok(TransactionEnd::RollBack) => {
                    let read = txn.commit_wait();
                    txn.abort();
                    Some(read)
                }
                Err(TxnError::Conflict | TxnError::Deadlock) => {
                    txn.abort();
                    None
                }
                Err(stop) => return Err(stop),
            };
            plan.baton.pass(number);
            if let Some(waits_for) = waits_for {
                // As sessions of the server do: who has nothing to wait for does not begin to.
                if !plan.engine.is_committed(&waits_for) {
                    let acknowledged = plan.engine.acknowledged(waits_for).await;
                    acknowledged.map_err(|error| TxnError::Broken(error.to_string()))?;
                }
                Mark::TransactionEnd.set();
                plan.count();
                break;
            }
            yield_now().await;
        }
        yield_now().await;
    }
    Ok(())
}
