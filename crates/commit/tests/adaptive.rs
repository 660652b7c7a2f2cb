//! Adaptive against fixed, on the model of S3 Express in virtual time: clients in a closed loop over the real path,
//! lanes and home. The same seeds give the same run, so what is counted is asserted: appends (money), and how long
//! commits took.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use logstead_commit::adapt::TunedSetting;
use logstead_commit::{
    AdaptiveSettings, CommitOptions, CommitPath, CommitWait, LogFailed, PushBody,
};
use logstead_env::{Clock, Env, SimClock};
use logstead_home::simulated::Model;
use logstead_home::{LaneAppends, LogHome, SimulatedHome, SimulatedOptions};
use logstead_types::WorkerId;
use logstead_wal::recovery::{self, RecoveryOptions};
use logstead_wal::{LaneConfig, RoomRequest};

/// What a transaction takes on its worker, and its records.
const EXECUTION_NS: u64 = 60_000;
const RECORD: [u8; 200] = [7; 200];

/// Who was woken.
type Woken = Arc<Mutex<Vec<usize>>>;

struct Bell {
    client: usize,
    woken: Woken,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.lock().expect("no panic").push(self.client);
    }
}

/// Ready when the client is told.
type Acknowledgment = Pin<Box<dyn Future<Output = Result<(), LogFailed>>>>;

struct Client {
    worker: usize,
    began_at: u64,
    bell: Arc<Bell>,
    waits: Option<Acknowledgment>,
}

#[derive(Default)]
struct Worker {
    ready: VecDeque<usize>,
    /// Whose transaction it runs, and until when.
    runs: Option<(usize, u64)>,
    owes_idle: bool,
    kicked: Arc<AtomicBool>,
    ask_at: Option<u64>,
}

/// What came of a stretch of time.
#[derive(Debug)]
struct Figures {
    commits: u64,
    appends: u64,
    mean_us: u64,
    p50_us: u64,
    p99_us: u64,
    lanes_in_use: usize,
}

struct World {
    clock: Arc<SimClock>,
    home: SimulatedHome,
    path: Arc<CommitPath>,
    workers: Vec<Worker>,
    clients: Vec<Client>,
    woken: Woken,
    latencies: Vec<u64>,
}

