//! What a transaction depends on: every version it examined (T1), schemas and plans it used (T10), and, if it changes
//! the schema, everything.

use logstead_commit::{
    CommitPath, CommitWait, DependencySet, DurabilityProgress, IsCommitted, PriorLockHolder,
};
use logstead_types::{Csn, Rid};

use super::Txn;
use crate::rows::TableRows;
use crate::worker::WorkerInner;

/// Where tracking goes by pages: what was examined lies in a chunk, and the chunk counts.
#[cold]
pub(crate) fn cover_chunk(
    deps: &mut DependencySet,
    path: &CommitPath,
    worker: &WorkerInner,
    rows: &TableRows,
    rid: Rid,
) {
    if let Some((chunk, _)) = rows.slot(rid) {
        let mark = chunk.page_mark();
        let lane = path.lane_number_of(worker.id);
        let local = mark.is_local(lane, path.hardened_gsn());
        deps.cover_chunk(mark.gsn(), local, lane);
    }
}

impl Txn {
    /// What the transaction has read or overwritten that is not Committed yet. An answer, or an error that tells of
    /// rows (T15), waits for it.
    pub fn commit_wait(&self) -> CommitWait {
        self.engine().path.commit_wait(&self.deps)
    }

    /// What it depends on so far.
    pub fn dependencies(&self) -> &DependencySet {
        &self.deps
    }

    /// Makes the transaction depend on `csn`: that of a cached schema or plan it uses (T10).
    #[inline]
    pub fn depends_on(&mut self, csn: Csn) {
        let path = &self.worker.inner().path;
        if path.tracking().is_by_page() {
            // It has no page.
            self.deps.cover_up_to(csn, &**path);
        } else {
            self.deps.cover(csn, &**path);
        }
    }

    /// Makes the transaction depend on all of it.
    pub fn depends_on_all(&mut self, commit_wait: &CommitWait) {
        if commit_wait.is_none() {
            return;
        }
        let path = self.worker.inner().path.clone();
        self.deps.cover_up_to(commit_wait.up_to(), &*path);
        if commit_wait.up_to_gsn() > 0 {
            let lane = path.lane_number_of(self.worker.id);
            self.deps.cover_chunk(commit_wait.up_to_gsn(), false, lane);
        }
        for &csn in commit_wait.by_name() {
            self.depends_on(csn);
        }
    }

    /// What those did who had its locks before, as far as it meets nothing else of theirs, since this was asked last.
    /// An answer waits for it, in the middle of a transaction, too: that a lock is had is acted upon elsewhere.
    #[inline]
    pub fn take_handed_over(&mut self) -> CommitWait {
        std::mem::take(&mut self.handed_over)
    }

    /// It has a lock that others had before.
    #[cold]
    pub(crate) fn inherit(&mut self, from: PriorLockHolder) {
        let path = self.worker.inner().path.clone();
        match from {
            PriorLockHolder::By(csn) if path.is_committed(csn) => {}
            PriorLockHolder::By(csn) => {
                self.depends_on(csn);
                self.handed_over.add(csn);
            }
            PriorLockHolder::UpTo(csn) if csn < path.horizon() => {}
            PriorLockHolder::UpTo(csn) => {
                self.deps.cover_up_to(csn, &*path);
                self.handed_over.merge(&CommitWait::floor(csn));
            }
        }
    }

    /// Makes the transaction depend on everything before it: it changes the schema, after looking at more than rows.
    pub fn depends_on_everything(&mut self) {
        self.deps.cover_everything();
    }

    /// A version was examined (T1).
    #[inline]
    pub(crate) fn cover(&mut self, csn: Csn, rows: &TableRows, rid: Rid) {
        // See `Table::is_temporary`.
        if rows.is_temporary() {
            return;
        }
        let path = &self.worker.inner().path;
        self.deps.cover(csn, &**path);
        if path.tracking().is_by_page() {
            cover_chunk(&mut self.deps, path, &self.worker, rows, rid);
        }
    }
}
