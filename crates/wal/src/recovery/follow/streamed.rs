//! Blocks that the server at work has sent, which a [`Follower`](super::Follower) need not read at the home.
//!
//! Owns: what has come and was not read yet, by lane and place, up to a bound; and the highest horizon that the server
//! has told. What is no block of the epoch is not taken. Whoever receives puts it here; the follower takes it in its
//! rounds.
//!
//! A block is as good as one that was read at its place: the follower checks it the same way, and passes over one that
//! does not continue its lane's chain. One that does not come, or has no room here, is read at the home.

use crate::block::Header;
use logstead_home::Position;
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most bytes of blocks that wait here.
const BYTES_MAX: usize = 32 << 20;
/// Bytes that a block counts for beside its own.
const BLOCK_OVERHEAD: usize = 128;

fn footprint(block: &[u8]) -> usize {
    block.len() + BLOCK_OVERHEAD
}

#[derive(Default)]
struct Streamed {
    database: DatabaseId,
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
    pub fn begin(&self, database: DatabaseId, epoch: Epoch) {
        let before = std::mem::replace(
            &mut *self.streamed.lock(),
            Streamed {
                database,
                epoch,
                ..Streamed::default()
            },
        );
        // Without the lock: it may be large.
        drop(before);
    }

    /// A block has come. False: it is none of this epoch and lane, or there is no room for it.
    pub fn add(&self, lane: LaneId, at: Position, block: Arc<[u8]>) -> bool {
        let Ok((header, _)) = Header::decode(&block) else {
            return false;
        };
        let mut streamed = self.streamed.lock();
        let is_of_epoch = (header.database, header.epoch, header.lane)
            == (streamed.database, streamed.epoch, lane);
        let footprint = footprint(&block);
        let is_taken = is_of_epoch && streamed.bytes + footprint <= BYTES_MAX;
        if is_taken {
            streamed.bytes += footprint;
            if let Some(same) = streamed.blocks.insert((lane, at), block) {
                streamed.bytes -= self::footprint(&same);
            }
        }
        is_taken
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
                streamed.bytes -= footprint(&block);
            }
        }
    }

    /// Only these lanes are read.
    pub(crate) fn keep_lanes(&self, lanes: &[LaneId]) {
        let mut streamed = self.streamed.lock();
        let Streamed { blocks, bytes, .. } = &mut *streamed;
        blocks.retain(|(lane, _), block| {
            let is_kept = lanes.contains(lane);
            if !is_kept {
                *bytes -= footprint(block);
            }
            is_kept
        });
    }

    /// Bytes of blocks that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.streamed.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::FORMAT_VERSION;
    use logstead_types::BlockNo;

    const LANE: LaneId = LaneId(1);
    const DATABASE: DatabaseId = DatabaseId(9);

    fn at(offset: u64) -> Position {
        Position { segment: 3, offset }
    }

    fn block(epoch: u32, lane: LaneId, len: usize) -> Arc<[u8]> {
        let header = Header {
            version: FORMAT_VERSION,
            database: DATABASE,
            epoch: Epoch(epoch),
            lane,
            block: BlockNo(0),
            durable_through: 0,
            payload_len: 0,
            entries: 0,
            csn_lowest: Csn(1),
            csn_highest: Csn(1),
            payload_crc: 0,
            previous_header_crc: 0,
            horizon: Csn::ZERO,
        };
        let mut block = header.encode().0.to_vec();
        block.resize(len.max(block.len()), 0);
        block.into()
    }

    fn counted(lens: &[usize]) -> usize {
        lens.iter().map(|len| len + BLOCK_OVERHEAD).sum()
    }

    #[test]
    fn what_was_read_is_forgotten_and_what_comes_twice_counts_once() {
        let streamed = StreamedBlocks::default();
        streamed.begin(DATABASE, Epoch(2));
        for offset in [0, 10, 20, 10] {
            assert!(streamed.add(LANE, at(offset), block(2, LANE, 100)));
        }
        assert!(streamed.add(LaneId(2), at(0), block(2, LaneId(2), 200)));
        assert_eq!(streamed.waiting_bytes(), counted(&[100, 100, 100, 200]));
        streamed.forget(Epoch(1), LANE, at(20));
        assert_eq!(streamed.waiting_bytes(), counted(&[100, 100, 100, 200]));
        streamed.forget(Epoch(2), LANE, at(20));
        assert_eq!(streamed.waiting_bytes(), counted(&[100, 200]));
        assert!(streamed.block(Epoch(2), LANE, at(10)).is_none());
        assert!(streamed.block(Epoch(2), LANE, at(20)).is_some());
        assert!(streamed.block(Epoch(3), LANE, at(20)).is_none());
        streamed.keep_lanes(&[LANE]);
        assert_eq!(streamed.waiting_bytes(), counted(&[100]));
        streamed.begin(DATABASE, Epoch(3));
        assert_eq!(streamed.waiting_bytes(), 0);
    }

    #[test]
    fn what_is_no_block_of_the_epoch_and_lane_is_not_taken() {
        let streamed = StreamedBlocks::default();
        streamed.begin(DATABASE, Epoch(2));
        assert!(!streamed.add(LANE, at(0), Arc::from([])));
        assert!(!streamed.add(LANE, at(0), vec![0; 500].into()));
        assert!(!streamed.add(LANE, at(0), block(1, LANE, 100)));
        assert!(!streamed.add(LANE, at(0), block(2, LaneId(2), 100)));
        streamed.begin(DatabaseId(8), Epoch(2));
        assert!(!streamed.add(LANE, at(0), block(2, LANE, 100)));
        assert_eq!(streamed.waiting_bytes(), 0);
    }

    #[test]
    fn what_waits_is_bounded_also_if_it_is_small() {
        let streamed = StreamedBlocks::default();
        streamed.begin(DATABASE, Epoch(0));
        let small = block(0, LANE, 0);
        let mut taken = 0;
        while streamed.add(LANE, at(taken), Arc::clone(&small)) {
            taken += 1;
        }
        let bytes = streamed.waiting_bytes();
        assert!(bytes <= BYTES_MAX && bytes + footprint(&small) > BYTES_MAX);
        streamed.forget(Epoch(0), LANE, at(1));
        assert!(streamed.add(LANE, at(taken), small));
    }

    #[test]
    fn the_horizon_of_an_epoch_only_grows() {
        let streamed = StreamedBlocks::default();
        streamed.begin(DATABASE, Epoch(2));
        streamed.learn(Csn(9));
        streamed.learn(Csn(5));
        assert_eq!(streamed.horizon(), (Epoch(2), Csn(9)));
        streamed.begin(DATABASE, Epoch(3));
        assert_eq!(streamed.horizon(), (Epoch(3), Csn::ZERO));
    }
}
