//! What transactions write: versions, index entries and records, and how a write is undone.
//!
//! Order of a write: memory for it (nothing is allocated beyond the budget); check the row's newest version; install
//! the new version above it (the row lock); insert the index entries, judging uniqueness under each index's lock
//! (T11); append the record. Whatever fails after the installation pops the version again and takes out the entries it
//! brought, so a failed write leaves nothing behind.

mod unique_check;

use crate::index_entries::drop_entries;
use crate::worker::collect;
use crate::write_set::{RowChange, UndoEntry};
use std::sync::Arc;

use logstead_types::{IndexId, PartitionId, Rid};
use logstead_wal::RowRecord;
use smallvec::SmallVec;

use crate::delta;
use crate::error::WriteError;
use crate::index::{Index, KeyKind};
use crate::index_entries::KeyBuffers;
use crate::page_fault::PageFault;
use crate::row::{ROW_BYTES_MAX, RowRef};
use crate::row_lock::RowLock;
use crate::rows::AbsentRow;
use crate::rows::RID_MAX;
use crate::serializable::Ordinal;
use crate::stats::add;
use crate::table::Table;
use crate::txn::row_lock::unshare;
use crate::txn::{COMMANDS_END, Isolation, Txn, VersionId};
use crate::txn_state::TxnState;
use crate::version::{Guard, SlotsAbsent, VersionKind, VersionWriter, version_bytes};
use crate::write_set::TxnBuffers;
pub(crate) use unique_check::{ExaminedVersions, UniqueChecker};

/// Which keys of a row an update changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChangedKeys {
    None,
    InPlainIndex,
    InUniqueIndex,
}

impl ChangedKeys {
    /// What the update locks the row with.
    pub(crate) fn lock(self) -> RowLock {
        if self == ChangedKeys::InUniqueIndex {
            RowLock::Update
        } else {
            RowLock::NoKeyUpdate
        }
    }
}

/// So many free slots that cannot be read are tried, each in another chunk, before a transaction takes new ones alone.
const UNREAD_SLOTS_MAX: u32 = 4;
/// A record's header, and a delta's beyond the columns it carries.
const RECORD_BYTES: usize = 64;
/// An entry's rid, and its share of a page.
const ENTRY_BYTES: usize = 24;

/// The columns that keys of these indexes are made of, of each index of which one is in the record: a start makes the
/// new key of what the record says of them ([`crate::checkpoint`]). A column is in the record if it has changed, or is
/// named for another index: one that has some of an index's columns and not the others says nothing of its keys. An
/// index of one column needs nothing: if it has changed it is in the record. One of which the columns are not known
/// gets nothing: its rows are looked at. Nor is anything lost if an index is attached later.
fn columns_of_keys(
    indexes: &[Arc<Index>],
    old: RowRef<'_>,
    new: RowRef<'_>,
) -> SmallVec<[usize; 8]> {
    let mut named: SmallVec<[usize; 8]> = SmallVec::new();
    loop {
        let before = named.len();
        for index in indexes {
            let Some(columns @ [_, _, ..]) = index.key_columns() else {
                continue;
            };
            let is_told = |column: &usize| {
                named.contains(column) || old.column(*column) != new.column(*column)
            };
            if columns.iter().any(is_told) {
                for column in columns {
                    if !named.contains(column) {
                        named.push(*column);
                    }
                }
            }
        }
        // What was named last may be of an index that was looked at before.
        if named.len() == before {
            return named;
        }
    }
}

/// The writing part of a transaction.
pub(crate) struct TxnWrites {
    pub(crate) writer: VersionWriter,
    pub(crate) buffers: TxnBuffers,
}

/// What checks of uniqueness examined: it counts as read, whatever they found.
struct Judged {
    seen: ExaminedVersions,
    /// The place of the next certified writer before they began.
    from: Ordinal,
    /// The keys checked, for SERIALIZABLE.
    keys: Option<Vec<(IndexId, Box<[u8]>)>>,
}

impl Judged {
    fn begin(txn: &mut Txn) -> Judged {
        let from = txn.newest_from();
        Judged {
            seen: ExaminedVersions::new(&txn.worker),
            from,
            keys: txn.tracked.is_some().then(Vec::new),
        }
    }

