//! The cache around a home: what it promises when it works, and when its disk does not.

use logstead_env::{Access, Env, OpenMode, SimFiles};
use logstead_home::{
    CacheOptions, CacheStats, HomeError, LogHome, MemoryHome, ObjectId, SimulatedHome, conformance,
};
use std::path::Path;
use std::sync::{Arc, Barrier};

const BLOCK: usize = 1000;
const FILE: &str = "/cache/blocks";

struct Machine {
    files: SimFiles,
    env: Env,
}

impl Machine {
    fn new() -> Machine {
        let files = SimFiles::new(1);
        let (env, _) = Env::simulated(1);
        let env = Env {
            files: Arc::new(files.clone()),
            ..env
        };
        Machine { files, env }
    }

    /// A cache of so many blocks around a home.
    fn cached(&self, inner: &LogHome, blocks: u64) -> LogHome {
        self.cached_in(inner, blocks, BLOCK)
    }

    fn cached_in(&self, inner: &LogHome, blocks: u64, block_bytes: usize) -> LogHome {
        let options = CacheOptions {
            block_bytes,
            ..CacheOptions::new("/cache", blocks * (4096 + block_bytes as u64))
        };
        inner.clone().with_cache(&self.env, &options).unwrap()
    }
}

fn memory() -> LogHome {
    LogHome::from(MemoryHome::new(64 * 1024))
}

/// Bytes that tell object and place.
fn bytes(id: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u64 * 7 + at as u64 / 256 + id) as u8)
        .collect()
}

fn read(home: &LogHome, id: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut into = vec![0xee; len];
    let got = home
        .objects
        .read_object(ObjectId(id), offset, &mut into)
        .unwrap();
    into.truncate(got);
    into
}

fn stats(home: &LogHome) -> CacheStats {
    home.cache.as_ref().unwrap().stats()
}

#[test]
fn a_home_with_a_cache_conforms() {
    let machine = Machine::new();
    // Large enough for everything, and so small that everything is evicted all the time.
    for blocks in [1_000, 3] {
        let home: LogHome = machine.cached_in(&memory(), blocks, 50_000);
        conformance::check(&home);
    }
}

#[test]
fn what_was_read_or_put_is_not_asked_for_again() {
    let machine = Machine::new();
    let inner = memory();
    let home = machine.cached(&inner, 100);
    home.objects
        .put_object(ObjectId(1), &bytes(1, 3500))
        .unwrap();
    inner
        .objects
        .put_object(ObjectId(2), &bytes(2, 3500))
        .unwrap();
    assert_eq!(read(&home, 2, 500, 2000), bytes(2, 3500)[500..2500]);
    let after = stats(&home);
    assert_eq!((after.hits, after.misses, after.blocks), (0, 3, 4 + 3));
    // From now on the store has nothing.
    inner.objects.remove_object(ObjectId(1)).unwrap();
    inner.objects.remove_object(ObjectId(2)).unwrap();
    assert_eq!(read(&home, 1, 0, 9999), bytes(1, 3500));
    assert_eq!(read(&home, 1, 3400, 500), bytes(1, 3500)[3400..]);
    assert_eq!(read(&home, 2, 1, 2998), bytes(2, 3500)[1..2999]);
    assert_eq!(stats(&home).misses, 3);
    assert_eq!(stats(&home).hits, 4 + 1 + 3);
    let missing = home.objects.read_object(ObjectId(2), 3000, &mut [0; 10]);
    assert!(matches!(missing, Err(HomeError::Missing(_))), "{missing:?}");
    assert_eq!(stats(&home).used_bytes, 3500 + 3000);
    // In the next life too; but for nobody else.
    drop(home);
    let home = machine.cached(&inner, 100);
    assert_eq!(read(&home, 1, 0, 9999), bytes(1, 3500));
    assert_eq!((stats(&home).hits, stats(&home).misses), (4, 0));
    home.objects.remove_object(ObjectId(1)).unwrap();
    drop(home);
    let home = machine.cached(&inner, 100);
    let missing = home.objects.read_object(ObjectId(1), 0, &mut [0; 10]);
    assert!(matches!(missing, Err(HomeError::Missing(_))), "{missing:?}");
    assert_eq!(read(&home, 2, 0, 3000), bytes(2, 3000));
    drop(home);
    let (env, _) = Env::simulated(1);
    let other = LogHome::from(SimulatedHome::open("model=s3express&seed=9", &env).unwrap());
    assert_eq!(stats(&machine.cached(&other, 100)).blocks, 0);
}

