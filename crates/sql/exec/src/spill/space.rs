//! The server's room for temporary files, and a session's part of it.

use crate::spill_threads::SpillThreadPool;
use logstead_env::{Env, File, FileLock};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What files and locks here are called by.
const PREFIX: &str = "logstead_temp_";
const LOCK_SUFFIX: &str = ".lock";
/// Servers that share a directory, at most.
const SERVERS_MAX: u32 = 1000;

/// The room that a server's statements have for what does not fit into memory.
pub struct SpillSpace {
    pub(super) pool: SpillThreadPool,
    env: Env,
    directory: PathBuf,
    /// Others may write next to the directory.
    shared: bool,
    /// What this server's files begin with, and the lock that keeps it its own; found when the first file is made.
    own: Mutex<Option<(PathBuf, Box<dyn FileLock>)>>,
    next: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) used_bytes: AtomicU64,
    pub(super) unwritten_bytes_max: AtomicUsize,
}

/// What a space was used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillCounts {
    /// Operators that have asked for a file so far.
    pub files_made: u64,
    /// Files that are open now.
    pub files_open: u64,
    /// Bytes in them.
    pub used_bytes: u64,
    /// The most that has waited in memory to be written to one file.
    pub unwritten_bytes_max: usize,
}

impl SpillSpace {
    /// Room in `directory`, which is made when it is first needed. What a server that has ended left there is removed.
    pub fn new(env: Env, directory: PathBuf) -> Arc<SpillSpace> {
        SpillSpace::open(env, directory, false)
    }

    /// Room in a directory of this user's own in `shared`, where everybody may write.
    pub fn in_shared(env: Env, shared: &Path) -> Arc<SpillSpace> {
        let own = shared.join(format!("logstead-{}", logstead_env::user_id()));
        SpillSpace::open(env, own, true)
    }

    fn open(env: Env, directory: PathBuf, shared: bool) -> Arc<SpillSpace> {
        if let Err(error) = remove_left(&env, &directory, shared) {
            tracing::warn!(
                "temporary files of an earlier server stay in {}: {error}",
                directory.display()
            );
        }
        Arc::new(SpillSpace {
            pool: SpillThreadPool::new(env.clone()),
            env,
            directory,
            shared,
            own: Mutex::default(),
            next: AtomicU64::new(0),
            open: AtomicU64::new(0),
            used_bytes: AtomicU64::new(0),
            unwritten_bytes_max: AtomicUsize::new(0),
        })
    }

    /// What it was used for.
    pub fn counts(&self) -> SpillCounts {
        SpillCounts {
            files_made: self.next.load(Ordering::Relaxed),
            files_open: self.open.load(Ordering::Acquire),
            used_bytes: self.used_bytes.load(Ordering::Relaxed),
            unwritten_bytes_max: self.unwritten_bytes_max.load(Ordering::Relaxed),
        }
    }

    /// A number for a new file.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a file; it has no name any more when it is given. Called by the pool's threads.
    pub(super) fn make(&self, number: u64) -> io::Result<Box<dyn File>> {
        let mut path = self.name()?.into_os_string();
        path.push(number.to_string());
        let path = PathBuf::from(path);
        let files = &self.env.files;
        let file = files.open_private(&path)?;
        files.remove(&path)?;
        self.open.fetch_add(1, Ordering::AcqRel);
        Ok(file)
    }

