//! PostgreSQL's lexical rules (`scan.l`, `base_yylex`): from a text to tokens.
//!
//! Owns: tokens and where they stand, what a literal or a name comes to, the errors of both. Knows no grammar.
//!
//! A text is divided into tokens as a whole before it is read, so the grammar may look ahead as far as it needs. A
//! token is sixteen bytes: its kind and where it begins and ends. Its value is a slice of the text wherever the text
//! holds it as it is; what an escape, a doubled quote or a continued line changes stands beside the tokens. The first
//! error ends the tokens: it is told when the grammar comes to it, so that a syntax error in front of it is told
//! instead.
//!
//! Three words are other tokens by what follows them, as PostgreSQL has it so that one token ahead is enough for its
//! grammar: NOT in front of BETWEEN, IN, LIKE, ILIKE and SIMILAR, NULLS in front of FIRST and LAST, WITH in front of
//! TIME and ORDINALITY.
//!
//! Two entries: [`Lexer::client`] for what a client sends, [`Lexer::stored`] for what the catalog keeps. Names that
//! begin with a control character are references by number in stored texts (see [`ast`](crate::ast)); a client's text
//! that has one is refused, so no client can write such a reference.
//!
//! Names are cut to 63 bytes here, as PostgreSQL's scanner cuts them; [`Tokens::truncated`] says which, for the notice
//! that tells of it. References by number are as long as they are.

mod escapes;
mod keyword_table;
mod keywords;
mod literals;
#[cfg(test)]
mod tests;

pub use keywords::{Category, Keyword};

use logstead_sql_types::error::SqlError;
use logstead_sql_types::value::names::{NAME_LENGTH_MAX, truncate_name};
use logstead_types::SqlState;
use std::borrow::Cow;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "names of characters")]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// Where the lexer stopped: see [`Tokens::error`].
    Error,
    /// A name without quotes, folded when it is asked for.
    Ident,
    /// A name in quotes.
    QuotedIdent,
    /// A literal.
    SConst,
    /// `B'...'`
    BConst,
    /// `X'...'`
    XConst,
    /// An integer that fits into 32 bits.
    IConst,
    /// Any other number.
    FConst,
    /// `$1`
    Param,
    /// An operator that is none of the following.
    Op,
    Keyword(Keyword),
    /// NOT in front of BETWEEN, IN, LIKE, ILIKE, SIMILAR.
    NotLa,
    /// NULLS in front of FIRST, LAST.
    NullsLa,
    /// WITH in front of TIME, ORDINALITY.
    WithLa,
    TypeCast,
    DotDot,
    ColonEquals,
    EqualsGreater,
    LessEquals,
    GreaterEquals,
    NotEquals,
    Comma,
    LParen,
    RParen,
    LBracket,
    RBracket,
    Dot,
    Semicolon,
    Colon,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Less,
    Greater,
    Equals,
    /// A character that begins no token.
    Other,
}

/// No value beside the text.
const IN_TEXT: u32 = u32::MAX;
/// Names that begin with a character below this one are references by number in stored texts.
const MARKS_END: char = '\t';

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: u32,
    /// The byte behind it.
    pub end: u32,
    /// Index of its value, or [`IN_TEXT`].
    value: u32,
}

/// Settings that change what a text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexerOptions {
    /// `standard_conforming_strings`: backslashes are ordinary in ordinary literals.
    pub standard_conforming_strings: bool,
}

impl Default for LexerOptions {
    fn default() -> LexerOptions {
        LexerOptions {
            standard_conforming_strings: true,
        }
    }
}

/// The tokens of a text.
#[derive(Debug)]
pub struct Tokens<'a> {
    /// The text.
    pub text: &'a str,
    /// The tokens; the last one is [`TokenKind::End`] or [`TokenKind::Error`].
    pub tokens: Vec<Token>,
    /// What is wrong, if the last one is [`TokenKind::Error`].
    pub error: Option<SqlError>,
    /// Values that do not stand in the text as they are.
    values: Vec<Box<str>>,
    /// Names that were cut, in the order of the text.
    pub truncated: Vec<TruncatedName>,
}

