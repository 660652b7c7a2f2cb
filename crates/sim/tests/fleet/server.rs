//! A server as a process of the simulation: the engine over a fleet, started again and again, and its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use logstead_engine::{
    Checkpoint, CommitOptions, CommitWait, Engine, EngineOptions, Env, ExpectPresent, Guard, Index,
    Isolation, KeyExtractor, KeyKind, LeaseOptions, Outcome, RestoredIndex, RowBuilder, RowRef,
    ScanCursor, Table, Txn, Worker, WriteError,
};
use logstead_env::simulated_threads::{ProcessNumber, SimJoinHandle, SimThreads};
use logstead_env::{Clock, Condvar, Instant, SimFiles, SimProcesses};
use logstead_home::{HomeOptions, LogHome};
use logstead_types::{IndexId, TableId, WorkerId};
use parking_lot::Mutex;

use crate::judge::{Judge, Key, WriterId};
use logstead_sim::Dice;

pub(crate) const KEYS: u64 = 5;
const LEDGER: TableId = TableId(20_000);
const ROWS: TableId = TableId(20_001);
const BY_KEY: IndexId = IndexId(30_001);
const LANE_BUFFER_BYTES: usize = 16 << 10;
/// The records of a transaction with such a value go into a side segment.
const LARGE_BYTES: usize = 5 << 10;
/// How long a server that has nothing to do waits for something.
const IDLE_PAUSE: Duration = Duration::from_millis(20);
/// Between two starts.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// What a server is like.
#[derive(Clone, Debug)]
pub(crate) struct ServerOptions {
    pub(crate) url: String,
    pub(crate) workers: usize,
    pub(crate) clients: usize,
    pub(crate) take_over: bool,
    pub(crate) checkpoints: bool,
    /// It ends with its first recovery.
    pub(crate) only_reads: bool,
}

/// What others know of a server.
#[derive(Default)]
pub(crate) struct ServerState {
    stop: AtomicBool,
    /// The epoch that it serves.
    serves: Mutex<Option<u32>>,
    /// Why it did not start, or ended, last.
    trouble: Mutex<String>,
    /// Clients are to do nothing more.
    quiet: AtomicBool,
    acknowledged: AtomicU64,
    published: AtomicU64,
    /// Every member is complete, as far as the register says.
    all_complete: AtomicBool,
    asks_members: AtomicBool,
    home: Mutex<Option<LogHome>>,
    killed: AtomicBool,
}

pub(crate) struct Server {
    pub(crate) process: ProcessNumber,
    pub(crate) state: Arc<ServerState>,
    thread: Option<SimJoinHandle>,
}

impl ServerState {
    pub(crate) fn why(&self) -> String {
        self.trouble.lock().clone()
    }

    /// How the nodes are, as it sees them.
    pub(crate) fn report(&self) -> String {
        let home = self.home.lock();
        let report = home.as_ref().map(|home| home.status.report());
        let lines = report.into_iter().flatten();
        let lines = lines.filter(|(name, _)| name.ends_with("state"));
        lines
            .map(|(name, value)| format!("  {name}: {value}\n"))
            .collect()
    }
}

impl Server {
    pub(crate) fn start(
        threads: &SimThreads,
        process: ProcessNumber,
        options: ServerOptions,
        judge: &Arc<Mutex<Judge>>,
        mut dice: Dice,
    ) -> Server {
        let state = Arc::new(ServerState::default());
        let seed = dice.roll(u64::MAX);
        let env = Env::of_simulation(threads, seed, Arc::new(SimFiles::new(seed)));
        let (own, judge) = (Arc::clone(&state), Arc::clone(judge));
        let body = move || {
            let mut starts = 0;
            while !own.stop.load(Ordering::SeqCst) {
                starts += 1;
                let ended = live(&own, &options, &env, &judge, dice.fork(), process);
                *own.serves.lock() = None;
                *own.home.lock() = None;
                if let Err(why) = ended {
                    *own.trouble.lock() = why;
                } else if options.only_reads {
                    return;
                }
                if options.only_reads && starts > 20 {
                    return;
                }
                logstead_env::sleep(RESTART_PAUSE);
            }
        };
        let thread = threads.spawn_in(process, "server", body);
        Server {
            process,
            state,
            thread: Some(thread.expect("starts")),
        }
    }

