//! Correlated scalar aggregates in WHERE as joins with grouped rows. EXISTS and IN: `pull_up_sublinks`.
//!
//! `x < (SELECT avg(y) FROM t WHERE t.k = o.k)` says of a row of `o` what a join with `SELECT k, avg(y) FROM t GROUP BY
//! k` says under `x < avg`: both forms are made, and the planner takes the cheaper one
//! (`planner::decorrelation_choice`).
//! Only where they are the same:
//! - The subquery is one row of plain aggregates: no GROUP BY, HAVING, LIMIT, OFFSET, DISTINCT or window, and its own
//!   FROM has tables only. What refers to the outer row are equalities of one type, each with an expression over its
//!   own row on one side.
//! - The aggregates give NULL for no rows (`count` does not), and the condition is never true for NULL: where there is
//!   no group the join has no row, and the subquery's condition would not be true.
//! - The condition is about rows of its own FROM list only: what looks further out may become a condition of a join
//!   around it, where the planner could not take the groups out again.
//! - Nothing is volatile, and what is computed of rows and groups that nobody asks about cannot fail: aggregates of
//!   columns, of types whose sums do not overflow, and of all conditions and of what is made of the aggregates only
//!   what [`cannot_fail`].

use super::pull_up_sublinks::within;
use crate::query::expr::{COLUMN_BASE, ColId, Expr, SubLink, SubqueryKind};
use crate::query::{
    BoundSubquery, ColIdRanges, DecorrelatedCondition, Distinct, From, FromList, Grouping, Output,
    QueryTree, RangeTable, Rel, RelSource, Select, collect_rels, refuses_null,
};
use crate::{OutputColumn, walk};
use logstead_sql_func as func;
use logstead_sql_func::Comparison;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::oid;
use std::sync::Arc;

/// A grouped query on its way to be an item.
struct GroupedSelect {
    select: Select,
    keys: usize,
    /// The equalities, each with the number of the operand that the key stands for.
    equalities: Vec<(Expr, usize)>,
    aggregates: Vec<ColId>,
    value: Expr,
}

impl RangeTable {
    /// Makes the items of groups for the conditions of a list, and of the lists in it.
    pub(crate) fn decorrelate(&mut self, list: &mut FromList) {
        if !self.has_sublinks {
            return;
        }
        for item in &mut list.items {
            if let From::Join { left, right, .. } = item {
                self.decorrelate(left);
                self.decorrelate(right);
            }
        }
        if list.items.is_empty() || !list.conditions.iter().any(is_candidate) {
            return;
        }
        let own = self.items().ranges(list);
        let conditions = std::mem::take(&mut list.conditions);
        let mut groups = Vec::new();
        for condition in conditions {
            match self.as_groups(&condition, &own) {
                Some(grouped) => groups.push(grouped),
                None => list.conditions.push(condition),
            }
        }
        // What other conditions leave is compared with groups.
        for (rel, conditions) in groups {
            list.items.push(From::Rel(rel));
            list.conditions.extend(conditions);
        }
    }

    /// A new item and the conditions under which the block, whose FROM list has the columns `block_columns`, joins it
    /// in the place of `condition`; `None` if that has to stay.
    fn as_groups(
        &mut self,
        condition: &Expr,
        block_columns: &[(ColId, ColId)],
    ) -> Option<(usize, Vec<Expr>)> {
        let link = the_sublink(condition).filter(|_| is_candidate(condition))?;
        if walk::is_volatile(condition)
            || link.is_uncorrelated()
            || !within(condition, block_columns)
            || !self.may_be_grouped(link)
        {
            return None;
        }
        // The subquery stays what it is in the other form: this one is a copy.
        let mut body = link.body.clone();
        let ty = link.ty;
        let copied = self.rels.len();
        let first_made = COLUMN_BASE + self.columns.len();
        self.attach(&mut body, link.rels.clone(), link.first_rel);
        let QueryTree::Select(block) = body else {
            return None;
        };
        let grouped = self
            .grouped_select(*block)
            .filter(|made| made.value.ty().oid == ty.oid);
        let Some(made) = grouped else {
            self.rels.truncate(copied);
            return None;
        };
        let mut own = link.own.clone();
        own.0.push(first_made..COLUMN_BASE + self.columns.len());
        let made = self.group_item(condition, made, own);
        if made.is_none() {
            self.rels.truncate(copied);
        }
        made
    }

