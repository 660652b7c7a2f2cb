//! What all sessions of a server share across workers, and who they are.
//!
//! Does not: know what the sessions of one worker share (`worker_sessions`).

use super::advisory::AdvisoryLocks;
use super::notify::Channels;
use super::pause::{HandoverTarget, PausePhase, SerializedClient, SessionPause};
use super::promotion::Promotion;
use super::scheduler::WorkerScheduler;
use super::signals::Signals;
use super::statement_statistics::Statistics;
use super::watchdog::WorkerWatchdog;
use crate::backend_status::BackendStatus;
use crate::checkpoint_requests::CheckpointRequests;
use crate::exported_snapshots::ExportedSnapshots;
use crate::instance_status::InstanceStatus;
use logstead_engine::Engine;
use logstead_env::Env;
use logstead_sql_catalog::CatalogStore;
use logstead_sql_catalog::role::Role;
use logstead_sql_catalog::settings::{self, ServerSettings, SettingsFiles};
use logstead_sql_exec::SpillSpace;
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// Connections that only superusers get, PostgreSQL's `superuser_reserved_connections`.
const RESERVED_FOR_SUPERUSERS: usize = 3;

/// One running server: what its sessions share across workers.
pub struct Instance {
    /// Storage.
    pub engine: Engine,
    /// Catalogs.
    pub store: Arc<CatalogStore>,
    /// Clock and random numbers.
    pub env: Env,
    /// Configured values by lower-case name, canonical: the defaults of every session.
    pub settings: Arc<ServerSettings>,
    /// More sessions than this are refused.
    pub connections_max: usize,
    pub(super) checkpoints: Arc<CheckpointRequests>,
    pub(super) advisory: AdvisoryLocks,
    pub(super) channels: Channels,
    pub(super) statistics: Statistics,
    /// Room for what does not fit into memory.
    pub spill: Arc<SpillSpace>,
    /// Snapshots that sessions have exported.
    pub(super) exported_snapshots: Arc<ExportedSnapshots>,
    sessions: Mutex<HashMap<i32, Entry>>,
    session_count: AtomicUsize,
    next_pid: AtomicI32,
    stopping: AtomicBool,
    /// The pause of all sessions while another process takes over.
    pub(super) pause: Arc<SessionPause>,
    /// Marks of the workers.
    pub(super) watchdogs: Mutex<Vec<Arc<WorkerWatchdog>>>,
    /// Tables that were analyzed by themselves.
    pub(super) analyzed: crate::autoanalyze_history::AutoanalyzeHistory,
    /// Who decides of promotions, if this is a replica.
    promotion: Option<Arc<Promotion>>,
    /// What it knows of its instances, if there are several.
    pub(super) instances: Option<Arc<InstanceStatus>>,
    /// A random number: this server, in this life.
    pub(super) identity: u64,
    /// When the server started, in microseconds since 2000: its settings are read then, too.
    pub(super) started: i64,
}

/// A session's place among the others.
pub(super) struct SessionSlot {
    pub(super) pid: i32,
    pub(super) secret: i32,
    pub(super) signals: Arc<Signals>,
    pub(super) live: Arc<BackendStatus>,
}

struct Entry {
    secret: i32,
    signals: Arc<Signals>,
    live: Arc<BackendStatus>,
    /// Whose session it is, once that is known.
    role: Option<RoleId>,
}

impl SessionSlot {
    fn enter(
        sessions: &mut HashMap<i32, Entry>,
        (pid, secret): (i32, i32),
        begun: i64,
        scheduler: &Arc<WorkerScheduler>,
    ) -> SessionSlot {
        let signals = Arc::new(Signals::new(Arc::clone(scheduler)));
        let live = Arc::new(BackendStatus::new(begun));
        let entry = Entry {
            secret,
            signals: Arc::clone(&signals),
            live: Arc::clone(&live),
            role: None,
        };
        sessions.insert(pid, entry);
        SessionSlot {
            pid,
            secret,
            signals,
            live,
        }
    }
}

