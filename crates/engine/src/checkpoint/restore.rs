//! Indexes at a start: taken from the checkpoint that was loaded, instead of being built from all rows.
//!
//! [`Engine::restore_index`] makes an index of which every leaf is absent, and where they begin is not known yet; both
//! are brought in when they are needed ([`crate::tree`]). The entries of the rows that the log behind the checkpoint
//! has touched are kept until their leaves come; only a leaf that gets many is brought in at once. So a start costs
//! what the tail costs, not what the data does, and it reads nothing of an index but for such leaves, and for finding
//! them a path of the directory for each [`PIECE_BYTES`] of entries.
//!
//! Invariant: **after any crash every row has its entry in every index**, while an index may have more entries than
//! that. Let r be a row that is there after recovery.
//! - If the tail has not touched r, the checkpoint holds it, in the same version, and so do the tiles of each index
//!   that it lists ([`super::tiles`]): the index has its entry, as stored or, once it is brought in, in memory.
//! - If the tail has touched r, and its chunk is in memory, its entry is put in here, for the version it has now; there
//!   is no other one. The list of touched rows is made where records are applied, so nothing is applied that is not in
//!   it.
//! - If the tail has touched r, and its chunk is absent, the chunk has r's records ([`crate::chunk_tail`]). If none of
//!   them may change the columns that keys are made of, r has the key now that it had when it was inserted: by the
//!   tail, and then its entry is put in here, made of that record; or before, and then it is in the tiles. If some may,
//!   let R be the last of those: no record behind it changes such a column, so r's key is made of what R leaves in
//!   them. An update names all columns of an index of which it changes one (`Txn::update`), so R says what it leaves in
//!   each, and its entry, which is r's, is put in here, made of R alone. What the records before R come to are surplus
//!   entries at most. Records of older servers, and of transactions that had written before the index was attached, may
//!   name some of the columns only: then the chunk is brought in, several at a time.
//! - Where there is no room for a chunk that is to be brought in, its touched rows are made of its pages and its tail
//!   aside, and their entries are put in.
//! - The same of a chunk for whose records the start has no room ([`crate::logged_chunks`]): they are read from the log
//!   again, and put in one by one.
//! - An index that the checkpoint does not list, or lists with keys that were made in another way, is built from rows
//!   by whoever asks. So is one whose stored leaves cannot be read.
//!
//! Which indexes there are is not decided here: who starts asks for each index that the recovered catalog names, and
//! only for these. A number that a checkpoint lists and that is asked for is the same index: the numbers of objects
//! come from a logged counter, and a checkpoint at S lists only what was complete when S was drawn, whose number's
//! reservation has a CSN below S and hence survives with the checkpoint; so no crash takes that number back. What
//! nobody asks for is not in memory, and the next checkpoint does not have it any more.
//!
//! Surplus entries are those of transactions that did not survive and those that were removed after the walk had passed
//! them. Readers look at the rows anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use logstead_checkpoint::{CheckpointError as PagesError, PageKey, PageReader};
use logstead_env::spawn_scoped;
use logstead_types::{IndexId, Rid};
use logstead_wal::RowRecord;
use parking_lot::Mutex;

use crate::chunk_tail::{ChunkTail, TableTails};
use crate::delta;
use crate::engine::Engine;
use crate::fault_error::FaultError;
use crate::index::{Index, KeyExtractor};
use crate::load::{read_chunk, unfit, unreadable};
use crate::logged_chunks::LoggedChunk;
use crate::page_store::pages::PageLoader;
use crate::row::{RowBuilder, RowRef};
use crate::stored_checkpoint::StoredCheckpoint;
use crate::table::Table;
use crate::version::{CHUNK_SLOTS, Guard, VersionKind};

/// A leaf that gets more bytes of entries than two such pieces is brought in at the start: what it gets when it is
/// loaded makes a few leaves of it at most.
const PIECE_BYTES: usize = 2048;
/// What an entry takes beside its bytes.
const ENTRY_BYTES: usize = 8;
/// So many things are read for by one thread: starting another one takes as long.
const ALONE_MAX: usize = 4;

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
enum RestoreFailure {
    Damaged(String),
    Fault(FaultError),
}

impl From<FaultError> for RestoreFailure {
    fn from(error: FaultError) -> RestoreFailure {
        match error {
            FaultError::Damaged(what) => RestoreFailure::Damaged(what),
            other => RestoreFailure::Fault(other),
        }
    }
}

