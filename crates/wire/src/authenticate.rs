//! The client proves who it is, before there is a session.
//!
//! Owns: the messages of the exchange, in order, and what is told of a failure: always the same, whatever it was, but
//! to the server's log.
//!
//! Invariants: until it is over nothing is read but what the exchange asks for, each message bounded before it is
//! received; nothing that the client sent is run; the log has no passwords, proofs or verifiers.

use crate::client_connection::{ClientConnection, protocol_error};
use crate::decode::{Frame, ProtocolError};
use crate::encode;
use crate::hba::{AuthMethod, ClientAuthConfig, HbaRequest};
use logstead_sql_catalog::role::Role;
use logstead_sql_catalog::role::scram::{
    MECHANISM_PLUS, NONCE_BYTES, ScramError, ScramExchange, ScramOutcome, Verifier,
};
use logstead_sql_session::{ConnectionLost, StartupRequest, WorkerSessions};
use logstead_sql_types::SqlError;
use logstead_types::SqlState;
use std::fmt::{Display, Formatter};
use std::net::IpAddr;
use std::sync::Arc;

/// Longest message of the exchange, PostgreSQL's number.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Where a connection comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    /// An address.
    Host(IpAddr),
    /// A socket of this machine's file system, and the system's user who has connected, if that can be told.
    Local(Option<u32>),
}

impl Display for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Host(address) => address.fmt(f),
            Origin::Local(_) => f.write_str("[local]"),
        }
    }
}

/// What a connection is before anybody is known.
pub(crate) struct ConnectionInfo {
    /// From where.
    pub(crate) origin: Origin,
    /// Over an encrypted connection.
    pub(crate) encrypted: bool,
    /// What channel binding binds to.
    pub(crate) binding: Option<Vec<u8>>,
}

/// Why somebody was not let in.
enum AuthFailure {
    /// With this error.
    Rejected(SqlError),
    /// The connection is gone.
    Disconnected,
}

impl From<SqlError> for AuthFailure {
    fn from(error: SqlError) -> AuthFailure {
        AuthFailure::Rejected(error)
    }
}

impl From<ConnectionLost> for AuthFailure {
    fn from(ConnectionLost: ConnectionLost) -> AuthFailure {
        AuthFailure::Disconnected
    }
}

/// Finds out who the client is, and notes it in the request. False if it is not let in; it has been told then.
pub(crate) async fn authenticate(
    link: &mut ClientConnection,
    worker: &WorkerSessions,
    access: &ClientAuthConfig,
    arrival: ConnectionInfo,
    request: &mut StartupRequest,
) -> bool {
    let origin = arrival.origin;
    match prove(link, worker, access, arrival, request).await {
        Ok(()) => true,
        Err(AuthFailure::Rejected(error)) => {
            tracing::warn!(
                "a client at {origin} was not let in as {:?}: {:?}",
                request.user,
                error.fields().message
            );
            link.only_error(&error.fatal());
            false
        }
        Err(AuthFailure::Disconnected) => false,
    }
}

async fn prove(
    link: &mut ClientConnection,
    worker: &WorkerSessions,
    access: &ClientAuthConfig,
    arrival: ConnectionInfo,
    request: &mut StartupRequest,
) -> Result<(), AuthFailure> {
    let refused =
        |message: String| SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message);
    if request.user.is_empty() {
        // The session says so.
        return Ok(());
    }
    let roles = worker.roles().await?;
    let database = match request.database.is_empty() {
        true => request.user.as_str(),
        false => request.database.as_str(),
    };
    let asked = HbaRequest {
        address: match arrival.origin {
            Origin::Host(address) => Some(address),
            Origin::Local(_) => None,
        },
        encrypted: arrival.encrypted,
        user: &request.user,
        database,
        replication: request.is_replication()?,
    };
    let whom = || {
        format!(
            "host \"{}\", user \"{}\", database \"{database}\", {}",
            arrival.origin,
            request.user,
            match arrival.encrypted {
                true => "SSL encryption",
                false => "no encryption",
            }
        )
    };
    let role = roles.by_name(&request.user);
    match access.method(&asked, &roles) {
        Some(AuthMethod::Peer(map)) => {
            let Origin::Local(peer) = arrival.origin else {
                return Err(refused("peer authentication of a host".to_owned()).into());
            };
            peer_is(peer, map, access, &request.user)?;
        }
        None => return Err(refused(format!("no pg_hba.conf entry for {}", whom())).into()),
        Some(AuthMethod::Reject) => {
            let message = format!("pg_hba.conf rejects connection for {}", whom());
            return Err(refused(message).into());
        }
        Some(AuthMethod::Trust) => {}
        Some(AuthMethod::Scram) => {
            let now = worker.instance.env.clock.now_micros_since_2000();
            scram(link, worker, arrival.binding, &request.user, role, now).await?;
        }
    }
    request.role = role.map(|role| role.oid);
    Ok(())
}