/// A name that is longer than names may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncatedName {
    /// Its first byte in the text.
    pub(crate) start: u32,
    /// All of it.
    pub name: Box<str>,
}

impl TruncatedName {
    /// What is left of it.
    pub fn truncated(&self) -> &str {
        truncate_name(&self.name)
    }
}

impl<'a> Tokens<'a> {
    /// The token as it is written.
    #[inline]
    pub fn written(&self, token: Token) -> &'a str {
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// What a name or a literal says.
    pub fn value(&self, token: Token) -> Cow<'_, str> {
        if let Some(value) = self.values.get(token.value as usize) {
            return Cow::Borrowed(value);
        }
        let written = self.written(token);
        match token.kind {
            TokenKind::Ident if written.bytes().any(|b| b.is_ascii_uppercase()) => {
                Cow::Owned(written.to_ascii_lowercase())
            }
            TokenKind::QuotedIdent | TokenKind::SConst => {
                Cow::Borrowed(written.get(1..written.len() - 1).unwrap_or_default())
            }
            TokenKind::BConst | TokenKind::XConst => {
                Cow::Borrowed(written.get(2..written.len() - 1).unwrap_or_default())
            }
            _ => Cow::Borrowed(written),
        }
    }
}

/// Divides a text into tokens.
#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Where the next token begins.
    at: usize,
    options: LexerOptions,
    /// Names may be references by number.
    is_stored: bool,
    tokens: Vec<Token>,
    values: Vec<Box<str>>,
    truncated: Vec<TruncatedName>,
}

/// What went wrong, with the range of the text that the message shows.
type LexResult<T> = Result<T, Box<SqlError>>;

