//! The cache's file: slots of one size, each a header that says which block of which object lies in it, and the block.
//!
//! | offset | size | field of a header, numbers little endian |
//! |---|---|---|
//! | 0 | 8 | magic `LGSTCACH` |
//! | 8 | 2 | format version, 1 |
//! | 12 | 4 | bytes of a slot's block |
//! | 16 | 8 | whose: a number that follows from the home's name |
//! | 24 | 8 | object |
//! | 32 | 4 | number of the block in the object |
//! | 36 | 4 | its length |
//! | 40 | 4 | CRC-32C of the block |
//! | 60 | 4 | CRC-32C of the bytes before |
//!
//! Invariants:
//! - Nothing is handed out whose header and checksum are not right: a block that is damaged, half written or somebody
//!   else's is a miss. So nothing is ever synced, and a slot is reused by writing over it.
//! - A slot that is being read, written or wiped (`busy`) belongs to nobody else.
//! - At most `slots_max` slots exist; the victim is found by second chance.
//! - An error of writing ends filling for good, and is told; what is there is still read.
//!
//! Does not: know the home; [`ObjectCache`](super::ObjectCache) does.

use crate::{HomeError, ObjectId};
use logstead_env::{Access, DataDirMode, DirectoryEntries, Env, File, FileLock, OpenMode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing::{info, warn};

const MAGIC: &[u8; 8] = b"LGSTCACH";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 64;
/// A header has a page of its own, so that blocks are aligned.
const HEADER_ROOM: usize = 4096;

/// A block of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) object: ObjectId,
    pub(super) block: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: Option<Key>,
    /// Bytes of its block.
    len: u32,
    /// Has been read since the hand passed it.
    used: bool,
    /// So many threads are at its bytes.
    busy: u32,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    by_key: BTreeMap<Key, u32>,
    free: Vec<u32>,
    hand: usize,
    used_bytes: u64,
    /// Why nothing is stored any more.
    off: Option<String>,
}

/// Counts since the cache was opened.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) joined: AtomicU64,
    pub(super) damaged: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) written_bytes: AtomicU64,
}

/// Blocks of objects in a file.
pub(super) struct BlockCache {
    file: Box<dyn File>,
    _lock: Box<dyn FileLock>,
    whose: u64,
    block_bytes: usize,
    slots_max: usize,
    state: Mutex<State>,
    pub(super) counters: Counters,
}

