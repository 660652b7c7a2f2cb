//! Who may ask: keys, sessions of directory buckets, and their signatures.
//!
//! `s3s` checks signatures of the service name `s3`. S3 Express's clients sign for `s3express`
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateSession.html>): those are checked here, and then signed
//! again for `s3`, with the same key. What is signed, the canonical request, does not contain the service's name.
//!
//! Does not: take signatures of whole streams for `s3express` (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`), whose every chunk
//! names the service.

use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::http::request::Parts;
use logstead_env::{Env, Instant};
use parking_lot::RwLock;
use s3s::auth::{S3Auth, SecretKey};
use s3s::crypto::{Checksum, Sha256};
use s3s::{S3Error, S3ErrorCode, S3Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// How long a session lasts.
pub(crate) const SESSION_TIME: Duration = Duration::from_secs(5 * 60);
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const EXPRESS: &str = "s3express";
const SESSION_TOKEN: &str = "x-amz-s3session-token";
const PAYLOAD_HASH: &str = "x-amz-content-sha256";
const BLOCK: usize = 64;

/// An access key.
#[derive(Clone)]
pub struct AccessKey {
    /// Its public part.
    pub access_key: String,
    /// Its secret part.
    pub secret_key: String,
}

impl std::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.access_key)
    }
}

/// A session of one bucket.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) secret_key: String,
    pub(crate) token: String,
    bucket: String,
    read_only: bool,
    until: Instant,
}

/// Everybody who may ask.
#[derive(Clone)]
pub(crate) struct Authenticator {
    env: Env,
    keys: AccessKey,
    sessions: Arc<RwLock<BTreeMap<String, Session>>>,
}

fn refused(code: S3ErrorCode, why: &'static str) -> S3Error {
    S3Error::with_message(code, why)
}

fn invalid(why: &'static str) -> S3Error {
    refused(S3ErrorCode::InvalidRequest, why)
}

impl Authenticator {
    pub(crate) fn new(env: &Env, keys: AccessKey) -> Authenticator {
        Authenticator {
            env: env.clone(),
            keys,
            sessions: Arc::default(),
        }
    }

    /// Begins a session: its access key, and the rest.
    pub(crate) fn begin_session(&self, bucket: &str, read_only: bool) -> (String, Session) {
        let random = |bytes: usize| {
            let mut random = vec![0; bytes];
            self.env.random.fill(&mut random);
            hex(&random)
        };
        let now = self.env.clock.monotonic();
        let session = Session {
            secret_key: random(20),
            token: random(48),
            bucket: bucket.to_owned(),
            read_only,
            until: now + SESSION_TIME,
        };
        let access_key = format!("SESSION{}", random(8).to_uppercase());
        let mut sessions = self.sessions.write();
        // Those that ended long ago are nobody's any more.
        sessions.retain(|_, old| now.since(old.until) < SESSION_TIME);
        sessions.insert(access_key.clone(), session.clone());
        (access_key, session)
    }

