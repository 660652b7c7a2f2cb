//! The horizon that a lane's blocks record: what else was durable when they were sealed.
//!
//! A lane knows only itself. So whoever knows all lanes publishes the horizon, and each block takes along what it finds
//! published when it is sealed. What is published was computed from cursors that had moved by then (every lane's
//! [`Lane::first_not_durable`]), and what is durable stays so. So it is true of a block whenever that is written, and
//! whether or not it ever arrives.
//!
//! Recovery holds the lanes to it: see `recovery::horizon`.

use super::{Lane, Shared};
use logstead_types::Csn;
use std::sync::Arc;

/// Tells the horizon. It is asked under a lane's lock, once per block: it does not wait, nor call a lane.
pub trait HorizonSource: Send + Sync {
    /// Every CSN of this epoch below the one returned has an entry, which is durable together with all blocks before it
    /// in its lane. Never goes back.
    fn horizon(&self) -> Csn;
}

impl Lane {
    /// Sets who tells this lane the horizon; only the first call counts. Without it the lane's blocks say nothing of
    /// other lanes.
    pub fn set_horizon_source(&self, source: Arc<dyn HorizonSource>) {
        let _only_the_first_counts = self.shared.horizon_source.set(source);
    }
}

impl Shared {
    /// What a block that is sealed now records.
    pub(super) fn horizon(&self) -> Csn {
        let source = self.horizon_source.get();
        source.map_or(Csn::ZERO, |source| source.horizon())
    }
}
