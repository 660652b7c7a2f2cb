//! `logstead fleet`: what the nodes of a fleet have of a volume, and which they are to be.

use crate::node_backup::{AGE, AT_WORK, BACKUP_CSN, ERROR, FAILS, PLACE, STATE};
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::{Arg, ArgMatches, Command, value_parser};
use logstead_env::Env;
use logstead_home::{
    Buffer, DAMAGED_OBJECTS, FleetChange, FleetGroup, HomeError, LaneId, LogHome, MemberList,
    ObjectId, Position, VolumeGroup, add_fleet_group, change_fleet, fleet_groups, fleet_node,
    fleet_nodes, forget_fleet_group, open_read_only,
};
use logstead_wal::block::Header;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// How often nodes are asked while one seems to lack something.
const ROUNDS: u32 = 4;
const ROUND_PAUSE: Duration = Duration::from_millis(250);

/// Bytes that are read of a segment to see its first block's header.
const FIRST_BYTES: usize = 4096;

/// Arguments.
const URL: &str = "URL";
const NODE: &str = "NODE";
const TO: &str = "TO";
const INSTEAD_OF: &str = "instead-of";
const GROUP: &str = "group";

pub(crate) fn command() -> Command {
    let url = || {
        let url = Arg::new(URL).required(true);
        url.help("fleet://HOST:PORT,.../VOLUME; some of its nodes are enough")
    };
    let node = |help: &'static str| Arg::new(NODE).required(true).help(help);
    Command::new("fleet")
        .about("Tells about a storage fleet, and changes which nodes have a volume")
        .after_help(
            "Changes are written down in the volume; its server makes them so, one node after the other, now or when it starts.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("status")
                .about("Shows each node of a volume, and what it lacks of what the others have; also beside a running server")
                .arg(url()),
        )
        .subcommand(
            Command::new("add")
                .about("Adds a node, beside the others or in the place of one that is lost")
                .arg(url())
                .arg(node("HOST:PORT of a node that has nothing of the volume"))
                .arg(
                    Arg::new(INSTEAD_OF)
                        .long(INSTEAD_OF)
                        .value_name(NODE)
                        .help("HOST:PORT of the node whose place it takes"),
                )
                .arg(
                    Arg::new(GROUP)
                        .long(GROUP)
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u32))
                        .help("The group that it is for, where the volume has several and it takes nobody's place"),
                ),
        )
        .subcommand(
            Command::new("add-group")
                .about("Adds a group of nodes, among which and the other groups the volume is divided from the server's next start on")
                .arg(url())
                .arg(node("HOST:PORT of each of its nodes, which have nothing of the volume").num_args(1..)),
        )
        .subcommand(
            Command::new("remove-group")
                .about("Takes back that a group is to be used, while no server has started with it")
                .arg(url())
                .arg(
                    Arg::new(GROUP)
                        .required(true)
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u32))
                        .help("The group's number, as fleet status shows it"),
                ),
        )
        .subcommand(
            Command::new("remove")
                .about("Does without a node from now on: one copy less")
                .arg(url())
                .arg(node("HOST:PORT of one of the volume's nodes")),
        )
        .subcommand(
            Command::new("drain")
                .about("Moves what a node has to another one, and does without it then")
                .arg(url())
                .arg(node("HOST:PORT of one of the volume's nodes"))
                .arg(
                    Arg::new(TO)
                        .required(true)
                        .help("HOST:PORT of a node that has nothing of the volume"),
                ),
        )
        .subcommand(
            Command::new("repair")
                .about("Compares what a node has, log and objects, with what the others have, and copies what is missing or damaged")
                .arg(url())
                .arg(node("HOST:PORT of one of the volume's nodes")),
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
        let segments = home.segments.list_segments(lane)?;
        contents.bytes += segments.iter().map(|info| info.size_bytes).sum::<u64>();
        let segments: BTreeSet<u64> = segments.iter().map(|info| info.segment).collect();
        for &segment in &segments {
            if holds_blocks(home, lane, segment, &segments)? {
                contents.segments.insert((lane, segment));
            }
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

/// Has the log got as far as this segment? The last one of an epoch may have been made ahead of time: where it holds
/// nothing, or what a recycled segment held before, nobody needs it, and those that have it are no more complete than
/// the others. A lane that nobody writes to leaves it so for long: nodes that come back make it, the others do not.
fn holds_blocks(
    home: &LogHome,
    lane: LaneId,
    segment: u64,
    segments: &BTreeSet<u64>,
) -> Result<bool, HomeError> {
    let epoch = segment >> 32;
    if segments.contains(&(segment + 1)) {
        return Ok(true);
    }
    let first_block = |segment| -> Result<Option<Header>, HomeError> {
        let mut buffer = Buffer::zeroed(FIRST_BYTES);
        let start = Position { segment, offset: 0 };
        let count = home.segments.read(lane, start, &mut buffer)?;
        let header = Header::decode(&buffer.as_slice()[..count.min(FIRST_BYTES)]);
        let of_epoch = |header: &Header| u64::from(header.epoch.get()) == epoch;
        Ok(header.ok().map(|(header, _)| header).filter(of_epoch))
    };
    let Some(first) = first_block(segment)? else {
        return Ok(false);
    };
    // Numbers of a lane only grow: those of a recycled segment are below.
    let before = segment
        .checked_sub(1)
        .filter(|before| segments.contains(before));
    let before = before.map(first_block).transpose()?.flatten();
    Ok(before.is_none_or(|before| before.block < first.block))
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let Some((what, arguments)) = arguments.subcommand() else {
        return ExitCode::from(EXIT_USAGE);
    };
    let named = |name: &str| arguments.get_one::<String>(name).cloned();
    let Some(url) = named(URL) else {
        return ExitCode::from(EXIT_USAGE);
    };
    let group = || arguments.get_one::<u32>(GROUP).copied();
    let node = match what {
        "status" => return status_of(&url),
        "add-group" => {
            let nodes = arguments.get_many::<String>(NODE);
            let nodes: Vec<String> = nodes.into_iter().flatten().cloned().collect();
            let added = add_fleet_group(&url, &Env::real(), &nodes);
            return told(added.map(|group| {
                format!(
                    "group {group} is to be: {}\nThe server uses it from its next start on.\n",
                    nodes.join(", ")
                )
            }));
        }
        "remove-group" => {
            let group = group().unwrap_or_default();
            let removed = forget_fleet_group(&url, &Env::real(), group);
            return told(removed.map(|()| format!("group {group} is not to be used\n")));
        }
        _ => named(NODE).unwrap_or_default(),
    };
    let change = match what {
        "add" => FleetChange::Add {
            node,
            instead_of: named(INSTEAD_OF),
        },
        "drain" => FleetChange::Add {
            node: named(TO).unwrap_or_default(),
            instead_of: Some(node),
        },
        "remove" => FleetChange::Remove(node),
        _ => FleetChange::Repair(node),
    };
    let group = match what {
        "add" => group(),
        _ => None,
    };
    told(
        change_fleet(&url, &Env::real(), group, &change).map(|list| {
            let nodes: Vec<&str> = list.iter().map(|url| address(url)).collect();
            let which = group.map_or("the volume".to_owned(), |group| format!("group {group}"));
            format!("nodes of {which} are to be: {}\n", nodes.join(", "))
        }),
    )
}

/// Prints what was done, or why it was not.
fn told(done: Result<String, HomeError>) -> ExitCode {
    match done {
        Ok(text) => {
            let _pipe_may_be_closed = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error @ HomeError::Url { .. }) => fail(EXIT_USAGE, &error.to_string()),
        Err(error) => fail(EXIT_FAILURE, &error.to_string()),
    }
}

/// A node of a volume, and what it is of it.
struct ListedNode {
    url: String,
    is_member: bool,
    /// For people: what is to become of it.
    note: &'static str,
}

/// The members that the register has, and who is to be one; by the URL alone if nobody tells.
fn listed(url: &str, seeds: Vec<String>, list: Result<MemberList, HomeError>) -> Vec<ListedNode> {
    let Ok(MemberList { members, wanted }) = list else {
        let node = |url| ListedNode {
            url,
            is_member: true,
            note: "",
        };
        return seeds.into_iter().map(node).collect();
    };
    let as_asked = |node: &str| fleet_node(url, node).unwrap_or_else(|_| node.to_owned());
    let wanted = wanted.unwrap_or_default();
    let has_line = |member: &str, suffix: &str| {
        let line = |line: &String| line.strip_suffix(suffix).is_some_and(|url| url == member);
        wanted.iter().any(line)
    };
    let member = |(member, _): &(String, bool)| ListedNode {
        url: as_asked(member),
        is_member: true,
        note: match () {
            () if wanted.is_empty() || has_line(member, "") => "",
            () if has_line(member, " repair") => ", to be repaired",
            () => ", to go",
        },
    };
    let mut nodes: Vec<ListedNode> = members.iter().map(member).collect();
    let is_new = |line: &&String| !members.iter().any(|(member, _)| line.starts_with(member));
    nodes.extend(wanted.iter().filter(is_new).map(|line| ListedNode {
        url: as_asked(line),
        is_member: false,
        note: ", to come",
    }));
    nodes
}

/// A group's nodes, and what they are of it.
struct StatusGroup {
    /// For people; nothing if it is the only one.
    title: String,
    nodes: Vec<ListedNode>,
}

/// The groups that the volume's record has; by the URL alone if nobody tells.
fn groups_of(
    url: &str,
    seeds: Vec<String>,
    groups: Result<Vec<FleetGroup>, HomeError>,
) -> Vec<StatusGroup> {
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) => {
            let nodes = listed(url, seeds, Err(error));
            let title = String::new();
            return vec![StatusGroup { title, nodes }];
        }
    };
    let is_only = groups.len() == 1;
    let of_group = |FleetGroup {
                        listed: of,
                        members,
                    }: FleetGroup| {
        let VolumeGroup {
            number,
            nodes,
            in_force,
            ..
        } = of;
        let nodes = nodes
            .into_iter()
            .map(|node| fleet_node(url, &node).unwrap_or(node));
        let seeds = match number {
            0 => seeds.clone(),
            _ => nodes.collect(),
        };
        let title = match () {
            () if is_only => String::new(),
            () if in_force => format!("group {number}"),
            () => format!("group {number}, to be used from the server's next start on"),
        };
        let nodes = listed(url, seeds, members);
        StatusGroup { title, nodes }
    };
    groups.into_iter().map(of_group).collect()
}

