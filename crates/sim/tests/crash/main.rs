//! Crashes of the whole machine: random transactions over few keys on several workers, every protocol and every way of
//! tracking, on the simulated home; stopped anywhere, also during recovery, and judged by `logstead_sim::crash`.
//!
//! `LOGSTEAD_SEEDS` says how many seeds are run, `LOGSTEAD_SEED` which one is the first. A failure names its setup; the
//! same seed gives the same run.

mod baton;
mod follower;
mod leanstore;
mod machine;
mod opened;
mod outcomes;
mod readers;
mod script;
mod watched;

use logstead_engine::{AckTiming, ForceCommit, ProtocolKind, QueueKind, Tracking};
use logstead_sim::Dice;
use machine::{CrashAt, Machine, Setup};
use outcomes::Outcomes;

const TRACKINGS: [Tracking; 4] = [
    Tracking::Horizon,
    Tracking::Gsn,
    Tracking::Dsn,
    Tracking::Exact,
];

fn from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The setup of a seed: protocols and modes in turn, the rest drawn.
fn setup(seed: u64) -> Setup {
    let mut dice = Dice::new(seed ^ 0xc0ff_ee00);
    let protocol = ProtocolKind::ALL[seed as usize % 4];
    let workers = 1 + dice.roll(4) as usize;
    let workers_per_lane = [1, 2, workers][dice.roll(3) as usize];
    Setup {
        seed,
        protocol,
        tracking: TRACKINGS[seed as usize / 4 % 4],
        queue: if dice.one_in(4) {
            QueueKind::Latched
        } else {
            QueueKind::LockFree
        },
        workers,
        workers_per_lane,
        steal_group: [1, workers, 8][dice.roll(3) as usize],
        model: ["s3express", "gp3", "nvme"][dice.roll(3) as usize],
        clients_per_worker: 1 + dice.roll(3),
        transactions: 12,
        faults: dice.one_in(4),
        flush_unit_bytes: [1, 512, 8 << 10][dice.roll(3) as usize],
        blocks_in_flight_max: 1 + dice.roll(4) as usize,
        ack_group: 1 + dice.roll(4) as usize,
        gather_us: [0, 0, 400][dice.roll(3) as usize],
        short_allowance: dice.one_in(4),
        inline: dice.one_in(2),
        // Elsewhere lanes are fixed.
        remaps: protocol == ProtocolKind::GroupedLanes && dice.one_in(2),
        dead_lane: None,
        slow_lane: None,
        checkpoints: dice.one_in(2),
        large_one_in: 16,
        checkpoint_one_in: 6,
        readers: false,
        follower: false,
        leased: false,
        // Drawn last: the other draws of a seed stay what they were.
        acknowledging: if dice.one_in(2) {
            AckTiming::AtRandom
        } else {
            AckTiming::WhenHardened
        },
        force_commit: if dice.one_in(2) {
            ForceCommit::IfIdleLong
        } else {
            ForceCommit::AtOnce
        },
        divided: dice.one_in(2),
        crash: None,
    }
}

fn run(setup: &Setup, lives: u64) -> Outcomes {
    match Machine::new(setup).run(lives) {
        Ok(outcomes) => outcomes,
        Err(what) => panic!("{what}\nin {setup:?}"),
    }
}

/// Acknowledged implies survived, survivors are closed under dependency, and nobody was told of what was lost.
#[test]
fn what_clients_were_told_survives_any_crash() {
    let first = from_environment("LOGSTEAD_SEED", 0);
    let mut all = Outcomes::default();
    for seed in first..first + from_environment("LOGSTEAD_SEEDS", 96) {
        all.add(&run(&setup(seed), 3));
    }
    println!("{all:?}");
    if first == 0 && all.lives >= 250 {
        let counts = all.counts;
        assert!(all.lost > 0 && all.lost_though_hardened > 0, "{all:?}");
        assert!(all.survived_unacknowledged > 0, "{all:?}");
        assert!(all.crashes_in_recovery > 0, "{all:?}");
        assert!(all.remaps > 0, "{all:?}");
        assert!(counts.answered > 0 && counts.errors_told > 0, "{all:?}");
        assert!(counts.large > 0 && counts.rolled_back > 0, "{all:?}");
        let checkpoints = all.checkpoints;
        assert!(
            checkpoints.loaded > 0 && checkpoints.delta_pages > 0,
            "{all:?}"
        );
        assert!(
            checkpoints.cut_short > 0 && checkpoints.failed > 0,
            "{all:?}"
        );
        let instances = all.instances;
        assert!(
            instances.given_away > 0 && instances.inside > 0 && instances.across > 0,
            "{all:?}"
        );
        assert!(
            instances.restarted > 0 && instances.chunks_dropped > 0 && instances.condemned > 0,
            "{all:?}"
        );
        assert!(checkpoints.objects_removed > 0, "{all:?}");
        assert!(checkpoints.segments_removed > 0, "{all:?}");
    }
}

