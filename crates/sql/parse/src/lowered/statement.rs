//! Statements.

use super::{
    AlterTable, CreateIndex, CreateTable, DataType, Delete, Expr, Function, Ident, Insert, Merge,
    ObjectName, Query, SetExpr, Update,
};
use crate::ast::{DiscardMode, LockMode};

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Statement {
    /// All that is said of it is in its [`StatementKind`](crate::StatementKind).
    Command,
    Query(Box<Query>),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Merge(Merge),
    CreateTable(CreateTable),
    CreateIndex(CreateIndex),
    CreateSchema {
        schema_name: SchemaName,
        if_not_exists: bool,
    },
    /// What EXPLAIN explains of CREATE MATERIALIZED VIEW.
    CreateMaterializedView {
        name: ObjectName,
        if_not_exists: bool,
        query: Box<Query>,
    },
    AlterTable(AlterTable),
    StartTransaction {
        modes: Vec<TransactionMode>,
        /// It says BEGIN.
        begin: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
        savepoint: Option<Ident>,
    },
    Savepoint {
        name: Ident,
    },
    ReleaseSavepoint {
        name: Ident,
    },
    Set(Set),
    Reset(Reset),
    ShowVariable {
        variable: Vec<Ident>,
    },
    Discard(DiscardMode),
    Prepare {
        name: Ident,
        data_types: Vec<DataType>,
        statement: Box<Statement>,
    },
    Execute {
        name: Ident,
        parameters: Vec<Expr>,
    },
    /// None is ALL.
    Deallocate(Option<Ident>),
    /// CLOSE; none is ALL.
    Close(Option<Ident>),
    Explain {
        statement: Box<Statement>,
        options: Vec<UtilityOption>,
    },
    Copy {
        source: CopySource,
        to: bool,
        target: CopyTarget,
    },
    Lock(Lock),
    Listen(Ident),
    /// None is all channels.
    Unlisten(Option<Ident>),
    Notify {
        channel: Ident,
        payload: Option<String>,
    },
    Call(Function),
}

impl Statement {
    /// The word that it begins with, of a statement that is no DDL.
    pub fn word(&self) -> &'static str {
        match self {
            Statement::Query(query) => match query.with {
                Some(_) => "WITH",
                None => body_word(&query.body),
            },
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Merge(_) => "MERGE",
            Statement::StartTransaction { begin: true, .. } => "BEGIN",
            Statement::StartTransaction { begin: false, .. } => "START",
            Statement::Commit { .. } => "COMMIT",
            Statement::Rollback { .. } => "ROLLBACK",
            Statement::Savepoint { .. } => "SAVEPOINT",
            Statement::ReleaseSavepoint { .. } => "RELEASE",
            Statement::Set(_) => "SET",
            Statement::Reset(_) => "RESET",
            Statement::ShowVariable { .. } => "SHOW",
            Statement::Discard(_) => "DISCARD",
            Statement::Prepare { .. } => "PREPARE",
            Statement::Execute { .. } => "EXECUTE",
            Statement::Deallocate(_) => "DEALLOCATE",
            Statement::Close(_) => "CLOSE",
            Statement::Explain { .. } => "EXPLAIN",
            Statement::Copy { .. } => "COPY",
            Statement::Lock(_) => "LOCK",
            Statement::Listen(_) => "LISTEN",
            Statement::Unlisten(_) => "UNLISTEN",
            Statement::Notify { .. } => "NOTIFY",
            Statement::Call(_) => "CALL",
            Statement::AlterTable(_) => "ALTER",
            Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateSchema { .. }
            | Statement::CreateMaterializedView { .. } => "CREATE",
            Statement::Command => "",
        }
    }
}

/// The word that a query begins with, apart from its parentheses.
fn body_word(body: &SetExpr) -> &'static str {
    let mut body = body;
    loop {
        body = match body {
            SetExpr::Select(_) => return "SELECT",
            SetExpr::Values(_) => return "VALUES",
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Insert(_) => return "INSERT",
            SetExpr::Update(_) => return "UPDATE",
            SetExpr::Delete(_) => return "DELETE",
            SetExpr::Merge(_) => return "MERGE",
        };
    }
}

/// The name of a new schema, its owner, or both.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "what is said")]
pub enum SchemaName {
    Simple(ObjectName),
    UnnamedAuthorization(Ident),
    NamedAuthorization(ObjectName, Ident),
}

/// A mode of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TransactionMode {
    AccessMode(TransactionAccessMode),
    IsolationLevel(TransactionIsolationLevel),
}

/// Whether a transaction may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TransactionAccessMode {
    ReadOnly,
    ReadWrite,
}

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TransactionIsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// SET.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Set {
    SingleAssignment {
        local: bool,
        variable: ObjectName,
        values: Vec<Expr>,
    },
    /// SET TRANSACTION, and of the session's transactions SET SESSION CHARACTERISTICS.
    SetTransaction {
        modes: Vec<TransactionMode>,
        snapshot: Option<String>,
        session: bool,
    },
}

/// RESET.
#[derive(Clone, Debug, PartialEq)]
pub enum Reset {
    /// Of all settings.
    All,
    /// Of one.
    ConfigurationParameter(ObjectName),
}

/// An option of EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct UtilityOption {
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub arg: Option<String>,
}

/// What COPY copies.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum CopySource {
    Table {
        table_name: ObjectName,
        columns: Vec<Ident>,
    },
    Query(Box<Query>),
}

/// Where COPY copies from or to.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum CopyTarget {
    Stdin,
    Stdout,
    File { filename: String },
    Program { command: String },
}

/// LOCK TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// The tables.
    pub tables: Vec<ObjectName>,
    /// How strongly.
    pub lock_mode: LockMode,
    /// NOWAIT.
    pub nowait: bool,
}
