//! A backup: the newest checkpoint of one home and the log's tail behind it, in another home, as a database of its own.
//!
//! 1. Look at the target: nothing, a copy of the same database that was not completed, or an older backup of it that
//!    nobody has used since. Anything else is refused. While the first backup is being made, [`UnfinishedCopy`] stands
//!    in the manifest's place, which no server starts on.
//! 2. Copy the objects that the source's newest checkpoint needs and that are not there ([`copy_objects`]).
//! 3. Read the tail ([`TailCopy`]), which is one moment of the log (`logstead_wal::recovery::consistent_cut`). If the
//!    source's manifest has changed meanwhile, or something was missing because of that: again from 2 with the newer
//!    checkpoint. What was copied stays copied, so each round has less to do.
//! 4. Store the copy's manifest, by compare and swap. Before that the target is what it was; from then on it is the new
//!    backup.
//! 5. Remove what only the backup before needed.
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
//!   the source needs them: it has what the ones before it have, and new numbers. An object above may be what another
//!   backup has copied, and stays until a backup has passed its number.
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
//! Does not: copy restore points, branches, or what `--accept-data-loss` has set aside; open homes.

use crate::attempt::{self, COUNTER_MIN};
use crate::copy::{CopyStats, copy_objects, is_copied};
use crate::error::CheckpointError;
use crate::record::CheckpointRecord;
use logstead_env::Env;
use logstead_home::{HomeError, LogHome, ObjectId, Tag};
use logstead_types::{DatabaseId, Epoch, LaneId};
use logstead_wal::copy::{CopiedTail, Destination, Orphans, TailCopy, orphans};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{self, CheckpointRef, Manifest, UnfinishedCopy};
use logstead_wal::number_limits::{NumbersExhausted, next_epoch};
use logstead_wal::recovery::RecoveryError;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use thiserror::Error;

/// The name of the thing that tells a backup from a database.
pub const BACKUP: &str = "backup";
/// So often the source may be faster. A round has to copy what changed during the one before, so this is not reached
/// unless the target is slower than the source's checkpoints.
const ROUNDS: u32 = 200;
/// How often another moment is taken of the same manifest, because what the one before was made of is not there.
const MOMENTS: u32 = 3;
/// How often the stamp is changed while others change it.
const STAMP_TRIES: u32 = 20;
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
}

/// What makes a home a backup: whose, and the manifests that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BackupLabel {
    database: DatabaseId,
    source: DatabaseId,
    /// The highest epoch that a backup has taken for its tail; 0: none, or it was stamped before there was this line.
    epoch: Epoch,
    manifests: Vec<u32>,
}

impl BackupLabel {
    fn encode(&self) -> Vec<u8> {
        let mut out = format!(
            "logstead backup 1\ndatabase {:016x}\nsource {:016x}\n",
            self.database.0, self.source.0
        );
        if self.epoch > Epoch(0) {
            // Writing to a String does not fail.
            let _ = writeln!(out, "epoch {:x}", self.epoch.get());
        }
        for crc in &self.manifests {
            // Writing to a String does not fail.
            let _ = writeln!(out, "manifest crc {crc:08x}");
        }
        let _ = writeln!(out, "crc {:08x}", crc32c::crc32c(out.as_bytes()));
        out.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<BackupLabel> {
        let text = std::str::from_utf8(bytes).ok()?;
        let number = |line: Option<&str>, name: &str| {
            let digits = line?.strip_prefix(name)?;
            u64::from_str_radix(digits, 16).ok()
        };
        let mut lines = text.lines().peekable();
        if lines.next()? != "logstead backup 1" {
            return None;
        }
        let database = DatabaseId(number(lines.next(), "database ")?);
        let source = DatabaseId(number(lines.next(), "source ")?);
        let epoch = match lines.next_if(|line| line.starts_with("epoch ")) {
            Some(line) => Epoch(u32::try_from(number(Some(line), "epoch ")?).ok()?),
            None => Epoch(0),
        };
        let manifests = lines.map_while(|line| number(Some(line), "manifest crc "));
        let stamp = BackupLabel {
            database,
            source,
            epoch,
            manifests: manifests.map(|crc| crc as u32).collect(),
        };
        // One form for each, its checksum included.
        (stamp.encode() == bytes).then_some(stamp)
    }
}

/// The target, as it was found.
struct Target {
    database: DatabaseId,
    /// What stands in the manifest's place.
    bytes: Vec<u8>,
    tag: Tag,
    /// The backup before.
    before: Option<Manifest>,
}

impl Target {
    fn look(to: &LogHome, env: &Env, source: DatabaseId) -> Result<Target, BackupError> {
        for _ in 1..STAMP_TRIES {
            match Target::look_once(to, env, source) {
                // Another backup has begun or ended meanwhile.
                Err(BackupError::Home(HomeError::Conflict(_))) => {}
                looked => return looked,
            }
        }
        Target::look_once(to, env, source)
    }

