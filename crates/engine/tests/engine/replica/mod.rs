//! Replicas beside a primary that writes, takes checkpoints, removes its log and is started anew: what they show is a
//! state that the primary had, each reader's for as long as he reads.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use logstead_engine::{
    CheckpointError, CommitError, CommitWait, Csn, Engine, EngineOptions, FaultError, FlushMode,
    Guard, Index, IndexCursor, IndexId, Isolation, KeyExtractor, LocalHome, LocalOptions, LogHome,
    OpenError, PageFault, Replica, ReplicaBatch, ReplicaError, ReplicaHoldGuard, RestoredIndex,
    RowBuilder, ScanCursor, TEMPORARY_AT_REPLICAS, Table, TableId, Txn, Worker, WorkerId,
    WriteError,
};
use logstead_env::Env;

use crate::world::{
    BY_BALANCE, BY_KEY, Column, TABLE, World, balance, block_on, column, commit, create_table, key,
    number,
};

mod adopted;
mod cases;
mod pages;
mod to_log;

const DIR: &str = "/db";
/// Made while the primary runs.
const LATER: TableId = TableId(30_000);
const LATER_BY_KEY: IndexId = IndexId(30_001);
const TOTAL: i64 = 10_000;

/// Key, balance, and what makes the row large.
fn row_of(k: i64, balance: i64, filling: usize) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 3);
    builder.push(Some(&number(k)));
    builder.push(Some(&number(balance)));
    builder.push(Some(&vec![b'x'; filling]));
    builder.finish().to_vec()
}

fn options(memory_bytes: u64) -> EngineOptions {
    EngineOptions {
        memory_bytes,
        ..EngineOptions::default()
    }
}

/// Brings in whatever an operation needs, as often as it asks for something.
fn present<T>(
    txn: &mut Txn,
    mut operation: impl FnMut(&mut Txn) -> Result<T, PageFault>,
) -> Result<T, FaultError> {
    loop {
        match operation(txn) {
            Ok(done) => return Ok(done),
            Err(absent) => absent.load_here(txn)?,
        }
    }
}

/// The same of a write.
fn writing<T>(
    txn: &mut Txn,
    mut write: impl FnMut(&mut Txn) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    loop {
        match write(txn) {
            Err(WriteError::Absent(absent)) => absent.load_here(txn).expect("reads"),
            done => return done,
        }
    }
}

fn insert(txn: &mut Txn, table: &Arc<Table>, row: &[u8]) -> Result<(), WriteError> {
    writing(txn, |txn| txn.insert(table, row).map(drop))
}

/// By key: the balance.
type State = BTreeMap<i64, i64>;

fn scanned(txn: &mut Txn, table: &Arc<Table>) -> Result<State, FaultError> {
    let mut cursor = ScanCursor::new(table);
    let mut state = State::new();
    while let Some((k, n)) = present(txn, |txn| {
        let guard = Guard::pin();
        let row = txn.scan_next(&mut cursor, &guard)?;
        Ok(row.map(|row| (column(&row, 0), balance(&row))))
    })? {
        assert_eq!(state.insert(k, n), None, "key {k} twice");
    }
    Ok(state)
}

/// All rows in an index's order.
fn walked(txn: &mut Txn, index: &Arc<Index>) -> Result<Vec<(i64, i64)>, FaultError> {
    let mut cursor = IndexCursor::new(index, Bound::Unbounded, Bound::Unbounded, false);
    let mut rows = Vec::new();
    while let Some(row) = present(txn, |txn| {
        let guard = Guard::pin();
        let row = txn.index_next(&mut cursor, &guard)?;
        Ok(row.map(|row| (column(&row, 0), balance(&row))))
    })? {
        rows.push(row);
    }
    Ok(rows)
}

