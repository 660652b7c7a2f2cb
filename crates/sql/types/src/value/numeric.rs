//! NUMERIC: exact decimals with PostgreSQL's rules for scale, rounding and range.
//!
//! Owns: [`Numeric`] and its arithmetic. Invariants: a finite value is `mantissa * 10^-scale`; the mantissa is an
//! `i128` whenever it fits (so equal forms mean equal values at one scale), a big integer beyond; `scale` is the
//! display scale, at most [`SCALE_MAX`]. The roots and transcendental functions are in `numeric_math`.

#[path = "numeric_round.rs"]
mod round;
#[path = "numeric_text.rs"]
mod text;

use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Largest display scale.
pub const SCALE_MAX: u32 = 16383;
/// Most digits in front of the point.
const DIGITS_BEFORE_MAX: i32 = 131_072;
/// Largest number of digits before the decimal point.
const DIGITS_MAX: i64 = 131_072;
/// Significant digits that division and the transcendental functions give at least.
pub(super) const SIG_DIGITS_MIN: i64 = 16;
/// Largest scale that division and functions choose by themselves.
pub(super) const RESULT_SCALE_MAX: i64 = 1000;

/// Digits with sign, aligned as 64 bits are: so a numeric has 24 bytes, and a datum, which has as many, can hold one.
#[derive(Clone, Copy)]
#[repr(C, packed(8))]
pub struct Mantissa(i128);

impl Mantissa {
    /// The digits as a number.
    #[inline]
    pub const fn get(self) -> i128 {
        self.0
    }
}

impl std::fmt::Debug for Mantissa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// A NUMERIC value.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// `mantissa * 10^-scale`.
    Small {
        /// Digits with sign.
        mantissa: Mantissa,
        /// Digits after the decimal point.
        scale: u16,
    },
    /// The same with a mantissa beyond `i128`.
    Big {
        /// Digits with sign.
        mantissa: Box<BigInt>,
        /// Digits after the decimal point.
        scale: u16,
    },
    /// Not a number: equal to itself and above everything.
    NaN,
    /// Infinity.
    Infinity,
    /// -Infinity.
    NegInfinity,
}

const POW10: [i128; 39] = {
    let mut t = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

/// 10^n as a big integer.
pub(super) fn pow10(n: u32) -> BigInt {
    match POW10.get(n as usize) {
        Some(&p) => BigInt::from(p),
        None => BigInt::from(10).pow(n),
    }
}

fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

/// Number of decimal digits of a magnitude; 0 for zero.
fn digits_i128(m: i128) -> i64 {
    let u = m.unsigned_abs();
    if u == 0 { 0 } else { i64::from(u.ilog10()) + 1 }
}

pub(super) fn digits_big(m: &BigInt) -> i64 {
    if m.sign() == Sign::NoSign {
        return 0;
    }
    let bits = m.bits();
    // log10(2) bounds the count from below within one; one comparison settles it.
    let guess = ((bits - 1) as f64 * std::f64::consts::LOG10_2) as u32;
    let mut n = i64::from(guess) + 1;
    while m.magnitude() >= pow10(n as u32).magnitude() {
        n += 1;
    }
    while n > 1 && m.magnitude() < pow10(n as u32 - 1).magnitude() {
        n -= 1;
    }
    n
}

/// Quotient rounded half away from zero.
pub(super) fn div_round(a: &BigInt, b: &BigInt) -> BigInt {
    let q = a / b;
    let r = a - &q * b;
    let twice: BigInt = r * 2;
    if twice.magnitude() >= b.magnitude() {
        if (a.sign() == Sign::Minus) == (b.sign() == Sign::Minus) {
            q + 1
        } else {
            q - 1
        }
    } else {
        q
    }
}

/// Product of two mantissas. Most have 64 bits: such a product cannot overflow, and is one instruction.
#[inline]
fn times(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(i128::from(a) * i128::from(b)),
        _ => a.checked_mul(b),
    }
}

