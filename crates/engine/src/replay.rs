//! Bringing tables back from the newest checkpoint and the log behind it.
//!
//! Of the checkpoint nothing is read but its record: the chunks that it has are there, and absent. Survivors of the log
//! are dealt out by chunk to parts, in CSN order, each with a thread of its own ([`partition`]) that keeps what
//! concerns a chunk of the checkpoint for who brings that in ([`crate::chunk_tail`]): a row's records stay in CSN order
//! behind its page, whatever the threads do. So a start takes time for the log behind the checkpoint, not for the data,
//! nor for how many chunks the log has touched. Nobody else can reach a chunk until all records are
//! applied, so a row has one version at any time, stamped with the CSN that wrote it; slots that end up empty are free.
//! The other chunks come when somebody needs them ([`crate::page_loader`]), and in the background as long as there is
//! room ([`Engine::bring_all`]).
//!
//! Memory: a thread has at most [`BATCHES_QUEUED`] batches before it, and who deals out waits. What the log has changed
//! must fit in the budget, and does if the budget is what it was: the life before, which could not evict it either, had
//! it in memory, or what the log before it said of it; or had let it go because the log had it
//! ([`crate::logged_chunks`]), and so does a start behind a checkpoint: of some chunks it keeps which rows the log has
//! touched. What does not fit then is not held: from there on rows are only counted, so that the refusal can say how
//! much they need. Nothing is written to a log that is refused.

mod follow;
mod partition;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use logstead_checkpoint::{
    CheckpointError, CheckpointRecord, CheckpointUpgrade, ChunkSize, Directory, UpgradeProgress,
};
use logstead_env::{Clock, Env, core_count, spawn_scoped};
use logstead_home::{HomeError, LogHome};
use logstead_types::{Csn, DatabaseId, Epoch, Rid, TableId};
use logstead_wal::manifest::CheckpointRef;
use logstead_wal::recovery::{self, RecoveryError, RedoHandler};
use logstead_wal::{LaneConfig, LogAllocationLimit, RecordReader};

use crate::engine::{Engine, EngineOptions, OpenLog};
use crate::error::{OpenError, ReplayError};
use crate::memory::Account;
use crate::page_store::CheckpointBase;
use crate::rows::absent_bytes;
use crate::stored_checkpoint::StoredCheckpoint;
use crate::version::{CHUNK_SLOTS, Guard};
use partition::{MemoryShortfall, ReplayPartition, ReplayShared};

pub(crate) use follow::open_beside;
pub use logstead_wal::recovery::RecoveryReport;

/// Bytes of records given to a thread at once.
const BATCH_BYTES: usize = 128 << 10;
/// Batches that wait for a thread.
const BATCHES_QUEUED: usize = 3;
/// How often it is told how far a checkpoint of an older format has been made anew.
const UPGRADE_TOLD: Duration = Duration::from_secs(5);
/// More threads than this would wait for the one that deals out.
const THREADS_MAX: usize = 32;
/// So many wait for pages at a time, however few cores there are.
const THREADS_MIN: usize = 8;

/// Chunks and records of one part, as they are in the checkpoint and in the log.
#[derive(Default)]
struct Batch {
    records: Vec<u8>,
    /// Each transaction's CSN and where its records end.
    ends: Vec<(Csn, usize)>,
}

impl Batch {
    fn push(&mut self, csn: Csn, record: &[u8]) {
        self.records.extend_from_slice(record);
        let end = self.records.len();
        match self.ends.last_mut() {
            Some(last) if last.0 == csn => last.1 = end,
            _ => self.ends.push((csn, end)),
        }
    }

    fn clear(&mut self) {
        self.records.clear();
        self.ends.clear();
    }

    /// Applies all of it, or up to a failure here or elsewhere.
    fn apply(&self, part: &mut ReplayPartition<'_>, shared: &ReplayShared) {
        let mut start = 0;
        for &(csn, end) in &self.ends {
            if shared.failed().is_some_and(|failed| failed <= csn) {
                return;
            }
            if let Err(error) = part.apply(csn, &self.records[start..end]) {
                return shared.fail(error);
            }
            start = end;
        }
    }
}

