//! The server that is replaced.
//!
//! Invariant: until the last word is said ([`FromPredecessor::Yours`]) a failure resumes the sessions. Once it is,
//! nothing resumes them ([`Replacement::next`]).

use super::{
    ANSWER_TIME, FromPredecessor, FromSuccessor, ListenerName, PROTOCOL, channel_name, receive,
    send,
};
use crate::client_admission::ClientAdmission;
use crate::client_handover::{collect_clients, pause_clients};
use crate::config::Config;
use crate::inherited_clients::InheritedClients;
use crate::prepare::Listeners;
use crate::prewarm::Listing;
use logstead_engine::{Engine, server_identity};
use logstead_env::{DescriptorChannel, DescriptorListener, Env};
use logstead_sql_session::{HandoverTarget, Instance};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

/// A successor reads the log beside this process before it is ready.
const READY_TIME: Duration = Duration::from_secs(3600);
/// A checkpoint that took longer than this has left much behind it: another one is taken.
const CHECKPOINT_TIME: Duration = Duration::from_millis(200);
const CHECKPOINTS_MAX: usize = 3;
/// The pause after a process was not heard.
const POLL: Duration = Duration::from_millis(1);
/// How long the pause waits for a message to be taken, for the answer, and for the log to be flushed.
const SEND_TIME: Duration = Duration::from_secs(5);
/// Files that are needed besides one for each client.
const DESCRIPTORS_SPARE: usize = 64;
/// Processes that may ask at once.
const ASKING_MAX: usize = 8;

/// Other names of the sockets that are listened on.
#[derive(Clone)]
pub(crate) struct ListenerDescriptors(Arc<Vec<(ListenerName, Vec<OwnedFd>)>>);

impl ListenerDescriptors {
    /// Of these.
    pub(crate) fn of(listeners: &Listeners) -> io::Result<ListenerDescriptors> {
        let tcp = listeners.listener.as_fd().try_clone_to_owned()?;
        let mut all = vec![(ListenerName::Clients, vec![tcp])];
        if let Some(metrics) = &listeners.metrics {
            let metrics = metrics.as_fd().try_clone_to_owned()?;
            all.push((ListenerName::Metrics, vec![metrics]));
        }
        for socket in listeners.local.each() {
            let socket = socket.descriptors()?;
            let name = ListenerName::Local(socket.path);
            all.push((name, vec![socket.listener, socket.lock]));
        }
        Ok(ListenerDescriptors(Arc::new(all)))
    }
}

/// Each client's socket gets another name, for who goes on with it: there has to be room for them all.
pub(crate) fn check_descriptors(
    listeners: &ListenerDescriptors,
    arrivals: &ClientAdmission,
) -> Result<(), String> {
    let first = listeners.0.first();
    let Some(any) = first.and_then(|(_, descriptors)| descriptors.first()) else {
        return Ok(());
    };
    let clients = arrivals.connections() + arrivals.silent_count();
    let needed = 0..clients + DESCRIPTORS_SPARE;
    let room: io::Result<Vec<OwnedFd>> = needed.map(|_| any.try_clone()).collect();
    room.map(|_| ()).map_err(|error| {
        format!(
            "each client's socket needs a second descriptor for whoever goes on with it: {error}"
        )
    })
}

/// What is replaced.
#[derive(Clone)]
pub(crate) struct ReplacedServer {
    pub(crate) config: Arc<Config>,
    pub(crate) env: Env,
    pub(crate) instance: Arc<Instance>,
    pub(crate) arrivals: Arc<ClientAdmission>,
    pub(crate) listeners: ListenerDescriptors,
}

/// What whoever accepts clients has to know.
pub(crate) enum ReplacementEvent {
    /// Nobody is to be accepted any more, until [`ClientAdmission::accepts`] says otherwise.
    StopAccepting,
    /// It has failed: the server goes on.
    Failed,
    /// Everything is the successor's, but for the log: this process is to give that up, and to end.
    Replaced,
}

type Step<T> = Pin<Box<dyn Future<Output = Result<T, String>>>>;

