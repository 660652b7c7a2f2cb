//! Calls of functions that the session runs: scans of their rows, in FROM or as a subquery where a value is wanted.

use super::inline_function::Shape;
use super::names::FunctionName;
use super::routine::{ResolvedFunction, RoutineCall};
use super::routine_check::compiling;
use super::{Binder, Frame, RelSource};
use crate::permissions::Bound;
use crate::query::expr::{Expr, Subquery, SubqueryKind};
use crate::query::{From, FromList};
use crate::{Callee, Node, OutputColumn, Plan, PlanContext, build, walk};
use logstead_sql_catalog::ColumnOrigin;
use logstead_sql_catalog::routine::Routine;
use logstead_sql_func::{CastContext, Function, Volatility};
use logstead_sql_parse::ast::{self, Alias};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid, user};
use logstead_types::SqlState;
use std::sync::Arc;

/// PostgreSQL's guess at what a call costs, and a tenth of its guess at the rows of a set.
const CALL_COST: f64 = 1.0;

impl Binder<'_> {
    fn callee(
        &mut self,
        call: &RoutineCall,
        columns: Vec<SqlType>,
        row: bool,
    ) -> Result<Arc<Callee>> {
        let routine = &call.routine;
        self.refuse_called(routine)?;
        if call.result.oid == oid::TRIGGER {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "trigger functions can only be called as triggers",
            )
            .context(compiling(&routine.name)));
        }
        self.volatile = true;
        self.read_only = false;
        Ok(Arc::new(Callee {
            oid: routine.oid,
            name: (routine.schema_name.clone(), routine.name.clone()),
            strict: routine.strict,
            set: routine.set,
            volatile: routine.volatility == Volatility::Volatile,
            result: call.result,
            columns,
            row,
        }))
    }

    /// The value of a call.
    pub(super) fn called_value(&mut self, call: RoutineCall, at: Option<usize>) -> Result<Expr> {
        if self.checks_routine {
            return Ok(Expr::Const(Datum::Null, call.result));
        }
        let ty = match self.shape(&call).map_err(|e| e.at(at))? {
            Shape::Row(_, ty) if call.routine.outputs().count() != 1 => ty,
            Shape::Row(columns, ty) => columns
                .first()
                .map_or(ty, |(_, ty)| self.user_types().base_type(*ty)),
            Shape::Scalar(ty) => self.user_types().base_type(ty),
            Shape::Void | Shape::Unknown => call.result,
        };
        let callee = self.callee(&call, vec![ty], false).map_err(|e| e.at(at))?;
        let name: Arc<str> = call.called.as_str().into();
        let plan = scan(callee, call.args, name, vec![("".into(), ty)]);
        Ok(self.called_subquery(plan, SubqueryKind::Scalar, ty))
    }

    /// A built-in function that the session runs, as it is called.
    fn run_callee(
        &mut self,
        function: &'static Function,
        at: Option<usize>,
    ) -> Result<Arc<Callee>> {
        if self.definer.is_some() {
            return Err(SqlError::unsupported(format!(
                "calling {} in a function with SECURITY DEFINER",
                function.name
            ))
            .at(at));
        }
        self.volatile = true;
        self.read_only = false;
        let result = SqlType::of(function.result);
        Ok(Arc::new(Callee {
            oid: function.oid,
            name: ("pg_catalog".to_owned(), function.name.to_owned()),
            strict: function.strict,
            set: false,
            volatile: function.volatility == Volatility::Volatile,
            result,
            columns: vec![result],
            row: false,
        }))
    }

    /// The value of its call.
    pub(super) fn run_value(
        &mut self,
        function: &'static Function,
        args: Vec<Expr>,
        at: Option<usize>,
    ) -> Result<Expr> {
        let ty = SqlType::of(function.result);
        if self.checks_routine {
            return Ok(Expr::Const(Datum::Null, ty));
        }
        let callee = self.run_callee(function, at)?;
        let plan = scan(callee, args, function.name.into(), vec![("".into(), ty)]);
        Ok(self.called_subquery(plan, SubqueryKind::Scalar, ty))
    }

    /// Its call in FROM: the plan, of one row.
    pub(super) fn run_rows(
        &mut self,
        function: &'static Function,
        args: Vec<Expr>,
        column: Arc<str>,
        at: Option<usize>,
    ) -> Result<RelSource> {
        let callee = self.run_callee(function, at)?;
        let ty = SqlType::of(function.result);
        let plan = scan(callee, args, function.name.into(), vec![(column, ty)]);
        Ok(RelSource::Plan(Some(Box::new(plan))))
    }

    /// A subquery that is run for each row, whatever its arguments.
    fn called_subquery(&mut self, plan: Plan, kind: SubqueryKind, ty: SqlType) -> Expr {
        Expr::Subquery(Arc::new(Subquery {
            plan,
            kind,
            uncorrelated: false,
            ty,
            shared: 0,
            call: true,
        }))
    }

    /// All rows of a call, as an array of what `shape` says.
    pub(super) fn called_rows(
        &mut self,
        call: RoutineCall,
        shape: &Shape,
        (element, array): (SqlType, SqlType),
    ) -> Result<Expr> {
        let is_row = is_row(&call, shape);
        let fields: Vec<(Arc<str>, SqlType)> = match shape {
            Shape::Row(columns, _) if is_row => { columns.iter() }
                .map(|(name, ty)| (Arc::clone(name), self.user_types().base_type(*ty)))
                .collect(),
            _ => vec![("".into(), element)],
        };
        let types = fields.iter().map(|(_, ty)| *ty).collect();
        let callee = self.callee(&call, types, is_row)?;
        let name: Arc<str> = call.called.as_str().into();
        let mut plan = scan(callee, call.args, name, fields);
        if is_row {
            let exprs = { plan.columns.iter().enumerate() }.map(|(at, c)| Expr::Column(at, c.ty));
            let value = Expr::Array(exprs.collect(), element);
            let column = column("".into(), element);
            plan = build::project(plan, vec![value], vec![column]);
        }
        Ok(self.called_subquery(plan, SubqueryKind::Array(element.oid), array))
    }

    /// The rows of a call in FROM.
    pub(super) fn called_item(
        &mut self,
        call: RoutineCall,
        shape: &Shape,
        columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)>,
        alias: Option<&Alias>,
    ) -> Result<FromList> {
        let types: Vec<SqlType> = columns.iter().map(|(_, ty, _)| *ty).collect();
        let is_row = is_row(&call, shape);
        let callee = self.callee(&call, types, is_row)?;
        let name = call.called.clone();
        let result = call.result.oid;
        let fields = { columns.iter() }.map(|(name, ty, _)| (Arc::clone(name), *ty));
        let rows = f64::from(call.routine.rows).max(1.0);
        let mut plan = scan(callee, call.args, name.as_str().into(), fields.collect());
        (plan.rows, plan.cost) = (rows, CALL_COST + rows * 0.01);
        let source = RelSource::Plan(Some(Box::new(plan)));
        let rel = self.add_item(source, columns, &name, alias)?;
        if let Some(item) = self.frame()?.ns.last_mut() {
            item.scalar = !is_row;
            item.composite = user::is_composite(result).then_some(result);
        }
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }
}

