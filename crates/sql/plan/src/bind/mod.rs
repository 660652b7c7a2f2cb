//! Names to things: a statement's tree against a catalog snapshot, every expression typed.
//!
//! Owns: scopes and name resolution, coercion and parameter types, functions and operators in their syntactic
//! disguises, grouping, the shape of query blocks. Gives to the planner (`crate::planner`) the logical query tree
//! (`crate::query`), and to whoever asked for it a [`Bound`], which says what its permissions are.

mod access;
mod aggregate;
mod assignment_target;
mod call;
mod case;
mod coerce;
mod collation;
mod conflict;
mod constraint_rules;
mod declared;
mod dml;
mod domain;
mod explicit_types;
mod expr;
mod finish;
mod from;
mod from_function;
mod function;
mod function_scan;
mod grouped_subquery;
mod grouping;
mod hashing;
pub mod index_expression;
mod inline_function;
mod inline_set_function;
mod literal;
mod merge;
mod named;
mod names;
mod operator;
mod order_by;
mod ordered;
mod own_settings;
mod policy;
mod query;
mod range_call;
mod recursion;
mod routine;
mod routine_check;
mod row;
mod rows_from;
mod scope;
mod select;
mod shared_operand;
mod standalone;
pub(crate) mod statement;
mod sublink;
mod subscript;
pub mod system_column;
mod trigger;
pub(crate) mod updatable;
mod update_delete;
mod user_aggregate;
mod variables;
mod view;
mod viewdef;
mod window;
mod with;
mod xml;
mod xml_table;

pub use crate::query::expr::and;
pub use crate::variables::{Group, Variables};
pub use declared::{assignment_cast, column_type, declared_type, row_type};
pub use domain::{VALUE, domain_value, value_relation};
pub use explicit_types::explicit;
pub use function_scan::{ProcedureCall, bind_procedure_call};
pub use names::index_column_name;
pub use policy::{PolicyQuery, bind_policy, policy_shown, refused_by_row_security};
pub use routine_check::{check_given, check_routine, sql_variables};
pub(crate) use standalone::bind_scalar_text;
pub use standalone::{
    bind_copy_from, bind_scalar, copied_domains, copy_condition, default_expr, generated_exprs,
    kept_calls,
};
pub use trigger::{TriggerQuery, bind_trigger, trigger_shown, truncate_triggers};
pub use updatable::{check_option_allowed, updatable_columns};
pub use view::{ViewQuery, bind_view_query, plan_view, view_column_type};
pub use viewdef::view_query_shown;

use crate::permissions::{Bound, FunctionUse};
use crate::planner::Planner;
use crate::query::expr::Expr;
use crate::query::{COLUMN_BASE, ColId, ColIdRanges, ColumnInfo, RangeTable, Rel, RelSource};
use crate::{AggregateCall, PlanContext};
use logstead_sql_catalog::{ColumnOrigin, Relation};
use logstead_sql_parse::ast::{self, Location};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType};
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;
use scope::NsItem;
use std::collections::HashMap;
use std::sync::Arc;

/// The clause an expression stands in: decides what it may contain and the words of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    Select,
    Where,
    JoinOn,
    Having,
    GroupBy,
    OrderBy,
    DistinctOn,
    Limit,
    Offset,
    From,
    Values,
    Returning,
    Assign,
    ConflictWhere,
    MergeWhen,
    Default,
    Check,
    Generated,
    Policy,
    Trigger,
    CopyWhere,
    IndexExpression,
    IndexPredicate,
    Filter,
    WindowPartition,
    WindowOrder,
    FrameRows,
    FrameRange,
    FrameGroups,
}

impl Clause {
    /// As in "aggregate functions are not allowed in ...".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::JoinOn => "JOIN conditions",
            Clause::Having => "HAVING",
            Clause::GroupBy => "GROUP BY",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::From => "functions in FROM",
            Clause::Values => "VALUES",
            Clause::Returning => "RETURNING",
            Clause::Assign => "UPDATE",
            Clause::ConflictWhere => "ON CONFLICT",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::Default => "DEFAULT expressions",
            Clause::Check => "check constraints",
            Clause::Generated => "column generation expressions",
            Clause::Policy => "policy expressions",
            Clause::Trigger => "trigger WHEN conditions",
            Clause::CopyWhere => "COPY FROM WHERE conditions",
            Clause::IndexExpression => "index expressions",
            Clause::IndexPredicate => "index predicates",
            Clause::Filter => "FILTER",
            Clause::WindowPartition => "window PARTITION BY",
            Clause::WindowOrder => "window ORDER BY",
            Clause::FrameRows => "window ROWS",
            Clause::FrameRange => "window RANGE",
            Clause::FrameGroups => "window GROUPS",
        }
    }

    fn allows_aggregates(self) -> bool {
        matches!(
            self,
            Clause::Select
                | Clause::Having
                | Clause::OrderBy
                | Clause::DistinctOn
                | Clause::WindowPartition
                | Clause::WindowOrder
        )
    }

    fn allows_windows(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy | Clause::DistinctOn)
    }

    fn is_of_window(self) -> bool {
        matches!(
            self,
            Clause::WindowPartition
                | Clause::WindowOrder
                | Clause::FrameRows
                | Clause::FrameRange
                | Clause::FrameGroups
        )
    }

    fn allows_sets(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy | Clause::DistinctOn)
    }
}

