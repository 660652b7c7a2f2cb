//! Classes of equal columns among the conditions of a join: what follows from equalities.
//!
//! `a.x = b.x AND b.x = c.x` says `a.x = c.x`, too. With it items can be joined that no condition names together, so
//! that what is small is joined first.
//!
//! Invariants:
//! - What follows is never asked beside a condition of its class that was written: where it is left out, the others say
//!   the same.
//! - Wherever items with columns of one class are joined, at least one condition of the class is judged: all columns of
//!   a class are equal in every set of items that was joined.

use crate::planner::join_order::JoinEdge;
use crate::query::ColId;
use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_func as func;
use logstead_sql_func::{Comparison, Function};
use logstead_sql_types::value::{SqlType, oid};

/// An edge as the search sees it.
#[derive(Clone, Copy)]
pub(super) struct EdgeSummary {
    /// The items.
    pub(super) mask: u32,
    pub(super) share: f64,
    pub(super) hashable: bool,
    pub(super) class: Option<usize>,
    pub(super) follows: bool,
}

impl EdgeSummary {
    /// Whether it joins the two parts of a set.
    pub(super) fn crosses(&self, left: u32, right: u32) -> bool {
        self.mask & !(left | right) == 0 && self.mask & left != 0 && self.mask & right != 0
    }
}

/// The lines that are judged where two parts of a set are joined.
pub(super) fn judged(lines: &[EdgeSummary], left: u32, right: u32) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let crossing = |(_, line): &(usize, &EdgeSummary)| line.crosses(left, right);
    let all = || lines.iter().enumerate().filter(crossing);
    found.extend(all().filter(|(_, line)| !line.follows).map(|(at, _)| at));
    for (at, line) in all().filter(|(_, line)| line.follows) {
        if !found.iter().any(|at| lines[*at].class == line.class) {
            found.push(at);
        }
    }
    found
}

/// The share of rows that all lines within a set let through. Those of a class say the same again and again: as many
/// count as it takes to hold its columns together, the most selective ones.
pub(super) fn share_within(lines: &[EdgeSummary], set: u32) -> f64 {
    let within = |line: &&EdgeSummary| line.mask & !set == 0;
    let plain = lines.iter().filter(within).filter(|l| l.class.is_none());
    let mut share: f64 = plain.map(|line| line.share).product();
    let of_classes = lines.iter().filter(within).filter(|l| l.class.is_some());
    let mut of_classes: Vec<&EdgeSummary> = of_classes.collect();
    of_classes.sort_by(|a, b| a.share.total_cmp(&b.share));
    // By class: items that are held together.
    let mut held: Vec<(Option<usize>, u32)> = Vec::new();
    for line in of_classes {
        let touches =
            |(class, mask): &(Option<usize>, u32)| *class == line.class && mask & line.mask != 0;
        if held.iter().any(|h| touches(h) && line.mask & !h.1 == 0) {
            continue;
        }
        share *= line.share;
        let together = held
            .iter()
            .filter(|h| touches(h))
            .fold(line.mask, |m, h| m | h.1);
        held.retain(|h| !touches(h));
        held.push((line.class, together));
    }
    share
}

/// The columns of an equality within one type, and its operator.
pub(super) fn equality(condition: &Expr) -> Option<(&'static Function, &Expr, &Expr)> {
    let Expr::Call { function, args, .. } = condition else {
        return None;
    };
    let (Comparison::Eq, left, right) = func::operator_class(function.oid)? else {
        return None;
    };
    let [a, b] = args.as_slice() else {
        return None;
    };
    let columns = matches!((a, b), (Expr::Column(..), Expr::Column(..)));
    let one_type = left == right && a.ty().oid == b.ty().oid;
    (columns && one_type).then_some((*function, a, b))
}

/// Columns that all have to be equal by one operator.
struct EquivalenceClass {
    function: &'static Function,
    /// Each with its item.
    columns: Vec<(Expr, usize)>,
    /// Edges that say so.
    edges: Vec<usize>,
}

