//! `logstead storage`: a node of a storage fleet.

use crate::node_backup::{self, BackupOptions};
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use logstead_checkpoint::damage_of_object;
use logstead_env::Env;
use logstead_home::node::message::PROTOCOL;
use logstead_home::{IoMethod, SECRET_FILE_VARIABLE, SECRET_VARIABLE};
use logstead_storage::{NodeCertificate, NodeOptions, ScrubOptions, StorageNode};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Length of a segment, unless another one is given.
const SEGMENT_BYTES: &str = "8388608";
/// Seconds between two readings of everything, unless others are given: a week.
const SCRUB_SECONDS: &str = "604800";
/// Ten years.
const SCRUB_SECONDS_MAX: u64 = 315_360_000;
/// Where volumes are backed up to, and how often.
pub(crate) const BACKUP: &str = "backup";
pub(crate) const BACKUP_INTERVAL: &str = "backup-interval";
/// Seconds between two rounds of backups, unless others are given.
pub(crate) const BACKUP_SECONDS: &str = "10";
/// A day.
pub(crate) const BACKUP_SECONDS_MAX: u64 = 86_400;
/// What lengths of segments are multiples of.
const ALIGNMENT: u64 = 4096;
/// Shortest and longest segment.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// It ends with the process that holds the other end of its standard input.
pub(crate) const WITH_PARENT: &str = "with-parent";
/// How far away it pretends to be.
pub(crate) const DISTANCE: &str = "distance";

pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: String| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |name: &'static str, help: &str| {
        option(name, "FILE", help.to_owned()).value_parser(value_parser!(PathBuf))
    };
    Command::new("storage")
        .about("Runs a node of a storage fleet: a server's log lives on a majority of several, --home fleet://HOST:PORT,.../VOLUME")
        .after_help("Stop it with Ctrl-C or SIGTERM; it may be killed at any time.")
        .arg(
            option("listen", "ADDRESS", "Where it listens; port 0 is any free one".to_owned())
                .default_value("127.0.0.1:7001")
                .value_parser(value_parser!(SocketAddr)),
        )
        .arg(
            option("data", "DIR", "Where it stores".to_owned())
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option("zone", "NAME", "The zone that it stands in: what fails together".to_owned())
                .default_value("default"),
        )
        .arg(path(
            "secret-file",
            &format!("The fleet's secret [env: {SECRET_VARIABLE}, or a file in {SECRET_FILE_VARIABLE}]; none is needed on a loopback address"),
        ))
        .arg(path("tls-cert", "Encrypts with this certificate, in PEM; it need not be signed by anybody").requires("tls-key"))
        .arg(path("tls-key", "The certificate's key, in PEM").requires("tls-cert"))
        .arg(
            option("segment-size", "BYTES", "Length of the log's segments; all nodes of a fleet have the same".to_owned())
                .default_value(SEGMENT_BYTES)
                .value_parser(value_parser!(u64).range(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX)),
        )
        .arg(
            option("way", "NAME", "How it writes: auto, pwrite, threads, uring or portable".to_owned())
                .default_value("auto")
                .value_parser(value_parser!(IoMethod)),
        )
        .arg(
            option("scrub-interval", "SECONDS", "How long after one reading of all checkpoints' objects, to see whether the disk has damaged them, the next one begins; 0: never".to_owned())
                .default_value(SCRUB_SECONDS)
                .value_parser(value_parser!(u64).range(0..=SCRUB_SECONDS_MAX)),
        )
        .arg(option(BACKUP, "URL", "Backs up its volumes there, in the background: an object store, or a directory; all nodes of a fleet have the same, and one of them does it".to_owned()))
        .arg(
            option(BACKUP_INTERVAL, "SECONDS", "How long after a backup the next one begins".to_owned())
                .default_value(BACKUP_SECONDS)
                .requires(BACKUP)
                .value_parser(value_parser!(u64).range(1..=BACKUP_SECONDS_MAX)),
        )
        .arg(
            option(DISTANCE, "MICROSECONDS", "Pretends to be so far away: answers leave later; for development and tests".to_owned())
                .default_value("0")
                .value_parser(value_parser!(u64).range(0..=10_000_000)),
        )
        .arg(Arg::new(WITH_PARENT).long(WITH_PARENT).action(ArgAction::SetTrue).hide(true))
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let env = Env::real();
    crate::logging::start_logging("info", false);
    let options = match options(arguments, &env) {
        Ok(options) => options,
        Err(why) => return fail(EXIT_USAGE, &why),
    };
    if let Err(error) = logstead_env::raise_open_files_limit() {
        let why = format!("cannot raise the limit of open files: {error}");
        return fail(EXIT_FAILURE, &why);
    }
    let zone = options.zone.clone();
    let backup = match backup_options(arguments, &options) {
        Ok(backup) => backup,
        Err(why) => return fail(EXIT_USAGE, &why),
    };
    let node = match StorageNode::start(options, &env) {
        Ok(node) => node,
        Err(error) => return fail(EXIT_FAILURE, &error.to_string()),
    };
    if let Some(backup) = &backup
        && let Err(error) = node_backup::start(&node.background(), backup, &env)
    {
        return fail(EXIT_FAILURE, &format!("cannot start a thread: {error}"));
    }
    if arguments.get_flag(WITH_PARENT) {
        let waiting = env.spawn("parent", None, || {
            let mut nothing = Vec::new();
            let _ended = std::io::stdin().read_to_end(&mut nothing);
            std::process::exit(0);
        });
        if let Err(error) = waiting {
            return fail(EXIT_FAILURE, &format!("cannot start a thread: {error}"));
        }
    }
    let said = format!(
        "# storage node {:016x} in zone {zone} listening on {}\n",
        node.id(),
        node.address()
    );
    match crate::signals::say_and_wait(&said) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(EXIT_FAILURE, &format!("cannot wait for signals: {error}")),
    }
}

