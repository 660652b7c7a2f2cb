//! Writes through the kernel's submission rings (io_uring).
//!
//! Owns: a ring, what the kernel has in flight on it, and the event that wakes whoever waits on it. A ring belongs to
//! one thread at a time.
//!
//! Invariants:
//! - The kernel reads a write's memory at any time from its submission to its completion. A write of [`Ring::start`]
//!   owns that memory and the file: both stay in `slots`, untouched, until its completion has been taken from the ring.
//!   A write of [`Ring::write_and_wait`] borrows them, and the call ends only when that is over, or when the kernel has
//!   never been told of the write.
//! - `slots[n]` is taken if and only if a submission with `user_data == n` is in the ring or in flight. The submission
//!   queue has at least one entry more than there are slots (for the event), so neither queue ever overflows.
//! - A ring that is dropped waits for what is in flight; if it cannot wait, the memory is never given back.
//! - A ring made with a lock holds it: nobody else gets the lock while a write of this ring may still reach the disk,
//!   also if the process is killed, or the ring has failed and nobody can wait for them: then the lock is not given
//!   back by hand.
//! - After an error of the ring itself (not of a write) nothing is submitted on it any more.
//!
//! **Writes of a process that is killed.** A process that ends waits for its threads, and so for every write that one
//! of them is in: the kernel lets no thread go from an O_DIRECT write of a local file system before the device has
//! answered. It does not wait for its rings. Their writes are on their way by themselves, and the kernel takes a ring
//! apart later, in a thread of its own (`io_ring_exit_work`). A lock of the process alone (flock) is free before that,
//! and a write may reach the disk when somebody else owns the place that it goes to.
//!
//! So the lock's open file is registered with the ring (IORING_REGISTER_FILES). The argument, in the kernel's terms:
//! 1. flock belongs to the open file, not to the process, and ends when the last reference to that goes
//!    (`locks_remove_file` in `__fput`). The ring's table of registered files is such a reference.
//! 2. That table is freed with the ring (`io_ring_ctx_free`), and that only after the last reference to the ring is
//!    gone.
//! 3. Each request holds such a reference from its submission until it has been completed; a write completes when the
//!    device has answered, with O_DSYNC when its flush has too.
//!
//! Hence whoever gets the lock finds no write of an earlier owner on its way. Not so on file systems whose direct
//! writes a signal interrupts (NFS): a log does not belong there.
//!
//! Does not: retry, go on after short writes, or make anything durable that the file's own flags do not.

