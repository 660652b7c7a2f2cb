//! Real object stores behind [`Bucket`], by the client library OpenDAL: it signs requests and speaks each provider's
//! dialect.
//!
//! What goes out, per operation (the [`meter`](super::meter) sees and counts each):
//!
//! | operation | S3 and S3 Express | Azure |
//! |---|---|---|
//! | `create` | PutObject, `If-None-Match: *`: what is put there can be appended to | Put Blob (an append blob), `If-None-Match: *`, then the first append |
//! | `append` | PutObject, `x-amz-write-offset-bytes` | Append Block, `x-ms-blob-condition-appendpos` |
//! | `put_if_absent` | PutObject, `If-None-Match: *` | Put Blob, the same |
//! | `replace` | PutObject, `If-Match` | Put Blob, the same |
//!
//! Invariants:
//! - Nothing is sent twice: the library's retries are not in use, HTTP's neither (T14). The one exception is a request
//!   of which not a byte was written, because the kept connection was already closed.
//! - An append goes out with the caller's offset, or not at all.
//! - Every operation ends: in time, or as [`Outcome::Unknown`].
//! - A body cut short is an error, never a short read.
//!
//! Azure's `create` is two requests. If the second one fails, the object may be there without bytes: that is
//! [`Outcome::Unknown`], and so is a process that dies in between. Whoever finds an empty object where one was to be
//! made may append to it at 0.
//!
//! Does not: retry, or know lanes and blocks.

mod config;
pub(in crate::bucket) mod outcome;

