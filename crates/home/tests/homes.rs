//! The conformance suite against each home, and what is the local home's own: the lock, full disks, failed writes.

use logstead_env::{Buffer, Clock, Env, Fault, Loss, SimClock};
use logstead_home::{HomeError, LocalHome, LocalOptions, LogHome, MemoryHome, NoRoom, conformance};
use logstead_types::LaneId;
use std::path::Path;
use std::sync::{Arc, mpsc};

const LANE: LaneId = LaneId(0);

fn small(threads: bool) -> LocalOptions {
    LocalOptions {
        segment_size_bytes: 64 * 1024,
        first_segment_size_bytes: 32 * 1024,
        segment_size_bytes_min: 32 * 1024,
        threads,
    }
}

#[test]
fn memory_home_conforms() {
    let home: Arc<dyn LogHome> = Arc::new(MemoryHome::new(64 * 1024));
    conformance::check(&home);
}

#[test]
fn local_home_conforms_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let home = LocalHome::open(dir.path().join("data"), &Env::real(), small(true)).unwrap();
    let home: Arc<dyn LogHome> = Arc::new(home);
    conformance::check(&home);
}

#[test]
fn local_home_conforms_on_simulated_files() {
    for threads in [false, true] {
        let (env, _) = Env::simulated(1);
        let home: Arc<dyn LogHome> =
            Arc::new(LocalHome::open("/data", &env, small(threads)).unwrap());
        conformance::check(&home);
    }
}

#[test]
fn one_server_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::real();
    let first = LocalHome::open(dir.path(), &env, small(true)).unwrap();
    assert!(matches!(
        LocalHome::open(dir.path(), &env, small(true)),
        Err(HomeError::InUse(_))
    ));
    assert!(matches!(
        LocalHome::open_read_only(dir.path(), &env),
        Err(HomeError::InUse(_))
    ));
    drop(first);
    assert!(LocalHome::open(dir.path(), &env, small(true)).is_ok());
    let empty = dir.path().join("elsewhere");
    assert!(matches!(
        LocalHome::open_read_only(&empty, &env),
        Err(HomeError::Missing(_))
    ));
}

#[test]
fn a_full_disk_refuses_room_and_recovers() {
    let (env, files) = Env::simulated(1);
    let clock = Arc::new(SimClock::new());
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..env
    };
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    files.set_capacity(Some(files.used() + 8 * 1024));
    let block = Buffer::zeroed(4096);
    let mut written = 0;
    loop {
        match home.ensure_room(LANE, 4096) {
            Ok(()) => {}
            Err(NoRoom::DiskFull) => break,
            Err(other) => panic!("{other}"),
        }
        let at = home.place(LANE, 4096).unwrap();
        home.append_inline(LANE, at, &block, 4096)
            .expect("what was ensured is never refused");
        written += 1;
    }
    assert_eq!(written, 8, "the whole first segment was usable");
    let refused = home.ensure_room(LANE, 4096);
    assert!(matches!(refused, Err(NoRoom::DiskFull)), "still full");
    let leftovers = env.files.list(Path::new("/data/log/lane-0000")).unwrap();
    assert_eq!(
        leftovers,
        ["000000000000.seg"],
        "a failed preparation leaves nothing behind"
    );
    files.set_capacity(None);
    clock.advance(std::time::Duration::from_millis(100));
    home.ensure_room(LANE, 4096).expect("space was freed");
}

