//! From a statement's tree to a physical plan.
//!
//! A statement's way, each step a folder or file that knows only those behind it:
//! 1. [`bind`]: names are resolved and expressions typed against a catalog snapshot. Comes of it: a tree, and what
//!    whoever runs it must be allowed ([`permissions`]).
//! 2. `query`: the logical query tree and its range table, over bound expressions ([`expr`]).
//! 3. `rewrite`: passes over the tree that ask for no costs, a file each.
//! 4. `planner`: scans, joins, orders and methods are chosen by cost. Comes of it: a [`Plan`].
//!
//! Binding plans nothing but subqueries of expressions that stand alone (`bind::sublink` says which). All others are
//! planned with the block around them, those of expressions and of WITH too.
//!
//! Beside these: the rules of the tables that a statement writes ([`constraints`]), and EXPLAIN.
//!
//! Conventions of plans, which the executor runs: a node's output row is numbered from 0; a join's is left's columns,
//! then right's. An expression's `Column(i)` is the row that its node takes in (for joins the concatenated row).
//! `Outer` is as said on [`Expr`].
//!
//! Does not: evaluate. What it needs computed when it plans, it asks for by [`PlanContext::evaluate`].

#![forbid(unsafe_code)]

pub mod bind;
pub mod constraints;
mod context;
mod cost;
mod explain;
mod explain_expr;
mod failing_constants;
mod immutable;
pub(crate) mod implies;
pub mod instrumentation;
mod layout;
pub mod permissions;
mod planner;
pub(crate) mod query;
mod rewrite;
mod scalar;
mod security_quals;
mod stack_depth;
mod variables;

pub use bind::statement::{Command, Planned, plan_computed, plan_statement};
pub use context::{Evaluate, PlanContext};
pub use explain::{ExplainOptions, ExplainTimes, explain, explain_json};
pub use failing_constants::failing;
pub(crate) use failing_constants::may_be_failing;
pub use layout::Layout;
pub use permissions::{Bound, PermissionChecker, Permissions};
pub use planner::build;
pub use query::user_aggregate::{Transitions, UserAggregate};
pub use query::window::{
    FrameBound, FrameExclusion, FrameUnits, Window, WindowCall, WindowFrame, WindowFunction,
};
pub use query::{expr, walk};
pub use scalar::{distinct, subscript};
pub use security_quals::SecurityQuals;
pub use stack_depth::stack_bytes;

use crate::constraints::RuleSet;
use crate::query::expr::Expr;
use logstead_engine::RowLock;
use logstead_sql_catalog::{Catalog, ColumnOrigin, IndexDef, Relation, VirtualTable};
use logstead_sql_func::{Aggregate, Function};
use logstead_sql_types::value::SqlType;
use logstead_sql_types::{FunctionId, TypeId};
use std::sync::Arc;

/// A plan node with what EXPLAIN and clients want to know of it.
#[derive(Clone)]
pub struct Plan {
    /// The operator.
    pub node: Node,
    /// Its output columns.
    pub columns: Vec<OutputColumn>,
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost, PostgreSQL's units.
    pub cost: f64,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    /// Name shown.
    pub name: String,
    /// Type.
    pub ty: SqlType,
    /// The domain (or array over one) that it was cast to; of a table's column, the table knows.
    pub domain: Option<TypeId>,
    /// Where it comes from; none if it is computed.
    pub origin: Option<ColumnOrigin>,
}

impl OutputColumn {
    /// The domain, or array over one, that its values are known to be of.
    pub fn domain_in(&self, catalog: &Catalog) -> Option<TypeId> {
        if self.domain.is_some() {
            return self.domain;
        }
        catalog.column_domain(self.origin?)
    }
}

/// A function that the session runs, as plans know it.
#[derive(Debug)]
pub struct Callee {
    /// `pg_proc.oid`
    pub oid: FunctionId,
    /// Its schema and name.
    pub name: (String, String),
    /// With a NULL among its arguments it gives NULL, or no rows, and is not run.
    pub strict: bool,
    /// It gives any number of rows.
    pub set: bool,
    /// It may change something, and sees what was changed since the statement began.
    pub volatile: bool,
    /// What one call gives; of a set, each time.
    pub result: SqlType,
    /// The columns that are wanted of it.
    pub columns: Vec<SqlType>,
    /// They are the fields of what it gives.
    pub row: bool,
}

