//! Type modifiers: bringing a value to its column's length, precision or scale.

use super::{Datum, Interval, SqlType, TimeTz, bits, datetime, oid};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;

/// Applies a type's modifier to a value already of the type. Without a modifier, or for NULL, the value stays. An
/// explicit cast cuts strings; an assignment refuses those that lose more than blanks.
pub fn coerce_typmod(d: Datum, ty: SqlType, explicit: bool) -> Result<Datum> {
    if ty.typmod < 0 {
        return Ok(d);
    }
    match (ty.oid, d) {
        (_, Datum::Null) => Ok(Datum::Null),
        (oid::VARCHAR, Datum::Text(s)) if ty.typmod >= 4 => {
            limit(&s, ty.typmod - 4, explicit, "character varying").map(|cut| match cut {
                Some(end) => Datum::text(&s[..end]),
                None => Datum::Text(s),
            })
        }
        (oid::BPCHAR, Datum::Text(s)) if ty.typmod >= 4 => {
            let width = ty.typmod - 4;
            if let Some(end) = limit(&s, width, explicit, "character")? {
                return Ok(Datum::text(&s[..end]));
            }
            let mut missing = (width as usize).saturating_sub(s.chars().count());
            if missing == 0 {
                return Ok(Datum::Text(s));
            }
            let mut padded = String::with_capacity(s.len() + missing);
            padded.push_str(&s);
            while missing > 0 {
                let piece = missing.min(BLANKS.len());
                padded.push_str(&BLANKS[..piece]);
                missing -= piece;
            }
            Ok(Datum::text(padded))
        }
        (oid::NUMERIC, Datum::Numeric(n)) => n.apply_typmod(ty.typmod).map(Datum::numeric),
        (oid::TIMESTAMP, Datum::Timestamp(t)) => {
            Ok(Datum::Timestamp(datetime::round_micros(t, ty.typmod)))
        }
        (oid::TIMESTAMPTZ, Datum::TimestampTz(t)) => {
            Ok(Datum::TimestampTz(datetime::round_micros(t, ty.typmod)))
        }
        (oid::TIMETZ, Datum::TimeTz(t)) => Ok(Datum::TimeTz(TimeTz {
            micros: datetime::round_micros(t.micros, ty.typmod),
            ..t
        })),
        (oid::BIT, Datum::Bits(v)) => bits::to_length(&v, ty.typmod, explicit),
        (oid::VARBIT, Datum::Bits(v)) => bits::to_length_at_most(&v, ty.typmod, explicit),
        (oid::TIME, Datum::Time(t)) => Ok(Datum::Time(datetime::round_micros(t, ty.typmod))),
        (oid::INTERVAL, Datum::Interval(v)) => {
            let precision = ty.typmod & datetime::fields::ANY_PRECISION;
            let v = datetime::within(datetime::fields::of(ty.typmod), &v);
            if precision > 6 {
                return Ok(Datum::Interval(Box::new(v)));
            }
            Ok(Datum::Interval(Box::new(Interval {
                micros: datetime::round_micros(v.micros, precision),
                ..v
            })))
        }
        (array, Datum::Array(a)) if crate::value::info::element_of(array) == Some(a.element) => {
            let element = SqlType {
                oid: a.element,
                typmod: ty.typmod,
            };
            let items: Result<Vec<Datum>> = a
                .items
                .iter()
                .map(|i| coerce_typmod(i.clone(), element, explicit))
                .collect();
            let array = a.with_items(a.element, items?);
            Ok(Datum::Array(std::sync::Arc::new(array)))
        }
        (_, d) => Ok(d),
    }
}

/// What char(n) is padded with, a piece at a time.
const BLANKS: &str = "                                                                ";

/// Where to cut a string longer than `width` characters; `None` when it fits.
fn limit(s: &str, width: i32, explicit: bool, name: &str) -> Result<Option<usize>> {
    let width = width as usize;
    if s.len() <= width {
        return Ok(None);
    }
    let Some((end, _)) = s.char_indices().nth(width) else {
        return Ok(None);
    };
    if !explicit && s[end..].bytes().any(|b| b != b' ') {
        return Err(SqlError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {name}({width})"),
        ));
    }
    Ok(Some(end))
}
