//! The conformance suite against each home, and what is the local home's own: the lock, full disks, failed writes.

use logstead_env::{Buffer, CrashLoss, Env, Fault, Files};
use logstead_home::{
    HomeError, HomeStatus, ImmutableObjects, InlineAppends, IoMethod, LaneAppends, LaneSegments,
    LocalHome, LocalOptions, LogHome, MemoryHome, NoRoom, ObjectId, Position, RoomRequest,
    SideSegments, check_copy, conformance,
};
use logstead_types::{Epoch, LaneId};
use std::path::Path;
use std::sync::{Arc, mpsc};

const LANE: LaneId = LaneId(0);

fn small(threads: bool) -> LocalOptions {
    LocalOptions {
        segment_size_bytes: 64 * 1024,
        first_segment_size_bytes: 32 * 1024,
        segment_size_bytes_min: 32 * 1024,
        threads,
        ..LocalOptions::default()
    }
}

#[test]
fn memory_home_conforms() {
    let home = LogHome::from(MemoryHome::new(64 * 1024));
    conformance::check(&home);
}

/// A home on the real disk that writes in `way`, unless this machine cannot.
fn real(dir: &Path, way: IoMethod) -> Option<LocalHome> {
    let options = LocalOptions { way, ..small(true) };
    match LocalHome::open(dir, &Env::real(), options) {
        Err(error) if way == IoMethod::Uring && logstead_env::Ring::<()>::new(1, None).is_err() => {
            eprintln!("skipped: {error}");
            None
        }
        other => Some(other.unwrap()),
    }
}

#[test]
fn local_home_conforms_on_a_real_disk_in_every_way() {
    for way in IoMethod::ALL {
        let dir = tempfile::tempdir().unwrap();
        let Some(home) = real(&dir.path().join("data"), way) else {
            continue;
        };
        let report = home.report();
        assert!(
            way == IoMethod::Auto || report[0].1 == way.name(),
            "{report:?}"
        );
        let home = LogHome::from(home);
        conformance::check(&home);
    }
}

#[test]
fn appends_in_flight_together_all_arrive_in_every_way() {
    for way in IoMethod::ALL {
        let dir = tempfile::tempdir().unwrap();
        let Some(home) = real(&dir.path().join("data"), way) else {
            continue;
        };
        let (done, completions) = mpsc::channel();
        let lanes = [LaneId(0), LaneId(1)];
        for lane in lanes {
            home.open_lane(lane, 0).unwrap();
        }
        // Twice as many as are worth it: the rest waits inside the home.
        let count = (2 * home.capabilities().appends_in_flight_max).min(7);
        let mut places = Vec::new();
        for number in 0..count {
            for lane in lanes {
                let mut block = Buffer::zeroed(4096);
                block.as_mut_slice().fill((2 * number) as u8 + lane.0 as u8);
                let at = home.place(lane, 4096).unwrap();
                places.push((lane, at, block.as_slice()[0]));
                let done = done.clone();
                let told = move |block: Buffer, result| {
                    done.send((lane, at, block.as_slice()[0], result)).unwrap();
                };
                home.append(lane, at, block, 4096, Box::new(told));
            }
        }
        // One by the caller meanwhile.
        let at = home.place(LANE, 4096).unwrap();
        home.append_inline(LANE, at, &Buffer::zeroed(4096), 4096)
            .unwrap();
        let mut told = Vec::new();
        for _ in 0..places.len() {
            let (lane, at, byte, result) = completions.recv().unwrap();
            result.unwrap();
            told.push((lane, at, byte));
        }
        told.sort_unstable();
        places.sort_unstable();
        assert_eq!(told, places, "{way}: each once, with its own buffer");
        drop(home);
        let home = real(&dir.path().join("data"), way).unwrap();
        for (lane, at, byte) in places {
            let mut into = Buffer::zeroed(4096);
            assert_eq!(home.read(lane, at, &mut into).unwrap(), 4096);
            assert!(into.as_slice().iter().all(|&read| read == byte), "{way}");
        }
    }
}

#[test]
fn a_home_that_is_dropped_has_finished_its_writes() {
    for way in IoMethod::ALL {
        let dir = tempfile::tempdir().unwrap();
        let Some(home) = real(&dir.path().join("data"), way) else {
            continue;
        };
        home.open_lane(LANE, 0).unwrap();
        let (done, completions) = mpsc::channel();
        for _ in 0..6 {
            let at = home.place(LANE, 4096).unwrap();
            let done = done.clone();
            let told = move |_, result| done.send(result).unwrap();
            home.append(LANE, at, Buffer::zeroed(4096), 4096, Box::new(told));
        }
        drop(home);
        assert_eq!(completions.try_iter().count(), 6, "{way}");
        real(&dir.path().join("data"), way).expect("and the lock is free");
    }
}

