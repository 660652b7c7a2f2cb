//! A fleet in virtual time: six storage nodes in three zones and the servers over them, each a process of a simulation
//! that runs the shipped code in its own threads, connections and files. A seed decides who goes on, how long bytes
//! take, and what fails.
//!
//! `LOGSTEAD_SEEDS` says how many seeds are run, `LOGSTEAD_SEED` which one is the first. A failure names its setup; the
//! same seed gives the same run.

mod disks;
mod faults;
mod history;
mod judge;
mod nodes;
mod server;

use history::{Outcomes, Setup, run};

/// As many as a run has time for that somebody waits for.
const SEEDS: u64 = 6;

fn from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Seed by seed; the rest of it follows from the seed.
fn run_all(setup: impl Fn(u64) -> Setup, seeds: u64) -> Outcomes {
    let first = from_environment("LOGSTEAD_SEED", 0);
    let mut all = Outcomes::default();
    let mut wrong = Vec::new();
    for seed in first..first + from_environment("LOGSTEAD_SEEDS", seeds) {
        let setup = setup(seed);
        match run(&setup) {
            Ok(outcomes) => all.add(&outcomes),
            Err(what) => {
                let first = what.lines().next().unwrap_or_default();
                println!("seed {seed} is wrong: {first}");
                wrong.push(format!("{what}\nin {setup:?}"));
            }
        }
    }
    println!("{all:?}");
    assert!(
        wrong.is_empty(),
        "{} seeds:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    all
}

/// Of everything that may go wrong, in any order, and at any number of processes at the same time.
///
/// `./test --long` runs thousands of seeds.
#[test]
fn what_a_fleet_has_acknowledged_survives_and_every_node_becomes_complete() {
    let setup = |seed| Setup {
        seed,
        faults: 4 + seed % 9,
        checkpoints: seed % 2 == 1,
    };
    let all = run_all(setup, SEEDS);
    let counts = all.counts;
    assert!(counts.acknowledged > 0 && counts.recoveries > 0, "{all:?}");
    if from_environment("LOGSTEAD_SEEDS", SEEDS) >= 200 {
        assert!(all.faults.is_all(), "{all:?}");
        assert!(counts.answered > 0 && all.published > 0, "{all:?}");
        assert!(counts.annulled > 0 && counts.written_late > 0, "{all:?}");
        assert!(counts.survived_unacknowledged > 0, "{all:?}");
    }
}
