//! The controller against loads: as text, and what must hold for every load.

use super::*;

const MS: u64 = 1_000_000;

const BOUNDS: TuningBounds = TuningBounds {
    adapt: AdaptiveSettings::ALL,
    lanes_min: 1,
    lanes_max: 8,
    flush_unit_bytes_min: 64 << 10,
    flush_unit_bytes_max: 1 << 20,
    buffer_bytes_max: 2 << 20,
};

const FORCE: Tuning = Tuning {
    lanes: 4,
    flush_unit_bytes: 512 << 10,
    buffer_bytes: 1 << 20,
    flush_timeout_ns: 4 * MS,
    gather_ns: MS,
};

/// A load: what it does with so many lanes.
#[derive(Clone, Copy, Debug)]
struct Load {
    append_us: u64,
    /// Commits under way at a time.
    clients: u64,
    /// In percent of an append, with one lane; with n lanes an n-th of it.
    wait_percent: u64,
    /// What more lanes do not make shorter.
    wait_percent_min: u64,
    bytes: u64,
    busy_percent: u64,
}

const QUIET: Load = Load {
    append_us: 8_000,
    clients: 1,
    wait_percent: 0,
    wait_percent_min: 0,
    bytes: 300,
    busy_percent: 90,
};

const MANY: Load = Load {
    clients: 64,
    wait_percent: 130,
    wait_percent_min: 5,
    bytes: 20_000,
    ..QUIET
};

impl Load {
    fn period(&self, lanes: u64) -> PeriodTotals {
        let append_ns = self.append_us * 1000;
        let percent = (self.wait_percent / lanes).max(self.wait_percent_min);
        let wait_ns = append_ns * percent / 100;
        let ns = (250 * MS).max(append_ns * 20 / lanes);
        let count = (ns * lanes * self.busy_percent / 100 / append_ns).max(1);
        let commits = (ns * self.clients / (append_ns + wait_ns)).max(1);
        let mut period = PeriodTotals {
            ns,
            commits,
            wait_ns: commits * wait_ns,
            payload_bytes: count * self.bytes,
            ..PeriodTotals::default()
        };
        for _ in 0..count {
            period.appends[append_class(self.bytes)].add(append_ns);
        }
        period
    }
}

fn text(number: usize, decision: &TuningDecision) -> String {
    let TuningDecision {
        what,
        from,
        to,
        reason,
        ..
    } = decision;
    format!("{number}: {} {from} -> {to}: {reason}\n", what.name())
}

/// So many periods of each load, one after the other.
fn told(controller: &mut Controller, loads: &[(usize, Load)]) -> String {
    let mut text_of_all = String::new();
    let mut number = 0;
    for (periods, load) in loads {
        for _ in 0..*periods {
            let period = load.period(controller.tuning().lanes as u64);
            for decision in controller.on(&period) {
                text_of_all += &text(number, &decision);
            }
            number += 1;
        }
    }
    text_of_all
}

fn check(loads: &[(usize, Load)], expected: &str) {
    let mut controller = Controller::new(BOUNDS, FORCE);
    assert_eq!(told(&mut controller, loads), expected);
}

#[test]
fn one_client_needs_one_lane() {
    check(
        &[(40, QUIET)],
        "3: lanes 4 -> 2: on trial: commits wait 0.0 ms, appends take 8.0 ms: fewer appends might do\n\
         10: lanes 2 -> 1: on trial: commits wait 0.0 ms, appends take 8.0 ms: fewer appends might do\n",
    );
}

#[test]
fn a_burst_gets_lanes_and_gives_them_back() {
    check(
        &[(20, QUIET), (40, MANY), (40, QUIET)],
        "3: lanes 4 -> 2: on trial: commits wait 0.0 ms, appends take 8.0 ms: fewer appends might do\n\
         10: lanes 2 -> 1: on trial: commits wait 0.0 ms, appends take 8.0 ms: fewer appends might do\n\
         22: lanes 1 -> 2: on trial: commits wait 10.4 ms, appends take 8.0 ms: more than half of an append\n\
         27: lanes 2 -> 4: on trial: commits wait 5.2 ms, appends take 8.0 ms: more than half of an append\n\
         34: lanes 4 -> 3: on trial: commits wait 2.6 ms, appends take 8.0 ms: fewer appends might do\n\
         64: lanes 3 -> 1: on trial: commits wait 0.0 ms, appends take 8.0 ms: fewer appends might do\n",
    );
}

/// They wait for something else: their worker's core, say.
#[test]
fn lanes_that_bring_nothing_are_given_back() {
    let load = Load {
        wait_percent: 80,
        wait_percent_min: 80,
        ..MANY
    };
    check(
        &[(60, load)],
        "1: lanes 4 -> 8: on trial: commits wait 6.4 ms, appends take 8.0 ms: more than half of an append\n\
         4: lanes 8 -> 4: taken back: commits wait 80 % of an append, with fewer lanes it was 80 %\n",
    );
}

