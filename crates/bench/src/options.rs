//! The command line of `logstead bench`, and what it means.
//!
//! Invariant: an [`Options`] is valid; what is not is refused here, naming the option.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use logstead_engine::Isolation;

use crate::random::Distribution;

/// More workers than this have no lane each.
const WORKERS_MAX: usize = 1024;

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// Files in a directory.
    Local(PathBuf),
    /// This process's memory.
    Memory,
    /// Nowhere, and nobody waits for it: the ceiling.
    Discarded,
}

impl Log {
    /// As it was given.
    pub fn describe(&self) -> String {
        match self {
            Log::Local(dir) => format!("local:{}", dir.display()),
            Log::Memory => "memory".to_owned(),
            Log::Discarded => {
                "none (entries are made and dropped; nobody waits for them)".to_owned()
            }
        }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
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

/// What every workload shares.
#[derive(Clone, Debug)]
pub struct Common {
    /// One run for each.
    pub workers: Vec<usize>,
    /// When a run ends.
    pub until: Until,
    /// The isolation level of every transaction.
    pub isolation: Isolation,
    /// Where the log goes.
    pub log: Log,
    /// Transactions per second that arrive whatever happens; without it, each session begins the next one when the
    /// last is done.
    pub open_loop: Option<f64>,
    /// Sessions per worker.
    pub in_flight: usize,
    /// Bytes that wait in a lane until they are written while sessions are ready.
    pub flush_bytes: usize,
    /// Determines every random number.
    pub seed: u64,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Where the HTML goes.
    pub html: Option<PathBuf>,
}

/// Which workload.
#[derive(Clone, Debug)]
pub enum Kind {
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

/// A whole command.
#[derive(Clone, Debug)]
pub struct Options {
    /// What all workloads have.
    pub common: Common,
    /// The workload and its own.
    pub kind: Kind,
}

impl Kind {
    /// The subcommand's name.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Ycsb(_) => "ycsb",
            Kind::Tpcc(_) => "tpcc",
            Kind::Tatp { .. } => "tatp",
            Kind::SmallBank { .. } => "smallbank",
            Kind::Micro { .. } => "micro",
            Kind::Load { .. } => "load",
        }
    }
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .allow_hyphen_values(true)
        .help(help)
}

fn with_common(command: Command) -> Command {
    command
        .next_help_heading("Every workload")
        .arg(option(
            "workers",
            "N[,N...]",
            "Worker threads; a list makes one run for each [default: one per core]",
        ))
        .arg(option(
            "seconds",
            "S",
            "Length of what is measured [default: 10]",
        ))
        .arg(option(
            "warmup",
            "S",
            "Seconds before that which do not count [default: 1]",
        ))
        .arg(
            option(
                "transactions",
                "N",
                "Ends after N transactions instead; with one worker and --log none or memory, the same seed then gives \
                 the same run",
            )
            .conflicts_with_all(["seconds", "warmup"]),
        )
        .arg(option(
            "isolation",
            "LEVEL",
            "read-committed, repeatable-read or serializable [default: read-committed]",
        ))
        .arg(option(
            "log",
            "WHERE",
            "local:DIR writes to an empty directory; memory keeps the log in memory; none makes log entries and drops \
             them, and no transaction waits: the ceiling [default: none]",
        ))
        .arg(option(
            "open-loop",
            "RATE",
            "Transactions arrive at RATE per second in all, at random times; latency counts from the arrival, so a stall \
             is felt by all who arrive during it. Otherwise each session begins the next transaction when the last is \
             acknowledged (closed loop)",
        ))
        .arg(option(
            "in-flight",
            "N",
            "Sessions per worker: so many transactions may wait for the log while others run [default: 64, open loop \
             1024]",
        ))
        .arg(option(
            "flush-bytes",
            "N",
            "Bytes in a lane that are written while sessions are still ready [default: 16384]",
        ))
        .arg(option("seed", "N", "Determines every random choice [default: 1]"))
        .arg(option("json", "FILE", "Writes everything measured as JSON"))
        .arg(option(
            "html",
            "FILE",
            "Writes a report with charts, complete in one file",
        ))
}

fn with_distribution(command: Command, default: &'static str) -> Command {
    command
        .arg(
            option(
                "distribution",
                "HOW",
                "uniform, zipfian or hotspot: how keys are chosen",
            )
            .default_value(default),
        )
        .arg(option("theta", "T", "Skew of zipfian").default_value("0.99"))
        .arg(
            option("hot-keys", "F", "Fraction of the keys that hotspot prefers")
                .default_value("0.2"),
        )
        .arg(
            option(
                "hot-accesses",
                "F",
                "Fraction of the accesses that go to them",
            )
            .default_value("0.8"),
        )
}

/// The command line.
pub fn command() -> Command {
    let ycsb = Command::new("ycsb")
        .about("Reads and updates of rows with ten 8-byte fields")
        .arg(
            option(
                "mix",
                "A|B|C|F",
                "A: half reads, half updates; B: 95 % reads; C: reads only; F: half reads, half read-modify-writes \
                 [default: A]",
            )
            .conflicts_with("read-ratio"),
        )
        .arg(option("read-ratio", "F", "Any other fraction of reads, 0 to 1"))
        .arg(
            Arg::new("rmw")
                .long("rmw")
                .action(ArgAction::SetTrue)
                .help("Updates read the row in a statement of its own first"),
        )
        .arg(option("table-size", "N", "Rows").default_value("1000000"))
        .arg(option("ops", "N", "Operations per transaction").default_value("1"));
    let tpcc = Command::new("tpcc")
        .about("TPC-C: all five transactions, without think times; conditions 1-12 are checked after the run")
        .arg(option("warehouses", "N", "Scale [default: one per worker]"))
        .arg(option("items", "N", "Items; fewer than the specification's make a test quick").default_value("100000"))
        .arg(
            option("customers", "N", "Customers and first orders of each district, likewise").default_value("3000"),
        );
    let tatp = Command::new("tatp")
        .about("TATP: seven transactions on the subscribers of a telephone network")
        .arg(option("subscribers", "N", "Scale").default_value("100000"));
    let smallbank = Command::new("smallbank")
        .about("SmallBank: six transactions on savings and checking accounts; the total is checked after the run")
        .arg(option("accounts", "N", "Customers, each with a savings and a checking account").default_value("1000000"));
    let micro = Command::new("micro")
        .about(
            "Nanoseconds per get, update, insert and 100-row scan, alone and 100 to a transaction",
        )
        .arg(option("table-size", "N", "Rows").default_value("1000000"));
    let load = Command::new("load")
        .about("Rows per second into a table with a primary key, and memory per row")
        .arg(option("rows", "N", "Rows of 100 bytes of values").default_value("1000000"));
    Command::new("bench")
        .about("Measures the engine inside this process, without SQL or network")
        .long_about(
            "Measures the engine inside this process, without SQL or network. Each run loads its data, measures, checks \
             that the data is consistent, and prints a table. Latency is given twice: of the commit, from the end of \
             the transaction's own work to its acknowledgment, and of the whole transaction, retries included. Ctrl-C \
             ends a run early and prints what there is.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(with_common(with_distribution(ycsb, "uniform")))
        .subcommand(with_common(tpcc))
        .subcommand(with_common(tatp))
        .subcommand(with_common(with_distribution(smallbank, "uniform")))
        .subcommand(with_common(micro))
        .subcommand(with_common(load))
}

/// Options given, with errors that name them.
struct Given<'a>(&'a ArgMatches);

impl Given<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get_one::<String>(name).map(String::as_str)
    }

    fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
        &self,
        name: &str,
        default: T,
        low: T,
        high: T,
    ) -> Result<T, String> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        text.replace('_', "")
            .parse()
            .ok()
            .filter(|n: &T| *n >= low && *n <= high)
            .ok_or_else(|| format!("--{name} {text}: a number from {low} to {high} is expected"))
    }

    fn distribution(&self) -> Result<Distribution, String> {
        match self.text("distribution").unwrap_or("uniform") {
            "uniform" => Ok(Distribution::Uniform),
            "zipfian" => Ok(Distribution::Zipfian {
                theta: self.number("theta", 0.99, 0.01, 5.0)?,
            }),
            "hotspot" => Ok(Distribution::Hotspot {
                keys: self.number("hot-keys", 0.2, 0.0, 1.0)?,
                accesses: self.number("hot-accesses", 0.8, 0.0, 1.0)?,
            }),
            other => Err(format!(
                "--distribution {other}: uniform, zipfian or hotspot is expected"
            )),
        }
    }

    fn workers(&self) -> Result<Vec<usize>, String> {
        let Some(text) = self.text("workers") else {
            return Ok(vec![logstead_env::core_count()]);
        };
        text.split(',')
            .map(|part| {
                part.trim()
                    .parse()
                    .ok()
                    .filter(|n| (1..=WORKERS_MAX).contains(n))
                    .ok_or_else(|| {
                        format!(
                            "--workers {text}: numbers from 1 to {WORKERS_MAX}, separated by commas, are expected"
                        )
                    })
            })
            .collect()
    }

    fn common(&self) -> Result<Common, String> {
        let until = match self.text("transactions") {
            Some(_) => Until::Transactions(self.number("transactions", 1, 1, u64::MAX)?),
            None => Until::Seconds {
                measured: self.number("seconds", 10.0, 0.01, 1e6)?,
                warmup: self.number("warmup", 1.0, 0.0, 1e6)?,
            },
        };
        let isolation = match self.text("isolation").unwrap_or("read-committed") {
            "read-committed" => Isolation::ReadCommitted,
            "repeatable-read" => Isolation::RepeatableRead,
            "serializable" => Isolation::Serializable,
            other => {
                return Err(format!(
                    "--isolation {other}: read-committed, repeatable-read or serializable is expected"
                ));
            }
        };
        let log = match self.text("log").unwrap_or("none") {
            "none" => Log::Discarded,
            "memory" => Log::Memory,
            text => match text.strip_prefix("local:") {
                Some(dir) if !dir.is_empty() => Log::Local(dir.into()),
                _ => {
                    return Err(format!(
                        "--log {text}: local:DIR, memory or none is expected"
                    ));
                }
            },
        };
        let open_loop = match self.text("open-loop") {
            Some(_) => Some(self.number("open-loop", 1.0, 0.001, 1e9)?),
            None => None,
        };
        if open_loop.is_some() && matches!(until, Until::Transactions(_)) {
            return Err("--open-loop goes with --seconds, not with --transactions".into());
        }
        Ok(Common {
            workers: self.workers()?,
            until,
            isolation,
            log,
            in_flight: self.number(
                "in-flight",
                if open_loop.is_some() { 1024 } else { 64 },
                1,
                1 << 20,
            )?,
            open_loop,
            flush_bytes: self.number("flush-bytes", 16 << 10, 1, 1 << 30)?,
            seed: self.number("seed", 1, 0, u64::MAX)?,
            json: self.text("json").map(PathBuf::from),
            html: self.text("html").map(PathBuf::from),
        })
    }

    fn ycsb(&self) -> Result<Ycsb, String> {
        let (mut read_ratio, mut read_modify_write) = match self
            .text("mix")
            .unwrap_or("A")
            .to_ascii_uppercase()
            .as_str()
        {
            "A" => (0.5, false),
            "B" => (0.95, false),
            "C" => (1.0, false),
            "F" => (0.5, true),
            other => return Err(format!("--mix {other}: A, B, C or F is expected")),
        };
        if self.text("read-ratio").is_some() {
            read_ratio = self.number("read-ratio", 0.5, 0.0, 1.0)?;
        }
        read_modify_write |= self.0.get_flag("rmw");
        Ok(Ycsb {
            table_size: self.number("table-size", 1_000_000, 1, 1 << 40)?,
            read_ratio,
            read_modify_write,
            operations: self.number("ops", 1, 1, 100_000)?,
            distribution: self.distribution()?,
        })
    }
}

