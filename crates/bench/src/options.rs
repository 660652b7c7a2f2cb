//! What a run is made of: its workload and the workload's sizes, its home, its commit path, and how long it runs.
//!
//! Invariant: a [`RunConfig`] is one run's whole configuration.
//!
//! Does not: read a command line (`command_line`).

mod setting;

use std::path::PathBuf;

use logstead_engine::{CommitOptions, Isolation};

use crate::random::Distribution;

pub use setting::Setting;
pub(crate) use setting::{NAMES, isolation_text, size, size_text};

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// Files in a directory.
    Local(PathBuf),
    /// Another home, by its URL.
    Url(String),
    /// This process's memory.
    Memory,
    /// Nowhere, and nobody waits for it: the ceiling.
    Discarded,
}

impl Home {
    pub(crate) fn read(text: &str) -> Result<Home, String> {
        let refused = || {
            format!(
                "--home {text}: a directory, file:///DIR, sim://?model=..., memory or none is expected"
            )
        };
        match text {
            "none" => return Ok(Home::Discarded),
            "memory" | "memory:" => return Ok(Home::Memory),
            _ => {}
        }
        let path = ["local:", "file://"]
            .into_iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        match path {
            // What is not a plain directory is the home's own business.
            Some(path) if path.starts_with("/dev/") || path.contains('%') => {
                Ok(Home::Url(format!("file://{path}")))
            }
            Some("") => Err(refused()),
            Some(path) => Ok(Home::Local(path.into())),
            None if text.contains(":/") => Ok(Home::Url(text.into())),
            None if text.contains('/') => Ok(Home::Local(text.into())),
            None => Err(refused()),
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Home::Local(dir) => format!("local:{}", dir.display()),
            Home::Url(url) => url.clone(),
            Home::Memory => "memory".to_owned(),
            Home::Discarded => {
                "none (entries are made and dropped; nobody waits for them)".to_owned()
            }
        }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunLimit {
    /// After so many seconds, the first of which are not counted.
    Seconds {
        /// Counted.
        measured: f64,
        /// Not counted.
        warmup: f64,
    },
    /// After so many transactions.
    Transactions(u64),
}

/// What every workload has.
#[derive(Clone, Debug)]
pub struct CommonOptions {
    /// Worker threads.
    pub workers: usize,
    /// Instances that workers, rows and index entries are divided among; 1: nothing is divided.
    pub instances: usize,
    /// The share of transactions that lead to other instances, of workloads whose keys are anybody's.
    pub cross_instance: f64,
    /// When a run ends.
    pub until: RunLimit,
    /// The isolation level of every transaction.
    pub isolation: Isolation,
    /// Where the log goes.
    pub home: Home,
    /// Transactions per second that arrive whatever happens; without it, each session begins the next one when the
    /// last is done.
    pub open_loop: Option<f64>,
    /// Sessions per worker.
    pub in_flight: usize,
    /// How transactions are committed.
    pub commit: CommitOptions,
    /// Records of updates are deltas; else whole rows.
    pub delta_records: bool,
    /// Determines every random number.
    pub seed: u64,
}

/// Which workload.
#[derive(Clone, Debug)]
pub enum WorkloadKind {
    /// Key-value reads and updates.
    Ycsb(Ycsb),
    /// Order entry.
    Tpcc(Tpcc),
    /// A telephone network's subscribers.
    Tatp {
        /// How many.
        subscribers: u32,
    },
    /// A bank.
    SmallBank {
        /// Customers.
        accounts: u64,
        /// How they are chosen.
        distribution: Distribution,
    },
    /// Order entry on some workers, key-value reads and updates on the others.
    Mixed {
        /// The workers that take orders.
        tpcc_workers: usize,
        /// Their scale.
        tpcc: Tpcc,
        /// What the others do.
        ycsb: Ycsb,
    },
    /// Single operations.
    Micro {
        /// Rows in the table.
        rows: u64,
    },
    /// Loading rows.
    Load {
        /// How many.
        rows: u64,
    },
    /// YCSB before a crash and after it.
    Recovery {
        /// What runs; its table size is the data's.
        ycsb: Ycsb,
        /// Transactions before the crash: the log's tail.
        tail: u64,
    },
    /// Appends to the home, with nothing around them.
    Bare {
        /// Bytes of each.
        size_bytes: usize,
        /// The way that they take.
        way: AppendPath,
    },
}

/// How a bare append reaches its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendPath {
    /// Each thread writes to a file of its own: O_DIRECT, O_DSYNC, and nothing of Logstead's homes.
    File,
    /// Through the home, by the thread that waits for it.
    Inline,
    /// Through the home, handed over; the thread waits for its completion.
    Handoff,
    /// By the bucket's client, one thread for all, with nothing of the home: what a home on objects adds to is this.
    Client,
    /// To each node of a fleet by itself; done when most of them have it.
    Quorum,
}

impl AppendPath {
    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            AppendPath::File => "file",
            AppendPath::Inline => "inline",
            AppendPath::Handoff => "handoff",
            AppendPath::Client => "client",
            AppendPath::Quorum => "quorum",
        }
    }
}

