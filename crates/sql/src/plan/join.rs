//! Joins: which order, which method.

use super::layout::Layout;
use super::scan::{Planned, Wish};
use super::{JoinKind, Node, Plan, estimate, walk};
use crate::bind::query::{From, FromList};
use crate::bind::{Binder, ColId, Source, collect_rels};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::func::{self, CastContext, Comparison};
use crate::value::{Datum, SqlType};

/// One thing to join with its own conditions.
struct Unit {
    from: From,
    conditions: Vec<Expr>,
    ids: Vec<(ColId, ColId)>,
    /// Columns of sibling units it needs (LATERAL).
    needs: Vec<ColId>,
}

impl Unit {
    fn owns(&self, id: ColId) -> bool {
        self.ids.iter().any(|(from, to)| (*from..*to).contains(&id))
    }
}

impl Binder<'_> {
    /// Plans a list of items under inner joins.
    pub(crate) fn plan_from(&mut self, list: FromList, wish: &Wish) -> Result<Planned> {
        let FromList { items, conditions } = list;
        let mut units = Vec::with_capacity(items.len());
        let mut conditions = conditions;
        self.flatten(items, &mut conditions, &mut units)?;
        // Conditions about one unit alone go down to it, those about none stay on top.
        let mut joining: Vec<Expr> = Vec::new();
        let mut constant: Vec<Expr> = Vec::new();
        for condition in conditions {
            let mut ids = Vec::new();
            walk::column_ids(&condition, &mut ids);
            let mut touched = units
                .iter()
                .enumerate()
                .filter(|(_, u)| ids.iter().any(|id| u.owns(*id)));
            match (touched.next().map(|(i, _)| i), touched.next()) {
                (None, _) => constant.push(condition),
                (Some(unit), None) => units[unit].conditions.push(condition),
                (Some(_), Some(_)) => joining.push(condition),
            }
        }
        for i in 0..units.len() {
            let mut needed = Vec::new();
            self.needs(&units[i].from, &mut needed);
            units[i]
                .conditions
                .iter()
                .for_each(|c| walk::column_ids(c, &mut needed));
            needed.retain(|id| !units[i].owns(*id) && units.iter().any(|u| u.owns(*id)));
            units[i].needs = needed;
        }
        let mut planned = if units.len() == 1 && joining.is_empty() {
            let unit = units.remove(0);
            self.plan_unit(unit.from, unit.conditions, wish)?
        } else {
            self.join_units(units, joining)?
        };
        let never = |c: &Expr| matches!(c, Expr::Const(Datum::Bool(false) | Datum::Null, _));
        if constant.iter().any(never) {
            // WHERE false: clients ask so for the columns alone.
            let columns = std::mem::take(&mut planned.plan.columns);
            planned.plan = super::build::values(Vec::new(), columns);
        } else if !constant.is_empty() {
            planned.plan = super::build::filter(planned.plan, constant, &planned.layout);
        }
        Ok(planned)
    }

    /// Turns outer joins whose filled side a condition refuses into inner ones, and inner ones into list items.
    fn flatten(
        &self,
        items: Vec<From>,
        conditions: &mut Vec<Expr>,
        units: &mut Vec<Unit>,
    ) -> Result<()> {
        for item in items {
            match item {
                From::Join {
                    kind: JoinKind::Right,
                    left,
                    right,
                    on,
                } => {
                    let swapped = From::Join {
                        kind: JoinKind::Left,
                        left: right,
                        right: left,
                        on,
                    };
                    self.flatten(vec![swapped], conditions, units)?;
                }
                From::Join {
                    kind: JoinKind::Left,
                    mut left,
                    right,
                    on,
                } => {
                    let filled = self.id_ranges_of_list(&right);
                    let refused = conditions.iter().any(|c| refuses_null(c, &filled));
                    if refused {
                        conditions.append(&mut left.conditions);
                        let mut right = right;
                        conditions.append(&mut right.conditions);
                        conditions.extend(on);
                        self.flatten(left.items, conditions, units)?;
                        self.flatten(right.items, conditions, units)?;
                    } else {
                        self.unit(
                            From::Join {
                                kind: JoinKind::Left,
                                left,
                                right,
                                on,
                            },
                            units,
                        );
                    }
                }
                From::Join {
                    kind: JoinKind::Full,
                    left,
                    right,
                    on,
                } => {
                    // A condition that refuses NULLs of one side leaves only the other side's rows to be filled.
                    let (l, r) = (
                        self.id_ranges_of_list(&left),
                        self.id_ranges_of_list(&right),
                    );
                    let keeps_left = conditions.iter().any(|c| refuses_null(c, &l));
                    let keeps_right = conditions.iter().any(|c| refuses_null(c, &r));
                    if keeps_left || keeps_right {
                        let kind = if keeps_left {
                            JoinKind::Left
                        } else {
                            JoinKind::Right
                        };
                        self.flatten(
                            vec![From::Join {
                                kind,
                                left,
                                right,
                                on,
                            }],
                            conditions,
                            units,
                        )?;
                    } else {
                        self.unit(
                            From::Join {
                                kind: JoinKind::Full,
                                left,
                                right,
                                on,
                            },
                            units,
                        );
                    }
                }
                other => self.unit(other, units),
            }
        }
        Ok(())
    }

    fn unit(&self, from: From, units: &mut Vec<Unit>) {
        let ids = match &from {
            From::Rel(rel) => self.id_ranges(&[*rel]),
            From::Join {
                kind, left, right, ..
            } => {
                let mut ids = self.id_ranges_of_list(left);
                if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                    ids.extend(self.id_ranges_of_list(right));
                }
                ids
            }
        };
        units.push(Unit {
            from,
            conditions: Vec::new(),
            ids,
            needs: Vec::new(),
        });
    }

    fn id_ranges(&self, rels: &[usize]) -> Vec<(ColId, ColId)> {
        rels.iter()
            .map(|&rel| {
                let item = &self.rels[rel];
                (item.first, item.first + item.width)
            })
            .collect()
    }

    fn id_ranges_of_list(&self, list: &FromList) -> Vec<(ColId, ColId)> {
        let mut rels = Vec::new();
        collect_rels(list, &mut rels);
        self.id_ranges(&rels)
    }

    /// Column identities that an item's inside refers to.
    fn needs(&self, from: &From, out: &mut Vec<ColId>) {
        match from {
            From::Rel(rel) => match &self.rels[*rel].source {
                Source::Plan(Some(plan)) => walk::plan_ids(plan, out),
                Source::Function { args, .. } => args.iter().for_each(|a| walk::column_ids(a, out)),
                _ => {}
            },
            From::Join {
                left, right, on, ..
            } => {
                for list in [left, right] {
                    list.items.iter().for_each(|i| self.needs(i, out));
                    list.conditions
                        .iter()
                        .for_each(|c| walk::column_ids(c, out));
                }
                on.iter().for_each(|c| walk::column_ids(c, out));
            }
        }
    }

    fn plan_unit(&mut self, from: From, conditions: Vec<Expr>, wish: &Wish) -> Result<Planned> {
        match from {
            From::Rel(rel) => self.scan(rel, conditions, wish),
            From::Join {
                kind,
                left,
                right,
                on,
            } => self.plan_join(kind, *left, *right, on, conditions),
        }
    }

    /// A join whose sides stand still.
    fn plan_join(
        &mut self,
        kind: JoinKind,
        mut left: FromList,
        mut right: FromList,
        on: Vec<Expr>,
        above: Vec<Expr>,
    ) -> Result<Planned> {
        let left_ids = self.id_ranges_of_list(&left);
        let right_ids = self.id_ranges_of_list(&right);
        let touches = |expr: &Expr, ranges: &[(ColId, ColId)]| {
            let mut ids = Vec::new();
            walk::column_ids(expr, &mut ids);
            ids.iter()
                .any(|id| ranges.iter().any(|(from, to)| (*from..*to).contains(id)))
        };
        let mut filter = Vec::new();
        for condition in above {
            let (l, r) = (
                touches(&condition, &left_ids),
                touches(&condition, &right_ids),
            );
            if l && !r && kind != JoinKind::Full {
                left.conditions.push(condition);
            } else {
                filter.push(condition);
            }
        }
        let mut conditions = Vec::new();
        for condition in on {
            let (l, r) = (
                touches(&condition, &left_ids),
                touches(&condition, &right_ids),
            );
            if r && !l && kind != JoinKind::Full {
                right.conditions.push(condition);
            } else if l && !r && kind == JoinKind::Semi {
                left.conditions.push(condition);
            } else {
                conditions.push(condition);
            }
        }
        let left = self.plan_from(left, &Wish::default())?;
        // LATERAL on the right side.
        let mut needed = Vec::new();
        right.items.iter().for_each(|i| self.needs(i, &mut needed));
        let lateral = needed.iter().any(|id| left.layout.contains(*id));
        let joined = if lateral {
            let right = self.plan_from(right, &Wish::default())?;
            self.lateral_join(kind, left, right, conditions)?
        } else {
            self.join_pair(kind, left, right, conditions)?
        };
        let plan = super::build::filter(joined.plan, filter, &joined.layout);
        Ok(Planned {
            plan,
            layout: joined.layout,
            ordered: false,
        })
    }

    /// Joins a planned left side with a list: by index for each left row, by hash, or by loop.
    fn join_pair(
        &mut self,
        kind: JoinKind,
        left: Planned,
        right: FromList,
        on: Vec<Expr>,
    ) -> Result<Planned> {
        if let ([From::Rel(rel)], false) = (right.items.as_slice(), kind == JoinKind::Full) {
            let rel = *rel;
            let mut all: Vec<Expr> = right.conditions.clone();
            all.extend(on.iter().cloned());
            if let Some((rows, cost)) = self.index_lookup_through(rel, &all, &right.conditions)? {
                let whole = self.whole_cost(rel);
                if left.plan.rows * cost <= whole + left.plan.rows * 0.02 {
                    let right = self.index_side(rel, right.conditions, &on)?;
                    return self.lateral_join_rows(kind, left, right, on, Some(rows));
                }
            }
        }
        let right = self.plan_from(right, &Wish::default())?;
        self.hash_or_loop(kind, left, right, on)
    }

    /// Cost of reading an item whole.
    fn whole_cost(&self, rel: usize) -> f64 {
        match &self.rels[rel].source {
            Source::Table(table) => {
                estimate::seq_scan((self.cx.rows_of)(table).max(estimate::ROWS_MIN))
            }
            _ => 1.0,
        }
    }

    /// As [`Binder::index_lookup`], but only if a join condition takes part.
    fn index_lookup_through(
        &mut self,
        rel: usize,
        all: &[Expr],
        own: &[Expr],
    ) -> Result<Option<(f64, f64)>> {
        let Some(with) = self.index_lookup(rel, all)? else {
            return Ok(None);
        };
        match self.index_lookup(rel, own)? {
            Some(without) if without.0 <= with.0 => Ok(None),
            _ => Ok(Some(with)),
        }
    }

    /// The inner side of an index join: conditions that an index answers become keys, the others about outer columns
    /// are the join's.
    fn index_side(&mut self, rel: usize, own: Vec<Expr>, on: &[Expr]) -> Result<Planned> {
        let mut conditions = own;
        conditions.extend(on.iter().cloned());
        self.scan(rel, conditions, &Wish::default())
    }

    /// `right` runs once for each left row.
    fn lateral_join(
        &mut self,
        kind: JoinKind,
        left: Planned,
        right: Planned,
        on: Vec<Expr>,
    ) -> Result<Planned> {
        self.lateral_join_rows(kind, left, right, on, None)
    }

    fn lateral_join_rows(
        &mut self,
        kind: JoinKind,
        left: Planned,
        mut right: Planned,
        on: Vec<Expr>,
        index_rows: Option<f64>,
    ) -> Result<Planned> {
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            return Err(SqlError::new(
                logstead_types::SqlState::INVALID_COLUMN_REFERENCE,
                "the combining JOIN type must be INNER or LEFT for a LATERAL reference",
            ));
        }
        // An index side has taken the join's conditions in: as keys or into its filter, which sees the left row too.
        let on = if index_rows.is_some() { Vec::new() } else { on };
        walk::resolve_plan(&mut right.plan, &left.layout, 1);
        let rows = (left.plan.rows * right.plan.rows).max(1.0);
        let cost = left.plan.cost + left.plan.rows * right.plan.cost;
        Ok(self.nested_loop(kind, left, right, on, true, rows, cost))
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of the node")]
    fn nested_loop(
        &mut self,
        kind: JoinKind,
        left: Planned,
        right: Planned,
        on: Vec<Expr>,
        lateral: bool,
        rows: f64,
        cost: f64,
    ) -> Planned {
        let both = left.layout.concat(&right.layout);
        let condition = crate::bind::and(on).map(|c| both.resolve(c));
        let half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut columns = left.plan.columns.clone();
        let layout = if half {
            left.layout
        } else {
            columns.extend(right.plan.columns.iter().cloned());
            both
        };
        let rows = if half {
            (left.plan.rows * 0.5).max(1.0)
        } else {
            rows
        };
        let node = Node::NestedLoop {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            condition,
            lateral,
        };
        Planned {
            plan: Plan {
                node,
                columns,
                rows,
                cost,
            },
            layout,
            ordered: false,
        }
    }

    fn hash_or_loop(
        &mut self,
        kind: JoinKind,
        left: Planned,
        right: Planned,
        on: Vec<Expr>,
    ) -> Result<Planned> {
        let mut left_keys = Vec::new();
        let mut right_keys = Vec::new();
        let mut rest = Vec::new();
        for condition in on {
            match self.hash_keys(&condition, &left.layout, &right.layout)? {
                Some((l, r)) => {
                    left_keys.push(l);
                    right_keys.push(r);
                }
                None => rest.push(condition),
            }
        }
        if left_keys.is_empty() {
            let share: f64 = rest
                .iter()
                .map(|c| estimate::selectivity(c, right.plan.rows))
                .product();
            let mut rows = (left.plan.rows * right.plan.rows * share).max(1.0);
            if kind == JoinKind::Left {
                rows = rows.max(left.plan.rows);
            }
            let cost = left.plan.cost + right.plan.cost + left.plan.rows * right.plan.rows * 0.005;
            return Ok(self.nested_loop(kind, left, right, rest, false, rows, cost));
        }
        let both = left.layout.concat(&right.layout);
        let condition = crate::bind::and(rest).map(|c| both.resolve(c));
        let half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut columns = left.plan.columns.clone();
        let mut rows = (left.plan.rows * right.plan.rows
            / left.plan.rows.max(right.plan.rows).max(1.0))
        .max(1.0);
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            rows = rows.max(left.plan.rows);
        }
        if half {
            rows = (left.plan.rows * 0.5).max(1.0);
        } else {
            columns.extend(right.plan.columns.iter().cloned());
        }
        let cost =
            left.plan.cost + right.plan.cost + left.plan.rows * 0.01 + right.plan.rows * 0.015;
        let left_keys = left_keys
            .into_iter()
            .map(|k| left.layout.resolve(k))
            .collect();
        let right_keys = right_keys
            .into_iter()
            .map(|k| right.layout.resolve(k))
            .collect();
        let layout = if half { left.layout } else { both };
        let node = Node::HashJoin {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            left_keys,
            right_keys,
            condition,
        };
        Ok(Planned {
            plan: Plan {
                node,
                columns,
                rows,
                cost,
            },
            layout,
            ordered: false,
        })
    }

    /// The two sides of an equality between the joined rows, brought to one type.
    fn hash_keys(
        &mut self,
        condition: &Expr,
        left: &Layout,
        right: &Layout,
    ) -> Result<Option<(Expr, Expr)>> {
        let Expr::Call { function, args, .. } = condition else {
            return Ok(None);
        };
        if !matches!(
            func::operator_class(function.oid),
            Some((Comparison::Eq, _, _))
        ) {
            return Ok(None);
        }
        let [a, b] = args.as_slice() else {
            return Ok(None);
        };
        let side = |expr: &Expr| -> Option<bool> {
            let mut ids = Vec::new();
            walk::column_ids(expr, &mut ids);
            let (l, r) = (
                ids.iter().any(|id| left.contains(*id)),
                ids.iter().any(|id| right.contains(*id)),
            );
            match (l, r) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                _ => None,
            }
        };
        if walk::has_subquery(condition) || walk::is_volatile(condition) {
            return Ok(None);
        }
        let (l, r) = match (side(a), side(b)) {
            (Some(true), Some(false)) => (a, b),
            (Some(false), Some(true)) => (b, a),
            _ => return Ok(None),
        };
        let (l, r) = (l.clone(), r.clone());
        if l.ty().oid == r.ty().oid {
            return Ok(Some((l, r)));
        }
        let Ok(common) = func::common_type(&[l.ty(), r.ty()]) else {
            return Ok(None);
        };
        let common = SqlType::of(common.oid);
        let l = self.try_coerce(l, common, CastContext::Implicit, None)?;
        let r = self.try_coerce(r, common, CastContext::Implicit, None)?;
        Ok(l.zip(r))
    }

    /// Greedy: begin with the smallest unit, then always the cheapest next join.
    fn join_units(&mut self, mut units: Vec<Unit>, mut joining: Vec<Expr>) -> Result<Planned> {
        let mut estimates = Vec::with_capacity(units.len());
        for unit in &units {
            estimates.push(self.unit_rows(unit)?);
        }
        let start = (0..units.len())
            .filter(|&i| units[i].needs.is_empty())
            .min_by(|&a, &b| estimates[a].total_cmp(&estimates[b]))
            .ok_or_else(|| SqlError::unsupported("LATERAL references in a circle"))?;
        let all_ids: Vec<(ColId, ColId)> =
            units.iter().flat_map(|u| u.ids.iter().copied()).collect();
        let first = units.remove(start);
        estimates.remove(start);
        let mut joined_ids = first.ids.clone();
        let mut current = self.plan_unit(first.from, first.conditions, &Wish::default())?;
        while !units.is_empty() {
            let has = |ids: &[(ColId, ColId)], id: ColId| {
                ids.iter().any(|(from, to)| (*from..*to).contains(&id))
            };
            let mut best: Option<(usize, f64, bool)> = None;
            for (i, unit) in units.iter().enumerate() {
                if !unit.needs.iter().all(|id| has(&joined_ids, *id)) {
                    continue;
                }
                let applicable: Vec<Expr> = joining
                    .iter()
                    .filter(|c| applies(c, &joined_ids, &unit.ids, &all_ids))
                    .cloned()
                    .collect();
                let mut by_index = false;
                let mut cost = if applicable.is_empty() {
                    // A product: last resort.
                    1e12 + current.plan.rows * estimates[i]
                } else {
                    estimates[i] * 0.03
                        + current.plan.rows * 0.01
                        + (current.plan.rows.max(estimates[i])) * 0.01
                };
                if let From::Rel(rel) = unit.from
                    && unit.needs.is_empty()
                    && !applicable.is_empty()
                {
                    let mut all = unit.conditions.clone();
                    all.extend(applicable);
                    if let Some((_, each)) =
                        self.index_lookup_through(rel, &all, &unit.conditions)?
                    {
                        let loops = current.plan.rows * each;
                        if loops <= self.whole_cost(rel) + current.plan.rows * 0.02 {
                            by_index = true;
                            cost = loops;
                        }
                    }
                }
                if best.is_none_or(|(_, c, _)| cost < c) {
                    best = Some((i, cost, by_index));
                }
            }
            let Some((next, _, by_index)) = best else {
                return Err(SqlError::unsupported("LATERAL references in a circle"));
            };
            let unit = units.remove(next);
            estimates.remove(next);
            let mut conditions = Vec::new();
            let mut later = Vec::new();
            for condition in joining {
                if applies(&condition, &joined_ids, &unit.ids, &all_ids) {
                    conditions.push(condition)
                } else {
                    later.push(condition)
                }
            }
            joining = later;
            joined_ids.extend(unit.ids.iter().copied());
            current = match unit.from {
                From::Rel(rel) if by_index => {
                    let right = self.index_side(rel, unit.conditions, &conditions)?;
                    let rows = right.plan.rows;
                    self.lateral_join_rows(JoinKind::Inner, current, right, conditions, Some(rows))?
                }
                from => {
                    let lateral = !unit.needs.is_empty();
                    let right = self.plan_unit(from, unit.conditions, &Wish::default())?;
                    if lateral {
                        self.lateral_join(JoinKind::Inner, current, right, conditions)?
                    } else {
                        // The smaller side is kept in the hash table.
                        let swap = right.plan.rows > current.plan.rows;
                        let (left, right) = if swap {
                            (right, current)
                        } else {
                            (current, right)
                        };
                        self.hash_or_loop(JoinKind::Inner, left, right, conditions)?
                    }
                }
            };
        }
        if !joining.is_empty() {
            current.plan = super::build::filter(current.plan, joining, &current.layout);
        }
        Ok(current)
    }

    /// Rows a unit gives under its own conditions.
    fn unit_rows(&mut self, unit: &Unit) -> Result<f64> {
        Ok(match &unit.from {
            From::Rel(rel) => {
                let rows = match &self.rels[*rel].source {
                    Source::Table(table) => (self.cx.rows_of)(table).max(estimate::ROWS_MIN),
                    Source::Virtual(relation, _) => (self.cx.rows_of)(relation).max(1.0),
                    Source::Plan(Some(plan)) => plan.rows,
                    Source::Cte { rows, .. } => *rows,
                    Source::Plan(None) | Source::Function { .. } => 100.0,
                };
                if let Some((found, _)) = self.index_lookup(*rel, &unit.conditions)? {
                    return Ok(found);
                }
                let share: f64 = unit
                    .conditions
                    .iter()
                    .map(|c| estimate::selectivity(c, rows))
                    .product();
                (rows * share).max(1.0)
            }
            From::Join { left, .. } => {
                let mut rows = 1.0_f64;
                let mut rels = Vec::new();
                collect_rels(left, &mut rels);
                for rel in rels {
                    rows = rows.max(match &self.rels[rel].source {
                        Source::Table(table) => (self.cx.rows_of)(table).max(estimate::ROWS_MIN),
                        Source::Virtual(relation, _) => (self.cx.rows_of)(relation),
                        _ => 100.0,
                    });
                }
                let share: f64 = unit
                    .conditions
                    .iter()
                    .map(|c| estimate::selectivity(c, rows))
                    .product();
                (rows * share).max(1.0)
            }
        })
    }
}

