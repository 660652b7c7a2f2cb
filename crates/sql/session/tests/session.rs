//! Sessions over an engine in memory: what a client hears, in order.

#[path = "session/asynchronous.rs"]
mod asynchronous;
#[path = "session/cost.rs"]
mod cost;
#[path = "session/distribution.rs"]
mod distribution;
#[path = "session/handover.rs"]
mod handover;
#[path = "session/moving.rs"]
mod moving;
#[path = "session/rights.rs"]
mod rights;
#[path = "rig/script.rs"]
mod script;
#[path = "session/spill.rs"]
mod spill;
#[path = "session/temporary.rs"]
mod temporary;
#[path = "session/turns.rs"]
mod turns;
#[path = "session/undo.rs"]
mod undo;
#[path = "session/views.rs"]
mod views;
#[path = "session/waiting.rs"]
mod waiting;

use logstead_engine::{Engine, EngineOptions, FlushMode};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::{CatalogStore, Tariff};
use logstead_sql_session::{BindRequest, Instance, Session, StartupRequest, WorkerSessions};
use logstead_sql_types::Result;
use logstead_types::WorkerId;
use script::Script;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

fn worker() -> Rc<WorkerSessions> {
    let (env, _files) = Env::simulated(7);
    worker_on(LogHome::from(MemoryHome::new(1 << 20)), env)
}

/// A server of one worker whose log is in this home.
fn worker_on(home: LogHome, env: Env) -> Rc<WorkerSessions> {
    worker_with(EngineOptions::default(), home, env)
}

/// The same of an engine with these options, of which the first worker is there.
fn worker_with(options: EngineOptions, home: LogHome, env: Env) -> Rc<WorkerSessions> {
    let (engine, _) = Engine::open(options, home, env.clone()).unwrap();
    let store =
        CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
    store.set_tariff(Tariff {
        lease_renewed_every: Some(Duration::from_secs(5)),
        ..Tariff::default()
    });
    let instance = Arc::new(Instance::new(
        engine.clone(),
        store,
        env,
        BTreeMap::new(),
        3,
    ));
    WorkerSessions::new(instance, engine.worker(WorkerId(0)))
}

fn session(worker: &Rc<WorkerSessions>) -> Session {
    let request = StartupRequest {
        user: "postgres".to_owned(),
        ..StartupRequest::default()
    };
    Session::open(worker, request).unwrap()
}

async fn ask(session: &mut Session, client: &mut Script, text: &str) -> Vec<String> {
    session.simple_query(text, client).await.unwrap();
    client.take()
}

/// Runs a conversation on one thread, as a worker does; `flusher` writes the log whenever there is something to write.
fn converse(flusher: bool, conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    converse_with(flusher, worker, conversation);
}

/// The same with a server of one's own making.
fn converse_with(
    flusher: bool,
    worker: impl FnOnce() -> Rc<WorkerSessions>,
    conversation: impl AsyncFnOnce(Rc<WorkerSessions>),
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let worker = worker();
        if flusher {
            let dirty = Rc::new(tokio::sync::Notify::new());
            let (hook, flushed) = (Rc::clone(&dirty), Rc::clone(&worker));
            worker
                .worker
                .set_dirty_hook(Box::new(move || hook.notify_one()));
            tokio::task::spawn_local(async move {
                loop {
                    dirty.notified().await;
                    flushed.worker.flush(FlushMode::Inline);
                }
            });
        }
        // Sessions have as much stack as a worker gives them.
        let conversation = logstead_fiber::on_stack(conversation(worker));
        let all = tokio::time::timeout(Duration::from_secs(60), conversation);
        assert!(all.await.is_ok(), "the conversation does not end");
    });
}

fn run(conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    converse(true, conversation);
}

