//! The price list: what providers charge, in dollars, as a data file that users may replace line by line.
//!
//! Its format is told at its head (`prices.txt`, the built-in one). A line's name is a
//! [`HomeUsage::provider`](crate::HomeUsage::provider).
//!
//! Invariants: a list that was read is complete and every price in it is a number that is not negative; a provider that
//! is not listed has no price, which is not the same as costing nothing.

use crate::usage::{RequestKind, Usage};
use std::sync::Arc;

/// The built-in list.
const BUILT_IN: &str = include_str!("prices.txt");
/// What it is called beside sums.
const BUILT_IN_NAME: &str = "built in";
/// The columns behind those of the kinds of requests.
const OTHER_COLUMNS: [&str; 3] = ["upload-gb", "read-gb", "stored-gb-month"];
/// Columns of a line.
const COLUMNS: usize = RequestKind::ALL.len() + OTHER_COLUMNS.len();

/// A provider's prices in dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// A million requests, in the order of [`RequestKind::ALL`].
    millions: [f64; RequestKind::ALL.len()],
    /// 10^9 bytes uploaded.
    pub gb_uploaded: f64,
    /// 10^9 bytes read.
    pub gb_read: f64,
    /// 10^9 bytes stored for a month.
    pub gb_month: f64,
}

impl Price {
    /// A million requests of a kind.
    pub fn million(&self, kind: RequestKind) -> f64 {
        self.millions[kind as usize]
    }
}

impl Usage {
    /// What the requests of a kind cost, and the bytes that they moved.
    pub fn dollars_of(&self, kind: RequestKind, price: &Price) -> f64 {
        let asked = self.requests(kind) as f64 / 1e6 * price.million(kind);
        let gigabytes = self.bytes(kind).unwrap_or(0) as f64 / 1e9;
        asked
            + gigabytes
                * match kind {
                    RequestKind::Append | RequestKind::Put => price.gb_uploaded,
                    RequestKind::Get => price.gb_read,
                    RequestKind::Head
                    | RequestKind::List
                    | RequestKind::Delete
                    | RequestKind::Session => 0.0,
                }
    }

    /// What all of it costs; storage is charged by time, and is not in it.
    pub fn dollars(&self, price: &Price) -> f64 {
        RequestKind::ALL
            .map(|kind| self.dollars_of(kind, price))
            .iter()
            .sum()
    }
}

/// A provider in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderPrice {
    /// Its name.
    pub provider: String,
    /// What it charges.
    pub price: Price,
    /// Which list says so, and of which day.
    pub source: Arc<str>,
}

/// What providers charge.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceList {
    lines: Vec<ProviderPrice>,
}

fn columns() -> impl Iterator<Item = &'static str> {
    RequestKind::ALL
        .into_iter()
        .map(RequestKind::name)
        .chain(OTHER_COLUMNS)
}

/// `2026-11-21`
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |at: usize, digits: usize, range: std::ops::RangeInclusive<u32>| {
        parts.get(at).is_some_and(|part| {
            part.len() == digits && part.parse().is_ok_and(|n: u32| range.contains(&n))
        })
    };
    parts.len() == 3 && number(0, 4, 1..=9999) && number(1, 2, 1..=12) && number(2, 2, 1..=31)
}

fn line(words: &[&str], source: &Arc<str>) -> Result<ProviderPrice, String> {
    let [provider, prices @ ..] = words else {
        return Err("it is empty".into());
    };
    if prices.len() != COLUMNS {
        return Err(format!(
            "{provider} has {} prices, but there are {COLUMNS} columns",
            prices.len()
        ));
    }
    let mut numbers = [0.0; COLUMNS];
    for ((number, text), column) in numbers.iter_mut().zip(prices).zip(columns()) {
        *number = text
            .parse()
            .ok()
            .filter(|price: &f64| price.is_finite() && *price >= 0.0)
            .ok_or_else(|| format!("\"{text}\" is no price of {column}: dollars are expected"))?;
    }
    let [millions @ .., gb_uploaded, gb_read, gb_month] = numbers;
    Ok(ProviderPrice {
        provider: (*provider).to_owned(),
        price: Price {
            millions,
            gb_uploaded,
            gb_read,
            gb_month,
        },
        source: Arc::clone(source),
    })
}

fn parse(list: &str, name: &str) -> Result<Vec<ProviderPrice>, String> {
    let (mut source, mut has_columns) = (None, false);
    let mut lines: Vec<ProviderPrice> = Vec::new();
    for (at, text) in (1..).zip(list.lines()) {
        let wrong = |what: &str| format!("{name}, line {at}: {what}");
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["dated", date] if is_date(date) => source = Some(format!("{name}, {date}").into()),
            ["dated", ..] => return Err(wrong("dated YYYY-MM-DD is expected")),
            ["columns", named @ ..] => {
                if !named.iter().copied().eq(columns()) {
                    let all: Vec<&str> = columns().collect();
                    return Err(wrong(&format!("the columns are {}", all.join(" "))));
                }
                has_columns = true;
            }
            words => {
                let source = source
                    .as_ref()
                    .ok_or_else(|| wrong("a line \"dated YYYY-MM-DD\" is expected first"))?;
                if !has_columns {
                    return Err(wrong("a line \"columns ...\" is expected first"));
                }
                let listed = line(words, source).map_err(|what| wrong(&what))?;
                if lines.iter().any(|l| l.provider == listed.provider) {
                    return Err(wrong(&format!("{} is listed twice", listed.provider)));
                }
                lines.push(listed);
            }
        }
    }
    Ok(lines)
}

