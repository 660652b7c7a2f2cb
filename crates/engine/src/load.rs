//! Reading rows back from the newest published checkpoint: single ones, or all of a chunk.
//!
//! Which checkpoint: the newest published one, looked up after the rows were found absent. It has them, for only such
//! rows are evicted, and nothing is changed in one that is absent; a newer one has the same ([`crate::version`]). If
//! the objects are gone while they are read, because a newer one was published, they are read again from that.
//!
//! A chunk that the log behind the checkpoint has changed, and that nobody has read since the start, comes in with its
//! tail over its pages ([`crate::chunk_tail`]): at least the rows that the tail has touched.
//!
//! A chunk that has left with changes that only the log has comes from a page service, or from the log ([`logged`]).
//!
//! Everything read was checked: checksums, keys and lengths by crate `checkpoint`, here that rows are rows and older
//! than their checkpoint. What is damaged, or cannot be read, is told by object, offset and chunk, and not served;
//! other chunks are, and so are rows of that chunk whose newest state is in a newer page. Slots of which only the
//! damaged page, or an older one, could tell what they are count as rows that are absent, until they can be read
//! ([`TableRows::doubts`]). Of a chunk that cannot be read no insert gets a free row number until it has been read.
//!
//! Memory: a load asks for room before it reads, for what it brings: what the chunk's absent rows took on average when
//! they were evicted, or, if that was not in this life, a guess from its pages' compressed length. What it is granted
//! is charged until rows take its place. A guess that was too low is raised and asked for anew, unless there is room. A
//! load that is refused goes on all the same when no other such load is under way, as long as what it reads fits into
//! what is left, the reserve included: what was in memory fits again, and who wants to delete a row must have it first.
//! Only what does not fit then fails (53200). What is read ahead takes what nobody waits for, or nothing. A page that
//! is being read is not counted, nor the pages of a run that is read ahead (half a megabyte for each thread that is at
//! one).

mod chunk;
mod log_tails;
mod logged;
mod row_locations;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use logstead_checkpoint::{PageChain, PageKey, PageReader};
use logstead_home::LogHome;
use parking_lot::{Mutex, MutexGuard};

use crate::chunk_tail::{ChunkTail, TailMismatch};
use crate::delta;
use crate::fault_error::FaultError;
use crate::memory::{Charge, Memory};
use crate::memory_queue::{LoadInProgress, MemoryQueue, ReadAheadGrant};
use crate::page_fault::{FaultTarget, SlotRequest};
use crate::page_loader::{FaultHandler, PrefetchDecision};
use crate::page_store::{NewestCheckpoint, PageLoader, ReplicaBase};
use crate::read_ahead::Prefetch;
use crate::rows::{CheckpointedSlots, TableRows};
use crate::stored_checkpoint::StoredCheckpoint;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, Chunk, Guard, SlotSet};
pub(crate) use chunk::{LoadedChunk, ReadError, read_chunk};
pub(crate) use log_tails::LogTails;
pub(crate) use logged::LoggedSources;
use row_locations::RowLocationCache;

/// Rows take so many times the bytes of their pages, as a guess.
const UNPACKED: u64 = 3;
/// A guess is at most this part of what may be used.
const GUESS_PART: u64 = 4;
/// How often, and how many times, it is looked whether a checkpoint is through with a chunk of which slots are to
/// become free.
const WRITTEN_AGAIN: Duration = Duration::from_millis(10);
const WRITTEN_LOOKS_MAX: u32 = 500;
/// What is read of pages at once for chunks that are read ahead, at most.
const READ_AHEAD_BYTES_MAX: usize = 512 << 10;
/// A leaf, with the page that it is read from. Leaves whose keys need several pages are rare.
const LEAF_BYTES: u64 = 16 << 10;

/// What is to be read of a chunk.
struct RoomRequest<'a, 'l> {
    /// These rows; all, if there is a tail.
    wanted: &'a SlotSet,
    /// What comes over its pages.
    tail: Option<&'a ChunkTail>,
    /// What they took when they were evicted.
    known: Option<u64>,
    patience: WaitPolicy<'l>,
}

