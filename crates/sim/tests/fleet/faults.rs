//! What goes wrong in a history, one thing after the other, each for a time of its own.

use std::path::Path;
use std::time::Duration;

use logstead_env::simulated_threads::ProcessNumber;
use logstead_env::{Fault, Files};

use crate::history::History;
use crate::nodes::{NODES, VOLUME_DIR, process_of, zone_of};

/// What happened, to see that everything does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultCounts {
    pub(crate) broken: u64,
    pub(crate) crashed: u64,
    pub(crate) crashed_at_operation: u64,
    pub(crate) paused: u64,
    pub(crate) stalled: u64,
    pub(crate) slow: u64,
    pub(crate) zones_cut: u64,
    pub(crate) one_way: u64,
    pub(crate) servers_cut: u64,
    pub(crate) left_on_few: u64,
    pub(crate) servers_paused: u64,
    pub(crate) servers_killed: u64,
    pub(crate) servers_stopped: u64,
    pub(crate) taken_over: u64,
    pub(crate) disks_full: u64,
    pub(crate) disk_errors: u64,
    pub(crate) flipped: u64,
    pub(crate) emptied: u64,
    pub(crate) older: u64,
}

impl FaultCounts {
    fn all(&mut self) -> [&mut u64; 19] {
        let FaultCounts {
            broken,
            crashed,
            crashed_at_operation,
            paused,
            stalled,
            slow,
            zones_cut,
            one_way,
            servers_cut,
            left_on_few,
            servers_paused,
            servers_killed,
            servers_stopped,
            taken_over,
            disks_full,
            disk_errors,
            flipped,
            emptied,
            older,
        } = self;
        [
            broken,
            crashed,
            crashed_at_operation,
            paused,
            stalled,
            slow,
            zones_cut,
            one_way,
            servers_cut,
            left_on_few,
            servers_paused,
            servers_killed,
            servers_stopped,
            taken_over,
            disks_full,
            disk_errors,
            flipped,
            emptied,
            older,
        ]
    }

    pub(crate) fn add(&mut self, mut other: FaultCounts) {
        for (mine, theirs) in self.all().into_iter().zip(other.all()) {
            *mine += *theirs;
        }
    }

    /// What has happened since, in words.
    pub(crate) fn what_came(&self, later: &FaultCounts) -> String {
        let (before, after) = (format!("{self:?}"), format!("{later:?}"));
        let words = before.split(", ").zip(after.split(", "));
        let came = words.filter(|(before, after)| before != after);
        came.map(|(_, after)| after).collect::<Vec<_>>().join(", ")
    }

    /// Everything has happened.
    pub(crate) fn is_all(mut self) -> bool {
        self.all().into_iter().all(|count| *count > 0)
    }
}

impl History {
    fn some_node(&mut self) -> usize {
        self.dice.roll(NODES as u64) as usize
    }

    /// Something goes wrong.
    pub(crate) fn fault(&mut self) {
        let network = self.threads.network();
        let node = self.some_node();
        let process = process_of(node);
        match self.dice.roll(26) {
            0..4 => {
                // Of one node, or of all of a server's.
                self.faults.broken += 1;
                let one_in = 1 + self.dice.roll(3);
                match self.dice.one_in(4) {
                    true => network.break_connections(self.newest_server(), None, one_in),
                    false => network.break_connections(process, None, one_in),
                }
            }
            4..6 if self.nodes.is_running(node) => {
                self.faults.crashed += 1;
                self.nodes.crash(node);
            }
            6..8 if self.nodes.is_running(node) => {
                let disk = self.nodes.disk(node);
                disk.fail_at(disk.operations() + self.dice.roll(30), Fault::Crash);
            }
            8 => {
                self.faults.paused += 1;
                let time = self.some_time();
                self.threads.pause(process, time);
            }
            9 => {
                self.faults.slow += 1;
                network.slow_down(process, [3, 20, 200][self.dice.roll(3) as usize]);
            }
            10 => {
                self.faults.zones_cut += 1;
                let zone = self.dice.roll(3) as usize;
                for node in (0..NODES).filter(|&node| zone_of(node) == zone) {
                    self.cut_node(process_of(node), true, true);
                }
            }
            11 => {
                self.faults.one_way += 1;
                let there = self.dice.one_in(2);
                let zone = self.dice.one_in(2);
                let of_zone = |&other: &usize| match zone {
                    true => zone_of(other) == zone_of(node),
                    false => other == node,
                };
                for node in (0..NODES).filter(of_zone) {
                    self.cut_node(process_of(node), there, !there);
                }
            }
            12 => {
                self.faults.servers_cut += 1;
                let server = self.newest_server();
                let most = 1 + self.dice.roll(NODES as u64) as usize;
                for node in 0..most {
                    network.cut((server, process_of(node)));
                    network.cut((process_of(node), server));
                }
            }
            13 => {
                self.faults.servers_paused += 1;
                let time = self.some_time();
                self.threads.pause(self.newest_server(), time);
            }
            14 => {
                let kills = !self.dice.one_in(3);
                match kills {
                    true => self.faults.servers_killed += 1,
                    false => self.faults.servers_stopped += 1,
                }
                self.replace_server(kills);
            }
            15 | 16 => {
                self.faults.taken_over += 1;
                let before = self.newest_server();
                let stands_still = self.dice.one_in(2);
                if stands_still {
                    let time = Duration::from_millis(1 + self.dice.roll(90_000));
                    self.threads.pause(before, time);
                }
                self.take_over();
                if self.dice.one_in(2) {
                    self.until_newest_serves();
                    // The one before goes on beside it.
                    self.threads.resume(before);
                    logstead_env::sleep(Duration::from_secs(3));
                }
            }
            17 => {
                self.faults.disks_full += 1;
                let disk = self.nodes.disk(node);
                disk.set_capacity(Some(disk.used() + (64 << 10)));
            }
            18 if self.nodes.is_running(node) => {
                self.faults.disk_errors += 1;
                let disk = self.nodes.disk(node);
                disk.fail_at(disk.operations() + self.dice.roll(30), Fault::Error);
            }
            23 | 24 => self.leave_unacknowledged(),
            21 | 22 => {
                self.faults.stalled += 1;
                let time = Duration::from_millis(1 + self.dice.roll(4000));
                self.nodes.disk(node).stall_writes(time);
            }
            19 => self.flip_bit(node),
            20 => self.empty_or_older(node),
            _ => self.go_back(),
        }
    }

