//! A volume of several groups: groups are added under a server, members of each leave and return, and the server
//! crashes at any moment: what was acknowledged is there, in whichever group it lies, whoever of each group is lost
//! then.

use crate::rig;

use logstead_env::{Clock, Env, SimClock, SimRandom};
use logstead_home::{
    Availability, GroupOpener, GroupedHome, HomeError, HomeStatus, ImmutableObjects, LaneId,
    LaneSegments, LogHome, MemoryHome, NamedValues, OpenPurpose, Opener, ReplicatedHome,
    ReplicatedOptions, Source, WriteConcern, add_group, volume_groups,
};
use logstead_types::Csn;
use logstead_wal::lease::LeaseOptions;
use logstead_wal::recovery::{RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, FlushMode, inspect};
use rig::{Server, options};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LANES: u16 = 4;
/// What every member of a log has.
const MANIFEST: &str = "manifest";
const GROUPS: usize = 3;
/// Of each group.
const MEMBERS: usize = 3;
const PLACES: usize = GROUPS * MEMBERS;

struct Cluster {
    children: Vec<MemoryHome>,
    env: Env,
    clock: Arc<SimClock>,
}

struct Running {
    server: Server,
    groups: Vec<Arc<ReplicatedHome>>,
    next: u64,
    first: u64,
    /// Checkpoints remove what is below.
    checkpoint: u64,
}

/// How often what was met, so that a run that meets nothing shows.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    acknowledged: u64,
    left: u64,
    returned: u64,
    added: u64,
    /// Starts that found more groups than the one before.
    divided: u64,
    /// Appends waited because too few of a group were there, while others went on.
    stalled: u64,
}

fn url(place: usize) -> String {
    format!("place:{place}")
}

fn place_of(url: &str) -> usize {
    let number = url.trim_start_matches("place:");
    number.parse().expect("a place's number")
}

fn of_group(group: usize) -> std::ops::Range<usize> {
    group * MEMBERS..(group + 1) * MEMBERS
}

impl Cluster {
    fn new(seed: u64) -> Cluster {
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(seed);
        Cluster {
            children: (0..PLACES).map(|_| MemoryHome::new(24 << 10)).collect(),
            env: Env {
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                ..env
            },
            clock,
        }
    }

    fn open_nodes(
        children: &[MemoryHome],
        env: &Env,
        urls: &[String],
        purpose: OpenPurpose,
    ) -> Result<ReplicatedHome, HomeError> {
        let children = children.to_vec();
        let opener = move |place: usize| -> Opener {
            let home = children[place].clone();
            // Who is away does not open.
            Arc::new(move || home.get(MANIFEST).map(|_| LogHome::from(home.clone())))
        };
        let source = |url: &String| Source {
            url: url.clone(),
            open: opener(place_of(url)),
        };
        let sources: Vec<Source> = urls.iter().map(source).collect();
        let options = ReplicatedOptions {
            ack: WriteConcern::Majority,
            purpose,
            threads: false,
            lag_bytes_max: 40 << 10,
            return_pause_min: Duration::from_micros(1),
            ..ReplicatedOptions::default()
        };
        let by_url = Arc::new(move |url: &str| opener(place_of(url)));
        ReplicatedHome::open_members(sources, by_url, env, options)
    }

    fn group(&self, group: usize, purpose: OpenPurpose) -> Result<ReplicatedHome, HomeError> {
        let urls: Vec<String> = of_group(group).map(url).collect();
        Cluster::open_nodes(&self.children, &self.env, &urls, purpose)
    }

    fn opener(&self) -> GroupOpener {
        let (children, env) = (self.children.clone(), self.env.clone());
        Arc::new(move |_, nodes, purpose| Cluster::open_nodes(&children, &env, nodes, purpose))
    }

    /// The volume, and its groups.
    fn open(&self, purpose: OpenPurpose) -> Result<(LogHome, Vec<Arc<ReplicatedHome>>), HomeError> {
        let first = self.group(0, purpose)?;
        if volume_groups(&first)?.len() == 1 {
            let first = Arc::new(first);
            return Ok((LogHome::from(Arc::clone(&first)), vec![first]));
        }
        let grouped = GroupedHome::open(first, purpose, self.opener())?;
        let homes = grouped.group_homes().into_iter().map(|(_, home)| home);
        let homes = homes.collect();
        Ok((LogHome::from(grouped), homes))
    }

    fn start(&self) -> Result<Running, RecoveryError> {
        let (home, groups) = self.open(OpenPurpose::Log)?;
        let server = self.serve(home)?;
        let next = server.log.next_csn.0;
        let checkpoint = server.log.report.checkpoint.0;
        Ok(Running {
            server,
            groups,
            next,
            first: next,
            checkpoint,
        })
    }

