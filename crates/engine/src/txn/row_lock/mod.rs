//! Locking rows: taking a lock, giving it back, and what it hands over to the next.
//!
//! The rules are those of `crate::row_lock`, which owns where locks are kept.
//!
//! Does not: wait (`txn::lock_wait`).

mod acquire;
mod handover;
#[cfg(test)]
mod order;

pub(crate) use acquire::unshare;
