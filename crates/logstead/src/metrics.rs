//! Figures for Prometheus: `GET /metrics` on an address of its own, in the text format 0.0.4.
//!
//! Owns: which figures are told, and by which names. They are read when they are asked for, from counters that are kept anyway.
//! Invariant: whoever asks learns figures only: no names, no texts, nothing of the data. So nobody is asked who they are; what listens
//! elsewhere than on this machine does so because it was told to (`metrics_listen`).

use hyper::body::Incoming;
use hyper::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use logstead_sql_session::Instance;
use std::convert::Infallible;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tracing::{debug, warn};

/// A pause after accept fails.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Who connects and asks nothing is cut off then.
const ASK_TIME: Duration = Duration::from_secs(10);
/// Scrapers at a time; others wait in the system's queue.
const SCRAPERS_MAX: usize = 8;

/// Answers for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, instance: Arc<Instance>) {
    let places = Arc::new(tokio::sync::Semaphore::new(SCRAPERS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!("cannot accept a connection for metrics: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let instance = Arc::clone(&instance);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let answer = answer(&request, &instance);
                async move { Ok::<_, Infallible>(answer) }
            });
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(ASK_TIME)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            if let Err(error) = served {
                debug!("a connection for metrics ended: {error}");
            }
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, instance: &Instance) -> Response<String> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, text(instance)),
        (&Method::GET | &Method::HEAD, _) => (
            StatusCode::NOT_FOUND,
            "figures are at /metrics\n".to_owned(),
        ),
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET is understood\n".to_owned(),
        ),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Metrics in the text format.
#[derive(Default)]
struct Text(String);

impl Text {
    fn put(&mut self, kind: &str, name: &str, help: &str, value: impl Display) {
        let _never_fails = write!(
            self.0,
            "# HELP logstead_{name} {help}\n# TYPE logstead_{name} {kind}\nlogstead_{name} {value}\n"
        );
    }

    /// What only grows.
    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.put("counter", name, help, value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.put("gauge", name, help, value);
    }
}

fn text(instance: &Instance) -> String {
    let engine = &instance.engine;
    let mut to = Text::default();
    to.gauge("sessions", "Open sessions.", instance.session_count());
    to.gauge(
        "sessions_max",
        "Sessions that may be open (max_connections).",
        instance.connections_max,
    );
    to.counter(
        "workers_held_total",
        "Times that one session held its worker for longer than 100 ms without letting others go on.",
        instance.workers_held(),
    );
    let stats = engine.stats();
    to.counter(
        "commits_total",
        "Transactions committed with changes.",
        stats.commits,
    );
    to.counter(
        "commits_read_only_total",
        "Transactions committed without changes.",
        stats.commits_read_only,
    );
    to.counter("aborts_total", "Transactions rolled back.", stats.aborts);
    to.counter(
        "serialization_failures_total",
        "Transactions refused because no serial order explains them (40001).",
        stats.serialization_failures,
    );
    to.gauge(
        "lock_waiters",
        "Transactions waiting for locks.",
        stats.lock_waiters,
    );
    to.counter(
        "log_bytes_total",
        "Bytes of records put into the log.",
        stats.log_bytes,
    );
    to.counter("flushes_total", "Flushes of the log begun.", stats.flushes);
    let memory = engine.memory();
    to.gauge(
        "memory_used_bytes",
        "Memory that rows, indexes and statements hold.",
        memory.used_bytes(),
    );
    to.gauge(
        "memory_budget_bytes",
        "Memory that they may hold (memory).",
        memory.budget_bytes(),
    );
    let evicted = engine.eviction_stats();
    to.counter(
        "rows_evicted_total",
        "Rows taken out of memory.",
        evicted.rows_evicted,
    );
    to.counter(
        "rows_loaded_total",
        "Rows brought into memory.",
        evicted.rows_loaded,
    );
    to.counter(
        "chunk_loads_total",
        "Loads of one chunk's pages.",
        evicted.chunks_loaded,
    );
    let checkpoints = engine.checkpoint_stats();
    to.counter(
        "checkpoints_total",
        "Checkpoints published.",
        checkpoints.published,
    );
    to.counter(
        "checkpoints_failed_total",
        "Checkpoints that failed.",
        checkpoints.failed,
    );
    to.counter(
        "checkpoint_bytes_total",
        "Bytes written by checkpoints.",
        checkpoints.bytes,
    );
    to.gauge(
        "damaged_chunks",
        "Chunks whose pages were met damaged.",
        checkpoints.damaged_chunks,
    );
    if let Some(last) = &checkpoints.last {
        // Since 2000-01-01 UTC, as PostgreSQL counts.
        const EPOCH_S: f64 = 946_684_800.0;
        to.gauge(
            "checkpoint_last_timestamp_seconds",
            "When the newest checkpoint was taken.",
            EPOCH_S + last.taken_at_micros as f64 / 1e6,
        );
    }
    to.0
}
