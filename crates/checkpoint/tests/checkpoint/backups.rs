//! Two backups into one home at the same time, as a bucket allows: whatever each of them does between any two requests
//! of the other one, one of them is the new backup, whole, and the next one goes on from it.

use crate::rig;

use logstead_checkpoint::{
    BackupError, CheckpointError, CheckpointHead, CheckpointRecord, ChunkWriter, Directory,
    NewCheckpoint, ObjectIdAllocator, ObjectWriter, Pin, Publisher, RecoveryTarget, RetainedRecord,
    TableInfo, backup, create_branch, fsck, points, points_of_now,
};
use logstead_env::Env;
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, DatabaseId, Epoch, TableId};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{self, CheckpointRef, Manifest};
use parking_lot::Mutex;
use rig::paused::Paused;
use rig::{Rows, home, key, read_all, write_whole};
use std::collections::BTreeSet;
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(5);
const CHUNKS: u64 = 4;

/// Names a checkpoint in the manifest.
struct InManifest(LogHome);

impl CheckpointHead for InManifest {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        let (bytes, tag) = self.0.names.get(manifest::NAME)?.unwrap();
        let next = Manifest {
            epoch: checkpoint.epoch,
            checkpoint: Some(checkpoint),
            ..Manifest::decode(&bytes).unwrap()
        };
        self.0
            .names
            .compare_and_swap(manifest::NAME, tag, &next.encode())?;
        Ok(())
    }
}

/// A database that takes checkpoints.
#[derive(Clone)]
pub(crate) struct Source(pub(crate) LogHome);

impl Source {
    pub(crate) fn new() -> Source {
        let home = home();
        let first = Manifest::first(DATABASE);
        home.names
            .put_if_absent(manifest::NAME, &first.encode())
            .unwrap();
        let source = Source(home);
        source.checkpoint(1);
        source
    }

    /// What checkpoint `number` holds: each one changes one chunk.
    pub(crate) fn rows(number: u64) -> Rows {
        let written = |chunk| (1..=number).rev().find(|n| n % CHUNKS == chunk || *n == 1);
        let row = |chunk, slot: u16| {
            let by = written(chunk).unwrap();
            ((1, chunk, slot), (Csn(10 * by), vec![by as u8; 40]))
        };
        (0..CHUNKS)
            .flat_map(|chunk| (0..3).map(move |slot| row(chunk, slot)))
            .collect()
    }

    /// Takes checkpoint `number`, in an epoch of its own, and removes what only the one before needed.
    pub(crate) fn checkpoint(&self, number: u64) {
        self.checkpoint_keeping(number, |_: &RetainedRecord| false);
    }

    /// The same; the one before stays as a restore point.
    fn checkpoint_after(&self, number: u64) {
        self.checkpoint_keeping(number, |record| record.csn == Csn(10 * number - 5));
    }

    /// The same; `keep` says which of the checkpoints before stay as restore points.
    pub(crate) fn checkpoint_keeping(&self, number: u64, keep: impl Fn(&RetainedRecord) -> bool) {
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(number as u32)));
        self.checkpoint_with(number, (&object_ids, &object_ids), keep);
    }

    /// The same, with these numbers for the record and for pages.
    fn checkpoint_with(
        &self,
        number: u64,
        (object_ids, of_pages): (&Arc<ObjectIdAllocator>, &Arc<ObjectIdAllocator>),
        keep: impl Fn(&RetainedRecord) -> bool,
    ) {
        let home = &self.0;
        let newest = manifest_of(home).unwrap().checkpoint;
        let root = newest.as_ref().map(|newest| {
            let record =
                CheckpointRecord::read(home.objects.as_ref(), DATABASE, newest.object, newest.crc);
            record.unwrap().root
        });
        let head = InManifest(home.clone());
        let publisher = Publisher::open(
            home.clone(),
            head,
            DATABASE,
            Arc::clone(object_ids),
            newest.as_ref(),
        );
        let csn = Csn(10 * number + 5);
        let mut chunks = ChunkWriter::new();
        let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(of_pages), None);
        let rows = Source::rows(number);
        let changed = (0..CHUNKS).filter(|chunk| number == 1 || number % CHUNKS == *chunk);
        let changes: Vec<_> = changed
            .map(|chunk| {
                let chain = write_whole(&rows, (1, chunk), csn, &mut chunks, &mut writer);
                (key(1, chunk), chain.unwrap())
            })
            .collect();
        let applied = Directory::open(home.objects.clone(), root.flatten())
            .apply(&changes, &BTreeSet::new(), csn, &mut writer)
            .unwrap();
        let new = NewCheckpoint {
            divided: Vec::new(),
            csn,
            taken_at_micros: number as i64,
            tables: vec![TableInfo {
                table: TableId(1),
                rid_end: CHUNKS * 64,
            }],
            indexes: Vec::new(),
            starts: Vec::new(),
        };
        let stored = writer.finish().unwrap();
        let mut publisher = publisher.unwrap();
        publisher.publish(new, &applied, &[], stored, keep).unwrap();
    }

    fn backup(&self, to: &LogHome, seed: u64) -> Result<(), BackupError> {
        backup(&self.0, to, &Env::simulated(seed).0).map(drop)
    }
}

