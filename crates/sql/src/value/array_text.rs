//! Text form of arrays: `{a,"b c",NULL}`, with bounds where they do not start at 1.

use super::{OutputStyle, input, is_space, output, trim};
use crate::error::{Result, SqlError};
use crate::func::Context;
use crate::value::types::{Oid, SqlType, oid};
use crate::value::{Array, Datum};
use logstead_types::SqlState;
use std::sync::Arc;

pub(super) fn array_input(element: SqlType, text: &str, cx: Option<&dyn Context>) -> Result<Datum> {
    let malformed = |detail: &str| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{text}\""),
        )
        .detail(detail)
    };
    let mut t = trim(text);
    let mut lower = 1i32;
    let mut length = None;
    if t.starts_with('[') {
        let (bounds, rest) = t
            .split_once('=')
            .ok_or_else(|| malformed("Missing \"=\" after array dimensions."))?;
        let inner = bounds
            .trim()
            .strip_prefix('[')
            .and_then(|b| b.strip_suffix(']'))
            .unwrap_or("");
        let (lo, hi) = inner
            .split_once(':')
            .ok_or_else(|| malformed("Missing array dimension value."))?;
        let (lo, hi): (i32, i32) = match (lo.trim().parse(), hi.trim().parse()) {
            (Ok(l), Ok(h)) => (l, h),
            _ => return Err(malformed("Missing array dimension value.")),
        };
        if hi < lo {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "upper bound cannot be less than lower bound",
            ));
        }
        lower = lo;
        length = Some(i64::from(hi) - i64::from(lo) + 1);
        t = rest.trim();
    }
    let Some(body) = t.strip_prefix('{') else {
        return Err(malformed(
            "Array value must start with \"{\" or dimension information.",
        ));
    };
    let b = body.as_bytes();
    let mut items = Vec::new();
    let mut i = 0;
    let skip = |mut i: usize| {
        while i < b.len() && is_space(b[i]) {
            i += 1;
        }
        i
    };
    let unexpected = || malformed("Unexpected end of input.");
    i = skip(i);
    if b.get(i) == Some(&b'}') {
        i += 1;
    } else {
        loop {
            i = skip(i);
            let mut word: Vec<u8> = Vec::new();
            let mut quoted = false;
            match b.get(i) {
                None => return Err(unexpected()),
                Some(b'{') => return Err(SqlError::unsupported("multidimensional array")),
                Some(b'"') => {
                    quoted = true;
                    i += 1;
                    loop {
                        match b.get(i) {
                            None => return Err(unexpected()),
                            Some(b'"') => break,
                            Some(b'\\') => {
                                i += 1;
                                word.push(*b.get(i).ok_or_else(unexpected)?);
                            }
                            Some(&c) => word.push(c),
                        }
                        i += 1;
                    }
                    i += 1;
                }
                Some(_) => {
                    // Trailing blanks belong to the syntax unless escaped.
                    let mut keep = 0;
                    while let Some(&c) = b.get(i) {
                        match c {
                            b',' | b'}' => break,
                            b'"' | b'{' => {
                                return Err(malformed(&format!(
                                    "Unexpected \"{}\" character.",
                                    c as char
                                )));
                            }
                            b'\\' => {
                                i += 1;
                                word.push(*b.get(i).ok_or_else(unexpected)?);
                                quoted = true;
                                keep = word.len();
                            }
                            _ => {
                                word.push(c);
                                if !is_space(c) {
                                    keep = word.len();
                                }
                            }
                        }
                        i += 1;
                    }
                    word.truncate(keep);
                    if word.is_empty() && !quoted {
                        let c = b.get(i).map_or("}".into(), |c| (*c as char).to_string());
                        return Err(malformed(&format!("Unexpected \"{c}\" character.")));
                    }
                }
            }
            if !quoted && word.eq_ignore_ascii_case(b"null") {
                items.push(Datum::Null);
            } else {
                let s =
                    String::from_utf8(word).map_err(|_| malformed("Unexpected array element."))?;
                items.push(input(element, &s, cx)?);
            }
            i = skip(i);
            match b.get(i) {
                Some(b',') => i += 1,
                Some(b'}') => {
                    i += 1;
                    break;
                }
                None => return Err(unexpected()),
                Some(_) => return Err(malformed("Unexpected array element.")),
            }
        }
    }
    if skip(i) != b.len() {
        return Err(malformed("Junk after closing right brace."));
    }
    if length.is_some_and(|length| length != items.len() as i64) {
        return Err(malformed(
            "Specified array dimensions do not match array contents.",
        ));
    }
    Ok(Datum::Array(Arc::new(Array {
        element: element.oid,
        lower,
        items,
    })))
}

pub(super) fn array_output(a: &Array, ty: Oid, style: &OutputStyle<'_>, out: &mut Vec<u8>) {
    let element = SqlType::of(a.element);
    if matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR) {
        for (i, item) in a.items.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            output(item, element, style, out);
        }
        return;
    }
    if a.lower != 1 && !a.items.is_empty() {
        let upper = i64::from(a.lower) + a.items.len() as i64 - 1;
        out.extend_from_slice(format!("[{}:{upper}]=", a.lower).as_bytes());
    }
    out.push(b'{');
    let mut word = Vec::new();
    for (i, item) in a.items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if item.is_null() {
            out.extend_from_slice(b"NULL");
            continue;
        }
        word.clear();
        output(item, element, style, &mut word);
        let quote = word.is_empty()
            || word.eq_ignore_ascii_case(b"null")
            || word
                .iter()
                .any(|&c| matches!(c, b'"' | b'\\' | b'{' | b'}' | b',') || is_space(c));
        if !quote {
            out.extend_from_slice(&word);
            continue;
        }
        out.push(b'"');
        for &c in &word {
            if matches!(c, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(c);
        }
        out.push(b'"');
    }
    out.push(b'}');
}
