//! CREATE VIEW, CREATE MATERIALIZED VIEW, ALTER VIEW and REFRESH: what their grammar has around a query.
//!
//! The query is parsed apart from the head, as a statement of its own, and keeps the place it has in the text: that text is what
//! is stored (`catalog::view`), and errors point into it.

use super::position::{byte_of, error_at_token};
use super::rewrite::{is_word, words};
use super::{Parsed, StatementKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast::{self, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// A statement about views.
#[derive(Clone, Debug)]
pub enum ViewCommand {
    /// CREATE VIEW, CREATE MATERIALIZED VIEW.
    Create(CreateView),
    /// ALTER VIEW, ALTER MATERIALIZED VIEW.
    Alter(AlterView),
    /// REFRESH MATERIALIZED VIEW.
    Refresh {
        /// Which.
        name: ast::ObjectName,
        /// CONCURRENTLY.
        concurrently: bool,
        /// Not WITH NO DATA.
        data: bool,
    },
}

/// CREATE \[MATERIALIZED\] VIEW.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub struct CreateView {
    pub materialized: bool,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub name: ast::ObjectName,
    pub columns: Vec<ast::Ident>,
    pub options: Vec<ast::SqlOption>,
    /// The query; its spans count in the whole text.
    pub query: Box<ast::Query>,
    /// First byte and end of the query in the text.
    pub range: (usize, usize),
    /// RECURSIVE: what stands before and after the text of the query.
    pub around: Option<(String, String)>,
    pub check: Option<CheckOption>,
    /// Not WITH NO DATA.
    pub data: bool,
}

/// WITH CHECK OPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum CheckOption {
    Local,
    Cascaded,
}

impl CheckOption {
    /// As in `check_option=`.
    pub fn word(self) -> &'static str {
        match self {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        }
    }
}

/// ALTER \[MATERIALIZED\] VIEW: what ALTER TABLE says of a table.
#[derive(Clone, Debug)]
pub struct AlterView {
    /// MATERIALIZED.
    pub materialized: bool,
    /// The statement as ALTER TABLE.
    pub alter: ast::AlterTable,
}

impl ViewCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            ViewCommand::Create(create) if create.materialized => "CREATE MATERIALIZED VIEW",
            ViewCommand::Create(_) => "CREATE VIEW",
            ViewCommand::Alter(alter) if alter.materialized => "ALTER MATERIALIZED VIEW",
            ViewCommand::Alter(_) => "ALTER VIEW",
            ViewCommand::Refresh { .. } => "REFRESH MATERIALIZED VIEW",
        }
    }
}

fn word(value: &str, keyword: Keyword, span: Span) -> TokenWithSpan {
    TokenWithSpan {
        token: Token::Word(Word {
            value: value.to_owned(),
            quote_style: None,
            keyword,
        }),
        span,
    }
}

/// The statement, if it is one of these.
pub(super) fn command(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<ViewCommand>> {
    if is_word(tokens.first(), "create") {
        let mut at = 1;
        if words(tokens, at, &["or", "replace"]) {
            at += 2;
        }
        for optional in ["local", "global"] {
            at += usize::from(is_word(tokens.get(at), optional));
        }
        for optional in ["temp", "temporary", "unlogged"] {
            at += usize::from(is_word(tokens.get(at), optional));
        }
        let recursive = is_word(tokens.get(at), "recursive");
        let before = at;
        at += usize::from(recursive);
        let materialized = is_word(tokens.get(at), "materialized");
        at += usize::from(materialized);
        if !is_word(tokens.get(at), "view") {
            return Ok(None);
        }
        let head = tokens.get(1..before).unwrap_or_default();
        return create(text, tokens, head, at + 1, recursive, materialized).map(Some);
    }
    if is_word(tokens.first(), "alter") {
        let materialized = words(tokens, 1, &["materialized", "view"]);
        if materialized || is_word(tokens.get(1), "view") {
            return alter(text, tokens, materialized).map(Some);
        }
    }
    if words(tokens, 0, &["refresh", "materialized", "view"]) {
        return refresh(text, tokens).map(Some);
    }
    Ok(None)
}

fn error_at(text: &str, tokens: &[TokenWithSpan], at: usize) -> SqlError {
    match tokens.get(at) {
        Some(token) => error_at_token(text, token),
        None => error_at_token(text, &TokenWithSpan::new_eof()),
    }
}

/// Place of the AS outside of parentheses.
fn query_start(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth == 0 && is_word(Some(token), "as") => return Some(at),
            _ => {}
        }
    }
    None
}

