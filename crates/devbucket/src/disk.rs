//! Objects in a directory, so that a killed bucket loses nothing that it acknowledged.
//!
//! ```text
//! DIR/lock                        held while a process serves the directory
//! DIR/buckets/NAME/0000000000000001   one file per object, numbered; the highest number of a key counts
//! ```
//!
//! A file is a row of frames, one per part: a header of 64 bytes, in the first frame the key, the bytes. A frame is
//! durable before its request is answered, so at most the last one can be torn, and was then never acknowledged: it is
//! cut off at the next start.
//!
//! | header bytes | what |
//! |---|---|
//! | 0..8 | magic `LGSTDVBK` |
//! | 8..12 | format version, 1 |
//! | 12..16 | length of the key, 0 behind the first frame |
//! | 16..24 | length of the bytes |
//! | 24..40 | ETag |
//! | 40..48 | when, in microseconds since 2000 |
//! | 48..52 | CRC-32C of key and bytes |
//! | 52..60 | zeros |
//! | 60..64 | CRC-32C of bytes 0..60 |
//!
//! All numbers are little-endian.

use crate::object::{Object, ObjectPart, PartLocation, Tag};
use logstead_env::{Access, DataDirMode, DirectoryEntries, Env, File, FileLock, OpenMode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::warn;

const MAGIC: &[u8; 8] = b"LGSTDVBK";
const VERSION: u32 = 1;
const HEADER: usize = 64;

/// The directory.
pub(crate) struct Disk {
    env: Env,
    buckets: PathBuf,
    _lock: Box<dyn FileLock>,
}

/// A bucket's directory.
pub(crate) struct BucketFiles {
    env: Env,
    dir: PathBuf,
    next: AtomicU64,
    /// Files that should be gone and could not be removed: at the next start they would count.
    leftover: Mutex<Vec<u64>>,
}

/// Where a frame lies.
pub(crate) struct FrameLocation {
    /// Where its bytes begin.
    pub(crate) payload: u64,
    /// Where the frame, and so the file, ends.
    pub(crate) end: u64,
}

/// An append failed.
pub(crate) struct AppendFailure {
    pub(crate) error: io::Error,
    /// The file is as it was.
    pub(crate) undone: bool,
}

/// What a frame's header says.
struct Header {
    key_len: usize,
    len: u64,
    tag: Tag,
    modified: i64,
    crc: u32,
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.key_len as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.tag.0);
        bytes[40..48].copy_from_slice(&self.modified.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER]) -> Option<Header> {
        let u32_at = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(number)
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if &bytes[..8] != MAGIC
            || u32_at(8) != VERSION
            || u32_at(60) != crc32c::crc32c(&bytes[..60])
        {
            return None;
        }
        let mut tag = Tag([0; 16]);
        tag.0.copy_from_slice(&bytes[24..40]);
        Some(Header {
            key_len: u32_at(12) as usize,
            len: u64_at(16),
            tag,
            modified: u64_at(40).cast_signed(),
            crc: u32_at(48),
        })
    }
}

/// A frame, ready to be written at once.
fn frame(key: &str, tag: Tag, modified: i64, bytes: &[u8]) -> Vec<u8> {
    let crc = crc32c::crc32c_append(crc32c::crc32c(key.as_bytes()), bytes);
    let header = Header {
        key_len: key.len(),
        len: bytes.len() as u64,
        tag,
        modified,
        crc,
    };
    let mut frame = Vec::with_capacity(HEADER + key.len() + bytes.len());
    frame.extend_from_slice(&header.encode());
    frame.extend_from_slice(key.as_bytes());
    frame.extend_from_slice(bytes);
    frame
}

