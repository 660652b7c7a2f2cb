//! Which of the checkpoints before the newest are kept as restore points, by time.
//!
//! - One becomes a restore point when a newer one is published and the newest restore point is older than the interval.
//!   So what a point stands for reaches up to the next one, also where nothing happened for a long time.
//! - Beyond an hour they are thinned: one for ten intervals. One stays if the next one is that much younger than the
//!   last that stayed: so what was newest for a long time stays.
//! - Those older than the retention go.
//!
//! Clocks go back. A point counts as at most as old as any point after it makes it, and none is younger than now: so
//! they are in order again, whatever the clock said when they were taken.
//!
//! Pure: times and points in, points out.

use crate::record::RetainedRecord;
use logstead_home::ObjectId;
use std::collections::BTreeSet;
use std::time::Duration;

/// From here on points are thinned.
const THINNED_AFTER: Duration = Duration::from_secs(3600);
/// Of so many one is left.
const THINNED: u32 = 10;

/// Which checkpoints are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// A restore point for so long.
    pub interval: Duration,
    /// Restore points stay for so long; zero: none is kept.
    pub retention: Duration,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            interval: Duration::from_secs(60),
            retention: Duration::ZERO,
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl Retention {
    /// Of these, by CSN, the last of which has been the newest until now: those that stay. `now` in microseconds since
    /// 2000-01-01 00:00 UTC.
    pub fn choose(&self, points: &[RetainedRecord], now: i64) -> BTreeSet<ObjectId> {
        let mut stay = BTreeSet::new();
        let Some((newest, kept)) = points.split_last() else {
            return stay;
        };
        if self.retention.is_zero() {
            return stay;
        }
        let interval = micros(self.interval);
        // From the newest back: when each was taken, in order.
        let mut latest = now.min(newest.taken_at_micros);
        let is_due = |last: &RetainedRecord| {
            let passed = now.saturating_sub(last.taken_at_micros);
            // The clock went back: nobody knows how much has passed.
            passed >= interval || passed < 0
        };
        if kept.last().is_none_or(is_due) {
            stay.insert(newest.object);
        }
        // Each with its age, and that of the one after it.
        let mut aged: Vec<(ObjectId, i64, i64)> = Vec::with_capacity(kept.len());
        let mut next = now.saturating_sub(latest);
        for point in kept.iter().rev() {
            latest = latest.min(point.taken_at_micros);
            let age = now.saturating_sub(latest);
            aged.push((point.object, age, next));
            next = age;
        }
        let thinned = interval.saturating_mul(i64::from(THINNED));
        // Oldest first, so that those that are left stay the same from one time to the next.
        let mut before: Option<i64> = None;
        for (object, age, next) in aged.into_iter().rev() {
            if age > micros(self.retention) {
                continue;
            }
            if age <= micros(THINNED_AFTER) || before.is_none_or(|before| before - next >= thinned)
            {
                stay.insert(object);
                before = Some(age);
            }
        }
        stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_types::{Csn, Epoch};

    const SECOND: i64 = 1_000_000;

    fn point(number: u32, seconds: i64) -> RetainedRecord {
        RetainedRecord {
            object: ObjectId::new(Epoch(1), number),
            crc: 0,
            csn: Csn(u64::from(number)),
            taken_at_micros: seconds * SECOND,
        }
    }

    /// Publishes one checkpoint after the other at these times; what is kept then, by time taken.
    fn run(retention: Retention, times: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let mut points: Vec<RetainedRecord> = Vec::new();
        for (number, time) in times.into_iter().enumerate() {
            let stay = retention.choose(&points, time * SECOND);
            points.retain(|point| stay.contains(&point.object));
            points.push(point(number as u32, time));
        }
        points.pop();
        points
            .iter()
            .map(|point| point.taken_at_micros / SECOND)
            .collect()
    }

    fn retention(interval: u64, retention: u64) -> Retention {
        Retention {
            interval: Duration::from_secs(interval),
            retention: Duration::from_secs(retention),
        }
    }

    #[test]
    fn without_a_retention_none_is_kept() {
        assert!(run(Retention::default(), (0..500).map(|n| n * 2)).is_empty());
    }

    #[test]
    fn one_per_interval_is_kept_for_the_retention() {
        let kept = run(retention(60, 300), (0..=1000).map(|n| n * 2));
        assert!(
            kept.windows(2).all(|pair| pair[1] - pair[0] <= 62),
            "{kept:?}"
        );
        assert!((4..=6).contains(&kept.len()), "{kept:?}");
        assert!(kept.iter().all(|time| 2000 - time <= 302), "{kept:?}");
    }

    #[test]
    fn what_was_newest_for_long_is_kept() {
        // The database was idle from 40 to 4000: what it was then is the state of all that time. It stays so when it is
        // old enough to be thinned.
        let kept = run(retention(60, 100_000), [0, 20, 40, 4000, 4002]);
        assert_eq!(kept, [0, 40, 4000]);
    }

    #[test]
    fn beyond_an_hour_one_in_ten_is_left_and_stays() {
        let kept = run(retention(60, 100_000), (0..=20_000).map(|n| n * 2));
        let (old, young): (Vec<i64>, Vec<i64>) =
            kept.iter().partition(|time| 40_000 - **time > 3_600 + 60);
        assert!((55..=64).contains(&young.len()), "{young:?}");
        assert!(
            old.windows(2)
                .all(|pair| (540..=660).contains(&(pair[1] - pair[0]))),
            "{old:?}"
        );
        assert_eq!(old[0], 0);
        assert!((55..=70).contains(&old.len()), "{old:?}");
    }

    #[test]
    fn a_clock_that_goes_back_neither_keeps_all_nor_drops_any_too_soon() {
        // An hour back after a while, then on.
        let times = (0..100)
            .map(|n| 10_000 + n * 10)
            .chain((0..100).map(|n| 7_400 + n * 10));
        let kept = run(retention(60, 5_000), times);
        assert!(
            kept.iter().filter(|time| **time >= 10_000).count() >= 14,
            "{kept:?}"
        );
        assert!(kept.len() < 45, "{kept:?}");
        // A clock that was ahead for one checkpoint keeps nothing for ever.
        let kept = run(
            retention(60, 300),
            [0, 1_000_000].into_iter().chain((1..200).map(|n| n * 10)),
        );
        assert!(!kept.contains(&1_000_000), "{kept:?}");
        assert!(kept.len() < 8, "{kept:?}");
    }
}
