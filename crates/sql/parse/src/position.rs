//! Places in a text, and syntax errors that name them as PostgreSQL does.

use super::is_recursion;
use logstead_sql_types::error::SqlError;
use logstead_sql_types::error::too_deep;
use logstead_types::SqlState;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, TokenizerError};

/// Byte offset of a line and column (both from 1, columns in characters).
pub fn byte_of(text: &str, at: Location) -> usize {
    let mut line_start = 0;
    for _ in 1..at.line {
        match text[line_start..].find('\n') {
            Some(i) => line_start += i + 1,
            None => return text.len(),
        }
    }
    let columns = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let rest = &text[line_start..];
    // ASCII lines, the usual ones, need no walk.
    if rest.len() >= columns && rest.as_bytes()[..columns].is_ascii() {
        return line_start + columns;
    }
    rest.char_indices()
        .nth(columns)
        .map_or(text.len(), |(i, _)| line_start + i)
}

/// As [`byte_of`] for places that come in their order: each part of the text is looked at once.
#[derive(Debug)]
pub(super) struct Walk {
    at: Location,
    byte: usize,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            at: Location { line: 1, column: 1 },
            byte: 0,
        }
    }
}

impl Walk {
    /// Byte offset of a place; one before the last is looked for from the beginning.
    pub(super) fn byte_of(&mut self, text: &str, at: Location) -> usize {
        if (at.line, at.column) < (self.at.line, self.at.column) {
            *self = Walk::default();
        }
        let rest = text.get(self.byte..).unwrap_or_default();
        let lines = at.line - self.at.line;
        let column = match lines {
            0 => (at.column - self.at.column).saturating_add(1),
            _ => at.column,
        };
        let line = lines.saturating_add(1);
        self.byte += byte_of(rest, Location { line, column });
        self.at = at;
        self.byte
    }
}

/// Positions in one text, for who asks for many: the text is looked through once.
#[derive(Debug, Default)]
pub struct Lines(std::cell::OnceCell<Vec<usize>>);

impl Lines {
    /// As [`position_of`]; `text` is the same each time.
    pub fn position_of(&self, text: &str, at: Location) -> usize {
        /// So few bytes are looked at once more each time.
        const NEAR: usize = 256;
        let column = usize::try_from(at.column).unwrap_or(usize::MAX);
        if at.line == 1
            && (1..NEAR).contains(&column)
            && text
                .as_bytes()
                .get(..column - 1)
                .is_some_and(<[u8]>::is_ascii)
        {
            return column;
        }
        let before = self.0.get_or_init(|| {
            let mut characters = 0;
            let mut before = vec![0];
            before.extend(text.split_inclusive('\n').map(|line| {
                characters += line.chars().count();
                characters
            }));
            before
        });
        let line = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let all = before.last().copied().unwrap_or(0);
        let start = before.get(line).copied().unwrap_or(all);
        start.saturating_add(column).min(all) + 1
    }
}

/// Position in characters from 1, as error responses give it.
pub fn position_of(text: &str, at: Location) -> usize {
    text[..byte_of(text, at)].chars().count() + 1
}

/// The error for what the tokenizer refuses.
pub(super) fn token_error(text: &str, error: &TokenizerError) -> SqlError {
    let start = byte_of(text, error.location);
    let message = error.message.as_str();
    // The tokenizer points at the start of a literal or at the end of the text, by kind.
    let (what, start) = if message.contains("dollar") {
        (
            "unterminated dollar-quoted string",
            text.find('$').unwrap_or(start),
        )
    } else if message.contains("comment") {
        ("unterminated /* comment", text.rfind("/*").unwrap_or(start))
    } else if message.contains("string literal") && message.contains("nterminated") {
        ("unterminated quoted string", start)
    } else if message.contains("close delimiter") {
        ("unterminated quoted identifier", start)
    } else {
        ("syntax error", start)
    };
    let position = text[..start].chars().count() + 1;
    if start >= text.len() {
        return SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
            .at(Some(position));
    }
    let near = &text[start..];
    let near = if what == "syntax error" {
        near.split_whitespace().next().unwrap_or(near)
    } else {
        near
    };
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("{what} at or near \"{near}\""),
    )
    .at(Some(position))
}

