//! Whole queries: UNION and its kin, VALUES, and subqueries in expressions. When the latter are planned is said in
//! `sublink`.

use super::select::Tail;
use super::sublink::{QueryStart, SubLinkContext};
use super::{Binder, Clause, Frame, RelSource};
use crate::query::expr::{Expr, SubqueryKind};
use crate::query::{BoundSubquery, Branch, ColIdRanges, Ordered, QueryTree};
use logstead_sql_func::CastContext;
use logstead_sql_parse::sort_direction;
use logstead_sql_types::error::{Result, SqlError};

use super::operator::operator_name;
use crate::{OutputColumn, Plan, SetOpKind, SortKey};
use logstead_sql_parse::ast::{
    self, Expr as Ast, LockWaitPolicy, LockingClause, SelectBody, SelectStmt, SetOp, SetOperation,
    SubLinkKind,
};
use logstead_sql_parse::row_of;
use logstead_sql_types::value::{Datum, SqlType, info, oid, record};
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::Arc;

/// Locking clauses. Nothing is locked where nothing is read.
pub(super) fn locks(query: &SelectStmt) -> &[LockingClause] {
    let reads_nothing = query.core().is_some_and(|core| core.from_clause.is_empty());
    let names_some = |clause: &LockingClause| !clause.locked_rels.is_empty();
    match reads_nothing && !query.locking_clause.iter().any(names_some) {
        true => &[],
        false => &query.locking_clause,
    }
}

/// The items of a row, or the one value.
fn row_or_one(expr: &Ast) -> &[Ast] {
    row_of(expr).unwrap_or(std::slice::from_ref(expr))
}

