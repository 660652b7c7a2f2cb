//! Qualified names: taken apart, and where they stand.

use crate::ast::{Location, Name, cross_database};
use crate::lexer::{Lexer, TokenKind};
use logstead_sql_types::error::Result;

/// Splits a qualified name into schema and name; a third part in front must be this database.
pub fn schema_and_name(names: &[Name], database: &str) -> Result<(Option<String>, String)> {
    match names {
        [name] => Ok((None, name.to_string())),
        [schema, name] => Ok((Some(schema.to_string()), name.to_string())),
        [catalog, schema, name] if **catalog == *database => {
            Ok((Some(schema.to_string()), name.to_string()))
        }
        _ => Err(cross_database(names)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_behind_its_last_part() {
        let name = |text: &'static str, at| {
            let (from, to) = name_range(text, Location::at(at))?;
            text.get(from..to)
        };
        assert_eq!(name("FROM a.b WHERE", 5), Some("a.b"));
        let commented = "FROM a . \"b.c\" /* . */ . d, e";
        assert_eq!(name(commented, 5), Some("a . \"b.c\" /* . */ . d"));
        assert_eq!(name("'a.b'::c", 0), Some("'a.b'"));
        assert_eq!(name_range("a", Location::UNKNOWN), None);
    }
}