    /// Checks what `s3s` does not check, and makes what it checks something it can.
    pub(crate) fn admit(&self, request: &mut Parts) -> S3Result<()> {
        let query = request.uri.query().unwrap_or_default();
        let is_old_query = query
            .split('&')
            .any(|pair| pair.starts_with("AWSAccessKeyId="));
        let Some(header) = request.headers.get(AUTHORIZATION) else {
            return match is_old_query {
                true => Err(old_signature()),
                // `s3s` looks at signed URLs, and denies access without any signature.
                false => Ok(()),
            };
        };
        let header = header
            .to_str()
            .map_err(|_| invalid("the header Authorization is not text"))?;
        let Some(signed) = AuthorizationHeader::parse(header) else {
            return Err(old_signature());
        };
        let session = self.sessions.read().get(signed.access_key).cloned();
        if signed.service != EXPRESS {
            return match session {
                Some(_) => Err(invalid("a session's requests are signed for s3express")),
                None => Ok(()),
            };
        }
        let secret_key = match &session {
            None => self.secret_of(signed.access_key)?,
            Some(session) => {
                self.check_session(session, request)?;
                session.secret_key.clone()
            }
        };
        let hash = request.headers.get(PAYLOAD_HASH);
        if hash.is_some_and(|hash| hash.as_bytes().starts_with(b"STREAMING-AWS4")) {
            return Err(refused(
                S3ErrorCode::NotImplemented,
                "the development bucket takes no signed chunks in sessions: sign the whole payload, or none of it",
            ));
        }
        let canonical = hex(Sha256::checksum(canonical(request, &signed)?.as_bytes()).as_ref());
        let date = request
            .headers
            .get("x-amz-date")
            .and_then(|date| date.to_str().ok())
            .ok_or_else(|| invalid("the header x-amz-date is missing"))?;
        if signed.sign(EXPRESS, &secret_key, date, &canonical) != signed.signature {
            return Err(S3ErrorCode::SignatureDoesNotMatch.into());
        }
        let again = format!(
            "{ALGORITHM} Credential={}/{}/{}/s3/aws4_request, SignedHeaders={}, Signature={}",
            signed.access_key,
            signed.date,
            signed.region,
            signed.headers,
            signed.sign("s3", &secret_key, date, &canonical),
        );
        let again = HeaderValue::from_str(&again)
            .map_err(|_| invalid("the header Authorization is not text"))?;
        request.headers.insert(AUTHORIZATION, again);
        Ok(())
    }

    fn secret_of(&self, access_key: &str) -> S3Result<String> {
        if access_key == self.keys.access_key {
            return Ok(self.keys.secret_key.clone());
        }
        let session = self.sessions.read().get(access_key).cloned();
        session
            .map(|session| session.secret_key)
            .ok_or_else(|| S3ErrorCode::InvalidAccessKeyId.into())
    }

    fn check_session(&self, session: &Session, request: &Parts) -> S3Result<()> {
        let token = request.headers.get(SESSION_TOKEN);
        if token.is_none_or(|token| token.as_bytes() != session.token.as_bytes()) {
            return Err(refused(
                S3ErrorCode::InvalidToken,
                "the header x-amz-s3session-token is not this session's",
            ));
        }
        if self.env.clock.monotonic() >= session.until {
            return Err(S3ErrorCode::ExpiredToken.into());
        }
        let path = request.uri.path().trim_start_matches('/');
        if path.split('/').next() != Some(&session.bucket) {
            return Err(refused(
                S3ErrorCode::AccessDenied,
                "the session is another bucket's",
            ));
        }
        if session.read_only && !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(refused(
                S3ErrorCode::AccessDenied,
                "the session is for reading only",
            ));
        }
        Ok(())
    }
}

fn old_signature() -> S3Error {
    invalid(
        "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
    )
}

#[async_trait::async_trait]
impl S3Auth for Authenticator {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        self.secret_of(access_key).map(SecretKey::from)
    }
}

/// What an Authorization header says.
struct AuthorizationHeader<'h> {
    access_key: &'h str,
    date: &'h str,
    region: &'h str,
    service: &'h str,
    /// As they stand there: lower case, in order, with semicolons.
    headers: &'h str,
    signature: &'h str,
}

