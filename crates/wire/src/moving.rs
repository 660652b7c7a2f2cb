//! A client whose session goes on at another worker of the server: its socket, what has come from it, and the session.
//!
//! Owns: how a connection leaves one worker's runtime ([`MovingClient::of`]) and enters another's
//! ([`MovingClient::arrive`]). The socket gets a second name, so that each runtime has one of its own; what encrypts it
//! goes along. Does not: choose the worker (the session does), or bring the client there.

use crate::client_connection::ClientConnection;
use crate::tls::{EncryptedStream, Stream};
use bytes::BytesMut;
use logstead_engine::WorkerId;
use logstead_sql_session::{HandoverTarget, MovingSession, Session};
use std::os::fd::OwnedFd;

/// A client on its way to another worker. Dropped, it is cut off.
pub struct MovingClient {
    descriptor: OwnedFd,
    encryption: Option<Box<EncryptedStream>>,
    /// What has come from it and was not looked at,
    input: BytesMut,
    /// and so many bytes of that, and of what comes next, are the rest of a message that nobody wants.
    unwanted: usize,
    session: MovingSession,
}

impl MovingClient {
    /// Takes the session away with its client, whose answers are sent; gives it back if it stays.
    pub(crate) fn of(
        link: &mut ClientConnection,
        mut session: Box<Session>,
    ) -> Result<MovingClient, Box<Session>> {
        if session.must_stay() {
            return Err(session);
        }
        let Some((descriptor, encryption)) = link.handed_over(HandoverTarget::SameProcess) else {
            // No descriptors are left for another name of the socket.
            session.stays();
            return Err(session);
        };
        let encryption = match encryption.map(|stream| stream.downcast::<EncryptedStream>()) {
            Some(Ok(stream)) => Some(stream),
            // Its client would be told in the clear what was encrypted.
            Some(Err(_)) => {
                session.stays();
                return Err(session);
            }
            None => None,
        };
        let Some(place) = session.take_place() else {
            return Err(session);
        };
        Ok(MovingClient {
            descriptor,
            encryption,
            unwanted: link.unwanted(),
            input: std::mem::take(link.input()),
            session: session.leave(place),
        })
    }

    /// The worker that it goes to.
    pub fn to(&self) -> Option<WorkerId> {
        self.session.to()
    }

    /// Its stream, within the other worker's runtime; and what comes along.
    pub(crate) fn arrive(self) -> std::io::Result<(Stream, BytesMut, usize, MovingSession)> {
        let stream = match (self.session.is_local(), self.encryption) {
            (true, _) => {
                let socket = std::os::unix::net::UnixStream::from(self.descriptor);
                Stream::Local(tokio::net::UnixStream::from_std(socket)?)
            }
            (false, encryption) => {
                let socket = std::net::TcpStream::from(self.descriptor);
                let socket = tokio::net::TcpStream::from_std(socket)?;
                match encryption {
                    Some(stream) => stream.go_on(socket),
                    None => Stream::Plain(socket),
                }
            }
        };
        Ok((stream, self.input, self.unwanted, self.session))
    }
}