impl<'a> Lexer<'a> {
    /// The tokens of a text that a client has sent.
    pub fn client(text: &'a str, options: LexerOptions) -> Tokens<'a> {
        Lexer::new(text, options, false).run()
    }

    /// The tokens of a text that the catalog keeps.
    pub fn stored(text: &'a str) -> Tokens<'a> {
        Lexer::new(text, LexerOptions::default(), true).run()
    }

    /// How many tokens a client's text has, up to the first error. None is kept. Nobody else gets a turn meanwhile:
    /// whoever parses may hold a cache of statements.
    pub fn count(text: &'a str) -> usize {
        let mut lexer = Lexer::new("", LexerOptions::default(), false);
        (lexer.text, lexer.bytes) = (text, text.as_bytes());
        let mut count = 0;
        loop {
            if lexer.step().is_err() {
                return count;
            }
            count += lexer.tokens.len();
            let last = lexer.tokens.pop();
            if last.is_some_and(|token| token.kind == TokenKind::End) {
                return count;
            }
            lexer.tokens.clear();
            lexer.values.clear();
            lexer.truncated.clear();
        }
    }

    /// The token that begins at a byte of a text that has been divided into tokens, or the next one behind it.
    pub(crate) fn token_at(text: &'a str, byte: usize) -> Option<Token> {
        let mut lexer = Lexer::new("", LexerOptions::default(), true);
        (lexer.text, lexer.bytes, lexer.at) = (text, text.as_bytes(), byte);
        lexer.one().ok()
    }

    fn new(text: &'a str, options: LexerOptions, is_stored: bool) -> Lexer<'a> {
        Lexer {
            text,
            bytes: text.as_bytes(),
            at: 0,
            options,
            is_stored,
            tokens: Vec::with_capacity(text.len() / 4 + 4),
            values: Vec::new(),
            truncated: Vec::new(),
        }
    }

    fn run(mut self) -> Tokens<'a> {
        let error = match self.all() {
            Ok(()) => None,
            Err(error) => {
                self.stop();
                Some(*error)
            }
        };
        Tokens {
            text: self.text,
            tokens: self.tokens,
            error,
            values: self.values,
            truncated: self.truncated,
        }
    }

    /// Ends the tokens where the error is. What is one token with what follows it is not seen either.
    fn stop(&mut self) {
        use TokenKind as T;
        let looks_ahead = |kind| {
            matches!(
                kind,
                T::Keyword(Keyword::Not | Keyword::Nulls | Keyword::With)
            )
        };
        while self.tokens.last().is_some_and(|t| looks_ahead(t.kind)) {
            self.tokens.pop();
        }
        let at = self.at as u32;
        self.tokens.push(Token {
            kind: T::Error,
            start: at,
            end: at,
            value: IN_TEXT,
        });
    }

    #[inline]
    fn byte(&self, at: usize) -> u8 {
        // Zero is in no text.
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        self.push_value(kind, end, IN_TEXT);
    }

    fn push_value(&mut self, kind: TokenKind, end: usize, value: u32) {
        use TokenKind as T;
        if let (T::Keyword(keyword), Some(last)) = (kind, self.tokens.last_mut()) {
            last.kind = match (last.kind, keyword) {
                (
                    T::Keyword(Keyword::Not),
                    Keyword::Between
                    | Keyword::In
                    | Keyword::Like
                    | Keyword::Ilike
                    | Keyword::Similar,
                ) => T::NotLa,
                (T::Keyword(Keyword::Nulls), Keyword::First | Keyword::Last) => T::NullsLa,
                (T::Keyword(Keyword::With), Keyword::Time | Keyword::Ordinality) => T::WithLa,
                (other, _) => other,
            };
        }
        self.tokens.push(Token {
            kind,
            start: self.at as u32,
            end: end as u32,
            value,
        });
        self.at = end;
    }

    /// Keeps a value that does not stand in the text as it is.
    fn keep(&mut self, value: String) -> u32 {
        self.values.push(value.into_boxed_str());
        (self.values.len() - 1) as u32
    }

    /// Keeps what is left of a name that is too long.
    fn keep_truncated(&mut self, name: Box<str>) -> u32 {
        let value = self.keep(truncate_name(&name).to_owned());
        self.truncated.push(TruncatedName {
            start: self.at as u32,
            name,
        });
        value
    }

    /// `message at or near "..."`, which shows the text from `start` to `end`.
    fn error(&self, message: &str, start: usize, end: usize) -> Box<SqlError> {
        Box::new(near(self.text, message, start, end))
    }

    fn all(&mut self) -> LexResult<()> {
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(Box::new(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "a text of statements of more than 4 GiB",
            )));
        }
        while self.tokens.last().is_none_or(|t| t.kind != TokenKind::End) {
            self.step()?;
        }
        Ok(())
    }

