//! A connection over a real socket and an engine in memory whose log is written when the test says so.

use logstead_engine::{Engine, EngineOptions, FlushMode};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::CatalogStore;
use logstead_sql_session::{Instance, WorkerSessions};
use logstead_types::WorkerId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn worker() -> Rc<WorkerSessions> {
    let (env, _files) = Env::simulated(7);
    let home = Arc::new(MemoryHome::new(1 << 20));
    let (engine, _) =
        Engine::open(EngineOptions::default(), LogHome::from(home), env.clone()).unwrap();
    let store =
        CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
    let worker = engine.worker(WorkerId(0));
    let instance = Instance::new(engine, store, env, BTreeMap::new(), 10);
    WorkerSessions::new(Arc::new(instance), worker)
}

#[test]
fn the_last_replies_wait_for_the_log_too() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let worker = worker();
        tokio::task::spawn_local(logstead_wire::serve(
            stream,
            Rc::clone(&worker),
            Arc::default(),
        ));
        client
            .write_all(b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0")
            .await
            .unwrap();
        let mut greeting = Vec::new();
        while !greeting.ends_with(b"Z\0\0\0\x05I") {
            client.read_buf(&mut greeting).await.unwrap();
        }
        // A statement that commits, and behind it a message that ends the connection.
        client
            .write_all(b"Q\0\0\0\x1bCREATE TABLE t (a int)\0G")
            .await
            .unwrap();
        let mut replies = Vec::new();
        let early = tokio::time::timeout(Duration::from_millis(100), client.read_buf(&mut replies));
        assert!(early.await.is_err(), "told before it was durable");
        worker.worker.flush(FlushMode::Inline);
        client.read_to_end(&mut replies).await.unwrap();
        let replies = String::from_utf8_lossy(&replies).into_owned();
        assert!(replies.contains("CREATE TABLE"), "{replies:?}");
        assert!(
            replies.contains("invalid frontend message type"),
            "{replies:?}"
        );
    });
}
