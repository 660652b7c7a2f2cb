//! Sets of a chunk's slots: as values, and as what several threads change.

use std::sync::atomic::{AtomicU64, Ordering};

use super::CHUNK_SLOTS;

/// Some of a chunk's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet(u64);

const _: () = assert!(CHUNK_SLOTS == u64::BITS as usize);

impl SlotSet {
    /// None of them.
    pub(crate) const NONE: SlotSet = SlotSet(0);
    /// All of them.
    pub(crate) const ALL: SlotSet = SlotSet(u64::MAX);

    /// Those with a bit.
    pub(crate) fn of_bits(bits: u64) -> SlotSet {
        SlotSet(bits)
    }

    /// A bit for each.
    pub(crate) fn bits(&self) -> u64 {
        self.0
    }

    /// One of them.
    pub(crate) fn one(slot: usize) -> SlotSet {
        SlotSet(1 << slot)
    }

    /// Puts a slot in.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize) {
        self.0 |= 1 << slot;
    }

    /// Takes a slot out.
    pub(crate) fn remove(&mut self, slot: usize) {
        self.0 &= !(1 << slot);
    }

    /// Is the slot in?
    #[inline]
    pub(crate) fn contains(&self, slot: usize) -> bool {
        self.0 & 1 << slot != 0
    }

    /// Is none in?
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.count_ones() as usize
    }

    /// Those of this set and of the other.
    #[must_use]
    pub(crate) fn union(&self, other: &SlotSet) -> SlotSet {
        SlotSet(self.0 | other.0)
    }

    /// Those of this set that are in the other too.
    #[must_use]
    pub(crate) fn both(&self, other: &SlotSet) -> SlotSet {
        SlotSet(self.0 & other.0)
    }

    /// Those of this set that are not in the other.
    #[must_use]
    pub(crate) fn minus(&self, other: &SlotSet) -> SlotSet {
        SlotSet(self.0 & !other.0)
    }

    /// They, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let slot = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (slot < CHUNK_SLOTS).then_some(slot)
        })
    }
}

/// A set of slots that several change.
pub(super) struct SharedSlots(AtomicU64);

impl SharedSlots {
    pub(super) fn new() -> SharedSlots {
        SharedSlots(AtomicU64::new(0))
    }

    pub(super) fn get(&self) -> SlotSet {
        SlotSet(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, to: &SlotSet) {
        self.0.store(to.0, Ordering::Relaxed);
    }

    /// Puts a slot in; writes only if it is not there.
    #[inline]
    pub(super) fn insert(&self, slot: usize) {
        let bit = 1 << slot;
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn insert_all(&self, slots: &SlotSet) {
        self.0.fetch_or(slots.0, Ordering::Relaxed);
    }

    pub(super) fn remove_all(&self, slots: &SlotSet) {
        self.0.fetch_and(!slots.0, Ordering::Relaxed);
    }

    /// Takes all of them out.
    pub(super) fn take(&self) -> SlotSet {
        match self.0.load(Ordering::Relaxed) {
            0 => SlotSet::NONE,
            _ => SlotSet(self.0.swap(0, Ordering::Relaxed)),
        }
    }
}
