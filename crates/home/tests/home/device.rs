//! The local home on a device: the conformance suite, crashes at every I/O, and devices that are none of ours.

use logstead_env::{Access, Buffer, CrashLoss, Env, Fault, Files, OpenMode, RealFiles, SimFiles};
use logstead_home::{
    HomeError, InlineAppends, IoMethod, LaneAppends, LaneSegments, LocalHome, LocalOptions,
    LogHome, NamedValues, NoRoom, Position, RoomRequest, SideSegments, conformance,
};
use logstead_types::LaneId;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

const LANE: LaneId = LaneId(0);
const DEVICE: &str = "/device";

fn small(threads: bool, way: IoMethod) -> LocalOptions {
    LocalOptions {
        segment_size_bytes: 64 * 1024,
        first_segment_size_bytes: 32 * 1024,
        segment_size_bytes_min: 32 * 1024,
        threads,
        way,
        ..LocalOptions::default()
    }
}

/// Makes a file of `size` zeros, as a device would be given.
fn preallocate(files: &dyn Files, path: &Path, size: u64) {
    let mode = OpenMode::buffered(Access::CreateNew);
    let file = files.open(path, mode).unwrap();
    file.fill_with_zeros(0, size, 1 << 20, &mut || {}).unwrap();
    file.sync().unwrap();
    files.sync_dir(path.parent().unwrap()).unwrap();
}

fn simulated(seed: u64, size: u64) -> (Env, Arc<SimFiles>) {
    let (env, files) = Env::simulated(seed);
    preallocate(files.as_ref(), Path::new(DEVICE), size);
    (env, files)
}

#[test]
fn a_device_conforms_on_simulated_files() {
    for threads in [false, true] {
        for way in [IoMethod::Auto, IoMethod::Threads, IoMethod::Portable] {
            let (env, _) = simulated(1, 16 << 20);
            let home = LocalHome::open(DEVICE, &env, small(threads, way)).unwrap();
            let home = LogHome::from(home);
            conformance::check(&home);
        }
    }
}

#[test]
fn a_preallocated_file_conforms_in_every_way() {
    for way in IoMethod::ALL {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device");
        preallocate(&RealFiles::default(), &path, 16 << 20);
        if !on_device(&path, way) {
            return;
        }
    }
}

/// Runs the suite on a real device. False: it cannot be done here.
fn on_device(path: &Path, way: IoMethod) -> bool {
    match LocalHome::open(path, &Env::real(), small(true, way)) {
        Ok(home) => {
            assert!(matches!(
                LocalHome::open(path, &Env::real(), small(true, way)),
                Err(HomeError::InUse(_))
            ));
            let home = LogHome::from(home);
            conformance::check(&home);
            true
        }
        Err(error) if error.to_string().contains("O_DIRECT") => {
            eprintln!("skipped: {error}");
            false
        }
        Err(_) if way == IoMethod::Uring && logstead_env::Ring::<()>::new(1, None).is_err() => true,
        Err(error) => panic!("{error}"),
    }
}

/// A loop device, given back at the end.
struct Loop(PathBuf);

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = std::process::Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
        assert!(detached.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_block_device_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("device");
    preallocate(&RealFiles::default(), &path, 16 << 20);
    let made = std::process::Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&path)
        .output();
    let device = match made {
        Ok(output) if output.status.success() => {
            Loop(String::from_utf8(output.stdout).unwrap().trim().into())
        }
        other => {
            eprintln!("skipped: no loop device can be made here: {other:?}");
            return;
        }
    };
    if on_device(&device.0, IoMethod::Auto) {
        // What was written is there, and is not formatted again.
        let home = LocalHome::open_read_only(&device.0, &Env::real()).unwrap();
        assert_eq!(home.list_lanes().unwrap(), [LANE]);
        assert!(home.get("thing").unwrap().is_some());
    }
}

#[test]
fn what_holds_something_else_is_refused_and_left_alone() {
    let (env, files) = simulated(1, 4 << 20);
    for at in [0, 5000, 100_000, 200_000] {
        let path = PathBuf::from(format!("/other-{at}"));
        preallocate(files.as_ref(), &path, 4 << 20);
        files.tamper(&path, |bytes| bytes[at] = 1).unwrap();
        let before = files.operations();
        let error = LocalHome::open(&path, &env, small(false, IoMethod::Pwrite)).err();
        let error = error.expect("refused").to_string();
        assert!(error.contains("holds something else"), "{error}");
        assert_eq!(files.operations(), before, "not touched");
    }
    let tiny = Path::new("/tiny");
    preallocate(files.as_ref(), tiny, 1000);
    let error = LocalHome::open(tiny, &env, small(false, IoMethod::Pwrite)).err();
    assert!(error.unwrap().to_string().contains("1 MiB"));
    let empty = LocalHome::open_read_only(DEVICE, &env).err();
    assert!(empty.unwrap().to_string().contains("holds no Logstead log"));
}

