//! `logstead serve`: opens the log, starts the workers, accepts clients, and stops in good order.
//!
//! Threads: this one accepts and listens for signals; each worker has its own (see `worker`). Order of a stop: no new
//! clients; idle sessions end; open transactions get a grace time; everything is flushed; a last checkpoint; exit 0.

use crate::arrivals::Arrivals;
use crate::branch::open_branch;
use crate::checkpoints::Checkpoints;
use crate::config::{self, Config};
use crate::metrics::ServerStatus;
use crate::prepare::{Listeners, Preparation, certificate_again};
use crate::sockets::Sockets;
use crate::system_file::SystemFile;
use crate::worker::{self, Inbox};
use crate::{EXIT_FAILURE, EXIT_USAGE, commit_settings, fail};
use logstead_checkpoint::BranchError;
use logstead_engine::{
    Engine, EngineOptions, Evictor, FaultError, LeaseEvent, LeaseOptions, OpenError,
    RecoveryReport, Warmup,
};
use logstead_env::{Env, FileKind, JoinHandle};
use logstead_home::{
    CacheOptions, HomeCapabilities, HomeOptions, LocalOptions, LogHome, ObjectOptions, PriceList,
};
use logstead_sql_catalog::{CatalogStore, Tariff};
use logstead_sql_session::{Instance, Looks};
use logstead_types::{Csn, WorkerId};
use logstead_wire::access::Access;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{debug, error, info, warn};

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

/// Exit code after the log could not be written: what was not acknowledged may be lost, recovery decides.
const EXIT_LOG_FAILED: i32 = 74;
/// How long sessions have after the grace time to notice that it is over.
pub(crate) const TERMINATE_TIME: Duration = Duration::from_secs(5);
/// How long a stop waits for a home that does not answer, until everything is flushed. What is not was never
/// acknowledged, unless with `synchronous_commit = off`.
const FLUSH_TIME: Duration = Duration::from_secs(30);
/// How often a stop looks whether the sessions are gone.
const STOP_POLL: Duration = Duration::from_millis(10);
/// A pause after accept fails (no file descriptors left): others may end meanwhile.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks at what holds a worker.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// From this latency on a home is a store that is waited for, and so many threads bring in what is not in memory.
const STORE_LATENCY_US: u32 = 1_000;
const FAULT_THREADS_OF_STORE: usize = 32;

/// Serves the log that is the server's own.
pub(crate) fn run(prepared: Preparation) -> ExitCode {
    let Preparation {
        config,
        env,
        listening:
            Listeners {
                listener,
                local,
                metrics,
            },
        access,
        spare,
    } = prepared;
    let (instance, evictor) = match open(&config, &env) {
        Ok((instance, evictor)) => (Arc::new(instance), evictor),
        Err((code, message)) => return fail(code, &message),
    };
    // It lasts as long as the process: whatever its end would wait for, a page on its way from a home that does not
    // answer, keeps nobody from stopping.
    std::mem::forget(Arc::clone(&instance));
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(EXIT_FAILURE, &format!("cannot start: {error}")),
    };
    let (workers, threads) = match start_workers(&config, &env, &instance, &access) {
        Ok(started) => started,
        Err(error) => return fail(EXIT_FAILURE, &format!("cannot start a worker: {error}")),
    };
    let warmup = match Warmup::start(&instance.engine, warm(&instance.engine)) {
        Ok(started) => started,
        Err(error) => {
            return fail(
                EXIT_FAILURE,
                &format!("cannot start the thread that brings rows in: {error}"),
            );
        }
    };
    let interval = config.checkpoint_interval;
    let checkpoints = match Checkpoints::start(&instance.engine, interval, evictor, warmup) {
        Ok(started) => started,
        Err(error) => {
            return fail(
                EXIT_FAILURE,
                &format!("cannot start the thread of checkpoints: {error}"),
            );
        }
    };
    let served = accept(
        &config,
        &env,
        (listener, local, metrics),
        &instance,
        &access,
        (workers, checkpoints),
        spare,
    );
    match runtime.block_on(served) {
        Ok(()) => {}
        Err(error) => return fail(EXIT_FAILURE, &error),
    }
    let left = instance.writes_to_undo();
    if left > 0 {
        // They end with the process, as in a crash: the log has nothing of them, and all else is done.
        info!("stopped: {left} writes of transactions that were rolled back are left as they are");
        return ExitCode::SUCCESS;
    }
    for thread in threads {
        if thread.join().is_err() {
            return fail(EXIT_FAILURE, "a worker thread panicked");
        }
    }
    info!("stopped");
    ExitCode::SUCCESS
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

