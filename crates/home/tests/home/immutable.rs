//! Immutable objects: the suite on every home of this machine, crashes at every I/O and request, full disks, failed
//! syncs.

use logstead_env::{Access, CrashLoss, Env, Fault, Files, OpenMode, RealFiles, SimClock, SimFiles};
use logstead_home::simulated::{MODELS, SimulatedOptions};
use logstead_home::{
    Availability, HomeError, ImmutableObjects, IoMethod, LocalHome, LocalOptions, LogHome,
    MemoryHome, OBJECT_BYTES_MAX, ObjectId, ObjectInfo, ObjectReader, SimulatedHome, conformance,
};
use logstead_types::Epoch;
use std::path::Path;
use std::sync::Arc;

const DEVICE: &str = "/device";
const DIRECTORY: &str = "/data";

fn options() -> LocalOptions {
    LocalOptions {
        threads: false,
        way: IoMethod::Pwrite,
        ..LocalOptions::default()
    }
}

fn preallocate(files: &dyn Files, path: &Path, size: u64) {
    let file = files
        .open(path, OpenMode::buffered(Access::CreateNew))
        .unwrap();
    file.fill_with_zeros(0, size, 1 << 20, &mut || {}).unwrap();
    file.sync().unwrap();
    files.sync_dir(path.parent().unwrap()).unwrap();
}

/// A machine with nothing on it; where the home is to be a device, that is there.
fn machine(place: &str, size: u64, loss: CrashLoss) -> (Env, Arc<SimFiles>) {
    let (env, files) = Env::simulated(size);
    if place == DEVICE {
        preallocate(files.as_ref(), Path::new(DEVICE), size);
    }
    files.set_loss(loss);
    (env, files)
}

fn id(counter: u32) -> ObjectId {
    ObjectId::new(Epoch(3), counter)
}

fn bytes(len: usize, fill: u8) -> Vec<u8> {
    (0..len).map(|at| (at % 255) as u8 ^ fill).collect()
}

