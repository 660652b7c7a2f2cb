//! `logstead fleet`: what the nodes of a fleet have of a volume.

use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::{Arg, ArgMatches, Command};
use logstead_env::Env;
use logstead_home::{HomeError, LaneId, LogHome, ObjectId, fleet_nodes, open_read_only};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// How often nodes are asked while one seems to lack something.
const ROUNDS: u32 = 4;
const ROUND_PAUSE: Duration = Duration::from_millis(250);

pub(crate) fn command() -> Command {
    Command::new("fleet")
        .about("Tells about a storage fleet")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("status")
                .about("Shows each node of a volume, and what it lacks of what the others have; also beside a running server")
                .arg(Arg::new("URL").required(true).help("fleet://HOST:PORT,.../VOLUME")),
        )
}

/// What one node has of a volume.
#[derive(Default)]
struct NodeContents {
    report: BTreeMap<String, String>,
    segments: BTreeSet<(LaneId, u64)>,
    sides: BTreeSet<(LaneId, u64)>,
    objects: BTreeSet<ObjectId>,
    bytes: u64,
}

fn contents(home: &LogHome) -> Result<NodeContents, HomeError> {
    let mut contents = NodeContents {
        report: home.status.report().into_iter().collect(),
        ..NodeContents::default()
    };
    for lane in home.segments.list_lanes()? {
        for info in home.segments.list_segments(lane)? {
            contents.segments.insert((lane, info.segment));
            contents.bytes += info.size_bytes;
        }
        let sides = home.sides.list_side_segments(lane)?;
        contents
            .sides
            .extend(sides.into_iter().map(|id| (lane, id)));
    }
    for info in home.objects.list_objects()? {
        contents.objects.insert(info.id);
        contents.bytes += info.size_bytes;
    }
    Ok(contents)
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let Some(("status", arguments)) = arguments.subcommand() else {
        return ExitCode::from(EXIT_USAGE);
    };
    let Some(url) = arguments.get_one::<String>("URL") else {
        return ExitCode::from(EXIT_USAGE);
    };
    let urls = match fleet_nodes(url) {
        Ok(urls) => urls,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    let env = Env::real();
    let mut asked = ask_all(&urls, &env);
    let mut lacks: Vec<Lacks> = lacks_of(&asked);
    for _round in 1..ROUNDS {
        if lacks.iter().all(Lacks::is_empty) {
            break;
        }
        // Beside a server things come and go while nodes are asked, one after the other: what a node really lacks it
        // lacks each time.
        logstead_env::sleep(ROUND_PAUSE);
        asked = ask_all(&urls, &env);
        for (before, now) in lacks.iter_mut().zip(lacks_of(&asked)) {
            before.keep(&now);
        }
    }
    let text = status(&urls, &asked, &lacks);
    let _pipe_may_be_closed = std::io::stdout().write_all(text.as_bytes());
    let answered = asked.iter().flatten().count();
    match 2 * answered > urls.len() {
        true => ExitCode::SUCCESS,
        false => fail(
            EXIT_FAILURE,
            "fewer than a majority of the nodes answer: nothing can be stored",
        ),
    }
}

fn ask_all(urls: &[String], env: &Env) -> Vec<Result<NodeContents, HomeError>> {
    std::thread::scope(|scope| {
        let ask = |url: &String| {
            let (env, url) = (env.clone(), url.clone());
            logstead_env::spawn_scoped(scope, "status", move || {
                open_read_only(&url, &env).and_then(|home| contents(&home))
            })
        };
        let threads: Vec<_> = urls.iter().map(ask).collect();
        let answer = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(no_answer("its thread has ended"))),
            Err(error) => Err(no_answer(&error.to_string())),
        };
        threads.into_iter().map(answer).collect()
    })
}

/// What a node lacks of what any has.
#[derive(Default)]
struct Lacks {
    segments: BTreeSet<(LaneId, u64)>,
    sides: BTreeSet<(LaneId, u64)>,
    objects: BTreeSet<ObjectId>,
}

impl Lacks {
    fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.sides.is_empty() && self.objects.is_empty()
    }

    /// Only what it lacks now, too.
    fn keep(&mut self, now: &Lacks) {
        self.segments
            .retain(|segment| now.segments.contains(segment));
        self.sides.retain(|side| now.sides.contains(side));
        self.objects.retain(|object| now.objects.contains(object));
    }
}

/// What at least so many nodes have.
fn held_by<T: Ord + Copy>(sets: &[&BTreeSet<T>], copies: usize) -> BTreeSet<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for item in sets.iter().flat_map(|set| set.iter()) {
        *counts.entry(*item).or_default() += 1;
    }
    let held = counts.into_iter().filter(|(_, count)| *count >= copies);
    held.map(|(item, _)| item).collect()
}

/// Of each node that has answered, without what half of the nodes have; of the others nothing is known. What fewer have
/// was removed while they were away: what was acknowledged a majority has.
fn lacks_of(asked: &[Result<NodeContents, HomeError>]) -> Vec<Lacks> {
    let copies = asked.len().div_ceil(2);
    let answers: Vec<&NodeContents> = asked.iter().flatten().collect();
    let all = Lacks {
        segments: held_by(
            &answers.iter().map(|of| &of.segments).collect::<Vec<_>>(),
            copies,
        ),
        sides: held_by(
            &answers.iter().map(|of| &of.sides).collect::<Vec<_>>(),
            copies,
        ),
        objects: held_by(
            &answers.iter().map(|of| &of.objects).collect::<Vec<_>>(),
            copies,
        ),
    };
    let of_node = |answer: &Result<NodeContents, HomeError>| match answer {
        Ok(contents) => Lacks {
            segments: &all.segments - &contents.segments,
            sides: &all.sides - &contents.sides,
            objects: &all.objects - &contents.objects,
        },
        Err(_) => Lacks::default(),
    };
    asked.iter().map(of_node).collect()
}

fn no_answer(why: &str) -> HomeError {
    HomeError::io("ask a storage node", std::io::Error::other(why.to_owned()))
}

/// A line for each node, and one for all.
fn status(urls: &[String], asked: &[Result<NodeContents, HomeError>], lacks: &[Lacks]) -> String {
    let mut text = String::new();
    let mut complete = 0;
    for ((url, answer), lacks) in urls.iter().zip(asked).zip(lacks) {
        let address = url.trim_start_matches("node://");
        let address = address.split('/').next().unwrap_or(address);
        let line = match answer {
            Err(HomeError::Missing(_)) => "has nothing of this volume".to_owned(),
            Err(error) => format!("out of reach: {error}"),
            Ok(contents) => {
                let counts = [
                    ("segments", lacks.segments.len()),
                    ("large transactions", lacks.sides.len()),
                    ("objects", lacks.objects.len()),
                ];
                let counts = counts.iter().filter(|(_, count)| *count > 0);
                let counts: Vec<String> = counts
                    .map(|(what, count)| format!("{count} {what}"))
                    .collect();
                let state = match counts.is_empty() {
                    true => {
                        complete += 1;
                        "complete".to_owned()
                    }
                    false => format!("lacks {}", counts.join(", ")),
                };
                let named = |name: &str| contents.report.get(name).map_or("?", String::as_str);
                let (zone, node) = (named("zone"), named("node"));
                let bytes = contents.bytes;
                format!("zone {zone}, node {node}, {bytes} bytes: {state}")
            }
        };
        // A String takes everything.
        let _written = writeln!(text, "{address}: {line}");
    }
    let _written = writeln!(text, "{complete} of {} copies are complete", urls.len());
    text
}
