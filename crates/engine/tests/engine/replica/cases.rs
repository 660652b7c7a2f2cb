//! What a replica refuses, collects and says when it cannot go on.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// A primary, and a replica that has everything.
fn pair(env: &Env) -> Primary {
    let mut primary = Primary::new(env);
    primary.engine.checkpoint().expect("taken");
    let mut dice = Dice(7);
    for _ in 0..20 {
        primary.step(&mut dice);
    }
    primary.flush();
    primary
}

/// Nothing is changed by who follows, neither there nor here: writes and checkpoints are refused, and the home has what
/// it had. Temporary tables are the session's own.
#[test]
fn a_replica_writes_nothing() {
    let (env, files) = Env::simulated(1);
    let primary = pair(&env);
    let before = files.operations();
    let home = home_of(&env);
    let mut beside = Beside::open(&home, &env).expect("opens");
    beside.round(&mut Seen::default()).expect("follows");
    beside.begin();
    beside
        .read(0, &primary, &mut Seen::default())
        .expect("reads");
    let mut txn = beside.worker.begin(Isolation::ReadCommitted);
    let refused = txn.insert(&beside.table, &row_of(1, 1, 1));
    assert!(matches!(refused, Err(WriteError::Replica)), "{refused:?}");
    let rows = (&beside.table, &beside.by_key);
    let one = *primary.state().keys().next().expect("one");
    for new in [Some(row_of(one, 1, 1)), None] {
        let refused = update(&mut txn, rows, one, new);
        assert!(matches!(refused, Err(WriteError::Replica)), "{refused:?}");
    }
    let temporary = beside
        .replica
        .engine()
        .create_temporary_table(TEMPORARY_AT_REPLICAS);
    txn.insert(&temporary, &row_of(1, 1, 1)).expect("inserts");
    block_on(txn.precommit()).expect("commits");
    let mut txn = beside.worker.begin(Isolation::ReadCommitted);
    assert_eq!(scanned(&mut txn, &temporary), Ok(State::from([(1, 1)])));
    drop(txn);
    let next = beside.replica.engine().next_csn();
    let xid = block_on(beside.worker.assign_xid()).map(|xid| xid.number());
    assert_eq!(xid, Err(CommitError::Replica));
    assert_eq!(beside.replica.engine().next_csn(), next);
    let taken = beside.replica.engine().checkpoint();
    assert!(matches!(taken, Err(CheckpointError::Replica)), "{taken:?}");
    beside.round(&mut Seen::default()).expect("follows");
    drop(beside);
    assert_eq!(files.operations(), before, "nothing was changed");
}

/// What nobody sees any more goes, as with any engine: versions, deleted rows and entries of indexes. What a reader
/// sees stays.
#[test]
fn what_no_reader_needs_is_collected() {
    let (env, _) = Env::simulated(1);
    let mut primary = Primary::new(&env);
    let home = home_of(&env);
    let mut beside = Beside::open(&home, &env).expect("opens");
    let mut seen = Seen::default();
    let learn = |beside: &mut Beside<'_>, primary: &Primary| {
        let engine = &primary.engine;
        beside.replica.learn(engine.epoch(), engine.horizon());
    };
    learn(&mut beside, &primary);
    beside.round(&mut seen).expect("follows");
    beside.begin();
    // Each row gets ten keys, one after the other, and all but ten rows go.
    for _ in 0..10 {
        primary.change(|txn, table, by_key, state| {
            for (k, n) in std::mem::take(state) {
                state.insert(k + 1000, n);
                update(txn, (table, by_key), k, Some(row_of(k + 1000, n, 0)))?;
            }
            Ok(())
        });
    }
    primary.change(|txn, table, by_key, state| {
        let gone: Vec<i64> = state.keys().skip(10).copied().collect();
        let rest = gone
            .iter()
            .map(|k| state.remove(k).expect("one"))
            .sum::<i64>();
        let first = *state.keys().next().expect("one");
        let n = state[&first] + rest;
        state.insert(first, n);
        update(txn, (table, by_key), first, Some(row_of(first, n, 0)))?;
        for k in gone {
            update(txn, (table, by_key), k, None)?;
        }
        Ok(())
    });
    primary.flush();
    learn(&mut beside, &primary);
    beside.round(&mut seen).expect("follows");
    assert_eq!(
        beside.replica.engine().next_csn(),
        primary.engine.next_csn()
    );
    beside.begin();
    let collected = |beside: &Beside<'_>| {
        let worker = beside.replica.worker();
        // It tells which snapshots it has.
        beside.worker.collect_garbage(1);
        while worker.collect_garbage(1_000) {}
        let indexes = [&beside.by_key, &beside.by_balance];
        (
            worker.stats().versions_collected,
            indexes.map(|index| index.entry_count()),
        )
    };
    // The first reader sees the first version of each row, and no other one but the newest is needed.
    let (versions, entries) = collected(&beside);
    assert_eq!(versions, 90 * 10 + 10 * 9 + 1);
    assert_eq!(entries[0], 100 + 10);
    for reader in 0..2 {
        beside.read(reader, &primary, &mut seen).expect("reads");
    }
    beside.readers.remove(0);
    // With those that he saw the deleted rows go altogether.
    let (all, entries) = collected(&beside);
    assert_eq!(all - versions, 100 + 90);
    assert_eq!(entries, [10, 10]);
    beside.read(0, &primary, &mut seen).expect("reads");
}

