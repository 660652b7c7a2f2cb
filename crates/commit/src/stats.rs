//! What the commit path counts and times.

use std::sync::LazyLock;

use hdrhistogram::Histogram;

/// Longest time told apart from longer ones: an hour.
const NS_MAX: u64 = 3_600_000_000_000;
/// Two significant digits: a percent.
const DIGITS: u8 = 2;

/// Why hardened transactions had to wait, when they were first looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Did not: acknowledged when their block was.
    pub none: u64,
    /// For the horizon.
    pub horizon: u64,
    /// For the GSN of other lanes.
    pub gsn: u64,
    /// For a predecessor by name.
    pub predecessor: u64,
}

impl WaitCounts {
    /// Adds another's counts.
    pub fn add(&mut self, other: &WaitCounts) {
        self.none += other.none;
        self.horizon += other.horizon;
        self.gsn += other.gsn;
        self.predecessor += other.predecessor;
    }
}

/// A part of a transaction's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// From its begin to its pre-commit.
    Execution,
    /// From the pre-commit until its block was sealed.
    LaneWait,
    /// From then until the block was hardened.
    Flush,
    /// From then until it was Committed.
    DependencyWait,
    /// From then until whoever waited for it went on.
    Acknowledgment,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 5] = [
        Phase::Execution,
        Phase::LaneWait,
        Phase::Flush,
        Phase::DependencyWait,
        Phase::Acknowledgment,
    ];

    /// Its name, as in `logstead_commit_latency`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Execution => "execution",
            Phase::LaneWait => "lane wait",
            Phase::Flush => "flush",
            Phase::DependencyWait => "dependency wait",
            Phase::Acknowledgment => "acknowledgment",
        }
    }
}

/// A histogram per phase, in nanoseconds. Those that count nothing take no memory.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    phases: [Option<Box<Histogram<u64>>>; 5],
}

/// What a phase that counts nothing looks like.
static NOTHING: LazyLock<Histogram<u64>> = LazyLock::new(histogram);

fn histogram() -> Histogram<u64> {
    // The bounds are constants that the library accepts; were they not, a histogram that grows serves too.
    Histogram::new_with_bounds(1, NS_MAX, DIGITS)
        .or_else(|_| Histogram::new(DIGITS))
        .unwrap_or_else(|_| unreachable!("two digits are a valid precision"))
}

impl Latencies {
    fn of_mut(&mut self, phase: usize) -> &mut Histogram<u64> {
        self.phases[phase].get_or_insert_with(|| Box::new(histogram()))
    }

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, phase: Phase, ns: u64) {
        self.of_mut(phase as usize).saturating_record(ns.max(1));
    }

    /// The histogram of a phase.
    pub fn of(&self, phase: Phase) -> &Histogram<u64> {
        self.phases[phase as usize].as_deref().unwrap_or(&NOTHING)
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Latencies) {
        for (phase, theirs) in other.phases.iter().enumerate() {
            if let Some(theirs) = theirs {
                // Both have the same bounds.
                let _cannot_fail = self.of_mut(phase).add(&**theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_several_workers_add_up() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        one.record(Phase::Flush, 1_000);
        other.record(Phase::Flush, 9_000_000_000_000_000);
        other.record(Phase::Acknowledgment, 0);
        one.add(&other);
        assert_eq!(one.of(Phase::Flush).len(), 2);
        assert_eq!(one.of(Phase::Acknowledgment).len(), 1);
        assert!(one.of(Phase::Flush).max() >= NS_MAX - NS_MAX / 50);
    }
}
