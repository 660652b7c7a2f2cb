//! `logstead backup` and `logstead restore`: a database of one home in another home, as a database of its own.
//!
//! Both are the same thing: what is restored is a backup of the backup.

use crate::branch::{ack, at, home_options, of_branch, open_source, point};
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::{Arg, ArgMatches, Command};
use logstead_checkpoint::{BackupError, BackupReport, backup};
use logstead_env::Env;
use std::io::Write;
use std::process::ExitCode;

/// The two commands.
pub(crate) fn commands() -> [Command; 2] {
    let url = |name: &'static str, help: &'static str| Arg::new(name).required(true).help(help);
    let from = "The home to copy: a data directory or a URL; a server may be running there";
    let to = "The home to make: a data directory or a URL; empty, or an older copy of the same database that nobody has used";
    [
        Command::new("backup")
            .about("Copies a database to another home; repeated, it copies what has changed")
            .arg(of_branch("Copies this branch of the home, with what it needs of its parent"))
            .arg(ack())
            .arg(url("URL", from))
            .arg(url("NEWURL", to)),
        Command::new("restore")
            .about("Makes a database out of a backup, or, with --at or --point, out of a restore point of a database")
            .arg(at())
            .arg(point())
            .arg(of_branch("Restores this branch of the home, or one of its restore points"))
            .arg(ack())
            .arg(url("URL", from))
            .arg(url("NEWURL", to)),
    ]
}

fn copy(from: &str, to: &str, arguments: &ArgMatches) -> Result<BackupReport, String> {
    let env = Env::real();
    logstead_home::check_copy(from, to, &env).map_err(|error| error.to_string())?;
    let options = home_options(arguments, from, &env);
    let from = open_source(from, arguments, &env).map_err(|error| error.to_string())?;
    logstead_home::open(to, &env, &options)
        .map_err(BackupError::from)
        .and_then(|to| backup(&from, &to, &env))
        .map_err(|error| error.to_string())
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let url = |name| arguments.get_one::<String>(name);
    let (Some(from), Some(to)) = (url("URL"), url("NEWURL")) else {
        return ExitCode::from(EXIT_USAGE);
    };
    crate::logging::start_logging("warn", false);
    match copy(from, to, arguments) {
        Ok(done) => {
            let left_out = match done.points_left_out {
                0 => String::new(),
                count => format!(" ({count} cannot be read and are left out)"),
            };
            let text = format!(
                "{to}: database {}, {} objects and {} bytes copied, {} objects were there; {} restore points{left_out}; {} transactions behind the checkpoint; {}\n",
                done.database,
                done.copied.objects,
                done.copied.bytes,
                done.copied.found,
                done.points,
                done.entries,
                match (done.incremental, done.rounds) {
                    (_, 1..) => format!("{} newer checkpoints came meanwhile", done.rounds),
                    (true, 0) => format!("{} objects of the copy before removed", done.removed),
                    (false, 0) => "a new copy".to_owned(),
                }
            );
            // A reader that closed the pipe has read enough.
            let _pipe_may_be_closed = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => fail(EXIT_FAILURE, &error),
    }
}
