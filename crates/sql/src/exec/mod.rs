//! The executor: runs a plan on the engine's rows.
