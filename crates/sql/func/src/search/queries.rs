//! Functions of tsqueries: matching, ranking, and putting queries together.

use super::texts;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::search::matching::matches;
use logstead_sql_types::value::search::query;
use logstead_sql_types::value::search::query::{Op, Query};
use logstead_sql_types::value::search::rank;
use logstead_sql_types::value::search::vector::Vector;
use logstead_types::SqlState;
use std::collections::BTreeSet;

fn matched(vector: &Datum, query: &Datum) -> Result<Datum> {
    let query = Query::of_datum(query)?;
    let vector = Vector::of_datum(vector)?;
    Ok(Datum::Bool(!query.is_empty() && matches(&query, &vector)))
}

/// `tsvector @@ tsquery`
pub(super) fn match_vector(a: &[Datum]) -> Result<Datum> {
    match a {
        [vector, query] => matched(vector, query),
        _ => Err(bad_args(a)),
    }
}

/// `tsquery @@ tsvector`
pub(super) fn match_query(a: &[Datum]) -> Result<Datum> {
    match a {
        [query, vector] => matched(vector, query),
        _ => Err(bad_args(a)),
    }
}

/// `text @@ tsquery`
pub(super) fn match_text(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [text, query] => matched(&texts::to_vector(cx, std::slice::from_ref(text))?, query),
        _ => Err(bad_args(a)),
    }
}

/// `text @@ text`
pub(super) fn match_texts(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [text, query] => {
            let vector = texts::to_vector(cx, std::slice::from_ref(text))?;
            matched(
                &vector,
                &texts::plain_query(cx, std::slice::from_ref(query))?,
            )
        }
        _ => Err(bad_args(a)),
    }
}

fn joined(a: &[Datum], op: Op) -> Result<Datum> {
    match a {
        [x, y, ..] => Query::of_datum(x)?.join(Query::of_datum(y)?, op).datum(),
        _ => Err(bad_args(a)),
    }
}

/// `tsquery && tsquery`
pub(super) fn and(a: &[Datum]) -> Result<Datum> {
    joined(a, Op::And)
}

/// `tsquery || tsquery`
pub(super) fn or(a: &[Datum]) -> Result<Datum> {
    joined(a, Op::Or)
}

/// `tsquery <-> tsquery`, `tsquery_phrase`
pub(super) fn phrase(a: &[Datum]) -> Result<Datum> {
    let distance = a.get(2).map_or(Ok(1), Datum::as_i32)?;
    joined(a, query::phrase(i64::from(distance))?)
}

/// `!! tsquery`
pub(super) fn not(a: &[Datum]) -> Result<Datum> {
    match a {
        [x] => Query::of_datum(x)?.negated().datum(),
        _ => Err(bad_args(a)),
    }
}

fn has_all(of: &Datum, all: &Datum) -> Result<Datum> {
    let (of, all) = (Query::of_datum(of)?, Query::of_datum(all)?);
    let has: BTreeSet<&str> = of.words().map(|w| w.text.as_str()).collect();
    Ok(Datum::Bool(
        all.words().all(|w| has.contains(w.text.as_str())),
    ))
}

/// `tsquery @> tsquery`: all words of the second are in the first.
pub(super) fn contains(a: &[Datum]) -> Result<Datum> {
    match a {
        [x, y] => has_all(x, y),
        _ => Err(bad_args(a)),
    }
}

/// `tsquery <@ tsquery`
pub(super) fn contained(a: &[Datum]) -> Result<Datum> {
    match a {
        [x, y] => has_all(y, x),
        _ => Err(bad_args(a)),
    }
}

fn only(a: &[Datum]) -> Result<Query> {
    a.first().map_or_else(|| Err(bad_args(a)), Query::of_datum)
}

/// `numnode`
pub(super) fn node_count(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(only(a)?.nodes.len() as i32))
}

/// `querytree`
pub(super) fn tree(a: &[Datum]) -> Result<Datum> {
    let query = only(a)?;
    if query.is_empty() {
        return Ok(Datum::text(""));
    }
    let mut out = Vec::new();
    match query.positive() {
        Some(positive) => positive.write(&mut out),
        None => out.push(b'T'),
    }
    Ok(Datum::text(String::from_utf8_lossy(&out).into_owned()))
}

/// The four weights that a call gives: negative ones stand for what is usual.
fn weights_of(d: &Datum) -> Result<[f32; 4]> {
    let Datum::Array(array) = d else {
        return Err(bad_args(std::slice::from_ref(d)));
    };
    if array.items.len() < 4 {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "array of weight is too short",
        ));
    }
    if array.items.iter().any(Datum::is_null) {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "array of weight must not contain nulls",
        ));
    }
    let mut weights = rank::WEIGHTS;
    for (weight, given) in weights.iter_mut().zip(&array.items) {
        let given = given.as_f32()?;
        if given >= 0.0 {
            *weight = given;
        }
        if *weight > 1.0 {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "weight out of range",
            ));
        }
    }
    Ok(weights)
}

type Measure = fn(&[f32; 4], &Vector<'_>, &Query, i32) -> f32;

fn ranked(a: &[Datum], measure: Measure) -> Result<Datum> {
    let (weights, rest) = match a {
        [given @ Datum::Array(_), rest @ ..] => (weights_of(given)?, rest),
        _ => (rank::WEIGHTS, a),
    };
    let [vector, query, method @ ..] = rest else {
        return Err(bad_args(a));
    };
    let method = method.first().map_or(Ok(0), Datum::as_i32)?;
    let (vector, query) = (Vector::of_datum(vector)?, Query::of_datum(query)?);
    Ok(Datum::Float4(measure(&weights, &vector, &query, method)))
}

/// `ts_rank`
pub(super) fn rank(a: &[Datum]) -> Result<Datum> {
    ranked(a, rank::rank)
}

/// `ts_rank_cd`
pub(super) fn rank_cover(a: &[Datum]) -> Result<Datum> {
    ranked(a, rank::rank_cover)
}
