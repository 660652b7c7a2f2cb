//! Row locks: who stands in whose way, upgrades, savepoints, queues.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use logstead_engine::RowLock::{self, KeyShare, NoKeyUpdate, Share, Update};
use logstead_engine::{
    ExpectPresent, Guard, Isolation, LockConflict, LockWait, RowLockCounts, Txn, WaitError, Worker,
    WriteError,
};

use crate::world::*;

const ALL: [RowLock; 4] = [KeyShare, Share, NoKeyUpdate, Update];

fn begin(worker: &Worker) -> Txn {
    worker.begin(Isolation::ReadCommitted)
}

fn blocker(result: Result<(), WriteError>) -> LockConflict {
    match result {
        Err(WriteError::Blocked(blocker)) => blocker,
        other => panic!("expected a blocker, got {other:?}"),
    }
}

fn is_blocked(result: &Result<(), WriteError>) -> bool {
    match result {
        Ok(()) => false,
        Err(WriteError::Blocked(_)) => true,
        Err(other) => panic!("{other}"),
    }
}

/// One who waits for a row: its wait, and the bell of its waker.
struct Waiting<'t> {
    wait: Pin<Box<LockWait<'t>>>,
    bell: Arc<Bell>,
}

fn waits<'t>(world: &World, txn: &'t mut Txn, k: i64, lock: RowLock) -> Waiting<'t> {
    let blocked = blocker(world.lock_as(txn, k, lock));
    let mut waiting = Waiting {
        wait: Box::pin(blocked.wait(txn)),
        bell: Arc::default(),
    };
    assert!(poll(waiting.wait.as_mut(), &waiting.bell).is_pending());
    waiting
}

impl Waiting<'_> {
    fn is_told(&mut self) -> bool {
        match poll(self.wait.as_mut(), &self.bell) {
            Poll::Pending => false,
            Poll::Ready(outcome) => {
                outcome.expect("no deadlock");
                assert!(self.bell.rings() > 0, "who may go on is woken");
                true
            }
        }
    }
}

/// The row with this key moved to another key: an update that changes a key of a unique index.
fn move_key(world: &World, txn: &mut Txn, k: i64, to: i64) -> Result<(), WriteError> {
    let guard = Guard::pin();
    let found = txn
        .get(&world.by_key, &key(k), &guard)
        .expect_present()
        .expect("the account exists");
    let (rid, version, new) = (found.rid, found.version, row(to, balance(&found)));
    txn.update(&world.table, rid, version, &new)
}