    fn serve(&self, home: LogHome) -> Result<Server, RecoveryError> {
        let clock = Arc::clone(&self.clock);
        let options = RecoveryOptions {
            lanes: LANES,
            lease: LeaseOptions {
                take_over: true,
                threads: false,
                pause: Arc::new(move |time| clock.advance(time)),
                ..LeaseOptions::default()
            },
            ..options()
        };
        Server::open(home, &self.env, &options, false)
    }

    /// Beside a server, as `logstead fleet add-group` does.
    fn add(&self, group: usize) -> Result<u32, HomeError> {
        let first = self.group(0, OpenPurpose::Log)?;
        add_group(&first, &self.group(group, OpenPurpose::Log)?)
    }

    fn crash(&self, running: Running) {
        for child in &self.children {
            child.crash();
        }
        drop(running);
    }

    fn is_away(&self, place: usize, away: bool) {
        self.children[place].set_presence(match away {
            true => Availability::Refusing,
            false => Availability::Up,
        });
    }

    /// The lanes that have segments of an epoch in a group.
    fn lanes_of(&self, group: usize, epoch: u64) -> BTreeSet<u16> {
        let has = |home: &MemoryHome, lane: u16| {
            let segments = home.list_segments(LaneId(lane)).expect("lists");
            segments.iter().any(|info| info.segment >> 32 == epoch)
        };
        let of_home = |home: &MemoryHome| {
            let lanes = (0..LANES).filter(|&lane| has(home, lane));
            lanes.collect::<Vec<_>>()
        };
        self.children[of_group(group)]
            .iter()
            .flat_map(of_home)
            .collect()
    }
}

impl Running {
    /// What is said of a place; nothing if it is none of the homes.
    fn state(&self, place: usize) -> String {
        let Some(group) = self.groups.get(place / MEMBERS) else {
            return String::new();
        };
        let report = group.report();
        let mut homes = report.iter().filter(|(what, _)| what.ends_with(" home"));
        let home = homes.find(|(_, of)| *of == url(place));
        let Some((what, _)) = home else {
            return String::new();
        };
        let name = what.replace(" home", " state");
        let found = report.iter().find(|(what, _)| *what == name);
        found.expect("reported").1.clone()
    }

    fn is_member(&self, place: usize) -> bool {
        self.state(place) == "member"
    }

    fn write(&mut self, lane: u16, large: bool) {
        let floor = EntryDependencies::floor(Csn(self.next - 1));
        let pushed = match large {
            true => self.server.push_side(lane, self.next, &floor),
            false => self.server.push_with(lane, self.next, &floor),
        };
        if pushed {
            self.next += 1;
            let _outcome = self.server.lane(lane).flush(FlushMode::Handoff);
        }
    }

    fn is_durable(&self, lane: u16, csn: u64) -> bool {
        self.server.lane(lane).first_not_durable() > Csn(csn)
    }

    /// Those of this life that a client may have been told of.
    fn acknowledged(&self) -> std::ops::Range<u64> {
        self.first..self.server.horizon(self.next).clamp(self.first, self.next)
    }
}

/// Everything acknowledged that no checkpoint holds was handed over.
fn check(running: &Running, acknowledged: &BTreeSet<u64>, when: &str) {
    let survivors: BTreeSet<u64> = running.server.survivors.iter().copied().collect();
    let mut expected = acknowledged.range(running.checkpoint..);
    let lost = expected.find(|csn| !survivors.contains(csn));
    assert!(lost.is_none(), "{when}: {lost:?} was acknowledged");
}

