//! What is set on the thread for the time of a call in this crate.
//!
//! Invariant: while a session pauses in the middle of such a call, others find nothing set ([`SavedThreadContext`]).
//!
//! Does not: say what the settings mean; who reads them does.

use std::cell::Cell;

thread_local! {
    /// Types are spelled by number: see [`crate::value::user::with_numbered_types`].
    pub(crate) static SPELLED_BY_NUMBER: Cell<bool> = const { Cell::new(false) };
    /// How many records those that are being read lie in.
    pub(crate) static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// What was set on the thread, which finds nothing set until this is dropped.
pub(crate) struct SavedThreadContext {
    by_number: bool,
    nested: usize,
}

impl SavedThreadContext {
    /// Until this is dropped.
    pub(crate) fn begin() -> SavedThreadContext {
        SavedThreadContext {
            by_number: SPELLED_BY_NUMBER.replace(false),
            nested: NESTED.replace(0),
        }
    }
}

impl Drop for SavedThreadContext {
    fn drop(&mut self) {
        SPELLED_BY_NUMBER.set(self.by_number);
        NESTED.set(self.nested);
    }
}
