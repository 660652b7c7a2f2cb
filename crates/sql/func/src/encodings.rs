//! Bytes as text and back: `encode`, `decode`, digests, single bytes of a bytea.

use super::arithmetic::bad_args;
use super::strings::{from_output, int, invalid, s};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::{Builder, STRIDE_BYTES};
use logstead_sql_types::value::{Datum, SqlType, oid, text_io};
use logstead_types::SqlState;

/// Base64 as PostgreSQL reads it: what the last symbol has beyond a byte counts for nothing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);
/// Bytes in a line of base64, which PostgreSQL breaks at 76 symbols.
const BASE64_LINE_BYTES: usize = 57;

fn unknown_encoding(name: &str) -> SqlError {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

/// `encode`
pub(super) fn encode(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Text(format)] = a else {
        return Err(bad_args(a));
    };
    let mut out = Builder::default();
    match format.to_ascii_lowercase().as_str() {
        "hex" => {
            out.reserve(b.len() * 2)?;
            for part in b.chunks(STRIDE_BYTES) {
                text_io::write_hex(part, &mut out);
                out.step()?;
            }
        }
        "escape" => {
            for (i, &c) in b.iter().enumerate() {
                if i % STRIDE_BYTES == 0 {
                    out.reserve(4 * STRIDE_BYTES.min(b.len() - i))?;
                    out.step()?;
                }
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
            out.reserve(b.len().div_ceil(3) * 4 + b.len() / 57 + 1)?;
            let mut line = [0; BASE64_LINE_BYTES / 3 * 4];
            for (i, bytes) in b.chunks(BASE64_LINE_BYTES).enumerate() {
                check_for_interrupts()?;
                if i > 0 {
                    out.push(b'\n');
                }
                let written = STANDARD.encode_slice(bytes, &mut line);
                let written = written.map_err(|error| SqlError::internal(error.to_string()))?;
                out.extend_from_slice(line.get(..written).unwrap_or_default());
            }
        }
        _ => return Err(unknown_encoding(format)),
    }
    out.finish_text()
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
        "base64" => decode_base64(t)?,
        _ => return Err(unknown_encoding(format)),
    };
    Ok(Datum::Bytea(bytes.into()))
}

/// Bytes of base64, with blanks anywhere.
fn decode_base64(text: &str) -> Result<Vec<u8>> {
    let blank = |c: &u8| c.is_ascii_whitespace();
    let mut symbols: Vec<u8> = text.bytes().filter(|c| !blank(c)).collect();
    let count = symbols.len();
    let end = symbols.iter().position(|c| *c == b'=').unwrap_or(count);
    let is_digit = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/');
    let (digits, padding) = symbols.split_at(end);
    let wrong = digits.iter().find(|c| !is_digit(c));
    if let Some(wrong) = wrong.or_else(|| padding.iter().find(|c| **c != b'=')) {
        return Err(invalid(format!(
            "invalid symbol \"{}\" found while decoding base64 sequence",
            char::from(*wrong)
        )));
    }
    if !count.is_multiple_of(4) || padding.len() > 2 {
        return Err(invalid("invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    symbols.truncate(end);
    let bytes = BASE64.decode(symbols);
    bytes.map_err(|error| SqlError::internal(error.to_string()))
}

fn hex_text(bytes: &[u8]) -> Result<Datum> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    text_io::write_hex(bytes, &mut out);
    from_output(out)
}

pub(super) fn input_bytes(a: &[Datum]) -> Result<&[u8]> {
    match a {
        [Datum::Bytea(b)] => Ok(b),
        [Datum::Text(t)] => Ok(t.as_bytes()),
        _ => Err(bad_args(a)),
    }
}

/// `md5`
pub(super) fn md5(a: &[Datum]) -> Result<Datum> {
    hex_text(&super::digests::md5(input_bytes(a)?)?)
}

fn digest(a: &[Datum], with: &'static ring::digest::Algorithm) -> Result<Datum> {
    let mut context = ring::digest::Context::new(with);
    for part in input_bytes(a)?.chunks(STRIDE_BYTES) {
        context.update(part);
        check_for_interrupts()?;
    }
    Ok(Datum::Bytea(context.finish().as_ref().into()))
}

/// `sha224`
pub(super) fn sha224(a: &[Datum]) -> Result<Datum> {
    let digest = super::digests::sha224(input_bytes(a)?)?;
    Ok(Datum::Bytea(digest.into()))
}

/// `sha256`
pub(super) fn sha256(a: &[Datum]) -> Result<Datum> {
    digest(a, &ring::digest::SHA256)
}

/// `sha384`
pub(super) fn sha384(a: &[Datum]) -> Result<Datum> {
    digest(a, &ring::digest::SHA384)
}

/// `sha512`
pub(super) fn sha512(a: &[Datum]) -> Result<Datum> {
    digest(a, &ring::digest::SHA512)
}

/// `pg_encoding_to_char`
pub(super) fn encoding_to_char(a: &[Datum]) -> Result<Datum> {
    let known = Encoding::numbered(a[0].as_i32()?);
    Ok(Datum::text(known.map_or("", Encoding::name)))
}

/// `pg_char_to_encoding`
pub(super) fn char_to_encoding(a: &[Datum]) -> Result<Datum> {
    match Encoding::named(a[0].as_str()?) {
        Some(known) => int(known.number()),
        None => Ok(Datum::Int4(-1)),
    }
}

fn encoding(name: &str, what: &str) -> Result<Encoding> {
    let found =
        Encoding::named(name).ok_or_else(|| invalid(format!("invalid {what} \"{name}\"")))?;
    match found.is_supported() {
        true => Ok(found),
        false => Err(SqlError::unsupported(found.what())),
    }
}

/// The text that bytes of an encoding are. What has no encoding passes as UTF-8, which it must be here.
fn decoded(bytes: &[u8], from: Encoding) -> Result<String> {
    if !from.is_plain() {
        let mut text = Vec::new();
        from.decode(bytes, &mut text)?;
        return String::from_utf8(text)
            .map_err(|_| SqlError::internal("what was decoded is not UTF-8"));
    }
    let text = logstead_sql_types::value::binary_io::binary_input(SqlType::of(oid::TEXT), bytes)?;
    text.as_str().map(str::to_owned)
}

fn encoded(text: &str, to: Encoding) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    to.encode(text, &mut bytes)?;
    Ok(bytes)
}

/// `convert_from(bytea, name)`
pub(super) fn convert_from(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Text(from)] = a else {
        return Err(bad_args(a));
    };
    decoded(b, encoding(from, "source encoding name")?).map(Datum::text)
}

