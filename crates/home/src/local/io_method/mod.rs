//! Ways of bringing an append to the disk.
//!
//! | way | in the caller's thread | handed off |
//! |---|---|---|
//! | `pwrite` | `pwrite` on an O_DIRECT, O_DSYNC file | the same, by one thread per lane |
//! | `threads` | the same | the same, by a pool of threads that the lanes share |
//! | `uring` | a write through a ring of its own | through one ring and its thread; no thread waits for a single write |
//! | `portable` | `write` through the page cache and `fdatasync` | the same, by one thread per lane |
//!
//! Invariants:
//! - A write is told to be done only after every one of its bytes is on stable storage: the file's own flags see to
//!   that, or a sync after it. Short writes are completed, interrupted ones go on, and after any other error nothing is
//!   tried again, and nothing more is written to that lane.
//! - Where a sync is needed (no O_DIRECT, or no O_DSYNC), a lane's writes are done one at a time: the kernel tells a
//!   failed write-back to one of those who sync, and the others would take their bytes for durable.
//! - What is handed off keeps the home, and with it the kernel's lock, until it is done. If the process is killed, the
//!   kernel's lock outlives every write: threads end before it, and rings hold it themselves ([`logstead_env::Ring`]).
//!   Bytes in the page cache are no write on its way: the kernel shows them to whoever reads, and brings them to the
//!   disk before a direct read or write of their place.
//!
//! Does not: choose between the ways (`measure` does), or know segments.

mod measure;
mod uring;

pub(super) use measure::{IoMethodChoice, choose};

use crate::{Buffer, Completion, HomeError, Position};
use logstead_env::{Env, File, FileLock, JobQueue, OpenMode, Ring, write_all};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use uring::RingWriter;

/// How a local home writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoMethod {
    /// Whichever measures best when the home is opened.
    #[default]
    Auto,
    /// Each writer writes by itself and waits.
    Pwrite,
    /// Handed-off writes are done by a pool of threads.
    Threads,
    /// The kernel's submission rings.
    Uring,
    /// Through the page cache, with a sync after each write: for file systems that can nothing better.
    Portable,
}

impl IoMethod {
    /// Every way there is to choose from.
    pub const ALL: [IoMethod; 5] = [
        IoMethod::Auto,
        IoMethod::Pwrite,
        IoMethod::Threads,
        IoMethod::Uring,
        IoMethod::Portable,
    ];

    /// Its name in settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            IoMethod::Auto => "auto",
            IoMethod::Pwrite => "pwrite",
            IoMethod::Threads => "threads",
            IoMethod::Uring => "uring",
            IoMethod::Portable => "portable",
        }
    }

    /// How the files that it writes are opened.
    pub(super) fn open_mode(self, access: logstead_env::Access) -> OpenMode {
        let past_the_cache = self != IoMethod::Portable;
        OpenMode {
            access,
            direct: past_the_cache,
            durable_writes: past_the_cache,
        }
    }

    /// Appends of one lane that are worth having in flight together.
    pub(super) fn appends_in_flight_max(self) -> usize {
        match self {
            // One by the caller or the lane's thread, one waiting behind it.
            IoMethod::Pwrite | IoMethod::Portable | IoMethod::Auto => 2,
            IoMethod::Threads | IoMethod::Uring => 8,
        }
    }
}

impl fmt::Display for IoMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IoMethod {
    type Err = String;

    fn from_str(name: &str) -> Result<IoMethod, String> {
        let found = IoMethod::ALL.into_iter().find(|way| way.name() == name);
        found.ok_or_else(|| {
            format!(
                "\"{name}\" is no way of writing: auto, pwrite, threads, uring and portable are"
            )
        })
    }
}

/// Threads of the pool: two lanes' worth. They wait for the device most of the time, which merges what is flushed
/// together.
const POOL_THREADS: usize = 16;
/// Writes in flight on the home's ring.
const RING_WRITES: usize = 64;
/// Rings kept for writes in the caller's thread.
const INLINE_RINGS_MAX: usize = 64;

/// What the writes of one lane have in common.
pub(super) struct LaneWriteOrder {
    lane: LaneId,
    /// Held over a write and its sync, where writes need one.
    one_at_a_time: Mutex<()>,
    failed: OnceLock<HomeError>,
}

impl LaneWriteOrder {
    pub(super) fn new(lane: LaneId) -> LaneWriteOrder {
        LaneWriteOrder {
            lane,
            one_at_a_time: Mutex::new(()),
            failed: OnceLock::new(),
        }
    }

    fn check(&self) -> Result<(), HomeError> {
        match self.failed.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Makes a home's error of the machine's, and keeps it.
    fn record(&self, at: Position, result: io::Result<()>) -> Result<(), HomeError> {
        result.map_err(|error| {
            let what = format!("append to lane {} {at}", self.lane);
            let error = HomeError::io(what, error);
            // The first one counts.
            let _later = self.failed.set(error.clone());
            error
        })
    }
}

/// True if a write to `file` is durable, or says that it is not, whatever other writes do.
fn stands_alone(file: &dyn File) -> bool {
    file.is_direct() && file.writes_are_durable()
}

/// Bytes and their place.
#[derive(Clone, Copy)]
pub(super) struct Piece<'b> {
    pub(super) at: Position,
    pub(super) bytes: &'b [u8],
}