/// The records of large transactions do not outlive the checkpoint that holds them, whatever crashes in between; the
/// machine counts after each.
#[test]
fn records_of_large_transactions_go_with_the_checkpoint_that_holds_them() {
    let mut all = Outcomes::default();
    for seed in 0..from_environment("LOGSTEAD_SEEDS", 96) / 8 {
        let mut setup = setup(seed);
        (setup.workers, setup.workers_per_lane) = (1 + seed as usize % 2, 1);
        setup.clients_per_worker = 1;
        setup.transactions = 60;
        setup.faults = false;
        setup.checkpoints = true;
        setup.large_one_in = 2;
        all.add(&run(&setup, 2));
    }
    println!("{all:?}");
    assert!(all.checkpoints.sides_removed > 0, "{all:?}");
}

/// Two short lives that end at each of their requests in turn, and a crash at each request of the recovery after it.
#[test]
fn crashes_at_every_request_of_a_life_and_of_its_recovery() {
    let mut all = Outcomes::default();
    let mut runs = 0;
    for seed in 0..from_environment("LOGSTEAD_SEEDS", 96) / 32 {
        let mut setup = setup(seed * 5 + 2);
        setup.workers = 2;
        setup.workers_per_lane = 1;
        setup.clients_per_worker = 1;
        setup.transactions = 8;
        setup.faults = false;
        setup.checkpoints = seed % 3 != 2;
        let mut crash_at = |life, recovery| {
            setup.crash = Some(CrashAt { life, recovery });
            let outcomes = run(&setup, 2);
            all.add(&outcomes);
            runs += 1;
            outcomes
        };
        let mut life = 0;
        while crash_at(life, u64::MAX / 2).crashes_in_life == 2 {
            let mut recovery = 0;
            // Every one of the recovery's, after some of the lives'.
            while life % 5 == 0 && crash_at(life, recovery).crashes_in_recovery > 0 {
                recovery += 1;
            }
            life += 1;
        }
        assert!(life > 1, "{life} {all:?} {setup:?}");
    }
    println!("{runs} runs: {all:?}");
    assert!(all.crashes_in_recovery > 0 && all.lost > 0, "{all:?}");
    assert!(
        all.checkpoints.cut_short > 0 && all.checkpoints.loaded > 0 && all.checkpoints.indexes > 0,
        "{all:?}"
    );
}

/// `exact` has nobody wait who need not by the precise graph; `horizon` does. (Protocols that acknowledge in rounds
/// have everybody wait for the end of the round, whatever the mode: they are left out.)
#[test]
fn exact_has_no_false_waits() {
    let first = from_environment("LOGSTEAD_SEED", 0);
    let count = from_environment("LOGSTEAD_SEEDS", 96) / 4;
    for tracking in [Tracking::Exact, Tracking::Horizon] {
        let mut all = Outcomes::default();
        for seed in first..first + count {
            let mut setup = setup(seed);
            setup.protocol =
                [ProtocolKind::GroupedLanes, ProtocolKind::Autonomous][seed as usize % 2];
            // Who waits for the dice waits for nothing.
            setup.acknowledging = AckTiming::WhenHardened;
            setup.tracking = tracking;
            setup.faults = false;
            setup.checkpoints = false;
            setup.slow_lane = (seed % 3 == 0).then_some(0);
            let outcomes = run(&setup, 1);
            if tracking == Tracking::Exact {
                assert_eq!(outcomes.false_waits, 0, "{setup:?}: {outcomes:?}");
            }
            all.add(&outcomes);
        }
        println!("{tracking:?}: {all:?}");
        assert!(all.true_waits > 0, "{all:?}");
        assert_eq!(
            all.false_waits > 0,
            tracking == Tracking::Horizon,
            "{all:?}"
        );
    }
}