impl Disk {
    /// Opens (or makes) the directory.
    pub(crate) fn open(env: &Env, dir: &Path) -> io::Result<Disk> {
        let contents = DirectoryEntries {
            lock: "lock",
            names: &["buckets"],
        };
        let made = env
            .files
            .data_directory(dir, contents, DataDirMode::Owner)?;
        if let Some(told) = made.told {
            warn!("{told}");
        }
        let env = &Env {
            files: made.files.unwrap_or_else(|| Arc::clone(&env.files)),
            ..env.clone()
        };
        let buckets = dir.join("buckets");
        env.files.create_dir(&buckets)?;
        let lock = env.files.lock(&dir.join("lock"))?.ok_or_else(|| {
            io::Error::other(format!("{} is in use by another process", dir.display()))
        })?;
        Ok(Disk {
            env: env.clone(),
            buckets,
            _lock: lock,
        })
    }

    fn bucket(&self, name: &str) -> BucketFiles {
        BucketFiles {
            env: self.env.clone(),
            dir: self.buckets.join(name),
            next: AtomicU64::new(1),
            leftover: Mutex::default(),
        }
    }

    pub(crate) fn create(&self, name: &str) -> io::Result<BucketFiles> {
        let bucket = self.bucket(name);
        self.env.files.create_dir(&bucket.dir)?;
        Ok(bucket)
    }

    /// Every bucket with its objects.
    #[allow(clippy::type_complexity, reason = "a list of triples, used once")]
    pub(crate) fn load(&self) -> io::Result<Vec<(String, BucketFiles, BTreeMap<String, Object>)>> {
        let mut all = Vec::new();
        for name in self.env.files.list(&self.buckets)? {
            let files = self.bucket(&name);
            let objects = files.load()?;
            all.push((name, files, objects));
        }
        Ok(all)
    }
}

impl BucketFiles {
    fn path(&self, file: u64) -> PathBuf {
        self.dir.join(format!("{file:016x}"))
    }

    pub(crate) fn open(&self, file: u64) -> io::Result<Box<dyn File>> {
        let mode = OpenMode::buffered(Access::Read);
        self.env.files.open(&self.path(file), mode)
    }

    /// Writes a new object's file.
    pub(crate) fn create(
        &self,
        key: &str,
        tag: Tag,
        modified: i64,
        bytes: &[u8],
    ) -> io::Result<(u64, FrameLocation)> {
        self.settle()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.path(number);
        let frame = frame(key, tag, modified, bytes);
        let write = || {
            let mode = OpenMode::buffered(Access::CreateNew);
            let file = self.env.files.open(&path, mode)?;
            file.write_all_at(0, &frame)?;
            file.sync()?;
            self.env.files.sync_dir(&self.dir)
        };
        if let Err(error) = write() {
            // As the highest number of its key it would count.
            let _also_failed = self.remove(number);
            return Err(error);
        }
        let end = frame.len() as u64;
        let payload = end - bytes.len() as u64;
        Ok((number, FrameLocation { payload, end }))
    }

