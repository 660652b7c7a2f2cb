//! The checkpoints of a backup: the newest one of the source, and its restore points.
//!
//! Objects come over as they are. A record becomes one of the copy's own database, so it has another checksum there,
//! and names those that it keeps by theirs. It is stored once: where it is there already, what it keeps is what it says
//! there. So whoever copies the same newest checkpoint later, or at the same time, leads to the same restore points.
//!
//! The names of restore points are in the copy's list of pins, which is stored before the manifest: whoever reads the
//! list finds what it names, because nothing is removed before the manifest is there. Branches that somebody has made
//! of the backup stay in it.
//!
//! A restore point that cannot be read is left out, and counted: it must not keep the newest state from being copied.

use super::target::Target;
use super::{BackupError, LEFT_BY_A_SERVER, OTHER_BACKUP};
use crate::copy::{CopyStats, copy_objects_beside, is_copied};
use crate::error::CheckpointError;
use crate::pins::{PINS, Pin, PinKind, Pins, points};
use crate::record::{CheckpointRecord, RetainedRecord};
use logstead_home::{HomeError, LogHome, ObjectId, Tag};
use logstead_types::DatabaseId;
use logstead_wal::manifest::{CheckpointRef, Manifest};
use std::collections::{BTreeMap, BTreeSet};

