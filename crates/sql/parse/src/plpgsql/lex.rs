//! The words of a PL/pgSQL body, with where they stand.
//!
//! Owns: just enough of SQL's lexical rules to find the ends of statements and expressions: names, literals in all their quotes, comments,
//! operators. What stands in SQL texts is read again by the SQL parser.

use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// A word of a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name or key word, folded to lower case unless it was quoted.
    Name {
        text: String,
        quoted: bool,
    },
    /// A string; its value if it has no escapes that matter here.
    Text(String),
    Number(String),
    /// `$1`.
    Param(String),
    /// A mark: one of `:= .. << >> => ; , . ( ) [ ] = % # :` or any other character.
    Mark(&'static str),
    Other(char),
    End,
}

/// A word with its place, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) word: Word,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Two characters that are one mark.
const PAIRS: [&str; 5] = [":=", "..", "<<", ">>", "=>"];
const SINGLES: [&str; 11] = [";", ",", ".", "(", ")", "[", "]", "=", "%", "#", ":"];

fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic() || !c.is_ascii()
}

fn goes_on(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit() || c == '$'
}

/// 42601 at a byte of the body.
pub(super) fn unterminated(what: &str, body: &str, start: usize) -> SqlError {
    let near = body.get(start..).unwrap_or_default();
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("unterminated {what} at or near \"{near}\""),
    )
    .at(Some(position(body, start)))
}

/// A byte as a position of errors: characters from 1.
pub(super) fn position(body: &str, at: usize) -> usize {
    body.get(..at)
        .map_or(1, |before| before.chars().count() + 1)
}

/// All words of a body; the last is [`Word::End`].
pub(super) fn tokens(body: &str) -> Result<Vec<Token>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = body.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = body.get(at..).unwrap_or_default();
        let start = at;
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if rest.starts_with("/*") {
            at += comment(rest).ok_or_else(|| unterminated("/* comment", body, start))?;
            continue;
        }
        let word = match c {
            '\'' => {
                let (text, length) = quoted(rest, '\'', false)
                    .ok_or_else(|| unterminated("quoted string", body, start))?;
                at += length;
                Word::Text(text)
            }
            '"' => {
                let (text, length) = quoted(rest, '"', false)
                    .ok_or_else(|| unterminated("quoted identifier", body, start))?;
                at += length;
                Word::Name { text, quoted: true }
            }
            'e' | 'E' | 'b' | 'B' | 'x' | 'X' | 'n' | 'N' if rest[1..].starts_with('\'') => {
                let escapes = matches!(c, 'e' | 'E');
                let (text, length) = quoted(&rest[1..], '\'', escapes)
                    .ok_or_else(|| unterminated("quoted string", body, start))?;
                at += 1 + length;
                Word::Text(text)
            }
            'u' | 'U' if rest[1..].starts_with("&'") || rest[1..].starts_with("&\"") => {
                let quote = if rest[2..].starts_with('\'') {
                    '\''
                } else {
                    '"'
                };
                let (text, length) = quoted(&rest[2..], quote, false)
                    .ok_or_else(|| unterminated("quoted string", body, start))?;
                at += 2 + length;
                match quote {
                    '"' => Word::Name { text, quoted: true },
                    _ => Word::Text(text),
                }
            }
            '$' => {
                let digits = rest[1..].chars().take_while(char::is_ascii_digit).count();
                if digits > 0 {
                    at += 1 + digits;
                    Word::Param(rest[..=digits].to_owned())
                } else if let Some(tag) = dollar_tag(rest) {
                    let inside = &rest[tag.len()..];
                    let length = inside
                        .find(tag)
                        .ok_or_else(|| unterminated("dollar-quoted string", body, start))?;
                    at += tag.len() * 2 + length;
                    Word::Text(inside[..length].to_owned())
                } else {
                    at += 1;
                    Word::Other('$')
                }
            }
            c if starts_name(c) => {
                let length: usize = rest
                    .chars()
                    .take_while(|c| goes_on(*c))
                    .map(char::len_utf8)
                    .sum();
                at += length;
                Word::Name {
                    text: rest[..length].to_lowercase(),
                    quoted: false,
                }
            }
            c if c.is_ascii_digit()
                || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) =>
            {
                at += number(rest);
                Word::Number(rest[..at - start].to_owned())
            }
            c => {
                let pair = PAIRS.iter().find(|pair| rest.starts_with(**pair));
                let single = || SINGLES.iter().find(|mark| rest.starts_with(**mark));
                match pair.or_else(single) {
                    Some(mark) => {
                        at += mark.len();
                        Word::Mark(mark)
                    }
                    None => {
                        at += c.len_utf8();
                        Word::Other(c)
                    }
                }
            }
        };
        out.push(Token {
            word,
            start,
            end: at,
        });
    }
    out.push(Token {
        word: Word::End,
        start: body.len(),
        end: body.len(),
    });
    Ok(out)
}

/// The length of a comment, which may have others inside.
fn comment(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// What stands between quotes, and its length with them.
fn quoted(rest: &str, quote: char, escapes: bool) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                    text.push(quote);
                }
                _ => return Some((text, at + quote.len_utf8())),
            }
        } else if c == '\\' && escapes {
            match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                other => text.push(other),
            }
        } else {
            text.push(c);
        }
    }
    None
}

/// `$tag$`, if the text begins with it.
fn dollar_tag(rest: &str) -> Option<&str> {
    let inside = rest.strip_prefix('$')?;
    let length = inside.find('$')?;
    let tag = &inside[..length];
    let mut chars = tag.chars();
    let good =
        chars.next().is_none_or(starts_name) && chars.all(|c| starts_name(c) || c.is_ascii_digit());
    good.then(|| &rest[..length + 2])
}

/// The length of a number: `1..2` is none with a point.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        let part = bytes.get(from..).unwrap_or_default();
        part.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1) != Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + signed);
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    end
}
