//! Queues, and what is left of them.

use super::*;
use futures_poll::polled;
use logstead_engine::{EngineOptions, Env, MemoryHome};
use logstead_home::LogHome;
use logstead_sql_types::DatabaseOid;
use std::sync::Arc;

fn advisory_locks() -> AdvisoryLocks {
    let home = Arc::new(MemoryHome::new(1 << 20));
    let (env, _files) = Env::simulated(7);
    let (engine, _) = Engine::open(EngineOptions::default(), LogHome::from(home), env).unwrap();
    AdvisoryLocks::new(engine)
}

/// Polls once, with a waker that does nothing.
mod futures_poll {
    use super::super::AdvisoryLockWait;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    pub(super) fn polled(wait: &mut AdvisoryLockWait<'_>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(wait).poll(&mut cx).is_ready()
    }
}

const KEY: LockTag = LockTag {
    database: DatabaseOid::new(5),
    class: 0,
    object: 1,
    kind: 1,
};
const OTHER: LockTag = LockTag { object: 2, ..KEY };

#[test]
fn who_waited_longest_gets_it_and_nobody_overtakes() {
    let locks = advisory_locks();
    assert!(locks.take(KEY, 1, AdvisoryLockMode::Shared));
    assert!(locks.take(KEY, 2, AdvisoryLockMode::Shared));
    assert!(!locks.take(KEY, 3, AdvisoryLockMode::Exclusive));
    let mut writer = locks.queue(KEY, 3, AdvisoryLockMode::Exclusive).unwrap();
    assert!(!polled(&mut writer));
    // A reader does not pass the writer who waits, but has again what it has.
    assert!(!locks.take(KEY, 4, AdvisoryLockMode::Shared));
    assert!(locks.take(KEY, 1, AdvisoryLockMode::Shared));
    let mut reader = locks.queue(KEY, 4, AdvisoryLockMode::Shared).unwrap();
    locks.give_back((KEY, AdvisoryLockMode::Shared), 1, 2, Csn::ZERO);
    assert!(!polled(&mut writer));
    locks.give_back((KEY, AdvisoryLockMode::Shared), 2, 1, Csn::ZERO);
    assert!(polled(&mut writer) && !polled(&mut reader));
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 3, 1, Csn::ZERO);
    assert!(polled(&mut reader));
    locks.give_back((KEY, AdvisoryLockMode::Shared), 4, 1, Csn::ZERO);
    assert!(
        locks.table.lock().locks.is_empty(),
        "nothing is left behind"
    );
}

#[test]
fn who_gives_up_leaves_the_queue_and_what_he_was_given() {
    let locks = advisory_locks();
    assert!(locks.take(KEY, 1, AdvisoryLockMode::Exclusive));
    let gives_up = locks.queue(KEY, 2, AdvisoryLockMode::Exclusive).unwrap();
    let mut waits = locks.queue(KEY, 3, AdvisoryLockMode::Exclusive).unwrap();
    let granted_unseen = locks.queue(KEY, 4, AdvisoryLockMode::Exclusive).unwrap();
    drop(gives_up);
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 1, 1, Csn::ZERO);
    assert!(polled(&mut waits));
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 3, 1, Csn::ZERO);
    drop(granted_unseen);
    assert!(locks.take(KEY, 5, AdvisoryLockMode::Exclusive));
}

#[test]
fn a_circle_is_found_by_who_closes_it() {
    let locks = advisory_locks();
    assert!(locks.take(KEY, 1, AdvisoryLockMode::Exclusive));
    assert!(locks.take(OTHER, 2, AdvisoryLockMode::Exclusive));
    let mut first = locks.queue(OTHER, 1, AdvisoryLockMode::Exclusive).unwrap();
    let second = locks.queue(KEY, 2, AdvisoryLockMode::Shared);
    assert_eq!(second.err().unwrap().code(), SqlState::DEADLOCK_DETECTED);
    // The victim is in nobody's way.
    locks.give_back((OTHER, AdvisoryLockMode::Exclusive), 2, 1, Csn::ZERO);
    assert!(polled(&mut first));
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 1, 1, Csn::ZERO);
    assert!(locks.take(KEY, 3, AdvisoryLockMode::Exclusive));
}

