//! One lane's tail is lost, another lane's is not: what survives rests on nothing that is gone.
//!
//! Two workers with a lane each. Whatever the first one does after the setup is never flushed; the second one's lane
//! is, and then the machine crashes.

#[path = "rig/script.rs"]
mod script;

use logstead_engine::{Engine, EngineOptions, FlushMode};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::CatalogStore;
use logstead_sql_session::{Instance, Session, StartupRequest, WorkerSessions};
use logstead_types::{TableId, WorkerId};
use script::Script;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// So many ranges have more object identifiers than are reserved at once.
const RANGES: usize = 120;

struct Machine {
    home: MemoryHome,
    workers: [Rc<WorkerSessions>; 2],
}

impl Machine {
    fn engine(home: &MemoryHome) -> (Engine, Env) {
        let (env, _files) = Env::simulated(7);
        let options = EngineOptions {
            workers: 2,
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open(options, LogHome::from(home.clone()), env.clone()).unwrap();
        (engine, env)
    }

    fn start(home: MemoryHome) -> Machine {
        let (engine, env) = Machine::engine(&home);
        let store =
            CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
        let instance = Instance::new(engine.clone(), store, env, BTreeMap::new(), 9);
        let instance = Arc::new(instance);
        let worker = |id| WorkerSessions::new(Arc::clone(&instance), engine.worker(WorkerId(id)));
        let machine = Machine {
            home,
            workers: [worker(0), worker(1)],
        };
        machine.flush(0);
        machine
    }

    async fn set_up(statements: &str) -> Machine {
        let machine = Machine::start(MemoryHome::new(1 << 20));
        machine.ask(0, statements).await;
        machine.flush(0);
        machine
    }

    fn flush(&self, worker: usize) {
        self.workers[worker].worker.flush(FlushMode::Inline);
    }

    fn session(&self, worker: usize) -> Session {
        self.session_in(worker, "postgres")
    }

    fn session_in(&self, worker: usize, database: &str) -> Session {
        let request = StartupRequest {
            user: "postgres".to_owned(),
            database: database.to_owned(),
            ..StartupRequest::default()
        };
        Session::open(&self.workers[worker], request).unwrap()
    }

    /// Runs statements in a session of their own, without waiting for durability.
    async fn ask(&self, worker: usize, statements: &str) -> Vec<String> {
        let mut session = self.session(worker);
        let mut client = Script::default();
        session.simple_query(statements, &mut client).await.unwrap();
        let said = client.take();
        session.close();
        said
    }

    /// The second lane is durable, the first one's tail is lost.
    fn crash(self) -> Machine {
        Machine::start(self.stop())
    }

    /// The same, and nothing is started.
    fn stop(self) -> MemoryHome {
        self.flush(1);
        let home = self.home.clone();
        drop(self);
        home.crash();
        home
    }
}

fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test());
}

#[test]
fn what_rests_on_nothing_lost_survives() {
    run(async || {
        let machine = Machine::set_up("create table t(n int); create table u(n int)").await;
        machine.ask(0, "insert into t values (1)").await;
        machine.ask(1, "insert into u values (2)").await;
        let machine = machine.crash();
        let said = machine
            .ask(0, "select n from t union all select n from u")
            .await;
        assert_eq!(said, ["columns n", "2", "SELECT 1"]);
    });
}

#[test]
fn currval_in_a_later_transaction_rests_on_the_sequence_s_record() {
    run(async || {
        let machine = Machine::set_up("create sequence s; create table t(n bigint)").await;
        machine.ask(0, "select nextval('s')").await;
        machine
            .ask(
                1,
                "begin; select nextval('s'); commit; insert into t values (currval('s'))",
            )
            .await;
        let machine = machine.crash();
        let said = machine.ask(0, "select n from t; select nextval('s')").await;
        assert_eq!(
            said,
            ["columns n", "SELECT 0", "columns nextval", "1", "SELECT 1"],
            "a value given again is in no row"
        );
    });
}

