//! COPY ... FROM ... WHERE condition, which the grammar library does not know: the condition is taken off and read as a query's.

use super::position::position_of;
use super::rewrite::is_word;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Takes WHERE and what follows off a COPY, and gives the tokens of `SELECT WHERE condition`.
pub(super) fn take(
    text: &str,
    tokens: &mut Vec<TokenWithSpan>,
) -> Result<Option<Vec<TokenWithSpan>>> {
    if !is_word(tokens.first(), "copy") {
        return Ok(None);
    }
    let mut depth = 0_usize;
    let mut begin = None;
    let mut to = false;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 && is_word(Some(token), "to") => to = true,
            Token::Word(_) if depth == 0 && is_word(Some(token), "where") => {
                begin = Some(at);
                break;
            }
            _ => {}
        }
    }
    let Some(begin) = begin else { return Ok(None) };
    // Behind a query it is no clause at all, which the grammar says.
    if matches!(tokens.get(1).map(|t| &t.token), Some(Token::LParen)) {
        return Ok(None);
    }
    let condition = tokens.split_off(begin);
    let Some(first) = condition.first() else {
        return Ok(None);
    };
    if to {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "WHERE clause not allowed with COPY TO",
        )
        .at(Some(position_of(text, first.span.start))));
    }
    let select = TokenWithSpan {
        token: Token::make_keyword("SELECT"),
        span: first.span,
    };
    let one = TokenWithSpan {
        token: Token::Number("1".to_owned(), false),
        span: first.span,
    };
    Ok(Some([select, one].into_iter().chain(condition).collect()))
}

/// The condition of a query that has nothing else.
pub(super) fn condition(query: &ast::Statement) -> Option<ast::Expr> {
    let ast::Statement::Query(query) = query else {
        return None;
    };
    let alone = query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    match query.body.as_ref() {
        ast::SetExpr::Select(select) if alone => {
            let ast::GroupByExpr::Expressions(groups, _) = &select.group_by else {
                return None;
            };
            let plain =
                groups.is_empty() && select.having.is_none() && select.named_window.is_empty();
            select.selection.clone().filter(|_| plain)
        }
        _ => None,
    }
}
