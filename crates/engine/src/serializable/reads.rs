//! What a transaction has read.
//!
//! Kept by the transaction itself, without any lock, and only grows: rolling back to a savepoint takes nothing out
//! (T1). Each part carries the place from which on writers count as having overwritten it: the transaction's begin, or
//! a later one where it looked at newest versions.
//!
//! Its size is bounded: beyond a limit, rows of a table become the whole table, and keys of an index all its keys. That
//! only adds conflicts.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use logstead_types::{IndexId, Rid, TableId};

use super::ordinal::Ordinal;
use super::ranges::KeyRange;
use crate::partition::{VIRTUAL_PARTITIONS, part_of_range};

/// Rows of one table that are told apart: beyond this a reader is better off with the whole table, at about 40 bytes a
/// row.
const ROWS_MAX: usize = 8192;
/// Keys and ranges of one index that are told apart.
const KEYS_MAX: usize = 8192;
/// Bytes of keys of one index.
const KEY_BYTES_MAX: usize = 1 << 20;

/// Rows read of one table.
#[derive(Debug, Default)]
pub(crate) struct TableReads {
    /// All of it.
    pub(crate) whole: Option<Ordinal>,
    pub(crate) rows: HashMap<Rid, Ordinal, FixedState>,
}

/// A part of an index walked.
#[derive(Debug)]
pub(crate) struct RangeRead {
    pub(crate) range: KeyRange,
    /// In all virtual partitions of a divided index: the range's keys are without them.
    pub(crate) across: bool,
    pub(crate) from: Ordinal,
}

impl RangeRead {
    /// What it is of the index's keys: one range, or one in each virtual partition.
    pub(crate) fn parts(&self) -> Cow<'_, [KeyRange]> {
        if !self.across {
            return Cow::Borrowed(std::slice::from_ref(&self.range));
        }
        let KeyRange { start, end } = &self.range;
        let part = |partition| {
            let (start, end) = part_of_range(partition, start, end.as_deref());
            KeyRange {
                start,
                end: Some(end),
            }
        };
        (0..VIRTUAL_PARTITIONS).map(part).collect()
    }
}

/// Keys read of one index: which keys there are, not what the rows contain.
#[derive(Debug)]
pub(crate) struct IndexReads {
    pub(crate) table: TableId,
    /// Every key.
    pub(crate) whole: Option<Ordinal>,
    /// Keys looked up.
    pub(crate) points: HashMap<Box<[u8]>, Ordinal, FixedState>,
    /// Parts walked by cursors.
    pub(crate) ranges: Vec<RangeRead>,
    bytes: usize,
}

impl IndexReads {
    fn limit(&mut self) {
        if self.points.len() + self.ranges.len() > KEYS_MAX || self.bytes > KEY_BYTES_MAX {
            let points = self.points.values().copied();
            let ranges = self.ranges.iter().map(|read| read.from);
            self.whole = points.chain(ranges).min();
            self.points = HashMap::default();
            self.ranges = Vec::new();
        }
    }
}

/// Names a range that a cursor extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeId {
    index: usize,
    range: usize,
}

/// What a transaction has read.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) tables: Vec<(TableId, TableReads)>,
    pub(crate) indexes: Vec<(IndexId, IndexReads)>,
    /// Every writer whose versions were examined, though the snapshot does not see them, is at or below this.
    pub(crate) examined: Ordinal,
}

fn earlier(slot: &mut Ordinal, from: Ordinal) {
    *slot = (*slot).min(from);
}

impl ReadSet {
    fn table(&mut self, table: TableId) -> &mut TableReads {
        // Most recent last: statements stay with a table for a while.
        let at = match self.tables.iter().rposition(|(id, _)| *id == table) {
            Some(at) => at,
            None => {
                self.tables.push((table, TableReads::default()));
                self.tables.len() - 1
            }
        };
        &mut self.tables[at].1
    }

    fn index_at(&mut self, table: TableId, index: IndexId) -> usize {
        match self.indexes.iter().rposition(|(id, _)| *id == index) {
            Some(at) => at,
            None => {
                let reads = IndexReads {
                    table,
                    whole: None,
                    points: HashMap::default(),
                    ranges: Vec::new(),
                    bytes: 0,
                };
                self.indexes.push((index, reads));
                self.indexes.len() - 1
            }
        }
    }

