//! XPath 1.0 over the trees of `xml::tree`.
//!
//! Owns: reading an expression (`lex`, `parse`), its value for a node (`eval`), texts (`text`), the core library of
//! functions (`functions`). Names with prefixes
//! get their namespaces when an expression is read. No variables, no other functions, no axis of namespaces.
//!
//! Invariants: how deep an expression is nested and how long it is are bounded; sets of nodes and texts
//! are charged as long as they are there; walks look for interrupts.

mod eval;
mod functions;
mod lex;
mod parse;
mod text;

pub use eval::{Value, number_text};
pub use text::ChargedText;

use super::tree::{NodeId, Tree};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::MemoryReservation;
use logstead_types::SqlState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// An expression that has been read.
#[derive(Debug)]
pub struct XPath(parse::Expr);

/// What is wrong with an expression.
#[derive(Debug)]
pub enum XPathError {
    /// It is none: XX000 "invalid XPath expression".
    Syntax,
    /// It names what there is not.
    Unknown(&'static str),
    /// 0A000
    Unsupported(&'static str),
}

impl XPathError {
    fn into_sql_error(self) -> SqlError {
        match self {
            XPathError::Syntax => {
                SqlError::new(SqlState::INTERNAL_ERROR, "invalid XPath expression")
                    .detail("Invalid expression")
            }
            XPathError::Unknown(what) => {
                SqlError::new(SqlState::INTERNAL_ERROR, "could not create XPath object")
                    .detail(what)
            }
            XPathError::Unsupported(what) => SqlError::unsupported(what),
        }
    }
}

/// Prefixes and the namespaces that they stand for; the empty one is that of names without a prefix (XMLTABLE's
/// DEFAULT).
#[derive(Debug, Default)]
pub struct Namespaces<'a> {
    uris: HashMap<&'a str, Arc<str>>,
    bytes: usize,
    room: MemoryReservation,
}

/// What a prefix takes beside its URI.
const PREFIX_BYTES: usize = 96;

impl<'a> Namespaces<'a> {
    /// Another prefix; of those that are the same the first one counts.
    pub fn add(&mut self, prefix: &'a str, uri: &str) -> Result<()> {
        check_for_interrupts()?;
        if let Entry::Vacant(place) = self.uris.entry(prefix) {
            self.bytes += uri.len() + PREFIX_BYTES;
            self.room.hold(self.bytes)?;
            place.insert(uri.into());
        }
        Ok(())
    }

    /// What a prefix stands for.
    fn uri(&self, prefix: &str) -> Option<Arc<str>> {
        self.uris.get(prefix).cloned()
    }
}

impl XPath {
    /// Reads an expression.
    pub fn parse(text: &str, namespaces: &Namespaces<'_>) -> Result<XPath> {
        parse::parse(text, namespaces)
            .map(XPath)
            .map_err(XPathError::into_sql_error)
    }

    /// Its value for a node.
    pub fn value(&self, tree: &Tree<'_>, node: NodeId) -> Result<Value> {
        eval::evaluate(&self.0, tree, node)
    }
}