/// A replica that does not fit says so, when it opens or when it grows, and is at its end then.
#[test]
fn a_replica_that_does_not_fit_into_memory_says_so() {
    let (env, _) = Env::simulated(1);
    let mut primary = Primary::new(&env);
    let grow = |primary: &mut Primary, from: i64| {
        for k in from..from + 40 {
            primary.change(|txn, table, _, state| {
                state.insert(k, 0);
                insert(txn, table, &row_of(k, 0, 100_000))
            });
            primary.flush();
        }
    };
    let home = home_of(&env);
    let mut replica = Replica::open(options(3 << 20), &home, env.clone()).expect("fits");
    grow(&mut primary, 10_000);
    let grown = replica.round(&mut |_| {});
    assert!(matches!(grown, Err(ReplicaError::Memory(_))), "{grown:?}");
    // It may go on once there is room.
    let again = replica.round(&mut |_| {});
    assert!(matches!(again, Err(ReplicaError::Memory(_))), "{again:?}");
    drop(replica);
    match Replica::open(options(3 << 20), &home, env.clone()) {
        Err(ReplicaError::Open(OpenError::Memory { budget_bytes, .. })) => {
            assert_eq!(budget_bytes, 3 << 20);
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it does not fit"),
    }
    let mut replica = Replica::open(options(30 << 20), &home, env).expect("fits");
    replica.round(&mut |_| {}).expect("follows");
}

/// A session's own rows fill the budget up to its reserve, deletes of them too; that is for what comes from the log,
/// which goes on.
#[test]
fn temporary_tables_leave_the_reserve_to_the_log() {
    let (env, _) = Env::simulated(1);
    let mut primary = Primary::new(&env);
    let home = home_of(&env);
    let mut replica = Replica::open(options(8 << 20), &home, env.clone()).expect("fits");
    replica.round(&mut |_| {}).expect("follows");
    let engine = replica.engine().clone();
    let worker = engine.worker(WorkerId(0));
    let temporary = engine.create_temporary_table(TEMPORARY_AT_REPLICAS);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let (mut rids, refused) = (Vec::new(), Cell::new(None));
    while refused.get().is_none() {
        match txn.insert(&temporary, &row_of(1, 1, 10_000)) {
            Ok(rid) => rids.push(rid),
            Err(WriteError::OutOfMemory(error)) => refused.set(Some(error.budget_bytes)),
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(refused.get(), Some(8 << 20));
    block_on(txn.precommit()).expect("commits");
    // What is left of the budget without its reserve are tombstones.
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let mut deleted = 0;
    for round in 0.. {
        txn.begin_statement();
        let Some(rid) = rids.get(round) else { break };
        let guard = Guard::pin();
        let newest = txn.read_newest(&temporary, *rid, &guard).expect("there");
        match txn.delete(&temporary, *rid, newest.expect("one").version) {
            Ok(()) => deleted += 1,
            Err(WriteError::OutOfMemory(_)) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    let reserve = engine.memory().reserve_bytes();
    let left = (8 << 20) - engine.memory().used_bytes();
    assert!(
        left > reserve - (512 << 10),
        "{left} of {reserve} after {deleted}"
    );
    for k in 20_000..20_100 {
        primary.change(|txn, table, _, state| {
            state.insert(k, 0);
            insert(txn, table, &row_of(k, 0, 1_000))
        });
    }
    primary.flush();
    let next = primary.engine.next_csn();
    replica.learn(primary.engine.epoch(), next);
    replica.round(&mut |_| {}).expect("goes on");
    assert_eq!(engine.next_csn(), next);
}

/// The primary waits for nobody: what a replica has not brought in is gone after a later checkpoint, and it says so.
/// One that has everything, and follows, goes on.
#[test]
fn what_a_replica_began_with_goes() {
    let (world, worker) = World::with_accounts(1, 200);
    world.engine.checkpoint().expect("taken");
    let home = LogHome::from(world.home.clone());
    let (env, _) = Env::simulated(2);
    let open = || Replica::open(options(u64::MAX), &home, env.clone()).expect("opens");
    let (mut cold, mut warm) = (open(), open());
    let began = home.objects.list_objects().expect("listed");
    let pages = began
        .iter()
        .max_by_key(|info| info.size_bytes)
        .expect("one");
    let sessions = [&cold, &warm].map(|replica| replica.engine().worker(WorkerId(0)));
    let tables = [(&cold, &sessions[0]), (&warm, &sessions[1])]
        .map(|(replica, session)| restore(replica.engine(), session).0);
    let brought = warm.engine().bring_all(|| true);
    assert_eq!(brought, Ok(()));
    let behind = cold.engine().next_csn();
    let mut old = sessions
        .each_ref()
        .map(|session| session.begin(Isolation::RepeatableRead));
    let snapshots = old.each_mut().map(|txn| txn.export_snapshot().csn());
    assert_eq!(snapshots, [behind; 2]);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 1..=200 {
        world.update(&mut txn, k, |n| n + 1).expect("updates");
    }
    commit(txn);
    worker.flush(FlushMode::Inline);
    let newest = world.engine.next_csn();
    warm.learn(world.engine.epoch(), newest);
    warm.round(&mut |_| {}).expect("follows");
    world.engine.checkpoint().expect("taken");
    // As good as removed, if it was not.
    world.home.set_unreadable(Some((pages.id, u64::MAX)));
    let read = scanned(&mut old[0], &tables[0]);
    assert_eq!(read, Err(FaultError::TooOld(newest)));
    let brought = cold.engine().bring_all(|| true);
    assert_eq!(brought, Err(FaultError::TooOld(newest)));
    match cold.round(&mut |_| {}) {
        Err(ReplicaError::Removed { next, checkpoint }) => {
            assert_eq!((next, checkpoint), (behind, newest));
        }
        other => panic!("{other:?}"),
    }
    let again = cold.round(&mut |_| {});
    assert!(matches!(again, Err(ReplicaError::Ended)), "{again:?}");
    warm.round(&mut |_| {}).expect("follows");
    assert_eq!(warm.engine().next_csn(), newest);
    let all = |n| (1..=200).map(|k| (k, n)).collect::<State>();
    assert_eq!(scanned(&mut old[1], &tables[1]), Ok(all(100)));
    let mut txn = sessions[1].begin(Isolation::ReadCommitted);
    assert_eq!(scanned(&mut txn, &tables[1]), Ok(all(101)));
}

/// A round that fails in the middle of an entry is repeated: nothing of the entry is seen before, and all of it then.
#[test]
fn a_round_is_repeated_after_an_error_of_the_home() {
    let (world, worker) = World::with_accounts(1, 200);
    world.engine.checkpoint().expect("taken");
    let home = LogHome::from(world.home.clone());
    let (env, _) = Env::simulated(2);
    let mut replica = Replica::open(options(u64::MAX), &home, env).expect("opens");
    let session = replica.engine().worker(WorkerId(0));
    let (table, by_key, by_balance) = restore(replica.engine(), &session);
    let state = |snapshot: &Worker| {
        let mut txn = snapshot.begin(Isolation::RepeatableRead);
        let mut rows = walked(&mut txn, &by_balance).expect("reads");
        rows.sort_unstable();
        let found = scanned(&mut txn, &table).expect("reads");
        assert_eq!(
            rows,
            found.iter().map(|(k, n)| (*k, *n)).collect::<Vec<_>>()
        );
        assert_eq!(walked(&mut txn, &by_key).expect("reads"), rows);
        found
    };
    // The first rows and some leaves are there.
    let mut txn = session.begin(Isolation::ReadCommitted);
    for k in 1..10 {
        let balance = present(&mut txn, |txn| {
            let guard = Guard::pin();
            let found = txn.get(&by_key, &key(k), &guard)?;
            Ok(found.map(|row| balance(&row)))
        });
        assert_eq!(balance, Ok(Some(100)));
    }
    drop(txn);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 1..=200 {
        world.update(&mut txn, k, |n| n + k).expect("updates");
    }
    for k in 191..=200 {
        txn.begin_statement();
        world.delete(&mut txn, k).expect("deletes");
    }
    // Their leaf lies before those of the rest: it comes in when everything else is applied.
    for k in 1..=10 {
        txn.begin_statement();
        world.update(&mut txn, k, |n| n - 5_000).expect("updates");
    }
    commit(txn);
    worker.flush(FlushMode::Inline);
    replica.learn(world.engine.epoch(), world.engine.horizon());
    let objects = home.objects.list_objects().expect("listed");
    let mut failed = 0;
    let before = replica.engine().next_csn();
    // Fewer and fewer of their pages are unreadable, and each time for two rounds: what was applied before the first
    // error is passed over behind the second one, too.
    let places = objects.iter().flat_map(|info| {
        let places = (0..=info.size_bytes).rev().step_by(256);
        places.flat_map(|place| [(info.id, place); 2])
    });
    for unreadable in places {
        world.home.set_unreadable(Some(unreadable));
        match replica.round(&mut |_| {}) {
            Ok(_) => {}
            Err(error) => {
                assert!(
                    error.may_repeat() && matches!(error, ReplicaError::Fault(_)),
                    "{error}"
                );
                assert_eq!(replica.engine().next_csn(), before);
                failed += 1;
            }
        }
    }
    assert!(failed > 3, "only {failed} rounds failed");
    world.home.set_unreadable(None);
    replica.round(&mut |_| {}).expect("follows");
    assert_eq!(replica.engine().next_csn(), world.engine.next_csn());
    let more = |k| if k <= 10 { -5_000 } else { 0 };
    let expected: State = (1..=190).map(|k| (k, 100 + k + more(k))).collect();
    assert_eq!(state(&session), expected);
}

/// Sessions on threads of their own read while entries are applied, rows and leaves come in, and garbage goes: each
/// finds the same sum at every snapshot, by scan and by both indexes, and no snapshot is older than the one before.
#[test]
fn sessions_read_while_a_replica_follows() {
    const READERS: u16 = 3;
    const READS_MIN: usize = 5;
    let (env, _) = Env::simulated(3);
    let mut primary = Primary::new(&env);
    let mut dice = Dice(11);
    primary.engine.checkpoint().expect("taken");
    let home = home_of(&env);
    let with_readers = EngineOptions {
        workers: usize::from(READERS),
        ..options(u64::MAX)
    };
    let mut replica = Replica::open(with_readers, &home, env).expect("opens");
    let worker = replica.engine().worker(WorkerId(0));
    let (table, by_key, by_balance) = restore(replica.engine(), &worker);
    drop(worker);
    let stopping = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (engine, stopping, reads) = (replica.engine().clone(), &stopping, &reads);
            let (table, by_key, by_balance) = (&table, &by_key, &by_balance);
            scope.spawn(move || {
                let worker = engine.worker(WorkerId(reader));
                let mut newest = Csn::ZERO;
                let mut done = 0;
                while done < READS_MIN || !stopping.load(Ordering::SeqCst) {
                    let mut txn = worker.begin(Isolation::RepeatableRead);
                    let snapshot = txn.export_snapshot().csn();
                    assert!(snapshot >= newest, "{snapshot} after {newest}");
                    newest = snapshot;
                    let found = scanned(&mut txn, table).expect("reads");
                    let sorted: Vec<(i64, i64)> = found.iter().map(|(k, n)| (*k, *n)).collect();
                    assert_eq!(sorted.iter().map(|(_, n)| n).sum::<i64>(), TOTAL);
                    assert_eq!(walked(&mut txn, by_key).expect("reads"), sorted);
                    let mut rows = walked(&mut txn, by_balance).expect("reads");
                    rows.sort_unstable();
                    assert_eq!(rows, sorted, "at {snapshot}");
                    worker.collect_garbage(1);
                    done += 1;
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..600 {
            primary.step(&mut dice);
            primary.flush();
            replica.learn(primary.engine.epoch(), primary.engine.horizon());
            replica.round(&mut |_| {}).expect("follows");
            assert_eq!(replica.engine().next_csn(), primary.engine.next_csn());
        }
        stopping.store(true, Ordering::SeqCst);
    });
    assert!(reads.into_inner() >= usize::from(READERS) * READS_MIN);
    assert!(replica.worker().stats().versions_collected > 0);
}

/// What a batch tells is committed when it is told: whoever waits for that in the function goes on.
#[test]
fn a_batch_is_acknowledged_before_it_is_told() {
    let (env, _) = Env::simulated(4);
    let mut primary = Primary::new(&env);
    let home = home_of(&env);
    let mut beside = Beside::open(&home, &env).expect("opens");
    let mut dice = Dice(3);
    primary.step(&mut dice);
    primary.flush();
    let engine = beside.replica.engine().clone();
    let (epoch, horizon) = (primary.engine.epoch(), primary.engine.horizon());
    beside.replica.learn(epoch, horizon);
    let mut told = 0;
    let round = beside.replica.round(&mut |batch| {
        let last = Csn(batch.visible.get() - 1);
        block_on(engine.acknowledged(CommitWait::floor(last))).expect("it is committed");
        assert!(engine.next_csn() < batch.visible, "and not visible yet");
        told += 1;
    });
    round.expect("follows");
    assert_eq!(told, 1);
    assert_eq!(engine.next_csn(), primary.engine.next_csn());
}

/// A session's own table has a number that no log uses: records of another table never get into it.
#[test]
#[should_panic(expected = "may be one of the log that is followed")]
fn a_temporary_table_with_a_number_of_the_log_is_refused() {
    let (env, _) = Env::simulated(5);
    let _primary = Primary::new(&env);
    let home = home_of(&env);
    let beside = Beside::open(&home, &env).expect("opens");
    beside.replica.engine().create_temporary_table(LATER);
}

/// One that is opened after another one has shown more tells so, until it has come as far.
#[test]
fn a_replica_that_is_opened_again_tells_when_it_has_come_as_far() {
    let (env, _) = Env::simulated(6);
    let mut primary = Primary::new(&env);
    let home = home_of(&env);
    let mut beside = Beside::open(&home, &env).expect("opens");
    let mut dice = Dice(5);
    primary.step(&mut dice);
    primary.flush();
    let (epoch, horizon) = (primary.engine.epoch(), primary.engine.horizon());
    beside.replica.learn(epoch, horizon);
    beside.round(&mut Seen::default()).expect("follows");
    let shown = beside.replica.engine().next_csn();
    assert_eq!(shown, primary.engine.next_csn());
    drop(beside);
    // No block tells of the last ones yet.
    let mut again = Beside::open(&home, &env).expect("opens");
    assert_eq!(again.replica.catch_up(shown, &mut |_| {}).ok(), Some(false));
    assert!(again.replica.engine().next_csn() < shown);
    primary.step(&mut dice);
    primary.flush();
    assert_eq!(again.replica.catch_up(shown, &mut |_| {}).ok(), Some(true));
}
