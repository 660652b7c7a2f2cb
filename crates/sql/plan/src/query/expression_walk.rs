//! Walks over the expressions of the logical tree.
//!
//! The walks that only look go down into queries in FROM. Those that change do not, unless said otherwise: the items of
//! FROM belong to the range table, or to the subquery that has them.

use super::user_aggregate::UserAggregate;
use super::walk;
use super::{
    BoundSubquery, ColId, Definition, Distinct, From, FromList, Ordered, QueryTree, Rel, RelSource,
    Select, collect_rels,
};
use crate::Plan;
use crate::query::expr::Expr;

/// The FROM items of a part of a tree: of a statement, or of a subquery that has its own.
pub(crate) struct FromItems<'r> {
    pub(crate) rels: &'r [Rel],
    /// The number of the first of them.
    pub(crate) first_rel: usize,
}

impl FromItems<'_> {
    fn rel(&self, number: usize) -> &Rel {
        &self.rels[number - self.first_rel]
    }

    /// Identities of the columns of a list's items.
    pub(crate) fn ranges(&self, list: &FromList) -> Vec<(ColId, ColId)> {
        let mut rels = Vec::new();
        collect_rels(list, &mut rels);
        rels.iter().map(|&rel| self.rel(rel).ids()).collect()
    }

    /// Identities that an item refers to within itself.
    pub(crate) fn inside(&self, item: &From, out: &mut Vec<ColId>) {
        match item {
            From::Rel(rel) => match &self.rel(*rel).source {
                RelSource::Plan(Some(plan)) => walk::plan_ids(plan, out),
                RelSource::Query(Some(query)) => self.foreign_ids(query, out),
                RelSource::Function { args, .. } => {
                    args.iter().for_each(|a| walk::column_ids(a, out))
                }
                _ => {}
            },
            From::Join {
                left, right, on, ..
            } => {
                for list in [left, right] {
                    list.items.iter().for_each(|i| self.inside(i, out));
                    list.conditions
                        .iter()
                        .for_each(|c| walk::column_ids(c, out));
                }
                on.iter().for_each(|c| walk::column_ids(c, out));
            }
        }
    }

    /// Identities of others that a query in FROM refers to.
    pub(crate) fn foreign_ids(&self, query: &BoundSubquery, out: &mut Vec<ColId>) {
        let mut all = Vec::new();
        self.body(&query.body, &mut |e| walk::column_ids(e, &mut all));
        out.extend(all.into_iter().filter(|id| !query.own.contains(*id)));
    }

    /// Every expression of a body.
    pub(crate) fn body(&self, body: &QueryTree, f: &mut dyn FnMut(&Expr)) {
        match body {
            QueryTree::Select(select) => self.select(select, f),
            QueryTree::Values(rows, _) => rows.iter().flatten().for_each(f),
            QueryTree::SetOps(first, rest) => {
                self.body(first, f);
                rest.iter().for_each(|b| self.body(&b.body, f));
            }
            // Its expressions name positions alone, but for subqueries in them.
            QueryTree::Project(input, exprs, _) => {
                exprs.iter().for_each(&mut *f);
                self.body(input, f);
            }
            QueryTree::Ordered(ordered) => {
                ordered.keys.iter().for_each(|k| f(&k.expr));
                let counts = ordered.limit.iter().chain(&ordered.offset);
                counts.for_each(&mut *f);
                self.body(&ordered.input, f);
            }
            QueryTree::With(definitions, body) => {
                for definition in definitions {
                    definition.bodies().for_each(|body| self.body(body, f));
                }
                self.body(body, f);
            }
            // It stands in no expression, and in the WITH of a whole statement only: nobody looks into it from outside.
            QueryTree::Change(_) => {}
        }
    }

    /// Does `test` hold for an aggregate of users in a body?
    pub(crate) fn any_user_aggregate(
        &self,
        body: &QueryTree,
        test: &dyn Fn(&UserAggregate) -> bool,
    ) -> bool {
        let of_select = |select: &Select| {
            let grouped = select.grouping.iter().flat_map(|g| &g.aggregates);
            let grouped = grouped.filter_map(|(_, call)| call.user.as_ref());
            let windows = select.windows.iter().flat_map(|window| &window.calls);
            let windows = windows.filter_map(|(_, call)| call.user.as_ref());
            grouped.chain(windows).any(|user| test(user))
                || self.any_below(&select.from, &|body| self.any_user_aggregate(body, test))
        };
        match body {
            QueryTree::Select(select) => of_select(select),
            QueryTree::Values(..) | QueryTree::Change(_) => false,
            QueryTree::Project(input, ..) => self.any_user_aggregate(input, test),
            QueryTree::Ordered(ordered) => self.any_user_aggregate(&ordered.input, test),
            QueryTree::SetOps(first, rest) => {
                self.any_user_aggregate(first, test)
                    || rest
                        .iter()
                        .any(|branch| self.any_user_aggregate(&branch.body, test))
            }
            QueryTree::With(definitions, body) => {
                let mut bodies = definitions.iter().flat_map(Definition::bodies);
                bodies.any(|body| self.any_user_aggregate(body, test))
                    || self.any_user_aggregate(body, test)
            }
        }
    }

    /// Does `test` hold for a query in a FROM list?
    fn any_below(&self, list: &FromList, test: &dyn Fn(&QueryTree) -> bool) -> bool {
        list.items.iter().any(|item| match item {
            From::Rel(rel) => match &self.rel(*rel).source {
                RelSource::Query(Some(query)) => test(&query.body),
                _ => false,
            },
            From::Join { left, right, .. } => {
                self.any_below(left, test) || self.any_below(right, test)
            }
        })
    }

    fn select(&self, select: &Select, f: &mut dyn FnMut(&Expr)) {
        self.list(&select.from, f);
        if let Some(grouping) = &select.grouping {
            grouping.keys.iter().for_each(|(_, e)| f(e));
            for (_, call) in &grouping.aggregates {
                call.args.iter().chain(&call.filter).for_each(&mut *f);
                call.order.iter().for_each(|k| f(&k.expr));
            }
            grouping.having.iter().for_each(&mut *f);
        }
        for window in &select.windows {
            window.partition.iter().for_each(&mut *f);
            window.order.iter().for_each(|k| f(&k.expr));
            window.frame.exprs(f);
            for (_, call) in &window.calls {
                call.args.iter().chain(&call.filter).for_each(&mut *f);
            }
        }
        let sets = select.sets.iter().chain(&select.grouped_sets);
        sets.for_each(|(_, e)| f(e));
        select.outputs.iter().for_each(|o| f(&o.expr));
        if let Distinct::On(keys) = &select.distinct {
            keys.iter().for_each(&mut *f);
        }
        select.order.iter().for_each(|k| f(&k.expr));
        select.limit.iter().chain(&select.offset).for_each(f);
    }

    /// Every expression of a FROM list.
    pub(crate) fn list(&self, list: &FromList, f: &mut dyn FnMut(&Expr)) {
        list.conditions.iter().for_each(&mut *f);
        for item in &list.items {
            match item {
                From::Rel(rel) => {
                    let rel = self.rel(*rel);
                    rel.guard.iter().for_each(&mut *f);
                    match &rel.source {
                        RelSource::Plan(Some(plan)) => walk::plan_exprs(plan, 0, &mut |e, _| f(e)),
                        RelSource::Query(Some(query)) => self.body(&query.body, f),
                        RelSource::Function { args, .. } => args.iter().for_each(&mut *f),
                        _ => {}
                    }
                }
                From::Join {
                    left, right, on, ..
                } => {
                    self.list(left, f);
                    self.list(right, f);
                    on.iter().for_each(&mut *f);
                }
            }
        }
    }
}

