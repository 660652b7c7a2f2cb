//! Statements about what does not exist here: each is refused by its name (0A000), except that dropping what is not there is said to be just
//! that, for scripts do so with IF EXISTS. PREPARE TRANSACTION and what ends one are as on a server that allows none.

use super::extensions::ExtensionCommand;
use super::kind::StatementKind;
use super::position::error_at_token;
use super::rewrite::words;
use super::roles::Words;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Kinds of objects of which there are none: the words that name one, and what messages call it.
const KINDS: [(&[&str], &str); 19] = [
    (&["access", "method"], "access method"),
    (&["cast"], ""),
    (&["conversion"], "conversion"),
    (&["default", "conversion"], "conversion"),
    (&["event", "trigger"], "event trigger"),
    (&["foreign", "data", "wrapper"], "foreign-data wrapper"),
    (&["foreign", "table"], "foreign table"),
    (&["language"], "language"),
    (&["operator"], ""),
    (&["publication"], "publication"),
    (&["rule"], ""),
    (&["server"], "server"),
    (&["statistics"], "statistics object"),
    (&["subscription"], "subscription"),
    (&["tablespace"], "tablespace"),
    (
        &["text", "search", "configuration"],
        "text search configuration",
    ),
    (&["text", "search", "dictionary"], "text search dictionary"),
    (&["text", "search", "parser"], "text search parser"),
    (&["text", "search", "template"], "text search template"),
];

/// Other statements that are refused, by the words that they begin with.
const OTHERS: [(&[&str], &str); 9] = [
    (&["create", "tablespace"], "CREATE TABLESPACE"),
    (&["create", "transform"], "CREATE TRANSFORM"),
    (&["import", "foreign", "schema"], "IMPORT FOREIGN SCHEMA"),
    (&["load"], "LOAD"),
    (&["security", "label"], "SECURITY LABEL"),
    (&["create", "procedural"], "a language of users"),
    (&["create", "trusted"], "a language of users"),
    (&["comment", "on", "trigger"], "COMMENT ON TRIGGER"),
    (&["comment", "on", "rule"], "COMMENT ON RULE"),
];

/// The statement, if it is one of these.
pub(super) fn refused(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    if two_phase(text, tokens)? {
        return Ok(Some(StatementKind::PrepareTransaction));
    }
    if let Some((_, name)) = OTHERS.iter().find(|(begin, _)| words(tokens, 0, begin)) {
        return Ok(Some(StatementKind::Unsupported(name)));
    }
    if let Some(name) = clause(tokens) {
        return Ok(Some(StatementKind::Unsupported(name)));
    }
    let mut at = Words {
        text,
        tokens,
        at: 0,
    };
    if at.take_all(&["alter", "system"]) {
        let change = at.setting_change()?;
        at.end()?;
        return Ok(Some(StatementKind::AlterSystem(Box::new(change))));
    }
    let verbs = ["create", "alter", "drop"];
    let Some(verb) = verbs.into_iter().find(|verb| at.take(verb)) else {
        return Ok(None);
    };
    if verb == "create" {
        at.take_all(&["or", "replace"]);
    }
    let Some((kind, word)) = KINDS.into_iter().find(|(kind, _)| at.take_all(kind)) else {
        return Ok(None);
    };
    // What is written wrongly is said to be so by the grammar.
    if kind == ["operator"] && verb == "drop" && !names_operator(tokens, at.at) {
        return match wrong_operator(text, tokens, at.at) {
            Some(error) => Err(error),
            None => Ok(None),
        };
    }
    if verb != "drop" || word.is_empty() {
        let name = match kind {
            ["access", ..] => "an access method",
            ["cast"] => "a user's cast",
            ["conversion"] | ["default", ..] => "a conversion",
            ["event", ..] => "an event trigger",
            ["foreign", ..] | ["server"] => "a foreign table or server",
            ["language"] => "a language of users",
            ["operator"] => "an operator of users",
            ["tablespace"] => "a tablespace",
            ["publication"] | ["subscription"] => "logical replication",
            ["rule"] => "a rule",
            ["statistics"] => "statistics of several columns",
            _ => "a text search object of users",
        };
        return Ok(Some(StatementKind::Unsupported(name)));
    }
    let if_exists = at.take_all(&["if", "exists"]);
    let mut names = Vec::new();
    loop {
        let mut name = at.ident()?;
        while at.take_token(&Token::Period) {
            name = format!("{name}.{}", at.ident()?);
        }
        names.push(name);
        if !at.take_token(&Token::Comma) {
            break;
        }
    }
    if !at.take("cascade") {
        at.take("restrict");
    }
    at.end()?;
    // Those are there.
    let own = ["c", "internal", "plpgsql", "sql"];
    if word == "language" && names.iter().any(|name| own.contains(&name.as_str())) {
        return Ok(Some(StatementKind::Unsupported("DROP LANGUAGE")));
    }
    Ok(Some(StatementKind::Extension(Box::new(
        ExtensionCommand::DropAbsent {
            kind: word,
            if_exists,
            names,
        },
    ))))
}

