//! Counters, for the views that show them and for benchmarks.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a worker counts. Only its own thread adds, so relaxed loads and stores do.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) commits_read_only: AtomicU64,
    pub(crate) aborts: AtomicU64,
    pub(crate) serialization_failures: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) versions_installed: AtomicU64,
    pub(crate) versions_collected: AtomicU64,
    pub(crate) garbage_rows_examined: AtomicU64,
    pub(crate) garbage_rows_held: AtomicU64,
    pub(crate) chain_steps: AtomicU64,
    pub(crate) transactions_inside: AtomicU64,
    pub(crate) transactions_across: AtomicU64,
    pub(crate) foreign_accesses: AtomicU64,
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Counts since the engine was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions committed with changes.
    pub commits: u64,
    /// Transactions committed without.
    pub commits_read_only: u64,
    /// Transactions rolled back.
    pub aborts: u64,
    /// Of these, SERIALIZABLE transactions refused for their read/write dependencies.
    pub serialization_failures: u64,
    /// Bytes of records put into lanes.
    pub log_bytes: u64,
    /// Flushes begun by workers.
    pub flushes: u64,
    /// Versions installed.
    pub versions_installed: u64,
    /// Versions unlinked, by garbage collection or undo.
    pub versions_collected: u64,
    /// Rows that garbage collection has looked at.
    pub garbage_rows_examined: u64,
    /// Rows that it has set aside, because a snapshot or time keeps something of them: to look at again.
    pub garbage_rows_held: u64,
    /// Versions passed over while looking for the visible one.
    pub chain_steps: u64,
    /// Transactions that have led to nothing but what their worker's instance owns, while there is more than one.
    pub transactions_inside: u64,
    /// Transactions that have led to what other instances own.
    pub transactions_across: u64,
    /// Accesses to rows and index entries that belong to other instances than their worker.
    pub foreign_accesses: u64,
    /// Transactions waiting for locks now.
    pub lock_waiters: u64,
}

impl Stats {
    pub(crate) fn add(&mut self, counters: &Counters) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.commits += get(&counters.commits);
        self.commits_read_only += get(&counters.commits_read_only);
        self.aborts += get(&counters.aborts);
        self.serialization_failures += get(&counters.serialization_failures);
        self.log_bytes += get(&counters.log_bytes);
        self.flushes += get(&counters.flushes);
        self.versions_installed += get(&counters.versions_installed);
        self.versions_collected += get(&counters.versions_collected);
        self.garbage_rows_examined += get(&counters.garbage_rows_examined);
        self.garbage_rows_held += get(&counters.garbage_rows_held);
        self.chain_steps += get(&counters.chain_steps);
        self.transactions_inside += get(&counters.transactions_inside);
        self.transactions_across += get(&counters.transactions_across);
        self.foreign_accesses += get(&counters.foreign_accesses);
    }
}
