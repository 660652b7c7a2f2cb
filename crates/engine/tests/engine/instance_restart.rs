//! Instances that are restarted: what was committed comes back, what was not does not, and nobody sees anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use logstead_engine::{
    CommitError, Engine, FaultError, FlushMode, Guard, InstanceId, Isolation, MemoryHome,
    PartitionId, RestartError, RestartRound, Txn, VIRTUAL_PARTITIONS, WorkerId, WriteError,
};

use crate::divided::{Place, key, row, values};
use crate::world::{block_on, commit};

type Rows = BTreeMap<(u32, u32), u64>;

/// So many branches: some in each partition.
const BRANCHES: u32 = 400;
/// More than it takes.
const ROUNDS: usize = 60_000;
const ALONE: InstanceId = InstanceId(1);

fn nobody(round: RestartRound<'_>) {
    assert!(round.condemned.is_empty(), "nobody is in the way");
}

/// What is there, by a scan and by the index.
fn all(place: &Place) -> Rows {
    let mut txn = place.workers[0].begin(Isolation::RepeatableRead);
    let found = place.scan(&mut txn);
    let whole = (Bound::Unbounded, Bound::Unbounded);
    let by_key = place.range(&mut txn, whole, false, usize::MAX);
    assert_eq!(found, by_key);
    let rows = found.into_iter();
    rows.map(|(branch, number, value)| ((branch, number), value))
        .collect()
}

/// Rows of all partitions: of each branch the first half is inserted, some of it changed and some deleted.
fn fill(place: &Place, numbers: std::ops::Range<u32>, rows: &mut Rows) {
    for branch in 0..BRANCHES {
        let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
        for number in numbers.clone() {
            place.insert(&mut txn, branch, number, 1);
            rows.insert((branch, number), 1);
        }
        commit(txn);
        let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
        for number in numbers.clone().filter(|number| number % 3 == 0) {
            place.update(&mut txn, (branch, number), (branch, number, 2));
            rows.insert((branch, number), 2);
        }
        for number in numbers.clone().filter(|number| number % 15 == 4) {
            place.delete(&mut txn, branch, number);
            rows.remove(&(branch, number));
        }
        commit(txn);
        let mut txn = place.workers[2].begin(Isolation::ReadCommitted);
        place.insert(&mut txn, branch, 1_000, 9);
        txn.abort();
        place.flush();
    }
}

/// How many rows of an instance there are.
fn of_instance(place: &Place, rows: &Rows, instance: InstanceId) -> u64 {
    let instances = place.engine.instances();
    let is_own = |branch: u32| {
        let partition = logstead_engine::partition_of(&branch.to_be_bytes());
        instances.of_partition(partition) == instance
    };
    rows.keys().filter(|(branch, _)| is_own(*branch)).count() as u64
}

/// With a checkpoint before some of it, with none, and with one that does not have the table: what was committed comes
/// back, into memory, into the next checkpoint, and after a crash.
#[test]
fn what_was_committed_comes_back() {
    for checkpoints in 0..3 {
        let place = Place::new(3);
        let mut rows = Rows::new();
        if checkpoints == 1 {
            place.engine.checkpoint().expect("taken");
        }
        fill(&place, 0..10, &mut rows);
        if checkpoints == 2 {
            place.engine.checkpoint().expect("taken");
            fill(&place, 10..14, &mut rows);
        }
        let dropped = place
            .engine
            .drop_instance(ALONE, ROUNDS, nobody)
            .expect("dropped");
        assert_eq!(dropped.rows, of_instance(&place, &rows, ALONE));
        assert!(dropped.chunks_logged > 0);
        let stats = place.engine.eviction_stats();
        assert_eq!(stats.chunks_in_log, dropped.chunks_logged);
        assert_eq!(stats.rows_loaded, 0);
        assert_eq!(all(&place), rows, "{checkpoints} checkpoints");
        let stats = place.engine.eviction_stats();
        assert!(stats.rows_loaded >= dropped.rows, "they were read");
        assert_eq!(stats.chunks_in_log, 0);
        // They are changed again, and again what only the log has is written by the checkpoint, from the log.
        fill(&place, 20..24, &mut rows);
        let dropped = place
            .engine
            .drop_instance(ALONE, ROUNDS, nobody)
            .expect("dropped");
        let in_log = dropped.chunks_logged;
        assert!(in_log > 0);
        let report = place.engine.checkpoint().expect("taken");
        assert!(report.written);
        let stats = place.engine.eviction_stats();
        assert_eq!(stats.chunks_in_log, 0, "the checkpoint has them");
        assert_eq!(all(&place), rows);
        let place = place.restarted(2);
        assert_eq!(all(&place), rows);
    }
}

