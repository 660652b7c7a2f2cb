//! Evaluates bound expressions: three-valued logic, strict functions, short circuits, errors in PostgreSQL's order.

use super::context::{EvalContext, ExecutionState, ExecutorContext, VolatileResults};
use super::wait::WaitReason;
use super::wait::{EvalError, Evaluated};
use logstead_engine::Txn;
use logstead_sql_catalog::context::Context;
use logstead_sql_func::{
    self as func, AdvisoryLockFunction, AdvisoryLockScope, Function, FunctionImpl, ServerFunction,
    Volatility,
};
use logstead_sql_plan::distinct;
use logstead_sql_plan::expr::{DomainRules, Expr, Subquery};
use logstead_sql_plan::subscript;
use logstead_sql_plan::walk;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::value::array::stacked;
use logstead_sql_types::value::{
    Datum, OutputStyle, SqlType, build, compare, info, oid, record, text_io,
};
use logstead_types::SqlState;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Evaluates `expr` over `row` outside a statement: defaults, constraints checked by DDL, COPY. A subquery that reads a
/// table is refused.
pub fn eval(expr: &Expr, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
    let mut shared = ExecutionState::default();
    let mut cx = ExecutorContext::bare(cx, &mut shared);
    eval_in(expr, row, &mut cx).map_err(EvalError::unsuspended)
}

/// The value of an expression that reads no row, for the planner.
pub fn evaluate(expr: &Expr, session: &dyn Context) -> Result<Datum> {
    let cx = EvalContext {
        params: &[],
        session,
    };
    eval(expr, &[], &cx)
}

/// Whether a condition is true (neither false nor NULL).
pub(crate) fn holds<'a>(
    condition: &'a Expr,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<bool> {
    // Each of several must hold: what comes behind one that does not is not evaluated, be that false or unknown. Row
    // security relies on it.
    if let Expr::And(all) = condition {
        for one in all {
            if !holds(one, row, cx)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    Ok(eval_bool(condition, row, cx)? == Some(true))
}

/// A boolean expression's three-valued result.
fn eval_bool<'a>(
    expr: &'a Expr,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Option<bool>> {
    Ok(as_bool(&*operand(expr, row, cx)?)?)
}

/// A boolean datum's three-valued truth.
pub(crate) fn as_bool(datum: &Datum) -> Result<Option<bool>> {
    match datum {
        Datum::Bool(value) => Ok(Some(*value)),
        Datum::Null => Ok(None),
        _ => Err(SqlError::internal("a condition is not boolean")),
    }
}

/// Evaluates `expr` over `row`, leaving where it is what is there already: most operands are columns and constants, and
/// copying a value that holds memory costs more than many an operator.
pub(crate) fn operand<'a: 'r, 'r>(
    expr: &'a Expr,
    row: &'r [Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Cow<'r, Datum>> {
    match expr {
        Expr::Column(index, _) => match row.get(*index) {
            Some(datum) => Ok(Cow::Borrowed(datum)),
            None => Err(no_column(*index, row).into()),
        },
        Expr::Const(datum, _) => Ok(Cow::Borrowed(datum)),
        Expr::Param(index, _) => {
            let params: &'a [Datum] = cx.params;
            match params.get(*index) {
                Some(datum) => Ok(Cow::Borrowed(datum)),
                None => Err(no_param(*index).into()),
            }
        }
        Expr::Relabel(arg, _) => operand(arg, row, cx),
        Expr::Call { function, args, .. } => call(function, args, row, cx).map(Cow::Owned),
        _ => eval_rest(expr, row, cx).map(Cow::Owned),
    }
}

#[cold]
fn no_column(index: usize, row: &[Datum]) -> SqlError {
    SqlError::internal(format!("no column {index} in a row of {}", row.len()))
}

#[cold]
fn no_param(index: usize) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_PARAMETER,
        format!("there is no parameter ${}", index + 1),
    )
}

/// Evaluates `expr` over `row`.
pub(crate) fn eval_in<'a>(
    expr: &'a Expr,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    match expr {
        Expr::Column(index, _) => match row.get(*index) {
            Some(datum) => Ok(datum.clone()),
            None => Err(no_column(*index, row).into()),
        },
        Expr::Const(datum, _) => Ok(datum.clone()),
        Expr::Call { function, args, .. } => call(function, args, row, cx),
        _ => eval_rest(expr, row, cx),
    }
}

