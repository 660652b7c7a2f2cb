//! Stored indexes against stored rows, offline: does every row of a checkpoint have its entry in every index of it?
//!
//! A checkpoint's tiles hold the entry of each row that the checkpoint holds and that has a key, and perhaps more
//! ([`crate::checkpoint`], T11). So, for each index:
//! - a row with a key that has no entry is damage: reads by the index do not find it;
//! - two rows with one key in a unique index are damage;
//! - entries that lead to no row, or to one with another key, are surplus: legal, and counted.
//!
//! How, table by table:
//! 1. All entries of its indexes are read in the order of keys. That of each becomes a record: row, index, a hash of
//!    the key. In a unique index neighbours with one key are given a number in common as well, so that it is known
//!    afterwards which of them were *the same* key.
//! 2. The records are sorted by row ([`sorted`]): what does not fit in memory goes to scratch files, about 12 bytes for
//!    each entry.
//! 3. Rows are read in their order and the two are compared as they come, like the two sides of a merge join. What is
//!    missing is read a second time to be named.
//!
//! The hash has 64 bits. A row that lacks its entry passes for sound only if there is a surplus entry *of the same row
//! in the same index* whose key has the same hash: one in 2^64 for each such entry. Nothing else goes by hashes: that
//! two rows have one key is found where the entries lie side by side.
//!
//! Invariants:
//! - Memory is bounded at any size: [`RECORDS_MAX`] records, a chunk's keys as hashes, a tile.
//! - Where a page cannot be read nothing is said of what it holds. An index of which a tile is lost is not compared,
//!   and that is said.
//!
//! Does not: find damaged pages by itself (`logstead_checkpoint::fsck` does, this is for what that has passed), or look
//! into the log, which has no entries.

mod sorted;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::Arc;

use logstead_checkpoint::{
    CheckpointError, CheckpointRecord, ChunkSize, Directory, Leaf, PageChain, PageKey, PageReader,
};
use logstead_home::{HomeError, LogHome};
use logstead_types::{IndexId, Rid, TableId};

use crate::index::{KeyExtractor, KeyKind, split, stored_key};
use crate::row::RowRef;
use sorted::{SortedRecords, Sorter};

pub use sorted::ScratchFiles;

/// Records in memory at a time: 64 MiB.
const RECORDS_MAX: usize = 1 << 21;
/// Findings that are told one by one; the rest is counted.
const FINDINGS_MAX: usize = 1_000;
/// Bytes of a key that are shown.
const KEY_SHOWN: usize = 32;

/// An index as the catalog of the checkpoint has it.
pub struct StoredIndex {
    /// The storage of its table.
    pub table: TableId,
    /// The index.
    pub index: IndexId,
    /// Does it hold every key without NULLs once?
    pub unique: bool,
    /// For people: what table and index are called.
    pub name: String,
    /// How its keys are made.
    pub keys: Arc<dyn KeyExtractor>,
}

impl StoredIndex {
    /// The key of a row as the index has it.
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        stored_key(&*self.keys, self.keys.is_divided(), row, out)
    }
}

/// What a comparison has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexReport {
    /// Indexes compared with the rows of their tables.
    pub indexes: u64,
    /// Rows that have a key in an index, once for each index.
    pub keys: u64,
    /// Entries of the indexes compared.
    pub entries: u64,
    /// Entries of no row, or of one with another key.
    pub surplus: u64,
    /// Indexes of the checkpoint that were not compared because a start makes them anew from rows: what is stored of
    /// them is not used.
    pub not_used: u64,
    /// What is wrong, the first thousand.
    pub damage: Vec<String>,
    /// How much is wrong.
    pub damages: u64,
}

impl IndexReport {
    /// Is everything as it should be?
    pub fn is_clean(&self) -> bool {
        self.damages == 0
    }

    /// Takes in what was found elsewhere.
    pub fn add(&mut self, other: IndexReport) {
        self.indexes += other.indexes;
        self.keys += other.keys;
        self.entries += other.entries;
        self.surplus += other.surplus;
        self.not_used += other.not_used;
        self.damages += other.damages;
        let room = FINDINGS_MAX.saturating_sub(self.damage.len());
        self.damage.extend(other.damage.into_iter().take(room));
    }

    fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.damages += 1;
        if self.damage.len() < FINDINGS_MAX {
            self.damage.push(what());
        }
    }
}

impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} indexes with {} entries compared with {} keys of rows, {} surplus entries, {} indexes to be made from rows; {} damages",
            self.indexes, self.entries, self.keys, self.surplus, self.not_used, self.damages
        )
    }
}

