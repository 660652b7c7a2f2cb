//! Golden plans and errors, over a small catalog without an engine.

mod errors;
mod plans;
mod world;