enum Stage {
    Idle,
    Pausing(Step<Successor>),
    Sending(Step<Successor>),
}

/// A successor that is ready.
struct Successor {
    channel: DescriptorChannel,
    /// It wants to know what is in memory.
    prewarms: bool,
}

/// Waits for successors, and lets one take over.
pub(crate) struct Replacement {
    server: ReplacedServer,
    ready: mpsc::Receiver<Successor>,
    stage: Stage,
}

impl Replacement {
    /// Waits from now on. A server that cannot be found by successors serves all the same.
    pub(crate) fn new(server: ReplacedServer) -> Replacement {
        let (found, ready) = mpsc::channel(1);
        let name = channel_name(&server.config);
        match DescriptorListener::bind(&name) {
            Ok(listener) => {
                let listen = server.config.values.get("listen").cloned();
                let listen = listen.unwrap_or_else(|| server.config.listen.to_string());
                let (env, instance) = (server.env.clone(), Arc::clone(&server.instance));
                let waiting = server.env.spawn("successors", None, move || {
                    wait_for_successors(&env, &listener, &instance, &listen, &found);
                });
                if let Err(error) = waiting {
                    warn!("this server cannot be replaced while it runs: {error}");
                }
            }
            Err(error) => warn!("this server cannot be replaced while it runs: {error}"),
        }
        Replacement {
            server,
            ready,
            stage: Stage::Idle,
        }
    }

    /// The next event. May be dropped at any time and called again.
    pub(crate) async fn next(&mut self) -> ReplacementEvent {
        let failed = loop {
            match &mut self.stage {
                Stage::Idle => match self.ready.recv().await {
                    Some(successor) => {
                        let server = self.server.clone();
                        self.stage = Stage::Pausing(Box::pin(server.pause(successor)));
                    }
                    None => std::future::pending().await,
                },
                Stage::Pausing(paused) => match paused.await {
                    Ok(successor) => {
                        let server = self.server.clone();
                        self.server.arrivals.hand_out();
                        self.stage = Stage::Sending(Box::pin(server.send(successor)));
                        return ReplacementEvent::StopAccepting;
                    }
                    Err(why) => break why,
                },
                Stage::Sending(sent) => match sent.await {
                    Ok(successor) => {
                        self.stage = Stage::Idle;
                        match self.last_word(successor) {
                            Ok(()) => return ReplacementEvent::Replaced,
                            Err(error) => break error.to_string(),
                        }
                    }
                    Err(why) => break why,
                },
            }
        };
        self.stage = Stage::Idle;
        warn!("this process is not replaced, it goes on: {failed}");
        self.server.instance.resume();
        self.server.arrivals.open();
        ReplacementEvent::Failed
    }

    /// Gives everything away. An error says that the successor cannot have heard it.
    fn last_word(&self, successor: Successor) -> io::Result<()> {
        let Successor { mut channel, .. } = successor;
        let lease = self.server.instance.engine.lease();
        let lease = lease.map(|lease| lease.owner());
        send(&mut channel, &FromPredecessor::Yours { lease }, &[])?;
        // It is open until this process has ended: the successor waits for that.
        std::mem::forget(channel);
        self.server.instance.leave();
        Ok(())
    }
}

/// Lets successors come, one after the other, until nobody wants any.
fn wait_for_successors(
    env: &Env,
    listener: &DescriptorListener,
    instance: &Arc<Instance>,
    listen: &str,
    found: &mpsc::Sender<Successor>,
) {
    let asking = Arc::new(AtomicUsize::new(0));
    while !found.is_closed() {
        let channel = match listener.accept() {
            Ok(channel) if asking.load(Ordering::SeqCst) < ASKING_MAX => channel,
            Ok(_) => continue,
            Err(error) => {
                info!("a process that asks to replace this one is not heard: {error}");
                logstead_env::sleep(POLL);
                continue;
            }
        };
        let (instance, listen, found) = (Arc::clone(instance), listen.to_owned(), found.clone());
        let count = Arc::clone(&asking);
        count.fetch_add(1, Ordering::SeqCst);
        // One that hangs keeps no other from being heard.
        let heard = env.spawn("asks to replace", None, move || {
            match greet(channel, &instance, &listen) {
                Ok(Some(successor)) => {
                    let _nobody_waits_at_a_stop = found.blocking_send(successor);
                }
                Ok(None) => {}
                Err(error) => {
                    info!("a process that asked to replace this one is not ready: {error}");
                }
            }
            count.fetch_sub(1, Ordering::SeqCst);
        });
        if let Err(error) = heard {
            asking.fetch_sub(1, Ordering::SeqCst);
            warn!("a process that asks to replace this one is not heard: {error}");
        }
    }
}

