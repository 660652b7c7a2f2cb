//! jsonb made from jsonb: members and elements set, inserted, deleted; values joined; nulls left out; lines broken.

use super::access::subscript;
use super::node::wrong_kind;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::json::text::{self, Item, Value};
use logstead_sql_types::value::json::{JsonType, JsonbRef, JsonbValue};
use logstead_types::SqlState;
use std::borrow::Cow;

/// What is done at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathOp {
    /// The value is set; a missing one is made.
    Create,
    /// The value is set if there is one.
    Replace,
    Delete,
    InsertBefore,
    InsertAfter,
}

impl PathOp {
    fn adds(self) -> bool {
        !matches!(self, PathOp::Delete | PathOp::Replace)
    }

    fn inserts(self) -> bool {
        matches!(self, PathOp::InsertBefore | PathOp::InsertAfter)
    }
}

struct PathUpdate<'a> {
    steps: &'a [Datum],
    change: PathOp,
    value: Option<JsonbRef<'a>>,
}

impl<'a> PathUpdate<'a> {
    fn new_value(&self) -> JsonbValue<'a> {
        self.value.map_or(JsonbValue::Null, JsonbValue::View)
    }

    /// The value at `level` of the path, changed.
    fn apply(&self, view: JsonbRef<'a>, level: usize) -> Result<JsonbValue<'a>> {
        let Some(step) = self.steps.get(level) else {
            return Ok(JsonbValue::View(view));
        };
        if view.is_scalar() {
            return Ok(JsonbValue::View(view));
        }
        if step.is_null() {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("path element at position {} is null", level + 1),
            ));
        }
        if view.kind() == JsonType::Object {
            self.object(view, level, step.as_str()?)
        } else {
            self.array(view, level, step.as_str()?)
        }
    }

    fn object(&self, view: JsonbRef<'a>, level: usize, key: &'a str) -> Result<JsonbValue<'a>> {
        let last = level + 1 == self.steps.len();
        let mut members: Vec<(Cow<'a, str>, JsonbValue<'a>)> = Vec::with_capacity(view.len() + 1);
        let mut found = false;
        for (name, value) in view.members() {
            if name != key {
                members.push((name.into(), JsonbValue::View(value)));
                continue;
            }
            found = true;
            if !last {
                members.push((name.into(), self.apply(value, level + 1)?));
            } else if self.change.inserts() {
                return Err(wrong_kind("cannot replace existing key")
                    .hint("Try using the function jsonb_set to replace key value."));
            } else if self.change != PathOp::Delete {
                members.push((name.into(), self.new_value()));
            }
        }
        if !found && last && self.change.adds() {
            members.push((key.into(), self.new_value()));
        }
        Ok(JsonbValue::Object(members))
    }

    fn array(&self, view: JsonbRef<'a>, level: usize, step: &str) -> Result<JsonbValue<'a>> {
        let last = level + 1 == self.steps.len();
        let count = view.len();
        let Some(index) = subscript(step) else {
            return Err(SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!(
                    "path element at position {} is not an integer: \"{step}\"",
                    level + 1
                ),
            ));
        };
        // `None` is in front of the first element.
        let at = match usize::try_from(index) {
            Ok(at) => Some(at.min(count)),
            Err(_) => count.checked_sub(index.unsigned_abs() as usize),
        };
        let mut items = Vec::with_capacity(count + 1);
        let mut done = false;
        if last && self.change.adds() && (at.is_none() || count == 0) {
            items.push(self.new_value());
            done = true;
        }
        for (i, element) in view.elements().enumerate() {
            if at != Some(i) {
                items.push(JsonbValue::View(element));
                continue;
            }
            done = true;
            if !last {
                items.push(self.apply(element, level + 1)?);
                continue;
            }
            match self.change {
                PathOp::Delete => {}
                PathOp::Create | PathOp::Replace => items.push(self.new_value()),
                PathOp::InsertBefore => items.extend([self.new_value(), JsonbValue::View(element)]),
                PathOp::InsertAfter => items.extend([JsonbValue::View(element), self.new_value()]),
            }
        }
        if !done && last && self.change.adds() {
            items.push(self.new_value());
        }
        Ok(JsonbValue::Array(items))
    }
}

