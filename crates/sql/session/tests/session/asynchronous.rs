//! `synchronous_commit`: who waits for the log, and for what. Nobody flushes here but the test itself.

use super::{Script, ask, converse, session, waits};
use logstead_engine::FlushMode;

#[test]
fn an_asynchronous_commit_is_acknowledged_before_it_is_durable() {
    converse(false, async |worker| {
        let (mut a, mut c) = (session(&worker), Script::default());
        ask(&mut a, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        worker.worker.flush(FlushMode::Inline);
        a.settle().await.unwrap();
        ask(&mut a, &mut c, "SET synchronous_commit = off").await;
        for i in 1..=4 {
            // From its third coming on a kind of text runs as a prepared statement would.
            let said = ask(&mut a, &mut c, &format!("INSERT INTO t VALUES ({i})")).await;
            assert_eq!(said, ["INSERT 0 1"]);
            assert!(!waits(&mut a).await);
        }
        ask(&mut a, &mut c, "BEGIN").await;
        ask(&mut a, &mut c, "UPDATE t SET a = 5 WHERE a = 4").await;
        ask(&mut a, &mut c, "COMMIT").await;
        assert!(!waits(&mut a).await);
        let said = ask(&mut a, &mut c, "SELECT count(*) FROM t").await;
        assert_eq!(said, ["columns count", "4", "SELECT 1"]);
        assert!(!waits(&mut a).await, "nor for what it reads");
        assert_eq!(worker.waiting(), 0);
        assert!(
            worker.worker.lane_dirty(),
            "all of that is in the lane only"
        );

        // Whoever did not ask for that is told only what survives.
        for text in ["SELECT a FROM t WHERE a = 5", "INSERT INTO t VALUES (1)"] {
            let mut b = session(&worker);
            ask(&mut b, &mut c, text).await;
            assert!(waits(&mut b).await, "{text}");
        }
        let mut b = session(&worker);
        ask(&mut b, &mut c, "SELECT a FROM t WHERE a = 5").await;
        worker.worker.flush(FlushMode::Inline);
        assert!(!waits(&mut b).await);
    });
}

#[test]
fn a_synchronous_commit_covers_the_asynchronous_ones_before_it() {
    converse(false, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        worker.worker.flush(FlushMode::Inline);
        s.settle().await.unwrap();
        ask(&mut s, &mut c, "SET synchronous_commit = off").await;
        ask(&mut s, &mut c, "INSERT INTO t VALUES (1)").await;
        assert!(!waits(&mut s).await);
        ask(&mut s, &mut c, "SET synchronous_commit = on").await;
        ask(&mut s, &mut c, "SELECT 1").await;
        assert!(
            waits(&mut s).await,
            "it tells nothing of the row, but comes after it"
        );
        worker.worker.flush(FlushMode::Inline);
        assert!(!waits(&mut s).await);
    });
}

#[test]
fn set_local_is_for_one_transaction() {
    converse(false, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        worker.worker.flush(FlushMode::Inline);
        s.settle().await.unwrap();
        ask(&mut s, &mut c, "BEGIN").await;
        ask(&mut s, &mut c, "SET LOCAL synchronous_commit = off").await;
        ask(&mut s, &mut c, "INSERT INTO t VALUES (1)").await;
        assert_eq!(ask(&mut s, &mut c, "COMMIT").await, ["COMMIT"]);
        assert!(!waits(&mut s).await);
        ask(&mut s, &mut c, "INSERT INTO t VALUES (2)").await;
        assert!(waits(&mut s).await);
        worker.worker.flush(FlushMode::Inline);
        s.settle().await.unwrap();
    });
}

#[test]
fn answers_under_way_keep_what_they_wait_for() {
    converse(false, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int PRIMARY KEY)").await;
        // Not sent yet.
        ask(&mut s, &mut c, "SET synchronous_commit = off").await;
        assert!(waits(&mut s).await);
        worker.worker.flush(FlushMode::Inline);
        assert!(!waits(&mut s).await);
    });
}

#[test]
fn every_word_that_postgresql_takes() {
    converse(false, async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int)").await;
        for (value, shown) in [
            ("local", "local"),
            ("remote_write", "remote_write"),
            ("remote_apply", "remote_apply"),
            ("on", "on"),
            ("TRUE", "on"),
            ("yes", "on"),
            ("1", "on"),
            ("off", "off"),
            ("false", "off"),
            ("No", "off"),
            ("0", "off"),
        ] {
            worker.worker.flush(FlushMode::Inline);
            s.settle().await.unwrap();
            ask(&mut s, &mut c, &format!("SET synchronous_commit = {value}")).await;
            let said = ask(&mut s, &mut c, "SHOW synchronous_commit").await;
            assert_eq!(said[1], shown, "{value}");
            ask(&mut s, &mut c, "INSERT INTO t VALUES (1)").await;
            assert_eq!(waits(&mut s).await, shown != "off", "{value}");
        }
        let said = ask(&mut s, &mut c, "SET synchronous_commit = maybe").await;
        assert_eq!(
            said,
            ["ERROR 22023: invalid value for parameter \"synchronous_commit\": \"maybe\""]
        );
    });
}