/// The kernel tells of a failed write-back once per open file. Whoever syncs next must not take that for success.
#[test]
fn after_a_failed_sync_nothing_is_said_to_be_durable() {
    for way in [IoMethod::Pwrite, IoMethod::Portable] {
        for threads in [false, true] {
            let (env, files) = Env::simulated(1);
            let options = LocalOptions {
                way,
                // Large enough that no next segment is made meanwhile.
                segment_size_bytes: 256 * 1024,
                first_segment_size_bytes: 256 * 1024,
                ..small(threads)
            };
            let home = LocalHome::open("/data", &env, options).unwrap();
            home.open_lane(LANE, 0).unwrap();
            let block = Buffer::zeroed(4096);
            let places = [(); 3].map(|()| home.place(LANE, 4096).unwrap());
            home.append_inline(LANE, places[0], &block, 4096).unwrap();
            files.fail_syncs();
            assert!(home.append_inline(LANE, places[1], &block, 4096).is_err());
            files.clear_faults();
            let operations = files.operations();
            assert!(home.append_inline(LANE, places[2], &block, 4096).is_err());
            let (done, completions) = mpsc::channel();
            let told = move |_, result: Result<(), HomeError>| done.send(result).unwrap();
            home.append(LANE, places[2], block, 4096, Box::new(told));
            assert!(completions.recv().unwrap().is_err());
            assert_eq!(files.operations(), operations, "nothing was even tried");
        }
    }
}

/// What a way calls durable survives a power cut that loses everything else.
#[test]
fn every_simulated_way_is_durable_when_it_says_so() {
    for way in [IoMethod::Pwrite, IoMethod::Threads, IoMethod::Portable] {
        for threads in [false, true] {
            let (env, files) = Env::simulated(1);
            files.set_loss(CrashLoss::All);
            let options = LocalOptions {
                way,
                ..small(threads)
            };
            let home = LocalHome::open("/data", &env, options.clone()).unwrap();
            home.open_lane(LANE, 0).unwrap();
            let mut block = Buffer::zeroed(4096);
            block.as_mut_slice().fill(7);
            let places = [(); 2].map(|()| home.place(LANE, 4096).unwrap());
            home.append_inline(LANE, places[0], &block, 4096).unwrap();
            let (done, completions) = mpsc::channel();
            let told = move |_, result: Result<(), HomeError>| done.send(result).unwrap();
            home.append(LANE, places[1], block, 4096, Box::new(told));
            completions.recv().unwrap().unwrap();
            files.reboot();
            drop(home);
            let home = LocalHome::open("/data", &env, options).unwrap();
            for at in places {
                let mut into = Buffer::zeroed(4096);
                home.read(LANE, at, &mut into).unwrap();
                assert!(into.as_slice().iter().all(|&byte| byte == 7), "{way}");
            }
        }
    }
}

#[test]
fn local_home_conforms_on_simulated_files() {
    for threads in [false, true] {
        let (env, _) = Env::simulated(1);
        let home = LogHome::from(LocalHome::open("/data", &env, small(threads)).unwrap());
        conformance::check(&home);
    }
}

/// A lock whose owner dies: nobody gives it back.
struct Dying(std::fs::File);

impl logstead_env::FileLock for Dying {
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.0))
    }
}

