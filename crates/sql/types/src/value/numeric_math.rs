//! Roots, powers, exponentials and logarithms of NUMERIC, with PostgreSQL's choice of result scale.
//!
//! Values are computed as big fixed-point integers with guard digits and rounded once at the end.

use super::numeric::{Numeric, RESULT_SCALE_MAX, SIG_DIGITS_MIN, div_round, pow10};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use logstead_types::SqlState;
use num_bigint::{BigInt, Sign};

fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

fn log_error(text: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOG, text)
}

fn power_error(text: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, text)
}

/// A fixed-point number with `p` digits after the point.
fn fixed(n: &Numeric, p: u32) -> BigInt {
    match n.big() {
        Some((m, s)) if s <= p => m * pow10(p - s),
        Some((m, s)) => div_round(&m, &pow10(s - p)),
        None => BigInt::ZERO,
    }
}

fn unfix(v: &BigInt, p: u32, rscale: u32) -> Numeric {
    if p >= rscale {
        Numeric::from_big(div_round(v, &pow10(p - rscale)), rscale)
    } else {
        Numeric::from_big(v * pow10(rscale - p), rscale)
    }
}

/// e^x in fixed point; |x| is moderate.
fn exp_fixed(x: &BigInt, p: u32) -> Result<BigInt> {
    let one = pow10(p);
    // Halve until small, sum the series, square back.
    let mut halvings = 0u32;
    let mut r = x.clone();
    let bound: BigInt = &one / 256;
    while r.magnitude() > bound.magnitude() {
        check_for_interrupts()?;
        r = div_round(&r, &BigInt::from(2));
        halvings += 1;
    }
    let mut sum = one.clone();
    let mut term = one.clone();
    let mut k = 1;
    loop {
        check_for_interrupts()?;
        term = div_round(&(div_round(&(&term * &r), &one)), &BigInt::from(k));
        if term.sign() == Sign::NoSign {
            break;
        }
        sum += &term;
        k += 1;
    }
    for _ in 0..halvings {
        check_for_interrupts()?;
        sum = div_round(&(&sum * &sum), &one);
    }
    Ok(sum)
}

/// ln(x) in fixed point, x > 0 in fixed point.
fn ln_fixed(x: &BigInt, p: u32) -> Result<BigInt> {
    let one = pow10(p);
    let tenth: BigInt = &one / 10;
    // Roots bring x near 1; each doubles the logarithm's factor.
    let mut factor = BigInt::from(2);
    let mut y = x.clone();
    let near = |y: &BigInt| {
        let gap: BigInt = y - &one;
        gap.magnitude() <= tenth.magnitude()
    };
    while !near(&y) {
        check_for_interrupts()?;
        y = (&y * &one).sqrt();
        factor *= 2;
    }
    // ln y = 2 atanh((y - 1) / (y + 1))
    let z = div_round(&((&y - &one) * &one), &(&y + &one));
    let z2 = div_round(&(&z * &z), &one);
    let mut sum = z.clone();
    let mut power = z;
    let mut k = 3;
    loop {
        check_for_interrupts()?;
        power = div_round(&(&power * &z2), &one);
        let term = div_round(&power, &BigInt::from(k));
        if term.sign() == Sign::NoSign {
            break;
        }
        sum += term;
        k += 2;
    }
    Ok(sum * factor)
}