    /// What this server's files begin with.
    fn name(&self) -> io::Result<PathBuf> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, _)) = &*own {
            return Ok(name.clone());
        }
        let directory = self.made()?;
        let mut refused = None;
        for server in 0..SERVERS_MAX {
            let name = format!("{PREFIX}{server}");
            let lock = directory.join(format!("{name}{LOCK_SUFFIX}"));
            match self.env.files.lock_private(&lock) {
                Ok(Some(lock)) => {
                    let name = directory.join(format!("{name}."));
                    *own = Some((name.clone(), lock));
                    return Ok(name);
                }
                Ok(None) => {}
                // Somebody else's.
                Err(error) => refused = Some(error),
            }
        }
        let too_many = || io::Error::other("too many servers share the directory");
        Err(refused.unwrap_or_else(too_many))
    }

    /// Makes the directory if need be.
    fn made(&self) -> io::Result<PathBuf> {
        let files = &self.env.files;
        if self.shared {
            let made = files.create_private_dir(&self.directory);
            if !made
                .as_ref()
                .is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
            {
                return made.map(|()| self.directory.clone());
            }
            // Somebody else has taken the name; nobody guesses this one.
            let name = format!("{}-{:x}", self.directory.display(), self.env.random.u64());
            let directory = PathBuf::from(name);
            files.create_private_dir(&directory)?;
            return Ok(directory);
        }
        if files.kind(&self.directory)?.is_none() {
            if let Some(parent) = self.directory.parent() {
                files.create_dir(parent)?;
            }
            files.create_private_dir(&self.directory)?;
        }
        Ok(self.directory.clone())
    }
}

/// Removes the files of servers that are gone: those whose lock is free.
fn remove_left(env: &Env, directory: &Path, shared: bool) -> io::Result<()> {
    if shared && env.files.kind(directory)?.is_some() {
        env.files.create_private_dir(directory)?;
    }
    let names = match env.files.list(directory) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let locks = names
        .iter()
        .filter_map(|name| name.strip_suffix(LOCK_SUFFIX))
        .filter(|name| name.starts_with(PREFIX));
    for server in locks {
        let lock = directory.join(format!("{server}{LOCK_SUFFIX}"));
        // One that cannot be opened is somebody else's.
        let Ok(Some(_gone)) = env.files.lock_private(&lock) else {
            continue;
        };
        let own = format!("{server}.");
        for name in names.iter().filter(|name| name.starts_with(&own)) {
            if !name.ends_with(LOCK_SUFFIX) {
                env.files.remove(&directory.join(name))?;
            }
        }
    }
    Ok(())
}

/// A session's part of the space.
#[derive(Clone)]
pub struct Spill {
    pub(super) space: Arc<SpillSpace>,
    /// Bytes in all files of the session.
    used_bytes: Arc<AtomicU64>,
    /// `temp_file_limit`.
    limit_bytes: Option<u64>,
}

impl Spill {
    /// The part of a session that begins.
    pub fn new(space: Arc<SpillSpace>) -> Spill {
        Spill {
            space,
            used_bytes: Arc::default(),
            limit_bytes: None,
        }
    }

    /// The same part under another limit.
    #[must_use]
    fn limited(&self, limit_bytes: Option<u64>) -> Spill {
        Spill {
            limit_bytes,
            ..self.clone()
        }
    }

