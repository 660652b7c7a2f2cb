//! When may a transaction be acknowledged?
//!
//! | room | what |
//! |---|---|
//! | [`CommitPath`] | the way from pre-commit to acknowledgment, numbered: begin here |
//! | [`Horizon`] | the CSN counter and the CSN below which everything is durable |
//! | [`CommitRing`] | which CSNs above the horizon are Committed |
//! | [`Collected`], [`Awaits`] | what a transaction depends on; what a client waits for |
//! | [`Handovers`] | whom the next holder of a lock depends on, if nothing was written under it |
//! | [`Tracking`] | the four rules by which a hardened transaction is Committed; pure |
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

pub mod adapt;
mod awaits;
mod collected;
mod cursors;
mod desk;
mod force;
mod handover;
mod horizon;
mod mapping;
mod options;
mod path;
mod pending;
pub mod protocol;
pub mod queue;
mod ring;
mod stats;
mod tracking;
mod waits;
mod watermark;
mod word;

pub use awaits::Awaits;
pub use collected::{Collected, IsCommitted, LIST_MAX};
pub use cursors::{CursorBuffer, CursorClaim};
pub use handover::{HandedOver, Handovers};
pub use horizon::{Horizon, Reservation};
pub use options::{Adapt, CommitOptions};
pub use path::{
    Acknowledged, Adaptive, Admission, CommitPath, DecisionRecord, Entrance, Kick, LaneStats,
    Moment, Observer, PushBody, PushedTxn,
};
pub use pending::Pending;
pub use protocol::{Acknowledging, ForceCommit, ProtocolKind};
pub use queue::QueueKind;
pub use ring::CommitRing;
pub use stats::{Latencies, Phase, WaitCounts};
pub use tracking::{Progress, Tracking, Verdict};
pub use watermark::{LogFailed, Reached, Watermark};
pub use word::AtomicWord;
