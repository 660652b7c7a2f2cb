//! What is kept of results: the JSON, written and read.
//!
//! Invariant: everything that a report shows is in here, so that results of many runs and commits can be put together
//! later. Times are nanoseconds.

use std::collections::BTreeMap;

use logstead_engine::Phase;
use serde::{Deserialize, Serialize};

use super::{PERCENTILES, configuration, parameters, per_second, rows};
use crate::measure::STEP_NS;
use crate::{ConsistencyCheck, Latencies, PathFigures, Results, RunOutcome};

/// Names what the JSON is; a report refuses others.
const FORMAT: &str = "logstead-bench/2";
/// Percentiles at which curves are drawn.
const CURVE: [f64; 21] = [
    0.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 97.5, 99.0,
    99.5, 99.9, 99.95, 99.99, 99.999,
];

/// Results of one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// Names what this is.
    pub format: String,
    /// The workload, or the experiment.
    pub name: String,
    /// Where it ran.
    pub machine: Machine,
    /// Each run.
    pub runs: Vec<Run>,
    /// Single operations.
    #[serde(default)]
    pub micro: Vec<Micro>,
    /// Loads.
    #[serde(default)]
    pub load: Vec<Load>,
    /// Conditions checked after these.
    #[serde(default)]
    pub checks: Vec<Condition>,
}

/// The machine, the build and the commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// In one line.
    pub description: String,
    /// The processor's name.
    pub processor: String,
    /// Cores that the process could use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel.
    pub kernel: String,
    /// The commit that was built.
    pub commit: String,
    /// Built with optimisation?
    pub optimised: bool,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisPoint {
    /// What the axis shows.
    pub name: String,
    /// Where on it.
    pub value: f64,
}

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Runs of one section are compared with each other.
    pub section: String,
    /// Which curve or bar.
    pub series: String,
    /// The place on the axis, if there is one.
    #[serde(default)]
    pub x: Option<AxisPoint>,
    /// Which repetition, from 0.
    #[serde(default)]
    pub repetition: u32,
    /// The workload.
    pub workload: String,
    /// Its own parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// What all workloads have.
    #[serde(default)]
    pub configuration: BTreeMap<String, String>,
    /// Worker threads.
    #[serde(default)]
    pub workers: usize,
    /// The figures then show waiting for cores as well.
    #[serde(default)]
    pub more_workers_than_cores: bool,
    /// It was ended from outside.
    #[serde(default)]
    pub interrupted: bool,
    /// Seconds measured.
    pub seconds: f64,
    /// Rows loaded before.
    #[serde(default)]
    pub rows_loaded: u64,
    /// Seconds that took.
    #[serde(default)]
    pub load_seconds: f64,
    /// By kind, and all together in a last row if there are several.
    pub transactions: Vec<Transactions>,
    /// Open loop: arrivals that nobody had begun when the run ended.
    #[serde(default)]
    pub arrivals_not_served: u64,
    /// Bytes of records put into lanes.
    #[serde(default)]
    pub log_bytes: u64,
    /// Transactions that wrote.
    #[serde(default)]
    pub writing_commits: u64,
    /// Flushes begun by workers.
    #[serde(default)]
    pub flushes: u64,
    /// Versions passed over.
    #[serde(default)]
    pub chain_steps: u64,
    /// Where the time of a transaction went, in mean nanoseconds, in order.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// Other figures, by name with unit.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// Length of a step of the timeline.
    #[serde(default)]
    pub timeline_step_ns: u64,
    /// Transactions that ended in each step.
    #[serde(default)]
    pub timeline: Vec<u64>,
    /// Conditions checked after it.
    #[serde(default)]
    pub checks: Vec<Condition>,
}

/// A part of a transaction's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Which.
    pub name: String,
    /// On average.
    pub mean_ns: f64,
    /// The median.
    #[serde(default)]
    pub p50_ns: u64,
    /// Of the slowest hundredth.
    #[serde(default)]
    pub p99_ns: u64,
}

/// One kind of transaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transactions {
    /// Which.
    pub name: String,
    /// Acknowledged.
    pub committed: u64,
    /// Of these per second.
    pub per_second: f64,
    /// Rolled back as the workload says.
    #[serde(default)]
    pub rolled_back: u64,
    /// Run again after 40001.
    #[serde(default)]
    pub retries_40001: u64,
    /// Run again after 40P01.
    #[serde(default, rename = "retries_40P01")]
    pub retries_40p01: u64,
    /// From the end of forward processing to the acknowledgment.
    #[serde(default)]
    pub commit_latency_ns: Latency,
    /// The same of those that wrote.
    #[serde(default)]
    pub writing_latency_ns: Latency,
    /// The whole transaction.
    #[serde(default)]
    pub whole_latency_ns: Latency,
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// Nine of ten are not above it.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// And so on.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// And so on.
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    /// The longest.
    pub max: u64,
    /// The average.
    pub mean: f64,
    /// How many.
    pub count: u64,
    /// Percentile and value, as far as the count can tell.
    #[serde(default)]
    pub curve: Vec<(f64, u64)>,
}

