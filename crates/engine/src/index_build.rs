//! Filling an index while writers go on: CREATE INDEX on a live table.
//!
//! [`Engine::create_index`](crate::Engine::create_index) attaches the index first; [`Txn::build_index_step`] then goes
//! through the rows. Nobody is kept out in between.
//!
//! **No entry is missing.** A writer looks at the table's indexes once per write, holding the lock that attaching takes
//! exclusively, and within that look (an update) or before it (an insert) it installs its version. If the look came
//! after the attachment, the writer inserts the entry itself. If it came before, the version was in its chain before
//! the attachment and hence before the scan, which inserts an entry for every version it finds in a chain: older ones
//! too, for older snapshots, and those in flight. So nobody has to wait for the transactions that were in flight when
//! the index was attached, nor for old snapshots.
//! A version that is not found in a chain any more is seen by no snapshot. A row number above the end that the last
//! step read belongs to an insert whose look came later than that (numbers are handed out before versions are
//! installed).
//!
//! **No entry outlives its use.** A version may be unlinked (undone, collected, or its row buried and its number
//! used again) between the moment the scan found it and the moment its entry is in: whoever unlinked it took the
//! entry out before it was there. So the scan looks at the chain again afterwards. What it does not find there any more
//! was unlinked before its entry was inserted or after that; in the first case the scan takes the entry out again, by
//! the same rule as the collector (no version of the chain has the key, looked at under the leaf's lock), in the
//! second it finds it again here and whoever unlinks it finds the entry.
//! Collectors compute keys only if some version of a chain says that its keys differ from its predecessor's; versions
//! from before the attachment cannot know. The scan tells them, under the collectors' own lock: they unlink the
//! predecessor before that, and the scan never meets it, or after that, and know.
//!
//! **No key is there twice.** The *candidates* of a row are the versions that may be its live one: those in flight and
//! the newest committed one. The scan inserts and checks the entries of all candidates, as writers do for theirs:
//! version first, then entry and check, atomic per key (T11). Take two rows that end up live with one key. Each was
//! checked when it had a candidate with the key and has had one ever since; whoever checked second found the other's
//! entry and, in its chain, a candidate with the key. If that was the scan it waits (the other is in flight, or the
//! row itself is) or fails; if it was a writer its write failed or waits.

use std::sync::Arc;

use logstead_types::Rid;
use smallvec::SmallVec;

use crate::error::WriteError;
use crate::index::{Index, KeyKind};
use crate::index_entries::KeyBuffers;
use crate::index_entries::chain_has_key;
use crate::rows::AbsentRow;
use crate::table::Table;
use crate::txn::Txn;
use crate::txn::write::{ExaminedVersions, TxnWrites, UniqueChecker};
use crate::txn_state::TxnState;
use crate::version::{CHUNK_SLOTS, Guard, SlotsAbsent, VersionKind, VersionRef, WriterStatus};
use crate::wait_cause::LockConflict;

/// A row's versions, as the scan found them.
struct Found<'g> {
    head: VersionRef<'g>,
    /// All versions that hold a row, newest first.
    rows: SmallVec<[VersionRef<'g>; 4]>,
    /// How many of them, from the newest on, may be the live one.
    candidates: usize,
    /// The other transaction that has versions in flight.
    in_flight: Option<Arc<TxnState>>,
}

impl Found<'_> {
    /// The candidate is in the way, or is not as it must be: wait if that is not settled, else give `error`. `None`:
    /// the row has changed meanwhile and is to be looked at again.
    fn unless_in_flight(
        &self,
        table: &Table,
        rid: Rid,
        guard: &Guard,
        error: WriteError,
    ) -> Option<WriteError> {
        // A blocker made after a rollback to a savepoint would wait for a waking that was. And a row that has given up
        // its key since it was looked at is no duplicate of the one that took it.
        let error = match &self.in_flight {
            Some(writer) => WriteError::Blocked(LockConflict::outcome(writer.clone())),
            None => error,
        };
        (table.rows.head(rid, guard) == Ok(Some(self.head))).then_some(error)
    }
}

/// What became of a row.
enum Step {
    Done,
    /// It changed meanwhile.
    Retry,
}

/// What an entry takes, roughly: asked for ahead of each step. What it really takes is counted as it is allocated.
const BUILT_ENTRY_BYTES: usize = 48;

