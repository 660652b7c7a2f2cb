//! Aggregates: their table and their running states.
//!
//! DISTINCT, ORDER BY and FILTER are the executor's: a state sees the rows it is to count, in order. Sums of integers
//! are exact (128 bits), averages and variances of integers and numerics are exact until the last division, as in
//! PostgreSQL.

mod moments;

use super::arithmetic::{bad_args, out_of_range};
use super::ranges::{self, RangeAgg};
use super::regression::{self, Regression as Pair};
use super::{Aggregate, AggregateState, arrays, bits, money, ordered_set, xml};
use logstead_sql_types::error::Result;
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::{Datum, Interval, Numeric, SqlType, compare_as, size_bytes};
use logstead_sql_types::{FunctionId, TypeId};
use moments::{MomentKind, Moments, float_moments, moments};
use std::cmp::Ordering;

type BoxedState = Box<dyn AggregateState>;

const fn a(
    oid: u32,
    name: &'static str,
    args: &'static [TypeId],
    result: TypeId,
    start: fn(&[SqlType]) -> BoxedState,
) -> Aggregate {
    Aggregate {
        oid: FunctionId::new(oid),
        name,
        args,
        result,
        start,
        strict: true,
    }
}

const fn keeps_nulls(mut g: Aggregate) -> Aggregate {
    g.strict = false;
    g
}

fn count(_: &[SqlType]) -> BoxedState {
    Box::new(Count(0))
}
fn sum_int(_: &[SqlType]) -> BoxedState {
    Box::new(SumInt {
        sum: 0,
        count: 0,
        wide: false,
    })
}
fn sum_wide(_: &[SqlType]) -> BoxedState {
    Box::new(SumInt {
        sum: 0,
        count: 0,
        wide: true,
    })
}
fn avg_int(_: &[SqlType]) -> BoxedState {
    Box::new(Moments {
        count: 0,
        sum: Numeric::ZERO,
        squares: None,
        scales: Scales::default(),
        what: MomentKind::Avg,
    })
}
fn sum_float(_: &[SqlType]) -> BoxedState {
    Box::new(SumFloat {
        sum: 0.0,
        any: false,
    })
}
fn sum_float4(_: &[SqlType]) -> BoxedState {
    Box::new(SumFloat4(SumFloat {
        sum: 0.0,
        any: false,
    }))
}
fn sum_numeric(_: &[SqlType]) -> BoxedState {
    Box::new(SumNumeric {
        sum: None,
        count: 0,
        scales: Scales::default(),
    })
}
fn sum_interval(_: &[SqlType]) -> BoxedState {
    Box::new(SumInterval {
        sum: Interval::default(),
        count: 0,
        avg: false,
    })
}
fn avg_interval(_: &[SqlType]) -> BoxedState {
    Box::new(SumInterval {
        sum: Interval::default(),
        count: 0,
        avg: true,
    })
}
fn min(t: &[SqlType]) -> BoxedState {
    Box::new(MinMax {
        best: Datum::Null,
        keep: Ordering::Less,
        ty: t.first().map_or(INVALID, |t| t.oid),
    })
}
fn max(t: &[SqlType]) -> BoxedState {
    Box::new(MinMax {
        best: Datum::Null,
        keep: Ordering::Greater,
        ty: t.first().map_or(INVALID, |t| t.oid),
    })
}
fn bool_and(_: &[SqlType]) -> BoxedState {
    Box::new(BoolAgg {
        count: 0,
        trues: 0,
        all: true,
    })
}
fn bool_or(_: &[SqlType]) -> BoxedState {
    Box::new(BoolAgg {
        count: 0,
        trues: 0,
        all: false,
    })
}
fn bit_and(_: &[SqlType]) -> BoxedState {
    Box::new(Fold {
        acc: Datum::Null,
        f: |x, y| bitwise(x, y, |x, y| x & y),
    })
}
fn bit_or(_: &[SqlType]) -> BoxedState {
    Box::new(Fold {
        acc: Datum::Null,
        f: |x, y| bitwise(x, y, |x, y| x | y),
    })
}
fn bit_xor(_: &[SqlType]) -> BoxedState {
    Box::new(Fold {
        acc: Datum::Null,
        f: |x, y| bitwise(x, y, |x, y| x ^ y),
    })
}
fn fold(f: fn(&Datum, &Datum) -> Result<Datum>) -> BoxedState {
    Box::new(Fold {
        acc: Datum::Null,
        f,
    })
}
fn string_agg(_: &[SqlType]) -> BoxedState {
    Box::new(StringAgg(None))
}
fn bytea_agg(_: &[SqlType]) -> BoxedState {
    Box::new(ByteaAgg(None))
}
fn array_agg(t: &[SqlType]) -> BoxedState {
    let element = t
        .first()
        .map_or(TEXT, |t| if t.oid == UNKNOWN { TEXT } else { t.oid });
    Box::new(ArrayAgg {
        element,
        items: Vec::new(),
        bytes: 0,
    })
}

