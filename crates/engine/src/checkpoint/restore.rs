//! Indexes at a start: taken from the checkpoint that was loaded, instead of being built from all rows.
//!
//! [`Engine::restore_index`] makes an index of which every leaf is absent and may be brought in when it is needed; then it puts in the
//! entries of the rows that the log behind the checkpoint has touched. So a start costs what the tail costs, not what the data does.
//!
//! Invariant: **after any crash every row has its entry in every index**, while an index may have more entries than that. Let r be a row that is there after recovery.
//! - If the tail has not touched r, the checkpoint holds it, in the same version, and so do the tiles of each index that it lists
//!   ([`super::tiles`]): the index has its entry, as stored or, once it is brought in, in memory.
//! - If the tail has touched r, and its chunk is in memory, its entry is put in here, for the version it has now; there is no other one. The list of
//!   touched rows is made where records are applied, so nothing is applied that is not in it.
//! - If the tail has touched r, and its chunk is absent, the chunk has r's records ([`crate::pending`]). If none of them may change the columns
//!   that keys are made of, r has the key now that it had when it was inserted: by the tail, and then its entry is put in here, made of
//!   that record; or before, and then it is in the tiles. If one may, the chunk is brought in.
//! - An index that the checkpoint does not list, or lists with keys that were made in another way, is built from rows by whoever asks. So is
//!   one whose stored leaves cannot be read.
//!
//! Which indexes there are is not decided here: who starts asks for each index that the recovered catalog names, and only for these. A number that a
//! checkpoint lists and that is asked for is the same index: the numbers of objects come from a logged counter, and a checkpoint at S lists only what was complete when S was
//! drawn, whose number's reservation has a CSN below S and hence survives with the checkpoint; so no crash takes that number back. What
//! nobody asks for is not in memory, and the next checkpoint does not have it any more.
//!
//! Surplus entries are those of transactions that did not survive and those that were removed after the walk had passed them. Readers look at the rows anyway.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use logstead_checkpoint::{CheckpointError as PagesError, PageReader};
use logstead_types::IndexId;
use logstead_wal::Record;

use super::pages::Pages;
use crate::absent::FaultError;
use crate::delta;
use crate::engine::Engine;
use crate::index::{Index, KeyExtractor};
use crate::pending::Noted;
use crate::row::RowError;
use crate::table::Table;
use crate::tree::NotLeaves;
use crate::version::{Guard, Kind};

/// Entries that are put in at once, in their order: leaves are brought in from left to right, and read ahead.
const BATCH_ENTRIES: usize = 1 << 14;

/// What has become of an index that was to be restored.
#[derive(Clone, Debug)]
pub enum RestoredIndex {
    /// It is attached and complete.
    Restored(Arc<Index>),
    /// It is not in the checkpoint that was loaded: to be built from rows.
    NotStored,
    /// What is stored of it cannot be used, and why: to be built from rows.
    Damaged(String),
}

/// Why it cannot be restored.
enum Failed {
    Damaged(String),
    Fault(FaultError),
}

impl From<FaultError> for Failed {
    fn from(error: FaultError) -> Failed {
        match error {
            FaultError::Damaged(what) => Failed::Damaged(what),
            other => Failed::Fault(other),
        }
    }
}

impl From<PagesError> for Failed {
    fn from(error: PagesError) -> Failed {
        Failed::from(FaultError::from(error))
    }
}

impl From<NotLeaves> for Failed {
    fn from(_: NotLeaves) -> Failed {
        Failed::Damaged("its leaves do not follow one another".to_owned())
    }
}

impl Engine {
    /// Keeps an index with the table as the checkpoint has it that was loaded at the start, with the log behind it. As [`Engine::create_index`] and
    /// [`Txn::build_index`](crate::Txn::build_index) together, without looking at rows that have not changed since. To be called
    /// at the start, before anybody writes, and before [`Engine::end_start`].
    pub fn restore_index(
        &self,
        table: &Arc<Table>,
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
    ) -> Result<RestoredIndex, FaultError> {
        let inner = self.inner();
        if table.index(id).is_some() {
            // It is kept already, as somebody else has made it.
            return Ok(RestoredIndex::NotStored);
        }
        let stored = {
            let base = inner.checkpoints.base.lock();
            let starting = &inner.checkpoints.starting;
            starting.fetch_or(table.rows.tails.is_starting(), Ordering::SeqCst);
            base.as_ref()
                .and_then(|base| base.stored_index(table.id(), id, extractor.keys()))
        };
        if stored.is_some() {
            self.bring_with_other_keys(table, extractor.columns())?;
        }
        let (Some(stored), Some(noted)) = (stored, table.rows.tails.noted()) else {
            return Ok(RestoredIndex::NotStored);
        };
        let lows = stored
            .directory
            .tiles(table.id(), id, Vec::new())
            .map(|tile| Ok::<_, Failed>(tile?.0));
        let restored = Index::restored(id, unique, extractor, table.rows.clone(), lows)
            .and_then(|index| self.put_touched(table, index, &noted));
        match restored {
            Ok(index) => {
                index.set_complete();
                let index = table.attach(index);
                index.set_attached(inner.certifier.index_attached());
                Ok(RestoredIndex::Restored(index))
            }
            Err(Failed::Damaged(what)) => Ok(RestoredIndex::Damaged(what)),
            Err(Failed::Fault(error)) => Err(error),
        }
    }