/// The kernel still ends the writes of a server that was killed: the next one waits for that, and is not told that one
/// is running.
#[test]
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a descriptor that is closed as the kernel closes it"
)]
fn a_server_that_was_killed_is_no_running_one() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::real();
    drop(LocalHome::open(dir.path(), &env, small(true)).unwrap());
    let owner = std::fs::File::open(dir.path().join("lock")).unwrap();
    owner.try_lock().unwrap();
    let owner: Arc<dyn logstead_env::FileLock> = Arc::new(Dying(owner));
    let Ok(ring) = logstead_env::Ring::<()>::new(1, Some(&owner)) else {
        eprintln!("skipped: this machine has no io_uring");
        return;
    };
    drop(owner);
    // As long as it lasts: this thread has looked at the lock.
    let ends = env.spawn("ends", None, move || {
        logstead_env::sleep(std::time::Duration::from_millis(100));
        drop(ring);
    });
    let next = LocalHome::open(dir.path(), &env, small(true));
    assert!(next.is_ok(), "{:?}", next.err());
    ends.unwrap().join().unwrap();
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
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    files.set_capacity(Some(files.used() + 8 * 1024));
    let block = Buffer::zeroed(4096);
    let mut written = 0;
    loop {
        match home.ensure_room(LANE, 4096, &mut RoomRequest::default()) {
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
    let refused = home.ensure_room(LANE, 4096, &mut RoomRequest::default());
    assert!(matches!(refused, Err(NoRoom::DiskFull)), "still full");
    let leftovers = env.files.list(Path::new("/data/log/lane-0000")).unwrap();
    assert_eq!(
        leftovers,
        ["000000000000.seg"],
        "a failed preparation leaves nothing behind"
    );
    files.set_capacity(None);
    home.ensure_room(LANE, 4096, &mut RoomRequest::default())
        .expect("space was freed");
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
    let mut asked = RoomRequest::default();
    while !matches!(
        home.ensure_room(LANE, 4096, &mut asked),
        Err(NoRoom::DiskFull)
    ) {
        told.recv().unwrap();
    }
    files.set_capacity(None);
    let mut asked = RoomRequest::default();
    loop {
        match home.ensure_room(LANE, 4096, &mut asked) {
            Ok(()) => break,
            Err(NoRoom::Busy) => told.recv().unwrap(),
            Err(error) => panic!("what was found before is no answer: {error}"),
        }
    }
}

#[test]
fn a_failed_write_is_told_and_not_repeated() {
    let (env, files) = Env::simulated(1);
    let home = LocalHome::open("/data", &env, small(true)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    home.ensure_room(LANE, 4096, &mut RoomRequest::default())
        .unwrap();
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
    files.set_loss(CrashLoss::Nothing);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    home.place(LANE, 32 * 1024).unwrap();
    files.fail_at(files.operations() + 2, Fault::Crash);
    assert!(
        home.ensure_room(LANE, 4096, &mut RoomRequest::default())
            .is_err()
    );
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
    assert_eq!(home.list_segments(LANE).unwrap().len(), 1);
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
    let mut side = home.begin_side_segment(LANE, 7);
    for _ in 0..40 {
        side.append(vec![1; 100_000]);
    }
    let (done, completions) = mpsc::channel();
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    assert!(matches!(completions.recv(), Ok(Err(NoRoom::DiskFull))));
    assert_eq!(names(&env), [""; 0], "its space is free for others");
    files.set_capacity(None);
    let mut given_up = home.begin_side_segment(LANE, 8);
    given_up.append(vec![1; 3 << 20]);
    assert_eq!(names(&env), ["side-0000000000000008.rec.1.new"]);
    drop(given_up);
    assert_eq!(names(&env), [""; 0]);
}

#[test]
fn a_side_segment_has_its_name_only_when_it_is_durable() {
    for pieces in 0..4 {
        let (env, files) = Env::simulated(1);
        let home = LocalHome::open("/data", &env, small(false)).unwrap();
        let mut side = home.begin_side_segment(LANE, 7);
        for _ in 0..pieces {
            side.append(vec![1; 1_000_000]);
        }
        assert_eq!(home.list_side_segments(LANE).unwrap(), [0u64; 0]);
        let (done, completions) = mpsc::channel();
        side.finish(Box::new(move |result| done.send(result).unwrap()));
        completions.recv().unwrap().unwrap();
        drop(home);
        files.reboot();
        let home = LocalHome::open("/data", &env, small(false)).unwrap();
        assert_eq!(home.list_side_segments(LANE).unwrap(), [7]);
        let mut all = vec![0; 4_000_000];
        let length = home.get_side_segment(LANE, 7, 0, &mut all).unwrap();
        assert_eq!(length, pieces * 1_000_000);
        assert!(all[..length].iter().all(|byte| *byte == 1));
    }
}

/// A trimmed segment becomes the next one by a rename: nothing is written for it, and what it held lies behind the
/// tail.
#[test]
fn a_trimmed_segment_is_used_again_without_being_written() {
    let (env, files) = Env::simulated(1);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    let append = |segment: u64, fill: u8| {
        home.ensure_room(LANE, 4096, &mut RoomRequest::default())
            .unwrap();
        let at = home.place(LANE, 4096).unwrap();
        assert_eq!(at.segment, segment);
        let mut block = Buffer::zeroed(4096);
        block.as_mut_slice().fill(fill);
        home.append_inline(LANE, at, &block, 4096).unwrap();
        at
    };
    for _ in 0..8 {
        append(0, 1);
    }
    for _ in 0..16 {
        append(1, 2);
    }
    append(2, 3);
    home.trim(LANE, 0).unwrap();
    home.trim(LANE, 1).unwrap();
    assert_eq!(home.list_segments(LANE).unwrap().len(), 1, "they are gone");
    assert_eq!(
        home.read(LANE, Position::default(), &mut Buffer::zeroed(4096))
            .unwrap(),
        0
    );
    for _ in 0..15 {
        append(2, 3);
    }
    let (used, operations) = (files.used(), files.operations());
    let at = append(3, 4);
    // The rename, the directory, the append.
    assert_eq!(files.operations(), operations + 3);
    assert_eq!(files.used(), used);
    let mut into = Buffer::zeroed(64 * 1024);
    assert_eq!(
        home.read(LANE, at, &mut into).unwrap(),
        64 * 1024,
        "the larger one"
    );
    assert!(into.as_slice()[..4096].iter().all(|&byte| byte == 4));
    assert!(
        into.as_slice()[4096..].iter().all(|&byte| byte == 2),
        "stale"
    );
    // A segment that was trimmed is not written to any more, whatever it is called now.
    let late = home.append_inline(LANE, Position::start_of(1), &Buffer::zeroed(4096), 4096);
    assert!(matches!(late, Err(HomeError::Misuse { .. })));
    drop(home);
    files.set_loss(CrashLoss::All);
    files.reboot();
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    let numbers: Vec<u64> = home
        .list_segments(LANE)
        .unwrap()
        .iter()
        .map(|info| info.segment)
        .collect();
    assert_eq!(
        numbers,
        [2, 3],
        "the new name is durable, and the old one gone"
    );
    assert_eq!(home.read(LANE, at, &mut into).unwrap(), 64 * 1024);
    assert!(into.as_slice()[..4096].iter().all(|&byte| byte == 4));
}

#[test]
fn spares_are_few_and_give_way_on_a_full_disk() {
    let (env, files) = Env::simulated(1);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    for segment in 1..6 {
        home.ensure_room(LANE, 32 * 1024, &mut RoomRequest::default())
            .unwrap();
        while home.place(LANE, 32 * 1024).unwrap().segment < segment {
            home.ensure_room(LANE, 32 * 1024, &mut RoomRequest::default())
                .unwrap();
        }
    }
    for segment in 0..5 {
        home.trim(LANE, segment).unwrap();
    }
    let spares = || {
        names(&env)
            .iter()
            .filter(|name| name.ends_with(".free"))
            .count()
    };
    assert_eq!(spares(), 2);
    // Another lane gets their space rather than none.
    files.set_capacity(Some(files.used() + 8 * 1024));
    home.open_lane(LaneId(1), 0).unwrap();
    assert_eq!(spares(), 0);
}

/// T7: what is read after a failed write may be in a cache only. Rewriting it makes it durable, whatever way it was
/// written.
#[test]
fn rewriting_makes_durable_what_only_a_cache_held() {
    for way in [IoMethod::Pwrite, IoMethod::Portable] {
        for rewrite in [false, true] {
            let (env, files) = Env::simulated(1);
            let options = || LocalOptions {
                way,
                ..small(false)
            };
            let home = LocalHome::open("/data", &env, options()).unwrap();
            home.open_lane(LANE, 0).unwrap();
            let mut block = Buffer::zeroed(4096);
            block.as_mut_slice().fill(7);
            let at = home.place(LANE, 4096).unwrap();
            files.fail_syncs();
            assert!(home.append_inline(LANE, at, &block, 4096).is_err());
            files.clear_faults();
            drop(home);
            let holds = |home: &LocalHome| {
                let mut into = Buffer::zeroed(4096);
                home.read(LANE, at, &mut into).unwrap();
                into.as_slice().iter().all(|&byte| byte == 7)
            };
            let home = LocalHome::open("/data", &env, options()).unwrap();
            assert!(holds(&home), "the cache has it");
            if rewrite {
                home.rewrite(LANE, at, &block, 4096).unwrap();
            }
            drop(home);
            files.set_loss(CrashLoss::All);
            files.reboot();
            let home = LocalHome::open("/data", &env, options()).unwrap();
            assert_eq!(holds(&home), rewrite, "{way}");
        }
    }
}

/// Where a database may be copied to, before anything is made there.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the machine's own directories and links are what it is about"
)]
fn places_of_copies() {
    let env = Env::real();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    drop(LocalHome::open(at("source"), &env, small(false)).unwrap());
    drop(LocalHome::open(at("begun"), &env, small(false)).unwrap());
    std::fs::create_dir(at("empty")).unwrap();
    std::fs::create_dir(at("others")).unwrap();
    std::fs::write(at("others/file"), "x").unwrap();
    std::os::unix::fs::symlink(at("source"), at("link")).unwrap();
    let source = at("source");
    for fine in ["empty", "new", "new/deeper", "begun", "source2"] {
        check_copy(&source, &at(fine), &env).unwrap();
        check_copy("s3://bucket/source", &format!("file://{}", at(fine)), &env).unwrap();
    }
    check_copy(&source, "s3://bucket/copy", &env).unwrap();
    let refused = [
        (at("others"), "\"file\""),
        (at("source"), "within"),
        (at("source/below/it"), "within"),
        (at("link/below"), "within"),
        ("memory:".to_owned(), "gone"),
        ("sim://?model=s3express".to_owned(), "gone"),
        (format!("file://{},memory:", at("empty")), "gone"),
    ];
    for (to, why) in refused {
        let error = check_copy(&source, &to, &env).expect_err(&to);
        assert!(error.to_string().contains(why), "{to}: {error}");
    }
    let list = format!("file://{},s3://bucket/copy", at("source"));
    assert!(check_copy(&list, &at("source/below"), &env).is_err());
    // A backup that is there is judged by what is in it.
    std::fs::write(at("others/manifest"), "x").unwrap();
    check_copy(&source, &at("others"), &env).unwrap();
}

