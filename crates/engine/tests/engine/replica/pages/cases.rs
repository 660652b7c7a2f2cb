//! Single cases, each named for what would go wrong.

use logstead_home::{
    ImmutableObjects, MemoryHome, NamedValues, ObjectCopies, ObjectInfo, ObjectReader, Tag,
};
use logstead_types::Epoch;
use logstead_wal::manifest;
use parking_lot::Mutex;
use std::cell::Cell;

use super::*;

/// The primary stores no page, and what the replica has stored is what it then reads itself.
#[test]
fn a_replica_writes_the_pages_and_the_primary_publishes_them() {
    let (env, primary, home) = begun(1);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    let mut dice = Dice(7);
    for round in 0..12 {
        for _ in 0..5 {
            primary.step(&mut dice);
        }
        primary.flush();
        let how = How::Writes;
        let taken = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        let taken = taken.expect("taken");
        assert!(taken.by_replica && taken.written, "round {round}");
        assert_eq!((taken.objects, taken.bytes, taken.rows), (0, 0, 0));
        check(&primary, "by the replica");
        // What the replica has written may go, on both sides, and comes back.
        beside.follow(&primary, &mut seen).expect("follows");
        primary.engine.evict_all();
        beside.replica.engine().evict_all();
        let mut txn = primary.worker.begin(Isolation::RepeatableRead);
        assert_eq!(
            &scanned(&mut txn, &primary.table).expect("reads"),
            primary.state()
        );
    }
    let stats = primary.engine.checkpoint_stats();
    assert_eq!((stats.by_replicas, stats.replica_failures), (12, 0));
    assert!(primary.engine.eviction_stats().rows_loaded > 0);
    // Only the leaves' record is kept beside, until the primary takes one itself.
    drop(service);
    change_one(&mut primary);
    primary.engine.checkpoint().expect("taken");
    check(&primary, "by the primary");
    check_objects(&primary, "at the end");
    let primary = primary.crash();
    check(&primary, "after a crash");
}

/// A home and a second copy of its objects, which the replica does not reach.
struct TwoCopies {
    first: LogHome,
    second: LogHome,
}

impl TwoCopies {
    fn copies(&self) -> [&LogHome; 2] {
        [&self.first, &self.second]
    }
}

impl ObjectReader for TwoCopies {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.first.objects.read_object(id, offset, into)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        Some(self)
    }
}

impl ObjectCopies for TwoCopies {
    fn object_copy_count(&self) -> usize {
        self.copies().len()
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.copies()[copy].objects.read_object(id, offset, into)
    }
}

impl ImmutableObjects for TwoCopies {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        let mut copies = self.copies().into_iter();
        copies.try_for_each(|copy| copy.objects.put_object(id, bytes))
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.first.objects.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        let mut copies = self.copies().into_iter();
        copies.try_for_each(|copy| copy.objects.remove_object(id))
    }
}

/// What a replica has stored where it reaches counts when the primary has it everywhere.
#[test]
fn what_a_replica_has_stored_is_in_every_copy_before_it_counts() {
    let (env, _) = Env::simulated(9);
    let second = LogHome::from(MemoryHome::new(1 << 20));
    let first = own_home(&env);
    let objects = TwoCopies {
        first: first.clone(),
        second: second.clone(),
    };
    let of_primary = LogHome {
        objects: Arc::new(objects),
        ..first
    };
    let primary = Primary::over(&env, open_primary_on(of_primary, &env));
    primary.engine.checkpoint().expect("taken");
    let home = home_of(&env);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    for round in 0..3 {
        change_one(&mut primary);
        let how = How::Writes;
        let taken = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        assert!(taken.expect("taken").by_replica, "round {round}");
        let record = check(&primary, "by the replica");
        for used in &record.objects {
            let read = second
                .objects
                .read_object(used.object, used.size_bytes - 1, &mut [0; 2]);
            assert!(
                matches!(read, Ok(1)),
                "round {round}: {}: {read:?}",
                used.object
            );
        }
    }
}