/// One query level while it is being bound.
pub(crate) struct Frame {
    /// FROM items in sight.
    pub ns: Vec<NsItem>,
    pub clause: Clause,
    /// Inside an aggregate's arguments.
    pub(crate) in_aggregate: bool,
    /// Aggregates found, with the identity of each result.
    pub aggregates: Vec<(ColId, AggregateCall)>,
    /// Direct arguments of ordered-set aggregates.
    pub direct: Vec<Expr>,
    /// GROUPING(...) found, with the identity of each result: the arguments and their places.
    pub(crate) groupings: Vec<grouping::GroupingCall>,
    /// Inside the arguments of a call over a window.
    pub(crate) in_window: bool,
    /// Calls over windows, whose windows are bound after everything else.
    pub windows: Vec<window::UnboundWindowCall>,
    /// Names that the WINDOW clause defines.
    pub(crate) window_names: Vec<String>,
    /// Set-returning calls of the select list, with the identity of each result.
    pub sets: Vec<(ColId, Expr)>,
    /// Where each of them stands.
    pub(crate) sets_at: Vec<Option<usize>>,
    /// Column references outside aggregates, with their places: for errors about grouping.
    pub references: Vec<(ColId, Option<usize>)>,
    /// WITH names in sight from here inwards.
    pub ctes: Vec<Cte>,
    /// It is the one around the statement that has a procedure's variables.
    pub(crate) is_of_variables: bool,
    /// GROUP BY names a subquery.
    pub(crate) groups_by_subquery: bool,
    /// Subqueries that have been bound, if it does.
    pub subqueries: Vec<(ast::Expr, Expr)>,
}

impl Frame {
    fn new() -> Frame {
        Frame {
            ns: Vec::new(),
            clause: Clause::Select,
            in_aggregate: false,
            aggregates: Vec::new(),
            direct: Vec::new(),
            groupings: Vec::new(),
            in_window: false,
            windows: Vec::new(),
            window_names: Vec::new(),
            sets: Vec::new(),
            sets_at: Vec::new(),
            references: Vec::new(),
            ctes: Vec::new(),
            is_of_variables: false,
            groups_by_subquery: false,
            subqueries: Vec::new(),
        }
    }
}

/// A WITH query in sight.
#[derive(Clone)]
pub(crate) struct Cte {
    pub name: String,
    pub slot: usize,
    pub columns: Vec<(Arc<str>, SqlType)>,
    pub used: bool,
    /// The recursive term is being bound: rows so far come from the non-recursive term.
    pub(crate) recursive_now: bool,
    /// It gives rows: what changes something does with RETURNING.
    pub returns: bool,
    /// Its query, if it is read where it is named instead of being kept.
    pub inlined: Option<Arc<ast::SelectStmt>>,
}

