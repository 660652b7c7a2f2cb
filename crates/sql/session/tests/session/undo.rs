//! What is undone behind a session, by a clock that goes on whenever somebody looks at it: how much is undone before
//! the answer is the same on every machine.

use super::turns::run;
use super::{Script, ask, session};
use logstead_sql_session::{Session, WorkerSessions};
use std::rc::Rc;

/// A worker on which somebody undoes behind sessions.
fn undone_behind(conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    run(async |worker| {
        let undoer = Rc::clone(&worker).undo_in_background();
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

/// How many writes are left to undo.
async fn left(session: &mut Session, client: &mut Script) -> u64 {
    let asked = "SELECT sum(writes_to_undo) FROM logstead_workers";
    let said = ask(session, client, asked).await;
    said[1].parse().unwrap()
}

/// Comes back when all is undone behind sessions.
async fn until_undone(session: &mut Session, client: &mut Script) {
    for _ in 0..1000 {
        if undoing(session, client).await == "0" {
            return;
        }
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
    }
    panic!("it is not undone");
}

/// Asks a session's statement to end when the others have had so many turns.
fn cancel_after(session: &Session, turns: usize) {
    let signals = session.signals();
    tokio::task::spawn_local(async move {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        signals.cancel();
    });
}

const MANY: &str = "INSERT INTO t SELECT g FROM generate_series(1, 10000) g";

const IN_FAILED_BLOCK: &str =
    "ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block";
const CANCELLED: &str = "ERROR 57014: canceling statement due to user request";

#[test]
fn what_failed_behind_a_savepoint_is_undone_after_the_answer() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let begin = format!("BEGIN; INSERT INTO t VALUES (0); SAVEPOINT s; {MANY}");
        for (failed, heard, undone) in [
            ("ROLLBACK TO s; SELECT count(*) FROM t; COMMIT", "1", "0"),
            ("ROLLBACK", "ROLLBACK", "1"),
            ("COMMIT", "ROLLBACK", "1"),
            ("PREPARE TRANSACTION 'p'", "ROLLBACK", "1"),
            ("SELECT 1", IN_FAILED_BLOCK, "1"),
            ("RELEASE s", IN_FAILED_BLOCK, "1"),
            ("SAVEPOINT s2", IN_FAILED_BLOCK, "1"),
            (
                "ROLLBACK TO nobody",
                "ERROR 3B001: savepoint \"nobody\" does not exist",
                "1",
            ),
        ] {
            ask(&mut s, &mut c, &begin).await;
            let said = ask(&mut s, &mut c, "SELECT 1/0").await;
            assert_eq!(said.last().unwrap(), "ERROR 22012: division by zero");
            assert_eq!(s.status(), b'E');
            assert!(left(&mut o, &mut oc).await > 9_000, "few are undone");
            assert_eq!(undoing(&mut o, &mut oc).await, "1");
            let said = ask(&mut s, &mut c, failed).await;
            assert!(said.iter().any(|said| said == heard), "{failed}: {said:?}");
            assert_eq!(undoing(&mut o, &mut oc).await, undone, "{failed}");
            assert_eq!(left(&mut o, &mut oc).await > 0, undone == "1", "{failed}");
            ask(&mut s, &mut c, "ROLLBACK").await;
            // What was committed is the row in front of the savepoint.
            let said = ask(&mut s, &mut c, "DELETE FROM t").await;
            let rows = u8::from(failed.ends_with("COMMIT") && undone == "0");
            assert_eq!(said, [format!("DELETE {rows}")], "{failed}");
        }
    });
}