#[test]
fn every_pair_of_locks_conflicts_as_the_table_says() {
    let (world, worker) = World::with_accounts(1, 1);
    for held in ALL {
        for wanted in ALL {
            let (mut a, mut b) = (begin(&worker), begin(&worker));
            world.lock_as(&mut a, 1, held).expect("free");
            let got = world.lock_as(&mut b, 1, wanted);
            assert_eq!(
                is_blocked(&got),
                held.conflicts(wanted),
                "{held:?} {wanted:?}"
            );
            if let Err(WriteError::Blocked(blocker)) = got {
                assert_eq!(blocker.holder(), Some(a.id()));
            }
            // Either kind of end frees the row.
            if wanted == Share {
                commit(a);
            } else {
                a.abort();
            }
            world.lock_as(&mut b, 1, wanted).expect("free now");
        }
    }
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

#[test]
fn what_is_done_to_a_row_locks_it_too() {
    let (world, worker) = World::with_accounts(1, 1);
    type Change = fn(&World, &mut Txn) -> Result<(), WriteError>;
    let changes: [(Change, RowLock); 3] = [
        (|w, t| w.update(t, 1, |n| n + 1), NoKeyUpdate),
        (|w, t| move_key(w, t, 1, 2), Update),
        (|w, t| w.delete(t, 1), Update),
    ];
    for (change, strength) in changes {
        for lock in ALL {
            let conflicts = strength.conflicts(lock);
            let (mut a, mut b) = (begin(&worker), begin(&worker));
            change(&world, &mut a).expect("free");
            assert_eq!(is_blocked(&world.lock_as(&mut b, 1, lock)), conflicts);
            drop((a, b));
            let (mut a, mut b) = (begin(&worker), begin(&worker));
            world.lock_as(&mut b, 1, lock).expect("free");
            assert_eq!(
                is_blocked(&change(&world, &mut a)),
                conflicts,
                "{strength:?} {lock:?}"
            );
        }
    }
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

#[test]
fn key_share_passes_an_update_that_keeps_the_keys_and_outlives_it() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut writer = begin(&worker);
    let mut checker = begin(&worker);
    world.update(&mut writer, 1, |_| 7).expect("free");
    world
        .lock_as(&mut checker, 1, KeyShare)
        .expect("the keys stay");
    writer.begin_statement();
    assert!(
        is_blocked(&world.delete(&mut writer, 1)),
        "the writer's own delete meets the shared lock"
    );
    commit(writer);
    let mut deleter = begin(&worker);
    assert!(is_blocked(&world.delete(&mut deleter, 1)));
    world.update(&mut deleter, 1, |n| n + 1).expect("keeps it");
    commit(checker);
    deleter.begin_statement();
    world.delete(&mut deleter, 1).expect("free");
    commit(deleter);
}

#[test]
fn key_share_of_an_older_version_needs_the_same_keys() {
    let (world, worker) = World::with_accounts(1, 2);
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let mut old = worker.begin(level);
        assert!(world.get(&mut old, 1).is_some() && world.get(&mut old, 2).is_some());
        let mut writer = begin(&worker);
        world.update(&mut writer, 1, |n| n + 1).expect("free");
        move_key(&world, &mut writer, 2, 3).expect("free");
        commit(writer);
        world.lock_as(&mut old, 1, KeyShare).expect("same key");
        let changed = matches!(
            world.lock_as(&mut old, 1, Share),
            Err(WriteError::Changed | WriteError::Serialization)
        );
        assert!(changed);
        let lost = world.lock_as(&mut old, 2, KeyShare);
        assert!(
            matches!(lost, Err(WriteError::Changed | WriteError::Serialization)),
            "{lost:?}"
        );
        drop(old);
        let mut back = begin(&worker);
        move_key(&world, &mut back, 3, 2).expect("free");
        commit(back);
    }
}

#[test]
fn a_holder_raises_its_own_lock_and_two_who_both_do_deadlock() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut a = begin(&worker);
    for lock in ALL {
        world.lock_as(&mut a, 1, lock).expect("one's own");
    }
    a.begin_statement();
    world.update(&mut a, 1, |n| n + 1).expect("one's own");
    world.lock_as(&mut a, 2, Share).expect("shared");
    let mut b = begin(&worker);
    world.lock_as(&mut b, 2, Share).expect("shared");
    let mut a_waits = waits(&world, &mut a, 2, Update);
    let b_blocked = blocker(world.lock_as(&mut b, 2, Update));
    assert_eq!(block_on(b_blocked.wait(&mut b)), Err(WaitError::Deadlock));
    assert!(!a_waits.is_told());
    b.abort();
    assert!(a_waits.is_told());
    drop(a_waits);
    world.lock_as(&mut a, 2, Update).expect("alone");
    commit(a);
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

