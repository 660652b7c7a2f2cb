//! Branches, and going back to a restore point: homes that begin with a checkpoint of another one.
//!
//! Both begin with a record of their own, which names the same objects as the point's, and a manifest that names that
//! record. A branch reads the objects where they are; what is restored has them copied. Each is a database of its own,
//! with a number of its own ([`DatabaseId`]): what it and the other one do from there on are two histories, whose
//! epochs, CSNs, blocks and objects have the same numbers and are something else. Its first epoch is the one after the
//! point's, so that the epoch of an object tells whose it is.
//!
//! Neither reads the log, so what a server writes meanwhile matters to neither: a record is one moment. It holds what
//! survived below its CSN and nothing else, and it was published only when the horizon had reached that CSN (crate
//! `engine`). It and its objects never change. What is newer than the record is not in the branch, also if it was
//! acknowledged before.
//!
//! A branch is made in this order: the parent pins the record ([`BranchState::Making`], by the handshake of the pins);
//! the branch's home gets its manifest, then the record that the manifest names; the pin says that it is made. It is
//! dropped in this order: the pin says that it is being dropped; what is in its home is removed; the pin goes. Cut
//! short anywhere, either is begun again by making or dropping it again: nobody serves a branch that is not
//! [`BranchState::Made`], and a manifest whose record is missing is no database.
//!
//! Each attempt to make a branch has a home of its own ([`directory_of`]), so that nothing of an earlier branch of the
//! same name is found in it.
//!
//! Does not: open homes, or know URLs.

use crate::copy::{CopyStats, copy_objects};
use crate::error::CheckpointError;
use crate::error::PinsError;
use crate::pins::{
    BranchState, PIN_NAME_BYTES_MAX, Pin, PinKind, Pins, RecoveryPoint, RecoveryTarget, as_of_now,
    choose, pin_point, points,
};
use crate::record::{CheckpointRecord, RetainedRecord};
use logstead_env::Env;
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{DatabaseId, Epoch};
use logstead_wal::inspect::manifest_of;
use logstead_wal::lease::{Lease, LeaseOptions};
use logstead_wal::manifest::{self, CheckpointRef, Manifest};
use logstead_wal::recovery::RecoveryError;

/// Why a branch was not made or dropped, or nothing restored.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// It cannot be one's name.
    #[error(
        "\"{0}\" is no branch's name: it has 1 to {PIN_NAME_BYTES_MAX} lower-case letters, digits, _ and -, and begins with a letter"
    )]
    Name(String),
    /// There is one already.
    #[error("branch \"{0}\" already exists")]
    Exists(String),
    /// There is none.
    #[error("branch \"{0}\" does not exist")]
    Missing(String),
    /// It is not whole.
    #[error("branch \"{0}\" is not whole: creating it was cut short; create it again, or drop it")]
    Making(String),
    /// It is half gone.
    #[error("branch \"{0}\" is being dropped: that was cut short; drop it again")]
    Dropping(String),
    /// It is needed.
    #[error("branch \"{0}\" has branches of its own; drop them first")]
    HasBranches(String),
    /// There is no such point.
    #[error("{0}")]
    NoPoint(String),
    /// What is in the target is not to be overwritten.
    #[error("{0} is not overwritten: there is something else in it")]
    Occupied(String),
    /// The log of one of the homes cannot be read, or somebody is at work there.
    #[error(transparent)]
    Log(#[from] RecoveryError),
    /// Checkpoints cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl From<PinsError> for BranchError {
    fn from(error: PinsError) -> BranchError {
        BranchError::Checkpoint(error.into())
    }
}

/// Where the home of a branch lies, below its parent's.
pub fn directory_of(pin: &Pin) -> Option<String> {
    match pin.kind {
        PinKind::Branch { database, .. } => {
            Some(format!("branches/{}-{:016x}", pin.name, database.get()))
        }
        PinKind::Point => None,
    }
}

/// The branch of this name, if it can be served, and the last epoch whose objects are its parent's.
pub fn served(pins: &Pins, name: &str) -> Result<(Pin, Epoch), BranchError> {
    let pin = pins.branch(name);
    let pin = pin.ok_or_else(|| BranchError::Missing(name.to_owned()))?;
    match pin.kind {
        PinKind::Branch { state, .. } => match state {
            BranchState::Made => Ok((pin.clone(), pin.record.object.epoch())),
            BranchState::Making => Err(BranchError::Making(name.to_owned())),
            BranchState::Dropping => Err(BranchError::Dropping(name.to_owned())),
        },
        PinKind::Point => Err(BranchError::Missing(name.to_owned())),
    }
}

fn check_name(name: &str) -> Result<(), BranchError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let good = (1..=PIN_NAME_BYTES_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(allowed);
    match good {
        true => Ok(()),
        false => Err(BranchError::Name(name.to_owned())),
    }
}

