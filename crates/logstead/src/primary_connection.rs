//! A replication connection to a primary, from the replica's side.
//!
//! Owns: where the primary is and who asks ([`PrimaryConnection`]), the way in (startup, SCRAM), and the messages
//! ([`ReplicationLink`]). It is used by one thread, which blocks; whoever has it says for how long.
//!
//! What comes from the other side is checked for its length before memory is taken for it.

mod ssl;

use bytes::{BufMut, BytesMut};
use logstead_env::{Clock, Env, Instant};
use logstead_link::LinkStream;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{self, DataRowBody, ErrorFields, Message};
use postgres_protocol::message::frontend;
use ssl::SslSettings;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::ToSocketAddrs;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::Host;

/// The longest message that is taken: a server keeps no more than 16 MiB of blocks for those who follow.
const MESSAGE_BYTES_MAX: usize = 17 << 20;
/// How long a connection may take, unless it is told.
const CONNECT_TIME: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 64 << 10;
const DEFAULT_PORT: u16 = 5432;
/// So much of a server's error is told.
const SHOWN_CHARACTERS_MAX: usize = 300;
/// CopyBothResponse.
const COPY_BOTH: u8 = b'W';

/// Where the primary is, and as whom the replica comes.
#[derive(Clone)]
pub(crate) struct PrimaryConnection {
    config: tokio_postgres::Config,
    ssl: SslSettings,
    shown: String,
}

impl fmt::Debug for PrimaryConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl PrimaryConnection {
    /// Is it a connection string in the form of a URL?
    pub(crate) fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads a connection string of libpq's, the value of `setting`.
    pub(crate) fn parse(setting: &str, text: &str) -> Result<PrimaryConnection, String> {
        let (ssl, rest) = SslSettings::take(text).map_err(|why| format!("{setting}: {why}"))?;
        let config = rest.parse::<tokio_postgres::Config>();
        let config = config.map_err(|error| format!("{setting}: {error}"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(format!("{setting}: no host is given"));
        }
        let mut shown = String::new();
        for (at, (host, port)) in addresses(&config).iter().enumerate() {
            let separator = if at > 0 { "," } else { "" };
            shown.push_str(&format!("{separator}{host}:{port}"));
        }
        let user = config.get_user().unwrap_or("postgres");
        let shown = format!("postgres://{user}@{shown}");
        Ok(PrimaryConnection { config, ssl, shown })
    }

    /// The same without the password.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The hosts, for who tries one after the other.
    pub(crate) fn hosts(&self) -> Vec<(String, u16)> {
        addresses(&self.config)
    }

    /// What a certificate has to call the server at one of the addresses.
    fn name_of<'a>(&'a self, host: &'a str, port: u16) -> &'a str {
        let addresses = addresses(&self.config);
        let at = addresses
            .iter()
            .position(|(other, own)| (other.as_str(), *own) == (host, port));
        match at.and_then(|at| self.config.get_hosts().get(at)) {
            Some(Host::Tcp(name)) => name,
            _ => host,
        }
    }

    /// Connects to one of the hosts.
    pub(crate) fn connect_to(
        &self,
        host: &str,
        port: u16,
        env: &Env,
    ) -> io::Result<ReplicationLink> {
        let config = &self.config;
        let time = config
            .get_connect_timeout()
            .copied()
            .unwrap_or(CONNECT_TIME);
        let stream = match host.starts_with('/') {
            true => LinkStream::Unix(UnixStream::connect(format!("{host}/.s.PGSQL.{port}"))?),
            false => {
                let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
                let mut addresses = (host, port).to_socket_addrs()?;
                let connected = addresses.find_map(|address| {
                    let stream = logstead_env::connect(address, time);
                    stream.map_err(|error| failed = error).ok()
                });
                let socket = connected.ok_or(failed)?;
                socket.set_write_timeout(Some(time))?;
                socket.set_read_timeout(Some(time))?;
                match self.ssl.encrypt(socket, self.name_of(host, port), env)? {
                    Ok(encrypted) => LinkStream::Tls(encrypted),
                    Err(socket) => LinkStream::Tcp(socket),
                }
            }
        };
        stream.set_write_timeout(time)?;
        let mut link = ReplicationLink {
            host: host.to_owned(),
            port,
            stream,
            input: BytesMut::new(),
            clock: Arc::clone(&env.clock),
            deadline: None,
        };
        link.set_read_timeout(time)?;
        link.deadline = Some((link.clock.monotonic(), time));
        link.log_in(config)?;
        Ok(link)
    }
}

fn addresses(config: &tokio_postgres::Config) -> Vec<(String, u16)> {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    });
    let given = config.get_hostaddrs().iter().map(ToString::to_string);
    let hosts: Vec<String> = match config.get_hostaddrs().is_empty() {
        true => hosts.collect(),
        false => given.collect(),
    };
    let ports = config.get_ports();
    let port = |at: usize| match ports {
        [] => DEFAULT_PORT,
        [port] => *port,
        ports => ports.get(at).copied().unwrap_or(DEFAULT_PORT),
    };
    hosts
        .into_iter()
        .enumerate()
        .map(|(at, host)| (host, port(at)))
        .collect()
}

