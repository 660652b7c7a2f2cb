//! Functions of tsvectors.

use crate::Rows;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::search::vector::{
    Lexeme, PLACE_MAX, PLACES_MAX, Vector, WordPosition,
};
use logstead_sql_types::value::{Array, Datum, compare, oid};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::collections::HashSet;

/// `tsvector_cmp`, `tsquery_cmp`
pub(super) fn order(a: &[Datum]) -> Result<Datum> {
    match a {
        [x, y] => Ok(Datum::Int4(compare(x, y) as i32)),
        _ => Err(bad_args(a)),
    }
}

fn first(a: &[Datum]) -> Result<Vector<'_>> {
    a.first().map_or_else(|| Err(bad_args(a)), Vector::of_datum)
}

/// `length`
pub(super) fn length(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(first(a)?.lexemes.len() as i32))
}

/// `strip`
pub(super) fn strip(a: &[Datum]) -> Result<Datum> {
    let mut vector = first(a)?;
    for lexeme in &mut vector.lexemes {
        lexeme.places.clear();
    }
    vector.datum()
}

fn weight_of(letter: u8) -> Option<u8> {
    match letter {
        b'a' | b'A' => Some(3),
        b'b' | b'B' => Some(2),
        b'c' | b'C' => Some(1),
        b'd' | b'D' => Some(0),
        _ => None,
    }
}

fn no_nulls(what: &str) -> SqlError {
    SqlError::new(
        SqlState::NULL_VALUE_NOT_ALLOWED,
        format!("{what} array may not contain nulls"),
    )
}

/// The texts of an array; NULLs are passed over.
fn texts(array: &Array) -> Result<Vec<&str>> {
    let items = array.items.iter().filter(|item| !item.is_null());
    items.map(Datum::as_str).collect()
}

/// `setweight`
pub(super) fn set_weight(a: &[Datum]) -> Result<Datum> {
    let mut vector = first(a)?;
    let letter = a.get(1).map_or(Ok(0), Datum::as_char)?;
    let weight = weight_of(letter).ok_or_else(|| {
        SqlError::new(
            SqlState::INTERNAL_ERROR,
            format!("unrecognized weight: {}", letter as i8),
        )
    })?;
    let only = match a.get(2) {
        Some(Datum::Array(array)) => Some(texts(array)?),
        _ => None,
    };
    for lexeme in &mut vector.lexemes {
        if only.as_ref().is_none_or(|o| o.contains(&&*lexeme.text)) {
            lexeme.places.iter_mut().for_each(|p| p.weight = weight);
        }
    }
    vector.datum()
}

/// `tsvector || tsvector`: the second text stands behind the first.
pub(super) fn concat(a: &[Datum]) -> Result<Datum> {
    let [x, y] = a else {
        return Err(bad_args(a));
    };
    let (mut left, right) = (Vector::of_datum(x)?, Vector::of_datum(y)?);
    let shift = left.last_place();
    let mut fresh = Vec::new();
    for mut lexeme in right.lexemes {
        let at = left.lexemes.binary_search_by(|l| l.text.cmp(&lexeme.text));
        let mut places = match at {
            Ok(at) => std::mem::take(&mut left.lexemes[at].places),
            Err(_) => Vec::new(),
        };
        for place in &lexeme.places {
            if places.len() >= PLACES_MAX || places.last().is_some_and(|p| p.at == PLACE_MAX) {
                break;
            }
            places.push(WordPosition {
                at: (place.at + shift).min(PLACE_MAX),
                weight: place.weight,
            });
        }
        match at {
            Ok(at) => left.lexemes[at].places = places,
            Err(_) => {
                lexeme.places = places;
                fresh.push(lexeme);
            }
        }
    }
    left.lexemes.extend(fresh);
    left.lexemes.sort_by(|a, b| a.text.cmp(&b.text));
    left.datum()
}

/// `ts_delete`
pub(super) fn delete(a: &[Datum]) -> Result<Datum> {
    let mut vector = first(a)?;
    match a.get(1) {
        Some(Datum::Text(text)) => vector.lexemes.retain(|l| *l.text != **text),
        Some(Datum::Array(array)) => {
            let gone: HashSet<&str> = texts(array)?.into_iter().collect();
            vector.lexemes.retain(|l| !gone.contains(&*l.text));
        }
        _ => return Err(bad_args(a)),
    }
    vector.datum()
}

/// `ts_filter`
pub(super) fn filter(a: &[Datum]) -> Result<Datum> {
    let mut vector = first(a)?;
    let Some(Datum::Array(letters)) = a.get(1) else {
        return Err(bad_args(a));
    };
    let mut wanted = 0u8;
    for letter in &letters.items {
        if letter.is_null() {
            return Err(no_nulls("weight"));
        }
        let letter = letter.as_char()?;
        let weight = weight_of(letter).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized weight: \"{}\"", letter as char),
            )
        })?;
        wanted |= 1 << weight;
    }
    for lexeme in &mut vector.lexemes {
        lexeme.places.retain(|p| wanted >> p.weight & 1 == 1);
    }
    vector.lexemes.retain(|l| !l.places.is_empty());
    vector.datum()
}

/// `unnest`
pub(super) fn unnest(a: &[Datum]) -> Result<Rows> {
    let vector = first(a)?;
    let row = |lexeme: &Lexeme<'_>| {
        let (mut at, mut weights) = (Datum::Null, Datum::Null);
        if !lexeme.places.is_empty() {
            let places = lexeme.places.iter();
            at = Datum::array(
                oid::INT2,
                places.clone().map(|p| Datum::Int2(p.at as i16)).collect(),
            );
            let letter =
                |p: &WordPosition| Datum::text(["D", "C", "B", "A"][usize::from(p.weight & 3)]);
            weights = Datum::array(oid::TEXT, places.map(letter).collect());
        }
        vec![Datum::text(&*lexeme.text), at, weights]
    };
    Ok(vector.lexemes.iter().map(row).collect())
}

/// `tsvector_to_array`
pub(super) fn to_array(a: &[Datum]) -> Result<Datum> {
    let vector = first(a)?;
    let texts = vector.lexemes.iter().map(|l| Datum::text(&*l.text));
    Ok(Datum::array(oid::TEXT, texts.collect()))
}

/// `array_to_tsvector`
pub(super) fn of_array(a: &[Datum]) -> Result<Datum> {
    let [Datum::Array(array)] = a else {
        return Err(bad_args(a));
    };
    let mut lexemes = Vec::with_capacity(array.items.len());
    if array.items.iter().any(Datum::is_null) {
        return Err(no_nulls("lexeme"));
    }
    for text in texts(array)? {
        if text.is_empty() {
            return Err(SqlError::new(
                SqlState::ZERO_LENGTH_CHARACTER_STRING,
                "lexeme array may not contain empty strings",
            ));
        }
        lexemes.push(Lexeme {
            text: Cow::Borrowed(text),
            places: Vec::new(),
        });
    }
    Vector::of(lexemes).datum()
}