/// The primary takes a checkpoint itself, which has a row that was inserted since the replica's last, and that is gone
/// again before the replica hears of it: nothing is left of it there, and the record has it.
#[test]
fn a_row_deleted_after_a_checkpoint_of_the_primary_does_not_come_back() {
    let (env, primary, home) = begun(2);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    for k in 300..330 {
        change_one(&mut primary);
        let how = How::Writes;
        let first = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        assert!(first.expect("taken").by_replica);
        beside.follow(&primary, &mut seen).expect("follows");
        insert_one(&mut primary, k);
        let how = How::Refuses;
        let own = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        assert!(!own.expect("taken").by_replica);
        // It is in that one.
        let record = check(&primary, "by the primary");
        assert!(
            rows_in(&home, &record, TABLE)
                .values()
                .any(|(key, _)| *key == k)
        );
        delete_one(&mut primary, k);
        // Applies both before it adopts.
        beside.follow(&primary, &mut seen).expect("follows");
        let how = How::Writes;
        let last = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        assert!(last.expect("taken").by_replica);
        check(&primary, "by the replica");
    }
}

/// The same where the chunk is empty then: it goes from the directory.
#[test]
fn a_chunk_of_which_nothing_is_known_and_that_is_empty_goes() {
    let (env, primary, home) = begun(3);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    let mut by = |primary: &mut Primary, beside: &mut Beside<'_>, how| {
        let taken = checkpoint_by(primary, beside, &mut service, how, &mut seen, nothing);
        let record = check(primary, "in between");
        let chunks = rows_in(&home, &record, TABLE);
        let chunks: BTreeSet<u64> = chunks.keys().map(|rid| rid / 64).collect();
        (taken.expect("taken").by_replica, chunks)
    };
    let few = BTreeSet::from([0, 1]);
    change_one(&mut primary);
    assert_eq!(
        by(&mut primary, &mut beside, How::Writes),
        (true, few.clone())
    );
    // A chunk comes, of which the replica hears when it has gone again; the primary has it in a checkpoint.
    (1_000..1_092).for_each(|k| insert_one(&mut primary, k));
    let many = BTreeSet::from([0, 1, 2]);
    assert_eq!(by(&mut primary, &mut beside, How::Refuses), (false, many));
    (1_000..1_092).for_each(|k| delete_one(&mut primary, k));
    beside
        .follow(&primary, &mut Seen::default())
        .expect("follows");
    assert_eq!(by(&mut primary, &mut beside, How::Writes), (true, few));
}

/// A home's named values, of which the manifest can be changed, and neither the answer nor the manifest be had.
struct Doubtful {
    names: Arc<dyn NamedValues>,
    failing: Mutex<bool>,
}

impl Doubtful {
    fn answer<T>(&self, name: &str, answer: Result<T, HomeError>) -> Result<T, HomeError> {
        match name == manifest::NAME && *self.failing.lock() {
            true => Err(HomeError::io(
                "reach the home",
                std::io::ErrorKind::TimedOut.into(),
            )),
            false => answer,
        }
    }
}

impl NamedValues for Doubtful {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.answer(name, self.names.get(name))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.answer(name, self.names.put_if_absent(name, bytes))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.answer(name, self.names.compare_and_swap(name, expected, bytes))
    }

    fn limit_name_requests(&self, first: Duration) {
        self.names.limit_name_requests(first);
    }
}

