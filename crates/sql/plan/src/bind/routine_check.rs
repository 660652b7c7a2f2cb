//! Looks at functions of LANGUAGE sql that are to be made.

use super::Binder;
use super::inline_function::{FINAL_STATEMENT, Shape, check_columns, mismatch};
use super::routine::RoutineCall;
use crate::PlanContext;
use crate::permissions::NotExecuted;
use crate::query::expr::Expr;
use crate::variables::{Group, Variables};
use logstead_sql_catalog::routine::{Language, Routine, RoutineBody};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_parse::plpgsql::tree::VariableConflict;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{SqlType, oid, user};
use logstead_types::SqlState;
use std::sync::Arc;

/// Errors of syntax in a body of LANGUAGE plpgsql.
fn check_body(routine: &Routine, cx: &PlanContext<'_>) -> Result<()> {
    let types: Vec<SqlType> = { routine.inputs() }
        .map(|arg| SqlType::of(arg.ty))
        .collect();
    let RoutineBody::Text(text) = &routine.body;
    let mut told =
        logstead_sql_catalog::body_context::body_context(routine, &types, cx.lookup().types());
    told.refuses_shadows = logstead_sql_parse::plpgsql::refuses_shadows(cx.session);
    let read = logstead_sql_parse::plpgsql::read(text, &told);
    match read {
        Ok(_) => Ok(()),
        Err(mut error) => {
            let fields = error.fields_mut();
            if let Some(position) = fields.position.take() {
                fields.inner_query = Some((position, text.clone()));
            }
            Err(error)
        }
    }
}

/// CONTEXT of what is wrong before a body is read.
pub(super) fn compiling(name: &str) -> String {
    format!("compilation of PL/pgSQL function \"{name}\" near line 1")
}

/// 42P13, or what else is wrong with a function that is to be made. Its body is only looked at if that is `asked` for.
pub fn check_routine(routine: &Routine, asked: bool, cx: &PlanContext<'_>) -> Result<()> {
    let invalid = |message: String| SqlError::new(SqlState::new(b"42P13"), message);
    if routine.result == oid::TRIGGER && routine.inputs().next().is_some() {
        return Err(invalid(
            "trigger functions cannot have declared arguments".to_owned(),
        )
        .hint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.")
        .context(compiling(&routine.name)));
    }
    if routine.language != Language::Sql {
        return match asked {
            true => check_body(routine, cx),
            false => Ok(()),
        };
    }
    let pseudo = |ty| {
        cx.catalog
            .types
            .type_info(ty)
            .is_some_and(|t| t.kind == 'p')
    };
    if pseudo(routine.result)
        && !matches!(routine.result, oid::RECORD | oid::VOID)
        && !logstead_sql_func::is_polymorphic(routine.result)
    {
        return Err(invalid(format!(
            "SQL functions cannot return type {}",
            cx.lookup().types().format_type_bare(routine.result)
        )));
    }
    for arg in routine.inputs() {
        if pseudo(arg.ty) && !logstead_sql_func::is_polymorphic(arg.ty) {
            return Err(invalid(format!(
                "SQL functions cannot have arguments of type {}",
                cx.lookup().types().format_type_bare(arg.ty)
            )));
        }
    }
    if !asked {
        return Ok(());
    }
    let RoutineBody::Text(text) = &routine.body;
    let without_position = |mut error: SqlError| {
        error.fields_mut().position = None;
        error
    };
    let statements = parse::parse(text).map_err(without_position)?;
    if routine.result != oid::VOID
        && !routine.procedure
        && !statements
            .last()
            .is_some_and(|last| last.statement.is_planned())
    {
        return Err(in_context(
            mismatch(routine, FINAL_STATEMENT, cx.lookup().types()),
            routine,
        ));
    }
    let polymorphic = routine.types().any(logstead_sql_func::is_polymorphic);
    if polymorphic {
        return Ok(());
    }
    let mut binder = Binder::new(cx, "");
    binder.secures = false;
    binder.checks_routine = true;
    if routine.procedure || binder.is_run(routine)? {
        return check_statements(routine, &statements, cx);
    }
    let inputs = routine.input_types();
    binder.params = inputs.iter().map(|ty| Some(SqlType::of(*ty))).collect();
    let args = { inputs.iter().enumerate() }
        .map(|(at, ty)| Expr::Param(at, cx.catalog.types.base_type(SqlType::of(*ty))));
    let call = RoutineCall {
        routine: Arc::new(routine.clone()),
        args: args.collect(),
        result: SqlType::of(routine.result),
        called: routine.name.clone(),
    };
    let shape = binder.shape(&call)?;
    let args = call.args.clone();
    let looked_at = binder.body(&call, &shape, args).map(drop);
    looked_at.map_err(|error| in_context(error, routine))
}

