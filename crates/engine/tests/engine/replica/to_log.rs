//! Chunks of a primary that leave memory once their log is durable, and come back from a replica, or from the log: what
//! anybody reads is what was committed, whoever gives it, whatever is published meanwhile, and whoever has gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use logstead_engine::{
    EvictionStats, PageReadAnswer, PageReply, PageRequest, PageRow, PageServiceOffer,
    ReplicaPageReader,
};

use super::pages::{How, Service, begun, check, checkpoint_by, nothing};
use super::*;

/// Who reads, and those who read ahead.
const LOADERS: usize = 5;

/// What a replica says that is asked for rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tells {
    /// What it has.
    Rows,
    /// Nothing at all.
    Silence,
    /// That it has no rows there.
    Less,
    /// Rows in the right places, of which one is another version.
    OtherVersion,
    /// Nothing, and its connection is lost.
    Goodbye,
}

/// A replica that is asked for rows, on a thread of its own.
struct RowsService {
    stop: Arc<AtomicBool>,
    /// How often it was asked.
    thread: Option<JoinHandle<usize>>,
}

impl RowsService {
    fn new(primary: &Primary, beside: &Beside<'_>, tells: Tells) -> RowsService {
        let offer = primary.engine.page_services().offer();
        offer.gives_rows();
        let reader = beside.replica.page_reader();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(offer, reader, tells, &stopped));
        RowsService {
            stop,
            thread: Some(thread),
        }
    }

    /// Ends it, and tells how often it was asked.
    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        let thread = self.thread.take().expect("it is there");
        thread.join().expect("ends")
    }
}

impl Drop for RowsService {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("ends");
        }
    }
}

fn serve(
    offer: PageServiceOffer,
    mut reader: ReplicaPageReader,
    tells: Tells,
    stopped: &AtomicBool,
) -> usize {
    let mut asked = 0;
    while !stopped.load(Ordering::SeqCst) {
        match offer.take() {
            None => std::thread::yield_now(),
            Some(PageRequest::Cancel(_)) => {}
            Some(PageRequest::Order(order)) => offer.replied(PageReply::Refused {
                order: order.number,
                why: "it tells rows alone".to_owned(),
            }),
            Some(PageRequest::Read(read)) => {
                asked += 1;
                let answer = reader.answer(&read);
                match tells {
                    Tells::Rows => offer.answered(answer),
                    Tells::Silence => {}
                    Tells::Less => offer.answered(PageReadAnswer {
                        number: read.number,
                        rows: Ok(Vec::new()),
                    }),
                    Tells::OtherVersion => {
                        let mut answer = answer;
                        if let Some(row) = answer.rows.as_mut().ok().and_then(|rows| {
                            let newest = |row: &&mut PageRow| row.csn;
                            rows.iter_mut().max_by_key(newest)
                        }) {
                            row.csn = Csn(row.csn.get() - 1);
                        }
                        offer.answered(answer);
                    }
                    Tells::Goodbye => return asked,
                }
            }
        }
    }
    asked
}

/// What was evicted and brought in.
fn stats(primary: &Primary) -> EvictionStats {
    primary.engine.eviction_stats()
}

/// All that the primary shows now is what was committed.
fn read_all(primary: &Primary, what: &str) {
    let mut txn = primary.worker.begin(Isolation::RepeatableRead);
    let found = scanned(&mut txn, &primary.table).expect("reads");
    assert_eq!(&found, primary.state(), "{what}");
}

/// Its rows have changed, and are durable; the replica has them.
fn changed(seed: u64, primary: &mut Primary, beside: &mut Beside<'_>) {
    let mut dice = Dice(seed);
    for _ in 0..20 {
        primary.step(&mut dice);
    }
    primary.flush();
    while primary.worker.collect_garbage(1_000) {}
    beside
        .follow(primary, &mut Seen::default())
        .expect("follows");
}