    /// From a moment to half a minute.
    pub(crate) fn some_time(&mut self) -> Duration {
        let most_ms = [20, 500, 3000, 15_000, 30_000][self.dice.roll(5) as usize];
        Duration::from_millis(1 + self.dice.roll(most_ms))
    }

    fn cut_node(&self, node: ProcessNumber, to_it: bool, from_it: bool) {
        let network = self.threads.network();
        for server in self.server_processes() {
            if to_it {
                network.cut((server, node));
            }
            if from_it {
                network.cut((node, server));
            }
        }
    }

    /// The newest server is killed when what it has appended last is on few nodes; the next one adopts that.
    fn leave_unacknowledged(&mut self) {
        self.faults.left_on_few += 1;
        let server = self.newest_server();
        let network = self.threads.network();
        let first = self.some_node();
        let few = 1 + self.dice.roll(3) as usize;
        for node in (0..NODES - few).map(|node| (first + node) % NODES) {
            network.cut((server, process_of(node)));
        }
        logstead_env::sleep(Duration::from_millis(200 + self.dice.roll(3000)));
        self.replace_server(true);
        network.mend();
        self.until_newest_serves();
    }

    /// A bit of an object of one node is another one from now on.
    fn flip_bit(&mut self, node: usize) {
        let dir = format!("{VOLUME_DIR}/objects");
        let objects = self.nodes.disk(node).list(Path::new(&dir));
        let objects = objects.unwrap_or_default();
        let whole: Vec<&String> = objects.iter().filter(|name| !name.contains('.')).collect();
        if whole.is_empty() || self.damaged.is_some_and(|damaged| damaged != node) {
            return;
        }
        let name = whole[self.dice.roll(whole.len() as u64) as usize];
        let chance = self.dice.roll(u64::MAX) as usize;
        let path = format!("{dir}/{name}");
        let flip = |bytes: &mut Vec<u8>| {
            let at = chance % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1;
            }
        };
        if self.nodes.disk(node).tamper(Path::new(&path), flip).is_ok() {
            self.faults.flipped += 1;
            self.damaged = Some(node);
        }
    }

    /// Nodes that crashed at an operation of their disk end as processes; some that are down come back.
    pub(crate) fn look_after_nodes(&mut self) {
        for node in 0..NODES {
            if self.nodes.is_running(node) && self.nodes.disk(node).is_crashed() {
                self.faults.crashed_at_operation += 1;
                self.nodes.crash(node);
            }
            if !self.nodes.is_running(node) && self.dice.one_in(4) {
                self.nodes.start_node(node);
            }
        }
    }

    /// Some of what is wrong is no more.
    pub(crate) fn go_back(&mut self) {
        let network = self.threads.network();
        match self.dice.roll(4) {
            0 | 1 => network.mend(),
            2 => {
                for node in 0..NODES {
                    network.slow_down(process_of(node), 1);
                    self.threads.resume(process_of(node));
                }
            }
            _ => {
                for node in 0..NODES {
                    self.nodes.disk(node).set_capacity(None);
                    self.nodes.disk(node).stall_writes(Duration::ZERO);
                }
            }
        }
    }

    /// Nothing is wrong any more, but what is on the disks.
    pub(crate) fn be_calm(&mut self) {
        let network = self.threads.network();
        network.mend();
        for process in self.server_processes() {
            self.threads.resume(process);
        }
        for node in 0..NODES {
            let disk = self.nodes.disk(node);
            disk.set_capacity(None);
            disk.stall_writes(Duration::ZERO);
            if disk.is_crashed() {
                self.nodes.crash(node);
            } else {
                disk.clear_faults();
            }
            network.slow_down(process_of(node), 1);
            self.threads.resume(process_of(node));
            self.nodes.start_node(node);
        }
    }
}
