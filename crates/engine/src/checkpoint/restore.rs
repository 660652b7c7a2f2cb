//! Indexes at a start: taken from the checkpoint that was loaded, instead of being built from all rows.
//!
//! [`Engine::restore_index`] makes an index of which every leaf is absent, and where they begin is not known yet; both are brought in when they are needed
//! ([`crate::tree`]). The entries of the rows that the log behind the checkpoint has touched are kept until their leaves come; only a leaf that gets many
//! is brought in at once. So a start costs what the tail costs, not what the data does, and it reads nothing of an index but for such leaves, and for finding them a
//! path of the directory for each [`PIECE_BYTES`] of entries.
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
use logstead_types::{IndexId, Rid};
use logstead_wal::Record;

use super::Stored;
use super::pages::Pages;
use crate::absent::FaultError;
use crate::delta;
use crate::engine::Engine;
use crate::index::{Index, KeyExtractor};
use crate::pending::Noted;
use crate::row::RowError;
use crate::table::Table;
use crate::version::{Guard, Kind};

/// A leaf that gets more bytes of entries than two such pieces is brought in at the start: what it gets when it is loaded makes a few leaves of it at most.
const PIECE_BYTES: usize = 2048;
/// What an entry takes beside its bytes.
const ENTRY_BYTES: usize = 8;

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
        let index = Index::restored(id, unique, extractor, table.rows.clone());
        let restored = self.put_touched(table, index, &stored, &noted);
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
                chunks.load_tail(&table.rows, *number, &mut reader)?;
            }
        }
        Ok(())
    }

    /// Puts in the entries of touched rows, or keeps them until their leaves are loaded.
    fn put_touched(
        &self,
        table: &Arc<Table>,
        index: Index,
        stored: &Stored,
        noted: &Noted,
    ) -> Result<Index, Failed> {
        let mut entries: Vec<Vec<u8>> = Vec::new();
        let mut add = |rid: Rid, row: &[u8]| {
            let mut entry = Vec::new();
            if index.key(row, &mut entry).has_entry() {
                Index::complete(&mut entry, rid);
                entries.push(entry);
            }
        };
        for rid in noted.touched.as_deref().unwrap_or_default() {
            let guard = Guard::pin();
            let Ok(head) = table.rows.head(*rid, &guard) else {
                // A chunk that the tail has changed is in no checkpoint as it is: it cannot be evicted.
                return Err(Failed::Damaged("its rows are not in memory".to_owned()));
            };
            if let Some(version) = head.filter(|head| matches!(head.kind(), Kind::Row { .. })) {
                add(*rid, version.row());
            }
        }
        for (_, record) in noted.tails.values().flat_map(|tail| tail.records()) {
            if let Record::Insert { row, rid, .. } = record {
                add(rid, row);
            }
        }
        entries.sort_unstable();
        entries.dedup();
        self.put_dense(table, &index, stored, &entries)?;
        for entry in &entries {
            if index.insert_stored(entry).is_err() {
                index.add_late(entry);
            }
        }
        Ok(index)
    }

    /// Brings in the leaves that get so many of the entries that these would become many leaves at once, and puts them in.
    fn put_dense(
        &self,
        table: &Table,
        index: &Index,
        stored: &Stored,
        entries: &[Vec<u8>],
    ) -> Result<(), Failed> {
        let pages = &self.inner().pages;
        let mut reader = pages.reader();
        // Where the last piece begins, and its first entry's tile.
        let (mut from, mut tile_before) = (0, None);
        let mut bytes = 0;
        for (at, entry) in entries.iter().enumerate() {
            bytes += entry.len() + ENTRY_BYTES;
            if bytes < PIECE_BYTES {
                continue;
            }
            bytes = 0;
            let tile = stored.directory.tile_of(table.id(), index.id(), entry)?;
            if tile.is_some() && tile == tile_before {
                // All between lie in one tile.
                for entry in &entries[from..=at] {
                    insert(table, index, entry, pages, &mut reader)?;
                }
            }
            (from, tile_before) = (at, tile);
        }
        Ok(())
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
