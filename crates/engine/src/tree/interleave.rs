//! Where threads can meet in the tree and in version chains: in tests a scheduler may take the turn there; elsewhere,
//! and in optimised tests, which measure, it is nothing.

#[cfg(test)]
thread_local! {
    static HOOK: std::cell::Cell<Option<fn()>> = const { std::cell::Cell::new(None) };
}

/// Somebody else may have the turn now.
#[cfg(all(test, debug_assertions))]
#[inline]
pub(crate) fn point() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}

/// Somebody else may have the turn now.
#[cfg(not(all(test, debug_assertions)))]
#[inline(always)]
pub(crate) fn point() {}

/// Does a scheduler take the turn at points? Then there is nobody else to leave the processor to.
#[inline(always)]
pub(crate) fn is_scheduled() -> bool {
    #[cfg(test)]
    return HOOK.get().is_some();
    #[cfg(not(test))]
    false
}

/// Calls `hook` at every point that this thread comes to, until it is set to nothing.
#[cfg(test)]
pub(crate) fn set_hook(hook: Option<fn()>) {
    HOOK.set(hook);
}
