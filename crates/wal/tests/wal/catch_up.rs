//! Children of a home of homes go away and come back while a server writes, others take their places, with appends that
//! complete late, crashes at any moment, and starts without one of them: what was acknowledged is there, whoever is
//! lost then.

use crate::rig;

use logstead_env::{Clock, Env, SimClock, SimRandom};
use logstead_home::NamedValues;
use logstead_home::{
    Availability, HomeStatus, LogHome, MemoryHome, Opener, ReplicatedHome, ReplicatedOptions,
    Source, WriteConcern,
};
use logstead_types::Csn;
use logstead_wal::lease::LeaseOptions;
use logstead_wal::recovery::{RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, FlushMode};
use rig::{Server, options};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LANES: u16 = 2;
/// What every member of a log has.
const MANIFEST: &str = "manifest";

/// The first three of these are members at first, and always at least three are.
const PLACES: usize = 5;
const MEMBERS: usize = 3;

struct Cluster {
    children: Vec<MemoryHome>,
    env: Env,
    clock: Arc<SimClock>,
}

struct Running {
    server: Server,
    replicated: Arc<ReplicatedHome>,
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
    crashed_while_catching_up: u64,
    /// Appends waited because too few were there.
    stalled: u64,
    /// Lists of members, and crashes on the way from one to another.
    changed: u64,
    crashed_while_changing: u64,
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

    /// By these of the places, and by what the register says.
    fn start(&self, seeds: std::ops::Range<usize>) -> Result<Running, RecoveryError> {
        let children = self.children.clone();
        let opener = move |place: usize| -> Opener {
            let home = children[place].clone();
            // Who is away does not open.
            Arc::new(move || home.get(MANIFEST).map(|_| LogHome::from(home.clone())))
        };
        let source = |place: usize| Source {
            url: url(place),
            open: opener(place),
        };
        let sources: Vec<Source> = seeds.map(source).collect();
        let by_url = move |url: &str| opener(place_of(url));
        let replicated = ReplicatedOptions {
            ack: WriteConcern::Majority,
            threads: false,
            lag_bytes_max: 40 << 10,
            return_pause_min: Duration::from_micros(1),
            ..ReplicatedOptions::default()
        };
        let by_url = Arc::new(by_url);
        let home = ReplicatedHome::open_members(sources, by_url, &self.env, replicated)?;
        let replicated = Arc::new(home);
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
        let home = LogHome::from(Arc::clone(&replicated));
        let server = Server::open(home, &self.env, &options, false)?;
        let next = server.log.next_csn.0;
        let checkpoint = server.log.report.checkpoint.0;
        Ok(Running {
            server,
            replicated,
            next,
            first: next,
            checkpoint,
        })
    }

    fn crash(&self, running: Running) {
        for child in &self.children {
            child.crash();
        }
        drop(running);
    }

    fn is_away(&self, child: usize, away: bool) {
        self.children[child].set_presence(match away {
            true => Availability::Refusing,
            false => Availability::Up,
        });
    }
}

fn url(place: usize) -> String {
    format!("place {place}")
}

fn place_of(url: &str) -> usize {
    let number = url.trim_start_matches("place ");
    number.parse().expect("a place's number")
}

