//! Workloads of the field, run on the engine inside this process: YCSB, TPC-C, TATP, SmallBank, single operations and
//! loading.
//!
//! 1. [`Options`] are read from the command line.
//! 2. [`run`] opens an engine for each number of workers, loads, drives sessions (`driver`), and checks what is left.
//! 3. [`Results`] are printed as a table, and written as JSON and as a report with charts.
//!
//! Invariants: a run whose data is not consistent afterwards says so and is a failure; every result names machine,
//! configuration and commit; the same seed draws the same transactions.
//!
//! Does not: use SQL or the network, or anything but the engine's public interface.
#![forbid(unsafe_code)]

mod access;
mod discard;
mod driver;
mod machine;
mod measure;
mod micro;
pub mod options;
mod progress;
mod random;
mod report;
mod smallbank;
mod tatp;
#[cfg(test)]
mod testing;
mod tpcc;
mod ycsb;

pub use driver::{Check, Outcome};
pub use machine::Machine;
pub use measure::{Counts, Latencies, Measured};
pub use micro::{LoadFigure, MicroFigure, Operation};
pub use options::{Options, command};
pub use progress::{Bar, Progress, Silent};
pub use random::{Distribution, Keys, Rng};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_engine::Env;
use logstead_env::{Access, OpenMode};

use driver::{Stage, Workload};
use options::{Common, Kind};

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The log's directory has something in it.
    #[error("{} is not empty: a benchmark writes its log to a directory of its own", .0.display())]
    NotEmpty(PathBuf),
    /// The engine did not open.
    #[error("{0}")]
    Open(String),
    /// The run failed.
    #[error("the run failed: {0}")]
    Failed(String),
    /// It was ended before anything was measured.
    #[error("{}", driver::INTERRUPTED)]
    Interrupted,
    /// A report could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// What one command gave.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub options: Options,
    /// Where it ran.
    pub machine: Machine,
    /// One for each number of workers.
    pub outcomes: Vec<Outcome>,
    /// Of `micro`.
    pub micro: Vec<MicroFigure>,
    /// Of `load`.
    pub loads: Vec<LoadFigure>,
    /// Conditions checked after `micro` and `load`.
    pub checks: Vec<Check>,
}

impl Results {
    /// Every condition that does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Check> {
        self.outcomes
            .iter()
            .flat_map(|outcome| &outcome.checks)
            .chain(&self.checks)
            .filter(|check| check.result.is_err())
    }

    /// Was it ended early?
    pub fn interrupted(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.interrupted)
    }

    /// The table for people.
    pub fn text(&self) -> String {
        report::text::render(self)
    }

    /// Everything measured.
    pub fn json(&self) -> String {
        report::json::render(self)
    }

    /// A report with charts that needs nothing else.
    pub fn html(&self) -> String {
        report::html::render(self)
    }

    /// Writes the files that were asked for.
    pub fn write_files(&self, env: &Env) -> Result<(), BenchError> {
        let common = &self.options.common;
        if let Some(path) = &common.json {
            write_file(env, path, &self.json())?;
        }
        if let Some(path) = &common.html {
            write_file(env, path, &self.html())?;
        }
        Ok(())
    }
}

fn write_file(env: &Env, path: &Path, text: &str) -> Result<(), BenchError> {
    let written = env
        .files
        .open(path, OpenMode::buffered(Access::Replace))
        .and_then(|file| file.write_all_at(0, text.as_bytes()));
    written.map_err(|error| BenchError::Write {
        path: path.to_path_buf(),
        error,
    })
}

/// Makes the files of the reports, so that an hour's run does not end with a path that cannot be written.
fn try_files(options: &Options, env: &Env) -> Result<(), BenchError> {
    let common = &options.common;
    for path in common.json.iter().chain(&common.html) {
        write_file(env, path, "")?;
    }
    Ok(())
}

/// Runs what `options` say, until the end or until `stop` is set.
pub fn run(
    options: &Options,
    env: &Env,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn Progress,
) -> Result<Results, BenchError> {
    try_files(options, env)?;
    let mut results = Results {
        options: options.clone(),
        machine: Machine::this(env),
        outcomes: Vec::new(),
        micro: Vec::new(),
        loads: Vec::new(),
        checks: Vec::new(),
    };
    let common = &options.common;
    for run in 0..common.workers.len() {
        let stage = Stage::open(common, run, env, stop)?;
        let result = run_on(&stage, options, &mut results, progress);
        progress.end();
        match result {
            // What earlier runs of the command gave is kept.
            Err(BenchError::Interrupted) if run > 0 => break,
            other => other?,
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(results)
}

fn run_on(
    stage: &Stage,
    options: &Options,
    results: &mut Results,
    progress: &mut dyn Progress,
) -> Result<(), BenchError> {
    let (engine, common) = (&stage.engine, &options.common);
    let outcome = match &options.kind {
        Kind::Ycsb(ycsb) => whole(stage, ycsb::Ycsb::new(engine, ycsb), common, progress)?,
        Kind::Tpcc(scale) => {
            let tpcc = tpcc::Tpcc::new(engine, *scale, common.seed);
            whole(stage, tpcc, common, progress)?
        }
        Kind::Tatp { subscribers } => whole(
            stage,
            tatp::Tatp::new(engine, *subscribers),
            common,
            progress,
        )?,
        Kind::SmallBank {
            accounts,
            distribution,
        } => {
            let bank = smallbank::SmallBank::new(engine, *accounts, *distribution);
            whole(stage, bank, common, progress)?
        }
        Kind::Micro { rows } => {
            let (figures, checks) = micro::run(stage, *rows, common, progress)?;
            results.micro.extend(figures);
            results.checks.extend(checks);
            return Ok(());
        }
        Kind::Load { rows } => {
            let (figure, checks) = micro::load(stage, *rows, common.seed, progress)?;
            results.loads.push(figure);
            results.checks.extend(checks);
            return Ok(());
        }
    };
    results.outcomes.push(outcome);
    Ok(())
}

/// Loads, runs and checks a workload.
fn whole<W: Workload>(
    stage: &Stage,
    workload: W,
    common: &Common,
    progress: &mut dyn Progress,
) -> Result<Outcome, BenchError> {
    let workload = Arc::new(workload);
    let (rows, load_seconds) = stage.load(&workload, common.seed, progress)?;
    let outcome = stage.run(&workload, common, progress)?;
    Ok(Outcome {
        rows,
        load_seconds,
        ..outcome
    })
}