/// What marks a chunk as changed and was undone is in no log: its pages stay in the checkpoint.
#[test]
fn what_was_undone_leaves_the_pages_as_they_are() {
    let place = Place::new(3);
    let mut rows = Rows::new();
    fill(&place, 0..10, &mut rows);
    place.engine.checkpoint().expect("taken");
    for branch in 0..BRANCHES {
        let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
        place.update(&mut txn, (branch, 0), (branch, 0, 77));
        txn.abort();
    }
    let dropped = place
        .engine
        .drop_instance(ALONE, ROUNDS, nobody)
        .expect("dropped");
    assert!(dropped.chunks_logged > 0, "they are marked");
    // Something is to be written.
    let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
    let elsewhere = place.branch_of(0, 0);
    place.update(&mut txn, (elsewhere, 0), (elsewhere, 0, 5));
    rows.insert((elsewhere, 0), 5);
    commit(txn);
    place.flush();
    assert!(place.engine.checkpoint().expect("taken").written);
    assert_eq!(place.engine.eviction_stats().chunks_in_log, 0);
    assert_eq!(all(&place), rows);
    let place = place.restarted(3);
    assert_eq!(all(&place), rows);
}

/// In the background all of it comes back, and nothing of others is read.
#[test]
fn it_is_brought_back_in_the_background() {
    let place = Place::new(3);
    let mut rows = Rows::new();
    fill(&place, 0..10, &mut rows);
    place.engine.checkpoint().expect("taken");
    fill(&place, 10..12, &mut rows);
    let dropped = place
        .engine
        .drop_instance(ALONE, ROUNDS, nobody)
        .expect("dropped");
    let (count, chunks) = (dropped.rows, dropped.chunks());
    assert!(chunks > 10, "{dropped:?}");
    assert_eq!(place.engine.bring_back_instance(dropped, || false), 0);
    let dropped = place
        .engine
        .drop_instance(ALONE, ROUNDS, nobody)
        .expect("dropped");
    assert_eq!(dropped.chunks(), 0, "nothing is in memory");
    assert_eq!(all(&place), rows);
    let dropped = place
        .engine
        .drop_instance(ALONE, ROUNDS, nobody)
        .expect("dropped");
    let before = place.engine.eviction_stats().rows_loaded;
    assert!(place.engine.bring_back_instance(dropped, || true) > 0);
    let after = place.engine.eviction_stats().rows_loaded;
    assert!(after - before >= count, "{before} and {after}");
    assert_eq!(all(&place), rows);
    let then = place.engine.eviction_stats().rows_loaded;
    assert_eq!(then, after, "all was there");
}

/// Restarts an instance on a thread; tells each time whom it meets, and what came of it.
fn on_thread(
    engine: &Engine,
    rounds: usize,
    met: mpsc::Sender<usize>,
) -> std::thread::JoinHandle<Result<u64, RestartError>> {
    let engine = engine.clone();
    std::thread::spawn(move || {
        let dropped = engine.drop_instance(ALONE, rounds, |round| {
            let _heard = met.send(round.condemned.len());
        });
        dropped.map(|dropped| dropped.rows)
    })
}

