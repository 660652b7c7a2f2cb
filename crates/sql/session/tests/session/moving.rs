//! A session that goes on at another worker: what comes while it is on its way, and what it had told before.

use super::{Env, MemoryHome, Script, ask, converse_with, session, waits};
use logstead_engine::{Engine, EngineOptions, FlushMode, InstanceId, PartitionId};
use logstead_home::LogHome;
use logstead_sql_catalog::CatalogStore;
use logstead_sql_session::{Instance, MovingSession, Session, WorkerSessions};
use logstead_types::WorkerId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Two instances of one worker each; every key is the second one's.
fn two_instances() -> Rc<WorkerSessions> {
    let (env, _files) = Env::simulated(7);
    let options = EngineOptions {
        workers: 2,
        instances: 2,
        ..EngineOptions::default()
    };
    let home = LogHome::from(MemoryHome::new(1 << 20));
    let (engine, _) = Engine::open(options, home, env.clone()).unwrap();
    let store =
        CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
    let instance = Instance::new(engine.clone(), store, env, BTreeMap::new(), 13);
    for partition in 0..64 {
        let moved = instance.move_partition(PartitionId(partition), InstanceId(1));
        assert_eq!(moved.unwrap(), partition < 32);
    }
    WorkerSessions::new(Arc::new(instance), engine.worker(WorkerId(0)))
}

/// The worker of the second instance.
fn second(worker: &Rc<WorkerSessions>) -> Rc<WorkerSessions> {
    let instance = Arc::clone(&worker.instance);
    let other = instance.engine.worker(WorkerId(1));
    WorkerSessions::new(instance, other)
}

async fn says(session: &mut Session, client: &mut Script, text: &str) -> Vec<String> {
    let said = ask(session, client, text).await;
    let failed = said.iter().find(|line| line.starts_with("ERROR"));
    assert_eq!(failed, None, "{text}");
    said
}

/// Looks at keys until the session wants to move, and sends it on its way.
async fn leave(mut session: Session, client: &mut Script) -> MovingSession {
    for _ in 0..4 {
        assert!(!session.wants_to_move());
        says(&mut session, client, "SELECT a FROM t").await;
    }
    session.settle().await.unwrap();
    assert!(session.wants_to_move());
    let place = session.take_place().expect("there is room");
    session.leave(place)
}

fn moves(play: impl AsyncFnOnce(Rc<WorkerSessions>, Session, Script)) {
    converse_with(true, two_instances, async |worker| {
        let (mut session, mut client) = (session(&worker), Script::default());
        says(&mut session, &mut client, "CREATE TABLE t (a int)").await;
        says(&mut session, &mut client, "INSERT INTO t VALUES (1)").await;
        session.settle().await.unwrap();
        // What made it looked at keys, too.
        let fresh = super::session(&worker);
        drop(session);
        play(worker, fresh, client).await;
    });
}

fn counts(worker: &WorkerSessions) -> [u64; 2] {
    let rows = worker.instance.instance_rows();
    [rows[0].sessions, rows[1].sessions]
}

/// The rule of balance asks for pins before it decides. A pin that comes between that and the move holds, as the move
/// looks again.
#[test]
fn a_partition_that_is_pinned_behind_the_look_of_balance_stays() {
    let worker = two_instances();
    let instance = &worker.instance;
    let (partition, home, other) = (PartitionId(3), InstanceId(1), InstanceId(0));
    assert!(instance.release_partition(partition).unwrap());
    assert!(!instance.is_partition_pinned(partition), "so it may move");
    instance.move_partition(partition, home).unwrap();
    assert!(!instance.balance_partition(partition, other).unwrap());
    let instances = instance.engine.instances();
    assert_eq!(instances.of_partition(partition), home);
    assert!(instance.release_partition(partition).unwrap());
    assert!(instance.balance_partition(partition, other).unwrap());
    assert_eq!(instances.of_partition(partition), other);
}

