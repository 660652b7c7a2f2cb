//! Constant folding (PostgreSQL's `eval_const_expressions`).
//!
//! Binding computes calls whose arguments are constants. What is left is what follows from that: an arm of CASE whose
//! condition is a constant, an AND with a constant that decides, an argument of COALESCE behind one that is no NULL.
//! What folding leaves out is not evaluated, and not even looked at for errors; what stands before it is. So the order
//! is PostgreSQL's: operands from the left, up to one that decides.
//!
//! Subqueries are left as they are, and so is what needs a session.

use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_func::{Function, FunctionImpl, Volatility};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, compare, info, oid, record, text_io};
use logstead_types::SqlState;
use std::cmp::Ordering;

/// Folds conditions that all have to hold. One that cannot hold is what is left of them. False if computing a constant
/// fails: then they stay.
pub(crate) fn conditions(all: &mut Vec<Expr>) -> bool {
    for at in 0..all.len() {
        let Some(condition) = all.get_mut(at) else {
            break;
        };
        if fold(condition).is_err() {
            return false;
        }
        if is_never(condition) {
            all.swap(0, at);
            all.truncate(1);
            break;
        }
    }
    true
}

/// Folds an expression as far as it goes without an error; the run or [`crate::failing`] tells of that.
pub(crate) fn whole(expr: &mut Expr) {
    // What is behind the error stays as it is.
    let _ = fold(expr);
}

/// Is it a constant condition that does not hold?
pub(crate) fn is_never(condition: &Expr) -> bool {
    matches!(condition, Expr::Const(Datum::Bool(false) | Datum::Null, _))
}

/// Folds an expression in place. The error of a constant that cannot be computed, if it is one that PostgreSQL meets
/// when it plans.
pub(crate) fn fold(expr: &mut Expr) -> Result<()> {
    let folded = match &mut *expr {
        Expr::Const(..)
        | Expr::Column(..)
        | Expr::Outer { .. }
        | Expr::Param(..)
        | Expr::Subquery(_)
        | Expr::SubLink(_) => None,
        Expr::And(items) => connective(items, false)?,
        Expr::Or(items) => connective(items, true)?,
        Expr::Coalesce(items, ty) => coalesce(items, *ty)?,
        Expr::Case {
            arms,
            otherwise,
            ty,
        } => case(arms, otherwise, *ty)?,
        other => {
            let mut result = Ok(());
            walk::children_mut(other, &mut |child| {
                if result.is_ok() {
                    result = fold(child);
                }
            });
            result?;
            simple(other)?
        }
    };
    if let Some(folded) = folded {
        *expr = folded;
    }
    Ok(())
}