/// What is not among the commonest: apart, because it takes so much room on the stack.
#[inline(never)]
fn eval_rest<'a>(expr: &'a Expr, row: &[Datum], cx: &mut ExecutorContext<'a>) -> Evaluated<Datum> {
    match expr {
        Expr::Column(..) | Expr::Const(..) | Expr::Call { .. } => eval_in(expr, row, cx),
        Expr::Param(index, _) => match cx.params.get(*index) {
            Some(datum) => Ok(datum.clone()),
            None => Err(no_param(*index).into()),
        },
        Expr::Outer { level, index, .. } => {
            let outer = cx
                .outer
                .len()
                .checked_sub(*level)
                .and_then(|at| cx.outer.get(at));
            match outer.and_then(|row| row.get(*index)) {
                Some(datum) => Ok(datum.clone()),
                None => Err(SqlError::internal(format!(
                    "no column {index} in the outer row at level {level}"
                ))
                .into()),
            }
        }
        Expr::CastViaText(arg, ty) => {
            let datum = eval_in(arg, row, cx)?;
            Ok(cast_via_text(&datum, arg.ty(), *ty, cx)?)
        }
        Expr::CoerceTypmod { arg, ty, explicit } => {
            let datum = eval_in(arg, row, cx)?;
            if datum.is_null() {
                Ok(datum)
            } else {
                Ok(logstead_sql_types::value::typmod::coerce_typmod(
                    datum, *ty, *explicit,
                )?)
            }
        }
        Expr::Domain(arg, rules) => {
            let datum = eval_in(arg, row, cx)?;
            fulfils(rules, &datum, cx)?;
            Ok(datum)
        }
        Expr::Relabel(arg, _) => eval_in(arg, row, cx),
        Expr::And(items) => connective(items, false, row, cx),
        Expr::Or(items) => connective(items, true, row, cx),
        Expr::Not(arg) => Ok(truth(eval_bool(arg, row, cx)?.map(|value| !value))),
        Expr::IsNull(arg, negated) => Ok(Datum::Bool(operand(arg, row, cx)?.is_null() != *negated)),
        Expr::IsBool {
            arg,
            value,
            negated,
        } => Ok(Datum::Bool(
            (eval_bool(arg, row, cx)? == *value) != *negated,
        )),
        Expr::IsDistinct {
            left,
            right,
            negated,
        } => {
            let l = operand(left, row, cx)?;
            let r = operand(right, row, cx)?;
            Ok(Datum::Bool(distinct(left.ty().oid, &l, &r) != *negated))
        }
        Expr::Case {
            arms, otherwise, ..
        } => {
            for (condition, value) in arms {
                if holds(condition, row, cx)? {
                    return eval_in(value, row, cx);
                }
            }
            otherwise
                .as_ref()
                .map_or(Ok(Datum::Null), |value| eval_in(value, row, cx))
        }
        Expr::Coalesce(items, _) => {
            for item in items {
                let datum = eval_in(item, row, cx)?;
                if !datum.is_null() {
                    return Ok(datum);
                }
            }
            Ok(Datum::Null)
        }
        Expr::Extreme(greatest, items, ty) => {
            let mut best = Datum::Null;
            for item in items {
                let datum = eval_in(item, row, cx)?;
                if datum.is_null() {
                    continue;
                }
                let wanted = if *greatest {
                    Ordering::Greater
                } else {
                    Ordering::Less
                };
                if best.is_null() || compare::compare_as(ty.oid, &datum, &best) == wanted {
                    best = datum;
                }
            }
            Ok(best)
        }
        Expr::NullIf { left, equal, .. } => {
            let value = eval_in(left, row, cx)?;
            if !value.is_null() && holds(equal, row, cx)? {
                Ok(Datum::Null)
            } else {
                Ok(value)
            }
        }
        Expr::ArrayCompare {
            left,
            array,
            op,
            all,
        } => array_compare(left, array, op, *all, row, cx),
        Expr::InList {
            left,
            list,
            op,
            negated,
        } => in_list(left, list, op, *negated, row, cx),
        Expr::Array(items, ty) => array(items, *ty, row, cx),
        Expr::Subscript { array, index, .. } => {
            let (array, index) = (eval_in(array, row, cx)?, eval_in(index, row, cx)?);
            Ok(subscript(&array, &index))
        }
        Expr::Subquery(subquery) => eval_subquery(subquery, row, cx),
        Expr::SubLink(_) => Err(SqlError::internal("a subquery that was not planned").into()),
    }
}

/// What its state is kept by: its address, or the number that its copies share; no address is as small.
pub(crate) fn subquery_identity(subquery: &Arc<Subquery>) -> usize {
    match subquery.shared {
        0 => Arc::as_ptr(subquery) as usize,
        number => number,
    }
}

