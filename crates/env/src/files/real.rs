//! The machine's file system.

use super::private::{self, DataDirMode, DataDirectory, DirectoryEntries};
use super::{Access, File, FileKind, FileLock, Files, OpenMode, RawFileRange};
use rustix::fs::OFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The machine's file system, on which what is made has the modes of its readers, whatever the umask.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles {
    readers: DataDirMode,
}

impl RealFiles {
    /// What is made on it can be read by these.
    pub fn readable_by(readers: DataDirMode) -> RealFiles {
        RealFiles { readers }
    }

    fn open_as(self, path: &Path, mode: OpenMode, direct: bool) -> io::Result<std::fs::File> {
        let file = open(path, mode, direct, self.readers)?;
        match mode.access {
            Access::Read | Access::ReadWrite => {}
            // The umask takes bits away, and what is replaced may have had more.
            Access::CreateNew | Access::Replace => {
                let (metadata, wanted) = (file.metadata()?, self.readers.file_mode());
                if metadata.is_file() && metadata.permissions().mode() & 0o777 != wanted {
                    file.set_permissions(std::fs::Permissions::from_mode(wanted))?;
                }
            }
        }
        Ok(file)
    }
}

struct RealFile {
    file: std::fs::File,
    direct: bool,
    durable_writes: bool,
}

fn open(
    path: &Path,
    mode: OpenMode,
    direct: bool,
    readers: DataDirMode,
) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).mode(readers.file_mode());
    match mode.access {
        Access::Read => {}
        Access::ReadWrite => {
            options.write(true);
        }
        Access::CreateNew => {
            options.write(true).create_new(true);
        }
        Access::Replace => {
            options.write(true).create(true).truncate(true);
        }
    }
    let mut flags = OFlags::empty();
    if direct {
        flags |= OFlags::DIRECT;
    }
    if mode.durable_writes {
        flags |= OFlags::DSYNC;
    }
    // Open flags are small positive numbers; the conversion cannot fail.
    options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    options.open(path)
}

impl Files for RealFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let (file, direct) = match self.open_as(path, mode, mode.direct) {
            // File systems without direct I/O (some tmpfs, overlays) answer EINVAL.
            Err(error)
                if mode.direct
                    && error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) =>
            {
                // The kernel may have made the file before refusing the flag.
                let again = if mode.access == Access::CreateNew {
                    OpenMode {
                        access: Access::Replace,
                        ..mode
                    }
                } else {
                    mode
                };
                (self.open_as(path, again, false)?, false)
            }
            other => (other?, mode.direct),
        };
        Ok(Box::new(RealFile {
            file,
            direct,
            durable_writes: mode.durable_writes,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.create_dir(parent)?;
        }
        let mode = self.readers.directory_mode();
        match std::fs::DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(error),
            Ok(()) => {
                let made = std::fs::symlink_metadata(path)?.permissions().mode();
                if made & 0o777 != mode {
                    // Bits beyond those that the umask knows come from the directory that it is in.
                    let mode = std::fs::Permissions::from_mode(made & 0o7000 | mode);
                    std::fs::set_permissions(path, mode)?;
                }
            }
        }
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent),
            _ => self.sync_dir(Path::new(".")),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::File::open(dir)?.sync_all()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            // Names that are no UTF-8 are none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        let kind = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?.file_type(),
        };
        Ok(Some(if kind.is_dir() {
            FileKind::Directory
        } else if kind.is_file() {
            FileKind::File
        } else if kind.is_block_device() {
            FileKind::BlockDevice
        } else {
            FileKind::Other
        }))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let made = OpenMode::buffered(Access::CreateNew);
        let file = match self.open_as(path, made, false) {
            // Its mode stays: it tells who made it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let there = OpenMode::buffered(Access::ReadWrite);
                self.open_as(path, there, false)?
            }
            other => other?,
        };
        locked(file)
    }

    fn data_directory(
        &self,
        dir: &Path,
        contents: DirectoryEntries<'_>,
        readers: DataDirMode,
    ) -> io::Result<DataDirectory> {
        private::data_directory(*self, dir, contents, readers)
    }

    fn readers_of(&self, dir: &Path) -> io::Result<DataDirMode> {
        private::readers_of(dir)
    }

    fn data_file(&self, path: &Path) -> io::Result<Option<String>> {
        private::data_file(path)
    }

    fn open_private(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = own().create_new(true).open(path)?;
        Ok(Box::new(RealFile {
            file,
            direct: false,
            durable_writes: false,
        }))
    }

    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
        // Not what a link leads to.
        let stat = rustix::fs::lstat(path)?;
        let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
        if is_dir && stat.st_uid == user_id() && stat.st_mode & 0o077 == 0 {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is not a directory of one's own", path.display()),
        ))
    }

    fn lock_private(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        locked(own().create(true).truncate(false).open(path)?)
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        // Who only reads leaves nothing behind, not even a file to lock.
        let opened = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path);
        match opened {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
                ) =>
            {
                // The kernel locks what is open for reading as well.
                locked(std::fs::File::open(path)?)
            }
            other => locked(other?),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        for there in path.ancestors() {
            let here = match there.as_os_str().is_empty() {
                true => Path::new("."),
                false => there,
            };
            match (std::fs::canonicalize(here), path.strip_prefix(there)) {
                (Ok(resolved), Ok(rest)) => return Ok(resolved.join(rest)),
                (Err(error), _) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(path.to_owned())
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }
}

