//! Files and directories as the log needs them: positioned I/O, direct and synchronous writes, durable names.
//!
//! Invariants a caller may rely on:
//! - `write_at` on a file opened with `durable_writes` that says so in [`File::writes_are_durable`] returns only when
//!   the bytes are on stable storage; otherwise [`File::sync`] makes everything written before it durable.
//! - A new, renamed or removed name is durable only after [`Files::sync_dir`] of its directory.
//! - Any of them may be short or fail; nothing is retried here except an interrupted call.
//! - Whatever is made, file or directory, only its owner can open, whatever the umask; in a directory of data that is
//!   its group's to read, the group can read it too ([`Files::data_directory`]).

mod buffer;
mod private;
mod real;
mod sim;

pub use buffer::{Buffer, DIRECT_ALIGNMENT};
pub use private::{DataDirMode, DataDirectory, DirectoryEntries};
pub use real::{RealFiles, owner_and_mode, user_id};
pub use sim::{CrashLoss, Fault, SimFiles};

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading an existing file.
    Read,
    /// Reading and writing an existing file.
    ReadWrite,
    /// A new file; an existing one is an error.
    CreateNew,
    /// A new file, or an existing one emptied.
    Replace,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMode {
    /// What for.
    pub access: Access,
    /// Past the page cache (O_DIRECT), if the file system can; else silently through it.
    pub direct: bool,
    /// Every write durable when it returns (O_DSYNC).
    pub durable_writes: bool,
}

impl OpenMode {
    /// Through the page cache, writes made durable by `sync`.
    pub const fn buffered(access: Access) -> OpenMode {
        OpenMode {
            access,
            direct: false,
            durable_writes: false,
        }
    }
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A block device.
    BlockDevice,
    /// A socket, a terminal, ...: nothing to keep data in.
    Other,
}

/// Where bytes of a [`File`] lie for the kernel: a descriptor and an offset in it.
#[derive(Clone, Copy, Debug)]
pub struct RawFileRange<'f> {
    /// Opened as the file was.
    pub descriptor: BorrowedFd<'f>,
    /// Byte offset.
    pub offset: u64,
}

/// An open file. Positions are explicit, so any number of threads may use it.
pub trait File: Send + Sync {
    /// Reads up to `into.len()` bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes up to `from.len()` bytes at `offset`; may be short.
    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize>;

    /// Makes data and length durable.
    fn sync(&self) -> io::Result<()>;

    /// Makes data durable, and of the metadata what reading the data back needs.
    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    /// Where the `len` bytes from `offset` on lie for the kernel, if they lie together: for writes by other ways than
    /// [`write_at`](Self::write_at).
    fn raw(&self, _offset: u64, _len: usize) -> Option<RawFileRange<'_>> {
        None
    }

    /// Makes it likely that the first `len` bytes will lie together, where that can be had cheaply. Changes nothing
    /// else. A full disk may already show here.
    fn reserve(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// The file's length.
    fn len(&self) -> io::Result<u64>;

    /// True if the file holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// True if I/O goes past the page cache: buffers, offsets and lengths must then be multiples of
    /// [`DIRECT_ALIGNMENT`].
    fn is_direct(&self) -> bool;

    /// True if a write is durable when it returns.
    fn writes_are_durable(&self) -> bool;

    /// Writes all of `from`, going on after short writes.
    fn write_all_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        write_all(self.is_direct(), offset, from, &mut |offset, bytes| {
            self.write_at(offset, bytes)
        })
    }

    /// Reads until `into` is full or the file ends; returns how many bytes were read.
    fn read_full_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.read_at(offset + done as u64, &mut into[done..]) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    // A direct read that stops off alignment has met the end of the file.
                    if self.is_direct() && done % DIRECT_ALIGNMENT != 0 {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Fills `[offset, offset + len)` with zeros that are really written, so that later writes change no metadata.
    /// `pause` is called between pieces of `piece` bytes. Not durable before [`File::sync`].
    fn fill_with_zeros(
        &self,
        offset: u64,
        len: u64,
        piece: usize,
        pause: &mut dyn FnMut(),
    ) -> io::Result<()> {
        let zeros = Buffer::zeroed(piece.next_multiple_of(DIRECT_ALIGNMENT));
        let mut done = 0;
        while done < len {
            let count = usize::try_from(len - done)
                .unwrap_or(usize::MAX)
                .min(zeros.capacity());
            self.write_all_at(offset + done, &zeros.as_slice()[..count])?;
            done += count as u64;
            pause();
        }
        Ok(())
    }
}

