//! Functions and operators of regular expressions; the expressions themselves are [`logstead_sql_types::regex`]'s.

use super::arithmetic::bad_args;
use super::regexp_search::RegexMatches;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::{Builder, ItemsBuilder};
use logstead_sql_types::regex::{Captures, Compiled, Flags, Flavor, Syntax, compile};
use logstead_sql_types::value::build::ROW_BYTES;
use logstead_sql_types::value::{Datum, oid, size_bytes};
use logstead_types::SqlState;

fn parse_flags(text: &str) -> Result<Flags> {
    let mut f = Flags::default();
    let s = &mut f.syntax;
    for c in text.chars() {
        match c {
            'g' => f.global = true,
            // PostgreSQL means extended expressions by `e`, but takes basic ones.
            'b' | 'e' => (s.flavor, s.literal) = (Flavor::Basic, false),
            'c' => s.ignore_case = false,
            'i' => s.ignore_case = true,
            'm' | 'n' => (s.newline_stops, s.newline_anchors) = (true, true),
            'p' => (s.newline_stops, s.newline_anchors) = (true, false),
            'q' => (s.flavor, s.literal) = (Flavor::Basic, true),
            's' => (s.newline_stops, s.newline_anchors) = (false, false),
            't' => s.expanded = false,
            'w' => (s.newline_stops, s.newline_anchors) = (false, true),
            'x' => s.expanded = true,
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

fn matches(a: &[Datum], ignore_case: bool, wanted: bool) -> Result<Datum> {
    let (t, p) = texts(a)?;
    let flags = Flags {
        syntax: Syntax {
            ignore_case,
            ..Syntax::default()
        },
        global: false,
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

fn append_replacement(with: &str, c: &Captures<'_>, out: &mut Builder) -> Result<()> {
    if !with.contains('\\') {
        return out.push_str(with);
    }
    let mut chars = with.chars();
    while let Some(ch) = chars.next() {
        if ch != '\\' {
            out.push_char(ch)?;
            continue;
        }
        match chars.next() {
            Some(d @ '1'..='9') => {
                out.push_str(c.get(d as usize - '0' as usize).map_or("", |m| m.as_str()))?
            }
            Some('&') => out.push_str(c.get(0).map_or("", |m| m.as_str()))?,
            Some('\\') => out.push_byte(b'\\')?,
            Some(other) => {
                out.push_byte(b'\\')?;
                out.push_char(other)?;
            }
            None => out.push_byte(b'\\')?,
        }
    }
    Ok(())
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
    let mut out = Builder::with_capacity(text.len())?;
    let mut last = 0;
    for (seen, c) in RegexMatches::new(&r, text, start).enumerate() {
        let c = c?;
        let Some(m) = c.get(0) else { continue };
        if wanted != 0 && seen as i32 + 1 != wanted {
            continue;
        }
        out.push_str(&text[last..m.start()])?;
        append_replacement(with, &c, &mut out)?;
        last = m.end();
        if wanted != 0 {
            break;
        }
    }
    out.push_str(&text[last..])?;
    out.finish_text()
}

fn groups(r: &Compiled, c: &Captures<'_>) -> Datum {
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
pub(super) fn regexp_matches(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let flags = flags_at(a, 2)?;
    let r = compile(text_at(a, 1)?, flags)?;
    let limit = if flags.global { usize::MAX } else { 1 };
    let mut rows = ItemsBuilder::new();
    for found in RegexMatches::new(&r, text_at(a, 0)?, 1).take(limit) {
        let row = vec![groups(&r, &found?)];
        rows.hold(ROW_BYTES + size_bytes(&row[0]))?;
        rows.push(row)?;
    }
    Ok(rows.finish())
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
    for found in RegexMatches::new(&r, text_at(a, 0)?, start) {
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
    let found = nth_of(RegexMatches::new(&r, text, start), nth)?;
    Ok(found
        .and_then(|c| c.get(group as usize).map(|m| Datum::text(m.as_str())))
        .unwrap_or(Datum::Null))
}

/// The match with a number, counted from 1.
pub(super) fn nth_of<'t>(matches: RegexMatches<'_, 't>, nth: i32) -> Result<Option<Captures<'t>>> {
    for (found, number) in matches.zip(1..) {
        let found = found?;
        if number == nth {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn split(a: &[Datum], function: &str, each: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let flags = no_global(flags_at(a, 2)?, function)?;
    let text = text_at(a, 0)?;
    let r = compile(text_at(a, 1)?, flags)?;
    let mut last = 0;
    r.find_each(text, &mut |m| {
        // An empty match at either end, or right behind the last one, splits nothing.
        if m.is_empty() && (m.start() == 0 || m.start() >= text.len() || m.start() == last) {
            return Ok(());
        }
        each(&text[last..m.start()])?;
        last = m.end();
        Ok(())
    })?;
    each(&text[last..])
}

/// `regexp_split_to_array`
pub(super) fn regexp_split_to_array(a: &[Datum]) -> Result<Datum> {
    let mut items = ItemsBuilder::new();
    split(a, "regexp_split_to_array", &mut |part| {
        items.push_text(part)
    })?;
    Ok(Datum::array(oid::TEXT, items.finish()))
}

/// `regexp_split_to_table`
pub(super) fn regexp_split_to_table(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let mut rows = ItemsBuilder::new();
    split(a, "regexp_split_to_table", &mut |part| {
        rows.hold(ROW_BYTES + part.len())?;
        rows.push(vec![Datum::text(part)])
    })?;
    Ok(rows.finish())
}

pub(crate) fn texts(a: &[Datum]) -> Result<(&str, &str)> {
    match a {
        [Datum::Text(x), Datum::Text(y)] => Ok((x, y)),
        _ => Err(bad_args(a)),
    }
}

/// `regexp_instr`
pub(crate) fn regexp_instr(a: &[Datum]) -> Result<Datum> {
    let start = positive(int_at(a, 2, 1)?, "start")?;
    let nth = positive(int_at(a, 3, 1)?, "n")?;
    let end = int_at(a, 4, 0)?;
    if !(0..=1).contains(&end) {
        return Err(bad_parameter("endoption", end));
    }
    let flags = no_global(flags_at(a, 5)?, "regexp_instr")?;
    let group = int_at(a, 6, 0)?;
    if group < 0 {
        positive(group, "subexpr")?;
    }
    let text = text_at(a, 0)?;
    let regex = compile(text_at(a, 1)?, flags)?;
    let found = nth_of(RegexMatches::new(&regex, text, start), nth)?;
    let Some(part) = found.as_ref().and_then(|c| c.get(group as usize)) else {
        return Ok(Datum::Int4(0));
    };
    let at = if end == 1 { part.end() } else { part.start() };
    let before = text.get(..at).ok_or_else(|| bad_args(a))?;
    Ok(Datum::Int4(before.chars().count() as i32 + 1))
}