/// The table and its indexes, as the checkpoint has them or built.
fn restore(engine: &Engine, worker: &Worker) -> (Arc<Table>, Arc<Index>, Arc<Index>) {
    let table = create_table(engine);
    let index = |id, unique, column| {
        let extractor = Arc::new(Column(column));
        match engine.restore_index(&table, id, unique, extractor.clone()) {
            Ok(RestoredIndex::Restored(index)) => index,
            Ok(RestoredIndex::NotStored) => {
                let index = engine.create_index(&table, id, unique, extractor);
                let mut txn = worker.begin(Isolation::ReadCommitted);
                txn.build_index(&table, &index).expect("builds");
                index
            }
            other => panic!("{other:?}"),
        }
    };
    let by_key = index(BY_KEY, true, 0);
    let by_balance = index(BY_BALANCE, false, 1);
    engine.finish_startup();
    (table, by_key, by_balance)
}

/// Gives the row of a key another state, or none.
fn update(
    txn: &mut Txn,
    (table, by_key): (&Arc<Table>, &Arc<Index>),
    k: i64,
    new: Option<Vec<u8>>,
) -> Result<(), WriteError> {
    let (rid, version) = present(txn, |txn| {
        let guard = Guard::pin();
        let found = txn.get(by_key, &key(k), &guard)?.expect("it exists");
        Ok((found.rid, found.version))
    })
    .expect("reads");
    writing(txn, |txn| match &new {
        Some(row) => txn.update(table, rid, version, row),
        None => txn.delete(table, rid, version),
    })
}

/// A server, and what it has committed.
struct Primary {
    env: Env,
    engine: Engine,
    worker: Worker,
    table: Arc<Table>,
    by_key: Arc<Index>,
    /// The states, each from a CSN on.
    states: BTreeMap<u64, State>,
    /// The same of the table that is made later.
    later: BTreeMap<u64, State>,
    /// All below is in the home.
    flushed: u64,
}

fn local() -> LocalOptions {
    LocalOptions {
        threads: false,
        segment_size_bytes: 256 << 10,
        ..LocalOptions::default()
    }
}

fn open_primary(env: &Env) -> Engine {
    open_primary_on(own_home(env), env)
}

/// Its home, which nobody else may open as a server.
fn own_home(env: &Env) -> LogHome {
    LogHome::from(LocalHome::open(DIR, env, local()).expect("not in use"))
}

fn open_primary_on(home: LogHome, env: &Env) -> Engine {
    let opened = Engine::open(options(u64::MAX), home, env.clone());
    opened.expect("opens").0
}

impl Primary {
    fn new(env: &Env) -> Primary {
        Primary::over(env, open_primary(env))
    }

    fn over(env: &Env, engine: Engine) -> Primary {
        let worker = engine.worker(WorkerId(0));
        let (table, by_key, _) = restore(&engine, &worker);
        let mut primary = Primary {
            env: env.clone(),
            engine,
            worker,
            table,
            by_key,
            states: BTreeMap::from([(0, State::new())]),
            later: BTreeMap::from([(0, State::new())]),
            flushed: 0,
        };
        primary.change(|txn, table, _, state| {
            for k in 0..100 {
                txn.insert(table, &row_of(k, TOTAL / 100, 10))?;
                state.insert(k, TOTAL / 100);
            }
            Ok(())
        });
        primary.flush();
        primary
    }

    /// What is there, as a start finds it.
    fn over_again(env: &Env) -> Primary {
        let engine = open_primary(env);
        let worker = engine.worker(WorkerId(0));
        let (table, by_key, _) = restore(&engine, &worker);
        Primary {
            env: env.clone(),
            engine,
            worker,
            table,
            by_key,
            states: BTreeMap::new(),
            later: BTreeMap::new(),
            flushed: 0,
        }
    }

    fn state(&self) -> &State {
        self.states.values().next_back().expect("one")
    }

    /// What a snapshot sees.
    fn state_at(states: &BTreeMap<u64, State>, snapshot: Csn) -> &State {
        states.range(..=snapshot.get()).next_back().expect("one").1
    }

