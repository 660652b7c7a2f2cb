//! `logstead serve`: opens the log, starts the workers, accepts clients, and stops in good order.
//!
//! Threads: this one accepts and listens for signals; each worker has its own (see `worker`). Order of a stop: no new
//! clients; idle sessions end; open transactions get a grace time; everything is flushed; a last checkpoint; exit 0.

use crate::checkpoints::Checkpoints;
use crate::client_admission::ClientAdmission;
use crate::config::Config;
use crate::inherited_clients::{InheritedClients, InheritedSessions};
use crate::instances;
use crate::metrics::ServerStatus;
use crate::open::{Failure, OpenInstance, OpenLog, open_instance, open_log, place, release, say};
use crate::partition_balance::{PartitionBalance, PartitionMove};
use crate::prepare::{Listeners, Preparation, certificate_again};
use crate::replace::{ListenerDescriptors, ReplacedServer, Replacement, ReplacementEvent};
use crate::signals::{SignalRequest, StopSignals};
use crate::spawner::Spawner;
use crate::worker::{self, Inbox};
use crate::{EXIT_FAILURE, fail};
use logstead_engine::{Engine, FaultError, PartitionId, VIRTUAL_PARTITIONS, Warmup};
use logstead_env::{Env, JoinHandle};
use logstead_sql_session::{Instance, WatchdogState};
use logstead_types::WorkerId;
use logstead_wire::hba::ClientAuthConfig;
use std::future::Future;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tracing::{info, warn};

/// How long sessions have after the grace time to notice that it is over.
pub(crate) const TERMINATE_TIME: Duration = Duration::from_secs(5);
/// How long a stop waits for a home that does not answer, until everything is flushed. What is not was never
/// acknowledged, unless with `synchronous_commit = off`.
const FLUSH_TIME: Duration = Duration::from_secs(30);
/// How often a stop looks whether the sessions are gone.
const STOP_POLL: Duration = Duration::from_millis(10);
/// A pause after accept fails (no file descriptors left): others may end meanwhile.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What a process that is replaced cannot hand over has so long to be told.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// How often a successor tries again to open the log, and the pause between two tries.
const OPEN_TRIES: usize = 60;
const OPEN_PAUSE: Duration = Duration::from_millis(500);
/// Between two looks at what holds a worker.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at what instances have to do.
const BALANCE_PAUSE: Duration = Duration::from_secs(1);

/// Serves the log that the server is started with.
pub(crate) fn run(prepared: Preparation) -> ExitCode {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err((code, message)) => return fail(code, &message),
    };
    match open_log(&prepared.config, &prepared.env, say) {
        Ok(log) => run_log(&runtime, prepared, log, InheritedSessions::default()),
        Err((code, message)) => fail(code, &message),
    }
}

/// Serves the log and the clients of the process whose place this one takes. `take_over` gives them once that process
/// has ended. The clients have nobody else: what keeps the log from being opened is waited for, for some time.
pub(crate) fn run_successor(
    take_over: impl FnOnce() -> Result<(Preparation, InheritedSessions), Failure>,
) -> ExitCode {
    let opened = runtime().and_then(|runtime| {
        {
            let _within = runtime.enter();
            crate::signals::survive_reload()?;
        }
        let (prepared, inherited) = take_over()?;
        let mut tries = 0;
        loop {
            match open_log(&prepared.config, &prepared.env, say) {
                Ok(log) => return Ok((runtime, prepared, inherited, log)),
                Err(failure) if tries == OPEN_TRIES => return Err(failure),
                Err((_, why)) => warn!("the log cannot be opened yet: {why}"),
            }
            tries += 1;
            logstead_env::sleep(OPEN_PAUSE);
        }
    });
    match opened {
        Ok((runtime, prepared, inherited, log)) => run_log(&runtime, prepared, log, inherited),
        Err((code, message)) => fail(code, &message),
    }
}

/// What this thread runs: it accepts and listens for signals.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| (EXIT_FAILURE, format!("cannot start: {error}")))
}

/// What a replica was, before it was promoted.
pub(crate) struct PromotedReplica {
    /// What it listens on, for a process that replaces it.
    pub(crate) listeners: ListenerDescriptors,
    /// What the metrics' address tells of already.
    pub(crate) watched: Arc<ServerStatus>,
    pub(crate) signals: StopSignals,
}

/// Serves a log that is this server's, until it is stopped or replaced. The clients of the process that it replaces
/// are the first.
fn run_log(
    runtime: &Runtime,
    prepared: Preparation,
    log: OpenLog,
    inherited: InheritedSessions,
) -> ExitCode {
    match open_instance(&prepared.config, &prepared.env, log, false) {
        Ok(opened) => run_instance(runtime, prepared, None, opened, inherited),
        Err((code, message)) => fail(code, &message),
    }
}

