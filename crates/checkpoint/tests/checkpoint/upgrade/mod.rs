//! Checkpoints whose chunks have 1,024 slots are made anew in chunks of 64: the same rows, whatever their pages were
//! like, with the machine stopping at every
//! single request, and with a manifest of which nobody knows whether it was stored. Written here byte by byte, since
//! nothing else writes them any more.

mod backups;
use crate::rig;
mod world;

use logstead_checkpoint::frame::{Encoder, FrameKind};
use logstead_checkpoint::{
    CheckpointError, CheckpointRecord, CheckpointUpgrade, Directory, NewCheckpoint,
    ObjectIdAllocator, ObjectUse, ObjectWriter, PageChain, Publisher, fsck,
};
use logstead_env::SimRandom;
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, Epoch};
use logstead_wal::manifest::CheckpointRef;
use parking_lot::Mutex;
use rig::paused::Paused;
use rig::{key, read_all};
use std::collections::BTreeSet;
use std::sync::Arc;
use world::{DATABASE, NEW, TestHead, World, head, page, page_key, start, upgrade};

#[test]
fn an_old_checkpoint_has_the_same_rows_in_small_chunks() {
    for seed in 0..8 {
        let mut world = World::new(seed);
        let (at, ..) = head(&world.home).unwrap();
        let report = fsck(&world.home, DATABASE, Some(&at)).unwrap();
        assert!(report.is_clean(), "{report}: {:#?}", report.damage);
        assert!(world.read_old(&world.old[1].1) == world.rows);
        world.settle();
    }
}

