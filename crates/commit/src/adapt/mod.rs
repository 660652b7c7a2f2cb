//! How many lanes are in use, and how long and for how much a flush waits: as latency and load want it. A pure
//! controller: a period's measurements in, decisions out, each with its reason. (Milliscale leaves it as future work.)
//!
//! Goals, in order: a commit takes little more than one append; then as few appends as possible, which are money.
//!
//! *Lanes in use.* Rule: the fewest at which commits wait for their block less than half of an append on average. Where
//! a lane has one append in flight at a time, a commit that just misses one waits for the whole of it; more lanes let
//! it leave earlier, fewer make fuller blocks. Waits of more than that, twice in a row: twice as many lanes, on trial.
//! Less, four times in a row: half as many, on trial. A trial that brings nothing (more lanes, and the wait hardly
//! shorter: it is not lanes that commits wait for) or costs too much (fewer lanes, and the wait is too long) is taken
//! back.
//!
//! *Flush unit.* Rule: blocks that are as full as the unit allows, in lanes that are always busy, may become twice as
//! large, unless the larger are known to take twice as long; full blocks that take half as long again as small ones, in
//! lanes that are mostly idle, become half as large.
//!
//! *Buffer.* Rule: a flush unit, and as much again as may come while that is given to the home; at least half of what
//! was allocated.
//!
//! *Flush timeout and gather delay.* Rule: half and an eighth of what a small append takes, as
//! [`CommitOptions::defaults_for`](crate::CommitOptions::defaults_for) has it of the expected latency; followed when
//! they are off by a quarter.
//!
//! Why it is stable. A number of lanes that was found too small for the load, or no better than fewer, is remembered
//! and not tried again: what may be tried shrinks with each trial, so under a constant load there are finitely many.
//! What is remembered is forgotten when the load (commits in the system at a time: Little's law, which does not depend
//! on the number of lanes) or the latency of appends has become another, twice in a row, by a factor. For the unit, the
//! way down begins at less than half the busyness at which the way up begins. The latency is smoothed, and the slowest
//! append of a period does not count.
//!
//! What it never does: leave its [`TuningBounds`]; touch what was set by hand; read a clock, wait or do I/O; bear on
//! what is acknowledged. A bad decision costs time or money, nothing else.

mod lanes;
#[cfg(test)]
mod tests;

use std::fmt;

use logstead_wal::{APPEND_CLASSES, AppendTimes, AppendTimesBySize, append_class};

use crate::options::AdaptiveSettings;
use lanes::LaneRule;

/// Appends that take longer are worth gathering for; below, the timeout is a plain one.
const SLOW_NS: u64 = 1_000_000;
const PLAIN_TIMEOUT_NS: u64 = 1_000_000;
const TIMEOUT_NS_MAX: u64 = 10_000_000_000;

/// What was counted in one period, over all lanes: what [`Measurements`] are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeriodTotals {
    /// Its length.
    pub ns: u64,
    /// Commits that hardened, and for how long they had waited for their block to be sealed, all together.
    pub commits: u64,
    /// See `commits`.
    pub wait_ns: u64,
    /// Appends that completed, by class of size.
    pub appends: AppendTimesBySize,
    /// Bytes of entries in them.
    pub payload_bytes: u64,
    /// Refusals for want of room in a buffer.
    pub refused: u64,
}

/// Of all but the slowest, which may be a straggler.
fn mean_ns(appends: &AppendTimes) -> Option<u64> {
    match appends.count {
        0 => None,
        1 | 2 => Some(appends.ns / appends.count),
        count => Some(appends.ns.saturating_sub(appends.ns_max) / (count - 1)),
    }
}

impl PeriodTotals {
    /// Appends of all sizes.
    pub fn appends(&self) -> AppendTimes {
        let mut all = AppendTimes::default();
        self.appends.iter().for_each(|of| all.add_all(of));
        all
    }

    fn per_second(&self, count: u64) -> u64 {
        (u128::from(count) * 1_000_000_000 / u128::from(self.ns.max(1))) as u64
    }
}

/// What may move, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuningBounds {
    /// What may move at all.
    pub adapt: AdaptiveSettings,
    /// Each instance has one of its own.
    pub lanes_min: usize,
    /// Lanes that were opened.
    pub lanes_max: usize,
    /// The flush unit is between these.
    pub flush_unit_bytes_min: usize,
    /// See `flush_unit_bytes_min`.
    pub flush_unit_bytes_max: usize,
    /// What was allocated of each buffer.
    pub buffer_bytes_max: usize,
}

