//! JSON objects as records: `json_populate_record`, `json_to_record` and their sets.
//!
//! The record's type says which members are read and how. `json_to_record` gets it from its column definition list: the
//! binder passes a NULL of that type in front of the other arguments.

use super::node::{Document, Node, wrong_kind};
use crate::Rows;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::json::JsonType;
use logstead_sql_types::value::record::{self, TupleDesc, tuple_desc_of};
use logstead_sql_types::value::{Datum, SqlType, info, oid, text_io, user};
use logstead_types::SqlState;

struct Filling<'a> {
    cx: &'a dyn IoContext,
    name: &'static str,
}

fn shape(ty: SqlType, name: &str) -> Result<TupleDesc> {
    if !record::is_record(ty.oid) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("first argument of {name} must be a row type"),
        ));
    }
    user::refuse_unchecked_domains(ty)?;
    tuple_desc_of(ty).ok_or_else(|| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("could not determine row type for result of {name}"),
        )
        .hint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list.")
    })
}

impl Filling<'_> {
    /// The fields of a record from an object; those it lacks from `base`.
    fn record(&self, node: Node<'_>, base: &Datum, shape: &TupleDesc) -> Result<Vec<Datum>> {
        match node.kind() {
            JsonType::Object => {}
            JsonType::Array => {
                return Err(wrong_kind("cannot call populate_composite on an array"));
            }
            _ => return Err(wrong_kind("cannot call populate_composite on a scalar")),
        }
        let mut fields = Vec::with_capacity(shape.len());
        for (i, (name, ty)) in shape.iter().enumerate() {
            let old = || match base {
                Datum::Array(base) => base.items.get(i).cloned().unwrap_or_default(),
                _ => Datum::Null,
            };
            fields.push(match node.member(name) {
                Some(value) => self.field(value, *ty, name)?,
                None => old(),
            });
        }
        Ok(fields)
    }

    fn field(&self, node: Node<'_>, ty: SqlType, key: &str) -> Result<Datum> {
        if node.kind() == JsonType::Null {
            return Ok(Datum::Null);
        }
        match ty.oid {
            oid::JSONB => return node.build()?.finish().map(Datum::Jsonb),
            oid::JSON => return Ok(Datum::text(node.json()?)),
            // A string is read as a record's text.
            of if record::is_record(of) && node.kind() != JsonType::String => {
                let shape = shape(ty, self.name)?;
                return Ok(record::record(self.record(node, &Datum::Null, &shape)?));
            }
            _ => {}
        }
        let element = info::element_of(ty.oid);
        if let (Some(element), true) = (element, node.kind() != JsonType::String) {
            if node.kind() != JsonType::Array {
                return Err(SqlError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "expected JSON array",
                )
                .hint(format!("See the value of key \"{key}\".")));
            }
            let element_type = SqlType {
                oid: element,
                typmod: ty.typmod,
            };
            let mut items = Vec::new();
            for item in node.elements() {
                if item.kind() == JsonType::Array {
                    return Err(SqlError::unsupported(
                        "json arrays in each other as an array",
                    ));
                }
                items.push(self.field(item, element_type, key)?);
            }
            return Ok(Datum::array(element, items));
        }
        // Scalars, and whatever has no other way in, by their text.
        let text = node.text()?.unwrap_or_default();
        text_io::input(ty, &text, Some(self.cx))
    }
}

fn one(cx: &dyn IoContext, types: &[SqlType], a: &[Datum], name: &'static str) -> Result<Datum> {
    let ([base, value, ..], [ty, ..]) = (a, types) else {
        return Err(bad_args(a));
    };
    let shape = shape(*ty, name)?;
    if value.is_null() {
        return Ok(base.clone());
    }
    let document = Document::of(value)?;
    let fields = Filling { cx, name }.record(document.root(), base, &shape)?;
    Ok(record::record(fields))
}

/// `json_populate_record`
pub(super) fn populate(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    one(cx, types, a, "json_populate_record")
}

/// `jsonb_populate_record`
pub(super) fn populate_b(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    one(cx, types, a, "jsonb_populate_record")
}

/// A row of the record's fields for each object of an array.
fn set(cx: &dyn IoContext, types: &[SqlType], a: &[Datum], name: &'static str) -> Result<Rows> {
    let ([base, value, ..], [ty, ..]) = (a, types) else {
        return Err(bad_args(a));
    };
    let shape = shape(*ty, name)?;
    if value.is_null() {
        return Ok(Vec::new());
    }
    let document = Document::of(value)?;
    let root = document.root();
    match (root.kind(), root) {
        (JsonType::Array, _) => {}
        (JsonType::Object, Node::Text(_)) => {
            return Err(wrong_kind(format!("cannot call {name} on an object")));
        }
        (_, Node::Text(_)) => {
            return Err(wrong_kind(format!("cannot call {name} on a scalar")));
        }
        _ => return Err(wrong_kind(format!("cannot call {name} on a non-array"))),
    }
    let filling = Filling { cx, name };
    let row = |node: Node<'_>| {
        if node.kind() != JsonType::Object {
            return Err(wrong_kind(format!(
                "argument of {name} must be an array of objects"
            )));
        }
        filling.record(node, base, &shape)
    };
    root.elements().map(row).collect()
}

/// `json_populate_recordset`
pub(super) fn populate_set(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Rows> {
    set(cx, types, a, "json_populate_recordset")
}

/// `jsonb_populate_recordset`
pub(super) fn populate_set_b(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Rows> {
    set(cx, types, a, "jsonb_populate_recordset")
}

/// `json_to_recordset`
pub(super) fn to_recordset(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Rows> {
    set(cx, types, a, "json_to_recordset")
}

/// `jsonb_to_recordset`
pub(super) fn to_recordset_b(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Rows> {
    set(cx, types, a, "jsonb_to_recordset")
}

/// A row of the record's fields, NULLs for no object.
fn row(cx: &dyn IoContext, types: &[SqlType], a: &[Datum], name: &'static str) -> Result<Rows> {
    let given = a.get(1).is_some_and(|value| !value.is_null());
    let record = if given {
        one(cx, types, a, name)?
    } else {
        Datum::Null
    };
    Ok(vec![match (record, types.first()) {
        (Datum::Array(record), _) => record.items.clone(),
        (_, Some(ty)) => vec![Datum::Null; tuple_desc_of(*ty).map_or(0, |shape| shape.len())],
        _ => return Err(bad_args(a)),
    }])
}

/// `json_to_record`
pub(super) fn to_record_row(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Rows> {
    row(cx, types, a, "json_to_record")
}

/// `jsonb_to_record`
pub(super) fn to_record_row_b(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Rows> {
    row(cx, types, a, "jsonb_to_record")
}
