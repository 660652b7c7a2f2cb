//! Multiranges: ranges of one type that neither overlap nor touch, in order.
//!
//! A multirange's value is an array whose element type is the pseudo-type `anymultirange`, and whose items are its
//! ranges (see [`super::range`]). Invariants: none of them is empty, each begins behind the end of the one before it,
//! and something is between them. So equal multiranges have equal values, and they compare as arrays do: range by
//! range, and what ends first comes first.

use super::range::{self, Bound, EXPECTED_MORE};
use super::text_io::{OutputStyle, is_space};
use super::user::{self, UserTypeClass, multirange_over, range_under};
use super::{Array, Datum, SqlType, compare, oid};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory::Builder;
use crate::value::IoContext;
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::Arc;

/// A type of multiranges, and the type of the ranges in it.
const TYPES: [(TypeId, TypeId); 6] = [
    (oid::INT4MULTIRANGE, oid::INT4RANGE),
    (oid::NUMMULTIRANGE, oid::NUMRANGE),
    (oid::TSMULTIRANGE, oid::TSRANGE),
    (oid::TSTZMULTIRANGE, oid::TSTZRANGE),
    (oid::DATEMULTIRANGE, oid::DATERANGE),
    (oid::INT8MULTIRANGE, oid::INT8RANGE),
];

/// The type of the ranges in a multirange; none of what is no multirange.
pub fn range_of(multirange: TypeId) -> Option<TypeId> {
    if let Some(class) = user::class(multirange) {
        return (class == UserTypeClass::Multirange).then(|| range_under(multirange));
    }
    let found = TYPES.iter().find(|(ty, _)| *ty == multirange);
    found.map(|(_, range)| *range)
}

/// The type of multiranges of these ranges; none of what is no range.
pub fn multirange_of(range: TypeId) -> Option<TypeId> {
    if let Some(class) = user::class(range) {
        return (class == UserTypeClass::Range).then(|| multirange_over(range));
    }
    let found = TYPES.iter().find(|(_, ty)| *ty == range);
    found.map(|(multirange, _)| *multirange)
}

/// True for the types of multiranges.
pub fn is_multirange(ty: TypeId) -> bool {
    range_of(ty).is_some()
}

/// The ranges in a datum, a multirange's or the one that is not empty: in order, nothing in common.
pub fn ranges_in(datum: &Datum) -> Result<&[Datum]> {
    match datum {
        Datum::Array(v) if v.element == oid::ANYMULTIRANGE => Ok(&v.items),
        Datum::Array(v) if v.element == oid::ANYRANGE && v.items.is_empty() => Ok(&[]),
        Datum::Array(v) if v.element == oid::ANYRANGE => Ok(std::slice::from_ref(datum)),
        other => Err(SqlError::internal(format!(
            "value {other:?} where a range or multirange was expected"
        ))),
    }
}

/// A multirange of ranges that are in order already, with something between each and the next.
pub fn of_sorted(ranges: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array::flat(oid::ANYMULTIRANGE, 1, ranges)))
}

/// A multirange of any ranges.
pub fn make(mut ranges: Vec<Datum>) -> Result<Datum> {
    ranges.sort_by(compare);
    let mut kept: Vec<Datum> = Vec::with_capacity(ranges.len());
    let mut last: Option<(Bound, Bound)> = None;
    for range in ranges {
        let Some((lower, upper)) = range::bounds(range::of(&range)?) else {
            continue;
        };
        // Is nothing between the two? Then they are one.
        let goes_on = last.as_ref().is_some_and(|(_, to)| {
            to.compare(&lower) != Ordering::Less || range::bounds_adjacent(to, &lower)
        });
        match &mut last {
            Some((from, to)) if goes_on => {
                if upper.compare(to) == Ordering::Greater {
                    *to = upper;
                }
                kept.pop();
                kept.push(range::make(from.clone(), to.clone())?);
            }
            _ => {
                kept.push(range);
                last = Some((lower, upper));
            }
        }
    }
    Ok(of_sorted(kept))
}

/// Appends the key of a multirange: those of its ranges, which begin with something else than the end.
pub(super) fn write_key(ranges: &Array, out: &mut Vec<u8>, value: &dyn Fn(&Datum, &mut Vec<u8>)) {
    for item in &ranges.items {
        if let Datum::Array(item) = item {
            range::write_key(item, out, value);
        }
    }
    out.push(0);
}

/// The text form: `{[1,5),[7,9)}`.
pub(super) fn multirange_output(
    ranges: &Array,
    ty: SqlType,
    style: &OutputStyle<'_>,
    out: &mut Builder,
) -> Result<()> {
    let of = SqlType::of(range_of(ty.oid).unwrap_or(oid::ANYRANGE));
    out.push(b'{');
    for (i, item) in ranges.items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if let Datum::Array(item) = item {
            range::range_output(item, of, style, out)?;
        }
    }
    out.push_byte(b'}')
}

/// Where the reader of the text form is.
enum MultirangeParseState {
    Before,
    In,
    Escaped,
    Quoted,
    QuotedEscaped,
    After,
}

