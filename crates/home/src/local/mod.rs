//! The log in local files.
//!
//! ```text
//! DIR/lock                          held with flock by the one server that writes here
//! DIR/manifest                      replaced by rename, then the directory is synced
//! DIR/log/lane-0000/000000000000.seg   segments, filled with zeros ahead of time
//! DIR/log/lane-0000/000000000000.free  segments that nobody needs, to become others
//! DIR/log/lane-0000/side-….rec         records of large transactions
//! DIR/objects/000000070000002a      immutable objects, of checkpoints
//! ```
//!
//! DIR may also be a block device or a preallocated file, with the same files inside it (`device`).
//!
//! Invariants:
//! - A `.seg` file is entirely written (zeros, or what it held before it was recycled) and durable, with its name,
//!   before its first append: an append then changes no metadata, so one O_DSYNC write costs one device flush and no
//!   journal commit, and never finds the disk full. Unwritten extents (fallocate alone) would cost a journal commit per
//!   append.
//! - Files under preparation end in `.new` and are removed when the home is opened.
//! - An append that fails is never tried again; nothing is known about its bytes.
//!
//! Does not: know what the bytes mean, or decide which segments are still needed.

mod device;
mod home;
mod io_method;
mod lane;
mod lock;
mod object_reader;
mod objects;
mod paths;
mod reserve;
mod segments;
mod side;
mod volume;

pub use io_method::IoMethod;
pub use object_reader::LocalObjects;
pub use volume::{LocalVolume, NAMED_VALUE_BYTES_MAX};

use crate::{HomeError, Tag};
use device::DeviceFiles;
use io_method::IoMethodRunner;
use lane::LaneFiles;
use logstead_env::{
    Access, DataDirMode, DirectoryEntries, Env, File, FileKind, FileLock, JobQueue, OpenMode,
};
use logstead_types::LaneId;
use parking_lot::{Mutex, RwLock};
use paths::Paths;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracing::warn;

/// Alignment of O_DIRECT.
const ALIGNMENT: usize = logstead_env::DIRECT_ALIGNMENT;
/// How much larger than the one before it a segment may be: a server that writes little prepares little.
const GROWTH: u64 = 4;

/// One short O_DSYNC write to an NVMe device, if nothing was measured.
const APPEND_LATENCY_EXPECTED_US: u32 = 50;

/// Sizes and ways of a local home.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// Largest size of a segment. Each one is at most four times the one before.
    pub segment_size_bytes: u64,
    /// Size of the first segment of a lane after a start: small, so that a start is quick.
    pub first_segment_size_bytes: u64,
    /// Smallest segment worth making when the disk is nearly full.
    pub segment_size_bytes_min: u64,
    /// The most that is kept of the disk for what frees room; at most an eighth of the disk. See `reserve`.
    pub reserve_bytes_max: u64,
    /// Background threads write and prepare. Without them (tests that count every I/O) everything happens in the
    /// caller.
    pub threads: bool,
    /// How to write.
    pub way: IoMethod,
    /// Who may read a directory that is made now; of one that is there, its mode says it.
    pub readers: DataDirMode,
}

impl Default for LocalOptions {
    fn default() -> LocalOptions {
        LocalOptions {
            segment_size_bytes: 64 << 20,
            first_segment_size_bytes: 8 << 20,
            segment_size_bytes_min: 4 << 20,
            reserve_bytes_max: 48 << 20,
            threads: true,
            way: IoMethod::Auto,
            readers: DataDirMode::Owner,
        }
    }
}

/// The log in local files; see the module's documentation.
///
/// The fields are dropped in this order: first everything that writes ends, then the kernel's lock is given back.
pub struct LocalHome {
    preparer: Option<JobQueue<Prepare>>,
    sides: Option<Arc<JobQueue<side::SideJob>>>,
    lanes: RwLock<BTreeMap<LaneId, Arc<LaneFiles>>>,
    ways: IoMethodRunner,
    choice: io_method::IoMethodChoice,
    shared: Arc<LocalShared>,
}

/// What the home's threads need too. The kernel's lock lives here, so that it is held until the last write has ended.
struct LocalShared {
    env: Env,
    paths: Paths,
    options: LocalOptions,
    read_only: bool,
    /// Objects may be stored all the same.
    stores_objects: bool,
    /// None where a server holds it beside which this one reads.
    lock: Option<Arc<dyn FileLock>>,
    /// How the files of segments are opened for appending.
    append_mode: OpenMode,
    /// Numbers the attempts to make segments.
    attempts: lane::SegmentAttempts,
    /// Held while a segment is made. Taken before `spares`.
    making: Mutex<()>,
    /// Held while spares are looked for, made or removed.
    spares: Mutex<()>,
    /// The file read last, by lane: a scan reads one segment after the other.
    readers: Mutex<BTreeMap<LaneId, Reader>>,
    objects: objects::Objects,
    /// Counts attempts to store a side segment, for temporary names.
    side_attempts: AtomicU64,
    reserve: reserve::Reserve,
}

