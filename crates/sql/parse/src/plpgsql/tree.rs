//! What a PL/pgSQL body says: its variables, names and statements. SQL in it stays text.

use logstead_sql_types::error::Result;
use logstead_sql_types::value::SqlType;
use logstead_types::SqlState;
use std::rc::Rc;

/// A variable's number within its body.
pub type VarNo = usize;

/// A body that was read.
#[derive(Debug)]
pub struct PlpgsqlFunction {
    /// Its variables, parameters first.
    pub variables: Vec<Variable>,
    /// Names in sight: each entry with the one before it, see [`Scope`].
    pub names: Vec<Name>,
    /// How many expressions it has: their numbers are below.
    pub exprs: usize,
    /// What to do with a name that is a variable's and a column's, if it says so.
    pub conflict: Option<VariableConflict>,
    /// `#print_strict_params on`.
    pub print_strict_params: bool,
    /// The variable FOUND.
    pub found: VarNo,
    /// The outermost block.
    pub block: Block,
    /// Lines of the body begin at these bytes.
    pub(super) lines: Vec<usize>,
}

impl PlpgsqlFunction {
    /// The variable that a name means.
    pub fn variable_of(&self, scope: Scope, parts: &[String]) -> Option<VarNo> {
        let found = super::parse::find(&self.names, scope, parts);
        found.map(|(variable, _)| variable)
    }

    /// The line of a byte, from 1.
    pub fn line_of(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }
}

/// `#variable_conflict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PL/pgSQL's own words")]
pub enum VariableConflict {
    Error,
    UseVariable,
    UseColumn,
}

impl VariableConflict {
    /// By its word.
    pub fn named(word: &str) -> Option<VariableConflict> {
        match word {
            "error" => Some(VariableConflict::Error),
            "use_variable" => Some(VariableConflict::UseVariable),
            "use_column" => Some(VariableConflict::UseColumn),
            _ => None,
        }
    }
}

/// Which names an expression sees: the newest of them, and from there on back.
pub type Scope = Option<usize>;

/// A name, or the begin of a block.
#[derive(Debug)]
pub struct Name {
    /// The one before it.
    pub before: Scope,
    /// What it is called; empty for a block without a label.
    pub name: String,
    /// The variable; none is a block.
    pub variable: Option<VarNo>,
}

/// A variable as it was declared.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Line of its declaration.
    pub line: usize,
    /// Its type.
    pub ty: TypeName,
    /// CONSTANT.
    pub constant: bool,
    /// NOT NULL.
    pub not_null: bool,
    /// Its first value.
    pub default: Option<Expr>,
    /// What a cursor of this name gives.
    pub cursor: Option<Box<CursorQuery>>,
}

/// CURSOR FOR.
#[derive(Debug)]
pub struct CursorQuery {
    /// SCROLL, NO SCROLL, or neither.
    pub scroll: Option<bool>,
    /// Its parameters.
    pub args: Vec<VarNo>,
    /// Its query.
    pub query: Expr,
}

/// A type as it was written.
#[derive(Clone, Debug)]
pub enum TypeName {
    /// A type of SQL, and where it stands.
    Sql(String, usize),
    /// `variable%TYPE`.
    OfVariable(VarNo),
    /// `table.column%TYPE`: the parts of the name as SQL has them.
    OfColumn(Vec<String>, usize),
    /// `table%ROWTYPE`.
    RowOf(Vec<String>, usize),
    /// `record`.
    Record,
    /// `refcursor`.
    Cursor,
    /// Known already: parameters, and what the language itself declares.
    Known(SqlType),
}

/// A piece of SQL.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its number in the body.
    pub number: usize,
    /// As it was written; of statements with INTO without that.
    pub text: Rc<str>,
    /// The names that it sees.
    pub scope: Scope,
    /// Where it stands in the body.
    pub at: usize,
    /// It is a statement, not an expression.
    pub statement: bool,
    /// What messages call it, if it is an assignment: all of that.
    pub assignment: Option<Rc<str>>,
}

/// What is assigned to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A variable.
    Variable(VarNo),
    /// A field of a record, or a field of that.
    Field(VarNo, Vec<String>),
    /// An element of an array, which is a variable or a field.
    Element(VarNo, Vec<String>, Vec<Expr>),
}

/// INTO.
#[derive(Debug)]
pub struct Into {
    /// STRICT.
    pub strict: bool,
    /// One record, or any number of others.
    pub targets: Vec<Target>,
}

/// DECLARE ... BEGIN ... EXCEPTION ... END.
#[derive(Debug)]
pub struct Block {
    /// Its label.
    pub label: Option<String>,
    /// Variables that begin anew with it.
    pub declares: Vec<VarNo>,
    /// What it does.
    pub body: Vec<Statement>,
    /// EXCEPTION.
    pub handlers: Option<Box<ExceptionBlock>>,
}

