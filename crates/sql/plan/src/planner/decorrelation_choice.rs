//! Conditions that have two forms, as a correlated subquery and as a join with grouped rows: which one costs less. The
//! pass `rewrite::decorrelate` makes the second form and says when both mean the same; here nothing is proved, one of
//! the two is taken out.
//!
//! The subquery runs once for each combination of outer values (`exec::operator::memoize` keeps what it gave), by index
//! where there is one; the groups are computed once, all of them.

use crate::planner::Planner;
use crate::planner::join::JoinItem;
use crate::query::From;
use crate::query::expr::Expr;
use crate::query::the_subquery;
use crate::{cost, walk};
use logstead_sql_types::error::Result;

/// Asking again for what a subquery gave for the same values, in the unit of `cost`.
const ASKED_AGAIN: f64 = 0.02;

impl Planner<'_> {
    /// Takes out the items of groups that cost more than the subqueries that they stand for, and puts those back as
    /// conditions; gives those that are about no item of the list.
    pub(super) fn choose_grouped(
        &mut self,
        units: &mut Vec<JoinItem>,
        joining: &mut Vec<Expr>,
    ) -> Result<Vec<Expr>> {
        let mut constant = Vec::new();
        if self.range.decorrelated.is_empty() {
            return Ok(constant);
        }
        let mut at = 0;
        while at < units.len() {
            let of_unit = match &units[at].from {
                From::Rel(rel) => self.range.decorrelated.iter().position(|g| g.rel == *rel),
                From::Join { .. } => None,
            };
            let Some(known) = of_unit else {
                at += 1;
                continue;
            };
            let mut known = self.range.decorrelated.swap_remove(known);
            self.plan_sublinks(&mut known.correlated)?;
            if self.groups_cost_less(units, at, joining, &known.correlated, &known.outer)? {
                at += 1;
                continue;
            }
            let unit = units.remove(at);
            joining.retain(|condition| !touches(condition, &unit));
            let mut touched = (0..units.len()).filter(|u| touches(&known.correlated, &units[*u]));
            match (touched.next(), touched.next()) {
                (None, _) => constant.push(known.correlated),
                (Some(only), None) => units[only].conditions.push(known.correlated),
                (Some(_), Some(_)) => joining.push(known.correlated),
            }
        }
        Ok(constant)
    }

    fn groups_cost_less(
        &mut self,
        units: &[JoinItem],
        at: usize,
        joining: &[Expr],
        correlated: &Expr,
        outer: &[Expr],
    ) -> Result<bool> {
        let Some(each) = the_subquery(correlated).map(|subquery| subquery.plan.cost) else {
            return Ok(true);
        };
        let (groups, cost) = self.join_item_estimate(&units[at])?;
        // Rows of everything else, and how many different ones the subquery asks about.
        let (mut rows, mut most, mut asked) = (1.0, 1.0_f64, 1.0);
        for (other, unit) in units.iter().enumerate().filter(|(other, _)| *other != at) {
            debug_assert_ne!(other, at);
            let (own, _) = self.join_item_estimate(unit)?;
            rows *= own;
            most = most.max(own);
            if outer.iter().any(|expr| touches(expr, unit)) {
                asked *= own;
            }
        }
        let others = joining.iter().filter(|c| !touches(c, &units[at]));
        let rows = (rows * self.share(others, most)).max(1.0);
        let asked = self.groups(outer.iter(), rows).min(asked);
        let by_subquery = asked * (each + cost::REWIND) + rows * ASKED_AGAIN;
        Ok(cost + cost::hash_join(rows, groups) < by_subquery)
    }
}

fn touches(expr: &Expr, unit: &JoinItem) -> bool {
    let mut ids = Vec::new();
    walk::column_ids(expr, &mut ids);
    ids.iter().any(|id| unit.owns(*id))
}