/// Which cursor WHERE CURRENT OF means.
#[derive(Clone, Debug)]
pub enum CursorName {
    /// That of this name.
    Known(Arc<str>),
    /// That whose name a parameter has.
    Param(usize),
}

/// In the columns of a system relation's scan: the row's number.
pub const ROW_NUMBER: usize = usize::MAX;
/// The same of its version's token: it has none.
pub const NO_VERSION: usize = usize::MAX - 1;

/// Operators.
#[derive(Clone)]
pub enum Node {
    /// One row of no columns.
    OneRow,
    /// Literal rows; expressions see no input row.
    Values(Vec<Vec<Expr>>),
    /// All visible rows of a table.
    SeqScan(Scan),
    /// The row on which a cursor stands (WHERE CURRENT OF), if the statement sees it.
    RowScan {
        /// What is read of it.
        scan: Scan,
        /// The cursor.
        cursor: CursorName,
    },
    /// Rows of a table by index, in index order.
    IndexScan {
        /// Table side.
        scan: Scan,
        /// The index.
        index: Arc<IndexDef>,
        /// Which keys.
        range: KeyRange,
        /// Backwards.
        reverse: bool,
    },
    /// A system relation computed from the catalog snapshot.
    VirtualScan {
        /// Which.
        table: &'static VirtualTable,
        /// Columns wanted, in output order; [`ROW_NUMBER`] and [`NO_VERSION`] among them.
        columns: Vec<usize>,
        /// Condition over the *output* columns.
        filter: Option<Expr>,
        /// Name it goes by in the statement.
        alias: Arc<str>,
    },
    /// A set-returning function in FROM; args may use `Outer`. Output: the function's columns, then the ordinality
    /// (bigint) if asked.
    FunctionScan {
        /// Function with a `FunctionImpl::Set`, or any other function giving one row.
        function: &'static Function,
        /// Arguments.
        args: Vec<Expr>,
        /// WITH ORDINALITY.
        ordinality: bool,
        /// Name it goes by in the statement.
        alias: Arc<str>,
    },
    /// Rows of a function that the session runs; args may use `Outer`.
    RoutineScan {
        /// What is called.
        callee: Arc<Callee>,
        /// Arguments.
        args: Vec<Expr>,
        /// Name it goes by in the statement.
        alias: Arc<str>,
    },
    /// Set-returning functions in a select list: for each input row, rows of `exprs` where each `Set` call at the top
    /// of an expression yields its rows side by side (shorter ones padded with NULL).
    ProjectSet {
        /// Input.
        input: Box<Plan>,
        /// Output expressions.
        exprs: Vec<Expr>,
    },
    /// Keeps rows for which the condition is true.
    Filter {
        /// Input.
        input: Box<Plan>,
        /// Condition.
        condition: Expr,
    },
    /// Computes new rows.
    Project {
        /// Input.
        input: Box<Plan>,
        /// One per output column.
        exprs: Vec<Expr>,
    },
    /// For each left row runs right. When `lateral`, right's `Outer` level 1 is the left row (index joins, LATERAL);
    /// else right is kept in memory.
    NestedLoop {
        /// Outer side.
        left: Box<Plan>,
        /// Inner side.
        right: Box<Plan>,
        /// Kind.
        kind: JoinKind,
        /// Condition over the concatenated row.
        condition: Option<Expr>,
        /// Right depends on left.
        lateral: bool,
    },
    /// Equality join: hash table on right (NULL keys never match).
    HashJoin {
        /// Probe side.
        left: Box<Plan>,
        /// Build side.
        right: Box<Plan>,
        /// Kind (Full and Right included).
        kind: JoinKind,
        /// Keys over the left row, same types as `right_keys`.
        left_keys: Vec<Expr>,
        /// Keys over the right row.
        right_keys: Vec<Expr>,
        /// Further condition over the concatenated row, part of the join condition.
        condition: Option<Expr>,
    },
    /// Equality join of two sides that are sorted by the keys (NULL keys never match, and may stand anywhere).
    MergeJoin {
        /// Outer side.
        left: Box<Plan>,
        /// Inner side: rows with the same key are kept while left rows with it come.
        right: Box<Plan>,
        /// Kind (Full and Right included).
        kind: JoinKind,
        /// What both are sorted by, most significant first.
        keys: Vec<MergeKey>,
        /// Further condition over the concatenated row, part of the join condition.
        condition: Option<Expr>,
    },
    /// Grouping: output = group keys, then aggregates. Without keys: exactly one row.
    Aggregate {
        /// Input.
        input: Box<Plan>,
        /// Group keys over the input row.
        keys: Vec<Expr>,
        /// Aggregates over the input row.
        aggregates: Vec<AggregateCall>,
        /// Grouping sets; without, the one set is all keys.
        sets: Option<Box<GroupingSets>>,
    },
    /// Window functions over input sorted by partition and order. Output: the input's columns, then one per call.
    Window {
        /// Input.
        input: Box<Plan>,
        /// The window and its calls.
        window: Box<Window>,
    },
    /// Sorts by keys over the input row; `limit` rows suffice when set (top-n).
    Sort {
        /// Input.
        input: Box<Plan>,
        /// Keys, most significant first.
        keys: Vec<SortKey>,
    },
    /// OFFSET / LIMIT; expressions of bigint, NULL means none; negative fails with 2201W / 2201X.
    Limit {
        /// Input.
        input: Box<Plan>,
        /// LIMIT.
        limit: Option<Expr>,
        /// OFFSET.
        offset: Option<Expr>,
        /// WITH TIES: the keys that the input is sorted by. Rows that agree in all of them with the last one are given
        /// too.
        ties: Vec<Expr>,
    },
    /// DISTINCT over all columns.
    Distinct(Box<Plan>),
    /// DISTINCT ON: input sorted; first row for each distinct value of the keys.
    DistinctOn {
        /// Input, sorted so that equal keys are adjacent.
        input: Box<Plan>,
        /// Keys over the input row.
        keys: Vec<Expr>,
    },
    /// UNION / INTERSECT / EXCEPT, all inputs of the same column types. UNION without ALL is
    /// `Distinct(SetOp{Union, all: true})`.
    SetOp {
        /// Kind.
        kind: SetOpKind,
        /// ALL.
        all: bool,
        /// Left.
        left: Box<Plan>,
        /// Right.
        right: Box<Plan>,
    },
    /// WITH: runs `definition` once into `slot`, then `body`, which reads it through `CteScan`.
    With {
        /// Slot number, unique in the statement.
        slot: usize,
        /// Its name in the statement.
        name: Arc<str>,
        /// Non-recursive term or whole query.
        definition: Box<Plan>,
        /// Recursive term (reads the working table through `CteScan` of the same slot); `union_all` false removes
        /// duplicates.
        recursive: Option<(Box<Plan>, bool)>,
        /// When the definition runs.
        execution: CteExecution,
        /// The query proper.
        body: Box<Plan>,
    },
    /// Reads a CTE's rows.
    CteScan {
        /// Slot.
        slot: usize,
        /// Its name in the statement.
        name: Arc<str>,
    },
    /// SELECT ... FOR UPDATE: locks each row of the listed scans (whose `row_id` is set) and re-checks it. Output: the
    /// input.
    LockRows {
        /// Input.
        input: Box<Plan>,
        /// What to lock.
        targets: Vec<LockTarget>,
        /// Full condition over the input row, evaluated again if some row is locked in a newer version than was read.
        recheck: SecurityQuals,
    },
    /// INSERT.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// MERGE.
    Merge(Box<Merge>),
}

