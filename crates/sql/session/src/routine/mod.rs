//! Running PL/pgSQL: a body's statements, one after the other, in the session that called it.
//!
//! Owns: what a running body has (its variables, the error it handles, what it returns), the texts of CONTEXT. SQL in
//! it goes the way of every statement of the session: planned once with the variables as parameters
//! ([`logstead_sql_plan::bind::Variables`]), locked, run, each with a snapshot of its own.
//!
//! Invariants:
//! - The transaction ends only where nothing around goes on in it: `Session::atomic` counts what does, and only CALL
//!   and DO that stand in a body themselves are not counted.
//! - A block with handlers is a savepoint; whatever ends the block, the savepoint is released or rolled back: there are
//!   as many behind it as before.
//! - Bodies are futures of the session's task: they yield between statements, and every wait in them is one that the
//!   session has elsewhere.
//! - A body has no time of its own: `statement_timeout` runs on from the statement around it.

mod blocks;
mod built_in;
mod calls;
mod cursors;
mod diagnostics;
mod evaluate;
mod extra_checks;
mod loops;
mod procedures;
mod raise;
mod sql;
mod sql_functions;
mod steps;
mod triggers;
mod values;
mod xml_maps;

use super::client::Client;
use super::{Reply, Session};
use crate::limits::run_with_limits;
use crate::open_transaction::BlockState;
use evaluate::PreparedExpr;
use foldhash::HashMap;
use logstead_sql_catalog::Catalog;
use logstead_sql_parse::DoBlock;
use logstead_sql_parse::ast::DoStmt;
use logstead_sql_parse::plpgsql::tree::VariableConflict;
use logstead_sql_parse::plpgsql::{self, BodyContext, PlpgsqlFunction};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Bound, PlanContext};
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType};
use logstead_types::SqlState;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use values::VariableKind;

pub(super) use procedures::call_columns;

/// What bodies in one another may take of a session's stack while they are polled: more than half of it.
const STACK_BYTES_MAX: usize = 9 << 20;

/// Statements that a body runs between two looks at whether others want the thread.
const STATEMENTS_AT_ONCE: u32 = 256;

/// Bodies that begin between two such looks.
const BODIES_AT_ONCE: u32 = 64;

/// Casts that a body has needed, bound, by the types from and to which.
pub(super) type CastCache = HashMap<(SqlType, SqlType), Rc<Bound<Expr>>>;

/// A body, ready to be run with the catalog that it was made ready with.
pub(super) struct Routine {
    body: PlpgsqlFunction,
    /// As CONTEXT names it: `inline_code_block`, `f(integer)`.
    shown: String,
    /// What each variable may hold.
    kinds: Vec<VariableKind>,
    /// The type of what each holds first.
    first_types: Vec<SqlType>,
    /// Statements made of the body's expressions, by their numbers.
    pieces: RefCell<Vec<Option<Rc<PreparedExpr>>>>,
    casts: RefCell<CastCache>,
}

/// Bodies of functions by what is called and the types of its arguments, with the catalog that they were made ready
/// with.
pub(super) type RoutineCache = HashMap<(FunctionId, Vec<SqlType>), (Arc<Catalog>, Rc<Routine>)>;

/// Bodies of LANGUAGE sql, likewise.
pub(super) type SqlFunctions =
    HashMap<(FunctionId, Vec<SqlType>), (Arc<Catalog>, Rc<sql_functions::SqlBody>)>;

/// A body that is being run.
pub(super) struct Activation {
    routine: Rc<Routine>,
    values: Vec<Datum>,
    /// What the values are; of a record, what it is now.
    types: Vec<SqlType>,
    /// Where it is: a line, and what stands there.
    line: usize,
    doing: &'static str,
    /// Rows of the last statement.
    row_count: u64,
    /// Errors that are being handled, innermost last.
    errors: Vec<SqlError>,
    /// Blocks with handlers around what is being run.
    parts: usize,
    /// It may not end the transaction.
    atomic: bool,
    /// Statements since it last let others have the thread.
    worked: u32,
    /// What it gives, if it is a function's.
    giving: Option<calls::ReturnState>,
    /// What RETURN gave.
    returned: Option<(Datum, SqlType)>,
    /// What to do with a name that is a variable's and a column's, unless the body says so.
    conflict: VariableConflict,
    /// What it looks at besides.
    checks: extra_checks::ExtraChecks,
    /// Tables that only it sees, as arrays of their rows: those of REFERENCING.
    tables: Vec<(Arc<str>, SqlType, Datum)>,
}