/// Writes all of `from` with `write`, which may be short or interrupted; to a file with direct I/O or not.
pub fn write_all(
    direct: bool,
    offset: u64,
    from: &[u8],
    write: &mut dyn FnMut(u64, &[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < from.len() {
        match write(offset + done as u64, &from[done..]) {
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::WriteZero,
                    "the file takes no more bytes",
                ));
            }
            Ok(count) => {
                done += count;
                // A direct write must go on at an aligned place: what is behind it is written again.
                if direct && done < from.len() {
                    done -= done % DIRECT_ALIGNMENT;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A lock on a file name, held until dropped or until the process ends, however it ends. What holds its
/// [`descriptor`](Self::descriptor) as well, as a [`Ring`](crate::Ring) does, holds it for longer than a process that
/// is killed.
pub trait FileLock: Send + Sync {
    /// From now on it is given back by the kernel alone, when nothing holds what is locked any more: neither a
    /// descriptor nor a ring with writes on their way.
    fn leave_to_kernel(&self) {}

    /// The kernel's descriptor of what is locked: whatever keeps that open keeps the lock. None where no kernel keeps
    /// it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A file system.
pub trait Files: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>>;

    /// Renames within one directory, replacing the target atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory and its parents; existing ones are fine. Durable when it returns.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes `dir` a directory of data, which others can neither read nor write, or finds it to be one; `readers` may
    /// read one that is made now. An error of kind `PermissionDenied`: others can read or write it, or it is another
    /// account's. Without accounts there is nothing to be kept from.
    fn data_directory(
        &self,
        dir: &Path,
        _contents: DirectoryEntries<'_>,
        _readers: DataDirMode,
    ) -> io::Result<DataDirectory> {
        self.create_dir(dir)?;
        Ok(DataDirectory::default())
    }

    /// Who can read the directory of data that is there.
    fn readers_of(&self, _dir: &Path) -> io::Result<DataDirMode> {
        Ok(DataDirMode::Owner)
    }

    /// The same for a file or device that holds data by itself and is there already: closes a file to others, and says
    /// so; an error of kind `PermissionDenied` if it cannot.
    fn data_file(&self, _path: &Path) -> io::Result<Option<String>> {
        Ok(None)
    }

    /// As [`open`](Self::open) of a new file, but what is not there yet is not looked for behind a link.
    fn open_private(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open(path, OpenMode::buffered(Access::CreateNew))
    }

    /// Makes a directory, not its parents, that nobody but this process's user can look into. An existing one is fine
    /// if it is such a one; otherwise the error is of kind `PermissionDenied`.
    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        self.create_dir(path)
    }

    /// As [`lock`](Self::lock), but a link is not followed.
    fn lock_private(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.lock(path)
    }

    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names in `dir`, sorted. A missing directory is an error of kind `NotFound`.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// What `path` leads to; `None` if there is nothing.
    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>>;

    /// Locks `path` (made if absent) against every other process. `None`: another one holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>>;

    /// The same for who changes nothing, where `path` cannot be written; then it is not made either, and if it is not
    /// there the error is of kind `NotFound`.
    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.lock(path)
    }

    /// Where `path` leads to, by no detours; what is not there yet is taken as it is written.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Bytes that may still be written on the file system of `path`.
    fn free_space(&self, path: &Path) -> io::Result<u64>;

    /// Bytes that the file system of `path` holds in all.
    fn total_space(&self, path: &Path) -> io::Result<u64>;

    /// True if there is no machine behind it: nothing takes time that could be measured.
    fn is_simulated(&self) -> bool {
        false
    }

    /// The whole content of a small file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::buffered(Access::Read))?;
        let len = usize::try_from(file.len()?)
            .map_err(|_| io::Error::other("the file is too large to read whole"))?;
        let mut bytes = vec![0; len];
        let count = file.read_full_at(0, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}

/// True if `error` says that the disk, or the user's share of it, is full: a state that passes when space is freed.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
