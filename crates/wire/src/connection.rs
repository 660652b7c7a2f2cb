//! The life of one connection: first packet, startup, then messages until it ends.
//!
//! Owns: the order of messages (encryption, who the client is, skipping to Sync after an error) and the moment replies
//! leave: once per Sync or simple query, and only after everything they tell is Committed (`Session::settle`), while
//! the server's lease is valid. Does not: know SQL. The session answers into the link.

use crate::authenticate::{ConnectionInfo, Origin, authenticate};
use crate::client_connection::{ClientConnection, SessionEnd, protocol_error};
use crate::decode::{self, FirstPacket, Frontend, Target};
use crate::encode;
use crate::hba::ClientAuthConfig;
use crate::moving::MovingClient;
use crate::replication;
use crate::tls::Stream;
use logstead_sql_session::{
    BindRequest, Client, ConnectionLost, FunctionCallRequest, PauseEvent, SerializedClient,
    SerializedSession, Session, StartupRequest, WorkerSessions,
};
use logstead_sql_types::{FunctionId, SqlError};
use logstead_types::SqlState;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

/// So much of a message that has not come to its end goes along with a session to another process.
const SERIALIZED_INPUT_BYTES_MAX: usize = 16 << 20;

/// Serves one client to the end, or until its session is to go on at another worker: then it is given back. Whatever
/// happens, the session's transaction is over when this returns.
pub async fn serve(
    stream: impl Into<Stream>,
    worker: Rc<WorkerSessions>,
    access: Arc<ClientAuthConfig>,
) -> Option<MovingClient> {
    let deadline = Instant::now() + access.timeout;
    serve_arrived(stream, worker, access, deadline).await
}

/// The same for one that arrived earlier, and has until then to prove who it is.
pub async fn serve_arrived(
    stream: impl Into<Stream>,
    worker: Rc<WorkerSessions>,
    access: Arc<ClientAuthConfig>,
    deadline: Instant,
) -> Option<MovingClient> {
    let start = start(stream.into(), &worker, &access);
    let started = tokio::time::timeout_at(deadline, start);
    let (mut link, request) = match started.await {
        Ok(Some(started)) => started,
        // Cut off, cancelled or refused: there is nobody to talk to.
        Ok(None) | Err(_) => return None,
    };
    Session::until_open(&worker, &request).await;
    match open_session(&mut link, &worker, request) {
        Some(session) => serve_session(link, session).await,
        None => {
            link.close().await;
            None
        }
    }
}

/// Goes on with a client whose session was another process's, with what has come from it: input, and how much of that
/// and of what comes next is not wanted.
pub async fn serve_restored(
    stream: impl Into<Stream>,
    worker: Rc<WorkerSessions>,
    session: SerializedSession,
    (input, unwanted): (&[u8], usize),
) -> Option<MovingClient> {
    let lease = worker.instance.engine.lease().cloned();
    let mut link = ClientConnection::new(stream.into(), lease);
    link.go_on_with(input, unwanted);
    let restored = survive(async { Session::restore(&worker, session) }).await;
    serve_again(link, restored).await
}

/// Goes on with a client whose session was another worker's.
pub async fn serve_moved(client: MovingClient, worker: Rc<WorkerSessions>) -> Option<MovingClient> {
    let lease = worker.instance.engine.lease().cloned();
    let (stream, input, unwanted, session) = match client.arrive() {
        Ok(arrived) => arrived,
        Err(error) => {
            tracing::info!("a connection was lost on its way to another worker: {error}");
            return None;
        }
    };
    let mut link = ClientConnection::new(stream, lease);
    link.go_on_with(&input, unwanted);
    let restored = survive(async { Session::arrive(&worker, session) }).await;
    serve_again(link, restored).await
}

/// Goes on with a session that began elsewhere, or tells the client why it does not.
async fn serve_again(
    mut link: ClientConnection,
    restored: Option<Result<Session, SqlError>>,
) -> Option<MovingClient> {
    match restored {
        Some(Ok(session)) => {
            link.open(session.context());
            return serve_session(link, session).await;
        }
        Some(Err(error)) => link.error(&error.fatal()),
        None => link.error(&SqlError::internal("the session could not be restored").fatal()),
    }
    link.close().await;
    None
}

