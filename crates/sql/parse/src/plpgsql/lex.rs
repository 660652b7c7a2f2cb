//! The words of a PL/pgSQL body, with where they stand.
//!
//! Owns: what SQL's tokens ([`lexer`](crate::lexer)) are in this language, whose key words are names in SQL. What
//! stands in SQL texts is read again by the SQL parser.

use crate::lexer::{Lexer, LexerOptions, TokenKind, Tokens};
use logstead_sql_types::error::SqlError;

/// A word of a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PlpgsqlWord {
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
    pub(super) word: PlpgsqlWord,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A byte as a position of errors: characters from 1.
pub(super) fn position(body: &str, at: usize) -> usize {
    crate::lexer::character(body, at)
}

/// All words of a body; the last is [`PlpgsqlWord::End`]. What is wrong where they end, if they end too early.
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

fn word(tokens: &Tokens<'_>, token: crate::lexer::Token) -> PlpgsqlWord {
    use TokenKind as T;
    let written = || tokens.written(token).to_owned();
    match token.kind {
        T::Ident => PlpgsqlWord::Name {
            text: tokens.value(token).into_owned(),
            quoted: false,
        },
        T::QuotedIdent => PlpgsqlWord::Name {
            text: tokens.value(token).into_owned(),
            quoted: true,
        },
        T::Keyword(_) | T::NotLa | T::NullsLa | T::WithLa => PlpgsqlWord::Name {
            text: written().to_ascii_lowercase(),
            quoted: false,
        },
        T::SConst => PlpgsqlWord::Text(tokens.value(token).into_owned()),
        T::IConst | T::FConst => PlpgsqlWord::Number(written()),
        T::Param => PlpgsqlWord::Param(written()),
        T::ColonEquals => PlpgsqlWord::Mark(":="),
        T::DotDot => PlpgsqlWord::Mark(".."),
        T::EqualsGreater => PlpgsqlWord::Mark("=>"),
        T::Semicolon => PlpgsqlWord::Mark(";"),
        T::Comma => PlpgsqlWord::Mark(","),
        T::Dot => PlpgsqlWord::Mark("."),
        T::LParen => PlpgsqlWord::Mark("("),
        T::RParen => PlpgsqlWord::Mark(")"),
        T::LBracket => PlpgsqlWord::Mark("["),
        T::RBracket => PlpgsqlWord::Mark("]"),
        T::Equals => PlpgsqlWord::Mark("="),
        T::Percent => PlpgsqlWord::Mark("%"),
        T::Colon => PlpgsqlWord::Mark(":"),
        T::Op => match tokens.written(token) {
            "<<" => PlpgsqlWord::Mark("<<"),
            ">>" => PlpgsqlWord::Mark(">>"),
            "#" => PlpgsqlWord::Mark("#"),
            _ => PlpgsqlWord::Other,
        },
        T::End | T::Error => PlpgsqlWord::End,
        _ => PlpgsqlWord::Other,
    }
}
