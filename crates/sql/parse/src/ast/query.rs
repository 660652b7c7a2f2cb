//! Queries and statements that change rows.

use super::{
    Alias, AnyName, Expr, FuncName, Indirection, Location, Name, Names, NodeBox, OperatorName,
    RangeVar, TypeName,
};

/// `a UNION b` and its like, or none of them (`SetOperation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// How a target list removes duplicates.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Distinct {
    /// Not at all.
    #[default]
    No,
    /// DISTINCT
    All,
    /// DISTINCT ON
    On(Vec<Expr>),
}

/// What a query consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectBody {
    /// SELECT
    Select(Box<SelectCore>),
    /// VALUES
    Values(Vec<Vec<Expr>>),
    /// Two queries.
    SetOp(NodeBox<SetOp>),
}

/// UNION, INTERSECT, EXCEPT.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOp {
    /// Which.
    pub op: SetOperation,
    /// ALL
    pub all: bool,
    /// The first query.
    pub larg: SelectStmt,
    /// The second.
    pub rarg: SelectStmt,
    /// Where the word is.
    pub location: Location,
}

/// SELECT up to its windows (`simple_select`).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SelectCore {
    /// DISTINCT
    pub distinct: Distinct,
    /// INTO
    pub into_clause: Option<Box<IntoClause>>,
    /// What it gives.
    pub target_list: Vec<ResTarget>,
    /// FROM
    pub from_clause: Vec<TableRef>,
    /// WHERE
    pub where_clause: Option<Expr>,
    /// GROUP BY
    pub group_clause: Vec<GroupingItem>,
    /// GROUP BY DISTINCT
    pub group_distinct: bool,
    /// HAVING
    pub having_clause: Option<Expr>,
    /// WINDOW
    pub window_clause: Vec<WindowDef>,
    /// Where SELECT is.
    pub location: Location,
}

/// A query (`SelectStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct SelectStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// What it consists of.
    pub body: SelectBody,
    /// ORDER BY
    pub sort_clause: Vec<SortBy>,
    /// LIMIT, OFFSET
    pub limit: Option<Box<SelectLimit>>,
    /// FOR UPDATE and its like.
    pub locking_clause: Vec<LockingClause>,
    /// AS OF, of a query that is a statement: ours.
    pub as_of: Option<Box<AsOfClause>>,
    /// Where it begins.
    pub location: Location,
}

impl SelectStmt {
    /// INTO, which the first SELECT of a query has.
    pub fn into_clause(&self) -> Option<&IntoClause> {
        let mut first = self;
        while let SelectBody::SetOp(operation) = &first.body {
            first = &operation.larg;
        }
        match &first.body {
            SelectBody::Select(core) => core.into_clause.as_deref(),
            _ => None,
        }
    }

    /// A query with INTO as the CREATE TABLE AS that it is (`transformOptionalSelectInto`).
    pub fn select_into(&self) -> Option<super::CreateTableAsStmt> {
        self.into_clause()?;
        let mut query = self.clone();
        let mut first = &mut query;
        let into = loop {
            match &mut first.body {
                SelectBody::SetOp(operation) => first = &mut operation.larg,
                SelectBody::Select(core) => break core.into_clause.take()?,
                _ => return None,
            }
        };
        Some(super::CreateTableAsStmt {
            query: super::CreateAsQuery::Select(Box::new(query)),
            query_range: super::TextRange::default(),
            into,
            is_materialized_view: false,
            is_select_into: true,
            if_not_exists: false,
        })
    }
}

/// LIMIT and OFFSET (`SelectLimit`).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SelectLimit {
    /// OFFSET
    pub offset: Option<Expr>,
    /// LIMIT
    pub count: Option<LimitCount>,
    /// WITH TIES
    pub with_ties: bool,
    /// FETCH FIRST was said, not LIMIT.
    pub is_fetch: bool,
}

/// How many rows.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitCount {
    /// ALL, and where it is said.
    All(Location),
    /// So many.
    Count(Expr),
}

/// What a query is as of: our extension.
#[derive(Clone, Debug, PartialEq)]
pub struct AsOfClause {
    /// A literal or a parameter.
    pub point: Expr,
    /// It says that this is a time, not the name of a restore point.
    pub is_time: bool,
    /// Where the literal or the parameter is.
    pub location: Location,
}

