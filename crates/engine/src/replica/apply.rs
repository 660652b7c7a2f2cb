//! Applies entries of another server's log to the rows and indexes in memory, a group at a time: versions stamped with
//! their CSNs, which no snapshot sees before `publish` raises the CSN that new ones read at (rules R1 to R4 in
//! [`super`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use logstead_checkpoint::PageReader;
use logstead_types::{Csn, Rid, TableId, WorkerId};
use logstead_wal::{RecordReader, RowRecord};

use super::{BATCH_BYTES, COLLECTED_ROWS, COLLECTIONS_MAX, ReplicaBatch};
use crate::delta;
use crate::engine::Engine;
use crate::error::{ReplayError, ReplicaError};
use crate::fault_error::FaultError;
use crate::index::Index;
use crate::page_store::ReplicaBase;
use crate::row::{RowBuilder, RowError, RowRef};
use crate::rows::RID_MAX;
use crate::table::{TEMPORARY_AT_REPLICAS, Table};
use crate::version::{CHUNK_SLOTS, Guard, VersionKind, version_bytes};
use crate::worker::Worker;
use crate::write_set::TxnBuffers;
use crate::write_set::{RowChange, UndoEntry};

const NO_ROW: RowError = RowError::new("an update of a row that does not exist");
const BEYOND: RowError = RowError::new("row number out of range");
const SESSIONS_OWN: RowError = RowError::new("the table's number is one of a replica's own");
/// What a record takes beside its row: entries of indexes, and the collector's note.
const BESIDE_BYTES: usize = 256;

/// What a record makes of its row.
struct Change<'a> {
    table: &'a Arc<Table>,
    rid: Rid,
    csn: Csn,
}

/// The entries that a new version needs.
type Entries = Vec<(Arc<Index>, Vec<u8>)>;

/// What came of a record.
struct Installed {
    /// The version lies above another one.
    superseded: bool,
    /// What it takes.
    bytes: usize,
    entries: Entries,
}

pub(super) struct Applier {
    engine: Engine,
    base: Arc<ReplicaBase>,
    worker: Worker,
    reader: PageReader,
    builder: RowBuilder,
    /// The entry that is applied: all before it are.
    csn: Csn,
    /// What it has changed, for the collector.
    written: Option<TxnBuffers>,
    /// The tables that it has changed: none as long as nothing of it is applied.
    begun: BTreeSet<TableId>,
    /// What is still to be inserted of the record that was applied last.
    entries: (TableId, Entries),
    /// After an error: so many records are handed over again that were applied. Otherwise 0.
    again: usize,
    /// Of the entries before it, since something became visible: the tables, and the bytes of records and versions.
    tables: BTreeSet<TableId>,
    bytes: usize,
}