/// The life of an open session, at this worker.
async fn serve_session(mut link: ClientConnection, session: Session) -> Option<MovingClient> {
    let mut session = Box::new(session);
    let end = loop {
        let end = match session.is_replication() {
            true => survive(replication::serve(&mut link, &mut session)).await,
            false => survive(run(&mut link, &mut session)).await,
        };
        if !matches!(end, Some(Ok(SessionEnd::Moves))) {
            break end;
        }
        match MovingClient::of(&mut link, session) {
            Ok(client) => return Some(client),
            Err(stays) => session = stays,
        }
    };
    if matches!(end, Some(Ok(SessionEnd::Over)))
        && !link.output().is_empty()
        && let Err(error) = session.finish().await
    {
        link.only_error(&error);
    }
    // Whoever left, and however: much that is to be undone does not keep the worker's other sessions waiting.
    session.undo_all().await;
    // Aborts what is open, frees locks, forgets the cancel key.
    session.close();
    match end {
        Some(Ok(SessionEnd::Over | SessionEnd::Moves)) => {}
        Some(Err(ConnectionLost)) => return None,
        None => {
            link.only_error(
                &SqlError::internal("the session failed; the server log has more").fatal(),
            );
        }
    }
    link.close().await;
    None
}

/// Runs `work`; `None` if it panicked. One broken session must not take its worker's other sessions with it: its
/// connection ends with XX000 and its transaction is rolled back.
async fn survive<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Err(_panic) => {
                tracing::error!("a session panicked; its connection is closed");
                Poll::Ready(None)
            }
        }
    })
    .await
}

/// All that comes before a session: encryption, the startup packet, and who the client is. Nothing if there is to be no
/// session.
async fn start(
    stream: Stream,
    worker: &WorkerSessions,
    access: &ClientAuthConfig,
) -> Option<(ClientConnection, StartupRequest)> {
    let (client, server) = match &stream {
        Stream::Plain(stream) => (stream.peer_addr().ok(), stream.local_addr().ok()),
        Stream::Local(_) | Stream::Tls(_) => (None, None),
    };
    let local = matches!(stream, Stream::Local(_));
    let (mut link, parameters, arrival) = first_packets(stream, worker, access).await?;
    let mut request = startup_request(parameters);
    request.client = client;
    request.server = server;
    request.local = local;
    match authenticate(&mut link, worker, access, arrival, &mut request).await {
        true => Some((link, request)),
        false => {
            link.close().await;
            None
        }
    }
}

/// Answers encryption and cancel requests; gives the link and the startup parameters.
async fn first_packets(
    mut stream: Stream,
    worker: &WorkerSessions,
    access: &ClientAuthConfig,
) -> Option<(ClientConnection, Vec<(String, String)>, ConnectionInfo)> {
    let lease = || worker.instance.engine.lease().cloned();
    let origin = match &stream {
        Stream::Plain(stream) => Origin::Host(stream.peer_addr().ok()?.ip().to_canonical()),
        Stream::Local(stream) => Origin::Local(stream.peer_cred().ok().map(|peer| peer.uid())),
        Stream::Tls(_) => return None,
    };
    let mut binding = None;
    let mut buffer = bytes::BytesMut::new();
    let (mut ssl_asked, mut gss_asked) = (false, false);
    loop {
        match decode::take_first_packet(&mut buffer) {
            Ok(None) => {
                buffer.reserve(1024);
                if tokio::io::AsyncReadExt::read_buf(&mut stream, &mut buffer)
                    .await
                    .ok()?
                    == 0
                {
                    return None;
                }
            }
            Ok(Some(FirstPacket::Ssl)) if !ssl_asked => {
                ssl_asked = true;
                match (&access.tls, stream) {
                    (Some(tls), Stream::Plain(mut plain)) => {
                        // Whoever sits between client and server may have put it there, to have it taken for what came
                        // encrypted.
                        if !buffer.is_empty() {
                            let error = SqlError::new(
                                SqlState::PROTOCOL_VIOLATION,
                                "received unencrypted data after SSL request",
                            )
                            .detail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.");
                            let mut link = ClientConnection::new(Stream::Plain(plain), lease());
                            link.only_error(&error.fatal());
                            link.close().await;
                            return None;
                        }
                        plain.write_all(b"S").await.ok()?;
                        match tls.accept(plain).await {
                            Ok(accepted) => (stream, binding) = accepted,
                            Err(error) => {
                                tracing::info!("no encryption with a client at {origin}: {error}");
                                return None;
                            }
                        }
                    }
                    (_, other) => {
                        stream = other;
                        stream.write_all(b"N").await.ok()?;
                        stream.flush().await.ok()?;
                    }
                }
            }
            Ok(Some(FirstPacket::Gss)) if !gss_asked => {
                gss_asked = true;
                stream.write_all(b"N").await.ok()?;
                stream.flush().await.ok()?;
            }
            Ok(Some(FirstPacket::Ssl | FirstPacket::Gss)) => return None,
            Ok(Some(FirstPacket::Cancel { pid, secret })) => {
                worker.cancel(pid, secret);
                // Who has asked encrypted takes an end without a word for a failure.
                ClientConnection::new(stream, None).close().await;
                return None;
            }
            Ok(Some(FirstPacket::Startup { minor, parameters })) => {
                let encrypted = matches!(stream, Stream::Tls(_));
                let mut link = ClientConnection::new(stream, lease());
                *link.input() = buffer;
                let unknown: Vec<&str> = parameters
                    .iter()
                    .map(|(n, _)| n.as_str())
                    .filter(|n| n.starts_with("_pq_."))
                    .collect();
                if minor > 0 || !unknown.is_empty() {
                    encode::negotiate_protocol_version(link.output(), 0, &unknown);
                }
                let arrival = ConnectionInfo {
                    origin,
                    encrypted,
                    binding,
                };
                return Some((link, parameters, arrival));
            }
            Err(error) => {
                let mut link = ClientConnection::new(stream, lease());
                link.error(&protocol_error(error));
                link.close().await;
                return None;
            }
        }
    }
}

