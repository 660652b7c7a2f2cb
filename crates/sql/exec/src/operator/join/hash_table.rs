//! The right side of a hash join, or a part of it: rows in chains by their keys.

use crate::batch::RowBuffer;
use crate::key_table::KeyTable;
use logstead_sql_types::value::Datum;

/// No row: ends a chain.
pub(super) const NONE: u32 = u32::MAX;

/// The right rows that are in memory.
#[derive(Default)]
pub(super) struct JoinHashTable {
    pub(super) keys: KeyTable,
    pub(super) rows: RowBuffer,
    /// First and last row of each key's chain; the next row of each row.
    pub(super) chains: Vec<(u32, u32)>,
    pub(super) next: Vec<u32>,
    /// Rows without a key.
    pub(super) null_keyed: Vec<u32>,
    /// Rows that have found a match.
    pub(super) matched: Vec<bool>,
}

impl JoinHashTable {
    /// Adds a row, whose values it takes out; of those with one key the first to arrive comes first.
    pub(super) fn push(&mut self, key: Option<&[u8]>, row: &mut [Datum]) {
        let number = self.rows.len() as u32;
        self.rows.push_taken(row);
        self.next.push(NONE);
        let Some(key) = key else {
            self.null_keyed.push(number);
            return;
        };
        let (key, new) = self.keys.insert(key);
        if new {
            self.chains.push((number, number));
        } else {
            let last = &mut self.chains[key].1;
            self.next[*last as usize] = number;
            *last = number;
        }
    }

    /// The first row with a key, or `NONE`.
    pub(super) fn first(&self, key: &[u8]) -> u32 {
        self.keys
            .find(key)
            .map_or(NONE, |number| self.chains[number].0)
    }

    /// Memory held, roughly.
    pub(super) fn size_bytes(&self) -> usize {
        let links = self.next.len() * 4 + self.chains.len() * 8 + self.null_keyed.len() * 4;
        self.rows.size_bytes() + self.keys.size_bytes() + links + self.matched.len()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.rows = RowBuffer::default();
        self.chains.clear();
        self.next.clear();
        self.null_keyed.clear();
        self.matched.clear();
    }
}
