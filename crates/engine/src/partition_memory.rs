//! How much of each virtual partition is in memory. Memory is one budget: what one instance needs another goes
//! without, and nothing divides it but need.
//!
//! Nothing is counted while rows come and go, so nobody pays for it. Who asks has all chunks counted, and some
//! thousands looked into.

use logstead_types::{PartitionId, Rid};

use crate::engine::Engine;
use crate::partition::VIRTUAL_PARTITIONS;
use crate::rows::TableRows;
use crate::txn::is_of_users;
use crate::version::{CHUNK_SLOTS, Chunk, Guard};

/// Chunks that are looked into.
const SAMPLE: u64 = 4096;

/// What is in memory of the rows of a virtual partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionMemory {
    /// Chunks of which there is something.
    pub chunks: u64,
    /// What these take in bytes, with older versions of rows: exact if there are few in all partitions, else from a
    /// sample of them.
    pub bytes: u64,
}

impl Engine {
    /// Of each virtual partition, what is in memory of its rows: of all tables but the system's and temporary ones.
    /// What comes and goes meanwhile may count or not. It takes a look at each chunk.
    pub fn partition_memory(&self) -> Vec<PartitionMemory> {
        let mut found = vec![PartitionMemory::default(); usize::from(VIRTUAL_PARTITIONS)];
        self.each_present_chunk(|partition, _| found[usize::from(partition.0)].chunks += 1);
        let present: u64 = found.iter().map(|partition| partition.chunks).sum();
        let stride = present.div_ceil(SAMPLE).max(1);
        // Each partition by itself: chunks of a divided table take turns, so a stride over all of them would pass over
        // whole partitions.
        let mut numbers = vec![0_u64; usize::from(VIRTUAL_PARTITIONS)];
        self.each_present_chunk(|partition, chunk| {
            let at = usize::from(partition.0);
            if numbers[at] % stride == 0 {
                let bytes = chunk.resident_bytes(&Guard::pin()) as u64;
                found[at].bytes += bytes * stride;
            }
            numbers[at] += 1;
        });
        found
    }

    fn each_present_chunk(&self, mut each: impl FnMut(PartitionId, &Chunk)) {
        let tables: Vec<_> = self.inner().tables.read().values().cloned().collect();
        let rows = tables.iter().map(|table| &*table.rows);
        for rows in rows.filter(|rows| is_of_users(rows)) {
            each_present_chunk_of(rows, &mut each);
        }
    }
}

fn each_present_chunk_of(rows: &TableRows, each: &mut impl FnMut(PartitionId, &Chunk)) {
    for number in 0..rows.chunk_end() {
        let chunk = rows.chunk(number).filter(|chunk| chunk.is_present());
        if let Some(chunk) = chunk {
            each(rows.partition_of(Rid(number * CHUNK_SLOTS as u64)), chunk);
        }
    }
}