#[test]
fn setval_rests_on_the_rows_its_value_comes_from() {
    run(async || {
        let setup = "create sequence s; create table t(n bigint); \
            insert into t select generate_series(1, 100); select setval('s', 100)";
        let machine = Machine::set_up(setup).await;
        machine.ask(0, "delete from t where n > 50").await;
        machine
            .ask(1, "select setval('s', (select max(n) from t))")
            .await;
        let machine = machine.crash();
        let said = machine
            .ask(0, "select nextval('s') > max(n) as above from t")
            .await;
        assert_eq!(said, ["columns above", "t", "SELECT 1"]);
    });
}

#[test]
fn a_session_s_later_transaction_does_not_survive_its_earlier_one() {
    run(async || {
        let setup = "create table r(n int); insert into r values (1); create table audit(n int)";
        let machine = Machine::set_up(setup).await;
        machine.ask(0, "update r set n = 2").await;
        let (mut session, mut client) = (machine.session(1), Script::default());
        for pipelined in ["update r set n = 3", "insert into audit values (3)"] {
            let asked = session.simple_query(pipelined, &mut client);
            asked.await.unwrap();
        }
        session.close();
        let machine = machine.crash();
        let said = machine.ask(0, "select r.n, audit.n from r, audit").await;
        assert_eq!(said, ["columns n,n", "SELECT 0"]);
    });
}

#[test]
fn who_reads_a_sequence_s_state_rests_on_its_record() {
    run(async || {
        let machine = Machine::set_up("create sequence s; create table t(n bigint)").await;
        machine.ask(0, "select setval('s', 500)").await;
        machine
            .ask(1, "insert into t select last_value from s")
            .await;
        let machine = machine.crash();
        assert_eq!(
            machine.ask(0, "select n from t").await,
            ["columns n", "SELECT 0"]
        );
    });
}

/// T10: the rows of a copied database go with the reservation of the numbers of their storages, which a start gives
/// anew. The start passes over
/// numbers of which the log has rows; here the log has none.
#[test]
fn t10_copied_rows_do_not_survive_the_reservation_of_their_storages() {
    run(async || {
        let machine = Machine::set_up("select 1").await;
        let (mut template, mut client) = (machine.session_in(0, "template1"), Script::default());
        let rows = "create table r(n int); insert into r select generate_series(1, 100)";
        template.simple_query(rows, &mut client).await.unwrap();
        template.close();
        machine.flush(0);
        let engine = machine.workers[1].worker.engine().clone();
        let before: BTreeSet<TableId> = engine.tables().iter().map(|t| t.id()).collect();
        // More numbers than are left of the last reservation.
        let types: String = (0..RANGES)
            .map(|n| format!("create type v{n} as range (subtype = int4);"))
            .collect();
        machine.ask(0, &types).await;
        let copied = machine.ask(1, "create database d template template1").await;
        assert_eq!(copied, ["CREATE DATABASE"]);
        let has_rows = |engine: &Engine| {
            let tables = engine.tables();
            let mut copies = tables.iter().filter(|table| !before.contains(&table.id()));
            copies.any(|table| table.row_count_estimate() > 0)
        };
        assert!(has_rows(&engine), "there are copied rows to be lost");
        drop(engine);
        let (engine, _) = Machine::engine(&machine.stop());
        engine.bring_all(|| true).unwrap();
        assert!(
            !has_rows(&engine),
            "rows of storages that nobody has reserved"
        );
    });
}

/// T10, T15: the answer of DDL that has waited for a lock tells of a catalog that is not durable yet.
#[test]
fn ddl_that_waited_is_answered_when_what_it_tells_of_is_durable() {
    run(async || {
        let machine = Machine::set_up("create table t(n int)").await;
        let mut dropping = machine.session(0);
        let mut client = Script::default();
        let begun = dropping.simple_query("begin; drop table t", &mut client);
        begun.await.unwrap();
        let mut waiting = machine.session(1);
        let answered = Rc::new(Cell::new(false));
        let told = Rc::clone(&answered);
        let task = tokio::task::spawn_local(async move {
            let mut client = Script::default();
            let asked = waiting.simple_query("drop table if exists t", &mut client);
            asked.await.unwrap();
            waiting.settle().await.unwrap();
            told.set(true);
        });
        let turns = async || {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        };
        turns().await;
        dropping.simple_query("commit", &mut client).await.unwrap();
        turns().await;
        machine.flush(1);
        turns().await;
        assert!(!answered.get(), "a crash would bring the table back");
        machine.flush(0);
        turns().await;
        assert!(answered.get());
        task.await.unwrap();
    });
}

