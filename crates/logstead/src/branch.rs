//! `logstead branch`, and `logstead restore` with `--at` or `--point`: branches of a home, and going back to a restore
//! point; and which home a branch's server works on.
//!
//! A branch's home lies below its parent's (`branches/NAME-NUMBER`), at every kind of home that has a URL below it. A
//! branch of a branch is named by its path: `a/b`.

use crate::{EXIT_FAILURE, EXIT_USAGE, fail, logging};
use clap::{Arg, ArgMatches, Command};
use logstead_checkpoint::damage_of_object;
use logstead_checkpoint::{
    BranchError, PINS, Pin, PinKind, Pins, RecoveryPoint, RecoveryTarget, create_branch,
    directory_of, drop_branch, points_of_now, restore_point, served,
};
use logstead_env::Env;
use logstead_home::{
    BranchObjects, HomeError, HomeOptions, LocalOptions, LogHome, ObjectReader, WriteConcern,
    branch_home, open_objects, readers_of, url_below,
};
use logstead_sql_types::value::datetime::parse_timestamptz;
use logstead_types::Epoch;
use logstead_wal::inspect::manifest_of;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// `logstead branch`
pub(crate) fn command() -> Command {
    let url = || {
        Arg::new("URL")
            .required(true)
            .help("The parent's home: the data directory of a server that is stopped, or the URL of another home (of object stores, also while a server runs)")
    };
    let name = || {
        Arg::new("NAME")
            .required(true)
            .help("The branch; a branch of a branch is PARENT/NAME")
    };
    Command::new("branch")
        .about("Makes, lists and drops branches: databases that begin with the state of another one, without copying it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("create")
                .about("Makes a branch at the newest checkpoint, or at a restore point")
                .arg(at())
                .arg(point())
                .arg(ack())
                .arg(name())
                .arg(url()),
        )
        .subcommand(
            Command::new("list")
                .about("Lists branches and restore points")
                .arg(of_branch("Those of this branch"))
                .arg(url()),
        )
        .subcommand(
            Command::new("drop")
                .about("Removes a branch that no server serves")
                .arg(ack())
                .arg(name())
                .arg(url()),
        )
}

/// What says which point is meant.
pub(crate) fn at() -> Arg {
    Arg::new("at")
        .long("at")
        .value_name("TIME")
        .conflicts_with("point")
        .help("The newest restore point at or before this time, such as '2026-01-31 12:00:00+01'; without a time zone it is UTC")
}

/// The same by name.
pub(crate) fn point() -> Arg {
    Arg::new("point")
        .long("point")
        .value_name("NAME")
        .help("The restore point of this name")
}

/// Which branch of the home is meant, if not the home itself.
pub(crate) fn of_branch(help: &'static str) -> Arg {
    Arg::new("branch")
        .long("branch")
        .value_name("NAME")
        .help(help)
}

/// What is enough where several homes are written to.
pub(crate) fn ack() -> Arg {
    Arg::new("ack")
        .long("ack")
        .value_name("VALUE")
        .default_value("all")
        .value_parser(|text: &str| text.parse::<WriteConcern>())
        .help("Where homes are lists that are written to: which of them must answer, all or a majority. What is not reached now is completed by the next start of a server there that reaches it")
}

/// The options of homes that are written to. What is made may be read by whom the home `from` may be read by.
pub(crate) fn home_options(arguments: &ArgMatches, from: &str, env: &Env) -> HomeOptions {
    let local = LocalOptions {
        readers: readers_of(from, env),
        ..LocalOptions::default()
    };
    HomeOptions {
        ack: arguments.get_one("ack").copied().unwrap_or_default(),
        local,
        damage: Some(damage_of_object),
        ..HomeOptions::default()
    }
}

/// Which point is meant; the newest checkpoint, if none is.
fn which(arguments: &ArgMatches) -> Result<RecoveryTarget, String> {
    let given = |name| arguments.get_one::<String>(name);
    match (given("at"), given("point")) {
        (Some(time), _) => parse_timestamptz(time, None)
            .map(RecoveryTarget::At)
            .map_err(|error| format!("--at: {}", error.fields().message)),
        (None, Some(name)) => Ok(RecoveryTarget::Named(name.clone())),
        (None, None) => Ok(RecoveryTarget::Newest),
    }
}

