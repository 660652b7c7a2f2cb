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
    /// CREATE and ALTER of a table, an index, a sequence or a schema: the catalog. The command tag.
    Ddl(&'static str),
    /// ALTER SEQUENCE: the catalog.
    AlterSequence(Box<AlterSequence>),
    /// REINDEX, CLUSTER and ALTER INDEX: the catalog.
    Index(Box<IndexCommand>),
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
    /// VACUUM, ANALYZE.
    Maintain(Box<super::Maintain>),
    /// CLUSTER of all tables, REINDEX of schemas: nothing to do. The command tag.
    Maintenance(&'static str),
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

/// What else ALTER INDEX does.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum IndexAction {
    /// SET STATISTICS of a column by its number.
    Statistics {
        column: usize,
        target: i32,
    },
    Tablespace(String),
    AttachPartition,
    DependsOnExtension,
}

/// REINDEX, ALTER INDEX.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum IndexCommand {
    Reindex {
        table: bool,
        name: ast::ObjectName,
        concurrently: bool,
    },
    /// REINDEX SCHEMA; without a schema REINDEX DATABASE or SYSTEM of the database of that name.
    ReindexAll { schema: bool, name: String },
    Rename {
        if_exists: bool,
        name: ast::ObjectName,
        new: ast::ObjectName,
    },
    Set {
        if_exists: bool,
        name: ast::ObjectName,
        options: Vec<ast::SqlOption>,
    },
    Reset {
        if_exists: bool,
        name: ast::ObjectName,
        options: Vec<String>,
    },
    Cluster {
        table: ast::ObjectName,
        index: Option<ast::Ident>,
    },
    Alter {
        if_exists: bool,
        name: ast::ObjectName,
        action: IndexAction,
    },
}

impl IndexCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            IndexCommand::Reindex { .. } | IndexCommand::ReindexAll { .. } => "REINDEX",
            IndexCommand::Cluster { .. } => "CLUSTER",
            _ => "ALTER INDEX",
        }
    }
}

/// ALTER SEQUENCE.
#[derive(Clone, Debug)]
pub struct AlterSequence {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Which.
    pub name: ast::ObjectName,
    /// RESTART, with its value if one is given.
    pub restart: Option<Option<i64>>,
    /// AS.
    pub data_type: Option<ast::DataType>,
    /// The options it shares with CREATE SEQUENCE.
    pub options: Vec<ast::SequenceOptions>,
    /// OWNED BY table.column (or NONE).
    pub owned_by: Option<ast::ObjectName>,
    /// RENAME TO.
    pub rename: Option<ast::Ident>,
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
        Statement::CreateSequence { .. } => K::Ddl("CREATE SEQUENCE"),
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