/// T10: the same of what no lock of a table hands over: a function that a block has called is replaced, and the new one
/// is lost.
#[test]
fn t10_a_block_does_not_survive_the_function_it_used() {
    run(async || {
        let setup = "create table t(n int); create table u(n int); \
            create function f() returns int language sql as 'select 1'";
        let machine = Machine::set_up(setup).await;
        let (mut session, mut client) = (machine.session(1), Script::default());
        let begin = "begin; insert into u values (1)";
        session.simple_query(begin, &mut client).await.unwrap();
        session.settle().await.unwrap();
        let replace = "create or replace function f() returns int language sql as 'select 11'";
        assert_eq!(machine.ask(0, replace).await, ["CREATE FUNCTION"]);
        client.take();
        for text in ["insert into t values (f())", "commit"] {
            session.simple_query(text, &mut client).await.unwrap();
        }
        let said = client.take();
        assert!(said.last().is_some_and(|tag| tag == "COMMIT"), "{said:?}");
        session.close();
        let machine = machine.crash();
        let said = machine.ask(0, "select n from t; select f()").await;
        let expected = ["columns n", "SELECT 0", "columns f", "1", "SELECT 1"];
        assert_eq!(said, expected, "the row went with the function");
    });
}

/// T10: what a block does under a schema that became so after its transaction began rests on that schema, though it
/// reads none of the catalog's rows: its plan was made from the catalog in memory. Here a constraint is dropped, and
/// the drop is lost.
#[test]
fn t10_a_block_does_not_survive_the_schema_it_used() {
    let statements = [
        ("insert", "insert into t values (11)"),
        ("update", "update t set n = 11"),
        ("prepared", "execute p(11)"),
        ("truncate", "truncate t; insert into t values (11)"),
        ("savepoint", "savepoint s; insert into t values (11)"),
    ];
    let mut survived = Vec::new();
    for (name, statement) in statements {
        run(async || {
            let setup = "create table t(n int constraint c check (n < 10)); \
                insert into t values (1); create table u(n int)";
            let machine = Machine::set_up(setup).await;
            let (mut session, mut client) = (machine.session(1), Script::default());
            for text in [
                "prepare p(int) as insert into t values ($1)",
                // The transaction begins here, when the schema is durable.
                "begin; insert into u values (1)",
            ] {
                session.simple_query(text, &mut client).await.unwrap();
                session.settle().await.unwrap();
            }
            let dropped = machine.ask(0, "alter table t drop constraint c").await;
            assert_eq!(dropped, ["ALTER TABLE"]);
            client.take();
            for text in [statement, "commit"] {
                session.simple_query(text, &mut client).await.unwrap();
            }
            let said = client.take();
            assert!(said.last().is_some_and(|tag| tag == "COMMIT"), "{said:?}");
            session.close();
            let machine = machine.crash();
            let said = machine
                .ask(
                    0,
                    "select n from t; select n from u; insert into t values (11)",
                )
                .await;
            let (refused, rows) = said.split_last().unwrap();
            // All of the block is gone, with the schema it used.
            if rows != ["columns n", "1", "SELECT 1", "columns n", "SELECT 0"]
                || !refused.contains("23514")
            {
                survived.push(format!("{name}: {said:?}"));
            }
        });
    }
    assert!(survived.is_empty(), "{}", survived.join("\n"));
}

