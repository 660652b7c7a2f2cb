//! The bytes of a connection: over a socket, encrypted or not. One thread reads, another one may write.

use logstead_env::simulated_threads::{SimListener, SimNetwork, SimStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, Connection, DigitallySignedStruct, SignatureScheme};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where bytes come from and go to.
pub enum LinkStream {
    /// Over the network, as it is.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// Over the network, encrypted.
    Tls(TlsStream),
    /// Over the network of a simulation.
    Simulated(SimStream),
}

/// An encrypted stream. Clones are of the same connection.
pub struct TlsStream {
    socket: TcpStream,
    /// Never held while the socket is waited for: whoever reads goes on while another one writes.
    session: Arc<Mutex<Connection>>,
    /// What is encrypted and not sent. Held from the encryption of bytes until they are sent, so that they leave in
    /// order.
    sending: Arc<Mutex<Vec<u8>>>,
}

/// Encrypts a connection to one that proves by a key, over the [channel binding](TlsStream::channel_binding), who it
/// is: its certificate is not judged. TLS 1.3.
pub fn encrypt(socket: TcpStream) -> io::Result<TlsStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let judge = Arc::new(AnyCertificate(Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(invalid)?
        .dangerous()
        .with_custom_certificate_verifier(judge)
        .with_no_client_auth();
    let name = ServerName::from(socket.peer_addr()?.ip());
    let session = ClientConnection::new(Arc::new(config), name).map_err(invalid)?;
    TlsStream::begin(session, socket)
}

/// Any certificate will do, if the other side has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    // TLS 1.3 only.
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General(
            "TLS 1.2 is not spoken here".to_owned(),
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
}

impl TlsStream {
    /// Begins the session, of either side: nobody has sent anything on the socket but the request for it.
    pub fn begin(session: impl Into<Connection>, mut socket: TcpStream) -> io::Result<TlsStream> {
        let mut session = session.into();
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(TlsStream {
            socket,
            session: Arc::new(Mutex::new(session)),
            sending: Arc::default(),
        })
    }

    /// Bytes that both sides have, and nobody else who sits between two sessions: whatever is proved over them is
    /// proved of this connection (RFC 9266).
    pub fn channel_binding(&self) -> io::Result<[u8; 32]> {
        let label = b"EXPORTER-Channel-Binding";
        let exported = self.session().export_keying_material([0; 32], label, None);
        exported.map_err(invalid)
    }

    fn session(&self) -> MutexGuard<'_, Connection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_clone(&self) -> io::Result<TlsStream> {
        Ok(TlsStream {
            socket: self.socket.try_clone()?,
            session: Arc::clone(&self.session),
            sending: Arc::clone(&self.sending),
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
            // What the session has to answer leaves with what is written next.
            session.process_new_packets().map_err(invalid)?;
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        while !bytes.is_empty() {
            sending.clear();
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = session.writer().write(bytes)?;
            while session.wants_write() {
                session.write_tls(&mut *sending)?;
            }
            drop(session);
            self.socket.write_all(&sending)?;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(())
    }
}

impl LinkStream {
    /// Connects over the network, giving up after `time`. Not encrypted yet.
    pub fn connect(address: SocketAddr, time: Duration) -> io::Result<LinkStream> {
        match SimNetwork::current() {
            Some(network) => network.connect(address, time).map(LinkStream::Simulated),
            None => logstead_env::connect(address, time).map(LinkStream::Tcp),
        }
    }

    /// How long a write waits for room.
    pub fn set_write_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            LinkStream::Tcp(stream) => stream.set_write_timeout(Some(time)),
            LinkStream::Unix(stream) => stream.set_write_timeout(Some(time)),
            LinkStream::Tls(stream) => stream.socket.set_write_timeout(Some(time)),
            LinkStream::Simulated(stream) => {
                stream.set_write_timeout(time);
                Ok(())
            }
        }
    }

    /// How long a read waits for bytes.
    pub fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            LinkStream::Tcp(stream) => stream.set_read_timeout(Some(time)),
            LinkStream::Unix(stream) => stream.set_read_timeout(Some(time)),
            LinkStream::Tls(stream) => stream.socket.set_read_timeout(Some(time)),
            LinkStream::Simulated(stream) => {
                stream.set_read_timeout(time);
                Ok(())
            }
        }
    }

    /// The same connection for another thread.
    pub fn try_clone(&self) -> io::Result<LinkStream> {
        Ok(match self {
            LinkStream::Tcp(stream) => LinkStream::Tcp(stream.try_clone()?),
            LinkStream::Unix(stream) => LinkStream::Unix(stream.try_clone()?),
            LinkStream::Tls(stream) => LinkStream::Tls(stream.try_clone()?),
            LinkStream::Simulated(stream) => LinkStream::Simulated(stream.clone()),
        })
    }

    /// Writes all of it.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            LinkStream::Tcp(stream) => stream.write_all(bytes),
            LinkStream::Unix(stream) => stream.write_all(bytes),
            LinkStream::Tls(stream) => stream.write_all(bytes),
            LinkStream::Simulated(stream) => stream.write_all(bytes),
        }
    }

    /// Ends it, whoever reads or writes now.
    pub fn shut_down(&self) {
        let both = std::net::Shutdown::Both;
        let _it_is_gone_already = match self {
            LinkStream::Tcp(stream) => stream.shutdown(both),
            LinkStream::Unix(stream) => stream.shutdown(both),
            LinkStream::Tls(stream) => stream.socket.shutdown(both),
            LinkStream::Simulated(stream) => {
                stream.shut_down();
                Ok(())
            }
        };
    }
}

/// Who listens on the network for such connections.
pub enum LinkListener {
    /// On an address of this machine.
    Tcp(TcpListener),
    /// In a simulation.
    Simulated(SimListener),
}

impl LinkListener {
    /// Listens there; port 0 lets the system choose.
    pub fn bind(address: SocketAddr) -> io::Result<LinkListener> {
        if let Some(network) = SimNetwork::current() {
            return network.listen(address).map(LinkListener::Simulated);
        }
        let listener = logstead_env::listen(address)?;
        listener.set_nonblocking(false)?;
        Ok(LinkListener::Tcp(listener))
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            LinkListener::Tcp(listener) => listener.local_addr(),
            LinkListener::Simulated(listener) => Ok(listener.address()),
        }
    }

    /// Waits for the next connection; small messages leave it at once.
    pub fn accept(&self) -> io::Result<(LinkStream, SocketAddr)> {
        match self {
            LinkListener::Tcp(listener) => {
                let (socket, peer) = listener.accept()?;
                socket.set_nodelay(true)?;
                Ok((LinkStream::Tcp(socket), peer))
            }
            LinkListener::Simulated(listener) => {
                let (stream, peer) = listener.accept()?;
                Ok((LinkStream::Simulated(stream), peer))
            }
        }
    }
}

impl Read for LinkStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            LinkStream::Tcp(stream) => stream.read(into),
            LinkStream::Unix(stream) => stream.read(into),
            LinkStream::Tls(stream) => stream.read(into),
            LinkStream::Simulated(stream) => stream.read(into),
        }
    }
}
