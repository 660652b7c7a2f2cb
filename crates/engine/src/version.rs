//! Version chains.
//!
//! A slot points to the newest version of a row; versions link new to old. A version is one allocation: a header and
//! the row's bytes. Its `stamp` is either a CSN (shifted left, lowest bit set) or the address of its writer's
//! [`TxnState`] while the writer has not stamped it.
//!
//! Invariants:
//! - V1 A version reachable from a slot is not freed while a guard is held that was pinned before it was unlinked:
//!   unlinking and retiring happen together, in this module, and retiring goes through the epoch collector.
//! - V2 Versions of writers that have neither committed nor aborted form the top of a chain and all belong to one
//!   writer, who alone installs above or pops them. (Row locks depend on it, memory safety does not.)
//! - V3 Unlinking, at the head or inside, happens under the chunk's prune lock, so that nothing is unlinked twice.
//! - V4 A `TxnState` named by a reachable version is alive: [`Writer`] counts the versions that name it and gives its
//!   reference to the epoch collector only when none is left; if the count does not come out, the state is leaked.
//! - V5 `command`, `shape` and the row's bytes never change after installation, except that KEYS_CHANGED may be set
//!   later, under the chunk's prune lock.
//! - V6 A version counts in its chunk's memory account from its allocation until it is freed, unlinked or not.
//!
//! The interface is safe: whatever is called in whatever order, memory stays valid. That the right version is seen is
//! the business of `txn` and `garbage`.

use std::alloc::Layout;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use logstead_types::Csn;

use crate::memory::{Memory, footprint};
use crate::row_lock::RowLock;
use crate::state::TxnState;
use crate::tree::interleave::point;

/// Slots of a chunk: the unit of checkpointing and eviction.
pub(crate) const CHUNK_SLOTS: usize = 1024;
/// What a chunk takes without its versions.
pub(crate) const CHUNK_BYTES: usize =
    footprint(CHUNK_SLOTS * size_of::<AtomicPtr<Version>>()) + footprint(size_of::<Chunk>());
/// What a row with shared locks takes in the lock table, which is half full on average.
const SHARED_ROW_BYTES: usize = 40;

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
pub(crate) enum Kind {
    /// A row. `keys_changed`: in some index its key differs from its predecessor's.
    Row { keys_changed: bool },
    /// The row is deleted.
    Tombstone,
    /// Only a row lock: readers look through it.
    LockOnly,
}

