//! Checkers of what a run has recorded. They know nothing of the engine: they judge by what clients saw.
//!
//! The tests beside them crash the engine on a simulated service (`tests/crash`), fill its disk (`tests/disk`), and run
//! a fleet of storage nodes with its servers over a virtual network (`tests/fleet`, whose judge is its own: there are
//! several servers at the same time).

pub mod crash;
mod dice;
pub mod history;

pub use dice::Dice;
