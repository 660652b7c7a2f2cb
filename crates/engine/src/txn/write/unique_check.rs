//! Who has a key that a writer wants.

use std::sync::Arc;

use logstead_commit::DependencySet;
use logstead_types::{Csn, Dsn, Rid};

use crate::error::WriteError;
use crate::index::{Index, KeyKind};
use crate::rows::TableRows;
use crate::table::Table;
use crate::txn::cover_chunk;
use crate::txn_state::TxnState;
use crate::version::{Guard, VersionKind, VersionRef, VersionWriter, WriterStatus};
use crate::wait_cause::LockConflict;
use crate::worker::WorkerInner;

/// Inserts the new version's entry, or says who has the key.
pub(crate) struct UniqueChecker<'a, 'g> {
    pub(crate) table: &'a Table,
    pub(crate) index: &'a Arc<Index>,
    pub(crate) writer: &'a VersionWriter,
    pub(crate) worker: &'a WorkerInner,
    pub(crate) guard: &'g Guard,
}

/// What a judge has examined: it counts as read (T1).
pub(crate) struct ExaminedVersions {
    /// The newest version met.
    pub(crate) newest: Dsn,
    pub(crate) deps: DependencySet,
}

impl ExaminedVersions {
    pub(crate) fn new(worker: &WorkerInner) -> ExaminedVersions {
        ExaminedVersions {
            newest: Dsn(0),
            deps: worker.inner().path.new_dependency_set(),
        }
    }

    fn cover(&mut self, csn: Csn, worker: &WorkerInner, rows: &TableRows, rid: Rid) {
        if rows.is_temporary() {
            return;
        }
        let path = &worker.inner().path;
        self.newest.cover(csn);
        self.deps.cover(csn, &**path);
        if path.tracking().is_by_page() {
            cover_chunk(&mut self.deps, path, worker, rows, rid);
        }
    }
}

impl<'g> UniqueChecker<'_, 'g> {
    fn head(&self, rid: Rid) -> Result<Option<VersionRef<'g>>, WriteError> {
        let head = self.table.rows.head(rid, self.guard);
        head.map_err(|absent| absent.of(&self.table.rows).into())
    }

    /// Does a version have the key?
    fn matches(&self, version: VersionRef<'_>, key: &[u8], buffer: &mut Vec<u8>) -> bool {
        if !matches!(version.kind(), VersionKind::Row { .. }) {
            return false;
        }
        buffer.clear();
        self.index.key(version.row(), buffer) == KeyKind::Unique && buffer == key
    }

    /// Called under the index's lock for another row with an entry of the same key: is the row in the way? Looks at
    /// the newest versions, in flight down to the newest committed one.
    pub(crate) fn judge(
        &self,
        rid: Rid,
        key: &[u8],
        examined: &mut ExaminedVersions,
        buffer: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        'again: loop {
            let head = self.head(rid)?;
            let mut at = head;
            let mut in_flight: Option<Arc<TxnState>> = None;
            // A blocker made after a rollback to a savepoint would wait for a waking that was.
            let blocked = |writer| {
                let blocker = LockConflict::outcome(writer);
                (self.table.rows.head(rid, self.guard) == Ok(head))
                    .then_some(WriteError::Blocked(blocker))
            };
            while let Some(version) = at {
                at = version.next(self.guard);
                if version.kind() == VersionKind::LockOnly {
                    continue;
                }
                let unique = WriteError::Unique {
                    index: self.index.id(),
                    rid,
                };
                let csn = match version.writer_status() {
                    WriterStatus::InProgress(_) if version.is_of(self.writer) => {
                        return if self.matches(version, key, buffer) {
                            Err(unique)
                        } else {
                            Ok(())
                        };
                    }
                    WriterStatus::Committed(csn) => csn,
                    WriterStatus::InProgress(state) => match state.committed() {
                        Some(csn) => csn,
                        None => {
                            let Some(writer) = version.writer() else {
                                continue 'again;
                            };
                            // Whatever becomes of it, a version with the key may be what stays.
                            if self.matches(version, key, buffer) {
                                match blocked(writer) {
                                    Some(error) => return Err(error),
                                    None => continue 'again,
                                }
                            }
                            in_flight = Some(writer);
                            continue;
                        }
                    },
                };
                // Examined, so read: the answer depends on it, a tombstone included (T1).
                examined.cover(csn, self.worker, &self.table.rows, rid);
                if self.matches(version, key, buffer) {
                    return match in_flight.map(blocked) {
                        Some(Some(error)) => Err(error),
                        Some(None) => continue 'again,
                        // Its writer may have been running when the head was read, have taken the key away again, and
                        // have committed since.
                        None if self.table.rows.head(rid, self.guard) != Ok(head) => {
                            continue 'again;
                        }
                        None => Err(unique),
                    };
                }
                return Ok(());
            }
            return Ok(());
        }
    }
}
