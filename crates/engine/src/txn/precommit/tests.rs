//! What others see of a transaction that commits, at every point of the way: a scheduler takes the turn wherever
//! threads can meet (see `interleave`), over the code that ships.
#![expect(
    clippy::disallowed_methods,
    reason = "a lock that is waited for needs real threads, and that nothing happens meanwhile takes time"
)]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, Rid, TableId, WorkerId};
use logstead_wal::RoomRequest;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};

use crate::tree::interleave::set_hook;
use crate::txn::{Isolation, Txn};
use crate::version::Guard;
use crate::{CommitOptions, Engine, EngineOptions, ExpectPresent, RowBuilder, Table};

fn row(value: u8) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 1);
    builder.push(Some(&[value]));
    builder.finish().to_vec()
}

/// Two rows that hold the same value in every state that anybody may see.
#[derive(Clone)]
struct Pair {
    engine: Engine,
    table: Arc<Table>,
    rids: [Rid; 2],
}

impl Pair {
    fn new(workers: usize, workers_per_lane: usize) -> Pair {
        let options = EngineOptions {
            workers,
            commit: CommitOptions {
                workers_per_lane,
                lane_buffer_bytes: 64 << 10,
                log_allocation_limit_csns: 64,
                ..CommitOptions::default()
            },
            ..EngineOptions::default()
        };
        let home = Arc::new(MemoryHome::new(1 << 20));
        let (engine, _) =
            Engine::open(options, LogHome::from(home), Env::simulated(1).0).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let rids = [0, 0].map(|value| txn.insert(&table, &row(value)).expect("inserts"));
        txn.try_precommit().expect("room");
        Pair {
            engine,
            table,
            rids,
        }
    }

    fn read(&self, txn: &mut Txn, rid: Rid) -> (u8, crate::VersionId) {
        let guard = Guard::pin();
        let row = txn.read(&self.table, rid, &guard).expect_present();
        let row = row.expect("is there");
        (row.bytes.column(0).expect("not null")[0], row.version)
    }

    /// Writes `value` into both.
    fn write(&self, txn: &mut Txn, value: u8) {
        for rid in self.rids {
            txn.begin_statement();
            let (_, version) = self.read(txn, rid);
            let update = txn.update(&self.table, rid, version, &row(value));
            update.expect("nobody else writes");
        }
    }

    /// Reads both under one snapshot.
    fn values(&self, txn: &mut Txn) -> [u8; 2] {
        txn.snapshot();
        self.rids.map(|rid| {
            thread::yield_now();
            self.read(txn, rid).0
        })
    }
}

/// A writer commits while somebody takes snapshots and reads: both rows are old or both are new, under every snapshot,
/// and what was new once is not old again.
fn read_beside_a_commit(isolation: Isolation) {
    let mut config = Config::default();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::None;
    let runner = Runner::new(RandomScheduler::new_from_seed(4, 400), config);
    runner.run(move || {
        set_hook(None);
        let pair = Pair::new(3, 1);
        set_hook(Some(thread::yield_now));
        let writer = {
            let pair = pair.clone();
            thread::spawn(move || {
                let worker = pair.engine.worker(WorkerId(1));
                let mut txn = worker.begin(isolation);
                pair.write(&mut txn, 1);
                txn.try_precommit().expect("room");
            })
        };
        let reader = {
            let pair = pair.clone();
            thread::spawn(move || {
                let worker = pair.engine.worker(WorkerId(2));
                let mut last = 0;
                for _ in 0..4 {
                    let mut txn = worker.begin(Isolation::RepeatableRead);
                    let [one, other] = pair.values(&mut txn);
                    assert_eq!(one, other, "half of a transaction");
                    assert!(one >= last, "a snapshot loses what an older one has seen");
                    last = one;
                }
            })
        };
        writer.join().expect("commits");
        reader.join().expect("reads");
        set_hook(None);
    });
}

/// T4: Committing comes before the draw, or who has a snapshot above the CSN takes one row for running and the other
/// for committed.
#[test]
fn t4_no_snapshot_sees_half_of_a_transaction() {
    read_beside_a_commit(Isolation::ReadCommitted);
}

/// T4: the same where the certifier's mutex is held.
#[test]
fn t4_no_snapshot_sees_half_of_a_serializable_transaction() {
    read_beside_a_commit(Isolation::Serializable);
}

/// Somebody has its room, and then somebody else the lane.
static HAS_ROOM: Barrier = Barrier::new(2);
static LANE_IS_TAKEN: Barrier = Barrier::new(2);

/// The first point of a commit is behind the taking of room, which needs the lane's lock, too.
fn meet() {
    set_hook(None);
    HAS_ROOM.wait();
    LANE_IS_TAKEN.wait();
}

/// T12: who waits for its lane's lock has not drawn, is not Committing, and holds nobody's horizon. Somebody has that
/// lock here, as a thread that has lost the processor would.
#[test]
fn t12_who_waits_for_its_lane_holds_nobody_s_horizon() {
    for isolation in [Isolation::ReadCommitted, Isolation::Serializable] {
        let pair = Pair::new(3, 3);
        let path = pair.engine.commit_path();
        let asked = &mut RoomRequest::default();
        let place = path.room(WorkerId(0), 10, asked).expect("room");
        let counter = path.csns().counter();
        let other = {
            let pair = pair.clone();
            std::thread::spawn(move || {
                let worker = pair.engine.worker(WorkerId(1));
                let mut txn = worker.begin(isolation);
                pair.write(&mut txn, 1);
                set_hook(Some(meet));
                txn.try_precommit().expect("room");
            })
        };
        HAS_ROOM.wait();
        let entrance = path.enter(place, &mut path.new_dependency_set());
        LANE_IS_TAKEN.wait();
        // However long it waits, nothing of this changes.
        std::thread::sleep(Duration::from_millis(30));
        assert!(!other.is_finished(), "it waits for the lane");
        assert_eq!(path.csns().counter(), counter, "it has drawn");
        assert!(!path.csns().is_reserved(WorkerId(1)));
        // Nor does it hold the certifier's mutex: others begin, read and end.
        let (tell, told) = std::sync::mpsc::channel();
        let third = {
            let pair = pair.clone();
            std::thread::spawn(move || {
                let worker = pair.engine.worker(WorkerId(2));
                let mut txn = worker.begin(Isolation::Serializable);
                txn.snapshot();
                drop(txn);
                tell.send(()).expect("somebody waits");
            })
        };
        let begun = told.recv_timeout(Duration::from_secs(60));
        begun.expect("SERIALIZABLE transactions wait for a lane that is not theirs");
        third.join().expect("begins and ends");
        // Who reads its rows waits for nobody: they are old.
        let worker = pair.engine.worker(WorkerId(2));
        let mut reader = worker.begin(Isolation::RepeatableRead);
        reader.snapshot();
        assert_eq!(pair.rids.map(|rid| pair.read(&mut reader, rid).0), [0, 0]);
        drop(entrance);
        other.join().expect("commits");
        assert_eq!(path.csns().counter(), Csn(counter.0 + 1));
    }
}
