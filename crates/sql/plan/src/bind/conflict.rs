//! ON CONFLICT: which indexes decide, and what DO UPDATE makes of the row in the way.
//!
//! Through a view that can be updated its names are the view's, those of `excluded` too; the indexes, and the row in
//! the way, are the table's, whether the view shows that row or not.

use super::{Binder, Clause, ColId, RelSource, index_expression};
use crate::query::expr::Expr;
use crate::{ConflictUpdate, Layout, OnConflict, SecurityQuals, implies, walk};
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::{IndexDef, Relation, RelationKind};
use logstead_sql_parse::ast::{
    self, Alias, AnyName, ColumnRef, IndexElem, IndexKey, InferClause, Location, NodeBox,
    SortByDir, SortByNulls,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

impl Binder<'_> {
    pub(super) fn on_conflict(
        &mut self,
        on: &ast::OnConflictClause,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
    ) -> Result<OnConflict> {
        let indexes = match &on.infer {
            None => Vec::new(),
            Some(InferClause::Index(elems, predicate, location)) => {
                let found = self.inferred(elems, predicate.as_ref(), *location, relation)?;
                if found.is_empty() {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                    ));
                }
                found
            }
            Some(InferClause::Constraint(constraint, _)) => {
                let through = self.through(relation);
                let index = relation
                    .constraints
                    .iter()
                    // A view has none.
                    .find(|c| *c.name == **constraint && through.is_none())
                    .and_then(|c| match c.kind {
                        logstead_sql_catalog::ConstraintKind::PrimaryKey(oid)
                        | logstead_sql_catalog::ConstraintKind::Unique(oid) => {
                            relation.indexes.iter().find(|i| i.oid == oid).cloned()
                        }
                        _ => None,
                    });
                vec![index.ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!(
                            "constraint \"{constraint}\" for table \"{}\" does not exist",
                            through.as_ref().map_or(relation, |t| &t.view).name
                        ),
                    )
                })?]
            }
        };
        // Whether a row conflicts tells of the columns that decide it.
        let told: Vec<usize> = indexes
            .iter()
            .flat_map(|index| index.columns.iter().filter_map(|c| c.position()))
            .collect();
        let told = match self.through(relation) {
            None => told,
            Some(through) => {
                let named = |base: usize| through.columns.iter().position(|c| *c == Some(base));
                told.into_iter().filter_map(named).collect()
            }
        };
        if !indexes.is_empty() {
            self.target_reads(&told);
        }
        let update = match &on.update {
            None => None,
            Some((target_list, condition)) => {
                if indexes.is_empty() {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    )
                    .hint("For example, ON CONFLICT (column_name)."));
                }
                let (first, width) = self.target_frame(relation, alias)?;
                let result =
                    self.conflict_update(target_list, condition.as_ref(), relation, first, width);
                self.frames.pop();
                Some(result?)
            }
        };
        Ok(OnConflict { indexes, update })
    }

    /// The unique indexes on just the columns and expressions of ON CONFLICT whose predicates its WHERE implies.
    fn inferred(
        &mut self,
        elems: &[IndexElem],
        predicate: Option<&ast::Expr>,
        location: Location,
        relation: &Arc<Relation>,
    ) -> Result<Vec<Arc<IndexDef>>> {
        let mut positions = Vec::with_capacity(elems.len());
        let mut expressions = Vec::new();
        let mut conditions = Vec::new();
        // What names the columns: the table, or the view over it, whose rows are as a table's here.
        let through = self.through(relation);
        let as_table = through.as_ref().map(|t| Relation {
            kind: RelationKind::Table,
            ..Relation::clone(&t.view)
        });
        let named = as_table.as_ref().unwrap_or(relation);
        for elem in elems {
            refuse_unmatched(elem).map_err(|e| e.at(self.at(location)))?;
            let collated;
            let written = match (&elem.key, &elem.collation) {
                (IndexKey::Column(name), None) => {
                    if let Some(through) = &through
                        && through.computes(name)
                    {
                        return Ok(Vec::new());
                    }
                    positions.push(self.attribute(relation, name, location).map_err(|e| {
                        let message = format!("column \"{name}\" does not exist");
                        SqlError::new(e.code(), message).at(self.at(location))
                    })?);
                    continue;
                }
                (IndexKey::Expr(written, _), None) => written,
                (key, Some(collation)) => {
                    collated = with_collation(key, collation, location);
                    &collated
                }
            };
            let bound = self.conflict_scalar(written, named, "INDEX")?;
            let bound = match &through {
                None => Some(bound),
                Some(through) => through.over_base(bound),
            };
            match bound {
                // No index is on what a view computes.
                None => return Ok(Vec::new()),
                Some(Expr::Column(position, _)) => positions.push(position),
                Some(bound) => expressions.push(bound),
            }
        }
        if let Some(written) = predicate {
            let bound = self.conflict_scalar(written, named, "PREDICATE")?;
            // What is asked of what a view computes implies no predicate.
            conditions.extend(match &through {
                None => Some(bound),
                Some(through) => through.over_base(bound),
            });
        }
        let mut found = Vec::new();
        for index in relation
            .indexes
            .iter()
            .filter(|index| index.unique && index.invalid.is_none())
        {
            let own: Vec<usize> = index.columns.iter().filter_map(|c| c.position()).collect();
            let same_columns = own.iter().all(|p| positions.contains(p))
                && positions.iter().all(|p| own.contains(p));
            if !same_columns {
                continue;
            }
            if index.is_plain() {
                if expressions.is_empty() {
                    found.push(index.clone());
                }
                continue;
            }
            let bound = index_expression::bind(relation, index, self.cx)?;
            let keys: Vec<&Expr> = bound
                .keys
                .iter()
                .filter(|key| !matches!(key, Expr::Column(..)))
                .collect();
            let among = |key: &Expr, all: &[Expr]| all.iter().any(|e| walk::same(e, key));
            let same_expressions = keys.iter().all(|key| among(key, &expressions))
                && expressions
                    .iter()
                    .all(|e| keys.iter().any(|key| walk::same(e, key)));
            let covered = bound
                .predicate
                .is_none_or(|p| implies::all(&conditions, std::slice::from_ref(&p)));
            if same_expressions && covered {
                found.push(index.clone());
            }
        }
        Ok(found)
    }

    /// A key or a condition that ON CONFLICT names.
    fn conflict_scalar(&self, written: &ast::Expr, named: &Relation, what: &str) -> Result<Expr> {
        let own = crate::PlanContext {
            param_types: &[],
            parameters_fixed: true,
            ..*self.cx
        };
        super::standalone::conflict_scalar(written, self.text, named, &own, what)
    }

    fn conflict_update(
        &mut self,
        target_list: &[ast::SetClause],
        condition: Option<&ast::Expr>,
        relation: &Arc<Relation>,
        first: ColId,
        width: usize,
    ) -> Result<ConflictUpdate> {
        let excluded = match self.through(relation) {
            None => self.target_item(relation, None)?,
            // Its columns are the view's: those that are computed are so of the row that is proposed.
            Some(through) => self.open_through(&through, None)?.0,
        };
        self.rename_last("excluded".into(), relation)?;
        if let Some(item) = self.frame()?.ns.last_mut() {
            item.hidden_name = None;
            // Nothing is known of a proposed row but its values.
            item.table = None;
        }
        let excluded = self.range.rels[excluded].first;
        let mut ids: Vec<ColId> = (first..first + width).collect();
        ids.extend(excluded..excluded + width);
        let target = self.range.rels.iter().position(|rel| rel.first == first);
        let target =
            target.filter(|rel| matches!(self.range.rels[*rel].source, RelSource::Table(_)));
        if let Some(target) = target {
            self.range.rels[target].scanned = true;
            ids.extend(first + width..self.range.rels[target].ids().1);
        }
        let layout = Layout::new(ids);
        let assignments = self.assignments(target_list, relation, first)?;
        let changed: Vec<usize> = assignments.iter().map(|(position, _)| *position).collect();
        self.target_writes(&changed, privilege::UPDATE);
        let (mut assignments, generated) = self.with_generated(assignments, relation)?;
        for (_, value) in &mut assignments {
            self.put_over_row(value, &layout)?;
        }
        let wanted = match condition {
            None => SecurityQuals::default(),
            Some(condition) => {
                let mut condition = self.in_clause(Clause::ConflictWhere, |b| {
                    b.condition_of(condition, "WHERE")
                })?;
                self.put_over_row(&mut condition, &layout)?;
                condition.into()
            }
        };
        Ok(ConflictUpdate {
            assignments,
            generated,
            wanted,
            policies: Vec::new(),
            hidden: target.is_some_and(|target| self.range.rels[target].row_id.is_some()),
        })
    }
}

/// Refuses what says nothing of whether two rows conflict, and what no index is told apart by here.
fn refuse_unmatched(elem: &IndexElem) -> Result<()> {
    let what = match (&elem.ordering, elem.nulls_ordering) {
        (SortByDir::Default, SortByNulls::Default) => match &elem.opclass {
            None => return Ok(()),
            Some(_) => return Err(SqlError::unsupported("an operator class in ON CONFLICT")),
        },
        (SortByDir::Default, _) => "NULLS FIRST/LAST",
        _ => "ASC/DESC",
    };
    let message = format!("{what} is not allowed in ON CONFLICT clause");
    Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message))
}

/// A key with its COLLATE.
fn with_collation(key: &IndexKey, collation: &AnyName, location: Location) -> ast::Expr {
    let (arg, location) = match key {
        IndexKey::Column(name) => {
            let column = ColumnRef {
                fields: [name.clone()].into_iter().collect(),
                star: false,
                location,
            };
            (ast::Expr::ColumnRef(Box::new(column)), location)
        }
        IndexKey::Expr(expr, _) => (expr.clone(), expr.location()),
    };
    ast::Expr::CollateClause(NodeBox::new(ast::CollateClause {
        arg,
        collname: collation.names.clone(),
        location,
    }))
}
