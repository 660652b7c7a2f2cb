//! String and bytea functions. Positions and lengths count characters, from 1.

use super::arithmetic::{bad_args, out_of_range};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::{CancelChecker, check_for_interrupts};
use logstead_sql_types::memory::{Builder, STRIDE_BYTES, VALUE_BYTES_MAX};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::case::case;
use logstead_sql_types::value::text_io::{self, OutputStyle};
use logstead_sql_types::value::{Datum, SqlType, compare::trim_blanks, oid};
use logstead_types::SqlState;
use std::collections::{HashMap, HashSet};

/// Parts of a text between two looks for interrupts.
const INTERRUPT_PARTS: usize = 4096;

/// 54000, as PostgreSQL words it where it knows the length before.
pub(super) fn too_long() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "requested length too large",
    )
}

pub(super) fn invalid(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

pub(super) fn s(a: &[Datum], i: usize) -> Result<&str> {
    a.get(i).ok_or_else(|| bad_args(a))?.as_str()
}

fn n(a: &[Datum], i: usize) -> Result<i32> {
    a.get(i).ok_or_else(|| bad_args(a))?.as_i32()
}

pub(super) fn text(v: impl Into<std::sync::Arc<str>>) -> Result<Datum> {
    Ok(Datum::text(v))
}

pub(super) fn int(v: usize) -> Result<Datum> {
    i32::try_from(v)
        .map(Datum::Int4)
        .map_err(|_| out_of_range("integer"))
}

/// Type that a value prints as when only the value is known.
pub(super) fn type_of(d: &Datum) -> SqlType {
    SqlType::of(match d {
        Datum::Null => oid::UNKNOWN,
        Datum::Bool(_) => oid::BOOL,
        Datum::Int2(_) => oid::INT2,
        Datum::Int4(_) => oid::INT4,
        Datum::Int8(_) => oid::INT8,
        Datum::Float4(_) => oid::FLOAT4,
        Datum::Float8(_) => oid::FLOAT8,
        Datum::Oid(_) => oid::OID,
        Datum::Char(_) => oid::CHAR,
        Datum::Text(_) => oid::TEXT,
        Datum::Numeric(_) => oid::NUMERIC,
        Datum::Bytea(_) => oid::BYTEA,
        Datum::TsVector(_) => oid::TSVECTOR,
        Datum::TsQuery(_) => oid::TSQUERY,
        Datum::Date(_) => oid::DATE,
        Datum::Time(_) => oid::TIME,
        Datum::Timestamp(_) => oid::TIMESTAMP,
        Datum::TimestampTz(_) => oid::TIMESTAMPTZ,
        Datum::Uuid(_) => oid::UUID,
        Datum::Interval(_) => oid::INTERVAL,
        Datum::Jsonb(_) => oid::JSONB,
        Datum::Enum(v) => v.ty,
        Datum::Inet(v) if v.cidr => oid::CIDR,
        Datum::Inet(_) => oid::INET,
        Datum::Mac(_) => oid::MACADDR,
        Datum::Mac8(_) => oid::MACADDR8,
        Datum::TimeTz(_) => oid::TIMETZ,
        Datum::Money(_) => oid::MONEY,
        Datum::Bits(_) => oid::BIT,
        Datum::Geometry(v) => v.type_of(),
        Datum::Lsn(_) => oid::PG_LSN,
        // Only vectors count from 0 by themselves.
        Datum::Array(a) if a.lower == 0 && a.element == oid::INT2 => oid::INT2VECTOR,
        Datum::Array(a) if a.lower == 0 && a.element == oid::OID => oid::OIDVECTOR,
        Datum::Array(a) => {
            logstead_sql_types::value::info::array_of(a.element).unwrap_or(oid::ANYARRAY)
        }
    })
}

/// Text of any value, as its output function gives it in this session.
pub(super) fn show(cx: &dyn IoContext, d: &Datum, out: &mut Builder) -> Result<()> {
    text_io::append(d, type_of(d), &OutputStyle::of(cx), out)
}

/// As the output function of the type writes it: a regclass is a name. Of which nothing is known, by what the value
/// itself is.
pub(super) fn show_as(
    cx: &dyn IoContext,
    ty: Option<&SqlType>,
    d: &Datum,
    out: &mut Builder,
) -> Result<()> {
    match (d, ty) {
        (Datum::Text(t), ty) if ty.is_none_or(|ty| ty.oid != oid::XML) => out.push_str(t),
        (d, Some(ty)) if !d.is_null() && ty.oid != oid::UNKNOWN => {
            text_io::append(d, *ty, &OutputStyle::of(cx), out)
        }
        _ => show(cx, d, out),
    }
}

/// [`show_as`], as a string.
pub(super) fn shown_as(cx: &dyn IoContext, ty: Option<&SqlType>, d: &Datum) -> Result<String> {
    let mut out = Builder::default();
    show_as(cx, ty, d, &mut out)?;
    out.finish_string()
}

/// `length` of text
pub(super) fn length(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Bytea(b)] => int(b.len()),
        _ => int(count_chars(s(a, 0)?)?),
    }
}

