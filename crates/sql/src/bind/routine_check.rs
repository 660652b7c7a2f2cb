//! Looks at functions of LANGUAGE sql that are to be made.

use super::Binder;
use super::inlined::{FINAL_STATEMENT, mismatch, query_of};
use super::routine::RoutineCall;
use crate::catalog::routine::{Language, Routine, RoutineBody};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::{self, StatementKind};
use crate::plan::PlanContext;
use crate::value::{SqlType, info, oid, user};
use logstead_types::SqlState;
use std::sync::Arc;

/// Errors of syntax in a body of LANGUAGE plpgsql.
fn check_body(routine: &Routine) -> Result<()> {
    let types: Vec<SqlType> = { routine.inputs() }
        .map(|arg| SqlType::of(arg.ty))
        .collect();
    let RoutineBody::Text(text) = &routine.body;
    let read = crate::plpgsql::read(text, &crate::plpgsql::given(routine, &types));
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
            true => check_body(routine),
            false => Ok(()),
        };
    }
    let pseudo = |ty| info::by_oid(ty).is_some_and(|t| t.kind == 'p');
    if pseudo(routine.result)
        && !matches!(routine.result, oid::RECORD | oid::VOID)
        && !crate::func::is_polymorphic(routine.result)
    {
        return Err(invalid(format!(
            "SQL functions cannot return type {}",
            info::format_type_bare(routine.result)
        )));
    }
    for arg in routine.inputs() {
        if pseudo(arg.ty) && !crate::func::is_polymorphic(arg.ty) {
            return Err(invalid(format!(
                "SQL functions cannot have arguments of type {}",
                info::format_type_bare(arg.ty)
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
    let gives = |kind: &StatementKind| matches!(kind, StatementKind::Query);
    if routine.result != oid::VOID
        && !routine.procedure
        && !statements.last().is_some_and(|last| gives(&last.kind))
    {
        return Err(in_context(mismatch(routine, FINAL_STATEMENT), routine));
    }
    let polymorphic = routine.types().any(crate::func::is_polymorphic);
    if query_of(routine)?.is_none() || polymorphic || routine.procedure {
        return Ok(());
    }
    let mut binder = Binder::new(cx, "");
    binder.secures = false;
    binder.checks_routine = true;
    let inputs = routine.input_types();
    binder.params = inputs.iter().map(|ty| Some(SqlType::of(*ty))).collect();
    let args = { inputs.iter().enumerate() }
        .map(|(at, ty)| Expr::Param(at, user::base_type(SqlType::of(*ty))));
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

/// Says of which function it is that a definition is wrong.
fn in_context(error: SqlError, routine: &Routine) -> SqlError {
    match error.code() == SqlState::new(b"42P13") {
        true => error.context(format!("SQL function \"{}\"", routine.name)),
        false => error,
    }
}
