//! Random numbers: from the kernel in the server, from a seed in tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Source of random numbers, shared between threads.
pub trait Random: Send + Sync {
    /// A uniformly distributed number.
    fn u64(&self) -> u64;

    /// Fills `out` with random bytes.
    fn fill(&self, out: &mut [u8]) {
        for piece in out.chunks_mut(8) {
            let bytes = self.u64().to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }
}

/// One step of SplitMix64: mixes a counter into a number that passes the usual statistical tests.
pub(crate) const fn split_mix(counter: u64) -> u64 {
    let mut z = counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The kernel's random numbers, unpredictable: fit for cancel keys and salts.
#[derive(Debug, Default)]
pub struct RealRandom {
    _private: (),
}

impl RealRandom {
    /// A handle to the kernel's generator.
    pub fn new() -> RealRandom {
        RealRandom::default()
    }
}

impl Random for RealRandom {
    fn u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill(&self, out: &mut [u8]) {
        let mut filled = 0;
        while filled < out.len() {
            match rustix::rand::getrandom(&mut out[filled..], rustix::rand::GetRandomFlags::empty())
            {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                // Every kernel this server can run on has getrandom; guessable keys would be worse than stopping.
                Err(error) => panic!("the kernel gives no random numbers: {error}"),
            }
        }
    }
}

/// Seeded numbers: the same seed gives the same sequence.
#[derive(Debug)]
pub struct SimRandom {
    counter: AtomicU64,
}

impl SimRandom {
    /// A sequence determined by `seed`.
    pub fn new(seed: u64) -> SimRandom {
        SimRandom {
            counter: AtomicU64::new(split_mix(seed)),
        }
    }

    /// A number below `bound` (0 if `bound` is 0).
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.u64() % bound }
    }
}

impl Random for SimRandom {
    fn u64(&self) -> u64 {
        split_mix(
            self.counter
                .fetch_add(GOLDEN_GAMMA, Ordering::Relaxed)
                .wrapping_add(GOLDEN_GAMMA),
        )
    }
}