/// Opens log, engine and catalog. A start that fails does not wait for the evictor's end, which may wait for a home
/// that does not answer.
fn open(config: &Config, env: &Env) -> Result<(Instance, ManuallyDrop<Evictor>), (u8, String)> {
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
    let commit = commit_settings::options(&values, &home.capabilities())
        .map_err(|message| (EXIT_USAGE, message))?;
    commit_settings::show(&mut values, &commit);
    let fault_threads = fault_threads(&values, &home.capabilities());
    values.insert("fault_threads".to_owned(), fault_threads.to_string());
    info!(
        "commits: {} in {} lanes, tracking {}",
        commit.protocol.name(),
        commit.lanes(config.workers),
        commit.tracking.name()
    );
    let options = EngineOptions {
        workers: config.workers,
        commit,
        accept_data_loss: config.accept_data_loss,
        memory_bytes: config.memory_bytes,
        lease: LeaseOptions {
            duration: config.lease_duration,
            take_over: config.take_over,
            machine_is_never_copied: config.machine_is_never_copied,
            events: Arc::new(say),
            ..LeaseOptions::default()
        },
        checkpoint_bandwidth_bytes: config.checkpoint_bandwidth_bytes,
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
    engine.set_failure_hook(Box::new(|failed| {
        // Nothing that waits may be acknowledged any more, and nothing new may begin.
        error!("the log failed, the server stops: {failed}");
        std::process::exit(EXIT_LOG_FAILED);
    }));
    // Before anything is read: what is read is brought in, and may need room.
    let evictor = Evictor::start(&engine, config.evict_always).map(ManuallyDrop::new);
    let evictor = evictor.map_err(|error| {
        (
            EXIT_FAILURE,
            format!("cannot start the thread that keeps memory within its budget: {error}"),
        )
    })?;
    let store = CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog())
        .map_err(|error| {
            release(&engine, env, config.lease_duration);
            (EXIT_FAILURE, format!("the catalog: {error}"))
        })?;
    passwords(config, &store).map_err(|message| {
        release(&engine, env, config.lease_duration);
        (EXIT_USAGE, message)
    })?;
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
    Ok((instance, evictor))
}

/// Tells people what came of bringing rows in after a start.
pub(crate) fn warm(engine: &Engine) -> impl FnOnce(Result<(), FaultError>) + Send + 'static {
    // The thread holds on to the engine itself until it has told.
    let memory = engine.memory();
    move |ended| match ended {
        Ok(()) => info!(
            "rows are in memory as far as there is room: {} of {} bytes in use",
            memory.used_bytes(),
            memory.budget_bytes()
        ),
        Err(error) => warn!("rows were not all brought in, those that are needed will be: {error}"),
    }
}

