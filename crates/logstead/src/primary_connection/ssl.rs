//! Whether a connection to a primary is encrypted, and which certificates are trusted: `sslmode` and `sslrootcert` of a
//! connection string, as libpq has them.
//!
//! Owns: what the two say ([`SslSettings`]), and the judgement of a server's certificate.
//! A certificate that stands in `sslrootcert` itself is trusted as it is, also if it is no authority's.
//!
//! Does not: send a client's certificate, or look for files in a home directory.

use logstead_env::{Env, Files};
use logstead_link::TlsStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

/// SSLRequest.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// `sslmode`, without `allow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SslMode {
    Disable,
    /// Encrypted if the server can.
    #[default]
    Prefer,
    Require,
    /// By a certificate of one whom `sslrootcert` has.
    VerifyCa,
    /// And made out to the host.
    VerifyFull,
}

/// What a connection string says of encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SslSettings {
    pub(super) mode: SslMode,
    root: Option<PathBuf>,
}

impl SslSettings {
    /// Takes its own settings out of a connection string; the rest is somebody else's.
    pub(super) fn take(text: &str) -> Result<(SslSettings, String), String> {
        let (rest, taken) = match text.contains("://") {
            true => take_from_url(text)?,
            false => take_from_words(text)?,
        };
        let mut settings = SslSettings::default();
        for (name, value) in taken {
            match name.as_str() {
                "sslrootcert" if value == "system" => {
                    return Err("sslrootcert=system is not supported: name a file".to_owned());
                }
                "sslrootcert" => {
                    settings.root = (!value.is_empty()).then(|| PathBuf::from(value));
                }
                _ => {
                    settings.mode = match value.as_str() {
                        "disable" => SslMode::Disable,
                        // Both encrypt if the server insists, which it does by refusing the other.
                        "allow" | "prefer" => SslMode::Prefer,
                        "require" => SslMode::Require,
                        "verify-ca" => SslMode::VerifyCa,
                        "verify-full" => SslMode::VerifyFull,
                        _ => return Err(format!("invalid sslmode value: \"{value}\"")),
                    };
                }
            }
        }
        match (settings.mode, &settings.root) {
            (SslMode::VerifyCa | SslMode::VerifyFull, None) => {
                return Err("sslmode=verify-ca and verify-full need sslrootcert".to_owned());
            }
            // As libpq: whoever names a root wants it to be looked at.
            (SslMode::Require, Some(_)) => settings.mode = SslMode::VerifyCa,
            _ => {}
        }
        Ok((settings, rest))
    }