#[test]
fn damage_anywhere_in_the_cache_is_a_miss() {
    let machine = Machine::new();
    let inner = memory();
    let home = machine.cached(&inner, 100);
    home.objects
        .put_object(ObjectId(1), &bytes(1, 1900))
        .unwrap();
    let mut damaged = 0;
    // In its header, in the block, in the shorter last one; not in the room between.
    for at in [
        0,
        9,
        12,
        20,
        24,
        32,
        36,
        40,
        60,
        4096,
        4600,
        5095,
        5096 + 36,
        5096 + 4096 + 899,
    ] {
        machine
            .files
            .tamper(Path::new(FILE), |file| file[at] ^= 4)
            .unwrap();
        assert_eq!(read(&home, 1, 0, 1900), bytes(1, 1900), "at {at}");
        damaged += 1;
        assert_eq!(stats(&home).damaged, damaged, "at {at}");
        // It is read once more, and good again.
        assert_eq!(stats(&home).misses, damaged, "at {at}");
    }
    drop(home);
    // And while nobody looks: what has a bad header is not there, a bad block is found when it is read.
    let tamper = |at: usize| {
        machine
            .files
            .tamper(Path::new(FILE), |file| file[at] ^= 4)
            .unwrap()
    };
    tamper(30);
    tamper(5096 + 4096 + 5);
    let home = machine.cached(&inner, 100);
    assert_eq!(stats(&home).blocks, 1);
    assert_eq!(read(&home, 1, 0, 1900), bytes(1, 1900));
    assert_eq!((stats(&home).damaged, stats(&home).misses), (1, 2));
    // Cut short, and gone.
    for len in [5096 + 4096 + 10, 4096 + 10, 20, 0] {
        machine
            .files
            .tamper(Path::new(FILE), |file| file.truncate(len))
            .unwrap();
        assert_eq!(read(&home, 1, 0, 1900), bytes(1, 1900), "{len}");
    }
}

#[test]
fn a_full_disk_ends_storing_and_nothing_else() {
    let machine = Machine::new();
    let inner = memory();
    let home = machine.cached(&inner, 100);
    home.objects
        .put_object(ObjectId(1), &bytes(1, 2000))
        .unwrap();
    machine.files.set_capacity(Some(machine.files.used()));
    home.objects
        .put_object(ObjectId(2), &bytes(2, 2000))
        .unwrap();
    let off = stats(&home).off.expect("it says so");
    assert!(!off.is_empty());
    assert_eq!(read(&home, 2, 0, 2000), bytes(2, 2000));
    inner.objects.remove_object(ObjectId(1)).unwrap();
    assert_eq!(read(&home, 1, 0, 2000), bytes(1, 2000));
    assert_eq!(stats(&home).blocks, 2);
    home.objects.remove_object(ObjectId(1)).unwrap();
    assert!(
        home.objects
            .read_object(ObjectId(1), 0, &mut [0; 1])
            .is_err()
    );
    // In the next life there may be room.
    machine.files.set_capacity(None);
    drop(home);
    let home = machine.cached(&inner, 100);
    assert_eq!(read(&home, 2, 0, 2000), bytes(2, 2000));
    assert_eq!((stats(&home).off, stats(&home).blocks), (None, 2));
}

