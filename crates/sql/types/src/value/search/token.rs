//! The words of the text forms of tsvector and tsquery.
//!
//! Owns: [`Tokens`], which reads one word after the other: bare or in quotes, with backslashes, in a tsvector with
//! places behind it.

use super::vector::{PLACE_MAX, WordPosition};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;

/// Whose text form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A tsvector's: words have places.
    Vector,
    /// A tsquery's: operators end a word.
    Query,
    /// A query as people write it for a search engine: a quote also ends a word, and nothing is an error.
    Web,
}

/// A word.
#[derive(Debug)]
pub(crate) struct Token {
    pub text: String,
    pub places: Vec<WordPosition>,
}

/// Reads words.
pub(crate) struct Tokens<'a> {
    /// The whole text, for messages.
    pub all: &'a str,
    /// Bytes that have been read.
    pub at: usize,
    mode: Mode,
}

/// What PostgreSQL takes for white space, in any locale of UTF-8.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}')
}

pub(crate) fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')' | '<')
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(all: &'a str, mode: Mode) -> Tokens<'a> {
        Tokens { all, at: 0, mode }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.all.get(self.at..).and_then(|rest| rest.chars().next())
    }

    pub(crate) fn step(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// A syntax error that shows the whole text.
    pub(crate) fn syntax(&self) -> SqlError {
        let what = match self.mode {
            Mode::Vector => "tsvector",
            _ => "tsquery",
        };
        SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("syntax error in {what}: \"{}\"", self.all),
        )
    }

    fn ends_word(&self, c: char) -> bool {
        is_space(c)
            || match self.mode {
                Mode::Vector => false,
                Mode::Query => is_operator(c),
                Mode::Web => is_operator(c) || c == '"',
            }
    }

    fn escaped(&mut self) -> Result<char> {
        match self.step() {
            Some(c) => Ok(c),
            None => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("there is no escaped character: \"{}\"", self.all),
            )),
        }
    }

    /// The next word; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Token>> {
        while self.peek().is_some_and(is_space) {
            self.step();
        }
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        let web = self.mode == Mode::Web;
        let mut text = String::new();
        if first == '\'' && !web {
            self.step();
            loop {
                match self.step() {
                    None => return Err(self.syntax()),
                    Some('\\') => text.push(self.escaped()?),
                    Some('\'') if self.peek() == Some('\'') => {
                        self.step();
                        text.push('\'');
                    }
                    Some('\'') => break,
                    Some(c) => text.push(c),
                }
            }
            if text.is_empty() {
                return Err(self.syntax());
            }
        } else {
            if self.mode == Mode::Query && is_operator(first) {
                return Err(self.syntax());
            }
            if web && (is_operator(first) || first == '"') {
                return Ok(None);
            }
            // Whatever else a word begins with is a part of it, a colon too.
            if first != '\\' || web {
                self.step();
                text.push(first);
            }
            loop {
                match self.peek() {
                    None => break,
                    Some('\\') if !web => {
                        self.step();
                        let c = self.escaped()?;
                        text.push(c);
                    }
                    Some(c) if self.ends_word(c) => break,
                    Some(':') => break,
                    Some(c) => {
                        self.step();
                        text.push(c);
                    }
                }
            }
        }
        let mut places = Vec::new();
        if self.mode == Mode::Vector && self.peek() == Some(':') {
            self.step();
            places = self.places()?;
        }
        Ok(Some(Token { text, places }))
    }

    fn places(&mut self) -> Result<Vec<WordPosition>> {
        let mut places = Vec::new();
        loop {
            let mut at: u64 = 0;
            if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                return Err(self.syntax());
            }
            while let Some(d) = self.peek().and_then(|c| c.to_digit(10)) {
                at = (at * 10 + u64::from(d)).min(1 << 40);
                self.step();
            }
            if at == 0 {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("wrong position info in tsvector: \"{}\"", self.all),
                ));
            }
            let mut weight = 0;
            loop {
                let given = match self.peek() {
                    None => None,
                    Some(',') => None,
                    Some('a' | 'A' | '*') => Some(3),
                    Some('b' | 'B') => Some(2),
                    Some('c' | 'C') => Some(1),
                    Some('d' | 'D') => Some(0),
                    Some(c) if is_space(c) => None,
                    // Digits behind a weight mean nothing.
                    Some(c) if c.is_ascii_digit() => {
                        self.step();
                        continue;
                    }
                    Some(_) => return Err(self.syntax()),
                };
                let Some(given) = given else { break };
                if weight != 0 {
                    return Err(self.syntax());
                }
                weight = given;
                self.step();
            }
            places.push(WordPosition {
                at: at.min(u64::from(PLACE_MAX)) as u16,
                weight,
            });
            if self.peek() != Some(',') {
                return Ok(places);
            }
            self.step();
        }
    }
}