/// The value of `subquery` for `row`.
fn eval_subquery<'a>(
    subquery: &'a Arc<Subquery>,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    let id = subquery_identity(subquery);
    let mut state = match cx.shared.subqueries.remove(&id) {
        Some(state) => state,
        None => (cx.shared.new_subplan)(subquery),
    };
    let result = state.eval(subquery, row, cx);
    // After an error the statement is over: the state may be dropped. An evaluation that has to wait goes on with it.
    if !matches!(result, Err(EvalError::Sql(_))) {
        cx.shared.subqueries.insert(id, state);
    }
    result
}

/// 23502 or 23514 if a value is none of a domain's.
fn fulfils<'a>(
    rules: &'a DomainRules,
    value: &Datum,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    match (rules.each, value) {
        (false, value) => fulfils_one(rules, value, cx),
        (true, Datum::Array(array)) => {
            let mut items = array.items.iter();
            items.try_for_each(|item| fulfils_one(rules, item, cx))
        }
        (true, _) => Ok(()),
    }
}

fn fulfils_one<'a>(
    rules: &'a DomainRules,
    value: &Datum,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    if !rules.fields.is_empty() {
        let Datum::Array(row) = value else {
            return Ok(());
        };
        for (place, of_field) in &rules.fields {
            let field = row.items.get(*place).unwrap_or(&Datum::Null);
            fulfils(of_field, field, cx)?;
        }
        return Ok(());
    }
    if rules.not_null && value.is_null() {
        return Err(SqlError::new(
            SqlState::NOT_NULL_VIOLATION,
            format!("domain {} does not allow null values", rules.shown),
        )
        .data_type(&rules.schema, &rules.name)
        .into());
    }
    for (name, condition) in &rules.checks {
        if eval_bool(condition, std::slice::from_ref(value), cx)? == Some(false) {
            return Err(SqlError::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "value for domain {} violates check constraint \"{name}\"",
                    rules.shown
                ),
            )
            .data_type(&rules.schema, &rules.name)
            .constraint(name)
            .into());
        }
    }
    Ok(())
}

/// Calls a function on evaluated arguments, strictness included.
pub(crate) fn apply(
    function: &'static Function,
    args: &[Datum],
    cx: &ExecutorContext<'_>,
) -> Result<Datum> {
    if function.strict && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    match function.body {
        FunctionImpl::Pure(body) => func::call_charged(function, args, || body(args)),
        FunctionImpl::Pair(body) => match args {
            [a, b] => body(a, b),
            _ => Err(SqlError::internal("an operator without two operands")),
        },
        FunctionImpl::Typed(_) => Err(SqlError::internal(
            "a function without its arguments' types",
        )),
        // Where there is a transaction, `apply_to_transaction` has called it.
        FunctionImpl::Transaction(_) => Err(SqlError::unsupported(format!(
            "{}() in this place",
            function.name
        ))),
        FunctionImpl::Run(_) => Err(SqlError::unsupported(format!(
            "a call of {} in this place",
            function.name
        ))),
        FunctionImpl::Set(_)
        | FunctionImpl::ContextSet(_)
        | FunctionImpl::CatalogSet(_)
        | FunctionImpl::TypedSet(_)
        | FunctionImpl::Series(_) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "set-valued function called in context that cannot accept a set",
        )),
        FunctionImpl::DateTime(_)
        | FunctionImpl::Io(_)
        | FunctionImpl::Random(_)
        | FunctionImpl::Session(_)
        | FunctionImpl::Sequence(_)
        | FunctionImpl::Action(_)
        | FunctionImpl::Catalog(_)
        | FunctionImpl::Server(_)
        | FunctionImpl::Context(_) => match function.call_in(cx.session, args) {
            Some(value) => value,
            None => Err(SqlError::internal("a function that cannot be called")),
        },
    }
}

/// Calls an operator on operands that are evaluated, strictness included.
pub(crate) fn apply_pair(
    function: &'static Function,
    left: &Datum,
    right: &Datum,
    cx: &ExecutorContext<'_>,
) -> Result<Datum> {
    match function.body {
        FunctionImpl::Pair(_) if left.is_null() || right.is_null() => Ok(Datum::Null),
        FunctionImpl::Pair(body) => body(left, right),
        _ => apply(function, &[left.clone(), right.clone()], cx),
    }
}

/// Code that is told the types of its arguments.
pub(crate) type TypedBody =
    fn(&dyn logstead_sql_types::value::IoContext, &[SqlType], &[Datum]) -> Result<Datum>;

