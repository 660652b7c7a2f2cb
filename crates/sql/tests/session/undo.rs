//! What is undone behind a session, by a clock that goes on whenever somebody looks at it: how much is undone before
//! the answer is the same on every machine.

use super::turns::run;
use super::{Script, ask, session};
use logstead_sql::session::{Session, WorkerSessions};
use std::rc::Rc;

/// A worker on which somebody undoes behind sessions.
fn undone_behind(conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    run(async |worker| {
        let undoer = Rc::clone(&worker).undo_behind();
        let undoer = tokio::task::spawn_local(worker.task(undoer));
        tokio::task::yield_now().await;
        conversation(worker).await;
        undoer.abort();
    });
}

/// How many transactions are undone behind their sessions.
async fn undoing(session: &mut Session, client: &mut Script) -> String {
    let said = ask(
        session,
        client,
        "SELECT sum(undoing) FROM logstead_workers WHERE (writes_to_undo > 0) = (undoing > 0)",
    )
    .await;
    said[1].clone()
}

#[test]
fn who_ends_a_large_transaction_has_the_answer_before_it_is_undone() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        let tables = "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE d (a int PRIMARY KEY, b int REFERENCES d DEFERRABLE INITIALLY DEFERRED)";
        ask(&mut s, &mut c, tables).await;
        let many = "INSERT INTO t SELECT g FROM generate_series(1, 10000) g";
        let fails = "INSERT INTO t SELECT g + 0 / (g - 10001) FROM generate_series(1, 10001) g";
        for (before, end, heard) in [
            (format!("BEGIN; {many}"), "ROLLBACK", "ROLLBACK"),
            (format!("BEGIN; {many}; SELECT 1/0"), "COMMIT", "ROLLBACK"),
            (
                format!("BEGIN; {many}; SAVEPOINT s; SELECT 1/0"),
                "COMMIT",
                "ROLLBACK",
            ),
            (
                format!("BEGIN; {many}; INSERT INTO d VALUES (1, 2)"),
                "COMMIT",
                "foreign key",
            ),
            ("SELECT 1".to_owned(), fails, "division by zero"),
            (
                "SELECT 1".to_owned(),
                "DO $$ BEGIN INSERT INTO t SELECT generate_series(1, 10000); RAISE 'no'; END $$",
                "no",
            ),
        ] {
            ask(&mut s, &mut c, &before).await;
            let said = ask(&mut s, &mut c, end).await;
            assert!(said[0].contains(heard), "{said:?}");
            // Who has another's answer, and who only reads, sees it in progress.
            assert_eq!(undoing(&mut o, &mut oc).await, "1", "{end} ({heard})");
            let said = ask(&mut s, &mut c, "SELECT count(*) FROM t").await;
            assert_eq!(said[1], "0", "{said:?}");
            assert_eq!(undoing(&mut o, &mut oc).await, "1");
            // Who writes waits, for the same key too.
            let said = ask(
                &mut s,
                &mut c,
                "INSERT INTO t VALUES (1); DELETE FROM t WHERE a = 1",
            )
            .await;
            assert_eq!(said, ["INSERT 0 1", "DELETE 1"], "{end} ({heard})");
            assert_eq!(undoing(&mut o, &mut oc).await, "0");
        }
    });
}

#[test]
fn what_goes_on_with_its_transaction_or_is_little_is_undone_at_once() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let many = "INSERT INTO t SELECT g FROM generate_series(1, 10000) g";
        for (before, end) in [
            (format!("BEGIN; SAVEPOINT s; {many}"), "ROLLBACK TO s"),
            (format!("BEGIN; SAVEPOINT s; {many}"), "SELECT 1/0"),
            (
                "BEGIN; INSERT INTO t VALUES (1), (2), (3)".to_owned(),
                "ROLLBACK",
            ),
            (
                "SELECT 1".to_owned(),
                "INSERT INTO t VALUES (1), (2), (3), (1)",
            ),
        ] {
            ask(&mut s, &mut c, &before).await;
            ask(&mut s, &mut c, end).await;
            ask(&mut s, &mut c, "ROLLBACK TO s").await;
            assert_eq!(undoing(&mut s, &mut c).await, "0", "{end}");
            ask(&mut s, &mut c, "ROLLBACK").await;
        }
    });
}

#[test]
fn who_ends_a_session_waits_for_what_is_undone_behind_it() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let many = "BEGIN; INSERT INTO t SELECT g FROM generate_series(1, 10000) g; ROLLBACK";
        ask(&mut s, &mut c, many).await;
        // A second one begins to be undone only when the first is.
        assert_eq!(undoing(&mut o, &mut oc).await, "1");
        ask(&mut s, &mut c, many).await;
        assert_eq!(undoing(&mut o, &mut oc).await, "1");
        s.undo_all().await;
        assert_eq!(undoing(&mut o, &mut oc).await, "0");
        s.close();
        let said = ask(&mut o, &mut oc, "INSERT INTO t VALUES (1)").await;
        assert_eq!(said, ["INSERT 0 1"]);
    });
}

#[test]
fn a_time_limit_is_looked_at_after_each_row_whose_keys_are_computed() {
    undone_behind(async |worker| {
        let insert = "INSERT INTO t SELECT g FROM generate_series(1, 900) g";
        let (mut s, mut c) = (session(&worker), Script::default());
        let work = worker.task(async {
            let table = "CREATE TABLE t (a int); CREATE INDEX computed ON t ((a + 1)); SET statement_timeout = '100ms'";
            ask(&mut s, &mut c, table).await;
            // All of them are one batch.
            let computing = ask(&mut s, &mut c, insert).await;
            ask(&mut s, &mut c, "DROP INDEX computed").await;
            (computing, ask(&mut s, &mut c, insert).await)
        });
        let (computing, plain) = work.await;
        assert!(computing[0].contains("statement timeout"), "{computing:?}");
        assert_eq!(plain, ["INSERT 0 900"]);
    });
}
