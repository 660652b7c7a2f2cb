//! A checkpoint that a replica writes for its primary, which orders and publishes it: both sides.
//!
//! # The steps
//!
//! 1. *Primary.* It notes the lanes' starts, then reads the CSN counter, `C`. All versions are kept that are the newest
//!    at `C`, or later. When the horizon has reached `C` it gives the order: the record in force, `C`, and numbers for
//!    objects that nobody else has or gets ([`crate::page_store::PageServices`]).
//! 2. *Replica.* Between two rounds, when snapshots see everything below `C`, it takes a snapshot, at `S`, with the
//!    tables and indexes of its catalog at `S`, and tells `S`.
//! 3. *Primary.* It takes the snapshot at `S` too, and lets go of the one at `C`: from here on only what `S` sees is
//!    kept, as for a checkpoint of its own.
//! 4. *Replica.* It writes what has changed since the record in force, in a thread of its own, beside who applies the
//!    log: chunks, leaves, directory. Last it stores a record of what it has written, and tells where that is.
//! 5. *Primary.* It reads that record, checks what can be checked, looks at its own changed chunks as of `S` without
//!    writing them, and publishes a record with the replica's pages and its own starts.
//! 6. *Replica.* It finds by the manifest what was published. If that is its own, its chunks and leaves are as stored.
//!
//! # Why the checkpoint is right
//!
//! - *The log.* `S` is at or above `C`, so an entry at or above `S` was pushed behind the starts; everything below `S`
//!   is below the horizon, for a replica sees nothing else. So starts and `S` are those of a checkpoint.
//! - *The rows.* The primary's record in force is the one that the replica has adopted: the order names it, and a
//!   replica that has adopted another refuses. Of a chunk that has changed since, the replica knows exactly what the
//!   record has, if it has written that record itself, or if nothing had been changed there at or above the record's
//!   CSN when it was adopted. Of every other one it is *unknown* ([`crate::page_store::ReplicaBase`], P1): such a
//!   chunk is written whole, or goes from the directory if it is empty. So no row comes back that was deleted.
//! - *The indexes.* See [`crate::page_store::page_base`]: the tiles are all of one process.
//! - *What the primary knows.* It sees its own rows at `S`, which are the replica's at `S`: so what it notes as saved
//!   is what the record has. Its leaves count as not saved by it, and stay in memory until it takes a checkpoint
//!   itself; those that are absent are read from the last one that it took, which is held.
//!
//! # Whatever goes wrong
//!
//! Until the primary publishes, nothing has changed: it gives the order up and takes a checkpoint itself. From then on
//! it never publishes what comes of the order. The replica may not know: what it holds of it is dropped when it hears
//! of the cancellation, of the next order, or of another record. If it hears late that its own was published, that is
//! another record for it like any other one, and what it does not know is unknown. Objects are removed by the primary
//! alone, in `logstead_checkpoint`'s `publish.rs`: there the rule is.
//!
//! The primary takes a checkpoint itself if none offers itself, the first time of a life (the log's tails, and orphans
//! of earlier lives, are its own), while somebody waits for memory or the evictor has asked several times (it lets its
//! leaves go), where part of the directory cannot be read, and where what is held for its leaves takes too much.
//!
//! Does not: carry messages, or publish ([`crate::page_store::base`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use logstead_checkpoint::{
    CheckpointError as PagesError, CheckpointPages, CheckpointRecord, ChunkSize, ObjectId,
    ObjectIdAllocator, ObjectUse, PageKey, StoredObjects, TableInfo, objects_after,
};
use logstead_home::OBJECT_BYTES_MAX;
use logstead_types::{Csn, Rid, TableId};

use super::take::{Checkpoint, WriterBase};
use super::walk::ChunkView;
use crate::engine::Engine;
use crate::page_store::base::{CheckpointBase, ReplicaPages};
use crate::page_store::page_service::{OrderEvent, OrderUnderWay, PageOrder, PageReply};
use crate::page_store::{
    CheckpointError, CheckpointReport, PageServices, ReplicaBase, WritingTurn, WrittenPages,
};
use crate::rows::TableRows;
use crate::table::Table;
use crate::version::{CHUNK_SLOTS, Chunk, Guard, SlotSet};

