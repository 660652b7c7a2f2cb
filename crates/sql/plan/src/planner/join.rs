//! Joins: the conditions of a FROM list go to its items, and two sides become one join.
//!
//! In which order the items of a list are joined is `join_order`'s, which comes back here for the join itself
//! (`join_sides`, `lateral_join`). A join that has to stay as it is written (outer, semi, anti) is planned here.

use crate::layout::Layout;
use crate::planner::Planner;
use crate::planner::merge_join::{Pairs, cost_with_order, gives};
use crate::planner::scan::{Path, RequiredOrder, Rescan};
use crate::query::expr::Expr;
use crate::query::{ColId, RelSource, collect_rels};
use crate::query::{From, FromList};
use crate::{JoinKind, Node, Plan, cost, walk};
use logstead_sql_func as func;
use logstead_sql_func::{CastContext, Comparison};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};

/// The kinds of join that a session wants.
#[derive(Clone, Copy)]
pub(super) struct JoinsAllowed {
    pub(super) hash: bool,
    pub(super) merge: bool,
    pub(super) nested_loop: bool,
}

/// One thing to join with its own conditions.
pub(super) struct JoinItem {
    pub(super) from: From,
    pub(super) conditions: Vec<Expr>,
    pub(super) ids: Vec<(ColId, ColId)>,
    /// Columns of sibling units it needs (LATERAL).
    pub(super) needs: Vec<ColId>,
}

impl JoinItem {
    pub(super) fn owns(&self, id: ColId) -> bool {
        self.ids.iter().any(|(from, to)| (*from..*to).contains(&id))
    }
}

/// A condition of ON about no row of either side, which may hold for none: without it there are no rows on the right.
fn is_gate(condition: &Expr) -> bool {
    let is_true = matches!(
        condition,
        Expr::Const(logstead_sql_types::value::Datum::Bool(true), _)
    );
    !is_true && !walk::is_volatile(condition)
}

