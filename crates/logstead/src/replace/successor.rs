//! The process that replaces a server.

use super::{
    ANSWER_TIME, FromPredecessor, FromSuccessor, ListenerName, PROTOCOL, channel_name, receive,
    send,
};
use crate::config::Config;
use crate::open::{Failure, open_log, place, say};
use crate::prepare::{InheritedListeners, Preparation, checked};
use crate::replica::readable;
use crate::worker::{AcceptedClient, ClientStream};
use crate::{EXIT_FAILURE, EXIT_USAGE, fail, serve};
use logstead_env::{DescriptorChannel, LocalSocketDescriptors};
use logstead_sql_session::SerializedSession;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;
use tracing::{info, warn};

/// The predecessor takes checkpoints first, and lets transactions end.
const HAND_OVER_TIME: Duration = Duration::from_secs(900);
/// How long the predecessor may take to end: its memory is given back to the system meanwhile.
const END_TIME: Duration = Duration::from_secs(120);

/// The clients that came from the predecessor.
#[derive(Default)]
pub(crate) struct TakenOver {
    sessions: Vec<(OwnedFd, SerializedSession, Vec<u8>)>,
    /// Clients without a session, by a socket of the file system or not.
    arrivals: Vec<(OwnedFd, bool)>,
}

impl TakenOver {
    /// The largest process number of its sessions.
    pub(crate) fn last_pid(&self) -> Option<i32> {
        self.sessions
            .iter()
            .map(|(_, session, _)| session.pid())
            .max()
    }

    /// Its clients, ready for workers. One whose socket cannot be used is gone.
    pub(crate) fn clients(self) -> (Vec<AcceptedClient>, Vec<ClientStream>) {
        let stream = |descriptor: OwnedFd, local: bool| {
            let prepared = match local {
                true => {
                    let stream = UnixStream::from(descriptor);
                    logstead_env::prepare_local(&stream).map(|()| ClientStream::Local(stream))
                }
                false => {
                    let stream = TcpStream::from(descriptor);
                    logstead_env::prepare_accepted(&stream).map(|()| ClientStream::Host(stream))
                }
            };
            let lost = |error: &io::Error| warn!("a client was lost on its way here: {error}");
            prepared.inspect_err(lost).ok()
        };
        let sessions = self.sessions.into_iter();
        let sessions = sessions.filter_map(|(descriptor, session, input)| {
            Some(AcceptedClient::Restored {
                stream: stream(descriptor, session.local)?,
                session: Box::new(session),
                input,
            })
        });
        let arrivals = self.arrivals.into_iter();
        let arrivals = arrivals.filter_map(|(descriptor, local)| stream(descriptor, local));
        (sessions.collect(), arrivals.collect())
    }
}

/// Takes over from the server of this home, and serves.
pub(crate) fn run(config: Config) -> ExitCode {
    let taken = take_over(config).and_then(|(prepared, taken_over)| {
        let runtime = serve::runtime()?;
        let log = open_log(&prepared.config, &prepared.env, say)?;
        Ok((runtime, prepared, taken_over, log))
    });
    match taken {
        Ok((runtime, prepared, taken_over, log)) => {
            serve::run_log(&runtime, prepared, None, log, taken_over)
        }
        Err((code, message)) => fail(code, &message),
    }
}

