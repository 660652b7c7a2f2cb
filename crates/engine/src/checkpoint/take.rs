//! Taking one checkpoint, step by step; [`Engine::checkpoint`] takes all of them.
//!
//! What is taken is a value that gives everything back when it is dropped: the snapshot, the turn, and the marks of all
//! chunks from which it took something, unless it was published. So whatever fails, wherever, the next one begins from
//! the last that was published and misses nothing.

use crate::page_store::base::{CheckpointBuffers, ChunkChange, DirectoryChange, DroppedPages};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use logstead_checkpoint::{ChunkWriter, ImageKind, ObjectWriter, PageChain, PageKey, PageReader};
use logstead_env::Instant;
use logstead_types::{Csn, Rid};
use logstead_wal::manifest::RedoPoint;

use super::older_rows::{FoldedPages, OlderRows, OlderRowsLookup, missing};
use super::tiles::TileWalk;
use super::walk::{ChunkView, DirtyTotals, row_at};
use crate::chunk_tail::ChunkTail;
use crate::delta;
use crate::engine::Engine;
use crate::load::has_plenty;
use crate::page_store::base::{CheckpointBase, CompactionPlan};
use crate::page_store::page_base::PageBase;
use crate::page_store::{CheckpointError, CheckpointReport, Compaction, ReplicaBase};
use crate::snapshots::Snapshots;
use crate::table::Table;
use crate::version::{CHUNK_SLOTS, Chunk, Guard, SlotSet, SlotsAbsent};

/// Rows of a chunk that take more than this are copied before they are written: a page may be full in the middle of
/// them, and then the home is waited for, which nobody does under a guard.
pub(super) const COPIED_BYTES_MIN: usize = logstead_checkpoint::PAGE_BYTES / 2;

/// Of so many chunks older pages are read together, where they are needed, and so much of them: as much as a scan's
/// runs ([`crate::load`]).
const AHEAD_CHUNKS: u64 = 64;
const AHEAD_BYTES_MAX: u64 = 512 << 10;

/// The most that each of them keeps.
const BUFFER_BYTES_MAX: usize = 8 << 20;

/// Empties a buffer for the next checkpoint; one that has become large is let go of.
pub(super) fn kept<T>(mut buffer: Vec<T>) -> Vec<T> {
    buffer.clear();
    match buffer.capacity() * size_of::<T>() <= BUFFER_BYTES_MAX {
        true => buffer,
        false => Vec::new(),
    }
}

/// Upon what it is taken, and by whom.
pub(super) enum WriterBase {
    /// By the server that publishes it.
    Primary(Box<CheckpointBase>),
    /// By a replica, for that server ([`super::by_replica`]).
    Replica(Box<PageBase>, Arc<ReplicaBase>),
}

impl WriterBase {
    pub(super) fn pages(&self) -> &PageBase {
        match self {
            WriterBase::Primary(base) => &base.pages,
            WriterBase::Replica(pages, _) => pages,
        }
    }

    pub(super) fn pages_mut(&mut self) -> &mut PageBase {
        match self {
            WriterBase::Primary(base) => &mut base.pages,
            WriterBase::Replica(pages, _) => pages,
        }
    }

    /// Would a checkpoint at `csn` say nothing new?
    pub(super) fn is_current(&self, csn: Csn) -> bool {
        match self {
            WriterBase::Primary(base) => base.is_current(csn),
            WriterBase::Replica(..) => false,
        }
    }

    /// At a replica: what it follows.
    pub(super) fn followed(&self) -> Option<&Arc<ReplicaBase>> {
        match self {
            WriterBase::Primary(_) => None,
            WriterBase::Replica(_, followed) => Some(followed),
        }
    }
}

