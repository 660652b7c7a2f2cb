//! ALTER COLUMN ... DROP EXPRESSION, DROP IDENTITY and SET GENERATED, which the grammar library lacks: they travel as a SET DEFAULT of a
//! name that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use super::rewrite::words;
use super::span_position;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What was said of how a column is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeneratedChange {
    /// DROP EXPRESSION; IF EXISTS.
    DropExpression(bool),
    /// DROP IDENTITY; IF EXISTS.
    DropIdentity(bool),
    /// SET GENERATED ALWAYS; or BY DEFAULT.
    SetIdentity(bool),
    /// SET STORAGE: `attstorage`.
    Storage(char),
    /// SET COMPRESSION: `attcompression`; none is the default.
    Compression(Option<char>),
    /// SET STATISTICS: `attstattarget` as it was said.
    Statistics(i32),
}

/// The forms, each with its words and mark.
const FORMS: [(&[&str], &str, GeneratedChange); 12] = [
    (
        &["drop", "expression", "if", "exists"],
        "skip",
        GeneratedChange::DropExpression(true),
    ),
    (
        &["drop", "expression"],
        "",
        GeneratedChange::DropExpression(false),
    ),
    (
        &["drop", "identity", "if", "exists"],
        "identity?",
        GeneratedChange::DropIdentity(true),
    ),
    (
        &["drop", "identity"],
        "identity",
        GeneratedChange::DropIdentity(false),
    ),
    (
        &["set", "generated", "always"],
        "always",
        GeneratedChange::SetIdentity(true),
    ),
    (
        &["set", "generated", "by", "default"],
        "default",
        GeneratedChange::SetIdentity(false),
    ),
    (
        &["set", "storage", "plain"],
        "plain",
        GeneratedChange::Storage('p'),
    ),
    (
        &["set", "storage", "external"],
        "external",
        GeneratedChange::Storage('e'),
    ),
    (
        &["set", "storage", "extended"],
        "extended",
        GeneratedChange::Storage('x'),
    ),
    (
        &["set", "storage", "main"],
        "main",
        GeneratedChange::Storage('m'),
    ),
    (
        &["set", "compression", "pglz"],
        "pglz",
        GeneratedChange::Compression(Some('p')),
    ),
    (
        &["set", "compression", "default"],
        "compression",
        GeneratedChange::Compression(None),
    ),
];

/// Replaces these forms in ALTER TABLE, and refuses what no generated column is.
pub(super) fn rewrite(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let alters = words(tokens, 0, &["alter", "table"]);
    if alters || words(tokens, 0, &["create"]) {
        by_default(text, tokens)?;
    }
    if !alters {
        return Ok(());
    }
    let mut at = 2;
    while at < tokens.len() {
        statistics(tokens, at);
        let found = FORMS.iter().find(|(said, ..)| words(tokens, at, said));
        let Some((said, mark, _)) = found.filter(|(said, ..)| ends_at(tokens, at, said.len()))
        else {
            at += 1;
            continue;
        };
        let span = tokens[at].span;
        let word = |value: &str, quote_style, keyword| TokenWithSpan {
            token: Token::Word(Word {
                value: value.to_owned(),
                quote_style,
                keyword,
            }),
            span,
        };
        let mark = format!("{EXPRESSION_MARK}{mark}");
        let new = [
            word("SET", None, Keyword::SET),
            word("DEFAULT", None, Keyword::DEFAULT),
            word(&mark, Some('"'), Keyword::NoKeyword),
        ];
        tokens.splice(at..at + said.len(), new);
        at += 3;
    }
    Ok(())
}

/// What the mark of SET STATISTICS begins with; the number follows.
const STATISTICS: &str = "statistics=";

/// SET STATISTICS and its number, which is one token then.
fn statistics(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    if !words(tokens, at, &["set", "statistics"])
        || !ends_at(tokens, at, 2 + number_at(tokens, at + 2).1)
    {
        return;
    }
    let (Some(number), length) = number_at(tokens, at + 2) else {
        return;
    };
    let span = tokens[at].span;
    let mark = Token::make_word(&format!("{EXPRESSION_MARK}{STATISTICS}{number}"), Some('"'));
    let new = [
        Token::make_keyword("SET"),
        Token::make_keyword("DEFAULT"),
        mark,
    ];
    let new = new.map(|token| TokenWithSpan { token, span });
    tokens.splice(at..at + 2 + length, new);
}

/// A whole number at `at`, and how many tokens it is.
fn number_at(tokens: &[TokenWithSpan], at: usize) -> (Option<i32>, usize) {
    let signed = matches!(tokens.get(at).map(|t| &t.token), Some(Token::Minus));
    let number = match tokens.get(at + usize::from(signed)).map(|t| &t.token) {
        Some(Token::Number(digits, _)) => digits.parse::<i32>().ok(),
        _ => None,
    };
    let number = number.map(|number| if signed { -number } else { number });
    (number, 1 + usize::from(signed))
}

/// 42601 for GENERATED BY DEFAULT AS (...).
fn by_default(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let found = (0..tokens.len()).find(|at| {
        words(tokens, *at, &["generated", "by", "default", "as"])
            && matches!(tokens.get(at + 4).map(|t| &t.token), Some(Token::LParen))
    });
    match found.and_then(|at| tokens.get(at + 1)) {
        None => Ok(()),
        Some(token) => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "for a generated column, GENERATED ALWAYS must be specified",
        )
        .at(span_position(text, token.span))),
    }
}

/// A column of the name may be dropped too: `DROP expression CASCADE`. Behind ALTER COLUMN the operation ends with its words.
fn ends_at(tokens: &[TokenWithSpan], at: usize, length: usize) -> bool {
    let named = at >= 2 && {
        let word = |at: usize| matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_)));
        word(at - 1) && (words(tokens, at - 2, &["alter"]) || words(tokens, at - 2, &["column"]))
    };
    let next = tokens.get(at + length).map(|t| &t.token);
    named && matches!(next, None | Some(Token::Comma))
}

/// Whether the value of a SET DEFAULT says one of these things instead.
pub(crate) fn generated_change(value: &ast::Expr) -> Option<GeneratedChange> {
    let ast::Expr::Identifier(name) = value else {
        return None;
    };
    let rest = name.value.strip_prefix(EXPRESSION_MARK)?;
    if let Some(number) = rest.strip_prefix(STATISTICS) {
        return number.parse().ok().map(GeneratedChange::Statistics);
    }
    let form = FORMS.iter().find(|(_, mark, _)| *mark == rest);
    form.map(|(.., change)| *change)
}
