//! Text by its code points: escapes, normal forms, identifiers taken apart.

use super::numbers::bad_args;
use super::strings::{invalid, s, text};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::value::build::STRIDE_BYTES;
use crate::value::{Datum, oid};
use logstead_types::SqlState;
use unicode_normalization::UnicodeNormalization;

/// `normalize`
pub(super) fn normalize(a: &[Datum]) -> Result<Datum> {
    normal_form(s(a, 0)?, a.get(1)).and_then(text)
}

/// `is_normalized`
pub(super) fn is_normalized(a: &[Datum]) -> Result<Datum> {
    let t = s(a, 0)?;
    Ok(Datum::Bool(normal_form(t, a.get(1))? == t))
}

fn normal_form(t: &str, form: Option<&Datum>) -> Result<String> {
    let form = form.map_or(Ok("NFC"), |form| form.as_str())?;
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => t.nfc().collect(),
        "NFD" => t.nfd().collect(),
        "NFKC" => t.nfkc().collect(),
        "NFKD" => t.nfkd().collect(),
        _ => return Err(invalid(format!("invalid normalization form: {form}"))),
    })
}

/// The code that `digits` hexadecimal digits give behind `from`.
fn code_at(t: &[char], from: usize, digits: usize) -> Option<u32> {
    let part = t.get(from..from + digits)?;
    part.iter().try_fold(0u32, |code, c| {
        code.checked_mul(16)?.checked_add(c.to_digit(16)?)
    })
}

/// `unistr`: text with the code points that its escapes name
pub(super) fn unistr(a: &[Datum]) -> Result<Datum> {
    let forms = [
        (1, 4, None),
        (2, 4, Some('u')),
        (2, 6, Some('+')),
        (2, 8, Some('U')),
    ];
    let hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.";
    unescaped(s(a, 0)?, '\\', &forms, hint).and_then(text)
}

/// A literal or name behind `U&`, with its escape character.
pub(crate) fn unescape_unicode(written: &str, escape: char) -> Result<String> {
    let forms = [(1, 4, None), (2, 6, Some('+'))];
    unescaped(
        written,
        escape,
        &forms,
        "Unicode escapes must be \\XXXX or \\+XXXXXX.",
    )
}

/// Where digits begin behind the escape character, how many there are, and what stands in front of them.
type Form = (usize, usize, Option<char>);

fn unescaped(written: &str, escape: char, forms: &[Form], hint: &str) -> Result<String> {
    let bad_pair = || SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let t: Vec<char> = written.chars().collect();
    let mut out = String::with_capacity(t.len());
    let mut first: Option<u32> = None;
    let (mut at, mut due) = (0, STRIDE_BYTES);
    while let Some(c) = t.get(at) {
        if out.len() >= due {
            due = out.len() + STRIDE_BYTES;
            check_for_interrupts()?;
        }
        if *c != escape || t.get(at + 1) == Some(&escape) {
            if first.is_some() {
                return Err(bad_pair());
            }
            out.push(*c);
            at += if *c == escape { 2 } else { 1 };
            continue;
        }
        let found = forms.iter().find_map(|(offset, digits, mark)| {
            if mark.is_some() && t.get(at + 1) != mark.as_ref() {
                return None;
            }
            let code = code_at(&t, at + offset, *digits)?;
            Some((code, offset + digits))
        });
        let Some((code, len)) = found else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape").hint(hint));
        };
        if code == 0 || code > 0x10_ffff {
            return Err(invalid(format!("invalid Unicode code point: {code:04X}")));
        }
        at += len;
        let code = match (first.take(), code) {
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(bad_pair()),
            (None, 0xd800..=0xdbff) => {
                first = Some(code);
                continue;
            }
            (None, code) => code,
        };
        out.push(char::from_u32(code).ok_or_else(bad_pair)?);
    }
    if first.is_some() {
        return Err(bad_pair());
    }
    Ok(out)
}

/// `parse_ident`: the parts of a name with dots, as names are read
pub(super) fn parse_ident(a: &[Datum]) -> Result<Datum> {
    let whole = s(a, 0)?;
    let strict = match a.get(1) {
        None => true,
        Some(Datum::Bool(strict)) => *strict,
        Some(_) => return Err(bad_args(a)),
    };
    let bad = |detail: Option<&str>| {
        let error = invalid(format!("string is not a valid identifier: \"{whole}\""));
        match detail {
            Some(detail) => error.detail(detail),
            None => error,
        }
    };
    let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    let starts = |c: char| c == '_' || c.is_ascii_alphabetic() || !c.is_ascii();
    let goes_on = |c: char| starts(c) || c.is_ascii_digit() || c == '$';
    let mut rest = whole.trim_start_matches(space);
    let mut parts = Vec::new();
    let mut after_dot = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut left = quoted;
            rest = loop {
                let Some((part, behind)) = left.split_once('"') else {
                    return Err(bad(Some("String has unclosed double quotes.")));
                };
                name.push_str(part);
                match behind.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        left = more;
                    }
                    None => break behind,
                }
            };
            if name.is_empty() {
                return Err(bad(Some("Quoted identifier must not be empty.")));
            }
            parts.push(Datum::text(name));
        } else if rest.starts_with(starts) {
            let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            parts.push(Datum::text(name.to_ascii_lowercase()));
            rest = behind;
        } else {
            return Err(bad(if rest.starts_with('.') {
                Some("No valid identifier before \".\".")
            } else if after_dot {
                Some("No valid identifier after \".\".")
            } else {
                None
            }));
        }
        rest = rest.trim_start_matches(space);
        if let Some(behind) = rest.strip_prefix('.') {
            after_dot = true;
            rest = behind.trim_start_matches(space);
        } else if rest.is_empty() || !strict {
            return Ok(Datum::array(oid::TEXT, parts));
        } else {
            return Err(bad(None));
        }
    }
}
