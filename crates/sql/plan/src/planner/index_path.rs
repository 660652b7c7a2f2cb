//! Index paths: which conditions and which order an index answers.
//!
//! A *target* is something an index can have as a key: a column of the FROM item (numbered by its position) or an
//! expression of one of its indexes (numbered from the table's width on). Conditions are read once, as comparisons of
//! targets; then each index takes those of its key columns: equalities from the first column on, then a range on the
//! next.
//!
//! Invariant: an index is used only if it has an entry for every row that the conditions let through. A partial one is
//! used only if they imply its predicate ([`implies`](crate::implies)).

mod indexable;

use self::indexable::{Indexable, Item};
use crate::planner::Planner;
use crate::planner::scan::RequiredOrder;
use crate::query::expr::Expr;
use crate::query::{ColId, RelSource};
use crate::query::{conjuncts, same_bytes};
use crate::{KeyBound, KeyRange, ScanKey, cost, implies, walk};
use logstead_sql_catalog::{IndexDef, IndexKey, Relation};
use logstead_sql_func::Comparison;
use logstead_sql_types::error::Result;
use std::sync::Arc;

/// Lookups that lists of values on several columns may multiply to.
const LOOKUPS_MAX: f64 = 4_096.0;

/// An index that may be used.
struct IndexPath {
    index: Arc<IndexDef>,
    /// One per key column.
    targets: Vec<usize>,
    predicate: Vec<Expr>,
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
    /// One row at most.
    certain: bool,
    /// Rows at most.
    most: f64,
    /// Conditions that make the range narrower.
    narrowing: Vec<usize>,
    /// Row comparisons that do.
    inexact: i32,
    /// Places in the index that are looked up.
    lookups: f64,
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
    match expr {
        Expr::Column(position, _) => *position += first,
        // Calls of functions that the session runs.
        Expr::Subquery(subquery) => {
            let plan = &mut std::sync::Arc::make_mut(subquery).plan;
            walk::plan_exprs_mut(plan, 1, &mut |e, depth| at_outer(e, depth, first));
        }
        _ => {}
    }
    walk::children_mut(expr, &mut |e| at_columns(e, first));
}

/// The same of what is `depth` queries within.
fn at_outer(expr: &mut Expr, depth: usize, first: ColId) {
    match expr {
        Expr::Outer { level, index, ty } if *level == depth => {
            *expr = Expr::Column(first + *index, *ty);
        }
        Expr::Subquery(subquery) => {
            let plan = &mut std::sync::Arc::make_mut(subquery).plan;
            walk::plan_exprs_mut(plan, depth + 1, &mut |e, depth| at_outer(e, depth, first));
        }
        _ => walk::children_mut(expr, &mut |e| at_outer(e, depth, first)),
    }
}

impl Planner<'_> {
    /// Whether an index answers equalities on some of the item's columns: rows per lookup and its cost. For join
    /// planning.
    pub(crate) fn index_lookup(
        &mut self,
        rel: usize,
        conditions: &[Expr],
    ) -> Result<Option<(f64, f64)>> {
        let RelSource::Table(table) = &self.range.rels[rel].source else {
            return Ok(None);
        };
        let table = table.clone();
        let rows = self.table_rows(&table);
        let best = self.best_index(rel, &table, conditions, &RequiredOrder::default(), rows)?;
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
    ) -> Result<(Vec<IndexPath>, Item<'t>)> {
        let mut item = Item {
            table,
            first,
            expressions: Vec::new(),
        };
        let mut paths = Vec::with_capacity(table.indexes.len());
        for index in &table.indexes {
            if let (true, Some(targets)) = (index.is_plain(), index.positions()) {
                paths.push(IndexPath {
                    index: index.clone(),
                    targets,
                    predicate: Vec::new(),
                });
                continue;
            }
            if index.invalid.is_some() {
                continue;
            }
            // Rows are found without it as well.
            let Ok(bound) = (self.bind_index)(table, index, self.cx) else {
                continue;
            };
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
            paths.push(IndexPath {
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
        required: &RequiredOrder,
        rows: f64,
    ) -> Result<Option<Candidate>> {
        if table.indexes.is_empty() {
            return Ok(None);
        }
        let allowed = self.cx.session.scans();
        if !allowed.index && allowed.sequential {
            return Ok(None);
        }
        let first = self.range.rels[rel].first;
        let (paths, item) = self.paths(table, first, conditions)?;
        let mut usable = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let mut found = Vec::new();
            self.indexable(&item, condition, &mut found)?;
            usable.push(found);
        }
        let share = self.share(conditions.iter(), rows);
        let total = (rows * share).max(1.0);
        let limited = |cost: f64, produced: f64| match required.limit {
            Some(limit) if limit < produced => cost * (limit / produced.max(1.0)),
            _ => cost,
        };
        let seq = {
            let scan = cost::seq_scan(rows);
            if required.order.is_empty() {
                limited(scan, total)
            } else {
                scan + cost::sort(total)
            }
        };
        let mut best: Option<Candidate> = None;
        let mut best_cost = if allowed.sequential {
            seq
        } else {
            f64::INFINITY
        };
        for path in &paths {
            let mut candidate = match_path(path, &item, conditions, &usable);
            self.weigh(&mut candidate, path, table, conditions, rows);
            let order = order_of(path, &item, &candidate.range, required);
            candidate.ordered = order.is_some();
            candidate.reverse = order.unwrap_or(false);
            let useful = !candidate.answered.is_empty()
                || !candidate.range.is_whole()
                || candidate.ordered
                || path.index.predicate.is_some();
            if !useful && allowed.sequential {
                continue;
            }
            let cost = if required.order.is_empty() || candidate.ordered {
                limited(candidate.cost, total)
            } else {
                candidate.cost + cost::sort(total)
            };
            // An index that answers an equality beats reading everything whatever the table's size is today: the plan
            // is kept while the table grows.
            let equality = !candidate.range.equal.is_empty();
            let better = cost < best_cost || (best.is_none() && equality);
            if better {
                best_cost = cost;
                best = Some(candidate);
            }
        }
        Ok(best)
    }
}

impl Planner<'_> {
    /// How many rows a way through an index gives, and what it costs.
    fn weigh(
        &self,
        candidate: &mut Candidate,
        path: &IndexPath,
        table: &Relation,
        conditions: &[Expr],
        rows: f64,
    ) {
        let narrowing = candidate.narrowing.iter();
        let taken: Vec<&Expr> = narrowing.filter_map(|i| conditions.get(*i)).collect();
        let said = |p: &&Expr| !taken.iter().any(|c| walk::same(c, p));
        let predicate = path.predicate.iter().filter(said);
        let share = self.share(predicate.chain(taken.iter().copied()), rows);
        let found = rows * share * cost::RANGE.powi(candidate.inexact);
        candidate.rows = found.min(candidate.most).max(1.0);
        let first = path
            .targets
            .first()
            .and_then(|t| table.columns.get(*t).map(|c| (*t, c)));
        let known = self.cx.catalog.statistics.get(&table.oid);
        let in_order = known.zip(first).and_then(|(known, (position, column))| {
            known.column(position, column.ty.oid)?.correlation
        });
        // Of a table that was never looked at the best is hoped.
        let in_order = in_order.map_or(1.0, |c| f64::from(c * c));
        // At most one row for certain is better than one by a guess.
        let certain = if candidate.certain { LOOKUP_COST } else { 0.0 };
        candidate.cost = cost::index_scan(candidate.rows, in_order)
            + (candidate.lookups - 1.0).max(0.0) * LOOKUP_COST
            - certain;
    }
}

