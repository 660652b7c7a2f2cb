//! The thread that does all requests, and what every request shares: pauses, counters, warnings.
//!
//! Invariant: nothing waits in this thread but futures; a synchronous call from it is refused, since it would wait for
//! itself.

use super::ObjectOptions;
use super::space::Space;
use crate::HomeError;
use crate::bucket::{Bucket, BucketError, BucketFuture, Outcome};
use hdrhistogram::Histogram;
use logstead_env::{Clock, Env, Instant, JoinHandle, Random};
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread::ThreadId;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A warning is logged at most so often, however much goes wrong.
const WARNING_INTERVAL: Duration = Duration::from_secs(5);
/// What the HTTP client may still be doing when the home is closed (resolving a name) is waited for so long.
const CLOSING: Duration = Duration::from_secs(1);
/// Latencies up to this are told apart.
const LATENCY_MAX_US: u64 = 600_000_000;

/// The thread and its runtime.
pub(super) struct ObjectIo {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle>,
    id: ThreadId,
}

impl ObjectIo {
    pub(super) fn start(env: &Env) -> Result<ObjectIo, HomeError> {
        let failed = |error| HomeError::io("start the thread of an object home", error);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            // Told, or whoever would tell is gone.
            let _told = runtime.block_on(stopped);
            // Whoever still waits for a request hears that the home is closed.
            runtime.shutdown_timeout(CLOSING);
        };
        let thread = env.spawn("home-io", None, run).map_err(failed)?;
        Ok(ObjectIo {
            handle,
            stop: Some(stop),
            id: thread.thread().id(),
            thread: Some(thread),
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Has the thread do something, and waits for it; from any thread, a runtime's too.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, HomeError>> + Send + 'static,
    ) -> Result<T, HomeError> {
        if std::thread::current().id() == self.id {
            return Err(HomeError::Unsupported("waiting in one of its completions"));
        }
        let (tell, told) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // Nobody else holds the other end.
            let _heard = tell.send(work.await);
        });
        told.recv().unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for ObjectIo {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The last handle may go with a completion, in the thread itself, which then ends after that.
        if let Some(thread) = self.thread.take()
            && std::thread::current().id() != self.id
        {
            let _panicked_already_told = thread.join();
        }
    }
}

pub(super) fn closed() -> HomeError {
    HomeError::io(
        "a request to a bucket",
        io::Error::other("the home is closed"),
    )
}

pub(super) fn failed(error: &BucketError) -> HomeError {
    let kind = match error.outcome {
        Outcome::NoSpace => io::ErrorKind::StorageFull,
        _ => io::ErrorKind::Other,
    };
    HomeError::io(error.what.clone(), io::Error::new(kind, error.why.clone()))
}

/// What every request needs.
pub(super) struct ObjectCore {
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) options: ObjectOptions,
    pub(super) place: String,
    /// By which this home knows its own objects.
    pub(super) nonce: u64,
    pub(super) counts: Counts,
    /// How long the first request for a named thing is waited for, in nanoseconds; 0: as long as the bucket's client
    /// does.
    name_request_ns: AtomicU64,
    latencies: Mutex<Histogram<u64>>,
    warned_at: Mutex<Option<Instant>>,
    pub(super) space: Space,
}

