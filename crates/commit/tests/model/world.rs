//! A tiny world over the real commit path: workers run scripted transactions over a few records, a home completes
//! appends, the background thread leads rounds, and after every step the world is judged as if the machine stopped
//! there.
//!
//! A record is the newest transaction that wrote it; the model keeps for each transaction what it truly depends on.
//! Steps of a transaction: run (take row locks, cover what is read and overwritten), draw, push, become visible, tell
//! the path, ask to be acknowledged. The path itself comes to points where it reads its clock or begins a write.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use logstead_commit::{
    AckTiming, CommitOptions, CommitPath, CommitWait, DependencySet, DurabilityProgress, LogFailed,
    ProtocolKind, PushBody, Tracking,
};
use logstead_env::{Clock, Env, Instant};
use logstead_types::{Csn, WorkerId};
use logstead_wal::recovery::RecoveryOptions;
use logstead_wal::{LaneConfig, NoRoom, RoomRequest};

use crate::explorer::Explorer;
use crate::home::{Memo, ModelHome};

/// Records of a chunk, for page-level tracking.
const CHUNK: usize = 2;

/// A transaction of a script: the records it reads and those it writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) reads: &'static [usize],
    pub(crate) writes: &'static [usize],
}

/// What is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) options: CommitOptions,
    /// By worker.
    pub(crate) scripts: &'static [&'static [Script]],
    /// Workers write themselves.
    pub(crate) inline: bool,
    /// Bytes of records per transaction.
    pub(crate) record_bytes: usize,
    /// Who finds no room gives up instead of waiting.
    pub(crate) gives_up: bool,
    /// Somebody has other numbers of lanes used, one after the other, at any moment.
    pub(crate) remaps: &'static [usize],
}

impl Setup {
    fn recovery(&self) -> RecoveryOptions {
        RecoveryOptions {
            lanes: self.options.lanes(self.scripts.len()) as u16,
            lane: LaneConfig {
                buffer_size_bytes: self.options.lane_buffer_bytes,
                blocks_in_flight_max: Some(self.options.blocks_in_flight_max),
                allocation_limit: None,
            },
            accept_data_loss: false,
            lease: logstead_wal::lease::LeaseOptions::default(),
        }
    }

    /// The protocol acknowledges after every flush, and not at the end of rounds.
    fn acknowledges_at_once(&self) -> bool {
        use ProtocolKind::{Autonomous, GroupedLanes};
        matches!(self.options.protocol, Autonomous | GroupedLanes)
            && self.options.acknowledging == AckTiming::WhenHardened
    }
}

/// A transaction that has drawn a CSN.
struct Txn {
    csn: Csn,
    depends_on: BTreeSet<u32>,
    /// Its lane, and where its entry ends.
    pushed: Option<(usize, u64)>,
    /// Its worker is done with it.
    told: bool,
}

#[derive(Clone, Copy, Default)]
struct Record {
    /// The newest transaction whose write is visible.
    writer: Option<u32>,
    locked: bool,
    /// Whoever has locked it has drawn, or is about to.
    committing: bool,
}

/// Who wrote in a chunk; as the engine keeps it.
#[derive(Clone, Copy, Default)]
struct Mark {
    gsn: u64,
    lane: Option<usize>,
}

impl Mark {
    fn is_local(self, lane: usize, hardened_gsn: u64) -> bool {
        self.lane == Some(lane) || self.gsn <= hardened_gsn
    }
}

#[derive(Default)]
struct State {
    records: Vec<Record>,
    marks: Vec<Mark>,
    txns: Vec<Txn>,
    /// What some client has been told.
    told: BTreeSet<u32>,
    /// Threads in the middle of a call.
    calls: usize,
    /// The home is in the middle of telling of a completion.
    completing: bool,
    judged: Option<(u64, BTreeSet<u32>)>,
    kicked: Vec<bool>,
    clients: Vec<Vec<Client>>,
    /// What happened, for people.
    story: String,
    failure: Option<String>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Somebody who waits for an acknowledgment, and what it is about.
struct Client {
    future: Pin<Box<dyn Future<Output = Result<(), LogFailed>> + Send>>,
    woken: Arc<Woken>,
    about: BTreeSet<u32>,
}

/// See the module's documentation.
pub(crate) struct World {
    setup: Setup,
    explorer: Explorer,
    memo: Arc<Mutex<Memo>>,
    home: ModelHome,
    path: Arc<CommitPath>,
    state: Mutex<State>,
}

/// The path's clock: whoever reads it comes to a point.
struct PointClock(Arc<dyn Fn() + Send + Sync>);

impl Clock for PointClock {
    fn monotonic(&self) -> Instant {
        (self.0)();
        Instant::from_nanos(1)
    }