fn match_path(
    path: &IndexPath,
    item: &Item<'_>,
    conditions: &[Expr],
    usable: &[Vec<Indexable>],
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
    let mut narrowing = Vec::new();
    let mut inexact = 0;
    let (mut equal_columns, mut lookups) = (0, 1.0);
    let (mut has_list, mut all_sized) = (false, true);
    let unique_at = |columns: usize| path.index.holds_keys_once() && columns == path.targets.len();
    for (at, target) in path.targets.iter().enumerate() {
        let equal = all().find_map(|(i, u)| match u {
            Indexable::Compare(t, Comparison::Eq, key) if t == target => {
                Some((i, ScanKey::Value(key.clone())))
            }
            Indexable::IsNull(t) if t == target => Some((i, ScanKey::Null)),
            _ => None,
        });
        if let Some((i, scan_key)) = equal {
            equal_columns += usize::from(matches!(scan_key, ScanKey::Value(_)));
            range.equal.push(scan_key);
            answered.push(i);
            narrowing.push(i);
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
            range.equal.push(ScanKey::Any(key.clone()));
            answered.push(i);
            narrowing.push(i);
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
                    narrowing.push(i);
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
            *slot = Some(KeyBound {
                keys,
                inclusive: inclusive || !whole,
            });
            if exact {
                answered.push(i);
            }
            if matches!(u, Indexable::Compare(..)) {
                narrowing.push(i);
            } else {
                inexact += 1;
            }
        }
        break;
    }
    answered.sort_unstable();
    answered.dedup();
    narrowing.sort_unstable();
    narrowing.dedup();
    let whole = path.index.holds_keys_once() && range.equal.len() == path.targets.len();
    Candidate {
        index: path.index.clone(),
        // A list beside a whole key: as many rows as values at most.
        certain: unique_at(equal_columns),
        most: if whole { lookups } else { f64::INFINITY },
        narrowing,
        inexact,
        lookups,
        range,
        answered,
        rows: 0.0,
        cost: 0.0,
        ordered: false,
        reverse: false,
        equal_columns,
    }
}

/// What finding another place in the index costs.
const LOOKUP_COST: f64 = 0.01;

/// The values of a row comparison that the index's columns from `at` on take, in one direction.
fn leading(path: &IndexPath, at: usize, pairs: &[(usize, Expr)]) -> Vec<Expr> {
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

/// Whether an index scan gives the wanted order, and then whether backwards. Several values of a column are looked up
/// in the index's order, so only columns with one value are fixed.
fn order_of(
    path: &IndexPath,
    item: &Item<'_>,
    range: &KeyRange,
    required: &RequiredOrder,
) -> Option<bool> {
    if required.order.is_empty() {
        return None;
    }
    let is_fixed =
        |at: usize| matches!(range.equal.get(at), Some(ScanKey::Value(_) | ScanKey::Null));
    let fixed: Vec<usize> = (0..path.targets.len())
        .filter(|at| is_fixed(*at))
        .map(|at| path.targets[at])
        .collect();
    let mut columns = (0..path.targets.len()).filter(|at| !is_fixed(*at));
    let mut direction = None;
    let mut taken: Vec<usize> = Vec::new();
    for (expr, desc, nulls_first) in &required.order {
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
                            || matches!(range.equal.get(at), Some(ScanKey::Value(_)))
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
            || matches!(range.equal.get(at), Some(ScanKey::Any(_)))
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
