//! The simulated file system keeps the promises of a real one, and breaks the ones a real one breaks.

use logstead_env::{
    Access, CrashLoss, Env, Fault, File, Files, OpenMode, RealFiles, SimFiles, is_disk_full,
};
use std::path::Path;

fn write(files: &dyn Files, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = files
        .open(Path::new(path), OpenMode::buffered(Access::CreateNew))
        .unwrap();
    file.write_all_at(0, bytes).unwrap();
    file
}

/// What both file systems must do alike.
fn behaves(files: &dyn Files, dir: &Path) {
    let path = dir.join("a");
    files.create_dir(dir).unwrap();
    let file = files
        .open(&path, OpenMode::buffered(Access::CreateNew))
        .unwrap();
    assert!(
        files
            .open(&path, OpenMode::buffered(Access::CreateNew))
            .is_err(),
        "it exists"
    );
    file.write_all_at(3, b"xyz").unwrap();
    file.sync().unwrap();
    assert_eq!(files.read(&path).unwrap(), b"\0\0\0xyz");
    file.set_len(4).unwrap();
    assert_eq!(file.len().unwrap(), 4);
    files.rename(&path, &dir.join("b")).unwrap();
    files.sync_dir(dir).unwrap();
    assert_eq!(files.list(dir).unwrap(), ["b"]);
    let lock = files.lock(&dir.join("lock")).unwrap();
    assert!(lock.is_some());
    assert!(files.lock(&dir.join("lock")).unwrap().is_none(), "held");
    drop(lock);
    assert!(files.lock(&dir.join("lock")).unwrap().is_some());
    files.remove(&dir.join("b")).unwrap();
    let gone = files.open(&dir.join("b"), OpenMode::buffered(Access::Read));
    assert_eq!(gone.err().unwrap().kind(), std::io::ErrorKind::NotFound);
    assert!(files.free_space(dir).unwrap() > 0);
}

#[test]
fn real_and_simulated_files_behave_alike() {
    let dir = tempfile::tempdir().unwrap();
    behaves(&RealFiles::default(), &dir.path().join("x/y"));
    behaves(&SimFiles::new(1), Path::new("/x/y"));
}

#[test]
fn direct_durable_files_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("direct");
    let mode = OpenMode {
        access: Access::CreateNew,
        direct: true,
        durable_writes: true,
    };
    let file = RealFiles::default().open(&path, mode).unwrap();
    file.fill_with_zeros(0, 64 * 1024, 16 * 1024, &mut || {})
        .unwrap();
    let mut buffer = logstead_env::Buffer::zeroed(8192);
    buffer.as_mut_slice().fill(7);
    file.write_all_at(4096, buffer.as_slice()).unwrap();
    let mut back = logstead_env::Buffer::zeroed(16 * 1024);
    assert_eq!(
        file.read_full_at(0, back.as_mut_slice()).unwrap(),
        16 * 1024
    );
    assert_eq!(back.as_slice()[4095], 0);
    assert!(back.as_slice()[4096..12288].iter().all(|&byte| byte == 7));
    assert_eq!(file.len().unwrap(), 64 * 1024);
}

#[test]
fn a_power_cut_loses_what_was_not_synced() {
    let files = SimFiles::new(1);
    files.set_loss(CrashLoss::All);
    let dir = Path::new("/d");
    files.create_dir(dir).unwrap();
    let kept = write(&files, "/d/kept", b"old");
    kept.sync().unwrap();
    files.sync_dir(dir).unwrap();
    kept.write_all_at(0, b"new").unwrap();
    write(&files, "/d/unsynced-name", b"x").sync().unwrap();
    files.reboot();
    assert_eq!(files.list(dir).unwrap(), ["kept"]);
    assert_eq!(files.read(Path::new("/d/kept")).unwrap(), b"old");
    assert!(kept.len().is_err(), "files of the life before are closed");
}

#[test]
fn a_crash_tears_a_write_by_sectors() {
    let mut torn = 0;
    for seed in 0..20 {
        let files = SimFiles::new(seed);
        files.create_dir(Path::new("/d")).unwrap();
        let file = write(&files, "/d/f", &[0; 4096]);
        file.sync().unwrap();
        files.sync_dir(Path::new("/d")).unwrap();
        files.fail_at(files.operations(), Fault::Crash);
        assert!(file.write_at(0, &[1; 4096]).is_err());
        assert!(
            files.read(Path::new("/d/f")).is_err(),
            "nothing works until the reboot"
        );
        files.reboot();
        let bytes = files.read(Path::new("/d/f")).unwrap();
        for sector in bytes.chunks(512) {
            assert!(
                sector.iter().all(|byte| byte == &sector[0]),
                "sectors are whole"
            );
        }
        torn += usize::from(bytes.contains(&0) && bytes.contains(&1));
    }
    assert!(torn > 10, "most seeds tear it");
}

#[test]
fn full_disks_short_writes_and_failed_syncs() {
    let files = SimFiles::new(1);
    files.create_dir(Path::new("/d")).unwrap();
    files.set_capacity(Some(100));
    let file = write(&files, "/d/f", &[1; 80]);
    let error = file.write_all_at(80, &[1; 40]).unwrap_err();
    assert!(is_disk_full(&error));
    files.set_capacity(None);
    files.fail_at(files.operations(), Fault::Short);
    file.write_all_at(80, &[1; 40]).unwrap();
    assert_eq!(
        file.len().unwrap(),
        120,
        "write_all goes on after a short write"
    );
    files.fail_syncs();
    assert!(file.sync().is_err());
    files.set_loss(CrashLoss::Nothing);
    files.reboot();
    assert!(
        files
            .list(Path::new("/d"))
            .unwrap()
            .contains(&"f".to_owned())
    );
    assert!(
        files.read(Path::new("/d/f")).unwrap().is_empty(),
        "a failed sync has dropped the bytes for good"
    );
}

#[test]
fn one_seed_gives_one_history() {
    let numbers = |seed| {
        let (env, _) = Env::simulated(seed);
        (0..4).map(|_| env.random.u64()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(7), numbers(7));
    assert_ne!(numbers(7), numbers(8));
}

#[test]
fn listeners_accept_and_threads_run_pinned() {
    let listener = logstead_env::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = logstead_env::spawn("pinned", Some(1_000), move || tell.send(7).unwrap()).unwrap();
    assert_eq!(told.recv().unwrap(), 7);
    thread.join().unwrap();
    logstead_env::connect(address, std::time::Duration::from_secs(5)).unwrap();
    listener.set_nonblocking(false).unwrap();
    listener.accept().unwrap();
}