/// A thread that applies one part.
struct Thread<'scope> {
    to: SyncSender<Batch>,
    /// Batches that were applied, to be filled again.
    empty: Receiver<Batch>,
    handle: ScopedJoinHandle<'scope, MemoryShortfall>,
}

impl<'scope> Thread<'scope> {
    fn spawn<'s: 'scope>(
        scope: &'scope Scope<'scope, '_>,
        shared: &'s ReplayShared,
        number: usize,
    ) -> std::io::Result<Thread<'scope>> {
        let (to, from) = sync_channel(BATCHES_QUEUED);
        let (done, empty) = channel();
        let body = move || run(ReplayPartition::new(shared), shared, &from, &done);
        let handle = spawn_scoped(scope, &format!("replay-{number}"), body)?;
        Ok(Thread { to, empty, handle })
    }
}

/// A thread's life. After a failure it goes on taking batches, so that nobody waits for it.
fn run(
    mut part: ReplayPartition<'_>,
    shared: &ReplayShared,
    from: &Receiver<Batch>,
    done: &Sender<Batch>,
) -> MemoryShortfall {
    for mut batch in from {
        batch.apply(&mut part, shared);
        batch.clear();
        // Whoever deals out may be through.
        let _nobody_wants_it = done.send(batch);
    }
    part.finish()
}

/// Deals records out.
struct Replay<'scope, 'e, 's> {
    scope: &'scope Scope<'scope, 'e>,
    shared: &'s ReplayShared,
    clock: &'s dyn Clock,
    /// How many parts there are.
    parts: usize,
    /// The batch of each part that is being filled.
    filling: Vec<Batch>,
    /// Started when there is enough to do; empty before.
    threads: Vec<Thread<'scope>>,
    /// What is applied in this thread: all of it, if there is one part or little to do.
    here: ReplayPartition<'s>,
    beyond: MemoryShortfall,
    waited: Duration,
    home: &'s LogHome,
    /// Of a checkpoint that was made anew.
    upgraded_bytes: u64,
}

