//! The server that is replaced.
//!
//! Invariant: until the successor has said that it has everything, a failure resumes the sessions ([`Replacement::next`]).

use super::{
    ANSWER_TIME, FromPredecessor, FromSuccessor, ListenerName, PROTOCOL, channel_name, receive,
    send,
};
use crate::client_admission::ClientAdmission;
use crate::config::Config;
use crate::prepare::Listeners;
use crate::serve::TERMINATE_TIME;
use logstead_engine::Engine;
use logstead_env::{DescriptorChannel, DescriptorListener, Env};
use logstead_sql_session::{Instance, SerializedClient};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

/// A successor reads the log beside this process before it is ready.
const READY_TIME: Duration = Duration::from_secs(300);
/// A checkpoint that took longer than this has left much behind it: another one is taken.
const CHECKPOINT_TIME: Duration = Duration::from_millis(200);
const CHECKPOINTS_MAX: usize = 3;
/// How often it is looked whether sessions have come to rest.
const POLL: Duration = Duration::from_millis(1);
/// Paused sessions say what they are at once.
const SERIALIZE_TIME: Duration = Duration::from_secs(10);
/// What nobody else can go on with has so long to be told.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// Other names of the sockets that are listened on.
pub(crate) struct ListenerDescriptors(Vec<(ListenerName, Vec<OwnedFd>)>);

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
        Ok(ListenerDescriptors(all))
    }
}

/// What is replaced.
#[derive(Clone)]
pub(crate) struct Replaced {
    pub(crate) config: Arc<Config>,
    pub(crate) env: Env,
    pub(crate) instance: Arc<Instance>,
    pub(crate) arrivals: Arc<ClientAdmission>,
    pub(crate) listeners: Arc<ListenerDescriptors>,
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
    Sending(Step<()>),
}

/// A successor that is ready.
struct Successor {
    channel: DescriptorChannel,
}

/// Waits for successors, and lets one take over.
pub(crate) struct Replacement {
    server: Replaced,
    ready: mpsc::Receiver<Successor>,
    stage: Stage,
}

