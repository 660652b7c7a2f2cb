//! Functions of windows: their table, and which rows are within a distance of another (RANGE with an offset).
//!
//! What the functions compute is the executor's (`exec::window`): it depends on a row's place in its partition.

use super::datetime::{minus, minus_zoned, plus, plus_zoned};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::{Datum, Numeric, compare};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;
use std::cmp::Ordering;

/// A function that can only be called over a window.
pub struct WindowFunction {
    /// `pg_proc.oid`.
    pub oid: FunctionId,
    /// Name.
    pub name: &'static str,
    /// Argument types.
    pub args: &'static [TypeId],
    /// Result type.
    pub result: TypeId,
    /// What it computes.
    pub kind: WindowKind,
}

/// What a function of windows computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Number of the row in its partition.
    RowNumber,
    /// Number of the first of its peers.
    Rank,
    /// Number of its group of peers.
    DenseRank,
    /// (rank - 1) / (rows - 1).
    PercentRank,
    /// Rows up to its last peer / rows.
    CumeDist,
    /// Number of the bucket.
    Ntile,
    /// The value so many rows before.
    Lag,
    /// The value so many rows after.
    Lead,
    /// The first value of the frame.
    FirstValue,
    /// The last value of the frame.
    LastValue,
    /// The n-th value of the frame.
    NthValue,
}

impl WindowKind {
    /// Whether it looks at the frame.
    pub fn uses_frame(self) -> bool {
        matches!(
            self,
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue
        )
    }
}

const fn w(
    oid: u32,
    name: &'static str,
    args: &'static [TypeId],
    result: TypeId,
    kind: WindowKind,
) -> WindowFunction {
    WindowFunction {
        oid: FunctionId::new(oid),
        name,
        args,
        result,
        kind,
    }
}

/// All functions of windows.
#[rustfmt::skip]
pub static WINDOW_FUNCTIONS: &[WindowFunction] = &[
    w(3100, "row_number", &[], INT8, WindowKind::RowNumber),
    w(3101, "rank", &[], INT8, WindowKind::Rank),
    w(3102, "dense_rank", &[], INT8, WindowKind::DenseRank),
    w(3103, "percent_rank", &[], FLOAT8, WindowKind::PercentRank),
    w(3104, "cume_dist", &[], FLOAT8, WindowKind::CumeDist),
    w(3105, "ntile", &[INT4], INT4, WindowKind::Ntile),
    w(3106, "lag", &[ANYELEMENT], ANYELEMENT, WindowKind::Lag),
    w(3107, "lag", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::Lag),
    w(3108, "lag", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], ANYCOMPATIBLE, WindowKind::Lag),
    w(3109, "lead", &[ANYELEMENT], ANYELEMENT, WindowKind::Lead),
    w(3110, "lead", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::Lead),
    w(3111, "lead", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], ANYCOMPATIBLE, WindowKind::Lead),
    w(3112, "first_value", &[ANYELEMENT], ANYELEMENT, WindowKind::FirstValue),
    w(3113, "last_value", &[ANYELEMENT], ANYELEMENT, WindowKind::LastValue),
    w(3114, "nth_value", &[ANYELEMENT, INT4], ANYELEMENT, WindowKind::NthValue),
];

/// Types of the offsets that RANGE takes over an order by values of `order`; none if it takes no offset.
pub fn range_offsets(order: TypeId) -> &'static [TypeId] {
    match order {
        INT2 => &[INT8, INT4, INT2],
        INT4 => &[INT8, INT4, INT2],
        INT8 => &[INT8],
        FLOAT4 | FLOAT8 => &[FLOAT8],
        NUMERIC => &[NUMERIC],
        DATE | TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ | INTERVAL => &[INTERVAL],
        _ => &[],
    }
}

fn negative_offset() -> SqlError {
    SqlError::new(
        SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
        "invalid preceding or following size in window function",
    )
}

