//! Checkpoints whose pages a replica writes for its primary: whoever writes them, whatever is in between and whatever
//! goes wrong, what is published holds the primary's rows at its CSN, in chunks and in each index, and no object stays
//! that no record names.

use std::collections::BTreeSet;

use logstead_checkpoint::{CheckpointRecord, Directory, Leaf, PageKey, PageReader, fsck};
use logstead_engine::{
    CheckpointReport, PageOrder, PageReply, PageRequest, PageServiceOffer, ReplicaCheckpoint,
    RowRef,
};
use logstead_home::{HomeError, ObjectId};
use logstead_wal::inspect::manifest_of;

use super::*;

mod cases;

/// What a replica makes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Writes,
    Refuses,
    /// It writes all, and its connection is lost before it can say so.
    AnswerLost,
    /// The same before it has written.
    Gone,
    /// It says nothing, and its connection stays.
    Silent,
    /// It tells a CSN that nobody has drawn.
    BeginsLater,
    /// One below the order's.
    BeginsEarlier,
    /// Its record has another checksum.
    OtherChecksum,
    /// It names the record in force as its own.
    OtherRecord,
    /// It names tiles of a record that is not there.
    OtherTiles,
    /// It has never begun.
    NotBegun,
}

const LIES: [How; 6] = [
    How::BeginsLater,
    How::BeginsEarlier,
    How::OtherChecksum,
    How::OtherRecord,
    How::OtherTiles,
    How::NotBegun,
];

/// Where a replica stores pages.
fn stores(env: &Env) -> LogHome {
    LogHome::from(LocalHome::open_to_store_objects(DIR, env).expect("it is there"))
}

/// A replica that offers itself to its primary.
pub(super) struct Service {
    offer: PageServiceOffer,
    /// An answer that was not delivered.
    late: Option<PageReply>,
}

impl Service {
    pub(super) fn new(primary: &Primary, beside: &Beside<'_>) -> Service {
        beside.replica.writes_pages();
        Service {
            offer: primary.engine.page_services().offer(),
            late: None,
        }
    }
}

impl Beside<'_> {
    /// Applies all that the primary has written.
    pub(super) fn follow(
        &mut self,
        primary: &Primary,
        seen: &mut Seen,
    ) -> Result<(), ReplicaError> {
        let (epoch, horizon) = (primary.engine.epoch(), primary.engine.horizon());
        self.replica.learn(epoch, horizon);
        self.round(seen)?;
        self.session_tells();
        while self.replica.worker().collect_garbage(1_000) {}
        Ok(())
    }

    /// Its session tells which snapshots it has.
    fn session_tells(&self) {
        self.worker.collect_garbage(1);
    }

    fn begin_pages(
        &mut self,
        order: &PageOrder,
        env: &Env,
    ) -> Result<ReplicaCheckpoint, CheckpointError> {
        self.replica.begin_checkpoint(order.clone(), stores(env))
    }
}

