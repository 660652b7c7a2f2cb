//! What the service has stored: segments, named things, side segments, objects. It survives crashes of those who use
//! it.
//!
//! Invariant: bytes change only by the calls here, one request each; what was never written in a segment reads as
//! zeros.
//!
//! Does not: know time, faults or requests.

use crate::{HomeError, ObjectId, ObjectInfo, Position, SegmentInfo, immutable};
use logstead_env::{Access, Env, File, FileLock, Files, OpenMode};
use logstead_types::LaneId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the bytes are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ByteStorage {
    /// In this process.
    #[default]
    Memory,
    /// Nowhere: the bytes of lanes are counted and dropped, for measurements that would fill the memory.
    Nothing,
    /// In this directory: a server can be started again. Not flushed: the machine's own crash may take it back.
    Directory(PathBuf),
}

enum Bytes {
    Memory(Vec<u8>),
    Dropped(u64),
    File(Box<dyn File>),
}

struct Segment {
    bytes: Bytes,
    /// Nothing is stored in it any more, whoever asks.
    sealed: bool,
}

struct Directory {
    path: PathBuf,
    files: Arc<dyn Files>,
    _lock: Box<dyn FileLock>,
}

pub(super) struct Store {
    segments: BTreeMap<(LaneId, u64), Segment>,
    names: BTreeMap<String, (Vec<u8>, u64)>,
    sides: BTreeMap<(LaneId, u64), Vec<u8>>,
    objects: BTreeMap<ObjectId, Vec<u8>>,
    tags: u64,
    directory: Option<Directory>,
    drops: bool,
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> HomeError {
    move |error| HomeError::io(format!("{what} of the simulated home"), error)
}

impl Store {
    pub(super) fn open(keep: &ByteStorage, env: &Env) -> Result<Store, HomeError> {
        let mut store = Store {
            segments: BTreeMap::new(),
            names: BTreeMap::new(),
            sides: BTreeMap::new(),
            objects: BTreeMap::new(),
            tags: 0,
            directory: None,
            drops: *keep == ByteStorage::Nothing,
        };
        if let ByteStorage::Directory(path) = keep {
            store.load(path, env).map_err(failed("reading a file"))??;
        }
        Ok(store)
    }

    fn load(&mut self, path: &Path, env: &Env) -> io::Result<Result<(), HomeError>> {
        let files = &env.files;
        files.create_dir(path)?;
        let Some(lock) = files.lock(&path.join("lock"))? else {
            return Ok(Err(HomeError::InUse(path.display().to_string())));
        };
        for file in files.list(path)? {
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let mut parts = file.splitn(3, '.');
            let (kind, first, second) = (parts.next(), parts.next(), parts.next());
            match (kind, first, second) {
                (Some("name"), Some(_), _) => {
                    let name = file["name.".len()..].to_owned();
                    self.tags += 1;
                    let bytes = files.read(&path.join(&file))?;
                    self.names.insert(name, (bytes, self.tags));
                }
                (Some("segment"), Some(lane), Some(segment)) => {
                    let mode = OpenMode::buffered(Access::ReadWrite);
                    if let (Some(lane), Some(segment)) = (number(lane), number(segment)) {
                        let bytes = Bytes::File(files.open(&path.join(&file), mode)?);
                        let key = (LaneId(lane as u16), segment);
                        let sealed = false;
                        self.segments.insert(key, Segment { bytes, sealed });
                    }
                }
                (Some("side"), Some(lane), Some(id)) => {
                    if let (Some(lane), Some(id)) = (number(lane), number(id)) {
                        let bytes = files.read(&path.join(&file))?;
                        self.sides.insert((LaneId(lane as u16), id), bytes);
                    }
                }
                (Some("object"), Some(id), None) => {
                    if let Some(id) = ObjectId::parse(id) {
                        self.objects.insert(id, files.read(&path.join(&file))?);
                    }
                }
                // The lock, and what an interrupted put has left.
                _ => {}
            }
        }
        self.directory = Some(Directory {
            path: path.to_owned(),
            files: Arc::clone(files),
            _lock: lock,
        });
        Ok(Ok(()))
    }

    /// Stores a whole small file atomically.
    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<(), HomeError> {
        let Some(dir) = &self.directory else {
            return Ok(());
        };
        let put = || {
            let new = dir.path.join("new");
            let file = dir.files.open(&new, OpenMode::buffered(Access::Replace))?;
            file.write_all_at(0, bytes)?;
            dir.files.rename(&new, &dir.path.join(name))
        };
        put().map_err(failed("writing a file"))
    }

    fn remove_file(&self, name: &str) -> Result<(), HomeError> {
        let Some(dir) = &self.directory else {
            return Ok(());
        };
        dir.files
            .remove(&dir.path.join(name))
            .map_err(failed("removing a file"))
    }