impl From<PagesError> for RestoreFailure {
    fn from(error: PagesError) -> RestoreFailure {
        RestoreFailure::from(FaultError::from(error))
    }
}

/// Index entries of rows that the log has touched. A row may be touched any number of times: each entry is kept once.
#[derive(Default)]
struct TouchedEntries {
    entries: Vec<Vec<u8>>,
    /// How many of them are known to differ.
    distinct: usize,
}

impl TouchedEntries {
    /// Adds the entry of a row, if it has one.
    fn add(&mut self, index: &Index, rid: Rid, row: &[u8]) {
        let mut entry = Vec::new();
        if index.key(row, &mut entry).has_entry() {
            Index::complete(&mut entry, rid);
            self.push(entry);
        }
    }

    fn push(&mut self, entry: Vec<u8>) {
        /// So many more are kept before it is looked which of them are the same.
        const SURPLUS: usize = 1 << 14;
        self.entries.push(entry);
        if self.entries.len() >= 2 * self.distinct + SURPLUS {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup();
        self.distinct = self.entries.len();
    }

    fn sorted(mut self) -> Vec<Vec<u8>> {
        self.settle();
        self.entries
    }
}

/// An index of which the checkpoint's leaves are taken, and what has to be put in.
struct RestoringIndex {
    /// Among those that were asked for.
    place: usize,
    index: Index,
    stored: StoredCheckpoint,
    /// Chunks whose touched rows are made aside: for their keys the log does not say enough, and there is no room.
    aside: BTreeSet<u64>,
    entries: TouchedEntries,
    /// Why it cannot be used as it is stored.
    damage: Option<String>,
    /// A row without columns.
    nothing: Vec<u8>,
    builder: RowBuilder,
}

impl RestoringIndex {
    fn new(place: usize, index: Index, stored: StoredCheckpoint) -> RestoringIndex {
        let mut builder = RowBuilder::new();
        builder.start(0, 0);
        RestoringIndex {
            place,
            index,
            stored,
            aside: BTreeSet::new(),
            entries: TouchedEntries::default(),
            damage: None,
            nothing: builder.finish().to_vec(),
            builder,
        }
    }

    fn add(&mut self, rid: Rid, row: &[u8]) {
        self.entries.add(&self.index, rid, row);
    }

    /// Adds the entries of the rows in memory that the log has touched, and what the log says of others.
    fn add_noted(&mut self, table: &Table, noted: &TableTails) {
        for rid in noted.touched.as_deref().unwrap_or_default() {
            let guard = Guard::pin();
            let Ok(head) = table.rows.head(*rid, &guard) else {
                // A chunk that the tail has changed is in no checkpoint as it is: it cannot be evicted.
                self.damage = Some("its rows are not in memory".to_owned());
                return;
            };
            if let Some(version) =
                head.filter(|head| matches!(head.kind(), VersionKind::Row { .. }))
            {
                self.add(*rid, version.row());
            }
        }
        for (_, record) in noted.tails.values().flat_map(|tail| tail.records()) {
            self.add_key_of(&record);
        }
    }

    /// Adds the entry that a record leads to, as far as it tells.
    fn add_key_of(&mut self, record: &RowRecord<'_>) {
        match record {
            RowRecord::Insert { row, rid, .. } => self.add(*rid, row),
            RowRecord::Update { delta, rid, .. }
                if key_after(record, self.index.key_columns()) == KeyAfter::Known =>
            {
                // What it does not name, no key is made of.
                match delta::apply(RowRef::new(&self.nothing), delta, &mut self.builder) {
                    Ok(row) => self.entries.add(&self.index, *rid, row),
                    Err(why) => self.damage = Some(format!("a record of row {rid}: {why}")),
                }
            }
            RowRecord::Update { .. } | RowRecord::Delete { .. } => {}
        }
    }
}

impl Engine {
    /// Keeps an index with the table as the checkpoint has it that was loaded at the start, with the log behind it. As
    /// [`Engine::create_index`] and [`Txn::build_index`](crate::Txn::build_index) together, without looking at rows
    /// that have not changed since. To be called at the start, before anybody writes, and before
    /// [`Engine::finish_startup`].
    pub fn restore_index(
        &self,
        table: &Arc<Table>,
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
    ) -> Result<RestoredIndex, FaultError> {
        let restored = self.restore_indexes(table, vec![(id, unique, extractor)])?;
        let restored = restored.into_iter().next();
        Ok(restored.unwrap_or(RestoredIndex::NotStored))
    }