/// Counted since the home was opened.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) appends: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) settled: AtomicU64,
    pub(super) warnings: AtomicU64,
    pub(super) segments: AtomicU64,
    pub(super) busy: AtomicU64,
    pub(super) fences: AtomicU64,
    pub(super) patches: AtomicU64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl ObjectCore {
    pub(super) fn new(
        bucket: Arc<dyn Bucket>,
        env: &Env,
        options: ObjectOptions,
    ) -> Result<ObjectCore, HomeError> {
        let latencies = Histogram::new_with_bounds(1, LATENCY_MAX_US, 3)
            .map_err(|error| HomeError::io("count latencies", io::Error::other(error)))?;
        Ok(ObjectCore {
            place: bucket.describe(),
            clock: Arc::clone(&env.clock),
            nonce: env.random.u64(),
            random: Arc::clone(&env.random),
            options,
            counts: Counts::default(),
            name_request_ns: AtomicU64::new(0),
            latencies: Mutex::new(latencies),
            warned_at: Mutex::new(None),
            space: Space::default(),
            bucket,
        })
    }

    pub(super) fn fenced(&self) -> HomeError {
        HomeError::Fenced(self.place.clone())
    }

    /// Something that is tried again went wrong.
    pub(super) fn trouble(&self, error: &BucketError) {
        if error.outcome == Outcome::NoSpace {
            self.space.refused();
        }
        Counts::add(&self.counts.retries);
        let now = self.clock.monotonic();
        {
            let mut warned_at = self.warned_at.lock();
            if warned_at.is_some_and(|at| now.since(at) < WARNING_INTERVAL) {
                return;
            }
            *warned_at = Some(now);
        }
        Counts::add(&self.counts.warnings);
        tracing::warn!(
            home = self.place,
            retries = self.counts.retries.load(Ordering::Relaxed),
            outcome = ?error.outcome,
            "{error}; trying again"
        );
    }

    /// Waits before another attempt: longer each time, and not all lanes at once.
    pub(super) async fn pause(&self, attempts: u32) {
        let full = self
            .options
            .pause_min
            .saturating_mul(1 << attempts.min(16))
            .min(self.options.pause_max);
        if full.is_zero() {
            return tokio::task::yield_now().await;
        }
        let part = (self.random.u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.options
            .timer
            .sleep(full.mul_f64(0.5 + part / 2.0))
            .await;
    }

    pub(super) fn limit_name_requests(&self, first: Duration) {
        let nanos = u64::try_from(first.as_nanos()).unwrap_or(u64::MAX);
        self.name_request_ns.store(nanos, Ordering::Relaxed);
    }

    /// A request for a named thing, which counts as lost when it has not been answered for long. It may act yet.
    pub(super) async fn limited<T>(
        &self,
        mut request: BucketFuture<'_, T>,
        what: &str,
        attempt: u32,
    ) -> Result<T, BucketError> {
        let first = self.name_request_ns.load(Ordering::Relaxed);
        if first == 0 {
            return request.await;
        }
        let limit = Duration::from_nanos(first).saturating_mul(1 << attempt.min(16));
        let mut over = self.options.timer.sleep(limit);
        poll_fn(|cx| {
            if let Poll::Ready(answer) = request.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            over.as_mut().poll(cx).map(|()| {
                let why = format_args!("no answer within {limit:.1?}");
                Err(BucketError::new(Outcome::Unknown, what, why))
            })
        })
        .await
    }

    /// A request that may be repeated whatever came of it: one that changes nothing, or the same each time. What is
    /// left are answers.
    pub(super) async fn ask<'a, T>(
        &self,
        request: impl Fn() -> BucketFuture<'a, T> + Send,
    ) -> Result<T, BucketError> {
        let mut attempts = 0;
        loop {
            match request().await {
                Err(error) if matches!(error.outcome, Outcome::NotNow | Outcome::Unknown) => {
                    self.trouble(&error);
                    self.pause(attempts).await;
                    attempts += 1;
                }
                answer => return answer,
            }
        }
    }

    pub(super) fn took(&self, since: Instant) {
        let micros = self.clock.monotonic().since(since).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        self.latencies
            .lock()
            .saturating_record(micros.clamp(1, LATENCY_MAX_US));
    }

    pub(super) fn report(&self) -> Vec<(String, String)> {
        let counts = &self.counts;
        let mut report: Vec<_> = [
            ("appends", &counts.appends),
            ("retries", &counts.retries),
            ("settled", &counts.settled),
            ("warnings", &counts.warnings),
            ("segments_made", &counts.segments),
            ("room_refused", &counts.busy),
            ("fences", &counts.fences),
            ("patches", &counts.patches),
        ]
        .map(|(name, count)| (name.to_owned(), count.load(Ordering::Relaxed).to_string()))
        .into();
        let latencies = self.latencies.lock();
        for (name, quantile) in [
            ("append_us_p50", 0.5),
            ("append_us_p90", 0.9),
            ("append_us_p99", 0.99),
            ("append_us_max", 1.0),
        ] {
            let value = latencies.value_at_quantile(quantile);
            report.push((name.to_owned(), value.to_string()));
        }
        report
    }
}