/// Does DROP OPERATOR go on, from `at`, with CLASS, FAMILY, or operators and the types of each?
fn names_operator(tokens: &[TokenWithSpan], at: usize) -> bool {
    if words(tokens, at, &["class"]) || words(tokens, at, &["family"]) {
        return true;
    }
    let at = at + 2 * usize::from(words(tokens, at, &["if", "exists"]));
    let open = (at..tokens.len()).find(|open| tokens[*open].token == Token::LParen);
    let is_type = |at: usize| matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_)));
    let is_symbol = |t: &TokenWithSpan| !matches!(t.token, Token::Comma | Token::LParen);
    open.is_some_and(|open| {
        open > at
            && tokens[at..open].iter().all(is_symbol)
            && is_type(open + 1)
            && (open + 2..tokens.len())
                .find(|comma| tokens[*comma].token == Token::Comma)
                .is_some_and(|comma| is_type(comma + 1))
    })
}

/// What is wrong with a DROP OPERATOR that names none, from `at` on.
fn wrong_operator(text: &str, tokens: &[TokenWithSpan], at: usize) -> Option<SqlError> {
    let mut at = at + 2 * usize::from(words(tokens, at, &["if", "exists"]));
    let wrong = |at: usize| {
        Some(match tokens.get(at) {
            Some(token) => error_at_token(text, token),
            None => error_at_token(text, &TokenWithSpan::new_eof()),
        })
    };
    let token = |at: usize| tokens.get(at).map(|t| &t.token);
    while let Some(Token::Word(_)) = token(at) {
        if token(at + 1) != Some(&Token::Period) {
            return wrong(at + 1);
        }
        at += 2;
    }
    if let None | Some(Token::LParen) = token(at) {
        return wrong(at);
    }
    while !matches!(token(at), None | Some(Token::LParen | Token::Word(_))) {
        at += 1;
    }
    if token(at) != Some(&Token::LParen) {
        return wrong(at);
    }
    if let None | Some(Token::RParen | Token::Comma) = token(at + 1) {
        return wrong(at + 1);
    }
    let end = (at + 1..tokens.len())
        .find(|at| matches!(token(*at), Some(Token::RParen | Token::Comma)))?;
    match token(end) {
        Some(Token::RParen) => Some(
            SqlError::new(SqlState::SYNTAX_ERROR, "missing argument")
                .at(super::span_position(text, tokens[end].span))
                .hint("Use NONE to denote the missing argument of a unary operator."),
        ),
        _ => wrong(end + 1),
    }
}

