//! WHERE CURRENT OF, which the grammar library lacks: it travels as a comparison of a name that nobody can write with the cursor's.

use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::Result;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The name that stands for CURRENT OF.
const MARK: &str = "\0current of";

/// Replaces `CURRENT OF` behind the WHERE at `at`, if it stands there and UPDATE or DELETE has it.
pub(super) fn rewrite(text: &str, tokens: &mut [TokenWithSpan], at: usize) -> Result<()> {
    let named = matches!(tokens.get(at + 3).map(|t| &t.token), Some(Token::Word(_)));
    if !words(tokens, at + 1, &["current", "of"]) || !named || !is_of_change(&tokens[..at]) {
        return Ok(());
    }
    // Nothing goes with it.
    if let Some(after) = tokens.get(at + 4)
        && !matches!(after.token, Token::RParen | Token::SemiColon | Token::EOF)
        && !is_word(Some(after), "returning")
    {
        return Err(error_at_token(text, after));
    }
    let mark = Word {
        value: MARK.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    };
    tokens[at + 1].token = Token::Word(mark);
    tokens[at + 2].token = Token::Eq;
    Ok(())
}

/// Whether the clause behind `tokens` is one of UPDATE or DELETE.
fn is_of_change(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    for token in tokens.iter().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            Token::Word(_) if depth > 0 => {}
            _ if is_word(Some(token), "update") || is_word(Some(token), "delete") => return true,
            _ if is_word(Some(token), "select") => return false,
            _ => {}
        }
    }
    false
}

/// The cursor of `WHERE CURRENT OF`, if a condition is that.
pub fn current_of(condition: &ast::Expr) -> Option<&ast::Ident> {
    match condition {
        ast::Expr::BinaryOp { left, right, .. } => match (left.as_ref(), right.as_ref()) {
            (ast::Expr::Identifier(mark), ast::Expr::Identifier(name)) if mark.value == MARK => {
                Some(name)
            }
            _ => None,
        },
        _ => None,
    }
}