/// Which part applies a row: all rows of a chunk have the same one.
fn part_of(table: TableId, rid: Rid, parts: usize) -> usize {
    let chunk = rid.0 / CHUNK_SLOTS as u64;
    let mixed = (chunk ^ (u64::from(table.0) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The upper bits, scaled to the number of parts.
    (((mixed >> 32) * parts as u64) >> 32) as usize
}

impl<'scope, 's: 'scope> Replay<'scope, '_, 's> {
    fn start_threads(&mut self) -> Result<(), RecoveryError> {
        for number in 0..self.parts {
            let thread = Thread::spawn(self.scope, self.shared, number);
            let thread = thread.map_err(|error| RecoveryError::Refused(error.into()))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Has a part's batch applied.
    fn send(&mut self, part: usize) -> Result<(), RecoveryError> {
        let Some(thread) = self.threads.get(part) else {
            self.filling[part].apply(&mut self.here, self.shared);
            self.filling[part].clear();
            return Ok(());
        };
        let empty = thread.empty.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.filling[part], empty);
        let gone = || RecoveryError::Refused("a thread that applies the log has ended".into());
        match thread.to.try_send(full) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(gone()),
            Err(TrySendError::Full(batch)) => {
                let begun = self.clock.monotonic();
                let sent = thread.to.send(batch);
                self.waited += self.clock.monotonic().since(begun);
                sent.map_err(|_| gone())
            }
        }
    }

    /// Reads a checkpoint's record, and expects the chunks that it has.
    fn load(
        &mut self,
        database: DatabaseId,
        at: &CheckpointRef,
    ) -> Result<CheckpointRecord, RecoveryError> {
        let csn = at.csn;
        let unreadable = |source| {
            let error = ReplayError::Page { csn, source };
            RecoveryError::Refused(error.into())
        };
        let record =
            CheckpointRecord::read(self.home.objects.as_ref(), database, at.object, at.crc);
        let record = record.map_err(unreadable)?;
        if (record.csn, record.epoch) != (csn, at.epoch) {
            let wrong = format!(
                "the checkpoint at CSN {csn} cannot be loaded: its record is another checkpoint's"
            );
            return Err(RecoveryError::Refused(wrong.into()));
        }
        if record.chunk_size != ChunkSize::default() {
            // Its keys stand for other rows.
            let older = format!("the checkpoint at CSN {csn} is of an older format");
            return Err(RecoveryError::Refused(older.into()));
        }
        let directory = Directory::open(self.home.objects.clone(), record.root);
        for info in &record.tables {
            let table = self.shared.table(info.table);
            match record.divided(info.table) {
                Some(divided) => table.rows.expect_divided(info.rid_end, &divided.partitions),
                None => table.rows.expect(info.rid_end),
            }
            // Touched or not: that is known from here on.
            table.rows.tails.add_touched([]);
        }
        self.shared.set_loaded(StoredCheckpoint {
            csn,
            directory,
            publication: 0,
            tables: None,
        });
        Ok(record)
    }

    /// Nobody can go back once a checkpoint is made anew: refused, unless the budget has room for what there is of each
    /// chunk, also of one that is not in memory, and as much again for rows.
    fn has_room_for(&self, upgrade: &CheckpointUpgrade) -> Result<(), RecoveryError> {
        let tables = &upgrade.record().tables;
        let needed: u64 = tables.iter().map(|info| absent_bytes(info.rid_end)).sum();
        let needed = needed.saturating_mul(2);
        let budget = self.shared.memory.budget_bytes();
        if needed <= budget {
            return Ok(());
        }
        let refused = format!(
            "the database is of an older format, and to be made anew it needs a memory budget of at least {needed} bytes; the budget is {budget} bytes. \
             Nothing has changed: start with a larger \"memory\", or with the server of before"
        );
        Err(RecoveryError::Refused(refused.into()))
    }

    /// Waits until everything dealt out is applied; the failure, if something cannot be.
    fn settle(&mut self) -> Result<(), RecoveryError> {
        for part in 0..self.parts {
            self.send(part)?;
        }
        let mut beyond = self.here.finish();
        for thread in std::mem::take(&mut self.threads) {
            drop(thread.to);
            let panicked =
                |_| RecoveryError::Refused("a thread that applies the log panicked".into());
            beyond.add(thread.handle.join().map_err(panicked)?);
        }
        self.beyond = beyond;
        match self.shared.take_failure() {
            None => Ok(()),
            Some(error @ ReplayError::Page { .. }) => Err(RecoveryError::Refused(error.into())),
            Some(error) => Err(RecoveryError::Apply {
                csn: error.csn(),
                source: error.into(),
            }),
        }
    }

    fn needed_bytes(&self) -> u64 {
        let tables = self.shared.tables.lock();
        let rows = tables.values().map(|table| table.rows.rid_end()).sum();
        self.beyond.needed(self.shared.memory.used_bytes(), rows)
    }
}

impl<'scope, 's: 'scope> RedoHandler for Replay<'scope, '_, 's> {
    fn upgrade(
        &mut self,
        database: DatabaseId,
        epoch: Epoch,
        at: &CheckpointRef,
        is_ours: &mut dyn FnMut() -> Result<(), HomeError>,
    ) -> Result<Option<CheckpointRef>, RecoveryError> {
        let csn = at.csn;
        let home = self.home;
        let failed = |source| match source {
            CheckpointError::Home(error) if error.is_disk_full() => {
                RecoveryError::DiskFull(home.describe())
            }
            CheckpointError::Home(error @ HomeError::Fenced(_)) => RecoveryError::Home(error),
            source => RecoveryError::Refused(ReplayError::Page { csn, source }.into()),
        };
        let Some(upgrade) = CheckpointUpgrade::of(home, database, at).map_err(failed)? else {
            return Ok(None);
        };
        self.has_room_for(&upgrade)?;
        let clock = self.clock;
        let mut told = clock.monotonic();
        let progress = |so_far: &UpgradeProgress| {
            let now = clock.monotonic();
            if now.since(told) >= UPGRADE_TOLD {
                told = now;
                tracing::info!(
                    "making a checkpoint of an older format anew: {} of {} bytes, {} rows",
                    so_far.bytes,
                    so_far.bytes_of,
                    so_far.rows
                );
            }
        };
        let upgraded = upgrade.store(epoch, is_ours, progress);
        let upgraded = upgraded.map_err(failed)?;
        self.upgraded_bytes = upgraded.read.bytes;
        tracing::info!(
            "the checkpoint at CSN {csn} was of an older format: made anew, {} rows, {} bytes read, {} written",
            upgraded.read.rows,
            upgraded.read.bytes,
            upgraded.written
        );
        Ok(Some(upgraded.checkpoint))
    }

    fn checkpoint(
        &mut self,
        database: DatabaseId,
        at: &CheckpointRef,
    ) -> Result<(), RecoveryError> {
        self.load(database, at)?;
        Ok(())
    }

    fn redo(&mut self, csn: Csn, bytes: &[u8]) -> Result<(), RecoveryError> {
        let mut records = RecordReader::new(bytes);
        let mut start = 0;
        while let Some(record) = records.next() {
            let record = record.map_err(|source| RecoveryError::Apply {
                csn,
                source: ReplayError::Records { csn, source }.into(),
            })?;
            let part = part_of(record.table(), record.rid(), self.parts);
            let end = records.at();
            self.filling[part].push(csn, &bytes[start..end]);
            start = end;
            if self.filling[part].records.len() >= BATCH_BYTES {
                if self.shared.failed().is_some() {
                    return self.settle();
                }
                if self.threads.is_empty() && self.parts > 1 {
                    self.start_threads()?;
                }
                self.send(part)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        self.settle()?;
        if self.shared.is_full() {
            // The caller of recovery tells it better.
            return Err(RecoveryError::Refused(
                "the memory budget is used up".into(),
            ));
        }
        let mut guard = Guard::pin();
        for table in self.shared.tables.lock().values() {
            table.rows.collect_free_rids(&guard);
            guard.refresh();
        }
        Ok(())
    }
}

/// The lanes' buffers take no more than one part in so many of the memory budget, as far as fewer blocks in flight
/// allow.
const BUFFERS_SHARE: u64 = 16;

impl Engine {
    /// Opens the log at `home`, brings back every table's rows, and begins a new epoch. Indexes are made again by
    /// [`Engine::create_index`] and [`Txn::build_index`](crate::Txn::build_index).
    pub fn open(
        options: EngineOptions,
        home: LogHome,
        env: Env,
    ) -> Result<(Engine, RecoveryReport), OpenError> {
        if options.workers == 0
            || options.workers > usize::from(u16::MAX)
            || options.commit.workers_per_lane == 0
        {
            return Err(OpenError::Options(
                "workers and workers per lane must be at least 1".into(),
            ));
        }
        let tracking = options.commit.tracking;
        if !tracking.is_safe() && !options.commit.may_lose {
            return Err(OpenError::Options(format!(
                "dependency tracking \"{}\" loses acknowledged commits in a crash: it is for comparison in \"logstead bench\" only",
                tracking.name()
            )));
        }
        open(options, home, env)
    }
}

/// Opens the log, replays it, and makes the engine over its new lanes.
pub(crate) fn open(
    mut options: EngineOptions,
    home: LogHome,
    env: Env,
) -> Result<(Engine, RecoveryReport), OpenError> {
    // No two instances share a lane.
    options.commit.instances = options.instances;
    let mut lanes = options.commit.lanes(options.workers);
    let lanes_min = options.commit.lanes_at_first(options.workers);
    let mut lane = LaneConfig {
        buffer_size_bytes: options.commit.lane_buffer_bytes,
        blocks_in_flight_max: Some(options.commit.blocks_in_flight_max),
        allocation_limit: Some(Arc::new(LogAllocationLimit::new(
            options.commit.log_allocation_limit_bytes,
        ))),
    };
    let account = Account::open(options.memory_bytes);
    let memory = account.memory();
    let mut buffers = memory.charge();
    let buffers_of = |lane: &LaneConfig, lanes: usize| {
        lanes.saturating_mul(lane.buffer_bytes_max(&home.capabilities()))
    };
    let share = usize::try_from(options.memory_bytes / BUFFERS_SHARE).unwrap_or(usize::MAX);
    // A small budget is for rows: fewer blocks in flight need fewer buffers.
    while buffers_of(&lane, lanes) > share
        && let Some(blocks @ 2..) = lane.blocks_in_flight_max
    {
        lane.blocks_in_flight_max = Some(blocks - 1);
    }
    // And so do fewer lanes to choose from.
    while buffers_of(&lane, lanes) > share && lanes > lanes_min {
        lanes -= 1;
    }
    let buffer_bytes = buffers_of(&lane, lanes);
    if buffers.set(buffer_bytes).is_err() {
        return Err(OpenError::Options(format!(
            "a memory budget of {} bytes has no room for the buffers of {lanes} lanes, {buffer_bytes} bytes",
            options.memory_bytes
        )));
    }
    let log = recovery::RecoveryOptions {
        lanes: u16::try_from(lanes).map_err(|_| OpenError::Options("too many lanes".into()))?,
        lane,
        accept_data_loss: options.accept_data_loss,
        lease: options.lease.clone(),
    };
    let parts = match options.replay_threads {
        // They wait for pages more than they work.
        0 => core_count().clamp(THREADS_MIN, THREADS_MAX),
        threads => threads.min(THREADS_MAX),
    };
    let shared = ReplayShared::new(&options, memory, true);
    let (recovered, loaded) = std::thread::scope(|scope| {
        let mut replay = Replay {
            scope,
            shared: &shared,
            clock: env.clock.as_ref(),
            parts,
            filling: (0..parts).map(|_| Batch::default()).collect(),
            threads: Vec::new(),
            here: ReplayPartition::new(&shared),
            beyond: MemoryShortfall::default(),
            waited: Duration::ZERO,
            home: &home,
            upgraded_bytes: 0,
        };
        match recovery::open_with(&home, &env, &log, parts > 1, &mut replay) {
            Ok(mut recovered) => {
                recovered.report.took.waited_for_tables = replay.waited;
                recovered.report.upgraded_bytes = replay.upgraded_bytes;
                (
                    recovered.report.tails_kept,
                    recovered.report.tail_bytes_kept,
                ) = shared.tails_kept();
                Ok((
                    recovered,
                    shared.loaded().map(|stored| stored.directory.clone()),
                ))
            }
            Err(RecoveryError::Refused(_)) if shared.is_full() => Err(OpenError::Memory {
                needed_bytes: replay.needed_bytes(),
                budget_bytes: options.memory_bytes,
            }),
            Err(error) => Err(error.into()),
        }
    })?;
    let base = CheckpointBase::open(
        home.clone(),
        recovered.database,
        recovered.epoch,
        recovered.manifest_writer,
        loaded,
    )
    .map_err(|error| RecoveryError::Refused(error.into()))?;
    let engine = Engine::with_lanes(
        &options,
        OpenLog {
            home,
            base,
            lanes: recovered.lanes,
            lease: recovered.lease,
            next: recovered.next_csn,
            database: recovered.database,
            replica_base: None,
            logged: Arc::clone(&shared.logged),
        },
        shared.tables.into_inner(),
        account,
        buffers,
        &env,
    )
    .map_err(|error| {
        OpenError::Options(format!(
            "a thread of the commit path does not start: {error}"
        ))
    })?;
    Ok((engine, recovered.report))
}