/// A segment's number and file.
type Reader = (u64, Arc<dyn File>);

struct Prepare {
    lane: Arc<LaneFiles>,
    segment: u64,
    size_bytes: u64,
}

/// What is done about the kernel's lock on a home.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locking {
    /// Nobody else may have it.
    Alone,
    /// It is taken to read, unless a server has it.
    Beside,
    /// It is left to others.
    Without,
}

impl LocalHome {
    /// Opens (or makes) the home in `dir` for writing.
    pub fn open(
        dir: impl Into<PathBuf>,
        env: &Env,
        options: LocalOptions,
    ) -> Result<LocalHome, HomeError> {
        let paths = Paths::new(dir.into());
        let env = &within(env, paths.dir(), Some(options.readers))?;
        for dir in [paths.log(), paths.objects()] {
            let made = env.files.create_dir(&dir);
            made.map_err(|e| HomeError::io(format!("make directory {}", dir.display()), e))?;
        }
        LocalHome::lock(paths, env, options, false, Locking::Alone)
    }

    /// What a home without a manifest may have in its directory: one that was begun, and no more.
    pub(crate) const NAMES: [&str; 3] = ["lock", "log", "objects"];
    /// What a server may leave in its directory: what is closed to others when an older one has left it open.
    const CONTENTS: DirectoryEntries<'static> = DirectoryEntries {
        lock: "lock",
        names: &[
            "manifest", "pins", "backup", "upgrade", "log", "objects", "branches", "temp", "fences",
        ],
    };
    /// How files under preparation end.
    pub(crate) const UNFINISHED: &str = paths::UNFINISHED;

    /// Opens an existing home for reading only, while no server runs on it. Changes nothing.
    pub fn open_read_only(dir: impl Into<PathBuf>, env: &Env) -> Result<LocalHome, HomeError> {
        LocalHome::open_to_read(dir, env, Locking::Alone)
    }

    /// The same beside a server that may be at work there: whatever is read may be removed meanwhile, and what was
    /// removed may be written anew. Who reads the log knows by its blocks, and by the manifest. Not on a device, whose
    /// names cannot be read while they change.
    pub fn open_beside(dir: impl Into<PathBuf>, env: &Env) -> Result<LocalHome, HomeError> {
        let dir: PathBuf = dir.into();
        let directory = matches!(env.files.kind(&dir), Ok(Some(FileKind::Directory)));
        let locking = match directory {
            true => Locking::Beside,
            false => Locking::Alone,
        };
        LocalHome::open_to_read(dir, env, locking)
    }

    /// The same for who stores objects beside the server that follows from it, under numbers that the server has given
    /// it: nothing else is changed, and nothing is removed to make room.
    pub fn open_to_store_objects(
        dir: impl Into<PathBuf>,
        env: &Env,
    ) -> Result<LocalHome, HomeError> {
        let mut home = LocalHome::open_to_follow(dir, env)?;
        let Some(shared) = Arc::get_mut(&mut home.shared) else {
            return Err(HomeError::Unsupported("storing objects beside a server"));
        };
        shared.stores_objects = true;
        Ok(home)
    }

    /// The same for who follows the log: servers may begin and end there meanwhile, so it takes no lock at all.
    pub fn open_to_follow(dir: impl Into<PathBuf>, env: &Env) -> Result<LocalHome, HomeError> {
        let dir: PathBuf = dir.into();
        match env.files.kind(&dir) {
            Ok(Some(FileKind::Directory) | None) | Err(_) => {
                LocalHome::open_to_read(dir, env, Locking::Without)
            }
            Ok(Some(_)) => Err(HomeError::Unsupported("following a log on a device")),
        }
    }

    fn open_to_read(
        dir: impl Into<PathBuf>,
        env: &Env,
        locking: Locking,
    ) -> Result<LocalHome, HomeError> {
        let paths = Paths::new(dir.into());
        let env = &within(env, paths.dir(), None)?;
        if env.files.list(&paths.log()).is_err() {
            return Err(HomeError::Missing(format!(
                "a Logstead log in {}",
                paths.dir().display()
            )));
        }
        LocalHome::lock(
            paths,
            env,
            LocalOptions {
                threads: false,
                way: IoMethod::Pwrite,
                ..LocalOptions::default()
            },
            true,
            locking,
        )
    }

    fn lock(
        paths: Paths,
        env: &Env,
        options: LocalOptions,
        read_only: bool,
        locking: Locking,
    ) -> Result<LocalHome, HomeError> {
        let take = || match read_only {
            true => env.files.lock_to_read(&paths.lock()),
            false => env.files.lock(&paths.lock()),
        };
        let locked = match locking {
            Locking::Alone => lock::with_retries(env.files.as_ref(), take),
            Locking::Beside => take(),
            Locking::Without => Ok(None),
        };
        let lock = match locked {
            Ok(Some(lock)) => Some(Arc::from(lock)),
            // What cannot be written has no server, unless one has left the file there.
            Err(error) if read_only && error.kind() == ErrorKind::NotFound => None,
            Ok(None) if locking != Locking::Alone => None,
            Ok(None) => return Err(HomeError::InUse(paths.dir().display().to_string())),
            Err(error) => {
                return Err(HomeError::io(
                    format!("lock {}", paths.lock().display()),
                    error,
                ));
            }
        };
        let mut shared = LocalShared {
            env: env.clone(),
            append_mode: options.way.open_mode(Access::ReadWrite),
            attempts: lane::SegmentAttempts::default(),
            making: Mutex::new(()),
            spares: Mutex::new(()),
            paths,
            options,
            read_only,
            stores_objects: false,
            readers: Mutex::new(BTreeMap::new()),
            objects: objects::Objects::default(),
            side_attempts: AtomicU64::new(0),
            reserve: reserve::Reserve::default(),
            lock,
        };
        if !read_only {
            shared.remove_unfinished()?;
            shared.count_sides()?;
            shared.look_at_space();
        }
        let options = &shared.options;
        let lock = shared.lock.as_ref();
        let mut choice = io_method::choose(env, options.way, &shared.paths.scratch(), lock);
        let ways = match IoMethodRunner::new(choice.way, env, options.threads, lock.cloned()) {
            // The machine has changed its mind since it was measured.
            Err(error) if options.way == IoMethod::Auto => {
                choice.why = format!("{} could not be had: {error}", choice.way);
                choice.way = IoMethod::Pwrite;
                IoMethodRunner::new(choice.way, env, options.threads, lock.cloned())
            }
            other => other,
        };
        let ways = ways.map_err(|error| {
            HomeError::io(format!("write the log by way of {}", choice.way), error)
        })?;
        shared.append_mode = choice.way.open_mode(Access::ReadWrite);
        let shared = Arc::new(shared);
        let start = |error| HomeError::io("start a thread of the log", error);
        let (preparer, sides) = if shared.options.threads {
            let preparing = Arc::clone(&shared);
            let preparer = JobQueue::start(env, "log-space", move |job: Prepare| {
                preparing.prepare_next(&job);
            });
            let sides = JobQueue::start(env, "log-sides", side::SideJob::run);
            let sides = Arc::new(sides.map_err(start)?);
            (Some(preparer.map_err(start)?), Some(sides))
        } else {
            (None, None)
        };
        Ok(LocalHome {
            preparer,
            sides,
            lanes: RwLock::new(BTreeMap::new()),
            ways,
            choice,
            shared,
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.shared.paths.dir()
    }

    fn lane(&self, lane: LaneId) -> Result<Arc<LaneFiles>, HomeError> {
        let lanes = self.lanes.read();
        lanes.get(&lane).cloned().ok_or(HomeError::Misuse {
            lane,
            what: "the lane is not open",
        })
    }

    /// Starts making the next segment, if none is ready or under way.
    fn start_preparing(&self, lane: &Arc<LaneFiles>) {
        let Some((segment, size_before)) = lane.begin_preparing(&self.shared.attempts) else {
            return;
        };
        let size_bytes = (size_before * GROWTH).min(self.shared.options.segment_size_bytes);
        let job = Prepare {
            lane: Arc::clone(lane),
            segment,
            size_bytes,
        };
        match &self.preparer {
            Some(preparer) => preparer.push(job),
            None => self.shared.prepare_next(&job),
        }
    }
}

/// The environment in which the home's paths are: on a device, or in a preallocated file given as one, its files are
/// the device's. What is to be written to (by whom it may be read then, if it is made) is kept from other accounts.
fn within(env: &Env, path: &Path, written: Option<DataDirMode>) -> Result<Env, HomeError> {
    let files = &env.files;
    let kind = files.kind(path);
    let tell = |told: Option<String>| {
        if let Some(told) = told {
            warn!("{told}");
        }
    };
    let refused = |error: std::io::Error| match error.kind() {
        // The kernel's own refusals have a number.
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            HomeError::Exposed(error.to_string())
        }
        _ => HomeError::io(format!("look after who may open {}", path.display()), error),
    };
    match kind.map_err(|error| HomeError::io(format!("look at {}", path.display()), error))? {
        Some(FileKind::Directory) | None => {
            let Some(readers) = written else {
                return Ok(env.clone());
            };
            let made = files.data_directory(path, LocalHome::CONTENTS, readers);
            let made = made.map_err(refused)?;
            tell(made.told);
            Ok(Env {
                files: made.files.unwrap_or_else(|| Arc::clone(files)),
                ..env.clone()
            })
        }
        Some(FileKind::BlockDevice | FileKind::File) => {
            if written.is_some() {
                tell(files.data_file(path).map_err(refused)?);
            }
            Ok(Env {
                files: Arc::new(DeviceFiles::open(files, path, written.is_none())?),
                ..env.clone()
            })
        }
        Some(FileKind::Other) => Err(HomeError::io(
            format!("open {}", path.display()),
            std::io::Error::other("it is neither a directory nor a block device"),
        )),
    }
}

