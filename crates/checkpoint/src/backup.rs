//! A backup: the newest checkpoint of one home and the log's tail behind it, in another home, as a database of its own.
//!
//! 1. Look at the target: nothing, a copy of the same database that was not completed, or an older backup of it that
//!    nobody has used since. Anything else is refused. While the first backup is being made, an
//!    [`UnfinishedCopy`](manifest::UnfinishedCopy) stands in the manifest's place, which no server starts on.
//! 2. Copy the objects that the source's newest checkpoint and its restore points need and that are not there
//!    ([`points`]).
//! 3. Read the tail ([`TailCopy`](logstead_wal::copy::TailCopy)), which is one moment of the log
//!    (`logstead_wal::recovery::consistent_cut`). If the source's manifest has changed meanwhile, or something was
//!    missing because of that: again from 2 with the newer checkpoint. What was copied stays copied, so each round has
//!    less to do.
//! 4. Store the list of restore points, then the copy's manifest, by compare and swap. Before that the target is what
//!    it was; from then on it is the new backup.
//! 5. Remove what only the backup before needed.
//!
//! **Again and again.** A [`BackupSession`] makes one backup after the other ([`BackupSession::round`]) and remembers
//! what the one before has done. While the source's manifest stays the same, and nobody else has changed the target's,
//! a round copies what the log has got since ([`logstead_wal::copy`]), reads the log from there on, and stores nothing
//! if there is nothing new. The tail is then in parts, whose number stays small: [`PARTS_MERGED`] small ones become a
//! larger one, which is read from the source again.
//!
//! **Two at once.** A local target has a lock. A bucket has none, and two backups may be made in it at the same time:
//! one of them is the new backup, and the other one fails.
//! - Each stores its tail in an epoch of its own, taken from the stamp by compare and swap before anything is stored,
//!   and in lanes that no server opens ([`LANE_MIN`]). Objects are the source's, so whoever stores one stores the same.
//! - The stamp is changed by compare and swap from what was read, and names the manifest of whoever may still store
//!   one: it is only added to, but by the one whose manifest is there, and by that one only if nobody has added
//!   anything since it did.
//! - Nothing is removed before the manifest is stored: what a server that was started on the backup has left under
//!   numbers that the source uses, too, may as well be what another backup has just copied. It is compared with the
//!   source's, and a backup whose objects have no place is refused.
//! - What one removes, nobody else takes for there: segments and sides of epochs that ended with the manifest it
//!   replaced, and objects whose numbers are below its checkpoint's and that this does not need. No later checkpoint of
//!   the source needs them: it has what the ones before it have, and new numbers, and so have its restore points, which
//!   were newest before. An object above may be what another backup has copied, and stays until a backup has passed its
//!   number.
//! - The list of restore points is changed by compare and swap from what was found at the beginning. One that was
//!   slower may leave a name whose objects another one has removed; the next backup stores the list anew.
//!
//! Invariants:
//! - Every transaction that was acknowledged before the call is in the backup, none in part, and none without what it
//!   read or overwrote. The checkpoint is one moment, and so is the tail, from the checkpoint's CSN on; they belong
//!   together because the manifest still names that checkpoint when the tail has been read.
//! - The copy has a number of its own ([`DatabaseId`]), and an epoch above all that are in it. So it can be served at
//!   once, beside the source, and nothing that either of them makes later is taken for the other's.
//! - What a backup may overwrite is known by the checksum of the manifest that the one before has stored: a server that
//!   opens a backup writes another. That number is stored before the manifest, so there is no moment in which a backup
//!   is taken for something else.
//!
//! Does not: copy branches, or what `--accept-data-loss` has set aside; open homes.

mod points;
mod session;
mod target;

pub use session::BackupSession;

use crate::copy::CopyStats;
use crate::error::CheckpointError;
use crate::pins::{PINS, PinKind, Pins};
use crate::record::CheckpointRecord;
use logstead_env::Env;
use logstead_home::{HomeError, LogHome, ObjectId, Tag};
use logstead_types::{Csn, DatabaseId};
use logstead_wal::copy::{CopiedPart, Orphans, orphans};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{self, Manifest};
use logstead_wal::recovery::RecoveryError;
use std::collections::BTreeSet;
use thiserror::Error;

/// The name of the thing that tells a backup from a database.
pub const BACKUP: &str = "backup";
/// So often the source may be faster. A round has to copy what changed during the one before, so this is not reached
/// unless the target is slower than the source's checkpoints.
const ROUNDS: u32 = 200;
/// How often another moment is taken of the same manifest, because what the one before was made of is not there.
const MOMENTS: u32 = 3;
/// So many parts of a tail become one.
const PARTS_MERGED: usize = 8;
/// The first lane of copied tails: no server opens so many.
const LANE_MIN: u16 = 1 << 15;
/// Why a backup that was not the first to store its manifest is none.
const OTHER_BACKUP: &str = "another backup was made in it meanwhile, or a server was started on it";

/// Why there is none where its objects have no place.
const LEFT_BY_A_SERVER: &str = "a server that was started on it has left objects where the backup's are to be, and another backup may be at work: make it in an empty place";