/// When the definition of a WITH query (CTE) runs, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CteExecution {
    /// As far as it is read.
    AsRead,
    /// It changes something: as it is read, and to its end when the body has come to its own.
    ToTheEnd,
    /// It changes something, and a subquery in an expression reads it: to its end before the body begins.
    Before,
}

impl Plan {
    /// One row of no columns.
    pub fn nothing() -> Plan {
        Plan {
            node: Node::OneRow,
            columns: Vec::new(),
            rows: 1.0,
            cost: 0.0,
        }
    }

    /// INSERT, UPDATE, DELETE or MERGE, perhaps with WITH in front of it.
    pub fn is_change(&self) -> bool {
        match &self.node {
            Node::Insert(_) | Node::Update(_) | Node::Delete(_) | Node::Merge(_) => true,
            Node::With { body, .. } => body.is_change(),
            _ => false,
        }
    }

    /// Changes something, itself or in its WITH.
    pub fn writes(&self) -> bool {
        match &self.node {
            Node::With {
                definition, body, ..
            } => definition.is_change() || body.writes(),
            _ => self.is_change(),
        }
    }

    /// Gives rows: everything but a change without RETURNING.
    pub fn gives_rows(&self) -> bool {
        match &self.node {
            Node::Insert(insert) => insert.returning.is_some(),
            Node::Update(update) => update.returning.is_some(),
            Node::Delete(delete) => delete.returning.is_some(),
            Node::Merge(_) => false,
            Node::With { body, .. } => body.gives_rows(),
            _ => true,
        }
    }
}

