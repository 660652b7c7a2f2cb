//! What a run asked its home for, in requests and in dollars, and the processor's time that the process took.
//!
//! Dollars are by the built-in price list, for every request of the run, its warm-up included. A home that charges for
//! nothing has no such figures, and one that is in no list has no dollars.

use std::collections::BTreeMap;

use logstead_engine::{HomeUsage, LogHome, PriceList};
use logstead_env::Env;

use crate::machine;

/// A look at a home and at the process.
#[derive(Clone, Debug)]
pub(crate) struct ResourceUsage {
    homes: Vec<HomeUsage>,
    cpu_seconds: Option<f64>,
}

impl ResourceUsage {
    /// Until now.
    pub(crate) fn at(home: &LogHome, env: &Env) -> ResourceUsage {
        ResourceUsage::of(home.status.usage(), env)
    }

    /// Until now, of what these homes say.
    pub(crate) fn of(homes: Vec<HomeUsage>, env: &Env) -> ResourceUsage {
        ResourceUsage {
            homes,
            cpu_seconds: machine::cpu_seconds(env),
        }
    }

    /// What came since `before`.
    pub(crate) fn since(mut self, before: &ResourceUsage) -> ResourceUsage {
        // A home of homes may drop one: what is not in both is not compared.
        self.homes.retain_mut(|home| {
            let earlier = before.homes.iter().find(|old| old.home == home.home);
            if let Some(earlier) = earlier {
                home.usage = home.usage.since(&earlier.usage);
            }
            earlier.is_some()
        });
        self.cpu_seconds = self.cpu_seconds.zip(before.cpu_seconds).map(|(a, b)| a - b);
        self
    }

    /// Requests of all homes.
    fn requests(&self) -> u64 {
        let homes = self.homes.iter();
        homes.map(|home| home.usage.requests_all()).sum()
    }

    /// What they cost, if every home is listed.
    fn dollars(&self) -> Option<f64> {
        let prices = PriceList::built_in();
        let homes = self.homes.iter();
        homes
            .map(|home| Some(home.usage.dollars(&prices.of(&home.provider)?.price)))
            .sum()
    }

    /// Figures by name, over so many of `each`.
    pub(crate) fn figures(&self, count: u64, each: &str) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        if count == 0 {
            return figures;
        }
        let mut put = |name: String, value: f64| figures.insert(name, value);
        if let Some(seconds) = self.cpu_seconds {
            put(format!("CPU us per {each}"), seconds * 1e6 / count as f64);
        }
        let requests = self.requests();
        if requests == 0 {
            return figures;
        }
        let million = |value: f64| value * 1e6 / count as f64;
        put(
            format!("requests per million {each}s"),
            million(requests as f64),
        );
        if let Some(dollars) = self.dollars() {
            put(format!("dollars per million {each}s"), million(dollars));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_engine::Usage;

    fn home(name: &str, provider: &str, appends: u64) -> HomeUsage {
        HomeUsage {
            home: name.into(),
            provider: provider.into(),
            usage: Usage {
                appends,
                ..Usage::default()
            },
        }
    }

    fn spent(homes: &[HomeUsage], cpu_seconds: f64) -> ResourceUsage {
        ResourceUsage {
            homes: homes.to_vec(),
            cpu_seconds: Some(cpu_seconds),
        }
    }

    #[test]
    fn figures_are_of_the_difference() {
        let before = spent(&[home("a", "s3express", 100), home("b", "s3", 10)], 1.0);
        let after = spent(
            &[home("a", "s3express", 1_100), home("b", "s3", 1_010)],
            3.0,
        );
        let figures = after.since(&before).figures(10_000, "commit");
        let close = |name: &str, value: f64| {
            let found = figures.get(name).copied().unwrap_or(f64::NAN);
            assert!((found - value).abs() < 1e-9, "{name}: {found}");
        };
        close("requests per million commits", 200_000.0);
        close(
            "dollars per million commits",
            100e3 * 1.13e-6 + 100e3 * 5e-6,
        );
        close("CPU us per commit", 200.0);
        assert_eq!(figures.len(), 3);
    }

    #[test]
    fn without_a_price_there_are_no_dollars() {
        let homes = [home("a", "s3express", 1), home("b", "somebody's", 1)];
        let figures = spent(&homes, 0.0).figures(1, "append");
        assert!(figures.contains_key("requests per million appends"));
        assert!(!figures.contains_key("dollars per million appends"));
        assert!(spent(&homes, 0.0).figures(0, "append").is_empty());
        let names: Vec<String> = spent(&[], 1.0).figures(1, "append").into_keys().collect();
        assert_eq!(names, ["CPU us per append"]);
    }

    #[test]
    fn the_process_takes_time() {
        let env = Env::real();
        let before = machine::cpu_seconds(&env).expect("this is Linux");
        let mut n = 1_u64;
        while machine::cpu_seconds(&env).expect("this is Linux") <= before {
            n = std::hint::black_box(n.wrapping_mul(3));
        }
    }
}