/// For files that only their owner can open; a link is not followed.
fn own() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(flags);
    options
}

/// Who this process acts as.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn locked(file: std::fs::File) -> io::Result<Option<Box<dyn FileLock>>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(Box::new(RealLock {
            file,
            is_left: AtomicBool::new(false),
        }))),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// The kernel frees the lock when the last reference to the open file goes, also when the process is killed: its
/// descriptors, and what its rings hold.
struct RealLock {
    file: std::fs::File,
    /// It is not given back by hand.
    is_left: AtomicBool,
}

impl FileLock for RealLock {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn leave_to_kernel(&self) {
        self.is_left.store(true, Ordering::SeqCst);
    }
}

impl Drop for RealLock {
    /// Not left to the descriptor's end: a child that another thread is starting has a copy of it until it runs its own
    /// program.
    fn drop(&mut self) {
        if self.is_left.load(Ordering::SeqCst) {
            return;
        }
        // An error leaves the lock to the last descriptor.
        let _unlocked = self.file.unlock();
    }
}

impl File for RealFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn raw(&self, offset: u64, _len: usize) -> Option<RawFileRange<'_>> {
        Some(RawFileRange {
            descriptor: self.file.as_fd(),
            offset,
        })
    }

    fn len(&self) -> io::Result<u64> {
        let metadata = self.file.metadata()?;
        if metadata.file_type().is_block_device() {
            // Devices have no length in their metadata. The file position that this moves is used by nobody.
            return Ok(rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))?);
        }
        Ok(metadata.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn is_direct(&self) -> bool {
        self.direct
    }

    fn writes_are_durable(&self) -> bool {
        self.durable_writes
    }
}

/// Who owns a file, and what its owner, group and others may do with it: for files that hold secrets.
pub fn owner_and_mode(path: &std::path::Path) -> std::io::Result<(u32, u32)> {
    let stat = rustix::fs::stat(path)?;
    Ok((stat.st_uid, stat.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a child has it that another thread is starting.
    #[test]
    fn a_lock_ends_with_its_owner_whoever_has_a_copy_of_its_descriptor() {
        let path = std::env::temp_dir().join(format!("logstead-lock-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        let lock = locked(file).unwrap();
        assert!(lock.is_some());
        assert!(
            locked(std::fs::File::open(&path).unwrap())
                .unwrap()
                .is_none()
        );
        drop(lock);
        assert!(
            locked(std::fs::File::open(&path).unwrap())
                .unwrap()
                .is_some()
        );
        drop(copy);
        std::fs::remove_file(&path).unwrap();
    }
}
