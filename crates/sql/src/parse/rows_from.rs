//! ROWS FROM (f(...), g(...)), which the grammar library lacks: it travels as a call, by a name that nobody can write, of these calls.

use super::rewrite::words;
use super::span_position;
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

const MARK: &str = "\0rows from";

/// Rewrites ROWS FROM at `at`, if it stands there with its parenthesis.
pub(super) fn rewrite(text: &str, tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<()> {
    let opens = tokens.get(at + 2).is_some_and(|t| t.token == Token::LParen);
    if !words(tokens, at, &["rows", "from"]) || !opens {
        return Ok(());
    }
    let mut depth = 0_usize;
    for token in tokens.iter().skip(at + 2) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 1 && word.keyword == Keyword::AS => {
                let error = SqlError::unsupported("a column definition list in ROWS FROM");
                return Err(error.at(span_position(text, token.span)));
            }
            _ => {}
        }
    }
    tokens[at].token = Token::Word(Word {
        value: MARK.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    });
    tokens.remove(at + 1);
    Ok(())
}

/// The functions of ROWS FROM, if a call in FROM stands for it.
pub(crate) fn rows_from(
    name: &ast::ObjectName,
    args: &[ast::FunctionArg],
) -> Option<Vec<ast::Function>> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] if name.value == MARK => {}
        _ => return None,
    }
    let function = |arg: &ast::FunctionArg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Function(function))) => {
            Some(function.clone())
        }
        _ => None,
    };
    args.iter().map(function).collect()
}
