//! A database of one kind of row, for tests: transaction `csn` inserts one row whose bytes follow from its CSN, so
//! survivors can be checked by number alone.

#![allow(dead_code, reason = "each test program uses its part of it")]

pub(crate) mod forge;

use logstead_env::{Env, SimFiles};
use logstead_home::{LocalHome, LocalOptions, LogHome};
use logstead_types::{Csn, LaneId, Rid, TableId};
use logstead_wal::recovery::{self, Options, Recovered, RecoveryError};
use logstead_wal::{Deps, FlushMode, FlushOutcome, Lane, LaneConfig, Record};
use std::path::PathBuf;
use std::sync::Arc;

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

    pub(crate) fn home(&self) -> Result<Arc<dyn LogHome>, RecoveryError> {
        let options = LocalOptions {
            segment_size_bytes: 48 * 1024,
            first_segment_size_bytes: 32 * 1024,
            segment_size_bytes_min: 32 * 1024,
            threads: false,
            ..LocalOptions::default()
        };
        Ok(Arc::new(LocalHome::open("/db", &self.env, options)?))
    }

    /// Starts a server: its log, and the survivors.
    pub(crate) fn start(&self, lanes: u16) -> Result<Server, RecoveryError> {
        self.start_with(Options { lanes, ..options() })
    }

    pub(crate) fn start_with(&self, options: Options) -> Result<Server, RecoveryError> {
        let home = self.home()?;
        let mut survivors = Vec::new();
        let log = recovery::open(&home, &self.env, &options, &mut |csn, records| {
            assert_eq!(records, row_of(csn), "the bytes of {csn:?}");
            survivors.push(csn.get());
            Ok(())
        })?;
        Ok(Server {
            log,
            survivors,
            home,
        })
    }

    pub(crate) fn segment(lane: u16, segment: u64) -> PathBuf {
        PathBuf::from(format!("/db/log/lane-{lane:04}/{segment:012}.seg"))
    }
}

pub(crate) fn options() -> Options {
    Options {
        lanes: 1,
        lane: LaneConfig {
            buffer_size_bytes: 8 * 1024,
            ..LaneConfig::default()
        },
        accept_data_loss: false,
        lease: logstead_wal::lease::LeaseOptions::default(),
    }
}

/// A running server's log.
pub(crate) struct Server {
    pub(crate) log: Recovered,
    pub(crate) survivors: Vec<u64>,
    pub(crate) home: Arc<dyn LogHome>,
}

impl Server {
    pub(crate) fn lane(&self, lane: u16) -> &Lane {
        &self.log.lanes[usize::from(lane)]
    }

    /// Transaction `csn` in `lane`, not flushed, depending on everything before it.
    pub(crate) fn push(&self, lane: u16, csn: u64) -> bool {
        self.push_with(lane, csn, &Deps::floor(Csn(csn - 1)))
    }

    pub(crate) fn push_with(&self, lane: u16, csn: u64, deps: &Deps) -> bool {
        let records = row_of(Csn(csn));
        let Ok(room) = self.lane(lane).room(records.len()) else {
            return false;
        };
        self.lane(lane).push(room, Csn(csn), 0, deps, &records);
        true
    }

    pub(crate) fn flush(&self, lane: u16) -> bool {
        matches!(
            self.lane(lane).flush(FlushMode::Inline),
            FlushOutcome::Durable | FlushOutcome::Clean
        )
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
    Record::Insert {
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
