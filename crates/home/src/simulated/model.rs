//! Storage services as numbers: what a request takes, how that varies, what it costs.
//!
//! Invariants: a curve's points are in the order of their sizes; the medians of samples lie on the curve; the same seed
//! gives the same samples.
//!
//! | model | median | source |
//! |---|---|---|
//! | s3standard | 77 ms up to 2 MiB | milliscale §2.2 gives 77 ms at 2 MiB and "ten times" S3 Express below; flat below is ours |
//! | s3express | 8 ms up to 512 KiB, 22 ms at 2 MiB, linear beyond; reads 5 ms up to 256 KiB | milliscale §2.2, figure 2 |
//! | gp3 | 1 ms; 8,000 operations and 250 MB per second | milliscale §5 (provisioned so); latency: AWS says single-digit ms |
//! | io2 | 0.45 ms; 8,000 operations per second | milliscale §5; latency: AWS says below 0.5 ms on average at 16 KiB |
//! | nvme | 30 us | measured with O_DSYNC writes of 4 KiB on a local disk, which now and then takes 4 ms |
//!
//! The body of each distribution is lognormal. Stragglers come on top, as often as the paper's tails begin (§5.4: the
//! 99th percentile for S3 Express, the 99.9th for gp3 and io2); their factors are log-uniform, and ours.

use logstead_env::{Random, SimRandom};
use std::time::Duration;

/// Latency in microseconds at sizes in bytes, linear between and beyond the points, constant before the first.
pub type Curve = &'static [(u64, f64)];

/// What a service is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Objects over a network: appends at an offset are atomic, requests fail and are repeated, replies get lost.
    Objects,
    /// A block device: writes tear at sectors, and an error is final.
    Blocks,
}

/// A storage service.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name in a URL.
    pub name: &'static str,
    /// What it is made of.
    pub kind: ServiceKind,
    /// Lengths and positions of appends are multiples of this.
    pub block_alignment: usize,
    /// Bytes per append beyond which waiting for more brings no throughput.
    pub block_size_preferred: usize,
    /// Appends of one lane that may be in flight together.
    pub appends_in_flight_max: usize,
    /// Appends after which a segment is sealed.
    pub appends_per_segment: u64,
    /// Size of a segment at most.
    pub segment_size_bytes: u64,
    /// Whether a worker may write by itself.
    pub writes_are_short: bool,
    /// Median of an append, and of whatever else writes.
    pub append: Curve,
    /// Median of a read.
    pub read: Curve,
    /// Standard deviation of the latency's logarithm.
    pub spread: f64,
    /// How many requests in a million are stragglers.
    pub stragglers_per_million: u32,
    /// By what factor they are slower: anything between these.
    pub straggler_factor: (f64, f64),
    /// Writes per second for all lanes together; 0: no limit.
    pub writes_per_second: u32,
    /// Bytes written per second for all lanes together; 0: no limit.
    pub bytes_per_second: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The models there are.
pub const MODELS: [Model; 5] = [
    Model {
        name: "s3standard",
        kind: ServiceKind::Objects,
        block_alignment: 1,
        block_size_preferred: 2 * MIB as usize,
        appends_in_flight_max: 1,
        // No appends: every flush is an object of its own.
        appends_per_segment: 1,
        segment_size_bytes: 5 << 30,
        writes_are_short: false,
        append: &[(2 * MIB, 77_000.0), (4 * MIB, 101_000.0)],
        read: &[(256 * KIB, 25_000.0), (2 * MIB, 45_000.0)],
        spread: 0.25,
        stragglers_per_million: 10_000,
        straggler_factor: (2.0, 10.0),
        writes_per_second: 0,
        bytes_per_second: 0,
    },
    Model {
        name: "s3express",
        kind: ServiceKind::Objects,
        block_alignment: 1,
        block_size_preferred: 512 * KIB as usize,
        appends_in_flight_max: 1,
        appends_per_segment: 10_000,
        segment_size_bytes: 5 << 30,
        writes_are_short: false,
        append: &[(512 * KIB, 8_000.0), (2 * MIB, 22_000.0)],
        read: &[
            (256 * KIB, 5_000.0),
            (MIB, 6_000.0),
            (2 * MIB, 8_000.0),
            (4 * MIB, 16_000.0),
        ],
        spread: 0.10,
        stragglers_per_million: 10_000,
        straggler_factor: (2.0, 8.0),
        writes_per_second: 0,
        bytes_per_second: 0,
    },
    Model {
        name: "gp3",
        kind: ServiceKind::Blocks,
        block_alignment: 4096,
        block_size_preferred: 64 * KIB as usize,
        appends_in_flight_max: 8,
        appends_per_segment: u64::MAX,
        segment_size_bytes: 64 * MIB,
        writes_are_short: false,
        append: &[(16 * KIB, 1_000.0), (MIB, 5_000.0)],
        read: &[(16 * KIB, 800.0), (MIB, 4_800.0)],
        spread: 0.15,
        stragglers_per_million: 1_000,
        straggler_factor: (2.0, 20.0),
        writes_per_second: 8_000,
        bytes_per_second: 250_000_000,
    },
    Model {
        name: "io2",
        kind: ServiceKind::Blocks,
        block_alignment: 4096,
        block_size_preferred: 64 * KIB as usize,
        appends_in_flight_max: 8,
        appends_per_segment: u64::MAX,
        segment_size_bytes: 64 * MIB,
        writes_are_short: false,
        append: &[(16 * KIB, 450.0), (MIB, 1_500.0)],
        read: &[(16 * KIB, 350.0), (MIB, 1_400.0)],
        spread: 0.08,
        stragglers_per_million: 1_000,
        straggler_factor: (2.0, 10.0),
        writes_per_second: 8_000,
        bytes_per_second: 0,
    },
    Model {
        name: "nvme",
        kind: ServiceKind::Blocks,
        block_alignment: 4096,
        block_size_preferred: 16 * KIB as usize,
        appends_in_flight_max: 8,
        appends_per_segment: u64::MAX,
        segment_size_bytes: 64 * MIB,
        writes_are_short: true,
        append: &[(4 * KIB, 30.0), (64 * KIB, 60.0), (MIB, 600.0)],
        read: &[(4 * KIB, 80.0), (MIB, 500.0)],
        spread: 0.12,
        stragglers_per_million: 300,
        straggler_factor: (4.0, 130.0),
        writes_per_second: 0,
        bytes_per_second: 2_000_000_000,
    },
];