/// Tells people what happens to the lease.
fn say(event: &LeaseEvent) {
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
fn release(engine: &Engine, env: &Env, lease_duration: Duration) {
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

type Started = (Vec<Arc<Inbox>>, Vec<JoinHandle>);

pub(crate) fn start_workers(
    config: &Config,
    env: &Env,
    instance: &Arc<Instance>,
    access: &Arc<Access>,
) -> std::io::Result<Started> {
    let (mut inboxes, mut threads) = (Vec::new(), Vec::new());
    for number in 0..config.workers {
        let id = WorkerId(u16::try_from(number).map_err(std::io::Error::other)?);
        let (inbox, receiver) = Inbox::new();
        let instance = Arc::clone(instance);
        let for_worker = Arc::clone(&inbox);
        let access = Arc::clone(access);
        let thread = env.spawn(&format!("worker-{number}"), Some(number), move || {
            worker::run(id, &instance, receiver, &for_worker, &access);
        })?;
        inboxes.push(inbox);
        threads.push(thread);
    }
    Ok((inboxes, threads))
}

/// Looks what holds a worker.
pub(crate) async fn watch(instance: Arc<Instance>) {
    let mut looks = Looks::default();
    loop {
        tokio::time::sleep(LOOK_PAUSE).await;
        instance.watch_workers(&mut looks);
    }
}

/// Accepts until a signal comes, then stops everything.
async fn accept(
    config: &Config,
    env: &Env,
    (listener, local, metrics): (
        std::net::TcpListener,
        Sockets,
        Option<std::net::TcpListener>,
    ),
    instance: &Arc<Instance>,
    access: &Access,
    (workers, checkpoints): (Vec<Arc<Inbox>>, Checkpoints),
    spare: usize,
) -> Result<(), String> {
    let listener =
        TcpListener::from_std(listener).map_err(|error| format!("cannot listen: {error}"))?;
    let address = listener
        .local_addr()
        .map_err(|error| format!("cannot listen: {error}"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let mut hangup = signal(SignalKind::hangup()).map_err(|error| error.to_string())?;
    if let Some(metrics) = metrics {
        let metrics = TcpListener::from_std(metrics)
            .map_err(|error| format!("cannot listen for metrics_listen: {error}"))?;
        if let Ok(address) = metrics.local_addr() {
            info!("metrics at http://{address}/metrics");
        }
        let watched = Arc::new(ServerStatus::of(Arc::clone(instance)));
        tokio::spawn(crate::metrics::serve(metrics, watched));
    }
    tokio::spawn(watch(Arc::clone(instance)));
    let arrivals = Arc::new(Arrivals {
        workers: workers.clone(),
        instance: Arc::clone(instance),
        most: config.connections_max + spare,
        patience: access.timeout,
        silent: AtomicUsize::new(0),
    });
    let mut accepting = local.accept(&arrivals)?;
    announce(config, address);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => arrivals.arrived(stream),
                Err(error) => {
                    warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => certificate_again(config, access),
        }
    }
    info!(
        "stopping: open transactions have {} s",
        config.shutdown_grace.as_secs()
    );
    drop(listener);
    accepting.shutdown().await;
    drop(local);
    instance.stop();
    let impatient = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    if !gone_within(instance, config.shutdown_grace, impatient).await {
        instance.terminate_all();
        gone_within(instance, TERMINATE_TIME, std::future::pending()).await;
    }
    // A home that cannot be reached is waited for, but not against the will of whoever stops the server.
    let mut cut_short = pin!(async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    });
    tokio::select! {
        flushed = instance.engine.flush_all_and_wait() => {
            flushed.map_err(|error| format!("the last flush failed: {error}"))?;
        }
        () = &mut cut_short => {
            return Err("a second signal came before the log was flushed: nothing acknowledged is lost, the next start recovers".to_owned());
        }
        () = tokio::time::sleep(FLUSH_TIME) => {
            return Err(format!("the log could not be flushed within {} s: nothing acknowledged is lost, the next start recovers", FLUSH_TIME.as_secs()));
        }
    }
    checkpoints.finish(&instance.engine, env, cut_short).await;
    release(&instance.engine, env, config.lease_duration);
    workers.iter().for_each(|worker| worker.close());
    Ok(())
}

/// Waits until all sessions are gone; false if `limit` or `cut_short` came first.
pub(crate) async fn gone_within(
    instance: &Instance,
    limit: Duration,
    cut_short: impl Future<Output = ()>,
) -> bool {
    let gone = async {
        while instance.session_count() > 0 {
            tokio::time::sleep(STOP_POLL).await;
        }
    };
    tokio::select! {
        () = gone => true,
        () = tokio::time::sleep(limit) => false,
        () = cut_short => false,
    }
}

pub(crate) fn announce(config: &Config, address: std::net::SocketAddr) {
    let directory = place(config);
    let text = format!(
        "logstead {} listening on {address}\nlog in {directory}\nconnect with: psql -h {} -p {} -U postgres\n",
        env!("CARGO_PKG_VERSION"),
        address.ip(),
        address.port(),
    );
    let mut out = std::io::stdout().lock();
    let _nobody_may_be_reading = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
