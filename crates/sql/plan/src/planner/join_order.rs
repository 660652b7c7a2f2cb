//! In which order items are joined, and how.
//!
//! Up to [`SEARCHED_MAX`] items every order is looked at that joins by conditions (dynamic programming over sets of
//! items, bushy ones too); beyond, the cheapest next join is taken each time. The search works with estimates alone;
//! the plan is made once, from what it finds.
//!
//! Invariants:
//! - A condition is judged where the last of its items joins, once.
//! - An item that needs columns of others (LATERAL) stands on the right of them.
//! - Rows of a set do not depend on the order in which it was joined.
//! - What follows from equalities (`a = b AND b = c`: `a = c`) is a condition, too, so that items can be joined that no
//!   condition names together. It is judged only where no other of its class is: wherever items with columns of a class
//!   are joined, one condition of the class at least is.
//!
//! Where an order of rows is wished for, the cheapest way to have a set in this order is looked for beside the cheapest
//! way at all: a table that an index gives in the order, and others looked up for each of its rows. It is for LIMIT:
//! who takes all rows is served as well by a sort or a merge join, which the join made last looks at (`join`).

use crate::planner::Planner;
use crate::planner::join::{JoinItem, JoinsAllowed, off};
use crate::planner::join_classes::{EdgeSummary, add_what_follows, equality, judged, share_within};
use crate::planner::merge_join::cost_with_order;
use crate::planner::scan::{Path, RequiredOrder};
use crate::query::expr::Expr;
use crate::query::{ColId, RelSource};
use crate::query::{From, FromList};
use crate::{JoinKind, cost, walk};
use logstead_sql_func as func;
use logstead_sql_func::Comparison;
use logstead_sql_types::error::{Result, SqlError};

/// Items of which all orders are looked at.
const SEARCHED_MAX: usize = 10;
/// Steps of the search between two looks at whether the statement is to end.
const STEPS: usize = 4_096;

/// A condition over several items: an edge of the join graph.
pub(super) struct JoinEdge {
    pub(super) condition: Option<Expr>,
    /// The items, in order.
    pub(super) units: Vec<usize>,
    /// Columns that it compares, with their items.
    pub(super) owners: Vec<(ColId, usize)>,
    pub(super) share: f64,
    /// An equality whose operands are of different items.
    pub(super) hashable: bool,
    /// The class of equal columns that it is of, if something follows from that.
    pub(super) class: Option<usize>,
    /// It follows from others.
    pub(super) follows: bool,
}

/// What is estimated of an item alone.
#[derive(Clone, Copy)]
struct ItemEstimate {
    rows: f64,
    cost: f64,
}

/// How the right side of a join is read.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Method {
    Index,
    Lateral,
    Hash,
    Loop,
}

/// A lookup under some edges: rows and cost of one, if an index answers it.
type Lookup = (Vec<usize>, Option<(f64, f64)>);

/// The items to be joined, and what is known of them.
struct Search {
    units: Vec<Option<JoinItem>>,
    estimates: Vec<ItemEstimate>,
    /// The items that each needs.
    needs: Vec<Vec<usize>>,
    edges: Vec<JoinEdge>,
    /// The edges of each item.
    edges_of: Vec<Vec<usize>>,
    /// Lookups of an item under some edges: rows and cost of one.
    lookups: Vec<Vec<Lookup>>,
    steps: usize,
    allowed: JoinsAllowed,
}

impl Search {
    fn lines(&self) -> Vec<EdgeSummary> {
        let line = |e: &JoinEdge| EdgeSummary {
            mask: e.units.iter().fold(0, |m, u| m | 1 << u),
            share: e.share,
            hashable: e.hashable,
            class: e.class,
            follows: e.follows,
        };
        self.edges.iter().map(line).collect()
    }
}

/// The best way known to join a set of items.
#[derive(Clone, Copy)]
struct JoinPath {
    rows: f64,
    cost: f64,
    left: u32,
    method: Method,
}

/// What the search has found: by set of items, the cheapest way to join it, and the cheapest one that gives the order
/// wished for.
struct JoinPaths {
    best: Vec<Option<JoinPath>>,
    ordered: Vec<Option<JoinPath>>,
}

/// A set of items to be joined as was found.
#[derive(Clone, Copy)]
struct JoinGoal<'w> {
    set: u32,
    /// In the order wished for, by the way that gives it.
    ordered: bool,
    required: &'w RequiredOrder,
}

