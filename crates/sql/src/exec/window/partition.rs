//! The rows of one partition, as far as they have come, and which of them are peers.
//!
//! Rows are numbered from 0 in the partition. Those that no call can look at any more are dropped from the front.

use crate::exec::batch::row_size_bytes;
use crate::plan::Window;
use crate::value::{Datum, Oid, compare_as};
use std::cmp::Ordering;

/// A partition.
#[derive(Default)]
pub(super) struct Partition {
    width: usize,
    /// Rows from `first` on, one after the other.
    data: Vec<Datum>,
    first: usize,
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
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Row `i`, which has not been dropped.
    pub(super) fn row(&self, i: usize) -> &[Datum] {
        debug_assert!(i >= self.first, "a row that is looked at is there");
        let from = (i - self.first) * self.width;
        &self.data[from..from + self.width]
    }

    /// Adds a copy of `row`, unless it belongs to the next partition: then this one is complete, and false is returned.
    pub(super) fn push(&mut self, row: &[Datum], keys: &Keys) -> bool {
        if self.len > 0 {
            let last = self.row(self.len - 1);
            if !alike(&keys.partition, last, row) {
                self.complete = true;
                return false;
            }
            if !alike(&keys.order, last, row) {
                self.peers.push(self.len);
            }
        } else {
            self.width = row.len();
            self.peers.push(0);
        }
        self.bytes += row_size_bytes(row);
        self.data.extend_from_slice(row);
        self.len += 1;
        true
    }

    /// Drops rows before `first`, when that gives back at least half of what is held.
    pub(super) fn drop_before(&mut self, first: usize) {
        let rows = first
            .min(self.len.saturating_sub(1))
            .saturating_sub(self.first);
        if rows < 256 || rows * 2 < self.len - self.first {
            return;
        }
        let gone = rows * self.width;
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
        self.bytes + self.peers.len() * size_of::<usize>()
    }
}

/// Columns of the input with their types.
type Columns = Vec<(usize, Oid)>;

/// What parts and orders the rows.
#[derive(Default)]
pub(super) struct Keys {
    partition: Columns,
    order: Columns,
}

impl Keys {
    pub(super) fn of(window: &Window) -> Keys {
        use crate::expr::Expr;
        let column = |expr: &Expr| match expr {
            Expr::Column(index, ty) => Some((*index, ty.oid)),
            _ => None,
        };
        Keys {
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
