//! Making the newest checkpoint anew when a server starts that divides rows otherwise: pages of chunks with 1,024
//! slots, of formats 1 and 2, become pages of chunks with [`CHUNK_SLOTS`].
//!
//! It says the same: CSN, epoch, time, tables, indexes, places in the log and kept records are those of the old record;
//! tiles of indexes stay where they are. So the log behind it is replayed as before, and the manifest names the new
//! record, instead of the old one, by one compare and swap, which is the caller's. Until then nothing has changed: a
//! crash leaves the old one in force, also for who has an older server, and what was stored is removed by the next
//! attempt, or as orphans by the life that follows.
//!
//! Invariants:
//! - *Numbers.* Objects are of the epoch that wrote last, which has no server any more, and have counters from 2^31 on,
//!   which no server reaches. So they are orphans like others if no record names them ([`crate::publish`]), and in a
//!   branch they are the branch's own. Each attempt has counters of its own, for ever ([`attempt`]).
//! - *Two attempts at one home.* Any step may be the last one for hours, and go on after another server has taken the
//!   lease. An attempt takes its numbers, then looks whether the home is still its own, and removes only what has lower
//!   numbers. Had a later one begun before that look, it would have failed; if one begins after it, it has higher
//!   numbers. So what is removed belongs to attempts that were overtaken before they published anything, and is named
//!   by nobody; and nothing is removed for any other reason, whatever fails. That two store in one place cannot happen.
//! - *Memory.* One chunk's rows, old ([`ONE_PASS_BYTES`]) or new, and what a directory may cache. A chunk that is
//!   larger is read once for each of the chunks that it becomes.
//! - *Damage.* A page that cannot be read is an error that names it, and nothing is published: who has the old server
//!   can still use the rest.
//!
//! Records that are kept or pinned stay as they are: they are read in their own size ([`PageReader::chunk_of`]), copied
//! as they are, and made anew when a server starts on what was restored, or branched, from them.
//!
//! Does not: change a manifest, or know who else may write.

use crate::attempt::{self, COUNTER_MIN};
use crate::chunk::{ChunkWriter, ImageKind};
use crate::directory::{Directory, LiveChanges};
use crate::error::CheckpointError;
use crate::error::damaged;
use crate::page_ref::{PageChain, PageKey, PageRef};
use crate::pins::Pins;
use crate::read::PageReader;
use crate::record::{CheckpointRecord, ObjectUse};
use crate::rows::{CHUNK_SLOTS, ChunkSize};
use crate::writer::{ObjectIdAllocator, ObjectWriter};
use logstead_home::{HomeError, ImmutableObjects, LogHome, OBJECT_BYTES_MAX, ObjectId};
use logstead_types::{Csn, DatabaseId, Epoch, TableId};
use logstead_wal::FormatError;
use logstead_wal::manifest::CheckpointRef;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Numbers that an attempt takes for as many bytes of the old record as a full object has. Pages with fewer rows
/// compress worse, and small rows that compress well by a factor of about 20, headers and directory included.
const NUMBERS_PER_OBJECT: u64 = 64;
/// And these, however small the record is.
const NUMBERS_MIN: u64 = 1_024;
/// Rows of an old chunk that are kept at once.
const ONE_PASS_BYTES: usize = 16 << 20;
/// Changes that the new directory gets at once.
const BATCH: usize = 2_048;
/// What the nodes of either directory may take.
const CACHE_BYTES: usize = 16 << 20;

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpgradeProgress {
    /// Chunks read, in their old size.
    pub chunks: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of pages that are through.
    pub bytes: u64,
    /// Of about so many.
    pub bytes_of: u64,
}

/// A checkpoint that was made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradedCheckpoint {
    /// What the manifest is to name instead of the old one.
    pub checkpoint: CheckpointRef,
    /// What was read.
    pub read: UpgradeProgress,
    /// Bytes written.
    pub written: u64,
}

/// A checkpoint that is to be made anew.
pub struct CheckpointUpgrade {
    home: LogHome,
    newest: CheckpointRef,
    record: CheckpointRecord,
}

impl CheckpointUpgrade {
    /// Reads the record of the newest checkpoint; `None`: it is in the format of today. To be called with the right to
    /// write, before the log is replayed.
    pub fn of(
        home: &LogHome,
        database: DatabaseId,
        newest: &CheckpointRef,
    ) -> Result<Option<CheckpointUpgrade>, CheckpointError> {
        let record =
            CheckpointRecord::read(home.objects.as_ref(), database, newest.object, newest.crc)?;
        Ok(
            (record.chunk_size != ChunkSize::Of64).then(|| CheckpointUpgrade {
                home: home.clone(),
                newest: newest.clone(),
                record,
            }),
        )
    }

    /// What it says now.
    pub fn record(&self) -> &CheckpointRecord {
        &self.record
    }