impl Txn {
    /// Fills an index that [`Engine::create_index`](crate::Engine::create_index) has just attached. For who has the
    /// table to itself, and blocks on what is not in memory: with writers about use [`Txn::build_index_step`], which
    /// can go on after it was blocked.
    pub fn build_index(
        &mut self,
        table: &Arc<Table>,
        index: &Arc<Index>,
    ) -> Result<(), WriteError> {
        let mut next = 0;
        loop {
            match self.build_index_step(table, index, &mut next, 1 << 14) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(WriteError::Absent(absent)) => absent.load_here(self)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// A step of filling an index that [`Engine::create_index`](crate::Engine::create_index) has attached: up to
    /// `budget` rows, from row number `next` (at first 0) on, which it moves. True if there are more. Needs no table
    /// lock: writers go on between and during the steps, and maintain the index themselves. Once a step has given
    /// false, every snapshot, older ones included, finds all it sees through the index, and a unique index holds every
    /// key once.
    ///
    /// On [`WriteError::Blocked`] a unique key is in question that a transaction in flight decides about, on
    /// [`WriteError::Absent`] something is not in memory: wait, then
    /// call again with `next` as it is; what was done before stays done. On [`WriteError::Unique`] and
    /// [`WriteError::NoKey`] the index cannot be made: detach it with
    /// [`Engine::drop_index`](crate::Engine::drop_index), as after any other error, and when the transaction rolls
    /// back.
    ///
    /// While a unique index is being built, writers are held to it: a write that makes a duplicate fails with
    /// [`WriteError::Unique`], though the index may yet come to nothing (as with PostgreSQL's CREATE INDEX
    /// CONCURRENTLY). Queries must not use the index before it is complete.
    ///
    /// The transaction's own uncommitted rows are taken in: a duplicate among them fails.
    pub fn build_index_step(
        &mut self,
        table: &Arc<Table>,
        index: &Arc<Index>,
        next: &mut u64,
        budget: u64,
    ) -> Result<bool, WriteError> {
        self.start_work();
        // Again in each step: rows may come while the scan is under way.
        let end = table.rows.rid_end();
        let stop = end.min(next.saturating_add(budget));
        let rows = usize::try_from(stop.saturating_sub(*next)).unwrap_or(usize::MAX);
        self.admit_bytes(rows.saturating_mul(BUILT_ENTRY_BYTES), self.uses_reserve)?;
        loop {
            *next = table.rows.next_in_use(*next, stop);
            if *next >= stop {
                break;
            }
            // A guard per row: a long scan must not hold back what collectors free.
            let guard = Guard::pin();
            let built = self.build_row(table, index, Rid(*next), &guard);
            if matches!(built, Err(WriteError::Absent(_))) {
                self.build_ahead(table, *next, true);
            }
            match built? {
                Step::Done => *next += 1,
                Step::Retry => continue,
            }
            if self.ahead.is_some() && next.is_multiple_of(CHUNK_SLOTS as u64) {
                self.build_ahead(table, *next, false);
            }
        }
        if *next >= end {
            self.ahead = None;
            index.set_complete();
        }
        Ok(*next < end)
    }

    /// It comes to a chunk, or misses a row.
    #[cold]
    fn build_ahead(&mut self, table: &Arc<Table>, next: u64, misses: bool) {
        let mut ahead = self.ahead.take().unwrap_or_default();
        let (number, end) = (next / CHUNK_SLOTS as u64, table.rows.chunk_end());
        ahead.advance_to_chunk(self.engine(), &table.rows, number, misses, end);
        self.ahead = Some(ahead);
    }

    fn build_row(
        &mut self,
        table: &Table,
        index: &Arc<Index>,
        rid: Rid,
        guard: &Guard,
    ) -> Result<Step, WriteError> {
        if self.worker.simulates_absence(&table.rows) {
            return Err(AbsentRow(rid).of(&table.rows).with_neighbours().into());
        }
        let found = self.find_versions(table, index, rid, guard);
        let found =
            found.map_err(|SlotsAbsent| AbsentRow(rid).of(&table.rows).with_neighbours())?;
        let Some(found) = found else {
            return Ok(Step::Done);
        };
        // That a key was free, or free again, rests on rows it never met.
        self.depends_on_everything();
        let Some(TxnWrites { writer, .. }) = self.work.as_ref() else {
            return Ok(Step::Done);
        };
        // The transaction depends on everything anyway; an error tells of what was examined.
        let mut examined = ExaminedVersions::new(&self.worker);
        let mut outcome = Ok(Step::Done);
        let mut scratch = self.worker.scratch.borrow_mut();
        let KeyBuffers {
            new_key, other_key, ..
        } = &mut *scratch;
        for (at, version) in found.rows.iter().enumerate() {
            let candidate = at < found.candidates;
            new_key.clear();
            let kind = index.key(version.row(), new_key);
            let refused = match kind {
                KeyKind::Absent => continue,
                KeyKind::Failed if candidate => Err(WriteError::NoKey { index: index.id() }),
                KeyKind::Failed => continue,
                KeyKind::Unique if candidate && index.is_unique() => {
                    let length = new_key.len();
                    Index::complete(new_key, rid);
                    let judge = UniqueChecker {
                        table,
                        index,
                        writer,
                        worker: &self.worker,
                        guard,
                    };
                    let key = &new_key[..length];
                    index.insert_and_check(new_key, |other| {
                        judge.judge(other, key, &mut examined, other_key)
                    })
                }
                KeyKind::Unique | KeyKind::Nullable => {
                    Index::complete(new_key, rid);
                    index.insert(new_key).map_err(WriteError::from)
                }
            };
            match refused {
                Ok(()) => {}
                Err(later @ (WriteError::Blocked(_) | WriteError::Absent(_))) => {
                    outcome = Err(later);
                    break;
                }
                Err(error) => {
                    outcome = match found.unless_in_flight(table, rid, guard, error) {
                        Some(error) => Err(error),
                        None => Ok(Step::Retry),
                    };
                    break;
                }
            }
        }
        // Also when it is given up half way: what went in meanwhile must not outlive its version.
        self.take_back_unlinked(table, index, rid, &found, &mut scratch, guard);
        let path = &self.worker.inner().path;
        self.deps.cover_all_of(&examined.deps, &**path);
        outcome
    }

    /// A row's versions; `None` if it has none. Tells collectors of keys that change within its chain.
    fn find_versions<'g>(
        &mut self,
        table: &Table,
        index: &Arc<Index>,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<Found<'g>>, SlotsAbsent> {
        let Some((chunk, slot)) = table.rows.slot(rid) else {
            return Ok(None);
        };
        'again: loop {
            let Some(mut head) = chunk.head(slot, guard)? else {
                return Ok(None);
            };
            // With a single version there is nothing to tell, and most rows have a single version.
            let prune = head.next(guard).is_some().then(|| chunk.prune_lock());
            if prune.is_some() {
                match chunk.head(slot, guard)? {
                    Some(now) => head = now,
                    None => return Ok(None),
                }
            }
            let mut found = Found {
                head,
                rows: SmallVec::new(),
                candidates: 0,
                in_flight: None,
            };
            let mut settled = false;
            let mut at = Some(head);
            while let Some(version) = at {
                at = version.next(guard);
                if version.kind() == VersionKind::LockOnly {
                    continue;
                }
                let candidate = !settled;
                match version.writer_status() {
                    _ if settled => {}
                    // Nothing below it comes back without taking it and the index away too.
                    WriterStatus::InProgress(_) if self.is_own(version) => settled = true,
                    WriterStatus::Committed(csn) => {
                        settled = true;
                        // Examined, so read, a tombstone included (T1).
                        self.cover(csn, &table.rows, rid);
                    }
                    WriterStatus::InProgress(state) => {
                        match (state.committed(), version.writer()) {
                            (Some(csn), _) => {
                                settled = true;
                                self.cover(csn, &table.rows, rid);
                            }
                            (None, Some(writer)) => found.in_flight = Some(writer),
                            // It ended while we looked.
                            (None, None) => continue 'again,
                        }
                    }
                }
                if version.kind() != VersionKind::Tombstone {
                    found.rows.push(version);
                    found.candidates += usize::from(candidate);
                }
            }
            if let Some(prune) = prune {
                let mut scratch = self.worker.scratch.borrow_mut();
                let KeyBuffers {
                    old_key, new_key, ..
                } = &mut *scratch;
                for pair in found.rows.windows(2) {
                    new_key.clear();
                    old_key.clear();
                    let new = index.key(pair[0].row(), new_key);
                    let old = index.key(pair[1].row(), old_key);
                    if new != old || (new.has_entry() && new_key != old_key) {
                        prune.mark_keys_changed(pair[0]);
                    }
                }
            }
            return Ok(Some(found));
        }
    }

    /// Takes out entries of versions that were unlinked while the scan looked at them.
    fn take_back_unlinked(
        &self,
        table: &Table,
        index: &Arc<Index>,
        rid: Rid,
        found: &Found<'_>,
        scratch: &mut KeyBuffers,
        guard: &Guard,
    ) {
        let mut there: SmallVec<[VersionRef<'_>; 8]> = SmallVec::new();
        // Not in memory: what is in no chain any more has left a surplus entry.
        let Ok(mut at) = table.rows.head(rid, guard) else {
            return;
        };
        while let Some(version) = at {
            there.push(version);
            at = version.next(guard);
        }
        for version in found.rows.iter().filter(|v| !there.contains(v)) {
            let KeyBuffers {
                new_key, other_key, ..
            } = scratch;
            new_key.clear();
            if !index.key(version.row(), new_key).has_entry() {
                continue;
            }
            let length = new_key.len();
            Index::complete(new_key, rid);
            let key = &new_key[..length];
            index.remove_if(new_key, || {
                !chain_has_key(&table.rows, rid, index, key, other_key, guard)
            });
        }
    }
}
