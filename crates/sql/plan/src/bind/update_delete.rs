//! UPDATE and DELETE: assignments, and which rows both work on.

use super::assignment_target::AssignmentTarget;
use super::constraint_rules::Change;
use super::dml::{GENERATED_ALWAYS, live, null_of};
use super::query::is_default;
use super::scope::InvalidReference;
use super::select::push_conjuncts;
use super::updatable::Verb;
use super::{Binder, Clause, ColId, Frame};
use crate::query::expr::Expr;
use crate::query::{BoundChange, ChangeSource, ChangedRows, From, FromList};
use crate::{CursorName, Delete, Node, Plan, SecurityQuals, Update};
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::{Column, Relation};
use logstead_sql_parse::PolicyCommand;
use logstead_sql_parse::ast::{self, Expr as Ast, Name, RangeVar};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Assignments so far.
struct Assignments {
    /// The first column of the row that is changed.
    first: ColId,
    /// Columns that were assigned to as a whole.
    whole: Vec<usize>,
    all: Vec<(usize, Expr)>,
}

impl Binder<'_> {
    /// SET a = 1, (b, c) = (2, DEFAULT), (d, e) = (SELECT ...), f.g = 3. The columns of the row that is changed begin
    /// at `first`.
    pub(crate) fn assignments(
        &mut self,
        target_list: &[ast::SetClause],
        relation: &Arc<Relation>,
        first: ColId,
    ) -> Result<Vec<(usize, Expr)>> {
        let mut out = Assignments {
            first,
            whole: Vec::new(),
            all: Vec::with_capacity(target_list.len()),
        };
        for clause in target_list {
            match clause {
                ast::SetClause::Single(single) => {
                    let target = self.set_target(single, relation)?;
                    let Some(value) = &single.val else {
                        return Err(SqlError::internal("an assignment of nothing"));
                    };
                    let value = self.assignment_value(value, relation, &target)?;
                    self.push_assignment(&mut out, relation, &target, value)?;
                }
                ast::SetClause::Multiple(names, value) => {
                    let mut targets = Vec::with_capacity(names.len());
                    for name in names {
                        targets.push(self.set_target(name, relation)?);
                    }
                    let at = self.at(value.location());
                    let mismatch = || {
                        SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            "number of columns does not match number of values",
                        )
                        .at(at)
                    };
                    if let Some(items) = logstead_sql_parse::row_of(value) {
                        if items.len() != targets.len() {
                            return Err(mismatch());
                        }
                        for (item, target) in items.iter().zip(targets) {
                            let value = self.assignment_value(item, relation, &target)?;
                            self.push_assignment(&mut out, relation, &target, value)?;
                        }
                        continue;
                    }
                    let Some(query) = value.scalar_query().map(|link| &link.subselect) else {
                        if let [target] = targets.as_slice() {
                            let value = self.assignment_value(value, relation, target)?;
                            self.push_assignment(&mut out, relation, target, value)?;
                            continue;
                        }
                        return Err(SqlError::new(
                            SqlState::FEATURE_NOT_SUPPORTED,
                            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                        )
                        .at(at));
                    };
                    let row =
                        self.in_clause(Clause::Assign, |b| b.assigned_row(query, targets.len()))?;
                    let row = row.ok_or_else(mismatch)?;
                    for (value, target) in row.into_iter().zip(targets) {
                        let column = &relation.columns[target.position];
                        refuse_value(column)?;
                        let value = self.assign_part(value, column, target.path, at)?;
                        self.push_assignment(&mut out, relation, &target, value)?;
                    }
                }
            }
        }
        Ok(out.all)
    }

    fn assignment_value(
        &mut self,
        value: &Ast,
        relation: &Arc<Relation>,
        target: &AssignmentTarget<'_>,
    ) -> Result<Expr> {
        let position = target.position;
        let column = &relation.columns[position];
        if is_default(value) {
            if !target.path.is_empty() {
                return Err(
                    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, target.no_default())
                        .at(self.at(value.location())),
                );
            }
            // A view's column without a default of its own becomes NULL.
            if let Some(through) = self.through(relation)
                && through.default_for(position).is_none()
            {
                return Ok(null_of(column));
            }
            return self.target_default(relation, position);
        }
        let at = self.at(value.location());
        refuse_value(column)?;
        let ty = self.part(column, target.path)?.ty;
        let bound = self.in_clause(Clause::Assign, |b| b.value_for(value, ty))?;
        self.assign_part(bound, column, target.path, at)
    }

    fn push_assignment(
        &mut self,
        out: &mut Assignments,
        relation: &Relation,
        target: &AssignmentTarget<'_>,
        value: Expr,
    ) -> Result<()> {
        let position = target.position;
        let column = &relation.columns[position];
        let known = out.all.iter().position(|(p, _)| *p == position);
        let whole = target.path.is_empty();
        if known.is_some() && (whole || out.whole.contains(&position)) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("multiple assignments to same column \"{}\"", column.name),
            ));
        }
        if whole {
            out.whole.push(position);
            out.all.push((position, value));
            return Ok(());
        }
        let old = match known {
            Some(at) => out.all.remove(at).1,
            None => self.old_value(out.first, position, column),
        };
        let changed = self.with_part(old, column, target.path, value)?;
        out.all.push((position, changed));
        Ok(())
    }

    /// The assignments, then those of the generated columns that they change; and how many these are.
    pub(crate) fn with_generated(
        &mut self,
        assignments: Vec<(usize, Expr)>,
        relation: &Relation,
    ) -> Result<(Vec<(usize, Expr)>, usize)> {
        let mut all: Vec<_> = assignments
            .into_iter()
            // SET b = DEFAULT of a generated column says nothing.
            .filter(|(position, _)| !relation.columns[*position].generated)
            .collect();
        let changed = match self.rewrites_updates(relation) {
            // What triggers make of the row may change any column.
            true => (0..relation.columns.len()).collect(),
            false => changed_positions(&all),
        };
        let generated = super::standalone::generated_after(self, relation, &changed)?;
        let number = generated.len();
        all.extend(generated);
        Ok((all, number))
    }

    /// What UPDATE OF of triggers is asked of: the columns that are named, and the generated ones that follow them.
    pub(super) fn updated_positions(
        &mut self,
        mut named: Vec<usize>,
        relation: &Relation,
    ) -> Result<Vec<usize>> {
        if !relation.columns.iter().any(|column| column.generated) {
            return Ok(named);
        }
        for (position, _) in super::standalone::generated_after(self, relation, &named)? {
            named.push(position);
        }
        named.sort_unstable();
        named.dedup();
        Ok(named)
    }

    pub(crate) fn update(&mut self, update: &ast::UpdateStmt) -> Result<BoundChange> {
        self.frames.push(Frame::new());
        let result = self.update_in_frame(update);
        self.frames.pop();
        result
    }

    fn update_in_frame(&mut self, update: &ast::UpdateStmt) -> Result<BoundChange> {
        let (relation, rel, shown) = self.change_target(&update.relation, Verb::Update)?;
        let mut list = self.change_conditions(
            &relation,
            rel,
            &update.from_clause,
            update.where_clause.as_ref(),
        )?;
        // What the view asks comes first: nothing of the statement's sees other rows.
        list.conditions.splice(0..0, shown);
        let first = self.range.rels[rel].first;
        let assignments =
            self.within_query(|b| b.assignments(&update.target_list, &relation, first))?;
        let named = changed_positions(&assignments);
        self.target_writes(&named, privilege::UPDATE);
        let returning = self.within_query(|b| b.returning_items(&update.returning_list))?;
        self.guard_target(rel, &relation, Some(PolicyCommand::Update))?;
        let policies = self.update_policies(&relation)?;
        let (assignments, generated) = self.with_generated(assignments, &relation)?;
        let (returning, columns) = returning.unzip();
        let checks = self.target_checks(&relation)?;
        let positions = self.updated_positions(named.clone(), &relation)?;
        let rules = self.rules(&relation, &Change::Update(positions))?;
        let node = Node::Update(Box::new(Update {
            table: Arc::clone(&relation),
            source: Plan::nothing(),
            assignments,
            generated,
            recheck: SecurityQuals::default(),
            policies,
            checks,
            rules,
            given: named,
            returning,
        }));
        Ok(BoundChange {
            node,
            columns: columns.unwrap_or_default(),
            source: ChangeSource::Rows(ChangedRows {
                relation,
                rel,
                list,
            }),
        })
    }

    /// The UPDATE of all rows of a table that computes what stands at these positions for indexes.
    pub(crate) fn update_computed(
        &mut self,
        relation: &Arc<Relation>,
        positions: &[usize],
    ) -> Result<BoundChange> {
        self.frames.push(Frame::new());
        self.read_only = false;
        self.writes(relation);
        let rel = self.attached(super::access::NOBODYS, |b| b.add_relation(relation, None))?;
        self.give_row_id(rel);
        let first = self.range.rels[rel].first;
        for position in live(relation) {
            self.give_column(first + position);
        }
        let list = FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        };
        self.frames.pop();
        let mut assignments = super::standalone::generated(self, relation)?;
        assignments.retain(|(position, _)| positions.contains(position));
        let node = Node::Update(Box::new(Update {
            table: Arc::clone(relation),
            source: Plan::nothing(),
            generated: assignments.len(),
            assignments,
            recheck: SecurityQuals::default(),
            policies: Vec::new(),
            checks: Vec::new(),
            rules: None,
            given: Vec::new(),
            returning: None,
        }));
        Ok(BoundChange {
            node,
            columns: Vec::new(),
            source: ChangeSource::Rows(ChangedRows {
                relation: Arc::clone(relation),
                rel,
                list,
            }),
        })
    }

    pub(crate) fn delete(&mut self, delete: &ast::DeleteStmt) -> Result<BoundChange> {
        self.frames.push(Frame::new());
        let result = self.delete_in_frame(delete);
        self.frames.pop();
        result
    }

    fn delete_in_frame(&mut self, delete: &ast::DeleteStmt) -> Result<BoundChange> {
        let (relation, rel, shown) = self.change_target(&delete.relation, Verb::Delete)?;
        let mut list = self.change_conditions(
            &relation,
            rel,
            &delete.using_clause,
            delete.where_clause.as_ref(),
        )?;
        // What the view asks comes first: nothing of the statement's sees other rows.
        list.conditions.splice(0..0, shown);
        let returning = self.within_query(|b| b.returning_items(&delete.returning_list))?;
        self.guard_target(rel, &relation, Some(PolicyCommand::Delete))?;
        let (returning, columns) = returning.unzip();
        let rules = self.rules(&relation, &Change::Delete)?;
        let node = Node::Delete(Box::new(Delete {
            table: Arc::clone(&relation),
            source: Plan::nothing(),
            recheck: SecurityQuals::default(),
            rules,
            returning,
        }));
        Ok(BoundChange {
            node,
            columns: columns.unwrap_or_default(),
            source: ChangeSource::Rows(ChangedRows {
                relation,
                rel,
                list,
            }),
        })
    }

    /// Opens the target of UPDATE or DELETE in the current frame: table, FROM item, and the conditions of a view
    /// between.
    fn change_target(
        &mut self,
        table: &RangeVar,
        verb: Verb,
    ) -> Result<(Arc<Relation>, usize, Vec<Expr>)> {
        let alias = table.alias.as_deref();
        let relation = self.target(table, verb)?;
        if verb == Verb::Delete {
            self.target_wants(privilege::DELETE);
        }
        self.writes(&relation);
        let (rel, shown) = match self.through(&relation) {
            Some(through) => self.open_through(&through, alias)?,
            None if relation.view().is_some() => {
                return Ok((
                    Arc::clone(&relation),
                    self.view_target(&relation, alias)?,
                    Vec::new(),
                ));
            }
            None => (self.target_item(&relation, alias)?, Vec::new()),
        };
        self.give_row_id(rel);
        Ok((relation, rel, shown))
    }

    /// FROM and WHERE of UPDATE and DELETE.
    fn change_conditions(
        &mut self,
        relation: &Relation,
        rel: usize,
        from: &[ast::TableRef],
        selection: Option<&Ast>,
    ) -> Result<FromList> {
        let bar = |b: &mut Self, barred| -> Result<()> {
            let ns = &mut b.frame()?.ns;
            ns.iter_mut().take(1).for_each(|item| item.barred = barred);
            Ok(())
        };
        bar(self, Some(InvalidReference::Target))?;
        let mut list = self.within_query(|b| b.bind_from(from))?;
        bar(self, None)?;
        list.items.insert(0, From::Rel(rel));
        match selection.map(|selection| (selection, current_of(selection))) {
            None => {}
            Some((_, Some(_))) if self.through(relation).is_some() || relation.view().is_some() => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WHERE CURRENT OF on a view is not implemented",
                ));
            }
            Some((_, Some(cursor))) => {
                self.range.rels[rel].current_of = Some(match self.cursor_variable(cursor) {
                    Some(param) => CursorName::Param(param),
                    None => CursorName::Known((**cursor).into()),
                });
            }
            Some((selection, None)) => {
                let condition = self.within_query(|b| {
                    b.in_clause(Clause::Where, |b| b.condition_of(selection, "WHERE"))
                })?;
                push_conjuncts(condition, &mut list.conditions);
            }
        }
        let first = self.range.rels[rel].first;
        for position in live(relation) {
            // The whole old row is read: it becomes the new one.
            self.give_column(first + position);
        }
        Ok(list)
    }
}

/// Fails for a column that is given nothing but DEFAULT.
fn refuse_value(column: &Column) -> Result<()> {
    let what = match column.identity {
        _ if column.generated => "a generated column",
        Some(true) => "an identity column defined as GENERATED ALWAYS",
        _ => return Ok(()),
    };
    let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
    let detail = format!("Column \"{}\" is {what}.", column.name);
    Err(SqlError::new(GENERATED_ALWAYS, message).detail(detail))
}

pub(super) fn changed_positions(assignments: &[(usize, Expr)]) -> Vec<usize> {
    assignments.iter().map(|(position, _)| *position).collect()
}

/// The cursor of `WHERE CURRENT OF`, if a condition is that.
fn current_of(condition: &Ast) -> Option<&Name> {
    match condition {
        Ast::CurrentOf(node) => Some(&node.cursor_name),
        _ => None,
    }
}