/// A procedure that CALL names, with its arguments.
pub struct ProcedureCall {
    /// The procedure.
    pub routine: Arc<Routine>,
    /// Its arguments, over no row.
    pub args: Vec<Expr>,
    /// Types of the statement's parameters.
    pub param_types: Vec<SqlType>,
    /// Which of them are variables that it names.
    pub params_used: Vec<bool>,
}

/// Binds CALL.
pub fn bind_procedure_call(
    call: &ast::FuncCall,
    text: &str,
    cx: &PlanContext<'_>,
) -> Result<Bound<ProcedureCall>> {
    let mut binder = Binder::new(cx, text);
    binder.see_variables();
    binder.frames.push(Frame::new());
    binder.calls_procedure = true;
    let at = binder.at(call.location);
    let function = FunctionName::of(&call.funcname, &cx.catalog.database_name)?;
    let name = function.name;
    let inputs = without_outputs(call, function, cx).map(|args| ast::FuncCall {
        args,
        ..call.clone()
    });
    let given = &call.args;
    let call = inputs.as_ref().unwrap_or(call);
    let none = |mut error: SqlError| {
        if error.code() != SqlState::UNDEFINED_FUNCTION {
            return error;
        }
        let fields = error.fields_mut();
        fields.message = fields.message.replacen("function", "procedure", 1);
        fields.hint = Some("No procedure matches the given name and argument types. You might need to add explicit type casts.".to_owned());
        error
    };
    let called = binder.routine_of_call(call, function, at);
    let bound = match called.map_err(none)? {
        Some(ResolvedFunction::Routine(call)) if call.routine.procedure => call,
        Some(ResolvedFunction::Routine(call)) => {
            let types = call.routine.inputs();
            let types = types.map(|arg| binder.types().format_type_bare(arg.ty));
            let shown = format!("{name}({})", types.collect::<Vec<_>>().join(", "));
            return Err(not_procedure(&shown).at(at));
        }
        Some(ResolvedFunction::BuiltIn(..)) => {
            return Err(not_procedure(&format!("{name}()")).at(at));
        }
        None => {
            let mut types = Vec::new();
            for arg in call.args.iter().filter(|arg| arg.name.is_none()) {
                let ty = binder.expr(&arg.value)?.ty().oid;
                types.push(binder.types().format_type_bare(ty));
            }
            let shown = format!("{name}({})", types.join(", "));
            let error = SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("procedure {shown} does not exist"),
            );
            return Err(error
                .hint("No procedure matches the given name and argument types. You might need to add explicit type casts.")
                .at(at));
        }
    };
    if inputs.is_some() {
        check_outputs(&mut binder, given, &bound.routine).map_err(|e| e.at(at))?;
    }
    if bound.args.iter().any(walk::has_subquery) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in CALL argument",
        )
        .at(at));
    }
    let call = ProcedureCall {
        param_types: binder.finish_params()?,
        params_used: binder.params_used.clone(),
        routine: bound.routine,
        args: bound.args,
    };
    binder.into_bound(call)
}

