//! To what an instruction belongs, from what `addr2line` says of its address: the functions inlined there, innermost
//! first.
//!
//! Does not: run anything; the text comes from outside.

use std::collections::{BTreeMap, HashMap};

use super::recording::{AccessKind, Recording};

/// What an instruction does to a lock, if its access is one that can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing.
    Plain,
    /// Takes it; who finds it taken waits.
    Acquire,
    /// Takes it, or does without what it protects.
    TryAcquire,
    /// Gives it back.
    Release,
}

/// A structure of the engine, by its place in [`STRUCTURES`].
pub(super) type Structure = usize;

/// Where accesses are counted that nobody knows, and those of the workload itself.
pub(super) const OTHER: Structure = 0;
pub(super) const WORKLOAD: Structure = 1;
/// The one word of the horizon's file that all who commit write.
const CSN_COUNTER: Structure = 2;
const ROWS: Structure = 11;

/// Names, and the files that belong to them; the longest match counts.
const STRUCTURES: [(&str, &[&str]); 22] = [
    ("other", &[]),
    ("workload (left out)", &["bench/src/"]),
    ("CSN counter", &[]),
    ("horizon, `reserved`", &["commit/src/horizon"]),
    ("commit ring", &["commit/src/commit_ring"]),
    (
        "commit queues, waiters",
        &[
            "commit/src/queue",
            "commit/src/ack_queue",
            "commit/src/commit_waiters",
            "commit/src/watermark",
            "commit/src/pending_commit",
        ],
    ),
    ("commit path, protocol", &["commit/src/"]),
    ("lanes", &["wal/src/", "home/src/"]),
    ("published snapshots", &["engine/src/snapshot"]),
    ("memory account", &["engine/src/memory"]),
    (
        "row numbers, chunk directory",
        &["engine/src/rows", "engine/src/chunk_tail"],
    ),
    (
        "chunks, versions, rows",
        &[
            "engine/src/version",
            "engine/src/row/",
            "engine/src/row.rs",
            "engine/src/delta",
        ],
    ),
    ("B+-tree pages", &["engine/src/tree/"]),
    (
        "index descriptor",
        &["engine/src/index", "engine/src/table.rs"],
    ),
    ("table locks", &["engine/src/table_lock"]),
    (
        "row locks, waits",
        &["engine/src/row_lock", "engine/src/wait_"],
    ),
    (
        "transactions (state, reads and writes)",
        &["engine/src/txn", "engine/src/write_set"],
    ),
    ("garbage", &["engine/src/garbage", "engine/src/worker/"]),
    (
        "engine, workers, statistics",
        &["engine/src/", "types/src/", "env/src/", "hdrhistogram"],
    ),
    ("instances: assignment, counts", &["engine/src/partition"]),
    ("memory reclamation (epochs)", &["crossbeam-epoch"]),
    ("allocator", &["mimalloc"]),
];

/// What stands between a structure and its atomics, in models of threads: whoever calls it is meant.
const FACADES: [&str; 3] = [
    "commit/src/atomic_facade",
    "engine/src/tree/interleave",
    "wal/src/lane/interleave",
];

/// The name of a structure.
pub(super) fn name(structure: Structure) -> &'static str {
    STRUCTURES.get(structure).map_or("other", |(name, _)| name)
}

/// How many there are.
pub(super) const COUNT: usize = STRUCTURES.len();

/// What is known of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) structure: Structure,
    pub(super) role: Role,
    /// The innermost function of ours, and its file and line.
    pub(super) place: String,
}

/// Sites by the address of the instruction.
#[derive(Clone, Debug, Default)]
pub struct Sites(HashMap<u64, Site>);

/// The part of a path after the crate's folder, or after the registry's.
fn short(path: &str) -> &str {
    let in_registry = |path: &str| -> Option<usize> {
        let at = path.find("/registry/src/")? + "/registry/src/".len();
        Some(at + path[at..].find('/')? + 1)
    };
    match (path.rsplit_once("/crates/"), in_registry(path)) {
        (Some((_, rest)), _) => rest,
        (None, Some(at)) => &path[at..],
        (None, None) => path,
    }
}

fn structure_of(path: &str) -> Option<Structure> {
    let path = short(path);
    if FACADES.iter().any(|facade| path.contains(facade)) {
        return None;
    }
    let length = |structure: Structure| {
        let matches = STRUCTURES[structure].1.iter();
        matches
            .filter(|part| path.contains(**part))
            .map(|part| part.len())
            .max()
    };
    (0..COUNT)
        .filter_map(|structure| Some((length(structure)?, structure)))
        .max()
        .map(|(_, structure)| structure)
}

/// The function's own name, without what it belongs to and its type arguments.
fn own_name(function: &str) -> &str {
    // Type arguments at the end: back to the bracket that they begin with.
    let mut function = function;
    while function.ends_with('>') {
        let mut depth = 0;
        let begin = function.bytes().rposition(|byte| {
            depth += i32::from(byte == b'>') - i32::from(byte == b'<');
            depth == 0
        });
        function = function[..begin.unwrap_or(0)].trim_end_matches(':');
    }
    function
        .rsplit_once("::")
        .map_or(function, |(_, name)| name)
}

