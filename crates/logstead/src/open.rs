//! Opens what a server serves from: the home, the log, the engine over it, and the catalog.
//!
//! Owns: the order in which that happens, and what people are told of it. [`open_log`] decides who has the log; behind
//! it the log is this server's.

use crate::branch::open_branch;
use crate::config::{self, Config};
use crate::system_file::SystemFile;
use crate::{EXIT_FAILURE, EXIT_USAGE, commit_settings, instances};
use logstead_checkpoint::{BranchError, damage_of_object};
use logstead_engine::{
    Engine, EngineOptions, Evictor, LeaseEvent, LeaseOptions, OpenError, RecoveryReport,
};
use logstead_env::{Env, FileKind};
use logstead_home::{
    CacheOptions, HomeCapabilities, HomeOptions, LocalOptions, LogHome, ObjectOptions, PriceList,
};
use logstead_sql_catalog::{CatalogStore, Tariff};
use logstead_sql_session::Instance;
use logstead_types::Csn;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, error, info, warn};

/// Exit code after the log could not be written: what was not acknowledged may be lost, recovery decides.
const EXIT_LOG_FAILED: i32 = 74;
/// From this latency on a home is a store that is waited for, and so many threads bring in what is not in memory.
const STORE_LATENCY_US: u32 = 1_000;

const FAULT_THREADS_OF_STORE: usize = 32;

/// Exit code, and what to say.
pub(crate) type Failure = (u8, String);

/// What recovery found and how long it took, in one line.
fn recovered(report: &RecoveryReport) -> String {
    let took = &report.took;
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let checkpoint = match report.checkpoint {
        Csn::ZERO => String::new(),
        csn => format!(
            "{} pages, {} bytes of the checkpoint at CSN {csn}, and ",
            report.checkpoint_pages, report.checkpoint_bytes
        ),
    };
    format!(
        "recovered {}{} entries, {} of them large, {} bytes; {} unacknowledged entries dropped; \
         reading and applying {} (waited {} for lanes, {} for tables), last rows {}, tails {}, recovery mark {}, new lanes {}",
        checkpoint,
        report.entries,
        report.sides,
        report.bytes,
        report.entries_dropped,
        ms(took.reading),
        ms(took.waited_for_lanes),
        ms(took.waited_for_tables),
        ms(took.finishing),
        ms(took.tails),
        ms(took.mark),
        ms(took.opening),
    )
}

/// Where the log lives, as it was configured.
pub(crate) fn place(config: &Config) -> String {
    let directory = || config.data_directory.display().to_string();
    let home = config.replica_of.as_ref().or(config.home.as_ref());
    home.cloned().unwrap_or_else(directory)
}

fn open_home(config: &Config, env: &Env) -> Result<LogHome, BranchError> {
    let local = LocalOptions {
        segment_size_bytes: config.segment_size_bytes,
        way: config.write_way,
        readers: config.readers,
        ..LocalOptions::default()
    };
    let objects = ObjectOptions {
        segment_size_bytes_max: config.segment_size_bytes,
        reserve_bytes: config.bucket_reserve_bytes,
        ..ObjectOptions::default()
    };
    let options = HomeOptions {
        local,
        objects,
        ack: config.ack,
        damage: Some(damage_of_object),
        ..HomeOptions::default()
    };
    let open = |url: &str| logstead_home::open(url, env, &options);
    let home = match &config.branch {
        Some(branch) => open_branch(&place(config), branch, env, open)?,
        None => open(&place(config))?,
    };
    Ok(cached(home, config, env))
}

/// The home with its cache on the local disk, if one was asked for and can be had: a cache saves time, and is never a
/// reason not to start.
pub(crate) fn cached(home: LogHome, config: &Config, env: &Env) -> LogHome {
    let Some(directory) = &config.cache_directory else {
        return home;
    };
    if !home.capabilities().leased {
        info!("cache_directory is not used: the home is on this machine");
        return home;
    }
    let options = CacheOptions::new(directory, config.cache_size_bytes);
    match home.clone().with_cache(env, &options) {
        Ok(cached) => cached,
        Err(error) => {
            warn!("there is no cache in this life of the server: {error}");
            home
        }
    }
}

/// What providers charge: the built-in list, and the user's over it.
pub(crate) fn prices(config: &Config) -> Result<PriceList, String> {
    let built_in = PriceList::built_in();
    match &config.price_list {
        None => Ok(built_in),
        Some(file) => built_in.with(&config::read_file(file)?, &file.display().to_string()),
    }
}