/// Either copy of the superblock and either copy of the table will do; both damaged ones are told of.
#[test]
fn one_damaged_copy_is_enough_to_live_with() {
    let (env, files) = simulated(1, 4 << 20);
    let path = Path::new(DEVICE);
    let options = || small(false, IoMethod::Pwrite);
    let home = LocalHome::open(path, &env, options()).unwrap();
    home.put_if_absent("first", b"1").unwrap();
    home.put_if_absent("second", b"2").unwrap();
    drop(home);
    let has = |files: SimFiles, name: &str| {
        let env = Env {
            files: Arc::new(files),
            ..env.clone()
        };
        let home = LocalHome::open(path, &env, options())?;
        home.get(name).map(|found| found.is_some())
    };
    let damaged = |places: &[usize]| {
        let copy = files.fork(1);
        copy.tamper(path, |bytes| places.iter().for_each(|&at| bytes[at] ^= 1))
            .unwrap();
        copy
    };
    let tables = [8192 + 8, 8192 + 65_536 + 8];
    assert!(has(damaged(&[]), "second").unwrap());
    assert!(has(damaged(&[20]), "second").unwrap());
    assert!(has(damaged(&[4096 + 20]), "second").unwrap());
    let error = has(damaged(&[20, 4096 + 20]), "second").unwrap_err();
    assert!(error.to_string().contains("holds something else"));
    for table in tables {
        assert!(has(damaged(&[table]), "first").unwrap());
    }
    let error = has(damaged(&tables), "first").unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[test]
fn a_full_device_refuses_room_and_uses_what_is_freed() {
    let (env, _) = simulated(1, 1 << 20);
    let home = LocalHome::open(DEVICE, &env, small(false, IoMethod::Pwrite)).unwrap();
    home.open_lane(LANE, 0).unwrap();
    let mut segments = 0;
    let mut fill = || {
        loop {
            match home.ensure_room(LANE, 32 * 1024, &mut RoomRequest::default()) {
                Ok(()) => segments = home.place(LANE, 32 * 1024).unwrap().segment,
                Err(NoRoom::DiskFull) => return segments,
                Err(other) => panic!("{other}"),
            }
        }
    };
    let first = fill();
    assert!(first >= 4, "{first}");
    for segment in 0..4 {
        home.trim(LANE, segment).unwrap();
    }
    let mut side = home.begin_side_segment(LANE, 1);
    side.append(vec![1; 100_000]);
    let (done, completions) = mpsc::channel();
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    completions.recv().unwrap().expect("there is space again");
}

/// What a run of [`script`] was told.
#[derive(Default)]
struct Told {
    appends: Vec<(LaneId, Position, u8)>,
    sides: Vec<u64>,
    removed_sides: Vec<u64>,
    trimmed: Vec<u64>,
    named: u8,
    named_in_doubt: u8,
}

/// Uses everything a home offers until an error.
fn script(home: &LocalHome, told: &mut Told) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    // The device's table takes several sectors, so that a write of it can be torn.
    for number in 0..6 {
        let name = format!("{number:0100}");
        home.put_if_absent(&name, b"").map_err(|e| text(&e))?;
    }
    told.named_in_doubt = 1;
    let mut tag = home
        .put_if_absent("name", &[1; 5000])
        .map_err(|e| text(&e))?;
    told.named = 1;
    let lanes = [LANE, LaneId(1)];
    for lane in lanes {
        home.open_lane(lane, 0).map_err(|e| text(&e))?;
    }
    for number in 1..=10u8 {
        for lane in lanes {
            loop {
                match home.ensure_room(lane, 8192, &mut RoomRequest::default()) {
                    Ok(()) => break,
                    // A thread is making the next segment.
                    Err(NoRoom::Busy) => std::thread::yield_now(),
                    Err(error) => return Err(text(&error)),
                }
            }
            let at = home.place(lane, 8192).map_err(|e| text(&e))?;
            let mut block = Buffer::zeroed(8192);
            block.as_mut_slice().fill(number);
            home.append_inline(lane, at, &block, 8192)
                .map_err(|e| text(&e))?;
            told.appends.push((lane, at, number));
        }
        if number == 7 {
            // The side segment below would fit where this one was, but that may come back.
            told.removed_sides.push(3);
            home.remove_side_segment(LANE, 3).map_err(|e| text(&e))?;
        }
        if number % 3 == 0 || number == 7 {
            let id = u64::from(number);
            let mut side = home.begin_side_segment(LANE, id);
            side.append(vec![number; 70_001]);
            let (done, completions) = mpsc::channel();
            side.finish(Box::new(move |result| done.send(result).unwrap()));
            completions.recv().unwrap().map_err(|e| text(&e))?;
            told.sides.push(id);
        }
        if number == 7 {
            told.trimmed.push(0);
            home.trim(LANE, 0).map_err(|e| text(&e))?;
        }
        if number % 2 == 0 {
            told.named_in_doubt = number;
            tag = home
                .compare_and_swap("name", tag, &[number; 5000])
                .map_err(|e| text(&e))?;
            told.named = number;
        }
    }
    Ok(())
}