#[test]
fn it_stays_within_its_size_and_keeps_what_is_used() {
    let machine = Machine::new();
    let inner = memory();
    let home = machine.cached(&inner, 4);
    for id in 1..=20 {
        home.objects
            .put_object(ObjectId(id), &bytes(id, BLOCK))
            .unwrap();
        // The first one is wanted again and again.
        assert_eq!(read(&home, 1, 0, BLOCK), bytes(1, BLOCK));
    }
    let after = stats(&home);
    assert_eq!((after.blocks, after.used_bytes), (4, 4 * BLOCK as u64));
    assert_eq!((after.misses, after.evicted), (0, 16));
    let file = machine
        .env
        .files
        .open(Path::new(FILE), OpenMode::buffered(Access::Read));
    assert_eq!(file.unwrap().len().unwrap(), 4 * (4096 + BLOCK as u64));
    for id in 1..=20 {
        assert_eq!(read(&home, id, 0, BLOCK), bytes(id, BLOCK));
    }
    drop(home);
    // Smaller in the next life.
    let home = machine.cached(&inner, 2);
    assert!(stats(&home).blocks <= 2);
    assert_eq!(read(&home, 7, 0, BLOCK), bytes(7, BLOCK));
    let file = machine
        .env
        .files
        .open(Path::new(FILE), OpenMode::buffered(Access::Read));
    assert!(file.unwrap().len().unwrap() <= 2 * (4096 + BLOCK as u64));
}

/// An emptied store in which a number came up again: what the reader finds wrong it asks for past the cache, and that
/// counts from then on.
#[test]
fn whoever_finds_damage_is_given_the_stores_bytes() {
    let machine = Machine::new();
    let inner = memory();
    let home = machine.cached(&inner, 100);
    home.objects
        .put_object(ObjectId(1), &bytes(1, 2500))
        .unwrap();
    inner.objects.remove_object(ObjectId(1)).unwrap();
    inner
        .objects
        .put_object(ObjectId(1), &bytes(99, 2500))
        .unwrap();
    assert_eq!(read(&home, 1, 0, 2500), bytes(1, 2500));
    let copies = home.objects.object_copies().unwrap();
    assert!(inner.objects.object_copies().is_none());
    let mut into = [0; 1200];
    assert_eq!(
        copies
            .read_object_copy(0, ObjectId(1), 100, &mut into)
            .unwrap(),
        1200
    );
    assert_eq!(into[..], bytes(99, 2500)[100..1300]);
    assert_eq!(read(&home, 1, 0, 2000), bytes(99, 2000));
}

#[test]
fn a_block_that_many_want_is_asked_for_once() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::real();
    let store = Arc::new(SimulatedHome::open("model=s3standard", &env).unwrap());
    let inner = LogHome::from(Arc::<SimulatedHome>::clone(&store));
    inner
        .objects
        .put_object(ObjectId(1), &bytes(1, 3500))
        .unwrap();
    let options = CacheOptions {
        block_bytes: BLOCK,
        ..CacheOptions::new(directory.path(), 1 << 20)
    };
    let home = inner.clone().with_cache(&env, &options).unwrap();
    let before = store.usage().reads;
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                together.wait();
                assert_eq!(read(&home, 1, 10, 3400), bytes(1, 3500)[10..3410]);
            });
        }
    });
    // Four blocks, in one request: everybody else found them, or waited for them.
    assert_eq!(store.usage().reads - before, 1);
    let after = stats(&home);
    assert_eq!(after.misses, 4);
    assert_eq!(after.hits + after.joined, 7 * 4);
    // Whoever waits for a read that fails is told so too.
    let missing = home.objects.read_object(ObjectId(2), 0, &mut [0; 10]);
    assert!(matches!(missing, Err(HomeError::Missing(_))));
    // One cache, one process.
    let second = inner.with_cache(&env, &options);
    assert!(matches!(second.map(drop), Err(HomeError::InUse(_))));
}