/// `length` of char(n): without its padding
pub(super) fn length_blank(a: &[Datum]) -> Result<Datum> {
    int(trim_blanks(s(a, 0)?).chars().count())
}

/// `octet_length`
pub(super) fn octet_length(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Bytea(b)] => int(b.len()),
        _ => int(s(a, 0)?.len()),
    }
}

/// `bit_length`
pub(super) fn bit_length(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Bytea(b)] => int(b.len() * 8),
        _ => int(s(a, 0)?.len() * 8),
    }
}

fn map_case(t: &str, upper: bool) -> Result<Builder> {
    let mut out = Builder::with_capacity(t.len())?;
    for part in parts(t) {
        if !part.is_ascii() {
            push_chars(part.chars().map(|c| case(c, upper)), &mut out)?;
            continue;
        }
        let from = out.len();
        out.push_str(part)?;
        if let Some(added) = out.get_mut(from..) {
            match upper {
                true => added.make_ascii_uppercase(),
                false => added.make_ascii_lowercase(),
            }
        }
    }
    Ok(out)
}

/// A text in parts of some ten thousand bytes, between which others may have their turn.
pub(super) fn parts(t: &str) -> impl Iterator<Item = &str> {
    let mut rest = t;
    std::iter::from_fn(move || {
        let (part, behind) = rest.split_at(rest.floor_char_boundary(STRIDE_BYTES));
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

/// Appends characters.
pub(super) fn push_chars(chars: impl Iterator<Item = char>, out: &mut Builder) -> Result<()> {
    for c in chars {
        out.push_char(c)?;
    }
    Ok(())
}

/// How many characters a text has.
pub(super) fn count_chars(t: &str) -> Result<usize> {
    let mut count = 0;
    for part in parts(t) {
        count += part.chars().count();
        if part.len() < t.len() {
            check_for_interrupts()?;
        }
    }
    Ok(count)
}

/// Where a text first has another one.
pub(super) fn find(t: &str, what: &str) -> Result<Option<usize>> {
    let finder = memchr::memmem::Finder::new(what.as_bytes());
    let bytes = t.as_bytes();
    let mut from = 0;
    loop {
        // What lies across the end of a part is found in it.
        let end = (from + STRIDE_BYTES * 4 + what.len()).min(bytes.len());
        if let Some(at) = finder.find(bytes.get(from..end).unwrap_or_default()) {
            return Ok(Some(from + at));
        }
        if end == bytes.len() {
            return Ok(None);
        }
        check_for_interrupts()?;
        from = (end + 1).saturating_sub(what.len());
    }
}

/// A text divided by another one, from the front.
pub(super) struct SplitParts<'t> {
    rest: Option<&'t str>,
    by: &'t str,
}

impl<'t> SplitParts<'t> {
    pub(super) fn new(t: &'t str, by: &'t str) -> SplitParts<'t> {
        SplitParts { rest: Some(t), by }
    }

    /// The next part; none behind the last one.
    pub(super) fn next_part(&mut self) -> Result<Option<&'t str>> {
        let Some(rest) = self.rest.take() else {
            return Ok(None);
        };
        let Some(at) = find(rest, self.by)? else {
            return Ok(Some(rest));
        };
        self.rest = rest.get(at + self.by.len()..);
        Ok(rest.get(..at))
    }
}

