//! Version chains.
//!
//! A slot points to the newest version of a row; versions link new to old. Slots come in chunks ([`chunk`]). Rows may
//! leave memory, alone or with their chunk, and come back ([`evict`]). A version is one allocation: a header and
//! the row's bytes. Its `stamp` is either a CSN (shifted left, lowest bit set) or the address of its writer's
//! [`TxnState`] while the writer has not stamped it.
//!
//! Invariants:
//! - V1 A version reachable from a slot is not freed while a guard is held that was pinned before it was unlinked:
//!   unlinking and retiring happen together, in this module, and retiring goes through the epoch collector.
//! - V2 Versions of writers that have neither committed nor aborted form the top of a chain and all belong to one
//!   writer, who alone installs above or pops them. (Row locks depend on it, memory safety does not.)
//! - V3 Unlinking, at the head or inside, happens under the chunk's prune lock, so that nothing is unlinked twice.
//! - V4 A `TxnState` named by a reachable version is alive: [`VersionWriter`] counts the versions that name it and
//!   gives its reference to the epoch collector only when none is left; if the count does not come out, the state is
//!   leaked.
//! - V5 `command`, `shape` and the row's bytes never change after installation, except that KEYS_CHANGED may be set
//!   later, under the chunk's prune lock.
//! - V6 A version, and a chunk's slots, count in the chunk's memory account from their allocation until they are freed,
//!   unlinked or not.
//! - V7 A chunk's slots are reached through its shell alone. They are not freed, nor are the versions in them, while a
//!   guard is held that was pinned before the shell's pointer to them was swapped out: whoever swaps it retires them
//!   together, once, through the epoch collector.
//! - V8 The lowest bit of a slot says that it is frozen; no version's address has it. Who evicts sets it, holding the
//!   right to unlink and EVICTING, and takes it away again, puts ABSENT there, or swaps the slots out for good.
//!   Everybody else changes a slot by compare and swap from a value without the bit, so nobody changes a frozen slot,
//!   and readers look through the bit.
//! - V9 A slot that is ABSENT names no version: the newest checkpoint has the row, which has not changed since
//!   (`saved`). Who evicts makes it so, in place of a frozen one; by compare and swap, whoever brings rows puts a
//!   version there, one at a time and none that is stale ([`chunk`]). Nobody else changes it: no version's address has
//!   that bit, and nobody installs above what he has not found. A chunk of which only the log has something has no
//!   slots at all ([`evict_to_log`]).
//!
//! The interface is safe: whatever is called in whatever order, memory stays valid. That the right version is seen is
//! the business of `txn` and `garbage`.

use std::alloc::Layout;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use logstead_types::Csn;

use crate::memory::{Memory, footprint};
use crate::row_lock::RowLock;
use crate::tree::interleave::point;
use crate::txn_state::TxnState;

const TOMBSTONE: u32 = 1 << 31;
const LOCK_ONLY: u32 = 1 << 30;
const KEYS_CHANGED: u32 = 1 << 29;
const KEYS_LOCKED: u32 = 1 << 28;
const LENGTH: u32 = KEYS_LOCKED - 1;

/// Keeps every version read under it from being freed. Short-lived: never kept across an await.
pub struct Guard(crossbeam_epoch::Guard);

impl Guard {
    /// Pins this thread. (A type of ours, so that a guard of another collector cannot be passed for one of this.)
    #[inline]
    pub fn pin() -> Guard {
        Guard(crossbeam_epoch::pin())
    }

    /// Hands what this thread has retired to the collector and lets it free what nobody can read any more.
    pub(crate) fn flush(&self) {
        self.0.flush();
    }

    /// Has `what` done when all that this thread has retired before is free.
    ///
    /// The collector's bags are taken in their order, but by any thread, and one that has taken a bag may be in the
    /// middle of it while another takes the next. It is pinned meanwhile: what is deferred once more, after the bags
    /// before have been taken, is not done before it is through.
    pub(crate) fn defer(&self, what: impl FnOnce() + Send + 'static) {
        self.0.defer(move || {
            let again = crossbeam_epoch::pin();
            again.defer(what);
            // This thread may have nothing more to do with the collector.
            again.flush();
        });
    }

    /// Waits until all that this thread has retired is free. Whoever holds a guard meanwhile, a test beside this one
    /// perhaps, is waited for.
    #[cfg(test)]
    pub(crate) fn wait_for_retired() {
        let (tell, told) = std::sync::mpsc::channel();
        Guard::pin().defer(move || {
            let _heard = tell.send(());
        });
        while told.try_recv().is_err() {
            Guard::pin().flush();
            std::thread::yield_now();
        }
    }

    /// Lets the collector advance past a guard that is held long, if no row is borrowed from it.
    pub fn refresh(&mut self) {
        self.0.repin();
    }
}