/// Why a comparison cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The home cannot be reached.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Room for sorting cannot be had.
    #[error("no room to sort the entries of indexes: {0}")]
    Scratch(#[from] io::Error),
}

/// The rows of a checkpoint.
pub struct StoredRows<'c> {
    record: &'c CheckpointRecord,
    directory: Directory,
    reader: PageReader,
}

impl<'c> StoredRows<'c> {
    /// Those of this record.
    pub fn new(home: &LogHome, record: &'c CheckpointRecord) -> StoredRows<'c> {
        StoredRows {
            record,
            directory: Directory::open(home.objects.clone(), record.root),
            reader: PageReader::new(home.objects.clone()).merging(crate::delta::put_over),
        }
    }

    /// Calls `each` with every row of a table. After an error what it was called with counts for nothing.
    pub fn each(
        &mut self,
        table: TableId,
        mut each: impl FnMut(Rid, RowRef<'_>),
    ) -> Result<(), CheckpointError> {
        let size = self.record.chunk_size;
        for chunk in chunks(&self.directory, table) {
            let (number, chain) = chunk?;
            let key = PageKey::Rows {
                table,
                chunk: number,
            };
            let row = |slot, _, bytes: &[u8]| each(rid_of(size, number, slot), RowRef::new(bytes));
            self.reader.chunk_of(size, &key, &chain, row)?;
        }
        Ok(())
    }

    /// Of the indexes that its catalog names those that the checkpoint has, and that a start would use: the others, or
    /// what is stored of them, are made anew from rows. By table.
    pub fn in_use<'i>(
        &self,
        indexes: &'i [StoredIndex],
    ) -> BTreeMap<TableId, Vec<&'i StoredIndex>> {
        let mut tables: BTreeMap<TableId, Vec<&StoredIndex>> = BTreeMap::new();
        for index in indexes {
            let stored = self.record.index(index.table, index.index);
            if stored.is_some_and(|stored| stored.keys == index.keys.keys()) {
                tables.entry(index.table).or_default().push(index);
            }
        }
        tables
    }

    /// Compares indexes of one table with its rows.
    pub fn check_table(
        &mut self,
        table: TableId,
        indexes: &[&StoredIndex],
        scratch: &ScratchFiles,
    ) -> Result<IndexReport, VerifyError> {
        self.check(table, indexes, scratch, RECORDS_MAX)
    }

    fn check(
        &mut self,
        table: TableId,
        indexes: &[&StoredIndex],
        scratch: &ScratchFiles,
        records_max: usize,
    ) -> Result<IndexReport, VerifyError> {
        let mut report = IndexReport::default();
        let mut check = Check {
            directory: &self.directory,
            reader: &mut self.reader,
            size: self.record.chunk_size,
            table,
            indexes,
            report: &mut report,
        };
        check.table(scratch, records_max)?;
        Ok(report)
    }
}

