//! A place for a box whose content readers may borrow while a writer moves or replaces it: the one module of the tree
//! with unsafe code.
//!
//! Invariants:
//! - C1 What was put into a cell is owned by exactly one [`EpochCell`] or one [`RetiredContent`] at any time: both are
//!   left only by an atomic swap, and neither can be copied.
//! - C2 Content is freed only through the epoch collector, by a dropped [`RetiredContent`] (and [`EpochCell`] when it
//!   is dropped itself): whoever borrowed it under an [`EpochGuard`] did so before it was handed to the collector, so
//!   his pin is older and keeps it alive.
//! - C3 A borrow lives no longer than the pin it was made under, nor than the borrow of the cell.
//!
//! The interface is safe: whatever is called in whatever order, memory stays valid. A reader may find the cell empty
//! or with other content than a moment ago; what that means is his business.

use std::sync::atomic::Ordering;

use crossbeam_epoch::{Atomic, Owned, Shared};

use super::interleave;

/// Keeps everything borrowed from cells under it from being freed. Short-lived.
pub(super) struct EpochGuard(crossbeam_epoch::Guard);

impl EpochGuard {
    /// Pins this thread. (A type of ours, so that a guard of another collector cannot be passed for one of this.)
    #[inline]
    pub(super) fn new() -> EpochGuard {
        EpochGuard(crossbeam_epoch::pin())
    }
}

/// Holds a `T` or nothing.
pub(super) struct EpochCell<T: Send + Sync + 'static>(Atomic<T>);

/// Content between two cells. Dropped, it is freed when nobody can look at it any more.
pub(super) struct RetiredContent<T: Send + Sync + 'static>(*const T);

impl<T: Send + Sync> EpochCell<T> {
    /// Holds nothing.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "each use is a cell of its own"
    )]
    pub(super) const EMPTY: EpochCell<T> = EpochCell(Atomic::null());

    /// Borrows what the cell holds now.
    #[inline]
    pub(super) fn load<'g>(&'g self, pin: &'g EpochGuard) -> Option<&'g T> {
        interleave::point();
        let shared = self.0.load(Ordering::Acquire, &pin.0);
        // SAFETY: C1, C2: the cell owned it when it was loaded under `pin`, so it is freed after `pin` at the earliest,
        // and by C3 the borrow ends before that. It was written before it was published (Release, Acquire).
        unsafe { shared.as_ref() }
    }

    /// Takes the content out.
    #[inline]
    pub(super) fn take(&self, pin: &EpochGuard) -> Option<RetiredContent<T>> {
        let old = self.0.swap(Shared::null(), Ordering::AcqRel, &pin.0);
        (!old.is_null()).then(|| RetiredContent(old.as_raw()))
    }

    /// Puts content in; what was there is given up.
    #[inline]
    pub(super) fn put(&self, content: RetiredContent<T>, pin: &EpochGuard) {
        let raw = content.0;
        std::mem::forget(content);
        let old = self.0.swap(Shared::from(raw), Ordering::AcqRel, &pin.0);
        if !old.is_null() {
            drop(RetiredContent(old.as_raw()));
        }
    }
}

impl<T: Send + Sync> RetiredContent<T> {
    pub(super) fn new(content: Box<T>) -> RetiredContent<T> {
        // Through `Owned`, which is how the collector will free it.
        let pin = EpochGuard::new();
        RetiredContent(Owned::<T>::from(content).into_shared(&pin.0).as_raw())
    }
}

impl<T: Send + Sync> Drop for RetiredContent<T> {
    fn drop(&mut self) {
        let pin = EpochGuard::new();
        // SAFETY: C1: only this owned it, so nobody can load it any more and it is freed once; C2: who borrowed it
        // before is pinned. It came from `Owned`. `T` is Send, so any thread may drop it.
        unsafe { pin.0.defer_destroy(Shared::from(self.0)) }
    }
}

impl<T: Send + Sync> Drop for EpochCell<T> {
    fn drop(&mut self) {
        // Through the collector too: it may have come from another cell, and be borrowed through that.
        drop(self.take(&EpochGuard::new()));
    }
}

// SAFETY: C1: a `RetiredContent` is the only owner of a `T`, which may move between threads.
unsafe impl<T: Send + Sync> Send for RetiredContent<T> {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    struct Counted(Arc<AtomicUsize>, u64);
    impl Drop for Counted {
        fn drop(&mut self) {
            // Whoever reads this afterwards reads freed memory.
            self.1 = 0;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Content that is taken, moved and dropped stays readable under an older pin, and is freed once.
    #[test]
    fn a_borrow_outlives_the_taking() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (from, to) = (EpochCell::EMPTY, EpochCell::EMPTY);
        let pin = EpochGuard::new();
        let content = RetiredContent::new(Box::new(Counted(dropped.clone(), 7)));
        from.put(content, &pin);
        let borrowed = from.load(&pin).expect("there");
        to.put(from.take(&pin).expect("there"), &pin);
        assert!(from.load(&pin).is_none());
        drop(to);
        for _ in 0..1000 {
            drop(EpochGuard::new());
        }
        assert_eq!((borrowed.1, dropped.load(Ordering::SeqCst)), (7, 0));
        drop(pin);
        // Other tests' pins may hold the epoch back for a while.
        while dropped.load(Ordering::SeqCst) == 0 {
            crossbeam_epoch::pin().flush();
            std::thread::yield_now();
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}
