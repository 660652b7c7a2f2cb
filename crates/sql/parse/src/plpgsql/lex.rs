//! The words of a PL/pgSQL body, with where they stand.
//!
//! Owns: what SQL's tokens ([`lexer`](crate::lexer)) are in this language, whose key words are names in SQL. What
//! stands in SQL texts is read again by the SQL parser.

use crate::lexer::{Lexer, LexerOptions, TokenKind, Tokens};
use logstead_sql_types::error::SqlError;

/// A word of a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name or key word, folded to lower case unless it was quoted.
    Name {
        text: String,
        quoted: bool,
    },
    /// What a string says.
    Text(String),
    Number(String),
    /// `$1`.
    Param(String),
    /// A mark: one of `:= .. << >> => ; , . ( ) [ ] = % # :`.
    Mark(&'static str),
    /// Any other operator or literal.
    Other,
    End,
}

/// A word with its place, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) word: Word,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A byte as a position of errors: characters from 1.
pub(super) fn position(body: &str, at: usize) -> usize {
    crate::lexer::character(body, at)
}

/// All words of a body; the last is [`Word::End`]. What is wrong where they end, if they end too early.
pub(super) fn tokens(body: &str) -> (Vec<Token>, Option<SqlError>) {
    // Bodies are read as if `standard_conforming_strings` were on.
    let mut tokens = Lexer::client(body, LexerOptions::default());
    let error = tokens.error.take();
    let words = tokens.tokens.iter().map(|token| Token {
        word: word(&tokens, *token),
        start: token.start as usize,
        end: token.end as usize,
    });
    (words.collect(), error)
}

fn word(tokens: &Tokens<'_>, token: crate::lexer::Token) -> Word {
    use TokenKind as T;
    let written = || tokens.written(token).to_owned();
    match token.kind {
        T::Ident => Word::Name {
            text: tokens.value(token).into_owned(),
            quoted: false,
        },
        T::QuotedIdent => Word::Name {
            text: tokens.value(token).into_owned(),
            quoted: true,
        },
        T::Keyword(_) | T::NotLa | T::NullsLa | T::WithLa => Word::Name {
            text: written().to_ascii_lowercase(),
            quoted: false,
        },
        T::SConst => Word::Text(tokens.value(token).into_owned()),
        T::IConst | T::FConst => Word::Number(written()),
        T::Param => Word::Param(written()),
        T::ColonEquals => Word::Mark(":="),
        T::DotDot => Word::Mark(".."),
        T::EqualsGreater => Word::Mark("=>"),
        T::Semicolon => Word::Mark(";"),
        T::Comma => Word::Mark(","),
        T::Dot => Word::Mark("."),
        T::LParen => Word::Mark("("),
        T::RParen => Word::Mark(")"),
        T::LBracket => Word::Mark("["),
        T::RBracket => Word::Mark("]"),
        T::Equals => Word::Mark("="),
        T::Percent => Word::Mark("%"),
        T::Colon => Word::Mark(":"),
        T::Op => match tokens.written(token) {
            "<<" => Word::Mark("<<"),
            ">>" => Word::Mark(">>"),
            "#" => Word::Mark("#"),
            _ => Word::Other,
        },
        T::End | T::Error => Word::End,
        _ => Word::Other,
    }
}