impl Instance {
    /// A server over an open engine and catalog.
    pub fn new(
        engine: Engine,
        store: Arc<CatalogStore>,
        env: Env,
        settings: BTreeMap<String, String>,
        connections_max: usize,
    ) -> Instance {
        let spill = match settings.get("temp_directory") {
            Some(directory) if !directory.is_empty() => {
                SpillSpace::new(env.clone(), PathBuf::from(directory))
            }
            _ => SpillSpace::in_shared(env.clone(), &std::env::temp_dir()),
        };
        const MOVES: &str = "session_move_threshold";
        let threshold = settings.get(MOVES).map(String::as_str);
        let threshold = threshold.or_else(|| settings::find(MOVES).map(|found| found.default));
        let threshold = threshold.and_then(|text| text.parse().ok()).unwrap_or(0);
        Instance {
            instances: InstanceStatus::of(&engine, threshold),
            started: env.clock.now_micros_since_2000(),
            identity: env.random.u64(),
            spill,
            advisory: AdvisoryLocks::new(engine.clone()),
            engine,
            store,
            env,
            settings: Arc::new(ServerSettings::new(settings)),
            connections_max,
            checkpoints: Arc::default(),
            channels: Channels::default(),
            statistics: Statistics::default(),
            exported_snapshots: Arc::default(),
            sessions: Mutex::default(),
            session_count: AtomicUsize::new(0),
            // Numbers that look like process ids to tools; they are never used as such.
            next_pid: AtomicI32::new(1000),
            stopping: AtomicBool::new(false),
            pause: Arc::default(),
            watchdogs: Mutex::default(),
            analyzed: crate::autoanalyze_history::AutoanalyzeHistory::default(),
            promotion: None,
        }
    }

    /// Says who decides of promotions, of a replica. To be called before workers start.
    pub fn set_promotion(&mut self, promotion: Arc<Promotion>) {
        self.promotion = Some(promotion);
    }

    pub(super) fn promotion(&self) -> Option<&Arc<Promotion>> {
        self.promotion.as_ref()
    }

    /// Says in which files the settings stand: those of ALTER SYSTEM and `pg_reload_conf()`. To be called before
    /// workers start.
    pub fn configure(&mut self, files: Arc<dyn SettingsFiles>) {
        let values = BTreeMap::clone(&self.settings.now());
        self.settings = Arc::new(ServerSettings::new(values).with(files));
    }