/// What had to hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// What.
    pub condition: String,
    /// Did it?
    pub holds: bool,
    /// What was found instead.
    #[serde(default)]
    pub found: Option<String>,
}

/// A single operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Micro {
    /// Which.
    pub operation: String,
    /// Worker threads.
    pub workers: usize,
    /// More than cores?
    pub more_workers_than_cores: bool,
    /// How many to a transaction.
    pub per_transaction: u64,
    /// How many were done.
    pub operations: u64,
    /// Of a worker, each.
    pub ns: f64,
    /// Of all workers.
    pub per_second: f64,
}

/// A load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    /// Worker threads.
    pub workers: usize,
    /// Rows.
    pub rows: u64,
    /// Until all were durable.
    pub seconds: f64,
    /// Growth of the process's resident memory.
    pub memory_bytes: Option<u64>,
    /// Bytes of records.
    pub log_bytes: u64,
}

impl Latency {
    pub(super) fn of(latencies: &Latencies) -> Latency {
        let [p50, p90, p99, p99_9, p99_99] =
            PERCENTILES.map(|(percentile, _)| latencies.value_at_percentile(percentile));
        Latency {
            p50,
            p90,
            p99,
            p99_9,
            p99_99,
            max: latencies.max(),
            mean: latencies.mean(),
            count: latencies.len(),
            curve: CURVE
                .into_iter()
                // Beyond what the count can tell, a percentile is just the maximum.
                .filter(|p| latencies.len() as f64 * (1.0 - p / 100.0) > 1.0 - 1e-6)
                .map(|p| (p, latencies.value_at_percentile(p)))
                .collect(),
        }
    }

    /// The percentiles that are shown, in order.
    pub(super) fn shown(&self) -> [u64; PERCENTILES.len()] {
        [self.p50, self.p90, self.p99, self.p99_9, self.p99_99]
    }
}

/// Where transactions' time went.
fn shares(path: &PathFigures) -> Vec<Share> {
    let share = |(phase, times): (Phase, &Latencies)| Share {
        name: phase.name().to_owned(),
        mean_ns: times.mean(),
        p50_ns: times.value_at_percentile(50.0),
        p99_ns: times.value_at_percentile(99.0),
    };
    path.phases().map(share).collect()
}

fn conditions(checks: &[ConsistencyCheck]) -> Vec<Condition> {
    checks
        .iter()
        .map(|check| Condition {
            condition: check.name.clone(),
            holds: check.result.is_ok(),
            found: check.result.clone().err(),
        })
        .collect()
}

fn pairs(pairs: Vec<(&str, String)>) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

impl Run {
    fn of(results: &Results, outcome: &RunOutcome) -> Run {
        let cell = &outcome.cell;
        let transactions = rows(outcome)
            .into_iter()
            .map(|(name, counts)| Transactions {
                name,
                committed: counts.committed,
                per_second: per_second(counts.committed, outcome.seconds),
                rolled_back: counts.rolled_back,
                retries_40001: counts.conflicts,
                retries_40p01: counts.deadlocks,
                commit_latency_ns: Latency::of(&counts.commit),
                writing_latency_ns: Latency::of(&counts.writing),
                whole_latency_ns: Latency::of(&counts.whole),
            })
            .collect();
        let mut configuration = pairs(configuration(cell));
        if !outcome.home.is_empty() {
            configuration.insert("home as opened".into(), outcome.home.clone());
        }
        Run {
            section: cell.label.section.clone(),
            series: cell.label.series.clone(),
            x: cell
                .label
                .x
                .clone()
                .map(|(name, value)| AxisPoint { name, value }),
            repetition: outcome.repetition,
            workload: cell.kind.name().to_owned(),
            parameters: pairs(parameters(&cell.kind)),
            configuration,
            workers: outcome.workers(),
            more_workers_than_cores: outcome.workers() > results.machine.cores,
            interrupted: outcome.interrupted,
            seconds: outcome.seconds,
            rows_loaded: outcome.rows,
            load_seconds: outcome.load_seconds,
            transactions,
            arrivals_not_served: outcome.measured.backlog,
            log_bytes: outcome.stats.log_bytes,
            writing_commits: outcome.stats.commits,
            flushes: outcome.stats.flushes,
            chain_steps: outcome.stats.chain_steps,
            shares: shares(&outcome.path),
            figures: figures(outcome),
            timeline_step_ns: STEP_NS,
            timeline: outcome.measured.timeline.clone(),
            checks: conditions(&outcome.checks),
        }
    }