use super::meter::{Meter, MeteredAction, MeteredCall, SendProgress, with_causes};
use super::url::{BucketUrl, Service, wrong};
use super::{AppendLimits, Bucket, BucketError, BucketFuture, ETag, ListEntry, Outcome, Stat};
use crate::usage::UsageCounters;
use crate::{HomeError, Usage};
use bytes::Bytes;
use logstead_env::Env;
use opendal::raw::{OpRead, Service as _, oio::Read as _, oio::ReadStream as _};
use opendal::{BytesRange, EntryMode, HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::Duration;

/// How long a small request may take, unless the URL says otherwise: a provider that answers at all does so within
/// seconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may take to come about. Shorter than any request's time, so that a server that is not there
/// shows as what it is: nothing was sent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The slowest transfer that is waited for.
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// A list of this many pages is waited for.
const LIST_TIMEOUTS: u32 = 6;

/// How long an idle connection is kept: less than providers keep theirs (S3 closes after some 20 s).
const IDLE: Duration = Duration::from_secs(15);

/// A bucket at a provider.
struct Client {
    url: BucketUrl,
    /// Bucket, prefix and server, for people.
    name: String,
    operator: Operator,
    counters: Arc<UsageCounters>,
    timeout: Duration,
    /// The provider's name in the price list.
    provider: &'static str,
    /// The provider has accepted the credentials once.
    worked: AtomicBool,
}

/// Opens the bucket that `url` names, with what the environment and the cloud's files say about it. Talks to nobody
/// yet.
pub fn open(url: &str, env: &Env) -> Result<Arc<dyn Bucket>, HomeError> {
    open_with(url, env, &|name| std::env::var(name).ok())
}

/// The same with other variables than the process's environment has. What the library finds by itself (roles of
/// machines and containers, single sign-on) it still looks for in the process's.
pub fn open_with(
    url: &str,
    env: &Env,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Bucket>, HomeError> {
    let parsed = BucketUrl::parse(url)?;
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let parts = config::parts(url, &parsed, env, &variable)?;
    let unfit = |why: &dyn std::error::Error| wrong(url, with_causes(why));

    let endpoint = reqwest::Url::parse(&parts.endpoint).map_err(|why| unfit(&why))?;
    let authority = match (endpoint.host_str(), endpoint.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return Err(wrong(url, "the endpoint has no host")),
    };
    let http = http_client(&parts.endpoint, parsed.timeout.unwrap_or(TIMEOUT));
    let http = http.map_err(|why| unfit(&why))?;
    let counters = Arc::new(UsageCounters::default());
    let meter = Meter::new(
        ReqwestTransport::new(http),
        authority,
        &parsed.bucket,
        counters.clone(),
    );
    let context = OperationContext::new().with_http_transport(HttpTransporter::new(meter));
    let provider = match parsed.service {
        Service::S3Express => "s3express",
        Service::S3 => "s3",
        Service::Azure => "azure",
    };
    let named = BucketUrl {
        endpoint: Some(parts.endpoint),
        ..parsed.clone()
    };
    Ok(Arc::new(Client {
        name: named.describe(),
        operator: parts.operator.with_context(context),
        counters,
        provider,
        timeout: parsed.timeout.unwrap_or(TIMEOUT),
        worked: AtomicBool::new(false),
        url: parsed,
    }))
}

/// HTTP as the log needs it.
fn http_client(endpoint: &str, timeout: Duration) -> reqwest::Result<reqwest::Client> {
    static TLS: Once = Once::new();
    // An error means that the process has chosen one already: that one does it too.
    TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = reqwest::Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(10))
        .connect_timeout(CONNECT_TIMEOUT.min(timeout / 2))
        .pool_idle_timeout(IDLE)
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    if config::is_loopback(endpoint) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// What the library says, without its context: that has the request's URL in it, and with it an Azure SAS token.
fn explain(error: &opendal::Error) -> String {
    let message = error.message().to_owned();
    match std::error::Error::source(error) {
        Some(cause) => format!("{message}: {}", with_causes(cause)),
        None => message,
    }
}

impl Client {
    /// Time for a request that moves this many bytes.
    fn time(&self, bytes: u64) -> Duration {
        self.timeout + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN)
    }

    /// Runs an operation to its end, in time, and says what became of it.
    async fn run<T>(
        &self,
        what: &str,
        name: &str,
        act: MeteredAction,
        time: Duration,
        operation: impl IntoFuture<Output = opendal::Result<T>, IntoFuture: Send>,
    ) -> Result<(T, Arc<MeteredCall>), BucketError> {
        let call = MeteredCall::new(act);
        let error = match tokio::time::timeout(time, call.run(operation.into_future())).await {
            Ok(Ok(value)) => {
                self.worked.store(true, Relaxed);
                return Ok((value, call));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        let (outcome, why) = self.outcome(&call, act, error.as_ref(), time);
        Err(BucketError {
            outcome,
            what: format!("{what} {name} in {}", self.name),
            why,
        })
    }

    /// What an operation's failure means. `None`: it ran out of time.
    fn outcome(
        &self,
        call: &MeteredCall,
        act: MeteredAction,
        error: Option<&opendal::Error>,
        time: Duration,
    ) -> (Outcome, String) {
        let late = || format!("no answer within {} ms", time.as_millis());
        let said = || error.map_or_else(late, explain);
        let worked = self.worked.load(Relaxed);
        let (outcome, why) = match call.wire() {
            SendProgress::Answered(reply) if reply.status >= 300 => {
                let appends = matches!(act, MeteredAction::Append(_));
                let outcome = reply.outcome(self.url.service, appends, worked);
                // Whoever says anything but "who are you?" knows us.
                if !matches!(reply.status, 400 | 401 | 403) && reply.status < 500 {
                    self.worked.store(true, Relaxed);
                }
                (outcome, reply.describe())
            }
            SendProgress::Answered(_) => (Outcome::Unknown, said()),
            SendProgress::Sent { session: true } | SendProgress::NotSent => {
                (Outcome::NotNow, said())
            }
            SendProgress::Sent { session: false } => (Outcome::Unknown, said()),
            SendProgress::HeldBack(why) => (Outcome::WrongOffset, why),
            // No credentials: they may come back if there were any.
            SendProgress::NothingSent if worked || error.is_none() => (Outcome::NotNow, said()),
            SendProgress::NothingSent => (
                Outcome::Refused,
                format!("{}; {}", said(), self.credentials()),
            ),
        };
        // Half of it is done: whatever happened to the other half, something may be there.
        if call.changed() && act == MeteredAction::Create {
            return (Outcome::Unknown, why);
        }
        (outcome, why)
    }

    /// What to do if there are none.
    fn credentials(&self) -> &'static str {
        match self.url.service {
            Service::S3 | Service::S3Express => {
                "are there credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role of this machine)?"
            }
            Service::Azure => {
                "are there credentials (AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or an identity of this machine)?"
            }
        }
    }

    fn unsupported(&self, what: &str, name: &str) -> BucketError {
        BucketError::new(
            Outcome::Refused,
            format!("{what} {name} in {}", self.name),
            "objects of this kind of bucket cannot be appended to",
        )
    }

    async fn write_new(
        &self,
        what: &str,
        name: &str,
        bytes: Bytes,
    ) -> Result<Option<ETag>, BucketError> {
        let time = self.time(bytes.len() as u64);
        let write = self.operator.write_with(name, bytes).if_not_exists(true);
        let (_, call) = self
            .run(what, name, MeteredAction::Other, time, write)
            .await?;
        Ok(call.etag().map(ETag))
    }

    /// By the library's append writer; the meter tells it the length.
    async fn append_by_writer(
        &self,
        what: &str,
        name: &str,
        act: MeteredAction,
        bytes: Bytes,
    ) -> Result<(), BucketError> {
        let time = self.time(bytes.len() as u64);
        let append = async {
            let writer = self.operator.writer_with(name).append(true);
            let mut writer = match act {
                MeteredAction::Create => writer.if_not_exists(true).await?,
                MeteredAction::Append(_) | MeteredAction::Other => writer.await?,
            };
            writer.write(bytes).await?;
            writer.close().await
        };
        self.run(what, name, act, time, append).await?;
        Ok(())
    }

    async fn read_range(&self, name: &str, offset: u64, len: u64) -> Result<Bytes, BucketError> {
        let what = "read";
        let end = offset.saturating_add(len);
        // Without the library's outer layers, which call an object that ends inside of the range an error.
        let service = self.operator.base_service();
        let read = async {
            let reader = service.read(self.operator.context(), name, OpRead::new())?;
            let (_, mut body) = reader.open(BytesRange::from(offset..end)).await?;
            body.read_all().await
        };
        let time = self.time(len);
        let call = MeteredCall::new(MeteredAction::Other);
        let error = match tokio::time::timeout(time, call.run(read)).await {
            Ok(Ok(bytes)) => {
                self.worked.store(true, Relaxed);
                let why = match call.range() {
                    Some((first, whole)) if first == offset => {
                        let expected = whole.min(end).saturating_sub(offset);
                        if expected == bytes.len() as u64 {
                            return Ok(bytes.to_bytes());
                        }
                        format!("{} bytes came instead of {expected}", bytes.len())
                    }
                    Some((first, _)) => format!("bytes from {first} on came"),
                    None => "the server does not say which range it answers with".to_owned(),
                };
                let what = format!("{what} {name} in {}", self.name);
                return Err(BucketError::new(Outcome::Unknown, what, why));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        // "Range not satisfiable": the object ends before it. Azurite answers 206 with a range that ends before it
        // begins, which the library does not understand.
        let ends_before = call.range().is_some_and(|(_, whole)| whole <= offset);
        if matches!(call.wire(), SendProgress::Answered(reply) if reply.status == 416 || (reply.status == 206 && ends_before))
        {
            self.worked.store(true, Relaxed);
            return Ok(Bytes::new());
        }
        let (outcome, why) = self.outcome(&call, MeteredAction::Other, error.as_ref(), time);
        let what = format!("{what} {name} in {}", self.name);
        Err(BucketError { outcome, what, why })
    }
}

impl Bucket for Client {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn provider(&self) -> &str {
        self.provider
    }

    fn appends(&self) -> Option<AppendLimits> {
        let of_provider = match self.url.service {
            // https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-append.html
            Service::S3Express => AppendLimits {
                appends_max: 10_000,
                append_bytes_max: 5 << 30,
                object_bytes_max: 5 << 40,
            },
            // https://learn.microsoft.com/rest/api/storageservices/append-block: 4 MiB; 100 MiB with the version that
            // the library asks for, but called a preview there.
            Service::Azure => AppendLimits {
                appends_max: 50_000,
                append_bytes_max: 4 << 20,
                object_bytes_max: 50_000 * (4 << 20),
            },
            Service::S3 => return None,
        };
        let fewer = self.url.appends.unwrap_or(u64::MAX);
        Some(AppendLimits {
            appends_max: of_provider.appends_max.min(fewer),
            ..of_provider
        })
    }

    fn usage(&self) -> Usage {
        self.counters.usage()
    }

    fn create<'a>(&'a self, name: &'a str, first: Bytes) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            match self.url.service {
                Service::S3Express => self.write_new("create", name, first).await.map(drop),
                Service::Azure => {
                    self.append_by_writer("create", name, MeteredAction::Create, first)
                        .await
                }
                Service::S3 => Err(self.unsupported("create", name)),
            }
        })
    }

    fn append<'a>(&'a self, name: &'a str, offset: u64, bytes: Bytes) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            if self.url.service == Service::S3 {
                return Err(self.unsupported("append to", name));
            }
            self.append_by_writer("append to", name, MeteredAction::Append(offset), bytes)
                .await
        })
    }

    fn put_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, Option<ETag>> {
        Box::pin(self.write_new("put", name, bytes))
    }

    fn replace<'a>(
        &'a self,
        name: &'a str,
        expected: &'a ETag,
        bytes: Bytes,
    ) -> BucketFuture<'a, Option<ETag>> {
        Box::pin(async move {
            let time = self.time(bytes.len() as u64);
            let write = self.operator.write_with(name, bytes).if_match(&expected.0);
            let (_, call) = self
                .run("replace", name, MeteredAction::Other, time, write)
                .await?;
            Ok(call.etag().map(ETag))
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            let time = self.time(bytes.len() as u64);
            let write = self.operator.write_with(name, bytes);
            self.run("put", name, MeteredAction::Other, time, write)
                .await?;
            Ok(())
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BucketFuture<'a, (Bytes, Option<ETag>)> {
        Box::pin(async move {
            let read = self.operator.read_with(name);
            let time = self.timeout * LIST_TIMEOUTS;
            let (bytes, call) = self
                .run("read", name, MeteredAction::Other, time, read)
                .await?;
            Ok((bytes.to_bytes(), call.etag().map(ETag)))
        })
    }

    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes> {
        Box::pin(async move {
            if len == 0 {
                return Ok(Bytes::new());
            }
            self.read_range(name, offset, len).await
        })
    }

    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>> {
        Box::pin(async move {
            let stat = self.operator.stat(name);
            let time = self.timeout;
            match self
                .run("look at", name, MeteredAction::Other, time, stat)
                .await
            {
                Ok((found, call)) => Ok(Some(Stat {
                    len: found.content_length(),
                    etag: call.etag().map(ETag),
                })),
                Err(error) if error.outcome == Outcome::Absent => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn list<'a>(&'a self, directory: &'a str) -> BucketFuture<'a, Vec<ListEntry>> {
        Box::pin(async move {
            let list = self.operator.list_with(directory).recursive(true);
            let time = self.timeout * LIST_TIMEOUTS;
            let (found, _) = self
                .run("list", directory, MeteredAction::Other, time, list)
                .await?;
            let files = found
                .into_iter()
                .filter(|it| it.metadata().mode() == EntryMode::FILE);
            let mut entries: Vec<ListEntry> = files
                .map(|it| ListEntry {
                    len: it.metadata().content_length(),
                    name: it.path().to_owned(),
                })
                .collect();
            // S3 Express lists in any order.
            entries.sort_unstable();
            Ok(entries)
        })
    }

    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            let delete = self.operator.delete(name);
            match self
                .run("delete", name, MeteredAction::Other, self.timeout, delete)
                .await
            {
                Err(error) if error.outcome != Outcome::Absent => Err(error),
                _ => Ok(()),
            }
        })
    }
}
