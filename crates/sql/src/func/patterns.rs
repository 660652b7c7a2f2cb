//! Regular expressions: PostgreSQL's advanced ones, translated to the library's syntax where they differ.
//!
//! Matching takes linear time, but for patterns with lookaround or back references, whose matching is bounded (`compiled`).
//! Compiled expressions are kept per thread, a few dozen of them.

use super::compiled::{Compiled, Found, Options};
use super::like::texts;
use super::numbers::bad_args;
use super::regex_choice::{Levels, Quantifier};
use super::regexp_search::Matches;
use crate::error::{Result, SqlError};
use crate::value::{Datum, oid};
use logstead_types::SqlState;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

fn bad_regex(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_REGULAR_EXPRESSION,
        format!("invalid regular expression: {text}"),
    )
}

/// Flags of the regexp functions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Flags {
    ignore_case: bool,
    global: bool,
    /// `.` and brackets stop at newlines
    newline_stops: bool,
    /// `^` and `$` match at lines
    newline_anchors: bool,
    extended: bool,
    literal: bool,
}

fn parse_flags(text: &str) -> Result<Flags> {
    let mut f = Flags::default();
    for c in text.chars() {
        match c {
            'g' => f.global = true,
            'i' => f.ignore_case = true,
            'c' => f.ignore_case = false,
            'n' | 'm' => (f.newline_stops, f.newline_anchors) = (true, true),
            'p' => (f.newline_stops, f.newline_anchors) = (true, false),
            'w' => (f.newline_stops, f.newline_anchors) = (false, true),
            's' => (f.newline_stops, f.newline_anchors) = (false, false),
            'x' => f.extended = true,
            't' => f.extended = false,
            'q' => f.literal = true,
            'e' | 'b' => {}
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{c}\""),
                ));
            }
        }
    }
    Ok(f)
}

