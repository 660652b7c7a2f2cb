//! The whole command line of `logstead`: its commands, and their flags as the settings' table names them.
//!
//! Does not: read what is given (`config` does for the server, each command's module for itself).

use crate::config::{ABSENT_ONE_IN, ENVIRONMENT_PREFIX, EVICT_ALWAYS, flag, server_settings};
use clap::{Arg, ArgAction, Command};

/// The whole command line.
pub(crate) fn command_line() -> Command {
    let mut serve = Command::new("serve")
        .about("Runs the logstead server")
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .help("Settings file (TOML): any setting, also the defaults of session settings"),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Any setting, also the default of a session setting"),
        )
        .arg(Arg::new("accept-data-loss").long("accept-data-loss").action(ArgAction::SetTrue).help(
            "Starts on a log that is corrupt before its end; what follows the corruption is lost",
        ))
        .arg(Arg::new("take-over").long("take-over").action(ArgAction::SetTrue).help(
            "Takes a log in an object store from the server that has it, and shuts that server out; a replica does so when it is promoted",
        ))
        .arg(Arg::new("replace").long("replace").action(ArgAction::SetTrue).help(
            "Takes the place of the server that runs there on this machine, with its clients' connections; SIGUSR2 has a server start its own replacement",
        ));
    // To show what eviction breaks: harmless, and tested with the program that users get.
    let evict_always = Arg::new(EVICT_ALWAYS).long(EVICT_ALWAYS);
    serve = serve.arg(evict_always.action(ArgAction::SetTrue).hide(true));
    // The engine heeds it where debug assertions are: a program for users does not know it.
    if cfg!(debug_assertions) {
        serve = serve.arg(
            Arg::new(ABSENT_ONE_IN)
                .long(ABSENT_ONE_IN)
                .value_parser(clap::value_parser!(u32))
                .hide(true),
        );
    }
    serve = serve.arg(crate::branch::of_branch(
        "Serves this branch of the home, not the home itself; a branch of a branch is PARENT/NAME",
    ));
    for setting in server_settings() {
        let default = match setting.name {
            "workers" => "one per core, or per instance".to_owned(),
            "memory" => "two thirds of the machine's".to_owned(),
            "home" => "the data directory".to_owned(),
            _ if setting.doc.contains("Chosen for the home") => "by the home".to_owned(),
            _ => setting.show(setting.default),
        };
        let variable = format!("{ENVIRONMENT_PREFIX}{}", setting.name.to_uppercase());
        serve = serve.arg(
            Arg::new(setting.name)
                .long(flag(setting))
                .value_name("VALUE")
                .allow_hyphen_values(true)
                .help(format!(
                    "{} [default: {default}] [env: {variable}]",
                    setting.doc
                )),
        );
    }
    let url = || {
        Arg::new("URL").required(true).help(
            "The log's home: the data directory of a server that is stopped, or the URL of another home (of a bucket, also while a server runs)",
        )
    };
    Command::new("logstead")
        .about("logstead: a relational OLTP server that speaks PostgreSQL")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve)
        .subcommands(crate::backup::commands())
        .subcommand(crate::promote_command::command())
        .subcommand(logstead_bench::command())
        .subcommand(crate::dev_bucket::command())
        .subcommand(crate::storage::command())
        .subcommand(crate::fleet::command())
        .subcommand(crate::dev_fleet::command())
        .subcommand(crate::branch::command())
        .subcommand(
            Command::new("fsck")
                .about("Checks everything that a home holds: the checkpoint's records, pages and references, its indexes against its rows, and the log")
                .arg(url())
                .arg(Arg::new("restore-points").long("restore-points").action(ArgAction::SetTrue).help(
                    "Compares the indexes of every restore point with its rows too, not only those of the newest checkpoint",
                ))
                .arg(Arg::new("scratch").long("scratch").value_name("DIR").help(
                    "Where entries of indexes are sorted that do not fit in memory, about 12 bytes for each of a table's; the system's directory for such files by default",
                ))
                .arg(crate::branch::of_branch(
                    "Checks this branch of the home; what it needs of its parent is checked with it",
                )),
        )
        .subcommand(
            Command::new("log")
                .about("Reads a log of logstead offline")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(
                    Command::new("verify")
                        .about("Checks every block, entry and record")
                        .arg(url()),
                )
                .subcommand(
                    Command::new("dump")
                        .about("Prints the log as text")
                        .arg(url()),
                ),
        )
}