/// The writing side of a link, for another thread.
pub(crate) struct ReplyWriter(LinkStream);

impl ReplyWriter {
    /// Sends a message as it is.
    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(message)
    }

    /// Ends the connection: whoever reads it finds its end.
    pub(crate) fn shut_down(&self) {
        self.0.shut_down();
    }
}

/// What comes while the log is streamed.
pub(crate) enum StreamInput {
    /// The content of a CopyData.
    Data(bytes::Bytes),
    /// Nothing for as long as it is waited.
    Silence,
}

/// A connection in replication mode.
pub(crate) struct ReplicationLink {
    host: String,
    port: u16,
    stream: LinkStream,
    input: BytesMut,
    clock: Arc<dyn Clock>,
    /// Since when something is waited for, and how long it may take; while the log is streamed it may take for ever.
    deadline: Option<(Instant, Duration)>,
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("the server has sent {what}"),
    )
}

/// The server's own words.
fn told(mut fields: ErrorFields<'_>) -> io::Error {
    use fallible_iterator::FallibleIterator;
    let (mut code, mut message) = (String::new(), String::new());
    while let Ok(Some(field)) = fields.next() {
        let text = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = text(),
            b'M' => message = text(),
            _ => {}
        }
    }
    let shown: String = message.chars().take(SHOWN_CHARACTERS_MAX).collect();
    io::Error::other(format!(
        "{} ({})",
        shown.escape_debug(),
        code.escape_debug()
    ))
}

impl ReplicationLink {
    /// Where it leads.
    pub(crate) fn host(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// How long a read waits.
    pub(crate) fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(time)
    }

    /// The writing side, for another thread; a message takes at most that long.
    pub(crate) fn writer(&self, time: Duration) -> io::Result<ReplyWriter> {
        self.stream.set_write_timeout(time)?;
        Ok(ReplyWriter(self.stream.try_clone()?))
    }