/// Numbers that one order gives: objects of up to 64 MiB, of at least 8.
const NUMBERS: u32 = 4096;
/// The longest that an order takes.
const ORDER_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// The longest until it is begun: until then nothing goes that anybody could see.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Of those that are taken because memory is short so many one after the other are left to a replica.
const FOR_MEMORY_MAX: u32 = 3;
/// What a replica writes before it tells that it is at work.
const SLICE_CHUNKS: usize = 64;

/// Why a replica's work is not published.
struct GaveUp(String);

impl<T: std::fmt::Display> From<T> for GaveUp {
    fn from(why: T) -> GaveUp {
        GaveUp(why.to_string())
    }
}

/// How an order ends for who gave it.
enum OrderEnd {
    Published(Box<CheckpointReport>),
    GaveUp(GaveUp),
    /// The checkpoint is not to be taken at all.
    Failed(CheckpointError),
}

/// A chunk of the primary's as the replica has it.
struct SavedChunk {
    table: Arc<Table>,
    number: u64,
    present: SlotSet,
    /// It was absent: only the log has something of it.
    is_logged: bool,
}

/// Chunks that were looked at. Dropping it gives their marks back, unless they are saved.
#[derive(Default)]
struct SavedChunks(Vec<SavedChunk>);

impl SavedChunks {
    fn end(&mut self, saved: bool) {
        for SavedChunk {
            table,
            number,
            present,
            is_logged,
        } in self.0.drain(..)
        {
            if let Some(chunk) = table.rows.chunk(number) {
                match (saved, is_logged) {
                    (true, true) => {
                        let rows = &table.rows;
                        rows.tail_is_written(number, chunk, &present, &SlotSet::NONE);
                    }
                    (true, false) => chunk.set_saved(&present),
                    (false, _) => {}
                }
                chunk.end_writing(!saved);
            }
        }
    }
}

impl Drop for SavedChunks {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Engine {
    /// Has a replica write the checkpoint of now. Nothing: the caller is to take it. Whoever calls has the turn.
    pub(super) fn checkpoint_by_replica(
        &self,
    ) -> Option<Result<CheckpointReport, CheckpointError>> {
        let inner = self.inner();
        let checkpoints = &inner.checkpoints;
        let in_a_row = &checkpoints.for_memory_in_a_row;
        if !checkpoints.for_memory.swap(false, Ordering::Relaxed) {
            in_a_row.store(0, Ordering::Relaxed);
        } else if in_a_row.fetch_add(1, Ordering::Relaxed) >= FOR_MEMORY_MAX {
            // It is the leaves, perhaps, which only one of this server's own lets go.
            in_a_row.store(0, Ordering::Relaxed);
            return None;
        }
        if inner.memory_queue.has_waiters()
            || self.home().appends.is_short_of_space()
            // What left with a restarted instance is not known well enough to name what a replica has of it.
            || inner.memory_queue.logged.of_restarts() > 0
        {
            return None;
        }
        let services = &checkpoints.page_services;
        if !services.is_any_ready() {
            let mut stats = checkpoints.stats.lock();
            if services.offers() > 0 || stats.by_replicas > 0 {
                stats.replica_absences += 1;
            }
            return None;
        }
        {
            let base = checkpoints.base.lock();
            let is_ready = |base: &CheckpointBase| base.may_be_written_by_replica();
            if !base.as_ref().is_some_and(is_ready) {
                return None;
            }
        }
        let mut checkpoint = self.begin_unpublished_checkpoint().ok()?;
        if checkpoint.base.as_ref()?.is_current(checkpoint.csn) {
            return None;
        }
        if let Err(error) = checkpoint.wait() {
            return Some(Err(error));
        }
        match self.order(&mut checkpoint) {
            OrderEnd::Published(report) => Some(Ok(*report)),
            OrderEnd::Failed(error) => Some(Err(error)),
            OrderEnd::GaveUp(GaveUp(why)) => {
                let mut stats = checkpoints.stats.lock();
                let was_fine = stats.last.as_ref().is_some_and(|last| last.by_replica);
                // Not each time, where it lasts.
                if was_fine || stats.last_replica_error.as_ref() != Some(&why) {
                    tracing::warn!(
                        "no replica has written the checkpoint, so this server takes it: {why}"
                    );
                }
                stats.replica_failures += 1;
                stats.last_replica_error = Some(why);
                None
            }
        }
    }