/// What the backup `manifest` in `to` needs, with its restore points.
pub(super) fn needed_by(
    to: &LogHome,
    manifest: &Manifest,
) -> Result<BTreeSet<ObjectId>, BackupError> {
    let mut needed = BTreeSet::new();
    for point in points(to, manifest)? {
        let at = point.record;
        let record =
            CheckpointRecord::read(to.objects.as_ref(), manifest.database, at.object, at.crc);
        match record {
            Ok(record) => needed.extend(names_of(at.object, &record)),
            // Nobody can go back to it.
            Err(CheckpointError::Damaged(_)) if !point.is_newest => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(needed)
}

/// A record and the objects that it names.
fn names_of(object: ObjectId, record: &CheckpointRecord) -> impl Iterator<Item = ObjectId> {
    let named = record.objects.iter().map(|used| used.object);
    named.chain([object])
}

/// A record that is in the target.
#[derive(Clone, Debug)]
pub(super) struct StoredRecord {
    /// As the target has it.
    pub(super) retained: RetainedRecord,
    kept: Vec<RetainedRecord>,
    /// Restore points that it should keep and that could not be read.
    left_out: u64,
    needed: BTreeSet<ObjectId>,
}

/// Records that are known to be in the target, by the source's number and checksum.
pub(super) type KnownRecords = BTreeMap<(ObjectId, u32), StoredRecord>;

/// The checkpoints of a backup, copied.
pub(super) struct CopiedPoints {
    /// The newest.
    pub(super) checkpoint: Option<CheckpointRef>,
    /// All objects that any of them needs.
    pub(super) needed: BTreeSet<ObjectId>,
    /// The list of pins that the copy is to have; `None`: none.
    pub(super) pins: Option<Pins>,
    /// Restore points beside the newest.
    pub(super) count: u64,
    /// Restore points of the source that could not be read.
    pub(super) left_out: u64,
}

/// Copies records with what they name.
pub(super) struct PointCopier<'a> {
    pub(super) from: &'a LogHome,
    pub(super) source: DatabaseId,
    pub(super) to: &'a LogHome,
    pub(super) database: DatabaseId,
    /// Objects of the target of which nobody knows whose they are.
    pub(super) doubtful: &'a BTreeSet<ObjectId>,
    /// Objects of the target, and their sizes.
    pub(super) there: BTreeMap<ObjectId, u64>,
    pub(super) known: &'a mut KnownRecords,
    pub(super) copied: CopyStats,
}

impl PointCopier<'_> {
    /// Copies the newest checkpoint of `manifest`, what it keeps, and what `pins` of the source name; the target has
    /// the pins `there`.
    pub(super) fn copy(
        &mut self,
        manifest: &Manifest,
        pins: Option<&Pins>,
        there: &Pins,
    ) -> Result<CopiedPoints, BackupError> {
        let mut copied = CopiedPoints {
            checkpoint: None,
            needed: BTreeSet::new(),
            pins: None,
            count: 0,
            left_out: 0,
        };
        let mut points = BTreeSet::new();
        if let Some(newest) = &manifest.checkpoint {
            let stored = self.newest(newest, &mut copied)?;
            for kept in &stored.kept {
                points.insert(kept.object);
                let needed = self.needed_by_kept(kept)?;
                copied.needed.extend(needed);
            }
            copied.needed.extend(&stored.needed);
            copied.checkpoint = Some(CheckpointRef {
                crc: stored.retained.crc,
                ..newest.clone()
            });
            points.remove(&newest.object);
        }
        let mut own = Pins::default();
        for branch in there.iter().filter(|pin| pin.kind != PinKind::Point) {
            let at = branch.record;
            let record = self.read_there(&at)?;
            copied.needed.extend(names_of(at.object, &record));
            own.put(branch.clone());
        }
        for pin in pins.iter().flat_map(|pins| pins.iter()) {
            if pin.kind != PinKind::Point {
                continue;
            }
            if let Some(stored) = self.point(&pin.record, &mut copied.left_out)? {
                let newest = manifest.checkpoint.as_ref().map(|newest| newest.object);
                if newest != Some(pin.record.object) {
                    points.insert(pin.record.object);
                }
                copied.needed.extend(&stored.needed);
                own.put(Pin {
                    record: stored.retained,
                    ..pin.clone()
                });
            }
        }
        copied.count = points.len() as u64;
        copied.pins = (pins.is_some() || own.iter().next().is_some()).then_some(own);
        Ok(copied)
    }

    /// What is known of a record, if all that it needs is there still.
    fn known_whole(&self, object: ObjectId, crc: u32) -> Option<&StoredRecord> {
        let is_there = |id: &ObjectId| self.there.contains_key(id);
        let known = self.known.get(&(object, crc))?;
        known.needed.iter().all(is_there).then_some(known)
    }

    fn newest(
        &mut self,
        newest: &CheckpointRef,
        copied: &mut CopiedPoints,
    ) -> Result<StoredRecord, BackupError> {
        if let Some(known) = self.known_whole(newest.object, newest.crc) {
            copied.left_out += known.left_out;
            return Ok(known.clone());
        }
        let objects = self.from.objects.as_ref();
        let record = CheckpointRecord::read(objects, self.source, newest.object, newest.crc)?;
        let mut kept = Vec::new();
        for at in &record.kept {
            let stored = self.point(at, &mut copied.left_out)?;
            kept.extend(stored.map(|stored| stored.retained));
        }
        let at = (newest.object, newest.crc);
        let mut stored = self.store(at, record, kept)?;
        stored.left_out = copied.left_out;
        self.known.insert(at, stored.clone());
        Ok(stored)
    }

    /// Copies a restore point. `None`: it cannot be read.
    fn point(
        &mut self,
        at: &RetainedRecord,
        left_out: &mut u64,
    ) -> Result<Option<StoredRecord>, BackupError> {
        if let Some(known) = self.known_whole(at.object, at.crc) {
            return Ok(Some(known.clone()));
        }
        let objects = self.from.objects.as_ref();
        let read = CheckpointRecord::read(objects, self.source, at.object, at.crc);
        let stored = read
            .map_err(BackupError::from)
            .and_then(|record| self.store((at.object, at.crc), record, Vec::new()));
        match stored {
            Ok(stored) => Ok(Some(stored)),
            Err(BackupError::Checkpoint(CheckpointError::Damaged(_))) => {
                *left_out += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Copies the objects of a record, and stores it as one of the copy's.
    fn store(
        &mut self,
        (object, crc): (ObjectId, u32),
        record: CheckpointRecord,
        kept: Vec<RetainedRecord>,
    ) -> Result<StoredRecord, BackupError> {
        let in_the_way = || Target::refused(self.to, LEFT_BY_A_SERVER);
        let doubtful = |used: &ObjectId| self.doubtful.contains(used);
        for used in record.objects.iter().filter(|used| doubtful(&used.object)) {
            if !is_copied(&self.from.objects, &record, used, self.to.objects.as_ref())? {
                return Err(in_the_way());
            }
        }
        let to = self.to.objects.as_ref();
        let done = copy_objects_beside(&self.from.objects, &record, to, &mut self.there)?;
        self.copied.add(done);
        let own = CheckpointRecord {
            database: self.database,
            kept,
            ..record
        };
        let bytes = own.encode(object)?;
        let size = self.there.get(&object).copied();
        let found = match size.filter(|_| !self.doubtful.contains(&object)) {
            Some(size) => self.as_there(object, size, &own)?,
            None => None,
        };
        let (crc_there, kept) = match found {
            Some(found) => found,
            None => match self.to.objects.put_object(object, &bytes) {
                Ok(()) => {
                    self.copied.objects += 1;
                    self.copied.bytes += bytes.len() as u64;
                    self.there.insert(object, bytes.len() as u64);
                    (crc32c::crc32c(&bytes), own.kept.clone())
                }
                Err(HomeError::Conflict(_)) if self.doubtful.contains(&object) => {
                    return Err(in_the_way());
                }
                // Another backup may have stored it since, with other restore points.
                Err(HomeError::Conflict(_)) => {
                    return Err(Target::refused(self.to, OTHER_BACKUP));
                }
                Err(error) => return Err(error.into()),
            },
        };
        let stored = StoredRecord {
            retained: RetainedRecord {
                object,
                crc: crc_there,
                csn: own.csn,
                taken_at_micros: own.taken_at_micros,
            },
            kept,
            left_out: 0,
            needed: names_of(object, &own).collect(),
        };
        self.known.insert((object, crc), stored.clone());
        Ok(stored)
    }

    /// Its checksum and what it keeps, if the target has the same record, whatever that keeps.
    fn as_there(
        &self,
        object: ObjectId,
        size_bytes: u64,
        own: &CheckpointRecord,
    ) -> Result<Option<(u32, Vec<RetainedRecord>)>, BackupError> {
        let mut bytes = vec![0; size_bytes.min(logstead_home::OBJECT_BYTES_MAX as u64) as usize];
        let got = match self.to.objects.read_object(object, 0, &mut bytes) {
            Ok(got) => got,
            // It was listed, and is gone since.
            Err(HomeError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        bytes.truncate(got);
        let Ok(there) = CheckpointRecord::decode(&bytes, self.database, object) else {
            return Ok(None);
        };
        let same = CheckpointRecord {
            kept: there.kept.clone(),
            has_pins: there.has_pins,
            ..own.clone()
        };
        Ok((same == there).then(|| (crc32c::crc32c(&bytes), there.kept)))
    }

    fn read_there(&self, at: &RetainedRecord) -> Result<CheckpointRecord, BackupError> {
        let objects = self.to.objects.as_ref();
        let read = CheckpointRecord::read(objects, self.database, at.object, at.crc);
        Ok(read?)
    }

    /// What a record needs that the newest of the target keeps.
    fn needed_by_kept(&self, kept: &RetainedRecord) -> Result<BTreeSet<ObjectId>, BackupError> {
        let known = self.known.values().find(|known| known.retained == *kept);
        match known {
            Some(known) => Ok(known.needed.clone()),
            None => Ok(names_of(kept.object, &self.read_there(kept)?).collect()),
        }
    }
}

/// The list of pins that was found in a home, if there was one.
pub(super) type FoundPins = Option<(Vec<u8>, Tag)>;

/// Has the target the list of pins that it is to have.
pub(super) fn store_pins(to: &LogHome, found: &FoundPins, pins: &Pins) -> Result<(), BackupError> {
    let bytes = pins.encode();
    let stored = match found {
        Some((there, _)) if *there == bytes => return Ok(()),
        Some((_, tag)) => to.names.compare_and_swap(PINS, *tag, &bytes),
        None => to.names.put_if_absent(PINS, &bytes),
    };
    match stored {
        Ok(_) => Ok(()),
        Err(HomeError::Conflict(_)) => match to.names.get(PINS)? {
            // Ours, whose answer was lost.
            Some((there, _)) if there == bytes => Ok(()),
            _ => Err(Target::refused(to, OTHER_BACKUP)),
        },
        Err(error) => Err(error.into()),
    }
}