    fn now_micros_since_2000(&self) -> i64 {
        0
    }
}

/// One run: makes the world, lets everybody act, judges. What is wrong, if something is.
pub(crate) fn run(
    setup: Setup,
    explorer: &Explorer,
    memo: &Arc<Mutex<Memo>>,
) -> Result<(), String> {
    let world = World::new(setup, explorer, memo);
    let workers = setup.scripts.len();
    let mut tasks = Vec::new();
    for worker in 0..workers {
        let world = world.clone();
        tasks.push(shuttle::thread::spawn(move || world.work(worker)));
    }
    // Completions run side by side.
    let mut helpers: Vec<fn(&Arc<World>, usize)> = vec![World::complete, World::complete_beside];
    if setup.options.protocol == ProtocolKind::Pipelined {
        helpers.push(World::lead);
    }
    if !setup.remaps.is_empty() {
        helpers.push(World::remap);
    }
    for (number, act) in helpers.into_iter().enumerate() {
        let world = world.clone();
        tasks.push(shuttle::thread::spawn(move || {
            act(&world, workers + 1 + number);
        }));
    }
    explorer.begin(tasks.len());
    // Comes back when nobody can go on, or something is wrong.
    shuttle::thread::yield_now();
    world.judge();
    world.judge_end();
    explorer.end();
    for task in tasks {
        task.join().expect("a task that ends");
    }
    let mut state = world.state();
    match state.failure.take() {
        None => Ok(()),
        Some(failure) => Err(format!("{failure}\n{}", state.story)),
    }
}

impl World {
    fn new(setup: Setup, explorer: &Explorer, memo: &Arc<Mutex<Memo>>) -> Arc<World> {
        let this: Arc<OnceLock<Weak<World>>> = Arc::default();
        let point: Arc<dyn Fn() + Send + Sync> = {
            let this = this.clone();
            Arc::new(move || {
                if let Some(world) = this.get().and_then(Weak::upgrade) {
                    world.point();
                }
            })
        };
        let home = ModelHome::new(setup.inline, point.clone());
        let (recovered, _) = home.open(&setup.recovery());
        home.pause();
        let (env, _) = Env::simulated(1);
        let env = Env {
            clock: Arc::new(PointClock(point)),
            ..env
        };
        let workers = setup.scripts.len();
        let next = recovered.next_csn;
        let path = CommitPath::new(&setup.options, workers, recovered.lanes, next, &env);
        let scripts = setup.scripts.iter().flat_map(|scripts| scripts.iter());
        let touched = scripts.flat_map(|script| script.reads.iter().chain(script.writes));
        let records = touched.max().map_or(0, |last| last + 1);
        let world = Arc::new(World {
            setup,
            explorer: explorer.clone(),
            memo: memo.clone(),
            home,
            path: path.expect("no thread is started"),
            state: Mutex::new(State {
                records: vec![Record::default(); records],
                marks: vec![Mark::default(); records.div_ceil(CHUNK)],
                kicked: vec![false; workers],
                clients: (0..workers).map(|_| Vec::new()).collect(),
                ..State::default()
            }),
        });
        this.set(Arc::downgrade(&world)).expect("set once");
        for worker in 0..workers {
            let weak = Arc::downgrade(&world);
            let kick = move || {
                if let Some(world) = weak.upgrade() {
                    world.state().kicked[worker] = true;
                }
            };
            world
                .path
                .set_wake_hook(WorkerId(worker as u16), Arc::new(kick));
        }
        world
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no task panics in the world")
    }

