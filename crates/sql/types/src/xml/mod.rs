//! XML: what is well-formed, documents as trees, and XPath. The type `xml` itself is `value::xml`.
//!
//! Owns: the declaration (`<?xml ...?>`) as PostgreSQL reads and writes it, well-formedness, documents as trees, and
//! XPath.
//!
//! Invariants: nothing outside of the text is ever read: an external entity stands for nothing. What entities stand
//! for is bounded, as is how deep
//! elements are nested; trees are charged as they grow; every loop over a text looks for interrupts.
//!
//! Markup is found by `quick-xml`; what makes it well-formed is checked here, because that library takes more than XML.

mod declaration;
mod dtd;
mod names;
mod read;
mod tree;
mod write;
pub mod xpath;

pub use declaration::Declaration;
pub use names::{is_char, is_name_char, is_name_start};
pub(crate) use read::{WellFormednessCheck, XmlTextKind, has_document_type, read};
pub use tree::{NodeId, Tree};
pub use write::{escaped, node_text, quoted};

use crate::error::SqlError;

/// What XML's reader stops at.
#[derive(Debug)]
pub enum XmlError {
    /// The text is not well-formed: in which line, and what is wrong.
    Malformed(usize, String),
    /// Anything else: an interrupt, no memory.
    Failed(SqlError),
}

impl From<SqlError> for XmlError {
    fn from(error: SqlError) -> XmlError {
        XmlError::Failed(error)
    }
}

impl XmlError {
    /// The error that tells of it.
    pub fn into_sql_error(self, code: logstead_types::SqlState, message: &str) -> SqlError {
        match self {
            XmlError::Failed(error) => error,
            XmlError::Malformed(line, what) => {
                SqlError::new(code, message).detail(format!("line {line}: {what}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
