//! Where threads can meet in lanes, always without a lock: in tests a scheduler may take the turn there; elsewhere it
//! is nothing.

#[cfg(test)]
thread_local! {
    static HOOK: std::cell::Cell<Option<fn()>> = const { std::cell::Cell::new(None) };
}

/// Somebody else may have the turn now.
#[cfg(test)]
pub(super) fn point() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}

/// Somebody else may have the turn now.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn point() {}

/// Calls `hook` at every point that this thread comes to, until it is set to nothing.
#[cfg(test)]
pub(super) fn set_hook(hook: Option<fn()>) {
    HOOK.set(hook);
}