/// A time, for people: `2026-01-01 00:00:00.000000 UTC`.
fn utc(micros_since_2000: i64) -> String {
    let seconds = micros_since_2000.div_euclid(1_000_000);
    let micros = micros_since_2000.rem_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March, so that a leap day is a year's last one; eras of 400 years are all alike. From 0000-03-01
    // to 2000-01-01 there are 730,425 days.
    let days = days + 730_425;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + later;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} UTC")
}

impl RecoveryPoint {
    /// When it was taken, for people.
    pub fn taken_at_utc(&self) -> String {
        utc(self.record.taken_at_micros)
    }
}

/// Says what there is instead of what was asked for.
fn no_point(points: &[RecoveryPoint], which: &RecoveryTarget) -> BranchError {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return BranchError::NoPoint(
            "there is no checkpoint yet: a server takes one by itself, or when somebody says CHECKPOINT".to_owned(),
        );
    };
    let asked = match which {
        RecoveryTarget::Newest => "there is no newest checkpoint".to_owned(),
        RecoveryTarget::At(time) => {
            format!("there is no restore point at or before {}", utc(*time))
        }
        RecoveryTarget::Named(name) => format!("there is no restore point \"{name}\""),
    };
    BranchError::NoPoint(format!(
        "{asked}: the oldest was taken at {}, the newest at {}",
        first.taken_at_utc(),
        last.taken_at_utc()
    ))
}

/// The manifest and the record of a database of its own that begins with the state of `record`.
fn beginning(
    record: &CheckpointRecord,
    at: ObjectId,
    database: DatabaseId,
) -> Result<(Manifest, ObjectId, Vec<u8>), BranchError> {
    let epoch = at.epoch().get().checked_add(1);
    let epoch = Epoch(epoch.ok_or(CheckpointError::Misuse("no epochs are left"))?);
    let own = CheckpointRecord {
        database,
        epoch,
        starts: Vec::new(),
        kept: Vec::new(),
        has_pins: false,
        ..record.clone()
    };
    let object = ObjectId::new(epoch, 0);
    let bytes = own.encode(object)?;
    let manifest = Manifest {
        epoch,
        checkpoint: Some(CheckpointRef {
            object,
            crc: crc32c::crc32c(&bytes),
            csn: own.csn,
            epoch,
            starts: Vec::new(),
        }),
        ..Manifest::first(database)
    };
    Ok((manifest, object, bytes))
}

/// Makes a branch of the home `parent` under this name, at a point. `open` makes the branch's home, of which
/// [`directory_of`] knows the place. One that was not completed is made anew.
pub fn create_branch(
    parent: &LogHome,
    name: &str,
    which: &RecoveryTarget,
    env: &Env,
    open: impl Fn(&Pin) -> Result<LogHome, HomeError>,
) -> Result<Pin, BranchError> {
    check_name(name)?;
    let (pins, _) = Pins::read(parent.names.as_ref())?;
    match served(&pins, name) {
        Ok(_) => return Err(BranchError::Exists(name.to_owned())),
        Err(BranchError::Missing(_)) => {}
        // What an earlier attempt has left goes first.
        Err(_) => drop_branch(parent, name, env, &open)?,
    }
    let database = DatabaseId(env.random.u64());
    let pin = |state, record: RetainedRecord| Pin {
        kind: PinKind::Branch { state, database },
        name: name.to_owned(),
        record,
    };
    let making = |pins: &Pins, record| match pins.branch(name) {
        Some(_) => Err(BranchError::Exists(name.to_owned())),
        None => Ok(pin(BranchState::Making, record)),
    };
    let manifest = || Ok::<_, BranchError>(manifest_of(parent)?);
    let Some(pinned) = pin_point(parent, which, making, manifest)? else {
        let points = as_of_now(manifest, |manifest| points(parent, manifest))?;
        return Err(no_point(&points, which));
    };
    let at = pinned.record;
    let of_parent = manifest()?.database;
    let record = CheckpointRecord::read(parent.objects.as_ref(), of_parent, at.object, at.crc)?;
    let (manifest, object, bytes) = beginning(&record, at.object, database)?;
    let home = open(&pinned)?;
    home.names
        .put_if_absent(manifest::NAME, &manifest.encode())?;
    home.objects.put_object(object, &bytes)?;
    let made = pin(BranchState::Made, at);
    Pins::change(parent.names.as_ref(), |pins| match pins.branch(name) {
        Some(there) if *there == pinned => {
            pins.put(made.clone());
            Ok(())
        }
        // Somebody has dropped it meanwhile.
        _ => Err(BranchError::Missing(name.to_owned())),
    })?;
    Ok(made)
}

