//! A database of one kind of row, for tests: transaction `csn` inserts one row whose bytes follow from its CSN, so
//! survivors can be checked by number alone.

#![allow(dead_code, reason = "each test program uses its part of it")]

pub(crate) mod beside;
pub(crate) mod forge;

use logstead_env::{Env, SimFiles};
use logstead_home::{HomeError, LocalHome, LocalOptions, LogHome, ObjectId};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId, Rid, TableId};
use logstead_wal::TruncationReport;
use logstead_wal::manifest::{CheckpointRef, RedoPoint};
use logstead_wal::recovery::{self, RecoveredLog, RecoveryError, RecoveryOptions, RedoHandler};
use logstead_wal::{
    BlockFeed, EntryDependencies, FlushMode, FlushOutcome, HorizonSource, Lane, LaneConfig,
    RowRecord,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a row; several rows fill a buffer.
pub(crate) const ROW_LEN: usize = 300;

/// One simulated machine.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) files: SimFiles,
    pub(crate) env: Env,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        Machine::of(SimFiles::new(seed), seed)
    }

    fn of(files: SimFiles, seed: u64) -> Machine {
        let (env, _) = Env::simulated(seed);
        let env = Env {
            files: Arc::new(files.clone()),
            ..env
        };
        Machine { files, env }
    }

    /// Another machine with the same disk.
    pub(crate) fn fork(&self, seed: u64) -> Machine {
        Machine::of(self.files.fork(seed), seed)
    }

    pub(crate) fn home(&self) -> Result<LogHome, RecoveryError> {
        let options = LocalOptions {
            segment_size_bytes: 48 * 1024,
            first_segment_size_bytes: 32 * 1024,
            segment_size_bytes_min: 32 * 1024,
            threads: false,
            ..LocalOptions::default()
        };
        Ok(LogHome::from(LocalHome::open("/db", &self.env, options)?))
    }

    /// Starts a server: its log, and the survivors.
    pub(crate) fn start(&self, lanes: u16) -> Result<Server, RecoveryError> {
        self.start_with(RecoveryOptions { lanes, ..options() })
    }

    pub(crate) fn start_with(&self, options: RecoveryOptions) -> Result<Server, RecoveryError> {
        Server::open(self.home()?, &self.env, &options, false)
    }

    pub(crate) fn segment(lane: u16, segment: u64) -> PathBuf {
        PathBuf::from(format!("/db/log/lane-{lane:04}/{segment:012}.seg"))
    }
}

/// Takes survivors, checking their bytes and their order.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) survivors: Vec<u64>,
    pub(crate) checkpoint: Option<CheckpointRef>,
}

impl RedoHandler for Taken {
    fn checkpoint(&mut self, _: DatabaseId, at: &CheckpointRef) -> Result<(), RecoveryError> {
        assert!(self.survivors.is_empty(), "told of the checkpoint first");
        assert!(self.checkpoint.is_none(), "told of it once");
        self.checkpoint = Some(at.clone());
        Ok(())
    }

    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        assert_eq!(records, row_of(csn), "the bytes of {csn:?}");
        let last = self.survivors.last();
        assert!(last.is_none_or(|last| *last < csn.0), "out of order");
        let held = self.checkpoint.as_ref();
        assert!(held.is_none_or(|held| held.csn <= csn), "{csn} is held");
        self.survivors.push(csn.0);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        Ok(())
    }
}

/// A checkpoint that says the same and is stored in another way.
pub(crate) fn renewed(at: &CheckpointRef) -> CheckpointRef {
    CheckpointRef {
        object: ObjectId(at.object.0 | 1 << 31),
        crc: !at.crc,
        ..at.clone()
    }
}

/// Takes survivors behind a checkpoint that is stored anew first, unless it was; and then refuses to load it, if it
/// does.
#[derive(Default)]
pub(crate) struct Renews {
    pub(crate) taken: Taken,
    pub(crate) refuses: bool,
    /// Happens before it looks whether the home is still its own.
    pub(crate) meanwhile: Option<Box<dyn FnOnce()>>,
    /// It is not.
    pub(crate) is_overtaken: bool,
}

