//! Random numbers that follow from a seed, as `setseed` promises: the same as PostgreSQL's, by Blackman and Vigna's
//! xoroshiro128**.

/// Where a row of random numbers is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeededRandom {
    state: [u64; 2],
}

impl SeededRandom {
    /// The row that a seed begins, which is spread over the state by splitmix64.
    pub(super) fn new(seed: u64) -> SeededRandom {
        let mut seed = seed;
        let mut spread = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut value = seed;
            value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            value ^ (value >> 31)
        };
        SeededRandom {
            state: [spread(), spread()],
        }
    }

    /// Where it is, for [`SeededRandom::of_state`].
    pub(super) fn state(self) -> [u64; 2] {
        self.state
    }

    pub(super) fn of_state(state: [u64; 2]) -> SeededRandom {
        SeededRandom { state }
    }

    pub(super) fn next(&mut self) -> u64 {
        let [first, second] = self.state;
        let mixed = second ^ first;
        let number = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.state = [
            first.rotate_left(24) ^ mixed ^ (mixed << 16),
            mixed.rotate_left(37),
        ];
        number
    }
}
