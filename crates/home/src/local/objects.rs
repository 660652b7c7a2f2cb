//! Immutable objects as files of their own.
//!
//! Life of one: it is written under a temporary name, past the page cache (a checkpoint shall not push out what others
//! read, nor make a later sync wait for its pages), synced, renamed, and its directory synced.
//!
//! Invariants:
//! - A file has an object's name only after all its bytes are durable; `Ok` is told after the name is, too.
//! - Who finds the object there already makes sure of its name before that counts as success.
//! - A damaged copy is replaced by a rename over it, only where the disk still has what was seen of it: whoever has
//!   stood still since then hits no copy that another one has mended, and makes none that was removed.
//! - Names are given, compared and taken away under one lock; the long part, writing, is done by any number of threads
//!   at once.
//!
//! Does not: check what it reads (frames carry checksums), or sync removals (whoever removes can do so again).

use super::{ALIGNMENT, LocalShared};
use crate::{Buffer, HomeError, OBJECT_BYTES_MAX, ObjectId, ObjectInfo, SeenCopy, immutable};
use logstead_env::{Access, File, LongMutex, OpenMode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one write, or one read for a comparison, takes.
const PIECE_BYTES: usize = 1 << 20;
/// Objects kept open for reading.
const OPEN_MAX: usize = 64;

/// What the home keeps for its objects.
#[derive(Default)]
pub(super) struct Objects {
    /// Counts attempts to store one, for temporary names.
    attempts: AtomicU64,
    /// Held while names change.
    naming: LongMutex<()>,
    /// Open files of objects that have their names.
    open: Mutex<BTreeMap<ObjectId, Arc<dyn File>>>,
}

impl LocalShared {
    pub(super) fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        if !self.stores_objects {
            self.write_allowed()?;
        }
        immutable::check_size(bytes)?;
        {
            let _named = self.objects.naming.lock();
            if self.is_there(id, bytes)? {
                return self.sync_objects();
            }
        }
        let attempt = self.objects.attempts.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.paths.unfinished_object(id, attempt);
        let mut result = self.name_object(id, bytes, &unfinished);
        if let Err(error) = &result
            && error.is_disk_full()
            && !self.read_only
            && self.remove_spares()?
        {
            // Segments that nobody needs have given way.
            result = self.name_object(id, bytes, &unfinished);
        }
        if !self.read_only {
            self.look_at_space();
        }
        if result.is_err() {
            // It may have its name already. If it cannot be removed now, it is when the home is opened next.
            let _first_error_counts = self.env.files.remove(&unfinished);
        }
        result
    }

    /// Writes the object and gives it its name, unless another attempt was faster.
    fn name_object(&self, id: ObjectId, bytes: &[u8], unfinished: &Path) -> Result<(), HomeError> {
        self.write_object(unfinished, bytes)?;
        let (files, path) = (&self.env.files, self.paths.object(id));
        let _naming = self.objects.naming.lock();
        if self.is_there(id, bytes)? {
            self.io("remove", unfinished, files.remove(unfinished))?;
            return self.sync_objects();
        }
        self.io("rename", unfinished, files.rename(unfinished, &path))?;
        let synced = self.sync_objects();
        if synced.is_err() {
            // Whoever tries again must not find it and believe a second sync, which may know nothing of the failure.
            self.objects.open.lock().remove(&id);
            let _first_error_counts = files.remove(&path);
        }
        synced
    }

    fn write_object(&self, path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
        let mode = OpenMode {
            access: Access::Replace,
            direct: true,
            durable_writes: false,
        };
        let file = self.io("make", path, self.env.files.open(path, mode))?;
        let padded = bytes.len().next_multiple_of(ALIGNMENT);
        let mut buffer = Buffer::zeroed(padded.clamp(ALIGNMENT, PIECE_BYTES));
        let mut at = 0;
        for piece in bytes.chunks(PIECE_BYTES) {
            let padded = piece.len().next_multiple_of(ALIGNMENT);
            let whole = &mut buffer.as_mut_slice()[..padded];
            whole[..piece.len()].copy_from_slice(piece);
            whole[piece.len()..].fill(0);
            self.io("write", path, file.write_all_at(at, whole))?;
            at += padded as u64;
        }
        if at > bytes.len() as u64 {
            self.io("cut", path, file.set_len(bytes.len() as u64))?;
        }
        self.io("sync", path, file.sync())
    }

    /// Is the object there, with these bytes?
    fn is_there(&self, id: ObjectId, bytes: &[u8]) -> Result<bool, HomeError> {
        let path = self.paths.object(id);
        let mode = OpenMode::buffered(Access::Read);
        let file = match self.env.files.open(&path, mode) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            other => self.io("open", &path, other)?,
        };
        let len = self.io("ask for the length of", &path, file.len())?;
        let mut same = len == bytes.len() as u64;
        let mut there = vec![0; bytes.len().min(PIECE_BYTES)];
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            if !same {
                break;
            }
            let there = &mut there[..piece.len()];
            let at = (number * PIECE_BYTES) as u64;
            let count = self.io("read", &path, file.read_full_at(at, there))?;
            same = count == piece.len() && there == piece;
        }
        if same {
            Ok(true)
        } else {
            Err(immutable::conflict(id))
        }
    }

    fn sync_objects(&self) -> Result<(), HomeError> {
        let dir = self.paths.objects();
        self.io("sync directory", &dir, self.env.files.sync_dir(&dir))
    }

    pub(super) fn read_object(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let path = self.paths.object(id);
        let file = self.object_file(id, &path)?;
        if offset > OBJECT_BYTES_MAX as u64 {
            // Behind the end of every object; the kernel takes the largest offsets for errors.
            return Ok(0);
        }
        self.io("read", &path, file.read_full_at(offset, into))
    }

    /// The file of an object, kept open: pages are read from it one by one.
    fn object_file(&self, id: ObjectId, path: &Path) -> Result<Arc<dyn File>, HomeError> {
        let mut open = self.objects.open.lock();
        if let Some(file) = open.get(&id) {
            return Ok(Arc::clone(file));
        }
        let mode = OpenMode::buffered(Access::Read);
        let file: Arc<dyn File> = match self.env.files.open(path, mode) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(immutable::missing(id));
            }
            other => Arc::from(self.io("open", path, other)?),
        };
        if open.len() >= OPEN_MAX {
            open.pop_first();
        }
        open.insert(id, Arc::clone(&file));
        Ok(file)
    }

    pub(super) fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        let dir = self.paths.objects();
        let names = match self.env.files.list(&dir) {
            // Read-only, of a version that knew no objects.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => self.io("list", &dir, other)?,
        };
        let mut objects = Vec::new();
        for id in names.iter().filter_map(|name| ObjectId::parse(name)) {
            let path = self.paths.object(id);
            let mode = OpenMode::buffered(Access::Read);
            let file = match self.env.files.open(&path, mode) {
                // Removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => self.io("open", &path, other)?,
            };
            let size_bytes = self.io("ask for the length of", &path, file.len())?;
            objects.push(ObjectInfo { id, size_bytes });
        }
        objects.sort_unstable();
        Ok(objects)
    }

    pub(super) fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.write_allowed()?;
        let path = self.paths.object(id);
        let _naming = self.objects.naming.lock();
        // Under this lock, so that nobody keeps open again what is being removed.
        let mut open = self.objects.open.lock();
        open.remove(&id);
        match self.env.files.remove(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => self.io("remove", &path, other),
        }
    }

    /// See [`ObjectRepair::replace_object`](crate::ObjectRepair::replace_object). `in_time` says, when the bytes are
    /// written and before they get the name, whether whoever wants that still may: what it gives is kept until they
    /// have it.
    pub(super) fn replace_object<G>(
        &self,
        id: ObjectId,
        seen: SeenCopy,
        bytes: &[u8],
        in_time: impl FnOnce() -> Result<G, HomeError>,
    ) -> Result<(), HomeError> {
        self.write_allowed()?;
        immutable::check_size(bytes)?;
        let attempt = self.objects.attempts.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.paths.unfinished_object(id, attempt);
        let replaced = self.write_object(&unfinished, bytes).and_then(|()| {
            let _naming = self.objects.naming.lock();
            let _in_time = in_time()?;
            self.rename_over(id, seen, bytes, &unfinished)
        });
        self.look_at_space();
        if replaced.is_err() {
            // It has its name already, perhaps. If it cannot be removed now, it is when the home is opened next.
            let _first_error_counts = self.env.files.remove(&unfinished);
        }
        replaced
    }

    /// Gives the object's name to what was written, if the name still has what was seen.
    fn rename_over(
        &self,
        id: ObjectId,
        seen: SeenCopy,
        bytes: &[u8],
        unfinished: &Path,
    ) -> Result<(), HomeError> {
        let (files, path) = (&self.env.files, self.paths.object(id));
        let present = match self.read_object_from_disk(id) {
            Ok(present) => Some(present),
            Err(error @ HomeError::Missing(_)) => return Err(error),
            Err(_) => None,
        };
        if present.as_deref() == Some(bytes) {
            self.io("remove", unfinished, files.remove(unfinished))?;
            return self.sync_objects();
        }
        if SeenCopy::of(present.as_deref()) != seen {
            return Err(immutable::conflict(id));
        }
        {
            // Under this lock, so that nobody keeps open the file that has no name any more.
            let mut open = self.objects.open.lock();
            open.remove(&id);
            self.io("rename", unfinished, files.rename(unfinished, &path))?;
        }
        // If that fails, a crash may bring the damaged copy back: that is found again, and nothing is lost.
        self.sync_objects()
    }

    /// Reads bytes of an object from the disk and not from what the system has of it in memory.
    pub(super) fn read_object_from_disk_at(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        if offset > OBJECT_BYTES_MAX as u64 {
            return Ok(0);
        }
        let path = self.paths.object(id);
        let file = self.object_on_disk(id, &path)?;
        let mut piece = Buffer::zeroed(PIECE_BYTES);
        let mut read = 0;
        while read < into.len() {
            let at = offset + read as u64;
            let start = at - at % ALIGNMENT as u64;
            let count = file.read_full_at(start, piece.as_mut_slice());
            let count = self.io("read", &path, count)?;
            let there = piece.as_slice().get((at - start) as usize..count);
            let there = there.unwrap_or_default();
            let len = there.len().min(into.len() - read);
            into[read..read + len].copy_from_slice(&there[..len]);
            read += len;
            if count < PIECE_BYTES {
                break;
            }
        }
        Ok(read)
    }

    fn object_on_disk(&self, id: ObjectId, path: &Path) -> Result<Box<dyn File>, HomeError> {
        let mode = OpenMode {
            access: Access::Read,
            direct: true,
            durable_writes: false,
        };
        match self.env.files.open(path, mode) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(immutable::missing(id)),
            other => self.io("open", path, other),
        }
    }

    /// Reads an object whole, from the disk and not from what the system has of it in memory.
    pub(super) fn read_object_from_disk(&self, id: ObjectId) -> Result<Vec<u8>, HomeError> {
        let path = self.paths.object(id);
        let file = self.object_on_disk(id, &path)?;
        let len = self.io("ask for the length of", &path, file.len())?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(len.min(OBJECT_BYTES_MAX));
        let mut piece = Buffer::zeroed(PIECE_BYTES);
        while bytes.len() <= OBJECT_BYTES_MAX {
            let read = file.read_full_at(bytes.len() as u64, piece.as_mut_slice());
            let count = self.io("read", &path, read)?;
            bytes.extend_from_slice(&piece.as_slice()[..count]);
            if count < PIECE_BYTES {
                break;
            }
        }
        Ok(bytes)
    }
}
