//! Which waits had no reason: the dependency graph of a run, drawn from the data itself, against the moments of the
//! commit path.
//!
//! Every row tells who wrote it last, by a token, so a transaction knows whose work it met without asking the engine. A
//! transaction *might have been Committed* when it and everything it depends on, directly or not, had been hardened and
//! looked at. What it waited beyond that moment was needless: its tracking took others for predecessors. The time from
//! a block's hardening to the look at its transactions is nobody's false dependency and does not count; that between a
//! predecessor's look and the reaction to it does, and is microseconds.
//!
//! Beside that it tells for how long transactions have held the horizon: from before `reserved` was published until it
//! was cleared.
//!
//! Invariant: nothing here comes from the engine's own tracking but the moments.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use logstead_engine::{CommitStage, Csn, Engine};
use parking_lot::Mutex;

use crate::driver::WorkShare;
use crate::measure::latencies;

/// Shards of the moments, so that acknowledging threads do not meet.
const SHARDS: u64 = 64;
/// Traced transactions that a client keeps before it hands them over.
const KEPT: usize = 64;
/// A wait is called needless beyond this: shorter ones are the processing of a predecessor's commit.
const PROCESSING_NS: u64 = 100_000;

/// A committed transaction and whose work it met.
struct Traced {
    csn: Csn,
    token: u64,
    met: Vec<u64>,
}

/// When it happened, in nanoseconds; 0 is not yet.
#[derive(Clone, Copy, Default)]
struct Moments {
    entered: u64,
    pushed: u64,
    looked: u64,
    waited: bool,
    committed: u64,
}

