//! The bytes of a connection to a primary: from a socket, encrypted or not. One thread reads, another one may write.

use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where bytes come from and go to.
pub(super) enum LinkStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(TlsStream),
}

/// An encrypted stream. Clones are of the same connection.
pub(super) struct TlsStream {
    socket: TcpStream,
    /// Never held while something is waited for but room in the socket, which is bounded by the write timeout.
    session: Arc<Mutex<ClientConnection>>,
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
}

impl TlsStream {
    /// Begins the session: nobody has sent anything on the socket but the request for it.
    pub(super) fn connect(
        mut session: ClientConnection,
        mut socket: TcpStream,
    ) -> io::Result<TlsStream> {
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(TlsStream {
            socket,
            session: Arc::new(Mutex::new(session)),
        })
    }

    fn session(&self) -> MutexGuard<'_, ClientConnection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_clone(&self) -> io::Result<TlsStream> {
        Ok(TlsStream {
            socket: self.socket.try_clone()?,
            session: Arc::clone(&self.session),
        })
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session().reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            // Whoever writes does not wait for what comes: it is waited for outside of the session.
            if self.socket.peek(&mut [0])? == 0 {
                return Ok(0);
            }
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            session.read_tls(&mut self.socket)?;
            session.process_new_packets().map_err(invalid)?;
            while session.wants_write() {
                session.write_tls(&mut self.socket)?;
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        while !bytes.is_empty() {
            let taken = session.writer().write(bytes)?;
            bytes = bytes.get(taken..).unwrap_or_default();
            while session.wants_write() {
                session.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

impl LinkStream {
    pub(super) fn set_write_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            LinkStream::Tcp(stream) => stream.set_write_timeout(Some(time)),
            LinkStream::Unix(stream) => stream.set_write_timeout(Some(time)),
            LinkStream::Tls(stream) => stream.socket.set_write_timeout(Some(time)),
        }
    }

    pub(super) fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            LinkStream::Tcp(stream) => stream.set_read_timeout(Some(time)),
            LinkStream::Unix(stream) => stream.set_read_timeout(Some(time)),
            LinkStream::Tls(stream) => stream.socket.set_read_timeout(Some(time)),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<LinkStream> {
        Ok(match self {
            LinkStream::Tcp(stream) => LinkStream::Tcp(stream.try_clone()?),
            LinkStream::Unix(stream) => LinkStream::Unix(stream.try_clone()?),
            LinkStream::Tls(stream) => LinkStream::Tls(stream.try_clone()?),
        })
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            LinkStream::Tcp(stream) => stream.read(into),
            LinkStream::Unix(stream) => stream.read(into),
            LinkStream::Tls(stream) => stream.read(into),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            LinkStream::Tcp(stream) => stream.write_all(bytes),
            LinkStream::Unix(stream) => stream.write_all(bytes),
            LinkStream::Tls(stream) => stream.write_all(bytes),
        }
    }

    pub(super) fn shut_down(&self) {
        let both = std::net::Shutdown::Both;
        let _it_is_gone_already = match self {
            LinkStream::Tcp(stream) => stream.shutdown(both),
            LinkStream::Unix(stream) => stream.shutdown(both),
            LinkStream::Tls(stream) => stream.socket.shutdown(both),
        };
    }
}
