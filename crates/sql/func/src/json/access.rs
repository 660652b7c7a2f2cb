//! Members, elements and paths: `->`, `->>`, `#>`, `#>>`, `?`, `@>`, and what asks for kinds and lengths.

use super::node::{Document, Node, wrong_kind};
use crate::arithmetic::bad_args;
use logstead_sql_types::error::Result;
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::MemoryReservation;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::json::{JsonType, JsonbRef};
use std::borrow::Cow;
use std::collections::HashSet;

fn give(node: Option<Node<'_>>, as_text: bool) -> Result<Datum> {
    match node {
        None => Ok(Datum::Null),
        Some(node) if as_text => node.text_datum(),
        Some(node) => Ok(node.datum()),
    }
}

fn field(a: &[Datum], as_text: bool) -> Result<Datum> {
    let [value, key] = a else {
        return Err(bad_args(a));
    };
    let document = Document::of(value)?;
    give(document.root().member(key.as_str()?), as_text)
}

/// `-> text`
pub(super) fn object_field(a: &[Datum]) -> Result<Datum> {
    field(a, false)
}

/// `->> text`
pub(super) fn object_field_text(a: &[Datum]) -> Result<Datum> {
    field(a, true)
}

fn element(a: &[Datum], as_text: bool) -> Result<Datum> {
    let [value, index] = a else {
        return Err(bad_args(a));
    };
    let document = Document::of(value)?;
    let index = index.as_integer()?;
    let found = match document.root() {
        // As in PostgreSQL, a scalar of jsonb is the one element of an array here, and only here.
        Node::Binary(view) if view.is_scalar() && matches!(index, 0 | -1) => {
            Some(Node::Binary(view))
        }
        root => root.element_at(index),
    };
    give(found, as_text)
}

/// `-> integer`
pub(super) fn array_element(a: &[Datum]) -> Result<Datum> {
    element(a, false)
}

/// `->> integer`
pub(super) fn array_element_text(a: &[Datum]) -> Result<Datum> {
    element(a, true)
}

/// The steps of a path: an array, or arguments one by one. `None` if one of them is NULL.
fn steps(path: &[Datum]) -> Result<Option<Vec<Cow<'_, str>>>> {
    let items = match path {
        [Datum::Array(array)] => &array.items,
        items => items,
    };
    let mut steps = Vec::with_capacity(items.len());
    for item in items {
        if item.is_null() {
            return Ok(None);
        }
        steps.push(Cow::Borrowed(item.as_str()?));
    }
    Ok(Some(steps))
}

/// An array's subscript as C's strtol reads it.
pub(super) fn subscript(step: &str) -> Option<i32> {
    step.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
        .parse()
        .ok()
}

fn extract(value: &Datum, path: &[Datum], as_text: bool) -> Result<Datum> {
    let document = Document::of(value)?;
    let Some(steps) = steps(path)? else {
        return Ok(Datum::Null);
    };
    let mut at = Some(document.root());
    for step in &steps {
        at = match at {
            Some(node) if node.kind() == JsonType::Object => node.member(step),
            Some(node) => subscript(step).and_then(|i| node.element_at(i64::from(i))),
            None => break,
        };
    }
    give(at, as_text)
}

/// `#>`, `json_extract_path`
pub(super) fn extract_path(a: &[Datum]) -> Result<Datum> {
    let [value, path @ ..] = a else {
        return Err(bad_args(a));
    };
    extract(value, path, false)
}

/// `#>>`, `json_extract_path_text`
pub(super) fn extract_path_text(a: &[Datum]) -> Result<Datum> {
    let [value, path @ ..] = a else {
        return Err(bad_args(a));
    };
    extract(value, path, true)
}

/// `json_typeof`, `jsonb_typeof`
pub(super) fn kind_name(a: &[Datum]) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    Ok(Datum::text(Document::outline(value)?.root().kind().name()))
}

/// `json_array_length`, `jsonb_array_length`
pub(super) fn array_length(a: &[Datum]) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    let document = Document::outline(value)?;
    let root = document.root();
    match root.kind() {
        JsonType::Array => Ok(Datum::Int4(
            i32::try_from(root.element_count()).unwrap_or(i32::MAX),
        )),
        JsonType::Object => Err(wrong_kind("cannot get array length of a non-array")),
        _ => Err(wrong_kind("cannot get array length of a scalar")),
    }
}

