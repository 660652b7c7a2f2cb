//! One history of a fleet: servers come and go, nodes and the network fail, and in the end nothing does any more.

use std::sync::Arc;
use std::time::Duration;

use logstead_env::simulated_threads::{ProcessNumber, SimThreads};
use logstead_env::{Env, SimFiles};
use logstead_home::FleetChange;
use logstead_wal::inspect::manifest_of;
use parking_lot::Mutex;

use crate::disks::{self, Contents};
use crate::faults::FaultCounts;
use crate::judge::{Counts, Judge};
use crate::nodes::{NODES, Nodes, address, in_process, node_url, url, zone_of};
use crate::server::{Server, ServerOptions};
use logstead_sim::Dice;

/// The process of the first server.
const FIRST_SERVER: ProcessNumber = 100;
/// Who looks at the nodes in the end.
const OBSERVER: ProcessNumber = 90;
/// Threads hand over so often in a history at most.
const SWITCHES_MAX: u64 = 20_000_000;
/// When nothing fails any more, everything is as it was within this time.
const CALM_TIME: Duration = Duration::from_secs(400);
/// Servers of one history.
const SERVERS_MAX: usize = 5;

/// What is run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    /// How often something goes wrong.
    pub(crate) faults: u64,
    pub(crate) checkpoints: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) counts: Counts,
    pub(crate) faults: FaultCounts,
    pub(crate) published: u64,
    pub(crate) switches: u64,
    pub(crate) virtual_ms: u64,
}

impl Outcomes {
    pub(crate) fn add(&mut self, other: &Outcomes) {
        let (mine, theirs) = (&mut self.counts, &other.counts);
        mine.acknowledged += theirs.acknowledged;
        mine.answered += theirs.answered;
        mine.annulled += theirs.annulled;
        mine.survived_unacknowledged += theirs.survived_unacknowledged;
        mine.acknowledged_late += theirs.acknowledged_late;
        mine.written_late += theirs.written_late;
        mine.recoveries += theirs.recoveries;
        self.faults.add(other.faults);
        self.published += other.published;
        self.switches += other.switches;
        self.virtual_ms += other.virtual_ms;
    }
}

pub(crate) fn run(setup: &Setup) -> Result<Outcomes, String> {
    let threads = SimThreads::new(setup.seed, &format!("{setup:?}"));
    threads.limit_switches(SWITCHES_MAX);
    let outcomes = threads.run(|| History::new(setup, &threads).run());
    let outcomes = outcomes?;
    Ok(Outcomes {
        switches: threads.switches(),
        virtual_ms: threads.clock().monotonic().as_nanos() / 1_000_000,
        ..outcomes
    })
}

pub(crate) struct History {
    pub(crate) threads: SimThreads,
    pub(crate) dice: Dice,
    pub(crate) nodes: Nodes,
    pub(crate) faults: FaultCounts,
    /// The node whose disk has lost or changed what it had: one at a time, until all are complete.
    pub(crate) damaged: Option<usize>,
    judge: Arc<Mutex<Judge>>,
    setup: Setup,
    /// The newest is the last.
    servers: Vec<Server>,
    started: usize,
    published: u64,
    /// The epoch whose fences were looked at.
    fences_seen: u32,
}

impl History {
    fn new(setup: &Setup, threads: &SimThreads) -> History {
        History {
            threads: threads.clone(),
            dice: Dice::new(setup.seed),
            nodes: Nodes::start(threads, setup.seed),
            faults: FaultCounts::default(),
            damaged: None,
            judge: Arc::default(),
            setup: setup.clone(),
            servers: Vec::new(),
            started: 0,
            published: 0,
            fences_seen: 0,
        }
    }

    fn server(&mut self, take_over: bool, only_reads: bool) -> Server {
        let process = FIRST_SERVER + self.started as ProcessNumber;
        self.started += 1;
        let all: Vec<usize> = (0..NODES).collect();
        let options = ServerOptions {
            url: url(&all),
            workers: 1 + self.dice.roll(2) as usize,
            clients: 1 + self.dice.roll(4) as usize,
            take_over,
            checkpoints: self.setup.checkpoints,
            only_reads,
        };
        let dice = self.dice.fork();
        Server::start(&self.threads, process, options, &self.judge, dice)
    }

    pub(crate) fn newest_server(&self) -> ProcessNumber {
        self.servers
            .last()
            .map_or(FIRST_SERVER, |server| server.process)
    }

    pub(crate) fn server_processes(&self) -> Vec<ProcessNumber> {
        self.servers.iter().map(|server| server.process).collect()
    }

    /// Another server comes, beside those that are there.
    pub(crate) fn take_over(&mut self) {
        if self.servers.len() < SERVERS_MAX {
            let by_force = self.dice.one_in(2);
            let server = self.server(by_force, false);
            self.servers.push(server);
        }
    }

