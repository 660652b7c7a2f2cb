//! `logstead dev-fleet`: six storage nodes in three zones on this machine, or as many groups of six as wanted, for
//! development and tests.

use crate::storage::{
    BACKUP, BACKUP_INTERVAL, BACKUP_SECONDS, BACKUP_SECONDS_MAX, DISTANCE, WITH_PARENT,
};
use crate::{EXIT_FAILURE, fail};
use clap::{Arg, ArgMatches, Command, value_parser};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};

/// Two nodes in each of three zones (Aurora, section 2.1).
const ZONES: [&str; 6] = ["a", "a", "b", "b", "c", "c"];
const GROUPS: &str = "groups";
/// Shorter than elsewhere: six nodes write them to one disk.
const SEGMENT_BYTES: &str = "2097152";

pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("dev-fleet")
        .about("Runs six storage nodes in three zones on this machine: for development and tests")
        .after_help("Stop it with Ctrl-C or SIGTERM; its nodes end with it.")
        .arg(
            option(
                "data",
                "DIR",
                "Where the nodes store, each in a directory of its own",
            )
            .required(true)
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option(
                "port",
                "NUMBER",
                "The first node's port, the others follow; 0: any free ones",
            )
            .default_value("7001")
            .value_parser(value_parser!(u16).range(0..=65_487)),
        )
        .arg(
            option(
                GROUPS,
                "NUMBER",
                "So many groups of six; all but the first are for fleet add-group",
            )
            .default_value("1")
            .value_parser(value_parser!(u16).range(1..=8)),
        )
        .arg(
            option(
                DISTANCE,
                "MICROSECONDS",
                "Zones b and c pretend to be so far away",
            )
            .default_value("0")
            .value_parser(value_parser!(u64).range(0..=10_000_000)),
        )
        .arg(option(
            BACKUP,
            "URL",
            "Where the nodes back up their volumes: an object store, or a directory",
        ))
        .arg(
            option(
                BACKUP_INTERVAL,
                "SECONDS",
                "How long after a backup the next one begins",
            )
            .default_value(BACKUP_SECONDS)
            .requires(BACKUP)
            .value_parser(value_parser!(u64).range(1..=BACKUP_SECONDS_MAX)),
        )
}

/// A node that was started.
struct Node {
    process: Child,
    zone: &'static str,
    address: String,
    dir: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _it_has_ended_already = self.process.kill();
        let _its_status_says_nothing = self.process.wait();
    }
}

fn start(
    program: &Path,
    dir: PathBuf,
    zone: &'static str,
    port: u16,
    options: &[String],
) -> io::Result<Node> {
    let mut process = std::process::Command::new(program)
        .arg("storage")
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .args(["--zone", zone, "--segment-size", SEGMENT_BYTES])
        .arg("--data")
        .arg(&dir)
        .args(options)
        .arg(format!("--{WITH_PARENT}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = process.stdout.take();
    let mut line = String::new();
    if let Some(out) = out {
        BufReader::new(out).read_line(&mut line)?;
    }
    let node = Node {
        process,
        zone,
        address: line
            .trim_end()
            .rsplit(' ')
            .next()
            .unwrap_or_default()
            .to_owned(),
        dir,
    };
    match node.address.is_empty() {
        true => Err(io::Error::other("it has ended at once")),
        false => Ok(node),
    }
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let Some(dir) = arguments.get_one::<PathBuf>("data") else {
        return fail(EXIT_FAILURE, "--data is missing");
    };
    let port = arguments
        .get_one::<u16>("port")
        .copied()
        .unwrap_or_default();
    let distance = arguments.get_one::<u64>(DISTANCE).copied();
    let distance = distance.unwrap_or_default();
    let mut backup = Vec::new();
    if let Some(url) = arguments.get_one::<String>(BACKUP) {
        let seconds = arguments.get_one::<u64>(BACKUP_INTERVAL).copied();
        backup.push(format!("--{BACKUP}={url}"));
        backup.extend(seconds.map(|seconds| format!("--{BACKUP_INTERVAL}={seconds}")));
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return fail(EXIT_FAILURE, &format!("cannot find this program: {error}")),
    };
    let env = logstead_env::Env::real();
    if let Err(error) = env.files.create_dir(dir) {
        let why = format!("make directory {}: {error}", dir.display());
        return fail(EXIT_FAILURE, &why);
    }
    let mut nodes = Vec::new();
    let groups = arguments.get_one::<u16>(GROUPS).copied();
    let count = usize::from(groups.unwrap_or(1)) * ZONES.len();
    for (number, zone) in (0u16..).zip(ZONES.into_iter().cycle().take(count)) {
        let of_node = match port {
            0 => 0,
            first => first + number,
        };
        let dir = dir.join(format!("node-{}", number + 1));
        let distance = match zone {
            "a" => 0,
            _ => distance,
        };
        let mut options = backup.clone();
        options.push(format!("--{DISTANCE}={distance}"));
        match start(&program, dir, zone, of_node, &options) {
            Ok(node) => nodes.push(node),
            Err(error) => {
                let why = format!("cannot start node {}: {error}", number + 1);
                return fail(EXIT_FAILURE, &why);
            }
        }
    }
    match crate::signals::say_and_wait(&announced(&program, &nodes, &backup)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(EXIT_FAILURE, &format!("cannot wait for signals: {error}")),
    }
}

/// Where they are, and how to use them.
fn announced(program: &Path, nodes: &[Node], backup: &[String]) -> String {
    let mut text = String::new();
    let backup: String = backup.iter().map(|option| format!(" '{option}'")).collect();
    for (number, node) in nodes.iter().enumerate() {
        text += &format!(
            "# node {} in zone {}: process {}, started anew by: {} storage --listen {} --zone {} --segment-size {SEGMENT_BYTES}{backup} --data {}\n",
            number + 1,
            node.zone,
            node.process.id(),
            program.display(),
            node.address,
            node.zone,
            node.dir.display(),
        );
    }
    let addresses: Vec<&str> = nodes.iter().map(|node| node.address.as_str()).collect();
    let mut groups = addresses.chunks(ZONES.len());
    let url = format!(
        "fleet://{}/main",
        groups.next().unwrap_or_default().join(",")
    );
    text += &format!("# logstead serve --home {url}\n# logstead fleet status {url}\n");
    for group in groups {
        text += &format!("# logstead fleet add-group {url} {}\n", group.join(" "));
    }
    text += &format!("{url}\n");
    text
}