/// The numbers in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Lanes in use.
    pub lanes: usize,
    /// See [`CommitOptions::flush_unit_bytes`](crate::CommitOptions::flush_unit_bytes).
    pub flush_unit_bytes: usize,
    /// Bytes used of each buffer.
    pub buffer_bytes: usize,
    /// See [`CommitOptions::flush_timeout`](crate::CommitOptions::flush_timeout).
    pub flush_timeout_ns: u64,
    /// See [`CommitOptions::gather`](crate::CommitOptions::gather).
    pub gather_ns: u64,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunedSetting {
    /// Lanes in use.
    Lanes,
    /// The flush unit, in bytes.
    FlushUnit,
    /// How much of a buffer is used, in bytes.
    Buffer,
    /// The flush timeout, in nanoseconds.
    FlushTimeout,
    /// The gather delay, in nanoseconds.
    Gather,
}

impl TunedSetting {
    /// All of them.
    pub const ALL: [TunedSetting; 5] = [
        TunedSetting::Lanes,
        TunedSetting::FlushUnit,
        TunedSetting::Buffer,
        TunedSetting::FlushTimeout,
        TunedSetting::Gather,
    ];

    /// Its name, as in `logstead_adaptive`.
    pub fn name(self) -> &'static str {
        match self {
            TunedSetting::Lanes => "lanes",
            TunedSetting::FlushUnit => "flush_unit",
            TunedSetting::Buffer => "lane_buffer",
            TunedSetting::FlushTimeout => "flush_timeout",
            TunedSetting::Gather => "flush_gather_delay",
        }
    }
}

/// A change, why, and what was measured then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuningDecision {
    /// What changes.
    pub what: TunedSetting,
    /// From this.
    pub from: u64,
    /// To this.
    pub to: u64,
    /// Why.
    pub reason: String,
    /// What was measured in the period before it.
    pub measured: Measurements,
}

/// What the decisions go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurements {
    /// Mean time of an append.
    pub append_ns: u64,
    /// Mean time for which a commit waited for its block to be sealed.
    pub wait_ns: u64,
    /// Commits per second.
    pub commits_per_second: u64,
    /// Appends per second.
    pub appends_per_second: u64,
    /// Bytes of entries per append.
    pub bytes_per_append: u64,
    /// Of the time of the lanes in use, how much they had an append in flight, in percent.
    pub busy_percent: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Controller {
    bounds: TuningBounds,
    tuning: Tuning,
    /// What an append of each class takes, smoothed; 0: never seen.
    append_ns: [u64; APPEND_CLASSES],
    lanes: LaneRule,
    measured: Measurements,
    /// For how many periods in a row each of these was wanted.
    unit_up: u32,
    unit_down: u32,
    pace: u32,
}

/// So often in a row something is wanted before it is done.
const AGAIN: u32 = 2;

impl Controller {
    /// Begins with the numbers in force.
    pub fn new(bounds: TuningBounds, tuning: Tuning) -> Controller {
        Controller {
            bounds,
            tuning,
            append_ns: [0; APPEND_CLASSES],
            lanes: LaneRule::new(bounds.lanes_min, bounds.lanes_max),
            measured: Measurements::default(),
            unit_up: 0,
            unit_down: 0,
            pace: 0,
        }
    }

    /// The numbers in force.
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// What was measured in the last period.
    pub fn measured(&self) -> Measurements {
        self.measured
    }

    /// A period is over: what changes.
    pub fn on(&mut self, period: &PeriodTotals) -> Vec<TuningDecision> {
        let all = period.appends();
        let Some(append_ns) = mean_ns(&all) else {
            return Vec::new();
        };
        for (smooth, of) in self.append_ns.iter_mut().zip(&period.appends) {
            if let Some(now) = mean_ns(of) {
                *smooth = match *smooth {
                    0 => now,
                    before => before - before / 4 + now / 4,
                };
            }
        }
        let lanes = self.tuning.lanes as u64;
        let measured = Measurements {
            append_ns,
            wait_ns: period.wait_ns / period.commits.max(1),
            commits_per_second: period.per_second(period.commits),
            appends_per_second: period.per_second(all.count),
            bytes_per_append: period.payload_bytes / all.count.max(1),
            busy_percent: (u128::from(all.ns) * 100
                / (u128::from(period.ns.max(1)) * u128::from(lanes)))
                as u64,
        };
        self.measured = measured;
        let mut decisions = Vec::new();
        if self.bounds.adapt.lanes && period.commits > 0 {
            self.lanes_of(&measured, &mut decisions);
        }
        if self.bounds.adapt.flush_unit {
            self.unit_of(&measured, &mut decisions);
        }
        if self.bounds.adapt.buffer {
            self.buffer_of(&measured, &mut decisions);
        }
        self.pace_of(&measured, &mut decisions);
        decisions
    }