/// Translates an advanced regular expression. Tells whether it takes the library that goes back, and what match is wanted.
fn translate(pattern: &str, flags: &mut Flags) -> Result<(String, bool, Option<bool>)> {
    let mut p = pattern;
    if let Some(rest) = p.strip_prefix("***=") {
        return Ok((regex::escape(rest), false, None));
    }
    p = p.strip_prefix("***:").unwrap_or(p);
    // Embedded options stand at the very start.
    if let Some(rest) = p.strip_prefix("(?")
        && let Some(end) = rest.find(')')
        && end > 0
        && rest[..end].bytes().all(|b| b.is_ascii_lowercase())
    {
        let g = flags.global;
        *flags = parse_flags(&rest[..end])?;
        flags.global = g;
        p = &rest[end + 1..];
    }
    if flags.literal {
        return Ok((regex::escape(p), false, None));
    }
    let c: Vec<char> = p.chars().collect();
    let mut out = String::with_capacity(p.len() + 8);
    let mut i = 0;
    let mut backtracks = false;
    // Open parentheses: whether each is lookaround, or within it. What stands there is no group.
    let mut open: Vec<bool> = Vec::new();
    let mut groups = 0_usize;
    let mut levels = Levels::new();
    // Open parentheses: whether each is a group with a number.
    let mut capturing: Vec<bool> = Vec::new();
    // Where the content of the group begins that has just been closed.
    let mut closed: Option<usize> = None;
    // A quantifier has just been read: there is nothing for another one.
    let mut quantified = false;
    while i < c.len() {
        if let Some((quantifier, len)) = quantifier_at(&c, i) {
            if quantified {
                return Err(bad_regex("quantifier operand invalid"));
            }
            if levels.quantifier(&quantifier)
                && let Some(start) = closed.filter(|_| out.ends_with(')'))
            {
                // The group as a whole decides: its own quantifiers prefer the other way.
                out.insert(out.len() - 1, ')');
                out.insert_str(start, "(?U:");
            }
            out.extend(c.iter().skip(i).take(len));
            i += len;
            quantified = true;
            closed = None;
            continue;
        }
        quantified = false;
        if c[i] != ')' {
            closed = None;
        }
        match c[i] {
            '|' => {
                levels.alternative();
                out.push('|');
                i += 1;
                continue;
            }
            '(' | ')' => {}
            _ => levels.plain_atom(),
        }
        match c[i] {
            '\\' => {
                i += 1;
                let Some(&e) = c.get(i) else {
                    return Err(bad_regex("invalid escape \\ sequence"));
                };
                match e {
                    'y' => out.push_str("\\b"),
                    'Y' => out.push_str("\\B"),
                    'm' => out.push_str("\\b{start}"),
                    'M' => out.push_str("\\b{end}"),
                    'Z' => out.push_str("\\z"),
                    'b' => out.push_str("\\x08"),
                    'B' => out.push_str("\\\\"),
                    'e' => out.push_str("\\x1b"),
                    '1'..='9' => {
                        let digits = c.iter().skip(i).take_while(|d| d.is_ascii_digit());
                        let digits: String = digits.collect();
                        let number = digits.parse::<usize>().unwrap_or(usize::MAX);
                        if digits.len() > 1 && number > groups {
                            return Err(SqlError::unsupported(
                                "an octal escape in a regular expression",
                            ));
                        }
                        if number > groups || open.last().is_some_and(|inside| *inside) {
                            return Err(bad_regex("invalid backreference number"));
                        }
                        out.push('\\');
                        out.push_str(&digits);
                        backtracks = true;
                        i += digits.len() - 1;
                    }
                    'A' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'n' | 't' | 'r' | 'f' | 'v' | 'a'
                    | 'x' | 'u' | 'U' => {
                        out.push('\\');
                        out.push(e);
                    }
                    _ if e.is_ascii_alphanumeric() => {
                        return Err(bad_regex("invalid escape \\ sequence"));
                    }
                    _ => out.push_str(&regex::escape(e.encode_utf8(&mut [0; 4]))),
                }
                i += 1;
            }
            '[' => i = bracket(&c, i, flags.newline_stops, &mut out)?,
            '(' if c.get(i + 1) == Some(&'?') => {
                let around = match (c.get(i + 2), c.get(i + 3)) {
                    (Some(':'), _) => "",
                    (Some('='), _) => "(?=",
                    (Some('!'), _) => "(?!",
                    (Some('<'), Some('=')) => "(?<=",
                    (Some('<'), Some('!')) => "(?<!",
                    _ => return Err(bad_regex("quantifier operand invalid")),
                };
                backtracks |= !around.is_empty();
                let inside = open.last().is_some_and(|inside| *inside) || !around.is_empty();
                open.push(inside);
                out.push_str(if around.is_empty() { "(?:" } else { around });
                levels.open(out.len());
                capturing.push(false);
                i += around.len().max(3);
            }
            '(' => {
                let inside = open.last().is_some_and(|inside| *inside);
                open.push(inside);
                if inside {
                    out.push_str("(?:");
                } else {
                    groups += 1;
                    out.push('(');
                }
                levels.open(out.len());
                capturing.push(!inside);
                i += 1;
            }
            ')' => {
                open.pop();
                let captures = capturing.pop().unwrap_or(false);
                closed = levels.close(captures);
                out.push(')');
                i += 1;
            }
            '{' if !c.get(i + 1).is_some_and(char::is_ascii_digit) => {
                out.push_str("\\{");
                i += 1;
            }
            '}' => {
                out.push_str("\\}");
                i += 1;
            }
            other => {
                out.push(other);
                i += 1;
            }
        }
    }
    Ok((out, backtracks, levels.shortest()))
}

/// The quantifier that begins at a place, and how many characters it takes.
fn quantifier_at(c: &[char], at: usize) -> Option<(Quantifier, usize)> {
    let (exactly, fixed, mut len) = match c.get(at)? {
        '*' | '+' | '?' => (false, false, 1),
        '{' => {
            let end = c.iter().skip(at).position(|c| *c == '}')?;
            let inside: String = c.iter().skip(at + 1).take(end - 1).collect();
            let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
            match inside.split_once(',') {
                None if number(&inside) => (true, false, end + 1),
                Some((from, "")) if number(from) => (false, false, end + 1),
                Some((from, to)) if number(from) && number(to) => (false, from == to, end + 1),
                _ => return None,
            }
        }
        _ => return None,
    };
    let lazy = c.get(at + len) == Some(&'?');
    len += usize::from(lazy);
    let quantifier = Quantifier {
        exactly,
        lazy: lazy && !exactly,
        fixed,
    };
    Some((quantifier, len))
}

