//! The place of a backup: what is there, whether it may be overwritten, and the numbers that a backup takes in it.
//!
//! Does not: know what a backup is made of.

use super::{BACKUP, BackupError, OTHER_BACKUP, points};
use crate::attempt::{self, COUNTER_MIN};
use logstead_env::Env;
use logstead_home::{HomeError, LogHome, ObjectId, Tag};
use logstead_types::{DatabaseId, Epoch};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{self, Manifest, UnfinishedCopy};
use logstead_wal::number_limits::{NumbersExhausted, next_epoch};
use logstead_wal::recovery::RecoveryError;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How often the stamp is changed while others change it.
const STAMP_TRIES: u32 = 20;

/// What makes a home a backup: whose, and the manifests that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackupLabel {
    pub(super) database: DatabaseId,
    pub(super) source: DatabaseId,
    /// The highest epoch that a backup has taken for its tail; 0: none, or it was stamped before there was this line.
    pub(super) epoch: Epoch,
    pub(super) manifests: Vec<u32>,
}

impl BackupLabel {
    pub(super) fn encode(&self) -> Vec<u8> {
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
pub(super) struct Target {
    pub(super) database: DatabaseId,
    /// What stands in the manifest's place.
    bytes: Vec<u8>,
    pub(super) tag: Tag,
    /// The backup before.
    pub(super) before: Option<Manifest>,
}

impl Target {
    pub(super) fn look(to: &LogHome, env: &Env, source: DatabaseId) -> Result<Target, BackupError> {
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
    pub(super) fn clear(&self, to: &LogHome) -> Result<BTreeSet<ObjectId>, BackupError> {
        let Some(before) = &self.before else {
            return Ok(BTreeSet::new());
        };
        if !attempt::has_reserved_numbers(to.names.as_ref())? {
            return Ok(BTreeSet::new());
        }
        let needed = points::needed_by(to, before)?;
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

    pub(super) fn refused(to: &LogHome, what: &'static str) -> BackupError {
        BackupError::Refused {
            target: to.describe(),
            what,
        }
    }

    /// Changes what the home says of its backups: gives what it says now, and that state's tag. Called again if another
    /// backup was faster.
    pub(super) fn stamp(
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

    /// Takes two epochs above `above` that no other backup has, nor will have, one above the other: gives the first.
    pub(super) fn take_epochs(
        &self,
        to: &LogHome,
        source: DatabaseId,
        above: Epoch,
    ) -> Result<Epoch, BackupError> {
        let mut first = above;
        self.stamp(to, source, |stamp| {
            first = next_epoch(stamp.epoch.max(above))?;
            stamp.epoch = next_epoch(first)?;
            Ok(())
        })?;
        Ok(first)
    }

    /// Stores the manifest in place of what was found: from then on the target is the new backup. Gives its tag.
    pub(super) fn store(&self, to: &LogHome, bytes: &[u8]) -> Result<Tag, BackupError> {
        match to.names.compare_and_swap(manifest::NAME, self.tag, bytes) {
            Ok(tag) => Ok(tag),
            Err(HomeError::Conflict(_)) => match to.names.get(manifest::NAME)? {
                // Ours, whose answer was lost.
                Some((there, tag)) if there == bytes => Ok(tag),
                _ => Err(Target::refused(to, OTHER_BACKUP)),
            },
            Err(error) => Err(error.into()),
        }
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
            let epoch = target.take_epochs(&LogHome::from(home.clone()), source, Epoch(7));
            epoch.unwrap()
        });
        assert_eq!(epochs, [Epoch(8), Epoch(10), Epoch(12)]);
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