/// All aggregates.
#[rustfmt::skip]
pub static AGGREGATES: &[Aggregate] = &[
    keeps_nulls(a(2803, "count", &[], INT8, count)),
    a(2147, "count", &[ANY], INT8, count),
    a(2107, "sum", &[INT8], NUMERIC, sum_wide),
    a(2108, "sum", &[INT4], INT8, sum_int),
    a(2109, "sum", &[INT2], INT8, sum_int),
    a(2110, "sum", &[FLOAT4], FLOAT4, sum_float4),
    a(2111, "sum", &[FLOAT8], FLOAT8, sum_float),
    a(2112, "sum", &[MONEY], MONEY, |_| fold(|x, y| money::plus(&[x.clone(), y.clone()]))),
    a(2113, "sum", &[INTERVAL], INTERVAL, sum_interval),
    a(2114, "sum", &[NUMERIC], NUMERIC, sum_numeric),
    a(2100, "avg", &[INT8], NUMERIC, avg_int),
    a(2101, "avg", &[INT4], NUMERIC, avg_int),
    a(2102, "avg", &[INT2], NUMERIC, avg_int),
    a(2103, "avg", &[NUMERIC], NUMERIC, avg_int),
    a(2104, "avg", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::Avg)),
    a(2105, "avg", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::Avg)),
    a(2106, "avg", &[INTERVAL], INTERVAL, avg_interval),
    a(2115, "max", &[INT8], INT8, max),
    a(2116, "max", &[INT4], INT4, max),
    a(2117, "max", &[INT2], INT2, max),
    a(2118, "max", &[OID], OID, max),
    a(2119, "max", &[FLOAT4], FLOAT4, max),
    a(2120, "max", &[FLOAT8], FLOAT8, max),
    a(2122, "max", &[DATE], DATE, max),
    a(2123, "max", &[TIME], TIME, max),
    a(2124, "max", &[TIMETZ], TIMETZ, max),
    a(2125, "max", &[MONEY], MONEY, max),
    a(2797, "max", &[TID], TID, max),
    a(5099, "max", &[XID8], XID8, max),
    a(2126, "max", &[TIMESTAMP], TIMESTAMP, max),
    a(2127, "max", &[TIMESTAMPTZ], TIMESTAMPTZ, max),
    a(2128, "max", &[INTERVAL], INTERVAL, max),
    a(2129, "max", &[TEXT], TEXT, max),
    a(2130, "max", &[NUMERIC], NUMERIC, max),
    a(2244, "max", &[BPCHAR], BPCHAR, max),
    a(3564, "max", &[INET], INET, max),
    a(4189, "max", &[PG_LSN], PG_LSN, max),
    a(2050, "max", &[ANYARRAY], ANYARRAY, max),
    a(16074, "max", &[CITEXT], CITEXT, max),
    a(3526, "max", &[ANYENUM], ANYENUM, max),
    a(2131, "min", &[INT8], INT8, min),
    a(2132, "min", &[INT4], INT4, min),
    a(2133, "min", &[INT2], INT2, min),
    a(2134, "min", &[OID], OID, min),
    a(2135, "min", &[FLOAT4], FLOAT4, min),
    a(2136, "min", &[FLOAT8], FLOAT8, min),
    a(2138, "min", &[DATE], DATE, min),
    a(2139, "min", &[TIME], TIME, min),
    a(2140, "min", &[TIMETZ], TIMETZ, min),
    a(2141, "min", &[MONEY], MONEY, min),
    a(2798, "min", &[TID], TID, min),
    a(5100, "min", &[XID8], XID8, min),
    a(2142, "min", &[TIMESTAMP], TIMESTAMP, min),
    a(2143, "min", &[TIMESTAMPTZ], TIMESTAMPTZ, min),
    a(2144, "min", &[INTERVAL], INTERVAL, min),
    a(2145, "min", &[TEXT], TEXT, min),
    a(2146, "min", &[NUMERIC], NUMERIC, min),
    a(2245, "min", &[BPCHAR], BPCHAR, min),
    a(3565, "min", &[INET], INET, min),
    a(4190, "min", &[PG_LSN], PG_LSN, min),
    a(2051, "min", &[ANYARRAY], ANYARRAY, min),
    a(16075, "min", &[CITEXT], CITEXT, min),
    a(3527, "min", &[ANYENUM], ANYENUM, min),
    a(2517, "bool_and", &[BOOL], BOOL, bool_and),
    a(2518, "bool_or", &[BOOL], BOOL, bool_or),
    a(2519, "every", &[BOOL], BOOL, bool_and),
    a(2236, "bit_and", &[INT2], INT2, bit_and),
    a(2238, "bit_and", &[INT4], INT4, bit_and),
    a(2240, "bit_and", &[INT8], INT8, bit_and),
    a(2242, "bit_and", &[BIT], BIT, |_| fold(|x, y| bits::and(&[x.clone(), y.clone()]))),
    a(2237, "bit_or", &[INT2], INT2, bit_or),
    a(2239, "bit_or", &[INT4], INT4, bit_or),
    a(2241, "bit_or", &[INT8], INT8, bit_or),
    a(2243, "bit_or", &[BIT], BIT, |_| fold(|x, y| bits::or(&[x.clone(), y.clone()]))),
    a(6164, "bit_xor", &[INT2], INT2, bit_xor),
    a(6165, "bit_xor", &[INT4], INT4, bit_xor),
    a(6166, "bit_xor", &[INT8], INT8, bit_xor),
    a(6167, "bit_xor", &[BIT], BIT, |_| fold(|x, y| bits::xor(&[x.clone(), y.clone()]))),
    keeps_nulls(a(3538, "string_agg", &[TEXT, TEXT], TEXT, string_agg)),
    keeps_nulls(a(3545, "string_agg", &[BYTEA, BYTEA], BYTEA, bytea_agg)),
    keeps_nulls(a(2901, "xmlagg", &[XML], XML, |_| Box::new(xml::XmlAgg::default()))),
    keeps_nulls(a(2335, "array_agg", &[ANYNONARRAY], ANYARRAY, array_agg)),
    keeps_nulls(a(4053, "array_agg", &[ANYARRAY], ANYARRAY, arrays::stack)),
    a(2154, "stddev", &[INT8], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2155, "stddev", &[INT4], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2156, "stddev", &[INT2], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2157, "stddev", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::StddevSamp)),
    a(2158, "stddev", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::StddevSamp)),
    a(2159, "stddev", &[NUMERIC], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2724, "stddev_pop", &[INT8], NUMERIC, |_| moments(MomentKind::StddevPop)),
    a(2725, "stddev_pop", &[INT4], NUMERIC, |_| moments(MomentKind::StddevPop)),
    a(2726, "stddev_pop", &[INT2], NUMERIC, |_| moments(MomentKind::StddevPop)),
    a(2727, "stddev_pop", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::StddevPop)),
    a(2728, "stddev_pop", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::StddevPop)),
    a(2729, "stddev_pop", &[NUMERIC], NUMERIC, |_| moments(MomentKind::StddevPop)),
    a(2712, "stddev_samp", &[INT8], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2713, "stddev_samp", &[INT4], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2714, "stddev_samp", &[INT2], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2715, "stddev_samp", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::StddevSamp)),
    a(2716, "stddev_samp", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::StddevSamp)),
    a(2717, "stddev_samp", &[NUMERIC], NUMERIC, |_| moments(MomentKind::StddevSamp)),
    a(2718, "var_pop", &[INT8], NUMERIC, |_| moments(MomentKind::VarPop)),
    a(2719, "var_pop", &[INT4], NUMERIC, |_| moments(MomentKind::VarPop)),
    a(2720, "var_pop", &[INT2], NUMERIC, |_| moments(MomentKind::VarPop)),
    a(2721, "var_pop", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::VarPop)),
    a(2722, "var_pop", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::VarPop)),
    a(2723, "var_pop", &[NUMERIC], NUMERIC, |_| moments(MomentKind::VarPop)),
    a(2641, "var_samp", &[INT8], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2642, "var_samp", &[INT4], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2643, "var_samp", &[INT2], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2644, "var_samp", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::VarSamp)),
    a(2645, "var_samp", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::VarSamp)),
    a(2646, "var_samp", &[NUMERIC], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2148, "variance", &[INT8], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2149, "variance", &[INT4], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2150, "variance", &[INT2], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2151, "variance", &[FLOAT4], FLOAT8, |_| float_moments(MomentKind::VarSamp)),
    a(2152, "variance", &[FLOAT8], FLOAT8, |_| float_moments(MomentKind::VarSamp)),
    a(2153, "variance", &[NUMERIC], NUMERIC, |_| moments(MomentKind::VarSamp)),
    a(2818, "regr_count", &[FLOAT8, FLOAT8], INT8, |_| regression::start(Pair::Count)),
    a(2819, "regr_sxx", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::Sxx)),
    a(2820, "regr_syy", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::Syy)),
    a(2821, "regr_sxy", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::Sxy)),
    a(2822, "regr_avgx", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::AvgX)),
    a(2823, "regr_avgy", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::AvgY)),
    a(2824, "regr_r2", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::R2)),
    a(2825, "regr_slope", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::Slope)),
    a(2826, "regr_intercept", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::Intercept)),
    a(2827, "covar_pop", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::CovarPop)),
    a(2828, "covar_samp", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::CovarSamp)),
    a(2829, "corr", &[FLOAT8, FLOAT8], FLOAT8, |_| regression::start(Pair::Corr)),
    keeps_nulls(a(3972, "percentile_disc", &[FLOAT8, ANYELEMENT], ANYELEMENT, ordered_set::discrete)),
    keeps_nulls(a(3974, "percentile_cont", &[FLOAT8, FLOAT8], FLOAT8, ordered_set::continuous)),
    keeps_nulls(a(3976, "percentile_cont", &[FLOAT8, INTERVAL], INTERVAL, ordered_set::continuous)),
    keeps_nulls(a(3978, "percentile_disc", &[FLOAT8_ARRAY, ANYELEMENT], ANYARRAY, ordered_set::discrete)),
    keeps_nulls(a(3980, "percentile_cont", &[FLOAT8_ARRAY, FLOAT8], FLOAT8_ARRAY, ordered_set::continuous)),
    keeps_nulls(a(3982, "percentile_cont", &[FLOAT8_ARRAY, INTERVAL], INTERVAL_ARRAY, ordered_set::continuous)),
    keeps_nulls(a(3984, "mode", &[ANYELEMENT], ANYELEMENT, ordered_set::mode)),
    a(4301, "range_agg", &[ANYRANGE], ANYMULTIRANGE, |_| Box::new(RangeAgg::default())),
    a(6227, "range_agg", &[ANYMULTIRANGE], ANYMULTIRANGE, |_| Box::new(RangeAgg::default())),
    a(4450, "range_intersect_agg", &[ANYRANGE], ANYRANGE, |_| fold(|x, y| ranges::intersect(&[x.clone(), y.clone()]))),
    a(4389, "range_intersect_agg", &[ANYMULTIRANGE], ANYMULTIRANGE, |_| fold(|x, y| ranges::multirange_intersect(&[x.clone(), y.clone()]))),
    super::json::aggregate::JSON_AGG,
    super::json::aggregate::JSON_OBJECT_AGG,
    super::json::aggregate::JSONB_AGG,
    super::json::aggregate::JSONB_OBJECT_AGG,
];

