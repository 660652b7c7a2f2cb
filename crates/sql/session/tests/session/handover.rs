//! What locks hand over: nobody is told that a lock is his before what its former holder did is durable, not even in
//! the middle of a transaction. Nobody flushes here but the tests themselves.

use super::{Env, MemoryHome, Script, ask, converse_with, session, waits, worker_on};
use logstead_engine::{Engine, EngineOptions, FlushMode};
use logstead_home::LogHome;
use logstead_sql_catalog::CatalogStore;
use logstead_sql_session::{Instance, Session, WorkerSessions};
use logstead_types::WorkerId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A server with tables `t` (rows 1 to 3) and `u`, durable.
struct Scene {
    worker: Rc<WorkerSessions>,
    home: MemoryHome,
}

impl Scene {
    fn flush(&self) {
        self.worker.worker.flush(FlushMode::Inline);
    }

    fn session(&self) -> (Session, Script) {
        (session(&self.worker), Script::default())
    }

    /// What `u` has after a crash in which all is lost that was not written.
    async fn crash(self) -> Vec<String> {
        let Scene { worker, home } = self;
        drop(worker);
        home.crash();
        let (env, _files) = Env::simulated(8);
        let worker = worker_on(LogHome::from(home), env);
        let (mut s, mut c) = (session(&worker), Script::default());
        let mut said = ask(&mut s, &mut c, "SELECT who FROM u ORDER BY who").await;
        said.pop();
        said.split_off(1)
    }
}

fn on_the_scene(play: impl AsyncFnOnce(Scene)) {
    let home = MemoryHome::new(1 << 20);
    let opened = home.clone();
    let worker = move || {
        let (env, _files) = Env::simulated(7);
        worker_on(LogHome::from(opened), env)
    };
    converse_with(false, worker, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        for text in [
            "CREATE TABLE t (a int PRIMARY KEY, b int)",
            "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)",
            "CREATE TABLE u (who text)",
        ] {
            let said = ask(&mut s, &mut c, text).await;
            assert!(!said[0].starts_with("ERROR"), "{said:?}");
        }
        worker.worker.flush(FlushMode::Inline);
        s.settle().await.unwrap();
        drop(s);
        play(Scene { worker, home }).await;
    });
}

async fn says(session: &mut Session, client: &mut Script, text: &str) {
    let said = ask(session, client, text).await;
    let failed = said.iter().find(|line| line.starts_with("ERROR"));
    assert_eq!(failed, None, "{text}");
}

/// One way to take a lock and another one that conflicts with it; neither writes anything.
const PAIRS: [(&str, &str); 20] = [
    (
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT pg_advisory_xact_lock(1)",
    ),
    (
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT pg_advisory_lock(1)",
    ),
    (
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT pg_try_advisory_xact_lock(1)",
    ),
    (
        "SELECT pg_advisory_xact_lock(1, 2)",
        "SELECT pg_try_advisory_lock(1, 2)",
    ),
    (
        "SELECT pg_advisory_xact_lock_shared(1)",
        "SELECT pg_advisory_xact_lock(1)",
    ),
    (
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT pg_advisory_lock_shared(1)",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
        "SELECT FROM t WHERE a = 1 FOR UPDATE NOWAIT",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
        "SELECT FROM t FOR UPDATE SKIP LOCKED LIMIT 1",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
        "SELECT FROM t WHERE a = 1 FOR KEY SHARE",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR NO KEY UPDATE",
        "SELECT FROM t WHERE a = 1 FOR SHARE",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR SHARE",
        "SELECT FROM t WHERE a = 1 FOR NO KEY UPDATE",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR KEY SHARE",
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
        "UPDATE t SET b = 1 WHERE a = 1",
    ),
    (
        "SELECT FROM t WHERE a = 1 FOR KEY SHARE",
        "DELETE FROM t WHERE a = 1",
    ),
    ("LOCK TABLE t", "LOCK TABLE t"),
    ("LOCK TABLE t", "LOCK TABLE t IN ACCESS SHARE MODE NOWAIT"),
    (
        "LOCK TABLE t IN SHARE MODE",
        "LOCK TABLE t IN ROW EXCLUSIVE MODE",
    ),
    (
        "LOCK TABLE t IN ROW EXCLUSIVE MODE",
        "LOCK TABLE t IN SHARE MODE",
    ),
    ("LOCK TABLE t", "SELECT FROM t"),
];

