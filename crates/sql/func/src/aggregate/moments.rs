//! Averages, variances and standard deviations.
//!
//! Owns: the running states of numbers' first two moments: exact ones of integers and numerics, those of floats as
//! PostgreSQL keeps them.

use super::super::AggregateState;
use super::super::arithmetic::bad_args;
use super::{BoxedState, Scales};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Numeric};

pub(super) fn moments(what: MomentKind) -> BoxedState {
    Box::new(Moments {
        count: 0,
        sum: Numeric::ZERO,
        squares: Some(Numeric::ZERO),
        scales: Scales::default(),
        what,
    })
}

pub(super) fn float_moments(what: MomentKind) -> BoxedState {
    Box::new(FloatMoments {
        n: 0.0,
        sum: 0.0,
        sxx: 0.0,
        what,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MomentKind {
    Avg,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
}

/// Count, sum and sum of squares, exact.
pub(super) struct Moments {
    pub(super) count: i64,
    pub(super) sum: Numeric,
    pub(super) squares: Option<Numeric>,
    pub(super) scales: Scales,
    pub(super) what: MomentKind,
}

fn as_numeric(d: &Datum) -> Result<Numeric> {
    match d {
        Datum::Numeric(n) => Ok(n.clone()),
        _ => Ok(Numeric::from(d.as_integer()?)),
    }
}

impl AggregateState for Moments {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let arg = args.first().ok_or_else(|| bad_args(args))?;
        let integer;
        let v = match arg {
            Datum::Numeric(v) => v,
            _ => {
                integer = Numeric::from(arg.as_integer()?);
                &integer
            }
        };
        self.sum.accumulate(v)?;
        if let Some(squares) = &mut self.squares {
            squares.accumulate(&v.mul(v)?)?;
        }
        self.scales.add(v);
        self.count += 1;
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let v = as_numeric(args.first().ok_or_else(|| bad_args(args))?)?;
        if !self.sum.is_finite() || !self.scales.remove(&v, self.count) {
            return Ok(false);
        }
        self.count -= 1;
        if self.count == 0 {
            self.sum = Numeric::ZERO;
            self.squares = self.squares.as_ref().map(|_| Numeric::ZERO);
            return Ok(true);
        }
        self.sum = self.sum.sub(&v)?;
        if let Some(s) = &self.squares {
            self.squares = Some(s.sub(&v.mul(&v)?)?);
        }
        Ok(true)
    }
    fn value(&self) -> Result<Datum> {
        let sample = matches!(self.what, MomentKind::VarSamp | MomentKind::StddevSamp);
        if self.count == 0 || (sample && self.count == 1) {
            return Ok(Datum::Null);
        }
        let n = Numeric::from(self.count);
        let Some(squares) = &self.squares else {
            return self.sum.div(&n).map(Datum::numeric);
        };
        if !self.sum.is_finite() || !squares.is_finite() {
            return Ok(Datum::numeric(Numeric::NaN));
        }
        // (n * sum(x^2) - sum(x)^2) / (n * (n or n - 1))
        let top = n.mul(squares)?.sub(&self.sum.mul(&self.sum)?)?;
        if top.signum() <= 0 {
            return Ok(Datum::numeric(Numeric::ZERO));
        }
        let m = Numeric::from(if sample { self.count - 1 } else { self.count });
        let variance = top.div(&n.mul(&m)?)?;
        Ok(Datum::numeric(
            if matches!(self.what, MomentKind::StddevPop | MomentKind::StddevSamp) {
                // As many digits as the division gave.
                variance.root(variance.scale().unwrap_or(0))
            } else {
                variance
            },
        ))
    }
}

/// Count, sum and sum of squared differences (Youngs and Cramer), as PostgreSQL keeps them.
struct FloatMoments {
    n: f64,
    sum: f64,
    sxx: f64,
    what: MomentKind,
}

impl AggregateState for FloatMoments {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = match args {
            [Datum::Float8(v)] => *v,
            [Datum::Float4(v)] => f64::from(*v),
            _ => return Err(bad_args(args)),
        };
        let finite = self.sum.is_finite() && v.is_finite();
        let before = self.n;
        self.n += 1.0;
        self.sum += v;
        if before > 0.0 {
            let t = v * self.n - self.sum;
            self.sxx += t * t / (self.n * before);
            if self.sum.is_infinite() || self.sxx.is_infinite() {
                super::super::arithmetic::checked(f64::INFINITY, finite)?;
                self.sxx = f64::NAN;
            }
        } else if !v.is_finite() {
            self.sxx = f64::NAN;
        }
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        let sample = matches!(self.what, MomentKind::VarSamp | MomentKind::StddevSamp);
        if self.n == 0.0 || (sample && self.n <= 1.0) {
            return Ok(Datum::Null);
        }
        Ok(Datum::Float8(match self.what {
            MomentKind::Avg => self.sum / self.n,
            MomentKind::VarPop => self.sxx / self.n,
            MomentKind::VarSamp => self.sxx / (self.n - 1.0),
            MomentKind::StddevPop => (self.sxx / self.n).sqrt(),
            MomentKind::StddevSamp => (self.sxx / (self.n - 1.0)).sqrt(),
        }))
    }
}