    /// Gives the order, and publishes what comes of it.
    fn order(&self, checkpoint: &mut Checkpoint) -> OrderEnd {
        let inner = self.inner();
        let services = &inner.checkpoints.page_services;
        let bandwidth = &inner.checkpoints.bandwidth_bytes;
        let Some(WriterBase::Primary(base)) = &checkpoint.base else {
            return OrderEnd::Failed(CheckpointError::Busy);
        };
        let mut numbers = None;
        // A replica may still be at an order of an earlier life.
        let first = u64::from(base.pages.epoch().get()) << 32;
        let under_way = services.give(first, |number| {
            let of_replica = base.pages.object_ids.give_to_replica(NUMBERS)?;
            numbers = Some(of_replica.clone());
            Some(PageOrder {
                number,
                epoch: base.pages.epoch(),
                record: base.in_force()?,
                from: checkpoint.csn,
                numbers: of_replica,
                bandwidth_bytes: bandwidth.load(Ordering::Relaxed),
                whole: PageServices::named(base.whole()),
            })
        });
        let (Some(mut under_way), Some(numbers)) = (under_way, numbers) else {
            return OrderEnd::GaveUp("none is ready".into());
        };
        // From there on none of the numbers was used, as far as that is known.
        let mut unused = numbers.end;
        let end = match checkpoint.await_written(&mut under_way) {
            Err((end, has_begun)) => {
                if !has_begun && under_way.was_refused() {
                    unused = numbers.start;
                }
                end
            }
            Ok((record, tiles)) => match checkpoint.written_by_replica(record, tiles, &numbers) {
                Err(why) => OrderEnd::GaveUp(why),
                Ok(pages) => match checkpoint.publish_of_replica(pages) {
                    Ok(report) => {
                        // The record that it has told of is the last that it has stored.
                        unused = record.0.counter() + 1;
                        OrderEnd::Published(Box::new(report))
                    }
                    Err(error) => OrderEnd::Failed(error),
                },
            },
        };
        if let Some(WriterBase::Primary(base)) = &mut checkpoint.base {
            base.pages.object_ids.give_back(unused, numbers.end);
            if !matches!(end, OrderEnd::Published(_)) {
                base.gave_up_replica(under_way.has_ended());
            }
        }
        end
    }
}

/// A record, and the record of which tiles are named again.
type Written = ((ObjectId, u32), Option<ObjectId>);

impl Checkpoint {
    /// Waits until the replica has written all. An error also tells whether it has begun.
    fn await_written(
        &mut self,
        under_way: &mut OrderUnderWay,
    ) -> Result<Written, (OrderEnd, bool)> {
        let mut at = None;
        let written = self.await_replies(under_way, &mut at);
        written.map_err(|end| (end, at.is_some()))
    }