    /// Commits what `change` does, which says it too.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Txn, &Arc<Table>, &Arc<Index>, &mut State) -> Result<(), WriteError>,
    ) {
        let mut state = self.state().clone();
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        change(&mut txn, &self.table, &self.by_key, &mut state).expect("writes");
        let receipt = block_on(txn.precommit()).expect("commits");
        let csn = receipt.csn.expect("it has written");
        self.states.insert(csn.get() + 1, state);
    }

    fn flush(&mut self) {
        let next = self.engine.next_csn().get();
        self.worker.flush(FlushMode::Inline);
        assert_eq!(self.engine.horizon().get(), next);
        self.flushed = next;
    }

    /// Ends without a flush, and starts again.
    fn crash(mut self) -> Primary {
        let env = self.env.clone();
        let flushed = self.flushed;
        let (states, later) = (&mut self.states, &mut self.later);
        let (mut states, mut later) = (std::mem::take(states), std::mem::take(later));
        drop(self);
        let engine = open_primary(&env);
        // A lane that was full was written without being asked for.
        let survived = engine.next_csn().get();
        assert!(survived >= flushed);
        states.retain(|from, _| *from <= survived);
        later.retain(|from, _| *from <= survived);
        let worker = engine.worker(WorkerId(0));
        let (table, by_key, _) = restore(&engine, &worker);
        let mut primary = Primary {
            flushed: engine.next_csn().get(),
            env,
            engine,
            worker,
            table,
            by_key,
            states,
            later,
        };
        let mut txn = primary.worker.begin(Isolation::RepeatableRead);
        let found = scanned(&mut txn, &primary.table).expect("reads");
        assert_eq!(&found, primary.state());
        drop(txn);
        primary.flush();
        primary
    }

    /// One of many things that leave the sum as it is.
    fn step(&mut self, dice: &mut Dice) {
        let keys: Vec<i64> = self.state().keys().copied().collect();
        let one = keys[dice.below(keys.len())];
        let other = keys[dice.below(keys.len())];
        let fresh = 1_000 + dice.below(100_000) as i64;
        let what = dice.below(40);
        let filling = dice.below(40);
        let moved = dice.below(50) as i64;
        self.change(|txn, table, by_key, state| {
            let rows = (table, by_key);
            let (of_one, of_other) = (state[&one], state[&other]);
            let mut set = |txn: &mut Txn, k: i64, n: i64, filling: usize| {
                state.insert(k, n);
                update(txn, rows, k, Some(row_of(k, n, filling)))
            };
            match what {
                // A new key for a row.
                0..=3 if !keys.contains(&fresh) => {
                    state.remove(&one);
                    state.insert(fresh, of_one);
                    update(txn, rows, one, Some(row_of(fresh, of_one, filling)))
                }
                4..=6 if !keys.contains(&fresh) => {
                    state.insert(fresh, 0);
                    insert(txn, table, &row_of(fresh, 0, filling))
                }
                7..=9 if one != other => {
                    set(txn, other, of_one + of_other, filling)?;
                    state.remove(&one);
                    update(txn, rows, one, None)
                }
                // More than stays in memory until the commit.
                10 => {
                    for k in keys.iter().take(12) {
                        let n = state[k];
                        update(txn, rows, *k, Some(row_of(*k, n, 100_000)))?;
                    }
                    Ok(())
                }
                // Comes and goes within a transaction.
                11 if !keys.contains(&fresh) => {
                    insert(txn, table, &row_of(fresh, 7, filling))?;
                    txn.begin_statement();
                    update(txn, rows, fresh, None)
                }
                _ if one != other => {
                    set(txn, one, of_one - moved, filling)?;
                    set(txn, other, of_other + moved, filling)
                }
                _ => set(txn, one, of_one, filling),
            }
        });
        while self.worker.collect_garbage(1_000) {}
    }

    /// A row in a table that was not there when anything else began.
    fn step_later(&mut self, dice: &mut Dice) {
        let mut state = self.later.values().next_back().expect("one").clone();
        let table = self.engine.create_table(LATER);
        let k = dice.below(1 << 30) as i64;
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        insert(&mut txn, &table, &row_of(k, 0, 0)).expect("inserts");
        state.insert(k, 0);
        let receipt = block_on(txn.precommit()).expect("commits");
        let csn = receipt.csn.expect("it has written");
        self.later.insert(csn.get() + 1, state);
    }
}

