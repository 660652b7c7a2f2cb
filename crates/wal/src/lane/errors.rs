//! Why a lane refuses, and how it ends.

use crate::number_limits::NumbersExhausted;
use logstead_home::HomeError;
use logstead_types::LaneId;
use std::sync::Arc;

/// The home failed while a block was written: the outcome of every entry not yet durable is unknown until recovery.
#[derive(Debug, thiserror::Error)]
#[error("the log failed in lane {lane}: {source}")]
pub struct LaneError {
    /// The lane.
    pub lane: LaneId,
    /// What the home said.
    pub source: HomeError,
}

/// Why there is no room for an entry.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoRoom {
    /// The buffer is full or space is being prepared; room comes up by itself
    /// ([`Lane::wait_room`](super::Lane::wait_room)).
    #[error("the log is ahead of the disk")]
    Full,
    /// The disk is full, as an attempt found that began after the question; asking anew may succeed.
    #[error("the disk that holds the log is full")]
    DiskFull,
    /// Too few of the log's homes are there now; trying again may help.
    #[error("too few of the log's homes are there to store it")]
    Unavailable,
    /// The records belong into a side segment ([`Lane::begin_side_segment`](super::Lane::begin_side_segment)).
    #[error("the entry is too large for the lane itself")]
    TooLarge,
    /// No number is left that it would need. Reading goes on.
    #[error(transparent)]
    UsedUp(#[from] NumbersExhausted),
    /// The lane has failed.
    #[error(transparent)]
    Failed(Arc<LaneError>),
}
