//! Reading chunks back from the newest published checkpoint.
//!
//! Which checkpoint: the newest published one, looked up after the chunk was found absent. It has all of the chunk, for only such chunks are evicted, and nothing is
//! changed in one that is absent; a newer one has the same rows of it. If the objects are gone while they are read, because a newer one was published, they are read
//! again from that.
//!
//! Everything read was checked: checksums, keys and lengths by crate `checkpoint`, here that rows are rows and older than their checkpoint. What is
//! damaged is told by object, offset and chunk, and not served; other chunks are.
//!
//! Memory: a load asks for room before it reads, for what it will take by a guess: what the table's last one took, or a multiple of the pages' compressed
//! length. If nothing can be evicted it takes from the reserve, for who wants to delete a row must have it first. A page that is being read is not counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;

use logstead_checkpoint::{Chain, CheckpointError, PageKey, PageReader};
use logstead_home::LogHome;
use logstead_types::Csn;

use crate::absent::FaultError;
use crate::checkpoint::{Newest, Pages, Stored};
use crate::evict::Room;
use crate::fault::{Loader, Wanted};
use crate::memory::Memory;
use crate::row::RowRef;
use crate::rows::Rows;
use crate::version::{CHUNK_BYTES, SlotSet, UnsharedSlots};

/// Rows take so many times the bytes of their pages, as a guess.
const UNPACKED: u64 = 3;

/// The rows of a chunk as a checkpoint has them.
pub(crate) struct Filled {
    pub(crate) slots: UnsharedSlots,
    /// The slots with a row.
    pub(crate) saved: SlotSet,
}

/// Why a chunk's pages are not what they should be.
pub(crate) enum Unreadable {
    /// A page cannot be read, or is damaged.
    Page(CheckpointError),
    /// A row is none, or does not belong there.
    Row(usize, &'static str),
}

/// Reads a chunk as the checkpoint at `csn` has it.
pub(crate) fn read_chunk(
    reader: &mut PageReader,
    key: &PageKey,
    chain: Option<&Chain>,
    csn: Csn,
    memory: &'static Memory,
) -> Result<Filled, Unreadable> {
    let mut filled = Filled {
        slots: UnsharedSlots::new(memory),
        saved: SlotSet::default(),
    };
    // A chunk without pages had no rows.
    let Some(chain) = chain else {
        return Ok(filled);
    };
    let mut wrong = None;
    let read = reader.chunk(key, chain, |slot, written, row| {
        let slot = usize::from(slot);
        match RowRef::parse(row) {
            Ok(_) if written >= csn => wrong = Some((slot, "it is newer than its checkpoint")),
            Ok(row) => {
                filled.slots.replace(slot, written, Some(row.bytes()));
                filled.saved.insert(slot);
            }
            Err(_) => wrong = Some((slot, "it is no row")),
        }
    });
    read.map_err(Unreadable::Page)?;
    match wrong {
        Some((slot, why)) => Err(Unreadable::Row(slot, why)),
        None => Ok(filled),
    }
}

/// Brings chunks back.
pub(crate) struct ChunkLoader {
    home: Arc<dyn LogHome>,
    newest: Arc<Newest>,
    room: Arc<Room>,
    memory: &'static Memory,
}

impl ChunkLoader {
    pub(crate) fn new(
        home: Arc<dyn LogHome>,
        newest: Arc<Newest>,
        room: Arc<Room>,
        memory: &'static Memory,
    ) -> ChunkLoader {
        ChunkLoader {
            home,
            newest,
            room,
            memory,
        }
    }

    fn load_chunk(&self, rows: &Rows, number: u64) -> Result<(), FaultError> {
        let Some(chunk) = rows.chunk(number) else {
            return Ok(());
        };
        loop {
            if chunk.is_leaving() {
                // It is evicted, or stays, within moments.
                std::thread::yield_now();
                continue;
            }
            if chunk.is_present() {
                return Ok(());
            }
            let Some(absence) = chunk.absence() else {
                std::thread::yield_now();
                continue;
            };
            let stored = self.newest.get();
            match self.read(&stored, rows, number) {
                Ok(filled) => {
                    rows.note_loaded(filled.slots.bytes());
                    rows.bring(number, absence, filled.slots, &filled.saved);
                    self.room.loaded.fetch_add(1, Ordering::Relaxed);
                    self.room.kick_if_scarce();
                    return Ok(());
                }
                // Its objects may have been removed meanwhile.
                Err(_) if self.newest.csn() != stored.csn => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read(&self, stored: &Stored, rows: &Rows, number: u64) -> Result<Filled, FaultError> {
        let key = PageKey::Rows {
            table: rows.table,
            chunk: number,
        };
        let chain = stored.directory.get(&key)?;
        let packed = chain.as_ref().map_or(0, Chain::len_bytes);
        let guess = packed.saturating_mul(UNPACKED).max(rows.loaded_bytes());
        self.wait_for_room(guess + CHUNK_BYTES as u64)?;
        let mut reader = PageReader::new(Arc::clone(&self.home));
        read_chunk(&mut reader, &key, chain.as_ref(), stored.csn, self.memory).map_err(|why| {
            match why {
                Unreadable::Page(error) => error.into(),
                Unreadable::Row(slot, why) => {
                    let place = chain.as_ref().map(|chain| {
                        let at = chain.base();
                        format!("object {}, offset {}", at.object, at.offset)
                    });
                    FaultError::Damaged(format!(
                        "slot {slot} of {key} ({}) is damaged: {why}",
                        place.unwrap_or_default()
                    ))
                }
            }
        })
    }

    /// Blocks until there is room.
    fn wait_for_room(&self, bytes: u64) -> Result<(), FaultError> {
        if self.memory.left_bytes(false) >= bytes {
            return Ok(());
        }
        let want = self.room.want(bytes, false);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let outcome = loop {
            match want.poll(&waker) {
                Poll::Ready(outcome) => break outcome,
                Poll::Pending => std::thread::park(),
            }
        };
        match outcome {
            Err(_) if self.memory.left_bytes(true) >= bytes => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Brings in whatever is absent.
pub(crate) struct Loads {
    pub(crate) chunks: Arc<ChunkLoader>,
    pub(crate) pages: Arc<Pages>,
}

impl Loader for Loads {
    fn load(&self, wanted: &Wanted) -> Result<(), FaultError> {
        match wanted {
            Wanted::Chunk { rows, number } => self.chunks.load_chunk(rows, *number),
            Wanted::Leaf { index, low } => {
                let pages = &self.pages;
                pages.load_leaf(index.rows.table, index, low, &mut pages.reader())
            }
            // Who waits for room asks for it himself.
            Wanted::Room { .. } => Ok(()),
        }
    }
}
