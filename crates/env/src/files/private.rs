//! Directories of data: kept from every account but the server's own, as PostgreSQL keeps its data directory.
//!
//! Owns: which mode a directory of data must have, and what happens to one that has another. What is made *in* it gets
//! its modes where files and directories are made ([`RealFiles`]).
//!
//! Rules:
//! - Who makes a directory of data says who may read it ([`DataDirMode`]); later its mode says so, as PostgreSQL's
//!   `data_directory_mode`.
//! - One that others can read, or that others or the group can write, is refused with PostgreSQL's words.
//! - Servers before this rule made everything as the umask had it. Their directories are known by their lock file,
//!   which is then open to others too: this version's never is. They are closed once, from the outside to the inside,
//!   the lock file last, so that an interrupted attempt is made again. A refusal would stop every upgrade, and would
//!   not close what it refuses.
//! - Links are not followed, and only names of our own are touched: whoever names the wrong directory loses nothing.

use super::real::{owner_and_mode, user_id};
use super::{Files, RealFiles};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Who may read what is made in a directory of data. Only its owner may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataDirMode {
    /// The owner alone: directories 0700, files 0600.
    #[default]
    Owner,
    /// The owner's group too: directories 0750, files 0640.
    Group,
}

impl DataDirMode {
    /// The mode of a directory.
    pub fn directory_mode(self) -> u32 {
        match self {
            DataDirMode::Owner => 0o700,
            DataDirMode::Group => 0o750,
        }
    }

    /// The mode of a file.
    pub fn file_mode(self) -> u32 {
        match self {
            DataDirMode::Owner => 0o600,
            DataDirMode::Group => 0o640,
        }
    }

    fn of(directory_mode: u32) -> DataDirMode {
        match directory_mode & 0o050 {
            0o050 => DataDirMode::Group,
            _ => DataDirMode::Owner,
        }
    }
}

/// What neither group nor others may have: PostgreSQL's `PG_MODE_MASK_GROUP`.
const EXPOSED: u32 = 0o027;

/// What a directory of data may hold, by name.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntries<'n> {
    /// The lock file.
    pub lock: &'n str,
    /// Everything else of our own.
    pub names: &'n [&'n str],
}

/// A directory of data that others cannot look into.
#[derive(Default)]
pub struct DataDirectory {
    /// The file system by which to make what is made in it; `None`: the one that was asked.
    pub files: Option<Arc<dyn Files>>,
    /// What people should be told.
    pub told: Option<String>,
}

fn refused(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

fn wrong_permissions(dir: &Path) -> io::Error {
    refused(format!(
        "data directory \"{}\" has invalid permissions\nDETAIL:  Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).",
        dir.display()
    ))
}

fn wrong_owner(dir: &Path) -> io::Error {
    refused(format!(
        "data directory \"{}\" has wrong ownership\nHINT:  The server must be started by the user that owns the data directory.",
        dir.display()
    ))
}

/// See [`Files::data_directory`].
pub(super) fn data_directory(
    files: RealFiles,
    dir: &Path,
    contents: DirectoryEntries<'_>,
    readers: DataDirMode,
) -> io::Result<DataDirectory> {
    let entered = |readers, told| DataDirectory {
        files: Some(Arc::new(RealFiles::readable_by(readers))),
        told,
    };
    if files.kind(dir)?.is_none() {
        RealFiles::readable_by(readers).create_dir(dir)?;
        return Ok(entered(readers, None));
    }
    let (owner, mode) = owner_and_mode(dir)?;
    let (is_ours, is_exposed) = (owner == user_id(), mode & EXPOSED != 0);
    // The superuser works where an account is given a directory by its administrator, as for containers.
    if !is_ours && user_id() != 0 {
        return Err(wrong_owner(dir));
    }
    let lock = dir.join(contents.lock);
    match mode_of(&lock)? {
        // A new one, made by somebody for us: as initdb does.
        None if holds_nothing_else(files, dir, contents)? => {
            set_mode(dir, mode, readers.directory_mode())?;
            Ok(entered(readers, None))
        }
        Some(of_lock) if of_lock & EXPOSED != 0 => {
            let readers = match is_exposed {
                true => readers,
                false => DataDirMode::of(mode),
            };
            if is_exposed {
                set_mode(dir, mode, readers.directory_mode())?;
            }
            for name in contents.names {
                close(files, &dir.join(name), readers)?;
            }
            close(files, &lock, readers)?;
            let told = format!(
                "{} was made by a version that let other accounts read it; it is closed to them now (directories {:04o}, files {:04o}): who could read it may know what is in it, passwords' verifiers included",
                dir.display(),
                readers.directory_mode(),
                readers.file_mode()
            );
            Ok(entered(readers, Some(told)))
        }
        _ if is_exposed => Err(wrong_permissions(dir)),
        _ => {
            let told = (!is_ours).then(|| {
                format!(
                    "data directory {} belongs to another account, which can change what is in it",
                    dir.display()
                )
            });
            Ok(entered(DataDirMode::of(mode), told))
        }
    }
}

/// See [`Files::readers_of`].
pub(super) fn readers_of(dir: &Path) -> io::Result<DataDirMode> {
    owner_and_mode(dir).map(|(_, mode)| DataDirMode::of(mode))
}

/// See [`Files::data_file`].
pub(super) fn data_file(path: &Path) -> io::Result<Option<String>> {
    let (owner, mode) = owner_and_mode(path)?;
    let is_device = !std::fs::metadata(path)?.is_file();
    // A disk's group may write to it: that is how systems give devices to whom they trust.
    let exposed = match is_device {
        true => mode & 0o007,
        false => mode & EXPOSED,
    };
    if exposed == 0 {
        return Ok(None);
    }
    if is_device || owner != user_id() {
        return Err(refused(format!(
            "other accounts can read or write {}, which is to hold the log: take these permissions away",
            path.display()
        )));
    }
    set_mode(path, mode, 0o600)?;
    Ok(Some(format!(
        "{} was open to other accounts; it is closed to them now (0600)",
        path.display()
    )))
}

/// Of the name itself, not of what a link leads to.
fn mode_of(path: &Path) -> io::Result<Option<u32>> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => Ok(Some(other?.permissions().mode())),
    }
}

/// Sets who may do what; bits beyond that stay.
fn set_mode(path: &Path, before: u32, mode: u32) -> io::Result<()> {
    if before & 0o777 == mode {
        return Ok(());
    }
    let mode = before & 0o7000 | mode;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn holds_nothing_else(
    files: RealFiles,
    dir: &Path,
    contents: DirectoryEntries<'_>,
) -> io::Result<bool> {
    let names = files.list(dir)?;
    // What a new file system begins with.
    let is_own = |name: &str| name == "lost+found" || contents.names.contains(&name);
    Ok(names.iter().all(|name| is_own(name)))
}

/// Closes `path` and, if it is a directory, everything below it.
fn close(files: RealFiles, path: &Path, readers: DataDirMode) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        // Not made yet, or removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mode = metadata.permissions().mode();
    if metadata.is_file() {
        return set_mode(path, mode, readers.file_mode());
    }
    if metadata.is_dir() {
        set_mode(path, mode, readers.directory_mode())?;
        for name in files.list(path)? {
            close(files, &path.join(name), readers)?;
        }
    }
    Ok(())
}