/// Chance that is the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Who reads at a replica, at one snapshot all the time.
struct Reader {
    txn: Txn,
    snapshot: Csn,
}

/// A replica with what it has of the table.
struct Beside<'h> {
    replica: Replica<'h>,
    worker: Worker,
    table: Arc<Table>,
    by_key: Arc<Index>,
    by_balance: Arc<Index>,
    readers: Vec<Reader>,
    /// By which it tells the primary what it needs.
    holder: Option<ReplicaHoldGuard>,
    /// The primary keeps all that it needs.
    is_held: bool,
}

fn home_of(env: &Env) -> LogHome {
    LogHome::from(LocalHome::open_beside(DIR, env).expect("it is there"))
}

/// What happened.
#[derive(Debug, Default)]
struct Seen {
    reads: usize,
    /// At a snapshot that was not the newest.
    old_reads: usize,
    removed: usize,
    opened: usize,
    crashes: usize,
    checkpoints: usize,
    /// Readers of the table that is made later.
    later: usize,
    /// It was heard of before it was visible.
    heard: usize,
    restored: usize,
    /// How often the primary keeps all that the replica needs.
    held: usize,
    /// Rows that the replica has let go, and those that it has brought in.
    evicted: u64,
    loaded: u64,
    newest: u64,
}

impl<'h> Beside<'h> {
    fn open(home: &'h LogHome, env: &Env) -> Result<Beside<'h>, ReplicaError> {
        let replica = Replica::open(options(u64::MAX), home, env.clone())?;
        let engine = replica.engine();
        // What a reader needs is applied by nobody while he waits.
        engine.set_replica_wait(Duration::ZERO);
        let worker = engine.worker(WorkerId(0));
        let (table, by_key, by_balance) = restore(engine, &worker);
        Ok(Beside {
            worker,
            table,
            by_key,
            by_balance,
            replica,
            readers: Vec::new(),
            holder: None,
            is_held: false,
        })
    }

    /// Tells what it needs, as by a stream, once it has come to the primary's epoch.
    fn tell(&mut self, primary: &Primary, seen: &mut Seen) {
        let holds = primary.engine.replica_holds();
        if self.replica.progress().epoch != primary.engine.epoch() {
            return;
        }
        let clock = Arc::clone(&primary.env.clock);
        let holder = self.holder.get_or_insert_with(|| holds.follow(clock));
        holder.has_replayed(self.replica.engine().next_csn());
        let in_use = self
            .replica
            .checkpoints()
            .in_use()
            .expect("nobody adopts one");
        let count = in_use.len();
        holder.reads(in_use);
        let lines = holds.report();
        let line = lines.iter().find(|line| line.id == holder.id());
        let line = line.expect("it is told of");
        self.is_held = line.log_from.is_some() && line.checkpoints == count;
        seen.held += usize::from(self.is_held);
    }

    /// What it needs is gone: that is not so while the primary keeps it.
    fn is_too_old(&self, seed: u64) {
        assert!(
            !self.is_held,
            "seed {seed}: the primary has promised to keep it"
        );
    }

    fn round(&mut self, seen: &mut Seen) -> Result<(), ReplicaError> {
        let own = self.replica.worker().clone();
        let engine = self.replica.engine().clone();
        let mut heard = |batch: &ReplicaBatch<'_>| {
            assert_eq!(
                batch.visible.get().min(engine.next_csn().get()),
                engine.next_csn().get(),
                "it is not visible yet"
            );
            if !batch.tables.contains(&LATER) {
                return;
            }
            seen.heard += 1;
            let table = engine.table(LATER).expect("it has come");
            if table.index(LATER_BY_KEY).is_none() {
                let extractor = Arc::new(Column(0));
                let index = engine.create_index(&table, LATER_BY_KEY, true, extractor);
                let mut txn = own.begin(Isolation::ReadCommitted);
                txn.build_index(&table, &index).expect("builds");
            }
            // It can be read before anybody else sees it.
            let mut txn = own.begin(Isolation::RepeatableRead);
            assert!(txn.import_snapshot(batch.snapshot()));
            assert!(!scanned(&mut txn, &table).expect("reads").is_empty());
        };
        let before = self.replica.engine().next_csn();
        let progress = self.replica.round(&mut heard)?;
        let now = self.replica.engine().next_csn();
        assert!(now >= before, "nothing goes back");
        assert_eq!(now, progress.next.max(before));
        Ok(())
    }

