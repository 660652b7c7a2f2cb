//! Figures for Prometheus: `GET /metrics` on an address of its own, in the text format 0.0.4; and checks for proxies,
//! as Patroni has them: `/primary`, `/replica` and `/health` answer 200 or 503.
//!
//! Owns: which figures are told, and by which names, and what the checks mean. They are read when they are asked for,
//! from counters that are kept anyway.
//!
//! Invariant: whoever asks learns figures only: no names, no texts, nothing of the data. So nobody is asked who they
//! are; what listens elsewhere than on this machine does so because it was told to (`metrics_listen`).

use hyper::body::Incoming;
use hyper::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use logstead_sql_catalog::context::InstanceRow;
use logstead_sql_catalog::{ReplicaReport, ReplicaStatus};
use logstead_sql_session::Instance;
use std::convert::Infallible;
use std::fmt::{Display, Write};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tracing::{debug, warn};

/// A pause after accept fails.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Who connects and asks nothing is cut off then.
const ASK_TIME: Duration = Duration::from_secs(10);
/// Scrapers at a time; others wait in the system's queue.
const SCRAPERS_MAX: usize = 8;

/// The server that is told of.
pub(crate) struct ServerStatus {
    /// None while a replica begins, or begins again.
    instance: RwLock<Option<Arc<Instance>>>,
    /// Of a replica, until it is promoted.
    replica: RwLock<Option<Arc<ReplicaStatus>>>,
}

impl ServerStatus {
    /// A server that is no replica.
    pub(crate) fn of(instance: Arc<Instance>) -> ServerStatus {
        ServerStatus {
            instance: RwLock::new(Some(instance)),
            replica: RwLock::new(None),
        }
    }

    /// A replica, before it has begun.
    pub(crate) fn of_replica(status: Arc<ReplicaStatus>) -> ServerStatus {
        ServerStatus {
            instance: RwLock::new(None),
            replica: RwLock::new(Some(status)),
        }
    }

    /// The replica serves by this from now on, or not at all.
    pub(crate) fn set(&self, instance: Option<Arc<Instance>>) {
        let mut now = self
            .instance
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *now, instance);
        drop(now);
        // Behind the lock: it may be its last user.
        drop(before);
    }

    /// The replica has become the primary, and serves by this.
    pub(crate) fn set_primary(&self, instance: Arc<Instance>) {
        *self.replica.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.set(Some(instance));
    }

    fn replica(&self) -> Option<Arc<ReplicaStatus>> {
        let now = self.replica.read().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }

    fn instance(&self) -> Option<Arc<Instance>> {
        let now = self.instance.read().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }

    /// Is it what a check asks for?
    fn passes(&self, check: HealthCheck) -> bool {
        let Some(instance) = self.instance().filter(|instance| !instance.is_stopping()) else {
            return false;
        };
        let lease = instance.engine.lease();
        match (check, self.replica()) {
            (HealthCheck::Primary, None) => lease.is_none_or(|lease| lease.is_valid()),
            (HealthCheck::Replica, Some(status)) => status.is_following(),
            (HealthCheck::Primary, Some(_)) | (HealthCheck::Replica, None) => false,
            (HealthCheck::Health, _) => true,
        }
    }

    /// What a check is answered beside its status.
    fn told(&self) -> String {
        let running = self.passes(HealthCheck::Health);
        let state = if running { "running" } else { "stopped" };
        match self.replica().map(|status| status.report()) {
            None => format!("{{\"role\":\"primary\",\"state\":\"{state}\"}}\n"),
            Some(report) => format!(
                "{{\"role\":\"replica\",\"state\":\"{}\",\"visible_csn\":{},\"horizon_csn\":{}}}\n",
                if running {
                    report.phase.name()
                } else {
                    "starting"
                },
                report.visible,
                report.horizon
            ),
        }
    }
}

/// What proxies and people who watch ask, as Patroni has it.
#[derive(Clone, Copy)]
enum HealthCheck {
    /// Are writes taken?
    Primary,
    /// Are reads answered that follow a primary?
    Replica,
    /// Are sessions served?
    Health,
}

impl HealthCheck {
    fn of(path: &str) -> Option<HealthCheck> {
        match path {
            "/primary" => Some(HealthCheck::Primary),
            "/replica" => Some(HealthCheck::Replica),
            "/health" => Some(HealthCheck::Health),
            _ => None,
        }
    }
}

/// Answers for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, watched: Arc<ServerStatus>) {
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
        let watched = Arc::clone(&watched);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let answer = answer(&request, &watched);
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

fn answer(request: &Request<Incoming>, watched: &ServerStatus) -> Response<String> {
    let path = request.uri().path();
    let check = HealthCheck::of(path);
    let (status, body) = match *request.method() {
        // HAProxy's checks ask by OPTIONS.
        Method::GET | Method::HEAD | Method::OPTIONS if check.is_some() => {
            let passes = check.is_some_and(|check| watched.passes(check));
            let status = match passes {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, watched.told())
        }
        Method::GET | Method::HEAD if path == "/metrics" => match watched.instance() {
            Some(instance) => (StatusCode::OK, text(&instance)),
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the replica begins\n".to_owned(),
            ),
        },
        Method::GET | Method::HEAD => (
            StatusCode::NOT_FOUND,
            "figures are at /metrics, checks at /primary, /replica and /health\n".to_owned(),
        ),
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET is understood\n".to_owned(),
        ),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(match check {
        Some(_) => "application/json",
        None => "text/plain; version=0.0.4; charset=utf-8",
    });
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Metrics in the text format.
#[derive(Default)]
struct Text(String);

