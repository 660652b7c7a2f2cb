//! The command line's shape and its help.

use clap::{Arg, ArgAction, Command};

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .allow_hyphen_values(true)
        .help(help)
}

/// An option that may have several values: every combination of such values is run.
fn several(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).action(ArgAction::Append)
}

fn with_common(command: Command) -> Command {
    command
        .next_help_heading("Every workload; several values, separated by commas, are run in every combination")
        .arg(several(
            "workers",
            "N[,N...]",
            "Worker threads [default: one per core]",
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
        .arg(several(
            "isolation",
            "LEVEL[,LEVEL...]",
            "read-committed, repeatable-read or serializable [default: read-committed]",
        ))
        .arg(
            several(
                "home",
                "WHERE",
                "A directory, which must be empty, or sim://?model=MODEL, a simulated store; memory keeps the log in memory; none makes log entries and drops \
                 them, and no transaction waits: the ceiling. Several: give the option several times [default: none]",
            )
            .visible_alias("log"),
        )
        .arg(several(
            "open-loop",
            "RATE[,RATE...]",
            "Transactions arrive at RATE per second in all, at random times; latency counts from the arrival, so a stall \
             is felt by all who arrive during it. Otherwise each session begins the next transaction when the last is \
             acknowledged (closed loop)",
        ))
        .arg(several(
            "in-flight",
            "N[,N...]",
            "Sessions per worker: so many transactions may wait for the log while others run [default: 64, open loop \
             1024]",
        ))
        .arg(several(
            "workers-per-lane",
            "N[,N...]",
            "Workers that share a lane of the log, or all [default: 1]",
        ))
        .arg(
            several(
                "flush-unit",
                "BYTES[,BYTES...]",
                "Bytes in a lane that are written while sessions are still ready [default: 16k]",
            )
            .alias("flush-bytes"),
        )
        .arg(option(
            "repeat",
            "N",
            "Runs everything N times, in alternating order, so that a slow minute meets all alike [default: 1]",
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

fn with_ycsb(command: Command) -> Command {
    let command = command
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
    with_distribution(command, "uniform")
}

fn with_tpcc(command: Command) -> Command {
    command
        .arg(option("warehouses", "N", "Scale [default: one per worker]"))
        .arg(
            option(
                "items",
                "N",
                "Items; fewer than the specification's make a test quick",
            )
            .default_value("100000"),
        )
        .arg(
            option(
                "customers",
                "N",
                "Customers and first orders of each district, likewise",
            )
            .default_value("3000"),
        )
}

/// The command line.
pub fn command() -> Command {
    let ycsb =
        with_ycsb(Command::new("ycsb").about("Reads and updates of rows with ten 8-byte fields"));
    let tpcc = with_tpcc(Command::new("tpcc").about(
        "TPC-C: all five transactions, without think times; conditions 1-12 are checked after the run",
    ));
    let mixed = with_ycsb(with_tpcc(Command::new("mixed").about(
        "TPC-C on some workers, YCSB on the others: what do small transactions suffer from large ones?",
    )))
    .arg(option("tpcc-workers", "N", "Workers that run TPC-C").default_value("1"));
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
    let bare = Command::new("bare")
        .about("Appends with nothing around them: the yardstick of every commit; --workers is how many at a time")
        .arg(option("size", "BYTES[,BYTES...]", "Bytes of each append").default_value("4k"))
        .arg(
            option(
                "way",
                "HOW[,HOW...]",
                "file: each thread writes to a file of its own in the home's directory, O_DIRECT and O_DSYNC; inline: \
                 through the home, by the thread that waits; handoff: through the home's own threads",
            )
            .default_value("file"),
        );
    let report = Command::new("report")
        .about("One report with charts of any number of results")
        .arg(
            Arg::new("FILE")
                .required(true)
                .num_args(1..)
                .help("What --json wrote"),
        )
        .arg(
            option(
                "html",
                "FILE",
                "Where the report goes, complete in one file",
            )
            .default_value("report.html"),
        );
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
        .subcommand(with_common(ycsb))
        .subcommand(with_common(tpcc))
        .subcommand(with_common(mixed))
        .subcommand(with_common(tatp))
        .subcommand(with_common(with_distribution(smallbank, "uniform")))
        .subcommand(with_common(micro))
        .subcommand(with_common(load))
        .subcommand(with_common(bare))
        .subcommand(report)
}
