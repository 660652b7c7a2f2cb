//! Order of values by their stored form, in which values that are equal otherwise may differ: 1.0 and 1.00, -0 and 0.

use super::binary_io::binary_output;
use super::{Datum, SqlType};
use crate::error::Result;
use crate::value::oid;
use std::cmp::Ordering;

/// Compares two values of one type by their forms: fields of records one after the other, NULL behind everything.
pub fn compare_images(a: &Datum, b: &Datum) -> Result<Ordering> {
    match (a, b) {
        (Datum::Null, Datum::Null) => return Ok(Ordering::Equal),
        (Datum::Null, _) => return Ok(Ordering::Greater),
        (_, Datum::Null) => return Ok(Ordering::Less),
        (Datum::Array(x), Datum::Array(y)) => {
            for (x, y) in x.items.iter().zip(&y.items) {
                let order = compare_images(x, y)?;
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
            return Ok(x
                .items
                .len()
                .cmp(&y.items.len())
                .then_with(|| x.compare_shapes(y)));
        }
        _ => {}
    }
    if let (Some(x), Some(y)) = (word(a), word(b)) {
        return Ok(x.cmp(&y));
    }
    let form = |datum: &Datum| {
        let mut form = Vec::new();
        binary_output(datum, SqlType::of(oid::TEXT), &mut form).map(|()| form)
    };
    let (x, y) = (form(a)?, form(b)?);
    let shared = x.len().min(y.len());
    Ok(x[..shared]
        .cmp(&y[..shared])
        .then_with(|| x.len().cmp(&y.len())))
}

/// What is kept in a machine word, without a sign.
fn word(datum: &Datum) -> Option<u64> {
    let signed = |v: i64| v as u64;
    Some(match datum {
        Datum::Bool(v) => u64::from(*v),
        Datum::Int2(v) => signed(i64::from(*v)),
        Datum::Int4(v) | Datum::Date(v) => signed(i64::from(*v)),
        Datum::Int8(v)
        | Datum::Money(v)
        | Datum::Time(v)
        | Datum::Timestamp(v)
        | Datum::TimestampTz(v) => signed(*v),
        Datum::Float4(v) => signed(i64::from(v.to_bits() as i32)),
        Datum::Float8(v) => v.to_bits(),
        Datum::Oid(v) => u64::from(*v),
        Datum::Char(v) => u64::from(*v),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_above_positive_ones() {
        let order = |a, b| compare_images(&Datum::Int4(a), &Datum::Int4(b)).ok();
        assert_eq!(order(-1, 1), Some(Ordering::Greater));
        assert_eq!(order(-2, -3), Some(Ordering::Greater));
        assert_eq!(order(2, 3), Some(Ordering::Less));
    }

    #[test]
    fn zeros_of_two_signs_differ() {
        let order = compare_images(&Datum::Float8(0.0), &Datum::Float8(-0.0));
        assert_eq!(order.ok(), Some(Ordering::Less));
    }
}
