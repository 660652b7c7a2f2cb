//! COMMENT ON CONSTRAINT, and on the other objects that the grammar library lacks.

use super::constraints::{error_at, name};
use super::fold;
use super::index_commands::parsed;
use super::kind::{CommentOn, Commented, StatementKind};
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// COMMENT ON CONSTRAINT name ON table IS ...; `None` for any other statement.
pub(super) fn on_constraint(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    if !words(tokens, 0, &["comment", "on"]) {
        return Ok(None);
    }
    if !is_word(tokens.get(2), "constraint") {
        return on_other(text, tokens);
    }
    let constraint = match tokens.get(3).map(|t| (&t.token, t.span)) {
        Some((Token::Word(word), span)) => fold(&word.clone().into_ident(span)),
        _ => return Err(error_at(text, tokens, 3)),
    };
    if !is_word(tokens.get(4), "on") {
        return Err(error_at(text, tokens, 4));
    }
    let mut at = 5;
    let domain = is_word(tokens.get(at), "domain")
        && matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::Word(_)))
        && !is_word(tokens.get(at + 1), "is");
    if domain {
        at += 1;
    }
    let owner = name(tokens, &mut at).ok_or_else(|| error_at(text, tokens, at))?;
    let comment = comment(text, tokens, at)?;
    Ok(Some(StatementKind::CommentOn(Box::new(CommentOn {
        other: None,
        constraint,
        owner,
        domain,
        comment,
    }))))
}

/// The kinds that a name is enough for.
const NAMED: [&[&str]; 15] = [
    &["language"],
    &["procedural", "language"],
    &["access", "method"],
    &["collation"],
    &["text", "search", "configuration"],
    &["text", "search", "dictionary"],
    &["text", "search", "parser"],
    &["text", "search", "template"],
    &["conversion"],
    &["event", "trigger"],
    &["foreign", "data", "wrapper"],
    &["server"],
    &["publication"],
    &["subscription"],
    &["statistics"],
];

/// Their names in messages, in the same order.
const KINDS: [&str; 15] = [
    "language",
    "language",
    "access method",
    "collation",
    "text search configuration",
    "text search dictionary",
    "text search parser",
    "text search template",
    "conversion",
    "event trigger",
    "foreign data wrapper",
    "server",
    "publication",
    "subscription",
    "statistics",
];

fn on_other(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut at = 2;
    let wrong = |at: usize| error_at(text, tokens, at);
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    let of_method = [("class", "operator class"), ("family", "operator family")];
    let of_method = of_method
        .into_iter()
        .find(|(word, _)| words(tokens, 2, &["operator", word]));
    let kind = { NAMED.iter().zip(KINDS) }.find(|(said, _)| words(tokens, 2, said));
    let other = if let Some((_, kind)) = of_method {
        at = 4;
        let name = name(tokens, &mut at).ok_or_else(|| wrong(at))?;
        let method = tokens.get(at + 1);
        let Some((Token::Word(method), span)) = method.map(|t| (&t.token, t.span)) else {
            return Err(wrong(at + 1));
        };
        if !is_word(tokens.get(at), "using") {
            return Err(wrong(at));
        }
        at += 2;
        let method = fold(&method.clone().into_ident(span));
        Commented::OfMethod { kind, name, method }
    } else if let Some((said, kind)) = kind {
        at += said.len();
        let name = name(tokens, &mut at).ok_or_else(|| wrong(at))?;
        Commented::Named { kind, name }
    } else if is_word(tokens.get(2), "operator") || is_word(tokens.get(2), "aggregate") {
        let open = (3..tokens.len()).find(|at| is(*at, &Token::LParen));
        let close = (3..tokens.len()).find(|at| is(*at, &Token::RParen));
        let (Some(open), Some(close)) = (open, close) else {
            return Err(wrong(tokens.len()));
        };
        let spelled = |tokens: &[TokenWithSpan], between| {
            let words: Vec<String> = tokens.iter().map(|t| t.token.to_string()).collect();
            words.join(between)
        };
        let name = spelled(tokens.get(3..open).unwrap_or_default(), "");
        let types = spelled(tokens.get(open + 1..close).unwrap_or_default(), " ");
        at = close + 1;
        match is_word(tokens.get(2), "operator") {
            true => Commented::Operator(format!("{name}({types})")),
            false if types == "*" => Commented::Aggregate(format!("{name}()")),
            false => Commented::Aggregate(format!("{name}({types})")),
        }
    } else if is_word(tokens.get(2), "cast") && is(3, &Token::LParen) {
        let close = (3..tokens.len()).rfind(|at| is(*at, &Token::RParen));
        let close = close.ok_or_else(|| wrong(tokens.len()))?;
        let inner = tokens.get(4..close).unwrap_or_default();
        let (from, to) = parsed(text, inner, |p| {
            let from = p.parse_data_type()?;
            p.expect_keyword(Keyword::AS)?;
            Ok((from, p.parse_data_type()?))
        })?;
        at = close + 1;
        Commented::Cast(from, to)
    } else if is_word(tokens.get(2), "rule") {
        let Some((Token::Word(rule), span)) = tokens.get(3).map(|t| (&t.token, t.span)) else {
            return Err(wrong(3));
        };
        if !is_word(tokens.get(4), "on") {
            return Err(wrong(4));
        }
        at = 5;
        let table = name(tokens, &mut at).ok_or_else(|| wrong(at))?;
        let name = fold(&rule.clone().into_ident(span));
        Commented::Rule { name, table }
    } else {
        const MISSING: [&[&str]; 4] = [
            &["tablespace"],
            &["large", "object"],
            &["foreign", "table"],
            &["transform"],
        ];
        return match MISSING.iter().find(|said| words(tokens, 2, said)) {
            Some(said) => Err(SqlError::unsupported(format!(
                "COMMENT ON {}",
                said.join(" ").to_uppercase()
            ))),
            None => Ok(None),
        };
    };
    let comment = comment(text, tokens, at)?;
    Ok(Some(StatementKind::CommentOn(Box::new(CommentOn {
        other: Some(other),
        constraint: String::new(),
        owner: ast::ObjectName(Vec::new()),
        domain: false,
        comment,
    }))))
}

/// IS and the comment, which end the statement.
fn comment(text: &str, tokens: &[TokenWithSpan], at: usize) -> Result<Option<String>> {
    if !is_word(tokens.get(at), "is") {
        return Err(error_at(text, tokens, at));
    }
    let comment = match tokens.get(at + 1).map(|t| &t.token) {
        Some(
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text),
        ) => Some(text.clone()),
        Some(Token::DollarQuotedString(text)) => Some(text.value.clone()),
        _ if is_word(tokens.get(at + 1), "null") => None,
        _ => return Err(error_at(text, tokens, at + 1)),
    };
    match tokens.len() > at + 2 {
        true => Err(error_at(text, tokens, at + 2)),
        false => Ok(comment),
    }
}