    /// Asks the server to encrypt. `name` is the host's, as the certificate has to say it. Nothing: it does not, and
    /// need not.
    pub(super) fn encrypt(
        &self,
        mut socket: TcpStream,
        name: &str,
        env: &Env,
    ) -> io::Result<Result<TlsStream, TcpStream>> {
        if self.mode == SslMode::Disable {
            return Ok(Err(socket));
        }
        socket.write_all(&SSL_REQUEST)?;
        // Not a byte more: whatever came with the answer would not be encrypted (CVE-2021-23222).
        let mut answer = [0];
        socket.read_exact(&mut answer)?;
        match answer {
            [b'S'] => {
                let session = self.session(name, env).map_err(io::Error::other)?;
                TlsStream::begin(session, socket).map(Ok)
            }
            [b'N'] if self.mode == SslMode::Prefer => Ok(Err(socket)),
            [b'N'] => Err(io::Error::other(
                "the server does not encrypt, but sslmode asks for it",
            )),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server has sent something else than an answer about encryption",
            )),
        }
    }

    fn session(&self, name: &str, env: &Env) -> Result<ClientConnection, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = self.verifier(&provider, env.files.as_ref())?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("\"{name}\" is no name that a certificate can have"))?;
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())
    }

    fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
        files: &dyn Files,
    ) -> Result<Verifier, String> {
        let mut verifier = Verifier {
            chain: None,
            trusted: Vec::new(),
            checks_name: self.mode == SslMode::VerifyFull,
            provider: Arc::clone(provider),
        };
        let (SslMode::VerifyCa | SslMode::VerifyFull, Some(file)) = (self.mode, &self.root) else {
            return Ok(verifier);
        };
        let told = |why: String| format!("sslrootcert {}: {why}", file.display());
        let text = files.read(file).map_err(|error| told(error.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&text);
        let certificates: Result<Vec<_>, _> = certificates.collect();
        verifier.trusted = certificates.map_err(|error| told(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &verifier.trusted {
            let added = roots.add(certificate.clone());
            added.map_err(|error| told(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(told("there is no certificate in it".to_owned()));
        }
        let chain =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        verifier.chain = Some(chain.build().map_err(|error| told(error.to_string()))?);
        Ok(verifier)
    }
}

/// Judges a server's certificate.
#[derive(Debug)]
struct Verifier {
    /// Nothing: any certificate will do.
    chain: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            Err(rustls::Error::InvalidCertificate(error))
                if is_not_about_time(&error)
                    && self.trusted.iter().any(|own| own == end_entity) =>
            {
                if self.checks_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

fn is_not_about_time(error: &CertificateError) -> bool {
    !matches!(
        error,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

type Taken = Vec<(String, String)>;

fn is_own(name: &str) -> bool {
    matches!(name, "sslmode" | "sslrootcert")
}

/// Of `postgres://...?name=value&...`.
fn take_from_url(text: &str) -> Result<(String, Taken), String> {
    let Some((before, query)) = text.split_once('?') else {
        return Ok((text.to_owned(), Taken::new()));
    };
    let (mut rest, mut taken) = (Vec::new(), Taken::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((name, value)) if is_own(name) => {
                let value = percent_decoded(value)
                    .ok_or_else(|| format!("{name} has a percent sign without two digits"))?;
                taken.push((name.to_owned(), value));
            }
            _ => rest.push(pair),
        }
    }
    let rest = match rest.is_empty() {
        true => before.to_owned(),
        false => format!("{before}?{}", rest.join("&")),
    };
    Ok((rest, taken))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        decoded.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        decoded.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(decoded).ok()
}

/// Of `name = value name = 'va''lue'`, in the words of libpq.
fn take_from_words(text: &str) -> Result<(String, Taken), String> {
    let (mut rest, mut taken) = (String::new(), Taken::new());
    let mut left = text.trim_start();
    while !left.is_empty() {
        let Some((name, behind)) = left.split_once('=') else {
            // Whoever reads the rest says what is wrong.
            rest.push_str(left);
            break;
        };
        let (value, behind) = word(behind.trim_start())?;
        let name = name.trim_end();
        if is_own(name) {
            taken.push((name.to_owned(), value));
        } else {
            rest.push_str(&left[..left.len() - behind.len()]);
            rest.push(' ');
        }
        left = behind.trim_start();
    }
    Ok((rest, taken))
}

/// The value that a text begins with, and what follows.
fn word(text: &str) -> Result<(String, &str), String> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            ' ' | '\t' | '\n' | '\r' if !is_quoted => {
                return Ok((value, text.get(at..).unwrap_or_default()));
            }
            _ => value.push(character),
        }
    }
    match is_quoted {
        true => Err("a quote in the connection string is not closed".to_owned()),
        false => Ok((value, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mode: SslMode, root: Option<&str>) -> SslSettings {
        let root = root.map(PathBuf::from);
        SslSettings { mode, root }
    }

    #[test]
    fn what_is_its_own_is_taken_out() {
        let root = Some("/a b");
        for (text, expected, rest) in [
            ("host=a", settings(SslMode::Prefer, None), "host=a "),
            (
                r"host = 'x y' sslmode=verify-full sslrootcert='/a b' password='a\'=b'",
                settings(SslMode::VerifyFull, root),
                r"host = 'x y' password='a\'=b' ",
            ),
            (
                r"sslmode='require' user=u sslrootcert=/a\ b",
                settings(SslMode::VerifyCa, root),
                "user=u ",
            ),
            (
                "postgres://u@a/d?sslmode=disable",
                settings(SslMode::Disable, None),
                "postgres://u@a/d",
            ),
            (
                "postgres://a?x=1&sslrootcert=%2Fa%20b&sslmode=verify-ca&y=2",
                settings(SslMode::VerifyCa, root),
                "postgres://a?x=1&y=2",
            ),
        ] {
            let (found, left) = SslSettings::take(text).expect(text);
            assert_eq!((found, left.as_str()), (expected, rest), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (text, named) in [
            ("host=a sslmode=verify-full", "need sslrootcert"),
            ("host=a sslmode=always", "\"always\""),
            ("host=a sslrootcert=system", "not supported"),
            ("host='a sslmode=disable", "not closed"),
            ("postgres://a?sslrootcert=%2", "percent"),
        ] {
            let error = SslSettings::take(text).expect_err(text);
            assert!(error.contains(named), "{error}");
        }
    }
}
