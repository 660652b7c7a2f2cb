//! A life of a server, and what its one session does: rows that no compression makes fewer, a third of them so large
//! that their transactions' records go into side segments.

use std::collections::BTreeMap;
use std::sync::Arc;

use logstead_engine::{
    CheckpointError, CheckpointReport, CommitError, CommitOptions, Engine, EngineOptions, Env,
    ExpectPresent, Guard, Isolation, LeaseOptions, LogHome, RowBuilder, ScanCursor, Table,
    WorkerLoop,
};
use logstead_types::{Rid, TableId, WorkerId};

const TABLE: TableId = TableId(20_000);
pub(crate) const SEGMENT_BYTES_MAX: u64 = 128 << 10;
/// The records of a transaction with such a row go into a side segment.
const LARGE_BYTES: u64 = 40_000;

pub(crate) type Rows = BTreeMap<Rid, Vec<u8>>;

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % below
    }

    /// Bytes that no compression makes fewer.
    fn noise(&mut self, bytes: u64) -> Vec<u8> {
        (0..bytes).map(|_| self.roll(256) as u8).collect()
    }

    fn row(&mut self, large: bool) -> Vec<u8> {
        let bytes = if large { LARGE_BYTES } else { 200 };
        let mut row = RowBuilder::new();
        row.start(1, 1);
        row.push(Some(&self.noise(bytes)));
        row.finish().to_vec()
    }
}

/// A life of the server.
pub(crate) struct Life {
    pub(crate) engine: Engine,
    worker_loop: WorkerLoop,
    table: Arc<Table>,
}

impl Life {
    /// An error says why there is none.
    pub(crate) fn open(home: LogHome, env: &Env, lease: LeaseOptions) -> Result<Life, String> {
        let options = EngineOptions {
            workers: 1,
            commit: CommitOptions {
                lane_buffer_bytes: 16 << 10,
                ..CommitOptions::default()
            },
            lease,
            ..EngineOptions::default()
        };
        let opened = Engine::open(options, home, env.clone());
        let (engine, _) = opened.map_err(|error| error.to_string())?;
        engine
            .bring_all(|| true)
            .map_err(|error| error.to_string())?;
        Ok(Life {
            table: engine.create_table(TABLE),
            worker_loop: WorkerLoop::new(&engine, WorkerId(0)),
            engine,
        })
    }

    pub(crate) fn rows(&self) -> Rows {
        let mut txn = self.worker_loop.worker().begin(Isolation::ReadCommitted);
        let mut rows = Rows::new();
        let guard = Guard::pin();
        let mut cursor = ScanCursor::new(&self.table);
        while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
            rows.insert(row.rid, row.bytes.bytes().to_vec());
        }
        rows
    }

    /// One transaction; false if it was refused for want of room, and nothing came of it.
    pub(crate) fn transact(&self, rows: &mut Rows, dice: &mut Dice, written: &mut u64) -> bool {
        let mut txn = self.worker_loop.worker().begin(Isolation::ReadCommitted);
        let (mut next, mut bytes) = (rows.clone(), 0);
        for _ in 0..1 + dice.roll(3) {
            txn.begin_statement();
            let large = dice.roll(3) == 0;
            let some = dice.roll(next.len() as u64 + 1) as usize;
            let some = next.keys().nth(some).copied();
            let what = if next.len() > 40 { 9 } else { dice.roll(10) };
            match (some, what) {
                (Some(rid), 6..) => {
                    let guard = Guard::pin();
                    let found = txn.read(&self.table, rid, &guard).expect_present();
                    let version = found.expect("a row").version;
                    if what == 9 {
                        txn.delete(&self.table, rid, version).expect("nobody else");
                        next.remove(&rid);
                    } else {
                        let row = dice.row(large);
                        bytes += row.len() as u64;
                        txn.update(&self.table, rid, version, &row)
                            .expect("nobody else");
                        next.insert(rid, row);
                    }
                }
                _ => {
                    let row = dice.row(large);
                    bytes += row.len() as u64;
                    let rid = txn.insert(&self.table, &row).expect("there is memory");
                    next.insert(rid, row);
                }
            }
        }
        let done = self.worker_loop.block_on(txn.commit());
        self.worker_loop.worker().collect_garbage(100);
        match done {
            Ok(_) => {
                *rows = next;
                *written += bytes + 2_000;
                true
            }
            Err(CommitError::DiskFull) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// A large row more; false if it was refused.
    pub(crate) fn insert(&self, rows: &mut Rows, dice: &mut Dice, written: &mut u64) -> bool {
        let mut txn = self.worker_loop.worker().begin(Isolation::ReadCommitted);
        let row = dice.row(true);
        let rid = txn.insert(&self.table, &row).expect("there is memory");
        match self.worker_loop.block_on(txn.commit()) {
            Ok(_) => {
                *written += row.len() as u64 + 2_000;
                rows.insert(rid, row);
                true
            }
            Err(CommitError::DiskFull) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// A transaction is given an id; false if that was refused.
    pub(crate) fn assign_xid(&self) -> bool {
        match self
            .worker_loop
            .block_on(self.worker_loop.worker().assign_xid())
        {
            Ok(_) => true,
            Err(CommitError::DiskFull) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// A row is deleted, by itself.
    pub(crate) fn delete(&self, rows: &mut Rows, rid: Rid) {
        let mut txn = self.worker_loop.worker().begin(Isolation::ReadCommitted);
        let guard = Guard::pin();
        let found = txn.read(&self.table, rid, &guard).expect_present();
        let version = found.expect("a row").version;
        txn.delete(&self.table, rid, version).expect("nobody else");
        drop(guard);
        let done = self.worker_loop.block_on(txn.commit());
        done.unwrap_or_else(|error| panic!("room is kept for what is removed: {error}"));
        rows.remove(&rid);
    }

    /// A checkpoint; none if there is no room for it.
    pub(crate) fn checkpoint(&self) -> Option<CheckpointReport> {
        match self.engine.checkpoint() {
            Ok(report) => {
                assert!(report.collection_failed.is_none(), "{report:?}");
                Some(report)
            }
            Err(CheckpointError::DiskFull(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }
}
