//! What a home was asked for, and what a provider would charge for it.
//!
//! Invariant: every request counts, those that failed or were repeated too: a provider charges for them.
//!
//! The price list is a data file (`prices.txt`); a line's name is a [`HomeUsage::provider`].

use std::sync::OnceLock;

/// Requests and bytes since the home was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Appends of blocks, repeated ones included.
    pub appends: u64,
    /// Bytes in them.
    pub append_bytes: u64,
    /// Other writes: named things, pieces of side segments.
    pub writes: u64,
    /// Bytes in them.
    pub write_bytes: u64,
    /// Reads of any kind, and questions for an object's length.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Listings.
    pub lists: u64,
    /// Removals and truncations: free of charge.
    pub deletes: u64,
    /// Requests made again after a transient error or a time-out; counted above as well.
    pub retries: u64,
    /// Appends whose reply never came and that turned out to have been stored.
    pub settled: u64,
}

/// A provider's prices in dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// A million PUTs or appends.
    pub million_writes: f64,
    /// A million GETs.
    pub million_reads: f64,
    /// 10^9 bytes uploaded.
    pub gb_uploaded: f64,
    /// 10^9 bytes read.
    pub gb_read: f64,
}

/// The price list; its head says what the columns are.
const PRICES: &str = include_str!("prices.txt");

fn parse(list: &'static str) -> Option<Vec<(&'static str, Price)>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let price = |line: &'static str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        let mut number = || fields.next()?.parse().ok();
        let price = Price {
            million_writes: number()?,
            million_reads: number()?,
            gb_uploaded: number()?,
            gb_read: number()?,
        };
        Some((name, price))
    };
    lines.map(price).collect()
}

impl Price {
    /// What the service of this model charges, if the list has it.
    pub fn of(model: &str) -> Option<Price> {
        static LIST: OnceLock<Vec<(&str, Price)>> = OnceLock::new();
        // A test reads the whole list: it is part of the program.
        let list = LIST.get_or_init(|| parse(PRICES).unwrap_or_default());
        let found = list.iter().find(|(name, _)| *name == model);
        found.map(|&(_, price)| price)
    }
}

/// What one home has been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeUsage {
    /// Which home: its URL without credentials.
    pub home: String,
    /// Its name in the price list.
    pub provider: String,
    /// Requests and bytes since it was opened.
    pub usage: Usage,
}

impl Usage {
    /// What it costs.
    pub fn dollars(&self, price: &Price) -> f64 {
        let written = (self.appends + self.writes + self.lists) as f64 / 1e6;
        let uploaded = (self.append_bytes + self.write_bytes) as f64 / 1e9;
        written * price.million_writes
            + self.reads as f64 / 1e6 * price.million_reads
            + uploaded * price.gb_uploaded
            + self.read_bytes as f64 / 1e9 * price.gb_read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::MODELS;

    #[test]
    fn every_model_has_a_price() {
        let list = parse(PRICES).expect("the list is well formed");
        assert_eq!(list.len(), MODELS.len());
        for model in &MODELS {
            assert!(Price::of(model.name).is_some(), "{}", model.name);
        }
    }

    /// Milliscale, section 2.2: a million appends of 2 MB.
    #[test]
    fn the_example_of_the_paper_costs_what_the_paper_says() {
        let usage = Usage {
            appends: 1_000_000,
            append_bytes: 2_000_000_000_000,
            ..Usage::default()
        };
        let price = Price::of("s3express").expect("listed");
        assert!((usage.dollars(&price) - (1.13 + 2_000.0 * 0.0032)).abs() < 1e-9);
    }
}