    /// Lets time go by until the newest server serves, or will not soon.
    pub(crate) fn until_newest_serves(&self) {
        if let Some(server) = self.servers.last() {
            self.wait_until(Duration::from_secs(60), || server.serves().is_some());
        }
    }

    /// The newest server is gone at once, or ends in order, and another one comes.
    pub(crate) fn replace_server(&mut self, kills: bool) {
        if self.servers.len() >= SERVERS_MAX {
            return;
        }
        if let Some(server) = self.servers.last() {
            match kills {
                true => server.kill(&self.threads),
                false => server.stop(),
            }
        }
        self.take_over();
    }

    /// Tells what happens, where somebody wants to see it (`LOGSTEAD_TRACE`).
    pub(crate) fn trace(&self, what: impl FnOnce() -> String) {
        if std::env::var_os("LOGSTEAD_TRACE").is_some() {
            let at = self.threads.clock().monotonic().as_nanos() / 1_000_000;
            let serves: Vec<_> = self.servers.iter().map(Server::serves).collect();
            println!("{at} ms: {}, servers {serves:?}", what());
        }
    }

    fn is_wrong(&self) -> bool {
        self.judge.lock().is_wrong()
    }

    /// Lets time go by until this is so. False: it is not within the time.
    fn wait_until(&self, most: Duration, is_so: impl Fn() -> bool) -> bool {
        let step = Duration::from_millis(50);
        let mut waited = Duration::ZERO;
        while !is_so() {
            if waited > most || self.is_wrong() {
                return false;
            }
            logstead_env::sleep(step);
            waited += step;
        }
        true
    }

    fn run(mut self) -> Result<Outcomes, String> {
        let judged = self.life();
        // Whatever came of it, everybody ends.
        self.be_calm();
        for server in std::mem::take(&mut self.servers) {
            self.published += server.published();
            server.kill(&self.threads);
            server.join();
        }
        let judged = judged.and_then(|()| self.recover_without_a_zone());
        self.nodes.stop();
        let judge = self.judge.lock();
        judge.verdict()?;
        judged?;
        Ok(Outcomes {
            counts: judge.counts,
            faults: self.faults,
            published: self.published,
            switches: 0,
            virtual_ms: 0,
        })
    }

    fn life(&mut self) -> Result<(), String> {
        self.take_over();
        let server = &self.servers[0];
        if !self.wait_until(CALM_TIME, || server.acknowledged() > 5) {
            return Err(format!("the first server: {}", server.trouble()));
        }
        for _ in 0..self.setup.faults {
            let before = self.faults;
            self.fault();
            self.trace(|| before.what_came(&self.faults));
            let time = self.some_time() / 4;
            logstead_env::sleep(time);
            self.look_after_nodes();
            if self.is_wrong() {
                return Ok(());
            }
            let looks = self.faults.left_on_few > before.left_on_few || self.dice.one_in(2);
            if !self.setup.checkpoints && self.damaged.is_none() && looks {
                let told = self.judge.lock().told();
                disks::survive(&self.nodes, &told, self.setup.seed)?;
            }
            self.look_at_fences()?;
        }
        self.be_calm();
        self.until_all_is_well()
    }

    /// Whoever was overtaken by the newest server is kept out by enough nodes, whatever becomes of them.
    fn look_at_fences(&mut self) -> Result<(), String> {
        let epoch = self.judge.lock().epoch();
        if epoch == self.fences_seen || self.damaged.is_some() {
            return Ok(());
        }
        self.fences_seen = epoch;
        let fenced = disks::fenced_before(&self.nodes, epoch, self.setup.seed);
        match fenced >= disks::READ_QUORUM {
            true => Ok(()),
            false => Err(format!(
                "only {fenced} nodes keep out who came before epoch {epoch}"
            )),
        }
    }

