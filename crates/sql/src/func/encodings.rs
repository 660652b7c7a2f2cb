//! Bytes as text and back: `encode`, `decode`, digests, single bytes of a bytea.

use super::numbers::bad_args;
use super::strings::{from_output, int, invalid, s};
use crate::error::{Result, SqlError};
use crate::value::{Datum, SqlType, oid, text_io};
use logstead_types::SqlState;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn unknown_encoding(name: &str) -> SqlError {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

/// `encode`
pub(super) fn encode(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Text(format)] = a else {
        return Err(bad_args(a));
    };
    let mut out = Vec::with_capacity(b.len() * 2);
    match format.to_ascii_lowercase().as_str() {
        "hex" => text_io::write_hex(b, &mut out),
        "escape" => {
            for &c in b.iter() {
                match c {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    1..=0x7f => out.push(c),
                    _ => out.extend_from_slice(&[
                        b'\\',
                        b'0' + (c >> 6),
                        b'0' + (c >> 3 & 7),
                        b'0' + (c & 7),
                    ]),
                }
            }
        }
        "base64" => {
            for (i, chunk) in b.chunks(3).enumerate() {
                // Lines of 76 characters, as PostgreSQL breaks them.
                if i > 0 && i % 19 == 0 {
                    out.push(b'\n');
                }
                let v = chunk.iter().fold(0u32, |v, c| v << 8 | u32::from(*c))
                    << (8 * (3 - chunk.len()));
                for i in 0..4 {
                    out.push(if i <= chunk.len() {
                        BASE64[(v >> (18 - 6 * i) & 63) as usize]
                    } else {
                        b'='
                    });
                }
            }
        }
        _ => return Err(unknown_encoding(format)),
    }
    from_output(out)
}

/// `decode`
pub(super) fn decode(a: &[Datum]) -> Result<Datum> {
    let (t, format) = (s(a, 0)?, s(a, 1)?);
    let bytes = match format.to_ascii_lowercase().as_str() {
        "hex" => text_io::decode_hex(t.as_bytes())?,
        "escape" => match text_io::input(
            SqlType::of(oid::BYTEA),
            &t.replacen("\\x", "\\134x", usize::from(t.starts_with("\\x"))),
            None,
        )? {
            Datum::Bytea(b) => b.to_vec(),
            _ => Vec::new(),
        },
        "base64" => {
            let mut out = Vec::with_capacity(t.len() / 4 * 3);
            let (mut v, mut bits, mut ended) = (0u32, 0, 0);
            for c in t.bytes().filter(|c| !c.is_ascii_whitespace()) {
                if c == b'=' {
                    ended += 1;
                    continue;
                }
                let d = BASE64
                    .iter()
                    .position(|b| *b == c)
                    .filter(|_| ended == 0)
                    .ok_or_else(|| {
                        invalid(format!(
                            "invalid symbol \"{}\" found while decoding base64 sequence",
                            char::from(c)
                        ))
                    })?;
                v = v << 6 | d as u32;
                bits += 6;
                if bits >= 8 {
                    bits -= 8;
                    out.push((v >> bits) as u8);
                    v &= (1 << bits) - 1;
                }
            }
            let symbols = t.bytes().filter(|c| !c.is_ascii_whitespace()).count();
            if symbols % 4 != 0 || ended > 2 {
                return Err(invalid("invalid base64 end sequence").hint(
                    "Input data is missing padding, is truncated, or is otherwise corrupted.",
                ));
            }
            out
        }
        _ => return Err(unknown_encoding(format)),
    };
    Ok(Datum::Bytea(bytes.into()))
}

fn hex_text(bytes: &[u8]) -> Result<Datum> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    text_io::write_hex(bytes, &mut out);
    from_output(out)
}

fn input_bytes(a: &[Datum]) -> Result<&[u8]> {
    match a {
        [Datum::Bytea(b)] => Ok(b),
        [Datum::Text(t)] => Ok(t.as_bytes()),
        _ => Err(bad_args(a)),
    }
}

/// `md5`
pub(super) fn md5(a: &[Datum]) -> Result<Datum> {
    hex_text(&super::digests::md5(input_bytes(a)?))
}

/// `sha256`
pub(super) fn sha256(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bytea(
        super::digests::sha256(input_bytes(a)?).as_slice().into(),
    ))
}

/// `convert_from(bytea, 'UTF8')`
pub(super) fn convert_from(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Text(enc)] = a else {
        return Err(bad_args(a));
    };
    utf8_only(enc)?;
    crate::value::binary_io::binary_input(SqlType::of(oid::TEXT), b)
}

/// `convert_to(text, 'UTF8')`
pub(super) fn convert_to(a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(t), Datum::Text(enc)] = a else {
        return Err(bad_args(a));
    };
    utf8_only(enc)?;
    Ok(Datum::Bytea(t.as_bytes().into()))
}

fn utf8_only(name: &str) -> Result<()> {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    match plain.as_str() {
        "utf8" | "unicode" | "sqlascii" => Ok(()),
        _ => Err(SqlError::unsupported(format!("encoding \"{name}\""))),
    }
}

/// `get_byte`
pub(super) fn get_byte(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Int4(i)] = a else {
        return Err(bad_args(a));
    };
    match usize::try_from(*i).ok().and_then(|i| b.get(i)) {
        Some(v) => Ok(Datum::Int4(i32::from(*v))),
        None => Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("index {i} out of valid range, 0..{}", b.len() as i64 - 1),
        )),
    }
}

/// `set_byte`
pub(super) fn set_byte(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Int4(i), Datum::Int4(v)] = a else {
        return Err(bad_args(a));
    };
    get_byte(&a[..2])?;
    let mut out = b.to_vec();
    out[*i as usize] = *v as u8;
    Ok(Datum::Bytea(out.into()))
}

/// `num_nulls`
pub(super) fn num_nulls(a: &[Datum]) -> Result<Datum> {
    int(a.iter().filter(|d| d.is_null()).count())
}

/// `num_nonnulls`
pub(super) fn num_nonnulls(a: &[Datum]) -> Result<Datum> {
    int(a.iter().filter(|d| !d.is_null()).count())
}
