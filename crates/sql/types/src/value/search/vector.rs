//! tsvector: the lexemes of a text with the places they stand at.
//!
//! Owns: [`Vector`], its text form and its stored form. A value is kept as bytes ([`Datum::TsVector`]) whose order as
//! bytes is the order PostgreSQL gives to tsvectors, so that rows, index keys, sorts and hashes need to know nothing of
//! the type:
//! - four bytes (big-endian): the size that the value has in PostgreSQL, by which it orders first;
//! - four bytes: how many lexemes there are;
//! - per lexeme, in order: 0 if it has places, else 1; its bytes and a zero byte; if it has places, the complement of
//!   their number and then of each (place * 4 + weight), two bytes each.
//!
//! Invariants: lexemes are different, not empty, in order of their bytes; places of a lexeme are different and
//! ascending, from 1 to [`PLACE_MAX`], at most [`PLACES_MAX`] of them. Reading a stored form checks all of it: damaged
//! bytes are an error, never a panic.

use super::token::{Mode, Tokens};
use crate::error::{Result, SqlError};
use crate::value::Datum;
use logstead_types::SqlState;
use std::borrow::Cow;
use std::sync::Arc;

/// The last place that is told from those behind it.
pub const PLACE_MAX: u16 = (1 << 14) - 1;
/// No lexeme keeps more places than this.
pub const PLACES_MAX: usize = 256;
/// Bytes of a lexeme.
pub const LEXEME_BYTES_MAX: usize = (1 << 11) - 1;
/// Bytes of all lexemes and places together.
const BYTES_MAX: usize = (1 << 20) - 1;

/// A place with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordPosition {
    /// From 1 to [`PLACE_MAX`].
    pub at: u16,
    /// 0 is D, 3 is A.
    pub weight: u8,
}

impl WordPosition {
    /// A place as PostgreSQL writes it into 16 bits.
    pub fn bits(self) -> u16 {
        self.at | u16::from(self.weight) << 14
    }

    /// The place of 16 bits.
    pub fn of_bits(bits: u16) -> WordPosition {
        WordPosition {
            at: bits & PLACE_MAX,
            weight: (bits >> 14) as u8,
        }
    }
}

/// A lexeme and its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme<'a> {
    /// The normalized word.
    pub text: Cow<'a, str>,
    /// Where it stands, in order.
    pub places: Vec<WordPosition>,
}

/// A tsvector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector<'a> {
    /// In order.
    pub lexemes: Vec<Lexeme<'a>>,
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a stored tsvector is damaged")
}

/// Sorts places, keeps the heaviest of those that are one, and no more than a lexeme may have.
pub fn settle(places: &mut Vec<WordPosition>) {
    if places.len() < 2 {
        return;
    }
    places.sort_by_key(|p| p.at);
    let mut kept: Vec<WordPosition> = Vec::with_capacity(places.len());
    for &place in places.iter() {
        match kept.last_mut() {
            Some(last) if last.at == place.at => last.weight = last.weight.max(place.weight),
            _ => {
                let full =
                    kept.len() >= PLACES_MAX || kept.last().is_some_and(|l| l.at == PLACE_MAX);
                if full {
                    break;
                }
                kept.push(place);
            }
        }
    }
    *places = kept;
}

