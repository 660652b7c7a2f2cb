//! Queries.

use super::{Expr, FuncCall, Indirection, RangeTableFunc, SortBy, Statement, WindowDef};
use crate::ast::{
    Alias, ColumnDefinition, ColumnRef, FuncName, IntoClause, JoinType, Location, LockingClause,
    Name, Names, RangeVar, SetOperation,
};

/// What a query consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectBody {
    /// SELECT
    Select(Box<SelectCore>),
    /// VALUES
    Values(Vec<Vec<Expr>>),
    /// Two queries.
    SetOp(Box<SetOp>),
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

/// SELECT up to its windows.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// A query.
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
    /// Where it begins.
    pub location: Location,
}

impl SelectStmt {
    /// A query that is nothing but this, and stands nowhere.
    pub fn of(body: SelectBody) -> SelectStmt {
        SelectStmt {
            with_clause: None,
            body,
            sort_clause: Vec::new(),
            limit: None,
            locking_clause: Vec::new(),
            location: Location::UNKNOWN,
        }
    }

    /// Has it no clauses beyond its body?
    pub fn is_bare(&self) -> bool {
        self.with_clause.is_none()
            && self.sort_clause.is_empty()
            && self.limit.is_none()
            && self.locking_clause.is_empty()
    }

    /// The SELECT that it is.
    pub fn core(&self) -> Option<&SelectCore> {
        match &self.body {
            SelectBody::Select(core) => Some(core),
            SelectBody::Values(_) | SelectBody::SetOp(_) => None,
        }
    }
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

/// An item of GROUP BY.
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

/// A column of a target list, a list of columns or SET.
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

impl ResTarget {
    /// The column that is assigned.
    pub fn column(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// A value of a target list, which stands nowhere.
    pub fn of(name: Option<Name>, val: Expr) -> ResTarget {
        ResTarget {
            name,
            indirection: Vec::new(),
            val: Some(val),
            location: Location::UNKNOWN,
        }
    }

    /// All columns.
    pub fn star(location: Location) -> ResTarget {
        let all = ColumnRef {
            fields: Names::new(),
            star: true,
            location,
        };
        ResTarget::of(None, Expr::ColumnRef(Box::new(all)))
    }

    /// Where its value is told to be.
    pub fn val_location(&self) -> Location {
        self.val.as_ref().map_or(self.location, Expr::location)
    }
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct WithClause {
    /// RECURSIVE
    pub recursive: bool,
    /// Its queries.
    pub ctes: Vec<CommonTableExpr>,
    /// Where WITH is.
    pub location: Location,
}

/// A query of WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTableExpr {
    /// Its name.
    pub ctename: Name,
    /// Names for its columns.
    pub aliascolnames: Vec<Name>,
    /// `[NOT]` MATERIALIZED
    pub materialized: Option<bool>,
    /// What it does.
    pub ctequery: Statement,
    /// Where it begins.
    pub location: Location,
}

/// LIMIT and OFFSET.
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

impl SelectLimit {
    /// How many rows.
    pub fn count(&self) -> Option<&Expr> {
        match &self.count {
            Some(LimitCount::Count(count)) => Some(count),
            Some(LimitCount::All(_)) | None => None,
        }
    }
}

/// How many rows.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitCount {
    /// ALL, and where it is said.
    All(Location),
    /// So many.
    Count(Expr),
}

/// What FROM takes rows from.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    /// A table.
    RangeVar(Box<RangeVar>),
    /// A query in parentheses.
    Subselect(Box<RangeSubselect>),
    /// Functions.
    Function(Box<RangeFunction>),
    /// XMLTABLE
    TableFunc(Box<RangeTableFunc>),
    /// TABLESAMPLE
    TableSample(Box<RangeTableSample>),
    /// Two joined.
    Join(Box<JoinExpr>),
}

impl TableRef {
    /// Its first item and what is joined to that one after the other: joins without a name lean to the left.
    pub fn join_chain(&self) -> (&TableRef, Vec<&JoinExpr>) {
        let (mut first, mut joins) = (self, Vec::new());
        while let TableRef::Join(join) = first
            && (join.alias.is_none() || joins.is_empty())
        {
            joins.push(&**join);
            first = &join.larg;
        }
        joins.reverse();
        (first, joins)
    }

    /// What it is called.
    pub fn alias(&self) -> Option<&Alias> {
        match self {
            TableRef::RangeVar(node) => node.alias.as_deref(),
            TableRef::Subselect(node) => node.alias.as_deref(),
            TableRef::Function(node) => node.alias.as_deref(),
            TableRef::TableFunc(node) => node.alias.as_deref(),
            TableRef::TableSample(node) => node.relation.alias.as_deref(),
            TableRef::Join(node) => node.alias.as_deref(),
        }
    }
}

/// A query in FROM.
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

/// Functions in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunction {
    /// LATERAL
    pub lateral: bool,
    /// WITH ORDINALITY
    pub ordinality: bool,
    /// ROWS FROM
    pub is_rowsfrom: bool,
    /// The functions, each with the columns that AS gives it.
    pub functions: Vec<(FuncCall, Vec<ColumnDefinition>)>,
    /// What all is called.
    pub alias: Option<Box<Alias>>,
    /// The columns of a function's rows.
    pub coldeflist: Vec<ColumnDefinition>,
    /// Where it begins.
    pub location: Location,
}

/// TABLESAMPLE.
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

/// A join.
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

impl JoinExpr {
    /// Does it merge columns of one name?
    pub fn merges(&self) -> bool {
        self.is_natural || matches!(self.quals, JoinQual::Using(..))
    }
}
