//! One atomic word and one lock, so that the model checker can run the very code that ships.

use std::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit atomic: the standard library's in the server, the model checker's in its tests.
///
/// Every operation is sequentially consistent but those that say otherwise: the protocols that use it are about order.
pub trait AtomicWord: Send + Sync {
    /// A word holding `value`.
    fn new(value: u64) -> Self;
    /// Reads.
    fn load(&self) -> u64;
    /// Writes.
    fn store(&self, value: u64);
    /// Reads what another operation orders.
    fn load_relaxed(&self) -> u64;
    /// Writes what another operation publishes.
    fn store_relaxed(&self, value: u64);
    /// Adds and returns the former value.
    fn fetch_add(&self, value: u64) -> u64;
    /// Raises to at least `value` and returns the former value.
    fn fetch_max(&self, value: u64) -> u64;
    /// Replaces `from` by `to`; false if it held something else.
    fn swap_if(&self, from: u64, to: u64) -> bool;
}

impl AtomicWord for AtomicU64 {
    #[inline]
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    #[inline]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::SeqCst)
    }
    #[inline]
    fn store(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::SeqCst);
    }
    #[inline]
    fn load_relaxed(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }
    #[inline]
    fn store_relaxed(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Relaxed);
    }
    #[inline]
    fn fetch_add(&self, value: u64) -> u64 {
        AtomicU64::fetch_add(self, value, Ordering::SeqCst)
    }
    #[inline]
    fn fetch_max(&self, value: u64) -> u64 {
        AtomicU64::fetch_max(self, value, Ordering::SeqCst)
    }
    #[inline]
    fn swap_if(&self, from: u64, to: u64) -> bool {
        self.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}

/// A lock around a value: the server's, or the model checker's.
pub(crate) trait Lock<T> {
    /// Around `value`.
    fn new(value: T) -> Self;
    /// Does something with the value when nobody else does.
    fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R;
    /// The same, if nobody else does anything with it now.
    fn try_with<R>(&self, what: impl FnOnce(&mut T) -> R) -> Option<R>;
}

impl<T> Lock<T> for parking_lot::Mutex<T> {
    fn new(value: T) -> Self {
        parking_lot::Mutex::new(value)
    }
    #[inline]
    fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        what(&mut self.lock())
    }
    #[inline]
    fn try_with<R>(&self, what: impl FnOnce(&mut T) -> R) -> Option<R> {
        Some(what(&mut *self.try_lock()?))
    }
}

#[cfg(test)]
mod model {
    use super::{AtomicWord, Lock};
    use loom::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    impl<T> Lock<T> for shuttle::sync::Mutex<T> {
        fn new(value: T) -> Self {
            shuttle::sync::Mutex::new(value)
        }
        fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
            what(&mut self.lock().expect("nobody panics"))
        }
        fn try_with<R>(&self, what: impl FnOnce(&mut T) -> R) -> Option<R> {
            Some(what(&mut *self.try_lock().ok()?))
        }
    }

    macro_rules! word {
        ($word:ty) => {
            impl AtomicWord for $word {
                fn new(value: u64) -> Self {
                    <$word>::new(value)
                }
                fn load(&self) -> u64 {
                    <$word>::load(self, Ordering::SeqCst)
                }
                fn store(&self, value: u64) {
                    <$word>::store(self, value, Ordering::SeqCst);
                }
                fn load_relaxed(&self) -> u64 {
                    <$word>::load(self, Ordering::Relaxed)
                }
                fn store_relaxed(&self, value: u64) {
                    <$word>::store(self, value, Ordering::Relaxed);
                }
                fn fetch_add(&self, value: u64) -> u64 {
                    <$word>::fetch_add(self, value, Ordering::SeqCst)
                }
                fn fetch_max(&self, value: u64) -> u64 {
                    <$word>::fetch_max(self, value, Ordering::SeqCst)
                }
                fn swap_if(&self, from: u64, to: u64) -> bool {
                    self.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
                        .is_ok()
                }
            }
        };
    }

    // Loom knows weak orders, but treats the sequentially consistent one as weaker than it is; shuttle knows only that.
    word!(AtomicU64);
    word!(shuttle::sync::atomic::AtomicU64);
}