/// What a checkpoint does not have leaves, and comes back as it was: from the replica, without a look at the log.
#[test]
fn what_only_the_log_has_comes_back_from_a_page_service() {
    let (env, mut primary, home) = begun(1);
    let mut beside = Beside::open(&home, &env).expect("opens");
    for round in 0..4 {
        changed(round, &mut primary, &mut beside);
        assert_eq!(primary.engine.evict_all_to_log(), 0, "nobody gives it back");
        let service = RowsService::new(&primary, &beside, Tells::Rows);
        let before = stats(&primary);
        let gone = primary.engine.evict_all_to_log();
        assert!(gone > 0);
        assert_eq!(stats(&primary).chunks_in_log, gone);
        assert_eq!(primary.engine.evict_all_to_log(), 0, "all have gone");
        read_all(&primary, "from a page service");
        let after = stats(&primary);
        let by_services = after.chunks_from_page_services - before.chunks_from_page_services;
        assert_eq!(by_services, gone);
        assert_eq!((after.chunks_in_log, after.chunks_from_log), (0, 0));
        assert!(service.end() as u64 >= gone, "each is asked for");
        // Nothing stands in its way any more than before.
        assert_eq!(primary.engine.evict_all_to_log(), 0, "nobody gives it back");
    }
    let primary = primary.crash();
    read_all(&primary, "after a crash");
}

/// The same when the replica has gone since: the log is read, once for all that is away.
#[test]
fn what_only_the_log_has_comes_back_from_the_log() {
    let (env, mut primary, home) = begun(2);
    let mut beside = Beside::open(&home, &env).expect("opens");
    for round in 0..4 {
        changed(round, &mut primary, &mut beside);
        let before = stats(&primary);
        let service = RowsService::new(&primary, &beside, Tells::Rows);
        let gone = primary.engine.evict_all_to_log();
        assert!(gone > 1);
        drop(service);
        read_all(&primary, "from the log");
        let after = stats(&primary);
        assert_eq!(after.chunks_from_log - before.chunks_from_log, gone);
        assert_eq!(after.log_readings - before.log_readings, 1);
        assert_eq!(after.chunks_in_log, 0);
        if round == 1 {
            primary.engine.checkpoint().expect("taken");
        }
    }
}

/// What a crash may take back, what is locked or being changed, and what a checkpoint that is being taken needs stays.
#[test]
fn what_may_be_taken_back_or_is_in_use_stays() {
    let (env, mut primary, home) = begun(3);
    let mut beside = Beside::open(&home, &env).expect("opens");
    let _service = RowsService::new(&primary, &beside, Tells::Rows);
    // A row that was there before has two versions until then: one that was not there has one.
    let add = |primary: &mut Primary, k: i64| {
        primary.change(|txn, table, _, state| {
            state.insert(k, 0);
            insert(txn, table, &row_of(k, 0, 3))
        });
    };
    add(&mut primary, 5_000);
    assert_eq!(primary.engine.evict_all_to_log(), 0, "it is not durable");
    primary.flush();
    let mut txn = primary.worker.begin(Isolation::ReadCommitted);
    let rows = (&primary.table, &primary.by_key);
    update(&mut txn, rows, 5_000, Some(row_of(5_000, 5, 3))).expect("writes");
    assert_eq!(primary.engine.evict_all_to_log(), 0, "somebody changes it");
    drop(txn);
    while primary.worker.collect_garbage(1_000) {}
    // A checkpoint that was begun before the last change.
    let checkpoint = primary.engine.begin_checkpoint().expect("begins");
    add(&mut primary, 5_001);
    primary.flush();
    assert_eq!(
        primary.engine.evict_all_to_log(),
        0,
        "a checkpoint needs it"
    );
    drop(checkpoint);
    while primary.worker.collect_garbage(1_000) {}
    assert!(primary.engine.evict_all_to_log() > 0);
    beside
        .follow(&primary, &mut Seen::default())
        .expect("follows");
    let mut txn = primary.worker.begin(Isolation::RepeatableRead);
    let found = scanned(&mut txn, &primary.table).expect("reads");
    assert_eq!(found.len(), primary.state().len());
}

