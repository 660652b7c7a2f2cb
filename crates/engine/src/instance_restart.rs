//! Restarting an instance: what is in memory of its virtual partitions is dropped whole, and comes back from the newest
//! checkpoint and the log when it is asked for, while the other instances go on.
//!
//! What goes are the rows of its partitions, of all tables but the system's and temporary ones: slots and all their
//! versions. What stays are the shells of chunks (what checkpoints have of them, 80 bytes each), indexes, and row
//! locks: their tables are shared, or other partitions' entries lie beside. Nothing that was in memory is believed but
//! the shells: what comes back was read from storage ([`crate::logged_chunks`], L5).
//!
//! # The steps
//!
//! 1. The turn for checkpoints is taken; one that is under way is given up. So none looks at chunks meanwhile.
//! 2. The partitions are marked ([`RestartMarks::is_restarting`]): nobody writes or locks a row there from now on, but
//!    who has looked at the mark before.
//! 3. In rounds: the lanes are flushed. Each chunk of the partitions that has something in memory is dropped if all
//!    that is in it is below the horizon ([`crate::version`], `drop_memory`). The transactions that still have versions
//!    in one are condemned, and their owners are told to roll them back, by the caller.
//! 4. When nothing is left the mark goes. After as many rounds as the caller wants it goes in any case, and what was
//!    not dropped stays in memory: that is told, and nothing is lost by it.
//! 5. What went is brought back, by whoever needs it first, and by the caller in the background
//!    ([`Engine::bring_back_instance`]).
//!
//! # Why no commit is lost, and none comes back
//!
//! - A transaction commits with all its versions or with none: no version of one in flight is dropped. The restart
//!   waits until it has committed, and is durable, or is rolled back, by its own owner. So none is half in memory.
//! - A condemned one cannot commit ([`TxnState::condemn`]): where there are several instances the owner closes the
//!   state before he commits, and of the two the first wins. If the owner has, the transaction is as any that was
//!   quicker.
//! - What is dropped is below the horizon: durable, with all that it depends on, so it is in the log that the reload
//!   reads. Acknowledged or not, it is in the state that comes back, and what was rolled back is in no log.
//! - Rows without versions in flight need no owner: they are what the log says.
//!
//! # Old snapshots
//!
//! A snapshot may need a version that a newer one has superseded, and only memory had that. Before anything of a
//! partition is dropped its *floor* is raised to the horizon of that moment: all that goes was superseded below. So a
//! snapshot at or above the floor needs nothing of it, and one below is told
//! ([`crate::FaultError::InstanceRestarted`]) wherever it can miss something:
//! - where it finds a row absent: it waits for the row, and the wait fails ([`crate::page_fault`]);
//! - where a row has come back, and no version of it is visible: an older one may have been, or the row was deleted.
//!   Where one is visible it is the newest of all, and what it would have seen;
//! - where it looks for the newest version of a row that it has come to before: the row's number may be another row's
//!   ([`crate::Txn::read_newest_outside`]);
//! - where it looks at an index: the entry of a version that went is a surplus one, and may be gone by now. In whatever
//!   partition it is looked for, its row may lie in any other, as rows stay where they are when their distribution key
//!   changes. So of all indexes of a divided table the highest floor counts.
//!
//! Who comes to see what is dropped sees the floor as well: both are written before the slots are taken out, one after
//! the other, sequentially consistent, and entries go after that, under their leaf's latch.
//!
//! New snapshots are at or above the horizon, so they are in order again as soon as the restart is through.
//!
//! Does not: tell sessions anything, choose when, or run a thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use logstead_types::{Csn, InstanceId, PartitionId, Rid};
use parking_lot::MutexGuard;

use crate::engine::{Engine, EngineInner};
use crate::load::has_plenty;
use crate::logged_chunks::LoggedChunk;
use crate::partition::{RestartMarks, VIRTUAL_PARTITIONS};
use crate::rows::TableRows;
use crate::table::Table;
use crate::txn::is_of_users;
use crate::txn_id::TxnId;
use crate::txn_state::TxnState;
use crate::version::{CHUNK_SLOTS, Guard, KeptChunk};

#[cfg(test)]
mod tests;

/// The time between two rounds.
const ROUND: Duration = Duration::from_millis(1);
/// So long it waits for the checkpoint that it has given up.
const INTERRUPT_MAX: Duration = Duration::from_secs(30);

/// Marks partitions while it lives.
struct RestartGate<'m>(&'m RestartMarks);

impl<'m> RestartGate<'m> {
    fn close(marks: &'m RestartMarks, partitions: u64) -> RestartGate<'m> {
        marks.set_restarting(partitions);
        RestartGate(marks)
    }
}

impl Drop for RestartGate<'_> {
    fn drop(&mut self) {
        self.0.set_restarting(0);
    }
}

