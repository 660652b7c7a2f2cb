//! From text to statements: SQL, and the bodies of functions in PL/pgSQL ([`plpgsql`]).
//!
//! Owns: PostgreSQL's lexer ([`lexer`]) and grammar ([`grammar`]), which give its tree ([`ast`]); and, until the binder
//! reads that tree, the translation (`lower`) of queries, DML and expressions to the tree that it reads today
//! ([`lowered`]). Does not look at the catalog: a [`Parsed`] is good for ever and may be cached by text.
//!
//! Sources of views, which stored texts name by number, travel in the tree that is lowered as names behind a mark,
//! which no client's text can have; functions and types are nodes that say their numbers.
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
mod kind;
pub mod lexer;
mod lower;
pub mod lowered;
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
pub use kind::StatementKind;
pub use names::{name_range, schema_and_name};
pub use position::TextPositions;
pub use views::CheckOption;

use logstead_sql_types::error::Result;
use lowered as library;
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
    /// Who handles it.
    pub kind: StatementKind,
    /// The past that it is to read; PREPARE's is that of what it prepares.
    pub as_of: Option<AsOf>,
    /// Names in it that are longer than names may be.
    pub truncated: Vec<lexer::TruncatedName>,
}

impl Parsed {
    /// A part of this one that is run as a statement of its own, and is none that is planned.
    pub fn element(&self, stmt: ast::Stmt, range: ast::TextRange) -> Parsed {
        let (start, end) = range.bytes().unwrap_or((self.start, self.end));
        Parsed {
            statement: Arc::new(StatementTree::from(library::Statement::Utility)),
            start,
            end,
            kind: StatementKind::Utility(Arc::new(stmt)),
            as_of: None,
            truncated: Vec::new(),
        }
    }

    /// The statement that this one prepares or explains, as the binder reads it. `text` is that of both.
    pub fn lower_inner(&self, stmt: &ast::Stmt, text: &str) -> Result<StatementTree> {
        lower::inner_statement(stmt, text, &self.statement)
    }

    /// The same of a query that is a part of it.
    pub fn lower_inner_query(&self, query: &ast::SelectStmt, text: &str) -> Result<StatementTree> {
        lower::inner_query(query, text, &self.statement)
    }
}

/// Parses all statements of `text`. Empty statements vanish: an empty text gives an empty list.
/// None of them is deep.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    lower::parse(text, lower::MaxDepth::Shallow)
}

/// The same for who gives the trees as much stack as they need ([`StatementTree::stack_bytes`]): queries may be deep.
pub fn parse_deep(text: &str) -> Result<Vec<Parsed>> {
    lower::parse(text, lower::MaxDepth::Deep)
}

/// An expression of a statement as the binder reads it, until it reads the grammar's tree. `text` is that of the
/// statement. It is not deep.
pub fn lower_expr(expr: &ast::Expr, text: &str) -> Result<library::Expr> {
    lower::expr_of(expr, text)
}

/// A query of a statement in the same way. It is not deep.
pub fn lower_query(query: &ast::SelectStmt, text: &str) -> Result<library::SelectStmt> {
    lower::query_of(query, text)
}

/// The procedure that CALL calls in the same way.
pub fn lower_call(call: &ast::CallStmt, text: &str) -> Result<library::FuncCall> {
    lower::call_of(call, text)
}

/// Reads the name of a type that stands alone, as the catalog keeps it.
pub fn parse_type_name(text: &str) -> Result<ast::TypeName> {
    grammar::parse_stored_type_name(text)
}

/// The same of a text that the catalog keeps, where names may be numbers behind a mark.
pub fn parse_stored(text: &str) -> Result<Vec<Parsed>> {
    lower::parse_stored(text)
}

/// Parses an expression that stands alone: a stored DEFAULT or CHECK.
pub fn parse_expr(text: &str) -> Result<library::Expr> {
    lower::parse_expr(text)
}

#[cfg(test)]
mod tests;