/// It is not known whether what a replica has written was published: it stays until that is known, though strays are
/// looked for meanwhile.
#[test]
fn what_a_replica_has_written_stays_while_its_publication_is_in_doubt() {
    let (env, _) = Env::simulated(5);
    let (engine, doubtful) = {
        let home = LogHome::from(LocalHome::open(DIR, &env, local()).expect("not in use"));
        let doubtful = Arc::new(Doubtful {
            names: Arc::clone(&home.names),
            failing: Mutex::new(false),
        });
        let names = Arc::clone(&doubtful) as Arc<dyn NamedValues>;
        let opened = Engine::open(options(u64::MAX), LogHome { names, ..home }, env.clone());
        (opened.expect("opens").0, doubtful)
    };
    let primary = Primary::over(&env, engine);
    primary.engine.checkpoint().expect("taken");
    let home = home_of(&env);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    // Strays may come from here on.
    change_one(&mut primary);
    let how = How::AnswerLost;
    let own = checkpoint_by(
        &mut primary,
        &mut beside,
        &mut service,
        how,
        &mut seen,
        nothing,
    );
    assert!(!own.expect("taken").by_replica);
    beside.follow(&primary, &mut seen).expect("follows");
    drop(service.take());
    primary.engine.create_restore_point("before").expect("made");
    beside.follow(&primary, &mut seen).expect("follows");
    service = Some(Service::new(&primary, &beside));
    change_one(&mut primary);
    let mut calls = 0;
    let fail = |_: &mut Primary, _: &mut Beside<'_>, _: &mut Seen| {
        calls += 1;
        *doubtful.failing.lock() = calls == 2;
    };
    let how = How::Writes;
    let failed = checkpoint_by(
        &mut primary,
        &mut beside,
        &mut service,
        how,
        &mut seen,
        fail,
    );
    assert!(failed.is_err(), "{failed:?}");
    *doubtful.failing.lock() = false;
    // It was named. What is collected meanwhile leaves it alone.
    primary
        .engine
        .drop_restore_point("before")
        .expect("dropped");
    check(&primary, "in doubt");
    let (_, record) = record_of(&home);
    assert!(
        record
            .objects
            .iter()
            .any(|used| used.object.counter() >= 1 << 30)
    );
    drop(service);
    change_one(&mut primary);
    primary.engine.checkpoint().expect("taken");
    check(&primary, "after that");
    check_objects(&primary, "at the end");
    // It has the home's lock.
    drop(doubtful);
    let primary = primary.crash();
    check(&primary, "after a crash");
}

/// Objects that a replica has stored for an order that was given up go, however late they come; those that a record
/// may name stay.
#[test]
fn objects_of_what_was_given_up_go_and_those_that_a_record_may_name_stay() {
    let (env, primary, home) = begun(4);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    change_one(&mut primary);
    let how = How::AnswerLost;
    let taken = checkpoint_by(
        &mut primary,
        &mut beside,
        &mut service,
        how,
        &mut seen,
        nothing,
    );
    assert!(!taken.expect("taken").by_replica);
    check(&primary, "by the primary");
    check_objects(&primary, "what the answer names is gone");
    // The answer comes after all: nobody waits for it.
    let late = service.as_mut().and_then(|service| service.late.take());
    let late = late.expect("it is on its way");
    service.as_ref().expect("it is back").offer.replied(late);
    // And the replica stores one more, for it has heard of nothing.
    let stray = ObjectId::new(primary.engine.epoch(), (1 << 30) + 9);
    stores(&env)
        .objects
        .put_object(stray, b"late")
        .expect("stored");
    change_one(&mut primary);
    beside.follow(&primary, &mut seen).expect("follows");
    let how = How::Writes;
    let taken = checkpoint_by(
        &mut primary,
        &mut beside,
        &mut service,
        how,
        &mut seen,
        nothing,
    );
    assert!(taken.expect("taken").by_replica);
    let (_, record) = record_of(&home);
    assert!(
        record
            .objects
            .iter()
            .any(|used| used.object.counter() >= 1 << 30)
    );
    let is_there = home.objects.read_object(stray, 0, &mut [0]);
    assert!(
        matches!(is_there, Err(HomeError::Missing(_))),
        "{is_there:?}"
    );
    check(&primary, "by the replica");
    drop(service);
    change_one(&mut primary);
    primary.engine.checkpoint().expect("taken");
    check_objects(&primary, "at the end");
}

