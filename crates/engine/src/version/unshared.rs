//! Slots that nobody else can reach yet: replay and whoever brings chunks back fill them, and what is replaced is
//! overwritten or freed at once.
//!
//! Invariant: no `VersionRef` into such slots exists, because nothing here gives one out, and every slot holds one
//! version or none, not frozen; so a version is theirs alone, and who has the slots exclusively may change and free it
//! (V1 concerns what others can read).

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use logstead_types::Csn;

use super::chunk::Slots;
use super::{LENGTH, SlotSet, UnpublishedVersion, Version, VersionKind, free};
use crate::memory::Memory;
use crate::row_lock::RowLock;

/// Slots being filled.
pub(crate) struct UnsharedSlots {
    /// Always there, but for the moment in which it is dropped or given away.
    slots: Option<Box<Slots>>,
    /// What the versions take.
    bytes: usize,
    memory: &'static Memory,
}

impl UnsharedSlots {
    pub(crate) fn new(memory: &'static Memory) -> UnsharedSlots {
        UnsharedSlots::from_slots(Slots::new(memory), memory)
    }

    /// Slots that nobody has seen, counted in `memory`.
    fn from_slots(slots: Box<Slots>, memory: &'static Memory) -> UnsharedSlots {
        UnsharedSlots {
            slots: Some(slots),
            bytes: 0,
            memory,
        }
    }

    /// From now on others may reach them.
    pub(super) fn into_slots(mut self) -> Box<Slots> {
        match self.slots.take() {
            Some(slots) => slots,
            None => Slots::new(self.memory),
        }
    }

    /// Takes the version out of a slot.
    pub(super) fn take(&mut self, slot: usize) -> Option<UnpublishedVersion> {
        let slots = self.slots.as_mut()?;
        let taken = std::mem::replace(slots.0[slot].get_mut(), std::ptr::null_mut());
        Some(UnpublishedVersion {
            version: NonNull::new(taken)?,
            memory: self.memory,
        })
    }

    /// What was put in takes so much, if nothing was replaced.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The slots with a row.
    pub(crate) fn filled(&self) -> SlotSet {
        let mut filled = SlotSet::default();
        let slots = self.slots.iter().flat_map(|slots| slots.0.iter());
        for (slot, head) in slots.enumerate() {
            if !head.load(Ordering::Relaxed).is_null() {
                filled.insert(slot);
            }
        }
        filled
    }

    /// The row in a slot.
    #[inline]
    pub(crate) fn row(&self, slot: usize) -> Option<&[u8]> {
        let slots = self.slots.as_ref()?;
        let version = NonNull::new(slots.0[slot].load(Ordering::Relaxed))?;
        // SAFETY: the version is ours alone and was made by `UnpublishedVersion::new`, with as many bytes behind its
        // header as its shape says; it is changed and freed under `&mut self` only.
        unsafe {
            let length = length(version);
            Some(std::slice::from_raw_parts(
                version.add(1).cast::<u8>().as_ptr(),
                length,
            ))
        }
    }

    /// The row in a slot, and who wrote it.
    pub(crate) fn committed(&self, slot: usize) -> Option<(Csn, &[u8])> {
        let slots = self.slots.as_ref()?;
        let version = NonNull::new(slots.0[slot].load(Ordering::Relaxed))?;
        // SAFETY: as in `row`.
        let stamp = unsafe { version.as_ref() }.stamp.load(Ordering::Relaxed);
        Some((Csn(stamp >> 1), self.row(slot)?))
    }

    /// Puts a committed row, or nothing, in the place of what is there.
    #[inline]
    pub(crate) fn replace(&mut self, slot: usize, csn: Csn, row: Option<&[u8]>) {
        let memory = self.memory;
        let stamp = csn.0 << 1 | 1;
        let Some(slots) = &mut self.slots else {
            return;
        };
        let slot = slots.0[slot].get_mut();
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
        self.bytes += row.map_or(0, |row| super::version_bytes(row.len()));
        *slot = row.map_or(std::ptr::null_mut(), |row| {
            let kind = VersionKind::Row {
                keys_changed: false,
            };
            let fresh = UnpublishedVersion::new(stamp, kind, RowLock::NoKeyUpdate, 0, row, memory);
            let version = fresh.version.as_ptr();
            std::mem::forget(fresh);
            version
        });
        if let Some(old) = old {
            // SAFETY: made by `UnpublishedVersion::new`, unlinked just now, and nobody else could reach it.
            unsafe { free(old, memory) }
        }
    }
}

impl Drop for UnsharedSlots {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            // SAFETY: the invariant: they, and the versions in them, are ours alone.
            unsafe { Slots::free(slots, self.memory) }
        }
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
