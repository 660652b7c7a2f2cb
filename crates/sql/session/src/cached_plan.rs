//! Prepared statements and their plans.
//!
//! Invariant: a plan runs only for the catalog snapshot that it was made with. `Session::plan` asks for that, and it is
//! asked again when its tables are locked.

use super::Session;
use crate::statement_statistics::CachedPgssEntry;
use logstead_engine::{Table, TableLock};
use logstead_sql_catalog::context::PreparedRow;
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::context::namespace::recording_schemas;
use logstead_sql_catalog::settings::PlannerSettings;
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_exec as exec;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_parse::{
    AsOf, AsOfPoint, Parsed, StatementTree, on_enough_stack, planned_on_enough_stack,
};
use logstead_sql_plan::bind::Variables;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::permissions::ParameterUses;
use logstead_sql_plan::{self as plan, Bound, Command, Node, OutputColumn, PlanContext};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid, user};
use logstead_sql_types::{RoleId, TypeId};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Most columns of a result, as in PostgreSQL.
const COLUMNS_MAX: usize = 1664;

/// A statement that can be run again and again.
pub(super) struct Statement {
    pub(super) text: Rc<ParsedText>,
    /// Index in the text; `None` for an empty statement.
    pub(super) index: Option<usize>,
    /// Parameter types as declared.
    pub(super) declared: Vec<Option<TypeId>>,
    /// What the client was told, fixed for the life of the statement.
    pub(super) description: RefCell<Option<Rc<StatementDescription>>>,
    plan: RefCell<Option<Rc<CachedPlan>>>,
    /// When it was prepared, in microseconds since 2000-01-01 UTC.
    pub(super) prepared_at: i64,
    /// By PREPARE.
    pub(super) from_sql: bool,
    /// How often it was run.
    pub(super) runs: Cell<i64>,
    /// Parameters that are not declared are its own: PREPARE, and Parse. Elsewhere there are none but those.
    pub(super) takes_parameters: bool,
    /// The variables around it, if it stands in a procedure's body.
    pub(super) variables: Option<Rc<Variables>>,
}

/// A session's prepared statements by name; the unnamed one is "".
pub(super) type Statements = HashMap<String, Rc<Statement>, foldhash::fast::RandomState>;

/// What a prepared statement takes and gives.
pub(super) struct StatementDescription {
    pub(super) param_types: Vec<SqlType>,
    pub(super) columns: Vec<OutputColumn>,
    /// It gives rows, be it of no columns.
    pub(super) gives_rows: bool,
    /// A constant in it cannot be computed: it cannot be run.
    pub(super) fails: Option<SqlError>,
}

/// A plan ready to run, good for one catalog snapshot.
pub(super) struct CachedPlan {
    /// What is run, for whom [`SessionContext::may_run`](super::context::SessionContext::may_run) lets.
    pub(super) executable: Bound<Executable>,
    pub(super) columns: Vec<OutputColumn>,
    pub(super) param_types: Vec<SqlType>,
    /// Which of them are variables that it names.
    pub(super) params_used: Vec<bool>,
    /// All that it is: an expression that needs nothing of the database.
    pub(super) is_simple: bool,
    /// The same, or it calls functions that the session runs besides.
    pub(super) only_computes: bool,
    pub(super) command: Command,
    /// A constant in it cannot be computed: it cannot be run.
    pub(super) fails: Option<SqlError>,
    /// It writes, or locks rows, where it is not temporary: a read-only transaction may not.
    pub(super) writes_lasting: bool,
    /// Storages to lock before running.
    pub(super) locks: Vec<(Arc<Table>, TableLock)>,
    /// The snapshot it was made with.
    pub(super) catalog: Arc<Catalog>,
    path: Rc<[String]>,
    scans: PlannerSettings,
    /// For whom it was made, if that matters: the role, and `row_security`.
    pub(super) made_for: Option<PlannedForRole>,
    /// The role that was last found to be allowed to run it, by the roles of the plan's catalog.
    pub(super) permitted: Cell<Option<RoleId>>,
}

/// A role, and whether `row_security` was on: what plans of tables with row security are made for.
pub(super) type PlannedForRole = (RoleId, bool);

/// What a plan runs.
pub(super) struct Executable {
    pub(super) prepared: Arc<exec::Prepared>,
    /// All that it is: an expression that needs nothing of the database.
    pub(super) simple: Option<Expr>,
}

