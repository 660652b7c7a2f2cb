//! Unlinking versions: undo, garbage collection, burial.
//!
//! Who holds the right to unlink ([`PruneLock`]) is alone with it in its chunk (V3): nobody evicts the chunk meanwhile
//! (V8), so what was found there stays there, and no slot is frozen.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::{
    Chunk, Guard, KEYS_CHANGED, Version, VersionKind, VersionRef, VersionWriter, WriterStatus, free,
};
use crate::tree::interleave::point;

/// The right to unlink versions of a chunk (V3).
pub(crate) struct PruneLock<'c> {
    chunk: &'c Chunk,
}

impl<'c> PruneLock<'c> {
    pub(super) fn new(chunk: &'c Chunk) -> PruneLock<'c> {
        PruneLock { chunk }
    }
}

impl PruneLock<'_> {
    /// Retires an unlinked version.
    fn retire(&self, version: VersionRef<'_>, guard: &Guard) {
        /// Carries the address to whatever thread frees it.
        struct Unlinked(NonNull<Version>);
        // SAFETY: after unlinking nobody but the collector uses it, and a version is plain memory.
        unsafe impl Send for Unlinked {}
        let unlinked = Unlinked(version.at);
        let memory = self.chunk.memory;
        // SAFETY: V1, V3: it was unlinked by us, once, under the prune lock; guards pinned before keep it alive, and
        // nobody pinned later can reach it.
        unsafe {
            guard.0.defer_unchecked(move || {
                let unlinked = unlinked;
                free(unlinked.0, memory);
            });
        }
    }

    /// Notes that in some index the version's key differs from its predecessor's: under the lock that collectors hold
    /// while they look at that and unlink.
    pub(crate) fn mark_keys_changed(&self, version: VersionRef<'_>) {
        version
            .header()
            .shape
            .fetch_or(KEYS_CHANGED, Ordering::Relaxed);
    }

    /// Unlinks the newest version if it is a version of `writer`, not stamped: undo. Gives the version, which stays
    /// readable under the guard.
    pub(crate) fn pop<'g>(
        &mut self,
        slot: usize,
        writer: &VersionWriter,
        guard: &'g Guard,
    ) -> Option<VersionRef<'g>> {
        // A version in flight keeps the chunk in memory: in one that is absent there is none of `writer`.
        let slots = self.chunk.slots(guard).ok()?;
        let head = self.chunk.peek(slot, guard).ok()??;
        if !head.is_of(writer) {
            return None;
        }
        let next = head.header().next.load(Ordering::Acquire);
        point();
        slots.0[slot]
            .compare_exchange(head.at.as_ptr(), next, Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        writer.named.set(writer.named.get().saturating_sub(1));
        self.retire(head, guard);
        Some(head)
    }

    /// Walks the chain from the newest version on and unlinks what `drop_it` says. It is told whether a version may go
    /// at all: the newest one, and versions whose writer is not known to have committed, are kept whatever it says.
    pub(crate) fn sweep<'g>(
        &mut self,
        slot: usize,
        guard: &'g Guard,
        mut drop_it: impl FnMut(VersionRef<'g>, bool) -> bool,
    ) {
        let Ok(Some(mut kept)) = self.chunk.peek(slot, guard) else {
            return;
        };
        drop_it(kept, false);
        while let Some(version) = kept.next(guard) {
            let finished = match version.writer_status() {
                WriterStatus::Committed(_) => true,
                WriterStatus::InProgress(state) => state.committed().is_some(),
            };
            if drop_it(version, finished) && finished {
                if version.kind() == (VersionKind::Row { keys_changed: true }) {
                    // Older versions may be kept for a snapshot: they differ from the one above them now.
                    self.mark_keys_changed(kept);
                }
                let next = version.header().next.load(Ordering::Acquire);
                point();
                kept.header().next.store(next, Ordering::Release);
                self.retire(version, guard);
            } else {
                kept = version;
            }
        }
    }

    /// Empties the slot if its newest version is still `head`, retiring the whole chain. Gives false if it is not, or
    /// if the newest version is not stamped.
    pub(crate) fn take_all(&mut self, slot: usize, head: VersionRef<'_>, guard: &Guard) -> bool {
        if matches!(head.writer_status(), WriterStatus::InProgress(_)) {
            return false;
        }
        let Ok(slots) = self.chunk.slots(guard) else {
            return false;
        };
        let null = std::ptr::null_mut();
        point();
        let taken = slots.0[slot].compare_exchange(
            head.at.as_ptr(),
            null,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if taken.is_err() {
            return false;
        }
        self.retire_chain(head, guard);
        true
    }

    fn retire_chain(&mut self, head: VersionRef<'_>, guard: &Guard) {
        let mut at = Some(head.at);
        while let Some(version) = at {
            // SAFETY: V1: still protected by `guard`, retired below only after its link was read.
            at = NonNull::new(unsafe { version.as_ref() }.next.load(Ordering::Acquire));
            self.retire(
                VersionRef {
                    at: version,
                    guard: PhantomData,
                },
                guard,
            );
        }
    }
}

impl Drop for PruneLock<'_> {
    fn drop(&mut self) {
        self.chunk.pruning.store(false, Ordering::Release);
    }
}
