//! What definitions of columns say that the grammar library lacks, or takes where PostgreSQL does not: COMPRESSION,
//! and conditions behind DEFAULT.
//!
//! COMPRESSION travels as a collation under a name that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What the mark begins with; the method follows.
const COMPRESSION: &str = "compression=";

/// Words that go on with an expression and that no DEFAULT has outside of parentheses.
const NOT_IN_DEFAULT: [&str; 9] = [
    "and", "between", "ilike", "in", "isnull", "like", "notnull", "or", "similar",
];

/// Applies both to CREATE TABLE and ALTER TABLE.
pub(super) fn rewrite(text: &str, tokens: &mut [TokenWithSpan]) -> Result<()> {
    if super::index_commands::creates(tokens) {
        let nameless = |at: &usize| words(tokens, *at, &["if", "not", "exists", "on"]);
        if let Some(at) = (2..5).find(nameless) {
            return Err(error_at_token(text, &tokens[at + 3]));
        }
    }
    let creates =
        is_word(tokens.first(), "create") && (1..4).any(|at| is_word(tokens.get(at), "table"));
    if !creates {
        return Ok(());
    }
    let mut depth = 0_usize;
    let mut default = false;
    for at in 1..tokens.len() {
        match &tokens[at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => {
                depth = depth.saturating_sub(1);
                default &= depth > 0;
            }
            Token::Comma if depth == 1 => default = false,
            Token::Word(word) if depth == 1 && word.quote_style.is_none() => {
                let first = matches!(tokens[at - 1].token, Token::LParen | Token::Comma);
                if first {
                    continue;
                }
                let value = word.value.to_ascii_lowercase();
                match value.as_str() {
                    "default" => default = true,
                    "constraint" | "check" | "unique" | "primary" | "references" | "generated"
                    | "not" | "null" => default = false,
                    "compression" => carry(tokens, at),
                    word if default && NOT_IN_DEFAULT.contains(&word) => {
                        return Err(error_at_token(text, &tokens[at]));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn carry(tokens: &mut [TokenWithSpan], at: usize) {
    let Some(Token::Word(method)) = tokens.get(at + 1).map(|t| &t.token) else {
        return;
    };
    let method = match method.quote_style {
        Some(_) => method.value.clone(),
        None => method.value.to_lowercase(),
    };
    let mark = format!("{EXPRESSION_MARK}{COMPRESSION}{method}");
    tokens[at].token = Token::make_keyword("COLLATE");
    tokens[at + 1].token = Token::make_word(&mark, Some('"'));
}

/// The method of compression that a collation stands for.
pub fn compression(collation: &ast::ObjectName) -> Option<&str> {
    match collation.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => {
            let rest = name.value.strip_prefix(EXPRESSION_MARK)?;
            rest.strip_prefix(COMPRESSION)
        }
        _ => None,
    }
}
