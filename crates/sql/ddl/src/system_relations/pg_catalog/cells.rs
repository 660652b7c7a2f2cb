//! Building the rows of virtual tables: from Rust values to datums, so that a row reads like the column list beside it.

use logstead_sql_types::value::{Array, Datum, Oid, oid};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};
use std::sync::Arc;

/// Something that is a cell of a virtual row.
pub(crate) trait Cell {
    /// The datum.
    fn datum(self) -> Datum;
}

/// An OID cell (a bare number would be an integer).
#[derive(Clone, Copy)]
pub(crate) struct Id(pub(crate) Oid);

/// A `"char"` cell; '\0' prints as nothing.
#[derive(Clone, Copy)]
pub(crate) struct Ch(pub(crate) char);

/// A NULL cell.
#[derive(Clone, Copy)]
pub(crate) struct Nil;

impl Cell for Id {
    fn datum(self) -> Datum {
        Datum::Oid(self.0)
    }
}

/// An OID cell of what may be there: 0, and not NULL, where it is not.
#[derive(Clone, Copy)]
pub(crate) struct OidOrZero<T>(pub(crate) Option<T>);

/// OID cells that say what they are the number of.
macro_rules! number_cells {
    ($($number:ident),+) => {$(
        impl Cell for $number {
            fn datum(self) -> Datum {
                Datum::Oid(self.get())
            }
        }

        impl Cell for OidOrZero<$number> {
            fn datum(self) -> Datum {
                Datum::Oid(self.0.map_or(0, $number::get))
            }
        }
    )+};
}

number_cells!(
    DatabaseOid,
    FunctionId,
    RelationId,
    RoleId,
    SchemaId,
    TypeId
);

impl Cell for Ch {
    fn datum(self) -> Datum {
        Datum::Char(u8::try_from(self.0).unwrap_or(b'?'))
    }
}

impl Cell for Nil {
    fn datum(self) -> Datum {
        Datum::Null
    }
}

impl Cell for bool {
    fn datum(self) -> Datum {
        Datum::Bool(self)
    }
}

impl Cell for i16 {
    fn datum(self) -> Datum {
        Datum::Int2(self)
    }
}

impl Cell for i32 {
    fn datum(self) -> Datum {
        Datum::Int4(self)
    }
}

impl Cell for i64 {
    fn datum(self) -> Datum {
        Datum::Int8(self)
    }
}

impl Cell for f32 {
    fn datum(self) -> Datum {
        Datum::Float4(self)
    }
}

impl Cell for f64 {
    fn datum(self) -> Datum {
        Datum::Float8(self)
    }
}

impl Cell for &str {
    fn datum(self) -> Datum {
        Datum::Text(Arc::from(self))
    }
}

impl Cell for &String {
    fn datum(self) -> Datum {
        Datum::Text(Arc::from(self.as_str()))
    }
}

impl Cell for String {
    fn datum(self) -> Datum {
        Datum::Text(Arc::from(self))
    }
}

impl Cell for Datum {
    fn datum(self) -> Datum {
        self
    }
}

impl<T: Cell> Cell for Option<T> {
    fn datum(self) -> Datum {
        self.map_or(Datum::Null, Cell::datum)
    }
}

/// An `int2vector`.
pub(crate) fn int2vector(items: impl IntoIterator<Item = i16>) -> Datum {
    vector(oid::INT2, 0, items.into_iter().map(Datum::Int2).collect())
}

/// An `oidvector`.
pub(crate) fn oidvector(items: impl IntoIterator<Item = impl Cell>) -> Datum {
    vector(oid::OID, 0, items.into_iter().map(Cell::datum).collect())
}

/// A `smallint[]`.
pub(crate) fn int2_array(items: impl IntoIterator<Item = i16>) -> Datum {
    vector(oid::INT2, 1, items.into_iter().map(Datum::Int2).collect())
}

/// A `text[]`.
pub(crate) fn text_array<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Datum {
    vector(
        oid::TEXT,
        1,
        items
            .into_iter()
            .map(|s| Datum::Text(Arc::from(s.as_ref())))
            .collect(),
    )
}

/// A `name[]`.
pub(crate) fn name_array<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Datum {
    let name = |s: S| Datum::Text(Arc::from(s.as_ref()));
    vector(oid::NAME, 1, items.into_iter().map(name).collect())
}

/// An `oid[]`.
pub(crate) fn oid_array(items: impl IntoIterator<Item = impl Cell>) -> Datum {
    vector(oid::OID, 1, items.into_iter().map(Cell::datum).collect())
}

/// A `regtype[]`.
pub(crate) fn regtype_array(items: impl IntoIterator<Item = impl Cell>) -> Datum {
    vector(
        oid::REGTYPE,
        1,
        items.into_iter().map(Cell::datum).collect(),
    )
}

fn vector(element: TypeId, lower: i32, items: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array {
        element,
        lower,
        shape: None,
        items,
    }))
}

/// A row from cells.
macro_rules! row {
    ($($cell:expr),* $(,)?) => {
        vec![$($crate::pg_catalog::cells::Cell::datum($cell)),*]
    };
}
pub(crate) use row;