#[test]
fn nobody_is_told_in_a_block_that_a_lock_is_his_before_the_former_holder_is_durable() {
    on_the_scene(async |scene| {
        for (before, after) in PAIRS {
            let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
            says(&mut a, &mut ca, "BEGIN").await;
            says(&mut a, &mut ca, before).await;
            says(&mut a, &mut ca, "INSERT INTO u VALUES ('a')").await;
            says(&mut a, &mut ca, "COMMIT").await;
            says(&mut b, &mut cb, "BEGIN").await;
            assert!(!waits(&mut b).await, "a block has begun, no more");
            says(&mut b, &mut cb, after).await;
            assert!(waits(&mut b).await, "{after} after {before}");
            assert!(waits(&mut b).await, "{after}: whoever gives up waits again");
            scene.flush();
            assert!(!waits(&mut b).await, "{after} after {before}");
            says(&mut b, &mut cb, after).await;
            assert!(!waits(&mut b).await, "{after}: it is durable");
            says(&mut b, &mut cb, "ROLLBACK").await;
        }
    });
}

#[test]
fn nor_outside_a_block() {
    on_the_scene(async |scene| {
        for (before, after) in PAIRS.into_iter().filter(|(_, b)| !b.starts_with("LOCK")) {
            let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
            let text = format!("BEGIN; {before}; INSERT INTO u VALUES ('a'); COMMIT");
            says(&mut a, &mut ca, &text).await;
            says(&mut b, &mut cb, after).await;
            assert!(waits(&mut b).await, "{after} after {before}");
            scene.flush();
            assert!(!waits(&mut b).await, "{after} after {before}");
        }
    });
}

/// The client of the one that stood in line hears nothing while the other one's entry is not written.
#[test]
fn who_stood_in_line_is_told_when_the_former_holder_is_durable() {
    on_the_scene(async |scene| {
        for lock in [
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT pg_advisory_lock(1)",
            "SELECT FROM t WHERE a = 1 FOR UPDATE",
            "LOCK TABLE t",
        ] {
            let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
            let xact = lock.replace("advisory_lock", "advisory_xact_lock");
            says(&mut a, &mut ca, &format!("BEGIN; {xact}")).await;
            says(&mut a, &mut ca, "INSERT INTO u VALUES ('a')").await;
            says(&mut b, &mut cb, "BEGIN").await;
            let mut in_line = Box::pin(ask(&mut b, &mut cb, lock));
            let early = tokio::time::timeout(Duration::from_millis(20), &mut in_line).await;
            assert!(early.is_err(), "{lock} does not wait: {early:?}");
            says(&mut a, &mut ca, "COMMIT").await;
            in_line.await;
            assert!(waits(&mut b).await, "{lock}");
            scene.flush();
            assert!(!waits(&mut b).await, "{lock}");
        }
    });
}

#[test]
fn a_crash_takes_both_and_the_second_was_not_told() {
    for (before, after) in [
        (
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT pg_advisory_lock(1)",
        ),
        (
            "SELECT FROM t WHERE a = 1 FOR UPDATE",
            "SELECT FROM t WHERE a = 1 FOR UPDATE",
        ),
        ("LOCK TABLE t", "LOCK TABLE t"),
    ] {
        on_the_scene(async |scene| {
            let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
            let text = format!("BEGIN; {before}; INSERT INTO u VALUES ('a'); COMMIT");
            says(&mut a, &mut ca, &text).await;
            says(&mut b, &mut cb, "BEGIN").await;
            says(&mut b, &mut cb, after).await;
            assert!(waits(&mut b).await, "{after}");
            says(&mut b, &mut cb, "INSERT INTO u VALUES ('b')").await;
            says(&mut b, &mut cb, "COMMIT").await;
            assert!(waits(&mut b).await);
            drop((a, b));
            let left: Vec<String> = Vec::new();
            assert_eq!(scene.crash().await, left);
        });
    }
}

