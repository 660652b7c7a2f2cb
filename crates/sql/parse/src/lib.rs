//! From text to statements: SQL, and the bodies of functions in PL/pgSQL ([`plpgsql`]).
//!
//! Owns: PostgreSQL's lexer ([`lexer`]) and grammar ([`grammar`]), which give its tree ([`ast`]). Does not look at the
//! catalog: a [`Parsed`] is good for ever and may be cached by text.
//!
//! Invariant: whatever the text, parsing, walking and dropping the tree uses a bounded amount of stack.

#![forbid(unsafe_code)]

mod as_of;
pub mod ast;
mod conforming_strings;
mod definition;
mod depth;
mod do_block;
mod expressions;
pub mod grammar;
pub mod lexer;
mod names;
pub mod plpgsql;
mod position;
mod views;

pub use as_of::{AsOf, AsOfPoint};
pub use ast::names_shown;
pub use conforming_strings::{LiteralRules, conforming};
pub use definition::{ArgMode, PolicyCommand, Timing, TriggerEvent, TriggerTime, Volatility};
pub use depth::{StatementTree, drop_deep, on_enough_stack, planned_on_enough_stack};
pub use do_block::DoBlock;
pub use expressions::{
    all_fields, nulls_first, policy_expr, row_of, sort_direction, sort_operator,
};
pub use names::{name_range, schema_and_name};
pub use position::TextPositions;
pub use views::CheckOption;

use ast::Stmt;
use depth::Depth;
use logstead_sql_types::error::{Result, too_deep};
use logstead_sql_types::memory::MemoryReservation;
use std::sync::Arc;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree. Its places are bytes of the whole text that was given to [`parse`].
    pub statement: Arc<StatementTree>,
    /// First byte of the statement in the text.
    pub start: usize,
    /// End of the statement in the text, without the semicolon.
    pub end: usize,
    /// The past that it is to read; PREPARE's is that of what it prepares.
    pub as_of: Option<AsOf>,
    /// Names in it that are longer than names may be.
    pub truncated: Vec<lexer::TruncatedName>,
}

impl Parsed {
    /// The statement, if it is a utility statement: the catalog or the session handles it, not the planner.
    pub fn utility(&self) -> Option<&Stmt> {
        let stmt: &Stmt = &self.statement;
        (!stmt.is_planned()).then_some(stmt)
    }

    /// A part of this one that is run as a statement of its own, and is none that is planned.
    pub fn element(&self, stmt: ast::Stmt, range: ast::TextRange) -> Parsed {
        let (start, end) = range.bytes().unwrap_or((self.start, self.end));
        Parsed {
            statement: Arc::new(StatementTree::new(Arc::new(stmt), Depth::default())),
            start,
            end,
            as_of: None,
            truncated: Vec::new(),
        }
    }
}

/// How deep a statement's tree may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaxDepth {
    /// As deep as any stack has room for.
    Shallow,
    /// Queries may be deeper: who reads the tree sees to the stack.
    Deep,
}

/// Parses all statements of `text`. Empty statements vanish: an empty text gives an empty list.
/// None of them is deep.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    parse_up_to(text, MaxDepth::Shallow)
}

/// The same for who gives the trees as much stack as they need ([`StatementTree::stack_bytes`]): queries may be deep.
pub fn parse_deep(text: &str) -> Result<Vec<Parsed>> {
    parse_up_to(text, MaxDepth::Deep)
}

fn parse_up_to(text: &str, max: MaxDepth) -> Result<Vec<Parsed>> {
    let _charged = room_for_tree(text)?;
    let raw = grammar::parse(text)?.into_iter();
    raw.map(|raw| parsed(raw, text, max)).collect()
}

/// Parses the statements of a text that the catalog keeps, where names may be numbers behind a mark. None of them is
/// deep.
pub fn parse_stored(text: &str) -> Result<Vec<Parsed>> {
    let raw = grammar::parse_stored(text)?.into_iter();
    raw.map(|raw| parsed(raw, text, MaxDepth::Shallow))
        .collect()
}

/// Parses an expression that stands alone: a stored DEFAULT or CHECK. It is not deep.
pub fn parse_expr(text: &str) -> Result<ast::Expr> {
    let (expr, levels) = grammar::parse_stored_expr_of_levels(text)?;
    match Depth::of_levels(levels)?.deep {
        true => Err(too_deep()),
        false => Ok(expr),
    }
}

/// Reads the name of a type that stands alone, as the catalog keeps it.
pub fn parse_type_name(text: &str) -> Result<ast::TypeName> {
    grammar::parse_stored_type_name(text)
}

/// A statement as it is run: SELECT INTO is CREATE TABLE AS, and RETURN is a query.
fn parsed(raw: ast::RawStmt, text: &str, max: MaxDepth) -> Result<Parsed> {
    let depth = Depth::of_levels(raw.levels)?;
    let is_too_deep = depth.deep && max == MaxDepth::Shallow;
    if is_too_deep || raw.conjuncts > depth::CONJUNCTIONS_MAX {
        return Err(too_deep());
    }
    let as_of = as_of::of_stmt(&raw.stmt, text);
    let stmt = match raw.stmt {
        Stmt::Select(query) => match query.select_into() {
            Some(create) => Stmt::CreateTableAs(Box::new(create)),
            None => Stmt::Select(query),
        },
        Stmt::Return(result) => Stmt::Select(Box::new(select_of(result.returnval))),
        stmt => stmt,
    };
    let has_query = matches!(
        stmt,
        Stmt::Prepare(_) | Stmt::DeclareCursor(_) | Stmt::Explain(_)
    );
    if depth.deep && !stmt.is_planned() && !has_query {
        return Err(too_deep());
    }
    Ok(Parsed {
        statement: Arc::new(StatementTree::new(Arc::new(stmt), depth)),
        start: raw.start,
        end: raw.end,
        as_of,
        truncated: raw.truncated,
    })
}

/// SELECT of an expression.
fn select_of(value: ast::Expr) -> ast::SelectStmt {
    let core = ast::SelectCore {
        target_list: vec![ast::ResTarget::of(None, value)],
        ..ast::SelectCore::default()
    };
    ast::SelectStmt::of(ast::SelectBody::Select(Box::new(core)))
}

/// Texts of fewer bytes are not charged.
const CHARGED_BYTES_MIN: usize = 64 << 10;
/// What a token takes while a text is read: itself, and its nodes.
const TOKEN_BYTES: usize = 256;

/// Room for what a text becomes while it is read.
fn room_for_tree(text: &str) -> Result<MemoryReservation> {
    if text.len() < CHARGED_BYTES_MIN {
        return Ok(MemoryReservation::default());
    }
    let tokens = lexer::Lexer::count(text);
    MemoryReservation::of(
        tokens
            .saturating_mul(TOKEN_BYTES)
            .saturating_add(text.len()),
    )
}

#[cfg(test)]
mod tests;