/// Copies a bracket expression, escaping what the library would read as set operations.
fn bracket(c: &[char], start: usize, newline_stops: bool, out: &mut String) -> Result<usize> {
    let unbalanced = || bad_regex("brackets [] not balanced");
    let mut i = start + 1;
    out.push('[');
    let negated = c.get(i) == Some(&'^');
    if negated {
        out.push('^');
        if newline_stops {
            out.push_str("\\n");
        }
        i += 1;
    }
    if c.get(i) == Some(&']') {
        out.push_str("\\]");
        i += 1;
    }
    loop {
        match c.get(i) {
            None => return Err(unbalanced()),
            Some(']') => {
                out.push(']');
                return Ok(i + 1);
            }
            Some('[') if matches!(c.get(i + 1), Some(':')) => {
                let end = (i + 2..c.len())
                    .find(|j| c[*j] == ':' && c.get(j + 1) == Some(&']'))
                    .ok_or_else(unbalanced)?;
                let name: String = c[i + 2..end].iter().collect();
                match name.as_str() {
                    "alnum" | "alpha" | "blank" | "cntrl" | "digit" | "graph" | "lower"
                    | "print" | "punct" | "space" | "upper" | "xdigit" | "word" => {
                        out.push_str("[:");
                        out.push_str(&name);
                        out.push_str(":]");
                    }
                    _ => return Err(bad_regex("invalid character class")),
                }
                i = end + 2;
            }
            Some('[') if matches!(c.get(i + 1), Some('.' | '=')) => {
                return Err(SqlError::unsupported(
                    "collating element in a regular expression",
                ));
            }
            Some('\\') => {
                let Some(&e) = c.get(i + 1) else {
                    return Err(unbalanced());
                };
                out.push('\\');
                out.push(if e == 'b' { '\u{8}' } else { e });
                i += 2;
            }
            Some(&x @ ('[' | '&' | '~')) => {
                out.push('\\');
                out.push(x);
                i += 1;
            }
            Some(&x) => {
                out.push(x);
                i += 1;
            }
        }
    }
}

thread_local! {
    static COMPILED: RefCell<HashMap<(String, Flags), Rc<Compiled>>> = RefCell::new(HashMap::new());
}

pub(super) fn compile(pattern: &str, flags: Flags) -> Result<Rc<Compiled>> {
    let key = (pattern.to_owned(), flags);
    if let Some(r) = COMPILED.with(|c| c.borrow().get(&key).cloned()) {
        return Ok(r);
    }
    let mut f = flags;
    let (translated, backtracks, shortest) = translate(pattern, &mut f)?;
    let options = Options {
        ignore_case: f.ignore_case,
        newline_stops: f.newline_stops,
        newline_anchors: f.newline_anchors,
        extended: f.extended,
        backtracks,
        shortest,
    };
    let regex = Compiled::new(&translated, options).map_err(|text| {
        bad_regex(
            if text.contains("unclosed group")
                || text.contains("unopened group")
                || text.contains("parenthesis")
            {
                "parentheses () not balanced"
            } else if text.contains("unclosed character class") {
                "brackets [] not balanced"
            } else if text.contains("repetition operator missing") {
                "quantifier operand invalid"
            } else if text.contains("invalid character class range") {
                "invalid character range"
            } else if text.contains("repetition") {
                "invalid repetition count(s)"
            } else if text.contains("size limit") {
                "regular expression is too complex"
            } else {
                "invalid escape \\ sequence"
            },
        )
    })?;
    let regex = Rc::new(regex);
    COMPILED.with(|c| {
        let mut c = c.borrow_mut();
        if c.len() >= 64 {
            c.clear();
        }
        c.insert(key, regex.clone());
    });
    Ok(regex)
}

fn matches(a: &[Datum], ignore_case: bool, wanted: bool) -> Result<Datum> {
    let (t, p) = texts(a)?;
    let flags = Flags {
        ignore_case,
        ..Flags::default()
    };
    Ok(Datum::Bool(compile(p, flags)?.is_match(t)? == wanted))
}

/// `~`
pub(super) fn regex_eq(a: &[Datum]) -> Result<Datum> {
    matches(a, false, true)
}

/// `!~`
pub(super) fn regex_ne(a: &[Datum]) -> Result<Datum> {
    matches(a, false, false)
}

