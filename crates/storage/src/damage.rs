//! What a node knows of the damage on its disk, for each volume.
//!
//! Invariant: it is bounded, and an object that is removed is forgotten.

use logstead_home::ObjectId;
use std::collections::BTreeSet;

/// Damaged objects of a volume that are remembered, at most.
const REMEMBERED_MAX: usize = 1000;

/// What is known of a volume's damage.
#[derive(Default)]
pub(crate) struct VolumeDamage {
    objects: BTreeSet<ObjectId>,
}

impl VolumeDamage {
    /// Remembers an object. True if it was not known, and there was room to remember it.
    pub(crate) fn note(&mut self, object: ObjectId) -> bool {
        self.objects.len() < REMEMBERED_MAX && self.objects.insert(object)
    }

    /// It has been removed, or reads well.
    pub(crate) fn forget(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.objects.len()
    }
}
