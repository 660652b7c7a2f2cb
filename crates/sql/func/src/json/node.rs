//! One way to read json and jsonb: a value of either kind and what is inside it.

use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::json::text::{self, Item, Value};
use logstead_sql_types::value::json::{JsonType, JsonbRef, JsonbValue};
use logstead_types::SqlState;

/// A whole argument, read.
pub(crate) enum Document<'a> {
    Text(Item<'a>),
    Binary(JsonbRef<'a>),
}

/// A value inside a document.
#[derive(Clone, Copy)]
pub(crate) enum Node<'a> {
    Text(&'a Item<'a>),
    Binary(JsonbRef<'a>),
}

/// 22023, for functions that are called on the wrong kind of value.
pub(crate) fn wrong_kind(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl<'a> Document<'a> {
    pub(crate) fn of(datum: &'a Datum) -> Result<Document<'a>> {
        Document::read(datum, true)
    }

    /// Without the strings of a json value.
    pub(crate) fn outline(datum: &'a Datum) -> Result<Document<'a>> {
        Document::read(datum, false)
    }

    fn read(datum: &'a Datum, decode: bool) -> Result<Document<'a>> {
        Ok(match datum {
            Datum::Text(text) => Document::Text(text::parse(text, decode)?),
            other => Document::Binary(other.as_jsonb()?),
        })
    }

    pub(crate) fn root(&'a self) -> Node<'a> {
        match self {
            Document::Text(item) => Node::Text(item),
            Document::Binary(view) => Node::Binary(*view),
        }
    }
}

impl<'a> Node<'a> {
    pub(crate) fn kind(self) -> JsonType {
        match self {
            Node::Binary(view) => view.kind(),
            Node::Text(item) => match &item.value {
                Value::Null => JsonType::Null,
                Value::Bool(true) => JsonType::True,
                Value::Bool(false) => JsonType::False,
                Value::Number => JsonType::Number,
                Value::String(_) => JsonType::String,
                Value::Array(_) => JsonType::Array,
                Value::Object(_) => JsonType::Object,
            },
        }
    }

    /// Elements of an array.
    pub(crate) fn elements(self) -> Box<dyn Iterator<Item = Node<'a>> + 'a> {
        match self {
            Node::Binary(view) => Box::new(view.elements().map(Node::Binary)),
            Node::Text(item) => match &item.value {
                Value::Array(items) => Box::new(items.iter().map(Node::Text)),
                _ => Box::new(std::iter::empty()),
            },
        }
    }

    /// Members of an object: in a json value as they stand, duplicates included.
    pub(crate) fn members(self) -> Box<dyn Iterator<Item = (&'a str, Node<'a>)> + 'a> {
        match self {
            Node::Binary(view) => Box::new(view.members().map(|(k, v)| (k, Node::Binary(v)))),
            Node::Text(item) => match &item.value {
                Value::Object(members) => {
                    Box::new(members.iter().map(|(k, v)| (k.as_ref(), Node::Text(v))))
                }
                _ => Box::new(std::iter::empty()),
            },
        }
    }

    /// The value of a key of an object; the last one if there are several.
    pub(crate) fn member(self, key: &str) -> Option<Node<'a>> {
        match self {
            Node::Binary(view) => view.member(key).map(Node::Binary),
            Node::Text(_) => self
                .members()
                .filter(|(k, _)| *k == key)
                .last()
                .map(|m| m.1),
        }
    }

    /// Element `i` of an array, counted from its end if it is negative.
    pub(crate) fn element_at(self, i: i64) -> Option<Node<'a>> {
        match self {
            Node::Binary(view) => view.element_at(i).map(Node::Binary),
            Node::Text(item) => {
                let Value::Array(items) = &item.value else {
                    return None;
                };
                let at = match usize::try_from(i) {
                    Ok(at) => at,
                    Err(_) => items
                        .len()
                        .checked_sub(usize::try_from(i.unsigned_abs()).ok()?)?,
                };
                items.get(at).map(Node::Text)
            }
        }
    }

    pub(crate) fn element_count(self) -> usize {
        match self {
            Node::Binary(view) => view.len(),
            Node::Text(item) => match &item.value {
                Value::Array(items) => items.len(),
                _ => 0,
            },
        }
    }

    /// The value on its own, of its document's type.
    pub(crate) fn datum(self) -> Datum {
        match self {
            Node::Binary(view) => Datum::Jsonb(view.to_jsonb()),
            Node::Text(item) => Datum::text(item.raw),
        }
    }

    /// What `->>` gives of it: the text of a string, nothing for null, JSON for the rest.
    pub(crate) fn text(self) -> Result<Option<String>> {
        Ok(match self {
            Node::Binary(view) => view.to_text()?,
            Node::Text(item) => match &item.value {
                Value::Null => None,
                Value::String(s) => Some(s.to_string()),
                _ => Some(item.raw.to_owned()),
            },
        })
    }

    /// Its JSON text.
    pub(crate) fn json(self) -> Result<String> {
        match self {
            Node::Binary(view) => view.shown(),
            Node::Text(item) => Ok(item.raw.to_owned()),
        }
    }

    /// As a part of a jsonb value.
    pub(crate) fn build(self) -> Result<JsonbValue<'a>> {
        match self {
            Node::Binary(view) => Ok(JsonbValue::View(view)),
            // Its strings may have been left out.
            Node::Text(item) => JsonbValue::of_text(text::parse(item.raw, true)?),
        }
    }

    pub(crate) fn text_datum(self) -> Result<Datum> {
        Ok(self.text()?.map_or(Datum::Null, Datum::text))
    }
}
