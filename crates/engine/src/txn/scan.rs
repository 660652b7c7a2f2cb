//! Walks over all rows of a table.

use std::sync::Arc;

use logstead_types::Rid;

use super::{Row, Txn, row_of};
use crate::engine::EngineInner;
use crate::page_fault::PageFault;
use crate::table::Table;
use crate::txn::read::RowFault;
use crate::txn::read_ahead::ReadAhead;
use crate::version::{CHUNK_SLOTS, Guard};

/// A walk over all rows of a table, in rid order. Holds no lock and no reference to a row: it survives awaits.
pub struct ScanCursor {
    table: Arc<Table>,
    next: u64,
    /// It goes no further than here, whatever the table has.
    limit: u64,
    end: Option<u64>,
    /// There once it has missed a row.
    ahead: Option<Box<ReadAhead>>,
}

impl ScanCursor {
    /// From the first row.
    pub fn new(table: &Arc<Table>) -> ScanCursor {
        ScanCursor {
            table: table.clone(),
            next: 0,
            limit: u64::MAX,
            end: None,
            ahead: None,
        }
    }

    /// Over the rows of one of the table's [`chunks`](Table::chunks), the `n`-th: for who samples a table. While rows
    /// are inserted into a divided table the same `n` may come to stand for another one.
    pub fn of_chunk(table: &Arc<Table>, n: u64) -> ScanCursor {
        let number = table.rows.own_chunk(n).unwrap_or(u64::MAX);
        let first = number.saturating_mul(CHUNK_SLOTS as u64);
        ScanCursor {
            next: first,
            limit: first.saturating_add(CHUNK_SLOTS as u64),
            ..ScanCursor::new(table)
        }
    }

    /// Behind the row that it was at.
    #[inline]
    fn step(&mut self, engine: &EngineInner) {
        self.next += 1;
        if self.ahead.is_some() && self.next.is_multiple_of(CHUNK_SLOTS as u64) {
            self.read_ahead(engine, false);
        }
    }

    /// Goes on where there may be a row. False if that is nowhere below `end`.
    #[inline]
    fn skip_gaps(&mut self, end: u64) -> bool {
        self.next = self.table.rows.next_in_use(self.next, end);
        self.next < end
    }

    /// It has missed its next row, or comes to a chunk.
    #[cold]
    fn read_ahead(&mut self, engine: &EngineInner, misses: bool) {
        let end = self.end.unwrap_or(0).div_ceil(CHUNK_SLOTS as u64);
        let number = self.next / CHUNK_SLOTS as u64;
        let ahead = self.ahead.get_or_insert_default();
        ahead.advance_to_chunk(engine, &self.table.rows, number, misses, end);
    }
}

impl Txn {
    /// The next visible row.
    #[inline]
    pub fn scan_next<'g>(
        &mut self,
        cursor: &mut ScanCursor,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        self.snapshot();
        if cursor.end.is_none() {
            self.track_table(cursor.table.id());
        }
        // Rows visible to the snapshot have their rids by now.
        let end = *cursor
            .end
            .get_or_insert_with(|| cursor.table.rows.rid_end().min(cursor.limit));
        while cursor.skip_gaps(end) {
            let rid = Rid(cursor.next);
            let seen = match self.visible_version(&cursor.table.rows, rid, guard) {
                Ok(seen) => seen,
                Err(RowFault::Lost) => return Err(PageFault::lost()),
                Err(RowFault::Absent(absent)) => {
                    cursor.read_ahead(self.engine(), true);
                    return Err(absent.of(&cursor.table.rows).with_neighbours());
                }
            };
            cursor.step(self.engine());
            if let Some(seen) = seen {
                return Ok(Some(row_of(rid, seen)));
            }
        }
        Ok(None)
    }

    /// The next row in its newest version that is committed or this transaction's own: for who rewrites or validates a
    /// table under a lock that keeps writers out, whatever its snapshot.
    pub fn scan_newest<'g>(
        &mut self,
        cursor: &mut ScanCursor,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        if cursor.end.is_none() {
            let from = self.newest_from();
            self.track_newest_table(cursor.table.id(), from);
        }
        let end = *cursor
            .end
            .get_or_insert_with(|| cursor.table.rows.rid_end().min(cursor.limit));
        while cursor.skip_gaps(end) {
            let row = match self.read_newest(&cursor.table, Rid(cursor.next), guard) {
                Ok(row) => row,
                Err(absent) => {
                    cursor.read_ahead(self.engine(), true);
                    return Err(absent.with_neighbours());
                }
            };
            cursor.step(self.engine());
            if row.is_some() {
                return Ok(row);
            }
        }
        Ok(None)
    }
}
