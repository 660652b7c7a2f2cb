//! What a statement does with which relations and columns: what its role, and the owners of its views, must be allowed.
//!
//! Owns: [`Uses`], filled while a statement is bound. Each place where a statement names a relation is asked for by
//! itself, as whoever that place belongs to: the role that runs the statement, or the owner of the view whose query it
//! stands in.
//!
//! Columns are found by their identities: a column is read if some expression names it ([`super::ColumnInfo::named`]),
//! not because a scan happens to give it. Through a view that is put into the query its columns share identities with
//! the table's: what the view's own query names is taken off before the statement goes on, so that what is named from
//! then on is the view's.
//!
//! Invariant: a relation that is read or written without being noted here is asked for as a whole
//! ([`Binder::finish_access`]).

use super::scope::NsColumnSource;
use super::{Binder, COLUMN_BASE, ColId};
use crate::permissions::SchemaLookup;
use crate::query::expr::Expr;
use logstead_sql_catalog::privileges::{PermissionInfo, is_closed};
use logstead_sql_catalog::role::acl::{AclMode, privilege as p};
use logstead_sql_catalog::{Catalog, Relation, RelationKind, large_objects};
use logstead_sql_parse::ast::Alias;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{SqlType, oid};
use logstead_sql_types::{RelationId, RoleId};
use std::sync::Arc;

/// What stands for a column of a relation in a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Column(ColId),
    /// An expression of a view's, by the number it was given.
    Computed(usize),
    Gone,
}

/// A relation in a statement, while the statement is bound.
pub(super) struct RelationUse {
    access: PermissionInfo,
    /// It is read even if no column is named.
    reads: bool,
    /// Its columns, wherever they are in sight.
    slots: Vec<Vec<Slot>>,
    /// A system column was named.
    system: bool,
    /// It stands in the body of a function.
    of_function: bool,
}

/// Stands for the system columns among those that are read: no privilege on a column covers them, the table's does.
const SYSTEM_POSITION: usize = usize::MAX;

/// All relations of a statement.
#[derive(Default)]
pub(crate) struct RelationUses {
    uses: Vec<RelationUse>,
    /// Whose rights count now; none is the role that runs the statement.
    pub(super) as_role: Option<RoleId>,
    /// The relation that what is opened next is another sight of; with `usize::MAX` it is nobody's.
    pub(super) attach: Option<usize>,
    /// The target of the statement, then what is under it if it is a view.
    pub(super) target: Vec<usize>,
    /// Which computed columns were named.
    computed: Vec<bool>,
    /// Schemas that names were looked up in; with a name that was not qualified, that.
    pub schemas: Vec<SchemaLookup>,
    /// What functions do with relations in parts that were bound apart.
    apart: Vec<PermissionInfo>,
}

impl RelationUses {
    /// Adds what a part takes that was bound apart, with the rights of `role` where it says nothing else.
    pub(super) fn add(&mut self, accesses: &[PermissionInfo], role: Option<RoleId>) {
        let accesses = accesses.iter().cloned().map(|mut access| {
            access.as_role = access.as_role.or(role);
            access
        });
        self.apart.extend(accesses);
    }
}

/// Opened relations are noted elsewhere.
pub(super) const NOBODYS: usize = usize::MAX;

/// A system relation that everybody reads.
fn is_everybodys(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Virtual(_))
        && !is_closed(relation)
        && !large_objects::is_kept(relation)
}

/// Is a view the same in both catalogs: its owner's, with the same options and the same query?
fn is_unchanged(view: &Relation, then: &Catalog, now: &Catalog) -> bool {
    let owner = |catalog: &Catalog| catalog.owner_of(view.oid);
    let options = |catalog: &Catalog| catalog.notes.options.get(&view.oid).cloned();
    let known = now.relations.get(&view.oid);
    let same_query = |known: &Arc<Relation>| match (&known.kind, &view.kind) {
        (RelationKind::View(now), RelationKind::View(then)) => {
            now.query == then.query && now.sources == then.sources
        }
        _ => false,
    };
    known.is_some_and(same_query) && owner(then) == owner(now) && options(then) == options(now)
}

