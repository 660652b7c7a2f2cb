//! Rows by the keys of an index, and entries that lead to nothing.

use std::sync::Arc;

use logstead_types::Rid;
use smallvec::SmallVec;

use super::{Row, Txn, row_of};
use crate::index::Index;
use crate::index_entries::{KeyBuffers, chain_has_key};
use crate::page_fault::PageFault;
use crate::partition::VIRTUAL_PARTITIONS;
use crate::txn::index_cursor::IndexCursor;
use crate::txn::read::RowFault;
use crate::version::{Guard, VersionRef, WriterStatus};

impl Txn {
    /// The visible row with this key in a unique index (in another index: one of them).
    #[inline]
    pub fn get<'g>(
        &mut self,
        index: &Arc<Index>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        match index.is_divided() {
            false => self.get_stored(index, key, guard),
            true => self.get_divided(index, key, guard),
        }
    }

    /// The same in a divided index.
    #[inline(never)]
    fn get_divided<'g>(
        &mut self,
        index: &Arc<Index>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        let mut stored: SmallVec<[u8; 64]> = SmallVec::new();
        stored.push(0);
        stored.extend_from_slice(key);
        let partitions = match index.partition_of_key(key) {
            Some(partition) => partition.0..partition.0 + 1,
            // It does not say where it lies.
            None => 0..VIRTUAL_PARTITIONS,
        };
        for partition in partitions {
            stored[0] = partition as u8;
            if let Some(row) = self.get_stored(index, &stored, guard)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The same with the key as the index has it.
    #[inline]
    fn get_stored<'g>(
        &mut self,
        index: &Arc<Index>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        // Before entries are looked up, also if there are none: what is visible to it has its entries by then.
        self.snapshot();
        self.track_key(index, key);
        self.touch_entry_to_read(index, key);
        if self.worker.simulates_absence(&index.rows) {
            return Err(PageFault::leaf(index, key));
        }
        let mut rids: SmallVec<[Rid; 8]> = SmallVec::new();
        index.lookup(key, |rid| {
            rids.push(rid);
            true
        })?;
        for rid in rids {
            let seen = match self.visible_version(&index.rows, rid, guard) {
                Ok(seen) => seen,
                Err(fault) => return Err(fault.of(&index.rows)),
            };
            if let Some(seen) = seen
                && self.has_key(index, seen.0, key)
            {
                self.track_row(index.rows.table, rid);
                return Ok(Some(row_of(rid, seen)));
            }
            self.tidy(index, rid, seen.map(|(version, _)| version), key, guard);
        }
        match self.may_have_lost_entries(index) {
            true => Err(PageFault::lost()),
            false => Ok(None),
        }
    }

    /// Entries are hints: does the visible version have the key?
    #[inline]
    fn has_key(&self, index: &Index, version: VersionRef<'_>, key: &[u8]) -> bool {
        let mut scratch = self.worker.scratch.borrow_mut();
        scratch.other_key.clear();
        index.key(version.row(), &mut scratch.other_key).has_entry() && scratch.other_key == key
    }

    /// The next visible row in the cursor's order; each row comes once.
    #[inline]
    pub fn index_next<'g>(
        &mut self,
        cursor: &mut IndexCursor,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        // Before entries are read ahead: what is visible to it has its entries by then.
        self.snapshot();
        loop {
            let next = cursor.advance()?;
            if self.may_have_lost_entries(cursor.index()) {
                return Err(PageFault::lost());
            }
            let Some(rid) = next else {
                self.track_cursor(cursor, true);
                return Ok(None);
            };
            self.touch_entry_to_read(cursor.index(), cursor.key());
            let seen = match self.visible_version(&cursor.index().rows, rid, guard) {
                Ok(seen) => seen,
                Err(RowFault::Lost) => return Err(PageFault::lost()),
                Err(RowFault::Absent(absent)) => {
                    cursor.step_back();
                    let beside = cursor.read_ahead(self.engine(), absent);
                    return Err(absent.of(&cursor.index().rows).beside(beside));
                }
            };
            if let Some(seen) = seen
                && self.has_key(cursor.index(), seen.0, cursor.key())
            {
                self.track_row(cursor.index().rows.table, rid);
                self.track_cursor(cursor, false);
                return Ok(Some(row_of(rid, seen)));
            }
            let version = seen.map(|(version, _)| version);
            self.tidy(cursor.index(), rid, version, cursor.key(), guard);
        }
    }

    /// Takes out an entry that has led to nothing with its key, if it is a surplus one ([`crate::index`]): the row is
    /// gone, or it has nothing but the committed version that the statement `seen`. Such are left where whoever
    /// unlinked the version they were for found their leaf absent, and where a checkpoint has them of work that came to
    /// nothing.
    #[cold]
    fn tidy(
        &self,
        index: &Index,
        rid: Rid,
        seen: Option<VersionRef<'_>>,
        key: &[u8],
        guard: &Guard,
    ) {
        if index.rows.past().is_some() {
            return;
        }
        let is_alone = match (index.rows.head(rid, guard), seen) {
            (Ok(Some(head)), Some(seen)) => {
                head == seen
                    && matches!(head.writer_status(), WriterStatus::Committed(_))
                    && head.next(guard).is_none()
            }
            (Ok(head), None) => head.is_none(),
            _ => false,
        };
        if !is_alone {
            return;
        }
        let mut scratch = self.worker.scratch.borrow_mut();
        let KeyBuffers {
            new_key, other_key, ..
        } = &mut *scratch;
        new_key.clear();
        new_key.extend_from_slice(key);
        Index::complete(new_key, rid);
        self.touch_entry(index, key);
        // As the collector does: what the chain holds is looked at again under the leaf's lock. A version that comes
        // with the key later brings its entry later.
        index.remove_if(new_key, || {
            !chain_has_key(&index.rows, rid, index, key, other_key, guard)
        });
    }
}
