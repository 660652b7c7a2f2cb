//! Aggregates of pairs of numbers: corr, covar_*, regr_*.

use super::AggregateState;
use super::arithmetic::{bad_args, checked};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Regression {
    Count,
    Sxx,
    Syy,
    Sxy,
    AvgX,
    AvgY,
    R2,
    Slope,
    Intercept,
    CovarPop,
    CovarSamp,
    Corr,
}

/// An empty state.
pub(super) fn start(what: Regression) -> Box<dyn AggregateState> {
    Box::new(Pairs {
        what,
        n: 0.0,
        sx: 0.0,
        sxx: 0.0,
        sy: 0.0,
        syy: 0.0,
        sxy: 0.0,
    })
}

/// Count, sums, and sums of squared differences (Youngs and Cramer), as PostgreSQL keeps them.
struct Pairs {
    what: Regression,
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

impl AggregateState for Pairs {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let [Datum::Float8(y), Datum::Float8(x)] = args else {
            return Err(bad_args(args));
        };
        let (x, y) = (*x, *y);
        let (x_finite, y_finite) = (
            !self.sx.is_infinite() && !x.is_infinite(),
            !self.sy.is_infinite() && !y.is_infinite(),
        );
        let before = self.n;
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if before > 0.0 {
            let dx = x * self.n - self.sx;
            let dy = y * self.n - self.sy;
            let scale = 1.0 / (self.n * before);
            self.sxx += dx * dx * scale;
            self.syy += dy * dy * scale;
            self.sxy += dx * dy * scale;
            checked(self.sx, x_finite)?;
            checked(self.sy, y_finite)?;
            for (sum, finite) in [
                (&mut self.sxx, x_finite),
                (&mut self.syy, y_finite),
                (&mut self.sxy, x_finite && y_finite),
            ] {
                checked(*sum, finite)?;
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        } else {
            if !x.is_finite() {
                (self.sxx, self.sxy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.syy, self.sxy) = (f64::NAN, f64::NAN);
            }
        }
        Ok(())
    }

    fn value(&self) -> Result<Datum> {
        if self.what == Regression::Count {
            return Ok(Datum::Int8(self.n as i64));
        }
        let least = match self.what {
            Regression::CovarSamp => 2.0,
            _ => 1.0,
        };
        if self.n < least {
            return Ok(Datum::Null);
        }
        let flat_x = self.sxx == 0.0;
        Ok(Datum::Float8(match self.what {
            Regression::Count => self.n,
            Regression::Sxx => self.sxx,
            Regression::Syy => self.syy,
            Regression::Sxy => self.sxy,
            Regression::AvgX => self.sx / self.n,
            Regression::AvgY => self.sy / self.n,
            Regression::CovarPop => self.sxy / self.n,
            Regression::CovarSamp => self.sxy / (self.n - 1.0),
            Regression::Corr if flat_x || self.syy == 0.0 => return Ok(Datum::Null),
            Regression::Corr => self.sxy / (self.sxx * self.syy).sqrt(),
            Regression::R2 | Regression::Slope | Regression::Intercept if flat_x => {
                return Ok(Datum::Null);
            }
            Regression::R2 if self.syy == 0.0 => 1.0,
            Regression::R2 => (self.sxy * self.sxy) / (self.sxx * self.syy),
            Regression::Slope => self.sxy / self.sxx,
            Regression::Intercept => (self.sy - self.sx * self.sxy / self.sxx) / self.n,
        }))
    }
}