#[test]
fn timeout_and_gather_delay_follow_the_latency_there_and_back() {
    let slow = Load {
        append_us: 40_000,
        ..QUIET
    };
    let mut controller = Controller::new(
        TuningBounds {
            adapt: AdaptiveSettings {
                lanes: false,
                ..AdaptiveSettings::ALL
            },
            ..BOUNDS
        },
        FORCE,
    );
    let expected = "6: flush_timeout 4000000 -> 11000000: small appends take 22.0 ms\n\
         6: flush_gather_delay 1000000 -> 2750000: small appends take 22.0 ms\n\
         9: flush_timeout 11000000 -> 16203125: small appends take 32.4 ms\n\
         9: flush_gather_delay 2750000 -> 4050781: small appends take 32.4 ms\n\
         38: flush_timeout 16203125 -> 9061597: small appends take 18.1 ms\n\
         38: flush_gather_delay 4050781 -> 2265399: small appends take 18.1 ms\n\
         42: flush_timeout 9061597 -> 5601521: small appends take 11.2 ms\n\
         42: flush_gather_delay 2265399 -> 1400380: small appends take 11.2 ms\n\
         51: flush_timeout 5601521 -> 4120250: small appends take 8.2 ms\n\
         51: flush_gather_delay 1400380 -> 1030062: small appends take 8.2 ms\n";
    let text = told(&mut controller, &[(5, QUIET), (30, slow), (40, QUIET)]);
    assert_eq!(text, expected);
}

#[test]
fn full_blocks_grow_where_lanes_are_always_busy_and_shrink_where_they_are_not() {
    let adapt = AdaptiveSettings {
        lanes: false,
        ..AdaptiveSettings::ALL
    };
    let mut controller = Controller::new(TuningBounds { adapt, ..BOUNDS }, FORCE);
    let full = |bytes, append_us, busy_percent| Load {
        bytes,
        append_us,
        busy_percent,
        wait_percent: 0,
        wait_percent_min: 0,
        ..MANY
    };
    let loads = [
        (3, full(30_000, 8_000, 95)),
        (4, full(500 << 10, 9_000, 95)),
        // As large as it may be.
        (4, full(1 << 20, 10_000, 99)),
        (4, full(1 << 20, 14_000, 30)),
    ];
    let text = told(&mut controller, &loads);
    let unit: Vec<&str> = text.lines().filter(|l| !l.contains(": lanes ")).collect();
    assert_eq!(
        unit,
        [
            "4: flush_unit 524288 -> 1048576: blocks are full and lanes busy 94 % of the time",
            "4: lane_buffer 1048576 -> 2097152: a flush unit, and what comes while that is given to the home",
            "14: flush_unit 1048576 -> 524288: full blocks take 12.7 ms, small ones 8.0 ms, and lanes are busy only 29 % of the time",
            "14: lane_buffer 2097152 -> 1048576: a flush unit, and what comes while that is given to the home",
        ]
    );
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }

    fn load(&mut self) -> Load {
        Load {
            append_us: 100 + self.roll(100_000),
            clients: 1 + self.roll(500),
            wait_percent: self.roll(400),
            wait_percent_min: self.roll(60),
            bytes: 1 << self.roll(22),
            busy_percent: 1 + self.roll(100),
        }
    }
}

#[test]
fn nothing_ever_leaves_its_bounds_and_what_is_fixed_never_moves() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let adapt = AdaptiveSettings {
            lanes: dice.roll(2) == 1,
            flush_unit: dice.roll(2) == 1,
            buffer: dice.roll(2) == 1,
            flush_timeout: dice.roll(2) == 1,
            gather: dice.roll(2) == 1,
        };
        let bounds = TuningBounds { adapt, ..BOUNDS };
        let mut controller = Controller::new(bounds, FORCE);
        for _ in 0..200 {
            let load = dice.load();
            let before = controller.tuning();
            let decisions = controller.on(&load.period(before.lanes as u64));
            let now = controller.tuning();
            assert!((1..=8).contains(&now.lanes), "{seed}: {now:?}");
            let unit = now.flush_unit_bytes;
            assert!((64 << 10..=1 << 20).contains(&unit), "{seed}: {now:?}");
            assert!(now.flush_timeout_ns <= TIMEOUT_NS_MAX);
            assert!(
                (1 << 20..=2 << 20).contains(&now.buffer_bytes),
                "{seed}: {now:?}"
            );
            assert!(adapt.buffer || now.buffer_bytes == FORCE.buffer_bytes);
            assert!(adapt.lanes || now.lanes == FORCE.lanes);
            assert!(adapt.flush_unit || unit == FORCE.flush_unit_bytes);
            assert!(adapt.flush_timeout || now.flush_timeout_ns == FORCE.flush_timeout_ns);
            assert!(adapt.gather || now.gather_ns == FORCE.gather_ns);
            for decision in decisions {
                assert!(!decision.reason.is_empty() && decision.from != decision.to);
            }
        }
        let idle = PeriodTotals {
            ns: 1_000_000_000,
            ..PeriodTotals::default()
        };
        assert!(controller.on(&idle).is_empty(), "nothing was measured");
    }
}

/// Also if measurements vary by a few percent: see `jitter`.
#[test]
fn under_a_constant_load_it_comes_to_rest() {
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let load = dice.load();
        let jitter = seed % 3 * 2;
        let mut controller = Controller::new(BOUNDS, FORCE);
        let mut last = 0;
        let mut decisions = 0;
        for number in 0..400 {
            let mut now = load;
            now.append_us += now.append_us * dice.roll(jitter + 1) / 100;
            now.wait_percent += now.wait_percent * dice.roll(jitter + 1) / 100;
            let period = now.period(controller.tuning().lanes as u64);
            let of_period = controller.on(&period).len();
            if of_period > 0 {
                last = number;
                decisions += of_period;
            }
        }
        assert!(
            last < 120 && decisions < 24,
            "{seed}: {decisions} decisions, the last in period {last}: {load:?}"
        );
    }
}
