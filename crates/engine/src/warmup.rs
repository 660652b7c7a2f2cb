//! Bringing in all that is absent, in the background, and how much there is of it. What was in memory before comes
//! first, if that is known ([`crate::prewarm`]).
//!
//! Invariant: it takes no room that somebody waits for.

use crate::engine::Engine;
use crate::fault_error::FaultError;
use crate::load::has_plenty;
use crate::prewarm::PrewarmList;
use crate::table::Table;
use crate::version::SlotSet;
use logstead_env::JoinHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What comes in the background, so that few have to wait for it.
impl Engine {
    /// Brings in what is absent, table by table, lowest rows first, as long as there is room below the evictor's marks
    /// and `go_on` says so. Blocks: for threads of their own. What is damaged is left, and told to who needs it.
    pub fn bring_all(&self, go_on: impl Fn() -> bool) -> Result<(), FaultError> {
        let tables = self.tables_to_warm();
        self.bring_needed(&tables, &go_on)?;
        self.bring_rows(&tables, &go_on)
    }

    /// All but temporary ones, by their numbers.
    fn tables_to_warm(&self) -> Vec<Arc<Table>> {
        let mut tables = self.tables();
        tables.retain(|table| !table.is_temporary());
        tables.sort_unstable_by_key(|table| table.id());
        tables
    }

    /// May the warm-up go on after this error?
    fn is_left(&self, error: &FaultError) -> bool {
        // What a replica cannot read is probably gone, and it ends.
        self.inner().replica_base.is_none() && matches!(error, FaultError::Damaged(_))
    }

    /// Brings in what others would have to wait for, or what cannot be read later.
    fn bring_needed(
        &self,
        tables: &[Arc<Table>],
        go_on: &impl Fn() -> bool,
    ) -> Result<(), FaultError> {
        let inner = self.inner();
        let mut reader = inner.chunks.reader();
        // First what the next checkpoint waits for.
        for table in tables {
            let mut next = 0;
            while let Some(number) = table.rows.tails.next(next) {
                if !go_on() || table.is_dropped() || !has_plenty(self.memory()) {
                    break;
                }
                let loaded = inner.read_rows(|| {
                    let chunks = &inner.chunks;
                    chunks.load_tail(&table.rows, number, &mut reader)
                });
                match loaded {
                    Err(error) if is_gone(&error) => break,
                    Err(error) if !self.is_left(&error) => return Err(error),
                    Ok(()) | Err(_) => next = number + 1,
                }
            }
        }
        for table in tables {
            for index in table.indexes() {
                let go_on = || go_on() && !table.is_dropped();
                let (pages, id) = (&inner.pages, table.id());
                let brought = match &inner.replica_base {
                    // What a replica has begun with is gone sooner or later, and leaves are read from nothing else:
                    // they come in whatever room there is, for rows may go.
                    Some(base) => pages
                        .load_all_leaves(
                            id,
                            &index,
                            &mut reader,
                            || inner.chunks.room_for_leaf(),
                            go_on,
                        )
                        .map_err(|error| base.explain(error)),
                    None => {
                        let go_on = || go_on() && has_plenty(self.memory());
                        pages.load_late_leaves(id, &index, &mut reader, go_on)
                    }
                };
                match brought {
                    Err(error) if !self.is_left(&error) => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        if let Some(base) = &inner.replica_base
            && go_on()
        {
            base.note_all_leaves();
        }
        Ok(())
    }

    /// Brings in rows while there is plenty of room.
    fn bring_rows(
        &self,
        tables: &[Arc<Table>],
        go_on: &impl Fn() -> bool,
    ) -> Result<(), FaultError> {
        let inner = self.inner();
        let mut reader = inner.chunks.reader();
        for table in tables {
            for number in 0..table.rows.chunk_end() {
                if !go_on() || table.is_dropped() || !has_plenty(self.memory()) {
                    break;
                }
                let loaded = inner.read_rows(|| {
                    let chunks = &inner.chunks;
                    chunks.load_to_warm(&table.rows, number, &SlotSet::ALL, false, &mut reader)
                });
                match loaded {
                    // Somebody else waits for what room there is.
                    Err(FaultError::OutOfMemory(_)) => return Ok(()),
                    Err(error) if is_gone(&error) => break,
                    Err(error) if !self.is_left(&error) => return Err(error),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

impl Engine {
    /// What [`Warmup`] does, until `stopping` says so.
    fn warm_up(
        &self,
        list: Option<PrewarmList>,
        stopping: &Arc<AtomicBool>,
    ) -> Result<(), FaultError> {
        let go_on = || !stopping.load(Ordering::Relaxed);
        let tables = self.tables_to_warm();
        let needed = self.bring_needed(&tables, &go_on);
        match list {
            Some(list) if needed.is_ok() => self.prewarm_on_threads(&list, stopping),
            Some(_) => self.inner().prewarm.end(),
            None => {}
        }
        needed?;
        self.bring_rows(&tables, &go_on)
    }
}

/// Of a table that was dropped meanwhile nothing comes any more.
fn is_gone(error: &FaultError) -> bool {
    matches!(error, FaultError::TooOld(_))
}

/// Brings in what is absent after a start, on a thread of its own, until it is dropped.
pub struct Warmup {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle>,
}

impl Warmup {
    /// Starts the thread. What `list` names comes first. `ended` hears what came of it, on the thread.
    pub fn start(
        engine: &Engine,
        list: Option<PrewarmList>,
        ended: impl FnOnce(Result<(), FaultError>) + Send + 'static,
    ) -> std::io::Result<Warmup> {
        let stopping = Arc::new(AtomicBool::new(false));
        let (stop, engine) = (Arc::clone(&stopping), engine.clone());
        if let Some(list) = &list {
            let (chunks, leaves) = (list.chunk_count(), list.leaf_count());
            engine.inner().prewarm.expect(chunks, leaves);
        }
        let body = move || ended(engine.warm_up(list, &stop));
        let thread = logstead_env::spawn("warmup", None, body)?;
        Ok(Warmup {
            stopping,
            thread: Some(thread),
        })
    }
}

impl Drop for Warmup {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was told by whoever panicked.
            let _told = thread.join();
        }
    }
}

/// Chunks of all tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCounts {
    /// How many there are.
    pub all: u64,
    /// How many of them are in memory.
    pub present: u64,
    /// How many of the others were changed by the log behind the checkpoint that this life began with: they come in
    /// with its records.
    pub with_tails: u64,
}

impl Engine {
    /// How many chunks there are now, and how many of them are in memory.
    pub fn chunk_counts(&self) -> ChunkCounts {
        let mut counts = ChunkCounts::default();
        for table in self.tables() {
            let (all, present) = table.rows.chunk_counts();
            counts.all += all;
            counts.present += present;
            counts.with_tails += table.rows.tails.count() as u64;
        }
        counts
    }
}
