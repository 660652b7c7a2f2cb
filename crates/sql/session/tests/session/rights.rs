//! What a role may do is asked again after a wait, and privileges that two change at once are those of both.

use super::{Script, ask, run, session};
use logstead_sql_session::Session;
use std::time::Duration;

/// Starts `text` in one session, which has to wait, lets the other do `meanwhile`, and gives what the first one hears.
async fn after(
    (session, client): (&mut Session, &mut Script),
    text: &str,
    (other, others): (&mut Session, &mut Script),
    meanwhile: &str,
) -> Vec<String> {
    let mut waiting = Box::pin(ask(session, client, text));
    let early = tokio::time::timeout(Duration::from_millis(30), &mut waiting).await;
    assert!(early.is_err(), "{text} does not wait: {early:?}");
    ask(other, others, meanwhile).await;
    waiting.await
}

#[test]
fn two_grants_that_waited_are_both_there() {
    run(async |worker| {
        let (mut a, mut b, mut c) = (session(&worker), session(&worker), session(&worker));
        let (mut ca, mut cb, mut cc) = (Script::default(), Script::default(), Script::default());
        let text = "CREATE ROLE one; CREATE ROLE two; CREATE ROLE gone; CREATE TABLE t (a int); GRANT UPDATE ON t TO one";
        ask(&mut a, &mut ca, text).await;
        // Whoever drops a role keeps all privileges as they are.
        ask(&mut a, &mut ca, "BEGIN; DROP ROLE gone").await;
        let first = ask(&mut b, &mut cb, "GRANT SELECT ON t TO one");
        let second = ask(&mut c, &mut cc, "GRANT SELECT ON t TO two");
        let end = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            ask(&mut a, &mut ca, "COMMIT").await
        };
        let (first, second, _) = tokio::join!(first, second, end);
        let granted = [first, second].into_iter().flatten();
        let granted = granted.filter(|said| said == "GRANT").count();
        let text = "SELECT has_table_privilege('one', 't', 'select')::int + has_table_privilege('two', 't', 'select')::int";
        let said = ask(&mut b, &mut cb, text).await;
        assert_eq!(said[1], granted.to_string(), "one has undone the other");
        assert!(granted >= 1);
    });
}

#[test]
fn a_grant_that_waited_does_not_bring_the_old_owner_back() {
    run(async |worker| {
        let (mut a, mut b) = (session(&worker), session(&worker));
        let (mut ca, mut cb) = (Script::default(), Script::default());
        let text = "CREATE ROLE one; CREATE ROLE two; CREATE ROLE gone; CREATE TABLE t (a int)";
        ask(&mut a, &mut ca, text).await;
        ask(
            &mut a,
            &mut ca,
            "BEGIN; DROP ROLE gone; ALTER TABLE t OWNER TO two",
        )
        .await;
        let said = after(
            (&mut b, &mut cb),
            "GRANT SELECT ON t TO one",
            (&mut a, &mut ca),
            "COMMIT",
        )
        .await;
        assert_eq!(said, ["GRANT"]);
        let text = "SELECT relowner::regrole::text, has_table_privilege('one', 't', 'select') FROM pg_class WHERE relname = 't'";
        assert_eq!(ask(&mut b, &mut cb, text).await[1], "two|t");
    });
}

#[test]
fn copy_asks_again_when_it_has_waited() {
    run(async |worker| {
        let (mut a, mut b) = (session(&worker), session(&worker));
        let (mut ca, mut cb) = (Script::default(), Script::default());
        ask(
            &mut a,
            &mut ca,
            "CREATE ROLE one; CREATE TABLE t (a int); GRANT INSERT ON t TO one",
        )
        .await;
        ask(&mut b, &mut cb, "SET ROLE one").await;
        ask(
            &mut a,
            &mut ca,
            "BEGIN; LOCK TABLE t; REVOKE INSERT ON t FROM one",
        )
        .await;
        let said = after(
            (&mut b, &mut cb),
            "COPY t FROM STDIN",
            (&mut a, &mut ca),
            "COMMIT",
        )
        .await;
        assert_eq!(said, ["ERROR 42501: permission denied for table t"]);
    });
}

#[test]
fn what_is_made_in_a_schema_that_goes_is_refused() {
    run(async |worker| {
        let (mut a, mut b) = (session(&worker), session(&worker));
        let (mut ca, mut cb) = (Script::default(), Script::default());
        ask(&mut a, &mut ca, "CREATE SCHEMA s").await;
        ask(&mut a, &mut ca, "BEGIN; DROP SCHEMA s").await;
        let text = "CREATE TYPE s.e AS ENUM ('a')";
        let said = after((&mut b, &mut cb), text, (&mut a, &mut ca), "ROLLBACK").await;
        assert_eq!(said, ["CREATE TYPE"]);
        ask(&mut a, &mut ca, "BEGIN; DROP SCHEMA s CASCADE").await;
        let text = "CREATE TABLE s.t (a int)";
        let said = after((&mut b, &mut cb), text, (&mut a, &mut ca), "COMMIT").await;
        assert_eq!(said, ["ERROR 3F000: schema \"s\" does not exist"]);
    });
}

#[test]
fn secrets_are_shown_through_a_view_whose_owner_may_see_them() {
    run(async |worker| {
        let (mut a, mut c) = (session(&worker), Script::default());
        let text = "CREATE ROLE one; CREATE VIEW names AS SELECT rolname FROM pg_authid WHERE rolname = 'postgres';
             GRANT SELECT ON names TO one; GRANT ALL ON SCHEMA public TO one; SET ROLE one;
             CREATE VIEW mine AS SELECT rolname FROM pg_authid";
        ask(&mut a, &mut c, text).await;
        assert_eq!(
            ask(&mut a, &mut c, "SELECT * FROM names").await[1],
            "postgres"
        );
        for (text, table) in [
            ("SELECT rolpassword FROM pg_authid", "table pg_authid"),
            ("SELECT passwd FROM pg_shadow", "view pg_shadow"),
            ("SELECT * FROM mine", "table pg_authid"),
            (
                "COPY (SELECT 1 FROM pg_authid) TO STDOUT",
                "table pg_authid",
            ),
            ("COPY pg_authid TO STDOUT", "table pg_authid"),
            (
                "DECLARE c CURSOR WITH HOLD FOR SELECT 1 FROM pg_authid",
                "table pg_authid",
            ),
            (
                "CREATE TABLE k AS SELECT * FROM pg_authid",
                "table pg_authid",
            ),
            (
                "CREATE MATERIALIZED VIEW k AS SELECT rolpassword FROM pg_authid",
                "table pg_authid",
            ),
            ("EXPLAIN ANALYZE SELECT * FROM pg_authid", "table pg_authid"),
            (
                "PREPARE p AS SELECT * FROM pg_authid; EXECUTE p",
                "table pg_authid",
            ),
            ("SELECT (SELECT count(*) FROM pg_authid)", "table pg_authid"),
            (
                "SELECT 1 WHERE EXISTS (SELECT * FROM pg_shadow)",
                "view pg_shadow",
            ),
        ] {
            let said = ask(&mut a, &mut c, text).await;
            let denied = format!("ERROR 42501: permission denied for {table}");
            assert_eq!(said.last(), Some(&denied), "{text}");
        }
        let text = "RESET ROLE; ALTER VIEW names SET (security_invoker = true); SET ROLE one";
        ask(&mut a, &mut c, text).await;
        let said = ask(&mut a, &mut c, "SELECT * FROM names").await;
        assert_eq!(said, ["ERROR 42501: permission denied for table pg_authid"]);
    });
}
