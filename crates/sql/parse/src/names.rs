//! Names as the grammar reads them: identifiers folded, qualified names taken apart.

use crate::ast::{Location, Name};
use crate::lexer::{Category, Keyword, Lexer, TokenKind};
use crate::lowered as ast;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Longest identifier in bytes; longer ones are cut.
const NAME_MAX: usize = 63;

/// An identifier as PostgreSQL folds it: lower case unless quoted, cut to 63 bytes.
pub fn fold_ident(ident: &ast::Ident) -> String {
    let mut name = if ident.quote_style.is_some() {
        ident.value.clone()
    } else if ident.value.is_ascii() {
        ident.value.to_ascii_lowercase()
    } else {
        ident.value.to_lowercase()
    };
    if name.len() > NAME_MAX {
        let mut end = NAME_MAX;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
    }
    name
}

/// The parts of a qualified name.
fn name_parts(name: &ast::ObjectName) -> Vec<String> {
    name.0.iter().map(fold_ident).collect()
}

/// Splits a qualified name into schema and name; a third part in front must be this database.
pub fn schema_and_name(name: &ast::ObjectName, database: &str) -> Result<(Option<String>, String)> {
    // Mostly there is one part.
    if let [ident] = name.0.as_slice() {
        return Ok((None, fold_ident(ident)));
    }
    let names: Vec<Name> = name_parts(name).into_iter().map(Name::from).collect();
    schema_and_name_of(&names, database)
}

/// The same of names.
pub fn schema_and_name_of(names: &[Name], database: &str) -> Result<(Option<String>, String)> {
    let mut parts: Vec<String> = names.iter().map(ToString::to_string).collect();
    let last = parts.pop().unwrap_or_default();
    let schema = parts.pop();
    if let Some(catalog) = parts.pop()
        && (catalog != database || !parts.is_empty())
    {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cross-database references are not implemented: \"{}\"",
                names_shown(names)
            ),
        ));
    }
    Ok((schema, last))
}

/// The bytes of a qualified name that begins there, or of the one token there.
pub fn name_range(text: &str, location: Location) -> Option<(usize, usize)> {
    let start = location.byte()?;
    let token = |byte: u32| Lexer::token_at(text, byte as usize);
    let mut last = Lexer::token_at(text, start)?;
    while let Some(dot) = token(last.end).filter(|token| token.kind == TokenKind::Dot)
        && let Some(next) = token(dot.end)
    {
        last = next;
    }
    Some((start, last.end as usize))
}

/// Would a name be folded, or read as a word of the grammar, without quotes?
pub(crate) fn needs_quotes(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let goes_on = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'$';
    !begins
        || !bytes.all(goes_on)
        || Keyword::of(name).is_some_and(|keyword| keyword.category() != Category::Unreserved)
}

/// A qualified name, in quotes where they are needed.
pub fn names_shown(names: &[Name]) -> String {
    let shown = names.iter().map(|name| match needs_quotes(name) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    });
    shown.collect::<Vec<_>>().join(".")
}