/// Who has written there cannot commit, also what it has written elsewhere; who has not can.
#[test]
fn transactions_with_writes_there_end() {
    let place = Place::new(3);
    let mut rows = Rows::new();
    fill(&place, 0..3, &mut rows);
    let (here, there) = (place.branch_of(0, 0), place.branch_of(ALONE.0, 0));
    let mut across = place.workers[0].begin(Isolation::ReadCommitted);
    place.update(&mut across, (here, 1), (here, 1, 50));
    place.update(&mut across, (there, 1), (there, 1, 50));
    let mut elsewhere = place.workers[2].begin(Isolation::ReadCommitted);
    place.update(&mut elsewhere, (here, 0), (here, 0, 60));
    // Committed, and not durable: it is waited for.
    let mut early = place.workers[1].begin(Isolation::ReadCommitted);
    place.update(&mut early, (there, 0), (there, 0, 70));
    commit(early);
    let (tell, told) = mpsc::channel();
    let restart = on_thread(&place.engine, ROUNDS, tell);
    while told.recv().expect("it goes on") != 1 {}
    assert!(across.is_condemned() && !elsewhere.is_condemned());
    // It holds its rows as long as it is not rolled back, and nobody comes in.
    let mut late = place.workers[1].begin(Isolation::ReadCommitted);
    let refused = late.insert(&place.table, &row(there, 500, 1));
    assert!(matches!(refused, Err(WriteError::InstanceRestarted)));
    drop(late);
    assert!(!restart.is_finished());
    let ended = block_on(across.precommit());
    assert_eq!(ended.err(), Some(CommitError::InstanceRestarted));
    let dropped = restart.join().expect("ends").expect("dropped");
    commit(elsewhere);
    rows.insert((here, 0), 60);
    rows.insert((there, 0), 70);
    assert_eq!(dropped, of_instance(&place, &rows, ALONE));
    place.flush();
    assert_eq!(all(&place), rows);
    // From now on everybody may write there again.
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    place.update(&mut txn, (there, 1), (there, 1, 80));
    commit(txn);
    rows.insert((there, 1), 80);
    place.flush();
    assert_eq!(all(&place.restarted(3)), rows);
}

/// Where nobody rolls back what is in the way the restart is given up, and nothing has changed for anybody else.
#[test]
fn a_restart_that_is_in_vain_leaves_everything_served() {
    let place = Place::new(3);
    let mut rows = Rows::new();
    fill(&place, 0..3, &mut rows);
    let there = place.branch_of(ALONE.0, 0);
    let mut stays = place.workers[0].begin(Isolation::ReadCommitted);
    place.update(&mut stays, (there, 1), (there, 1, 50));
    let (tell, _told) = mpsc::channel();
    let given_up = on_thread(&place.engine, 20, tell).join().expect("ends");
    assert_eq!(given_up, Err(RestartError::InTheWay { chunks: 1 }));
    assert_eq!(all(&place), rows);
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    place.update(&mut txn, (there, 0), (there, 0, 80));
    commit(txn);
    rows.insert((there, 0), 80);
    drop(stays);
    place.flush();
    let dropped = place
        .engine
        .drop_instance(ALONE, ROUNDS, nobody)
        .expect("dropped");
    assert!(dropped.chunks() > 0);
    assert_eq!(all(&place), rows);
}

fn look(place: &Place, txn: &mut Txn, branch: u32, number: u32) -> Result<Option<u64>, FaultError> {
    loop {
        let found = {
            let guard = Guard::pin();
            let found = txn.get(&place.by_key, &key(branch, number), &guard);
            found.map(|found| found.map(|row| values(row.bytes).2))
        };
        match found {
            Ok(found) => return Ok(found),
            Err(absent) => block_on(absent.wait(txn))?,
        }
    }
}