impl Binder<'_> {
    /// Binds the query of a subquery in an expression, and says where it begins; unknown outputs become text.
    fn subquery(&mut self, query: &SelectStmt) -> Result<(QueryStart, QueryTree)> {
        let place = match self.clause() {
            Clause::Default => Some("DEFAULT expression"),
            Clause::Check => Some("check constraint"),
            Clause::Generated => Some("column generation expression"),
            Clause::IndexExpression => Some("index expression"),
            Clause::IndexPredicate => Some("index predicate"),
            Clause::CopyWhere => Some("COPY FROM WHERE condition"),
            _ => None,
        };
        if let Some(place) = place {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot use subquery in {place}"),
            ));
        }
        let start = self.query_start();
        let body = self.deeper(|b| {
            let body = b.query_body(query, true)?;
            b.settle_body(body)
        })?;
        Ok((start, body))
    }

    /// Binds and plans the query that a statement is.
    pub(crate) fn planned_query(&mut self, query: &SelectStmt) -> Result<Plan> {
        self.deeper(|b| {
            let body = b.query_body(query, true)?;
            b.finish(body)
        })
    }

    /// Binds a whole query with its WITH.
    pub(crate) fn query_body(&mut self, query: &SelectStmt, settle: bool) -> Result<QueryTree> {
        // Names and bodies that stand for much can make a short text long to bind.
        self.cx.session.interrupted()?;
        self.within_query(|b| {
            let Some(with) = &query.with_clause else {
                return b.query_without_with(query, settle);
            };
            b.frames.push(Frame::new());
            let result = b.with_query(query, with);
            b.frames.pop();
            result
        })
    }

    pub(crate) fn query_without_with(
        &mut self,
        query: &SelectStmt,
        settle: bool,
    ) -> Result<QueryTree> {
        let (limit, offset, ties) = match &query.limit {
            None => (None, None, false),
            Some(limit) => (limit.count(), limit.offset.as_ref(), limit.with_ties),
        };
        if ties {
            self.check_ties(query, limit)?;
        }
        let tail = Tail {
            order_by: &query.sort_clause,
            limit,
            offset,
            ties,
            locks: locks(query),
        };
        self.select_body(query, &tail, settle)
    }

    /// What PostgreSQL's grammar refuses of WITH TIES.
    fn check_ties(&self, query: &SelectStmt, limit: Option<&Ast>) -> Result<()> {
        if limit.is_some_and(|limit| limit.is_null()) {
            return Err(SqlError::new(
                SqlState::INVALID_ROW_COUNT_IN_LIMIT,
                "row count cannot be null in FETCH FIRST ... WITH TIES clause",
            ));
        }
        let wrong = if query.sort_clause.is_empty() {
            "WITH TIES cannot be specified without ORDER BY clause"
        } else if query
            .locking_clause
            .iter()
            .any(|lock| lock.wait_policy == LockWaitPolicy::SkipLocked)
        {
            "SKIP LOCKED and WITH TIES options cannot be used together"
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::SYNTAX_ERROR, wrong))
    }

    fn select_body(
        &mut self,
        query: &SelectStmt,
        tail: &Tail<'_>,
        settle: bool,
    ) -> Result<QueryTree> {
        match &query.body {
            SelectBody::Select(core) => Ok(QueryTree::Select(Box::new(
                self.select(core, tail, settle)?,
            ))),
            SelectBody::Values(rows) => {
                let body = self.values(rows, settle)?;
                if tail.order_by.is_empty() && tail.limit.is_none() && tail.offset.is_none() {
                    return Ok(body);
                }
                self.finish_tail(body, tail)
            }
            SelectBody::SetOp(operation) => {
                let body = self.set_operation(operation)?;
                if tail.order_by.is_empty()
                    && tail.limit.is_none()
                    && tail.offset.is_none()
                    && tail.locks.is_empty()
                {
                    return Ok(body);
                }
                self.finish_tail(body, tail)
            }
        }
    }

    /// A chain of UNION / INTERSECT / EXCEPT, leaning left: walked in a loop.
    fn set_operation(&mut self, last: &SetOp) -> Result<QueryTree> {
        let mut chain = vec![last];
        let mut head = &last.larg;
        while let SelectBody::SetOp(operation) = &head.body
            && head.is_bare()
        {
            chain.push(operation);
            head = &operation.larg;
        }
        let first = self.deeper(|b| b.query_body(head, false))?;
        let mut before = first.types();
        let mut rest: Vec<Branch> = Vec::with_capacity(chain.len());
        while let Some(SetOp { op, all, rarg, .. }) = chain.pop() {
            let (kind, word) = match op {
                SetOperation::Union => (SetOpKind::Union, "UNION"),
                SetOperation::Intersect => (SetOpKind::Intersect, "INTERSECT"),
                SetOperation::Except => (SetOpKind::Except, "EXCEPT"),
            };
            let all = *all;
            let right = self.deeper(|b| b.query_body(rarg, false))?;
            let (l, r) = (before, right.types());
            if l.len() != r.len() {
                return Err(columns_differ(word).at(self.item_at(rarg, 0)));
            }
            let mut types = Vec::with_capacity(l.len());
            for (i, (l, r)) in l.iter().zip(&r).enumerate() {
                let at = self.item_at(rarg, i);
                let ty = self.common(&[(*l, None), (*r, at)], word)?;
                if !(all && kind == SetOpKind::Union) {
                    super::order_by::groupable(ty, at, self.types())?;
                }
                types.push(ty);
            }
            before = types.clone();
            rest.push(Branch {
                kind,
                all,
                body: right,
                types,
                is_cast: false,
            });
        }
        Ok(QueryTree::SetOps(Box::new(first), rest))
    }

    /// Where item `i` of a query's first select list stands.
    fn item_at(&self, query: &SelectStmt, i: usize) -> Option<usize> {
        match &query.body {
            SelectBody::Select(core) => self.at(core.target_list.get(i)?.val_location()),
            SelectBody::Values(rows) => self.at(rows.first()?.get(i)?.location()),
            SelectBody::SetOp(_) => None,
        }
    }

    /// VALUES as rows; columns of all-unknown literals stay unknown unless `settle`.
    pub(crate) fn values(&mut self, rows: &[Vec<Ast>], settle: bool) -> Result<QueryTree> {
        let rows = rows.iter().map(|row| self.starred(row));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        self.frames.push(Frame::new());
        let result = self.in_clause(Clause::Values, |b| {
            let width = rows.first().map_or(0, |r| r.len());
            let mut bound: Vec<Vec<(Expr, Option<usize>)>> = Vec::with_capacity(rows.len());
            for row in &rows {
                if row.len() != width {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "VALUES lists must all be the same length",
                    )
                    .at(row.first().and_then(|e| b.at(e.location()))));
                }
                let mut out = Vec::with_capacity(width);
                for expr in row.iter() {
                    if is_default(expr) {
                        return Err(SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            "DEFAULT is not allowed in this context",
                        )
                        .at(b.at(expr.location())));
                    }
                    let at = b.at(expr.location());
                    out.push((b.expr(expr)?, at));
                }
                bound.push(out);
            }
            let mut columns = Vec::with_capacity(width);
            let mut done: Vec<Vec<Expr>> =
                bound.iter().map(|_| Vec::with_capacity(width)).collect();
            for i in 0..width {
                let column: Vec<(Expr, Option<usize>)> = bound
                    .iter_mut()
                    .map(|row| {
                        std::mem::replace(
                            &mut row[i],
                            (Expr::Param(0, SqlType::of(oid::UNKNOWN)), None),
                        )
                    })
                    .collect();
                let all_unknown = column.iter().all(|(e, _)| e.ty().oid == oid::UNKNOWN);
                let (column, ty) = if all_unknown && !settle {
                    (
                        column.into_iter().map(|(e, _)| e).collect(),
                        SqlType::of(oid::UNKNOWN),
                    )
                } else {
                    b.unify(column, "VALUES")?
                };
                for (row, expr) in done.iter_mut().zip(column) {
                    row.push(expr);
                }
                columns.push(OutputColumn {
                    domain: None,
                    name: format!("column{}", i + 1),
                    ty,
                    origin: None,
                });
            }
            Ok(QueryTree::Values(done, columns))
        });
        self.frames.pop();
        result
    }

    /// Plans a body; unknown outputs become text.
    pub(crate) fn finish(&mut self, body: QueryTree) -> Result<Plan> {
        let body = self.settle_body(body)?;
        self.planner().plan_body(body)
    }

    /// A query in FROM, to be planned with the block around it. `own` are the identities that were made while it was
    /// bound.
    pub(crate) fn subquery_source(
        &mut self,
        body: QueryTree,
        own: ColIdRanges,
        barrier: bool,
        with: bool,
    ) -> Result<RelSource> {
        Ok(RelSource::Query(Some(Box::new(BoundSubquery {
            body: self.settle_body(body)?,
            own,
            barrier,
            with,
        }))))
    }

    /// Outputs of unknown type become text: all of a body has its types then.
    pub(crate) fn settle_body(&mut self, body: QueryTree) -> Result<QueryTree> {
        let types = body.types().into_iter().map(|ty| match ty.oid {
            oid::UNKNOWN => SqlType::of(oid::TEXT),
            _ => ty,
        });
        let types: Vec<SqlType> = types.collect();
        self.deeper(|b| b.body_as(body, &types))
    }

    /// A body whose outputs have these types (implicit casts).
    pub(super) fn body_as(&mut self, body: QueryTree, types: &[SqlType]) -> Result<QueryTree> {
        match body {
            QueryTree::Select(mut select) => {
                let simple = select.order.is_empty()
                    && matches!(select.distinct, crate::query::Distinct::No);
                for (output, ty) in select.outputs.iter_mut().zip(types) {
                    let from = output.expr.ty();
                    if from.oid == oid::UNKNOWN || (simple && from.oid != ty.oid) {
                        let expr = output.expr.clone();
                        output.expr = self.coerce(expr, *ty, CastContext::Implicit, None)?;
                        output.column.ty = output.expr.ty();
                    }
                }
                let columns = select.outputs.iter().map(|o| o.column.clone()).collect();
                self.cast_columns(QueryTree::Select(select), columns, types)
            }
            QueryTree::Values(mut rows, mut columns) => {
                for row in &mut rows {
                    for (expr, ty) in row.iter_mut().zip(types) {
                        let to = SqlType::of(ty.oid);
                        *expr = self.coerce(expr.clone(), to, CastContext::Implicit, None)?;
                    }
                }
                for (column, ty) in columns.iter_mut().zip(types) {
                    column.ty = *ty;
                }
                Ok(QueryTree::Values(rows, columns))
            }
            body @ (QueryTree::Project(..)
            | QueryTree::Ordered(_)
            | QueryTree::With(..)
            | QueryTree::Change(_)) => {
                let columns = self.range.body_columns(&body);
                self.cast_columns(body, columns, types)
            }
            QueryTree::SetOps(first, rest) => {
                let body = self.settle_branches(*first, rest)?;
                let columns = self.range.body_columns(&body);
                let columns = columns.into_iter().map(|column| OutputColumn {
                    domain: None,
                    ..column
                });
                self.cast_columns(body, columns.collect(), types)
            }
        }
    }

    /// UNION and its kin, each of whose operands has the types of their result.
    fn settle_branches(&mut self, first: QueryTree, rest: Vec<Branch>) -> Result<QueryTree> {
        let last = rest.last().map(|branch| branch.types.clone());
        let result = last.unwrap_or_else(|| first.types());
        let same = |a: &[SqlType], b: &[SqlType]| a.iter().zip(b).all(|(a, b)| a.oid == b.oid);
        let is_cast =
            !same(&first.types(), &result) || !rest.iter().all(|b| same(&b.body.types(), &result));
        let mut left = first;
        let mut done: Vec<Branch> = Vec::with_capacity(rest.len());
        for (number, branch) in rest.into_iter().enumerate() {
            // So far they have other types: what comes of them is cast.
            if let Some(before) = done.last()
                && !same(&before.types, &branch.types)
            {
                left = QueryTree::SetOps(Box::new(left), std::mem::take(&mut done));
            }
            if done.is_empty() {
                left = match number {
                    0 => self.body_as(left, &branch.types)?,
                    _ => {
                        let columns = self.range.body_columns(&left);
                        self.cast_columns(left, columns, &branch.types)?
                    }
                };
            }
            let body = self.body_as(branch.body, &branch.types)?;
            done.push(Branch {
                body,
                is_cast: branch.is_cast || is_cast,
                ..branch
            });
        }
        Ok(QueryTree::SetOps(Box::new(left), done))
    }

    /// Puts casts on top of a body whose columns have other types.
    fn cast_columns(
        &mut self,
        body: QueryTree,
        mut columns: Vec<OutputColumn>,
        types: &[SqlType],
    ) -> Result<QueryTree> {
        if columns.iter().zip(types).all(|(c, ty)| c.ty.oid == ty.oid) {
            return Ok(body);
        }
        let mut exprs = Vec::with_capacity(types.len());
        for (at, (column, ty)) in columns.iter_mut().zip(types).enumerate() {
            let given = Expr::Column(at, column.ty);
            let cast = self.coerce(given, SqlType::of(ty.oid), CastContext::Implicit, None)?;
            column.ty = cast.ty();
            exprs.push(cast);
        }
        Ok(QueryTree::Project(Box::new(body), exprs, columns))
    }

    /// ORDER BY, LIMIT and OFFSET over a whole body: only its output columns are in sight.
    fn finish_tail(&mut self, body: QueryTree, tail: &Tail<'_>) -> Result<QueryTree> {
        let body = self.settle_body(body)?;
        let columns = self.range.body_columns(&body);
        if let Some(clause) = tail.locks.first() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "{} is not allowed with UNION/INTERSECT/EXCEPT",
                    clause.strength.words()
                ),
            ));
        }
        let mut keys = Vec::new();
        {
            for item in tail.order_by {
                let (desc, nulls_first) = sort_direction(&item.dir, item.nulls)?;
                let at = self.at(item.node.location());
                let index = match &item.node {
                    Ast::Const(node) => match node.value.digits() {
                        Some(digits) => {
                            let position: usize = digits.parse().unwrap_or(0);
                            if position == 0 || position > columns.len() {
                                return Err(SqlError::new(
                                    SqlState::INVALID_COLUMN_REFERENCE,
                                    format!("ORDER BY position {digits} is not in select list"),
                                )
                                .at(at));
                            }
                            Some(position - 1)
                        }
                        None => None,
                    },
                    Ast::ColumnRef(column) if column.fields.len() == 1 => {
                        let name = &column.fields[0];
                        let found = columns.iter().position(|c| *c.name == **name);
                        if found.is_none() {
                            return Err(SqlError::new(
                                SqlState::UNDEFINED_COLUMN,
                                format!("column \"{name}\" does not exist"),
                            )
                            .at(at));
                        }
                        found
                    }
                    _ => None,
                };
                let Some(index) = index else {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    )
                    .detail("Only result column names can be used, not expressions or functions.")
                    .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
                    .at(at));
                };
                super::order_by::sortable(columns[index].ty, at, self.types())?;
                keys.push(SortKey {
                    expr: Expr::Column(index, columns[index].ty),
                    desc,
                    nulls_first,
                });
            }
        }
        self.frames.push(Frame::new());
        let limits = self.limits(tail);
        self.frames.pop();
        let (limit, offset) = limits?;
        let ties = match tail.ties {
            true => keys.iter().map(|key| key.expr.clone()).collect(),
            false => Vec::new(),
        };
        Ok(QueryTree::Ordered(Box::new(Ordered {
            input: body,
            keys,
            limit,
            offset,
            ties,
        })))
    }

    /// The one column of a subquery that must have just one.
    fn only_column(&self, at: Option<usize>, body: &QueryTree) -> Result<SqlType> {
        let columns = self.range.body_columns(body);
        let [column] = columns.as_slice() else {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "subquery must return only one column",
            )
            .at(at));
        };
        Ok(column.ty)
    }

    pub(crate) fn sub_link(&mut self, node: &ast::SubLink) -> Result<Expr> {
        let at = self.at(node.location);
        let query = &node.subselect;
        match &node.kind {
            SubLinkKind::Exists => self.exists(query),
            SubLinkKind::Expr => self.scalar_subquery(query, at),
            SubLinkKind::Array => self.array_subquery(query, at),
            SubLinkKind::Any { test, op } => {
                let name = op.as_ref().map_or(Ok("="), operator_name)?;
                self.compare_subquery(row_or_one(test), name, query, false, at)
            }
            SubLinkKind::All { test, op } => {
                let name = operator_name(op)?;
                self.compare_subquery(row_or_one(test), name, query, true, at)
            }
            SubLinkKind::NotIn { test } => {
                let any = self.compare_subquery(row_or_one(test), "=", query, false, at)?;
                Ok(Expr::Not(Box::new(any)))
            }
        }
    }

    fn scalar_subquery(&mut self, query: &SelectStmt, at: Option<usize>) -> Result<Expr> {
        let (start, body) = self.subquery(query)?;
        let ty = self.only_column(at, &body)?;
        self.sublink(start, body, SubLinkContext::plain(SubqueryKind::Scalar, ty))
    }

    fn exists(&mut self, query: &SelectStmt) -> Result<Expr> {
        let (start, body) = self.subquery(query)?;
        let of = SubLinkContext::plain(SubqueryKind::Exists, SqlType::of(oid::BOOL));
        self.sublink(start, body, of)
    }

    fn array_subquery(&mut self, query: &SelectStmt, at: Option<usize>) -> Result<Expr> {
        let (start, body) = self.subquery(query)?;
        let element = self.only_column(at, &body)?;
        // Of arrays it makes one of a dimension more.
        let stacked = || {
            self.user_types()
                .element_of(element.oid)
                .map(|_| element.plain())
        };
        let array = info::array_type(element).or_else(stacked);
        let array = array.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "could not find array type for data type {}",
                    self.types().format_type(element)
                ),
            )
        })?;
        let of = SubLinkContext::plain(SubqueryKind::Array(element.oid), array);
        self.sublink(start, body, of)
    }

    /// `(a, b) op (SELECT ...)`: a comparison with the one row that comes, NULL if none does.
    pub(crate) fn row_subquery(
        &mut self,
        left: &[Ast],
        op: &str,
        query: &SelectStmt,
        at: Option<usize>,
    ) -> Result<Expr> {
        let mut bound = Vec::with_capacity(left.len());
        for item in left {
            bound.push(self.expr(item)?);
        }
        let (start, body) = self.subquery(query)?;
        check_width(body.types().len(), bound.len()).map_err(|e| e.at(at))?;
        let fields = self.row_of_subquery(start, body)?;
        self.row_comparison(op, bound, fields, at)
    }

    /// The columns of the one row that a subquery gives, each as an expression; the subquery is the same one in all.
    pub(super) fn row_of_subquery(
        &mut self,
        start: QueryStart,
        body: QueryTree,
    ) -> Result<Vec<Expr>> {
        let columns = self.range.body_columns(&body);
        let fields = columns.iter().enumerate();
        let fields = fields.map(|(i, c)| Expr::Column(i, c.ty)).collect();
        let shape: Vec<(Arc<str>, SqlType)> = columns
            .iter()
            .map(|c| (c.name.as_str().into(), c.ty))
            .collect();
        let ty = record::record_type(&shape)?;
        let column = OutputColumn {
            name: "row".to_owned(),
            ty,
            domain: None,
            origin: None,
        };
        let whole = QueryTree::Project(Box::new(body), vec![Expr::Array(fields, ty)], vec![column]);
        let of = SubLinkContext {
            shared: self.slot() + 1,
            ..SubLinkContext::plain(SubqueryKind::Scalar, ty)
        };
        let row = self.sublink(start, whole, of)?;
        let field = |(number, (_, ty)): (i32, (Arc<str>, SqlType))| Expr::Subscript {
            array: Box::new(row.clone()),
            index: Box::new(Expr::Const(Datum::Int4(number), SqlType::of(oid::INT4))),
            ty,
        };
        Ok((1..).zip(shape).map(field).collect())
    }

    /// As many expressions as are assigned to, of the one row that a subquery gives; none if it has not as many
    /// columns.
    pub(super) fn assigned_row(
        &mut self,
        query: &SelectStmt,
        width: usize,
    ) -> Result<Option<Vec<Expr>>> {
        let (start, body) = self.subquery(query)?;
        match body.types().len() == width {
            true => self.row_of_subquery(start, body).map(Some),
            false => Ok(None),
        }
    }

    /// left op ANY/ALL (subquery), IN.
    fn compare_subquery(
        &mut self,
        left: &[Ast],
        op: &str,
        query: &SelectStmt,
        all: bool,
        at: Option<usize>,
    ) -> Result<Expr> {
        let mut bound = Vec::with_capacity(left.len());
        for item in left {
            bound.push(self.expr(item)?);
        }
        let (start, body) = self.subquery(query)?;
        let columns = self.range.body_columns(&body);
        check_width(columns.len(), bound.len()).map_err(|e| e.at(at))?;
        // Rows are compared by their order, but for equality: all columns but the last one ask which is before the
        // other.
        let ordered = bound.len() > 1 && !matches!(op, "=" | "<>");
        let strict = match op {
            "<" | "<=" => "<",
            ">" | ">=" => ">",
            _ => op,
        };
        let last = bound.len() - usize::from(!bound.is_empty());
        let mut equals = Vec::new();
        let mut lefts = Vec::with_capacity(bound.len());
        let mut ops = Vec::with_capacity(bound.len());
        let mut types = Vec::with_capacity(bound.len());
        let mut hashable = op == "=" && !all;
        for (number, (expr, column)) in bound.into_iter().zip(&columns).enumerate() {
            let op = if ordered && number < last { strict } else { op };
            let (expr, function, ty) = self.comparison_function(op, expr, column.ty, at)?;
            if ordered {
                equals.push(self.comparison_function("=", expr.clone(), ty, at)?.1);
            }
            hashable &= expr.ty().oid == ty.oid;
            types.push(ty);
            lefts.push(expr);
            ops.push(function);
        }
        if ordered && !matches!(op, "<" | "<=" | ">" | ">=") {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("could not determine interpretation of row comparison operator {op}"),
            )
            .hint("Row comparison operators must be associated with btree operator families.")
            .at(at));
        }
        let body = self.body_as(body, &types)?;
        let kind = SubqueryKind::Compare {
            left: lefts,
            ops,
            equals,
            all,
            hashable,
        };
        let of = SubLinkContext::plain(kind, SqlType::of(oid::BOOL));
        self.sublink(start, body, of)
    }
}

/// An error unless a subquery has as many columns as it is compared with.
fn check_width(columns: usize, compared: usize) -> Result<()> {
    let message = match columns.cmp(&compared) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => "subquery has too few columns",
        Ordering::Greater => "subquery has too many columns",
    };
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

/// The word DEFAULT in place of an expression.
pub(crate) fn is_default(expr: &Ast) -> bool {
    matches!(expr, Ast::SetToDefault(_))
}

pub(crate) fn columns_differ(word: &str) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("each {word} query must have the same number of columns"),
    )
}
