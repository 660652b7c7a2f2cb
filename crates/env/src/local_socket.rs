//! Sockets in the file system, with a lock file beside each, as PostgreSQL has them.
//!
//! Owns: `.s.PGSQL.PORT` and `.s.PGSQL.PORT.lock` in a directory: making both, and removing them in the end.
//!
//! Rules:
//! - Whoever holds the kernel's lock on the lock file may remove and make the socket. So of two that start at once one
//!   gets it.
//! - A socket that was left behind is removed; one that somebody answers on is not, whoever it is: a server of
//!   PostgreSQL does not take the kernel's lock, but its number stands in its lock file, and it accepts.
//! - Only what is a socket is removed: a file of that name that is something else stays, and is an error.

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Connections the kernel keeps waiting for `accept`.
const BACKLOG: i32 = 4096;
/// The longest path of a socket.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// A lock file that is longer is none.
const LOCK_FILE_BYTES_MAX: u64 = 8192;
/// How often a lock file may vanish between being opened and being locked.
const ATTEMPTS_MAX: usize = 100;

/// A socket that is listened on. Both files are removed when it is dropped, unless they are another process's
/// ([`LocalSocket::inherit`]).
pub struct LocalSocket {
    /// Does not block.
    pub listener: UnixListener,
    socket: PathBuf,
    lock_path: PathBuf,
    /// Holds the kernel's lock for as long as it is open.
    lock: File,
    owns_files: bool,
}

/// A socket that another process of this user listens on.
pub struct LocalSocketDescriptors {
    /// The socket's file.
    pub path: PathBuf,
    /// Its listener.
    pub listener: OwnedFd,
    /// The lock file, whose lock comes with it.
    pub lock: OwnedFd,
}

/// What is told in the lock file, beside this process's number: PostgreSQL's lines.
#[derive(Clone, Copy, Debug)]
pub struct LockFileLines<'a> {
    /// The data directory.
    pub data_directory: &'a str,
    /// Seconds since 1970.
    pub started: i64,
}

fn told(error: rustix::io::Errno) -> io::Error {
    io::Error::from(error)
}

fn in_use(lock_path: &Path, process: Option<u32>) -> io::Error {
    let whose = match process {
        Some(process) => format!("another server (PID {process})"),
        None => "another server".to_owned(),
    };
    let name = lock_path.display();
    let socket = name.to_string();
    let socket = socket.strip_suffix(".lock").unwrap_or(&socket);
    io::Error::new(
        ErrorKind::AddrInUse,
        format!(
            "lock file \"{name}\" already exists: {whose} is using the socket file \"{socket}\""
        ),
    )
}