    /// Judges, and lets somebody else have the turn.
    fn point(&self) {
        if self.explorer.is_running() {
            self.judge();
            self.explorer.point();
        }
    }

    fn tell(&self, what: std::fmt::Arguments<'_>) {
        let mut state = self.state();
        writeln!(state.story, "  {what}").expect("a string takes everything");
    }

    fn fail(&self, what: String) {
        self.state().failure.get_or_insert(what);
        self.explorer.end();
    }

    /// A call of the path.
    fn call<R>(&self, what: impl FnOnce(&CommitPath) -> R) -> R {
        self.state().calls += 1;
        let result = what(&self.path);
        self.state().calls -= 1;
        result
    }

    // --- Who acts ---

    /// The home.
    fn complete(self: &Arc<World>, task: usize) {
        let world = self.clone();
        self.complete_when(task, move || world.home.waiting() > 0);
    }

    /// Another thread of the home, while the first one is in the middle of telling of a completion.
    fn complete_beside(self: &Arc<World>, task: usize) {
        let world = self.clone();
        self.complete_when(task, move || {
            world.home.waiting() > 0 && world.state().completing
        });
    }

    fn complete_when(&self, task: usize, want: impl Fn() -> bool + Clone + Send + 'static) {
        while self.explorer.wait(task, want.clone()) {
            let index = self.explorer.choose(self.home.waiting());
            self.tell(format_args!("home: completes append {index}"));
            let other = std::mem::replace(&mut self.state().completing, true);
            self.call(|_| self.home.complete_at(index));
            self.state().completing = other;
            self.point();
        }
    }

    /// The background thread.
    fn lead(self: &Arc<World>, task: usize) {
        let world = self.clone();
        let wanted = move || world.path.wants_round();
        while self.explorer.wait(task, wanted.clone()) {
            self.tell(format_args!("committer: a round"));
            self.call(CommitPath::background_round);
            self.point();
        }
    }

    /// Whoever decides how many lanes are used.
    fn remap(self: &Arc<World>, task: usize) {
        for &lanes in self.setup.remaps {
            if !self.explorer.wait(task, || true) {
                return;
            }
            self.tell(format_args!("lanes in use: {lanes}"));
            assert!(self.path.use_lanes(lanes), "lanes that are not fixed");
            self.point();
        }
    }

    fn work(self: &Arc<World>, worker: usize) {
        for script in self.setup.scripts[worker] {
            let lane = self.path.lane_of(WorkerId(worker as u16));
            if lane.is_dirty() && self.explorer.dares() {
                self.idle(worker);
            }
            self.transact(worker, script);
            self.poll_clients(worker);
        }
        self.idle(worker);
        loop {
            let world = self.clone();
            let roused = move || {
                let state = world.state();
                let mut clients = state.clients[worker].iter();
                state.kicked[worker] || clients.any(|c| c.woken.0.load(Ordering::SeqCst))
            };
            if !self.explorer.wait(worker + 1, roused) {
                return;
            }
            self.poll_clients(worker);
            if std::mem::take(&mut self.state().kicked[worker]) {
                self.idle(worker);
            }
        }
    }

    fn idle(&self, worker: usize) {
        self.tell(format_args!("worker {worker}: idle"));
        let again = self.call(|path| path.idle(WorkerId(worker as u16), true, None));
        assert_eq!(again, None, "nothing in the model waits for time to pass");
        self.point();
    }

