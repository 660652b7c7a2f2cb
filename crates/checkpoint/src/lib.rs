//! Checkpoints: pages of rows in immutable objects, the directory that finds them, and the record that names a whole
//! one.
//!
//! The way of a checkpoint, from the rows of a chunk to what recovery reads:
//! 1. [`ChunkWriter`] makes pages of the rows that changed, or of all rows of a chunk
//!    ([`PageChain::is_due_for_merge`]), each of them a [`frame`]: compressed, checksummed, with its key inside;
//!    [`LeafWriter`] does the same for the tiles of indexes;
//! 2. [`ObjectWriter`] collects frames into objects of up to 64 MiB and stores them, at no more bytes per second than
//!    [`RateLimiter`] allows;
//! 3. [`Directory::apply`] writes the nodes of the directory that differ, and tells what came into use and went out of
//!    it;
//! 4. a [`CheckpointRecord`] names the root, the objects, and where the log is needed from; the manifest names the
//!    record.
//!
//! Back again: [`Directory::scan`] gives the chunks, [`PageReader::chunk`] their rows, each slot once;
//! [`Directory::tiles`] and [`PageReader::leaf`] do so for indexes.
//!
//! What servers of before have left is made anew when a server starts: [`CheckpointUpgrade`].
//!
//! Everything that is read is untrusted: a flipped bit anywhere is found and named, and what is read in another's place
//! is not taken for it. Formats are pinned in docs/format.md.
//!
//! Does not: know tables, versions or transactions (crate `engine`), or when a checkpoint is due.
#![forbid(unsafe_code)]

mod attempt;
mod backup;
mod branch;
mod chunk;
mod compact;
mod contents;
mod copy;
mod directory;
mod error;
mod fork;
pub mod frame;
mod fsck;
mod holds;
mod index_tile;
mod node;
mod node_cache;
mod object_damage;
mod page_ref;
mod pins;
mod publish;
mod read;
mod record;
mod retention;
mod rows;
mod upgrade;
mod writer;

pub use backup::{BACKUP, BackupError, BackupReport, BackupSession, backup};
pub use branch::{
    BranchError, RestoreReport, create_branch, directory_of, drop_branch, restore_point, served,
};
pub use chunk::{ChunkWriter, ImageKind, PAGE_BYTES};
pub use compact::CompactionLimits;
pub use copy::{CopyStats, copy_checkpoint, copy_objects};
pub use directory::{Directory, DirectoryUpdate, LiveChanges, Scan, TileBoundaries};
pub use error::{CheckpointError, Damage, PinsError};
pub use fsck::{FsckReport, fsck};
pub use holds::{Hold, Holds, ObjectHold};
pub use index_tile::{Leaf, LeafWriter};
pub use logstead_home::{OBJECT_BYTES_MAX, ObjectId};
pub use object_damage::{damage_of_object, object_damage};
pub use page_ref::{FENCE_BYTES_MAX, PageChain, PageKey, PageOwner, PageRef};
pub use pins::{
    BranchState, PIN_NAME_BYTES_MAX, PINS, Pin, PinKind, Pins, RecoveryPoint, RecoveryTarget,
    choose, pin_point, points, points_of_now,
};
pub use publish::{
    CheckpointHead, CheckpointPages, CollectionStats, NewCheckpoint, PublishedCheckpoint,
    Publisher, RewritePlan, objects_after,
};
pub use read::{NewerPages, PageReader, ReadStats, RowMergeFn, RowPageSpans, move_pages};
pub use record::{CheckpointRecord, DividedTable, IndexInfo, ObjectUse, RetainedRecord, TableInfo};
pub use retention::Retention;
pub use rows::{
    CHUNK_SLOTS, ChunkSize, DecodedPage, PageRows, ROW_BYTES_MAX, RowFragment, RowsPageBuilder,
    SlotState, read_rows,
};
pub use upgrade::{CheckpointUpgrade, UpgradeProgress, UpgradedCheckpoint};
pub use writer::{ObjectIdAllocator, ObjectWriter, RateLimiter, StoredObjects, WrittenObjects};