/// A checkpoint that the primary takes itself has what has left, by the log; one that a replica writes has it anyway.
/// From then on it is read from there.
#[test]
fn a_checkpoint_has_what_has_left() {
    let (env, mut primary, home) = begun(4);
    let mut beside = Beside::open(&home, &env).expect("opens");
    let brought = beside.replica.engine().bring_all(|| true);
    brought.expect("brought in");
    let mut seen = Seen::default();
    for round in 0..8 {
        changed(round, &mut primary, &mut beside);
        let rows = RowsService::new(&primary, &beside, Tells::Rows);
        let gone = primary.engine.evict_all_to_log();
        assert!(gone > 0);
        let before = stats(&primary);
        let by_replica = round % 2 == 1;
        let mut service = by_replica.then(|| Service::new(&primary, &beside));
        if round % 4 == 0 {
            drop(rows);
        }
        let taken = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            How::Writes,
            &mut seen,
            nothing,
        );
        let taken = taken.expect("taken");
        assert_eq!(taken.by_replica, by_replica, "round {round}");
        check(&primary, "with what has left");
        let after = stats(&primary);
        let loaded = |stats: &EvictionStats| {
            (
                stats.chunks_from_page_services,
                stats.chunks_from_log,
                stats.rows_loaded,
            )
        };
        assert_eq!(loaded(&after), loaded(&before), "nothing came into memory");
        assert_eq!(after.chunks_in_log, 0, "the checkpoint has it");
        read_all(&primary, "from the checkpoint");
        let after = stats(&primary);
        assert_eq!(after.chunks_from_log, before.chunks_from_log);
    }
    let primary = primary.crash();
    read_all(&primary, "after a crash");
}

/// A table that was made after the newest checkpoint, which a replica has written, is in that in nothing: the log has
/// all of it.
#[test]
fn a_table_that_no_checkpoint_has_comes_back_from_the_log() {
    let (env, mut primary, home) = begun(10);
    let mut beside = Beside::open(&home, &env).expect("opens");
    let brought = beside.replica.engine().bring_all(|| true);
    brought.expect("brought in");
    let mut seen = Seen::default();
    changed(1, &mut primary, &mut beside);
    primary.engine.checkpoint().expect("taken");
    changed(2, &mut primary, &mut beside);
    let mut service = Some(Service::new(&primary, &beside));
    let taken = checkpoint_by(
        &mut primary,
        &mut beside,
        &mut service,
        How::Writes,
        &mut seen,
        nothing,
    );
    assert!(taken.expect("taken").by_replica);
    let mut dice = Dice(11);
    (0..5).for_each(|_| primary.step_later(&mut dice));
    primary.flush();
    let rows = RowsService::new(&primary, &beside, Tells::Rows);
    assert!(primary.engine.evict_all_to_log() > 0);
    drop((rows, service));
    let table = primary.engine.table(LATER).expect("it was made");
    let mut txn = primary.worker.begin(Isolation::RepeatableRead);
    let found = scanned(&mut txn, &table).expect("reads");
    let expected = primary.later.values().next_back().expect("one");
    assert_eq!(&found, expected);
    assert!(stats(&primary).chunks_from_log > 0);
}