    fn transact(self: &Arc<World>, worker: usize, script: &Script) {
        let id = WorkerId(worker as u16);
        let (world, touched) = (self.clone(), *script);
        let free = move || {
            let state = world.state();
            let reads = touched
                .reads
                .iter()
                .all(|at| !state.records[*at].committing);
            reads && touched.writes.iter().all(|at| !state.records[*at].locked)
        };
        if !self.explorer.wait(worker + 1, free) {
            return;
        }
        let mut dependency_set = self.path.new_dependency_set();
        let depends_on = self.cover(worker, script, &mut dependency_set);
        self.point();
        if script.writes.is_empty() {
            let commit_wait = self.path.commit_wait(&dependency_set);
            self.tell(format_args!("worker {worker}: has read {depends_on:?}"));
            return self.ask(worker, commit_wait, depends_on);
        }
        let mut asked = RoomRequest::default();
        let place = loop {
            match self.call(|path| path.room(id, self.setup.record_bytes, &mut asked)) {
                Ok(place) => break place,
                Err(NoRoom::Full) => {}
                Err(error) => return self.fail(format!("no room: {error}")),
            }
            if self.setup.gives_up {
                self.tell(format_args!("worker {worker}: gives up"));
                for at in script.writes {
                    self.state().records[*at].locked = false;
                }
                return;
            }
            let woken = Arc::new(Woken(AtomicBool::new(false)));
            let waker = Waker::from(woken.clone());
            self.tell(format_args!("worker {worker}: waits for room"));
            let bytes = self.setup.record_bytes;
            match self.call(|path| path.poll_room(id, bytes, &mut asked, &waker)) {
                Poll::Ready(Ok(place)) => break place,
                Poll::Ready(Err(error)) => return self.fail(format!("no room: {error}")),
                Poll::Pending => {}
            }
            // While it waits it has nothing else to do.
            self.idle(worker);
            let roused = move || woken.0.load(Ordering::SeqCst);
            if !self.explorer.wait(worker + 1, roused) {
                return;
            }
        };
        for at in script.writes {
            self.state().records[*at].committing = true;
        }
        let (csn, reservation) = self.path.draw(id);
        let number = {
            let mut state = self.state();
            state.txns.push(Txn {
                csn,
                depends_on,
                pushed: None,
                told: false,
            });
            state.txns.len() as u32 - 1
        };
        self.tell(format_args!(
            "worker {worker}: transaction {number} draws {csn}"
        ));
        self.point();
        let mut records = vec![0; self.setup.record_bytes];
        records[..4].copy_from_slice(&number.to_le_bytes());
        let body = PushBody::Inline(&records);
        // The server takes the lane's lock before it draws, and others can do less while somebody has drawn. What may
        // happen here is more than what may happen there.
        let pushed = self.call(|path| {
            let entrance = path.enter(place, &mut dependency_set);
            path.push(
                id,
                entrance,
                (csn, reservation),
                &mut dependency_set,
                body,
                0,
            )
        });
        self.tell(format_args!("worker {worker}: {number} is pushed"));
        self.state().txns[number as usize].pushed = Some((pushed.lane, pushed.end.0));
        self.point();
        self.show(number, script, pushed.lane, pushed.gsn);
        self.tell(format_args!("worker {worker}: {number} is visible"));
        self.point();
        self.call(|path| path.precommitted(id, &pushed));
        self.state().txns[number as usize].told = true;
        self.tell(format_args!("worker {worker}: {number} is precommitted"));
        self.point();
        self.ask(worker, CommitWait::of(csn), [number].into());
    }

    /// Looks at what it reads and what it will overwrite, and locks that.
    fn cover(
        &self,
        worker: usize,
        script: &Script,
        dependency_set: &mut DependencySet,
    ) -> BTreeSet<u32> {
        let path = &self.path;
        let mut state = self.state();
        let mut depends_on = BTreeSet::new();
        let lane = path.lane_number_of(WorkerId(worker as u16));
        for &at in script.reads.iter().chain(script.writes) {
            if let Some(writer) = state.records[at].writer {
                depends_on.insert(writer);
                dependency_set.cover(state.txns[writer as usize].csn, &**path);
                if path.tracking() == Tracking::Gsn {
                    let mark = state.marks[at / CHUNK];
                    dependency_set.cover_chunk(
                        mark.gsn,
                        mark.is_local(lane, path.hardened_gsn()),
                        lane,
                    );
                }
            }
        }
        for &at in script.writes {
            state.records[at].locked = true;
        }
        depends_on
    }

    /// Its writes become visible.
    fn show(&self, number: u32, script: &Script, lane: usize, gsn: u64) {
        let mut state = self.state();
        for &at in script.writes {
            let mark = &mut state.marks[at / CHUNK];
            let local = mark.is_local(lane, self.path.hardened_gsn());
            *mark = Mark {
                gsn: mark.gsn.max(gsn),
                lane: local.then_some(lane),
            };
            state.records[at] = Record {
                writer: Some(number),
                ..Record::default()
            };
        }
    }

