//! A file system in memory that loses, tears and refuses what a real one may lose, tear and refuse.
//!
//! Model: every file has its present bytes and its durable bytes. A write changes the present bytes and waits in a list
//! until `sync` (or is durable at once on a file opened with durable writes). Names wait the same way for `sync_dir`.
//! [`SimFiles::reboot`] is the power cut: what waited is lost, kept, or kept in part sector by sector, as [`CrashLoss`]
//! says. Changing operations are numbered from 0, so a test can crash or fail each of them in turn.
//!
//! Does not model: reordering of names across directories, or read errors other than those asked for.

use super::{Access, File, FileKind, FileLock, Files, OpenMode};
use crate::random::{GOLDEN_GAMMA, split_mix};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Unit that a disk writes entirely or not at all.
const SECTOR: usize = 512;

/// What becomes of writes and names that were not yet durable at a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashLoss {
    /// All of them are lost.
    All,
    /// All of them happen to survive.
    Nothing,
    /// Each sector of each write, and a prefix of the names, by chance.
    Random,
}

/// What goes wrong at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with an I/O error and does nothing.
    Error,
    /// The power goes: it happens in part, and every operation fails until [`SimFiles::reboot`].
    Crash,
    /// A write is short: about half of it happens, and the call says so.
    Short,
}

/// A file system in memory; see the module's documentation.
#[derive(Clone)]
pub struct SimFiles {
    state: Arc<Mutex<SimDisk>>,
}

struct SimDisk {
    random: u64,
    loss: CrashLoss,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    waiting_names: Vec<NameChange>,
    dirs: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    life: u64,
    operations: u64,
    fault: Option<(u64, Fault)>,
    crashed: bool,
    capacity: Option<u64>,
    /// Bytes that others hold on the disk.
    others: u64,
    /// From this operation on others hold all but so many.
    filled_at: Option<(u64, u64)>,
    sync_fails: bool,
    /// What every durable write takes.
    stall: Duration,
}

#[derive(Default)]
struct Inode {
    present: Vec<u8>,
    durable: Vec<u8>,
    waiting: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write {
        offset: usize,
        bytes: Vec<u8>,
    },
    /// A durable write behind others that are not: it waits with them only to keep their order.
    Settled {
        offset: usize,
        bytes: Vec<u8>,
    },
    SetLen(usize),
}

enum NameChange {
    Set(PathBuf, usize),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl NameChange {
    fn is_in(&self, dir: &Path) -> bool {
        let (NameChange::Set(path, _) | NameChange::Remove(path) | NameChange::Rename(path, _)) =
            self;
        path.parent() == Some(dir)
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Set(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes: new } | Change::Settled { offset, bytes: new } => {
            if bytes.len() < offset + new.len() {
                bytes.resize(offset + new.len(), 0);
            }
            bytes[*offset..offset + new.len()].copy_from_slice(new);
        }
        Change::SetLen(len) => bytes.resize(*len, 0),
    }
}

impl SimDisk {
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(GOLDEN_GAMMA);
        split_mix(self.random)
    }

    /// Applies the part of `change` that survives a crash.
    fn apply_surviving_part(&mut self, inode: usize, change: &Change) {
        match (self.loss, change) {
            (_, Change::Settled { .. }) => apply(&mut self.inodes[inode].durable, change),
            (CrashLoss::All, _) => {}
            (CrashLoss::Nothing, _) => apply(&mut self.inodes[inode].durable, change),
            (CrashLoss::Random, Change::SetLen(_)) => {
                if self.random().is_multiple_of(2) {
                    apply(&mut self.inodes[inode].durable, change);
                }
            }
            (CrashLoss::Random, Change::Write { offset, bytes }) => {
                let mut at = 0;
                while at < bytes.len() {
                    let end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
                    let end = end.min(bytes.len());
                    if self.random().is_multiple_of(2) {
                        let part = Change::Write {
                            offset: offset + at,
                            bytes: bytes[at..end].to_vec(),
                        };
                        apply(&mut self.inodes[inode].durable, &part);
                    }
                    at = end;
                }
            }
        }
    }