    /// Bytes in all files of the session.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Takes room; 53400 if it is more than the session may have.
    pub(super) fn take(&self, bytes: u64) -> Result<()> {
        // Only this session's statements add, one after the other.
        let used = self.used_bytes() + bytes;
        if let Some(limit) = self.limit_bytes.filter(|limit| used > *limit) {
            return Err(SqlError::new(
                SqlState::CONFIGURATION_LIMIT_EXCEEDED,
                format!(
                    "temporary file size exceeds temp_file_limit ({}kB)",
                    limit / 1024
                ),
            ));
        }
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.space.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Gives room back.
    pub(super) fn give(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.space.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What a statement may take of its session's part.
#[derive(Clone, Copy)]
pub struct SpillAllowance<'a> {
    /// The session's part.
    pub session: &'a Spill,
    /// `temp_file_limit`.
    pub limit_bytes: Option<u64>,
}

impl SpillAllowance<'_> {
    /// The session's part under the statement's limit.
    pub fn spill(&self) -> Spill {
        self.session.limited(self.limit_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_env::{Access, OpenMode, owner_and_mode};

    #[test]
    fn a_start_removes_what_a_dead_server_left_and_nothing_else() {
        let (env, _files) = Env::simulated(3);
        let directory = PathBuf::from("/tmp/spill");
        let put = |name: &str| {
            let path = directory.join(name);
            let mode = OpenMode::buffered(Access::CreateNew);
            env.files.open(&path, mode).unwrap();
        };
        let living = SpillSpace::new(env.clone(), directory.clone());
        living.make(living.number()).unwrap();
        // Locks of simulated files have no names.
        put("logstead_temp_0.lock");
        put("logstead_temp_0.7");
        put("logstead_temp_4.lock");
        put("logstead_temp_4.1");
        put("logstead_temp_4.22");
        put("logstead_temp_40.1");
        put("other");
        let _next = SpillSpace::new(env.clone(), directory.clone());
        assert_eq!(
            env.files.list(&directory).unwrap(),
            [
                "logstead_temp_0.7",
                "logstead_temp_0.lock",
                "logstead_temp_4.lock",
                "logstead_temp_40.1",
                "other"
            ]
        );
        drop(living);
        let _last = SpillSpace::new(env.clone(), directory.clone());
        let left = env.files.list(&directory).unwrap();
        assert!(!left.contains(&"logstead_temp_0.7".to_owned()), "{left:?}");
    }

    #[test]
    fn a_file_has_no_name() {
        let (env, _files) = Env::simulated(3);
        let directory = PathBuf::from("/tmp/spill");
        let space = SpillSpace::new(env.clone(), directory.clone());
        let file = space.make(space.number()).unwrap();
        file.write_all_at(0, b"rows").unwrap();
        let mut back = [0; 4];
        file.read_full_at(0, &mut back).unwrap();
        assert_eq!(&back, b"rows");
        assert!(env.files.list(&directory).unwrap().is_empty());
    }

    #[test]
    fn nobody_else_reads_files_or_takes_their_places() {
        let env = Env::real();
        let shared = tempfile::tempdir().unwrap();
        let space = SpillSpace::in_shared(env.clone(), shared.path());
        let directory = space.directory.clone();
        env.files.create_private_dir(&directory).unwrap();
        // What cannot be opened as a lock is passed by.
        for taken in ["logstead_temp_0.lock", "logstead_temp_1.lock"] {
            env.files.create_dir(&directory.join(taken)).unwrap();
        }
        space.make(space.number()).unwrap();
        let _next = SpillSpace::in_shared(env.clone(), shared.path());
        let mode = |path: &Path| owner_and_mode(path).unwrap().1 & 0o777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("logstead_temp_2.lock")), 0o600);
        let file = directory.join("a");
        env.files.open_private(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        // A directory that is not one's own alone is left alone.
        let other = tempfile::tempdir().unwrap();
        let space = SpillSpace::in_shared(env.clone(), other.path());
        env.files.create_dir(&space.directory).unwrap();
        let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&space.directory, open_to_all).unwrap();
        space.make(space.number()).unwrap();
        assert!(env.files.list(&space.directory).unwrap().is_empty());
        assert_eq!(env.files.list(other.path()).unwrap().len(), 2);
    }

    #[test]
    fn the_limit_counts_all_files_of_a_session() {
        let (env, _files) = Env::simulated(3);
        let space = SpillSpace::new(env, PathBuf::from("/tmp/spill"));
        let spill = Spill::new(Arc::clone(&space)).limited(Some(10 << 10));
        spill.take(6 << 10).unwrap();
        let error = spill.clone().take(5 << 10).unwrap_err();
        assert_eq!(
            (error.code().as_str(), error.fields().message.as_str()),
            (
                "53400",
                "temporary file size exceeds temp_file_limit (10kB)"
            )
        );
        assert_eq!(space.counts().used_bytes, 6 << 10);
        spill.give(6 << 10);
        spill.take(10 << 10).unwrap();
        // Another session has a limit of its own.
        let other = Spill::new(space).limited(Some(1 << 10));
        other.take(1 << 10).unwrap();
    }
}
