//! MERGE: source and target joined, and what the clauses do of the rows.
//!
//! The target is to the right of a left join if rows that nothing matches are wanted. The clauses of those rows see the
//! source only.

use super::assignment_target::AssignmentTarget;
use super::constraint_rules::Change;
use super::dml::{Overriding, live};
use super::policy::MergePolicies;
use super::select::push_conjuncts;
use super::updatable::Verb;
use super::update_delete::changed_positions;
use super::{Binder, Clause, ColId, Frame};
use crate::query::expr::Expr;
use crate::query::{BoundChange, ChangeSource, ChangedRows, From, FromList};
use crate::{Check, Insert, JoinKind, Merge, MergeAction, Node, Plan, SecurityQuals, Update, When};
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_parse::ast::{self, RangeVar};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// A clause whose expressions are not over a row yet.
struct BoundClause {
    matched: bool,
    condition: Option<Expr>,
    action: Action,
}

enum Action {
    Nothing,
    Update(Vec<(usize, Expr)>),
    Delete,
    /// The full row, and the columns that are given values.
    Insert(Vec<Expr>, Vec<usize>),
}

impl Binder<'_> {
    pub(crate) fn merge_statement(&mut self, merge: &ast::MergeStmt) -> Result<BoundChange> {
        self.check_merge(merge)?;
        self.frames.push(Frame::new());
        let result = self.merge_in_frame(merge);
        self.frames.pop();
        result
    }

    /// What the grammar takes and PostgreSQL does not.
    fn check_merge(&self, merge: &ast::MergeStmt) -> Result<()> {
        // Of rows that match, and of those that do not: a clause without a condition leaves nothing to those behind it.
        let mut closed = [false; 2];
        for clause in &merge.merge_when_clauses {
            let at = usize::from(clause.matched);
            if closed[at] {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "unreachable WHEN clause specified after unconditional WHEN clause",
                ));
            }
            closed[at] = clause.condition.is_none();
        }
        Ok(())
    }

    fn merge_in_frame(&mut self, merge: &ast::MergeStmt) -> Result<BoundChange> {
        let (relation, rel) = self.merge_target(&merge.relation)?;
        let Some(target) = self.frame()?.ns.pop() else {
            return Err(SqlError::internal("a target out of sight"));
        };
        let clauses = &merge.merge_when_clauses;
        let mut actions = clauses.iter().map(|clause| &clause.action);
        let inserts = actions.any(|action| matches!(action, ast::MergeAction::Insert { .. }));
        self.outer_joins += usize::from(inserts);
        // Its columns are none of the source's business, but it is known who is meant.
        self.unseen.push(std::sync::Arc::clone(&target.alias));
        let source = self.within_query(|b| b.table_ref(&merge.source_relation));
        self.unseen.pop();
        self.outer_joins -= usize::from(inserts);
        let mut list = source?;
        let same = |item: &super::NsItem| item.rel_visible && item.alias == target.alias;
        if self.frame()?.ns.iter().any(same) {
            let message = format!("name \"{}\" specified more than once", target.alias);
            return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message)
                .detail("The name is used both as MERGE target table and data source."));
        }
        self.frame()?.ns.insert(0, target);
        let on = self.within_query(|b| {
            b.in_clause(Clause::JoinOn, |b| {
                b.condition_of(&merge.join_condition, "JOIN/ON")
            })
        })?;
        let mut conditions = Vec::new();
        push_conjuncts(on, &mut conditions);
        let first = self.range.rels[rel].first;
        for position in live(&relation) {
            // The whole old row is read: it becomes the new one.
            self.give_column(first + position);
        }
        let mut bound = Vec::with_capacity(clauses.len());
        for clause in clauses {
            bound.push(self.within_query(|b| b.merge_clause(clause, &relation, first))?);
        }
        if bound
            .iter()
            .any(|clause| !matches!(clause.action, Action::Nothing))
        {
            self.writes(&relation);
        } else {
            // Nothing is done to it: then it is read, if no more than that it has rows.
            self.target_reads(&[]);
        }
        self.guard_target(rel, &relation, None)?;
        let policies = self.merge_policies(&relation)?;
        let on = SecurityQuals::hiding(self.range.guards_of([rel]), conditions.iter().cloned());
        if inserts {
            let target = FromList {
                items: vec![From::Rel(rel)],
                conditions: Vec::new(),
            };
            let join = From::Join {
                kind: JoinKind::Left,
                left: Box::new(list),
                right: Box::new(target),
                on: conditions,
            };
            list = FromList {
                items: vec![join],
                conditions: Vec::new(),
            };
        } else {
            list.items.insert(0, From::Rel(rel));
            list.conditions.extend(conditions);
        }
        let checks = self.target_checks(&relation)?;
        let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
        // UPDATE OF of triggers is asked of what all clauses name together.
        let named = bound.iter().flat_map(|clause| match &clause.action {
            Action::Update(assignments) => changed_positions(assignments),
            _ => Vec::new(),
        });
        let updated = self.updated_positions(named.collect(), &relation)?;
        let given = bound.iter().flat_map(|clause| match &clause.action {
            Action::Update(assignments) => changed_positions(assignments),
            Action::Insert(_, given) => given.clone(),
            Action::Nothing | Action::Delete => Vec::new(),
        });
        let given: Vec<usize> = given.collect();
        for clause in bound {
            let of_matched = clause.matched;
            let when = {
                let columns = (updated.as_slice(), given.as_slice());
                self.merge_when(clause, &relation, &checks, &policies, columns)?
            };
            match of_matched {
                true => matched.push(when),
                false => unmatched.push(when),
            }
        }
        Ok(BoundChange {
            node: Node::Merge(Box::new(Merge {
                table: Arc::clone(&relation),
                source: Plan::nothing(),
                on,
                matched,
                unmatched,
            })),
            columns: Vec::new(),
            source: ChangeSource::Rows(ChangedRows {
                relation,
                rel,
                list,
            }),
        })
    }

    /// Opens the target in the current frame: table and FROM item.
    fn merge_target(&mut self, table: &RangeVar) -> Result<(Arc<Relation>, usize)> {
        let found = self.relation(table)?;
        let kind = match &found.kind {
            RelationKind::View(_) => Some("views"),
            RelationKind::Materialized(..) => Some("materialized views"),
            RelationKind::Sequence(_) => Some("sequences"),
            RelationKind::Table | RelationKind::Virtual(_) => None,
        };
        if let Some(kind) = kind {
            let message = format!("cannot execute MERGE on relation \"{}\"", found.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .detail(format!("This operation is not supported for {kind}.")));
        }
        let relation = self.target(table, Verb::Update)?;
        let rel = self.target_item(&relation, table.alias.as_deref())?;
        self.give_row_id(rel);
        Ok((relation, rel))
    }

    fn merge_clause(
        &mut self,
        clause: &ast::MergeWhenClause,
        relation: &Arc<Relation>,
        first: ColId,
    ) -> Result<BoundClause> {
        let matched = clause.matched;
        if let Some(target) = self.frame()?.ns.first_mut() {
            target.rel_visible = matched;
            target.columns_visible = matched;
        }
        let condition = match &clause.condition {
            Some(condition) => {
                let bound =
                    self.in_clause(Clause::MergeWhen, |b| b.condition_of(condition, "WHEN"));
                Some(bound?)
            }
            None => None,
        };
        let action = match &clause.action {
            ast::MergeAction::Nothing => Action::Nothing,
            ast::MergeAction::Delete => {
                self.target_wants(privilege::DELETE);
                Action::Delete
            }
            ast::MergeAction::Update(target_list) => {
                let assignments = self.assignments(target_list, relation, first)?;
                self.target_writes(&changed_positions(&assignments), privilege::UPDATE);
                Action::Update(assignments)
            }
            ast::MergeAction::Insert {
                cols,
                overriding,
                values,
            } => {
                let overriding = Overriding::from(*overriding);
                let row = values.as_deref();
                let (values, given) = self.merge_insert(cols, overriding, row, relation)?;
                Action::Insert(values, given)
            }
        };
        Ok(BoundClause {
            matched,
            condition,
            action,
        })
    }

    /// The full row that an INSERT makes of a source row.
    fn merge_insert(
        &mut self,
        columns: &[ast::ResTarget],
        overriding: Overriding,
        row: Option<&[ast::Expr]>,
        relation: &Arc<Relation>,
    ) -> Result<(Vec<Expr>, Vec<usize>)> {
        let mut given: Vec<Option<Expr>> = vec![None; relation.columns.len()];
        if let Some(row) = row {
            let explicit = !columns.is_empty();
            let targets = match explicit {
                true => self.insert_targets(columns, relation)?,
                false => live(relation).map(AssignmentTarget::whole).collect(),
            };
            if let Some(extra) = row.get(targets.len()) {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, super::dml::TOO_MANY)
                    .at(self.at(extra.location())));
            }
            if explicit && row.len() < targets.len() {
                let at = columns.get(row.len()).and_then(|c| self.at(c.location));
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, super::dml::TOO_FEW).at(at));
            }
            for (value, target) in row.iter().zip(&targets) {
                let bound = self.in_clause(Clause::Values, |b| {
                    b.insert_value(relation, target, value, overriding)
                });
                self.give_part(&mut given, relation, target, bound?)?;
            }
        }
        let named = given
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_some());
        let named: Vec<usize> = named.map(|(position, _)| position).collect();
        self.target_writes(&named, privilege::INSERT);
        let mut full = Vec::with_capacity(given.len());
        for (position, value) in given.into_iter().enumerate() {
            full.push(match value {
                Some(value) => value,
                None => self.target_default(relation, position)?,
            });
        }
        Ok((full, named))
    }

    /// A clause, still over identities.
    fn merge_when(
        &mut self,
        clause: BoundClause,
        relation: &Arc<Relation>,
        checks: &[Check],
        policies: &MergePolicies,
        (updated, given): (&[usize], &[usize]),
    ) -> Result<When> {
        let existing = match &clause.action {
            Action::Update(_) => policies.updating.clone(),
            Action::Delete => policies.deleting.clone(),
            Action::Nothing | Action::Insert(..) => Vec::new(),
        };
        let action = match clause.action {
            Action::Nothing => MergeAction::Nothing,
            Action::Delete => MergeAction::Delete(self.rules(relation, &Change::Delete)?),
            Action::Update(assignments) => {
                let (assignments, generated) = self.with_generated(assignments, relation)?;
                MergeAction::Update(Box::new(Update {
                    table: Arc::clone(relation),
                    source: Plan::nothing(),
                    assignments,
                    generated,
                    recheck: SecurityQuals::default(),
                    policies: policies.updated.clone(),
                    checks: checks.to_vec(),
                    rules: self.rules(relation, &Change::Update(updated.to_vec()))?,
                    given: given.to_vec(),
                    returning: None,
                }))
            }
            Action::Insert(values, _) => MergeAction::Insert(Box::new(Insert {
                table: Arc::clone(relation),
                source: Plan::nothing(),
                values,
                generated: super::standalone::generated(self, relation)?,
                policies: policies.inserted.clone(),
                checks: checks.to_vec(),
                conflict: None,
                rules: self.rules(relation, &Change::Insert(Vec::new()))?,
                given: given.to_vec(),
                returning: None,
                hidden: false,
            })),
        };
        Ok(When {
            condition: clause.condition,
            existing,
            action,
        })
    }
}