/// Drops a branch that nobody serves: removes what is in its home, and lets go of what it needed of the parent, which
/// removes that after one of its next checkpoints. Of the branch's home some small named things stay.
pub fn drop_branch(
    parent: &LogHome,
    name: &str,
    env: &Env,
    open: impl Fn(&Pin) -> Result<LogHome, HomeError>,
) -> Result<(), BranchError> {
    let missing = || BranchError::Missing(name.to_owned());
    let (pins, _) = Pins::read(parent.names.as_ref())?;
    let pin = pins.branch(name).cloned().ok_or_else(missing)?;
    let PinKind::Branch { database, .. } = pin.kind else {
        return Err(missing());
    };
    let home = open(&pin)?;
    let (own, _) = Pins::read(home.names.as_ref())?;
    if own
        .iter()
        .any(|pin| matches!(pin.kind, PinKind::Branch { .. }))
    {
        return Err(BranchError::HasBranches(name.to_owned()));
    }
    // From here on nobody else serves it: a kernel's lock was taken with the home, or this takes the lease.
    let leased = home.capabilities().leased && home.names.get(manifest::NAME)?.is_some();
    let options = LeaseOptions {
        threads: false,
        ..LeaseOptions::default()
    };
    let lease = leased.then(|| Lease::claim(&home, env, &options));
    let lease = lease.transpose()?;
    let dropping = Pin {
        kind: PinKind::Branch {
            state: BranchState::Dropping,
            database,
        },
        ..pin
    };
    Pins::change(parent.names.as_ref(), |pins| match pins.branch(name) {
        Some(there) if (&there.record, &there.name) == (&dropping.record, &dropping.name) => {
            pins.put(dropping.clone());
            Ok(())
        }
        _ => Err(missing()),
    })?;
    remove_all(&home)?;
    Pins::change(parent.names.as_ref(), |pins| {
        if pins.branch(name) == Some(&dropping) {
            pins.remove_branch(name);
        }
        Ok::<_, PinsError>(())
    })?;
    if let Some(lease) = lease {
        lease.release();
    }
    Ok(())
}

/// Removes the lanes, side segments and objects of a home that nobody needs any more.
fn remove_all(home: &LogHome) -> Result<(), HomeError> {
    for lane in home.segments.list_lanes()? {
        for side in home.sides.list_side_segments(lane)? {
            home.sides.remove_side_segment(lane, side)?;
        }
        for info in home.segments.list_segments(lane)? {
            home.segments.trim(lane, info.segment)?;
        }
    }
    for info in home.objects.list_objects()? {
        home.objects.remove_object(info.id)?;
    }
    Ok(())
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The point.
    pub point: RecoveryPoint,
    /// The number of the new database.
    pub database: DatabaseId,
    /// What was copied.
    pub copied: CopyStats,
}

/// Makes `to`, which is empty, a database that begins with the state of a restore point of `from`. One that was cut
/// short goes on. A server may be at work in `from`, and may remove the point meanwhile, unless it was made by hand:
/// that is an error then.
pub fn restore_point(
    from: &LogHome,
    which: &RecoveryTarget,
    to: &LogHome,
    env: &Env,
) -> Result<RestoreReport, BranchError> {
    let occupied = || BranchError::Occupied(to.describe());
    let manifest = || Ok::<_, BranchError>(manifest_of(from)?);
    let of_source = manifest()?.database;
    let points = as_of_now(manifest, |manifest| points(from, manifest))?;
    let point = choose(&points, which).ok_or_else(|| no_point(&points, which))?;
    let at = point.record;
    let record = CheckpointRecord::read(from.objects.as_ref(), of_source, at.object, at.crc)?;
    // The manifest goes first: it says what is being restored, and to go on with what. Without its record, which goes
    // last, nobody can serve it.
    let begun = match to.names.get(manifest::NAME)? {
        Some(_) => Some(manifest_of(to)?),
        None => None,
    };
    let database = match &begun {
        Some(begun) => begun.database,
        None => DatabaseId(env.random.u64()),
    };
    let (manifest, object, bytes) = beginning(&record, at.object, database)?;
    match begun {
        Some(begun) if begun == manifest => {}
        Some(_) => return Err(occupied()),
        None => {
            if !to.segments.list_lanes()?.is_empty() || !to.objects.list_objects()?.is_empty() {
                return Err(occupied());
            }
            to.names.put_if_absent(manifest::NAME, &manifest.encode())?;
        }
    }
    let copied = copy_objects(&from.objects, &record, to.objects.as_ref())?;
    to.objects.put_object(object, &bytes)?;
    Ok(RestoreReport {
        point: point.clone(),
        database,
        copied,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_people_write_them() {
        for (micros, text) in [
            (0, "2000-01-01 00:00:00.000000 UTC"),
            (-1, "1999-12-31 23:59:59.999999 UTC"),
            (5_097_600_000_000, "2000-02-29 00:00:00.000000 UTC"),
            (836_179_200_123_456, "2026-07-01 00:00:00.123456 UTC"),
        ] {
            assert_eq!(utc(micros), text);
        }
    }

    #[test]
    fn names_of_branches_are_plain_words() {
        for good in ["a", "trial-2", "x_1", &"b".repeat(63)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "A",
            "1a",
            "a/b",
            "a b",
            "..",
            "-a",
            "ä",
            &"b".repeat(64),
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
