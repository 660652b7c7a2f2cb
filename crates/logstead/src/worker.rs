//! A worker thread: sessions as tasks, the flusher, the collector, and who undoes behind sessions. A session that wants
//! to go on at another worker is sent there with its client.
//!
//! When the lane becomes dirty, the flusher lets everything that is ready run first (each yield lets the sockets be
//! looked at), then tells the commit path that the worker is idle: what happens is the protocol's affair. A lone client
//! thus waits for one flush and never for a timer; a busy worker batches by itself. If every session with an open
//! request waits for this very flush, the path may write in the worker's thread: handing the write over would only cost
//! time. Where nobody waits (`synchronous_commit = off`), the write is always handed over.

use logstead_env::abort_on_panic;
use logstead_sql_session::{Instance, SerializedSession, WorkerSessions};
use logstead_types::WorkerId;
use logstead_wire::MovingClient;
use logstead_wire::hba::ClientAuthConfig;
use logstead_wire::tls::{EncryptedStream, Stream};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;
use tokio::time::Instant;
use tracing::{error, info};

/// Turns given to sessions before a flush, at most.
const YIELDS_MAX: usize = 64;
/// Dirty for this long without a flush: the flusher looks again by itself.
const BACKSTOP: Duration = Duration::from_millis(5);
/// The runtime's clock counts in these.
const TICK: Duration = Duration::from_millis(1);
/// The newest idle time counts one in so many in the average.
const IDLE_WEIGHT: u64 = 8;
/// Rows looked at by one step of garbage collection.
const COLLECT_ROWS: usize = 256;
/// Pause between rounds of collection while there is traffic, and without.
const COLLECT_PAUSE_BUSY: Duration = Duration::from_millis(20);
const COLLECT_PAUSE_IDLE: Duration = Duration::from_millis(500);
/// The pause while most of the memory budget is used.
const COLLECT_PAUSE_SCARCE: Duration = Duration::from_millis(1);

/// A client on its way to its worker.
pub(crate) enum AcceptedClient {
    New {
        stream: ClientStream,
        /// By when it must have proved who it is.
        deadline: Instant,
    },
    /// With a session that was another process's.
    Restored {
        stream: ClientStream,
        /// What encrypts it already.
        encryption: Option<EncryptedStream>,
        session: Box<SerializedSession>,
        /// What has come from it, and how much of that and of what comes next is not wanted.
        input: (Vec<u8>, usize),
    },
    /// With a session that was another worker's.
    Moved(Box<MovingClient>),
}

/// A client's stream; it does not block.
pub(crate) enum ClientStream {
    /// From an address.
    Host(TcpStream),
    /// From a socket of this machine's file system.
    Local(UnixStream),
}

impl ClientStream {
    /// Within the worker's runtime.
    fn stream(self) -> std::io::Result<Stream> {
        Ok(match self {
            ClientStream::Host(stream) => Stream::Plain(tokio::net::TcpStream::from_std(stream)?),
            ClientStream::Local(stream) => Stream::Local(tokio::net::UnixStream::from_std(stream)?),
        })
    }
}

/// Where a worker's clients come in.
pub(crate) struct Inbox {
    sender: Mutex<Option<mpsc::UnboundedSender<AcceptedClient>>>,
    /// Sessions of this worker, those on their way included.
    pub(crate) sessions: AtomicUsize,
}

impl Inbox {
    pub(crate) fn new() -> (Arc<Inbox>, mpsc::UnboundedReceiver<AcceptedClient>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (
            Arc::new(Inbox {
                sender: Mutex::new(Some(sender)),
                sessions: AtomicUsize::new(0),
            }),
            receiver,
        )
    }

