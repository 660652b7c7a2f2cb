//! When the last flushes of a lane were sealed and hardened: for the parts of a commit's latency.

use super::FlushTimes;
use std::collections::VecDeque;

/// Classes of append sizes: up to 16 KiB, and then each up to twice as much as the one before; the last has no limit.
pub const APPEND_CLASSES: usize = 12;
const CLASS_LOG_MIN: u32 = 14;

/// The class of an append of so many bytes.
pub fn append_class(bytes: u64) -> usize {
    let log = bytes.max(1).next_power_of_two().trailing_zeros();
    (log.saturating_sub(CLASS_LOG_MIN) as usize).min(APPEND_CLASSES - 1)
}

/// How long appends of one class took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendTimes {
    /// How many there were.
    pub count: u64,
    /// From when they were sealed until they completed, all together.
    pub ns: u64,
    /// The slowest.
    pub ns_max: u64,
}

impl AppendTimes {
    /// One more.
    pub fn add(&mut self, ns: u64) {
        self.add_all(&AppendTimes {
            count: 1,
            ns,
            ns_max: ns,
        });
    }

    /// Others.
    pub fn add_all(&mut self, others: &AppendTimes) {
        self.count += others.count;
        self.ns = self.ns.saturating_add(others.ns);
        self.ns_max = self.ns_max.max(others.ns_max);
    }
}

/// By class.
pub type AppendTimesBySize = [AppendTimes; APPEND_CLASSES];

/// How many are kept: far more than are in flight, so that who was woken by one still finds it.
const KEPT: usize = 64;

/// The last flushes, in the order of the lane's cursor.
pub(super) struct FlushHistory {
    /// Start, and the rest.
    last: VecDeque<(u64, FlushTimes)>,
}

impl FlushHistory {
    pub(super) fn new() -> FlushHistory {
        FlushHistory {
            last: VecDeque::with_capacity(KEPT),
        }
    }

    pub(super) fn add(&mut self, start: u64, times: FlushTimes) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((start, times));
    }

    /// The flush of the bytes before `at`.
    pub(super) fn find(&self, at: u64) -> Option<FlushTimes> {
        let index = self.last.partition_point(|(_, times)| times.end.0 < at);
        let &(start, times) = self.last.get(index)?;
        (start < at).then_some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Cursor;
    use logstead_env::Instant;

    #[test]
    fn appends_are_told_apart_by_size() {
        let classes = [1, 16 << 10, (16 << 10) + 1, 32 << 10, 512 << 10, 1 << 40];
        assert_eq!(classes.map(append_class), [0, 0, 1, 1, 5, 11]);
        let mut appends = AppendTimes::default();
        [5, 9, 1].into_iter().for_each(|ns| appends.add(ns));
        assert_eq!((appends.count, appends.ns, appends.ns_max), (3, 15, 9));
    }

    #[test]
    fn the_last_64_are_found_by_any_cursor_within_them() {
        let mut flushed = FlushHistory::new();
        for flush in 0..70 {
            let times = FlushTimes {
                end: Cursor(flush * 10 + 10),
                sealed_at: Instant::from_nanos(flush),
                hardened_at: Instant::from_nanos(flush + 1),
            };
            flushed.add(flush * 10, times);
        }
        let sealed = |at| flushed.find(at).map(|times| times.sealed_at.as_nanos());
        assert_eq!(sealed(60), None, "forgotten");
        assert_eq!(sealed(61), Some(6), "the oldest that is kept");
        assert_eq!((sealed(70), sealed(71)), (Some(6), Some(7)));
        assert_eq!((sealed(700), sealed(701)), (Some(69), None));
    }
}
