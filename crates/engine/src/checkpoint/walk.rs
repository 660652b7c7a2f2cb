//! What a checkpoint finds of a chunk: the rows visible at its CSN, without a lock.
//!
//! Which chunks it looks at. Whoever installs a version marks the chunk afterwards. A checkpoint clears the mark before
//! it looks, and sets it again if it meets a version that it does not see. So **a chunk without the mark holds nothing
//! that the last checkpoint which looked there, or an earlier one, has not written**, but for versions whose mark is
//! about to be set:
//! - Let v be installed and S the CSN of a checkpoint that sees v. Its writer had set the mark before it committed, so
//!   the mark was set when S was drawn up, unless an earlier checkpoint R cleared it in between.
//! - If R cleared it (or found it clear, which only another checkpoint makes it), v was in its chain already, whether
//!   the writer set the mark or found it set. R looked at the chain after that: either it saw v, and wrote it, or it
//!   did not, and set the mark again.
//!
//! A checkpoint that fails sets the marks again of all chunks from which it took something.
//!
//! From the moment in which its mark is cleared until the checkpoint is published, or has failed, a chunk is WRITING,
//! and is not evicted ([`crate::version`]), nor is any row of it. A chunk with the mark is not absent as a whole, but
//! for those of which the log behind the checkpoint before has a tail ([`super::tail`]), and those that have left with
//! changes that only the log has ([`super::logged`]). So what a checkpoint has to write is in memory otherwise: a row
//! that is absent has not changed since the newest published checkpoint, which has it. It counts as present and
//! unchanged: a delta passes it over, and a chunk that is written whole has it from the older pages. It may come back
//! meanwhile, and is found as it was then.
//!
//! Which rows it finds. The CSN S is a published snapshot: no version that it sees is unlinked. A writer is Committing
//! before it draws, so who is met Running or rolled back has no CSN below S; who is met Committing may have one, though
//! the horizon has passed S (its entry may be durable before its thread has told so), and is waited for, as readers do:
//! a few instructions.
//!
//! Does not: read or write anything outside memory, or know of pages.

use std::array;

use logstead_types::Csn;

use crate::version::{
    CHUNK_SLOTS, Chunk, Guard, SlotSet, SlotsAbsent, VersionKind, VersionRef, WriterStatus,
};

/// A chunk as a checkpoint sees it.
pub(crate) struct ChunkView<'g> {
    rows: [Option<(VersionRef<'g>, Csn)>; CHUNK_SLOTS],
    /// The slots with a row.
    pub(crate) present: SlotSet,
    /// Those of them whose row is absent: the checkpoint before has it.
    pub(crate) absent: SlotSet,
}

/// How much there is to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirtyTotals {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl<'g> ChunkView<'g> {
    /// Looks at a chunk that is being written, unless it is absent: one that was changed is not.
    pub(crate) fn look(
        chunk: &Chunk,
        snapshot: Csn,
        guard: &'g Guard,
    ) -> Result<ChunkView<'g>, SlotsAbsent> {
        // Slots that are there stay, and none becomes absent, while it is being written.
        if !chunk.is_present() {
            return Err(SlotsAbsent);
        }
        let mut seen = ChunkView {
            rows: array::from_fn(|_| None),
            present: SlotSet::NONE,
            absent: SlotSet::NONE,
        };
        let mut beyond = false;
        for slot in 0..CHUNK_SLOTS {
            match see(chunk, slot, snapshot, guard, &mut beyond) {
                Ok(None) => continue,
                Ok(row) => seen.rows[slot] = row,
                Err(SlotsAbsent) => seen.absent.insert(slot),
            }
            seen.present.insert(slot);
        }
        if beyond {
            chunk.set_changed();
        }
        Ok(seen)
    }

    /// The row in a slot, if it is there.
    pub(crate) fn row(&self, slot: usize) -> Option<(Csn, &'g [u8])> {
        self.rows[slot].map(|(version, csn)| (csn, version.row()))
    }

    /// The rows that are there and were written at `since` or later, in slot order.
    pub(crate) fn rows_since(&self, since: Csn) -> impl Iterator<Item = (u16, Csn, &'g [u8])> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(move |(slot, row)| {
            let (version, csn) = (*row)?;
            (csn >= since).then(|| (slot as u16, csn, version.row()))
        })
    }

    /// How much [`ChunkView::rows_since`] is.
    pub(crate) fn amount_since(&self, since: Csn) -> DirtyTotals {
        let mut amount = DirtyTotals::default();
        for (_, _, row) in self.rows_since(since) {
            amount.rows += 1;
            amount.bytes += row.len();
        }
        amount
    }

    /// How much all rows are; of those that are absent a guess: they are like the others.
    pub(crate) fn amount(&self) -> DirtyTotals {
        let there = self.amount_since(Csn::ZERO);
        let absent = self.absent.len();
        DirtyTotals {
            rows: there.rows + absent,
            bytes: there.bytes + there.bytes.div_ceil(there.rows.max(1)) * absent,
        }
    }

    /// The slots that had a row in the checkpoint before, and have none.
    pub(crate) fn gone(&self, saved: &SlotSet) -> impl Iterator<Item = u16> {
        saved.minus(&self.present).iter().map(|slot| slot as u16)
    }
}

