//! The memory budget: what rows, indexes and buffers take, and the most they may take.
//!
//! Owns: the account of an engine (how many bytes its versions, row slots, index pages, lane buffers, transactions'
//! records and whatever SQL charges to it take) and the decision that something more is too much.
//!
//! Invariants:
//! - Every byte is added before it can be used and subtracted when it is really freed: a version that is unlinked and
//!   still protected by somebody's guard counts. Sizes are those the allocator takes, rounding included
//!   ([`footprint`]).
//! - Each thread adds to a counter of its own, so no row costs a shared cache line. A sum read while others add is
//!   right to within what they add meanwhile.
//! - A worker looks at the sum when it has used up an allowance of at most [`ALLOWANCE_BYTES_MAX`], so the budget is
//!   overrun by at most that much per worker.
//! - The last eighth of the budget is a reserve for what leads out of want: tombstones, the writes of tables that ask
//!   for it (the catalog's, so that a table can be dropped or truncated), the records of such transactions, and
//!   recovery.
//!
//! Does not: count sessions, plans, the catalog's pictures or code; collect garbage (see `garbage`); wait.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

/// Bytes a worker may take between two looks at the sum.
pub const ALLOWANCE_BYTES_MAX: u64 = 256 << 10;
/// The reserve is this part of the budget.
const RESERVE_PART: u64 = 8;
/// This part of the budget is much to be kept by the allocator, if it is so many bytes at least.
const MUCH_PART: u64 = 32;
const MUCH_BYTES_MIN: u64 = 8 << 20;
/// Counters of an account; threads beyond share the last one.
const STRIPES: usize = 256;
/// The counter of threads that have none of their own.
const SHARED: usize = STRIPES - 1;
/// A thread that has not asked for a counter yet.
const UNKNOWN: usize = usize::MAX;

/// There is no memory left in the budget (53200).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory budget of {budget_bytes} bytes is used up")]
pub struct OutOfMemory {
    /// The budget.
    pub budget_bytes: u64,
}

/// What an allocation of `length` bytes takes: mimalloc's size classes, four per doubling.
#[inline]
pub const fn footprint(length: usize) -> usize {
    if length <= 128 {
        return length.next_multiple_of(16);
    }
    length.next_multiple_of(1 << (length.ilog2() - 2))
}

/// What an engine's memory is used for, in bytes, and its budget. Accounts live as long as the process, so that
/// whatever is freed late can still be subtracted; those of engines that are gone are used again.
pub struct Memory {
    used: [CachePadded<AtomicI64>; STRIPES],
    budget_bytes: AtomicU64,
}

/// Accounts of engines that are gone.
static IDLE: Mutex<Vec<&'static Memory>> = Mutex::new(Vec::new());
/// Which counters are taken by running threads; the shared one is never given out.
static COUNTERS_TAKEN: Mutex<[bool; SHARED]> = Mutex::new([false; SHARED]);
/// Counters from here on no thread has had yet, but for the shared one: a sum passes them over.
static COUNTERS_KNOWN: AtomicUsize = AtomicUsize::new(0);

/// Gives a thread's counter back when the thread ends.
struct Counter(usize);

impl Drop for Counter {
    fn drop(&mut self) {
        // What other destructors of this thread still free goes to the shared counter.
        MINE.set(SHARED);
        if self.0 != SHARED {
            COUNTERS_TAKEN.lock()[self.0] = false;
        }
    }
}

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(UNKNOWN) };
    static COUNTER: Counter = Counter(take_counter());
}

fn take_counter() -> usize {
    let mut taken = COUNTERS_TAKEN.lock();
    let Some(free) = taken.iter().position(|taken| !taken) else {
        return SHARED;
    };
    taken[free] = true;
    COUNTERS_KNOWN.fetch_max(free + 1, Ordering::Relaxed);
    free
}

#[cold]
fn find_counter() -> usize {
    // In a thread that is ending there is no place to keep it.
    let mine = COUNTER.try_with(|counter| counter.0).unwrap_or(SHARED);
    MINE.set(mine);
    mine
}

impl Memory {
    const fn new() -> Memory {
        Memory {
            used: [const { CachePadded::new(AtomicI64::new(0)) }; STRIPES],
            budget_bytes: AtomicU64::new(u64::MAX),
        }
    }

