//! The write-ahead log: lanes, blocks, entries, records, and how a database comes back from them.
//!
//! The write path, from a transaction to durable:
//! 1. while statements run, row changes are serialized into the transaction's own memory ([`RowRecord::encode`]);
//! 2. [`Lane::room`] takes place in the lane's buffer and on the disk, so that nothing after it can fail;
//! 3. the transaction draws its CSN and [`Lane::push`] copies the entry into the buffer, publishing its CSN as not
//!    durable;
//! 4. [`Lane::flush`] seals the buffer into a block and writes it, in the caller's thread or on the lane's writer;
//! 5. when the home says that this block and all earlier ones are durable, [`Lane::hardened`] and
//!    [`Lane::first_not_durable`] move and the listener is told. Several blocks may be on their way, and a block may
//!    carry entries of other lanes ([`Lane::steal`]).
//!
//! After a crash [`recovery::open`] reads every lane, finds its end, hands the survivors over in CSN order, and writes
//! the recovery mark. [`inspect`] reads a log offline, [`copy`] copies one's tail to another home.
//!
//! Formats are pinned byte by byte in docs/format.md and by golden files under `tests/wal/golden`.
//!
//! Does not: decide when a transaction is committed (crate `commit`), know tables (crate `engine`), or touch the
//! machine (crates `home` and `env`).
#![forbid(unsafe_code)]

pub mod block;
pub mod copy;
pub mod entry;
mod error;
mod feed;
pub mod inspect;
mod lane;
pub mod lease;
pub mod manifest;
mod manifest_writer;
pub mod number_limits;
pub mod record;
pub mod recovery;
pub mod server_identity;
mod stored_manifest;
mod truncate;
pub mod varint;

pub use entry::{Entry, EntryBody, EntryDependencies, SideRef};
pub use feed::{BlockFeed, FeedBlock, FeedReader};
pub use lane::{
    APPEND_CLASSES, AppendTimes, AppendTimesBySize, Cursor, EntryReservation, FlushMode,
    FlushOutcome, FlushTimes, HorizonSource, Lane, LaneConfig, LaneCounters, LaneError, LaneEvent,
    LaneInsertLock, LaneListener, LaneStart, LaneStatus, LogAllocationLimit, NoRoom, PushResult,
    SideSegmentCallback, SideSegmentWriter, append_class,
};
/// Who takes room in a lane says since when.
pub use logstead_home::RoomRequest;
pub use manifest_writer::ManifestWriter;
pub use record::{RecordReader, RowRecord};
pub use truncate::{LogFloor, TruncationReport};

use thiserror::Error;

/// Bytes that are not what the format says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {offset}")]
pub struct FormatError {
    /// What is wrong.
    pub what: &'static str,
    /// Where, from the start of what was decoded.
    pub offset: usize,
}

impl FormatError {
    /// What is wrong, and where.
    pub const fn new(what: &'static str, offset: usize) -> FormatError {
        FormatError { what, offset }
    }
}