impl Text {
    fn put(&mut self, kind: &str, name: &str, help: &str, value: impl Display) {
        self.about(kind, name, help);
        let _never_fails = writeln!(self.0, "logstead_{name} {value}");
    }

    fn about(&mut self, kind: &str, name: &str, help: &str) {
        let _never_fails = write!(
            self.0,
            "# HELP logstead_{name} {help}\n# TYPE logstead_{name} {kind}\n"
        );
    }

    /// One of several values of a figure.
    fn labelled(&mut self, name: &str, label: &str, of: impl Display, value: impl Display) {
        let _never_fails = writeln!(self.0, "logstead_{name}{{{label}=\"{of}\"}} {value}");
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
    to.counter(
        "chunks_evicted_to_log_total",
        "Chunks of rows taken out of memory with changes that only the log had.",
        evicted.chunks_evicted_to_log,
    );
    to.gauge(
        "chunks_in_log",
        "Chunks of which only the log has the newest rows.",
        evicted.chunks_in_log,
    );
    to.counter(
        "chunks_from_page_services_total",
        "Such chunks that page services have given back.",
        evicted.chunks_from_page_services,
    );
    to.counter(
        "chunks_from_log_total",
        "Such chunks that were read from the log again.",
        evicted.chunks_from_log,
    );
    to.counter(
        "log_readings_total",
        "How often the log was read for that, or for a checkpoint.",
        evicted.log_readings,
    );
    to.counter(
        "fruitful_log_readings_total",
        "How often it had something of the chunks that it was read for.",
        evicted.fruitful_log_readings,
    );
    to.counter(
        "prewarmed_chunks_total",
        "Chunks brought into memory because the server before had them there.",
        engine.prewarm_stats().chunks_loaded,
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
    if engine.instances().count() > 1 {
        instances(&mut to, instance);
    }
    if let Some(status) = instance.store.replica_status() {
        replica(&mut to, &status.report());
    }
    to.0
}

/// Of a server with several instances: each figure once for each.
fn instances(to: &mut Text, instance: &Instance) {
    let rows = instance.instance_rows();
    let mut of_each = |kind: &str, name: &str, help: &str, figure: fn(&InstanceRow) -> u64| {
        to.about(kind, name, help);
        for row in &rows {
            to.labelled(name, "instance", row.instance, figure(row));
        }
    };
    of_each(
        "gauge",
        "instance_sessions",
        "Sessions of the instance's workers.",
        |row| row.sessions,
    );
    of_each(
        "gauge",
        "instance_partitions",
        "Virtual partitions that the instance owns.",
        |row| row.partitions,
    );
    of_each(
        "gauge",
        "instance_row_bytes",
        "About how much memory the rows of the instance's partitions take.",
        |row| row.row_bytes,
    );
    of_each(
        "counter",
        "instance_transactions_inside_total",
        "Transactions that looked at nothing but what the instance owns.",
        |row| row.transactions_inside,
    );
    of_each(
        "counter",
        "instance_transactions_across_total",
        "Transactions that looked at what other instances own, too.",
        |row| row.transactions_across,
    );
    of_each(
        "counter",
        "instance_foreign_accesses_total",
        "Accesses to rows and index entries that other instances own.",
        |row| row.foreign_accesses,
    );
    of_each(
        "counter",
        "instance_sessions_in_total",
        "Sessions that came from other instances.",
        |row| row.sessions_in,
    );
    of_each(
        "counter",
        "instance_partitions_in_total",
        "Virtual partitions that came from other instances.",
        |row| row.partitions_in,
    );
    of_each(
        "counter",
        "instance_checkpoint_chunks_total",
        "Chunks of rows of the instance's partitions that checkpoints have stored.",
        |row| row.checkpoint_chunks,
    );
    of_each(
        "gauge",
        "instance_restarting",
        "1 while the instance's rows are being dropped from memory.",
        |row| u64::from(row.is_restarting),
    );
    of_each(
        "counter",
        "instance_restarts_total",
        "Times that the instance was restarted.",
        |row| row.restarts,
    );
}

fn replica(to: &mut Text, report: &ReplicaReport) {
    to.gauge(
        "replica_visible_csn",
        "Snapshots of the replica see everything below.",
        report.visible,
    );
    to.gauge(
        "replica_horizon_csn",
        "Everything below is known to be durable at the primary.",
        report.horizon,
    );
    to.gauge(
        "replica_entries_waiting",
        "Entries of the log that wait for a horizon above them.",
        report.entries_waiting,
    );
    to.counter("replica_rounds_total", "Looks at the log.", report.rounds);
    to.counter(
        "replica_restarts_total",
        "Times that the replica began again at the newest checkpoint.",
        report.restarts,
    );
}