/// The entry of whoever had the lock next names the former one: it does not survive alone where its own lane's block is
/// written first.
#[test]
fn nor_does_the_second_survive_in_another_lane() {
    for lock in [
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT FROM t WHERE a = 1 FOR UPDATE",
        "LOCK TABLE t",
    ] {
        let home = MemoryHome::new(1 << 20);
        let opened = home.clone();
        let options = EngineOptions {
            workers: 2,
            ..EngineOptions::default()
        };
        let first = move || {
            let (env, _files) = Env::simulated(7);
            let (engine, _) = Engine::open(options, LogHome::from(opened), env.clone()).unwrap();
            let store = CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog())
                .unwrap();
            let settings = BTreeMap::new();
            let instance = Instance::new(engine.clone(), store, env, settings, 3);
            WorkerSessions::new(Arc::new(instance), engine.worker(WorkerId(0)))
        };
        converse_with(false, first, async |worker| {
            let instance = Arc::clone(&worker.instance);
            let second = instance.engine.worker(WorkerId(1));
            let other = WorkerSessions::new(instance, second);
            let (mut a, mut ca) = (session(&worker), Script::default());
            says(&mut a, &mut ca, "CREATE TABLE t (a int)").await;
            says(&mut a, &mut ca, "CREATE TABLE u (who text)").await;
            says(&mut a, &mut ca, "INSERT INTO t VALUES (1)").await;
            worker.worker.flush(FlushMode::Inline);
            let (mut b, mut cb) = (session(&other), Script::default());
            for (session, client, who) in [(&mut a, &mut ca, 'a'), (&mut b, &mut cb, 'b')] {
                says(session, client, "BEGIN").await;
                says(session, client, lock).await;
                let text = format!("INSERT INTO u VALUES ('{who}'); COMMIT");
                says(session, client, &text).await;
            }
            other.worker.flush(FlushMode::Inline);
            assert!(waits(&mut b).await, "{lock}");
            drop((a, b, other));
            let left: Vec<String> = Vec::new();
            assert_eq!(Scene { worker, home }.crash().await, left, "{lock}");
        });
    }
}

#[test]
fn a_session_lock_hands_over_what_its_session_has_committed() {
    on_the_scene(async |scene| {
        for ends in [
            "SELECT pg_advisory_unlock(1)",
            "SELECT pg_advisory_unlock_all()",
            "DISCARD ALL",
            "",
            "ROLLBACK",
        ] {
            let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
            says(&mut a, &mut ca, "SELECT pg_advisory_lock(1)").await;
            says(&mut a, &mut ca, "INSERT INTO u VALUES ('a')").await;
            match ends {
                "" => drop(a),
                // What is not committed is nobody's.
                "ROLLBACK" => {
                    scene.flush();
                    says(&mut a, &mut ca, "BEGIN; INSERT INTO u VALUES ('x')").await;
                    says(&mut a, &mut ca, "SELECT pg_advisory_unlock(1)").await;
                    says(&mut a, &mut ca, ends).await;
                }
                _ => says(&mut a, &mut ca, ends).await,
            }
            says(&mut b, &mut cb, "BEGIN; SELECT pg_try_advisory_lock(1)").await;
            assert_eq!(waits(&mut b).await, ends != "ROLLBACK", "{ends}");
            scene.flush();
            assert!(!waits(&mut b).await, "{ends}");
        }
    });
}

/// A commit in the middle of a procedure counts, too.
#[test]
fn a_procedure_hands_over_what_it_has_committed() {
    on_the_scene(async |scene| {
        let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
        let body = "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ DECLARE done boolean; BEGIN \
             PERFORM pg_advisory_lock(1); INSERT INTO u VALUES ('a'); COMMIT; \
             done := pg_advisory_unlock(1); END $$";
        says(&mut a, &mut ca, body).await;
        scene.flush();
        says(&mut a, &mut ca, "CALL p()").await;
        says(&mut b, &mut cb, "BEGIN; SELECT pg_advisory_xact_lock(1)").await;
        assert!(waits(&mut b).await);
        scene.flush();
        assert!(!waits(&mut b).await);
    });
}