impl Applier {
    pub(super) fn new(
        engine: &Engine,
        base: Arc<ReplicaBase>,
        own: WorkerId,
        next: Csn,
    ) -> Applier {
        Applier {
            base,
            worker: engine.worker(own),
            reader: engine.inner().chunks.reader().of_single_pages(),
            engine: engine.clone(),
            builder: RowBuilder::new(),
            csn: next,
            written: None,
            begun: BTreeSet::new(),
            entries: (TableId(0), Vec::new()),
            again: 0,
            tables: BTreeSet::new(),
            bytes: 0,
        }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn base(&self) -> &ReplicaBase {
        &self.base
    }

    pub(super) fn shared_base(&self) -> &Arc<ReplicaBase> {
        &self.base
    }

    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Applies records of an entry. If it is another one than before, all of the one before was applied, and may be
    /// shown.
    pub(super) fn redo(
        &mut self,
        csn: Csn,
        records: &[u8],
        before: &mut dyn FnMut(&ReplicaBatch<'_>),
    ) -> Result<(), ReplicaError> {
        if csn != self.csn {
            self.end_entry();
            if self.bytes >= BATCH_BYTES {
                self.publish(csn, before);
                self.collect_garbage();
            }
            self.csn = csn;
            self.base.set_applied(csn);
        }
        let mut applied = 0;
        let taken = self.take_records(csn, records, &mut applied);
        match taken {
            Ok(()) => self.bytes += records.len(),
            // Those behind the error that were applied before an earlier one are still to be passed over.
            Err(_) => self.again += applied,
        }
        taken
    }

    /// The same, telling how many of them were applied, in this call or before an error.
    fn take_records(
        &mut self,
        csn: Csn,
        records: &[u8],
        applied: &mut usize,
    ) -> Result<(), ReplicaError> {
        for record in RecordReader::new(records) {
            let record = record.map_err(|source| ReplayError::Records { csn, source })?;
            match self.again.checked_sub(1) {
                Some(left) => self.again = left,
                None => self.apply(csn, &record)?,
            }
            *applied += 1;
            // Of one that was applied before an error they may be missing.
            self.insert_entries()?;
        }
        Ok(())
    }

    /// Everything below `next` was applied: snapshots see it from now on. Not while half of an entry is applied: who is
    /// told of the batch would meet its versions where newest ones count, as when keys are judged for a new index.
    pub(super) fn publish(&mut self, next: Csn, before: &mut dyn FnMut(&ReplicaBatch<'_>)) {
        if next > self.csn {
            self.end_entry();
            self.base.set_applied(next);
        } else if !self.begun.is_empty() {
            return;
        }
        let path = &self.engine.inner().path;
        if next <= path.csns().counter() {
            return;
        }
        if !self.tables.is_empty() {
            // It is committed, seen or not: who waits for that in the function, for what it reads there, is answered.
            path.follow_durable(next);
            before(&ReplicaBatch {
                engine: &self.engine,
                tables: &self.tables,
                visible: next,
            });
        }
        path.follow(next);
        self.tables.clear();
        self.bytes = 0;
    }

    /// Collects what is due, as long as there is some: a batch supersedes as many rows as it has records.
    pub(super) fn collect_garbage(&self) {
        for _ in 0..COLLECTIONS_MAX {
            if !self.worker.collect_garbage(COLLECTED_ROWS) {
                return;
            }
        }
    }

    /// The entry is applied as a whole. What it has superseded is the collector's.
    fn end_entry(&mut self) {
        self.tables.append(&mut self.begun);
        if let Some(written) = self.written.take() {
            self.worker.0.add_garbage(self.csn, written);
        }
    }

    fn apply(&mut self, csn: Csn, record: &RowRecord<'_>) -> Result<(), ReplicaError> {
        let (id, rid) = (record.table(), record.rid());
        let wrong = |source| ReplayError::Row {
            csn,
            table: id,
            rid,
            source,
        };
        if rid.0 >= RID_MAX {
            return Err(wrong(BEYOND).into());
        }
        if id >= TEMPORARY_AT_REPLICAS {
            return Err(wrong(SESSIONS_OWN).into());
        }
        let bytes = match record {
            RowRecord::Insert { row, .. } => row.len(),
            RowRecord::Update { delta, .. } => delta.len(),
            RowRecord::Delete { .. } => 0,
        };
        let wanted = version_bytes(bytes) + BESIDE_BYTES;
        self.worker
            .0
            .admit(wanted, true)
            .map_err(ReplicaError::Memory)?;
        let table = self.engine.create_table(id);
        table.rows.claim_rid(rid);
        let number = rid.0 / CHUNK_SLOTS as u64;
        self.base.changes(&table.rows, number, csn);
        let change = Change {
            table: &table,
            rid,
            csn,
        };
        loop {
            if let Some(installed) = self.install(&change, record).map_err(wrong)? {
                self.begun.insert(id);
                if installed.superseded {
                    self.note(&table, rid, record);
                }
                // An update of a few bytes is a version of the whole row.
                self.worker.0.took(installed.bytes.saturating_sub(wanted));
                self.bytes += installed.bytes;
                self.entries = (id, installed.entries);
                return Ok(());
            }
            // It is absent: R2.
            let chunks = &self.engine.inner().chunks;
            let loaded = self.base.read_rows(|| {
                let slot = (rid.0 % CHUNK_SLOTS as u64) as usize;
                chunks.load_row_to_apply(&table.rows, number, slot, &mut self.reader)
            });
            loaded.map_err(|error| not_brought(&self.engine, error))?;
        }
    }

    /// Installs the version that a record makes; nothing if the row is absent.
    fn install(
        &mut self,
        change: &Change<'_>,
        record: &RowRecord<'_>,
    ) -> Result<Option<Installed>, RowError> {
        let Change { table, rid, csn } = change;
        let (chunk, slot) = table.rows.slot_or_new(*rid);
        let guard = Guard::pin();
        loop {
            let Ok(head) = chunk.peek(slot, &guard) else {
                return Ok(None);
            };
            let row = head.filter(|head| matches!(head.kind(), VersionKind::Row { .. }));
            let old = row.map(|version| version.row());
            let new = match record {
                RowRecord::Insert { row, .. } => Some(RowRef::parse(row)?.bytes()),
                RowRecord::Update { delta, .. } => {
                    let old = RowRef::new(old.ok_or(NO_ROW)?);
                    Some(delta::apply(old, delta, &mut self.builder)?)
                }
                // As at a start: what is not there is deleted already.
                RowRecord::Delete { .. } if old.is_none() => {
                    return Ok(Some(Installed {
                        superseded: false,
                        bytes: 0,
                        entries: Vec::new(),
                    }));
                }
                RowRecord::Delete { .. } => None,
            };
            let entries = new.map_or_else(Vec::new, |new| entries(table, *rid, old, new));
            let kind = match new {
                // What lies below a tombstone may have entries that are not this row's.
                Some(_) => VersionKind::Row {
                    keys_changed: head.is_some() && !entries.is_empty()
                        || head.is_some() && old.is_none()
                        || has_lost_keys(table, old, new),
                },
                None => VersionKind::Tombstone,
            };
            let row = new.unwrap_or_default();
            match chunk.install_committed(slot, head, *csn, kind, row, &guard) {
                Ok(Some(_)) => {
                    return Ok(Some(Installed {
                        superseded: head.is_some(),
                        bytes: version_bytes(row.len()),
                        entries,
                    }));
                }
                // The collector has taken what was deleted out meanwhile.
                Ok(None) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// The collector looks at the row once nobody needs what was there before.
    fn note(&mut self, table: &Arc<Table>, rid: Rid, record: &RowRecord<'_>) {
        let worker = &self.worker.0;
        let written = self.written.get_or_insert_with(|| worker.take_buffers());
        let tables = &mut written.tables;
        let at = match tables.iter().rposition(|other| Arc::ptr_eq(other, table)) {
            Some(at) => at,
            None => {
                tables.push(Arc::clone(table));
                tables.len() - 1
            }
        };
        let what = match record {
            RowRecord::Delete { .. } => RowChange::Delete,
            // An insert above a tombstone supersedes that.
            RowRecord::Insert { .. } | RowRecord::Update { .. } => RowChange::Update,
        };
        written.writes.push(UndoEntry {
            table: at as u32,
            what,
            rid,
        });
        written.settle();
    }

    /// Inserts the entries of the record that was applied last; their leaves come in for it if they are absent.
    fn insert_entries(&mut self) -> Result<(), ReplicaError> {
        let (table, entries) = &mut self.entries;
        while let Some((index, entry)) = entries.last() {
            match index.insert_stored(entry) {
                Ok(()) => drop(entries.pop()),
                Err(low) => {
                    let pages = &self.engine.inner().pages;
                    let loaded = pages.load_leaf(*table, index, &low, &mut self.reader);
                    let explained = |error| not_brought(&self.engine, self.base.explain(error));
                    loaded.map_err(explained)?;
                }
            }
        }
        Ok(())
    }
}

fn not_brought(engine: &Engine, error: FaultError) -> ReplicaError {
    match error {
        FaultError::TooOld(checkpoint) => ReplicaError::Removed {
            next: engine.next_csn(),
            checkpoint,
        },
        FaultError::OutOfMemory(error) => ReplicaError::Memory(error),
        error => ReplicaError::Fault(error),
    }
}

/// The entries of a new version that its predecessor does not have.
fn entries(table: &Table, rid: Rid, old: Option<&[u8]>, new: &[u8]) -> Entries {
    let (mut old_key, mut new_key) = (Vec::new(), Vec::new());
    let mut entries = Entries::new();
    for index in table.indexes() {
        old_key.clear();
        new_key.clear();
        if !index.key(new, &mut new_key).has_entry() {
            continue;
        }
        let has_old = old.is_some_and(|old| index.key(old, &mut old_key).has_entry());
        if has_old && old_key == new_key {
            continue;
        }
        let mut entry = new_key.clone();
        Index::complete(&mut entry, rid);
        entries.push((index, entry));
    }
    entries
}

/// Has a row left an index, in which it had a key before?
fn has_lost_keys(table: &Table, old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return false;
    };
    let mut key = Vec::new();
    table.indexes().iter().any(|index| {
        key.clear();
        let had = index.key(old, &mut key).has_entry();
        key.clear();
        had && !index.key(new, &mut key).has_entry()
    })
}
