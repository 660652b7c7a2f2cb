//! Checkpoints of the primary that a replica adopts, and what its memory keeps then.

use std::sync::Arc;

use logstead_engine::Evictor;
use logstead_env::{Clock, SimClock};
use logstead_home::{HomeError, MemoryHome, NamedValues, ObjectId, Tag};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest;
use parking_lot::Mutex;

use super::*;

const ACCOUNTS: i64 = 200;
/// Chunks of 64 rows.
const CHUNKS: u64 = 4;

/// A primary over a home in memory, and a replica beside it.
struct Pair<'h> {
    world: World,
    worker: Worker,
    home: &'h LogHome,
    replica: Replica<'h>,
    session: Worker,
    table: Arc<Table>,
}

fn home_and_world() -> (LogHome, World, Worker) {
    let (world, worker) = World::with_accounts(1, ACCOUNTS);
    world.engine.checkpoint().expect("taken");
    (LogHome::from(world.home.clone()), world, worker)
}

impl<'h> Pair<'h> {
    /// The replica has all rows, and has adopted a checkpoint.
    fn new(home: &'h LogHome, world: World, worker: Worker) -> Pair<'h> {
        let (env, _) = Env::simulated(2);
        // One more worker, for whoever reads beside.
        let options = EngineOptions {
            workers: 2,
            ..options(u64::MAX)
        };
        let replica = Replica::open(options, home, env).expect("opens");
        replica.engine().set_replica_wait(Duration::ZERO);
        let session = replica.engine().worker(WorkerId(0));
        let (table, _, _) = restore(replica.engine(), &session);
        replica.engine().bring_all(|| true).expect("brought in");
        let mut pair = Pair {
            world,
            worker,
            home,
            replica,
            session,
            table,
        };
        pair.add(1, 1);
        pair.checkpoint();
        pair.follow();
        pair
    }

    fn write(&self, change: impl FnOnce(&mut Txn, &World)) {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        change(&mut txn, &self.world);
        commit(txn);
        self.worker.flush(FlushMode::Inline);
    }

    fn add(&self, k: i64, more: i64) {
        self.write(|txn, world| world.update(txn, k, |n| n + more).expect("updates"));
    }

    fn delete(&self, k: i64) {
        self.write(|txn, world| {
            let guard = Guard::pin();
            let found = txn.get(&world.by_key, &key(k), &guard).expect("is there");
            let found = found.expect("it exists");
            let (rid, version) = (found.rid, found.version);
            txn.delete(&world.table, rid, version).expect("deletes");
        });
    }

    /// The object that the manifest names then.
    fn checkpoint(&self) -> ObjectId {
        assert!(self.world.engine.checkpoint().expect("taken").written);
        let manifest = manifest_of(self.home).expect("there is one");
        manifest.checkpoint.expect("it was published").object
    }

    /// The replica applies everything, adopts what there is, and lets garbage go.
    fn follow(&mut self) {
        let (epoch, next) = (self.world.engine.epoch(), self.world.engine.next_csn());
        self.replica.learn(epoch, next);
        self.replica.round(&mut |_| {}).expect("follows");
        assert_eq!(self.replica.engine().next_csn(), next);
        // It tells which snapshots it has.
        self.session.collect_garbage(1);
        while self.replica.worker().collect_garbage(1_000) {}
    }

    /// Rows that an eviction lets go, and chunks of which nothing is left.
    fn evict(&self) -> (u64, u64) {
        let engine = self.replica.engine();
        let before = engine.eviction_stats();
        engine.evict_all();
        let after = engine.eviction_stats();
        (
            after.rows_evicted - before.rows_evicted,
            after.chunks_evicted - before.chunks_evicted,
        )
    }

    fn check(&self, sum: i64, count: usize) {
        let mut txn = self.session.begin(Isolation::ReadCommitted);
        let found = scanned(&mut txn, &self.table).expect("reads");
        assert_eq!((found.values().sum::<i64>(), found.len()), (sum, count));
    }
}

/// What was changed below a checkpoint that was adopted may go, and comes back; what was changed since stays.
#[test]
fn what_a_checkpoint_has_may_go() {
    let (home, world, worker) = home_and_world();
    let mut pair = Pair::new(&home, world, worker);
    assert_eq!(pair.evict(), (200, CHUNKS));
    pair.check(20_001, 200);
    for round in 1..=2 {
        for k in 1..=ACCOUNTS {
            pair.add(k, 1);
        }
        pair.write(|txn, world| {
            let row = crate::world::row(300 + round, 7);
            txn.insert(&world.table, &row).expect("inserts");
        });
        pair.follow();
        // No checkpoint has these, but for the row of the round before.
        assert_eq!(pair.evict(), (round as u64 - 1, 0));
        pair.checkpoint();
        pair.add(2, 1);
        pair.follow();
        // What was changed, but for the row that was once more since; the rest of its chunk stays as a shell.
        assert_eq!(pair.evict(), (200, CHUNKS - 1));
        let count = 200 + round as usize;
        pair.check(20_001 + round * 208, count);
    }
}

/// A row that was deleted above a checkpoint's CSN is not there any more when its chunk comes back from that
/// checkpoint.
#[test]
fn what_was_deleted_since_does_not_come_back() {
    let (home, world, worker) = home_and_world();
    let mut pair = Pair::new(&home, world, worker);
    pair.add(200, 1);
    pair.checkpoint();
    pair.delete(5);
    pair.follow();
    assert_eq!(pair.evict(), (199, CHUNKS - 1));
    pair.check(20_002 - 100, 199);
    // With a checkpoint that has the deletion nothing of the chunk has to stay.
    pair.checkpoint();
    pair.follow();
    assert_eq!(pair.evict(), (199, CHUNKS));
    pair.check(20_002 - 100, 199);
}

/// A row that has come and gone since the checkpoint from which rows are read is in a later one, which does not have
/// its end.
#[test]
fn what_came_and_went_between_two_checkpoints_is_told_apart() {
    let (home, world, worker) = home_and_world();
    let mut pair = Pair::new(&home, world, worker);
    pair.write(|txn, world| {
        let row = crate::world::row(300, 7);
        txn.insert(&world.table, &row).expect("inserts");
    });
    pair.follow();
    let unreadable = pair.checkpoint();
    pair.delete(300);
    // It is not adopted yet.
    pair.world.home.set_unreadable(Some((unreadable, u64::MAX)));
    pair.follow();
    assert_eq!(pair.evict(), (200, CHUNKS - 1));
    pair.world.home.set_unreadable(None);
    pair.follow();
    pair.evict();
    pair.check(20_001, 200);
}

/// Whoever reads a table that a later checkpoint does not have any more is not told that it is empty.
#[test]
fn rows_of_a_dropped_table_are_too_old() {
    let (home, world, worker) = home_and_world();
    let later = world.engine.create_table(LATER);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    insert(&mut txn, &later, &row_of(1, 2, 3)).expect("inserts");
    commit(txn);
    worker.flush(FlushMode::Inline);
    world.engine.checkpoint().expect("taken");
    let mut pair = Pair::new(&home, world, worker);
    let mut old = pair.session.begin(Isolation::RepeatableRead);
    let _seen = old.export_snapshot();
    assert_eq!(pair.evict().0, 201);
    pair.world.engine.drop_table(LATER);
    pair.add(1, 1);
    pair.checkpoint();
    let newest = pair.world.engine.next_csn();
    pair.follow();
    let table = pair.replica.engine().table(LATER).expect("it is there");
    assert_eq!(scanned(&mut old, &table), Err(FaultError::TooOld(newest)));
    // Others go on.
    assert_eq!(scanned(&mut old, &pair.table).expect("reads").len(), 200);
    pair.add(2, 1);
    pair.follow();
    pair.check(20_003, 200);
}

/// An old snapshot may need entries that the primary has removed: leaves of a replica stay, whatever wants room.
#[test]
fn leaves_of_a_replica_stay() {
    let (home, world, worker) = home_and_world();
    let pair = Pair::new(&home, world, worker);
    let engine = pair.replica.engine();
    let evictor = Evictor::start(engine, true).expect("starts");
    while engine.eviction_stats().rows_evicted < 200 {
        std::thread::yield_now();
    }
    drop(evictor);
    let stats = engine.eviction_stats();
    assert_eq!((stats.rows_evicted, stats.leaves_evicted), (200, 0));
}

/// Indexes are made of the log that the start has read: a checkpoint that has all of it is not adopted before.
#[test]
fn nothing_is_adopted_before_the_start_is_through() {
    let (home, world, worker) = home_and_world();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 1..=ACCOUNTS {
        world.update(&mut txn, k, |n| n + k).expect("updates");
    }
    commit(txn);
    worker.flush(FlushMode::Inline);
    // The next block tells that the one before is durable. What is in it concerns no index.
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |n| n).expect("updates");
    commit(txn);
    worker.flush(FlushMode::Inline);
    let (env, _) = Env::simulated(2);
    let mut replica = Replica::open(options(u64::MAX), &home, env).expect("opens");
    let opened = replica.engine().next_csn();
    assert_eq!(opened.get() + 1, world.engine.next_csn().get());
    assert!(world.engine.checkpoint().expect("taken").written);
    replica.round(&mut |_| {}).expect("follows");
    let session = replica.engine().worker(WorkerId(0));
    let (_, _, by_balance) = restore(replica.engine(), &session);
    let mut txn = session.begin(Isolation::ReadCommitted);
    let expected: Vec<_> = (1..=ACCOUNTS).map(|k| (k, 100 + k)).collect();
    assert_eq!(walked(&mut txn, &by_balance).expect("reads"), expected);
}

