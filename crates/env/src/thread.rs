//! Threads: named, optionally pinned to a core.

use std::io;

/// A running thread. Dropping the handle detaches the thread.
#[derive(Debug)]
pub struct JoinHandle {
    inner: std::thread::JoinHandle<()>,
}

impl JoinHandle {
    /// Waits for the thread to end; an error means that it panicked.
    pub fn join(self) -> io::Result<()> {
        self.inner
            .join()
            .map_err(|_| io::Error::other("the thread panicked"))
    }

    /// True once the thread's body has returned.
    pub fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    /// The thread, to unpark it.
    pub fn thread(&self) -> &std::thread::Thread {
        self.inner.thread()
    }
}

/// Stack of each thread: statements nested to their limits are parsed, planned and evaluated recursively. Only touched
/// pages take memory.
const STACK_BYTES: usize = 16 << 20;

/// Starts a thread called `name`, pinned to the `core`-th of the cores this process may use (modulo their number) if
/// one is given. A pin that the kernel refuses is no error: pinning is for speed, and some sandboxes forbid it.
pub fn spawn<F>(name: &str, core: Option<usize>, body: F) -> io::Result<JoinHandle>
where
    F: FnOnce() + Send + 'static,
{
    let inner = std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            if let Some(core) = core {
                pin(core);
            }
            body();
        })?;
    Ok(JoinHandle { inner })
}

/// The same for a thread that ends before `scope` does and may borrow what outlives it; not pinned.
pub fn spawn_scoped<'scope, F, T>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    body: F,
) -> io::Result<std::thread::ScopedJoinHandle<'scope, T>>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, body)
}

/// Lets the calling thread do nothing for a while. For background threads only, never for a worker.
pub fn sleep(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// Lets the calling thread's timed waits end when they are over, and not up to 50 us later: for who plays the part of a
/// device. A kernel that refuses leaves them late.
pub fn minimize_timer_slack() {
    let _refusal_is_harmless = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
}

/// Number of cores this process may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn pin(core: usize) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let cores: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    if cores.is_empty() {
        return;
    }
    let mut set = rustix::thread::CpuSet::new();
    set.set(cores[core % cores.len()]);
    let _refusal_is_harmless = rustix::thread::sched_setaffinity(None, &set);
}