#[test]
fn statements_of_one_query_are_one_transaction() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let said = ask(
            &mut s,
            &mut c,
            "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); SELECT 1",
        )
        .await;
        assert_eq!(said[0], "INSERT 0 1");
        assert!(said[1].starts_with("ERROR 23505"), "{said:?}");
        assert_eq!(said.len(), 2, "nothing runs after the error");
        assert_eq!(
            ask(&mut s, &mut c, "SELECT count(*) FROM t").await,
            ["columns count", "0", "SELECT 1"]
        );
        assert_eq!(ask(&mut s, &mut c, " ; ").await, ["empty"]);
    });
}

#[test]
fn blocks_and_savepoints() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int)").await;
        ask(&mut s, &mut c, "BEGIN").await;
        assert_eq!(s.status(), b'T');
        ask(&mut s, &mut c, "INSERT INTO t VALUES (1)").await;
        ask(&mut s, &mut c, "SAVEPOINT a").await;
        ask(&mut s, &mut c, "INSERT INTO t VALUES (2)").await;
        ask(&mut s, &mut c, "SELECT 1/0").await;
        assert_eq!(s.status(), b'E');
        let refused = ask(&mut s, &mut c, "SELECT 1").await;
        assert!(refused[0].starts_with("ERROR 25P02"), "{refused:?}");
        assert_eq!(ask(&mut s, &mut c, "ROLLBACK TO a").await, ["ROLLBACK"]);
        assert_eq!(s.status(), b'T');
        assert_eq!(ask(&mut s, &mut c, "COMMIT").await, ["COMMIT"]);
        assert_eq!(
            ask(&mut s, &mut c, "SELECT a FROM t").await,
            ["columns a", "1", "SELECT 1"]
        );
        let warned = ask(&mut s, &mut c, "COMMIT").await;
        assert_eq!(
            warned,
            [
                "WARNING 25P01: there is no transaction in progress",
                "COMMIT"
            ]
        );
        assert_eq!(
            ask(
                &mut s,
                &mut c,
                "BEGIN ISOLATION LEVEL SERIALIZABLE; SHOW transaction_isolation; COMMIT"
            )
            .await,
            [
                "BEGIN",
                "columns transaction_isolation",
                "serializable",
                "SHOW",
                "COMMIT"
            ]
        );
    });
}

async fn bind(
    s: &mut Session,
    c: &mut Script,
    portal: &str,
    statement: &str,
    values: &[Option<&[u8]>],
) -> Result<()> {
    s.bind(
        &BindRequest {
            portal,
            statement,
            formats: &[],
            values,
            result_formats: &[],
        },
        c,
    )
    .await
}

#[test]
fn portals_keep_their_picture() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(
            &mut s,
            &mut c,
            "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2), (3)",
        )
        .await;
        s.parse("q", "SELECT a FROM t WHERE a > $1", &[], &mut c)
            .await
            .unwrap();
        s.describe_statement("q", &mut c).await.unwrap();
        assert_eq!(c.take(), ["parameters [23]", "columns a"]);
        ask(&mut s, &mut c, "BEGIN").await;
        bind(&mut s, &mut c, "p", "q", &[Some(b"0")]).await.unwrap();
        s.execute("p", 1, &mut c).await.unwrap();
        assert_eq!(c.take(), ["1", "suspended"]);
        s.sync(&mut c).await.unwrap();
        ask(&mut s, &mut c, "UPDATE t SET a = a + 10").await;
        s.execute("p", 1, &mut c).await.unwrap();
        s.execute("p", 0, &mut c).await.unwrap();
        assert_eq!(c.take(), ["2", "suspended", "3", "SELECT 1"]);
        ask(&mut s, &mut c, "COMMIT").await;
        let gone = s.execute("p", 0, &mut c).await.unwrap_err();
        assert_eq!(gone.code().as_str(), "34000");
        let wrong = bind(&mut s, &mut c, "", "q", &[]).await.unwrap_err();
        assert_eq!(wrong.code().as_str(), "08P01");
        let wrong = bind(&mut s, &mut c, "", "q", &[Some(b"x")])
            .await
            .unwrap_err();
        assert_eq!(wrong.code().as_str(), "22P02");
    });
}