    /// Takes a place for a session of this worker.
    pub(super) fn admit(&self, scheduler: &Arc<WorkerScheduler>) -> Result<SessionSlot> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(SqlError::new(
                SqlState::CANNOT_CONNECT_NOW,
                "the database system is shutting down",
            )
            .fatal());
        }
        if self.session_count.fetch_add(1, Ordering::SeqCst) >= self.connections_max {
            self.session_count.fetch_sub(1, Ordering::SeqCst);
            return Err(SqlError::new(
                SqlState::TOO_MANY_CONNECTIONS,
                "sorry, too many clients already",
            )
            .fatal());
        }
        let secret = self.env.random.u64() as i32;
        let begun = self.env.clock.now_micros_since_2000();
        let mut sessions = self.sessions.lock();
        let pid = loop {
            let pid = self.next_pid.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if pid != 0 && !sessions.contains_key(&pid) {
                break pid;
            }
        };
        Ok(SessionSlot::enter(
            &mut sessions,
            (pid, secret),
            begun,
            scheduler,
        ))
    }

    /// Process numbers up to this one are those of sessions that come from another process. To be called before workers
    /// start.
    pub fn reserve_pids(&self, last: i32) {
        self.next_pid
            .fetch_max(last.saturating_add(1), Ordering::Relaxed);
    }

    /// Takes the place that a session had in another process; there may be more than the most of them.
    pub(super) fn admit_restored(
        &self,
        scheduler: &Arc<WorkerScheduler>,
        (pid, secret): (i32, i32),
        begun: i64,
    ) -> Result<SessionSlot> {
        let mut sessions = self.sessions.lock();
        if sessions.contains_key(&pid) {
            let taken = format!("process number {pid} is another session's");
            return Err(SqlError::new(SqlState::ADMIN_SHUTDOWN, taken).fatal());
        }
        self.session_count.fetch_add(1, Ordering::SeqCst);
        Ok(SessionSlot::enter(
            &mut sessions,
            (pid, secret),
            begun,
            scheduler,
        ))
    }

    /// Shows every session.
    pub(super) fn each_session(&self, mut show: impl FnMut(i32, &BackendStatus, &Arc<Signals>)) {
        for (pid, entry) in self.sessions.lock().iter() {
            show(*pid, &entry.live, &entry.signals);
        }
    }

    /// The session is this role's; 53300 if it has as many as it may.
    pub(super) fn admit_role(&self, pid: i32, role: &Role, own: bool) -> Result<()> {
        let reserved = match self.connections_max {
            ..=RESERVED_FOR_SUPERUSERS => 0,
            _ => RESERVED_FOR_SUPERUSERS,
        };
        let used = self.session_count.load(Ordering::SeqCst);
        if !own && !role.superuser && used > self.connections_max - reserved {
            return Err(SqlError::new(
                SqlState::TOO_MANY_CONNECTIONS,
                "remaining connection slots are reserved for non-replication superuser connections",
            )
            .fatal());
        }
        let mut sessions = self.sessions.lock();
        let limit = usize::try_from(role.connection_limit).unwrap_or(usize::MAX);
        // Superusers are not limited; and counting is for those who are.
        if !own && limit < usize::MAX && !role.superuser {
            let others = sessions
                .values()
                .filter(|s| s.role == Some(role.oid))
                .count();
            if others >= limit {
                return Err(SqlError::new(
                    SqlState::TOO_MANY_CONNECTIONS,
                    format!("too many connections for role \"{}\"", role.name),
                )
                .fatal());
            }
        }
        if let Some(session) = sessions.get_mut(&pid) {
            session.role = Some(role.oid);
        }
        Ok(())
    }

    /// The session is a replica's, which is sent the log; 53300 if there are as many as may be.
    pub(super) fn admit_replication(&self, live: &BackendStatus) -> Result<()> {
        const NAME: &str = "max_wal_senders";
        let default = || settings::find(NAME).map_or("0", |setting| setting.default);
        let configured = self.settings.now().get(NAME).cloned();
        let most = configured.unwrap_or_else(|| default().to_owned());
        let most: usize = most.parse().unwrap_or(0);
        // Under the lock: of two that come at once each is counted by the other.
        let sessions = self.sessions.lock();
        let others = sessions.values().filter(|s| s.live.is_replication());
        if others.count() >= most {
            return Err(SqlError::new(
                SqlState::TOO_MANY_CONNECTIONS,
                format!(
                    "number of requested standby connections exceeds max_wal_senders (currently {most})"
                ),
            )
            .fatal());
        }
        live.set_replication();
        Ok(())
    }

    /// The session is another worker's from now on.
    pub(super) fn goes_on(&self, pid: i32, signals: &Arc<Signals>) {
        if let Some(entry) = self.sessions.lock().get_mut(&pid) {
            entry.signals = Arc::clone(signals);
        }
    }

    pub(super) fn forget(&self, pid: i32) {
        if self.sessions.lock().remove(&pid).is_some() {
            self.session_count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// CancelRequest: a wrong secret is ignored, silently as in PostgreSQL.
    pub fn cancel(&self, pid: i32, secret: i32) {
        if let Some(entry) = self.sessions.lock().get(&pid)
            && entry.secret == secret
        {
            entry.signals.cancel();
        }
    }

    /// A random number: this server, in this life.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Sessions begin no transaction any more, and pause when they have ended the one that is open.
    pub fn pause(&self) {
        self.set_pause_phase(PausePhase::Pausing);
        // A stream of the log has no transaction to end, and its replica connects again.
        self.each_session(|_, live, signals| {
            if live.is_replication() {
                signals.stop();
            }
        });
    }

    /// Are sessions to pause?
    pub(super) fn is_pausing(&self) -> bool {
        self.pause.phase() != PausePhase::Running
    }

    /// Sessions that pause.
    pub fn paused_count(&self) -> usize {
        self.pause.paused_count()
    }

    /// Those that pause go on.
    pub fn resume(&self) {
        self.set_pause_phase(PausePhase::Running);
    }

    /// Those that pause say what they are for whoever takes them over; [`Instance::serialized`] has them.
    pub fn serialize(&self, target: HandoverTarget) {
        self.pause.serialize(target);
        self.each_session(|_, _, signals| signals.wake());
    }

    /// What the paused sessions are, once all of them have said it. Those that pause later stay.
    pub fn serialized(&self) -> Option<Vec<SerializedClient>> {
        self.pause.take_serialized()
    }

    /// How many that were.
    pub fn serialized_count(&self) -> usize {
        self.pause.taken_count()
    }

    /// Those that were serialized are another process's. The others end.
    pub fn leave(&self) {
        self.set_pause_phase(PausePhase::Leaving);
    }

    /// Those that were serialized go on in another instance of this process, with the same clients: here they are no
    /// more. The others end.
    pub fn depart(&self) {
        self.set_pause_phase(PausePhase::Departing);
    }

    /// Ends those that are in the middle of something. Whoever is at rest pauses as soon as its worker looks at it.
    pub fn terminate_unpaused(&self) {
        self.each_session(|_, _, signals| {
            if !signals.is_paused() && !signals.is_resting() {
                signals.terminate();
            }
        });
    }

    fn set_pause_phase(&self, phase: PausePhase) {
        self.pause.enter(phase);
        self.each_session(|_, _, signals| signals.wake());
    }

    /// Open sessions.
    pub fn session_count(&self) -> usize {
        self.session_count.load(Ordering::SeqCst)
    }

    /// Shutdown begins: new sessions are refused, idle ones end, those in a transaction may finish it.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.sessions
            .lock()
            .values()
            .for_each(|entry| entry.signals.stop());
    }

    /// Has that begun?
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// A replica begins again: every session ends, and new ones are refused.
    pub fn restart_all(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.sessions
            .lock()
            .values()
            .for_each(|entry| entry.signals.restart());
    }

    /// The grace time is over: every session ends.
    pub fn terminate_all(&self) {
        self.sessions
            .lock()
            .values()
            .for_each(|entry| entry.signals.terminate());
    }
}