/// Why an instance was not restarted, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// There is only one.
    #[error("the engine has one instance")]
    OneInstance,
    /// There is none with this number.
    #[error("instance {0} does not exist")]
    NoInstance(InstanceId),
    /// Another restart is under way, or the engine has just started and is not through, or a checkpoint does not end.
    #[error("{0}")]
    Busy(&'static str),
    /// Transactions do not end, or the log is not written: so many chunks stay in memory, and everything is served.
    #[error(
        "transactions did not end in time: {chunks} chunks of the instance are still in memory"
    )]
    InTheWay {
        /// Chunks that stay.
        chunks: usize,
    },
}

/// Who is in the way of a restart, in one of its rounds.
#[derive(Clone, Copy, Debug)]
pub struct RestartRound<'r> {
    /// Transactions that cannot commit any more and have not been rolled back.
    pub condemned: &'r BTreeSet<TxnId>,
    /// The round, from 0 on; they are about a millisecond apart.
    pub number: usize,
}

/// What was dropped of an instance.
pub struct DroppedInstance {
    /// Rows that were in memory.
    pub rows: u64,
    /// Bytes that they took, with their older versions.
    pub bytes: u64,
    /// Chunks of which only the log has all.
    pub chunks_logged: u64,
    /// Until all of it could be served again.
    pub took: Duration,
    /// What there is to bring back.
    chunks: Vec<(Arc<Table>, Vec<u64>)>,
}

impl std::fmt::Debug for DroppedInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DroppedInstance")
            .field("rows", &self.rows)
            .field("bytes", &self.bytes)
            .field("chunks", &self.chunks())
            .finish_non_exhaustive()
    }
}

impl DroppedInstance {
    /// Chunks that were dropped.
    pub fn chunks(&self) -> u64 {
        let chunks = self.chunks.iter().map(|(_, numbers)| numbers.len() as u64);
        chunks.sum()
    }
}

/// The chunks of some partitions that have something in memory.
fn chunks_in_memory(inner: &EngineInner, partitions: u64) -> Vec<(Arc<Table>, Vec<u64>)> {
    let mut tables: Vec<Arc<Table>> = inner.tables.read().values().cloned().collect();
    tables.retain(|table| is_of_users(&table.rows) && !table.rows.stays());
    tables.sort_unstable_by_key(|table| table.id());
    let is_one = |partition: PartitionId| partitions & (1 << partition.0) != 0;
    tables.retain(|table| table.is_divided() || is_one(table.rows.home_partition()));
    let chunks_of = |table: &Arc<Table>| {
        let rows = &table.rows;
        let numbers = (0..rows.chunk_end()).filter(|number| {
            is_one(partition_of_chunk(rows, *number))
                && rows.chunk(*number).is_some_and(|chunk| chunk.is_present())
        });
        numbers.collect::<Vec<u64>>()
    };
    let chunks = tables.into_iter().map(|table| {
        let numbers = chunks_of(&table);
        (table, numbers)
    });
    chunks.filter(|(_, numbers)| !numbers.is_empty()).collect()
}

/// The virtual partition of a chunk.
fn partition_of_chunk(rows: &TableRows, number: u64) -> PartitionId {
    rows.partition_of(Rid(number * CHUNK_SLOTS as u64))
}

/// A restart that is under way.
struct Restart<'e> {
    inner: &'e EngineInner,
    dropped: DroppedInstance,
}

impl Restart<'_> {
    /// Drops what may go of some chunks, and gives those that stay. Notes who is in the way.
    fn drop_some(
        &mut self,
        left: Vec<(Arc<Table>, Vec<u64>)>,
        condemned: &mut BTreeSet<TxnId>,
    ) -> Vec<(Arc<Table>, Vec<u64>)> {
        let below = self.inner.horizon().get();
        let mut stay = Vec::new();
        for (table, numbers) in left {
            // Nobody needs its rows any more but who has it: it goes as a whole with the last of them.
            if table.is_dropped() {
                continue;
            }
            let (mut gone, mut kept) = (Vec::new(), Vec::new());
            for number in numbers {
                match self.drop_chunk(&table, number, below, condemned) {
                    Ok(()) => gone.push(number),
                    Err(KeptChunk::Absent) => {}
                    Err(KeptChunk::InUse) => kept.push(number),
                }
            }
            if !kept.is_empty() {
                stay.push((Arc::clone(&table), kept));
            }
            if !gone.is_empty() {
                let known = &mut self.dropped.chunks;
                match known.iter_mut().find(|(of, _)| Arc::ptr_eq(of, &table)) {
                    Some((_, numbers)) => numbers.append(&mut gone),
                    None => known.push((table, gone)),
                }
            }
        }
        stay
    }

    fn drop_chunk(
        &mut self,
        table: &Table,
        number: u64,
        below: Csn,
        condemned: &mut BTreeSet<TxnId>,
    ) -> Result<(), KeptChunk> {
        let rows = &table.rows;
        let chunk = rows.chunk(number).ok_or(KeptChunk::Absent)?;
        // Of one that was brought in with a damaged page memory is all that has some of its rows.
        if !rows.doubts.slots(number).is_empty() {
            return Err(KeptChunk::Absent);
        }
        let newest = self.inner.newest.get();
        let is_stored = newest.has_table(table.id());
        let in_flight = |state: &TxnState| {
            if state.condemn() {
                condemned.insert(state.id());
            }
        };
        let goes = |is_logged: bool| {
            let restarts = &self.inner.instances.restarts;
            restarts.raise(partition_of_chunk(rows, number), below);
            if !is_logged {
                return;
            }
            let without_table = (!is_stored).then_some(newest.csn);
            let totals = &self.inner.memory_queue.logged;
            let note = LoggedChunk::of_restart(below, without_table, totals, rows.memory());
            rows.logged.keep(number, note);
        };
        // A guard each: what was dropped is not to be held back by who drops.
        let dropped = chunk.drop_memory((below, is_stored), &Guard::pin(), in_flight, goes)?;
        let first = number * CHUNK_SLOTS as u64;
        for slot in dropped.deleted.iter() {
            rows.free_rid(Rid(first + slot as u64));
        }
        self.dropped.rows += dropped.rows as u64;
        self.dropped.bytes += dropped.bytes as u64;
        self.dropped.chunks_logged += u64::from(dropped.is_logged);
        Ok(())
    }
}

