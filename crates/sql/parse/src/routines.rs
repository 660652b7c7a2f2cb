//! CREATE, ALTER and DROP of functions and procedures, and COMMENT ON them.

use super::ArgMode;
use super::Volatility;
use super::aggregates::CreateAggregate;
use super::roles::RoleName;
use crate::lowered as ast;
use crate::lowered::Span;
use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;

/// The word that a statement has for what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoutineWord {
    Function,
    Procedure,
    Routine,
    Aggregate,
}

impl RoutineWord {
    /// In small letters.
    pub fn text(self) -> &'static str {
        match self {
            RoutineWord::Function => "function",
            RoutineWord::Procedure => "procedure",
            RoutineWord::Routine => "routine",
            RoutineWord::Aggregate => "aggregate",
        }
    }
}

/// A type as a signature names it.
#[derive(Clone, Debug)]
pub struct TypeClause {
    /// SETOF.
    pub set: bool,
    /// The type, or with `of_column` a column as `table.column`.
    pub data_type: ast::DataType,
    /// %TYPE.
    pub of_column: bool,
    /// Where it stands.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct ArgClause {
    /// What it is for.
    pub mode: ArgMode,
    /// Its name.
    pub name: Option<String>,
    /// Its type.
    pub ty: TypeClause,
    /// DEFAULT.
    pub default: Option<ast::Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A function or procedure by name, and by its arguments if they are said.
#[derive(Clone, Debug)]
pub struct RoutineRef {
    /// The name.
    pub name: ast::ObjectName,
    /// The arguments.
    pub args: Option<Vec<ArgClause>>,
}

/// A SET clause.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ConfigClause {
    Set(String, Vec<String>),
    FromCurrent(String),
    /// RESET, or SET ... TO DEFAULT.
    Reset(String),
    ResetAll,
}

/// A property of a function.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoutineOption {
    Volatility(Volatility),
    Strict(bool),
    Definer(bool),
    Leakproof(bool),
    Parallel(String),
    Cost(f64),
    Rows(f64),
    Config(ConfigClause),
    Language(String),
    /// AS: one text, or an object file and a symbol.
    As(Vec<String>),
    Window,
    Transform,
    Support,
}

/// CREATE FUNCTION, CREATE PROCEDURE.
#[derive(Clone, Debug)]
pub struct CreateRoutine {
    /// It is a procedure.
    pub procedure: bool,
    /// OR REPLACE.
    pub or_replace: bool,
    /// Its name.
    pub name: ast::ObjectName,
    /// Its arguments.
    pub args: Vec<ArgClause>,
    /// RETURNS type.
    pub returns: Option<TypeClause>,
    /// The columns of RETURNS TABLE.
    pub table: Option<Vec<ArgClause>>,
    /// Properties, each with where it stands.
    pub options: Vec<(RoutineOption, Span)>,
    /// The body is RETURN or BEGIN ATOMIC: where it stands in the text.
    pub inline: Option<(usize, usize)>,
}

/// What ALTER FUNCTION does.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterRoutine {
    Options(Vec<(RoutineOption, Span)>),
    Rename(String),
    Owner(RoleName),
    SetSchema(String),
}

/// A statement about functions and procedures.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoutineCommand {
    Create(CreateRoutine),
    CreateAggregate(CreateAggregate),
    Alter {
        word: RoutineWord,
        target: RoutineRef,
        alter: AlterRoutine,
    },
    Drop {
        word: RoutineWord,
        if_exists: bool,
        targets: Vec<RoutineRef>,
        cascade: bool,
    },
    Comment {
        word: RoutineWord,
        target: RoutineRef,
        text: Option<String>,
    },
}

impl RoutineCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        use RoutineWord as W;
        match self {
            RoutineCommand::Create(create) if create.procedure => "CREATE PROCEDURE",
            RoutineCommand::Create(_) => "CREATE FUNCTION",
            RoutineCommand::CreateAggregate(_) => "CREATE AGGREGATE",
            RoutineCommand::Alter { word, .. } => match word {
                W::Function => "ALTER FUNCTION",
                W::Procedure => "ALTER PROCEDURE",
                W::Routine => "ALTER ROUTINE",
                W::Aggregate => "ALTER AGGREGATE",
            },
            RoutineCommand::Drop { word, .. } => match word {
                W::Function => "DROP FUNCTION",
                W::Procedure => "DROP PROCEDURE",
                W::Routine => "DROP ROUTINE",
                W::Aggregate => "DROP AGGREGATE",
            },
            RoutineCommand::Comment { .. } => "COMMENT",
        }
    }
}

/// 42601 for what is said twice.
pub fn redundant() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
}