    fn lanes_of(&mut self, measured: &Measurements, out: &mut Vec<TuningDecision>) {
        let from = self.tuning.lanes;
        if let Some((to, reason)) = self.lanes.on(from, measured) {
            self.tuning.lanes = to.clamp(self.bounds.lanes_min, self.bounds.lanes_max);
            out.push(TuningDecision {
                what: TunedSetting::Lanes,
                from: from as u64,
                to: self.tuning.lanes as u64,
                reason,
                measured: *measured,
            });
        }
    }

    fn unit_of(&mut self, measured: &Measurements, out: &mut Vec<TuningDecision>) {
        let unit = self.tuning.flush_unit_bytes;
        let full = measured.bytes_per_append >= unit as u64 / 4 * 3;
        let class = append_class(measured.bytes_per_append);
        let here = self.append_ns[class];
        let larger = self.append_ns.get(class + 1).copied().unwrap_or(0);
        let small = self.small_append_ns();
        let (least, most) = (
            self.bounds.flush_unit_bytes_min,
            self.bounds.flush_unit_bytes_max,
        );
        let up = full
            && measured.busy_percent >= 90
            && unit < most
            && (larger == 0 || larger < 2 * here);
        let down = full
            && measured.busy_percent < 40
            && unit > least
            && small > 0
            && here >= small + small / 2;
        self.unit_up = if up { self.unit_up + 1 } else { 0 };
        self.unit_down = if down { self.unit_down + 1 } else { 0 };
        let (to, reason) = if self.unit_up == AGAIN {
            let why = format!(
                "blocks are full and lanes busy {} % of the time",
                measured.busy_percent
            );
            ((unit * 2).min(most), why)
        } else if self.unit_down == AGAIN {
            let why = format!(
                "full blocks take {}, small ones {}, and lanes are busy only {} % of the time",
                Millis(here),
                Millis(small),
                measured.busy_percent
            );
            ((unit / 2).max(least), why)
        } else {
            return;
        };
        (self.unit_up, self.unit_down) = (0, 0);
        self.tuning.flush_unit_bytes = to;
        out.push(TuningDecision {
            what: TunedSetting::FlushUnit,
            from: unit as u64,
            to: to as u64,
            reason,
            measured: *measured,
        });
    }

    fn buffer_of(&mut self, measured: &Measurements, out: &mut Vec<TuningDecision>) {
        let most = self.bounds.buffer_bytes_max;
        let wanted = (self.tuning.flush_unit_bytes * 2).clamp(most / 2, most);
        let from = std::mem::replace(&mut self.tuning.buffer_bytes, wanted);
        if from != wanted {
            out.push(TuningDecision {
                what: TunedSetting::Buffer,
                from: from as u64,
                to: wanted as u64,
                reason: "a flush unit, and what comes while that is given to the home".to_owned(),
                measured: *measured,
            });
        }
    }

    /// What the smallest appends take; 0 if there were none.
    fn small_append_ns(&self) -> u64 {
        let mut seen = self.append_ns.iter().filter(|ns| **ns > 0);
        seen.next().copied().unwrap_or(0)
    }

    fn pace_of(&mut self, measured: &Measurements, out: &mut Vec<TuningDecision>) {
        let append_ns = self.small_append_ns();
        let (timeout_ns, gather_ns) = if append_ns >= SLOW_NS {
            ((append_ns / 2).min(TIMEOUT_NS_MAX), append_ns / 8)
        } else {
            (PLAIN_TIMEOUT_NS, 0)
        };
        let tuning = &mut self.tuning;
        let off = |wanted: u64, now: u64| wanted.abs_diff(now) > now / 4;
        let adapt = self.bounds.adapt;
        let moves = adapt.flush_timeout && off(timeout_ns, tuning.flush_timeout_ns)
            || adapt.gather && off(gather_ns, tuning.gather_ns);
        self.pace = if moves { self.pace + 1 } else { 0 };
        if self.pace < AGAIN {
            return;
        }
        self.pace = 0;
        let reason = format!("small appends take {}", Millis(append_ns));
        for (what, may, now, wanted) in [
            (
                TunedSetting::FlushTimeout,
                adapt.flush_timeout,
                &mut tuning.flush_timeout_ns,
                timeout_ns,
            ),
            (
                TunedSetting::Gather,
                adapt.gather,
                &mut tuning.gather_ns,
                gather_ns,
            ),
        ] {
            if may && *now != wanted {
                out.push(TuningDecision {
                    what,
                    from: *now,
                    to: wanted,
                    reason: reason.clone(),
                    measured: *measured,
                });
                *now = wanted;
            }
        }
    }
}

/// Nanoseconds, for people.
pub(crate) struct Millis(pub(crate) u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0 as f64 / 1e6)
    }
}