impl World {
    fn new(model: &str, commit: &CommitOptions, workers: usize, clients: usize) -> World {
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(1);
        let env = Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..env
        };
        let options = SimulatedOptions::new(Model::named(model).expect("a model"), 11);
        let home = SimulatedHome::in_virtual_time(&options, &env, Arc::clone(&clock));
        let home = home.expect("opens");
        let log = LogHome::from(home.clone());
        let config = RecoveryOptions {
            lanes: commit.lanes(workers) as u16,
            lane: LaneConfig {
                buffer_size_bytes: commit.lane_buffer_bytes,
                blocks_in_flight_max: Some(commit.blocks_in_flight_max),
                allocation_limit: None,
            },
            accept_data_loss: false,
            lease: logstead_wal::lease::LeaseOptions::default(),
        };
        let recovered = recovery::open(&log, &env, &config, &mut |_, _| Ok(())).expect("recovers");
        let next = recovered.next_csn;
        let path = CommitPath::new(commit, workers, recovered.lanes, next, &env).expect("starts");
        let mut world = World {
            clock,
            home,
            path,
            workers: (0..workers).map(|_| Worker::default()).collect(),
            clients: Vec::new(),
            woken: Woken::default(),
            latencies: Vec::new(),
        };
        for (number, worker) in world.workers.iter().enumerate() {
            let kicked = worker.kicked.clone();
            let kick = move || kicked.store(true, Ordering::SeqCst);
            world
                .path
                .set_wake_hook(WorkerId(number as u16), Arc::new(kick));
        }
        world.add_clients(clients);
        world
    }

    fn add_clients(&mut self, clients: usize) {
        for _ in 0..clients {
            let number = self.clients.len();
            let worker = number % self.workers.len();
            self.clients.push(Client {
                worker,
                began_at: self.now(),
                bell: Arc::new(Bell {
                    client: number,
                    woken: self.woken.clone(),
                }),
                waits: None,
            });
            self.workers[worker].ready.push_back(number);
        }
    }

    fn now(&self) -> u64 {
        self.clock.monotonic().as_nanos()
    }

    fn appends(&self) -> u64 {
        let lanes = self.path.lanes().iter();
        lanes.map(|lane| lane.counters().blocks).sum()
    }

    /// Lets so much time pass.
    fn run(&mut self, time: Duration) -> Figures {
        let end = self.now() + time.as_nanos() as u64;
        let appends = self.appends();
        self.latencies.clear();
        while self.now() < end {
            self.poll_clients();
            self.start();
            self.pass_time();
        }
        self.latencies.sort_unstable();
        let commits = self.latencies.len() as u64;
        assert!(commits > 0, "somebody commits");
        Figures {
            commits,
            appends: self.appends() - appends,
            mean_us: self.latencies.iter().sum::<u64>() / commits / 1000,
            p50_us: self.latencies[commits as usize / 2] / 1000,
            p99_us: self.latencies[commits as usize * 99 / 100] / 1000,
            lanes_in_use: self.path.lanes_in_use(),
        }
    }

    fn poll_clients(&mut self) {
        let woken = std::mem::take(&mut *self.woken.lock().expect("no panic"));
        for number in woken {
            let now = self.now();
            let client = &mut self.clients[number];
            let Some(waits) = &mut client.waits else {
                continue;
            };
            let waker = Waker::from(client.bell.clone());
            match waits.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => {}
                Poll::Ready(told) => {
                    told.expect("a log that does not fail");
                    client.waits = None;
                    self.latencies.push(now - client.began_at);
                    client.began_at = now;
                    self.workers[client.worker].ready.push_back(number);
                }
            }
        }
    }

    /// Workers take what is ready, or are idle.
    fn start(&mut self) {
        for number in 0..self.workers.len() {
            let now = self.now();
            let id = WorkerId(number as u16);
            let worker = &mut self.workers[number];
            worker.owes_idle |= worker.kicked.swap(false, Ordering::SeqCst);
            if worker.runs.is_some() {
                continue;
            }
            if let Some(client) = worker.ready.pop_front() {
                self.path.busy(id);
                worker.runs = Some((client, now + EXECUTION_NS));
                worker.ask_at = None;
            } else if worker.owes_idle || worker.ask_at.is_some_and(|at| at <= now) {
                worker.owes_idle = false;
                let again = self.path.idle(id, true, None);
                worker.ask_at = again.map(|time| now + (time.as_nanos() as u64).max(1000));
            }
        }
    }

    /// To whatever is next.
    fn pass_time(&mut self) {
        let is_due = |worker: &Worker| worker.kicked.load(Ordering::SeqCst);
        let woken = !self.woken.lock().expect("no panic").is_empty();
        if woken || self.workers.iter().any(is_due) {
            return;
        }
        let runs = self.workers.iter().filter_map(|worker| worker.runs);
        let asks = self.workers.iter().filter_map(|worker| worker.ask_at);
        let next = runs.map(|(_, until)| until).chain(asks).min();
        let storage = self.home.next_event().map(|at| at.as_nanos());
        if storage.is_some_and(|at| next.is_none_or(|next| at <= next)) {
            self.home.step();
            return;
        }
        let next = next.expect("somebody goes on");
        self.clock
            .advance(Duration::from_nanos(next.saturating_sub(self.now())));
        for number in 0..self.workers.len() {
            let now = self.now();
            if let Some((client, _)) = self.workers[number]
                .runs
                .take_if(|(_, until)| *until <= now)
            {
                self.workers[number].owes_idle = true;
                self.commit(number, client);
            }
        }
    }

    fn commit(&mut self, worker: usize, client: usize) {
        let (path, id) = (&self.path, WorkerId(worker as u16));
        let place = path
            .room(id, RECORD.len(), &mut RoomRequest::default())
            .expect("buffers are large");
        let mut dependency_set = path.new_dependency_set();
        let entrance = path.enter(place, &mut dependency_set);
        let drawn = path.draw(id);
        let csn = drawn.0;
        let body = PushBody::Inline(&RECORD);
        let began_at = self.clients[client].began_at;
        let pushed = path.push(id, entrance, drawn, &mut dependency_set, body, began_at);
        path.precommitted(id, &pushed);
        path.between_tasks(id);
        let client = &mut self.clients[client];
        let path = Arc::clone(path);
        client.waits = Some(Box::pin(async move {
            path.acknowledged(CommitWait::of(csn)).await
        }));
        client.bell.clone().wake();
    }
}

/// What suits the home, and nothing of it moves.
fn fixed(model: &str, workers_per_lane: usize) -> CommitOptions {
    CommitOptions {
        workers_per_lane,
        adapt: AdaptiveSettings::NOTHING,
        ..adaptive(model)
    }
}

