//! Queries: WITH, SELECT, VALUES, TABLE, set operations, LIMIT, AS OF.

use super::Lower;
use crate::ast::{
    self, CommonTableExpr, Distinct, Expr, GroupingItem, LimitCount, Location, LockingClause,
    RangeVar, ResTarget, SelectBody, SelectCore, SelectLimit, SelectStmt, SetOp, Stmt, WithClause,
};
use crate::lowered as library;
use crate::{AsOf, AsOfPoint};
use logstead_sql_types::error::{Result, SqlError};

/// Has a query no clauses beyond its body?
fn is_plain(query: &SelectStmt) -> bool {
    query.with_clause.is_none()
        && query.sort_clause.is_empty()
        && query.limit.is_none()
        && query.locking_clause.is_empty()
}

/// Does the query read nothing?
fn is_without_from(query: &SelectStmt) -> bool {
    matches!(&query.body, SelectBody::Select(core) if core.from_clause.is_empty())
}

impl Lower<'_> {
    /// Lowers a query.
    pub(crate) fn query(&self, query: &SelectStmt) -> Result<library::Query> {
        let with = match &query.with_clause {
            Some(with) => Some(self.with(with)?),
            None => None,
        };
        let body = self.set_expr(query)?;
        Ok(library::Query {
            with,
            sort_clause: self.sort_keys(&query.sort_clause)?,
            limit: match &query.limit {
                Some(limit) => self.limits(limit)?,
                None => None,
            },
            locking_clause: locks(query),
            ..library::Query::from(body)
        })
    }

    /// Lowers a query, INSERT, UPDATE, DELETE or MERGE to a query.
    pub(super) fn query_of(&self, stmt: &Stmt) -> Result<library::Query> {
        use library::SetExpr as S;
        if let Stmt::Select(query) = stmt {
            return self.query(query);
        }
        let (with, change) = self.change(stmt)?;
        let body = match stmt {
            Stmt::Insert(_) => S::Insert(Box::new(change)),
            Stmt::Update(_) => S::Update(Box::new(change)),
            Stmt::Delete(_) => S::Delete(Box::new(change)),
            _ => S::Merge(Box::new(change)),
        };
        Ok(library::Query {
            with,
            ..library::Query::from(body)
        })
    }

    /// What a query, or a statement in it, is as of.
    pub(super) fn as_of(&self, query: &SelectStmt) -> Option<AsOf> {
        let clause = query.as_of.as_deref()?;
        let point = match (clause.text(), clause.parameter()) {
            (Some(text), _) => AsOfPoint::Text(text.to_owned()),
            (None, number) => AsOfPoint::Parameter((number? as usize).checked_sub(1)?),
        };
        Some(AsOf {
            point,
            is_time: clause.is_time,
            position: self.error_position(clause.location)?,
        })
    }

    /// Lowers WITH.
    pub(super) fn with(&self, with: &WithClause) -> Result<library::With> {
        let mut cte_tables = Vec::with_capacity(with.ctes.len());
        for cte in &with.ctes {
            cte_tables.push(self.cte(cte)?);
        }
        Ok(library::With {
            recursive: with.recursive,
            cte_tables,
        })
    }

    fn cte(&self, cte: &CommonTableExpr) -> Result<library::Cte> {
        let search = cte.search_clause.as_ref().map(|s| ("SEARCH", s.location));
        let cycle = cte.cycle_clause.as_ref().map(|c| ("CYCLE", c.location));
        if let Some((word, location)) = search.or(cycle) {
            let error = SqlError::unsupported(format!("{word} of a recursive query"));
            return Err(error.at(self.error_position(location)));
        }
        Ok(library::Cte {
            ctename: cte.ctename.clone(),
            aliascolnames: cte.aliascolnames.clone(),
            query: Box::new(self.query_of(&cte.ctequery)?),
            materialized: cte.materialized,
            location: cte.location,
        })
    }

    /// Lowers what a query consists of.
    fn set_expr(&self, query: &SelectStmt) -> Result<library::SetExpr> {
        Ok(match &query.body {
            SelectBody::Select(core) => library::SetExpr::Select(Box::new(self.select(core)?)),
            SelectBody::Values(rows) => library::SetExpr::Values(self.values(rows)?),
            SelectBody::Table(relation) => {
                library::SetExpr::Select(Box::new(self.select_all(relation, query.location)?))
            }
            SelectBody::SetOp(operation) => self.set_operation(operation)?,
        })
    }

    /// A side of a set operation: a query with clauses of its own stands in parentheses.
    fn side(&self, query: &SelectStmt) -> Result<library::SetExpr> {
        match is_plain(query) {
            true => self.set_expr(query),
            false => Ok(library::SetExpr::Query(Box::new(self.query(query)?))),
        }
    }

    /// UNION and its like. A chain of them leans to the left and is walked in a loop.
    fn set_operation(&self, operation: &SetOp) -> Result<library::SetExpr> {
        let mut chain = vec![operation];
        let mut first = &operation.larg;
        while let SelectBody::SetOp(inner) = &first.body
            && is_plain(first)
        {
            chain.push(inner);
            first = &inner.larg;
        }
        let mut left = self.side(first)?;
        for operation in chain.into_iter().rev() {
            left = library::SetExpr::SetOperation {
                left: Box::new(left),
                op: operation.op,
                all: operation.all,
                right: Box::new(self.side(&operation.rarg)?),
            };
        }
        Ok(left)
    }

    /// Rows of VALUES.
    pub(super) fn values(&self, rows: &[Vec<Expr>]) -> Result<library::Values> {
        let rows = rows.iter().map(|row| self.row_items(row));
        Ok(library::Values {
            rows: rows.collect::<Result<_>>()?,
        })
    }

    /// SELECT of an expression.
    pub(super) fn select_of(&self, expr: &Expr) -> Result<library::Query> {
        let select = library::Select {
            projection: vec![library::SelectItem::UnnamedExpr(self.expr(expr)?)],
            ..library::Select::default()
        };
        Ok(library::SetExpr::Select(Box::new(select)).into())
    }

    /// `TABLE t` is `SELECT * FROM t`.
    fn select_all(&self, relation: &RangeVar, location: Location) -> Result<library::Select> {
        let item = ast::TableRef::RangeVar(Box::new(relation.clone()));
        Ok(library::Select {
            projection: vec![self.wildcard(location)],
            from: vec![self.table_ref(&item)?],
            ..library::Select::default()
        })
    }

    fn select(&self, core: &SelectCore) -> Result<library::Select> {
        let distinct = match &core.distinct {
            Distinct::No => library::Distinct::No,
            Distinct::All => library::Distinct::All,
            Distinct::On(exprs) => library::Distinct::On(self.exprs(exprs)?),
        };
        let named_window = core.window_clause.iter();
        let named_window = named_window.map(|window| self.window(window));
        Ok(library::Select {
            distinct,
            projection: self.select_items(&core.target_list)?,
            into: core.into_clause.as_ref().map(|into| into.rel.location),
            from: self.table_refs(&core.from_clause)?,
            selection: self.opt_expr(core.where_clause.as_ref())?,
            group_by: self.group_by(core)?,
            having: self.opt_expr(core.having_clause.as_ref())?,
            window_clause: named_window.collect::<Result<_>>()?,
        })
    }

    /// An expression, if there is one.
    pub(super) fn opt_expr(&self, expr: Option<&Expr>) -> Result<Option<library::Expr>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    /// Items of FROM.
    pub(super) fn table_refs(&self, items: &[ast::TableRef]) -> Result<Vec<library::TableRef>> {
        items.iter().map(|item| self.table_ref(item)).collect()
    }

    /// Lowers a list of results.
    pub(super) fn select_items(&self, items: &[ResTarget]) -> Result<Vec<library::SelectItem>> {
        items.iter().map(|item| self.select_item(item)).collect()
    }

    fn wildcard(&self, location: Location) -> library::SelectItem {
        library::SelectItem::Wildcard(location)
    }

    fn select_item(&self, item: &ResTarget) -> Result<library::SelectItem> {
        let Some(value) = &item.val else {
            return Err(SqlError::internal("a result without a value"));
        };
        // A name of all columns says nothing.
        if let Expr::ColumnRef(column) = value
            && column.star
        {
            if column.fields.is_empty() {
                return Ok(self.wildcard(column.location));
            }
            let name = self.object_name(&column.fields, column.location);
            return Ok(library::SelectItem::QualifiedWildcard(
                name,
                column.location,
            ));
        }
        let expr = self.expr(value)?;
        Ok(match &item.name {
            None => library::SelectItem::UnnamedExpr(expr),
            Some(name) => library::SelectItem::ExprWithAlias {
                expr,
                alias: self.ident(name, Location::UNKNOWN),
            },
        })
    }

    fn group_by(&self, core: &SelectCore) -> Result<library::GroupByClause> {
        Ok(library::GroupByClause {
            is_distinct: core.group_distinct,
            items: self.grouping_items(&core.group_clause)?,
        })
    }

    fn grouping_items(&self, items: &[GroupingItem]) -> Result<Vec<library::GroupingItem>> {
        use library::GroupingItem as G;
        let item = |item: &GroupingItem| {
            Ok(match item {
                GroupingItem::Expr(expr) => G::Expr(self.expr(expr)?),
                GroupingItem::Empty(_) => G::Empty,
                GroupingItem::Rollup(exprs, _) => G::Rollup(self.exprs(exprs)?),
                GroupingItem::Cube(exprs, location) => G::Cube(self.exprs(exprs)?, *location),
                GroupingItem::Sets(items, _) => G::Sets(self.grouping_items(items)?),
            })
        };
        items.iter().map(item).collect()
    }

    /// LIMIT, OFFSET and FETCH FIRST; none where they say nothing.
    fn limits(&self, limit: &SelectLimit) -> Result<Option<Box<library::SelectLimit>>> {
        let count = match &limit.count {
            Some(LimitCount::Count(count)) => Some(library::LimitCount::Count(self.expr(count)?)),
            Some(LimitCount::All(_)) | None if limit.offset.is_none() => return Ok(None),
            Some(LimitCount::All(location)) => Some(library::LimitCount::All(*location)),
            None => None,
        };
        Ok(Some(Box::new(library::SelectLimit {
            offset: self.opt_expr(limit.offset.as_ref())?,
            count,
            with_ties: limit.with_ties,
            is_fetch: limit.is_fetch,
        })))
    }
}

/// Locking clauses. Nothing is locked where nothing is read.
fn locks(query: &SelectStmt) -> Vec<LockingClause> {
    let without_from = is_without_from(query);
    let clauses = query.locking_clause.iter();
    let clauses = clauses.filter(|clause| !without_from || !clause.locked_rels.is_empty());
    clauses.cloned().collect()
}
