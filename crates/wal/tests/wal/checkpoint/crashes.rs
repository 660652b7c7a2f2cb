//! Crashes at every single request of naming checkpoints and of removing what they make superfluous: what was
//! acknowledged is in the checkpoint that the manifest names or behind its starts, and the next start leaves nothing
//! behind that nobody needs.

use super::rig::{Machine, Server, options, row_of};
use logstead_env::{Clock, CrashLoss, Env, Fault, SimClock};
use logstead_home::simulated::{MODELS, SimulatedOptions};
use logstead_home::{LogHome, SimulatedHome};
use logstead_types::{Csn, LaneId};
use logstead_wal::recovery::{RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, FlushMode};
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Where the log lies, and how it is made to crash.
trait World {
    fn start(&self, lanes: u16) -> Result<Server, RecoveryError>;
    /// Makes what a lane has buffered durable.
    fn flush(&self, server: &Server, lane: u16) -> bool;
    /// Something that was asked for in the background goes on. False if nothing did.
    fn go_on(&self) -> bool;
    fn requests(&self) -> u64;
    fn crash_at(&self, request: u64);
    fn reboot(&self);
}

impl World for Machine {
    fn start(&self, lanes: u16) -> Result<Server, RecoveryError> {
        Machine::start(self, lanes)
    }

    fn flush(&self, server: &Server, lane: u16) -> bool {
        server.flush(lane)
    }

    fn go_on(&self) -> bool {
        false
    }

    fn requests(&self) -> u64 {
        self.files.operations()
    }

    fn crash_at(&self, request: u64) {
        self.files.fail_at(request, Fault::Crash);
    }

    fn reboot(&self) {
        self.files.reboot();
    }
}

struct Service {
    home: SimulatedHome,
    env: Env,
}

impl Service {
    fn new(model: usize, seed: u64) -> Service {
        let mut model = MODELS[model].clone();
        model.appends_per_segment = model.appends_per_segment.min(6);
        model.segment_size_bytes = model.segment_size_bytes.min(32 << 10);
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(seed);
        let env = Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..env
        };
        let options = SimulatedOptions::new(model, seed);
        let home = SimulatedHome::in_virtual_time(&options, &env, clock).expect("opens");
        Service { home, env }
    }
}

impl World for Service {
    fn start(&self, lanes: u16) -> Result<Server, RecoveryError> {
        let home = LogHome::from(self.home.clone());
        let options = RecoveryOptions { lanes, ..options() };
        Server::open(home, &self.env, &options, false)
    }

    fn flush(&self, server: &Server, lane: u16) -> bool {
        let lane = server.lane(lane);
        let _outcome = lane.flush(FlushMode::Handoff);
        while lane.first_not_durable() < Csn(u64::MAX) {
            if !self.home.step() {
                return false;
            }
        }
        true
    }

    fn go_on(&self) -> bool {
        self.home.step()
    }

    fn requests(&self) -> u64 {
        self.home.requests()
    }

    fn crash_at(&self, request: u64) {
        self.home.crash_at(request);
    }

    fn reboot(&self) {
        self.home.crash();
        self.home.reboot();
    }
}

/// A transaction whose records are in a side segment. False if something failed.
fn push_side(world: &dyn World, server: &Server, lane: u16, csn: u64) -> bool {
    let (done, finished) = channel();
    let mut side = server.lane(lane).begin_side_segment().unwrap();
    side.append(row_of(Csn(csn)));
    side.finish(Box::new(move |result| {
        let _nobody_waits_after_a_crash = done.send(result);
    }));
    let stored = loop {
        match finished.try_recv() {
            Ok(stored) => break stored,
            Err(_) if world.go_on() => {}
            Err(_) => return false,
        }
    };
    let (Ok(stored), Ok(room)) = (stored, server.lane(lane).room(0)) else {
        return false;
    };
    let deps = EntryDependencies::floor(Csn(csn - 1));
    server
        .lane(lane)
        .push_side(room, Csn(csn), 0, &deps, &stored);
    true
}

/// What clients were told.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// Everything up to here was acknowledged.
    acknowledged: u64,
    /// The CSN of a checkpoint that was surely named.
    checkpoint: u64,
}

/// Transactions up to `last`, every fifth with a side segment. `None`: something failed.
fn commit(world: &dyn World, server: &Server, told: &mut Told, last: u64) -> Option<()> {
    let lanes = server.log.lanes.len() as u64;
    for csn in told.acknowledged + 1..=last {
        let lane = (csn * 7 % lanes) as u16;
        let pushed = if csn % 5 == 0 {
            push_side(world, server, lane, csn)
        } else {
            server.push(lane, csn)
        };
        if !pushed || !world.flush(server, lane) {
            return None;
        }
        told.acknowledged = csn;
    }
    Some(())
}

fn checkpoint(server: &Server, told: &mut Told) -> Option<()> {
    let csn = told.acknowledged + 1;
    let checkpoint = server.checkpoint_at(csn, server.starts());
    server.publish(checkpoint).ok()?;
    told.checkpoint = csn;
    server.log.manifest_writer.truncate(None).ok().map(drop)
}

