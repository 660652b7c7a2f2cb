//! Whose turn it is on a worker, counted in rounds: a task that only counts is polled once in each.

use super::{Env, MemoryHome, Script, ask, converse_with, session, worker_on};
use logstead_env::{Clock, Instant};
use logstead_home::LogHome;
use logstead_sql_session::WorkerSessions;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that goes on by a millisecond whenever somebody looks at it.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn monotonic(&self) -> Instant {
        Instant::from_nanos(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }

    fn now_micros_since_2000(&self) -> i64 {
        self.0.load(Ordering::Relaxed).cast_signed() / 1000
    }
}

pub(super) fn run(conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    let (env, _files) = Env::simulated(7);
    let clock = Arc::new(Ticking::default());
    let env = Env { clock, ..env };
    let home = Arc::new(MemoryHome::new(1 << 20));
    converse_with(true, || worker_on(LogHome::from(home), env), conversation);
}

/// Counts rounds as long as it is there.
fn count_rounds() -> (Rc<Cell<u64>>, tokio::task::JoinHandle<()>) {
    let rounds = Rc::new(Cell::new(0));
    let counted = Rc::clone(&rounds);
    let task = tokio::task::spawn_local(async move {
        loop {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
        }
    });
    (rounds, task)
}

const LONG: &str = "SELECT count(*) FROM generate_series(1, 100000) a";

#[test]
fn what_is_long_lets_what_is_short_go_first_and_is_not_starved() {
    run(async |worker| {
        let (mut long, mut c) = (session(&worker), Script::default());
        let (rounds, counter) = count_rounds();
        let said = ask(&mut long, &mut c, LONG).await;
        assert_eq!(said[1], "100000");
        let turns = worker.long_turns();
        assert!(turns >= 300, "{turns}: a turn is a batch");
        let took = rounds.get();
        assert!(
            took < turns * 3 / 2,
            "{took} rounds of a free worker for {turns} turns"
        );
        counter.abort();
        // Beside a session that always has something to do.
        let short_done = Rc::new(Cell::new(0u64));
        let done = Rc::clone(&short_done);
        let (mut short, mut sc) = (session(&worker), Script::default());
        let chatting = tokio::task::spawn_local(async move {
            loop {
                short.begin_request();
                ask(&mut short, &mut sc, "SELECT 1").await;
                short.end_request();
                done.set(done.get() + 1);
                tokio::task::yield_now().await;
            }
        });
        let before = worker.long_turns();
        let said = ask(&mut long, &mut c, LONG).await;
        assert_eq!(said[1], "100000");
        chatting.abort();
        let (turns, done) = (worker.long_turns() - before, short_done.get());
        assert!(
            done >= turns * 3 / 2,
            "{done} short statements beside {turns} turns"
        );
    });
}

#[test]
fn a_subquery_in_an_expression_yields_in_its_middle() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (rounds, counter) = count_rounds();
        for query in [
            "SELECT (SELECT count(*) FROM generate_series(1, 50000) g WHERE g > x) FROM generate_series(1, 2) x",
            "SELECT x FROM generate_series(1, 2) x WHERE 49998 <= (SELECT count(*) FROM generate_series(1, 50000) g WHERE g > x)",
            "SELECT sum((SELECT max(g) FROM generate_series(1, 50000) g WHERE (SELECT g > x))) FROM generate_series(1, 2) x",
        ] {
            let before = rounds.get();
            let said = ask(&mut s, &mut c, query).await;
            assert!(!said[0].starts_with("ERROR"), "{said:?}");
            let had = rounds.get() - before;
            assert!(had >= 90, "{query}: the others had {had} turns");
        }
        counter.abort();
    });
}

#[test]
fn a_join_that_gives_a_row_for_every_pair_yields() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (rounds, counter) = count_rounds();
        for query in [
            "SELECT count(*) FROM generate_series(1, 600) a, generate_series(1, 600) b",
            "SELECT count(*) FROM generate_series(1, 600) a LEFT JOIN generate_series(1, 600) b ON true",
            "SELECT count(*) FROM generate_series(1, 600) a, LATERAL (SELECT b FROM generate_series(1, 600) b WHERE b + a > 0) l",
        ] {
            let before = rounds.get();
            let said = ask(&mut s, &mut c, query).await;
            assert_eq!(said[1], "360000", "{said:?}");
            let had = rounds.get() - before;
            assert!(had >= 100, "{query}: the others had {had} turns");
        }
        counter.abort();
    });
}

