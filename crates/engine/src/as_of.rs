//! The past: the database as a restore point has it, for transactions that only read.
//!
//! An [`AsOfDatabase`] is a set of tables that stand beside those of the present. All of their rows and all leaves of
//! their indexes are absent at first, and come like anything that is absent, but from the point's own record
//! (`NewestCheckpoint::of`): the same loader threads, the same memory budget, the same evictor. Ordinary transactions
//! read them.
//!
//! Invariants:
//! - *What is in it never changes.* A write is refused ([`WriteError::Past`](crate::WriteError::Past)), no checkpoint
//!   and no collector knows its tables, and what is read takes nothing out of its indexes. So everything in it can be
//!   evicted at any time, and is the same when it comes back.
//! - *Every snapshot sees all of it, and nothing else.* Its rows were written below its CSN, which the horizon had
//!   reached when the checkpoint was published; a snapshot of this life is at or above that. So which snapshot reads it
//!   does not matter, none is kept for it, and nothing that is read there is waited for.
//! - *It stays while somebody has it.* Its record is held ([`logstead_checkpoint::Holds`]) from before it is looked at
//!   until the last [`Arc`] is dropped, whatever retention does, and though its name be dropped. What it needs is
//!   removed by the next collection after that; after a crash by the first one of the next life.
//!
//! All sessions at one point share one. When nobody uses it any more it is kept for [`KEPT`]; under want of memory it
//! goes at once.
//!
//! Finding the point that is asked for and opening it is [`Engine::past`](crate::Engine::past), in `past`.
//!
//! An index that the record does not list, or with keys that are made in another way today, is not there: who plans
//! must do without.
//!
//! Does not: know the catalog. Who opens one reads that from its tables and keeps it with it ([`AsOfDatabase::note`]).

use crate::page_store::base::RestorePointSource;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::FixedState;
use logstead_checkpoint::{CheckpointRecord, ChunkSize, Hold};
use logstead_env::{Clock, Instant};
use logstead_types::{Csn, IndexId, TableId};
use parking_lot::Mutex;

use crate::fault_error::FaultError;
use crate::index::{Index, KeyExtractor};
use crate::memory::Memory;
use crate::page_store::NOT_RESTORED;
use crate::table::Table;

/// A past that nobody uses stays open for so long: who looks at it by hand, or through a pool of connections, comes
/// back within a minute, and would have its catalog and pages read again. Longer would keep the space of a point that
/// was dropped for no good reason.
const KEPT: Duration = Duration::from_secs(60);

/// An index that a table of the past is to have once somebody needs the table.
pub(crate) struct AsOfIndex {
    id: IndexId,
    unique: bool,
    extractor: Arc<dyn KeyExtractor>,
}

pub(crate) struct AsOfTable {
    table: Arc<Table>,
    /// Those that are not attached yet.
    pub(crate) indexes: Mutex<Vec<AsOfIndex>>,
}

pub(crate) struct AsOfTables {
    record: CheckpointRecord,
    pub(crate) tables: HashMap<TableId, AsOfTable, FixedState>,
}

/// The database as of a restore point. See the module's documentation.
pub struct AsOfDatabase {
    /// Tells it from others of this life; none has 0, which stands for the present.
    pub(crate) number: u64,
    pub(crate) names: Vec<String>,
    pub(crate) hold: Hold,
    pub(crate) place: Arc<RestorePointSource>,
    pub(crate) workers: usize,
    pub(crate) memory: &'static Memory,
    pub(crate) opened: OnceLock<AsOfTables>,
    pub(crate) notes: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for AsOfDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Past({})", self.csn())
    }
}

impl AsOfDatabase {
    /// It holds what was committed below this.
    pub fn csn(&self) -> Csn {
        self.hold.record().csn
    }

    /// When its checkpoint was taken, in microseconds since 2000-01-01 00:00 UTC.
    pub fn taken_at_micros(&self) -> i64 {
        self.hold.record().taken_at_micros
    }

    /// Its names, if it was made by hand, as they were when it was opened.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The table with this number; none if there was none then, or if it is not opened.
    pub fn table(&self, id: TableId) -> Option<Arc<Table>> {
        let table = self.opened.get()?.tables.get(&id)?;
        Some(Arc::clone(&table.table))
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let tables = self.opened.get().into_iter();
        tables.flat_map(|opened| opened.tables.values().map(|table| &table.table))
    }