impl PriceList {
    /// The built-in one.
    pub fn built_in() -> PriceList {
        // A test reads it: it is part of the program.
        let lines = parse(BUILT_IN, BUILT_IN_NAME).unwrap_or_default();
        PriceList { lines }
    }

    /// With the lines of another list, called `name`, instead of those that it replaces.
    pub fn with(mut self, list: &str, name: &str) -> Result<PriceList, String> {
        let given = parse(list, name)?;
        if given.is_empty() {
            return Err(format!("{name}: no provider is in it"));
        }
        self.lines
            .retain(|old| given.iter().all(|new| new.provider != old.provider));
        self.lines.extend(given);
        Ok(self)
    }

    /// What this provider charges, if it is listed.
    pub fn of(&self, provider: &str) -> Option<&ProviderPrice> {
        self.lines.iter().find(|line| line.provider == provider)
    }
}

impl Default for PriceList {
    fn default() -> PriceList {
        PriceList::built_in()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::MODELS;

    const HEAD: &str = "dated 2027-02-28\ncolumns append put get head list delete session upload-gb read-gb stored-gb-month\n";

    #[test]
    fn the_built_in_list_is_well_formed_and_has_every_provider() {
        let list = parse(BUILT_IN, BUILT_IN_NAME).expect("well formed");
        let built_in = PriceList::built_in();
        assert_eq!(built_in.lines, list);
        let models = MODELS.iter().map(|model| model.name);
        for provider in models.chain(["azure", "gcs", "s3"]) {
            assert!(built_in.of(provider).is_some(), "{provider}");
        }
        assert!(built_in.of("tape").is_none());
        let express = built_in.of("s3express").expect("listed");
        assert_eq!(express.price.million(RequestKind::Append), 1.13);
        assert_eq!(express.price.million(RequestKind::Get), 0.03);
        assert_eq!(express.price.gb_month, 0.11);
        assert_eq!(&*express.source, "built in, 2026-11-21");
    }

    #[test]
    fn a_users_lines_win() {
        let mine = format!("# ours\n{HEAD}s3express 1 2 3 4 5 6 7 8 9 10 # cheaper\n");
        let list = PriceList::built_in().with(&mine, "ours.txt").expect("good");
        let listed = list.of("s3express").expect("listed");
        assert_eq!(&*listed.source, "ours.txt, 2027-02-28");
        let millions = RequestKind::ALL.map(|kind| listed.price.million(kind));
        assert_eq!(millions, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let price = listed.price;
        assert_eq!(
            (price.gb_uploaded, price.gb_read, price.gb_month),
            (8.0, 9.0, 10.0)
        );
        let azure = list.of("azure").expect("as before");
        assert_eq!(&*azure.source, "built in, 2026-11-21");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("", "f: no provider is in it"),
            (HEAD, "f: no provider is in it"),
            ("p 1 1 1 1 1 1 1 1 1 1", "f, line 1: a line \"dated"),
            ("\ndated yesterday", "f, line 2: dated YYYY-MM-DD"),
            ("dated 2026-13-01", "f, line 1: dated YYYY-MM-DD"),
            ("dated 2026-1-1", "f, line 1: dated YYYY-MM-DD"),
            ("dated 2026-01-01 now", "f, line 1: dated YYYY-MM-DD"),
            (
                "dated 2026-01-01\np 1 1 1 1 1 1 1 1 1 1",
                "f, line 2: a line \"columns",
            ),
            (
                "columns put append",
                "f, line 1: the columns are append put",
            ),
            (&format!("{HEAD}p 1 1"), "f, line 3: p has 2 prices"),
            (
                &format!("{HEAD}p 1 1 1 1 1 1 1 1 1 1 1"),
                "f, line 3: p has 11 prices",
            ),
            (
                &format!("{HEAD}p 1 x 1 1 1 1 1 1 1 1"),
                "f, line 3: \"x\" is no price of put",
            ),
            (
                &format!("{HEAD}p 1 1 -1 1 1 1 1 1 1 1"),
                "f, line 3: \"-1\" is no price of get",
            ),
            (
                &format!("{HEAD}p 1 1 1 1 1 1 1 NaN 1 1"),
                "f, line 3: \"NaN\" is no price of upload-gb",
            ),
            (
                &format!("{HEAD}p 1 1 1 1 1 1 1 1 1 1\n\np 1 1 1 1 1 1 1 1 1 1"),
                "f, line 5: p is listed twice",
            ),
        ] {
            let error = PriceList::built_in().with(text, "f").expect_err(text);
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