    /// Makes the segment if it is not there.
    pub(super) fn make_segment(&mut self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        if self.segments.contains_key(&(lane, segment)) {
            return Ok(());
        }
        let bytes = match &self.directory {
            _ if self.drops => Bytes::Dropped(0),
            None => Bytes::Memory(Vec::new()),
            Some(dir) => {
                let name = dir.path.join(segment_name(lane, segment));
                let mode = OpenMode::buffered(Access::CreateNew);
                let file = dir.files.open(&name, mode);
                Bytes::File(file.map_err(failed("making a segment"))?)
            }
        };
        let sealed = false;
        self.segments
            .insert((lane, segment), Segment { bytes, sealed });
        Ok(())
    }

    /// Length of a segment.
    pub(super) fn len(&self, lane: LaneId, segment: u64) -> Result<Option<u64>, HomeError> {
        let Some(segment) = self.segments.get(&(lane, segment)) else {
            return Ok(None);
        };
        match &segment.bytes {
            Bytes::Memory(bytes) => Ok(Some(bytes.len() as u64)),
            Bytes::Dropped(len) => Ok(Some(*len)),
            Bytes::File(file) => file.len().map(Some).map_err(failed("a segment's length")),
        }
    }

    pub(super) fn is_sealed(&self, lane: LaneId, segment: u64) -> bool {
        let found = self.segments.get(&(lane, segment));
        found.is_some_and(|segment| segment.sealed)
    }

    /// Writes bytes where they belong; zeros come up before them if the segment ends earlier.
    pub(super) fn write(
        &mut self,
        lane: LaneId,
        at: Position,
        from: &[u8],
    ) -> Result<(), HomeError> {
        let segment = self.segments.get_mut(&(lane, at.segment));
        let segment = segment.ok_or(HomeError::Misuse {
            lane,
            what: "append to a segment that does not exist",
        })?;
        match &mut segment.bytes {
            Bytes::Memory(bytes) => {
                let start = usize::try_from(at.offset).unwrap_or(usize::MAX);
                let end = start.saturating_add(from.len());
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[start..end].copy_from_slice(from);
            }
            Bytes::Dropped(len) => *len = (*len).max(at.offset + from.len() as u64),
            Bytes::File(file) => file
                .write_all_at(at.offset, from)
                .map_err(failed("writing a segment"))?,
        }
        Ok(())
    }

    /// Makes the segment at least this long, with zeros.
    pub(super) fn extend(&mut self, lane: LaneId, end: Position) -> Result<(), HomeError> {
        let len = self.len(lane, end.segment)?;
        match (len, end.offset.checked_sub(1)) {
            (Some(len), Some(offset)) if len < end.offset => {
                self.write(lane, Position { offset, ..end }, &[0])
            }
            _ => Ok(()),
        }
    }

