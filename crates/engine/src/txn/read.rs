//! What a statement sees of a row, and what is newest.

use std::sync::Arc;

use logstead_types::{Csn, Dsn, Rid};

use super::{Row, Superseded, Txn, VersionId, row_of};
use crate::page_fault::PageFault;
use crate::row::RowRef;
use crate::rows::AbsentRow;
use crate::rows::TableRows;
use crate::stats::add;
use crate::table::Table;
use crate::version::{Guard, VersionKind, VersionRef, WriterStatus};

/// Why a row's version could not be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFault {
    /// The row is not in memory.
    Absent(AbsentRow),
    /// It is, but what the snapshot needs of it went with a restarted instance: no wait brings it.
    Lost,
}

impl From<AbsentRow> for RowFault {
    fn from(absent: AbsentRow) -> RowFault {
        RowFault::Absent(absent)
    }
}

impl RowFault {
    /// Whose row it is.
    #[cold]
    pub(super) fn of(self, rows: &Arc<TableRows>) -> PageFault {
        match self {
            RowFault::Absent(absent) => absent.of(rows),
            RowFault::Lost => PageFault::lost(),
        }
    }
}

impl Txn {
    /// Takes a row's chunk for absent, by chance, in tests.
    #[inline]
    pub(super) fn simulate_absence(&self, rows: &TableRows, rid: Rid) -> Result<(), AbsentRow> {
        if self.worker.simulates_absence(rows) {
            return Err(AbsentRow(rid));
        }
        Ok(())
    }

    /// The version of a chain that the statement sees.
    #[inline]
    pub(super) fn visible_version<'g>(
        &mut self,
        rows: &TableRows,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<(VersionRef<'g>, VersionId)>, RowFault> {
        self.simulate_absence(rows, rid)?;
        self.touch_row_to_read(rows, rid);
        let mut at = rows.head(rid, guard)?;
        let snapshot = self.snapshot();
        let mut steps = 0;
        let seen = loop {
            let Some(version) = at else {
                if self.may_have_lost_row(rows, rid) {
                    return Err(RowFault::Lost);
                }
                break None;
            };
            at = version.next(guard);
            steps += 1;
            let kind = version.kind();
            if kind == VersionKind::LockOnly {
                continue;
            }
            let csn = match version.writer_status() {
                WriterStatus::Committed(csn) => csn,
                WriterStatus::InProgress(_) if self.is_own(version) => {
                    if version.command() < self.command {
                        break (kind != VersionKind::Tombstone)
                            .then(|| (version, VersionId::own(version.command())));
                    }
                    continue;
                }
                WriterStatus::InProgress(state) => match state.settled() {
                    Some(csn) => csn,
                    None => continue,
                },
            };
            if csn < snapshot {
                self.cover(csn, rows, rid);
                break (kind != VersionKind::Tombstone)
                    .then(|| (version, VersionId::committed(csn)));
            }
        };
        if steps > 1 {
            add(&self.worker.counters().chain_steps, steps - 1);
        }
        Ok(seen)
    }

    /// The row as the statement sees it.
    #[inline]
    pub fn read<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        // Before the chain's head is read: a version installed in between would be missed.
        self.snapshot();
        self.track_row(table.id(), rid);
        match self.visible_version(&table.rows, rid, guard) {
            Ok(seen) => Ok(seen.map(|seen| row_of(rid, seen))),
            Err(fault) => Err(fault.of(&table.rows)),
        }
    }

    /// The row's newest version that is committed or this transaction's own.
    pub fn read_newest<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        self.read_newest_of(table, rid, guard)
            .map_err(|absent| absent.of(&table.rows))
    }

    /// The row's newest version, but for what statements inside of this one have written: it is not to be built upon,
    /// and whoever writes over it is told ([`WriteError::Overtaken`](crate::WriteError)). For who has come to the row
    /// by his snapshot: what went with a restarted instance may have left the row's number to another row.
    pub fn read_newest_outside<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        let newest = self.read_newest_until(table, rid, self.command, guard);
        let newest = newest.map_err(|absent| absent.of(&table.rows))?;
        // Behind the look: what was found before anything went is the row itself.
        match self.may_have_lost_row(&table.rows, rid) {
            true => Err(PageFault::lost()),
            false => Ok(newest),
        }
    }

    /// The row as the statement sees it, or its newest version ([`Txn::read_newest_outside`]): for who has waited for
    /// it and looks again.
    #[inline]
    pub fn read_or_newest<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        newest: bool,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        match newest {
            true => self.read_newest_outside(table, rid, guard),
            false => self.read(table, rid, guard),
        }
    }

    pub(super) fn read_newest_of<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, AbsentRow> {
        self.read_newest_until(table, rid, u32::MAX, guard)
    }

    /// Passes over what commands of this transaction after `last` have written.
    fn read_newest_until<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        last: u32,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, AbsentRow> {
        // Before the chain is looked at.
        let from = self.newest_from();
        self.track_newest_row(table.id(), rid, from);
        self.simulate_absence(&table.rows, rid)?;
        self.touch_row_to_read(&table.rows, rid);
        loop {
            let head = table.rows.head(rid, guard)?;
            if let Ok(found) = self.newest_below(table, rid, head, last, guard, || ()) {
                return Ok(found);
            }
        }
    }

    /// The newest version of a chain whose head was `head`; an error if one may have become newest meanwhile.
    ///
    /// A writer may leave several versions of a row with one CSN, and only the newest of them is what it left. While
    /// the chain is walked a writer that was running may write the row once more, which moves the head, or commit after
    /// its newest version was passed over. So both are looked at again once a version is found committed. `passed` is
    /// called after a version of a running transaction was passed over. What commands of this transaction after `last`
    /// have written is passed over too.
    pub(super) fn newest_below<'g>(
        &mut self,
        table: &Table,
        rid: Rid,
        head: Option<VersionRef<'g>>,
        last: u32,
        guard: &'g Guard,
        mut passed: impl FnMut(),
    ) -> Result<Option<Row<'g>>, Superseded> {
        let is_committed = |version: VersionRef<'g>| match version.writer_status() {
            WriterStatus::Committed(_) => true,
            WriterStatus::InProgress(state) => state.committed().is_some(),
        };
        let mut at = head;
        let mut running: Option<VersionRef<'g>> = None;
        while let Some(version) = at {
            at = version.next(guard);
            if version.kind() == VersionKind::LockOnly {
                continue;
            }
            let id = if self.is_own(version) {
                if version.command() > last {
                    continue;
                }
                VersionId::own(version.command())
            } else {
                let csn = match version.writer_status() {
                    WriterStatus::Committed(csn) => csn,
                    WriterStatus::InProgress(state) => match state.settled() {
                        Some(csn) => csn,
                        None => {
                            running.get_or_insert(version);
                            passed();
                            continue;
                        }
                    },
                };
                if table.rows.head(rid, guard) != Ok(head) || running.is_some_and(is_committed) {
                    return Err(Superseded);
                }
                self.examined_newest(csn, &table.rows, rid);
                VersionId::committed(csn)
            };
            return Ok((version.kind() != VersionKind::Tombstone).then(|| Row {
                rid,
                version: id,
                bytes: RowRef::new(version.row()),
            }));
        }
        Ok(None)
    }

    pub(super) fn examined_newest(&mut self, csn: Csn, rows: &TableRows, rid: Rid) {
        self.cover(csn, rows, rid);
        self.track_examined(Dsn(csn.0));
    }
}
