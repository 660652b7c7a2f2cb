//! `logstead serve --replica-of URL`: a server that follows another server's log and answers reads.
//!
//! Threads: one follows the log ([`follow`]); it opens engine and catalog, and hands them to this one, which starts the
//! workers and accepts. There is no thread of checkpoints and nobody who analyzes by himself: all that writes is the
//! primary's.
//!
//! **Begin again.** The primary waits for nobody. Once something is gone that the replica would have had to read next,
//! its sessions end, engine and workers go, and the replica is opened anew at the newest checkpoint, in the same
//! process and on the same sockets; who connects meanwhile waits. It serves when it has come as far as it had before,
//! so that nobody goes back.
//!
//! **By a stream.** With `primary_conninfo` another thread receives what the primary writes ([`stream`]).
//!
//! **Promotion.** See [`promote`].

mod follow;
mod pages;
mod promote;
mod replies;
mod round_choice;
mod rows;
mod stream;

use crate::client_admission::ClientAdmission;
use crate::client_handover::{collect_clients, pause_clients};
use crate::config::Config;
use crate::inherited_clients::{InheritedClients, InheritedSessions};
use crate::metrics::ServerStatus;
use crate::open::{Failure, OpenInstance, prices, proofs, release};
use crate::prepare::{Listeners, Preparation, certificate_again};
use crate::prewarm::Listing;
use crate::replace::{ListenerDescriptors, check_descriptors};
use crate::serve::{
    self, ACCEPT_PAUSE, PromotedReplica, TERMINATE_TIME, announce, gone_within, start_workers,
    watch,
};
use crate::signals::{SignalRequest, StopSignals};
use crate::system_file::SystemFile;
use crate::worker::Inbox;
use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
pub(crate) use follow::readable;
use follow::{FollowEnd, FollowerThread, ReplicaEngine};
use logstead_engine::{PrewarmList, Warmup};
use logstead_env::{Env, JoinHandle};
use logstead_sql_catalog::{ReplicaPhase, ReplicaStatus, Tariff};
use logstead_sql_session::{HandoverTarget, Instance, Promotion};
use logstead_types::Csn;
use logstead_wire::hba::ClientAuthConfig;
use promote::PromotionAttempts;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tracing::{error, info, warn};

/// Between the end of one engine and the beginning of the next.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
/// A replica that has followed for so long has not begun again in vain.
const MEMORY_RESTART_APART: Duration = Duration::from_secs(3600);

/// Serves until it is stopped; once it is promoted, as any primary does.
pub(crate) fn run(prepared: Preparation) -> ExitCode {
    let runtime = match serve::runtime() {
        Ok(runtime) => runtime,
        Err((code, message)) => return fail(code, &message),
    };
    let Preparation {
        config,
        env,
        listening,
        access,
        spare,
        spawner,
    } = prepared;
    let config = match asked_for_home(config, &env) {
        Ok(config) => Arc::new(config),
        Err((code, message)) => return fail(code, &message),
    };
    match runtime.block_on(serve(&config, &env, listening, &access, spare)) {
        Ok(None) => {
            info!("stopped");
            ExitCode::SUCCESS
        }
        Ok(Some((listening, promoted, opened, inherited))) => {
            let prepared = Preparation {
                config: config.promoted(),
                env,
                listening,
                access,
                spare,
                spawner,
            };
            serve::run_instance(&runtime, prepared, Some(promoted), opened, inherited)
        }
        Err((code, message)) => fail(code, &message),
    }
}

/// Where `replica_of` is a connection to the primary, that is asked where its log lives.
fn asked_for_home(config: Config, env: &Env) -> Result<Config, Failure> {
    let connection = match &config.primary_conninfo {
        Some(connection) if config.asks_for_home => connection.clone(),
        _ => return Ok(config),
    };
    let mut why = Vec::new();
    for (host, port) in connection.hosts() {
        let link = connection.connect_to(&host, port, env);
        match link.and_then(|mut link| link.query("IDENTIFY_SYSTEM")) {
            Ok(identity) => match identity.get(3) {
                Some(home) => {
                    info!("the log of the primary at {host}:{port} is at {home}");
                    return Ok(Config {
                        replica_of: Some(home.clone()),
                        ..config
                    });
                }
                None => why.push(format!(
                    "{host}:{port}: it does not tell where its log lives"
                )),
            },
            Err(error) => why.push(format!("{host}:{port}: {error}")),
        }
    }
    let why = why.join("; ");
    Err((
        EXIT_FAILURE,
        format!("replica_of: the primary cannot be asked where its log lives: {why}"),
    ))
}