/// Where its volumes are backed up to, if anywhere.
fn backup_options(
    arguments: &ArgMatches,
    node: &NodeOptions,
) -> Result<Option<BackupOptions>, String> {
    let Some(url) = arguments.get_one::<String>(BACKUP) else {
        return Ok(None);
    };
    BackupOptions::check(url).map_err(|why| format!("--{BACKUP}: {why}"))?;
    let seconds = arguments.get_one::<u64>(BACKUP_INTERVAL).copied();
    let seconds = seconds.ok_or_else(|| format!("--{BACKUP_INTERVAL} is missing"))?;
    Ok(Some(BackupOptions {
        url: url.clone(),
        interval: Duration::from_secs(seconds),
        secret: node.secret.clone(),
        data: node.dir.clone(),
    }))
}

fn options(arguments: &ArgMatches, env: &Env) -> Result<NodeOptions, String> {
    let path = |name: &str| arguments.get_one::<PathBuf>(name);
    let missing = |name: &str| format!("--{name} is missing");
    let file = path("secret-file").map(|file| file.display().to_string());
    let secret = logstead_home::secret(env, |name| match (name, &file) {
        // What is given outright counts, whatever the environment says.
        (SECRET_VARIABLE, Some(_)) => None,
        (SECRET_FILE_VARIABLE, Some(file)) => Some(file.clone()),
        (name, None) => std::env::var(name).ok(),
        _ => None,
    });
    let certificate = match (path("tls-cert"), path("tls-key")) {
        (Some(certificate), Some(key)) => {
            let read = NodeCertificate::read(certificate, key, env.files.as_ref());
            Some(read.map_err(|error| error.to_string())?)
        }
        _ => None,
    };
    let segment_bytes = arguments.get_one::<u64>("segment-size").copied();
    let segment_bytes = segment_bytes.ok_or_else(|| missing("segment-size"))?;
    if !segment_bytes.is_multiple_of(ALIGNMENT) {
        return Err(format!("--segment-size is a multiple of {ALIGNMENT}"));
    }
    let scrub_seconds = arguments.get_one::<u64>("scrub-interval").copied();
    let scrub_seconds = scrub_seconds.ok_or_else(|| missing("scrub-interval"))?;
    Ok(NodeOptions {
        listen: arguments
            .get_one::<SocketAddr>("listen")
            .copied()
            .ok_or_else(|| missing("listen"))?,
        dir: path("data").cloned().ok_or_else(|| missing("data"))?,
        zone: arguments
            .get_one::<String>("zone")
            .cloned()
            .unwrap_or_default(),
        secret: secret.map_err(|error| error.to_string())?,
        certificate,
        segment_bytes,
        way: arguments
            .get_one::<IoMethod>("way")
            .copied()
            .unwrap_or_default(),
        scrub: ScrubOptions {
            interval: (scrub_seconds > 0).then(|| Duration::from_secs(scrub_seconds)),
            damage: damage_of_object,
        },
        protocol: PROTOCOL,
        distance: Duration::from_micros(
            arguments
                .get_one::<u64>(DISTANCE)
                .copied()
                .unwrap_or_default(),
        ),
    })
}
