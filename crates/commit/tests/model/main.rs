//! The commit path, explored: interleavings of a few workers, a home and the background thread, over the real path, the
//! real lanes and the real recovery, and a crash after every step of each.
//!
//! Judged after every step: whatever is Committed, and whatever a client has been told, survives a crash there,
//! whichever appends in flight are lost, torn or have landed; survivors have all they truly depend on, which the model
//! knows by itself; in `exact` nobody waits for nothing. Judged at the end of each run, when nobody can go on:
//! everybody was told.
//!
//! Covered by default: every protocol, way of tracking, queue, and one and two workers per lane; all runs that deviate
//! at most once from the default order (see `explorer`), and some by chance. `LOGSTEAD_MODEL=full` takes all that
//! deviate at most twice, and more by chance. What happens between two atomic operations of a lane or a queue is not
//! covered here: that is for the models beside them.

mod explorer;
mod home;
mod world;

use std::sync::Arc;
use std::time::Duration;

use explorer::{Explorer, Search};
use logstead_commit::{AckTiming, CommitOptions, ProtocolKind, QueueKind, Tracking};
use shuttle::{Config, MaxSteps, Runner};
use world::{Script, Setup};

const fn script(reads: &'static [usize], writes: &'static [usize]) -> Script {
    Script { reads, writes }
}

/// Two workers, each after the other's record, and a reader.
const PAIR: &[&[Script]] = &[
    &[script(&[], &[0]), script(&[2], &[0])],
    &[script(&[0], &[2]), script(&[0, 2], &[])],
];

/// A transaction after one of its own worker, which is after one of the other: local, and not safe when it has
/// hardened.
const BEHIND: &[&[Script]] = &[
    &[script(&[], &[0])],
    &[script(&[0], &[2]), script(&[2], &[3])],
];

/// Three workers: what one writes the next one reads, and all of it lies in two chunks.
const CHAIN: &[&[Script]] = &[
    &[script(&[], &[0]), script(&[2], &[])],
    &[script(&[0], &[1])],
    &[script(&[1], &[2]), script(&[], &[0])],
];

/// Two workers who have nothing to do with one another, and much to write.
const APART: &[&[Script]] = &[
    &[script(&[], &[0]), script(&[], &[0]), script(&[], &[0])],
    &[script(&[], &[2]), script(&[], &[2])],
];

/// Of four workers two have something to do: those of the second of two lanes.
const ODD: &[&[Script]] = &[
    &[],
    &[script(&[], &[0])],
    &[],
    &[script(&[], &[2]), script(&[], &[2])],
];

fn setup(scripts: &'static [&'static [Script]], protocol: ProtocolKind) -> Setup {
    Setup {
        options: CommitOptions {
            protocol,
            lane_buffer_bytes: 4096,
            blocks_in_flight_max: 2,
            flush_unit_bytes: 1,
            flush_timeout: Duration::from_secs(1),
            log_allocation_limit_csns: 1,
            threads: false,
            ..CommitOptions::default()
        },
        scripts,
        inline: false,
        record_bytes: 4,
        gives_up: false,
        remaps: &[],
    }
}

fn is_full() -> bool {
    std::env::var("LOGSTEAD_MODEL").is_ok_and(|how| how == "full")
}

/// Explores; returns the number of runs.
fn search(setup: Setup, search: Search) -> usize {
    let explorer = Explorer::new(search);
    let memo = Arc::default();
    let mut config = Config::default();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::None;
    let of_run = explorer.clone();
    let runner = Runner::new(explorer.clone(), config);
    runner.run(move || {
        if let Err(what) = world::run(setup, &of_run, &memo) {
            let choices = of_run.choices();
            panic!(
                "{what}run {} of {search:?}, choices {choices:?}\n{setup:?}",
                of_run.runs()
            );
        }
    });
    explorer.runs()
}

/// Every way of tracking, with so many workers per lane.
fn explore(setup: Setup, queues: &[QueueKind], lanes_of: &[usize]) {
    let mut runs = 0;
    for &queue in queues {
        for tracking in Tracking::ALL {
            for &workers_per_lane in lanes_of {
                let mut setup = setup;
                setup.options.queue = queue;
                setup.options.tracking = tracking;
                setup.options.workers_per_lane = workers_per_lane;
                let (deviations, by_chance) = if is_full() { (2, 20_000) } else { (1, 25) };
                runs += search(setup, Search::Deviations(deviations));
                let seed = 7;
                runs += search(
                    setup,
                    Search::Random {
                        seed,
                        runs: by_chance,
                    },
                );
            }
        }
    }
    println!("{runs} runs of {:?}", setup.options.protocol);
}

