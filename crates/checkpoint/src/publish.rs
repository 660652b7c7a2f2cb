//! Publishing checkpoints, and removing what no checkpoint needs any more.
//!
//! A checkpoint becomes the newest one in one step: the manifest is changed, by compare and swap, to name its record.
//! Everything that the record names is durable before. So whatever happens on the way, the manifest names a whole
//! checkpoint: the one before or the new one.
//!
//! What is removed (T8), and why nothing is removed that is needed:
//! - *Dropped*: records that were newest or kept, and that are neither any more; and the objects that they name. A
//!   server that takes over later begins with the record that dropped them, or a newer one, and so never comes back to
//!   them.
//! - *Unpinned*: records that were pinned ([`Pins`]) and are no more, likewise; and those that this process has read
//!   ([`Holds`]) and reads no more.
//! - *Given up*: objects that this server made for checkpoints that failed before anybody tried to name them. If a
//!   publication failed, they are removed after the next one that succeeds, for only then is it known that the manifest
//!   names none of them. The [`ObjectIdAllocator`] has the numbers.
//! - *Strays*: what replicas have stored in this epoch that were given numbers to write a checkpoint
//!   ([`ObjectIdAllocator::give_to_replica`]), and no record names. Here alone it is decided whether a record names
//!   them, and only while no replica has an order: an order is given, and what comes of it is published or given up,
//!   before the next collection. What is given up is never published, however late the replica answers, so it may go at
//!   once; what may be published is doubtful, as above. A replica that did not say that it has ended may store more,
//!   at any time: from then on each collection of this life lists the objects, and a later life finds them as orphans.
//!   Replicas remove nothing.
//! - *Orphans*: objects of earlier epochs, found once by listing: what servers before left when they
//!   crashed. Servers of earlier epochs cannot publish any more (their compare and swap fails), and objects of this and
//!   later epochs are never taken for orphans.
//!
//! And of all these only what no record names that stays: the newest one, those it keeps, those that are pinned, and
//! those that this process reads. The pins are read after the publication that dropped something and before anything is
//! removed; whoever pins a record looks after that whether the manifest still leads to it. While a record that stays
//! cannot be read, nothing is removed.
//!
//! While it is in doubt whether a publication succeeded, both checkpoints stay: what the new one needs is either needed
//! by the one before or a doubtful number of the allocator. A server that was overtaken removes nothing.
//!
//! Does not: write pages, know when a checkpoint is due, truncate the log, or pin anything.

use crate::compact::{self, CompactionLimits};
use crate::directory::{Directory, DirectoryUpdate, LiveChanges};
use crate::error::CheckpointError;
use crate::holds::Holds;
use crate::page_ref::{PageKey, PageRef};
use crate::pins::{BranchState, Pin, PinKind, Pins, RecoveryPoint};
use crate::record::{
    CheckpointRecord, DividedTable, IndexInfo, ObjectUse, RetainedRecord, TableInfo,
};
use crate::rows::ChunkSize;
use crate::writer::{ObjectIdAllocator, StoredObjects, WrittenObjects};
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, DatabaseId};
use logstead_wal::ManifestWriter;
use logstead_wal::manifest::{CheckpointRef, RedoPoint};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A directory with more entries is not looked through for what lies in an object: some 8 MiB of nodes.
const SCANNED_MAX: usize = 1 << 17;

/// Where the newest checkpoint is named.
pub trait CheckpointHead: Send {
    /// Names this checkpoint instead of the one before, by compare and swap. [`HomeError::Misuse`]: it was refused,
    /// nothing has changed. [`HomeError::Conflict`] and [`HomeError::Fenced`]: another server has taken over. After
    /// another error nobody knows whether it is named.
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError>;
}

impl CheckpointHead for Arc<ManifestWriter> {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
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
    /// Those of the tables that are divided, by number.
    pub divided: Vec<DividedTable>,
    /// The indexes, by table and number.
    pub indexes: Vec<IndexInfo>,
    /// Where each lane of this epoch is needed from, by lane.
    pub starts: Vec<RedoPoint>,
}

/// The pages and nodes of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPages {
    /// The root of its directory.
    pub root: Option<PageRef>,
    /// The objects in which they lie, by number.
    pub objects: Vec<ObjectUse>,
}

/// The newest checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedCheckpoint {
    /// The object that is its record.
    pub object: ObjectId,
    /// CRC-32C of that object.
    pub crc: u32,
    /// Its record.
    pub record: CheckpointRecord,
}

/// What a collection has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionStats {
    /// Objects removed.
    pub removed: u64,
    /// Objects that could not be removed now; the next collection tries again.
    pub left: u64,
}

