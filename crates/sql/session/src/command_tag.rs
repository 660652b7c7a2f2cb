//! Command tags: what a statement is called in its answer, and in errors that refuse it.

use logstead_sql_parse::{Parsed, StatementKind};

/// What a statement is called in messages.
pub(crate) fn tag_of(parsed: &Parsed) -> &'static str {
    match &parsed.kind {
        StatementKind::Utility(stmt) => stmt.tag(),
        StatementKind::Query => parsed.statement.tag(),
    }
}
