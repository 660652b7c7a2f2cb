//! What is known of one column's values: PostgreSQL's `VariableStatData`.
//!
//! Owns: the share of rows in which a column is equal to a value, below it or above it, by its common values and its
//! histogram.

use crate::cost;
use crate::rewrite::leakproof::is_leakproof_type;
use logstead_sql_catalog::ColumnStatistics;
use logstead_sql_func::Comparison;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, compare, oid};
use std::cmp::Ordering;

/// A column, with what is known of it.
pub(crate) struct Variable<'b> {
    pub(super) known: Option<&'b ColumnStatistics>,
    /// Rows of its relation.
    pub(super) rows: f64,
    /// No two rows have the same value.
    pub(super) unique: bool,
    pub(super) not_null: bool,
    pub(super) ty: TypeId,
    /// Row security hides rows of it. What is known is of all rows, so nothing that could tell of hidden values may
    /// be tried on it.
    pub(super) guarded: bool,
    /// The FROM item.
    pub(crate) rel: usize,
}

impl<'b> Variable<'b> {
    /// What comparisons by the column's type's own operators may look at.
    pub(super) fn compared(&self) -> Option<&'b ColumnStatistics> {
        self.known
            .filter(|_| !self.guarded || is_leakproof_type(self.ty))
    }

    /// The same for what other functions say of values, such as LIKE.
    pub(super) fn matched(self) -> Variable<'b> {
        let known = self.known.filter(|_| !self.guarded);
        Variable { known, ..self }
    }

    /// Different values.
    pub(crate) fn distinct(&self) -> f64 {
        if self.unique {
            return self.rows.max(1.0);
        }
        let known = self.known.and_then(|k| k.distinct_of(self.rows));
        known
            .unwrap_or(if self.ty == oid::BOOL {
                2.0
            } else {
                cost::DISTINCT.min(self.rows)
            })
            .max(1.0)
    }

    pub(crate) fn null_frac(&self) -> f64 {
        match self.known {
            _ if self.not_null => 0.0,
            Some(known) => f64::from(known.null_frac),
            None => 0.0,
        }
    }

    /// Share of rows that equal a value, or one that nobody knows.
    pub(super) fn equal(&self, value: Option<&Datum>) -> f64 {
        if value.is_some_and(Datum::is_null) {
            return 0.0;
        }
        if self.unique {
            return 1.0 / self.rows.max(1.0);
        }
        let Some(known) = self.compared() else {
            return 1.0 / self.distinct();
        };
        let common: f64 = known.common.iter().map(|(_, f)| f64::from(*f)).sum();
        let null = f64::from(known.null_frac);
        match value {
            Some(value) => {
                let same = |v: &Datum| order(v, value) == Some(Ordering::Equal);
                if let Some((_, share)) = known.common.iter().find(|(v, _)| same(v)) {
                    return f64::from(*share);
                }
                let others = self.distinct() - known.common.len() as f64;
                let each = (1.0 - common - null).max(0.0) / others.max(1.0);
                let least = known.common.last().map_or(1.0, |(_, f)| f64::from(*f));
                each.min(least)
            }
            None => {
                let most = known.common.first().map_or(1.0, |(_, f)| f64::from(*f));
                ((1.0 - null) / self.distinct()).min(most)
            }
        }
    }

    /// Share of rows for which `value op constant` holds; `None` if nothing is known.
    pub(super) fn side(&self, op: Comparison, value: &Datum) -> Option<f64> {
        let known = self.compared()?;
        let holds = |v: &Datum| {
            let ordering = order(v, value)?;
            Some(match op {
                Comparison::Lt => ordering.is_lt(),
                Comparison::Le => ordering.is_le(),
                Comparison::Gt => ordering.is_gt(),
                Comparison::Ge => ordering.is_ge(),
                Comparison::Eq => ordering.is_eq(),
                Comparison::Ne => ordering.is_ne(),
            })
        };
        let (mut common, mut within) = (0.0, 0.0);
        for (v, share) in &known.common {
            common += f64::from(*share);
            if holds(v)? {
                within += f64::from(*share);
            }
        }
        let rest = (1.0 - common - f64::from(known.null_frac)).max(0.0);
        let below = match below(&known.bounds, value) {
            Some(below) => below,
            // Nothing is left, or nothing is known of it.
            None if known.common.is_empty() => return None,
            None => 0.5,
        };
        let share = match op {
            Comparison::Lt | Comparison::Le => below,
            _ => 1.0 - below,
        };
        Some((within + rest * share).clamp(0.0, 1.0))
    }
}