fn div_round_i128(a: i128, b: i128) -> i128 {
    let q = a / b;
    let r = a % b;
    if r.unsigned_abs() >= b.unsigned_abs() - r.unsigned_abs() {
        if (a < 0) == (b < 0) { q + 1 } else { q - 1 }
    } else {
        q
    }
}

impl Numeric {
    /// Zero with scale 0.
    pub const ZERO: Numeric = Numeric::new(0, 0);

    /// `mantissa * 10^-scale`.
    #[inline]
    pub const fn new(mantissa: i128, scale: u16) -> Numeric {
        Numeric::Small {
            mantissa: Mantissa(mantissa),
            scale,
        }
    }

    /// From a big mantissa, kept small if it fits.
    pub fn from_big(mantissa: BigInt, scale: u32) -> Numeric {
        let scale = scale.min(SCALE_MAX) as u16;
        if mantissa.bits() <= 127
            && let Ok(m) = i128::try_from(&mantissa)
        {
            return Numeric::new(m, scale);
        }
        Numeric::Big {
            mantissa: Box::new(mantissa),
            scale,
        }
    }

    /// Checks the range of a computed value.
    pub(super) fn checked(self) -> Result<Numeric> {
        if let Numeric::Big { mantissa, scale } = &self {
            // Bits alone exclude nearly all values; digits are counted for huge ones only.
            if mantissa.bits() > 400_000 && digits_big(mantissa) - i64::from(*scale) > DIGITS_MAX {
                return Err(overflow());
            }
        }
        Ok(self)
    }

    /// Mantissa as a big integer; `None` for NaN and infinities.
    /// The whole number that it is; none of others.
    pub fn whole(&self) -> Option<BigInt> {
        self.big()
            .filter(|(_, scale)| *scale == 0)
            .map(|(whole, _)| whole)
    }

    pub(super) fn big(&self) -> Option<(BigInt, u32)> {
        match self {
            Numeric::Small { mantissa, scale } => {
                Some((BigInt::from(mantissa.get()), u32::from(*scale)))
            }
            Numeric::Big { mantissa, scale } => Some(((**mantissa).clone(), u32::from(*scale))),
            _ => None,
        }
    }

