//! Functions of LANGUAGE sql that are one query: what they do stands in the place of the call.
//!
//! A body is bound outside of every scope of the statement, as a view's query is; its parameters stand for the
//! arguments of the call. Arguments that are more than a column, a constant or a parameter are computed once, in a row
//! of their own, unless the body uses them once anyway.
//!
//! Invariants:
//! - A STRICT function's body is not evaluated for a NULL argument.
//! - The result has the declared type, and is NULL if the body gives no row; of several rows the first counts.
//! - In the body of a SECURITY DEFINER function rights are its owner's, those of functions in it included; elsewhere
//!   they are those of the role that runs the statement, in views, too.
//! - Names are looked up with the `search_path` that the function has been given, or else with the statement's.

use super::query::locks;
use super::routine::RoutineCall;
use super::sublink::{QueryStart, SubLinkContext};
use super::{Binder, ColId, Frame, RelSource};
use crate::permissions::SchemaLookup;
use crate::query::QueryTree;
use crate::query::expr::{Expr, SubqueryKind};
use crate::query::{Distinct, From, Ordered, Output, Select};
use crate::{Node, OutputColumn, Plan, build, walk};
use logstead_sql_catalog::ColumnOrigin;
use logstead_sql_catalog::context::namespace::looking_up_as;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::routine::{Language, Routine, RoutineBody};
use logstead_sql_func::{CastContext, Volatility};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid, record, user};
use logstead_sql_types::{FunctionId, RoleId};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// Functions in functions in functions.
const NESTING_MAX: usize = 64;
/// Bodies in one statement.
const BODIES_MAX: usize = 5_000;
/// An argument that may stand in a body more than once has no more parts than this.
const PARTS_MAX: usize = 10;

/// The function whose body is being bound.
pub(crate) struct RoutineScope {
    name: String,
    /// Names, empty for none, and what they stand for.
    args: Vec<(String, Expr)>,
}

/// Arguments that are computed once, in a row of their own.
pub(super) struct ArgumentRow {
    /// The row, as a FROM item.
    pub(super) rel: usize,
    /// The first argument's identity there.
    first: ColId,
    values: Vec<Expr>,
}

/// A call whose value has been bound.
pub(super) struct InlinedCall {
    routine: FunctionId,
    args: Vec<Expr>,
    result: SqlType,
    definer: Option<RoleId>,
    path: Option<Rc<[String]>>,
    value: Expr,
}

/// What a function gives.
pub(super) enum Shape {
    Void,
    Scalar(SqlType),
    /// Several columns, which are fields of this type.
    Row(Vec<(Arc<str>, SqlType)>, SqlType),
    /// A record that only the body knows.
    Unknown,
}

pub(super) fn mismatch(
    routine: &Routine,
    detail: impl Into<String>,
    types: TypeLookup<'_>,
) -> SqlError {
    let ty = types.format_type_bare(routine.result);
    SqlError::new(
        SqlState::new(b"42P13"),
        format!("return type mismatch in function declared to return {ty}"),
    )
    .detail(detail)
}

pub(super) const FINAL_STATEMENT: &str =
    "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";

/// 42P13 unless the columns of a body are those declared. True if its one column is the whole row.
pub(super) fn check_columns(
    routine: &Routine,
    types: &[SqlType],
    shape: &Shape,
    known: TypeLookup<'_>,
) -> Result<bool> {
    let fits = |from: SqlType, to: SqlType| {
        let (from, to) = (from.oid, known.types.base_type(to).oid);
        from == to || logstead_sql_func::can_coerce(from, to, CastContext::Assignment)
    };
    match shape {
        Shape::Void | Shape::Unknown => Ok(false),
        Shape::Scalar(ty) => match types {
            [one] if fits(*one, *ty) => Ok(false),
            [one] => Err(mismatch(
                routine,
                format!("Actual return type is {}.", known.format_type_bare(one.oid)),
                known,
            )),
            _ => Err(mismatch(
                routine,
                "Final statement must return exactly one column.",
                known,
            )),
        },
        Shape::Row(columns, ty) => {
            if let [one] = types
                && (one.oid == ty.oid && ty.oid != oid::RECORD)
            {
                return Ok(true);
            }
            if types.len() < columns.len() {
                return Err(mismatch(
                    routine,
                    "Final statement returns too few columns.",
                    known,
                ));
            }
            if types.len() > columns.len() {
                return Err(mismatch(
                    routine,
                    "Final statement returns too many columns.",
                    known,
                ));
            }
            for ((from, (_, to)), number) in types.iter().zip(columns).zip(1..) {
                if !fits(*from, *to) {
                    return Err(mismatch(
                        routine,
                        format!(
                            "Final statement returns {} instead of {} at column {number}.",
                            known.format_type_bare(from.oid),
                            known.format_type_bare(to.oid)
                        ),
                        known,
                    ));
                }
            }
            Ok(false)
        }
    }
}