/// What a replica needs is kept for as long as is said, for a minute after it was cut off, and not at all when that is
/// switched off.
#[test]
fn what_is_kept_for_a_replica_goes_in_the_end() {
    let clock = Arc::new(SimClock::new());
    let mut env = Env::simulated(1).0;
    env.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let keep = Duration::from_secs(600);
    let options = EngineOptions {
        replica_keep_time: keep,
        ..EngineOptions::default()
    };
    let world = World::open_in(env, MemoryHome::new(64 << 10), options).expect("opens");
    let (world, worker) = world.fill(ACCOUNTS);
    let home = LogHome::from(world.home.clone());
    let holds = Arc::clone(world.engine.replica_holds());
    // A checkpoint's record; and several more segments of the log.
    let step = || {
        for _ in 0..100 {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            for k in 1..=ACCOUNTS {
                world.update(&mut txn, k, |n| n + 1).expect("updates");
            }
            commit(txn);
            worker.flush(FlushMode::Inline);
        }
        assert!(world.engine.checkpoint().expect("taken").written);
        let manifest = manifest_of(&home).expect("there is one");
        manifest.checkpoint.expect("it was published").object
    };
    let is_there = |object: ObjectId| home.objects.read_object(object, 0, &mut [0]).is_ok();
    let segments = || {
        let lanes = home.segments.list_lanes().expect("listed");
        let of_lane = |lane| home.segments.list_segments(lane).expect("listed").len();
        lanes.into_iter().map(of_lane).sum::<usize>()
    };
    let follow = || holds.follow(Arc::clone(&clock) as Arc<dyn Clock>);
    step();
    // Where a checkpoint's places are may be the end of a segment.
    let few = segments() + 1;

    // What it says is kept, and nothing that it does not name any more.
    let first = step();
    let holder = follow();
    holder.reads([first, ObjectId(1)]);
    holder.has_replayed(world.engine.next_csn());
    let from = world.engine.next_csn();
    let second = step();
    assert!(is_there(first) && is_there(second) && segments() > few);
    let line = holds.report()[0];
    assert_eq!((line.log_from, line.checkpoints), (Some(from), 1));
    holder.reads([second]);
    let third = step();
    assert!(!is_there(first) && is_there(second) && is_there(third));
    holder.reads([first, second]);
    assert_eq!(
        holds.report()[0].checkpoints,
        1,
        "what has gone is not to be had"
    );

    // Another one, that has applied more, changes nothing for the first.
    let other = follow();
    other.has_replayed(world.engine.next_csn());
    let kept = segments();
    step();
    assert!(segments() > kept);
    assert_eq!(holds.report()[0].log_from, Some(from));
    drop(other);

    // For as long as is said.
    clock.advance(keep - Duration::from_secs(1));
    step();
    assert!(is_there(second));
    clock.advance(Duration::from_secs(2));
    let idle = world.engine.checkpoint().expect("looked at");
    assert!(!idle.written, "nothing has changed");
    assert!(!is_there(second));
    assert!(segments() <= few);
    let line = holds.report()[0];
    assert_eq!((line.log_from, line.checkpoints), (None, 0));
    holder.reads([second]);
    assert_eq!(holds.report()[0].checkpoints, 0);

    // It has caught up, and is cut off: for a minute it may come back.
    holder.has_replayed(world.engine.next_csn());
    let newest = step();
    holder.reads([newest]);
    drop(holder);
    clock.advance(Duration::from_secs(59));
    step();
    assert!(is_there(newest) && !holds.report()[0].is_connected);
    clock.advance(Duration::from_secs(2));
    step();
    assert!(!is_there(newest) && holds.report().is_empty());
    assert!(segments() <= few);

    // Those who come and go without end are not remembered.
    for _ in 0..200 {
        drop(follow());
        follow().has_replayed(world.engine.next_csn());
    }
    assert_eq!(holds.report().len(), 64);

    // Switched off.
    let newest = step();
    let holder = follow();
    holder.reads([newest]);
    holder.has_replayed(world.engine.next_csn());
    holds.set_limit(Duration::ZERO);
    step();
    assert!(!is_there(newest));
    assert!(segments() <= few);
    assert_eq!(holds.report().len(), 1);
}