    /// Says how an index of a table is made; it comes with [`AsOfDatabase::indexed`]. False: the point does not have it
    /// so that it can be used.
    pub fn define_index(
        &self,
        table: TableId,
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
    ) -> bool {
        let Some(opened) = self.opened.get() else {
            return false;
        };
        let (info, table) = (opened.record.index(table, id), opened.tables.get(&table));
        let (Some(info), Some(table)) = (info, table) else {
            return false;
        };
        if info.keys == NOT_RESTORED || info.keys != extractor.keys() {
            return false;
        }
        let mut indexes = table.indexes.lock();
        if table.table.index(id).is_none() && indexes.iter().all(|index| index.id != id) {
            indexes.push(AsOfIndex {
                id,
                unique,
                extractor,
            });
        }
        true
    }

    /// Keeps something with it, as long as it is open; the first one stays.
    pub fn note(&self, note: Arc<dyn Any + Send + Sync>) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(self.notes.get_or_init(|| note))
    }

    /// What was kept with it.
    pub fn noted(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.notes.get().cloned()
    }

    /// Reads what it is made of, or attaches a table's indexes. Blocks, on a loader's thread; one at a time for each.
    pub(crate) fn load(&self, table: Option<TableId>) -> Result<(), FaultError> {
        let opened = match self.opened.get() {
            Some(opened) => opened,
            None => {
                let opened = self.open()?;
                // Another loader's is as good.
                self.opened.get_or_init(|| opened)
            }
        };
        let Some(table) = table.and_then(|id| opened.tables.get(&id)) else {
            return Ok(());
        };
        loop {
            let (index, unique, extractor) = match table.indexes.lock().last() {
                None => return Ok(()),
                Some(next) => (next.id, next.unique, Arc::clone(&next.extractor)),
            };
            let rows = Arc::clone(&table.table.rows);
            let restored = Index::restored(index, unique, extractor, rows);
            restored.set_complete();
            table.table.attach(restored);
            table.indexes.lock().retain(|other| other.id != index);
        }
    }

    fn open(&self) -> Result<AsOfTables, FaultError> {
        let (place, held) = (&self.place, self.hold.record());
        let record = CheckpointRecord::read(
            place.home.objects.as_ref(),
            place.database,
            held.object,
            held.crc,
        )?;
        if record.chunk_size != ChunkSize::default() {
            return Err(FaultError::Older);
        }
        let directory = place.newest.beside(&record);
        let tables = record.tables.iter().map(|info| {
            let rows = (directory.clone(), info.rid_end);
            let table = Table::of_past(info.table, self.workers, self.memory, rows);
            if let Some(divided) = record.divided(info.table) {
                table.rows.begin_divided_at(&divided.partitions);
            }
            let table = AsOfTable {
                table: Arc::new(table),
                indexes: Mutex::default(),
            };
            (info.table, table)
        });
        Ok(AsOfTables {
            tables: tables.collect(),
            record,
        })
    }
}

/// A past that is open, and whether anybody has it.
pub(crate) struct OpenAsOfDatabase {
    pub(crate) past: Arc<AsOfDatabase>,
    /// Since when nobody but this list has it, as far as it was looked at.
    pub(crate) unused_since: Option<Instant>,
}

/// The pasts that are open.
pub(crate) struct AsOfDatabases {
    pub(crate) place: Arc<RestorePointSource>,
    pub(crate) open: Mutex<Vec<OpenAsOfDatabase>>,
    pub(crate) opened: AtomicU64,
    pub(crate) closed: AtomicU64,
}

impl AsOfDatabases {
    pub(crate) fn new(place: RestorePointSource) -> AsOfDatabases {
        AsOfDatabases {
            place: Arc::new(place),
            open: Mutex::default(),
            opened: AtomicU64::new(0),
            closed: AtomicU64::new(0),
        }
    }

    /// Those that are open, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<AsOfDatabase>> {
        let open = self.open.lock();
        open.iter().map(|kept| Arc::clone(&kept.past)).collect()
    }

    /// Closes those that nobody has used for long enough, or, if memory is wanted, that nobody uses.
    pub(crate) fn tidy(&self, clock: &dyn Clock, is_wanted: bool) {
        let mut unused = Vec::new();
        let mut open = self.open.lock();
        if open.is_empty() {
            return;
        }
        let now = clock.monotonic();
        let mut at = 0;
        while let Some(kept) = open.get_mut(at) {
            // Only from this list does anybody get it who has not got it already, and the list is locked.
            if Arc::strong_count(&kept.past) > 1 {
                kept.unused_since = None;
                at += 1;
                continue;
            }
            let since = *kept.unused_since.get_or_insert(now);
            if is_wanted || now.since(since) >= KEPT {
                unused.push(open.remove(at));
            } else {
                at += 1;
            }
        }
        drop(open);
        self.closed
            .fetch_add(unused.len() as u64, Ordering::Release);
    }
}