    /// Puts groups into the range table, if they may stand for the condition.
    fn group_item(
        &mut self,
        condition: &Expr,
        made: GroupedSelect,
        own: ColIdRanges,
    ) -> Option<(usize, Vec<Expr>)> {
        let GroupedSelect {
            select,
            keys,
            equalities,
            aggregates,
            mut value,
        } = made;
        let index = self.rels.len();
        let first = COLUMN_BASE + self.columns.len();
        let width = select.outputs.len();
        for output in &select.outputs {
            let (ty, origin) = (output.column.ty, output.column.origin);
            let id = self.column("".into(), ty, origin, index);
            self.columns[id - COLUMN_BASE].used = true;
        }
        let of_group = |id: ColId| {
            let at = aggregates.iter().position(|aggregate| *aggregate == id)?;
            Some(first + keys + at)
        };
        rename(&mut value, &of_group);
        let mut compared = condition.clone();
        put(&mut compared, &value);
        if !refuses_null(&compared, &[(first + keys, first + width)]) || !cannot_fail(&compared) {
            return None;
        }
        let mut conditions = Vec::with_capacity(keys + 1);
        let mut outer = Vec::with_capacity(keys);
        for (at, (equality, side)) in equalities.into_iter().enumerate() {
            let Expr::Call {
                function,
                mut args,
                ty,
            } = equality
            else {
                return None;
            };
            outer.extend(args.get(1 - side).cloned());
            if let Some(arg) = args.get_mut(side) {
                *arg = Expr::Column(first + at, arg.ty());
            }
            conditions.push(Expr::Call { function, args, ty });
        }
        conditions.push(compared);
        let name: Arc<str> = "".into();
        let query = BoundSubquery {
            body: QueryTree::Select(Box::new(select)),
            own,
            barrier: false,
            with: false,
        };
        self.rels.push(Rel {
            alias: Arc::clone(&name),
            shown: name,
            source: RelSource::Query(Some(Box::new(query))),
            first,
            width,
            row_id: None,
            scanned: false,
            current_of: None,
            guard: Vec::new(),
            as_role: None,
        });
        self.decorrelated.push(DecorrelatedCondition {
            rel: index,
            correlated: condition.clone(),
            outer,
        });
        Some((index, conditions))
    }

    /// Is the subquery one row of plain aggregates over tables, as far as it has to be looked at?
    fn may_be_grouped(&self, link: &SubLink) -> bool {
        let QueryTree::Select(block) = &link.body else {
            return false;
        };
        let Some(grouping) = &block.grouping else {
            return false;
        };
        let plain = grouping.keys.is_empty()
            && grouping.sets.is_none()
            && grouping.calls.is_empty()
            && grouping.having.is_empty()
            && block.windows.is_empty()
            && block.sets.is_empty()
            && block.grouped_sets.is_empty()
            && block.order.is_empty()
            && block.limit.is_none()
            && block.offset.is_none()
            && block.locks.is_none()
            && matches!(block.distinct, Distinct::No)
            && block.outputs.len() == 1
            && !block.from.items.is_empty();
        let mut rels = Vec::new();
        collect_rels(&block.from, &mut rels);
        let of_table = |rel: &usize| {
            let item = &link.rels[*rel - link.first_rel];
            matches!(item.source, RelSource::Table(_))
        };
        plain && rels.iter().all(of_table)
    }

    fn output_of(&mut self, expr: Expr) -> Output {
        let ty = expr.ty();
        let origin = match &expr {
            Expr::Column(id, _) => self.info(*id).origin,
            _ => None,
        };
        Output {
            id: self.column("".into(), ty, origin, usize::MAX),
            expr,
            column: OutputColumn {
                name: String::new(),
                ty,
                domain: None,
                origin,
            },
        }
    }