/// Is it answered only when both lanes are durable? `told` is what the first lane has told nobody of yet; the statement
/// and what comes before it in its block are the second lane's.
async fn answer_waits_for_the_first_lane(machine: &Machine, told: &str, block: &[&'static str]) {
    machine.ask(0, told).await;
    let answered = Rc::new(Cell::new(false));
    let mut session = machine.session(1);
    let (block, now) = (block.to_vec(), Rc::clone(&answered));
    let task = tokio::task::spawn_local(async move {
        let mut client = Script::default();
        for text in block {
            session.simple_query(text, &mut client).await.unwrap();
        }
        session.settle().await.unwrap();
        now.set(true);
        client.take()
    });
    let turns = async || {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    turns().await;
    machine.flush(1);
    turns().await;
    assert!(!answered.get(), "{told}: a crash would take it back");
    machine.flush(0);
    turns().await;
    assert!(answered.get(), "{told}: it is durable");
    let said = task.await.unwrap();
    let last = said.last().cloned().unwrap_or_default();
    assert!(last.contains("2350"), "{told}: {said:?}");
}

/// T15: an error tells of rows as an answer does. Behind a savepoint the transaction goes on after it, and outside of a
/// block it ends.
#[test]
fn t15_an_error_behind_a_savepoint_waits_for_the_rows_it_tells_of() {
    let setup = "create table p(n int primary key); create table c(n int references p); \
        insert into p values (1), (2)";
    // 23505 tells of a row that is there, 23503 of one that refers, and of one that is gone.
    let told_and_fails = [
        ("insert into p values (7)", "insert into p values (7)"),
        ("insert into c values (1)", "delete from p where n = 1"),
        ("delete from p where n = 2", "insert into c values (2)"),
    ];
    for (told, fails) in told_and_fails {
        for before in [
            &["begin; savepoint s"][..],
            &[
                "begin; savepoint s; insert into p values (20)",
                "savepoint t",
            ],
            &["begin"],
            &[],
        ] {
            run(async || {
                let machine = Machine::set_up(setup).await;
                let block: Vec<_> = before.iter().copied().chain([fails]).collect();
                answer_waits_for_the_first_lane(&machine, told, &block).await;
            });
        }
    }
}

/// T1, T15: the same for who hears that nothing is there, after a part of its transaction that looked was rolled back.
#[test]
fn t1_what_a_rolled_back_savepoint_has_seen_is_waited_for() {
    run(async || {
        let machine = Machine::set_up(
            "create table t(n int primary key); insert into t values (1); create table u(n int)",
        )
        .await;
        machine.ask(0, "delete from t").await;
        machine
            .ask(
                1,
                "begin; savepoint s; select n from t; rollback to s; insert into u values (9); commit",
            )
            .await;
        let machine = machine.crash();
        let said = machine.ask(0, "select n from t; select n from u").await;
        assert_eq!(
            said,
            ["columns n", "1", "SELECT 1", "columns n", "SELECT 0"]
        );
    });
}

#[test]
fn of_asynchronous_commits_the_last_ones_are_lost() {
    run(async || {
        let machine = Machine::set_up(
            "create table t(n int); insert into t values (0); create table u(n int)",
        )
        .await;
        let mut session = machine.session(1);
        let mut client = Script::default();
        for (text, after_another) in [
            ("set synchronous_commit = off", false),
            ("insert into u values (1)", false),
            // Builds on what the other lane loses.
            ("update t set n = 2", true),
            // Builds on nothing, but comes after it.
            ("insert into u values (3)", false),
        ] {
            if after_another {
                machine.ask(0, "update t set n = 1").await;
            }
            session.simple_query(text, &mut client).await.unwrap();
            // Ready at once, although nobody flushes.
            session.settle().await.unwrap();
        }
        session.close();
        let machine = machine.crash();
        let said = machine
            .ask(0, "select n from t union all select n from u order by n")
            .await;
        assert_eq!(said, ["columns n", "0", "1", "SELECT 2"]);
    });
}

/// Another server has taken over, or the log's home is gone: the server is about to end, and clients hear what they
/// hear of any server that ends.
#[test]
fn who_ends_a_transaction_after_the_log_has_failed_is_told_that_the_server_goes() {
    run(async || {
        let machine = Machine::set_up("create table t(n int); create sequence s").await;
        machine.ask(0, "insert into t values (1)").await;
        let mut sessions: Vec<Session> = (0..5).map(|_| machine.session(0)).collect();
        machine.home.set_failing(true);
        machine.flush(0);
        let statements = [
            "insert into t values (2)",
            "begin; update t set n = 3; commit",
            "create table u(n int)",
            "select nextval('s')",
            "alter role postgres connection limit 7",
        ];
        for (session, statement) in sessions.iter_mut().zip(statements) {
            let mut client = Script::default();
            let ended = session.simple_query(statement, &mut client).await;
            let error = ended.expect_err(statement);
            assert_eq!(error.code().as_str(), "57P01", "{statement}: {error:?}");
            assert!(error.fields().fatal, "{statement}: {error:?}");
        }
    });
}
