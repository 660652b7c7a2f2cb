//! A recording on a machine, in virtual time.
//!
//! Each core runs its worker's accesses in their order, with the recorded number of instructions between them. The core
//! whose time is the earliest goes next, so accesses of different cores interleave as their times say, not as in the
//! trace. What an access costs:
//!
//! - a load of a line that the core has: nothing beyond its instruction;
//! - another load: a fetch from the nearest holder; if one core has written the line, one such fetch after the other;
//! - a store to a line that others have: the line is taken from them, one after the other, but the core goes on, as
//!   with a store buffer;
//! - both at once (what draws numbers and takes locks): the core waits for that, and for its stores before it.
//!
//! Locks: who finds one taken waits until it is given back, in the order of arrival; who only tries leaves out what is
//! done under it. A lock is known by its line.
//!
//! A recording is short, and what cores wait for builds up only after a while. So each core makes its accesses again
//! and again, in laps, until all have made some; the first lap is left out. At the beginning of each lap the lines that
//! few cores touch are again where they were at the recording's beginning: rows would otherwise come nearer with every
//! lap.
//! Throughput is what all cores do in a lap, divided by the time of a lap, averaged over the cores: a core whose
//! transactions happen to be short does not count for more.
//!
//! Invariant: the same input gives the same figures.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::machine::Machine;
use super::recording::{AccessKind, Line};
use super::sites::{COUNT, Role, Sited};
#[cfg(test)]
use super::sites::{OTHER, Site};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRun {
    /// Transactions of a lap of all cores.
    pub transactions: u64,
    /// Virtual time of a lap, averaged over the cores.
    pub lap_ns: f64,
    /// Virtual time of all laps.
    pub ns: f64,
    /// Of all cores: time for instructions.
    pub busy_ns: f64,
    /// Of all cores: time for lines to come, by structure; in it the time that they were on their way to others.
    pub line_ns: Vec<f64>,
    /// Of all cores: time for locks to be given back, by structure.
    pub lock_ns: Vec<f64>,
    /// Of all cores: time for lines and locks, by line.
    pub by_line_ns: Vec<f64>,
    /// Locks that had to be forced, since the model holds locks on one line for one lock.
    pub forced: u64,
}

impl SimulatedRun {
    /// Transactions a second.
    pub fn per_second(&self) -> f64 {
        self.transactions as f64 / self.lap_ns.max(1e-9) * 1e9
    }
}

/// Laps that every core makes after its first one.
const LAPS: u64 = 4;
/// Lines that no more cores touch than that begin each lap as they began the recording.
const FEW_CORES: u32 = 4;

/// One step of a core.
#[derive(Clone, Copy)]
struct Step {
    kind: AccessKind,
    line: u32,
    structure: usize,
    role: Role,
    gap: u32,
    /// Where the lock that is taken here is given back.
    release: usize,
}

struct Core {
    steps: Vec<Step>,
    next: usize,
    laps: u64,
    /// When its first and its last lap ended.
    first_lap_at: f64,
    last_lap_at: f64,
    /// Lines that begin each lap as they began the recording.
    renewed: Vec<u32>,
    /// The step's instructions have run, and the lock that it takes is its own.
    granted: bool,
    now: f64,
    /// When all its stores so far are in its cache.
    stores_at: f64,
    /// Since when it waits for a lock.
    waits_since: f64,
}

struct ModelLine {
    line: Line,
    /// At the recording's beginning.
    at_first: Line,
    /// Until then it is on its way to somebody.
    busy_until: f64,
}

#[derive(Default)]
struct ModelLock {
    holder: Option<u16>,
    waiters: VecDeque<u16>,
}