/// What an expression comes to whose operands are folded.
fn simple(expr: &Expr) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::Call { function, args, ty } => {
            call(function, args)?.map(|value| Expr::Const(value, *ty))
        }
        Expr::Relabel(arg, ty) => datum(arg).map(|value| Expr::Const(value.clone(), *ty)),
        Expr::CastViaText(arg, ty) => match datum(arg) {
            Some(Datum::Null) => Some(Expr::Const(Datum::Null, *ty)),
            Some(value) => as_text(value, arg.ty(), *ty)?,
            _ => None,
        },
        Expr::CoerceTypmod { arg, ty, .. } => match datum(arg) {
            Some(Datum::Null) => Some(Expr::Const(Datum::Null, *ty)),
            _ => None,
        },
        Expr::Not(arg) => match datum(arg) {
            Some(Datum::Bool(value)) => Some(truth(Some(!value))),
            Some(Datum::Null) => Some(truth(None)),
            _ => None,
        },
        Expr::IsNull(arg, negated) => datum(arg).map(|v| truth(Some(v.is_null() != *negated))),
        Expr::IsBool {
            arg,
            value,
            negated,
        } => match datum(arg) {
            Some(Datum::Bool(found)) => Some(truth(Some((Some(*found) == *value) != *negated))),
            Some(Datum::Null) => Some(truth(Some(value.is_none() != *negated))),
            _ => None,
        },
        Expr::IsDistinct {
            left,
            right,
            negated,
        } => match (datum(left), datum(right)) {
            (Some(l), Some(r)) => {
                let is_distinct = crate::distinct(left.ty().oid, l, r);
                Some(truth(Some(is_distinct != *negated)))
            }
            _ => None,
        },
        Expr::Extreme(greatest, items, ty) => {
            extreme(*greatest, items, *ty).map(|value| Expr::Const(value, *ty))
        }
        Expr::NullIf { left, equal, ty } => match (datum(left), datum(equal)) {
            (Some(Datum::Null), _) | (Some(_), Some(Datum::Bool(true))) => {
                Some(Expr::Const(Datum::Null, *ty))
            }
            (Some(value), Some(_)) => Some(Expr::Const(value.clone(), *ty)),
            _ => None,
        },
        Expr::InList {
            left,
            list,
            op,
            negated,
        } => match (datum(left), data(list)) {
            (Some(left), Some(list)) => {
                let found = any(op, left, list.into_iter(), false)?;
                found.map(|found| truth(found.map(|found| found != *negated)))
            }
            _ => None,
        },
        Expr::ArrayCompare {
            left,
            array,
            op,
            all,
        } => match (datum(left), datum(array)) {
            (Some(left), Some(Datum::Array(array))) => {
                any(op, left, array.items.iter(), *all)?.map(truth)
            }
            (Some(_), Some(Datum::Null)) => Some(truth(None)),
            _ => None,
        },
        Expr::Array(items, ty) => match (data(items), info::element_of(ty.oid)) {
            (Some(fields), _) if record::is_record(ty.oid) => {
                let fields = fields.into_iter().cloned().collect();
                Some(Expr::Const(record::record(fields), *ty))
            }
            (Some(values), Some(element)) if !items.iter().any(|i| i.ty().oid == ty.oid) => {
                let values = values.into_iter().cloned().collect();
                Some(Expr::Const(Datum::array(element, values), *ty))
            }
            _ => None,
        },
        Expr::Subscript { array, index, ty } => match (datum(array), datum(index)) {
            (Some(array), Some(index)) => Some(Expr::Const(crate::subscript(array, index), *ty)),
            _ => None,
        },
        _ => None,
    })
}

/// A value as text, where that is the same in every session.
fn as_text(value: &Datum, from: SqlType, to: SqlType) -> Result<Option<Expr>> {
    let same = matches!(
        from.oid,
        oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC | oid::OID | oid::UUID
    );
    if !same || !matches!(to.oid, oid::TEXT | oid::VARCHAR) {
        return Ok(None);
    }
    let text = text_io::to_text(
        value,
        from,
        &logstead_sql_catalog::without_session::OUTPUT_STYLE,
    )?;
    Ok(Some(Expr::Const(Datum::text(text), to)))
}

/// A call of constants, if it depends on nothing else. A strict function of NULL is NULL whatever its other arguments
/// are.
fn call(function: &'static Function, args: &[Expr]) -> Result<Option<Datum>> {
    let is_null = |arg: &Expr| matches!(arg, Expr::Const(Datum::Null, _));
    if function.strict && !function.is_set() && args.iter().any(is_null) {
        return Ok(Some(Datum::Null));
    }
    if function.volatility != Volatility::Immutable
        || !matches!(function.body, FunctionImpl::Pure(_) | FunctionImpl::Pair(_))
    {
        return Ok(None);
    }
    let Some(args) = data(args) else {
        return Ok(None);
    };
    let args: Vec<Datum> = args.into_iter().cloned().collect();
    function.call_pure(&args).transpose()
}