impl Binder<'_> {
    /// Notes a relation. Gives its number.
    pub(super) fn note_use(
        &mut self,
        relation: &Arc<Relation>,
        wanted: AclMode,
        reads: bool,
        slots: Vec<Slot>,
    ) -> usize {
        self.uses.uses.push(RelationUse {
            access: PermissionInfo {
                relation: Arc::clone(relation),
                as_role: self.uses.as_role,
                wanted,
                selected: Vec::new(),
                inserted: Vec::new(),
                updated: Vec::new(),
            },
            reads,
            slots: vec![slots],
            system: false,
            of_function: !self.expanded.is_empty(),
        });
        self.uses.uses.len() - 1
    }

    /// Binds something whose relation is another sight of what was noted as `number`.
    pub(super) fn attached<T>(&mut self, number: usize, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.uses.attach.replace(number);
        let bound = bind(self);
        self.uses.attach = before;
        bound
    }

    /// The target, as it was noted.
    pub(super) fn target_number(&self) -> usize {
        self.uses.target.first().copied().unwrap_or(NOBODYS)
    }

    /// The target as a FROM item.
    pub(super) fn target_item(
        &mut self,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
    ) -> Result<usize> {
        let target = self.target_number();
        self.attached(target, |b| b.add_relation(relation, alias))
    }

    /// The columns of the view that is the target are in sight here, too.
    pub(super) fn see_target(&mut self, slots: Vec<Slot>) {
        let number = self.target_number();
        if let Some(found) = self.uses.uses.get_mut(number) {
            found.slots.push(slots);
        }
    }

    /// The next number of a column's own sequence: who may add a row may have it.
    pub(super) fn own_number(&mut self, sequence: Expr) -> Expr {
        self.volatile = true;
        self.read_only = false;
        Expr::Call {
            function: &logstead_sql_catalog::OWN_NUMBER,
            args: vec![sequence],
            ty: SqlType::of(oid::INT8),
        }
    }

    /// Notes a FROM item, or another sight of the target. Its columns follow each other from `first` on.
    pub(super) fn note_item(&mut self, relation: &Arc<Relation>, first: ColId) {
        let slots = (0..relation.columns.len()).map(|i| Slot::Column(first + i));
        let slots: Vec<Slot> = slots.collect();
        match self.uses.attach {
            Some(NOBODYS) => {}
            Some(number) => {
                if let Some(found) = self.uses.uses.get_mut(number) {
                    found.slots.push(slots);
                }
            }
            None => {
                self.note_use(relation, p::SELECT, true, slots);
            }
        }
    }

    /// The number of a computed column of a view.
    pub(super) fn computed_slot(&mut self) -> usize {
        self.uses.computed.push(false);
        self.uses.computed.len() - 1
    }

    /// A computed column of a view is named.
    pub(super) fn name_computed(&mut self, number: usize) {
        if let Some(named) = self.uses.computed.get_mut(number) {
            *named = true;
        }
    }

    /// What a view's column is to names.
    pub(super) fn view_column(&mut self, expr: &Expr) -> NsColumnSource {
        match expr {
            Expr::Column(id, _) if *id >= COLUMN_BASE => NsColumnSource::Column(*id),
            expr => NsColumnSource::Merged(expr.clone(), Some(self.computed_slot())),
        }
    }

    /// The places of columns as names see them.
    pub(super) fn slots_of(what: &[NsColumnSource]) -> Vec<Slot> {
        what.iter()
            .map(|what| match what {
                NsColumnSource::Column(id) => Slot::Column(*id),
                NsColumnSource::Merged(_, Some(number)) => Slot::Computed(*number),
                NsColumnSource::Merged(_, None) | NsColumnSource::Gone { .. } => Slot::Gone,
            })
            .collect()
    }

    /// A system column is named of the relation that has this column.
    pub(super) fn name_system_column(&mut self, of: ColId) {
        let has = |slot: &Slot| matches!(slot, Slot::Column(id) if *id == of);
        let mut uses = self.uses.uses.iter_mut();
        if let Some(found) = uses.find(|found| found.slots.iter().flatten().any(has)) {
            found.system = true;
        }
    }

    fn is_named(&self, slot: Slot) -> bool {
        match slot {
            Slot::Column(id) => self.info(id).named,
            Slot::Computed(number) => self.uses.computed.get(number).copied().unwrap_or(true),
            Slot::Gone => false,
        }
    }

    fn forget_named(&mut self, slot: Slot) {
        match slot {
            Slot::Column(id) => self.range.columns[id - COLUMN_BASE].named = false,
            Slot::Computed(number) => {
                if let Some(named) = self.uses.computed.get_mut(number) {
                    *named = false;
                }
            }
            Slot::Gone => {}
        }
    }

    /// What was named of a relation so far is all that its part of the statement names.
    fn settle_use(&mut self, number: usize) {
        let Some(found) = self.uses.uses.get_mut(number) else {
            return;
        };
        let slots = std::mem::take(&mut found.slots);
        let mut selected = Vec::new();
        for range in &slots {
            let named = range.iter().enumerate().filter(|(_, s)| self.is_named(**s));
            selected.extend(named.map(|(position, _)| position));
        }
        if let Some(found) = self.uses.uses.get_mut(number) {
            if std::mem::take(&mut found.system) {
                selected.push(SYSTEM_POSITION);
            }
            if found.reads || !selected.is_empty() {
                found.access.wanted |= p::SELECT;
            }
            found.access.selected.extend(selected);
            found.access.selected.sort_unstable();
            found.access.selected.dedup();
        }
        for slot in slots.into_iter().flatten() {
            self.forget_named(slot);
        }
    }

    /// What was named of these columns was named elsewhere.
    pub(super) fn forget_all_named(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.forget_named(*slot);
        }
    }

    /// The relations noted from number `from` on.
    pub(super) fn relations_noted(&self, from: usize) -> Vec<RelationId> {
        let noted = self.uses.uses.get(from..).unwrap_or_default();
        noted
            .iter()
            .map(|found| found.access.relation.oid)
            .collect()
    }

    /// How many relations were noted.
    pub(super) fn uses_noted(&self) -> usize {
        self.uses.uses.len()
    }

    /// A part of the statement is bound: that of relations noted from number `from` on.
    pub(super) fn settle_uses(&mut self, from: usize) {
        // A view put into another's query shares its columns with what is under it, and was noted after that: it has
        // what is named now.
        for number in (from..self.uses.uses.len()).rev() {
            if !self.uses.target.contains(&number) {
                self.settle_use(number);
            }
        }
    }

    /// Settles one relation under the view that is the target.
    pub(super) fn settle_under(&mut self, number: usize, keep: &[Slot]) {
        self.settle_use(number);
        if let Some(found) = self.uses.uses.get_mut(number) {
            // Where it stands in the table, for columns that are written.
            found.slots = vec![keep.to_vec()];
        }
    }

    /// Whose rights count for the query of a view.
    pub(super) fn view_role(&self, view: &Relation) -> Option<RoleId> {
        let catalog = self.cx.catalog;
        // In the past, too, a view does what it may do now, if it is still what it was: whom it is granted to now was
        // not given its query of then.
        if let Some(now) = self.cx.session.present_of(catalog)
            && !is_unchanged(view, catalog, &now)
        {
            return None;
        }
        catalog.view_reader(view)
    }

    /// Has a relation been read so far, or a column of it been named?
    pub(super) fn is_read(&self, number: usize) -> bool {
        self.uses.uses.get(number).is_some_and(|found| {
            let mut slots = found.slots.iter().flatten();
            found.access.wanted & p::SELECT != 0 || slots.any(|slot| self.is_named(*slot))
        })
    }

    /// Whose rights count for the table under the target.
    pub(super) fn target_role(&self) -> Option<RoleId> {
        let number = self.uses.target.last().copied().unwrap_or(NOBODYS);
        self.uses.uses.get(number)?.access.as_role
    }

    /// The target takes these privileges.
    pub(super) fn target_wants(&mut self, wanted: AclMode) {
        for number in self.uses.target.clone() {
            if let Some(found) = self.uses.uses.get_mut(number) {
                found.access.wanted |= wanted;
            }
        }
    }

    /// Columns of the target, by position in the table, are added or changed.
    pub(super) fn target_writes(&mut self, columns: &[usize], wanted: AclMode) {
        self.target_wants(wanted);
        let under = self.uses.target.last().copied();
        let Some(base) = under.and_then(|number| self.uses.uses.get(number)) else {
            return;
        };
        let whole: Vec<ColId> = match base.slots.first() {
            Some(slots) => slots
                .iter()
                .map(|slot| match slot {
                    Slot::Column(id) => *id,
                    _ => 0,
                })
                .collect(),
            None => Vec::new(),
        };
        for number in self.uses.target.clone() {
            let Some(found) = self.uses.uses.get_mut(number) else {
                continue;
            };
            let positions: Vec<usize> = if Some(number) == under {
                columns.to_vec()
            } else {
                let slots = found.slots.first();
                let at = |base: &usize| {
                    let id = whole.get(*base)?;
                    slots?
                        .iter()
                        .position(|slot| matches!(slot, Slot::Column(own) if own == id))
                };
                columns.iter().filter_map(at).collect()
            };
            match wanted {
                p::INSERT => found.access.inserted.extend(positions),
                _ => found.access.updated.extend(positions),
            }
        }
    }

    /// The target's columns are read, by position in the table.
    pub(super) fn target_reads(&mut self, columns: &[usize]) {
        if let Some(found) = self
            .uses
            .target
            .first()
            .copied()
            .and_then(|number| self.uses.uses.get_mut(number))
        {
            found.access.wanted |= p::SELECT;
            found.access.selected.extend(columns);
        }
    }

    /// Rows of a relation are locked.
    pub(crate) fn note_lock(&mut self, relation: &Relation) {
        for found in &mut self.uses.uses {
            // A view through which it may be that they are locked, too.
            if found.access.relation.oid == relation.oid || found.access.relation.view().is_some() {
                found.access.wanted |= p::UPDATE;
            }
        }
    }

    /// A change is bound, that of relations noted from number `from` on: another one may have a target of its own now.
    pub(super) fn settle_change(&mut self, from: usize) {
        let target = std::mem::take(&mut self.uses.target);
        self.settle_uses(from);
        // What is read of a view is read of what is under it: by its owner, as far as the view's query goes.
        let read = target
            .first()
            .and_then(|number| self.uses.uses.get(*number))
            .is_some_and(|first| first.access.wanted & p::SELECT != 0);
        for number in target.iter().skip(1) {
            if let Some(found) = self.uses.uses.get_mut(*number) {
                match read {
                    true => found.access.wanted |= p::SELECT,
                    false => found.access.wanted &= !p::SELECT,
                }
            }
        }
    }

    /// What must be allowed of relations: of those that the statement names, and of those that bodies of functions
    /// name.
    pub(crate) fn finish_access(&mut self) -> (Vec<PermissionInfo>, Vec<PermissionInfo>) {
        // Settled a second time, what is under the view that a query of WITH changes names nothing any more.
        self.settle_change(0);
        let uses = std::mem::take(&mut self.uses.uses);
        let mut all: Vec<PermissionInfo> = Vec::with_capacity(uses.len());
        let mut of_functions: Vec<PermissionInfo> = std::mem::take(&mut self.uses.apart);
        for found in uses {
            if is_everybodys(&found.access.relation) || found.access.wanted == 0 {
                continue;
            }
            match found.of_function {
                true => of_functions.push(found.access),
                false => all.push(found.access),
            }
        }
        let noted = |all: &[PermissionInfo], relation: &Relation, write: bool| {
            let writes = p::INSERT | p::UPDATE | p::DELETE;
            all.iter().chain(&of_functions).any(|access| {
                access.relation.oid == relation.oid && (!write || access.wanted & writes != 0)
            })
        };
        let mut unknown = Vec::new();
        for relation in &self.tables_written {
            if !noted(&all, relation, true) {
                let writes = p::SELECT | p::INSERT | p::UPDATE | p::DELETE;
                unknown.push((Arc::clone(relation), writes));
            }
        }
        for relation in self.tables_read.iter().chain(&self.tables_locked) {
            if !noted(&all, relation, false) {
                unknown.push((Arc::clone(relation), p::SELECT));
            }
        }
        for (relation, wanted) in unknown {
            let every: Vec<usize> = (0..relation.columns.len()).collect();
            all.push(PermissionInfo {
                relation,
                as_role: None,
                wanted,
                selected: every.clone(),
                inserted: every.clone(),
                updated: every,
            });
        }
        // What the role itself names is asked for before what views read for it.
        all.sort_by_key(|access| access.as_role.is_some());
        (all, of_functions)
    }
}
