//! Older spellings that the grammar library does not know, and that mean what others mean.

use super::rewrite::{is_word, words};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Writes them as the library knows them.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    set_role(tokens);
    with_children(tokens);
    starred_tables(tokens);
    collation_for(tokens);
    row_cast(tokens);
    collated_cast(tokens);
}

/// Words in front of a FROM item.
const BEFORE_ITEMS: [&str; 3] = ["from", "join", "update"];
/// Functions in whose parentheses FROM has expressions behind it.
const FROM_FUNCTIONS: [&str; 4] = ["extract", "overlay", "substring", "trim"];

/// Words with which a list of FROM items ends.
const BEHIND_ITEMS: [&str; 14] = [
    "where",
    "on",
    "group",
    "having",
    "order",
    "limit",
    "set",
    "select",
    "returning",
    "window",
    "union",
    "except",
    "intersect",
    "when",
];

/// `FROM table *` is `FROM table`: with its children.
fn starred_tables(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|t| t.token == Token::Mul) {
        return;
    }
    // Of each parenthesis that is open, whether FROM has items behind it, and whether a list of them goes on.
    let mut open = vec![(true, false)];
    let mut at = 0;
    while at < tokens.len() {
        let is = |words: &[&str]| words.iter().any(|word| is_word(tokens.get(at), word));
        let last = open.len() - 1;
        match &tokens[at].token {
            Token::LParen => {
                let function = at.checked_sub(1).and_then(|at| tokens.get(at));
                let expressions = FROM_FUNCTIONS.iter().any(|word| is_word(function, word));
                open.push((!expressions, false));
            }
            Token::RParen if last > 0 => {
                open.pop();
            }
            // IS DISTINCT FROM has an expression behind it.
            Token::Word(_)
                if open[last].0
                    && is(&BEFORE_ITEMS)
                    && !is_word(at.checked_sub(1).and_then(|at| tokens.get(at)), "distinct") =>
            {
                open[last].1 = true;
                without_star(tokens, at + 1);
            }
            Token::Word(_) if is(&BEHIND_ITEMS) => open[last].1 = false,
            Token::Comma if open[last].1 => without_star(tokens, at + 1),
            _ => {}
        }
        at += 1;
    }
}

/// Takes the star off the name of a table that begins at `at`.
fn without_star(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut end = at;
    while matches!(tokens.get(end).map(|t| &t.token), Some(Token::Word(_))) {
        end += 1;
        match tokens.get(end).map(|t| &t.token) {
            Some(Token::Period) => end += 1,
            _ => break,
        }
    }
    let starred = end > at
        && matches!(tokens.get(end).map(|t| &t.token), Some(Token::Mul))
        && matches!(
            tokens.get(end + 1).map(|t| &t.token),
            None | Some(Token::Comma | Token::RParen | Token::Word(_))
        );
    if starred {
        tokens.remove(end);
    }
}

/// Words that are no function's name in front of a parenthesis.
const NO_FUNCTIONS: [&str; 20] = [
    "all", "and", "any", "as", "between", "by", "case", "distinct", "else", "having", "in", "like",
    "not", "on", "or", "select", "some", "then", "when", "where",
];

/// Where the parenthesis or bracket begins that ends in front of `end`.
fn begin_of(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..end).rev() {
        match tokens[at].token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Where the operand of a cast begins that ends in front of `end`, itself a cast perhaps.
fn operand_of(tokens: &[TokenWithSpan], mut end: usize) -> Option<usize> {
    let before = |at: usize| Some(&tokens.get(at.checked_sub(1)?)?.token);
    loop {
        while before(end) == Some(&Token::RBracket) {
            end = begin_of(tokens, end)?;
        }
        let called = before(end) == Some(&Token::RParen);
        if called {
            end = begin_of(tokens, end)?;
        }
        let named = matches!(before(end), Some(Token::Word(_)))
            && !(called
                && NO_FUNCTIONS
                    .iter()
                    .any(|word| is_word(tokens.get(end - 1), word)));
        if named {
            end -= 1;
            while before(end) == Some(&Token::Period) && end > 1 {
                end = end.checked_sub(2)?;
            }
        } else if !called {
            end = end.checked_sub(1)?;
        }
        match before(end) {
            Some(Token::DoubleColon) => end -= 1,
            _ => return Some(end),
        }
    }
}

/// Where the type ends that begins at `at`.
fn end_of_type(tokens: &[TokenWithSpan], mut at: usize) -> usize {
    const BEHIND: [(&str, &[&str]); 7] = [
        ("bit", &["varying"]),
        ("char", &["varying"]),
        ("character", &["varying"]),
        ("double", &["precision"]),
        ("national", &["character", "varying"]),
        ("time", &["without", "time", "zone"]),
        ("timestamp", &["without", "time", "zone"]),
    ];
    let is = |at: usize, wanted: &Token| tokens.get(at).is_some_and(|t| t.token == *wanted);
    let word = |at: usize| matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_)));
    if !word(at) {
        return at;
    }
    let more = BEHIND
        .iter()
        .find(|(first, rest)| is_word(tokens.get(at), first) && words(tokens, at + 1, rest));
    at += 1 + more.map_or(0, |(_, rest)| rest.len());
    while is(at, &Token::Period) && word(at + 1) {
        at += 2;
    }
    for (open, close) in [
        (Token::LParen, Token::RParen),
        (Token::LBracket, Token::RBracket),
        (Token::LBracket, Token::RBracket),
    ] {
        if !is(at, &open) {
            continue;
        }
        let rest = tokens.get(at..).unwrap_or_default();
        match rest.iter().position(|t| t.token == close) {
            Some(end) => at += end + 1,
            None => return at,
        }
    }
    at
}

