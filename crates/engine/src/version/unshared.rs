//! Chunks that nobody else can reach yet: replay fills them, and what it replaces is overwritten or freed at once.
//!
//! Invariant: no `VersionRef` into such a chunk exists, because nothing here gives one out, and every slot holds one
//! version or none; so a version is the chunk's alone, and who has the chunk exclusively may change and free it (V1 concerns
//! what others can read).

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use logstead_types::Csn;

use super::{Chunk, Fresh, Kind, LENGTH, SlotSet, Version, free};
use crate::memory::Memory;
use crate::row_lock::RowLock;

/// A chunk being filled.
pub(crate) struct UnsharedChunk(Chunk);

impl UnsharedChunk {
    pub(crate) fn new(memory: &'static Memory) -> UnsharedChunk {
        UnsharedChunk(Chunk::new(memory))
    }

    /// The row in a slot.
    #[inline]
    pub(crate) fn row(&self, slot: usize) -> Option<&[u8]> {
        let version = NonNull::new(self.0.slots[slot].load(Ordering::Relaxed))?;
        // SAFETY: the version is this chunk's alone and was made by `Fresh::new`, with as many bytes behind its header
        // as its shape says; it is changed and freed under `&mut self` only.
        unsafe {
            let length = length(version);
            Some(std::slice::from_raw_parts(
                version.add(1).cast::<u8>().as_ptr(),
                length,
            ))
        }
    }

    /// Puts a committed row, or nothing, in the place of what is there.
    #[inline]
    pub(crate) fn replace(&mut self, slot: usize, csn: Csn, row: Option<&[u8]>) {
        let memory = self.0.memory;
        let stamp = csn.0 << 1 | 1;
        let slot = self.0.slots[slot].get_mut();
        let old = NonNull::new(*slot);
        if let (Some(mut version), Some(row)) = (old, row)
            // SAFETY: as in `row`.
            && unsafe { length(version) } == row.len()
        {
            // SAFETY: as in `row`, and we are exclusive: `row` is no part of it, or it would keep `self` borrowed.
            unsafe {
                *version.as_mut().stamp.get_mut() = stamp;
                let bytes = version.add(1).cast::<u8>().as_ptr();
                std::ptr::copy_nonoverlapping(row.as_ptr(), bytes, row.len());
            }
            return;
        }
        *slot = row.map_or(std::ptr::null_mut(), |row| {
            let kind = Kind::Row {
                keys_changed: false,
            };
            let fresh = Fresh::new(stamp, kind, RowLock::NoKeyUpdate, 0, row, memory);
            let version = fresh.version.as_ptr();
            std::mem::forget(fresh);
            version
        });
        if let Some(old) = old {
            // SAFETY: made by `Fresh::new`, unlinked just now, and nobody else could reach it.
            unsafe { free(old, memory) }
        }
    }

    /// What is put in place from here on is in no checkpoint: what was before is, in these slots.
    pub(crate) fn set_saved(&mut self, saved: &SlotSet) {
        self.0.set_saved(saved);
    }

    /// The tail of the log has changed something.
    #[inline]
    pub(crate) fn mark_changed(&mut self) {
        *self.0.changed.get_mut() = true;
    }

    /// From now on others may reach it.
    pub(crate) fn share(self) -> Chunk {
        self.0
    }
}

/// Bytes of a version's row.
///
/// # Safety
/// The version is alive, and nobody changes it meanwhile.
unsafe fn length(version: NonNull<Version>) -> usize {
    // SAFETY: as the caller promises.
    let shape = unsafe { version.as_ref() }.shape.load(Ordering::Relaxed);
    (shape & LENGTH) as usize
}
