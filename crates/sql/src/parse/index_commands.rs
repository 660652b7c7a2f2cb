//! REINDEX, CLUSTER and ALTER INDEX, which the grammar library lacks in the main.

use super::kind::IndexCommand;
use super::position::{error_at_token, parse_error};
use super::rewrite::{is_word, words};
use crate::catalog::text::fold;
use crate::error::Result;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub(super) fn parsed<T>(
    text: &str,
    tokens: &[TokenWithSpan],
    parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens.to_vec());
    let value =
        parse(&mut parser).map_err(|error| parse_error(text, &error, &parser.peek_token()))?;
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(error_at_token(text, &rest));
    }
    Ok(value)
}

/// REINDEX of an index, a table, a schema or a database; `None` for anything else.
pub(super) fn reindex(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<IndexCommand>> {
    let mut at = 1;
    let mut concurrently = false;
    if matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen)) {
        while let Some(token) = tokens.get(at) {
            at += 1;
            concurrently |= is_word(Some(token), "concurrently");
            if token.token == Token::RParen {
                break;
            }
        }
    }
    let word = |word: &str| is_word(tokens.get(at), word);
    let (table, schema) = (word("table"), word("schema"));
    let all = schema || word("database") || word("system");
    if !table && !all && !word("index") {
        return Ok(None);
    }
    at += 1;
    if is_word(tokens.get(at), "concurrently") {
        concurrently = true;
        at += 1;
    }
    if all {
        let name = parsed(text, tokens.get(at..).unwrap_or_default(), |p| {
            p.parse_identifier()
        })?;
        return Ok(Some(IndexCommand::ReindexAll {
            schema,
            name: fold(&name),
        }));
    }
    let name = parsed(text, tokens.get(at..).unwrap_or_default(), |p| {
        p.parse_object_name(false)
    })?;
    Ok(Some(IndexCommand::Reindex {
        table,
        name,
        concurrently,
    }))
}

/// CLUSTER of a table; `None` for that of all that have been clustered.
pub(super) fn cluster(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<IndexCommand>> {
    let mut at = 1;
    if matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen)) {
        let end = tokens.iter().position(|t| t.token == Token::RParen);
        at = end.map_or(tokens.len(), |end| end + 1);
    }
    at += usize::from(is_word(tokens.get(at), "verbose"));
    let rest = tokens.get(at..).unwrap_or_default();
    if rest.first().is_none_or(|t| t.token == Token::EOF) {
        return Ok(None);
    }
    let (table, index) = parsed(text, rest, |p| {
        let name = p.parse_object_name(false)?;
        if p.parse_keyword(Keyword::USING) {
            return Ok((name, Some(p.parse_identifier()?)));
        }
        // As it was written once: the index first.
        match (p.parse_keyword(Keyword::ON), name.0.as_slice()) {
            (true, [index]) => {
                let index = index.as_ident().cloned();
                Ok((p.parse_object_name(false)?, index))
            }
            _ => Ok((name, None)),
        }
    })?;
    Ok(Some(IndexCommand::Cluster { table, index }))
}

/// ALTER INDEX ... SET, RESET, RENAME.
pub(super) fn alter(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<IndexCommand>> {
    let if_exists = words(tokens, 2, &["if", "exists"]);
    let start = if if_exists { 4 } else { 2 };
    let action = (start..tokens.len()).find(|at| {
        ["set", "reset", "rename"]
            .iter()
            .any(|word| *at > start && is_word(tokens.get(*at), word))
    });
    let Some(action) = action else {
        return Ok(None);
    };
    let name = parsed(text, &tokens[start..action], |p| p.parse_object_name(false))?;
    let rest = &tokens[action..];
    if words(rest, 0, &["rename", "to"]) {
        let new = parsed(text, &rest[2..], |p| p.parse_object_name(false))?;
        return Ok(Some(IndexCommand::Rename {
            if_exists,
            name,
            new,
        }));
    }
    if !matches!(rest.get(1).map(|t| &t.token), Some(Token::LParen)) {
        return Ok(None);
    }
    if is_word(rest.first(), "set") {
        let options = parsed(text, rest, |p| p.parse_options(Keyword::SET))?;
        return Ok(Some(IndexCommand::Set {
            if_exists,
            name,
            options,
        }));
    }
    let options = parsed(text, &rest[1..], |p| {
        p.expect_token(&Token::LParen)?;
        let names = p.parse_comma_separated(Parser::parse_identifier)?;
        p.expect_token(&Token::RParen)?;
        Ok(names.iter().map(fold).collect())
    })?;
    Ok(Some(IndexCommand::Reset {
        if_exists,
        name,
        options,
    }))
}
