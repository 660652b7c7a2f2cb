//! Index paths: which conditions and which order an index answers.
//!
//! A *target* is something an index can have as a key: a column of the FROM item (numbered by its position) or an expression
//! of one of its indexes (numbered from the table's width on). Conditions are read once, as comparisons of targets; then each
//! index takes those of its key columns: equalities from the first column on, then a range on the next.
//!
//! Invariant: an index is used only if it has an entry for every row that the conditions let through. A partial one is used
//! only if they imply its predicate ([`implies`](super::implies)).

use super::estimate::{self, selectivity};
use super::scan::{Wish, plain_column, same_bytes};
use super::{Edge, KeyRange, Probe, implies, walk};
use crate::bind::{Binder, ColId, Source};
use crate::catalog::{IndexDef, IndexKey, Relation, index_keys};
use crate::error::Result;
use crate::expr::Expr;
use crate::func::{self, CastContext, Comparison};
use crate::value::{Datum, SqlType, info, oid};
use std::sync::Arc;

/// Lookups that lists of values on several columns may multiply to.
const LOOKUPS_MAX: f64 = 4_096.0;

/// A condition as indexes see it; values have the target's type.
enum Indexable {
    Compare(usize, Comparison, Expr),
    /// = ANY, with the number of values.
    Any(usize, Expr, f64),
    IsNull(usize),
    IsNotNull(usize),
    /// A comparison of rows: decided by the first pair that differs.
    Row(Comparison, Vec<(usize, Expr)>),
}

/// An index that may be used.
struct Path {
    index: Arc<IndexDef>,
    /// One per key column.
    targets: Vec<usize>,
    predicate: Vec<Expr>,
}

/// The FROM item that paths are looked for.
struct Item<'t> {
    table: &'t Relation,
    first: ColId,
    /// Expressions of its indexes, without casts that change nothing.
    expressions: Vec<Expr>,
}

/// One way to read a table through an index.
pub(super) struct Candidate {
    pub(super) index: Arc<IndexDef>,
    pub(super) range: KeyRange,
    /// Conditions that hold for every row the scan gives.
    pub(super) answered: Vec<usize>,
    pub(super) rows: f64,
    pub(super) cost: f64,
    pub(super) ordered: bool,
    pub(super) reverse: bool,
    /// Key columns that equal one value.
    pub(super) equal_columns: usize,
}

/// What a session allows.
#[derive(Clone, Copy)]
struct Allowed {
    seq_scan: bool,
    index_scan: bool,
}

impl Item<'_> {
    fn width(&self) -> usize {
        self.table.columns.len()
    }

    /// The target that an expression is.
    fn target(&self, expr: &Expr) -> Option<usize> {
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
    fn never_null(&self, target: usize) -> bool {
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

/// An expression without casts that change neither bytes nor order.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Relabel(inner, ty) if same_bytes(inner.ty().oid, ty.oid) => bare(inner),
        other => other,
    }
}

/// An expression over positions of a row becomes one over column identities.
fn at_columns(expr: &mut Expr, first: ColId) {
    if let Expr::Column(position, _) = expr {
        *position += first;
    }
    walk::children_mut(expr, &mut |e| at_columns(e, first));
}

/// The conditions that AND joins.
pub(super) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(all) => all.into_iter().for_each(|e| conjuncts(e, out)),
        other => out.push(other),
    }
}