/// Of rows that are absent nothing is left but a checkpoint that holds more than is applied: who reads them waits for
/// the log, and no longer than he is told to. What he reads then is what his snapshot sees.
#[test]
fn a_reader_waits_until_the_checkpoint_is_applied() {
    let (home, world, worker) = home_and_world();
    let mut pair = Pair::new(&home, world, worker);
    let began = manifest_of(&home).expect("there is one").checkpoint;
    let began = began.expect("it was published").object;
    assert_eq!(pair.evict(), (200, CHUNKS));
    // One row of each chunk is there, because it was changed.
    let one_of_each = [1, 65, 129, 193];
    one_of_each.iter().for_each(|k| pair.add(*k, 1));
    pair.follow();
    assert_eq!(pair.evict(), (196, 0));
    let shown = pair.replica.engine().next_csn();
    // Every chunk is stored anew, until what the replica reads from is gone.
    let listed = || home.objects.list_objects().expect("listed");
    for _ in 0..3 {
        one_of_each.iter().for_each(|k| pair.add(*k, 10));
        pair.checkpoint();
    }
    assert!(listed().iter().all(|info| info.id != began));
    let newest = pair.world.engine.next_csn();
    let mut impatient = pair.session.begin(Isolation::ReadCommitted);
    let read = scanned(&mut impatient, &pair.table);
    assert_eq!(read, Err(FaultError::TooOld(newest)));
    drop(impatient);
    let engine = pair.replica.engine().clone();
    engine.set_replica_wait(Duration::from_secs(600));
    let (begun, begins) = std::sync::mpsc::channel();
    let table = Arc::clone(&pair.table);
    let reader = std::thread::spawn(move || {
        let mut txn = engine.worker(WorkerId(1)).begin(Isolation::ReadCommitted);
        begun.send(txn.snapshot()).expect("somebody waits");
        scanned(&mut txn, &table)
    });
    assert_eq!(begins.recv(), Ok(shown));
    std::thread::sleep(Duration::from_millis(100));
    assert!(!reader.is_finished(), "nothing has come that it could read");
    pair.follow();
    let found = reader.join().expect("it ends").expect("reads");
    let sum: i64 = found.values().sum();
    assert_eq!((sum, found.len()), (20_001 + 4, 200));
    pair.check(20_001 + 4 + 120, 200);
}

