//! The command line of `logstead bench`, and what it means.
//!
//! A command is a list of [`RunConfig`]s, each one run's whole configuration, and how often each is repeated. An option
//! that was given several values multiplies the cells.
//!
//! Invariant: a [`BenchOptions`] is valid; what is not is refused here, naming the option.

mod cli;
mod parsed_args;
mod setting;

use std::path::PathBuf;

use clap::ArgMatches;
use logstead_engine::{CommitOptions, Isolation};

use crate::random::Distribution;

pub use cli::command;
use parsed_args::ParsedArgs;
pub use setting::Setting;
pub(crate) use setting::{isolation_text, size_text};

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
    fn read(text: &str) -> Result<Home, String> {
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
        way: BareWay,
    },
}

/// How a bare append reaches its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareWay {
    /// Each thread writes to a file of its own: O_DIRECT, O_DSYNC, and nothing of Logstead's homes.
    File,
    /// Through the home, by the thread that waits for it.
    Inline,
    /// Through the home, handed over; the thread waits for its completion.
    Handoff,
    /// By the bucket's client, one thread for all, with nothing of the home: what a home on objects adds to is this.
    Client,
}

impl BareWay {
    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            BareWay::File => "file",
            BareWay::Inline => "inline",
            BareWay::Handoff => "handoff",
            BareWay::Client => "client",
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

/// A whole command.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The workload, or the experiment.
    pub name: String,
    /// What is run.
    pub cells: Vec<RunConfig>,
    /// How often each is run; repetitions go through all cells in turn.
    pub repeat: u32,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Where the HTML goes.
    pub html: Option<PathBuf>,
    /// Its logs in directories are removed when their run has ended, and its runs are shown side by side only.
    pub is_experiment: bool,
}