#[test]
fn a_crash_at_any_request_of_an_upgrade_loses_nothing() {
    for seed in 0..6 {
        let world = World::new(seed);
        let before = world.sim.requests();
        let (mut publisher, _) = loop {
            match world.start() {
                Ok(started) => break started,
                Err(error) => assert!(!world.sim.is_down(), "{error}"),
            }
        };
        publisher.collect().unwrap();
        let requests = world.sim.requests() - before;
        assert!(requests > 20, "{requests}");
        for crash_at in 0..requests {
            let run = || {
                let mut world = World::new(seed);
                world.sim.crash_at(world.sim.requests() + crash_at);
                while !world.sim.is_down() {
                    if let Ok((mut publisher, _)) = world.start() {
                        let _stopped = publisher.collect();
                        break;
                    }
                }
                world.sim.reboot();
                // A second start is cut off as well, some time.
                world
                    .sim
                    .crash_at(world.sim.requests() + world.roll(requests));
                let _cut_off = world.start().map(drop);
                world.sim.reboot();
                world.settle();
            };
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("seed {seed}, crash at request {crash_at}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// What an interposed start has done, to be looked at afterwards.
type Overtaken = Arc<Mutex<Option<(World, Option<(Publisher<TestHead>, Directory)>)>>>;

/// Stops a start at every request, has others go as far as they like meanwhile, and lets it go on.
fn overlap(seed: u64, others: fn(&mut World, u64) -> (Publisher<TestHead>, Directory)) {
    let requests = {
        let world = World::new(seed);
        let paused = Paused::at(&world.home, u64::MAX, Box::new(|| ()));
        let home: LogHome = paused.home();
        // Named or not: all of its requests are counted.
        let _started = start(&home, &world.random).map(|(mut publisher, _)| publisher.collect());
        paused.requests()
    };
    assert!(requests > 20, "{requests}");
    for stop_at in 0..requests {
        let run = || {
            let world = World::new(seed);
            let (raw, random) = (world.home.clone(), Arc::clone(&world.random));
            let shared: Overtaken = Arc::new(Mutex::new(Some((world, None))));
            let within = Arc::clone(&shared);
            let meanwhile = move || {
                let (mut world, _) = within.lock().take().unwrap();
                let served = others(&mut world, requests);
                *within.lock() = Some((world, Some(served)));
            };
            let paused = Paused::at(&raw, stop_at, Box::new(meanwhile));
            let home: LogHome = paused.home();
            let late = start(&home, &random);
            let taken_over = late.is_ok();
            if let Ok((mut publisher, _)) = late {
                let _stopped = publisher.collect();
            }
            let (mut world, served) = shared.lock().take().unwrap();
            // Nothing is gone of what the other one serves, unless it was overtaken itself.
            if let Some((publisher, directory)) = served
                && !taken_over
            {
                world.verify_named(&publisher, &directory);
            }
            let (publisher, directory) = world.started();
            world.verify(&publisher, &directory);
            if !world.rows.contains_key(&NEW) {
                world.settle();
            }
            world.check();
        };
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}, stopped at request {stop_at}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_start_that_was_overtaken_takes_nothing_from_the_next_one() {
    for seed in 0..4 {
        overlap(seed, |world, _| {
            let (mut publisher, mut directory) = world.started();
            world.go_on(&mut publisher, &mut directory);
            (publisher, directory)
        });
    }
}

/// Its leftovers, and those of one that was cut off, are the third one's to remove, and that one's are nobody's.
#[test]
fn of_three_starts_the_last_one_has_everything() {
    for seed in 0..4 {
        overlap(seed, |world, requests| {
            let cut_off = world.roll(requests);
            let second: LogHome = Paused::dead_after(&world.home, cut_off).home();
            let _cut_off = start(&second, &world.random).map(drop);
            let (mut publisher, mut directory) = world.started();
            world.go_on(&mut publisher, &mut directory);
            (publisher, directory)
        });
    }
}

/// What an attempt has left goes with the next one, whose numbers are all higher.
#[test]
fn an_attempt_removes_what_the_one_before_has_left() {
    for seed in 0..4 {
        let world = World::new(seed);
        let own = |home: &LogHome| -> Vec<ObjectId> {
            let there = home
                .objects
                .list_objects()
                .unwrap()
                .into_iter()
                .map(|info| info.id);
            there.filter(|id| id.counter() >= 1 << 31).collect()
        };
        let (at, epoch, _) = head(&world.home).unwrap();
        let upgrade = CheckpointUpgrade::of(&world.home, DATABASE, &at)
            .unwrap()
            .unwrap();
        let first = upgrade.store(epoch, &mut || Ok(()), |_| ()).unwrap();
        let left = own(&world.home);
        assert!(left.contains(&first.checkpoint.object));
        let second = upgrade.store(epoch, &mut || Ok(()), |_| ()).unwrap();
        let there = own(&world.home);
        assert!(there.contains(&second.checkpoint.object));
        assert!(there.iter().all(|object| left.iter().max() < Some(object)));
        // Who does not have the home any more removes nothing, and stores nothing.
        let fenced = || HomeError::Fenced("another server".to_owned());
        let late = upgrade.store(epoch, &mut || Err(fenced()), |_| ());
        assert!(matches!(
            late,
            Err(CheckpointError::Home(HomeError::Fenced(_)))
        ));
        assert_eq!(own(&world.home), there);
    }
}

/// A number that the home has under other bytes is not removed by who would have used it.
#[test]
fn what_another_one_has_stored_stays_when_a_put_says_so() {
    let home = rig::home();
    let epoch = Epoch(3);
    let others: Vec<_> = (0..2).map(|n| ObjectId::new(epoch, n)).collect();
    for other in &others {
        home.objects
            .put_object(*other, b"another server's")
            .unwrap();
    }
    let object_ids = Arc::new(ObjectIdAllocator::new(epoch));
    let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
    let mut encoder = Encoder::new();
    let frame = encoder.encode(FrameKind::RowsBase, Csn(5), &page_key((1, 1)), b"rows");
    writer.put(frame.unwrap()).unwrap();
    let refused = writer.finish().map(drop).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::Home(HomeError::Conflict(_))),
        "{refused}"
    );
    // The same with a record.
    let random = Arc::new(SimRandom::new(1));
    let naming = TestHead::new(&home, &random, None, epoch);
    let mut publisher = Publisher::open(
        home.clone(),
        naming,
        DATABASE,
        Arc::clone(&object_ids),
        None,
    )
    .unwrap();
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let directory = Directory::open(home.objects.clone(), None);
    let applied = directory.apply(&[], &BTreeSet::new(), Csn(9), &mut writer);
    let applied = applied.unwrap();
    let new = NewCheckpoint {
        divided: Vec::new(),
        csn: Csn(9),
        taken_at_micros: 0,
        tables: Vec::new(),
        indexes: Vec::new(),
        starts: Vec::new(),
    };
    let published = publisher.publish(new, &applied, &[], writer.finish().unwrap(), |_| true);
    let refused = published.map(drop).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::Home(HomeError::Conflict(_))),
        "{refused}"
    );
    publisher.collect().unwrap();
    let there = home.objects.list_objects().unwrap();
    assert_eq!(there.iter().map(|info| info.id).collect::<Vec<_>>(), others);
}

/// Nothing is published on top of old chunks: keys of both sizes would stand for other rows.
#[test]
fn a_checkpoint_on_top_of_old_chunks_is_refused() {
    let world = World::new(3);
    let (at, epoch, tag) = head(&world.home).unwrap();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(epoch.get() + 1)));
    let naming = world.head(Some(tag), object_ids.epoch());
    let home = world.home.clone();
    let mut publisher =
        Publisher::open(home, naming, DATABASE, Arc::clone(&object_ids), Some(&at)).unwrap();
    let root = publisher.newest().unwrap().record.root;
    let directory = Directory::open(world.home.objects.clone(), root);
    let mut writer = ObjectWriter::new(world.home.objects.clone(), object_ids, None);
    let applied = directory.apply(&[], &BTreeSet::new(), Csn(3_000), &mut writer);
    let new = NewCheckpoint {
        divided: Vec::new(),
        csn: Csn(3_000),
        taken_at_micros: 0,
        tables: Vec::new(),
        indexes: Vec::new(),
        starts: Vec::new(),
    };
    let stored = writer.finish().unwrap();
    let published = publisher.publish(new, &applied.unwrap(), &[], stored, |_| true);
    let error = published.map(drop).unwrap_err();
    assert!(matches!(error, CheckpointError::Misuse(_)), "{error}");
    assert_eq!(head(&world.home).unwrap().0, at);
}