/// What a run leaves for the judgment.
pub(crate) struct Trace {
    transactions: Mutex<Vec<Traced>>,
    moments: Arc<[Mutex<HashMap<u64, Moments>>]>,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace {
            transactions: Mutex::default(),
            moments: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Trace {
    /// Keeps the moments of every transaction from now on.
    pub(crate) fn observe(&self, engine: &Engine) {
        let moments = Arc::clone(&self.moments);
        let observer = Box::new(move |csn: Csn, moment, at| {
            let mut shard = moments[(csn.0 % SHARDS) as usize].lock();
            let of = shard.entry(csn.0).or_default();
            match moment {
                CommitStage::Hardened => of.looked = at,
                CommitStage::Waits => of.waited = true,
                CommitStage::Committed => of.committed = at,
                CommitStage::Entered => of.entered = at,
                CommitStage::Pushed => of.pushed = at,
            }
        });
        // The engine is new: nobody else observes it.
        let first = engine.commit_path().observe(observer);
        debug_assert!(first.is_ok());
    }

    /// Figures by name.
    pub(crate) fn judge(&self) -> BTreeMap<String, f64> {
        let mut moments = HashMap::new();
        for shard in self.moments.iter() {
            moments.extend(shard.lock().drain());
        }
        let mut figures = judge(std::mem::take(&mut *self.transactions.lock()), &moments);
        figures.extend(held(moments.values()));
        figures
    }
}

fn judge(mut transactions: Vec<Traced>, moments: &HashMap<u64, Moments>) -> BTreeMap<String, f64> {
    // A predecessor's CSN is the smaller one.
    transactions.sort_unstable_by_key(|traced| traced.csn);
    let mut might_by_token: HashMap<u64, u64> = HashMap::with_capacity(transactions.len());
    let mut needless = latencies();
    let (mut waited, mut long) = (0_u64, 0_u64);
    for traced in &transactions {
        let Some(own) = moments.get(&traced.csn.0) else {
            continue;
        };
        // Who is not known was there before the run.
        let met = traced
            .met
            .iter()
            .filter_map(|token| might_by_token.get(token));
        let might = met.copied().fold(own.looked, u64::max);
        might_by_token.insert(traced.token, might);
        if own.looked == 0 || own.committed == 0 {
            continue;
        }
        waited += u64::from(own.waited);
        let wait = if own.waited {
            own.committed.saturating_sub(might)
        } else {
            0
        };
        needless.saturating_record(wait);
        long += u64::from(wait > PROCESSING_NS);
    }
    let count = needless.len() as f64;
    if count == 0.0 {
        return BTreeMap::new();
    }
    BTreeMap::from(
        [
            (
                "waited when hardened, % of commits",
                100.0 * waited as f64 / count,
            ),
            (
                "needless wait beyond 100 us, % of commits",
                100.0 * long as f64 / count,
            ),
            ("needless wait, mean us", needless.mean() / 1e3),
            (
                "needless wait, p99 us",
                needless.value_at_percentile(99.0) as f64 / 1e3,
            ),
            ("commits traced", count),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    )
}

/// For how long the horizon stood still for one transaction.
fn held<'m>(moments: impl Iterator<Item = &'m Moments>) -> BTreeMap<String, f64> {
    let mut held = latencies();
    for of in moments.filter(|of| of.pushed > 0) {
        held.saturating_record(of.pushed.saturating_sub(of.entered));
    }
    if held.is_empty() {
        return BTreeMap::new();
    }
    let at = |percentile| held.value_at_percentile(percentile) as f64 / 1e3;
    BTreeMap::from(
        [
            ("horizon held by one commit, p50 us", at(50.0)),
            ("horizon held by one commit, p99.9 us", at(99.9)),
            (
                "horizon held by one commit, max us",
                held.max() as f64 / 1e3,
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    )
}

/// A client's part of the trace.
pub(crate) struct Tracer {
    trace: Arc<Trace>,
    token: u64,
    met: Vec<u64>,
    kept: Vec<Traced>,
}

impl Tracer {
    pub(crate) fn new(trace: &Arc<Trace>, seat: WorkShare) -> Tracer {
        Tracer {
            trace: Arc::clone(trace),
            token: (seat.worker as u64) << 52 | (seat.session as u64 & 0xfffff) << 32,
            met: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// A transaction begins, or begins again; gives the token for what it writes, never 0.
    pub(crate) fn begin(&mut self) -> u64 {
        self.token += 1;
        self.met.clear();
        self.token
    }

    /// It has met this token in a row.
    pub(crate) fn read(&mut self, token: u64) {
        // What was loaded has none, and what it wrote itself is no dependency.
        if token != 0 && token != self.token {
            self.met.push(token);
        }
    }

    pub(crate) fn committed(&mut self, csn: Csn) {
        self.kept.push(Traced {
            csn,
            token: self.token,
            met: std::mem::take(&mut self.met),
        });
        if self.kept.len() >= KEPT {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.trace.transactions.lock().append(&mut self.kept);
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(csn: u64, met: &[u64]) -> Traced {
        Traced {
            csn: Csn(csn),
            token: csn * 10,
            met: met.iter().map(|csn| csn * 10).collect(),
        }
    }

    const MS: u64 = 1_000_000;

    fn figures(moments: &[(u64, u64, u64)], transactions: Vec<Traced>) -> (f64, f64, f64) {
        let moments = moments
            .iter()
            .map(|&(csn, looked, committed)| {
                let (looked, committed) = (looked * MS, committed * MS);
                let waited = looked != committed;
                (
                    csn,
                    Moments {
                        looked,
                        waited,
                        committed,
                        ..Moments::default()
                    },
                )
            })
            .collect();
        let figures = judge(transactions, &moments);
        (
            figures["waited when hardened, % of commits"],
            figures["needless wait beyond 100 us, % of commits"],
            figures["needless wait, mean us"].round(),
        )
    }

    #[test]
    fn waiting_for_a_predecessor_is_no_needless_wait() {
        // 2 read from 1, whose lane is slow; 3 read from 2.
        let moments = [(1, 9, 9), (2, 4, 9), (3, 5, 9)];
        let transactions = vec![traced(3, &[2]), traced(1, &[]), traced(2, &[1])];
        let (waited, long, mean) = figures(&moments, transactions);
        assert!((waited - 200.0 / 3.0).abs() < 0.1);
        assert_eq!((long, mean), (0.0, 0.0));
    }

    #[test]
    fn the_horizon_is_held_from_the_lane_s_lock_to_the_push() {
        let of = |entered, pushed| Moments {
            entered,
            pushed,
            ..Moments::default()
        };
        let moments = [of(1_000, 2_000), of(5_000, 6_000), of(100, 4_100), of(7, 0)];
        let figures = held(moments.iter());
        assert_eq!(figures["horizon held by one commit, p50 us"].round(), 1.0);
        assert_eq!(figures["horizon held by one commit, max us"].round(), 4.0);
        assert!(held([of(7, 0)].iter()).is_empty(), "one that is not pushed");
    }

    #[test]
    fn waiting_for_a_stranger_is() {
        // As the horizon has it: 2 waits for 1, which it never met, and 3 for 2's sake.
        let moments = [(1, 9, 9), (2, 4, 9), (3, 5, 9), (4, 9, 9)];
        let transactions = vec![
            traced(1, &[]),
            traced(2, &[]),
            traced(3, &[2]),
            traced(4, &[7]),
        ];
        let (waited, long, mean) = figures(&moments, transactions);
        assert_eq!((waited, long), (50.0, 50.0));
        // Five and four milliseconds, of four transactions; histograms are right to a percent.
        assert!((2_200.0..2_300.0).contains(&mean), "{mean}");
    }
}
