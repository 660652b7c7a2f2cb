//! Text by its code points: escapes, normal forms, identifiers taken apart.

use super::arithmetic::bad_args;
use super::strings::{invalid, s, text};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::escapes::unescaped;
use logstead_sql_types::value::{Datum, oid};
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
