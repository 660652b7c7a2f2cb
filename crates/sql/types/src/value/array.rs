//! Arrays: their elements one after the other, and how they lie in dimensions.
//!
//! Invariant: an array with elements has one dimension, of which only the first subscript is kept, or a [`Dim`] for
//! each of up to [`DIMENSIONS_MAX`], whose lengths multiply to the number of elements, the last varying fastest; one
//! without elements has none.

use super::Datum;
use crate::TypeId;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::Arc;

/// The most dimensions that an array may have.
pub const DIMENSIONS_MAX: usize = 6;

/// The most elements that an array may have.
pub const ITEMS_MAX: usize = 134_217_727;

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// First subscript.
    pub lower: i32,
    /// How many subscripts.
    pub len: i32,
}

impl Dim {
    /// Last subscript.
    pub fn upper(self) -> i32 {
        self.lower.saturating_add(self.len - 1)
    }
}

/// An array value.
#[derive(Clone, Debug)]
pub struct Array {
    /// Element type.
    pub element: TypeId,
    /// First subscript of the first dimension: 1 for arrays, 0 for int2vector and oidvector.
    pub lower: i32,
    /// The dimensions if they are more than one.
    pub shape: Option<Arc<[Dim]>>,
    /// Elements, NULLs included.
    pub items: Vec<Datum>,
}

/// 54000: more dimensions than an array may have.
pub fn too_many_dimensions(count: usize) -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!(
            "number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        ),
    )
}

/// How many elements dimensions of these lengths have.
pub fn items_of(dims: &[Dim]) -> Result<usize> {
    let count = dims.iter().try_fold(1usize, |all, dim| {
        all.checked_mul(usize::try_from(dim.len).ok()?)
    });
    count.filter(|n| *n <= ITEMS_MAX).ok_or_else(|| {
        SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array size exceeds the maximum allowed ({ITEMS_MAX})"),
        )
    })
}

impl Array {
    /// An array of one dimension.
    pub fn flat(element: TypeId, lower: i32, items: Vec<Datum>) -> Array {
        Array {
            element,
            lower,
            shape: None,
            items,
        }
    }

    /// An array of these dimensions. A dimension without subscripts makes it empty.
    pub fn shaped(element: TypeId, dims: &[Dim], items: Vec<Datum>) -> Result<Array> {
        if dims.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(dims.len()));
        }
        if let Some(dim) = dims
            .iter()
            .find(|dim| dim.lower.checked_add(dim.len).is_none())
        {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array lower bound is too large: {}", dim.lower),
            ));
        }
        let count = if dims.is_empty() { 0 } else { items_of(dims)? };
        if count != items.len() {
            return Err(SqlError::internal(
                "an array's dimensions do not fit its elements",
            ));
        }
        if items.is_empty() {
            return Ok(Array::flat(element, 1, items));
        }
        Ok(Array {
            element,
            lower: dims.first().map_or(1, |dim| dim.lower),
            shape: (dims.len() > 1).then(|| dims.into()),
            items,
        })
    }

    /// The dimensions; none of an array without elements.
    pub fn dims(&self) -> Vec<Dim> {
        match &self.shape {
            _ if self.items.is_empty() => Vec::new(),
            Some(shape) => shape.to_vec(),
            None => vec![Dim {
                lower: self.lower,
                len: i32::try_from(self.items.len()).unwrap_or(i32::MAX),
            }],
        }
    }

    /// An array of the same dimensions with other elements, as many as before.
    pub fn with_items(&self, element: TypeId, items: Vec<Datum>) -> Array {
        Array {
            element,
            lower: self.lower,
            shape: self.shape.clone(),
            items,
        }
    }

    /// The element with these subscripts; none if they are not as many as the dimensions, or outside.
    pub fn at(&self, subscripts: &[i32]) -> Option<&Datum> {
        let dims = self.dims();
        if dims.len() != subscripts.len() {
            return None;
        }
        let mut at = 0usize;
        for (dim, subscript) in dims.iter().zip(subscripts) {
            if !(dim.lower..=dim.upper()).contains(subscript) {
                return None;
            }
            let offset = usize::try_from(i64::from(*subscript) - i64::from(dim.lower)).ok()?;
            at = at * usize::try_from(dim.len).ok()? + offset;
        }
        self.items.get(at)
    }

    /// The order of arrays whose elements are alike: by the number of dimensions, by their lengths, by their first
    /// subscripts.
    pub(super) fn compare_shapes(&self, other: &Array) -> Ordering {
        if self.shape.is_none() && other.shape.is_none() {
            // Without elements there are no subscripts.
            return match self.items.is_empty() {
                true => Ordering::Equal,
                false => self.lower.cmp(&other.lower),
            };
        }
        let (mine, others) = (self.dims(), other.dims());
        let lengths = |dims: &[Dim]| dims.iter().map(|dim| dim.len).collect::<Vec<_>>();
        let lowers = |dims: &[Dim]| dims.iter().map(|dim| dim.lower).collect::<Vec<_>>();
        mine.len()
            .cmp(&others.len())
            .then_with(|| lengths(&mine).cmp(&lengths(&others)))
            .then_with(|| lowers(&mine).cmp(&lowers(&others)))
    }
}

/// Arrays of one shape, or NULLs, as the first dimension of one of a dimension more: what `ARRAY[a, b]` of arrays is.
pub fn stacked(element: TypeId, parts: &[Datum]) -> Result<Array> {
    let mismatch = || {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    let mut inner: Option<Vec<Dim>> = None;
    let mut empty = false;
    let mut items = Vec::new();
    for part in parts {
        let part = match part {
            Datum::Array(part) if !part.items.is_empty() => part,
            Datum::Array(_) | Datum::Null => {
                empty = true;
                continue;
            }
            _ => return Err(SqlError::internal("an array of arrays has another element")),
        };
        let dims = part.dims();
        match &inner {
            Some(inner) if *inner != dims => return Err(mismatch()),
            Some(_) => {}
            None if dims.len() == DIMENSIONS_MAX => {
                return Err(too_many_dimensions(DIMENSIONS_MAX + 1));
            }
            None => inner = Some(dims),
        }
        items.extend_from_slice(&part.items);
    }
    match inner {
        None => Ok(Array::flat(element, 1, Vec::new())),
        Some(_) if empty => Err(mismatch()),
        Some(inner) => {
            let len = i32::try_from(parts.len()).unwrap_or(i32::MAX);
            let mut dims = vec![Dim { lower: 1, len }];
            dims.extend(inner);
            Array::shaped(element, &dims, items)
        }
    }
}
