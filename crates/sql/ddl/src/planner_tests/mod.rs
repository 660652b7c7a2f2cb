//! Golden plans and errors, over a small catalog without an engine.

mod golden;
mod order;
mod world;