#[repr(C)]
struct Version {
    stamp: AtomicU64,
    next: AtomicPtr<Version>,
    command: u32,
    /// Flags and the length of the row that follows the header.
    shape: AtomicU32,
}

/// What a version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionKind {
    /// A row. `keys_changed`: in some index its key differs from its predecessor's.
    Row { keys_changed: bool },
    /// The row is deleted.
    Tombstone,
    /// Only a row lock: readers look through it.
    LockOnly,
}

/// Who wrote a version.
#[derive(Clone, Copy)]
pub(crate) enum WriterStatus<'g> {
    /// A transaction that committed (or is Precommitted) with this CSN.
    Committed(Csn),
    /// The transaction with this state has not stamped it yet; it may have committed meanwhile.
    InProgress(&'g TxnState),
}

fn layout(length: usize) -> Layout {
    // Lengths are below 2^28, so this cannot overflow.
    match Layout::from_size_align(size_of::<Version>() + length, align_of::<Version>()) {
        Ok(layout) => layout,
        Err(_) => unreachable!("row lengths are bounded by LENGTH"),
    }
}

/// What a version with a row of `length` bytes takes.
#[inline]
pub(crate) const fn version_bytes(length: usize) -> usize {
    footprint(size_of::<Version>() + length)
}

/// An allocated version nobody else can see.
struct UnpublishedVersion {
    version: NonNull<Version>,
    memory: &'static Memory,
}

impl UnpublishedVersion {
    fn new(
        stamp: u64,
        kind: VersionKind,
        lock: RowLock,
        command: u32,
        row: &[u8],
        memory: &'static Memory,
    ) -> UnpublishedVersion {
        assert!(
            row.len() <= LENGTH as usize,
            "rows are limited to ROW_BYTES_MAX"
        );
        let flags = match kind {
            VersionKind::Row {
                keys_changed: false,
            } => 0,
            VersionKind::Row { keys_changed: true } => KEYS_CHANGED,
            VersionKind::Tombstone => TOMBSTONE,
            VersionKind::LockOnly => LOCK_ONLY,
        };
        let flags = match lock {
            RowLock::Update => flags | KEYS_LOCKED,
            _ => flags,
        };
        let layout = layout(row.len());
        memory.add(version_bytes(row.len()) as i64);
        // SAFETY: the layout has a non-zero size (the header).
        let raw = unsafe { std::alloc::alloc(layout) };
        let Some(version) = NonNull::new(raw.cast::<Version>()) else {
            std::alloc::handle_alloc_error(layout);
        };
        // SAFETY: freshly allocated with room and alignment for the header and `row.len()` bytes behind it.
        unsafe {
            version.write(Version {
                stamp: AtomicU64::new(stamp),
                next: AtomicPtr::new(std::ptr::null_mut()),
                command,
                shape: AtomicU32::new(flags | row.len() as u32),
            });
            std::ptr::copy_nonoverlapping(
                row.as_ptr(),
                version.add(1).cast::<u8>().as_ptr(),
                row.len(),
            );
        }
        UnpublishedVersion { version, memory }
    }
}

impl Drop for UnpublishedVersion {
    fn drop(&mut self) {
        // SAFETY: never published, so owned by us alone; allocated by `UnpublishedVersion::new`.
        unsafe { free(self.version, self.memory) }
    }
}

/// Frees a version.
///
/// # Safety
/// `version` came from [`UnpublishedVersion::new`], is freed once, and nobody can reach it.
unsafe fn free(version: NonNull<Version>, memory: &Memory) {
    // SAFETY: the caller owns it.
    let length = unsafe {
        let length = (version.as_ref().shape.load(Ordering::Relaxed) & LENGTH) as usize;
        std::alloc::dealloc(version.as_ptr().cast::<u8>(), layout(length));
        length
    };
    memory.add(-(version_bytes(length) as i64));
}

/// A version, valid as long as the guard it was read under.
#[derive(Clone, Copy)]
pub(crate) struct VersionRef<'g> {
    at: NonNull<Version>,
    guard: PhantomData<&'g Guard>,
}

impl PartialEq for VersionRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<'g> VersionRef<'g> {
    fn from_raw(at: *mut Version, _guard: &'g Guard) -> Option<VersionRef<'g>> {
        Some(VersionRef {
            at: NonNull::new(at)?,
            guard: PhantomData,
        })
    }

    #[inline]
    fn header(self) -> &'g Version {
        // SAFETY: V1: read from a chain under a guard that lives for 'g.
        unsafe { self.at.as_ref() }
    }