    /// True for NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Numeric::NaN)
    }

    /// True for neither NaN nor an infinity.
    pub fn is_finite(&self) -> bool {
        matches!(self, Numeric::Small { .. } | Numeric::Big { .. })
    }

    /// -1, 0 or 1; NaN counts as 1.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::Small { mantissa, .. } => mantissa.get().signum() as i32,
            Numeric::Big { mantissa, .. } => {
                if mantissa.sign() == Sign::Minus {
                    -1
                } else {
                    1
                }
            }
            Numeric::NaN | Numeric::Infinity => 1,
            Numeric::NegInfinity => -1,
        }
    }

    /// True for zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Small { mantissa, .. } if mantissa.get() == 0)
    }

    /// Digits shown after the decimal point; `None` for NaN and infinities.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Numeric::Small { scale, .. } | Numeric::Big { scale, .. } => Some(u32::from(*scale)),
            _ => None,
        }
    }

    fn infinity(sign: i32) -> Numeric {
        if sign < 0 {
            Numeric::NegInfinity
        } else {
            Numeric::Infinity
        }
    }

    /// Decimal exponent of the leading digit (value in `[10^e, 10^(e+1))`); `None` for zero and specials.
    pub(super) fn exponent(&self) -> Option<i64> {
        match self {
            Numeric::Small { mantissa, .. } if mantissa.get() == 0 => None,
            Numeric::Small { mantissa, scale } => {
                Some(digits_i128(mantissa.get()) - 1 - i64::from(*scale))
            }
            Numeric::Big { mantissa, scale } => Some(digits_big(mantissa) - 1 - i64::from(*scale)),
            _ => None,
        }
    }

    /// Weight and value of the leading base-10000 digit, on which PostgreSQL bases result scales; (0, 0) for zero.
    pub(super) fn leading(&self) -> (i64, u32) {
        let Some(e) = self.exponent() else {
            return (0, 0);
        };
        let weight = e.div_euclid(4);
        let wanted = e - weight * 4 + 1;
        let text = match self {
            Numeric::Small { mantissa, .. } => mantissa.get().unsigned_abs().to_string(),
            Numeric::Big { mantissa, .. } => mantissa.magnitude().to_string(),
            _ => String::new(),
        };
        let mut d = 0u32;
        let mut bytes = text.bytes();
        for _ in 0..wanted {
            d = d * 10 + u32::from(bytes.next().unwrap_or(b'0') - b'0');
        }
        (weight, d)
    }

    /// Sign change.
    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::Small { mantissa, scale } => match mantissa.get().checked_neg() {
                Some(m) => Numeric::new(m, *scale),
                None => Numeric::from_big(-BigInt::from(mantissa.get()), u32::from(*scale)),
            },
            Numeric::Big { mantissa, scale } => {
                Numeric::from_big(-(**mantissa).clone(), u32::from(*scale))
            }
            Numeric::NaN => Numeric::NaN,
            Numeric::Infinity => Numeric::NegInfinity,
            Numeric::NegInfinity => Numeric::Infinity,
        }
    }

    /// Absolute value.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 {
            self.neg()
        } else {
            self.clone()
        }
    }

    /// Both mantissas at the larger scale.
    fn aligned(&self, other: &Numeric) -> Option<(BigInt, BigInt, u32)> {
        let ((a, s), (b, t)) = (self.big()?, other.big()?);
        Some(match s.cmp(&t) {
            Ordering::Equal => (a, b, s),
            Ordering::Less => (a * pow10(t - s), b, t),
            Ordering::Greater => (a, b * pow10(s - t), s),
        })
    }

    /// Sum.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let (
            Numeric::Small {
                mantissa: a,
                scale: s,
            },
            Numeric::Small {
                mantissa: b,
                scale: t,
            },
        ) = (self, other)
        {
            let (a, b) = (a.get(), b.get());
            let sum = match s.cmp(t) {
                Ordering::Equal => a.checked_add(b),
                Ordering::Less => POW10
                    .get(usize::from(t - s))
                    .and_then(|p| times(a, *p)?.checked_add(b)),
                Ordering::Greater => POW10
                    .get(usize::from(s - t))
                    .and_then(|p| times(b, *p)?.checked_add(a)),
            };
            if let Some(m) = sum {
                return Ok(Numeric::new(m, *s.max(t)));
            }
        }
        match self.aligned(other) {
            Some((a, b, s)) => Numeric::from_big(a + b, s).checked(),
            None => Ok(match (self, other) {
                (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
                (Numeric::Infinity, Numeric::NegInfinity)
                | (Numeric::NegInfinity, Numeric::Infinity) => Numeric::NaN,
                (Numeric::Infinity | Numeric::NegInfinity, _) => self.clone(),
                _ => other.clone(),
            }),
        }
    }

    /// Adds another one to itself: what sums of many values of one scale do.
    #[inline]
    pub fn accumulate(&mut self, other: &Numeric) -> Result<()> {
        if let (
            Numeric::Small {
                mantissa: a,
                scale: s,
            },
            Numeric::Small {
                mantissa: b,
                scale: t,
            },
        ) = (&mut *self, other)
            && s == t
            && let Some(sum) = a.get().checked_add(b.get())
        {
            *a = Mantissa(sum);
            return Ok(());
        }
        *self = self.add(other)?;
        Ok(())
    }

    /// Difference.
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.neg())
    }

    /// Product; its scale is the sum of the scales.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (
            Numeric::Small {
                mantissa: a,
                scale: s,
            },
            Numeric::Small {
                mantissa: b,
                scale: t,
            },
        ) = (self, other)
        {
            let scale = u32::from(*s) + u32::from(*t);
            if let (Some(m), true) = (times(a.get(), b.get()), scale <= SCALE_MAX) {
                return Ok(Numeric::new(m, scale as u16));
            }
        }
        match (self.big(), other.big()) {
            (Some((a, s)), Some((b, t))) => {
                let n = a * b;
                let scale = s + t;
                if scale > SCALE_MAX {
                    return Numeric::from_big(div_round(&n, &pow10(scale - SCALE_MAX)), SCALE_MAX)
                        .checked();
                }
                Numeric::from_big(n, scale).checked()
            }
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NaN),
            _ => Ok(match self.signum() * other.signum() {
                0 => Numeric::NaN,
                s => Self::infinity(s),
            }),
        }
    }

    /// The scale PostgreSQL gives a quotient.
    pub(super) fn div_scale(&self, other: &Numeric) -> u32 {
        let ((w1, d1), (w2, d2)) = (self.leading(), other.leading());
        let mut q = w1 - w2;
        if d1 <= d2 {
            q -= 1;
        }
        (SIG_DIGITS_MIN - q * 4)
            .max(i64::from(self.scale().unwrap_or(0)))
            .max(i64::from(other.scale().unwrap_or(0)))
            .clamp(0, RESULT_SCALE_MAX) as u32
    }

    fn div_by_zero() -> SqlError {
        SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
    }

    /// Quotient at PostgreSQL's choice of scale, rounded half away from zero.
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(match (self, other) {
                (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
                (Numeric::Infinity | Numeric::NegInfinity, b) if !b.is_finite() => Numeric::NaN,
                (Numeric::Infinity | Numeric::NegInfinity, b) if b.is_zero() => {
                    return Err(Self::div_by_zero());
                }
                (Numeric::Infinity | Numeric::NegInfinity, b) => {
                    Self::infinity(self.signum() * b.signum())
                }
                _ => Numeric::ZERO,
            });
        }
        if other.is_zero() {
            return Err(Self::div_by_zero());
        }
        let rscale = self.div_scale(other);
        Ok(self.div_at(other, rscale))
    }

    /// Finite quotient rounded at `rscale`; `other` is not zero.
    pub(super) fn div_at(&self, other: &Numeric, rscale: u32) -> Numeric {
        let (s, t) = (
            i64::from(self.scale().unwrap_or(0)),
            i64::from(other.scale().unwrap_or(0)),
        );
        let shift = i64::from(rscale) + t - s;
        if let (Numeric::Small { mantissa: a, .. }, Numeric::Small { mantissa: b, .. }) =
            (self, other)
            && let (a, b) = (a.get(), b.get())
            && b != 0
            && shift >= 0
            && let Some(n) = POW10.get(shift as usize).and_then(|p| a.checked_mul(*p))
            && n != i128::MIN
            && b != i128::MIN
        {
            return Numeric::new(div_round_i128(n, b), rscale as u16);
        }
        match (self.big(), other.big()) {
            (Some((a, _)), Some((b, _))) if b.sign() != Sign::NoSign => {
                let (a, b) = if shift >= 0 {
                    (a * pow10(shift as u32), b)
                } else {
                    (a, b * pow10((-shift) as u32))
                };
                Numeric::from_big(div_round(&a, &b), rscale)
            }
            _ => Numeric::NaN,
        }
    }

    /// Remainder with the sign of the dividend.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        if let (
            Numeric::Small {
                mantissa: a,
                scale: s,
            },
            Numeric::Small {
                mantissa: b,
                scale: t,
            },
        ) = (self, other)
            && let (a, b) = (a.get(), b.get())
            && s == t
            && b != 0
            && b != -1
        {
            return Ok(Numeric::new(a % b, *s));
        }
        match self.aligned(other) {
            Some((a, b, s)) => {
                if b.sign() == Sign::NoSign {
                    return Err(Self::div_by_zero());
                }
                Ok(Numeric::from_big(a % b, s))
            }
            None => match (self, other) {
                (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
                (Numeric::Infinity | Numeric::NegInfinity, b) if b.is_zero() => {
                    Err(Self::div_by_zero())
                }
                (Numeric::Infinity | Numeric::NegInfinity, _) => Ok(Numeric::NaN),
                _ => Ok(self.clone()),
            },
        }
    }

    /// Integer quotient, truncated: `div(a, b)`.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return self.div(other);
        }
        match self.aligned(other) {
            Some((a, b, _)) if b.sign() != Sign::NoSign => Ok(Numeric::from_big(a / b, 0)),
            _ => Err(Self::div_by_zero()),
        }
    }

    /// Total order: -Infinity, finite values, Infinity, NaN.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        if let (
            Numeric::Small {
                mantissa: a,
                scale: s,
            },
            Numeric::Small {
                mantissa: b,
                scale: t,
            },
        ) = (self, other)
        {
            let (a, b) = (a.get(), b.get());
            let scaled = match s.cmp(t) {
                Ordering::Equal => return a.cmp(&b),
                Ordering::Less => POW10
                    .get(usize::from(t - s))
                    .and_then(|p| times(a, *p))
                    .map(|a| a.cmp(&b)),
                Ordering::Greater => POW10
                    .get(usize::from(s - t))
                    .and_then(|p| times(b, *p))
                    .map(|b| a.cmp(&b)),
            };
            if let Some(o) = scaled {
                return o;
            }
        }
        let class = |n: &Numeric| match n {
            Numeric::NegInfinity => 0,
            Numeric::Infinity => 2,
            Numeric::NaN => 3,
            _ => 1,
        };
        match self.aligned(other) {
            Some((a, b, _)) => a.cmp(&b),
            None => class(self).cmp(&class(other)),
        }
    }

    /// Feeds a hasher; equal values feed the same whatever their scale.
    pub fn hash_value<H: Hasher>(&self, h: &mut H) {
        match self {
            Numeric::Small { mantissa, .. } if mantissa.get() == 0 => h.write_u8(0),
            Numeric::Small { .. } | Numeric::Big { .. } => {
                let (digits, e) = self.digits();
                h.write_i32(self.signum());
                h.write_i64(e);
                digits.hash(h);
            }
            Numeric::NaN => h.write_u8(1),
            Numeric::Infinity => h.write_u8(2),
            Numeric::NegInfinity => h.write_u8(3),
        }
    }

    /// Rounded to a 64-bit integer; `name` names the target type in errors.
    pub fn to_i64(&self, name: &str) -> Result<i64> {
        match self {
            Numeric::NaN => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot convert NaN to {name}"),
            )),
            Numeric::Infinity | Numeric::NegInfinity => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot convert infinity to {name}"),
            )),
            _ => match self.round(0) {
                Numeric::Small { mantissa, .. } => i64::try_from(mantissa.get()).ok(),
                _ => None,
            }
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("{name} out of range"),
                )
            }),
        }
    }

    /// Nearest double; infinite beyond its range.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NegInfinity => f64::NEG_INFINITY,
            // Both operands exact in a double: one correctly rounded division.
            Numeric::Small { mantissa, scale }
                if mantissa.get().unsigned_abs() < 1 << 53 && *scale <= 22 =>
            {
                mantissa.get() as f64 / POW10[usize::from(*scale)] as f64
            }
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }
}

impl From<i64> for Numeric {
    fn from(v: i64) -> Numeric {
        Numeric::new(i128::from(v), 0)
    }
}

impl From<i32> for Numeric {
    fn from(v: i32) -> Numeric {
        Numeric::new(i128::from(v), 0)
    }
}

impl From<i128> for Numeric {
    fn from(v: i128) -> Numeric {
        Numeric::new(v, 0)
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl Numeric {
    /// The value if it is in range: rounding can add a digit.
    pub fn checked_range(self) -> Result<Numeric> {
        self.checked()
    }
}
