//! Items that a jsonpath finds: parts of the value, values made on the way, dates and times.

use super::moment::Moment;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::json::{Build, JsonType, Jsonb, View};

/// An item found: a part of the value, or one made on the way.
#[derive(Clone)]
pub(super) enum Item<'a> {
    View(View<'a>),
    Made(Jsonb),
    /// A date or a time, and the string that it is outside of the path.
    Moment(Moment, Jsonb),
}

impl<'a> Item<'a> {
    pub(super) fn of(build: Build<'_>) -> Result<Item<'a>> {
        build.finish().map(Item::Made)
    }

    pub(super) fn view(&self) -> View<'_> {
        match self {
            Item::View(view) => *view,
            Item::Made(value) | Item::Moment(_, value) => value.view(),
        }
    }

    pub(super) fn to_jsonb(&self) -> Jsonb {
        match self {
            Item::View(view) => view.to_jsonb(),
            Item::Made(value) | Item::Moment(_, value) => value.clone(),
        }
    }

    pub(super) fn elements(&self) -> Vec<Item<'a>> {
        match self {
            Item::View(view) => view.elements().map(Item::View).collect(),
            Item::Made(value) | Item::Moment(_, value) => value
                .view()
                .elements()
                .map(|e| Item::Made(e.to_jsonb()))
                .collect(),
        }
    }

    pub(super) fn values(&self) -> Vec<Item<'a>> {
        match self {
            Item::View(view) => view.members().map(|m| Item::View(m.1)).collect(),
            Item::Made(value) | Item::Moment(_, value) => value
                .view()
                .members()
                .map(|m| Item::Made(m.1.to_jsonb()))
                .collect(),
        }
    }

    pub(super) fn member(&self, key: &str) -> Option<Item<'a>> {
        match self {
            Item::View(view) => view.member(key).map(Item::View),
            Item::Made(value) | Item::Moment(_, value) => {
                value.view().member(key).map(|v| Item::Made(v.to_jsonb()))
            }
        }
    }

    pub(super) fn is_array(&self) -> bool {
        self.view().kind() == JsonType::Array
    }

    /// A date or a time.
    pub(super) fn of_moment(moment: Moment) -> Result<Item<'a>> {
        let text = Build::string(moment.text()).finish()?;
        Ok(Item::Moment(moment, text))
    }

    /// The string that it is: what a path has made of one with `.datetime()` is none.
    pub(super) fn as_str(&self) -> Option<View<'_>> {
        match self {
            Item::Moment(..) => None,
            other => Some(other.view()).filter(|view| view.kind() == JsonType::String),
        }
    }
}
