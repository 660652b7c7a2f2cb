//! When may a transaction be acknowledged?
//!
//! | room | what |
//! |---|---|
//! | [`CommitPath`] | the way from pre-commit to acknowledgment, numbered: begin here |
//! | [`Horizon`] | the CSN counter and the CSN below which everything is durable |
//! | [`CommitRing`] | which CSNs above the horizon are Committed |
//! | [`DependencySet`], [`CommitWait`] | what a transaction depends on; what a client waits for |
//! | [`Handovers`] | whom the next holder of a lock depends on, if nothing was written under it |
//! | [`Tracking`] | the rules by which a hardened transaction is Committed; pure |
//! | [`adapt`] | lanes in use, flush unit, timeout and gather delay, as latency and load want them; pure |
//! | [`protocol`] | the four ways to flush and acknowledge; pure |
//! | [`queue`] | from workers to who acknowledges |
//! | [`CursorBuffer`] | LeanStore's log buffer, to compare with |
//! | [`Watermark`] | the one primitive "wait until n is reached" |
//!
//! Invariants:
//! - The horizon never passes a CSN that was drawn and is not durable, and it never moves back.
//! - Hardened comes before Committed, and Committed before anybody hears of it.
//! - A waiter registers, then checks again; whoever moves the value wakes. So no wake-up is lost (T13).
#![forbid(unsafe_code)]

mod ack_queue;
pub mod adapt;
mod atomic_facade;
mod commit_ring;
mod commit_wait;
mod commit_waiters;
mod dependency_set;
mod handover;
mod horizon;
mod lane_mapping;
mod leanstore_buffer;
mod options;
mod path;
mod pending_commit;
pub mod protocol;
pub mod queue;
mod stats;
mod tracking;
mod tuning;
mod watermark;
mod worker_blocks;

pub use atomic_facade::AtomicWord;
pub use commit_ring::CommitRing;
pub use commit_wait::CommitWait;
pub use dependency_set::{DependencySet, IsCommitted, LIST_MAX};
pub use handover::{Handovers, PriorLockHolder};
pub use horizon::{Horizon, Reservation};
pub use leanstore_buffer::{CursorBuffer, CursorClaim};
pub use options::{AdaptiveSettings, CommitOptions};
pub use path::{
    AckFuture, AdaptiveStatus, CommitInsertLock, CommitPath, CommitReservation, CommitStage,
    DecisionRecord, LaneStats, Observer, PushBody, PushedTxn, WakeFn,
};
pub use pending_commit::PendingCommit;
pub use protocol::{AckTiming, ForceCommit, ProtocolKind};
pub use queue::QueueKind;
pub use stats::{Latencies, Phase, WaitCounts};
pub use tracking::{AckDecision, DurabilityProgress, Tracking};
pub use watermark::{LogFailed, Watermark, WatermarkWait};
pub use worker_blocks::WorkerBlocks;