    /// Counts a changing operation and says what is wrong with it.
    fn begin(&mut self, life: Option<u64>) -> io::Result<Option<Fault>> {
        self.alive(life)?;
        let number = self.operations;
        self.operations += 1;
        if let (Some((_, left)), Some(capacity)) = (
            self.filled_at.take_if(|(at, _)| *at <= number),
            self.capacity,
        ) {
            self.others = capacity.saturating_sub(self.used() + left);
        }
        let fault = self
            .fault
            .and_then(|(at, fault)| (at == number).then_some(fault));
        match fault {
            Some(Fault::Error) => return Err(io::Error::other("simulated I/O error")),
            Some(Fault::Crash) => self.crashed = true,
            Some(Fault::Short) | None => {}
        }
        Ok(fault)
    }

    fn alive(&self, life: Option<u64>) -> io::Result<()> {
        if self.crashed || life.is_some_and(|life| life != self.life) {
            return Err(io::Error::other("simulated power cut"));
        }
        Ok(())
    }

    fn used(&self) -> u64 {
        let live: BTreeSet<usize> = self.names.values().copied().collect();
        live.iter()
            .map(|&inode| self.inodes[inode].present.len() as u64)
            .sum()
    }
}

fn power_cut<T>() -> io::Result<T> {
    Err(io::Error::other("simulated power cut"))
}