/// Every expression of a body, to change them; not those of its FROM items, nor of queries in FROM.
pub(crate) fn body_exprs_mut(body: &mut QueryTree, f: &mut dyn FnMut(&mut Expr)) {
    match body {
        QueryTree::Select(select) => select.exprs_mut(f),
        QueryTree::Values(rows, _) => rows.iter_mut().flatten().for_each(f),
        QueryTree::SetOps(first, rest) => {
            body_exprs_mut(first, f);
            rest.iter_mut()
                .for_each(|branch| body_exprs_mut(&mut branch.body, f));
        }
        QueryTree::Project(input, exprs, _) => {
            exprs.iter_mut().for_each(&mut *f);
            body_exprs_mut(input, f);
        }
        QueryTree::Ordered(ordered) => {
            ordered.exprs_mut(f);
            body_exprs_mut(&mut ordered.input, f);
        }
        QueryTree::With(definitions, body) => {
            for definition in definitions {
                definition
                    .bodies_mut()
                    .for_each(|body| body_exprs_mut(body, f));
            }
            body_exprs_mut(body, f);
        }
        QueryTree::Change(_) => {}
    }
}

impl Ordered {
    /// Its own expressions, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.keys.iter_mut().for_each(|k| f(&mut k.expr));
        let counts = self.limit.iter_mut().chain(&mut self.offset);
        counts.for_each(f);
    }
}

impl Definition {
    fn bodies(&self) -> impl Iterator<Item = &QueryTree> {
        let term = self.recursive.iter().map(|(term, _)| term);
        std::iter::once(&self.body).chain(term)
    }

