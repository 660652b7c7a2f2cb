//! Backups that are made again and again, and the restore points in them.

use crate::backups::Source;
use crate::rig;

use logstead_checkpoint::{
    BackupSession, CheckpointError, CheckpointRecord, Directory, Pin, PinKind, Pins, PinsError,
    RecoveryPoint, RecoveryTarget, RetainedRecord, fsck, pin_point, points,
};
use logstead_env::Env;
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{LogHome, ObjectHome, ObjectId, ObjectOptions};
use logstead_types::Csn;
use logstead_wal::inspect::manifest_of;
use rig::paused::Paused;
use rig::{home, read_all};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Makes the newest checkpoint a restore point.
fn pin(source: &Source, name: &str) {
    let pin = |_: &Pins, record: RetainedRecord| {
        Ok::<_, CheckpointError>(Pin {
            kind: PinKind::Point,
            name: name.to_owned(),
            record,
        })
    };
    let manifest = || Ok(manifest_of(&source.0).unwrap());
    let pinned = pin_point(&source.0, &RecoveryTarget::Newest, pin, manifest);
    pinned.unwrap().expect("there is a checkpoint");
}

fn unpin(source: &Source, name: &str) {
    let there = Pins::change(source.0.names.as_ref(), |pins| {
        Ok::<_, PinsError>(pins.remove_point(name))
    });
    assert!(there.unwrap());
}

/// Which checkpoint of the source it is.
fn number_of(csn: Csn) -> u64 {
    csn.get() / 10
}

/// All restore points of a backup, each of which is whole; and what they need.
fn whole_points(target: &LogHome, when: &str) -> (Vec<RecoveryPoint>, BTreeSet<ObjectId>) {
    let copy = manifest_of(target).unwrap_or_else(|error| panic!("{when}: {error}"));
    let found = points(target, &copy).unwrap_or_else(|error| panic!("{when}: {error}"));
    let mut needed = BTreeSet::new();
    for point in &found {
        let at = point.record;
        let objects = target.objects.as_ref();
        let record = CheckpointRecord::read(objects, copy.database, at.object, at.crc);
        let record = record.unwrap_or_else(|error| panic!("{when}: {point:?}: {error}"));
        let directory = Directory::open(target.objects.clone(), record.root);
        let rows = read_all(target, &directory);
        let rows = rows.unwrap_or_else(|error| panic!("{when}: {point:?}: {error}"));
        assert!(
            rows == Source::rows(number_of(record.csn)),
            "{when}: {point:?}"
        );
        needed.extend(record.objects.iter().map(|used| used.object));
        needed.insert(at.object);
    }
    let report = fsck(target, copy.database, copy.checkpoint.as_ref()).unwrap();
    assert!(report.is_clean(), "{when}: {:#?}", report.damage);
    (found, needed)
}

fn numbers(points: &[RecoveryPoint]) -> Vec<(u64, Vec<&str>)> {
    points
        .iter()
        .map(|point| {
            let names = point.names.iter().map(String::as_str).collect();
            (number_of(point.record.csn), names)
        })
        .collect()
}

/// Three checkpoints: the first has a name, the second is kept, the third is the newest.
fn with_points() -> Source {
    let source = Source::new();
    pin(&source, "one");
    source.checkpoint(2);
    source.checkpoint_keeping(3, |record| record.csn == Csn(25));
    source
}

#[test]
fn restore_points_come_over_and_go_when_the_source_drops_them() {
    let (source, target, env) = (with_points(), home(), Env::simulated(1).0);
    let mut session = BackupSession::new();
    let done = session.round(&source.0, &target, &env).unwrap();
    assert_eq!((done.points, done.points_left_out), (2, 0));
    let (found, _) = whole_points(&target, "first");
    assert_eq!(
        numbers(&found),
        [(1, vec!["one"]), (2, vec![]), (3, vec![])]
    );
    // One more name, and what it names is newest no more.
    pin(&source, "three");
    source.checkpoint_keeping(4, |record| record.csn == Csn(25));
    session.round(&source.0, &target, &env).unwrap();
    let (found, _) = whole_points(&target, "second");
    let four = [
        (1, vec!["one"]),
        (2, vec![]),
        (3, vec!["three"]),
        (4, vec![]),
    ];
    assert_eq!(numbers(&found), four);
    // A copy of the copy has them, too.
    let again = home();
    BackupSession::new().round(&target, &again, &env).unwrap();
    assert_eq!(numbers(&whole_points(&again, "again").0), four);
    unpin(&source, "one");
    unpin(&source, "three");
    source.checkpoint(5);
    session.round(&source.0, &target, &env).unwrap();
    let (found, needed) = whole_points(&target, "third");
    assert_eq!(numbers(&found), [(5, vec![])]);
    let there = target.objects.list_objects().unwrap();
    let there: BTreeSet<ObjectId> = there.iter().map(|info| info.id).collect();
    assert_eq!(there, needed, "nothing else is left");
}