    /// The same of several indexes of a table: number, whether it is unique, and what makes its keys. Tells what has
    /// become of each, in their order. Where the log has to be read again for what the start has left to it, it is read
    /// once for all of them.
    pub fn restore_indexes(
        &self,
        table: &Arc<Table>,
        indexes: Vec<(IndexId, bool, Arc<dyn KeyExtractor>)>,
    ) -> Result<Vec<RestoredIndex>, FaultError> {
        let mut restored = Vec::with_capacity(indexes.len());
        let mut restoring = Vec::new();
        for (id, unique, extractor) in indexes {
            let place = restored.len();
            restored.push(RestoredIndex::NotStored);
            if table.index(id).is_some() {
                // It is kept already, as somebody else has made it.
                continue;
            }
            if let Some(stored) = self.stored_index(table, id, extractor.keys()) {
                let aside = self.bring_with_unknown_keys(table, extractor.columns())?;
                let index = Index::restored(id, unique, extractor, table.rows.clone());
                let mut one = RestoringIndex::new(place, index, stored);
                one.aside = aside;
                restoring.push(one);
            }
        }
        // Before what is noted: what comes in meanwhile is in one of them.
        let left = table.rows.logged.of_start();
        let Some(noted) = table.rows.tails.noted() else {
            return Ok(restored);
        };
        for one in &mut restoring {
            one.add_noted(table, &noted);
        }
        if let Some(sources) = self.inner().chunks.sources()
            && !left.is_empty()
            && !restoring.is_empty()
        {
            sources.log.each_record(table.id(), &left, |record| {
                for one in restoring.iter_mut().filter(|one| one.damage.is_none()) {
                    let number = record.rid().0 / CHUNK_SLOTS as u64;
                    if key_after(record, one.index.key_columns()) == KeyAfter::Unknown {
                        one.aside.insert(number);
                    }
                    one.add_key_of(record);
                }
            })?;
        }
        self.add_aside(table, &mut restoring, (&noted, &left))?;
        for one in restoring {
            let place = one.place;
            restored[place] = match self.put_touched(table, one) {
                Ok(index) => {
                    index.set_complete();
                    let index = table.attach(index);
                    index.set_attached(self.inner().certifier.index_attached());
                    RestoredIndex::Restored(index)
                }
                Err(RestoreFailure::Damaged(what)) => RestoredIndex::Damaged(what),
                Err(RestoreFailure::Fault(error)) => return Err(error),
            };
        }
        Ok(restored)
    }

    /// The checkpoint with an index, if that was loaded and has it with these keys.
    fn stored_index(&self, table: &Table, id: IndexId, keys: u64) -> Option<StoredCheckpoint> {
        let inner = self.inner();
        let base = inner.checkpoints.base.lock();
        let starting = &inner.checkpoints.starting;
        starting.fetch_or(table.rows.tails.is_starting(), Ordering::SeqCst);
        match &inner.replica_base {
            Some(replica_base) => replica_base.stored_index(table.id(), id, keys),
            None => {
                let base = base.as_ref();
                base.and_then(|base| base.stored_index(table.id(), id, keys))
            }
        }
    }

    /// The start is through: what it has noted of the log is forgotten, and checkpoints are taken. Between the first
    /// [`Engine::restore_index`] and this, [`Engine::begin_checkpoint`] gives
    /// [`CheckpointError::Busy`](crate::CheckpointError::Busy).
    pub fn finish_startup(&self) {
        let _base = self.inner().checkpoints.base.lock();
        let starting = &self.inner().checkpoints.starting;
        starting.store(false, Ordering::SeqCst);
        for table in self.inner().tables.read().values() {
            table.rows.tails.finish_startup();
        }
        if let Some(base) = &self.inner().replica_base {
            base.finish_startup();
        }
    }

    /// Brings in the chunks with rows whose keys, made of `columns`, the log may have changed without saying to what.
    /// Gives those for which there is no room.
    fn bring_with_unknown_keys(
        &self,
        table: &Arc<Table>,
        columns: Option<&[usize]>,
    ) -> Result<BTreeSet<u64>, FaultError> {
        let noted = table.rows.tails.noted().unwrap_or_default();
        let is_unknown = |tail: &Arc<ChunkTail>| {
            let mut keys = tail
                .records()
                .map(|(_, record)| key_after(&record, columns));
            keys.any(|key| key == KeyAfter::Unknown)
        };
        let unknown = noted.tails.iter().filter(|(_, tail)| is_unknown(tail));
        let numbers: Vec<u64> = unknown.map(|(number, _)| *number).collect();
        let chunks = &self.inner().chunks;
        let aside = Mutex::new(BTreeSet::new());
        self.several_at_a_time(&numbers, |number, reader| {
            match chunks.load_tail(&table.rows, *number, reader) {
                Err(FaultError::OutOfMemory(_)) => {
                    aside.lock().insert(*number);
                    Ok(())
                }
                loaded => loaded,
            }
        })?;
        Ok(aside.into_inner())
    }