struct Count(i64);

impl AggregateState for Count {
    fn add(&mut self, _: &[Datum]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
    fn remove(&mut self, _: &[Datum]) -> Result<bool> {
        self.0 -= 1;
        Ok(true)
    }
    fn value(&self) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }
}

/// Sum of integers: to bigint, or to numeric for bigint input.
struct SumInt {
    sum: i128,
    count: i64,
    wide: bool,
}

impl AggregateState for SumInt {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_integer()?;
        // 2^64 rows of the largest bigint still fit.
        self.sum += i128::from(v);
        self.count += 1;
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_integer()?;
        self.sum -= i128::from(v);
        self.count -= 1;
        Ok(true)
    }
    fn value(&self) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        if self.wide {
            return Ok(Datum::numeric(Numeric::from(self.sum)));
        }
        i64::try_from(self.sum)
            .map(Datum::Int8)
            .map_err(|_| out_of_range("bigint"))
    }
}

struct SumFloat {
    sum: f64,
    any: bool,
}

struct SumFloat4(SumFloat);

impl AggregateState for SumFloat {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_f64()?;
        self.any = true;
        self.sum = super::arithmetic::checked(self.sum + v, self.sum.is_finite() && v.is_finite())?;
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        Ok(if self.any {
            Datum::Float8(self.sum)
        } else {
            Datum::Null
        })
    }
}

