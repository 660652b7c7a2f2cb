//! Encodings of text: by what names and numbers PostgreSQL knows them, and text to bytes and back.
//!
//! Owns: [`Encoding`]. Those of one byte are PostgreSQL's own tables (`single_byte`); those of several come from the
//! Encoding Standard's tables (`encoding_rs`), with what PostgreSQL has otherwise put over them (`multi_byte`): what it
//! converts is converted as it does. The Standard knows more (vendors' rows of EUC_JP, SJIS and GBK, Hong Kong's
//! characters in BIG5), and those are converted here, where PostgreSQL has 22P05. EUC_TW, EUC_JIS_2004, SHIFT_JIS_2004,
//! JOHAB and MULE_INTERNAL are known by name only.
//!
//! Invariant: text is UTF-8 inside. What a client sends is checked and converted before anything reads it; an error
//! names PostgreSQL's code: 22021 for bytes that are no character of the encoding, 22P05 for a character that the other
//! side does not have.

mod multi_byte;
mod single_byte;

use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use logstead_types::SqlState;
use std::fmt::Write;

/// Bytes converted between two looks at interrupts.
const STRIDE_BYTES: usize = 64 << 10;

/// Names of encodings, by PostgreSQL's numbers.
const NAMES: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names of them, PostgreSQL's, as [`plain`] has them.
const ALIASES: [(&str, &str); 44] = [
    ("abc", "win1258"),
    ("alt", "win866"),
    ("iso88591", "latin1"),
    ("iso885910", "latin6"),
    ("iso885913", "latin7"),
    ("iso885914", "latin8"),
    ("iso885915", "latin9"),
    ("iso885916", "latin10"),
    ("iso88592", "latin2"),
    ("iso88593", "latin3"),
    ("iso88594", "latin4"),
    ("iso88599", "latin5"),
    ("koi8", "koi8r"),
    ("mskanji", "sjis"),
    ("shiftjis", "sjis"),
    ("tcvn", "win1258"),
    ("tcvn5712", "win1258"),
    ("unicode", "utf8"),
    ("vscii", "win1258"),
    ("win", "win1251"),
    ("win932", "sjis"),
    ("win936", "gbk"),
    ("win949", "uhc"),
    ("win950", "big5"),
    ("windows1250", "win1250"),
    ("windows1251", "win1251"),
    ("windows1252", "win1252"),
    ("windows1253", "win1253"),
    ("windows1254", "win1254"),
    ("windows1255", "win1255"),
    ("windows1256", "win1256"),
    ("windows1257", "win1257"),
    ("windows1258", "win1258"),
    ("windows866", "win866"),
    ("windows874", "win874"),
    ("windows932", "sjis"),
    ("windows936", "gbk"),
    ("windows949", "uhc"),
    ("windows950", "big5"),
    ("iso88595", "iso88595"),
    ("iso88596", "iso88596"),
    ("iso88597", "iso88597"),
    ("iso88598", "iso88598"),
    ("euccn", "euccn"),
];

fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// One of PostgreSQL's encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Encoding(u8);

/// 22021: bytes that are no character of the encoding.
fn invalid(encoding: Encoding, bytes: &[u8]) -> SqlError {
    SqlError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!(
            "invalid byte sequence for encoding \"{}\": {}",
            encoding.name(),
            shown(bytes)
        ),
    )
}

/// 22P05: a character that the other encoding does not have.
fn untranslatable(bytes: &[u8], from: Encoding, to: Encoding) -> SqlError {
    SqlError::new(
        SqlState::UNTRANSLATABLE_CHARACTER,
        format!(
            "character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"{}\"",
            shown(bytes),
            from.name(),
            to.name()
        ),
    )
}

fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let blank = if at == 0 { "" } else { " " };
        // Writing to a string does not fail.
        let _written = write!(text, "{blank}0x{byte:02x}");
    }
    text
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionDirection {
    /// From UTF-8 to the client.
    ToClient,
    /// From the client to UTF-8.
    FromClient,
}