/// A plan that the current role may run.
#[derive(Clone)]
pub(super) struct PermittedPlan {
    plan: Rc<CachedPlan>,
    pub(super) prepared: Arc<exec::Prepared>,
}

impl PermittedPlan {
    /// A plan, and what of it the current role was found to be allowed to run ([`permissions`](super::permissions)).
    pub(super) fn new(plan: Rc<CachedPlan>, prepared: Arc<exec::Prepared>) -> PermittedPlan {
        PermittedPlan { plan, prepared }
    }

    /// The plan, for whoever keeps it.
    pub(super) fn cached(&self) -> Rc<CachedPlan> {
        Rc::clone(&self.plan)
    }
}

impl std::ops::Deref for PermittedPlan {
    type Target = CachedPlan;

    fn deref(&self) -> &CachedPlan {
        &self.plan
    }
}

impl CachedPlan {
    /// Does it change something, itself or in its WITH?
    pub(super) fn writes(&self) -> bool {
        self.executable.describe(|run| run.prepared.plan().writes())
    }

    /// Does it read or change one row by its key?
    pub(super) fn is_by_key(&self) -> bool {
        self.executable.describe(|run| run.prepared.is_by_key())
    }

    /// Does it give rows, be it of no columns?
    pub(super) fn gives_rows(&self) -> bool {
        !self.columns.is_empty() || self.command == Command::Select
    }
}

/// What a statement may name beside what is in the database.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub(super) types: &'a [Option<TypeId>],
    /// There are no others.
    pub(super) fixed: bool,
    pub(super) variables: Option<&'a Variables>,
}

impl<'a> Parameters<'a> {
    /// Those of the types, and no others.
    pub(super) fn of(types: &'a [Option<TypeId>]) -> Parameters<'a> {
        Parameters {
            types,
            fixed: true,
            variables: None,
        }
    }
}

impl Statement {
    pub(super) fn new(
        text: Rc<ParsedText>,
        index: Option<usize>,
        mut declared: Vec<Option<TypeId>>,
    ) -> Statement {
        let parsed = index.and_then(|index| text.statements.get(index));
        let as_of = parsed.and_then(|parsed| parsed.as_of.as_ref());
        if let Some(AsOfPoint::Parameter(at)) = as_of.map(|as_of| &as_of.point) {
            // Nothing else may say of which type it is.
            if declared.len() <= *at {
                declared.resize(*at + 1, None);
            }
            declared[*at].get_or_insert(oid::TEXT);
        }
        Statement {
            text,
            index,
            declared,
            description: RefCell::new(None),
            plan: RefCell::new(None),
            prepared_at: 0,
            from_sql: false,
            runs: Cell::new(0),
            takes_parameters: false,
            variables: None,
        }
    }

    /// As `pg_prepared_statements` shows it.
    pub(super) fn shown(&self, name: &str) -> PreparedRow {
        let description = self.description.borrow();
        let types: Box<dyn Iterator<Item = TypeId>> = match &*description {
            Some(description) => Box::new(description.param_types.iter().map(|ty| ty.oid)),
            None => Box::new(self.declared.iter().copied().flatten()),
        };
        PreparedRow {
            name: name.to_owned(),
            statement: self.text.text.to_string(),
            prepared_at: self.prepared_at,
            types: types.collect(),
            from_sql: self.from_sql,
            runs: self.runs.get(),
        }
    }

    /// A statement inside another one (EXPLAIN, COPY), whose text it shares.
    pub(super) fn once(
        text: Rc<str>,
        statement: Arc<StatementTree>,
        declared: Vec<Option<TypeId>>,
    ) -> Statement {
        let end = text.len();
        let parsed = Parsed {
            statement,
            start: 0,
            end,
            // Whoever it stands in has it.
            as_of: None,
            truncated: Vec::new(),
        };
        Statement::new(ParsedText::new(text, vec![parsed]), Some(0), declared)
    }

    /// A query that is a part of this one, and has its parameters.
    pub(super) fn part(&self, tree: StatementTree) -> Statement {
        let text = Rc::clone(&self.text.text);
        let mut part = Statement::once(text, Arc::new(tree), self.declared.clone());
        part.takes_parameters = self.takes_parameters;
        part.variables.clone_from(&self.variables);
        part
    }

    /// The statement, if it is no planned query.
    pub(super) fn utility(&self) -> Option<&Stmt> {
        self.parsed()?.utility()
    }

