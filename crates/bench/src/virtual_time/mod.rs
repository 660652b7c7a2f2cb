//! Many workers on a machine that has few cores: the engine and its commit path in virtual time.
//!
//! Owns a discrete-event model of workers, not of the protocols: every transaction runs in the engine, and what
//! flushes, steals and acknowledges is the code that ships. What is modelled is what time that takes. A worker is a
//! thread; one of them runs at a time (`scheduler`), and only where it spends time does another get its turn:
//! executing, looking through ack queues, robbing, waiting for its own write, or for something to do. The prices are
//! inputs ([`CostModel`]), measured on a real machine.
//!
//! Limits: there is no contention for latches, cache lines or memory bandwidth but what the prices say on average; a
//! transaction is atomic, so transactions never meet in a row lock; the home's writers and whoever completes their
//! appends cost no worker anything; the operating system never interrupts. So ratios between ways of committing mean
//! something where they come from counts (looks, appends, waits), and nothing where they would come from contention.
//!
//! Invariant: the same options give the same figures.

mod home;
mod scheduler;
mod worker;

use std::sync::Arc;

use logstead_engine::{CommitOptions, Engine, EngineOptions, Env};
use logstead_env::{Clock, SimClock, SimRandom};
use logstead_home::simulated::Model;
use parking_lot::Mutex;

use crate::measure::{Counts, Measurements};
use crate::options::Ycsb as Parameters;
use crate::path::PathFigures;
use crate::random::Distribution;
use crate::{BenchError, ycsb};
use home::VirtualHome;
use scheduler::Scheduler;
use worker::Plan;

/// What things take, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CostModel {
    /// A transaction from its begin to its pre-commit.
    pub execute: u64,
    /// A look through a worker's transactions for some to acknowledge.
    pub look: u64,
    /// A look at another lane's unflushed bytes, before it may be robbed.
    pub probe: u64,
    /// Taking along what another lane holds.
    pub steal: u64,
    /// From waking a worker that sleeps until it runs.
    pub wake: u64,
}

impl Default for CostModel {
    fn default() -> CostModel {
        CostModel {
            execute: 3_000,
            look: 150,
            probe: 40,
            steal: 1_000,
            wake: 5_000,
        }
    }
}

/// What is run: YCSB with one operation per transaction.
#[derive(Clone, Debug)]
pub struct VirtualOptions {
    /// Workers, each a core.
    pub workers: usize,
    /// Sessions of each.
    pub sessions: usize,
    /// Mean pause of a session between two transactions; 0: none.
    pub think_ns: u64,
    /// How transactions are committed.
    pub commit: CommitOptions,
    /// The home's model, by name; see `logstead_home::simulated::model`.
    pub model: &'static str,
    /// Rows.
    pub table_size: u64,
    /// Share of the transactions that only read.
    pub read_ratio: f64,
    /// Operations per transaction.
    pub operations: u32,
    /// Transactions measured, over all workers.
    pub transactions: u64,
    /// What things take.
    pub prices: CostModel,
    /// Determines every random number.
    pub seed: u64,
}

