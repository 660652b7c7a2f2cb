//! Every interleaving of a few servers that claim, renew, are paused and are killed, up to a limit of time.
//!
//! A server here is the real [`LeaseClaim`] and, after it, what [`Lease`](logstead_wal::lease::Lease) does: the mark,
//! the wait, renewals. Each request to the home is two steps, sent and arrived, so time may pass and others may act
//! between them. Clocks run at different speeds. A server that is not chosen is paused: it can still answer clients,
//! whenever its own clock says that its lease is valid. A server may run on a copy of another one's machine: to its
//! kernel the other one has ended, whatever that does where it runs.
//!
//! Judged in every state (T15): while a server serves, none of an earlier epoch may answer anybody.

use logstead_env::{Instant, ProcessIdentity};
use logstead_home::Tag;
use logstead_types::{DatabaseId, Epoch};
use logstead_wal::lease::claim::{
    ClaimEvent, ClaimStep, Claimant, LeaseClaim, LeaseGrant, margin, millis,
};
use logstead_wal::manifest::Manifest;
use std::collections::HashSet;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(10);
/// Time moves in these.
const TICK: Duration = Duration::from_millis(2_500);

/// What is done wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    Nothing,
    /// Who took the lease from a living server serves at once.
    NoWait,
    /// What is owed to an earlier server is forgotten.
    NothingOwed,
    /// A renewal counts from when it was answered.
    CountsFromAnswer,
    /// The clocks differ by more than the margin allows for.
    Clocks,
    /// What a machine says of its processes is believed although it is a copy.
    TrustsCopies,
}

#[derive(Clone, Debug)]
enum Phase {
    /// About to do this; requests were sent at the time given.
    Claiming(ClaimStep, Instant),
    Watching(Instant),
    /// The recovery mark is on its way.
    Marking,
    WaitingOut,
    Serving,
    /// A renewal is on its way.
    Renewing(Instant),
    /// It has arrived, and its answer is on its way.
    Renewed(Instant),
    Stopped,
    Killed,
}

#[derive(Clone, Debug)]
struct Server {
    process: ProcessIdentity,
    claim: LeaseClaim,
    phase: Phase,
    held: Option<LeaseGrant>,
    epoch: u32,
    renewed: Instant,
    valid_until: Instant,
    /// Its clock: so many thousandths of the true time.
    rate: u32,
}

#[derive(Clone, Debug)]
struct World {
    now: Duration,
    manifest: Option<(Manifest, Tag)>,
    servers: Vec<Server>,
    kills: u32,
}

#[derive(Clone, Copy)]
struct Plan {
    wrong: Wrong,
    ticks: u32,
    kills: u32,
    /// Servers know which of these processes are gone: they run on one machine.
    together: &'static [usize],
    /// Only these may be killed.
    mortal: &'static [usize],
    /// This one runs on a copy of the machine of that one, which was made while it ran.
    copy: Option<(usize, usize)>,
}

impl Server {
    fn new(number: usize, take_over: bool, rate: u32) -> Server {
        Server::on_machine(number, take_over, rate, true)
    }

    /// `never_copied`: so it is told of its machine.
    fn on_machine(number: usize, take_over: bool, rate: u32, never_copied: bool) -> Server {
        let process = ProcessIdentity {
            host: format!("host-{number}"),
            process: number as u32,
            ..ProcessIdentity::default()
        };
        let mut claim = LeaseClaim::new(Claimant {
            owner: number as u64 + 1,
            process: process.clone(),
            duration: LEASE,
            since: 0,
            take_over,
            predecessor: None,
            machine_is_never_copied: never_copied,
            database: DatabaseId(7),
        });
        let start = Instant::from_nanos(0);
        let step = claim.next(ClaimEvent::Look, start, &|_| false);
        Server {
            process,
            claim,
            phase: Phase::Claiming(step, start),
            held: None,
            epoch: 0,
            renewed: start,
            valid_until: start,
            rate,
        }
    }

    fn clock(&self, now: Duration) -> Instant {
        Instant::from_nanos((now * self.rate / 1000).as_nanos() as u64)
    }

    fn may_answer(&self, now: Duration) -> bool {
        self.serves() && self.clock(now) < self.valid_until
    }