fn adaptive(model: &str) -> CommitOptions {
    let clock = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(1);
    let options = SimulatedOptions::new(Model::named(model).expect("a model"), 1);
    let home = SimulatedHome::in_virtual_time(&options, &env, clock).expect("opens");
    let options = CommitOptions::defaults_for(&home.capabilities());
    assert_eq!(options.adapt, AdaptiveSettings::ALL);
    options
}

const EXPRESS: &str = "s3express";
const WARM_UP: Duration = Duration::from_secs(10);
const MEASURED: Duration = Duration::from_secs(5);

/// Once it has come to rest.
fn figures(model: &str, commit: &CommitOptions, workers: usize, clients: usize) -> Figures {
    let mut world = World::new(model, commit, workers, clients);
    // Periods are longer where appends are.
    world.run(if model == EXPRESS {
        WARM_UP
    } else {
        WARM_UP * 4
    });
    let decided = world.path.adaptive().decisions.len();
    let figures = world.run(MEASURED);
    let all = world.path.adaptive();
    println!(
        "{model}, {workers} workers, {} per lane, {clients} clients: {figures:?}",
        commit.workers_per_lane
    );
    for kept in &all.decisions {
        let decision = &kept.decision;
        println!(
            "  {} {} -> {}: {}",
            decision.what.name(),
            decision.from,
            decision.to,
            decision.reason
        );
    }
    assert_eq!(decided, all.decisions.len(), "it has come to rest");
    figures
}

/// One append for each commit, and no other wait: neither time-out nor gathering.
#[test]
fn one_client_waits_for_its_append_only() {
    let all = figures(EXPRESS, &adaptive(EXPRESS), 8, 1);
    assert!(all.appends.abs_diff(all.commits) <= 1, "{all:?}");
    // 8 ms is the median of the model, and its appends vary by a tenth.
    assert!(all.p50_us < 8_400 && all.mean_us < 9_000, "{all:?}");
    // One append in a hundred is a straggler of up to eight times as long.
    assert!(all.p99_us < 8 * 9_000, "{all:?}");
    assert_eq!(all.lanes_in_use, 1);
}

/// Beside the fixed numbers of lanes there are: nobody has a much better median, and who has a lane for each worker
/// pays for several times as many appends.
#[test]
fn many_clients_cost_fewer_appends_and_hardly_any_time() {
    for model in [EXPRESS, "s3standard"] {
        for clients in [16, 64] {
            let all = figures(model, &adaptive(model), 8, clients);
            let of_fixed = [1, 2, 8].map(|n| figures(model, &fixed(model, n), 8, clients));
            let per_commit = |of: &Figures| of.appends as f64 / of.commits as f64;
            let each = &of_fixed[0];
            assert!(
                per_commit(&all) * 2.0 < per_commit(each),
                "{all:?} {each:?}"
            );
            for other in &of_fixed {
                assert!(all.p50_us * 100 <= other.p50_us * 125, "{all:?} {other:?}");
                assert!(all.commits * 100 >= other.commits * 80, "{all:?} {other:?}");
            }
        }
    }
}

/// The home becomes five times as slow and quick again, with clients coming and going: what waits follows, and nobody
/// is forgotten on the way.
#[test]
fn latency_and_load_change_and_nobody_is_forgotten() {
    let mut world = World::new(EXPRESS, &adaptive(EXPRESS), 8, 1);
    world.run(WARM_UP);
    world.add_clients(63);
    world.run(WARM_UP);
    let before = world.path.flush_timeout();
    for lane in world.path.lanes() {
        world.home.slow_down(lane.id(), 5.0);
    }
    let slow = world.run(WARM_UP);
    assert!(slow.p50_us > 35_000, "{slow:?}");
    assert!(world.path.flush_timeout() > before * 3);
    for lane in world.path.lanes() {
        world.home.slow_down(lane.id(), 1.0);
    }
    world.run(WARM_UP);
    assert!(world.path.flush_timeout() < before * 3 / 2);
    let decisions = world.path.adaptive().decisions;
    let of = |what| {
        decisions
            .iter()
            .filter(|kept| kept.decision.what == what)
            .count()
    };
    assert!(of(TunedSetting::FlushTimeout) >= 2 && of(TunedSetting::Lanes) >= 1);
    // Every client goes on to the end.
    for client in &mut world.clients {
        client.began_at = 0;
    }
    world.run(Duration::from_secs(5));
    assert!(world.clients.iter().all(|client| client.began_at > 0));
}
