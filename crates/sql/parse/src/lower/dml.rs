//! Statements that read and change rows.

use super::Lower;
use crate::ast::{
    DeleteStmt, IndexElem, IndexKey, InferClause, InsertSource, InsertStmt, MergeAction, MergeStmt,
    MergeWhenClause, OnConflictClause, ResTarget, SetClause, Stmt, UpdateStmt,
};
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};

impl Lower<'_> {
    /// Lowers a statement that may be prepared (`PreparableStmt`); a query keeps its INTO.
    pub(super) fn preparable(&self, stmt: &Stmt) -> Result<library::Statement> {
        use library::Statement as S;
        Ok(match stmt {
            Stmt::Select(query) => S::Select(Box::new(self.query(query)?)),
            Stmt::Insert(insert) => S::Insert(Box::new(self.insert(insert)?)),
            Stmt::Update(update) => S::Update(Box::new(self.update(update)?)),
            Stmt::Delete(delete) => S::Delete(Box::new(self.delete(delete)?)),
            Stmt::Merge(merge) => S::Merge(Box::new(self.merge(merge)?)),
            _ => return Err(SqlError::internal("a statement that is not planned")),
        })
    }

    fn insert(&self, insert: &InsertStmt) -> Result<library::InsertStmt> {
        Ok(library::InsertStmt {
            with_clause: self.with_clause(insert.with_clause.as_deref())?,
            relation: insert.relation.clone(),
            cols: self.targets(&insert.cols)?,
            overriding: insert.overriding,
            source: match &insert.source {
                InsertSource::Select(query) => {
                    library::InsertSource::Select(Box::new(self.query(query)?))
                }
                InsertSource::DefaultValues => library::InsertSource::DefaultValues,
            },
            on_conflict_clause: match &insert.on_conflict_clause {
                Some(on) => Some(Box::new(self.on_conflict(on)?)),
                None => None,
            },
            returning_list: self.targets(&insert.returning_list)?,
        })
    }

    pub(super) fn targets(&self, targets: &[ResTarget]) -> Result<Vec<library::ResTarget>> {
        targets.iter().map(|target| self.target(target)).collect()
    }

    /// A column, or a part of it, and what is assigned to it.
    fn target(&self, target: &ResTarget) -> Result<library::ResTarget> {
        let indirection = target.indirection.iter().map(|part| self.access(part));
        Ok(library::ResTarget {
            name: target.name.clone(),
            indirection: indirection.collect::<Result<_>>()?,
            val: self.opt_expr(target.val.as_ref())?,
            location: target.location,
        })
    }

    /// An element of an index.
    pub(super) fn index_elem(&self, elem: &IndexElem) -> Result<library::IndexElem> {
        Ok(library::IndexElem {
            key: match &elem.key {
                IndexKey::Column(name) => library::IndexKey::Column(name.clone()),
                IndexKey::Expr(expr, enclosed) => {
                    library::IndexKey::Expr(self.expr(expr)?, *enclosed)
                }
            },
            collation: elem.collation.clone(),
            opclass: elem.opclass.clone(),
            opclassopts: elem.opclassopts.clone(),
            ordering: elem.ordering.clone(),
            nulls_ordering: elem.nulls_ordering,
            location: elem.location,
        })
    }

    fn on_conflict(&self, on: &OnConflictClause) -> Result<library::OnConflictClause> {
        let infer = match &on.infer {
            None => None,
            Some(InferClause::Constraint(name, location)) => {
                Some(library::InferClause::Constraint(name.clone(), *location))
            }
            Some(InferClause::Index(elems, predicate, location)) => {
                let elems = elems.iter().map(|elem| self.index_elem(elem));
                Some(library::InferClause::Index(
                    elems.collect::<Result<_>>()?,
                    self.opt_expr(predicate.as_ref())?,
                    *location,
                ))
            }
        };
        let update = match &on.update {
            None => None,
            Some((target_list, condition)) => Some((
                self.set_clauses(target_list)?,
                self.opt_expr(condition.as_ref())?,
            )),
        };
        Ok(library::OnConflictClause {
            infer,
            update,
            location: on.location,
        })
    }

    fn set_clauses(&self, clauses: &[SetClause]) -> Result<Vec<library::SetClause>> {
        let clause = |clause: &SetClause| {
            Ok(match clause {
                SetClause::Single(target) => library::SetClause::Single(self.target(target)?),
                SetClause::Multiple(targets, value) => {
                    library::SetClause::Multiple(self.targets(targets)?, self.expr(value)?)
                }
            })
        };
        clauses.iter().map(clause).collect()
    }

    fn update(&self, update: &UpdateStmt) -> Result<library::UpdateStmt> {
        Ok(library::UpdateStmt {
            with_clause: self.with_clause(update.with_clause.as_deref())?,
            relation: update.relation.clone(),
            target_list: self.set_clauses(&update.target_list)?,
            from_clause: self.table_refs(&update.from_clause)?,
            where_clause: self.opt_expr(update.where_clause.as_ref())?,
            returning_list: self.targets(&update.returning_list)?,
        })
    }

    fn delete(&self, delete: &DeleteStmt) -> Result<library::DeleteStmt> {
        Ok(library::DeleteStmt {
            with_clause: self.with_clause(delete.with_clause.as_deref())?,
            relation: delete.relation.clone(),
            using_clause: self.table_refs(&delete.using_clause)?,
            where_clause: self.opt_expr(delete.where_clause.as_ref())?,
            returning_list: self.targets(&delete.returning_list)?,
        })
    }

    fn merge(&self, merge: &MergeStmt) -> Result<library::MergeStmt> {
        let source = self.table_ref(&merge.source_relation)?;
        let clauses = merge.merge_when_clauses.iter();
        let clauses = clauses.map(|clause| self.merge_when(clause));
        Ok(library::MergeStmt {
            with_clause: self.with_clause(merge.with_clause.as_deref())?,
            relation: merge.relation.clone(),
            source_relation: source,
            join_condition: self.expr(&merge.join_condition)?,
            merge_when_clauses: clauses.collect::<Result<_>>()?,
        })
    }

    fn merge_when(&self, clause: &MergeWhenClause) -> Result<library::MergeWhenClause> {
        let action = match &clause.action {
            MergeAction::Nothing => library::MergeAction::Nothing,
            MergeAction::Delete => library::MergeAction::Delete,
            MergeAction::Update(target_list) => {
                library::MergeAction::Update(self.set_clauses(target_list)?)
            }
            MergeAction::Insert {
                cols,
                overriding,
                values,
            } => library::MergeAction::Insert {
                cols: self.targets(cols)?,
                overriding: *overriding,
                values: match values {
                    Some(values) => Some(self.exprs(values)?),
                    None => None,
                },
            },
        };
        Ok(library::MergeWhenClause {
            matched: clause.matched,
            condition: self.opt_expr(clause.condition.as_ref())?,
            action,
        })
    }
}