/// Why clients are not accepted any more.
enum AcceptOutcome {
    Stop,
    Ended(FollowEnd),
    Promoted(Box<OpenInstance>),
}

async fn serve(
    config: &Arc<Config>,
    env: &Env,
    listening: Listeners,
    access: &Arc<ClientAuthConfig>,
    spare: usize,
) -> Result<Option<(Listeners, PromotedReplica, OpenInstance, InheritedSessions)>, Failure> {
    let cannot_listen = |error: std::io::Error| (EXIT_FAILURE, format!("cannot listen: {error}"));
    let listeners = ListenerDescriptors::of(&listening).map_err(cannot_listen)?;
    let listener = TcpListener::from_std(listening.listener).map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let home = config.replica_of.clone().unwrap_or_default();
    let status = Arc::new(ReplicaStatus::new(home));
    let watched = Arc::new(ServerStatus::of_replica(Arc::clone(&status)));
    if let Some(metrics) = listening.metrics {
        let metrics = TcpListener::from_std(metrics).map_err(cannot_listen)?;
        if let Ok(address) = metrics.local_addr() {
            info!("metrics at http://{address}/metrics");
        }
        tokio::spawn(crate::metrics::serve(metrics, Arc::clone(&watched)));
    }
    let mut asked = StopSignals::new()?;
    let mut shown = Csn::ZERO;
    let mut memory_restarts = 0;
    // What the engine before had in memory.
    let mut prewarm = None;
    let promotion = Arc::new(Promotion::default());
    let mut promoting = PromotionAttempts::new(config, env, &status, &promotion);
    loop {
        let begun = tokio::time::Instant::now();
        let following = FollowerThread::start(
            config,
            env,
            &status,
            promoting.database(),
            shown,
            memory_restarts,
        );
        let (mut following, opened) = following.map_err(|error| {
            let what = format!("cannot start the thread that follows the log: {error}");
            (EXIT_FAILURE, what)
        })?;
        let has_served = shown > Csn::ZERO;
        let opened = tokio::select! {
            biased;
            opened = promoting.next(), if has_served => {
                status.update(|report| report.phase = ReplicaPhase::Promoted);
                info!("the log is this server's: it goes on as the primary");
                let joined = tokio::task::spawn_blocking(move || following.join());
                if joined.await.is_err() {
                    warn!("the end of the thread that follows the log panicked");
                }
                let listening = Listeners {
                    listener: listener.into_std().map_err(cannot_listen)?,
                    local: listening.local,
                    metrics: None,
                };
                let promoted = PromotedReplica { listeners, watched, signals: asked };
                let inherited = InheritedSessions {
                    prewarm,
                    ..InheritedSessions::default()
                };
                return Ok(Some((listening, promoted, opened, inherited)));
            }
            opened = opened => opened,
            () = asked.stop() => {
                promoting.give_up();
                return Ok(None);
            }
        };
        // It has ended without a word only if it was told to.
        let Ok(opened) = opened else { return Ok(None) };
        let started = opened.and_then(|opened| {
            Server::start(config, env, opened, prewarm.take(), access, &promotion)
        });
        let server = match started {
            Ok(server) => server,
            Err(failure) => {
                // The process ends with this: nobody is to follow the log meanwhile.
                let joined = tokio::task::spawn_blocking(move || following.join());
                if joined.await.is_err() {
                    warn!("the end of the thread that follows the log panicked");
                }
                return Err(failure);
            }
        };
        watched.set(Some(Arc::clone(&server.instance)));
        let arrivals = Arc::new(ClientAdmission::new(
            server.inboxes.clone(),
            Arc::clone(&server.instance),
            config.connections_max + spare,
            access.timeout,
        ));
        let mut accepting = listening
            .local
            .accept(&arrivals)
            .map_err(|error| (EXIT_FAILURE, error))?;
        if shown == Csn::ZERO {
            announce(config, address);
        } else {
            info!("the replica serves again");
        }
        let over = loop {
            tokio::select! {
                biased;
                // Before anything else that has happened: nobody serves a log that was had and overlooked.
                opened = promoting.next() => break AcceptOutcome::Promoted(Box::new(opened)),
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => arrivals.arrived(stream),
                    Err(error) => {
                        warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                ended = &mut following.ended => match ended {
                    Ok(ending) => break AcceptOutcome::Ended(ending),
                    Err(_) => break AcceptOutcome::Stop,
                },
                signal = asked.next() => match signal {
                    SignalRequest::Stop => break AcceptOutcome::Stop,
                    SignalRequest::Reload => certificate_again(config, access),
                    SignalRequest::Replace => {
                        warn!("a replica is not replaced under its clients: stop it and start another one");
                    }
                },
            }
        };
        accepting.shutdown().await;
        // A replica that cannot go on may be about to have the log.
        let over = match over {
            AcceptOutcome::Ended(FollowEnd::Failed(why)) => match promoting.outcome().await {
                Some(opened) => AcceptOutcome::Promoted(Box::new(opened)),
                None => AcceptOutcome::Ended(FollowEnd::Failed(why)),
            },
            over => over,
        };
        let listing = match over {
            AcceptOutcome::Promoted(_) | AcceptOutcome::Ended(FollowEnd::Restart { .. }) => {
                Some(Listing::start(config, env, &server.instance.engine))
            }
            AcceptOutcome::Stop | AcceptOutcome::Ended(FollowEnd::Failed(_)) => None,
        };
        let mut given_up = None;
        let (over, clients) = match over {
            AcceptOutcome::Promoted(opened) => {
                status.update(|report| report.phase = ReplicaPhase::Promoted);
                let departing = async {
                    promotion.answers_have_left().await;
                    info!("the log is this server's: it goes on as the primary");
                    match check_descriptors(&listeners, &arrivals) {
                        Ok(()) => {
                            let grace = config.replace_grace;
                            departing_clients(&server.instance, &arrivals, grace).await
                        }
                        Err(why) => {
                            warn!("the replica's sessions end: {why}");
                            InheritedClients::default()
                        }
                    }
                };
                tokio::select! {
                    clients = departing => (AcceptOutcome::Promoted(opened), clients),
                    () = asked.stop() => {
                        // They are still the replica's, and end with it.
                        server.instance.resume();
                        arrivals.open();
                        given_up = Some(opened);
                        (AcceptOutcome::Stop, InheritedClients::default())
                    }
                }
            }
            over => (over, InheritedClients::default()),
        };
        arrivals.close();
        drop(arrivals);
        if let Some(listing) = listing {
            prewarm = listing.ended().await;
        }
        match over {
            AcceptOutcome::Stop => {
                drop(listener);
                drop(listening.local);
                info!(
                    "stopping: open transactions have {} s",
                    config.shutdown_grace.as_secs()
                );
                status.update(|report| report.phase = ReplicaPhase::Stopped);
                server.stop(config.shutdown_grace, asked.stop()).await;
                promoting.give_up();
                if let Some(opened) = given_up {
                    release(&opened.0.engine, env, config.lease_duration);
                }
                return Ok(None);
            }
            AcceptOutcome::Promoted(opened) => {
                watched.set(None);
                server.end(following, stop_all).await;
                let listener = listener.into_std().map_err(cannot_listen)?;
                let listening = Listeners {
                    listener,
                    local: listening.local,
                    metrics: None,
                };
                let promoted = PromotedReplica {
                    listeners,
                    watched,
                    signals: asked,
                };
                let inherited = InheritedSessions { clients, prewarm };
                return Ok(Some((listening, promoted, *opened, inherited)));
            }
            AcceptOutcome::Ended(FollowEnd::Failed(why)) => {
                error!("the replica cannot go on: {why}");
                status.update(|report| report.phase = ReplicaPhase::Stopped);
                server.stop(Duration::ZERO, std::future::pending()).await;
                return Err((EXIT_FAILURE, format!("replica_of: {why}")));
            }
            AcceptOutcome::Ended(FollowEnd::Restart {
                why,
                shown: seen,
                for_memory,
            }) => {
                warn!("the replica begins again at the newest checkpoint: {why}");
                status.update(|report| {
                    report.phase = ReplicaPhase::Restarting;
                    report.restarts += 1;
                });
                watched.set(None);
                server.end(following, Instance::restart_all).await;
                shown = seen.max(Csn(1));
                memory_restarts = match for_memory {
                    true if begun.elapsed() < MEMORY_RESTART_APART => memory_restarts + 1,
                    true => 1,
                    false => 0,
                };
                tokio::time::sleep(RESTART_PAUSE).await;
            }
        }
    }
}

/// The clients of a replica that is promoted, with their sessions; none if they cannot leave, and then they end.
async fn departing_clients(
    instance: &Arc<Instance>,
    arrivals: &Arc<ClientAdmission>,
    grace: Duration,
) -> InheritedClients {
    let go_on = || Ok(());
    let paused = pause_clients(instance, arrivals, grace, go_on).await;
    arrivals.hand_out();
    let collected = match paused {
        Ok(()) => collect_clients(instance, arrivals, HandoverTarget::SameProcess, go_on).await,
        Err(why) => Err(why),
    };
    match collected {
        Ok(clients) => {
            instance.depart();
            clients
        }
        Err(why) => {
            warn!("the replica's sessions end: {why}");
            InheritedClients::default()
        }
    }
}

/// The replica is no more: every session ends, and new ones are refused.
fn stop_all(instance: &Instance) {
    instance.stop();
    instance.terminate_all();
}

/// What serves from one engine.
struct Server {
    instance: Arc<Instance>,
    inboxes: Vec<Arc<Inbox>>,
    threads: Vec<JoinHandle>,
    warmup: Warmup,
    watcher: tokio::task::JoinHandle<()>,
}

impl Server {
    fn start(
        config: &Arc<Config>,
        env: &Env,
        opened: ReplicaEngine,
        prewarm: Option<PrewarmList>,
        access: &Arc<ClientAuthConfig>,
        promotion: &Arc<Promotion>,
    ) -> Result<Server, Failure> {
        let ReplicaEngine {
            engine,
            store,
            values,
        } = opened;
        proofs(config, &store).map_err(|message| (EXIT_USAGE, message))?;
        let prices = prices(config).map_err(|why| (EXIT_USAGE, format!("price_list: {why}")))?;
        store.set_tariff(Tariff {
            prices,
            lease_renewed_every: None,
        });
        // Without it pages would be read from the start's checkpoint when that is gone.
        let warmup =
            Warmup::start(&engine, prewarm, crate::serve::warm(&engine)).map_err(|error| {
                let what = format!("cannot start the thread that brings rows in: {error}");
                (EXIT_FAILURE, what)
            })?;
        let mut instance =
            Instance::new(engine, store, env.clone(), values, config.connections_max);
        if let Some(own) = &config.system_file {
            instance.configure(Arc::new(SystemFile::new(
                env.clone(),
                config.given.clone(),
                config.file.as_ref().map(PathBuf::from),
                own.clone(),
            )));
        }
        instance.set_promotion(Arc::clone(promotion));
        let instance = Arc::new(instance);
        let workers = start_workers(config, env, &instance, access);
        let (inboxes, threads) =
            workers.map_err(|error| (EXIT_FAILURE, format!("cannot start a worker: {error}")))?;
        let watcher = tokio::spawn(watch(Arc::clone(&instance)));
        Ok(Server {
            instance,
            inboxes,
            threads,
            warmup,
            watcher,
        })
    }

    /// The process ends: sessions have that long, or until `cut_short`.
    async fn stop(self, grace: Duration, cut_short: impl Future<Output = ()>) {
        self.instance.stop();
        if !gone_within(&self.instance, grace, cut_short).await {
            self.instance.terminate_all();
            gone_within(&self.instance, TERMINATE_TIME, std::future::pending()).await;
        }
        // Whatever a thread waits for ends with the process.
        std::mem::forget(self);
    }

    /// Everything ends, so that another one can begin. `tell` ends the sessions.
    async fn end(self, following: FollowerThread, tell: fn(&Instance)) {
        let Server {
            instance,
            inboxes,
            threads,
            warmup,
            watcher,
        } = self;
        tell(&instance);
        gone_within(&instance, TERMINATE_TIME, std::future::pending()).await;
        watcher.abort();
        inboxes.iter().for_each(|inbox| inbox.close());
        drop(inboxes);
        let ended = tokio::task::spawn_blocking(move || {
            // With it the evictor ends: nobody waits for memory any more.
            following.join();
            drop(warmup);
            for thread in threads {
                if thread.join().is_err() {
                    warn!("a worker thread panicked");
                }
            }
            // The memory of the engine is free when the last of them lets go of it.
            drop(instance);
        });
        if ended.await.is_err() {
            warn!("the end of the replica's engine panicked");
        }
    }
}