    pub(crate) fn send(&self, client: AcceptedClient) {
        if let Some(sender) = self
            .sender
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .as_ref()
        {
            self.sessions.fetch_add(1, Ordering::Relaxed);
            if sender.send(client).is_err() {
                self.sessions.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// No more clients will come: the worker ends.
    pub(crate) fn close(&self) {
        self.sender
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
    }
}

/// The worker's life.
pub(crate) fn run(
    id: WorkerId,
    instance: &Arc<Instance>,
    mut clients: mpsc::UnboundedReceiver<AcceptedClient>,
    inboxes: &Arc<[Arc<Inbox>]>,
    access: &Arc<ClientAuthConfig>,
) {
    // Its sessions, and whoever waits for their locks, would wait for ever. (A session's own panic ends that session
    // only.)
    let _watch = abort_on_panic("running a worker");
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            error!("worker {id} cannot start: {error}");
            std::process::exit(1);
        }
    };
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let sessions = WorkerSessions::new(Arc::clone(instance), instance.engine.worker(id));
        let dirty = Arc::new(Notify::new());
        let hook = Arc::clone(&dirty);
        sessions
            .worker
            .set_dirty_hook(Box::new(move || hook.notify_one()));
        let kick = Arc::clone(&dirty);
        sessions
            .worker
            .set_wake_hook(Arc::new(move || kick.notify_one()));
        let flusher = tokio::task::spawn_local(flush(Rc::clone(&sessions), dirty));
        let collector = tokio::task::spawn_local(collect(Rc::clone(&sessions)));
        let undoer = undo(Rc::clone(&sessions));
        let undoer = tokio::task::spawn_local(sessions.task(undoer));
        // One of the workers does it for all.
        let analyst = (id == WorkerId(0))
            .then(|| naptime(instance))
            .flatten()
            .map(|pause| {
                let analyst = analyze(Rc::clone(&sessions), pause);
                tokio::task::spawn_local(sessions.task(analyst))
            });
        while let Some(client) = clients.recv().await {
            let sessions = Rc::clone(&sessions);
            let inboxes = Arc::clone(inboxes);
            let access = Arc::clone(access);
            let worker = Rc::clone(&sessions);
            tokio::task::spawn_local(worker.task(async move {
                let count = inboxes.get(usize::from(id.0)).cloned().map(Counted);
                let lost = |error| {
                    info!("a connection was lost at once: {error}");
                    None
                };
                let moving = match client {
                    AcceptedClient::New { stream, deadline } => match stream.stream() {
                        Ok(stream) => {
                            logstead_wire::serve_arrived(stream, sessions, access, deadline).await
                        }
                        Err(error) => lost(error),
                    },
                    AcceptedClient::Restored {
                        stream,
                        encryption,
                        session,
                        input,
                    } => match stream.stream() {
                        Ok(stream) => {
                            let stream = match (stream, encryption) {
                                (Stream::Plain(socket), Some(encryption)) => {
                                    encryption.go_on(socket)
                                }
                                (stream, _) => stream,
                            };
                            let input = (&*input.0, input.1);
                            logstead_wire::serve_restored(stream, sessions, *session, input).await
                        }
                        Err(error) => lost(error),
                    },
                    AcceptedClient::Moved(client) => {
                        logstead_wire::serve_moved(*client, sessions).await
                    }
                };
                drop(count);
                if let Some(client) = moving
                    && let Some(to) = client.to()
                    && let Some(inbox) = inboxes.get(usize::from(to.0))
                {
                    inbox.send(AcceptedClient::Moved(Box::new(client)));
                }
            }));
        }
        flusher.abort();
        collector.abort();
        undoer.abort();
        if let Some(analyst) = analyst {
            analyst.abort();
        }
    });
}

/// Time between two looks for tables to analyze; none if nobody looks.
fn naptime(instance: &Instance) -> Option<Duration> {
    if instance.store.is_replica() {
        return None;
    }
    let settings = instance.settings.now();
    let setting = |name: &str| {
        let set = settings.get(name).map(String::as_str);
        set.or_else(|| logstead_sql_catalog::settings::find(name).map(|setting| setting.default))
    };
    let seconds = setting("autovacuum_naptime")?.parse().ok()?;
    (setting("autovacuum") == Some("on")).then_some(Duration::from_secs(seconds))
}

/// Analyzes tables that have changed, now and then, one after the other.
async fn analyze(sessions: Rc<WorkerSessions>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        logstead_sql_session::analyze_changed(&sessions).await;
    }
}

/// Takes its session off the worker's count, however it ends.
struct Counted(Arc<Inbox>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn flush(sessions: Rc<WorkerSessions>, dirty: Arc<Notify>) {
    // Without it nothing is acknowledged any more.
    let _watch = abort_on_panic("flushing the log");
    let worker = &sessions.worker;
    let mut again = None;
    let path = worker.engine().commit_path();
    // When the worker became idle, if it is, and how long it has been so on average, until its lane became dirty again;
    // nanoseconds.
    let (mut idle_since, mut idle_average) = (None, 0_u64);
    loop {
        if worker.lane_dirty() {
            // The hook tells of the change from clean to dirty only; this covers a flush that found nothing to do, and
            // entries that must not wait for longer while others only read.
            let patience = path.flush_timeout().max(TICK);
            let limit = again.unwrap_or(BACKSTOP).min(patience);
            let _either_is_a_reason = tokio::time::timeout(limit, dirty.notified()).await;
        } else {
            dirty.notified().await;
        }
        if let Some(since) = idle_since.take() {
            let idle = path.clock().saturating_sub(since);
            idle_average = idle_average - idle_average / IDLE_WEIGHT + idle / IDLE_WEIGHT;
        }
        sessions.about_to_flush(true);
        let mut progress = sessions.progress();
        let mut idle = false;
        for _ in 0..YIELDS_MAX {
            tokio::task::yield_now().await;
            let now = sessions.progress();
            if now == progress {
                idle = true;
                break;
            }
            progress = now;
            // Readers may come without end.
            worker.between_tasks();
        }
        sessions.about_to_flush(false);
        again = if idle {
            // If nobody waits for this flush, the thread is better off without the device.
            idle_since = Some(path.clock());
            let alone = sessions.working() == 0 && sessions.waiting() > 0;
            worker.idle(alone, Some(idle_average))
        } else {
            worker.between_tasks();
            None
        };
    }
}

async fn undo(sessions: Rc<WorkerSessions>) {
    // What it has begun to undo holds its locks.
    let _watch = abort_on_panic("undoing a transaction");
    sessions.undo_in_background().await;
}

async fn collect(sessions: Rc<WorkerSessions>) {
    // Without it memory runs out.
    let _watch = abort_on_panic("collecting garbage");
    let mut progress = sessions.progress();
    loop {
        let now = sessions.progress();
        let pause = if sessions.worker.engine().memory().is_scarce() && now != progress {
            COLLECT_PAUSE_SCARCE
        } else if now == progress {
            COLLECT_PAUSE_IDLE
        } else {
            COLLECT_PAUSE_BUSY
        };
        progress = now;
        tokio::time::sleep(pause).await;
        sessions.drop_stale_plans();
        while sessions.worker.collect_garbage(COLLECT_ROWS) {
            tokio::task::yield_now().await;
        }
    }
}
