//! Workloads of the field, run on the engine inside this process: YCSB, TPC-C, TATP, SmallBank, single operations and
//! loading; and bare appends, to compare with.
//!
//! 1. A [`BenchCommand`] is read from the command line: a list of configurations (cells) to run, or results to report
//!    on.
//! 2. [`run`] opens an engine for each cell, loads, drives sessions (`driver`), and checks what is left. Repetitions go
//!    through all cells in turn, forwards and backwards, so that a slow minute of the machine meets all alike.
//! 3. [`Results`] are printed as a table and kept as JSON ([`report::Document`]); [`report::html`] draws charts of any
//!    number of them.
//!
//! Invariants: a run whose data is not consistent afterwards says so and is a failure; every result names machine,
//! configuration and commit; the same seed draws the same transactions.
//!
//! Does not: use SQL or the network, or anything but the engine's public interface.
#![forbid(unsafe_code)]

mod access;
mod bare;
mod client;
pub mod command_line;
mod discard;
mod driver;
pub mod experiment;
mod home;
mod machine;
mod measure;
mod micro;
mod mixed;
mod needless;
pub mod options;
mod path;
mod placement;
mod progress;
mod random;
mod recovery;
pub mod report;
mod resource_usage;
pub mod scaling;
mod smallbank;
pub mod stealing;
mod tatp;
#[cfg(test)]
mod testing;
mod tpcc;
pub mod virtual_time;
mod ycsb;

pub use command_line::{BenchCommand, BenchOptions, command};
pub use driver::{ConsistencyCheck, RunOutcome};
pub use machine::Machine;
pub use measure::{Counts, Latencies, Measurements};
pub use micro::{LoadFigure, MicroFigure, Operation};
pub use path::PathFigures;
pub use progress::{Bar, NoProgress, ProgressListener};
pub use random::{Distribution, KeyGenerator, Rng};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_engine::Env;
use logstead_env::{Access, OpenMode};

use driver::{BenchEngine, Workload};
use options::{RunConfig, WorkloadKind};

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
    /// Results could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// What one command gave.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub options: BenchOptions,
    /// Where it ran.
    pub machine: Machine,
    /// One for each run.
    pub outcomes: Vec<RunOutcome>,
    /// Of `micro`.
    pub micro: Vec<MicroFigure>,
    /// Of `load`.
    pub loads: Vec<LoadFigure>,
    /// Conditions checked after `micro` and `load`.
    pub checks: Vec<ConsistencyCheck>,
    /// What runs have left in buckets, and why.
    pub left_behind: Vec<String>,
}

