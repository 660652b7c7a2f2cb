//! Checking what a statement left to be checked: foreign keys, their actions, deferrable unique keys.
//!
//! Rules and interleavings: [`crate::after_triggers`]. Here each event is worked off: look, lock or change, wait if
//! another transaction is in the way, look again. No epoch guard is alive across a wait.
//!
//! Does not: check a new row by itself: CHECK and NOT NULL (`crate::operator::write`), policies
//! (`crate::security_quals`).

mod action;

use super::context::StatementContext;
use super::trigger;
use super::wait::ExecError;
use super::wait::{WaitReason, wait_for};
use crate::after_triggers::{AfterTriggerEvent, EventKind, ReferentialActionState, WrittenRow};
use crate::call::PendingCall;
use crate::event_recorder::EventRecorder;
use crate::write_errors::{unique_violation, write_failed};
use logstead_engine::{
    Guard, Index, IndexCursor, Isolation, PageFault, Row, RowBuilder, RowLock, RowRef, ScanCursor,
    Table, Txn, WriteError,
};
use logstead_sql_catalog::privileges::{denied, denied_relation};
use logstead_sql_catalog::role::acl::{AclMode, privilege as p};
use logstead_sql_catalog::{ReferentialAction, Relation};
use logstead_sql_plan::constraints::{ForeignRule, KeyParts, RuleSet, UniqueRule};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid};
use logstead_types::{Rid, SqlState};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

/// Rows looked at between two yields.
const EXAMINED_MAX: usize = 1_024;

/// Checks what is due at the end of a statement.
///
/// Stops with the call of an AFTER trigger, and is called again when that was answered.
pub(crate) async fn check_due_constraints(
    cx: &mut StatementContext<'_>,
) -> Result<Option<Box<PendingCall>>> {
    ConstraintChecker::new(cx, false).run().await
}

/// Checks deferred events: all of them (COMMIT), or those that SET CONSTRAINTS has just made immediate. `altered` says
/// that the transaction has changed the catalog since they were queued: then each constraint is looked up again.
///
/// It stops as `check_due_constraints` does: for triggers that were put off.
pub async fn check_deferred_constraints(
    cx: &mut StatementContext<'_>,
    all: bool,
    altered: bool,
) -> Result<Option<Box<PendingCall>>> {
    cx.events.make_due(all);
    ConstraintChecker::new(cx, altered).run().await
}

/// Looks at what is newest, whatever the transaction's snapshot.
fn latest<T>(txn: &mut Txn, look: impl FnOnce(&mut Txn) -> T) -> T {
    // In READ COMMITTED the statement's snapshot was taken after the last wait.
    if txn.isolation() == Isolation::ReadCommitted {
        return look(txn);
    }
    let mut view = txn.latest_view();
    txn.swap_view(&mut view);
    let seen = look(txn);
    txn.swap_view(&mut view);
    seen
}

/// Is the rest of a chain of writes to be tried again, after this?
enum Retry {
    /// When this is out of the way.
    After(WaitReason),
    /// At once.
    Now,
}

struct ConstraintChecker<'c, 'a> {
    cx: &'c mut StatementContext<'a>,
    /// Rules of constraints as the transaction's own catalog has them; `None` was dropped.
    fresh: Option<HashMap<Oid, Option<Arc<ForeignRule>>>>,
    builder: RowBuilder,
    key: Vec<u8>,
    scratch: Vec<u8>,
    /// The key checked last, and its constraint: rows of one statement often reference one row.
    last: Option<(Oid, Vec<u8>)>,
    examined: usize,
    /// Tables whose owners were found to have these privileges on them.
    allowed: Vec<(RelationId, AclMode)>,
}

impl<'c, 'a> ConstraintChecker<'c, 'a> {
    fn new(cx: &'c mut StatementContext<'a>, altered: bool) -> ConstraintChecker<'c, 'a> {
        ConstraintChecker {
            cx,
            fresh: altered.then(HashMap::new),
            builder: RowBuilder::new(),
            key: Vec::new(),
            scratch: Vec::new(),
            last: None,
            examined: 0,
            allowed: Vec::new(),
        }
    }

