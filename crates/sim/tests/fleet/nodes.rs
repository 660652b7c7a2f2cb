//! Six storage nodes in three zones, each a process of the simulation with a disk of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use logstead_env::simulated_threads::{ProcessNumber, SimThreads};
use logstead_env::{Env, Files, SimFiles};
use logstead_home::IoMethod;
use logstead_home::node::message::{PROTOCOL, PROTOCOL_FIRST};
use logstead_storage::{NodeOptions, ScrubOptions, StorageNode};
use parking_lot::Mutex;

pub(crate) const NODES: usize = 6;
/// The process of the first node.
const FIRST_NODE: ProcessNumber = 10;
pub(crate) const SEGMENT_BYTES: u64 = 64 << 10;
const DIR: &str = "/node";
/// Where a node has its part of the volume.
pub(crate) const VOLUME_DIR: &str = "/node/volumes/volume";

/// The process of a node.
pub(crate) fn process_of(node: usize) -> ProcessNumber {
    FIRST_NODE + node as ProcessNumber
}

/// Two nodes in each zone.
pub(crate) fn zone_of(node: usize) -> usize {
    node / 2
}

/// Where a node listens.
pub(crate) fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7001 + node as u16))
}

/// The URL of the volume on these nodes.
pub(crate) fn url(nodes: &[usize]) -> String {
    let addresses: Vec<String> = nodes
        .iter()
        .map(|&node| address(node).to_string())
        .collect();
    format!("fleet://{}/volume", addresses.join(","))
}

/// The URL of one node's part of the volume.
pub(crate) fn node_url(node: usize) -> String {
    format!("node://{}/volume", address(node))
}

/// Does something in a thread of a process, and waits for it.
pub(crate) fn in_process<T: Send + 'static>(
    threads: &SimThreads,
    process: ProcessNumber,
    what: impl FnOnce() -> T + Send + 'static,
) -> T {
    let result = Arc::new(Mutex::new(None));
    let into = Arc::clone(&result);
    let body = move || *into.lock() = Some(what());
    let thread = threads.spawn_in(process, "does", body);
    thread.expect("starts").join().expect("ends");
    result.lock().take().expect("it has ended")
}

struct Node {
    disk: SimFiles,
    running: Option<StorageNode>,
    /// Counts its starts.
    life: u64,
}

pub(crate) struct Nodes {
    threads: SimThreads,
    seed: u64,
    nodes: Vec<Node>,
}

impl Nodes {
    /// New ones, all running.
    pub(crate) fn start(threads: &SimThreads, seed: u64) -> Nodes {
        let node = |node: usize| Node {
            disk: SimFiles::new(seed ^ (node as u64) << 8),
            running: None,
            life: 0,
        };
        let mut nodes = Nodes {
            threads: threads.clone(),
            seed,
            nodes: (0..NODES).map(node).collect(),
        };
        for node in 0..NODES {
            assert!(nodes.start_node(node), "a new disk");
        }
        nodes
    }

    pub(crate) fn disk(&self, node: usize) -> &SimFiles {
        &self.nodes[node].disk
    }

    pub(crate) fn is_running(&self, node: usize) -> bool {
        self.nodes[node].running.is_some()
    }

    /// Starts a node on what its disk has. False: it cannot.
    pub(crate) fn start_node(&mut self, node: usize) -> bool {
        let of = &mut self.nodes[node];
        if of.running.is_some() {
            return true;
        }
        of.life += 1;
        let seed = self.seed ^ (node as u64) << 32 ^ of.life << 40;
        let files = Arc::new(of.disk.clone()) as Arc<dyn Files>;
        let env = Env::of_simulation(&self.threads, seed, files);
        let options = NodeOptions {
            listen: address(node),
            dir: DIR.into(),
            zone: ["a", "b", "c"][zone_of(node)].to_owned(),
            secret: Vec::new(),
            certificate: None,
            segment_bytes: SEGMENT_BYTES,
            way: IoMethod::Pwrite,
            distance: Duration::ZERO,
            // Some are of an older version, which knows fewer requests.
            protocol: match (self.seed ^ node as u64) % 4 {
                0 => PROTOCOL_FIRST,
                _ => PROTOCOL,
            },
            scrub: ScrubOptions {
                interval: None,
                damage: |_| None,
            },
        };
        let started = in_process(&self.threads, process_of(node), move || {
            StorageNode::start(options, &env)
        });
        of.running = started.ok();
        of.running.is_some()
    }

    /// The power of a node goes: what was not durable on its disk is lost, its connections break.
    pub(crate) fn crash(&mut self, node: usize) {
        let process = process_of(node);
        self.threads.resume(process);
        let of = &mut self.nodes[node];
        let Some(running) = of.running.take() else {
            return;
        };
        // Nothing that it does from here on changes its disk.
        of.disk.cut_power();
        self.threads.network().break_connections(process, None, 1);
        in_process(&self.threads, process, move || drop(running));
        of.disk.reboot();
    }

    /// The disk of a node is another one from now on; the node is down.
    pub(crate) fn replace_disk(&mut self, node: usize, disk: SimFiles) {
        self.crash(node);
        self.nodes[node].disk = disk;
    }

    /// Ends all of them.
    pub(crate) fn stop(&mut self) {
        for node in 0..NODES {
            self.crash(node);
        }
    }
}