    fn begin(&mut self) {
        let mut txn = self.worker.begin(Isolation::RepeatableRead);
        let snapshot = txn.export_snapshot().csn();
        self.readers.push(Reader { txn, snapshot });
    }

    /// Everything that a reader can see is as the primary had it.
    fn read(&mut self, at: usize, primary: &Primary, seen: &mut Seen) -> Result<(), FaultError> {
        let newest = self.replica.engine().next_csn();
        let Reader { txn, snapshot } = &mut self.readers[at];
        let expected = Primary::state_at(&primary.states, *snapshot);
        let found = scanned(txn, &self.table)?;
        let sum = found.values().sum::<i64>();
        assert_eq!(
            sum,
            if expected.is_empty() { 0 } else { TOTAL },
            "at {snapshot}"
        );
        assert_eq!(&found, expected, "at {snapshot}");
        let by_key: Vec<(i64, i64)> = expected.iter().map(|(k, n)| (*k, *n)).collect();
        assert_eq!(walked(txn, &self.by_key)?, by_key, "at {snapshot}");
        let mut by_balance = by_key;
        by_balance.sort_unstable_by_key(|(_, n)| *n);
        let mut found = walked(txn, &self.by_balance)?;
        assert!(found.is_sorted_by_key(|(_, n)| *n), "at {snapshot}");
        found.sort_unstable();
        by_balance.sort_unstable();
        assert_eq!(found, by_balance, "at {snapshot}");
        let later = Primary::state_at(&primary.later, *snapshot);
        if let Some(table) = self.replica.engine().table(LATER) {
            assert_eq!(&scanned(txn, &table)?, later, "at {snapshot}");
            if let Some(index) = table.index(LATER_BY_KEY)
                && !later.is_empty()
            {
                let by_key: Vec<(i64, i64)> = later.iter().map(|(k, n)| (*k, *n)).collect();
                assert_eq!(walked(txn, &index)?, by_key, "at {snapshot}");
                seen.later += 1;
            }
        } else {
            assert!(later.is_empty(), "at {snapshot}");
        }
        seen.reads += 1;
        seen.old_reads += usize::from(*snapshot < newest);
        seen.newest = seen.newest.max(newest.get());
        Ok(())
    }
}

