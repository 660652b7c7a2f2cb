//! Merge joins: in which order, and what they cost beside a hash join.
//!
//! Both sides have to come sorted by the keys. A side does so already (it is a merge join itself, or a loop over such a
//! side), or by an index, or it is sorted. Which key comes first is free: the orders worth looking at are those that
//! somebody gives, or wants above.
//!
//! What a merge join gives is sorted by its keys, which saves the sort of an ORDER BY, a DISTINCT ON or a window above,
//! and lets LIMIT end it early.

use crate::planner::Planner;
use crate::planner::build::sort;
use crate::planner::scan::{Path, PathKeys, RequiredOrder};
use crate::query::RelSource;
use crate::query::expr::Expr;
use crate::{JoinKind, MergeKey, Node, Plan, SortKey, cost, walk};
use logstead_sql_types::error::Result;

/// What rows are sorted by at one place of their order.
#[derive(Clone)]
pub(crate) struct PathKey {
    /// Equal on every row: sorted by one is sorted by the others.
    exprs: Vec<Expr>,
    desc: bool,
    /// `None`: none of them is NULL.
    nulls_first: Option<bool>,
}

impl PathKey {
    fn is(&self, expr: &Expr) -> bool {
        self.exprs.iter().any(|e| walk::same(e, expr))
    }
}

/// The order of a scan that was asked for one, and gives it.
pub(super) fn as_wanted(wanted: &PathKeys) -> Vec<PathKey> {
    let each = wanted.iter().map(|(expr, desc, nulls_first)| PathKey {
        exprs: vec![expr.clone()],
        desc: *desc,
        nulls_first: Some(*nulls_first),
    });
    each.collect()
}

/// Whether rows in `order` are sorted as is wanted.
pub(super) fn gives(order: &[PathKey], wanted: &PathKeys) -> bool {
    let mut at = 0;
    for (expr, desc, nulls_first) in wanted {
        // What was sorted by already changes nothing.
        if order.iter().take(at).any(|sorted| sorted.is(expr)) {
            continue;
        }
        let fits = order.get(at).is_some_and(|sorted| {
            sorted.is(expr)
                && sorted.desc == *desc
                && sorted.nulls_first.is_none_or(|first| first == *nulls_first)
        });
        if !fits {
            return false;
        }
        at += 1;
    }
    !wanted.is_empty()
}

/// Of rows that come in an order or not: what they cost with the order that is wished for.
pub(super) fn cost_with_order(
    cost: f64,
    startup: f64,
    rows: f64,
    ordered: bool,
    required: &RequiredOrder,
) -> f64 {
    if required.order.is_empty() {
        return cost;
    }
    let taken = required.limit.map_or(rows, |limit| limit.clamp(1.0, rows));
    match ordered {
        true => startup + (cost - startup) * (taken / rows),
        // A sort of which few rows are wanted keeps twice as many.
        false => cost + rows * (2.0 * taken).clamp(2.0, rows.max(2.0)).log2() * 0.01,
    }
}

/// The sides of equalities between two joined rows.
pub(super) type Pairs = Vec<(Expr, Expr)>;

/// A side of such a pair.
type SideOf = fn(&(Expr, Expr)) -> &Expr;

/// An order of keys: which of the pairs, descending, NULLs first.
type KeyOrder = Vec<(usize, bool, bool)>;

/// A side that comes as a merge join needs it.
struct SortedSide {
    planned: Path,
    /// Cost before its first row.
    startup: f64,
}

/// A merge join that could be.
pub(super) struct MergePath {
    left: SortedSide,
    right: SortedSide,
    keys: KeyOrder,
    order: Vec<PathKey>,
    /// What it costs.
    pub(super) cost: f64,
    /// With the order that is wished for.
    pub(super) wished: f64,
}