/// A lane that never answers holds up those who depend on it, and nobody else.
#[test]
fn a_dead_lane_delays_nobody_who_does_not_depend_on_it() {
    let mut all = Outcomes::default();
    for seed in 0..from_environment("LOGSTEAD_SEEDS", 96) / 4 {
        let mut setup = setup(seed);
        setup.protocol = [ProtocolKind::GroupedLanes, ProtocolKind::Autonomous][seed as usize % 2];
        setup.acknowledging = AckTiming::WhenHardened;
        setup.tracking = Tracking::Exact;
        setup.workers = 4;
        setup.workers_per_lane = 1;
        // A thief whose own lane is dead takes what it steals with it.
        setup.steal_group = 1;
        setup.inline = false;
        setup.faults = false;
        setup.checkpoints = false;
        setup.dead_lane = Some((seed % 4) as u16);
        let outcomes = run(&setup, 1);
        assert_eq!(outcomes.false_waits, 0, "{setup:?}: {outcomes:?}");
        all.add(&outcomes);
    }
    assert!(all.counts.acknowledged > 0 && all.true_waits > 0, "{all:?}");
}

/// Backups, branches, restore points, `log verify`, `log dump` and fsck, made beside the machine at any moment: each is
/// one moment of it, and finds no damage.
///
/// `./test --long` runs a thousand seeds.
#[test]
fn whoever_reads_beside_the_machine_sees_one_moment() {
    let first = from_environment("LOGSTEAD_SEED", 0);
    let count = from_environment("LOGSTEAD_SEEDS", 72);
    let mut all = Outcomes::default();
    let mut wrong = Vec::new();
    for seed in first..first + count {
        let mut dice = Dice::new(seed ^ 0x0bce_55ed);
        let setup = Setup {
            readers: true,
            leased: dice.one_in(2),
            // An entry of one lane hangs on what others hold.
            workers: 2 + dice.roll(3) as usize,
            workers_per_lane: 1 + dice.roll(2) as usize,
            transactions: 60,
            checkpoints: !dice.one_in(4),
            checkpoint_one_in: [6, 30, 120][dice.roll(3) as usize],
            ..setup(seed)
        };
        match Machine::new(&setup).run(3) {
            Ok(outcomes) => all.add(&outcomes),
            Err(what) => wrong.push(format!("{what}\nin {setup:?}")),
        }
    }
    println!("{all:?}");
    assert!(
        wrong.is_empty(),
        "{} of {count} seeds:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    if first == 0 && count >= 72 {
        let readers = all.readers;
        assert!(
            readers.backups > 0 && readers.incremental > 0 && readers.rounds > 0,
            "{readers:?}"
        );
        assert!(readers.parts_kept > 0, "{readers:?}");
        assert!(readers.branches > 0 && readers.dropped > 0, "{readers:?}");
        assert!(readers.restored > 0 && readers.points > 0, "{readers:?}");
        assert!(readers.verified > readers.counted, "{readers:?}");
        assert!(readers.counted > 0 && readers.dumped > 0, "{readers:?}");
        assert!(readers.checked > 0, "{readers:?}");
        // They read while it went on, and while it stopped and came back.
        assert!(
            readers.with_later > 0 && readers.left_out > 0 && readers.over_crashes > 0,
            "{readers:?}"
        );
    }
}

/// Who follows the log through the machine's lives hands over all that anybody was told of, in order, and nothing that
/// a crash takes back.
#[test]
fn a_log_is_followed_through_the_lives_of_its_machine() {
    let first = from_environment("LOGSTEAD_SEED", 0);
    let count = from_environment("LOGSTEAD_SEEDS", 72);
    let mut all = Outcomes::default();
    let mut wrong = Vec::new();
    for seed in first..first + count {
        let mut dice = Dice::new(seed ^ 0xf011_0e4e);
        let setup = Setup {
            follower: true,
            leased: dice.one_in(2),
            workers: 2 + dice.roll(3) as usize,
            workers_per_lane: 1 + dice.roll(2) as usize,
            transactions: 60,
            checkpoints: dice.one_in(2),
            checkpoint_one_in: [6, 30, 120][dice.roll(3) as usize],
            ..setup(seed)
        };
        match Machine::new(&setup).run(3) {
            Ok(outcomes) => all.add(&outcomes),
            Err(what) => wrong.push(format!("{what}\nin {setup:?}")),
        }
    }
    println!("{all:?}");
    assert!(
        wrong.is_empty(),
        "{} of {count} seeds:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    if first == 0 && count >= 72 {
        let follower = all.follower;
        assert!(
            follower.handed > 0 && follower.handed_live > 0,
            "{follower:?}"
        );
        assert!(follower.removed > 0 && follower.told > 0, "{follower:?}");
        assert!(follower.streamed > 0, "{follower:?}");
        assert!(follower.counted > 0 && all.lost > 0, "{all:?}");
    }
}
