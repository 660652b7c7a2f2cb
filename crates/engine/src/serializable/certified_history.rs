//! What is kept of certified transactions: by row, by key, by table.
//!
//! Rows and keys are kept in two generations. New ones go into the young one; when nobody can need anything of the old
//! one any more it is dropped as a whole and the young one takes its place. So forgetting costs nothing per row.
//!
//! Tables are kept in sums that contain everything in the generations: what any transaction did to a table in any way.
//! They answer most questions ("nobody wrote the table since") without a look at rows, and when the generations grow
//! beyond their limit, the sums take over: every read and write then counts for its whole table, and nothing is
//! forgotten.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use logstead_types::{IndexId, Rid, TableId};

use super::ordinal::{Ordinal, WriterStamps};
use super::ranges::RangeStamps;
use super::reads::ReadSet;
use super::writes::TableWrites;

/// Bytes of the generations, roughly: beyond this they are folded into the tables.
const BYTES_MAX: usize = 32 << 20;
/// Writers kept apart per table.
const WRITERS_MAX: usize = 4096;
/// What a writer costs in one list.
const WRITER_BYTES: usize = 16;
/// What an entry of a map costs, roughly.
const ENTRY_BYTES: usize = 64;

/// One row.
#[derive(Debug, Default)]
struct Row {
    /// The newest place from which it was read.
    read: Ordinal,
    writers: WriterStamps,
}

/// The keys of one index.
#[derive(Debug, Default)]
struct Keys {
    /// Keys looked up: the newest place each.
    points: HashMap<Box<[u8]>, Ordinal, FixedState>,
    /// Parts walked.
    ranges: RangeStamps,
    /// Parts walked in all virtual partitions, by keys without these.
    across: RangeStamps,
    /// Who gave a row a key that it had not before.
    writers: BTreeMap<Box<[u8]>, WriterStamps>,
    /// All of these.
    all: WriterStamps,
}

/// One table, and all its indexes.
#[derive(Debug, Default)]
struct Table {
    /// The newest place from which anything of it was read.
    any_read: Ordinal,
    /// The same for readers that conflict with every writer.
    whole_read: Ordinal,
    /// Everyone who wrote to it.
    writers: WriterStamps,
    /// Those that conflict with every reader.
    whole_writers: WriterStamps,
}

#[derive(Debug, Default)]
struct Generation {
    rows: HashMap<(TableId, Rid), Row, FixedState>,
    indexes: HashMap<IndexId, Keys, FixedState>,
    /// Nothing in it is of a later place.
    newest: Ordinal,
    bytes: usize,
}

/// What certified transactions have read and written, as far as somebody may need it.
#[derive(Debug, Default)]
pub(super) struct CertifiedHistory {
    tables: HashMap<TableId, Table, FixedState>,
    young: Generation,
    old: Generation,
}

impl CertifiedHistory {
    fn generations(&self) -> [&Generation; 2] {
        [&self.young, &self.old]
    }

    /// The least sstamp of those who overwrote something of `reads`.
    pub(super) fn overwriters(&self, begin: Ordinal, reads: &ReadSet) -> Ordinal {
        let mut least = Ordinal::LAST;
        for (id, read) in &reads.tables {
            let Some(table) = self.tables.get(id) else {
                continue;
            };
            if let Some(from) = read.whole {
                least = least.min(table.writers.since(from));
                continue;
            }
            least = least.min(table.whole_writers.since(begin));
            if table.writers.since(begin) >= least {
                continue;
            }
            for (rid, from) in &read.rows {
                for generation in self.generations() {
                    if let Some(row) = generation.rows.get(&(*id, *rid)) {
                        least = least.min(row.writers.since(*from));
                    }
                }
            }
        }
        for (id, read) in &reads.indexes {
            if let Some(table) = self.tables.get(&read.table) {
                least = least.min(table.whole_writers.since(begin));
            }
            for generation in self.generations() {
                let Some(keys) = generation.indexes.get(id) else {
                    continue;
                };
                if keys.all.since(begin) >= least {
                    continue;
                }
                if let Some(from) = read.whole {
                    least = least.min(keys.all.since(from));
                    continue;
                }
                for (key, from) in &read.points {
                    if let Some(writers) = keys.writers.get(key) {
                        least = least.min(writers.since(*from));
                    }
                }
                for read in read.ranges.iter().filter(|read| !read.range.is_empty()) {
                    for range in &*read.parts() {
                        for (_, writers) in keys.writers.range::<[u8], _>(range.bounds()) {
                            least = least.min(writers.since(read.from));
                        }
                    }
                }
            }
        }
        least
    }