impl<'a> Vector<'a> {
    /// Puts lexemes in order and joins those that are one.
    pub fn of(mut lexemes: Vec<Lexeme<'a>>) -> Vector<'a> {
        lexemes.sort_by(|a, b| a.text.cmp(&b.text));
        let mut out: Vec<Lexeme<'a>> = Vec::with_capacity(lexemes.len());
        for lexeme in lexemes {
            match out.last_mut() {
                Some(last) if last.text == lexeme.text => last.places.extend(lexeme.places),
                _ => out.push(lexeme),
            }
        }
        for lexeme in &mut out {
            settle(&mut lexeme.places);
        }
        Vector { lexemes: out }
    }

    /// Reads a stored form.
    pub fn of_stored(b: &'a [u8]) -> Result<Vector<'a>> {
        let mut rest = b.get(4..).ok_or_else(damaged)?;
        let word = |rest: &mut &'a [u8]| -> Result<u16> {
            let (head, tail) = rest.split_first_chunk::<2>().ok_or_else(damaged)?;
            *rest = tail;
            Ok(u16::from_be_bytes(*head))
        };
        let count = usize::from(word(&mut rest)?) << 16 | usize::from(word(&mut rest)?);
        let mut lexemes: Vec<Lexeme<'a>> = Vec::with_capacity(count.min(b.len() / 2));
        for _ in 0..count {
            let (&mark, tail) = rest.split_first().ok_or_else(damaged)?;
            let end = tail.iter().position(|&c| c == 0).ok_or_else(damaged)?;
            let text = std::str::from_utf8(&tail[..end]).map_err(|_| damaged())?;
            rest = &tail[end + 1..];
            let mut places = Vec::new();
            match mark {
                1 => {}
                0 => {
                    let n = !word(&mut rest)?;
                    for _ in 0..n {
                        let v = !word(&mut rest)?;
                        places.push(WordPosition {
                            at: v >> 2,
                            weight: (v & 3) as u8,
                        });
                    }
                    if places.is_empty() || places.windows(2).any(|w| w[0].at >= w[1].at) {
                        return Err(damaged());
                    }
                }
                _ => return Err(damaged()),
            }
            if text.is_empty() || lexemes.last().is_some_and(|l| *l.text >= *text) {
                return Err(damaged());
            }
            lexemes.push(Lexeme {
                text: Cow::Borrowed(text),
                places,
            });
        }
        if !rest.is_empty() {
            return Err(damaged());
        }
        Ok(Vector { lexemes })
    }

    /// The vector that a value holds.
    pub fn of_datum(d: &'a Datum) -> Result<Vector<'a>> {
        Vector::of_stored(d.as_tsvector()?)
    }

    /// Bytes that PostgreSQL needs for the lexemes and their places.
    fn area_bytes(&self) -> usize {
        let mut at = 0;
        for lexeme in &self.lexemes {
            at += lexeme.text.len();
            if !lexeme.places.is_empty() {
                at = at.next_multiple_of(2) + 2 + 2 * lexeme.places.len();
            }
        }
        at
    }

    /// The value; an error if it is larger than tsvectors may be.
    pub fn datum(&self) -> Result<Datum> {
        let area = self.area_bytes();
        if area > BYTES_MAX {
            return Err(too_long(area));
        }
        let mut out = Vec::with_capacity(8 + area + 4 * self.lexemes.len());
        let size = 8 + 4 * self.lexemes.len() + area;
        out.extend_from_slice(&(size as u32).to_be_bytes());
        out.extend_from_slice(&(self.lexemes.len() as u32).to_be_bytes());
        for lexeme in &self.lexemes {
            out.push(u8::from(lexeme.places.is_empty()));
            out.extend_from_slice(lexeme.text.as_bytes());
            out.push(0);
            if !lexeme.places.is_empty() {
                out.extend_from_slice(&(!(lexeme.places.len() as u16)).to_be_bytes());
                for place in &lexeme.places {
                    let v = place.at << 2 | u16::from(place.weight);
                    out.extend_from_slice(&(!v).to_be_bytes());
                }
            }
        }
        Ok(Datum::TsVector(Arc::from(out)))
    }

    /// The lexeme of this text.
    pub fn find(&self, text: &str) -> Option<&Lexeme<'a>> {
        let at = self
            .lexemes
            .binary_search_by(|l| (*l.text).cmp(text))
            .ok()?;
        self.lexemes.get(at)
    }

    /// The lexemes that begin so.
    pub fn beginning(&self, prefix: &str) -> &[Lexeme<'a>] {
        let from = self.lexemes.partition_point(|l| *l.text < *prefix);
        let tail = &self.lexemes[from..];
        let len = tail
            .iter()
            .take_while(|l| l.text.starts_with(prefix))
            .count();
        &tail[..len]
    }

    /// All places and, for lexemes without, one each: how long the text was.
    pub fn length(&self) -> usize {
        let lexemes = self.lexemes.iter();
        lexemes.map(|l| l.places.len().max(1)).sum()
    }

    /// The highest place.
    pub fn last_place(&self) -> u16 {
        let lasts = self.lexemes.iter().filter_map(|l| l.places.last());
        lasts.map(|p| p.at).max().unwrap_or(0)
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (i, lexeme) in self.lexemes.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            quote(&lexeme.text, out);
            for (i, place) in lexeme.places.iter().enumerate() {
                out.push(if i == 0 { b':' } else { b',' });
                out.extend_from_slice(place.at.to_string().as_bytes());
                if place.weight > 0 {
                    out.push(b'D' - place.weight);
                }
            }
        }
    }
}

