//! From text to statements: SQL, and the bodies of functions in PL/pgSQL ([`plpgsql`]).
//!
//! Owns: the wrapper around the grammar library: splitting a text into statements, PostgreSQL's syntax errors and
//! positions, bounded nesting, and small rewrites of tokens for PostgreSQL syntax that the library does not know
//! (`rewrite`). Does not look at the catalog: a [`Parsed`] is good for ever and may be cached by text.
//!
//! Beside the wrapper stands PostgreSQL's grammar itself, ours: [`lexer`], [`ast`] and [`grammar`]. The server does not
//! use it yet.
//!
//! Invariant: whatever the text, parsing, walking and dropping the tree uses a bounded amount of stack.

#![forbid(unsafe_code)]

mod aggregates;
mod aliases;
mod alter_options;
mod alter_sequence;
mod as_of;
pub mod ast;
mod clauses;
mod column_clauses;
mod comment;
mod conflict_target;
mod conforming;
pub mod constraints;
mod copy_options;
mod copy_where;
mod create_as;
mod current_of;
mod cursor;
mod databases;
mod definition;
mod depth;
mod do_block;
mod domains;
mod escapes;
mod expressions;
mod extensions;
mod generated;
pub mod grammar;
mod grants;
mod grouping;
mod identity;
mod index_commands;
mod insert_source;
mod kind;
mod large_objects;
pub mod lexer;
mod lexing;
mod like;
mod locking;
mod maintenance;
pub mod merge;
mod names;
mod not_exists;
mod nothing;
mod null_tests;
mod nulls_distinct;
mod operators;
mod parentheses;
pub mod plpgsql;
mod policies;
mod position;
mod powers;
mod query_operands;
mod refused;
mod rewrite;
mod roles;
mod routines;
mod rows_from;
pub mod schema_elements;
mod sequence_options;
mod set_schema;
mod spellings;
mod storage_parameters;
mod targets;
mod triggers;
mod typed_literals;
mod types;
mod views;
mod whole_rows;
mod windows;
mod xml;
mod xml_table;

pub use aggregates::{AggregateValue, CreateAggregate};
pub use aliases::using_alias;
pub use alter_options::{is_reset, type_collation};
pub use as_of::{AsOf, AsOfPoint};
pub use column_clauses::compression;
pub use conflict_target::EXPRESSION_MARK;
pub use conforming::{LiteralRules, conforming};
pub use constraints::{AlterConstraint, SetConstraints};
pub use copy_options::{CopyClauses, CopyOption, CopyValue, redundant_option};
pub use create_as::NAMED_QUERY;
pub use current_of::current_of;
pub use databases::{DatabaseCommand, DatabaseOption, OptionValue};
pub use depth::{Tree, drop_deep, on_enough_stack, planned_on_enough_stack};
pub use do_block::DoBlock;
pub use domains::{AlterDomain, CreateDomain, DomainCheckClause};
pub use expressions::{
    is_document_mark, row_of, sort_direction, sort_operator, sorts_down, string_literal, strip,
    xml_call,
};
pub use extensions::ExtensionCommand;
pub use generated::{GeneratedChange, generated_change};
pub use grants::{Grant, GrantOn, OwnedKind, Privilege, RightsCommand};
pub use grouping::GroupingWord;
pub use identity::{IdentityChange, identity_change};
pub use kind::{
    AlterSequence, CommentOn, Commented, DeclareCursor, FetchDirection, FetchRows, IndexAction,
    IndexCommand, StatementKind,
};
pub use large_objects::LargeObjectCommand;
pub use like::LIKE_MARK;
pub use locking::{LockingClause, locking_clause};
pub use maintenance::Maintain;
pub use names::{fold_ident, folded, name_parts, name_span, schema_and_name};
pub use nulls_distinct::unique_name;
pub use policies::{PolicyAction, PolicyClause, PolicyCommand, PolicyStatement, policy_expr};
pub use position::{Lines, byte_of, position_of};
pub use rewrite::{all_fields, variadic};
pub use roles::{RoleCommand, RoleName, RoleOptions, SettingChange};
pub use routines::{
    AlterRoutine, ArgClause, ConfigClause, CreateRoutine, RoutineCommand, RoutineOption,
    RoutineRef, RoutineWord, TypeClause, redundant,
};
pub use rows_from::{RowsFunction, rows_from};
pub use sequence_options::sequence_name;
pub use set_schema::schema_of;
pub use targets::subscripts;
pub use triggers::{NewTrigger, Transition, TriggerAction, TriggerStatement};
pub use types::{AlterAttribute, AttributeClause, RangeClause, TypeCommand};
pub use views::{AlterView, CheckOption, CreateView, ViewCommand};
pub use windows::{EXCLUSIONS, carried};
pub use xml::xml_construct;