/// An old snapshot sees what it saw of other instances, and of the one that was restarted nothing that it did not see:
/// it is told. New ones are not.
#[test]
fn old_snapshots_are_told_and_see_nothing_wrong() {
    let place = Place::new(3);
    let mut rows = Rows::new();
    fill(&place, 0..4, &mut rows);
    let (here, there) = (place.branch_of(0, 0), place.branch_of(ALONE.0, 0));
    let mut old = place.workers[2].begin(Isolation::RepeatableRead);
    assert_eq!(look(&place, &mut old, there, 0), Ok(Some(2)));
    let mut other = place.workers[0].begin(Isolation::RepeatableRead);
    assert_eq!(look(&place, &mut other, there, 0), Ok(Some(2)));
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    for branch in [here, there] {
        place.update(&mut txn, (branch, 0), (branch, 0, 3));
        place.update(&mut txn, (branch, 1), (branch, 900, 3));
        place.delete(&mut txn, branch, 2);
        place.insert(&mut txn, branch, 901, 3);
    }
    commit(txn);
    place.flush();
    let dropped = place
        .engine
        .drop_instance(ALONE, ROUNDS, nobody)
        .expect("dropped");
    assert!(dropped.rows > 0);
    let lost = Err(FaultError::InstanceRestarted);
    assert_eq!(look(&place, &mut old, there, 0), lost);
    let new = all(&place);
    assert_eq!(new.get(&(there, 0)), Some(&3));
    assert_eq!(new.get(&(there, 900)), Some(&3));
    assert!(!new.contains_key(&(there, 2)));
    // The surplus entries are gone, of the key that was changed and of the row that was deleted.
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    assert_eq!(look(&place, &mut txn, there, 1), Ok(None));
    assert_eq!(look(&place, &mut txn, there, 2), Ok(None));
    // The deleted row's number is another's now.
    let again = place.insert(&mut txn, there, 902, 4);
    commit(txn);
    let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
    assert_eq!(place.get(&mut txn, there, 902), Some((again, 4)));
    drop(txn);
    // They have come back, and what is visible of them is what was seen.
    for txn in [&mut old, &mut other] {
        assert_eq!(look(&place, txn, there, 0), lost);
        assert_eq!(look(&place, txn, there, 1), lost, "another key since");
        assert_eq!(look(&place, txn, there, 2), lost, "deleted since");
        assert_eq!(look(&place, txn, there, 901), lost, "inserted since");
        assert_eq!(look(&place, txn, there, 3), Ok(Some(2)), "unchanged");
        assert_eq!(look(&place, txn, here, 0), Ok(Some(2)));
        assert_eq!(look(&place, txn, here, 1), Ok(Some(1)));
        assert_eq!(look(&place, txn, here, 2), Ok(Some(1)));
        assert_eq!(look(&place, txn, here, 901), lost, "it may have been");
    }
    // By a range of one partition, of all of them, and by a scan.
    for merged in [false, true] {
        let range = match merged {
            true => (Bound::Unbounded, Bound::Unbounded),
            false => {
                let branch = there.to_be_bytes().to_vec();
                (Bound::Included(branch.clone()), Bound::Included(branch))
            }
        };
        let mut cursor = place.cursor(range.0, range.1, false);
        let guard = Guard::pin();
        let next = old.index_next(&mut cursor, &guard).map(|row| row.is_some());
        drop(guard);
        let absent = next.expect_err("it cannot be told");
        assert_eq!(block_on(absent.wait(&mut old)), lost.clone().map(|_| ()));
    }
    let mut cursor = logstead_engine::ScanCursor::new(&place.table);
    let told = loop {
        let guard = Guard::pin();
        let next = old.scan_next(&mut cursor, &guard);
        let next = next.map(|row| row.map(|row| values(row.bytes)));
        drop(guard);
        match next {
            Ok(Some((branch, number, value))) => {
                assert_eq!(rows.get(&(branch, number)), Some(&value));
            }
            Ok(None) => panic!("rows are missing"),
            Err(absent) => {
                if let Err(error) = block_on(absent.wait(&mut old)) {
                    break error;
                }
            }
        }
    };
    assert_eq!(told, FaultError::InstanceRestarted);
}