impl Options {
    /// Reads the arguments of `bench`.
    pub fn read(arguments: &ArgMatches) -> Result<Options, String> {
        let Some((name, arguments)) = arguments.subcommand() else {
            return Err("which workload? try `logstead bench --help`".into());
        };
        let given = Given(arguments);
        let common = given.common()?;
        let kind = match name {
            "ycsb" => Kind::Ycsb(given.ycsb()?),
            "tpcc" => {
                let most = common.workers.iter().copied().max().unwrap_or(1) as u32;
                Kind::Tpcc(Tpcc {
                    warehouses: given.number("warehouses", most, 1, 1 << 20)?,
                    items: given.number("items", 100_000, 100, 1 << 24)?,
                    customers: given.number("customers", 3000, 10, 1 << 20)?,
                })
            }
            "tatp" => Kind::Tatp {
                subscribers: given.number("subscribers", 100_000, 1, 1 << 30)?,
            },
            "smallbank" => Kind::SmallBank {
                accounts: given.number("accounts", 1_000_000, 2, 1 << 40)?,
                distribution: given.distribution()?,
            },
            "micro" => Kind::Micro {
                rows: given.number("table-size", 1_000_000, 1000, 1 << 40)?,
            },
            "load" => Kind::Load {
                rows: given.number("rows", 1_000_000, 1, 1 << 40)?,
            },
            other => return Err(format!("unknown workload {other}")),
        };
        if matches!(kind, Kind::Micro { .. }) && common.open_loop.is_some() {
            return Err(
                "--open-loop: micro measures single operations, one after the other".into(),
            );
        }
        Ok(Options { common, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let matches = command()
            .try_get_matches_from(words)
            .map_err(|error| error.to_string())?;
        Options::read(&matches)
    }

    #[test]
    fn defaults_are_valid() {
        for name in ["ycsb", "tpcc", "tatp", "smallbank", "micro", "load"] {
            let options = read(name).expect(name);
            assert_eq!(options.kind.name(), name);
            assert_eq!(options.common.log, Log::Discarded);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, named) in [
            ("ycsb --mix Z", "--mix Z"),
            ("ycsb --mix A --read-ratio 0.5", "--read-ratio"),
            ("ycsb --read-ratio 1.5", "--read-ratio 1.5"),
            ("ycsb --workers 0", "--workers 0"),
            ("ycsb --workers 1,x", "--workers 1,x"),
            ("ycsb --isolation dirty", "--isolation dirty"),
            ("ycsb --log disk", "--log disk"),
            ("ycsb --log local:", "--log local:"),
            ("ycsb --distribution pareto", "--distribution pareto"),
            ("ycsb --seconds -1", "--seconds -1"),
            ("ycsb --seconds NaN", "--seconds NaN"),
            ("ycsb --transactions 5 --seconds 1", "--seconds"),
            ("ycsb --transactions 5 --open-loop 10", "--open-loop"),
            ("micro --open-loop 10", "--open-loop"),
            ("tpcc --warehouses 0", "--warehouses 0"),
            ("tatp --subscribers many", "--subscribers many"),
            ("chess", "chess"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn mixes_mean_what_ycsb_says() {
        let ycsb = |line: &str| match read(line).expect(line).kind {
            Kind::Ycsb(ycsb) => (ycsb.read_ratio, ycsb.read_modify_write),
            other => panic!("{other:?}"),
        };
        assert_eq!(ycsb("ycsb"), (0.5, false));
        assert_eq!(ycsb("ycsb --mix b"), (0.95, false));
        assert_eq!(ycsb("ycsb --mix F"), (0.5, true));
        assert_eq!(ycsb("ycsb --read-ratio 0.8 --rmw"), (0.8, true));
    }
}