/// The state of binding one statement.
pub(crate) struct Binder<'a> {
    pub cx: &'a PlanContext<'a>,
    pub text: &'a str,
    /// The FROM items and column identities of the statement.
    pub(crate) range: RangeTable,
    hidden_name: Option<Arc<str>>,
    pub frames: Vec<Frame>,
    /// Names of FROM items that subqueries of FROM around what is being bound do not see, for errors.
    unseen: Vec<Arc<str>>,
    pub params: Vec<Option<SqlType>>,
    /// Which of them are variables that the statement names.
    pub params_used: Vec<bool>,
    /// Rules of the domains met.
    domains: HashMap<TypeId, Arc<Bound<Arc<crate::query::expr::DomainRules>>>>,
    pub slots: usize,
    pub volatile: bool,
    pub read_only: bool,
    pub session_dependent: bool,
    pub tables_read: Vec<Arc<Relation>>,
    pub tables_written: Vec<Arc<Relation>>,
    pub tables_locked: Vec<Arc<Relation>>,
    /// Tables in which foreign keys look for rows, and those whose rows their actions change: by the rights of who owns
    /// them.
    pub(crate) constraint_reads: Vec<Arc<Relation>>,
    pub(crate) constraint_writes: Vec<Arc<Relation>>,
    /// What is done with which relations.
    pub uses: access::RelationUses,
    /// Where string literals stand, by the address of their text: errors of their input point there.
    pub literals: HashMap<usize, Location>,
    positions: logstead_sql_parse::TextPositions,
    /// The view whose query is being bound.
    view: Option<Arc<logstead_sql_catalog::View>>,
    /// Views being bound, outermost first.
    expanding: Vec<RelationId>,
    /// Tables named so far, while the query of a new view is bound.
    recorded: Option<Vec<view::ViewSourceUse>>,
    /// Literals of the query of a new view that mean what they mean now: where they stand, and what they came to.
    fixed: Vec<(Location, SqlType, Datum)>,
    /// Users' functions that the query of a new view calls.
    routines_kept: Vec<(Location, logstead_sql_types::FunctionId, String)>,
    /// Primary keys that the GROUP BY of a new view relies on.
    relied: Vec<logstead_sql_types::value::Oid>,
    /// Names of columns that stand for a view's.
    view_columns: HashMap<ColId, Arc<str>>,
    /// The view that a statement changes its table through.
    through: Option<Arc<updatable::ViewTarget>>,
    /// Outer joins around what is being bound.
    outer_joins: usize,
    /// Conditions of views stay in one piece: rows are checked again under them.
    whole_conditions: bool,
    /// Queries of WITH may be read where they are named.
    inlines: bool,
    /// Policies of tables are asked: off only where nothing is run of what is bound.
    secures: bool,
    /// A table with row security was met: what comes of it is for this role only.
    pub role_matters: bool,
    /// The function whose body is being bound.
    routine: Option<inline_function::RoutineScope>,
    /// Functions whose bodies are being bound, outermost first.
    expanded: Vec<logstead_sql_types::FunctionId>,
    /// How many bodies have been bound.
    bodies: usize,
    /// The owner of the SECURITY DEFINER function that is being bound.
    pub definer: Option<logstead_sql_types::RoleId>,
    /// The `search_path` of the function that is being bound, if it has one of its own.
    path: Option<std::rc::Rc<[String]>>,
    /// Settings that functions whose bodies are being bound have been given.
    set_around: Vec<String>,
    /// Values of calls of functions so far, for calls that are the same.
    inlined: Vec<inline_function::InlinedCall>,
    /// Users' functions called, each with whose rights count.
    pub(crate) routines_used: Vec<FunctionUse>,
    /// What is called may be a procedure: the statement is CALL.
    pub(crate) calls_procedure: bool,
    /// Tables that volatile functions read, with their names.
    pub(crate) read_by_volatile: Vec<(RelationId, String)>,
    /// A function's body is only looked at.
    checks_routine: bool,
    /// The statement names collations, which expressions are asked about.
    collates: bool,
    /// An expression is bound that is to be kept.
    fresh: bool,
    /// It is an expression whose value is to follow from its row alone, and is judged by what the functions in it are
    /// said to be.
    judges: bool,
    /// The WITH that is bound next is the statement's: its queries may change something.
    pub top: bool,
    /// What is bound is part of a query block, with which its subqueries are planned.
    in_query: bool,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(cx: &'a PlanContext<'a>, text: &'a str) -> Binder<'a> {
        let declared = cx
            .param_types
            .iter()
            .map(|declared| {
                declared
                    .filter(|&oid| {
                        oid != logstead_sql_types::value::oid::INVALID
                            && oid != logstead_sql_types::value::oid::UNKNOWN
                    })
                    .map(SqlType::of)
            })
            .collect();
        Binder {
            cx,
            collates: collation::is_named_in(text),
            text,
            range: RangeTable::default(),
            hidden_name: None,
            frames: Vec::new(),
            unseen: Vec::new(),
            params: declared,
            params_used: Vec::new(),
            domains: HashMap::new(),
            slots: 0,
            volatile: false,
            read_only: true,
            session_dependent: false,
            tables_read: Vec::new(),
            tables_written: Vec::new(),
            tables_locked: Vec::new(),
            constraint_reads: Vec::new(),
            constraint_writes: Vec::new(),
            uses: access::RelationUses::default(),
            literals: HashMap::new(),
            positions: logstead_sql_parse::TextPositions::default(),
            view: None,
            expanding: Vec::new(),
            recorded: None,
            fixed: Vec::new(),
            routines_kept: Vec::new(),
            relied: Vec::new(),
            view_columns: HashMap::new(),
            through: None,
            outer_joins: 0,
            whole_conditions: false,
            inlines: true,
            secures: true,
            role_matters: false,
            routine: None,
            expanded: Vec::new(),
            bodies: 0,
            definer: None,
            path: None,
            set_around: Vec::new(),
            inlined: Vec::new(),
            routines_used: Vec::new(),
            calls_procedure: false,
            read_by_volatile: Vec::new(),
            checks_routine: false,
            fresh: false,
            judges: false,
            top: false,
            in_query: false,
        }
    }

    /// Where something stands, for errors.
    pub(crate) fn at(&self, location: Location) -> Option<usize> {
        self.positions.of(self.text, location)
    }

    /// Position of a string literal, else `at`.
    pub(crate) fn literal_at(&self, text: &Arc<str>, at: Option<usize>) -> Option<usize> {
        let address = text.as_ptr().addr();
        let location = self.literals.get(&address).copied();
        location.and_then(|location| self.at(location)).or(at)
    }

    pub(crate) fn info(&self, id: ColId) -> &ColumnInfo {
        self.range.info(id)
    }

    /// Makes a column identity.
    pub(crate) fn column(
        &mut self,
        name: Arc<str>,
        ty: SqlType,
        origin: Option<ColumnOrigin>,
        rel: usize,
    ) -> ColId {
        self.range.column(name, ty, origin, rel)
    }

    /// Makes an identity for something computed.
    pub(crate) fn computed(&mut self, name: &str, ty: SqlType) -> ColId {
        self.range.computed(name, ty)
    }

    /// Scans must give a column that the statement does not name.
    pub(crate) fn give_column(&mut self, id: ColId) {
        self.range.columns[id - COLUMN_BASE].used = true;
    }

    /// Refers to a column: scans must give it, and it takes the privilege to read it.
    pub(crate) fn use_column(&mut self, id: ColId) -> Expr {
        let info = &mut self.range.columns[id - COLUMN_BASE];
        info.named = true;
        info.used = true;
        Expr::Column(id, info.ty)
    }

    /// The planner of what is bound so far.
    pub(crate) fn planner(&mut self) -> Planner<'_> {
        Planner {
            cx: self.cx,
            range: &mut self.range,
            bind_index: index_expression::bind,
            planned: Vec::new(),
        }
    }

    pub(crate) fn frame(&mut self) -> Result<&mut Frame> {
        self.frames
            .last_mut()
            .ok_or_else(|| SqlError::internal("expression outside of a query"))
    }

    pub(crate) fn clause(&self) -> Clause {
        self.frames.last().map_or(Clause::Select, |f| f.clause)
    }

    /// Runs `bind` with the innermost frame's clause set.
    pub(crate) fn in_clause<T>(
        &mut self,
        clause: Clause,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.frame()?.clause, clause);
        let result = bind(self);
        self.frame()?.clause = before;
        result
    }

    /// Binds something one level deeper: 54001 if that is too deep ([`RangeTable::enter`]).
    pub(crate) fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.range.enter(self.cx.session)?;
        let result = bind(self);
        self.range.leave();
        result
    }

    /// Binds something, and gives the identities made meanwhile.
    pub(crate) fn with_own<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, ColIdRanges)> {
        let first = COLUMN_BASE + self.range.columns.len();
        let bound = bind(self)?;
        let own = first..COLUMN_BASE + self.range.columns.len();
        Ok((bound, own.into()))
    }

    pub(crate) fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    pub(crate) fn reads(&mut self, relation: &Arc<Relation>) {
        if !self.tables_read.iter().any(|r| r.oid == relation.oid) {
            self.tables_read.push(relation.clone());
        }
    }

    pub(crate) fn writes(&mut self, relation: &Arc<Relation>) {
        self.read_only = false;
        if !self.tables_written.iter().any(|r| r.oid == relation.oid) {
            self.tables_written.push(relation.clone());
        }
    }

    /// Rows of it are locked, which takes a transaction that may write.
    pub(crate) fn locks_rows(&mut self, relation: &Arc<Relation>) {
        self.read_only = false;
        if !self.tables_locked.iter().any(|r| r.oid == relation.oid) {
            self.tables_locked.push(relation.clone());
        }
    }

    /// Types of all parameters once everything is bound.
    pub(crate) fn finish_params(&self) -> Result<Vec<SqlType>> {
        self.params
            .iter()
            .enumerate()
            .map(|(i, ty)| {
                ty.ok_or_else(|| {
                    SqlError::new(
                        SqlState::INDETERMINATE_DATATYPE,
                        format!("could not determine data type of parameter ${}", i + 1),
                    )
                })
            })
            .collect()
    }
}