fn changed(target: &Datum, path: &Datum, value: Option<&Datum>, change: PathOp) -> Result<Datum> {
    let view = target.as_jsonb()?;
    let steps = &path.as_array()?.items;
    if view.is_scalar() {
        let what = if change == PathOp::Delete {
            "delete"
        } else {
            "set"
        };
        return Err(wrong_kind(format!("cannot {what} path in scalar")));
    }
    let nothing_there = view.is_empty() && matches!(change, PathOp::Replace | PathOp::Delete);
    if steps.is_empty() || nothing_there {
        return Ok(target.clone());
    }
    let value = value.map(Datum::as_jsonb).transpose()?;
    let path = PathUpdate {
        steps,
        change,
        value,
    };
    path.apply(view, 0)?.finish().map(Datum::Jsonb)
}

/// `jsonb_set(target, path, value [, create])`
pub(super) fn set(a: &[Datum]) -> Result<Datum> {
    let create = match a.get(3) {
        Some(create) => create.as_bool()?,
        None => true,
    };
    let [target, path, value, ..] = a else {
        return Err(bad_args(a));
    };
    let change = if create {
        PathOp::Create
    } else {
        PathOp::Replace
    };
    changed(target, path, Some(value), change)
}

/// `jsonb_set_lax(target, path, value [, create [, treatment of NULL]])`
pub(super) fn set_lax(a: &[Datum]) -> Result<Datum> {
    let [target, path, value, rest @ ..] = a else {
        return Err(bad_args(a));
    };
    let create = rest.first().unwrap_or(&Datum::Bool(true)).clone();
    if target.is_null() || path.is_null() || create.is_null() {
        return Ok(Datum::Null);
    }
    let treatment = match rest.get(1) {
        None => "use_json_null",
        Some(Datum::Null) => {
            return Err(wrong_kind(
                "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
            ));
        }
        Some(treatment) => treatment.as_str()?,
    };
    if !value.is_null() {
        return set(&[target.clone(), path.clone(), value.clone(), create]);
    }
    match treatment {
        "raise_exception" => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "JSON value must not be null",
        )
        .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
        .hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")),
        "return_target" => Ok(target.clone()),
        "delete_key" => changed(target, path, None, PathOp::Delete),
        "use_json_null" => {
            let null = Datum::Jsonb(JsonbValue::Null.finish()?);
            set(&[target.clone(), path.clone(), null, create])
        }
        _ => Err(wrong_kind(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

/// `jsonb_insert(target, path, value [, after])`
pub(super) fn insert(a: &[Datum]) -> Result<Datum> {
    let after = match a.get(3) {
        Some(after) => after.as_bool()?,
        None => false,
    };
    let [target, path, value, ..] = a else {
        return Err(bad_args(a));
    };
    let change = if after {
        PathOp::InsertAfter
    } else {
        PathOp::InsertBefore
    };
    changed(target, path, Some(value), change)
}

/// `#-`
pub(super) fn delete_path(a: &[Datum]) -> Result<Datum> {
    let [target, path] = a else {
        return Err(bad_args(a));
    };
    changed(target, path, None, PathOp::Delete)
}

fn without(view: JsonbRef<'_>, gone: &dyn Fn(&str) -> bool) -> Result<Datum> {
    let rest = match view.kind() {
        JsonType::Object => JsonbValue::Object(
            view.members()
                .filter(|(key, _)| !gone(key))
                .map(|(key, value)| (key.into(), JsonbValue::View(value)))
                .collect(),
        ),
        JsonType::Array => JsonbValue::Array(
            view.elements()
                .filter(|e| e.kind() != JsonType::String || !gone(e.as_str()))
                .map(JsonbValue::View)
                .collect(),
        ),
        _ => return Err(wrong_kind("cannot delete from scalar")),
    };
    rest.finish().map(Datum::Jsonb)
}

/// `- text`
pub(super) fn delete_key(a: &[Datum]) -> Result<Datum> {
    let [target, key] = a else {
        return Err(bad_args(a));
    };
    let key = key.as_str()?;
    without(target.as_jsonb()?, &|name| name == key)
}

/// `- text[]`
pub(super) fn delete_keys(a: &[Datum]) -> Result<Datum> {
    // The list comes as an array or spread.
    let [target, keys @ ..] = a else {
        return Err(bad_args(a));
    };
    let keys = match keys {
        [Datum::Array(keys)] => &keys.items,
        keys => keys,
    };
    without(target.as_jsonb()?, &|name| {
        keys.iter().any(|key| key.as_str() == Ok(name))
    })
}

/// `- integer`
pub(super) fn delete_element(a: &[Datum]) -> Result<Datum> {
    let [target, index] = a else {
        return Err(bad_args(a));
    };
    let view = target.as_jsonb()?;
    match view.kind() {
        JsonType::Array => {}
        JsonType::Object => {
            return Err(wrong_kind("cannot delete from object using integer index"));
        }
        _ => return Err(wrong_kind("cannot delete from scalar")),
    }
    let index = index.as_integer()?;
    let at = match usize::try_from(index) {
        Ok(at) => Some(at),
        Err(_) => view.len().checked_sub(index.unsigned_abs() as usize),
    };
    let rest = view.elements().enumerate().filter(|(i, _)| at != Some(*i));
    JsonbValue::Array(rest.map(|(_, e)| JsonbValue::View(e)).collect())
        .finish()
        .map(Datum::Jsonb)
}

/// `||`
pub(super) fn concat(a: &[Datum]) -> Result<Datum> {
    let [left, right] = a else {
        return Err(bad_args(a));
    };
    let (left, right) = (left.as_jsonb()?, right.as_jsonb()?);
    let joined = if left.kind() == JsonType::Object && right.kind() == JsonType::Object {
        let members = left.members().chain(right.members());
        JsonbValue::Object(
            members
                .map(|(k, v)| (k.into(), JsonbValue::View(v)))
                .collect(),
        )
    } else {
        let mut items = Vec::new();
        for side in [left, right] {
            if side.kind() == JsonType::Array {
                items.extend(side.elements().map(JsonbValue::View));
            } else {
                items.push(JsonbValue::View(side));
            }
        }
        JsonbValue::Array(items)
    };
    joined.finish().map(Datum::Jsonb)
}

fn stripped(view: JsonbRef<'_>) -> JsonbValue<'_> {
    match view.kind() {
        JsonType::Object => JsonbValue::Object(
            view.members()
                .filter(|(_, value)| value.kind() != JsonType::Null)
                .map(|(key, value)| (key.into(), stripped(value)))
                .collect(),
        ),
        JsonType::Array => JsonbValue::Array(view.elements().map(stripped).collect()),
        _ => JsonbValue::View(view),
    }
}

/// `jsonb_strip_nulls`
pub(super) fn strip_nulls(a: &[Datum]) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    stripped(value.as_jsonb()?).finish().map(Datum::Jsonb)
}

fn write_stripped(item: &Item<'_>, out: &mut Vec<u8>) {
    match &item.value {
        Value::String(s) => text::write_string(s, out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_stripped(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            let kept = members.iter().filter(|m| !matches!(m.1.value, Value::Null));
            for (i, (key, item)) in kept.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                text::write_string(key, out);
                out.push(b':');
                write_stripped(item, out);
            }
            out.push(b'}');
        }
        _ => out.extend_from_slice(item.raw.as_bytes()),
    }
}

/// `json_strip_nulls`
pub(super) fn strip_nulls_text(a: &[Datum]) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    let mut out = Vec::new();
    write_stripped(&text::parse(value.as_str()?, true)?, &mut out);
    Ok(Datum::text(String::from_utf8_lossy(&out)))
}

/// `jsonb_pretty`
pub(super) fn pretty(a: &[Datum]) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    let mut out = Builder::default();
    value.as_jsonb()?.append_pretty(0, &mut out)?;
    out.finish_text()
}
