//! What the views of the commit path tell.

use super::{Script, ask, run, session};

#[test]
fn lanes_count_what_they_did() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int)").await;
        s.settle().await.unwrap();
        let text = "SELECT commits, entries FROM logstead_commit";
        let figures = async |s: &mut _, c: &mut _| -> Vec<u64> {
            let said: Vec<String> = ask(s, c, text).await;
            said[1].split('|').map(|n| n.parse().unwrap()).collect()
        };
        let before = figures(&mut s, &mut c).await;
        for i in 0..10 {
            ask(&mut s, &mut c, &format!("INSERT INTO t VALUES ({i})")).await;
            s.settle().await.unwrap();
        }
        let after = figures(&mut s, &mut c).await;
        assert_eq!(after[0] - before[0], 10, "commits");
        assert_eq!(after[1] - before[1], 10, "entries");
        let said = ask(
            &mut s,
            &mut c,
            "SELECT protocol, tracking, queue, lane, workers, flushes = flushes_inline + flushes_handed_off, \
             payload_bytes < bytes, waits_none + waits_horizon + waits_gsn + waits_predecessor = commits \
             FROM pg_catalog.logstead_commit",
        )
        .await;
        assert_eq!(said[1], "grouped-lanes|exact|lock-free|0|1|t|t|t");
        assert_eq!(said.len(), 3, "one lane");
    });
}

#[test]
fn what_is_in_force_and_whether_it_adapts() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let said = ask(
            &mut s,
            &mut c,
            "SELECT what, value, reason, decided_at IS NULL, value_before IS NULL \
             FROM logstead_adaptive",
        )
        .await;
        assert_eq!(
            said[1..6],
            [
                "lanes|1|in force; fixed|t|t",
                "flush_unit|16384|in force; fixed|t|t",
                "lane_buffer|1048576|in force; fixed|t|t",
                "flush_timeout|1000|in force; fixed|t|t",
                "flush_gather_delay|0|in force; fixed|t|t",
            ]
        );
        assert_eq!(said.len(), 7, "nothing is decided about a home in memory");
    });
}

#[test]
fn latencies_of_every_phase() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "CREATE TABLE t (a int)").await;
        s.settle().await.unwrap();
        let said = ask(
            &mut s,
            &mut c,
            "SELECT phase, count > 0, p50_us <= p90_us AND p90_us <= p99_us AND p99_us <= p99_9_us AND p99_9_us <= max_us \
             FROM logstead_commit_latency WHERE phase <> 'acknowledgment'",
        )
        .await;
        assert_eq!(
            said[1..5],
            [
                "execution|t|t",
                "lane wait|t|t",
                "flush|t|t",
                "dependency wait|t|t"
            ]
        );
        let said = ask(
            &mut s,
            &mut c,
            "SELECT count(*) FROM logstead_commit_latency WHERE count = 0 AND p50_us IS NOT NULL",
        )
        .await;
        assert_eq!(said[1], "0", "no quantile of nothing");
    });
}