/// A vector of text and places that were read from somewhere is longer than it may be.
pub fn too_long(bytes: usize) -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("string is too long for tsvector ({bytes} bytes, max {BYTES_MAX} bytes)"),
    )
}

/// A lexeme in quotes.
pub fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'\'');
    for &b in text.as_bytes() {
        if matches!(b, b'\'' | b'\\') {
            out.push(b);
        }
        out.push(b);
    }
    out.push(b'\'');
}

/// Reads the text form.
pub fn parse(text: &str) -> Result<Datum> {
    let mut tokens = Tokens::new(text, Mode::Vector);
    let mut lexemes = Vec::new();
    let mut bytes = 0;
    while let Some(token) = tokens.next()? {
        if token.text.len() >= LEXEME_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "word is too long ({} bytes, max {} bytes)",
                    token.text.len(),
                    LEXEME_BYTES_MAX - 1
                ),
            ));
        }
        bytes += token.text.len();
        if bytes > BYTES_MAX {
            return Err(too_long(bytes));
        }
        lexemes.push(Lexeme {
            text: Cow::Owned(token.text),
            places: token.places,
        });
    }
    Vector::of(lexemes).datum()
}

/// Reads the binary form.
pub fn receive(b: &[u8]) -> Result<Datum> {
    let short = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let wrong = |m: &str| SqlError::new(SqlState::INTERNAL_ERROR, format!("invalid tsvector: {m}"));
    let mut rest = b;
    let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    rest = tail;
    let count = i32::from_be_bytes(*head);
    if !(0..=(i32::MAX / 4)).contains(&count) {
        return Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            "invalid size of tsvector",
        ));
    }
    let mut lexemes: Vec<Lexeme<'_>> = Vec::new();
    for _ in 0..count {
        let end = rest.iter().position(|&c| c == 0).ok_or_else(short)?;
        let text = crate::value::binary_io::text(&rest[..end])?;
        rest = &rest[end + 1..];
        let mut word = || -> Result<u16> {
            let (head, tail) = rest.split_first_chunk::<2>().ok_or_else(short)?;
            rest = tail;
            Ok(u16::from_be_bytes(*head))
        };
        let n = word()?;
        if text.len() > LEXEME_BYTES_MAX {
            return Err(wrong("lexeme too long"));
        }
        if usize::from(n) > PLACES_MAX {
            return Err(wrong("unexpected number of tsvector positions"));
        }
        let mut places: Vec<WordPosition> = Vec::with_capacity(usize::from(n));
        for _ in 0..n {
            let place = WordPosition::of_bits(word()?);
            if place.at == 0 || places.last().is_some_and(|p| p.at >= place.at) {
                return Err(wrong("position information is misordered"));
            }
            places.push(place);
        }
        if text.is_empty() {
            return Err(wrong("empty lexeme"));
        }
        lexemes.push(Lexeme {
            text: Cow::Borrowed(text),
            places,
        });
    }
    if !rest.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "incorrect binary data format",
        ));
    }
    Vector::of(lexemes).datum()
}

/// Appends the binary form.
pub fn send(stored: &[u8], out: &mut Vec<u8>) {
    // Values are checked when they are read; a damaged one that came this far is sent as an empty one.
    let vector = Vector::of_stored(stored).unwrap_or_default();
    out.extend_from_slice(&(vector.lexemes.len() as u32).to_be_bytes());
    for lexeme in &vector.lexemes {
        out.extend_from_slice(lexeme.text.as_bytes());
        out.push(0);
        out.extend_from_slice(&(lexeme.places.len() as u16).to_be_bytes());
        for place in &lexeme.places {
            out.extend_from_slice(&place.bits().to_be_bytes());
        }
    }
}

/// Appends the text form of a stored one. A damaged one, which only a damaged page can hold, is shown as that.
pub fn output(stored: &[u8], out: &mut Vec<u8>) {
    match Vector::of_stored(stored) {
        Ok(vector) => vector.write(out),
        Err(_) => out.extend_from_slice(b"(damaged)"),
    }
}