use crate::files::{Buffer, File, FileLock};
use io_uring::{IoUring, Probe, opcode, types};
use rustix::event::{EventfdFlags, PollFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// `user_data` of the event.
const EVENT: u64 = u64::MAX;
/// `user_data` of a write whose memory is borrowed.
const BORROWED: u64 = u64::MAX - 1;
/// Pause between looks for a completion when the kernel refuses to wait for one.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// A write that owns what it needs.
pub struct RingWrite {
    /// The file.
    pub file: Arc<dyn File>,
    /// Byte offset in it.
    pub offset: u64,
    /// Holds the bytes.
    pub buffer: Buffer,
    /// Where in the buffer they begin.
    pub from: usize,
    /// How many.
    pub len: usize,
}

/// A write that is over.
pub struct RingCompletion<T> {
    /// As it was given.
    pub write: RingWrite,
    /// What was given with it.
    pub token: T,
    /// How many bytes were written: it may be short.
    pub result: io::Result<usize>,
}

/// Wakes the thread that waits on a ring. Clones wake the same one.
#[derive(Clone)]
pub struct RingWaker {
    event: Arc<OwnedFd>,
}

impl RingWaker {
    /// The present or the next [`Ring::wait`] returns soon.
    pub fn wake(&self) {
        // The only refusal is that the counter is full, and then it wakes already.
        let _already_awake = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }
}

/// A ring; see the module's documentation.
pub struct Ring<T> {
    ring: IoUring,
    slots: Vec<Option<(RingWrite, T)>>,
    free: Vec<usize>,
    event: Arc<OwnedFd>,
    /// The kernel has been asked to tell of the event.
    listening: bool,
    broken: bool,
    /// Not given back before this ring has ended.
    lock: Option<Arc<dyn FileLock>>,
}

impl<T> Ring<T> {
    /// A ring for `capacity` writes in flight, that holds `lock` until the last of them is over. Fails where the kernel
    /// has none or forbids it.
    pub fn new(capacity: usize, lock: Option<&Arc<dyn FileLock>>) -> io::Result<Ring<T>> {
        let entries = u32::try_from(capacity + 1).map_err(|_| io::ErrorKind::InvalidInput)?;
        let entries = entries.next_power_of_two();
        // Completions are run when the thread enters the kernel for them, not by interrupting it; older kernels cannot.
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .build(entries)
            .or_else(|_| IoUring::builder().build(entries))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !(probe.is_supported(opcode::Write::CODE) && probe.is_supported(opcode::PollAdd::CODE)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if let Some(locked) = lock.and_then(|lock| lock.descriptor()) {
            ring.submitter().register_files(&[locked.as_raw_fd()])?;
        }
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Ring {
            ring,
            slots: (0..capacity).map(|_| None).collect(),
            free: (0..capacity).rev().collect(),
            event: Arc::new(event),
            listening: false,
            broken: false,
            lock: lock.cloned(),
        })
    }

    /// What wakes a thread in [`Ring::wait`].
    pub fn waker(&self) -> RingWaker {
        RingWaker {
            event: Arc::clone(&self.event),
        }
    }

    /// True if another write can be started.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() && !self.broken
    }

    /// Writes in flight.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Starts a write; it reaches the kernel with the next [`Ring::wait`]. Given back if the ring is full, the bytes
    /// are not there, or the file is none of the kernel's.
    #[allow(clippy::result_large_err, reason = "it is what was given")]
    pub fn start(&mut self, write: RingWrite, token: T) -> Result<(), (RingWrite, T)> {
        let bytes = write.buffer.as_slice().get(write.from..);
        let bytes = bytes.and_then(|bytes| bytes.get(..write.len));
        let (Some(bytes), Some(place), Ok(len), true) = (
            bytes,
            write.file.raw(write.offset, write.len),
            u32::try_from(write.len),
            self.has_room(),
        ) else {
            return Err((write, token));
        };
        let Some(slot) = self.free.pop() else {
            return Err((write, token));
        };
        let descriptor = types::Fd(place.descriptor.as_raw_fd());
        let entry = opcode::Write::new(descriptor, bytes.as_ptr(), len)
            .offset(place.offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: the descriptor and the memory are those of `write`, which goes into the slot now and is neither
        // touched nor dropped before the completion with this slot's number has come (a buffer's bytes are on the heap
        // and do not move with it).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            self.free.push(slot);
            return Err((write, token));
        }
        self.slots[slot] = Some((write, token));
        Ok(())
    }

    /// Submits what was started, waits until a write is over or the waker has been used, and adds the writes that are
    /// over to `done`. An error is the ring's own: what is in flight stays so, and nothing more can be done with it.
    pub fn wait(&mut self, done: &mut Vec<RingCompletion<T>>) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("the ring has failed before"));
        }
        let result = self.listen().and_then(|()| self.wait_unbroken(done));
        self.broken = result.is_err();
        result
    }

    fn listen(&mut self) -> io::Result<()> {
        if !self.listening {
            let event = types::Fd(self.event.as_raw_fd());
            let entry = opcode::PollAdd::new(event, PollFlags::IN.bits().into())
                .build()
                .user_data(EVENT);
            // SAFETY: nothing but the descriptor is given to the kernel, and it lives as long as the ring.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.map_err(|_| io::Error::other("the ring has no entry left for its event"))?;
            self.listening = true;
        }
        Ok(())
    }

    fn wait_unbroken(&mut self, done: &mut Vec<RingCompletion<T>>) -> io::Result<()> {
        loop {
            let entered = self.ring.submit_and_wait(1);
            if self.take_completed(done)? {
                return Ok(());
            }
            match entered {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_passing(&error) => crate::sleep(LOOK_AGAIN),
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves what is over to `done`; true if there was something, also if it was only the event.
    fn take_completed(&mut self, done: &mut Vec<RingCompletion<T>>) -> io::Result<bool> {
        let mut any = false;
        for entry in self.ring.completion() {
            any = true;
            if entry.user_data() == EVENT {
                self.listening = false;
                let mut count = [0; 8];
                // Empty by now, if an earlier call of the waker was already heard of.
                let _drained = rustix::io::read(&*self.event, &mut count);
                result_of(entry.result())?;
                continue;
            }
            let slot = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
            let Some((write, token)) = self.slots.get_mut(slot).and_then(Option::take) else {
                return Err(io::Error::other(
                    "the kernel completed what it was not given",
                ));
            };
            self.free.push(slot);
            done.push(RingCompletion {
                write,
                token,
                result: result_of(entry.result()),
            });
        }
        Ok(any)
    }

    /// Writes bytes in the calling thread, which waits. Nothing else may be in flight on this ring. A file that is none
    /// of the kernel's is written the plain way.
    pub fn write_and_wait(
        &mut self,
        file: &dyn File,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let (Some(place), Ok(len)) = (file.raw(offset, bytes.len()), u32::try_from(bytes.len()))
        else {
            return file.write_at(offset, bytes);
        };
        if self.broken || self.in_flight() > 0 || self.listening {
            return Err(io::Error::other("the ring is in use"));
        }
        let descriptor = types::Fd(place.descriptor.as_raw_fd());
        let entry = opcode::Write::new(descriptor, bytes.as_ptr(), len)
            .offset(place.offset)
            .build()
            .user_data(BORROWED);
        // Unwinding from here on could give memory back that the kernel still reads.
        let _watch = crate::abort_on_panic("writing through a ring");
        // SAFETY: `bytes` and the descriptor outlive this call, which returns only after the completion of this very
        // submission, or marks the ring as broken before the kernel has seen it: a broken ring is never entered again.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::other("the ring is full"))?;
        loop {
            let entered = self.ring.submit_and_wait(1);
            if let Some(entry) = self.ring.completion().next() {
                return result_of(entry.result());
            }
            match entered {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !is_passing(&error) && !self.ring.submission().is_empty() => {
                    self.broken = true;
                    return Err(error);
                }
                // In flight: there is no way out but its completion.
                Err(_) => crate::sleep(LOOK_AGAIN),
            }
        }
    }
}

/// The kernel is short of something for a moment.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::BUSY, Errno::NOMEM]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}

fn result_of(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.in_flight() > 0 {
            if self.wait(&mut done).is_err() {
                // The kernel may still read it, and write it to a place that is ours as long as the lock is.
                if let Some(lock) = &self.lock {
                    lock.leave_to_kernel();
                }
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Access, DIRECT_ALIGNMENT, Files, OpenMode, RealFiles, SimFiles};

    fn ring(capacity: usize) -> Option<Ring<usize>> {
        match Ring::new(capacity, None) {
            Ok(ring) => Some(ring),
            Err(error) => {
                eprintln!("skipped: this machine has no io_uring: {error}");
                None
            }
        }
    }

    fn file(dir: &tempfile::TempDir) -> Arc<dyn File> {
        let mode = OpenMode {
            access: Access::CreateNew,
            direct: true,
            durable_writes: true,
        };
        Arc::from(
            RealFiles::default()
                .open(&dir.path().join("file"), mode)
                .unwrap(),
        )
    }

    fn write(file: &Arc<dyn File>, number: usize) -> RingWrite {
        let mut buffer = Buffer::zeroed(2 * DIRECT_ALIGNMENT);
        buffer.as_mut_slice()[DIRECT_ALIGNMENT..].fill(number as u8 + 1);
        RingWrite {
            file: Arc::clone(file),
            offset: (number * DIRECT_ALIGNMENT) as u64,
            buffer,
            from: DIRECT_ALIGNMENT,
            len: DIRECT_ALIGNMENT,
        }
    }

    #[test]
    fn many_writes_at_once_reach_the_file() {
        let Some(mut ring) = ring(8) else { return };
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        let (mut started, mut done) = (0, Vec::new());
        while done.len() < 40 {
            while started < 40 && ring.has_room() {
                assert!(ring.start(write(&file, started), started).is_ok());
                started += 1;
            }
            assert!(ring.in_flight() <= 8);
            ring.wait(&mut done).unwrap();
        }
        let mut seen = [false; 40];
        for over in done {
            assert_eq!(over.result.unwrap(), DIRECT_ALIGNMENT);
            let offset = (over.token * DIRECT_ALIGNMENT) as u64;
            assert_eq!(over.write.offset, offset, "the token is the write's own");
            assert!(!std::mem::replace(&mut seen[over.token], true), "once each");
        }
        let bytes = RealFiles::default().read(&dir.path().join("file")).unwrap();
        let expected = (0..40u8).flat_map(|number| vec![number + 1; DIRECT_ALIGNMENT]);
        assert!(bytes.into_iter().eq(expected));
    }

    #[test]
    fn a_full_ring_gives_the_write_back() {
        let Some(mut ring) = ring(1) else { return };
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        assert!(ring.start(write(&file, 0), 0).is_ok());
        let Err((given_back, 1)) = ring.start(write(&file, 1), 1) else {
            panic!("there is room for one");
        };
        assert_eq!(given_back.offset, DIRECT_ALIGNMENT as u64);
        // Dropped with a write in flight: it waits for it.
        drop(ring);
        assert_eq!(file.len().unwrap(), DIRECT_ALIGNMENT as u64);
    }

    #[test]
    fn errors_come_with_the_write() {
        let Some(mut ring) = ring(2) else { return };
        let dir = tempfile::tempdir().unwrap();
        drop(file(&dir));
        let mode = OpenMode::buffered(Access::Read);
        let read_only: Arc<dyn File> = Arc::from(
            RealFiles::default()
                .open(&dir.path().join("file"), mode)
                .unwrap(),
        );
        assert!(ring.start(write(&read_only, 0), 7).is_ok());
        let mut done = Vec::new();
        ring.wait(&mut done).unwrap();
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].token, 7);
        assert!(done[0].result.is_err(), "the descriptor is for reading");
    }

    #[test]
    fn the_waker_ends_a_wait_and_more_of_them_too() {
        let Some(mut ring) = ring(2) else { return };
        for round in 0..3 {
            ring.waker().wake();
            ring.waker().wake();
            let mut done = Vec::new();
            ring.wait(&mut done).unwrap();
            assert!(done.is_empty(), "round {round}");
        }
        let waker = ring.waker();
        let other = crate::spawn("waker", None, move || waker.wake()).unwrap();
        ring.wait(&mut Vec::new()).unwrap();
        other.join().unwrap();
    }

    #[test]
    fn a_borrowed_write_is_there_when_the_call_ends() {
        let Some(mut ring) = ring(1) else { return };
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        for number in 0..10 {
            let RingWrite { offset, buffer, .. } = write(&file, number);
            let bytes = &buffer.as_slice()[DIRECT_ALIGNMENT..];
            let count = ring.write_and_wait(file.as_ref(), offset, bytes).unwrap();
            assert_eq!(count, DIRECT_ALIGNMENT);
        }
        let bytes = RealFiles::default().read(&dir.path().join("file")).unwrap();
        assert_eq!(bytes.len(), 10 * DIRECT_ALIGNMENT);
        assert_eq!(bytes[9 * DIRECT_ALIGNMENT], 10);
    }

    /// A lock whose owner dies: nobody gives it back, and its descriptor closes.
    struct Dying(std::fs::File);

    impl FileLock for Dying {
        fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            Some(std::os::fd::AsFd::as_fd(&self.0))
        }
    }

    /// With a write in flight: `tests/killed.rs`.
    #[test]
    fn a_ring_holds_its_lock_when_the_owner_s_descriptor_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let owner = std::fs::File::create(&path).unwrap();
        owner.try_lock().unwrap();
        let owner: Arc<dyn FileLock> = Arc::new(Dying(owner));
        let Ok(mut ring) = Ring::<()>::new(1, Some(&owner)) else {
            eprintln!("skipped: this machine has no io_uring");
            return;
        };
        // Dead processes run nothing: only the kernel's table holds it.
        ring.lock = None;
        drop(owner);
        assert!(
            RealFiles::default().lock(&path).unwrap().is_none(),
            "the ring has it"
        );
        drop(ring);
        // The kernel takes rings apart in its own time.
        while RealFiles::default().lock(&path).unwrap().is_none() {
            crate::sleep(Duration::from_millis(1));
        }
    }

    /// The write is on its way for ever, as far as the ring can tell: whoever holds what is locked decides when the
    /// lock is free, as the kernel does for a write.
    #[test]
    fn a_ring_that_fails_with_a_write_in_flight_gives_no_lock_back_by_hand() {
        for fails in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("lock");
            let lock = RealFiles::default().lock(&path).unwrap().unwrap();
            let lock: Arc<dyn FileLock> = Arc::from(lock);
            let held = lock.descriptor().unwrap().try_clone_to_owned().unwrap();
            let Ok(mut ring) = Ring::<usize>::new(1, Some(&lock)) else {
                eprintln!("skipped: this machine has no io_uring");
                return;
            };
            assert!(ring.start(write(&file(&dir), 0), 0).is_ok());
            ring.broken = fails;
            drop(lock);
            drop(ring);
            let is_free = || RealFiles::default().lock(&path).unwrap().is_some();
            assert_eq!(is_free(), !fails, "what is locked is held elsewhere");
            drop(held);
            // The kernel takes rings apart in its own time.
            while !is_free() {
                crate::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn a_simulated_file_is_none_of_the_kernels() {
        let Some(mut ring) = ring(1) else { return };
        let mode = OpenMode::buffered(Access::CreateNew);
        let file: Arc<dyn File> = Arc::from(SimFiles::new(1).open("/file".as_ref(), mode).unwrap());
        assert!(ring.start(write(&file, 0), 0).is_err());
        assert_eq!(ring.in_flight(), 0);
        assert_eq!(
            ring.write_and_wait(file.as_ref(), 0, b"bytes").unwrap(),
            5,
            "written the plain way"
        );
    }
}