impl Planner<'_> {
    /// The cheapest merge join of two sides, if one could cost less than `most` with the order that is wished for.
    #[allow(clippy::too_many_arguments, reason = "what a join is made of")]
    pub(super) fn merge_path(
        &mut self,
        kind: JoinKind,
        left: &Path,
        right: &Path,
        pairs: &Pairs,
        rows: f64,
        required: &RequiredOrder,
        most: f64,
    ) -> Result<Option<MergePath>> {
        let sides = left.plan.cost + right.plan.cost;
        let merged = cost::merge_join(left.plan.rows, right.plan.rows) + rows * cost::ROW;
        // It reads both sides, in the best of all cases as they are.
        let least = match required.limit {
            Some(_) if !required.order.is_empty() => 0.0,
            _ => sides + merged,
        };
        if least >= most {
            return Ok(None);
        }
        let mut best: Option<MergePath> = None;
        for keys in self.key_orders(kind, left, right, pairs, required) {
            let side = |at: SideOf| -> PathKeys {
                keys.iter()
                    .filter_map(|(pair, desc, first)| {
                        Some((at(pairs.get(*pair)?).clone(), *desc, *first))
                    })
                    .collect()
            };
            let (by_left, by_right) = (side(|pair| &pair.0), side(|pair| &pair.1));
            let ready_left = self.ready(left, &by_left)?;
            let ready_right = self.ready(right, &by_right)?;
            let startup = ready_left.startup + ready_right.startup;
            let cost = ready_left.planned.plan.cost + ready_right.planned.plan.cost + merged;
            let order = joined_order(kind, &by_left, &by_right);
            let ordered = gives(&order, &required.order);
            let wished = cost_with_order(cost, startup, rows, ordered, required);
            if wished < best.as_ref().map_or(most, |way| way.wished) {
                best = Some(MergePath {
                    left: ready_left,
                    right: ready_right,
                    keys,
                    order,
                    cost,
                    wished,
                });
            }
        }
        Ok(best)
    }

    /// The node of a merge join.
    pub(super) fn merge_join(
        &mut self,
        kind: JoinKind,
        way: MergePath,
        pairs: &Pairs,
        rest: Vec<Expr>,
        rows: f64,
    ) -> Path {
        let (left, right) = (way.left.planned, way.right.planned);
        let keys = way.keys.iter().filter_map(|(pair, desc, _)| {
            let (l, r) = pairs.get(*pair)?;
            Some(MergeKey {
                left: left.layout.resolve(l.clone()),
                right: right.layout.resolve(r.clone()),
                desc: *desc,
            })
        });
        let keys = keys.collect();
        let both = left.layout.concat(&right.layout);
        let condition = crate::query::expr::and(rest).map(|c| both.resolve(c));
        let half = crate::planner::build::is_half(kind);
        let mut columns = left.plan.columns.clone();
        if !half {
            columns.extend(right.plan.columns.iter().cloned());
        }
        let layout = if half { left.layout } else { both };
        let node = Node::MergeJoin {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            keys,
            condition,
        };
        let plan = Plan {
            node,
            columns,
            rows,
            cost: way.cost,
        };
        Path {
            order: way.order,
            ..Path::new(plan, layout)
        }
    }

    /// Orders of the keys that could be worth it: all keys, in each of them.
    fn key_orders(
        &self,
        kind: JoinKind,
        left: &Path,
        right: &Path,
        pairs: &Pairs,
        required: &RequiredOrder,
    ) -> Vec<KeyOrder> {
        let mut begins: Vec<KeyOrder> = Vec::new();
        let is_inner = kind == JoinKind::Inner;
        let mut begin: KeyOrder = Vec::new();
        for (expr, desc, first) in &required.order {
            let pair = pairs
                .iter()
                .position(|(l, r)| walk::same(l, expr) || (is_inner && walk::same(r, expr)));
            match pair {
                Some(pair) if begin.iter().any(|(known, ..)| *known == pair) => {}
                Some(pair) => begin.push((pair, *desc, *first)),
                None => break,
            }
        }
        begins.push(begin);
        let sides: [(&Path, SideOf); 2] = [(left, |pair| &pair.0), (right, |pair| &pair.1)];
        for (side, of) in sides {
            let known = side.order.iter().map_while(|sorted| {
                let pair = pairs.iter().position(|pair| sorted.is(of(pair)))?;
                Some((pair, sorted.desc, sorted.nulls_first.unwrap_or(sorted.desc)))
            });
            let known: KeyOrder = known.collect();
            begins.push(known);
            let Some(rescan) = &side.rescan else { continue };
            let item = &self.range.rels[rescan.rel];
            let RelSource::Table(table) = &item.source else {
                continue;
            };
            for index in table.indexes.iter().filter(|index| index.is_plain()) {
                let known = index.columns.iter().map_while(|column| {
                    let id = item.first + column.position()?;
                    let is = |pair: &(Expr, Expr)| crate::query::plain_column(of(pair)) == Some(id);
                    let pair = pairs.iter().position(is)?;
                    Some((pair, column.desc, column.nulls_first))
                });
                let known: KeyOrder = known.collect();
                begins.push(known);
            }
        }
        begins.retain(|begin| !begin.is_empty());
        if begins.is_empty() {
            begins.push(Vec::new());
        }
        // The other keys follow.
        let mut found: Vec<KeyOrder> = Vec::with_capacity(begins.len());
        for mut keys in begins {
            for pair in 0..pairs.len() {
                if !keys.iter().any(|(known, ..)| *known == pair) {
                    keys.push((pair, false, false));
                }
            }
            if !found.contains(&keys) {
                found.push(keys);
            }
        }
        found
    }

    /// A side in an order: as it is, read in another way, or sorted.
    fn ready(&mut self, side: &Path, wanted: &PathKeys) -> Result<SortedSide> {
        if gives(&side.order, wanted) {
            return Ok(SortedSide {
                startup: 0.0,
                planned: side.clone(),
            });
        }
        let rows = side.plan.rows;
        let spilled = cost::spilled(&side.plan, rows, self.cx.session.work_mem_bytes() as f64);
        let sorted = side.plan.cost + cost::sort(rows) + spilled;
        if let Some(rescan) = &side.rescan {
            let required = RequiredOrder {
                order: wanted.clone(),
                limit: None,
            };
            let by_index = self.scan(rescan.rel, rescan.conditions.clone(), &required)?;
            if by_index.ordered && by_index.plan.cost < sorted {
                return Ok(SortedSide {
                    startup: 0.0,
                    planned: by_index,
                });
            }
        }
        let keys = wanted.iter().map(|(expr, desc, nulls_first)| SortKey {
            expr: side.layout.resolve(expr.clone()),
            desc: *desc,
            nulls_first: *nulls_first,
        });
        let mut plan = sort(side.plan.clone(), keys.collect());
        plan.cost = sorted;
        Ok(SortedSide {
            startup: sorted,
            planned: Path {
                order: as_wanted(wanted),
                ..Path::new(plan, side.layout.clone())
            },
        })
    }
}

/// What the rows of a merge join are sorted by.
fn joined_order(kind: JoinKind, left: &PathKeys, right: &PathKeys) -> Vec<PathKey> {
    let of = |at: usize| -> Option<PathKey> {
        let (l, desc, nulls_first) = left.get(at)?;
        let (r, ..) = right.get(at)?;
        let (exprs, nulls_first) = match kind {
            JoinKind::Inner => (vec![l.clone(), r.clone()], None),
            JoinKind::Semi => (vec![l.clone()], None),
            _ => (vec![l.clone()], Some(*nulls_first)),
        };
        Some(PathKey {
            exprs,
            desc: *desc,
            nulls_first,
        })
    };
    match kind {
        // Right rows without a partner stand between the others, their left side NULL.
        JoinKind::Right | JoinKind::Full => Vec::new(),
        _ => (0..left.len()).map_while(of).collect(),
    }
}