    pub(super) fn parsed(&self) -> Option<&Parsed> {
        self.text.statements.get(self.index?)
    }

    /// Drops the plan if it was made with a catalog that `is_current` does not know. A plan in use is not hurt.
    pub(super) fn drop_stale_plan(&self, is_current: impl Fn(&Arc<Catalog>) -> bool) {
        let mut plan = self.plan.borrow_mut();
        if plan.as_ref().is_some_and(|p| !is_current(&p.catalog)) {
            *plan = None;
        }
    }

    /// May it look at the catalog? What controls transactions and settings does not, and goes on when the past that is
    /// set cannot be opened.
    pub(super) fn needs_catalog(&self) -> bool {
        !matches!(
            self.utility(),
            Some(
                Stmt::Transaction(_)
                    | Stmt::VariableSet(_)
                    | Stmt::VariableShow(_)
                    | Stmt::Discard(_)
            )
        ) && self.index.is_some()
    }

    /// The past that it is to read.
    pub(super) fn as_of(&self) -> Option<&AsOf> {
        self.parsed()?.as_of.as_ref()
    }

    pub(super) fn is_query(&self) -> bool {
        self.parsed()
            .is_some_and(|parsed| parsed.statement.is_planned())
    }
}

impl Session {
    /// Keeps a prepared statement by name, in the place of one that has it.
    pub(super) fn keep_statement(&mut self, name: String, mut statement: Statement) {
        statement.prepared_at = self.context.statement_time.get();
        let statement = Rc::new(statement);
        self.worker.remember_statement(&statement);
        self.context.statements.borrow_mut().insert(name, statement);
    }

    /// The plan of a query for the catalog as this transaction sees it now: the statement's own, a shared one, or a new
    /// one.
    pub(super) fn plan(&mut self, statement: &Statement) -> Result<Rc<CachedPlan>> {
        loop {
            let catalog = self.catalog()?;
            let planned = self.plan_in(statement, &catalog);
            if planned.is_ok() || !self.is_outdated(&catalog)? {
                return planned;
            }
            // A table may have got another storage meanwhile, for example: no lock is held yet.
            self.signals.statement().check()?;
        }
    }

    /// Has this transaction another catalog by now?
    pub(super) fn is_outdated(&mut self, catalog: &Arc<Catalog>) -> Result<bool> {
        Ok(!Arc::ptr_eq(&self.catalog()?, catalog))
    }

