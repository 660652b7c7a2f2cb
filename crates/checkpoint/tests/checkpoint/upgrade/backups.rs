//! Upgrades and backups: what a server that was started on a backup has left there.

use super::rig;
use super::rig::paused::Paused;
use super::world::{DATABASE, World, head, upgrade};
use logstead_checkpoint::{CheckpointUpgrade, backup, fsck};
use logstead_env::Env;
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{LogHome, ObjectHome, ObjectOptions};
use logstead_types::Epoch;
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::Manifest;
use std::sync::Arc;

/// A database that has been backed up to `target` and upgraded since, in the epoch that the copy has; a server that
/// was started on the copy has ended before
/// anything but its objects was stored, which have the numbers of the database's own.
fn left_on_a_backup(target: &LogHome) -> World {
    let world = World::new(7);
    let (env, _) = Env::simulated(1);
    let (at, ..) = head(&world.home).unwrap();
    let manifest = |checkpoint| Manifest {
        epoch: Epoch(3),
        checkpoint: Some(checkpoint),
        ..Manifest::first(DATABASE)
    };
    let tag = world
        .home
        .names
        .put_if_absent("manifest", &manifest(at.clone()).encode());
    backup(&world.home, target, &env).unwrap();
    let copy = manifest_of(target).unwrap();
    // The source's epoch comes to be the copy's.
    let source = upgrade(&world.home, &at, copy.epoch, |_| ()).unwrap();
    let of_copy = copy.checkpoint.unwrap();
    let upgraded = CheckpointUpgrade::of(target, copy.database, &of_copy).unwrap();
    let left = upgraded.unwrap().store(copy.epoch, &mut || Ok(()), |_| ());
    assert_eq!(
        left.unwrap().checkpoint.object,
        source.checkpoint.object,
        "the same numbers"
    );
    let next = Manifest {
        epoch: copy.epoch,
        ..manifest(source.checkpoint)
    };
    let home = &world.home;
    home.names
        .compare_and_swap("manifest", tag.unwrap(), &next.encode())
        .unwrap();
    world
}

/// What such a server has left is gone, or, as `change` says, other bytes than it was.
fn change_left(target: &LogHome, change: Option<fn(&mut u8)>) {
    for info in target.objects.list_objects().unwrap() {
        if info.id.counter() >= 1 << 31 {
            let mut bytes = vec![0; info.size_bytes as usize];
            target.objects.read_object(info.id, 0, &mut bytes).unwrap();
            target.objects.remove_object(info.id).unwrap();
            if let Some(change) = change {
                bytes.iter_mut().for_each(change);
                target.objects.put_object(info.id, &bytes).unwrap();
            }
        }
    }
}

/// The backup is whole, and of this database.
fn assert_whole(target: &LogHome, world: &World, when: &str) {
    let copy = manifest_of(target).unwrap();
    let report = fsck(target, copy.database, copy.checkpoint.as_ref()).unwrap();
    assert!(report.is_clean(), "{when}: {report}: {:#?}", report.damage);
    assert_eq!(report.rows, world.rows.len() as u64, "{when}");
}

fn bucket() -> LogHome {
    let bucket = MemoryBucket::new(MemoryOptions::plain());
    let options = ObjectOptions::default();
    let home = ObjectHome::open(Arc::new(bucket), &Env::simulated(2).0, options);
    LogHome::from(home.expect("opens"))
}

/// A server was started on a backup, and ended before anything but objects was stored: they are not taken for those
/// of the source.
#[test]
fn a_backup_does_not_take_what_an_upgrade_has_left_for_its_own() {
    let target = rig::home();
    let world = left_on_a_backup(&target);
    // It had as many bytes, and not the same ones.
    change_left(&target, Some(|byte| *byte ^= 1));
    let again = backup(&world.home, &target, &Env::simulated(1).0).unwrap();
    assert!(again.incremental);
    assert_whole(&target, &world, "again");
}

/// A bucket has no lock: what looks as if such a server had left it may be what another backup has just copied, and
/// is not removed, whenever that one is made.
#[test]
fn a_backup_in_a_bucket_does_not_remove_what_another_one_has_copied() {
    let mut lost = 0;
    for at in 0.. {
        let target = bucket();
        let world = left_on_a_backup(&target);
        change_left(&target, None);
        let meanwhile = {
            let (source, target) = (world.home.clone(), target.clone());
            move || {
                backup(&source, &target, &Env::simulated(2).0).unwrap();
            }
        };
        let paused = Paused::at(&target, at, Box::new(meanwhile));
        let outcome = backup(&world.home, &paused.home(), &Env::simulated(1).0);
        lost += u64::from(outcome.is_err());
        assert_whole(&target, &world, &format!("at {at}: {outcome:?}"));
        if at >= paused.requests() {
            break;
        }
    }
    assert!(lost > 3, "{lost}");
}

/// What is in the way of a backup in a bucket stays, and so does the backup that is there.
#[test]
fn a_backup_in_a_bucket_is_refused_where_others_objects_are_in_the_way() {
    let target = bucket();
    let world = left_on_a_backup(&target);
    let before = manifest_of(&target).unwrap();
    change_left(&target, Some(|byte| *byte ^= 1));
    let refused = backup(&world.home, &target, &Env::simulated(1).0).unwrap_err();
    assert!(
        refused.to_string().contains("has left objects"),
        "{refused}"
    );
    assert_eq!(manifest_of(&target).unwrap().checkpoint, before.checkpoint);
    assert_whole(&target, &world, "the one before");
    // Of the same bytes nobody minds whose they are.
    change_left(&target, Some(|byte| *byte ^= 1));
    backup(&world.home, &target, &Env::simulated(1).0).unwrap();
    assert_whole(&target, &world, "again");
}
