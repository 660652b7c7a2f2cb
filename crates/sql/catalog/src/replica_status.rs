//! What a replica tells of itself: the view `logstead_replica`, and checks over HTTP.
//!
//! Owns: the figures that whoever follows the log leaves here after each round, and whether the server is a replica at
//! all. It outlives the catalogs and engines of a replica that begins again.

use logstead_engine::Watermark;
use logstead_types::{Csn, Epoch};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What whoever follows the log is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaPhase {
    /// It reads the newest checkpoint and the log behind it.
    #[default]
    Starting,
    /// It follows.
    Following,
    /// The last round failed and is repeated.
    Retrying,
    /// What it needs next is gone: it begins again at the newest checkpoint.
    Restarting,
    /// It is the primary from now on.
    Promoted,
    /// The server stops.
    Stopped,
}

impl ReplicaPhase {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            ReplicaPhase::Starting => "starting",
            ReplicaPhase::Following => "following",
            ReplicaPhase::Retrying => "retrying",
            ReplicaPhase::Restarting => "restarting",
            ReplicaPhase::Promoted => "promoted",
            ReplicaPhase::Stopped => "stopped",
        }
    }
}

/// How a replica stands that follows its primary by a stream, too. Times are in microseconds since 2000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// What came last came by the stream, and nothing is read at the home meanwhile.
    pub is_in_use: bool,
    /// Host and port of the primary, while there is a connection.
    pub primary: Option<(String, u16)>,
    /// How it is connected to, without a password.
    pub conninfo: String,
    /// The horizon when the connection began.
    pub start: Csn,
    /// The highest that has come.
    pub received: Csn,
    /// Bytes of blocks that have come by this connection.
    pub received_bytes: u64,
    /// Those of them that are below what snapshots see.
    pub replayed_bytes: u64,
    /// When the oldest horizon came that snapshots have not reached; nothing if there is none.
    pub behind_since: Option<i64>,
    /// The primary's clock in its last message.
    pub last_sent_at: Option<i64>,
    /// When that came.
    pub last_received_at: Option<i64>,
    /// When a horizon above the one before came last.
    pub last_news_at: Option<i64>,
    /// Why there is no connection now, or was none before.
    pub last_error: Option<String>,
    /// What came did not fit what the home has: nothing is received any more.
    pub is_distrusted: bool,
}

/// The figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaReport {
    /// The home whose log is followed.
    pub home: String,
    /// What it is about.
    pub phase: ReplicaPhase,
    /// The primary's life that is read now.
    pub epoch: Epoch,
    /// Everything below is applied.
    pub applied: Csn,
    /// Snapshots see everything below.
    pub visible: Csn,
    /// The highest horizon that the log has told: everything below is durable there.
    pub horizon: Csn,
    /// Entries that were read and wait for their turn: nothing tells yet that they are durable.
    pub entries_waiting: usize,
    /// Entries applied since the replica opened or began again.
    pub entries: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Rounds since the server started.
    pub rounds: u64,
    /// Batches that changed a catalog.
    pub catalog_changes: u64,
    /// How often it has begun again.
    pub restarts: u64,
    /// The pause between two rounds now, in microseconds.
    pub poll_pause_us: u64,
    /// When the last round ended well, in microseconds since 2000.
    pub last_round_at: Option<i64>,
    /// When something was applied last.
    pub last_applied_at: Option<i64>,
    /// The newest error, and when it came.
    pub last_error: Option<(String, i64)>,
    /// The stream, if there is to be one.
    pub stream: Option<StreamReport>,
}

impl ReplicaReport {
    /// Why nothing newer is visible; nothing if all that was read is.
    pub fn waits_for(&self) -> Option<String> {
        match self.phase {
            ReplicaPhase::Starting => Some("the start".to_owned()),
            ReplicaPhase::Restarting => Some("the newest checkpoint".to_owned()),
            ReplicaPhase::Promoted => Some("the end of its sessions".to_owned()),
            ReplicaPhase::Stopped => Some("nothing: the server stops".to_owned()),
            ReplicaPhase::Retrying => {
                let error = self.last_error.as_ref();
                Some(error.map_or_else(String::new, |(error, _)| error.clone()))
            }
            ReplicaPhase::Following if self.entries_waiting > 0 => {
                Some("a horizon above the entries that were read".to_owned())
            }
            ReplicaPhase::Following => None,
        }
    }
}

/// Shared by whoever follows, sessions, and checks.
#[derive(Default)]
pub struct ReplicaStatus {
    report: Mutex<ReplicaReport>,
    /// [`ReplicaReport::visible`], for those who wait for it.
    visible: Mutex<Arc<Watermark>>,
}

impl fmt::Debug for ReplicaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReplicaStatus").field(&self.report).finish()
    }
}

impl ReplicaStatus {
    /// Of a replica of this home.
    pub fn new(home: String) -> ReplicaStatus {
        ReplicaStatus {
            report: Mutex::new(ReplicaReport {
                home,
                ..ReplicaReport::default()
            }),
            ..ReplicaStatus::default()
        }
    }

    /// The CSN below which snapshots see everything. It is another one when a replica has begun again below what it had
    /// shown, since the primary has given up commits.
    pub fn visible(&self) -> Arc<Watermark> {
        let visible = self.visible.lock();
        Arc::clone(&visible.unwrap_or_else(PoisonError::into_inner))
    }

    fn locked(&self) -> MutexGuard<'_, ReplicaReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The figures now.
    pub fn report(&self) -> ReplicaReport {
        self.locked().clone()
    }

    /// Changes them.
    pub fn update(&self, change: impl FnOnce(&mut ReplicaReport)) {
        let visible = {
            let mut report = self.locked();
            change(&mut report);
            report.visible
        };
        let mut known = self.visible.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get() <= visible.get() {
            true => known.advance(visible.get()),
            false => *known = Arc::new(Watermark::new(visible.get())),
        }
    }

    /// Do sessions get answers that follow the primary, perhaps late?
    pub fn is_following(&self) -> bool {
        matches!(
            self.locked().phase,
            ReplicaPhase::Following | ReplicaPhase::Retrying
        )
    }
}
