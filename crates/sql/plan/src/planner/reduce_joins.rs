//! Which joins are inner ones after all: what stands in the list of items may be joined in any order.

use crate::planner::Planner;
use crate::planner::join::JoinItem;
use crate::query::RelSource;
use crate::query::expr::Expr;
use crate::query::plain_column;
use crate::query::refuses_null;
use crate::query::{From, FromList};
use crate::{JoinKind, cost, walk};
use logstead_sql_func as func;
use logstead_sql_func::Comparison;
use logstead_sql_types::error::Result;

impl Planner<'_> {
    /// Turns outer joins whose filled side a condition refuses into inner ones, semi joins with one partner at most
    /// too, and inner ones into list items.
    pub(super) fn flatten(
        &mut self,
        items: Vec<From>,
        conditions: &mut Vec<Expr>,
        units: &mut Vec<JoinItem>,
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
                    kind: JoinKind::Semi,
                    mut left,
                    mut right,
                    on,
                } => {
                    if self.has_one_partner(&right, &on)
                        && self.may_be_inner(&left, &right, &on, conditions)?
                    {
                        conditions.append(&mut left.conditions);
                        conditions.append(&mut right.conditions);
                        conditions.extend(on);
                        self.flatten(left.items, conditions, units)?;
                        self.flatten(right.items, conditions, units)?;
                    } else {
                        let kind = JoinKind::Semi;
                        let join = From::Join {
                            kind,
                            left,
                            right,
                            on,
                        };
                        self.unit(join, units);
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

    /// Whether a row has one partner at most: the other side is a table of which the conditions say a whole unique key.
    fn has_one_partner(&self, right: &FromList, on: &[Expr]) -> bool {
        let [From::Rel(rel)] = right.items.as_slice() else {
            return false;
        };
        let item = &self.range.rels[*rel];
        let RelSource::Table(table) = &item.source else {
            return false;
        };
        let (first, end) = item.ids();
        let own = first..end;
        let mut said = Vec::new();
        for condition in on {
            let Expr::Call { function, args, .. } = condition else {
                continue;
            };
            let class = func::operator_class(function.oid);
            let (Some((Comparison::Eq, ..)), [a, b]) = (class, args.as_slice()) else {
                continue;
            };
            for (key, value) in [(a, b), (b, a)] {
                let mut ids = Vec::new();
                walk::column_ids(value, &mut ids);
                let is_other = !ids.iter().any(|id| own.contains(id))
                    && !walk::is_volatile(value)
                    && !walk::has_subquery(value);
                if let Some(id) = plain_column(key)
                    && own.contains(&id)
                    && is_other
                {
                    said.push(id - item.first);
                }
            }
        }
        table.indexes.iter().any(|index| {
            let whole = |key: Vec<usize>| key.iter().all(|at| said.contains(at));
            index.holds_keys_once() && index.is_plain() && index.positions().is_some_and(whole)
        })
    }

    /// Whether a semi join may be an inner one: it may stand anywhere then, and so may what is asked of its left rows.
    /// A subquery there is asked about as few rows as before only if these are looked up.
    fn may_be_inner(
        &mut self,
        left: &FromList,
        right: &FromList,
        on: &[Expr],
        above: &[Expr],
    ) -> Result<bool> {
        let asks = |condition: &Expr| {
            walk::any(
                condition,
                &|e| matches!(e, Expr::Subquery(subquery) if !subquery.uncorrelated),
            )
        };
        if !above.iter().chain(&left.conditions).any(asks) {
            return Ok(true);
        }
        let ([From::Rel(left)], [From::Rel(right_rel)]) =
            (left.items.as_slice(), right.items.as_slice())
        else {
            return Ok(false);
        };
        let (left, right_rel) = (*left, *right_rel);
        let Some((_, each)) = self.index_lookup_through(left, on, &[])? else {
            return Ok(false);
        };
        let (rows, cost) = self.item_estimate(right_rel, &right.conditions)?;
        let (_, whole) = self.item_estimate(left, &[])?;
        Ok(cost + rows * (each + cost::REWIND) < whole)
    }
}