/// `~*`
pub(super) fn regex_ieq(a: &[Datum]) -> Result<Datum> {
    matches(a, true, true)
}

/// `!~*`
pub(super) fn regex_ine(a: &[Datum]) -> Result<Datum> {
    matches(a, true, false)
}

pub(super) fn text_at(a: &[Datum], i: usize) -> Result<&str> {
    a.get(i).ok_or_else(|| bad_args(a))?.as_str()
}

pub(super) fn int_at(a: &[Datum], i: usize, default: i32) -> Result<i32> {
    a.get(i).map_or(Ok(default), Datum::as_i32)
}

pub(super) fn flags_at(a: &[Datum], i: usize) -> Result<Flags> {
    a.get(i)
        .map_or(Ok(Flags::default()), |d| parse_flags(d.as_str()?))
}

pub(super) fn no_global(f: Flags, function: &str) -> Result<Flags> {
    if f.global {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{function}() does not support the \"global\" option"),
        ));
    }
    Ok(f)
}

/// 22023 for a number that a parameter does not take.
pub(super) fn bad_parameter(name: &str, v: i32) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": {v}"),
    )
}

pub(super) fn positive(v: i32, name: &str) -> Result<i32> {
    if v < 1 {
        return Err(bad_parameter(name, v));
    }
    Ok(v)
}

/// `substring(text from pattern)`: the first group, or the whole match.
pub(super) fn substring_regex(a: &[Datum]) -> Result<Datum> {
    let (t, p) = texts(a)?;
    let r = compile(p, Flags::default())?;
    let Some(c) = r.find_at(t, 0)? else {
        return Ok(Datum::Null);
    };
    let group = if r.captures_len() > 1 {
        c.get(1)
    } else {
        c.get(0)
    };
    Ok(group.map_or(Datum::Null, |m| Datum::text(m.as_str())))
}

fn append_replacement(with: &str, c: &Found<'_>, out: &mut String) {
    let mut chars = with.chars();
    while let Some(ch) = chars.next() {
        if ch != '\\' {
            out.push(ch);
            continue;
        }
        match chars.next() {
            Some(d @ '1'..='9') => {
                out.push_str(c.get(d as usize - '0' as usize).map_or("", |m| m.as_str()))
            }
            Some('&') => out.push_str(c.get(0).map_or("", |m| m.as_str())),
            Some('\\') => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
}

/// `regexp_replace` with 3 to 6 arguments.
pub(super) fn regexp_replace(a: &[Datum]) -> Result<Datum> {
    let (text, pattern, with) = (text_at(a, 0)?, text_at(a, 1)?, text_at(a, 2)?);
    let (mut start, mut nth, mut flags) = (1, None, Flags::default());
    match a.get(3) {
        Some(Datum::Text(f)) => {
            if f.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{}\"", &f[..1]),
                )
                .hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly."));
            }
            flags = parse_flags(f)?;
        }
        Some(_) => {
            start = positive(int_at(a, 3, 1)?, "start")?;
            if a.len() > 4 {
                let n = int_at(a, 4, 1)?;
                if n < 0 {
                    positive(n, "n")?;
                }
                nth = Some(n);
            }
            flags = flags_at(a, 5)?;
        }
        None => {}
    }
    // An explicit n decides alone; 0 means all.
    let wanted = nth.unwrap_or(i32::from(!flags.global));
    let r = compile(pattern, flags)?;
    let mut out = String::with_capacity(text.len() + with.len());
    let mut last = 0;
    for (seen, c) in Matches::new(&r, text, start).enumerate() {
        let c = c?;
        let Some(m) = c.get(0) else { continue };
        if wanted != 0 && seen as i32 + 1 != wanted {
            continue;
        }
        out.push_str(&text[last..m.start()]);
        append_replacement(with, &c, &mut out);
        last = m.end();
        if wanted != 0 {
            break;
        }
    }
    out.push_str(&text[last..]);
    Ok(Datum::text(out))
}

fn groups(r: &Compiled, c: &Found<'_>) -> Datum {
    let first = usize::from(r.captures_len() > 1);
    let last = if first == 0 { 1 } else { r.captures_len() };
    let items = (first..last)
        .map(|i| c.get(i).map_or(Datum::Null, |m| Datum::text(m.as_str())))
        .collect();
    Datum::array(oid::TEXT, items)
}