/// Reads the text form, as PostgreSQL does: the range's text is found first, blanks are no reason to look at it, and
/// then read.
pub(super) fn multirange_input(
    ty: SqlType,
    text: &str,
    cx: Option<&dyn IoContext>,
) -> Result<Datum> {
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed multirange literal: \"{text}\""),
        )
        .detail(detail)
    };
    let of = SqlType::of(range_of(ty.oid).unwrap_or(oid::ANYRANGE));
    let bytes = text.as_bytes();
    let blanks = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|c| is_space(**c)).count()
    };
    let mut at = blanks(0);
    if bytes.get(at) != Some(&b'{') {
        return Err(malformed("Missing left brace."));
    }
    at += 1;
    let mut state = MultirangeParseState::Before;
    let mut begin = at;
    let mut seen = false;
    let mut ranges = Vec::new();
    loop {
        let Some(c) = bytes.get(at).copied() else {
            return Err(malformed(EXPECTED_MORE));
        };
        if is_space(c) {
            at += 1;
            continue;
        }
        state = match (state, c) {
            (MultirangeParseState::Before, b'[' | b'(') => {
                begin = at;
                MultirangeParseState::In
            }
            (MultirangeParseState::Before, b'}') if !seen => break,
            (MultirangeParseState::Before, _) => {
                let word = bytes.get(at..at + 5).unwrap_or_default();
                if !word.eq_ignore_ascii_case(b"empty") {
                    return Err(malformed("Expected range start."));
                }
                at += 4;
                seen = true;
                MultirangeParseState::After
            }
            (MultirangeParseState::In, b']' | b')') => {
                let range = text.get(begin..=at).unwrap_or_default();
                ranges.push(range::range_input(of, range, cx)?);
                seen = true;
                MultirangeParseState::After
            }
            (MultirangeParseState::In, b'"') => MultirangeParseState::Quoted,
            (MultirangeParseState::In, b'\\') => MultirangeParseState::Escaped,
            (MultirangeParseState::In | MultirangeParseState::Escaped, _) => {
                MultirangeParseState::In
            }
            (MultirangeParseState::Quoted, b'"') if bytes.get(at + 1) == Some(&b'"') => {
                at += 1;
                MultirangeParseState::Quoted
            }
            (MultirangeParseState::Quoted, b'"') => MultirangeParseState::In,
            (MultirangeParseState::Quoted, b'\\') => MultirangeParseState::QuotedEscaped,
            (MultirangeParseState::Quoted | MultirangeParseState::QuotedEscaped, _) => {
                MultirangeParseState::Quoted
            }
            (MultirangeParseState::After, b',') => MultirangeParseState::Before,
            (MultirangeParseState::After, b'}') => break,
            (MultirangeParseState::After, _) => {
                return Err(malformed("Expected comma or end of multirange."));
            }
        };
        at += 1;
    }
    if blanks(at + 1) != bytes.len() {
        return Err(malformed("Junk after closing right brace."));
    }
    make(ranges)
}

/// The binary form: how many ranges, then length and bytes of each.
pub(super) fn multirange_send(ranges: &Array, ty: SqlType, out: &mut Vec<u8>) -> Result<()> {
    let of = SqlType::of(range_of(ty.oid).unwrap_or(oid::ANYRANGE));
    out.extend_from_slice(&(ranges.items.len() as u32).to_be_bytes());
    for item in &ranges.items {
        let at = out.len();
        out.extend_from_slice(&0_i32.to_be_bytes());
        if let Datum::Array(item) = item {
            range::range_send(item, of, out)?;
        }
        let len = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    }
    Ok(())
}

/// Reads the binary form.
pub(super) fn multirange_receive(ty: SqlType, bytes: &[u8]) -> Result<Datum> {
    let short = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let of = SqlType::of(range_of(ty.oid).unwrap_or(oid::ANYRANGE));
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let mut ranges = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let (len, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let len = usize::try_from(u32::from_be_bytes(*len)).map_err(|_| short())?;
        let (value, tail) = tail.split_at_checked(len).ok_or_else(short)?;
        ranges.push(range::range_receive(of, value)?);
        rest = tail;
    }
    match rest.is_empty() {
        true => make(ranges),
        false => Err(SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "incorrect binary data format",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{key, stored};

    #[test]
    fn keys_and_stored_forms_are_those_of_the_values() {
        let ty = SqlType::of(oid::NUMMULTIRANGE);
        let texts = [
            "{}",
            "{(,)}",
            "{(,1)}",
            "{(,1),(1,)}",
            "{[1,2)}",
            "{[1,2),[3,4)}",
            "{[1,2),[3,5)}",
            "{[1,2]}",
            "{(1,2)}",
        ];
        let values: Vec<Datum> = texts
            .iter()
            .map(|t| multirange_input(ty, t, None).unwrap())
            .collect();
        let key = |d: &Datum, desc: bool| {
            let mut out = Vec::new();
            key::encode_key(oid::NUMMULTIRANGE, d, desc, false, &mut out);
            out
        };
        for (i, a) in values.iter().enumerate() {
            for b in &values {
                let order = compare(a, b);
                assert_eq!(key(a, false).cmp(&key(b, false)), order, "{}", texts[i]);
                assert_eq!(key(b, true).cmp(&key(a, true)), order, "{}", texts[i]);
            }
            let mut form = Vec::new();
            stored::encode(a, &mut form);
            assert_eq!(&stored::decode(oid::NUMMULTIRANGE, &form).unwrap(), a);
            for end in 0..form.len() {
                let cut = form.get(..end).unwrap();
                assert!(
                    stored::decode(oid::NUMMULTIRANGE, cut).is_err(),
                    "{}",
                    texts[i]
                );
            }
            let mut sent = Vec::new();
            if let Datum::Array(ranges) = a {
                multirange_send(ranges, ty, &mut sent).expect("short");
            }
            assert_eq!(&multirange_receive(ty, &sent).unwrap(), a);
        }
    }
}