/// FNV-1a: the same number for the same name in every version.
fn number_of(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl BlockCache {
    /// Opens the cache in `directory` for the home `name`, made if it is not there, with what is good in it.
    pub(super) fn open(
        directory: &Path,
        env: &Env,
        name: &str,
        size_bytes: u64,
        block_bytes: usize,
    ) -> Result<BlockCache, HomeError> {
        let files = &env.files;
        let failed = |what: &str, error| {
            HomeError::io(
                format!("{what} the cache in {}", directory.display()),
                error,
            )
        };
        let contents = DirectoryEntries {
            lock: "lock",
            names: &["blocks"],
        };
        match files.data_directory(directory, contents, DataDirMode::Owner) {
            Ok(made) => made.told.into_iter().for_each(|told| warn!("{told}")),
            // Others may see names in it, but not what is in its files.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(failed("make", error)),
        }
        let lock = files.lock(&directory.join("lock"));
        let lock = lock
            .map_err(|error| failed("lock", error))?
            .ok_or_else(|| HomeError::InUse(format!("the cache in {}", directory.display())))?;
        let path = directory.join("blocks");
        let there = files
            .kind(&path)
            .map_err(|error| failed("look at", error))?;
        let access = match there {
            None => Access::CreateNew,
            Some(_) => Access::ReadWrite,
        };
        let file = files
            .open(&path, OpenMode::buffered(access))
            .map_err(|error| failed("open", error))?;
        let slot_bytes = (HEADER_ROOM + block_bytes) as u64;
        let slots_max = usize::try_from(size_bytes / slot_bytes).unwrap_or(usize::MAX);
        let blocks = BlockCache {
            file,
            _lock: lock,
            whose: number_of(name),
            block_bytes,
            // Slots are numbered with 32 bits.
            slots_max: slots_max.clamp(1, u32::MAX as usize),
            state: Mutex::default(),
            counters: Counters::default(),
        };
        let len = blocks
            .file
            .len()
            .map_err(|error| failed("look at", error))?;
        let most = blocks.slots_max as u64 * slot_bytes;
        if len > most {
            let cut = blocks.file.set_len(most);
            cut.map_err(|error| failed("cut", error))?;
        }
        blocks.find(len.min(most).div_ceil(slot_bytes));
        let found = blocks.state.lock();
        info!(
            "cache: {} blocks, {} of at most {} bytes, in {}",
            found.by_key.len(),
            found.used_bytes,
            size_bytes,
            directory.display()
        );
        drop(found);
        Ok(blocks)
    }

    /// What lies in the slots, by their headers. Blocks are judged when they are read.
    fn find(&self, slots: u64) {
        let mut state = self.state.lock();
        let mut header = [0; HEADER_BYTES];
        for number in 0..u32::try_from(slots).unwrap_or(u32::MAX) {
            let got = self.file.read_full_at(self.place(number), &mut header);
            let found = got.ok().and_then(|_| self.decode(&header));
            let slot = match found {
                Some((key, len)) if !state.by_key.contains_key(&key) => {
                    state.by_key.insert(key, number);
                    state.used_bytes += u64::from(len);
                    Slot {
                        key: Some(key),
                        len,
                        ..Slot::default()
                    }
                }
                _ => {
                    state.free.push(number);
                    Slot::default()
                }
            };
            state.slots.push(slot);
        }
    }

    fn place(&self, slot: u32) -> u64 {
        u64::from(slot) * (HEADER_ROOM + self.block_bytes) as u64
    }

    fn encode(&self, key: Key, block: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_ROOM];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.block_bytes as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.whose.to_le_bytes());
        bytes[24..32].copy_from_slice(&key.object.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&key.block.to_le_bytes());
        bytes[36..40].copy_from_slice(&(block.len() as u32).to_le_bytes());
        bytes[40..44].copy_from_slice(&crc32c::crc32c(block).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(block);
        bytes
    }

    /// Which block a header says to be in its slot, and how long it is.
    fn decode(&self, header: &[u8]) -> Option<(Key, u32)> {
        let good = u32_at(header, HEADER_BYTES - 4) == crc32c::crc32c(&header[..HEADER_BYTES - 4])
            && header.starts_with(MAGIC)
            && header[8..10] == VERSION.to_le_bytes()
            && u32_at(header, 12) as usize == self.block_bytes
            && u64_at(header, 16) == self.whose
            && u32_at(header, 36) as usize <= self.block_bytes;
        let key = Key {
            object: ObjectId(u64_at(header, 24)),
            block: u32_at(header, 32),
        };
        good.then_some((key, u32_at(header, 36)))
    }

    pub(super) fn has(&self, key: Key) -> bool {
        self.state.lock().by_key.contains_key(&key)
    }

    /// A block, if it is here and good.
    pub(super) fn get(&self, key: Key) -> Option<Vec<u8>> {
        let number = {
            let mut state = self.state.lock();
            let number = *state.by_key.get(&key)?;
            let slot = &mut state.slots[number as usize];
            slot.used = true;
            slot.busy += 1;
            number
        };
        let mut bytes = vec![0; HEADER_ROOM + self.block_bytes];
        let got = self.file.read_full_at(self.place(number), &mut bytes);
        let block = got.ok().and_then(|got| {
            let (found, len) =
                self.decode(bytes.get(..HEADER_BYTES.min(got))?.get(..HEADER_BYTES)?)?;
            let end = HEADER_ROOM + len as usize;
            let good = found == key
                && end <= got
                && crc32c::crc32c(&bytes[HEADER_ROOM..end]) == u32_at(&bytes, 40);
            good.then_some(end)
        });
        let is_damaged = {
            let mut state = self.state.lock();
            state.leave(number);
            // What was dropped meanwhile may have been wiped.
            block.is_none() && state.by_key.get(&key) == Some(&number)
        };
        if is_damaged {
            self.counters.damaged.fetch_add(1, Relaxed);
            self.forget(key);
        }
        let end = block?;
        bytes.truncate(end);
        bytes.drain(..HEADER_ROOM);
        Some(bytes)
    }

    /// Stores a block unless it is there.
    pub(super) fn put(&self, key: Key, block: &[u8]) {
        if block.is_empty() || block.len() > self.block_bytes {
            return;
        }
        let Some(number) = self.state.lock().claim(key, self.slots_max, &self.counters) else {
            return;
        };
        let written = self
            .file
            .write_all_at(self.place(number), &self.encode(key, block));
        let mut state = self.state.lock();
        match written {
            Ok(()) if !state.by_key.contains_key(&key) => {
                let len = block.len() as u32;
                let slot = &mut state.slots[number as usize];
                (slot.key, slot.len, slot.used) = (Some(key), len, false);
                state.by_key.insert(key, number);
                state.used_bytes += u64::from(len);
                self.counters
                    .written_bytes
                    .fetch_add(u64::from(len), Relaxed);
            }
            Ok(()) => {}
            Err(error) => {
                if state.off.is_none() {
                    warn!("the cache cannot be written and takes nothing more: {error}");
                    state.off = Some(error.to_string());
                }
            }
        }
        state.leave(number);
    }

    /// Drops a block, for the next life too.
    pub(super) fn forget(&self, key: Key) {
        let number = {
            let mut state = self.state.lock();
            let Some(number) = state.unmap(key) else {
                return;
            };
            state.slots[number as usize].busy += 1;
            number
        };
        // If it cannot be wiped, the next life finds it again, and by and by evicts it.
        let _wiped = self
            .file
            .write_all_at(self.place(number), &[0; HEADER_BYTES]);
        self.state.lock().leave(number);
    }

    /// Drops all blocks of an object.
    pub(super) fn forget_object(&self, object: ObjectId) {
        let all = Key { object, block: 0 }..=Key {
            object,
            block: u32::MAX,
        };
        let keys: Vec<Key> = {
            let state = self.state.lock();
            state.by_key.range(all).map(|(key, _)| *key).collect()
        };
        keys.into_iter().for_each(|key| self.forget(key));
    }

    /// Blocks, their bytes, most bytes, and why nothing is stored any more.
    pub(super) fn extent(&self) -> (u64, u64, u64, Option<String>) {
        let state = self.state.lock();
        let most = self.slots_max as u64 * self.block_bytes as u64;
        let blocks = state.by_key.len() as u64;
        (blocks, state.used_bytes, most, state.off.clone())
    }
}

