//! What a transaction has changed in the catalog and in storage so far.
//!
//! Every statement registers one hook with the engine's transaction before it changes anything. When the transaction
//! becomes visible, its locks still held, the hook publishes the whole list; when the statement is undone (the
//! transaction rolls back, or goes back to an earlier savepoint) the hook takes the statement's part off the list and
//! drops the storages it made. So rollback needs no call from the session: whoever looks next finds the list as it was.

use super::index_expression_columns::PendingIndexBuild;
use logstead_engine::{Outcome, Table, Txn};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::database_usage::DatabaseCloseGuard;
use logstead_sql_catalog::store::CatalogStore;
use logstead_sql_catalog::{Catalog, IndexDef, TempObjects};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{DatabaseOid, RelationId, TypeId};
use logstead_types::TableId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Default)]
struct CatalogChanges {
    changes: Vec<CatalogChange>,
    /// Storages made: dropped when undone.
    made: Vec<TableId>,
    /// Indexes attached to tables: detached when undone.
    attached: Vec<(Arc<Table>, Arc<IndexDef>)>,
    /// Storages no longer used: dropped on commit.
    unused: Vec<TableId>,
    /// Indexes no longer used: detached on commit.
    detached: Vec<(Arc<Table>, Arc<IndexDef>)>,
    /// States of sequences made, and no longer used.
    sequences_made: Vec<TableId>,
    sequences_unused: Vec<TableId>,
    /// Types whose rows this transaction has written: they change no more for others until it ends.
    locked_types: Vec<TypeId>,
    /// Databases that nobody enters before the transaction ends.
    closed: Vec<DatabaseCloseGuard>,
    /// Rises when something is taken off.
    undone: u64,
}

/// Lengths of the lists when a statement began.
#[derive(Clone, Copy)]
struct StatementMark {
    changes: usize,
    made: usize,
    attached: usize,
    unused: usize,
    detached: usize,
    sequences_made: usize,
    sequences_unused: usize,
    locked_types: usize,
    closed: usize,
}

impl CatalogChanges {
    fn mark(&self) -> StatementMark {
        StatementMark {
            changes: self.changes.len(),
            made: self.made.len(),
            attached: self.attached.len(),
            unused: self.unused.len(),
            detached: self.detached.len(),
            sequences_made: self.sequences_made.len(),
            sequences_unused: self.sequences_unused.len(),
            locked_types: self.locked_types.len(),
            closed: self.closed.len(),
        }
    }

    fn undo(&mut self, to: StatementMark, store: &CatalogStore) {
        self.undone += 1;
        self.changes.truncate(to.changes);
        self.unused.truncate(to.unused);
        self.detached.truncate(to.detached);
        self.sequences_unused.truncate(to.sequences_unused);
        self.locked_types.truncate(to.locked_types);
        self.closed.truncate(to.closed);
        for (table, index) in self.attached.drain(to.attached.min(self.attached.len())..) {
            store.engine().drop_index(&table, index.storage);
        }
        for storage in self.made.drain(to.made.min(self.made.len())..) {
            store.engine().drop_table(storage);
        }
        for storage in self
            .sequences_made
            .drain(to.sequences_made.min(self.sequences_made.len())..)
        {
            store.sequences().forget(storage);
        }
    }

    fn commit(
        &mut self,
        store: &CatalogStore,
        temporary: Option<&TempObjects>,
        database: DatabaseOid,
        csn: logstead_types::Csn,
    ) {
        let mut log = std::mem::take(self);
        log.changes.iter_mut().for_each(CatalogChange::settle);
        let changes = match temporary {
            Some(temporary) => temporary.committed(log.changes),
            None => log.changes,
        };
        for (table, index) in &log.attached {
            if !index.computed.is_empty()
                && let Some(index) = table.index(index.storage)
            {
                index.set_serves_from(csn);
            }
        }
        if !changes.is_empty() {
            store.publish(database, &changes, csn);
        }
        for (table, index) in log.detached {
            store.engine().drop_index(&table, index.storage);
        }
        for storage in log.unused {
            store.engine().drop_table(storage);
        }
        for storage in log.sequences_unused {
            store.sequences().forget(storage);
        }
        // Who enters now finds what has become of them.
        drop(log.closed);
    }
}

