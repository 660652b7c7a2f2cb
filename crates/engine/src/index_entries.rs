//! The entries that the versions of a row need in the indexes of its table.
//!
//! Invariant: an entry is taken out only when no version of the chain has its key, looked at under the leaf's lock
//! (T11).
//!
//! Does not: insert entries or check that keys are unique (`txn::write`).

use crate::index::Index;
use crate::rows::TableRows;
use crate::table::Table;
use crate::version::{Guard, VersionKind, VersionRef};
use logstead_types::{InstanceId, Rid};

/// Buffers for keys, used within one operation.
#[derive(Default)]
pub(crate) struct KeyBuffers {
    pub(crate) old_key: Vec<u8>,
    pub(crate) new_key: Vec<u8>,
    pub(crate) other_key: Vec<u8>,
    pub(crate) delta: Vec<u8>,
}

/// Does any version in the row's chain have the key? If the row is not in memory, it may: its entry stays.
pub(crate) fn chain_has_key(
    rows: &TableRows,
    rid: Rid,
    index: &Index,
    key: &[u8],
    buffer: &mut Vec<u8>,
    guard: &Guard,
) -> bool {
    let Ok(mut at) = rows.peek(rid, guard) else {
        return true;
    };
    while let Some(version) = at {
        at = version.next(guard);
        if !matches!(version.kind(), VersionKind::Row { .. }) {
            continue;
        }
        buffer.clear();
        if index.key(version.row(), buffer).has_entry() && buffer == key {
            return true;
        }
    }
    false
}

/// Takes out the index entries that only `gone`, a version already unlinked, needed, for a worker of `instance`.
/// `touch` is called with each of their keys.
pub(crate) fn drop_entries(
    instance: InstanceId,
    table: &Table,
    rid: Rid,
    gone: VersionRef<'_>,
    scratch: &mut KeyBuffers,
    guard: &Guard,
    touch: impl Fn(&Index, &[u8]),
) {
    if !matches!(gone.kind(), VersionKind::Row { .. }) {
        return;
    }
    table.with_indexes(instance, |indexes| {
        for index in indexes {
            scratch.old_key.clear();
            if !index.key(gone.row(), &mut scratch.old_key).has_entry() {
                continue;
            }
            touch(index, &scratch.old_key);
            let length = scratch.old_key.len();
            Index::complete(&mut scratch.old_key, rid);
            let (entry, buffer) = (&scratch.old_key, &mut scratch.other_key);
            index.remove_if(entry, || {
                !chain_has_key(&table.rows, rid, index, &entry[..length], buffer, guard)
            });
        }
    });
}