impl RedoHandler for Renews {
    fn upgrade(
        &mut self,
        _: DatabaseId,
        epoch: Epoch,
        at: &CheckpointRef,
        is_ours: &mut dyn FnMut() -> Result<(), HomeError>,
    ) -> Result<Option<CheckpointRef>, RecoveryError> {
        if let Some(meanwhile) = self.meanwhile.take() {
            is_ours()?;
            meanwhile();
        }
        let looked = is_ours();
        self.is_overtaken = looked.is_err();
        looked?;
        assert!(self.taken.checkpoint.is_none(), "before anything else");
        assert!(epoch >= at.epoch, "the epoch that wrote last");
        let is_old = at.object.counter() < 1 << 31;
        Ok(is_old.then(|| renewed(at)))
    }

    fn checkpoint(
        &mut self,
        database: DatabaseId,
        at: &CheckpointRef,
    ) -> Result<(), RecoveryError> {
        if self.refuses {
            return Err(RecoveryError::Refused("it does not load".into()));
        }
        self.taken.checkpoint(database, at)
    }

    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        self.taken.redo(csn, records)
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        self.taken.finish()
    }
}

pub(crate) fn options() -> RecoveryOptions {
    RecoveryOptions {
        lanes: 1,
        lane: LaneConfig {
            buffer_size_bytes: 8 * 1024,
            ..LaneConfig::default()
        },
        accept_data_loss: false,
        lease: logstead_wal::lease::LeaseOptions::default(),
    }
}

/// What a test's transactions have told of the horizon.
pub(crate) struct Published(AtomicU64);

impl HorizonSource for Published {
    fn horizon(&self) -> Csn {
        Csn(self.0.load(Ordering::SeqCst))
    }
}

/// A running server's log.
pub(crate) struct Server {
    /// Transactions pushed.
    pushed: Mutex<BTreeSet<u64>>,
    published: Arc<Published>,
    /// Blocks for who follows by a stream.
    pub(crate) feed: Arc<BlockFeed>,
    pub(crate) log: RecoveredLog,
    /// What was handed over.
    pub(crate) survivors: Vec<u64>,
    pub(crate) home: LogHome,
}

impl Server {
    pub(crate) fn open(
        home: LogHome,
        env: &Env,
        options: &RecoveryOptions,
        ahead: bool,
    ) -> Result<Server, RecoveryError> {
        let mut taken = Taken::default();
        let log = recovery::open_with(&home, env, options, ahead, &mut taken)?;
        assert_eq!(taken.checkpoint, log.manifest_writer.manifest().checkpoint);
        let held = taken.checkpoint.map_or(Csn::ZERO, |held| held.csn);
        assert_eq!(held, log.report.checkpoint);
        let published = Arc::new(Published(AtomicU64::new(log.next_csn.0)));
        let feed = Arc::new(BlockFeed::default());
        for lane in &log.lanes {
            lane.set_horizon_source(published.clone());
            lane.set_feed(Arc::clone(&feed));
        }
        Ok(Server {
            pushed: Mutex::default(),
            published,
            feed,
            log,
            survivors: taken.survivors,
            home,
        })
    }

    /// What its transactions have told of the horizon.
    pub(crate) fn published_horizon(&self) -> Csn {
        self.published.horizon()
    }

    /// The starts of all lanes.
    pub(crate) fn starts(&self) -> Vec<RedoPoint> {
        self.log.lanes.iter().map(Lane::log_start).collect()
    }

    /// A checkpoint of everything below `csn`.
    pub(crate) fn checkpoint_at(&self, csn: u64, starts: Vec<RedoPoint>) -> CheckpointRef {
        CheckpointRef {
            object: ObjectId(u64::from(self.log.epoch.get()) << 32 | csn),
            crc: csn as u32,
            csn: Csn(csn),
            epoch: self.log.epoch,
            starts,
        }
    }

