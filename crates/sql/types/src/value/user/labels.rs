//! Labels of enums: their text, and their places.
//!
//! Owns: which label a value is, which may be used before the transaction that adds it has ended, and where a new
//! label's place lies.

use super::super::Datum;
use super::scope::SCOPE;
use super::{EnumValue, Label, TypeLookup};
use crate::TypeId;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// A label's text.
pub fn label(value: EnumValue) -> Option<Arc<str>> {
    SCOPE.with_borrow(|scope| {
        let label = scope.types.get(value.ty)?.label_at(value.ordinal)?;
        Some(Arc::clone(&label.name))
    })
}

/// As [`label`]; what has none is damaged.
pub fn known_label(value: EnumValue) -> Result<Arc<str>> {
    label(value).ok_or_else(|| {
        SqlError::internal(format!(
            "invalid internal value for enum: {} of type {}",
            value.ordinal, value.ty
        ))
    })
}

/// The value of an enum that a label stands for: 22P02 if there is none, 55P04 if it may not be used yet.
pub fn enum_input(ty: TypeId, text: &str) -> Result<Datum> {
    SCOPE.with_borrow(|scope| {
        let labels = scope.types.get(ty).map_or(&[][..], |t| t.labels());
        match labels.iter().find(|l| &*l.name == text) {
            Some(label) => usable(ty, label, scope.lookup()),
            None => Err(SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!(
                    "invalid input value for enum {}: \"{text}\"",
                    scope.lookup().format_type_bare(ty)
                ),
            )),
        }
    })
}

/// The value of a label.
pub fn usable(ty: TypeId, label: &Label, types: TypeLookup<'_>) -> Result<Datum> {
    if label.fresh {
        return Err(SqlError::new(
            SqlState::new(b"55P04"),
            format!(
                "unsafe use of new value \"{}\" of enum type {}",
                label.name,
                types.format_type_bare(ty)
            ),
        )
        .hint("New enum values must be committed before they can be used."));
    }
    Ok(Datum::Enum(EnumValue {
        ty,
        ordinal: label.ordinal,
    }))
}

/// Between two labels of a new type.
const STEP: u64 = 1 << 40;

/// The first label's place: as many fit before it as after it.
const MIDDLE: u64 = 1 << 63;

/// The place of the label at `index` of a new type.
pub fn first_ordinal(index: usize) -> u64 {
    MIDDLE + STEP * index as u64
}

/// A place between two others; `None` if there is none left. No neighbour is an end.
pub fn ordinal_between(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    match (before, after) {
        (None, None) => Some(MIDDLE),
        (Some(before), None) => before.checked_add(STEP),
        (None, Some(after)) => after.checked_sub(STEP),
        (Some(before), Some(after)) => {
            let middle = before + (after - before) / 2;
            (middle != before).then_some(middle)
        }
    }
}