pub use definition::{ArgMode, Timing, TriggerEvent, TriggerTime, Volatility};
use depth::Depth;
use logstead_sql_types::error::{Result, SqlError, too_deep};
use logstead_types::SqlState;
use sqlparser::ast as library;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};
use std::sync::Arc;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree. Its spans count lines and columns of the whole text that was given to [`parse`].
    pub statement: Arc<Tree>,
    /// First byte of the statement in the text.
    pub start: usize,
    /// End of the statement in the text, without the semicolon.
    pub end: usize,
    /// Who handles it.
    pub kind: StatementKind,
    /// The past that it is to read; PREPARE's is that of what it prepares.
    pub as_of: Option<AsOf>,
}

/// Parses all statements of `text`. Empty statements vanish: an empty text gives an empty list.
/// None of them is deep.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    parse_up_to(text, Deep::No)
}

/// The same for who gives the trees as much stack as they need ([`Tree::stack_bytes`]): queries may be deep.
pub fn parse_deep(text: &str) -> Result<Vec<Parsed>> {
    parse_up_to(text, Deep::Yes)
}

/// May a statement be deep?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deep {
    No,
    Yes,
}

fn parse_up_to(text: &str, deep: Deep) -> Result<Vec<Parsed>> {
    let statements = lexing::statements(text)?;
    statements
        .iter()
        .try_for_each(|tokens| lexing::refuse_marks(text, tokens))?;
    parse_all(text, statements, deep)
}

/// The same of a text that the catalog keeps, where names may be numbers behind a mark.
pub fn parse_kept(text: &str) -> Result<Vec<Parsed>> {
    parse_all(text, lexing::statements(text)?, Deep::No)
}

fn parse_all(text: &str, statements: Vec<Vec<TokenWithSpan>>, deep: Deep) -> Result<Vec<Parsed>> {
    statements
        .into_iter()
        .map(|tokens| parse_one(text, tokens, deep))
        .collect()
}

/// Who handles a statement that stands inside another one (PREPARE, EXPLAIN).
pub fn kind_of(statement: &library::Statement) -> StatementKind {
    kind::classify(statement)
}

/// Parses an expression that stands alone: a stored DEFAULT or CHECK.
pub fn parse_expr(text: &str) -> Result<library::Expr> {
    let dialect = PostgreSqlDialect {};
    let mut tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| position::token_error(text, &error))?;
    if depth::depth_of(text, &tokens)?.deep {
        return Err(too_deep());
    }
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    rewrite::mark_variadics(&mut tokens);
    xml::rewrite(text, &mut tokens)?;
    spellings::collated_cast(&mut tokens);
    rewrite::trims_from(&mut tokens);
    operators::of_images(&mut tokens);
    let has_not_exists = not_exists::rewrite(&mut tokens);
    let has_query_operands = query_operands::rewrite(&mut tokens);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(depth::NESTING_MAX)
        .with_tokens_with_locations(tokens);
    let mut expr = parser
        .parse_expr()
        .map_err(|error| position::parse_error(text, &error, &parser.peek_token()))?;
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(position::error_at_token(text, &rest));
    }
    if has_not_exists {
        not_exists::plain(&mut expr);
    }
    if has_query_operands {
        query_operands::plain(&mut expr);
    }
    Ok(expr)
}

/// Does a statement that is not understood say at what time it reads, as others' grammars have it?
fn names_time(tokens: &[TokenWithSpan]) -> bool {
    let is = |token: &TokenWithSpan, word: &str| match &token.token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    };
    let pairs = [("as", "of"), ("for", "system_time"), ("for", "system")];
    tokens.windows(2).any(|next| {
        pairs
            .iter()
            .any(|(a, b)| is(&next[0], a) && is(&next[1], b))
    })
}

