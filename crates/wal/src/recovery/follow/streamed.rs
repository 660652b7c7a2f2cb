//! Blocks that the server at work has sent, which a [`Follower`](super::Follower) need not read at the home.
//!
//! Owns: what has come and was not read yet, by lane and place, up to a bound; and the highest horizon that the server
//! has told. Whoever receives puts it here; the follower takes it in its rounds.
//!
//! A block is as good as one that was read at its place: the follower checks it the same way, and passes over one that
//! does not continue its lane's chain. One that does not come, or has no room here, is read at the home.

use logstead_home::Position;
use logstead_types::{Csn, Epoch, LaneId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most bytes of blocks that wait here.
const BYTES_MAX: usize = 32 << 20;

#[derive(Default)]
struct Streamed {
    epoch: Epoch,
    horizon: Csn,
    blocks: BTreeMap<(LaneId, Position), Arc<[u8]>>,
    bytes: usize,
}

/// What one server sends to one follower.
#[derive(Default)]
pub struct StreamedBlocks {
    streamed: Mutex<Streamed>,
}

impl StreamedBlocks {
    /// The server begins to send blocks of this epoch. What came before is forgotten.
    pub fn begin(&self, epoch: Epoch) {
        *self.streamed.lock() = Streamed {
            epoch,
            ..Streamed::default()
        };
    }

    /// A block has come. False: there is no room for it.
    pub fn add(&self, lane: LaneId, at: Position, block: Arc<[u8]>) -> bool {
        let mut streamed = self.streamed.lock();
        let has_room = streamed.bytes + block.len() <= BYTES_MAX;
        if has_room {
            streamed.bytes += block.len();
            if let Some(same) = streamed.blocks.insert((lane, at), block) {
                streamed.bytes -= same.len();
            }
        }
        has_room
    }

    /// The server tells that everything of its epoch below this CSN is durable.
    pub fn learn(&self, horizon: Csn) {
        let mut streamed = self.streamed.lock();
        streamed.horizon = streamed.horizon.max(horizon);
    }

    /// The highest horizon that it has told, and of which epoch.
    pub fn horizon(&self) -> (Epoch, Csn) {
        let streamed = self.streamed.lock();
        (streamed.epoch, streamed.horizon)
    }

    /// The block of this epoch at this place of the lane.
    pub(crate) fn block(&self, epoch: Epoch, lane: LaneId, at: Position) -> Option<Arc<[u8]>> {
        let streamed = self.streamed.lock();
        let block = streamed.blocks.get(&(lane, at));
        block.filter(|_| streamed.epoch == epoch).cloned()
    }

    /// What lies in the lane before `at` was read.
    pub(crate) fn forget(&self, epoch: Epoch, lane: LaneId, at: Position) {
        let mut streamed = self.streamed.lock();
        if streamed.epoch != epoch {
            return;
        }
        while let Some((&key, _)) = streamed
            .blocks
            .range((lane, Position::start_of(0))..(lane, at))
            .next()
        {
            if let Some(block) = streamed.blocks.remove(&key) {
                streamed.bytes -= block.len();
            }
        }
    }

    /// Bytes of blocks that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.streamed.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: LaneId = LaneId(1);

    fn at(offset: u64) -> Position {
        Position { segment: 3, offset }
    }

    fn block(len: usize) -> Arc<[u8]> {
        vec![7; len].into()
    }

    #[test]
    fn what_was_read_is_forgotten_and_what_comes_twice_counts_once() {
        let streamed = StreamedBlocks::default();
        streamed.begin(Epoch(2));
        for offset in [0, 10, 20, 10] {
            assert!(streamed.add(LANE, at(offset), block(10)));
        }
        assert!(streamed.add(LaneId(2), at(0), block(5)));
        assert_eq!(streamed.waiting_bytes(), 35);
        streamed.forget(Epoch(1), LANE, at(20));
        assert_eq!(streamed.waiting_bytes(), 35);
        streamed.forget(Epoch(2), LANE, at(20));
        assert_eq!(streamed.waiting_bytes(), 15);
        assert!(streamed.block(Epoch(2), LANE, at(10)).is_none());
        assert!(streamed.block(Epoch(2), LANE, at(20)).is_some());
        assert!(streamed.block(Epoch(3), LANE, at(20)).is_none());
        streamed.begin(Epoch(3));
        assert_eq!(streamed.waiting_bytes(), 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let streamed = StreamedBlocks::default();
        let len = BYTES_MAX / 2;
        assert!(streamed.add(LANE, at(0), block(len)));
        assert!(streamed.add(LANE, at(1), block(len)));
        assert!(!streamed.add(LANE, at(2), block(1)));
        streamed.forget(Epoch::default(), LANE, at(1));
        assert!(streamed.add(LANE, at(2), block(1)));
    }

    #[test]
    fn the_horizon_of_an_epoch_only_grows() {
        let streamed = StreamedBlocks::default();
        streamed.begin(Epoch(2));
        streamed.learn(Csn(9));
        streamed.learn(Csn(5));
        assert_eq!(streamed.horizon(), (Epoch(2), Csn(9)));
        streamed.begin(Epoch(3));
        assert_eq!(streamed.horizon(), (Epoch(3), Csn::ZERO));
    }
}
