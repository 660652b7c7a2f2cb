//! What is measured for the controller (see [`crate::adapt`]), and what it decides put in force.
//!
//! Invariants: one thread at a time looks, and nobody waits for it; a period has at least [`APPENDS_MIN`] appends and
//! lasts [`PERIOD_NS`], so a server at rest decides nothing. Looks come after a hardening has been told to everybody
//! who waited for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use logstead_env::Env;
use logstead_wal::AppendTimes;
use parking_lot::Mutex;

use super::CommitPath;
use crate::adapt::{
    Controller, Measurements, PeriodTotals, TunedSetting, Tuning, TuningBounds, TuningDecision,
};
use crate::options::{AdaptiveSettings, CommitOptions};
use crate::protocol::ProtocolConfig;

/// Appends of a period, at least.
const APPENDS_MIN: u64 = 20;
/// Length of a period, at least.
const PERIOD_NS: u64 = 250_000_000;
/// The smallest unit that is worth an append of its own.
const FLUSH_UNIT_BYTES_MIN: usize = 64 << 10;
/// Decisions kept.
const KEPT: usize = 100;

/// A decision, and when it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRecord {
    /// Microseconds since 2000.
    pub at_micros: i64,
    /// The decision.
    pub decision: TuningDecision,
}

/// What adapts, what is in force, and what was decided.
#[derive(Clone, Debug)]
pub struct AdaptiveStatus {
    /// What may change.
    pub adapt: AdaptiveSettings,
    /// What is in force.
    pub tuning: Tuning,
    /// What was measured in the last period.
    pub measured: Measurements,
    /// The last decisions, oldest first.
    pub decisions: Vec<DecisionRecord>,
}

struct State {
    controller: Controller,
    /// Since when the period runs, and what the lanes had counted then.
    since: u64,
    payload_bytes: u64,
    refused: u64,
    kept: VecDeque<DecisionRecord>,
}

/// See the module's documentation.
pub(super) struct AdaptiveTuner {
    adapt: AdaptiveSettings,
    /// Hardenings in this period.
    hardened: AtomicU64,
    /// It does not end before.
    ends_at: AtomicU64,
    state: Mutex<State>,
}

impl AdaptiveTuner {
    /// `None` if nothing is to adapt.
    pub(super) fn new(
        options: &CommitOptions,
        protocol_config: &ProtocolConfig,
        lanes: usize,
        env: &Env,
    ) -> Option<AdaptiveTuner> {
        let adapt = AdaptiveSettings {
            lanes: options.moves_lanes(),
            ..options.adapt
        };
        if adapt == AdaptiveSettings::NOTHING || !options.timing {
            return None;
        }
        let unit = protocol_config.flush_unit_bytes;
        let bounds = TuningBounds {
            adapt,
            lanes_min: protocol_config.blocks.count(),
            lanes_max: lanes,
            flush_unit_bytes_min: FLUSH_UNIT_BYTES_MIN.min(unit),
            // A buffer holds a flush and what comes while it is given to the home.
            flush_unit_bytes_max: (options.lane_buffer_bytes / 2).max(unit),
            buffer_bytes_max: options.lane_buffer_bytes,
        };
        let tuning = Tuning {
            lanes: protocol_config.lanes().min(lanes),
            flush_unit_bytes: unit,
            buffer_bytes: options.lane_buffer_bytes,
            flush_timeout_ns: protocol_config.flush_timeout_ns,
            gather_ns: protocol_config.gather_ns,
        };
        let now = env.clock.monotonic().as_nanos();
        Some(AdaptiveTuner {
            adapt,
            hardened: AtomicU64::new(0),
            ends_at: AtomicU64::new(now + PERIOD_NS),
            state: Mutex::new(State {
                controller: Controller::new(bounds, tuning),
                since: now,
                payload_bytes: 0,
                refused: 0,
                kept: VecDeque::new(),
            }),
        })
    }
}