/// Hears a process out, until it is ready.
fn greet(
    mut channel: DescriptorChannel,
    instance: &Instance,
    listen: &str,
) -> io::Result<Option<Successor>> {
    channel.set_timeout(Some(ANSWER_TIME))?;
    let (hello, _) = receive::<FromSuccessor>(&mut channel)?;
    let FromSuccessor::Hello {
        protocol,
        process,
        version,
    } = hello
    else {
        return Ok(None);
    };
    let mut refuse = |why: String| {
        warn!("process {process} asks to replace this one, and is refused: {why}");
        send(&mut channel, &FromPredecessor::Refused { why }, &[])
    };
    if protocol != PROTOCOL {
        let own = env!("CARGO_PKG_VERSION");
        refuse(format!(
            "it is of version {own}, which replaces servers in way {PROTOCOL}; version {version} does so in way {protocol}: stop it, and start the other one"
        ))?;
        return Ok(None);
    }
    // Whoever reads it there may read the log.
    let identity = instance.identity();
    let published = server_identity::publish(instance.engine.home().names.as_ref(), identity);
    if let Err(error) = published {
        refuse(format!("its home does not answer: {error}"))?;
        return Ok(None);
    }
    info!("process {process}, version {version}, asks to replace this one");
    let welcome = FromPredecessor::Welcome {
        process: std::process::id(),
        listen: listen.to_owned(),
        write_way: instance.settings.now().get("logstead.write_way").cloned(),
    };
    send(&mut channel, &welcome, &[])?;
    channel.set_timeout(Some(READY_TIME))?;
    let (ready, _) = receive::<FromSuccessor>(&mut channel)?;
    channel.set_timeout(Some(SEND_TIME))?;
    match ready {
        FromSuccessor::Ready {
            identity: found,
            prewarm,
        } if found == Some(identity) => Ok(Some(Successor {
            channel,
            prewarms: prewarm,
        })),
        FromSuccessor::Ready { .. } => {
            let why = "it has not found at the home what this server has left there";
            let refused = FromPredecessor::Refused {
                why: "it works on another copy of the home".to_owned(),
            };
            send(&mut channel, &refused, &[])?;
            Err(io::Error::other(why))
        }
        FromSuccessor::Hello { .. } | FromSuccessor::Received { .. } => Ok(None),
    }
}

impl Successor {
    fn is_there(&self) -> Result<(), String> {
        match self.channel.has_ended() {
            true => Err("the successor has ended".to_owned()),
            false => Ok(()),
        }
    }
}

impl ReplacedServer {
    /// Takes a checkpoint, and pauses the sessions.
    async fn pause(self, successor: Successor) -> Result<Successor, String> {
        if !self.config.checkpoint_interval.is_zero() {
            self.checkpoint().await;
        }
        successor.is_there()?;
        let successor = self.send_prewarm(successor).await?;
        let (instance, arrivals) = (&self.instance, &self.arrivals);
        check_descriptors(&self.listeners, arrivals)?;
        let grace = self.config.replace_grace;
        pause_clients(instance, arrivals, grace, || successor.is_there()).await?;
        Ok(successor)
    }