    fn bodies_mut(&mut self) -> impl Iterator<Item = &mut QueryTree> {
        let term = self.recursive.iter_mut().map(|(term, _)| term);
        std::iter::once(&mut self.body).chain(term)
    }
}

impl Select {
    /// Every expression of the block but those of its FROM items, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.from.exprs_mut(f);
        if let Some(grouping) = &mut self.grouping {
            grouping.keys.iter_mut().for_each(|(_, e)| f(e));
            for (_, call) in &mut grouping.aggregates {
                walk::call_exprs_mut(call, f);
            }
            grouping.having.iter_mut().for_each(&mut *f);
        }
        for window in &mut self.windows {
            window.partition.iter_mut().for_each(&mut *f);
            window.order.iter_mut().for_each(|k| f(&mut k.expr));
            window.frame.exprs_mut(f);
            for (_, call) in &mut window.calls {
                let all = call.args.iter_mut().chain(&mut call.filter);
                all.for_each(&mut *f);
            }
        }
        let sets = self.sets.iter_mut().chain(&mut self.grouped_sets);
        sets.for_each(|(_, e)| f(e));
        self.outputs.iter_mut().for_each(|o| f(&mut o.expr));
        if let Distinct::On(keys) = &mut self.distinct {
            keys.iter_mut().for_each(&mut *f);
        }
        self.order.iter_mut().for_each(|k| f(&mut k.expr));
        let counts = self.limit.iter_mut().chain(&mut self.offset);
        counts.for_each(f);
    }
}

impl FromList {
    /// Conditions of the list and of joins in it, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.conditions.iter_mut().for_each(&mut *f);
        for item in &mut self.items {
            if let From::Join {
                left, right, on, ..
            } = item
            {
                left.exprs_mut(f);
                right.exprs_mut(f);
                on.iter_mut().for_each(&mut *f);
            }
        }
    }
}

impl Rel {
    /// Every expression of the item, and of a query that it is, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.guard.iter_mut().for_each(&mut *f);
        match &mut self.source {
            RelSource::Plan(Some(plan)) => walk::plan_exprs_mut(plan, 0, &mut |e, _| f(e)),
            RelSource::Query(Some(query)) => body_exprs_mut(&mut query.body, f),
            RelSource::Function { args, asked, .. } => {
                args.iter_mut().for_each(&mut *f);
                asked.iter_mut().for_each(|(_, e)| f(e));
            }
            _ => {}
        }
    }

    /// Does `test` hold for a part that is a plan already?
    pub(crate) fn any_plan(&self, test: &dyn Fn(&Plan) -> bool) -> bool {
        matches!(&self.source, RelSource::Plan(Some(plan)) if test(plan))
    }
}

impl QueryTree {
    /// Adds `delta` to the numbers of FROM items in the body; those within items are not its own.
    pub(crate) fn renumber_rels(&mut self, delta: usize) {
        match self {
            QueryTree::Select(select) => {
                select.from.renumber_rels(delta);
                let marks = select.locks.iter_mut().flatten();
                marks.for_each(|mark| mark.rel = mark.rel.wrapping_add(delta));
            }
            QueryTree::Values(..) | QueryTree::Change(_) => {}
            QueryTree::Project(input, ..) => input.renumber_rels(delta),
            QueryTree::Ordered(ordered) => ordered.input.renumber_rels(delta),
            QueryTree::With(definitions, body) => {
                let bodies = definitions.iter_mut().flat_map(Definition::bodies_mut);
                bodies.for_each(|body| body.renumber_rels(delta));
                body.renumber_rels(delta);
            }
            QueryTree::SetOps(first, rest) => {
                first.renumber_rels(delta);
                rest.iter_mut()
                    .for_each(|branch| branch.body.renumber_rels(delta));
            }
        }
    }
}

impl FromList {
    fn renumber_rels(&mut self, delta: usize) {
        for item in &mut self.items {
            match item {
                From::Rel(rel) => *rel = rel.wrapping_add(delta),
                From::Join { left, right, .. } => {
                    left.renumber_rels(delta);
                    right.renumber_rels(delta);
                }
            }
        }
    }
}

/// Puts the items of a subquery behind `rels`, the first of which has the number `first_rel`. Its body then knows them
/// by the numbers that they have there.
pub(crate) fn renumber_items(
    rels: &mut Vec<Rel>,
    first_rel: usize,
    body: &mut QueryTree,
    own: Vec<Rel>,
    own_first: usize,
) {
    let delta = (first_rel + rels.len()).wrapping_sub(own_first);
    if own.is_empty() {
        return;
    }
    if delta != 0 {
        body.renumber_rels(delta);
    }
    for mut rel in own {
        if delta != 0
            && let RelSource::Query(Some(query)) = &mut rel.source
        {
            query.body.renumber_rels(delta);
        }
        rels.push(rel);
    }
}