/// `convert_to(text, name)`
pub(super) fn convert_to(a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(t), Datum::Text(to)] = a else {
        return Err(bad_args(a));
    };
    let bytes = encoded(t, encoding(to, "destination encoding name")?)?;
    Ok(Datum::Bytea(bytes.into()))
}

/// `convert(bytea, name, name)`
pub(super) fn convert(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Text(from), Datum::Text(to)] = a else {
        return Err(bad_args(a));
    };
    let from = encoding(from, "source encoding name")?;
    let to = encoding(to, "destination encoding name")?;
    let none = Encoding::SQL_ASCII;
    if from == none || to == none || from == to {
        // Nothing is changed; what has an encoding is looked at.
        if let Some(known) = [from, to].iter().find(|e| **e != none) {
            decoded(b, *known)?;
        }
        return Ok(Datum::Bytea(b.clone()));
    }
    let bytes = encoded(&decoded(b, from)?, to)?;
    Ok(Datum::Bytea(bytes.into()))
}

/// `length(bytea, name)`: characters
pub(super) fn length(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(b), Datum::Text(of)] = a else {
        return Err(bad_args(a));
    };
    match encoding(of, "encoding name")? {
        Encoding::SQL_ASCII => int(b.len()),
        known => int(decoded(b, known)?.chars().count()),
    }
}

/// `to_ascii`, which knows single-byte encodings only
pub(super) fn to_ascii(a: &[Datum]) -> Result<Datum> {
    let undefined = |text: String| SqlError::new(SqlState::UNDEFINED_OBJECT, text);
    let known = match a.get(1) {
        None => Encoding::UTF8,
        Some(Datum::Int4(code)) => Encoding::numbered(*code)
            .ok_or_else(|| undefined(format!("{code} is not a valid encoding code")))?,
        Some(name) => {
            let name = name.as_str()?;
            Encoding::named(name)
                .ok_or_else(|| undefined(format!("{name} is not a valid encoding name")))?
        }
    };
    let name = known.name();
    if matches!(name, "LATIN1" | "LATIN2" | "LATIN9" | "WIN1250") {
        return Err(SqlError::unsupported(format!(
            "to_ascii of encoding \"{name}\""
        )));
    }
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("encoding conversion from {name} to ASCII not supported"),
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_postgresql_reads_it() {
        let read = |text: &str| decode_base64(text).map_err(|e| e.fields().message.clone());
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            // What the last symbol has beyond a byte counts for nothing.
            ("Zh==", "f"),
            (" Zm9\nv ", "foo"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(bytes.as_bytes()), "{text}");
        }
        for end in ["Zg", "Zg=", "Z===", "===="] {
            assert_eq!(
                read(end).as_deref(),
                Err(&"invalid base64 end sequence".to_owned()),
                "{end}"
            );
        }
        for symbol in ["Z!==", "Zg=!", "Z-=="] {
            assert!(read(symbol).unwrap_err().contains("invalid symbol"));
        }
    }

    #[test]
    fn base64_is_written_in_lines_of_76() {
        let args = [Datum::Bytea(vec![0; 115].into()), Datum::text("base64")];
        let text = encode(&args).unwrap();
        let lengths: Vec<usize> = text.as_str().unwrap().lines().map(str::len).collect();
        assert_eq!(lengths, [76, 76, 4]);
    }
}
