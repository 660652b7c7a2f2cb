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
                "Ends after N transactions instead; with one worker and --home none, the same seed then gives \
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
            "instances",
            "N[,N...]",
            "Instances that workers, rows and index entries are divided among; sessions keep to keys of their worker's. ycsb, \
             smallbank, tpcc and mixed [default: 1]",
        ))
        .arg(several(
            "cross-instance",
            "SHARE[,SHARE...]",
            "With several instances: the share of the transactions of ycsb and smallbank that lead to others; tpcc has its \
             remote warehouses [default: 0]",
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
        .arg(several(
            "protocol",
            "NAME[,NAME...]",
            "Who flushes and acknowledges: group, pipelined, autonomous or grouped-lanes [default: as the server's]",
        ))
        .arg(several(
            "tracking",
            "NAME[,NAME...]",
            "What a transaction waits for besides itself: horizon, gsn, dsn or exact [default: as the server's]; or leanstore, \
             which loses acknowledged commits in a crash and is here to compare with",
        ))
        .arg(several(
            "queue",
            "NAME[,NAME...]",
            "How transactions get to who acknowledges them: lock-free or latched [default: lock-free]",
        ))
        .arg(several(
            "flush-timeout",
            "US[,US...]",
            "The oldest entry waits no longer for the flush unit while sessions are ready, in microseconds",
        ))
        .arg(several(
            "lane-buffer",
            "BYTES[,BYTES...]",
            "Each of a lane's buffers [default: 1m]",
        ))
        .arg(several(
            "blocks-in-flight",
            "N[,N...]",
            "Blocks of a lane that are written at a time, if the home can",
        ))
        .arg(several(
            "gather",
            "US[,US...]",
            "grouped-lanes: a lane's next flush waits so long for the workers that the last one has set free",
        ))
        .arg(several(
            "ack-group",
            "N[,N...]",
            "autonomous: workers whose transactions one of them acknowledges",
        ))
        .arg(several(
            "steal-group",
            "N[,N...]",
            "autonomous: workers that steal log from each other; 0 and 1: nobody steals",
        ))
        .arg(several(
            "acknowledge",
            "WHEN[,WHEN...]",
            "autonomous: workers acknowledge when-hardened, or by-dice as in the paper [default: when-hardened]",
        ))
        .arg(several(
            "force-commit",
            "WHEN[,WHEN...]",
            "autonomous: an idle worker flushes at-once, or if-idle-long as in the paper [default: at-once]",
        ))
        .arg(several(
            "delta",
            "on|off[,...]",
            "Records of updates carry the changed columns only, or whole rows [default: on]",
        ))
        .arg(several(
            "adaptive",
            "on|off[,...]",
            "Lanes in use (--workers-per-lane says how many at first), flush unit, timeout and gather delay follow latency and \
             load [default: off]",
        ))
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
        .arg(
            Arg::new("trace-waits")
                .long("trace-waits")
                .action(ArgAction::SetTrue)
                .help(
                    "Rows tell who wrote them; afterwards the dependency graph says how long commits waited for nothing",
                ),
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
    let recovery = with_ycsb(Command::new("recovery").about(
        "YCSB, a crash, and how long it takes to come back; every acknowledged update must be there",
    ))
    .arg(option("tail", "N", "Transactions before the crash").default_value("100000"));
    let bare = Command::new("bare")
        .about("Appends with nothing around them: the yardstick of every commit; --workers is how many at a time")
        .arg(option("size", "BYTES[,BYTES...]", "Bytes of each append").default_value("4k"))
        .arg(
            option(
                "way",
                "HOW[,HOW...]",
                "file: each thread writes to a file of its own in the home's directory, O_DIRECT and O_DSYNC; inline: \
                 through the home, by the thread that waits; handoff: through the home's own threads; client: by the client \
                 library of a bucket, without the home; quorum: to each node of a fleet:// by itself, done when most have it",
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
    let experiment = Command::new("experiment")
        .about("A comparison by name, as the papers make them; without a name, lists them")
        .arg(Arg::new("NAME").help("Which; `logstead bench experiment` lists them"))
        .arg(
            Arg::new("quick")
                .long("quick")
                .action(ArgAction::SetTrue)
                .help("Small tables and short runs: less than a minute altogether"),
        )
        .arg(option(
            "seconds",
            "S",
            "Length of each run [default: 10; quick: what fits a minute]",
        ))
        .arg(several(
            "adaptive",
            "on|off[,...]",
            "Lanes in use (--workers-per-lane says how many at first), flush unit, timeout and gather delay follow latency and \
             load [default: off]",
        ))
        .arg(option(
            "repeat",
            "N",
            "Repetitions, alternating [default: 3; quick: 1]",
        ))
        .arg(
            option(
                "dir",
                "DIR",
                "Where logs on local disk are written, each removed when its run has ended",
            )
            .default_value("bench/results/logs"),
        )
        .arg(several(
            "home",
            "[NAME=]URL",
            "A real home to measure beside the models of cloud storage, under this name; may be given several times. Each run \
             writes below a prefix of its own, which is removed when it has ended",
        ))
        .arg(option(
            "seed",
            "N",
            "Determines every random choice [default: 1]",
        ))
        .arg(option("json", "FILE", "Writes everything measured as JSON"))
        .arg(option("html", "FILE", "Writes a report with charts"));
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
        .subcommand(with_common(recovery))
        .subcommand(with_common(bare))
        .subcommand(experiment)
        .subcommand(report)
}