    /// The rows of a chunk that the log has touched, made of its pages and its tail, which is not brought in.
    fn touched_aside(
        &self,
        table: &Table,
        number: u64,
        tail: &ChunkTail,
        mut add: impl FnMut(Rid, &[u8]),
    ) -> Result<(), FaultError> {
        let inner = self.inner();
        let stored = inner.newest.get();
        let key = PageKey::Rows {
            table: table.id(),
            chunk: number,
        };
        let chain = stored.directory.get(&key)?;
        let (chain, touched) = (chain.as_ref(), tail.touched());
        let mut reader = inner.chunks.reader().of_single_pages();
        let memory = self.memory();
        let read = read_chunk(
            &mut reader,
            &key,
            chain,
            touched,
            stored.csn,
            memory,
            |_| true,
        );
        let mut read = read.map_err(|why| unreadable(why, &key, chain))?;
        if let Some(damage) = read.damage.take() {
            return Err(damage.into());
        }
        let applied = tail.apply(&mut read.slots);
        applied.map_err(|why| unfit(&why, &key, chain))?;
        for slot in touched.iter() {
            if let Some(row) = read.slots.row(slot) {
                add(Rid(number * CHUNK_SLOTS as u64 + slot as u64), row);
            }
        }
        inner.checkpoints.count_start_reads(&reader);
        Ok(())
    }