#[test]
fn whatever_rolls_back_much_yields() {
    run(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let tables = "CREATE TABLE t (a int); CREATE TABLE d (a int PRIMARY KEY, b int REFERENCES d DEFERRABLE INITIALLY DEFERRED)";
        ask(&mut s, &mut c, tables).await;
        let (rounds, counter) = count_rounds();
        let many = "INSERT INTO t SELECT g FROM generate_series(1, 10000) g";
        for (before, end, heard) in [
            (format!("BEGIN; {many}"), "ROLLBACK", "ROLLBACK"),
            (
                format!("BEGIN; SAVEPOINT s; {many}"),
                "ROLLBACK TO s",
                "ROLLBACK",
            ),
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
        ] {
            ask(&mut s, &mut c, &before).await;
            let before = rounds.get();
            let said = ask(&mut s, &mut c, end).await;
            let had = rounds.get() - before;
            assert!(said[0].contains(heard), "{said:?}");
            assert!(had >= 30, "{end} ({heard}): the others had {had} turns");
            ask(&mut s, &mut c, "ROLLBACK").await;
            let said = ask(&mut s, &mut c, "SELECT count(*) FROM t").await;
            assert_eq!(said[1], "0", "{said:?}");
        }
        counter.abort();
    });
}

/// As [`run`], the conversation in a task that can stop in its middle.
fn run_on_stack(conversation: impl AsyncFnOnce(Rc<WorkerSessions>)) {
    run(async |worker| {
        let on_it = Rc::clone(&worker);
        worker.task(conversation(on_it)).await;
    });
}

/// Has it been ended, for this reason?
fn is_ended(said: &[String], reason: &str) -> bool {
    let error = format!("ERROR 57014: canceling statement due to {reason}");
    said.last() == Some(&error)
}

const CORRELATED: &str = "SELECT count(*) FROM generate_series(1, 300) x WHERE \
     (SELECT count(*) FROM generate_series(1, 2000) g WHERE g = x) >= 0";

#[test]
fn a_computation_stops_in_its_middle_and_each_stop_is_a_turn() {
    run_on_stack(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (rounds, counter) = count_rounds();
        let (before, turns) = (rounds.get(), worker.long_turns());
        let said = ask(&mut s, &mut c, CORRELATED).await;
        assert_eq!(said[1], "300");
        let (rounds, turns) = (rounds.get() - before, worker.long_turns() - turns);
        assert!(rounds >= 300, "{rounds} rounds");
        assert!(turns >= 100, "{turns} turns");
        counter.abort();
    });
}

#[test]
fn a_statement_is_planned_with_its_time_limit_and_keeps_no_failure_of_it() {
    run_on_stack(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        ask(&mut s, &mut c, "SET statement_timeout = '40ms'").await;
        for _ in 0..2 {
            let said = ask(&mut s, &mut c, CORRELATED).await;
            assert!(is_ended(&said, "statement timeout"), "{said:?}");
        }
        let made = "CREATE TABLE made AS SELECT g FROM generate_series(1, 1000000) g";
        let said = ask(&mut s, &mut c, made).await;
        assert!(is_ended(&said, "statement timeout"), "{said:?}");
        ask(&mut s, &mut c, "SET statement_timeout = 0").await;
        let said = ask(&mut s, &mut c, CORRELATED).await;
        assert_eq!(said[1], "300");
    });
}

#[test]
fn a_request_reaches_a_computation_from_a_session_of_its_worker() {
    run_on_stack(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let (pid, _) = s.key();
        let other = Rc::clone(&worker);
        let cancels = tokio::task::spawn_local(worker.task(async move {
            let (mut s, mut c) = (session(&other), Script::default());
            for _ in 0..20 {
                ask(&mut s, &mut c, "SELECT 1").await;
                tokio::task::yield_now().await;
            }
            let cancel = format!("SELECT pg_cancel_backend({pid})");
            ask(&mut s, &mut c, &cancel).await
        }));
        let said = ask(&mut s, &mut c, CORRELATED).await;
        assert!(is_ended(&said, "user request"), "{said:?}");
        let said = cancels.await.expect("the other session goes on");
        assert_eq!(said[1], "t");
    });
}

#[test]
fn what_does_not_come_back_is_counted_and_named() {
    run_on_stack(async |worker| {
        let (mut s, mut c) = (session(&worker), Script::default());
        let instance = Arc::clone(&worker.instance);
        let mut looks = logstead_sql_session::WatchdogState::default();
        ask(&mut s, &mut c, "SELECT 'what holds it'").await;
        assert_eq!(instance.workers_held(), 0);
        // In the middle of its poll, as another thread sees it: the clock goes on with each look.
        for _ in 0..150 {
            instance.watch_workers(&mut looks);
        }
        assert_eq!(instance.workers_held(), 1, "once, however long it lasts");
        tokio::task::yield_now().await;
        instance.watch_workers(&mut looks);
        instance.watch_workers(&mut looks);
        assert_eq!(instance.workers_held(), 1, "it has come back");
        let rows = "SELECT held, last_pid = pg_backend_pid(), last_query FROM logstead_workers";
        let said = ask(&mut s, &mut c, rows).await;
        assert_eq!(said[1], "1|t|SELECT 'what holds it'");
    });
}