    /// Stores it in the format of today. `epoch` is the one that wrote last, as the manifest has it that names the
    /// checkpoint; `is_ours` fails unless that manifest is still the newest and this server's to change. `progress` is
    /// called for each chunk.
    pub fn store(
        &self,
        epoch: Epoch,
        is_ours: &mut dyn FnMut() -> Result<(), HomeError>,
        progress: impl FnMut(&UpgradeProgress),
    ) -> Result<UpgradedCheckpoint, CheckpointError> {
        let full = self.record.bytes().0.div_ceil(OBJECT_BYTES_MAX as u64);
        let count = NUMBERS_MIN + full.saturating_mul(NUMBERS_PER_OBJECT);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let own = attempt::reserve(self.home.names.as_ref(), epoch, count)?;
        is_ours()?;
        self.clear(epoch, own.start)?;
        let object_ids = Arc::new(ObjectIdAllocator::of_attempt(epoch, own));
        let writer = ObjectWriter::new(Arc::clone(&self.home.objects), object_ids, None);
        upgrade_with(
            &self.home.objects,
            &self.newest,
            &self.record,
            writer,
            progress,
        )
    }

    /// Removes what attempts that were cut short have left, those with counters below `end`: it takes room that is
    /// needed.
    fn clear(&self, epoch: Epoch, end: u32) -> Result<(), CheckpointError> {
        let (pins, _) = Pins::read(self.home.names.as_ref())?;
        let earlier = COUNTER_MIN..end;
        for info in self.home.objects.list_objects()? {
            let id = info.id;
            if id.epoch() != epoch || !earlier.contains(&id.counter()) {
                continue;
            }
            let is_kept = self.record.kept.iter().any(|kept| kept.object == id);
            let is_pinned = pins.iter().any(|pin| pin.record.object == id);
            if self.record.object(id).is_none() && !is_kept && !is_pinned {
                self.home.objects.remove_object(id)?;
            }
        }
        Ok(())
    }
}

/// The same of what [`CheckpointRecord::read`] gave, with a writer whose numbers nobody has used.
pub(crate) fn upgrade_with(
    objects: &Arc<dyn ImmutableObjects>,
    newest: &CheckpointRef,
    record: &CheckpointRecord,
    writer: ObjectWriter<'_>,
    mut progress: impl FnMut(&UpgradeProgress),
) -> Result<UpgradedCheckpoint, CheckpointError> {
    let mut work = Work {
        csn: record.csn,
        reader: PageReader::new(Arc::clone(objects) as _),
        chunks: ChunkWriter::new(),
        writer,
        found: Found::default(),
        directory: Directory::with_cache(Arc::clone(objects) as _, None, CACHE_BYTES),
        changes: Vec::new(),
        live: LiveChanges::new(),
        read: UpgradeProgress {
            bytes_of: record.bytes().0,
            ..UpgradeProgress::default()
        },
    };
    let old = Directory::with_cache(Arc::clone(objects) as _, record.root, CACHE_BYTES);
    for entry in old.scan(None) {
        let (key, chain) = entry?;
        work.read.bytes += chain.len_bytes();
        match key {
            PageKey::Rows { table, chunk } => work.divide(&key, (table, chunk), &chain)?,
            key @ PageKey::Leaf { .. } => work.changes.push((key, Some(chain))),
        }
        progress(&work.read);
        if work.changes.len() >= BATCH {
            work.apply()?;
        }
    }
    work.apply()?;
    let Work {
        writer,
        directory,
        live,
        read,
        ..
    } = work;
    let mut stored = writer.finish()?;
    let record = CheckpointRecord {
        chunk_size: ChunkSize::Of64,
        root: directory.root(),
        objects: object_uses(record, &live, &stored.written().objects)?,
        ..record.clone()
    };
    let object = stored.number_of_record()?;
    let bytes = record.encode(object)?;
    objects.put_object(object, &bytes)?;
    // What it names is the caller's from here on: he knows whether it was published.
    let written = stored.written().bytes + bytes.len() as u64;
    stored.into_numbers();
    Ok(UpgradedCheckpoint {
        checkpoint: CheckpointRef {
            object,
            crc: crc32c::crc32c(&bytes),
            ..newest.clone()
        },
        read,
        written,
    })
}

