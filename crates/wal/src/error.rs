//! Why a log cannot be brought back. What is a torn tail and what is corruption is decided where lanes are read
//! (`recovery::scan`).

use crate::manifest::LeaseHolder;
use crate::number_limits::NumbersExhausted;
use logstead_home::{HomeError, Position};
use logstead_types::{BlockNo, Csn, Epoch, LaneId};

/// What the caller of recovery says when it cannot apply an entry.
pub type ApplyError = Box<dyn std::error::Error + Send + Sync>;

/// A place where the log is not what it was when it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The lane.
    pub lane: LaneId,
    /// The epoch that wrote it.
    pub epoch: Epoch,
    /// The first bad block.
    pub block: BlockNo,
    /// Where it lies or should lie.
    pub at: Position,
    /// What is wrong with it.
    pub what: String,
    /// How we know that it was durable, so that this is no torn tail.
    pub proof: String,
    /// The place itself is not there, and it is a moment that is read: a server at work may have removed it since the
    /// reader began.
    pub may_be_removed: bool,
}

impl std::fmt::Display for Corruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Corruption {
            lane,
            epoch,
            block,
            at,
            what,
            proof,
            may_be_removed: _,
        } = self;
        write!(
            f,
            "lane {lane}, block {block}, byte offset {} of segment {} (epoch {epoch}): {what}; {proof}",
            at.offset, at.segment
        )
    }
}

/// Recovery failed; nothing was changed that would make another attempt come out differently.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// A block that had been acknowledged is bad.
    #[error(
        "the log is corrupt: {0}. Restore from a copy, or start with --accept-data-loss to drop this and everything after it"
    )]
    Corrupt(Box<Corruption>),
    /// What a moment of the log is made of is not there (any more). Who reads it looks at the manifest again: a server
    /// removes what a newer checkpoint holds. And takes another moment: a home of several may have lost the member that
    /// had met it.
    #[error(
        "what was to be read of the log is gone: {0}. A server at work has removed it meanwhile, or it is lost: try again"
    )]
    Gone(Box<Corruption>),
    /// One copy of several was read alone, and has not all of it.
    #[error(
        "this is one of several copies, and it lacks what the others may have: {0}. Read them as one, by the list of all their URLs"
    )]
    Incomplete(Box<Corruption>),
    /// A server at work was faster than the reader, again and again.
    #[error(
        "the log in {0} changes faster than it can be read: each time its server had taken a newer checkpoint meanwhile. Try again when it has less to do, or give it a longer checkpoint_interval"
    )]
    TooFast(String),
    /// The manifest is unreadable.
    #[error("the manifest of {home} is not readable ({what}). Restore it from a copy")]
    BadManifest {
        /// Which home.
        home: String,
        /// What is wrong with it.
        what: String,
    },
    /// A newer server wrote the manifest or a block.
    #[error("the log in {home} was written by a newer Logstead ({what}): start that one")]
    NewerFormat {
        /// Which home.
        home: String,
        /// Which version, and which ones this server knows.
        what: String,
    },
    /// A copy of another log was begun there and not completed.
    #[error("{0} is a copy that was not completed: repeat the command that made it")]
    UnfinishedCopy(String),
    /// There are segments and no manifest.
    #[error(
        "{0} holds log segments but no manifest: it is not a complete Logstead log. Restore the manifest, or choose another directory"
    )]
    NoManifest(String),
    /// There is nothing.
    #[error("{0} holds no Logstead log")]
    NoLog(String),
    /// Another server writes here.
    #[error(
        "the log in {home} is in use by the server on host {} (process {}, since {}); stop that one first, or start with --take-over to shut it out",
        .holder.process.host, .holder.process.process, .holder.since_utc()
    )]
    InUse {
        /// Which home.
        home: String,
        /// Whose lease it is.
        holder: Box<LeaseHolder>,
    },
    /// No space for the new epoch's segments.
    #[error("the disk that holds {0} is full: free some space and start again")]
    DiskFull(String),
    /// No number is left that the next epoch would need.
    #[error(transparent)]
    UsedUp(#[from] NumbersExhausted),
    /// A copy into a home has found a later one there.
    #[error(
        "a later copy was begun in {0} meanwhile, and has written there: this one is given up, make it again if it is needed"
    )]
    Overtaken(String),
    /// The home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The caller could not apply an entry.
    #[error("the entry with CSN {csn} cannot be applied: {source}")]
    Apply {
        /// Which entry.
        csn: Csn,
        /// What the caller says.
        source: ApplyError,
    },
    /// The caller wants no more, for a reason of its own.
    #[error("{0}")]
    Refused(ApplyError),
    /// Settings that make no sense.
    #[error("{0}")]
    Options(String),
}

impl RecoveryError {
    /// Of a block that is missing.
    pub(crate) fn of_loss(loss: Corruption) -> RecoveryError {
        match loss.may_be_removed {
            true => RecoveryError::Gone(Box::new(loss)),
            false => RecoveryError::Corrupt(Box::new(loss)),
        }
    }
}
