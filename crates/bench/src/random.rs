//! Seeded random numbers and the distributions that workloads draw keys from.
//!
//! Invariant: the same seed gives the same sequence. Nothing here is shared between threads.

/// xoshiro256**: small, fast, and good enough for every test of uniformity a workload could notice.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Rng {
        // SplitMix64 spreads the seed over the state, as the generator's authors advise.
        let mut counter = seed;
        Rng(std::array::from_fn(|_| {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(counter)
        }))
    }

    /// The sequence of part `part` of the work of `seed`: independent of the other parts'.
    pub fn of_part(seed: u64, part: u64) -> Rng {
        Rng::new(mix(seed ^ mix(part.wrapping_add(1))))
    }

    /// Any number.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let state = &mut self.0;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Below `bound`, which is not 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// From `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(u64::from(high - low) + 1) as u32
    }

    /// From 0 to 1, 1 excluded.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Time to the next event of a Poisson process, as a multiple of the mean.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

const fn mix(counter: u64) -> u64 {
    let mut z = counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The k-th most popular key in proportion to 1 / k^theta.
    Zipfian {
        /// The skew; 0.99 is YCSB's.
        theta: f64,
    },
    /// A fraction of the keys gets a fraction of the accesses.
    Hotspot {
        /// Which part of the keys is hot.
        keys: f64,
        /// Which part of the accesses goes there.
        accesses: f64,
    },
}

/// Draws keys from 0 to n - 1.
#[derive(Clone, Debug)]
pub struct KeyGenerator {
    n: u64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Zipfian(Zipfian, u64),
    Hotspot { hot: u64, accesses: f64 },
}

impl KeyGenerator {
    /// For `n` keys, at least 1.
    pub fn new(distribution: Distribution, n: u64) -> KeyGenerator {
        let n = n.max(1);
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zipfian { theta } => Shape::Zipfian(Zipfian::new(n, theta), stride(n)),
            Distribution::Hotspot { keys, accesses } => Shape::Hotspot {
                hot: ((n as f64 * keys).round() as u64).clamp(1, n),
                accesses,
            },
        };
        KeyGenerator { n, shape }
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The next key.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.shape {
            Shape::Uniform => rng.below(self.n),
            Shape::Zipfian(zipfian, stride) => {
                // Popular keys are spread over the table: neighbours in an index are not popular together.
                let rank = zipfian.rank(rng) - 1;
                (u128::from(rank) * u128::from(*stride) % u128::from(self.n)) as u64
            }
            Shape::Hotspot { hot, accesses } => {
                if *hot == self.n || rng.unit() < *accesses {
                    rng.below(*hot)
                } else {
                    hot + rng.below(self.n - hot)
                }
            }
        }
    }
}

/// A number without common divisor with `n`, about 0.618 of it: multiples of it visit every key once.
fn stride(n: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut stride = (n as f64 * 0.618_033_988_75) as u64 + 1;
    while gcd(stride, n) != 1 {
        stride += 1;
    }
    stride
}

/// Exact Zipfian ranks by rejection-inversion (Hörmann and Derflinger 1996): constant set-up, no table, no
/// approximation (YCSB's own generator approximates from the third rank on).
#[derive(Clone, Debug)]
struct Zipfian {
    n: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

impl Zipfian {
    fn new(n: u64, theta: f64) -> Zipfian {
        let mut zipfian = Zipfian {
            n: n as f64,
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            accept: 0.0,
        };
        zipfian.integral_first = zipfian.integral(1.5) - 1.0;
        zipfian.integral_last = zipfian.integral(n as f64 + 0.5);
        zipfian.accept =
            2.0 - zipfian.integral_inverse(zipfian.integral(2.5) - zipfian.density(2.0));
        zipfian
    }

    /// 1 to n.
    fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.integral_last + rng.unit() * (self.integral_first - self.integral_last);
            let x = self.integral_inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.accept || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of the density; defined for theta = 1 as well.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        let ratio = if t.abs() > 1e-8 {
            t.exp_m1() / t
        } else {
            1.0 + t / 2.0
        };
        ratio * log
    }