/// Writes in the calling thread with `write`, which must write all of it.
fn write_here(
    order: &LaneWriteOrder,
    file: &dyn File,
    piece: Piece<'_>,
    write: impl FnOnce(&dyn File, u64, &[u8]) -> io::Result<()>,
) -> Result<(), HomeError> {
    let Piece { at, bytes } = piece;
    order.check()?;
    if stands_alone(file) {
        return order.record(at, write(file, at.offset, bytes));
    }
    let _alone = order.one_at_a_time.lock();
    // Again: the one before may have failed meanwhile.
    order.check()?;
    let result = write(file, at.offset, bytes).and_then(|()| {
        if file.writes_are_durable() {
            Ok(())
        } else {
            file.sync_data()
        }
    });
    order.record(at, result)
}

fn plainly(file: &dyn File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(offset, bytes)
}

/// An append on its way.
pub(super) struct AppendWrite {
    pub(super) order: Arc<LaneWriteOrder>,
    pub(super) file: Arc<dyn File>,
    pub(super) at: Position,
    pub(super) block: Buffer,
    pub(super) len: usize,
    pub(super) done: Completion,
    /// What must stay until it is done.
    pub(super) keep: Arc<dyn Send + Sync>,
}

impl AppendWrite {
    /// Writes in the calling thread.
    pub(super) fn run(self) {
        let piece = Piece {
            at: self.at,
            bytes: &self.block.as_slice()[..self.len],
        };
        let result = write_here(&self.order, self.file.as_ref(), piece, plainly);
        (self.done)(self.block, result);
    }
}

enum HandOff {
    /// Done at once, by the caller.
    Caller,
    /// To the lane's own thread.
    OfLane,
    Pool(JobQueue<AppendWrite>),
    Ring(RingWriter),
}

/// A way in use.
pub(super) struct IoMethodRunner {
    way: IoMethod,
    hand_off: HandOff,
    /// Rings for writes in the caller's thread, while nobody uses them.
    inline_rings: Option<Mutex<Vec<Ring<()>>>>,
    /// The home's, which every ring holds as well.
    lock: Option<Arc<dyn FileLock>>,
}

impl IoMethodRunner {
    /// Makes ready what `way` needs, in a home with this lock. Without threads everything is done in the caller, by
    /// plain writes.
    pub(super) fn new(
        way: IoMethod,
        env: &Env,
        threads: bool,
        lock: Option<Arc<dyn FileLock>>,
    ) -> io::Result<IoMethodRunner> {
        let hand_off = match way {
            _ if !threads => HandOff::Caller,
            IoMethod::Auto | IoMethod::Pwrite | IoMethod::Portable => HandOff::OfLane,
            IoMethod::Threads => HandOff::Pool(JobQueue::start_pool(
                env,
                "log-write",
                POOL_THREADS,
                AppendWrite::run,
            )?),
            IoMethod::Uring => HandOff::Ring(RingWriter::start(env, RING_WRITES, lock.as_ref())?),
        };
        let inline_rings = matches!(hand_off, HandOff::Ring(_)).then(Mutex::default);
        Ok(IoMethodRunner {
            way,
            hand_off,
            inline_rings,
            lock,
        })
    }

    /// The way.
    pub(super) fn way(&self) -> IoMethod {
        self.way
    }

    /// The thread that a lane needs for its own.
    pub(super) fn lane_writer(
        &self,
        env: &Env,
        name: &str,
    ) -> io::Result<Option<JobQueue<AppendWrite>>> {
        match self.hand_off {
            HandOff::OfLane => JobQueue::start(env, name, AppendWrite::run).map(Some),
            HandOff::Caller | HandOff::Pool(_) | HandOff::Ring(_) => Ok(None),
        }
    }

    /// Hands a write off; `of_lane` is what [`IoMethodRunner::lane_writer`] gave.
    pub(super) fn hand_off(&self, of_lane: Option<&JobQueue<AppendWrite>>, write: AppendWrite) {
        match (&self.hand_off, of_lane) {
            (HandOff::Pool(pool), _) => pool.push(write),
            (HandOff::Ring(ring), _) if stands_alone(write.file.as_ref()) => ring.push(write),
            (_, Some(queue)) => queue.push(write),
            (_, None) => write.run(),
        }
    }

    /// Writes in the caller's thread, which waits.
    pub(super) fn write_inline(
        &self,
        order: &LaneWriteOrder,
        file: &dyn File,
        piece: Piece<'_>,
    ) -> Result<(), HomeError> {
        match &self.inline_rings {
            Some(rings) if stands_alone(file) => {
                let lock = self.lock.as_ref();
                let write = |file: &dyn File, offset, bytes: &[u8]| {
                    through_ring(rings, lock, file, offset, bytes)
                };
                write_here(order, file, piece, write)
            }
            _ => write_here(order, file, piece, plainly),
        }
    }
}

fn through_ring(
    rings: &Mutex<Vec<Ring<()>>>,
    lock: Option<&Arc<dyn FileLock>>,
    file: &dyn File,
    offset: u64,
    bytes: &[u8],
) -> io::Result<()> {
    let kept = rings.lock().pop();
    // Out of descriptors, or of memory that may be locked: the plain write is as durable.
    let Ok(mut ring) = kept.map_or_else(|| Ring::new(1, lock), Ok) else {
        return plainly(file, offset, bytes);
    };
    let result = write_all(file.is_direct(), offset, bytes, &mut |offset, bytes| {
        ring.write_and_wait(file, offset, bytes)
    });
    if ring.has_room() {
        let mut rings = rings.lock();
        if rings.len() < INLINE_RINGS_MAX {
            rings.push(ring);
        }
    }
    result
}
