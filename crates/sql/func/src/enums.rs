//! enum_first, enum_last and enum_range. Their last argument is one that nobody writes: the labels of the type in
//! order, which the binder adds, because a value that is NULL does not say of which type it is.

use super::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Array, Datum, IoContext, compare};
use logstead_types::SqlState;

/// True for the functions that take their type's labels as one more argument.
pub fn takes_labels(function: &super::Function) -> bool {
    matches!(function.oid.get(), 3528..=3531)
}

fn labels(a: &[Datum]) -> Result<&Array> {
    match a.last() {
        Some(Datum::Array(labels)) => Ok(labels),
        _ => Err(bad_args(a)),
    }
}

fn one(cx: &dyn IoContext, labels: &Array, label: Option<&Datum>) -> Result<Datum> {
    label.cloned().ok_or_else(|| {
        SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "enum {} contains no values",
                cx.format_type_bare(labels.element)
            ),
        )
    })
}

/// `enum_first`
pub(super) fn first(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let labels = labels(a)?;
    one(cx, labels, labels.items.first())
}

/// `enum_last`
pub(super) fn last(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let labels = labels(a)?;
    one(cx, labels, labels.items.last())
}

/// `enum_range`: a bound that is NULL is none.
pub(super) fn range(a: &[Datum]) -> Result<Datum> {
    let (lower, upper) = match a {
        [_, _] => (&Datum::Null, &Datum::Null),
        [lower, upper, _] => (lower, upper),
        _ => return Err(bad_args(a)),
    };
    let within = |label: &&Datum| {
        (lower.is_null() || compare(label, lower).is_ge())
            && (upper.is_null() || compare(label, upper).is_le())
    };
    let labels = labels(a)?;
    let items = labels.items.iter().filter(within).cloned().collect();
    Ok(Datum::array(labels.element, items))
}