    /// All kinds together.
    pub(super) fn total(&self) -> Option<&Transactions> {
        self.transactions.last()
    }
}

/// What is derived from the engine's counts.
fn figures(outcome: &RunOutcome) -> BTreeMap<String, f64> {
    let stats = &outcome.stats;
    let mut figures = outcome.figures.clone();
    figures.extend(outcome.path.figures());
    if stats.commits > 0 {
        let each = |count: u64| count as f64 / stats.commits as f64;
        figures.insert("record bytes per commit".into(), each(stats.log_bytes));
    }
    figures
}

impl Document {
    /// Of results in memory.
    pub fn of(results: &Results) -> Document {
        let machine = &results.machine;
        Document {
            format: FORMAT.into(),
            name: results.options.name.clone(),
            machine: Machine {
                description: machine.describe(),
                processor: machine.processor.clone(),
                cores: machine.cores,
                memory_bytes: machine.memory_bytes,
                kernel: machine.kernel.clone(),
                commit: machine.commit.into(),
                optimised: machine.optimised,
            },
            runs: results
                .outcomes
                .iter()
                .map(|outcome| Run::of(results, outcome))
                .collect(),
            micro: results
                .micro
                .iter()
                .map(|figure| Micro {
                    operation: figure.operation.name().into(),
                    workers: figure.workers,
                    more_workers_than_cores: figure.workers > machine.cores,
                    per_transaction: figure.per_transaction,
                    operations: figure.operations,
                    ns: figure.nanos(),
                    per_second: figure.rate(),
                })
                .collect(),
            load: results
                .loads
                .iter()
                .map(|figure| Load {
                    workers: figure.workers,
                    rows: figure.rows,
                    seconds: figure.seconds,
                    memory_bytes: figure.memory_bytes,
                    log_bytes: figure.log_bytes,
                })
                .collect(),
            checks: conditions(&results.checks),
        }
    }

    /// As JSON.
    pub fn json(&self) -> String {
        // Maps have text keys, and numbers that JSON has not become null: this cannot fail.
        let mut text = serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("results as JSON: {error}"));
        text.push('\n');
        text
    }

    /// Reads what [`Document::json`] wrote.
    pub fn read(bytes: &[u8]) -> Result<Document, String> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if document.format != FORMAT {
            return Err(format!(
                "its format is {:?}; this is a reader of {FORMAT:?}",
                document.format
            ));
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut latencies = crate::measure::latencies();
        for n in 1..=1000 {
            latencies.saturating_record(n * 1000);
        }
        let document = Document {
            format: FORMAT.into(),
            name: "a \"name\"\n".into(),
            machine: Machine {
                description: "d".into(),
                processor: "p".into(),
                cores: 2,
                memory_bytes: 3,
                kernel: "k".into(),
                commit: "c".into(),
                optimised: true,
            },
            runs: vec![Run {
                x: Some(AxisPoint {
                    name: "workers".into(),
                    value: 2.0,
                }),
                transactions: vec![Transactions {
                    commit_latency_ns: Latency::of(&latencies),
                    ..Transactions::default()
                }],
                ..Run::default()
            }],
            micro: Vec::new(),
            load: Vec::new(),
            checks: Vec::new(),
        };
        let json = document.json();
        let again = Document::read(json.as_bytes()).expect("reads");
        assert_eq!(again.json(), json);
        let latency = &again.runs[0].transactions[0].commit_latency_ns;
        assert!((490_000..515_000).contains(&latency.p50), "{latency:?}");
        // A thousand tell the 99.9th percentile, and no finer one.
        assert_eq!(latency.curve.last().map(|c| c.0), Some(99.9));
    }

    #[test]
    fn other_formats_are_refused() {
        assert!(Document::read(b"").is_err());
        assert!(Document::read(b"{}").is_err());
        let other = r#"{"format":"x","name":"","machine":{"description":"","processor":"","cores":1,"memory_bytes":1,
            "kernel":"","commit":"","optimised":true},"runs":[]}"#;
        let error = Document::read(other.as_bytes()).expect_err("another format");
        assert!(error.contains("\"x\""), "{error}");
    }
}
