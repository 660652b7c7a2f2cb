//! A cache of immutable objects' blocks on this machine's disk: for homes whose reads are requests.
//!
//! Objects never change, so a block that was read or stored once is as good as the store's. What the cache gives back
//! is checked against its own checksum; what it cannot know (an object of the same number in a store that was emptied
//! and filled again) is found by the reader's checks, who then asks again with [`ObjectCopies::read_object_copy`],
//! which goes past the cache and drops what was in it.
//!
//! Invariants:
//! - Whatever happens to the cache (damage, a full disk, an I/O error, another process that uses it) costs time only:
//!   it is never the reason for an error.
//! - However many ask for a block at once, the store is asked once.
//! - Blocks that follow one another and are missing are asked for in one request.
//! - The lanes, side segments and named values of the home are not cached: a server reads them once, at its start.

mod blocks;

use crate::{HomeError, ImmutableObjects, ObjectCopies, ObjectId, ObjectInfo, ObjectReader};
use blocks::{BlockCache, Key};
use logstead_env::Env;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a block: large enough that a miss is worth a request, small enough that a page does not bring much that
/// nobody wants.
const BLOCK_BYTES: usize = 256 << 10;
/// The most that is asked for in one request: what readers of pages ask for at most.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Where the cache is, and how large it may become.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Its directory, made if it is not there.
    pub directory: PathBuf,
    /// Most bytes on the disk.
    pub size_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: usize,
}

impl CacheOptions {
    /// A cache in `directory` of at most `size_bytes`.
    pub fn new(directory: impl Into<PathBuf>, size_bytes: u64) -> CacheOptions {
        CacheOptions {
            directory: directory.into(),
            size_bytes,
            block_bytes: BLOCK_BYTES,
        }
    }
}

/// What a cache holds, and what it has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Where it is.
    pub directory: PathBuf,
    /// Blocks in it.
    pub blocks: u64,
    /// Their bytes.
    pub used_bytes: u64,
    /// Most bytes of blocks.
    pub size_bytes: u64,
    /// Blocks that were asked for and there.
    pub hits: u64,
    /// Blocks that were read from the store.
    pub misses: u64,
    /// Blocks that were asked for while somebody else was reading them from the store.
    pub joined: u64,
    /// Blocks that were there and not good.
    pub damaged: u64,
    /// Blocks that made room for others.
    pub evicted: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Why nothing is stored any more; `None`: it is.
    pub off: Option<String>,
}

/// A block that somebody reads from the store.
#[derive(Default)]
struct InflightRead {
    landed: Mutex<Option<Result<Arc<[u8]>, HomeError>>>,
    told: Condvar,
}

impl InflightRead {
    fn land(&self, block: Result<Arc<[u8]>, HomeError>) {
        let mut landed = self.landed.lock();
        if landed.is_none() {
            *landed = Some(block);
            self.told.notify_all();
        }
    }

    fn wait(&self) -> Result<Arc<[u8]>, HomeError> {
        let mut landed = self.landed.lock();
        loop {
            if let Some(block) = &*landed {
                return block.clone();
            }
            self.told.wait(&mut landed);
        }
    }
}

/// Flights that this thread has begun: they land, whatever becomes of it.
struct InflightReads<'h> {
    home: &'h ObjectCache,
    flights: Vec<(Key, Arc<InflightRead>)>,
}

impl Drop for InflightReads<'_> {
    fn drop(&mut self) {
        let mut reading = self.home.reading.lock();
        for (key, flight) in &self.flights {
            reading.remove(key);
            flight.land(Err(HomeError::Missing(
                "a block that nobody read".to_owned(),
            )));
        }
    }
}

/// Where a block is to be had.
enum BlockSource<'h> {
    Cached(Vec<u8>),
    InFlight(Arc<InflightRead>),
    Miss(InflightReads<'h>),
}

/// The immutable objects of a home, also kept on this machine's disk.
pub struct ObjectCache {
    inner: Arc<dyn ImmutableObjects>,
    directory: PathBuf,
    block_bytes: usize,
    blocks: BlockCache,
    reading: Mutex<BTreeMap<Key, Arc<InflightRead>>>,
}

impl ObjectCache {
    /// Puts a cache around the objects of the home of this name. What is in it from an earlier life counts.
    pub fn open(
        inner: Arc<dyn ImmutableObjects>,
        name: &str,
        env: &Env,
        options: &CacheOptions,
    ) -> Result<ObjectCache, HomeError> {
        let directory: &Path = &options.directory;
        let (size, block) = (options.size_bytes, options.block_bytes.max(1));
        Ok(ObjectCache {
            blocks: BlockCache::open(directory, env, name, size, block)?,
            inner,
            directory: directory.to_owned(),
            block_bytes: block,
            reading: Mutex::default(),
        })
    }

    /// What it holds and has done.
    pub fn stats(&self) -> CacheStats {
        let counters = &self.blocks.counters;
        let (blocks, used_bytes, size_bytes, off) = self.blocks.extent();
        CacheStats {
            directory: self.directory.clone(),
            blocks,
            used_bytes,
            size_bytes,
            hits: counters.hits.load(Relaxed),
            misses: counters.misses.load(Relaxed),
            joined: counters.joined.load(Relaxed),
            damaged: counters.damaged.load(Relaxed),
            evicted: counters.evicted.load(Relaxed),
            written_bytes: counters.written_bytes.load(Relaxed),
            off,
        }
    }