/// What every scan of a stored table has. Output: `columns` (attribute positions, from 0) in this order, then, if
/// `row_id`, two hidden bigints: the row id and the version token.
#[derive(Clone)]
pub struct Scan {
    /// The table.
    pub table: Arc<Relation>,
    /// Attribute positions decoded, in output order.
    pub columns: Vec<usize>,
    /// Condition over the output row, behind what row security asks of it.
    pub filter: SecurityQuals,
    /// Adds the two hidden columns.
    pub row_id: bool,
    /// By column: nothing above the scan reads it, so it may be NULL. Empty until the plan is made ready to run.
    pub unread: Vec<bool>,
    /// Name the table goes by in the statement.
    pub alias: Arc<str>,
}

/// Keys of an index scan: lookups on the first columns, then a range on the next. Expressions see `Outer`, parameters
/// and constants only and have exactly the column's type; a NULL value matches nothing. Bounds are by value, whatever
/// the direction of the index column; entries whose column is NULL are within no bound.
#[derive(Clone, Default)]
pub struct KeyRange {
    /// What the first columns are.
    pub equal: Vec<ScanKey>,
    /// Lower bound from the next column on.
    pub lower: Option<KeyBound>,
    /// Upper bound.
    pub upper: Option<KeyBound>,
    /// The next column is not NULL.
    pub not_null: bool,
}

/// What one column of an index is looked up with (a `ScanKey` for equality, for NULL, or for an array).
#[derive(Clone)]
pub enum ScanKey {
    /// `column = expr`.
    Value(Expr),
    /// `column IS NULL`.
    Null,
    /// `column = ANY (array expression)`: each element once, in key order.
    Any(Expr),
}

/// An end of a range: of one column, or of several that stand in one direction, compared as a row. A NULL after the
/// first column ends the bound, which then includes all that begins as it does.
#[derive(Clone)]
pub struct KeyBound {
    /// Values of the columns.
    pub keys: Vec<Expr>,
    /// Rows equal to it are within.
    pub inclusive: bool,
}

impl ScanKey {
    /// The expression, if there is one.
    pub fn expr(&self) -> Option<&Expr> {
        match self {
            ScanKey::Value(expr) | ScanKey::Any(expr) => Some(expr),
            ScanKey::Null => None,
        }
    }

    fn expr_mut(&mut self) -> Option<&mut Expr> {
        match self {
            ScanKey::Value(expr) | ScanKey::Any(expr) => Some(expr),
            ScanKey::Null => None,
        }
    }
}

impl KeyRange {
    /// Whether it takes in the whole index.
    pub fn is_whole(&self) -> bool {
        self.equal.is_empty() && !self.has_bounds()
    }

    /// Whether there is a range after the lookups.
    pub fn has_bounds(&self) -> bool {
        self.lower.is_some() || self.upper.is_some() || self.not_null
    }

    /// The values of the whole key of an index of so many columns, if it asks for just that.
    pub fn whole_key(&self, columns: usize) -> Option<impl Iterator<Item = &Expr> + Clone> {
        let point = self.equal.len() == columns
            && !self.has_bounds()
            && self.equal.iter().all(|p| matches!(p, ScanKey::Value(_)));
        point.then(|| self.equal.iter().filter_map(ScanKey::expr))
    }

    /// All its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let bounds = self.lower.iter().chain(&self.upper);
        let keys = bounds.flat_map(|bound| &bound.keys);
        self.equal.iter().filter_map(ScanKey::expr).chain(keys)
    }

    /// As [`KeyRange::exprs`], to change them.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let bounds = self.lower.iter_mut().chain(&mut self.upper);
        let keys = bounds.flat_map(|bound| &mut bound.keys);
        self.equal
            .iter_mut()
            .filter_map(ScanKey::expr_mut)
            .chain(keys)
    }
}

