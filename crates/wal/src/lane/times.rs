//! When the last flushes of a lane were sealed and hardened: for the parts of a commit's latency.

use super::FlushTimes;
use std::collections::VecDeque;

/// How many are kept: far more than are in flight, so that who was woken by one still finds it.
const KEPT: usize = 64;

/// The last flushes, in the order of the lane's cursor.
pub(super) struct Flushed {
    /// Start, and the rest.
    last: VecDeque<(u64, FlushTimes)>,
}

impl Flushed {
    pub(super) fn new() -> Flushed {
        Flushed {
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
    fn the_last_64_are_found_by_any_cursor_within_them() {
        let mut flushed = Flushed::new();
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