/// A row stays in its chunk when its distribution key changes: the entry that goes was of a partition of which nothing
/// was dropped.
#[test]
fn old_snapshots_are_told_of_rows_that_lie_elsewhere_than_their_entries() {
    for is_deleted in [false, true] {
        let place = Place::new(3);
        let (here, there) = (place.branch_of(0, 0), place.branch_of(ALONE.0, 0));
        let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
        place.insert(&mut txn, there, 1, 1);
        place.insert(&mut txn, here, 1, 1);
        commit(txn);
        let mut txn = place.workers[1].begin(Isolation::ReadCommitted);
        place.update(&mut txn, (there, 1), (here, 700, 2));
        commit(txn);
        let mut old = place.workers[2].begin(Isolation::RepeatableRead);
        assert_eq!(look(&place, &mut old, here, 700), Ok(Some(2)));
        let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
        match is_deleted {
            true => place.delete(&mut txn, here, 700),
            false => place.update(&mut txn, (here, 700), (here, 701, 3)),
        }
        commit(txn);
        place.flush();
        let dropped = place
            .engine
            .drop_instance(ALONE, ROUNDS, nobody)
            .expect("dropped");
        assert_eq!(dropped.rows, u64::from(!is_deleted));
        // Whoever meets the surplus entry takes it out.
        let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
        assert_eq!(look(&place, &mut txn, here, 700), Ok(None));
        drop(txn);
        let lost = Err(FaultError::InstanceRestarted);
        assert_eq!(look(&place, &mut old, here, 700), lost);
        assert_eq!(look(&place, &mut old, here, 1), Ok(Some(1)));
        let bound = Bound::Included(here.to_be_bytes().to_vec());
        let mut cursor = place.cursor(bound.clone(), bound, false);
        let guard = Guard::pin();
        let next = old.index_next(&mut cursor, &guard).map(|row| row.is_some());
        drop(guard);
        let absent = next.expect_err("it cannot be told");
        assert_eq!(block_on(absent.wait(&mut old)), lost.map(|_| ()));
    }
}

#[test]
fn there_has_to_be_such_an_instance() {
    let refused = |instances, number| {
        let place = Place::open(MemoryHome::new(8 << 20), instances, 0);
        let refused = place
            .engine
            .drop_instance(InstanceId(number), ROUNDS, nobody);
        refused.err()
    };
    assert_eq!(refused(1, 0), Some(RestartError::OneInstance));
    assert_eq!(refused(3, 3), Some(RestartError::NoInstance(InstanceId(3))));
}

/// What a thread has been told.
#[derive(Default)]
struct Tally {
    committed: AtomicU64,
    ended: AtomicU64,
    /// Transactions inside instances that were not being restarted.
    others: AtomicU64,
}

