//! Instances: how many there are, what each must have, and on which cores its workers run.
//!
//! Owns: what `instances` means on this machine ([`resolve`]) and the cores of workers ([`cores`]).
//!
//! Does not: divide workers (`WorkerBlocks` does), place sessions, or move partitions (`partition_balance`).

use logstead_engine::WorkerBlocks;
use std::collections::BTreeMap;

/// `auto` makes one instance for so many cores.
const CORES_PER_INSTANCE: usize = 16;
/// As many as there may be: each has partitions.
const INSTANCES_MAX: usize = 64;
/// The least of the memory budget for each: what a server with one needs for buffers, catalog and some rows.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// What of the machine decides.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Cores that this process may use, by node of memory.
    nodes: Vec<Vec<usize>>,
}

impl Machine {
    /// The one that this process runs on.
    pub(crate) fn this() -> Machine {
        Machine {
            nodes: logstead_env::cores_by_node(),
        }
    }

    /// What `auto` stands for, with so much memory.
    fn instances(&self, memory_bytes: Option<u64>) -> usize {
        let cores = self.cores();
        let affordable = memory_bytes.map_or(INSTANCES_MAX as u64, |b| b / MEMORY_BYTES_MIN);
        let affordable = usize::try_from(affordable).unwrap_or(INSTANCES_MAX);
        self.nodes
            .len()
            .max(cores / CORES_PER_INSTANCE)
            .min(cores)
            .min(affordable)
            .clamp(1, INSTANCES_MAX)
    }

    fn cores(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }
}

/// Puts numbers in the place of `auto`, and as many workers as instances if there are fewer. An error if the memory is
/// too little.
pub(crate) fn resolve(
    values: &mut BTreeMap<String, String>,
    machine: &Machine,
) -> Result<(), String> {
    let number = |values: &BTreeMap<String, String>, name: &str| {
        values.get(name).and_then(|text| text.parse::<u64>().ok())
    };
    let memory = number(values, "memory");
    let instances = match values.get("instances").map(String::as_str) {
        None | Some("1") => return Ok(()),
        Some("auto") => machine.instances(memory) as u64,
        Some(_) => number(values, "instances").unwrap_or(1),
    };
    if let Some(memory) = memory
        && memory < instances * MEMORY_BYTES_MIN
    {
        return Err(format!(
            "\"memory\": {memory} bytes are too few for {instances} instances, each of which needs {MEMORY_BYTES_MIN} at least"
        ));
    }
    values.insert("instances".to_owned(), instances.to_string());
    if number(values, "workers").is_none_or(|workers| workers < instances) {
        values.insert("workers".to_owned(), instances.to_string());
    }
    Ok(())
}

/// The core of each worker. With one instance the first worker has the first core and so on; with several the cores are
/// divided as workers are, node by node, and an instance's workers share its own. Where there are fewer cores than
/// instances they share those, too.
pub(crate) fn cores(workers: usize, instances: usize) -> Vec<usize> {
    cores_on(&Machine::this(), workers, instances)
}

fn cores_on(machine: &Machine, workers: usize, instances: usize) -> Vec<usize> {
    if instances <= 1 {
        return (0..workers).collect();
    }
    let (cores, blocks) = (
        machine.nodes.concat(),
        WorkerBlocks::new(workers, instances),
    );
    if cores.is_empty() {
        return (0..workers).collect();
    }
    let parts = WorkerBlocks::new(cores.len(), blocks.count());
    let core = |worker: usize| {
        let instance = blocks.of(worker);
        let number = worker - blocks.workers(instance).start;
        let own = parts.workers(instance % parts.count());
        cores[own.start + number % own.len()]
    };
    (0..workers).map(core).collect()
}

/// Tells people how it is divided.
pub(crate) fn tell(workers: usize, instances: usize) {
    if instances <= 1 {
        return;
    }
    let machine = Machine::this();
    let (cores, nodes) = (machine.cores(), machine.nodes.len());
    tracing::info!(
        "{instances} instances, {workers} workers on {cores} cores of {nodes} node(s) of memory"
    );
    if instances > cores {
        tracing::warn!("there are more instances than cores: some share a core");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(nodes: usize, cores: usize) -> Machine {
        let node = |node: usize| (node * cores..(node + 1) * cores).collect();
        Machine {
            nodes: (0..nodes).map(node).collect(),
        }
    }

    fn resolved(
        given: &[(&str, &str)],
        machine: &Machine,
    ) -> Result<BTreeMap<String, String>, String> {
        let pairs = given
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        let mut values = pairs.collect();
        resolve(&mut values, machine)?;
        Ok(values)
    }

    #[test]
    fn auto_is_one_for_each_node_or_sixteen_cores() {
        for (nodes, cores, expected) in [
            (1, 1, "1"),
            (1, 2, "1"),
            (1, 31, "1"),
            (1, 32, "2"),
            (2, 4, "2"),
            (2, 64, "8"),
            (8, 2, "8"),
            (2, 1000, "64"),
        ] {
            let got = resolved(&[("instances", "auto")], &machine(nodes, cores)).unwrap();
            assert_eq!(got["instances"], expected, "{nodes} nodes of {cores}");
        }
        let little = resolved(
            &[("instances", "auto"), ("memory", "33554432")],
            &machine(4, 16),
        );
        assert_eq!(little.unwrap()["instances"], "2", "no more than fit");
    }

    #[test]
    fn each_has_a_worker() {
        let two = machine(1, 2);
        let got = resolved(&[("instances", "3"), ("workers", "2")], &two).unwrap();
        assert_eq!((&*got["instances"], &*got["workers"]), ("3", "3"));
        let got = resolved(&[("instances", "3"), ("workers", "7")], &two).unwrap();
        assert_eq!(got["workers"], "7");
        let one = resolved(&[("workers", "2")], &two).unwrap();
        assert_eq!(one.get("instances"), None);
    }

    #[test]
    fn each_has_some_memory() {
        let two = machine(1, 2);
        let mib = |mib: u64| (mib << 20).to_string();
        let error = resolved(&[("instances", "3"), ("memory", &mib(47))], &two).unwrap_err();
        assert!(error.contains("too few for 3 instances"), "{error}");
        assert!(resolved(&[("instances", "3"), ("memory", &mib(48))], &two).is_ok());
        assert!(resolved(&[("instances", "1"), ("memory", &mib(16))], &two).is_ok());
    }

    #[test]
    fn instances_have_cores_of_their_own_nodes() {
        // The kernel may count processors of nodes alternately.
        let alternate = Machine {
            nodes: vec![vec![0, 2, 4, 6], vec![1, 3, 5, 7]],
        };
        assert_eq!(cores_on(&alternate, 8, 2), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(cores_on(&alternate, 4, 2), [0, 2, 1, 3]);
        assert_eq!(cores_on(&alternate, 8, 4), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(cores_on(&alternate, 5, 1), [0, 1, 2, 3, 4]);
        // More workers than cores, and more instances than cores.
        assert_eq!(cores_on(&machine(1, 2), 4, 2), [0, 0, 1, 1]);
        assert_eq!(cores_on(&machine(1, 2), 3, 3), [0, 1, 0]);
        assert_eq!(cores_on(&machine(0, 0), 2, 2), [0, 1]);
    }
}
