//! What a recording says per transaction, by structure, in the order of the trace.

use std::collections::{BTreeMap, HashMap};

use super::recording::{AccessKind, Recording};
use super::sites::{COUNT, Role, Sited, Sites, name};

/// Of one structure, per transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructureCounts {
    /// Its name.
    pub name: &'static str,
    /// Lines of it that more than one worker touched, altogether.
    pub lines: u64,
    /// Lines written that another worker has had since: they are taken from it.
    pub transfers: f64,
    /// Lines read that another worker has written since.
    pub misses: f64,
    /// Critical sections.
    pub sections: f64,
    /// Instructions of one of them, on average.
    pub section_instructions: f64,
    /// Places in the code with the most transfers and misses, and how many.
    pub places: Vec<(String, f64)>,
}

/// See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Workers.
    pub workers: u16,
    /// Transactions counted.
    pub transactions: u64,
    /// Instructions of a transaction.
    pub instructions: f64,
    /// By structure, those with the most transfers and misses first.
    pub structures: Vec<StructureCounts>,
}

/// Places named for each structure.
const PLACES_MAX: usize = 4;

impl Profile {
    /// Counts.
    pub fn of(recording: &Recording, sites: &Sites) -> Profile {
        let sited = Sited::new(recording, sites);
        let per = 1.0 / recording.transactions.max(1) as f64;
        let mut counts = vec![StructureCounts::default(); COUNT];
        let mut places: Vec<BTreeMap<&str, f64>> = vec![BTreeMap::new(); COUNT];
        let mut lines = sited.recording.lines.clone();
        for (line, structure) in lines.iter().zip(&sited.structures) {
            debug_assert!(line.holders != 0);
            counts[*structure].lines += 1;
        }
        let mut clocks = vec![0_u64; usize::from(recording.workers)];
        let mut taken: HashMap<(u16, u32), u64> = HashMap::new();
        let mut section_sums = [0_u64; COUNT];
        for access in &sited.recording.accesses {
            let clock = &mut clocks[usize::from(access.worker)];
            *clock += u64::from(access.gap);
            if access.kind == AccessKind::TransactionEnd {
                continue;
            }
            let structure = sited.structures[access.line as usize];
            let site = &sited.sites[access.instruction as usize];
            let line = &mut lines[access.line as usize];
            let found = &mut counts[structure];
            let misses = match access.kind {
                AccessKind::Read => {
                    let misses = line.read(access.worker);
                    found.misses += f64::from(u8::from(misses)) * per;
                    misses
                }
                _ => {
                    let misses = line.write(access.worker);
                    found.transfers += f64::from(u8::from(misses)) * per;
                    misses
                }
            };
            if misses {
                *places[structure].entry(&site.place).or_default() += per;
            }
            let key = (access.worker, access.line);
            match site.role {
                Role::Acquire | Role::TryAcquire if access.kind == AccessKind::ReadModifyWrite => {
                    taken.insert(key, *clock);
                }
                Role::Release if access.kind != AccessKind::Read => {
                    if let Some(since) = taken.remove(&key) {
                        found.sections += per;
                        section_sums[structure] += *clock - since;
                    }
                }
                _ => {}
            }
        }
        for (structure, found) in counts.iter_mut().enumerate() {
            found.name = name(structure);
            let sections = found.sections / per;
            found.section_instructions = section_sums[structure] as f64 / sections.max(1.0);
            let mut named: Vec<(String, f64)> = places[structure]
                .iter()
                .map(|(place, count)| ((*place).to_owned(), *count))
                .collect();
            named.sort_by(|a, b| b.1.total_cmp(&a.1));
            named.truncate(PLACES_MAX);
            found.places = named;
        }
        counts.retain(|found| found.transfers + found.misses + found.sections > 0.0);
        counts.sort_by(|a, b| (b.transfers + b.misses).total_cmp(&(a.transfers + a.misses)));
        Profile {
            workers: recording.workers,
            transactions: recording.transactions,
            instructions: recording.total_instructions as f64 * per,
            structures: counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording::{Access, Line};
    use super::*;

    /// A lock that two workers take by turns, and a line that one writes and the other reads.
    #[test]
    fn transfers_misses_and_sections_are_counted_per_transaction() {
        use AccessKind::{Read, ReadModifyWrite, TransactionEnd, Write};
        let steps = |worker: u16| {
            let shared = if worker == 0 { Write } else { Read };
            // Kind, line, instruction, instructions before.
            [
                (ReadModifyWrite, 0, 0, 10),
                (shared, 1, 2, 30),
                (Write, 0, 1, 40),
                (TransactionEnd, 0, 2, 5),
            ]
        };
        let held = |holder: u16| Line {
            holders: 1 << holder,
            is_dirty: true,
        };
        let accesses = (0..8_u16).flat_map(|turn| {
            let worker = turn % 2;
            let access = move |(kind, line, instruction, gap)| Access {
                worker,
                kind,
                line,
                instruction,
                gap,
            };
            steps(worker).map(access)
        });
        let recording = Recording {
            workers: 2,
            total_instructions: 8 * 85,
            transactions: 8,
            lines: vec![held(1), held(1)],
            instructions: vec![1, 2, 3],
            accesses: accesses.collect(),
            rest: vec![0, 0],
        };
        let text = "0x1\nlock\n/r/src/raw_mutex.rs:1\nenter\n/w/crates/wal/src/lane/mod.rs:1\n\
            0x2\nunlock\n/r/src/raw_mutex.rs:1\nleave\n/w/crates/wal/src/lane/mod.rs:2\n\
            0x3\nset\n/w/crates/commit/src/commit_ring.rs:1\n";
        let profile = Profile::of(&recording, &Sites::read(text));
        assert_eq!(profile.instructions, 85.0);
        let found = |name| {
            let found = profile.structures.iter().find(|found| found.name == name);
            found.expect("is counted")
        };
        let lanes = found("lanes");
        assert_eq!((lanes.transfers, lanes.misses), (1.0, 0.0));
        assert_eq!((lanes.sections, lanes.section_instructions), (1.0, 70.0));
        let ring = found("commit ring");
        assert_eq!((ring.transfers, ring.misses), (0.5, 0.5));
        assert_eq!(
            ring.places,
            [("set commit/src/commit_ring.rs:1".to_owned(), 1.0)]
        );
    }
}
