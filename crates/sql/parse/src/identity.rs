//! ALTER COLUMN ... SET GENERATED, SET of the sequence's options and RESTART, in one list: an action that the grammar library lacks.
//!
//! It travels as a SET DEFAULT of a name that nobody can write, in which the options stand as ALTER SEQUENCE has them.

use super::conflict_target::EXPRESSION_MARK;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What the mark begins with; a letter for SET GENERATED and the options follow.
const IDENTITY: &str = "identity options=";

/// What such an action says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityChange {
    /// SET GENERATED ALWAYS; or BY DEFAULT.
    pub always: Option<bool>,
    /// Options as behind ALTER SEQUENCE and its name.
    pub options: String,
}

/// Is there an option at `at`? How many tokens say so, and whether it is RESTART.
fn option_at(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, bool)> {
    if is_word(tokens.get(at), "restart") {
        return Some((0, true));
    }
    let known = [
        "generated",
        "start",
        "increment",
        "minvalue",
        "maxvalue",
        "no",
        "cache",
        "cycle",
        "sequence",
    ];
    let is_option = is_word(tokens.get(at), "set")
        && known.iter().any(|word| is_word(tokens.get(at + 1), word));
    is_option.then_some((1, false))
}

/// The action at `at` of a list of actions, if it is one; where it ends.
fn action(tokens: &[TokenWithSpan], at: usize) -> Result<Option<(IdentityChange, usize)>> {
    let mut change = IdentityChange {
        always: None,
        options: String::new(),
    };
    let mut restart = String::new();
    let mut next = at;
    while let Some((skipped, restarts)) = option_at(tokens, next) {
        next += skipped;
        if words(tokens, next, &["generated", "always"])
            || words(tokens, next, &["generated", "by", "default"])
        {
            let always = is_word(tokens.get(next + 1), "always");
            if change.always.replace(always).is_some() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "conflicting or redundant options",
                ));
            }
            next += if always { 2 } else { 3 };
            continue;
        }
        let out = match restarts {
            true => &mut restart,
            false => &mut change.options,
        };
        let from = next;
        while let Some(token) = tokens.get(next) {
            let ends = matches!(token.token, Token::Comma | Token::SemiColon | Token::EOF);
            if ends || (next > from && option_at(tokens, next).is_some()) {
                break;
            }
            out.push_str(&token.token.to_string());
            // A sign stands at its number.
            if token.token != Token::Minus {
                out.push(' ');
            }
            next += 1;
        }
    }
    change.options.push_str(&restart);
    Ok((next > at).then_some((change, next)))
}

/// Replaces these actions in ALTER TABLE.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut at = 2;
    while at < tokens.len() {
        let named = matches!(tokens[at - 1].token, Token::Word(_))
            && (is_word(tokens.get(at - 2), "alter") || is_word(tokens.get(at - 2), "column"));
        let found = match named && option_at(tokens, at).is_some() {
            true => action(tokens, at)?,
            false => None,
        };
        let Some((change, end)) = found else {
            at += 1;
            continue;
        };
        let letter = match change.always {
            Some(true) => 'a',
            Some(false) => 'd',
            None => '-',
        };
        let mark = format!("{EXPRESSION_MARK}{IDENTITY}{letter}{}", change.options);
        let span = tokens[at].span;
        let new = [
            Token::make_keyword("SET"),
            Token::make_keyword("DEFAULT"),
            Token::make_word(&mark, Some('"')),
        ];
        let new = new.map(|token| TokenWithSpan { token, span });
        tokens.splice(at..end, new);
        at += 3;
    }
    Ok(())
}

/// Whether the value of a SET DEFAULT says this instead.
pub fn identity_change(value: &ast::Expr) -> Option<IdentityChange> {
    let ast::Expr::Identifier(name) = value else {
        return None;
    };
    let rest = name.value.strip_prefix(EXPRESSION_MARK)?;
    let mut rest = rest.strip_prefix(IDENTITY)?.chars();
    let always = match rest.next()? {
        'a' => Some(true),
        'd' => Some(false),
        _ => None,
    };
    Some(IdentityChange {
        always,
        options: rest.as_str().to_owned(),
    })
}
