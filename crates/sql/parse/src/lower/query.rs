//! Queries: WITH, SELECT, VALUES, TABLE, set operations, LIMIT, AS OF.

use super::Lower;
use crate::ast::{
    self, CommonTableExpr, Distinct, Expr, GroupingItem, LimitCount, Location, LockingClause,
    RangeVar, SelectBody, SelectCore, SelectLimit, SelectStmt, WithClause,
};
use crate::lowered as library;
use crate::{AsOf, AsOfPoint};
use logstead_sql_types::error::{Result, SqlError};

/// Does the query read nothing?
fn is_without_from(query: &SelectStmt) -> bool {
    matches!(&query.body, SelectBody::Select(core) if core.from_clause.is_empty())
}

impl Lower<'_> {
    /// Lowers a query.
    pub(crate) fn query(&self, query: &SelectStmt) -> Result<library::SelectStmt> {
        let clauses = self.clauses(query)?;
        Ok(library::SelectStmt {
            body: self.body(query)?,
            ..clauses
        })
    }

    /// Lowers a query apart from its body.
    fn clauses(&self, query: &SelectStmt) -> Result<library::SelectStmt> {
        Ok(library::SelectStmt {
            with_clause: self.with_clause(query.with_clause.as_deref())?,
            body: library::SelectBody::Values(Vec::new()),
            sort_clause: self.sort_keys(&query.sort_clause)?,
            limit: match &query.limit {
                Some(limit) => self.limits(limit)?,
                None => None,
            },
            locking_clause: locks(query),
            location: query.location,
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
    pub(super) fn with_clause(
        &self,
        with: Option<&WithClause>,
    ) -> Result<Option<Box<library::WithClause>>> {
        let Some(with) = with else {
            return Ok(None);
        };
        let ctes = with.ctes.iter().map(|cte| self.cte(cte));
        Ok(Some(Box::new(library::WithClause {
            recursive: with.recursive,
            ctes: ctes.collect::<Result<_>>()?,
            location: with.location,
        })))
    }

    fn cte(&self, cte: &CommonTableExpr) -> Result<library::CommonTableExpr> {
        let search = cte.search_clause.as_ref().map(|s| ("SEARCH", s.location));
        let cycle = cte.cycle_clause.as_ref().map(|c| ("CYCLE", c.location));
        if let Some((word, location)) = search.or(cycle) {
            let error = SqlError::unsupported(format!("{word} of a recursive query"));
            return Err(error.at(self.error_position(location)));
        }
        Ok(library::CommonTableExpr {
            ctename: cte.ctename.clone(),
            aliascolnames: cte.aliascolnames.clone(),
            materialized: cte.materialized,
            ctequery: self.preparable(&cte.ctequery)?,
            location: cte.location,
        })
    }

    /// Lowers what a query consists of. A chain of set operations leans to the left and is walked in a loop.
    fn body(&self, query: &SelectStmt) -> Result<library::SelectBody> {
        let mut chain = Vec::new();
        let mut first = query;
        while let SelectBody::SetOp(operation) = &first.body {
            chain.push(&**operation);
            first = &operation.larg;
        }
        let mut body = match &first.body {
            SelectBody::Select(core) => library::SelectBody::Select(Box::new(self.select(core)?)),
            SelectBody::Values(rows) => {
                let rows = rows.iter().map(|row| self.exprs(row));
                library::SelectBody::Values(rows.collect::<Result<_>>()?)
            }
            SelectBody::Table(relation) => {
                let core = self.select_all(relation, first.location)?;
                library::SelectBody::Select(Box::new(core))
            }
            SelectBody::SetOp(_) => return Err(SqlError::internal("a set operation is left")),
        };
        for operation in chain.into_iter().rev() {
            let clauses = self.clauses(&operation.larg)?;
            body = library::SelectBody::SetOp(Box::new(library::SetOp {
                op: operation.op,
                all: operation.all,
                larg: library::SelectStmt { body, ..clauses },
                rarg: self.query(&operation.rarg)?,
                location: operation.location,
            }));
        }
        Ok(body)
    }

    /// SELECT of an expression.
    pub(super) fn select_of(&self, expr: &Expr) -> Result<library::SelectStmt> {
        let core = library::SelectCore {
            target_list: vec![library::ResTarget::of(None, self.expr(expr)?)],
            ..library::SelectCore::default()
        };
        let body = library::SelectBody::Select(Box::new(core));
        Ok(library::SelectStmt::of(body))
    }

    /// `TABLE t` is `SELECT * FROM t`.
    fn select_all(&self, relation: &RangeVar, location: Location) -> Result<library::SelectCore> {
        let item = ast::TableRef::RangeVar(Box::new(relation.clone()));
        Ok(library::SelectCore {
            target_list: vec![library::ResTarget::star(location)],
            from_clause: vec![self.table_ref(&item)?],
            location,
            ..library::SelectCore::default()
        })
    }

    fn select(&self, core: &SelectCore) -> Result<library::SelectCore> {
        let windows = core.window_clause.iter().map(|window| self.window(window));
        Ok(library::SelectCore {
            distinct: match &core.distinct {
                Distinct::No => library::Distinct::No,
                Distinct::All => library::Distinct::All,
                Distinct::On(exprs) => library::Distinct::On(self.exprs(exprs)?),
            },
            into_clause: core.into_clause.clone(),
            target_list: self.targets(&core.target_list)?,
            from_clause: self.table_refs(&core.from_clause)?,
            where_clause: self.opt_expr(core.where_clause.as_ref())?,
            group_clause: self.grouping_items(&core.group_clause)?,
            group_distinct: core.group_distinct,
            having_clause: self.opt_expr(core.having_clause.as_ref())?,
            window_clause: windows.collect::<Result<_>>()?,
            location: core.location,
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

    fn grouping_items(&self, items: &[GroupingItem]) -> Result<Vec<library::GroupingItem>> {
        use library::GroupingItem as G;
        let item = |item: &GroupingItem| {
            Ok(match item {
                GroupingItem::Expr(expr) => G::Expr(self.expr(expr)?),
                GroupingItem::Empty(location) => G::Empty(*location),
                GroupingItem::Rollup(exprs, location) => G::Rollup(self.exprs(exprs)?, *location),
                GroupingItem::Cube(exprs, location) => G::Cube(self.exprs(exprs)?, *location),
                GroupingItem::Sets(items, location) => {
                    G::Sets(self.grouping_items(items)?, *location)
                }
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
