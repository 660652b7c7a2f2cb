//! EXISTS and IN among a block's conditions become semi and anti joins (PostgreSQL's `pull_up_sublinks`).
//!
//! Rule: a condition `EXISTS (SELECT ...)`, `NOT EXISTS (SELECT ...)` or `x IN (SELECT ...)` over a plain SELECT
//! becomes
//! a join of everything that FROM has with the subquery's own FROM, so that it can be answered by hash or by index.
//! Plain is a SELECT without grouping, LIMIT, windows and set-returning functions, whose outputs and conditions call
//! nothing volatile, and of which only its own conditions refer to the row around it. `NOT IN` stays a subquery: a NULL
//! among its rows decides it. So does a subquery that stands in several places, as a view's column may: it is one, and
//! its columns are used by all of them.
//!
//! A subquery of the subquery is pulled up before it.

use crate::query::expr::{Expr, SubLink, SubqueryKind};
use crate::query::{
    COLUMN_BASE, ColId, ColumnInfo, Distinct, From, FromItems, FromList, QueryTree, RangeTable,
    Rel, Select, renumber_items,
};
use crate::{JoinKind, walk};
use logstead_sql_func::{Comparison, Function, operator_class};
use logstead_sql_types::value::{SqlType, oid};
use std::sync::Arc;

/// A join that stands for a condition.
struct PulledUp {
    kind: JoinKind,
    right: FromList,
    on: Vec<Expr>,
}

impl RangeTable {
    /// Makes joins of the conditions of a block that may be joins.
    pub(crate) fn pull_up_sublinks(&mut self, select: &mut Select) {
        if !self.has_sublinks {
            return;
        }
        let before = self.rels.len();
        pull_up(&mut self.rels, 0, &mut self.columns, select);
        self.own_columns_from(before);
    }
}

/// The same of a block whose items are `rels`, the first of which has the number `first_rel`.
fn pull_up(rels: &mut Vec<Rel>, first_rel: usize, columns: &mut [ColumnInfo], select: &mut Select) {
    if !select.may_join_sublinks || select.from.items.is_empty() {
        return;
    }
    let from = &mut select.from;
    let mut joins = Vec::new();
    for condition in std::mem::take(&mut from.conditions) {
        match as_join(rels, first_rel, columns, condition) {
            Ok(join) => joins.push(join),
            Err(condition) => from.conditions.push(condition),
        }
    }
    if joins.is_empty() {
        return;
    }
    // What is asked of the block's own rows is asked before they are joined. What looks outside stays above: a block of
    // which this is the subquery may need it for a join of its own.
    let own = FromItems { rels, first_rel }.ranges(from);
    let (mut below, above) = std::mem::take(&mut from.conditions)
        .into_iter()
        .partition(|condition| within(condition, &own));
    from.conditions = above;
    for PulledUp { kind, right, on } in joins {
        let left = FromList {
            items: std::mem::take(&mut from.items),
            conditions: std::mem::take(&mut below),
        };
        from.items = vec![From::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
        }];
    }
}

/// The join, or the condition if it has to stay a subquery.
fn as_join(
    rels: &mut Vec<Rel>,
    first_rel: usize,
    columns: &mut [ColumnInfo],
    condition: Expr,
) -> Result<PulledUp, Expr> {
    let (link, is_negated) = match condition {
        Expr::SubLink(link) if is_alone(&link) && is_candidate(&link, false) => (link, false),
        Expr::Not(inner) => match *inner {
            Expr::SubLink(link) if is_alone(&link) && is_candidate(&link, true) => (link, true),
            other => return Err(Expr::Not(Box::new(other))),
        },
        other => return Err(other),
    };
    let mut link = Arc::unwrap_or_clone(link);
    if let QueryTree::Select(block) = &mut link.body {
        pull_up(&mut link.rels, link.first_rel, columns, block);
    }
    if !is_plain(&link) {
        let link = Expr::SubLink(Arc::new(link));
        return Err(match is_negated {
            true => Expr::Not(Box::new(link)),
            false => link,
        });
    }
    let SubLink {
        mut body,
        rels: own_rels,
        first_rel: own_first,
        kind,
        ..
    } = link;
    renumber_items(rels, first_rel, &mut body, own_rels, own_first);
    let block = match body {
        QueryTree::Select(block) => *block,
        // As asked by `is_plain`.
        _ => Select::default(),
    };
    let mut on = compared(kind, &block);
    let is_exists = on.is_empty();
    let items = FromItems { rels, first_rel };
    let own = items.ranges(&block.from);
    if is_exists {
        forget_outputs(&items, columns, &block.from, &own);
    }
    // Conditions that need the outer row join; the rest stays with the subquery's FROM.
    let mut right = block.from;
    let (stay, joining): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut right.conditions)
        .into_iter()
        .partition(|c| within(c, &own) || walk::has_subquery(c));
    right.conditions = stay;
    on.extend(joining);
    let kind = match is_negated {
        true => JoinKind::Anti,
        false => JoinKind::Semi,
    };
    Ok(PulledUp { kind, right, on })
}