fn startup_request(parameters: Vec<(String, String)>) -> StartupRequest {
    let mut request = StartupRequest::default();
    for (name, value) in parameters {
        match name.as_str() {
            "user" => request.user = value,
            "database" => request.database = value,
            "options" => request.options = value,
            "replication" => request.replication = value,
            name if name.starts_with("_pq_.") => {}
            _ => request.settings.push((name, value)),
        }
    }
    request
}

fn open_session(
    link: &mut ClientConnection,
    worker: &Rc<WorkerSessions>,
    request: StartupRequest,
) -> Option<Session> {
    match Session::open(worker, request) {
        Ok(session) => {
            link.open(session.context());
            encode::authentication_ok(link.output());
            for (name, value) in session.reported() {
                link.parameter_status(name, &value);
            }
            let (pid, secret) = session.key();
            encode::backend_key_data(link.output(), pid, secret);
            encode::ready_for_query(link.output(), session.status());
            Some(session)
        }
        Err(error) => {
            link.error(&error.fatal());
            None
        }
    }
}

async fn run(
    link: &mut ClientConnection,
    session: &mut Session,
) -> Result<SessionEnd, ConnectionLost> {
    let mut skipping = false;
    // Replies leave at the end of a request (Sync, simple query) or on Flush. While more requests have already arrived,
    // they wait for those: a pipeline costs one write and one wait for the log.
    let mut due = true;
    // The client's last answer was ReadyForQuery, or will be.
    let mut at_rest = true;
    loop {
        if at_rest && session.must_pause() && !session.in_transaction() {
            if send(link, session).await?.is_some() {
                return Ok(SessionEnd::Over);
            }
            due = false;
            if pause(link, session).await?.is_some() {
                return Ok(SessionEnd::Over);
            }
            continue;
        }
        if at_rest && session.wants_to_move() {
            if send(link, session).await?.is_some() {
                return Ok(SessionEnd::Over);
            }
            return Ok(SessionEnd::Moves);
        }
        let dry = !link.has_frame();
        if dry || link.output_is_full() {
            if due || link.output_is_full() {
                if send(link, session).await?.is_some() {
                    return Ok(SessionEnd::Over);
                }
                due = false;
            } else {
                session.waits_for_client();
            }
            if dry {
                match wait_for_input(link, session, at_rest).await? {
                    IdleEvent::Ends(reason) => {
                        link.error(&reason);
                        return Ok(SessionEnd::Over);
                    }
                    IdleEvent::Received | IdleEvent::Pauses => continue,
                    IdleEvent::Notified => {
                        tell_notifications(link, session);
                        due = true;
                        continue;
                    }
                }
            }
        }
        let frame = match link.next_frame().await? {
            Ok(frame) => frame,
            Err(error) => {
                link.error(&protocol_error(error));
                return Ok(SessionEnd::Over);
            }
        };
        if skipping && !matches!(frame.kind, b'S' | b'X') {
            continue;
        }
        let kind = frame.kind;
        at_rest = match kind {
            // These are answered by ReadyForQuery in the end, whatever becomes of them.
            b'Q' | b'F' | b'S' => true,
            // Late pieces of a COPY that has failed are not answered.
            b'd' | b'c' | b'f' => at_rest,
            _ => false,
        };
        let frame = link.received(frame);
        let decoded = match &frame {
            Ok(frame) => frame.decode().map_err(protocol_error),
            Err(error) => Err(error.clone()),
        };
        let message = match decoded {
            Ok(message) => message,
            Err(error) => {
                session.unwind().await;
                session.fail(error, link);
                // A simple query or a function call ends here; after anything else the client will send Sync.
                if matches!(kind, b'Q' | b'F') {
                    encode::ready_for_query(link.output(), session.status());
                } else {
                    skipping = true;
                    at_rest = false;
                }
                due = true;
                continue;
            }
        };
        session.begin_request();
        let done = match message {
            Frontend::Query(text) => {
                let done = session.simple_query(text, link).await;
                if done.is_ok() {
                    ready(link, session);
                }
                due = true;
                done
            }
            Frontend::FunctionCall(call) => {
                let call = FunctionCallRequest {
                    function: FunctionId::new(call.function),
                    formats: &call.formats,
                    values: &call.values,
                    result_format: call.result_format,
                };
                let done = session.function_call(&call, link).await;
                due = true;
                done.map(|result| {
                    if let Some(result) = result {
                        encode::function_call_response(link.output(), result.as_deref());
                    }
                    ready(link, session);
                })
            }
            Frontend::Sync => {
                skipping = false;
                due = true;
                let done = session.sync(link).await;
                if done.is_ok() {
                    ready(link, session);
                }
                done
            }
            Frontend::Terminate => {
                session.end_request();
                // What was answered before it came in the same packet is told all the same.
                if due && send(link, session).await?.is_some() {
                    return Ok(SessionEnd::Over);
                }
                link.discard();
                return Ok(SessionEnd::Over);
            }
            // Late pieces of a COPY that has failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::Flush => {
                session.end_request();
                if send(link, session).await?.is_some() {
                    return Ok(SessionEnd::Over);
                }
                continue;
            }
            message => extended(message, link, session).await,
        };
        session.end_request();
        if let Err(error) = done {
            let fatal = error.fields().fatal;
            session.unwind().await;
            session.fail(error, link);
            if fatal {
                return Ok(SessionEnd::Over);
            }
            skipping = true;
            at_rest = false;
            // An error is told at once: the client's Flush behind it will be skipped, and who is still sending may
            // stop.
            due = true;
            if link.has_frame() && send(link, session).await?.is_some() {
                return Ok(SessionEnd::Over);
            }
        }
    }
}