/// A checkpoint being taken.
pub struct Checkpoint {
    pub(super) engine: Engine,
    /// Until it is given back.
    pub(super) base: Option<WriterBase>,
    pub(super) snapshots: Snapshots,
    pub(super) csn: Csn,
    /// What was written below is in the checkpoint before.
    pub(super) since: Csn,
    pub(super) starts: Vec<RedoPoint>,
    pub(super) tables: Vec<Arc<Table>>,
    /// The next chunk to look at.
    at: (usize, u64),
    /// The first chunk of which older pages were not read ahead.
    ahead: (usize, u64),
    pub(super) compaction: Compaction,
    /// Known once the walk has begun.
    pub(super) moves: CompactionPlan,
    pub(super) tiles: TileWalk,
    pub(super) writer: Option<ObjectWriter<'static>>,
    pub(super) pages: ChunkWriter,
    /// For rows that are absent, and whose chunk is written anew.
    pub(super) reader: PageReader,
    row: Vec<u8>,
    /// Brings in chunks that the log behind the checkpoint before has changed and that are to be written whole, in the
    /// first one of a life.
    pub(super) loads: Option<PageReader>,
    pub(super) changes: Vec<ChunkChange>,
    /// What becomes of them, filled at the end.
    pub(super) named: Vec<DirectoryChange>,
    /// The pages of tables and indexes that are gone, once that was looked up.
    pub(super) others: Option<DroppedPages>,
    pub(super) published: bool,
    /// Whoever has begun it wants it no more.
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) report: CheckpointReport,
    pub(super) lap: Instant,
}

/// How a chunk is written.
enum ChunkWriteMode {
    /// With the rows that are absent as the checkpoint before has them.
    Whole(OlderRows),
    /// The page's place is behind those of this chain.
    Delta(PageChain),
    /// All that is known, in the place of the newer pages of this chain: older ones cannot be read
    /// ([`super::older_rows`]).
    Folded(PageChain, OlderRows, FoldedPages),
}

impl ChunkWriteMode {
    /// The rows that are absent, where they are written.
    fn older(&self) -> Option<&OlderRows> {
        match self {
            ChunkWriteMode::Whole(older) | ChunkWriteMode::Folded(_, older, _) => Some(older),
            ChunkWriteMode::Delta(_) => None,
        }
    }
}

impl Engine {
    /// Begins a checkpoint of now: everything that commits from here on is in the next one. [`CheckpointError::Busy`]
    /// while another one is being taken. Nobody waits for it but who calls.
    pub fn begin_checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        let mut checkpoint = self.begin_unpublished_checkpoint()?;
        // What only it sees is kept, and nothing else.
        let published = self.inner().published_by_checkpoints();
        checkpoint.snapshots.publish(published);
        Ok(checkpoint)
    }

    /// The same, and all versions are kept that are the newest now, or later, until its snapshot is published.
    pub(super) fn begin_unpublished_checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        let inner = self.inner();
        if inner.replica_base.is_some() {
            return Err(CheckpointError::Replica);
        }
        let base = {
            let mut base = inner.checkpoints.base.lock();
            let starting = inner.checkpoints.starting.load(Ordering::SeqCst);
            (!starting).then(|| base.take()).flatten()
        };
        let base = base.ok_or(CheckpointError::Busy)?;
        let base = WriterBase::Primary(Box::new(base));
        Ok(Checkpoint::begin(self, base))
    }
}

impl Checkpoint {
    /// Begins one of now. Until its snapshot is published all versions are kept that were the newest then, or later.
    pub(super) fn begin(engine: &Engine, mut base: WriterBase) -> Checkpoint {
        let inner = engine.inner();
        let lap = inner.env.clock.monotonic();
        // Before the CSN: whatever is pushed behind these places later has drawn, or will draw, any CSN; what was
        // pushed before them has drawn one below the counter as it is read next.
        let path = &inner.path;
        let starts = path.lanes().iter().map(|lane| lane.log_start()).collect();
        let mut snapshots = Snapshots::default();
        let (csn, mut tables, mut tiles) = {
            // See "Dropped tables".
            let tables = inner.tables.read();
            // Temporary ones are in no checkpoint.
            let lasting = || tables.values().filter(|table| !table.is_temporary());
            let tiles = TileWalk::of(lasting());
            let csn = snapshots.acquire(inner.horizon(), inner.published_by_checkpoints());
            (csn, lasting().cloned().collect::<Vec<_>>(), tiles)
        };
        tables.sort_unstable_by_key(|table| table.id());
        tiles.retain_attached(&tables);
        path.flush_all();
        let rate_limiter = inner.checkpoints.rate_limiter(&inner.env.clock);
        let pages = base.pages_mut();
        let since = pages.csn();
        let CheckpointBuffers {
            object,
            changes,
            named,
        } = std::mem::take(&mut pages.buffers);
        let writer = ObjectWriter::new(pages.home().objects, pages.object_ids(), rate_limiter)
            .with_buffer(object);
        let reader = PageReader::new(pages.home().objects)
            .of_single_pages()
            .merging(delta::put_over);
        Checkpoint {
            engine: engine.clone(),
            report: CheckpointReport {
                csn,
                epoch: pages.epoch(),
                ..CheckpointReport::default()
            },
            base: Some(base),
            snapshots,
            csn,
            since,
            starts,
            tiles,
            tables,
            at: (0, 0),
            ahead: (0, 0),
            compaction: Compaction::Allowed,
            moves: CompactionPlan::default(),
            writer: Some(writer),
            pages: ChunkWriter::new(),
            reader,
            row: Vec::new(),
            loads: None,
            changes,
            named,
            others: None,
            published: false,
            cancelled: Arc::default(),
            lap,
        }
    }