    /// Notes it. A key that is taken is no error of its own in a transaction that cannot commit anyway: it may have
    /// looked whether the key is free before somebody took it, and would look again if retried.
    fn end(
        self,
        txn: &mut Txn,
        table: &Table,
        result: Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let path = &txn.worker.inner().path;
        txn.deps.cover_all_of(&self.seen.deps, &**path);
        let Some(keys) = self.keys else { return result };
        if result.as_ref().is_err_and(is_tried_again) {
            // It will be checked again.
            return result;
        }
        txn.track_examined(self.seen.newest);
        for (index, key) in keys {
            txn.track_newest_key(table.id(), index, &key, self.from);
        }
        if let Err(WriteError::Unique { rid, .. }) = result {
            txn.track_newest_row(table.id(), rid, self.from);
            if txn.is_doomed() {
                return Err(WriteError::Dependencies);
            }
        }
        result
    }
}

/// Is a write that failed so made again, as soon as what it waits for has come?
fn is_tried_again(error: &WriteError) -> bool {
    matches!(error, WriteError::Blocked(_) | WriteError::Absent(_))
}

impl Txn {
    /// The writing part, made at the first write.
    pub(crate) fn start_work(&mut self) {
        if self.work.is_none() {
            if self.isolation() == Isolation::Serializable {
                // From here on the certifier knows of it.
                self.snapshot();
            }
            let writer = VersionWriter::new(TxnState::new(self.id()));
            self.work = Some(TxnWrites {
                writer,
                buffers: self.worker.take_buffers(),
            });
        }
    }

    /// Asks for the memory of a version with `row_bytes`, its record, and `more`.
    #[inline]
    pub(crate) fn admit(
        &self,
        table: &Table,
        row_bytes: usize,
        more: usize,
    ) -> Result<(), WriteError> {
        if table.rows.past().is_some() {
            return Err(WriteError::Past);
        }
        let is_replica = self.engine().replica_base.is_some();
        if is_replica && !table.is_temporary() {
            return Err(WriteError::Replica);
        }
        let growth = self
            .work
            .as_ref()
            .map_or(0, |w| w.buffers.growth_bytes(row_bytes + RECORD_BYTES));
        // A tombstone leads out of want. A replica's reserve is for what comes from the log.
        let from_reserve =
            (row_bytes == 0 || table.uses_reserve() || self.uses_reserve) && !is_replica;
        let bytes = version_bytes(row_bytes) + growth + more;
        self.admit_bytes(bytes, from_reserve)?;
        self.holds(bytes);
        if !from_reserve && !table.is_temporary() {
            self.grows.set(true);
        }
        Ok(())
    }

    /// Makes a write, of a command that has a number of its own. One that comes to nothing, because it failed or found
    /// nothing to do, holds nothing: tries are not counted, nor rows that are not inserted after all.
    #[inline]
    pub(crate) fn holding<T>(
        &mut self,
        write: impl FnOnce(&mut Txn) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        if self.command == COMMANDS_END {
            return Err(WriteError::TooManyCommands);
        }
        let noted = |txn: &Txn| txn.work.as_ref().map_or(0, |w| w.buffers.writes.len());
        let (held, before) = (self.held_bytes.get(), noted(self));
        let done = write(self);
        if noted(self) == before {
            self.held_bytes.set(held);
        }
        done
    }

    /// So much more cannot go before it ends, if the write is made ([`Txn::holding`]).
    fn holds(&self, bytes: usize) {
        self.held_bytes.set(self.held_bytes.get() + bytes as u64);
    }