impl AggregateState for SumFloat4 {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_f32()?;
        self.0.any = true;
        let sum = self.0.sum as f32 + v;
        self.0.sum =
            super::arithmetic::checked(f64::from(sum), self.0.sum.is_finite() && v.is_finite())?;
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        Ok(if self.0.any {
            Datum::Float4(self.0.sum as f32)
        } else {
            Datum::Null
        })
    }
}

/// The most digits after the point of what is in a state, which a sum has too: when the last value with so many goes,
/// the sum cannot say how many the others have. As PostgreSQL keeps them.
#[derive(Default)]
struct Scales {
    max: u32,
    count: i64,
}

impl Scales {
    fn add(&mut self, v: &Numeric) {
        let scale = v.scale().unwrap_or(0);
        match scale.cmp(&self.max) {
            Ordering::Greater => (self.max, self.count) = (scale, 1),
            Ordering::Equal => self.count += 1,
            Ordering::Less => {}
        }
    }

    /// Takes a value out of `count` that are in; false if the sum without it is not known.
    fn remove(&mut self, v: &Numeric, count: i64) -> bool {
        if !v.is_finite() {
            return false;
        }
        if v.scale().unwrap_or(0) == self.max {
            if self.count > 1 || self.max == 0 {
                self.count -= 1;
            } else if count == 1 {
                *self = Scales::default();
            } else {
                return false;
            }
        }
        true
    }
}