/// One transfer between two accounts; false if it was ended.
fn transfer(place: &Place, worker: usize, from: (u32, u32), to: (u32, u32)) -> bool {
    let mut txn = place.workers[worker].begin(Isolation::ReadCommitted);
    for ((branch, number), by) in [(from, -1_i64), (to, 1)] {
        loop {
            txn.begin_statement();
            let done = {
                let guard = Guard::pin();
                match txn.get(&place.by_key, &key(branch, number), &guard) {
                    Err(absent) => Err(WriteError::Absent(absent)),
                    Ok(found) => {
                        let found = found.expect("accounts stay");
                        let value = values(found.bytes).2.wrapping_add_signed(by);
                        let (rid, version) = (found.rid, found.version);
                        txn.update(&place.table, rid, version, &row(branch, number, value))
                    }
                }
            };
            let waited = match done {
                Ok(()) => break,
                Err(WriteError::Absent(absent)) => block_on(absent.wait(&mut txn)).is_ok(),
                Err(WriteError::Blocked(blocker)) => block_on(blocker.wait(&mut txn)).is_ok(),
                Err(WriteError::Changed) => true,
                Err(WriteError::InstanceRestarted) => false,
                Err(error) => panic!("{error}"),
            };
            if !waited {
                return false;
            }
        }
    }
    match block_on(txn.precommit()) {
        Ok(_) => true,
        Err(CommitError::InstanceRestarted) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Transfers across instances, instances that are restarted again and again, partitions that move, checkpoints, and in
/// the end a crash: the sum is what it was, at every snapshot, and as many transfers are there as were committed.
#[test]
fn sums_hold_while_instances_restart() {
    const EACH: u64 = 1_000;
    const TRANSFERS: u64 = 3_000;
    let place = Place::new(3);
    let mut rows = Rows::new();
    for branch in 0..60 {
        let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
        place.insert(&mut txn, branch, 0, EACH);
        // How many transfers it was in.
        place.insert(&mut txn, branch, 1, 0);
        rows.insert((branch, 0), EACH);
        commit(txn);
    }
    place.flush();
    place.engine.checkpoint().expect("taken");
    let (stop, tally) = (Arc::new(AtomicBool::new(false)), Arc::new(Tally::default()));
    let restarts = {
        let (engine, stop, tally) = (place.engine.clone(), stop.clone(), tally.clone());
        std::thread::spawn(move || {
            let (mut restarts, mut random) = (0_u64, 1_u64);
            while !stop.load(Ordering::Relaxed) {
                random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
                let number = (random >> 33) as u16;
                let to = InstanceId((number >> 6) % 3);
                engine
                    .instances()
                    .assign(PartitionId(number % VIRTUAL_PARTITIONS), to);
                let others = tally.committed.load(Ordering::Relaxed);
                engine
                    .drop_instance(InstanceId(number % 3), ROUNDS, |_| ())
                    .expect("all transactions end");
                let more = tally.committed.load(Ordering::Relaxed) - others;
                tally.others.fetch_add(more, Ordering::Relaxed);
                restarts += 1;
                if number.is_multiple_of(16) {
                    engine.checkpoint().expect("taken");
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            restarts
        })
    };
    let engine = place.engine.clone();
    let Place {
        home,
        workers,
        table,
        by_key,
        restored,
        ..
    } = place;
    // Workers are their threads'.
    drop(workers);
    let place_of = |worker: u16| Place {
        home: home.clone(),
        engine: engine.clone(),
        workers: vec![engine.worker(WorkerId(worker))],
        table: table.clone(),
        by_key: by_key.clone(),
        restored,
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for worker in 0..2 {
            let (tally, place_of) = (&tally, &place_of);
            threads.push(scope.spawn(move || {
                let place = place_of(worker);
                let mut random = u64::from(worker) + 7;
                let mut done = 0;
                while done < TRANSFERS {
                    random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
                    let (one, two) = ((random >> 33) as u32 % 60, (random >> 43) as u32 % 60);
                    // In one order, so that nobody waits in a circle.
                    let (from, to) = (one.min(two), one.max(two));
                    if from == to {
                        continue;
                    }
                    match transfer(&place, 0, (from, 0), (to, 0)) {
                        true => {
                            done += 1;
                            tally.committed.fetch_add(1, Ordering::Relaxed);
                        }
                        false => drop(tally.ended.fetch_add(1, Ordering::Relaxed)),
                    }
                    if done.is_multiple_of(16) {
                        place.workers[0].flush(FlushMode::Inline);
                    }
                    place.workers[0].collect_garbage(8);
                }
            }));
        }
        let (place_of, stop) = (&place_of, &stop);
        let reader = scope.spawn(move || {
            let place = place_of(2);
            let (mut sums, mut told) = (0, 0);
            while !stop.load(Ordering::Relaxed) || sums == 0 {
                let mut txn = place.workers[0].begin(Isolation::RepeatableRead);
                let found: Result<Vec<u64>, FaultError> = (0..60)
                    .map(|branch| Ok(look(&place, &mut txn, branch, 0)?.expect("accounts stay")))
                    .collect();
                match found {
                    Ok(found) => {
                        let sum = found.into_iter().fold(0, u64::wrapping_add);
                        assert_eq!(sum, 60 * EACH, "a snapshot is torn");
                        sums += 1;
                    }
                    Err(FaultError::InstanceRestarted) => told += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            (sums, told)
        });
        for thread in threads {
            thread.join().expect("ends");
        }
        stop.store(true, Ordering::Relaxed);
        let (sums, _told) = reader.join().expect("ends");
        assert!(sums > 0);
    });
    let restarts = restarts.join().expect("ends");
    assert!(restarts > 3, "{restarts} restarts");
    assert!(tally.others.load(Ordering::Relaxed) > 0, "others went on");
    let place = Place {
        workers: (0..3)
            .map(|worker| engine.worker(WorkerId(worker)))
            .collect(),
        home,
        engine,
        table,
        by_key,
        restored,
    };
    place.flush();
    let before = all(&place);
    let sum = |rows: &Rows| {
        let accounts = rows.iter().filter(|((_, number), _)| *number == 0);
        accounts.fold(0, |sum: u64, (_, value)| sum.wrapping_add(*value))
    };
    assert_eq!(sum(&before), 60 * EACH);
    let keys: BTreeSet<_> = before.keys().copied().collect();
    assert_eq!(keys.len(), 120);
    let after = all(&place.restarted(3));
    assert_eq!(after, before);
}