#[test]
fn what_comes_on_the_way_is_not_lost() {
    moves(async |worker, mut moving, mut client| {
        let pid = moving.key().0;
        says(&mut moving, &mut client, "LISTEN news").await;
        says(&mut moving, &mut client, "SET my.own = 'kept'").await;
        assert_eq!(counts(&worker), [1, 0]);
        let moving = leave(moving, &mut client).await;
        assert_eq!((moving.to(), counts(&worker)), (Some(WorkerId(1)), [0, 1]));
        assert_eq!(
            worker.instance.session_count(),
            1,
            "it is a session all the time"
        );
        let mut other = session(&worker);
        assert_ne!(other.key().0, pid);
        says(&mut other, &mut client, "NOTIFY news, 'on the way'").await;
        let others = second(&worker);
        let mut arrived = Session::arrive(&others, moving).unwrap();
        assert_eq!((arrived.key().0, counts(&worker)), (pid, [1, 1]));
        let heard = arrived.take_notifications();
        assert_eq!(heard.len(), 1);
        assert_eq!(&*heard[0].payload, "on the way");
        let own = says(&mut arrived, &mut client, "SHOW my.own").await;
        assert!(own.iter().any(|line| line.contains("kept")), "{own:?}");
        says(&mut other, &mut client, "NOTIFY news, 'behind'").await;
        assert_eq!(arrived.take_notifications().len(), 1, "it is told once");
        // It is home now.
        for _ in 0..40 {
            says(&mut arrived, &mut client, "SELECT a FROM t").await;
        }
        assert!(!arrived.wants_to_move());
    });
}

#[test]
fn an_order_to_end_on_the_way_is_heard() {
    moves(async |worker, moving, mut client| {
        let moving = leave(moving, &mut client).await;
        worker.instance.terminate_all();
        let arrived = Session::arrive(&second(&worker), moving).unwrap();
        assert!(arrived.signals().must_end(true));
    });
}

#[test]
fn one_that_does_not_arrive_leaves_nothing() {
    moves(async |worker, mut moving, mut client| {
        says(&mut moving, &mut client, "LISTEN news").await;
        let moving = leave(moving, &mut client).await;
        drop(moving);
        assert_eq!(
            (worker.instance.session_count(), counts(&worker)),
            (0, [0, 0])
        );
        // There is room for others, and nobody listens.
        let all = [session(&worker), session(&worker), session(&worker)];
        drop(all);
        says(&mut session(&worker), &mut client, "DROP TABLE t").await;
    });
}

#[test]
fn what_it_has_told_without_waiting_is_waited_for_there() {
    converse_with(false, two_instances, async |worker| {
        let (mut moving, mut client) = (session(&worker), Script::default());
        says(&mut moving, &mut client, "CREATE TABLE t (a int)").await;
        worker.worker.flush(FlushMode::Inline);
        moving.settle().await.unwrap();
        drop(moving);
        let mut moving = session(&worker);
        says(&mut moving, &mut client, "SET synchronous_commit = off").await;
        for _ in 0..4 {
            says(&mut moving, &mut client, "INSERT INTO t VALUES (1)").await;
        }
        moving.settle().await.unwrap();
        assert!(moving.wants_to_move());
        let place = moving.take_place().expect("there is room");
        let others = second(&worker);
        let mut arrived = Session::arrive(&others, moving.leave(place)).unwrap();
        assert!(!waits(&mut arrived).await, "nobody has asked for that yet");
        says(&mut arrived, &mut client, "SET synchronous_commit = on").await;
        says(&mut arrived, &mut client, "SELECT 1").await;
        assert!(waits(&mut arrived).await);
        worker.worker.flush(FlushMode::Inline);
        assert!(!waits(&mut arrived).await);
    });
}

#[test]
fn a_transaction_or_what_is_the_workers_keeps_it() {
    moves(async |_, mut stays, mut client| {
        for _ in 0..4 {
            says(&mut stays, &mut client, "SELECT a FROM t").await;
        }
        says(&mut stays, &mut client, "BEGIN").await;
        assert!(!stays.wants_to_move());
        says(&mut stays, &mut client, "COMMIT").await;
        says(
            &mut stays,
            &mut client,
            "CREATE TEMPORARY TABLE own (a int)",
        )
        .await;
        for _ in 0..8 {
            says(&mut stays, &mut client, "SELECT a FROM t").await;
        }
        stays.settle().await.unwrap();
        assert!(stays.wants_to_move());
        assert!(stays.must_stay());
        assert!(!stays.wants_to_move(), "it asks again later");
    });
}

/// Who has a place elsewhere and has not left yet is one session: many that go at once do not raise an instance's
/// share.
#[test]
fn sessions_that_leave_are_counted_once() {
    moves(async |worker, first, mut client| {
        let mut sessions = vec![first];
        sessions.extend((1..12).map(|_| super::session(&worker)));
        let mut places = Vec::new();
        for session in &mut sessions {
            for _ in 0..4 {
                says(session, &mut client, "SELECT a FROM t").await;
            }
            session.settle().await.unwrap();
            assert!(session.wants_to_move());
            places.extend(session.take_place());
        }
        // Half of twelve, half as much again, and one.
        assert_eq!(places.len(), 10);
        assert_eq!(counts(&worker), [12, 10]);
        drop(places.pop());
        for place in places {
            drop(sessions.remove(0).leave(place));
        }
        assert_eq!(counts(&worker), [3, 0]);
    });
}