#[test]
fn a_part_that_is_undone_is_as_it_was_at_its_savepoint() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        for statement in [
            "CREATE TABLE p (a int PRIMARY KEY, b text, c int UNIQUE)",
            "CREATE INDEX p_b ON p ((b || 'x'))",
            "CREATE TABLE f (a int REFERENCES p, b int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
            "INSERT INTO p SELECT g, 'b' || g, g FROM generate_series(1, 1000) g",
            "INSERT INTO f VALUES (1, 2)",
            "SET enable_seqscan = off",
        ] {
            ask(&mut s, &mut c, statement).await;
        }
        let begin = "BEGIN; DECLARE old CURSOR FOR SELECT c FROM p ORDER BY a; FETCH old; \
             INSERT INTO f VALUES (3, 4); SAVEPOINT s";
        let part = "UPDATE p SET b = 'other', c = -c; DELETE FROM f; DELETE FROM p; \
             CREATE TABLE made AS SELECT 1 AS a; CREATE TEMP TABLE own (a int); \
             INSERT INTO p SELECT g, 'new', -g FROM generate_series(1, 2000) g; \
             INSERT INTO f VALUES (1, 7000); DECLARE new CURSOR FOR SELECT 1";
        for all in [false, true] {
            ask(&mut s, &mut c, begin).await;
            ask(&mut s, &mut c, part).await;
            ask(&mut s, &mut c, "SELECT 1/0").await;
            assert_eq!(undoing(&mut o, &mut oc).await, "1");
            if all {
                // None of it is left for ROLLBACK TO.
                until_undone(&mut o, &mut oc).await;
                assert_eq!(s.status(), b'E');
            }
            let said = ask(&mut s, &mut c, "ROLLBACK TO s; FETCH old").await;
            assert_eq!(said[0], "ROLLBACK");
            assert!(said.iter().any(|said| said == "2"), "{said:?}");
            let asked = "SELECT count(*), sum(c), count(DISTINCT b), to_regclass('made'), to_regclass('own') FROM p";
            let said = ask(&mut s, &mut c, asked).await;
            assert_eq!(said[1], "1000|500500|1000|-|-", "{said:?}");
            for (asked, heard) in [
                ("SELECT a FROM p WHERE b || 'x' = 'b77x'", "77"),
                ("SELECT count(*) FROM p WHERE b || 'x' = 'otherx'", "0"),
                ("SELECT a FROM p WHERE c = 78", "78"),
                ("SELECT count(*) FROM p WHERE c < 0", "0"),
                ("SELECT count(*) FROM f", "2"),
            ] {
                let said = ask(&mut s, &mut c, asked).await;
                assert_eq!(said[1], heard, "{asked}: {said:?}");
            }
            // Names and keys are free, rows that are referenced are there.
            let again = "CREATE TABLE made (a int); CREATE TEMP TABLE own (a int); \
                 DECLARE new CURSOR FOR SELECT 1; INSERT INTO p VALUES (1001, 'new', -1); \
                 INSERT INTO f VALUES (5, 6); DELETE FROM p WHERE a = 1001";
            let said = ask(&mut s, &mut c, again).await;
            assert!(!said.iter().any(|said| said.contains("ERROR")), "{said:?}");
            let refused = ask(
                &mut s,
                &mut c,
                "SAVEPOINT t; DELETE FROM p WHERE a = 3; ROLLBACK TO t",
            )
            .await;
            assert!(
                refused.iter().any(|said| said.contains("23503")),
                "{refused:?}"
            );
            ask(&mut s, &mut c, "ROLLBACK TO t").await;
            // The row that nothing stands for was undone: nothing is left to check.
            let said = ask(&mut s, &mut c, "DROP TABLE made, own; COMMIT").await;
            assert_eq!(said, ["DROP TABLE", "COMMIT"]);
            let said = ask(&mut o, &mut oc, "SELECT count(*), sum(a) FROM f").await;
            assert_eq!(said[1], "3|9", "{said:?}");
            ask(&mut s, &mut c, "DELETE FROM f WHERE a > 1").await;
        }
    });
}

#[test]
fn locks_since_the_savepoint_are_free_when_the_part_is_undone() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(
            &mut s,
            &mut c,
            "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE before (a int); CREATE TABLE since (a int); \
             INSERT INTO t VALUES (0)",
        )
        .await;
        let begin = format!(
            "BEGIN; LOCK TABLE before; SELECT pg_advisory_xact_lock(1); SAVEPOINT s; LOCK TABLE since; \
             SELECT pg_advisory_xact_lock(2); SELECT * FROM t FOR UPDATE; {MANY}"
        );
        ask(&mut s, &mut c, &begin).await;
        ask(&mut s, &mut c, "SELECT 1/0").await;
        let free = async |o: &mut Session, oc: &mut Script| {
            let mut free = Vec::new();
            for asked in [
                "LOCK TABLE since NOWAIT",
                "SELECT 1 / pg_try_advisory_xact_lock(2)::int",
                "SELECT * FROM t FOR UPDATE NOWAIT",
                "LOCK TABLE before NOWAIT",
                "SELECT 1 / pg_try_advisory_xact_lock(1)::int",
            ] {
                let said = ask(o, oc, &format!("BEGIN; {asked}")).await;
                free.push(!said.iter().any(|said| said.contains("ERROR")));
                ask(o, oc, "ROLLBACK").await;
            }
            free
        };
        for _ in 0..2 {
            assert_eq!(free(&mut o, &mut oc).await, [false; 5]);
            // Another error in the failed block gives nothing back.
            ask(&mut s, &mut c, "SELECT 1").await;
        }
        assert_eq!(undoing(&mut o, &mut oc).await, "1");
        until_undone(&mut o, &mut oc).await;
        let now = [true, true, true, false, false];
        assert_eq!(free(&mut o, &mut oc).await, now);
        // Nor does it now.
        ask(&mut s, &mut c, "SELECT 1").await;
        assert_eq!(free(&mut o, &mut oc).await, now);
        ask(&mut s, &mut c, "ROLLBACK").await;
        assert_eq!(free(&mut o, &mut oc).await, [true; 5]);
    });
}

