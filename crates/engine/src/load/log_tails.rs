//! What the log behind the newest checkpoint says of chunks that left memory with it, read again from the server's own
//! home, where no page service answers.
//!
//! One thread reads the log for all who wait: from the newest checkpoint's starts up to the horizon. It keeps the
//! records of the chunks that were asked for, and of some behind them that are away as well, for who asks next, as long
//! as these take little. Who comes meanwhile waits for the next reading.
//!
//! # Why a tail is all that the log says of its chunk
//!
//! 1. The reader is a [`Follower`] of the log, which hands over every entry that survives, once, in CSN order, from the
//!    checkpoint at `S` that the manifest names, up to a horizon. Here that is the server's own, read before the lanes
//!    are (the follower's rule): `H`, at or above the read point of each chunk that was asked for before.
//! 2. So the tail has all records of the chunk from `S` to its read point. It has no others: the chunk has been away
//!    since, or its note is gone, and then what was read is put nowhere ([`crate::logged_chunks`], L2).
//! 3. Over the pages of the checkpoint at `S` it is the chunk. A tail is only given to who reads these: where another
//!    checkpoint is the newest by then, the caller looks again, and that one has the chunk, or the log behind it does.
//! 4. The log behind the newest checkpoint's starts is not removed (T8). If a newer one is published while it is read,
//!    it may be: then the reading fails, or finds that it began elsewhere, and is repeated.
//!
//! Does not: put tails over pages ([`super::logged`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use logstead_commit::CommitPath;
use logstead_home::LogHome;
use logstead_types::{Csn, Epoch, TableId};
use logstead_wal::recovery::RecoveryError;
use logstead_wal::recovery::follow::{FollowError, Follower};
use logstead_wal::{RecordReader, RowRecord};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::chunk_tail::ChunkTail;
use crate::fault_error::FaultError;
use crate::logged_chunks::LoggedChunk;
use crate::memory::Memory;
use crate::rows::TableRows;
use crate::version::CHUNK_SLOTS;

/// Chunks behind one that is asked for that are looked for as well, at most, and how much of the memory they take.
const BESIDE_MAX: usize = 4096;
const BESIDE_PART: u64 = 16;
const BESIDE_BYTES_MIN: u64 = 256 << 10;
/// How often the log is begun anew because a checkpoint was published meanwhile.
const TRIES: usize = 20;
/// Rounds of one reading: the first goes through earlier epochs, the next ones up to the horizon.
const ROUNDS: usize = 64;

type Key = (TableId, u64);

/// Chunks that somebody waits for, with those behind each.
type Wanted = BTreeMap<Key, (Arc<LoggedChunk>, Vec<(u64, Arc<LoggedChunk>)>)>;

/// Takes the records of an entry.
type TakeRecords<'a> = dyn FnMut(Csn, &[u8]) -> Result<(), RecoveryError> + 'a;

/// A tail, and what it belongs to.
#[derive(Clone)]
pub(crate) struct LogTail {
    pub(crate) tail: Arc<ChunkTail>,
    /// It is of the log behind the checkpoint at this CSN.
    pub(crate) since: Csn,
}

#[derive(Default)]
struct State {
    /// Asked for and not looked for yet, with what is behind each.
    wanted: Wanted,
    is_reading: bool,
    /// Of the last reading.
    found: BTreeMap<Key, (Arc<LoggedChunk>, LogTail)>,
}

/// Reads the log for chunks that only it has.
pub(crate) struct LogTails {
    home: LogHome,
    path: Arc<CommitPath>,
    epoch: Epoch,
    memory: &'static Memory,
    state: Mutex<State>,
    read: Condvar,
    readings: AtomicU64,
    /// Those that have found something.
    fruitful: AtomicU64,
}

/// An entry's records are not what they should be.
fn unfit(csn: Csn, source: Box<dyn std::error::Error + Send + Sync>) -> RecoveryError {
    RecoveryError::Apply { csn, source }
}