/// Where a branch's objects are, on the way down to it.
struct Down {
    url: String,
    objects: Arc<dyn ObjectReader>,
    pins: Option<Vec<u8>>,
}

impl Down {
    fn begin(url: &str, env: &Env) -> Result<Down, BranchError> {
        let (objects, pins) = open_objects(url, env, PINS)?;
        Ok(Down {
            url: url.to_owned(),
            objects,
            pins,
        })
    }

    /// The branch of this name, from here: its URL, and the last epoch whose objects are not its own.
    fn find(&self, name: &str) -> Result<(String, Epoch), BranchError> {
        let pins = match &self.pins {
            Some(bytes) => Pins::decode(bytes)?,
            None => Pins::default(),
        };
        let (pin, last) = served(&pins, name)?;
        Ok((own_url(&self.url, &pin)?, last))
    }

    fn step(self, name: &str, env: &Env) -> Result<Down, BranchError> {
        let (url, last) = self.find(name)?;
        let (own, pins) = open_objects(&url, env, PINS)?;
        let parent = self.objects;
        Ok(Down {
            url,
            objects: Arc::new(BranchObjects { own, parent, last }),
            pins,
        })
    }
}

fn own_url(parent: &str, pin: &Pin) -> Result<String, HomeError> {
    let below = directory_of(pin).ok_or_else(|| HomeError::Missing(pin.name.clone()))?;
    url_below(parent, &below)
}

/// The home of a branch, given as a path, of the home that `url` names; `open` opens the branch's own home.
pub(crate) fn open_branch(
    url: &str,
    path: &str,
    env: &Env,
    open: impl Fn(&str) -> Result<LogHome, HomeError>,
) -> Result<LogHome, BranchError> {
    let mut down = Down::begin(url, env)?;
    let (parents, name) = match path.rsplit_once('/') {
        Some((parents, name)) => (Some(parents), name),
        None => (None, path),
    };
    for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
        down = down.step(parent, env)?;
    }
    let (url, last) = down.find(name)?;
    Ok(branch_home(open(&url)?, down.objects, last))
}

/// The home that `URL` and `--branch` name, to be read beside a server that may be at work there.
pub(crate) fn open_source(
    url: &str,
    arguments: &ArgMatches,
    env: &Env,
) -> Result<LogHome, BranchError> {
    let open = |url: &str| logstead_home::open_beside(url, env);
    match arguments.get_one::<String>("branch") {
        Some(branch) => open_branch(url, branch, env, open),
        None => Ok(open(url)?),
    }
}

/// A parent that is to be changed: its home, and its URL.
fn parent_of(
    url: &str,
    path: &str,
    options: &HomeOptions,
    env: &Env,
) -> Result<(LogHome, String, String), BranchError> {
    let open = |url: &str| logstead_home::open(url, env, options);
    let Some((parents, name)) = path.rsplit_once('/') else {
        // Not made: a home that is not there has no branches.
        open_objects(url, env, PINS)?;
        return Ok((open(url)?, url.to_owned(), path.to_owned()));
    };
    let home = open_branch(url, parents, env, open)?;
    let mut down = Down::begin(url, env)?;
    for parent in parents.split('/') {
        down = down.step(parent, env)?;
    }
    Ok((home, down.url, name.to_owned()))
}

/// Opens the home of a branch that is being made or dropped. Its place has a number of its own.
fn open_own(
    parent: &str,
    pin: &Pin,
    options: &HomeOptions,
    env: &Env,
) -> Result<LogHome, HomeError> {
    let options = HomeOptions {
        new_place: true,
        ..options.clone()
    };
    logstead_home::open(&own_url(parent, pin)?, env, &options)
}

fn create(
    url: &str,
    path: &str,
    which: &RecoveryTarget,
    options: &HomeOptions,
    env: &Env,
) -> Result<String, BranchError> {
    let (parent, url, name) = parent_of(url, path, options, env)?;
    let open = |pin: &Pin| open_own(&url, pin, options, env);
    let made = create_branch(&parent, &name, which, env, open)?;
    let point = RecoveryPoint::unnamed(made.record);
    Ok(format!(
        "branch \"{path}\" begins with the state of {} (CSN {})\n",
        point.taken_at_utc(),
        point.record.csn
    ))
}