/// EXCEPTION.
#[derive(Debug)]
pub struct ExceptionBlock {
    /// The variables SQLSTATE and SQLERRM.
    pub state: VarNo,
    /// See above.
    pub message: VarNo,
    /// WHEN ... THEN.
    pub arms: Vec<(Vec<Condition>, Vec<Statement>)>,
}

/// What an error may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// OTHERS.
    Others,
    /// One SQLSTATE, or a class of them that ends in 000.
    State(SqlState),
}

/// A statement with its line.
#[derive(Debug)]
pub struct Statement {
    /// Line in the body, from 1.
    pub line: usize,
    /// What it is.
    pub kind: PlpgsqlStatement,
}

/// FOR and FOREACH.
#[derive(Debug)]
pub struct For {
    /// Its label.
    pub label: Option<String>,
    /// What takes the values.
    pub targets: Vec<Target>,
    /// What it goes over.
    pub over: ForSource,
    /// What is done with each.
    pub body: Vec<Statement>,
}

/// What a loop goes over.
#[derive(Debug)]
pub enum ForSource {
    /// Integers.
    Range {
        /// From, to.
        bounds: Box<(Expr, Expr)>,
        /// BY.
        step: Option<Expr>,
        /// REVERSE.
        reverse: bool,
    },
    /// Rows of a query.
    Query(Expr),
    /// Rows of a query that is computed.
    Execute(Expr, Vec<Expr>),
    /// Rows of a bound cursor, with its arguments.
    Cursor(VarNo, Vec<Argument>),
    /// Elements of an array, or slices of it.
    Array(Expr, usize),
}

/// An argument of a cursor.
pub type Argument = (Option<String>, Expr);

/// OPEN ... FOR.
#[derive(Debug)]
pub enum OpenSource {
    /// The query that the cursor is bound to.
    Bound(Vec<Argument>),
    /// A query.
    Query(Option<bool>, Expr),
    /// A query that is computed.
    Execute(Option<bool>, Expr, Vec<Expr>),
}

/// RAISE.
#[derive(Debug)]
pub struct Raise {
    /// DEBUG, LOG, INFO, NOTICE, WARNING, EXCEPTION.
    pub level: RaiseLevel,
    /// A condition's name or SQLSTATE.
    pub condition: Option<(String, SqlState)>,
    /// The format, and what is put into it.
    pub message: Option<(String, Vec<Expr>)>,
    /// USING.
    pub options: Vec<(RaiseOption, Expr)>,
}

/// How loud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PL/pgSQL's own words")]
pub enum RaiseLevel {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Exception,
}

/// What USING gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PL/pgSQL's own words")]
pub enum RaiseOption {
    Errcode,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

/// What GET DIAGNOSTICS asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PL/pgSQL's own words")]
pub enum Diagnostic {
    RowCount,
    Context,
    ErrorContext,
    ErrorDetail,
    ErrorHint,
    ReturnedSqlstate,
    ColumnName,
    ConstraintName,
    DatatypeName,
    MessageText,
    TableName,
    SchemaName,
}

/// Where FETCH goes.
#[derive(Debug)]
pub struct Fetch {
    /// The variable that has the cursor's name.
    pub cursor: VarNo,
    /// FORWARD, BACKWARD, ABSOLUTE, RELATIVE with a count.
    pub direction: Direction,
    /// Takes the row; nothing for MOVE.
    pub targets: Option<Vec<Target>>,
}

/// A direction and how far.
#[derive(Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Direction {
    Forward(Count),
    Backward(Count),
    Absolute(Count),
    Relative(Count),
}

/// How far a FETCH goes.
#[derive(Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Count {
    Known(i64),
    All,
    Computed(Expr),
}

