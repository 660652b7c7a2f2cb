//! Reading conditions as what an index can answer: comparisons of targets with values that do not change during a scan.
//!
//! Invariant: a value has its target's type, and comparing with it means what the condition means; where no such value
//! can be made, the condition is left to the scan.

use super::bare;
use crate::planner::Planner;
use crate::query::ColId;
use crate::query::expr::Expr;
use crate::query::{plain_column, same_bytes};
use crate::walk;
use logstead_sql_catalog::Relation;
use logstead_sql_func as func;
use logstead_sql_func::{CastContext, Comparison};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, SqlType, info, oid};
use logstead_sql_types::{FunctionId, TypeId};

/// A condition as indexes see it; values have the target's type.
pub(super) enum Indexable {
    Compare(usize, Comparison, Expr),
    /// = ANY, with the number of values.
    Any(usize, Expr, f64),
    IsNull(usize),
    IsNotNull(usize),
    /// A comparison of rows: decided by the first pair that differs.
    Row(Comparison, Vec<(usize, Expr)>),
}

/// The FROM item that paths are looked for.
pub(super) struct Item<'t> {
    pub(super) table: &'t Relation,
    pub(super) first: ColId,
    /// Expressions of its indexes, without casts that change nothing.
    pub(super) expressions: Vec<Expr>,
}

impl Item<'_> {
    fn width(&self) -> usize {
        self.table.columns.len()
    }

    /// The target that an expression is.
    pub(super) fn target(&self, expr: &Expr) -> Option<usize> {
        if let Some(id) = plain_column(expr) {
            return id.checked_sub(self.first).filter(|p| *p < self.width());
        }
        let bare = bare(expr);
        let at = self.expressions.iter().position(|e| walk::same(e, bare));
        at.map(|at| self.width() + at)
    }

    fn ty(&self, target: usize) -> SqlType {
        let column = self.table.columns.get(target).map(|c| c.ty);
        let expression = || self.expressions.get(target - self.width()).map(Expr::ty);
        let ty = column.or_else(expression);
        ty.map_or(SqlType::of(oid::TEXT), |ty| SqlType::of(ty.oid))
    }

    /// Whether the target is never NULL.
    pub(super) fn never_null(&self, target: usize) -> bool {
        self.table.columns.get(target).is_some_and(|c| c.not_null)
    }

    /// Whether an expression may be an index key: it does not depend on the scanned row and has one value per scan.
    fn is_key(&self, expr: &Expr) -> bool {
        let mut ids = Vec::new();
        walk::column_ids(expr, &mut ids);
        let own = self.first..self.first + self.width();
        !ids.iter().any(|id| own.contains(id))
            && !walk::is_volatile(expr)
            && !walk::has_subquery(expr)
    }
}

