//! The newest blocks of all lanes, kept in memory for those who follow the log by a stream from its server.
//!
//! Owns: copies of blocks that the home has written, numbered in the order in which they were, up to
//! `FEED_BYTES_MAX` of them. Nothing is kept, and nothing is copied, while nobody follows.
//!
//! Invariant: a block is here before the lane's hardened cursor passes it. So whoever reads the horizon `H` first and
//! then takes the blocks up to the newest one has everything below `H` that was written while he followed, unless he
//! is told that something has gone ([`FeedReader::take`]).
//!
//! What is here is a hint: who misses a block finds it at the home. So nobody waits for those who follow: of what they
//! have not taken the oldest goes first.

use logstead_home::Position;
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most bytes of blocks that are kept.
const FEED_BYTES_MAX: usize = 16 << 20;
/// Bytes that a block counts for beside its own.
const BLOCK_OVERHEAD: usize = 64;
/// Most blocks that are taken at once: commits wait meanwhile.
const TAKEN_MAX: usize = 1024;

/// A block as it was written, without the padding behind it.
#[derive(Clone, Debug)]
pub struct FeedBlock {
    /// Its lane.
    pub lane: LaneId,
    /// Where it begins.
    pub at: Position,
    /// Header and entries.
    pub bytes: Arc<[u8]>,
}

impl FeedBlock {
    fn footprint(&self) -> usize {
        self.bytes.len() + BLOCK_OVERHEAD
    }
}

#[derive(Default)]
struct FeedBlocks {
    blocks: VecDeque<FeedBlock>,
    /// The number of the first of them.
    first: u64,
    bytes: usize,
}

impl FeedBlocks {
    fn end(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }

    fn clear(&mut self) {
        self.first = self.end();
        self.bytes = 0;
        self.blocks = VecDeque::new();
    }
}

/// The blocks of one server's lanes.
#[derive(Default)]
pub struct BlockFeed {
    /// How many follow.
    readers: AtomicUsize,
    kept: Mutex<FeedBlocks>,
}

impl BlockFeed {
    /// A lane's block is written.
    #[inline]
    pub(crate) fn publish(&self, lane: LaneId, at: Position, block: &[u8]) {
        // A larger one would drive out all others, and itself.
        if self.readers.load(Ordering::SeqCst) > 0 && block.len() < FEED_BYTES_MAX / 2 {
            self.keep(FeedBlock {
                lane,
                at,
                bytes: block.into(),
            });
        }
    }

    fn keep(&self, block: FeedBlock) {
        // Their memory is given back without the lock.
        let mut driven_out = Vec::new();
        let mut kept = self.kept.lock();
        // The last reader may have left since it was looked for.
        if self.readers.load(Ordering::SeqCst) == 0 {
            return;
        }
        kept.bytes += block.footprint();
        kept.blocks.push_back(block);
        while kept.bytes > FEED_BYTES_MAX
            && let Some(oldest) = kept.blocks.pop_front()
        {
            kept.first += 1;
            kept.bytes -= oldest.footprint();
            driven_out.push(oldest);
        }
        drop(kept);
    }

    /// Somebody follows, from the blocks on that are written from now on.
    pub fn follow(self: &Arc<Self>) -> FeedReader {
        let kept = self.kept.lock();
        self.readers.fetch_add(1, Ordering::SeqCst);
        FeedReader {
            next: kept.end(),
            feed: Arc::clone(self),
        }
    }
}

/// Somebody who follows; dropping it ends that.
pub struct FeedReader {
    feed: Arc<BlockFeed>,
    next: u64,
}

impl FeedReader {
    /// Adds blocks that were written since the last call to `blocks`, at least one and otherwise at most `bytes_max`
    /// bytes and `TAKEN_MAX` blocks. True: there are more. Some may be missing of a reader who has not come for long.
    pub fn take(&mut self, bytes_max: usize, blocks: &mut Vec<FeedBlock>) -> bool {
        let kept = self.feed.kept.lock();
        self.next = self.next.max(kept.first);
        let mut bytes = 0;
        let skipped = usize::try_from(self.next - kept.first).unwrap_or(usize::MAX);
        for (count, block) in kept.blocks.iter().skip(skipped).enumerate() {
            bytes += block.bytes.len();
            if count == TAKEN_MAX || bytes > bytes_max && count > 0 {
                return true;
            }
            self.next += 1;
            blocks.push(block.clone());
        }
        false
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        let mut kept = self.feed.kept.lock();
        if self.feed.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            kept.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(feed: &BlockFeed, number: u64, len: usize) {
        let at = Position {
            segment: 0,
            offset: number,
        };
        feed.publish(LaneId(0), at, &vec![0; len]);
    }

    fn taken(reader: &mut FeedReader, bytes_max: usize) -> (Vec<u64>, bool) {
        let mut blocks = Vec::new();
        let more = reader.take(bytes_max, &mut blocks);
        (blocks.iter().map(|block| block.at.offset).collect(), more)
    }

    #[test]
    fn nothing_is_kept_while_nobody_follows() {
        let feed = Arc::new(BlockFeed::default());
        publish(&feed, 0, 10);
        let mut one = feed.follow();
        publish(&feed, 1, 10);
        let mut other = feed.follow();
        publish(&feed, 2, 10);
        assert_eq!(taken(&mut one, 1000), (vec![1, 2], false));
        assert_eq!(taken(&mut other, 1000), (vec![2], false));
        assert_eq!(taken(&mut other, 1000), (vec![], false));
        drop(one);
        assert_eq!(feed.kept.lock().blocks.len(), 2);
        drop(other);
        assert_eq!(feed.kept.lock().blocks.len(), 0);
        publish(&feed, 3, 10);
        assert_eq!(feed.kept.lock().bytes, 0);
    }

    #[test]
    fn a_reader_takes_so_much_at_a_time_and_at_least_one_block() {
        let feed = Arc::new(BlockFeed::default());
        let mut reader = feed.follow();
        for number in 0..4 {
            publish(&feed, number, 100);
        }
        assert_eq!(taken(&mut reader, 10), (vec![0], true));
        assert_eq!(taken(&mut reader, 200), (vec![1, 2], true));
        assert_eq!(taken(&mut reader, 200), (vec![3], false));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let feed = Arc::new(BlockFeed::default());
        let mut reader = feed.follow();
        let len = FEED_BYTES_MAX / 4 - BLOCK_OVERHEAD;
        for number in 0..10 {
            publish(&feed, number, len);
            assert!(feed.kept.lock().bytes <= FEED_BYTES_MAX);
        }
        assert_eq!(taken(&mut reader, usize::MAX), (vec![6, 7, 8, 9], false));
        // One that is too large for it drives nobody out.
        publish(&feed, 10, FEED_BYTES_MAX);
        assert_eq!(feed.kept.lock().blocks.len(), 4);
        assert_eq!(taken(&mut reader, usize::MAX), (vec![], false));
    }
}