#[test]
fn a_snapshot_is_kept_while_a_part_is_undone_only_if_it_must() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        ask(&mut s, &mut c, "CREATE TABLE u (a int)").await;
        let engine = &worker.instance.engine;
        for (begin, kept) in [
            ("BEGIN", false),
            ("BEGIN ISOLATION LEVEL REPEATABLE READ", true),
            (
                "BEGIN; DECLARE old CURSOR FOR SELECT g, random() FROM generate_series(1, 9) g; FETCH old",
                false,
            ),
        ] {
            let part = format!("{begin}; SELECT count(*) FROM u; SAVEPOINT s; {MANY}");
            ask(&mut s, &mut c, &part).await;
            let fails = "SELECT 1 / (count(*) - count(*)) FROM u";
            ask(&mut s, &mut c, fails).await;
            ask(&mut o, &mut oc, "INSERT INTO u VALUES (1)").await;
            assert_eq!(
                engine.oldest_snapshot() < engine.next_csn(),
                kept,
                "{begin}"
            );
            assert_eq!(undoing(&mut o, &mut oc).await, "1");
            let said = ask(
                &mut s,
                &mut c,
                "ROLLBACK TO s; SELECT count(*) - (SELECT count(*) FROM t) FROM u",
            )
            .await;
            let rows = ask(&mut o, &mut oc, "SELECT count(*) FROM u").await;
            assert_eq!(said[2] == rows[1], !kept, "{begin}: {said:?}");
            ask(&mut s, &mut c, "ROLLBACK").await;
        }
    });
}

#[test]
fn a_rollback_to_a_savepoint_can_be_cancelled_and_comes_again() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let more = "INSERT INTO t SELECT g FROM generate_series(10001, 10050) g";
        let begin =
            format!("BEGIN; INSERT INTO t VALUES (0); SAVEPOINT a; {MANY}; SAVEPOINT b; {more}");
        for fails in [false, true] {
            ask(&mut s, &mut c, &begin).await;
            if fails {
                ask(&mut s, &mut c, "SELECT 1/0").await;
            }
            cancel_after(&s, 100);
            let said = ask(&mut s, &mut c, "ROLLBACK TO a").await;
            assert_eq!(said, [CANCELLED]);
            assert_eq!(s.status(), b'E');
            let (undoing, left) = (undoing(&mut o, &mut oc).await, left(&mut o, &mut oc).await);
            assert_eq!(undoing, "1");
            assert!(
                (5_000..9_990).contains(&left),
                "{left}: what was undone is not lost"
            );
            // The later savepoint is gone with a part of what stood in front of it.
            let said = ask(&mut s, &mut c, "ROLLBACK TO b").await;
            assert_eq!(said, ["ERROR 3B001: savepoint \"b\" does not exist"]);
            let again = "ROLLBACK TO a; SELECT count(*) FROM t; INSERT INTO t VALUES (1); COMMIT; DELETE FROM t";
            let said = ask(&mut s, &mut c, again).await;
            assert_eq!(said[2], "1", "{said:?}");
            assert_eq!(said[said.len() - 3..], ["INSERT 0 1", "COMMIT", "DELETE 2"]);
        }
    });
}

#[test]
fn the_time_limit_of_a_rollback_to_a_savepoint_is_the_one_that_it_restores() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        // By the clock that goes on whenever somebody looks at it; no timer fires so soon.
        let limit = "SET statement_timeout = '2s'";
        let none = "SET statement_timeout = 0";
        ask(
            &mut s,
            &mut c,
            &format!("BEGIN; SAVEPOINT s; {MANY}; {limit}"),
        )
        .await;
        assert_eq!(ask(&mut s, &mut c, "ROLLBACK TO s").await, ["ROLLBACK"]);
        ask(
            &mut s,
            &mut c,
            &format!("{limit}; SAVEPOINT s; {none}; {MANY}"),
        )
        .await;
        let said = ask(&mut s, &mut c, "ROLLBACK TO s").await;
        let timed_out = "ERROR 57014: canceling statement due to statement timeout";
        assert_eq!(said, [timed_out]);
        assert_eq!(undoing(&mut o, &mut oc).await, "1");
        // As a whole it is undone behind the session, which has no time limit.
        assert_eq!(ask(&mut s, &mut c, "ROLLBACK").await, ["ROLLBACK"]);
        let said = ask(&mut s, &mut c, "INSERT INTO t VALUES (1)").await;
        assert_eq!(said, ["INSERT 0 1"]);
    });
}