/// The order of two values that can be compared.
fn order(a: &Datum, b: &Datum) -> Option<Ordering> {
    use Datum as D;
    // A guess may take all texts for char(n), whose blanks at the end do not count.
    if let (D::Text(a), D::Text(b)) = (a, b) {
        return Some(a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')));
    }
    let integer = |d: &Datum| matches!(d, D::Int2(_) | D::Int4(_) | D::Int8(_));
    let float = |d: &Datum| matches!(d, D::Float4(_) | D::Float8(_));
    let alike = std::mem::discriminant(a) == std::mem::discriminant(b)
        || (integer(a) && integer(b))
        || (float(a) && float(b));
    alike.then(|| compare::compare(a, b))
}

/// Share of a histogram's rows below a value.
fn below(bounds: &[Datum], value: &Datum) -> Option<f64> {
    let (first, last) = (bounds.first()?, bounds.last()?);
    if order(first, value)? != Ordering::Less {
        return Some(0.0);
    }
    if order(last, value)? == Ordering::Less {
        return Some(1.0);
    }
    let at = bounds.partition_point(|b| order(b, value) == Some(Ordering::Less));
    let (low, high) = (bounds.get(at.checked_sub(1)?)?, bounds.get(at)?);
    let within = within(low, high, value).unwrap_or(0.5);
    Some(((at - 1) as f64 + within.clamp(0.0, 1.0)) / (bounds.len() - 1) as f64)
}

/// How far a value stands from one bound to the next.
fn within(low: &Datum, high: &Datum, value: &Datum) -> Option<f64> {
    let (low, high, value) = match (low, high, value) {
        (Datum::Text(l), Datum::Text(h), Datum::Text(v)) => {
            let same = l.bytes().zip(h.bytes()).take_while(|(a, b)| a == b).count();
            (digits(l, same), digits(h, same), digits(v, same))
        }
        _ => (number(low)?, number(high)?, number(value)?),
    };
    (high > low).then(|| (value - low) / (high - low))
}

/// A text behind what its bounds have in common, as a fraction.
fn digits(text: &str, skip: usize) -> f64 {
    let mut share = 1.0;
    let bytes = text.bytes().skip(skip).take(8);
    bytes.fold(0.0, |sum, byte| {
        share /= 256.0;
        sum + f64::from(byte) * share
    })
}

fn number(datum: &Datum) -> Option<f64> {
    Some(match datum {
        Datum::Int2(v) => f64::from(*v),
        Datum::Int4(v) | Datum::Date(v) => f64::from(*v),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => *v as f64,
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Oid(v) => f64::from(*v),
        Datum::Numeric(v) => v.to_f64(),
        Datum::Interval(v) => v.span() as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(known: &ColumnStatistics) -> Variable<'_> {
        Variable {
            known: Some(known),
            rows: 1_000.0,
            unique: false,
            not_null: false,
            ty: oid::INT4,
            guarded: false,
            rel: 0,
        }
    }

    fn known() -> ColumnStatistics {
        ColumnStatistics {
            position: 0,
            ty: oid::INT4,
            null_frac: 0.1,
            width: 4,
            distinct: 41.0,
            common: vec![(Datum::Int4(7), 0.5)],
            bounds: (0..=4).map(|i| Datum::Int4(i * 10)).collect(),
            correlation: None,
        }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    #[test]
    fn a_value_is_common_or_one_of_the_rest() {
        let known = known();
        let v = variable(&known);
        near(v.equal(Some(&Datum::Int4(7))), 0.5);
        near(v.equal(Some(&Datum::Int8(7))), 0.5);
        near(v.equal(Some(&Datum::Int4(8))), 0.4 / 40.0);
        near(v.equal(Some(&Datum::Null)), 0.0);
        near(v.equal(None), 0.9 / 41.0);
    }

    #[test]
    fn a_side_is_what_the_histogram_has_of_it() {
        let known = known();
        let v = variable(&known);
        let side = |op, value| v.side(op, &Datum::Int4(value)).unwrap();
        // Half of the rest, and the common value.
        near(side(Comparison::Lt, 20), 0.5 + 0.4 * 0.5);
        near(side(Comparison::Ge, 20), 0.4 * 0.5);
        // A quarter of a part.
        near(side(Comparison::Gt, 25), 0.4 * (1.0 - 2.5 / 4.0));
        near(side(Comparison::Lt, -1), 0.0);
        near(side(Comparison::Gt, 50), 0.0);
        assert_eq!(v.side(Comparison::Lt, &Datum::text("x")), None);
    }

    #[test]
    fn blanks_at_the_end_do_not_count() {
        let padded = Datum::text("BUILDING  ");
        assert_eq!(
            order(&padded, &Datum::text("BUILDING")),
            Some(Ordering::Equal)
        );
        assert_eq!(order(&padded, &Datum::text("CAR")), Some(Ordering::Less));
    }

    #[test]
    fn texts_stand_between_bounds_by_their_bytes() {
        let bounds = [Datum::text("aaa"), Datum::text("aaz")];
        let at = |text: &str| below(&bounds, &Datum::text(text)).unwrap();
        assert!(at("aab") < at("aam") && at("aam") < at("aay"));
        near(at("a"), 0.0);
        near(at("ab"), 1.0);
    }
}