/// A transaction's own view of the catalog. The session keeps one per transaction and makes a new one for the next.
#[derive(Default)]
pub struct DdlState {
    log: Rc<RefCell<CatalogChanges>>,
    /// The catalog with this transaction's changes, and what it was made from.
    private: Option<PrivateCatalog>,
    /// The session's temporary objects; who has none cannot make any.
    temporary: Option<Rc<TempObjects>>,
    /// The session's database, which has another name by now if the server follows another one.
    database: DatabaseOid,
    /// Indexes that the statement has left to be built when rows have what is computed for them.
    pending_builds: Vec<PendingIndexBuild>,
    /// Indexes as they were before the statement changed what they are made of: they are made anew when it has done
    /// all else.
    stale_indexes: Vec<Arc<IndexDef>>,
}

struct PrivateCatalog {
    catalog: Arc<Catalog>,
    base_version: u64,
    changes: usize,
    undone: u64,
}

impl DdlState {
    /// That of a transaction of the session with these temporary objects, in this database.
    pub fn of(temporary: &Rc<TempObjects>, database: DatabaseOid) -> DdlState {
        DdlState {
            temporary: Some(Rc::clone(temporary)),
            database,
            ..DdlState::default()
        }
    }

    pub(super) fn temporary(&self) -> Option<&Rc<TempObjects>> {
        self.temporary.as_ref()
    }

    /// True once the transaction has changed the catalog (and not rolled that back): its statements are planned with
    /// [`DdlState::catalog`], and their plans are nobody else's.
    pub fn has_changes(&self) -> bool {
        !self.log.borrow().changes.is_empty()
    }

    /// The catalog as this transaction sees it: the current one, or at a replica the one that belongs to what it reads,
    /// with its own changes. Cheap when nothing has changed since the last call.
    pub fn catalog(
        &mut self,
        store: &CatalogStore,
        database: &str,
        txn: &mut Txn,
    ) -> Result<Arc<Catalog>> {
        let current = match store.is_replica() {
            true => store.catalog_read_by(self.database, Some(txn))?,
            false => store.current(database),
        };
        let current = current.ok_or_else(|| {
            SqlError::new(
                logstead_types::SqlState::INVALID_CATALOG_NAME,
                format!("database \"{database}\" does not exist"),
            )
        })?;
        let current = match &self.temporary {
            Some(temporary) => temporary.over(current),
            None => current,
        };
        let log = self.log.borrow();
        if log.changes.is_empty() {
            self.private = None;
            return Ok(current);
        }
        let over = |base: &Catalog, changes| {
            let mut catalog = store.derive(base, changes);
            catalog.base = Some(current.published_version());
            Arc::new(catalog)
        };
        let made = self
            .private
            .take()
            .filter(|p| (p.base_version, p.undone) == (current.version, log.undone));
        let catalog = match made {
            Some(p) if p.changes == log.changes.len() => p.catalog,
            // Only what is new since the last call.
            Some(p) => over(&p.catalog, log.changes.get(p.changes..).unwrap_or_default()),
            None => over(&current, &log.changes),
        };
        self.private = Some(PrivateCatalog {
            catalog: Arc::clone(&catalog),
            base_version: current.version,
            changes: log.changes.len(),
            undone: log.undone,
        });
        Ok(catalog)
    }

    /// At a replica: has the transaction changed anything but the session's own objects, whose numbers tell them?
    pub fn changes_lasting(&self) -> bool {
        let log = self.log.borrow();
        log.changes.iter().any(|change| !change.is_own_at_replica())
    }

