//! A process is killed while a write of its ring is on its way: its lock is free when that write has landed, not
//! before.
//!
//! The device is this test, through FUSE: it answers a write when it wants to. That takes the rights to mount; without
//! them the test is skipped.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test plays the device, and runs itself as a child that is killed"
)]

use logstead_env::{
    Access, Buffer, DIRECT_ALIGNMENT, FileLock, Files, OpenMode, RealFiles, Ring, RingWrite,
};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

const CHILD: &str = "LOGSTEAD_TEST_KILLED";
const FILE_BYTES: u64 = 1 << 20;

/// Requests of FUSE's protocol that are told apart here.
mod request {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const BATCH_FORGET: u32 = 42;
}

/// A file system with one file, `file`, whose writes wait for [`Slow::answer`].
struct Slow {
    mount: PathBuf,
    device: Arc<std::fs::File>,
    writes: mpsc::Receiver<(u64, u32)>,
}

impl Slow {
    fn mount(mount: &Path) -> Result<Slow, String> {
        let device = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        // The program that mounts has it by the same number.
        rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::empty())
            .map_err(|e| e.to_string())?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            device.as_raw_fd()
        );
        let output = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o", &options, "slow"])
            .arg(mount)
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::CLOEXEC)
            .map_err(|e| e.to_string())?;
        let (told, writes) = mpsc::channel();
        let device = Arc::new(device);
        let of_thread = Arc::clone(&device);
        std::thread::spawn(move || serve(&of_thread, &told));
        Ok(Slow {
            mount: mount.to_owned(),
            device,
            writes,
        })
    }

    /// Waits until a write is on its way: its number and length.
    fn write_in_flight(&self) -> (u64, u32) {
        self.writes.recv().expect("a write")
    }

    /// It has landed.
    fn answer(&self, (unique, len): (u64, u32)) {
        let mut body = len.to_ne_bytes().to_vec();
        body.extend([0; 4]);
        reply(&self.device, unique, Ok(&body));
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.mount).status();
    }
}

fn reply(mut device: &std::fs::File, unique: u64, result: Result<&[u8], i32>) {
    let body = result.unwrap_or_default();
    let mut bytes = u32::try_from(16 + body.len())
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    bytes.extend(result.err().map_or(0, |errno| -errno).to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend(body);
    // Refused for a request whose process has gone: nobody waits for it.
    let _gone = device.write(&bytes);
}

/// `struct fuse_attr` of the directory or the file.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, size) = match node {
        1 => (0o040_755_u32, 0),
        _ => (0o100_644, FILE_BYTES),
    };
    let mut bytes = Vec::new();
    for number in [node, size, size / 512, 0, 0, 0] {
        bytes.extend(number.to_ne_bytes());
    }
    for number in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes
}

fn serve(mut device: &std::fs::File, writes: &mpsc::Sender<(u64, u32)>) {
    const ENOENT: i32 = 2;
    const ENOSYS: i32 = 38;
    let mut bytes = vec![0; (1 << 20) + 4096];
    // An error: it is unmounted.
    while let Ok(count) = device.read(&mut bytes) {
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let (opcode, unique, node) = (number(4), long(8), long(16));
        match opcode {
            request::INIT => {
                // Version 7.31, direct writes by several at once (FUSE_ASYNC_DIO).
                let mut body = Vec::new();
                for number in [7, 31, 0, 1_u32 << 15] {
                    body.extend(number.to_ne_bytes());
                }
                body.extend(16_u16.to_ne_bytes());
                body.extend(16_u16.to_ne_bytes());
                body.extend((1_u32 << 20).to_ne_bytes());
                body.resize(64, 0);
                reply(device, unique, Ok(&body));
            }
            request::LOOKUP if bytes[40..count].starts_with(b"file\0") => {
                let mut body = 2_u64.to_ne_bytes().to_vec();
                body.resize(40, 0);
                body.extend(attributes(2));
                reply(device, unique, Ok(&body));
            }
            request::LOOKUP => reply(device, unique, Err(ENOENT)),
            request::GETATTR => {
                let mut body = vec![0; 16];
                body.extend(attributes(node));
                reply(device, unique, Ok(&body));
            }
            request::OPEN => reply(device, unique, Ok(&[0; 16])),
            request::WRITE => {
                // `struct fuse_write_in`: fh, offset, size.
                let _listening = writes.send((unique, number(40 + 16)));
            }
            request::FLUSH | request::RELEASE => reply(device, unique, Ok(&[])),
            request::FORGET | request::BATCH_FORGET | request::INTERRUPT => {}
            _ => reply(device, unique, Err(ENOSYS)),
        }
    }
}

