//! `money`: hundredths of a unit in 64 bits, read and written as in the C locale.

use super::arithmetic::{bad_args, division_by_zero, out_of_range};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Numeric};
use logstead_types::SqlState;

fn one(a: &[Datum], at: usize) -> Result<i64> {
    match a.get(at) {
        Some(Datum::Money(v)) => Ok(*v),
        _ => Err(bad_args(a)),
    }
}

fn checked(v: Option<i64>) -> Result<Datum> {
    v.map(Datum::Money).ok_or_else(|| out_of_range("money"))
}

fn rounded(v: f64) -> Result<Datum> {
    let v = v.round_ties_even();
    // The upper bound is the first float that is too large.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&v);
    checked(fits.then_some(v as i64))
}

fn float(d: &Datum) -> Result<f64> {
    match d {
        Datum::Float4(v) => Ok(f64::from(*v)),
        Datum::Float8(v) => Ok(*v),
        _ => Err(bad_args(std::slice::from_ref(d))),
    }
}

/// `+`
pub(super) fn plus(a: &[Datum]) -> Result<Datum> {
    checked(one(a, 0)?.checked_add(one(a, 1)?))
}

/// `-`
pub(super) fn minus(a: &[Datum]) -> Result<Datum> {
    checked(one(a, 0)?.checked_sub(one(a, 1)?))
}

/// `*` with a float
pub(super) fn times(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Money(v), f] | [f, Datum::Money(v)] => rounded(*v as f64 * float(f)?),
        _ => Err(bad_args(a)),
    }
}

/// `*` with an integer
pub(super) fn times_integer(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Money(v), n] | [n, Datum::Money(v)] => checked(v.checked_mul(n.as_integer()?)),
        _ => Err(bad_args(a)),
    }
}

/// `/` by a float
pub(super) fn by_float(a: &[Datum]) -> Result<Datum> {
    let [Datum::Money(v), f] = a else {
        return Err(bad_args(a));
    };
    let f = float(f)?;
    if f == 0.0 {
        return Err(division_by_zero());
    }
    rounded(*v as f64 / f)
}

/// `/` by an integer: what is left is dropped
pub(super) fn by_integer(a: &[Datum]) -> Result<Datum> {
    let [Datum::Money(v), n] = a else {
        return Err(bad_args(a));
    };
    match n.as_integer()? {
        0 => Err(division_by_zero()),
        n => checked(v.checked_div(n)),
    }
}

/// `/` by money: how many times
pub(super) fn ratio(a: &[Datum]) -> Result<Datum> {
    match one(a, 1)? {
        0 => Err(division_by_zero()),
        by => Ok(Datum::Float8(one(a, 0)? as f64 / by as f64)),
    }
}

/// The lower of two.
pub(super) fn smaller(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Money(one(a, 0)?.min(one(a, 1)?)))
}

/// The higher of two.
pub(super) fn larger(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Money(one(a, 0)?.max(one(a, 1)?)))
}

/// money to numeric
pub(super) fn to_numeric(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::numeric(Numeric::new(i128::from(one(a, 0)?), 2)))
}

/// numeric to money
pub(super) fn of_numeric(a: &[Datum]) -> Result<Datum> {
    let v = a.first().ok_or_else(|| bad_args(a))?.as_numeric()?;
    if !v.is_finite() {
        let what = if v.is_nan() { "NaN" } else { "infinity" };
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot convert {what} to bigint"),
        ));
    }
    v.mul(&Numeric::from(100))?
        .to_i64("bigint")
        .map(Datum::Money)
}

/// integer and bigint to money
pub(super) fn of_integer(a: &[Datum]) -> Result<Datum> {
    let v = a.first().ok_or_else(|| bad_args(a))?.as_integer()?;
    v.checked_mul(100)
        .map(Datum::Money)
        .ok_or_else(|| out_of_range("bigint"))
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// A number below a thousand in words.
fn in_words(v: usize) -> String {
    let (hundreds, rest) = (v / 100, v % 100);
    let small = match rest {
        0..20 => SMALL[rest].to_owned(),
        _ if rest % 10 == 0 => TENS[rest / 10].to_owned(),
        _ => format!("{} {}", TENS[rest / 10], SMALL[rest % 10]),
    };
    match (hundreds, rest) {
        (0, _) => small,
        (_, 0) => format!("{} hundred", SMALL[hundreds]),
        (_, 1..20) => format!("{} hundred and {small}", SMALL[hundreds]),
        _ => format!("{} hundred {small}", SMALL[hundreds]),
    }
}

/// `cash_words`
pub(super) fn words(a: &[Datum]) -> Result<Datum> {
    let v = one(a, 0)?;
    let size = v.unsigned_abs();
    let group = |unit: u64| usize::try_from(size / unit % 1000).unwrap_or(0);
    let mut text = String::new();
    for (unit, name) in [
        (100_000_000_000_000_000, " quadrillion "),
        (100_000_000_000_000, " trillion "),
        (100_000_000_000, " billion "),
        (100_000_000, " million "),
        (100_000, " thousand "),
    ] {
        if group(unit) > 0 {
            text += &in_words(group(unit));
            text += name;
        }
    }
    if group(100) > 0 {
        text += &in_words(group(100));
    }
    if text.is_empty() {
        text += "zero";
    }
    let cents = usize::try_from(size % 100).unwrap_or(0);
    text += if size / 100 == 1 {
        " dollar and "
    } else {
        " dollars and "
    };
    text += &in_words(cents);
    text += if cents == 1 { " cent" } else { " cents" };
    if v < 0 {
        text.insert_str(0, "minus ");
    }
    let first = text.remove(0).to_ascii_uppercase();
    text.insert(0, first);
    Ok(Datum::text(text))
}
