//! The options of COPY in both spellings.

use crate::lowered as ast;
use logstead_sql_types::error::SqlError;

/// What COPY says behind its source and target.
#[derive(Clone, Debug, Default)]
pub struct CopyClauses {
    /// The condition of WHERE.
    pub condition: Option<Box<ast::Expr>>,
    /// The options in the order of the text.
    pub options: Vec<CopyOption>,
}

/// One option, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOption {
    /// Its name, folded as names are.
    pub name: String,
    /// What stands behind it.
    pub value: CopyValue,
    /// Where it stands in the text, in characters from 1.
    pub position: Option<usize>,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyValue {
    /// None was given.
    Nothing,
    /// A word or a literal.
    Text(String),
    /// A number as it was written.
    Number(String),
    /// `*`.
    All,
    /// A list of names in parentheses.
    Names(Vec<String>),
}

/// 42601, PostgreSQL's text, for an option that is given twice.
pub fn redundant_option(option: &CopyOption) -> SqlError {
    SqlError::new(
        logstead_types::SqlState::SYNTAX_ERROR,
        "conflicting or redundant options",
    )
    .at(option.position)
}