    fn extend(&mut self, asked: Instant) {
        self.renewed = asked;
        self.valid_until = asked + (LEASE - margin(LEASE));
    }

    fn serves(&self) -> bool {
        matches!(
            self.phase,
            Phase::Serving | Phase::Renewing(_) | Phase::Renewed(_)
        )
    }
}

impl World {
    fn new(servers: Vec<Server>) -> World {
        World {
            now: Duration::ZERO,
            manifest: None,
            servers,
            kills: 0,
        }
    }

    fn swap(&mut self, expected: Option<Tag>, manifest: &Manifest) -> Option<Tag> {
        let now = self.manifest.as_ref().map(|(_, tag)| *tag);
        if now != expected {
            return None;
        }
        let tag = Tag(crc(&manifest.encode()));
        self.manifest = Some((manifest.clone(), tag));
        Some(tag)
    }

    /// The next step of a server; `None` if it has none now.
    fn step(&self, number: usize, plan: &Plan) -> Option<World> {
        let mut world = self.clone();
        let mut server = world.servers[number].clone();
        let now = server.clock(world.now);
        match server.phase.clone() {
            Phase::Stopped | Phase::Killed => return None,
            Phase::Watching(until) if now < until => return None,
            Phase::Watching(_) => world.decide(&mut server, ClaimEvent::Look, plan),
            Phase::Claiming(ClaimStep::Read, _) => {
                let event = match &world.manifest {
                    Some((manifest, tag)) => ClaimEvent::Manifest(Box::new(manifest.clone()), *tag),
                    None => ClaimEvent::NoManifest,
                };
                world.decide(&mut server, event, plan);
            }
            Phase::Claiming(ClaimStep::Create(manifest), asked) => {
                world.claimed(&mut server, None, *manifest, asked, plan);
            }
            Phase::Claiming(ClaimStep::Swap(tag, manifest), asked) => {
                world.claimed(&mut server, Some(tag), *manifest, asked, plan);
            }
            Phase::Claiming(..) => return None,
            Phase::Marking => {
                let mut held = server.held.clone()?;
                let asked = server.renewed;
                let mut next = held.manifest.clone();
                next.epoch = Epoch(next.epoch.get() + 1);
                world.write(&mut next, &held, asked);
                match world.swap(Some(held.tag), &next) {
                    Some(tag) => {
                        server.epoch = next.epoch.get();
                        (held.manifest, held.tag) = (next, tag);
                        server.extend(asked);
                        server.held = Some(held);
                        server.phase = Phase::WaitingOut;
                    }
                    None => server.phase = Phase::Stopped,
                }
            }
            Phase::WaitingOut => {
                let run_out = server.held.as_ref()?.run_out;
                if run_out.is_some_and(|run_out| now < run_out) && plan.wrong != Wrong::NoWait {
                    return None;
                }
                server.phase = Phase::Serving;
            }
            Phase::Serving if now.since(server.renewed) < LEASE / 3 => return None,
            Phase::Serving => server.phase = Phase::Renewing(now),
            Phase::Renewing(asked) => {
                let mut held = server.held.clone()?;
                let mut next = held.manifest.clone();
                world.write(&mut next, &held, asked);
                match world.swap(Some(held.tag), &next) {
                    Some(tag) => {
                        (held.manifest, held.tag) = (next, tag);
                        server.held = Some(held);
                        server.phase = Phase::Renewed(asked);
                    }
                    None => server.phase = Phase::Stopped,
                }
            }
            Phase::Renewed(asked) => {
                let from_answer = plan.wrong == Wrong::CountsFromAnswer;
                server.extend(if from_answer { now } else { asked });
                server.phase = Phase::Serving;
            }
        }
        world.servers[number] = server;
        Some(world)
    }

    /// The manifest as a holder writes it.
    fn write(&self, next: &mut Manifest, held: &LeaseGrant, asked: Instant) {
        if let Some(holder) = next.holder.as_mut() {
            holder.renewals += 1;
            if held.run_out.is_none_or(|run_out| run_out <= asked) {
                holder.owed_ms = 0;
            }
        }
    }