    fn log_in(&mut self, config: &tokio_postgres::Config) -> io::Result<()> {
        let user = config.get_user().unwrap_or("postgres");
        let mut out = BytesMut::new();
        let mut parameters = vec![
            ("user", user),
            ("replication", "true"),
            (
                "application_name",
                config.get_application_name().unwrap_or("walreceiver"),
            ),
        ];
        if let Some(database) = config.get_dbname() {
            parameters.push(("database", database));
        }
        frontend::startup_message(parameters, &mut out)?;
        self.stream.write_all(&out)?;
        let mut scram: Option<ScramSha256> = None;
        loop {
            let mut out = BytesMut::new();
            match self.message()? {
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_) => {}
                Message::NoticeResponse(_) => {}
                Message::AuthenticationCleartextPassword => {
                    return Err(io::Error::other(
                        "the server asks for the password itself, which is not sent",
                    ));
                }
                Message::AuthenticationSasl(body) => {
                    use fallible_iterator::FallibleIterator;
                    let offers = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256))?;
                    if !offers {
                        return Err(io::Error::other("the server does not offer SCRAM-SHA-256"));
                    }
                    let from_environment = std::env::var("PGPASSWORD").ok();
                    let password = config.get_password();
                    let password = password.or(from_environment.as_deref().map(str::as_bytes));
                    let password = password.ok_or_else(|| {
                        io::Error::other("the server asks for a password, and there is none in primary_conninfo or PGPASSWORD")
                    })?;
                    let exchange = ScramSha256::new(password, ChannelBinding::unsupported());
                    frontend::sasl_initial_response(SCRAM_SHA_256, exchange.message(), &mut out)?;
                    scram = Some(exchange);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let exchange = scram
                        .as_mut()
                        .ok_or_else(|| unexpected("a step of SCRAM out of place"))?;
                    exchange.update(body.data())?;
                    frontend::sasl_response(exchange.message(), &mut out)?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let exchange = scram
                        .as_mut()
                        .ok_or_else(|| unexpected("a step of SCRAM out of place"))?;
                    exchange.finish(body.data())?;
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(told(body.fields())),
                _ => return Err(unexpected("something else than a request to log in")),
            }
            if !out.is_empty() {
                self.stream.write_all(&out)?;
            }
        }
    }

    /// Runs a command that gives at most one row; its columns as texts.
    pub(crate) fn query(&mut self, command: &str) -> io::Result<Vec<String>> {
        let mut out = BytesMut::new();
        frontend::query(command, &mut out)?;
        self.stream.write_all(&out)?;
        let mut row = Vec::new();
        let mut failed = None;
        loop {
            match self.message()? {
                Message::DataRow(body) => row = texts(&body)?,
                Message::ErrorResponse(body) => failed = Some(told(body.fields())),
                Message::ReadyForQuery(_) => return failed.map_or(Ok(row), Err),
                Message::RowDescription(_)
                | Message::CommandComplete(_)
                | Message::NoticeResponse(_) => {}
                _ => return Err(unexpected("something else than the answer to a command")),
            }
        }
    }

    /// Runs a command that begins to copy in both directions.
    pub(crate) fn start_copy(&mut self, command: &str) -> io::Result<()> {
        let mut out = BytesMut::new();
        frontend::query(command, &mut out)?;
        self.stream.write_all(&out)?;
        loop {
            let len = self.fill_message()?;
            if self.input.first() == Some(&COPY_BOTH) {
                let _response = self.input.split_to(len);
                self.deadline = None;
                return Ok(());
            }
            match self.message()? {
                Message::ErrorResponse(body) => return Err(told(body.fields())),
                Message::NoticeResponse(_) => {}
                _ => return Err(unexpected("something else than the beginning of the log")),
            }
        }
    }

    /// What comes next of it.
    pub(crate) fn stream_input(&mut self) -> io::Result<StreamInput> {
        match self.message() {
            Ok(Message::CopyData(body)) => Ok(StreamInput::Data(body.into_bytes())),
            Ok(Message::ErrorResponse(body)) => Err(told(body.fields())),
            Ok(Message::CopyDone) => Err(io::Error::other("the server has ended the stream")),
            Ok(_) => Err(unexpected("something else than the log")),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(StreamInput::Silence)
            }
            Err(error) => Err(error),
        }
    }

    /// The length of the next message with its head, once that is there.
    fn message_len(&self) -> io::Result<Option<usize>> {
        let Some(header) = backend::Header::parse(&self.input)? else {
            return Ok(None);
        };
        let len = usize::try_from(header.len()).unwrap_or(usize::MAX);
        match len.checked_add(1).filter(|len| *len <= MESSAGE_BYTES_MAX) {
            Some(len) => Ok(Some(len)),
            None => Err(unexpected("a message that is too long")),
        }
    }

    /// Receives until a whole message is there; its length.
    fn fill_message(&mut self) -> io::Result<usize> {
        loop {
            if let Some(len) = self.message_len()?
                && self.input.len() >= len
            {
                return Ok(len);
            }
            if let Some((since, time)) = self.deadline
                && self.clock.monotonic().since(since) > time
            {
                return Err(ErrorKind::TimedOut.into());
            }
            let mut read = [0; READ_BYTES];
            match self.stream.read(&mut read) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof)),
                Ok(count) => self.input.put_slice(&read[..count]),
                // The process was stopped and goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn message(&mut self) -> io::Result<Message> {
        self.fill_message()?;
        Message::parse(&mut self.input)?.ok_or_else(|| unexpected("half a message"))
    }
}

fn texts(row: &DataRowBody) -> io::Result<Vec<String>> {
    use fallible_iterator::FallibleIterator;
    let bytes = row.buffer();
    row.ranges()
        .map(|range| {
            let value = range.and_then(|range| bytes.get(range)).unwrap_or(&[]);
            Ok(String::from_utf8_lossy(value).into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings() {
        let parsed =
            PrimaryConnection::parse("c", "host=a,b port=1,2 user=u password=secret").unwrap();
        assert_eq!(parsed.shown(), "postgres://u@a:1,b:2");
        assert_eq!(format!("{parsed:?}"), "postgres://u@a:1,b:2");
        assert_eq!(parsed.hosts(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        let one_port = PrimaryConnection::parse("c", "postgres://a,b:7/x").unwrap();
        assert_eq!(one_port.hosts()[1], ("b".to_owned(), 7));
        for (text, named) in [
            ("user=u", "no host"),
            ("host=a sslmode=verify-full", "sslrootcert"),
            ("host=a prot=5", "primary_conninfo"),
        ] {
            let error = PrimaryConnection::parse("primary_conninfo", text).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