/// Whether a condition can be decided once `next` joins what is there, and not before.
///
/// `all` are the columns of everything to be joined here: identities beyond belong to enclosing queries.
fn applies(
    condition: &Expr,
    there: &[(ColId, ColId)],
    next: &[(ColId, ColId)],
    all: &[(ColId, ColId)],
) -> bool {
    let mut ids = Vec::new();
    walk::column_ids(condition, &mut ids);
    let within = |ranges: &[(ColId, ColId)], id: ColId| {
        ranges.iter().any(|(from, to)| (*from..*to).contains(&id))
    };
    ids.iter().any(|id| within(next, *id))
        && ids
            .iter()
            .all(|id| within(there, *id) || within(next, *id) || !within(all, *id))
}

/// Whether a condition is never true when all columns of `filled` are NULL.
fn refuses_null(condition: &Expr, filled: &[(ColId, ColId)]) -> bool {
    let strict_on = |expr: &Expr| null_in_null_out(expr, filled);
    match condition {
        Expr::Call { function, args, .. } => function.strict && args.iter().any(strict_on),
        Expr::IsNull(arg, true) => strict_on(arg),
        Expr::InList {
            left,
            negated: false,
            ..
        } => strict_on(left),
        Expr::ArrayCompare {
            left, all: false, ..
        } => strict_on(left),
        Expr::And(all) => all.iter().any(|c| refuses_null(c, filled)),
        Expr::Or(all) => all.iter().all(|c| refuses_null(c, filled)),
        Expr::Column(id, _) => filled.iter().any(|(from, to)| (*from..*to).contains(id)),
        Expr::IsBool {
            arg,
            value: Some(_),
            negated: false,
        } => strict_on(arg),
        _ => false,
    }
}

/// Whether an expression is NULL when all columns of `filled` are.
fn null_in_null_out(expr: &Expr, filled: &[(ColId, ColId)]) -> bool {
    match expr {
        Expr::Column(id, _) => filled.iter().any(|(from, to)| (*from..*to).contains(id)),
        Expr::Call { function, args, .. } => {
            function.strict && args.iter().any(|a| null_in_null_out(a, filled))
        }
        Expr::Relabel(arg, _) | Expr::CastViaText(arg, _) | Expr::CoerceTypmod { arg, .. } => {
            null_in_null_out(arg, filled)
        }
        _ => false,
    }
}