#[test]
fn a_transaction_that_idles_keeps_a_snapshot_only_if_it_must() {
    run(async |worker| {
        let (mut idler, mut writer) = (session(&worker), session(&worker));
        let mut client = Script::default();
        ask(&mut writer, &mut client, "CREATE TABLE i (a int)").await;
        ask(&mut writer, &mut client, "INSERT INTO i VALUES (1), (2)").await;
        let engine = &worker.instance.engine;

        ask(&mut idler, &mut client, "BEGIN").await;
        ask(&mut idler, &mut client, "SELECT a FROM i").await;
        ask(&mut writer, &mut client, "INSERT INTO i VALUES (3)").await;
        assert_eq!(engine.oldest_snapshot(), engine.next_csn());

        // A portal that is to go on keeps what it sees.
        let text = "SELECT a FROM i";
        idler.parse("q", text, &[], &mut client).await.unwrap();
        bind(&mut idler, &mut client, "p", "q", &[]).await.unwrap();
        idler.execute("p", 1, &mut client).await.unwrap();
        idler.sync(&mut client).await.unwrap();
        ask(&mut writer, &mut client, "INSERT INTO i VALUES (4)").await;
        assert!(engine.oldest_snapshot() < engine.next_csn());
        ask(&mut idler, &mut client, "COMMIT").await;

        // So does a transaction whose level says so.
        ask(
            &mut idler,
            &mut client,
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
        )
        .await;
        ask(&mut idler, &mut client, "SELECT a FROM i").await;
        ask(&mut writer, &mut client, "INSERT INTO i VALUES (5)").await;
        assert!(engine.oldest_snapshot() < engine.next_csn());
        ask(&mut idler, &mut client, "COMMIT").await;
        assert_eq!(engine.oldest_snapshot(), engine.next_csn());
    });
}

#[test]
fn plans_follow_the_catalog() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(
            &mut s,
            &mut c,
            "CREATE TABLE t (a int); INSERT INTO t VALUES (1)",
        )
        .await;
        s.parse("star", "SELECT * FROM t", &[], &mut c)
            .await
            .unwrap();
        s.parse("one", "SELECT a FROM t", &[], &mut c)
            .await
            .unwrap();
        ask(&mut s, &mut c, "ALTER TABLE t ADD COLUMN b int DEFAULT 5").await;
        bind(&mut s, &mut c, "", "star", &[]).await.unwrap();
        let error = s.execute("", 0, &mut c).await.unwrap_err();
        assert_eq!(
            error.fields().message,
            "cached plan must not change result type"
        );
        s.fail(error, &mut c);
        c.take();
        bind(&mut s, &mut c, "", "one", &[]).await.unwrap();
        s.execute("", 0, &mut c).await.unwrap();
        s.sync(&mut c).await.unwrap();
        assert_eq!(c.take(), ["1", "SELECT 1"]);
        assert_eq!(ask(&mut s, &mut c, "SELECT * FROM t").await[1], "1|5");
    });
}

#[test]
fn copy_in_and_out() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(
            &mut s,
            &mut c,
            "CREATE TABLE t (a int, b text DEFAULT 'd', CHECK (a > 0))",
        )
        .await;
        c.input = VecDeque::from(["1\tx\n2\t", "\\N\n3\ty"]);
        assert_eq!(
            ask(&mut s, &mut c, "COPY t FROM STDIN").await,
            ["copy in 2", "COPY 3"]
        );
        c.input = VecDeque::from(["4\n5\nsix\n"]);
        assert_eq!(
            ask(&mut s, &mut c, "COPY t (a) FROM STDIN").await[1],
            "ERROR 22P02: invalid input syntax for type integer: \"six\" [COPY t, line 3, column a: \"six\"]"
        );
        c.input = VecDeque::from(["7,\"q,\"\n"]);
        ask(&mut s, &mut c, "COPY t FROM STDIN WITH (FORMAT csv)").await;
        assert_eq!(
            ask(&mut s, &mut c, "COPY t TO STDOUT").await,
            [
                "copy out 2",
                "1\tx\n",
                "2\t\\N\n",
                "3\ty\n",
                "7\tq,\n",
                "copy done",
                "COPY 4"
            ]
        );
        assert_eq!(
            ask(
                &mut s,
                &mut c,
                "COPY (SELECT b, a FROM t WHERE a > 2) TO STDOUT CSV HEADER"
            )
            .await,
            [
                "copy out 2",
                "b,a\n",
                "y,3\n",
                "\"q,\",7\n",
                "copy done",
                "COPY 2"
            ]
        );
        c.input = VecDeque::from(["0\tx\n"]);
        let refused = ask(&mut s, &mut c, "COPY t FROM STDIN").await;
        assert!(
            refused[1].starts_with("ERROR 23514")
                && refused[1].contains("[COPY t, line 1: \"0\tx\"]"),
            "{refused:?}"
        );
    });
}