fn status_of(url: &str) -> ExitCode {
    let seeds = match fleet_nodes(url) {
        Ok(urls) => urls,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    let env = Env::real();
    let groups = groups_of(url, seeds, fleet_groups(url, &env));
    let mut text = String::new();
    let (mut complete, mut members) = (0, 0);
    let mut without_majority = Vec::new();
    for StatusGroup { title, nodes } in &groups {
        let (asked, lacks) = compared(nodes, &env);
        if !title.is_empty() {
            // A String takes everything.
            let _written = writeln!(text, "{title}:");
        }
        let (lines, of_group) = status(nodes, &asked, &lacks);
        text += &lines;
        complete += of_group;
        let answers = nodes.iter().zip(&asked).filter(|(node, _)| node.is_member);
        let answers: Vec<bool> = answers.map(|(_, answer)| answer.is_ok()).collect();
        members += answers.len();
        let answered = answers.iter().filter(|is_ok| **is_ok).count();
        if 2 * answered <= answers.len() {
            without_majority.push(match title.is_empty() {
                true => "the nodes".to_owned(),
                false => format!("the nodes of {title}"),
            });
        }
    }
    let _written = writeln!(text, "{complete} of {members} copies are complete");
    let _pipe_may_be_closed = std::io::stdout().write_all(text.as_bytes());
    match without_majority.is_empty() {
        true => ExitCode::SUCCESS,
        false => fail(
            EXIT_FAILURE,
            &format!(
                "fewer than a majority of {} answer: nothing can be stored",
                without_majority.join(", and of ")
            ),
        ),
    }
}

/// What each node of a group says, and what it lacks of what the others have.
fn compared(nodes: &[ListedNode], env: &Env) -> (Vec<Result<NodeContents, HomeError>>, Vec<Lacks>) {
    let mut asked = ask_all(nodes, env);
    let mut lacks: Vec<Lacks> = lacks_of(nodes, &asked);
    for _round in 1..ROUNDS {
        if lacks.iter().all(Lacks::is_empty) {
            break;
        }
        // Beside a server things come and go while nodes are asked, one after the other: what a node really lacks it
        // lacks each time.
        logstead_env::sleep(ROUND_PAUSE);
        asked = ask_all(nodes, env);
        for (before, now) in lacks.iter_mut().zip(lacks_of(nodes, &asked)) {
            before.keep(&now);
        }
    }
    (asked, lacks)
}

fn ask_all(nodes: &[ListedNode], env: &Env) -> Vec<Result<NodeContents, HomeError>> {
    std::thread::scope(|scope| {
        let ask = |node: &ListedNode| {
            let (env, url) = (env.clone(), node.url.clone());
            logstead_env::spawn_scoped(scope, "status", move || {
                open_read_only(&url, &env).and_then(|home| contents(&home))
            })
        };
        let threads: Vec<_> = nodes.iter().map(ask).collect();
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

/// Of each node that has answered, what half of the members have and it has not; of the others nothing is known. What
/// fewer have was removed while they were away: what was acknowledged a majority has.
fn lacks_of(nodes: &[ListedNode], asked: &[Result<NodeContents, HomeError>]) -> Vec<Lacks> {
    let members = nodes.iter().zip(asked).filter(|(node, _)| node.is_member);
    let members: Vec<_> = members.map(|(_, answer)| answer).collect();
    let copies = members.len().div_ceil(2);
    let answers: Vec<&NodeContents> = members.into_iter().flatten().collect();
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

/// HOST:PORT.
fn address(url: &str) -> &str {
    let address = url.trim_start_matches("node://");
    address.split('/').next().unwrap_or(address)
}

/// What a node says of the volume's backup, if it makes it or is to.
fn backup_of(report: &BTreeMap<String, String>) -> String {
    let named = |name: &str| report.get(name).map(String::as_str);
    let place = named(PLACE).unwrap_or("?");
    let error = named(ERROR).map_or(String::new(), |error| format!(": {error}"));
    match (named(STATE), named(BACKUP_CSN), named(AGE)) {
        (Some(AT_WORK), Some(csn), Some(age)) => {
            format!(", backs up to {place}: CSN {csn}, {age} s ago{error}")
        }
        (Some(AT_WORK), ..) => format!(", backs up to {place}: nothing stored yet{error}"),
        (Some(FAILS), ..) => format!(", cannot back up to {place}{error}"),
        _ => String::new(),
    }
}

/// A line for each node, and how many members are complete.
fn status(
    nodes: &[ListedNode],
    asked: &[Result<NodeContents, HomeError>],
    lacks: &[Lacks],
) -> (String, usize) {
    let mut text = String::new();
    let mut complete = 0;
    for ((node, answer), lacks) in nodes.iter().zip(asked).zip(lacks) {
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
                        complete += usize::from(node.is_member);
                        "complete".to_owned()
                    }
                    false => format!("lacks {}", counts.join(", ")),
                };
                let named = |name: &str| contents.report.get(name).map_or("?", String::as_str);
                let (zone, node) = (named("zone"), named("node"));
                let bytes = contents.bytes;
                let damaged = contents.report.get(DAMAGED_OBJECTS);
                let damaged = damaged.map_or(String::new(), |count| {
                    format!(", {count} damaged objects: see `fleet repair`")
                });
                let backup = backup_of(&contents.report);
                format!("zone {zone}, node {node}, {bytes} bytes: {state}{damaged}{backup}")
            }
        };
        // A String takes everything.
        let _written = writeln!(text, "{}: {line}{}", address(&node.url), node.note);
    }
    (text, complete)
}