    /// A row, in whatever state: also that it is deleted, or not there.
    #[inline]
    pub(crate) fn row(&mut self, table: TableId, rid: Rid, from: Ordinal) {
        let reads = self.table(table);
        if let Some(whole) = &mut reads.whole {
            return earlier(whole, from);
        }
        earlier(reads.rows.entry(rid).or_insert(from), from);
        if reads.rows.len() > ROWS_MAX {
            reads.whole = reads.rows.values().copied().min();
            reads.rows = HashMap::default();
        }
    }

    /// Everything in a table, and that there is no more.
    pub(crate) fn whole_table(&mut self, table: TableId, from: Ordinal) {
        let reads = self.table(table);
        let least = reads.rows.values().copied().min().unwrap_or(from);
        reads.rows = HashMap::default();
        earlier(reads.whole.get_or_insert(from), from.min(least));
    }

    /// Which rows have a key.
    #[inline]
    pub(crate) fn key(&mut self, table: TableId, index: IndexId, key: &[u8], from: Ordinal) {
        let at = self.index_at(table, index);
        let reads = &mut self.indexes[at].1;
        if let Some(whole) = &mut reads.whole {
            return earlier(whole, from);
        }
        match reads.points.get_mut(key) {
            Some(slot) => earlier(slot, from),
            None => {
                reads.bytes += key.len();
                reads.points.insert(key.into(), from);
                reads.limit();
            }
        }
    }

    /// A walk begins: `range` is extended as it goes on.
    pub(crate) fn begin_range(
        &mut self,
        table: TableId,
        index: IndexId,
        range: KeyRange,
        across: bool,
        from: Ordinal,
    ) -> RangeId {
        let at = self.index_at(table, index);
        let reads = &mut self.indexes[at].1;
        match &mut reads.whole {
            Some(whole) => earlier(whole, from),
            None => {
                reads.bytes += range.bytes();
                reads.ranges.push(RangeRead {
                    range,
                    across,
                    from,
                });
                reads.limit();
            }
        }
        RangeId {
            index: at,
            range: self.indexes[at].1.ranges.len().saturating_sub(1),
        }
    }

    /// A walk goes on. `None` if the whole index counts as read anyway.
    #[inline]
    pub(crate) fn range_mut(&mut self, id: RangeId) -> Option<&mut KeyRange> {
        let reads = &mut self.indexes.get_mut(id.index)?.1;
        if reads.whole.is_some() {
            return None;
        }
        Some(&mut reads.ranges.get_mut(id.range)?.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(20_000);
    const INDEX: IndexId = IndexId(20_001);

    #[test]
    fn many_rows_become_the_table_and_keep_the_earliest_place() {
        let mut reads = ReadSet::default();
        reads.row(TABLE, Rid(0), Ordinal(3));
        for rid in 1..=ROWS_MAX as u64 {
            reads.row(TABLE, Rid(rid), Ordinal(9));
        }
        assert_eq!(reads.tables[0].1.whole, Some(Ordinal(3)));
        assert!(reads.tables[0].1.rows.is_empty());
        reads.row(TABLE, Rid(5), Ordinal(2));
        assert_eq!(reads.tables[0].1.whole, Some(Ordinal(2)));
        let mut scan = ReadSet::default();
        scan.row(TABLE, Rid(0), Ordinal(3));
        scan.whole_table(TABLE, Ordinal(7));
        assert_eq!(scan.tables[0].1.whole, Some(Ordinal(3)));
    }

    #[test]
    fn many_or_long_keys_become_the_index() {
        let mut reads = ReadSet::default();
        for key in 0..=KEYS_MAX as u32 {
            reads.key(TABLE, INDEX, &key.to_be_bytes(), Ordinal(4));
        }
        assert_eq!(reads.indexes[0].1.whole, Some(Ordinal(4)));
        let id = reads.begin_range(TABLE, INDEX, KeyRange::all(), false, Ordinal(2));
        assert!(reads.range_mut(id).is_none());
        assert_eq!(reads.indexes[0].1.whole, Some(Ordinal(2)));
        let mut long = ReadSet::default();
        let id = long.begin_range(TABLE, INDEX, KeyRange::all(), false, Ordinal(1));
        assert!(long.range_mut(id).is_some());
        long.key(TABLE, INDEX, &vec![1; KEY_BYTES_MAX + 1], Ordinal(5));
        assert_eq!(long.indexes[0].1.whole, Some(Ordinal(1)));
        assert!(
            long.range_mut(id).is_none(),
            "the cursor finds its part taken over"
        );
    }
}