/// One that says nothing costs one wait, and then another one is asked, or the log; one that tells what was not there
/// is not believed, and left alone; one that goes in the middle is replaced.
#[test]
fn one_that_does_not_answer_is_replaced() {
    for (tells, with_another) in [
        (Tells::Silence, true),
        (Tells::Goodbye, true),
        (Tells::Silence, false),
        (Tells::Less, false),
        (Tells::OtherVersion, false),
        (Tells::Goodbye, false),
    ] {
        let what = format!("{tells:?}, another: {with_another}");
        let (env, mut primary, home) = begun(5);
        primary
            .engine
            .page_services()
            .set_read_time_max(Duration::from_millis(100));
        let mut beside = Beside::open(&home, &env).expect("opens");
        changed(7, &mut primary, &mut beside);
        let bad = RowsService::new(&primary, &beside, tells);
        let good = with_another.then(|| RowsService::new(&primary, &beside, Tells::Rows));
        let gone = primary.engine.evict_all_to_log();
        assert!(gone > 1, "{what}");
        read_all(&primary, &what);
        let after = stats(&primary);
        let asked = bad.end();
        match good {
            Some(good) => {
                assert_eq!(after.chunks_from_page_services, gone, "{what}");
                assert!(good.end() as u64 >= gone, "{what}");
                assert!(asked <= LOADERS, "{what}: it is not asked again");
            }
            None => {
                assert_eq!(after.chunks_from_log, gone, "{what}");
                assert!((1..=LOADERS).contains(&asked), "{what}: {asked}");
            }
        }
    }
}

/// Chunks are divided among those that give rows.
#[test]
fn chunks_are_divided_among_page_services() {
    let (env, mut primary, home) = begun(6);
    primary.change(|txn, table, _, state| {
        for k in 1_000..3_000 {
            txn.insert(table, &row_of(k, 0, 3))?;
            state.insert(k, 0);
        }
        Ok(())
    });
    primary.flush();
    let mut beside = Beside::open(&home, &env).expect("opens");
    changed(8, &mut primary, &mut beside);
    let services: Vec<_> = (0..3)
        .map(|_| RowsService::new(&primary, &beside, Tells::Rows))
        .collect();
    let gone = primary.engine.evict_all_to_log();
    assert!(gone > 20);
    read_all(&primary, "from three");
    let asked: Vec<usize> = services.into_iter().map(RowsService::end).collect();
    assert!(asked.iter().sum::<usize>() as u64 >= gone);
    assert!(asked.iter().all(|count| *count > 2), "{asked:?}");
}