/// It is a whole backup of one of these checkpoints.
fn assert_whole(target: &LogHome, numbers: std::ops::RangeInclusive<u64>, when: &str) {
    let copy = manifest_of(target).unwrap_or_else(|error| panic!("{when}: {error}"));
    let newest = copy.checkpoint.clone().expect("the source has one");
    let report = fsck(target, copy.database, Some(&newest)).unwrap();
    assert!(report.is_clean(), "{when}: {:#?}", report.damage);
    let record = CheckpointRecord::read(
        target.objects.as_ref(),
        copy.database,
        newest.object,
        newest.crc,
    )
    .unwrap();
    let directory = Directory::open(target.objects.clone(), record.root);
    let rows = read_all(target, &directory).unwrap();
    let mut numbers = numbers;
    assert!(numbers.any(|number| rows == Source::rows(number)), "{when}");
    for point in points(target, &copy).unwrap() {
        let at = point.record;
        let read =
            CheckpointRecord::read(target.objects.as_ref(), copy.database, at.object, at.crc);
        let record = read.unwrap_or_else(|error| panic!("{when}: {point:?}: {error}"));
        let directory = Directory::open(target.objects.clone(), record.root);
        let rows = read_all(target, &directory).unwrap();
        assert!(rows == Source::rows(at.csn.get() / 10), "{when}: {point:?}");
    }
}

/// Fails, if it does, because another one was faster.
fn was_faster(outcome: &Result<(), BackupError>, when: &str) -> bool {
    match outcome {
        Ok(()) => false,
        Err(BackupError::Refused { what, .. }) if what.contains("another backup") => true,
        Err(BackupError::Home(HomeError::Conflict(_))) => true,
        Err(error) => panic!("{when}: {error}"),
    }
}

/// A second backup of a newer checkpoint is made, or dies, at any request of the first one.
#[test]
fn of_two_backups_at_once_one_is_there_and_the_next_goes_on_from_it() {
    let (mut lost, mut won) = (0, 0);
    for (older, dies) in [(false, false), (true, false), (true, true)] {
        for at in 0.. {
            let source = Source::new();
            let target = home();
            if older {
                source.backup(&target, 1).unwrap();
            }
            source.checkpoint_after(2);
            let meanwhile = {
                let (source, target) = (source.clone(), target.clone());
                move || {
                    source.checkpoint_after(3);
                    if dies {
                        let requests = 3 + at % 11;
                        let dying = Paused::dead_after(&target, requests);
                        let _dead = source.backup(&dying.home(), 2);
                    } else {
                        source.backup(&target, 2).unwrap();
                    }
                }
            };
            let paused = Paused::at(&target, at, Box::new(meanwhile));
            let first = source.backup(&paused.home(), 3);
            let when = format!("at {at}, over an older one: {older}, dies: {dies}");
            match was_faster(&first, &when) {
                true => lost += 1,
                false => won += 1,
            }
            assert_whole(&target, 1..=3, &when);
            if manifest_of(&source.0).unwrap().epoch < Epoch(3) {
                // It ended before that request.
                source.checkpoint_after(3);
            }
            source.checkpoint_after(4);
            if let Err(error) = source.backup(&target, 4) {
                panic!("{when}: the next one: {error}");
            }
            assert_whole(&target, 4..=4, &when);
            if at >= paused.requests() {
                break;
            }
        }
    }
    assert!(lost > 10 && won > 10, "{lost} {won}");
}

/// A backup of a newer checkpoint has died and left objects. While the first one, of an older checkpoint, still removes
/// what it does not need, the third one takes what was left for copied: it stays.
#[test]
fn what_another_backup_takes_for_copied_is_not_removed() {
    let mut found = 0;
    for at in 0.. {
        let mut ended = false;
        for then in at.. {
            let source = Source::new();
            let target = home();
            source.backup(&target, 1).unwrap();
            source.checkpoint(2);
            let third = {
                let (source, target) = (source.clone(), target.clone());
                move || drop(source.backup(&target, 3))
            };
            // The first one counts twice: by what is around it and by what is inside.
            let inner = Paused::at(&target, then, Box::new(third));
            let dying = {
                let (source, target) = (source.clone(), target.clone());
                move || {
                    source.checkpoint(3);
                    let dying = Paused::dead_after(&target, 12);
                    let _dead = source.backup(&dying.home(), 2);
                }
            };
            let as_home: LogHome = inner.home();
            let outer = Paused::at(&as_home, at, Box::new(dying));
            let first = source.backup(&outer.home(), 4);
            let when = format!("left at {at}, copied at {then}");
            was_faster(&first, &when);
            assert_whole(&target, 1..=3, &when);
            let copy = manifest_of(&target).unwrap();
            found += u32::from(copy.checkpoint.is_some_and(|newest| newest.csn == Csn(35)));
            ended = at >= outer.requests();
            if then >= inner.requests() {
                break;
            }
        }
        if ended {
            break;
        }
    }
    assert!(found > 20, "{found}");
}

