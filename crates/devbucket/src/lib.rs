//! A bucket for development and tests that speaks S3, and S3 Express One Zone's appends: no server that can be
//! installed does.
//!
//! Owns: the HTTP server, the objects, and their rules. It is as strict as AWS documents its services to be; what the
//! documents leave open, it decides against the client. A bucket whose name ends with `--x-s3` is a directory bucket
//! (S3 Express), as on AWS; only those take appends, and list in no order. Every other bucket is a general one.
//!
//! | request | as |
//! |---|---|
//! | PutObject, with `x-amz-write-offset-bytes` an append | <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html> |
//! | the same with `If-None-Match: *` or `If-Match` | <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html> |
//! | GetObject with ranges, HeadObject, DeleteObject, DeleteObjects, ListObjectsV2, CreateBucket, HeadBucket, ListBuckets | the same reference |
//! | CreateSession, and requests of its sessions | <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateSession.html> |
//!
//! Life of a request: the connection's task reads it (`hyper`); `signature` admits it; `s3s` checks its signature and
//! reads what it asks; `service` puts that to the `store`, which answers when it is durable (`disk`; both speak of an
//! `object`); with a model of latencies, the answer waits.
//!
//! Different from AWS: requests of directory buckets may also be signed with the key itself, for the service `s3`, as
//! clients do with a custom endpoint; names of buckets stand in the path only; an object is one request's bytes, at
//! most 5 GiB, and its appends'.
#![forbid(unsafe_code)]

mod base64;
mod disk;
mod listing;
mod object;
mod service;
mod signature;
mod store;

pub use signature::AccessKey;

use disk::Disk;
use hyper::body::Incoming;
use hyper::http::{Request, Response};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use logstead_env::{Env, JoinHandle};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, S3Error};
use service::Service;
use signature::Authenticator;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{debug, warn};

/// Parts of an object at most, and so appends to it, the one that made it included:
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-append.html>
pub const PARTS_MAX: usize = 10_000;
/// Bytes of one request at most (the same page: "5GB").
pub const OBJECT_BYTES_MAX: u64 = 5 << 30;
/// A pause after accept fails (no file descriptors left): others may end meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long requests take, beyond what they take anyway.
pub trait Latency: Send + Sync + 'static {
    /// A request that writes so many bytes.
    fn write(&self, bytes: usize) -> Duration;
    /// A request that reads so many bytes.
    fn read(&self, bytes: usize) -> Duration;
}

/// What a development bucket is.
pub struct DevBucketOptions {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where objects are kept; `None`: in memory.
    pub dir: Option<PathBuf>,
    /// Buckets that are there from the start.
    pub buckets: Vec<String>,
    /// Who may ask.
    pub keys: AccessKey,
    /// Parts of an object at most; less than [`PARTS_MAX`] for tests.
    pub parts_max: usize,
    /// Bytes that the objects of a bucket may have together; `None`: as many as there is room for.
    pub quota_bytes: Option<u64>,
    /// How long requests take; `None`: no longer than they do.
    pub latency: Option<Arc<dyn Latency>>,
}

impl DevBucketOptions {
    /// On a free port of this machine, in memory, without buckets, with these keys.
    pub fn new(access_key: &str, secret_key: &str) -> DevBucketOptions {
        DevBucketOptions {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            dir: None,
            buckets: Vec::new(),
            keys: AccessKey {
                access_key: access_key.to_owned(),
                secret_key: secret_key.to_owned(),
            },
            parts_max: PARTS_MAX,
            quota_bytes: None,
            latency: None,
        }
    }
}

/// A running development bucket. Dropping it stops it: connections are cut, requests under way may have been done or
/// not.
pub struct DevBucket {
    address: SocketAddr,
    stop: watch::Sender<()>,
    thread: Option<JoinHandle>,
}

impl DevBucket {
    /// Starts serving on a thread of its own.
    pub fn start(options: DevBucketOptions, env: &Env) -> io::Result<DevBucket> {
        let disk = match &options.dir {
            Some(dir) => Some(Disk::open(env, dir)?),
            None => None,
        };
        let store = Store::open(env, disk, options.parts_max, options.quota_bytes)?;
        for name in &options.buckets {
            if !s3s::path::check_bucket_name(name) {
                return Err(io::Error::other(format!("\"{name}\" is no bucket's name")));
            }
            // From an earlier start it is there already.
            let _created = store.create(name)?;
        }
        let listener = logstead_env::listen(options.listen)?;
        let address = listener.local_addr()?;
        let guests = Authenticator::new(env, options.keys);
        let mut builder = S3ServiceBuilder::new(Service {
            env: env.clone(),
            store: Arc::new(store),
            guests: guests.clone(),
            latency: options.latency,
        });
        builder.set_auth(guests.clone());
        let door = Door {
            s3: builder.build(),
            guests,
            requests: Arc::default(),
        };
        let (stop, stopped) = watch::channel(());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = env.spawn("dev-bucket", None, move || {
            if let Err(error) = runtime.block_on(door.serve(listener, stopped)) {
                warn!("the development bucket ended: {error}");
            }
            // Whatever still waits for the disk is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(DevBucket {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for DevBucket {
    fn drop(&mut self) {
        let _may_have_ended = self.stop.send(());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("the development bucket's thread panicked");
        }
    }
}

/// Where connections come in.
#[derive(Clone)]
struct Door {
    s3: S3Service,
    guests: Authenticator,
    requests: Arc<AtomicU64>,
}

impl Door {
    /// Until `stopped` changes, or its sender is gone.
    async fn serve(
        self,
        listener: StdListener,
        mut stopped: watch::Receiver<()>,
    ) -> io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.changed() => return Ok(()),
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            if let Err(error) = stream.set_nodelay(true) {
                debug!("a connection was lost at once: {error}");
                continue;
            }
            let door = self.clone();
            tokio::spawn(async move {
                let answer = service_fn(|request| door.answer(request));
                let served = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
                if let Err(error) = served {
                    debug!("a connection ended: {error}");
                }
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, HttpError> {
        let (mut parts, body) = request.into_parts();
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut response = match self.guests.admit(&mut parts) {
            Ok(()) => {
                let request = Request::from_parts(parts, Body::from(body));
                self.s3.call(request).await?
            }
            Err(refused) => {
                let response = refused.to_http_response();
                response.map_err(|error: S3Error| HttpError::new(Box::new(error)))?
            }
        };
        response
            .headers_mut()
            .insert("x-amz-request-id", number.into());
        Ok(response)
    }
}

#[cfg(test)]
mod tests;