/// What the snapshot sees in a slot, and notes whether there is something beyond it.
fn see<'g>(
    chunk: &Chunk,
    slot: usize,
    snapshot: Csn,
    guard: &'g Guard,
    beyond: &mut bool,
) -> Result<Option<(VersionRef<'g>, Csn)>, SlotsAbsent> {
    let mut at = chunk.peek(slot, guard)?;
    while let Some(version) = at {
        at = version.next(guard);
        let kind = version.kind();
        if kind == VersionKind::LockOnly {
            continue;
        }
        let csn = match version.writer_status() {
            WriterStatus::Committed(csn) => Some(csn),
            WriterStatus::InProgress(state) => state.settled(),
        };
        if let Some(csn) = csn.filter(|csn| *csn < snapshot) {
            return Ok((kind != VersionKind::Tombstone).then_some((version, csn)));
        }
        *beyond = true;
    }
    Ok(None)
}

/// The row that the snapshot sees in one slot of a chunk that was looked at, if it is there.
pub(crate) fn row_at<'g>(
    chunk: &Chunk,
    slot: usize,
    snapshot: Csn,
    guard: &'g Guard,
) -> Result<Option<(Csn, &'g [u8])>, SlotsAbsent> {
    let seen = see(chunk, slot, snapshot, guard, &mut false)?;
    Ok(seen.map(|(version, csn)| (csn, version.row())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use logstead_commit::Horizon;
    use logstead_types::WorkerId;
    use shuttle::rand::{Rng, thread_rng};
    use shuttle::scheduler::RandomScheduler;
    use shuttle::{Config, Runner, thread};

    use super::*;
    use crate::memory::UNLIMITED;
    use crate::row_lock::RowLock;
    use crate::tree::interleave::{point, set_hook};
    use crate::txn_id::TxnId;
    use crate::txn_state::TxnState;
    use crate::version::VersionWriter;

    type Page = BTreeMap<u16, (Csn, Vec<u8>)>;

    const WRITER: &str = "writer";

    /// A checkpoint looks at more slots than anybody writes: it gives the turn away now and then only, so that others
    /// do something in the middle of it.
    fn meet() {
        if thread::current().name() == Some(WRITER) || thread_rng().gen_range(0..20) == 0 {
            thread::yield_now();
        }
    }

    /// One transaction on a row: installs (if nobody else has the row), and commits, rolls back, or leaves it to
    /// `later`.
    fn write(
        chunk: &Chunk,
        horizon: &Horizon,
        id: u64,
        slot: usize,
        kind: VersionKind,
        commits: bool,
    ) {
        let guard = Guard::pin();
        let head = chunk.head(slot, &guard).expect("nobody evicts");
        let busy = head.is_some_and(
            |head| matches!(head.writer_status(), WriterStatus::InProgress(state) if state.committed().is_none()),
        );
        let writer = VersionWriter::new(TxnState::new(TxnId(id)));
        let row = id.to_be_bytes();
        let row = if kind == VersionKind::Tombstone {
            &[][..]
        } else {
            &row
        };
        let lock = RowLock::NoKeyUpdate;
        if busy
            || chunk
                .install(slot, head, &writer, kind, lock, 1, row, &guard)
                .expect("nobody evicts")
                .is_none()
        {
            return;
        }
        point();
        if !commits {
            chunk.prune_lock().pop(slot, &writer, &guard);
            writer.state().aborted();
            return;
        }
        writer.state().begin_commit();
        point();
        let (csn, reservation) = horizon.draw(WorkerId(id as u16 / 100));
        point();
        drop(reservation);
        point();
        writer.state().precommitted(csn);
        point();
        chunk.stamp(slot, &writer, csn, &guard);
    }

    /// Checkpoints among writers, by marks and changes alone, hold what is visible at their CSNs: nothing is forgotten,
    /// whatever the order of marks, installations, draws, and looks.
    #[test]
    fn checkpoints_by_marks_hold_what_is_visible() {
        const ROW: VersionKind = VersionKind::Row {
            keys_changed: false,
        };
        let mut config = Config::default();
        config.max_steps = shuttle::MaxSteps::None;
        // What was seen of a chunk lies on the stack.
        config.stack_size = 1 << 20;
        let runner = Runner::new(RandomScheduler::new(400), config);
        runner.run(|| {
            set_hook(Some(meet));
            let chunk = Arc::new(Chunk::new(&UNLIMITED));
            let horizon = Arc::new(Horizon::new(3, Csn(10)));
            let writers: Vec<_> = (1..3)
                .map(|n| {
                    let (chunk, horizon) = (chunk.clone(), horizon.clone());
                    let body = move || {
                        for round in 0..4 {
                            let id = n * 100 + round * 3;
                            let own = [0, 20, 50, 63][(n + round) as usize % 4];
                            write(&chunk, &horizon, id, own, ROW, true);
                            write(&chunk, &horizon, id + 1, 40, ROW, round % 2 == 0);
                            if round % 2 == 1 {
                                write(&chunk, &horizon, id + 2, own, VersionKind::Tombstone, true);
                            }
                        }
                    };
                    let named = thread::Builder::new().name(WRITER.into());
                    named.spawn(body).expect("spawned")
                })
                .collect();
            let mut page = Page::new();
            let mut since = Csn(0);
            let mut checkpoint = |page: &mut Page| {
                let snapshot = horizon.counter();
                while horizon.get() < snapshot {
                    horizon.advance(|| Csn(u64::MAX));
                    thread::yield_now();
                }
                if chunk.begin_writing(false).is_some() {
                    let guard = Guard::pin();
                    let seen = ChunkView::look(&chunk, snapshot, &guard).expect("nobody evicts");
                    let gone: Vec<u16> = seen.gone(&chunk.saved()).collect();
                    page.retain(|slot, _| !gone.contains(slot));
                    page.extend(
                        seen.rows_since(since)
                            .map(|(slot, csn, row)| (slot, (csn, row.to_vec()))),
                    );
                    chunk.set_saved(&seen.present);
                    chunk.end_writing(false);
                }
                let guard = Guard::pin();
                // In tests alone nobody collects: what is visible can be asked later.
                let all = ChunkView::look(&chunk, snapshot, &guard).expect("nobody evicts");
                let all = all.rows_since(Csn(0));
                let all: Page = all.map(|(s, csn, row)| (s, (csn, row.to_vec()))).collect();
                assert_eq!(*page, all, "at {snapshot}, since {since}");
                since = snapshot;
            };
            for _ in 0..6 {
                checkpoint(&mut page);
            }
            writers.into_iter().for_each(|w| w.join().expect("ends"));
            checkpoint(&mut page);
            assert!(chunk.is_clean() || horizon.counter() > since, "quiet");
            set_hook(None);
        });
    }
}
