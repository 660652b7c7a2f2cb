//! Mathematical functions over doubles, numerics and integers (manual, chapter 9.3).

use super::RandomNumbers;
use super::arithmetic::{bad_args, checked, division_by_zero, out_of_range};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Numeric, compare_as};
use logstead_types::SqlState;

fn range() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "input is out of range",
    )
}

fn float(v: f64, finite_in: bool) -> Result<Datum> {
    checked(v, finite_in).map(Datum::Float8)
}

/// A function of one double that cannot fail: `plain!(sin)`.
macro_rules! plain {
    ($f:ident) => {
        |a| Ok(Datum::Float8(a[0].as_f64()?.$f()))
    };
}
pub(super) use plain;

/// A trigonometric function: infinities are out of range.
macro_rules! trig {
    ($f:expr) => {
        |a| math::trigonometric(a, $f)
    };
}
pub(super) use trig;

/// Calls a function of one double that refuses infinities and results that are no number.
pub(super) fn trigonometric(a: &[Datum], f: fn(f64) -> f64) -> Result<Datum> {
    let x = a.first().ok_or_else(|| bad_args(a))?.as_f64()?;
    let y = f(x);
    if !x.is_nan() && (x.is_infinite() || y.is_nan()) {
        return Err(range());
    }
    Ok(Datum::Float8(y))
}

// Functions in degrees are scaled so that the well-known angles give exact results, by the same steps as PostgreSQL's.
fn sind_to_30(x: f64) -> f64 {
    x.to_radians().sin() / 30f64.to_radians().sin() / 2.0
}

fn cosd_to_60(x: f64) -> f64 {
    1.0 - (1.0 - x.to_radians().cos()) / (1.0 - 60f64.to_radians().cos()) / 2.0
}

fn sind_quadrant(x: f64) -> f64 {
    if x <= 30.0 {
        sind_to_30(x)
    } else {
        cosd_to_60(90.0 - x)
    }
}

fn cosd_quadrant(x: f64) -> f64 {
    if x <= 60.0 {
        cosd_to_60(x)
    } else {
        sind_to_30(90.0 - x)
    }
}

/// sind: exact at multiples of 30 degrees.
pub(super) fn sind(x: f64) -> f64 {
    let r = x % 360.0;
    let (sign, r) = if r < 0.0 { (-1.0, -r) } else { (1.0, r) };
    let (sign, r) = if r > 180.0 {
        (-sign, 360.0 - r)
    } else {
        (sign, r)
    };
    sign * sind_quadrant(if r > 90.0 { 180.0 - r } else { r })
}

/// cosd
pub(super) fn cosd(x: f64) -> f64 {
    let r = (x % 360.0).abs();
    let r = if r > 180.0 { 360.0 - r } else { r };
    let (sign, r) = if r > 90.0 {
        (-1.0, 180.0 - r)
    } else {
        (1.0, r)
    };
    sign * cosd_quadrant(r)
}

/// A sign and an angle of the first quarter of the circle with the same tangent but for the sign.
fn quarter(x: f64) -> (f64, f64) {
    let r = x % 360.0;
    let (sign, r) = if r < 0.0 { (-1.0, -r) } else { (1.0, r) };
    let (sign, r) = if r > 180.0 {
        (-sign, 360.0 - r)
    } else {
        (sign, r)
    };
    if r > 90.0 {
        (-sign, 180.0 - r)
    } else {
        (sign, r)
    }
}

/// tand
pub(super) fn tand(x: f64) -> f64 {
    let (sign, r) = quarter(x);
    let v =
        sign * (sind_quadrant(r) / cosd_quadrant(r) / (sind_quadrant(45.0) / cosd_quadrant(45.0)));
    if v == 0.0 { 0.0 } else { v }
}

/// cotd
pub(super) fn cotd(x: f64) -> f64 {
    let (sign, r) = quarter(x);
    let v =
        sign * (cosd_quadrant(r) / sind_quadrant(r) / (cosd_quadrant(45.0) / sind_quadrant(45.0)));
    if v == 0.0 { 0.0 } else { v }
}

/// asind
pub(super) fn asind(x: f64) -> f64 {
    let quadrant = |x: f64| {
        if x <= 0.5 {
            x.asin() / 0.5f64.asin() * 30.0
        } else {
            90.0 - x.acos() / 0.5f64.acos() * 60.0
        }
    };
    if x < 0.0 { -quadrant(-x) } else { quadrant(x) }
}

