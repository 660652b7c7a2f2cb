//! From the tree of the grammar ([`ast`](crate::ast)) to the tree that the binder reads ([`lowered`](crate::lowered)):
//! queries, DML and expressions.
//!
//! Owns: nothing that stays. The binder is converted to the grammar's tree one family after the other; each takes its
//! part of this module away.
//!
//! # Rules
//!
//! - A name of the grammar's tree is folded and cut to the length that names may have already.
//! - What we know and the server does not support is refused here by name (0A000), as far as it cannot be told in the
//!   lowered tree.

mod dml;
mod expr;
mod expr_call;
mod expr_operator;
mod expr_xml;
mod from;
mod query;
mod statement;

use crate::ast::{CallStmt, Expr, Location, RawStmt, SelectStmt, Stmt};
use crate::depth::Depth;
use crate::lexer::Lexer;
use crate::lowered as library;
use crate::{AsOf, Parsed, StatementKind, StatementTree, grammar};
use logstead_sql_types::error::{Result, too_deep};
use logstead_sql_types::memory::MemoryReservation;
use std::cell::Cell;
use std::sync::Arc;

/// A lowered statement, who handles it, and what it reads.
pub(crate) struct Lowered {
    pub(crate) statement: library::Statement,
    pub(crate) kind: StatementKind,
    pub(crate) as_of: Option<AsOf>,
}

/// Lowers what was read from one text.
pub(crate) struct Lower<'a> {
    /// The text that places are bytes of.
    text: &'a str,
    /// Levels of expressions that are being lowered.
    depth: Cell<usize>,
}

impl<'a> Lower<'a> {
    pub(crate) fn new(text: &'a str) -> Lower<'a> {
        Lower {
            text,
            depth: Cell::new(0),
        }
    }

    /// A place as errors tell it.
    pub(super) fn error_position(&self, location: Location) -> Option<usize> {
        location.character(self.text)
    }

    fn raw(&self, raw: &RawStmt, max: MaxDepth) -> Result<Parsed> {
        let depth = Depth::of_levels(raw.levels)?;
        if depth.deep && max == MaxDepth::Shallow {
            return Err(too_deep());
        }
        let lowered = crate::on_enough_stack(depth.stack_bytes(), || self.statement(&raw.stmt))?;
        let tree = StatementTree::new(lowered.statement, depth);
        let may_be_deep = match &lowered.kind {
            StatementKind::Query => true,
            StatementKind::Utility(stmt) => matches!(
                **stmt,
                Stmt::Prepare(_) | Stmt::DeclareCursor(_) | Stmt::Explain(_)
            ),
        };
        if tree.stack_bytes() > 0 && !may_be_deep {
            return Err(too_deep());
        }
        Ok(Parsed {
            statement: Arc::new(tree),
            start: raw.start,
            end: raw.end,
            kind: lowered.kind,
            as_of: lowered.as_of,
            truncated: raw.truncated.clone(),
        })
    }
}

/// How deep a statement's tree may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxDepth {
    /// As deep as any stack has room for.
    Shallow,
    /// Queries may be deeper: who reads the tree sees to the stack.
    Deep,
}

/// Reads the statements of a text. Empty statements vanish.
pub(crate) fn parse(text: &str, max: MaxDepth) -> Result<Vec<Parsed>> {
    let _charged = room_for_trees(text)?;
    lowered(text, &grammar::parse(text)?, max)
}

/// The same of a text that the catalog keeps. None of them is deep.
pub(crate) fn parse_stored(text: &str) -> Result<Vec<Parsed>> {
    lowered(text, &grammar::parse_stored(text)?, MaxDepth::Shallow)
}

fn lowered(text: &str, statements: &[RawStmt], max: MaxDepth) -> Result<Vec<Parsed>> {
    let lower = Lower::new(text);
    statements.iter().map(|raw| lower.raw(raw, max)).collect()
}

/// Texts of fewer bytes are not charged.
const CHARGED_BYTES_MIN: usize = 64 << 10;
/// What a token takes while a text is read: itself, and its nodes in both trees.
const TOKEN_BYTES: usize = 256;

/// Room for what a text becomes while it is read.
fn room_for_trees(text: &str) -> Result<MemoryReservation> {
    if text.len() < CHARGED_BYTES_MIN {
        return Ok(MemoryReservation::default());
    }
    let tokens = Lexer::count(text);
    MemoryReservation::of(
        tokens
            .saturating_mul(TOKEN_BYTES)
            .saturating_add(text.len()),
    )
}

/// Reads an expression that stands alone, which is not deep.
pub(crate) fn parse_expr(text: &str) -> Result<library::Expr> {
    let (expr, levels) = grammar::parse_stored_expr_of_levels(text)?;
    match Depth::of_levels(levels)?.deep {
        true => Err(too_deep()),
        false => Lower::new(text).expr(&expr),
    }
}

/// An expression of a statement as the binder reads it. `text` is that of the statement. It is not deep.
pub(crate) fn expr_of(expr: &Expr, text: &str) -> Result<library::Expr> {
    Lower::new(text).expr(expr)
}

/// A query of a statement as the binder reads it. It is not deep.
pub(crate) fn query_of(query: &SelectStmt, text: &str) -> Result<library::SelectStmt> {
    Lower::new(text).query(query)
}

/// The procedure that a CALL calls, as the binder reads it.
pub(crate) fn call_of(call: &CallStmt, text: &str) -> Result<library::FuncCall> {
    Lower::new(text).func_call(&call.funccall)
}

/// A statement that another one prepares or explains, as the binder reads it.
pub(crate) fn inner_statement(
    stmt: &Stmt,
    text: &str,
    outer: &StatementTree,
) -> Result<StatementTree> {
    inner(text, outer, |lower| lower.preparable(stmt))
}

/// The same of a query.
pub(crate) fn inner_query(
    query: &SelectStmt,
    text: &str,
    outer: &StatementTree,
) -> Result<StatementTree> {
    inner(text, outer, |lower| {
        Ok(library::Statement::Select(Box::new(lower.query(query)?)))
    })
}

fn inner(
    text: &str,
    outer: &StatementTree,
    lowered: impl FnOnce(&Lower<'_>) -> Result<library::Statement>,
) -> Result<StatementTree> {
    let lower = Lower::new(text);
    let statement = crate::on_enough_stack(outer.stack_bytes(), || lowered(&lower))?;
    Ok(outer.of_depth(statement))
}
