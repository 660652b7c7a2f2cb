//! What must not fail half way.

use std::io::Write;

/// Ends the process when it is dropped by a panic: held over work that others would wait for in vain, or that must not
/// be left half done. See [`abort_on_panic`].
#[must_use = "it watches until it is dropped"]
#[derive(Debug)]
pub struct AbortOnPanic(&'static str);

/// If the calling thread panics before the guard is dropped, the process says what it was doing and aborts: better a
/// restart, which recovers what was acknowledged, than clients that wait for ever. `what` goes on after "panicked
/// while".
#[inline]
pub fn abort_on_panic(what: &'static str) -> AbortOnPanic {
    AbortOnPanic(what)
}

impl Drop for AbortOnPanic {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() && !crate::simulated_threads::is_killed() {
            self.abort();
        }
    }
}

impl AbortOnPanic {
    #[cold]
    fn abort(&self) {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        let _nobody_may_be_reading = writeln!(
            std::io::stderr(),
            "logstead: {name} panicked while {}; the process ends, so that nobody waits for it in vain",
            self.0
        );
        std::process::abort();
    }
}
