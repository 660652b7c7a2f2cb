//! Time: a monotonic clock for measuring and a wall clock for SQL.
//!
//! Invariant: [`Clock::monotonic`] never goes back. The wall clock may jump; nothing about correctness hangs on it.
//!
//! There are two clocks for measuring because the usual one stands still while the machine is suspended, and whoever
//! holds something for a time only must not be mistaken about how much of it is over.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A moment on the monotonic clock: nanoseconds since the environment started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The moment `nanos` nanoseconds after the environment started.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the environment started.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(
            self.0
                .saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, rhs: Instant) -> Duration {
        self.since(rhs)
    }
}

/// Source of time.
pub trait Clock: Send + Sync {
    /// Now, on the clock that never goes back.
    fn monotonic(&self) -> Instant;

    /// Now, on a clock that never goes back and does not stand still while the machine is suspended. For leases; its
    /// moments are not comparable with those of [`monotonic`](Self::monotonic).
    fn boot_time(&self) -> Instant {
        self.monotonic()
    }

    /// Wall-clock microseconds since 2000-01-01 00:00 UTC, PostgreSQL's timestamp.
    fn now_micros_since_2000(&self) -> i64;
}

/// Microseconds between 1970-01-01 and 2000-01-01.
const MICROS_1970_TO_2000: i64 = 946_684_800_000_000;

/// The machine's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: std::time::Instant,
    /// Nanoseconds since boot when the clock was made.
    boot_start: u64,
}

impl RealClock {
    /// A clock whose monotonic zero is now.
    pub fn new() -> RealClock {
        RealClock {
            start: std::time::Instant::now(),
            boot_start: nanos_since_boot(),
        }
    }
}

/// Nanoseconds since the machine was started, those it was suspended included.
fn nanos_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn monotonic(&self) -> Instant {
        Instant(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn boot_time(&self) -> Instant {
        Instant(nanos_since_boot().saturating_sub(self.boot_start))
    }

    fn now_micros_since_2000(&self) -> i64 {
        let since_1970 = match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros)
            }
        };
        since_1970.saturating_sub(MICROS_1970_TO_2000)
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct SimClock {
    nanos: AtomicU64,
}

impl SimClock {
    /// A clock at zero.
    pub fn new() -> SimClock {
        SimClock::default()
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        self.nanos.fetch_add(
            u64::try_from(by.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }
}

impl Clock for SimClock {
    fn monotonic(&self) -> Instant {
        Instant(self.nanos.load(Ordering::Relaxed))
    }

    fn now_micros_since_2000(&self) -> i64 {
        i64::try_from(self.nanos.load(Ordering::Relaxed) / 1_000).unwrap_or(i64::MAX)
    }
}