/// Columns of a class: of more, not all that follows is looked at.
const CLASS_MAX: usize = 8;

/// Adds what follows from equalities of columns of three items or more.
pub(super) fn add_what_follows(edges: &mut Vec<JoinEdge>, share: impl Fn(&Expr, &[usize]) -> f64) {
    let mut classes: Vec<EquivalenceClass> = Vec::new();
    for (at, edge) in edges.iter().enumerate() {
        let (Some(condition), true, [_, _]) = (&edge.condition, edge.hashable, &*edge.units) else {
            continue;
        };
        let Some((function, a, b)) = equality(condition) else {
            continue;
        };
        let owner = |of: &Expr| edge.owners.iter().find(|(id, _)| is_column(of, *id));
        let (Some((_, of_a)), Some((_, of_b))) = (owner(a), owner(b)) else {
            continue;
        };
        let mut class = EquivalenceClass {
            function,
            columns: vec![(a.clone(), *of_a), (b.clone(), *of_b)],
            edges: vec![at],
        };
        // It may bring classes together.
        let mut apart = Vec::with_capacity(classes.len() + 1);
        for other in classes {
            let shares = |(column, _): &(Expr, usize)| {
                class.columns.iter().any(|(c, _)| walk::same(c, column))
            };
            if other.function.oid == class.function.oid && other.columns.iter().any(shares) {
                for (column, unit) in other.columns {
                    if !class.columns.iter().any(|(c, _)| walk::same(c, &column)) {
                        class.columns.push((column, unit));
                    }
                }
                class.edges.extend(other.edges);
            } else {
                apart.push(other);
            }
        }
        apart.push(class);
        classes = apart;
    }
    for (number, class) in classes.iter().enumerate() {
        let mut new = Vec::new();
        for (at, (a, of_a)) in class.columns.iter().enumerate() {
            for (b, of_b) in class.columns.iter().skip(at + 1) {
                let mut units = vec![*of_a, *of_b];
                units.sort_unstable();
                let said = class.edges.iter().any(|e| edges[*e].units == units);
                let again = new.iter().any(|edge: &JoinEdge| edge.units == units);
                if of_a == of_b || said || again || class.columns.len() > CLASS_MAX {
                    continue;
                }
                let condition = Expr::Call {
                    function: class.function,
                    args: vec![a.clone(), b.clone()],
                    ty: SqlType::of(oid::BOOL),
                };
                new.push(JoinEdge {
                    share: share(&condition, &units),
                    condition: Some(condition),
                    units,
                    owners: Vec::new(),
                    hashable: true,
                    class: Some(number),
                    follows: true,
                });
            }
        }
        if !new.is_empty() {
            class
                .edges
                .iter()
                .for_each(|e| edges[*e].class = Some(number));
            edges.extend(new);
        }
    }
}

fn is_column(expr: &Expr, id: ColId) -> bool {
    matches!(expr, Expr::Column(own, _) if *own == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mask: u32, share: f64, follows: bool) -> EdgeSummary {
        EdgeSummary {
            mask,
            share,
            hashable: true,
            class: Some(0),
            follows,
        }
    }

    #[test]
    fn what_follows_is_judged_and_counted_where_nothing_else_is() {
        // a = b, b = c, and so a = c; besides, a condition over a and c.
        let lines = [
            line(0b011, 0.1, false),
            line(0b110, 0.2, false),
            line(0b101, 0.4, true),
            EdgeSummary {
                class: None,
                ..line(0b101, 0.5, false)
            },
        ];
        assert_eq!(judged(&lines, 0b001, 0b100), [3, 2]);
        assert_eq!(judged(&lines, 0b001, 0b110), [0, 3]);
        assert_eq!(judged(&lines, 0b101, 0b010), [0, 1]);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        near(share_within(&lines, 0b101), 0.4 * 0.5);
        near(share_within(&lines, 0b011), 0.1);
        // Two conditions hold three columns together.
        near(share_within(&lines, 0b111), 0.1 * 0.2 * 0.5);
    }
}