#[test]
fn rolling_back_to_a_savepoint_gives_back_the_locks_since_and_no_others() {
    let (world, worker) = World::with_accounts(1, 4);
    let mut a = begin(&worker);
    world.lock_as(&mut a, 1, KeyShare).expect("free");
    world.lock_as(&mut a, 2, NoKeyUpdate).expect("free");
    let savepoint = a.savepoint();
    world.lock_as(&mut a, 1, Share).expect("raised");
    world.lock_as(&mut a, 2, Update).expect("raised");
    world.lock_as(&mut a, 3, Share).expect("free");
    world.lock_as(&mut a, 4, Update).expect("free");
    let mut b = begin(&worker);
    for k in 1..=4 {
        assert!(is_blocked(&world.lock_as(&mut b, k, NoKeyUpdate)));
    }
    assert!(is_blocked(&world.lock_as(&mut b, 2, KeyShare)));
    let mut waiter = waits(&world, &mut b, 3, NoKeyUpdate);
    assert!(a.rollback_to(savepoint));
    assert!(waiter.is_told(), "a wait for what is given back ends");
    drop(waiter);
    world.lock_as(&mut b, 3, Update).expect("given back");
    world.lock_as(&mut b, 4, Update).expect("given back");
    world
        .lock_as(&mut b, 1, NoKeyUpdate)
        .expect("only its keys");
    world
        .lock_as(&mut b, 2, KeyShare)
        .expect("only its non-keys");
    assert!(is_blocked(&world.lock_as(&mut b, 1, Update)));
    assert!(is_blocked(&world.lock_as(&mut b, 2, Share)));
    commit(a);
    assert!(world.lock_as(&mut b, 1, Update).is_ok());
    commit(b);
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

#[test]
fn a_row_of_ones_own_is_locked_already_and_its_undo_frees_everything() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut a = begin(&worker);
    let savepoint = a.savepoint();
    a.insert(&world.table, &row(5, 5)).expect("new");
    a.begin_statement();
    for lock in ALL {
        world.lock_as(&mut a, 5, lock).expect("one's own");
    }
    assert!(a.rollback_to(savepoint));
    a.insert(&world.table, &row(6, 6))
        .expect("its rid is used again");
    commit(a);
    let mut b = begin(&worker);
    world.lock_as(&mut b, 6, Update).expect("free");
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

#[test]
fn a_row_goes_to_who_waited_longest_and_only_that_one_is_woken() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut holder = begin(&worker);
    world.update(&mut holder, 1, |n| n + 1).expect("free");
    let (mut a, mut b, mut c) = (begin(&worker), begin(&worker), begin(&worker));
    let mut a_waits = waits(&world, &mut a, 1, Update);
    let mut b_waits = waits(&world, &mut b, 1, Update);
    let mut c_waits = waits(&world, &mut c, 1, Update);
    assert_eq!(world.table.row_lock_counts().queued, 1);
    commit(holder);
    assert_eq!(
        [&a_waits, &b_waits, &c_waits].map(|w| w.bell.rings()),
        [1, 0, 0]
    );
    assert!(!b_waits.is_told() && !c_waits.is_told() && a_waits.is_told());
    drop(a_waits);
    a.begin_statement();
    assert!(
        b_waits.is_told(),
        "whoever turns to something else passes its turn"
    );
    drop(b_waits);
    world.update_newest(&mut b, 1, |n| n + 10).expect("free");
    assert!(!c_waits.is_told(), "the row is taken again");
    let mut a_waits = waits(&world, &mut a, 1, Update);
    commit(b);
    assert!(!a_waits.is_told(), "behind who waited longer");
    // A wait that is given up does not keep the others waiting.
    drop(c_waits);
    assert!(a_waits.is_told());
    drop(a_waits);
    world.update_newest(&mut a, 1, |n| n + 100).expect("free");
    commit(a);
    let mut reader = begin(&worker);
    assert_eq!(world.get(&mut reader, 1), Some(211));
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

/// One who tries until it has the row, polled whenever it is woken.
struct Taker<'w> {
    future: Pin<Box<dyn Future<Output = Result<Txn, WaitError>> + 'w>>,
    bell: Arc<Bell>,
    heard: usize,
}

