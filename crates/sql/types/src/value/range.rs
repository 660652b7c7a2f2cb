//! Ranges: a lower and an upper bound, each of which may be missing, or nothing at all.
//!
//! A range's value is an array whose element type is the pseudo-type `anyrange`, whatever the range's type is called:
//! its two items are the bounds, NULL for one that is infinite, and what the array calls its first subscript are the
//! flags that PostgreSQL sends. Ranges of integers and dates are kept in one form, `[a,b)`, so equal ranges have equal
//! values; which they are, the bounds tell.
//!
//! Invariants: the lower bound is not above the upper one; no bound that is infinite is inclusive; what has no value in
//! it is the empty range.

use super::text_io::{OutputStyle, append, input, is_space};
use super::user::{self, UserTypeClass};
use super::{Array, Datum, SqlType, binary_io, calendar, compare, oid, record};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory::Builder;
use crate::value::IoContext;
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::Arc;

/// Flag: there is nothing in it.
pub const EMPTY: i32 = 0x01;
/// Flag: the lower bound is in it.
pub const LOWER_INCLUSIVE: i32 = 0x02;
/// Flag: the upper bound is in it.
pub const UPPER_INCLUSIVE: i32 = 0x04;
/// Flag: there is no lower bound.
pub const LOWER_INFINITE: i32 = 0x08;
/// Flag: there is no upper bound.
pub const UPPER_INFINITE: i32 = 0x10;

/// Flag: its bounds have a next value, which a type's canonical form would go by, but its type has none. It is kept
/// beside PostgreSQL's flags and never sent.
const CONTINUOUS: i32 = 0x20;
/// What is sent.
const SENT: i32 = 0x1f;

/// The type of a range's bounds; none of what is no range.
pub fn subtype(range: TypeId) -> Option<TypeId> {
    built_in_subtype(range).or_else(|| user::range_subtype(range))
}

/// The type of a built-in range's bounds.
pub(super) fn built_in_subtype(range: TypeId) -> Option<TypeId> {
    Some(match range {
        oid::INT4RANGE => oid::INT4,
        oid::INT8RANGE => oid::INT8,
        oid::NUMRANGE => oid::NUMERIC,
        oid::TSRANGE => oid::TIMESTAMP,
        oid::TSTZRANGE => oid::TIMESTAMPTZ,
        oid::DATERANGE => oid::DATE,
        _ => return None,
    })
}

/// Is the range one of a user over whole numbers or days? It is kept as it is written, for a user's type has no
/// canonical form.
fn is_continuous(range: TypeId) -> bool {
    user::class(range).is_some()
        && matches!(subtype(range), Some(oid::INT4 | oid::INT8 | oid::DATE))
}

/// True for the types of ranges.
pub fn is_range(ty: TypeId) -> bool {
    match user::class(ty) {
        Some(class) => class == UserTypeClass::Range,
        None => subtype(ty).is_some(),
    }
}

/// An end of a range.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The value; none is infinite.
    pub value: Option<Datum>,
    /// Is the value in the range?
    pub inclusive: bool,
    /// Is it the lower one?
    pub lower: bool,
    /// Of a range that is kept as it was written, though its values have neighbours.
    continuous: bool,
}

impl Bound {
    /// A bound; one without a value is infinite.
    pub fn new(value: Option<Datum>, inclusive: bool, lower: bool) -> Bound {
        Bound {
            inclusive: inclusive && value.is_some(),
            value,
            lower,
            continuous: false,
        }
    }

    /// As a bound of a range of this type.
    fn of_type(self, range: TypeId) -> Bound {
        Bound {
            continuous: is_continuous(range),
            ..self
        }
    }

    /// As a bound of a range that is kept as it was written.
    pub fn continuous(self) -> Bound {
        Bound {
            continuous: true,
            ..self
        }
    }

    /// The other side of this place: what ends here, begins there.
    pub fn turned(&self) -> Bound {
        Bound {
            value: self.value.clone(),
            inclusive: !self.inclusive,
            lower: !self.lower,
            continuous: self.continuous,
        }
    }

    /// The order of the values alone.
    pub fn compare_values(&self, other: &Bound) -> Ordering {
        let infinite = |bound: &Bound| match bound.lower {
            true => Ordering::Less,
            false => Ordering::Greater,
        };
        match (&self.value, &other.value) {
            (None, None) if self.lower == other.lower => Ordering::Equal,
            (None, _) => infinite(self),
            (_, None) => infinite(other).reverse(),
            (Some(a), Some(b)) => compare(a, b),
        }
    }