impl LocalShared {
    fn io<T>(&self, what: &str, path: &Path, result: std::io::Result<T>) -> Result<T, HomeError> {
        result.map_err(|error| HomeError::io(format!("{what} {}", path.display()), error))
    }

    fn write_allowed(&self) -> Result<(), HomeError> {
        if self.read_only {
            Err(HomeError::Unsupported(
                "writing: it was opened for reading only",
            ))
        } else {
            Ok(())
        }
    }

    /// Removes what an interrupted preparation left.
    fn remove_unfinished(&self) -> Result<(), HomeError> {
        let mut dirs = vec![self.paths.dir().to_owned(), self.paths.objects()];
        dirs.extend(
            self.lane_ids()?
                .into_iter()
                .map(|lane| self.paths.lane(lane)),
        );
        for dir in dirs {
            for name in self.io("list", &dir, self.env.files.list(&dir))? {
                if Paths::is_unfinished(&name) {
                    let path = dir.join(name);
                    self.io("remove", &path, self.env.files.remove(&path))?;
                }
            }
        }
        Ok(())
    }

    fn lane_ids(&self) -> Result<Vec<LaneId>, HomeError> {
        let log = self.paths.log();
        let names = self.io("list", &log, self.env.files.list(&log))?;
        Ok(names
            .iter()
            .filter_map(|name| Paths::parse_lane(name))
            .collect())
    }