    /// It is to end in order: it gives its lease back.
    pub(crate) fn stop(&self) {
        self.state.stop.store(true, Ordering::SeqCst);
    }

    /// It is gone at once.
    pub(crate) fn kill(&self, threads: &SimThreads) {
        threads.kill(self.process);
        threads.network().break_connections(self.process, None, 1);
        self.state.killed.store(true, Ordering::SeqCst);
        *self.state.serves.lock() = None;
        *self.state.home.lock() = None;
    }

    /// It was killed, or told to end.
    pub(crate) fn is_gone(&self) -> bool {
        let (stop, killed) = (&self.state.stop, &self.state.killed);
        stop.load(Ordering::SeqCst) || killed.load(Ordering::SeqCst)
    }

    /// Its clients do nothing more.
    pub(crate) fn be_quiet(&self) {
        self.state.quiet.store(true, Ordering::SeqCst);
    }

    /// Waits until it has ended.
    pub(crate) fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("ends");
        }
    }

    /// The epoch that it serves.
    pub(crate) fn serves(&self) -> Option<u32> {
        *self.state.serves.lock()
    }

    pub(crate) fn trouble(&self) -> String {
        self.state.why()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.state.acknowledged.load(Ordering::SeqCst)
    }

    pub(crate) fn published(&self) -> u64 {
        self.state.published.load(Ordering::SeqCst)
    }

    /// What it saw of its members is not so any more.
    pub(crate) fn look_again(&self) {
        self.state.all_complete.store(false, Ordering::SeqCst);
    }

    /// Has it look whether all members are complete; what it saw last.
    pub(crate) fn all_complete(&self) -> bool {
        self.state.asks_members.store(true, Ordering::SeqCst);
        self.state.all_complete.load(Ordering::SeqCst)
    }
}

struct ByKey;

impl KeyExtractor for ByKey {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        out.extend_from_slice(row.column(0).unwrap_or_default());
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1
    }
}

#[derive(Clone)]
struct Tables {
    engine: Engine,
    ledger: Arc<Table>,
    rows: Arc<Table>,
    by_key: Arc<Index>,
}

fn row(number: u64, value: u64, padding: usize) -> Vec<u8> {
    let mut bytes = value.to_be_bytes().to_vec();
    bytes.resize(8 + padding, 7);
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&number.to_be_bytes()));
    row.push(Some(&bytes));
    row.finish().to_vec()
}

fn number_in(row: RowRef<'_>, column: usize) -> u64 {
    let bytes = row.column(column).and_then(|bytes| bytes.first_chunk());
    u64::from_be_bytes(*bytes.expect("eight bytes"))
}

impl Tables {
    fn open(engine: Engine) -> Result<Tables, String> {
        let ledger = engine.create_table(LEDGER);
        let rows = engine.create_table(ROWS);
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let by_key = engine.restore_index(&rows, BY_KEY, true, Arc::new(ByKey));
        let by_key = match by_key.map_err(|error| error.to_string())? {
            RestoredIndex::Restored(index) => index,
            RestoredIndex::NotStored => {
                let index = engine.create_index(&rows, BY_KEY, true, Arc::new(ByKey));
                let built = txn.build_index(&rows, &index);
                built.map_err(|error| format!("a key is there twice: {error}"))?;
                index
            }
            RestoredIndex::Damaged(what) => return Err(what.to_string()),
        };
        drop(txn);
        engine.finish_startup();
        Ok(Tables {
            engine,
            ledger,
            rows,
            by_key,
        })
    }