    /// Tells what is in memory, while everybody goes on.
    async fn send_prewarm(&self, mut successor: Successor) -> Result<Successor, String> {
        if !successor.prewarms {
            return Ok(successor);
        }
        let listing = Listing::start(&self.config, &self.env, &self.instance.engine);
        let Some(list) = listing.whole().await else {
            return Ok(successor);
        };
        let sent = self.aside("prewarm list", move || {
            let list = list.encode();
            let message = FromPredecessor::Prewarm { list };
            send(&mut successor.channel, &message, &[]).map(|()| successor)
        })?;
        match sent.await {
            Ok(sent) => sent.map_err(|error| format!("the successor does not listen: {error}")),
            Err(_) => Err("the thread that sends has panicked".to_owned()),
        }
    }

    /// Takes checkpoints until one has little to write.
    async fn checkpoint(&self) {
        for _ in 0..CHECKPOINTS_MAX {
            let begun = tokio::time::Instant::now();
            let engine = self.instance.engine.clone();
            match self.aside("checkpoint for successor", move || checkpoint(&engine)) {
                Ok(taken) => match taken.await {
                    Ok(Ok(())) if begun.elapsed() > CHECKPOINT_TIME => {}
                    Ok(Ok(())) => return,
                    Ok(Err(why)) => {
                        warn!("no checkpoint was taken, the successor has more to read: {why}");
                        return;
                    }
                    // It has panicked, and that was told.
                    Err(_) => return,
                },
                Err(why) => return warn!("no checkpoint was taken: {why}"),
            }
        }
    }

    /// Does something that blocks in a thread of its own. Whoever drops the answer does not wait for it.
    fn aside<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, String> {
        let (done, answer) = oneshot::channel();
        let started = self.env.spawn(name, None, move || {
            let _nobody_waits_at_a_stop = done.send(work());
        });
        started.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(answer)
    }

    /// Sends everything, and hears that it has come.
    async fn send(self, successor: Successor) -> Result<Successor, String> {
        let instance = &self.instance;
        let there = || successor.is_there();
        let target = HandoverTarget::OtherProcess;
        let clients = collect_clients(instance, &self.arrivals, target, there).await?;
        let flushed = tokio::time::timeout(SEND_TIME, instance.engine.flush_all_and_wait());
        match flushed.await {
            Ok(flushed) => {
                flushed.map_err(|error| format!("the log cannot be flushed: {error}"))?
            }
            Err(_) => return Err("the log cannot be flushed in time".to_owned()),
        }
        let listeners = self.listeners.clone();
        let count = clients.sessions.len();
        let sent = self.aside("send to successor", move || {
            let mut successor = successor;
            send_all(&mut successor.channel, &listeners, clients).map(|()| successor)
        })?;
        match sent.await {
            Ok(Ok(successor)) => {
                info!("{count} sessions are the successor's");
                Ok(successor)
            }
            Ok(Err(error)) => Err(format!("the successor has not taken over: {error}")),
            Err(_) => Err("the thread that sends has panicked".to_owned()),
        }
    }
}

fn checkpoint(engine: &Engine) -> Result<(), String> {
    let taken = engine.checkpoint();
    taken.map(|_| ()).map_err(|error| error.to_string())
}

fn send_all(
    channel: &mut DescriptorChannel,
    listeners: &ListenerDescriptors,
    clients: InheritedClients,
) -> io::Result<()> {
    let mut messages = 0;
    let mut put = |channel: &mut DescriptorChannel, message, descriptors: &[OwnedFd]| {
        messages += 1;
        send::<FromPredecessor>(channel, &message, descriptors)
    };
    for (name, descriptors) in listeners.0.iter() {
        let message = FromPredecessor::Listener(name.clone());
        put(channel, message, descriptors)?;
    }
    for client in clients.sessions {
        let message = FromPredecessor::Client {
            session: Box::new(client.session),
            input: client.input,
            unwanted: client.unwanted,
        };
        put(channel, message, &[client.descriptor])?;
    }
    for (descriptor, local) in clients.arrivals {
        put(channel, FromPredecessor::Arrival { local }, &[descriptor])?;
    }
    send(channel, &FromPredecessor::Complete { messages }, &[])?;
    match receive(channel)?.0 {
        FromSuccessor::Received { messages: received } if received == messages => Ok(()),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{messages} messages were sent, and the answer is {other:?}"),
        )),
    }
}
