//! Ordered-set aggregates: percentile_cont, percentile_disc, mode. A state gets its rows in the order of WITHIN GROUP,
//! the direct argument in front of the value.

use super::AggregateState;
use super::arithmetic::bad_args;
use super::datetime::{add_intervals, scale_interval};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::error::SqlError;
use logstead_sql_types::value::{
    Array, Datum, Interval, SqlType, compare_as, info, oid, size_bytes,
};
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::Arc;

/// `percentile_cont`
pub(super) fn continuous(types: &[SqlType]) -> Box<dyn AggregateState> {
    percentile(types, true)
}

/// `percentile_disc`
pub(super) fn discrete(types: &[SqlType]) -> Box<dyn AggregateState> {
    percentile(types, false)
}

fn percentile(types: &[SqlType], continuous: bool) -> Box<dyn AggregateState> {
    Box::new(Percentile {
        continuous,
        element: types.get(1).map_or(oid::INVALID, |ty| ty.oid),
        many: types
            .first()
            .is_some_and(|ty| info::element_of(ty.oid).is_some()),
        asked: Datum::Null,
        items: Vec::new(),
        bytes: 0,
    })
}

/// `mode`
pub(super) fn mode(types: &[SqlType]) -> Box<dyn AggregateState> {
    Box::new(Mode {
        ty: types.first().map_or(oid::INVALID, |ty| ty.oid),
        best: (Datum::Null, 0),
        run: (Datum::Null, 0),
    })
}

struct Percentile {
    continuous: bool,
    /// Type of the values.
    element: TypeId,
    /// An array of fractions is asked for.
    many: bool,
    asked: Datum,
    items: Vec<Datum>,
    bytes: usize,
}

impl Percentile {
    fn at(&self, fraction: f64) -> Result<Datum> {
        let count = self.items.len();
        if !self.continuous {
            let place = (fraction * count as f64).ceil().max(1.0) as usize;
            let found = self.items.get(place.min(count).saturating_sub(1));
            return Ok(found.cloned().unwrap_or_default());
        }
        let place = fraction * count.saturating_sub(1) as f64;
        let item = |at: f64| self.items.get(at as usize).cloned().unwrap_or_default();
        let (low, high) = (item(place.floor()), item(place.ceil()));
        if place.floor() == place.ceil() {
            return Ok(low);
        }
        between(&low, &high, place - place.floor())
    }
}

/// The value that lies so far on the way from one to another.
fn between(low: &Datum, high: &Datum, part: f64) -> Result<Datum> {
    match (low, high) {
        (Datum::Float8(low), Datum::Float8(high)) => Ok(Datum::Float8(low + part * (high - low))),
        (Datum::Interval(low), Datum::Interval(high)) => {
            let back = Interval {
                months: low.months.wrapping_neg(),
                days: low.days.wrapping_neg(),
                micros: low.micros.wrapping_neg(),
            };
            let way = scale_interval(&add_intervals(high, &back)?, part)?;
            Ok(Datum::Interval(Box::new(add_intervals(low, &way)?)))
        }
        _ => Err(bad_args(&[low.clone(), high.clone()])),
    }
}

/// A fraction; 22003 for what is none.
fn fraction(asked: &Datum) -> Result<Option<f64>> {
    if asked.is_null() {
        return Ok(None);
    }
    let fraction = asked.as_f64()?;
    if (0.0..=1.0).contains(&fraction) {
        return Ok(Some(fraction));
    }
    Err(SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("percentile value {fraction} is not between 0 and 1"),
    ))
}

impl AggregateState for Percentile {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let [asked, value] = args else {
            return Err(bad_args(args));
        };
        if self.asked.is_null() {
            self.asked = asked.clone();
        }
        if !value.is_null() {
            self.bytes += size_bytes(value);
            self.items.push(value.clone());
        }
        Ok(())
    }

    fn wants_direct(&self) -> bool {
        self.asked.is_null()
    }

    fn direct(&mut self, asked: Datum) {
        self.asked = asked;
    }

    fn value(&self) -> Result<Datum> {
        if !self.many {
            let wanted = fraction(&self.asked)?;
            return match wanted {
                Some(wanted) if !self.items.is_empty() => self.at(wanted),
                _ => Ok(Datum::Null),
            };
        }
        let Datum::Array(asked) = &self.asked else {
            return Ok(Datum::Null);
        };
        // As in PostgreSQL: of no values several fractions may be asked for that are none.
        if self.items.is_empty() {
            return Ok(Datum::Null);
        }
        let wanted = asked.items.iter().map(fraction);
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let each = wanted.into_iter().map(|wanted| match wanted {
            Some(wanted) => self.at(wanted),
            None => Ok(Datum::Null),
        });
        // Of the shape of what was asked for.
        Ok(Datum::Array(Arc::new(Array {
            element: self.element,
            lower: asked.lower,
            shape: asked.shape.clone(),
            items: each.collect::<Result<Vec<_>>>()?,
        })))
    }

    fn size_bytes(&self) -> usize {
        self.bytes
    }
}

/// The value that comes most often, of several the first: equal ones follow each other.
struct Mode {
    ty: TypeId,
    best: (Datum, u64),
    run: (Datum, u64),
}

impl AggregateState for Mode {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let value = args.first().ok_or_else(|| bad_args(args))?;
        if value.is_null() {
            return Ok(());
        }
        let goes_on = self.run.1 > 0 && compare_as(self.ty, &self.run.0, value) == Ordering::Equal;
        match goes_on {
            true => self.run.1 += 1,
            false => self.run = (value.clone(), 1),
        }
        if self.run.1 > self.best.1 {
            self.best = self.run.clone();
        }
        Ok(())
    }

    fn value(&self) -> Result<Datum> {
        Ok(self.best.0.clone())
    }

    fn size_bytes(&self) -> usize {
        size_bytes(&self.best.0) + size_bytes(&self.run.0)
    }
}
