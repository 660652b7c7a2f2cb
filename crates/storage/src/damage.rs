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
    /// How many have been found since the start.
    found: u64,
}

impl VolumeDamage {
    /// True if nobody knew of it.
    pub(crate) fn note(&mut self, object: ObjectId) -> bool {
        let is_new = self.objects.len() < REMEMBERED_MAX && self.objects.insert(object);
        self.found += u64::from(is_new);
        is_new
    }

    /// It has been removed, or stored anew.
    pub(crate) fn forget(&mut self, object: ObjectId) {
        self.objects.remove(&object);
    }

    /// What the node reports; another text each time that something new is found.
    pub(crate) fn report(&self) -> Option<String> {
        let (count, found) = (self.objects.len(), self.found);
        (count > 0).then(|| format!("{count} ({found} found so far)"))
    }
}