fn create(
    text: &str,
    tokens: &[TokenWithSpan],
    head: &[TokenWithSpan],
    name_at: usize,
    recursive: bool,
    materialized: bool,
) -> Result<ViewCommand> {
    let Some(start) = query_start(tokens, name_at) else {
        return Err(error_at(text, tokens, tokens.len()));
    };
    let mut end = tokens.len();
    let (mut check, mut data) = (None, true);
    if materialized {
        if end > 3 && words(tokens, end - 3, &["with", "no", "data"]) {
            (end, data) = (end - 3, false);
        } else if end > 2 && words(tokens, end - 2, &["with", "data"]) {
            end -= 2;
        }
    } else if end > 3 && words(tokens, end - 3, &["with", "check", "option"]) {
        (end, check) = (end - 3, Some(CheckOption::Cascaded));
    } else if end > 4 && words(tokens, end - 4, &["with", "cascaded", "check", "option"]) {
        (end, check) = (end - 4, Some(CheckOption::Cascaded));
    } else if end > 4 && words(tokens, end - 4, &["with", "local", "check", "option"]) {
        (end, check) = (end - 4, Some(CheckOption::Local));
    }
    let body = tokens.get(start + 1..end).unwrap_or_default();
    let (Some(first), Some(last)) = (body.first(), body.last()) else {
        return Err(error_at(text, tokens, end));
    };
    let range = (
        byte_of(text, first.span.start),
        byte_of(text, last.span.end),
    );

    // The head through the grammar, with another query.
    let span = first.span;
    let mut statement = vec![word("CREATE", Keyword::CREATE, span)];
    let (mut or_replace, mut temporary) = (false, false);
    for token in head {
        or_replace |= is_word(Some(token), "replace");
        temporary |= is_word(Some(token), "temp") || is_word(Some(token), "temporary");
        if is_word(Some(token), "unlogged") {
            return Err(SqlError::new(
                logstead_types::SqlState::FEATURE_NOT_SUPPORTED,
                "materialized views cannot be unlogged",
            ));
        }
    }
    if materialized {
        if or_replace || temporary {
            return Err(error_at(text, tokens, name_at - 2));
        }
        statement.push(word("MATERIALIZED", Keyword::MATERIALIZED, span));
    }
    statement.push(word("VIEW", Keyword::VIEW, span));
    let mut rest = tokens.get(name_at..=start).unwrap_or_default().to_vec();
    let if_not_exists = words(&rest, 0, &["if", "not", "exists"]);
    if if_not_exists {
        if !materialized {
            return Err(error_at(text, tokens, name_at + 1));
        }
        rest.drain(..3);
    }
    if let Some(at) = rest.iter().position(|t| is_word(Some(t), "using")) {
        // The one way to store rows.
        rest.drain(at..(at + 2).min(rest.len()));
    }
    if let Some(at) = rest.iter().position(|t| is_word(Some(t), "tablespace")) {
        rest.drain(at..(at + 2).min(rest.len()));
    }
    give_values(&mut rest);
    statement.extend(rest);
    statement.push(word("SELECT", Keyword::SELECT, span));
    statement.push(TokenWithSpan {
        token: Token::Number("1".to_owned(), false),
        span,
    });
    let mut parser = Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(statement);
    let parsed = parser
        .parse_statement()
        .map_err(|error| super::position::parse_error(text, &error, &parser.peek_token()))?;
    let Statement::CreateView(view) = parsed else {
        return Err(error_at(text, tokens, name_at));
    };
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(error_at_token(text, &rest));
    }
    let options = match view.options {
        ast::CreateTableOptions::With(options) => options,
        _ => Vec::new(),
    };
    let columns: Vec<ast::Ident> = view.columns.into_iter().map(|c| c.name).collect();
    let mut body = body.to_vec();
    let around = if recursive {
        Some(recurse(text, &view.name, &columns, &mut body, span)?)
    } else {
        None
    };
    let query = parse_query(text, body)?;
    Ok(ViewCommand::Create(CreateView {
        materialized,
        or_replace,
        if_not_exists,
        temporary,
        name: view.name,
        columns,
        options,
        query,
        range,
        around,
        check,
        data,
    }))
}

/// An option of WITH (...) without a value is true; the grammar wants one.
fn give_values(tokens: &mut Vec<TokenWithSpan>) {
    let open = |t: Option<&TokenWithSpan>| matches!(t.map(|t| &t.token), Some(Token::LParen));
    let with =
        (0..tokens.len()).find(|at| is_word(tokens.get(*at), "with") && open(tokens.get(at + 1)));
    let Some(mut at) = with.map(|at| at + 2) else {
        return;
    };
    while let Some(token) = tokens.get(at) {
        let before = tokens.get(at - 1).map(|t| &t.token);
        let after = tokens.get(at + 1).map(|t| &t.token);
        let bare = matches!(before, Some(Token::LParen | Token::Comma))
            && matches!(after, Some(Token::RParen | Token::Comma));
        let span = token.span;
        if bare && matches!(token.token, Token::Word(_)) {
            let value = [Token::Eq, Token::SingleQuotedString("true".to_owned())];
            tokens.splice(
                at + 1..at + 1,
                value.map(|token| TokenWithSpan { token, span }),
            );
        }
        at += 1;
    }
}

