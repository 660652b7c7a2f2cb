//! The environment: clock, random numbers, files, threads and sockets.
//!
//! Owns the only calls by which Logstead reaches the machine. Everything above gets an [`Env`] from whoever starts it,
//! so the same code runs in the server (real environment) and in tests (simulated: one seed gives one history).
//!
//! Invariants: nothing here panics on what the machine answers; every answer of the kernel is passed on, checked.
//! Does not: know what the files mean, retry, or log.
#![deny(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate is the one place that may use what the rest of the workspace is banned from"
)]

mod abort_on_panic;
#[allow(
    unsafe_code,
    reason = "whoever allocates deals with memory that is nothing yet"
)]
mod allocator;
mod clock;
mod descriptor_channel;
mod files;
#[allow(
    unsafe_code,
    reason = "the kernel reads memory that the compiler does not see it read"
)]
mod io_uring;
mod job_queue;
mod local_socket;
mod memory;
mod net;
mod process;
mod program;
mod random;
pub mod simulated_threads;
mod thread;
#[allow(unsafe_code, reason = "the system's list of users is asked in C")]
mod users;
mod waits;

pub use abort_on_panic::{AbortOnPanic, abort_on_panic};
pub use allocator::{LargeMapped, release_free_memory};
pub use clock::{Clock, Instant, RealClock, SimClock};
pub use descriptor_channel::{DESCRIPTORS_MAX, DescriptorChannel, DescriptorListener};
pub use files::{
    Access, Buffer, CrashLoss, DIRECT_ALIGNMENT, DataDirMode, DataDirectory, DirectoryEntries,
    Fault, File, FileKind, FileLock, Files, OpenMode, RawFileRange, RealFiles, SimFiles,
    is_disk_full, owner_and_mode, user_id, write_all,
};
pub use io_uring::{Ring, RingCompletion, RingWaker, RingWrite};
pub use job_queue::JobQueue;
pub use local_socket::{
    LocalSocket, LocalSocketDescriptors, LockFileLines, SOCKET_PATH_BYTES_MAX, can_write_in,
};
pub use memory::memory_bytes;
pub use net::{
    connect, listen, peek, peer_user, prepare_accepted, prepare_local, raise_open_files_limit,
};
pub use process::{ProcessIdentity, Processes, RealProcesses, SimProcesses};
pub use program::Program;
pub use random::{Random, RealRandom, SimRandom};
pub use thread::{
    JoinHandle, core_count, cores_by_node, lower_priority, minimize_timer_slack, sleep, spawn,
    spawn_scoped,
};
pub use users::user_name;
pub use waits::{Condvar, LongMutex, LongRwLock, Receiver, Sender, WaitTimeoutResult, channel};

use std::sync::Arc;

/// Everything a room of the house needs from the machine. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers.
    pub random: Arc<dyn Random>,
    /// Files and directories.
    pub files: Arc<dyn Files>,
}

impl Env {
    /// The machine itself.
    pub fn real() -> Env {
        Env {
            clock: Arc::new(RealClock::new()),
            random: Arc::new(RealRandom::new()),
            files: Arc::new(RealFiles::default()),
        }
    }

    /// A simulated machine: a clock that moves when told, seeded random numbers, files in memory that can fail.
    /// The handle to the files is given as well, because tests steer the faults through it.
    pub fn simulated(seed: u64) -> (Env, Arc<SimFiles>) {
        let files = Arc::new(SimFiles::new(seed));
        let env = Env {
            clock: Arc::new(SimClock::new()),
            random: Arc::new(SimRandom::new(seed)),
            files: Arc::clone(&files) as Arc<dyn Files>,
        };
        (env, files)
    }

    /// A machine of a simulation of threads: its clock, seeded random numbers, these files.
    pub fn of_simulation(
        threads: &simulated_threads::SimThreads,
        seed: u64,
        files: Arc<dyn Files>,
    ) -> Env {
        Env {
            clock: threads.clock(),
            random: Arc::new(SimRandom::new(seed)),
            files,
        }
    }

    /// Starts a thread; see [`spawn`].
    pub fn spawn<F>(&self, name: &str, core: Option<usize>, body: F) -> std::io::Result<JoinHandle>
    where
        F: FnOnce() + Send + 'static,
    {
        spawn(name, core, body)
    }
}
