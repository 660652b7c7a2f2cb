//! EXISTS and IN in WHERE as semi and anti joins.
//!
//! A conjunct `EXISTS (SELECT ...)`, `NOT EXISTS (SELECT ...)` or `x IN (SELECT ...)` over a plain SELECT (no grouping,
//! LIMIT or set-returning functions) becomes a join of everything FROM has with the subquery's own FROM, so that it can
//! be answered by hash or by index. `NOT IN` stays a subquery: a NULL among its rows decides it.

use super::decorrelate::may_be_grouped;
use super::select::{Tail, push_conjuncts};
use super::{Binder, COLUMN_BASE, ColId};
use crate::expr::{Expr, Subquery, SubqueryKind};
use crate::query::Body;
use crate::query::{Distinct, From, FromList, Select};
use crate::{JoinKind, walk};
use logstead_sql_parse::lowered::{self as ast, BinaryOperator, Expr as Ast, SetExpr};
use logstead_sql_parse::{row_of, strip};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// A conjunct that may become a join.
enum Candidate<'a> {
    Exists(&'a ast::Query, bool),
    In(&'a Ast, &'a ast::Query),
}

impl Binder<'_> {
    /// Binds WHERE into `from`: conditions, and joins where subqueries allow.
    pub(crate) fn where_clause(&mut self, selection: &Ast, from: &mut FromList) -> Result<()> {
        let mut conjuncts = Vec::new();
        let mut head = strip(selection);
        while let Ast::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } = head
        {
            conjuncts.push(right.as_ref());
            head = strip(left);
        }
        conjuncts.push(head);
        let plain = |c: &&Ast| candidate(c).is_none() && !may_be_grouped(c);
        if conjuncts.iter().all(plain) || from.items.is_empty() {
            let condition = self.condition_of(selection, "WHERE")?;
            push_conjuncts(condition, &mut from.conditions);
            return Ok(());
        }
        let mut joins = Vec::new();
        let mut groups = Vec::new();
        let own = self.range.ranges(from);
        let what = if conjuncts.len() > 1 { "AND" } else { "WHERE" };
        for conjunct in conjuncts.into_iter().rev() {
            match candidate(conjunct) {
                None => {
                    let condition = self.condition_of(conjunct, what)?;
                    match self.group_aggregate(conjunct, &condition, &own)? {
                        Some(item) => groups.push(item),
                        None => push_conjuncts(condition, &mut from.conditions),
                    }
                }
                Some(candidate) => match self.semi_join(&candidate)? {
                    Ok(join) => joins.push(join),
                    Err(condition) => push_conjuncts(condition, &mut from.conditions),
                },
            }
        }
        for (kind, right, on) in joins {
            let left = std::mem::take(from);
            from.items = vec![From::Join {
                kind,
                left: Box::new(left),
                right: Box::new(right),
                on,
            }];
        }
        // What other conditions leave is compared with groups, or asked about.
        for (rel, conditions) in groups {
            from.items.push(From::Rel(rel));
            from.conditions.extend(conditions);
        }
        Ok(())
    }

    /// The join, or the plain condition if it has to stay a subquery.
    #[allow(
        clippy::type_complexity,
        reason = "kind, right side, condition: taken apart by the one caller"
    )]
    fn semi_join(
        &mut self,
        candidate: &Candidate<'_>,
    ) -> Result<std::result::Result<(JoinKind, FromList, Vec<Expr>), Expr>> {
        let (query, negated) = match candidate {
            Candidate::Exists(query, negated) => (*query, *negated),
            Candidate::In(_, query) => (*query, false),
        };
        let SetExpr::Select(select) = query.body.as_ref() else {
            return Err(SqlError::internal(
                "a candidate for a semi join is a SELECT",
            ));
        };
        let lefts = match candidate {
            Candidate::Exists(..) => Vec::new(),
            Candidate::In(left, _) => {
                let items = row_of(left).unwrap_or_else(|| vec![left]);
                items
                    .into_iter()
                    .map(|item| self.expr(item))
                    .collect::<Result<Vec<_>>>()?
            }
        };
        let tail = Tail {
            order_by: query.order_by.as_ref(),
            ..Tail::default()
        };
        let block = self.deeper(|b| b.select(select, &tail, true))?;
        let at = match candidate {
            Candidate::Exists(..) => None,
            Candidate::In(left, _) => self.operator_at(left),
        };
        if let Candidate::In(..) = candidate
            && block.outputs.len() != lefts.len()
        {
            let message = if block.outputs.len() < lefts.len() {
                "subquery has too few columns"
            } else {
                "subquery has too many columns"
            };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        // What is asked anew for each outer row must not become a condition of the right side, or one of each pair.
        let simple = self.simple(&block) && !lefts.iter().any(walk::is_volatile);
        let mut conditions = Vec::new();
        if simple {
            for (left, output) in lefts.iter().zip(&block.outputs) {
                conditions.push(self.operator("=", left.clone(), output.expr.clone(), at)?);
            }
            let kind = if negated {
                JoinKind::Anti
            } else {
                JoinKind::Semi
            };
            // Conditions that need the outer row join; the rest stays with the subquery's FROM.
            let own = self.range.ranges(&block.from);
            if matches!(candidate, Candidate::Exists(..)) {
                self.forget_outputs(&block.from, &own);
            }
            let mut right = block.from;
            let (stay, join): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut right.conditions)
                .into_iter()
                .partition(|c| within(c, &own) || walk::has_subquery(c));
            // A condition with a subquery of its own may still look at the outer row.
            if stay.iter().all(|c| within(c, &own)) {
                right.conditions = stay;
                conditions.extend(join);
                return Ok(Ok((kind, right, conditions)));
            }
            right.conditions = stay;
            right.conditions.extend(join);
            let outputs = match candidate {
                // Their columns are forgotten.
                Candidate::Exists(..) => Vec::new(),
                Candidate::In(..) => block.outputs,
            };
            let block = Select {
                from: right,
                outputs,
                ..Select::default()
            };
            return self.as_subquery(lefts, block, negated, at).map(Err);
        }
        self.as_subquery(lefts, block, negated, at).map(Err)
    }

    /// Of what EXISTS selects nothing is asked: columns are read only if conditions are about them.
    fn forget_outputs(&mut self, from: &FromList, own: &[(ColId, ColId)]) {
        let mut needed = Vec::new();
        self.range
            .list_exprs(from, &mut |e| walk::column_ids(e, &mut needed));
        for id in own.iter().flat_map(|(from, to)| *from..*to) {
            self.range.columns[id - COLUMN_BASE].used &= needed.contains(&id);
        }
    }

    fn as_subquery(
        &mut self,
        lefts: Vec<Expr>,
        block: Select,
        negated: bool,
        at: Option<usize>,
    ) -> Result<Expr> {
        let plan = self.finish(Body::Select(Box::new(block)))?;
        if !lefts.is_empty() {
            return self.compare_with_plan(lefts, "=", plan, false, at);
        }
        let mut ids = Vec::new();
        walk::plan_ids(&plan, &mut ids);
        let exists = Expr::Subquery(Arc::new(Subquery {
            plan,
            kind: SubqueryKind::Exists,
            uncorrelated: ids.is_empty(),
            ty: SqlType::of(oid::BOOL),
            shared: 0,
            call: false,
        }));
        Ok(if negated {
            Expr::Not(Box::new(exists))
        } else {
            exists
        })
    }

    /// Nothing about the block but its rows' existence and values matters, and only its own conditions look outside.
    fn simple(&self, block: &Select) -> bool {
        let plain = block.grouping.is_none()
            && block.sets.is_empty()
            && block.windows.is_empty()
            && block.limit.is_none()
            && block.offset.is_none()
            && block.locks.is_none()
            && !block.from.items.is_empty()
            && matches!(block.distinct, Distinct::No | Distinct::All)
            && block
                .outputs
                .iter()
                .all(|o| !walk::is_volatile(&o.expr) && !walk::has_subquery(&o.expr))
            && block.from.conditions.iter().all(|c| !walk::is_volatile(c));
        if !plain {
            return false;
        }
        let own = self.range.ranges(&block.from);
        let mut inside = Vec::new();
        for item in &block.from.items {
            self.range.inside(item, &mut inside);
        }
        inside
            .iter()
            .all(|id| own.iter().any(|(from, to)| (*from..*to).contains(id)))
    }
}

pub(super) fn within(expr: &Expr, ranges: &[(ColId, ColId)]) -> bool {
    let mut ids = Vec::new();
    walk::column_ids(expr, &mut ids);
    ids.iter()
        .all(|id| ranges.iter().any(|(from, to)| (*from..*to).contains(id)))
}

fn candidate(expr: &Ast) -> Option<Candidate<'_>> {
    let plain = |query: &ast::Query| {
        query.with.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty()
            && matches!(query.body.as_ref(), SetExpr::Select(select) if !select.from.is_empty())
    };
    match strip(expr) {
        Ast::Exists { subquery, negated } if plain(subquery) => {
            Some(Candidate::Exists(subquery, *negated))
        }
        Ast::UnaryOp {
            op: ast::UnaryOperator::Not,
            expr,
        } => match strip(expr) {
            Ast::Exists { subquery, negated } if plain(subquery) => {
                Some(Candidate::Exists(subquery, !*negated))
            }
            _ => None,
        },
        Ast::InSubquery {
            expr,
            subquery,
            negated: false,
        } if plain(subquery) => Some(Candidate::In(expr, subquery)),
        _ => None,
    }
}
