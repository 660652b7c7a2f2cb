//! What checkpoints tell about themselves.

use std::time::Duration;

use logstead_commit::LogFailed;
use logstead_types::{Csn, Epoch};

use crate::fault_error::FaultError;

/// Why a checkpoint was not taken. The one before stays in force, and nothing that it needs is gone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another one is being taken.
    #[error("another checkpoint is being taken")]
    Busy,
    /// The server is about to stop.
    #[error("the checkpoint was given up because the server is stopping")]
    Stopped,
    /// An instance is being restarted, which does not wait for it: it is begun anew.
    #[error("the checkpoint was given up because an instance is restarted")]
    Interrupted,
    /// The engine follows another server's log, whose checkpoints are that server's.
    #[error("a replica takes no checkpoints")]
    Replica,
    /// There is no room for its pages (53100).
    #[error("there is no room for a checkpoint; free some space: {0}")]
    DiskFull(String),
    /// The log cannot be written any more, or another server has taken over.
    #[error(transparent)]
    LogFailed(#[from] LogFailed),
    /// Another server has taken over.
    #[error("another server took over; this one publishes no checkpoint any more")]
    Overtaken,
    /// The home failed, or what it holds is damaged.
    #[error(transparent)]
    Pages(logstead_checkpoint::CheckpointError),
    /// What the log behind the checkpoint before has changed cannot be put over what that has.
    #[error("what the log has changed cannot be written: {0}")]
    Fault(#[from] FaultError),
}

impl CheckpointError {
    /// Will no later one succeed either?
    pub fn is_final(&self) -> bool {
        match self {
            CheckpointError::Stopped
            | CheckpointError::Replica
            | CheckpointError::LogFailed(_)
            | CheckpointError::Overtaken => true,
            CheckpointError::Busy
            | CheckpointError::Interrupted
            | CheckpointError::DiskFull(_)
            | CheckpointError::Pages(_)
            | CheckpointError::Fault(_) => false,
        }
    }
}

impl From<logstead_checkpoint::CheckpointError> for CheckpointError {
    fn from(error: logstead_checkpoint::CheckpointError) -> CheckpointError {
        use logstead_checkpoint::CheckpointError as Of;
        match error {
            Of::Home(error) if error.is_disk_full() => CheckpointError::DiskFull(error.to_string()),
            Of::Overtaken => CheckpointError::Overtaken,
            error => CheckpointError::Pages(error),
        }
    }
}

/// How long a checkpoint took, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointTimings {
    /// Until everything below its CSN was durable.
    pub waiting: Duration,
    /// Looking at chunks and writing pages; holding back for the budget and resting included.
    pub walking: Duration,
    /// Making the directory and storing what was left.
    pub directory: Duration,
    /// Storing the record and publishing it.
    pub publishing: Duration,
    /// Removing what nothing needs any more.
    pub collecting: Duration,
}

/// What a checkpoint did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// It holds what was committed below this CSN.
    pub csn: Csn,
    /// The server's life that took it.
    pub epoch: Epoch,
    /// When it was published, in microseconds since 2000-01-01 00:00 UTC.
    pub taken_at_micros: i64,
    /// A record was published: false if nothing had changed.
    pub written: bool,
    /// Its pages were written by a replica: none of what follows was written here.
    pub by_replica: bool,
    /// Chunks looked at because something was done to them.
    pub chunks_looked_at: u64,
    /// Rows written.
    pub rows: u64,
    /// Pages of whole chunks written.
    pub pages: u64,
    /// Delta pages written.
    pub delta_pages: u64,
    /// Tiles of indexes written.
    pub tiles: u64,
    /// Entries of indexes written.
    pub entries: u64,
    /// Nodes of the directory written.
    pub nodes: u64,
    /// Bytes of pages and nodes written.
    pub bytes: u64,
    /// Of them, bytes of pages that were stored as they were, out of objects that are to go.
    pub bytes_moved: u64,
    /// Objects stored, without the record.
    pub objects: u64,
    /// Objects that the checkpoint consists of now, and their bytes.
    pub objects_in_use: u64,
    /// Bytes of those objects.
    pub bytes_in_use: u64,
    /// Of them, bytes of pages and nodes that it needs; the others wait for their objects to be compacted.
    pub bytes_live: u64,
    /// Objects removed.
    pub objects_removed: u64,
    /// Segments of the log removed.
    pub segments_removed: u64,
    /// Side segments of large transactions removed.
    pub sides_removed: u64,
    /// Removing what nothing needs failed: it is tried again after the next one.
    pub collection_failed: Option<String>,
    /// How long it took.
    pub took: CheckpointTimings,
}

/// What checkpoints have done since the start.
#[derive(Clone, Debug, Default)]
pub struct CheckpointStats {
    /// The one that the start has loaded.
    pub loaded: Option<Csn>,
    /// Published.
    pub published: u64,
    /// Asked for when nothing had changed.
    pub unchanged: u64,
    /// Failed.
    pub failed: u64,
    /// Replicas that offer to write pages, now.
    pub page_services: u64,
    /// Of those published, those of which a replica has written the pages.
    pub by_replicas: u64,
    /// How often a replica was to do so, and this server had to take the checkpoint itself; and why, the last time.
    pub replica_failures: u64,
    /// See there.
    pub last_replica_error: Option<String>,
    /// How often none was ready to be asked, after one had been there: away, or silent, or at an earlier order.
    pub replica_absences: u64,
    /// Bytes written by those published.
    pub bytes: u64,
    /// The newest that was published.
    pub last: Option<CheckpointReport>,
    /// The last failure, if it was later than that.
    pub last_error: Option<String>,
    /// Pages that were met damaged, under what the log had changed: how many chunks, and which was the last. What is
    /// not damaged of them, and what the log has changed, was written behind it.
    pub damaged_chunks: u64,
    /// See there; or a leaf of an index, for which entries of the log wait: the next start builds that index from rows.
    pub last_damage: Option<String>,
}

impl CheckpointStats {
    pub(crate) fn note(&mut self, taken: &Result<CheckpointReport, CheckpointError>) {
        match taken {
            Ok(report) if report.written => {
                self.published += 1;
                self.by_replicas += u64::from(report.by_replica);
                self.bytes += report.bytes;
                self.last = Some(report.clone());
                self.last_error = None;
            }
            Ok(_) => {
                self.unchanged += 1;
                self.last_error = None;
            }
            Err(error) => {
                self.failed += 1;
                self.last_error = Some(error.to_string());
            }
        }
    }
}