    /// Does something for each of several things that pages have to be read for, on as many threads as bring in what is
    /// absent, and counts what is read.
    fn several_at_a_time<T: Sync, E: Send>(
        &self,
        things: &[T],
        work: impl Fn(&T, &mut PageReader) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let inner = self.inner();
        let threads = inner.faults.threads_max().min(things.len() / ALONE_MAX);
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let run = || {
            let mut reader = inner.chunks.reader().of_single_pages();
            while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = work(thing, &mut reader) {
                    // Nobody begins with another one.
                    next.store(things.len(), Ordering::Relaxed);
                    failure.lock().get_or_insert(error);
                }
            }
            inner.checkpoints.count_start_reads(&reader);
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If there is none, this thread does it all.
                let _started = spawn_scoped(scope, "start", run);
            }
            run();
        });
        failure.into_inner().map_or(Ok(()), Err)
    }

    /// Adds the entries of touched rows that are made aside, of one chunk after the other for all indexes.
    fn add_aside(
        &self,
        table: &Table,
        restoring: &mut [RestoringIndex],
        (noted, left): (&TableTails, &BTreeMap<u64, Arc<LoggedChunk>>),
    ) -> Result<(), FaultError> {
        let numbers = restoring.iter().flat_map(|one| one.aside.iter().copied());
        let numbers: BTreeSet<u64> = numbers.collect();
        for number in numbers {
            let (kept, left) = (noted.tails.get(&number), left.get(&number));
            let tail = match (kept, left, self.inner().chunks.sources()) {
                (Some(tail), ..) => Ok(Arc::clone(tail)),
                (None, Some(left), Some(sources)) => {
                    let found = sources.log.tail(&table.rows, number, left);
                    found.map(|found| found.tail)
                }
                // It has come in since, and is among what was touched.
                _ => continue,
            };
            let wants = |one: &&mut RestoringIndex| one.aside.contains(&number);
            let added = tail.and_then(|tail| {
                self.touched_aside(table, number, &tail, |rid, row| {
                    let wanting = restoring.iter_mut().filter(wants);
                    wanting.for_each(|one| one.add(rid, row));
                })
            });
            match added {
                Ok(()) => {}
                Err(FaultError::Damaged(what)) => {
                    let wanting = restoring.iter_mut().filter(wants);
                    wanting.for_each(|one| one.damage = Some(what.clone()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Puts in the entries of touched rows, or keeps them until their leaves are loaded.
    fn put_touched(
        &self,
        table: &Arc<Table>,
        restoring: RestoringIndex,
    ) -> Result<Index, RestoreFailure> {
        if let Some(damage) = restoring.damage {
            return Err(RestoreFailure::Damaged(damage));
        }
        let RestoringIndex {
            index,
            stored,
            entries,
            ..
        } = restoring;
        let entries = entries.sorted();
        self.put_dense(table, &index, &stored, &entries)?;
        for entry in &entries {
            if index.insert_stored(entry).is_err() {
                index.add_late(entry);
            }
        }
        Ok(index)
    }

    /// Brings in the leaves that get so many of the entries that these would become many leaves at once, and puts them
    /// in.
    fn put_dense(
        &self,
        table: &Table,
        index: &Index,
        stored: &StoredCheckpoint,
        entries: &[Vec<u8>],
    ) -> Result<(), RestoreFailure> {
        let pages = &self.inner().pages;
        let mut reader = pages.reader();
        // The directory's nodes on the way to them, of which the first look at one has to read some.
        let ends = pieces(entries);
        let of_entry = |at: &usize, _: &mut PageReader| {
            let found = stored
                .directory
                .tile_of(table.id(), index.id(), &entries[*at]);
            found.map(|_| ())
        };
        self.several_at_a_time(&ends, of_entry)?;
        // Where the last piece begins, and its first entry's tile.
        let (mut from, mut tile_before) = (0, None);
        for at in ends {
            let entry = &entries[at];
            let tile = stored.directory.tile_of(table.id(), index.id(), entry)?;
            if tile.is_some() && tile == tile_before {
                // All between lie in one tile.
                for entry in &entries[from..=at] {
                    insert(table, index, entry, pages, &mut reader)?;
                }
            }
            (from, tile_before) = (at, tile);
        }
        self.inner().checkpoints.count_start_reads(&reader);
        Ok(())
    }
}

/// Where pieces of [`PIECE_BYTES`] end.
fn pieces(entries: &[Vec<u8>]) -> Vec<usize> {
    let mut bytes = 0;
    let ends = entries.iter().enumerate().filter_map(|(at, entry)| {
        bytes += entry.len() + ENTRY_BYTES;
        let is_full = bytes >= PIECE_BYTES;
        if is_full {
            bytes = 0;
        }
        is_full.then_some(at)
    });
    ends.collect()
}

/// What a record says of the key that a row has after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyAfter {
    /// It is what it was before, or there is no row.
    Same,
    /// It is made of what the record says.
    Known,
    /// It may be another one than before, and is made of more than the record says.
    Unknown,
}

/// What a record says of keys that are made of `columns`; not known of which: of any.
fn key_after(record: &RowRecord<'_>, columns: Option<&[usize]>) -> KeyAfter {
    let delta = match record {
        RowRecord::Insert { .. } => return KeyAfter::Known,
        RowRecord::Delete { .. } => return KeyAfter::Same,
        RowRecord::Update { delta, .. } => delta,
    };
    // What cannot be read was refused when it was kept.
    let (Ok(count), Ok(named)) = (delta::column_count(delta), delta::columns(delta)) else {
        return KeyAfter::Unknown;
    };
    let named: Vec<usize> = named.filter_map(Result::ok).collect();
    // A column that the new row does not have may have been cut off: it has none now.
    let is_told = |column: usize| column >= count || named.binary_search(&column).is_ok();
    let Some(columns) = columns else {
        return match (0..count).all(is_told) {
            true => KeyAfter::Known,
            false => KeyAfter::Unknown,
        };
    };
    let told = columns.iter().filter(|column| is_told(**column)).count();
    match told {
        0 => KeyAfter::Same,
        all if all == columns.len() => KeyAfter::Known,
        _ => KeyAfter::Unknown,
    }
}

fn insert(
    table: &Table,
    index: &Index,
    entry: &[u8],
    pages: &PageLoader,
    reader: &mut PageReader,
) -> Result<(), FaultError> {
    while let Err(low) = index.insert_stored(entry) {
        pages.load_leaf(table.id(), index, &low, reader)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However often the log has touched a row, its entries are kept once, while they are collected too.
    #[test]
    fn entries_of_touched_rows_are_kept_once() {
        const ROUNDS: usize = 100_000;
        let mut entries = TouchedEntries::default();
        let mut most = 0;
        for round in 0..ROUNDS {
            entries.push(vec![(round * 7 % 5) as u8]);
            most = most.max(entries.entries.len());
        }
        assert!(most < ROUNDS / 4, "{most} were kept at once");
        let expected: Vec<Vec<u8>> = (0..5).map(|entry| vec![entry]).collect();
        assert_eq!(entries.sorted(), expected);
    }
}
