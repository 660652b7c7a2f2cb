//! Tables, versions, indexes, transactions, garbage collection.
//!
//! The life of a write:
//! 1. [`Txn::insert`], [`Txn::update`], [`Txn::delete`] install an uncommitted version at the top of the row's chain
//!    (which is the row lock), maintain the indexes, and append a record to the transaction's own buffer.
//! 2. [`Txn::precommit`] takes room in the worker's lane, then the lane's lock, sets the transaction Committing, draws
//!    its CSN, copies the entry into the lane, and flips it to Precommitted: its versions are visible and its row locks
//!    free, before anything is durable.
//! 3. [`Worker::flush`] writes the lane's block; the home's completion moves the lane's lowest CSN, the horizon is
//!    computed again, and [`Engine::acknowledged`] wakes who waited for it. Only then does a client hear of it.
//! 4. [`Worker::collect_garbage`] unlinks what no snapshot can see and the horizon has passed.
//!
//! Invariants:
//! - A snapshot sees exactly the transactions whose CSN is below it (T4).
//! - Nothing is collected or used again before what superseded it is below the horizon (T1).
//! - What rows, indexes and buffers take stays within one budget; beyond it writes fail, and reads, deletes, rollback
//!   and collection go on (see [`Memory`]).
//! - No operation blocks: where another transaction is in the way, the caller gets a [`LockConflict`] to await, and
//!   where something is not in memory a [`PageFault`].
//!
//! It knows no SQL, types or names: rows are columns of bytes, indexes get their keys from a [`KeyExtractor`]. It knows
//! no runtime: whoever waits is a [`std::task::Waker`].
//!
//! # Embedded
//!
//! An application can use the engine without SQL. It opens an engine over a home, makes tables and indexes by number
//! (the same after every start; rows come back by themselves, indexes are built again), and runs a [`WorkerLoop`] on
//! one thread per worker: that runs tasks, flushes, and collects garbage.
//!
//! ```
//! use std::ops::Bound;
//! use std::sync::Arc;
//!
//! use logstead_engine::{
//!     Engine, EngineOptions, Env, Guard, IndexCursor, IndexId, Isolation, KeyExtractor, KeyKind, MemoryHome,
//!     RowBuilder, RowRef, ScanCursor, TableId, WorkerId, WorkerLoop,
//! };
//!
//! /// The first column, whose bytes compare as its values do, is the key.
//! struct ById;
//!
//! impl KeyExtractor for ById {
//!     fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
//!         match row.column(0) {
//!             Some(bytes) => {
//!                 out.extend_from_slice(bytes);
//!                 KeyKind::Unique
//!             }
//!             None => KeyKind::Absent,
//!         }
//!     }
//!
//!     fn keys(&self) -> u64 {
//!         1
//!     }
//! }
//!
//! fn account(id: u32, balance: i64) -> Vec<u8> {
//!     let mut row = RowBuilder::new();
//!     row.start(1, 2);
//!     row.push(Some(&id.to_be_bytes()));
//!     row.push(Some(&balance.to_be_bytes()));
//!     row.finish().to_vec()
//! }
//!
//! fn balance(row: RowRef<'_>) -> Option<i64> {
//!     Some(i64::from_be_bytes(row.column(1)?.try_into().ok()?))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `LocalHome::open(directory, &env, LocalOptions::default())` keeps the log on a disk.
//! let home = MemoryHome::new(4 << 20);
//! let (engine, _report) = Engine::open(EngineOptions::default(), home.into(), Env::real())?;
//! let accounts = engine.create_table(TableId(20_000));
//! let by_id = engine.create_index(&accounts, IndexId(20_001), true, Arc::new(ById));
//!
//! let worker_loop = WorkerLoop::new(&engine, WorkerId(0));
//! let worker = worker_loop.worker();
//!
//! // Three accounts, durable when `block_on` returns.
//! let mut txn = worker.begin(Isolation::ReadCommitted);
//! for id in 1..=3 {
//!     txn.insert(&accounts, &account(id, 100))?;
//! }
//! worker_loop.block_on(txn.commit())?;
//!
//! // Read one, change it, delete another; a savepoint takes back a part.
//! let mut txn = worker.begin(Isolation::RepeatableRead);
//! let guard = Guard::pin();
//! let found = txn.get(&by_id, &2_u32.to_be_bytes(), &guard)?.expect("it was inserted");
//! let (rid, version) = (found.rid, found.version);
//! txn.update(&accounts, rid, version, &account(2, 150))?;
//! let before = txn.savepoint();
//! txn.insert(&accounts, &account(4, 1))?;
//! assert!(txn.rollback_to(before));
//! let found = txn.get(&by_id, &3_u32.to_be_bytes(), &guard)?.expect("it was inserted");
//! let (rid, version) = (found.rid, found.version);
//! txn.delete(&accounts, rid, version)?;
//! drop(guard);
//! worker_loop.block_on(txn.commit())?;
//!
//! // All rows, in no order; and a range, in the index's.
//! let mut txn = worker.begin(Isolation::ReadCommitted);
//! let guard = Guard::pin();
//! let (mut cursor, mut sum) = (ScanCursor::new(&accounts), 0);
//! while let Some(row) = txn.scan_next(&mut cursor, &guard)? {
//!     sum += balance(row.bytes).unwrap_or(0);
//! }
//! assert_eq!(sum, 250);
//! let from = Bound::Included(2_u32.to_be_bytes().to_vec());
//! let mut cursor = IndexCursor::new(&by_id, from, Bound::Unbounded, false);
//! let row = txn.index_next(&mut cursor, &guard)?.expect("2 is there");
//! assert_eq!(balance(row.bytes), Some(150));
//! assert!(txn.index_next(&mut cursor, &guard)?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! A transaction that wants a row that another one holds gets [`WriteError::Blocked`]: it awaits the [`LockConflict`],
//! looks at the row again, and writes again. One that needs what is not in memory gets [`PageFault`], a read too: it
//! awaits that and begins the operation again; without a memory limit it never does. `examples/embedded.rs` shows that,
//! several tasks on several workers, and a log on a disk that is opened again.
#![deny(unsafe_code)]