fn run(seed: u64, met: &mut Met) {
    let cluster = Cluster::new(seed);
    let dice = SimRandom::new(seed ^ 0x9705);
    let mut acknowledged = BTreeSet::new();
    let mut groups = 1;
    let lives = 3 + dice.below(3);
    for life in 0..lives {
        // Of each group one may be away.
        for group in 0..GROUPS {
            let absent = (life > 0 && dice.below(2) == 0)
                .then(|| of_group(group).start + dice.below(MEMBERS as u64) as usize);
            for place in of_group(group) {
                cluster.is_away(place, Some(place) == absent);
            }
        }
        let when = format!("seed {seed}, life {life}");
        let started = cluster.start();
        let mut running = started.unwrap_or_else(|error| panic!("{when}: {error}"));
        check(&running, &acknowledged, &when);
        met.divided += u64::from(running.groups.len() > groups);
        groups = running.groups.len();
        for _ in 0..80 + dice.below(200) {
            let place = dice.below(PLACES as u64) as usize;
            let memory = &cluster.children[place];
            match dice.below(22) {
                0..9 => running.write(dice.below(u64::from(LANES)) as u16, dice.below(8) == 0),
                9..13 => {
                    let waiting = memory.waiting().max(1) as u64;
                    let _completed = memory.complete_at(dice.below(waiting) as usize);
                }
                13 => memory.set_paused(dice.below(2) == 0),
                14 => {
                    cluster.is_away(place, true);
                    memory.set_paused(false);
                    met.left += 1;
                }
                15 | 16 => cluster.is_away(place, false),
                17 if dice.below(4) == 0 => {
                    let durable = running.acknowledged().end;
                    // Of what is durable everywhere that the starts of the lanes speak of.
                    if durable == running.next
                        && cluster.children.iter().all(|child| child.waiting() == 0)
                        && running.server.checkpoint(durable).is_ok()
                    {
                        running.checkpoint = durable;
                    }
                }
                18 if dice.below(8) == 0 => {
                    let group = 1 + dice.below(GROUPS as u64 - 1) as usize;
                    met.added += u64::from(cluster.add(group).is_ok());
                }
                _ => {
                    let before: Vec<bool> = (0..PLACES).map(|of| running.is_member(of)).collect();
                    cluster.clock.advance(Duration::from_millis(1));
                    for group in &running.groups {
                        group.bring_children_back();
                    }
                    let now = (0..PLACES).filter(|&of| running.is_member(of) && !before[of]);
                    met.returned += now.count() as u64;
                }
            }
            running.server.tell_horizon();
            acknowledged.extend(running.acknowledged());
        }
        let up = |group: usize| of_group(group).filter(|&of| running.is_member(of)).count();
        let has_majority = |group: &usize| up(*group) >= 2;
        let with = (0..running.groups.len()).filter(has_majority).count();
        met.stalled += u64::from(with > 0 && with < running.groups.len());
        cluster.crash(running);
    }
    for absent in 0..MEMBERS {
        for place in 0..PLACES {
            cluster.is_away(
                place,
                place % MEMBERS == (absent + place / MEMBERS) % MEMBERS,
            );
        }
        let when = format!("seed {seed}, at last without {absent}");
        let started = cluster.start();
        let running = started.unwrap_or_else(|error| panic!("{when}: {error}"));
        check(&running, &acknowledged, &when);
        cluster.crash(running);
    }
    met.acknowledged += acknowledged.len() as u64;
}

#[test]
fn groups_come_and_members_of_each_leave_and_return_under_a_server_that_crashes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("LOGSTEAD_SEED").unwrap_or(0);
    let seeds: u64 = number("LOGSTEAD_SEEDS").unwrap_or(60);
    let mut met = Met::default();
    for seed in first..first + seeds {
        run(seed, &mut met);
    }
    println!("{met:?}");
    if seeds >= 60 {
        assert!(met.acknowledged > 10 * seeds, "{met:?}");
        assert!(met.added > seeds / 2 && met.divided > seeds / 2, "{met:?}");
        assert!(met.returned > seeds / 2 && met.stalled > 0, "{met:?}");
    }
}

/// Each lane's segments of an epoch are in one group: that of the record when the epoch began.
#[test]
fn a_group_that_is_added_takes_part_from_the_next_epoch_on() {
    let cluster = Cluster::new(1);
    let mut running = cluster.start().unwrap();
    let all: BTreeSet<u16> = (0..LANES).collect();
    let none = BTreeSet::new();
    (0..LANES).for_each(|lane| running.write(lane, false));
    let first = u64::from(running.server.log.epoch.get());
    assert_eq!(cluster.add(1).unwrap(), 1);
    (0..LANES).for_each(|lane| running.write(lane, lane == 1));
    assert_eq!(running.acknowledged().end, running.next);
    assert_eq!(cluster.lanes_of(0, first), all);
    assert_eq!(cluster.lanes_of(1, first), none);
    cluster.crash(running);
    let mut running = cluster.start().unwrap();
    let second = u64::from(running.server.log.epoch.get());
    assert_eq!(running.server.survivors.len(), 2 * usize::from(LANES));
    assert!(second > first && running.groups.len() == 2);
    (0..LANES).for_each(|lane| running.write(lane, lane == 3));
    assert_eq!(running.acknowledged().end, running.next);
    assert_eq!(cluster.lanes_of(0, first), all);
    assert_eq!(cluster.lanes_of(0, second), BTreeSet::from([0, 2]));
    assert_eq!(cluster.lanes_of(1, second), BTreeSet::from([1, 3]));
    let written = 3 * usize::from(LANES);
    cluster.crash(running);
    // Of lanes that lie in different groups by epoch, with another one of each group away.
    cluster.is_away(0, true);
    cluster.is_away(4, true);
    let running = cluster.start().unwrap();
    assert_eq!(running.server.survivors.len(), written);
    drop(running);
}