#[test]
fn who_does_not_care_does_not_wait_and_who_does_waits_for_those_who_do_not() {
    on_the_scene(async |scene| {
        let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
        says(&mut a, &mut ca, "SET synchronous_commit = off").await;
        says(&mut b, &mut cb, "SET synchronous_commit = off").await;
        let text = "BEGIN; SELECT pg_advisory_xact_lock(1); INSERT INTO u VALUES ('a'); COMMIT";
        says(&mut a, &mut ca, text).await;
        assert!(!waits(&mut a).await);
        says(&mut b, &mut cb, "BEGIN; SELECT pg_advisory_xact_lock(1)").await;
        assert!(!waits(&mut b).await, "it does not care");
        says(&mut b, &mut cb, "ROLLBACK").await;
        let (mut b, mut cb) = scene.session();
        says(&mut b, &mut cb, "BEGIN; SELECT pg_advisory_xact_lock(1)").await;
        assert!(waits(&mut b).await);
        scene.flush();
        assert!(!waits(&mut b).await);
    });
}

/// Locks that go together, other locks, and other rows than those of the lock.
#[test]
fn nobody_waits_for_those_who_were_not_in_the_way() {
    on_the_scene(async |scene| {
        for (before, after) in [
            (
                "SELECT pg_advisory_xact_lock(1)",
                "SELECT pg_advisory_xact_lock(2)",
            ),
            (
                "SELECT pg_advisory_xact_lock(1)",
                "SELECT pg_advisory_xact_lock(0, 1)",
            ),
            (
                "SELECT pg_advisory_xact_lock_shared(1)",
                "SELECT pg_advisory_xact_lock_shared(1)",
            ),
            (
                "SELECT FROM t WHERE a = 1 FOR UPDATE",
                "SELECT FROM t WHERE a = 2 FOR UPDATE",
            ),
            (
                "SELECT FROM t WHERE a = 1 FOR SHARE",
                "SELECT FROM t WHERE a = 1 FOR SHARE",
            ),
            (
                "SELECT FROM t WHERE a = 1 FOR KEY SHARE",
                "UPDATE t SET b = 1 WHERE a = 1",
            ),
            (
                "SELECT FROM t WHERE a = 1 FOR UPDATE",
                "SELECT FROM t WHERE a = 1",
            ),
            ("LOCK TABLE t IN SHARE MODE", "SELECT FROM t"),
            ("LOCK TABLE t IN SHARE MODE", "LOCK TABLE t IN SHARE MODE"),
            ("SELECT FROM t", "UPDATE t SET b = 1 WHERE a = 1"),
        ] {
            let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
            says(&mut b, &mut cb, "BEGIN").await;
            let text = format!("BEGIN; {before}; INSERT INTO u VALUES ('a'); COMMIT");
            says(&mut a, &mut ca, &text).await;
            says(&mut b, &mut cb, after).await;
            assert!(!waits(&mut b).await, "{after} after {before}");
            says(&mut b, &mut cb, "ROLLBACK").await;
            scene.flush();
        }
    });
}

/// Rows that are read in a block are provisional until COMMIT, whoever wrote them.
#[test]
fn rows_read_in_a_block_are_waited_for_by_commit() {
    on_the_scene(async |scene| {
        let ((mut a, mut ca), (mut b, mut cb)) = (scene.session(), scene.session());
        says(&mut a, &mut ca, "UPDATE t SET b = 1 WHERE a = 1").await;
        says(&mut b, &mut cb, "BEGIN; SELECT b FROM t WHERE a = 1").await;
        assert!(!waits(&mut b).await);
        says(&mut b, &mut cb, "UPDATE t SET b = 2 WHERE a = 1").await;
        assert!(!waits(&mut b).await);
        says(&mut b, &mut cb, "COMMIT").await;
        assert!(waits(&mut b).await);
        scene.flush();
        assert!(!waits(&mut b).await);
    });
}