impl Planner<'_> {
    /// Reads a condition as what an index on the item can answer.
    pub(super) fn indexable(
        &mut self,
        item: &Item<'_>,
        condition: &Expr,
        out: &mut Vec<Indexable>,
    ) -> Result<()> {
        let truth = |value: bool| Expr::Const(Datum::Bool(value), SqlType::of(oid::BOOL));
        if condition.ty().oid == oid::BOOL
            && let Some(target) = item.target(condition)
        {
            out.push(Indexable::Compare(target, Comparison::Eq, truth(true)));
        }
        match condition {
            Expr::Not(inner) => {
                if let Some(target) = item.target(inner) {
                    out.push(Indexable::Compare(target, Comparison::Eq, truth(false)));
                }
            }
            Expr::IsBool {
                arg,
                value: Some(value),
                negated: false,
            } => {
                if let Some(target) = item.target(arg) {
                    out.push(Indexable::Compare(target, Comparison::Eq, truth(*value)));
                }
            }
            Expr::IsNull(arg, negated) => {
                if let Some(target) = item.target(arg) {
                    out.push(if *negated {
                        Indexable::IsNotNull(target)
                    } else {
                        Indexable::IsNull(target)
                    });
                }
            }
            Expr::Call { .. } => {
                if let Some((target, comparison, key)) = self.comparison(item, condition)? {
                    out.push(Indexable::Compare(target, comparison, key));
                }
            }
            Expr::Or(_) => {
                let mut pairs = Vec::new();
                if let Some(comparison) = row_comparison(condition, &mut pairs) {
                    let mut keys = Vec::new();
                    for pair in pairs {
                        match self.pair(item, pair, comparison)? {
                            Some(key) => keys.push(Some(key)),
                            None => break,
                        }
                    }
                    // Pairs may stand either way round, but all alike.
                    let directions: Vec<Comparison> =
                        keys.iter().flatten().map(|(_, c, _)| *c).collect();
                    let alike = directions.windows(2).all(|w| w[0] == w[1]);
                    if let (Some(comparison), true) = (directions.first(), alike) {
                        let keys = keys.into_iter().flatten();
                        out.push(Indexable::Row(
                            *comparison,
                            keys.map(|(target, _, key)| (target, key)).collect(),
                        ));
                    }
                }
            }
            Expr::ArrayCompare {
                left,
                array,
                op,
                all: false,
            } if is_equality(op.oid) && item.is_key(array) => {
                let Some(target) = item.target(left) else {
                    return Ok(());
                };
                let Some(key) = array_key(array, item.ty(target).oid) else {
                    return Ok(());
                };
                let count = match &key {
                    Expr::Const(Datum::Array(value), _) => value.items.len() as f64,
                    _ => 10.0,
                };
                out.push(Indexable::Any(target, key, count));
            }
            Expr::InList {
                left,
                list,
                op,
                negated: false,
            } if is_equality(op.oid) && list.iter().all(|e| item.is_key(e)) => {
                let Some(target) = item.target(left) else {
                    return Ok(());
                };
                if let Some(key) = self.list_key(list, item.ty(target))? {
                    out.push(Indexable::Any(target, key, list.len() as f64));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A call that compares a target with a value of one per scan.
    fn comparison(
        &mut self,
        item: &Item<'_>,
        call: &Expr,
    ) -> Result<Option<(usize, Comparison, Expr)>> {
        let Expr::Call { function, args, .. } = call else {
            return Ok(None);
        };
        let [left, right] = args.as_slice() else {
            return Ok(None);
        };
        let Some((comparison, _, _)) = func::operator_class(function.oid) else {
            return Ok(None);
        };
        if comparison == Comparison::Ne {
            return Ok(None);
        }
        self.pair(item, (left, right), comparison)
    }

    fn pair(
        &mut self,
        item: &Item<'_>,
        (left, right): (&Expr, &Expr),
        comparison: Comparison,
    ) -> Result<Option<(usize, Comparison, Expr)>> {
        let (target, comparison, value) = match (item.target(left), item.target(right)) {
            (Some(target), None) => (target, comparison, right),
            (None, Some(target)) => (target, comparison.commuted(), left),
            _ => return Ok(None),
        };
        if !item.is_key(value) {
            return Ok(None);
        }
        let key = self.key_expr(value, item.ty(target), comparison)?;
        Ok(key.map(|key| (target, comparison, key)))
    }

    /// The values of an IN list as an array of the target's type.
    fn list_key(&mut self, list: &[Expr], ty: SqlType) -> Result<Option<Expr>> {
        let Some(array) = info::array_of(ty.oid) else {
            return Ok(None);
        };
        let mut keys = Vec::with_capacity(list.len());
        for value in list {
            match self.key_expr(value, ty, Comparison::Eq)? {
                Some(key) => keys.push(key),
                None => return Ok(None),
            }
        }
        if !keys.iter().all(|k| matches!(k, Expr::Const(..))) {
            return Ok(Some(Expr::Array(keys, SqlType::of(array))));
        }
        let items = keys.into_iter().map(|k| match k {
            Expr::Const(datum, _) => datum,
            _ => Datum::Null,
        });
        let value = Datum::array(ty.oid, items.collect());
        Ok(Some(Expr::Const(value, SqlType::of(array))))
    }

    /// `value` as an expression of exactly the column's type, if comparing with it means the same.
    fn key_expr(
        &mut self,
        value: &Expr,
        column: SqlType,
        comparison: Comparison,
    ) -> Result<Option<Expr>> {
        let from = value.ty().oid;
        if from == column.oid {
            return Ok(Some(value.clone()));
        }
        if same_bytes(from, column.oid) {
            return Ok(Some(match value {
                Expr::Const(datum, _) => Expr::Const(datum.clone(), column),
                other => Expr::Relabel(Box::new(other.clone()), column),
            }));
        }
        let (Some(from_width), Some(to_width)) = (int_width(from), int_width(column.oid)) else {
            return Ok(None);
        };
        if from_width < to_width {
            return self.cast(value.clone(), column, CastContext::Implicit);
        }
        if let Expr::Const(datum, _) = value {
            return Ok(narrow(datum, column.oid).map(|d| Expr::Const(d, column)));
        }
        if comparison != Comparison::Eq {
            return Ok(None);
        }
        // A value beyond the column's range equals no row: NULL, which matches nothing.
        let wide = SqlType::of(from);
        let bounds = match column.oid {
            oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        let bound = |n: i64| match from {
            oid::INT8 => Some(Expr::Const(Datum::Int8(n), wide)),
            _ => i32::try_from(n)
                .ok()
                .map(|n| Expr::Const(Datum::Int4(n), wide)),
        };
        let (Some(low), Some(high)) = (bound(bounds.0), bound(bounds.1)) else {
            return Ok(None);
        };
        let above = self.compare(">=", value.clone(), low)?;
        let below = self.compare("<=", value.clone(), high)?;
        let Some(cast) = self.cast(value.clone(), column, CastContext::Explicit)? else {
            return Ok(None);
        };
        Ok(Some(Expr::Case {
            arms: vec![(Expr::And(vec![above, below]), cast)],
            otherwise: None,
            ty: column,
        }))
    }
}

fn int_width(ty: TypeId) -> Option<u8> {
    match ty {
        oid::INT2 => Some(2),
        oid::INT4 => Some(4),
        oid::INT8 => Some(8),
        _ => None,
    }
}

fn narrow(datum: &Datum, ty: TypeId) -> Option<Datum> {
    let value = match datum {
        Datum::Null => return Some(Datum::Null),
        Datum::Int2(n) => i64::from(*n),
        Datum::Int4(n) => i64::from(*n),
        Datum::Int8(n) => *n,
        _ => return None,
    };
    match ty {
        oid::INT2 => i16::try_from(value).ok().map(Datum::Int2),
        oid::INT4 => i32::try_from(value).ok().map(Datum::Int4),
        oid::INT8 => Some(Datum::Int8(value)),
        _ => None,
    }
}

/// Elements that fit the column; those that do not equal no row and are left out.
fn narrow_items(items: &[Datum], ty: TypeId) -> Option<Vec<Datum>> {
    int_width(ty)?;
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Datum::Null | Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => {
                out.extend(narrow(item, ty))
            }
            _ => return None,
        }
    }
    Some(out)
}

fn is_equality(function: FunctionId) -> bool {
    matches!(func::operator_class(function), Some((Comparison::Eq, _, _)))
}

/// The array of `= ANY` as an array of the target's type, if comparing with that means the same.
fn array_key(array: &Expr, ty: TypeId) -> Option<Expr> {
    let wanted = info::array_of(ty)?;
    let from = array.ty();
    if from.oid == wanted {
        return Some(array.clone());
    }
    if same_bytes(info::element_of(from.oid).unwrap_or(oid::INVALID), ty) {
        return Some(Expr::Relabel(Box::new(array.clone()), SqlType::of(wanted)));
    }
    match array {
        Expr::Const(Datum::Array(value), _) => {
            let items = narrow_items(&value.items, ty)?;
            Some(Expr::Const(Datum::array(ty, items), SqlType::of(wanted)))
        }
        _ => None,
    }
}

/// The pairs of `(a, b) > (c, d)`, which is bound as `a > c OR (a = c AND b > d)`, and its comparison.
fn row_comparison<'e>(expr: &'e Expr, pairs: &mut Vec<(&'e Expr, &'e Expr)>) -> Option<Comparison> {
    let compared = |e: &'e Expr| match e {
        Expr::Call { function, args, .. } => match args.as_slice() {
            [left, right] => {
                func::operator_class(function.oid).map(|(comparison, ..)| (comparison, left, right))
            }
            _ => None,
        },
        _ => None,
    };
    let Expr::Or(arms) = expr else {
        let (comparison, left, right) = compared(expr)?;
        pairs.push((left, right));
        return Some(comparison);
    };
    let [before, Expr::And(rest)] = arms.as_slice() else {
        return None;
    };
    let [equal, rest] = rest.as_slice() else {
        return None;
    };
    let (strict, left, right) = compared(before)?;
    let (eq, l, r) = compared(equal)?;
    if eq != Comparison::Eq || !walk::same(left, l) || !walk::same(right, r) {
        return None;
    }
    pairs.push((left, right));
    let last = row_comparison(rest, pairs)?;
    let fits = match strict {
        Comparison::Gt => matches!(last, Comparison::Gt | Comparison::Ge),
        Comparison::Lt => matches!(last, Comparison::Lt | Comparison::Le),
        _ => false,
    };
    fits.then_some(last)
}