/// Calls such code on evaluated arguments, strictness included. None of it is volatile.
pub(crate) fn apply_typed(
    function: &'static Function,
    body: TypedBody,
    args: &[Expr],
    values: &[Datum],
    cx: &ExecutorContext<'_>,
) -> Result<Datum> {
    if function.strict && values.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let types: SmallVec<[SqlType; 4]> = args.iter().map(Expr::ty).collect();
    func::call_charged(function, values, || body(cx.session, &types, values))
}

/// Code that is given the running transaction.
pub(crate) type TransactionBody = fn(&dyn logstead_sql_func::Snapshots, &mut Txn) -> Result<Datum>;

/// Calls such code.
pub(crate) fn apply_to_transaction(
    function: &'static Function,
    body: TransactionBody,
    cx: &mut ExecutorContext<'_>,
) -> Result<Datum> {
    let session = cx.session;
    if cx.evaluation != 0 && function.volatility == Volatility::Volatile {
        return VolatileResults::value(cx, |cx| body(session.snapshots()?, cx.txn()?));
    }
    body(session.snapshots()?, cx.txn()?)
}

/// The same in an expression that may be evaluated again.
fn apply_once(
    function: &'static Function,
    args: &[Datum],
    cx: &mut ExecutorContext<'_>,
) -> Evaluated<Datum> {
    if cx.evaluation != 0 && function.volatility == Volatility::Volatile {
        return VolatileResults::value(cx, |cx| match function.body {
            FunctionImpl::Server(ServerFunction::Advisory(AdvisoryLockFunction::Lock(scope))) => {
                advisory_lock(function, scope, args, cx)
            }
            _ => Ok(apply(function, args, cx)?),
        });
    }
    Ok(apply(function, args, cx)?)
}

/// Takes an advisory lock, or gives the evaluation up until it is free.
fn advisory_lock(
    function: &'static Function,
    scope: AdvisoryLockScope,
    args: &[Datum],
    cx: &mut ExecutorContext<'_>,
) -> Evaluated<Datum> {
    if cx.storage.is_none() || args.iter().any(Datum::is_null) {
        return Ok(apply(function, args, cx)?);
    }
    let locks = cx.session.advisory_locking()?;
    let taken = locks.ask_advisory_lock(scope, args)?;
    taken.map_err(|wanted| EvalError::Suspend(Box::new(WaitReason::Advisory(wanted))))
}

#[inline]
fn call<'a>(
    function: &'static Function,
    args: &'a [Expr],
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    if let (FunctionImpl::Pair(body), [left, right]) = (function.body, args) {
        let left = operand(left, row, cx)?;
        let right = operand(right, row, cx)?;
        // Nothing of this kind is volatile, or not strict.
        return match left.is_null() || right.is_null() {
            true => Ok(Datum::Null),
            false => Ok(body(&left, &right)?),
        };
    }
    call_with(function, args, row, cx)
}

/// The same of code that takes its arguments side by side, as values of its own.
#[inline(never)]
fn call_with<'a>(
    function: &'static Function,
    args: &'a [Expr],
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    if let FunctionImpl::Typed(body) = function.body {
        let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(args.len());
        for arg in args {
            values.push(eval_in(arg, row, cx)?);
        }
        return Ok(apply_typed(function, body, args, &values, cx)?);
    }
    match args {
        [] => match function.body {
            FunctionImpl::Transaction(body) if cx.storage.is_some() => {
                Ok(apply_to_transaction(function, body, cx)?)
            }
            _ => apply_once(function, &[], cx),
        },
        [only] => {
            let only = [eval_in(only, row, cx)?];
            apply_once(function, &only, cx)
        }
        [left, right] => {
            let both = [eval_in(left, row, cx)?, eval_in(right, row, cx)?];
            apply_once(function, &both, cx)
        }
        more => {
            let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(more.len());
            for arg in more {
                values.push(eval_in(arg, row, cx)?);
            }
            apply_once(function, &values, cx)
        }
    }
}

