//! Why what is absent does not come, as callers are told.
//!
//! Does not: tell of damage that was repaired, or of what was tried again and came.

use crate::memory::OutOfMemory;

/// Why what is absent does not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// What the home has is damaged (XX001); it says what and where. Nothing of it is served.
    #[error("{0}")]
    Damaged(String),
    /// The home cannot be read (58030).
    #[error("{0}")]
    Unreachable(String),
    /// A restore point whose pages are laid out as older servers did (0A000).
    #[error(
        "the restore point is in the format of an older server: it can be restored or branched from, but not read beside the present"
    )]
    Older,
    /// A replica has not got it in memory, and what it would read it from is gone since the primary's checkpoint at
    /// this CSN (72000).
    #[error("snapshot too old: what is needed is gone since the primary's checkpoint at CSN {0}")]
    TooOld(logstead_types::Csn),
    /// It was in memory alone, which is gone with an instance that was restarted, and the snapshot is older than that
    /// (40001).
    #[error("could not serialize access because an instance was restarted")]
    InstanceRestarted,
    /// The memory budget is used up, and nothing can be evicted (53200).
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The engine is closing, or another server has taken over.
    #[error("the server is closing")]
    Closing,
}

impl From<logstead_checkpoint::CheckpointError> for FaultError {
    fn from(error: logstead_checkpoint::CheckpointError) -> FaultError {
        use logstead_checkpoint::CheckpointError;
        match error {
            CheckpointError::Home(_) => FaultError::Unreachable(error.to_string()),
            CheckpointError::Overtaken => FaultError::Closing,
            CheckpointError::Damaged(_) | CheckpointError::Misuse(_) | CheckpointError::Pins(_) => {
                FaultError::Damaged(error.to_string())
            }
        }
    }
}
