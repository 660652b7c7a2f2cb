//! Encryption: the server's certificate and key, and a stream that is encrypted or is not.
//!
//! Invariants: a new certificate is taken only if it is whole and its key fits; until then the old one stays. What was
//! received before the handshake never becomes part of what was received encrypted (the caller sees to it that there is
//! none: CVE-2021-23214).
//!
//! Keys and counters of an encrypted stream are in the memory of this process. So its client may go on with another
//! instance in this process ([`EncryptedStream`]), but not with another process.

use ring::digest;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate with its key, ready to be shown.
struct Shown {
    acceptor: TlsAcceptor,
    /// The certificate's hash as `tls-server-end-point` has it; none for a kind of signature that says no hash.
    binding: Option<Vec<u8>>,
}

/// What a server needs to encrypt.
pub struct Tls(RwLock<Arc<Shown>>);

impl Tls {
    /// From the text of both files (PEM).
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Tls, String> {
        Ok(Tls(RwLock::new(Arc::new(shown(certificates, key)?))))
    }

    /// Takes a new certificate for connections that begin from now on.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), String> {
        let new = Arc::new(shown(certificates, key)?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The handshake. Gives the encrypted stream, and what channel binding binds to.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<(Stream, Option<Vec<u8>>)> {
        let shown = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let stream = shown.acceptor.accept(stream).await?;
        let stream = EncryptedStream(Arc::new(Mutex::new(stream)));
        Ok((Stream::Tls(stream), shown.binding.clone()))
    }
}

fn shown(certificates: &[u8], key: &[u8]) -> Result<Shown, String> {
    let chain = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("ssl_cert_file: {error}"))?;
    let Some(own) = chain.first() else {
        return Err("ssl_cert_file: there is no certificate in it".to_owned());
    };
    let binding = end_point(own);
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("ssl_key_file: {error}"))?;
    // The same provider as the object store's client: there is one in the program.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("ssl_cert_file and ssl_key_file: {error}"))?;
    Ok(Shown {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        binding,
    })
}

/// RFC 5929, section 4.1: the certificate, hashed as its signature is, but for MD5 and SHA-1.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let (_, inside, _) = element(certificate)?;
    let (_, _signed, rest) = element(inside)?;
    let (_, algorithm, _) = element(rest)?;
    let (tag, name, _) = element(algorithm)?;
    if tag != 0x06 {
        return None;
    }
    let algorithm = match (name.strip_prefix(RSA), name.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => &digest::SHA256,
        (Some([12]), _) | (_, Some([3, 3])) => &digest::SHA384,
        (Some([13]), _) | (_, Some([3, 4])) => &digest::SHA512,
        _ => return None,
    };
    Some(digest::digest(algorithm, certificate).as_ref().to_vec())
}

/// An element of DER: its tag, what is in it, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..0x80 => (usize::from(short), rest),
        long => {
            let count = usize::from(long & 0x7f);
            if !(1..=4).contains(&count) {
                return None;
            }
            let (digits, rest) = rest.split_at_checked(count)?;
            let length = digits.iter().fold(0, |n, d| n << 8 | usize::from(*d));
            (length, rest)
        }
    };
    let (inside, rest) = rest.split_at_checked(length)?;
    Some((*tag, inside, rest))
}

/// An encrypted stream. Clones are of the same connection: one of them may be used at a time.
#[derive(Clone)]
pub struct EncryptedStream(Arc<Mutex<TlsStream<TcpStream>>>);

impl EncryptedStream {
    /// Goes on over another name of the same socket, which belongs to the runtime of who goes on.
    pub fn go_on(self, socket: TcpStream) -> Stream {
        *self.get().get_mut().0 = socket;
        Stream::Tls(self)
    }

    /// The stream. Nobody else has it now: a session that pauses does not touch it.
    fn get(&self) -> MutexGuard<'_, TlsStream<TcpStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another name of the socket below.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.get().get_ref().0.as_fd().try_clone_to_owned()
    }
}

/// A client's stream.
pub enum Stream {
    /// As it comes.
    Plain(TcpStream),
    /// From a socket of this machine's file system.
    Local(UnixStream),
    /// Encrypted.
    Tls(EncryptedStream),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Stream {
        Stream::Plain(stream)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Local(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(&mut *stream.get()).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Local(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(&mut *stream.get()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Local(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(&mut *stream.get()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Local(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(&mut *stream.get()).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, inside: &[u8]| {
            let mut out = vec![tag, 0x82, (inside.len() >> 8) as u8, inside.len() as u8];
            out.extend_from_slice(inside);
            out
        };
        let signed = wrap(0x30, &[7; 300]);
        let name = wrap(0x06, algorithm);
        wrap(0x30, &[signed, wrap(0x30, &name), vec![3, 1, 0]].concat())
    }

    #[test]
    fn a_certificate_is_hashed_as_it_is_signed() {
        let rsa = |last: u8| certificate(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last]);
        let ecdsa = |last: u8| certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last]);
        let length = |certificate: &[u8]| end_point(certificate).map(|hash| hash.len());
        assert_eq!(length(&rsa(11)), Some(32));
        assert_eq!(length(&rsa(12)), Some(48));
        assert_eq!(length(&rsa(13)), Some(64));
        // SHA-1 is too weak: SHA-256 in its place.
        assert_eq!(length(&rsa(5)), Some(32));
        assert_eq!(length(&ecdsa(2)), Some(32));
        assert_eq!(length(&ecdsa(4)), Some(64));
        // Ed25519 names no hash.
        assert_eq!(length(&certificate(&[0x2b, 0x65, 0x70])), None);
        let whole = rsa(11);
        let expected = digest::digest(&digest::SHA256, &whole);
        assert_eq!(end_point(&whole).as_deref(), Some(expected.as_ref()));
        // The hash is of the whole certificate, and what is cut off is none.
        for length in 0..310 {
            assert_eq!(end_point(&whole[..length]), None);
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let error = Tls::new(b"", b"").err().unwrap();
        assert!(error.contains("ssl_cert_file"), "{error}");
    }
}