/// A query that is part of a statement.
fn parse_query(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Box<ast::Query>> {
    let first = tokens.first().cloned();
    let Parsed {
        statement, as_of, ..
    } = super::parse_one(text, tokens, super::Deep::No)?;
    if as_of.is_some() {
        return Err(super::as_of::not_there());
    }
    match super::Tree::into_statement(statement) {
        Statement::Query(query) => Ok(query),
        Statement::CreateTable(_) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "views must not contain SELECT INTO",
        )),
        _ => Err(error_at_token(
            text,
            &first.unwrap_or_else(TokenWithSpan::new_eof),
        )),
    }
}

/// RECURSIVE VIEW v (a, b) AS query is WITH RECURSIVE v (a, b) AS (query) SELECT a, b FROM v.
fn recurse(
    text: &str,
    name: &ast::ObjectName,
    columns: &[ast::Ident],
    body: &mut Vec<TokenWithSpan>,
    span: Span,
) -> Result<(String, String)> {
    let Some(name) = name.0.last().and_then(|part| part.as_ident()) else {
        return Err(error_at_token(text, &TokenWithSpan::new_eof()));
    };
    if columns.is_empty() {
        return Err(body
            .first()
            .map_or_else(|| error_at(text, body, 0), |t| error_at_token(text, t)));
    }
    let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    let before = format!("WITH RECURSIVE {name} ({names}) AS (");
    let after = format!(") SELECT {names} FROM {name}");
    let make = |text: &str| -> Result<Vec<TokenWithSpan>> {
        let tokens = sqlparser::tokenizer::Tokenizer::new(&PostgreSqlDialect {}, text)
            .tokenize()
            .map_err(|_| error_at_token(text, &TokenWithSpan::new_eof()))?;
        Ok(tokens
            .into_iter()
            .filter(|token| !matches!(token, Token::Whitespace(_)))
            .map(|token| TokenWithSpan { token, span })
            .collect())
    };
    let mut all = make(&before)?;
    all.append(body);
    all.extend(make(&after)?);
    *body = all;
    Ok((before, after))
}

/// ALTER VIEW says what ALTER TABLE says.
fn alter(text: &str, tokens: &[TokenWithSpan], materialized: bool) -> Result<ViewCommand> {
    let skip = 2 + usize::from(materialized);
    let span = tokens.first().map_or_else(Span::empty, |t| t.span);
    let mut rest = tokens.get(skip..).unwrap_or_default().to_vec();
    // The grammar of ALTER TABLE knows SET (...) and SET SCHEMA, RENAME COLUMN with the word COLUMN or without.
    if let Some(at) = rest.iter().position(|t| is_word(Some(t), "rename"))
        && !is_word(rest.get(at + 1), "to")
        && !is_word(rest.get(at + 1), "column")
    {
        rest.insert(at + 1, word("COLUMN", Keyword::COLUMN, span));
    }
    if let Some(at) = rest.iter().position(|t| is_word(Some(t), "alter"))
        && !is_word(rest.get(at + 1), "column")
    {
        rest.insert(at + 1, word("COLUMN", Keyword::COLUMN, span));
    }
    let mut statement = vec![
        word("ALTER", Keyword::ALTER, span),
        word("TABLE", Keyword::TABLE, span),
    ];
    statement.append(&mut rest);
    let parsed = super::parse_one(text, statement, super::Deep::No)?;
    match (&**parsed.statement, &parsed.kind) {
        (Statement::AlterTable(alter), StatementKind::Ddl(_)) => {
            Ok(ViewCommand::Alter(AlterView {
                materialized,
                alter: alter.clone(),
            }))
        }
        _ => Err(SqlError::unsupported(if materialized {
            "this form of ALTER MATERIALIZED VIEW"
        } else {
            "this form of ALTER VIEW"
        })),
    }
}

fn refresh(text: &str, tokens: &[TokenWithSpan]) -> Result<ViewCommand> {
    let mut at = 3;
    let concurrently = is_word(tokens.get(at), "concurrently");
    at += usize::from(concurrently);
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .with_tokens_with_locations(tokens.get(at..).unwrap_or_default().to_vec());
    let name = parser
        .parse_object_name(false)
        .map_err(|error| super::position::parse_error(text, &error, &parser.peek_token()))?;
    let data = if parser.parse_keywords(&[Keyword::WITH, Keyword::NO, Keyword::DATA]) {
        false
    } else {
        let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
        true
    };
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(error_at_token(text, &rest));
    }
    Ok(ViewCommand::Refresh {
        name,
        concurrently,
        data,
    })
}
