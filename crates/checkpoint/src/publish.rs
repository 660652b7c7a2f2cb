//! Publishing checkpoints, and removing what no checkpoint needs any more.
//!
//! A checkpoint becomes the newest one in one step: the manifest is changed, by compare and swap, to name its record. Everything that the record
//! names is durable before. So whatever happens on the way, the manifest names a whole checkpoint: the one before or the new one.
//!
//! What is removed (T8), and why nothing is removed that is needed:
//! - *Dropped*: objects that the record before named, or a record that was kept until now, and that neither the new record nor a kept one names; and
//!   those records. Computed from records alone, after the new one is known to be published. A server that takes over later begins with that record, or a
//!   newer one, and so never comes back to them.
//! - *Given up*: objects that this server made for checkpoints that failed before anybody tried to name them: removed at once. If a publication
//!   failed, they are removed after the next one that succeeds, for only then is it known that the manifest names none of them. The [`Ledger`] has the numbers.
//! - *Orphans*: objects of earlier epochs that neither the newest record nor a kept one names, found once by listing: what servers before left when they
//!   crashed. Servers of earlier epochs cannot publish any more (their compare and swap fails), and objects of this and later epochs are never
//!   taken for orphans.
//!
//! While it is in doubt whether a publication succeeded, both checkpoints stay: what the new one needs is either needed by the one before or a
//! doubtful number of the ledger. A server that was overtaken removes nothing.
//!
//! Does not: write pages, know when a checkpoint is due, truncate the log, or know branches, of which there are none.

use crate::compact::{self, Limits};
use crate::directory::{Applied, Directory};
use crate::error::CheckpointError;
use crate::place::PageKey;
use crate::record::{IndexInfo, KeptRecord, ObjectUse, Record, TableInfo};
use crate::writer::{Finished, Ledger};
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, DatabaseId};
use logstead_wal::manifest::{Checkpoint, ManifestKeeper, Start};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where the newest checkpoint is named.
pub trait Head: Send {
    /// Names this checkpoint instead of the one before, by compare and swap. [`HomeError::Misuse`]: it was refused, nothing has changed.
    /// [`HomeError::Conflict`] and [`HomeError::Fenced`]: another server has taken over. After another error nobody knows whether it is named.
    fn name(&self, checkpoint: Checkpoint) -> Result<(), HomeError>;
}

impl Head for Arc<ManifestKeeper> {
    fn name(&self, checkpoint: Checkpoint) -> Result<(), HomeError> {
        self.update(|manifest| manifest.set_checkpoint(checkpoint.clone()))
    }
}

/// What a new checkpoint is, besides its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// It holds what all transactions below this CSN left.
    pub csn: Csn,
    /// Now, in microseconds since 2000-01-01 00:00 UTC.
    pub taken_at_micros: i64,
    /// The tables, by number.
    pub tables: Vec<TableInfo>,
    /// The indexes, by table and number.
    pub indexes: Vec<IndexInfo>,
    /// Where each lane of this epoch is needed from, by lane.
    pub starts: Vec<Start>,
}

/// The newest checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The object that is its record.
    pub object: ObjectId,
    /// CRC-32C of that object.
    pub crc: u32,
    /// Its record.
    pub record: Record,
}

/// What a collection has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Objects removed.
    pub removed: u64,
    /// Objects that could not be removed now; the next collection tries again.
    pub left: u64,
}

/// Chunks and objects that the next checkpoint had better write anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrites {
    /// Objects that are to be left: for [`Directory::apply`].
    pub objects: BTreeSet<ObjectId>,
    /// Pages that have bytes in them, by key: to be written whole.
    pub keys: Vec<PageKey>,
}

/// Publishes this server's checkpoints, one after the other.
pub struct Publisher<H> {
    home: Arc<dyn LogHome>,
    head: H,
    database: DatabaseId,
    ledger: Arc<Ledger>,
    newest: Option<Published>,
    /// What each kept record names.
    kept: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
    /// To be removed.
    garbage: BTreeSet<ObjectId>,
    /// Earlier servers' orphans were looked for.
    has_listed: bool,
    overtaken: bool,
}

