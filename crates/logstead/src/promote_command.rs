//! `logstead promote`: asks a running replica to become the primary, as `pg_ctl promote` does. What the replica then
//! does is `replica::promote`.

use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::{Arg, ArgMatches, Command};
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;
use tokio_postgres::NoTls;

/// The command.
pub(crate) fn command() -> Command {
    Command::new("promote")
        .about("Makes a running replica the primary, once no other server has the log")
        .arg(
            Arg::new("CONNECTION")
                .required(true)
                .help("How to connect to the replica, as a superuser: \"host=127.0.0.1 port=5434 user=postgres\" or postgres://...; a password may be in PGPASSWORD"),
        )
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("SECONDS")
                .value_parser(clap::value_parser!(i32).range(1..))
                .default_value("60")
                .help("How long it waits for the promotion"),
        )
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let Some(connection) = arguments.get_one::<String>("CONNECTION") else {
        return ExitCode::from(EXIT_USAGE);
    };
    let seconds = arguments.get_one::<i32>("wait").copied().unwrap_or(60);
    let mut config = match connection.parse::<tokio_postgres::Config>() {
        Ok(config) => config,
        Err(error) => return fail(EXIT_USAGE, &format!("{connection}: {}", told(&error))),
    };
    if config.get_user().is_none() {
        config.user("postgres");
    }
    if config.get_dbname().is_none() {
        config.dbname("postgres");
    }
    if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
        config.password(password);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(EXIT_FAILURE, &format!("cannot start: {error}")),
    };
    match runtime.block_on(promote(&config, seconds)) {
        Ok(()) => {
            let _pipe_may_be_closed = writeln!(std::io::stdout(), "promoted");
            ExitCode::SUCCESS
        }
        Err(error) => fail(EXIT_FAILURE, &told(&error)),
    }
}

async fn promote(
    config: &tokio_postgres::Config,
    seconds: i32,
) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    let promoted = client
        .query_one("SELECT pg_promote(true, $1)", &[&seconds])
        .await;
    // It ends with the session.
    connection.abort();
    promoted.map(|_| ())
}

/// The server's words, with what it adds to them.
fn told(error: &tokio_postgres::Error) -> String {
    let Some(server) = error.as_db_error() else {
        return error.to_string();
    };
    let mut text = server.message().to_owned();
    for (name, more) in [("detail", server.detail()), ("hint", server.hint())] {
        if let Some(more) = more {
            // Writing to a string cannot fail.
            let _written = write!(text, "\n{name}: {more}");
        }
    }
    text
}