/// acosd
pub(super) fn acosd(x: f64) -> f64 {
    let quadrant = |x: f64| {
        if x <= 0.5 {
            90.0 - x.asin() / 0.5f64.asin() * 30.0
        } else {
            x.acos() / 0.5f64.acos() * 60.0
        }
    };
    if x < 0.0 {
        90.0 + asind(-x)
    } else {
        quadrant(x)
    }
}

/// `ceil`
pub(super) fn ceil(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(v.ceil())),
        [Datum::Numeric(v)] => Ok(Datum::numeric(v.ceil())),
        _ => Err(bad_args(a)),
    }
}

/// `floor`
pub(super) fn floor(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(v.floor())),
        [Datum::Numeric(v)] => Ok(Datum::numeric(v.floor())),
        _ => Err(bad_args(a)),
    }
}

/// `round`: doubles to even, numerics half away from zero
pub(super) fn round(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(v.round_ties_even())),
        [Datum::Numeric(v)] => Ok(Datum::numeric(v.round(0))),
        [Datum::Numeric(v), Datum::Int4(s)] => v.round(*s).checked_range().map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

/// `trunc`
pub(super) fn trunc(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(v.trunc())),
        [Datum::Numeric(v)] => Ok(Datum::numeric(v.trunc(0))),
        [Datum::Numeric(v), Datum::Int4(s)] => Ok(Datum::numeric(v.trunc(*s))),
        _ => Err(bad_args(a)),
    }
}

/// `sign`
pub(super) fn sign(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(if *v > 0.0 {
            1.0
        } else if *v < 0.0 {
            -1.0
        } else {
            0.0
        })),
        [Datum::Numeric(v)] if v.is_nan() => Ok(Datum::numeric(Numeric::NaN)),
        [Datum::Numeric(v)] => Ok(Datum::numeric(Numeric::from(v.signum()))),
        _ => Err(bad_args(a)),
    }
}

/// `sqrt`, `|/`
pub(super) fn sqrt(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] if *v < 0.0 => Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER,
            "cannot take square root of a negative number",
        )),
        [Datum::Float8(v)] => Ok(Datum::Float8(v.sqrt())),
        [Datum::Numeric(v)] => v.sqrt().map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

/// `exp`
pub(super) fn exp(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => {
            let r = v.exp();
            if r == 0.0 && v.is_finite() {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    "value out of range: underflow",
                ));
            }
            float(r, v.is_finite())
        }
        [Datum::Numeric(v)] => v.exp().map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

fn check_log(v: f64) -> Result<f64> {
    let bad = |t: &str| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOG, t));
    if v == 0.0 {
        return bad("cannot take logarithm of zero");
    }
    if v < 0.0 {
        return bad("cannot take logarithm of a negative number");
    }
    Ok(v)
}

/// `ln`
pub(super) fn ln(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(check_log(*v)?.ln())),
        [Datum::Numeric(v)] => v.ln().map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

/// `log` to base 10, or to a base given first
pub(super) fn log(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(v)] => Ok(Datum::Float8(check_log(*v)?.log10())),
        [Datum::Numeric(v)] => v.log(&Numeric::new(10, 0)).map(Datum::numeric),
        [Datum::Numeric(base), Datum::Numeric(v)] => v.log(base).map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

fn float_power(x: f64, y: f64) -> Result<f64> {
    let bad = |t: &str| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, t));
    if x.is_nan() || y.is_nan() {
        return Ok(x.powf(y));
    }
    if x == 0.0 && y < 0.0 {
        return bad("zero raised to a negative power is undefined");
    }
    if x < 0.0 && y.floor() != y {
        return bad("a negative number raised to a non-integer power yields a complex result");
    }
    let r = x.powf(y);
    let finite = x.is_finite() && y.is_finite();
    if r == 0.0 && x != 0.0 && finite {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: underflow",
        ));
    }
    checked(r, finite)
}

/// `power`, `pow`, `^`
pub(super) fn power(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Float8(x), Datum::Float8(y)] => float_power(*x, *y).map(Datum::Float8),
        [Datum::Numeric(x), Datum::Numeric(y)] => x.power(y).map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

/// `atan2`
pub(super) fn atan2(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(a[0].as_f64()?.atan2(a[1].as_f64()?)))
}

/// `atan2d`
pub(super) fn atan2d(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(
        a[0].as_f64()?.atan2(a[1].as_f64()?).to_degrees(),
    ))
}

/// `degrees`
pub(super) fn degrees(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_f64()?;
    float(v / (std::f64::consts::PI / 180.0), v.is_finite())
}

/// `radians`
pub(super) fn radians(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(
        a[0].as_f64()? * (std::f64::consts::PI / 180.0),
    ))
}

