//! CREATE, ALTER and DROP POLICY, and COMMENT ON POLICY.
//!
//! Of the expressions the text is what is stored (`catalog::security`).

use super::roles::RoleName;
use crate::lowered as ast;

/// What a policy is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

impl PolicyCommand {
    /// `pg_policy.polcmd`.
    pub fn code(self) -> char {
        match self {
            PolicyCommand::All => '*',
            PolicyCommand::Select => 'r',
            PolicyCommand::Insert => 'a',
            PolicyCommand::Update => 'w',
            PolicyCommand::Delete => 'd',
        }
    }

    /// The command of a code.
    pub fn of_code(code: u8) -> Option<PolicyCommand> {
        Some(match code {
            b'*' => PolicyCommand::All,
            b'r' => PolicyCommand::Select,
            b'a' => PolicyCommand::Insert,
            b'w' => PolicyCommand::Update,
            b'd' => PolicyCommand::Delete,
            _ => return None,
        })
    }

    /// As `pg_policies` shows it.
    pub fn word(self) -> &'static str {
        match self {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }
}

/// USING (...) or WITH CHECK (...).
#[derive(Clone, Debug)]
pub struct PolicyClause {
    /// The condition; its spans count in the whole text.
    pub expr: ast::Expr,
    /// First byte and end of what is in the parentheses.
    pub range: (usize, usize),
}

/// A statement about policies.
#[derive(Clone, Debug)]
pub struct PolicyStatement {
    /// The policy.
    pub name: String,
    /// Its table.
    pub table: ast::ObjectName,
    /// What becomes of it.
    pub action: PolicyAction,
}

/// What a statement does with a policy.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum PolicyAction {
    Create {
        permissive: bool,
        command: PolicyCommand,
        roles: Vec<RoleName>,
        using: Option<PolicyClause>,
        check: Option<PolicyClause>,
    },
    Alter {
        roles: Option<Vec<RoleName>>,
        using: Option<PolicyClause>,
        check: Option<PolicyClause>,
    },
    Rename(String),
    Drop {
        if_exists: bool,
    },
    /// COMMENT ON; none removes it.
    Comment(Option<String>),
}

impl PolicyStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self.action {
            PolicyAction::Create { .. } => "CREATE POLICY",
            PolicyAction::Alter { .. } | PolicyAction::Rename(_) => "ALTER POLICY",
            PolicyAction::Drop { .. } => "DROP POLICY",
            PolicyAction::Comment(_) => "COMMENT",
        }
    }
}

/// The one column of a query that stands for an expression.
pub fn policy_expr(query: &ast::Query) -> Option<&ast::Expr> {
    let select = query.body.as_select()?;
    match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(expr)] => Some(expr),
        _ => None,
    }
}
