//! How a transaction ends.
//!
//! Pre-commit, in this order: room in the lane (T12; a large transaction's records go to a side segment first);
//! certification, if it is SERIALIZABLE; the lane's lock; Committing; `reserved` and the draw; the entry into the
//! lane; `reserved` cleared, the lane's lock given back; row locks without versions taken away; Precommitted: the
//! versions are visible and the row locks free. Then versions are stamped, hooks run, waiters are woken, table locks
//! are given back.
//!
//! While `reserved` is published nothing fails, waits or allocates: [`logstead_commit`]'s path says what that is
//! worth, and what happens to a worker that loses the processor there. From Committing to Precommitted nothing fails,
//! does I/O or parks. Those who meet the transaction's rows wait for it, spinning, and nobody else does. In between,
//! only row locks without versions need a lock: the right to unlink in their chunk, which its holders keep for one
//! row's chain.

use crate::write_set::SPILL_BYTES;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use logstead_commit::{CommitWait, DurabilityProgress, LogFailed, PushBody};
use logstead_env::abort_on_panic;
use logstead_types::Csn;
use logstead_wal::{Lane, NoRoom, RoomRequest, SideRef, SideSegmentWriter};
use parking_lot::Mutex;

use crate::error::CommitError;
use crate::page_store::CheckpointLock;
use crate::stats::add;
use crate::tree::interleave::point;
use crate::txn::row_lock::unshare;
use crate::txn::write::TxnWrites;
use crate::txn::{Outcome, Txn};
use crate::version::Guard;
use crate::worker::WorkerInner;
use crate::write_set::{RowChange, UndoEntry};

/// How often who only removes asks for room on a full disk, after a checkpoint each: others may have taken what it gave
/// back.
const REMOVAL_ATTEMPTS_MAX: u32 = 4;
/// A transaction is Precommitted: visible, its locks free, not yet acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitReceipt {
    /// Its CSN, if it changed anything.
    pub csn: Option<Csn>,
    /// Answer the client when [`Engine::acknowledged`](crate::Engine::acknowledged) of this is ready.
    pub waits_for: CommitWait,
}

/// Why [`Txn::try_precommit`] did not commit.
pub enum TryCommitError {
    /// There is no room now, or too much was written: use [`Txn::precommit`]. Who cannot wait tries again with the
    /// same transaction: one that begins anew does not hear that the disk is full, for what was found before it began
    /// is no answer to it.
    Busy(Box<Txn>),
    /// It failed and is rolled back.
    Failed(CommitError),
}

impl std::fmt::Debug for TryCommitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TryCommitError::Busy(_) => f.write_str("Busy"),
            TryCommitError::Failed(error) => write!(f, "Failed({error:?})"),
        }
    }
}

/// Where the records go.
enum RecordPlacement {
    Inline(logstead_commit::CommitReservation),
    Side(logstead_commit::CommitReservation, Finished),
}

/// A side segment that is durable. It is removed at once unless its entry is pushed (T8).
struct Finished {
    lane: Lane,
    side: SideRef,
    needed: bool,
}

impl Finished {
    /// Its entry is in the lane: the two live and die together from now on.
    fn pushed(mut self) {
        self.needed = true;
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        if !self.needed {
            self.lane.give_up_side_segment(&self.side);
        }
    }
}

/// The outcome of a side segment's write, and who waits for it.
#[derive(Default)]
struct SideSlot {
    result: Option<Result<Finished, NoRoom>>,
    waker: Option<Waker>,
}

/// Future of a side segment's write. If it is dropped, so is what was written.
struct SideWrite(Arc<Mutex<SideSlot>>);

