//! `logstead`: the server and its offline tools.
//!
//! Owns: the command line, the configuration, and the wiring of the rooms into a running server. Only this crate
//! knows them all.

mod backup;
mod bench;
mod branch;
mod checkpoints;
mod client_admission;
mod client_handover;
mod command_line;
mod commit_settings;
mod config;
mod descriptors;
mod dev_bucket;
mod dev_fleet;
mod fleet;
mod fsck;
mod hba;
mod inherited_clients;
mod instances;
mod log_command;
mod logging;
mod metrics;
mod node_backup;
mod open;
mod partition_balance;
mod prepare;
mod prewarm;
mod primary_connection;
mod promote_command;
mod replace;
mod replica;
mod serve;
mod signals;
mod sockets;
mod spawner;
mod storage;
mod system_file;
mod worker;

use config::Config;
use std::io::Write;
use std::process::ExitCode;

/// Sessions allocate on their worker's thread; this allocator has a heap per thread. What is large goes back to the
/// system once it is freed.
#[global_allocator]
static ALLOCATOR: logstead_env::LargeMapped<mimalloc::MiMalloc> =
    logstead_env::LargeMapped(mimalloc::MiMalloc);

/// Wrong use: a bad option or setting.
const EXIT_USAGE: u8 = 2;
/// The server could not start or had to stop.
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let matches = match command_line::command_line().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let _stream_may_be_closed = error.print();
            return if error.use_stderr() {
                ExitCode::from(EXIT_USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match matches.subcommand() {
        Some(("serve", arguments)) => match Config::read(arguments) {
            Ok(config) if config.replace => {
                serve::run_successor(|| replace::take_over(config, replica::readable))
            }
            Ok(config) => match prepare::prepare(config) {
                Ok(prepared) if prepared.config.replica_of.is_some() => replica::run(prepared),
                Ok(prepared) => serve::run(prepared),
                Err(code) => code,
            },
            Err(error) => fail(EXIT_USAGE, &error),
        },
        Some(("log", arguments)) => log_command::run(arguments),
        Some(("fsck", arguments)) => fsck::run(arguments),
        Some(("branch", arguments)) => branch::run(arguments),
        Some(("restore", arguments)) if branch::is_of_point(arguments) => {
            branch::run_restore(arguments)
        }
        Some(("backup" | "restore", arguments)) => backup::run(arguments),
        Some(("promote", arguments)) => promote_command::run(arguments),
        Some(("bench", arguments)) => bench::run(arguments),
        Some(("dev-bucket", arguments)) => dev_bucket::run(arguments),
        Some(("storage", arguments)) => storage::run(arguments),
        Some(("fleet", arguments)) => fleet::run(arguments),
        Some(("dev-fleet", arguments)) => dev_fleet::run(arguments),
        _ => ExitCode::from(EXIT_USAGE),
    }
}

/// Says on standard error why it ends.
fn fail(code: u8, message: &str) -> ExitCode {
    let _stream_may_be_closed = writeln!(std::io::stderr(), "logstead: {message}");
    ExitCode::from(code)
}