/// What who asks does where there is no room.
#[derive(Clone, Copy)]
enum WaitPolicy<'l> {
    /// He waits for some.
    Wait,
    /// He goes on with what is left, the reserve included.
    NoWait,
    /// He gives up: nobody waits for what he would bring ([`crate::read_ahead`]).
    GiveUp(&'l ReadAheadGrant<'l>),
    /// The same of what is brought while there is plenty ([`crate::warmup`]). It counts as looked for only if it was so
    /// where it was in memory before.
    Warmup { is_hot: bool },
}

/// What a load may take.
struct Allowed<'l> {
    /// What it has been given and not used yet.
    charge: Charge,
    granted: u64,
    /// It was refused and goes on, alone.
    alone: Option<MutexGuard<'l, ()>>,
    /// Nobody waits for it.
    ahead: Option<&'l ReadAheadGrant<'l>>,
    _in_load: LoadInProgress,
}

impl Allowed<'_> {
    /// So many bytes are there of what is loaded. False: there is no room for it.
    fn took(&mut self, bytes: u64) -> bool {
        let left = self.granted.saturating_sub(bytes);
        // Never more than what was charged before.
        self.charge
            .force(usize::try_from(left).unwrap_or(usize::MAX));
        if let Some(share) = self.ahead {
            return share.raise(bytes);
        }
        left > 0 || self.charge.memory().left_bytes(self.alone.is_some()) > 0
    }
}

/// Brings rows back.
pub(crate) struct ChunkLoader {
    home: LogHome,
    newest: Arc<NewestCheckpoint>,
    room: Arc<MemoryQueue>,
    memory: &'static Memory,
    /// Held by a load that goes on without room.
    alone: Mutex<()>,
    /// Where the rows of large chunks lie.
    places: RowLocationCache,
    /// Where chunks come from of which only the log has something; of a server that writes one.
    sources: OnceLock<LoggedSources>,
}

impl ChunkLoader {
    pub(crate) fn new(
        home: LogHome,
        newest: Arc<NewestCheckpoint>,
        room: Arc<MemoryQueue>,
        memory: &'static Memory,
    ) -> ChunkLoader {
        ChunkLoader {
            home,
            newest,
            room,
            memory,
            alone: Mutex::default(),
            places: RowLocationCache::new(memory),
            sources: OnceLock::new(),
        }
    }

    /// A reader for [`ChunkLoader::load_to_warm`], which reads ahead what is read in order.
    pub(crate) fn reader(&self) -> PageReader {
        PageReader::new(self.home.objects.clone()).merging(delta::put_over)
    }

    /// Brings rows of a chunk that nobody waits for, those of them that are not there, if there is room. Tells whether
    /// there were any.
    pub(crate) fn load_to_warm(
        &self,
        rows: &TableRows,
        number: u64,
        slots: &SlotSet,
        is_hot: bool,
        reader: &mut PageReader,
    ) -> Result<bool, FaultError> {
        let needs = SlotRequest::of(*slots);
        let policy = WaitPolicy::Warmup { is_hot };
        let bytes = self.load(rows, number, &needs, policy, reader)?;
        Ok(bytes > 0)
    }

    /// Brings the rows of a chunk that its tail has touched, if it has one.
    pub(crate) fn load_tail(
        &self,
        rows: &TableRows,
        number: u64,
        reader: &mut PageReader,
    ) -> Result<(), FaultError> {
        self.load(rows, number, &SlotRequest::NONE, WaitPolicy::Wait, reader)?;
        Ok(())
    }

    /// Brings all rows of a chunk, which were in memory before. Tells how much they take.
    pub(crate) fn load_whole(
        &self,
        rows: &TableRows,
        number: u64,
        reader: &mut PageReader,
    ) -> Result<u64, FaultError> {
        let needs = SlotRequest {
            needed: SlotSet::NONE,
            beside: SlotSet::ALL,
        };
        self.load(rows, number, &needs, WaitPolicy::Wait, reader)
    }