#[test]
fn settings_end_with_their_transaction() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(
            &mut s,
            &mut c,
            "BEGIN; SET TimeZone TO 'Europe/Berlin'; SET LOCAL work_mem = '2MB'",
        )
        .await;
        assert_eq!(
            s.take_changed_settings(),
            [("TimeZone", "Europe/Berlin".to_owned())]
        );
        assert_eq!(
            ask(&mut s, &mut c, "SHOW work_mem").await,
            ["columns work_mem", "2MB", "SHOW"]
        );
        ask(&mut s, &mut c, "ROLLBACK").await;
        assert_eq!(s.take_changed_settings(), [("TimeZone", "UTC".to_owned())]);
        assert_eq!(ask(&mut s, &mut c, "SHOW work_mem").await[1], "64MB");
    });
}

#[test]
fn a_locked_row_waits_and_can_be_cancelled() {
    run(async |worker| {
        let (mut a, mut b) = (session(&worker), session(&worker));
        let (mut ca, mut cb) = (Script::default(), Script::default());
        ask(
            &mut a,
            &mut ca,
            "CREATE TABLE t (a int); INSERT INTO t VALUES (1)",
        )
        .await;
        ask(&mut a, &mut ca, "BEGIN; UPDATE t SET a = 2").await;
        ask(&mut b, &mut cb, "SET statement_timeout = 20").await;
        let said = ask(&mut b, &mut cb, "UPDATE t SET a = 3").await;
        assert_eq!(
            said,
            ["ERROR 57014: canceling statement due to statement timeout"]
        );
        ask(
            &mut b,
            &mut cb,
            "SET statement_timeout = 0; SET lock_timeout = 20",
        )
        .await;
        let said = ask(&mut b, &mut cb, "UPDATE t SET a = 3").await;
        assert_eq!(
            said,
            ["ERROR 55P03: canceling statement due to lock timeout"]
        );
        let (pid, secret) = b.key();
        ask(&mut b, &mut cb, "SET lock_timeout = 0").await;
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            worker.cancel(pid, secret.wrapping_add(1));
            worker.cancel(pid, secret);
        };
        let (said, ()) = tokio::join!(ask(&mut b, &mut cb, "UPDATE t SET a = 3"), cancel);
        assert_eq!(
            said,
            ["ERROR 57014: canceling statement due to user request"]
        );
        // A session that goes away frees its locks.
        drop(a);
        assert_eq!(
            ask(&mut b, &mut cb, "UPDATE t SET a = 3").await,
            ["UPDATE 1"]
        );
    });
}

