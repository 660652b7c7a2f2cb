//! The thread that follows the log: opens engine and catalog, applies what comes, and says when it cannot go on.
//!
//! It looks at the log every `replica_poll_interval`, and less and less often while nothing comes. After an error that
//! may pass it looks again, with growing pauses; sessions read what there is meanwhile.

use super::pages::PageWriter;
use super::promote::manifest_of;
use super::round_choice::{self, RoundChoice, RoundTimes};
use super::rows;
use super::stream::{FollowerLatch, StreamLink, StreamReceiver, Wakeup};
use crate::branch::open_branch;
use crate::commit_settings;
use crate::config::Config;
use crate::open::{Failure, cached, fault_threads, gives_first_password, place, proofs};
use crate::{EXIT_FAILURE, EXIT_USAGE};
use logstead_checkpoint::BranchError;
use logstead_engine::{
    Engine, EngineOptions, Evictor, Replica, ReplicaBatch, ReplicaError, server_identity,
};
use logstead_env::{Env, JoinHandle, abort_on_panic};
use logstead_home::LogHome;
use logstead_sql_catalog::{
    CatalogStore, ReplicaCatalog, ReplicaPhase, ReplicaStart, ReplicaStatus,
};
use logstead_sql_ddl::pg_catalog::system_catalog;
use logstead_sql_session::FollowedLog;
use logstead_sql_types::error::SqlError;
use logstead_types::{Csn, DatabaseId};
use logstead_wal::recovery::RecoveryError;
use logstead_wal::recovery::follow::FollowProgress;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{info, warn};

/// The pause between two looks, unless it is set: at a home on this machine, and at a store, whose requests cost time
/// and money.
const LOCAL_PAUSE: Duration = Duration::from_millis(10);
const STORE_PAUSE: Duration = Duration::from_millis(100);
/// While nothing comes the pause grows to so many times that.
const IDLE_FACTOR: u32 = 16;
/// The pause before a look that the stream gives reason for, unless looks are more frequent anyhow.
const GAP_PAUSE: Duration = Duration::from_millis(100);
/// Pauses after errors that may pass.
const ERROR_PAUSE_MIN: Duration = Duration::from_millis(100);
const ERROR_PAUSE_MAX: Duration = Duration::from_secs(5);
/// So long it waits for memory for one entry, as long as PostgreSQL's standbys wait for a query by default; then it
/// begins again, without the sessions whose snapshots may hold it.
const MEMORY_PATIENCE: Duration = Duration::from_secs(30);
/// Tries to open where what is read goes, because the primary takes a checkpoint meanwhile.
const OPEN_TRIES: usize = 5;

/// What it has opened.
pub(super) struct ReplicaEngine {
    pub(super) engine: Engine,
    pub(super) store: Arc<CatalogStore>,
    /// The settings, with what is in force.
    pub(super) values: BTreeMap<String, String>,
}

/// Why it does not go on.
pub(super) enum FollowEnd {
    /// What it would read next is gone: another engine begins at the newest checkpoint. Everything below `shown` has
    /// been visible.
    Restart {
        why: String,
        shown: Csn,
        /// There is no memory for what comes next.
        for_memory: bool,
    },
    /// Nothing helps.
    Failed(String),
}

/// The thread.
pub(super) struct FollowerThread {
    /// It ends when this is dropped.
    stop: StopOnDrop,
    pub(super) ended: oneshot::Receiver<FollowEnd>,
    thread: JoinHandle,
}

/// Ends the thread that follows the log.
struct StopOnDrop(Arc<FollowerLatch>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What came of opening; nothing if it was stopped.
type OpenReceiver = oneshot::Receiver<Result<ReplicaEngine, (u8, String)>>;

impl FollowerThread {
    /// Starts it. A replica before has shown everything below `shown`; so many in a row ended for want of memory.
    pub(super) fn start(
        config: &Arc<Config>,
        env: &Env,
        status: &Arc<ReplicaStatus>,
        database: &Arc<OnceLock<DatabaseId>>,
        shown: Csn,
        memory_restarts: u32,
    ) -> std::io::Result<(FollowerThread, OpenReceiver)> {
        let latch = Arc::new(FollowerLatch::default());
        let (open, opened) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let follow = LogFollower {
            config: Arc::clone(config),
            env: env.clone(),
            status: Arc::clone(status),
            database: Arc::clone(database),
            latch: Arc::clone(&latch),
            shown,
            memory_restarts,
        };
        let thread = env.spawn("replica", None, move || {
            // What sessions read would grow old without a word.
            let _watch = abort_on_panic("following the log");
            if let Some(ending) = follow.run(open) {
                // Nobody may be left to hear it.
                let _heard = end.send(ending);
            }
        })?;
        let following = FollowerThread {
            stop: StopOnDrop(latch),
            ended,
            thread,
        };
        Ok((following, opened))
    }

    /// Ends the thread and waits for its end.
    pub(super) fn join(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            warn!("the thread that follows the log panicked");
        }
    }
}