fn drop_it(url: &str, path: &str, options: &HomeOptions, env: &Env) -> Result<String, BranchError> {
    let (parent, url, name) = parent_of(url, path, options, env)?;
    let open = |pin: &Pin| open_own(&url, pin, options, env);
    drop_branch(&parent, &name, env, open)?;
    Ok(format!("branch \"{path}\" is dropped\n"))
}

fn list(home: LogHome) -> Result<String, BranchError> {
    let manifest = || Ok::<_, BranchError>(manifest_of(&home)?);
    let mut text = String::new();
    for point in points_of_now(&home, manifest)? {
        let names = match (&point.names[..], point.is_newest) {
            ([], true) => "the newest checkpoint".to_owned(),
            ([], false) => "kept by time".to_owned(),
            (names, _) => names.join(", "),
        };
        text += &format!(
            "restore point {} CSN {}: {names}\n",
            point.taken_at_utc(),
            point.record.csn
        );
    }
    let (pins, _) = Pins::read(home.names.as_ref())?;
    for pin in pins.iter() {
        if let PinKind::Branch { state, .. } = pin.kind {
            text += &format!(
                "branch {} ({}) since {} CSN {}\n",
                pin.name,
                state.name(),
                RecoveryPoint::unnamed(pin.record).taken_at_utc(),
                pin.record.csn
            );
        }
    }
    Ok(text)
}

fn told(outcome: Result<String, BranchError>) -> ExitCode {
    match outcome {
        Ok(text) => {
            // A reader that closed the pipe has read enough.
            let _pipe_may_be_closed = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => fail(EXIT_FAILURE, &error.to_string()),
    }
}

/// Runs `logstead branch`.
pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let env = Env::real();
    let Some((command, arguments)) = arguments.subcommand() else {
        return ExitCode::from(EXIT_USAGE);
    };
    let Some(url) = arguments.get_one::<String>("URL") else {
        return ExitCode::from(EXIT_USAGE);
    };
    logging::start_logging("warn", false);
    if command == "list" {
        return told(open_source(url, arguments, &env).and_then(list));
    }
    let Some(name) = arguments.get_one::<String>("NAME") else {
        return ExitCode::from(EXIT_USAGE);
    };
    let options = home_options(arguments, url, &env);
    if command == "drop" {
        return told(drop_it(url, name, &options, &env));
    }
    match which(arguments) {
        Ok(which) => told(create(url, name, &which, &options, &env)),
        Err(message) => fail(EXIT_USAGE, &message),
    }
}

/// Is it a restore point that is to be restored, and not a backup?
pub(crate) fn is_of_point(arguments: &ArgMatches) -> bool {
    arguments.contains_id("at") || arguments.contains_id("point")
}

fn restore(
    url: &str,
    new: &str,
    which: &RecoveryTarget,
    arguments: &ArgMatches,
) -> Result<String, BranchError> {
    let env = &Env::real();
    logstead_home::check_copy(url, new, env)?;
    let from = open_source(url, arguments, env)?;
    let to = logstead_home::open(new, env, &home_options(arguments, url, env))?;
    let restored = restore_point(&from, which, &to, env)?;
    Ok(format!(
        "{new}: database {} with the state of {} (CSN {}); {} objects and {} bytes copied, {} objects were there\n",
        restored.database,
        restored.point.taken_at_utc(),
        restored.point.record.csn,
        restored.copied.objects,
        restored.copied.bytes,
        restored.copied.found,
    ))
}

/// `logstead restore`: the state of a restore point of one home, as a database of its own in another.
pub(crate) fn run_restore(arguments: &ArgMatches) -> ExitCode {
    let url = |name| arguments.get_one::<String>(name);
    let (Some(from), Some(to)) = (url("URL"), url("NEWURL")) else {
        return ExitCode::from(EXIT_USAGE);
    };
    logging::start_logging("warn", false);
    match which(arguments) {
        Ok(which) => told(restore(from, to, &which, arguments)),
        Err(message) => fail(EXIT_USAGE, &message),
    }
}