    fn plan_in(&mut self, statement: &Statement, catalog: &Arc<Catalog>) -> Result<Rc<CachedPlan>> {
        let path = self.context.path_in(catalog);
        let scans = self.context.settings.borrow().typed().scans;
        let asker = (self.context.current_role(), self.context.row_security());
        if let Some(plan) = &*statement.plan.borrow()
            && Arc::ptr_eq(&plan.catalog, catalog)
            && plan.scans == scans
            && plan.made_for.is_none_or(|made_for| made_for == asker)
            && (Rc::ptr_eq(&plan.path, &path) || plan.path == path)
        {
            return Ok(Rc::clone(plan));
        }
        let parsed = statement
            .parsed()
            .ok_or_else(|| SqlError::internal("an empty statement has no plan"))?;
        // Parameter types never change once they have been told.
        let types = match &*statement.description.borrow() {
            Some(description) => description
                .param_types
                .iter()
                .map(|ty| Some(ty.oid))
                .collect(),
            None => statement.declared.clone(),
        };
        // Plans that are shared are made with the planner's usual means.
        let shareable = !self.has_private_catalog()
            && scans == PlannerSettings::default()
            && statement.variables.is_none();
        let text = &statement.text.text;
        let kept = if shareable {
            self.worker
                .caches
                .borrow_mut()
                .plan(text, parsed.start, &types, &path, catalog, asker)
        } else {
            None
        };
        // One that is kept may be that of a statement which takes more of them.
        let is_of_this = |plan: &Rc<CachedPlan>| {
            statement.takes_parameters || plan.param_types.len() <= types.len()
        };
        let plan = match kept.filter(is_of_this) {
            Some(plan) => plan,
            None => {
                let (plan, session_dependent) =
                    self.make_plan(statement, parsed, &types, &path, catalog)?;
                if shareable && !session_dependent {
                    self.worker
                        .caches
                        .borrow_mut()
                        .keep(text, parsed.start, &types, &path, &plan);
                }
                plan
            }
        };
        if let Some(description) = &*statement.description.borrow()
            && !same_shape(&description.columns, &plan.columns)
        {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            )
            // Drivers prepare the statement again if it says so (JDBC, asyncpg, Active Record).
            .routine("RevalidateCachedQuery"));
        }
        *statement.plan.borrow_mut() = Some(Rc::clone(&plan));
        Ok(plan)
    }

    fn make_plan(
        &self,
        statement: &Statement,
        parsed: &Parsed,
        types: &[Option<TypeId>],
        path: &Rc<[String]>,
        catalog: &Arc<Catalog>,
    ) -> Result<(Rc<CachedPlan>, bool)> {
        let (text, variables) = (&statement.text.text, statement.variables.as_deref());
        let tree = &parsed.statement;
        let parameters = Parameters {
            types,
            fixed: !statement.takes_parameters,
            variables,
        };
        let planned = self.plan_tree(tree, text, parameters, path, catalog)?;
        on_enough_stack(planned.stack_bytes, || {
            self.cached_plan(planned, variables, path, catalog)
        })
    }

    /// Makes what is planned ready to run.
    pub(super) fn cached_plan(
        &self,
        planned: plan::Planned,
        variables: Option<&Variables>,
        path: &Rc<[String]>,
        catalog: &Arc<Catalog>,
    ) -> Result<(Rc<CachedPlan>, bool)> {
        if planned.columns.len() > COLUMNS_MAX {
            return Err(SqlError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("target lists can have at most {COLUMNS_MAX} entries"),
            ));
        }
        let tables = planned.plan.tables();
        let mut locks = Vec::with_capacity(tables.read.len() + tables.written.len());
        for (relations, lock) in [
            (&tables.written, TableLock::RowExclusive),
            (&tables.locked, TableLock::RowShare),
            (&tables.read, TableLock::AccessShare),
        ] {
            for relation in relations {
                // In the past nobody changes a view, and its empty table is not kept.
                if catalog.past.is_some() && matches!(relation.kind, RelationKind::View(_)) {
                    continue;
                }
                locks.push((self.storage(relation, catalog)?, lock));
            }
        }
        // What was being computed may have failed because of it, and is left to the run: not in a plan that is kept.
        self.signals.statement().check()?;
        let session_dependent = planned.session_dependent;
        let made_for = planned
            .role_matters
            .then(|| (self.context.current_role(), self.context.row_security()));
        let mut written = tables.written.iter().chain(&tables.locked);
        let writes_lasting = written.any(|relation| !relation.is_temporary());
        let ParameterUses { types, named } = planned.plan.parameters().clone();
        let fails = planned.plan.describe(plan::failing);
        // Those are computed on whatever stack there is.
        let is_shallow = variables.is_some() && planned.stack_bytes == 0;
        let only_computes = is_shallow && planned.plan.describe(only_computes);
        let executable = planned.plan.map(|plan| Executable {
            simple: is_shallow.then(|| simple(&plan)).flatten(),
            prepared: Arc::new(exec::prepare(plan)),
        });
        let is_simple = executable.describe(|run| run.simple.is_some());
        let plan = CachedPlan {
            fails,
            executable,
            columns: planned.columns,
            param_types: types,
            params_used: named,
            is_simple,
            only_computes,
            command: planned.command,
            writes_lasting,
            locks,
            catalog: Arc::clone(catalog),
            path: Rc::clone(path),
            scans: self.context.settings.borrow().typed().scans,
            made_for,
            permitted: Cell::new(None),
        };
        Ok((Rc::new(plan), session_dependent))
    }

    /// Plans a syntax tree, whose parameters are those of the types.
    pub(super) fn plan_ast(
        &self,
        statement: &StatementTree,
        text: &str,
        types: &[Option<TypeId>],
        path: &Rc<[String]>,
        catalog: &Arc<Catalog>,
    ) -> Result<plan::Planned> {
        self.plan_tree(statement, text, Parameters::of(types), path, catalog)
    }

    pub(super) fn plan_tree(
        &self,
        statement: &StatementTree,
        text: &str,
        parameters: Parameters<'_>,
        path: &Rc<[String]>,
        catalog: &Arc<Catalog>,
    ) -> Result<plan::Planned> {
        self.plan_with(statement.stack_bytes(), parameters, path, catalog, |cx| {
            plan::plan_statement(statement, text, cx)
        })
    }

    /// Plans something that takes so much stack.
    pub(super) fn plan_with(
        &self,
        stack_bytes: usize,
        parameters: Parameters<'_>,
        path: &Rc<[String]>,
        catalog: &Arc<Catalog>,
        make: impl Fn(&PlanContext<'_>) -> Result<plan::Planned>,
    ) -> Result<plan::Planned> {
        // Planning does not wait, so that no timer fires meanwhile.
        if self.routines == 0 {
            // It may be planned for a message that is no statement's beginning.
            self.signals.statement().set_deadline(None);
        }
        self.set_deadline(self.limits());
        self.context.catalog.replace(Arc::clone(catalog));
        user::enter(catalog);
        user::search(path);
        let engine = &self.worker.instance.engine;
        let rows_of = |relation: &Relation| {
            catalog
                .table(relation.storage, engine)
                .map_or(0.0, |table| table.row_count_estimate() as f64)
        };
        let cx = PlanContext {
            catalog,
            search_path: path,
            param_types: parameters.types,
            parameters_fixed: parameters.fixed,
            session: &*self.context,
            variables: parameters.variables,
            rows_of: &rows_of,
            evaluate: logstead_sql_exec::evaluate,
        };
        let (planned, looked_into) = recording_schemas(cx.session, || {
            planned_on_enough_stack(stack_bytes, || make(&cx))
        });
        let mut planned = planned?;
        // Whoever else runs the plan must be allowed to look there, too.
        for schema in looked_into {
            planned.plan.add_schema(schema);
        }
        Ok(planned)
    }

    /// The storage of a relation of a catalog.
    pub(super) fn storage(&self, relation: &Relation, catalog: &Catalog) -> Result<Arc<Table>> {
        catalog
            .table(relation.storage, &self.worker.instance.engine)
            .ok_or_else(|| {
                SqlError::internal(format!(
                    "relation \"{}\" has no storage {}",
                    relation.name, relation.storage
                ))
            })
    }
}