/// What an attempt has left that was cut short is gone before the next one stores anything, and whatever comes up
/// under its numbers later is not taken for what that has stored.
#[test]
fn what_an_attempt_has_left_is_removed_and_its_numbers_are_not_used_again() {
    let mut world = World::new(4);
    let left = [0, 1, 7].map(|number| ObjectId::new(Epoch(1), (1 << 31) + number));
    let (at, epoch, _) = head(&world.home).unwrap();
    let cut_short = CheckpointUpgrade::of(&world.home, DATABASE, &at)
        .unwrap()
        .unwrap();
    let stops = || HomeError::io("look", std::io::Error::other("no answer"));
    let stopped = cut_short.store(epoch, &mut || Err(stops()), |_| ());
    assert!(stopped.is_err());
    for id in left {
        world
            .home
            .objects
            .put_object(id, b"something else")
            .unwrap();
    }
    let mut there = Vec::new();
    let upgraded = upgrade(&world.home, &at, epoch, |_| {
        there = world.home.objects.list_objects().unwrap();
    });
    assert!(there.iter().all(|info| !left.contains(&info.id)));
    let upgraded = upgraded.unwrap();
    let record = &upgraded.checkpoint;
    let record = CheckpointRecord::read(
        world.home.objects.as_ref(),
        DATABASE,
        record.object,
        record.crc,
    )
    .unwrap();
    let new: Vec<ObjectId> = record.objects.iter().map(|used| used.object).collect();
    assert!(new.iter().any(|id| id.counter() > 1 << 31));
    assert!(new.iter().all(|id| !left.contains(id)));
    assert!(upgraded.checkpoint.object.counter() > (1 << 31) + 7);
    // Nobody has named it: it goes, and so does what the next attempt has no use for.
    world.settle();
}