#[test]
fn refusals_at_the_door() {
    run(async |worker| {
        let open = |user: &str, database: &str| {
            let request = StartupRequest {
                user: user.to_owned(),
                database: database.to_owned(),
                ..StartupRequest::default()
            };
            Session::open(&worker, request)
        };
        let code = |result: Result<Session>| {
            result
                .err()
                .map(|e| e.code().to_string())
                .unwrap_or_default()
        };
        assert_eq!(code(open("nobody", "postgres")), "28000");
        assert_eq!(code(open("postgres", "nowhere")), "3D000");
        assert_eq!(code(open("", "")), "28000");
        let kept: Vec<Session> = (0..3)
            .map(|_| open("postgres", "logstead").unwrap())
            .collect();
        assert_eq!(code(open("postgres", "")), "53300");
        drop(kept);
        assert!(open("postgres", "").is_ok());
        worker.instance.stop();
        assert_eq!(code(open("postgres", "")), "57P03");
    });
}

#[test]
fn nothing_is_told_before_it_is_durable() {
    converse(false, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        s.end_request();
        assert!(
            worker.worker.lane_dirty(),
            "the commit is in the lane, not yet written"
        );
        {
            let settle = s.settle();
            let late = tokio::time::timeout(Duration::from_millis(20), settle).await;
            assert!(late.is_err(), "settled without a flush");
        }
        worker.worker.flush(FlushMode::Inline);
        s.settle().await.unwrap();
    });
}

/// Is what `session` would tell now still unsettled?
async fn waits(session: &mut Session) -> bool {
    let settle = session.settle();
    tokio::time::timeout(Duration::from_millis(20), settle)
        .await
        .is_err()
}

#[test]
fn errors_about_a_catalog_wait_until_it_is_durable() {
    converse(false, async |worker| {
        let (mut a, mut b) = (session(&worker), session(&worker));
        let mut c = Script::default();
        ask(&mut a, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        worker.worker.flush(FlushMode::Inline);
        ask(&mut a, &mut c, "DROP TABLE t").await;
        let told = ask(&mut b, &mut c, "SELECT * FROM t").await;
        assert_eq!(told, ["ERROR 42P01: relation \"t\" does not exist"]);
        assert!(waits(&mut b).await, "a crash now brings the table back");
        worker.worker.flush(FlushMode::Inline);
        b.settle().await.unwrap();
    });
}

#[test]
fn rows_before_sync_wait_until_they_are_durable() {
    converse(false, async |worker| {
        let (mut a, mut b, mut c) = (session(&worker), session(&worker), Script::default());
        ask(&mut a, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        worker.worker.flush(FlushMode::Inline);
        ask(&mut a, &mut c, "INSERT INTO t VALUES (7)").await;
        b.parse("", "SELECT a FROM t", &[], &mut c).await.unwrap();
        b.bind(
            &BindRequest {
                portal: "",
                statement: "",
                formats: &[],
                values: &[],
                result_formats: &[],
            },
            &mut c,
        )
        .await
        .unwrap();
        b.execute("", 0, &mut c).await.unwrap();
        assert_eq!(c.take(), ["7", "SELECT 1"]);
        assert!(
            waits(&mut b).await,
            "Flush would send a row that a crash takes back"
        );
        worker.worker.flush(FlushMode::Inline);
        b.finish().await.unwrap();
    });
}

#[test]
fn a_long_statement_that_waits_for_no_lock_outlives_the_lock_timeout() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "SET lock_timeout = '20ms'").await;
        let text = "SELECT count(*) FROM generate_series(1, 400) a, generate_series(1, 1000) b WHERE a + b < 0";
        assert_eq!(
            ask(&mut s, &mut c, text).await,
            ["columns count", "0", "SELECT 1"]
        );
    });
}