/// YCSB's parameters.
#[derive(Clone, Debug)]
pub struct Ycsb {
    /// Rows.
    pub table_size: u64,
    /// Which part of the operations reads.
    pub read_ratio: f64,
    /// The others read the row before they change it.
    pub read_modify_write: bool,
    /// Operations per transaction.
    pub operations: u32,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// Rows tell who wrote them, and after the run it is judged which waits had no reason.
    pub traced: bool,
}

/// TPC-C's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Tpcc {
    /// Warehouses.
    pub warehouses: u32,
    /// Items; the specification says 100,000.
    pub items: u32,
    /// Customers, and first orders, per district; the specification says 3,000.
    pub customers: u32,
}

/// Where a run's figures stand among the others of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Runs of one section are compared with each other.
    pub section: String,
    /// Which curve or bar.
    pub series: String,
    /// The place on the axis, if the section sweeps something: its name and value.
    pub x: Option<(String, f64)>,
}

/// One run's configuration.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Where its figures stand.
    pub label: Label,
    /// The workload and its own.
    pub kind: WorkloadKind,
    /// What all workloads have.
    pub common: CommonOptions,
}

impl WorkloadKind {
    /// The subcommand's name.
    pub fn name(&self) -> &'static str {
        match self {
            WorkloadKind::Ycsb(_) => "ycsb",
            WorkloadKind::Tpcc(_) => "tpcc",
            WorkloadKind::Tatp { .. } => "tatp",
            WorkloadKind::SmallBank { .. } => "smallbank",
            WorkloadKind::Mixed { .. } => "mixed",
            WorkloadKind::Micro { .. } => "micro",
            WorkloadKind::Load { .. } => "load",
            WorkloadKind::Recovery { .. } => "recovery",
            WorkloadKind::Bare { .. } => "bare",
        }
    }
}

/// Every combination of the dimensions' settings, labelled by those that vary: the first of them with numbers is the
/// axis, the others name the series.
pub(crate) fn combine(
    section: &str,
    kind: &WorkloadKind,
    base: &CommonOptions,
    dimensions: &[Vec<Setting>],
) -> Vec<RunConfig> {
    let varies = |dimension: &Vec<Setting>| dimension.len() > 1;
    let axis = dimensions.iter().position(|dimension| {
        varies(dimension) && dimension.iter().all(|setting| setting.number().is_some())
    });
    let mut chosen: Vec<Vec<&Setting>> = vec![Vec::new()];
    for dimension in dimensions.iter().filter(|d| !d.is_empty()) {
        chosen = chosen
            .into_iter()
            .flat_map(|settings| {
                dimension.iter().map(move |setting| {
                    let mut settings = settings.clone();
                    settings.push(setting);
                    settings
                })
            })
            .collect();
    }
    let given: Vec<usize> = (0..dimensions.len())
        .filter(|at| !dimensions[*at].is_empty())
        .collect();
    chosen
        .into_iter()
        .map(|settings| {
            let mut common = base.clone();
            let mut names = Vec::new();
            let mut x = None;
            for (at, setting) in given.iter().zip(settings) {
                setting.apply(&mut common);
                if Some(*at) == axis {
                    x = setting
                        .number()
                        .map(|value| (setting.name().to_owned(), value));
                } else if varies(&dimensions[*at]) {
                    names.push(format!("{} {}", setting.name(), setting.text()));
                }
            }
            RunConfig {
                label: Label {
                    section: section.to_owned(),
                    series: if names.is_empty() {
                        kind.name().to_owned()
                    } else {
                        names.join(", ")
                    },
                    x,
                },
                kind: kind.clone(),
                common,
            }
        })
        .collect()
}