    /// The subquery's block with the outer row's equalities as group keys, if it is one of those that may be.
    fn grouped_select(&mut self, block: Select) -> Option<GroupedSelect> {
        let Select {
            mut from,
            grouping: Some(grouping),
            outputs,
            ..
        } = block
        else {
            return None;
        };
        let [output] = outputs.as_slice() else {
            return None;
        };
        let own = self.items().ranges(&from);
        let is_own = |id: &ColId| own.iter().any(|(from, to)| (*from..*to).contains(id));
        let mut inside = Vec::new();
        from.items
            .iter()
            .for_each(|item| self.items().inside(item, &mut inside));
        let aggregates: Vec<ColId> = grouping.aggregates.iter().map(|(id, _)| *id).collect();
        let mut read = Vec::new();
        walk::column_ids(&output.expr, &mut read);
        let calls_fit = grouping.aggregates.iter().all(|(_, call)| {
            let [Expr::Column(id, ty)] = call.args.as_slice() else {
                return false;
            };
            let fits = match call.aggregate.name {
                "min" | "max" => true,
                "sum" | "avg" => {
                    matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC)
                }
                _ => false,
            };
            fits && is_own(id) && call.filter.is_none() && call.order.is_empty()
        });
        let fits = calls_fit
            && !aggregates.is_empty()
            && inside.iter().all(is_own)
            && from.items.iter().all(joins_cannot_fail)
            && from.conditions.iter().all(cannot_fail)
            && read.iter().all(|id| aggregates.contains(id))
            && cannot_fail(&output.expr);
        if !fits {
            return None;
        }
        let (stay, correlated): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut from.conditions)
            .into_iter()
            .partition(|condition| within(condition, &own));
        from.conditions = stay;
        let mut keys = Vec::new();
        let mut equalities = Vec::new();
        for condition in correlated {
            let side = own_side(&condition, &own)?;
            let Expr::Call { args, .. } = &condition else {
                return None;
            };
            keys.push(args.get(side)?.clone());
            equalities.push((condition, side));
        }
        if keys.is_empty() {
            return None;
        }
        let value = output.expr.clone();
        let mut outputs: Vec<Output> = Vec::with_capacity(keys.len() + aggregates.len());
        let mut identified = Vec::with_capacity(keys.len());
        for key in keys {
            let origin = match &key {
                Expr::Column(id, _) => self.info(*id).origin,
                _ => None,
            };
            let id = self.column("".into(), key.ty(), origin, usize::MAX);
            outputs.push(self.output_of(Expr::Column(id, key.ty())));
            identified.push((id, key));
        }
        for (id, call) in &grouping.aggregates {
            outputs.push(self.output_of(Expr::Column(*id, call.ty)));
        }
        let select = Select {
            from,
            grouping: Some(Grouping {
                keys: identified,
                ..grouping
            }),
            outputs,
            ..Select::default()
        };
        Some(GroupedSelect {
            keys: equalities.len(),
            select,
            equalities,
            aggregates,
            value,
        })
    }
}

/// Which operand of an equality is of the subquery's own row, the other one being of none of its columns.
fn own_side(condition: &Expr, own: &[(ColId, ColId)]) -> Option<usize> {
    let Expr::Call { function, args, .. } = condition else {
        return None;
    };
    let [a, b] = args.as_slice() else {
        return None;
    };
    let equal = matches!(
        func::operator_class(function.oid),
        Some((Comparison::Eq, _, _))
    );
    if !equal || a.ty().oid != b.ty().oid || walk::has_subquery(condition) {
        return None;
    }
    let side = |expr: &Expr| {
        let mut ids = Vec::new();
        walk::column_ids(expr, &mut ids);
        let of_own = ids
            .iter()
            .filter(|id| own.iter().any(|(from, to)| (*from..*to).contains(*id)))
            .count();
        (of_own, ids.len())
    };
    match (side(a), side(b)) {
        ((own, all), (0, _)) if own == all && own > 0 => Some(0),
        ((0, _), (own, all)) if own == all && own > 0 => Some(1),
        _ => None,
    }
}