    /// The newest place from which something of `writes` was read.
    pub(super) fn readers(&self, writes: &[TableWrites]) -> Ordinal {
        let mut newest = Ordinal::NONE;
        for write in writes {
            let Some(table) = self.tables.get(&write.table) else {
                continue;
            };
            newest = newest.max(table.whole_read);
            if write.whole {
                newest = newest.max(table.any_read);
            }
            if table.any_read <= newest {
                continue;
            }
            for generation in self.generations() {
                for rid in &write.rows {
                    if let Some(row) = generation.rows.get(&(write.table, *rid)) {
                        newest = newest.max(row.read);
                    }
                }
                for (index, key) in &write.keys {
                    if let Some(keys) = generation.indexes.get(index) {
                        let point = keys.points.get(key).copied().unwrap_or_default();
                        let across = key.get(1..).map(|key| keys.across.at(key));
                        newest = newest.max(point).max(keys.ranges.at(key));
                        newest = newest.max(across.unwrap_or_default());
                    }
                }
            }
        }
        newest
    }

    /// Keeps that `reads` was read from `place`.
    pub(super) fn add_reads(&mut self, reads: &ReadSet, place: Ordinal) {
        let raise = |stamp: &mut Ordinal| *stamp = (*stamp).max(place);
        let generation = &mut self.young;
        raise(&mut generation.newest);
        for (id, read) in &reads.tables {
            let table = self.tables.entry(*id).or_default();
            raise(&mut table.any_read);
            if read.whole.is_some() {
                raise(&mut table.whole_read);
            }
            for rid in read.rows.keys() {
                let row = generation.rows.entry((*id, *rid)).or_insert_with(|| {
                    generation.bytes += ENTRY_BYTES;
                    Row::default()
                });
                raise(&mut row.read);
            }
        }
        for (id, read) in &reads.indexes {
            raise(&mut self.tables.entry(read.table).or_default().any_read);
            let keys = generation.indexes.entry(*id).or_default();
            if read.whole.is_some() {
                generation.bytes += keys.ranges.raise(&super::ranges::KeyRange::all(), place);
            }
            for key in read.points.keys() {
                match keys.points.get_mut(key) {
                    Some(stamp) => raise(stamp),
                    None => {
                        generation.bytes += ENTRY_BYTES + key.len();
                        keys.points.insert(key.clone(), place);
                    }
                }
            }
            for read in &read.ranges {
                let ranges = match read.across {
                    true => &mut keys.across,
                    false => &mut keys.ranges,
                };
                generation.bytes += ranges.raise(&read.range, place);
            }
        }
    }

    /// Keeps that `writes` was written by the transaction at `place` with `sstamp`.
    pub(super) fn add_writes(&mut self, writes: &[TableWrites], place: Ordinal, sstamp: Ordinal) {
        let generation = &mut self.young;
        generation.newest = generation.newest.max(place);
        for write in writes {
            let table = self.tables.entry(write.table).or_default();
            table.writers.push(place, sstamp);
            if table.writers.len() > WRITERS_MAX {
                table.writers.halve();
            }
            if write.whole {
                table.whole_writers.push(place, sstamp);
                if table.whole_writers.len() > WRITERS_MAX {
                    table.whole_writers.halve();
                }
                continue;
            }
            for rid in &write.rows {
                let row = generation
                    .rows
                    .entry((write.table, *rid))
                    .or_insert_with(|| {
                        generation.bytes += ENTRY_BYTES;
                        Row::default()
                    });
                row.writers.push(place, sstamp);
                generation.bytes += WRITER_BYTES;
            }
            for (index, key) in &write.keys {
                let keys = generation.indexes.entry(*index).or_default();
                generation.bytes += 2 * WRITER_BYTES;
                match keys.writers.get_mut(key) {
                    Some(writers) => writers.push(place, sstamp),
                    None => {
                        generation.bytes += ENTRY_BYTES + key.len();
                        let mut writers = WriterStamps::default();
                        writers.push(place, sstamp);
                        keys.writers.insert(key.clone(), writers);
                    }
                }
                keys.all.push(place, sstamp);
            }
        }
    }

    /// Forgets what nobody needs, where nobody active began below `oldest`. Keeps to the limit.
    pub(super) fn trim(&mut self, oldest: Ordinal) {
        if self.old.newest < oldest {
            self.old = std::mem::take(&mut self.young);
            self.tables.retain(|_, table| {
                table.writers.trim(oldest);
                table.whole_writers.trim(oldest);
                table.any_read >= oldest || !table.writers.is_empty()
            });
        }
        if self.young.bytes + self.old.bytes > BYTES_MAX {
            self.fold();
        }
    }

    /// Lets the tables' sums take over from rows and keys.
    pub(super) fn fold(&mut self) {
        self.young = Generation::default();
        self.old = Generation::default();
        for table in self.tables.values_mut() {
            table.whole_writers = table.writers.clone();
            table.whole_read = table.any_read;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = CertifiedHistory::default();
    }

    /// Is nothing kept?
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.bytes() == 0
    }

    /// Bytes of rows and keys, roughly.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.young.bytes + self.old.bytes
    }
}