/// INTO (`IntoClause`), and what CREATE TABLE AS and CREATE MATERIALIZED VIEW say of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct IntoClause {
    /// The table.
    pub rel: RangeVar,
    /// GLOBAL was said of a table that is made: PostgreSQL warns that it means nothing.
    pub global: bool,
    /// Names for its columns.
    pub col_names: Vec<Name>,
    /// USING
    pub access_method: Option<Name>,
    /// WITH (...)
    pub options: Vec<super::DefElem>,
    /// ON COMMIT
    pub on_commit: super::OnCommitAction,
    /// TABLESPACE
    pub table_space_name: Option<Name>,
    /// WITH NO DATA
    pub skip_data: bool,
    /// Where INTO is.
    pub location: Location,
}

/// A column of a target list, a list of columns or SET (`ResTarget`).
#[derive(Clone, Debug, PartialEq)]
pub struct ResTarget {
    /// The name of the column, if one is said.
    pub name: Option<Name>,
    /// Which part of the column is assigned.
    pub indirection: Vec<Indirection>,
    /// What it is.
    pub val: Option<Expr>,
    /// Where it begins.
    pub location: Location,
}

/// An item of GROUP BY (`GroupingSet`).
#[derive(Clone, Debug, PartialEq)]
pub enum GroupingItem {
    /// An expression.
    Expr(Expr),
    /// `()`
    Empty(Location),
    /// ROLLUP
    Rollup(Vec<Expr>, Location),
    /// CUBE
    Cube(Vec<Expr>, Location),
    /// GROUPING SETS
    Sets(Vec<GroupingItem>, Location),
}

/// ASC, DESC, USING (`SortByDir`).
#[derive(Clone, Debug, PartialEq, Default)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SortByDir {
    #[default]
    Default,
    Asc,
    Desc,
    Using(OperatorName),
}

/// NULLS FIRST, NULLS LAST (`SortByNulls`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SortByNulls {
    #[default]
    Default,
    First,
    Last,
}

/// An item of ORDER BY (`SortBy`).
#[derive(Clone, Debug, PartialEq)]
pub struct SortBy {
    /// By what.
    pub node: Expr,
    /// In which direction.
    pub dir: SortByDir,
    /// Where NULLs go.
    pub nulls: SortByNulls,
    /// Where the operator of USING is.
    pub location: Location,
}

/// A window (`WindowDef`).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WindowDef {
    /// Its name: of WINDOW's list, or of `OVER name`.
    pub name: Option<Name>,
    /// The window that it copies.
    pub refname: Option<Name>,
    /// PARTITION BY
    pub partition_clause: Vec<Expr>,
    /// ORDER BY
    pub order_clause: Vec<SortBy>,
    /// RANGE, ROWS, GROUPS
    pub frame: Option<WindowFrame>,
    /// Where it begins.
    pub location: Location,
}

/// RANGE, ROWS, GROUPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FrameMode {
    Range,
    Rows,
    Groups,
}

/// EXCLUDE
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FrameExclusion {
    #[default]
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// An end of a frame.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// A window's frame (`frameOptions`).
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// How rows are counted.
    pub mode: FrameMode,
    /// Where it begins.
    pub start: FrameBound,
    /// BETWEEN was said, and this is where it ends; otherwise with the current row.
    pub end: Option<FrameBound>,
    /// EXCLUDE
    pub exclusion: FrameExclusion,
}

/// FOR UPDATE and its like (`LockClauseStrength`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl LockStrength {
    /// As error messages name it.
    pub fn words(self) -> &'static str {
        match self {
            LockStrength::KeyShare => "FOR KEY SHARE",
            LockStrength::Share => "FOR SHARE",
            LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
            LockStrength::Update => "FOR UPDATE",
        }
    }
}

/// NOWAIT, SKIP LOCKED (`LockWaitPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum LockWaitPolicy {
    #[default]
    Block,
    SkipLocked,
    NoWait,
}

/// FOR UPDATE and its like (`LockingClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct LockingClause {
    /// OF
    pub locked_rels: Vec<RangeVar>,
    /// How strongly.
    pub strength: LockStrength,
    /// What if a row is locked.
    pub wait_policy: LockWaitPolicy,
    /// Where FOR is.
    pub location: Location,
}

/// WITH (`WithClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct WithClause {
    /// RECURSIVE
    pub recursive: bool,
    /// Its queries.
    pub ctes: Vec<CommonTableExpr>,
    /// Where WITH is.
    pub location: Location,
}