    fn await_replies(
        &mut self,
        under_way: &mut OrderUnderWay,
        at: &mut Option<Csn>,
    ) -> Result<Written, OrderEnd> {
        let gave_up = |why: &str| Err(OrderEnd::GaveUp(why.into()));
        let engine = self.engine.clone();
        let inner = engine.inner();
        let begun = inner.env.clock.monotonic();
        loop {
            let stopping = || match inner.checkpoints.given_up() {
                Some(given_up) => Err(OrderEnd::Failed(given_up)),
                // Who waits for memory is helped sooner by leaves that may go.
                None if inner.memory_queue.has_waiters() => {
                    Err(OrderEnd::GaveUp("somebody waits for memory".into()))
                }
                // A checkpoint of its own makes room sooner.
                None if engine.home().appends.is_short_of_space() => {
                    Err(OrderEnd::GaveUp("the log's home is short of space".into()))
                }
                None => Ok(()),
            };
            // Also where the replica says much.
            stopping()?;
            if inner.env.clock.monotonic().since(begun) > ORDER_TIME_MAX {
                return gave_up("it takes too long");
            }
            let most = match at {
                None => BEGIN_TIME_MAX,
                Some(_) => ORDER_TIME_MAX,
            };
            let reply = match under_way.next(most, stopping)? {
                OrderEvent::Reply(reply) => reply,
                OrderEvent::Silent => return gave_up("it says nothing"),
                OrderEvent::Gone => return gave_up("it is gone"),
            };
            match reply {
                PageReply::Begun { csn, .. } if at.is_none() => {
                    if csn < self.csn || csn > inner.horizon().get() {
                        return gave_up("it has begun at a CSN that is not asked for");
                    }
                    self.move_snapshot(csn);
                    *at = Some(csn);
                }
                PageReply::Working { .. } if at.is_some() => {}
                PageReply::Written { record, tiles, .. } if at.is_some() => {
                    return Ok((record, tiles));
                }
                PageReply::Refused { why, .. } => return gave_up(&format!("it refuses: {why}")),
                PageReply::Begun { .. } | PageReply::Working { .. } | PageReply::Written { .. } => {
                    return gave_up("it answers out of order");
                }
            }
        }
    }

    /// Takes another snapshot, at or above the one that there is and not yet published: all that it sees is there.
    fn move_snapshot(&mut self, csn: Csn) {
        let engine = self.engine.clone();
        let published = engine.inner().published_by_checkpoints();
        self.snapshots.adopt(csn, published);
        self.snapshots.release(self.csn, published);
        self.snapshots.publish(published);
        self.csn = csn;
        self.report.csn = csn;
    }

    /// Reads what a replica says that it has written, and checks it.
    fn written_by_replica(
        &self,
        (object, crc): (ObjectId, u32),
        tiles: Option<ObjectId>,
        numbers: &std::ops::Range<u32>,
    ) -> Result<(CheckpointRecord, ReplicaPages), GaveUp> {
        let Some(WriterBase::Primary(base)) = &self.base else {
            return Err(CheckpointError::Busy.into());
        };
        let pages = &base.pages;
        let in_force = pages.record.as_ref().ok_or("there is no record in force")?;
        let is_of_order = |object: ObjectId| {
            object.epoch() == pages.epoch() && numbers.contains(&object.counter())
        };
        if !is_of_order(object) {
            return Err("its record has a number that it was not given".into());
        }
        let mut record = base.read_record(object, crc)?;
        if (record.csn, record.epoch) != (self.csn, pages.epoch())
            || record.chunk_size != ChunkSize::default()
            || !record.starts.is_empty()
            || !record.kept.is_empty()
        {
            return Err("its record is none of this checkpoint".into());
        }
        // Held until it is published: then the new record names what it needs of it.
        let hold = match tiles {
            None => None,
            Some(tiles) => {
                let gone = "it names tiles of a record that is not whole";
                Some(base.hold(tiles).ok_or(gone)?)
            }
        };
        let of_tiles = match &hold {
            Some(hold) => base.read_record(hold.object(), hold.crc())?.objects,
            None => Vec::new(),
        };
        let mut new = Vec::new();
        for used in &record.objects {
            let is_same = |before: &ObjectUse| {
                (before.object, before.size_bytes) == (used.object, used.size_bytes)
            };
            let before = in_force.object(used.object);
            if is_of_order(used.object) {
                self.must_be_stored(used)?;
                new.push((used.object, used.size_bytes));
            } else if !before.is_some_and(is_same) && !of_tiles.iter().any(is_same) {
                let what = format!(
                    "its record names object {}, which is not its own",
                    used.object
                );
                return Err(what.into());
            }
        }
        if record.csn < in_force.csn {
            return Err("its record is older than the one in force".into());
        }
        self.complete_tables(&mut record)?;
        let directory = pages.directory.at(record.root);
        // Its root is one, and can be read.
        let key = PageKey::Rows {
            table: TableId(0),
            chunk: 0,
        };
        let _nothing_there = directory.get(&key)?;
        // The record is the last that it has stored.
        let used = numbers.start..object.counter() + 1;
        let stored = StoredObjects::of_replica(pages.object_ids(), new, used);
        let of_pages = CheckpointPages {
            root: record.root,
            objects: record.objects.clone(),
        };
        let written = ReplicaPages {
            pages: of_pages,
            stored,
            tiles: hold,
        };
        Ok((record, written))
    }

