//! The frame of a row: which rows of its partition an aggregate or first_value looks at.
//!
//! Invariant: as rows follow each other neither end of a frame goes back, so that those of RANGE are found by going on
//! from the row before.

use super::partition::{Partition, WindowKeys};
use crate::context::ExecutorContext;
use crate::eval::eval_in;
use crate::wait::Evaluated;
use logstead_sql_func as func;
use logstead_sql_plan::{FrameBound, FrameExclusion, FrameUnits, Window};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use smallvec::SmallVec;

/// Runs of rows, none empty, in order.
pub(super) type FrameRanges = SmallVec<[(usize, usize); 3]>;

/// A bound with its offset evaluated.
enum Bound {
    Unbounded,
    CurrentRow,
    /// Rows or groups; before the current row if negative.
    Count(i64),
    /// A distance by value, before the current row or after it.
    Distance {
        offset: Datum,
        before: bool,
    },
}

/// The frames of a window.
pub(super) struct Frames {
    units: FrameUnits,
    start: Bound,
    end: Bound,
    exclude: FrameExclusion,
    /// Of RANGE with a distance: the column, and how it is ordered.
    column: usize,
    desc: bool,
    nulls_first: bool,
    /// The frame of the last row asked for.
    head: usize,
    tail: usize,
}

/// How much of what follows a row has to be known for it to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookahead {
    /// So many rows.
    pub(super) rows: usize,
    /// Its last peer.
    pub(super) peers: bool,
    /// Everything.
    pub(super) partition: bool,
}

impl Lookahead {
    pub(super) const PEERS: Lookahead = Lookahead {
        rows: 0,
        peers: true,
        partition: false,
    };
    pub(super) const PARTITION: Lookahead = Lookahead {
        rows: 0,
        peers: false,
        partition: true,
    };

    pub(super) fn rows(rows: i64) -> Lookahead {
        Lookahead {
            rows: usize::try_from(rows.max(0)).unwrap_or(usize::MAX),
            ..Lookahead::default()
        }
    }

    /// What has to be known for both.
    pub(super) fn and(self, other: Lookahead) -> Lookahead {
        Lookahead {
            rows: self.rows.max(other.rows),
            peers: self.peers || other.peers,
            partition: self.partition || other.partition,
        }
    }
}

impl Frames {
    /// The frames of `window`, offsets evaluated.
    pub(super) fn new<'a>(
        window: &'a Window,
        keys: &WindowKeys,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Frames> {
        let units = window.frame.units;
        let start = bound(&window.frame.start, units, "starting", cx)?;
        let end = bound(&window.frame.end, units, "ending", cx)?;
        let counted =
            matches!(start, Bound::Distance { .. }) || matches!(end, Bound::Distance { .. });
        let column = match keys.only_order() {
            Some(column) => column,
            None if counted => {
                return Err(SqlError::internal("RANGE over no one column").into());
            }
            None => 0,
        };
        let order = window.order.first();
        Ok(Frames {
            units,
            start,
            end,
            exclude: window.frame.exclude,
            column,
            desc: order.is_some_and(|key| key.desc),
            nulls_first: order.is_some_and(|key| key.nulls_first),
            head: 0,
            tail: 0,
        })
    }

    /// Another partition begins.
    pub(super) fn restart(&mut self) {
        (self.head, self.tail) = (0, 0);
    }

    /// What a call that looks at the frame has to know.
    pub(super) fn lookahead(&self) -> Lookahead {
        let end = match (&self.end, self.units) {
            (Bound::Unbounded, _) => Lookahead::PARTITION,
            (Bound::CurrentRow, FrameUnits::Rows) => Lookahead::default(),
            (Bound::CurrentRow, _) => Lookahead::PEERS,
            (Bound::Count(rows), FrameUnits::Rows) => Lookahead::rows(*rows),
            (Bound::Count(groups), _) if *groups <= 0 => Lookahead::PEERS,
            (Bound::Distance { before: true, .. }, _) => Lookahead::PEERS,
            (Bound::Count(_) | Bound::Distance { .. }, _) => Lookahead::PARTITION,
        };
        match self.exclude {
            FrameExclusion::Group | FrameExclusion::Ties => end.and(Lookahead::PEERS),
            FrameExclusion::NoOthers | FrameExclusion::CurrentRow => end,
        }
    }

    /// Whether all frames begin with the partition.
    pub(super) fn starts_unbounded(&self) -> bool {
        matches!(self.start, Bound::Unbounded)
    }

    /// Whether rows in the middle of the frame may be left out.
    pub(super) fn excludes(&self) -> bool {
        self.exclude != FrameExclusion::NoOthers
    }

    /// The first row that a later frame may have, or may be measured by.
    pub(super) fn first_needed(&self) -> usize {
        self.head.min(self.tail)
    }