/// `sinh`, `cosh` overflow to infinity without an error, as in PostgreSQL.
pub(super) fn acosh(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_f64()?;
    if v < 1.0 {
        Err(range())
    } else {
        Ok(Datum::Float8(precise_acosh(v)))
    }
}

fn precise_acosh(x: f64) -> f64 {
    if x > 268_435_456.0 {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else {
        let t = x - 1.0;
        (t + (2.0 * t + t * t).sqrt()).ln_1p()
    }
}

/// `atanh`
pub(super) fn atanh(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_f64()?;
    if !(-1.0..=1.0).contains(&v) && !v.is_nan() {
        Err(range())
    } else {
        // Exact for small numbers, too, whose difference from 1 would lose digits.
        let x = v.abs();
        let twice = x + x;
        let inner = if x < 0.5 {
            twice + twice * x / (1.0 - x)
        } else {
            twice / (1.0 - x)
        };
        Ok(Datum::Float8((0.5 * inner.ln_1p()).copysign(v)))
    }
}

/// `random`: 52 random bits in [0, 1)
pub(super) fn random(cx: &dyn RandomNumbers, _: &[Datum]) -> Result<Datum> {
    let bits = cx.session_u64();
    Ok(Datum::Float8((bits >> 12) as f64 / (1u64 << 52) as f64))
}

/// `setseed`: from now on the session's random numbers follow from the seed
pub(super) fn setseed(cx: &dyn RandomNumbers, a: &[Datum]) -> Result<Datum> {
    let seed = a[0].as_f64()?;
    if !(-1.0..=1.0).contains(&seed) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("setseed parameter {seed} is out of allowed range [-1,1]"),
        ));
    }
    cx.seed(((((1_u64 << 52) - 1) as f64) * seed) as i64 as u64);
    Ok(Datum::text(""))
}

fn gcd_u(mut x: u64, mut y: u64) -> u64 {
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

/// `gcd`
pub(super) fn gcd(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int4(x), Datum::Int4(y)] => {
            let g = gcd_u(u64::from(x.unsigned_abs()), u64::from(y.unsigned_abs()));
            i32::try_from(g)
                .map(Datum::Int4)
                .map_err(|_| out_of_range("integer"))
        }
        [Datum::Int8(x), Datum::Int8(y)] => {
            i64::try_from(gcd_u(x.unsigned_abs(), y.unsigned_abs()))
                .map(Datum::Int8)
                .map_err(|_| out_of_range("bigint"))
        }
        [Datum::Numeric(x), Datum::Numeric(y)] => numeric_gcd(x, y).map(Datum::numeric),
        _ => Err(bad_args(a)),
    }
}

fn numeric_gcd(x: &Numeric, y: &Numeric) -> Result<Numeric> {
    if !x.is_finite() || !y.is_finite() {
        return Ok(Numeric::NaN);
    }
    let scale = x.scale().max(y.scale()).unwrap_or(0) as i32;
    let (mut x, mut y) = (x.abs(), y.abs());
    while !y.is_zero() {
        let r = x.rem(&y)?;
        (x, y) = (y, r);
    }
    Ok(x.round(scale))
}

/// `lcm`
pub(super) fn lcm(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int4(x), Datum::Int4(y)] => {
            if *x == 0 || *y == 0 {
                return Ok(Datum::Int4(0));
            }
            let g = gcd_u(u64::from(x.unsigned_abs()), u64::from(y.unsigned_abs()));
            let v = u64::from(x.unsigned_abs()) / g * u64::from(y.unsigned_abs());
            i32::try_from(v)
                .map(Datum::Int4)
                .map_err(|_| out_of_range("integer"))
        }
        [Datum::Int8(x), Datum::Int8(y)] => {
            if *x == 0 || *y == 0 {
                return Ok(Datum::Int8(0));
            }
            let g = gcd_u(x.unsigned_abs(), y.unsigned_abs());
            let v = (x.unsigned_abs() / g).checked_mul(y.unsigned_abs());
            v.and_then(|v| i64::try_from(v).ok())
                .map(Datum::Int8)
                .ok_or_else(|| out_of_range("bigint"))
        }
        [Datum::Numeric(x), Datum::Numeric(y)] => {
            let scale = x.scale().max(y.scale()).unwrap_or(0) as i32;
            if !x.is_finite() || !y.is_finite() {
                return Ok(Datum::numeric(Numeric::NaN));
            }
            if x.is_zero() || y.is_zero() {
                return Ok(Datum::numeric(Numeric::ZERO.round(scale)));
            }
            let g = numeric_gcd(x, y)?;
            Ok(Datum::numeric(x.div_trunc(&g)?.mul(y)?.abs().round(scale)))
        }
        _ => Err(bad_args(a)),
    }
}

