//! What a run counts: per kind of transaction, by each worker for itself, added up at the end.

use hdrhistogram::Histogram;

/// Longest latency told apart: longer ones count as this.
const LATENCY_NS_MAX: u64 = 1_000_000_000_000;
/// Two significant digits: 1 % is finer than any two runs agree.
const DIGITS: u8 = 2;

/// A histogram of nanoseconds.
pub type Latencies = Histogram<u64>;

/// An empty histogram.
pub(crate) fn latencies() -> Latencies {
    // Fails only for bounds or digits out of range, and these are constants in range.
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
        .unwrap_or_else(|error| unreachable!("constant bounds: {error}"))
}

/// What happened to one kind of transaction.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Acknowledged.
    pub committed: u64,
    /// Rolled back as the workload says.
    pub rolled_back: u64,
    /// Run again after a serialization failure (40001).
    pub conflicts: u64,
    /// Run again as the victim of a deadlock (40P01).
    pub deadlocks: u64,
    /// From the end of forward processing to the acknowledgment.
    pub commit: Latencies,
    /// The same of those that wrote: who only read has often nothing to wait for.
    pub writing: Latencies,
    /// From the beginning (open loop: the arrival) to the acknowledgment, retries included.
    pub whole: Latencies,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            committed: 0,
            rolled_back: 0,
            conflicts: 0,
            deadlocks: 0,
            commit: latencies(),
            writing: latencies(),
            whole: latencies(),
        }
    }
}

impl Counts {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Counts) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.conflicts += other.conflicts;
        self.deadlocks += other.deadlocks;
        // Both have the same constant bounds, so this cannot fail.
        let added = self
            .commit
            .add(&other.commit)
            .and_then(|()| self.writing.add(&other.writing))
            .and_then(|()| self.whole.add(&other.whole));
        debug_assert!(added.is_ok());
    }
}

/// What a worker measured.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// By kind of transaction.
    pub kinds: Vec<Counts>,
    /// Committed per tenth of a second since the measurement began.
    pub timeline: Vec<u64>,
    /// Open loop: arrivals that nobody had begun when the run ended.
    pub backlog: u64,
    /// How long they had waited by then.
    pub unserved: EmptyLatencies,
    /// When the first transaction began and the last ended, in nanoseconds of the clock.
    pub span: Option<(u64, u64)>,
}

/// Latencies that are empty by default.
#[derive(Clone, Debug)]
pub struct EmptyLatencies(pub Latencies);

impl Default for EmptyLatencies {
    fn default() -> EmptyLatencies {
        EmptyLatencies(latencies())
    }
}

/// Length of a step of the timeline.
pub(crate) const STEP_NS: u64 = 100_000_000;

impl Measurements {
    /// For so many kinds.
    pub fn new(kinds: usize) -> Measurements {
        Measurements {
            kinds: (0..kinds).map(|_| Counts::default()).collect(),
            ..Measurements::default()
        }
    }

    /// Counts an append of the only kind, if it began while appends count.
    pub(crate) fn record(&mut self, began: u64, end: u64, from: u64, until: u64) {
        if began < from || began >= until {
            return;
        }
        let span = self.span.get_or_insert((began, end));
        *span = (span.0.min(began), span.1.max(end));
        let step = (end.saturating_sub(from) / STEP_NS) as usize;
        if self.timeline.len() <= step {
            self.timeline.resize(step + 1, 0);
        }
        self.timeline[step] += 1;
        let counts = &mut self.kinds[0];
        counts.committed += 1;
        counts.commit.saturating_record(end - began);
        counts.writing.saturating_record(end - began);
        counts.whole.saturating_record(end - began);
    }

    /// Adds what another worker measured.
    pub fn add(&mut self, other: &Measurements) {
        for (kind, others) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.add(others);
        }
        if self.timeline.len() < other.timeline.len() {
            self.timeline.resize(other.timeline.len(), 0);
        }
        for (step, others) in self.timeline.iter_mut().zip(&other.timeline) {
            *step += others;
        }
        self.backlog += other.backlog;
        let added = self.unserved.0.add(&other.unserved.0);
        debug_assert!(added.is_ok());
        self.span = match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
    }

    /// All kinds together; whole latencies count who was not served as well.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for kind in &self.kinds {
            total.add(kind);
        }
        let added = total.whole.add(&self.unserved.0);
        debug_assert!(added.is_ok());
        total
    }
}
