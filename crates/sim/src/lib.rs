//! Checkers of what a run has recorded. They know nothing of the engine: they judge by what clients saw.

pub mod crash;
pub mod history;