    /// The same for who takes checkpoints, which others wait for who wait for room: so he does not.
    pub(crate) fn load_tail_for_checkpoint(
        &self,
        rows: &TableRows,
        number: u64,
        reader: &mut PageReader,
    ) -> Result<(), FaultError> {
        self.load(rows, number, &SlotRequest::NONE, WaitPolicy::NoWait, reader)?;
        Ok(())
    }

    /// Brings in rows for who is asked for them by another server, and waits for no room.
    pub(crate) fn load_to_answer(
        &self,
        rows: &TableRows,
        number: u64,
        slots: &SlotSet,
        reader: &mut PageReader,
    ) -> Result<(), FaultError> {
        let needs = SlotRequest::of(*slots);
        self.load(rows, number, &needs, WaitPolicy::NoWait, reader)?;
        Ok(())
    }

    /// Room for a leaf that is about to be brought in, while what is given lives.
    pub(crate) fn room_for_leaf(&self) -> Result<impl Sized + '_, FaultError> {
        self.allow(LEAF_BYTES, LEAF_BYTES, WaitPolicy::Wait)
    }

    /// Brings in a row for who applies a log: others may wait for what he does next, so he waits for no room. Where
    /// there is plenty the rest of its chunk comes along.
    pub(crate) fn load_row_to_apply(
        &self,
        rows: &TableRows,
        number: u64,
        slot: usize,
        reader: &mut PageReader,
    ) -> Result<(), FaultError> {
        let needs = SlotRequest {
            needed: SlotSet::one(slot),
            beside: match has_plenty(self.memory) {
                true => SlotSet::ALL,
                false => SlotSet::NONE,
            },
        };
        self.load(rows, number, &needs, WaitPolicy::NoWait, reader)?;
        Ok(())
    }

    /// Brings in the rest of a run, with as few requests as the places of its pages allow: see
    /// [`FaultHandler::load_run`].
    fn load_run(
        &self,
        run: &Prefetch,
        next: &dyn Fn(u64, &SlotSet) -> PrefetchDecision,
        done: &dyn Fn(u64),
        reader: &mut PageReader,
    ) {
        let rows = &*run.rows;
        let rest = run.rest();
        let mut is_read = false;
        for (at, (number, slots)) in rest.iter().enumerate() {
            match next(*number, slots) {
                PrefetchDecision::Load => {}
                PrefetchDecision::Skip => continue,
                PrefetchDecision::Defer => break,
            }
            // Not before one is to be brought: nothing may be wanted any more, and who leaves the run at once would
            // have it read again.
            if !std::mem::replace(&mut is_read, true)
                && let Some(chunks @ [_, _, ..]) = rest.get(at..)
            {
                self.read_ahead(rows, chunks, reader);
            }
            let needs = SlotRequest {
                needed: SlotSet::NONE,
                beside: *slots,
            };
            let share = ReadAheadGrant::new(&self.room);
            match self.load(rows, *number, &needs, WaitPolicy::GiveUp(&share), reader) {
                Ok(bytes) => run.has_brought(*number, bytes, &share),
                Err(FaultError::OutOfMemory(_) | FaultError::Closing) => run.stop(),
                // Who comes to it is told.
                Err(_) => {}
            }
            done(*number);
        }
        reader.discard_read_ahead();
    }

    /// Has the reader read the pages of several chunks at once, as far as they lie together. What cannot be read is
    /// read again by who needs it.
    fn read_ahead(&self, rows: &TableRows, chunks: &[(u64, SlotSet)], reader: &mut PageReader) {
        let directory = self.newest.of(rows).directory;
        let mut pages = Vec::new();
        for (number, _) in chunks {
            let key = PageKey::Rows {
                table: rows.table,
                chunk: *number,
            };
            if let Ok(Some(chain)) = directory.get(&key) {
                pages.extend(chain.pages().copied());
            }
        }
        reader.read_ahead(pages, READ_AHEAD_BYTES_MAX);
    }

    /// Brings rows of a chunk, those of them that are not there; and those that its tail has touched, if it has one.
    /// Those beside what is needed only if they are a small part of the memory. Tells how much they take.
    fn load(
        &self,
        rows: &TableRows,
        number: u64,
        needs: &SlotRequest,
        patience: WaitPolicy<'_>,
        reader: &mut PageReader,
    ) -> Result<u64, FaultError> {
        let loaded = self.load_rows(rows, number, needs, patience, reader);
        if let Err(FaultError::Damaged(_) | FaultError::Unreachable(_)) = &loaded {
            rows.quarantine(number);
        }
        loaded
    }

    /// See [`ChunkLoader::load`].
    fn load_rows(
        &self,
        rows: &TableRows,
        number: u64,
        needs: &SlotRequest,
        patience: WaitPolicy<'_>,
        reader: &mut PageReader,
    ) -> Result<u64, FaultError> {
        let Some(chunk) = rows.chunk(number) else {
            return Ok(0);
        };
        let mut wanted = needs.all();
        let mut bytes = 0;
        let mut looks = 0;
        loop {
            if chunk.is_leaving() {
                // They are evicted, or stay, within moments.
                std::thread::yield_now();
                continue;
            }
            // Before it is looked up which checkpoint is the newest.
            let Some(absence) = chunk.absence(&Guard::pin()) else {
                std::thread::yield_now();
                continue;
            };
            // After the absence: who brings it meanwhile takes note and tail away, and ends the absence.
            if let Some(logged) = rows.logged.get(number) {
                let at = (chunk, &absence);
                let asked = (needs, patience);
                match self.load_logged(rows, number, at, &logged, asked, reader)? {
                    Some(bytes) => return Ok(bytes),
                    None => continue,
                }
            }
            let is_settled = self.newest.has_tails();
            let tail = rows.tails.get(number);
            let stored = self.newest.of(rows);
            if tail.is_some() && stored.publication > 0 {
                if is_settled {
                    // No checkpoint has it, nor the pages that it is to be put over.
                    return Err(FaultError::Damaged(format!(
                        "chunk {number} of table {} is gone: the table was dropped",
                        rows.table
                    )));
                }
                // It is about to go: these pages have it.
                std::thread::yield_now();
                continue;
            }
            let touched = tail.as_ref().map_or(SlotSet::NONE, |tail| *tail.touched());
            wanted = wanted.union(&touched).both(absence.slots());
            let large = self.room.limit(false) / GUESS_PART;
            let mut known = chunk.absent_bytes(&absence, &wanted);
            if known.is_some_and(|bytes| bytes > large) {
                wanted = wanted.both(&needs.needed.union(&touched));
                known = chunk.absent_bytes(&absence, &wanted);
            }
            if wanted.is_empty() {
                return Ok(bytes);
            }
            if !stored.has_table(rows.table) {
                return Err(FaultError::TooOld(stored.csn));
            }
            let mut is_whole = true;
            let asked = RoomRequest {
                wanted: &wanted,
                tail: tail.as_deref(),
                known,
                patience,
            };
            // Before it is read: what is settled meanwhile, by who brings it, ends the absence.
            let mut doubtful = rows.doubts.slots(number).both(absence.slots());
            let mut read = self.read(&stored, rows, number, &asked, reader);
            if let Ok((filled, _)) = &mut read
                && let Some(damage) = filled.damage.take()
            {
                if self.newest.is_after(rows, &stored) {
                    // Its objects may have been removed meanwhile.
                    continue;
                }
                let saved = chunk.saved_before();
                let unknown = match &saved {
                    // What has a row there is known without the page, also of rows of this life.
                    Some(saved) => saved.minus(&filled.known),
                    None => rows.unknown(number, &filled.known),
                };
                let needed = needs.needed.both(absence.slots());
                if tail.is_some() || !needed.both(&unknown).is_empty() {
                    read = Err(damage.into());
                } else {
                    is_whole = false;
                    wanted = wanted.minus(&unknown);
                    filled.saved = filled.saved.union(&unknown);
                    if saved.is_none() {
                        rows.doubts.add(number, &unknown);
                    }
                    doubtful = doubtful.minus(&unknown);
                }
            }
            match read {
                Ok((filled, _))
                    if chunk.saved_before().is_some_and(|saved| {
                        let sure = wanted.minus(&doubtful);
                        saved.both(&sure) != filled.saved.both(&sure)
                    }) =>
                {
                    // They have come, and perhaps gone, while they were read; or they are not what went.
                    if !self.newest.is_after(rows, &stored) && chunk.is_still(&absence) {
                        return Err(FaultError::Damaged(format!(
                            "chunk {number} of table {} is not stored as it was written",
                            rows.table
                        )));
                    }
                }
                Ok((filled, allowed)) => {
                    let (slots, over) = (filled.slots, tail.as_ref());
                    let taken = slots.bytes();
                    let mut contents = CheckpointedSlots {
                        saved: filled.saved,
                        empty: doubtful.minus(&filled.saved),
                    };
                    let settling = chunk.settle_if(!contents.empty.is_empty());
                    let settling = match settling {
                        Some(settling) => settling,
                        None => {
                            // Its other rows need not wait for that checkpoint: these slots stay in doubt.
                            let empty = std::mem::take(&mut contents.empty);
                            let others = wanted.minus(&empty);
                            if others.is_empty() || tail.is_some() {
                                drop((slots, allowed));
                                if tail.is_none() && needs.needed.both(&wanted).is_empty() {
                                    return Ok(bytes);
                                }
                                looks = self.wait_until_written(rows, number, chunk, looks)?;
                                continue;
                            }
                            let counted = chunk.saved_before().unwrap_or(SlotSet::ALL);
                            contents.saved = contents.saved.union(&empty.both(&counted));
                            doubtful = doubtful.minus(&empty);
                            wanted = others;
                            None
                        }
                    };
                    let brought = rows.bring(number, &absence, slots, &wanted, &contents, over);
                    drop((settling, allowed));
                    let Some(brought) = brought else {
                        // What was read may be stale: once more.
                        continue;
                    };
                    if let WaitPolicy::Warmup { is_hot: false } = patience {
                        chunk.forget_touched(&brought);
                    }
                    rows.doubts.settle(number, &doubtful);
                    bytes += taken;
                    self.room.count_loaded(brought.len());
                    self.room.wake_if_scarce();
                    wanted = wanted.minus(&brought);
                    if is_whole {
                        rows.take_back(number);
                    }
                    if wanted.is_empty() {
                        return Ok(bytes);
                    }
                }
                Err(error @ (FaultError::OutOfMemory(_) | FaultError::Closing)) => {
                    return Err(error);
                }
                // Its objects may have been removed meanwhile.
                Err(_) if self.newest.is_after(rows, &stored) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Slots of a chunk are needed that turn out to be free, and a checkpoint that is writing it counts them as rows:
    /// blocks until it is through, and reads nothing meanwhile. `looks`: how often was looked before, and afterwards.
    fn wait_until_written(
        &self,
        rows: &TableRows,
        number: u64,
        chunk: &Chunk,
        mut looks: u32,
    ) -> Result<u32, FaultError> {
        loop {
            looks += 1;
            if looks > WRITTEN_LOOKS_MAX {
                return Err(FaultError::Unreachable(format!(
                    "chunk {number} of table {} is whole again, but a checkpoint is writing it",
                    rows.table
                )));
            }
            logstead_env::sleep(WRITTEN_AGAIN);
            if !chunk.is_being_written() {
                return Ok(looks);
            }
        }
    }

    /// Reads rows of a chunk, of which is known how much they take, or not.
    fn read<'l>(
        &'l self,
        stored: &StoredCheckpoint,
        rows: &TableRows,
        number: u64,
        asked: &RoomRequest<'_, 'l>,
        reader: &mut PageReader,
    ) -> Result<(LoadedChunk, Allowed<'l>), FaultError> {
        let RoomRequest {
            wanted,
            tail,
            known,
            patience,
        } = *asked;
        let key = PageKey::Rows {
            table: rows.table,
            chunk: number,
        };
        let chain = stored.directory.get(&key)?;
        let kept = tail.map_or(0, ChunkTail::len_bytes);
        let share = |of: u64| (of * wanted.len() as u64).div_ceil(CHUNK_SLOTS as u64);
        let packed = share(chain.as_ref().map_or(0, PageChain::len_bytes)) + kept;
        let (mut bytes, least) = match known {
            Some(bytes) => (bytes, bytes),
            None => {
                let guess = packed.saturating_mul(UNPACKED) + CHUNK_BYTES as u64;
                // A guess is not worth emptying the memory for.
                (guess.min(self.room.limit(false) / GUESS_PART), packed)
            }
        };
        loop {
            let mut allowed = self.allow(bytes, least, patience)?;
            let (mut fits, mut taken) = (true, 0);
            let goes_on = |bytes| {
                taken = bytes;
                fits = allowed.took(bytes);
                fits
            };
            let (chain, csn) = (chain.as_ref(), stored.csn);
            let mut goes_on = goes_on;
            let known = chain.and_then(|chain| {
                let places = &self.places;
                places.read(reader, &key, chain, wanted, csn, &mut goes_on)
            });
            let mut filled = match known {
                Some(filled) => filled,
                None => {
                    let filled = read_chunk(reader, &key, chain, wanted, csn, self.memory, goes_on)
                        .map_err(|why| unreadable(why, &key, chain))?;
                    if let Some(chain) = chain {
                        self.places.note(reader, &key, chain, &filled);
                    }
                    filled
                }
            };
            if filled.damage.is_some() {
                return Ok((filled, allowed));
            }
            if fits && let Some(tail) = tail {
                tail.apply(&mut filled.slots)
                    .map_err(|why| unfit(&why, &key, chain))?;
                taken = filled.slots.bytes();
                fits = allowed.took(taken);
            }
            if fits {
                return Ok((filled, allowed));
            }
            if allowed.alone.is_some() || allowed.ahead.is_some() {
                return Err(self.memory.exhausted().into());
            }
            bytes = bytes.max(taken).saturating_mul(2);
        }
    }

    /// Blocks until there is room for a load of `bytes`, at least `least`, if it waits for that.
    fn allow<'l>(
        &'l self,
        bytes: u64,
        least: u64,
        patience: WaitPolicy<'l>,
    ) -> Result<Allowed<'l>, FaultError> {
        let (room, ahead) = match patience {
            WaitPolicy::GiveUp(share) => (share.take(bytes), Some(share)),
            WaitPolicy::Wait | WaitPolicy::NoWait | WaitPolicy::Warmup { .. } => {
                (self.room.take(bytes, false), None)
            }
        };
        let granted = match (room, patience) {
            (Some(charge), _) => Ok(charge),
            (None, WaitPolicy::GiveUp(_) | WaitPolicy::Warmup { .. }) => {
                return Err(self.memory.exhausted().into());
            }
            (None, WaitPolicy::Wait) if !self.room.is_hopeless() => {
                self.room
                    .request_blocking(bytes.min(self.room.limit(false)), false, 0)
            }
            (None, WaitPolicy::Wait | WaitPolicy::NoWait) => Err(self.memory.exhausted()),
        };
        let (charge, alone) = match granted {
            Ok(charge) => (charge, None),
            Err(error) => {
                let alone = self.alone.lock();
                let left = self.memory.left_bytes(true);
                if left < least {
                    return Err(error.into());
                }
                let mut charge = self.memory.charge();
                charge.force(usize::try_from(bytes.min(left)).unwrap_or(0));
                (charge, Some(alone))
            }
        };
        Ok(Allowed {
            granted: charge.bytes() as u64,
            charge,
            alone,
            ahead,
            _in_load: self.room.load_begins(),
        })
    }
}