/// AND (`decisive` false) or OR of `items`: none behind a constant that decides is looked at.
fn connective(items: &mut Vec<Expr>, decisive: bool) -> Result<Option<Expr>> {
    let (mut any_constant, mut unknown, mut open) = (false, false, false);
    for item in items.iter_mut() {
        forgiven(fold(item), open)?;
        match item {
            Expr::Const(Datum::Bool(value), _) if *value == decisive => {
                return Ok(Some(truth(Some(decisive))));
            }
            Expr::Const(value, _) => {
                any_constant = true;
                unknown |= value.is_null();
            }
            item => open |= is_open(item),
        }
    }
    if !any_constant {
        return Ok(None);
    }
    items.retain(|item| !matches!(item, Expr::Const(..)));
    if items.is_empty() {
        return Ok(Some(truth((!unknown).then_some(!decisive))));
    }
    if unknown {
        items.push(truth(None));
    }
    Ok(match items.len() {
        1 => items.pop(),
        _ => None,
    })
}

/// COALESCE: constants that are NULL give way, and nothing behind another one is looked at.
fn coalesce(items: &mut Vec<Expr>, ty: SqlType) -> Result<Option<Expr>> {
    let mut open = false;
    let mut end = items.len();
    for (at, item) in items.iter_mut().enumerate() {
        forgiven(fold(item), open)?;
        open |= is_open(item);
        if matches!(item, Expr::Const(value, _) if !value.is_null()) {
            end = at + 1;
            break;
        }
    }
    items.truncate(end);
    items.retain(|item| !matches!(item, Expr::Const(Datum::Null, _)));
    Ok(match items.as_slice() {
        [] => Some(Expr::Const(Datum::Null, ty)),
        [Expr::Const(value, _)] => Some(Expr::Const(value.clone(), ty)),
        _ => None,
    })
}

/// CASE: arms that are never taken are not looked at, nor what is behind one that always is.
fn case(
    arms: &mut Vec<(Expr, Expr)>,
    otherwise: &mut Option<Box<Expr>>,
    ty: SqlType,
) -> Result<Option<Expr>> {
    let mut open = false;
    let mut always = None;
    for (at, (when, then)) in arms.iter_mut().enumerate() {
        forgiven(fold(when), open)?;
        if is_never(when) {
            continue;
        }
        open |= is_open(when);
        forgiven(fold(then), open)?;
        if matches!(when, Expr::Const(Datum::Bool(true), _)) {
            always = Some(at);
            break;
        }
    }
    if let Some(at) = always {
        let taken = arms.drain(at..).next().map(|(_, then)| Box::new(then));
        *otherwise = taken;
    } else if let Some(otherwise) = otherwise {
        forgiven(fold(otherwise), open)?;
    }
    arms.retain(|(when, _)| !is_never(when));
    if !arms.is_empty() {
        return Ok(None);
    }
    Ok(Some(match otherwise.take() {
        None => Expr::Const(Datum::Null, ty),
        Some(taken) => match *taken {
            Expr::Const(value, _) => Expr::Const(value, ty),
            // The type is CASE's, which may have no modifier where its arm has one.
            taken if taken.ty() == ty => taken,
            taken => Expr::Relabel(Box::new(taken), ty),
        },
    }))
}

/// Does it depend on parameters and calls of functions alone, which the session runs? PostgreSQL knows their values
/// when it plans, and so what it has to look at.
fn is_open(expr: &Expr) -> bool {
    let is_call = |e: &Expr| match e {
        Expr::Subquery(subquery) => subquery.call && !walk::is_volatile(e),
        Expr::SubLink(link) => link.call && !walk::is_volatile(e),
        _ => false,
    };
    let asks = |e: &Expr| matches!(e, Expr::Param(..)) || is_call(e);
    let varies = |e: &Expr| match e {
        Expr::Column(..) | Expr::Outer { .. } => true,
        Expr::Subquery(subquery) if is_call(e) => {
            let mut of_row = false;
            let is_column = |e: &Expr| matches!(e, Expr::Column(..) | Expr::Outer { .. });
            walk::plan_exprs(&subquery.plan, 0, &mut |e, _| {
                of_row |= walk::any(e, &is_column)
            });
            of_row
        }
        Expr::SubLink(link) if is_call(e) => {
            let mut of_row = false;
            let is_column = |e: &Expr| matches!(e, Expr::Column(..) | Expr::Outer { .. });
            link.exprs(&mut |e| of_row |= walk::any(e, &is_column));
            of_row
        }
        Expr::Subquery(_) | Expr::SubLink(_) => true,
        _ => false,
    };
    walk::any(expr, &asks) && !walk::any(expr, &varies)
}