    fn ask(&self, worker: usize, commit_wait: CommitWait, about: BTreeSet<u32>) {
        let path = self.path.clone();
        let client = Client {
            future: Box::pin(async move { path.acknowledged(commit_wait).await }),
            woken: Arc::new(Woken(AtomicBool::new(true))),
            about,
        };
        self.state().clients[worker].push(client);
        self.poll_clients(worker);
    }

    /// Polls who was woken; who is ready is told.
    fn poll_clients(&self, worker: usize) {
        let clients = std::mem::take(&mut self.state().clients[worker]);
        for mut client in clients {
            let mut ready = false;
            if client.woken.0.swap(false, Ordering::SeqCst) {
                let waker = Waker::from(client.woken.clone());
                let polled = client
                    .future
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker));
                match polled {
                    Poll::Ready(Ok(())) => ready = true,
                    Poll::Ready(Err(error)) => self.fail(error.to_string()),
                    Poll::Pending => {}
                }
            }
            if ready {
                self.tell(format_args!("worker {worker}: hears of {:?}", client.about));
                self.state().told.extend(&client.about);
            } else {
                self.state().clients[worker].push(client);
            }
        }
        self.point();
    }

    // --- Who judges ---

    /// What must hold now, and after a crash now.
    fn judge(&self) {
        let state = self.state();
        if state.failure.is_some() {
            return;
        }
        let mut safe = state.told.clone();
        for (number, txn) in state.txns.iter().enumerate() {
            if self.path.is_reached(&CommitWait::of(txn.csn)) {
                safe.insert(number as u32);
            }
        }
        let false_wait = self.false_wait(&state, &safe);
        let judged = Some((self.home.version(), safe));
        if state.judged == judged && false_wait.is_none() {
            return;
        }
        drop(state);
        if let Some(number) = false_wait {
            return self.fail(format!("{number} waits for nothing"));
        }
        let safe = judged
            .as_ref()
            .map(|(_, safe)| safe.clone())
            .unwrap_or_default();
        self.state().judged = judged;
        for survivors in self.home.crashes(&self.memo, &self.setup.recovery()) {
            let missing = safe.difference(&survivors).next();
            if let Some(number) = missing {
                return self.fail(format!(
                    "{number} is Committed, a crash leaves {survivors:?}"
                ));
            }
            let state = self.state();
            for number in &*survivors {
                let Some(txn) = state.txns.get(*number as usize) else {
                    continue;
                };
                if let Some(lost) = txn.depends_on.difference(&survivors).next() {
                    let what = format!("a crash leaves {number} without {lost}");
                    drop(state);
                    return self.fail(what);
                }
            }
        }
    }

    /// In `exact`, a hardened transaction all of whose predecessors are Committed, and which is not.
    fn false_wait(&self, state: &State, safe: &BTreeSet<u32>) -> Option<u32> {
        let exact = self.setup.options.tracking == Tracking::Exact;
        if !exact || !self.setup.acknowledges_at_once() || state.calls > 0 {
            return None;
        }
        let mut txns = state.txns.iter().enumerate();
        let found = txns.find(|(number, txn)| {
            txn.told
                && txn
                    .pushed
                    .is_some_and(|(lane, end)| self.path.lanes()[lane].hardened().0 >= end)
                && txn.depends_on.is_subset(safe)
                && !safe.contains(&(*number as u32))
        });
        found.map(|(number, _)| number as u32)
    }

    /// Nobody can go on: everybody must have been told.
    fn judge_end(&self) {
        let waits = {
            let state = self.state();
            let clients = state.clients.iter().flatten();
            clients.map(|client| client.about.clone()).next()
        };
        if let Some(about) = waits
            && self.explorer.is_running()
        {
            let lanes: Vec<_> = self.path.lanes().iter().map(|lane| lane.status()).collect();
            let wanted = self.path.wants_round();
            self.fail(format!(
                "nobody tells about {about:?}; a round is wanted: {wanted}; {lanes:?}"
            ));
        }
    }
}