/// Statements.
#[derive(Debug)]
#[allow(missing_docs, reason = "PL/pgSQL's own words")]
pub enum PlpgsqlStatement {
    Null,
    Block(Block),
    Assign(Target, Expr),
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    /// The tested value and the variable that has it; conditions; ELSE.
    Case {
        test: Option<(VarNo, Expr)>,
        arms: Vec<(Expr, Vec<Statement>)>,
        otherwise: Option<Vec<Statement>>,
    },
    Loop(Option<String>, Vec<Statement>),
    While(Option<String>, Expr, Vec<Statement>),
    For(Box<For>),
    /// EXIT if true, else CONTINUE; label; WHEN.
    Exit(bool, Option<String>, Option<Expr>),
    Return(Option<Expr>),
    ReturnNext(Option<Expr>),
    ReturnQuery(Expr),
    ReturnExecute(Expr, Vec<Expr>),
    Raise(Box<Raise>),
    Assert(Expr, Option<Expr>),
    Perform(Expr),
    /// `changes`: an INSERT, UPDATE, DELETE or MERGE.
    Sql {
        query: Expr,
        into: Option<Into>,
        changes: bool,
    },
    Call(Expr),
    Execute {
        query: Expr,
        into: Option<Into>,
        params: Vec<Expr>,
    },
    /// STACKED; what goes where.
    Diagnostics(bool, Vec<(Target, Diagnostic)>),
    Open(VarNo, OpenSource),
    Fetch(Box<Fetch>),
    Close(VarNo),
    /// AND CHAIN.
    Commit(bool),
    Rollback(bool),
}

impl Statement {
    /// The statement of SQL that it is; an expression that is no more than a call has none.
    pub fn sql(&self) -> Option<std::rc::Rc<str>> {
        match &self.kind {
            PlpgsqlStatement::Perform(query)
            | PlpgsqlStatement::Sql { query, .. }
            | PlpgsqlStatement::Call(query) => Some(std::rc::Rc::clone(&query.text)),
            _ => None,
        }
    }

    /// As CONTEXT names it.
    pub fn shown(&self) -> &'static str {
        match &self.kind {
            PlpgsqlStatement::Null => "NULL",
            PlpgsqlStatement::Block(_) => "statement block",
            PlpgsqlStatement::Assign(..) => "assignment",
            PlpgsqlStatement::If(..) => "IF",
            PlpgsqlStatement::Case { .. } => "CASE",
            PlpgsqlStatement::Loop(..) => "LOOP",
            PlpgsqlStatement::While(..) => "WHILE",
            PlpgsqlStatement::For(looped) => match looped.over {
                ForSource::Range { .. } => "FOR with integer loop variable",
                ForSource::Query(_) => "FOR over SELECT rows",
                ForSource::Execute(..) => "FOR over EXECUTE statement",
                ForSource::Cursor(..) => "FOR over cursor",
                ForSource::Array(..) => "FOREACH over array",
            },
            PlpgsqlStatement::Exit(true, ..) => "EXIT",
            PlpgsqlStatement::Exit(false, ..) => "CONTINUE",
            PlpgsqlStatement::Return(_) => "RETURN",
            PlpgsqlStatement::ReturnNext(_) => "RETURN NEXT",
            PlpgsqlStatement::ReturnQuery(_) | PlpgsqlStatement::ReturnExecute(..) => {
                "RETURN QUERY"
            }
            PlpgsqlStatement::Raise(_) => "RAISE",
            PlpgsqlStatement::Assert(..) => "ASSERT",
            PlpgsqlStatement::Perform(_) => "PERFORM",
            PlpgsqlStatement::Sql { .. } => "SQL statement",
            PlpgsqlStatement::Call(_) => "CALL",
            PlpgsqlStatement::Execute { .. } => "EXECUTE",
            PlpgsqlStatement::Diagnostics(true, _) => "GET STACKED DIAGNOSTICS",
            PlpgsqlStatement::Diagnostics(false, _) => "GET DIAGNOSTICS",
            PlpgsqlStatement::Open(..) => "OPEN",
            PlpgsqlStatement::Fetch(fetch) if fetch.targets.is_none() => "MOVE",
            PlpgsqlStatement::Fetch(_) => "FETCH",
            PlpgsqlStatement::Close(_) => "CLOSE",
            PlpgsqlStatement::Commit(_) => "COMMIT",
            PlpgsqlStatement::Rollback(_) => "ROLLBACK",
        }
    }
}

/// What surrounds a body: what it is told before it begins.
#[derive(Clone, Debug, Default)]
pub struct BodyContext {
    /// Its parameters' names, `None` for those without, and types.
    pub parameters: Vec<(Option<String>, SqlType)>,
    /// The function's name, which labels its outermost names.
    pub name: Option<String>,
    /// More variables that it has: those of triggers.
    pub variables: Vec<(String, TypeName)>,
    /// It returns a set.
    pub returns_set: bool,
    /// It gives its values by OUT parameters, or nothing: RETURN takes no expression.
    pub returns_nothing: bool,
    /// It returns void.
    pub returns_void: bool,
    /// It is a procedure.
    pub procedure: bool,
    /// A variable that hides another one is an error (`plpgsql.extra_errors`).
    pub refuses_shadows: bool,
}

/// Reads a body.
pub fn read(body: &str, given: &BodyContext) -> Result<PlpgsqlFunction> {
    super::parse::body(body, given)
}
