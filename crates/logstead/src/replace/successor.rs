//! The process that replaces a server.
//!
//! Invariant: it does nothing that a server at work would notice, or that would outlast its own end, before it was told
//! [`FromPredecessor::Yours`].

use super::{
    ANSWER_TIME, FromPredecessor, FromSuccessor, ListenerName, PROTOCOL, channel_name, receive,
    send,
};
use crate::EXIT_FAILURE;
use crate::config::Config;
use crate::inherited_clients::{InheritedClients, InheritedSessions};
use crate::open::{Failure, place, prices};
use crate::prepare::{InheritedListeners, Preparation, checked};
use logstead_engine::PrewarmList;
use logstead_env::{DescriptorChannel, Env, LocalSocketDescriptors};
use logstead_home::IoMethod;
use logstead_sql_session::SerializedClient;
use std::io;
use std::net::TcpListener;
use std::time::Duration;
use tracing::{info, warn};

/// How often it is said that the predecessor has not ended.
const END_TIME: Duration = Duration::from_secs(30);

/// Reads the log of a server at work; gives the number that it has left there.
type Readable = fn(&Config, &Env) -> Result<Option<u64>, Failure>;

type Greeting = (u32, String, Option<String>);

/// Takes over from the server of this home: everything up to its end.
pub(crate) fn take_over(
    mut config: Config,
    readable: Readable,
) -> Result<(Preparation, InheritedSessions), Failure> {
    let checked = checked(&mut config)?;
    prices(&config).map_err(|why| (crate::EXIT_USAGE, format!("price_list: {why}")))?;
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
    let greeted = greet(&mut channel).map_err(failed("the server does not answer"))?;
    let (process, listen, write_way) = greeted.map_err(|why| {
        let told = format!("--replace: the server there is not replaced: {why}");
        (EXIT_FAILURE, told)
    })?;
    // To find it out once more would take most of the pause.
    if config.write_way == IoMethod::Auto
        && let Some(found) = write_way.and_then(|way| way.parse().ok())
    {
        config.write_way = found;
    }
    info!("replacing process {process}");
    let identity = readable(&config, &checked.env)?;
    let ready = FromSuccessor::Ready {
        identity,
        prewarm: config.autoprewarm,
    };
    send(&mut channel, &ready, &[]).map_err(failed("the server has gone"))?;
    // It takes checkpoints first, and lets transactions end; its own end would be told.
    channel
        .set_timeout(None)
        .map_err(failed("the server has gone"))?;
    let received = receive_all(&mut channel).map_err(failed("the server has not handed over"))?;
    let ReceivedState {
        listeners: inherited,
        clients,
        prewarm,
        messages,
    } = received;
    let listeners = InheritedListeners {
        // What its setting says, or where that has led to.
        clients: inherited.clients.filter(|listener| {
            let bound = listener.local_addr().ok();
            listen == config.listen.to_string() || bound == Some(config.listen)
        }),
        metrics: inherited.metrics.filter(|listener| {
            let bound = listener.local_addr().ok();
            config
                .metrics_listen
                .is_some_and(|wanted| bound == Some(wanted) || wanted.port() == 0)
        }),
        local: inherited.local,
    };
    let mut prepared = Preparation::new(config, checked, listeners)?;
    let received = FromSuccessor::Received { messages };
    send(&mut channel, &received, &[]).map_err(failed("the server has gone"))?;
    let last = receive(&mut channel).map_err(failed("the server goes on by itself"))?;
    let FromPredecessor::Yours { lease } = last.0 else {
        return Err(failed("the server has not handed over")(unexpected(
            &last.0,
        )));
    };
    prepared.config.predecessor = lease;
    loop {
        match channel.wait_for_end(END_TIME) {
            Ok(true) => break,
            Ok(false) => warn!("process {process} has not ended yet"),
            Err(error) => return Err(failed("the end of the server is not known")(error)),
        }
    }
    prepared.own_local_sockets();
    Ok((prepared, InheritedSessions { clients, prewarm }))
}

/// What the predecessor has sent.
#[derive(Default)]
struct ReceivedState {
    listeners: InheritedListeners,
    clients: InheritedClients,
    prewarm: Option<PrewarmList>,
    /// How many messages that were, without the list.
    messages: usize,
}

/// The predecessor's process, what it was told to listen on, and its way of writing; or why it refuses.
fn greet(channel: &mut DescriptorChannel) -> io::Result<Result<Greeting, String>> {
    channel.set_timeout(Some(ANSWER_TIME))?;
    let hello = FromSuccessor::Hello {
        protocol: PROTOCOL,
        process: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    send(channel, &hello, &[])?;
    match receive(channel)?.0 {
        FromPredecessor::Welcome {
            process,
            listen,
            write_way,
        } => Ok(Ok((process, listen, write_way))),
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

fn receive_all(channel: &mut DescriptorChannel) -> io::Result<ReceivedState> {
    let mut state = ReceivedState::default();
    loop {
        let ReceivedState {
            listeners, clients, ..
        } = &mut state;
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
            FromPredecessor::Client {
                session,
                input,
                unwanted,
            } => clients.sessions.push(SerializedClient {
                descriptor: next()?,
                encryption: None,
                input,
                unwanted,
                session: *session,
            }),
            FromPredecessor::Arrival { local } => clients.arrivals.push((next()?, local)),
            FromPredecessor::Prewarm { list } => {
                // One that this program does not know warms nothing.
                state.prewarm = PrewarmList::decode(&list);
                continue;
            }
            FromPredecessor::Complete { messages } if messages == state.messages => {
                return Ok(state);
            }
            FromPredecessor::Refused { why } => return Err(io::Error::other(why)),
            FromPredecessor::Welcome { .. }
            | FromPredecessor::Complete { .. }
            | FromPredecessor::Yours { .. } => return Err(unexpected(&message)),
        }
        state.messages += 1;
    }
}