    async fn run(&mut self) -> Result<Option<Box<PendingCall>>> {
        // What the statement wrote is seen from here on, and in READ COMMITTED what others committed meanwhile. An
        // action that has stopped for a trigger goes on as what it was: it must not see what the trigger has done.
        if !std::mem::take(&mut self.cx.events.action.stopped) {
            self.cx.txn.begin_statement();
        }
        while let Some((event, set)) = self.cx.events.next() {
            self.tick(1).await?;
            if let EventKind::AfterTrigger(written) = &event.what {
                if let Some(call) = self.fired(&event, &set, written)? {
                    return Ok(Some(call));
                }
                continue;
            }
            match self.check_event(&event, &set).await {
                Ok(()) => {}
                Err(ExecError::Call(call)) => {
                    self.cx.events.action.stopped = true;
                    self.cx.events.requeue(event);
                    return Ok(Some(call));
                }
                Err(ExecError::Sql(error)) => return Err(error),
            }
            self.cx.events.action.next_event();
        }
        self.cx.events.action = ReferentialActionState::default();
        Ok(None)
    }

    /// The call of an AFTER trigger, if it is still wanted.
    fn fired(
        &self,
        event: &AfterTriggerEvent,
        set: &Arc<RuleSet>,
        written: &WrittenRow,
    ) -> Result<Option<Box<PendingCall>>> {
        let lost = || SqlError::internal("an event whose trigger is gone");
        let rules = set.tables.get(event.table as usize);
        let triggers = rules.and_then(|rules| rules.triggers.as_deref());
        let triggers = triggers.ok_or_else(lost)?;
        let fire = triggers.fires.get(event.rule as usize).ok_or_else(lost)?;
        // It went with its function.
        let known = &self.cx.catalog.triggers;
        if self.fresh.is_some() && known.get(fire.trigger.oid).is_none() {
            return Ok(None);
        }
        if !fire.trigger.row {
            let action = &self.cx.events.action;
            if action.ended(triggers.table.oid, written.event) != written.number {
                return Ok(None);
            }
        }
        let decoded = |bytes: &Option<Box<[u8]>>| {
            let Some(bytes) = bytes else { return Ok(None) };
            let mut row = Vec::new();
            crate::deform::decode_all(&triggers.table, RowRef::new(bytes), &mut row)?;
            Ok::<_, SqlError>(Some(row))
        };
        let (old, new) = (decoded(&written.old)?, decoded(&written.new)?);
        // A row's was asked when it was written.
        if !fire.trigger.row
            && !trigger::when_holds(fire, &triggers.table, None, None, self.cx.session)?
        {
            return Ok(None);
        }
        let table = &triggers.table;
        let mut call = trigger::call(0, fire, table, written.event, old, new);
        if let Some(fired) = &mut call.trigger {
            fired.captured.clone_from(&written.captured);
        }
        Ok(Some(call))
    }

