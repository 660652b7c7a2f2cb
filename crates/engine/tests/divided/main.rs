//! Cases of the engine's tests with a world whose table, and its index of keys, are divided among instances.
#![allow(clippy::disallowed_methods, reason = "tests use real threads")]

/// The world's table is divided.
pub(crate) const DIVIDED: bool = true;

#[path = "../engine/agreement.rs"]
mod agreement;
#[path = "../engine/anomalies.rs"]
mod anomalies;
#[path = "../engine/checkpoints.rs"]
mod checkpoints;
#[path = "../engine/collection.rs"]
mod collection;
#[path = "../engine/history.rs"]
mod history;
#[path = "../engine/replay.rs"]
mod replay;
#[path = "../engine/serializable.rs"]
mod serializable;
#[path = "../engine/stress.rs"]
mod stress;
#[path = "../engine/unique.rs"]
mod unique;
#[path = "../engine/world.rs"]
mod world;