async fn extended(
    message: Frontend<'_>,
    link: &mut ClientConnection,
    session: &mut Session,
) -> Result<(), SqlError> {
    match message {
        Frontend::Parse { name, text, types } => {
            session.parse(name, text, &types, link).await?;
            encode::parse_complete(link.output());
        }
        Frontend::Bind(bind) => {
            let request = BindRequest {
                portal: bind.portal,
                statement: bind.statement,
                formats: &bind.formats,
                values: &bind.values,
                result_formats: &bind.result_formats,
            };
            session.bind(&request, link).await?;
            encode::bind_complete(link.output());
        }
        Frontend::Describe(Target::Statement(name)) => {
            session.describe_statement(name, link).await?
        }
        Frontend::Describe(Target::Portal(name)) => session.describe_portal(name, link)?,
        Frontend::Execute { portal, rows_max } => {
            session.execute(portal, u64::from(rows_max), link).await?
        }
        Frontend::Close(Target::Statement(name)) => {
            session.close_statement(name);
            encode::close_complete(link.output());
        }
        Frontend::Close(Target::Portal(name)) => {
            session.close_portal(name);
            encode::close_complete(link.output());
        }
        Frontend::Password => {
            return Err(
                SqlError::new(SqlState::PROTOCOL_VIOLATION, "unexpected password message").fatal(),
            );
        }
        // Handled by the caller.
        Frontend::Query(_)
        | Frontend::Sync
        | Frontend::Flush
        | Frontend::Terminate
        | Frontend::CopyData(_)
        | Frontend::CopyDone
        | Frontend::CopyFail(_)
        | Frontend::FunctionCall(_) => {}
    }
    Ok(())
}

fn ready(link: &mut ClientConnection, session: &mut Session) {
    for (name, value) in session.take_changed_settings() {
        link.parameter_status(name, &value);
    }
    tell_notifications(link, session);
    encode::ready_for_query(link.output(), session.status());
}

