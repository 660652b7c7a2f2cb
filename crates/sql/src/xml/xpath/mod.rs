//! XPath 1.0 over the trees of [`super::tree`].
//!
//! Owns: reading an expression (`lex`, `parse`), its value for a node (`eval`), the core library of functions (`functions`). Names with prefixes
//! get their namespaces when an expression is read. No variables, no other functions, no axis of namespaces.
//!
//! Invariants: how deep an expression is nested and how long it is are bounded; sets of nodes are charged; walks look for interrupts.

mod eval;
mod functions;
mod lex;
mod parse;

pub(crate) use eval::{Value, number_text};

use super::tree::{NodeId, Tree};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;

/// An expression that has been read.
#[derive(Debug)]
pub(crate) struct XPath(parse::Expr);

/// What is wrong with an expression.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// It is none: XX000 "invalid XPath expression".
    Syntax,
    /// It names what there is not.
    Unknown(&'static str),
    /// 0A000
    Unsupported(&'static str),
}

impl Wrong {
    fn told(self) -> SqlError {
        match self {
            Wrong::Syntax => SqlError::new(SqlState::INTERNAL_ERROR, "invalid XPath expression")
                .detail("Invalid expression"),
            Wrong::Unknown(what) => {
                SqlError::new(SqlState::INTERNAL_ERROR, "could not create XPath object")
                    .detail(what)
            }
            Wrong::Unsupported(what) => SqlError::unsupported(what),
        }
    }
}

/// Prefixes and the namespaces that they stand for; the empty one is that of names without a prefix (XMLTABLE's DEFAULT).
pub(crate) type Namespaces = [(String, String)];

impl XPath {
    /// Reads an expression.
    pub(crate) fn parse(text: &str, namespaces: &Namespaces) -> Result<XPath> {
        parse::parse(text, namespaces)
            .map(XPath)
            .map_err(Wrong::told)
    }

    /// Its value for a node.
    pub(crate) fn value(&self, tree: &Tree<'_>, node: NodeId) -> Result<Value> {
        eval::evaluate(&self.0, tree, node)
    }
}