/// 28000 unless the system's user who has connected may be this role, by the map or by having its name.
fn peer_is(
    peer: Option<u32>,
    map: Option<&str>,
    access: &ClientAuthConfig,
    user: &str,
) -> Result<(), SqlError> {
    let name = peer.and_then(logstead_env::user_name);
    let may = name.as_deref().is_some_and(|name| match map {
        None => name == user,
        Some(map) => access
            .identities
            .iter()
            .any(|line| line.map == map && line.fits(name, user)),
    });
    if may {
        return Ok(());
    }
    tracing::info!("the system's user {name:?} (number {peer:?}) may not be {user:?} here");
    Err(SqlError::new(
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        format!("Peer authentication failed for user \"{user}\""),
    ))
}

/// The exchange. Whether there is such a role, whether it has a password, and whether that is good still shows in
/// nothing but the log.
async fn scram(
    link: &mut ClientConnection,
    worker: &WorkerSessions,
    binding: Option<Vec<u8>>,
    user: &str,
    role: Option<&Arc<Role>>,
    now: i64,
) -> Result<(), AuthFailure> {
    let stored = role.and_then(|role| role.password.as_deref());
    let expired = role.is_some_and(|role| role.valid_until.is_some_and(|until| until < now));
    let found = stored.and_then(Verifier::parse);
    let why = match (role, &found, expired) {
        (None, ..) => Some("there is no such role"),
        (_, None, _) => Some("the role has no password"),
        (_, _, true) => Some("the password is not valid any more"),
        _ => None,
    };
    let verifier =
        found.unwrap_or_else(|| Verifier::mock(worker.instance.store.mock_secret(), user));
    let mut random = [0; NONCE_BYTES];
    worker.instance.env.random.fill(&mut random);
    let mut exchange = ScramExchange::new(verifier, why.is_some(), random, binding);

    encode::authentication_sasl(link.output(), &exchange.mechanisms());
    link.write_out().await?;
    let frame = sasl_message(link).await?;
    let (mechanism, first) = initial_response(&frame)?;
    let answer = exchange.first(mechanism, first).map_err(scram_error)?;
    // Offered and not taken: a client that can bind does.
    let bound = mechanism == MECHANISM_PLUS;
    encode::authentication_sasl_continue(link.output(), answer.as_bytes());
    link.write_out().await?;
    let frame = sasl_message(link).await?;
    match exchange.last(&frame.body).map_err(scram_error)? {
        ScramOutcome::Good(answer) => {
            encode::authentication_sasl_final(link.output(), answer.as_bytes());
            tracing::debug!("{user:?} proved its password, channel binding: {bound}");
            Ok(())
        }
        ScramOutcome::Bad => {
            tracing::info!(
                "{user:?} did not prove a password: {}",
                why.unwrap_or("it is another one")
            );
            Err(SqlError::new(
                SqlState::INVALID_PASSWORD,
                format!("password authentication failed for user \"{user}\""),
            )
            .into())
        }
    }
}

/// The next message, which has to be one of the exchange, and short.
async fn sasl_message(link: &mut ClientConnection) -> Result<Frame, AuthFailure> {
    let wrong =
        |message: String| AuthFailure::from(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
    loop {
        if let Some(kind) = link.input().first()
            && *kind != b'p'
        {
            return Err(wrong(format!(
                "expected SASL response, got message type {kind}"
            )));
        }
        if let Some(length) = link.input().get(1..5) {
            let length = length.iter().fold(0_usize, |n, b| n << 8 | usize::from(*b));
            if !(4..=MESSAGE_BYTES_MAX + 4).contains(&length) {
                return Err(wrong("invalid message length".to_owned()));
            }
        }
        match crate::decode::take_frame(link.input()) {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => link.receive().await?,
            Err(error) => return Err(protocol_error(error).into()),
        }
    }
}

/// Mechanism and message of a SASLInitialResponse.
fn initial_response(frame: &Frame) -> Result<(&str, &[u8]), SqlError> {
    let wrong = || {
        protocol_error(ProtocolError {
            code: SqlState::PROTOCOL_VIOLATION,
            message: "malformed SASL initial response".to_owned(),
            fatal: true,
        })
    };
    let end = frame.body.iter().position(|b| *b == 0).ok_or_else(wrong)?;
    let (mechanism, rest) = frame.body.split_at(end);
    let mechanism = std::str::from_utf8(mechanism).map_err(|_| wrong())?;
    let (length, message) = rest
        .get(1..)
        .and_then(|rest| rest.split_first_chunk::<4>())
        .ok_or_else(wrong)?;
    // Without a message there is -1.
    match usize::try_from(i32::from_be_bytes(*length)) {
        Ok(length) if length == message.len() => Ok((mechanism, message)),
        _ => Err(wrong()),
    }
}

fn scram_error(error: ScramError) -> SqlError {
    let malformed = || SqlError::new(SqlState::PROTOCOL_VIOLATION, "malformed SCRAM message");
    match error {
        ScramError::Malformed(detail) => malformed().detail(detail),
        ScramError::Downgraded => SqlError::new(
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "SCRAM channel binding negotiation error",
        )
        .detail("The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding."),
        ScramError::Unsupported(what) => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what)
        }
    }
}