fn role_of(frames: &[(&str, &str)]) -> Role {
    for (function, path) in frames {
        let name = own_name(function);
        if path.contains("/raw_mutex.rs") {
            match name {
                "lock" | "lock_slow" => return Role::Acquire,
                "try_lock" => return Role::TryAcquire,
                "unlock" => return Role::Release,
                _ => {}
            }
        }
        if path.contains("/raw_rwlock.rs") {
            match name {
                "lock_exclusive" => return Role::Acquire,
                "try_lock_exclusive" => return Role::TryAcquire,
                "unlock_exclusive" => return Role::Release,
                _ => {}
            }
        }
        if path.contains("/tree/latch.rs") {
            match name {
                "lock" => return Role::Acquire,
                "unlock" => return Role::Release,
                _ => {}
            }
        }
    }
    Role::Plain
}

impl Sites {
    /// Reads what `addr2line -a -i -f -C` prints: an address, then pairs of a function and a place.
    pub fn read(text: &str) -> Sites {
        let mut sites = HashMap::new();
        let mut address = None;
        let mut frames: Vec<(&str, &str)> = Vec::new();
        let mut function = None;
        for line in text.lines().chain(["0x0"]) {
            if let Some(digits) = line.strip_prefix("0x") {
                if let Some(address) = address {
                    sites.insert(address, Sites::site(&frames));
                }
                address = u64::from_str_radix(digits.trim(), 16).ok();
                frames.clear();
                function = None;
            } else if let Some(function) = function.take() {
                frames.push((function, line));
            } else {
                function = Some(line);
            }
        }
        Sites(sites)
    }

    fn site(frames: &[(&str, &str)]) -> Site {
        let known = frames
            .iter()
            .find_map(|(function, path)| Some((structure_of(path)?, *function, *path)));
        let (structure, place) = match (known, frames.first()) {
            (Some((structure, function, path)), _) => {
                let path = short(path).split(" (").next().unwrap_or(path);
                (structure, format!("{} {path}", own_name(function)))
            }
            (None, Some((function, _))) => (OTHER, (*function).to_owned()),
            (None, None) => (OTHER, String::new()),
        };
        Site {
            structure,
            role: role_of(frames),
            place,
        }
    }

    fn at(&self, address: u64) -> Option<&Site> {
        self.0.get(&address)
    }
}

/// A recording whose accesses have sites: without the workload's own counters and the home that keeps nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sited {
    pub(super) recording: Recording,
    /// Of each instruction of the recording.
    pub(super) sites: Vec<Site>,
    /// Of each line: what most of its accesses belong to.
    pub(super) structures: Vec<Structure>,
    /// Of each line: the instruction of the recording that touches it most often.
    pub(super) instructions: Vec<u32>,
}

impl Sited {
    pub(super) fn new(recording: &Recording, sites: &Sites) -> Sited {
        let unknown = || Site {
            structure: OTHER,
            role: Role::Plain,
            place: String::new(),
        };
        let sites: Vec<Site> = recording
            .instructions
            .iter()
            .map(|address| sites.at(*address).cloned().unwrap_or_else(unknown))
            .collect();
        let mut votes = vec![[0_u32; COUNT]; recording.lines.len()];
        let mut is_workload = vec![false; recording.lines.len()];
        // Who has drawn a CSN from the line; `reserved` is written there as well, by one worker alone.
        let mut draws: Vec<Option<u16>> = vec![None; recording.lines.len()];
        let mut is_counter = vec![false; recording.lines.len()];
        for access in &recording.accesses {
            if access.kind == AccessKind::TransactionEnd {
                continue;
            }
            let site = &sites[access.instruction as usize];
            votes[access.line as usize][site.structure] += 1;
            // Workloads read rows, which are the engine's; what they write is theirs.
            let writes = access.kind != AccessKind::Read;
            if access.kind == AccessKind::ReadModifyWrite
                && site.place.starts_with("draw commit/src/horizon.rs")
            {
                let first = draws[access.line as usize].get_or_insert(access.worker);
                is_counter[access.line as usize] |= *first != access.worker;
            }
            let is_home = ["bench/src/discard.rs", "bench/src/scaling/"]
                .iter()
                .any(|file| site.place.contains(file));
            is_workload[access.line as usize] |= site.structure == WORKLOAD && (writes || is_home);
        }
        let most = |line: usize| {
            if is_workload[line] {
                return WORKLOAD;
            }
            if is_counter[line] {
                return CSN_COUNTER;
            }
            let votes = &votes[line];
            let known = (0..COUNT).filter(|s| *s != OTHER && *s != WORKLOAD && votes[*s] > 0);
            // What the workload alone reads are the rows' bytes.
            let unknown = if votes[WORKLOAD] > 0 { ROWS } else { OTHER };
            known.max_by_key(|s| votes[*s]).unwrap_or(unknown)
        };
        let structures: Vec<Structure> = (0..votes.len()).map(most).collect();
        let instructions = busiest(recording, &sites);
        let kept = without(recording, |line| structures[line] == WORKLOAD);
        Sited {
            recording: kept,
            sites,
            structures,
            instructions,
        }
    }