#[test]
fn who_holds_what_another_waits_for_stands_in_front_of_him() {
    let locks = advisory_locks();
    assert!(locks.take(KEY, 1, AdvisoryLockMode::Shared));
    let mut writer = locks.queue(KEY, 2, AdvisoryLockMode::Exclusive).unwrap();
    assert!(!locks.take(KEY, 1, AdvisoryLockMode::Exclusive));
    // At once, as nobody else has it; not noticed, it is given back.
    drop(locks.queue(KEY, 1, AdvisoryLockMode::Exclusive).unwrap());
    assert!(!polled(&mut writer));
    let mut other_mode = locks.queue(KEY, 1, AdvisoryLockMode::Exclusive).unwrap();
    assert!(polled(&mut other_mode) && !polled(&mut writer));
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 1, 1, Csn::ZERO);
    assert!(!polled(&mut writer));
    locks.give_back((KEY, AdvisoryLockMode::Shared), 1, 1, Csn::ZERO);
    assert!(polled(&mut writer));
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 2, 1, Csn::ZERO);
    let table = locks.table.lock();
    assert!(table.locks.is_empty() && table.waiting.is_empty());
}

#[test]
fn two_in_front_of_others_who_wait_for_each_other_are_a_circle() {
    let locks = advisory_locks();
    assert!(locks.take(KEY, 1, AdvisoryLockMode::Shared));
    assert!(locks.take(KEY, 2, AdvisoryLockMode::Shared));
    let mut behind = locks.queue(KEY, 3, AdvisoryLockMode::Exclusive).unwrap();
    let mut first = locks.queue(KEY, 1, AdvisoryLockMode::Exclusive).unwrap();
    assert!(!polled(&mut first));
    let second = locks.queue(KEY, 2, AdvisoryLockMode::Exclusive);
    assert_eq!(second.err().unwrap().code(), SqlState::DEADLOCK_DETECTED);
    assert!(!locks.is_waiting(2) && locks.is_waiting(1));
    assert_eq!(locks.blocking(3), [1, 2, 1]);
    locks.give_back((KEY, AdvisoryLockMode::Shared), 2, 1, Csn::ZERO);
    assert!(polled(&mut first) && !polled(&mut behind));
    locks.give_back((KEY, AdvisoryLockMode::Exclusive), 1, 1, Csn::ZERO);
    locks.give_back((KEY, AdvisoryLockMode::Shared), 1, 1, Csn::ZERO);
    assert!(polled(&mut behind));
}

#[test]
fn as_many_locks_as_a_session_may_have_are_had_as_often_as_asked_for() {
    let locks = advisory_locks();
    let depends_on = RefCell::new(CommitWait::none());
    let mut holdings = SessionLocks::default();
    let mut ask = |function: AdvisoryLockFunction, key: usize, level: usize| {
        let advisor = AdvisoryLockFunctions {
            locks: &locks,
            holdings: &mut holdings,
            database: DatabaseOid::new(5),
            pid: 1,
            level,
            depends_on: &depends_on,
        };
        advisor.call(function, &[Datum::Int8(key as i64)])
    };
    for key in 0..LOCKS_MAX {
        ask(
            AdvisoryLockFunction::Lock(AdvisoryLockScope::TRANSACTION),
            key,
            key % 3,
        )
        .unwrap();
    }
    for level in 0..3 {
        ask(
            AdvisoryLockFunction::Lock(AdvisoryLockScope::TRANSACTION),
            1,
            level,
        )
        .unwrap();
        ask(
            AdvisoryLockFunction::TryLock(AdvisoryLockScope::SESSION),
            2,
            level,
        )
        .unwrap();
    }
    let refused = ask(
        AdvisoryLockFunction::Lock(AdvisoryLockScope::SESSION),
        LOCKS_MAX,
        0,
    );
    assert_eq!(refused.err().unwrap().code(), SqlState::OUT_OF_MEMORY);
    holdings.end_session(&locks, 1);
    holdings.end_transaction(&locks, 1, Some(0));
    // Those of the level in front, and one that was taken there again.
    assert_eq!(locks.rows().len(), LOCKS_MAX.div_ceil(3) + 1);
    holdings.end_transaction(&locks, 1, None);
    assert!(locks.table.lock().locks.is_empty());
}
