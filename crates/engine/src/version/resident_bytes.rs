//! How much of a chunk is in memory, for people.
//!
//! Does not: count for the memory budget ([`crate::memory`] does, as it is taken and given back).

use std::sync::atomic::Ordering;

use super::chunk::{CHUNK_BYTES, is_absent, thawed};
use super::{Chunk, Guard, VersionRef, version_bytes};

/// Versions of a row that are looked at; what is behind is not counted.
const VERSIONS_MAX: usize = 1000;

impl Chunk {
    /// What it takes in memory, with older versions of its rows. All of it may change at once.
    pub(crate) fn resident_bytes(&self, guard: &Guard) -> usize {
        let Ok(slots) = self.slots(guard) else {
            return 0;
        };
        let mut bytes = CHUNK_BYTES;
        for at in &slots.0 {
            let at = at.load(Ordering::SeqCst);
            if is_absent(at) {
                continue;
            }
            let mut next = VersionRef::from_raw(thawed(at), guard);
            for _ in 0..VERSIONS_MAX {
                let Some(version) = next else {
                    break;
                };
                bytes += version_bytes(version.row().len());
                next = version.next(guard);
            }
        }
        bytes
    }
}