/// Steps of each core, with the places where locks are given back.
fn steps(sited: &Sited) -> Vec<Vec<Step>> {
    let mut cores: Vec<Vec<Step>> = vec![Vec::new(); usize::from(sited.recording.workers)];
    // Steps that have taken a lock, by core and line.
    let mut taken: HashMap<(u16, u32), Vec<usize>> = HashMap::new();
    for access in &sited.recording.accesses {
        let core = &mut cores[usize::from(access.worker)];
        let site = &sited.sites[access.instruction as usize];
        let is_end = access.kind == AccessKind::TransactionEnd;
        let may_lock = access.kind == AccessKind::ReadModifyWrite;
        let mut role = match site.role {
            Role::Acquire | Role::TryAcquire if !may_lock => Role::Plain,
            Role::Release if access.kind == AccessKind::Read => Role::Plain,
            _ if is_end => Role::Plain,
            role => role,
        };
        let held = taken.entry((access.worker, access.line)).or_default();
        match role {
            Role::Acquire | Role::TryAcquire => held.push(core.len()),
            Role::Release => match held.pop() {
                // Whoever is left below was never given back: its taking failed.
                Some(at) => {
                    core[at].release = core.len();
                    held.clear();
                }
                None => role = Role::Plain,
            },
            Role::Plain => {}
        }
        core.push(Step {
            kind: access.kind,
            line: access.line,
            structure: sited
                .structures
                .get(access.line as usize)
                .copied()
                .unwrap_or(0),
            role,
            gap: access.gap,
            release: usize::MAX,
        });
    }
    for step in cores.iter_mut().flatten() {
        if step.role != Role::Release && step.release == usize::MAX {
            step.role = Role::Plain;
        }
    }
    cores
}

struct Model<'m> {
    machine: &'m Machine,
    cores: Vec<Core>,
    lines: Vec<ModelLine>,
    locks: HashMap<u32, ModelLock>,
    run: SimulatedRun,
}

/// A time that can be ordered: it is never NaN.
#[derive(Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Runs it.
pub(super) fn simulate_sited(sited: &Sited, machine: &Machine) -> SimulatedRun {
    let core = |(steps, renewed)| Core {
        steps,
        next: 0,
        laps: 0,
        first_lap_at: 0.0,
        last_lap_at: 0.0,
        renewed,
        granted: false,
        now: 0.0,
        stores_at: 0.0,
        waits_since: 0.0,
    };
    let lines = sited.recording.lines.iter().map(|line| ModelLine {
        line: *line,
        at_first: *line,
        busy_until: 0.0,
    });
    let steps = steps(sited);
    let renewed = renewed(&steps, sited.recording.lines.len());
    let ends = steps
        .iter()
        .flatten()
        .filter(|step| step.kind == AccessKind::TransactionEnd);
    let transactions = ends.count() as u64;
    let idle = steps.iter().filter(|steps| steps.is_empty()).count();
    let mut model = Model {
        machine,
        cores: steps.into_iter().zip(renewed).map(core).collect(),
        lines: lines.collect(),
        locks: HashMap::new(),
        run: SimulatedRun {
            transactions,
            lap_ns: 0.0,
            ns: 0.0,
            busy_ns: 0.0,
            line_ns: vec![0.0; COUNT],
            lock_ns: vec![0.0; COUNT],
            by_line_ns: vec![0.0; sited.recording.lines.len()],
            forced: 0,
        },
    };
    // A core that has nothing to do makes no laps.
    model.run_all(model.cores.len() - idle);
    let laps = model.cores.iter().filter(|core| core.laps > 0);
    let lap_ns = laps.map(|core| (core.last_lap_at - core.first_lap_at) / LAPS as f64);
    model.run.lap_ns = lap_ns.sum::<f64>() / (model.cores.len() - idle).max(1) as f64;
    model.run
}

/// Of each core, the lines that it begins every lap with anew: those of the cores that touch a line few.
fn renewed(steps: &[Vec<Step>], lines: usize) -> Vec<Vec<u32>> {
    let mut touched = vec![0_u128; lines];
    for (core, steps) in steps.iter().enumerate() {
        for step in steps {
            if step.kind != AccessKind::TransactionEnd {
                touched[step.line as usize] |= 1 << core;
            }
        }
    }
    let of_core = |core: usize| {
        let is_renewed = |line: &u32| {
            let touched = touched[*line as usize];
            touched & (1 << core) != 0 && touched.count_ones() <= FEW_CORES
        };
        (0..lines as u32).filter(is_renewed).collect()
    };
    (0..steps.len()).map(of_core).collect()
}