    /// Reads as many bytes as the segment has.
    pub(super) fn read(
        &self,
        lane: LaneId,
        at: Position,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let Some(segment) = self.segments.get(&(lane, at.segment)) else {
            return Ok(0);
        };
        match &segment.bytes {
            Bytes::Memory(bytes) => {
                let start = usize::try_from(at.offset).unwrap_or(usize::MAX);
                let rest = bytes.get(start..).unwrap_or(&[]);
                let count = into.len().min(rest.len());
                into[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
            Bytes::Dropped(_) => Ok(0),
            Bytes::File(file) => file
                .read_full_at(at.offset, into)
                .map_err(failed("reading a segment")),
        }
    }

    /// Are these bytes there? Taken for granted where bytes are dropped.
    pub(super) fn holds(
        &self,
        lane: LaneId,
        at: Position,
        bytes: &[u8],
    ) -> Result<bool, HomeError> {
        if self.drops {
            return Ok(true);
        }
        let mut there = vec![0; bytes.len()];
        let count = self.read(lane, at, &mut there)?;
        Ok(count == bytes.len() && there == bytes)
    }

    pub(super) fn lanes(&self) -> Vec<LaneId> {
        let names = self.segments.keys().chain(self.sides.keys());
        let lanes: BTreeSet<LaneId> = names.map(|&(lane, _)| lane).collect();
        lanes.into_iter().collect()
    }

    pub(super) fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let of_lane = self.segments.range((lane, 0)..=(lane, u64::MAX));
        of_lane
            .map(|(&(_, segment), _)| {
                Ok(SegmentInfo {
                    segment,
                    size_bytes: self.len(lane, segment)?.unwrap_or(0),
                })
            })
            .collect()
    }

    /// Bytes of everything in it.
    pub(super) fn stored_bytes(&self) -> Result<u64, HomeError> {
        let mut bytes = 0;
        for &(lane, segment) in self.segments.keys() {
            bytes += self.len(lane, segment)?.unwrap_or(0);
        }
        let names = self.names.values().map(|(bytes, _)| bytes.len());
        let sides = self.sides.values().map(Vec::len);
        let objects = self.objects.values().map(Vec::len);
        Ok(bytes + names.chain(sides).chain(objects).sum::<usize>() as u64)
    }

    /// Cuts a segment, for good.
    pub(super) fn seal(&mut self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        let Some(segment) = self.segments.get_mut(&(lane, at.segment)) else {
            return Ok(());
        };
        segment.sealed = true;
        match &mut segment.bytes {
            Bytes::Memory(bytes) => {
                bytes.truncate(usize::try_from(at.offset).unwrap_or(usize::MAX));
            }
            Bytes::Dropped(len) => *len = (*len).min(at.offset),
            Bytes::File(file) => {
                let cut = || {
                    if file.len()? > at.offset {
                        file.set_len(at.offset)?;
                    }
                    Ok(())
                };
                cut().map_err(failed("cutting a segment"))?;
            }
        }
        Ok(())
    }

    pub(super) fn trim(&mut self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        match self.segments.remove(&(lane, segment)) {
            Some(_) => self.remove_file(&segment_name(lane, segment)),
            None => Ok(()),
        }
    }

    pub(super) fn name(&self, name: &str) -> Option<(Vec<u8>, u64)> {
        self.names.get(name).cloned()
    }

    pub(super) fn put_name(&mut self, name: &str, bytes: &[u8]) -> Result<u64, HomeError> {
        self.put_file(&format!("name.{name}"), bytes)?;
        self.tags += 1;
        self.names
            .insert(name.to_owned(), (bytes.to_vec(), self.tags));
        Ok(self.tags)
    }

    pub(super) fn put_side(
        &mut self,
        lane: LaneId,
        id: u64,
        bytes: Vec<u8>,
    ) -> Result<(), HomeError> {
        self.put_file(&side_name(lane, id), &bytes)?;
        self.sides.insert((lane, id), bytes);
        Ok(())
    }

    /// Reads as many bytes of a side segment as it has there.
    pub(super) fn read_side(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let missing = || HomeError::Missing(format!("side segment {id} of lane {lane}"));
        let bytes = self.sides.get(&(lane, id)).ok_or_else(missing)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or(&[]);
        let count = into.len().min(rest.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    pub(super) fn sides(&self, lane: LaneId) -> Vec<u64> {
        let of_lane = self.sides.range((lane, 0)..=(lane, u64::MAX));
        of_lane.map(|(&(_, id), _)| id).collect()
    }

    pub(super) fn remove_side_segment(&mut self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        match self.sides.remove(&(lane, id)) {
            Some(_) => self.remove_file(&side_name(lane, id)),
            None => Ok(()),
        }
    }

    pub(super) fn put_object(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        let there = self.objects.get(&id).map(Vec::as_slice);
        if immutable::is_new(there, id, bytes)? {
            self.put_file(&object_name(id), bytes)?;
            self.objects.insert(id, bytes.to_vec());
        }
        Ok(())
    }

    pub(super) fn object(&self, id: ObjectId) -> Result<&[u8], HomeError> {
        let found = self.objects.get(&id).map(Vec::as_slice);
        found.ok_or_else(|| immutable::missing(id))
    }

    pub(super) fn objects(&self) -> Vec<ObjectInfo> {
        let info = |(&id, bytes): (&ObjectId, &Vec<u8>)| ObjectInfo {
            id,
            size_bytes: bytes.len() as u64,
        };
        self.objects.iter().map(info).collect()
    }

    pub(super) fn remove_object(&mut self, id: ObjectId) -> Result<(), HomeError> {
        match self.objects.remove(&id) {
            Some(_) => self.remove_file(&object_name(id)),
            None => Ok(()),
        }
    }

    /// Flips one bit of an object.
    pub(super) fn flip_object_bit(
        &mut self,
        id: ObjectId,
        offset: u64,
        bit: u8,
    ) -> Result<(), HomeError> {
        let mut bytes = self.object(id)?.to_vec();
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (bit % 8);
        }
        self.put_file(&object_name(id), &bytes)?;
        self.objects.insert(id, bytes);
        Ok(())
    }
}

fn object_name(id: ObjectId) -> String {
    format!("object.{id}")
}

fn segment_name(lane: LaneId, segment: u64) -> String {
    format!("segment.{:04x}.{segment:012x}", lane.get())
}

fn side_name(lane: LaneId, id: u64) -> String {
    format!("side.{:04x}.{id:016x}", lane.get())
}
