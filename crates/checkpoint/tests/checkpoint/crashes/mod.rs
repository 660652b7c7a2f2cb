//! Crashes at every single request of checkpoints, publications and collections, on the simulated home, with
//! publications of which nobody knows
//! whether they succeeded, checkpoints given up half way, kept records, restore points, branches that come and go,
//! and compaction. Afterwards the newest checkpoint or the one that was under way is there, whole; what it
//! keeps is there, whole; and after one more checkpoint nothing is left that none of them names.

use crate::rig;
mod world;

use logstead_checkpoint::{
    BranchState, CheckpointError, CheckpointRecord, ChunkWriter, Directory, ImageKind,
    ObjectIdAllocator, ObjectWriter, Pins, Publisher, RecoveryTarget, RetainedRecord, fsck,
};
use logstead_env::SimRandom;
use logstead_home::{HomeError, LogHome, MemoryHome, ObjectId};
use logstead_types::{Csn, Epoch};
use parking_lot::Mutex;
use rig::{key, read_all};
use std::sync::Arc;
use world::{
    DATABASE, HEAD, Server, TestHead, World, branch, head, make_branch, manifest,
    requests_of_a_life, unpin_all,
};

#[test]
fn a_crash_at_any_request_leaves_a_whole_checkpoint_and_nothing_else_for_long() {
    for seed in 0..12 {
        let checkpoints = 12;
        let requests = requests_of_a_life(seed, checkpoints);
        assert!(requests > 30, "{requests}");
        for crash_at in 0..requests {
            let run = || {
                let mut world = World::new(seed);
                world.sim.crash_at(crash_at);
                let _stopped = world.live(checkpoints, false);
                assert!(world.sim.is_down());
                world.sim.reboot();
                // A second life is cut off as well, some time.
                let second = world.sim.requests() + world.random.below(60);
                world.sim.crash_at(second);
                let _cut_off = world.live(2, false);
                world.sim.reboot();
                world.verify();
            };
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("seed {seed}, crash at request {crash_at}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// A long life: the number of objects and the bytes in them stay in proportion to what is needed.
#[test]
fn many_checkpoints_take_space_for_few() {
    let mut world = World::new(77);
    world.live(300, true).unwrap();
    let mut server = world.open().unwrap();
    let report = {
        world.checkpoint(&mut server, false).ok();
        server.publisher.collect().unwrap();
        let found = head(&world.home).unwrap().unwrap().0;
        fsck(&world.home, DATABASE, Some(&found)).unwrap()
    };
    assert!(report.is_clean(), "{:#?}", report.damage);
    let (live, size) = server.publisher.newest().unwrap().record.bytes();
    assert!(
        size < live * 3,
        "{size} bytes in objects, {live} of them needed"
    );
    let objects = server.publisher.newest().unwrap().record.objects.len();
    assert!(objects < 40, "{objects} objects");
}

/// T8: objects of this and later epochs are never orphans, whatever names them; those of earlier epochs are.
#[test]
fn t8_orphans_are_of_earlier_epochs_only() {
    let mut world = World::new(5);
    world.epoch = 3;
    let ids = [(2, 7), (3, 0), (4, 900), (5, 0)];
    let ids = ids.map(|(epoch, counter)| ObjectId::new(Epoch(epoch), counter));
    for id in ids {
        world
            .home
            .objects
            .put_object(id, b"left by somebody")
            .unwrap();
    }
    // It has epoch 4.
    let mut server = world.open().unwrap();
    server.publisher.collect().unwrap();
    let left: Vec<_> = world
        .home
        .objects
        .list_objects()
        .unwrap()
        .into_iter()
        .map(|info| info.id)
        .collect();
    assert_eq!(left, ids[2..]);
}

/// T8: while a branch is made, the server publishes, and removes what no record names any more, at any moment in
/// between. The branch is made of a record that is there, and
/// stays there until the branch is dropped.
#[test]
fn t8_a_branch_is_made_while_its_parent_goes_on() {
    for seed in 0..40 {
        for moment in 0..5 {
            let world = std::cell::RefCell::new(World::new(seed));
            let home = world.borrow().home.clone();
            let server = std::cell::RefCell::new(world.borrow_mut().open().unwrap());
            let go_on = || {
                let (mut world, mut server) = (world.borrow_mut(), server.borrow_mut());
                while world.checkpoint(&mut server, false).is_err() {
                    let tag = head(&home).unwrap().map(|(_, tag)| tag);
                    let Server { publisher, .. } = &mut *server;
                    *publisher.head().tag.lock() = tag;
                }
                server.publisher.collect().unwrap();
            };
            (0..6).for_each(|_| go_on());
            let reads = std::cell::Cell::new(0);
            let read = || {
                let number = reads.replace(reads.get() + 1);
                // Before the first look, behind it, before the second look, behind it.
                if moment == number * 2 {
                    (0..3).for_each(|_| go_on());
                }
                let found = manifest(&home);
                if moment == number * 2 + 1 {
                    (0..3).for_each(|_| go_on());
                }
                found
            };
            // When it has chosen, and before it has pinned.
            let once = std::cell::Cell::new(moment == 4);
            let chosen = || {
                if once.replace(false) {
                    (0..3).for_each(|_| go_on());
                }
            };
            let made = make_branch(&home, "b", &RecoveryTarget::Newest, read, chosen).unwrap();
            let made = made.expect("there is a checkpoint");
            let whole = || {
                let record =
                    CheckpointRecord::read(home.objects.as_ref(), DATABASE, made.object, made.crc)
                        .unwrap();
                let directory = Directory::open(home.objects.clone(), record.root);
                read_all(&home, &directory).unwrap() == world.borrow().history[&made.csn]
            };
            for _ in 0..6 {
                assert!(whole(), "seed {seed}, moment {moment}");
                go_on();
            }
            // Also in later lives, which know of it only by its pin.
            let later = world.borrow_mut().open().unwrap();
            *server.borrow_mut() = later;
            go_on();
            assert!(whole());
            unpin_all(&home);
            go_on();
            let gone =
                CheckpointRecord::read(home.objects.as_ref(), DATABASE, made.object, made.crc);
            let kept = world.borrow().check(&server.borrow()).unwrap();
            assert!(gone.is_err() || kept.contains(&made.object), "it leaks");
        }
    }
}

/// T8: while a record that is pinned cannot be read, or the pins cannot, nothing is removed at all.
#[test]
fn t8_nothing_is_removed_while_it_is_not_known_what_stays() {
    let mut world = World::new(3);
    let mut server = world.open().unwrap();
    for _ in 0..4 {
        let _perhaps_in_doubt = world.checkpoint(&mut server, false);
        let tag = head(&world.home).unwrap().map(|(_, tag)| tag);
        server.publisher = world.settled(server.publisher, tag);
    }
    server.publisher.collect().unwrap();
    let newest = server.publisher.newest().unwrap().as_retained();
    let missing = RetainedRecord {
        object: ObjectId(newest.object.0 + 1_000),
        ..newest
    };
    let before = |world: &World| world.home.objects.list_objects().unwrap().len();
    for pins in [
        {
            let mut pins = Pins::default();
            pins.put(branch("b", BranchState::Made, missing));
            pins.encode()
        },
        b"logstead pins 2\n".to_vec(),
        b"logstead pins 1\ncrc 00000000\n".to_vec(),
    ] {
        match world.home.names.get(logstead_checkpoint::PINS).unwrap() {
            Some((_, tag)) => {
                world
                    .home
                    .names
                    .compare_and_swap(logstead_checkpoint::PINS, tag, &pins)
            }
            None => world
                .home
                .names
                .put_if_absent(logstead_checkpoint::PINS, &pins),
        }
        .unwrap();
        for _ in 0..6 {
            let _perhaps_in_doubt = world.checkpoint(&mut server, false);
            let tag = head(&world.home).unwrap().map(|(_, tag)| tag);
            server.publisher = world.settled(server.publisher, tag);
            let there = before(&world);
            let nothing_to_do = server.publisher.garbage() == 0;
            assert!(server.publisher.collect().is_err() || nothing_to_do);
            assert_eq!(before(&world), there);
        }
    }
    assert!(server.publisher.garbage() > 0);
    let (_, tag) = world
        .home
        .names
        .get(logstead_checkpoint::PINS)
        .unwrap()
        .unwrap();
    let none = Pins::default().encode();
    world
        .home
        .names
        .compare_and_swap(logstead_checkpoint::PINS, tag, &none)
        .unwrap();
    assert!(server.publisher.collect().unwrap().removed > 0);
}

/// T8: a server that was overtaken removes nothing, and publishes nothing.
#[test]
fn t8_an_overtaken_server_removes_nothing() {
    let mut world = World::new(1);
    let mut old = world.open().unwrap();
    while world.published < Csn(1_000_010) {
        if world.checkpoint(&mut old, false).is_err() {
            let tag = head(&world.home).unwrap().map(|(_, tag)| tag);
            old.publisher = world.settled(old.publisher, tag);
        }
    }
    assert!(old.publisher.garbage() > 0);
    // Another server publishes, with the same tag to go by.
    let (checkpoint, tag) = head(&world.home).unwrap().unwrap();
    let text = format!(
        "{} {} {} 9",
        checkpoint.object.0, checkpoint.crc, checkpoint.csn
    );
    world
        .home
        .names
        .compare_and_swap(HEAD, tag, text.as_bytes())
        .unwrap();
    let error = loop {
        match world.checkpoint(&mut old, false) {
            Err(CheckpointError::Home(HomeError::Io { .. })) => {}
            Err(error) => break error,
            Ok(()) => panic!("published by a server that was overtaken"),
        }
    };
    assert!(matches!(error, CheckpointError::Overtaken), "{error}");
    let before = world.home.objects.list_objects().unwrap();
    assert!(matches!(
        old.publisher.collect(),
        Err(CheckpointError::Overtaken)
    ));
    assert_eq!(world.home.objects.list_objects().unwrap(), before);
}

/// A disk that is too full for a checkpoint is not left fuller by it; and what is given up for other reasons goes soon.
#[test]
fn what_is_given_up_takes_no_room() {
    let memory = MemoryHome::new(1 << 20);
    let home = LogHome::from(memory.clone());
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let head = TestHead {
        home: home.clone(),
        tag: Mutex::new(None),
        random: Arc::new(SimRandom::new(1)),
    };
    let ids = || home.objects.list_objects().unwrap().len();
    let mut chunks = ChunkWriter::new();
    let mut fill = |writer: &mut ObjectWriter<'_>, count: u64| {
        for chunk in 0..count {
            chunks.begin(key(1, chunk), ImageKind::Whole, Csn(9));
            chunks.row(0, Csn(1), &[7; 100], writer)?;
            chunks.finish(writer)?;
        }
        Ok::<(), CheckpointError>(())
    };
    let writer = || {
        ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None)
            .with_object_bytes(200)
    };
    let mut full = writer();
    fill(&mut full, 9).unwrap();
    assert!(ids() > 3);
    memory.set_disk_full(true);
    let is_full = |told: Result<(), CheckpointError>| matches!(told, Err(CheckpointError::Home(error)) if error.is_disk_full());
    assert!(is_full(fill(&mut full, 9)));
    assert_eq!(ids(), 0);
    memory.set_disk_full(false);
    assert!(is_full(fill(&mut full, 1)), "it has given up, and says why");
    assert!(is_full(full.finish().map(|_| ())));
    // Given up by its owner: gone before the next one stores anything.
    let mut stopped = writer();
    fill(&mut stopped, 9).unwrap();
    let before = ids();
    drop(stopped);
    assert_eq!(ids(), before);
    let mut next = writer();
    fill(&mut next, 3).unwrap();
    let stored = next.finish().unwrap();
    assert_eq!(ids(), stored.written().objects.len());
    // Stored and never tried: gone with the next collection, without a publication.
    let mut publisher = Publisher::open(home.clone(), head, DATABASE, object_ids, None).unwrap();
    publisher.collect().unwrap();
    assert!(ids() > 0);
    drop(stored);
    publisher.collect().unwrap();
    assert_eq!(ids(), 0);
}