/// `factorial`
pub(super) fn factorial(a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_i64()?;
    if n < 0 {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "factorial of a negative number is undefined",
        ));
    }
    if n > 32_177 {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value overflows numeric format",
        ));
    }
    let mut v = Numeric::new(1, 0);
    for i in 2..=n {
        v = v.mul(&Numeric::from(i))?;
    }
    Ok(Datum::numeric(v))
}

/// `width_bucket(operand, low, high, count)`
pub(super) fn width_bucket(a: &[Datum]) -> Result<Datum> {
    let bad = |t: &str| SqlError::new(SqlState::new(b"2201G"), t);
    let (v, low, high, count) = match a {
        [
            Datum::Float8(v),
            Datum::Float8(l),
            Datum::Float8(h),
            Datum::Int4(c),
        ] => (*v, *l, *h, *c),
        [
            Datum::Numeric(v),
            Datum::Numeric(l),
            Datum::Numeric(h),
            Datum::Int4(c),
        ] => {
            if *c > 0 && v.is_finite() && l.is_finite() && h.is_finite() && l.compare(h).is_ne() {
                return numeric_bucket(v, l, h, *c);
            }
            (v.to_f64(), l.to_f64(), h.to_f64(), *c)
        }
        _ => return Err(bad_args(a)),
    };
    if count <= 0 {
        return Err(bad("count must be greater than zero"));
    }
    if v.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bad("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bad("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(bad("lower bound cannot equal upper bound"));
    }
    let (v, low, high) = if low < high {
        (v, low, high)
    } else {
        (-v, -low, -high)
    };
    if v < low {
        return Ok(Datum::Int4(0));
    }
    if v >= high {
        return count
            .checked_add(1)
            .map(Datum::Int4)
            .ok_or_else(|| out_of_range("integer"));
    }
    Ok(Datum::Int4(
        (f64::from(count) * ((v - low) / (high - low))).floor() as i32 + 1,
    ))
}

/// `width_bucket(operand, thresholds)`: how many of the thresholds, which rise, are not above the operand
pub(super) fn width_bucket_among(a: &[Datum]) -> Result<Datum> {
    let [operand, Datum::Array(thresholds)] = a else {
        return Err(bad_args(a));
    };
    if thresholds.dims().len() > 1 {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "thresholds must be one-dimensional array",
        ));
    }
    if thresholds.items.iter().any(Datum::is_null) {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "thresholds array must not contain NULLs",
        ));
    }
    let below = |t: &Datum| compare_as(thresholds.element, t, operand).is_le();
    let count = thresholds.items.partition_point(below);
    i32::try_from(count)
        .map(Datum::Int4)
        .map_err(|_| out_of_range("integer"))
}

fn numeric_bucket(v: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Result<Datum> {
    let (v, low, high) = if low.compare(high).is_lt() {
        (v.clone(), low.clone(), high.clone())
    } else {
        (v.neg(), low.neg(), high.neg())
    };
    if v.compare(&low).is_lt() {
        return Ok(Datum::Int4(0));
    }
    if v.compare(&high).is_ge() {
        return count
            .checked_add(1)
            .map(Datum::Int4)
            .ok_or_else(|| out_of_range("integer"));
    }
    let part = v
        .sub(&low)?
        .mul(&Numeric::from(count))?
        .div_trunc(&high.sub(&low)?)?;
    part.add(&Numeric::new(1, 0))?
        .to_i64("integer")
        .map(|v| Datum::Int4(v as i32))
}

/// `scale`
pub(super) fn scale(a: &[Datum]) -> Result<Datum> {
    Ok(a[0]
        .as_numeric()?
        .scale()
        .map_or(Datum::Null, |s| Datum::Int4(s as i32)))
}

/// `min_scale`
pub(super) fn min_scale(a: &[Datum]) -> Result<Datum> {
    Ok(a[0]
        .as_numeric()?
        .trim_scale()
        .scale()
        .map_or(Datum::Null, |s| Datum::Int4(s as i32)))
}

/// `trim_scale`
pub(super) fn trim_scale(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::numeric(a[0].as_numeric()?.trim_scale()))
}

/// `mod` by zero is an error; used for types whose operator is not `%`.
pub(super) fn div(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_numeric()?, a[1].as_numeric()?);
    if y.is_zero() && !x.is_nan() {
        return Err(division_by_zero());
    }
    x.div_trunc(y).map(Datum::numeric)
}