pub(crate) fn unreadable(why: ReadError, key: &PageKey, chain: Option<&PageChain>) -> FaultError {
    match why {
        ReadError::Page(error) => error.into(),
        ReadError::Row(slot, why) => {
            let place = chain.map(|chain| {
                let at = chain.base();
                format!("object {}, offset {}", at.object, at.offset)
            });
            FaultError::Damaged(format!(
                "slot {slot} of {key} ({}) is damaged: {why}",
                place.unwrap_or_default()
            ))
        }
    }
}

pub(crate) fn unfit(why: &TailMismatch, key: &PageKey, chain: Option<&PageChain>) -> FaultError {
    let at = chain.map(PageChain::base);
    let place = at.map(|at| format!("object {}, offset {}", at.object, at.offset));
    FaultError::Damaged(format!(
        "the log's entry with CSN {} does not fit row {} of {key} ({}): {}",
        why.csn,
        why.rid,
        place.unwrap_or_default(),
        why.source
    ))
}

/// Brings in whatever is absent.
pub(crate) struct FaultLoader {
    pub(crate) chunks: Arc<ChunkLoader>,
    pub(crate) pages: Arc<PageLoader>,
    replica_base: Option<Arc<ReplicaBase>>,
    /// Readers that nobody uses just now: as many as loads have been under way at once.
    readers: Mutex<Vec<PageReader>>,
}

