//! How many lanes are used: trials, and what they have taught.
//!
//! Invariants: `floor <= lanes <= ceiling` for whatever is tried; between two changes of the load `floor` only rises
//! and `ceiling` only falls, and every trial that is taken back moves one of them. A number of lanes that was left for
//! more, because commits waited too long, lies below `floor` from then on. So trials end.

use super::{AGAIN, Measurements, Millis};

/// A commit may wait for its block for so many percent of an append.
const WAIT_PERCENT_MAX: u64 = 50;
/// More lanes must make the wait shorter by so many percent of an append.
const GAIN_PERCENT_MIN: u64 = 10;
/// So often in a row the wait is short enough before fewer lanes are tried.
const AGAIN_DOWN: u32 = 4;
/// Periods after a change that do not count: appends of before are still on their way.
const SETTLE: u32 = 1;
/// Periods of a trial that count.
const TRIAL: u32 = 2;
/// The load is another when so much more or less is under way; the latency, by half as much again.
const LOAD_FACTOR: u64 = 2;

/// A number of lanes on trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    from: usize,
    /// Of an append, before.
    wait_percent: u64,
    /// How long it still runs, and what was measured.
    periods: u32,
    sum_percent: u64,
}

#[derive(Debug)]
pub(super) struct LaneRule {
    lanes_min: usize,
    lanes_max: usize,
    floor: usize,
    ceiling: usize,
    trial: Option<Trial>,
    /// Periods in a row in which commits waited too long, and in which they did not.
    long: u32,
    short: u32,
    /// The load for which `floor` and `ceiling` were found: commits under way, by a hundred, and the latency of
    /// appends.
    load: Option<(u64, u64)>,
    changed: u32,
}

impl LaneRule {
    pub(super) fn new(lanes_min: usize, lanes_max: usize) -> LaneRule {
        LaneRule {
            lanes_min,
            lanes_max,
            floor: lanes_min,
            ceiling: lanes_max,
            trial: None,
            long: 0,
            short: 0,
            load: None,
            changed: 0,
        }
    }

    /// Forgets what was found if the load is another.
    fn look_at_load(&mut self, measured: &Measurements) {
        let under_way =
            measured.commits_per_second * (measured.append_ns + measured.wait_ns) / 10_000_000;
        let now = (under_way.max(1), measured.append_ns.max(1));
        let Some((load, latency)) = self.load else {
            self.load = Some(now);
            return;
        };
        let is_other = now.0 > load * LOAD_FACTOR
            || load > now.0 * LOAD_FACTOR
            || now.1 * 2 > latency * 3
            || latency * 2 > now.1 * 3;
        self.changed = if is_other { self.changed + 1 } else { 0 };
        if self.changed == AGAIN {
            *self = LaneRule {
                load: Some(now),
                ..LaneRule::new(self.lanes_min, self.lanes_max)
            };
        }
    }

    /// Lanes from now on, and why, if they change.
    pub(super) fn on(&mut self, lanes: usize, measured: &Measurements) -> Option<(usize, String)> {
        self.look_at_load(measured);
        let append_ns = measured.append_ns.max(1);
        let wait_percent = measured.wait_ns.saturating_mul(100) / append_ns;
        if let Some(trial) = &mut self.trial {
            trial.periods -= 1;
            if trial.periods < TRIAL {
                trial.sum_percent += wait_percent;
            }
            if trial.periods > 0 {
                return None;
            }
            let (from, before, now) = (
                trial.from,
                trial.wait_percent,
                trial.sum_percent / u64::from(TRIAL),
            );
            self.trial = None;
            return self.judge(lanes, from, before, now);
        }
        if wait_percent > WAIT_PERCENT_MAX {
            (self.long, self.short) = (self.long + 1, 0);
        } else {
            (self.long, self.short) = (0, self.short + 1);
        }
        let (to, why) = if self.long >= AGAIN && lanes < self.ceiling {
            ((lanes * 2).min(self.ceiling), "more than half of an append")
        } else if self.short >= AGAIN_DOWN && lanes > self.floor {
            ((lanes / 2).max(self.floor), "fewer appends might do")
        } else {
            return None;
        };
        self.trial = Some(Trial {
            from: lanes,
            wait_percent,
            periods: SETTLE + TRIAL,
            sum_percent: 0,
        });
        (self.long, self.short) = (0, 0);
        let reason = format!(
            "on trial: commits wait {}, appends take {}: {why}",
            Millis(measured.wait_ns),
            Millis(append_ns)
        );
        Some((to, reason))
    }

    /// A trial is over.
    fn judge(
        &mut self,
        lanes: usize,
        from: usize,
        before: u64,
        now: u64,
    ) -> Option<(usize, String)> {
        if lanes > from {
            if now + GAIN_PERCENT_MIN > before {
                self.ceiling = from;
                let reason = format!(
                    "taken back: commits wait {now} % of an append, with fewer lanes it was {before} %"
                );
                return Some((from, reason));
            }
            // Too few they were: never again for this load.
            self.floor = self.floor.max(from + 1);
        } else if now > WAIT_PERCENT_MAX {
            self.floor = from;
            let reason = format!(
                "taken back: commits wait {now} % of an append, with more lanes it was {before} %"
            );
            return Some((from, reason));
        }
        None
    }
}