    /// Names it in the manifest.
    pub(crate) fn publish(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        let manifest_writer = &self.log.manifest_writer;
        manifest_writer.update(|manifest| manifest.set_checkpoint(checkpoint.clone()))
    }

    /// Publishes a checkpoint of everything below `csn`, the next one to draw, all of it durable, and removes what it
    /// makes superfluous.
    pub(crate) fn checkpoint(&self, csn: u64) -> Result<TruncationReport, HomeError> {
        self.publish(self.checkpoint_at(csn, self.starts()))?;
        self.log.manifest_writer.truncate(None)
    }

    /// Numbers of a lane's segments.
    pub(crate) fn segments(&self, lane: u16) -> Vec<u64> {
        let infos = self
            .home
            .segments
            .list_segments(LaneId(lane))
            .expect("lists");
        infos.iter().map(|info| info.segment).collect()
    }

    pub(crate) fn lane(&self, lane: u16) -> &Lane {
        &self.log.lanes[usize::from(lane)]
    }

    /// Transaction `csn` in `lane`, not flushed, depending on everything before it.
    pub(crate) fn push(&self, lane: u16, csn: u64) -> bool {
        self.push_with(lane, csn, &EntryDependencies::floor(Csn(csn - 1)))
    }

    pub(crate) fn push_with(&self, lane: u16, csn: u64, deps: &EntryDependencies) -> bool {
        let records = row_of(Csn(csn));
        let Ok(room) = self.lane(lane).room(records.len()) else {
            return false;
        };
        self.lane(lane).push(room, Csn(csn), 0, deps, &records);
        self.pushed.lock().unwrap().insert(csn);
        true
    }

    /// Transaction `csn` with its records in a side segment, at a home that stores one at once.
    pub(crate) fn push_side(&self, lane: u16, csn: u64, deps: &EntryDependencies) -> bool {
        let stored = Arc::new(std::sync::Mutex::new(None));
        let told = Arc::clone(&stored);
        let mut side = self.lane(lane).begin_side_segment().unwrap();
        side.append(row_of(Csn(csn)));
        side.finish(Box::new(move |result| *told.lock().unwrap() = Some(result)));
        let stored = stored.lock().unwrap().take().expect("told at once");
        let (Ok(side), Ok(room)) = (stored, self.lane(lane).room(0)) else {
            return false;
        };
        self.lane(lane).push_side(room, Csn(csn), 0, deps, &side);
        self.pushed.lock().unwrap().insert(csn);
        true
    }

    pub(crate) fn flush(&self, lane: u16) -> bool {
        let outcome = self.lane(lane).flush(FlushMode::Inline);
        self.tell_horizon();
        matches!(outcome, FlushOutcome::Durable | FlushOutcome::Clean)
    }

    /// Tells the lanes the horizon, as far as the transactions pushed have left no gap.
    pub(crate) fn tell_horizon(&self) {
        let pushed = self.pushed.lock().unwrap();
        let mut counter = self.log.next_csn.0;
        while pushed.contains(&counter) {
            counter += 1;
        }
        let horizon = self.horizon(counter);
        self.published.0.fetch_max(horizon, Ordering::SeqCst);
    }

    pub(crate) fn commit(&self, lane: u16, csn: u64) -> bool {
        self.push(lane, csn) && self.flush(lane)
    }

    /// Every CSN below this one is durable.
    pub(crate) fn horizon(&self, counter: u64) -> u64 {
        self.log
            .lanes
            .iter()
            .map(|lane| lane.first_not_durable().get())
            .fold(counter, u64::min)
    }
}

/// The records of transaction `csn`.
pub(crate) fn row_of(csn: Csn) -> Vec<u8> {
    let row: Vec<u8> = (0..ROW_LEN)
        .map(|index| (csn.get() as usize * 31 + index) as u8)
        .collect();
    let mut records = Vec::new();
    RowRecord::Insert {
        table: TableId(20_000),
        rid: Rid(csn.get()),
        row: &row,
    }
    .encode(&mut records);
    records
}

pub(crate) fn lane(lane: u16) -> LaneId {
    LaneId(lane)
}