    /// Who is in the ledger, and what the keys have.
    fn contents(&self) -> (BTreeSet<WriterId>, BTreeMap<Key, WriterId>) {
        let worker = self.engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let mut all = |table: &Arc<Table>| {
            let guard = Guard::pin();
            let mut cursor = ScanCursor::new(table);
            let mut found = Vec::new();
            while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
                found.push((number_in(row.bytes, 0), number_in(row.bytes, 1)));
            }
            found
        };
        let ledger = all(&self.ledger).into_iter().map(|(writer, _)| writer);
        let ledger = ledger.collect();
        (ledger, all(&self.rows).into_iter().collect())
    }
}

/// What wakes a server that has nothing to do.
#[derive(Default)]
struct Signal {
    told: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn tell(&self) {
        *self.told.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self, time: Duration) {
        let mut told = self.told.lock();
        if !*told {
            self.changed.wait_for(&mut told, time);
        }
        *told = false;
    }
}

/// Clients that do nothing until a moment.
#[derive(Default)]
struct Pauses(Mutex<Vec<(Instant, Waker)>>);

impl Pauses {
    /// Wakes those whose pause is over; when the next one is.
    fn wake(&self, now: Instant) -> Option<Instant> {
        let mut pauses = self.0.lock();
        let over: Vec<(Instant, Waker)> = pauses.extract_if(.., |(at, _)| *at <= now).collect();
        let next = pauses.iter().map(|(at, _)| *at).min();
        drop(pauses);
        over.into_iter().for_each(|(_, waker)| waker.wake());
        next
    }
}

struct Flag(AtomicBool, Arc<Signal>);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        self.1.tell();
    }
}

struct Task {
    worker: usize,
    future: Pin<Box<dyn Future<Output = ()>>>,
    ready: Arc<Flag>,
}

struct Seat {
    worker: Worker,
    owes_idle: bool,
    kicked: Arc<AtomicBool>,
    ask_again: Option<Instant>,
}

/// From a start to the end of the log, or until it is told to stop. An error is why it did not start, or ended.
fn live(
    own: &Arc<ServerState>,
    options: &ServerOptions,
    env: &Env,
    judge: &Arc<Mutex<Judge>>,
    mut dice: Dice,
    process: ProcessNumber,
) -> Result<(), String> {
    let home_options = HomeOptions {
        damage: Some(logstead_checkpoint::damage_of_object),
        ..HomeOptions::default()
    };
    let home = logstead_home::open(&options.url, env, &home_options);
    let home: LogHome = home.map_err(|error| format!("opening: {error}"))?;
    let engine_options = EngineOptions {
        workers: options.workers,
        commit: CommitOptions {
            lane_buffer_bytes: LANE_BUFFER_BYTES,
            flush_timeout: Duration::from_millis(2),
            blocks_in_flight_max: 1 + dice.roll(4) as usize,
            flush_unit_bytes: [1, 512, 8 << 10][dice.roll(3) as usize],
            threads: false,
            ..CommitOptions::default()
        },
        lease: LeaseOptions {
            take_over: options.take_over,
            processes: Arc::new(SimProcesses::new(process)),
            ..LeaseOptions::default()
        },
        replay_threads: 1,
        fault_threads: 0,
        ..EngineOptions::default()
    };
    let opened = Engine::open(engine_options, home.clone(), env.clone());
    let (engine, _) = opened.map_err(|error| format!("starting: {error}"))?;
    let tables = Tables::open(engine)?;
    let all = tables.engine.bring_all(|| true);
    all.map_err(|error| format!("bringing rows in: {error}"))?;
    let (ledger, rows) = tables.contents();
    let epoch = tables.engine.epoch().get();
    judge.lock().recovered(epoch, &ledger, &rows);
    if options.only_reads {
        return Ok(());
    }
    *own.home.lock() = Some(home.clone());
    *own.serves.lock() = Some(epoch);
    let life = Life {
        own,
        options,
        clock: Arc::clone(&env.clock),
        tables,
        judge,
        epoch,
    };
    life.run(dice)
}