    fn decide(&self, server: &mut Server, event: ClaimEvent, plan: &Plan) {
        let now = server.clock(self.now);
        let killed = |process: &ProcessIdentity| {
            let number = process.process as usize;
            if plan.copy == Some((server.process.process as usize, number)) {
                return true;
            }
            let both = |number: &usize| plan.together.contains(number);
            both(&number)
                && both(&(server.process.process as usize))
                && matches!(self.servers[number].phase, Phase::Killed)
        };
        server.phase = match server.claim.next(event, now, &killed) {
            ClaimStep::Pause(time, _) => Phase::Watching(now + time),
            ClaimStep::Refused(_) => Phase::Stopped,
            ClaimStep::LeaseGrant(held) => {
                server.held = Some(*held);
                server.renewed = now;
                Phase::Marking
            }
            step => Phase::Claiming(step, now),
        };
    }

    fn claimed(
        &mut self,
        server: &mut Server,
        expected: Option<Tag>,
        mut manifest: Manifest,
        asked: Instant,
        plan: &Plan,
    ) {
        if plan.wrong == Wrong::NothingOwed
            && let Some(holder) = manifest.holder.as_mut()
        {
            holder.owed_ms = 0;
        }
        let event = match self.swap(expected, &manifest) {
            Some(tag) => ClaimEvent::Stored(tag),
            None => ClaimEvent::Conflict,
        };
        self.decide(server, event, plan);
        if matches!(server.phase, Phase::Marking) {
            server.extend(asked);
            server.renewed = server.clock(self.now);
        }
    }

    fn next(&self, plan: &Plan) -> Vec<World> {
        let mut all: Vec<World> = (0..self.servers.len())
            .filter_map(|number| self.step(number, plan))
            .collect();
        if self.now < TICK * plan.ticks {
            let mut later = self.clone();
            later.now += TICK;
            all.push(later);
        }
        if self.kills < plan.kills {
            for &number in plan.mortal {
                let mut world = self.clone();
                if !matches!(world.servers[number].phase, Phase::Killed | Phase::Stopped) {
                    world.servers[number].phase = Phase::Killed;
                    world.kills += 1;
                    all.push(world);
                }
            }
        }
        all
    }

    /// What tells it from other states.
    fn key(&self) -> u64 {
        let tag = self.manifest.as_ref().map(|(_, tag)| tag.0);
        let mut text = format!("{:?} {tag:?} {}", self.now, self.kills);
        for server in &self.servers {
            let Server {
                claim,
                phase,
                held,
                renewed,
                valid_until,
                ..
            } = server;
            // The rest never changes, or follows.
            match (phase, held) {
                (Phase::Stopped | Phase::Killed, _) => text += &format!("{phase:?}"),
                (_, None) => text += &format!("{phase:?} {claim:?}"),
                (_, Some(held)) => {
                    let LeaseGrant { tag, run_out, .. } = held;
                    text += &format!("{phase:?} {tag:?} {run_out:?} {renewed:?} {valid_until:?}");
                }
            }
        }
        crc(text.as_bytes())
    }

    /// What T15 forbids: a server answers although a later one serves.
    fn is_bad(&self) -> bool {
        let latest = self.servers.iter().filter(|server| server.serves());
        let latest = latest.map(|server| server.epoch).max().unwrap_or(0);
        let early = |server: &&Server| server.epoch < latest && server.may_answer(self.now);
        self.servers.iter().any(|server| early(&server))
    }
}

