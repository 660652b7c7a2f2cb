//! Who waits for whom, as the others see it.

use super::{Env, MemoryHome, Script, ask, converse_with, run, session, worker_with};
use logstead_engine::EngineOptions;
use logstead_home::LogHome;
use logstead_sql_session::Session;
use std::time::Duration;

/// What `watcher` hears when it asks `text` while `waiting` waits in `statement`.
async fn while_waiting(
    (waiting, client): (&mut Session, &mut Script),
    statement: &str,
    (watcher, watchers): (&mut Session, &mut Script),
    text: &str,
    (holder, holders): (&mut Session, &mut Script),
) -> Vec<String> {
    let mut blocked = Box::pin(ask(waiting, client, statement));
    let early = tokio::time::timeout(Duration::from_millis(30), &mut blocked).await;
    assert!(early.is_err(), "{statement} does not wait: {early:?}");
    let said = ask(watcher, watchers, text).await;
    ask(holder, holders, "ROLLBACK").await;
    let heard = blocked.await;
    assert!(
        !heard.iter().any(|line| line.starts_with("ERROR")),
        "{heard:?}"
    );
    said
}

#[test]
fn who_is_in_the_way_and_of_what() {
    run(async |worker| {
        let (mut a, mut b, mut c) = (session(&worker), session(&worker), session(&worker));
        let (mut ca, mut cb, mut cc) = (Script::default(), Script::default(), Script::default());
        ask(
            &mut a,
            &mut ca,
            "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)",
        )
        .await;
        let (holder, waiter) = (a.key().0, b.key().0);
        let text = format!(
            "SELECT pg_blocking_pids({waiter}), pg_isolation_test_session_is_blocked({waiter}, '{{{holder}}}'), \
             pg_isolation_test_session_is_blocked({waiter}, '{{1}}'), pg_blocking_pids({holder}), wait_event_type, wait_event \
             FROM pg_stat_activity WHERE pid = {waiter}"
        );
        for (holds, waits, event) in [
            ("UPDATE t SET a = 1", "UPDATE t SET a = 1", "transactionid"),
            (
                "INSERT INTO t VALUES (2)",
                "INSERT INTO t VALUES (2)",
                "transactionid",
            ),
            (
                "SELECT * FROM t FOR SHARE",
                "DELETE FROM t WHERE a = 7 OR a = 1",
                "transactionid",
            ),
            ("LOCK TABLE t", "SELECT * FROM t", "relation"),
            // Many may hold a weak lock.
            (
                "SELECT * FROM t",
                "ALTER TABLE t ADD COLUMN b int",
                "relation",
            ),
            (
                "SELECT pg_advisory_xact_lock(7)",
                "SELECT pg_advisory_xact_lock_shared(7)",
                "advisory",
            ),
        ] {
            ask(&mut a, &mut ca, "BEGIN").await;
            ask(&mut a, &mut ca, holds).await;
            // As the connection does when it waits for its client.
            a.waits_for_client();
            let watched = ((&mut c, &mut cc), (&mut a, &mut ca));
            let said = while_waiting((&mut b, &mut cb), waits, watched.0, &text, watched.1).await;
            assert_eq!(
                said[1],
                format!("{{{holder}}}|t|f|{{}}|Lock|{event}"),
                "{waits}"
            );
            a.waits_for_client();
            b.waits_for_client();
        }
        let said = ask(&mut c, &mut cc, &text).await;
        assert_eq!(said[1], "{}|f|f|{}|Client|ClientRead");
        let said = ask(&mut c, &mut cc, "SELECT pg_terminate_backend(1, -1)").await;
        let refused = "ERROR 22003: \"timeout\" must not be negative";
        assert_eq!(said.last().map(String::as_str), Some(refused));
    });
}

/// Who has a deferred unique key first commits at once, though he could not look whether anybody else has it when he
/// wrote: what was not in memory.
#[test]
fn who_has_a_deferred_key_first_waits_for_nobody() {
    for absent_one_in in [2, 3] {
        let worker = || {
            let options = EngineOptions {
                absent_one_in,
                ..EngineOptions::default()
            };
            let (env, _files) = Env::simulated(7);
            worker_with(options, LogHome::from(MemoryHome::new(1 << 20)), env)
        };
        converse_with(true, worker, async |worker| {
            let (mut a, mut b) = (session(&worker), session(&worker));
            let (mut ca, mut cb) = (Script::default(), Script::default());
            let table =
                "CREATE TABLE t (n int PRIMARY KEY, k int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
            ask(&mut a, &mut ca, table).await;
            for k in 0..20 {
                let (first, second) = (2 * k, 2 * k + 1);
                let inserts = |n| format!("BEGIN; INSERT INTO t VALUES ({n}, {k})");
                ask(&mut a, &mut ca, &inserts(first)).await;
                ask(&mut b, &mut cb, &inserts(second)).await;
                let committed = ask(&mut a, &mut ca, "COMMIT");
                let committed = tokio::time::timeout(Duration::from_secs(5), committed).await;
                assert_eq!(committed.as_deref(), Ok(&["COMMIT".to_owned()][..]), "{k}");
                let refused = ask(&mut b, &mut cb, "COMMIT").await;
                assert!(refused[0].starts_with("ERROR 23505"), "{k}: {refused:?}");
            }
        });
    }
}