impl Encoding {
    /// Appends a text of the client's or for it.
    pub fn convert(self, bytes: &[u8], way: ConversionDirection, out: &mut Vec<u8>) -> Result<()> {
        match (way, std::str::from_utf8(bytes)) {
            (ConversionDirection::FromClient, _) => self.decode(bytes, out),
            (ConversionDirection::ToClient, Ok(text)) => self.encode(text, out),
            // Not text: it is as it is.
            (ConversionDirection::ToClient, Err(_)) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// None: bytes are what they are.
    pub const SQL_ASCII: Encoding = Encoding(0);
    /// UTF-8, the server's.
    pub const UTF8: Encoding = Encoding(6);
    /// ISO 8859-1.
    pub const LATIN1: Encoding = Encoding(8);

    /// The encoding with this name, one of its others included.
    pub fn named(name: &str) -> Option<Encoding> {
        let asked = plain(name);
        let alias = ALIASES.iter().find(|(alias, _)| *alias == asked);
        let asked = alias.map_or(asked.as_str(), |(_, stands_for)| stands_for);
        let number = NAMES.iter().position(|known| plain(known) == asked)?;
        u8::try_from(number).ok().map(Encoding)
    }

    /// The encoding with this number.
    pub fn numbered(number: i32) -> Option<Encoding> {
        let number = u8::try_from(number).ok()?;
        NAMES.get(usize::from(number)).map(|_| Encoding(number))
    }

    /// Its number.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.get(self.number()).copied().unwrap_or_default()
    }

    /// What is sent and received in it is as it is inside: nothing is converted.
    pub fn is_plain(self) -> bool {
        self == Encoding::UTF8 || self == Encoding::SQL_ASCII
    }

    /// Is it known by more than its name?
    pub fn is_supported(self) -> bool {
        self.is_plain()
            || self == Encoding::LATIN1
            || single_byte::table(self).is_some()
            || multi_byte::is_known(self)
    }

    /// Appends the text that these bytes are, in UTF-8.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.is_plain() {
            if let Err(error) = std::str::from_utf8(bytes) {
                let wrong = bytes.get(error.valid_up_to()..).unwrap_or_default();
                let length = error.error_len().unwrap_or(wrong.len()).clamp(1, 4);
                let wrong = wrong.get(..length).unwrap_or(wrong);
                return Err(invalid(Encoding::UTF8, wrong));
            }
            out.extend_from_slice(bytes);
            return Ok(());
        }
        let single = single_byte::table(self);
        let multi = multi_byte::table(self);
        let mut at = 0;
        let mut next_look = STRIDE_BYTES;
        while let Some(&byte) = bytes.get(at) {
            if at >= next_look {
                check_for_interrupts()?;
                next_look = at + STRIDE_BYTES;
            }
            if byte < 0x80 {
                if byte == 0 {
                    return Err(invalid(self, &[0]));
                }
                let plain = bytes.get(at..).unwrap_or_default();
                let plain = plain.iter().take_while(|b| (1..0x80).contains(*b)).count();
                let plain = plain.min(STRIDE_BYTES);
                out.extend_from_slice(bytes.get(at..at + plain).unwrap_or_default());
                at += plain;
                continue;
            }
            let (character, length) = match (single, multi) {
                (Some(table), _) => (table.character(byte), 1),
                (None, Some(table)) => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let length = self.checked_length(rest)?;
                    (
                        table.character(rest.get(..length).unwrap_or_default()),
                        length,
                    )
                }
                (None, None) if self == Encoding::LATIN1 => (Some(char::from(byte)), 1),
                (None, None) => return Err(SqlError::unsupported(self.what())),
            };
            let Some(character) = character else {
                let bytes = bytes.get(at..at + length).unwrap_or_default();
                return Err(untranslatable(bytes, self, Encoding::UTF8));
            };
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            at += length;
        }
        Ok(())
    }

    /// How many bytes the first character has, if they may be one.
    fn checked_length(self, bytes: &[u8]) -> Result<usize> {
        let length = multi_byte::length(self, bytes);
        match bytes.get(..length) {
            Some(character) if multi_byte::is_valid(self, character) => Ok(length),
            _ => Err(invalid(self, bytes.get(..length).unwrap_or(bytes))),
        }
    }

    /// Appends the bytes that are this text.
    pub fn encode(self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        if self.is_plain() {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let single = single_byte::table(self);
        let multi = multi_byte::table(self);
        let mut next_look = STRIDE_BYTES;
        for (at, character) in text.char_indices() {
            if at >= next_look {
                check_for_interrupts()?;
                next_look = at + STRIDE_BYTES;
            }
            if character.is_ascii() {
                out.push(character as u8);
                continue;
            }
            let found = match (single, multi) {
                (Some(table), _) => table.byte(character).map(|byte| out.push(byte)),
                (None, Some(table)) => table
                    .bytes(character)
                    .map(|bytes| out.extend_from_slice(&bytes)),
                (None, None) if self == Encoding::LATIN1 => u8::try_from(u32::from(character))
                    .ok()
                    .map(|byte| out.push(byte)),
                (None, None) => return Err(SqlError::unsupported(self.what())),
            };
            if found.is_none() {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).as_bytes();
                return Err(untranslatable(bytes, Encoding::UTF8, self));
            }
        }
        Ok(())
    }

    /// What of these bytes is the beginning of a character that the next ones go on.
    pub fn incomplete(self, bytes: &[u8]) -> usize {
        if multi_byte::table(self).is_none() {
            return 0;
        }
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            // A sequence that has begun wrong is told of when it is decoded.
            let length = multi_byte::length(self, rest);
            if length > rest.len() {
                return rest.len();
            }
            at += length;
        }
        0
    }

    /// As an error names it.
    pub fn what(self) -> String {
        format!("encoding \"{}\"", self.name())
    }
}

#[cfg(test)]
mod tests;