impl<H: Head> Publisher<H> {
    /// The publisher of the epoch that this server alone writes in, which the recovery mark has made its own; reads the records that `newest`, from
    /// the manifest, leads to.
    pub fn open(
        home: Arc<dyn LogHome>,
        head: H,
        database: DatabaseId,
        ledger: Arc<Ledger>,
        newest: Option<&Checkpoint>,
    ) -> Result<Publisher<H>, CheckpointError> {
        let mut kept = BTreeMap::new();
        let newest = match newest {
            None => None,
            Some(Checkpoint { object, crc, .. }) => {
                let record = Record::read(&*home, database, *object, *crc)?;
                for older in &record.kept {
                    let older_record = Record::read(&*home, database, older.object, older.crc)?;
                    kept.insert(older.object, named_by(&older_record));
                }
                Some(Published {
                    object: *object,
                    crc: *crc,
                    record,
                })
            }
        };
        Ok(Publisher {
            home,
            head,
            database,
            ledger,
            newest,
            kept,
            garbage: BTreeSet::new(),
            has_listed: false,
            overtaken: false,
        })
    }

    /// The newest checkpoint that is known to be published.
    pub fn newest(&self) -> Option<&Published> {
        self.newest.as_ref()
    }

    /// The numbers of this server's objects, for its [`ObjectWriter`](crate::ObjectWriter)s.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Where its checkpoints are named.
    pub fn head(&self) -> &H {
        &self.head
    }

    /// Objects that wait to be removed.
    pub fn garbage(&self) -> usize {
        self.garbage.len()
    }

    /// What the next checkpoint had better store anew, so that objects with few live bytes, or many small ones, go away.
    pub fn to_rewrite(
        &self,
        directory: &Directory,
        limits: &Limits,
    ) -> Result<Rewrites, CheckpointError> {
        let uses = self.newest.iter().flat_map(|newest| &newest.record.objects);
        let objects = compact::choose(uses, limits);
        let keys = directory.keys_in(&objects)?;
        Ok(Rewrites { objects, keys })
    }

    /// Publishes a checkpoint whose pages and nodes are stored: `applied` to the directory of the newest one. `keep` says which older records
    /// stay. After an error the newest checkpoint is the one before, or it is not known which of both; the next one settles that.
    pub fn publish(
        &mut self,
        new: NewCheckpoint,
        applied: &Applied,
        mut stored: Finished,
        keep: impl Fn(&KeptRecord) -> bool,
    ) -> Result<&Published, CheckpointError> {
        if self.overtaken {
            return Err(CheckpointError::Overtaken);
        }
        let objects = self.objects_after(applied, &stored)?;
        let mut kept: Vec<KeptRecord> = Vec::new();
        if let Some(newest) = &self.newest {
            kept.clone_from(&newest.record.kept);
            kept.push(KeptRecord {
                object: newest.object,
                crc: newest.crc,
                csn: newest.record.csn,
                taken_at_micros: newest.record.taken_at_micros,
            });
            kept.retain(&keep);
        }
        let NewCheckpoint {
            csn,
            taken_at_micros,
            tables,
            indexes,
            starts,
        } = new;
        let record = Record {
            database: self.database,
            csn,
            epoch: self.ledger.epoch(),
            taken_at_micros,
            root: applied.directory.root(),
            tables,
            indexes,
            objects,
            starts,
            kept,
        };
        let object = stored.number_of_record()?;
        let bytes = record.encode(object)?;
        let crc = crc32c::crc32c(&bytes);
        self.home.put_object(object, &bytes)?;
        let checkpoint = Checkpoint {
            object,
            crc,
            csn,
            epoch: record.epoch,
            starts: record.starts.clone(),
        };
        stored.set_tried(true);
        match self.head.name(checkpoint) {
            Ok(()) => {}
            Err(error @ HomeError::Misuse { .. }) => {
                stored.set_tried(false);
                return Err(error.into());
            }
            Err(HomeError::Conflict(_) | HomeError::Fenced(_)) => {
                self.overtaken = true;
                return Err(CheckpointError::Overtaken);
            }
            // Perhaps it is named: what it needs stays, what the one before needs stays.
            Err(error) => return Err(error.into()),
        }
        let new = Published {
            object,
            crc,
            record,
        };
        Ok(self.published(new, stored.into_numbers()))
    }

