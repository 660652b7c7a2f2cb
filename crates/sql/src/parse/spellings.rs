//! Older spellings that the grammar library does not know, and that mean what others mean.

use super::rewrite::{is_word, words};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Writes them as the library knows them.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    set_role(tokens);
    with_children(tokens);
    collation_for(tokens);
}

/// COLLATION FOR (expression).
fn collation_for(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        if words(tokens, at, &["collation", "for"]) && tokens[at + 2].token == Token::LParen {
            let span = tokens[at].span;
            let call = Token::Word(Word {
                value: "pg_collation_for".to_owned(),
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
            tokens.splice(at..at + 2, [TokenWithSpan { token: call, span }]);
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