fn finished(home: &LocalHome, id: u64, bytes: usize) -> Result<(), NoRoom> {
    let mut side = home.begin_side_segment(LANE, id);
    for piece in (0..bytes).step_by(1 << 18) {
        side.append(vec![1; (bytes - piece).min(1 << 18)]);
    }
    let (done, completions) = mpsc::channel();
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    completions.recv().unwrap()
}

/// Who writes more is refused while there still is room for who removes, and for the checkpoint behind that.
#[test]
fn room_is_kept_for_what_frees_room() {
    let (env, files) = Env::simulated(1);
    files.set_capacity(Some(64 << 20));
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    let reserve = 8_u64 << 20;
    assert!(!home.is_short_of_space());
    // What is beside the log is to be written again by a checkpoint: no more is taken than finds room twice.
    let (mut id, mut whole) = (0, 0_u64);
    while !home.is_short_of_space() {
        finished(&home, id, 1 << 20).expect("there is room");
        (id, whole) = (id + 1, whole + (1 << 20));
    }
    let free = || files.free_space(Path::new("/data")).unwrap();
    assert!((reserve + whole - (2 << 20)..reserve + whole).contains(&free()));
    // One that began before is told when half of the reserve is used.
    let refused = finished(&home, 100, 20 << 20);
    assert!(matches!(refused, Err(NoRoom::DiskFull)), "{refused:?}");
    assert!(free() >= reserve / 2 + whole, "its space is free");
    finished(&home, 101, 1 << 18).expect("deletes go on");
    home.remove_side_segment(LANE, 101).unwrap();
    // The checkpoint writes it all.
    for object in 0..whole >> 20 {
        let id = ObjectId::new(Epoch(1), object as u32);
        home.put_object(id, &vec![7; 1 << 20]).expect("it has room");
    }
    assert!(home.is_short_of_space());
    for id in 0..id {
        home.remove_side_segment(LANE, id).unwrap();
    }
    assert!(!home.is_short_of_space(), "what was freed counts at once");
    // Segments leave half of the reserve, which an object takes to the last byte.
    let put = |number, bytes| home.put_object(ObjectId::new(Epoch(1), number), &vec![7; bytes]);
    let mut object = 1_000;
    while free() >= reserve / 2 {
        put(object, 1 << 20).expect("it has room");
        object += 1;
    }
    home.place(LANE, 32 * 1024).unwrap();
    let refused = home.ensure_room(LANE, 4096, &mut RoomRequest::default());
    assert!(matches!(refused, Err(NoRoom::DiskFull)), "{refused:?}");
    let left = free() - free() % 4096;
    put(object, left as usize).expect("nothing is kept from it");
}

/// After a start, side segments that are there count as before.
#[test]
fn side_segments_of_earlier_lives_count() {
    let (env, files) = Env::simulated(1);
    files.set_capacity(Some(64 << 20));
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    let mut id = 0;
    while !home.is_short_of_space() {
        finished(&home, id, 1 << 20).expect("there is room");
        id += 1;
    }
    drop(home);
    let home = LocalHome::open("/data", &env, small(false)).unwrap();
    let refused = finished(&home, 100, 20 << 20);
    assert!(matches!(refused, Err(NoRoom::DiskFull)), "{refused:?}");
    assert!(home.is_short_of_space());
}
