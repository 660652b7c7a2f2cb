//! What a statement leaves to be judged when its rows are written: the rules of its table, and of every table that
//! actions of foreign keys may change in turn.
//!
//! All of these tables are locked with the statement's own: afterwards the rules stay right until the transaction ends.

use super::Binder;
use super::trigger::fired;
use crate::constraints::{ForeignRule, RuleSet, TableRules, UniqueRule};
use crate::query::expr::Expr;
use logstead_sql_catalog::{Catalog, ConstraintKind, ForeignKey, ReferentialAction, Relation};
use logstead_sql_types::error::Result;
use std::sync::Arc;

/// What a statement does to its table.
pub(crate) enum Change {
    /// Inserts, and updates these positions (ON CONFLICT).
    Insert(Vec<usize>),
    /// Updates these positions.
    Update(Vec<usize>),
    /// Deletes.
    Delete,
    /// Empties it, which leaves nothing to be judged.
    Truncate,
}

/// What may happen to a table's rows in the course of a statement.
#[derive(Clone, Default, PartialEq, Eq)]
struct TableEvents {
    inserted: bool,
    updated: bool,
    deleted: bool,
    /// What actions of foreign keys do of that.
    acted: ReferentialActions,
}

/// What actions of foreign keys do to a table's rows.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ReferentialActions {
    /// They update these positions, in order.
    pub(super) updated: Vec<usize>,
    /// They delete.
    pub(super) deleted: bool,
}

impl TableEvents {
    /// An action of this key does something to the table that has the key.
    fn act(&mut self, key: &ForeignKey, deletes: bool, sets: bool, cascades: bool) {
        self.deleted |= deletes;
        self.updated |= sets || cascades;
        self.acted.deleted |= deletes;
        let partly = sets && !cascades && !key.set_columns.is_empty();
        let columns = match partly {
            true => &key.set_columns,
            false => &key.columns,
        };
        if sets || cascades {
            self.acted.updated.extend_from_slice(columns);
            self.acted.updated.sort_unstable();
            self.acted.updated.dedup();
        }
    }
}

fn own_foreign(
    relation: &Relation,
) -> impl Iterator<Item = &Arc<logstead_sql_catalog::Constraint>> {
    relation
        .constraints
        .iter()
        .filter(|c| matches!(c.kind, ConstraintKind::Foreign(_)))
}

/// Does the change touch anything that is judged later? Most statements' do not, and pay no more than this.
fn concerns(catalog: &Catalog, relation: &Relation, change: &Change, replica: bool) -> bool {
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
    let triggers = catalog.triggers.of(relation.oid);
    if triggers
        .iter()
        .any(|trigger| !fired(trigger, change, replica).is_empty())
    {
        return true;
    }
    match change {
        Change::Insert(positions) => {
            deferrable() || own_foreign(relation).next().is_some() || touched(positions)
        }
        Change::Update(positions) => touched(positions),
        Change::Delete => referenced(),
        Change::Truncate => false,
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
        let replica = self.cx.session.scans().replica;
        if !concerns(&catalog, relation, change, replica) {
            return Ok(None);
        }
        let first = match change {
            Change::Insert(positions) => TableEvents {
                inserted: true,
                updated: !positions.is_empty(),
                ..TableEvents::default()
            },
            Change::Update(_) => TableEvents {
                updated: true,
                ..TableEvents::default()
            },
            Change::Delete => TableEvents {
                deleted: true,
                ..TableEvents::default()
            },
            Change::Truncate => TableEvents::default(),
        };
        let mut reached = vec![(Arc::clone(relation), first)];
        let mut checked: Vec<Arc<Relation>> = Vec::new();
        let mut acts = false;
        let mut at = 0;
        while let Some((table, reach)) = reached.get(at).cloned() {
            at += 1;
            // A replica gets rows that were judged where they come from, and what actions have changed there.
            if replica {
                continue;
            }
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
                let deletes = reach.deleted && key.on_delete == ReferentialAction::Cascade;
                let sets = reach.deleted && key.on_delete.changes_rows() && !deletes;
                let cascades = reach.updated && key.on_update.changes_rows();
                if !(deletes || sets || cascades) {
                    checked.push(Arc::clone(child));
                    continue;
                }
                acts = true;
                match reached.iter_mut().position(|(r, _)| r.oid == child.oid) {
                    Some(known) => {
                        let mut now = reached[known].1.clone();
                        now.act(key, deletes, sets, cascades);
                        if now != reached[known].1 {
                            reached[known].1 = now;
                            // What it reaches in turn may be more than before.
                            at = at.min(known);
                        }
                    }
                    None => {
                        let mut reach = TableEvents::default();
                        reach.act(key, deletes, sets, cascades);
                        reached.push((Arc::clone(child), reach));
                    }
                }
            }
        }
        // They are locked, and nobody asks whether the statement's role may: what is done there is done as their owners
        // (`exec::constraints`).
        self.read_only = false;
        let changed = reached.iter().skip(1).map(|(table, _)| Arc::clone(table));
        self.constraint_writes.extend(changed);
        self.constraint_reads.extend(checked);
        let mut tables = Vec::with_capacity(reached.len());
        for (at, (table, reach)) in reached.iter().enumerate() {
            let called = self.routines_used.len();
            let mut rules = self.table_rules(&catalog, table, acts)?;
            let own = (at == 0).then_some(change);
            rules.triggers = self.triggers(table, own, &reach.acted)?;
            if at > 0
                && let Some(owner) = catalog.table_acts_as(table.oid)
            {
                // What they call they call as who owns the table.
                for used in self.routines_used.iter_mut().skip(called) {
                    used.as_role.get_or_insert(owner);
                }
            }
            tables.push(rules);
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
        let replica = self.cx.session.scans().replica;
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
                ConstraintKind::Foreign(key) if !replica => {
                    child.push(Arc::new(ForeignRule::new(catalog, table, constraint, key)?));
                }
                _ => {}
            }
        }
        unique.sort_by_key(|r| r.oid);
        child.sort_by_key(|r| r.oid);
        let mut parent = Vec::new();
        for (referencing, constraint) in catalog.references_to(table.oid) {
            if let Some(key) = constraint.foreign().filter(|_| !replica) {
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
            triggers: None,
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