impl FaultLoader {
    pub(crate) fn new(
        chunks: Arc<ChunkLoader>,
        pages: Arc<PageLoader>,
        replica_base: Option<Arc<ReplicaBase>>,
    ) -> FaultLoader {
        FaultLoader {
            chunks,
            pages,
            replica_base,
            readers: Mutex::default(),
        }
    }

    /// Does something with a reader of single pages.
    fn with_reader<T>(&self, read: impl FnOnce(&mut PageReader) -> T) -> T {
        let idle = self.readers.lock().pop();
        let mut reader = idle.unwrap_or_else(|| self.chunks.reader().of_single_pages());
        let read = read(&mut reader);
        reader.shrink_buffers();
        self.readers.lock().push(reader);
        read
    }
}

impl FaultLoader {
    fn load_any(&self, wanted: &FaultTarget, slots: &SlotRequest) -> Result<(), FaultError> {
        let base = self.replica_base.as_ref();
        // Room may have to be made by what a replica's thread would apply next.
        let patience = match base.is_some_and(|base| base.is_applier()) {
            true => WaitPolicy::NoWait,
            false => WaitPolicy::Wait,
        };
        match wanted {
            FaultTarget::Rows { rows, number, .. } => self.with_reader(|reader| {
                let mut load = |needs| {
                    let chunks = &self.chunks;
                    chunks.load(rows, *number, needs, patience, reader)
                };
                match load(slots) {
                    // How much they take may not be known: then without what nobody needs now.
                    Err(FaultError::OutOfMemory(_)) if slots.all() != slots.needed => {
                        load(&SlotRequest::of(slots.needed))?;
                    }
                    loaded => {
                        loaded?;
                    }
                }
                Ok(())
            }),
            FaultTarget::Leaf { index, low } => {
                let _room = self.chunks.allow(LEAF_BYTES, LEAF_BYTES, patience)?;
                let table = index.rows.table;
                self.with_reader(|reader| self.pages.load_leaf(table, index, low, reader))
            }
            FaultTarget::Past { past, table } => past.load(*table),
            // Who waits for room asks for it himself, and keeps it.
            FaultTarget::Room { .. } => Ok(()),
            FaultTarget::Lost => Err(FaultError::InstanceRestarted),
        }
    }
}

impl FaultHandler for FaultLoader {
    fn load(&self, wanted: &FaultTarget, slots: &SlotRequest) -> Result<(), FaultError> {
        match (&self.replica_base, wanted) {
            (None, _) => self.load_any(wanted, slots),
            (Some(base), FaultTarget::Rows { .. }) => {
                base.read_rows(|| self.load_any(wanted, slots))
            }
            (Some(base), _) => {
                let loaded = self.load_any(wanted, slots);
                loaded.map_err(|error| base.explain(error))
            }
        }
    }

    fn load_run(
        &self,
        run: &Prefetch,
        next: &dyn Fn(u64, &SlotSet) -> PrefetchDecision,
        done: &dyn Fn(u64),
    ) {
        self.with_reader(|reader| self.chunks.load_run(run, next, done, reader));
    }
}

/// Is there room for what nobody has asked for? Below the evictor's low mark, three quarters of the budget without its
/// reserve.
pub(crate) fn has_plenty(memory: &Memory) -> bool {
    let limit = memory.budget_bytes() - memory.reserve_bytes();
    memory.left_bytes(false) > limit / 4
}