    /// The blocks of an object in which `len` bytes from `offset` on lie.
    fn blocks_of(&self, offset: u64, len: usize) -> Option<std::ops::RangeInclusive<u32>> {
        let last = offset.checked_add(len.checked_sub(1)? as u64)?;
        let number = |at: u64| u32::try_from(at / self.block_bytes as u64).ok();
        Some(number(offset)?..=number(last)?)
    }

    /// Finds a block, or begins to read it, with those up to `last` that are missing too.
    fn find(&self, first: Key, last: u32) -> BlockSource<'_> {
        if let Some(block) = self.blocks.get(first) {
            return BlockSource::Cached(block);
        }
        let mut reading = self.reading.lock();
        if let Some(flight) = reading.get(&first) {
            return BlockSource::InFlight(Arc::clone(flight));
        }
        // Whoever read it before has stored it before its flight was taken off the list.
        if let Some(block) = self.blocks.get(first) {
            return BlockSource::Cached(block);
        }
        let most = (REQUEST_BYTES_MAX / self.block_bytes).max(1) as u32;
        let mut flights = Vec::new();
        for block in first.block..=last.min(first.block.saturating_add(most - 1)) {
            let key = Key { block, ..first };
            if block > first.block && (reading.contains_key(&key) || self.blocks.has(key)) {
                break;
            }
            let flight = Arc::new(InflightRead::default());
            reading.insert(key, Arc::clone(&flight));
            flights.push((key, flight));
        }
        BlockSource::Miss(InflightReads {
            home: self,
            flights,
        })
    }

    /// Reads blocks that follow one another from the store, in one request, stores them and tells whoever waits; their
    /// bytes.
    fn fetch(&self, begun: &InflightReads<'_>) -> Result<Vec<u8>, HomeError> {
        let Some((first, _)) = begun.flights.first() else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; begun.flights.len() * self.block_bytes];
        let offset = u64::from(first.block) * self.block_bytes as u64;
        let read = self.inner.read_object(first.object, offset, &mut bytes);
        match &read {
            Ok(got) => bytes.truncate(*got),
            Err(_) => bytes.clear(),
        }
        let mut pieces = bytes.chunks(self.block_bytes);
        for (key, flight) in &begun.flights {
            let piece = pieces.next().unwrap_or(&[]);
            flight.land(match &read {
                Ok(_) => {
                    self.blocks.counters.misses.fetch_add(1, Relaxed);
                    self.blocks.put(*key, piece);
                    Ok(piece.into())
                }
                Err(error) => Err(error.clone()),
            });
        }
        read.map(|_| bytes)
    }
}

/// The part of a block from `at` on that fits.
fn copy(block: &[u8], at: usize, into: &mut [u8]) -> usize {
    let part = block.get(at..).unwrap_or(&[]);
    let count = part.len().min(into.len());
    into[..count].copy_from_slice(&part[..count]);
    count
}

impl ObjectReader for ObjectCache {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        let Some(range) = self.blocks_of(offset, into.len()) else {
            return self.inner.read_object(id, offset, into);
        };
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let block = (at / self.block_bytes as u64) as u32;
            let within = (at % self.block_bytes as u64) as usize;
            let rest = &mut into[done..];
            let key = Key { object: id, block };
            let counters = &self.blocks.counters;
            let (got, blocks) = match self.find(key, *range.end()) {
                BlockSource::Cached(block) => {
                    counters.hits.fetch_add(1, Relaxed);
                    (copy(&block, within, rest), 1)
                }
                BlockSource::InFlight(flight) => {
                    counters.joined.fetch_add(1, Relaxed);
                    (copy(&flight.wait()?, within, rest), 1)
                }
                BlockSource::Miss(begun) => {
                    let run = self.fetch(&begun)?;
                    (copy(&run, within, rest), begun.flights.len())
                }
            };
            done += got;
            if within + got < blocks * self.block_bytes {
                break;
            }
        }
        Ok(done)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        Some(self)
    }
}

impl ImmutableObjects for ObjectCache {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.inner.put_object(id, bytes)?;
        for (block, piece) in (0..).zip(bytes.chunks(self.block_bytes)) {
            let key = Key { object: id, block };
            // Another history's object of this number, perhaps.
            self.blocks.forget(key);
            self.blocks.put(key, piece);
        }
        Ok(())
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.inner.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.blocks.forget_object(id);
        self.inner.remove_object(id)
    }
}

/// The copies in the store behind the cache; one, if the store says of none.
impl ObjectCopies for ObjectCache {
    fn object_copy_count(&self) -> usize {
        let copies = self.inner.object_copies();
        copies.map_or(1, |copies| copies.object_copy_count())
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        // Whoever asks so has found damage in what `read_object` gave.
        for block in self.blocks_of(offset, into.len()).into_iter().flatten() {
            self.blocks.forget(Key { object: id, block });
        }
        match self.inner.object_copies() {
            Some(copies) => copies.read_object_copy(copy, id, offset, into),
            None => self.inner.read_object(id, offset, into),
        }
    }
}