/// Decimal weight of ln(x), estimated as PostgreSQL does.
fn ln_weight(n: &Numeric) -> i64 {
    if n.signum() <= 0 || !n.is_finite() {
        return 0;
    }
    let (low, high) = (Numeric::new(9, 1), Numeric::new(11, 1));
    if n.compare(&low).is_ge() && n.compare(&high).is_le() {
        let d = n.sub(&Numeric::new(1, 0)).unwrap_or(Numeric::ZERO);
        if d.is_zero() {
            return 0;
        }
        let (w, first) = d.leading();
        return w * 4 + f64::from(first).log10() as i64;
    }
    let (digits, e) = n.digits();
    // Up to two base-10000 digits, aligned as in PostgreSQL.
    let (w, first) = n.leading();
    let lead = (e - w * 4 + 1) as usize;
    let (mut d, mut dw) = (f64::from(first), w * 4);
    if digits.len() > lead {
        let mut second = 0u32;
        for i in 0..4 {
            second = second * 10 + digits.get(lead + i).map_or(0, |c| u32::from(c - b'0'));
        }
        d = d * 10_000.0 + f64::from(second);
        dw -= 4;
    }
    let ln = d.ln() + dw as f64 * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

fn choose(scale: i64, at_least: &[&Numeric]) -> u32 {
    let least = at_least.iter().filter_map(|n| n.scale()).max().unwrap_or(0);
    scale.max(i64::from(least)).clamp(0, RESULT_SCALE_MAX) as u32
}

/// Digits before the point, at least 0.
fn whole_digits(n: &Numeric) -> i64 {
    n.exponent().map_or(0, |e| e + 1).max(0)
}

fn ln_at(n: &Numeric, rscale: u32) -> Result<Numeric> {
    let small = n.exponent().map_or(0, |e| (-e).max(0));
    let p = rscale + 15 + small as u32 + whole_digits(n).min(100_000) as u32 / 8;
    Ok(unfix(&ln_fixed(&fixed(n, p), p)?, p, rscale))
}

impl Numeric {
    /// Square root.
    pub fn sqrt(&self) -> Result<Numeric> {
        match self {
            Numeric::NaN | Numeric::Infinity => return Ok(self.clone()),
            _ if self.signum() < 0 => {
                return Err(power_error("cannot take square root of a negative number"));
            }
            _ => {}
        }
        let (w, _) = self.leading();
        let weight = (w + 1) * 4 / 2 - 1;
        let rscale = choose(SIG_DIGITS_MIN - weight, &[self]);
        Ok(self.root(rscale))
    }

    /// The square root of a finite number that is not negative, to `rscale` digits after the point.
    pub fn root(&self, rscale: u32) -> Numeric {
        let (m, s) = self.big().unwrap_or((BigInt::ZERO, 0));
        // One digit more than wanted, then round: the root is cut, and a cut 5 is a 5 or more.
        let p = rscale + 1;
        let scaled = if 2 * p >= s {
            m * pow10(2 * p - s)
        } else {
            m / pow10(s - 2 * p)
        };
        unfix(&scaled.sqrt(), p, rscale)
    }

    /// e to the power of this.
    pub fn exp(&self) -> Result<Numeric> {
        match self {
            Numeric::NaN | Numeric::Infinity => return Ok(self.clone()),
            Numeric::NegInfinity => return Ok(Numeric::ZERO),
            _ => {}
        }
        let val = (self.to_f64() * std::f64::consts::LOG10_E).clamp(-2000.0, 2000.0);
        let rscale = choose(SIG_DIGITS_MIN - val as i64, &[self]);
        self.exp_at(rscale)
    }

    fn exp_at(&self, rscale: u32) -> Result<Numeric> {
        let x = self.to_f64();
        // NUMERIC_MAX_RESULT_SCALE * 3 in PostgreSQL.
        if x.abs() >= 6000.0 {
            return if x > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::new(0, rscale as u16))
            };
        }
        let digits = (x.abs() * std::f64::consts::LOG10_E) as u32;
        let p = rscale + digits + 20;
        unfix(&exp_fixed(&fixed(self, p), p)?, p, rscale).checked()
    }

    fn check_log(&self) -> Result<()> {
        match self.signum() {
            _ if self.is_nan() => Ok(()),
            0 => Err(log_error("cannot take logarithm of zero")),
            -1 => Err(log_error("cannot take logarithm of a negative number")),
            _ => Ok(()),
        }
    }

    /// Natural logarithm.
    pub fn ln(&self) -> Result<Numeric> {
        self.check_log()?;
        if !self.is_finite() {
            return Ok(self.clone());
        }
        ln_at(self, choose(SIG_DIGITS_MIN - ln_weight(self), &[self]))
    }

    /// Logarithm to `base`.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NaN);
        }
        base.check_log()?;
        self.check_log()?;
        match (base.is_finite(), self.is_finite()) {
            (true, true) => {}
            (false, false) => return Ok(Numeric::NaN),
            (false, true) => return Ok(Numeric::ZERO),
            (true, false) => return Ok(Numeric::Infinity),
        }
        let weight = ln_weight(self) - ln_weight(base);
        let rscale = choose(SIG_DIGITS_MIN - weight, &[self, base]);
        let p = rscale
            + 25
            + ln_weight(base).unsigned_abs().min(2000) as u32
            + ln_weight(self).unsigned_abs().min(2000) as u32;
        let (a, b) = (ln_at(self, p)?, ln_at(base, p)?);
        if b.is_zero() {
            return Err(SqlError::new(
                SqlState::DIVISION_BY_ZERO,
                "division by zero",
            ));
        }
        Ok(a.div_at(&b, rscale))
    }

    /// Power.
    pub fn power(&self, exp: &Numeric) -> Result<Numeric> {
        let one = Numeric::new(1, 0);
        if !self.is_finite() || !exp.is_finite() {
            return self.power_special(exp);
        }
        if self.is_zero() && exp.signum() < 0 {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        let integral = exp.compare(&exp.trunc(0)).is_eq();
        if self.signum() < 0 && !integral {
            return Err(power_error(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if integral
            && let Ok(n) = exp
                .to_i64("bigint")
                .map_err(|_| ())
                .and_then(|n| i32::try_from(n).map_err(|_| ()))
        {
            let rscale = choose(SIG_DIGITS_MIN, &[self]);
            return self.power_int(n, rscale);
        }
        if self.is_zero() {
            return Ok(Numeric::new(0, SIG_DIGITS_MIN as u16));
        }
        let odd = integral && !exp.rem(&Numeric::new(2, 0))?.is_zero();
        let base = self.abs();
        if base.compare(&one).is_eq() {
            let r = one.round(choose(SIG_DIGITS_MIN, &[self, exp]) as i32);
            return Ok(if odd && self.signum() < 0 { r.neg() } else { r });
        }
        let rough = ln_at(&base, choose(8 - ln_weight(&base), &[]))?
            .mul(exp)?
            .to_f64();
        if rough.abs() > 2000.0 * 3.01 {
            return if rough > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::new(0, RESULT_SCALE_MAX as u16))
            };
        }
        let weight = (rough * std::f64::consts::LOG10_E) as i64;
        let rscale = choose(SIG_DIGITS_MIN - weight, &[self, exp]);
        let digits = (i64::from(rscale) + weight.abs() + whole_digits(exp) + 12).max(0) as u32;
        let r = ln_at(&base, digits)?.mul(exp)?.exp_at(rscale)?;
        Ok(if odd && self.signum() < 0 { r.neg() } else { r })
    }

    fn power_special(&self, exp: &Numeric) -> Result<Numeric> {
        let one = Numeric::new(1, 0);
        // As in POSIX pow: 1 to anything and anything to 0 are 1.
        if self.is_nan() {
            return Ok(if exp.is_zero() { one } else { Numeric::NaN });
        }
        if exp.is_nan() {
            return Ok(if self.compare(&one).is_eq() {
                one
            } else {
                Numeric::NaN
            });
        }
        if self.is_zero() && exp.signum() < 0 {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        let integral = !exp.is_finite() || exp.compare(&exp.trunc(0)).is_eq();
        if self.signum() < 0 && !integral {
            return Err(power_error(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if self.compare(&one).is_eq() || exp.is_zero() {
            return Ok(one);
        }
        if self.is_zero() {
            return Ok(Numeric::ZERO);
        }
        if !exp.is_finite() {
            let magnitude = self.abs().compare(&one);
            return Ok(match (magnitude, exp.signum()) {
                (std::cmp::Ordering::Equal, _) => one,
                (std::cmp::Ordering::Greater, 1) | (std::cmp::Ordering::Less, -1) => {
                    Numeric::Infinity
                }
                _ => Numeric::ZERO,
            });
        }
        if exp.signum() < 0 {
            return Ok(Numeric::ZERO);
        }
        let odd = !exp.rem(&Numeric::new(2, 0))?.is_zero();
        Ok(if self.signum() < 0 && odd {
            Numeric::NegInfinity
        } else {
            Numeric::Infinity
        })
    }

    fn power_int(&self, n: i32, rscale: u32) -> Result<Numeric> {
        let one = Numeric::new(1, 0);
        match n {
            0 => return Ok(one.round(rscale as i32)),
            1 => return Ok(self.round(rscale as i32)),
            -1 => return Ok(one.div_at(self, rscale)),
            2 => return Ok(self.mul(self)?.round(rscale as i32)),
            _ => {}
        }
        if self.is_zero() {
            return Ok(Numeric::new(0, rscale as u16));
        }
        let weight = (self.abs().to_f64().log10() * f64::from(n)).clamp(-1e9, 1e9);
        if weight > 131_072.0 {
            return Err(overflow());
        }
        if weight + 1.0 < -(RESULT_SCALE_MAX as f64) {
            return Ok(Numeric::new(0, rscale as u16));
        }
        // Significant digits of the result, and guards for the error of every squaring.
        let keep = (weight.max(0.0) as i64 + i64::from(rscale) + 30).max(40);
        let cut = |v: Numeric| -> Numeric {
            let Some(e) = v.exponent() else { return v };
            let scale = (keep - e).max(0);
            match v.scale() {
                Some(s) if i64::from(s) > scale => v.cut_to(scale as u32),
                _ => v,
            }
        };
        let mut result = one.clone();
        let mut base = self.clone();
        let mut e = n.unsigned_abs();
        while e > 0 {
            check_for_interrupts()?;
            if e & 1 == 1 {
                result = cut(result.mul(&base)?);
            }
            e >>= 1;
            if e > 0 {
                base = cut(base.mul(&base)?);
            }
        }
        if n < 0 {
            if result.is_zero() {
                return Err(overflow());
            }
            return Ok(one.div_at(&result, rscale));
        }
        Ok(result.round(rscale as i32))
    }

    /// Rounds to any scale up to the largest (unlike `round`, which has PostgreSQL's limit).
    fn cut_to(&self, scale: u32) -> Numeric {
        match self.big() {
            Some((m, s)) if s > scale => Numeric::from_big(div_round(&m, &pow10(s - scale)), scale),
            _ => self.clone(),
        }
    }
}
