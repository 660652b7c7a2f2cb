//! What can go wrong at a home.

use logstead_types::LaneId;
use std::io;
use std::sync::Arc;

/// An operation at the home failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HomeError {
    /// Another process holds the home.
    #[error(
        "{0} is in use by another server; stop that one first, or choose another data directory"
    )]
    InUse(String),
    /// Another process took the home over; this one must stop.
    #[error("another server took over {0}")]
    Fenced(String),
    /// The machine says no. What was being written may be there, or not, or in part.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, to which file.
        what: String,
        /// The machine's answer.
        source: Arc<io::Error>,
    },
    /// Other accounts of the machine can read or write the place; in PostgreSQL's words.
    #[error("{0}")]
    Exposed(String),
    /// A named thing is not in the state the caller expected.
    #[error("{0} was changed by someone else")]
    Conflict(String),
    /// Something that must be there is not.
    #[error("{0} is missing")]
    Missing(String),
    /// The caller broke the interface's rules (a bug, never bad data).
    #[error("lane {lane}: {what}")]
    Misuse {
        /// The lane it was about.
        lane: LaneId,
        /// Which rule.
        what: &'static str,
    },
    /// A home's URL says nothing that can be opened.
    #[error("cannot open the log at \"{url}\": {what}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        what: String,
    },
    /// This home does not offer the operation.
    #[error("this home does not offer {0}")]
    Unsupported(&'static str),
}

impl HomeError {
    /// An I/O error with what was being done.
    pub fn io(what: impl Into<String>, source: io::Error) -> HomeError {
        HomeError::Io {
            what: what.into(),
            source: Arc::new(source),
        }
    }

    /// True if the disk is full: the operation may succeed after space is freed.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, HomeError::Io { source, .. } if logstead_env::is_disk_full(source))
    }
}

/// Why there is no room.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoRoom {
    /// The disk is full: an attempt found so that began after the question. Asking anew
    /// ([`RoomRequest`](crate::RoomRequest))
    /// starts another.
    #[error("the disk that holds the log is full")]
    DiskFull,
    /// Room is being made; the room listener will be told.
    #[error("space for the log is being prepared")]
    Busy,
    /// Too few of the log's homes are there now. Trying again may help.
    #[error("too few of the log's homes are there to store it")]
    Unavailable,
    /// The home failed.
    #[error(transparent)]
    Failed(#[from] HomeError),
}

impl NoRoom {
    /// Sorts an error of making room: a full disk passes, anything else is a failure.
    pub fn from_home(error: HomeError) -> NoRoom {
        if error.is_disk_full() {
            NoRoom::DiskFull
        } else {
            NoRoom::Failed(error)
        }
    }
}