impl Model<'_> {
    /// Runs until so many cores, which are all that do something, have made their laps.
    fn run_all(&mut self, mut left: usize) {
        let mut queue: BinaryHeap<Reverse<(At, u16)>> = BinaryHeap::new();
        for core in 0..self.cores.len() as u16 {
            if !self.cores[usize::from(core)].steps.is_empty() {
                let at = self.arrive(core);
                queue.push(Reverse((At(at), core)));
            }
        }
        if left == 0 {
            return;
        }
        loop {
            let Some(Reverse((At(now), core))) = queue.pop() else {
                let Some(core) = self.force() else {
                    return;
                };
                queue.push(Reverse((At(self.run.ns), core)));
                continue;
            };
            self.run.ns = now;
            self.cores[usize::from(core)].now = now;
            if let Some(woken) = self.step(core) {
                // Whoever waited goes on when the lock is given back.
                let place = &mut self.cores[usize::from(woken.0)];
                let step = place.steps[place.next];
                let waited = (woken.1 - place.waits_since).max(0.0);
                self.run.lock_ns[step.structure] += waited;
                self.run.by_line_ns[step.line as usize] += waited;
                place.granted = true;
                queue.push(Reverse((At(woken.1.max(place.waits_since)), woken.0)));
            }
            if self.cores[usize::from(core)].waits_since <= 0.0 {
                if self.end_lap(core) {
                    left -= 1;
                    if left == 0 {
                        return;
                    }
                }
                let at = self.arrive(core);
                queue.push(Reverse((At(at), core)));
            }
        }
    }

    /// Begins another lap if one has ended; was it the last that counts?
    fn end_lap(&mut self, core: u16) -> bool {
        let core = &mut self.cores[usize::from(core)];
        if core.next < core.steps.len() {
            return false;
        }
        core.next = 0;
        core.laps += 1;
        for line in &core.renewed {
            let place = &mut self.lines[*line as usize];
            place.line = place.at_first;
        }
        match core.laps {
            1 => core.first_lap_at = core.now,
            laps if laps == LAPS + 1 => core.last_lap_at = core.now,
            _ => {}
        }
        core.laps == LAPS + 1
    }

    /// Everybody waits: locks that share a line were taken for one. Lets one of them go on.
    fn force(&mut self) -> Option<u16> {
        let waits = |(_, core): &(u16, &Core)| core.waits_since > 0.0;
        let (number, _) = (0..).zip(&self.cores).find(waits)?;
        for lock in self.locks.values_mut() {
            lock.waiters.retain(|waiter| *waiter != number);
        }
        self.cores[usize::from(number)].granted = true;
        self.run.forced += 1;
        Some(number)
    }

    /// Runs the instructions before the next access; when that is.
    fn arrive(&mut self, core: u16) -> f64 {
        let core = &mut self.cores[usize::from(core)];
        let gap = core.steps.get(core.next).map_or(0, |step| step.gap);
        let ns = f64::from(gap) * self.machine.instruction_ns;
        self.run.busy_ns += ns;
        core.now + ns
    }

    /// Makes the access; whom that wakes, and when. A core that has to wait stays where it is.
    fn step(&mut self, number: u16) -> Option<(u16, f64)> {
        let core = &mut self.cores[usize::from(number)];
        let step = core.steps[core.next];
        core.waits_since = 0.0;
        if step.kind == AccessKind::TransactionEnd {
            core.next += 1;
            return None;
        }
        let granted = std::mem::take(&mut core.granted);
        if matches!(step.role, Role::Acquire | Role::TryAcquire) && !granted {
            let lock = self.locks.entry(step.line).or_default();
            let is_taken = lock.holder.is_some_and(|holder| holder != number);
            if is_taken && step.role == Role::TryAcquire {
                self.access(
                    number,
                    Step {
                        kind: AccessKind::Read,
                        ..step
                    },
                );
                // It goes on behind the place where the lock would have been given back.
                self.cores[usize::from(number)].next = step.release + 1;
                return None;
            }
            if is_taken {
                lock.waiters.push_back(number);
                // Looking at the lock takes its line from whoever holds it.
                self.access(number, step);
                let core = &mut self.cores[usize::from(number)];
                core.waits_since = core.now.max(f64::MIN_POSITIVE);
                return None;
            }
            lock.holder = Some(number);
        }
        self.access(number, step);
        let core = &mut self.cores[usize::from(number)];
        core.next += 1;
        if step.role != Role::Release {
            return None;
        }
        let lock = self.locks.entry(step.line).or_default();
        if lock.holder != Some(number) {
            return None;
        }
        lock.holder = lock.waiters.pop_front();
        Some((lock.holder?, core.now.max(core.stores_at)))
    }

    fn access(&mut self, number: u16, step: Step) {
        let core = &mut self.cores[usize::from(number)];
        let place = &mut self.lines[step.line as usize];
        let before = place.line;
        let begun = core.now;
        match step.kind {
            AccessKind::Read => {
                if place.line.read(number) {
                    let ns = self.machine.load_ns(&before, number);
                    if before.is_dirty {
                        let begin = core.now.max(place.busy_until);
                        place.busy_until = begin + ns;
                        core.now = begin + ns;
                    } else {
                        core.now = core.now.max(place.busy_until) + ns;
                    }
                }
            }
            AccessKind::Write => {
                if place.line.write(number) {
                    let ns = self.machine.own_ns(&before, number);
                    place.busy_until = core.now.max(place.busy_until) + ns;
                    core.stores_at = core.stores_at.max(place.busy_until);
                }
            }
            AccessKind::ReadModifyWrite => {
                core.now = core.now.max(core.stores_at);
                if place.line.write(number) {
                    let ns = self.machine.own_ns(&before, number);
                    place.busy_until = core.now.max(place.busy_until) + ns;
                    core.now = place.busy_until;
                }
            }
            AccessKind::TransactionEnd => {}
        }
        self.run.line_ns[step.structure] += core.now - begun;
        self.run.by_line_ns[step.line as usize] += core.now - begun;
    }
}