    /// Asks for memory: who gets none waits, if there is somebody who may make room.
    #[inline]
    pub(crate) fn admit_bytes(&self, bytes: usize, from_reserve: bool) -> Result<(), WriteError> {
        if self.granted.borrow().is_some()
            && let Some(granted) = self.granted.take()
            && granted.bytes() >= bytes
        {
            // Given back as it is dropped, for what is about to be allocated.
            return Ok(());
        }
        match self.worker.admit(bytes, from_reserve) {
            Ok(()) => Ok(()),
            Err(_) if self.engine().memory_queue.is_running() => {
                Err(PageFault::room(bytes, from_reserve).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Inserts the entries of a new version, in all indexes whose key differs from the old version's. On an error the
    /// caller undoes the version, which takes out what was inserted.
    fn insert_entries(
        &mut self,
        table: &Table,
        indexes: &[Arc<Index>],
        rid: Rid,
        old: Option<&[u8]>,
        new: &[u8],
        guard: &Guard,
    ) -> Result<(), WriteError> {
        let mut judged = Judged::begin(self);
        let result = self.insert_judged(table, indexes, rid, old, new, &mut judged, guard);
        judged.end(self, table, result)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the same as its only caller, and what it notes"
    )]
    fn insert_judged(
        &self,
        table: &Table,
        indexes: &[Arc<Index>],
        rid: Rid,
        old: Option<&[u8]>,
        new: &[u8],
        judged: &mut Judged,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        let Some(work) = &self.work else {
            return Ok(());
        };
        let examined = &mut judged.seen;
        let mut scratch = self.worker.scratch.borrow_mut();
        let KeyBuffers {
            old_key,
            new_key,
            other_key,
            ..
        } = &mut *scratch;
        for index in indexes {
            new_key.clear();
            let kind = index.key(new, new_key);
            match kind {
                KeyKind::Absent => continue,
                KeyKind::Failed => return Err(WriteError::NoKey { index: index.id() }),
                KeyKind::Unique | KeyKind::Nullable => {}
            }
            if let Some(old) = old {
                old_key.clear();
                if index.key(old, old_key) == kind && old_key == new_key {
                    continue;
                }
            }
            if self.worker.simulates_absence(&table.rows) {
                return Err(PageFault::leaf(index, new_key).into());
            }
            let length = new_key.len();
            self.worker.took(length + ENTRY_BYTES);
            self.holds(length + ENTRY_BYTES);
            self.touch_entry(index, new_key);
            Index::complete(new_key, rid);
            if index.is_unique() && kind == KeyKind::Unique {
                let judge = UniqueChecker {
                    table,
                    index,
                    writer: &work.writer,
                    worker: &self.worker,
                    guard,
                };
                let key = &new_key[..length];
                if let Some(keys) = &mut judged.keys {
                    keys.push((index.id(), key.into()));
                }
                index.insert_and_check(new_key, |other| {
                    judge.judge(other, key, examined, other_key)
                })?;
            } else {
                index.insert(new_key)?;
            }
        }
        Ok(())
    }

    /// Judges later what an index that does not judge at the write (a deferrable unique constraint) holds of this
    /// transaction's newest version of a row: no other row may have its key. Called when the constraint is due, and
    /// again after every [`WriteError::Blocked`].
    ///
    /// The rule is T11's: an entry goes in before its row is checked, and a check waits for rows in flight. Of two
    /// inserters the one whose entry came second meets the other's, whenever each of them checks; so it does not matter
    /// that the check and the commit are two steps. If both check while both are in flight, each waits for the other
    /// and one of them is the victim of the deadlock.
    pub fn check_unique(
        &mut self,
        table: &Table,
        index: &Arc<Index>,
        rid: Rid,
    ) -> Result<(), WriteError> {
        let guard = Guard::pin();
        let Some(newest) = self.read_newest(table, rid, &guard)? else {
            return Ok(());
        };
        self.start_work();
        let mut judged = Judged::begin(self);
        let Some(work) = &self.work else {
            return Ok(());
        };
        let mut scratch = self.worker.scratch.borrow_mut();
        let KeyBuffers {
            new_key, other_key, ..
        } = &mut *scratch;
        new_key.clear();
        match index.key(newest.bytes.bytes(), new_key) {
            KeyKind::Unique => {}
            KeyKind::Absent | KeyKind::Nullable => return Ok(()),
            KeyKind::Failed => return Err(WriteError::NoKey { index: index.id() }),
        }
        self.touch_entry(index, new_key);
        let length = new_key.len();
        Index::complete(new_key, rid);
        let judge = UniqueChecker {
            table,
            index,
            writer: &work.writer,
            worker: &self.worker,
            guard: &guard,
        };
        let (key, examined) = (&new_key[..length], &mut judged.seen);
        if let Some(keys) = &mut judged.keys {
            keys.push((index.id(), key.into()));
        }
        // The entry is there since the write; under its key's lock all others are judged.
        let result = index.insert_and_check(new_key, |other| {
            judge.judge(other, key, examined, other_key)
        });
        drop(scratch);
        judged.end(self, table, result)
    }

    pub(crate) fn changed_keys(
        &self,
        indexes: &[Arc<Index>],
        old: &[u8],
        new: &[u8],
    ) -> ChangedKeys {
        let mut scratch = self.worker.scratch.borrow_mut();
        let KeyBuffers {
            old_key, new_key, ..
        } = &mut *scratch;
        let mut changed = ChangedKeys::None;
        for index in indexes {
            old_key.clear();
            new_key.clear();
            let (old, new) = (index.key(old, old_key), index.key(new, new_key));
            if new == KeyKind::Failed || old != new || (new.has_entry() && old_key != new_key) {
                if index.is_unique() {
                    return ChangedKeys::InUniqueIndex;
                }
                changed = ChangedKeys::InPlainIndex;
            }
        }
        changed
    }

    /// Notes a write that succeeded, and its record.
    pub(crate) fn note(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        what: RowChange,
        record: Option<RowRecord<'_>>,
    ) {
        let Some(work) = &mut self.work else { return };
        self.grants.set(0);
        let buffers = &mut work.buffers;
        let at = match buffers.tables.iter().rposition(|t| Arc::ptr_eq(t, table)) {
            Some(at) => at,
            None => {
                buffers.tables.push(table.clone());
                buffers.tables.len() - 1
            }
        };
        buffers.writes.push(UndoEntry {
            table: at as u32,
            what,
            rid,
        });
        if let Some(record) = record
            && !table.is_temporary()
        {
            record.encode(&mut buffers.log);
        }
        buffers.settle();
        self.spill();
    }

    /// Pops the transaction's newest version of a row, its index entries with it.
    pub(crate) fn undo(&mut self, table: &Table, rid: Rid, what: RowChange, guard: &Guard) {
        let Some(work) = &self.work else { return };
        if let RowChange::Share { before, .. } = what {
            return unshare(table, rid, self.id(), before);
        }
        let Some((chunk, slot)) = table.rows.slot(rid) else {
            return;
        };
        let popped = chunk.prune_lock().pop(slot, &work.writer, guard);
        let Some(gone) = popped else { return };
        add(&self.worker.counters().versions_collected, 1);
        match what {
            RowChange::Lock | RowChange::Delete | RowChange::Share { .. } => {}
            RowChange::Update | RowChange::Insert => {
                let worker = &self.worker;
                let touch = |index: &Index, key: &[u8]| worker.touch_entry(index, key);
                let mut scratch = worker.scratch.borrow_mut();
                drop_entries(
                    worker.instance,
                    table,
                    rid,
                    gone,
                    &mut scratch,
                    guard,
                    touch,
                );
            }
        }
        if what == RowChange::Insert {
            table.rows.free_rid(rid);
        }
    }

    /// Undoes a write that found its key taken. The transaction may go on (ON CONFLICT): whoever met the version in the
    /// meantime must not wait for its end. If another transaction is in the way it will not go on but wait and write
    /// again, so nobody who waits for its outcome is woken: two transactions that want each other's keys would wake
    /// each other for ever, and never both be found waiting. Who wants the row may have it in the meantime.
    fn undo_failed(
        &mut self,
        table: &Table,
        rid: Rid,
        what: RowChange,
        guard: &Guard,
        error: &WriteError,
    ) {
        self.undo(table, rid, what, guard);
        table.row_locks.wake_first(rid);
        if let (Some(work), false) = (&self.work, is_tried_again(error)) {
            work.writer.state().wake();
        }
    }

    /// Inserts a row.
    pub fn insert(&mut self, table: &Arc<Table>, row: &[u8]) -> Result<Rid, WriteError> {
        self.holding(|txn| txn.insert_row(table, row))
    }

    fn insert_row(&mut self, table: &Arc<Table>, row: &[u8]) -> Result<Rid, WriteError> {
        if row.len() > ROW_BYTES_MAX {
            return Err(WriteError::TooLarge);
        }
        self.start_work();
        let partition = match table.rows.is_divided() {
            true => {
                let mut scratch = self.worker.scratch.borrow_mut();
                table.rows.partition_for(row, &mut scratch.new_key)
            }
            // It has one place for all numbers.
            false => PartitionId(0),
        };
        self.refuse_restarting(&table.rows, || match table.rows.is_divided() {
            true => partition,
            false => table.rows.home_partition(),
        })?;
        let more = table.rows.next_rid_bytes(partition);
        self.admit(table, row.len(), more)?;
        let guard = Guard::pin();
        let rid = loop {
            let rid = match self.unread_slots.get() {
                0..UNREAD_SLOTS_MAX => table.rows.allocate_rid(partition),
                _ => table.rows.fresh_rid(partition),
            };
            if rid.0 >= RID_MAX {
                return Err(WriteError::TableFull);
            }
            let (chunk, slot) = table.rows.slot_or_new(rid);
            let Some(work) = &self.work else { continue };
            let kind = VersionKind::Row {
                keys_changed: false,
            };
            // A free rid's slot is empty; one that is not would be a leak, not a reason to fail.
            let installed = chunk.install(
                slot,
                None,
                &work.writer,
                kind,
                RowLock::Update,
                self.command,
                row,
                &guard,
            );
            match installed {
                Ok(Some(_)) => {
                    add(&self.worker.counters().versions_installed, 1);
                    break rid;
                }
                Ok(None) => {}
                Err(SlotsAbsent) => {
                    table.rows.free_rid(rid);
                    return Err(AbsentRow(rid).of(&table.rows).for_insert().into());
                }
            }
        };
        self.touch_row(&table.rows, rid);
        let instance = self.worker.instance;
        let inserted = table.with_indexes(instance, |indexes| {
            self.insert_entries(table, indexes, rid, None, row, &guard)
        });
        if let Err(error) = inserted {
            self.undo_failed(table, rid, RowChange::Insert, &guard, &error);
            return Err(error);
        }
        self.note(
            table,
            rid,
            RowChange::Insert,
            Some(RowRecord::Insert {
                table: table.id(),
                rid,
                row,
            }),
        );
        // Who waited for a row (ON CONFLICT) and inserts after all does not want it any more.
        self.pass_turn();
        Ok(rid)
    }

    /// Replaces the version `base` of a row.
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        new_row: &[u8],
    ) -> Result<(), WriteError> {
        let done = self.holding(|txn| txn.update_row(table, rid, base, new_row));
        self.turn_used(table, rid, &done, RowLock::NoKeyUpdate);
        done
    }

    fn update_row(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        new_row: &[u8],
    ) -> Result<(), WriteError> {
        if new_row.len() > ROW_BYTES_MAX {
            return Err(WriteError::TooLarge);
        }
        self.start_work();
        self.admit(table, new_row.len(), 0)?;
        let guard = Guard::pin();
        let target = loop {
            let target = self.satisfies_update(table, rid, base, RowLock::NoKeyUpdate, &guard)?;
            let old_row = target.row.row();
            // One look at the table's indexes for all of it: an index that is attached meanwhile would be missed by
            // both, by us because its keys were not compared and by who builds it because the version came after.
            let written = table.with_indexes(self.worker.instance, |indexes| {
                let changed = self.changed_keys(indexes, old_row, new_row);
                let keys_changed = changed != ChangedKeys::None;
                let kind = VersionKind::Row { keys_changed };
                let lock = changed.lock();
                if !self.install_above(table, rid, &target, kind, lock, new_row, &guard)? {
                    return Ok::<_, WriteError>(None);
                }
                Ok(Some(if keys_changed {
                    self.insert_entries(table, indexes, rid, Some(old_row), new_row, &guard)
                } else {
                    Ok(())
                }))
            })?;
            match written {
                None => {}
                Some(Ok(())) => break target,
                Some(Err(error)) => {
                    self.undo_failed(table, rid, RowChange::Update, &guard, &error);
                    return Err(error);
                }
            }
        };
        let old_row = target.row.row();
        let mut delta = std::mem::take(&mut self.worker.scratch.borrow_mut().delta);
        delta.clear();
        let (old, new) = (RowRef::new(old_row), RowRef::new(new_row));
        let named = table.with_indexes(self.worker.instance, |indexes| {
            columns_of_keys(indexes, old, new)
        });
        delta::diff_naming(old, new, |column| named.contains(&column), &mut delta);
        let record = if self.engine().delta_records {
            RowRecord::Update {
                table: table.id(),
                rid,
                delta: &delta,
            }
        } else {
            RowRecord::Insert {
                table: table.id(),
                rid,
                row: new_row,
            }
        };
        self.note(table, rid, RowChange::Update, Some(record));
        self.worker.scratch.borrow_mut().delta = delta;
        if target.row.next(&guard).is_some() {
            // A row that is updated often does not wait for the collector.
            collect::prune_in_line(&self.worker, table, rid, &guard);
        }
        Ok(())
    }

    /// Deletes the version `base` of a row.
    pub fn delete(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
    ) -> Result<(), WriteError> {
        let done = self.holding(|txn| txn.delete_row(table, rid, base));
        self.turn_used(table, rid, &done, RowLock::Update);
        done
    }

    fn delete_row(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
    ) -> Result<(), WriteError> {
        self.start_work();
        self.admit(table, 0, 0)?;
        let guard = Guard::pin();
        let (kind, lock) = (VersionKind::Tombstone, RowLock::Update);
        loop {
            let target = self.satisfies_update(table, rid, base, lock, &guard)?;
            if self.install_above(table, rid, &target, kind, lock, &[], &guard)? {
                break;
            }
        }
        self.note(
            table,
            rid,
            RowChange::Delete,
            Some(RowRecord::Delete {
                table: table.id(),
                rid,
            }),
        );
        Ok(())
    }
}