/// AND (`decisive` false) or OR (`decisive` true): the decisive value ends it, NULL is remembered.
fn connective<'a>(
    items: &'a [Expr],
    decisive: bool,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    let mut unknown = false;
    for item in items {
        match eval_bool(item, row, cx)? {
            Some(value) if value == decisive => return Ok(Datum::Bool(decisive)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown {
        Datum::Null
    } else {
        Datum::Bool(!decisive)
    })
}

/// A three-valued truth as a datum.
pub(crate) fn truth(value: Option<bool>) -> Datum {
    value.map_or(Datum::Null, Datum::Bool)
}

fn cast_via_text(
    datum: &Datum,
    from: SqlType,
    to: SqlType,
    cx: &ExecutorContext<'_>,
) -> Result<Datum> {
    if datum.is_null() {
        return Ok(Datum::Null);
    }
    if let Datum::Text(text) = datum {
        return build::charge_value(text_io::input(to, text, Some(cx.session))?);
    }
    // A vector is read as the array that it is: its own text is another.
    let from = match (from.oid, datum) {
        (oid::INT2VECTOR, Datum::Array(_)) if info::element_of(to.oid).is_some() => {
            SqlType::of(oid::INT2_ARRAY)
        }
        (oid::OIDVECTOR, Datum::Array(_)) if info::element_of(to.oid).is_some() => {
            SqlType::of(oid::OID_ARRAY)
        }
        _ => from,
    };
    // Arrays go element by element, each by the cast of its type: blanks of char(n) are none of text's.
    if let Datum::Array(array) = datum
        && let Some(element) = info::element_of(to.oid)
        && !matches!(to.oid, oid::INT2VECTOR | oid::OIDVECTOR)
        && func::find_cast(array.element, element, func::CastContext::Explicit).is_some()
    {
        if build::is_large(datum) {
            check_for_interrupts()?;
        }
        let cast = func::Cast::ViaText;
        return build::charge_value(func::apply_cast(
            cast,
            datum,
            from,
            to,
            true,
            Some(cx.session),
        )?);
    }
    let text = text_of(datum, from, cx.session)?;
    build::charge_value(text_io::input(to, &text, Some(cx.session))?)
}

/// A value as its type prints it in this session.
pub(crate) fn text_of(
    datum: &Datum,
    ty: SqlType,
    session: &dyn logstead_sql_catalog::context::Context,
) -> Result<String> {
    if build::is_large(datum) {
        check_for_interrupts()?;
    }
    // Most types print alike in every session: no settings need be asked.
    let style = match datum {
        Datum::Text(_)
        | Datum::Bool(_)
        | Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Numeric(_)
        | Datum::Uuid(_)
        | Datum::Date(_)
        | Datum::Time(_)
        | Datum::Timestamp(_)
        | Datum::Jsonb(_) => OutputStyle::UTC,
        _ => OutputStyle::of(session),
    };
    text_io::to_text(datum, ty, &style)
}

fn array_compare<'a>(
    left: &'a Expr,
    array: &'a Expr,
    op: &'static Function,
    all: bool,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    let left = operand(left, row, cx)?;
    let array = operand(array, row, cx)?;
    let array = match &*array {
        Datum::Array(array) => array,
        Datum::Null => return Ok(Datum::Null),
        _ => {
            return Err(SqlError::internal("ANY/ALL over something that is no array").into());
        }
    };
    let mut unknown = false;
    for item in &array.items {
        match as_bool(&apply_pair(op, &left, item, cx)?)? {
            Some(value) if value != all => return Ok(Datum::Bool(!all)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown {
        Datum::Null
    } else {
        Datum::Bool(all)
    })
}

fn in_list<'a>(
    left: &'a Expr,
    list: &'a [Expr],
    op: &'static Function,
    negated: bool,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    let mut unknown = false;
    let left = operand(left, row, cx)?;
    for item in list {
        let item = operand(item, row, cx)?;
        match as_bool(&apply_pair(op, &left, &item, cx)?)? {
            Some(true) => return Ok(Datum::Bool(!negated)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown {
        Datum::Null
    } else {
        Datum::Bool(negated)
    })
}

fn array<'a>(
    items: &'a [Expr],
    ty: SqlType,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Datum> {
    if record::is_record(ty.oid) {
        let mut fields = Vec::with_capacity(items.len());
        for item in items {
            fields.push(eval_in(item, row, cx)?);
        }
        return Ok(build::bounded(record::record(fields))?);
    }
    let element = info::element_of(ty.oid)
        .ok_or_else(|| SqlError::internal("ARRAY[] of a type without arrays"))?;
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(eval_in(item, row, cx)?);
    }
    // Arrays in an array are the parts of its first dimension.
    match items.iter().any(|item| item.ty().oid == ty.oid) {
        true => Ok(build::charge_value(Datum::Array(Arc::new(stacked(
            element, &values,
        )?)))?),
        false => Ok(build::bounded(Datum::array(element, values))?),
    }
}

/// Marks in `used` the input columns that `expr` reads; false if it may read any (it has a subquery).
pub fn columns_read(expr: &Expr, used: &mut Vec<usize>) -> bool {
    match expr {
        Expr::Subquery(_) | Expr::SubLink(_) => return false,
        Expr::Column(index, _) if !used.contains(index) => used.push(*index),
        _ => {}
    }
    let mut all = true;
    walk::children(expr, &mut |child| all = all && columns_read(child, used));
    all
}
