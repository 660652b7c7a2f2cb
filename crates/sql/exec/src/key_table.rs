//! A set of byte keys numbered in order of arrival: the hash table behind joins, grouping, DISTINCT, set operations and
//! IN.
//!
//! Keys are the memcmp-comparable forms of `value::key`, so two keys are the same bytes exactly when SQL calls the
//! values not distinct (1.0 and 1.00, -0.0 and 0.0, blank-padded text). Numbers are dense from 0: whoever uses a table
//! keeps its own data in a vector by number.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, key};
use std::hash::BuildHasher;

/// Numbers are 32 bits wide, and a key takes 16 bytes at least: whoever fills a table stops when it holds more than
/// this.
pub(crate) const KEY_BYTES_MAX: usize = u32::MAX as usize * 16;

/// See the module.
#[derive(Default)]
pub(crate) struct KeyTable {
    table: HashTable<u32>,
    /// Where each key ends in `bytes`; it starts where the one before ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    hasher: RandomState,
}

impl KeyTable {
    /// Number of `key`, adding it if need be; true if it is new.
    pub(crate) fn insert(&mut self, key: &[u8]) -> (usize, bool) {
        let hash = self.hasher.hash_one(key);
        let (ends, bytes) = (&self.ends, &self.bytes);
        if let Some(&found) = self.table.find(hash, |&i| slice(ends, bytes, i) == key) {
            return (found as usize, false);
        }
        let number = self.ends.len();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        let (ends, bytes, hasher) = (&self.ends, &self.bytes, &self.hasher);
        self.table.insert_unique(hash, number as u32, |&i| {
            hasher.hash_one(slice(ends, bytes, i))
        });
        (number, true)
    }

    /// Number of `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        self.table
            .find(hash, |&i| slice(&self.ends, &self.bytes, i) == key)
            .map(|&i| i as usize)
    }

    /// A key by its number.
    pub(crate) fn key(&self, number: usize) -> &[u8] {
        slice(&self.ends, &self.bytes, number as u32)
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.ends.clear();
        self.bytes.clear();
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * 16
    }
}

fn slice<'t>(ends: &[usize], bytes: &'t [u8], i: u32) -> &'t [u8] {
    let i = i as usize;
    let start = if i == 0 { 0 } else { ends[i - 1] };
    &bytes[start..ends[i]]
}

/// The key of a whole row, NULLs equal to each other.
pub(crate) fn row_key(types: &[TypeId], row: &[Datum], out: &mut Vec<u8>) {
    out.clear();
    for (ty, datum) in types.iter().zip(row) {
        key::encode_key(*ty, datum, false, false, out);
    }
}