#[test]
fn threads_tell_when_the_disk_has_space_again() {
    let (env, files) = Env::simulated(1);
    let env = Env {
        clock: Env::real().clock,
        ..env
    };
    let home = LocalHome::open("/data", &env, small(true)).unwrap();
    files.set_capacity(Some(32 * 1024 + 100));
    home.open_lane(LANE, 0).unwrap();
    let (tell, told) = mpsc::channel();
    home.set_room_listener(
        LANE,
        Box::new(move || {
            let _listening = tell.send(());
        }),
    );
    home.place(LANE, 32 * 1024).unwrap();
    // Nobody waits for ever: each attempt that fails says so.
    while !matches!(home.ensure_room(LANE, 4096), Err(NoRoom::DiskFull)) {
        told.recv().unwrap();
    }
    files.set_capacity(None);
    while home.ensure_room(LANE, 4096).is_err() {
        // Refused at once while the last answer is fresh, told later otherwise.
        let _told = told.recv_timeout(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_failed_write_is_told_and_not_repeated() {
    let (env, files) = Env::simulated(1);
    let home = LocalHome::open("/data", &env, small(true)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    home.ensure_room(LANE, 4096).unwrap();
    let (done, completions) = mpsc::channel();
    let at = home.place(LANE, 4096).unwrap();
    let before = files.operations();
    files.fail_at(before, Fault::Error);
    home.append(
        LANE,
        at,
        Buffer::zeroed(4096),
        4096,
        Box::new(move |_, result| done.send(result).unwrap()),
    );
    assert!(matches!(
        completions.recv().unwrap(),
        Err(HomeError::Io { .. })
    ));
    assert_eq!(files.operations(), before + 1);
}

#[test]
fn unfinished_segments_are_cleared_at_open() {
    let (env, files) = Env::simulated(1);
    files.set_loss(Loss::Nothing);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    home.place(LANE, 32 * 1024).unwrap();
    files.fail_at(files.operations() + 2, Fault::Crash);
    assert!(home.ensure_room(LANE, 4096).is_err());
    files.reboot();
    assert_eq!(
        env.files
            .list(Path::new("/data/log/lane-0000"))
            .unwrap()
            .len(),
        2
    );
    drop(home);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    assert_eq!(home.segments(LANE).unwrap().len(), 1);
    assert_eq!(
        env.files
            .list(Path::new("/data/log/lane-0000"))
            .unwrap()
            .len(),
        1
    );
}

/// The names in the lane's directory.
fn names(env: &Env) -> Vec<String> {
    let listed = env.files.list(Path::new("/data/log/lane-0000"));
    listed.expect("a directory")
}

#[test]
fn a_side_segment_on_a_full_disk_fails_at_its_end_and_leaves_nothing() {
    let (env, files) = Env::simulated(1);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    files.set_capacity(Some(files.used() + (2 << 20)));
    let mut side = home.begin_side(LANE, 7);
    for _ in 0..40 {
        side.append(vec![1; 100_000]);
    }
    let (done, completions) = mpsc::channel();
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    assert!(matches!(completions.recv(), Ok(Err(NoRoom::DiskFull))));
    assert_eq!(names(&env), [""; 0], "its space is free for others");
    files.set_capacity(None);
    let mut given_up = home.begin_side(LANE, 8);
    given_up.append(vec![1; 3 << 20]);
    assert_eq!(names(&env), ["side-0000000000000008.rec.new"]);
    drop(given_up);
    assert_eq!(names(&env), [""; 0]);
}

#[test]
fn a_side_segment_has_its_name_only_when_it_is_durable() {
    for pieces in 0..4 {
        let (env, files) = Env::simulated(1);
        let home = LocalHome::open("/data", &env, small(false)).unwrap();
        let mut side = home.begin_side(LANE, 7);
        for _ in 0..pieces {
            side.append(vec![1; 1_000_000]);
        }
        assert_eq!(home.sides(LANE).unwrap(), []);
        let (done, completions) = mpsc::channel();
        side.finish(Box::new(move |result| done.send(result).unwrap()));
        completions.recv().unwrap().unwrap();
        drop(home);
        files.reboot();
        let home = LocalHome::open("/data", &env, small(false)).unwrap();
        assert_eq!(home.sides(LANE).unwrap(), [7]);
        let mut all = vec![0; 4_000_000];
        let length = home.get_side(LANE, 7, 0, &mut all).unwrap();
        assert_eq!(length, pieces * 1_000_000);
        assert!(all[..length].iter().all(|byte| *byte == 1));
    }
}