/// The arguments without those that stand where a procedure of the name has OUT parameters: these say where a value
/// goes, and are not evaluated.
fn without_outputs(
    call: &ast::FuncCall,
    function: FunctionName<'_>,
    cx: &PlanContext<'_>,
) -> Option<Vec<ast::FuncArg>> {
    let args = call.args.as_slice();
    let as_array = call.func_variadic;
    if args.iter().any(|arg| arg.name.is_some()) {
        return match as_array {
            true => None,
            false => without_named_outputs(args, function, cx),
        };
    }
    let found = { cx.catalog }.routines_named(function.schema, function.name, cx.search_path);
    let (_, procedure) = found.into_iter().find(|(_, routine)| {
        let outputs = routine.args.iter().any(|arg| !arg.mode.is_input());
        // What is VARIADIC is the last parameter.
        let fits = match routine.variadic() {
            None => !as_array && routine.args.len() == args.len(),
            _ if as_array => routine.args.len() == args.len(),
            _ => routine.args.len() <= args.len(),
        };
        routine.procedure && outputs && fits
    })?;
    let tail = std::iter::repeat(procedure.args.last()?);
    let both = procedure.args.iter().chain(tail).zip(args);
    let inputs = both.filter(|(arg, _)| arg.mode.is_input());
    Some(inputs.map(|(_, given)| given.clone()).collect())
}

/// The same where some arguments are named.
fn without_named_outputs(
    args: &[ast::FuncArg],
    function: FunctionName<'_>,
    cx: &PlanContext<'_>,
) -> Option<Vec<ast::FuncArg>> {
    let found = { cx.catalog }.routines_named(function.schema, function.name, cx.search_path);
    found.into_iter().find_map(|(_, routine)| {
        let outputs = routine.args.iter().filter(|arg| !arg.mode.is_input());
        let wanted = outputs.count();
        if !routine.procedure || wanted == 0 {
            return None;
        }
        let mut inputs = Vec::with_capacity(args.len());
        for (at, arg) in args.iter().enumerate() {
            let place = match &arg.name {
                Some((name, _)) => routine
                    .args
                    .iter()
                    .position(|known| *known.name == **name)?,
                None => at,
            };
            if routine.args.get(place)?.mode.is_input() {
                inputs.push(arg.clone());
            }
        }
        (args.len() - inputs.len() == wanted).then_some(inputs)
    })
}

/// 42883 where an argument that stands for an OUT parameter is of a type that does not become the parameter's.
fn check_outputs(binder: &mut Binder<'_>, args: &[ast::FuncArg], routine: &Routine) -> Result<()> {
    for (arg, declared) in args.iter().zip(&routine.args) {
        if arg.name.is_some() {
            return Ok(());
        }
        if declared.mode.is_input() || logstead_sql_func::is_polymorphic(declared.ty) {
            continue;
        }
        let given = binder.expr(&arg.value)?.ty().oid;
        let wanted = binder.user_types().base_type(SqlType::of(declared.ty)).oid;
        if !logstead_sql_func::can_coerce(given, wanted, CastContext::Implicit) {
            let mut types = Vec::with_capacity(args.len());
            for arg in args.iter().filter(|arg| arg.name.is_none()) {
                let ty = binder.expr(&arg.value)?.ty().oid;
                types.push(binder.types().format_type_bare(ty));
            }
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("procedure {}({}) does not exist", routine.name, types.join(", ")),
            )
            .hint("No procedure matches the given name and argument types. You might need to add explicit type casts."));
        }
    }
    Ok(())
}

fn not_procedure(shown: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{shown} is not a procedure"),
    )
    .hint("To call a function, use SELECT.")
}

/// Are the columns the fields of one value?
fn is_row(call: &RoutineCall, shape: &Shape) -> bool {
    matches!(shape, Shape::Row(..)) && call.routine.outputs().count() != 1
}

fn column(name: Arc<str>, ty: SqlType) -> OutputColumn {
    OutputColumn {
        name: name.to_string(),
        ty,
        domain: None,
        origin: None,
    }
}

fn scan(
    callee: Arc<Callee>,
    args: Vec<Expr>,
    alias: Arc<str>,
    fields: Vec<(Arc<str>, SqlType)>,
) -> Plan {
    Plan {
        node: Node::RoutineScan {
            callee,
            args,
            alias,
        },
        columns: { fields.into_iter() }
            .map(|(name, ty)| column(name, ty))
            .collect(),
        rows: 1.0,
        cost: CALL_COST,
    }
}