/// Kinds of join. Semi and Anti output left's columns only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
}

/// Kinds of set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SetOpKind {
    Union,
    Intersect,
    Except,
}

/// GROUPING SETS: input rows are grouped by each set of keys; the other keys of its rows are NULL. A set without keys
/// has one row at least. The calls of GROUPING are columns after the aggregates.
#[derive(Clone)]
pub struct GroupingSets {
    /// The keys of each set.
    pub sets: Vec<Vec<usize>>,
    /// The keys that each GROUPING asks about, the last one's bit the least.
    pub calls: Vec<Vec<usize>>,
}

/// One aggregate call.
#[derive(Clone)]
pub struct AggregateCall {
    /// Which.
    pub aggregate: &'static Aggregate,
    /// It is this one, which a user has made.
    pub user: Option<Arc<UserAggregate>>,
    /// Arguments over the input row.
    pub args: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// FILTER (WHERE ...).
    pub filter: Option<Expr>,
    /// ORDER BY inside the call, over the input row.
    pub order: Vec<SortKey>,
    /// Result type.
    pub ty: SqlType,
}

impl AggregateCall {
    /// The aggregate's name.
    pub fn name(&self) -> &str {
        match &self.user {
            Some(user) => &user.name,
            None => self.aggregate.name,
        }
    }
}

/// A sort key.
#[derive(Clone)]
pub struct SortKey {
    /// Value.
    pub expr: Expr,
    /// Descending.
    pub desc: bool,
    /// NULLs first (PostgreSQL's default: last ascending, first descending).
    pub nulls_first: bool,
}

/// A key of a merge join: values that are equal have equal keys (`value::key`), whichever side they are of.
#[derive(Clone)]
pub struct MergeKey {
    /// Over the left row.
    pub left: Expr,
    /// Over the right row.
    pub right: Expr,
    /// Descending.
    pub desc: bool,
}

/// A table whose rows LockRows locks.
#[derive(Clone)]
pub struct LockTarget {
    /// The table.
    pub table: Arc<Relation>,
    /// Input columns holding the table's attributes: (attribute position, input column).
    pub columns: Vec<(usize, usize)>,
    /// Input column of the row id; the version token follows it.
    pub row_id: usize,
    /// How its rows are locked.
    pub lock: RowLock,
    /// NOWAIT / SKIP LOCKED.
    pub wait: LockWait,
}

/// What to do about a locked row, most patient first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockWait {
    /// Wait.
    Block,
    /// SKIP LOCKED.
    Skip,
    /// NOWAIT: 55P03.
    NoWait,
}

/// A condition every stored row must not make false.
#[derive(Clone)]
pub struct Check {
    /// The name of the constraint, view or policy.
    pub name: String,
    /// Over the table's full row (all attribute positions, dropped ones NULL).
    pub expr: Expr,
    /// What it is.
    pub kind: CheckKind,
}

/// What asks something of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A CHECK constraint.
    Constraint,
    /// WITH CHECK OPTION of the view of that name.
    View,
    /// A restrictive policy of that name; without a name, the permissive ones together.
    Policy(PolicyCheck),
}

/// Of which row a policy asks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyCheck {
    /// The one that is written.
    NewRow,
    /// The one in the way, which ON CONFLICT DO UPDATE would change.
    Conflicting,
    /// The one that MERGE would change or delete.
    Target,
}

/// INSERT: for each source row, `values` gives the full row.
#[derive(Clone)]
pub struct Insert {
    /// Target.
    pub table: Arc<Relation>,
    /// Source rows.
    pub source: Plan,
    /// One per attribute position (dropped: NULL), over the source row; defaults filled in, types and lengths coerced.
    pub values: Vec<Expr>,
    /// Generated columns: (attribute position, value over the row that `values` makes, where they are NULL), coerced.
    pub generated: Vec<(usize, Expr)>,
    /// What row security asks of the new full row, before anything else is.
    pub policies: Vec<Check>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// ON CONFLICT.
    pub conflict: Option<OnConflict>,
    /// What has to be judged once rows are written; `None` for most tables.
    pub rules: Option<Arc<RuleSet>>,
    /// The columns that the statement gives values itself, which an error may tell its role of: by ON CONFLICT and
    /// other clauses of MERGE, too.
    pub given: Vec<usize>,
    /// RETURNING, over the stored full row.
    pub returning: Option<Vec<Expr>>,
    /// What RETURNING asks of is followed by the row's number and its version's token.
    pub hidden: bool,
}