impl Model {
    /// The model of this name.
    pub fn named(name: &str) -> Option<Model> {
        MODELS.iter().find(|model| model.name == name).cloned()
    }

    /// One latency of the distribution around `curve` at `bytes`.
    pub fn sample(&self, curve: Curve, bytes: usize, random: &SimRandom) -> Duration {
        let mut micros = at(curve, bytes as u64) * (self.spread * standard_normal(random)).exp();
        if random.below(1_000_000) < u64::from(self.stragglers_per_million) {
            let (low, high) = self.straggler_factor;
            micros *= low * (high / low).powf(uniform(random));
        }
        Duration::from_nanos((micros * 1_000.0) as u64)
    }
}

/// The curve's value, in microseconds.
pub(super) fn at(curve: Curve, bytes: u64) -> f64 {
    let behind = curve.partition_point(|&(size, _)| size < bytes);
    let (from, to) = match behind {
        0 => return curve.first().map_or(0.0, |&(_, micros)| micros),
        last if last == curve.len() && last == 1 => return curve[0].1,
        last if last == curve.len() => (curve[last - 2], curve[last - 1]),
        inner => (curve[inner - 1], curve[inner]),
    };
    from.1 + (to.1 - from.1) * (bytes - from.0) as f64 / (to.0 - from.0) as f64
}

/// Uniform in [0, 1).
pub(super) fn uniform(random: &SimRandom) -> f64 {
    (random.u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Box and Muller's transformation.
fn standard_normal(random: &SimRandom) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_pass_through_the_figures_of_the_paper() {
        let express = Model::named("s3express").expect("a model");
        assert_eq!(at(express.append, 4 * KIB), 8_000.0);
        assert_eq!(at(express.append, 512 * KIB), 8_000.0);
        assert_eq!(at(express.append, 1280 * KIB), 15_000.0);
        assert_eq!(at(express.append, 2 * MIB), 22_000.0);
        assert!(at(express.append, 4 * MIB) > 40_000.0, "linear beyond");
        assert_eq!(at(express.read, 256 * KIB), 5_000.0);
        let standard = Model::named("s3standard").expect("a model");
        assert_eq!(at(standard.append, 2 * MIB), 77_000.0);
        assert_eq!(at(&[(10, 5.0)], 20), 5.0);
        assert!(Model::named("floppy").is_none());
        for model in &MODELS {
            for curve in [model.append, model.read] {
                assert!(curve.is_sorted_by(|a, b| a.0 < b.0), "{}", model.name);
            }
        }
    }

    #[test]
    fn samples_have_the_median_of_the_curve_and_the_tail_of_the_model() {
        for model in &MODELS {
            let random = SimRandom::new(7);
            let mut micros: Vec<f64> = (0..100_000)
                .map(|_| model.sample(model.append, 4096, &random).as_secs_f64() * 1e6)
                .collect();
            micros.sort_by(f64::total_cmp);
            let median = micros[micros.len() / 2];
            let expected = at(model.append, 4096);
            assert!(
                (median / expected - 1.0).abs() < 0.02,
                "{}: {median} instead of {expected}",
                model.name
            );
            let slow = expected * model.straggler_factor.0 * (-3.0 * model.spread).exp();
            let stragglers = micros.iter().filter(|&&m| m > slow.max(expected * 1.9));
            let share = stragglers.count() as f64 / micros.len() as f64 * 1e6;
            let rate = f64::from(model.stragglers_per_million);
            assert!(
                share > rate * 0.5 && share < rate * 2.0 + 3_000.0,
                "{}: {share} per million",
                model.name
            );
            let again = SimRandom::new(7);
            let first = model.sample(model.append, 4096, &again);
            let random = SimRandom::new(7);
            assert_eq!(first, model.sample(model.append, 4096, &random));
        }
    }
}