    /// Counts rows looked at; now and then ends a cancelled statement and lets others run.
    async fn tick(&mut self, rows: usize) -> Result<()> {
        self.examined += rows;
        if self.examined > EXAMINED_MAX {
            self.examined = 0;
            self.cx.cancel.check()?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn queue(&mut self) -> EventRecorder<'_> {
        EventRecorder {
            txn: &mut *self.cx.txn,
            engine: self.cx.engine,
            events: &mut *self.cx.events,
            session: self.cx.session,
        }
    }

    async fn wait(&mut self, obstacle: WaitReason) -> Result<()> {
        let held = matches!(obstacle, WaitReason::Locked(_));
        wait_for(obstacle, self.cx.txn, self.cx.cancel).await?;
        if held {
            self.last = None;
            self.refresh_snapshot();
        }
        Ok(())
    }

    /// Sees what was committed meanwhile. An action that has begun to change rows stays the command that it is:
    /// triggers may have written since.
    fn refresh_snapshot(&mut self) {
        match self.cx.events.action.rows {
            Some(_) => self.cx.txn.refresh_snapshot(),
            None => self.cx.txn.begin_statement(),
        }
    }

    /// What a refused write or lock means.
    fn refused(&mut self, error: WriteError) -> Result<Retry> {
        match error {
            WriteError::Blocked(blocker) => Ok(Retry::After(blocker.into())),
            WriteError::Absent(absent) => Ok(Retry::After(absent.into())),
            WriteError::Changed | WriteError::Gone => {
                self.refresh_snapshot();
                Ok(Retry::Now)
            }
            WriteError::SelfModified => {
                self.cx.txn.begin_statement();
                Ok(Retry::Now)
            }
            WriteError::SerializationDelete => Err(write_failed(&WriteError::Serialization)),
            error => Err(write_failed(&error)),
        }
    }

    async fn again(&mut self, again: Retry) -> Result<()> {
        match again {
            Retry::After(obstacle) => self.wait(obstacle).await,
            Retry::Now => self.tick(1).await,
        }
    }

    async fn check_event(
        &mut self,
        event: &AfterTriggerEvent,
        set: &Arc<RuleSet>,
    ) -> Result<(), ExecError> {
        let lost = || SqlError::internal("an event whose rule is gone");
        let rules = set.tables.get(event.table as usize).ok_or_else(lost)?;
        let at = event.rule as usize;
        match &event.what {
            EventKind::AfterTrigger(_) => Err(lost().into()),
            EventKind::Unique => {
                let rule = rules.unique.get(at).ok_or_else(lost)?;
                Ok(self.unique(rule, event.rid).await?)
            }
            EventKind::UniqueUnchecked => {
                let rule = rules.unique.get(at).ok_or_else(lost)?;
                if self.is_in_the_way(rule, event.rid).await? {
                    self.cx.events.defer(set, event);
                }
                Ok(())
            }
            EventKind::Referencing => {
                let rule = rules.child.get(at).ok_or_else(lost)?;
                let Some(rule) = self.current(rule)? else {
                    return Ok(());
                };
                let judged = self.referencing(&rule, event.rid).await;
                Ok(judged.map_err(|e| within(e, &rule, None))?)
            }
            EventKind::Deleted(old) => {
                let rule = rules.parent.get(at).ok_or_else(lost)?;
                self.act(set, rule, old, None).await
            }
            EventKind::Updated(values) => {
                let rule = rules.parent.get(at).ok_or_else(lost)?;
                let (old, new) = values.split_at(values.len() / 2);
                self.act(set, rule, old, Some(new)).await
            }
        }
    }

    /// The rule as the transaction's catalog has it now.
    fn current(&mut self, rule: &Arc<ForeignRule>) -> Result<Option<Arc<ForeignRule>>> {
        let Some(fresh) = &mut self.fresh else {
            return Ok(Some(Arc::clone(rule)));
        };
        if let Some(known) = fresh.get(&rule.oid) {
            return Ok(known.clone());
        }
        let catalog = self.cx.catalog;
        let found = match catalog.relations.get(&rule.child.oid) {
            Some(child) => {
                let constraint = child.constraints.iter().find(|c| c.oid == rule.oid);
                match constraint.and_then(|c| c.foreign().map(|key| (c, key))) {
                    Some((constraint, key)) => {
                        Some(Arc::new(ForeignRule::new(catalog, child, constraint, key)?))
                    }
                    None => None,
                }
            }
            None => None,
        };
        fresh.insert(rule.oid, found.clone());
        Ok(found)
    }

    /// 42501 unless the owner of a table, as whom foreign keys look for and change its rows, has these privileges on
    /// it. Policies are not asked: they hold for no owner here.
    fn owner_may(&mut self, table: &Relation, wanted: AclMode, columns: &[usize]) -> Result<()> {
        if self.allowed.contains(&(table.oid, wanted)) {
            return Ok(());
        }
        let catalog = self.cx.catalog;
        let owner = catalog.owner_of(table.oid);
        let acl_checker = catalog.acl_checker(&catalog.roles);
        if !acl_checker.may_use_schema(owner, table.schema) && !table.is_temporary() {
            let schema = &table.schema_name;
            return Err(denied(format!("permission denied for schema {schema}")));
        }
        let single = |n: u32| wanted & (1 << n);
        let mut each = (0..AclMode::BITS).map(single).filter(|one| *one != 0);
        if !each.all(|one| acl_checker.has(owner, table, one, columns)) {
            return Err(denied_relation(table));
        }
        self.allowed.push((table.oid, wanted));
        Ok(())
    }

    /// Does another row have a row's key, or may it come to have it by what is in flight? Waits for nobody, only for
    /// what is not in memory.
    async fn is_in_the_way(&mut self, rule: &UniqueRule, rid: Rid) -> Result<bool> {
        let (table, index) = rule.storage(self.cx.engine)?;
        loop {
            match self.cx.txn.check_unique(table, index, rid) {
                Ok(()) => return Ok(false),
                Err(WriteError::Absent(absent)) => self.wait(absent.into()).await?,
                Err(_) => return Ok(true),
            }
        }
    }

    /// A deferrable unique key: no other row may have the row's key.
    async fn unique(&mut self, rule: &UniqueRule, rid: Rid) -> Result<()> {
        loop {
            let (table, index) = rule.storage(self.cx.engine)?;
            match self.cx.txn.check_unique(table, index, rid) {
                Ok(()) => return Ok(()),
                Err(WriteError::Unique { .. }) => {
                    let absent = {
                        let guard = self.cx.txn.pin();
                        match self.cx.txn.read_newest(table, rid, &guard) {
                            Ok(None) => return Ok(()),
                            Ok(Some(row)) => {
                                return Err(unique_violation(
                                    &rule.table,
                                    table,
                                    rule.index.storage,
                                    row.bytes.bytes(),
                                    self.cx.session,
                                ));
                            }
                            Err(absent) => absent,
                        }
                    };
                    // Then it is checked once more.
                    self.wait(absent.into()).await?;
                }
                Err(error) => {
                    let again = self.refused(error)?;
                    self.again(again).await?;
                }
            }
        }
    }

    /// A referencing row: the row it references must be there, and is locked so that it stays.
    async fn referencing(&mut self, rule: &ForeignRule, rid: Rid) -> Result<()> {
        let engine = self.cx.engine;
        let child = rule.child_table(engine)?;
        let (parent, index) = rule.parent_table(engine)?;
        let key: Vec<usize> = rule.parent_columns().collect();
        self.owner_may(&rule.parent, p::SELECT | p::UPDATE, &key)?;
        // The row that was waited for: if it is gone, another one with its key does not count.
        let mut awaited = None;
        loop {
            match self.reference(rule, rid, child, parent, index, &mut awaited)? {
                Ok(false) => return Ok(()),
                Ok(true) => {
                    let (oid, key) = self.last.get_or_insert_default();
                    *oid = rule.oid;
                    key.clear();
                    key.extend_from_slice(&self.key);
                    return Ok(());
                }
                Err(error) => {
                    let again = self.refused(error)?;
                    self.again(again).await?;
                }
            }
        }
    }

    /// An attempt at it. False if there is nothing to do.
    fn reference(
        &mut self,
        rule: &ForeignRule,
        rid: Rid,
        child: &Table,
        parent: &Arc<Table>,
        index: &Arc<Index>,
        awaited: &mut Option<Rid>,
    ) -> Result<std::result::Result<bool, WriteError>> {
        let guard = self.cx.txn.pin();
        let row = match self.cx.txn.read_newest(child, rid, &guard) {
            Ok(Some(row)) => row,
            // Deleted since: nothing to check. Updated since: its newest version counts.
            Ok(None) => return Ok(Ok(false)),
            Err(absent) => return Ok(Err(absent.into())),
        };
        match rule.parts(row.bytes) {
            KeyParts::Nothing => return Ok(Ok(false)),
            KeyParts::Mixed => return Err(rule.mixed()),
            KeyParts::Whole => {}
        }
        self.key.clear();
        rule.parent_key(row.bytes, self.cx.session, &mut self.key)?;
        if let Some((oid, key)) = &self.last
            && *oid == rule.oid
            && *key == self.key
        {
            return Ok(Ok(false));
        }
        // By the transaction's own snapshot, as any query of it would: what it cannot see is not there.
        let found = match self.cx.txn.get(index, &self.key, &guard) {
            Ok(found) => found,
            Err(absent) => return Ok(Err(absent.into())),
        };
        let Some(found) = found.filter(|f| awaited.is_none_or(|rid| rid == f.rid)) else {
            return Err(rule.not_present(row.bytes, self.cx.session));
        };
        *awaited = Some(found.rid);
        let locked = self.lock_parent(parent, index, found.rid, found, &guard);
        Ok(locked.map(|()| true))
    }

    /// KeyShare on the newest version of the row that was found, if it still has the key.
    fn lock_parent(
        &mut self,
        parent: &Arc<Table>,
        index: &Arc<Index>,
        rid: Rid,
        found: Row<'_>,
        guard: &Guard,
    ) -> std::result::Result<(), WriteError> {
        let (txn, key) = (&mut *self.cx.txn, &self.key);
        if txn.isolation() == Isolation::ReadCommitted {
            return txn.lock_row(parent, rid, found.version, RowLock::KeyShare);
        }
        // A change that left the key alone is no conflict, even one that the snapshot does not see.
        let newest = latest(txn, |txn| {
            let row = txn.get(index, key, guard)?;
            Ok::<_, PageFault>(row.filter(|row| row.rid == rid).map(|row| row.version))
        })?;
        match newest {
            Some(version) => latest(txn, |txn| {
                txn.lock_row(parent, rid, version, RowLock::KeyShare)
            }),
            None => Err(WriteError::Serialization),
        }
    }

    /// A referenced row is gone or has another key: its action.
    async fn act(
        &mut self,
        set: &Arc<RuleSet>,
        rule: &Arc<ForeignRule>,
        old: &[Datum],
        new: Option<&[Datum]>,
    ) -> Result<(), ExecError> {
        let on_delete = new.is_none();
        let action = if on_delete {
            rule.on_delete
        } else {
            rule.on_update
        };
        if action.changes_rows() {
            return self
                .change(set, rule, action, old, new)
                .await
                .map_err(|e| e.map_sql(|e| within(e, rule, Some((action, on_delete)))));
        }
        let Some(rule) = self.current(rule)? else {
            return Ok(());
        };
        let judged = self.unreferenced(&rule, action, old).await;
        Ok(judged.map_err(|e| within(e, &rule, Some((action, on_delete))))?)
    }

    /// NO ACTION and RESTRICT: no row may reference the old key.
    async fn unreferenced(
        &mut self,
        rule: &ForeignRule,
        action: ReferentialAction,
        old: &[Datum],
    ) -> Result<()> {
        let engine = self.cx.engine;
        let child = rule.child_table(engine)?;
        if action == ReferentialAction::NoAction {
            let key: Vec<usize> = rule.parent_columns().collect();
            self.owner_may(&rule.parent, p::SELECT | p::UPDATE, &key)?;
            // Another row may have taken the key over.
            self.key.clear();
            rule.parent_key_of(old, &mut self.key);
            let (_, index) = rule.parent_table(engine)?;
            loop {
                let absent = {
                    let guard = self.cx.txn.pin();
                    let key = &self.key;
                    match latest(self.cx.txn, |txn| {
                        txn.get(index, key, &guard).map(|row| row.is_some())
                    }) {
                        Ok(true) => return Ok(()),
                        Ok(false) => break,
                        Err(absent) => absent,
                    }
                };
                self.wait(absent.into()).await?;
            }
        }
        let key: Vec<usize> = rule.child_columns().collect();
        self.owner_may(&rule.child, p::SELECT | p::UPDATE, &key)?;
        loop {
            let found = self.referencing_rows(rule, old, true).await?;
            let Some(rid) = found.first().copied() else {
                return Ok(());
            };
            let wanted = rule.wanted(old);
            let attempt = {
                let guard = self.cx.txn.pin();
                let row = self.cx.txn.read_newest(child, rid, &guard);
                let (session, scratch) = (self.cx.session, &mut self.scratch);
                match row {
                    Err(absent) => Err(absent.into()),
                    Ok(Some(row)) if rule.references(row.bytes, &wanted, session, scratch)? => {
                        // Whoever is about to delete it or move it away is waited for.
                        latest(self.cx.txn, |txn| {
                            txn.lock_row(child, rid, row.version, RowLock::KeyShare)
                        })
                    }
                    _ => Err(WriteError::Changed),
                }
            };
            match attempt {
                Ok(()) => return Err(rule.still_referenced(old, self.cx.session)),
                Err(error) => {
                    let again = self.refused(error)?;
                    self.again(again).await?;
                }
            }
        }
    }

    /// Rows that reference the values, as committed or written by this transaction; only the first if that is enough.
    async fn referencing_rows(
        &mut self,
        rule: &ForeignRule,
        values: &[Datum],
        first: bool,
    ) -> Result<Vec<Rid>> {
        enum Cursor {
            Index(Box<IndexCursor>),
            Table(ScanCursor),
        }
        let engine = self.cx.engine;
        let mut cursor = match rule.child_index(engine)? {
            Some(index) => match rule.child_prefix(values, self.cx.session)? {
                Some(prefix) => Cursor::Index(Box::new(IndexCursor::new(
                    index,
                    Bound::Included(prefix.clone()),
                    Bound::Included(prefix),
                    false,
                ))),
                None => return Ok(Vec::new()),
            },
            None => Cursor::Table(ScanCursor::new(rule.child_table(engine)?)),
        };
        let wanted = rule.wanted(values);
        let mut found = Vec::new();
        // One view for the whole walk, across its yields.
        let mut view = (self.cx.txn.isolation() != Isolation::ReadCommitted)
            .then(|| self.cx.txn.latest_view());
        loop {
            let mut looked_at = 0;
            let mut failed = None;
            let mut absent: Option<PageFault> = None;
            let ended = {
                if let Some(view) = &mut view {
                    self.cx.txn.swap_view(view);
                }
                let guard = self.cx.txn.pin();
                let ended = loop {
                    if looked_at == EXAMINED_MAX {
                        break false;
                    }
                    let row = match &mut cursor {
                        Cursor::Index(cursor) => self.cx.txn.index_next(cursor, &guard),
                        Cursor::Table(cursor) => self.cx.txn.scan_next(cursor, &guard),
                    };
                    let row = match row {
                        Ok(Some(row)) => row,
                        Ok(None) => break true,
                        Err(missing) => {
                            absent = Some(missing);
                            break false;
                        }
                    };
                    looked_at += 1;
                    let session = self.cx.session;
                    match rule.references(row.bytes, &wanted, session, &mut self.scratch) {
                        Ok(false) => {}
                        Ok(true) => {
                            found.push(row.rid);
                            if first {
                                break true;
                            }
                        }
                        Err(error) => {
                            failed = Some(error);
                            break true;
                        }
                    }
                };
                drop(guard);
                if let Some(view) = &mut view {
                    self.cx.txn.swap_view(view);
                }
                ended
            };
            if let Some(error) = failed {
                return Err(error);
            }
            if ended {
                return Ok(found);
            }
            if let Some(absent) = absent {
                self.wait(absent.into()).await?;
            }
            self.tick(looked_at + 1).await?;
        }
    }
}

/// Errors inside a check or an action say which; a violation of the constraint itself stands alone.
fn within(
    error: SqlError,
    rule: &ForeignRule,
    action: Option<(ReferentialAction, bool)>,
) -> SqlError {
    let own = error.code() == SqlState::FOREIGN_KEY_VIOLATION;
    if own || error.fields().context.is_some() || error.fields().fatal {
        return error;
    }
    error.context(rule.statement(action))
}