struct SumNumeric {
    sum: Option<Numeric>,
    count: i64,
    scales: Scales,
}

impl AggregateState for SumNumeric {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_numeric()?;
        match &mut self.sum {
            Some(sum) => sum.accumulate(v)?,
            sum => *sum = Some(v.clone()),
        }
        self.count += 1;
        self.scales.add(v);
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_numeric()?;
        let Some(sum) = self.sum.as_ref().filter(|sum| sum.is_finite()) else {
            return Ok(false);
        };
        if !self.scales.remove(v, self.count) {
            return Ok(false);
        }
        self.count -= 1;
        self.sum = match self.count {
            0 => None,
            _ => Some(sum.sub(v)?),
        };
        Ok(true)
    }
    fn value(&self) -> Result<Datum> {
        Ok(self.sum.clone().map_or(Datum::Null, Datum::numeric))
    }
}

struct SumInterval {
    sum: Interval,
    count: i64,
    avg: bool,
}

impl AggregateState for SumInterval {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_interval()?;
        self.sum = super::datetime::add_intervals(&self.sum, &v)?;
        self.count += 1;
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_interval()?;
        let (Some(months), Some(days), Some(micros)) = (
            self.sum.months.checked_sub(v.months),
            self.sum.days.checked_sub(v.days),
            self.sum.micros.checked_sub(v.micros),
        ) else {
            return Ok(false);
        };
        self.sum = Interval {
            months,
            days,
            micros,
        };
        self.count -= 1;
        Ok(true)
    }
    fn value(&self) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let v = if self.avg {
            super::datetime::divide_interval(&self.sum, self.count as f64)?
        } else {
            self.sum
        };
        Ok(Datum::Interval(Box::new(v)))
    }
}

/// min and max.
struct MinMax {
    best: Datum,
    keep: Ordering,
    ty: TypeId,
}

impl AggregateState for MinMax {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?;
        // Of equal values, which may print differently, the last.
        if self.best.is_null() || compare_as(self.ty, &self.best, v) != self.keep {
            self.best = v.clone();
        }
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        Ok(self.best.clone())
    }
    fn size_bytes(&self) -> usize {
        size_bytes(&self.best)
    }
}