/// How many threads bring in what is not in memory. Each reads one page at a time. At a local disk that is short, and
/// then the page is unpacked: a few keep disk and cores at work, and leave some to the workers. A request to a store is
/// waited for, so what can be read in a second hangs on how many are on their way. A thread is started when it is first
/// needed.
pub(crate) fn fault_threads(
    values: &BTreeMap<String, String>,
    capabilities: &HomeCapabilities,
) -> usize {
    let given = values.get("fault_threads");
    let by_home = match capabilities.append_latency_expected_us < STORE_LATENCY_US {
        true => EngineOptions::default().fault_threads,
        false => FAULT_THREADS_OF_STORE,
    };
    given
        .and_then(|given| given.parse().ok())
        .unwrap_or(by_home)
}

/// Is the superuser to have a first password from the environment?
pub(crate) fn gives_first_password() -> bool {
    let variable = format!("{}{}", config::ENVIRONMENT_PREFIX, config::PASSWORD);
    std::env::var(variable).is_ok_and(|password| !password.is_empty())
}

/// Sets the superuser's first password, and refuses to be reached from elsewhere where nobody could prove anything.
fn passwords(config: &Config, store: &CatalogStore) -> Result<(), String> {
    let variable = format!("{}{}", config::ENVIRONMENT_PREFIX, config::PASSWORD);
    if let Some(password) = std::env::var_os(&variable) {
        let password = password
            .into_string()
            .ok()
            .filter(|password| !password.is_empty())
            .ok_or_else(|| format!("{variable} is empty or no UTF-8 text"))?;
        match store.set_first_password(&password) {
            Ok(true) => info!("the superuser has got its first password"),
            Ok(false) => info!("{variable} is not used: the superuser has a password"),
            Err(error) => return Err(format!("{variable}: {}", error.fields().message)),
        }
    }
    proofs(config, store)
}

/// Refuses to be reached from elsewhere where nobody could prove anything.
pub(crate) fn proofs(config: &Config, store: &CatalogStore) -> Result<(), String> {
    let variable = format!("{}{}", config::ENVIRONMENT_PREFIX, config::PASSWORD);
    let roles = store.roles();
    let suffices = match config.hba {
        // Without rules whoever comes by this machine, a proxy of others too, is trusted as long as the superuser has
        // none.
        None => roles.has_superuser_password(),
        Some(_) => roles.has_password_login(),
    };
    if config.listen.ip().is_loopback() || suffices {
        return Ok(());
    }
    let who = match config.hba {
        None => "the superuser has no password, and there are no rules ([[hba]])",
        Some(_) => "no role that may log in has a password",
    };
    if config.replica_of.is_some() {
        return Err(format!(
            "listen: {} is not a loopback address, and {who}, so nobody could prove who they are; say ALTER ROLE postgres PASSWORD '...' at the primary, or listen on 127.0.0.1",
            config.listen
        ));
    }
    Err(format!(
        "listen: {} is not a loopback address, and {who}, so nobody could prove who they are; start with {variable} set, which gives the superuser its first password, or listen on 127.0.0.1 and say ALTER ROLE postgres PASSWORD '...'",
        config.listen
    ))
}

/// The log and the engine over it: the log is this server's.
pub(crate) struct OpenLog {
    engine: Engine,
    report: RecoveryReport,
    /// The settings, with what is in force.
    values: BTreeMap<String, String>,
    prices: PriceList,
}