#[test]
fn who_leaves_a_failed_block_waits_for_all_of_its_undoing() {
    undone_behind(async |worker| {
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut o, &mut oc, "CREATE TABLE t (a int PRIMARY KEY)").await;
        for orderly in [true, false] {
            let (mut s, mut c) = (session(&worker), Script::default());
            let begin = format!("BEGIN; INSERT INTO t VALUES (0); SAVEPOINT s; {MANY}");
            ask(&mut s, &mut c, &begin).await;
            ask(&mut s, &mut c, "SELECT 1/0").await;
            assert_eq!(undoing(&mut o, &mut oc).await, "1");
            if orderly {
                s.undo_all().await;
                s.close();
            } else {
                drop(s);
            }
            assert_eq!(undoing(&mut o, &mut oc).await, "0");
            assert_eq!(left(&mut o, &mut oc).await, 0);
            let said = ask(
                &mut o,
                &mut oc,
                "INSERT INTO t VALUES (0), (1); DELETE FROM t",
            )
            .await;
            assert_eq!(said, ["INSERT 0 2", "DELETE 2"]);
        }
    });
}

/// A body whose inner block writes much and fails; `error` is evaluated then, and `handler` takes it.
fn body(error: &str, handler: &str) -> String {
    format!(
        "DO $$ BEGIN
           INSERT INTO t VALUES (-1);
           BEGIN
             BEGIN
               {MANY};
               PERFORM {error};
             EXCEPTION WHEN unique_violation THEN INSERT INTO t VALUES (-2);
             END;
           EXCEPTION WHEN {handler} THEN INSERT INTO t VALUES (-3);
           END;
         END $$"
    )
}

/// A request to end the statement that comes with the error of another division.
const CANCEL_AND_FAIL: &str = "1 / (pg_cancel_backend(pg_backend_pid())::int - 1)";

#[test]
fn an_error_of_a_body_is_undone_before_its_handler_or_after_the_answer() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let divided = "ERROR 22012: division by zero";
        for (error, handler, heard) in [
            ("1/0", "division_by_zero", "DO"),
            ("1/0", "unique_violation", divided),
            // Nobody takes the request.
            (CANCEL_AND_FAIL, "division_by_zero", CANCELLED),
            (CANCEL_AND_FAIL, "unique_violation", divided),
            (
                "pg_cancel_backend(pg_backend_pid())",
                "division_by_zero",
                CANCELLED,
            ),
            // It is asked for once, and undone then.
            (
                "pg_cancel_backend(pg_backend_pid())",
                "query_canceled",
                "DO",
            ),
        ] {
            for block in ["", "BEGIN; INSERT INTO t VALUES (0); SAVEPOINT s"] {
                let case = format!("{error}, {handler}, {block}");
                ask(&mut s, &mut c, block).await;
                let said = ask(&mut s, &mut c, &body(error, handler)).await;
                assert!(said[0].starts_with(heard), "{case}: {said:?}");
                let handled = heard == "DO";
                let undone = undoing(&mut o, &mut oc).await;
                assert_eq!(undone, if handled { "0" } else { "1" }, "{case}");
                assert_eq!(left(&mut o, &mut oc).await > 9_000, !handled, "{case}");
                if !block.is_empty() {
                    assert_eq!(s.status(), if handled { b'T' } else { b'E' }, "{case}");
                    let back = match handled {
                        true => "COMMIT",
                        false => "ROLLBACK TO s; COMMIT",
                    };
                    ask(&mut s, &mut c, back).await;
                }
                let said = ask(&mut s, &mut c, "SELECT count(*), sum(a) FROM t").await;
                let rows = match (handled, block.is_empty()) {
                    (true, true) => "2|-4",
                    (true, false) => "3|-4",
                    (false, true) => "0|-",
                    (false, false) => "1|0",
                };
                assert_eq!(said[1], rows, "{case}");
                ask(&mut s, &mut c, "DELETE FROM t").await;
            }
        }
    });
}