/// A checkpoint of the primary, while the replica does with the order as it is told. `meanwhile` is called between the
/// steps of the replica.
pub(super) fn checkpoint_by(
    primary: &mut Primary,
    beside: &mut Beside<'_>,
    service: &mut Option<Service>,
    how: How,
    seen: &mut Seen,
    mut meanwhile: impl FnMut(&mut Primary, &mut Beside<'_>, &mut Seen),
) -> Result<CheckpointReport, CheckpointError> {
    let engine = primary.engine.clone();
    std::thread::scope(|scope| {
        let taken = scope.spawn(move || engine.checkpoint());
        while !taken.is_finished() {
            let request = service.as_ref().and_then(|service| service.offer.take());
            match request {
                None => std::thread::yield_now(),
                Some(PageRequest::Cancel(_)) => beside.replica.give_up_checkpoint(),
                Some(PageRequest::Read(_)) => unreachable!("it tells no rows"),
                Some(PageRequest::Order(order)) => {
                    obey(primary, beside, service, how, &order, seen, &mut meanwhile);
                }
            }
        }
        taken.join().expect("ends")
    })
}

fn obey(
    primary: &mut Primary,
    beside: &mut Beside<'_>,
    service: &mut Option<Service>,
    how: How,
    order: &PageOrder,
    seen: &mut Seen,
    meanwhile: &mut dyn FnMut(&mut Primary, &mut Beside<'_>, &mut Seen),
) {
    let Some(offer) = service.as_ref().map(|service| &service.offer) else {
        return;
    };
    let (number, in_force) = (order.number, order.record);
    let refusal = |why: &str| PageReply::Refused {
        order: number,
        why: why.to_owned(),
    };
    match how {
        How::Refuses => return offer.replied(refusal("as it was told")),
        How::Silent => return,
        How::Gone => return drop(service.take()),
        _ => {}
    }
    if let Err(error) = beside.follow(primary, seen) {
        return offer.replied(refusal(&error.to_string()));
    }
    let begun = match beside.begin_pages(order, &primary.env) {
        Ok(begun) => begun,
        Err(error) => return offer.replied(refusal(&error.to_string())),
    };
    let csn = match how {
        How::BeginsLater => Csn(primary.engine.next_csn().get() + 1_000),
        How::BeginsEarlier => Csn(order.from.get() - 1),
        _ => begun.csn(),
    };
    if how != How::NotBegun {
        offer.replied(PageReply::Begun { order: number, csn });
    }
    meanwhile(primary, beside, seen);
    // Somebody may have given it up meanwhile.
    let mut steps = 0;
    let written = begun.write(|| {
        steps += 1;
        offer.replied(PageReply::Working { order: number });
    });
    meanwhile(primary, beside, seen);
    let lie = match (written, how) {
        (
            PageReply::Written {
                order,
                record: (object, crc),
                tiles,
            },
            how,
        ) => {
            let (record, tiles) = match how {
                How::OtherChecksum => ((object, crc ^ 1), tiles),
                How::OtherRecord => (in_force, tiles),
                How::OtherTiles => ((object, crc), Some(ObjectId(77))),
                _ => ((object, crc), tiles),
            };
            PageReply::Written {
                order,
                record,
                tiles,
            }
        }
        (other, _) => other,
    };
    if how == How::AnswerLost {
        // The connection is lost; the answer is still on its way.
        let late = service.take().map(|service| service.offer);
        drop(late);
        *service = Some(Service {
            offer: primary.engine.page_services().offer(),
            late: Some(lie),
        });
    } else {
        offer.replied(lie);
    }
}

/// The record that the manifest names, whole.
fn record_of(home: &LogHome) -> (ObjectId, CheckpointRecord) {
    let manifest = manifest_of(home).expect("reads");
    let at = manifest.checkpoint.clone().expect("there is one");
    let objects = home.objects.as_ref();
    let record = CheckpointRecord::read(objects, manifest.database, at.object, at.crc);
    let report = fsck(home, manifest.database, Some(&at)).expect("reads");
    assert!(report.is_clean(), "{:?}", report.damage);
    (at.object, record.expect("reads"))
}

/// By row number: key and balance.
type Rows = BTreeMap<u64, (i64, i64)>;

fn number_in(bytes: &[u8]) -> i64 {
    let bytes: [u8; 8] = bytes.try_into().expect("eight bytes");
    (u64::from_be_bytes(bytes) ^ (1 << 63)) as i64
}

fn rows_in(home: &LogHome, record: &CheckpointRecord, of: TableId) -> Rows {
    let directory = Directory::open(home.objects.clone(), record.root);
    let mut reader = PageReader::new(home.objects.clone());
    let mut rows = Rows::new();
    for entry in directory.scan(None) {
        let (key, chain) = entry.expect("reads");
        let PageKey::Rows { table, chunk } = key else {
            continue;
        };
        if table != of {
            continue;
        }
        let key = PageKey::Rows { table, chunk };
        reader
            .rows(
                &key,
                &chain,
                |_| true,
                |slot, csn, row| {
                    let Some(row) = row else { return };
                    assert!(
                        csn < record.csn,
                        "a row of {csn} in a checkpoint at {}",
                        record.csn
                    );
                    let row = RowRef::parse(row).expect("a row");
                    let at = |i| number_in(row.column(i).expect("not null"));
                    rows.insert(chunk * 64 + u64::from(slot), (at(0), at(1)));
                },
            )
            .expect("reads");
    }
    rows
}

/// What is published holds what the primary had at its CSN, in rows and in indexes.
pub(super) fn check(primary: &Primary, what: &str) -> CheckpointRecord {
    let home = home_of(&primary.env);
    let (_, record) = record_of(&home);
    let rows = rows_in(&home, &record, TABLE);
    let found: State = rows.values().copied().collect();
    assert_eq!(found.len(), rows.len(), "{what}: a key twice");
    let expected = Primary::state_at(&primary.states, record.csn);
    assert_eq!(&found, expected, "{what}: at {}", record.csn);
    let later: State = rows_in(&home, &record, LATER).values().copied().collect();
    let expected = Primary::state_at(&primary.later, record.csn);
    assert_eq!(&later, expected, "{what}: at {}", record.csn);
    let directory = Directory::open(home.objects.clone(), record.root);
    let mut reader = PageReader::new(home.objects.clone());
    for info in &record.indexes {
        assert_ne!(info.keys, 0, "{what}: {info:?}");
        let mut entries = BTreeSet::new();
        let mut leaf = Leaf::default();
        for tile in directory.tiles(info.table, info.index, Vec::new()) {
            let (low, chain) = tile.expect("reads");
            let (table, index) = (info.table, info.index);
            let key = PageKey::Leaf { table, index, low };
            reader.leaf(&key, &chain, &mut leaf).expect("reads");
            entries.extend(leaf.entries().map(<[u8]>::to_vec));
        }
        for (rid, (k, n)) in rows_in(&home, &record, info.table) {
            let mut entry = key(if info.index == BY_BALANCE { n } else { k });
            entry.extend_from_slice(&rid.to_be_bytes());
            let is_there = entries.contains(&entry);
            assert!(is_there, "{what}: row {rid} is not in {info:?}");
        }
    }
    record
}

/// The home has what the newest record needs, and nothing else.
fn check_objects(primary: &Primary, what: &str) {
    let home = home_of(&primary.env);
    let (object, record) = record_of(&home);
    let named = record.objects.iter().map(|used| used.object);
    let named: BTreeSet<ObjectId> = named.chain([object]).collect();
    let listed = home.objects.list_objects().expect("lists");
    let listed: BTreeSet<ObjectId> = listed.into_iter().map(|info| info.id).collect();
    assert_eq!(listed, named, "{what}");
}

/// A primary and a replica that has all leaves and has adopted a checkpoint of this life of the primary.
fn pair<'h>(env: &Env, home: &'h LogHome, mut primary: Primary) -> (Primary, Beside<'h>, Service) {
    let mut seen = Seen::default();
    let mut beside = Beside::open(home, env).expect("opens");
    beside
        .replica
        .engine()
        .bring_all(|| true)
        .expect("brought in");
    change_one(&mut primary);
    assert!(primary.engine.checkpoint().expect("taken").written);
    beside.follow(&primary, &mut seen).expect("follows");
    let service = Service::new(&primary, &beside);
    (primary, beside, service)
}

pub(super) fn change_one(primary: &mut Primary) {
    let first = primary.state().first_key_value();
    let (k, n) = first.map(|(k, n)| (*k, *n)).expect("there are rows");
    primary.change(|txn, table, by_key, _| update(txn, (table, by_key), k, Some(row_of(k, n, 3))));
    primary.flush();
}

fn insert_one(primary: &mut Primary, k: i64) {
    primary.change(|txn, table, _, state| {
        state.insert(k, 0);
        insert(txn, table, &row_of(k, 0, 3))
    });
    primary.flush();
}

fn delete_one(primary: &mut Primary, k: i64) {
    primary.change(|txn, table, by_key, state| {
        state.remove(&k);
        update(txn, (table, by_key), k, None)
    });
    primary.flush();
    while primary.worker.collect_garbage(1_000) {}
}

pub(super) fn nothing(_: &mut Primary, _: &mut Beside<'_>, _: &mut Seen) {}

pub(super) fn begun(seed: u64) -> (Env, Primary, LogHome) {
    let (env, _) = Env::simulated(seed);
    let primary = Primary::new(&env);
    primary.engine.checkpoint().expect("taken");
    let home = home_of(&env);
    (env, primary, home)
}

/// One history of a primary and a replica that writes its pages, or does not.
fn run_pages(seed: u64, counts: &mut BTreeMap<&'static str, usize>) {
    let mut dice = Dice(seed);
    let (env, _) = Env::simulated(seed);
    let mut primary = Primary::new(&env);
    let keep = [Duration::ZERO, Duration::from_secs(3600)][dice.below(2)];
    primary.engine.replica_holds().set_limit(keep);
    primary.engine.checkpoint().expect("taken");
    let home = home_of(&env);
    let mut seen = Seen::default();
    let open = |dice: &mut Dice| loop {
        match Beside::open(&home, &env) {
            Ok(beside) => {
                let brought = dice.below(3) > 0;
                if !brought || beside.replica.engine().bring_all(|| true).is_ok() {
                    return beside;
                }
            }
            Err(ReplicaError::Removed { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    };
    let mut beside = open(&mut dice);
    let mut service = Some(Service::new(&primary, &beside));
    for step in 0..160 {
        if !keep.is_zero() {
            beside.tell(&primary, &mut seen);
        }
        let what = format!("seed {seed}, step {step}");
        match dice.below(30) {
            0..=9 => (0..=dice.below(4)).for_each(|_| primary.step(&mut dice)),
            10 => primary.step_later(&mut dice),
            11..=12 => primary.flush(),
            13..=16 => match beside.follow(&primary, &mut seen) {
                Ok(()) => {}
                Err(ReplicaError::Removed { .. } | ReplicaError::Ended) => {
                    drop(service.take());
                    beside = open(&mut dice);
                    service = Some(Service::new(&primary, &beside));
                }
                Err(error) => panic!("{what}: {error}"),
            },
            17 => drop(beside.replica.engine().evict_all()),
            18 => drop(primary.engine.evict_all()),
            19 if dice.below(4) == 0 => {
                // Either is killed.
                drop(service.take());
                (beside.holder, beside.is_held) = (None, false);
                if dice.below(2) == 0 {
                    primary = primary.crash();
                    primary.engine.replica_holds().set_limit(keep);
                    *counts.entry("crashes").or_default() += 1;
                } else {
                    beside = open(&mut dice);
                }
                service = Some(Service::new(&primary, &beside));
            }
            _ => {
                let how = match dice.below(12) {
                    0 => How::Refuses,
                    1 => How::AnswerLost,
                    2 => How::Gone,
                    3 => LIES[dice.below(LIES.len())],
                    _ => How::Writes,
                };
                primary.flush();
                let mut busy = Dice(dice.below(1 << 30) as u64);
                let meanwhile =
                    |primary: &mut Primary, beside: &mut Beside<'_>, seen: &mut Seen| {
                        for _ in 0..busy.below(4) {
                            primary.step(&mut busy);
                        }
                        match busy.below(4) {
                            0 => primary.flush(),
                            1 => drop(beside.replica.engine().evict_all()),
                            2 => drop(primary.engine.evict_all()),
                            _ => {}
                        }
                        if busy.below(2) == 0 {
                            primary.flush();
                            // What it finds it tells its reader.
                            let _or_removed = beside.follow(primary, seen);
                        }
                    };
                let taken = checkpoint_by(
                    &mut primary,
                    &mut beside,
                    &mut service,
                    how,
                    &mut seen,
                    meanwhile,
                );
                let taken = taken.unwrap_or_else(|error| panic!("{what}: {error}"));
                let by = match (taken.written, taken.by_replica) {
                    (true, true) => "by the replica",
                    (true, false) => "by the primary",
                    (false, _) => "unchanged",
                };
                *counts.entry(by).or_default() += 1;
                check(&primary, &format!("{what}, {how:?}, {by}"));
                if service.is_none() {
                    service = Some(Service::new(&primary, &beside));
                }
            }
        }
        if let Some(late) = service.as_mut().and_then(|service| service.late.take()) {
            service.as_ref().expect("it is there").offer.replied(late);
        }
        if step % 8 > 0 {
            continue;
        }
        // What the primary shows is what it has written, from whosever pages.
        let mut txn = primary.worker.begin(Isolation::RepeatableRead);
        let table = Arc::clone(&primary.table);
        assert_eq!(
            &scanned(&mut txn, &table).expect("reads"),
            primary.state(),
            "{what}"
        );
        let by_key = walked(&mut txn, &primary.by_key).expect("reads");
        let expected: Vec<(i64, i64)> = primary.state().iter().map(|(k, n)| (*k, *n)).collect();
        assert_eq!(by_key, expected, "{what}");
    }
    drop(service);
    drop(beside);
    primary.engine.replica_holds().set_limit(Duration::ZERO);
    for _ in 0..2 {
        change_one(&mut primary);
        primary.engine.checkpoint().expect("taken");
    }
    check_objects(&primary, &format!("seed {seed}: at the end"));
    let primary = primary.crash();
    check(&primary, &format!("seed {seed}: after a crash"));
    let stats = primary.engine.checkpoint_stats();
    *counts.entry("failures").or_default() += stats.replica_failures as usize;
}

/// Whoever writes the pages, whatever fails and whatever is done meanwhile.
#[test]
fn every_checkpoint_holds_what_the_primary_had_whoever_has_written_it() {
    let mut counts = BTreeMap::new();
    for seed in 0..6 {
        run_pages(seed, &mut counts);
    }
    for what in ["by the replica", "by the primary", "crashes", "failures"] {
        assert!(counts.contains_key(what), "{counts:?}");
    }
}
