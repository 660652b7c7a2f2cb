//! The node's side of encryption: a certificate and its key, from files.
//!
//! Which certificate it is does not matter to a server, which makes sure of the node by the volume's key over the
//! encrypted connection (see [`logstead_home::node::handshake`]).

use logstead_env::Files;
use logstead_link::TlsStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

/// A certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {why}")]
pub struct CertificateError {
    file: String,
    why: String,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct NodeCertificate(Arc<ServerConfig>);

impl NodeCertificate {
    /// From files in PEM.
    pub fn read(
        certificate: &Path,
        key: &Path,
        files: &dyn Files,
    ) -> Result<NodeCertificate, CertificateError> {
        let told = |file: &Path, why: String| CertificateError {
            file: file.display().to_string(),
            why,
        };
        let read = |file: &Path| {
            files
                .read(file)
                .map_err(|error| told(file, error.to_string()))
        };
        let chain = CertificateDer::pem_slice_iter(&read(certificate)?).collect::<Result<_, _>>();
        let chain = chain.map_err(|error| told(certificate, error.to_string()))?;
        let private = PrivateKeyDer::from_pem_slice(&read(key)?);
        let private = private.map_err(|error| told(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| told(certificate, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|error| told(certificate, error.to_string()))?;
        Ok(NodeCertificate(Arc::new(config)))
    }

    /// Encrypts a connection that was accepted.
    pub(crate) fn accept(&self, socket: TcpStream) -> io::Result<TlsStream> {
        let session = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        TlsStream::begin(session, socket)
    }
}