#[test]
fn integers_in_plain_text_mean_what_they_mean_there() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let table = "CREATE TABLE t (a int PRIMARY KEY, b bigint UNIQUE, c smallint, d numeric(6,2), e varchar(10))";
        ask(&mut s, &mut c, table).await;
        // From its third coming on a kind of text runs as a prepared statement would.
        for i in 1..=4 {
            let text = format!("INSERT INTO t VALUES ({i}, {i}0, -{i}, {i} / 2, 'x 5')");
            assert_eq!(ask(&mut s, &mut c, &text).await, ["INSERT 0 1"]);
            assert_eq!(
                ask(&mut s, &mut c, &text).await,
                ["ERROR 23505: duplicate key value violates unique constraint \"t_pkey\""]
            );
        }
        for i in 1..=4 {
            let row = format!("{i}|{i}0|-{i}|{}.00|x 5", i / 2);
            for key in [format!("a = {i}"), format!("b = {i}0")] {
                let text = format!("SELECT * FROM t WHERE {key}");
                assert_eq!(
                    ask(&mut s, &mut c, &text).await,
                    ["columns a,b,c,d,e", &row, "SELECT 1"]
                );
            }
            let text = format!("UPDATE t SET c = c - {i}, e = 1{i} WHERE a = {i} RETURNING c, e");
            assert_eq!(
                ask(&mut s, &mut c, &text).await,
                ["columns c,e", &format!("-{}|1{i}", 2 * i), "UPDATE 1"]
            );
            assert_eq!(
                ask(
                    &mut s,
                    &mut c,
                    &format!("UPDATE t SET c = 7000{i} WHERE a = {i}")
                )
                .await,
                ["ERROR 22003: smallint out of range"]
            );
        }
        // Integers that are no values.
        for _ in 0..3 {
            for (column, rows) in [(1, ["1|-1", "4|-4"]), (2, ["4|-4", "1|-1"])] {
                let text = format!("SELECT a, -a AS n FROM t WHERE a IN (1, 4) ORDER BY {column}");
                let said = ask(&mut s, &mut c, &text).await;
                assert_eq!(said, ["columns a,n", rows[0], rows[1], "SELECT 2"]);
                let text = format!("SELECT 'abc'::varchar({column}) AS v FROM t LIMIT {column}");
                let said = ask(&mut s, &mut c, &text).await;
                assert_eq!(said[1], &"abc"[..column]);
                assert_eq!(said.len(), column + 2);
            }
            let said = ask(&mut s, &mut c, "SELECT a FROM t WHERE a = 4 AND 1 = 2").await;
            assert_eq!(said, ["columns a", "SELECT 0"]);
        }
        // The catalog, the search path and the transaction decide anew each time.
        let by_key = async |s: &mut Session, c: &mut Script| {
            ask(s, c, "SELECT a FROM t WHERE a = 3 ORDER BY 1").await;
            ask(s, c, "SELECT * FROM t WHERE a = 3").await
        };
        ask(
            &mut s,
            &mut c,
            "ALTER TABLE t DROP COLUMN b, ADD COLUMN f int DEFAULT 9",
        )
        .await;
        assert_eq!(by_key(&mut s, &mut c).await[1], "3|-6|1.00|13|9");
        ask(&mut s, &mut c, "ALTER TABLE t DROP CONSTRAINT t_pkey").await;
        ask(&mut s, &mut c, "INSERT INTO t VALUES (3, 0, 0, '', 0)").await;
        assert_eq!(by_key(&mut s, &mut c).await.len(), 4);
        ask(
            &mut s,
            &mut c,
            "CREATE SCHEMA o; CREATE TABLE o.t (a text PRIMARY KEY)",
        )
        .await;
        ask(&mut s, &mut c, "SET search_path = o").await;
        let said = by_key(&mut s, &mut c).await;
        assert_eq!(
            said,
            ["ERROR 42883: operator does not exist: text = integer"]
        );
        // By itself: what stands before BEGIN in a text is part of the transaction, and goes with ROLLBACK.
        ask(&mut s, &mut c, "RESET search_path").await;
        ask(
            &mut s,
            &mut c,
            "CREATE UNIQUE INDEX ON t (e); BEGIN READ ONLY",
        )
        .await;
        for _ in 0..3 {
            let said = ask(&mut s, &mut c, "DELETE FROM t WHERE a = 3").await;
            assert!(said[0].starts_with("ERROR 25"), "{said:?}");
        }
        ask(&mut s, &mut c, "ROLLBACK").await;
        assert_eq!(by_key(&mut s, &mut c).await.len(), 4);
    });
}