/// Whether an expression has a value whatever the columns' are: comparisons, casts to wider numbers, and sums and
/// products of numerics, which like the aggregates' sums are taken not to overflow. No subquery, nothing volatile.
fn cannot_fail(expr: &Expr) -> bool {
    let itself = match expr {
        Expr::Column(..)
        | Expr::Const(..)
        | Expr::Param(..)
        | Expr::Outer { .. }
        | Expr::Relabel(..)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull(..)
        | Expr::IsBool { .. } => true,
        Expr::InList { op, .. } => func::operator_class(op.oid).is_some(),
        Expr::Call { function, .. } => {
            let is_date = |ty: &TypeId| matches!(*ty, oid::DATE | oid::TIMESTAMP);
            func::operator_class(function.oid).is_some()
                || function.result == oid::BOOL
                    && function.args.len() == 2
                    && function.args.iter().all(is_date)
                || matches!(
                    (function.name, function.args),
                    ("int4" | "int8" | "numeric" | "float8", [oid::INT2])
                        | ("int8" | "numeric" | "float8", [oid::INT4])
                        | ("numeric" | "float8", [oid::INT8])
                        | ("float8", [oid::FLOAT4])
                        | ("text", [oid::BPCHAR | oid::NAME])
                        | (
                            "numeric_add" | "numeric_sub" | "numeric_mul",
                            [oid::NUMERIC, oid::NUMERIC]
                        )
                )
        }
        _ => false,
    };
    let mut all = itself;
    walk::children(expr, &mut |child| all = all && cannot_fail(child));
    all
}

/// The same of all conditions of joins in an item.
fn joins_cannot_fail(item: &From) -> bool {
    match item {
        From::Rel(_) => true,
        From::Join {
            left, right, on, ..
        } => {
            on.iter().all(cannot_fail)
                && [left, right].iter().all(|list| {
                    list.conditions.iter().all(cannot_fail)
                        && list.items.iter().all(joins_cannot_fail)
                })
        }
    }
}

/// Compares a condition something with one scalar subquery, which is on one side alone?
fn is_candidate(condition: &Expr) -> bool {
    let Expr::Call { function, args, .. } = condition else {
        return false;
    };
    let compares = func::operator_class(function.oid).is_some()
        || function.result == oid::BOOL && function.args.len() == 2;
    compares && args.len() == 2 && the_sublink(condition).is_some()
}

/// The one subquery of a condition, if that is scalar.
fn the_sublink(condition: &Expr) -> Option<&Arc<SubLink>> {
    fn collect<'e>(expr: &'e Expr, found: &mut Vec<&'e Arc<SubLink>>) -> bool {
        let mut plain = true;
        match expr {
            Expr::SubLink(link) => found.push(link),
            Expr::Subquery(_) => plain = false,
            _ => {}
        }
        walk::children(expr, &mut |child| plain &= collect(child, found));
        plain
    }
    let mut found = Vec::new();
    let plain = collect(condition, &mut found);
    match found.as_slice() {
        [only] if plain && matches!(only.kind, SubqueryKind::Scalar) => {
            (!only.call && only.shared == 0).then_some(only)
        }
        _ => None,
    }
}

/// Puts `value` in the place of the subquery.
fn put(expr: &mut Expr, value: &Expr) {
    if matches!(expr, Expr::SubLink(_)) {
        *expr = value.clone();
        return;
    }
    walk::children_mut(expr, &mut |child| put(child, value));
}

fn rename(expr: &mut Expr, name: &dyn Fn(ColId) -> Option<ColId>) {
    if let Expr::Column(id, _) = expr
        && let Some(other) = name(*id)
    {
        *id = other;
    }
    walk::children_mut(expr, &mut |child| rename(child, name));
}