/// Every commit is worth a flush; appends are handed off and complete in any order.
fn eager(protocol: ProtocolKind) {
    let queues = [QueueKind::LockFree, QueueKind::Latched];
    explore(setup(PAIR, protocol), &queues, &[1, 2]);
    explore(setup(BEHIND, protocol), &[QueueKind::LockFree], &[1]);
}

/// Workers write themselves, what two of them hold together is worth a flush: with `autonomous`, one robs the other.
fn together(protocol: ProtocolKind) {
    let mut setup = setup(CHAIN, protocol);
    setup.options.flush_unit_bytes = 24;
    setup.inline = true;
    explore(setup, &[QueueKind::LockFree], &[1, 2]);
}

/// Nothing is flushed but by who is idle or finds no room.
fn crowded(protocol: ProtocolKind) {
    for gives_up in [false, true] {
        let mut setup = setup(APART, protocol);
        setup.options.flush_unit_bytes = 1 << 20;
        setup.record_bytes = 1000;
        setup.gives_up = gives_up;
        explore(setup, &[QueueKind::Latched], &[2]);
    }
}

macro_rules! explored {
    ($($protocol:ident: $kind:ident,)*) => {$(
        mod $protocol {
            use super::ProtocolKind;

            #[test]
            fn eager() {
                super::eager(ProtocolKind::$kind);
            }

            #[test]
            fn together() {
                super::together(ProtocolKind::$kind);
            }

            #[test]
            fn crowded() {
                super::crowded(ProtocolKind::$kind);
            }
        }
    )*};
}

/// Workers change lanes while they have something in the old ones: at any moment, and with any outcome of what is in
/// flight. Only with `grouped-lanes`: elsewhere lanes are fixed.
mod remapped {
    use super::*;

    /// Begins with `first` workers per lane.
    fn remapped(mut setup: Setup, first: usize, remaps: &'static [usize]) {
        setup.remaps = remaps;
        setup.options.adapt.lanes = true;
        assert!(setup.options.moves_lanes());
        explore(setup, &[QueueKind::LockFree], &[first]);
    }

    #[test]
    fn apart_and_back() {
        let kind = ProtocolKind::GroupedLanes;
        for scripts in [PAIR, BEHIND] {
            remapped(setup(scripts, kind), 2, &[2, 1]);
            remapped(setup(scripts, kind), 1, &[1, 2]);
        }
    }

    #[test]
    fn three_together() {
        let mut setup = setup(CHAIN, ProtocolKind::GroupedLanes);
        setup.options.flush_unit_bytes = 24;
        setup.inline = true;
        remapped(setup, 3, &[3, 2]);
        remapped(setup, 1, &[2, 3]);
    }

    /// Two of a lane that is given up; who leaves first may be the one who is asked for what the other has there.
    #[test]
    fn a_lane_is_given_up() {
        let mut setup = setup(ODD, ProtocolKind::GroupedLanes);
        setup.options.blocks_in_flight_max = 1;
        // What a flush leaves is nobody's business but of who is roused.
        setup.options.flush_unit_bytes = 1 << 20;
        remapped(setup, 2, &[1]);
    }

    /// Nothing is flushed but by who is idle or finds no room.
    #[test]
    fn crowded() {
        let mut setup = setup(APART, ProtocolKind::GroupedLanes);
        setup.options.flush_unit_bytes = 1 << 20;
        setup.record_bytes = 1000;
        remapped(setup, 2, &[2, 1]);
        remapped(setup, 1, &[1, 2]);
    }
}

/// The paper's way of acknowledging: nobody is forgotten when the dice do not fall.
#[test]
fn by_dice() {
    for scripts in [PAIR, CHAIN] {
        for inline in [false, true] {
            let mut setup = setup(scripts, ProtocolKind::Autonomous);
            setup.options.acknowledging = AckTiming::AtRandom;
            setup.options.flush_unit_bytes = 24;
            setup.inline = inline;
            explore(setup, &[QueueKind::LockFree], &[1]);
        }
    }
}

explored! {
    group: Group,
    pipelined: Pipelined,
    autonomous: Autonomous,
    grouped_lanes: GroupedLanes,
}