/// Opens the log, or says who has it. `tell` hears what happens to the lease.
pub(crate) fn open_log(
    config: &Config,
    env: &Env,
    tell: impl Fn(&LeaseEvent) + Send + Sync + 'static,
) -> Result<OpenLog, Failure> {
    let prices = prices(config).map_err(|why| (EXIT_USAGE, format!("price_list: {why}")))?;
    let home = open_home(config, env).map_err(|error| (EXIT_FAILURE, error.to_string()))?;
    info!("log: in {}", home.describe());
    let mut values = config.values.clone();
    // What it does first, the figures behind that for whoever asks.
    for (name, value) in home.status.report() {
        if name == "way" {
            values.insert("logstead.write_way".to_owned(), value.clone());
        }
        if name.starts_with("way") {
            info!("log: {name}: {value}");
        } else {
            debug!("log: {name}: {value}");
        }
    }
    let mut commit = commit_settings::options(&values, &home.capabilities())
        .map_err(|message| (EXIT_USAGE, message))?;
    commit.instances = config.instances;
    commit_settings::show(&mut values, &commit);
    let fault_threads = fault_threads(&values, &home.capabilities());
    values.insert("fault_threads".to_owned(), fault_threads.to_string());
    instances::tell(config.workers, config.instances);
    info!(
        "commits: {} in {} lanes, tracking {}",
        commit.protocol.name(),
        commit.lanes(config.workers),
        commit.tracking.name()
    );
    let options = EngineOptions {
        workers: config.workers,
        instances: config.instances,
        commit,
        accept_data_loss: config.accept_data_loss,
        memory_bytes: config.memory_bytes,
        lease: LeaseOptions {
            duration: config.lease_duration,
            take_over: config.take_over,
            predecessor: config.predecessor,
            machine_is_never_copied: config.machine_is_never_copied,
            events: Arc::new(tell),
            ..LeaseOptions::default()
        },
        checkpoint_bandwidth_bytes: config.checkpoint_bandwidth_bytes,
        replica_keep_time: config.replica_keep_time,
        absent_one_in: config.absent_one_in,
        retention: config.retention,
        fault_threads,
        ..EngineOptions::default()
    };
    let (engine, report) =
        Engine::open(options, home, env.clone()).map_err(|error| match error {
            OpenError::Options(message) => (EXIT_USAGE, message),
            OpenError::Memory { .. } => (
                EXIT_FAILURE,
                format!("{error}; start with a larger \"memory\""),
            ),
            other => (EXIT_FAILURE, other.to_string()),
        })?;
    engine
        .page_services()
        .set_silence_max(config.page_service_timeout);
    engine.set_evicts_to_log(config.evict_to_log);
    if config.page_service && config.replica_of.is_none() {
        warn!("\"page_service\" has no effect here: it is for replicas (\"replica_of\")");
    }
    if report.created {
        info!("a new log in {}", place(config));
    } else {
        info!(
            "memory: {} of {} bytes in use by rows",
            engine.memory().used_bytes(),
            config.memory_bytes
        );
        info!("{}", recovered(&report));
    }
    if let Some(loss) = &report.loss {
        warn!("data loss was accepted: {loss}");
    }
    Ok(OpenLog {
        engine,
        report,
        values,
        prices,
    })
}

impl OpenLog {
    /// Was there none?
    pub(crate) fn was_made(&self) -> bool {
        self.report.created
    }

    /// The CSN behind all that is there.
    pub(crate) fn next_csn(&self) -> Csn {
        self.engine.next_csn()
    }

    /// Gives the log back: the next server need not wait for the lease.
    pub(crate) fn give_back(self, env: &Env, lease_duration: Duration) {
        release(&self.engine, env, lease_duration);
    }
}

/// What a server serves from, and the thread that keeps its memory within the budget.
pub(crate) type OpenInstance = (Instance, ManuallyDrop<Evictor>);

/// Opens the catalog over it, of a server that was promoted or that is started. A start that fails does not wait for
/// the evictor's end, which may wait for a home that does not answer; a replica that stays one does, for it may try
/// again.
pub(crate) fn open_instance(
    config: &Config,
    env: &Env,
    log: OpenLog,
    is_promoted: bool,
) -> Result<OpenInstance, Failure> {
    log.engine.set_failure_hook(Box::new(|failed| {
        // Nothing that waits may be acknowledged any more, and nothing new may begin.
        error!("the log failed, the server stops: {failed}");
        std::process::exit(EXIT_LOG_FAILED);
    }));
    // Before anything is read: what is read is brought in, and may need room.
    let evictor = Evictor::start(&log.engine, config.evict_always).map(ManuallyDrop::new);
    let evictor = evictor.map_err(|error| {
        (
            EXIT_FAILURE,
            format!("cannot start the thread that keeps memory within its budget: {error}"),
        )
    })?;
    match open_catalog(config, env, log, is_promoted) {
        Ok(instance) => Ok((instance, evictor)),
        Err(failure) => {
            if is_promoted {
                drop(ManuallyDrop::into_inner(evictor));
            }
            Err(failure)
        }
    }
}

