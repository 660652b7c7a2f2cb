//! Published checkpoints: where absent rows and leaves are read from, and what the next checkpoint is built upon.
//!
//! Invariant: the directory is that of the newest checkpoint that is known to be published. Whoever brings chunks back,
//! or evicts them, has the same one, from the moment of publication on.
//!
//! Does not: take checkpoints (`crate::checkpoint`), or read chunks into tables (`crate::load`).

pub(crate) mod base;
pub(crate) mod checkpoints;
pub(crate) mod compaction;
mod in_progress;
pub(crate) mod page_base;
pub(crate) mod page_service;
pub(crate) mod pages;
mod replica_base;
mod replica_holds;
mod report;
pub(crate) mod requests;

pub(crate) use base::{CheckpointBase, NOT_RESTORED, NewestCheckpoint};
pub(crate) use checkpoints::Checkpoints;
pub use checkpoints::RestorePoint;
pub(crate) use compaction::Compaction;
pub(crate) use in_progress::CheckpointLock;
pub use page_service::{
    PageOrder, PageRead, PageReadAnswer, PageReply, PageRequest, PageRow, PageServiceOffer,
    PageServices, ReplicaLag,
};
pub(crate) use pages::PageLoader;
pub(crate) use replica_base::{
    Adoption, ReplicaBase, ReplicaStart, ReplicaTables, WritingTurn, WrittenPages,
};
pub use replica_holds::{ReplicaHoldGuard, ReplicaHoldReport, ReplicaHolds};
pub use report::{CheckpointError, CheckpointReport, CheckpointStats, CheckpointTimings};