    /// Called by every statement before it changes anything.
    pub(super) fn begin_statement(
        &mut self,
        txn: &mut Txn,
        store: &Arc<CatalogStore>,
        database: DatabaseOid,
    ) {
        let mark = self.log.borrow().mark();
        let log = Rc::clone(&self.log);
        let store = Arc::clone(store);
        let temporary = self.temporary.clone();
        txn.on_end(Box::new(move |outcome| match outcome {
            Outcome::Committed(csn) => {
                let temporary = temporary.as_deref();
                log.borrow_mut().commit(&store, temporary, database, csn);
            }
            Outcome::Aborted => log.borrow_mut().undo(mark, &store),
        }));
    }

    pub(super) fn defer_index_build(&mut self, pending_builds: PendingIndexBuild) {
        self.pending_builds.push(pending_builds);
    }

    pub(super) fn mark_stale(&mut self, old: Arc<IndexDef>) {
        self.stale_indexes.push(old);
    }

    pub(super) fn is_stale(&self, index: RelationId) -> bool {
        self.stale_indexes.iter().any(|old| old.oid == index)
    }

    pub(super) fn take_stale(&mut self) -> Vec<Arc<IndexDef>> {
        std::mem::take(&mut self.stale_indexes)
    }

    /// The indexes that are still to be built.
    pub fn take_pending_builds(&mut self) -> Vec<PendingIndexBuild> {
        // None but what a statement that failed has left.
        self.stale_indexes.clear();
        std::mem::take(&mut self.pending_builds)
    }

    pub(super) fn push(&mut self, change: CatalogChange) {
        self.log.borrow_mut().changes.push(change);
    }

    /// Notes that nobody else changes or drops a type before the transaction ends.
    pub(super) fn lock_type(&mut self, ty: TypeId) {
        self.log.borrow_mut().locked_types.push(ty);
    }

    pub(super) fn has_locked_type(&self, ty: TypeId) -> bool {
        self.log.borrow().locked_types.contains(&ty)
    }

    /// Keeps a database closed until the transaction has ended.
    pub(super) fn close(&mut self, closed: DatabaseCloseGuard) {
        self.log.borrow_mut().closed.push(closed);
    }

    /// Has this transaction closed the database?
    pub(super) fn has_closed(&self, database: DatabaseOid) -> bool {
        let log = self.log.borrow();
        log.closed.iter().any(|c| c.database() == Some(database))
    }

    pub(super) fn made(&mut self, storage: TableId) {
        self.log.borrow_mut().made.push(storage);
    }

    /// True if this transaction made the storage: nobody else can see or lock it.
    pub fn is_own(&self, storage: TableId) -> bool {
        self.log.borrow().made.contains(&storage)
    }

    /// How many storages it has made so far.
    pub fn count_made(&self) -> usize {
        self.log.borrow().made.len()
    }

    /// Is the storage one of those that it has made behind the first `count`?
    pub fn was_made_since(&self, storage: TableId, count: usize) -> bool {
        let log = self.log.borrow();
        log.made.iter().skip(count).any(|made| *made == storage)
    }

    pub(super) fn unused(&mut self, storage: TableId) {
        self.log.borrow_mut().unused.push(storage);
    }

    pub(super) fn attached(&mut self, table: Arc<Table>, index: Arc<IndexDef>) {
        self.log.borrow_mut().attached.push((table, index));
    }

    pub(super) fn detached(&mut self, table: Arc<Table>, index: Arc<IndexDef>) {
        self.log.borrow_mut().detached.push((table, index));
    }

    pub(super) fn sequence_made(&mut self, storage: TableId) {
        self.log.borrow_mut().sequences_made.push(storage);
    }

    pub(super) fn sequence_unused(&mut self, storage: TableId) {
        self.log.borrow_mut().sequences_unused.push(storage);
    }
}
