//! A connection to a server whose right to answer runs out (T15).

use logstead_engine::{Engine, EngineOptions, FlushMode, Lease, LeaseOptions};
use logstead_env::{Clock, Env, SimClock, SimProcesses, SimRandom};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{LogHome, ObjectHome, ObjectOptions};
use logstead_sql_catalog::CatalogStore;
use logstead_sql_session::{Instance, WorkerSessions};
use logstead_types::WorkerId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LEASE: Duration = Duration::from_secs(10);
const QUERY: &[u8] = b"Q\0\0\0\x0dSELECT 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";

fn home(bucket: MemoryBucket) -> LogHome {
    let options = ObjectOptions::default();
    LogHome::from(ObjectHome::open(Arc::new(bucket), &Env::real(), options).unwrap())
}

/// A process of that number, whose lease is renewed when the test says so.
fn process(clock: &Arc<SimClock>, number: u32) -> (Env, LeaseOptions) {
    let (env, _files) = Env::simulated(7);
    let env = Env {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        random: Arc::new(SimRandom::new(u64::from(number))),
        ..env
    };
    let moved = Arc::clone(clock);
    let lease = LeaseOptions {
        duration: LEASE,
        threads: false,
        processes: Arc::new(SimProcesses::new(number)),
        pause: Arc::new(move |time| moved.advance(time)),
        ..LeaseOptions::default()
    };
    (env, lease)
}

async fn nothing_comes(client: &mut TcpStream) {
    let mut replies = Vec::new();
    let early = tokio::time::timeout(Duration::from_millis(100), client.read_buf(&mut replies));
    assert!(
        early.await.is_err(),
        "answered without a lease: {replies:?}"
    );
}

#[test]
fn t15_answers_leave_while_the_lease_is_valid() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let bucket = MemoryBucket::new(MemoryOptions::plain());
        let clock = Arc::new(SimClock::new());
        let (env, lease) = process(&clock, 1);
        let options = EngineOptions {
            lease,
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open(options, home(bucket.clone()), env.clone()).unwrap();
        let store =
            CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
        let worker = engine.worker(WorkerId(0));
        worker.flush(FlushMode::Handoff);
        let instance = Instance::new(engine.clone(), store, env, BTreeMap::new(), 10);
        let sessions: Rc<WorkerSessions> = WorkerSessions::new(Arc::new(instance), worker);
        let lease = engine.lease().unwrap();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        tokio::task::spawn_local(logstead_wire::serve(stream, sessions, Arc::default()));
        client
            .write_all(b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0")
            .await
            .unwrap();
        let mut replies = Vec::new();
        while !replies.ends_with(READY) {
            client.read_buf(&mut replies).await.unwrap();
        }

        // It runs out: the answer waits, and leaves when it is renewed.
        clock.advance(LEASE);
        client.write_all(QUERY).await.unwrap();
        nothing_comes(&mut client).await;
        lease.tick();
        replies.clear();
        while !replies.ends_with(READY) {
            client.read_buf(&mut replies).await.unwrap();
        }
        assert!(String::from_utf8_lossy(&replies).contains("SELECT 1"));

        // Another server takes it: the answer never leaves.
        clock.advance(LEASE);
        client.write_all(QUERY).await.unwrap();
        nothing_comes(&mut client).await;
        let (env, options) = process(&clock, 2);
        let options = LeaseOptions {
            take_over: true,
            ..options
        };
        let other = Lease::claim(&home(bucket.handle(1)), &env, &options).unwrap();
        assert!(other.is_valid());
        nothing_comes(&mut client).await;
        lease.tick();
        replies.clear();
        client.read_to_end(&mut replies).await.unwrap();
        let text = String::from_utf8_lossy(&replies).into_owned();
        assert!(
            text.contains("57P01") && text.contains("process 2"),
            "{text:?}"
        );
        assert!(!text.contains("SELECT 1"), "{text:?}");
    });
}
