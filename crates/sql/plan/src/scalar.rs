//! What expressions do with values that no function does: constants are folded by it, and rows evaluated.

use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, compare};
use std::cmp::Ordering;

/// IS DISTINCT FROM.
pub fn distinct(ty: TypeId, left: &Datum, right: &Datum) -> bool {
    match (left.is_null(), right.is_null()) {
        (true, true) => false,
        (false, false) => match (left, right) {
            (Datum::Geometry(left), Datum::Geometry(right)) => {
                !logstead_sql_types::value::geometry::same_geometry(left, right)
            }
            _ => compare::compare_as(ty, left, right) != Ordering::Equal,
        },
        _ => true,
    }
}

/// `array[index]`.
pub fn subscript(array: &Datum, index: &Datum) -> Datum {
    // A name is an array of 64 bytes, zeros behind its end, counted from 0.
    if let (Datum::Text(name), Datum::Int4(index @ 0..64)) = (array, index) {
        let at = usize::try_from(*index).unwrap_or(usize::MAX);
        return Datum::Char(name.as_bytes().get(at).copied().unwrap_or(0));
    }
    if let (Datum::Geometry(whole), Datum::Int4(index)) = (array, index) {
        let index = usize::try_from(*index).ok();
        return index
            .and_then(|index| whole.part(index))
            .unwrap_or_default();
    }
    let (Datum::Array(array), Datum::Int4(index)) = (array, index) else {
        return Datum::Null;
    };
    // One subscript is not enough for more dimensions.
    if array.shape.is_some() {
        return Datum::Null;
    }
    usize::try_from(i64::from(*index) - i64::from(array.lower))
        .ok()
        .and_then(|at| array.items.get(at))
        .cloned()
        .unwrap_or_default()
}