/// A round that finds nothing new asks the target for nothing; whatever is new is stored by the next one.
#[test]
fn a_round_without_news_leaves_the_target_alone() {
    let (source, target, env) = (with_points(), home(), Env::simulated(1).0);
    let counted = Paused::dead_after(&target, u64::MAX);
    let to = counted.home();
    let mut session = BackupSession::new();
    assert!(!session.round(&source.0, &to, &env).unwrap().is_idle);
    let before = counted.requests();
    for _ in 0..3 {
        let done = session.round(&source.0, &to, &env).unwrap();
        assert!(done.is_idle && done.points == 2, "{done:?}");
    }
    assert_eq!(counted.requests(), before);
    unpin(&source, "one");
    assert!(!session.round(&source.0, &to, &env).unwrap().is_idle);
    let (found, _) = whole_points(&target, "a name less");
    assert_eq!(numbers(&found), [(2, vec![]), (3, vec![])]);
    source.checkpoint(4);
    assert!(!session.round(&source.0, &to, &env).unwrap().is_idle);
    assert_eq!(numbers(&whole_points(&target, "newer").0), [(4, vec![])]);
    // Somebody else has made a backup there: it is seen in time.
    let mut other = BackupSession::new();
    other.round(&source.0, &target, &env).unwrap();
    let looked = (0..200).any(|_| !session.round(&source.0, &to, &env).unwrap().is_idle);
    assert!(looked, "the target is looked at now and then");
}

/// What a round costs in a bucket, where each request is paid for.
#[test]
fn requests_of_a_round_are_few_and_none_without_news() {
    let (source, env) = (with_points(), Env::simulated(1).0);
    let bucket = MemoryBucket::new(MemoryOptions::appendable(10_000));
    let options = ObjectOptions::default();
    let target = ObjectHome::open(Arc::new(bucket), &Env::real(), options);
    let target = LogHome::from(target.unwrap());
    let mut session = BackupSession::new();
    let mut round = || {
        let usage = || target.status.usage().remove(0).usage;
        let before = usage();
        let done = session.round(&source.0, &target, &env).unwrap();
        (done, usage().since(&before))
    };
    round();
    let (done, usage) = round();
    assert!(done.is_idle);
    assert_eq!((usage.requests_all(), usage.uploaded_bytes()), (0, 0));
    source.checkpoint_keeping(4, |record| record.csn == Csn(25));
    let (done, usage) = round();
    println!("{usage:?}");
    // The record, what changed, the stamp three times, the manifest.
    assert_eq!(usage.writes, done.copied.objects + 4, "{usage:?}");
    assert!(usage.requests_all() < 40, "{usage:?}");
}

/// Who makes it dies at any request: what is there is whole, with all restore points that it names, and the next one,
/// who knows nothing of it, goes on from it.
#[test]
fn a_crash_at_any_request_leaves_whole_restore_points() {
    for at in 0.. {
        let (source, target, env) = (with_points(), home(), Env::simulated(1).0);
        let mut session = BackupSession::new();
        session.round(&source.0, &target, &env).unwrap();
        unpin(&source, "one");
        source.checkpoint_keeping(4, |record| record.csn == Csn(35));
        pin(&source, "four");
        source.checkpoint_keeping(5, |record| record.csn == Csn(35));
        let dying = Paused::dead_after(&target, at);
        let died = session.round(&source.0, &dying.home(), &env).is_err();
        let when = format!("dead at {at}");
        let (found, _) = whole_points(&target, &when);
        let newest = found
            .iter()
            .find(|point| point.is_newest)
            .expect("there is one");
        assert!([3, 5].contains(&number_of(newest.record.csn)), "{when}");
        let mut next = BackupSession::new();
        next.round(&source.0, &target, &env).unwrap();
        let (found, _) = whole_points(&target, &when);
        let now = [(3, vec![]), (4, vec!["four"]), (5, vec![])];
        assert_eq!(numbers(&found), now, "{when}");
        unpin(&source, "four");
        source.checkpoint(6);
        next.round(&source.0, &target, &env).unwrap();
        let (_, needed) = whole_points(&target, &when);
        assert_eq!(
            target.objects.list_objects().unwrap().len(),
            needed.len(),
            "{when}"
        );
        if !died {
            assert!(at > 15, "{at}");
            break;
        }
    }
}

/// A restore point that cannot be read is left out, and the rest is copied.
#[test]
fn a_damaged_restore_point_stops_no_backup() {
    let (source, target, env) = (with_points(), home(), Env::simulated(1).0);
    let pins = Pins::read(source.0.names.as_ref()).unwrap().0;
    let one = pins.point("one").unwrap().record.object;
    source.0.objects.remove_object(one).unwrap();
    let done = BackupSession::new()
        .round(&source.0, &target, &env)
        .unwrap();
    assert_eq!((done.points, done.points_left_out), (1, 1));
    assert_eq!(
        numbers(&whole_points(&target, "without").0),
        [(2, vec![]), (3, vec![])]
    );
}
