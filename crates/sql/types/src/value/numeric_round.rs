//! Rounding of NUMERIC.
//!
//! Owns: the change of a value's scale, with ties away from zero, to a number of digits or to that of its type.

use super::{DIGITS_BEFORE_MAX, Numeric, POW10, SCALE_MAX, div_round, div_round_i128, pow10};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use num_bigint::BigInt;
use std::cmp::Ordering;

impl Numeric {
    /// Rounded half away from zero to `scale` digits after the point (before it when negative).
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescale(scale, true)
    }

    /// Truncated to `scale` digits after the point.
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescale(scale, false)
    }

    fn rescale(&self, scale: i32, round: bool) -> Numeric {
        // No value has digits beyond these.
        let wanted = scale.clamp(-DIGITS_BEFORE_MAX - 1, SCALE_MAX as i32);
        let Some(have) = self.scale().map(|s| s as i32) else {
            return self.clone();
        };
        let shown = wanted.max(0) as u32;
        if wanted >= have {
            let up = (wanted - have) as usize;
            if let Numeric::Small { mantissa, .. } = self
                && let Some(m) = POW10.get(up).and_then(|p| mantissa.get().checked_mul(*p))
            {
                return Numeric::new(m, shown as u16);
            }
            return match self.big() {
                Some((m, _)) => Numeric::from_big(m * pow10(up as u32), shown),
                None => self.clone(),
            };
        }
        let down = (have - wanted) as u32;
        if let Numeric::Small { mantissa, .. } = self {
            let mantissa = mantissa.get();
            let cut = match POW10.get(down as usize) {
                None => 0,
                Some(&p) if round => div_round_i128(mantissa, p),
                Some(&p) => mantissa / p,
            };
            if wanted >= 0 || cut == 0 {
                return Numeric::new(cut, shown as u16);
            }
            return Numeric::from_big(BigInt::from(cut) * pow10((-wanted) as u32), 0);
        }
        match self.big() {
            Some((m, _)) => {
                let p = pow10(down);
                let cut = if round { div_round(&m, &p) } else { m / p };
                Numeric::from_big(
                    if wanted < 0 {
                        cut * pow10((-wanted) as u32)
                    } else {
                        cut
                    },
                    shown,
                )
            }
            None => self.clone(),
        }
    }

    /// Smallest integer not below.
    pub fn ceil(&self) -> Numeric {
        let t = self.trunc(0);
        if self.is_finite() && self.compare(&t) == Ordering::Greater {
            t.add(&Numeric::new(1, 0)).unwrap_or(t)
        } else {
            t
        }
    }

    /// Largest integer not above.
    pub fn floor(&self) -> Numeric {
        let t = self.trunc(0);
        if self.is_finite() && self.compare(&t) == Ordering::Less {
            t.sub(&Numeric::new(1, 0)).unwrap_or(t)
        } else {
            t
        }
    }

    /// Without trailing zeros after the decimal point.
    pub fn trim_scale(&self) -> Numeric {
        let Some(scale) = self.scale() else {
            return self.clone();
        };
        let (digits, e) = self.digits();
        // The last digit kept is at exponent e - (n - 1).
        let need = (digits.len() as i64 - 1 - e).max(0).min(i64::from(scale));
        if digits.is_empty() {
            Numeric::ZERO
        } else {
            self.trunc(need as i32)
        }
    }

    /// Applies `numeric(precision, scale)`.
    pub fn apply_typmod(&self, typmod: i32) -> Result<Numeric> {
        let Some((precision, scale)) = crate::value::info::numeric_typmod(typmod) else {
            return Ok(self.clone());
        };
        if self.is_nan() {
            return Ok(self.clone());
        }
        let overflow = |d: String| {
            Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "numeric field overflow",
            )
            .detail(format!(
                "A field with precision {precision}, scale {scale} {d}"
            )))
        };
        if !self.is_finite() {
            return overflow("cannot hold an infinite value.".into());
        }
        let r = self.round(scale);
        let whole = precision - scale;
        if r.exponent().is_some_and(|e| e + 1 > i64::from(whole)) {
            let bound = if whole == 0 {
                "1".to_owned()
            } else {
                format!("10^{whole}")
            };
            return overflow(format!(
                "must round to an absolute value less than {bound}."
            ));
        }
        Ok(r)
    }
}