    /// The start is through: what it has noted of the log is forgotten, and checkpoints are taken. Between the first
    /// [`Engine::restore_index`] and this, [`Engine::begin_checkpoint`] gives [`CheckpointError::Busy`](crate::CheckpointError::Busy).
    pub fn end_start(&self) {
        let _base = self.inner().checkpoints.base.lock();
        let starting = &self.inner().checkpoints.starting;
        starting.store(false, Ordering::SeqCst);
        for table in self.inner().tables.read().values() {
            table.rows.tails.end_start();
        }
    }

    /// Brings in the chunks with rows whose keys, made of `columns`, the log may have changed: what they are is not known before.
    fn bring_with_other_keys(
        &self,
        table: &Arc<Table>,
        columns: Option<&[usize]>,
    ) -> Result<(), FaultError> {
        let noted = table.rows.tails.noted().unwrap_or_default();
        let chunks = &self.inner().chunks;
        let mut reader = chunks.reader();
        for (number, tail) in &noted.tails {
            if tail
                .records()
                .any(|(_, record)| changes_key(&record, columns))
            {
                chunks.load_chunk(&table.rows, *number, &mut reader)?;
            }
        }
        Ok(())
    }

    /// Puts in the entries of touched rows.
    fn put_touched(
        &self,
        table: &Arc<Table>,
        index: Index,
        noted: &Noted,
    ) -> Result<Index, Failed> {
        let pages = &self.inner().pages;
        let touched = noted.touched.as_deref().unwrap_or_default();
        let mut reader = pages.reader();
        let mut entries: Vec<Vec<u8>> = Vec::new();
        for batch in touched.chunks(BATCH_ENTRIES) {
            entries.clear();
            for rid in batch {
                let guard = Guard::pin();
                let head = table.rows.head(*rid, &guard);
                let Ok(head) = head else {
                    // A chunk that the tail has changed is in no checkpoint as it is: it cannot be evicted.
                    return Err(Failed::Damaged("its rows are not in memory".to_owned()));
                };
                let Some(version) = head.filter(|head| matches!(head.kind(), Kind::Row { .. }))
                else {
                    continue;
                };
                let mut entry = Vec::new();
                if index.key(version.row(), &mut entry).has_entry() {
                    Index::complete(&mut entry, *rid);
                    entries.push(entry);
                }
            }
            entries.sort_unstable();
            for entry in &entries {
                insert(table, &index, entry, pages, &mut reader)?;
            }
        }
        entries.clear();
        for (_, record) in noted.tails.values().flat_map(|tail| tail.records()) {
            let mut entry = Vec::new();
            if let Record::Insert { row, rid, .. } = record
                && index.key(row, &mut entry).has_entry()
            {
                Index::complete(&mut entry, rid);
                entries.push(entry);
            }
        }
        entries.sort_unstable();
        for entry in &entries {
            insert(table, &index, entry, pages, &mut reader)?;
        }
        Ok(index)
    }
}

/// May a record give a row another key than it had before, if keys are made of `columns`? An insert brings its key.
fn changes_key(record: &Record<'_>, columns: Option<&[usize]>) -> bool {
    let Record::Update { delta, .. } = record else {
        return false;
    };
    let Some(columns) = columns else {
        return true;
    };
    // A column that the new row does not have may have been cut off.
    let is_cut = |count: usize| columns.iter().any(|column| *column >= count);
    let is_in = |column: Result<usize, RowError>| column.is_ok_and(|at| columns.contains(&at));
    // What cannot be read was refused when it was kept.
    delta::column_count(delta).is_ok_and(is_cut)
        || delta::columns(delta).is_ok_and(|mut changed| changed.any(is_in))
}

fn insert(
    table: &Table,
    index: &Index,
    entry: &[u8],
    pages: &Pages,
    reader: &mut PageReader,
) -> Result<(), FaultError> {
    while let Err(low) = index.insert_stored(entry) {
        pages.load_leaf(table.id(), index, &low, reader)?;
    }
    Ok(())
}
