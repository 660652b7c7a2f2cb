//! What is set on the thread for the time of a call in this crate.
//!
//! Invariant: while a session pauses in the middle of such a call, others find nothing set ([`SavedThreadContext`]).
//!
//! Does not: say what the settings mean; who reads them does.

use std::cell::Cell;

thread_local! {
    /// How many records those that are being read lie in.
    pub(crate) static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// What was set on the thread, which finds nothing set until this is dropped.
pub(crate) struct SavedThreadContext {
    nested: usize,
}

impl SavedThreadContext {
    /// Until this is dropped.
    pub(crate) fn begin() -> SavedThreadContext {
        SavedThreadContext {
            nested: NESTED.replace(0),
        }
    }
}

impl Drop for SavedThreadContext {
    fn drop(&mut self) {
        NESTED.set(self.nested);
    }
}