    fn look_once(to: &LogHome, env: &Env, source: DatabaseId) -> Result<Target, BackupError> {
        let refused = |what| Target::refused(to, what);
        let Some((bytes, tag)) = to.names.get(manifest::NAME)? else {
            if !to.segments.list_lanes()?.is_empty() || !to.objects.list_objects()?.is_empty() {
                if to.names.get(manifest::NAME)?.is_some() {
                    return Err(HomeError::Conflict(manifest::NAME.to_owned()).into());
                }
                return Err(refused("there are other things in it, and no manifest"));
            }
            let database = DatabaseId(env.random.u64());
            let bytes = UnfinishedCopy { database, source }.encode();
            let tag = to.names.put_if_absent(manifest::NAME, &bytes)?;
            return Ok(Target {
                database,
                bytes,
                tag,
                before: None,
            });
        };
        if let Some(unfinished) = UnfinishedCopy::decode(&bytes) {
            if unfinished.source != source {
                return Err(refused("a copy of another database was begun in it"));
            }
            return Ok(Target {
                database: unfinished.database,
                bytes,
                tag,
                before: None,
            });
        }
        let before = manifest_of(to)?;
        let stamp = to
            .names
            .get(BACKUP)?
            .and_then(|(stamp, _)| BackupLabel::decode(&stamp))
            .filter(|stamp| stamp.database == before.database)
            .ok_or_else(|| refused("it is a database, and no backup"))?;
        if stamp.source != source {
            return Err(refused("it is a backup of another database"));
        }
        if !stamp.manifests.contains(&crc32c::crc32c(&bytes)) {
            if to
                .names
                .get(manifest::NAME)?
                .is_none_or(|(_, now)| now != tag)
            {
                return Err(HomeError::Conflict(manifest::NAME.to_owned()).into());
            }
            return Err(refused("it is a backup that a server has used since"));
        }
        Ok(Target {
            database: stamp.database,
            bytes,
            tag,
            before: Some(before),
        })
    }

    /// A server that was started on the backup before, and ended before it could serve, may have left objects under
    /// numbers that the source uses for others. Gives those of which nobody knows whose they are: all with such
    /// numbers, but what the backup before needs. Where nobody else can be at work in the target they are removed.
    fn clear(&self, to: &LogHome) -> Result<BTreeSet<ObjectId>, BackupError> {
        let Some(before) = &self.before else {
            return Ok(BTreeSet::new());
        };
        if !attempt::has_reserved_numbers(to.names.as_ref())? {
            return Ok(BTreeSet::new());
        }
        let mut needed = BTreeSet::new();
        if let Some(newest) = &before.checkpoint {
            let record = CheckpointRecord::read(
                to.objects.as_ref(),
                before.database,
                newest.object,
                newest.crc,
            )?;
            needed.extend(record.objects.iter().map(|used| used.object));
            needed.insert(newest.object);
        }
        let there = to.objects.list_objects()?.into_iter().map(|info| info.id);
        let doubtful = |id: &ObjectId| id.counter() >= COUNTER_MIN && !needed.contains(id);
        let mut left: BTreeSet<ObjectId> = there.filter(doubtful).collect();
        if !to.capabilities().leased {
            for id in std::mem::take(&mut left) {
                to.objects.remove_object(id)?;
            }
        }
        Ok(left)
    }