/// A clause of CREATE or ALTER that the grammar library does not know, and that nothing here is for.
fn clause(tokens: &[TokenWithSpan]) -> Option<&'static str> {
    let creates = words(tokens, 0, &["create"]);
    if !creates && !words(tokens, 0, &["alter"]) {
        return None;
    }
    let anywhere =
        |from: usize, said: &[&str]| (from..tokens.len()).any(|at| words(tokens, at, said));
    if words(tokens, 0, &["alter", "table"])
        && (anywhere(3, &["cluster", "on"]) || anywhere(3, &["set", "without", "cluster"]))
    {
        return Some("ALTER TABLE CLUSTER ON");
    }
    if words(tokens, 0, &["alter", "sequence"])
        && (anywhere(3, &["set", "unlogged"]) || anywhere(3, &["set", "logged"]))
    {
        return Some("ALTER SEQUENCE SET LOGGED");
    }
    if words(tokens, 0, &["alter", "table"]) {
        return action(tokens);
    }
    let table = (1..4).find(|at| creates && words(tokens, *at, &["table"]))?;
    let absent = ["if", "not", "exists"];
    let mut name = table + 1;
    if words(tokens, name, &absent) {
        name += absent.len();
    }
    while tokens
        .get(name + 1)
        .is_some_and(|t| t.token == Token::Period)
    {
        name += 2;
    }
    words(tokens, name + 1, &["of"]).then_some("CREATE TABLE OF a type")
}

/// An action of ALTER TABLE on what is not there.
fn action(tokens: &[TokenWithSpan]) -> Option<&'static str> {
    const ACTIONS: [(&[&str], &str); 7] = [
        (&["inherit"], "INHERITS"),
        (&["no", "inherit"], "INHERITS"),
        (&["of"], "CREATE TABLE OF a type"),
        (&["not", "of"], "CREATE TABLE OF a type"),
        (&["attach", "partition"], "ATTACH PARTITION"),
        (&["detach", "partition"], "DETACH PARTITION"),
        (&["set", "access", "method"], "an access method"),
    ];
    let is = |at: usize, wanted: &Token| tokens.get(at).is_some_and(|t| t.token == *wanted);
    let mut at = 2;
    at += 2 * usize::from(words(tokens, at, &["if", "exists"]));
    at += usize::from(words(tokens, at, &["only"]));
    at += 1;
    while is(at, &Token::Period) {
        at += 2;
    }
    at += usize::from(is(at, &Token::Mul));
    let mut depth = 0_usize;
    let mut begins = true;
    for at in at..tokens.len() {
        if begins {
            if let Some((_, name)) = ACTIONS.iter().find(|(said, _)| words(tokens, at, said)) {
                return Some(name);
            }
            let column = at + 1 + usize::from(words(tokens, at + 1, &["column"]));
            let of_options = |word| words(tokens, column + 1, &[word]);
            if words(tokens, at, &["alter"])
                && (of_options("set") || of_options("reset"))
                && is(column + 2, &Token::LParen)
            {
                return Some("ALTER COLUMN ... SET (options)");
            }
        }
        begins = false;
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma => begins = depth == 0,
            _ => {}
        }
    }
    None
}

/// Is it PREPARE TRANSACTION? COMMIT PREPARED and ROLLBACK PREPARED find none.
fn two_phase(text: &str, tokens: &[TokenWithSpan]) -> Result<bool> {
    let prepare = words(tokens, 0, &["prepare", "transaction"]);
    let ends =
        words(tokens, 0, &["commit", "prepared"]) || words(tokens, 0, &["rollback", "prepared"]);
    let named = match tokens.get(2).map(|t| &t.token) {
        Some(Token::SingleQuotedString(name)) if tokens.len() == 3 => name,
        _ if prepare || ends => {
            let at = Words {
                text,
                tokens,
                at: 2,
            };
            return Err(at.error());
        }
        _ => return Ok(false),
    };
    if ends {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("prepared transaction with identifier \"{named}\" does not exist"),
        ));
    }
    Ok(prepare)
}