impl Future for SideWrite {
    type Output = Result<Finished, NoRoom>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock();
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn finish_side(lane: &Lane, side: SideSegmentWriter) -> SideWrite {
    let slot = Arc::new(Mutex::new(SideSlot::default()));
    let (told, lane) = (slot.clone(), lane.clone());
    side.finish(Box::new(move |result| {
        let finished = |side| Finished {
            lane,
            side,
            needed: false,
        };
        let result = result.map(finished);
        let waker = {
            let mut slot = told.lock();
            slot.result = Some(result);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }));
    SideWrite(slot)
}

/// Takes place on the commit path, waiting while it is full.
pub(crate) async fn take_room(
    worker: &WorkerInner,
    bytes: usize,
    asked: &mut RoomRequest,
) -> Result<logstead_commit::CommitReservation, NoRoom> {
    let path = &worker.inner().path;
    poll_fn(|cx| path.poll_room(worker.id, bytes, asked, cx.waker())).await
}

/// Puts the CSN into the versions of a transaction that is Precommitted.
fn stamp_versions(work: &TxnWrites, csn: Csn, guard: &Guard) {
    for write in work.buffers.writes.iter().filter(|w| w.what.is_change()) {
        let rows = &work.buffers.tables[write.table as usize].rows;
        if let Some((chunk, slot)) = rows.slot(write.rid) {
            chunk.stamp(slot, &work.writer, csn, guard);
        }
    }
}

pub(crate) fn commit_error(error: NoRoom) -> CommitError {
    match error {
        NoRoom::DiskFull => CommitError::DiskFull,
        NoRoom::Unavailable => CommitError::LogUnavailable,
        NoRoom::UsedUp(what) => CommitError::UsedUp(what),
        NoRoom::Failed(error) => CommitError::LogFailed(LogFailed::new(error.to_string())),
        NoRoom::Full | NoRoom::TooLarge => {
            CommitError::LogFailed(LogFailed::new("the log offers no room for the transaction"))
        }
    }
}

impl Txn {
    /// The lane that the worker pushes to now.
    fn lane(&self) -> Lane {
        let worker = &self.worker;
        worker.inner().path.lane_of(worker.id).clone()
    }

    fn log_size(&self) -> usize {
        self.work.as_ref().map_or(0, |w| w.buffers.log_end())
    }

    /// Hands records of a large transaction to a side segment, to be written while the transaction goes on. What lies
    /// behind a savepoint may be taken back, so records spill only while there is none. Who only removes on a full disk
    /// keeps them until the commit, which can wait for a checkpoint and this cannot.
    #[inline]
    pub(crate) fn spill(&mut self) {
        if let Some(work) = &mut self.work
            && work.buffers.log.len() >= SPILL_BYTES
            && self.savepoints.is_empty()
            && (self.grows.get() || !self.worker.is_short_of_space())
        {
            let path = &self.worker.inner().path;
            work.buffers.spill(path.lane_of(self.worker.id));
        }
    }

    /// Commits, as far as this side of durability goes: on success the transaction is visible to others and its locks
    /// are free; its client may hear of it when the receipt's CSN is acknowledged. May wait for room in the log. On an
    /// error everything is rolled back.
    pub async fn precommit(mut self) -> Result<CommitReceipt, CommitError> {
        // Dropping it rolls it back.
        self.precommit_or_stay().await
    }

    /// The same of one that is still there on an error, with all that it has written: its owner rolls it back, and can
    /// do nothing else with it.
    pub async fn precommit_or_stay(&mut self) -> Result<CommitReceipt, CommitError> {
        // Who waits for a row behind this transaction does not wait for room in the log too.
        self.pass_turn();
        let bytes = self.log_size();
        if bytes == 0 {
            return self.commit_without_log();
        }
        self.refuse_without_space()?;
        match self.place(bytes).await {
            Ok(place) => self.commit_at(place).inspect(|_| self.ask_for_space()),
            Err(error) => {
                self.ask_for_space();
                Err(commit_error(error))
            }
        }
    }

    /// Takes place for `bytes` bytes of records. Who only removes waits for the checkpoint that is under way on a full
    /// disk, since that takes the room that is kept for both and gives it back at its end.
    async fn place(&mut self, bytes: usize) -> Result<RecordPlacement, NoRoom> {
        let spilled = self.work.as_ref().is_some_and(|w| w.buffers.side.is_some());
        let mut before = self.checkpoints().ended();
        if bytes > self.lane().inline_size_max() || spilled {
            if !self.grows.get() && self.worker.is_short_of_space() {
                self.checkpoints().ended_since(before).await;
            }
            return self.place_aside().await;
        }
        let mut attempts_left = REMOVAL_ATTEMPTS_MAX;
        loop {
            let room = take_room(&self.worker, bytes, &mut self.room_request).await;
            attempts_left -= 1;
            let is_last = self.grows.get() || attempts_left == 0;
            if is_last
                || !matches!(room, Err(NoRoom::DiskFull))
                || !self.checkpoints().ended_since(before).await
            {
                return room.map(RecordPlacement::Inline);
            }
            // What was found before is no answer any more.
            self.room_request = RoomRequest::default();
            before = self.checkpoints().ended();
        }
    }

    fn checkpoints(&self) -> &CheckpointLock {
        &self.worker.inner().checkpoints.under_way
    }

    /// Refuses who writes more while the home keeps the room that is left for who removes, and for the checkpoint that
    /// frees what was removed.
    fn refuse_without_space(&self) -> Result<(), CommitError> {
        // Its writes were refused already, but for those that are not logged.
        if self.engine().replica_base.is_some() {
            return Err(CommitError::Replica);
        }
        if !self.grows.get() || !self.worker.is_short_of_space() {
            return Ok(());
        }
        self.worker.engine.ask_for_checkpoint(false);
        Err(CommitError::DiskFull)
    }

    /// What was removed is free only after a checkpoint: where there is want, the next one is not waited for.
    fn ask_for_space(&self) {
        if self.worker.is_short_of_space() {
            self.worker.engine.ask_for_checkpoint(!self.grows.get());
        }
    }

    /// Commits without waiting, if there is room.
    pub fn try_precommit(mut self) -> Result<CommitReceipt, TryCommitError> {
        let bytes = self.log_size();
        if bytes == 0 {
            return self.commit_without_log().map_err(TryCommitError::Failed);
        }
        if self.work.as_ref().is_some_and(|w| w.buffers.side.is_some()) {
            return Err(TryCommitError::Busy(Box::new(self)));
        }
        self.refuse_without_space()
            .map_err(TryCommitError::Failed)?;
        let path = &self.worker.inner().path;
        match path.room(self.worker.id, bytes, &mut self.room_request) {
            Ok(room) => self
                .commit_at(RecordPlacement::Inline(room))
                .inspect(|_| self.ask_for_space())
                .map_err(TryCommitError::Failed),
            Err(NoRoom::Full | NoRoom::TooLarge) => Err(TryCommitError::Busy(Box::new(self))),
            Err(error) => Err(TryCommitError::Failed(commit_error(error))),
        }
    }

    /// Commits: pre-commits now, if there is room in the log, and is ready when the transaction may be acknowledged.
    /// Dropping the future does not take back a commit. Somebody must flush the worker's lane: an
    /// [`WorkerLoop`](crate::WorkerLoop) does.
    pub fn commit(self) -> impl Future<Output = Result<CommitReceipt, CommitError>> {
        let engine = self.worker.engine.clone();
        let tried = self.try_precommit();
        async move {
            let receipt = match tried {
                Ok(receipt) => receipt,
                Err(TryCommitError::Busy(txn)) => txn.precommit().await?,
                Err(TryCommitError::Failed(error)) => return Err(error),
            };
            engine.acknowledged(receipt.waits_for.clone()).await?;
            Ok(receipt)
        }
    }

    /// Writes the records to a side segment, durable before the CSN is drawn (T8), and takes room for the small entry.
    async fn place_aside(&mut self) -> Result<RecordPlacement, NoRoom> {
        let here = self.lane();
        let Some(work) = &mut self.work else {
            let room = take_room(&self.worker, 0, &mut self.room_request).await;
            return room.map(RecordPlacement::Inline);
        };
        let buffers = &mut work.buffers;
        let mut side = match buffers.side.take() {
            Some(side) => side,
            None => here.begin_side_segment()?,
        };
        // The entry goes where its side segment is (T8), whatever lane the worker pushes to by then.
        let lane = side.lane();
        side.append(std::mem::take(&mut buffers.log));
        // In memory until the home has written it: it counts until then.
        let side = finish_side(&lane, side).await;
        buffers.settle();
        let side = side?;
        let worker = &self.worker;
        let path = &worker.inner().path;
        let number = usize::from(lane.id().0);
        let asked = &mut self.room_request;
        let room = poll_fn(|cx| path.poll_room_in(worker.id, number, 0, asked, cx.waker())).await?;
        Ok(RecordPlacement::Side(room, side))
    }

    /// Ends a transaction that has nothing to log: it has changed nothing, or temporary tables only.
    ///
    /// Those draw no CSN, for a CSN without an entry would be a gap in the log. Their versions get the newest one that
    /// was drawn, whosever it is. That keeps the order of a row's versions, since what this session wrote before has
    /// that one or a lower one, and every snapshot that it takes from now on is above it. Nobody else looks, and who
    /// reads such a version does not depend on it. If the transaction was asked
    /// for its id, they get that, which is a CSN of its own that was drawn since it began: so they are known by what
    /// was told.
    fn commit_without_log(&mut self) -> Result<CommitReceipt, CommitError> {
        self.certify_reader()?;
        let id = self.xid.take().map(|xid| {
            let id = Csn(xid.number());
            xid.committed(None);
            id
        });
        let waits_for = self.commit_wait();
        let newest = waits_for.newest();
        // As in `commit_at`: half stamped versions would be waited for, and hooks publish temporary objects.
        let _watch = abort_on_panic("committing a transaction");
        if let Some(work) = self.work.take() {
            let guard = Guard::pin();
            self.unlock_rows(&work, None, &guard);
            let state = work.writer.state();
            let csn = if work.buffers.writes.iter().any(|w| w.what.is_change()) {
                let newest = Csn(self.engine().horizon().counter().0.saturating_sub(1));
                let csn = id.unwrap_or(newest);
                state.begin_commit();
                state.precommitted(csn);
                stamp_versions(&work, csn, &guard);
                Some(newest)
            } else {
                // Row locks only.
                state.aborted();
                None
            };
            drop(guard);
            self.unshare_rows(&work);
            self.run_hooks(Outcome::Committed(newest));
            work.writer.state().wake();
            match csn {
                Some(csn) => {
                    let worker = self.worker.clone();
                    let TxnWrites { buffers, .. } = work;
                    worker.add_garbage(csn, buffers);
                }
                None => self.worker.give_buffers(work.buffers),
            }
        } else {
            self.run_hooks(Outcome::Committed(newest));
        }
        self.finish(None);
        add(&self.worker.counters().commits_read_only, 1);
        Ok(CommitReceipt {
            csn: None,
            waits_for,
        })
    }

    fn commit_at(&mut self, place: RecordPlacement) -> Result<CommitReceipt, CommitError> {
        let Some(work) = self.work.take() else {
            return self.commit_without_log();
        };
        let worker = self.worker.clone();
        let engine = worker.inner();
        // From the draw on others wait for the outcome, and what hooks publish must be published whole.
        let _watch = abort_on_panic("committing a transaction");
        // Pinned before the flip: after it others may unlink our superseded versions before we stamp them.
        let guard = Guard::pin();
        let state = work.writer.state();
        let log_bytes = match &place {
            RecordPlacement::Inline(_) => work.buffers.log.len() as u64,
            RecordPlacement::Side(_, finished) => finished.side.length,
        };
        let (place, body, finished) = match place {
            RecordPlacement::Inline(place) => (place, PushBody::Inline(&work.buffers.log), None),
            RecordPlacement::Side(place, side) => (place, PushBody::Side(side.side), Some(side)),
        };
        let path = &engine.path;
        let draw = || {
            let drawn = path.draw(worker.id);
            point();
            drawn
        };
        if let Some(xid) = &self.xid {
            xid.begin_commit();
        }
        let drawn = match self.draw(engine, place, draw, &work, &guard) {
            Ok(drawn) => drawn,
            Err(error) => {
                if let Some(xid) = &self.xid {
                    xid.refused();
                }
                // Rolled back when it is dropped.
                self.work = Some(work);
                return Err(error);
            }
        };
        let csn = drawn.csn.0;
        let (deps, began_at) = (&mut self.deps, self.began_at);
        // Told by the push itself: a flush of the lane by someone else may come between a look before and the push.
        let pushed = path.push(worker.id, drawn.entrance, drawn.csn, deps, body, began_at);
        drop(drawn.dropped_later);
        if let Some(finished) = finished {
            finished.pushed();
        }
        if path.tracking().is_by_page() {
            // LeanStore remembers who wrote last, and nothing of those before: as if all of those had hardened.
            let hardened = if path.tracking().is_safe() {
                path.hardened_gsn()
            } else {
                u64::MAX
            };
            for write in work.buffers.writes.iter().filter(|w| w.what.is_change()) {
                let rows = &work.buffers.tables[write.table as usize].rows;
                if let Some((chunk, _)) = rows.slot(write.rid) {
                    chunk.stamp_page(pushed.lane, pushed.gsn, hardened);
                }
            }
        }
        self.unlock_rows(&work, Some(csn), &guard);
        if let Some(xid) = self.xid.take() {
            xid.committed(Some(csn));
        }
        point();
        state.precommitted(csn);
        point();
        stamp_versions(&work, csn, &guard);
        drop(guard);
        self.unshare_rows(&work);
        self.run_hooks(Outcome::Committed(csn));
        work.writer.state().wake();
        self.finish(Some(csn));
        let counters = worker.counters();
        add(&counters.commits, 1);
        add(&counters.log_bytes, log_bytes);
        worker.count_commit();
        let TxnWrites { buffers, .. } = work;
        worker.add_garbage(csn, buffers);
        // Of a shared lane every worker sees to its own sessions.
        if pushed.was_clean || path.shares_lanes() {
            worker.call_dirty_hook();
        }
        path.precommitted(worker.id, &pushed);
        Ok(CommitReceipt {
            csn: Some(csn),
            waits_for: CommitWait::of(csn),
        })
    }

    /// Takes away row locks that have no version: while the transaction has not flipped nobody can be above them.
    /// Whoever takes one of its locks of rows that it did not change is told of `csn` (R4), so that is noted first;
    /// shared ones are free with the flip.
    fn unlock_rows(&self, work: &TxnWrites, csn: Option<Csn>, guard: &Guard) {
        let locks =
            |write: &&UndoEntry| matches!(write.what, RowChange::Lock | RowChange::Share { .. });
        for write in work.buffers.writes.iter().filter(locks) {
            let table = &work.buffers.tables[write.table as usize];
            if let RowChange::Share { lock, .. } = write.what {
                self.hand_over_row(table, write.rid, lock, csn);
                continue;
            }
            if let Some((chunk, slot)) = table.rows.slot(write.rid)
                && let Ok(Some(head)) = chunk.peek(slot, guard)
                && head.kind() == crate::version::VersionKind::LockOnly
            {
                self.hand_over_row(table, write.rid, head.lock(), csn);
                point();
                if chunk.prune_lock().pop(slot, &work.writer, guard).is_some() {
                    add(&self.worker.counters().versions_collected, 1);
                }
                point();
            }
        }
    }

    /// Gives shared row locks back. The transaction has an outcome, so nobody minds those that are still there.
    fn unshare_rows(&self, work: &TxnWrites) {
        for write in &work.buffers.writes {
            if let RowChange::Share { before: None, .. } = write.what {
                unshare(
                    &work.buffers.tables[write.table as usize],
                    write.rid,
                    self.id(),
                    None,
                );
            }
        }
    }

    fn run_hooks(&mut self, outcome: Outcome) {
        for hook in std::mem::take(&mut self.hooks) {
            hook(outcome);
        }
    }

    /// Gives back table locks and the snapshot. `csn`: what it has drawn, if it has changed anything.
    fn finish(&mut self, csn: Option<Csn>) {
        self.ended = true;
        self.count_instances();
        self.untrack();
        self.pass_turn();
        self.give_up_intent();
        let (id, worker) = (self.id(), self.worker.id);
        for held in self.tables.drain(..) {
            held.table.locks.release(id, worker, held.held, csn);
        }
        self.drop_snapshot();
    }

    /// Rolls back.
    pub fn abort(mut self) {
        self.roll_back();
    }

    fn roll_back(&mut self) {
        if self.ended {
            return;
        }
        self.undo_to(0, 0);
        let work = self.work.take();
        if let Some(work) = &work {
            work.writer.state().aborted();
        }
        let mut hooks = std::mem::take(&mut self.hooks);
        while let Some(hook) = hooks.pop() {
            hook(Outcome::Aborted);
        }
        if let Some(work) = work {
            work.writer.state().wake();
            self.worker.give_buffers(work.buffers);
        }
        self.finish(None);
        add(&self.worker.counters().aborts, 1);
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.roll_back();
    }
}

#[cfg(test)]
mod tests;
