//! Bound query blocks: what `select` makes and `plan` takes.

use super::ColId;
use crate::expr::Expr;
use crate::{AggregateCall, JoinKind, LockWait, OutputColumn, SortKey, WindowCall, WindowFrame};
use logstead_engine::RowLock;

/// FROM as a tree. Inner joins are flattened into the block's list and conditions; what is left is outer joins.
pub(crate) enum From {
    /// A FROM item: index into `Binder::rels`.
    Rel(usize),
    /// A join whose sides cannot simply be exchanged.
    Join {
        kind: JoinKind,
        left: Box<FromList>,
        right: Box<FromList>,
        on: Vec<Expr>,
    },
}

/// Items joined by inner joins under some conditions.
#[derive(Default)]
pub(crate) struct FromList {
    pub items: Vec<From>,
    pub conditions: Vec<Expr>,
}

/// An item of FROM whose rows are locked.
#[derive(Clone, Copy)]
pub(crate) struct RowMark {
    pub(crate) rel: usize,
    pub lock: RowLock,
    pub wait: LockWait,
}

/// One SELECT.
#[derive(Default)]
pub(crate) struct Select {
    pub from: FromList,
    pub grouping: Option<Grouping>,
    /// Windows, computed after grouping.
    pub windows: Vec<BoundWindow>,
    /// Set-returning calls, computed after grouping and windows.
    pub sets: Vec<(ColId, Expr)>,
    /// They are computed behind DISTINCT ON, which has an ORDER BY.
    pub(crate) sets_last: bool,
    /// Those that the block is grouped by: computed before.
    pub(crate) grouped_sets: Vec<(ColId, Expr)>,
    pub outputs: Vec<Output>,
    pub distinct: Distinct,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// FETCH FIRST ... WITH TIES.
    pub ties: bool,
    /// Items to lock and how; `None` without a locking clause.
    pub locks: Option<Vec<RowMark>>,
}

/// GROUP BY, HAVING and aggregates.
pub(crate) struct Grouping {
    /// Group keys over the FROM row, each with its identity afterwards.
    pub keys: Vec<(ColId, Expr)>,
    /// Grouping sets: which keys each has. Without, the one set is all keys.
    pub sets: Option<Vec<Vec<usize>>>,
    /// GROUPING(...): the keys that each asks about.
    pub calls: Vec<(ColId, Vec<usize>)>,
    pub aggregates: Vec<(ColId, AggregateCall)>,
    /// Over keys and aggregates.
    pub having: Vec<Expr>,
}

/// A window with what is computed over it, each call with its identity. Over the FROM row or the grouped one.
pub(crate) struct BoundWindow {
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub frame: WindowFrame,
    pub calls: Vec<(ColId, WindowCall)>,
}

/// A select list item with its identity.
pub(crate) struct Output {
    pub id: ColId,
    pub expr: Expr,
    pub column: OutputColumn,
}

/// DISTINCT.
#[derive(Default)]
pub(crate) enum Distinct {
    #[default]
    No,
    All,
    /// DISTINCT ON; expressions as in ORDER BY.
    On(Vec<Expr>),
}