/// So many keys are looked for in an array one after the other.
const SEARCHED_KEYS_MAX: usize = 8;
/// What a string takes in a table of them, its free places included.
const HASHED_STRING_BYTES: usize = 40;

/// A key of an object, a string of an array, or the string itself.
fn has(view: JsonbRef<'_>, key: &str) -> bool {
    match view.kind() {
        JsonType::Object => view.member(key).is_some(),
        JsonType::Array => view
            .elements()
            .any(|e| e.kind() == JsonType::String && e.as_str() == key),
        JsonType::String => view.as_str() == key,
        _ => false,
    }
}

/// `?`
pub(super) fn exists(a: &[Datum]) -> Result<Datum> {
    let [value, key] = a else {
        return Err(bad_args(a));
    };
    Ok(Datum::Bool(has(value.as_jsonb()?, key.as_str()?)))
}

fn exists_of(a: &[Datum], all: bool) -> Result<Datum> {
    let [value, keys] = a else {
        return Err(bad_args(a));
    };
    let view = value.as_jsonb()?;
    let keys = &keys.as_array()?.items;
    // Of an array all strings are looked at for a key: for many keys they are hashed once.
    let (_room, strings) = match view.kind() {
        JsonType::Array if keys.len() > SEARCHED_KEYS_MAX => {
            let room = MemoryReservation::of(view.elements().count() * HASHED_STRING_BYTES)?;
            let strings = view.elements().filter(|e| e.kind() == JsonType::String);
            let strings: HashSet<&str> = strings.map(|e| e.as_str()).collect();
            (room, Some(strings))
        }
        _ => (MemoryReservation::default(), None),
    };
    for (i, key) in keys.iter().filter(|k| !k.is_null()).enumerate() {
        if i % 1024 == 1023 {
            check_for_interrupts()?;
        }
        let key = key.as_str()?;
        let found = match &strings {
            Some(strings) => strings.contains(key),
            None => has(view, key),
        };
        if found != all {
            return Ok(Datum::Bool(!all));
        }
    }
    Ok(Datum::Bool(all))
}

/// `?|`
pub(super) fn exists_any(a: &[Datum]) -> Result<Datum> {
    exists_of(a, false)
}

/// `?&`
pub(super) fn exists_all(a: &[Datum]) -> Result<Datum> {
    exists_of(a, true)
}

/// `@>`
pub(super) fn contains(a: &[Datum]) -> Result<Datum> {
    let [whole, part] = a else {
        return Err(bad_args(a));
    };
    let (whole, part) = (whole.as_jsonb()?, part.as_jsonb()?);
    Ok(Datum::Bool(contains_root(whole, part)))
}

/// `<@`
pub(super) fn contained(a: &[Datum]) -> Result<Datum> {
    let [part, whole] = a else {
        return Err(bad_args(a));
    };
    let (whole, part) = (whole.as_jsonb()?, part.as_jsonb()?);
    Ok(Datum::Bool(contains_root(whole, part)))
}

/// At the top an array contains a scalar that is one of its elements.
fn contains_root(whole: JsonbRef<'_>, part: JsonbRef<'_>) -> bool {
    if whole.kind() == JsonType::Array && part.is_scalar() {
        return whole.elements().any(|e| same_scalar(e, part));
    }
    contains_inside(whole, part)
}

fn same_scalar(a: JsonbRef<'_>, b: JsonbRef<'_>) -> bool {
    a.is_scalar() && a.kind() == b.kind() && a.compare(b).is_eq()
}

fn contains_inside(whole: JsonbRef<'_>, part: JsonbRef<'_>) -> bool {
    match (whole.kind(), part.kind()) {
        (JsonType::Object, JsonType::Object) => {
            whole.len() >= part.len()
                && part.members().all(|(key, wanted)| {
                    whole
                        .member(key)
                        .is_some_and(|found| contains_inside(found, wanted))
                })
        }
        (JsonType::Array, JsonType::Array) => part.elements().all(|wanted| {
            whole.elements().any(|found| {
                if wanted.is_scalar() {
                    same_scalar(found, wanted)
                } else {
                    !found.is_scalar() && contains_inside(found, wanted)
                }
            })
        }),
        _ => same_scalar(whole, part),
    }
}
