//! Subscripts where values are assigned, `SET a[2] = 5` and `INSERT INTO t (a[1])`: the grammar takes names there. What stands between the brackets travels
//! as one more part of the name, which begins with a mark.

use super::conflict_target::EXPRESSION_MARK;
use super::position::byte_of;
use super::rewrite::is_word;
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Words that end the assignments of SET.
const ENDS: [&str; 5] = ["from", "where", "returning", "when", "on"];

/// Replaces the subscripts of targets.
pub(super) fn rewrite(text: &str, tokens: &mut Vec<TokenWithSpan>) {
    let subscripts = |token: &TokenWithSpan| token.token == Token::LBracket;
    let changes = [
        "update", "insert", "merge", "with", "prepare", "explain", "copy",
    ];
    let may_change = changes.iter().any(|word| is_word(tokens.first(), word));
    if !may_change || !tokens.iter().any(subscripts) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        // What is called so is no SET.
        let named = at > 0
            && (is_word(tokens.get(at - 1), "as")
                || tokens.get(at - 1).map(|t| &t.token) == Some(&Token::Period));
        if is_word(tokens.get(at), "set") && !named {
            at = assignments(text, tokens, at + 1);
        } else if is_word(tokens.get(at), "insert") {
            at = columns(text, tokens, at + 1);
        } else {
            at += 1;
        }
    }
}

/// The targets of `target = value, target = value`; where they end.
fn assignments(text: &str, tokens: &mut Vec<TokenWithSpan>, from: usize) -> usize {
    let mut at = from;
    loop {
        at = match tokens.get(at).map(|t| &t.token) {
            Some(Token::LParen) => list(text, tokens, at),
            _ => target(text, tokens, at),
        };
        // The value.
        let mut depth = 0_usize;
        loop {
            match tokens.get(at).map(|t| &t.token) {
                None => return at,
                Some(Token::LParen | Token::LBracket) => depth += 1,
                // The end of what the whole stands in.
                Some(Token::RParen | Token::RBracket) if depth == 0 => return at,
                Some(Token::RParen | Token::RBracket) => depth -= 1,
                Some(Token::Comma) if depth == 0 => break,
                // IS DISTINCT FROM is an expression's.
                Some(Token::Word(_)) if depth == 0 => {
                    let of_expression = at > 0 && is_word(tokens.get(at - 1), "distinct");
                    let case = is_word(tokens.get(at), "case");
                    if case {
                        at = behind_case(tokens, at);
                        continue;
                    }
                    if !of_expression && ENDS.iter().any(|word| is_word(tokens.get(at), word)) {
                        return at;
                    }
                }
                Some(_) => {}
            }
            at += 1;
        }
        at += 1;
    }
}

/// Behind the END of the CASE at `at`.
fn behind_case(tokens: &[TokenWithSpan], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = at;
    while at < tokens.len() {
        if is_word(tokens.get(at), "case") {
            depth += 1;
        } else if is_word(tokens.get(at), "end") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
        at += 1;
    }
    at
}

/// The column list of INSERT, if there is one; behind it.
fn columns(text: &str, tokens: &mut Vec<TokenWithSpan>, from: usize) -> usize {
    let mut at = from;
    // INTO, the table's name and its alias; MERGE has none of them.
    while matches!(
        tokens.get(at).map(|t| &t.token),
        Some(Token::Word(_) | Token::Period)
    ) {
        if ["values", "select", "default", "with"]
            .iter()
            .any(|word| is_word(tokens.get(at), word))
        {
            return at;
        }
        at += 1;
    }
    match tokens.get(at).map(|t| &t.token) {
        Some(Token::LParen) => list(text, tokens, at),
        _ => at,
    }
}

/// Targets between parentheses that open at `at`; behind them.
fn list(text: &str, tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let end = target(text, tokens, at);
        match tokens.get(end).map(|t| &t.token) {
            Some(Token::Comma) => at = end + 1,
            Some(Token::RParen) => return end + 1,
            // No list of targets.
            _ => return end,
        }
    }
}

/// One target, `name.name[...].name`; behind it.
fn target(text: &str, tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let mut at = at;
    if !matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_))) {
        return at;
    }
    at += 1;
    loop {
        match tokens.get(at).map(|t| &t.token) {
            Some(Token::Period) => {
                at += 1;
                if matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_))) {
                    at += 1;
                } else {
                    return at;
                }
            }
            Some(Token::LBracket) => {
                let Some(end) = behind_brackets(tokens, at) else {
                    return at;
                };
                let (Some(first), Some(last)) = (tokens.get(at), tokens.get(end - 1)) else {
                    return at;
                };
                let span = first.span;
                let from = byte_of(text, span.start);
                let to = byte_of(text, last.span.end);
                let inside = text.get(from..to).unwrap_or_default();
                let word = Token::Word(Word {
                    value: format!("{EXPRESSION_MARK}{inside}"),
                    quote_style: Some('"'),
                    keyword: Keyword::NoKeyword,
                });
                let made = [Token::Period, word].map(|token| TokenWithSpan { token, span });
                tokens.splice(at..end, made);
                at += 2;
            }
            _ => return at,
        }
    }
}

/// Behind `[...][...]`, which opens at `at`.
fn behind_brackets(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut end = at;
    loop {
        match &tokens.get(end)?.token {
            Token::LBracket => depth += 1,
            Token::RBracket => {
                depth = depth.checked_sub(1)?;
                let more = tokens.get(end + 1).map(|t| &t.token) == Some(&Token::LBracket);
                if depth == 0 && !more {
                    return Some(end + 1);
                }
            }
            _ => {}
        }
        end += 1;
    }
}

/// The subscripts that a part of a target's name stands for.
pub fn subscripts(ident: &ast::Ident) -> Option<Result<Vec<ast::Subscript>>> {
    let inside = ident.value.strip_prefix(EXPRESSION_MARK)?;
    ident.quote_style?;
    Some(read(inside))
}

fn read(inside: &str) -> Result<Vec<ast::Subscript>> {
    let parsed = super::parse_expr(&format!("x{inside}")).map_err(|mut error| {
        error.fields_mut().position = None;
        error
    })?;
    let ast::Expr::CompoundFieldAccess { access_chain, .. } = parsed else {
        return Err(SqlError::unsupported("this kind of subscript"));
    };
    let subscripts = access_chain.into_iter().map(|access| match access {
        ast::AccessExpr::Subscript(subscript) => Ok(subscript),
        ast::AccessExpr::Dot(_) => Err(SqlError::unsupported("this kind of subscript")),
    });
    subscripts.collect()
}