/// Who wrote a version.
#[derive(Clone, Copy)]
pub(crate) enum Stamp<'g> {
    /// A transaction that committed (or is Precommitted) with this CSN.
    Committed(Csn),
    /// The transaction with this state has not stamped it yet; it may have committed meanwhile.
    Writer(&'g TxnState),
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
struct Fresh {
    version: NonNull<Version>,
    memory: &'static Memory,
}

impl Fresh {
    fn new(
        stamp: u64,
        kind: Kind,
        lock: RowLock,
        command: u32,
        row: &[u8],
        memory: &'static Memory,
    ) -> Fresh {
        assert!(
            row.len() <= LENGTH as usize,
            "rows are limited to ROW_BYTES_MAX"
        );
        let flags = match kind {
            Kind::Row {
                keys_changed: false,
            } => 0,
            Kind::Row { keys_changed: true } => KEYS_CHANGED,
            Kind::Tombstone => TOMBSTONE,
            Kind::LockOnly => LOCK_ONLY,
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
        Fresh { version, memory }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: never published, so owned by us alone; allocated by `Fresh::new`.
        unsafe { free(self.version, self.memory) }
    }
}

/// Frees a version.
///
/// # Safety
/// `version` came from [`Fresh::new`], is freed once, and nobody can reach it.
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
    pub(crate) fn stamp(self) -> Stamp<'g> {
        point();
        let stamp = self.header().stamp.load(Ordering::Acquire);
        if stamp & 1 == 1 {
            return Stamp::Committed(Csn(stamp >> 1));
        }
        // SAFETY: V4: an even stamp is the address of a live TxnState, and the guard keeps it from being freed for 'g.
        Stamp::Writer(unsafe { &*std::ptr::with_exposed_provenance::<TxnState>(stamp as usize) })
    }

    /// The writer's state as an owner, if the version is not stamped.
    pub(crate) fn writer(self) -> Option<Arc<TxnState>> {
        match self.stamp() {
            Stamp::Committed(_) => None,
            Stamp::Writer(state) => {
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
    pub(crate) fn is_of(self, writer: &Writer) -> bool {
        self.header().stamp.load(Ordering::Acquire) == writer.address()
    }

    /// The command that wrote it.
    #[inline]
    pub(crate) fn command(self) -> u32 {
        self.header().command
    }

    /// What it is.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        let shape = self.header().shape.load(Ordering::Relaxed);
        if shape & (TOMBSTONE | LOCK_ONLY) == 0 {
            Kind::Row {
                keys_changed: shape & KEYS_CHANGED != 0,
            }
        } else if shape & TOMBSTONE != 0 {
            Kind::Tombstone
        } else {
            Kind::LockOnly
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
pub(crate) struct Writer {
    state: Arc<TxnState>,
    /// Reachable versions that name the state.
    named: Cell<usize>,
}

impl Writer {
    pub(crate) fn new(state: TxnState) -> Writer {
        let writer = Writer {
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

impl Drop for Writer {
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

/// Some of a chunk's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; CHUNK_SLOTS / 64]);

impl SlotSet {
    /// Puts a slot in.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    /// Is the slot in?
    #[inline]
    pub(crate) fn contains(&self, slot: usize) -> bool {
        self.0[slot / 64] & 1 << (slot % 64) != 0
    }

    /// Is none in?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// 1,024 row slots.
pub(crate) struct Chunk {
    slots: Box<[AtomicPtr<Version>]>,
    /// Held by whoever unlinks (V3).
    pruning: AtomicBool,
    /// Where its slots and versions are counted (V6).
    memory: &'static Memory,
    /// Rows with shared locks; see [`crate::row_lock::meeting`].
    shared: AtomicU32,
    /// Who wrote here, in mode `gsn`; see [`PageMark`].
    page: AtomicU64,
    /// Something was changed that the last checkpoint which looked here does not have; see [`crate::checkpoint::walk`].
    changed: AtomicBool,
    /// Slots with a row in the newest checkpoint, a bit each. Written by whoever takes checkpoints, and before sharing.
    saved: [AtomicU64; CHUNK_SLOTS / 64],
}

/// Who wrote in a chunk, for page-level tracking: the newest GSN, and which lane all unhardened writers are of.
///
/// Both in one word, so that two writers who stamp at a time never leave a lane that is not the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageMark(u64);

/// Bits of a lane in a mark.
const LANE_BITS: u32 = 16;
/// Nobody has written, or more than one lane has.
const NO_LANE: u64 = (1 << LANE_BITS) - 1;

impl PageMark {
    pub(crate) fn gsn(self) -> u64 {
        self.0 >> LANE_BITS
    }

    /// Are all its writers hardened, or of this lane, which hardens in order?
    pub(crate) fn is_local(self, lane: usize, hardened_gsn: u64) -> bool {
        self.0 & NO_LANE == lane as u64 || self.gsn() <= hardened_gsn
    }

    /// After an entry of `lane` with `gsn` has changed something here.
    fn stamped(self, lane: usize, gsn: u64, hardened_gsn: u64) -> PageMark {
        let lane = if self.is_local(lane, hardened_gsn) {
            lane as u64
        } else {
            NO_LANE
        };
        PageMark(self.gsn().max(gsn) << LANE_BITS | lane)
    }
}

impl Chunk {
    pub(crate) fn new(memory: &'static Memory) -> Chunk {
        memory.add(CHUNK_BYTES as i64);
        Chunk {
            memory,
            slots: (0..CHUNK_SLOTS).map(|_| AtomicPtr::default()).collect(),
            pruning: AtomicBool::new(false),
            shared: AtomicU32::new(0),
            page: AtomicU64::new(NO_LANE),
            changed: AtomicBool::new(false),
            saved: [const { AtomicU64::new(0) }; CHUNK_SLOTS / 64],
        }
    }

    /// A change is in a chain, where a checkpoint that clears the mark after this sees it: called after the installation.
    #[inline]
    fn mark_changed(&self) {
        point();
        // Usually it is set, and reading it shares the line that installing has brought here anyway.
        if !self.changed.load(Ordering::SeqCst) {
            point();
            self.changed.store(true, Ordering::SeqCst);
        }
    }

    /// A checkpoint has met something here that it does not hold, or comes to nothing: the next one looks again.
    pub(crate) fn mark_changed_again(&self) {
        self.changed.store(true, Ordering::SeqCst);
    }

    /// Is there something to look at for a checkpoint? Clears the mark: called before looking.
    pub(crate) fn take_changed(&self) -> bool {
        point();
        let changed = self.changed.swap(false, Ordering::SeqCst);
        point();
        changed
    }

    /// The slots that have a row in the newest checkpoint.
    pub(crate) fn saved(&self) -> SlotSet {
        let mut set = SlotSet::default();
        for (word, saved) in set.0.iter_mut().zip(&self.saved) {
            *word = saved.load(Ordering::Relaxed);
        }
        set
    }

    /// A checkpoint that has a row for these slots is the newest now.
    pub(crate) fn set_saved(&self, set: &SlotSet) {
        for (saved, word) in self.saved.iter().zip(set.0) {
            saved.store(word, Ordering::Relaxed);
        }
    }

    /// Who wrote here. Read after what is to be covered.
    pub(crate) fn page_mark(&self) -> PageMark {
        PageMark(self.page.load(Ordering::SeqCst))
    }

    /// An entry of `lane` with `gsn` changes something here: called before anybody can see the change.
    pub(crate) fn stamp_page(&self, lane: usize, gsn: u64, hardened_gsn: u64) {
        let stamp = |word| Some(PageMark(word).stamped(lane, gsn, hardened_gsn).0);
        let _always_some = self
            .page
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, stamp);
    }

    /// The newest version in a slot. (Sequentially consistent for those who take shared locks; it costs the same.)
    #[inline]
    pub(crate) fn head<'g>(&self, slot: usize, guard: &'g Guard) -> Option<VersionRef<'g>> {
        point();
        VersionRef::from_raw(self.slots[slot].load(Ordering::SeqCst), guard)
    }

    /// May some row have shared locks?
    #[inline]
    pub(crate) fn some_shared(&self) -> bool {
        self.shared_count() > 0
    }

    /// Rows that have, or are about to have, shared locks.
    pub(crate) fn shared_count(&self) -> usize {
        self.shared.load(Ordering::SeqCst) as usize
    }

    /// One more row has, or is about to have, shared locks.
    pub(crate) fn raise_shared(&self) {
        self.memory.add(SHARED_ROW_BYTES as i64);
        self.shared.fetch_add(1, Ordering::SeqCst);
    }

    /// One fewer.
    pub(crate) fn lower_shared(&self) {
        let before = self.shared.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "what is lowered was raised");
        self.memory.add(-(SHARED_ROW_BYTES as i64));
    }

    fn install_fresh<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        fresh: Fresh,
        guard: &'g Guard,
    ) -> Option<VersionRef<'g>> {
        let expected = expected.map_or(std::ptr::null_mut(), |v| v.at.as_ptr());
        // SAFETY: not published yet, so ours alone.
        unsafe { fresh.version.as_ref() }
            .next
            .store(expected, Ordering::Relaxed);
        let raw = fresh.version.as_ptr();
        point();
        // The guard keeps `expected` from being freed and its address from being used again, so equality of addresses
        // is identity.
        self.slots[slot]
            .compare_exchange(expected, raw, Ordering::SeqCst, Ordering::Acquire)
            .ok()?;
        std::mem::forget(fresh);
        VersionRef::from_raw(raw, guard)
    }

    /// Installs a version of `writer` above `expected`, which locks the row with (at least) `lock`; `None` if the slot's newest version is another one by now.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site per kind of write; a struct would only rename them"
    )]
    pub(crate) fn install<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        writer: &Writer,
        kind: Kind,
        lock: RowLock,
        command: u32,
        row: &[u8],
        guard: &'g Guard,
    ) -> Option<VersionRef<'g>> {
        // Counted before it can be reached (V4).
        writer.named.set(writer.named.get() + 1);
        let installed = self.install_fresh(
            slot,
            expected,
            Fresh::new(writer.address(), kind, lock, command, row, self.memory),
            guard,
        );
        if installed.is_none() {
            writer.named.set(writer.named.get() - 1);
        } else if kind != Kind::LockOnly {
            self.mark_changed();
        }
        installed
    }

    /// Stamps the versions `writer` has in the slot with `csn`. The caller is pinned since before the writer's state
    /// became Precommitted.
    pub(crate) fn stamp(&self, slot: usize, writer: &Writer, csn: Csn, guard: &Guard) {
        let mut at = self.head(slot, guard);
        while let Some(version) = at {
            if version.is_of(writer) {
                version
                    .header()
                    .stamp
                    .store(csn.0 << 1 | 1, Ordering::Release);
                writer.named.set(writer.named.get().saturating_sub(1));
            } else if let Stamp::Committed(other) = version.stamp()
                && other <= csn
            {
                return;
            }
            at = version.next(guard);
        }
    }

    /// Takes the right to unlink, if nobody has it.
    pub(crate) fn try_prune(&self) -> Option<Prune<'_>> {
        self.pruning
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Prune { chunk: self })
    }

    /// Takes the right to unlink; holders keep it for one slot's chain only, so the wait is short.
    pub(crate) fn prune_lock(&self) -> Prune<'_> {
        let mut spins = 0u32;
        loop {
            if let Some(prune) = self.try_prune() {
                return prune;
            }
            spins += 1;
            point();
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        let memory = self.memory;
        let free_all = move || {
            for mut slot in slots {
                let mut at = *slot.get_mut();
                while let Some(version) = NonNull::new(at) {
                    // SAFETY: every version is in one chain only, and its slot is ours alone.
                    unsafe {
                        at = version.as_ref().next.load(Ordering::Relaxed);
                        free(version, memory);
                    }
                }
            }
            memory.add(-(CHUNK_BYTES as i64));
        };
        // SAFETY: the chunk is dropped, so nobody pinned later can reach its versions; rows read under guards pinned
        // before stay valid until those end. The pointers are plain memory and may be freed on any thread.
        unsafe { crossbeam_epoch::pin().defer_unchecked(free_all) }
    }
}

