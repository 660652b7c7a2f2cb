//! REINDEX, CLUSTER and ALTER INDEX, which the grammar library lacks in the main.

use super::fold;
use super::kind::{IndexAction, IndexCommand};
use super::position::{error_at_token, parse_error};
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
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
    let (table, schema, system) = (word("table"), word("schema"), word("system"));
    let all = schema || word("database") || system;
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
        if system && concurrently {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot reindex system catalogs concurrently",
            ));
        }
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

/// ALTER INDEX ... ALTER COLUMN ... SET STATISTICS, SET TABLESPACE, ATTACH PARTITION, DEPENDS ON EXTENSION.
fn alter_other(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<IndexCommand>> {
    let if_exists = words(tokens, 2, &["if", "exists"]);
    let start = if if_exists { 4 } else { 2 };
    let mut at = start;
    let Some(name) = super::constraints::name(tokens, &mut at) else {
        return Ok(None);
    };
    let made = |action| {
        Ok(Some(IndexCommand::Alter {
            if_exists,
            name: name.clone(),
            action,
        }))
    };
    let word_at = |at: usize| match tokens.get(at).map(|t| (&t.token, t.span)) {
        Some((Token::Word(word), span)) => Ok(fold(&word.clone().into_ident(span))),
        _ => Err(super::constraints::error_at(text, tokens, at)),
    };
    let ends = |at: usize| match tokens.get(at).map(|t| &t.token) {
        None | Some(Token::EOF | Token::SemiColon) => Ok(()),
        _ => Err(super::constraints::error_at(text, tokens, at)),
    };
    if words(tokens, at, &["set", "tablespace"]) {
        let tablespace = word_at(at + 2)?;
        ends(at + 3)?;
        return made(IndexAction::Tablespace(tablespace));
    }
    if words(tokens, at, &["attach", "partition"]) {
        return made(IndexAction::AttachPartition);
    }
    if words(tokens, at, &["depends", "on", "extension"])
        || words(tokens, at, &["no", "depends", "on", "extension"])
    {
        return made(IndexAction::DependsOnExtension);
    }
    if !is_word(tokens.get(at), "alter") {
        return Ok(None);
    }
    at += 1 + usize::from(is_word(tokens.get(at + 1), "column"));
    let rest = tokens.get(at..).unwrap_or_default();
    let (column, target) = parsed(text, rest, |p| {
        let column = p.parse_literal_uint()?;
        p.expect_keywords(&[Keyword::SET, Keyword::STATISTICS])?;
        let negative = p.consume_token(&Token::Minus);
        let target = i64::try_from(p.parse_literal_uint()?).unwrap_or(i64::MAX);
        Ok((column, if negative { -target } else { target }))
    })?;
    made(IndexAction::Statistics {
        column: usize::try_from(column).unwrap_or(usize::MAX),
        target: i32::try_from(target).unwrap_or(i32::MAX),
    })
}

/// ALTER INDEX ... SET, RESET, RENAME.
pub(super) fn alter(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<IndexCommand>> {
    if let Some(other) = alter_other(text, tokens)? {
        return Ok(Some(other));
    }
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

/// Is this CREATE [UNIQUE] INDEX?
pub(super) fn creates(tokens: &[TokenWithSpan]) -> bool {
    words(tokens, 0, &["create", "index"]) || words(tokens, 0, &["create", "unique", "index"])
}
