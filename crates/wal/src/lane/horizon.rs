//! The horizon that a lane's blocks record: what else was durable when they were sealed.
//!
//! A lane knows only itself. So whoever knows all lanes publishes the horizon, and each block takes along what it finds
//! published when it is sealed. What is published was computed from cursors that had moved by then (every lane's
//! [`Lane::first_not_durable`]), and what is durable stays so. So it is true of a block whenever that is written, and
//! whether or not it ever arrives.
//!
//! Recovery holds the lanes to it: see `recovery::recorded_horizon`. Who follows the log hands over what is below it:
//! see [`follow`](crate::recovery::follow). The last blocks before a pause record a horizon that is below their own
//! entries. So a lane that is idle can write a block without entries, which records nothing but the horizon.

use super::{Lane, LaneInner};
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

    /// Writes a block without entries that records the horizon, if nothing of this lane is buffered or in flight.
    /// False: the next block of the lane does so, or there is no room for one now.
    pub fn record_horizon(&self) -> bool {
        // Room for an entry without records: a block without entries takes no more.
        let Ok(room) = self.room(0) else { return false };
        let shared = &self.shared;
        let sealed = {
            let mut state = shared.state.lock();
            let is_idle = state.building.is_empty() && state.in_flight.is_empty();
            is_idle.then(|| shared.seal_block(&mut state)).flatten()
        };
        // Its place is taken: the room was held until then.
        drop(room);
        let Some(sealed) = sealed else { return false };
        shared.write_handed_off(sealed);
        true
    }
}

impl LaneInner {
    /// What a block that is sealed now records.
    pub(super) fn horizon(&self) -> Csn {
        let source = self.horizon_source.get();
        source.map_or(Csn::ZERO, |source| source.horizon())
    }
}
