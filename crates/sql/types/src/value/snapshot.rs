//! Values of `pg_snapshot` and `txid_snapshot`: which transactions a snapshot sees, by their ids.
//!
//! They are kept as they print, `xmin:xmax:xip,xip...`: every id below `xmin` is seen, none from `xmax` on, and of
//! those between all but the listed ones, which
//! ran. Listed ids are in order, and none is there twice.

use super::Datum;
use super::binary_io::too_short;
use super::text_io::invalid_syntax;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::fmt::Write;

/// The larger part of a value, read.
#[derive(Clone, Copy)]
pub struct Snapshot<'v> {
    /// The oldest number that was in progress.
    pub xmin: i64,
    /// The first number that was not yet given.
    pub xmax: i64,
    xip: &'v str,
}

impl<'v> Snapshot<'v> {
    /// Of a value.
    pub fn of(value: &'v Datum) -> Result<Snapshot<'v>> {
        let Datum::Text(text) = value else {
            return Err(SqlError::internal("a snapshot of another type"));
        };
        Snapshot::of_text(text)
    }

    fn of_text(text: &'v str) -> Result<Snapshot<'v>> {
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        match (number(), number(), parts.next()) {
            (Some(xmin), Some(xmax), Some(xip)) => Ok(Snapshot { xmin, xmax, xip }),
            _ => Err(SqlError::internal("a damaged snapshot")),
        }
    }

    /// The ids of those that ran.
    pub fn xip(&self) -> impl Iterator<Item = i64> + use<'v> {
        self.xip.split(',').filter_map(|id| id.parse().ok())
    }

    /// Is what this transaction has committed seen?
    pub fn sees(&self, xid: i64) -> bool {
        xid < self.xmin || (xid < self.xmax && self.xip().all(|running| running != xid))
    }
}

/// A value of such ids, of which `xip` are in order.
pub fn snapshot(xmin: i64, xmax: i64, xip: impl IntoIterator<Item = i64>) -> Datum {
    let mut text = String::new();
    // Strings take all.
    let _ = write!(text, "{xmin}:{xmax}:");
    let mut last = None;
    for id in xip {
        if last == Some(id) {
            continue;
        }
        let separator = if last.is_some() { "," } else { "" };
        let _ = write!(text, "{separator}{id}");
        last = Some(id);
    }
    Datum::text(text)
}

/// A number at the front, as `strtoull` reads it, and what follows it; 0 if there is none.
fn number(text: &str) -> (u64, &str) {
    let start = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let signed = start.strip_prefix('+').unwrap_or(start);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    match signed.split_at_checked(digits) {
        Some((number, rest)) if digits > 0 => (number.parse().unwrap_or(u64::MAX), rest),
        _ => (0, text),
    }
}

fn read(text: &str) -> Option<Datum> {
    let valid = |id: u64| i64::try_from(id).ok().filter(|id| *id > 0);
    let (xmin, rest) = number(text);
    let (xmax, rest) = number(rest.strip_prefix(':')?);
    let mut rest = rest.strip_prefix(':')?;
    let (xmin, xmax) = (valid(xmin)?, valid(xmax)?);
    if xmin > xmax {
        return None;
    }
    let mut xip = Vec::new();
    let mut last = 0;
    while !rest.is_empty() {
        let (id, after) = number(rest);
        let id = i64::try_from(id).ok()?;
        if id < xmin || id >= xmax || id < last {
            return None;
        }
        xip.push(id);
        last = id;
        rest = match after.strip_prefix(',') {
            Some(after) => after,
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(snapshot(xmin, xmax, xip))
}

/// Reads the text form. As in PostgreSQL, errors call both types `pg_snapshot`.
pub(super) fn parse(text: &str) -> Result<Datum> {
    read(text).ok_or_else(|| invalid_syntax("pg_snapshot", text))
}

/// Reads the binary form.
pub(super) fn receive(bytes: &[u8]) -> Result<Datum> {
    let invalid = || {
        SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "invalid external pg_snapshot data",
        )
    };
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(too_short)?;
    let count = u32::from_be_bytes(*count);
    let mut next = || -> Result<i64> {
        let (id, after) = rest.split_first_chunk::<8>().ok_or_else(too_short)?;
        rest = after;
        Ok(i64::from_be_bytes(*id))
    };
    if i32::try_from(count).is_err() {
        return Err(invalid());
    }
    let (xmin, xmax) = (next()?, next()?);
    if xmin <= 0 || xmax <= 0 || xmin > xmax {
        return Err(invalid());
    }
    let mut xip = Vec::new();
    let mut last = 0;
    for _ in 0..count {
        let id = next()?;
        if id < last || id < xmin || id > xmax {
            return Err(invalid());
        }
        xip.push(id);
        last = id;
    }
    match rest.is_empty() {
        true => Ok(snapshot(xmin, xmax, xip)),
        false => Err(invalid()),
    }
}

/// Appends the binary form.
pub(super) fn send(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let snapshot = Snapshot::of_text(text)?;
    let count = u32::try_from(snapshot.xip().count()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for id in [snapshot.xmin, snapshot.xmax]
        .into_iter()
        .chain(snapshot.xip())
    {
        out.extend_from_slice(&id.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_form_comes_back() {
        for text in ["1:1:", "10:20:12,14", "1:9223372036854775807:3"] {
            let mut bytes = Vec::new();
            send(text, &mut bytes).expect("a snapshot");
            assert_eq!(receive(&bytes).expect("the same"), Datum::text(text));
            for length in 0..bytes.len() {
                receive(&bytes[..length]).expect_err("cut");
            }
            bytes.push(0);
            receive(&bytes).expect_err("too long");
        }
        receive(&[0xff; 20]).expect_err("a negative count");
    }

    #[test]
    fn what_is_listed_twice_is_there_once() {
        let value = parse("10:20:10,14,14,15").expect("reads");
        assert_eq!(value, Datum::text("10:20:10,14,15"));
        let snapshot = Snapshot::of(&value).expect("a snapshot");
        let seen = [9, 10, 11, 14, 15, 16, 19, 20].map(|id| snapshot.sees(id));
        assert_eq!(seen, [true, false, true, false, false, true, true, false]);
    }
}