/// `lower`
pub(super) fn lower(a: &[Datum]) -> Result<Datum> {
    map_case(s(a, 0)?, false)?.finish_text()
}

/// `upper`
pub(super) fn upper(a: &[Datum]) -> Result<Datum> {
    map_case(s(a, 0)?, true)?.finish_text()
}

/// `initcap`
pub(super) fn initcap(a: &[Datum]) -> Result<Datum> {
    let mut inside = false;
    let t = s(a, 0)?;
    let mut out = Builder::with_capacity(t.len())?;
    let changed = t.chars().map(|c| {
        let r = case(c, !inside);
        inside = c.is_alphanumeric();
        r
    });
    push_chars(changed, &mut out)?;
    out.finish_text()
}

/// Characters `from..from+len` (from 1); `None` for `len` is to the end.
fn slice(t: &str, from: i64, len: Option<i64>) -> Result<&str> {
    let end = match len {
        Some(l) if l < 0 => {
            return Err(SqlError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(l) => Some(from.saturating_add(l)),
        None => None,
    };
    let first = from.max(1) - 1;
    let at = |i: i64| -> usize {
        if t.is_ascii() {
            (i.max(0) as usize).min(t.len())
        } else {
            t.char_indices()
                .nth(i.max(0) as usize)
                .map_or(t.len(), |(b, _)| b)
        }
    };
    let lo = at(first);
    let hi = end.map_or(t.len(), |e| at(e - 1)).max(lo);
    Ok(&t[lo..hi])
}

/// `substr`, `substring` of text and bytea
pub(super) fn substr(a: &[Datum]) -> Result<Datum> {
    let from = i64::from(n(a, 1)?);
    let len = if a.len() > 2 {
        Some(i64::from(n(a, 2)?))
    } else {
        None
    };
    if let Some(Datum::Bytea(b)) = a.first() {
        if len.is_some_and(|l| l < 0) {
            return Err(SqlError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        let clamp = |i: i64| i.clamp(0, b.len() as i64) as usize;
        let lo = clamp(from - 1);
        let hi = len.map_or(b.len(), |l| clamp(from - 1 + l)).max(lo);
        return Ok(Datum::Bytea(b[lo..hi].into()));
    }
    text(slice(s(a, 0)?, from, len)?)
}

/// `left`
pub(super) fn left(a: &[Datum]) -> Result<Datum> {
    let (t, k) = (s(a, 0)?, i64::from(n(a, 1)?));
    let keep = if k < 0 {
        (count_chars(t)? as i64 + k).max(0)
    } else {
        k
    };
    text(slice(t, 1, Some(keep))?)
}

/// `right`
pub(super) fn right(a: &[Datum]) -> Result<Datum> {
    let (t, k) = (s(a, 0)?, i64::from(n(a, 1)?));
    let total = count_chars(t)? as i64;
    let skip = if k < 0 { -k } else { (total - k).max(0) };
    text(slice(t, skip + 1, None)?)
}

fn pad(a: &[Datum], at_left: bool) -> Result<Datum> {
    let t = s(a, 0)?;
    let width = n(a, 1)?.max(0) as usize;
    let fill = if a.len() > 2 { s(a, 2)? } else { " " };
    let have = count_chars(t)?;
    if have >= width {
        return text(slice(t, 1, Some(width as i64))?);
    }
    if fill.is_empty() {
        return text(t);
    }
    // PostgreSQL reckons with the longest characters.
    if width.saturating_mul(4) > VALUE_BYTES_MAX {
        return Err(too_long());
    }
    let mut out = Builder::default();
    if !at_left {
        out.push_str(t)?;
    }
    if fill.len() == 1 {
        out.push_many(fill.as_bytes()[0], width - have)?;
    } else {
        push_chars(fill.chars().cycle().take(width - have), &mut out)?;
    }
    if at_left {
        out.push_str(t)?;
    }
    out.finish_text()
}

/// `lpad`
pub(super) fn lpad(a: &[Datum]) -> Result<Datum> {
    pad(a, true)
}

/// `rpad`
pub(super) fn rpad(a: &[Datum]) -> Result<Datum> {
    pad(a, false)
}

fn trim_ends(a: &[Datum], at_left: bool, at_right: bool) -> Result<Datum> {
    if let [Datum::Bytea(b), Datum::Bytea(set)] = a {
        let mut given = [false; 256];
        for part in set.chunks(STRIDE_BYTES) {
            for byte in part {
                given[usize::from(*byte)] = true;
            }
            check_for_interrupts()?;
        }
        let goes = |byte: &u8| given[usize::from(*byte)];
        let mut v: &[u8] = b;
        while at_left && v.first().is_some_and(goes) {
            v = &v[1..];
        }
        while at_right && v.last().is_some_and(goes) {
            v = &v[..v.len() - 1];
        }
        return Ok(Datum::Bytea(v.into()));
    }
    let (t, set) = (s(a, 0)?, if a.len() > 1 { s(a, 1)? } else { " " });
    if set.len() <= SET_BYTES_SHORT {
        let set: Vec<char> = set.chars().collect();
        return text(trimmed(t, at_left, at_right, |c| Ok(set.contains(&c)))?);
    }
    let mut pace = CancelChecker::default();
    let mut given = HashSet::new();
    for c in set.chars() {
        pace.spent(HASH_STEPS)?;
        given.insert(c);
    }
    text(trimmed(t, at_left, at_right, |c| {
        pace.spent(HASH_STEPS)?;
        Ok(given.contains(&c))
    })?)
}

/// Characters of a set that is looked through rather than hashed.
const SET_BYTES_SHORT: usize = 32;

/// A text without the characters at its ends that go.
fn trimmed(
    mut t: &str,
    at_left: bool,
    at_right: bool,
    mut goes: impl FnMut(char) -> Result<bool>,
) -> Result<&str> {
    let mut chars = t.chars();
    while at_left && let Some(c) = chars.next() {
        if !goes(c)? {
            break;
        }
        t = chars.as_str();
    }
    let mut chars = t.chars();
    while at_right && let Some(c) = chars.next_back() {
        if !goes(c)? {
            break;
        }
        t = chars.as_str();
    }
    Ok(t)
}

/// `btrim`
pub(super) fn btrim(a: &[Datum]) -> Result<Datum> {
    trim_ends(a, true, true)
}

/// `ltrim`
pub(super) fn ltrim(a: &[Datum]) -> Result<Datum> {
    trim_ends(a, true, false)
}

/// `rtrim`
pub(super) fn rtrim(a: &[Datum]) -> Result<Datum> {
    trim_ends(a, false, true)
}

/// `replace`
pub(super) fn replace(a: &[Datum]) -> Result<Datum> {
    let (t, from, to) = (s(a, 0)?, s(a, 1)?, s(a, 2)?);
    if from.is_empty() || find(t, from)?.is_none() {
        return Ok(a[0].clone());
    }
    let mut out = Builder::default();
    let mut divided = SplitParts::new(t, from);
    let mut first = true;
    while let Some(part) = divided.next_part()? {
        if !first {
            out.push_str(to)?;
        }
        first = false;
        out.push_str(part)?;
    }
    out.finish_text()
}

/// What a look into a hash table costs, in bytes that are copied one by one.
const HASH_STEPS: usize = 16;

/// `translate`
pub(super) fn translate(a: &[Datum]) -> Result<Datum> {
    let (from, mut to) = (s(a, 1)?, s(a, 2)?.chars());
    let mut pace = CancelChecker::default();
    // The first place of a character counts.
    let mut places: HashMap<char, Option<char>> = HashMap::with_capacity(from.len().min(4096));
    for c in from.chars() {
        pace.spent(HASH_STEPS)?;
        places.entry(c).or_insert(to.next());
    }
    let t = s(a, 0)?;
    let mut out = Builder::with_capacity(t.len())?;
    for c in t.chars() {
        pace.spent(HASH_STEPS)?;
        if let Some(c) = places.get(&c).copied().unwrap_or(Some(c)) {
            out.push_char(c)?;
        }
    }
    out.finish_text()
}

/// `strpos`, and `position` with its arguments already in this order
pub(super) fn strpos(a: &[Datum]) -> Result<Datum> {
    if let [Datum::Bytea(t), Datum::Bytea(sub)] = a {
        let at = if sub.is_empty() {
            Some(0)
        } else {
            memchr::memmem::find(t, sub)
        };
        return int(at.map_or(0, |i| i + 1));
    }
    let (t, sub) = (s(a, 0)?, s(a, 1)?);
    match find(t, sub)? {
        Some(at) => int(count_chars(t.get(..at).unwrap_or_default())? + 1),
        None => int(0),
    }
}

/// `repeat`
pub(super) fn repeat(a: &[Datum]) -> Result<Datum> {
    let (t, k) = (s(a, 0)?, n(a, 1)?.max(0) as usize);
    let whole = t.len().saturating_mul(k);
    if whole > VALUE_BYTES_MAX {
        return Err(too_long());
    }
    let mut out = Builder::with_capacity(whole)?;
    // Short ones are copied by the thousand.
    let many = if t.is_empty() {
        0
    } else {
        STRIDE_BYTES / t.len()
    };
    if k > many && many > 1 {
        let block = t.repeat(many);
        for _ in 0..k / many {
            out.push_str(&block)?;
        }
        out.push_str(&block[..t.len() * (k % many)])?;
    } else {
        for _ in 0..if t.is_empty() { 0 } else { k } {
            out.push_str(t)?;
        }
    }
    out.finish_text()
}

/// `reverse`
pub(super) fn reverse(a: &[Datum]) -> Result<Datum> {
    let t = s(a, 0)?;
    let mut out = Builder::with_capacity(t.len())?;
    push_chars(t.chars().rev(), &mut out)?;
    out.finish_text()
}

/// `split_part`
pub(super) fn split_part(a: &[Datum]) -> Result<Datum> {
    let (t, by, k) = (s(a, 0)?, s(a, 1)?, n(a, 2)?);
    if k == 0 {
        return Err(invalid("field position must not be zero"));
    }
    if by.is_empty() {
        return text(if k == 1 || k == -1 { t } else { "" });
    }
    let count = |wanted: Option<usize>| -> Result<(usize, Option<&str>)> {
        let mut divided = SplitParts::new(t, by);
        let mut count = 0;
        while let Some(part) = divided.next_part()? {
            if wanted == Some(count) {
                return Ok((count, Some(part)));
            }
            count += 1;
            if count % INTERRUPT_PARTS == 0 {
                check_for_interrupts()?;
            }
        }
        Ok((count, None))
    };
    let wanted = match usize::try_from(k) {
        Ok(k) => Some(k - 1),
        Err(_) => count(None)?.0.checked_sub(k.unsigned_abs() as usize),
    };
    match wanted {
        Some(_) => text(count(wanted)?.1.unwrap_or_default()),
        None => text(""),
    }
}

/// `text || text`
pub(super) fn text_cat(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (s(a, 0)?, s(a, 1)?);
    let mut out = Builder::with_capacity(x.len() + y.len())?;
    out.push_str(x)?;
    out.push_str(y)?;
    out.finish_text()
}

/// `bytea || bytea`
pub(super) fn bytea_cat(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Bytea(x), Datum::Bytea(y)] => {
            let mut out = Builder::with_capacity(x.len() + y.len())?;
            out.push_bytes(x)?;
            out.push_bytes(y)?;
            out.finish_bytes()
        }
        _ => Err(bad_args(a)),
    }
}

/// `text || anything` and `anything || text`: of what a cast to text makes, which is not always what is shown
pub(super) fn any_cat(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let mut out = Builder::default();
    for (at, d) in a.iter().enumerate() {
        match d {
            Datum::Bool(true) => out.push_str("true")?,
            Datum::Bool(false) => out.push_str("false")?,
            Datum::Inet(_) => {
                let shown = super::network::show(std::slice::from_ref(d))?;
                out.push_str(shown.as_str()?)?;
            }
            // A value of type xml is cast.
            Datum::Text(t) => out.push_str(t)?,
            d => show_as(cx, types.get(at), d, &mut out)?,
        }
    }
    out.finish_text()
}

pub(super) fn from_output(out: Vec<u8>) -> Result<Datum> {
    text(String::from_utf8(out).map_err(|_| SqlError::internal("output of a value is not UTF-8"))?)
}

/// `concat`: NULLs count as empty
pub(super) fn concat(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let mut out = Builder::default();
    for (at, d) in a.iter().enumerate() {
        show_as(cx, types.get(at), d, &mut out)?;
    }
    out.finish_text()
}

/// `concat_ws`
pub(super) fn concat_ws(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let Some((by, rest)) = a.split_first() else {
        return Err(bad_args(a));
    };
    if by.is_null() {
        return Ok(Datum::Null);
    }
    let mut out = Builder::default();
    let mut first = true;
    for (at, d) in rest.iter().enumerate().filter(|(_, d)| !d.is_null()) {
        if !first {
            out.push_str(by.as_str()?)?;
        }
        first = false;
        show_as(cx, types.get(at + 1), d, &mut out)?;
    }
    out.finish_text()
}

/// `ascii`
pub(super) fn ascii(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(s(a, 0)?.chars().next().map_or(0, |c| c as i32)))
}

/// `chr`
pub(super) fn chr(a: &[Datum]) -> Result<Datum> {
    let limit = |t: String| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, t);
    let v = n(a, 0)?;
    match v {
        0 => Err(limit("null character not permitted".into())),
        i32::MIN..0 => Err(invalid("character number must be positive")),
        _ => match char::from_u32(v as u32) {
            Some(c) => text(c.to_string()),
            None if v > 0x10_ffff => Err(limit(format!(
                "requested character too large for encoding: {v}"
            ))),
            None => Err(limit(format!(
                "requested character not valid for encoding: {v}"
            ))),
        },
    }
}

/// `to_hex`
pub(super) fn to_hex(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int4(v)] => text(format!("{v:x}")),
        [Datum::Int8(v)] => text(format!("{v:x}")),
        _ => Err(bad_args(a)),
    }
}

/// `starts_with`, `^@`
pub(super) fn starts_with(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(s(a, 0)?.starts_with(s(a, 1)?)))
}

/// `overlay`
pub(super) fn overlay(a: &[Datum]) -> Result<Datum> {
    let (t, new, from) = (s(a, 0)?, s(a, 1)?, i64::from(n(a, 2)?));
    let len = if a.len() > 3 {
        i64::from(n(a, 3)?)
    } else {
        count_chars(new)? as i64
    };
    if from <= 0 {
        return Err(SqlError::new(
            SqlState::SUBSTRING_ERROR,
            "negative substring length not allowed",
        ));
    }
    let head = slice(t, 1, Some(from - 1))?;
    let tail = slice(t, from + len, None)?;
    let mut out = Builder::with_capacity(head.len() + new.len() + tail.len())?;
    out.push_str(head)?;
    out.push_str(new)?;
    out.push_str(tail)?;
    out.finish_text()
}