impl Planner<'_> {
    /// Joins items under conditions over several of them.
    pub(super) fn join_items(
        &mut self,
        units: Vec<JoinItem>,
        joining: Vec<Expr>,
        required: &RequiredOrder,
    ) -> Result<Path> {
        let mut search = self.search(units, joining)?;
        let found = match search.units.len() {
            0..=SEARCHED_MAX => self.searched(&mut search, required)?,
            _ => None,
        };
        let mut planned = match found {
            Some(found) => {
                let set = found.best.len() as u32 - 1;
                let at = set as usize;
                let cost = |entries: &[Option<JoinPath>], ordered| {
                    let entry = entries.get(at).copied().flatten()?;
                    Some(cost_with_order(
                        entry.cost, 0.0, entry.rows, ordered, required,
                    ))
                };
                let (best, in_order) = (cost(&found.best, false), cost(&found.ordered, true));
                let ordered = in_order.is_some_and(|cost| best.is_none_or(|best| cost < best));
                let wanted = JoinGoal {
                    set,
                    ordered,
                    required,
                };
                self.built(&mut search, &found, wanted)?
            }
            None => self.greedy(&mut search, required)?,
        };
        let all = search.edges.iter_mut().filter(|e| !e.follows);
        let left: Vec<Expr> = all.filter_map(|e| e.condition.take()).collect();
        if !left.is_empty() {
            planned.plan = self.filtered(planned.plan, left, &planned.layout);
            planned.rescan = None;
        }
        Ok(planned)
    }

    fn search(&mut self, units: Vec<JoinItem>, joining: Vec<Expr>) -> Result<Search> {
        let mut estimates = Vec::with_capacity(units.len());
        for unit in &units {
            let (rows, cost) = self.join_item_estimate(unit)?;
            estimates.push(ItemEstimate { rows, cost });
        }
        // Identities of an item stand in few ranges: sorted, the owner is found by halving.
        let mut ranges: Vec<(ColId, ColId, usize)> = units
            .iter()
            .enumerate()
            .flat_map(|(at, u)| u.ids.iter().map(move |(from, to)| (*from, *to, at)))
            .filter(|(from, to, _)| from < to)
            .collect();
        ranges.sort_unstable();
        let owner = |id: ColId| {
            let at = ranges.partition_point(|(from, ..)| *from <= id);
            let (_, to, unit) = ranges.get(at.checked_sub(1)?)?;
            (id < *to).then_some(*unit)
        };
        let owners = |ids: &[ColId]| {
            let mut found: Vec<usize> = ids.iter().filter_map(|id| owner(*id)).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let needs = units.iter().map(|u| owners(&u.needs)).collect();
        let mut edges_of = vec![Vec::new(); units.len()];
        let mut edges = Vec::with_capacity(joining.len());
        for condition in joining {
            let of = |e: &Expr| {
                let mut ids = Vec::new();
                walk::column_ids(e, &mut ids);
                owners(&ids)
            };
            let touched = of(&condition);
            let hashable = match &condition {
                Expr::Call { function, args, .. } => {
                    let equal = matches!(
                        func::operator_class(function.oid),
                        Some((Comparison::Eq, _, _))
                    );
                    let sides: Vec<Vec<usize>> = args.iter().map(of).collect();
                    equal
                        && matches!(sides.as_slice(), [a, b] if !a.is_empty() && !b.is_empty()
                            && a.iter().all(|u| !b.contains(u)))
                }
                _ => false,
            };
            for unit in &touched {
                edges_of[*unit].push(edges.len());
            }
            let rows = touched
                .iter()
                .map(|u| estimates[*u].rows)
                .fold(1.0, f64::max);
            let compared = equality(&condition).map_or([None; 2], |(_, a, b)| {
                [a, b].map(|column| match column {
                    Expr::Column(id, _) => owner(*id).map(|unit| (*id, unit)),
                    _ => None,
                })
            });
            edges.push(JoinEdge {
                share: self.selectivity(&condition, rows),
                condition: Some(condition),
                units: touched,
                owners: compared.into_iter().flatten().collect(),
                hashable,
                class: None,
                follows: false,
            });
        }
        // Who takes one item after the other does not look so far.
        if (3..=SEARCHED_MAX).contains(&units.len()) {
            add_what_follows(&mut edges, |condition, of| {
                let rows = of.iter().map(|u| estimates[*u].rows).fold(1.0, f64::max);
                self.selectivity(condition, rows)
            });
        }
        Ok(Search {
            lookups: units.iter().map(|_| Vec::new()).collect(),
            units: units.into_iter().map(Some).collect(),
            estimates,
            needs,
            edges,
            edges_of,
            steps: 0,
            allowed: self.joins_allowed(),
        })
    }

    /// Now and then: is the statement to end?
    fn stepped(&self, search: &mut Search) -> Result<()> {
        search.steps += 1;
        match search.steps % STEPS {
            0 => self.cx.session.interrupted(),
            _ => Ok(()),
        }
    }

    /// One lookup of an item by index under its own conditions and some edges: rows and cost.
    fn lookup(
        &mut self,
        search: &mut Search,
        unit: usize,
        edges: &[usize],
    ) -> Result<Option<(f64, f64)>> {
        if let Some((_, found)) = search.lookups[unit].iter().find(|(e, _)| e == edges) {
            return Ok(*found);
        }
        let found = match &search.units[unit] {
            Some(JoinItem {
                from: From::Rel(rel),
                conditions,
                ..
            }) if search.needs[unit].is_empty() => {
                let mut all = conditions.clone();
                let joining = edges
                    .iter()
                    .filter_map(|e| search.edges[*e].condition.clone());
                all.extend(joining);
                self.index_lookup_through(*rel, &all, conditions)?
            }
            _ => None,
        };
        search.lookups[unit].push((edges.to_vec(), found));
        Ok(found)
    }

    /// The cheapest way to join everything, by set of items; `None` if there is none without products.
    fn searched(
        &mut self,
        search: &mut Search,
        required: &RequiredOrder,
    ) -> Result<Option<JoinPaths>> {
        let count = search.units.len();
        let mask = |units: &[usize]| units.iter().fold(0_u32, |m, u| m | 1 << u);
        let lines = search.lines();
        let needs: Vec<u32> = search.needs.iter().map(|n| mask(n)).collect();
        let first = self.ordered_items(search, required)?;
        let all = (1_u32 << count) - 1;
        // First by conditions alone; products only where nothing else joins everything.
        for products in [false, true] {
            let mut best: Vec<Option<JoinPath>> = vec![None; 1 << count];
            let mut ordered = best.clone();
            for (unit, entry) in first.iter().enumerate() {
                ordered[1 << unit] = *entry;
            }
            for (unit, guess) in search.estimates.iter().enumerate() {
                best[1 << unit] = Some(JoinPath {
                    rows: guess.rows,
                    cost: guess.cost,
                    left: 0,
                    method: Method::Loop,
                });
            }
            for set in 1..=all {
                if set.count_ones() < 2 {
                    continue;
                }
                let rows = (0..count)
                    .filter(|u| set >> u & 1 == 1)
                    .map(|u| search.estimates[u].rows)
                    .product::<f64>();
                let rows = (rows * share_within(&lines, set)).max(1.0);
                let mut chosen: Option<JoinPath> = None;
                let mut in_order: Option<JoinPath> = None;
                // Every way to divide the set, either side on the left.
                let mut left = (set - 1) & set;
                while left > 0 {
                    let right = set & !left;
                    let sides = (best[left as usize], best[right as usize]);
                    let (Some(l), Some(r)) = sides else {
                        left = (left - 1) & set;
                        continue;
                    };
                    self.stepped(search)?;
                    let single = right.count_ones() == 1;
                    let unit = right.trailing_zeros() as usize;
                    let lone = |side: u32| {
                        side.count_ones() == 1 && needs[side.trailing_zeros() as usize] != 0
                    };
                    let lateral = single && lone(right);
                    if lone(left) || (lateral && needs[unit] & !left != 0) {
                        left = (left - 1) & set;
                        continue;
                    }
                    let (mut joined, mut hashable) = (lateral, false);
                    for line in lines.iter().filter(|line| line.crosses(left, right)) {
                        joined = true;
                        hashable |= line.hashable;
                    }
                    if !joined && !products {
                        left = (left - 1) & set;
                        continue;
                    }
                    let allowed = search.allowed;
                    let (mut cost, mut method) =
                        join_cost(&l, &r, rows, hashable, lateral, allowed);
                    let mut each = None;
                    if single && !lateral && joined {
                        let between = judged(&lines, left, right);
                        each = self.lookup(search, unit, &between)?.map(|(_, cost)| cost);
                        if let Some(each) = each {
                            let by_index = index_cost(&l, each, rows, allowed);
                            if by_index < cost {
                                (cost, method) = (by_index, Method::Index);
                            }
                        }
                    }
                    if let Some(l) = ordered[left as usize]
                        && let Some(each) = each
                    {
                        let cost = index_cost(&l, each, rows, allowed);
                        if in_order.is_none_or(|c| cost < c.cost) {
                            in_order = Some(JoinPath {
                                rows,
                                cost,
                                left,
                                method: Method::Index,
                            });
                        }
                    }
                    if chosen.is_none_or(|c| cost < c.cost) {
                        chosen = Some(JoinPath {
                            rows,
                            cost,
                            left,
                            method,
                        });
                    }
                    left = (left - 1) & set;
                }
                best[set as usize] = chosen;
                ordered[set as usize] = in_order;
            }
            if best[all as usize].is_some() {
                return Ok(Some(JoinPaths { best, ordered }));
            }
        }
        Ok(None)
    }

    /// The items that an index gives in the order wished for, with what that costs.
    fn ordered_items(
        &mut self,
        search: &Search,
        required: &RequiredOrder,
    ) -> Result<Vec<Option<JoinPath>>> {
        let mut found = vec![None; search.units.len()];
        if required.order.is_empty() || required.limit.is_none() {
            return Ok(found);
        }
        for (unit, entry) in search.units.iter().zip(&mut found) {
            let Some(JoinItem {
                from: From::Rel(rel),
                conditions,
                needs,
                ..
            }) = unit
            else {
                continue;
            };
            if !needs.is_empty() || !matches!(self.range.rels[*rel].source, RelSource::Table(_)) {
                continue;
            }
            let planned = self.scan(*rel, conditions.clone(), required)?;
            if planned.ordered {
                *entry = Some(JoinPath {
                    rows: planned.plan.rows,
                    cost: planned.plan.cost,
                    left: 0,
                    method: Method::Loop,
                });
            }
        }
        Ok(found)
    }

    /// The plan of a set of items, as the search has found it.
    fn built(
        &mut self,
        search: &mut Search,
        found: &JoinPaths,
        wanted: JoinGoal<'_>,
    ) -> Result<Path> {
        let JoinGoal {
            set,
            ordered,
            required,
        } = wanted;
        let none = RequiredOrder::default();
        let part = |set: u32, ordered: bool| JoinGoal {
            set,
            ordered,
            required: if ordered { required } else { &none },
        };
        if set.count_ones() == 1 {
            let unit = take(search, set.trailing_zeros() as usize)?;
            return self.plan_item(unit.from, unit.conditions, required);
        }
        let entries = match ordered {
            true => &found.ordered,
            false => &found.best,
        };
        let entry = entries
            .get(set as usize)
            .copied()
            .flatten()
            .ok_or_else(|| SqlError::internal("a set of items was not joined"))?;
        let right = set & !entry.left;
        let left = self.built(search, found, part(entry.left, ordered))?;
        let within = |edge: &JoinEdge| edge.units.iter().all(|u| set >> u & 1 == 1);
        // What belongs to the right side alone is judged there.
        let right_only = |edge: &JoinEdge| edge.units.iter().all(|u| right >> u & 1 == 1);
        let mut conditions = Vec::new();
        for edge in search.edges.iter_mut().filter(|edge| !edge.follows) {
            if within(edge) && !right_only(edge) {
                conditions.extend(edge.condition.take());
            }
        }
        for at in judged(&search.lines(), entry.left, right) {
            let edge = &mut search.edges[at];
            if edge.follows {
                conditions.extend(edge.condition.take());
            }
        }
        if right.count_ones() == 1 {
            let unit = right.trailing_zeros() as usize;
            return self.join_unit(search, left, unit, conditions, entry.method, required);
        }
        let right = self.built(search, found, part(right, false))?;
        self.smaller_kept(left, right, conditions, required)
    }

    /// Joins what is there with one more item.
    fn join_unit(
        &mut self,
        search: &mut Search,
        left: Path,
        unit: usize,
        conditions: Vec<Expr>,
        method: Method,
        required: &RequiredOrder,
    ) -> Result<Path> {
        let unit = take(search, unit)?;
        match (unit.from, method) {
            (From::Rel(rel), Method::Index) => {
                let right = self.index_side(rel, unit.conditions, &conditions)?;
                let rows = right.plan.rows;
                self.lateral_join_rows(JoinKind::Inner, left, right, conditions, Some(rows))
            }
            (from, Method::Lateral) => {
                let right = self.plan_item(from, unit.conditions, &RequiredOrder::default())?;
                self.lateral_join(JoinKind::Inner, left, right, conditions)
            }
            (from, _) => {
                let right = self.plan_item(from, unit.conditions, &RequiredOrder::default())?;
                self.smaller_kept(left, right, conditions, required)
            }
        }
    }

    /// An inner join whose smaller side is kept in memory.
    fn smaller_kept(
        &mut self,
        left: Path,
        right: Path,
        conditions: Vec<Expr>,
        required: &RequiredOrder,
    ) -> Result<Path> {
        let (left, right) = if right.plan.rows > left.plan.rows {
            (right, left)
        } else {
            (left, right)
        };
        self.join_sides(JoinKind::Inner, left, right, conditions, required)
    }

    /// Begins with the smallest item, then takes the cheapest next join each time.
    fn greedy(&mut self, search: &mut Search, required: &RequiredOrder) -> Result<Path> {
        let count = search.units.len();
        let circle = || SqlError::unsupported("LATERAL references in a circle");
        let start = (0..count)
            .filter(|&u| search.needs[u].is_empty())
            .min_by(|&a, &b| {
                search.estimates[a]
                    .rows
                    .total_cmp(&search.estimates[b].rows)
            })
            .ok_or_else(circle)?;
        let mut there = vec![false; count];
        // Items that each edge still waits for.
        let mut waiting: Vec<usize> = search.edges.iter().map(|e| e.units.len()).collect();
        let mut current = JoinPath {
            rows: search.estimates[start].rows,
            cost: search.estimates[start].cost,
            left: 0,
            method: Method::Loop,
        };
        let unit = take(search, start)?;
        let mut planned = self.plan_item(unit.from, unit.conditions, &RequiredOrder::default())?;
        there[start] = true;
        for edge in &search.edges_of[start] {
            waiting[*edge] -= 1;
        }
        for last in (1..count).map(|at| at + 1 == count) {
            let mut best: Option<(usize, JoinPath, bool)> = None;
            for unit in 0..count {
                if there[unit] || !search.needs[unit].iter().all(|u| there[*u]) {
                    continue;
                }
                self.stepped(search)?;
                let edges: Vec<usize> = search.edges_of[unit]
                    .iter()
                    .copied()
                    .filter(|e| waiting[*e] == 1)
                    .collect();
                let guess = search.estimates[unit];
                let right = JoinPath {
                    rows: guess.rows,
                    cost: guess.cost,
                    left: 0,
                    method: Method::Loop,
                };
                let share: f64 = edges.iter().map(|e| search.edges[*e].share).product();
                let rows = (current.rows * guess.rows * share).max(1.0);
                let hashable = edges.iter().any(|e| search.edges[*e].hashable);
                let lateral = !search.needs[unit].is_empty();
                let joined = lateral || !edges.is_empty();
                if !joined && best.as_ref().is_some_and(|(_, _, joined)| *joined) {
                    continue;
                }
                let allowed = search.allowed;
                let (mut cost, mut method) =
                    join_cost(&current, &right, rows, hashable, lateral, allowed);
                if !lateral
                    && !edges.is_empty()
                    && let Some((_, each)) = self.lookup(search, unit, &edges)?
                {
                    let by_index = index_cost(&current, each, rows, allowed);
                    if by_index < cost {
                        (cost, method) = (by_index, Method::Index);
                    }
                }
                let better = best.as_ref().is_none_or(|(_, entry, was)| {
                    (joined && !was) || (joined == *was && cost < entry.cost)
                });
                if better {
                    let entry = JoinPath {
                        rows,
                        cost,
                        left: 0,
                        method,
                    };
                    best = Some((unit, entry, joined));
                }
            }
            let (unit, entry, _) = best.ok_or_else(circle)?;
            let mut conditions = Vec::new();
            for edge in &search.edges_of[unit] {
                waiting[*edge] -= 1;
                if waiting[*edge] == 0 {
                    conditions.extend(search.edges[*edge].condition.take());
                }
            }
            there[unit] = true;
            let none = RequiredOrder::default();
            let required = if last { required } else { &none };
            planned = self.join_unit(search, planned, unit, conditions, entry.method, required)?;
            current = entry;
        }
        Ok(planned)
    }

    /// Rows that an item gives under its own conditions, and what reading it costs.
    pub(super) fn join_item_estimate(&mut self, unit: &JoinItem) -> Result<(f64, f64)> {
        match &unit.from {
            From::Rel(rel) => self.item_estimate(*rel, &unit.conditions),
            From::Join {
                kind,
                left,
                right,
                on,
            } => {
                let (rows, cost) = self.join_estimate(*kind, left, right, on)?;
                let share = self.share(unit.conditions.iter(), rows);
                Ok(((rows * share).max(1.0), cost))
            }
        }
    }

    /// The same of an item of FROM under some conditions.
    pub(super) fn item_estimate(&mut self, rel: usize, conditions: &[Expr]) -> Result<(f64, f64)> {
        let (rows, cost) = match &self.range.rels[rel].source {
            RelSource::Table(table) => {
                let rows = self.table_rows(table);
                (rows, cost::seq_scan(rows))
            }
            RelSource::Virtual(relation, _) => {
                let rows = cost::virtual_rows((self.cx.rows_of)(relation));
                (rows, rows * cost::ROW)
            }
            RelSource::Plan(Some(plan)) => (plan.rows, plan.cost),
            RelSource::Cte { slot } => {
                let rows = self.range.cte_rows(*slot);
                (rows, rows * cost::ROW)
            }
            RelSource::Plan(None) | RelSource::Function { .. } => (100.0, 1.0),
            // It is planned where it is joined.
            RelSource::Query(_) => (1_000.0, 20.0),
        };
        let share = self.share(conditions.iter(), rows);
        let found = (rows * share).max(1.0);
        match self.index_lookup(rel, conditions)? {
            Some((by_index, each)) if each < cost => Ok((found.min(by_index.max(1.0)), each)),
            _ => Ok((found, cost)),
        }
    }

    fn list_estimate(&mut self, list: &FromList) -> Result<(f64, f64)> {
        let (mut rows, mut cost) = (1.0, 0.0);
        for item in &list.items {
            let (r, c) = match item {
                From::Rel(rel) => self.item_estimate(*rel, &[])?,
                From::Join {
                    kind,
                    left,
                    right,
                    on,
                } => self.join_estimate(*kind, left, right, on)?,
            };
            rows *= r;
            cost += c;
        }
        let share = self.share(list.conditions.iter(), rows);
        Ok(((rows * share).max(1.0), cost))
    }

    fn join_estimate(
        &mut self,
        kind: JoinKind,
        left: &FromList,
        right: &FromList,
        on: &[Expr],
    ) -> Result<(f64, f64)> {
        let (l, left_cost) = self.list_estimate(left)?;
        let (r, right_cost) = self.list_estimate(right)?;
        let inner = l * r * self.share(on.iter(), l.max(r));
        let rows = match kind {
            JoinKind::Inner => inner,
            JoinKind::Left => inner.max(l),
            JoinKind::Right => inner.max(r),
            JoinKind::Full => inner.max(l).max(r),
            JoinKind::Semi | JoinKind::Anti => l * 0.5,
        };
        let cost = left_cost + right_cost + cost::hash_join(l, r);
        Ok((rows.max(1.0), cost))
    }
}