impl<'h> AuthorizationHeader<'h> {
    fn parse(header: &'h str) -> Option<AuthorizationHeader<'h>> {
        let fields = header.strip_prefix(ALGORITHM)?;
        let field = |name: &str| {
            let mut fields = fields.split(',').map(str::trim);
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        // From the end: an access key may hold slashes.
        let mut scope = field("Credential")?.rsplitn(5, '/');
        let _terminator = scope.next().filter(|text| *text == "aws4_request")?;
        Some(AuthorizationHeader {
            service: scope.next()?,
            region: scope.next()?,
            date: scope.next()?,
            access_key: scope.next()?,
            headers: field("SignedHeaders")?,
            signature: field("Signature")?,
        })
    }

    fn sign(&self, service: &str, secret_key: &str, date: &str, canonical: &str) -> String {
        let scope = format!("{}/{}/{service}/aws4_request", self.date, self.region);
        let text = format!("{ALGORITHM}\n{date}\n{scope}\n{canonical}");
        let mut key = hmac(format!("AWS4{secret_key}").as_bytes(), self.date.as_bytes());
        for part in [self.region, service, "aws4_request"] {
            key = hmac(&key, part.as_bytes());
        }
        hex(&hmac(&key, text.as_bytes()))
    }
}

/// The canonical request: <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>. Path and
/// query are taken as they were sent: clients send them as they sign them.
fn canonical(request: &Parts, signed: &AuthorizationHeader<'_>) -> S3Result<String> {
    let mut pairs: Vec<String> = request
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.contains('=') {
            true => pair.to_owned(),
            false => format!("{pair}="),
        })
        .collect();
    pairs.sort_unstable();
    let mut text = format!(
        "{}\n{}\n{}\n",
        request.method,
        request.uri.path(),
        pairs.join("&")
    );
    for name in signed.headers.split(';') {
        let mut values = Vec::new();
        for value in request.headers.get_all(name) {
            let value = value
                .to_str()
                .map_err(|_| invalid("a signed header is not text"))?;
            values.push(value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        if values.is_empty() {
            return Err(invalid("a signed header is missing"));
        }
        // Formatting into a string does not fail.
        let _infallible = writeln!(text, "{name}:{}", values.join(","));
    }
    let hash = request
        .headers
        .get(PAYLOAD_HASH)
        .and_then(|hash| hash.to_str().ok())
        .ok_or_else(|| invalid("the header x-amz-content-sha256 is missing"))?;
    let _infallible = write!(text, "\n{}\n{hash}", signed.headers);
    Ok(text)
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(Sha256::checksum(key).as_ref());
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let keyed = |pad: u8, message: &[u8]| {
        let mut hash = Sha256::new();
        hash.update(&block.map(|byte| byte ^ pad));
        hash.update(message);
        hash.finalize()
    };
    keyed(0x5c, keyed(0x36, message).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Formatting into a string does not fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// The header Authorization of a request with these headers, in their order.
#[cfg(test)]
pub(crate) fn sign_for_tests(
    method: &str,
    path: &str,
    query: &str,
    headers: &[(&str, String)],
    (access_key, secret_key): (&str, &str),
    service: &str,
) -> String {
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(format!("{path}?{query}"));
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    let date = parts.headers["x-amz-date"].to_str().expect("text");
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let signed = AuthorizationHeader {
        access_key,
        date: &date[..8],
        region: "here-1",
        service,
        headers: &names,
        signature: "",
    };
    let canonical = canonical(&parts, &signed).expect("complete");
    let hash = hex(Sha256::checksum(canonical.as_bytes()).as_ref());
    let signature = signed.sign(service, secret_key, date, &hash);
    format!(
        "{ALGORITHM} Credential={access_key}/{}/here-1/{service}/aws4_request, SignedHeaders={names}, Signature={signature}",
        &date[..8]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        // Test cases 2 and 6.
        let short = hmac(b"Jefe", b"what do ya want for nothing?");
        let text = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&short), text);
        let long = hmac(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
        );
        let text = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(hex(&long), text);
    }

    #[test]
    fn the_signature_is_that_of_the_documentation() {
        // The first example of "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)".
        let header = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
            SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
            Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let (parts, ()) = hyper::Request::get("/test.txt")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("range", "bytes=0-9")
            .header("x-amz-content-sha256", empty)
            .header("x-amz-date", "20130524T000000Z")
            .body(())
            .expect("a request")
            .into_parts();
        let signed = AuthorizationHeader::parse(header).expect("is one");
        let canonical = canonical(&parts, &signed).expect("complete");
        let hash = hex(Sha256::checksum(canonical.as_bytes()).as_ref());
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let signature = signed.sign("s3", secret, "20130524T000000Z", &hash);
        assert_eq!(signature, signed.signature);
    }
}