/// The right to unlink versions of a chunk (V3).
pub(crate) struct Prune<'c> {
    chunk: &'c Chunk,
}

impl Prune<'_> {
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
        writer: &Writer,
        guard: &'g Guard,
    ) -> Option<VersionRef<'g>> {
        let head = self.chunk.head(slot, guard)?;
        if !head.is_of(writer) {
            return None;
        }
        let next = head.header().next.load(Ordering::Acquire);
        point();
        self.chunk.slots[slot]
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
        let Some(mut kept) = self.chunk.head(slot, guard) else {
            return;
        };
        drop_it(kept, false);
        while let Some(version) = kept.next(guard) {
            let finished = match version.stamp() {
                Stamp::Committed(_) => true,
                Stamp::Writer(state) => state.committed().is_some(),
            };
            if drop_it(version, finished) && finished {
                if version.kind() == (Kind::Row { keys_changed: true }) {
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
        if matches!(head.stamp(), Stamp::Writer(_)) {
            return false;
        }
        let null = std::ptr::null_mut();
        point();
        let taken = self.chunk.slots[slot].compare_exchange(
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

impl Drop for Prune<'_> {
    fn drop(&mut self) {
        self.chunk.pruning.store(false, Ordering::Release);
    }
}

mod unshared;

pub(crate) use unshared::UnsharedChunk;

#[cfg(test)]
mod tests;
