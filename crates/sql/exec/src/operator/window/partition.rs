//! The rows of one partition, as far as they have come, and which of them are peers.
//!
//! Rows are numbered from 0 in the partition. Those that no call can look at any more are dropped from the front. The
//! first ones are in memory; once they hold half of `work_mem`, those that follow go to pages, most of which are in a
//! temporary file.
//!
//! Invariant: a row that is not in memory is missed, not waited for: whoever asked for it fails, keeping what it had
//! done, and is asked again when the row is there ([`Partition::bring`]).

use crate::batch::row_size_bytes;
use crate::spill::{Pages, Spill};
use crate::wait::WaitReason;
use logstead_sql_plan::Window;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, compare_as};
use std::cell::Cell;
use std::cmp::Ordering;

/// A partition.
#[derive(Default)]
pub(super) struct Partition {
    width: usize,
    /// Rows from `first` on, one after the other, up to those in pages.
    data: Vec<Datum>,
    first: usize,
    /// Rows from that number on.
    paged: Option<(usize, Box<Pages>)>,
    /// A row that was asked for and is not in memory.
    missed: Cell<Option<usize>>,
    /// Rows so far, dropped ones too.
    len: usize,
    /// The first row of each group of peers from `first_group` on.
    peers: Vec<usize>,
    first_group: usize,
    /// No more rows come.
    pub(super) complete: bool,
    bytes: usize,
}

impl Partition {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.peers.clear();
        (self.first, self.first_group, self.len, self.bytes) = (0, 0, 0, 0);
        self.complete = false;
        self.paged = None;
        self.missed.set(None);
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Columns of a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Row `i`, which has not been dropped. Fails if it is not in memory.
    #[inline]
    pub(super) fn row(&self, i: usize) -> Result<&[Datum]> {
        if let Some((start, pages)) = &self.paged
            && i >= *start
        {
            return pages.get((i - start) as u64).ok_or_else(|| {
                self.missed.set(Some(i));
                SqlError::internal("a row of a window that is not in memory")
            });
        }
        debug_assert!(i >= self.first, "a row that is looked at is there");
        let from = (i - self.first) * self.width;
        Ok(&self.data[from..from + self.width])
    }

    /// Whether what has just failed did so for want of a row.
    pub(super) fn take_missed(&self) -> Option<usize> {
        self.missed.take()
    }

    /// Brings a row that was missed; what to wait for before it is called again.
    pub(super) fn bring(&mut self, i: usize) -> Result<Option<WaitReason>> {
        if let Some((start, pages)) = &mut self.paged
            && let Some(number) = i.checked_sub(*start)
        {
            if let Some(obstacle) = pages.bring(number as u64)? {
                return Ok(Some(obstacle));
            }
            if pages.get(number as u64).is_some() {
                return Ok(None);
            }
        }
        Err(SqlError::internal("a row of a window is gone"))
    }

    /// Rows that come from now on go to pages, if memory is full and there is anywhere to write them to.
    pub(super) fn make_room(&mut self, work_mem_bytes: usize, spill: impl Fn() -> Option<Spill>) {
        let part = work_mem_bytes / 2;
        if self.paged.is_none()
            && self.bytes > part
            && let Some(spill) = spill()
        {
            let pages = Pages::new(&spill, self.width, part);
            self.paged = Some((self.len, Box::new(pages)));
        }
    }

    /// What to wait for before more is pushed.
    pub(super) fn behind(&self) -> Result<Option<WaitReason>> {
        match &self.paged {
            Some((_, pages)) => pages.behind(),
            None => Ok(None),
        }
    }

    /// Adds a copy of `row`, unless it belongs to the next partition: then this one is complete, and false is returned.
    pub(super) fn push(&mut self, row: &[Datum], keys: &WindowKeys) -> Result<bool> {
        if self.len > 0 {
            // The newest row is always in memory.
            let last = self.row(self.len - 1)?;
            if !alike(&keys.partition, last, row) {
                self.complete = true;
                return Ok(false);
            }
            if !alike(&keys.order, last, row) {
                self.peers.push(self.len);
            }
        } else {
            self.width = row.len();
            self.peers.push(0);
        }
        match &mut self.paged {
            Some((_, pages)) => pages.push(row)?,
            None => {
                self.bytes += row_size_bytes(row);
                self.data.extend_from_slice(row);
            }
        }
        self.len += 1;
        Ok(true)
    }

    /// Drops rows before `first`, when that gives back at least half of what is held.
    pub(super) fn drop_before(&mut self, first: usize) {
        let first = first.min(self.len.saturating_sub(1));
        let mut end = self.len;
        if let Some((start, pages)) = &mut self.paged {
            pages.drop_before(first.saturating_sub(*start) as u64);
            // The last of those in memory may be the newest there is.
            end = (*start).max(self.first);
        }
        let rows = first.min(end).saturating_sub(self.first);
        if rows < 256 && first < end || rows * 2 < end - self.first {
            return;
        }
        let gone = (rows * self.width).min(self.data.len());
        self.bytes -= row_size_bytes(&self.data[..gone]);
        self.data.drain(..gone);
        self.first += rows;
        // Of the groups, those that have a row left.
        let groups = self.peers.partition_point(|start| *start <= self.first);
        let groups = groups.saturating_sub(1);
        self.peers.drain(..groups);
        self.first_group += groups;
    }

    /// Number of groups of peers so far.
    pub(super) fn groups(&self) -> usize {
        self.first_group + self.peers.len()
    }

    /// The first row of a group of peers; past the last group the end.
    pub(super) fn group_start(&self, group: usize) -> usize {
        // Of a group that is gone all that is known is that it begins before the rows that are left.
        match group.checked_sub(self.first_group) {
            Some(group) => self.peers.get(group).copied().unwrap_or(self.len),
            None => self.first,
        }
    }

    /// Memory held, roughly.
    pub(super) fn size_bytes(&self) -> usize {
        let pages = self.paged.as_ref().map_or(0, |(_, p)| p.size_bytes());
        self.bytes + pages + self.peers.len() * size_of::<usize>()
    }
}

/// Columns of the input with their types.
type Columns = Vec<(usize, TypeId)>;

/// What parts and orders the rows.
#[derive(Default)]
pub(super) struct WindowKeys {
    partition: Columns,
    order: Columns,
}

impl WindowKeys {
    pub(super) fn of(window: &Window) -> WindowKeys {
        use logstead_sql_plan::expr::Expr;
        let column = |expr: &Expr| match expr {
            Expr::Column(index, ty) => Some((*index, ty.oid)),
            _ => None,
        };
        WindowKeys {
            partition: window.partition.iter().filter_map(column).collect(),
            order: window
                .order
                .iter()
                .filter_map(|k| column(&k.expr))
                .collect(),
        }
    }

    /// The column that a window with one key is ordered by.
    pub(super) fn only_order(&self) -> Option<usize> {
        match self.order.as_slice() {
            [(column, _)] => Some(*column),
            _ => None,
        }
    }
}

/// NULLs are alike.
fn alike(columns: &Columns, a: &[Datum], b: &[Datum]) -> bool {
    columns
        .iter()
        .all(|&(column, ty)| match (a.get(column), b.get(column)) {
            (Some(Datum::Null), Some(Datum::Null)) => true,
            (Some(Datum::Null), _) | (_, Some(Datum::Null)) => false,
            (Some(a), Some(b)) => compare_as(ty, a, b) == Ordering::Equal,
            _ => true,
        })
}
