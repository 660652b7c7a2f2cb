//! Items that a jsonpath finds: parts of the value, values made on the way, dates and times.

use super::datetime::JsonDatetime;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::json::{JsonType, Jsonb, JsonbRef, JsonbValue};

/// An item found: a part of the value, or one made on the way.
#[derive(Clone)]
pub(super) enum Item<'a> {
    View(JsonbRef<'a>),
    Owned(Jsonb),
    /// A date or a time, and the string that it is outside of the path.
    Datetime(JsonDatetime, Jsonb),
}

impl<'a> Item<'a> {
    pub(super) fn of(build: JsonbValue<'_>) -> Result<Item<'a>> {
        build.finish().map(Item::Owned)
    }

    pub(super) fn view(&self) -> JsonbRef<'_> {
        match self {
            Item::View(view) => *view,
            Item::Owned(value) | Item::Datetime(_, value) => value.view(),
        }
    }

    pub(super) fn to_jsonb(&self) -> Jsonb {
        match self {
            Item::View(view) => view.to_jsonb(),
            Item::Owned(value) | Item::Datetime(_, value) => value.clone(),
        }
    }

    pub(super) fn elements(&self) -> Vec<Item<'a>> {
        match self {
            Item::View(view) => view.elements().map(Item::View).collect(),
            Item::Owned(value) | Item::Datetime(_, value) => value
                .view()
                .elements()
                .map(|e| Item::Owned(e.to_jsonb()))
                .collect(),
        }
    }

    pub(super) fn values(&self) -> Vec<Item<'a>> {
        match self {
            Item::View(view) => view.members().map(|m| Item::View(m.1)).collect(),
            Item::Owned(value) | Item::Datetime(_, value) => value
                .view()
                .members()
                .map(|m| Item::Owned(m.1.to_jsonb()))
                .collect(),
        }
    }

    pub(super) fn member(&self, key: &str) -> Option<Item<'a>> {
        match self {
            Item::View(view) => view.member(key).map(Item::View),
            Item::Owned(value) | Item::Datetime(_, value) => {
                value.view().member(key).map(|v| Item::Owned(v.to_jsonb()))
            }
        }
    }

    pub(super) fn is_array(&self) -> bool {
        self.view().kind() == JsonType::Array
    }

    /// A date or a time.
    pub(super) fn of_moment(moment: JsonDatetime) -> Result<Item<'a>> {
        let text = JsonbValue::string(moment.text()).finish()?;
        Ok(Item::Datetime(moment, text))
    }

    /// The string that it is: what a path has made of one with `.datetime()` is none.
    pub(super) fn as_str(&self) -> Option<JsonbRef<'_>> {
        match self {
            Item::Datetime(..) => None,
            other => Some(other.view()).filter(|view| view.kind() == JsonType::String),
        }
    }
}