impl SimFiles {
    /// An empty file system whose chances follow from `seed`. A crash loses what was not durable at random.
    pub fn new(seed: u64) -> SimFiles {
        let state = SimDisk {
            random: split_mix(seed),
            loss: CrashLoss::Random,
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            waiting_names: Vec::new(),
            dirs: BTreeSet::new(),
            locks: BTreeSet::new(),
            life: 0,
            operations: 0,
            fault: None,
            crashed: false,
            capacity: None,
            others: 0,
            filled_at: None,
            sync_fails: false,
            stall: Duration::ZERO,
        };
        SimFiles {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// What the next crash does with bytes and names that are not durable.
    pub fn set_loss(&self, loss: CrashLoss) {
        self.state.lock().loss = loss;
    }

    /// The power goes now: every operation fails until [`SimFiles::reboot`].
    pub fn cut_power(&self) {
        self.state.lock().crashed = true;
    }

    /// Number of changing operations so far; the next one has this number.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Makes the operation with this number go wrong (once).
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.state.lock().fault = Some((operation, fault));
    }

    /// No fault is planned any more.
    pub fn clear_faults(&self) {
        let mut state = self.state.lock();
        state.fault = None;
        state.sync_fails = false;
    }

    /// Every sync and every durable write fails from now on, without effect on stable storage.
    pub fn fail_syncs(&self) {
        self.state.lock().sync_fails = true;
    }

    /// From now on every durable write takes so long before anything comes of it.
    pub fn stall_writes(&self, time: Duration) {
        self.state.lock().stall = time;
    }

    /// Total bytes the files may hold; more is a full disk. `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// From the changing operation with this number on others hold what is free of a disk that has a capacity, but
    /// `left` bytes, until [`SimFiles::freed_by_others`]. What is removed afterwards is free.
    pub fn filled_by_others_at(&self, operation: u64, left: u64) {
        self.state.lock().filled_at = Some((operation, left));
    }

    /// Others hold nothing any more.
    pub fn freed_by_others(&self) {
        let mut state = self.state.lock();
        (state.others, state.filled_at) = (0, None);
    }

    /// Bytes the files hold now.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// True after a planned crash and before [`SimFiles::reboot`].
    pub fn is_crashed(&self) -> bool {
        self.state.lock().crashed
    }

    /// The power cut and the start after it: what was not durable is lost as [`CrashLoss`] says, every open file and
    /// lock is gone.
    pub fn reboot(&self) {
        let mut state = self.state.lock();
        for inode in 0..state.inodes.len() {
            for change in std::mem::take(&mut state.inodes[inode].waiting) {
                state.apply_surviving_part(inode, &change);
            }
            let durable = state.inodes[inode].durable.clone();
            state.inodes[inode].present = durable;
        }
        let waiting = std::mem::take(&mut state.waiting_names);
        let kept = match state.loss {
            CrashLoss::All => 0,
            CrashLoss::Nothing => waiting.len(),
            CrashLoss::Random => {
                usize::try_from(state.random() % (waiting.len() as u64 + 1)).unwrap_or(0)
            }
        };
        for change in &waiting[..kept] {
            change.apply(&mut state.durable_names);
        }
        state.names = state.durable_names.clone();
        state.locks.clear();
        state.life += 1;
        state.crashed = false;
        state.fault = None;
        state.sync_fails = false;
    }

    /// Changes durable bytes behind everyone's back: `change` gets the file's content. For bit flips and stale bytes.
    pub fn tamper(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let inode = &mut state.inodes[inode];
        change(&mut inode.present);
        inode.durable = inode.present.clone();
        inode.waiting.clear();
        Ok(())
    }

    /// An independent copy of the durable and present state, for trying several futures of one past.
    pub fn fork(&self, seed: u64) -> SimFiles {
        let other = SimFiles::new(seed);
        {
            let from = self.state.lock();
            let mut to = other.state.lock();
            to.loss = from.loss;
            to.inodes = from
                .inodes
                .iter()
                .map(|inode| Inode {
                    present: inode.present.clone(),
                    durable: inode.durable.clone(),
                    waiting: inode.waiting.clone(),
                })
                .collect();
            to.names = from.names.clone();
            to.durable_names = from.durable_names.clone();
            to.dirs = from.dirs.clone();
            to.waiting_names = from
                .waiting_names
                .iter()
                .map(|change| match change {
                    NameChange::Set(path, inode) => NameChange::Set(path.clone(), *inode),
                    NameChange::Remove(path) => NameChange::Remove(path.clone()),
                    NameChange::Rename(from, to) => NameChange::Rename(from.clone(), to.clone()),
                })
                .collect();
        }
        other
    }
}

impl Files for SimFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let mut state = self.state.lock();
        state.alive(None)?;
        let existing = state.names.get(path).copied();
        let inode = match (mode.access, existing) {
            (Access::Read | Access::ReadWrite, Some(inode)) => inode,
            (Access::Read | Access::ReadWrite, None) => return Err(io::ErrorKind::NotFound.into()),
            (Access::CreateNew, Some(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Access::Replace, Some(inode)) => {
                if state.begin(None)? == Some(Fault::Crash) {
                    return power_cut();
                }
                state.inodes[inode].present.clear();
                state.inodes[inode].waiting.push(Change::SetLen(0));
                inode
            }
            (Access::CreateNew | Access::Replace, None) => {
                let fault = state.begin(None)?;
                state.inodes.push(Inode::default());
                let inode = state.inodes.len() - 1;
                state.names.insert(path.to_owned(), inode);
                state
                    .waiting_names
                    .push(NameChange::Set(path.to_owned(), inode));
                if fault == Some(Fault::Crash) {
                    return power_cut();
                }
                inode
            }
        };
        let life = state.life;
        Ok(Box::new(SimFile {
            state: Arc::clone(&self.state),
            inode,
            life,
            mode,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.begin(None)?;
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        change.apply(&mut state.names);
        state.waiting_names.push(change);
        if fault == Some(Fault::Crash) {
            power_cut()
        } else {
            Ok(())
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.begin(None)?;
        if state.names.remove(path).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        state
            .waiting_names
            .push(NameChange::Remove(path.to_owned()));
        if fault == Some(Fault::Crash) {
            power_cut()
        } else {
            Ok(())
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive(None)?;
        for dir in path.ancestors() {
            state.dirs.insert(dir.to_owned());
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.begin(None)?;
        if fault == Some(Fault::Crash) {
            return power_cut();
        }
        if state.sync_fails {
            return Err(io::Error::other("simulated sync failure"));
        }
        let waiting = std::mem::take(&mut state.waiting_names);
        for change in waiting {
            if change.is_in(dir) {
                change.apply(&mut state.durable_names);
            } else {
                state.waiting_names.push(change);
            }
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.alive(None)?;
        if !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let children = state
            .names
            .keys()
            .chain(state.dirs.iter())
            .filter(|path| path.parent() == Some(dir));
        let names: BTreeSet<String> = children
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect();
        Ok(names.into_iter().collect())
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        let state = self.state.lock();
        state.alive(None)?;
        Ok(if state.names.contains_key(path) {
            Some(FileKind::File)
        } else if state.dirs.contains(path) {
            Some(FileKind::Directory)
        } else {
            None
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let mut state = self.state.lock();
        state.alive(None)?;
        if !state.locks.insert(path.to_owned()) {
            return Ok(None);
        }
        let life = state.life;
        Ok(Some(Box::new(SimLock {
            state: Arc::clone(&self.state),
            path: path.to_owned(),
            life,
        })))
    }

    fn free_space(&self, _path: &Path) -> io::Result<u64> {
        let state = self.state.lock();
        state.alive(None)?;
        Ok(state.capacity.map_or(u64::MAX, |capacity| {
            capacity.saturating_sub(state.used() + state.others)
        }))
    }

    fn total_space(&self, _path: &Path) -> io::Result<u64> {
        let state = self.state.lock();
        state.alive(None)?;
        Ok(state.capacity.unwrap_or(u64::MAX))
    }
}

struct SimLock {
    state: Arc<Mutex<SimDisk>>,
    path: PathBuf,
    life: u64,
}

impl FileLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}

struct SimFile {
    state: Arc<Mutex<SimDisk>>,
    inode: usize,
    life: u64,
    mode: OpenMode,
}

fn to_usize(n: u64) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl File for SimFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.state.lock();
        state.alive(Some(self.life))?;
        let bytes = &state.inodes[self.inode].present;
        let offset = to_usize(offset)?.min(bytes.len());
        let count = into.len().min(bytes.len() - offset);
        into[..count].copy_from_slice(&bytes[offset..offset + count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        let stall = self.state.lock().stall;
        if self.mode.durable_writes && !stall.is_zero() {
            crate::sleep(stall);
        }
        let mut state = self.state.lock();
        if self.mode.access == Access::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let fault = state.begin(Some(self.life))?;
        let offset = to_usize(offset)?;
        let grows =
            (offset + from.len()).saturating_sub(state.inodes[self.inode].present.len()) as u64;
        if let Some(capacity) = state.capacity
            && grows > 0
            && state.used() + state.others + grows > capacity
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = if fault == Some(Fault::Short) {
            from.len().div_ceil(2)
        } else {
            from.len()
        };
        let change = Change::Write {
            offset,
            bytes: from[..count].to_vec(),
        };
        if fault == Some(Fault::Crash) {
            state.inodes[self.inode].waiting.push(change);
            return power_cut();
        }
        if self.mode.durable_writes && state.sync_fails {
            // The bytes sit in a cache that readers see and the disk never does.
            apply(&mut state.inodes[self.inode].present, &change);
            return Err(io::Error::other("simulated sync failure"));
        }
        let inode = &mut state.inodes[self.inode];
        apply(&mut inode.present, &change);
        if self.mode.durable_writes {
            apply(&mut inode.durable, &change);
            if let (Change::Write { offset, bytes }, false) = (change, inode.waiting.is_empty()) {
                inode.waiting.push(Change::Settled { offset, bytes });
            }
        } else {
            inode.waiting.push(change);
        }
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.begin(Some(self.life))? == Some(Fault::Crash) {
            return power_cut();
        }
        if state.sync_fails {
            // As Linux does: the dirty pages are dropped from the list, a second sync would say that all is well.
            state.inodes[self.inode].waiting.clear();
            return Err(io::Error::other("simulated sync failure"));
        }
        let inode = &mut state.inodes[self.inode];
        // Only what still waits: bytes that a failed sync dropped from the list stay in the cache alone.
        for change in std::mem::take(&mut inode.waiting) {
            apply(&mut inode.durable, &change);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state.lock();
        state.alive(Some(self.life))?;
        Ok(state.inodes[self.inode].present.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.begin(Some(self.life))?;
        let change = Change::SetLen(to_usize(len)?);
        let inode = &mut state.inodes[self.inode];
        apply(&mut inode.present, &change);
        inode.waiting.push(change);
        if fault == Some(Fault::Crash) {
            power_cut()
        } else {
            Ok(())
        }
    }

    fn is_direct(&self) -> bool {
        self.mode.direct
    }

    fn writes_are_durable(&self) -> bool {
        self.mode.durable_writes
    }
}
