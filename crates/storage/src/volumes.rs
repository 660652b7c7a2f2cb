//! The volumes that a node has parts of.
//!
//! ```text
//! DIR/lock               held with flock by the one process that serves here
//! DIR/node               the node's number
//! DIR/volumes/NAME       a volume; a slash in its name is a +
//! ```
//!
//! Invariant: a volume is opened once, and stays open while the node runs.

use logstead_env::{DataDirMode, DirectoryEntries, Env, FileKind, FileLock, LongMutex, OpenMode};
use logstead_home::{HomeError, IoMethod, LocalOptions, LocalVolume};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Volumes of one node, at most.
const VOLUMES_MAX: usize = 1000;
const NODE: &str = "node";
const VOLUMES: &str = "volumes";
const LOCK: &str = "lock";
const CONTENTS: DirectoryEntries<'static> = DirectoryEntries {
    lock: LOCK,
    names: &[NODE, VOLUMES],
};

/// A volume, once it is open; locked while somebody opens it.
type VolumeSlot = LongMutex<Option<Arc<LocalVolume>>>;

/// See the module's documentation.
pub(crate) struct Volumes {
    env: Env,
    dir: PathBuf,
    id: u64,
    segment_bytes: u64,
    way: IoMethod,
    open: Mutex<BTreeMap<String, Arc<VolumeSlot>>>,
    _lock: Box<dyn FileLock>,
}

impl Volumes {
    /// Opens (or makes) a node's directory.
    pub(crate) fn open(
        dir: &Path,
        env: &Env,
        segment_bytes: u64,
        way: IoMethod,
    ) -> Result<Volumes, HomeError> {
        let io = |what: &str, error| HomeError::io(format!("{what} {}", dir.display()), error);
        let files = &env.files;
        let made = files.data_directory(dir, CONTENTS, DataDirMode::Owner);
        let made = made.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                HomeError::Exposed(error.to_string())
            }
            _ => io("make directory", error),
        })?;
        let env = Env {
            files: made.files.unwrap_or_else(|| Arc::clone(files)),
            ..env.clone()
        };
        let lock = env.files.lock(&dir.join(LOCK));
        let lock = lock.map_err(|error| io("lock", error))?;
        let lock = lock.ok_or_else(|| HomeError::InUse(dir.display().to_string()))?;
        let volumes = dir.join(VOLUMES);
        let made = env.files.create_dir(&volumes);
        made.map_err(|error| io("make a directory in", error))?;
        Ok(Volumes {
            id: number(dir, &env)?,
            env,
            dir: volumes,
            segment_bytes,
            way,
            open: Mutex::default(),
            _lock: lock,
        })
    }

    /// The node's number, drawn when its directory was made.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The names of the volumes that are open.
    pub(crate) fn open_names(&self) -> Vec<String> {
        let open = self.open.lock();
        let is_open = |slot: &VolumeSlot| slot.try_lock().is_some_and(|volume| volume.is_some());
        let names = open.iter().filter(|(_, slot)| is_open(slot));
        names.map(|(name, _)| name.clone()).collect()
    }

    /// The names of all volumes that have a directory.
    pub(crate) fn names(&self) -> Result<Vec<String>, HomeError> {
        let io = |error| HomeError::io(format!("list {}", self.dir.display()), error);
        let names = self.env.files.list(&self.dir).map_err(io)?;
        Ok(names.iter().map(|name| name.replace('+', "/")).collect())
    }

    /// The volume of this name. Who may write makes it if it is not there.
    pub(crate) fn volume(&self, name: &str, write: bool) -> Result<Arc<LocalVolume>, HomeError> {
        let dir = self.dir.join(name.replace('/', "+"));
        let slot = {
            let mut open = self.open.lock();
            match open.get(name) {
                Some(slot) => Arc::clone(slot),
                None => {
                    let io = |error| HomeError::io(format!("look at {}", dir.display()), error);
                    let kind = self.env.files.kind(&dir).map_err(io)?;
                    if kind != Some(FileKind::Directory) && !write {
                        let what = format!("a Logstead log in volume {name}");
                        return Err(HomeError::Missing(what));
                    }
                    if open.len() >= VOLUMES_MAX {
                        let many = "it has as many volumes open as it can";
                        return Err(io(std::io::Error::other(many)));
                    }
                    let slot = Arc::default();
                    open.insert(name.to_owned(), Arc::clone(&slot));
                    slot
                }
            }
        };
        let mut opened = slot.lock();
        if let Some(volume) = &*opened {
            return Ok(Arc::clone(volume));
        }
        let options = LocalOptions {
            way: self.way,
            ..LocalOptions::default()
        };
        let volume = LocalVolume::open(dir, &self.env, self.segment_bytes, options)?;
        Ok(Arc::clone(opened.insert(Arc::new(volume))))
    }
}

fn number(dir: &Path, env: &Env) -> Result<u64, HomeError> {
    let path = dir.join(NODE);
    let io = |what: &str, error| HomeError::io(format!("{what} {}", path.display()), error);
    match env.files.read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).unwrap_or_default();
            u64::from_str_radix(text.trim_end(), 16)
                .map_err(|_| io("read the number in", std::io::ErrorKind::InvalidData.into()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = env.random.u64();
            let unfinished = dir.join("node.new");
            let write = || {
                let mode = OpenMode::buffered(logstead_env::Access::Replace);
                let file = env.files.open(&unfinished, mode)?;
                file.write_all_at(0, format!("{id:016x}\n").as_bytes())?;
                file.sync()?;
                env.files.rename(&unfinished, &path)?;
                env.files.sync_dir(dir)
            };
            write().map_err(|error| io("write", error))?;
            Ok(id)
        }
        Err(error) => Err(io("read", error)),
    }
}
