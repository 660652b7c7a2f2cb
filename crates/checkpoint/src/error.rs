//! What can go wrong with what a checkpoint has stored.

use crate::frame::FrameError;
use crate::page_ref::PageRef;
use logstead_home::HomeError;
use logstead_home::ObjectId;
use logstead_wal::FormatError;
use thiserror::Error;

/// A page, node or record cannot be read, or none can be written.
#[derive(Clone, Debug, Error)]
pub enum CheckpointError {
    /// The bytes are damaged, or not what should be there.
    #[error("{0}")]
    Damaged(Box<Damage>),
    /// The home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// It is not known which checkpoints are pinned.
    #[error(transparent)]
    Pins(PinsError),
    /// What was to be written does not fit the format (a bug, never bad data).
    #[error("a checkpoint cannot be written: {0}")]
    Misuse(&'static str),
    /// Another server has taken over: nothing is published or removed any more.
    #[error("another server took over; this one publishes no checkpoint any more")]
    Overtaken,
}

impl CheckpointError {
    /// Is it that something cannot be read, now or for ever, as opposed to a home that is somebody else's, say?
    pub fn is_unreadable(&self) -> bool {
        matches!(
            self,
            CheckpointError::Damaged(_) | CheckpointError::Home(HomeError::Io { .. })
        )
    }
}

/// Where something is damaged, and how.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} in object {object} at offset {offset}, {len} bytes long: {why}")]
pub struct Damage {
    /// What should be there, for people: which page of which chunk, which node, which record.
    pub what: String,
    /// The object.
    pub object: ObjectId,
    /// Where it begins in the object.
    pub offset: u32,
    /// Its length.
    pub len: u32,
    /// What is wrong.
    pub why: FrameError,
}

impl From<PinsError> for CheckpointError {
    fn from(error: PinsError) -> CheckpointError {
        match error {
            PinsError::Home(error) => CheckpointError::Home(error),
            error => CheckpointError::Pins(error),
        }
    }
}

impl From<FrameError> for CheckpointError {
    /// Of writing: reading says where.
    fn from(error: FrameError) -> CheckpointError {
        CheckpointError::Misuse(match error {
            FrameError::OutOfOrder => "rows out of their order",
            FrameError::TooLarge => "a frame would be too large",
            FrameError::Format(_) | FrameError::Newer { .. } => "a frame that cannot be read",
        })
    }
}

/// The format that this code writes, and the newest it reads.
pub(crate) const PINS_FORMAT: u64 = 1;

/// Pins cannot be read or changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PinsError {
    /// They are not what the format says.
    #[error("the pins of restore points and branches are damaged: {0}")]
    Damaged(&'static str),
    /// A newer server wrote them.
    #[error(
        "the pins of restore points and branches are in format version {0}, and this server knows versions up to {PINS_FORMAT}: use a newer one"
    )]
    Newer(u64),
    /// There were some, and nothing is there.
    #[error(
        "the pins of restore points and branches are missing: the newest checkpoint says that there were some"
    )]
    Lost,
    /// The home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// Something is damaged, and where.
pub(crate) fn damaged(
    what: impl Into<String>,
    at: &PageRef,
    why: impl Into<FrameError>,
) -> CheckpointError {
    CheckpointError::Damaged(Box::new(Damage {
        what: what.into(),
        object: at.object,
        offset: at.offset,
        len: at.len,
        why: why.into(),
    }))
}

/// What a home says of an object that should be there.
pub(crate) fn unread(
    what: impl FnOnce() -> String,
    at: &PageRef,
    error: HomeError,
) -> CheckpointError {
    match error {
        HomeError::Missing(_) => damaged(what(), at, FormatError::new("the object is missing", 0)),
        error => CheckpointError::Home(error),
    }
}