/// An open replica.
struct OpenReplica<'h> {
    /// Ends before the engine does.
    _evictor: Evictor,
    replica: Replica<'h>,
    store: Arc<CatalogStore>,
    catalogs: Catalogs,
}

/// The catalogs, and why they are not what the log says any more.
struct Catalogs {
    catalog: Box<ReplicaCatalog>,
    changes: u64,
    failed: Option<SqlError>,
}

impl Catalogs {
    fn take(&mut self, batch: &ReplicaBatch<'_>) {
        // After a failure no later snapshot has a catalog.
        if self.failed.is_some() {
            return;
        }
        match self.catalog.take(batch) {
            Ok(changed) => self.changes += u64::from(changed),
            Err(error) => self.failed = Some(error),
        }
    }
}

/// Why nothing is open.
enum Refusal {
    Replica(ReplicaError),
    Catalog(SqlError),
    /// Its thread does not start.
    Evictor(std::io::Error),
}

impl Refusal {
    /// May it be another time? If not at once, it is told after some tries.
    fn may_pass(&self) -> bool {
        match self {
            Refusal::Replica(error) => {
                matches!(
                    error,
                    ReplicaError::Removed { .. } | ReplicaError::Log(RecoveryError::Refused(_))
                ) || error.may_repeat() && !matches!(error, ReplicaError::Memory(_))
            }
            Refusal::Evictor(_) => true,
            Refusal::Catalog(error) => error.code() == logstead_types::SqlState::SNAPSHOT_TOO_OLD,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Replica(error) => error.fmt(f),
            Refusal::Evictor(error) => write!(f, "cannot start the evictor: {error}"),
            Refusal::Catalog(error) => write!(f, "the catalog: {}", error.fields().message),
        }
    }
}

/// The home, to be read as servers come and go there.
pub(super) fn open_home(config: &Config, env: &Env) -> Result<LogHome, BranchError> {
    let url = place(config);
    let open = |url: &str| logstead_home::open_to_follow(url, env);
    match &config.branch {
        Some(branch) => open_branch(&url, branch, env, open),
        None => Ok(open(&url)?),
    }
}

/// What it reads, as its server is told.
fn followed_log(replica: &Replica<'_>) -> FollowedLog {
    let manifest = replica.manifest();
    FollowedLog {
        database: manifest.database,
        epoch: replica.progress().epoch,
    }
}

/// Reads the log of a server at work once, as a replica begins: what this program cannot read there is an error, and so
/// is what would keep it from serving there. Gives the number that the server has left at the home.
pub(crate) fn readable(config: &Config, env: &Env) -> Result<Option<u64>, Failure> {
    let home = open_home(config, env);
    let home = home.map_err(|error| (EXIT_FAILURE, error.to_string()))?;
    let follower = LogFollower {
        config: Arc::new(config.clone()),
        env: env.clone(),
        status: Arc::new(ReplicaStatus::new(place(config))),
        database: Arc::default(),
        latch: Arc::default(),
        shown: Csn::ZERO,
        memory_restarts: 0,
    };
    let options = follower.options(&home);
    let (options, _) = options.map_err(|message| (EXIT_USAGE, message))?;
    let opened = follower
        .open_patiently(&options, &home)
        .map_err(|refusal| {
            let what = format!("the log cannot be read: {refusal}");
            (EXIT_FAILURE, what)
        })?;
    if let Some(opened) = opened
        && !gives_first_password()
    {
        proofs(config, &opened.store).map_err(|message| (EXIT_USAGE, message))?;
    }
    server_identity::published(home.names.as_ref())
        .map_err(|error| (EXIT_FAILURE, error.to_string()))
}

