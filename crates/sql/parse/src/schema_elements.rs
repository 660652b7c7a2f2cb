//! CREATE SCHEMA with what is to be made in it, and CREATE TABLE AS EXECUTE: statements that consist of others, each parsed as if it stood alone.

use super::kind::StatementKind;
use super::rewrite::{is_word, words};
use super::{Parsed, Tree};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast::{self, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};
use std::sync::Arc;

/// The order in which the parts of CREATE SCHEMA are done, whatever the order in which they stand: each may need those before it.
fn rank(tokens: &[TokenWithSpan]) -> u8 {
    let is = |word: &str| {
        // TEMPORARY, UNIQUE, OR REPLACE, CONSTRAINT and the like stand between.
        let mut first = 1..5.min(tokens.len());
        first.any(|at| is_word(tokens.get(at), word))
    };
    match () {
        () if is_word(tokens.first(), "grant") => 5,
        () if is("sequence") => 0,
        () if is("table") => 1,
        () if is("view") => 2,
        () if is("index") => 3,
        () if is("trigger") => 4,
        () => 6,
    }
}

/// Where the parts of CREATE SCHEMA begin; nothing for other statements and for one without parts.
fn begins(tokens: &[TokenWithSpan]) -> Vec<usize> {
    if !words(tokens, 0, &["create", "schema"]) {
        return Vec::new();
    }
    let mut depth = 0_i32;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(2) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth > 0 => {}
            _ if is_word(Some(token), "create") => found.push(at),
            // WITH GRANT OPTION begins nothing.
            _ if is_word(Some(token), "grant") && !is_word(tokens.get(at - 1), "with") => {
                found.push(at);
            }
            _ => {}
        }
    }
    found
}

/// CREATE SCHEMA and its parts in the order in which they are done, if it has any.
pub(super) fn schema(
    tokens: &[TokenWithSpan],
    mut parse: impl FnMut(Vec<TokenWithSpan>) -> Result<Parsed>,
) -> Result<Option<Parsed>> {
    let begins = begins(tokens);
    let Some(&first) = begins.first() else {
        return Ok(None);
    };
    if words(tokens, 2, &["if", "not", "exists"]) {
        return Err(SqlError::unsupported_text(
            "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
        ));
    }
    let head = parse(tokens.get(..first).unwrap_or_default().to_vec())?;
    let ends = begins.iter().skip(1).copied().chain([tokens.len()]);
    let mut elements = Vec::new();
    for (begin, end) in begins.iter().copied().zip(ends) {
        let part = tokens.get(begin..end).unwrap_or_default();
        let rank = rank(part);
        if rank == 6 {
            let text = part.get(1).map(|token| token.token.to_string());
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{}\"", text.unwrap_or_default()),
            ));
        }
        elements.push((rank, parse(part.to_vec())?));
    }
    elements.sort_by_key(|(rank, _)| *rank);
    let elements = elements.into_iter().map(|(_, parsed)| parsed).collect();
    Ok(Some(Parsed {
        kind: StatementKind::SchemaElements(Arc::new(elements)),
        ..head
    }))
}

/// CREATE TABLE AS EXECUTE: the statement with a query in the place of EXECUTE, and that.
pub(super) fn table_of_execute(
    tokens: &[TokenWithSpan],
    mut parse: impl FnMut(Vec<TokenWithSpan>) -> Result<Parsed>,
) -> Result<Option<Parsed>> {
    if !is_word(tokens.first(), "create") || !(1..4).any(|at| is_word(tokens.get(at), "table")) {
        return Ok(None);
    }
    let mut depth = 0_i32;
    let found = tokens.iter().enumerate().position(|(at, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && words(tokens, at, &["as"])
    });
    // A later AS is the query's.
    let from = found.map(|at| at + 1);
    let Some(from) = from.filter(|from| words(tokens, *from, &["execute"])) else {
        return Ok(None);
    };
    let length = tokens.len();
    let to = if words(tokens, length.saturating_sub(3), &["with", "no", "data"]) {
        length - 3
    } else if words(tokens, length.saturating_sub(2), &["with", "data"]) {
        length - 2
    } else {
        length
    };
    let execute = parse(tokens.get(from..to).unwrap_or_default().to_vec())?;
    let Statement::Execute { .. } = &**execute.statement else {
        return Ok(None);
    };
    let span = tokens
        .get(from)
        .map_or_else(Span::empty, |token| token.span);
    let select = Token::Word(Word {
        value: "SELECT".to_owned(),
        quote_style: None,
        keyword: Keyword::SELECT,
    });
    let number = Token::Number("1".to_owned(), false);
    let query = [select, number].map(|token| TokenWithSpan { token, span });
    let mut rest = tokens.to_vec();
    rest.splice(from..to, query);
    let table = parse(rest)?;
    Ok(Some(Parsed {
        kind: StatementKind::TableOfExecute(execute.statement),
        ..table
    }))
}

/// The statement with this query in the place of the one that stood for EXECUTE.
pub fn with_query(table: &Tree, query: ast::Query) -> Result<Tree> {
    let mut statement = Statement::clone(table);
    let Statement::CreateTable(create) = &mut statement else {
        return Err(SqlError::internal("CREATE TABLE AS of another statement"));
    };
    let wanted = create
        .query
        .as_mut()
        .ok_or_else(|| SqlError::internal("CREATE TABLE AS without a query"))?;
    // Where columns have names the query is a subquery: see `create_as`.
    let inner = match wanted.body.as_mut() {
        ast::SetExpr::Select(select) => match select.from.as_mut_slice() {
            [from] => match &mut from.relation {
                ast::TableFactor::Derived { subquery, .. } => Some(subquery),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    match inner {
        Some(inner) => **inner = query,
        None => **wanted = query,
    }
    Ok(Tree::from(statement))
}
