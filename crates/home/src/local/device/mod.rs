//! Files on a bare block device, or inside one preallocated file: as much of a file system as the local home needs.
//!
//! The local home runs on it as it runs on a directory. What it writes to a segment goes straight to the device:
//! segments lie in one piece where possible, and appends change no metadata.
//!
//! Everything but bytes is one small table (`format`), kept in memory and written whole, into its two slots in turn,
//! when a name, a length or an allocation must become durable.
//!
//! Invariants:
//! - The slot that is overwritten is never the one that counts: a write of the table that is torn leaves the one
//!   before.
//! - Units freed by what was removed, replaced or cut are given out again only after a table without them is durable,
//!   and after the last handle to the file is gone.
//! - A device is formatted only if where the superblock and the first tables go there are zeros: what holds something
//!   else is refused.
//! - The kernel's lock on the device is held as long as its files can be reached.
//! - After a failed write of the table, nothing that needs another one succeeds.
//!
//! Does not: keep permissions or times, or hold many thousands of files.

mod file;
mod format;
mod space;

use super::lock;
use crate::HomeError;
use file::{DeviceFile, Inode};
use format::{Entry, SUPERBLOCKS, Superblock, TABLES_AT, Table};
use logstead_env::{Access, Buffer, DIRECT_ALIGNMENT, File, FileKind, FileLock, Files, OpenMode};
use parking_lot::Mutex;
use space::{Extent, Space};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of a device must be zeros before it is taken for empty.
const EMPTY_BYTES: u64 = 256 << 10;

/// The files of one device.
pub(super) struct DeviceFiles {
    device: Arc<Device>,
    /// The files' paths begin so.
    root: PathBuf,
}

/// What every open file needs too.
struct Device {
    inner: Arc<dyn Files>,
    read_only: bool,
    superblock: Superblock,
    /// The device past the page cache, with O_DSYNC.
    durable: Box<dyn File>,
    /// The same without.
    plain: Box<dyn File>,
    contents: Mutex<Contents>,
    /// Units that nobody uses any more, and that a table on the device may still name. Taken after `contents`.
    released: Mutex<Vec<Extent>>,
    lock: Box<dyn FileLock>,
}

/// The device's lock, as one of a name on it.
struct Held(Arc<Device>);

impl FileLock for Held {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.lock.descriptor()
    }
}

struct Contents {
    names: BTreeMap<String, Name>,
    space: Space,
    /// Of the table on the device.
    sequence: u64,
    /// Something is not yet in that table.
    changed: bool,
    /// A write of the table failed: what is on the device is not known.
    failed: bool,
}

#[derive(Clone)]
enum Name {
    Directory,
    File(Arc<Inode>),
}

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl DeviceFiles {
    /// Opens the device at `path`, and formats it if it is empty and may be written to.
    pub(super) fn open(
        inner: &Arc<dyn Files>,
        path: &Path,
        read_only: bool,
    ) -> Result<DeviceFiles, HomeError> {
        let lock = match lock::with_retries(inner.as_ref(), || inner.lock(path)) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(HomeError::InUse(path.display().to_string())),
            Err(error) => return Err(HomeError::io(format!("lock {}", path.display()), error)),
        };
        let opened = Device::open(inner, path, read_only, lock);
        let device = opened
            .map_err(|error| HomeError::io(format!("open the device {}", path.display()), error))?;
        Ok(DeviceFiles {
            device: Arc::new(device),
            root: path.to_owned(),
        })
    }

    fn name(&self, path: &Path) -> io::Result<String> {
        let inside = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let inside = inside.filter(|name| name.len() <= usize::from(u16::MAX));
        inside
            .map(str::to_owned)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not on this device"))
    }
}

