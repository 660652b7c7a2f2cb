//! What a chunk of a replica has in common with a checkpoint that the primary has published.
//!
//! Invariant: the entries below the checkpoint's CSN are all applied
//! ([`ReplicaBase::adopt`](crate::page_store::ReplicaBase::adopt)), so the checkpoint has a row in each slot
//! that is absent, or whose newest version is a row below that CSN.
//!
//! Does not: know what was applied since.

use logstead_types::Csn;

use super::chunk::CHUNK_SLOTS;
use super::{Chunk, Guard, SlotSet, SlotsAbsent, VersionKind, WriterStatus};

impl Chunk {
    /// A checkpoint at `csn` is the newest. `is_saved`: nothing was changed here at `csn` or later, so it has just what
    /// is here; otherwise something stays that it does not have.
    pub(crate) fn adopt(&self, csn: Csn, is_saved: bool, guard: &Guard) {
        // Nothing is evicted until this has ended.
        let _was_changed = self.begin_writing(true);
        if self.is_present() {
            let mut saved = match is_saved {
                true => SlotSet::NONE,
                false => self.saved(),
            };
            for slot in 0..CHUNK_SLOTS {
                let has_row = match self.peek(slot, guard) {
                    Err(SlotsAbsent) => true,
                    Ok(None) => false,
                    Ok(Some(head)) => {
                        matches!(head.writer_status(), WriterStatus::Committed(of) if of < csn)
                            && matches!(head.kind(), VersionKind::Row { .. })
                    }
                };
                if has_row {
                    saved.insert(slot);
                }
            }
            self.learn_saved(&saved);
        }
        self.end_writing(!is_saved);
    }
}
