//! When may a transaction be acknowledged?
//!
//! Owns: the CSN counter and the [`Horizon`] computed from it, what an entry must say about its dependencies and when
//! it counts as committed ([`Tracking`]), and the one primitive "wait until n is reached" ([`Watermark`]).
//!
//! Invariants:
//! - The horizon never passes a CSN that was drawn and is not durable, and it never moves back.
//! - A waiter registers, then checks again; whoever moves the value wakes. So no wake-up is lost (T13).
//!
//! It does no I/O, reads no clock, starts no thread and blocks on nothing but short mutexes.
#![forbid(unsafe_code)]

mod horizon;
mod tracking;
mod watermark;
mod word;

pub use horizon::{Horizon, Reservation};
pub use tracking::{HorizonTracking, Progress, Tracking};
pub use watermark::{LogFailed, Reached, Watermark};
pub use word::AtomicWord;