/// What is behind something that parameters decide may never be looked at.
fn forgiven(result: Result<()>, open: bool) -> Result<()> {
    if open { Ok(()) } else { result }
}

/// Whether `op` holds of `left` and any item, or of all (`all`): none if that takes more than its operands to tell.
fn any<'d>(
    op: &'static Function,
    left: &Datum,
    items: impl Iterator<Item = &'d Datum>,
    all: bool,
) -> Result<Option<Option<bool>>> {
    if op.volatility != Volatility::Immutable {
        return Ok(None);
    }
    let mut unknown = false;
    for item in items {
        if op.strict && (left.is_null() || item.is_null()) {
            unknown = true;
            continue;
        }
        let Some(result) = op.call_pure(&[left.clone(), item.clone()]) else {
            return Ok(None);
        };
        match result? {
            Datum::Bool(value) if value != all => return Ok(Some(Some(!all))),
            Datum::Bool(_) => {}
            Datum::Null => unknown = true,
            _ => return Err(SqlError::internal("a comparison that is no condition")),
        }
    }
    Ok(Some((!unknown).then_some(all)))
}

fn extreme(greatest: bool, items: &[Expr], ty: SqlType) -> Option<Datum> {
    let wanted = match greatest {
        true => Ordering::Greater,
        false => Ordering::Less,
    };
    let mut best = &Datum::Null;
    for value in data(items)? {
        let better = || best.is_null() || compare::compare_as(ty.oid, value, best) == wanted;
        if !value.is_null() && better() {
            best = value;
        }
    }
    Some(best.clone())
}

fn truth(value: Option<bool>) -> Expr {
    let value = value.map_or(Datum::Null, Datum::Bool);
    Expr::Const(value, SqlType::of(oid::BOOL))
}

fn datum(expr: &Expr) -> Option<&Datum> {
    match expr {
        Expr::Const(value, _) => Some(value),
        _ => None,
    }
}

fn data(exprs: &[Expr]) -> Option<Vec<&Datum>> {
    exprs.iter().map(datum).collect()
}

/// A call, evaluated now when it can be.
pub(crate) fn folded_call(
    function: &'static Function,
    args: Vec<Expr>,
    ty: SqlType,
) -> Result<Expr> {
    if function.volatility == Volatility::Immutable
        && matches!(function.body, FunctionImpl::Pure(_) | FunctionImpl::Pair(_))
        && args.iter().all(|a| matches!(a, Expr::Const(..)))
    {
        let values: Vec<Datum> = args
            .iter()
            .map(|a| match a {
                Expr::Const(datum, _) => datum.clone(),
                _ => Datum::Null,
            })
            .collect();
        if function.strict && values.iter().any(|v| matches!(v, Datum::Null)) {
            return Ok(Expr::Const(Datum::Null, ty));
        }
        match function.call_pure(&values) {
            Some(Ok(value)) => return Ok(Expr::Const(value, ty)),
            // Whoever ends the statement means all of it.
            Some(Err(error)) if ends_statement(&error) => return Err(error),
            // Any other error is left to the run, which may never come to it (CASE).
            _ => {}
        }
    }
    Ok(Expr::Call { function, args, ty })
}

/// Whether an error ends the statement wherever it is: its cancelling or time limit, or the end of the session.
fn ends_statement(error: &SqlError) -> bool {
    matches!(
        error.code(),
        SqlState::QUERY_CANCELED | SqlState::ADMIN_SHUTDOWN
    )
}