#[test]
fn a_block_whose_body_was_cancelled_while_it_was_undone_holds_nothing() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        let tables = "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE u (a int)";
        ask(&mut s, &mut c, tables).await;
        for error in [CANCEL_AND_FAIL, "pg_cancel_backend(pg_backend_pid())"] {
            ask(&mut s, &mut c, "BEGIN; LOCK TABLE u").await;
            ask(&mut s, &mut c, &body(error, "division_by_zero")).await;
            assert_eq!(undoing(&mut o, &mut oc).await, "1");
            until_undone(&mut o, &mut oc).await;
            assert_eq!(s.status(), b'E');
            let said = ask(&mut o, &mut oc, "BEGIN; LOCK TABLE u NOWAIT; ROLLBACK").await;
            assert_eq!(said, ["BEGIN", "LOCK TABLE", "ROLLBACK"], "{error}");
            ask(&mut s, &mut c, "ROLLBACK").await;
        }
    });
}

#[test]
fn a_request_that_comes_while_a_block_is_undone_goes_to_the_next_handler() {
    undone_behind(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        let body = format!(
            "DO $$ BEGIN
               BEGIN
                 BEGIN
                   SET LOCAL search_path = elsewhere, public;
                   PERFORM pg_advisory_xact_lock(3);
                   {MANY};
                   PERFORM {CANCEL_AND_FAIL};
                 EXCEPTION WHEN division_by_zero THEN INSERT INTO t VALUES (-1);
                 END;
               EXCEPTION WHEN query_canceled THEN INSERT INTO t VALUES (-2);
               END;
             END $$"
        );
        let rest = "SELECT array_agg(a), current_setting('search_path') FROM t";
        let said = ask(
            &mut s,
            &mut c,
            &format!("BEGIN; SAVEPOINT s; {body}; {rest}"),
        )
        .await;
        assert_eq!(said[2], "DO", "{said:?}");
        assert_eq!(said[4], "{-2}|\"$user\", public", "{said:?}");
        assert_eq!(undoing(&mut o, &mut oc).await, "0");
        let said = ask(&mut o, &mut oc, "SELECT pg_try_advisory_lock(3)").await;
        assert_eq!(said[1], "t", "what was locked was given back");
        let said = ask(&mut s, &mut c, "RELEASE s; COMMIT; TABLE t").await;
        assert_eq!(said[3], "-2", "{said:?}");
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
fn each_transaction_has_a_place_of_its_own_among_the_long_statements() {
    undone_behind(async |worker| {
        let (mut o, mut oc) = (session(&worker), Script::default());
        ask(&mut o, &mut oc, "CREATE TABLE t (a int)").await;
        let long = "SELECT count(*) FROM generate_series(1, 20000) a";
        let before = worker.long_turns();
        ask(&mut o, &mut oc, long).await;
        let alone = worker.long_turns() - before;
        assert!(alone >= 50, "{alone} turns");
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let (mut s, mut c) = (session(&worker), Script::default());
            ask(&mut s, &mut c, &format!("BEGIN; {MANY}; ROLLBACK")).await;
            sessions.push(s);
        }
        let before = worker.long_turns();
        ask(&mut o, &mut oc, long).await;
        let beside = worker.long_turns() - before;
        assert_eq!(undoing(&mut o, &mut oc).await, "2");
        // One of three turns is the statement's.
        assert!(
            2 * beside > 5 * alone,
            "{beside} turns, {alone} of them its own"
        );
        for mut s in sessions {
            s.undo_all().await;
        }
        assert_eq!(undoing(&mut o, &mut oc).await, "0");
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
fn who_ends_a_session_of_a_server_that_stops_leaves_the_undoing() {
    undone_behind(async |worker| {
        let (mut o, mut oc) = (session(&worker), Script::default());
        let tables = "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE u (a int)";
        ask(&mut o, &mut oc, tables).await;
        let (mut waiting, mut c) = (session(&worker), Script::default());
        ask(&mut waiting, &mut c, &format!("BEGIN; {MANY}; ROLLBACK")).await;
        let ended = tokio::task::spawn_local(async move {
            waiting.undo_all().await;
            waiting.close();
        });
        let (mut failed, mut c) = (session(&worker), Script::default());
        let part = format!("BEGIN; SAVEPOINT s; {}", MANY.replace("INTO t", "INTO u"));
        ask(&mut failed, &mut c, &part).await;
        ask(&mut failed, &mut c, "SELECT 1/0").await;
        assert!(!ended.is_finished());
        worker.instance.stop();
        failed.undo_all().await;
        failed.close();
        ended.await.unwrap();
        assert_eq!(undoing(&mut o, &mut oc).await, "2");
        assert!(left(&mut o, &mut oc).await > 15_000);
        assert_eq!(worker.instance.session_count(), 1);
        // Who has the time goes on.
        until_undone(&mut o, &mut oc).await;
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