impl State {
    /// Takes a block out of the list; its slot, which the caller must make free.
    fn unmap(&mut self, key: Key) -> Option<u32> {
        let number = self.by_key.remove(&key)?;
        let slot = &mut self.slots[number as usize];
        slot.key = None;
        self.used_bytes -= u64::from(slot.len);
        Some(number)
    }

    /// Whoever was at a slot's bytes leaves it.
    fn leave(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.busy -= 1;
        if slot.busy == 0 && slot.key.is_none() {
            self.free.push(number);
        }
    }

    /// A slot to be written, busy.
    fn claim(&mut self, key: Key, slots_max: usize, counters: &Counters) -> Option<u32> {
        if self.off.is_some() || self.by_key.contains_key(&key) {
            return None;
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.slots.len() < slots_max => {
                self.slots.push(Slot::default());
                (self.slots.len() - 1) as u32
            }
            None => {
                let number = self.victim()?;
                counters.evicted.fetch_add(1, Relaxed);
                number
            }
        };
        self.slots[number as usize].busy = 1;
        Some(number)
    }

    /// Second chance: the first slot that was not read since the hand passed it.
    fn victim(&mut self) -> Option<u32> {
        for _ in 0..2 * self.slots.len() {
            let number = self.hand;
            self.hand = (number + 1) % self.slots.len();
            let slot = &mut self.slots[number];
            if slot.busy > 0 {
                continue;
            }
            if std::mem::take(&mut slot.used) {
                continue;
            }
            if let Some(key) = slot.key {
                return self.unmap(key);
            }
        }
        None
    }
}