impl LocalSocket {
    /// Listens on the socket of `port` in `directory`; the socket file gets these permissions.
    pub fn listen(
        directory: &Path,
        port: u16,
        permissions: u32,
        about: LockFileLines<'_>,
    ) -> io::Result<LocalSocket> {
        let socket = directory.join(format!(".s.PGSQL.{port}"));
        if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "Unix-domain socket path \"{}\" is too long (maximum {SOCKET_PATH_BYTES_MAX} bytes)",
                    socket.display()
                ),
            ));
        }
        let lock_path = directory.join(format!(".s.PGSQL.{port}.lock"));
        let (lock, before) = take_lock(&lock_path)?;
        let made = match answers(&socket) {
            // Who answers is alive, whatever the lock file says; who does not, left it behind.
            Ok(true) => Err(in_use(&lock_path, before)),
            Ok(false) => LocalSocket::make(socket, permissions),
            Err(error) => Err(error),
        };
        let (listener, socket) = match made {
            Ok(made) => made,
            Err(error) => {
                // One that named somebody is theirs.
                if before.is_none() {
                    let _left_behind = std::fs::remove_file(&lock_path);
                }
                return Err(error);
            }
        };
        let mut listening = LocalSocket {
            listener,
            socket,
            lock_path,
            lock,
            owns_files: true,
        };
        listening.write_lock_file(about, port, directory)?;
        rustix::net::listen(&listening.listener, BACKLOG).map_err(told)?;
        Ok(listening)
    }

    fn make(socket: PathBuf, permissions: u32) -> io::Result<(UnixListener, PathBuf)> {
        remove_socket(&socket)?;
        let address = SocketAddrUnix::new(&socket).map_err(told)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let descriptor =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(told)?;
        rustix::net::bind(&descriptor, &address).map_err(told)?;
        // Nobody can connect before it listens: until then the permissions are those of the umask.
        rustix::fs::chmod(&socket, Mode::from_raw_mode(permissions)).map_err(told)?;
        Ok((UnixListener::from(descriptor), socket))
    }

    /// Listens on another process's socket beside it. The files are that one's until [`LocalSocket::own`].
    pub fn inherit(from: LocalSocketDescriptors) -> io::Result<LocalSocket> {
        let LocalSocketDescriptors {
            path: socket,
            listener,
            lock,
        } = from;
        let mut lock_path = socket.clone().into_os_string();
        lock_path.push(".lock");
        Ok(LocalSocket {
            listener: UnixListener::from(listener),
            lock_path: lock_path.into(),
            socket,
            lock: rewound(File::from(lock))?,
            owns_files: false,
        })
    }

    /// The process that this one has inherited from leaves both files where they are, and is gone.
    pub fn own(&mut self, permissions: u32, about: LockFileLines<'_>) -> io::Result<()> {
        self.owns_files = true;
        rustix::fs::chmod(&self.socket, Mode::from_raw_mode(permissions)).map_err(told)?;
        let name = self.socket.file_name().and_then(|name| name.to_str());
        let port = name.and_then(|name| name.strip_prefix(".s.PGSQL."));
        let port = port.and_then(|port| port.parse().ok()).unwrap_or_default();
        let directory = self.socket.parent().unwrap_or(Path::new("/")).to_owned();
        self.write_lock_file(about, port, &directory)
    }

    fn write_lock_file(
        &mut self,
        about: LockFileLines<'_>,
        port: u16,
        directory: &Path,
    ) -> io::Result<()> {
        let text = format!(
            "{}\n{}\n{}\n{port}\n{}\n",
            std::process::id(),
            about.data_directory,
            about.started,
            directory.display()
        );
        io::Seek::rewind(&mut self.lock)?;
        self.lock.set_len(0)?;
        self.lock.write_all(text.as_bytes())
    }

    /// The listener and the lock file for another process ([`LocalSocket::inherit`]).
    pub fn descriptors(&self) -> io::Result<LocalSocketDescriptors> {
        Ok(LocalSocketDescriptors {
            path: self.socket.clone(),
            listener: self.listener.as_fd().try_clone_to_owned()?,
            lock: self.lock.as_fd().try_clone_to_owned()?,
        })
    }

    /// The socket's file.
    pub fn path(&self) -> &Path {
        &self.socket
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        if !self.owns_files {
            return;
        }
        // Whoever comes next looks at both: what cannot be removed is found stale.
        let _left_behind = remove_socket(&self.socket);
        let _left_behind = std::fs::remove_file(&self.lock_path);
    }
}

/// The lock file, locked, and the process that it named before.
fn take_lock(path: &Path) -> io::Result<(File, Option<u32>)> {
    for _ in 0..ATTEMPTS_MAX {
        // Links are not followed: the directory may be everybody's.
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).map_err(told)?;
        let file = File::from(opened);
        let read = || -> io::Result<Option<u32>> {
            let mut text = Vec::new();
            (&file).take(LOCK_FILE_BYTES_MAX).read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(&text);
            let first = text.lines().next().unwrap_or_default();
            // PostgreSQL writes a minus before it where no postmaster runs.
            Ok(first.trim().trim_start_matches('-').parse().ok())
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(in_use(path, read()?)),
            Err(error) => return Err(told(error)),
        }
        // Whoever held it before may have removed it meanwhile: then this is the lock of a file that nobody finds.
        let held = rustix::fs::fstat(&file).map_err(told)?;
        match rustix::fs::lstat(path) {
            Ok(found) if (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino) => {
                if held.st_nlink != 1
                    || FileType::from_raw_mode(held.st_mode) != FileType::RegularFile
                {
                    return Err(io::Error::new(
                        ErrorKind::InvalidInput,
                        format!("\"{}\" is not a lock file", path.display()),
                    ));
                }
                let before = read()?;
                return Ok((rewound(file)?, before));
            }
            _ => continue,
        }
    }
    Err(in_use(path, None))
}

