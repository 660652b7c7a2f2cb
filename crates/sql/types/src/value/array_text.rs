//! Text form of arrays: `{a,"b c",NULL}`, `{{1,2},{3,4}}`, with bounds where they do not start at 1.

use super::{OutputStyle, append, input, is_space};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory::Builder;
use crate::value::IoContext;
use crate::value::array::{DIMENSIONS_MAX, Dim, items_of, too_many_dimensions};
use crate::value::record;
use crate::value::types::{SqlType, oid};
use crate::value::{Array, Datum};
use logstead_types::SqlState;
use std::sync::Arc;

/// What the last thing was that was read of a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrayParseState {
    Nothing,
    LevelStart,
    Element,
    QuotedOpen,
    Quoted,
    ElementEnd,
    LevelEnd,
    LevelDelimiter,
}

/// An element as it is written: its text, or NULL.
type Word = Option<String>;

/// Does NULL without quotes stand for NULL (array_nulls)?
fn knows_null(cx: Option<&dyn IoContext>) -> bool {
    let set = cx.and_then(|cx| cx.setting("array_nulls"));
    set.as_deref() != Some("off")
}

pub(super) fn array_input(
    element: SqlType,
    text: &str,
    cx: Option<&dyn IoContext>,
) -> Result<Datum> {
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{text}\""),
        )
        .detail(detail)
    };
    let mut rest = text;
    let mut given = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
        let Some(tail) = rest.strip_prefix('[') else {
            break;
        };
        if given.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(given.len() + 1));
        }
        let (first, tail) = number(tail);
        let first = first.ok_or_else(|| {
            malformed("\"[\" must introduce explicitly-specified array dimensions.")
        })?;
        let (lower, upper, tail) = match tail.strip_prefix(':') {
            Some(tail) => {
                let (upper, tail) = number(tail);
                let upper = upper.ok_or_else(|| malformed("Missing array dimension value."))?;
                (first, upper, tail)
            }
            None => (1, first, tail),
        };
        rest = tail
            .strip_prefix(']')
            .ok_or_else(|| malformed("Missing \"]\" after array dimensions."))?;
        if upper < lower {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "upper bound cannot be less than lower bound",
            ));
        }
        let len = i32::try_from(i64::from(upper) - i64::from(lower) + 1).unwrap_or(i32::MAX);
        given.push(Dim { lower, len });
    }
    if !given.is_empty() {
        rest = rest
            .strip_prefix('=')
            .ok_or_else(|| malformed("Missing \"=\" after array dimensions."))?;
        rest = rest.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
    }
    if !rest.starts_with('{') {
        return Err(malformed(match given.is_empty() {
            true => "Array value must start with \"{\" or dimension information.",
            false => "Array contents must start with \"{\".",
        }));
    }
    let delimiter = delimiter_of(element.oid);
    let (mut dims, words) = read(rest.as_bytes(), delimiter, &malformed, cx)?;
    if !given.is_empty() {
        let lengths = |dims: &[Dim]| dims.iter().map(|dim| dim.len).collect::<Vec<_>>();
        if lengths(&given) != lengths(&dims) {
            return Err(malformed(
                "Specified array dimensions do not match array contents.",
            ));
        }
        dims = given;
    }
    if !dims.is_empty() && items_of(&dims)? != words.len() {
        return Err(malformed(
            "Multidimensional arrays must have sub-arrays with matching dimensions.",
        ));
    }
    let mut items = Vec::with_capacity(words.len());
    for word in words {
        items.push(match word {
            None => Datum::Null,
            Some(word) => input(element, &word, cx)?,
        });
    }
    Ok(Datum::Array(Arc::new(Array::shaped(
        element.oid,
        &dims,
        items,
    )?)))
}

/// A number with its sign, as C's atoi reads it, and what follows; none without a digit or sign.
fn number(text: &str) -> (Option<i32>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '+'));
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    if digits.is_empty() {
        return (None, rest);
    }
    let read = digits.parse::<i64>().unwrap_or(0);
    let read = read.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    (i32::try_from(read).ok(), rest)
}

/// What stands between elements.
fn delimiter_of(element: TypeId) -> u8 {
    match element {
        oid::BOX => b';',
        _ => b',',
    }
}

