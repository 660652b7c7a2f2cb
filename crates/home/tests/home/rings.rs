//! Every ring of a local home holds the home's lock, as the kernel tells it: no write is on its way once the lock is
//! free.
//!
//! That a ring which holds a lock does so until its last write has landed is shown by `logstead-env`'s test `killed`.
//! It looks in a process of its own, where all rings are its homes': other tests of the program have some, too.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test reads what the kernel says of its own descriptors"
)]

use logstead_env::{Buffer, Env, Ring};
use logstead_home::{InlineAppends, IoMethod, LaneAppends, LocalHome, LocalOptions};
use logstead_types::LaneId;
use std::path::Path;
use std::sync::mpsc;

/// Says that this is that process.
const CHILD: &str = "LOGSTEAD_TEST_RINGS_CHILD";
const LANE: LaneId = LaneId(0);
const BLOCK: usize = 4096;

/// What the kernel says of each ring of this process.
fn rings() -> Vec<String> {
    let mut rings = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let number = entry.unwrap().file_name();
        let target = std::fs::read_link(Path::new("/proc/self/fd").join(&number));
        if target.is_ok_and(|target| target.to_string_lossy() == "anon_inode:[io_uring]") {
            let info = Path::new("/proc/self/fdinfo").join(&number);
            rings.push(std::fs::read_to_string(info).unwrap());
        }
    }
    rings
}

/// The ring has one file, of this name (some kernels give its path).
fn holds(ring: &str, name: &str) -> bool {
    let mut lines = ring
        .lines()
        .skip_while(|line| !line.starts_with("UserFiles:"));
    let files = lines.next().and_then(|line| line.split_whitespace().nth(1));
    let first = lines.next().and_then(|line| line.split_once(": "));
    files == Some("1") && first.is_some_and(|(_, file)| Path::new(file.trim()).ends_with(name))
}

fn check(at: &Path, name: &str) {
    let options = LocalOptions {
        segment_size_bytes: 1 << 20,
        first_segment_size_bytes: 1 << 20,
        segment_size_bytes_min: 64 << 10,
        way: IoMethod::Uring,
        ..LocalOptions::default()
    };
    let home = LocalHome::open(at, &Env::real(), options).unwrap();
    home.open_lane(LANE, 0).unwrap();
    let place = || home.place(LANE, BLOCK as u64).unwrap();
    // One by the home's ring, one by a ring for the caller's thread.
    let (done, told) = mpsc::channel();
    let block = Buffer::zeroed(BLOCK);
    let told_of = Box::new(move |_, result| done.send(result).unwrap());
    home.append(LANE, place(), block, BLOCK, told_of);
    told.recv().unwrap().unwrap();
    let block = Buffer::zeroed(BLOCK);
    home.append_inline(LANE, place(), &block, BLOCK).unwrap();
    // What a ring is busy with hides its files for a moment.
    let all = (0..1000).find_map(|_| {
        logstead_env::sleep(std::time::Duration::from_millis(1));
        let rings = rings();
        let all = rings.len() == 2 && rings.iter().all(|ring| holds(ring, name));
        all.then_some(())
    });
    assert!(all.is_some(), "{name}: {:#?}", rings());
}

#[test]
fn every_ring_of_a_home_holds_its_lock() {
    if std::env::var_os(CHILD).is_none() {
        let test = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rings::every_ring_of_a_home_holds_its_lock"])
            .args(["--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&test.stdout);
        assert!(test.status.success(), "{said}");
        assert!(said.contains("1 passed"), "{said}");
        return;
    }
    if let Err(error) = Ring::<()>::new(1, None) {
        eprintln!("skipped: this machine has no io_uring: {error}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    check(&dir.path().join("data"), "lock");
    // In a preallocated file, as on a device: the lock is its own.
    let device = dir.path().join("device");
    let file = std::fs::File::create(&device).unwrap();
    file.set_len(64 << 20).unwrap();
    drop(file);
    check(&device, "device");
}