/// Whether `value` is at most (`less`) or at least `base` plus `offset`, or minus it (`subtract`). None of them is
/// NULL. What is beyond the type's range is beyond all its values.
pub fn in_range(
    cx: &dyn DateTimeContext,
    value: &Datum,
    base: &Datum,
    offset: &Datum,
    subtract: bool,
    less: bool,
) -> Result<bool> {
    let within = |order: Ordering| match less {
        true => order != Ordering::Greater,
        false => order != Ordering::Less,
    };
    match (value, base) {
        (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_), _) => {
            let offset = offset.as_integer()?;
            if offset < 0 {
                return Err(negative_offset());
            }
            let (value, base) = (value.as_integer()?, base.as_integer()?);
            let offset = if subtract {
                -i128::from(offset)
            } else {
                i128::from(offset)
            };
            Ok(within(i128::from(value).cmp(&(i128::from(base) + offset))))
        }
        (Datum::Float4(value), Datum::Float4(base)) => float_in_range(
            f64::from(*value),
            f64::from(*base),
            offset.as_f64()?,
            subtract,
            less,
        ),
        (Datum::Float8(value), Datum::Float8(base)) => {
            float_in_range(*value, *base, offset.as_f64()?, subtract, less)
        }
        (Datum::Numeric(value), Datum::Numeric(base)) => {
            numeric_in_range(value, base, offset.as_numeric()?, subtract, less)
        }
        (Datum::TimeTz(value), Datum::TimeTz(base)) => {
            let offset = offset.as_interval()?.micros;
            if offset < 0 {
                return Err(negative_offset());
            }
            let offset = if subtract { -offset } else { offset };
            let sum = i128::from(base.utc_micros()) + i128::from(offset);
            let order = i128::from(value.utc_micros()).cmp(&sum);
            Ok(within(order.then(value.west.cmp(&base.west))))
        }
        (Datum::Time(value), Datum::Time(base)) => {
            // Only the time of the interval counts, and the day does not begin again.
            let offset = offset.as_interval()?.micros;
            if offset < 0 {
                return Err(negative_offset());
            }
            let offset = if subtract {
                -i128::from(offset)
            } else {
                i128::from(offset)
            };
            Ok(within(
                i128::from(*value).cmp(&(i128::from(*base) + offset)),
            ))
        }
        _ => {
            if offset.as_interval()?.span() < 0 {
                return Err(negative_offset());
            }
            let pair = [base.clone(), offset.clone()];
            let sum = match (base, subtract) {
                (Datum::TimestampTz(_), false) => plus_zoned(cx, &pair)?,
                (Datum::TimestampTz(_), true) => minus_zoned(cx, &pair)?,
                (Datum::Interval(base), true) => {
                    let negated = minus(std::slice::from_ref(offset))?;
                    plus(&[Datum::Interval(base.clone()), negated])?
                }
                (_, false) => plus(&pair)?,
                (_, true) => minus(&pair)?,
            };
            // A date is a moment here: the sum is one.
            let value = match value {
                Datum::Date(_) => super::datetime::date_to_timestamp(std::slice::from_ref(value))?,
                other => other.clone(),
            };
            Ok(within(compare(&value, &sum)))
        }
    }
}

fn float_in_range(value: f64, base: f64, offset: f64, subtract: bool, less: bool) -> Result<bool> {
    if offset.is_nan() || offset < 0.0 {
        return Err(negative_offset());
    }
    // NaN is above all numbers, whatever the offset.
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ok(true),
        (true, false) => return Ok(!less),
        (false, true) => return Ok(less),
        (false, false) => {}
    }
    // Infinity less infinity: anything is in reach of it.
    if offset.is_infinite() && base.is_infinite() && (base > 0.0) == subtract {
        return Ok(true);
    }
    let sum = if subtract {
        base - offset
    } else {
        base + offset
    };
    Ok(if less { value <= sum } else { value >= sum })
}

fn numeric_in_range(
    value: &Numeric,
    base: &Numeric,
    offset: &Numeric,
    subtract: bool,
    less: bool,
) -> Result<bool> {
    if offset.is_nan() || offset.signum() < 0 {
        return Err(negative_offset());
    }
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ok(true),
        (true, false) => return Ok(!less),
        (false, true) => return Ok(less),
        (false, false) => {}
    }
    if !offset.is_finite() && !base.is_finite() && (base.signum() > 0) == subtract {
        return Ok(true);
    }
    let sum = if subtract {
        base.sub(offset)?
    } else {
        base.add(offset)?
    };
    let order = value.compare(&sum);
    Ok(match less {
        true => order != Ordering::Greater,
        false => order != Ordering::Less,
    })
}