/// A branch of the backup is made at any request of the next backup: what it begins with stays.
#[test]
fn a_branch_that_is_made_meanwhile_keeps_what_it_needs() {
    let mut made = 0;
    for at in 0.. {
        let source = Source::new();
        let target = home();
        source.backup(&target, 1).unwrap();
        source.checkpoint(2);
        let branch: Arc<Mutex<Option<Pin>>> = Arc::default();
        let meanwhile = {
            let (target, branch) = (target.clone(), Arc::clone(&branch));
            move || {
                let env = Env::simulated(9).0;
                let newest = RecoveryTarget::Newest;
                *branch.lock() = create_branch(&target, "b", &newest, &env, |_| Ok(home())).ok();
            }
        };
        let paused = Paused::at(&target, at, Box::new(meanwhile));
        let when = format!("made at {at}");
        was_faster(&source.backup(&paused.home(), 2), &when);
        for number in 3..5 {
            source.checkpoint(number);
            if let Err(error) = source.backup(&target, number) {
                panic!("{when}: the next one: {error}");
            }
        }
        if let Some(pin) = branch.lock().take() {
            made += 1;
            let database = manifest_of(&target).unwrap().database;
            let objects = target.objects.as_ref();
            let record = pin.record;
            let read = CheckpointRecord::read(objects, database, record.object, record.crc);
            let read = read.unwrap_or_else(|error| panic!("{when}: {error}"));
            let directory = Directory::open(target.objects.clone(), read.root);
            let rows = read_all(&target, &directory);
            let rows = rows.unwrap_or_else(|error| panic!("{when}: {error}"));
            assert!(rows == Source::rows(record.csn.get() / 10), "{when}");
        }
        if at >= paused.requests() {
            break;
        }
    }
    assert!(made > 10, "{made}");
}

/// Who lists restore points has read the manifest, and then the server takes a checkpoint and removes the record that
/// it named.
#[test]
fn restore_points_are_looked_for_again_where_a_newer_checkpoint_leads() {
    let source = Source::new();
    let old = manifest_of(&source.0).unwrap();
    source.checkpoint(2);
    let record = old.checkpoint.as_ref().unwrap().object;
    source.0.objects.remove_object(record).unwrap();
    assert!(points(&source.0, &old).is_err(), "its record is gone");
    let looks = std::cell::Cell::new(0);
    let manifest = || {
        looks.set(looks.get() + 1);
        Ok::<_, CheckpointError>(match looks.get() {
            1 => old.clone(),
            _ => manifest_of(&source.0).unwrap(),
        })
    };
    let found = points_of_now(&source.0, manifest).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].is_newest && found[0].record.csn == Csn(25));
}

/// Objects that nobody needs go when a checkpoint has passed their numbers, and not before.
#[test]
fn what_was_left_goes_when_a_checkpoint_has_passed_it() {
    let source = Source::new();
    let target = home();
    source.backup(&target, 1).unwrap();
    let left = ObjectId::new(Epoch(2), 7_000);
    target.objects.put_object(left, b"left").unwrap();
    let is_there = || {
        target
            .objects
            .list_objects()
            .unwrap()
            .iter()
            .any(|info| info.id == left)
    };
    source.checkpoint(2);
    source.backup(&target, 1).unwrap();
    assert!(is_there(), "a later checkpoint of its epoch may have it");
    source.checkpoint(3);
    source.backup(&target, 1).unwrap();
    assert!(!is_there());
}

/// Numbers that replicas have, which write pages for the source, are above those of its records of the same epoch. What
/// the backup before needed of these goes all the same when the next one does not.
#[test]
fn objects_of_replicas_go_when_no_backup_needs_them() {
    let (source, target) = (Source::new(), home());
    let own = Arc::new(ObjectIdAllocator::new(Epoch(2)));
    let given = own.give_to_replica(100).unwrap();
    let of_replica = |id: &ObjectId| id.epoch() == Epoch(2) && given.contains(&id.counter());
    let replica = Arc::new(ObjectIdAllocator::of_replica(Epoch(2), given.clone()));
    source.checkpoint_with(2, (&own, &replica), |_| false);
    source.backup(&target, 1).unwrap();
    assert_whole(&target, 2..=2, "with a replica's pages");
    let listed = || {
        let objects = target.objects.list_objects().unwrap();
        let ids: BTreeSet<ObjectId> = objects.into_iter().map(|info| info.id).collect();
        ids
    };
    assert!(listed().iter().any(of_replica));
    // Each of its chunks is written anew, and so is the directory.
    for number in 3..=6 {
        source.checkpoint_with(number, (&own, &own), |_| false);
    }
    source.backup(&target, 2).unwrap();
    assert_whole(&target, 6..=6, "without them");
    assert_eq!(listed().iter().filter(|id| of_replica(id)).count(), 0);
}