/// The same once its catalog is open too.
pub(crate) fn run_instance(
    runtime: &Runtime,
    prepared: Preparation,
    promoted: Option<PromotedReplica>,
    (instance, evictor): OpenInstance,
    InheritedSessions { clients, prewarm }: InheritedSessions,
) -> ExitCode {
    let Preparation {
        config,
        env,
        listening,
        access,
        spare,
        spawner,
    } = prepared;
    let config = Arc::new(config);
    let instance = Arc::new(instance);
    if let Some(last) = clients.last_pid() {
        instance.reserve_pids(last);
    }
    // It lasts as long as the process: whatever its end would wait for, a page on its way from a home that does not
    // answer, keeps nobody from stopping.
    std::mem::forget(Arc::clone(&instance));
    let (workers, threads) = match start_workers(&config, &env, &instance, &access) {
        Ok(started) => started,
        Err(error) => {
            return fail(EXIT_FAILURE, &format!("cannot start a worker: {error}"));
        }
    };
    let warmup = match Warmup::start(&instance.engine, prewarm, warm(&instance.engine)) {
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
        (&config, &env),
        listening,
        promoted,
        &instance,
        (&access, spare, &spawner),
        (workers, checkpoints),
        clients,
    );
    match runtime.block_on(served) {
        Ok(ServeEnd::Stopped) => {}
        Ok(ServeEnd::Replaced) => {
            info!("replaced");
            // Everything is the successor's, also the sockets' files, and it goes on once this process is gone: nothing
            // more is done here.
            std::process::exit(0);
        }
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

/// How serving has ended.
enum ServeEnd {
    /// Everything is stopped.
    Stopped,
    /// Another process has the clients, and waits for the log.
    Replaced,
}

/// Accepts until a signal comes, then stops everything; or until another process has taken over.
async fn accept(
    (config, env): (&Arc<Config>, &Env),
    listening: Listeners,
    promoted: Option<PromotedReplica>,
    instance: &Arc<Instance>,
    (access, spare, spawner): (&ClientAuthConfig, usize, &Spawner),
    (workers, checkpoints): (Vec<Arc<Inbox>>, Checkpoints),
    clients: InheritedClients,
) -> Result<ServeEnd, String> {
    let cannot_listen = |error: std::io::Error| format!("cannot listen: {error}");
    let was_replica = promoted.is_some();
    let listeners = match &promoted {
        Some(promoted) => promoted.listeners.clone(),
        None => ListenerDescriptors::of(&listening).map_err(cannot_listen)?,
    };
    let Listeners {
        listener,
        local,
        metrics,
    } = listening;
    let listener = TcpListener::from_std(listener).map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let (watched, mut signals) = match promoted {
        Some(PromotedReplica {
            watched, signals, ..
        }) => (Some(watched), signals),
        None => (None, StopSignals::new().map_err(|(_, error)| error)?),
    };
    if let Some(metrics) = metrics {
        let metrics = TcpListener::from_std(metrics)
            .map_err(|error| format!("cannot listen for metrics_listen: {error}"))?;
        if let Ok(address) = metrics.local_addr() {
            info!("metrics at http://{address}/metrics");
        }
        let watched = watched.clone();
        let watched = watched.unwrap_or_else(|| Arc::new(ServerStatus::of(Arc::clone(instance))));
        tokio::spawn(crate::metrics::serve(metrics, watched));
    }
    if let Some(watched) = watched {
        watched.set_primary(Arc::clone(instance));
    }
    tokio::spawn(watch(Arc::clone(instance)));
    if config.partition_balancing && instance.engine.instances().count() > 1 {
        tokio::spawn(balance(Arc::clone(instance)));
    }
    let arrivals = Arc::new(ClientAdmission::new(
        workers.clone(),
        Arc::clone(instance),
        config.connections_max + spare,
        access.timeout,
    ));
    arrivals.restore(clients).await;
    let mut accepting = local.accept(&arrivals)?;
    let mut replacement = Replacement::new(ReplacedServer {
        config: Arc::clone(config),
        env: env.clone(),
        instance: Arc::clone(instance),
        arrivals: Arc::clone(&arrivals),
        listeners,
    });
    announce(config, address);
    loop {
        tokio::select! {
            event = replacement.next() => match event {
                ReplacementEvent::StopAccepting | ReplacementEvent::Failed => {}
                ReplacementEvent::Replaced => {
                    // Its files are the other process's.
                    std::mem::forget(local);
                    // The others are told that they end. Whoever is proving who it is connects again.
                    let others = arrivals.connections().saturating_sub(instance.session_count());
                    let gone = async {
                        while arrivals.connections() > instance.serialized_count() + others {
                            tokio::time::sleep(STOP_POLL).await;
                        }
                    };
                    let _some_may_not_listen = tokio::time::timeout(GOODBYE_TIME, gone).await;
                    // One that did not end may have been told of a commit that was not waited for.
                    let flushed = instance.engine.flush_all_and_wait();
                    let _the_home_may_not_answer = tokio::time::timeout(GOODBYE_TIME, flushed).await;
                    return Ok(ServeEnd::Replaced);
                }
            },
            accepted = listener.accept(), if arrivals.accepts() => match accepted {
                Ok((stream, _)) => arrivals.arrived(stream),
                Err(error) => {
                    warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            signal = signals.next() => match signal {
                SignalRequest::Stop => break,
                SignalRequest::Reload => certificate_again(config, access),
                SignalRequest::Replace if was_replica => {
                    warn!("this process was started as a replica: start a primary of its home with --replace");
                }
                SignalRequest::Replace => spawner.spawn(env),
            },
        }
    }
    // One that is under way has failed: the last word was not said.
    drop(replacement);
    instance.resume();
    arrivals.open();
    info!(
        "stopping: open transactions have {} s",
        config.shutdown_grace.as_secs()
    );
    drop(listener);
    accepting.shutdown().await;
    drop(local);
    instance.stop();
    if !gone_within(instance, config.shutdown_grace, signals.stop()).await {
        instance.terminate_all();
        gone_within(instance, TERMINATE_TIME, std::future::pending()).await;
    }
    // A home that cannot be reached is waited for, but not against the will of whoever stops the server.
    let mut cut_short = pin!(signals.stop());
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
    Ok(ServeEnd::Stopped)
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

type Started = (Vec<Arc<Inbox>>, Vec<JoinHandle>);

pub(crate) fn start_workers(
    config: &Config,
    env: &Env,
    instance: &Arc<Instance>,
    access: &Arc<ClientAuthConfig>,
) -> std::io::Result<Started> {
    let (inboxes, receivers): (Vec<_>, Vec<_>) = (0..config.workers).map(|_| Inbox::new()).unzip();
    // A session may go on at any of them.
    let all: Arc<[Arc<Inbox>]> = inboxes.clone().into();
    let cores = instances::cores(config.workers, instance.engine.instances().count());
    instance.set_worker_cores(cores.clone());
    let mut threads = Vec::new();
    for ((number, receiver), core) in receivers.into_iter().enumerate().zip(cores) {
        let id = WorkerId(u16::try_from(number).map_err(std::io::Error::other)?);
        let (instance, all, access) = (Arc::clone(instance), Arc::clone(&all), Arc::clone(access));
        let thread = env.spawn(&format!("worker-{number}"), Some(core), move || {
            worker::run(id, &instance, receiver, &all, &access);
        })?;
        threads.push(thread);
    }
    Ok((inboxes, threads))
}

/// Looks what holds a worker.
pub(crate) async fn watch(instance: Arc<Instance>) {
    let mut looks = WatchdogState::default();
    loop {
        tokio::time::sleep(LOOK_PAUSE).await;
        instance.watch_workers(&mut looks);
    }
}

/// Has partitions move from instances with much load to others.
async fn balance(instance: Arc<Instance>) {
    let instances = instance.engine.instances();
    let partitions = || (0..VIRTUAL_PARTITIONS).map(PartitionId);
    let mut balance = PartitionBalance::new(instances.count(), usize::from(VIRTUAL_PARTITIONS));
    let mut owners = Vec::new();
    loop {
        tokio::time::sleep(BALANCE_PAUSE).await;
        owners.clear();
        owners.extend(partitions().map(|partition| instances.of_partition(partition)));
        let loads = partitions().map(|partition| instances.load_of(partition));
        let is_pinned = |partition| instance.is_partition_pinned(partition);
        let Some(PartitionMove { partition, to }) = balance.round(loads, &owners, is_pinned) else {
            continue;
        };
        match instance.balance_partition(partition, to) {
            // It was moved by hand a moment ago.
            Ok(false) => {}
            Ok(true) => info!("partition {partition} moves to instance {to}, which has less to do"),
            Err(error) => warn!(
                "partition {partition} does not move: {}",
                error.fields().message
            ),
        }
    }
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
