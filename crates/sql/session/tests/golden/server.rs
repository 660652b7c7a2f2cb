//! A server for one script, of which one worker is there, in the thread that calls, with its log in memory.

use super::psql::{Psql, Transcript};
use logstead_engine::{Checkpointer, Engine, EngineOptions, Evictor, FlushMode};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::CatalogStore;
use logstead_sql_session::{Instance, Session, StartupRequest, WorkerSessions};
use logstead_types::WorkerId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A script that takes longer does not end.
const TIME_MAX: Duration = Duration::from_secs(300);
/// Of the log.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Where rows are when a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Everything is.
    Present,
    /// One in four operations on rows finds absent what is there.
    Played,
    /// Before each statement, and by itself during it, all goes that a checkpoint has.
    Evicted,
    /// Everything is, and tables with a primary key are divided by it, for there are three instances.
    Divided,
}

impl Rows {
    /// Each of them with its name in those of tests.
    pub(crate) const ALL: [(&'static str, Rows); 4] = [
        ("present", Rows::Present),
        ("played", Rows::Played),
        ("evicted", Rows::Evicted),
        ("divided", Rows::Divided),
    ];
}

/// What psql prints for a script, and how many chunks of rows were brought in meanwhile.
pub(crate) fn run(rows: Rows, script: String, positions: bool) -> (Transcript, u64) {
    let instances = if rows == Rows::Divided { 3 } else { 1 };
    let options = EngineOptions {
        workers: instances,
        instances,
        absent_one_in: if rows == Rows::Played { 4 } else { 0 },
        ..EngineOptions::default()
    };
    let env = Env::real();
    let home = LogHome::from(MemoryHome::new(SEGMENT_BYTES));
    let (engine, _) = Engine::open(options, home, env.clone()).unwrap();
    let evictor = (rows == Rows::Evicted).then(|| {
        let checkpoints = Checkpointer::start(&engine, None, Box::new(|_| ())).unwrap();
        (Evictor::start(&engine, true).unwrap(), checkpoints)
    });
    let system = logstead_sql_ddl::pg_catalog::system_catalog();
    let store = CatalogStore::open(&engine, system).unwrap();
    // As the servers of the end-to-end tests: plans do not change while a script looks at them.
    let settings = BTreeMap::from([("autovacuum".to_owned(), "off".to_owned())]);
    let instance = Arc::new(Instance::new(engine.clone(), store, env, settings, 10));
    let worker = WorkerSessions::new(instance, engine.worker(WorkerId(0)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let transcript = tokio::task::LocalSet::new().block_on(&runtime, async {
        let dirty = Rc::new(Notify::new());
        let hook = Rc::clone(&dirty);
        worker
            .worker
            .set_dirty_hook(Box::new(move || hook.notify_one()));
        let flusher = tokio::task::spawn_local(flush(Rc::clone(&worker), dirty));
        let undoer = worker.task(Rc::clone(&worker).undo_in_background());
        let undoer = tokio::task::spawn_local(undoer);
        let evicting = (rows == Rows::Evicted).then(|| engine.clone());
        let conversation = worker.task(converse(Rc::clone(&worker), script, positions, evicting));
        let ended = tokio::time::timeout(TIME_MAX, conversation).await;
        undoer.abort();
        flusher.abort();
        ended.unwrap_or_else(|_| panic!("the script takes more than {TIME_MAX:?}"))
    });
    let loaded = engine.eviction_stats().chunks_loaded;
    drop(evictor);
    (transcript, loaded)
}

/// Writes the log whenever there is something to write.
async fn flush(worker: Rc<WorkerSessions>, dirty: Rc<Notify>) {
    loop {
        dirty.notified().await;
        worker.worker.flush(FlushMode::Inline);
    }
}

async fn converse(
    worker: Rc<WorkerSessions>,
    script: String,
    positions: bool,
    evicting: Option<Engine>,
) -> Transcript {
    let request = StartupRequest {
        user: "postgres".to_owned(),
        database: "postgres".to_owned(),
        settings: vec![("application_name".to_owned(), "psql".to_owned())],
        ..StartupRequest::default()
    };
    let mut session = Session::open(&worker, request).unwrap();
    let psql = Psql::new(&mut session, script, positions);
    let transcript = psql
        .run(|| {
            if let Some(engine) = &evicting {
                engine.checkpoint().unwrap();
                engine.evict_all();
            }
        })
        .await;
    session.undo_all().await;
    session.close();
    transcript
}
