//! `ts_headline`, and the text form of its options.

use super::texts::configured;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::search::headline;
use logstead_sql_types::value::search::headline::Options;
use logstead_sql_types::value::search::query::Query;
use logstead_types::SqlState;

/// `ts_headline` of a text
pub(super) fn headline(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let (config, rest) = configured(cx, a)?;
    let (text, query, options) = match rest {
        [Datum::Text(text), query] => (text, query, Options::default()),
        [Datum::Text(text), query, Datum::Text(given)] => {
            (text, query, Options::read(&pairs(given)?)?)
        }
        _ => return Err(bad_args(a)),
    };
    let query = Query::of_datum(query)?;
    headline::headline(config, text, &query, &options)
}

/// `name = value, name = 'a value'` as pairs.
fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let invalid = || {
        SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("invalid parameter list format: \"{text}\""),
        )
    };
    let mut rest = text;
    let mut out = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return Ok(out);
        }
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => until_quote(quoted, '"').ok_or_else(invalid)?,
            None => {
                let end = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if name.is_empty() {
            return Err(invalid());
        }
        rest = after.trim_start().strip_prefix('=').ok_or_else(invalid)?;
        rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let (value, after) = match quote {
            Some(q) => until_quote(&rest[1..], q).ok_or_else(invalid)?,
            None => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || c == ',')
                    .unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if value.is_empty() && quote.is_none() {
            return Err(invalid());
        }
        out.push((name, value));
        rest = after;
    }
}

/// A quoted text up to its quote, which may stand in it twice; and what follows.
fn until_quote(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            out.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
            chars.next();
            out.push(quote);
        } else {
            return Some((out, &text[at + 1..]));
        }
    }
    None
}