/// One history of a primary whose chunks leave, with checkpoints of its own and of its replica's, crashes of both, and
/// services that come and go.
fn run_to_log(seed: u64, counts: &mut BTreeMap<&'static str, u64>) {
    let mut dice = Dice(seed);
    let (env, mut primary, home) = begun(seed);
    let services = |primary: &Primary| {
        let services = primary.engine.page_services();
        services.set_read_time_max(Duration::from_millis(50));
    };
    services(&primary);
    primary
        .engine
        .replica_holds()
        .set_limit(Duration::from_secs(3600));
    let mut seen = Seen::default();
    let open = || loop {
        match Beside::open(&home, &env) {
            Ok(beside) => return beside,
            Err(ReplicaError::Removed { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    };
    let mut beside = open();
    let mut rows: Option<RowsService> = None;
    let mut count = |what, by: u64| *counts.entry(what).or_default() += by;
    for step in 0..120 {
        beside.tell(&primary, &mut seen);
        let what = format!("seed {seed}, step {step}");
        match dice.below(24) {
            0..=7 => (0..=dice.below(4)).for_each(|_| primary.step(&mut dice)),
            8 => primary.step_later(&mut dice),
            9..=10 => primary.flush(),
            11..=13 => match beside.follow(&primary, &mut seen) {
                Ok(()) => {}
                Err(ReplicaError::Removed { .. } | ReplicaError::Ended) => {
                    rows = None;
                    beside = open();
                }
                Err(error) => panic!("{what}: {error}"),
            },
            14..=17 => {
                if rows.is_none() {
                    rows = Some(RowsService::new(&primary, &beside, Tells::Rows));
                }
                while primary.worker.collect_garbage(1_000) {}
                primary.engine.evict_all();
                count("left", primary.engine.evict_all_to_log());
            }
            18 => rows = None,
            19..=20 => read_all(&primary, &what),
            21 if dice.below(3) == 0 => {
                rows = None;
                (beside.holder, beside.is_held) = (None, false);
                let before = stats(&primary);
                count("services", before.chunks_from_page_services);
                count("log", before.chunks_from_log);
                count("crashed with", before.chunks_in_log);
                primary = primary.crash();
                services(&primary);
                primary
                    .engine
                    .replica_holds()
                    .set_limit(Duration::from_secs(3600));
            }
            21 => {
                rows = None;
                beside = open();
            }
            _ => {
                let how = match dice.below(4) {
                    0 => How::Refuses,
                    1 => How::Gone,
                    _ => How::Writes,
                };
                let before = stats(&primary).chunks_in_log;
                let mut service = (dice.below(2) == 0).then(|| Service::new(&primary, &beside));
                let taken = checkpoint_by(
                    &mut primary,
                    &mut beside,
                    &mut service,
                    how,
                    &mut seen,
                    nothing,
                );
                let taken = taken.expect("taken");
                check(&primary, &what);
                if taken.written && before > 0 {
                    count(
                        if taken.by_replica {
                            "by replica"
                        } else {
                            "own"
                        },
                        1,
                    );
                    assert_eq!(stats(&primary).chunks_in_log, 0, "{what}");
                }
            }
        }
    }
    read_all(&primary, "at the end");
    let after = stats(&primary);
    count("services", after.chunks_from_page_services);
    count("log", after.chunks_from_log);
}

#[test]
fn whatever_leaves_is_what_was_committed_when_it_comes_back() {
    let mut counts = BTreeMap::new();
    for seed in 200..208 {
        run_to_log(seed, &mut counts);
    }
    for what in [
        "left",
        "services",
        "log",
        "own",
        "by replica",
        "crashed with",
    ] {
        assert!(
            counts.get(what).is_some_and(|count| *count > 0),
            "{counts:?}"
        );
    }
}

/// Everything, whatever has to go meanwhile.
fn read_in_little_memory(primary: &Primary) -> (State, Vec<(i64, i64)>) {
    let engine = &primary.engine;
    let mut txn = primary.worker.begin(Isolation::RepeatableRead);
    let loaded = |txn: &mut Txn, absent: PageFault| {
        for _ in 0..3 {
            match absent.load_here(txn) {
                Err(FaultError::OutOfMemory(_)) => drop(engine.evict_all()),
                done => return done.expect("reads"),
            }
        }
        panic!("there is no room");
    };
    let mut state = State::new();
    let mut cursor = ScanCursor::new(&primary.table);
    loop {
        let found = {
            let guard = Guard::pin();
            let row = txn.scan_next(&mut cursor, &guard);
            row.map(|row| row.map(|row| (column(&row, 0), balance(&row))))
        };
        match found {
            Ok(Some((k, n))) => assert_eq!(state.insert(k, n), None, "key {k} twice"),
            Ok(None) => break,
            Err(absent) => loaded(&mut txn, absent),
        }
    }
    let mut rows = Vec::new();
    let mut cursor = IndexCursor::new(&primary.by_key, Bound::Unbounded, Bound::Unbounded, false);
    loop {
        let found = {
            let guard = Guard::pin();
            let row = txn.index_next(&mut cursor, &guard);
            row.map(|row| row.map(|row| (column(&row, 0), balance(&row))))
        };
        match found {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => return (state, rows),
            Err(absent) => loaded(&mut txn, absent),
        }
    }
}

/// A start that has no room for what the log says of all chunks leaves some of them to the log: rows and indexes are
/// what was committed, and the first checkpoint has them.
#[test]
fn a_start_without_room_leaves_chunks_to_the_log() {
    const ROWS: i64 = 6_000;
    let (env, mut primary, _home) = begun(9);
    let fill = |primary: &mut Primary, keys: std::ops::Range<i64>| {
        for first in keys.clone().step_by(500) {
            primary.change(|txn, table, _, state| {
                for k in first..(first + 500).min(keys.end) {
                    insert(txn, table, &row_of(k, 0, 300))?;
                    state.insert(k, 0);
                }
                Ok(())
            });
            primary.flush();
        }
    };
    fill(&mut primary, 1_000..1_000 + ROWS);
    primary.engine.checkpoint().expect("taken");
    // Half of them get another key, and all another filling.
    for first in (1_000..1_000 + ROWS).step_by(500) {
        primary.change(|txn, table, by_key, state| {
            for k in first..first + 500 {
                let key = if k % 2 == 0 { k } else { k + 100_000 };
                let n = state.remove(&k).expect("it is there");
                state.insert(key, n + 1 - (k % 3) * 2);
                let row = row_of(key, state[&key], 290 + (k % 20) as usize);
                update(txn, (table, by_key), k, Some(row))?;
            }
            Ok(())
        });
        primary.flush();
        while primary.worker.collect_garbage(1_000) {}
    }
    // And there are more that no checkpoint has.
    fill(&mut primary, 20_000..20_000 + ROWS / 2);
    let expected = primary.state().clone();
    let by_key: Vec<(i64, i64)> = expected.iter().map(|(k, n)| (*k, *n)).collect();
    drop(primary);
    let columns = [(BY_KEY, true, 0), (BY_BALANCE, false, 1)];
    let wanted = columns.map(|(id, unique, column)| {
        let keys: Arc<dyn KeyExtractor> = Arc::new(Column(column));
        (id, unique, keys)
    });
    // No checkpoint has the pages of the two indexes yet: they stay in memory.
    let opened = Engine::open(options(5 << 20), own_home(&env), env.clone());
    let (engine, _) = opened.expect("opens");
    let left = engine.eviction_stats().chunks_in_log;
    assert!(left > 10, "{left} of {}", engine.memory().used_bytes());
    let table = create_table(&engine);
    let restored = engine.restore_indexes(&table, wanted.to_vec());
    let of_index = |restored| match restored {
        RestoredIndex::Restored(index) => index,
        other => panic!("{other:?}"),
    };
    let restored = restored.expect("reads").into_iter().map(of_index);
    let indexes: Vec<_> = restored.collect();
    // Once for both, and once at most for each chunk whose keys the log does not say.
    let readings = engine.eviction_stats().log_readings;
    assert!((1..=1 + left).contains(&readings), "{readings}, {left}");
    engine.finish_startup();
    let by_key_index = Arc::clone(&indexes[0]);
    let worker = engine.worker(WorkerId(0));
    let primary = Primary {
        env,
        worker,
        table,
        by_key: by_key_index,
        states: BTreeMap::new(),
        later: BTreeMap::new(),
        flushed: 0,
        engine,
    };
    let one = expected.keys().nth(4_000).copied().expect("there are many");
    let mut txn = primary.worker.begin(Isolation::ReadCommitted);
    let found = present(&mut txn, |txn| {
        let guard = Guard::pin();
        let row = txn.get(&primary.by_key, &key(one), &guard)?;
        Ok(row.map(|row| balance(&row)))
    });
    assert_eq!(found.expect("reads"), Some(expected[&one]));
    drop(txn);
    primary.engine.checkpoint().expect("taken");
    assert_eq!(primary.engine.eviction_stats().chunks_in_log, 0);
    primary.engine.evict_all();
    let (rows, walked) = read_in_little_memory(&primary);
    assert_eq!(rows, expected);
    assert_eq!(walked, by_key);
    // A start that has room finds the same.
    let env = primary.env.clone();
    drop(primary);
    let mut primary = Primary::over_again(&env);
    primary.states.insert(0, expected);
    read_all(&primary, "after another start");
}