impl Binder<'_> {
    fn allowed(&self) -> Allowed {
        let on = |name: &str| self.cx.session.setting(name).as_deref() != Some("off");
        Allowed {
            seq_scan: on("enable_seqscan"),
            index_scan: on("enable_indexscan"),
        }
    }

    /// Whether an index answers equalities on some of the item's columns: rows per lookup and its cost. For join planning.
    pub(crate) fn index_lookup(
        &mut self,
        rel: usize,
        conditions: &[Expr],
    ) -> Result<Option<(f64, f64)>> {
        let Source::Table(table) = &self.rels[rel].source else {
            return Ok(None);
        };
        let table = table.clone();
        let rows = (self.cx.rows_of)(&table).max(estimate::ROWS_MIN);
        let best = self.best_index(rel, &table, conditions, &Wish::default(), rows)?;
        Ok(best
            .filter(|c| c.equal_columns > 0)
            .map(|c| (c.rows, c.cost)))
    }

    /// The indexes that hold every row wanted, and their expressions.
    fn paths<'t>(
        &self,
        table: &'t Relation,
        first: ColId,
        conditions: &[Expr],
    ) -> Result<(Vec<Path>, Item<'t>)> {
        let mut item = Item {
            table,
            first,
            expressions: Vec::new(),
        };
        let mut paths = Vec::with_capacity(table.indexes.len());
        for index in &table.indexes {
            if let (true, Some(targets)) = (index.is_plain(), index.positions()) {
                paths.push(Path {
                    index: index.clone(),
                    targets,
                    predicate: Vec::new(),
                });
                continue;
            }
            let bound = index_keys::bind(table, index, self.cx)?;
            let mut predicate = Vec::new();
            if let Some(mut condition) = bound.predicate {
                at_columns(&mut condition, first);
                conjuncts(condition, &mut predicate);
                if !implies::all(conditions, &predicate) {
                    continue;
                }
            }
            let mut targets = Vec::with_capacity(bound.keys.len());
            for (mut key, column) in bound.keys.into_iter().zip(&index.columns) {
                if let IndexKey::Column(position) = column.key {
                    targets.push(position);
                    continue;
                }
                at_columns(&mut key, first);
                let key = bare(&key).clone();
                let known = item.expressions.iter().position(|e| walk::same(e, &key));
                let at = known.unwrap_or_else(|| {
                    item.expressions.push(key);
                    item.expressions.len() - 1
                });
                targets.push(table.columns.len() + at);
            }
            paths.push(Path {
                index: index.clone(),
                targets,
                predicate,
            });
        }
        Ok((paths, item))
    }

    pub(super) fn best_index(
        &mut self,
        rel: usize,
        table: &Arc<Relation>,
        conditions: &[Expr],
        wish: &Wish,
        rows: f64,
    ) -> Result<Option<Candidate>> {
        if table.indexes.is_empty() {
            return Ok(None);
        }
        let allowed = self.allowed();
        if !allowed.index_scan && allowed.seq_scan {
            return Ok(None);
        }
        let first = self.rels[rel].first;
        let (paths, item) = self.paths(table, first, conditions)?;
        let mut usable = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let mut found = Vec::new();
            self.indexable(&item, condition, &mut found)?;
            usable.push(found);
        }
        let share: f64 = conditions.iter().map(|c| selectivity(c, rows)).product();
        let total = (rows * share).max(1.0);
        let limited = |cost: f64, produced: f64| match wish.limit {
            Some(limit) if limit < produced => cost * (limit / produced.max(1.0)),
            _ => cost,
        };
        let seq = {
            let scan = estimate::seq_scan(rows);
            if wish.order.is_empty() {
                limited(scan, total)
            } else {
                scan + estimate::sort(total)
            }
        };
        let mut best: Option<Candidate> = None;
        let mut best_cost = if allowed.seq_scan { seq } else { f64::INFINITY };
        for path in &paths {
            let mut candidate = match_path(path, &item, conditions, &usable, rows);
            let order = order_of(path, &item, &candidate.range, wish);
            candidate.ordered = order.is_some();
            candidate.reverse = order.unwrap_or(false);
            let useful = !candidate.answered.is_empty()
                || !candidate.range.is_whole()
                || candidate.ordered
                || path.index.predicate.is_some();
            if !useful && allowed.seq_scan {
                continue;
            }
            let cost = if wish.order.is_empty() || candidate.ordered {
                limited(candidate.cost, total)
            } else {
                candidate.cost + estimate::sort(total)
            };
            // An index that answers an equality beats reading everything whatever the table's size is today: the plan is
            // kept while the table grows.
            let equality = !candidate.range.equal.is_empty();
            let better = cost < best_cost || (best.is_none() && equality);
            if better {
                best_cost = cost;
                best = Some(candidate);
            }
        }
        Ok(best)
    }

    /// Reads a condition as what an index on the item can answer.
    fn indexable(
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
            return self.try_coerce(value.clone(), column, CastContext::Implicit, None);
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
        let above = self.operator(">=", value.clone(), low, None)?;
        let below = self.operator("<=", value.clone(), high, None)?;
        let Some(cast) = self.try_coerce(value.clone(), column, CastContext::Explicit, None)?
        else {
            return Ok(None);
        };
        Ok(Some(Expr::Case {
            arms: vec![(Expr::And(vec![above, below]), cast)],
            otherwise: None,
            ty: column,
        }))
    }
}