/// What the new record needs of each object: of old ones the tiles, of new ones what the new directory leads to.
fn object_uses(
    old: &CheckpointRecord,
    live: &LiveChanges,
    written: &[(ObjectId, u64)],
) -> Result<Vec<ObjectUse>, CheckpointError> {
    let mut sizes: BTreeMap<ObjectId, u64> = old
        .objects
        .iter()
        .map(|used| (used.object, used.size_bytes))
        .collect();
    sizes.extend(written.iter().copied());
    let needed = live.iter().filter(|(_, live)| **live != 0);
    needed
        .map(|(&object, &live)| {
            let size_bytes = sizes.get(&object).copied();
            let live_bytes = u64::try_from(live).ok();
            match (size_bytes, live_bytes) {
                (Some(size_bytes), Some(live_bytes)) if live_bytes <= size_bytes => Ok(ObjectUse {
                    object,
                    size_bytes,
                    live_bytes,
                }),
                _ => Err(CheckpointError::Misuse(
                    "a page in an object that the old record does not name",
                )),
            }
        })
        .collect()
}

/// Rows of one chunk, by slot.
#[derive(Default)]
struct Found {
    rows: BTreeMap<u16, (Csn, Range<usize>)>,
    bytes: Vec<u8>,
}

struct Work<'w> {
    csn: Csn,
    reader: PageReader,
    chunks: ChunkWriter,
    writer: ObjectWriter<'w>,
    found: Found,
    directory: Directory,
    changes: Vec<(PageKey, Option<PageChain>)>,
    live: LiveChanges,
    read: UpgradeProgress,
}

impl Work<'_> {
    /// Writes the chunks that an old one becomes.
    fn divide(
        &mut self,
        key: &PageKey,
        (table, chunk): (TableId, u64),
        chain: &PageChain,
    ) -> Result<(), CheckpointError> {
        self.read.chunks += 1;
        let slots = ChunkSize::Of1024.slots();
        let bad = |why| damaged(format!("a page of {key}"), &chain.base(), why);
        let new = u64::from(slots / CHUNK_SLOTS);
        let beyond = || bad(FormatError::new("a chunk that no table has", 0));
        let first = chunk.checked_mul(new).ok_or_else(beyond)?;
        first.checked_add(new).ok_or_else(beyond)?;
        if self.find(key, chain, 0..slots, ONE_PASS_BYTES)? {
            return self.write(table, first);
        }
        for from in (0..slots).step_by(CHUNK_SLOTS.into()) {
            self.find(key, chain, from..from + CHUNK_SLOTS, usize::MAX)?;
            self.write(table, first)?;
        }
        Ok(())
    }

    /// Reads the rows of some slots of an old chunk. False: they are more than so many bytes, and are not read.
    fn find(
        &mut self,
        key: &PageKey,
        chain: &PageChain,
        slots: Range<u16>,
        bytes_max: usize,
    ) -> Result<bool, CheckpointError> {
        let Found { rows, bytes } = &mut self.found;
        rows.clear();
        bytes.clear();
        let (csn, mut fits, mut is_newer) = (self.csn, true, false);
        let visit = |slot: u16, written: Csn, row: &[u8]| {
            fits &= bytes.len() + row.len() <= bytes_max;
            is_newer |= written >= csn;
            if fits && slots.contains(&slot) {
                let start = bytes.len();
                bytes.extend_from_slice(row);
                rows.insert(slot, (written, start..bytes.len()));
            }
        };
        self.reader.chunk_of(ChunkSize::Of1024, key, chain, visit)?;
        if is_newer {
            let why = FormatError::new("a row that is newer than its checkpoint", 0);
            return Err(damaged(format!("a page of {key}"), &chain.base(), why));
        }
        Ok(fits)
    }

    /// Writes what was found, of the chunk whose first slot is that of the new chunk `first`.
    fn write(&mut self, table: TableId, first: u64) -> Result<(), CheckpointError> {
        let Found { rows, bytes } = &self.found;
        self.read.rows += rows.len() as u64;
        let mut rows = rows.iter().peekable();
        while let Some((slot, _)) = rows.peek() {
            let number = **slot / CHUNK_SLOTS;
            let chunk = first + u64::from(number);
            let key = PageKey::Rows { table, chunk };
            self.chunks.begin(key.clone(), ImageKind::Whole, self.csn);
            while let Some((slot, (csn, row))) =
                rows.next_if(|(slot, _)| **slot / CHUNK_SLOTS == number)
            {
                let row = &bytes[row.clone()];
                self.chunks
                    .row(slot % CHUNK_SLOTS, *csn, row, &mut self.writer)?;
            }
            let pages: &[PageRef] = self.chunks.finish(&mut self.writer)?;
            self.changes.push((key, PageChain::whole(pages)));
        }
        Ok(())
    }

    /// Puts what was written behind what the new directory has.
    fn apply(&mut self) -> Result<(), CheckpointError> {
        let nothing = BTreeSet::new();
        let applied = self
            .directory
            .apply(&self.changes, &nothing, self.csn, &mut self.writer)?;
        self.directory = applied.directory;
        for (object, bytes) in applied.live {
            *self.live.entry(object).or_default() += bytes;
        }
        self.changes.clear();
        Ok(())
    }
}