/// bool_and (`all`) and bool_or.
struct BoolAgg {
    count: i64,
    trues: i64,
    all: bool,
}

impl AggregateState for BoolAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_bool()?;
        self.count += 1;
        self.trues += i64::from(v);
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let v = args.first().ok_or_else(|| bad_args(args))?.as_bool()?;
        self.count -= 1;
        self.trues -= i64::from(v);
        Ok(true)
    }
    fn value(&self) -> Result<Datum> {
        Ok(match (self.count, self.all) {
            (0, _) => Datum::Null,
            (count, true) => Datum::Bool(self.trues == count),
            (_, false) => Datum::Bool(self.trues > 0),
        })
    }
}

/// An associative operation over the non-NULL values.
struct Fold {
    acc: Datum,
    f: fn(&Datum, &Datum) -> Result<Datum>,
}

impl AggregateState for Fold {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?;
        self.acc = if self.acc.is_null() {
            v.clone()
        } else {
            (self.f)(&self.acc, v)?
        };
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        Ok(self.acc.clone())
    }
}

fn bitwise(x: &Datum, y: &Datum, f: fn(i64, i64) -> i64) -> Result<Datum> {
    match (x, y) {
        (Datum::Int2(x), Datum::Int2(y)) => Ok(Datum::Int2(f(i64::from(*x), i64::from(*y)) as i16)),
        (Datum::Int4(x), Datum::Int4(y)) => Ok(Datum::Int4(f(i64::from(*x), i64::from(*y)) as i32)),
        (Datum::Int8(x), Datum::Int8(y)) => Ok(Datum::Int8(f(*x, *y))),
        _ => Err(bad_args(&[x.clone(), y.clone()])),
    }
}

/// Values joined by the delimiter of each but the first; NULL values are left out with their delimiter.
struct StringAgg(Option<Builder>);

impl AggregateState for StringAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let [value, delimiter] = args else {
            return Err(bad_args(args));
        };
        if value.is_null() {
            return Ok(());
        }
        match &mut self.0 {
            None => {
                let mut s = Builder::default();
                s.push_str(value.as_str()?)?;
                self.0 = Some(s);
            }
            Some(s) => {
                if !delimiter.is_null() {
                    s.push_str(delimiter.as_str()?)?;
                }
                s.push_str(value.as_str()?)?;
            }
        }
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        self.0.as_ref().map_or(Ok(Datum::Null), Builder::copy_text)
    }
    fn finish(&mut self) -> Result<Datum> {
        self.0.take().map_or(Ok(Datum::Null), Builder::finish_text)
    }
    fn size_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |s| s.capacity())
    }
}

struct ByteaAgg(Option<Builder>);

impl AggregateState for ByteaAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let [value, delimiter] = args else {
            return Err(bad_args(args));
        };
        if value.is_null() {
            return Ok(());
        }
        match &mut self.0 {
            None => {
                let mut s = Builder::default();
                s.push_bytes(value.as_bytes()?)?;
                self.0 = Some(s);
            }
            Some(s) => {
                if !delimiter.is_null() {
                    s.push_bytes(delimiter.as_bytes()?)?;
                }
                s.push_bytes(value.as_bytes()?)?;
            }
        }
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        self.0.as_ref().map_or(Ok(Datum::Null), Builder::copy_bytes)
    }
    fn finish(&mut self) -> Result<Datum> {
        self.0.take().map_or(Ok(Datum::Null), Builder::finish_bytes)
    }
    fn size_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |s| s.capacity())
    }
}

struct ArrayAgg {
    element: TypeId,
    items: Vec<Datum>,
    bytes: usize,
}

impl AggregateState for ArrayAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let v = args.first().ok_or_else(|| bad_args(args))?;
        self.bytes += size_bytes(v);
        self.items.push(v.clone());
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        if self.items.is_empty() {
            return Ok(Datum::Null);
        }
        Ok(Datum::array(self.element, self.items.clone()))
    }
    fn finish(&mut self) -> Result<Datum> {
        if self.items.is_empty() {
            return Ok(Datum::Null);
        }
        Ok(Datum::array(self.element, std::mem::take(&mut self.items)))
    }
    fn size_bytes(&self) -> usize {
        self.bytes
    }
}
