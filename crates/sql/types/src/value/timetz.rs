//! Values of `time with time zone`: a time of day and how far its zone is from UTC.

use super::calendar::SECOND;
use std::cmp::Ordering;

/// A `time with time zone` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeTz {
    /// Local time: microseconds since midnight.
    pub micros: i64,
    /// Seconds that the zone is west of UTC, as PostgreSQL keeps and sends it.
    pub west: i32,
}

/// Offsets are smaller than this many seconds.
pub const WEST_END: i32 = 16 * 3600;

impl TimeTz {
    /// The same time in UTC; it may lie on the day before or after.
    pub fn utc_micros(&self) -> i64 {
        self.micros + i64::from(self.west) * SECOND
    }

    /// PostgreSQL's order: by the time in UTC, then by the zone.
    pub fn compare(&self, other: &TimeTz) -> Ordering {
        self.utc_micros()
            .cmp(&other.utc_micros())
            .then_with(|| self.west.cmp(&other.west))
    }

    /// Appends the time and the offset.
    pub fn write(&self, out: &mut Vec<u8>) {
        super::datetime::write_time(self.micros, out);
        super::datetime::write_offset(-i64::from(self.west), out);
    }
}
