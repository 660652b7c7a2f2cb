//! The engine over the memory home.
#![allow(clippy::disallowed_methods, reason = "tests use real threads")]

/// The world's table is not divided.
pub(crate) const DIVIDED: bool = false;

mod agreement;
mod anomalies;
mod build;
mod checkpoints;
mod collection;
mod divided;
mod doubts;
mod embedded;
mod ending;
mod eviction;
mod handover;
mod history;
mod instance_restart;
mod locks;
mod memory;
mod past;
mod prewarm;
mod recovery;
mod removal;
mod replay;
mod replica;
mod restore_points;
mod room;
mod row_lock_stress;
mod row_locks;
mod schedules;
mod serializable;
mod single_rows;
mod starting_keys;
mod starts;
mod stored_indexes;
mod stress;
mod surplus;
mod tails;
mod temporary;
mod tracking;
mod unique;
mod world;