/// Whose a frame is.
enum FrameBody {
    Plpgsql(Rc<Routine>),
    Sql(Rc<str>),
}

/// Where a body is that calls others: what PG_CONTEXT tells of those around the one that asks.
pub(super) struct Frame {
    body: FrameBody,
    /// Which line of the one, or statement of the other.
    line: usize,
    doing: &'static str,
    /// The statement of SQL that it runs.
    sql: Option<Rc<str>>,
}

impl Frame {
    fn context(&self) -> String {
        let place = match &self.body {
            FrameBody::Plpgsql(routine) => place(&routine.shown, self.line, self.doing),
            FrameBody::Sql(name) => format!("SQL function \"{name}\" statement {}", self.line),
        };
        match &self.sql {
            Some(sql) => format!("SQL statement \"{sql}\"\n{place}"),
            None => place,
        }
    }
}

/// A place in a body, as messages have it.
fn place(shown: &str, line: usize, doing: &str) -> String {
    match (line, doing) {
        (0, "") => format!("PL/pgSQL function {shown}"),
        (0, doing) => format!("PL/pgSQL function {shown} {doing}"),
        (line, doing @ "during statement block local variable initialization") => {
            format!("PL/pgSQL function {shown} line {line} {doing}")
        }
        (line, doing) => format!("PL/pgSQL function {shown} line {line} at {doing}"),
    }
}

/// How a statement ended.
enum Flow {
    Next,
    /// EXIT with its label.
    Exit(Option<String>),
    /// CONTINUE with its label.
    Continue(Option<String>),
    Return,
}

impl Activation {
    fn new(routine: Rc<Routine>, atomic: bool) -> Activation {
        let types = routine.first_types.clone();
        let mut activation = Activation {
            conflict: VariableConflict::Error,
            values: vec![Datum::Null; types.len()],
            types,
            line: 0,
            doing: "",
            row_count: 0,
            errors: Vec::new(),
            parts: 0,
            atomic,
            worked: 0,
            giving: None,
            returned: None,
            checks: extra_checks::ExtraChecks::default(),
            tables: Vec::new(),
            routine,
        };
        let found = activation.routine.body.found;
        activation.values[found] = Datum::Bool(false);
        activation
    }

    /// CONTEXT of what happens now.
    fn context(&self) -> String {
        place(&self.routine.shown, self.line, self.doing)
    }

    fn found(&mut self, found: bool) {
        let at = self.routine.body.found;
        self.values[at] = Datum::Bool(found);
    }
}

impl Session {
    /// Reads a body and finds the types that it names.
    fn routine(&mut self, text: &str, shown: String, given: &BodyContext) -> Result<Routine> {
        let catalog = self.catalog()?;
        let body = plpgsql::read(text, given)?;
        let kinds = self.with_planning(&catalog, |cx| values::kinds(&body, text, cx))?;
        let first_types = kinds.iter().map(|kind| kind.first_type(&catalog.types));
        Ok(Routine {
            first_types: first_types.collect(),
            pieces: RefCell::new(vec![None; body.exprs]),
            casts: RefCell::default(),
            shown,
            kinds,
            body,
        })
    }