    /// It holds what was committed below this CSN.
    pub fn csn(&self) -> Csn {
        self.csn
    }

    /// Is everything below its CSN durable? Only then can it be published. An error if that will never be.
    pub fn is_durable(&self) -> Result<bool, CheckpointError> {
        let inner = self.engine.inner();
        if inner.horizon().get() >= self.csn {
            return Ok(true);
        }
        match inner.path.failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(false),
        }
    }

    /// It has looked at all that it holds.
    pub(super) fn let_snapshot_go(&mut self) {
        let published = self.engine.inner().published_by_checkpoints();
        self.snapshots.release(self.csn, published);
    }

    pub(super) fn lap(&mut self) -> Duration {
        let now = self.engine.inner().env.clock.monotonic();
        now.since(std::mem::replace(&mut self.lap, now))
    }

    /// Waits until it is durable.
    pub(super) fn wait(&mut self) -> Result<(), CheckpointError> {
        super::wait_for_horizon(&self.engine, self.csn)?;
        self.report.took.waiting = self.lap();
        Ok(())
    }

    /// Writes up to `budget` chunks, and then leaves of indexes, that have changed. True if there are more. It is
    /// durable by then ([`Checkpoint::is_durable`]): what is written is committed.
    pub fn walk(&mut self, budget: usize) -> Result<bool, CheckpointError> {
        let durable = self.is_durable()?;
        assert!(durable, "a checkpoint holds committed rows alone");
        if self.at == (0, 0)
            && let Some(base) = self.base.as_mut().filter(|base| !base.is_current(self.csn))
        {
            if let WriterBase::Primary(base) = base {
                base.remove_orphans();
            }
            if self.compaction == Compaction::Allowed {
                self.moves = base.pages().moves()?;
            }
        }
        let mut written = 0;
        while let Some(table) = self.tables.get(self.at.0).cloned() {
            let (table_at, number) = self.at;
            if number * CHUNK_SLOTS as u64 >= table.rows.rid_end() {
                self.at = (table_at + 1, 0);
                continue;
            }
            self.at.1 += 1;
            let Some((chunk, _)) = table.rows.slot(Rid(number * CHUNK_SLOTS as u64)) else {
                continue;
            };
            if (table_at, number) >= self.ahead && chunk.is_changed() {
                self.ahead = (table_at, self.read_ahead(&table, number));
            }
            self.bring_due(&table, number)?;
            let is_moved = self.moves.contains(table.id(), number);
            let Some(changed) = chunk.begin_writing(is_moved) else {
                continue;
            };
            let done = self.write_chunk(table_at, &table, number, chunk, changed, is_moved);
            if let Some(followed) = self.base.as_ref().and_then(WriterBase::followed) {
                followed.keep_mark(&table.rows, number, chunk, self.csn);
            }
            match done {
                // It is being written until the checkpoint is published.
                Ok(true) => written += 1,
                Ok(false) => chunk.end_writing(false),
                Err(error) => {
                    chunk.end_writing(changed);
                    return Err(error);
                }
            }
            if written >= budget {
                return Ok(true);
            }
        }
        self.walk_indexes(budget - written)
    }

    /// Looks at a chunk, writes what has changed, and moves pages out of objects that are to go. False: there was
    /// nothing to write.
    fn write_chunk(
        &mut self,
        table_at: usize,
        table: &Table,
        number: u64,
        chunk: &Chunk,
        changed_since: bool,
        is_moved: bool,
    ) -> Result<bool, CheckpointError> {
        self.unless_stopping()?;
        self.report.chunks_looked_at += 1;
        let key = PageKey::Rows {
            table: table.id(),
            chunk: number,
        };
        if !chunk.is_present() {
            if !changed_since {
                return self.move_absent(table_at, number, &key);
            }
            // If there is none any more, it has come in with its rows.
            if let Some(tail) = table.rows.tails.get(number) {
                return self.write_tail(table_at, table, number, key, &tail, is_moved);
            }
            if let Some(logged) = table.rows.logged.get(number) {
                let at = (table_at, table);
                if let Some(done) = self.write_logged(at, number, key.clone(), &logged, is_moved)? {
                    return Ok(done);
                }
            }
            if self
                .base
                .as_ref()
                .is_some_and(|base| base.followed().is_some())
            {
                // Noted by who has not brought it in to change it: nothing has changed there.
                return match is_moved {
                    true => self.move_absent(table_at, number, &key),
                    false => Ok(false),
                };
            }
        }
        let followed = self.base.as_ref().and_then(WriterBase::followed);
        // What the record in force has of it is not known here: it is written whole, or goes.
        let is_unknown = followed.is_some_and(|base| base.is_unknown(table.id(), number));
        let guard = Guard::pin();
        let seen = ChunkView::look(chunk, self.csn, &guard);
        let seen = seen.unwrap_or_else(|SlotsAbsent| {
            unreachable!("a chunk that was changed is in memory, or has a tail, or a note")
        });
        // After the look: it is known when slots come for the first time.
        let saved = chunk.saved();
        let changed = seen.amount_since(self.since);
        let (present, absent) = (seen.present, seen.absent);
        let same = !is_unknown && changed.rows == 0 && seen.gone(&saved).next().is_none();
        if same && !is_moved {
            return Ok(false);
        }
        let all = seen.amount();
        // The directory may have to be read: not under the guard.
        drop(guard);
        let chain = self
            .base
            .as_ref()
            .map_or(Ok(None), |base| base.pages().chain_to_change(&key))?;
        // Nothing of it can be read any more but what is written now: all that is in memory.
        let is_hidden = |chain: &PageChain| chain.is_below() && chain.deltas().is_empty();
        let chain = if present.is_empty() {
            None
        } else {
            let due = chain.as_ref().is_none_or(|chain| {
                let bytes = (changed.bytes as u64, all.bytes as u64);
                !same
                    && (is_unknown || is_hidden(chain) || chain.is_due_for_merge(bytes.0, bytes.1))
            });
            let moved = match &chain {
                Some(chain) if is_moved && !due => self.move_pages(chain).ok(),
                _ => None,
            };
            // Pages that cannot be moved as they are, because they are damaged, are written anew from what is in
            // memory.
            let older = if due || (is_moved && moved.is_none()) {
                self.older_rows(&key, chain.as_ref(), &absent)
            } else {
                OlderRowsLookup::Nothing
            };
            let how = match (older, &chain) {
                (OlderRowsLookup::All(older), _) => Some(ChunkWriteMode::Whole(older)),
                _ if is_unknown => return Err(missing()),
                (OlderRowsLookup::Newer(older, newer), Some(chain))
                    if !same
                        && (is_hidden(chain)
                            || newer.are_many(chain, all.bytes + older.bytes())) =>
                {
                    Some(ChunkWriteMode::Folded(chain.clone(), older, newer))
                }
                (OlderRowsLookup::Newer(..) | OlderRowsLookup::Nothing, _) => None,
            };
            let anew = match how {
                Some(how) => self.write_pages(key.clone(), how, chunk, &saved, all)?,
                None => None,
            };
            if is_unknown && anew.is_none() {
                return Err(missing());
            }
            match (anew, moved, chain) {
                (Some(anew), _, _) => Some(anew),
                (None, Some(moved), _) if same => Some(moved),
                // What is neither moved nor written stays where it is, and so does its object.
                (None, None, _) if same => return Ok(false),
                (None, Some(chain), _) | (None, None, Some(chain)) => {
                    self.write_pages(key, ChunkWriteMode::Delta(chain), chunk, &saved, all)?
                }
                (None, None, None) => return Err(missing()),
            }
        };
        self.changes.push(ChunkChange {
            table: table_at,
            chunk: number,
            present: Some(present),
            doubtful: SlotSet::NONE,
            changed: changed_since,
            by_tail: false,
            chain,
        });
        Ok(true)
    }

    /// Has the readers read the older pages that chunks from the `first` on will need, several at once where they lie
    /// together. What comes of it is a guess: what is needed and was not read is read by itself. Gives the first chunk
    /// that was not looked at.
    fn read_ahead(&mut self, table: &Table, first: u64) -> u64 {
        let end = table.rows.chunk_end().min(first + AHEAD_CHUNKS);
        // Of chunks that are brought in; and of others.
        let (mut loads, mut others) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let mut number = first;
        while number < end && bytes < AHEAD_BYTES_MAX {
            let chunk = table.rows.chunk(number);
            let key = PageKey::Rows {
                table: table.id(),
                chunk: number,
            };
            number += 1;
            let Some(chunk) = chunk.filter(|chunk| chunk.is_changed()) else {
                continue;
            };
            let tail = table.rows.tails.get(number - 1);
            let is_absent = || {
                let absence = chunk.absence(&Guard::pin());
                absence.is_some_and(|absence| !absence.slots().is_empty())
            };
            if tail.is_none() && !is_absent() {
                continue;
            }
            // Whoever needs it is told if it cannot be looked up.
            let found = self
                .base
                .as_ref()
                .map(|base| base.pages().chain_to_move(&key));
            let Some(Ok(Some(chain))) = found else {
                continue;
            };
            let pages = match &tail {
                Some(tail) if self.is_due(&chain, tail) => &mut loads,
                Some(_) => &mut others,
                // How much its rows are is not known: at least when its deltas are many it is written whole.
                None if chain.is_due_for_merge(0, u64::MAX) => &mut others,
                None => continue,
            };
            pages.extend(chain.pages().copied());
            bytes += chain.len_bytes();
        }
        let most = AHEAD_BYTES_MAX as usize;
        self.reader.read_ahead(others, most);
        if !loads.is_empty() {
            let chunks = &self.engine.inner().chunks;
            let reader = self.loads.get_or_insert_with(|| chunks.reader());
            reader.read_ahead(loads, most);
        }
        number
    }

    /// Had a chunk with a tail better be brought in, and written whole?
    fn is_due(&self, chain: &PageChain, tail: &ChunkTail) -> bool {
        // How much its rows are is not known before they are there: perhaps a delta will do.
        chain.is_due_for_merge(tail.len_bytes(), 0) && has_plenty(self.engine.memory())
    }

    /// Brings in a chunk with a tail that had better be written whole, as long as there is room.
    fn bring_due(&mut self, table: &Table, number: u64) -> Result<(), CheckpointError> {
        let inner = self.engine.inner();
        let Some(tail) = table.rows.tails.get(number) else {
            return Ok(());
        };
        let key = PageKey::Rows {
            table: table.id(),
            chunk: number,
        };
        let chain = self
            .base
            .as_ref()
            .map_or(Ok(None), |base| base.pages().chain_to_change(&key))?;
        let chain = chain.filter(|chain| !chain.is_below());
        if chain.is_some_and(|chain| self.is_due(&chain, &tail)) {
            let chunks = &inner.chunks;
            let reader = self.loads.get_or_insert_with(|| chunks.reader());
            // If it does not come, what the tail says is written behind its pages.
            let _perhaps = chunks.load_tail_for_checkpoint(&table.rows, number, reader);
        }
        Ok(())
    }

    /// The rows of a chunk that are absent, as far as they can be read. Damage is told to whoever needs one, not by
    /// checkpoints: the chunk's changes are written behind what it has.
    fn older_rows(
        &mut self,
        key: &PageKey,
        chain: Option<&PageChain>,
        absent: &SlotSet,
    ) -> OlderRowsLookup {
        match chain {
            _ if absent.is_empty() => OlderRowsLookup::All(OlderRows::default()),
            Some(chain) => OlderRows::read(&mut self.reader, key, chain, absent, self.since),
            None => OlderRowsLookup::Nothing,
        }
    }

    /// Moves the pages of a chunk that is not in memory. What cannot be moved, because it is damaged or cannot be read
    /// now, stays where it is, and so does its object.
    fn move_absent(
        &mut self,
        table_at: usize,
        number: u64,
        key: &PageKey,
    ) -> Result<bool, CheckpointError> {
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        let Some(chain) = base.pages().chain_to_move(key)? else {
            return Ok(false);
        };
        let Ok(moved) = self.move_pages(&chain) else {
            return Ok(false);
        };
        self.changes.push(ChunkChange {
            table: table_at,
            chunk: number,
            present: None,
            doubtful: SlotSet::NONE,
            changed: false,
            by_tail: false,
            chain: Some(moved),
        });
        Ok(true)
    }

    pub(super) fn move_pages(&mut self, chain: &PageChain) -> Result<PageChain, CheckpointError> {
        let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
        let before = writer.bytes();
        let moved = logstead_checkpoint::move_pages(chain, self.moves.objects(), writer)?;
        self.report.bytes_moved += writer.bytes() - before;
        Ok(moved)
    }

    /// Writes a chunk's page, or pages if it is large. Nothing if older rows cannot be read that were before: what was
    /// written of it is for nothing.
    fn write_pages(
        &mut self,
        key: PageKey,
        how: ChunkWriteMode,
        chunk: &Chunk,
        saved: &SlotSet,
        all: DirtyTotals,
    ) -> Result<Option<PageChain>, CheckpointError> {
        let (extent, since) = match how {
            ChunkWriteMode::Whole(_) => (ImageKind::Whole, Csn::ZERO),
            ChunkWriteMode::Delta(_) => (ImageKind::Delta, self.since),
            ChunkWriteMode::Folded(..) => (ImageKind::Delta, Csn::ZERO),
        };
        let (pages, report) = (&mut self.pages, &mut self.report);
        let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
        pages.begin(key, extent, self.csn);
        // The snapshot keeps what it sees: a second look finds the same, but for rows that have come back.
        let guard = Guard::pin();
        let seen = still_there(ChunkView::look(chunk, self.csn, &guard));
        match &how {
            ChunkWriteMode::Whole(_) => {}
            ChunkWriteMode::Delta(_) => {
                for slot in seen.gone(saved) {
                    pages.delete(slot)?;
                }
            }
            // What the pages say that are replaced, and more: no older page counts for a slot that is empty.
            ChunkWriteMode::Folded(_, _, newer) => {
                for slot in seen.gone(&SlotSet::ALL) {
                    pages.delete(slot)?;
                }
                for slot in newer.empty.both(&seen.absent).iter() {
                    pages.delete(slot as u16)?;
                }
            }
        }
        let (present, absent) = (seen.present, seen.absent);
        let older_bytes = how.older().map_or(0, OlderRows::bytes);
        let is_whole = matches!(how, ChunkWriteMode::Whole(_));
        if all.bytes + older_bytes >= COPIED_BYTES_MIN {
            drop(guard);
            for slot in present.iter() {
                let found = {
                    let guard = Guard::pin();
                    match row_at(chunk, slot, self.csn, &guard) {
                        Ok(None) => continue,
                        Ok(Some((csn, row))) => {
                            self.row.clear();
                            self.row.extend_from_slice(row);
                            Ok(csn)
                        }
                        Err(SlotsAbsent) => Err(SlotsAbsent),
                    }
                };
                let csn = match (found, how.older()) {
                    (Ok(csn), _) => csn,
                    (Err(SlotsAbsent), Some(older)) if is_whole || older.contains(slot) => {
                        match older.copy(slot, &mut self.reader, &mut self.row) {
                            Ok(csn) => csn,
                            Err(_) => return Ok(None),
                        }
                    }
                    (Err(SlotsAbsent), _) => continue,
                };
                if csn >= since {
                    pages.row(slot as u16, csn, &self.row, writer)?;
                    report.rows += 1;
                }
            }
            if self.row.capacity() > COPIED_BYTES_MIN {
                self.row = Vec::new();
            }
        } else {
            for slot in present.iter() {
                let row = match how.older() {
                    Some(older) if absent.contains(slot) => older.row(slot),
                    _ => seen.row(slot),
                };
                if let Some((csn, row)) = row.filter(|(csn, _)| *csn >= since) {
                    pages.row(slot as u16, csn, row, writer)?;
                    report.rows += 1;
                }
            }
            drop(guard);
        }
        let written = pages.finish(writer)?;
        match how {
            ChunkWriteMode::Whole(_) => {
                report.pages += written.len() as u64;
                // A page is always made of a whole chunk.
                let chain = PageChain::whole(written).ok_or(CheckpointError::Busy)?;
                Ok(Some(chain))
            }
            ChunkWriteMode::Delta(mut chain) => {
                report.delta_pages += written.len() as u64;
                chain.push(written);
                Ok(Some(chain))
            }
            ChunkWriteMode::Folded(chain, _, newer) => {
                report.delta_pages += written.len() as u64;
                Ok(newer.replaced(&chain, written))
            }
        }
    }
}

/// What was found in a chunk that is being written, and therefore stays in memory.
fn still_there<T>(found: Result<T, SlotsAbsent>) -> T {
    match found {
        Ok(found) => found,
        Err(SlotsAbsent) => unreachable!("a chunk that is being written is not evicted"),
    }
}