/// As who wants a chunk is told.
fn told(error: &FollowError) -> FaultError {
    let what = format!("the log, for what only it has of a chunk: {error}");
    match error {
        // Another server may have taken over.
        FollowError::Log(RecoveryError::Home(_) | RecoveryError::Refused(_))
        | FollowError::Removed { .. }
        | FollowError::Replaced(_) => FaultError::Unreachable(what),
        _ => FaultError::Damaged(what),
    }
}

/// Tails that are being collected.
struct Collecting {
    memory: &'static Memory,
    /// Those that were asked for, and others.
    tails: HashMap<Key, ChunkTail, FixedState>,
    beside: BTreeMap<Key, u64>,
    beside_bytes: u64,
    beside_max: u64,
}

impl Collecting {
    fn push(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        for record in RecordReader::new(records) {
            let record = record.map_err(|error| unfit(csn, error.into()))?;
            let key = (record.table(), record.rid().0 / CHUNK_SLOTS as u64);
            let Some(tail) = self.tails.get_mut(&key) else {
                continue;
            };
            let pushed = tail.push(csn, &record);
            pushed.map_err(|why| unfit(csn, format!("row {}: {}", why.rid, why.source).into()))?;
            let bytes = tail.memory_bytes();
            if let Some(before) = self.beside.get_mut(&key) {
                self.beside_bytes = self.beside_bytes - *before + bytes;
                *before = bytes;
                self.drop_beside();
            }
        }
        Ok(())
    }

    /// What nobody waits for takes no more than it may: the last go.
    fn drop_beside(&mut self) {
        while self.beside_bytes > self.beside_max
            && let Some((key, bytes)) = self.beside.pop_last()
        {
            self.beside_bytes -= bytes;
            self.tails.remove(&key);
        }
    }
}

impl LogTails {
    pub(crate) fn new(
        home: LogHome,
        path: Arc<CommitPath>,
        epoch: Epoch,
        memory: &'static Memory,
    ) -> LogTails {
        LogTails {
            home,
            path,
            epoch,
            memory,
            state: Mutex::default(),
            read: Condvar::new(),
            readings: AtomicU64::new(0),
            fruitful: AtomicU64::new(0),
        }
    }

    /// How often the log was read.
    pub(crate) fn readings(&self) -> u64 {
        self.readings.load(Ordering::Relaxed)
    }

    /// How often it had something of the chunks that it was read for.
    pub(crate) fn fruitful_readings(&self) -> u64 {
        self.fruitful.load(Ordering::Relaxed)
    }