/// A snapshot of the primary's that is older than what the replica keeps finds its rows by indexes, though their leaves
/// were not in memory, whoever has written the newest checkpoints.
#[test]
fn an_old_snapshot_of_the_primary_finds_its_rows_by_an_index() {
    let (env, mut primary, home) = begun(8);
    primary.change(|txn, table, _, state| {
        for k in 1_000..2_500 {
            insert(txn, table, &row_of(k, 0, 3))?;
            state.insert(k, 0);
        }
        Ok(())
    });
    primary.flush();
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    let mut old = primary.worker.begin(Isolation::RepeatableRead);
    let all = scanned(&mut old, &primary.table).expect("reads");
    let by_key: Vec<(i64, i64)> = all.iter().map(|(k, n)| (*k, *n)).collect();
    let mut writers = Vec::new();
    for how in [
        How::Writes,
        How::Refuses,
        How::Writes,
        How::Writes,
        How::Refuses,
    ] {
        let gone: Vec<i64> = primary
            .state()
            .keys()
            .skip(1)
            .step_by(200)
            .copied()
            .collect();
        assert!(!gone.is_empty());
        gone.into_iter().for_each(|k| delete_one(&mut primary, k));
        // What no snapshot of the replica needs has gone there, with its entries.
        beside.follow(&primary, &mut seen).expect("follows");
        let taken = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        writers.push(taken.expect("taken").by_replica);
        check(&primary, "beside an old snapshot");
        primary.by_key.evict_all_leaves();
        assert!(primary.by_key.absent_leaf_count() > 0, "a leaf was away");
        assert_eq!(walked(&mut old, &primary.by_key).expect("reads"), by_key);
    }
    assert_eq!(writers, [true, false, true, true, false]);
}

/// What a replica tells that is not so is found out before it is published.
#[test]
fn lies_are_not_published() {
    let (env, primary, home) = begun(6);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    for how in LIES {
        change_one(&mut primary);
        let taken = checkpoint_by(
            &mut primary,
            &mut beside,
            &mut service,
            how,
            &mut seen,
            nothing,
        );
        assert!(!taken.expect("taken").by_replica, "{how:?}");
        check(&primary, "a lie");
        beside.follow(&primary, &mut seen).expect("follows");
    }
    let stats = primary.engine.checkpoint_stats();
    assert_eq!(
        (stats.by_replicas, stats.replica_failures),
        (0, LIES.len() as u64)
    );
    // It is asked again, for all that; and of tiles that are gone it writes all.
    let how = How::Writes;
    change_one(&mut primary);
    let taken = checkpoint_by(
        &mut primary,
        &mut beside,
        &mut service,
        how,
        &mut seen,
        nothing,
    );
    assert!(taken.expect("taken").by_replica);
    check(&primary, "the truth");
}

/// A replica that says nothing costs one wait: until it has told the end of its order it gets no other one.
#[test]
fn one_that_is_silent_is_not_asked_again() {
    let (env, primary, home) = begun(7);
    let (mut primary, mut beside, service) = pair(&env, &home, primary);
    let (mut service, mut seen) = (Some(service), Seen::default());
    let services = Arc::clone(primary.engine.page_services());
    services.set_silence_max(Duration::from_millis(60));
    let life = Cell::new(Epoch(0));
    let mut by = |primary: &mut Primary, beside: &mut Beside<'_>, service: &mut _, how| {
        change_one(primary);
        let taken = checkpoint_by(primary, beside, service, how, &mut seen, nothing);
        let taken = taken.expect("taken");
        life.set(taken.epoch);
        taken.by_replica
    };
    for _ in 0..3 {
        assert!(!by(&mut primary, &mut beside, &mut service, How::Silent));
    }
    assert_eq!(primary.engine.checkpoint_stats().replica_failures, 1);
    let offer = &service.as_ref().expect("it is there").offer;
    offer.replied(PageReply::Refused {
        // Its first one: numbers begin with the epoch.
        order: u64::from(life.get().get()) << 32,
        why: "it was away".to_owned(),
    });
    beside
        .follow(&primary, &mut Seen::default())
        .expect("follows");
    services.set_silence_max(Duration::from_secs(600));
    assert!(by(&mut primary, &mut beside, &mut service, How::Writes));
}
