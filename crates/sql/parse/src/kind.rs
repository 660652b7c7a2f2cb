//! Which part of the server handles a statement.

use super::constraints::{AlterConstraint, SetConstraints};
use super::do_block::DoBlock;
use super::views::ViewCommand;
use crate::ast::Stmt;
use crate::lowered::{self as ast, Statement};
use std::sync::Arc;

/// Who handles a statement, and under which command tag where the statement alone decides it. Of a command that is
/// here the tree is [`Statement::Command`].
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE: `plan::plan_statement`.
    Query,
    /// CREATE SCHEMA with what is made in it, in the order in which that is done: the session, one after the other.
    SchemaElements(Arc<Vec<super::Parsed>>),
    /// CREATE TABLE AS EXECUTE, which stands here; its own query stands for that one's.
    TableOfExecute(Arc<super::Tree>),
    /// What is read as the grammar gives it: the catalog, or the session.
    Utility(Arc<Stmt>),
    /// CREATE and ALTER of a table, CREATE of an index or a schema: the catalog. The command tag.
    Ddl(&'static str),
    /// ALTER TABLE ... ALTER CONSTRAINT: the catalog.
    AlterConstraint(Box<AlterConstraint>),
    /// Views: the catalog.
    View(Box<ViewCommand>),
    /// SET CONSTRAINTS.
    SetConstraints(Box<SetConstraints>),
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, SET TRANSACTION; and `[NOT] DEFERRABLE` among its modes.
    Transaction(Option<bool>),
    /// PREPARE TRANSACTION, which ends the transaction and keeps none.
    PrepareTransaction,
    /// SET, SHOW, RESET, DISCARD.
    Setting,
    /// PREPARE, EXECUTE, DEALLOCATE.
    Prepared,
    /// COPY, with its options and the condition of WHERE, which are not in the tree.
    Copy(Box<super::CopyClauses>),
    /// EXPLAIN.
    Explain,
    /// CLOSE.
    Cursor,
    /// DECLARE of a cursor; the statement is its query.
    Declare(Box<DeclareCursor>),
    /// FETCH, MOVE.
    Fetch(Box<FetchRows>),
    /// DO.
    Do(Box<DoBlock>),
    /// CALL.
    Call,
    /// LISTEN, UNLISTEN, NOTIFY.
    Notify,
    /// CHECKPOINT.
    Checkpoint,
    /// LOCK TABLE.
    Lock,
    /// Known SQL that is not supported, by name: answered with 0A000.
    Unsupported(&'static str),
}

/// DECLARE name CURSOR.
#[derive(Clone, Debug)]
pub struct DeclareCursor {
    /// Its name.
    pub name: String,
    /// Rows are given in binary.
    pub binary: bool,
    /// INSENSITIVE was said: all cursors are.
    pub insensitive: bool,
    /// SCROLL, NO SCROLL, or neither.
    pub scroll: Option<bool>,
    /// WITH HOLD.
    pub hold: bool,
}

/// FETCH, MOVE.
#[derive(Clone, Debug)]
pub struct FetchRows {
    /// Of which cursor.
    pub name: String,
    /// MOVE: rows are passed, not given.
    pub moves: bool,
    /// Where to.
    pub direction: FetchDirection,
}

/// Where a FETCH or MOVE goes; counts may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FetchDirection {
    Forward(i64),
    Backward(i64),
    Absolute(i64),
    Relative(i64),
}

impl FetchDirection {
    /// The count that stands for ALL.
    pub const ALL: i64 = i64::MAX;
}

/// Decides by the tree's kind alone.
pub(super) fn classify(statement: &Statement) -> StatementKind {
    use StatementKind as K;
    match statement {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_) => K::Query,
        Statement::CreateTable(table) if table.query.is_some() => K::Ddl("SELECT"),
        Statement::CreateTable(_) => K::Ddl("CREATE TABLE"),
        Statement::CreateIndex(_) => K::Ddl("CREATE INDEX"),
        Statement::CreateSchema { .. } => K::Ddl("CREATE SCHEMA"),
        Statement::AlterTable(_) => K::Ddl("ALTER TABLE"),
        Statement::CreateMaterializedView { .. } => K::Unsupported("CREATE VIEW"),
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. }
        | Statement::Set(ast::Set::SetTransaction { .. }) => K::Transaction(None),
        Statement::Set(_)
        | Statement::Reset(_)
        | Statement::Discard(_)
        | Statement::ShowVariable { .. } => K::Setting,
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Deallocate(_) => {
            K::Prepared
        }
        Statement::Copy { .. } => K::Copy(Box::default()),
        Statement::Explain { .. } => K::Explain,
        Statement::Close(_) => K::Cursor,
        Statement::Listen(_) | Statement::Unlisten(_) | Statement::Notify { .. } => K::Notify,
        Statement::Lock(_) => K::Lock,
        Statement::Call(_) => K::Call,
        Statement::Command => K::Unsupported("this statement"),
    }
}