struct LogFollower {
    config: Arc<Config>,
    env: Env,
    status: Arc<ReplicaStatus>,
    /// Set once anything is followed.
    database: Arc<OnceLock<DatabaseId>>,
    latch: Arc<FollowerLatch>,
    shown: Csn,
    /// So many before this one ended for want of memory, one after the other.
    memory_restarts: u32,
}

impl LogFollower {
    /// Waits that long; false if the thread is to end.
    fn pause(&self, time: Duration) -> bool {
        self.latch.pause(time)
    }

    fn now(&self) -> i64 {
        self.env.clock.now_micros_since_2000()
    }

    /// Has another replica been here before?
    fn goes_on(&self) -> bool {
        self.shown > Csn::ZERO
    }

    fn note_error(&self, error: &str) {
        let at = self.now();
        let mut is_new = false;
        self.status.update(|report| {
            let before = report.last_error.replace((error.to_owned(), at));
            is_new = before.is_none_or(|(before, _)| before != error);
        });
        if is_new {
            warn!("the log cannot be followed now, and is looked at again: {error}");
        }
    }

    fn open_home(&self) -> Result<LogHome, BranchError> {
        let home = open_home(&self.config, &self.env)?;
        Ok(cached(home, &self.config, &self.env))
    }

    /// The home, once it can be had; nothing if the thread is to end.
    fn home(&self) -> Result<Option<LogHome>, String> {
        loop {
            match self.open_home() {
                Ok(home) => return Ok(Some(home)),
                Err(error) if self.goes_on() => {
                    self.note_error(&error.to_string());
                    if !self.pause(ERROR_PAUSE_MAX) {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Its life. Gives why it has ended, if that was not said otherwise.
    fn run(self, open: oneshot::Sender<Result<ReplicaEngine, (u8, String)>>) -> Option<FollowEnd> {
        let refuse = |open: oneshot::Sender<_>, why: String| {
            // Nobody waits if the server stops.
            let _heard = open.send(Err((EXIT_FAILURE, format!("replica_of: {why}"))));
            None
        };
        let home = match self.home() {
            Ok(Some(home)) => home,
            Ok(None) => return None,
            Err(why) => return refuse(open, why),
        };
        if !self.goes_on() {
            info!("a replica of {}", home.describe());
        }
        let (options, values) = match self.options(&home) {
            Ok(options) => options,
            Err(message) => {
                let _heard = open.send(Err((crate::EXIT_USAGE, message)));
                return None;
            }
        };
        let mut opened = match self.open_patiently(&options, &home) {
            Ok(Some(opened)) => opened,
            Ok(None) => return None,
            Err(refusal) => return refuse(open, refusal.to_string()),
        };
        if let Ok(Some(manifest)) = manifest_of(&home) {
            self.database.get_or_init(|| manifest.database);
        }
        let progress = opened.replica.progress();
        self.tell(&opened, progress, ReplicaPhase::Following, false);
        let handed = open.send(Ok(ReplicaEngine {
            engine: opened.replica.engine().clone(),
            store: Arc::clone(&opened.store),
            values,
        }));
        if handed.is_err() {
            return None;
        }
        let receiver = match self.receiver(&home) {
            Ok(receiver) => receiver,
            Err(why) => return Some(FollowEnd::Failed(why)),
        };
        let link = receiver.as_ref().map(|receiver| Arc::clone(&receiver.link));
        let mut pages = link
            .as_ref()
            .and_then(|link| PageWriter::new(&self.config, &self.env, link));
        if pages.is_some() {
            opened.replica.writes_pages();
        }
        if let Some(link) = link.as_ref().filter(|_| pages.is_some())
            && let Err(error) = rows::start(&opened.replica, &self.env, link)
        {
            return Some(FollowEnd::Failed(format!(
                "cannot start the threads that tell rows: {error}"
            )));
        }
        let ending = self.follow(&mut opened, &home, link.as_deref(), pages.as_mut());
        if let Some(pages) = &mut pages {
            pages.disconnected(&opened.replica);
        }
        drop(receiver);
        ending
    }

    /// How the engine is opened, and all settings.
    fn options(&self, home: &LogHome) -> Result<(EngineOptions, BTreeMap<String, String>), String> {
        let config = &self.config;
        let mut values = config.values.clone();
        let commit = commit_settings::options(&values, &home.capabilities())?;
        commit_settings::show(&mut values, &commit);
        let fault_threads = fault_threads(&values, &home.capabilities());
        values.insert("fault_threads".to_owned(), fault_threads.to_string());
        values.insert("in_hot_standby".to_owned(), "on".to_owned());
        let pause = self.shortest_pause(home).as_millis().to_string();
        values.insert("replica_poll_interval".to_owned(), pause);
        let options = EngineOptions {
            workers: config.workers,
            commit,
            memory_bytes: config.memory_bytes,
            absent_one_in: config.absent_one_in,
            fault_threads,
            ..EngineOptions::default()
        };
        Ok((options, values))
    }

    fn shortest_pause(&self, home: &LogHome) -> Duration {
        let by_home = match home.capabilities().leased {
            true => STORE_PAUSE,
            false => LOCAL_PAUSE,
        };
        self.config.replica_poll_interval.unwrap_or(by_home)
    }

    /// Opens engine and catalog, and reads on until nobody can find less than before; nothing if the thread is to end.
    fn open_patiently<'h>(
        &self,
        options: &EngineOptions,
        home: &'h LogHome,
    ) -> Result<Option<OpenReplica<'h>>, Refusal> {
        let mut tries = 0;
        let mut has_waited = false;
        loop {
            let refusal = match self.open(options, home) {
                Ok(Some(mut opened)) => match self.catch_up(&mut opened) {
                    Ok(true) => return Ok(Some(opened)),
                    Ok(false) => return Ok(None),
                    Err(refusal) => refusal,
                },
                Ok(None) => {
                    if !has_waited {
                        info!("the primary's catalog is not durable yet: waiting for it");
                    }
                    has_waited = true;
                    match self.pause(ERROR_PAUSE_MIN) {
                        true => continue,
                        false => return Ok(None),
                    }
                }
                Err(refusal) => refusal,
            };
            tries += 1;
            // One that has served goes on trying: what is in the way of memory passes, too.
            let is_memory = matches!(&refusal, Refusal::Replica(error) if error.is_memory());
            let may_pass = refusal.may_pass() || self.goes_on() && is_memory;
            if !may_pass || tries >= OPEN_TRIES && !self.goes_on() {
                return Err(refusal);
            }
            self.note_error(&refusal.to_string());
            if !self.pause(ERROR_PAUSE_MIN) {
                return Ok(None);
            }
        }
    }

    /// Nothing if the primary has no catalog yet.
    fn open<'h>(
        &self,
        options: &EngineOptions,
        home: &'h LogHome,
    ) -> Result<Option<OpenReplica<'h>>, Refusal> {
        let replica = Replica::open(options.clone(), home, self.env.clone());
        let replica = replica.map_err(Refusal::Replica)?;
        let evictor = Evictor::start(replica.engine(), self.config.evict_always);
        let evictor = evictor.map_err(Refusal::Evictor)?;
        let started = ReplicaCatalog::open(
            replica.engine(),
            replica.worker(),
            system_catalog(),
            &self.status,
        );
        match started.map_err(Refusal::Catalog)? {
            ReplicaStart::Empty => Ok(None),
            ReplicaStart::Ready(store, catalog) => Ok(Some(OpenReplica {
                _evictor: evictor,
                replica,
                store,
                catalogs: Catalogs {
                    catalog,
                    changes: 0,
                    failed: None,
                },
            })),
        }
    }

    /// False if the thread is to end.
    fn catch_up(&self, opened: &mut OpenReplica<'_>) -> Result<bool, Refusal> {
        loop {
            let catalogs = &mut opened.catalogs;
            let caught_up = opened
                .replica
                .catch_up(self.shown, &mut |batch| catalogs.take(batch));
            if let Some(error) = catalogs.failed.take() {
                return Err(Refusal::Catalog(error));
            }
            match caught_up {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.may_repeat() => self.note_error(&error.to_string()),
                Err(error) => return Err(Refusal::Replica(error)),
            }
            if !self.pause(ERROR_PAUSE_MIN) {
                return Ok(false);
            }
        }
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.env.clock.monotonic().as_nanos())
    }