    /// The order of bounds: of equal values that come first which begin with the value or end before it.
    pub fn compare(&self, other: &Bound) -> Ordering {
        let values = self.compare_values(other);
        if values != Ordering::Equal || self.value.is_none() {
            return values;
        }
        let exclusive = |bound: &Bound| match bound.lower {
            true => Ordering::Greater,
            false => Ordering::Less,
        };
        match (self.inclusive, other.inclusive) {
            (true, true) => Ordering::Equal,
            (false, false) if self.lower == other.lower => Ordering::Equal,
            (false, _) => exclusive(self),
            (true, false) => exclusive(other).reverse(),
        }
    }
}

/// Is nothing between where one range ends and where another begins?
pub fn bounds_adjacent(upper: &Bound, lower: &Bound) -> bool {
    match upper.compare_values(lower) {
        Ordering::Greater => false,
        Ordering::Equal => upper.value.is_some() && upper.inclusive != lower.inclusive,
        // What is between them; only of integers and dates that may be nothing.
        Ordering::Less => {
            let discrete = !upper.continuous
                && matches!(
                    upper.value,
                    Some(Datum::Int4(_) | Datum::Int8(_) | Datum::Date(_))
                );
            let between = discrete.then(|| make(upper.turned(), lower.turned()));
            matches!(between, Some(Ok(range)) if of(&range).is_ok_and(|r| r.items.is_empty()))
        }
    }
}

/// Both bounds of a range; none of an empty one.
pub fn bounds(range: &Array) -> Option<(Bound, Bound)> {
    let [lower, upper] = range.items.as_slice() else {
        return None;
    };
    let value = |datum: &Datum| (!datum.is_null()).then(|| datum.clone());
    let has = |flag: i32| range.lower & flag != 0;
    let continuous = has(CONTINUOUS);
    let lower = Bound::new(value(lower), has(LOWER_INCLUSIVE), true);
    let upper = Bound::new(value(upper), has(UPPER_INCLUSIVE), false);
    Some((
        Bound {
            continuous,
            ..lower
        },
        Bound {
            continuous,
            ..upper
        },
    ))
}

/// The range in a datum.
pub fn of(datum: &Datum) -> Result<&Array> {
    match datum {
        Datum::Array(range) if range.element == oid::ANYRANGE => Ok(range),
        other => Err(SqlError::internal(format!(
            "value {other:?} where a range was expected"
        ))),
    }
}

/// The empty range.
pub fn empty() -> Datum {
    Datum::Array(Arc::new(Array {
        element: oid::ANYRANGE,
        lower: EMPTY,
        shape: None,
        items: Vec::new(),
    }))
}

/// The value behind another, for types that have such.
fn next(value: &Datum) -> Result<Option<Datum>> {
    let too_large = |message: &str| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
    Ok(Some(match value {
        Datum::Int4(v) => Datum::Int4(
            v.checked_add(1)
                .ok_or_else(|| too_large("integer out of range"))?,
        ),
        Datum::Int8(v) => Datum::Int8(
            v.checked_add(1)
                .ok_or_else(|| too_large("bigint out of range"))?,
        ),
        // Infinite dates have none.
        Datum::Date(i32::MIN | i32::MAX) => return Ok(None),
        Datum::Date(v) => {
            let next = v.checked_add(1);
            let next = next.filter(|v| i64::from(*v) < calendar::DATE_END);
            Datum::Date(next.ok_or_else(|| {
                SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")
            })?)
        }
        _ => return Ok(None),
    }))
}

/// A range between two bounds, in the form that it is kept in.
pub fn make(lower: Bound, upper: Bound) -> Result<Datum> {
    let nothing = |lower: &Bound, upper: &Bound| -> Result<bool> {
        let (Some(_), Some(_)) = (&lower.value, &upper.value) else {
            return Ok(false);
        };
        match lower.compare_values(upper) {
            Ordering::Greater => Err(SqlError::new(
                SqlState::DATA_EXCEPTION,
                "range lower bound must be less than or equal to range upper bound",
            )),
            Ordering::Equal => Ok(!(lower.inclusive && upper.inclusive)),
            Ordering::Less => Ok(false),
        }
    };
    let (mut lower, mut upper) = (lower, upper);
    if nothing(&lower, &upper)? {
        return Ok(empty());
    }
    let continuous = lower.continuous || upper.continuous;
    if !continuous
        && !lower.inclusive
        && let Some(value) = &lower.value
        && let Some(next) = next(value)?
    {
        lower = Bound::new(Some(next), true, true);
    }
    if !continuous
        && upper.inclusive
        && let Some(value) = &upper.value
        && let Some(next) = next(value)?
    {
        upper = Bound::new(Some(next), false, false);
    }
    if nothing(&lower, &upper)? {
        return Ok(empty());
    }
    let flag = |is: bool, flag: i32| if is { flag } else { 0 };
    let flags = flag(lower.inclusive, LOWER_INCLUSIVE)
        | flag(upper.inclusive, UPPER_INCLUSIVE)
        | flag(continuous, CONTINUOUS)
        | flag(lower.value.is_none(), LOWER_INFINITE)
        | flag(upper.value.is_none(), UPPER_INFINITE);
    Ok(Datum::Array(Arc::new(Array {
        element: oid::ANYRANGE,
        lower: flags,
        shape: None,
        items: vec![
            lower.value.unwrap_or_default(),
            upper.value.unwrap_or_default(),
        ],
    })))
}

