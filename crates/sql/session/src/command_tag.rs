//! Command tags: what a statement is called in its answer, and in errors that refuse it.

use logstead_sql_parse::{Parsed, StatementKind};
use std::borrow::Cow;

/// What a statement that is not planned is called in messages.
pub(crate) fn tag_of(parsed: &Parsed) -> Cow<'static, str> {
    let tag = match &parsed.kind {
        StatementKind::Ddl(tag) => *tag,
        StatementKind::View(command) => command.tag(),
        StatementKind::Utility(stmt) => stmt.tag(),
        StatementKind::AlterConstraint(_) => "ALTER TABLE",
        StatementKind::Declare(_) => "DECLARE CURSOR",
        StatementKind::Do(_) => "DO",
        StatementKind::Call => "CALL",
        StatementKind::Copy(_) => "COPY",
        StatementKind::Explain => "EXPLAIN",
        StatementKind::SchemaElements(_) => "CREATE SCHEMA",
        StatementKind::TableOfExecute(_) => "CREATE TABLE AS",
        StatementKind::Unsupported(what) => *what,
        StatementKind::Query | StatementKind::Prepared => parsed.statement.word(),
    };
    Cow::Borrowed(tag)
}