impl<'w> Taker<'w> {
    fn new(world: &'w World, mut txn: Txn, k: i64, lock: RowLock) -> Taker<'w> {
        let future = Box::pin(async move {
            loop {
                match world.lock_as(&mut txn, k, lock) {
                    Ok(()) => return Ok(txn),
                    Err(WriteError::Blocked(blocker)) => blocker.wait(&mut txn).await?,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let mut taker = Taker {
            future,
            bell: Arc::default(),
            heard: 0,
        };
        assert!(taker.poll().is_none());
        taker
    }

    fn poll(&mut self) -> Option<Txn> {
        match poll(self.future.as_mut(), &self.bell) {
            Poll::Ready(got) => Some(got.expect("no deadlock")),
            Poll::Pending => None,
        }
    }
}

/// Polls those who were woken until nobody is; gives those who got the row, in order.
fn run(takers: &mut [Taker<'_>]) -> Vec<(usize, Txn)> {
    let mut got = Vec::new();
    while let Some(i) = takers.iter().position(|t| t.bell.rings() > t.heard) {
        takers[i].heard = takers[i].bell.rings();
        if let Some(txn) = takers[i].poll() {
            takers[i].heard = usize::MAX;
            got.push((i, txn));
        }
    }
    got
}

fn who(got: &[(usize, Txn)]) -> Vec<usize> {
    got.iter().map(|(i, _)| *i).collect()
}

#[test]
fn all_who_can_share_a_row_get_it_and_the_rest_in_turn() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut holder = begin(&worker);
    world.lock_as(&mut holder, 1, Update).expect("free");
    let wanted = [Share, Update, KeyShare, Share, NoKeyUpdate];
    let mut takers = wanted.map(|lock| Taker::new(&world, begin(&worker), 1, lock));
    commit(holder);
    // The second cannot have it, but who wants less gets past it.
    let mut got = run(&mut takers);
    assert_eq!(who(&got), [0, 2, 3]);
    let (share, key_share) = (got.remove(2).1, got.remove(1).1);
    drop(got);
    assert_eq!(who(&run(&mut takers)), [0usize; 0]);
    commit(share);
    let got = run(&mut takers);
    assert_eq!(
        who(&got),
        [4],
        "the key share stands against the second only"
    );
    drop(got);
    assert_eq!(who(&run(&mut takers)), [0usize; 0]);
    commit(key_share);
    assert_eq!(who(&run(&mut takers)), [1]);
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
}

/// Both want the same strength; the first to ask cannot have it because of what the second holds.
#[test]
fn who_holds_something_of_the_row_is_tried_whoever_is_before_it() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut holder = begin(&worker);
    world.lock_as(&mut holder, 1, Share).expect("free");
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    world.lock_as(&mut a, 1, KeyShare).expect("shared");
    world.lock_as(&mut b, 1, Share).expect("shared");
    let newcomer = Taker::new(&world, begin(&worker), 1, NoKeyUpdate);
    let mut takers = [
        newcomer,
        Taker::new(&world, a, 1, NoKeyUpdate),
        Taker::new(&world, b, 1, NoKeyUpdate),
    ];
    commit(holder);
    let got = run(&mut takers);
    assert_eq!(who(&got), [2]);
    drop(got);
    let got = run(&mut takers);
    assert_eq!(who(&got), [1], "before the one that holds nothing");
    drop(got);
    assert_eq!(who(&run(&mut takers)), [0]);
}

/// The third waits for the second, who got the row while the third slept on: a wait for the third closes a cycle.
#[test]
fn a_cycle_through_one_who_was_not_woken_is_found() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut holder = begin(&worker);
    world.update(&mut holder, 1, |n| n + 1).expect("free");
    let mut third = begin(&worker);
    world.lock_as(&mut third, 2, Update).expect("free");
    let mut takers = [
        Taker::new(&world, begin(&worker), 1, Update),
        Taker::new(&world, third, 1, Update),
    ];
    holder.abort();
    let mut got = run(&mut takers);
    assert_eq!(who(&got), [0]);
    assert_eq!(takers[1].bell.rings(), 0, "slept on");
    let mut second = got.remove(0).1;
    let blocked = blocker(world.lock_as(&mut second, 2, Share));
    assert_eq!(
        block_on(blocked.wait(&mut second)),
        Err(WaitError::Deadlock)
    );
    second.abort();
    assert_eq!(who(&run(&mut takers)), [1]);
}

#[test]
fn three_who_wait_in_a_circle_have_one_victim() {
    let (world, worker) = World::with_accounts(1, 3);
    let mut txns = [begin(&worker), begin(&worker), begin(&worker)];
    for (k, txn) in (1..).zip(&mut txns) {
        world.lock_as(txn, k, Share).expect("free");
    }
    let [a, b, mut c] = txns;
    let mut takers = [
        Taker::new(&world, a, 2, NoKeyUpdate),
        Taker::new(&world, b, 3, Update),
    ];
    let blocked = blocker(world.lock_as(&mut c, 1, NoKeyUpdate));
    assert_eq!(block_on(blocked.wait(&mut c)), Err(WaitError::Deadlock));
    c.abort();
    let got = run(&mut takers);
    assert_eq!(who(&got), [1]);
    drop(got);
    assert_eq!(who(&run(&mut takers)), [0]);
}

/// A writer that has to give up what it wrote, for another row has the key, does not keep the row from others.
#[test]
fn a_row_whose_writer_waits_for_a_key_is_free_for_others() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut other = begin(&worker);
    other.insert(&world.table, &row(9, 0)).expect("new");
    let mut writer = begin(&worker);
    let blocked = blocker(move_key(&world, &mut writer, 1, 9));
    let bell = Arc::default();
    let mut wait = Box::pin(blocked.wait(&mut writer));
    assert!(poll(wait.as_mut(), &bell).is_pending());
    let mut third = begin(&worker);
    world.lock_as(&mut third, 1, Update).expect("free");
    drop(third);
    drop(wait);
    other.abort();
    move_key(&world, &mut writer, 1, 9).expect("free");
}