/// What a command line asks for.
#[derive(Clone, Debug)]
pub enum BenchCommand {
    /// Runs.
    Run(BenchOptions),
    /// A report of runs made before.
    Report {
        /// Their results.
        files: Vec<PathBuf>,
        /// Where the report goes.
        html: PathBuf,
    },
    /// The names of the experiments.
    Experiments,
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

impl BenchOptions {
    /// Reads the arguments of a workload of `bench`.
    pub fn read(arguments: &ArgMatches) -> Result<BenchOptions, String> {
        match BenchCommand::read(arguments)? {
            BenchCommand::Run(options) => Ok(options),
            BenchCommand::Report { .. } | BenchCommand::Experiments => Err("nothing to run".into()),
        }
    }
}

impl BenchCommand {
    /// Reads the arguments of `bench`.
    pub fn read(arguments: &ArgMatches) -> Result<BenchCommand, String> {
        let Some((name, arguments)) = arguments.subcommand() else {
            return Err("which workload? try `logstead bench --help`".into());
        };
        match name {
            "report" => return parsed_args::report(arguments),
            "experiment" => return parsed_args::experiment(arguments),
            _ => {}
        }
        let given = ParsedArgs(arguments);
        let kinds = given.kinds(name)?;
        let (base, dimensions) = given.common(&kinds[0])?;
        let mut cells = Vec::new();
        for kind in &kinds {
            cells.extend(combine(name, kind, &base, &dimensions));
        }
        for cell in &mut cells {
            given.fit(cell, kinds.len() > 1)?;
        }
        Ok(BenchCommand::Run(BenchOptions {
            name: name.to_owned(),
            cells,
            repeat: given.number("repeat", 1, 1, 1000)?,
            json: given.path("json"),
            html: given.path("html"),
            is_experiment: false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<BenchOptions, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let matches = command()
            .try_get_matches_from(words)
            .map_err(|error| error.to_string())?;
        BenchOptions::read(&matches)
    }

    #[test]
    fn defaults_are_valid() {
        for name in [
            "ycsb",
            "tpcc",
            "tatp",
            "smallbank",
            "mixed",
            "micro",
            "load",
        ] {
            let options = read(name).expect(name);
            assert_eq!(options.cells.len(), 1);
            assert_eq!(options.cells[0].kind.name(), name);
            assert_eq!(options.cells[0].common.home, Home::Discarded);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, named) in [
            ("ycsb --mix Z", "--mix Z"),
            ("ycsb --mix A --read-ratio 0.5", "--read-ratio"),
            ("ycsb --read-ratio 1.5", "--read-ratio 1.5"),
            ("ycsb --workers 0", "--workers 0"),
            ("ycsb --workers 1,x", "--workers x"),
            ("ycsb --isolation dirty", "--isolation dirty"),
            ("ycsb --log disk", "--home disk"),
            ("ycsb --home local:", "--home local:"),
            ("ycsb --flush-unit 4x", "--flush-unit 4x"),
            ("ycsb --protocol gossip", "--protocol gossip"),
            ("ycsb --tracking none", "--tracking none"),
            ("ycsb --queue long", "--queue long"),
            ("ycsb --delta maybe", "--delta maybe"),
            ("ycsb --lane-buffer 1k", "--lane-buffer 1k"),
            ("ycsb --repeat 0", "--repeat 0"),
            ("ycsb --distribution pareto", "--distribution pareto"),
            ("ycsb --seconds -1", "--seconds -1"),
            ("ycsb --seconds NaN", "--seconds NaN"),
            ("ycsb --transactions 5 --seconds 1", "--seconds"),
            ("ycsb --transactions 5 --open-loop 10", "--open-loop"),
            ("micro --open-loop 10", "--open-loop"),
            ("bare --open-loop 10", "--open-loop"),
            ("bare --way carrier-pigeon", "--way carrier-pigeon"),
            ("bare --home none", "--home none"),
            ("tpcc --warehouses 0", "--warehouses 0"),
            ("tatp --subscribers many", "--subscribers many"),
            ("mixed --workers 1", "--tpcc-workers"),
            ("recovery --trace-waits", "--trace-waits"),
            ("report", "FILE"),
            ("experiment alchemy", "alchemy"),
            ("experiment protocols --repeat 0", "--repeat 0"),
            ("chess", "chess"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn mixes_mean_what_ycsb_says() {
        let ycsb = |line: &str| match &read(line).expect(line).cells[0].kind {
            WorkloadKind::Ycsb(ycsb) => (ycsb.read_ratio, ycsb.read_modify_write),
            other => panic!("{other:?}"),
        };
        assert_eq!(ycsb("ycsb"), (0.5, false));
        assert_eq!(ycsb("ycsb --mix b"), (0.95, false));
        assert_eq!(ycsb("ycsb --mix F"), (0.5, true));
        assert_eq!(ycsb("ycsb --read-ratio 0.8 --rmw"), (0.8, true));
    }

    #[test]
    fn several_values_make_every_combination() {
        let options = read(
            "ycsb --workers 1,2,4 --flush-unit 4k,16k --isolation read-committed,serializable --repeat 3",
        )
        .expect("reads");
        assert_eq!(options.repeat, 3);
        assert_eq!(options.cells.len(), 12);
        let labels: Vec<(String, f64)> = options
            .cells
            .iter()
            .map(|cell| {
                let (axis, value) = cell.label.x.clone().expect("an axis");
                assert_eq!(axis, "workers");
                assert_eq!(value, cell.common.workers as f64);
                (cell.label.series.clone(), value)
            })
            .collect();
        assert_eq!(
            labels[1],
            ("flush-unit 4 KiB, isolation serializable".into(), 1.0)
        );
        let mut unique = labels.clone();
        unique.dedup();
        assert_eq!(unique.len(), 12, "{labels:?}");
    }

    #[test]
    fn homes_are_told_apart() {
        let home = |text: &str| {
            read(&format!("ycsb --home {text}")).expect(text).cells[0]
                .common
                .home
                .clone()
        };
        assert_eq!(home("local:a"), Home::Local("a".into()));
        assert_eq!(home("/a/b"), Home::Local("/a/b".into()));
        assert_eq!(home("file:///a"), Home::Local("/a".into()));
        assert_eq!(
            home("file:///dev/loop0"),
            Home::Url("file:///dev/loop0".into())
        );
        assert_eq!(
            home("sim://?model=gp3"),
            Home::Url("sim://?model=gp3".into())
        );
        assert_eq!(home("memory:"), Home::Memory);
        let two = read("ycsb --home memory --home sim://?model=gp3,io2").expect("reads");
        assert_eq!(two.cells[1].label.series, "home sim://?model=gp3,io2");
    }

    #[test]
    fn one_value_is_no_axis() {
        let options = read("tpcc --workers 4").expect("reads");
        assert_eq!(options.cells[0].label.x, None);
        assert_eq!(options.cells[0].label.series, "tpcc");
        match options.cells[0].kind {
            WorkloadKind::Tpcc(scale) => assert_eq!(scale.warehouses, 4),
            ref other => panic!("{other:?}"),
        }
    }
}