    /// Row ids that the record in force tells of, and the replica does not: of transactions that were rolled back. A
    /// table that it does not have at all has no rows, or was dropped.
    fn complete_tables(&self, record: &mut CheckpointRecord) -> Result<(), GaveUp> {
        let base = self.base.as_ref().map(WriterBase::pages);
        let in_force = base.and_then(|pages| Some((pages, pages.record.as_ref()?)));
        let (pages, in_force) = in_force.ok_or("there is no record in force")?;
        let mut ends: BTreeMap<TableId, u64> = record
            .tables
            .iter()
            .map(|info| (info.table, info.rid_end))
            .collect();
        for info in &in_force.tables {
            if let Some(end) = ends.get_mut(&info.table) {
                *end = info.rid_end.max(*end);
            } else if self.engine.table(info.table).is_some() {
                let (rows, damage) = pages.directory.keys_of((info.table, None))?;
                if !rows.is_empty() || damage.is_some() {
                    return Err(format!("its record does not have table {}", info.table).into());
                }
                ends.insert(info.table, info.rid_end);
            }
        }
        let infos = ends.into_iter();
        record.tables = infos
            .map(|(table, rid_end)| TableInfo { table, rid_end })
            .collect();
        Ok(())
    }

    /// An object is there, as long as it is said to be.
    fn must_be_stored(&self, used: &ObjectUse) -> Result<(), GaveUp> {
        let objects = &self.engine.home().objects;
        let mut last = [0; 2];
        let at = used.size_bytes.saturating_sub(1);
        match objects.read_object(used.object, at, &mut last) {
            Ok(1) => {}
            Ok(_) => return Err(format!("object {} has another length", used.object).into()),
            Err(error) => return Err(error.into()),
        }
        let Some(copies) = objects.object_copies() else {
            return Ok(());
        };
        // The replica knows no home that is being completed, and may have done without one that counts here. What one
        // of them lacks, or cannot tell, this server stores: then it is there, or left out.
        let has_it = |copy| {
            let read = copies.read_object_copy(copy, used.object, at, &mut [0; 2]);
            matches!(read, Ok(1))
        };
        if (0..copies.object_copy_count()).all(has_it) {
            return Ok(());
        }
        let mut bytes = vec![0; used.size_bytes.min(OBJECT_BYTES_MAX as u64) as usize];
        let read = objects.read_object(used.object, 0, &mut bytes)?;
        if read != bytes.len() {
            return Err(format!("object {} has another length", used.object).into());
        }
        Ok(objects.put_object(used.object, &bytes)?)
    }

    /// Looks at the chunks that have changed, as of its CSN: what of them the checkpoint has.
    fn look_at_changed(&self) -> SavedChunks {
        let mut looked = SavedChunks::default();
        // Tables that were made since it has begun too.
        let tables = self.engine.tables();
        for table in tables.into_iter().filter(|table| !table.is_temporary()) {
            for number in 0..table.rows.chunk_end() {
                let first = Rid(number * CHUNK_SLOTS as u64);
                let Some((chunk, _)) = table.rows.slot(first) else {
                    continue;
                };
                if chunk.begin_writing(false).is_none() {
                    continue;
                }
                match self.look_at(&table.rows, number, chunk) {
                    Some((present, is_logged)) => looked.0.push(SavedChunk {
                        table: Arc::clone(&table),
                        number,
                        present,
                        is_logged,
                    }),
                    // A tail of a table that was dropped: nobody writes it.
                    None => chunk.end_writing(true),
                }
            }
        }
        looked
    }

