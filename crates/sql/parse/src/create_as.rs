//! CREATE TABLE AS: bare column names and WITH [NO] DATA, which the grammar library lacks there; and SELECT INTO, which is the same.

use super::rewrite::{is_word, words};
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{Expr, Ident, ObjectName, Query, SetExpr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Takes both out of the tokens. The names become those of a subquery; true for WITH NO DATA.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> bool {
    if !is_word(tokens.first(), "create") {
        return false;
    }
    let Some(table) = (1..4).find(|at| is_word(tokens.get(*at), "table")) else {
        return false;
    };
    let Some(query) = query_start(tokens, table) else {
        return false;
    };
    let mut no_data = false;
    let length = tokens.len();
    if length > 3 && words(tokens, length - 3, &["with", "no", "data"]) {
        tokens.truncate(length - 3);
        no_data = true;
    } else if length > 2 && words(tokens, length - 2, &["with", "data"]) {
        tokens.truncate(length - 2);
    }
    name_columns(tokens, table, query);
    no_data
}

/// The subquery that a query with a list of columns becomes.
pub const NAMED_QUERY: &str = "query";

/// Makes CREATE TABLE AS of a SELECT ... INTO; false if it is none.
pub(super) fn of_select_into(statement: &mut Statement) -> bool {
    let Statement::Query(query) = statement else {
        return false;
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return false;
    };
    let Some(into) = select.into.take() else {
        return false;
    };
    let parts: Vec<Ident> = match into.targets.as_slice() {
        [Expr::Identifier(name)] => vec![name.clone()],
        [Expr::CompoundIdentifier(parts)] => parts.clone(),
        _ => {
            // The binder refuses it.
            select.into = Some(into);
            return false;
        }
    };
    let table = CreateTableBuilder::new(ObjectName::from(parts))
        .temporary(into.temporary)
        .query(Some(Box::new(Query::clone(query))));
    *statement = Statement::CreateTable(table.build());
    true
}

/// Place of the AS outside of parentheses.
fn query_start(tokens: &[TokenWithSpan], table: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(table) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth == 0 && is_word(Some(token), "as") => return Some(at),
            _ => {}
        }
    }
    None
}

/// `t (a, b) AS query` becomes `t AS SELECT * FROM (query) AS t (a, b)`.
fn name_columns(tokens: &mut Vec<TokenWithSpan>, table: usize, query: usize) {
    let is_open = |t: &TokenWithSpan| matches!(t.token, Token::LParen);
    let Some(open) = (table..query).find(|at| tokens.get(*at).is_some_and(is_open)) else {
        return;
    };
    let mut close = open + 1;
    // Names and commas in turn, nothing else: with types it is no list of names.
    while let Some(Token::Word(_)) = tokens.get(close).map(|t| &t.token) {
        match tokens.get(close + 1).map(|t| &t.token) {
            Some(Token::Comma) => close += 2,
            Some(Token::RParen) => {
                close += 1;
                break;
            }
            _ => return,
        }
    }
    if !matches!(tokens.get(close).map(|t| &t.token), Some(Token::RParen)) || close == open + 1 {
        return;
    }
    let names: Vec<TokenWithSpan> = tokens.get(open..=close).unwrap_or_default().to_vec();
    let Some(span) = tokens.get(query).map(|t| t.span) else {
        return;
    };
    let make = |token| TokenWithSpan { token, span };
    let word = |value: &str, keyword| {
        make(Token::Word(Word {
            value: value.to_owned(),
            quote_style: None,
            keyword,
        }))
    };
    let mut body = tokens.split_off(query + 1);
    tokens.drain(open..=close);
    tokens.extend([
        word("SELECT", Keyword::SELECT),
        make(Token::Mul),
        word("FROM", Keyword::FROM),
        make(Token::LParen),
    ]);
    tokens.append(&mut body);
    tokens.extend([
        make(Token::RParen),
        word("AS", Keyword::AS),
        word(NAMED_QUERY, Keyword::NoKeyword),
    ]);
    tokens.extend(names);
}