/// Runs a recording whose instructions belong to these sites on a machine.
pub fn simulate(
    recording: &super::Recording,
    sites: &super::Sites,
    machine: &Machine,
) -> SimulatedRun {
    simulate_sited(&Sited::new(recording, sites), machine)
}

#[cfg(test)]
mod tests {
    use super::super::machine::Prices;
    use super::super::recording::{Access, Recording};
    use super::*;

    const TRANSFER: f64 = 100.0;
    /// Instructions of a transaction, of a nanosecond each.
    const WORK: u32 = 1_000;
    const TRANSACTIONS: u32 = 100;
    const PLAIN: u32 = 0;
    const TAKES: u32 = 1;
    const TRIES: u32 = 2;
    const GIVES: u32 = 3;

    fn machine() -> Machine {
        Machine {
            cores_per_complex: 8,
            cores_per_socket: 64,
            prices: Prices {
                complex_ns: TRANSFER,
                socket_ns: TRANSFER,
                remote_ns: TRANSFER,
            },
            instruction_ns: 1.0,
        }
    }

    /// The same accesses (kind, line, site, instructions before) in each transaction of each core.
    fn sited(
        cores: u16,
        lines: usize,
        accesses: &dyn Fn(u16) -> Vec<(AccessKind, u32, u32, u32)>,
    ) -> Sited {
        let mut recording = Recording {
            workers: cores,
            lines: vec![Line::default(); lines],
            instructions: vec![0; 4],
            ..Recording::default()
        };
        for worker in (0..TRANSACTIONS).flat_map(|_| 0..cores) {
            let own = accesses(worker);
            let end = (AccessKind::TransactionEnd, 0, PLAIN, 0);
            for (kind, line, instruction, gap) in own.into_iter().chain([end]) {
                recording.accesses.push(Access {
                    worker,
                    kind,
                    line,
                    instruction,
                    gap,
                });
            }
        }
        let site = |role| Site {
            structure: OTHER,
            role,
            place: String::new(),
        };
        Sited {
            structures: vec![OTHER; lines],
            instructions: vec![PLAIN; lines],
            recording,
            sites: [Role::Plain, Role::Acquire, Role::TryAcquire, Role::Release]
                .map(site)
                .to_vec(),
        }
    }

    fn per_second(
        cores: u16,
        lines: usize,
        accesses: &dyn Fn(u16) -> Vec<(AccessKind, u32, u32, u32)>,
    ) -> f64 {
        simulate_sited(&sited(cores, lines, accesses), &machine()).per_second()
    }

    fn near(found: f64, expected: f64) {
        let off = (found / expected - 1.0).abs();
        assert!(off < 0.03, "{found} instead of {expected}");
    }

