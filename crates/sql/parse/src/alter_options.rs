//! What ALTER TABLE may say that the grammar library lacks: RESET of storage parameters, and COLLATE behind a column's new type.
//!
//! RESET travels as a SET to a value that nobody can write; the collation as that of the USING expression, under a name that nobody can
//! write.

use super::conflict_target::EXPRESSION_MARK;
use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::Result;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

fn named(value: String, span: Span) -> TokenWithSpan {
    let token = Token::Word(Word {
        value,
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    });
    TokenWithSpan { token, span }
}

fn is(tokens: &[TokenWithSpan], at: usize, wanted: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *wanted)
}

/// Applies both to ALTER TABLE and ALTER MATERIALIZED VIEW.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    if !is_word(tokens.first(), "alter") {
        return;
    }
    let mut at = 2;
    while at < tokens.len() {
        if is_word(tokens.get(at), "reset") && is(tokens, at + 1, &Token::LParen) {
            reset(tokens, at);
        } else if is_word(tokens.get(at), "type") && names_column(tokens, at) {
            collation(tokens, at + 1);
        }
        at += 1;
    }
}

/// Does `[SET DATA] TYPE` at `at` stand behind ALTER COLUMN name?
fn names_column(tokens: &[TokenWithSpan], at: usize) -> bool {
    let long = at >= 2 && words(tokens, at - 2, &["set", "data"]);
    let name = if long {
        at.checked_sub(3)
    } else {
        at.checked_sub(1)
    };
    let said = name.and_then(|name| name.checked_sub(1));
    said.is_some_and(|said| {
        is_word(tokens.get(said), "column") || (said > 2 && is_word(tokens.get(said), "alter"))
    })
}

/// `RESET (a, b)` as `SET (a = mark, b = mark)`.
fn reset(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut end = at + 2;
    loop {
        let named_one = matches!(tokens.get(end).map(|t| &t.token), Some(Token::Word(_)));
        if !named_one {
            return;
        }
        match tokens.get(end + 1).map(|t| &t.token) {
            Some(Token::Comma) => end += 2,
            Some(Token::RParen) => break,
            _ => return,
        }
    }
    tokens[at].token = Token::make_keyword("SET");
    for name in (at + 2..=end).rev().step_by(2) {
        let span = tokens[name].span;
        let value = named(EXPRESSION_MARK.to_string(), span);
        let token = Token::Eq;
        tokens.splice(name + 1..name + 1, [TokenWithSpan { token, span }, value]);
    }
}

/// Whether the value of a SET stands for RESET.
pub fn is_reset(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Identifier(name) if name.value.starts_with(EXPRESSION_MARK))
}

/// Moves COLLATE behind the type that begins at `at` into USING.
fn collation(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut depth = 0_usize;
    let mut end = at;
    while let Some(token) = tokens.get(end) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => return,
            _ if depth > 0 => {}
            _ if is_word(Some(token), "using") => return,
            _ if is_word(Some(token), "collate") => break,
            _ => {}
        }
        end += 1;
    }
    // The name: its last part is the collation's.
    let mut last = end + 1;
    while is(tokens, last + 1, &Token::Period) {
        last += 2;
    }
    let Some(Token::Word(word)) = tokens.get(last).map(|t| &t.token) else {
        return;
    };
    let name = match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    };
    let span = tokens[last].span;
    tokens.drain(end..=last);
    let plain = |token: Token| TokenWithSpan { token, span };
    let collate = [
        plain(Token::make_keyword("COLLATE")),
        named(format!("{EXPRESSION_MARK}{name}"), span),
    ];
    if !is_word(tokens.get(end), "using") {
        let column = named(EXPRESSION_MARK.to_string(), span);
        let using = [plain(Token::make_keyword("USING")), column];
        tokens.splice(end..end, using.into_iter().chain(collate));
        return;
    }
    let mut close = end + 1;
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(close) {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => break,
            _ => {}
        }
        close += 1;
    }
    let behind = [plain(Token::RParen)].into_iter().chain(collate);
    tokens.splice(close..close, behind);
    tokens.insert(end + 1, plain(Token::LParen));
}

/// What USING says, and the collation that stood behind the type.
pub fn type_collation(using: Option<&ast::Expr>) -> (Option<&ast::Expr>, Option<&ast::Ident>) {
    let (said, collation) = match using {
        Some(ast::Expr::Collate { expr, collation }) => match collation.0.as_slice() {
            [ast::ObjectNamePart::Identifier(name)] if name.value.starts_with(EXPRESSION_MARK) => {
                (Some(&**expr), Some(name))
            }
            _ => return (using, None),
        },
        _ => return (using, None),
    };
    (said.filter(|expr| !is_reset(expr)), collation)
}

/// 42601 for RENAME and SET SCHEMA of a table beside something else: each is a statement of its own.
pub(super) fn refuse_several(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    if !words(tokens, 0, &["alter", "table"]) {
        return Ok(());
    }
    let (mut depth, mut alone, mut first) = (0_i32, false, true);
    for (at, token) in tokens.iter().enumerate().skip(2) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                if alone {
                    return Err(error_at_token(text, token));
                }
                first = false;
                if is_word(tokens.get(at + 1), "rename") {
                    return Err(error_at_token(text, &tokens[at + 1]));
                }
                if words(tokens, at + 1, &["set", "schema"]) {
                    return Err(error_at_token(text, &tokens[at + 2]));
                }
            }
            _ if depth == 0 && first => {
                // Behind the table's name, which is a word itself.
                alone |= at > 2
                    && (words(tokens, at, &["rename", "to"])
                        || words(tokens, at, &["rename", "column"])
                        || words(tokens, at, &["rename", "constraint"])
                        || words(tokens, at, &["set", "schema"]));
            }
            _ => {}
        }
    }
    Ok(())
}