/// Settings that make no difference to what a statement gives.
fn is_harmless(name: &str) -> bool {
    matches!(
        name,
        "search_path" | "work_mem" | "maintenance_work_mem" | "client_min_messages"
    ) || name.starts_with("enable_")
        || name.starts_with("jit")
}

/// Stands an argument for itself wherever it is used?
fn is_plain(arg: &Expr) -> bool {
    match arg {
        Expr::Const(..) | Expr::Column(..) | Expr::Outer { .. } | Expr::Param(..) => true,
        Expr::Relabel(inner, _) => is_plain(inner),
        _ => false,
    }
}

fn parts(expr: &Expr) -> usize {
    let mut count = 1;
    walk::children(expr, &mut |e| count += parts(e));
    count
}

fn may_repeat(expr: &Expr) -> bool {
    !walk::is_volatile(expr) && !walk::has_subquery(expr) && parts(expr) <= PARTS_MAX
}

fn replace(expr: &mut Expr, id: ColId, with: &Expr) {
    if matches!(expr, Expr::Column(found, _) if *found == id) {
        *expr = with.clone();
        return;
    }
    walk::children_mut(expr, &mut |e| replace(e, id, with));
}

/// The one value of a body that is no more than an expression.
fn only_value(select: &Select) -> bool {
    select.from.items.is_empty()
        && select.from.conditions.is_empty()
        && select.grouping.is_none()
        && select.windows.is_empty()
        && select.sets.is_empty()
        && matches!(select.distinct, Distinct::No)
        && select.limit.is_none()
        && select.offset.is_none()
}

/// The query that a body is, if it is one that changes nothing.
pub(super) fn query_of(routine: &Routine) -> Result<Option<ast::SelectStmt>> {
    let RoutineBody::Text(text) = &routine.body;
    let mut statements = parse::parse(text)?;
    let (Some(only), true) = (statements.pop(), statements.is_empty()) else {
        return Ok(None);
    };
    if only.as_of.is_some() {
        return Err(SqlError::unsupported("AS OF in a function"));
    }
    match &**only.statement {
        ast::Stmt::Select(query) => Ok((!changes(query)).then(|| ast::SelectStmt::clone(query))),
        _ => Ok(None),
    }
}

/// Does a query change something, or lock rows?
fn changes(query: &ast::SelectStmt) -> bool {
    let with = query.with_clause.iter().flat_map(|with| &with.ctes);
    let changes_within = |cte: &ast::CommonTableExpr| match &*cte.ctequery {
        ast::Stmt::Select(query) => changes(query),
        _ => true,
    };
    let sides_change = match &query.body {
        ast::SelectBody::SetOp(operation) => changes(&operation.larg) || changes(&operation.rarg),
        ast::SelectBody::Select(_) | ast::SelectBody::Values(_) => false,
    };
    !locks(query).is_empty() || { with }.any(changes_within) || sides_change
}