/// 42601 for COPY of a query that is to be copied into.
fn refuse_copy_from_query(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let is_query = rewrite::is_word(tokens.first(), "copy")
        && tokens.get(1).is_some_and(|t| t.token == Token::LParen);
    let behind = is_query.then(|| parentheses::end_of(tokens, 1)).flatten();
    let next = behind.and_then(|end| tokens.get(end + 1));
    match next {
        Some(next) if rewrite::is_word(Some(next), "from") => {
            Err(position::error_at_token(text, next))
        }
        _ => Ok(()),
    }
}

/// Does CREATE TABLE stand there, with or without a word more?
fn is_creation(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is = |at: usize, word: &str| rewrite::is_word(tokens.get(at), word);
    is(at, "create") && (at + 1..at + 4).any(|at| is(at, "table"))
}

/// A query that stands for another statement.
fn query_tokens() -> [TokenWithSpan; 2] {
    let word = Token::make_keyword("SELECT");
    [word, Token::Number("1".to_owned(), false)].map(|token| TokenWithSpan {
        token,
        span: Span::empty(),
    })
}

fn parse_one(text: &str, tokens: Vec<TokenWithSpan>, deep: Deep) -> Result<Parsed> {
    let depth = depth::depth_of(text, &tokens)?;
    if depth.deep && deep == Deep::No {
        return Err(too_deep());
    }
    on_enough_stack(depth.stack_bytes(), || parse_within(text, tokens, depth))
}

