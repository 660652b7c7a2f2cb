//! What a statement leaves to be judged when its rows are written: the rules of its table, and of every table that actions of
//! foreign keys may change in turn.
//!
//! All of these tables are locked with the statement's own: afterwards the rules stay right until the transaction ends.

use super::Binder;
use crate::catalog::{Catalog, ConstraintKind, Relation};
use crate::error::Result;
use crate::expr::Expr;
use crate::ri::{ForeignRule, RuleSet, TableRules, UniqueRule};
use std::sync::Arc;

/// What a statement does to its table.
pub(crate) enum Change {
    /// Inserts, and updates these positions (ON CONFLICT).
    Insert(Vec<usize>),
    /// Updates these positions.
    Update(Vec<usize>),
    /// Deletes.
    Delete,
}

/// What may happen to a table's rows in the course of a statement.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Reach {
    inserted: bool,
    updated: bool,
    deleted: bool,
}

fn own_foreign(relation: &Relation) -> impl Iterator<Item = &Arc<crate::catalog::Constraint>> {
    relation
        .constraints
        .iter()
        .filter(|c| matches!(c.kind, ConstraintKind::Foreign(_)))
}

/// Does the change touch anything that is judged later? Most statements' do not, and pay no more than this.
fn concerns(catalog: &Catalog, relation: &Relation, change: &Change) -> bool {
    let deferrable = || relation.indexes.iter().any(|i| i.unique && i.deferrable);
    let referenced = || catalog.referencing.contains_key(&relation.oid);
    let touched = |positions: &[usize]| {
        let key = |p: &usize| {
            relation
                .indexes
                .iter()
                .filter(|i| i.unique && i.deferrable)
                .any(|i| i.columns.iter().any(|c| c.position() == Some(*p)))
        };
        let own = |p: &usize| {
            own_foreign(relation)
                .filter_map(|c| c.foreign())
                .any(|f| f.columns.contains(p))
        };
        let other = |p: &usize| {
            referenced()
                && catalog
                    .references_to(relation.oid)
                    .iter()
                    .filter_map(|(_, c)| c.foreign())
                    .any(|f| f.referenced.contains(p))
        };
        positions.iter().any(|p| key(p) || own(p) || other(p))
    };
    match change {
        Change::Insert(positions) => {
            deferrable() || own_foreign(relation).next().is_some() || touched(positions)
        }
        Change::Update(positions) => touched(positions),
        Change::Delete => referenced(),
    }
}

impl Binder<'_> {
    /// The rules for a change of `relation`; `None` if there is nothing to judge later.
    pub(crate) fn rules(
        &mut self,
        relation: &Arc<Relation>,
        change: &Change,
    ) -> Result<Option<Arc<RuleSet>>> {
        let catalog = Arc::clone(self.cx.catalog);
        if !concerns(&catalog, relation, change) {
            return Ok(None);
        }
        let first = match change {
            Change::Insert(positions) => Reach {
                inserted: true,
                updated: !positions.is_empty(),
                deleted: false,
            },
            Change::Update(_) => Reach {
                updated: true,
                ..Reach::default()
            },
            Change::Delete => Reach {
                deleted: true,
                ..Reach::default()
            },
        };
        let mut reached: Vec<(Arc<Relation>, Reach)> = vec![(Arc::clone(relation), first)];
        let mut checked: Vec<Arc<Relation>> = Vec::new();
        let mut acts = false;
        let mut at = 0;
        while let Some((table, reach)) = reached.get(at).cloned() {
            at += 1;
            if reach.inserted || reach.updated {
                for key in own_foreign(&table).filter_map(|c| c.foreign()) {
                    checked.extend(catalog.relations.get(&key.table).cloned());
                }
            }
            if !(reach.updated || reach.deleted) {
                continue;
            }
            for (child, constraint) in catalog.references_to(table.oid) {
                let Some(key) = constraint.foreign() else {
                    continue;
                };
                let deletes = reach.deleted && key.on_delete == crate::catalog::Action::Cascade;
                let updates = (reach.deleted && key.on_delete.changes_rows() && !deletes)
                    || (reach.updated && key.on_update.changes_rows());
                if !(deletes || updates) {
                    checked.push(Arc::clone(child));
                    continue;
                }
                acts = true;
                match reached.iter_mut().position(|(r, _)| r.oid == child.oid) {
                    Some(known) => {
                        let before = reached[known].1;
                        let now = Reach {
                            updated: before.updated || updates,
                            deleted: before.deleted || deletes,
                            ..before
                        };
                        if now != before {
                            reached[known].1 = now;
                            // What it reaches in turn may be more than before.
                            at = at.min(known);
                        }
                    }
                    None => reached.push((
                        Arc::clone(child),
                        Reach {
                            inserted: false,
                            updated: updates,
                            deleted: deletes,
                        },
                    )),
                }
            }
        }
        for (table, _) in reached.iter().skip(1) {
            self.writes(table);
        }
        for table in &checked {
            self.reads(table);
        }
        let mut tables = Vec::with_capacity(reached.len());
        for (table, _) in &reached {
            tables.push(self.table_rules(&catalog, table, acts)?);
        }
        Ok(Some(Arc::new(RuleSet { tables })))
    }

    /// The rules of one table; with `actions`, also what rows changed by actions must fulfil and get.
    fn table_rules(
        &mut self,
        catalog: &Catalog,
        table: &Arc<Relation>,
        actions: bool,
    ) -> Result<TableRules> {
        let mut unique = Vec::new();
        let mut child = Vec::new();
        for constraint in &table.constraints {
            match &constraint.kind {
                ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index)
                    if constraint.timing.is_deferrable() =>
                {
                    if let Some(index) = table.indexes.iter().find(|i| i.oid == *index) {
                        unique.push(UniqueRule::new(table, constraint, index));
                    }
                }
                ConstraintKind::Foreign(key) => {
                    child.push(Arc::new(ForeignRule::new(catalog, table, constraint, key)?));
                }
                _ => {}
            }
        }
        unique.sort_by_key(|r| r.oid);
        child.sort_by_key(|r| r.oid);
        let mut parent = Vec::new();
        for (referencing, constraint) in catalog.references_to(table.oid) {
            if let Some(key) = constraint.foreign() {
                let rule = ForeignRule::new(catalog, referencing, constraint, key)?;
                parent.push(Arc::new(rule));
            }
        }
        let mut rules = TableRules {
            table: Arc::clone(table),
            unique,
            child,
            parent,
            checks: Vec::new(),
            generated: Vec::new(),
            defaults: Vec::new(),
            domains: Vec::new(),
        };
        if actions {
            rules.checks = super::standalone::checks(self, table)?;
            rules.generated = super::standalone::generated(self, table)?;
            for (position, column) in table.columns.iter().enumerate() {
                if let Some(domain) = column.domain {
                    let value = Expr::Column(position, column.ty);
                    let value = self.as_domain(value, domain)?;
                    rules.domains.push((position, value));
                }
            }
            let mut positions: Vec<usize> = rules
                .child
                .iter()
                .flat_map(|r| r.default_columns())
                .collect();
            positions.sort_unstable();
            positions.dedup();
            for position in positions {
                let value = super::standalone::column_default(self, table, position)?;
                rules.defaults.push((position, value));
            }
        }
        Ok(rules)
    }
}