impl Device {
    fn open(
        inner: &Arc<dyn Files>,
        path: &Path,
        read_only: bool,
        lock: Box<dyn FileLock>,
    ) -> io::Result<Device> {
        let handle = |durable_writes| {
            let mode = OpenMode {
                access: if read_only {
                    Access::Read
                } else {
                    Access::ReadWrite
                },
                direct: true,
                durable_writes,
            };
            inner.open(path, mode)
        };
        let (durable, plain) = (handle(true)?, handle(false)?);
        if !plain.is_direct() {
            // A failed write-back would be told to one of all the files only.
            let what = "it has no direct I/O (O_DIRECT), which a device must have";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let superblock = match read_superblock(plain.as_ref())? {
            Some(superblock) => superblock,
            None if read_only => return Err(broken("it holds no Logstead log")),
            None => make(durable.as_ref())?,
        };
        if plain.len()? < superblock.place(superblock.units as u32) {
            return Err(broken("it is shorter than when it was formatted"));
        }
        let table = read_table(plain.as_ref(), &superblock)?;
        let contents = Contents::of(&table, &superblock)?;
        Ok(Device {
            inner: Arc::clone(inner),
            read_only,
            superblock,
            durable,
            plain,
            contents: Mutex::new(contents),
            released: Mutex::default(),
            lock,
        })
    }

    fn handle(&self, mode: OpenMode) -> &dyn File {
        if mode.durable_writes {
            self.durable.as_ref()
        } else {
            self.plain.as_ref()
        }
    }

    fn writable(&self) -> io::Result<()> {
        if self.read_only {
            Err(io::ErrorKind::PermissionDenied.into())
        } else {
            Ok(())
        }
    }

    /// Makes names, lengths and allocations durable.
    fn commit(&self, contents: &mut Contents) -> io::Result<()> {
        if contents.failed {
            return Err(io::Error::other("an earlier write of its table failed"));
        }
        // What is released from now on may still be in this table.
        let released = std::mem::take(&mut *self.released.lock());
        let bytes = contents.table().encode();
        let padded = bytes.len().next_multiple_of(DIRECT_ALIGNMENT);
        if padded as u64 > u64::from(self.superblock.table_size) {
            self.released.lock().extend(released);
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the table of the device is full",
            ));
        }
        let mut slot = Buffer::zeroed(padded);
        slot.as_mut_slice()[..bytes.len()].copy_from_slice(&bytes);
        let at = self.superblock.slot(contents.sequence + 1);
        contents.failed = true;
        self.durable.write_all_at(at, slot.as_slice())?;
        contents.failed = false;
        contents.sequence += 1;
        contents.changed = false;
        for extent in released {
            let given = contents.space.give(extent);
            assert!(given, "units of the device are freed twice: {extent:?}");
        }
        Ok(())
    }

    fn commit_if_changed(&self) -> io::Result<()> {
        let mut contents = self.contents.lock();
        if contents.changed {
            self.commit(&mut contents)
        } else {
            Ok(())
        }
    }

    /// Takes units for a file that ends with `after`.
    fn allocate(&self, units: u32, after: Option<Extent>) -> io::Result<Vec<Extent>> {
        self.writable()?;
        let mut contents = self.contents.lock();
        let mut found = contents.space.find(units, after);
        if found.is_none() && !self.released.lock().is_empty() {
            self.commit(&mut contents)?;
            found = contents.space.find(units, after);
        }
        contents.changed |= found.is_some();
        found.ok_or_else(|| io::ErrorKind::StorageFull.into())
    }

    fn release(&self, extents: impl IntoIterator<Item = Extent>) {
        self.released.lock().extend(extents);
    }
}

impl Contents {
    fn of(table: &Table, superblock: &Superblock) -> io::Result<Contents> {
        let mut space = Space::default();
        let units = superblock.units as u32;
        space.give(Extent { start: 0, units });
        let mut names = BTreeMap::new();
        for (name, entry) in &table.entries {
            let found = match entry {
                Entry::Directory => Name::Directory,
                Entry::File { len, extents } => {
                    let mut held = 0;
                    for &extent in extents {
                        held += u64::from(extent.units) * u64::from(superblock.unit);
                        // Also refuses what is not on the device.
                        if extent.start.checked_add(extent.units).is_none() || !space.take(extent) {
                            return Err(broken(format!("{name} lies where another file does")));
                        }
                    }
                    if *len > held {
                        return Err(broken(format!("{name} is longer than its units")));
                    }
                    Name::File(Arc::new(Inode::of(*len, extents.clone())))
                }
            };
            names.insert(name.clone(), found);
        }
        Ok(Contents {
            names,
            space,
            sequence: table.sequence,
            changed: false,
            failed: false,
        })
    }