/// Rows that are too many to be kept at once: the chunk is read once for each that it becomes.
#[test]
fn a_chunk_that_is_larger_than_what_is_kept_at_once() {
    let world = World::new(2);
    let csn = Csn(2_000);
    let rows: Vec<(u16, Csn, Vec<u8>)> = (0..24)
        .map(|n| (n * 40, Csn(100), vec![n as u8; 900_000]))
        .collect();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(2)));
    let mut writer = ObjectWriter::new(world.home.objects.clone(), object_ids, None);
    let mut encoder = Encoder::new();
    let page = page(&mut encoder, FrameKind::RowsBase, csn, (1, 3), &rows, &[]);
    let chain = PageChain::whole(&[writer.put(&page).unwrap()]);
    let none = BTreeSet::new();
    let directory = Directory::open(world.home.objects.clone(), None);
    let made = directory.apply(&[(key(1, 3), chain)], &none, csn, &mut writer);
    let (made, written) = (made.unwrap(), writer.finish().unwrap());
    let objects = &written.written().objects;
    let record = CheckpointRecord {
        root: made.directory.root(),
        objects: objects
            .iter()
            .map(|(object, size_bytes)| ObjectUse {
                object: *object,
                size_bytes: *size_bytes,
                live_bytes: made.live[object] as u64,
            })
            .collect(),
        indexes: Vec::new(),
        ..world.old[1].1.clone()
    };
    let object = ObjectId::new(Epoch(1), 5_000);
    let bytes = record.encode(object).unwrap();
    world.home.objects.put_object(object, &bytes).unwrap();
    let at = CheckpointRef {
        object,
        crc: crc32c::crc32c(&bytes),
        csn,
        epoch: record.epoch,
        starts: Vec::new(),
    };
    let upgraded = upgrade(&world.home, &at, Epoch(2), |_| ()).unwrap();
    let upgraded = upgraded.checkpoint;
    let new = CheckpointRecord::read(
        world.home.objects.as_ref(),
        DATABASE,
        upgraded.object,
        upgraded.crc,
    )
    .unwrap();
    let directory = Directory::open(world.home.objects.clone(), new.root);
    let found: Vec<_> = read_all(&world.home, &directory)
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(found.len(), rows.len());
    for ((place, row), (slot, written, bytes)) in found.iter().zip(&rows) {
        let expected = (1, 3 * 16 + u64::from(slot / 64), slot % 64);
        assert!(*place == expected && row.0 == *written && row.1 == *bytes);
    }
    rig::keep(written);
}

/// A row that is not of its checkpoint is not made one of it.
#[test]
fn rows_that_are_newer_than_their_checkpoint_are_told() {
    let world = World::new(6);
    let record = CheckpointRecord {
        csn: Csn(600),
        ..world.old[1].1.clone()
    };
    let object = ObjectId::new(Epoch(1), 5_000);
    let bytes = record.encode(object).unwrap();
    world.home.objects.put_object(object, &bytes).unwrap();
    let at = CheckpointRef {
        object,
        crc: crc32c::crc32c(&bytes),
        csn: record.csn,
        epoch: record.epoch,
        starts: Vec::new(),
    };
    let error = upgrade(&world.home, &at, Epoch(1), |_| ()).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged(_)), "{error}");
    assert!(error.to_string().contains("newer than its checkpoint"));
}

/// A page that is damaged is named, and the old record stays in force.
#[test]
fn damage_is_told_and_nothing_changes() {
    let world = World::new(5);
    let (at, epoch, _) = head(&world.home).unwrap();
    let base = {
        let directory = Directory::open(world.home.objects.clone(), world.old[1].1.root);
        let chain = directory.get(&key(7, 2)).unwrap();
        chain.expect("it has rows").base()
    };
    let mut bytes = vec![0; 1 << 20];
    let got = world
        .home
        .objects
        .read_object(base.object, 0, &mut bytes)
        .unwrap();
    bytes.truncate(got);
    bytes[base.offset as usize + base.len as usize - 1] ^= 1;
    world.home.objects.remove_object(base.object).unwrap();
    world.home.objects.put_object(base.object, &bytes).unwrap();
    let error = upgrade(&world.home, &at, epoch, |_| ()).unwrap_err();
    let CheckpointError::Damaged(damage) = &error else {
        panic!("{error}");
    };
    assert_eq!((damage.object, damage.offset), (base.object, base.offset));
    assert!(damage.what.contains("table 7 chunk 2"), "{damage}");
    assert_eq!(head(&world.home).unwrap().0, at);
}
