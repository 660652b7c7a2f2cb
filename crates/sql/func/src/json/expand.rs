//! Values as rows: their members, elements and keys.

use super::node::{Document, Node, wrong_kind};
use crate::Rows;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::json::JsonType;

fn members(a: &[Datum], as_text: bool) -> Result<Rows> {
    let [value] = a else { return Err(bad_args(a)) };
    let document = Document::of(value)?;
    let root = document.root();
    match (root.kind(), root) {
        (JsonType::Object, _) => {}
        (_, Node::Binary(_)) => {
            let name = if as_text {
                "jsonb_each_text"
            } else {
                "jsonb_each"
            };
            return Err(wrong_kind(format!("cannot call {name} on a non-object")));
        }
        (JsonType::Array, _) => return Err(wrong_kind("cannot deconstruct an array as an object")),
        _ => return Err(wrong_kind("cannot deconstruct a scalar")),
    }
    let row = |(key, value): (&str, Node<'_>)| {
        let value = if as_text {
            value.text_datum()?
        } else {
            value.datum()
        };
        Ok(vec![Datum::text(key), value])
    };
    root.members().map(row).collect()
}

/// `json_each`, `jsonb_each`
pub(super) fn each(a: &[Datum]) -> Result<Rows> {
    members(a, false)
}

/// `json_each_text`, `jsonb_each_text`
pub(super) fn each_text(a: &[Datum]) -> Result<Rows> {
    members(a, true)
}

fn elements(a: &[Datum], as_text: bool) -> Result<Rows> {
    let [value] = a else { return Err(bad_args(a)) };
    let document = Document::of(value)?;
    let root = document.root();
    let text_name = if as_text {
        "json_array_elements_text"
    } else {
        "json_array_elements"
    };
    match (root.kind(), root) {
        (JsonType::Array, _) => {}
        (JsonType::Object, Node::Binary(_)) => {
            return Err(wrong_kind("cannot extract elements from an object"));
        }
        (_, Node::Binary(_)) => {
            return Err(wrong_kind("cannot extract elements from a scalar"));
        }
        (JsonType::Object, _) => {
            return Err(wrong_kind(format!(
                "cannot call {text_name} on a non-array"
            )));
        }
        _ => return Err(wrong_kind(format!("cannot call {text_name} on a scalar"))),
    }
    let row = |value: Node<'_>| {
        Ok(vec![if as_text {
            value.text_datum()?
        } else {
            value.datum()
        }])
    };
    root.elements().map(row).collect()
}

/// `json_array_elements`, `jsonb_array_elements`
pub(super) fn array_elements(a: &[Datum]) -> Result<Rows> {
    elements(a, false)
}

/// `json_array_elements_text`, `jsonb_array_elements_text`
pub(super) fn array_elements_text(a: &[Datum]) -> Result<Rows> {
    elements(a, true)
}

/// `json_object_keys`, `jsonb_object_keys`
pub(super) fn object_keys(a: &[Datum]) -> Result<Rows> {
    let [value] = a else { return Err(bad_args(a)) };
    let document = Document::of(value)?;
    let root = document.root();
    let name = match root {
        Node::Binary(_) => "jsonb_object_keys",
        Node::Text(_) => "json_object_keys",
    };
    match root.kind() {
        JsonType::Object => Ok(root
            .members()
            .map(|(key, _)| vec![Datum::text(key)])
            .collect()),
        JsonType::Array => Err(wrong_kind(format!("cannot call {name} on an array"))),
        _ => Err(wrong_kind(format!("cannot call {name} on a scalar"))),
    }
}