/// Errors in the statements of a body that are planned.
fn check_statements(
    routine: &Routine,
    statements: &[parse::Parsed],
    cx: &PlanContext<'_>,
) -> Result<()> {
    let types: Vec<SqlType> = { routine.inputs() }
        .map(|arg| cx.catalog.types.base_type(SqlType::of(arg.ty)))
        .collect();
    let variables = sql_variables(routine, &types);
    let cx = PlanContext {
        param_types: &[],
        parameters_fixed: true,
        variables: Some(&variables),
        ..*cx
    };
    for (at, parsed) in statements.iter().enumerate() {
        if let Stmt::Call(call) = &**parsed.statement {
            let call = super::bind_procedure_call(&call.funccall, "", &cx);
            // It is only looked at.
            let call = call.and_then(|call| call.check(&mut NotExecuted));
            let gives = |call: &super::ProcedureCall| call.routine.outputs().next().is_some();
            if call.as_ref().is_ok_and(gives) {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "calling procedures with output arguments is not supported in SQL functions",
                )
                .context(format!("SQL function \"{}\"", routine.name)));
            }
        }
        if !parsed.statement.is_planned() {
            continue;
        }
        let planned = crate::plan_statement(&parsed.statement, "", &cx);
        let planned = planned.map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })?;
        if at + 1 < statements.len() {
            continue;
        }
        if planned.columns.is_empty() && routine.result != oid::VOID && !routine.procedure {
            return Err(in_context(
                mismatch(routine, FINAL_STATEMENT, cx.lookup().types()),
                routine,
            ));
        }
        let given: Vec<SqlType> = planned.columns.iter().map(|column| column.ty).collect();
        let checked = check_given(routine, &given, &[], cx.lookup().types());
        checked.map_err(|error| in_context(error, routine))?;
    }
    Ok(())
}

/// What the SQL of a body of LANGUAGE sql sees of its arguments, which have these types.
pub fn sql_variables(routine: &Routine, types: &[SqlType]) -> Variables {
    let mut names = Vec::new();
    for (number, arg) in routine.inputs().enumerate().take(types.len()) {
        names.push((Arc::from(format!("${}", number + 1)), number));
        if !arg.name.is_empty() {
            names.push((Arc::from(arg.name.as_str()), number));
        }
    }
    Variables {
        types: types.to_vec(),
        groups: vec![Group {
            block: None,
            name: routine.name.as_str().into(),
            members: names.clone(),
            record: false,
            unassigned: false,
        }],
        names,
        tables: Vec::new(),
        conflict: VariableConflict::UseColumn,
    }
}

/// 42P13 unless what the last statement gives is what a function is declared to give, or what the list of columns
/// behind a call has. True if its one column is the whole row.
pub fn check_given(
    routine: &Routine,
    given: &[SqlType],
    listed: &[SqlType],
    known: TypeLookup<'_>,
) -> Result<bool> {
    let outputs: Vec<(Arc<str>, SqlType)> = { routine.outputs() }
        .map(|arg| (arg.name.as_str().into(), SqlType::of(arg.ty)))
        .collect();
    let shape = match routine.result {
        oid::VOID => Shape::Void,
        oid::RECORD if outputs.is_empty() && listed.is_empty() => Shape::Unknown,
        oid::RECORD if outputs.is_empty() => {
            let listed = listed.iter().map(|ty| ("".into(), *ty));
            Shape::Row(listed.collect(), SqlType::of(oid::RECORD))
        }
        oid::RECORD => Shape::Row(outputs, SqlType::of(oid::RECORD)),
        ty if logstead_sql_func::is_polymorphic(ty) => Shape::Unknown,
        ty if user::is_composite(ty) => {
            let shape = known.types.declared_shape(ty);
            let shape = shape.ok_or_else(|| SqlError::internal("a type without fields"))?;
            Shape::Row(shape.to_vec(), SqlType::of(ty))
        }
        ty => Shape::Scalar(SqlType::of(ty)),
    };
    check_columns(routine, given, &shape, known)
}

/// Says of which function it is that a definition is wrong.
fn in_context(error: SqlError, routine: &Routine) -> SqlError {
    match error.code() == SqlState::new(b"42P13") {
        true => error.context(format!("SQL function \"{}\"", routine.name)),
        false => error,
    }
}
