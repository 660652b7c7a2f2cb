//! Expressions over grouped rows: which query an aggregate belongs to, what of an expression is a group key or
//! follows from a primary key among them, and the error for what is neither.
//!
//! GROUP BY itself, with its grouping sets, is `grouping`'s; calls of aggregates are `function`'s.

use super::grouping::is_constant;
use super::scope::NsColumnSource;
use super::{Binder, ColId, RelSource};
use crate::query::Grouping;
use crate::query::expr::Expr;
use crate::{AggregateCall, UserAggregate, walk};
use logstead_sql_catalog::{Constraint, ConstraintKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use std::sync::Arc;

pub(crate) use crate::query::walk::{alike, same};

/// Two aggregate calls that give the same value.
pub(crate) fn same_call(a: &AggregateCall, b: &AggregateCall) -> bool {
    let same_filter = match (&a.filter, &b.filter) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a, b),
        _ => false,
    };
    std::ptr::eq(a.aggregate, b.aggregate)
        && same_user(a.user.as_ref(), b.user.as_ref())
        && a.distinct == b.distinct
        && same_filter
        && a.args.len() == b.args.len()
        && a.args.iter().zip(&b.args).all(|(a, b)| same(a, b))
        && a.order.len() == b.order.len()
        && a.order.iter().zip(&b.order).all(|(a, b)| {
            same(&a.expr, &b.expr) && a.desc == b.desc && a.nulls_first == b.nulls_first
        })
}

/// No user's aggregate, or the same.
pub(super) fn same_user(a: Option<&Arc<UserAggregate>>, b: Option<&Arc<UserAggregate>>) -> bool {
    a.map(|a| a.oid) == b.map(|b| b.oid)
}

impl Binder<'_> {
    /// The frame an aggregate belongs to: the innermost one that gives one of its columns, or the current one.
    pub(crate) fn aggregate_level(&self, call: &AggregateCall) -> usize {
        let top = self.frames.len().saturating_sub(1);
        let mut ids = Vec::new();
        call.args
            .iter()
            .chain(&call.filter)
            .for_each(|arg| walk::column_ids(arg, &mut ids));
        call.order
            .iter()
            .for_each(|key| walk::column_ids(&key.expr, &mut ids));
        self.level_of(&ids).unwrap_or(top)
    }

    /// The innermost frame that gives one of these columns.
    pub(crate) fn level_of(&self, ids: &[ColId]) -> Option<usize> {
        let gives = |what: &NsColumnSource| match what {
            NsColumnSource::Column(id) => ids.contains(id),
            NsColumnSource::Merged(expr, _) => {
                let mut merged = Vec::new();
                walk::column_ids(expr, &mut merged);
                merged.iter().any(|id| ids.contains(id))
            }
            NsColumnSource::Gone { .. } => false,
        };
        self.frames
            .iter()
            .rposition(|f| f.ns.iter().flat_map(|i| &i.columns).any(|c| gives(&c.what)))
    }

    /// Rewrites an expression of the select list, HAVING or ORDER BY to refer to the grouped row, and refuses what the
    /// grouped row does not have.
    pub(crate) fn regroup(
        &mut self,
        expr: &mut Expr,
        grouping: &mut Grouping,
        rels: &[usize],
    ) -> Result<()> {
        replace_keys(expr, &grouping.keys, alike);
        let mut ids = Vec::new();
        own_ids(expr, &mut ids);
        let mut inner = Vec::new();
        walk::column_ids(expr, &mut inner);
        for id in inner {
            let rel = self.info(id).rel;
            if !rels.contains(&rel) || grouping.keys.iter().any(|(key, _)| *key == id) {
                continue;
            }
            if let Some(constraint) = self.follows_from_key(id, rel, grouping) {
                self.rely_on(constraint);
                let ty = self.info(id).ty;
                let key = grouping.keys.len();
                grouping.keys.push((id, Expr::Column(id, ty)));
                // The keys that it follows from are in all sets.
                if let Some(sets) = &mut grouping.sets {
                    sets.iter_mut().for_each(|set| set.push(key));
                }
                continue;
            }
            let name = self.column_label(id, rel);
            let at = self
                .frame()?
                .references
                .iter()
                .find(|(seen, _)| *seen == id)
                .and_then(|(_, at)| *at);
            let message = if ids.contains(&id) {
                format!(
                    "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
                )
            } else {
                format!("subquery uses ungrouped column \"{name}\" from outer query")
            };
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message).at(at));
        }
        Ok(())
    }

    /// The primary key's constraint, if the column's table has its whole primary key among the group keys.
    fn follows_from_key(&self, id: ColId, rel: usize, grouping: &Grouping) -> Option<Oid> {
        let item = &self.range.rels[rel];
        let RelSource::Table(table) = &item.source else {
            return None;
        };
        // A view has no key.
        if self.view_columns.contains_key(&id) {
            return None;
        }
        debug_assert!(id >= item.first, "a column belongs to its item");
        // A deferrable key may be there twice for a while.
        let mut keys = table.indexes.iter().filter(|i| i.primary && !i.deferrable);
        let is_everywhere = |key: usize| match &grouping.sets {
            Some(sets) => sets.iter().all(|set| set.contains(&key)),
            None => true,
        };
        let key = keys.find(|index| {
            index.columns.iter().all(|column| {
                let key = column.position().map(|position| item.first + position);
                grouping.keys.iter().enumerate().any(|(i, (_, e))| {
                    matches!(e, Expr::Column(k, _) if Some(*k) == key) && is_everywhere(i)
                })
            })
        })?;
        let of_key =
            |c: &&Arc<Constraint>| matches!(c.kind, ConstraintKind::PrimaryKey(i) if i == key.oid);
        table.constraints.iter().find(of_key).map(|c| c.oid)
    }
}

/// Column identities outside of subqueries' plans; those of functions that are called belong to the row.
fn own_ids(expr: &Expr, out: &mut Vec<ColId>) {
    match expr {
        Expr::Column(id, _) => out.push(*id),
        Expr::Subquery(subquery) if subquery.call => {
            walk::plan_exprs(&subquery.plan, 0, &mut |e, _| own_ids(e, out));
        }
        Expr::SubLink(link) if link.call => {
            let mut all = Vec::new();
            link.exprs(&mut |e| own_ids(e, &mut all));
            out.extend(all.into_iter().filter(|id| !link.own.contains(*id)));
        }
        _ => {}
    }
    walk::children(expr, &mut |e| own_ids(e, out));
}

fn replace_keys(expr: &mut Expr, keys: &[(ColId, Expr)], is: fn(&Expr, &Expr) -> bool) {
    if matches!(expr, Expr::Const(..)) {
        return;
    }
    for (id, key) in keys {
        if is(expr, key) && !is_constant(key) {
            *expr = Expr::Column(*id, key.ty());
            return;
        }
    }
    // A function's arguments are the row's own expressions.
    if let Expr::Subquery(subquery) = expr
        && subquery.call
    {
        let subquery = Arc::make_mut(subquery);
        walk::plan_exprs_mut(&mut subquery.plan, 0, &mut |e, _| {
            replace_keys(e, keys, same)
        });
    }
    if let Expr::SubLink(link) = expr
        && link.call
    {
        Arc::make_mut(link).exprs_mut(&mut |e| replace_keys(e, keys, same));
    }
    walk::children_mut(expr, &mut |e| replace_keys(e, keys, is));
}
