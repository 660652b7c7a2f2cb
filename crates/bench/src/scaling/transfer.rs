//! What a line takes from one core of this machine to another: two threads wait for each other's store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logstead_env::Env;

/// Round trips timed together, and how many such batches; the fastest counts, since others run here, too.
const ROUND_TRIPS: u64 = 2_000;
const BATCHES: u64 = 500;

#[repr(align(128))]
struct Ball(AtomicU64);

/// Nanoseconds of one transfer.
pub fn own_transfer_ns(env: &Env) -> std::io::Result<f64> {
    let ball = Arc::new(Ball(AtomicU64::new(0)));
    let other = Arc::clone(&ball);
    let last = 2 * ROUND_TRIPS * BATCHES;
    // Odd numbers are answered with the next even one.
    let partner = env.spawn("transfer-1", Some(1), move || {
        for odd in (1..last).step_by(2) {
            swap(&other.0, odd);
        }
    })?;
    let clock = Arc::clone(&env.clock);
    let (told, tells) = logstead_env::channel();
    let first = env.spawn("transfer-0", Some(0), move || {
        let mut fastest = u64::MAX;
        let mut even = 0;
        for _ in 0..BATCHES {
            let begun = clock.monotonic().as_nanos();
            for _ in 0..ROUND_TRIPS {
                swap(&ball.0, even);
                even += 2;
            }
            fastest = fastest.min(clock.monotonic().as_nanos() - begun);
        }
        // Its receiver waits below.
        let _told = told.send(fastest);
    })?;
    first.join()?;
    partner.join()?;
    let fastest = tells.recv().map_err(std::io::Error::other)?;
    Ok(fastest as f64 / (2 * ROUND_TRIPS) as f64)
}

/// Waits for a number and stores the next one.
fn swap(ball: &AtomicU64, from: u64) {
    let mut tries = 0_u32;
    while ball
        .compare_exchange_weak(from, from + 1, Ordering::AcqRel, Ordering::Relaxed)
        .is_err()
    {
        tries = tries.wrapping_add(1);
        if tries.is_multiple_of(1 << 14) {
            // The other thread may have lost its core.
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}