fn crc(bytes: &[u8]) -> u64 {
    // FNV: states of one run differ.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

struct Seen {
    states: usize,
    /// Highest epoch in which anybody served.
    epochs: u32,
    bad: bool,
    refused: bool,
}

fn explore(start: World, plan: Plan) -> Seen {
    let mut seen = HashSet::new();
    let mut found = Seen {
        states: 0,
        epochs: 0,
        bad: false,
        refused: false,
    };
    let mut stack = vec![start];
    while let Some(world) = stack.pop() {
        if !seen.insert(world.key()) {
            continue;
        }
        found.states += 1;
        for server in &world.servers {
            if server.serves() {
                found.epochs = found.epochs.max(server.epoch);
            }
            found.refused |= matches!(server.phase, Phase::Stopped) && server.held.is_none();
        }
        if world.is_bad() {
            found.bad = true;
            return found;
        }
        stack.extend(world.next(&plan));
    }
    found
}

const PLAN: Plan = Plan {
    wrong: Wrong::Nothing,
    ticks: 7,
    kills: 0,
    together: &[],
    mortal: &[],
    copy: None,
};

/// A server whose clock is slow and one that takes over with a quick one.
fn two() -> World {
    World::new(vec![Server::new(0, false, 960), Server::new(1, true, 1040)])
}

/// The second takes over and may be killed at any step; the third runs on the same machine as the second.
fn three() -> World {
    let mut world = World::new(vec![
        Server::new(0, false, 960),
        Server::new(1, true, 1040),
        Server::new(2, false, 1040),
    ]);
    // The first one is at work; what others may do before that is the other test's.
    let plan = PLAN;
    for _ in 0..4 {
        world = world.step(0, &plan).unwrap();
    }
    assert!(world.servers[0].serves());
    world
}

/// The first is at work, and its machine is copied. On the copy it has ended, and another server starts.
fn copied(wrong: Wrong) -> (World, Plan) {
    let trusts = wrong == Wrong::TrustsCopies;
    let mut world = World::new(vec![
        Server::new(0, false, 960),
        Server::on_machine(1, false, 1040, trusts),
    ]);
    let plan = Plan {
        wrong,
        copy: Some((1, 0)),
        ..PLAN
    };
    for _ in 0..4 {
        world = world.step(0, &plan).unwrap();
    }
    assert!(world.servers[0].serves());
    (world, plan)
}

fn with_kills() -> Plan {
    Plan {
        ticks: 5,
        kills: 1,
        together: &[1, 2],
        mortal: &[1],
        ..PLAN
    }
}

#[test]
fn t15_two_servers_never_answer_out_of_date() {
    let seen = explore(two(), PLAN);
    assert!(!seen.bad);
    assert_eq!(seen.epochs, 2, "the second did take over");
    assert!(seen.states > 1_000, "{} states", seen.states);
    let claimants = World::new(vec![
        Server::new(0, false, 1040),
        Server::new(1, false, 960),
    ]);
    let seen = explore(claimants, PLAN);
    assert!(!seen.bad);
    assert!(seen.refused, "who meets a living server is refused");
    assert_eq!(seen.epochs, 2, "who meets a silent one is not");
}

#[test]
fn t15_a_server_killed_while_it_takes_over_leaves_what_it_owes() {
    let seen = explore(three(), with_kills());
    assert!(!seen.bad);
    assert!(seen.epochs >= 3, "the third followed the second");
}

#[test]
fn t15_a_copy_of_a_machine_does_not_answer_beside_the_original() {
    let (world, plan) = copied(Wrong::Nothing);
    let seen = explore(world, plan);
    assert!(!seen.bad);
    assert!(seen.refused, "the original lives, and shows it");
    assert_eq!(seen.epochs, 2, "it is replaced when it is silent");
}

#[test]
fn the_model_sees_what_is_done_wrong() {
    let (world, plan) = copied(Wrong::TrustsCopies);
    assert!(explore(world, plan).bad, "{:?}", plan.wrong);
    for wrong in [Wrong::NoWait, Wrong::CountsFromAnswer] {
        assert!(explore(two(), Plan { wrong, ..PLAN }).bad, "{wrong:?}");
    }
    let wrong = Wrong::NothingOwed;
    let plan = Plan {
        wrong,
        ..with_kills()
    };
    assert!(explore(three(), plan).bad, "{wrong:?}");
    let mut fast = two();
    fast.servers[0].rate = 700;
    let wrong = Wrong::Clocks;
    assert!(explore(fast, Plan { wrong, ..PLAN }).bad, "{wrong:?}");
}

#[test]
fn a_copy_of_a_claim_does_not_take_what_the_original_has() {
    let now = Instant::from_nanos(0);
    let mut original = two().servers.swap_remove(0).claim;
    let mut copy = original.clone();
    let ClaimStep::Create(manifest) = original.next(ClaimEvent::NoManifest, now, &|_| false) else {
        panic!("there is none yet");
    };
    let mut renewed = *manifest;
    let holder = renewed.holder.as_mut().unwrap();
    holder.renewals += 1 << 20;
    let step = copy.next(
        ClaimEvent::Manifest(Box::new(renewed), Tag(1)),
        now,
        &|_| false,
    );
    assert!(matches!(step, ClaimStep::Pause(..)), "{step:?}");
}

/// The machine is copied while a claim is on its way: before it is sent, and between that and its answer, which the
/// original gets.
#[test]
fn a_copy_of_a_claim_on_its_way_waits_for_the_original() {
    for never_copied in [false, true] {
        let claim = Server::on_machine(0, false, 1000, never_copied).claim;
        let now = Instant::from_nanos(5_000);
        let (mut original, mut before) = (claim.clone(), claim);
        let ClaimStep::Create(made) = original.next(ClaimEvent::NoManifest, now, &|_| false) else {
            panic!("there is none yet");
        };
        let mut between = original.clone();
        let held = original.next(ClaimEvent::Stored(Tag(1)), now, &|_| false);
        assert!(matches!(held, ClaimStep::LeaseGrant(_)), "{held:?}");
        // A copy looks at its clock a little later.
        let later = Instant::from_nanos(5_001);
        let ClaimStep::Create(another) = before.next(ClaimEvent::NoManifest, later, &|_| false)
        else {
            panic!("it knows of none");
        };
        assert_ne!(made.encode(), another.encode(), "each attempt is one state");
        for copy in [&mut before, &mut between] {
            let step = copy.next(ClaimEvent::Conflict, later, &|_| false);
            assert!(matches!(step, ClaimStep::Read), "{step:?}");
            let there = || ClaimEvent::Manifest(made.clone(), Tag(1));
            let mut step = copy.next(there(), later, &|_| false);
            if never_copied {
                continue;
            }
            assert!(matches!(step, ClaimStep::Pause(..)), "{step:?}");
            // The original is alive, and renews it: the copy is refused.
            let mut watching = copy.clone();
            let mut renewed = *made.clone();
            renewed.holder.as_mut().unwrap().renewals += 1;
            let renewed = ClaimEvent::Manifest(Box::new(renewed), Tag(2));
            let refused = watching.next(renewed, later, &|_| false);
            assert!(matches!(refused, ClaimStep::Refused(_)), "{refused:?}");
            // Or nobody is there, as where the answer was just lost.
            let mut time = later;
            while let ClaimStep::Pause(pause, _) = step {
                time = time + pause;
                step = copy.next(there(), time, &|_| false);
            }
            assert!(time >= later + LEASE + margin(LEASE));
            assert!(matches!(step, ClaimStep::Swap(..)), "{step:?}");
        }
        if never_copied {
            // Nobody else can have been answered.
            let mut lost = Server::on_machine(0, false, 1000, true).claim;
            lost.next(ClaimEvent::NoManifest, now, &|_| false);
            let step = lost.next(ClaimEvent::Manifest(made, Tag(1)), later, &|_| false);
            assert!(matches!(step, ClaimStep::LeaseGrant(_)), "{step:?}");
        }
    }
}

#[test]
fn states_of_a_manifest_never_come_back() {
    // What a claim writes differs from everything that it wrote before, also after a conflict.
    let mut claim = two().servers.swap_remove(1).claim;
    let now = Instant::from_nanos(0);
    let mut held = None;
    let mut states = HashSet::new();
    for round in 0..3 {
        let mut other =
            match two()
                .servers
                .swap_remove(0)
                .claim
                .next(ClaimEvent::NoManifest, now, &|_| false)
            {
                ClaimStep::Create(manifest) => *manifest,
                step => panic!("{step:?}"),
            };
        other.holder.as_mut().unwrap().renewals = round;
        let step = claim.next(
            ClaimEvent::Manifest(Box::new(other), Tag(round)),
            now,
            &|_| false,
        );
        let ClaimStep::Swap(_, manifest) = step else {
            panic!("{step:?}")
        };
        assert!(states.insert(manifest.encode()));
        assert_eq!(manifest.holder.as_ref().unwrap().owed_ms, millis(LEASE));
        held = Some(manifest);
    }
    // The last attempt got there although its reply was lost.
    let manifest = held.unwrap();
    let step = claim.next(ClaimEvent::Manifest(manifest.clone(), Tag(9)), now, &|_| {
        false
    });
    match step {
        ClaimStep::LeaseGrant(held) => {
            assert_eq!((held.tag, held.manifest), (Tag(9), *manifest));
            assert!(held.run_out.is_some());
        }
        step => panic!("{step:?}"),
    }
}