    /// Writes a frame behind `end`.
    pub(crate) fn append(
        &self,
        number: u64,
        end: u64,
        tag: Tag,
        modified: i64,
        bytes: &[u8],
    ) -> Result<FrameLocation, AppendFailure> {
        self.settle().map_err(|error| AppendFailure {
            error,
            undone: true,
        })?;
        let frame = frame("", tag, modified, bytes);
        let mode = OpenMode::buffered(Access::ReadWrite);
        let opened = self.env.files.open(&self.path(number), mode);
        let file: Box<dyn File> = opened.map_err(|error| AppendFailure {
            error,
            undone: true,
        })?;
        let written = file
            .write_all_at(end, &frame)
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            let undone = file.set_len(end).and_then(|()| file.sync()).is_ok();
            return Err(AppendFailure { error, undone });
        }
        Ok(FrameLocation {
            payload: end + HEADER as u64,
            end: end + frame.len() as u64,
        })
    }

    /// Removes an object's file, durably; a missing one is fine.
    pub(crate) fn remove(&self, number: u64) -> io::Result<()> {
        self.leftover.lock().push(number);
        self.settle()
    }

    /// Removes what should be gone. Nothing is written before that succeeds: it would hide behind a leftover, or be
    /// hidden.
    fn settle(&self) -> io::Result<()> {
        let mut leftover = self.leftover.lock();
        if leftover.is_empty() {
            return Ok(());
        }
        for &number in leftover.iter() {
            match self.env.files.remove(&self.path(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.env.files.sync_dir(&self.dir)?;
        leftover.clear();
        Ok(())
    }

    /// Every object of the bucket; what no answer had acknowledged is removed.
    fn load(&self) -> io::Result<BTreeMap<String, Object>> {
        let mut objects: BTreeMap<String, Object> = BTreeMap::new();
        for name in self.env.files.list(&self.dir)? {
            let Ok(number) = u64::from_str_radix(&name, 16) else {
                return Err(io::Error::other(format!(
                    "{} is no file of a development bucket",
                    self.dir.join(name).display()
                )));
            };
            self.next.fetch_max(number + 1, Ordering::Relaxed);
            match self.load_one(number)? {
                // Numbers grow in the order of the listing.
                Some((key, object)) => {
                    if let Some(old) = objects.insert(key, object)
                        && let Some((old, _)) = old.file
                    {
                        self.remove(old)?;
                    }
                }
                None => self.remove(number)?,
            }
        }
        Ok(objects)
    }

    fn load_one(&self, number: u64) -> io::Result<Option<(String, Object)>> {
        let path = self.path(number);
        let mode = OpenMode::buffered(Access::ReadWrite);
        let file = self.env.files.open(&path, mode)?;
        let len = file.len()?;
        let (mut at, mut key, mut parts) = (0, None, Vec::new());
        let (mut tag, mut modified) = (Tag([0; 16]), 0);
        while let Some((header, name, bytes)) = read_frame(file.as_ref(), at, len)? {
            let is_first = parts.is_empty();
            if is_first == name.is_empty() {
                return Err(io::Error::other(format!(
                    "{} at byte {at}: a frame that does not belong there",
                    path.display()
                )));
            }
            if is_first {
                key = Some(name);
            }
            let begin = parts.last().map_or(0, |part: &ObjectPart| part.range.end);
            let payload = at + (HEADER + header.key_len) as u64;
            parts.push(ObjectPart {
                range: begin..begin + bytes,
                place: PartLocation::File(payload),
            });
            (tag, modified) = (header.tag, header.modified);
            at = payload + bytes;
        }
        let Some(key) = key else {
            return Ok(None);
        };
        if at < len {
            warn!(
                "{}: {} bytes of an unfinished append removed",
                path.display(),
                len - at
            );
            file.set_len(at)?;
            file.sync()?;
        }
        let object = Object {
            tag,
            modified,
            parts: Arc::new(parts),
            file: Some((number, at)),
            broken: false,
        };
        Ok(Some((key, object)))
    }
}

/// The frame at `at`: its header, key and length; `None` if none is whole there.
fn read_frame(file: &dyn File, at: u64, len: u64) -> io::Result<Option<(Header, String, u64)>> {
    let mut bytes = [0; HEADER];
    if file.read_full_at(at, &mut bytes)? < HEADER {
        return Ok(None);
    }
    let Some(header) = Header::decode(&bytes) else {
        return Ok(None);
    };
    let room = len - at - HEADER as u64;
    if header.key_len as u64 > room || header.len > room - header.key_len as u64 {
        return Ok(None);
    }
    let all = usize::try_from(header.key_len as u64 + header.len).map_err(io::Error::other)?;
    let mut content = vec![0; all];
    if file.read_full_at(at + HEADER as u64, &mut content)? < all
        || crc32c::crc32c(&content) != header.crc
    {
        return Ok(None);
    }
    let len = header.len;
    let Ok(key) = std::str::from_utf8(&content[..header.key_len]) else {
        return Ok(None);
    };
    let key = key.to_owned();
    Ok(Some((header, key, len)))
}