/// One history of a primary and a replica, as the seed says. `keep`: how long the primary keeps what the replica needs,
/// which tells it.
fn run(seed: u64, keep: Duration, seen: &mut Seen) {
    let mut dice = Dice(seed);
    let (env, _) = Env::simulated(seed);
    let mut primary = Primary::new(&env);
    primary.engine.replica_holds().set_limit(keep);
    if dice.below(2) == 0 {
        primary.engine.checkpoint().expect("taken");
    }
    let home = home_of(&env);
    let open = |seen: &mut Seen| loop {
        seen.opened += 1;
        match Beside::open(&home, &env) {
            Ok(beside) => return beside,
            Err(ReplicaError::Removed { .. }) => seen.removed += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    };
    let mut beside = open(seen);
    for _ in 0..300 {
        // As a stream does, behind each round.
        if !keep.is_zero() {
            beside.tell(&primary, seen);
        }
        match dice.below(46) {
            0..=15 => primary.step(&mut dice),
            16..=17 => primary.step_later(&mut dice),
            18..=22 => primary.flush(),
            23..=29 => {
                if dice.below(2) == 0 {
                    let (epoch, horizon) = (primary.engine.epoch(), primary.engine.horizon());
                    beside.replica.learn(epoch, horizon);
                }
                match beside.round(seen) {
                    Ok(()) => {}
                    Err(ReplicaError::Removed { next, .. }) => {
                        assert_eq!(next, beside.replica.engine().next_csn());
                        let again = beside.replica.round(&mut |_| {});
                        assert!(matches!(again, Err(ReplicaError::Ended)), "{again:?}");
                        beside.is_too_old(seed);
                        seen.removed += 1;
                        beside = open(seen);
                    }
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
            30..=31 if beside.readers.len() < 6 => beside.begin(),
            32..=36 if !beside.readers.is_empty() => {
                let at = dice.below(beside.readers.len());
                match beside.read(at, &primary, seen) {
                    Ok(()) => {}
                    // What the replica began with is gone.
                    Err(FaultError::TooOld(_)) => {
                        beside.is_too_old(seed);
                        beside = open(seen);
                    }
                    Err(error) => panic!("seed {seed}: {error}"),
                }
                if !beside.readers.is_empty() && dice.below(3) == 0 {
                    let gone = dice.below(beside.readers.len());
                    beside.readers.remove(gone);
                }
            }
            37 => {
                primary.flush();
                let taken = primary.engine.checkpoint().expect("taken");
                seen.checkpoints += usize::from(taken.written);
            }
            38 if dice.below(3) == 0 => {
                // Its holds go with it.
                (beside.holder, beside.is_held) = (None, false);
                primary = primary.crash();
                primary.engine.replica_holds().set_limit(keep);
                seen.crashes += 1;
            }
            39 if dice.below(3) == 0 => {
                beside.readers.clear();
                beside = open(seen);
            }
            39 => match beside.replica.engine().bring_all(|| true) {
                Ok(()) => seen.restored += 1,
                Err(FaultError::TooOld(_)) => {
                    beside.is_too_old(seed);
                    beside = open(seen);
                }
                Err(error) => panic!("seed {seed}: {error}"),
            },
            // Whatever the newest checkpoint that it has adopted has.
            40..=45 => {
                let engine = beside.replica.engine();
                let before = engine.eviction_stats().rows_evicted;
                engine.evict_all();
                seen.evicted += engine.eviction_stats().rows_evicted - before;
            }
            _ => {}
        }
    }
    seen.loaded += beside.replica.engine().eviction_stats().rows_loaded;
}

/// Whatever the primary does, and however far behind the replica is: each reader sees one state that the primary had,
/// by scan and by each index, for as long as he reads.
#[test]
fn every_reader_of_a_replica_sees_a_state_that_its_primary_had() {
    let mut seen = Seen::default();
    for seed in 0..8 {
        run(seed, Duration::ZERO, &mut seen);
    }
    assert_eq!(seen.held, 0);
    let all = [
        seen.reads,
        seen.old_reads,
        seen.removed,
        seen.crashes,
        seen.checkpoints,
        seen.later,
        seen.heard,
        seen.restored,
        seen.evicted as usize,
        seen.loaded as usize,
    ];
    assert!(all.iter().all(|count| *count > 0), "{seen:?}");
}

/// The same beside a primary that keeps what the replica tells that it needs: then nothing of that is missed, until the
/// primary is started anew.
#[test]
fn what_a_primary_keeps_for_a_replica_is_there() {
    let mut seen = Seen::default();
    for seed in 100..108 {
        run(seed, Duration::from_secs(3600), &mut seen);
    }
    let all = [
        seen.held,
        seen.reads,
        seen.old_reads,
        seen.crashes,
        seen.checkpoints,
        seen.evicted as usize,
        seen.loaded as usize,
    ];
    assert!(all.iter().all(|count| *count > 0), "{seen:?}");
}