impl Default for VirtualOptions {
    fn default() -> VirtualOptions {
        VirtualOptions {
            workers: 64,
            sessions: 64,
            think_ns: 0,
            commit: CommitOptions::default(),
            model: "nvme",
            table_size: 100_000,
            read_ratio: 0.5,
            operations: 1,
            transactions: 100_000,
            prices: CostModel::default(),
            seed: 1,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct VirtualFigures {
    /// Transactions, and their latencies in virtual time.
    pub counts: Counts,
    /// Virtual seconds.
    pub seconds: f64,
    /// What the commit path counted.
    pub path: PathFigures,
}

/// Runs it, in as much real time as it takes.
pub fn run(options: &VirtualOptions) -> Result<VirtualFigures, BenchError> {
    let failed = |what: &str| BenchError::Failed(what.to_owned());
    let model = Model::named(options.model).ok_or_else(|| failed("no such model"))?;
    let clock = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(options.seed);
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..env
    };
    // One more thread of the model completes what was handed over.
    let scheduler = Arc::new(Scheduler::new(clock, options.workers + 1));
    let random = SimRandom::new(options.seed);
    let home = Arc::new(VirtualHome::new(model, random, &scheduler, options.workers));
    let commit = CommitOptions {
        threads: false,
        ..options.commit
    };
    let (engine, _) = Engine::open(
        EngineOptions {
            workers: options.workers,
            commit,
            replay_threads: 1,
            fault_threads: 0,
            ..EngineOptions::default()
        },
        home.whole(),
        env,
    )
    .map_err(|error| BenchError::Open(error.to_string()))?;
    let parameters = Parameters {
        table_size: options.table_size,
        read_ratio: options.read_ratio,
        read_modify_write: false,
        operations: options.operations,
        distribution: Distribution::Uniform,
        traced: false,
    };
    let workload = ycsb::Ycsb::new(&engine, &parameters);
    worker::load(&engine, &workload, options.seed).map_err(|why| failed(&why))?;
    home.begin_timing();
    let before = PathFigures::of(&engine);
    let plan = Arc::new(Plan {
        engine: engine.clone(),
        workload,
        options: options.clone(),
        scheduler: Arc::clone(&scheduler),
        measured: Mutex::new(Measurements::new(2)),
        span: Mutex::new((u64::MAX, 0)),
        failure: Mutex::new(None),
    });
    worker::run_all(&plan, &home).map_err(|error| BenchError::Open(error.to_string()))?;
    if let Some(why) = plan.failure.lock().take() {
        return Err(BenchError::Failed(why));
    }
    let (first, last) = *plan.span.lock();
    let counts = plan.measured.lock().total();
    Ok(VirtualFigures {
        counts,
        seconds: last.saturating_sub(first) as f64 / 1e9,
        path: PathFigures::of(&engine).since(&before),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_engine::{AckTiming, ForceCommit, ProtocolKind, Tracking};

    fn small(commit: CommitOptions, sessions: usize, think_ns: u64) -> VirtualFigures {
        let options = VirtualOptions {
            workers: 8,
            sessions,
            think_ns,
            commit,
            table_size: 1_000,
            transactions: 2_000,
            ..VirtualOptions::default()
        };
        run(&options).expect("runs")
    }

    /// Whatever the ways of acknowledging and forcing: everybody comes to an end, and twice alike.
    #[test]
    fn every_way_of_committing_ends_and_is_repeatable() {
        for acknowledging in [AckTiming::WhenHardened, AckTiming::AtRandom] {
            for force_commit in [ForceCommit::AtOnce, ForceCommit::IfIdleLong] {
                for (sessions, think_ns) in [(1, 0), (16, 0), (2, 200_000)] {
                    let commit = CommitOptions {
                        protocol: ProtocolKind::Autonomous,
                        flush_unit_bytes: 4 << 10,
                        acknowledging,
                        force_commit,
                        ..CommitOptions::default()
                    };
                    let once = small(commit, sessions, think_ns);
                    assert_eq!(once.counts.committed, 2_000);
                    let again = small(commit, sessions, think_ns);
                    let seen = |figures: &VirtualFigures| {
                        let whole = &figures.counts.whole;
                        let mean = whole.mean().to_bits();
                        (mean, whole.max(), figures.path.looks, figures.path.appends)
                    };
                    assert_eq!(seen(&once), seen(&again));
                }
            }
        }
    }

    /// What the unsafe way is here for runs, and only by name.
    #[test]
    fn leanstore_runs_for_comparison() {
        let tracking = Tracking::LeanStore;
        let commit = |may_lose| CommitOptions {
            tracking,
            may_lose,
            ..CommitOptions::default()
        };
        assert_eq!(small(commit(true), 4, 0).counts.committed, 2_000);
        let refused = run(&VirtualOptions {
            commit: commit(false),
            ..VirtualOptions::default()
        });
        assert!(matches!(refused, Err(BenchError::Open(_))));
    }
}