/// See [`open_instance`].
fn open_catalog(
    config: &Config,
    env: &Env,
    log: OpenLog,
    is_promoted: bool,
) -> Result<Instance, Failure> {
    let OpenLog {
        engine,
        report,
        mut values,
        prices,
    } = log;
    let store = CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog())
        .map_err(|error| {
            release(&engine, env, config.lease_duration);
            (EXIT_FAILURE, format!("the catalog: {error}"))
        })?;
    if is_promoted {
        // It was reached there as a replica, and the server before is shut out: this one serves.
        if let Err(message) = proofs(config, &store) {
            warn!("{message}");
        }
    } else {
        passwords(config, &store).map_err(|message| {
            release(&engine, env, config.lease_duration);
            (EXIT_USAGE, message)
        })?;
    }
    let indexes = store.started_indexes();
    info!(
        "indexes: {} from the checkpoint, {} built from rows",
        indexes.restored, indexes.built
    );
    for damaged in &indexes.damaged {
        warn!("built from rows, because the checkpoint's leaves cannot be used: {damaged}");
    }
    for invalid in &indexes.invalid {
        warn!("not kept, until it is REINDEXed or dropped: {invalid}");
    }
    store.set_tariff(Tariff {
        prices,
        lease_renewed_every: engine.lease().map(|lease| lease.renewed_every()),
    });
    store.set_recovery(report);
    // The log may also lie on a device or behind a URL: nothing else can be put there.
    let is_directory = matches!(
        env.files.kind(&config.data_directory),
        Ok(Some(FileKind::Directory))
    );
    if values.get("temp_directory").is_none_or(String::is_empty)
        && config.home.is_none()
        && is_directory
    {
        let directory = config.data_directory.join("temp");
        let directory = directory.to_string_lossy().into_owned();
        values.insert("temp_directory".to_owned(), directory);
    }
    if config.home.is_none() && is_directory {
        let readers = env.files.readers_of(&config.data_directory);
        let mode = readers.unwrap_or_default().directory_mode();
        values.insert("data_directory_mode".to_owned(), format!("{mode:04o}"));
    }
    let mut instance = Instance::new(engine, store, env.clone(), values, config.connections_max);
    if let Some(own) = &config.system_file {
        instance.configure(Arc::new(SystemFile::new(
            env.clone(),
            config.given.clone(),
            config.file.as_ref().map(PathBuf::from),
            own.clone(),
        )));
    }
    Ok(instance)
}

/// Tells people what happens to the lease.
pub(crate) fn say(event: &LeaseEvent) {
    let whose = |holder: &logstead_engine::LeaseHolder| {
        let process = &holder.process;
        format!(
            "the server on host {} (process {}, since {})",
            process.host,
            process.process,
            holder.since_utc()
        )
    };
    let seconds = |time: &Duration| time.as_secs_f64().ceil();
    match event {
        LeaseEvent::Watching { holder, ended_here } => info!(
            "the log was last written by {}, which {}: looking for up to {:.0} s",
            whose(holder),
            match ended_here {
                false => "may be alive",
                true =>
                    "has ended on this machine, and may be alive on one that this is a copy of (machine_is_never_copied is off)",
            },
            (holder.lasts() * 11 / 10).as_secs_f64().ceil()
        ),
        LeaseEvent::TakenFrom(holder) => {
            warn!("taking the log over from {}", whose(holder));
        }
        LeaseEvent::WaitsFor(time) => info!(
            "waiting {} s for the lease of the server before to run out: it may answer until then",
            seconds(time)
        ),
        LeaseEvent::Lapsed(error) => {
            warn!("the lease ran out and could not be renewed, answers wait: {error}")
        }
        LeaseEvent::Recovered => info!("the lease is renewed, answers leave again"),
        LeaseEvent::NotReleased(error) => warn!(
            "the lease could not be given back, the next server waits until it runs out: {error}"
        ),
    }
}

/// Gives the log back: the next server need not wait. If the home does not answer for as long as the lease lasts, it
/// has run out by itself.
pub(crate) fn release(engine: &Engine, env: &Env, lease_duration: Duration) {
    let Some(lease) = engine.lease().cloned() else {
        return;
    };
    let (done, told) = std::sync::mpsc::channel();
    let released = env.spawn("release", None, move || {
        lease.release();
        // The process may have gone on.
        let _waited_for = done.send(());
    });
    match released {
        Ok(_) => {
            if told.recv_timeout(lease_duration).is_err() {
                warn!("the lease could not be given back: it runs out by itself");
            }
        }
        Err(error) => warn!("the lease could not be given back: {error}"),
    }
}