/// A life without a checkpoint, and one with two of them, on fewer lanes. It crashes so many requests after the first
/// checkpoint began. Gives how many there were.
fn work(world: &dyn World, told: &mut Told, crash_after: u64) -> Option<u64> {
    let server = world.start(3).ok()?;
    commit(world, &server, told, 24)?;
    drop(server);
    world.reboot();
    let server = world.start(2).ok()?;
    commit(world, &server, told, 50)?;
    let before = world.requests();
    world.crash_at(before + crash_after);
    checkpoint(&server, told)?;
    commit(world, &server, told, 80)?;
    checkpoint(&server, told)?;
    commit(world, &server, told, 86)?;
    Some(world.requests() - before)
}

fn check(world: &dyn World, told: Told, lanes: u16, what: &str) -> Server {
    let server = world.start(lanes).expect(what);
    let held = server.log.report.checkpoint.0;
    assert!(held >= told.checkpoint, "{what}: {held}, {told:?}");
    let first = held.max(1);
    let expected: Vec<u64> = (first..first + server.survivors.len() as u64).collect();
    assert_eq!(server.survivors, expected, "{what}: no holes");
    let last = server.log.next_csn.0 - 1;
    assert!(last >= told.acknowledged, "{what}: {last}, {told:?}");
    assert_eq!(first + expected.len() as u64, last + 1, "{what}");
    nothing_is_left(&server, what);
    server
}

/// What is at the home is what the manifest names.
fn nothing_is_left(server: &Server, what: &str) {
    let manifest = server.log.manifest_writer.manifest();
    let spans = || manifest.marks.iter().flat_map(|mark| &mark.spans);
    for lane in (0..4).map(LaneId) {
        let origin = manifest.lanes.iter().find(|origin| origin.lane == lane);
        for segment in server.segments(lane.0) {
            let own = origin.is_some_and(|origin| segment >= origin.first_segment);
            let within = |of: &logstead_wal::manifest::LaneSpan| {
                of.lane == lane && (of.first_segment..=of.end.segment).contains(&segment)
            };
            assert!(
                own || spans().any(within),
                "{what}: lane {lane} segment {segment}"
            );
        }
        let epochs: Vec<u64> = manifest
            .marks
            .iter()
            .map(|mark| u64::from(mark.epoch.0))
            .collect();
        for id in server.home.sides.list_side_segments(lane).expect("lists") {
            assert!(
                epochs.contains(&(id >> 32)),
                "{what}: lane {lane} side {id:x}"
            );
        }
    }
}

fn crash_everywhere(new: &dyn Fn(u64) -> Box<dyn World>) -> (u64, u64) {
    let mut told = Told::default();
    let requests = work(new(0).as_ref(), &mut told, 1 << 40).expect("works");
    let (mut named, mut unnamed) = (0, 0);
    for request in 0..requests {
        let what = format!("crash at request {request}");
        let world = new(request);
        let mut told = Told::default();
        if work(world.as_ref(), &mut told, request).is_some() {
            // Another seed has fewer of them.
            continue;
        }
        world.reboot();
        let server = check(world.as_ref(), told, 1 + (request % 3) as u16, &what);
        let before = server.log.report.checkpoint.0;
        named += u64::from(before > told.checkpoint);
        unnamed += u64::from(before == told.checkpoint);
        // Life goes on: another checkpoint, a crash in the recovery after it, and again.
        let mut told = Told {
            acknowledged: server.log.next_csn.0 - 1,
            checkpoint: before,
        };
        let more = told.acknowledged + 5;
        commit(world.as_ref(), &server, &mut told, more).expect(&what);
        if request % 2 == 0 {
            checkpoint(&server, &mut told).expect(&what);
        }
        drop(server);
        world.reboot();
        world.crash_at(world.requests() + request % 17);
        let first = world.start(2).map(drop);
        world.reboot();
        let what = format!("{what}, then in recovery ({})", first.is_err());
        drop(check(world.as_ref(), told, 2, &what));
    }
    (named, unnamed)
}

#[test]
fn crash_at_every_request_of_a_checkpoint_on_a_local_home() {
    for loss in [CrashLoss::All, CrashLoss::Random] {
        let new = |seed| -> Box<dyn World> {
            let machine = Machine::new(seed);
            machine.files.set_loss(loss);
            Box::new(machine)
        };
        let (named, unnamed) = crash_everywhere(&new);
        assert!(unnamed > 50, "{named}, {unnamed}");
    }
}

#[test]
fn crash_at_every_request_of_a_checkpoint_on_simulated_services() {
    let (mut named, mut unnamed) = (0, 0);
    for model in 0..MODELS.len() {
        let new = |seed| -> Box<dyn World> { Box::new(Service::new(model, seed)) };
        let counts = crash_everywhere(&new);
        named += counts.0;
        unnamed += counts.1;
    }
    assert!(named > 0 && unnamed > 100, "{named}, {unnamed}");
}