    fn tell(
        &self,
        opened: &OpenReplica<'_>,
        progress: FollowProgress,
        phase: ReplicaPhase,
        is_streamed: bool,
    ) {
        let now = self.now();
        let visible = opened.replica.engine().next_csn();
        self.status.update(|report| {
            if report.visible != visible {
                report.last_applied_at = Some(now);
            }
            report.phase = phase;
            report.epoch = progress.epoch;
            report.applied = progress.next;
            report.visible = visible;
            report.horizon = progress.horizon.max(progress.next);
            report.entries_waiting = progress.waiting;
            report.entries = progress.entries;
            report.bytes = progress.bytes;
            report.catalog_changes = opened.catalogs.changes;
            report.rounds += 1;
            report.last_round_at = Some(now);
            if let Some(stream) = &mut report.stream {
                stream.is_in_use = is_streamed;
            }
        });
    }

    /// The thread that receives the log from the primary, if there is to be one.
    fn receiver(&self, home: &LogHome) -> Result<Option<StreamReceiver>, String> {
        let Some(connection) = self.config.primary_conninfo.clone() else {
            return Ok(None);
        };
        let stream = self.status.report().stream;
        if stream.is_some_and(|stream| stream.is_distrusted) {
            return Ok(None);
        }
        let receiver = StreamReceiver::start(
            connection,
            &home.names,
            &self.env,
            &self.status,
            &self.latch,
            self.config.page_service,
        );
        let cannot = |error| format!("cannot start the thread that receives the log: {error}");
        receiver.map(Some).map_err(cannot)
    }