    /// The next older version.
    #[inline]
    pub(crate) fn next(self, guard: &'g Guard) -> Option<VersionRef<'g>> {
        point();
        VersionRef::from_raw(self.header().next.load(Ordering::Acquire), guard)
    }

    /// Who wrote it.
    #[inline]
    pub(crate) fn writer_status(self) -> WriterStatus<'g> {
        point();
        let stamp = self.header().stamp.load(Ordering::Acquire);
        if stamp & 1 == 1 {
            return WriterStatus::Committed(Csn(stamp >> 1));
        }
        // SAFETY: V4: an even stamp is the address of a live TxnState, and the guard keeps it from being freed for 'g.
        WriterStatus::InProgress(unsafe {
            &*std::ptr::with_exposed_provenance::<TxnState>(stamp as usize)
        })
    }

    /// The writer's state as an owner, if the version is not stamped.
    pub(crate) fn writer(self) -> Option<Arc<TxnState>> {
        match self.writer_status() {
            WriterStatus::Committed(_) => None,
            WriterStatus::InProgress(state) => {
                let state: *const TxnState = state;
                let raw = std::ptr::with_exposed_provenance::<TxnState>(state.addr());
                // SAFETY: V4: the address came from `Arc::as_ptr` and the writer's reference is still counted.
                unsafe {
                    Arc::increment_strong_count(raw);
                    Some(Arc::from_raw(raw))
                }
            }
        }
    }

    /// Was it written by `writer`, and not stamped yet?
    #[inline]
    pub(crate) fn is_of(self, writer: &VersionWriter) -> bool {
        self.header().stamp.load(Ordering::Acquire) == writer.address()
    }

    /// The command that wrote it.
    #[inline]
    pub(crate) fn command(self) -> u32 {
        self.header().command
    }

    /// What it is.
    #[inline]
    pub(crate) fn kind(self) -> VersionKind {
        let shape = self.header().shape.load(Ordering::Relaxed);
        if shape & (TOMBSTONE | LOCK_ONLY) == 0 {
            VersionKind::Row {
                keys_changed: shape & KEYS_CHANGED != 0,
            }
        } else if shape & TOMBSTONE != 0 {
            VersionKind::Tombstone
        } else {
            VersionKind::LockOnly
        }
    }

    /// How its writer has locked the row, at most, by this version and its own ones below.
    #[inline]
    pub(crate) fn lock(self) -> RowLock {
        if self.header().shape.load(Ordering::Relaxed) & KEYS_LOCKED != 0 {
            RowLock::Update
        } else {
            RowLock::NoKeyUpdate
        }
    }

    /// The row's bytes.
    #[inline]
    pub(crate) fn row(self) -> &'g [u8] {
        let length = (self.header().shape.load(Ordering::Relaxed) & LENGTH) as usize;
        // SAFETY: V1, V5: `length` bytes follow the header in the same allocation, written before it was published.
        unsafe { std::slice::from_raw_parts(self.at.add(1).cast::<u8>().as_ptr(), length) }
    }
}

/// A transaction's right to install versions, and the keeper of its state (V4).
pub(crate) struct VersionWriter {
    state: Arc<TxnState>,
    /// Reachable versions that name the state.
    named: Cell<usize>,
}

impl VersionWriter {
    pub(crate) fn new(state: TxnState) -> VersionWriter {
        let writer = VersionWriter {
            state: Arc::new(state),
            named: Cell::new(0),
        };
        Arc::as_ptr(&writer.state).expose_provenance();
        writer
    }

    #[inline]
    fn address(&self) -> u64 {
        Arc::as_ptr(&self.state).addr() as u64
    }

    #[inline]
    pub(crate) fn state(&self) -> &Arc<TxnState> {
        &self.state
    }
}

impl Drop for VersionWriter {
    fn drop(&mut self) {
        let state = self.state.clone();
        if self.named.get() > 0 {
            // Some version that names the state was unlinked by somebody else before we stamped it, or never stamped.
            std::mem::forget(state);
            return;
        }
        // Dropping an Arc is fine on any thread: the state is Send and Sync. Readers that still look at it are pinned.
        crossbeam_epoch::pin().defer(move || drop(state));
    }
}

mod adopt;
mod chunk;
mod drop_memory;
mod evict;
mod evict_to_log;
mod page_mark;
mod prune;
mod resident_bytes;
mod slot_set;
mod unshared;

pub(crate) use chunk::{
    Absence, CHUNK_BYTES, CHUNK_SLOTS, Chunk, ResidentSlots, SHELL_BYTES, SlotsAbsent,
};
pub(crate) use drop_memory::KeptChunk;
pub(crate) use evict::RetainReason;
pub(crate) use evict_to_log::{LeftChunk, LogEvictionBounds, VersionDigest};
pub(crate) use prune::PruneLock;
pub(crate) use slot_set::SlotSet;
pub(crate) use unshared::UnsharedSlots;

#[cfg(test)]
mod tests;