/// Everything up to the end of the predecessor.
fn take_over(config: Config) -> Result<(Preparation, TakenOver), Failure> {
    let mut config = config;
    if config.replica_of.is_some() {
        return Err((
            EXIT_USAGE,
            "--replace replaces a primary, and \"replica_of\" is given: stop a replica and start another one".to_owned(),
        ));
    }
    let checked = checked(&mut config)?;
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| (EXIT_FAILURE, format!("--replace: {what}: {error}"))
    };
    let name = channel_name(&config);
    let mut channel = DescriptorChannel::connect(&name).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "no server of this user runs there".to_owned(),
            _ => error.to_string(),
        };
        let told = format!(
            "--replace: the server of {} is not found: {why}",
            place(&config)
        );
        (EXIT_FAILURE, told)
    })?;
    let listen = greet(&mut channel).map_err(failed("the server does not answer"))?;
    let (process, listen) = listen.map_err(|why| {
        let told = format!("--replace: the server there is not replaced: {why}");
        (EXIT_FAILURE, told)
    })?;
    info!("replacing process {process}");
    readable(&config, &checked.0)?;
    send(&mut channel, &FromSuccessor::Ready, &[]).map_err(failed("the server has gone"))?;
    channel
        .set_timeout(Some(HAND_OVER_TIME))
        .map_err(failed("the server has gone"))?;
    let (inherited, taken_over, messages) =
        receive_all(&mut channel).map_err(failed("the server has not handed over"))?;
    let inherited = InheritedListeners {
        // What its setting says, or where that has led to.
        clients: inherited.clients.filter(|listener| {
            let bound = listener.local_addr().ok();
            listen == config.listen.to_string() || bound == Some(config.listen)
        }),
        metrics: inherited.metrics.filter(|listener| {
            let bound = listener.local_addr().ok();
            config
                .metrics_listen
                .is_some_and(|wanted| bound == Some(wanted) || is_any(wanted))
        }),
        local: inherited.local,
    };
    let prepared = Preparation::new(config, checked, inherited)?;
    let received = FromSuccessor::Received { messages };
    send(&mut channel, &received, &[]).map_err(failed("the server has gone"))?;
    match channel.wait_for_end(END_TIME) {
        Ok(true) => {}
        Ok(false) => warn!("process {process} has not ended"),
        Err(error) => warn!("the end of process {process} is not known: {error}"),
    }
    Ok((prepared, taken_over))
}

/// An address whose port the system chooses.
fn is_any(address: SocketAddr) -> bool {
    address.port() == 0
}

/// The predecessor's process, and what it was told to listen on; or why it refuses.
fn greet(channel: &mut DescriptorChannel) -> io::Result<Result<(u32, String), String>> {
    channel.set_timeout(Some(ANSWER_TIME))?;
    let hello = FromSuccessor::Hello {
        protocol: PROTOCOL,
        process: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    send(channel, &hello, &[])?;
    match receive(channel)?.0 {
        FromPredecessor::Welcome { process, listen } => Ok(Ok((process, listen))),
        FromPredecessor::Refused { why } => Ok(Err(why)),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(message: &FromPredecessor) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("an answer that was not expected: {message:?}"),
    )
}

fn receive_all(
    channel: &mut DescriptorChannel,
) -> io::Result<(InheritedListeners, TakenOver, usize)> {
    let mut listeners = InheritedListeners::default();
    let mut taken_over = TakenOver::default();
    let mut received = 0;
    loop {
        let (message, descriptors) = receive::<FromPredecessor>(channel)?;
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            let missing = || io::Error::new(io::ErrorKind::InvalidData, "a socket is missing");
            descriptors.next().ok_or_else(missing)
        };
        match message {
            FromPredecessor::Listener(ListenerName::Clients) => {
                listeners.clients = Some(TcpListener::from(next()?));
            }
            FromPredecessor::Listener(ListenerName::Metrics) => {
                listeners.metrics = Some(TcpListener::from(next()?));
            }
            FromPredecessor::Listener(ListenerName::Local(path)) => {
                listeners.local.push(LocalSocketDescriptors {
                    path,
                    listener: next()?,
                    lock: next()?,
                });
            }
            FromPredecessor::Client { session, input } => {
                taken_over.sessions.push((next()?, *session, input));
            }
            FromPredecessor::Arrival { local } => taken_over.arrivals.push((next()?, local)),
            FromPredecessor::Complete { messages } if messages == received => {
                return Ok((listeners, taken_over, received));
            }
            FromPredecessor::Refused { why } => return Err(io::Error::other(why)),
            FromPredecessor::Welcome { .. } | FromPredecessor::Complete { .. } => {
                return Err(unexpected(&message));
            }
        }
        received += 1;
    }
}