/// What has no quorum waits, and nothing else; then it is durable, in order, and nothing is lost.
#[test]
fn lanes_of_a_group_without_a_quorum_wait_and_others_go_on() {
    let cluster = Cluster::new(2);
    drop(cluster.start().unwrap());
    cluster.add(1).unwrap();
    let mut running = cluster.start().unwrap();
    running.write(0, false);
    running.write(1, false);
    let second = running.next - 1;
    assert!(running.is_durable(0, second - 1) && running.is_durable(1, second));
    for place in of_group(1).take(2) {
        cluster.is_away(place, true);
    }
    running.write(1, false);
    running.write(0, false);
    running.write(1, false);
    let waiting = second + 1;
    assert!(!running.is_durable(1, waiting), "its group has one member");
    assert!(running.is_durable(0, waiting + 1), "its group has all");
    running.server.tell_horizon();
    assert_eq!(running.acknowledged().end, waiting, "the horizon waits");
    cluster.is_away(of_group(1).start, false);
    for _ in 0..20 {
        cluster.clock.advance(Duration::from_millis(1));
        for group in &running.groups {
            group.bring_children_back();
        }
    }
    assert!(running.is_durable(1, waiting + 2), "one is back");
    running.server.tell_horizon();
    assert_eq!(running.acknowledged().end, running.next);
    let written = running.next - 1;
    cluster.crash(running);
    let running = cluster.start().unwrap();
    assert_eq!(running.server.survivors, (1..=written).collect::<Vec<_>>());
    // A start needs a quorum of each.
    cluster.crash(running);
    for place in of_group(1) {
        cluster.is_away(place, place != of_group(1).start);
    }
    let error = cluster.start().map(drop).expect_err("one of three");
    assert!(error.to_string().contains("group 1"), "{error}");
}

/// Who was overtaken acknowledges nothing more, in no group, whatever it was about to do.
#[test]
fn a_server_that_is_overtaken_is_fenced_out_of_every_group() {
    let cluster = Cluster::new(3);
    drop(cluster.start().unwrap());
    cluster.add(1).unwrap();
    let overtaken = cluster.start().unwrap();
    let mut running = cluster.start().unwrap();
    // It finds one of each group away, and would bring it back: only who has the lease says who is complete.
    for group in 0..2 {
        cluster.is_away(of_group(group).start, true);
    }
    for group in &overtaken.groups {
        group.list_objects().unwrap();
    }
    for group in 0..2 {
        assert!(!overtaken.is_member(of_group(group).start), "left out");
        cluster.is_away(of_group(group).start, false);
    }
    for _ in 0..20 {
        cluster.clock.advance(Duration::from_millis(1));
        for group in &overtaken.groups {
            group.bring_children_back();
        }
    }
    for group in 0..2 {
        let left_out = overtaken.state(of_group(group).start);
        assert_ne!(left_out, "member", "group {group}: it is not its to say");
    }
    (0..LANES).for_each(|lane| running.write(lane, false));
    assert_eq!(running.acknowledged().end, running.next);
}

/// A reader that was opened when the volume had one group, and one that reads its log to the end.
#[test]
fn readers_follow_a_volume_that_is_divided() {
    let cluster = Cluster::new(4);
    let mut running = cluster.start().unwrap();
    (0..LANES).for_each(|lane| running.write(lane, false));
    let first = cluster.group(0, OpenPurpose::Reading).unwrap();
    let reader = GroupedHome::open(first, OpenPurpose::Reading, cluster.opener()).unwrap();
    let reader = LogHome::from(reader);
    let read = |home: &LogHome| inspect::verify_home(home).unwrap().report.entries;
    let written = |running: &Running| running.next - 1;
    assert_eq!(read(&reader), written(&running));
    cluster.add(1).unwrap();
    assert_eq!(read(&reader), written(&running));
    cluster.crash(running);
    let mut running = cluster.start().unwrap();
    (0..LANES).for_each(|lane| running.write(lane, lane == 1));
    assert_eq!(running.acknowledged().end, running.next);
    assert_eq!(read(&reader), written(&running));
    let (late, groups) = cluster.open(OpenPurpose::Reading).unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(read(&late), written(&running));
}
