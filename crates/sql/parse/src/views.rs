//! CREATE VIEW, CREATE MATERIALIZED VIEW, ALTER VIEW and REFRESH: what their grammar has around a query.
//!
//! The text of the query is what is stored (`catalog::view`).

use crate::ast::DefElem;
use crate::lowered as ast;

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
    pub options: Vec<DefElem>,
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