fn take(search: &mut Search, unit: usize) -> Result<JoinItem> {
    search.units[unit]
        .take()
        .ok_or_else(|| SqlError::internal("an item was joined twice"))
}

/// What joining two sides costs without an index, and how it is done.
fn join_cost(
    left: &JoinPath,
    right: &JoinPath,
    rows: f64,
    hashable: bool,
    lateral: bool,
    allowed: JoinsAllowed,
) -> (f64, Method) {
    let given = rows * cost::ROW;
    if lateral {
        let cost = left.cost + left.rows * (right.cost + cost::REWIND);
        return (cost + given, Method::Lateral);
    }
    let sides = left.cost + right.cost;
    let by_keys = allowed.hash || allowed.merge || !allowed.nested_loop;
    if hashable && by_keys {
        let (probe, build) = (left.rows.max(right.rows), left.rows.min(right.rows));
        return (sides + cost::hash_join(probe, build) + given, Method::Hash);
    }
    let cost = sides + cost::kept_loop(left.rows, right.rows);
    (cost + given, Method::Loop)
}

fn index_cost(left: &JoinPath, each: f64, rows: f64, allowed: JoinsAllowed) -> f64 {
    let looped = left.rows * (each + cost::REWIND) + rows * cost::ROW;
    left.cost + looped + off(allowed.nested_loop)
}