impl Replacement {
    /// Waits from now on. A server that cannot be found by successors serves all the same.
    pub(crate) fn new(server: Replaced) -> Replacement {
        let (found, ready) = mpsc::channel(1);
        let name = channel_name(&server.config);
        match DescriptorListener::bind(&name) {
            Ok(listener) => {
                let listen = server.config.values.get("listen").cloned();
                let listen = listen.unwrap_or_else(|| server.config.listen.to_string());
                let waiting = server.env.spawn("successors", None, move || {
                    wait_for_successors(&listener, &listen, &found);
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
                    Ok(()) => {
                        self.stage = Stage::Idle;
                        return ReplacementEvent::Replaced;
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
}

/// Lets successors come, one after the other, until nobody wants any.
fn wait_for_successors(
    listener: &DescriptorListener,
    listen: &str,
    found: &mpsc::Sender<Successor>,
) {
    loop {
        match listener.accept().and_then(|channel| greet(channel, listen)) {
            Ok(Some(successor)) => {
                if found.blocking_send(successor).is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(error) => {
                debug!("a process that asked to replace this one has gone: {error}");
                logstead_env::sleep(POLL);
            }
        }
        if found.is_closed() {
            return;
        }
    }
}

/// Hears a process out, until it is ready.
fn greet(mut channel: DescriptorChannel, listen: &str) -> io::Result<Option<Successor>> {
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
    if protocol != PROTOCOL {
        let own = env!("CARGO_PKG_VERSION");
        let why = format!(
            "it is of version {own}, which replaces servers in way {PROTOCOL}; version {version} does so in way {protocol}: stop it, and start the other one"
        );
        send(&mut channel, &FromPredecessor::Refused { why }, &[])?;
        return Ok(None);
    }
    info!("process {process}, version {version}, asks to replace this one");
    let welcome = FromPredecessor::Welcome {
        process: std::process::id(),
        listen: listen.to_owned(),
    };
    send(&mut channel, &welcome, &[])?;
    channel.set_timeout(Some(READY_TIME))?;
    let (ready, _) = receive::<FromSuccessor>(&mut channel)?;
    channel.set_timeout(Some(ANSWER_TIME))?;
    Ok(matches!(ready, FromSuccessor::Ready).then_some(Successor { channel }))
}

impl Replaced {
    /// Takes a checkpoint, and pauses the sessions.
    async fn pause(self, successor: Successor) -> Result<Successor, String> {
        if self.instance.is_stopping() {
            return Err("it is stopping".to_owned());
        }
        if !self.config.checkpoint_interval.is_zero() {
            self.checkpoint().await;
        }
        let grace = self.config.replace_grace;
        info!(
            "sessions pause, open transactions have {} ms",
            grace.as_millis()
        );
        let instance = &self.instance;
        self.arrivals.hold();
        instance.pause();
        let paused = || self.connections() <= instance.paused_count();
        if !within(grace, paused).await {
            instance.terminate_unpaused();
            let ended = || instance.session_count() <= instance.paused_count();
            if !within(TERMINATE_TIME, ended).await {
                return Err("sessions do not come to their end".to_owned());
            }
        }
        Ok(successor)
    }

    /// Clients that a worker has, those without a session included.
    fn connections(&self) -> usize {
        let workers = self.arrivals.workers.iter();
        workers
            .map(|worker| worker.sessions.load(Ordering::Relaxed))
            .sum()
    }

    /// Takes checkpoints until one has little to write.
    async fn checkpoint(&self) {
        for _ in 0..CHECKPOINTS_MAX {
            match taken(self.instance.engine.clone()).await {
                Ok(took) if took > CHECKPOINT_TIME => {}
                Ok(_) => return,
                Err(error) => {
                    warn!("no checkpoint was taken, the successor has more to read: {error}");
                    return;
                }
            }
        }
    }

    /// Sends everything, and hears that it has come.
    async fn send(self, successor: Successor) -> Result<(), String> {
        let instance = &self.instance;
        let Successor { mut channel } = successor;
        instance.serialize();
        let mut clients = None;
        let all = within(SERIALIZE_TIME, || {
            clients = clients.take().or_else(|| instance.serialized());
            clients.is_some()
        });
        let all = all.await;
        let clients = clients.filter(|_| all).ok_or("a session does not answer")?;
        let arrivals = self.arrivals.handed_out_within(SERIALIZE_TIME).await;
        let arrivals = arrivals.ok_or("a client that has connected is not there")?;
        let flushed = tokio::time::timeout(ANSWER_TIME, instance.engine.flush_all_and_wait());
        match flushed.await {
            Ok(flushed) => {
                flushed.map_err(|error| format!("the log cannot be flushed: {error}"))?
            }
            Err(_) => return Err("the log cannot be flushed in time".to_owned()),
        }
        let listeners = Arc::clone(&self.listeners);
        let count = clients.len();
        let (done, sent) = oneshot::channel();
        let sending = self.env.spawn("sends to successor", None, move || {
            let sent = send_all(&mut channel, &listeners, clients, arrivals);
            // The channel stays open until this process ends: the successor waits for that.
            std::mem::forget(channel);
            let _nobody_waits_at_a_stop = done.send(sent);
        });
        sending.map_err(|error| error.to_string())?;
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("the successor has not taken over: {error}")),
            Err(_) => return Err("the thread that sends has panicked".to_owned()),
        }
        info!("{count} sessions are the successor's");
        instance.leave();
        within(GOODBYE_TIME, || instance.staying_count() == 0).await;
        Ok(())
    }
}

fn send_all(
    channel: &mut DescriptorChannel,
    listeners: &ListenerDescriptors,
    clients: Vec<SerializedClient>,
    arrivals: Vec<(OwnedFd, bool)>,
) -> io::Result<()> {
    let mut messages = 0;
    let mut put = |channel: &mut DescriptorChannel, message, descriptors: &[OwnedFd]| {
        messages += 1;
        send::<FromPredecessor>(channel, &message, descriptors)
    };
    for (name, descriptors) in &listeners.0 {
        let message = FromPredecessor::Listener(name.clone());
        put(channel, message, descriptors)?;
    }
    for client in clients {
        let message = FromPredecessor::Client {
            session: Box::new(client.session),
            input: client.input,
        };
        put(channel, message, &[client.descriptor])?;
    }
    for (descriptor, local) in arrivals {
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

/// A checkpoint, and how long it took.
async fn taken(engine: Engine) -> Result<Duration, String> {
    let begun = tokio::time::Instant::now();
    let taken = tokio::task::spawn_blocking(move || engine.checkpoint());
    match taken.await {
        Ok(Ok(_)) => Ok(begun.elapsed()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Looks again and again, for as long as `limit`, whether something is so.
async fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let looks = async {
        while !is_so() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(limit, looks).await.is_ok()
}