impl CommitPath {
    /// A lane has hardened: perhaps a period is over.
    #[inline]
    pub(super) fn adapt(&self) {
        if let Some(adapting) = &self.adapting
            && adapting.hardened.fetch_add(1, Ordering::Relaxed) + 1 >= APPENDS_MIN
        {
            let now = self.clock();
            if now >= adapting.ends_at.load(Ordering::Relaxed) {
                self.end_period(adapting, now);
            }
        }
    }

    #[cold]
    fn end_period(&self, adapting: &AdaptiveTuner, now: u64) {
        let Some(mut state) = adapting.state.try_lock() else {
            return;
        };
        if now < adapting.ends_at.load(Ordering::Relaxed) {
            return;
        }
        adapting.ends_at.store(now + PERIOD_NS, Ordering::Relaxed);
        adapting.hardened.store(0, Ordering::Relaxed);
        let period = self.measure(&mut state, now);
        let decisions = state.controller.on(&period);
        for decision in decisions {
            let to = decision.to;
            match decision.what {
                TunedSetting::Lanes => {
                    self.use_lanes(usize::try_from(to).unwrap_or(usize::MAX));
                }
                TunedSetting::FlushUnit => self
                    .tuning
                    .set_flush_unit_bytes(usize::try_from(to).unwrap_or(usize::MAX)),
                TunedSetting::Buffer => {
                    let bytes = usize::try_from(to).unwrap_or(usize::MAX);
                    self.lanes.iter().for_each(|lane| lane.limit_buffer(bytes));
                }
                TunedSetting::FlushTimeout => self.tuning.set_flush_timeout_ns(to),
                TunedSetting::Gather => self.tuning.set_gather_ns(to),
            }
            if state.kept.len() == KEPT {
                state.kept.pop_front();
            }
            state.kept.push_back(DecisionRecord {
                at_micros: self.env.clock.now_micros_since_2000(),
                decision,
            });
        }
    }

    fn measure(&self, state: &mut State, now: u64) -> PeriodTotals {
        let mut period = PeriodTotals {
            ns: now.saturating_sub(state.since),
            ..PeriodTotals::default()
        };
        let (mut payload_bytes, mut refused) = (0, 0);
        for lane in &self.lanes {
            for (all, of) in period.appends.iter_mut().zip(lane.take_appends()) {
                AppendTimes::add_all(all, &of);
            }
            let counters = lane.counters();
            payload_bytes += counters.payload_bytes;
            refused += counters.refused_full;
        }
        for worker_slot in &self.worker_slots {
            period.commits += worker_slot.commits.swap(0, Ordering::Relaxed);
            period.wait_ns += worker_slot.wait_ns.swap(0, Ordering::Relaxed);
        }
        period.payload_bytes = payload_bytes - state.payload_bytes;
        period.refused = refused - state.refused;
        state.since = now;
        state.payload_bytes = payload_bytes;
        state.refused = refused;
        period
    }

    /// What adapts, what is in force, and the last decisions.
    pub fn adaptive(&self) -> AdaptiveStatus {
        let protocol_config = self.protocol_config();
        let tuning = Tuning {
            lanes: self.lanes_in_use(),
            flush_unit_bytes: protocol_config.flush_unit_bytes,
            buffer_bytes: self.options.lane_buffer_bytes,
            flush_timeout_ns: protocol_config.flush_timeout_ns,
            gather_ns: protocol_config.gather_ns,
        };
        let mut adaptive = AdaptiveStatus {
            adapt: AdaptiveSettings::NOTHING,
            tuning,
            measured: Measurements::default(),
            decisions: Vec::new(),
        };
        if let Some(adapting) = &self.adapting {
            let state = adapting.state.lock();
            adaptive.adapt = adapting.adapt;
            adaptive.tuning.buffer_bytes = state.controller.tuning().buffer_bytes;
            adaptive.measured = state.controller.measured();
            adaptive.decisions = state.kept.iter().cloned().collect();
        }
        adaptive
    }
}