    /// A round of what has come by the stream. `None`: one that reads the home is due, for there is no stream, or
    /// something did not come by it.
    fn streamed_round(
        &self,
        opened: &mut OpenReplica<'_>,
        link: &StreamLink,
    ) -> Option<Result<FollowProgress, ReplicaError>> {
        let catalogs = &mut opened.catalogs;
        let before = &mut |batch: &ReplicaBatch<'_>| catalogs.take(batch);
        let round = opened.replica.streamed_round(&link.blocks, before);
        round.transpose()
    }

    /// Round after round. Nothing if the thread is to end.
    fn follow(
        &self,
        opened: &mut OpenReplica<'_>,
        home: &LogHome,
        link: Option<&StreamLink>,
        mut pages: Option<&mut PageWriter>,
    ) -> Option<FollowEnd> {
        let shortest = self.shortest_pause(home);
        let longest = shortest * IDLE_FACTOR;
        // Until the next look at the home; the least until one that the stream gives reason for; and after an error,
        // until
        // any round.
        let mut pause = shortest;
        let least = shortest.min(GAP_PAUSE);
        let mut error_pause = None;
        let begun = opened.replica.manifest().checkpoint.as_ref();
        let begun = begun.map(|at| at.csn);
        // Since when there is no memory for an entry, and which.
        let mut short_since: Option<(Duration, Csn)> = None;
        let mut before = opened.replica.progress();
        let mut was_connected = false;
        // When the home was looked at last, and how soon the primary is to be told what snapshots see.
        let mut looked_at = self.monotonic();
        let mut owed = None;
        if let Some(link) = link {
            link.reads(opened.replica.checkpoints());
        }
        loop {
            let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
            self.status.update(|report| report.poll_pause_us = pause_us);
            if let Some(link) = link {
                link.follows(followed_log(&opened.replica));
            }
            let left = pause.saturating_sub(self.monotonic().saturating_sub(looked_at));
            let woken = match error_pause {
                // The same would go wrong at each wakeup.
                Some(time) => match self.pause(time) {
                    true => Wakeup::Timeout,
                    false => Wakeup::Stop,
                },
                None => self.latch.wait(owed.map_or(left, |owed| left.min(owed))),
            };
            if woken == Wakeup::Stop {
                return None;
            }
            let by_stream = link.filter(|link| link.is_connected());
            if was_connected && by_stream.is_none() {
                if let Some(pages) = &mut pages {
                    pages.disconnected(&opened.replica);
                }
                // What the stream would have brought lies at the home.
                pause = pause.min(shortest);
                owed = None;
            }
            was_connected = by_stream.is_some();
            let round = by_stream.and_then(|link| self.streamed_round(opened, link));
            let is_streamed = round.is_some();
            let times = RoundTimes {
                since: self.monotonic().saturating_sub(looked_at),
                pause,
                longest,
                least,
                is_connected: by_stream.is_some(),
                after_error: error_pause.is_some(),
            };
            let round = match round_choice::choose(round, &times) {
                RoundChoice::Streamed(round) => round,
                RoundChoice::Later(longer) => {
                    pause = longer.unwrap_or(pause);
                    continue;
                }
                RoundChoice::Home => {
                    looked_at = self.monotonic();
                    let catalogs = &mut opened.catalogs;
                    let round = opened.replica.round(&mut |batch| catalogs.take(batch));
                    if let Some(link) = by_stream {
                        opened.replica.forget_streamed(&link.blocks);
                    }
                    round
                }
            };
            let shown = opened.replica.engine().next_csn();
            if let Some(error) = opened.catalogs.failed.take() {
                let why = format!("the catalog: {}", error.fields().message);
                return Some(FollowEnd::Restart {
                    why,
                    shown,
                    for_memory: false,
                });
            }
            opened.catalogs.catalog.collect();
            match round {
                Ok(progress) => {
                    self.tell(opened, progress, ReplicaPhase::Following, is_streamed);
                    owed = by_stream.and_then(|link| link.shows(shown));
                    if let Some(pages) = &mut pages {
                        pages.step(&mut opened.replica);
                    }
                    let is_idle = (progress.next, progress.horizon, progress.waiting)
                        == (before.next, before.horizon, before.waiting);
                    before = progress;
                    (error_pause, short_since) = (None, None);
                    pause = match is_idle {
                        _ if is_streamed => longest,
                        true => (pause * 2).min(longest),
                        false => shortest,
                    };
                }
                Err(error) if error.may_repeat() => {
                    self.note_error(&error.to_string());
                    let progress = opened.replica.progress();
                    let now = self.monotonic();
                    let is_memory = matches!(error, ReplicaError::Memory(_));
                    // What is in the way may be what an old snapshot sees, or what is in no checkpoint yet.
                    short_since = match (is_memory, short_since) {
                        (false, _) => None,
                        (true, Some((since, next))) if next == progress.next => {
                            // Each time in vain it waits twice as long; and a start at the same checkpoint helps
                            // nobody.
                            let patience = MEMORY_PATIENCE * (1 << self.memory_restarts.min(6));
                            let newest = opened.replica.manifest().checkpoint.as_ref();
                            let is_newer = newest.map(|at| at.csn) > begun;
                            if is_newer && now.saturating_sub(since) >= patience {
                                let seconds = patience.as_secs();
                                return Some(FollowEnd::Restart {
                                    why: format!("{error}, for {seconds} seconds"),
                                    shown,
                                    for_memory: true,
                                });
                            }
                            Some((since, next))
                        }
                        (true, _) => Some((now, progress.next)),
                    };
                    self.tell(opened, progress, ReplicaPhase::Retrying, false);
                    let next = error_pause.map_or(ERROR_PAUSE_MIN, |before| before * 2);
                    error_pause = Some(next.min(ERROR_PAUSE_MAX));
                    owed = None;
                }
                Err(error @ ReplicaError::Removed { .. }) => {
                    let why = error.to_string();
                    return Some(FollowEnd::Restart {
                        why,
                        shown,
                        for_memory: false,
                    });
                }
                // What was lost was shown, and nobody can show it again.
                Err(ReplicaError::Annulled { from }) => {
                    let why = ReplicaError::Annulled { from }.to_string();
                    let shown = shown.min(from);
                    return Some(FollowEnd::Restart {
                        why,
                        shown,
                        for_memory: false,
                    });
                }
                // A server that is another than the log's may have sent it.
                Err(error) if self.has_received() => {
                    let why = format!("{error}; nothing is taken from the primary any more");
                    self.status.update(|report| {
                        if let Some(stream) = &mut report.stream {
                            stream.is_distrusted = true;
                            stream.last_error = Some(error.to_string());
                        }
                    });
                    return Some(FollowEnd::Restart {
                        why,
                        shown,
                        for_memory: false,
                    });
                }
                Err(error) => return Some(FollowEnd::Failed(error.to_string())),
            }
        }
    }

    /// Has anything come by a stream, in this life of the replica?
    fn has_received(&self) -> bool {
        let stream = self.status.report().stream;
        stream.is_some_and(|stream| stream.last_received_at.is_some() && !stream.is_distrusted)
    }
}