    fn names_in(&self, lane: LaneId) -> Result<Vec<String>, HomeError> {
        let dir = self.paths.lane(lane);
        match self.env.files.list(&dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            other => self.io("list", &dir, other),
        }
    }

    /// Replaces a small file atomically.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
        self.write_allowed()?;
        let files = &self.env.files;
        let unfinished = Paths::unfinished(path);
        let result = (|| {
            let file = self.io(
                "make",
                &unfinished,
                files.open(&unfinished, OpenMode::buffered(Access::Replace)),
            )?;
            self.io("write", &unfinished, file.write_all_at(0, bytes))?;
            self.io("sync", &unfinished, file.sync())
        })();
        if result.is_err() {
            let _first_error_counts = files.remove(&unfinished);
        }
        result?;
        self.io("rename", &unfinished, files.rename(&unfinished, path))?;
        let dir = path.parent().unwrap_or(self.paths.dir());
        self.io("sync directory", dir, files.sync_dir(dir))
    }

    fn reader(&self, lane: LaneId, segment: u64) -> Result<Option<Arc<dyn File>>, HomeError> {
        let mut readers = self.readers.lock();
        if let Some((number, file)) = readers.get(&lane)
            && *number == segment
        {
            return Ok(Some(Arc::clone(file)));
        }
        let path = self.paths.segment(lane, segment);
        let mode = OpenMode {
            access: Access::Read,
            direct: true,
            durable_writes: false,
        };
        let file: Arc<dyn File> = match self.env.files.open(&path, mode) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => Arc::from(self.io("open", &path, other)?),
        };
        readers.insert(lane, (segment, Arc::clone(&file)));
        Ok(Some(file))
    }

    fn read_name(&self, name: &str) -> Result<Option<Vec<u8>>, HomeError> {
        let path = self.paths.dir().join(name);
        match self.env.files.read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            other => self.io("read", &path, other).map(Some),
        }
    }
}

/// The tag of a named thing is a hash of its bytes (FNV-1a): under the lock there are no other writers to tell apart.
fn tag_of(bytes: &[u8]) -> Tag {
    let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    Tag(bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash))
}
