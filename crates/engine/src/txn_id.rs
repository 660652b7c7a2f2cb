//! The identity of a running transaction.

/// Identifies a transaction among those that run: worker and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxnId(pub u64);