struct Life<'s> {
    own: &'s Arc<ServerState>,
    options: &'s ServerOptions,
    clock: Arc<dyn Clock>,
    tables: Tables,
    judge: &'s Arc<Mutex<Judge>>,
    epoch: u32,
}

impl Life<'_> {
    fn run(&self, mut dice: Dice) -> Result<(), String> {
        let engine = &self.tables.engine;
        let signal = Arc::new(Signal::default());
        let mut seats: Vec<Seat> = (0..self.options.workers)
            .map(|number| {
                let worker = engine.worker(WorkerId(number as u16));
                let kicked = Arc::new(AtomicBool::new(false));
                let (kick, signal) = (Arc::clone(&kicked), Arc::clone(&signal));
                worker.set_wake_hook(Arc::new(move || {
                    kick.store(true, Ordering::SeqCst);
                    signal.tell();
                }));
                Seat {
                    worker,
                    owes_idle: true,
                    kicked,
                    ask_again: None,
                }
            })
            .collect();
        let failed = Arc::new(AtomicBool::new(false));
        let pauses = Arc::new(Pauses::default());
        let mut tasks: Vec<Task> = Vec::new();
        for number in 0..self.options.clients {
            let worker = number % seats.len();
            let client = Client {
                tables: self.tables.clone(),
                worker: seats[worker].worker.clone(),
                judge: Arc::clone(self.judge),
                epoch: self.epoch,
                dice: dice.fork(),
                failed: Arc::clone(&failed),
                server: Arc::clone(self.own),
                clock: Arc::clone(&self.clock),
                pauses: Arc::clone(&pauses),
            };
            let ready = Arc::new(Flag(AtomicBool::new(true), Arc::clone(&signal)));
            let future = Box::pin(client.run());
            tasks.push(Task {
                worker,
                future,
                ready,
            });
        }
        let mut taking: Option<Checkpoint> = None;
        loop {
            if self.own.stop.load(Ordering::SeqCst) {
                if let Some(lease) = engine.lease() {
                    lease.release();
                }
                return Ok(());
            }
            if failed.load(Ordering::SeqCst) {
                return Err("the log has failed".to_owned());
            }
            if let Some(lost) = engine.lease().and_then(|lease| lease.lost()) {
                return Err(format!("the lease is lost: {lost}"));
            }
            if self.own.asks_members.swap(false, Ordering::SeqCst) {
                self.look_at_members();
            }
            let next = pauses.wake(self.clock.monotonic());
            let went_on = self.step(&mut seats, &mut tasks, &mut dice);
            let quiet = self.own.quiet.load(Ordering::SeqCst);
            if self.options.checkpoints && !quiet && dice.one_in(40) {
                self.checkpoint(&mut taking);
            }
            if !went_on {
                let now = self.clock.monotonic();
                let asks = seats.iter().filter_map(|seat| seat.ask_again);
                let asks = asks.chain(next).min();
                let pause = asks.map_or(IDLE_PAUSE, |at| at.since(now).min(IDLE_PAUSE));
                signal.wait(pause);
            }
        }
    }

    fn look_at_members(&self) {
        let groups = logstead_home::fleet_groups(&self.options.url, &self.env());
        let is_well = |list: logstead_home::MemberList| {
            let mut wanted = list.wanted.iter().flatten();
            let is_repaired = !wanted.any(|line| line.ends_with(" repair"));
            is_repaired && list.members.iter().all(|(_, complete)| *complete)
        };
        let is_well = |group: logstead_home::FleetGroup| group.members.is_ok_and(is_well);
        let all = groups.is_ok_and(|groups| groups.into_iter().all(is_well));
        self.own.all_complete.store(all, Ordering::SeqCst);
    }

    fn env(&self) -> Env {
        let (env, _) = Env::simulated(u64::from(self.epoch));
        Env {
            clock: Arc::clone(&self.clock),
            ..env
        }
    }

    /// Everybody goes on who can. False: nobody could.
    fn step(&self, seats: &mut [Seat], tasks: &mut Vec<Task>, dice: &mut Dice) -> bool {
        let mut went_on = false;
        let mut busy = BTreeSet::new();
        let mut at = 0;
        while at < tasks.len() {
            let task = &mut tasks[at];
            if !task.ready.0.swap(false, Ordering::SeqCst) {
                at += 1;
                continue;
            }
            went_on = true;
            let seat = &mut seats[task.worker];
            busy.insert(task.worker);
            seat.worker.busy();
            (seat.owes_idle, seat.ask_again) = (true, None);
            let waker = Waker::from(Arc::clone(&task.ready));
            let polled = task.future.as_mut().poll(&mut Context::from_waker(&waker));
            seat.worker.between_tasks();
            if dice.one_in(8) {
                seat.worker.collect_garbage(8);
            }
            if polled == Poll::Ready(()) {
                tasks.swap_remove(at);
            } else {
                at += 1;
            }
            // A transaction takes some time, in which others go on.
            logstead_env::sleep(Duration::from_micros(1 + dice.roll(50)));
        }
        for (number, seat) in seats.iter_mut().enumerate() {
            seat.owes_idle |= seat.kicked.swap(false, Ordering::SeqCst);
            let now = self.clock.monotonic();
            let asks = seat.ask_again.is_some_and(|at| at <= now);
            if busy.contains(&number) || !seat.owes_idle && !asks {
                continue;
            }
            went_on = true;
            let again = seat.worker.idle(dice.one_in(2), None);
            seat.owes_idle = false;
            let not_before = Duration::from_micros(1);
            seat.ask_again = again.map(|time| now + time.max(not_before));
        }
        let path = self.tables.engine.commit_path();
        if path.wants_round() {
            path.background_round();
            went_on = true;
        }
        went_on
    }

    /// A step of taking a checkpoint. One that fails is begun anew.
    fn checkpoint(&self, taking: &mut Option<Checkpoint>) {
        let Some(checkpoint) = taking else {
            *taking = self.tables.engine.begin_checkpoint().ok();
            return;
        };
        let stepped = match checkpoint.is_durable() {
            Ok(false) => return,
            Ok(true) => checkpoint.walk(1),
            Err(error) => Err(error),
        };
        match stepped {
            Ok(true) => {}
            Ok(false) => {
                let published = taking.take().map(Checkpoint::publish);
                let written = matches!(published, Some(Ok(report)) if report.written);
                let written = u64::from(written);
                self.own.published.fetch_add(written, Ordering::SeqCst);
            }
            Err(_) => *taking = None,
        }
    }
}

