//! What the commit path counted during a run, and where transactions' time went.

use std::collections::BTreeMap;

use logstead_engine::{Engine, Phase, WaitCounts};

use crate::measure::Latencies;

/// Counts between two moments.
#[derive(Clone, Debug, Default)]
pub struct PathFigures {
    /// Blocks appended, over all lanes.
    pub appends: u64,
    /// Their bytes, padding included.
    pub appended_bytes: u64,
    /// Entries in them.
    pub entries: u64,
    /// How often a lane took another's entries along.
    pub steals: u64,
    /// How often somebody looked through a worker's transactions for some to acknowledge.
    pub looks: u64,
    /// Why hardened transactions had to wait.
    pub waits: WaitCounts,
    /// Times by phase, in the order of [`Phase::ALL`].
    phases: Vec<Latencies>,
    /// When it was looked at.
    now_ns: u64,
}

impl PathFigures {
    /// All there was until now.
    pub(crate) fn of(engine: &Engine) -> PathFigures {
        let latencies = engine.latencies();
        let mut all = PathFigures {
            phases: Phase::ALL
                .into_iter()
                .map(|phase| latencies.of(phase).clone())
                .collect(),
            now_ns: engine.commit_path().now(),
            ..PathFigures::default()
        };
        for stats in engine.lane_stats() {
            all.appends += stats.lane.blocks;
            all.appended_bytes += stats.lane.bytes;
            all.entries += stats.lane.entries;
            all.steals += stats.lane.steals;
            all.waits.add(&stats.waits);
            all.looks += stats.looks;
        }
        all
    }

    /// What came since `before`.
    pub(crate) fn since(mut self, before: &PathFigures) -> PathFigures {
        self.appends -= before.appends;
        self.appended_bytes -= before.appended_bytes;
        self.entries -= before.entries;
        self.steals -= before.steals;
        self.looks -= before.looks;
        self.waits.none -= before.waits.none;
        self.waits.horizon -= before.waits.horizon;
        self.waits.gsn -= before.waits.gsn;
        self.waits.predecessor -= before.waits.predecessor;
        for (phase, before) in self.phases.iter_mut().zip(&before.phases) {
            // What was counted then is counted still, so there is nothing to fail.
            let subtracted = phase.subtract(before);
            debug_assert!(subtracted.is_ok());
        }
        self.now_ns -= before.now_ns;
        self
    }

    /// Where the time went, phase by phase; nothing if nothing was timed.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (Phase, &Latencies)> {
        let is_timed = !self.phases.iter().all(Latencies::is_empty);
        let phases = Phase::ALL.into_iter().zip(&self.phases);
        phases.filter(move |_| is_timed)
    }

    /// Figures by name, if anything was committed.
    pub(crate) fn figures(&self) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        if self.entries == 0 || self.now_ns == 0 {
            return figures;
        }
        let entries = self.entries as f64;
        let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), value);
        put("appends per commit", self.appends as f64 / entries);
        put(
            "appends per second",
            self.appends as f64 * 1e9 / self.now_ns as f64,
        );
        put(
            "appended bytes per commit",
            self.appended_bytes as f64 / entries,
        );
        if self.appends > 0 {
            put(
                "bytes per append",
                self.appended_bytes as f64 / self.appends as f64,
            );
        }
        put(
            "looks for acknowledgment per commit",
            self.looks as f64 / entries,
        );
        if self.steals > 0 {
            put(
                "steals per append",
                self.steals as f64 / self.appends.max(1) as f64,
            );
        }
        let waits = &self.waits;
        let looked = waits.none + waits.horizon + waits.gsn + waits.predecessor;
        if looked > 0 {
            let percent = |n: u64| 100.0 * n as f64 / looked as f64;
            put(
                "hardened and not yet committed, %",
                percent(looked - waits.none),
            );
        }
        figures
    }
}