/// A query of WITH (`CommonTableExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTableExpr {
    /// Its name.
    pub ctename: Name,
    /// Names for its columns.
    pub aliascolnames: Vec<Name>,
    /// `[NOT]` MATERIALIZED
    pub materialized: Option<bool>,
    /// What it does.
    pub ctequery: NodeBox<super::Stmt>,
    /// SEARCH
    pub search_clause: Option<Box<CteSearchClause>>,
    /// CYCLE
    pub cycle_clause: Option<Box<CteCycleClause>>,
    /// Where it begins.
    pub location: Location,
}

/// SEARCH (`CTESearchClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct CteSearchClause {
    /// BY
    pub col_list: Vec<Name>,
    /// BREADTH FIRST
    pub breadth_first: bool,
    /// SET
    pub seq_column: Name,
    /// Where SEARCH is.
    pub location: Location,
}

/// CYCLE (`CTECycleClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct CteCycleClause {
    /// Of which columns.
    pub col_list: Vec<Name>,
    /// SET
    pub mark_column: Name,
    /// TO and DEFAULT.
    pub marks: Option<(Expr, Expr)>,
    /// USING
    pub path_column: Name,
    /// Where CYCLE is.
    pub location: Location,
}

/// What FROM takes rows from (`table_ref`).
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    /// A table.
    RangeVar(Box<RangeVar>),
    /// A query in parentheses.
    Subselect(NodeBox<RangeSubselect>),
    /// Functions.
    Function(NodeBox<RangeFunction>),
    /// XMLTABLE
    TableFunc(NodeBox<RangeTableFunc>),
    /// TABLESAMPLE
    TableSample(NodeBox<RangeTableSample>),
    /// Two joined.
    Join(NodeBox<JoinExpr>),
}

/// A query in FROM (`RangeSubselect`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSubselect {
    /// LATERAL
    pub lateral: bool,
    /// The query.
    pub subquery: SelectStmt,
    /// What it is called.
    pub alias: Option<Box<Alias>>,
    /// Where its parenthesis is.
    pub location: Location,
}

/// Functions in FROM (`RangeFunction`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunction {
    /// LATERAL
    pub lateral: bool,
    /// WITH ORDINALITY
    pub ordinality: bool,
    /// ROWS FROM
    pub is_rowsfrom: bool,
    /// The functions, each with the columns that AS gives it.
    pub functions: Vec<(Expr, Vec<ColumnDefinition>)>,
    /// What all is called.
    pub alias: Option<Box<Alias>>,
    /// The columns of a function's rows.
    pub coldeflist: Vec<ColumnDefinition>,
    /// Where it begins.
    pub location: Location,
}

/// A column of a function's rows, or of a composite type (`TableFuncElement`).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub colname: Name,
    /// Its type.
    pub type_name: TypeName,
    /// COLLATE
    pub coll_clause: Option<CollationName>,
    /// Where it begins.
    pub location: Location,
}

/// COLLATE of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct CollationName {
    /// Which.
    pub name: Names,
    /// Where COLLATE is.
    pub location: Location,
}

/// XMLTABLE (`RangeTableFunc`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFunc {
    /// LATERAL
    pub lateral: bool,
    /// The document.
    pub docexpr: Expr,
    /// The path of rows.
    pub rowexpr: Expr,
    /// XMLNAMESPACES; without a name for DEFAULT.
    pub namespaces: Vec<(Option<Name>, Expr)>,
    /// COLUMNS
    pub columns: Vec<RangeTableFuncCol>,
    /// What it is called.
    pub alias: Option<Box<Alias>>,
    /// Where it begins.
    pub location: Location,
}

/// A column of XMLTABLE (`RangeTableFuncCol`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFuncCol {
    /// Its name.
    pub colname: Name,
    /// Its type; none FOR ORDINALITY.
    pub type_name: Option<TypeName>,
    /// NOT NULL
    pub is_not_null: bool,
    /// PATH
    pub colexpr: Option<Expr>,
    /// DEFAULT
    pub coldefexpr: Option<Expr>,
    /// Where it begins.
    pub location: Location,
}

/// TABLESAMPLE (`RangeTableSample`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableSample {
    /// Of which table.
    pub relation: RangeVar,
    /// How.
    pub method: FuncName,
    /// With what.
    pub args: Vec<Expr>,
    /// REPEATABLE
    pub repeatable: Option<Expr>,
    /// Where the method is named.
    pub location: Location,
}

/// Ways to join (`JoinType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum JoinType {
    Inner,
    Left,
    Full,
    Right,
    Cross,
}

/// How rows are found to belong together.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinQual {
    /// They all do, or by the columns of one name where it is NATURAL.
    None,
    /// ON
    On(Expr),
    /// USING, and the name that its columns have together.
    Using(Vec<Name>, Option<Box<Alias>>),
}