/// The chunks of a table, in order.
fn chunks(
    directory: &Directory,
    table: TableId,
) -> impl Iterator<Item = Result<(u64, PageChain), CheckpointError>> + use<> {
    let first = PageKey::Rows { table, chunk: 0 };
    directory
        .scan(Some(&first))
        .map_while(move |entry| match entry {
            Ok((PageKey::Rows { table: of, chunk }, chain)) => {
                (of == table).then_some(Ok((chunk, chain)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
}

fn rid_of(size: ChunkSize, chunk: u64, slot: u16) -> Rid {
    Rid(chunk
        .saturating_mul(u64::from(size.slots()))
        .saturating_add(u64::from(slot)))
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

/// A key for people.
fn shown(key: &[u8]) -> String {
    let mut text: String = key
        .iter()
        .take(KEY_SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if key.len() > KEY_SHOWN {
        text += "...";
    }
    text
}

/// Trouble with the home ends the comparison; damage is told by the caller.
fn unless_home<T>(result: Result<T, CheckpointError>) -> Result<Result<T, String>, VerifyError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(CheckpointError::Home(error)) => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// One table.
struct Check<'c> {
    directory: &'c Directory,
    reader: &'c mut PageReader,
    size: ChunkSize,
    table: TableId,
    indexes: &'c [&'c StoredIndex],
    report: &'c mut IndexReport,
}

/// A row's key in one index.
struct Key {
    rid: u64,
    index: usize,
    hash: u64,
    /// It may be there once.
    once: bool,
}

impl Check<'_> {
    fn table(&mut self, scratch: &ScratchFiles, records_max: usize) -> Result<(), VerifyError> {
        let mut entries = Sorter::new(scratch, records_max, 0);
        let mut compared = vec![false; self.indexes.len()];
        for (at, compared) in compared.iter_mut().enumerate() {
            match self.entries(at, &mut entries)? {
                Ok(()) => {
                    *compared = true;
                    self.report.indexes += 1;
                }
                Err(why) => {
                    let name = &self.indexes[at].name;
                    self.report
                        .wrong(|| format!("{name}: not compared with its rows: {why}"));
                }
            }
        }
        let mut entries = entries.finish()?;
        // Rows whose keys stand twice in an index that has each once: index, number of the key, row.
        let mut doubles = Sorter::new(scratch, records_max / 8, 1);
        let mut keys = Vec::new();
        for chunk in chunks(self.directory, self.table) {
            let (number, chain) = match unless_home(chunk)? {
                Ok(chunk) => chunk,
                Err(why) => {
                    let table = self.table;
                    self.report.wrong(|| {
                        format!("table {table}: not compared with its indexes to its end: {why}")
                    });
                    // What they lead to is not known.
                    while let Some(entry) = entries.next()? {
                        self.count(Some(entry), &compared, false);
                    }
                    break;
                }
            };
            let read = self.keys(number, &chain, &compared, &mut keys);
            let end = rid_of(self.size, number.saturating_add(1), 0).0;
            match unless_home(read)? {
                Ok(()) => self.compare(&keys, &compared, &mut entries, &mut doubles)?,
                Err(why) => {
                    let table = self.table;
                    self.report.wrong(|| {
                        format!(
                            "table {table} chunk {number}: not compared with its indexes: {why}"
                        )
                    });
                    self.skip_to(rid_of(self.size, number, 0).0, &compared, &mut entries)?;
                    while entries.peek().is_some_and(|entry| entry[0] < end) {
                        self.count(entries.next()?, &compared, false);
                    }
                }
            }
        }
        self.skip_to(u64::MAX, &compared, &mut entries)?;
        while let Some(entry) = entries.next()? {
            self.count(Some(entry), &compared, true);
        }
        self.doubles(doubles.finish()?)
    }

    /// Reads the entries of an index. Inside: why it cannot be compared.
    fn entries(
        &mut self,
        at: usize,
        entries: &mut Sorter<'_>,
    ) -> Result<Result<(), String>, VerifyError> {
        let index = self.indexes[at];
        let mut leaf = Leaf::default();
        // Where the next tile begins; nowhere if there is to be none.
        let mut next = Some(Vec::new());
        let mut before: Vec<u8> = Vec::new();
        let mut waiting: Option<[u64; 4]> = None;
        let mut keys_twice = 0;
        for tile in self.directory.tiles(index.table, index.index, Vec::new()) {
            let (low, chain) = match unless_home(tile)? {
                Ok(tile) => tile,
                Err(why) => return Ok(Err(why)),
            };
            if next.as_ref() != Some(&low) {
                return Ok(Err("its tiles do not follow one another".to_owned()));
            }
            let key = PageKey::Leaf {
                table: index.table,
                index: index.index,
                low,
            };
            if let Err(why) = unless_home(self.reader.leaf(&key, &chain, &mut leaf))? {
                return Ok(Err(why));
            }
            for entry in leaf.entries() {
                let (key, rid) = split(entry);
                if entry.len() == key.len() {
                    let name = &index.name;
                    self.report
                        .wrong(|| format!("{name}: an entry without a row: {}", shown(entry)));
                    continue;
                }
                let mut record = [rid.0, at as u64, hash_of(key), 0];
                if let Some(waiting) = &mut waiting {
                    if index.unique && before == key {
                        if waiting[3] == 0 {
                            keys_twice += 1;
                            waiting[3] = keys_twice;
                        }
                        record[3] = keys_twice;
                    }
                    entries.push(*waiting)?;
                }
                waiting = Some(record);
                before.clear();
                before.extend_from_slice(key);
            }
            next = leaf.high().map(<[u8]>::to_vec);
        }
        if let Some(waiting) = waiting {
            entries.push(waiting)?;
        }
        Ok(match next {
            None => Ok(()),
            Some(_) => Err("its last tiles are missing".to_owned()),
        })
    }

    /// The keys of a chunk's rows, in the order of records.
    fn keys(
        &mut self,
        number: u64,
        chain: &PageChain,
        compared: &[bool],
        keys: &mut Vec<Key>,
    ) -> Result<(), CheckpointError> {
        keys.clear();
        let mut failed = Vec::new();
        let mut bytes = Vec::new();
        let key = PageKey::Rows {
            table: self.table,
            chunk: number,
        };
        let size = self.size;
        self.reader.chunk_of(size, &key, chain, |slot, _, row| {
            let rid = rid_of(size, number, slot).0;
            for (at, index) in self
                .indexes
                .iter()
                .enumerate()
                .filter(|(at, _)| compared[*at])
            {
                bytes.clear();
                let kind = index.key(RowRef::new(row), &mut bytes);
                match kind {
                    KeyKind::Absent => {}
                    KeyKind::Failed => failed.push((rid, at)),
                    KeyKind::Unique | KeyKind::Nullable => keys.push(Key {
                        rid,
                        index: at,
                        hash: hash_of(&bytes),
                        once: index.unique && kind == KeyKind::Unique,
                    }),
                }
            }
        })?;
        for (rid, at) in failed {
            let name = &self.indexes[at].name;
            self.report
                .wrong(|| format!("{name}: the key of row {rid} cannot be computed"));
        }
        keys.sort_unstable_by_key(|key| (key.rid, key.index));
        Ok(())
    }

    /// An entry that is passed.
    fn count(&mut self, entry: Option<[u64; 4]>, compared: &[bool], is_surplus: bool) {
        let of = entry.and_then(|entry| compared.get(entry[1] as usize));
        // Of an index that was given up half way nothing is said.
        if of == Some(&true) {
            self.report.entries += 1;
            self.report.surplus += u64::from(is_surplus);
        }
    }

    /// Passes the entries of rows before `rid`: no row has them.
    fn skip_to(
        &mut self,
        rid: u64,
        compared: &[bool],
        entries: &mut SortedRecords,
    ) -> Result<(), VerifyError> {
        while entries.peek().is_some_and(|entry| entry[0] < rid) {
            self.count(entries.next()?, compared, true);
        }
        Ok(())
    }

    /// The rows of a chunk against what comes next of the entries.
    fn compare(
        &mut self,
        keys: &[Key],
        compared: &[bool],
        entries: &mut SortedRecords,
        doubles: &mut Sorter<'_>,
    ) -> Result<(), VerifyError> {
        for key in keys {
            self.report.keys += 1;
            let wanted = [key.rid, key.index as u64, key.hash];
            while entries.peek().is_some_and(|entry| entry[..3] < wanted[..]) {
                self.count(entries.next()?, compared, true);
            }
            match entries.peek().filter(|entry| entry[..3] == wanted[..]) {
                Some(entry) => {
                    self.count(entries.next()?, compared, false);
                    if key.once && entry[3] != 0 {
                        doubles.push([entry[1], entry[3], key.rid, 0])?;
                    }
                }
                None => {
                    let name = &self.indexes[key.index].name;
                    let (report, rid) = (&mut *self.report, key.rid);
                    report.damages += 1;
                    if report.damage.len() < FINDINGS_MAX {
                        let what = format!("{name}: row {rid} has no entry");
                        let key = self.key_of(rid, key.index)?;
                        self.report.damage.push(format!("{what} for its key {key}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Keys that several rows have.
    fn doubles(&mut self, mut doubles: SortedRecords) -> Result<(), VerifyError> {
        let mut before: Option<[u64; 4]> = None;
        while let Some(double) = doubles.next()? {
            if let Some(before) = before.filter(|before| before[..2] == double[..2]) {
                let at = double[0] as usize;
                let key = match self.report.damage.len() < FINDINGS_MAX {
                    true => self.key_of(double[2], at)?,
                    false => String::new(),
                };
                let name = &self.indexes[at].name;
                self.report.wrong(|| {
                    let (one, other) = (before[2], double[2]);
                    format!("{name}: rows {one} and {other} have one key in a unique index: {key}")
                });
            }
            before = Some(double);
        }
        Ok(())
    }

    /// A row's key for people.
    fn key_of(&mut self, rid: u64, at: usize) -> Result<String, VerifyError> {
        let size = self.size;
        let chunk = rid / u64::from(size.slots());
        let key = PageKey::Rows {
            table: self.table,
            chunk,
        };
        let mut text = String::new();
        let index = self.indexes[at];
        let read = self.directory.get(&key).and_then(|chain| match chain {
            Some(chain) => self.reader.chunk_of(size, &key, &chain, |slot, _, row| {
                if rid_of(size, chunk, slot).0 == rid {
                    let mut bytes = Vec::new();
                    index.key(RowRef::new(row), &mut bytes);
                    text = shown(&bytes);
                }
            }),
            None => Ok(()),
        });
        // It was read a moment ago: what cannot be read any more is told by who reads all pages.
        let _was_read_before = unless_home(read)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
