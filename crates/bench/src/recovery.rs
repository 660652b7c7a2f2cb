//! How long it takes to come back: a log is written, dropped as it is, and opened again.
//!
//! 1. YCSB's rows are loaded, then so many of them updated: the log's tail. Every update is acknowledged.
//! 2. The engine is dropped without any farewell and opened again on the same directory. The index is made again (it is
//!    not in the log), one row is read, and transactions run as before.
//! 3. YCSB's conditions are checked on what came back: every acknowledged update is there, once.
//!
//! The run's own figures are those of the transactions after recovery.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use logstead_engine::{Env, Isolation, LocalHome, LocalOptions, LogHome, WorkerId, WorkerLoop};

use crate::driver::{BenchEngine, RunOutcome};
use crate::home;
use crate::measure::STEP_NS;
use crate::options::{CommonOptions, Home, RunConfig, RunLimit, Ycsb as Parameters};
use crate::ycsb::Ycsb;
use crate::{BenchError, ProgressListener};

/// Full speed is this part of the rate before.
const FULL: f64 = 0.9;

fn open(dir: &std::path::Path, env: &Env) -> Result<LogHome, BenchError> {
    let home = LocalHome::open(dir, env, LocalOptions::default());
    let home = home.map_err(|error| BenchError::Open(error.to_string()))?;
    Ok(LogHome::from(home))
}

/// Runs one cell.
pub(crate) fn run(
    cell: &RunConfig,
    (parameters, tail): (&Parameters, u64),
    env: &Env,
    run: Option<usize>,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn ProgressListener,
) -> Result<RunOutcome, BenchError> {
    let Home::Local(dir) = &cell.common.home else {
        return Err(BenchError::Open(
            "recovery needs a directory as --home".into(),
        ));
    };
    let dir = home::directory(dir, run, env)?;
    let (before, rate, rows, log_bytes) = {
        let (stage, _) = BenchEngine::on(&cell.common, open(&dir, env)?, env, stop)?;
        let workload = Arc::new(Ycsb::new(&stage.engine, parameters));
        let (rows, _) = stage.load(&workload, cell.common.seed, progress)?;
        let tail_cell = RunConfig {
            common: CommonOptions {
                until: RunLimit::Transactions(tail),
                ..cell.common.clone()
            },
            ..cell.clone()
        };
        let outcome = stage.run(&workload, &tail_cell, progress)?;
        let committed = outcome.measured.total().committed;
        let rate = committed as f64 / outcome.seconds.max(1e-9);
        let log_bytes: u64 = stage
            .engine
            .lane_stats()
            .iter()
            .map(|stats| stats.lane.bytes)
            .sum();
        (workload.counted(), rate, rows, log_bytes)
    };

    let clock = Arc::clone(&env.clock);
    let begun = clock.monotonic();
    let since = |moment: logstead_env::Instant| clock.monotonic().since(moment).as_secs_f64();
    let (stage, report) = BenchEngine::on(&cell.common, open(&dir, env)?, env, stop)?;
    let open_s = since(begun);
    let workload = Arc::new(Ycsb::new(&stage.engine, parameters));
    workload.expect(before);
    let broken = |error: String| BenchError::Failed(error);
    {
        let worker_loop = WorkerLoop::new(&stage.engine, WorkerId(0));
        let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
        workload.build_index(&mut txn).map_err(broken)?;
        worker_loop
            .block_on(txn.commit())
            .map_err(|error| broken(error.to_string()))?;
        let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
        workload.read_one(&mut txn).map_err(broken)?;
        txn.abort();
    }
    let first_s = since(begun);
    let mut outcome = stage.run(&workload, cell, progress)?;
    let full = outcome
        .measured
        .timeline
        .iter()
        .position(|n| *n as f64 * 1e9 / STEP_NS as f64 >= FULL * rate);
    outcome.rows = rows;
    let figures = &mut outcome.figures;
    let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), value);
    put("log MB", log_bytes as f64 / 1e6);
    put("log opened and applied, ms", open_s * 1e3);
    put("index made again, ms", (first_s - open_s) * 1e3);
    put("until the first query, ms", first_s * 1e3);
    put(
        "log MB per second",
        log_bytes as f64 / 1e6 / open_s.max(1e-9),
    );
    put("entries applied", report.entries as f64);
    let took = &report.took;
    for (name, time) in [
        ("reading and applying, ms", took.reading + took.finishing),
        ("writing tails again, ms", took.tails),
        ("recovery mark, ms", took.mark),
        ("opening lanes, ms", took.opening),
    ] {
        put(name, time.as_secs_f64() * 1e3);
    }
    // Not within the time measured: there is no such figure.
    if let Some(steps) = full {
        let until = first_s + (steps + 1) as f64 * STEP_NS as f64 / 1e9;
        put("until 90 % of the rate before, ms", until * 1e3);
    }
    Ok(outcome)
}