/// A join (`JoinExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct JoinExpr {
    /// How.
    pub jointype: JoinType,
    /// NATURAL
    pub is_natural: bool,
    /// What with.
    pub larg: TableRef,
    /// What.
    pub rarg: TableRef,
    /// ON, USING
    pub quals: JoinQual,
    /// What it is called, in parentheses.
    pub alias: Option<Box<Alias>>,
    /// Where it begins.
    pub location: Location,
}

/// OVERRIDING (`OverridingKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Overriding {
    User,
    System,
}

/// Where the rows of INSERT come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// A query, also VALUES.
    Select(Box<SelectStmt>),
    /// DEFAULT VALUES
    DefaultValues,
}

/// INSERT (`InsertStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct InsertStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// Into which table.
    pub relation: RangeVar,
    /// Into which columns.
    pub cols: Vec<ResTarget>,
    /// OVERRIDING
    pub overriding: Option<Overriding>,
    /// What.
    pub source: InsertSource,
    /// ON CONFLICT
    pub on_conflict_clause: Option<Box<OnConflictClause>>,
    /// RETURNING
    pub returning_list: Vec<ResTarget>,
}

/// What ON CONFLICT looks at (`InferClause`).
#[derive(Clone, Debug, PartialEq)]
pub enum InferClause {
    /// A unique index over these, and its WHERE.
    Index(Vec<IndexElem>, Option<Expr>, Location),
    /// ON CONSTRAINT
    Constraint(Name, Location),
}

/// An element of an index (`IndexElem`).
#[derive(Clone, Debug, PartialEq)]
pub struct IndexElem {
    /// A column, or an expression.
    pub key: IndexKey,
    /// COLLATE
    pub collation: Option<AnyName>,
    /// An operator class.
    pub opclass: Option<AnyName>,
    /// What is said to the class.
    pub opclassopts: Vec<super::DefElem>,
    /// ASC, DESC
    pub ordering: SortByDir,
    /// NULLS FIRST, NULLS LAST
    pub nulls_ordering: SortByNulls,
    /// Where it begins.
    pub location: Location,
}

/// What an index is over.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexKey {
    /// A column.
    Column(Name),
    /// An expression, and whether it stands in parentheses.
    Expr(Expr, bool),
}

/// ON CONFLICT (`OnConflictClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct OnConflictClause {
    /// With what.
    pub infer: Option<InferClause>,
    /// DO UPDATE SET; none for DO NOTHING.
    pub update: Option<(Vec<SetClause>, Option<Expr>)>,
    /// Where ON is.
    pub location: Location,
}

/// An item of SET (`set_clause`).
#[derive(Clone, Debug, PartialEq)]
pub enum SetClause {
    /// `column = expression`
    Single(ResTarget),
    /// `(columns) = expression`
    Multiple(Vec<ResTarget>, Expr),
}

/// UPDATE (`UpdateStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// Of which table.
    pub relation: RangeVar,
    /// SET
    pub target_list: Vec<SetClause>,
    /// FROM
    pub from_clause: Vec<TableRef>,
    /// WHERE
    pub where_clause: Option<Expr>,
    /// RETURNING
    pub returning_list: Vec<ResTarget>,
}

/// DELETE (`DeleteStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// From which table.
    pub relation: RangeVar,
    /// USING
    pub using_clause: Vec<TableRef>,
    /// WHERE
    pub where_clause: Option<Expr>,
    /// RETURNING
    pub returning_list: Vec<ResTarget>,
}

/// MERGE (`MergeStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct MergeStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// Into which table.
    pub relation: RangeVar,
    /// USING
    pub source_relation: TableRef,
    /// ON
    pub join_condition: Expr,
    /// WHEN
    pub merge_when_clauses: Vec<MergeWhenClause>,
}

/// What a WHEN of MERGE does.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    /// UPDATE SET
    Update(Vec<SetClause>),
    /// DELETE
    Delete,
    /// INSERT; without values DEFAULT VALUES.
    Insert {
        /// Into which columns.
        cols: Vec<ResTarget>,
        /// OVERRIDING
        overriding: Option<Overriding>,
        /// VALUES
        values: Option<Vec<Expr>>,
    },
    /// DO NOTHING
    Nothing,
}

/// WHEN of MERGE (`MergeWhenClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct MergeWhenClause {
    /// Not NOT MATCHED.
    pub matched: bool,
    /// AND
    pub condition: Option<Expr>,
    /// THEN
    pub action: MergeAction,
}