/// The order of ranges: the empty one first, then by lower bounds, then by upper ones.
pub(super) fn compare_ranges(a: &Array, b: &Array) -> Ordering {
    match (bounds(a), bounds(b)) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some((al, au)), Some((bl, bu))) => al.compare(&bl).then_with(|| au.compare(&bu)),
    }
}

/// Appends the key of a range; `value` appends that of a bound's value.
pub(super) fn write_key(range: &Array, out: &mut Vec<u8>, value: &dyn Fn(&Datum, &mut Vec<u8>)) {
    let Some((lower, upper)) = bounds(range) else {
        return out.push(0);
    };
    out.push(1);
    match &lower.value {
        None => out.push(0),
        Some(at) => {
            out.push(1);
            value(at, out);
            out.push(u8::from(!lower.inclusive));
        }
    }
    match &upper.value {
        None => out.push(1),
        Some(at) => {
            out.push(0);
            value(at, out);
            out.push(u8::from(upper.inclusive));
        }
    }
}

/// The text form: `[1,5)`, `(,"2020-01-01 00:00:00"]`, `empty`.
pub(super) fn range_output(
    range: &Array,
    ty: SqlType,
    style: &OutputStyle<'_>,
    out: &mut Builder,
) -> Result<()> {
    let Some((lower, upper)) = bounds(range) else {
        return out.push_bytes(b"empty");
    };
    let of = SqlType::of(subtype(ty.oid).unwrap_or(oid::TEXT));
    let write = |bound: &Bound, out: &mut Builder| {
        let Some(value) = &bound.value else {
            return Ok(());
        };
        let mut word = Builder::default();
        append(value, of, style, &mut word)?;
        let special =
            |c: u8| matches!(c, b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',') || is_space(c);
        if !word.is_empty() && !word.iter().any(|c| special(*c)) {
            return out.push_bytes(&word);
        }
        record::quoted(&word, true, out)
    };
    out.push(if lower.inclusive { b'[' } else { b'(' });
    write(&lower, out)?;
    out.push(b',');
    write(&upper, out)?;
    out.push_byte(if upper.inclusive { b']' } else { b')' })
}

/// Reads the text form.
pub(super) fn range_input(ty: SqlType, text: &str, cx: Option<&dyn IoContext>) -> Result<Datum> {
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed range literal: \"{text}\""),
        )
        .detail(detail)
    };
    let blank = |c: char| c.is_ascii() && is_space(c as u8);
    let of = SqlType::of(subtype(ty.oid).unwrap_or(oid::TEXT));
    let start = text.trim_start_matches(blank);
    if let Some(word) = start.get(..5)
        && word.eq_ignore_ascii_case("empty")
    {
        return match start[5..].trim_start_matches(blank) {
            "" => Ok(empty()),
            _ => Err(malformed("Junk after \"empty\" key word.")),
        };
    }
    let lower_inclusive = match start.as_bytes().first() {
        Some(b'[') => true,
        Some(b'(') => false,
        _ => return Err(malformed("Missing left parenthesis or bracket.")),
    };
    let (lower, rest) = bound_text(&start[1..]).ok_or_else(|| malformed(EXPECTED_MORE))?;
    let rest = rest
        .strip_prefix(',')
        .ok_or_else(|| malformed("Missing comma after lower bound."))?;
    let (upper, rest) = bound_text(rest).ok_or_else(|| malformed(EXPECTED_MORE))?;
    let upper_inclusive = match rest.as_bytes().first() {
        Some(b']') => true,
        Some(b')') => false,
        _ => return Err(malformed("Too many commas.")),
    };
    if !rest[1..].trim_start_matches(blank).is_empty() {
        return Err(malformed("Junk after right parenthesis or bracket."));
    }
    let value = |text: Option<String>| text.map(|text| input(of, &text, cx)).transpose();
    make(
        Bound::new(value(lower)?, lower_inclusive, true).of_type(ty.oid),
        Bound::new(value(upper)?, upper_inclusive, false).of_type(ty.oid),
    )
}