impl Running {
    /// What is said of a place; nothing if it is none of the homes.
    fn state(&self, place: usize) -> String {
        let report = self.replicated.report();
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

    /// The list as the register has it, if enough answer.
    fn members(&self) -> Option<BTreeSet<usize>> {
        let list = self.replicated.members().ok()?.members;
        Some(list.iter().map(|(url, _)| place_of(url)).collect())
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

    /// Those of this life that a client may have been told of.
    fn acknowledged(&self) -> std::ops::Range<u64> {
        self.first..self.server.horizon(self.next).clamp(self.first, self.next)
    }
}

/// Everything acknowledged that no checkpoint holds was handed over.
fn check(running: &Running, acknowledged: &BTreeSet<u64>, when: &str) {
    let survivors: BTreeSet<u64> = running.server.survivors.iter().copied().collect();
    let lost: Vec<_> = acknowledged.range(running.checkpoint..).collect();
    let lost: Vec<_> = lost
        .into_iter()
        .filter(|csn| !survivors.contains(csn))
        .collect();
    assert!(lost.is_empty(), "{when}: {lost:?} were acknowledged");
}

/// What may happen to the members.
#[derive(Clone, Copy, PartialEq)]
enum Happens {
    /// One at a time goes and comes.
    One,
    /// So do several, and others take their places.
    Lists,
}

fn run(seed: u64, happens: Happens, met: &mut Met) {
    let lists = happens == Happens::Lists;
    let places = if lists { PLACES } else { MEMBERS };

    let cluster = Cluster::new(seed);
    let dice = SimRandom::new(seed ^ 0x5eed);
    let mut acknowledged = BTreeSet::new();
    let lives = 2 + dice.below(3);
    for life in 0..lives {
        // The first takes all of them.
        let absent = (life > 0 && dice.below(2) == 0).then(|| dice.below(places as u64) as usize);
        for child in 0..places {
            cluster.is_away(child, Some(child) == absent);
        }
        let started = cluster.start(0..if life == 0 { MEMBERS } else { places });
        let mut running =
            started.unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
        let when = format!("seed {seed}, life {life}, without {absent:?}");
        check(&running, &acknowledged, &when);
        for _ in 0..60 + dice.below(200) {
            let child = dice.below(places as u64) as usize;
            let memory = &cluster.children[child];
            match dice.below(20) {
                0..8 => running.write(dice.below(u64::from(LANES)) as u16, dice.below(8) == 0),
                8..12 => {
                    let waiting = memory.waiting().max(1) as u64;
                    let _completed = memory.complete_at(dice.below(waiting) as usize);
                }
                12 => memory.set_paused(dice.below(2) == 0),
                13 => {
                    // Two of them are enough; with fewer, appends wait.
                    let mut others = (0..MEMBERS).filter(|&other| other != child);
                    if lists || others.all(|other| running.is_member(other)) {
                        cluster.is_away(child, true);
                        memory.set_paused(false);
                        met.left += 1;
                    }
                }
                14 | 15 => cluster.is_away(child, false),
                16 if dice.below(4) == 0 => {
                    let durable = running.acknowledged().end;
                    // Of what is durable everywhere that the starts of the lanes speak of.
                    if durable == running.next
                        && (0..places).all(|child| cluster.children[child].waiting() == 0)
                        && running.server.checkpoint(durable).is_ok()
                    {
                        running.checkpoint = durable;
                    }
                }
                17 if lists && dice.below(3) == 0 => {
                    let mut list: BTreeSet<usize> = (0..PLACES).collect();
                    while list.len() > MEMBERS + dice.below(2) as usize {
                        list.remove(&(dice.below(PLACES as u64) as usize));
                    }
                    let list: Vec<String> = list.into_iter().map(url).collect();
                    let _with_enough_of_them =
                        running.replicated.edit_members(&|_| Ok(list.clone()));
                }
                _ => {
                    let before: Vec<bool> = (0..places).map(|of| running.is_member(of)).collect();
                    let list = running.members();
                    cluster.clock.advance(Duration::from_millis(1));
                    running.replicated.bring_children_back();
                    let now = (0..places).filter(|&of| running.is_member(of) && !before[of]);
                    met.returned += now.count() as u64;
                    let now = running.members();
                    met.changed += u64::from(list.is_some() && now.is_some() && list != now);
                }
            }
            running.server.tell_horizon();
            acknowledged.extend(running.acknowledged());
        }
        let catches_up = |child| running.state(child).starts_with("catching up");
        met.crashed_while_catching_up += u64::from((0..places).any(catches_up));
        let up = (0..places)
            .filter(|&child| running.is_member(child))
            .count();
        met.stalled += u64::from(up < 2);
        let asked = (0..places)
            .filter(|&child| !running.state(child).is_empty())
            .count();
        let listed = running.members().map_or(asked, |list| list.len());
        met.crashed_while_changing += u64::from(asked > listed);
        cluster.crash(running);
    }
    for absent in 0..places {
        for child in 0..places {
            cluster.is_away(child, child == absent);
        }
        let started = cluster.start(0..places);
        let running =
            started.unwrap_or_else(|error| panic!("seed {seed}, without {absent}: {error}"));
        check(
            &running,
            &acknowledged,
            &format!("seed {seed}, at last without {absent}"),
        );
        cluster.crash(running);
    }
    met.acknowledged += acknowledged.len() as u64;
}

fn run_all(happens: Happens) -> (u64, Met) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("LOGSTEAD_SEED").unwrap_or(0);
    let seeds: u64 = number("LOGSTEAD_SEEDS").unwrap_or(60);
    let mut met = Met::default();
    for seed in first..first + seeds {
        run(seed, happens, &mut met);
    }
    println!("{met:?}");
    (seeds, met)
}

#[test]
fn children_leave_and_return_under_a_server_that_crashes() {
    let (seeds, met) = run_all(Happens::One);
    if seeds >= 60 {
        assert!(met.acknowledged > 20 * seeds, "{met:?}");
        assert!(met.returned > seeds / 2, "{met:?}");
        assert!(met.crashed_while_catching_up > 0, "{met:?}");
    }
}

#[test]
fn others_take_their_places_under_a_server_that_crashes() {
    let (seeds, met) = run_all(Happens::Lists);
    if seeds >= 60 {
        assert!(met.acknowledged > 10 * seeds, "{met:?}");
        assert!(met.returned > seeds / 2, "{met:?}");
        assert!(met.changed > seeds / 2, "{met:?}");
        assert!(met.stalled > 0 && met.crashed_while_changing > 0, "{met:?}");
    }
}