impl Engine {
    /// Drops what an instance has in memory, and ends the transactions that are in the way: `in_the_way` is told of
    /// them, in each round as long as there are some, and has their owners roll them back. Blocks until it is through,
    /// or has given up after so many rounds, a millisecond each: for threads of their own, never for a worker's.
    ///
    /// # Errors
    /// Nothing was dropped; or, after [`RestartError::InTheWay`], some of it.
    pub fn drop_instance(
        &self,
        instance: InstanceId,
        rounds: usize,
        mut in_the_way: impl FnMut(RestartRound<'_>),
    ) -> Result<DroppedInstance, RestartError> {
        let inner = self.inner();
        let instances = &inner.instances;
        if !instances.is_divided() {
            return Err(RestartError::OneInstance);
        }
        if usize::from(instance.0) >= instances.count() {
            return Err(RestartError::NoInstance(instance));
        }
        let marks = &instances.restarts;
        let another = RestartError::Busy("another instance is being restarted");
        let _only = marks.turn.try_lock().ok_or(another)?;
        let begun = inner.env.clock.monotonic();
        let _turn = self.interrupt_checkpoints()?;
        let owned = (0..VIRTUAL_PARTITIONS).map(PartitionId);
        let owned = owned.filter(|partition| instances.of_partition(*partition) == instance);
        let partitions = owned.fold(0, |set, partition| set | 1u64 << partition.0);
        let gate = RestartGate::close(marks, partitions);
        let mut restart = Restart {
            inner,
            dropped: DroppedInstance {
                rows: 0,
                bytes: 0,
                chunks_logged: 0,
                took: Duration::ZERO,
                chunks: Vec::new(),
            },
        };
        let mut left = chunks_in_memory(inner, partitions);
        for number in 0..rounds {
            let mut condemned = BTreeSet::new();
            left = restart.drop_some(left, &mut condemned);
            if left.is_empty() {
                break;
            }
            in_the_way(RestartRound {
                condemned: &condemned,
                number,
            });
            inner.path.flush_all();
            if number + 1 < rounds {
                logstead_env::sleep(ROUND);
            }
        }
        drop(gate);
        Guard::pin().flush();
        if !left.is_empty() {
            let chunks = left.iter().map(|(_, numbers)| numbers.len()).sum();
            return Err(RestartError::InTheWay { chunks });
        }
        restart.dropped.took = inner.env.clock.monotonic().since(begun);
        Ok(restart.dropped)
    }

    /// Takes the turn for checkpoints, when the start is through.
    fn interrupt_checkpoints(&self) -> Result<MutexGuard<'_, ()>, RestartError> {
        let checkpoints = &self.inner().checkpoints;
        let unending = RestartError::Busy("a checkpoint that was given up does not end");
        let turn = checkpoints.interrupt(INTERRUPT_MAX).ok_or(unending)?;
        if checkpoints.base.lock().is_none() {
            return Err(RestartError::Busy("a checkpoint is being taken"));
        }
        let tables = self.inner().tables.read();
        if tables.values().any(|table| table.rows.tails.is_starting()) {
            return Err(RestartError::Busy("the start is not through yet"));
        }
        Ok(turn)
    }

    /// Brings back what was dropped, as long as there is plenty of memory and `goes_on` says so; tells how many bytes
    /// that were. What somebody needs meanwhile comes before. Blocks: for threads of their own.
    pub fn bring_back_instance(&self, dropped: DroppedInstance, goes_on: impl Fn() -> bool) -> u64 {
        let inner = self.inner();
        let mut reader = inner.chunks.reader();
        let mut bytes = 0;
        for (table, numbers) in dropped.chunks {
            for number in numbers {
                if table.is_dropped() {
                    break;
                }
                if !goes_on() || !has_plenty(inner.memory()) {
                    return bytes;
                }
                // What cannot be read is told to who needs it.
                let read = inner.chunks.load_whole(&table.rows, number, &mut reader);
                bytes += read.unwrap_or(0);
            }
        }
        bytes
    }
}