    fn refused(to: &LogHome, what: &'static str) -> BackupError {
        BackupError::Refused {
            target: to.describe(),
            what,
        }
    }

    /// Changes what the home says of its backups: gives what it says now, and that state's tag. Called again if another
    /// backup was faster.
    fn stamp(
        &self,
        to: &LogHome,
        source: DatabaseId,
        mut change: impl FnMut(&mut BackupLabel) -> Result<(), NumbersExhausted>,
    ) -> Result<(BackupLabel, Tag), BackupError> {
        for _ in 0..STAMP_TRIES {
            let there = to.names.get(BACKUP)?;
            let known = there
                .as_ref()
                .and_then(|(bytes, _)| BackupLabel::decode(bytes));
            let known =
                known.filter(|known| (known.database, known.source) == (self.database, source));
            let mut stamp = match known {
                Some(known) => known,
                // Of something that was there before the copy was begun.
                None if self.before.is_none() => BackupLabel {
                    database: self.database,
                    source,
                    epoch: Epoch(0),
                    manifests: vec![crc32c::crc32c(&self.bytes)],
                },
                None => {
                    return Err(Target::refused(
                        to,
                        "what tells that it is a backup has changed meanwhile",
                    ));
                }
            };
            change(&mut stamp).map_err(RecoveryError::from)?;
            let stored = match there {
                Some((_, tag)) => to.names.compare_and_swap(BACKUP, tag, &stamp.encode()),
                None => to.names.put_if_absent(BACKUP, &stamp.encode()),
            };
            match stored {
                Ok(tag) => return Ok((stamp, tag)),
                // Or our own, whose answer was lost: doing it twice does no harm.
                Err(HomeError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Target::refused(to, OTHER_BACKUP))
    }

    /// Takes an epoch above `above` that no other backup has, nor will have.
    fn take_epoch(
        &self,
        to: &LogHome,
        source: DatabaseId,
        above: Epoch,
    ) -> Result<Epoch, BackupError> {
        let (stamp, _) = self.stamp(to, source, |stamp| {
            stamp.epoch = next_epoch(stamp.epoch.max(above))?;
            Ok(())
        })?;
        Ok(stamp.epoch)
    }

    /// Stores the manifest in place of what was found: from then on the target is the new backup.
    fn store(&self, to: &LogHome, bytes: &[u8]) -> Result<(), BackupError> {
        match to.names.compare_and_swap(manifest::NAME, self.tag, bytes) {
            Ok(_) => Ok(()),
            Err(HomeError::Conflict(_)) => match to.names.get(manifest::NAME)? {
                // Ours, whose answer was lost.
                Some((there, _)) if there == bytes => Ok(()),
                _ => Err(Target::refused(to, OTHER_BACKUP)),
            },
            Err(error) => Err(error.into()),
        }
    }
}

/// What a round has copied: a checkpoint, and the tail behind it.
struct Round<'h> {
    checkpoint: Option<CheckpointRef>,
    needed: BTreeSet<ObjectId>,
    tail: TailCopy<'h>,
}

fn add(sum: &mut CopyStats, more: CopyStats) {
    sum.objects += more.objects;
    sum.bytes += more.bytes;
    sum.found += more.found;
}

/// Copies a checkpoint as one of `database`: its objects as they are, its record with another name on it.
fn checkpoint(
    from: &LogHome,
    source: &Manifest,
    database: DatabaseId,
    (to, doubtful): (&LogHome, &BTreeSet<ObjectId>),
    copied: &mut CopyStats,
) -> Result<(Option<CheckpointRef>, BTreeSet<ObjectId>), BackupError> {
    let Some(newest) = &source.checkpoint else {
        return Ok((None, BTreeSet::new()));
    };
    let record = CheckpointRecord::read(
        from.objects.as_ref(),
        source.database,
        newest.object,
        newest.crc,
    )?;
    let in_the_way = || Target::refused(to, LEFT_BY_A_SERVER);
    for used in record
        .objects
        .iter()
        .filter(|used| doubtful.contains(&used.object))
    {
        if !is_copied(&from.objects, &record, used, to.objects.as_ref())? {
            return Err(in_the_way());
        }
    }
    add(
        copied,
        copy_objects(&from.objects, &record, to.objects.as_ref())?,
    );
    let mut needed: BTreeSet<ObjectId> = record.objects.iter().map(|used| used.object).collect();
    needed.insert(newest.object);
    let record = CheckpointRecord {
        database,
        kept: Vec::new(),
        has_pins: false,
        ..record
    };
    let bytes = record.encode(newest.object)?;
    match to.objects.put_object(newest.object, &bytes) {
        Err(HomeError::Conflict(_)) if doubtful.contains(&newest.object) => {
            return Err(in_the_way());
        }
        stored => stored?,
    }
    copied.objects += 1;
    copied.bytes += bytes.len() as u64;
    let checkpoint = CheckpointRef {
        crc: crc32c::crc32c(&bytes),
        ..newest.clone()
    };
    Ok((Some(checkpoint), needed))
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
    let first = source_of(from)?;
    let source = first.database;
    let target = Target::look(to, env, source)?;
    let doubtful = target.clear(to)?;
    let mut done = BackupReport {
        database: target.database,
        incremental: target.before.is_some(),
        ..BackupReport::default()
    };
    let before = target
        .before
        .as_ref()
        .map_or(Epoch(0), |before| before.epoch);
    let mut epoch = target.take_epoch(to, source, before.max(first.epoch))?;
    let mut moments = 0;
    let round = loop {
        let manifest = source_of(from)?;
        if manifest.database != source {
            return Err(BackupError::Refused {
                target: to.describe(),
                what: "the source is another database than it was",
            });
        }
        if epoch <= manifest.epoch {
            epoch = target.take_epoch(to, source, manifest.epoch)?;
        }
        moments += 1;
        let place = Destination {
            database: target.database,
            epoch,
            // A round that was given up may have stored something in its own.
            lane: LaneId(LANE_MIN + done.rounds as u16),
        };
        let is_still = || Ok::<_, BackupError>(source_of(from)?.is_of_log(&manifest));
        let copied = &mut done.copied;
        let round = checkpoint(from, &manifest, target.database, (to, &doubtful), copied);
        let round = match round {
            // If there is a newer one by now, this one's tail may be gone.
            Ok((checkpoint, needed)) if is_still()? => {
                let clock = env.clock.as_ref();
                TailCopy::read(from, &manifest, clock, to, place)
                    .map(|tail| (checkpoint, needed, tail))
                    .map_err(BackupError::from)
            }
            Ok(_) => Err(BackupError::TooFast),
            Err(error) => Err(error),
        };
        match (is_still()?, round) {
            (true, Ok((checkpoint, needed, tail))) => {
                break Round {
                    checkpoint,
                    needed,
                    tail,
                };
            }
            // What the moment is made of is not there: of a list of homes a member may be out of reach since.
            (true, Err(BackupError::Log(RecoveryError::Gone(loss)))) => {
                if moments == MOMENTS {
                    return Err(RecoveryError::Corrupt(loss).into());
                }
            }
            (true, Err(error)) => return Err(error),
            // Whatever was found may be because of what was removed.
            (false, _) => moments = 0,
        }
        done.rounds += 1;
        if done.rounds == ROUNDS {
            return Err(BackupError::TooFast);
        }
    };
    let tail = round.tail.finish()?;
    let next = Manifest {
        // Above the tail's, and above those of all objects.
        epoch: next_epoch(epoch).map_err(RecoveryError::from)?,
        checkpoint: round.checkpoint,
        marks: tail.mark.clone().into_iter().collect(),
        ..Manifest::first(target.database)
    };
    (done.entries, done.entry_bytes) = (tail.entries, tail.bytes);
    let bytes = next.encode();
    let crc = crc32c::crc32c(&bytes);
    let (stamp, tag) = target.stamp(to, source, |stamp| {
        stamp.manifests.retain(|known| *known != crc);
        stamp.manifests.push(crc);
        Ok(())
    })?;
    let newest = next.checkpoint.as_ref().map(|newest| newest.object);
    let obsolete = Obsolete::list(to, newest, &round.needed, &tail)?;
    target.store(to, &bytes)?;
    let only = BackupLabel {
        manifests: vec![crc],
        ..stamp
    };
    match to.names.compare_and_swap(BACKUP, tag, &only.encode()) {
        // Whoever has added something since needs what is there, and ours is in it.
        Ok(_) | Err(HomeError::Conflict(_)) => {}
        Err(error) => return Err(error.into()),
    }
    done.removed = obsolete.remove(to)?;
    Ok(done)
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
    /// `newest`: the record of the checkpoint that is in the backup, which needs the objects `needed`.
    fn list(
        to: &LogHome,
        newest: Option<ObjectId>,
        needed: &BTreeSet<ObjectId>,
        tail: &CopiedTail,
    ) -> Result<Obsolete, HomeError> {
        let objects = to.objects.list_objects()?.into_iter().map(|info| info.id);
        let is_past = |id: &ObjectId| newest.is_some_and(|newest| *id < newest);
        Ok(Obsolete {
            log: orphans(to, tail)?,
            objects: objects
                .filter(|id| is_past(id) && !needed.contains(id))
                .collect(),
        })
    }

    /// How many objects went.
    fn remove(&self, to: &LogHome) -> Result<u64, HomeError> {
        self.log.remove(to)?;
        for id in &self.objects {
            to.objects.remove_object(*id)?;
        }
        Ok(self.objects.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that have found the same target store nothing under the same numbers, and neither forgets the other's
    /// manifest.
    #[test]
    fn two_backups_of_one_target_have_an_epoch_each() {
        let (env, _) = Env::simulated(1);
        let home = logstead_home::MemoryHome::new(1 << 16);
        let source = DatabaseId(3);
        let look = || Target::look(&LogHome::from(home.clone()), &env, source).unwrap();
        let (one, other) = (look(), look());
        assert_eq!(one.database, other.database);
        let epochs = [&one, &other, &one].map(|target| {
            let epoch = target.take_epoch(&LogHome::from(home.clone()), source, Epoch(7));
            epoch.unwrap()
        });
        assert_eq!(epochs, [Epoch(8), Epoch(9), Epoch(10)]);
        let add = |target: &Target, crc| {
            let added = target.stamp(&LogHome::from(home.clone()), source, |stamp| {
                stamp.manifests.push(crc);
                Ok(())
            });
            added.unwrap().0.manifests.len()
        };
        assert_eq!([add(&one, 1), add(&other, 2)], [2, 3]);
    }

    #[test]
    fn a_stamp_has_one_form_and_no_other() {
        let stamp = BackupLabel {
            database: DatabaseId(1),
            source: DatabaseId(u64::MAX),
            epoch: Epoch(0x1f),
            manifests: vec![7, 0xdead_beef],
        };
        // As it was stored before there was an epoch in it.
        let older = BackupLabel {
            epoch: Epoch(0),
            ..stamp.clone()
        };
        assert_eq!(BackupLabel::decode(&older.encode()), Some(older));
        let bytes = stamp.encode();
        assert_eq!(BackupLabel::decode(&bytes), Some(stamp));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(BackupLabel::decode(&bad), None, "byte {at} bit {bit}");
            }
            assert_eq!(BackupLabel::decode(&bytes[..at]), None);
        }
    }
}