/// What is said of a text that ends too early.
pub(super) const EXPECTED_MORE: &str = "Unexpected end of input.";

/// A bound's text, none for an infinite one, and what follows; nothing if the input ends in it.
fn bound_text(text: &str) -> Option<(Option<String>, &str)> {
    if text.starts_with([',', ')', ']']) {
        return Some((None, text));
    }
    let mut word = String::new();
    let mut quoted = false;
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            ',' | ')' | ']' if !quoted => return Some((Some(word), text.get(at..)?)),
            '\\' => word.push(rest.next()?.1),
            '"' if !quoted => quoted = true,
            '"' if rest.as_str().starts_with('"') => {
                rest.next();
                word.push('"');
            }
            '"' => quoted = false,
            c => word.push(c),
        }
    }
    None
}

/// The binary form: the flags, then length and bytes of each bound that is not infinite.
pub(super) fn range_send(range: &Array, ty: SqlType, out: &mut Vec<u8>) -> Result<()> {
    out.push((range.lower & SENT) as u8);
    let of = SqlType::of(subtype(ty.oid).unwrap_or(oid::TEXT));
    for item in range.items.iter().filter(|item| !item.is_null()) {
        let at = out.len();
        out.extend_from_slice(&0_i32.to_be_bytes());
        binary_io::binary_output(item, of, out)?;
        let len = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    }
    Ok(())
}

/// Reads the binary form.
pub(super) fn range_receive(ty: SqlType, bytes: &[u8]) -> Result<Datum> {
    let short = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let of = SqlType::of(subtype(ty.oid).unwrap_or(oid::TEXT));
    let (flags, mut rest) = bytes.split_first().ok_or_else(short)?;
    let has = |flag: i32| i32::from(*flags) & flag != 0;
    let mut value = |infinite: bool| -> Result<Option<Datum>> {
        if infinite || has(EMPTY) {
            return Ok(None);
        }
        let (len, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let len = usize::try_from(u32::from_be_bytes(*len)).map_err(|_| short())?;
        let (value, tail) = tail.split_at_checked(len).ok_or_else(short)?;
        rest = tail;
        binary_io::binary_input(of, value).map(Some)
    };
    let lower = value(has(LOWER_INFINITE))?;
    let upper = value(has(UPPER_INFINITE))?;
    if !rest.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "incorrect binary data format",
        ));
    }
    if has(EMPTY) {
        return Ok(empty());
    }
    make(
        Bound::new(lower, has(LOWER_INCLUSIVE), true).of_type(ty.oid),
        Bound::new(upper, has(UPPER_INCLUSIVE), false).of_type(ty.oid),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_ranges_do() {
        let texts = [
            "empty", "(,)", "(,1)", "(,1]", "(,2)", "[1,2)", "[1,2]", "[1,)", "(1,2)", "(1,)",
            "[2,3)",
        ];
        let ty = SqlType::of(oid::NUMRANGE);
        let ranges: Vec<Datum> = texts
            .iter()
            .map(|t| range_input(ty, t, None).unwrap())
            .collect();
        let key = |d: &Datum| {
            let mut out = Vec::new();
            crate::value::key::encode_key(oid::NUMRANGE, d, false, false, &mut out);
            out
        };
        for (i, a) in ranges.iter().enumerate() {
            for (j, b) in ranges.iter().enumerate() {
                assert_eq!(
                    key(a).cmp(&key(b)),
                    compare(a, b),
                    "{} {}",
                    texts[i],
                    texts[j]
                );
            }
            let mut stored = Vec::new();
            crate::value::stored::encode(a, &mut stored);
            assert_eq!(
                &crate::value::stored::decode(oid::NUMRANGE, &stored).unwrap(),
                a
            );
            for end in 0..stored.len() {
                let cut = stored.get(..end).unwrap();
                assert!(
                    crate::value::stored::decode(oid::NUMRANGE, cut).is_err(),
                    "{}",
                    texts[i]
                );
            }
        }
        // The infinite upper bound comes last.
        assert!(compare(&ranges[1], &ranges[4]) == Ordering::Greater);
    }
}