    fn table(&self) -> Table {
        let entry = |name: &Name| match name {
            Name::Directory => Entry::Directory,
            Name::File(inode) => inode.entry(),
        };
        let entries = self.names.iter();
        Table {
            sequence: self.sequence + 1,
            entries: entries
                .map(|(name, what)| (name.clone(), entry(what)))
                .collect(),
        }
    }
}

fn read(device: &dyn File, at: u64, len: usize) -> io::Result<Buffer> {
    let mut buffer = Buffer::zeroed(len);
    device.read_full_at(at, buffer.as_mut_slice())?;
    Ok(buffer)
}

fn read_superblock(device: &dyn File) -> io::Result<Option<Superblock>> {
    for at in SUPERBLOCKS {
        let bytes = read(device, at, DIRECT_ALIGNMENT)?;
        if let Some(superblock) = Superblock::decode(bytes.as_slice()).map_err(broken)? {
            return Ok(Some(superblock));
        }
    }
    Ok(None)
}

fn read_table(device: &dyn File, superblock: &Superblock) -> io::Result<Table> {
    let mut newest: Option<Table> = None;
    for sequence in 0..2 {
        let slot = read(
            device,
            superblock.slot(sequence),
            superblock.table_size as usize,
        )?;
        if let Some(table) = Table::decode(slot.as_slice())
            && newest
                .as_ref()
                .is_none_or(|newest| newest.sequence < table.sequence)
        {
            newest = Some(table);
        }
    }
    newest.ok_or_else(|| broken("both copies of its table are damaged"))
}

/// Formats an empty device: an empty table first, then the superblock, whose presence says that all is there.
fn make(device: &dyn File) -> io::Result<Superblock> {
    let size = device.len()?;
    let superblock = Superblock::new(size).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{size} bytes are not a size it can have: it must be preallocated, with 1 MiB at least"),
        )
    })?;
    let begin = read(device, 0, EMPTY_BYTES as usize)?;
    let table_block = TABLES_AT as usize..TABLES_AT as usize + DIRECT_ALIGNMENT;
    let mut others = begin.as_slice().iter().enumerate();
    // The table's block may be what an interrupted attempt left.
    if others.any(|(at, &byte)| byte != 0 && !table_block.contains(&at)) {
        return Err(broken(
            "it holds something else; write zeros over its first MiB if that may be lost",
        ));
    }
    let mut block = Buffer::zeroed(DIRECT_ALIGNMENT);
    let table = Table::default().encode();
    block.as_mut_slice()[..table.len()].copy_from_slice(&table);
    device.write_all_at(superblock.slot(0), block.as_slice())?;
    let bytes = superblock.encode();
    block.as_mut_slice().fill(0);
    block.as_mut_slice()[..bytes.len()].copy_from_slice(&bytes);
    for at in SUPERBLOCKS {
        device.write_all_at(at, block.as_slice())?;
    }
    Ok(superblock)
}