/// `syntax error at or near "token"`.
pub(super) fn error_at_token(text: &str, token: &TokenWithSpan) -> SqlError {
    if token.token == Token::EOF || token.span.start.line == 0 {
        return end_of_input(text);
    }
    let start = byte_of(text, token.span.start);
    let end = byte_of(text, token.span.end).max(start);
    let near = &text[start..end];
    if near.is_empty() {
        return end_of_input(text);
    }
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("syntax error at or near \"{near}\""),
    )
    .at(Some(text[..start].chars().count() + 1))
}

/// The error for what the grammar refuses; `next` is where the parser stood.
pub(super) fn parse_error(text: &str, error: &ParserError, next: &TokenWithSpan) -> SqlError {
    if is_recursion(error) {
        return too_deep();
    }
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
            message.as_str()
        }
        ParserError::RecursionLimitExceeded => "",
    };
    let Some(at) = location_in(message) else {
        if message.contains("EOF") {
            return end_of_input(text);
        }
        return error_at_token(text, next);
    };
    if message.contains("found: EOF") {
        return end_of_input(text);
    }
    let start = byte_of(text, at);
    let Some(near) = token_text(&text[start..]) else {
        return end_of_input(text);
    };
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("syntax error at or near \"{near}\""),
    )
    .at(Some(text[..start].chars().count() + 1))
}

/// What stands behind a NOT that the parser has not taken, if that is no NULL: PostgreSQL's grammar takes the NOT by
/// itself.
pub(super) fn behind_not(parser: &Parser<'_>) -> Option<TokenWithSpan> {
    let is = |token: &TokenWithSpan, wanted| matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.keyword == wanted);
    if !is(&parser.peek_token(), Keyword::NOT) {
        return None;
    }
    let next = parser.peek_nth_token(1);
    (matches!(next.token, Token::Word(_)) && !is(&next, Keyword::NULL)).then_some(next)
}

fn end_of_input(text: &str) -> SqlError {
    // PostgreSQL's grammar meets the semicolon before the end.
    if let Some(before) = text.trim_end().strip_suffix(';') {
        return SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \";\"")
            .at(Some(before.chars().count() + 1));
    }
    SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
        .at(Some(text.chars().count() + 1))
}

/// Reads "... at Line: 1, Column: 16" off the end of a parser message.
fn location_in(message: &str) -> Option<Location> {
    let at = message.rfind(" at Line: ")?;
    let rest = &message[at + " at Line: ".len()..];
    let (line, column) = rest.split_once(", Column: ")?;
    let column: String = column.chars().take_while(char::is_ascii_digit).collect();
    Some(Location {
        line: line.trim().parse().ok()?,
        column: column.parse().ok()?,
    })
}

/// The token that `text` begins with, roughly as PostgreSQL's scanner cuts it.
fn token_text(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    let end = if first == '\'' || first == '"' {
        text[1..].find(first).map_or(text.len(), |i| i + 2)
    } else if first.is_alphanumeric() || first == '_' || first == '$' {
        text.find(|c: char| {
            !(c.is_alphanumeric() || c == '_' || c == '$' || c == '.' && first.is_ascii_digit())
        })
        .unwrap_or(text.len())
    } else {
        const OPERATOR: &str = "+-*/<>=~!@#%^&|`?:";
        if OPERATOR.contains(first) {
            text.find(|c: char| !OPERATOR.contains(c))
                .unwrap_or(text.len())
        } else {
            first.len_utf8()
        }
    };
    Some(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_asked_one_by_one_and_of_lines_agree() {
        for text in ["", "a", "a\nbc\n\ndäf\r\ng", "ä\n", "\n\n"] {
            let lines = Lines::default();
            let (mut line, mut column) = (1, 1);
            for c in text.chars().chain(['\0']) {
                let at = Location { line, column };
                assert_eq!(
                    lines.position_of(text, at),
                    position_of(text, at),
                    "{text:?} {at:?}"
                );
                (line, column) = if c == '\n' {
                    (line + 1, 1)
                } else {
                    (line, column + 1)
                };
            }
        }
    }
}
