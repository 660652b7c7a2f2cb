//! What system relations and the planner ask of the server beside the catalog.
//!
//! Does not: know who answers; the store does for the present ([`CatalogStore`](crate::CatalogStore)), a session for
//! the past.

use super::{CommitToken, ReplicaReport, Tariff};
use logstead_engine::{
    CacheStats, CheckpointStats, ChunkCounts, CommitPath, HomeUsage, PrewarmStats, RecoveryReport,
    ReplicaHoldReport, RestorePoint,
};
use logstead_types::{InstanceId, PartitionId, TableId};
use std::sync::Arc;

/// Facts about stored data that no catalog version holds.
pub trait RuntimeStatistics: Send + Sync {
    /// Last value of a sequence by its storage, and whether it was handed out.
    fn sequence(&self, storage: TableId) -> Option<(i64, bool)>;
    /// Rows of a table, roughly.
    fn table_rows(&self, storage: TableId) -> Option<u64>;
    /// Bytes of a table, roughly.
    fn table_bytes(&self, storage: TableId) -> Option<u64> {
        // A row's version takes about this much beside its columns.
        const ROW_BYTES: u64 = 128;
        Some(self.table_rows(storage)?.saturating_mul(ROW_BYTES))
    }
    /// The way from pre-commit to acknowledgment, with all that it counts.
    fn commit_path(&self) -> Option<Arc<CommitPath>>;
    /// Which commits there are now: all of a primary's, or those that a replica shows.
    fn commit_token(&self) -> Option<CommitToken>;
    /// What was asked of the log's homes, one by one.
    fn home_usage(&self) -> Option<Vec<HomeUsage>>;
    /// What the cache of objects on the local disk has done; absent where there is none.
    fn cache(&self) -> Option<CacheStats>;
    /// What that costs.
    fn tariff(&self) -> Option<Arc<Tariff>>;
    /// What checkpoints have done.
    fn checkpoints(&self) -> Option<CheckpointStats>;
    /// What is kept for replicas.
    fn replica_holds(&self) -> Option<Vec<ReplicaHoldReport>>;
    /// What can be gone back to.
    fn restore_points(&self) -> Option<Vec<RestorePoint>>;
    /// What the start has read; absent until it is told.
    fn recovery(&self) -> Option<Arc<RecoveryReport>>;
    /// The instance that owns a virtual partition.
    fn instance_of(&self, partition: PartitionId) -> Option<InstanceId> {
        let _ = partition;
        None
    }
    /// How much of all tables is in memory.
    fn chunks(&self) -> Option<ChunkCounts>;
    /// What was brought in of what the server before had in memory.
    fn prewarm(&self) -> Option<PrewarmStats>;
    /// What a replica tells of itself; absent at a primary.
    fn replica(&self) -> Option<ReplicaReport>;
}