impl Planner<'_> {
    /// Plans a list of items under inner joins.
    pub(crate) fn plan_from(&mut self, list: FromList, required: &RequiredOrder) -> Result<Path> {
        let FromList { items, conditions } = list;
        let mut units = Vec::with_capacity(items.len());
        let mut conditions = conditions;
        self.flatten(items, &mut conditions, &mut units)?;
        crate::rewrite::fold_constants::conditions(&mut conditions);
        let session = self.cx.session;
        crate::rewrite::factor_disjuncts::factor(&mut conditions, &|| session.interrupted())?;
        crate::rewrite::propagate_constants::constants(&mut conditions);
        session.interrupted()?;
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
        for condition in &joining {
            for unit in &mut units {
                let own = |part: &Expr| {
                    let mut ids = Vec::new();
                    walk::column_ids(part, &mut ids);
                    !ids.is_empty() && ids.iter().all(|id| unit.owns(*id))
                };
                let narrower = crate::rewrite::factor_disjuncts::restriction(condition, own);
                unit.conditions.extend(narrower);
            }
        }
        for unit in &mut units {
            if let From::Rel(rel) = unit.from {
                self.plan_subquery(rel, &mut unit.conditions)?;
            }
        }
        constant.extend(self.choose_grouped(&mut units, &mut joining)?);
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
            self.plan_item(unit.from, unit.conditions, required)?
        } else {
            self.join_items(units, joining, required)?
        };
        planned.ordered |= gives(&planned.order, &required.order);
        if !constant.is_empty() {
            // These stand above the scan: they would be lost if it were planned anew, to be read in another way.
            planned.rescan = None;
        }
        if constant
            .iter()
            .any(crate::rewrite::propagate_constants::is_never)
        {
            // WHERE false: clients ask so for the columns alone.
            let columns = std::mem::take(&mut planned.plan.columns);
            planned.plan = crate::planner::build::values(Vec::new(), columns);
        } else if !constant.is_empty() {
            // What is asked once is asked first: if it does not hold, there are no rows to ask anything of.
            let (once, each): (Vec<Expr>, Vec<Expr>) = constant
                .into_iter()
                .partition(|condition| !walk::is_volatile(condition));
            planned.plan = self.filtered(planned.plan, each, &planned.layout);
            planned.plan = self.filtered(planned.plan, once, &planned.layout);
        }
        Ok(planned)
    }

    pub(super) fn unit(&self, from: From, units: &mut Vec<JoinItem>) {
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
        units.push(JoinItem {
            from,
            conditions: Vec::new(),
            ids,
            needs: Vec::new(),
        });
    }

    fn id_ranges(&self, rels: &[usize]) -> Vec<(ColId, ColId)> {
        rels.iter().map(|&rel| self.range.rels[rel].ids()).collect()
    }

    pub(super) fn id_ranges_of_list(&self, list: &FromList) -> Vec<(ColId, ColId)> {
        let mut rels = Vec::new();
        collect_rels(list, &mut rels);
        self.id_ranges(&rels)
    }

    /// Column identities that an item's inside refers to.
    fn needs(&self, from: &From, out: &mut Vec<ColId>) {
        match from {
            From::Rel(rel) => match &self.range.rels[*rel].source {
                RelSource::Plan(Some(plan)) => walk::plan_ids(plan, out),
                RelSource::Query(Some(query)) => self.range.items().foreign_ids(query, out),
                RelSource::Function { args, .. } => {
                    args.iter().for_each(|a| walk::column_ids(a, out))
                }
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

    pub(super) fn plan_item(
        &mut self,
        from: From,
        conditions: Vec<Expr>,
        required: &RequiredOrder,
    ) -> Result<Path> {
        match from {
            From::Rel(rel) => {
                // Only beside others is it ever planned rescan.
                let joined = self.range.rels.len() > 1;
                let is_table = matches!(self.range.rels[rel].source, RelSource::Table(_));
                let rescan = (is_table && joined).then(|| {
                    let conditions = conditions.clone();
                    Box::new(Rescan { rel, conditions })
                });
                let planned = self.scan(rel, conditions, required)?;
                Ok(Path { rescan, ..planned })
            }
            From::Join {
                kind,
                left,
                right,
                on,
            } => self.plan_join(kind, *left, *right, on, conditions, required),
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
        required: &RequiredOrder,
    ) -> Result<Path> {
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
            // A subquery is asked about the rows that a half join leaves.
            let waits = matches!(kind, JoinKind::Semi | JoinKind::Anti)
                && walk::any(
                    &condition,
                    &|e| matches!(e, Expr::Subquery(subquery) if !subquery.uncorrelated),
                );
            if l && !r && kind != JoinKind::Full && !waits {
                left.conditions.push(condition);
            } else {
                filter.push(condition);
            }
        }
        let mut conditions = Vec::new();
        let mut on = on;
        crate::rewrite::fold_constants::conditions(&mut on);
        for condition in on {
            let (l, r) = (
                touches(&condition, &left_ids),
                touches(&condition, &right_ids),
            );
            if r && !l && kind != JoinKind::Full {
                right.conditions.push(condition);
            } else if l && !r && kind == JoinKind::Semi {
                left.conditions.push(condition);
            } else if !l && !r && kind != JoinKind::Full && is_gate(&condition) {
                right.conditions.push(condition);
            } else {
                conditions.push(condition);
            }
        }
        let left = self.plan_from(left, &RequiredOrder::default())?;
        // LATERAL on the right side.
        let mut needed = Vec::new();
        right.items.iter().for_each(|i| self.needs(i, &mut needed));
        let lateral = needed.iter().any(|id| left.layout.contains(*id));
        let joined = if lateral {
            let right = self.plan_from(right, &RequiredOrder::default())?;
            self.lateral_join(kind, left, right, conditions)?
        } else {
            self.join_pair(kind, left, right, conditions, required)?
        };
        let plan = self.filtered(joined.plan, filter, &joined.layout);
        Ok(Path { plan, ..joined })
    }

    pub(super) fn joins_allowed(&self) -> JoinsAllowed {
        let scans = self.cx.session.scans();
        JoinsAllowed {
            hash: scans.hash_join,
            merge: scans.merge_join,
            nested_loop: scans.nested_loop,
        }
    }

    /// Joins a planned left side with a list: by index for each left row, by hash, or by loop.
    fn join_pair(
        &mut self,
        kind: JoinKind,
        left: Path,
        right: FromList,
        on: Vec<Expr>,
        required: &RequiredOrder,
    ) -> Result<Path> {
        if let ([From::Rel(rel)], false) = (right.items.as_slice(), kind == JoinKind::Full) {
            let rel = *rel;
            let mut all: Vec<Expr> = right.conditions.clone();
            all.extend(on.iter().cloned());
            if let Some((rows, cost)) = self.index_lookup_through(rel, &all, &right.conditions)? {
                let (kept, whole) = self.item_estimate(rel, &right.conditions)?;
                let hashed = whole + cost::hash_join(left.plan.rows, kept);
                let looped = left.plan.rows * (cost + cost::REWIND);
                if let Some(ordered) = self.in_order(kind, &left, required)? {
                    let rows = left.plan.rows.max(1.0);
                    let sorted = left.plan.cost + looped.min(hashed);
                    let sorted = cost_with_order(sorted, 0.0, rows, false, required);
                    let cost = ordered.plan.cost + looped + off(self.joins_allowed().nested_loop);
                    if cost_with_order(cost, 0.0, rows, true, required) < sorted {
                        let right = self.index_side(rel, right.conditions, &on)?;
                        let index_rows = Some(right.plan.rows);
                        return self.lateral_join_rows(kind, ordered, right, on, index_rows);
                    }
                }
                let allowed = self.joins_allowed();
                let others = allowed.hash || allowed.merge;
                if looped + off(allowed.nested_loop) <= hashed + off(others) {
                    let right = self.index_side(rel, right.conditions, &on)?;
                    return self.lateral_join_rows(kind, left, right, on, Some(rows));
                }
            }
        }
        let right = self.plan_from(right, &RequiredOrder::default())?;
        self.join_sides(kind, left, right, on, required)
    }

    /// The left side of a join in the order wished for, if an index gives it, the join keeps it, and few rows are
    /// taken.
    fn in_order(
        &mut self,
        kind: JoinKind,
        left: &Path,
        required: &RequiredOrder,
    ) -> Result<Option<Path>> {
        let (Some(rescan), false) = (
            &left.rescan,
            required.order.is_empty() || required.limit.is_none() || keeps_right(kind),
        ) else {
            return Ok(None);
        };
        let planned = self.scan(rescan.rel, rescan.conditions.clone(), required)?;
        Ok(planned.ordered.then_some(planned))
    }

    /// As [`Binder::index_lookup`], but only if a join condition takes part.
    pub(super) fn index_lookup_through(
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
    pub(super) fn index_side(&mut self, rel: usize, own: Vec<Expr>, on: &[Expr]) -> Result<Path> {
        let mut conditions = own;
        conditions.extend(on.iter().cloned());
        self.scan(rel, conditions, &RequiredOrder::default())
    }

    /// `right` runs once for each left row.
    pub(super) fn lateral_join(
        &mut self,
        kind: JoinKind,
        left: Path,
        right: Path,
        on: Vec<Expr>,
    ) -> Result<Path> {
        self.lateral_join_rows(kind, left, right, on, None)
    }

    pub(super) fn lateral_join_rows(
        &mut self,
        kind: JoinKind,
        left: Path,
        mut right: Path,
        on: Vec<Expr>,
        index_rows: Option<f64>,
    ) -> Result<Path> {
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            return Err(SqlError::new(
                logstead_types::SqlState::INVALID_COLUMN_REFERENCE,
                "the combining JOIN type must be INNER or LEFT for a LATERAL reference",
            ));
        }
        // An index side has taken the join's conditions in: as keys or into its filter, which sees the left row too.
        let on = if index_rows.is_some() { Vec::new() } else { on };
        crate::layout::resolve_plan(&mut right.plan, &left.layout, 1);
        let mut rows = left.plan.rows * right.plan.rows;
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            let found = right.plan.rows.min(1.0);
            let share = if index_rows.is_some() {
                found
            } else {
                found * 0.5
            };
            rows = half_rows(kind, left.plan.rows, share);
        } else if kind == JoinKind::Left {
            rows = rows.max(left.plan.rows);
        }
        let cost = left.plan.cost + left.plan.rows * (right.plan.cost + cost::REWIND);
        Ok(self.nested_loop(kind, left, right, on, true, rows, cost))
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of the node")]
    fn nested_loop(
        &mut self,
        kind: JoinKind,
        left: Path,
        right: Path,
        on: Vec<Expr>,
        lateral: bool,
        rows: f64,
        cost: f64,
    ) -> Path {
        let both = left.layout.concat(&right.layout);
        let condition = crate::query::expr::and(on).map(|c| both.resolve(c));
        let half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut columns = left.plan.columns.clone();
        // Left rows are gone through in their order.
        let order = match kind {
            JoinKind::Right | JoinKind::Full => Vec::new(),
            _ => left.order,
        };
        let layout = if half {
            left.layout
        } else {
            columns.extend(right.plan.columns.iter().cloned());
            both
        };
        let rows = rows.max(1.0);
        let node = Node::NestedLoop {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            condition,
            lateral,
        };
        let plan = Plan {
            node,
            columns,
            rows,
            cost,
        };
        Path {
            order,
            ..Path::new(plan, layout)
        }
    }

    /// Joins two planned sides that do not depend on each other.
    pub(super) fn join_sides(
        &mut self,
        kind: JoinKind,
        left: Path,
        right: Path,
        on: Vec<Expr>,
        required: &RequiredOrder,
    ) -> Result<Path> {
        let share = self.share(on.iter(), right.plan.rows);
        let mut rows = left.plan.rows * right.plan.rows * share;
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            rows = rows.max(left.plan.rows);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            rows = rows.max(right.plan.rows);
        }
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            let share = self.partnered(&on, right.plan.rows);
            rows = half_rows(kind, left.plan.rows, share);
        }
        let rows = rows.max(1.0);
        let mut pairs: Pairs = Vec::new();
        let (mut rest, mut equalities) = (Vec::new(), Vec::new());
        for condition in on {
            match self.hash_keys(&condition, &left.layout, &right.layout)? {
                Some(pair) => {
                    pairs.push(pair);
                    equalities.push(condition);
                }
                None => rest.push(condition),
            }
        }
        let sides = left.plan.cost + right.plan.cost;
        let looped = sides + cost::kept_loop(left.plan.rows, right.plan.rows);
        if pairs.is_empty() {
            return Ok(self.nested_loop(kind, left, right, rest, false, rows, looped));
        }
        let allowed = self.joins_allowed();
        let memory_bytes = self.cx.session.work_mem_bytes() as f64;
        let memory_bytes = memory_bytes * self.cx.session.hash_mem_multiplier();
        let kept = |build: &Plan, probe: &Plan| {
            let mut spilled = cost::spilled(build, build.rows, memory_bytes);
            if spilled > 0.0 {
                spilled += cost::spilled(probe, probe.rows, memory_bytes);
            }
            cost::hash_join(probe.rows, build.rows) + spilled
        };
        let mut joined = kept(&right.plan, &left.plan);
        let mut first = right.plan.cost;
        // Rows of the side that is given whole may be those that are kept, too.
        let turned = kind == JoinKind::Left && kept(&left.plan, &right.plan) < joined;
        if turned {
            joined = kept(&left.plan, &right.plan);
            first = left.plan.cost;
        }
        let hashed = sides + joined + rows * cost::ROW;
        let mut best = cost_with_order(hashed, first, rows, false, required) + off(allowed.hash);
        let mut is_looped = false;
        // Where both can be had a hash join is as good as a loop for few rows and better for many.
        if !allowed.hash {
            let ordered = gives(&left.order, &required.order) && !keeps_right(kind);
            let cost = cost_with_order(looped, right.plan.cost, rows, ordered, required);
            let cost = cost + off(allowed.nested_loop);
            is_looped = cost < best;
            best = best.min(cost);
        }
        // Of few rows nothing is saved, and planning takes time.
        let worth_it = best - sides > FEW;
        if worth_it
            && let Some(way) = self.merge_path(kind, &left, &right, &pairs, rows, required, best)?
            && way.wished + off(allowed.merge) < best
        {
            return Ok(self.merge_join(kind, way, &pairs, rest, rows));
        }
        if is_looped {
            rest.extend(equalities);
            return Ok(self.nested_loop(kind, left, right, rest, false, rows, looped));
        }
        let (kind, left, right) = match turned {
            true => (JoinKind::Right, right, left),
            false => (kind, left, right),
        };
        let both = left.layout.concat(&right.layout);
        let condition = crate::query::expr::and(rest).map(|c| both.resolve(c));
        let half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut columns = left.plan.columns.clone();
        if !half {
            columns.extend(right.plan.columns.iter().cloned());
        }
        let (left_keys, right_keys) = pairs
            .into_iter()
            .map(|(l, r)| match turned {
                true => (r, l),
                false => (l, r),
            })
            .map(|(l, r)| (left.layout.resolve(l), right.layout.resolve(r)))
            .unzip();
        let layout = if half { left.layout } else { both };
        let node = Node::HashJoin {
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            kind,
            left_keys,
            right_keys,
            condition,
        };
        let plan = Plan {
            node,
            columns,
            rows,
            cost: hashed,
        };
        Ok(Path::new(plan, layout))
    }

    /// Share of left rows that have a partner on a right side of so many rows.
    fn partnered(&self, on: &[Expr], right_rows: f64) -> f64 {
        let mut share = 1.0;
        let mut known = false;
        for condition in on {
            let Expr::Call { function, args, .. } = condition else {
                share *= 0.5;
                continue;
            };
            let class = func::operator_class(function.oid);
            let pair = args
                .first()
                .and_then(|a| self.variable(a))
                .zip(args.get(1).and_then(|b| self.variable(b)));
            match (class, pair) {
                (Some((Comparison::Eq, _, _)), Some((a, b))) if a.rel != b.rel => {
                    // The second operand is the subquery's as a rule; the one with fewer values decides.
                    let (a, b) = (a.distinct(), b.distinct());
                    let (more, fewer) = (a.max(b), a.min(b).min(right_rows));
                    share *= (fewer / more.max(1.0)).clamp(0.0, 1.0);
                    known = true;
                }
                _ => share *= 0.5,
            }
        }
        if known { share } else { share.min(0.5) }
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
        if l.ty().oid == r.ty().oid || same_keys(l.ty().oid, r.ty().oid) {
            return Ok(Some((l, r)));
        }
        let Ok(common) = func::common_type(&[l.ty(), r.ty()], self.cx.lookup().types()) else {
            return Ok(None);
        };
        let common = SqlType::of(common.oid);
        let l = self.cast(l, common, CastContext::Implicit)?;
        let r = self.cast(r, common, CastContext::Implicit)?;
        Ok(l.zip(r))
    }
}

/// Types whose equal values have the same key (`value::key`).
fn same_keys(a: TypeId, b: TypeId) -> bool {
    let both = |types: &[TypeId]| types.contains(&a) && types.contains(&b);
    both(&[oid::INT2, oid::INT4, oid::INT8]) || both(&[oid::FLOAT4, oid::FLOAT8])
}

/// What a join that a session does not want is taken to cost more; it stays possible where nothing else is.
pub(super) fn off(allowed: bool) -> f64 {
    const DISABLED: f64 = 1e10;
    if allowed { 0.0 } else { DISABLED }
}

/// Joins that cost no more than this beside their sides are not worth a second thought.
const FEW: f64 = 0.5;

fn keeps_right(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::Full)
}

/// Rows of a semi or anti join, of whose left rows such a share has partners.
fn half_rows(kind: JoinKind, rows: f64, share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    match kind {
        JoinKind::Anti => rows * (1.0 - share),
        _ => rows * share,
    }
}