fn check(home: &LocalHome, told: &Told, what: &str) {
    for &(lane, at, number) in &told.appends {
        if lane == LANE && told.trimmed.contains(&at.segment) {
            continue;
        }
        let mut into = Buffer::zeroed(8192);
        assert_eq!(home.read(lane, at, &mut into).unwrap(), 8192, "{what}");
        let whole = into.as_slice().iter().all(|&byte| byte == number);
        assert!(whole, "{what}: lane {lane} {at}");
    }
    let present = home.list_side_segments(LANE).unwrap();
    for &id in told
        .sides
        .iter()
        .filter(|id| !told.removed_sides.contains(id))
    {
        assert!(present.contains(&id), "{what}: side {id}");
    }
    for id in present {
        let mut bytes = vec![0; 80_000];
        let count = home.get_side_segment(LANE, id, 0, &mut bytes).unwrap();
        assert_eq!(count, 70_001, "{what}: side {id}");
        let whole = bytes[..count].iter().all(|&byte| u64::from(byte) == id);
        assert!(whole, "{what}: side {id}");
    }
    match home.get("name").unwrap() {
        None => assert_eq!(told.named, 0, "{what}"),
        Some((bytes, _)) => {
            assert!(
                [told.named, told.named_in_doubt].contains(&bytes[0]),
                "{what}: {} is neither {} nor {}",
                bytes[0],
                told.named,
                told.named_in_doubt
            );
            assert!(bytes == [bytes[0]; 5000], "{what}: the name is torn");
        }
    }
}

/// The machine crashes at every single I/O of a run, twice in a row, and loses of the writes that were not durable what
/// it likes. What was told to be durable is there.
#[test]
fn a_crash_at_any_io_loses_nothing_that_was_told() {
    let options = || small(false, IoMethod::Pwrite);
    let (env, files) = simulated(1, 2 << 20);
    let before = files.operations();
    let mut told = Told::default();
    let home = LocalHome::open(DEVICE, &env, options()).unwrap();
    script(&home, &mut told).unwrap();
    check(&home, &told, "no crash");
    let operations = files.operations() - before;
    assert!(operations > 60, "{operations}");
    drop(home);
    for loss in [CrashLoss::Random, CrashLoss::All] {
        for operation in 0..operations {
            let (env, files) = simulated(operation, 2 << 20);
            files.set_loss(loss);
            files.fail_at(files.operations() + operation, Fault::Crash);
            let mut told = Told::default();
            let what = format!("{loss:?}, crash at {operation}");
            if let Ok(home) = LocalHome::open(DEVICE, &env, options()) {
                script(&home, &mut told).expect_err("it crashes");
            }
            files.reboot();
            // The start after the crash crashes too, somewhere.
            files.fail_at(files.operations() + operation % 5, Fault::Crash);
            let _crashes_or_not = LocalHome::open(DEVICE, &env, options()).is_ok();
            files.reboot();
            let home = LocalHome::open(DEVICE, &env, options());
            let home = home.unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&home, &told, &what);
            // And it goes on from there without hurting what is there.
            let next = home
                .list_segments(LANE)
                .unwrap()
                .last()
                .map_or(0, |info| info.segment + 1);
            home.open_lane(LANE, next).unwrap();
            let at = home.place(LANE, 8192).unwrap();
            home.append_inline(LANE, at, &Buffer::zeroed(8192), 8192)
                .unwrap();
            check(&home, &told, &what);
        }
    }
}

/// A process that is killed leaves what it was told, on a device as real as a file is.
#[test]
fn a_killed_process_leaves_what_it_was_told() {
    const CHILD: &str = "LOGSTEAD_TEST_DEVICE";
    if let Some(path) = std::env::var_os(CHILD) {
        let home = LocalHome::open(path, &Env::real(), small(true, IoMethod::Auto)).unwrap();
        script(&home, &mut Told::default()).unwrap();
        // Without a goodbye: threads run, handles are open, the lock is held.
        std::process::abort();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("device");
    preallocate(&RealFiles::default(), &path, 8 << 20);
    let mode = OpenMode {
        direct: true,
        ..OpenMode::buffered(Access::Read)
    };
    if !RealFiles::default().open(&path, mode).unwrap().is_direct() {
        eprintln!("skipped: no direct I/O here");
        return;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "device::a_killed_process_leaves_what_it_was_told",
        ])
        .env(CHILD, &path)
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(
        status.signal(),
        Some(6),
        "it did all it had to do: {status}"
    );
    let mut told = Told::default();
    let (env, _) = simulated(1, 8 << 20);
    let twin = LocalHome::open(DEVICE, &env, small(false, IoMethod::Pwrite)).unwrap();
    script(&twin, &mut told).unwrap();
    let home = LocalHome::open(&path, &Env::real(), small(false, IoMethod::Pwrite)).unwrap();
    check(&home, &told, "after abort");
    assert_eq!(
        home.list_segments(LANE).unwrap().first().unwrap().segment,
        1
    );
}
