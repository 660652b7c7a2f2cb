//! Older spellings that the grammar library does not know, and that mean what others mean.

use super::rewrite::{is_word, words};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Writes them as the library knows them.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    set_role(tokens);
    with_children(tokens);
    collation_for(tokens);
    row_cast(tokens);
}

/// COLLATION FOR (value) is a call of pg_collation_for.
fn collation_for(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        if words(tokens, at, &["collation", "for"]) && tokens[at + 2].token == Token::LParen {
            tokens.remove(at + 1);
            if let Token::Word(word) = &mut tokens[at].token {
                word.value = "pg_collation_for".to_owned();
                word.keyword = Keyword::NoKeyword;
            }
        }
        at += 1;
    }
}

/// `name.*::type` and `(name.*)::type` are casts of the whole row: `name::type`.
fn row_cast(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 2 < tokens.len() {
        let star = tokens[at].token == Token::Period && tokens[at + 1].token == Token::Mul;
        let alone = |before: Option<&TokenWithSpan>| {
            before.is_none_or(|before| before.token != Token::Period)
        };
        if star
            && matches!(tokens[at - 1].token, Token::Word(_))
            && alone(at.checked_sub(2).and_then(|before| tokens.get(before)))
        {
            let enclosed = tokens[at + 2].token == Token::RParen
                && at > 1
                && tokens[at - 2].token == Token::LParen
                && tokens.get(at + 3).is_some_and(|t| t.token == Token::DoubleColon)
                && !at.checked_sub(3).is_some_and(|before| {
                    matches!(&tokens[before].token, Token::Word(word) if word.keyword == Keyword::NoKeyword)
                });
            if enclosed || tokens[at + 2].token == Token::DoubleColon {
                tokens.drain(at..at + 2);
            }
        }
        at += 1;
    }
}

/// SET ROLE TO name.
fn set_role(tokens: &mut Vec<TokenWithSpan>) {
    let role = match words(tokens, 0, &["set", "role"]) {
        true => 2,
        false
            if words(tokens, 0, &["set", "local", "role"])
                || words(tokens, 0, &["set", "session", "role"]) =>
        {
            3
        }
        false => usize::MAX,
    };
    let names_value =
        |token: &TokenWithSpan| token.token == Token::Eq || is_word(Some(token), "to");
    if tokens.get(role).is_some_and(names_value) && tokens.len() > role + 1 {
        tokens.remove(role);
    }
}

/// What may follow a table's name and no operator.
const BEHIND: [&str; 15] = [
    "as",
    "cross",
    "except",
    "for",
    "group",
    "having",
    "inner",
    "intersect",
    "join",
    "limit",
    "natural",
    "offset",
    "on",
    "order",
    "where",
];

/// `FROM name *`, the older way to say that the tables that inherit from it are meant, too.
fn with_children(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 2;
    while at < tokens.len() {
        if tokens[at].token == Token::Mul && is_table(&tokens[..at]) {
            let next = tokens.get(at + 1);
            // Not `extract(year from a * b)`: these begin no operand.
            let ends = match next.map(|t| &t.token) {
                None | Some(Token::RParen | Token::Comma | Token::EOF) => true,
                Some(Token::Word(_)) => BEHIND.iter().any(|word| is_word(next, word)),
                Some(_) => false,
            };
            if ends {
                tokens.remove(at);
                continue;
            }
        }
        at += 1;
    }
}

/// Does the name of a table end here, right behind FROM, JOIN or UPDATE?
fn is_table(before: &[TokenWithSpan]) -> bool {
    let mut at = before.len();
    loop {
        let Some(Token::Word(_)) = at
            .checked_sub(1)
            .and_then(|at| before.get(at))
            .map(|t| &t.token)
        else {
            return false;
        };
        at -= 1;
        match at.checked_sub(1).and_then(|at| before.get(at)) {
            Some(token) if token.token == Token::Period => at -= 1,
            token => {
                return ["from", "join", "update"]
                    .iter()
                    .any(|word| is_word(token, word));
            }
        }
    }
}