    fn integral_inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.theta)).max(-1.0);
        let ratio = if t.abs() > 1e-8 {
            t.ln_1p() / t
        } else {
            1.0 - t / 2.0
        };
        (ratio * x).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square of counts against expected probabilities, cells with less than 5 expected pooled.
    fn chi_square(counts: &[u64], probabilities: &[f64]) -> (f64, usize) {
        let total: u64 = counts.iter().sum();
        let (mut sum, mut cells) = (0.0, 0);
        let (mut pooled_count, mut pooled_expected) = (0.0, 0.0);
        for (count, probability) in counts.iter().zip(probabilities) {
            pooled_count += *count as f64;
            pooled_expected += probability * total as f64;
            if pooled_expected >= 5.0 {
                sum += (pooled_count - pooled_expected).powi(2) / pooled_expected;
                cells += 1;
                (pooled_count, pooled_expected) = (0.0, 0.0);
            }
        }
        (sum, cells - 1)
    }

    /// The value that chi-square exceeds once in about 10,000 (Wilson-Hilferty).
    fn bound(degrees: usize) -> f64 {
        let k = degrees as f64;
        k * (1.0 - 2.0 / (9.0 * k) + 3.72 * (2.0 / (9.0 * k)).sqrt()).powi(3)
    }

    fn counts(keys: &KeyGenerator, draws: u64) -> Vec<u64> {
        let mut rng = Rng::new(42);
        let mut counts = vec![0; keys.count() as usize];
        for _ in 0..draws {
            counts[keys.draw(&mut rng) as usize] += 1;
        }
        counts
    }

    fn zipfian_probabilities(n: u64, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|w| w / sum).collect()
    }

    #[test]
    fn uniform_frequencies() {
        let n = 1000;
        let (chi, degrees) = chi_square(
            &counts(&KeyGenerator::new(Distribution::Uniform, n), 200_000),
            &vec![1.0 / n as f64; n as usize],
        );
        assert!(chi < bound(degrees), "{chi} with {degrees}");
    }

    #[test]
    fn zipfian_frequencies() {
        for (n, theta) in [
            (1000, 0.99),
            (10, 0.99),
            (1000, 0.5),
            (1000, 1.0),
            (1, 0.99),
        ] {
            let keys = KeyGenerator::new(Distribution::Zipfian { theta }, n);
            let counts = counts(&keys, 200_000);
            if n == 1 {
                assert_eq!(counts, [200_000]);
                continue;
            }
            let ranked: Vec<u64> = (0..n)
                .map(|rank| counts[(rank * stride(n) % n) as usize])
                .collect();
            let (chi, degrees) = chi_square(&ranked, &zipfian_probabilities(n, theta));
            assert!(
                chi < bound(degrees),
                "n {n} theta {theta}: {chi} with {degrees}"
            );
            // A slightly other skew is told apart, so the test can fail.
            let (chi, degrees) = chi_square(&ranked, &zipfian_probabilities(n, theta + 0.05));
            assert!(chi > bound(degrees), "n {n} theta {theta}: {chi}");
        }
    }

    #[test]
    fn hotspot_frequencies() {
        let keys = KeyGenerator::new(
            Distribution::Hotspot {
                keys: 0.2,
                accesses: 0.8,
            },
            100,
        );
        let probabilities: Vec<f64> = (0..100)
            .map(|k| if k < 20 { 0.8 / 20.0 } else { 0.2 / 80.0 })
            .collect();
        let (chi, degrees) = chi_square(&counts(&keys, 200_000), &probabilities);
        assert!(chi < bound(degrees), "{chi} with {degrees}");
    }

    #[test]
    fn every_rank_has_a_key_of_its_own() {
        for n in [1, 2, 3, 10, 1000, 4096, 99_991] {
            let mut seen = vec![false; n as usize];
            for rank in 0..n {
                seen[(u128::from(rank) * u128::from(stride(n)) % u128::from(n)) as usize] = true;
            }
            assert!(seen.iter().all(|s| *s), "{n}");
        }
    }

    #[test]
    fn between_includes_both_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u32> = (0..1000).map(|_| rng.between(3, 5)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&5));
        assert_eq!(Rng::new(7).bits(), Rng::new(7).bits());
        assert_ne!(Rng::of_part(7, 0).bits(), Rng::of_part(7, 1).bits());
    }
}