    /// Reads the next token, or white space.
    fn step(&mut self) -> LexResult<()> {
        let byte = self.byte(self.at);
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.at += 1,
            b'-' if self.byte(self.at + 1) == b'-' => self.at = self.line_end(self.at),
            b'/' if self.byte(self.at + 1) == b'*' => self.at = self.comment_end(self.at)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(byte)?,
            b'0'..=b'9' => self.number()?,
            b'.' if self.byte(self.at + 1).is_ascii_digit() => self.number()?,
            b'\'' if self.options.standard_conforming_strings => self.literal(self.at)?,
            b'\'' => self.escaped_literal(self.at)?,
            b'"' => self.quoted_ident()?,
            b'$' => self.dollar()?,
            0 if self.at >= self.bytes.len() => self.push(TokenKind::End, self.at),
            _ => self.symbol(byte)?,
        }
        Ok(())
    }

    /// Reads up to the first token.
    fn one(&mut self) -> LexResult<Token> {
        loop {
            if let Some(token) = self.tokens.last() {
                return Ok(*token);
            }
            self.step()?;
        }
    }

    /// Where the line ends that `from` is in.
    fn line_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let length = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
        from + length.unwrap_or(rest.len())
    }

    /// Behind the comment that begins at `start`; comments nest.
    fn comment_end(&self, start: usize) -> LexResult<usize> {
        let mut depth = 1_usize;
        let mut at = start + 2;
        while depth > 0 {
            match (self.byte(at), self.byte(at + 1)) {
                (b'/', b'*') => {
                    depth += 1;
                    at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    at += 2;
                }
                _ if at >= self.bytes.len() => {
                    return Err(self.error("unterminated /* comment", start, at));
                }
                _ => at += 1,
            }
        }
        Ok(at)
    }

    /// The end of the name that begins at `from`.
    #[inline]
    fn name_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| continues_name(**b)).count()
    }

    fn word(&mut self, first: u8) -> LexResult<()> {
        let next = self.byte(self.at + 1);
        match (first | 0x20, next) {
            (b'e', b'\'') => return self.escaped_literal(self.at + 1),
            (b'b', b'\'') => return self.bits(TokenKind::BConst),
            (b'x', b'\'') => return self.bits(TokenKind::XConst),
            (b'n', b'\'') => {
                self.push(TokenKind::Keyword(Keyword::Nchar), self.at + 1);
                return Ok(());
            }
            (b'u', b'&') => match self.byte(self.at + 2) {
                b'\'' => return self.unicode_literal(),
                b'"' => return self.unicode_ident(),
                _ => {}
            },
            _ => {}
        }
        let end = self.name_end(self.at);
        let word = self.text.get(self.at..end).unwrap_or_default();
        let kind = match Keyword::of(word) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None => TokenKind::Ident,
        };
        let value = match kind {
            TokenKind::Ident if word.len() > NAME_LENGTH_MAX => {
                self.keep_truncated(word.to_ascii_lowercase().into())
            }
            _ => IN_TEXT,
        };
        self.push_value(kind, end, value);
        Ok(())
    }

    fn digits_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| b.is_ascii_digit()).count()
    }

    fn number(&mut self) -> LexResult<()> {
        let mut end = self.digits_end(self.at);
        let mut kind = TokenKind::IConst;
        // `1..2` is no number with a point.
        if self.byte(end) == b'.' && !(end > self.at && self.byte(end + 1) == b'.') {
            end = self.digits_end(end + 1);
            kind = TokenKind::FConst;
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let signed = usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            let digits = end + 1 + signed;
            if self.byte(digits).is_ascii_digit() {
                // As letters behind a number the exponent may be longer: `1e5$`.
                let junk_end = self.name_end(end);
                end = self.digits_end(digits);
                kind = TokenKind::FConst;
                if junk_end > end {
                    let message = "trailing junk after numeric literal";
                    return Err(self.error(message, self.at, junk_end));
                }
            } else if signed == 1 {
                return Err(self.error("trailing junk after numeric literal", self.at, digits));
            }
        }
        self.no_junk(end, "trailing junk after numeric literal")?;
        let written = self.text.get(self.at..end).unwrap_or_default();
        if kind == TokenKind::IConst && written.parse::<i32>().is_err() {
            kind = TokenKind::FConst;
        }
        self.push(kind, end);
        Ok(())
    }

    fn no_junk(&self, end: usize, message: &str) -> LexResult<()> {
        match begins_name(self.byte(end)) {
            true => Err(self.error(message, self.at, self.name_end(end))),
            false => Ok(()),
        }
    }

    fn dollar(&mut self) -> LexResult<()> {
        let next = self.byte(self.at + 1);
        if next.is_ascii_digit() {
            let end = self.digits_end(self.at + 1);
            self.no_junk(end, "trailing junk after parameter")?;
            self.push(TokenKind::Param, end);
            return Ok(());
        }
        let tag_end = match begins_name(next) {
            true => {
                let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
                let is_of_tag = |b: &&u8| continues_name(**b) && **b != b'$';
                self.at + 1 + rest.iter().take_while(is_of_tag).count()
            }
            false => self.at + 1,
        };
        if self.byte(tag_end) != b'$' {
            self.push(TokenKind::Other, self.at + 1);
            return Ok(());
        }
        let delimiter = self.text.get(self.at..=tag_end).unwrap_or_default();
        let inside = self.text.get(tag_end + 1..).unwrap_or_default();
        let Some(length) = inside.find(delimiter) else {
            let message = "unterminated dollar-quoted string";
            return Err(self.error(message, self.at, self.bytes.len()));
        };
        let value = self.keep(inside.get(..length).unwrap_or_default().to_owned());
        let end = tag_end + 1 + length + delimiter.len();
        self.push_value(TokenKind::SConst, end, value);
        Ok(())
    }

    fn symbol(&mut self, byte: u8) -> LexResult<()> {
        use TokenKind as T;
        let next = self.byte(self.at + 1);
        let (kind, length) = match (byte, next) {
            (b',', _) => (T::Comma, 1),
            (b'(', _) => (T::LParen, 1),
            (b')', _) => (T::RParen, 1),
            (b'[', _) => (T::LBracket, 1),
            (b']', _) => (T::RBracket, 1),
            (b';', _) => (T::Semicolon, 1),
            (b'.', b'.') => (T::DotDot, 2),
            (b'.', _) => (T::Dot, 1),
            (b':', b':') => (T::TypeCast, 2),
            (b':', b'=') => (T::ColonEquals, 2),
            (b':', _) => (T::Colon, 1),
            _ if is_of_operator(byte) => return self.operator(),
            _ => (T::Other, 1),
        };
        self.push(kind, self.at + length);
        Ok(())
    }

    fn operator(&mut self) -> LexResult<()> {
        use TokenKind as T;
        let mut end = self.at;
        while is_of_operator(self.byte(end)) {
            // A comment ends an operator.
            if end > self.at
                && matches!(
                    (self.byte(end), self.byte(end + 1)),
                    (b'/', b'*') | (b'-', b'-')
                )
            {
                break;
            }
            end += 1;
        }
        let bytes = self.bytes.get(self.at..end).unwrap_or_default();
        let signed =
            |length: usize| length > 1 && matches!(bytes.get(length - 1), Some(b'+' | b'-'));
        let mut length = bytes.len();
        // With one of these an operator may end with a sign.
        let unusual = |b: &u8| b"~!@#^&|`?%".contains(b);
        if signed(length) && !bytes.iter().any(unusual) {
            while signed(length) {
                length -= 1;
            }
        }
        let kind = match bytes.get(..length).unwrap_or_default() {
            b"+" => T::Plus,
            b"-" => T::Minus,
            b"*" => T::Star,
            b"/" => T::Slash,
            b"%" => T::Percent,
            b"^" => T::Caret,
            b"<" => T::Less,
            b">" => T::Greater,
            b"=" => T::Equals,
            b"=>" => T::EqualsGreater,
            b"<=" => T::LessEquals,
            b">=" => T::GreaterEquals,
            b"<>" | b"!=" => T::NotEquals,
            _ => T::Op,
        };
        if length >= 64 {
            return Err(self.error("operator too long", self.at, self.at + length));
        }
        self.push(kind, self.at + length);
        Ok(())
    }
}

/// `message at or near "..."`, which shows the text from `start` to `end`; at the end of the text it says so.
pub(crate) fn near(text: &str, message: &str, start: usize, end: usize) -> SqlError {
    let message = match text.get(start..end) {
        Some(shown) if start < text.len() => format!("{message} at or near \"{shown}\""),
        _ => format!("{message} at end of input"),
    };
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(character(text, start)))
}

/// The number of the character that a byte is in, from 1: how errors tell positions.
pub(crate) fn character(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    before.iter().filter(|b| **b & 0xc0 != 0x80).count() + 1
}

#[inline]
fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

#[inline]
fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[inline]
fn is_of_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'!'
            | b'@'
            | b'#'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
            | b'<'
            | b'>'
            | b'='
    )
}
