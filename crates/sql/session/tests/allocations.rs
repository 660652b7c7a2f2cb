//! How much a statement by key allocates on its way through the session: bounds that a change may lower, not raise.
//!
//! Counted on one thread, after the statement has run a few times. What the wire adds (frames borrow from the receive
//! buffer, replies go to one buffer that stays) is not in it; the engine's part is bounded by its own test.

use logstead_engine::{Engine, EngineOptions, FlushMode, RowRef};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::CatalogStore;
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_session::{
    BindRequest, Client, ConnectionLost, CopyInput, Instance, LocalFuture, Session, SessionContext,
    StartupRequest, WorkerSessions,
};
use logstead_sql_types::error::ErrorFields;
use logstead_sql_types::value::Datum;
use logstead_sql_types::{Result, SqlError, TypeId};
use logstead_types::WorkerId;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator; the counter neither allocates nor has a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps dealloc's contract; `at` came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps realloc's contract; `at` came from the same allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A client that keeps what it is told only as numbers, so that it allocates nothing itself.
#[derive(Default)]
struct Silent {
    rows: u64,
    done: u64,
    errors: u64,
}

impl RowSink for Silent {
    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        self.rows += 1;
        Ok(())
    }

    fn stored_row(&mut self, _row: RowRef<'_>, _columns: &[StoredColumn]) -> Result<()> {
        self.rows += 1;
        Ok(())
    }
}

impl Client for Silent {
    fn open(&mut self, _context: Rc<SessionContext>) {}
    fn start_rows(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn row_description(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _types: &[TypeId]) {}
    fn portal_suspended(&mut self) {}
    fn command_complete(&mut self, _tag: &dyn std::fmt::Display) {
        self.done += 1;
    }
    fn empty_query(&mut self) {}
    fn error(&mut self, error: &SqlError) {
        eprintln!("{error}");
        self.errors += 1;
    }
    fn notice(&mut self, _severity: &'static str, _fields: &ErrorFields) {}
    fn parameter_status(&mut self, _name: &str, _value: &str) {}
    fn copy_in(&mut self, _columns: usize, _binary: bool) {}
    fn copy_input<'a>(&'a mut self, _into: &'a mut Vec<u8>) -> LocalFuture<'a, Result<CopyInput>> {
        Box::pin(std::future::ready(Ok(CopyInput::Done)))
    }
    fn copy_out(&mut self, _columns: usize, _binary: bool) {}
    fn copy_out_data(&mut self, _line: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_out_done(&mut self) {}
    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn discard(&mut self) {}
}

/// A session, its client, and how often either allocates.
struct World {
    worker: Rc<WorkerSessions>,
    session: Session,
    client: Silent,
}

impl World {
    fn new() -> World {
        let (env, _files) = Env::simulated(7);
        let options = EngineOptions {
            workers: 1,
            ..EngineOptions::default()
        };
        let home = Arc::new(MemoryHome::new(1 << 20));
        let (engine, _) = Engine::open(options, LogHome::from(home), env.clone()).expect("opens");
        let store = CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog())
            .expect("opens");
        let instance = Instance::new(engine.clone(), store, env, BTreeMap::new(), 3);
        let worker = WorkerSessions::new(Arc::new(instance), engine.worker(WorkerId(0)));
        let request = StartupRequest {
            user: "postgres".to_owned(),
            ..StartupRequest::default()
        };
        let session = Session::open(&worker, request).expect("opens");
        World {
            worker,
            session,
            client: Silent::default(),
        }
    }

    /// Everything is written and collected: what follows pays for itself only.
    async fn rest(&mut self) {
        self.worker.worker.flush(FlushMode::Inline);
        self.session.settle().await.expect("settles");
        while self.worker.worker.collect_garbage(1024) {}
    }

    /// Runs a plain text; the allocations.
    async fn ask(&mut self, text: &str) -> u64 {
        let before = COUNT.get();
        let done = self.session.simple_query(text, &mut self.client).await;
        let count = COUNT.get() - before;
        done.expect("goes on");
        self.rest().await;
        count
    }

    /// Binds, runs and commits a prepared statement as one request; the allocations.
    async fn run(&mut self, statement: &str, values: &[Option<&[u8]>]) -> u64 {
        let request = BindRequest {
            portal: "",
            statement,
            formats: &[],
            values,
            result_formats: &[],
        };
        let before = COUNT.get();
        let (session, client) = (&mut self.session, &mut self.client);
        session.bind(&request, client).await.expect("binds");
        session.execute("", 0, client).await.expect("executes");
        session.sync(client).await.expect("commits");
        let count = COUNT.get() - before;
        self.rest().await;
        count
    }
}

/// Lets `conversation` run on a thread of its own, as a worker does.
fn count(conversation: impl AsyncFnOnce(&mut World)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut world = World::new();
        world
            .ask("CREATE TABLE t (id int PRIMARY KEY, v int, filler char(80))")
            .await;
        for id in 0..100 {
            let text = format!("INSERT INTO t VALUES ({id}, 0, '')");
            world.ask(&text).await;
        }
        conversation(&mut world).await;
        assert_eq!(world.client.errors, 0);
    });
}

#[test]
fn a_prepared_point_select() {
    count(async |world| {
        let text = "SELECT v, filler FROM t WHERE id = $1";
        let (session, client) = (&mut world.session, &mut world.client);
        session.parse("s", text, &[], client).await.expect("parses");
        let mut counts = Vec::new();
        for _ in 0..20 {
            counts.push(world.run("s", &[Some(b"42")]).await);
        }
        assert_eq!(world.client.rows, 20);
        let most = counts[10..].iter().max();
        assert!(most <= Some(&1), "{counts:?}");
    });
}

#[test]
fn a_prepared_update_by_key() {
    count(async |world| {
        let text = "UPDATE t SET v = v + $1 WHERE id = $2";
        let (session, client) = (&mut world.session, &mut world.client);
        session.parse("u", text, &[], client).await.expect("parses");
        let mut counts = Vec::new();
        for _ in 0..20 {
            counts.push(world.run("u", &[Some(b"1"), Some(b"42")]).await);
        }
        let most = counts[10..].iter().max();
        assert!(most <= Some(&4), "{counts:?}");
    });
}

#[test]
fn a_plain_point_select_is_neither_parsed_nor_planned() {
    count(async |world| {
        let mut counts = Vec::new();
        for id in 0..20 {
            let text = format!("SELECT v, filler FROM t WHERE id = {id}");
            counts.push(world.ask(&text).await);
        }
        assert_eq!(world.client.rows, 20);
        let most = counts[10..].iter().max();
        assert!(most <= Some(&6), "{counts:?}");
        // Parsing alone takes more than that.
        assert!(counts[0] > 100, "{counts:?}");
    });
}