impl Files for DeviceFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let name = self.name(path)?;
        let mut contents = self.device.contents.lock();
        let existing = contents.names.get(&name).cloned();
        let (inode, replaced) = match (mode.access, existing) {
            (_, Some(Name::Directory)) => return Err(io::ErrorKind::IsADirectory.into()),
            (Access::Read | Access::ReadWrite, Some(Name::File(inode))) => (inode, None),
            (Access::Read | Access::ReadWrite, None) => return Err(io::ErrorKind::NotFound.into()),
            (Access::CreateNew, Some(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Access::CreateNew | Access::Replace, old) => {
                self.device.writable()?;
                let inode = Arc::new(Inode::of(0, Vec::new()));
                contents.names.insert(name, Name::File(Arc::clone(&inode)));
                contents.changed = true;
                let replaced = match old {
                    Some(Name::File(old)) => Some(old),
                    Some(Name::Directory) | None => None,
                };
                (inode, replaced)
            }
        };
        drop(contents);
        if let Some(old) = replaced {
            self.device.let_go(old);
        }
        Ok(Box::new(DeviceFile::new(
            Arc::clone(&self.device),
            inode,
            mode,
        )))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.device.writable()?;
        let (from, to) = (self.name(from)?, self.name(to)?);
        let replaced = {
            let mut contents = self.device.contents.lock();
            let Some(Name::File(inode)) = contents.names.get(&from).cloned() else {
                return Err(io::ErrorKind::NotFound.into());
            };
            if matches!(contents.names.get(&to), Some(Name::Directory)) {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            contents.names.remove(&from);
            contents.changed = true;
            contents.names.insert(to, Name::File(inode))
        };
        if let Some(Name::File(old)) = replaced {
            self.device.let_go(old);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.device.writable()?;
        let name = self.name(path)?;
        let removed = {
            let mut contents = self.device.contents.lock();
            let Some(Name::File(inode)) = contents.names.get(&name).cloned() else {
                return Err(io::ErrorKind::NotFound.into());
            };
            contents.names.remove(&name);
            contents.changed = true;
            inode
        };
        self.device.let_go(removed);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let name = self.name(path)?;
        let mut contents = self.device.contents.lock();
        let mut made = false;
        for dir in Path::new(&name).ancestors().filter_map(Path::to_str) {
            match contents.names.get(dir) {
                _ if dir.is_empty() => {}
                Some(Name::Directory) => {}
                Some(Name::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => {
                    self.device.writable()?;
                    contents.names.insert(dir.to_owned(), Name::Directory);
                    contents.changed = true;
                    made = true;
                }
            }
        }
        if made {
            self.device.commit(&mut contents)?;
        }
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        self.device.commit_if_changed()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let dir = self.name(dir)?;
        let contents = self.device.contents.lock();
        if !dir.is_empty() && !matches!(contents.names.get(&dir), Some(Name::Directory)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = contents.names.keys().filter_map(|name| {
            let path = Path::new(name);
            let here = path.parent() == Some(Path::new(&dir));
            here.then(|| path.file_name()?.to_str().map(str::to_owned))
                .flatten()
        });
        Ok(inside.collect())
    }

    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        let name = self.name(path)?;
        let contents = self.device.contents.lock();
        Ok(match contents.names.get(&name) {
            _ if name.is_empty() => Some(FileKind::Directory),
            Some(Name::Directory) => Some(FileKind::Directory),
            Some(Name::File(_)) => Some(FileKind::File),
            None => None,
        })
    }

    /// The device's own lock is held already, by whoever has opened it: it is that one.
    fn lock(&self, _path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        Ok(Some(Box::new(Held(Arc::clone(&self.device)))))
    }

    fn free_space(&self, _path: &Path) -> io::Result<u64> {
        let free = self.device.contents.lock().space.free_units();
        let released = self.device.released.lock();
        let released: u64 = released.iter().map(|extent| u64::from(extent.units)).sum();
        Ok((free + released) * u64::from(self.device.superblock.unit))
    }

    fn total_space(&self, _path: &Path) -> io::Result<u64> {
        let superblock = &self.device.superblock;
        Ok(superblock.units * u64::from(superblock.unit))
    }

    fn is_simulated(&self) -> bool {
        self.device.inner.is_simulated()
    }
}

impl Device {
    /// A name of this file is gone, so all are (files have one). Its units are free when its handles are gone too.
    fn let_go(&self, inode: Arc<Inode>) {
        inode.set_unnamed();
        self.released_by(inode);
    }

    /// Somebody no longer uses the file: whoever is the last one frees what it held.
    fn released_by(&self, inode: Arc<Inode>) {
        if let Some(inode) = Arc::into_inner(inode)
            && inode.is_unnamed()
        {
            self.release(inode.into_extents());
        }
    }
}