    /// What planning reads, of the session as it is.
    fn with_planning<T>(
        &self,
        catalog: &Arc<Catalog>,
        work: impl FnOnce(&PlanContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let path = self.context.path_in(catalog);
        self.context.catalog.replace(Arc::clone(catalog));
        logstead_sql_types::value::user::enter(catalog);
        logstead_sql_types::value::user::search(&path);
        work(&PlanContext {
            catalog,
            search_path: &path,
            param_types: &[],
            parameters_fixed: true,
            session: &*self.context,
            variables: None,
            rows_of: &|_| 0.0,
            evaluate: logstead_sql_exec::evaluate,
        })
    }

    /// DO.
    pub(super) async fn do_block(
        &mut self,
        stmt: &DoStmt,
        text: &str,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let block = DoBlock::of(stmt, text)?;
        if block.language != "plpgsql" {
            return Err(match block.language.as_str() {
                "sql" | "internal" | "c" => SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "language \"{}\" does not support inline code execution",
                        block.language
                    ),
                ),
                other => SqlError::new(
                    SqlState::new(b"42704"),
                    format!("language \"{other}\" does not exist"),
                ),
            });
        }
        let given = BodyContext {
            returns_nothing: true,
            ..BodyContext::default()
        };
        self.transaction()?.fix_snapshot();
        let shown = "inline_code_block".to_owned();
        let routine = self
            .routine(&block.body, shown, &given)
            .map_err(|error| block.place(error))?;
        let atomic = self.is_atomic();
        let mut activation = Activation::new(Rc::new(routine), atomic);
        self.activate(&mut activation, client).await?;
        Ok(Reply::tag("DO"))
    }

    /// May a body that begins here not end the transaction? So it is in a block of transaction control, and in all that
    /// is in something else that goes on afterwards: a query, EXECUTE, a block with handlers.
    fn is_atomic(&self) -> bool {
        self.atomic > 0 || self.block != BlockState::None || self.context.in_block.get()
    }

    /// Runs a body to its end.
    async fn activate(
        &mut self,
        activation: &mut Activation,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.enter_body().await?;
        let atomic = usize::from(activation.atomic);
        self.atomic += atomic;
        let routine = Rc::clone(&activation.routine);
        activation.conflict = self.default_conflict();
        activation.checks = self.extra_checks();
        let around = self.frames.len();
        self.frames.push(Frame {
            body: FrameBody::Plpgsql(Rc::clone(&routine)),
            line: 0,
            doing: "",
            sql: None,
        });
        let ran = self
            .statements(activation, &routine.body.block.body, client)
            .await;
        self.frames.truncate(around);
        self.routines = self.routines.saturating_sub(1);
        self.atomic = self.atomic.saturating_sub(atomic);
        match ran {
            Ok(Flow::Return | Flow::Next) => Ok(()),
            Ok(Flow::Exit(_) | Flow::Continue(_)) => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "control reached the end of the body in the middle of a loop",
            )),
            Err(error) if error.fields().fatal => Err(error),
            Err(error) => Err(error.context(activation.context())),
        }
    }

    /// `plpgsql.variable_conflict`.
    fn default_conflict(&self) -> VariableConflict {
        let settings = self.context.settings.borrow();
        let set = settings.canonical_value("plpgsql.variable_conflict");
        set.and_then(VariableConflict::named)
            .unwrap_or(VariableConflict::Error)
    }

    /// `plpgsql.check_asserts`.
    fn checks_asserts(&self) -> bool {
        let settings = self.context.settings.borrow();
        settings.canonical_value("plpgsql.check_asserts") != Some("off")
    }

    /// A body begins; 54001 if it lies too deep in others.
    async fn enter_body(&mut self) -> Result<()> {
        let here = logstead_fiber::stack_depth();
        if self.routines == 0 {
            self.set_deadline(self.limits());
            self.stack_begins = here;
        } else if here.saturating_sub(self.stack_begins) > STACK_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            )
            .hint("Functions and blocks call one another too deeply."));
        }
        // Bodies of few statements that call one another are much work, too.
        self.bodies = self.bodies.wrapping_add(1);
        if self.bodies.is_multiple_of(BODIES_AT_ONCE) {
            self.breathe().await?;
        }
        self.routines += 1;
        Ok(())
    }

    /// Lets others have the thread, and ends what is to end.
    async fn breathe(&mut self) -> Result<()> {
        let signals = Arc::clone(&self.signals);
        let context = Rc::clone(&self.context);
        signals.statement().check_at(|| context.wall_clock())?;
        let limits = self.limits();
        run_with_limits(&signals, limits, async {
            tokio::task::yield_now().await;
            Ok(())
        })
        .await
    }
}
