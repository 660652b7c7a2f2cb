//! Calls with VARIADIC: an array in the place of the last arguments.

use super::arithmetic::bad_args;
use super::{Function, FunctionImpl, registry};
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::{Datum, SqlType, info, oid};

/// A call of the function whose number is the first argument, with the elements of the last one as its last arguments.
pub static VARIADIC_CALL: Function = super::function(
    0,
    "variadic_call",
    &[oid::OID],
    Some(oid::ANY),
    oid::ANYELEMENT,
    false,
    super::Volatility::Stable,
    FunctionImpl::Typed(call),
);

fn call(cx: &dyn IoContext, types: &[SqlType], args: &[Datum]) -> Result<Datum> {
    let ([Datum::Oid(number), before @ .., last], [_, types @ .., tail]) = (args, types) else {
        return Err(bad_args(args));
    };
    let function = registry::function_by_oid(FunctionId::new(*number))
        .ok_or_else(|| SqlError::internal("a call of a function that is none"))?;
    let mut values = before.to_vec();
    let mut types = types.to_vec();
    match last {
        // No array is no arguments to format, and no answer of any other function.
        Datum::Null if function.name == "format" => {}
        Datum::Null => return Ok(Datum::Null),
        Datum::Array(array) => {
            let element = info::element_type(*tail).unwrap_or(SqlType::of(array.element));
            let skips = function.name == "jsonb_delete";
            for item in array.items.iter().filter(|item| !(skips && item.is_null())) {
                values.push(item.clone());
                types.push(element);
            }
        }
        _ => return Err(bad_args(args)),
    }
    if function.strict && values.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    match function.body {
        FunctionImpl::Pure(_) | FunctionImpl::Pair(_) => match function.call_pure(&values) {
            Some(result) => result,
            None => Err(bad_args(&values)),
        },
        FunctionImpl::Io(_) | FunctionImpl::DateTime(_) => match function.call_io(cx, &values) {
            Some(result) => result,
            None => Err(bad_args(&values)),
        },
        FunctionImpl::Typed(body) => body(cx, &types, &values),
        FunctionImpl::Run(_) => Err(SqlError::unsupported(
            "VARIADIC in a call of a function that is run apart",
        )),
        FunctionImpl::Random(_)
        | FunctionImpl::Session(_)
        | FunctionImpl::Sequence(_)
        | FunctionImpl::Action(_)
        | FunctionImpl::Catalog(_)
        | FunctionImpl::Server(_)
        | FunctionImpl::Context(_)
        | FunctionImpl::Transaction(_) => Err(SqlError::unsupported(
            "VARIADIC in a call that needs the session",
        )),
        FunctionImpl::Set(_)
        | FunctionImpl::ContextSet(_)
        | FunctionImpl::CatalogSet(_)
        | FunctionImpl::Series(_)
        | FunctionImpl::TypedSet(_) => {
            Err(SqlError::unsupported("VARIADIC in a call that gives rows"))
        }
    }
}