    /// An account of its own, which lives as long as the process: for tests of what charges to one without an engine.
    #[doc(hidden)]
    pub fn standalone(budget_bytes: u64) -> &'static Memory {
        let memory = Box::leak(Box::new(Memory::new()));
        memory.budget_bytes.store(budget_bytes, Ordering::Relaxed);
        memory
    }

    /// Adds to what is used, or subtracts from it.
    #[inline]
    pub(crate) fn add(&self, bytes: i64) {
        let mut mine = MINE.get();
        if mine == UNKNOWN {
            mine = find_counter();
        }
        let counter = &self.used[mine];
        if mine == SHARED {
            counter.fetch_add(bytes, Ordering::Relaxed);
        } else {
            // Only this thread writes it.
            counter.store(counter.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        let known = COUNTERS_KNOWN.load(Ordering::Relaxed);
        let counters = self.used[..known].iter().chain([&self.used[SHARED]]);
        let sum: i64 = counters.map(|of| of.load(Ordering::Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }

    /// The most that may be used.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes.load(Ordering::Relaxed)
    }

    /// What the budget keeps back for deletes, DDL and recovery.
    pub fn reserve_bytes(&self) -> u64 {
        self.budget_bytes() / RESERVE_PART
    }

    /// Is so much used that collecting garbage should not wait?
    pub fn is_scarce(&self) -> bool {
        let budget = self.budget_bytes();
        self.used_bytes() > budget - budget / 4
    }

    /// The error that names the budget.
    pub(crate) fn exhausted(&self) -> OutOfMemory {
        OutOfMemory {
            budget_bytes: self.budget_bytes(),
        }
    }

    /// Bytes left, with or without the reserve.
    pub(crate) fn left_bytes(&self, with_reserve: bool) -> u64 {
        let mut limit = self.budget_bytes();
        if !with_reserve {
            limit -= limit / RESERVE_PART;
        }
        limit.saturating_sub(self.used_bytes())
    }

    /// A charge of nothing, to be grown.
    pub fn charge(&'static self) -> Charge {
        Charge {
            memory: self,
            bytes: 0,
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Memory({} of {} bytes)",
            self.used_bytes(),
            self.budget_bytes()
        )
    }
}

/// Bytes charged to an account until it is dropped.
#[derive(Debug)]
pub struct Charge {
    memory: &'static Memory,
    bytes: usize,
}

impl Charge {
    /// What it is charged to.
    pub(crate) fn memory(&self) -> &'static Memory {
        self.memory
    }

    /// Bytes charged now.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges `bytes` in all, if the budget without its reserve allows what is more than before.
    pub fn set(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let more = bytes.saturating_sub(self.bytes) as u64;
        if more > 0 && more > self.memory.left_bytes(false) {
            return Err(self.memory.exhausted());
        }
        self.force(bytes);
        Ok(())
    }

    /// Charges `bytes` in all, for what is there already.
    #[inline]
    pub(crate) fn force(&mut self, bytes: usize) {
        if bytes != self.bytes {
            let more = bytes as i64 - self.bytes as i64;
            self.memory.add(more);
            let (now, most) = CHARGED.get();
            CHARGED.set((now + more, most.max(now + more)));
            self.bytes = bytes;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.force(0);
    }
}

thread_local! {
    /// What this thread has charged and not given back, and the most that it was since it was last asked for.
    static CHARGED: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

impl Memory {
    /// Whether this thread has given back so much of what it had charged that the allocator should not keep the memory
    /// for it: the next who asks would come on top. Says so once.
    #[inline]
    pub fn gave_much_back(&self) -> bool {
        let (now, most) = CHARGED.get();
        let much = (self.budget_bytes() / MUCH_PART).max(MUCH_BYTES_MIN);
        if most - now < much as i64 {
            return false;
        }
        CHARGED.set((now, now));
        true
    }
}

/// An engine's account: given to the next engine when this one and all it allocated are gone.
pub(crate) struct Account(&'static Memory);

impl Account {
    pub(crate) fn open(budget_bytes: u64) -> Account {
        let mut idle = IDLE.lock();
        // Nothing is allocated for an engine that is gone, so a sum of nothing stays that.
        let memory = match idle.iter().position(|m| m.used_bytes() == 0) {
            Some(at) => idle.swap_remove(at),
            None => Box::leak(Box::new(Memory::new())),
        };
        memory.budget_bytes.store(budget_bytes, Ordering::Relaxed);
        Account(memory)
    }

    #[inline]
    pub(crate) fn memory(&self) -> &'static Memory {
        self.0
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        IDLE.lock().push(self.0);
    }
}

/// An account for tests of single structures.
#[cfg(test)]
pub(crate) static UNLIMITED: Memory = Memory::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_add_and_others_subtract_comes_out_even() {
        let account = Account::open(1 << 20);
        let memory = account.memory();
        // More threads than counters, and counters given back by threads that ended.
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..STRIPES + 16 {
                    scope.spawn(|| (0..100).for_each(|_| memory.add(10)));
                }
            });
        }
        let added = 3 * (STRIPES + 16) * 100 * 10;
        assert_eq!(memory.used_bytes(), added as u64);
        memory.add(-(added as i64));
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn a_charge_stops_at_the_reserve_and_is_given_back() {
        let account = Account::open(8000);
        let memory = account.memory();
        let mut charge = memory.charge();
        charge.set(7000).expect("all but the reserve");
        let error = charge.set(7001).expect_err("the reserve");
        assert_eq!(error.budget_bytes, 8000);
        assert_eq!((charge.bytes(), memory.used_bytes()), (7000, 7000));
        assert_eq!(
            (memory.left_bytes(false), memory.left_bytes(true)),
            (0, 1000)
        );
        assert!(memory.is_scarce());
        charge.set(10).expect("less is always possible");
        assert!(!memory.is_scarce());
        drop(charge);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn an_account_in_use_is_not_given_out_again() {
        let first = Account::open(100);
        let memory = first.memory();
        memory.add(5);
        drop(first);
        let second = Account::open(100);
        assert!(!std::ptr::eq(memory, second.memory()), "5 bytes are left");
        memory.add(-5);
    }

    #[test]
    fn sizes_are_rounded_as_the_allocator_does() {
        let sizes = [1, 16, 17, 64, 65, 128, 129, 160, 161, 1024, 1025];
        let taken = [16, 16, 32, 64, 80, 128, 160, 160, 192, 1024, 1280];
        assert_eq!(sizes.map(footprint), taken);
        assert_eq!(footprint(0), 0);
    }
}
