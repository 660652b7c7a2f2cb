//! Statements that read and change rows.

use super::Lower;
use crate::ast::{
    AnyName, ColumnRef, DeleteStmt, IndexElem, IndexKey, Indirection, InferClause, InsertSource,
    InsertStmt, Location, MergeAction, MergeStmt, MergeWhenClause, OnConflictClause, ResTarget,
    SetClause, SortByDir, SortByNulls, Stmt, UpdateStmt,
};
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Is an element of ON CONFLICT nothing but a column?
fn plain_column(element: &IndexElem) -> Option<&str> {
    match &element.key {
        IndexKey::Column(name)
            if element.collation.is_none()
                && element.opclass.is_none()
                && element.ordering == SortByDir::Default
                && element.nulls_ordering == SortByNulls::Default =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// The place of a byte.
fn location_at(byte: usize) -> Location {
    u32::try_from(byte).map_or(Location::UNKNOWN, Location::at)
}

impl Lower<'_> {
    /// Lowers a statement that may be prepared (`PreparableStmt`); a query keeps its INTO.
    pub(super) fn preparable(&self, stmt: &Stmt) -> Result<library::Statement> {
        let with = match stmt {
            Stmt::Insert(insert) => &insert.with_clause,
            Stmt::Update(update) => &update.with_clause,
            Stmt::Delete(delete) => &delete.with_clause,
            Stmt::Merge(merge) => &merge.with_clause,
            _ => return Ok(library::Statement::Query(Box::new(self.query_of(stmt)?))),
        };
        match with {
            Some(_) => Ok(library::Statement::Query(Box::new(self.query_of(stmt)?))),
            None => Ok(self.change(stmt)?.1),
        }
    }

    /// Lowers INSERT, UPDATE, DELETE or MERGE, apart from its WITH.
    pub(super) fn change(
        &self,
        stmt: &Stmt,
    ) -> Result<(Option<library::With>, library::Statement)> {
        use library::Statement as S;
        let (with, statement) = match stmt {
            Stmt::Insert(insert) => (&insert.with_clause, S::Insert(self.insert(insert)?)),
            Stmt::Update(update) => (&update.with_clause, S::Update(self.update(update)?)),
            Stmt::Delete(delete) => (&delete.with_clause, S::Delete(self.delete(delete)?)),
            Stmt::Merge(merge) => (&merge.with_clause, S::Merge(self.merge(merge)?)),
            _ => return Err(SqlError::internal("a statement that changes nothing")),
        };
        let with = match with {
            Some(with) => Some(self.with(with)?),
            None => None,
        };
        Ok((with, statement))
    }

    fn insert(&self, insert: &InsertStmt) -> Result<library::Insert> {
        let source = match &insert.source {
            InsertSource::Select(query) => Some(Box::new(self.query(query)?)),
            InsertSource::DefaultValues => None,
        };
        Ok(library::Insert {
            table: insert.relation.clone(),
            columns: self.targets(&insert.cols)?,
            overriding: insert.overriding,
            source,
            on: match &insert.on_conflict_clause {
                Some(on) => Some(self.on_conflict(on)?),
                None => None,
            },
            returning: self.returning(&insert.returning_list)?,
        })
    }

    fn returning(&self, items: &[ResTarget]) -> Result<Option<Vec<library::SelectItem>>> {
        match items {
            [] => Ok(None),
            items => Ok(Some(self.select_items(items)?)),
        }
    }

    fn targets(&self, targets: &[ResTarget]) -> Result<Vec<library::Target>> {
        targets.iter().map(|target| self.target(target)).collect()
    }

    /// What is assigned: a column, or a part of it. Subscripts that follow each other are one step.
    fn target(&self, target: &ResTarget) -> Result<library::Target> {
        let name = target.name.as_deref().unwrap_or_default();
        let mut path: Vec<library::TargetStep> = Vec::new();
        for part in &target.indirection {
            match part {
                Indirection::Field(name) => {
                    let name = self.ident(name, target.location);
                    path.push(library::TargetStep::Field(name));
                }
                Indirection::Star => {
                    let message = "row expansion via \"*\" is not supported here";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                        .at(self.error_position(target.location)));
                }
                Indirection::Index(_) | Indirection::Slice(..) => {
                    let subscript = self.access(part)?;
                    match path.last_mut() {
                        Some(library::TargetStep::Subscripts(all)) => all.push(subscript),
                        _ => path.push(library::TargetStep::Subscripts(vec![subscript])),
                    }
                }
            }
        }
        Ok(library::Target {
            column: self.ident(name, target.location),
            path,
        })
    }

    /// A key that ON CONFLICT names; `from` is where it begins.
    fn conflict_key(&self, element: &IndexElem, from: usize) -> Result<library::ConflictKey> {
        if let Some(name) = plain_column(element) {
            let name = self.ident(name, element.location);
            return Ok(library::ConflictKey::Column(name));
        }
        if let Some(AnyName { names, location }) = &element.opclass {
            let message = format!("syntax error at or near \"{}\"", names.join("."));
            let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            return Err(error.at(self.error_position(*location)));
        }
        Ok(library::ConflictKey::Expr(library::PlacedExpr {
            expr: self.index_key(element)?,
            location: location_at(from),
        }))
    }

    /// What a key of an index is over, with its collation.
    pub(super) fn index_key(&self, elem: &IndexElem) -> Result<library::Expr> {
        if !elem.opclassopts.is_empty() {
            return Err(SqlError::unsupported("an operator class with parameters"));
        }
        let expr = match &elem.key {
            IndexKey::Column(name) => library::Expr::ColumnRef(Box::new(ColumnRef {
                fields: [name.clone()].into_iter().collect(),
                star: false,
                location: elem.location,
            })),
            IndexKey::Expr(expr, _) => self.expr(expr)?,
        };
        Ok(match &elem.collation {
            Some(name) => library::Expr::CollateClause(Box::new(library::CollateClause {
                arg: expr,
                collname: name.names.clone(),
                location: name.location,
            })),
            None => expr,
        })
    }

    fn on_conflict(&self, on: &OnConflictClause) -> Result<library::OnConflict> {
        let conflict_target = match &on.infer {
            None => None,
            Some(InferClause::Constraint(name, location)) => {
                let name = self.object_name(std::slice::from_ref(name), *location);
                Some(library::ConflictTarget::OnConstraint(name))
            }
            Some(InferClause::Index(elements, predicate, _)) => {
                let ranges = elements.iter().zip(&on.element_ranges);
                let keys = ranges.map(|(element, (from, _))| self.conflict_key(element, *from));
                let keys = keys.collect::<Result<_>>()?;
                let predicate = match (predicate, on.predicate_range) {
                    (Some(predicate), Some((from, _))) => Some(library::PlacedExpr {
                        expr: self.expr(predicate)?,
                        location: location_at(from),
                    }),
                    _ => None,
                };
                Some(library::ConflictTarget::Keys(keys, predicate))
            }
        };
        let action = match &on.update {
            None => library::OnConflictAction::DoNothing,
            Some((assignments, condition)) => {
                library::OnConflictAction::DoUpdate(library::DoUpdate {
                    assignments: self.assignments(assignments)?,
                    selection: self.opt_expr(condition.as_ref())?,
                })
            }
        };
        Ok(library::OnConflict {
            conflict_target,
            action,
        })
    }

    fn assignments(&self, clauses: &[SetClause]) -> Result<Vec<library::Assignment>> {
        clauses
            .iter()
            .map(|clause| self.assignment(clause))
            .collect()
    }

    fn assignment(&self, clause: &SetClause) -> Result<library::Assignment> {
        let (target, value) = match clause {
            SetClause::Single(target) => {
                let value = target
                    .val
                    .as_ref()
                    .ok_or_else(|| SqlError::internal("an assignment of nothing"))?;
                let name = self.target(target)?;
                (library::AssignmentTarget::One(name), value)
            }
            SetClause::Multiple(targets, value) => {
                let names = self.targets(targets)?;
                (library::AssignmentTarget::Tuple(names), value)
            }
        };
        Ok(library::Assignment {
            target,
            value: self.expr(value)?,
        })
    }

    fn update(&self, update: &UpdateStmt) -> Result<library::Update> {
        Ok(library::Update {
            table: update.relation.clone(),
            assignments: self.assignments(&update.target_list)?,
            from: self.table_refs(&update.from_clause)?,
            selection: self.opt_expr(update.where_clause.as_ref())?,
            returning: self.returning(&update.returning_list)?,
        })
    }

    fn delete(&self, delete: &DeleteStmt) -> Result<library::Delete> {
        Ok(library::Delete {
            table: delete.relation.clone(),
            using: self.table_refs(&delete.using_clause)?,
            selection: self.opt_expr(delete.where_clause.as_ref())?,
            returning: self.returning(&delete.returning_list)?,
        })
    }

    fn merge(&self, merge: &MergeStmt) -> Result<library::Merge> {
        let source = self.table_ref(&merge.source_relation)?;
        let clauses = merge.merge_when_clauses.iter();
        let clauses = clauses.map(|clause| self.merge_when(clause));
        Ok(library::Merge {
            table: merge.relation.clone(),
            source,
            on: Box::new(self.expr(&merge.join_condition)?),
            clauses: clauses.collect::<Result<_>>()?,
        })
    }

    fn merge_when(&self, clause: &MergeWhenClause) -> Result<library::MergeClause> {
        let action = match &clause.action {
            MergeAction::Nothing => library::MergeAction::DoNothing,
            MergeAction::Delete => library::MergeAction::Delete,
            MergeAction::Update(assignments) => {
                library::MergeAction::Update(self.assignments(assignments)?)
            }
            MergeAction::Insert {
                cols,
                overriding,
                values,
            } => library::MergeAction::Insert(library::MergeInsertExpr {
                columns: self.targets(cols)?,
                overriding: *overriding,
                values: match values {
                    Some(values) => Some(self.row_items(values)?),
                    None => None,
                },
            }),
        };
        Ok(library::MergeClause {
            clause_kind: match clause.matched {
                true => library::MergeClauseKind::Matched,
                false => library::MergeClauseKind::NotMatched,
            },
            predicate: self.opt_expr(clause.condition.as_ref())?,
            action,
        })
    }
}