    /// The same as if some lines were each worker's own.
    pub(super) fn without(&self, is_left_out: impl Fn(usize) -> bool) -> Sited {
        Sited {
            recording: without(&self.recording, is_left_out),
            ..self.clone()
        }
    }
}

/// Of each line the instruction that touches it most often, among those of known places if there are some.
fn busiest(recording: &Recording, sites: &[Site]) -> Vec<u32> {
    let mut counts: Vec<BTreeMap<u32, u32>> = vec![BTreeMap::new(); recording.lines.len()];
    for access in &recording.accesses {
        if access.kind != AccessKind::TransactionEnd {
            *counts[access.line as usize]
                .entry(access.instruction)
                .or_default() += 1;
        }
    }
    let known = |instruction: u32| sites[instruction as usize].structure != OTHER;
    let most = |counts: &BTreeMap<u32, u32>| {
        let most = counts
            .iter()
            .max_by_key(|(instruction, count)| (known(**instruction), **count));
        most.map_or(0, |(instruction, _)| *instruction)
    };
    counts.iter().map(most).collect()
}

/// Accesses to lines that are left out become instructions.
fn without(recording: &Recording, is_left_out: impl Fn(usize) -> bool) -> Recording {
    let mut kept = recording.clone();
    let mut carried = vec![0_u32; usize::from(recording.workers)];
    kept.accesses.retain_mut(|access| {
        let carried = &mut carried[usize::from(access.worker)];
        let is_end = access.kind == AccessKind::TransactionEnd;
        if !is_end && is_left_out(access.line as usize) {
            *carried = carried.saturating_add(access.gap);
            return false;
        }
        access.gap = access.gap.saturating_add(std::mem::take(carried));
        true
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_known_frame_counts() {
        let text = "0x0000000000001000\n\
            core::sync::atomic::atomic_add\n/rustc/1/library/core/src/sync/atomic.rs:3 (inlined by)\n\
            logstead_commit::horizon::Horizon::draw\n/w/crates/commit/src/horizon.rs:9\n\
            logstead_engine::txn::precommit\n/w/crates/engine/src/txn/precommit.rs:9\n\
            0x0000000000002000\n??\n??:0\n\
            0x3000\n\
            <parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock\n/r/registry/src/i/parking_lot-0.12/src/raw_mutex.rs:7\n\
            <logstead_wal::lane::LaneInsertLock>::new\n/w/crates/wal/src/lane/insert_lock.rs:38\n";
        let sites = Sites::read(text);
        let site = |address| sites.at(address).expect("is there").clone();
        assert_eq!(name(site(0x1000).structure), "horizon, `reserved`");
        assert_eq!(site(0x1000).place, "draw commit/src/horizon.rs:9");
        assert_eq!(site(0x2000).structure, OTHER);
        assert_eq!(name(site(0x3000).structure), "lanes");
        assert_eq!(site(0x3000).role, Role::Acquire);
    }

    #[test]
    fn the_longest_part_of_a_path_counts() {
        assert_eq!(name(ROWS), "chunks, versions, rows");
        assert_eq!(name(CSN_COUNTER), "CSN counter");
        assert_eq!(
            structure_of("/w/crates/commit/src/atomic_facade.rs:1"),
            None
        );
        let named = |path| structure_of(path).map(name);
        assert_eq!(
            named("/w/crates/commit/src/path/mod.rs:1"),
            Some("commit path, protocol")
        );
        assert_eq!(
            named("/w/crates/commit/src/commit_ring.rs:1"),
            Some("commit ring")
        );
        assert_eq!(
            named("/w/crates/engine/src/txn/read.rs:1"),
            Some("transactions (state, reads and writes)")
        );
        assert_eq!(named("/rustc/x/library/core/src/cell.rs:1"), None);
    }

    #[test]
    fn paths_lose_what_is_before_the_crate() {
        for (path, rest) in [
            ("/w/crates/wal/src/lane/mod.rs:1", "wal/src/lane/mod.rs:1"),
            (
                "/h/registry/src/index-1/x-2.0/src/a.rs:1",
                "x-2.0/src/a.rs:1",
            ),
            ("/h/registry/src/", "/h/registry/src/"),
            ("??:0", "??:0"),
        ] {
            assert_eq!(short(path), rest);
        }
    }

    #[test]
    fn names_lose_what_they_belong_to() {
        for (function, own) in [
            ("<a::B as c::D<e::F>>::lock", "lock"),
            ("a::b::unlock::<c::D>", "unlock"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(own_name(function), own, "{function}");
        }
    }
}