fn rewound(mut file: File) -> io::Result<File> {
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

/// Does somebody accept on the socket?
fn answers(socket: &Path) -> io::Result<bool> {
    let address = SocketAddrUnix::new(socket).map_err(told)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let descriptor = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(told)?;
    match rustix::net::connect(descriptor.as_fd(), &address) {
        Ok(()) => Ok(true),
        // It has more waiting than it takes.
        Err(rustix::io::Errno::AGAIN) => Ok(true),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::CONNREFUSED) => Ok(false),
        // It is no socket, or not ours to look at: it is found out when it is to be removed.
        Err(_) => Ok(false),
    }
}

fn remove_socket(socket: &Path) -> io::Result<()> {
    let found = match rustix::fs::lstat(socket) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(told(error)),
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            format!("\"{}\" is there and is not a socket", socket.display()),
        ));
    }
    std::fs::remove_file(socket).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("could not remove file \"{}\": {error}", socket.display()),
        )
    })
}

/// Can this process make files in the directory?
pub fn can_write_in(directory: &Path) -> bool {
    directory.is_dir()
        && rustix::fs::access(
            directory,
            rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
        )
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    const ABOUT: LockFileLines<'static> = LockFileLines {
        data_directory: "/data",
        started: 7,
    };

    #[test]
    fn one_server_has_a_socket_and_takes_both_files_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let listen = || LocalSocket::listen(directory.path(), 5433, 0o700, ABOUT);
        let first = listen().unwrap();
        let mode = std::fs::metadata(first.path())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        let text = std::fs::read_to_string(directory.path().join(".s.PGSQL.5433.lock")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (own, place) = (
            std::process::id().to_string(),
            directory.path().display().to_string(),
        );
        assert_eq!(lines, [own.as_str(), "/data", "7", "5433", place.as_str()]);
        let error = listen().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&format!("PID {own}")), "{error}");
        UnixStream::connect(first.path()).unwrap();
        drop(first);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        listen().unwrap();
    }

    #[test]
    fn a_socket_is_taken_over_with_its_lock() {
        let directory = tempfile::tempdir().unwrap();
        let listen = || LocalSocket::listen(directory.path(), 9, 0o700, ABOUT);
        let first = listen().unwrap();
        let descriptors = first.descriptors().unwrap();
        let about = LockFileLines {
            started: 8,
            ..ABOUT
        };
        drop(LocalSocket::inherit(descriptors).unwrap());
        assert!(first.path().exists(), "the files are the first one's");
        let mut second = LocalSocket::inherit(first.descriptors().unwrap()).unwrap();
        // The first process ends without a word.
        std::mem::forget(first);
        second.own(0o700, about).unwrap();
        assert!(listen().is_err(), "the second one has it");
        let text = std::fs::read_to_string(directory.path().join(".s.PGSQL.9.lock")).unwrap();
        assert_eq!(text.lines().nth(2), Some("8"));
        UnixStream::connect(second.path()).unwrap();
        second.listener.accept().unwrap();
        drop(second);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_left_behind_is_taken_and_what_answers_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(".s.PGSQL.1");
        let lock = directory.path().join(".s.PGSQL.1.lock");
        let listen = || LocalSocket::listen(directory.path(), 1, 0o777, ABOUT);
        // A server that was killed, whose number is another process's now.
        drop(UnixListener::bind(&socket).unwrap());
        std::fs::write(&lock, "1\n/old\n").unwrap();
        drop(listen().unwrap());
        // A server of PostgreSQL: it holds no lock of the kernel's.
        let other = UnixListener::bind(&socket).unwrap();
        std::fs::write(&lock, "1\n/old\n").unwrap();
        let error = listen().err().unwrap();
        assert!(error.to_string().contains("PID 1"), "{error}");
        drop(other);
        std::fs::remove_file(&socket).unwrap();
        // Nobody's socket.
        std::fs::write(&socket, "precious").unwrap();
        std::fs::remove_file(&lock).unwrap();
        assert!(listen().is_err());
        assert!(!lock.exists());
        assert_eq!(std::fs::read_to_string(&socket).unwrap(), "precious");
        std::fs::remove_file(&socket).unwrap();
        // A link to a file that is to be kept.
        let kept = directory.path().join("kept");
        std::fs::write(&kept, "precious").unwrap();
        std::os::unix::fs::symlink(&kept, &lock).unwrap();
        assert!(listen().is_err());
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "precious");
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error() {
        let long = "x".repeat(SOCKET_PATH_BYTES_MAX);
        let error = LocalSocket::listen(Path::new(&long), 5432, 0o777, ABOUT);
        assert!(error.err().unwrap().to_string().contains("too long"));
    }
}