impl Binder<'_> {
    /// What a name means in the body of a function, if no column has it.
    pub(crate) fn routine_argument(&self, name: &str) -> Option<Expr> {
        let scope = self.routine.as_ref()?;
        let found = scope.args.iter().find(|(known, _)| known == name);
        found.map(|(_, arg)| arg.clone())
    }

    /// The same of `function.name`.
    pub(crate) fn qualified_argument(&self, function: &str, name: &str) -> Option<Expr> {
        let scope = self.routine.as_ref()?;
        (scope.name == function)
            .then(|| self.routine_argument(name))
            .flatten()
    }

    /// `$1` in the body of a function.
    pub(crate) fn numbered_argument(&self, number: usize) -> Option<Result<Expr>> {
        let scope = self.routine.as_ref()?;
        let found = number.checked_sub(1).and_then(|at| scope.args.get(at));
        Some(found.map(|(_, arg)| arg.clone()).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
            )
        }))
    }

    /// Binds something of a function's body, outside of everything that is in sight here.
    fn in_body<T>(
        &mut self,
        routine: &Arc<Routine>,
        args: Vec<Expr>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.bodies += 1;
        if self.expanded.len() >= NESTING_MAX || self.bodies > BODIES_MAX {
            return Err(logstead_sql_types::error::too_deep());
        }
        self.cx.session.interrupted()?;
        for item in &routine.config {
            let name = item.split_once('=').map_or(item.as_str(), |(name, _)| name);
            if !is_harmless(name) {
                return Err(SqlError::unsupported(format!(
                    "calling function {}, which has SET {name},",
                    routine.name
                )));
            }
        }
        let names = routine.inputs().map(|arg| arg.name.clone());
        let scope = RoutineScope {
            name: routine.name.clone(),
            args: names.zip(args).collect(),
        };
        let owner = self.cx.catalog.owner_of(routine.oid);
        let definer = match routine.definer {
            true => Some(owner),
            false => self.definer,
        };
        let own_path = routine.setting("search_path").map(|path| -> Rc<[String]> {
            let names = logstead_sql_catalog::settings::split_identifiers(path).unwrap_or_default();
            let role = self
                .cx
                .catalog
                .roles
                .get(definer.unwrap_or_else(|| self.cx.session.current_role()));
            let role = role.map(|role| role.name.clone()).unwrap_or_default();
            // It is another path for another role.
            self.session_dependent |= names.iter().any(|name| name == "$user");
            let named = |name: String| if name == "$user" { role.clone() } else { name };
            Rc::from(names.into_iter().map(named).collect::<Vec<_>>())
        });
        let path = match own_path {
            Some(path) => Some(path),
            None => self.path.clone(),
        };
        let set = { routine.config.iter() }.map(|item| {
            item.split_once('=')
                .map_or(item.as_str(), |(name, _)| name)
                .to_owned()
        });
        let around = self.set_around.len();
        self.set_around.extend(set);
        self.expanded.push(routine.oid);
        let frames = std::mem::take(&mut self.frames);
        let recorded = self.recorded.take();
        let fresh = std::mem::take(&mut self.fresh);
        let text = std::mem::take(&mut self.text);
        let as_role = std::mem::replace(&mut self.uses.as_role, definer);
        let attach = self.uses.attach.take();
        let view = self.view.take();
        let outer = self.routine.replace(scope);
        let outer_definer = std::mem::replace(&mut self.definer, definer);
        let outer_path = std::mem::replace(&mut self.path, path.clone());
        let outer_joins = std::mem::take(&mut self.outer_joins);
        let whole = std::mem::take(&mut self.whole_conditions);
        let top = std::mem::take(&mut self.top);
        let schemas = self.uses.schemas.len();
        // What its body names is looked up by who it is run as. For its owner that is judged here, for all who call it.
        let session = self.cx.session;
        let result = looking_up_as(session, definer, path.clone(), || match &path {
            Some(path) => user::searching(path, || self.deeper(bind)),
            None => self.deeper(bind),
        });
        let judged = match definer {
            Some(definer) => self.check_definer_schemas(schemas, definer),
            None => Ok(()),
        };
        self.top = top;
        self.whole_conditions = whole;
        self.outer_joins = outer_joins;
        self.path = outer_path;
        self.definer = outer_definer;
        self.routine = outer;
        self.view = view;
        self.uses.attach = attach;
        self.uses.as_role = as_role;
        self.text = text;
        self.fresh = fresh;
        self.recorded = recorded;
        self.frames = frames;
        self.expanded.pop();
        self.set_around.truncate(around);
        judged?;
        result.map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })
    }

    /// 42501 for a schema that the owner of a function may not use, of those noted from number `from` on.
    fn check_definer_schemas(&mut self, from: usize, owner: RoleId) -> Result<()> {
        let noted = self.uses.schemas.split_off(from);
        let catalog = self.cx.catalog;
        let judge = catalog.acl_checker(&catalog.roles);
        for SchemaLookup { schema, .. } in noted {
            if !judge.may_use_schema(owner, schema) {
                let found = catalog.schemas.get(&schema);
                let name = found.map_or("?", |s| s.name.as_str());
                return Err(denied(format!("permission denied for schema {name}")));
            }
        }
        Ok(())
    }

    pub(super) fn shape(&self, call: &RoutineCall) -> Result<Shape> {
        let routine = &call.routine;
        let given: Vec<SqlType> = call.args.iter().map(Expr::ty).collect();
        let outputs: Vec<(Arc<str>, SqlType)> = { routine.outputs() }
            .zip(routine.output_types(&given, self.types())?)
            .zip(1..)
            .map(|((arg, ty), number): (_, usize)| {
                let name = match arg.name.is_empty() {
                    true => format!("column{number}"),
                    false => arg.name.clone(),
                };
                (Arc::from(name), ty)
            })
            .collect();
        if call.result.oid == oid::VOID {
            return Ok(Shape::Void);
        }
        if call.result.oid == oid::RECORD {
            if outputs.is_empty() {
                return Ok(Shape::Unknown);
            }
            let plain: Vec<_> = { outputs.iter() }
                .map(|(name, ty)| (Arc::clone(name), self.user_types().base_type(*ty)))
                .collect();
            let ty = record::record_type(&plain)?;
            return Ok(Shape::Row(outputs, ty));
        }
        if user::is_composite(call.result.oid) {
            let shape = self.user_types().declared_shape(call.result.oid);
            // Of a row within a row nobody asks them.
            for (_, ty) in shape.iter().flat_map(|shape| shape.iter()) {
                self.types()
                    .refuse_domains(self.user_types().base_type(*ty).oid)?;
            }
            let shape = shape.ok_or_else(|| SqlError::internal("a type without fields"))?;
            return Ok(Shape::Row(shape.to_vec(), call.result));
        }
        Ok(Shape::Scalar(call.result))
    }

    /// Is a function run by the session, statement by statement, instead of standing in the place of its call? Those of
    /// other languages are; of LANGUAGE sql those that are more than one query, change something, call themselves, or
    /// have settings of their own, and those that a cursor's query calls and that see more whenever they are called.
    pub(super) fn is_run(&self, routine: &Routine) -> Result<bool> {
        if routine.language != Language::Sql {
            return Ok(true);
        }
        let name = |item: &String| is_harmless(item.split_once('=').map_or(item, |(name, _)| name));
        let sees_more = routine.volatility == Volatility::Volatile
            && self.view.is_none()
            && self.expanded.is_empty()
            && self.cx.session.plans_cursor();
        Ok(!routine.config.iter().all(name)
            || (routine.set && routine.result == oid::VOID)
            || sees_more
            || self.expanded.contains(&routine.oid)
            || query_of(routine)?.is_none())
    }

    /// Binds a body, whose columns come to the types that are declared. True if its one column is the whole row.
    pub(super) fn body(
        &mut self,
        call: &RoutineCall,
        shape: &Shape,
        args: Vec<Expr>,
    ) -> Result<(QueryTree, bool)> {
        let routine = Arc::clone(&call.routine);
        if self.expanded.contains(&routine.oid) {
            if self.checks_routine {
                let select = Select::default();
                return self.nulls_for(shape, select);
            }
            return Err(SqlError::internal(
                "a function that calls itself is put into its own place",
            ));
        }
        let Some(query) = query_of(&routine)? else {
            if self.checks_routine {
                return self.nulls_for(shape, Select::default());
            }
            return Err(SqlError::internal(
                "a function that is not one query is put into its place",
            ));
        };
        let noted = self.uses_noted();
        let body = self.in_body(&routine, args, |b| {
            let body = b.query_body(&query, true)?;
            b.settle_uses(noted);
            Ok(body)
        })?;
        if routine.volatility == Volatility::Volatile {
            let tables = self.relations_noted(noted);
            self.read_by_volatile.extend(
                tables
                    .into_iter()
                    .map(|table| (table, routine.name.clone())),
            );
        }
        let whole = check_columns(&routine, &body.types(), shape, self.types())?;
        if whole {
            return Ok((body, true));
        }
        let targets: Vec<SqlType> = match shape {
            Shape::Scalar(ty) => vec![*ty],
            Shape::Row(columns, _) => columns.iter().map(|(_, ty)| *ty).collect(),
            Shape::Void | Shape::Unknown => return Ok((body, false)),
        };
        self.cast_body(body, &targets).map(|body| (body, false))
    }

    /// A body of NULLs, for what is only looked at.
    fn nulls_for(&mut self, shape: &Shape, mut select: Select) -> Result<(QueryTree, bool)> {
        let types: Vec<SqlType> = match shape {
            Shape::Scalar(ty) => vec![self.user_types().base_type(*ty)],
            Shape::Row(columns, _) => columns
                .iter()
                .map(|(_, ty)| self.user_types().base_type(*ty))
                .collect(),
            Shape::Void | Shape::Unknown => vec![SqlType::of(oid::TEXT)],
        };
        for ty in types {
            let output = self.made_output("", Expr::Const(Datum::Null, ty));
            select.outputs.push(output);
        }
        Ok((QueryTree::Select(Box::new(select)), false))
    }

    pub(super) fn made_output(&mut self, name: &str, expr: Expr) -> Output {
        let ty = expr.ty();
        Output {
            id: self.computed(name, ty),
            column: OutputColumn {
                name: name.to_owned(),
                ty,
                domain: self.domain_of(&expr),
                origin: None,
            },
            expr,
        }
    }

    fn cast_body(&mut self, body: QueryTree, targets: &[SqlType]) -> Result<QueryTree> {
        let alike = |from: &SqlType, to: &SqlType| {
            from.oid == to.oid
                && user::domain_in(to.oid).is_none()
                && (to.typmod < 0 || from.typmod == to.typmod)
        };
        let types = body.types();
        if types.iter().zip(targets).all(|(a, b)| alike(a, b)) {
            return Ok(body);
        }
        let cast = |b: &mut Self, expr: Expr, to: SqlType| match alike(&expr.ty(), &to) {
            true => Ok(expr),
            false => b.coerce(expr, to, CastContext::Assignment, None),
        };
        match body {
            QueryTree::Select(mut select)
                if select.order.is_empty() && matches!(select.distinct, Distinct::No) =>
            {
                for (output, to) in select.outputs.iter_mut().zip(targets) {
                    output.expr = cast(self, output.expr.clone(), *to)?;
                    output.column.ty = output.expr.ty();
                }
                Ok(QueryTree::Select(select))
            }
            body => {
                let body = self.settle_body(body)?;
                let mut columns = self.range.body_columns(&body);
                let mut exprs = Vec::with_capacity(columns.len());
                for ((at, column), to) in columns.iter_mut().enumerate().zip(targets) {
                    let expr = cast(self, Expr::Column(at, column.ty), *to)?;
                    column.ty = expr.ty();
                    exprs.push(expr);
                }
                Ok(QueryTree::Project(Box::new(body), exprs, columns))
            }
        }
    }

    /// A row of its own for values that are computed once, as a FROM item; what the values are called there.
    pub(super) fn row_of(&mut self, values: Vec<Expr>) -> Result<(usize, ColId)> {
        let columns = { values.iter() }.map(|e| ("".into(), e.ty(), None));
        let columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)> = columns.collect();
        let described = { columns.iter() }.map(|(_, ty, origin)| OutputColumn {
            name: String::new(),
            ty: *ty,
            domain: None,
            origin: *origin,
        });
        let one = Plan {
            node: Node::OneRow,
            columns: Vec::new(),
            rows: 1.0,
            cost: 0.01,
        };
        let plan = build::project(one, values, described.collect());
        self.frames.push(Frame::new());
        let rel = self.add_item(RelSource::Plan(Some(Box::new(plan))), columns, "", None);
        self.frames.pop();
        let rel = rel?;
        let (first, width) = (self.range.rels[rel].first, self.range.rels[rel].width);
        for id in first..first + width {
            self.give_column(id);
        }
        Ok((rel, first))
    }

    /// The arguments as the body has them; a row of its own has those that are computed beforehand: what it is, and
    /// what they stand for.
    pub(super) fn placed(&mut self, args: &[Expr]) -> Result<(Vec<Expr>, Option<ArgumentRow>)> {
        let values: Vec<Expr> = args.iter().filter(|arg| !is_plain(arg)).cloned().collect();
        if values.is_empty() {
            return Ok((args.to_vec(), None));
        }
        let (rel, first) = self.row_of(values.clone())?;
        let mut ids = first..;
        let placed = args.iter().map(|arg| match is_plain(arg) {
            true => arg.clone(),
            false => Expr::Column(ids.next().unwrap_or(first), arg.ty()),
        });
        Ok((placed.collect(), Some(ArgumentRow { rel, first, values })))
    }

    /// Is one of the arguments NULL? None if none can be.
    pub(super) fn any_null(args: &[Expr]) -> Option<Expr> {
        let known =
            |arg: &&Expr| !matches!(arg, Expr::Const(value, _) if !matches!(value, Datum::Null));
        let mut tests: Vec<Expr> = { args.iter().filter(known) }
            .map(|arg| Expr::IsNull(Box::new(arg.clone()), false))
            .collect();
        match tests.len() {
            0 | 1 => tests.pop(),
            _ => Some(Expr::Or(tests)),
        }
    }

    /// The value of a call of a function that gives no set. A call that has been bound before is what it was then, so
    /// that GROUP BY knows it again.
    pub(crate) fn inlined_value(&mut self, call: RoutineCall, at: Option<usize>) -> Result<Expr> {
        let known = self.inlined.iter().find(|known| {
            self.set_around.is_empty()
                && known.routine == call.routine.oid
                && known.result == call.result
                && known.definer == self.definer
                && known.path == self.path
                && known.args.len() == call.args.len()
                && { known.args.iter().zip(&call.args) }.all(|(a, b)| walk::same(a, b))
        });
        if let Some(known) = known {
            return Ok(known.value.clone());
        }
        // Each call of a volatile function counts, and in a body of a function with SET other things are refused than
        // outside.
        let keeps = call.routine.volatility != Volatility::Volatile && self.set_around.is_empty();
        let (routine, args, result) = (call.routine.oid, call.args.clone(), call.result);
        let mut value = self.inlined_anew(call, at)?;
        if !self.in_query {
            // The body was a query block; here is none.
            self.planner().plan_sublinks(&mut value)?;
        }
        if keeps && walk::has_subquery(&value) && !walk::is_volatile(&value) {
            self.inlined.push(InlinedCall {
                routine,
                args,
                result,
                definer: self.definer,
                path: self.path.clone(),
                value: value.clone(),
            });
        }
        Ok(value)
    }

    fn inlined_anew(&mut self, call: RoutineCall, at: Option<usize>) -> Result<Expr> {
        let shape = self.shape(&call).map_err(|e| e.at(at))?;
        let start = self.query_start();
        let (placed, beforehand) = self.placed(&call.args)?;
        let of_body = self.query_start();
        let (body, whole) = self
            .body(&call, &shape, placed.clone())
            .map_err(|e| e.at(at))?;
        let mut value = match body {
            QueryTree::Select(mut select) if only_value(&select) => {
                let exprs: Vec<Expr> = select.outputs.drain(..).map(|o| o.expr).collect();
                self.one_value(&shape, whole, exprs)?
            }
            body => {
                let body = self.settle_body(body)?;
                self.first_row(of_body, &shape, whole, body)?
            }
        };
        if matches!(shape, Shape::Void) {
            // It is evaluated, and nothing comes of it.
            let null = || Expr::Const(Datum::Null, SqlType::of(oid::VOID));
            value = Expr::Case {
                arms: vec![(Expr::IsNull(Box::new(value), false), null())],
                otherwise: Some(Box::new(null())),
                ty: SqlType::of(oid::VOID),
            };
        }
        let ty = value.ty();
        let test = match call.routine.strict {
            true => Self::any_null(&placed),
            false => None,
        };
        if let Some(test) = test {
            value = Expr::Case {
                arms: vec![(test, Expr::Const(Datum::Null, ty))],
                otherwise: Some(Box::new(value)),
                ty,
            };
        }
        let Some(beforehand) = beforehand else {
            return Ok(value);
        };
        // Arguments go where they are used, if that is the same.
        let mut used = Vec::new();
        walk::column_ids(&value, &mut used);
        let goes = |(id, arg): (ColId, &Expr)| match used.iter().filter(|u| **u == id).count() {
            0 => !walk::is_volatile(arg),
            1 => true,
            _ => may_repeat(arg),
        };
        let first = beforehand.first;
        if !walk::has_subquery(&value) && { (first..).zip(&beforehand.values) }.all(goes) {
            for (id, arg) in (first..).zip(&beforehand.values) {
                replace(&mut value, id, arg);
            }
            return Ok(value);
        }
        let mut select = Select::default();
        select.from.items.push(From::Rel(beforehand.rel));
        let output = self.made_output("", value);
        select.outputs.push(output);
        let body = self.settle_body(QueryTree::Select(Box::new(select)))?;
        self.called_query(start, body, ty)
    }

    /// A subquery that is a call: a volatile one is made anew for each row.
    pub(super) fn called_query(
        &mut self,
        start: QueryStart,
        body: QueryTree,
        ty: SqlType,
    ) -> Result<Expr> {
        let of = SubLinkContext {
            call: true,
            each_row_if_volatile: true,
            ..SubLinkContext::plain(SubqueryKind::Scalar, ty)
        };
        self.sublink(start, body, of)
    }

    /// The value that a body's columns are.
    fn one_value(&mut self, shape: &Shape, whole: bool, mut exprs: Vec<Expr>) -> Result<Expr> {
        let only = |exprs: &mut Vec<Expr>| {
            let found = exprs.pop();
            found.ok_or_else(|| SqlError::internal("a query without columns"))
        };
        match shape {
            Shape::Row(..) if whole => only(&mut exprs),
            Shape::Scalar(_) => only(&mut exprs),
            Shape::Row(_, ty) => Ok(Expr::Array(exprs, *ty)),
            Shape::Unknown => self.row(exprs),
            // All of it is evaluated.
            Shape::Void if exprs.len() == 1 => only(&mut exprs),
            Shape::Void if exprs.is_empty() => Ok(Expr::Const(Datum::Null, SqlType::of(oid::TEXT))),
            Shape::Void => self.row(exprs),
        }
    }

    /// The value of the first row.
    fn first_row(
        &mut self,
        start: QueryStart,
        shape: &Shape,
        whole: bool,
        body: QueryTree,
    ) -> Result<Expr> {
        let columns = self.range.body_columns(&body);
        let exprs = { columns.iter().enumerate() }.map(|(at, c)| Expr::Column(at, c.ty));
        let value = self.one_value(shape, whole, exprs.collect())?;
        let ty = value.ty();
        let column = OutputColumn {
            name: String::new(),
            ty,
            domain: None,
            origin: None,
        };
        let input = QueryTree::Project(Box::new(body), vec![value], vec![column]);
        let first = QueryTree::Ordered(Box::new(Ordered {
            input,
            keys: Vec::new(),
            limit: Some(Expr::Const(Datum::Int8(1), SqlType::of(oid::INT8))),
            offset: None,
            ties: Vec::new(),
        }));
        self.called_query(start, first, ty)
    }
}