fn int_width(ty: u32) -> Option<u8> {
    match ty {
        oid::INT2 => Some(2),
        oid::INT4 => Some(4),
        oid::INT8 => Some(8),
        _ => None,
    }
}

fn narrow(datum: &Datum, ty: u32) -> Option<Datum> {
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
fn narrow_items(items: &[Datum], ty: u32) -> Option<Vec<Datum>> {
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

fn is_equality(function: u32) -> bool {
    matches!(func::operator_class(function), Some((Comparison::Eq, _, _)))
}

/// The array of `= ANY` as an array of the target's type, if comparing with that means the same.
fn array_key(array: &Expr, ty: u32) -> Option<Expr> {
    let wanted = info::array_of(ty)?;
    let from = array.ty();
    if from.oid == wanted {
        return Some(array.clone());
    }
    if same_bytes(info::element_of(from.oid).unwrap_or(0), ty) {
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

fn match_path(
    path: &Path,
    item: &Item<'_>,
    conditions: &[Expr],
    usable: &[Vec<Indexable>],
    rows: f64,
) -> Candidate {
    let all = || {
        let each = usable.iter().enumerate();
        each.flat_map(|(i, found)| found.iter().map(move |u| (i, u)))
    };
    let mut range = KeyRange::default();
    let mut answered = Vec::new();
    // What the predicate says of every row in the index needs no second look.
    for (i, condition) in conditions.iter().enumerate() {
        if path.predicate.iter().any(|p| walk::same(p, condition)) {
            answered.push(i);
        }
    }
    let share: f64 = path
        .predicate
        .iter()
        .map(|p| selectivity(p, rows))
        .product();
    let mut found = (rows * share).max(1.0);
    let (mut equal_columns, mut lookups) = (0, 1.0);
    let (mut has_list, mut all_sized) = (false, true);
    let unique_at = |columns: usize| path.index.holds_keys_once() && columns == path.targets.len();
    for (at, target) in path.targets.iter().enumerate() {
        let equal = all().find_map(|(i, u)| match u {
            Indexable::Compare(t, Comparison::Eq, key) if t == target => {
                Some((i, Probe::Value(key.clone())))
            }
            Indexable::IsNull(t) if t == target => Some((i, Probe::Null)),
            _ => None,
        });
        if let Some((i, probe)) = equal {
            equal_columns += usize::from(matches!(probe, Probe::Value(_)));
            range.equal.push(probe);
            answered.push(i);
            found = if unique_at(equal_columns) {
                lookups
            } else {
                (found * estimate::EQUAL).max(1.0)
            };
            continue;
        }
        let any = all().find_map(|(i, u)| match u {
            Indexable::Any(t, key, count) if t == target => Some((i, key, *count)),
            _ => None,
        });
        // Lists multiply: only those whose length is known now may stand side by side.
        let sized = any.is_some_and(|(_, key, _)| matches!(key, Expr::Const(..) | Expr::Array(..)));
        if let Some((i, key, count)) = any
            && (!has_list || (all_sized && sized && lookups * count <= LOOKUPS_MAX))
        {
            has_list = true;
            all_sized &= sized;
            lookups *= count.max(1.0);
            range.equal.push(Probe::Any(key.clone()));
            answered.push(i);
            let each = if unique_at(at + 1) && equal_columns == at {
                1.0
            } else {
                (found * estimate::EQUAL).max(1.0)
            };
            found = (each * count).min(found);
            continue;
        }
        for (i, u) in all() {
            let (comparison, keys, exact) = match u {
                Indexable::Compare(t, comparison, key) if t == target => {
                    (*comparison, vec![key.clone()], true)
                }
                Indexable::IsNotNull(t) if t == target => {
                    range.not_null = true;
                    answered.push(i);
                    continue;
                }
                Indexable::Row(comparison, pairs) => {
                    let keys = leading(path, at, pairs);
                    // A NULL within the row makes a row comparison unknown, not one of bytes.
                    let exact =
                        keys.len() == pairs.len() && pairs.iter().all(|(t, _)| item.never_null(*t));
                    (*comparison, keys, exact)
                }
                _ => continue,
            };
            let (slot, inclusive) = match comparison {
                Comparison::Gt => (&mut range.lower, false),
                Comparison::Ge => (&mut range.lower, true),
                Comparison::Lt => (&mut range.upper, false),
                Comparison::Le => (&mut range.upper, true),
                Comparison::Eq | Comparison::Ne => continue,
            };
            if slot.is_some() || keys.is_empty() {
                continue;
            }
            let whole = !matches!(u, Indexable::Row(_, pairs) if pairs.len() != keys.len());
            *slot = Some(Edge {
                keys,
                inclusive: inclusive || !whole,
            });
            if exact {
                answered.push(i);
            }
            found = (found * estimate::RANGE).max(1.0);
        }
        break;
    }
    answered.sort_unstable();
    answered.dedup();
    // At most one row for certain is better than one by a guess.
    let certain = if unique_at(equal_columns) {
        LOOKUP_COST
    } else {
        0.0
    };
    let cost = estimate::index_scan(found) + (lookups - 1.0) * LOOKUP_COST - certain;
    Candidate {
        index: path.index.clone(),
        range,
        answered,
        rows: found,
        cost,
        ordered: false,
        reverse: false,
        equal_columns,
    }
}

/// What finding another place in the index costs.
const LOOKUP_COST: f64 = 0.01;

/// The values of a row comparison that the index's columns from `at` on take, in one direction.
fn leading(path: &Path, at: usize, pairs: &[(usize, Expr)]) -> Vec<Expr> {
    let Some(desc) = path.index.columns.get(at).map(|c| c.desc) else {
        return Vec::new();
    };
    let columns = path.targets.iter().zip(&path.index.columns).skip(at);
    pairs
        .iter()
        .zip(columns)
        .take_while(|((target, _), (own, column))| target == *own && column.desc == desc)
        .map(|((_, key), _)| key.clone())
        .collect()
}

/// Whether an index scan gives the wanted order, and then whether backwards. Several values of a column are looked up in the
/// index's order, so only columns with one value are fixed.
fn order_of(path: &Path, item: &Item<'_>, range: &KeyRange, wish: &Wish) -> Option<bool> {
    if wish.order.is_empty() {
        return None;
    }
    let is_fixed = |at: usize| matches!(range.equal.get(at), Some(Probe::Value(_) | Probe::Null));
    let fixed: Vec<usize> = (0..path.targets.len())
        .filter(|at| is_fixed(*at))
        .map(|at| path.targets[at])
        .collect();
    let mut columns = (0..path.targets.len()).filter(|at| !is_fixed(*at));
    let mut direction = None;
    let mut taken: Vec<usize> = Vec::new();
    for (expr, desc, nulls_first) in &wish.order {
        let target = item.target(expr)?;
        // A column that was sorted by already, or has one value, changes nothing.
        if fixed.contains(&target) || taken.contains(&target) {
            continue;
        }
        let Some(at) = columns.next() else {
            // Past the whole key of a unique index nothing is left to order, unless NULLs make keys equal.
            let decided = path.index.holds_keys_once()
                && (path.index.nulls_not_distinct
                    || path.targets.iter().enumerate().all(|(at, target)| {
                        item.never_null(*target)
                            || matches!(range.equal.get(at), Some(Probe::Value(_)))
                    }));
            return if decided {
                Some(direction.unwrap_or(false))
            } else {
                None
            };
        };
        if path.targets[at] != target {
            return None;
        }
        taken.push(target);
        let column = &path.index.columns[at];
        let forward = column.desc == *desc && column.nulls_first == *nulls_first;
        let backward = column.desc != *desc && column.nulls_first != *nulls_first;
        // Where there are no NULLs it does not matter where they would stand.
        let any = item.never_null(target)
            || matches!(range.equal.get(at), Some(Probe::Any(_)))
            || (at == range.equal.len()
                && (range.not_null || range.lower.is_some() || range.upper.is_some()));
        let reverse = match (forward, backward) {
            (true, _) => false,
            (_, true) => true,
            _ if any => column.desc != *desc,
            _ => return None,
        };
        if direction.is_some_and(|d| d != reverse) {
            return None;
        }
        direction = Some(reverse);
    }
    Some(direction.unwrap_or(false))
}