    use AccessKind::{Read, ReadModifyWrite, Write};

    #[test]
    fn without_a_shared_line_it_is_linear() {
        for cores in [1, 8, 128] {
            // Each writes a line of its own, and all read another one.
            let found = per_second(cores, 129, &|core| {
                let own = u32::from(core);
                vec![(ReadModifyWrite, own, PLAIN, WORK), (Read, 128, PLAIN, 0)]
            });
            near(found, f64::from(cores) * 1e9 / f64::from(WORK));
        }
    }

    #[test]
    fn one_shared_line_is_the_limit() {
        let counter = |_| vec![(ReadModifyWrite, 0, PLAIN, WORK)];
        near(per_second(1, 1, &counter), 1e9 / f64::from(WORK));
        // Two cores pay the transfer.
        near(
            per_second(2, 1, &counter),
            2e9 / (f64::from(WORK) + TRANSFER),
        );
        // Eleven cores need it all the time.
        for cores in [16, 128] {
            near(per_second(cores, 1, &counter), 1e9 / TRANSFER);
        }
    }

    /// A core reads other rows with each transaction, and another core has had them before: in every lap.
    #[test]
    fn rows_are_as_far_away_in_every_lap() {
        let rows = TRANSACTIONS as usize;
        let mut sited = sited(1, rows, &|_| vec![(Read, 0, PLAIN, WORK)]);
        for line in &mut sited.recording.lines {
            *line = Line {
                holders: 1 << 5,
                is_dirty: true,
            };
        }
        let accesses = sited.recording.accesses.iter_mut();
        let reads = accesses.filter(|access| access.kind == Read);
        for (row, access) in (0..).zip(reads) {
            access.line = row;
        }
        let found = simulate_sited(&sited, &machine()).per_second();
        near(found, 1e9 / (f64::from(WORK) + TRANSFER));
    }

    #[test]
    fn stores_do_not_hold_up_a_core_but_what_comes_after_them_does() {
        let two_cores = |kind| per_second(2, 1, &move |_| vec![(kind, 0, PLAIN, WORK)]);
        near(two_cores(Write), 2e9 / f64::from(WORK));
        // A locked instruction on a line of its own waits until the store is done.
        let behind = per_second(2, 3, &|core| {
            vec![
                (Write, 0, PLAIN, WORK),
                (ReadModifyWrite, u32::from(core) + 1, PLAIN, 0),
            ]
        });
        near(behind, 2e9 / (f64::from(WORK) + TRANSFER));
    }

    #[test]
    fn a_lock_is_amdahls_law() {
        // Of a transaction's instructions 500 are under the lock; its line moves with it.
        let locked = |_| vec![(ReadModifyWrite, 0, TAKES, WORK), (Write, 0, GIVES, 500)];
        near(per_second(1, 1, &locked), 1e9 / 1_500.0);
        let section = 500.0 + TRANSFER;
        for cores in [8, 32] {
            // Whoever waits has had the line once, so giving it back fetches it: two transfers to a section.
            let found = per_second(cores, 1, &locked);
            assert!(found <= 1.01e9 / section, "{found}");
            assert!(found >= 0.99e9 / (section + 2.0 * TRANSFER), "{found}");
        }
    }

    #[test]
    fn who_only_tries_does_without() {
        let tried = |_| {
            vec![
                (ReadModifyWrite, 0, TRIES, WORK),
                (Write, 0, GIVES, 10 * WORK),
            ]
        };
        // One of them is under the lock, the others go on with what follows.
        let found = per_second(8, 1, &tried);
        assert!(found > 7e9 / (f64::from(WORK) + 3.0 * TRANSFER), "{found}");
    }

    #[test]
    fn twice_alike() {
        let accesses = |core: u16| {
            vec![
                (ReadModifyWrite, 0, TAKES, 100 + u32::from(core) * 7 % 50),
                (Write, 1, PLAIN, 50),
                (Write, 0, GIVES, 20),
                (Read, 2, PLAIN, 300),
            ]
        };
        let sited = sited(32, 3, &accesses);
        let once = simulate_sited(&sited, &machine());
        assert_eq!(once, simulate_sited(&sited, &machine()));
        assert!(once.lap_ns > 0.0);
    }
}