/// A home's named values, of which the manifest is as it was, for so many reads: whoever reads it has read it before
/// the primary has published what is newest.
struct OldManifest {
    names: Arc<dyn NamedValues>,
    old: Mutex<Option<(Vec<u8>, Tag)>>,
    reads: Mutex<usize>,
}

impl NamedValues for OldManifest {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        let mut reads = self.reads.lock();
        if name == manifest::NAME && *reads > 0 {
            *reads -= 1;
            return Ok(self.old.lock().clone());
        }
        self.names.get(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.names.put_if_absent(name, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.names.compare_and_swap(name, expected, bytes)
    }

    fn limit_name_requests(&self, first: Duration) {
        self.names.limit_name_requests(first);
    }
}

/// The record of a checkpoint goes after a replica has read in the manifest that it is the newest, and before it reads
/// the record: it adopts the one that has taken its place. If the manifest goes on naming what is not there, that is an
/// error of who reads.
#[test]
fn a_record_may_go_before_it_is_read() {
    let (home, world, worker) = home_and_world();
    let old = Arc::new(OldManifest {
        names: Arc::clone(&home.names),
        old: Mutex::default(),
        reads: Mutex::default(),
    });
    let home = LogHome {
        names: Arc::clone(&old) as _,
        ..home
    };
    let mut pair = Pair::new(&home, world, worker);
    let began = manifest_of(&home).expect("there is one").checkpoint;
    let began = began.expect("it was published").object;
    assert_eq!(pair.evict(), (200, CHUNKS));
    // One row of each chunk is there, because it was changed, and stays.
    let one_of_each = [1, 65, 129, 193];
    one_of_each.iter().for_each(|k| pair.add(*k, 1));
    pair.follow();
    assert_eq!(pair.evict(), (196, 0));
    // Every chunk is stored anew, until what the replica reads from is gone.
    let anew = |pair: &Pair<'_>| {
        one_of_each.iter().for_each(|k| pair.add(*k, 10));
        pair.checkpoint()
    };
    anew(&pair);
    anew(&pair);
    let gone = anew(&pair);
    *old.old.lock() = home.names.get(manifest::NAME).expect("reads");
    let newest = anew(&pair);
    let is_there = |id| home.objects.read_object(id, 0, &mut [0]).is_ok();
    assert!(!is_there(began) && !is_there(gone) && is_there(newest));
    // A round finds the old manifest, and goes on without its checkpoint.
    *old.reads.lock() = usize::MAX;
    pair.follow();
    let in_use = |pair: &Pair<'_>| pair.replica.checkpoints().in_use();
    assert!(in_use(&pair).expect("nobody adopts").contains(&began));
    let mut txn = pair.session.begin(Isolation::ReadCommitted);
    let read = scanned(&mut txn, &pair.table);
    assert!(matches!(read, Err(FaultError::Unreachable(_))), "{read:?}");
    drop(txn);
    *old.reads.lock() = 1;
    pair.check(20_001 + 4 + 160, 200);
    assert_eq!(*old.reads.lock(), 0);
    assert!(in_use(&pair).expect("nobody adopts").contains(&newest));
}