/// `regexp_match`
pub(super) fn regexp_match(a: &[Datum]) -> Result<Datum> {
    let flags = flags_at(a, 2)?;
    if flags.global {
        return Err(no_global(flags, "regexp_match").err().map_or_else(
            || bad_args(a),
            |e| e.hint("Use the regexp_matches function instead."),
        ));
    }
    let r = compile(text_at(a, 1)?, flags)?;
    let found = r.find_at(text_at(a, 0)?, 0)?;
    Ok(found.map_or(Datum::Null, |c| groups(&r, &c)))
}

/// `regexp_matches`
pub(super) fn regexp_matches(_: &dyn super::Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let flags = flags_at(a, 2)?;
    let r = compile(text_at(a, 1)?, flags)?;
    let limit = if flags.global { usize::MAX } else { 1 };
    Matches::new(&r, text_at(a, 0)?, 1)
        .take(limit)
        .map(|c| Ok(vec![groups(&r, &c?)]))
        .collect()
}

/// `regexp_like`
pub(super) fn regexp_like(a: &[Datum]) -> Result<Datum> {
    let flags = no_global(flags_at(a, 2)?, "regexp_like")?;
    let r = compile(text_at(a, 1)?, flags)?;
    r.is_match(text_at(a, 0)?).map(Datum::Bool)
}

/// `regexp_count`
pub(super) fn regexp_count(a: &[Datum]) -> Result<Datum> {
    let start = positive(int_at(a, 2, 1)?, "start")?;
    let flags = no_global(flags_at(a, 3)?, "regexp_count")?;
    let r = compile(text_at(a, 1)?, flags)?;
    let mut n = 0;
    for found in Matches::new(&r, text_at(a, 0)?, start) {
        found?;
        n += 1;
    }
    Ok(Datum::Int4(n))
}

/// `regexp_substr`
pub(super) fn regexp_substr(a: &[Datum]) -> Result<Datum> {
    let start = positive(int_at(a, 2, 1)?, "start")?;
    let nth = positive(int_at(a, 3, 1)?, "n")?;
    let flags = no_global(flags_at(a, 4)?, "regexp_substr")?;
    let group = int_at(a, 5, 0)?;
    if group < 0 {
        positive(group, "subexpr")?;
    }
    let text = text_at(a, 0)?;
    let r = compile(text_at(a, 1)?, flags)?;
    let found = nth_of(Matches::new(&r, text, start), nth)?;
    Ok(found
        .and_then(|c| c.get(group as usize).map(|m| Datum::text(m.as_str())))
        .unwrap_or(Datum::Null))
}

/// The match with a number, counted from 1.
pub(super) fn nth_of<'t>(matches: Matches<'_, 't>, nth: i32) -> Result<Option<Found<'t>>> {
    for (found, number) in matches.zip(1..) {
        let found = found?;
        if number == nth {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn split<'a>(a: &'a [Datum], function: &str) -> Result<Vec<&'a str>> {
    let flags = no_global(flags_at(a, 2)?, function)?;
    let text = text_at(a, 0)?;
    let r = compile(text_at(a, 1)?, flags)?;
    let mut parts = Vec::new();
    let mut last = 0;
    for m in r.find_all(text)? {
        // An empty match at either end, or right behind the last one, splits nothing.
        if m.is_empty() && (m.start() == 0 || m.start() >= text.len() || m.start() == last) {
            continue;
        }
        parts.push(&text[last..m.start()]);
        last = m.end();
    }
    parts.push(&text[last..]);
    Ok(parts)
}

/// `regexp_split_to_array`
pub(super) fn regexp_split_to_array(a: &[Datum]) -> Result<Datum> {
    let parts = split(a, "regexp_split_to_array")?;
    Ok(Datum::array(
        oid::TEXT,
        parts.into_iter().map(Datum::text).collect(),
    ))
}

/// `regexp_split_to_table`
pub(super) fn regexp_split_to_table(
    _: &dyn super::Context,
    a: &[Datum],
) -> Result<Vec<Vec<Datum>>> {
    Ok(split(a, "regexp_split_to_table")?
        .into_iter()
        .map(|p| vec![Datum::text(p)])
        .collect())
}