    /// What the next record needs of each object: what was needed before, and what came and went.
    fn objects_after(
        &self,
        applied: &Applied,
        stored: &Finished,
    ) -> Result<Vec<ObjectUse>, CheckpointError> {
        let before = self.newest.iter().flat_map(|newest| &newest.record.objects);
        let mut uses: BTreeMap<ObjectId, (u64, i64)> = before
            .map(|used| (used.object, (used.size_bytes, used.live_bytes as i64)))
            .collect();
        for (object, size_bytes) in &stored.written().objects {
            uses.insert(*object, (*size_bytes, 0));
        }
        for (object, change) in &applied.live {
            let Some((_, live)) = uses.get_mut(object) else {
                return Err(CheckpointError::Misuse(
                    "a page in an object that was not stored",
                ));
            };
            *live += change;
        }
        if uses
            .values()
            .any(|&(size, live)| live < 0 || live as u64 > size)
        {
            return Err(CheckpointError::Misuse(
                "an object with more pages than bytes",
            ));
        }
        let needed = uses.into_iter().filter(|&(_, (_, live))| live > 0);
        Ok(needed
            .map(|(object, (size_bytes, live))| ObjectUse {
                object,
                size_bytes,
                live_bytes: live as u64,
            })
            .collect())
    }

    /// The manifest names it: works out what was dropped.
    fn published(&mut self, new: Published, own: Vec<ObjectId>) -> &Published {
        if let Some(old) = self.newest.take() {
            self.kept.insert(old.object, named_by(&old.record));
        }
        let stays: BTreeSet<ObjectId> = new.record.kept.iter().map(|kept| kept.object).collect();
        let (stay, dropped): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.kept)
            .into_iter()
            .partition(|(record, _)| stays.contains(record));
        self.kept = stay;
        let new = self.newest.insert(new);
        let named = named(new, &self.kept);
        for (record, objects) in dropped {
            self.garbage.insert(record);
            self.garbage.extend(objects);
        }
        self.garbage.extend(own);
        self.garbage.extend(self.ledger.take_doubtful());
        self.garbage.retain(|object| !named.contains(object));
        new
    }

    /// Were orphans of earlier lives looked for?
    pub fn has_listed(&self) -> bool {
        self.has_listed
    }

    /// Removes what no checkpoint needs any more. What cannot be removed now is left for the next time.
    pub fn collect(&mut self) -> Result<Collected, CheckpointError> {
        if self.overtaken {
            return Err(CheckpointError::Overtaken);
        }
        let mut collected = Collected::default();
        self.garbage.extend(self.ledger.take_given_up());
        if !self.has_listed {
            let listed = self.home.objects()?;
            let named = match &self.newest {
                Some(newest) => named(newest, &self.kept),
                None => BTreeSet::new(),
            };
            let epoch = self.ledger.epoch();
            let orphans = listed.into_iter().map(|info| info.id);
            let orphans = orphans.filter(|id| id.epoch() < epoch && !named.contains(id));
            self.garbage.extend(orphans);
            self.has_listed = true;
        }
        let mut last_error = None;
        for object in std::mem::take(&mut self.garbage) {
            match self.home.remove_object(object) {
                Ok(()) => collected.removed += 1,
                Err(error) => {
                    self.garbage.insert(object);
                    last_error = Some(error);
                }
            }
        }
        collected.left = self.garbage.len() as u64;
        match last_error {
            // Not one could be removed: the home is away, or full of rules.
            Some(error) if collected.removed == 0 => Err(error.into()),
            _ => Ok(collected),
        }
    }
}

/// The objects that a record needs, without its own.
fn named_by(record: &Record) -> BTreeSet<ObjectId> {
    record.objects.iter().map(|used| used.object).collect()
}

/// Every object that the newest record, and what it keeps, need.
fn named(newest: &Published, kept: &BTreeMap<ObjectId, BTreeSet<ObjectId>>) -> BTreeSet<ObjectId> {
    let mut named = named_by(&newest.record);
    named.insert(newest.object);
    for (record, objects) in kept {
        named.insert(*record);
        named.extend(objects);
    }
    named
}