    /// Nothing fails any more: the fleet mends itself, without a restart of its server.
    fn until_all_is_well(&mut self) -> Result<(), String> {
        // Servers that were overtaken come to themselves.
        logstead_env::sleep(Duration::from_secs(5));
        // One server stays: the newest that serves, or that is to.
        let newest = self.servers.iter().enumerate();
        let newest = newest.filter(|(_, server)| !server.is_gone());
        let newest = newest.max_by_key(|(index, server)| (server.serves(), *index));
        let newest = newest.map_or(0, |(index, _)| index);
        for (index, server) in self.servers.iter().enumerate() {
            if index != newest {
                server.kill(&self.threads);
            }
        }
        let server = &self.servers[newest];
        // What another one has begun may still come through.
        logstead_env::sleep(Duration::from_secs(3));
        if !self.wait_until(CALM_TIME, || server.serves().is_some()) {
            return match self.is_wrong() {
                true => Ok(()),
                false => Err(format!("no server serves:\n{}", self.troubles())),
            };
        }
        let epoch = server.serves();
        let before = server.acknowledged();
        let goes_on = self.wait_until(CALM_TIME, || server.acknowledged() > before + 5);
        if self.faults.flipped > 0
            && let Some(node) = self.damaged
        {
            self.repair(node)?;
        }
        server.look_again();
        let is_complete = self.wait_until(CALM_TIME, || server.all_complete());
        if self.is_wrong() {
            return Ok(());
        }
        if !goes_on || !is_complete || server.serves() != epoch {
            let serves = server.serves();
            return Err(format!(
                "goes on: {goes_on}, all complete: {is_complete}, serves {epoch:?} then {serves:?}:\n{}",
                self.troubles()
            ));
        }
        server.be_quiet();
        logstead_env::sleep(Duration::from_secs(40));
        self.compare()
    }

    fn troubles(&self) -> String {
        let trouble = |server: &Server| {
            let (serves, trouble) = (server.serves(), server.trouble());
            let report = server.state.report();
            format!("server {}: {serves:?} {trouble}\n{report}", server.process)
        };
        let troubles: Vec<String> = self.servers.iter().map(trouble).collect();
        troubles.join("\n")
    }

    /// Has the fleet compare what a node has with what the others have.
    fn repair(&self, node: usize) -> Result<(), String> {
        let env = self.observer();
        in_process(&self.threads, OBSERVER, move || {
            let all: Vec<usize> = (0..NODES).collect();
            let change = FleetChange::Repair(address(node).to_string());
            let changed = logstead_home::change_fleet(&url(&all), &env, None, &change);
            changed
                .map(drop)
                .map_err(|error| format!("repair: {error}"))
        })
    }

    fn observer(&self) -> Env {
        let (env, _) = Env::simulated(self.setup.seed);
        let clock = self.threads.clock();
        Env { clock, ..env }
    }

    /// Every node has the same, and all that is needed.
    fn compare(&self) -> Result<(), String> {
        let env = self.observer();
        in_process(&self.threads, OBSERVER, move || {
            let all: Vec<usize> = (0..NODES).collect();
            let fleet = logstead_home::open_read_only(&url(&all), &env);
            let fleet = fleet.map_err(|error| format!("the fleet: {error}"))?;
            let manifest = manifest_of(&fleet).map_err(|error| error.to_string())?;
            let contents = |node: usize| {
                let wrong = |what: String| format!("node {node}: {what}");
                let home = logstead_home::open_read_only(&node_url(node), &env);
                let home = home.map_err(|error| wrong(error.to_string()))?;
                disks::check_objects(&home, &fleet, &manifest).map_err(wrong)?;
                Contents::of(&home).map_err(|error| wrong(error.to_string()))
            };
            let nodes: Vec<Contents> = (0..NODES).map(contents).collect::<Result<_, _>>()?;
            let newest = manifest.checkpoint.as_ref();
            disks::difference(&nodes, newest).map_or(Ok(()), Err)
        })
    }

    /// A start finds everything without any zone.
    fn recover_without_a_zone(&mut self) -> Result<(), String> {
        if self.is_wrong() {
            return Ok(());
        }
        for zone in 0..NODES / 2 {
            let of_zone = |node: &usize| zone_of(*node) == zone;
            for node in (0..NODES).filter(of_zone) {
                self.nodes.crash(node);
            }
            let before = self.judge.lock().epoch();
            let reader = self.server(true, true);
            let (state, process) = (Arc::clone(&reader.state), reader.process);
            reader.join();
            self.threads.kill(process);
            for node in (0..NODES).filter(of_zone) {
                self.nodes.start_node(node);
            }
            if self.judge.lock().epoch() == before {
                return Err(format!("a start without zone {zone}: {}", state.why()));
            }
        }
        Ok(())
    }

    /// The disk of a node is empty from now on, or as it was some time ago; one node at a time.
    pub(crate) fn empty_or_older(&mut self, node: usize) {
        if self.damaged.is_some() {
            return;
        }
        let server = self.servers.last();
        let complete = server.is_some_and(|server| {
            self.wait_until(Duration::from_secs(60), || server.all_complete())
        });
        if !complete {
            return;
        }
        self.damaged = Some(node);
        let seed = self.dice.roll(u64::MAX);
        match self.dice.one_in(2) {
            true => {
                self.faults.emptied += 1;
                self.nodes.replace_disk(node, SimFiles::new(seed));
            }
            false => {
                self.faults.older += 1;
                let older = self.nodes.disk(node).fork(seed);
                older.reboot();
                let time = self.some_time();
                logstead_env::sleep(time);
                self.nodes.replace_disk(node, older);
            }
        }
    }
}