/// `value::type COLLATE name`: the library knows a collation behind what is no cast.
pub(super) fn collated_cast(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        if tokens[at].token == Token::DoubleColon {
            let end = end_of_type(tokens, at + 1);
            if is_word(tokens.get(end), "collate")
                && let Some(begin) = operand_of(tokens, at)
            {
                let with_span = |token, of: &TokenWithSpan| TokenWithSpan {
                    token,
                    span: of.span,
                };
                let close = with_span(Token::RParen, &tokens[end]);
                let open = with_span(Token::LParen, &tokens[begin]);
                tokens.insert(end, close);
                tokens.insert(begin, open);
                at = end + 1;
            }
        }
        at += 1;
    }
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

/// Does an operator stand there, to whose left a whole row may stand?
fn is_behind_row(token: Option<&TokenWithSpan>) -> bool {
    let words = ["is", "isnull", "notnull", "in", "not", "between"];
    match token.map(|token| &token.token) {
        Some(
            Token::DoubleColon
            | Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq,
        ) => true,
        Some(Token::Word(_)) => words.iter().any(|word| is_word(token, word)),
        _ => false,
    }
}

/// Does an operator end before the name at `at`, to whose right a whole row may stand?
fn is_before_row(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
    match before.map(|token| &token.token) {
        Some(Token::Eq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq) => true,
        _ => at >= 2 && words(tokens, at - 2, &["distinct", "from"]),
    }
}

/// `name.*` and `(name.*)` to the left of a cast or beside a comparison, IS or IN are the whole row: `name`.
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
                && is_behind_row(tokens.get(at + 3))
                && !at.checked_sub(3).is_some_and(|before| {
                    is_word(tokens.get(before), "row")
                        || matches!(&tokens[before].token, Token::Word(word) if word.keyword == Keyword::NoKeyword)
                });
            let parted = is_before_row(tokens, at - 1)
                || (at > 1
                    && tokens[at - 2].token == Token::LParen
                    && tokens[at + 2].token == Token::RParen
                    && is_before_row(tokens, at - 2));
            // In a select list the parentheses mean nothing.
            let listed = tokens[at + 2].token == Token::RParen
                && at > 2
                && tokens[at - 2].token == Token::LParen
                && (is_word(tokens.get(at - 3), "select")
                    || (tokens[at - 3].token == Token::Comma && is_word(tokens.first(), "select")))
                && (matches!(
                    tokens.get(at + 3).map(|t| &t.token),
                    None | Some(Token::Comma | Token::SemiColon)
                ) || is_word(tokens.get(at + 3), "from"));
            if listed {
                tokens.remove(at + 2);
                tokens.remove(at - 2);
                continue;
            }
            if enclosed || parted || is_behind_row(tokens.get(at + 2)) {
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
                Some(Token::Word(_)) => {
                    let apart = |next: &TokenWithSpan| {
                        tokens[at - 1].span.end == tokens[at].span.start
                            && tokens[at].span.end != next.span.start
                    };
                    BEHIND.iter().any(|word| is_word(next, word)) || next.is_some_and(apart)
                }
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
                    .any(|word| is_word(token, word))
                    || (words(before, 0, &["alter", "table"]) && at == 2);
            }
        }
    }
}