/// Reads braces and what is between them: the dimensions and the elements. The rules, with their errors, are those of
/// PostgreSQL 15.
fn read(
    b: &[u8],
    delimiter: u8,
    malformed: &dyn Fn(&str) -> SqlError,
    cx: Option<&dyn IoContext>,
) -> Result<(Vec<Dim>, Vec<Word>)> {
    let unexpected = |c: u8| malformed(&format!("Unexpected \"{}\" character.", c as char));
    let end = || malformed("Unexpected end of input.");
    let mut last = ArrayParseState::Nothing;
    // Of each level: its elements so far, and those of the one before it.
    let mut counts = [1usize; DIMENSIONS_MAX];
    let mut before = [0usize; DIMENSIONS_MAX];
    let (mut level, mut deepest) = (0usize, 0usize);
    let mut words = Vec::new();
    let mut word: Vec<u8> = Vec::new();
    // Blanks at the end belong to the syntax unless escaped; what is escaped or quoted is never NULL.
    let (mut keep, mut exact, mut started) = (0, false, false);
    let mut i = 0;
    loop {
        let c = *b.get(i).ok_or_else(end)?;
        i += 1;
        if last == ArrayParseState::QuotedOpen {
            match c {
                b'\\' => {
                    word.push(*b.get(i).ok_or_else(end)?);
                    i += 1;
                }
                b'"' => {
                    last = ArrayParseState::Quoted;
                    keep = word.len();
                }
                _ => word.push(c),
            }
            continue;
        }
        match c {
            b'\\' => {
                if !matches!(
                    last,
                    ArrayParseState::LevelStart
                        | ArrayParseState::Element
                        | ArrayParseState::ElementEnd
                ) {
                    return Err(unexpected(c));
                }
                last = ArrayParseState::Element;
                (exact, started) = (true, true);
                word.push(*b.get(i).ok_or_else(end)?);
                i += 1;
                keep = word.len();
            }
            b'"' => {
                if !matches!(
                    last,
                    ArrayParseState::LevelStart | ArrayParseState::ElementEnd
                ) {
                    return Err(malformed("Unexpected array element."));
                }
                last = ArrayParseState::QuotedOpen;
                (exact, started) = (true, true);
            }
            b'{' => {
                if !matches!(
                    last,
                    ArrayParseState::Nothing
                        | ArrayParseState::LevelStart
                        | ArrayParseState::LevelDelimiter
                ) {
                    return Err(unexpected(c));
                }
                last = ArrayParseState::LevelStart;
                if level >= DIMENSIONS_MAX {
                    return Err(too_many_dimensions(level + 1));
                }
                level += 1;
                deepest = deepest.max(level);
            }
            _ if c == b'}' || c == delimiter => {
                let nothing = c == b'}' && level == 1 && last == ArrayParseState::LevelStart;
                if !nothing
                    && !matches!(
                        last,
                        ArrayParseState::Element
                            | ArrayParseState::Quoted
                            | ArrayParseState::LevelEnd
                    )
                {
                    return Err(unexpected(c));
                }
                if started {
                    word.truncate(keep);
                    let text = std::mem::take(&mut word);
                    let null = !exact && text.eq_ignore_ascii_case(b"null") && knows_null(cx);
                    let text = String::from_utf8(text)
                        .map_err(|_| malformed("Unexpected array element."))?;
                    words.push((!null).then_some(text));
                    (keep, exact, started) = (0, false, false);
                }
                if c == delimiter {
                    last = match last {
                        ArrayParseState::LevelEnd => ArrayParseState::LevelDelimiter,
                        _ => ArrayParseState::ElementEnd,
                    };
                    counts[level - 1] += 1;
                    continue;
                }
                last = ArrayParseState::LevelEnd;
                level -= 1;
                if before[level] != 0 && counts[level] != before[level] {
                    return Err(malformed(
                        "Multidimensional arrays must have sub-arrays with matching dimensions.",
                    ));
                }
                before[level] = counts[level];
                counts[level] = 1;
                if level == 0 {
                    break;
                }
            }
            _ if is_space(c) => {
                if last == ArrayParseState::Element {
                    word.push(c);
                }
            }
            _ => {
                if !matches!(
                    last,
                    ArrayParseState::LevelStart
                        | ArrayParseState::Element
                        | ArrayParseState::ElementEnd
                ) {
                    return Err(malformed("Unexpected array element."));
                }
                last = ArrayParseState::Element;
                started = true;
                word.push(c);
                keep = word.len();
            }
        }
    }
    if !b[i..].iter().all(|c| is_space(*c)) {
        return Err(malformed("Junk after closing right brace."));
    }
    if words.is_empty() {
        return Ok((Vec::new(), words));
    }
    let dims = before[..deepest].iter().map(|count| Dim {
        lower: 1,
        len: i32::try_from(*count).unwrap_or(i32::MAX),
    });
    Ok((dims.collect(), words))
}

pub(super) fn array_output(
    a: &Array,
    ty: SqlType,
    style: &OutputStyle<'_>,
    out: &mut Builder,
) -> Result<()> {
    let element = record::element_of(a, ty);
    if matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR) {
        for (i, item) in a.items.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            append(item, element, style, out)?;
        }
        return Ok(());
    }
    let dims = a.dims();
    if dims.iter().any(|dim| dim.lower != 1) {
        for dim in &dims {
            out.extend_from_slice(format!("[{}:{}]", dim.lower, dim.upper()).as_bytes());
        }
        out.push(b'=');
    }
    if dims.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    // How many elements there are in a part of each dimension, from the outermost.
    let mut parts: Vec<usize> = Vec::with_capacity(dims.len());
    let mut size = 1;
    for dim in dims.iter().rev() {
        size *= usize::try_from(dim.len).unwrap_or(1).max(1);
        parts.push(size);
    }
    let mut word = Builder::default();
    for (i, item) in a.items.iter().enumerate() {
        if i > 0 {
            out.push(delimiter_of(a.element));
        }
        let opened = parts.iter().filter(|size| i % **size == 0).count();
        out.push_many(b'{', opened)?;
        write_item(item, element, style, &mut word, out)?;
        let closed = parts.iter().filter(|size| (i + 1) % **size == 0).count();
        out.push_many(b'}', closed)?;
    }
    Ok(())
}

fn write_item(
    item: &Datum,
    element: SqlType,
    style: &OutputStyle<'_>,
    word: &mut Builder,
    out: &mut Builder,
) -> Result<()> {
    if item.is_null() {
        return out.push_bytes(b"NULL");
    }
    let delimiter = delimiter_of(element.oid);
    word.clear();
    append(item, element, style, word)?;
    let quote = word.is_empty()
        || word.eq_ignore_ascii_case(b"null")
        || word
            .iter()
            .any(|&c| matches!(c, b'"' | b'\\' | b'{' | b'}') || c == delimiter || is_space(c));
    if !quote {
        return out.push_bytes(word);
    }
    record::quoted(word, false, out)
}