/// The whole object, if it is there.
fn whole(home: &dyn ImmutableObjects, id: ObjectId) -> Option<Vec<u8>> {
    let infos = home.list_objects().unwrap();
    let listed = infos.iter().find(|info| info.id == id);
    let mut into = vec![0; listed.map_or(0, |info| info.size_bytes as usize) + 1];
    match home.read_object(id, 0, &mut into) {
        Ok(count) => {
            into.truncate(count);
            Some(into)
        }
        Err(HomeError::Missing(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_memory_home_keeps_objects() {
    conformance::check_objects(
        &LogHome::from(MemoryHome::new(64 << 10).clone()),
        OBJECT_BYTES_MAX,
    );
}

#[test]
fn a_memory_home_that_fails_or_is_full_says_so() {
    let home = MemoryHome::new(64 << 10);
    home.set_disk_full(true);
    assert!(home.put_object(id(1), b"one").unwrap_err().is_disk_full());
    home.set_disk_full(false);
    home.set_failing(true);
    let failed = home.put_object(id(1), b"one").unwrap_err();
    assert!(!failed.is_disk_full());
    home.set_failing(false);
    assert_eq!(home.list_objects().unwrap(), []);
    home.put_object(id(1), b"one").unwrap();
    home.crash();
    assert_eq!(whole(&home, id(1)).unwrap(), b"one");
    home.set_presence(Availability::Refusing);
    assert!(home.put_object(id(2), b"two").is_err());
    assert!(home.read_object(id(1), 0, &mut [0]).is_err());
    assert!(home.list_objects().is_err());
    assert!(home.remove_object(id(1)).is_err());
    home.set_presence(Availability::Up);
    assert_eq!(whole(&home, id(1)).unwrap(), b"one");
}

#[test]
fn a_directory_and_a_device_keep_objects_on_simulated_files() {
    for place in [DIRECTORY, DEVICE] {
        for threads in [false, true] {
            let (env, _) = machine(place, 16 << 20, CrashLoss::All);
            let options = LocalOptions {
                threads,
                ..options()
            };
            let home = LocalHome::open(place, &env, options).unwrap();
            conformance::check_objects(&LogHome::from(home), 3 << 20);
        }
    }
}

#[test]
fn a_directory_and_a_device_keep_objects_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let device = dir.path().join("device");
    preallocate(&RealFiles::default(), &device, 192 << 20);
    for place in [dir.path().join("data"), device] {
        match LocalHome::open(&place, &Env::real(), options()) {
            Ok(home) => conformance::check_objects(&LogHome::from(home), OBJECT_BYTES_MAX),
            Err(error) if error.to_string().contains("O_DIRECT") => eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn objects_are_there_when_a_home_is_opened_again_and_cannot_be_written_read_only() {
    for place in [DIRECTORY, DEVICE] {
        let (env, files) = machine(place, 4 << 20, CrashLoss::All);
        let home = LocalHome::open(place, &env, options()).unwrap();
        let (small, large) = (bytes(100, 1), bytes((2 << 20) + 7, 2));
        home.put_object(id(1), &small).unwrap();
        home.put_object(id(2), &large).unwrap();
        drop(home);
        files.reboot();
        let home = LocalHome::open_read_only(place, &env).unwrap();
        assert_eq!(whole(&home, id(1)).unwrap(), small);
        assert_eq!(whole(&home, id(2)).unwrap(), large);
        assert!(matches!(
            home.put_object(id(3), &small),
            Err(HomeError::Unsupported(_))
        ));
        assert!(matches!(
            home.remove_object(id(1)),
            Err(HomeError::Unsupported(_))
        ));
        assert_eq!(home.list_objects().unwrap().len(), 2);
    }
}

/// What stands at every crash, and after it: what was told durable is there, the rest is there whole or not at all.
#[test]
fn a_crash_at_any_write_leaves_whole_objects_only() {
    for place in [DIRECTORY, DEVICE] {
        for loss in [CrashLoss::All, CrashLoss::Nothing, CrashLoss::Random] {
            for size in [100, 4096, (1 << 20) + 500] {
                let mut outcomes = [0; 2];
                for crash in 0.. {
                    let (env, files) = machine(place, (4 << 20) + (crash << 12), loss);
                    let home = LocalHome::open(place, &env, options()).unwrap();
                    let (first, second) = (bytes(size, 1), bytes(size, 2));
                    home.put_object(id(1), &first).unwrap();
                    files.fail_at(files.operations() + crash, Fault::Crash);
                    let put = home.put_object(id(2), &second);
                    let crashed = files.is_crashed();
                    files.reboot();
                    drop(home);
                    let home = LocalHome::open(place, &env, options()).unwrap();
                    assert_eq!(whole(&home, id(1)).unwrap(), first);
                    let there = whole(&home, id(2));
                    assert!(there.is_some() || put.is_err(), "told durable and gone");
                    assert!(there.is_none() || there.as_ref() == Some(&second), "half");
                    outcomes[usize::from(there.is_some())] += 1;
                    assert_eq!(
                        home.list_objects().unwrap().len(),
                        1 + usize::from(there.is_some()),
                    );
                    if place == DIRECTORY {
                        let names = env.files.list(Path::new("/data/objects")).unwrap();
                        assert_eq!(names.len(), home.list_objects().unwrap().len(), "{names:?}");
                    }
                    home.put_object(id(2), &second).unwrap();
                    assert_eq!(whole(&home, id(2)).unwrap(), second);
                    if !crashed {
                        break;
                    }
                }
                assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
            }
        }
    }
}

#[test]
fn a_crash_while_one_is_removed_leaves_it_whole_or_takes_it() {
    for place in [DIRECTORY, DEVICE] {
        for loss in [CrashLoss::All, CrashLoss::Nothing, CrashLoss::Random] {
            for crash in 0..6 {
                let (env, files) = machine(place, (4 << 20) + (crash << 12), loss);
                let home = LocalHome::open(place, &env, options()).unwrap();
                let (kept, gone) = (bytes(9000, 1), bytes(9000, 2));
                home.put_object(id(1), &kept).unwrap();
                home.put_object(id(2), &gone).unwrap();
                files.fail_at(files.operations() + crash, Fault::Crash);
                let _may_crash = home.remove_object(id(2));
                // Its space may be given to another one meanwhile.
                let _may_crash = home.put_object(id(3), &bytes(9000, 3));
                files.reboot();
                drop(home);
                let home = LocalHome::open(place, &env, options()).unwrap();
                assert_eq!(whole(&home, id(1)).unwrap(), kept);
                assert!(whole(&home, id(2)).is_none_or(|there| there == gone));
                assert!(whole(&home, id(3)).is_none_or(|there| there == bytes(9000, 3)));
            }
        }
    }
}

#[test]
fn a_full_disk_says_so_and_keeps_nothing_of_the_object() {
    let (env, files) = machine(DIRECTORY, 0, CrashLoss::All);
    let home = LocalHome::open(DIRECTORY, &env, options()).unwrap();
    home.put_object(id(1), &bytes(9000, 1)).unwrap();
    let used = files.used();
    files.set_capacity(Some(used + (2 << 20)));
    let full = home.put_object(id(2), &bytes(3 << 20, 2)).unwrap_err();
    assert!(full.is_disk_full(), "{full}");
    assert_eq!(files.used(), used, "its space is free for others");
    home.put_object(id(3), &bytes(1 << 20, 3)).unwrap();
    home.remove_object(id(1)).unwrap();
    files.set_capacity(None);
    home.put_object(id(2), &bytes(3 << 20, 2)).unwrap();
    let (env, _) = machine(DEVICE, 16 << 20, CrashLoss::All);
    let device = LocalHome::open(DEVICE, &env, options()).unwrap();
    let full = device.put_object(id(2), &bytes(20 << 20, 2)).unwrap_err();
    assert!(full.is_disk_full(), "{full}");
    assert_eq!(device.list_objects().unwrap(), []);
    let fits = bytes(10 << 20, 4);
    for counter in 10..20 {
        // Over and over: what failed or was removed is used again.
        device.put_object(id(counter), &fits).unwrap();
        device.remove_object(id(counter)).unwrap();
    }
}

/// Whoever puts again after a failed sync must not be told that what the first attempt left is durable.
#[test]
fn after_a_failed_sync_the_object_is_written_again() {
    for failing in 0..8 {
        let (env, files) = machine(DIRECTORY, 0, CrashLoss::All);
        let home = LocalHome::open(DIRECTORY, &env, options()).unwrap();
        let object = bytes(9000, 1);
        files.fail_at(files.operations() + failing, Fault::Error);
        let put = home.put_object(id(1), &object);
        files.clear_faults();
        if put.is_err() {
            assert_eq!(home.list_objects().unwrap(), [], "operation {failing}");
            home.put_object(id(1), &object).unwrap();
        }
        files.reboot();
        drop(home);
        let home = LocalHome::open(DIRECTORY, &env, options()).unwrap();
        assert_eq!(whole(&home, id(1)).unwrap(), object);
    }
}

#[test]
fn the_simulated_home_keeps_objects_in_both_ways_of_time() {
    for model in MODELS {
        let options = SimulatedOptions::new(model, 1);
        conformance::check_objects(&LogHome::from(in_virtual_time(&options).clone()), 3 << 20);
        let options = SimulatedOptions {
            scale: 0.001,
            ..options
        };
        let home = SimulatedHome::in_real_time(&options, &Env::real()).unwrap();
        conformance::check_objects(&LogHome::from(home.clone()), 1 << 20);
    }
}

fn in_virtual_time(options: &SimulatedOptions) -> SimulatedHome {
    let (env, _) = Env::simulated(options.seed);
    SimulatedHome::in_virtual_time(options, &env, Arc::new(SimClock::new())).unwrap()
}

#[test]
fn a_simulated_machine_that_stops_leaves_whole_objects_only() {
    for model in MODELS {
        let mut outcomes = [0; 2];
        for seed in 0..20 {
            let options = SimulatedOptions::new(model.clone(), seed);
            let home = in_virtual_time(&options);
            let object = bytes(9000, 1);
            home.put_object(id(1), &object).unwrap();
            home.crash_at(home.requests());
            assert!(home.put_object(id(2), &object).is_err());
            assert!(home.is_down());
            assert!(home.put_object(id(3), &object).is_err(), "it has stopped");
            home.reboot();
            assert_eq!(whole(&home, id(1)).unwrap(), object);
            assert_eq!(whole(&home, id(3)), None);
            let there = whole(&home, id(2));
            assert!(there.is_none() || there == Some(object));
            outcomes[usize::from(there.is_some())] += 1;
            home.crash_at(home.requests());
            assert!(home.remove_object(id(1)).is_err());
            home.reboot();
            outcomes[usize::from(whole(&home, id(1)).is_some())] += 1;
        }
        assert!(outcomes.iter().all(|&count| count > 5), "{outcomes:?}");
    }
}

#[test]
fn a_flipped_bit_is_read_as_it_lies() {
    let home = in_virtual_time(&SimulatedOptions::new(MODELS[0].clone(), 1));
    home.put_object(id(1), &[0; 100]).unwrap();
    home.flip_object_bit(id(1), 42, 3).unwrap();
    let mut damaged = [0; 100];
    damaged[42] = 8;
    assert_eq!(whole(&home, id(1)).unwrap(), damaged);
    let info = ObjectInfo {
        id: id(1),
        size_bytes: 100,
    };
    assert_eq!(home.list_objects().unwrap(), [info]);
    assert!(home.flip_object_bit(id(2), 0, 0).is_err());
}
