//! `json_agg`, `json_object_agg` and their jsonb kin.

use super::make::{JsonWriter, is_structured, json, kept};
use super::node::wrong_kind;
use crate::arithmetic::bad_args;
use crate::{Aggregate, AggregateState};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::json::JsonbValue;
use logstead_sql_types::value::json::text::append_string;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::{Datum, Jsonb, SqlType};
use logstead_sql_types::{FunctionId, TypeId};
use std::borrow::Cow;

const fn a(
    oid: u32,
    name: &'static str,
    args: &'static [TypeId],
    result: TypeId,
    start: fn(&[SqlType]) -> Box<dyn AggregateState>,
) -> Aggregate {
    Aggregate {
        oid: FunctionId::new(oid),
        name,
        args,
        result,
        start,
        strict: false,
    }
}

fn text(types: &[SqlType]) -> Box<dyn AggregateState> {
    Box::new(JsonAgg::new(types))
}

fn binary(types: &[SqlType]) -> Box<dyn AggregateState> {
    Box::new(JsonbAgg::new(types))
}

/// `json_agg`
pub(crate) const JSON_AGG: Aggregate = a(3175, "json_agg", &[ANYELEMENT], JSON, text);
/// `json_object_agg`
pub(crate) const JSON_OBJECT_AGG: Aggregate = a(3197, "json_object_agg", &[ANY, ANY], JSON, text);
/// `jsonb_agg`
pub(crate) const JSONB_AGG: Aggregate = a(3267, "jsonb_agg", &[ANYELEMENT], JSONB, binary);
/// `jsonb_object_agg`
pub(crate) const JSONB_OBJECT_AGG: Aggregate =
    a(3270, "jsonb_object_agg", &[ANY, ANY], JSONB, binary);

fn no_session() -> SqlError {
    SqlError::internal("an aggregate of JSON without a session")
}

fn null_key() -> SqlError {
    wrong_kind("field name must not be null")
}

/// json: the text so far, without its closing bracket.
struct JsonAgg {
    types: Vec<SqlType>,
    out: Builder,
}

impl JsonAgg {
    fn new(types: &[SqlType]) -> JsonAgg {
        JsonAgg {
            types: types.to_vec(),
            out: Builder::default(),
        }
    }

    fn closed(&self, mut out: Builder) -> Result<Datum> {
        if out.is_empty() {
            return Ok(Datum::Null);
        }
        out.push_bytes(if self.types.len() == 2 { b" }" } else { b"]" })?;
        json(out)
    }
}

impl AggregateState for JsonAgg {
    fn add(&mut self, _: &[Datum]) -> Result<()> {
        Err(no_session())
    }

    fn add_in(&mut self, cx: &dyn IoContext, args: &[Datum]) -> Result<()> {
        let writer = JsonWriter::new(cx);
        let first = self.out.is_empty();
        match (args, self.types.as_slice()) {
            ([value], [ty]) => {
                self.out.extend_from_slice(if first { b"[" } else { b", " });
                if !first && !value.is_null() && is_structured(*ty) {
                    self.out.extend_from_slice(b"\n ");
                }
                writer.value(value, *ty, &mut self.out)
            }
            ([key, value], [key_type, value_type]) => {
                if key.is_null() {
                    return Err(null_key());
                }
                let key = writer.key(key, *key_type)?;
                self.out
                    .extend_from_slice(if first { b"{ " } else { b", " });
                append_string(&key, &mut self.out)?;
                self.out.extend_from_slice(b" : ");
                writer.value(value, *value_type, &mut self.out)
            }
            _ => Err(bad_args(args)),
        }
    }

    fn value(&self) -> Result<Datum> {
        let mut out = Builder::default();
        out.push_bytes(&self.out)?;
        self.closed(out)
    }

    fn finish(&mut self) -> Result<Datum> {
        let out = std::mem::take(&mut self.out);
        self.closed(out)
    }

    fn size_bytes(&self) -> usize {
        self.out.capacity()
    }
}

/// jsonb: the values so far, with their keys if there are some.
struct JsonbAgg {
    types: Vec<SqlType>,
    keys: Vec<String>,
    values: Vec<Jsonb>,
    bytes: usize,
}

impl JsonbAgg {
    fn new(types: &[SqlType]) -> JsonbAgg {
        JsonbAgg {
            types: types.to_vec(),
            keys: Vec::new(),
            values: Vec::new(),
            bytes: 0,
        }
    }
}

impl AggregateState for JsonbAgg {
    fn add(&mut self, _: &[Datum]) -> Result<()> {
        Err(no_session())
    }

    fn add_in(&mut self, cx: &dyn IoContext, args: &[Datum]) -> Result<()> {
        let (value, ty) = match (args, self.types.as_slice()) {
            ([value], [ty]) => (value, *ty),
            ([key, value], [key_type, value_type]) => {
                if key.is_null() {
                    return Err(null_key());
                }
                let key = JsonWriter::new(cx).key(key, *key_type)?;
                self.bytes += key.capacity() + size_of::<String>();
                self.keys.push(key);
                (value, *value_type)
            }
            _ => return Err(bad_args(args)),
        };
        let value = kept(cx, value, ty)?;
        self.bytes += value.bytes().len() + size_of::<Jsonb>() + 16;
        self.values.push(value);
        Ok(())
    }

    fn value(&self) -> Result<Datum> {
        if self.values.is_empty() {
            return Ok(Datum::Null);
        }
        let values = self
            .values
            .iter()
            .map(|value| JsonbValue::View(value.view()));
        let whole = if self.types.len() == 2 {
            let keys = self.keys.iter().map(|key| Cow::Borrowed(key.as_str()));
            JsonbValue::Object(keys.zip(values).collect())
        } else {
            JsonbValue::Array(values.collect())
        };
        whole.finish().map(Datum::Jsonb)
    }

    fn size_bytes(&self) -> usize {
        self.bytes
    }
}