/// Why there is no backup.
#[derive(Debug, Error)]
pub enum BackupError {
    /// Reading the source's log, or writing the copy's.
    #[error(transparent)]
    Log(#[from] RecoveryError),
    /// A page of the source is damaged, or a home failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The source is one copy of several, which may lack what the others have.
    #[error(
        "{0} is one member of several homes, which may lack what was acknowledged: a backup of one alone is not supported"
    )]
    Member(String),
    /// What is in the target is not to be overwritten.
    #[error("{target} is not overwritten: {what}")]
    Refused {
        /// The target.
        target: String,
        /// What it is.
        what: &'static str,
    },
    /// It does not end.
    #[error(
        "the server takes checkpoints faster than they can be copied: give it a longer checkpoint_interval, or a smaller checkpoint_bandwidth"
    )]
    TooFast,
}

impl BackupError {
    /// Another backup was made in the same place at the same time, and was faster: the next one goes on from it.
    pub fn is_of_another_backup(&self) -> bool {
        match self {
            BackupError::Refused { what, .. } => *what == OTHER_BACKUP,
            BackupError::Home(HomeError::Conflict(_))
            | BackupError::Log(RecoveryError::Overtaken(_)) => true,
            _ => false,
        }
    }
}

/// What a backup has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The number of the copy.
    pub database: DatabaseId,
    /// There was an older one.
    pub incremental: bool,
    /// Objects, in all rounds.
    pub copied: CopyStats,
    /// Entries of the log behind the checkpoint.
    pub entries: u64,
    /// Bytes of their records.
    pub entry_bytes: u64,
    /// How often it began with a newer checkpoint.
    pub rounds: u32,
    /// Objects of the backup before that were removed.
    pub removed: u64,
    /// Restore points in it, beside its newest checkpoint.
    pub points: u64,
    /// Restore points of the source that could not be read and are not in it.
    pub points_left_out: u64,
    /// Parts of the log's tail that were there and stayed: what was copied lies behind them.
    pub parts_kept: u64,
    /// The highest CSN of the moment that it is.
    pub csn: Csn,
    /// There was nothing new, and nothing was stored.
    pub is_idle: bool,
}

fn source_of(from: &LogHome) -> Result<Manifest, BackupError> {
    let (bytes, _) = from
        .names
        .get(manifest::NAME)?
        .ok_or_else(|| RecoveryError::NoLog(from.describe()))?;
    if logstead_home::named_in_record(&bytes, manifest::NAME).is_some() {
        return Err(BackupError::Member(from.describe()));
    }
    Ok(manifest_of(from)?)
}

/// Makes `to` a backup of the database in `from`, beside which a server may be at work, or brings the backup that it is
/// up to date. May be called again after any error or crash.
pub fn backup(from: &LogHome, to: &LogHome, env: &Env) -> Result<BackupReport, BackupError> {
    BackupSession::new().round(from, to, env)
}

/// What no backup needs any more: what only the one before needed, and what attempts that were cut short have left.
///
/// Listed before the backup's manifest is there, removed afterwards. Between the two a server may start on the backup:
/// a bucket has no lock that keeps it out. What it stores is not listed, nor what another backup stores that found this
/// one, nor what that one may take for copied already.
struct Obsolete {
    log: Orphans,
    objects: Vec<ObjectId>,
}

impl Obsolete {
    /// `newest`: the record of the checkpoint that is in the backup. That needs the first objects, the backup before
    /// needed the others.
    fn list(
        to: &LogHome,
        newest: Option<ObjectId>,
        (needed, before): (&BTreeSet<ObjectId>, &BTreeSet<ObjectId>),
        parts: &[CopiedPart],
    ) -> Result<Obsolete, HomeError> {
        let objects = to.objects.list_objects()?.into_iter().map(|info| info.id);
        // Numbers of replicas, which write pages for the source, are above those of its records.
        let is_past =
            |id: &ObjectId| newest.is_some_and(|newest| *id < newest) || before.contains(id);
        Ok(Obsolete {
            log: orphans(to, parts)?,
            objects: objects
                .filter(|id| is_past(id) && !needed.contains(id))
                .collect(),
        })
    }

    /// Keeps what branches of this backup need that were made since the pins were read: whoever makes one writes its
    /// pin first and then looks whether the manifest still leads there, and here the manifest is written already.
    fn spare_branches(&mut self, to: &LogHome, database: DatabaseId) -> Result<(), BackupError> {
        let Some((bytes, _)) = to.names.get(PINS)? else {
            return Ok(());
        };
        let pins = Pins::decode(&bytes).map_err(CheckpointError::from)?;
        for branch in pins.iter().filter(|pin| pin.kind != PinKind::Point) {
            let (object, crc) = (branch.record.object, branch.record.crc);
            let record = CheckpointRecord::read(to.objects.as_ref(), database, object, crc)?;
            let is_needed = |id: &ObjectId| {
                *id == object || record.objects.iter().any(|used| used.object == *id)
            };
            self.objects.retain(|id| !is_needed(id));
        }
        Ok(())
    }

    /// How many objects went. `backup` is the manifest's state: where another backup has taken its place, that one may
    /// need what is superfluous here, and removes what is superfluous there.
    fn remove(&self, to: &LogHome, backup: Tag) -> Result<u64, HomeError> {
        self.log.remove(to)?;
        let mut removed = 0;
        for id in &self.objects {
            let now = to.names.get(manifest::NAME)?;
            if now.is_none_or(|(_, tag)| tag != backup) {
                break;
            }
            to.objects.remove_object(*id)?;
            removed += 1;
        }
        Ok(removed)
    }
}