impl Results {
    /// Every condition that does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &ConsistencyCheck> {
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
        report::Document::of(self).json()
    }

    /// A report with charts that needs nothing else.
    pub fn html(&self) -> String {
        report::html::render(&[report::Document::of(self)])
    }

    /// Writes the files that were asked for.
    pub fn write_files(&self, env: &Env) -> Result<(), BenchError> {
        if let Some(path) = &self.options.json {
            write_file(env, path, &self.json())?;
        }
        if let Some(path) = &self.options.html {
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

/// Writes one report of the results in `files` to `html`; says what is in it.
pub fn report_files(files: &[PathBuf], html: &Path, env: &Env) -> Result<String, BenchError> {
    let documents = files
        .iter()
        .map(|path| {
            let refused = |why: String| BenchError::Read {
                path: path.clone(),
                why,
            };
            let bytes = env
                .files
                .read(path)
                .map_err(|error| refused(error.to_string()))?;
            report::Document::read(&bytes).map_err(refused)
        })
        .collect::<Result<Vec<_>, _>>()?;
    write_file(env, html, &report::html::render(&documents))?;
    let runs: usize = documents.iter().map(|document| document.runs.len()).sum();
    let tables: String = documents
        .iter()
        .map(|document| {
            let summary = report::summary(document);
            format!(
                "{}, {}\n{summary}\n",
                document.name, document.machine.description
            )
        })
        .collect();
    Ok(format!("{tables}{}: {runs} runs", html.display()))
}

/// Makes the files of the reports, so that an hour's run does not end with a path that cannot be written.
fn try_files(options: &BenchOptions, env: &Env) -> Result<(), BenchError> {
    for path in options.json.iter().chain(&options.html) {
        write_file(env, path, "")?;
    }
    Ok(())
}

/// Runs what `options` say, until the end or until `stop` is set.
pub fn run(
    options: &BenchOptions,
    env: &Env,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn ProgressListener,
) -> Result<Results, BenchError> {
    try_files(options, env)?;
    let mut results = Results {
        options: options.clone(),
        machine: Machine::this(env),
        outcomes: Vec::new(),
        micro: Vec::new(),
        loads: Vec::new(),
        checks: Vec::new(),
        left_behind: Vec::new(),
    };
    let total = options.cells.len() * options.repeat as usize;
    let mut number = 0;
    for repetition in 0..options.repeat {
        let mut order: Vec<&RunConfig> = options.cells.iter().collect();
        if repetition % 2 == 1 {
            order.reverse();
        }
        for cell in order {
            let run = (total > 1).then_some(number);
            progress.begin(number, total, &cell.label);
            let result = run_cell(cell, repetition, run, env, stop, &mut results, progress);
            progress.end();
            if options.is_experiment {
                let left = home::remove(&cell.common.home, run, env);
                results.left_behind.extend(left);
            }
            match result {
                // What earlier runs of the command gave is kept.
                Err(BenchError::Interrupted) if number > 0 => return Ok(results),
                other => other?,
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(results);
            }
            number += 1;
        }
    }
    Ok(results)
}

fn run_cell(
    cell: &RunConfig,
    repetition: u32,
    run: Option<usize>,
    env: &Env,
    stop: &Arc<AtomicBool>,
    results: &mut Results,
    progress: &mut dyn ProgressListener,
) -> Result<(), BenchError> {
    let common = &cell.common;
    if let WorkloadKind::Bare { size_bytes, way } = cell.kind {
        let outcome = bare::run(cell, (size_bytes, way), env, run, stop, progress)?;
        results.outcomes.push(RunOutcome {
            repetition,
            ..outcome
        });
        return Ok(());
    }
    if let WorkloadKind::Recovery { ycsb, tail } = &cell.kind {
        let outcome = recovery::run(cell, (ycsb, *tail), env, run, stop, progress)?;
        results.outcomes.push(RunOutcome {
            repetition,
            ..outcome
        });
        return Ok(());
    }
    let stage = BenchEngine::open(common, run, env, stop)?;
    let engine = &stage.engine;
    let outcome = match &cell.kind {
        WorkloadKind::Ycsb(ycsb) if ycsb.traced => {
            let trace = Arc::new(needless::Trace::default());
            let workload = ycsb::Ycsb::traced(engine, ycsb, &trace);
            trace.observe(engine);
            let mut outcome = whole(&stage, workload, cell, progress)?;
            outcome.figures.extend(trace.judge());
            outcome
        }
        WorkloadKind::Ycsb(ycsb) => {
            let workload = ycsb::Ycsb::new(engine, ycsb).placed(engine, common.cross_instance);
            whole(&stage, workload, cell, progress)?
        }
        WorkloadKind::Tpcc(scale) => {
            let tpcc = tpcc::Tpcc::new(engine, *scale, common.seed);
            whole(&stage, tpcc, cell, progress)?
        }
        WorkloadKind::Tatp { subscribers } => {
            let tatp = tatp::Tatp::new(engine, *subscribers);
            whole(&stage, tatp, cell, progress)?
        }
        WorkloadKind::SmallBank {
            accounts,
            distribution,
        } => {
            let bank = smallbank::SmallBank::new(engine, *accounts, *distribution)
                .placed(engine, common.cross_instance);
            whole(&stage, bank, cell, progress)?
        }
        WorkloadKind::Mixed {
            tpcc_workers,
            tpcc,
            ycsb,
        } => {
            let mixed = mixed::Mixed::new(
                *tpcc_workers,
                tpcc::Tpcc::new(engine, *tpcc, common.seed),
                ycsb::Ycsb::new(engine, ycsb).placed(engine, common.cross_instance),
            );
            whole(&stage, mixed, cell, progress)?
        }
        WorkloadKind::Micro { rows } => {
            let (figures, checks) = micro::run(&stage, *rows, common, progress)?;
            results.micro.extend(figures);
            results.checks.extend(checks);
            return Ok(());
        }
        WorkloadKind::Load { rows } => {
            let (figure, checks) = micro::load(&stage, *rows, common.seed, progress)?;
            results.loads.push(figure);
            results.checks.extend(checks);
            return Ok(());
        }
        WorkloadKind::Bare { .. } | WorkloadKind::Recovery { .. } => return Ok(()),
    };
    results.outcomes.push(RunOutcome {
        repetition,
        ..outcome
    });
    Ok(())
}

/// Loads, runs and checks a workload.
fn whole<W: Workload>(
    stage: &BenchEngine,
    workload: W,
    cell: &RunConfig,
    progress: &mut dyn ProgressListener,
) -> Result<RunOutcome, BenchError> {
    let workload = Arc::new(workload);
    let (rows, load_seconds) = stage.load(&workload, cell.common.seed, progress)?;
    let outcome = stage.run(&workload, cell, progress)?;
    Ok(RunOutcome {
        rows,
        load_seconds,
        ..outcome
    })
}