/// What the session has been notified of, if it is outside a transaction.
fn tell_notifications(link: &mut ClientConnection, session: &mut Session) {
    for n in session.take_notifications() {
        let at = link.output().len();
        encode::notification_response(link.output(), n.pid, &n.channel, &n.payload);
        if let Err(error) = link.recode(at) {
            link.notice("WARNING", error.fields());
        }
    }
}

/// Sends the replies once everything they tell is Committed. `Some` when the session cannot go on. If nothing more was
/// asked, others see the session wait for its client before the client has its answer: who has one and looks finds it
/// at rest.
async fn send(
    link: &mut ClientConnection,
    session: &mut Session,
) -> Result<Option<SessionEnd>, ConnectionLost> {
    let last = !link.has_frame();
    if link.output().is_empty() {
        if last {
            session.waits_for_client();
        }
        return Ok(None);
    }
    if let Err(error) = session.settle().await {
        // Replies that were not confirmed must never reach the client.
        link.only_error(&error);
        return Ok(Some(SessionEnd::Over));
    }
    if last {
        session.waits_for_client();
    }
    link.write_out().await?;
    Ok(None)
}

/// The session pauses, for somebody else to take it over, until it goes on. `Some` when it ends; an error if its client
/// is somebody else's.
async fn pause(
    link: &mut ClientConnection,
    session: &Session,
) -> Result<Option<SessionEnd>, ConnectionLost> {
    let mut paused = session.pause();
    loop {
        match paused.next().await {
            PauseEvent::Resumed => return Ok(None),
            PauseEvent::Departs => return Err(ConnectionLost),
            PauseEvent::Serialize(target) => {
                let goes_along =
                    session.is_serializable() && link.input().len() <= SERIALIZED_INPUT_BYTES_MAX;
                let stream = goes_along.then(|| link.handed_over(target));
                let client = stream
                    .flatten()
                    .map(|(descriptor, encryption)| SerializedClient {
                        descriptor,
                        encryption,
                        input: link.input().to_vec(),
                        unwanted: link.unwanted(),
                        session: session.serialized(),
                    });
                paused.serialized(client);
            }
            PauseEvent::Ends(reason) => {
                link.error(&reason);
                return Ok(Some(SessionEnd::Over));
            }
        }
    }
}

/// What came while nothing was asked.
enum IdleEvent {
    /// Bytes.
    Received,
    /// A notification.
    Notified,
    /// The server's sessions pause.
    Pauses,
    /// Shutdown or an idle timeout: the session is to end.
    Ends(SqlError),
}

/// Waits until bytes arrive, or something else happens.
async fn wait_for_input(
    link: &mut ClientConnection,
    session: &Session,
    at_rest: bool,
) -> Result<IdleEvent, ConnectionLost> {
    let signals = session.signals();
    let in_transaction = session.in_transaction();
    let may_pause = at_rest && !in_transaction;
    signals.set_resting(may_pause);
    let limit = session.idle_limit();
    let received = async {
        let mut receive = pin!(link.receive());
        std::future::poll_fn(|cx| {
            // Who was told to end now takes no request more, even if it came first.
            if signals.must_end_now(in_transaction) {
                return Poll::Ready(Ok(IdleEvent::Ends(signals.ending())));
            }
            if may_pause && session.must_pause() {
                return Poll::Ready(Ok(IdleEvent::Pauses));
            }
            if let Poll::Ready(received) = receive.as_mut().poll(cx) {
                return Poll::Ready(received.map(|()| IdleEvent::Received));
            }
            signals.register(cx.waker());
            if signals.must_end(in_transaction) || signals.must_end_now(in_transaction) {
                return Poll::Ready(Ok(IdleEvent::Ends(signals.ending())));
            }
            if may_pause && session.must_pause() {
                return Poll::Ready(Ok(IdleEvent::Pauses));
            }
            if !in_transaction && signals.has_notifications() {
                return Poll::Ready(Ok(IdleEvent::Notified));
            }
            Poll::Pending
        })
        .await
    };
    let event = match limit {
        None => received.await,
        Some((limit, error)) => match tokio::time::timeout(limit, received).await {
            Ok(received) => received,
            Err(_) => Ok(IdleEvent::Ends(error)),
        },
    };
    // One that is about to pause is at rest until it does.
    signals.set_resting(matches!(event, Ok(IdleEvent::Pauses)));
    event
}