    fn count_fruitful(&self, has_found: bool) {
        if has_found {
            self.fruitful.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Everything below it is durable.
    pub(crate) fn horizon(&self) -> Csn {
        self.path.csns().get()
    }

    /// What was read for nobody is not kept any longer.
    pub(crate) fn release(&self) {
        self.state.lock().found.clear();
    }

    /// What the log behind the newest checkpoint says of a chunk that only it has. Blocks.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn tail(
        &self,
        rows: &TableRows,
        number: u64,
        chunk: &Arc<LoggedChunk>,
    ) -> Result<LogTail, FaultError> {
        let key = (rows.table, number);
        let mut state = self.state.lock();
        loop {
            if let Some((noted, found)) = state.found.get(&key)
                && Arc::ptr_eq(noted, chunk)
            {
                let found = found.clone();
                // Who needs it again, because a checkpoint was published meanwhile, needs that one's.
                state.found.remove(&key);
                return Ok(found);
            }
            state
                .wanted
                .entry(key)
                .or_insert_with(|| (Arc::clone(chunk), rows.logged.after(number, BESIDE_MAX)))
                .0 = Arc::clone(chunk);
            if state.is_reading {
                self.read.wait(&mut state);
                continue;
            }
            let wanted = std::mem::take(&mut state.wanted);
            state.found.clear();
            state.is_reading = true;
            let read = MutexGuard::unlocked(&mut state, || self.read_for(wanted));
            state.is_reading = false;
            // Those whose reading has failed try themselves, one after the other.
            self.read.notify_all();
            state.found = read?;
        }
    }

    fn read_for(
        &self,
        wanted: Wanted,
    ) -> Result<BTreeMap<Key, (Arc<LoggedChunk>, LogTail)>, FaultError> {
        let mut chunks: BTreeMap<Key, Arc<LoggedChunk>> = BTreeMap::new();
        let mut beside: BTreeMap<Key, u64> = BTreeMap::new();
        for ((table, _), (_, behind)) in &wanted {
            for (number, chunk) in behind {
                chunks.insert((*table, *number), Arc::clone(chunk));
                beside.insert((*table, *number), 0);
            }
        }
        for (key, (chunk, _)) in wanted {
            chunks.insert(key, chunk);
            beside.remove(&key);
        }
        let budget = self.memory.budget_bytes();
        let mut tries = 0;
        loop {
            let collecting = Collecting {
                memory: self.memory,
                tails: HashMap::default(),
                beside: beside.clone(),
                beside_bytes: 0,
                beside_max: (budget / BESIDE_PART).max(BESIDE_BYTES_MIN),
            };
            tries += 1;
            match self.read_log(&chunks, collecting) {
                Ok((since, mut tails)) => {
                    let found = chunks.into_iter().filter_map(|(key, chunk)| {
                        let tail = Arc::new(tails.remove(&key)?);
                        Some((key, (chunk, LogTail { tail, since })))
                    });
                    return Ok(found.collect());
                }
                // A checkpoint was published meanwhile.
                Err(FollowError::Removed { .. }) if tries < TRIES => {}
                Err(error) => return Err(told(&error)),
            }
        }
    }

    /// Reads the log once for tails. Gives the CSN of the checkpoint that it began behind.
    fn read_log(
        &self,
        chunks: &BTreeMap<Key, Arc<LoggedChunk>>,
        mut collecting: Collecting,
    ) -> Result<(Csn, HashMap<Key, ChunkTail, FixedState>), FollowError> {
        for key in chunks.keys() {
            let tail = ChunkTail::new(collecting.memory);
            collecting.tails.insert(*key, tail);
        }
        let since = self.read_records(&mut |csn, records| collecting.push(csn, records))?;
        let mut tails = collecting.tails.values();
        self.count_fruitful(tails.any(|tail| !tail.touched().is_empty()));
        Ok((since, collecting.tails))
    }

    /// Calls `record` with each record that the log behind the newest checkpoint has of some chunks of a table. Nobody
    /// publishes a checkpoint meanwhile.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn each_record(
        &self,
        table: TableId,
        chunks: &BTreeMap<u64, Arc<LoggedChunk>>,
        mut record: impl FnMut(&RowRecord<'_>),
    ) -> Result<(), FaultError> {
        let mut has_found = false;
        let read = self.read_records(&mut |csn, records| {
            for found in RecordReader::new(records) {
                let found = found.map_err(|error| unfit(csn, error.into()))?;
                let number = found.rid().0 / CHUNK_SLOTS as u64;
                if found.table() == table && chunks.contains_key(&number) {
                    has_found = true;
                    record(&found);
                }
            }
            Ok(())
        });
        read.map_err(|error| told(&error))?;
        self.count_fruitful(has_found);
        Ok(())
    }

    /// Reads the log once. Gives the CSN of the checkpoint that it began behind.
    fn read_records(&self, take: &mut TakeRecords<'_>) -> Result<Csn, FollowError> {
        self.readings.fetch_add(1, Ordering::Relaxed);
        // Before any lane is read: see above.
        let horizon = self.horizon();
        let mut follower = Follower::open(&self.home)?;
        let since = follower.begin().map_or(Csn::ZERO, |begin| begin.csn);
        for _ in 0..ROUNDS {
            follower.learn(self.epoch, horizon);
            let progress = follower.round(&mut |csn, records| Ok(take(csn, records)?))?;
            if progress.epoch == self.epoch && progress.next >= horizon {
                return Ok(since);
            }
            if progress.epoch > self.epoch {
                break;
            }
        }
        let what = "the server's own log ends before its horizon";
        Err(RecoveryError::Refused(what.into()).into())
    }
}