    /// The slots with a row of a chunk that is WRITING, and whether it is away, and only the log has something of it:
    /// then it has not changed since it left, and its changes until then are below the CSN.
    fn look_at(&self, rows: &TableRows, number: u64, chunk: &Chunk) -> Option<(SlotSet, bool)> {
        loop {
            let guard = Guard::pin();
            if let Ok(ChunkView { present, .. }) = ChunkView::look(chunk, self.csn, &guard) {
                return Some((present, false));
            }
            if let Some(logged) = rows.logged.get(number) {
                // What a start has left the first checkpoint of a life has, which is this server's own.
                return Some((logged.present?, true));
            }
            // It has come, or nobody has ever read it.
            if !chunk.is_present() {
                return None;
            }
        }
    }

    /// Names what a replica has written as the newest checkpoint, and removes what nothing needs any more.
    fn publish_of_replica(
        &mut self,
        (record, pages): (CheckpointRecord, ReplicaPages),
    ) -> Result<CheckpointReport, CheckpointError> {
        let mut looked = self.look_at_changed();
        let CheckpointRecord {
            tables, indexes, ..
        } = record;
        let mut new = logstead_checkpoint::NewCheckpoint {
            tables,
            indexes,
            ..self.new_checkpoint()
        };
        // As they are here: the replica hands out none of their row ids.
        let tables = &new.tables;
        let is_there = |table| {
            tables
                .binary_search_by_key(&table, |info| info.table)
                .is_ok()
        };
        new.divided.retain(|divided| is_there(divided.table));
        let Some(WriterBase::Primary(base)) = &mut self.base else {
            return Err(CheckpointError::Replica);
        };
        let inner = self.engine.inner();
        let retention = &inner.checkpoints.retention;
        let now = inner.env.clock.monotonic();
        base.publish_of_replica(now, new, pages, retention, &mut self.report)?;
        self.published = true;
        self.report.by_replica = true;
        self.report.chunks_looked_at = looked.0.len() as u64;
        looked.end(true);
        self.collect();
        Ok(self.report.clone())
    }
}

/// A checkpoint that a replica writes for its primary.
pub struct ReplicaCheckpoint {
    order: PageOrder,
    followed: Arc<ReplicaBase>,
    checkpoint: Checkpoint,
    /// The record whose tiles are named again.
    tiles: Option<ObjectId>,
    /// Given back last.
    _turn: WritingTurn,
}

/// What was written is kept by the replica until it knows what came of it.
struct WrittenCheckpoint {
    checkpoint: Checkpoint,
    pages: CheckpointPages,
}

impl WrittenPages for WrittenCheckpoint {
    fn is(&self, record: &CheckpointRecord) -> bool {
        self.pages.root.is_some()
            && (self.checkpoint.csn, self.pages.root) == (record.csn, record.root)
            && self.pages.objects == record.objects
    }