/// Parses a statement on a stack that is long enough.
fn parse_within(text: &str, mut tokens: Vec<TokenWithSpan>, depth: Depth) -> Result<Parsed> {
    let start = tokens
        .first()
        .map_or(0, |token| byte_of(text, token.span.start));
    let end = tokens
        .last()
        .map_or(text.len(), |token| byte_of(text, token.span.end));
    let part = |tokens: Vec<TokenWithSpan>| parse_within(text, tokens, depth);
    let consists = match schema_elements::schema(&tokens, part)? {
        Some(parsed) => Some(parsed),
        None => schema_elements::table_of_execute(&tokens, part)?,
    };
    if let Some(parsed) = consists {
        return Ok(Parsed {
            start,
            end,
            ..parsed
        });
    }
    let as_of = as_of::take(text, &mut tokens);
    let copied = match copy_where::take(text, &mut tokens)? {
        Some(query) => {
            let next = query.get(3).cloned();
            let query = parse_one(text, query, Deep::No)?;
            let condition = copy_where::condition(&query.statement);
            let wrong = || match &next {
                Some(next) => position::error_at_token(text, next),
                None => position::error_at_token(text, &TokenWithSpan::new_eof()),
            };
            Some(Box::new(condition.ok_or_else(wrong)?))
        }
        None => None,
    };
    let copy_options = match copy_options::take(text, &mut tokens) {
        Ok(options) => options,
        Err(_) if names_time(&tokens) => return Err(as_of::not_there()),
        Err(error) => return Err(error),
    };
    alter_options::refuse_several(text, &tokens)?;
    refuse_copy_from_query(text, &tokens)?;
    xml::rewrite(text, &mut tokens)?;
    if let Some((statement, kind)) = rewrite::without_grammar(text, &tokens)? {
        if depth.deep {
            return Err(too_deep());
        }
        return Ok(Parsed {
            statement: Arc::new(Tree::from(statement)),
            start,
            end,
            kind,
            as_of: None,
        });
    }
    cursor::explained(text, &mut tokens)?;
    if let Some(at) = cursor::behind_explain(&tokens).filter(|at| is_creation(&tokens, *at)) {
        // What is made of a query has a grammar of its own.
        let made = parse_within(text, tokens.split_off(at), depth)?;
        let outer = tokens.drain(..).chain(query_tokens()).collect();
        let mut outer = Tree::into_statement(parse_within(text, outer, depth)?.statement);
        if let library::Statement::Explain { statement, .. } = &mut outer {
            **statement = Tree::into_statement(made.statement);
        }
        return Ok(Parsed {
            statement: Arc::new(Tree::new(outer, depth)),
            start,
            end,
            kind: StatementKind::Explain,
            as_of: None,
        });
    }
    if let Some((declare, from)) = cursor::declare(text, &tokens)? {
        let query = tokens.get(from..).unwrap_or_default();
        let parsed = parse_within(text, query.to_vec(), depth)?;
        if parsed.as_of.is_some() {
            return Err(SqlError::unsupported("AS OF in a cursor").hint(
                "In a block that begins with SET LOCAL logstead.as_of = '...' cursors read the past.",
            ));
        }
        return match (&**parsed.statement, query.first()) {
            (library::Statement::Query(_), _) => Ok(Parsed {
                start,
                kind: StatementKind::Declare(Box::new(declare)),
                ..parsed
            }),
            (library::Statement::CreateTable(_), _)
                if matches!(parsed.kind, StatementKind::Ddl("SELECT INTO")) =>
            {
                let into = query.iter().find(|t| rewrite::is_word(Some(t), "into"));
                Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "SELECT ... INTO is not allowed here",
                )
                .at(into.and_then(|into| span_position(text, into.span))))
            }
            (_, Some(first)) => Err(position::error_at_token(text, first)),
            (_, None) => Err(position::error_at_token(text, &TokenWithSpan::new_eof())),
        };
    }
    null_tests::rewrite(&mut tokens);
    let has_powers = tokens.iter().any(|token| token.token == Token::Caret);
    let names_time = names_time(&tokens);
    let unless_time = |error| {
        if names_time {
            as_of::not_there()
        } else {
            error
        }
    };
    let has_not_exists = not_exists::rewrite(&mut tokens);
    let has_query_operands = query_operands::rewrite(&mut tokens);
    let (tokens, notes) = rewrite::rewrite(text, tokens)?;
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(depth.recursion_limit())
        .with_tokens_with_locations(tokens);
    let mut statement = parser.parse_statement().map_err(|error| {
        unless_time(match position::behind_not(&parser) {
            Some(next) => position::error_at_token(text, &next),
            None => position::parse_error(text, &error, &parser.peek_token()),
        })
    })?;
    let rest = position::behind_not(&parser).unwrap_or_else(|| parser.peek_token());
    if rest.token != Token::EOF {
        return Err(unless_time(position::error_at_token(text, &rest)));
    }
    if has_powers {
        powers::signs_first(&mut statement);
    }
    rewrite::apply_notes(&mut statement, &notes);
    if has_not_exists {
        not_exists::plain(&mut statement);
    }
    if has_query_operands {
        query_operands::plain(&mut statement);
    }
    if let library::Statement::Explain { statement, .. } = &mut statement {
        create_as::of_select_into(statement);
    }
    let is_into = create_as::of_select_into(&mut statement);
    let mut kind = kind::classify(&statement);
    if let StatementKind::Transaction(deferrable) = &mut kind {
        *deferrable = notes.deferrable;
    }
    if is_into {
        kind = StatementKind::Ddl("SELECT INTO");
    }
    if let StatementKind::Copy(clauses) = &mut kind {
        clauses.condition = copied;
        clauses.options = copy_options;
    }
    if as_of.is_some() {
        as_of::check(&statement, &kind)?;
    }
    let is_handled = matches!(
        kind,
        StatementKind::Query | StatementKind::Explain | StatementKind::Prepared
    );
    if depth.deep && !is_handled {
        return Err(too_deep());
    }
    Ok(Parsed {
        statement: Arc::new(Tree::new(statement, depth)),
        start,
        end,
        kind,
        as_of,
    })
}

fn is_recursion(error: &ParserError) -> bool {
    matches!(error, ParserError::RecursionLimitExceeded)
}

/// A span's first character as an error position; none for made-up spans.
pub fn span_position(text: &str, span: Span) -> Option<usize> {
    (span.start.line > 0).then(|| position_of(text, span.start))
}

/// Position of the last `what` in front of a span: operators and parentheses are in no span of the tree.
pub fn before(text: &str, span: Span, what: &str) -> Option<usize> {
    if span.start.line == 0 {
        return None;
    }
    let start = byte_of(text, span.start);
    // The span may include it.
    let from = if text[start..].starts_with(what) {
        start
    } else {
        text[..start].rfind(what)?
    };
    Some(text[..from].chars().count() + 1)
}

/// An identifier's value: folded to lower case unless quoted.
pub fn fold(ident: &library::Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}

#[cfg(test)]
mod tests;