struct Client {
    tables: Tables,
    worker: Worker,
    judge: Arc<Mutex<Judge>>,
    epoch: u32,
    dice: Dice,
    failed: Arc<AtomicBool>,
    server: Arc<ServerState>,
    clock: Arc<dyn Clock>,
    pauses: Arc<Pauses>,
}

async fn breathe() {
    logstead_engine::yield_now().await;
}

impl Client {
    async fn run(mut self) {
        while !self.server.quiet.load(Ordering::SeqCst) {
            let done = match self.dice.one_in(4) {
                true => self.read().await,
                false => self.write().await,
            };
            if done.is_none() {
                self.failed.store(true, Ordering::SeqCst);
                return;
            }
            match self.dice.roll(4) {
                0 => {}
                1 => breathe().await,
                _ => self.pause().await,
            }
        }
    }

    /// Does nothing for some time.
    async fn pause(&mut self) {
        let most_ms = [60, 600, 4000][self.dice.roll(3) as usize];
        let time = Duration::from_millis(1 + self.dice.roll(most_ms));
        let until = self.clock.monotonic() + time;
        std::future::poll_fn(|context| {
            if self.clock.monotonic() >= until {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            self.pauses.0.lock().push((until, waker));
            Poll::Pending
        })
        .await;
    }

    /// The row of a key: what it holds.
    fn look(&self, txn: &mut Txn, key: Key) -> Option<WriterId> {
        loop {
            let absent = {
                let guard = Guard::pin();
                match txn.get(&self.tables.by_key, &key.to_be_bytes(), &guard) {
                    Ok(row) => return row.map(|row| number_in(row.bytes, 1)),
                    Err(absent) => absent,
                }
            };
            absent.load_here(txn).ok()?;
        }
    }

    /// Returns when the client may be told. `None`: never.
    async fn may_tell(&self, waits_for: CommitWait) -> Option<()> {
        let engine = &self.tables.engine;
        engine.acknowledged(waits_for).await.ok()?;
        // As every answer does that leaves a server.
        match engine.lease() {
            Some(lease) => lease.valid().await.ok(),
            None => Some(()),
        }
    }

    /// Asks for a key. `None`: the log has failed.
    async fn read(&mut self) -> Option<()> {
        let key = self.dice.roll(KEYS);
        let floor = self.judge.lock().floor(key);
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        txn.snapshot();
        let value = self.look(&mut txn, key);
        txn.end_statement();
        let receipt = txn.precommit().await.ok()?;
        self.may_tell(receipt.waits_for).await?;
        self.judge.lock().answered(self.epoch, key, floor, value);
        Some(())
    }

    /// Writes a key or two. `None`: the log has failed.
    async fn write(&mut self) -> Option<()> {
        let writer = self.judge.lock().next_writer();
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let mut keys = BTreeSet::new();
        let large = self.dice.one_in(16);
        for _ in 0..1 + self.dice.roll(2) {
            txn.begin_statement();
            txn.snapshot();
            let key = self.dice.roll(KEYS);
            let padding = if large {
                LARGE_BYTES
            } else {
                self.dice.roll(60) as usize
            };
            if self.put(&mut txn, key, writer, padding).await.is_err() {
                txn.abort();
                breathe().await;
                return Some(());
            }
            keys.insert(key);
            txn.end_statement();
        }
        txn.begin_statement();
        if txn.insert(&self.tables.ledger, &row(writer, 0, 0)).is_err() {
            txn.abort();
            return Some(());
        }
        let (judge, epoch) = (Arc::clone(&self.judge), self.epoch);
        txn.on_end(Box::new(move |outcome| {
            if let Outcome::Committed(csn) = outcome {
                judge.lock().visible(epoch, writer, csn.get(), &keys);
            }
        }));
        let receipt = txn.precommit().await.ok()?;
        self.may_tell(receipt.waits_for).await?;
        self.judge.lock().acknowledged(self.epoch, writer);
        self.server.acknowledged.fetch_add(1, Ordering::SeqCst);
        Some(())
    }

    /// Gives a key this value, waiting for others as often as it must. An error: the transaction cannot go on.
    async fn put(
        &mut self,
        txn: &mut Txn,
        key: Key,
        writer: WriterId,
        padding: usize,
    ) -> Result<(), ()> {
        let rows = Arc::clone(&self.tables.rows);
        let new = row(key, writer, padding);
        loop {
            self.look(txn, key);
            let done = {
                let guard = Guard::pin();
                let found = txn.get(&self.tables.by_key, &key.to_be_bytes(), &guard);
                match found.map_err(|_| ())? {
                    Some(seen) => txn.update(&rows, seen.rid, seen.version, &new),
                    None => txn.insert(&rows, &new).map(|_| ()),
                }
            };
            match done {
                Ok(()) => return Ok(()),
                Err(WriteError::Blocked(blocker)) => {
                    blocker.wait(txn).await.map_err(|_| ())?;
                }
                Err(WriteError::Absent(absent)) => absent.load_here(txn).map_err(|_| ())?,
                Err(_) => return Err(()),
            }
            // As a statement that begins now would see it.
            txn.begin_statement();
            txn.snapshot();
        }
    }
}