/// How the child writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Through a ring that holds nothing: what the kernel does with it is what the others are measured by.
    BareRing,
    Ring,
    /// One of its threads by itself, as `pwrite`.
    Thread,
}

/// Takes the lock, starts a write that never ends, and waits for it.
fn be_killed(dir: &Path, way: Way) {
    let lock = RealFiles::default()
        .lock(&dir.join("lock"))
        .unwrap()
        .expect("free");
    let mode = OpenMode {
        access: Access::ReadWrite,
        direct: true,
        durable_writes: false,
    };
    let file = RealFiles::default()
        .open(&dir.join("slow/file"), mode)
        .unwrap();
    let buffer = Buffer::zeroed(DIRECT_ALIGNMENT);
    if way == Way::Thread {
        let _never = std::thread::spawn(move || file.write_at(0, buffer.as_slice())).join();
        unreachable!("nobody answers it");
    }
    let lock: Arc<dyn FileLock> = Arc::from(lock);
    let held = (way == Way::Ring).then_some(&lock);
    let mut ring = Ring::new(1, held).unwrap();
    let write = RingWrite {
        file: Arc::from(file),
        offset: 0,
        buffer,
        from: 0,
        len: DIRECT_ALIGNMENT,
    };
    assert!(ring.start(write, ()).is_ok());
    ring.wait(&mut Vec::new()).unwrap();
    unreachable!("nobody answers it");
}

/// Looks at a lock.
const LOOKS: usize = 100;

fn lock(dir: &Path) -> Option<Box<dyn FileLock>> {
    RealFiles::default().lock(&dir.join("lock")).unwrap()
}

/// A child is killed with a write in flight that lands later. Gives how often its lock was found held before that, of
/// so many looks.
fn held_by_a_write_of_a_killed_process(slow: &Slow, dir: &Path, way: Way) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD, format!("{way:?}:{}", dir.display()))
        .spawn()
        .unwrap();
    let write = slow.write_in_flight();
    assert!(lock(dir).is_none(), "the child has it");
    child.kill().unwrap();
    if way != Way::Thread {
        // The process is gone, whatever its ring does.
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    let mut held = 0;
    while held < LOOKS && lock(dir).is_none() {
        held += 1;
        logstead_env::sleep(Duration::from_millis(5));
    }
    slow.answer(write);
    while lock(dir).is_none() {
        logstead_env::sleep(Duration::from_millis(1));
    }
    child.wait().unwrap();
    held
}

const TEST: &str = "a_write_of_a_killed_process_keeps_its_lock";

#[test]
fn a_write_of_a_killed_process_keeps_its_lock() {
    if let Some(given) = std::env::var_os(CHILD) {
        let given = given.into_string().unwrap();
        let (way, dir) = given.split_once(':').unwrap();
        let ways = [Way::BareRing, Way::Ring, Way::Thread];
        let way = ways.into_iter().find(|known| format!("{known:?}") == way);
        return be_killed(Path::new(dir), way.unwrap());
    }
    if let Err(error) = Ring::<()>::new(1, None) {
        eprintln!("skipped: this machine has no io_uring: {error}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().join("slow");
    std::fs::create_dir(&mount).unwrap();
    let slow = match Slow::mount(&mount) {
        Ok(slow) => slow,
        Err(error) => {
            eprintln!("skipped: no slow file system can be mounted: {error}");
            return;
        }
    };
    let held = |way| held_by_a_write_of_a_killed_process(&slow, dir.path(), way);
    assert!(
        held(Way::BareRing) < LOOKS,
        "the kernel does not wait for a ring"
    );
    assert_eq!(held(Way::Ring), LOOKS, "until the write has landed");
    assert_eq!(held(Way::Thread), LOOKS, "until the write has landed");
}