/// The comparisons of IN, between operands and outputs.
fn compared(kind: SubqueryKind, block: &Select) -> Vec<Expr> {
    let SubqueryKind::Compare { left, ops, .. } = kind else {
        return Vec::new();
    };
    let outputs = block.outputs.iter().map(|output| output.expr.clone());
    let pairs = left.into_iter().zip(outputs).zip(ops);
    let compare = |((left, output), function): ((Expr, Expr), &'static Function)| Expr::Call {
        function,
        args: vec![left, output],
        ty: SqlType::of(oid::BOOL),
    };
    pairs.map(compare).collect()
}

/// Is it EXISTS, or IN without NOT, as far as the expression tells?
fn is_candidate(link: &SubLink, is_negated: bool) -> bool {
    let is_equality =
        |op: &&'static Function| matches!(operator_class(op.oid), Some((Comparison::Eq, _, _)));
    let fits = match &link.kind {
        SubqueryKind::Exists => true,
        SubqueryKind::Compare {
            left,
            ops,
            equals,
            all: false,
            ..
        } => {
            // What is asked anew for each outer row must not become a condition of each pair.
            !is_negated
                && equals.is_empty()
                && ops.iter().all(is_equality)
                && !left.iter().any(walk::is_volatile)
        }
        _ => false,
    };
    fits && !link.call && link.shared == 0 && matches!(link.body, QueryTree::Select(_))
}

/// Does it stand in one place only?
fn is_alone(link: &Arc<SubLink>) -> bool {
    Arc::strong_count(link) == 1
}

/// Does nothing about the block matter but its rows' existence and values, and look only its own conditions outside?
fn is_plain(link: &SubLink) -> bool {
    let QueryTree::Select(block) = &link.body else {
        return false;
    };
    let shape = block.grouping.is_none()
        && block.sets.is_empty()
        && block.windows.is_empty()
        && block.limit.is_none()
        && block.offset.is_none()
        && block.locks.is_none()
        && !block.from.items.is_empty()
        && matches!(block.distinct, Distinct::No | Distinct::All);
    let outputs = || {
        let mut all = block.outputs.iter();
        all.all(|o| !walk::is_volatile(&o.expr) && !walk::has_subquery(&o.expr))
    };
    if !shape || !outputs() || block.from.conditions.iter().any(walk::is_volatile) {
        return false;
    }
    let items = FromItems {
        rels: &link.rels,
        first_rel: link.first_rel,
    };
    let own = items.ranges(&block.from);
    let mut inside = Vec::new();
    for item in &block.from.items {
        items.inside(item, &mut inside);
    }
    let is_own = |id: &ColId| own.iter().any(|(from, to)| (*from..*to).contains(id));
    // A condition with a subquery of its own stays, and so must not look at the outer row.
    let mut conditions = block.from.conditions.iter();
    inside.iter().all(is_own) && conditions.all(|c| !walk::has_subquery(c) || within(c, &own))
}

/// Of what EXISTS selects nothing is asked: columns are read only if conditions are about them.
fn forget_outputs(
    items: &FromItems<'_>,
    columns: &mut [ColumnInfo],
    from: &FromList,
    own: &[(ColId, ColId)],
) {
    let mut needed = Vec::new();
    items.list(from, &mut |e| walk::column_ids(e, &mut needed));
    for id in own.iter().flat_map(|(from, to)| *from..*to) {
        columns[id - COLUMN_BASE].used &= needed.contains(&id);
    }
}

/// Are all columns of an expression in these ranges?
pub(super) fn within(expr: &Expr, ranges: &[(ColId, ColId)]) -> bool {
    let mut ids = Vec::new();
    walk::column_ids(expr, &mut ids);
    ids.iter()
        .all(|id| ranges.iter().any(|(from, to)| (*from..*to).contains(id)))
}