    fn published(mut self: Box<Self>) {
        self.checkpoint.published = true;
        self.checkpoint.tiles.published();
        self.checkpoint.rows_are_saved();
    }
}

impl Engine {
    /// At a replica: begins what its primary has ordered, between two rounds, when snapshots see everything below
    /// [`PageOrder::from`].
    pub(crate) fn begin_ordered_checkpoint(
        &self,
        order: PageOrder,
        followed: &Arc<ReplicaBase>,
        home: logstead_home::LogHome,
    ) -> Result<ReplicaCheckpoint, CheckpointError> {
        let numbers = order.numbers.clone();
        let object_ids = Arc::new(ObjectIdAllocator::of_replica(order.epoch, numbers));
        let begun = followed.begin_writing(&order, home, object_ids)?;
        let bandwidth = &self.inner().checkpoints.bandwidth_bytes;
        bandwidth.store(order.bandwidth_bytes, Ordering::Relaxed);
        let base = WriterBase::Replica(Box::new(begun.pages), Arc::clone(followed));
        let mut checkpoint = Checkpoint::begin(self, base);
        let published = self.inner().published_by_checkpoints();
        checkpoint.snapshots.publish(published);
        checkpoint.cancelled = begun.cancelled;
        let ordered = ReplicaCheckpoint {
            order,
            followed: Arc::clone(followed),
            checkpoint,
            tiles: begun.tiles,
            _turn: begun.turn,
        };
        if begun.is_all_of_indexes {
            for table in &ordered.checkpoint.tables {
                for index in table.indexes() {
                    if index.absent_leaf_count() > 0 {
                        let what = "its leaves are not all in memory yet";
                        return Err(PagesError::Misuse(what).into());
                    }
                    index.forget_published();
                }
            }
        }
        Ok(ordered)
    }
}

impl ReplicaCheckpoint {
    /// The order's number.
    pub fn number(&self) -> u64 {
        self.order.number
    }

    /// It holds what was committed below this CSN.
    pub fn csn(&self) -> Csn {
        self.checkpoint.csn
    }

    /// Ends it, at the next chunk or leaf, when it is set.
    pub fn cancelled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.checkpoint.cancelled)
    }

    /// Writes it, and tells `progress` now and then. What is to be told the primary comes back: from then on nothing is
    /// stored any more.
    pub fn write(self, mut progress: impl FnMut()) -> PageReply {
        let order = self.order.number;
        match self.store(&mut progress) {
            Ok((record, tiles)) => PageReply::Written {
                order,
                record,
                tiles,
            },
            Err(error) => PageReply::Refused {
                order,
                why: error.to_string(),
            },
        }
    }

    fn store(mut self, progress: &mut dyn FnMut()) -> Result<Written, CheckpointError> {
        let checkpoint = &mut self.checkpoint;
        while checkpoint.walk(SLICE_CHUNKS)? {
            progress();
        }
        let (made, has_tiles, stored) = checkpoint.store()?;
        if let Some((damage, _)) = made.unreadable {
            return Err(damage.into());
        }
        // Pages of a table that is gone would stay: the primary does not know of them.
        if let Some(damage) = checkpoint.others.take().and_then(|others| others.damage) {
            return Err(damage.into());
        }
        if !has_tiles {
            let what = "what it has written of indexes before cannot be read";
            return Err(PagesError::Misuse(what).into());
        }
        let new = checkpoint.new_checkpoint();
        let base = checkpoint
            .base
            .as_ref()
            .ok_or(CheckpointError::Busy)?
            .pages();
        let before = base.record.as_ref().map(|record| &record.objects[..]);
        let more = base.more_objects();
        let objects = objects_after(before.unwrap_or(&[]), more, &made.live, stored.written())?;
        let pages = CheckpointPages {
            root: made.directory.root(),
            objects,
        };
        // What it tells the primary: this is named by nobody else.
        let record = CheckpointRecord {
            database: checkpoint.engine.database(),
            chunk_size: ChunkSize::default(),
            csn: new.csn,
            epoch: self.order.epoch,
            taken_at_micros: new.taken_at_micros,
            root: pages.root,
            tables: new.tables,
            indexes: new.indexes,
            objects: pages.objects.clone(),
            starts: Vec::new(),
            kept: Vec::new(),
            has_pins: false,
            divided: new.divided,
        };
        let mut stored = stored;
        let object = stored.number_of_record()?;
        let (bytes, crc) = record.encode_with_crc(object)?;
        let objects = base.home().objects;
        checkpoint.unless_stopping()?;
        objects
            .put_object(object, &bytes)
            .map_err(PagesError::Home)?;
        progress();
        checkpoint.let_snapshot_go();
        let ReplicaCheckpoint {
            followed,
            checkpoint,
            tiles,
            ..
        } = self;
        followed.written(Box::new(WrittenCheckpoint { checkpoint, pages }));
        Ok(((object, crc), tiles))
    }
}