mod as_of;
mod checkpoint;
mod chunk_tail;
pub mod delta;
mod engine;
mod error;
mod evict;
mod fault_error;
mod garbage;
mod index;
mod index_build;
mod index_entries;
mod instance_restart;
mod load;
mod logged_chunks;
mod memory;
mod memory_queue;
mod page_fault;
mod page_loader;
mod page_store;
mod partition;
mod partition_memory;
mod past;
mod prewarm;
mod prewarm_stats;
mod read_ahead;
mod replay;
mod replica;
pub mod row;
mod row_lock;
mod rows;
mod serializable;
mod snapshot_pins;
mod snapshots;
mod stats;
mod stored_checkpoint;
mod table;
mod table_lock;
mod tree;
mod txn;
mod txn_id;
mod txn_state;
mod verify;
#[allow(
    unsafe_code,
    reason = "lock-free version chains: with `tree::cell` the modules with unsafe code"
)]
mod version;
mod wait_cause;
mod wait_graph;
mod warmup;
mod worker;
mod worker_loop;
mod write_set;
mod xid;

pub use as_of::AsOfDatabase;
pub use checkpoint::{
    Checkpoint, CheckpointListener, Checkpointer, ReplicaCheckpoint, RestorePointError,
    RestoredIndex,
};
pub use engine::{Engine, EngineOptions};
pub use error::{CommitError, OpenError, ReplayError, ReplicaError, WriteError};
pub use evict::{EvictionStats, Evictor};
pub use fault_error::FaultError;
pub use index::{Index, KeyExtractor, KeyKind};
pub use instance_restart::{DroppedInstance, RestartError, RestartRound};
pub use logstead_checkpoint::CheckpointError as PagesError;
pub use logstead_checkpoint::RecoveryTarget;
pub use logstead_checkpoint::Retention;
pub use logstead_commit::adapt::TunedSetting;
pub use logstead_commit::{
    AckFuture, AckTiming, AdaptiveSettings, AdaptiveStatus, CommitOptions, CommitPath, CommitStage,
    CommitWait, ForceCommit, LaneStats, Latencies, LogFailed, Phase, ProtocolKind, QueueKind,
    Tracking, WaitCounts, Watermark, WorkerBlocks,
};
pub use logstead_env::Env;
pub use logstead_home::{
    CacheStats, HomeUsage, LocalHome, LocalOptions, LogHome, MemoryHome, ObjectId, PriceList,
    RequestKind, Usage,
};
pub use logstead_types::{Csn, IndexId, InstanceId, PartitionId, Rid, TableId, WorkerId};
pub use logstead_wal::lease::{Lease, LeaseEvent, LeaseLost, LeaseOptions};
pub use logstead_wal::manifest::LeaseHolder;
pub use logstead_wal::recovery::follow::StreamedBlocks;
pub use logstead_wal::server_identity;
pub use logstead_wal::{BlockFeed, FeedBlock, FeedReader, FlushMode, FlushOutcome};
pub use memory::{ALLOWANCE_BYTES_MAX, Charge, Memory, OutOfMemory, footprint};
pub use page_fault::{ExpectPresent, PageFault};
pub use page_store::{
    CheckpointError, CheckpointReport, CheckpointStats, CheckpointTimings, PageOrder, PageRead,
    PageReadAnswer, PageReply, PageRequest, PageRow, PageServiceOffer, PageServices,
    ReplicaHoldGuard, ReplicaHoldReport, ReplicaHolds, ReplicaLag, RestorePoint,
};
pub use partition::{
    DistributionKey, Instances, InstancesTouched, VIRTUAL_PARTITIONS, partition_of,
};
pub use partition_memory::PartitionMemory;
pub use prewarm::{LEAF_RUNS_MAX, PrewarmList, ROW_RUNS_MAX};
pub use prewarm_stats::{PrewarmState, PrewarmStats};
pub use replay::RecoveryReport;
pub use replica::{Replica, ReplicaBatch, ReplicaCheckpoints, ReplicaPageReader};
pub use row::{RowBuilder, RowError, RowRef};
pub use row_lock::RowLock;
pub use stats::Stats;
pub use table::{RowLockCounts, TEMPORARY_AT_REPLICAS, Table};
pub use table_lock::{TableLock, TableLockMask};
pub use tree::TreeReport;
pub use txn::certify::SafeSnapshot;
pub use txn::exported_snapshot::ExportedSnapshot;
pub use txn::fault_wait::FaultWait;
pub use txn::index_cursor::IndexCursor;
pub use txn::lock_wait::{LockWait, WaitError};
pub use txn::precommit::{CommitReceipt, TryCommitError};
pub use txn::savepoint::SavepointId;
pub use txn::xid::Xid;
pub use txn::{CursorSnapshot, Isolation, Outcome, Row, ScanCursor, Txn, VersionId};
pub use txn_id::TxnId;
pub use verify::{IndexReport, ScratchFiles, StoredIndex, StoredRows, VerifyError};
pub use version::Guard;
pub use wait_cause::LockConflict;
pub use wait_graph::LockWaitInfo;
pub use warmup::{ChunkCounts, Warmup};
pub use worker::Worker;
pub use worker_loop::{IdleAction, WorkerLoop, yield_now};
pub use xid::{PAIRS_MAX, XidSnapshot, XidStatus};