    /// The frame of row `at`, of group `group`, before anything is left out of it; its rows from the first on, up to
    /// the second.
    pub(super) fn of(
        &mut self,
        at: usize,
        group: usize,
        rows: &Partition,
        cx: &ExecutorContext<'_>,
    ) -> Result<(usize, usize)> {
        let own = (rows.group_start(group), rows.group_start(group + 1));
        let head = match (&self.start, self.units) {
            (Bound::Unbounded, _) => 0,
            (Bound::CurrentRow, FrameUnits::Rows) => at,
            (Bound::CurrentRow, _) => own.0,
            (Bound::Count(count), FrameUnits::Rows) => shifted(at, *count).min(rows.len()),
            (Bound::Count(count), _) => rows.group_start(shifted(group, *count)),
            (Bound::Distance { offset, before }, _) => {
                let mut head = self.head;
                let (subtract, less) = (*before != self.desc, self.desc);
                while head < rows.len()
                    && self.head_is_before(head, at, rows, offset, subtract, less, cx)?
                {
                    head += 1;
                    // A row that is not in memory ends this: it goes on from here.
                    self.head = head;
                }
                head
            }
        };
        let tail = match (&self.end, self.units) {
            (Bound::Unbounded, _) => rows.len(),
            (Bound::CurrentRow, FrameUnits::Rows) => at + 1,
            (Bound::CurrentRow, _) => own.1,
            (Bound::Count(count), FrameUnits::Rows) => {
                // The end of the row so far away: one more than it, and none before the first.
                let past = i128::try_from(at).unwrap_or(i128::MAX) + i128::from(*count) + 1;
                usize::try_from(past.max(0))
                    .unwrap_or(usize::MAX)
                    .min(rows.len())
            }
            (Bound::Count(count), _) => {
                let past = i128::try_from(group).unwrap_or(i128::MAX) + i128::from(*count) + 1;
                rows.group_start(usize::try_from(past.max(0)).unwrap_or(usize::MAX))
            }
            (Bound::Distance { offset, before }, _) => {
                let mut tail = self.tail;
                let (subtract, less) = (*before != self.desc, !self.desc);
                while tail < rows.len()
                    && self.is_within_tail(tail, at, rows, offset, subtract, less, cx)?
                {
                    tail += 1;
                    self.tail = tail;
                }
                tail
            }
        };
        (self.head, self.tail) = (head, tail);
        Ok((head, tail.max(head)))
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one comparison of two rows, called from one place"
    )]
    fn head_is_before(
        &self,
        head: usize,
        at: usize,
        rows: &Partition,
        offset: &Datum,
        subtract: bool,
        less: bool,
        cx: &ExecutorContext<'_>,
    ) -> Result<bool> {
        let (value, base) = (&rows.row(head)?[self.column], &rows.row(at)?[self.column]);
        match (value.is_null(), base.is_null()) {
            // NULLs are in reach of each other only.
            (false, false) => Ok(!func::in_range(
                cx.session, value, base, offset, subtract, less,
            )?),
            (true, false) => Ok(self.nulls_first),
            (false, true) => Ok(!self.nulls_first),
            (true, true) => Ok(false),
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one comparison of two rows, called from one place"
    )]
    fn is_within_tail(
        &self,
        tail: usize,
        at: usize,
        rows: &Partition,
        offset: &Datum,
        subtract: bool,
        less: bool,
        cx: &ExecutorContext<'_>,
    ) -> Result<bool> {
        let (value, base) = (&rows.row(tail)?[self.column], &rows.row(at)?[self.column]);
        match (value.is_null(), base.is_null()) {
            (false, false) => func::in_range(cx.session, value, base, offset, subtract, less),
            (true, false) => Ok(self.nulls_first),
            (false, true) => Ok(!self.nulls_first),
            (true, true) => Ok(true),
        }
    }

    /// What of the frame of row `at`, of group `group`, is not left out.
    pub(super) fn runs(
        &self,
        (head, tail): (usize, usize),
        at: usize,
        group: usize,
        rows: &Partition,
    ) -> FrameRanges {
        let mut runs = FrameRanges::new();
        let mut add = |from: usize, to: usize| {
            let (from, to) = (from.max(head), to.min(tail));
            if from < to {
                runs.push((from, to));
            }
        };
        let peers = (rows.group_start(group), rows.group_start(group + 1));
        match self.exclude {
            FrameExclusion::NoOthers => add(head, tail),
            FrameExclusion::CurrentRow => {
                add(head, at);
                add(at + 1, tail);
            }
            FrameExclusion::Group => {
                add(head, peers.0);
                add(peers.1, tail);
            }
            FrameExclusion::Ties => {
                add(head, peers.0);
                add(at, at + 1);
                add(peers.1, tail);
            }
        }
        runs
    }
}

/// `at` moved by `count`, not below 0.
fn shifted(at: usize, count: i64) -> usize {
    match usize::try_from(count.unsigned_abs()) {
        Ok(by) if count < 0 => at.saturating_sub(by),
        Ok(by) => at.saturating_add(by),
        Err(_) => usize::MAX,
    }
}

fn bound<'a>(
    bound: &'a FrameBound,
    units: FrameUnits,
    which: &str,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Bound> {
    let (offset, before) = match bound {
        FrameBound::Unbounded => return Ok(Bound::Unbounded),
        FrameBound::CurrentRow => return Ok(Bound::CurrentRow),
        FrameBound::Preceding(offset) => (offset, true),
        FrameBound::Following(offset) => (offset, false),
    };
    let offset = eval_in(offset, &[], cx)?;
    if offset.is_null() {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            format!("frame {which} offset must not be null"),
        )
        .into());
    }
    if units == FrameUnits::Range {
        return Ok(Bound::Distance { offset, before });
    }
    let count = offset.as_i64()?;
    if count < 0 {
        return Err(SqlError::new(
            SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
            format!("frame {which} offset must not be negative"),
        )
        .into());
    }
    Ok(Bound::Count(if before { -count } else { count }))
}