/// ON CONFLICT.
#[derive(Clone)]
pub struct OnConflict {
    /// The arbiter indexes; empty: any unique index (DO NOTHING only).
    pub indexes: Vec<Arc<IndexDef>>,
    /// DO UPDATE; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// DO UPDATE SET ... WHERE: expressions over the existing full row, then the proposed full row (`excluded`).
#[derive(Clone)]
pub struct ConflictUpdate {
    /// (attribute position, value).
    pub assignments: Vec<(usize, Expr)>,
    /// So many of the assignments, the last ones, are generated columns: over the new full row.
    pub generated: usize,
    /// WHERE, behind what row security asks of the existing row: it is asked of no other, and SET is evaluated for no
    /// other.
    pub wanted: SecurityQuals,
    /// What row security asks of what becomes of it.
    pub policies: Vec<Check>,
    /// The proposed row is followed by the existing row's number and its version's token.
    pub hidden: bool,
}

/// UPDATE. The source row is: all attribute positions of the target (dropped ones NULL), then any other columns (FROM),
/// then the target's row id and version token as the last two.
#[derive(Clone)]
pub struct Update {
    /// Target.
    pub table: Arc<Relation>,
    /// Source rows.
    pub source: Plan,
    /// (attribute position, value over the source row), coerced.
    pub assignments: Vec<(usize, Expr)>,
    /// So many of the assignments, the last ones, are generated columns: over the new full row.
    pub generated: usize,
    /// Whole WHERE over the source row: evaluated again on the newest version after a wait (READ COMMITTED).
    pub recheck: SecurityQuals,
    /// What row security asks of the new full row, before anything else is.
    pub policies: Vec<Check>,
    /// CHECK constraints, over the new full row.
    pub checks: Vec<Check>,
    /// As for [`Insert`].
    pub rules: Option<Arc<RuleSet>>,
    /// As for [`Insert`].
    pub given: Vec<usize>,
    /// RETURNING, over the new full row followed by the source row's other columns.
    pub returning: Option<Vec<Expr>>,
}

/// DELETE; source row as for [`Update`].
#[derive(Clone)]
pub struct Delete {
    /// Target.
    pub table: Arc<Relation>,
    /// Source rows.
    pub source: Plan,
    /// As for [`Update`].
    pub recheck: SecurityQuals,
    /// As for [`Insert`].
    pub rules: Option<Arc<RuleSet>>,
    /// RETURNING, over the old full row followed by the source row's other columns.
    pub returning: Option<Vec<Expr>>,
}

/// MERGE. Source rows as for [`Update`], without a row id where no row of the target matches.
#[derive(Clone)]
pub struct Merge {
    /// Target.
    pub table: Arc<Relation>,
    /// Source rows.
    pub source: Plan,
    /// ON over the source row: evaluated again on the newest version after a wait (READ COMMITTED).
    pub on: SecurityQuals,
    /// WHEN MATCHED, in the order in which they are tried: UPDATE, DELETE, DO NOTHING.
    pub matched: Vec<When>,
    /// WHEN NOT MATCHED: INSERT, DO NOTHING.
    pub unmatched: Vec<When>,
}

/// A clause of MERGE.
#[derive(Clone)]
pub struct When {
    /// AND, over the source row.
    pub condition: Option<Expr>,
    /// What row security asks of the row that is to be changed or deleted: its columns are the source row's first. It
    /// comes behind the condition, which sees rows that the policies for SELECT let through (in the source, and in
    /// [`Merge::on`]): these ask whether they may be changed.
    pub existing: Vec<Check>,
    /// What is done.
    pub action: MergeAction,
}

/// What MERGE does of a source row.
#[derive(Clone)]
pub enum MergeAction {
    /// Nothing.
    Nothing,
    /// Updates the row that matches; the source row is that of [`Merge`], the source of the plan a placeholder.
    Update(Box<Update>),
    /// Deletes it, with what has to be judged then.
    Delete(Option<Arc<RuleSet>>),
    /// Inserts a row; the source row is that of [`Merge`], the source of the plan a placeholder.
    Insert(Box<Insert>),
}