/// Chunks and objects that the next checkpoint had better write anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewritePlan {
    /// Objects that are to be left: for [`Directory::apply`].
    pub objects: BTreeSet<ObjectId>,
    /// Pages that have bytes in them, by key: to be written whole.
    pub keys: Vec<PageKey>,
}

impl RewritePlan {
    /// What a checkpoint behind this one, with this directory, had better write anew.
    pub fn of(
        newest: Option<&CheckpointRecord>,
        directory: &Directory,
        limits: &CompactionLimits,
    ) -> Result<RewritePlan, CheckpointError> {
        let uses = newest.iter().flat_map(|record| &record.objects);
        let objects = compact::choose(uses, limits);
        let keys = directory.keys_in(&objects, SCANNED_MAX)?;
        Ok(RewritePlan { objects, keys })
    }
}

/// The objects of a checkpoint, and how much it needs of them: those that the one before has, and `more` that exist,
/// with what came and went.
pub fn objects_after(
    before: &[ObjectUse],
    more: &[ObjectUse],
    live: &LiveChanges,
    stored: &WrittenObjects,
) -> Result<Vec<ObjectUse>, CheckpointError> {
    let more = more.iter().map(|used| (used.object, (used.size_bytes, 0)));
    let mut uses: BTreeMap<ObjectId, (u64, i64)> = more.collect();
    let before = before.iter();
    uses.extend(before.map(|used| (used.object, (used.size_bytes, used.live_bytes as i64))));
    for (object, size_bytes) in &stored.objects {
        uses.insert(*object, (*size_bytes, 0));
    }
    for (object, change) in live {
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

/// Publishes this server's checkpoints, one after the other.
pub struct Publisher<H> {
    home: LogHome,
    head: H,
    database: DatabaseId,
    object_ids: Arc<ObjectIdAllocator>,
    newest: Option<PublishedCheckpoint>,
    /// What records name that stay, by number, as far as it was needed.
    names: BTreeMap<ObjectId, Arc<[ObjectId]>>,
    /// Objects and live bytes of records that stay, as far as they were read.
    sizes: BTreeMap<ObjectId, (u64, u64)>,
    /// The pins when they were last looked at.
    pins: Pins,
    /// The home has, or had, a list of pins.
    has_pins: bool,
    /// What this process reads.
    holds: Arc<Holds>,
    /// Records that were dropped or unpinned, and their checksums: what they name is to be looked at.
    dropped: BTreeMap<ObjectId, u32>,
    /// To be removed, unless somebody needs it.
    garbage: BTreeSet<ObjectId>,
    /// Earlier servers' orphans were looked for.
    has_listed: bool,
    strays: StrayObjects,
    overtaken: bool,
}

/// What replicas may have stored that no record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrayObjects {
    /// Nothing.
    None,
    /// All that they will ever have stored is there.
    There,
    /// More may come at any time.
    Coming,
}

impl<H: CheckpointHead> Publisher<H> {
    /// The publisher of the epoch that this server alone writes in, which the recovery mark has made its own; reads the
    /// record of `newest`, from the manifest.
    pub fn open(
        home: LogHome,
        head: H,
        database: DatabaseId,
        object_ids: Arc<ObjectIdAllocator>,
        newest: Option<&CheckpointRef>,
    ) -> Result<Publisher<H>, CheckpointError> {
        let newest = match newest {
            None => None,
            Some(CheckpointRef { object, crc, .. }) => Some(PublishedCheckpoint {
                object: *object,
                crc: *crc,
                record: CheckpointRecord::read(home.objects.as_ref(), database, *object, *crc)?,
            }),
        };
        let has_pins = newest.as_ref().is_some_and(|newest| newest.record.has_pins);
        let holds = Arc::new(Holds::default());
        if let Some(newest) = &newest {
            let kept = newest
                .record
                .kept
                .iter()
                .map(|kept| (kept.object, kept.crc));
            holds.add_whole(kept.chain([(newest.object, newest.crc)]));
        }
        Ok(Publisher {
            holds,
            home,
            head,
            database,
            object_ids,
            newest,
            names: BTreeMap::new(),
            sizes: BTreeMap::new(),
            pins: Pins::default(),
            has_pins,
            dropped: BTreeMap::new(),
            garbage: BTreeSet::new(),
            has_listed: false,
            strays: StrayObjects::None,
            overtaken: false,
        })
    }

    /// The newest checkpoint that is known to be published.
    pub fn newest(&self) -> Option<&PublishedCheckpoint> {
        self.newest.as_ref()
    }

    /// The numbers of this server's objects, for its [`ObjectWriter`](crate::ObjectWriter)s.
    pub fn object_ids(&self) -> &Arc<ObjectIdAllocator> {
        &self.object_ids
    }

    /// Where records are held that this process reads.
    pub fn holds(&self) -> &Arc<Holds> {
        &self.holds
    }

    /// Where its checkpoints are named.
    pub fn head(&self) -> &H {
        &self.head
    }

    /// Objects and dropped records that wait to be looked at, and removed if nobody needs them.
    pub fn garbage(&self) -> usize {
        self.garbage.len() + self.dropped.len()
    }

    /// The records that the next one may keep, by CSN: those that the newest keeps, and the newest.
    pub fn to_keep(&self) -> Vec<RetainedRecord> {
        let Some(newest) = &self.newest else {
            return Vec::new();
        };
        let mut records = newest.record.kept.clone();
        records.push(newest.as_retained());
        records
    }

    /// What the next checkpoint had better store anew, so that objects with few live bytes, or many small ones, go
    /// away.
    pub fn to_rewrite(
        &self,
        directory: &Directory,
        limits: &CompactionLimits,
    ) -> Result<RewritePlan, CheckpointError> {
        let newest = self.newest.as_ref().map(|newest| &newest.record);
        RewritePlan::of(newest, directory, limits)
    }

    /// Publishes a checkpoint whose pages and nodes are stored: `applied` to the directory of the newest one. `more`
    /// are objects that the newest does not need, and whose pages are named again: somebody holds a record with them.
    /// `keep` says which older records stay. After an error the newest checkpoint is the one before, or it is not known
    /// which of both; the next one settles that.
    pub fn publish(
        &mut self,
        new: NewCheckpoint,
        applied: &DirectoryUpdate,
        more: &[ObjectUse],
        stored: StoredObjects,
        keep: impl Fn(&RetainedRecord) -> bool,
    ) -> Result<&PublishedCheckpoint, CheckpointError> {
        let before = self.newest.as_ref().map(|newest| &newest.record.objects);
        let before = before.map_or(&[][..], Vec::as_slice);
        let objects = objects_after(before, more, &applied.live, stored.written())?;
        let pages = CheckpointPages {
            root: applied.directory.root(),
            objects,
        };
        self.publish_pages(new, pages, stored, keep)
    }

    /// The same of pages and nodes that somebody else has put together.
    pub fn publish_pages(
        &mut self,
        new: NewCheckpoint,
        pages: CheckpointPages,
        mut stored: StoredObjects,
        keep: impl Fn(&RetainedRecord) -> bool,
    ) -> Result<&PublishedCheckpoint, CheckpointError> {
        if self.overtaken {
            return Err(CheckpointError::Overtaken);
        }
        let newest = self.newest.as_ref();
        if newest.is_some_and(|newest| newest.record.chunk_size != ChunkSize::Of64) {
            return Err(CheckpointError::Misuse(
                "a checkpoint on top of one whose chunks have another size",
            ));
        }
        let mut kept = self.to_keep();
        kept.retain(&keep);
        let NewCheckpoint {
            csn,
            taken_at_micros,
            tables,
            divided,
            indexes,
            starts,
        } = new;
        let record = CheckpointRecord {
            database: self.database,
            chunk_size: ChunkSize::Of64,
            csn,
            epoch: self.object_ids.epoch(),
            taken_at_micros,
            root: pages.root,
            tables,
            indexes,
            objects: pages.objects,
            starts,
            kept,
            has_pins: self.has_pins,
            divided,
        };
        let object = stored.number_of_record()?;
        let (bytes, crc) = record.encode_with_crc(object)?;
        if let Err(error) = self.home.objects.put_object(object, &bytes) {
            if matches!(error, HomeError::Conflict(_)) {
                stored.disown(object);
            }
            return Err(error.into());
        }
        let checkpoint = CheckpointRef {
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
            Err(HomeError::Fenced(_)) => {
                self.overtaken = true;
                return Err(CheckpointError::Overtaken);
            }
            // Where a lease says who may write, its loss is told as such: others may have been faster than an answer of
            // ours.
            Err(HomeError::Conflict(_)) if !self.home.capabilities().leased => {
                self.overtaken = true;
                return Err(CheckpointError::Overtaken);
            }
            // Perhaps it is named: what it needs stays, what the one before needs stays.
            Err(error) => return Err(error.into()),
        }
        let new = PublishedCheckpoint {
            object,
            crc,
            record,
        };
        Ok(self.published(new, stored.into_numbers()))
    }

    /// The manifest names it: notes what was dropped.
    fn published(&mut self, new: PublishedCheckpoint, own: Vec<ObjectId>) -> &PublishedCheckpoint {
        if let Some(old) = self.newest.take() {
            self.names.insert(old.object, named_by(&old.record));
            self.sizes.insert(old.object, size_of_all(&old.record));
            let stays = |object| new.record.kept.iter().any(|kept| kept.object == object);
            let before = old.record.kept.iter().map(|kept| (kept.object, kept.crc));
            let before = before.chain([(old.object, old.crc)]);
            self.dropped
                .extend(before.filter(|(object, _)| !stays(*object)));
        }
        let new = self.newest.insert(new);
        self.holds.add_whole([(new.object, new.crc)]);
        self.garbage.extend(own);
        self.garbage.extend(self.object_ids.take_doubtful());
        let record = &new.record;
        self.garbage
            .retain(|object| *object != new.object && record.object(*object).is_none());
        new
    }

    /// Were orphans of earlier lives looked for?
    pub fn has_listed(&self) -> bool {
        self.has_listed
    }

    /// What a replica has stored with numbers that it was given is not published. `ended`: it stores nothing more.
    pub fn gave_up_replica(&mut self, ended: bool) {
        self.strays = match (self.strays, ended) {
            (StrayObjects::Coming, _) | (_, false) => StrayObjects::Coming,
            (_, true) => StrayObjects::There,
        };
    }

    /// Removes what no checkpoint needs any more. What cannot be removed now is left for the next time. No replica has
    /// an order.
    pub fn collect(&mut self) -> Result<CollectionStats, CheckpointError> {
        if self.overtaken {
            return Err(CheckpointError::Overtaken);
        }
        self.garbage.extend(self.object_ids.take_given_up());
        if !self.has_listed || self.strays != StrayObjects::None {
            let object_ids = &self.object_ids;
            let epoch = object_ids.epoch();
            let is_orphan = |id: &ObjectId| id.epoch() < epoch || object_ids.is_stray(*id);
            let listed = self.home.objects.list_objects()?;
            let listed = listed.into_iter().map(|info| info.id);
            self.garbage.extend(listed.filter(is_orphan));
            self.has_listed = true;
            if self.strays == StrayObjects::There {
                self.strays = StrayObjects::None;
            }
        }
        let has_pins = self.pins.iter().next().is_some();
        let has_holds = !self.holds.is_empty();
        if self.garbage.is_empty() && self.dropped.is_empty() && !has_pins && !has_holds {
            return Ok(CollectionStats::default());
        }
        self.judge()?;
        let mut collected = CollectionStats::default();
        let mut last_error = None;
        for object in std::mem::take(&mut self.garbage) {
            match self.home.objects.remove_object(object) {
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

    /// What is garbage afterwards is needed by nobody.
    fn judge(&mut self) -> Result<(), CheckpointError> {
        // After the publication that dropped something: see the module's documentation.
        self.reload_pins()?;
        let pins = self.pins.clone();
        let pinned = pins.iter();
        let mut stay: BTreeMap<ObjectId, u32> = pinned
            .map(|pin| (pin.record.object, pin.record.crc))
            .collect();
        let kept = self.newest.iter().flat_map(|newest| &newest.record.kept);
        stay.extend(kept.map(|kept| (kept.object, kept.crc)));
        let newest = self.newest.as_ref();
        let newest = newest.map(|newest| (newest.object, newest.crc));
        stay.extend(newest);
        let released = self.holds.decide(&mut stay);
        self.dropped.extend(released);
        self.dropped.retain(|record, _| !stay.contains_key(record));
        // What the newest names is known.
        if let Some((object, _)) = newest {
            stay.remove(&object);
        }
        for (object, crc) in &stay {
            let read = self.names_of(*object, *crc);
            // A branch that is only being made looks again whether what it has pinned is there.
            let in_making = |kind| {
                matches!(
                    kind,
                    PinKind::Branch {
                        state: BranchState::Making,
                        ..
                    }
                )
            };
            let mut pinned = pins.iter().filter(|pin| pin.record.object == *object);
            match read {
                Err(CheckpointError::Damaged(_))
                    if pinned.next().is_some_and(|pin| in_making(pin.kind))
                        && pinned.all(|pin| in_making(pin.kind))
                        && self.is_missing(*object)? => {}
                read => {
                    read?;
                }
            }
        }
        for (object, crc) in std::mem::take(&mut self.dropped) {
            self.garbage.insert(object);
            match self.names_of(object, crc) {
                Ok(names) => self.garbage.extend(names.iter().copied()),
                // What it named goes as orphans of this epoch in a later life.
                Err(CheckpointError::Damaged(_)) => {}
                // Looked at the next time.
                Err(_) => {
                    self.garbage.remove(&object);
                    self.dropped.insert(object, crc);
                }
            }
        }
        self.names.retain(|record, _| stay.contains_key(record));
        self.sizes.retain(|record, _| stay.contains_key(record));
        let (newest, names) = (&self.newest, &self.names);
        self.garbage.retain(|object| {
            let by_newest = newest.as_ref().is_some_and(|newest| {
                newest.object == *object || newest.record.object(*object).is_some()
            });
            let by_others = || {
                stay.contains_key(object)
                    || names
                        .values()
                        .any(|names| names.binary_search(object).is_ok())
            };
            !by_newest && !by_others()
        });
        Ok(())
    }

    /// What a record names, read once.
    fn names_of(&mut self, object: ObjectId, crc: u32) -> Result<Arc<[ObjectId]>, CheckpointError> {
        if let Some(names) = self.names.get(&object) {
            return Ok(Arc::clone(names));
        }
        let record =
            CheckpointRecord::read(self.home.objects.as_ref(), self.database, object, crc)?;
        let names = named_by(&record);
        self.names.insert(object, Arc::clone(&names));
        self.sizes.insert(object, size_of_all(&record));
        Ok(names)
    }

    /// Sees to it that the home has a list of pins, so that every record from now on says so.
    pub fn begin_pins(&mut self) -> Result<(), CheckpointError> {
        Pins::begin(self.home.names.as_ref(), self.has_pins)?;
        self.has_pins = true;
        Ok(())
    }

    /// Does the newest record say of pins what is known? If not, the next one does.
    pub fn has_recorded_pins(&self) -> bool {
        let newest = self.newest.as_ref();
        newest.is_some_and(|newest| newest.record.has_pins == self.has_pins)
    }

    /// Reads the pins. Those that are gone since they were last looked at hold nothing any more.
    pub fn reload_pins(&mut self) -> Result<(), CheckpointError> {
        let (pins, tag) = Pins::read_of(self.home.names.as_ref(), self.has_pins)?;
        self.has_pins |= tag.is_some();
        let before = std::mem::replace(&mut self.pins, pins);
        let record = |pin: &Pin| (pin.record.object, pin.record.crc);
        self.dropped.extend(before.iter().map(record));
        self.holds.add_whole(self.pins.iter().map(record));
        // Judged with the next collection.
        let pinned: BTreeSet<ObjectId> = self.pins.iter().map(|pin| pin.record.object).collect();
        self.dropped.retain(|object, _| !pinned.contains(object));
        Ok(())
    }

    /// What can be gone back to, by CSN, as it was when a collection or [`Publisher::reload_pins`] last looked, each
    /// with its objects and the bytes it needs of them if its record was read.
    pub fn points(&self) -> Vec<(RecoveryPoint, Option<(u64, u64)>)> {
        let mut points: Vec<RecoveryPoint> = self
            .to_keep()
            .into_iter()
            .map(RecoveryPoint::unnamed)
            .collect();
        if let Some(newest) = points.last_mut() {
            newest.is_newest = true;
        }
        self.pins.name(&mut points);
        let newest = self.newest.as_ref();
        let size = |point: &RecoveryPoint| {
            let of_newest = newest.filter(|newest| newest.object == point.record.object);
            let of_newest = of_newest.map(|newest| size_of_all(&newest.record));
            of_newest.or_else(|| self.sizes.get(&point.record.object).copied())
        };
        points
            .into_iter()
            .map(|point| {
                let size = size(&point);
                (point, size)
            })
            .collect()
    }

    fn is_missing(&self, object: ObjectId) -> Result<bool, CheckpointError> {
        match self.home.objects.read_object(object, 0, &mut [0]) {
            Err(HomeError::Missing(_)) => Ok(true),
            Ok(_) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl PublishedCheckpoint {
    /// As a later record keeps it.
    pub fn as_retained(&self) -> RetainedRecord {
        RetainedRecord {
            object: self.object,
            crc: self.crc,
            csn: self.record.csn,
            taken_at_micros: self.record.taken_at_micros,
        }
    }
}

/// Objects of a record, and the bytes that it needs of them.
fn size_of_all(record: &CheckpointRecord) -> (u64, u64) {
    (record.objects.len() as u64, record.bytes().0)
}

/// The objects that a record needs, without its own, by number.
fn named_by(record: &CheckpointRecord) -> Arc<[ObjectId]> {
    record.objects.iter().map(|used| used.object).collect()
}