/// The values of a plan's parameters; of the variables around a statement only those that it names.
pub(super) fn given_to<'a>(
    plan: &CachedPlan,
    statement: &Statement,
    given: &'a [Datum],
) -> Cow<'a, [Datum]> {
    if statement.variables.is_none() {
        return Cow::Borrowed(given);
    }
    let named = { plan.params_used.iter().enumerate() }.map(|(at, used)| match used {
        true => given.get(at).cloned().unwrap_or(Datum::Null),
        false => Datum::Null,
    });
    let mut values: Vec<Datum> = named.collect();
    values.resize(plan.param_types.len(), Datum::Null);
    Cow::Owned(values)
}

/// Is a plan one expression over no row, whose subqueries are calls?
fn only_computes(plan: &plan::Plan) -> bool {
    fn within(expr: &Expr) -> bool {
        let mut good = match expr {
            Expr::Subquery(called) => called.call,
            _ => true,
        };
        plan::walk::children(expr, &mut |child| good = good && within(child));
        good
    }
    match &plan.node {
        Node::Project { input, exprs } => {
            matches!(input.node, Node::OneRow) && exprs.iter().all(within)
        }
        _ => false,
    }
}

/// The expression that is all of a plan, if it can be computed without a snapshot.
fn simple(plan: &plan::Plan) -> Option<Expr> {
    match &plan.node {
        Node::Project { input, exprs } if matches!(input.node, Node::OneRow) => {
            let [expr] = exprs.as_slice() else {
                return None;
            };
            (!plan::walk::has_subquery(expr)).then(|| expr.clone())
        }
        _ => None,
    }
}

fn same_shape(description: &[OutputColumn], now: &[OutputColumn]) -> bool {
    description.len() == now.len()
        && description
            .iter()
            .zip(now)
            .all(|(a, b)| a.name == b.name && a.ty == b.ty)
}

/// A text with its statements.
#[derive(Debug)]
pub(crate) struct ParsedText {
    pub(crate) text: Rc<str>,
    pub(crate) statements: Vec<Parsed>,
    pub(crate) counted: CachedPgssEntry,
}

impl ParsedText {
    pub(crate) fn new(text: Rc<str>, statements: Vec<Parsed>) -> Rc<ParsedText> {
        Rc::new(ParsedText {
            text,
            statements,
            counted: CachedPgssEntry::default(),
        })
    }
}
