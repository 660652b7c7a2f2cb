//! Names to things: a statement's tree against a catalog snapshot, every expression typed.
//!
//! Owns: scopes and name resolution, coercion and parameter types, functions and operators in their syntactic
//! disguises, grouping, the shape of query blocks. Gives to `plan` bound blocks (`query::Select`) whose expressions use
//! *column identities*; `plan` turns them into positions.
//!
//! Column identity: every column of every FROM item, group key, aggregate and output of a statement gets its own number
//! from `COLUMN_BASE` up, unique in the statement. While binding, `Expr::Column(id)` is any column, of this query or of
//! an enclosing one; `plan::resolve` makes it `Column(position)` where the row has it and `Outer` where an enclosing
//! row has it. Invariant: positions are below `COLUMN_BASE`, so the two never mix.

mod access;
mod aggregate;
mod call;
mod called;
mod case;
mod change;
mod coerce;
mod collation;
mod conflict;
mod declared;
mod dml;
mod domain;
mod expr;
mod finish;
mod from;
mod from_function;
mod function;
mod grouped;
mod grouped_subquery;
mod grouping;
mod hashing;
pub mod index_expression;
mod inlined;
mod inlined_rows;
mod judged;
mod literal;
mod merge;
mod named;
mod names;
mod once;
mod operator;
mod order_by;
mod ordered;
mod own_settings;
mod part;
mod policy;
pub(crate) mod query;
mod range_call;
mod recursion;
mod routine;
mod routine_check;
mod row;
mod rows_from;
mod scope;
mod select;
mod semijoin;
mod setop;
mod special;
mod standalone;
mod subscript;
pub mod system_column;
mod trigger;
mod typed;
pub(crate) mod unplanned;
pub(crate) mod updatable;
mod user_aggregate;
mod variables;
mod view;
mod viewdef;
mod window;
mod with;
mod xml;
mod xml_table;

pub use called::{ProcedureCall, bind_procedure_call};
pub use coerce::and;
pub use declared::{assignment_cast, column_type, declared_type, row_type};
pub use domain::{VALUE, domain_value, value_relation};
pub(crate) use grouped::the_subquery;
pub use names::index_column_name;
pub use policy::{PolicyQuery, bind_policy, policy_shown, refused_by_row_security};
pub use routine_check::{check_given, check_routine, sql_variables};
pub(crate) use standalone::bind_scalar_text;
pub use standalone::{
    bind_copy_from, bind_scalar, check_default, copied_domains, copy_condition, default_expr,
    generated_exprs, kept_calls,
};
pub use trigger::{TriggerQuery, bind_trigger, trigger_shown, truncate_triggers};
pub use typed::explicit;
pub use updatable::{check_option_allowed, updatable_columns};
pub use variables::{Group, Variables};
pub use view::{ViewQuery, bind_view_query, plan_view, view_column_type};
pub use viewdef::view_query_shown;

use crate::expr::Expr;
use crate::permissions::{Bound, FunctionUse};
use crate::{AggregateCall, PlanContext};
use logstead_sql_catalog::Relation;
use logstead_sql_parse::lowered as ast;
use logstead_sql_parse::lowered::Span;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType};
use logstead_types::SqlState;
use scope::NsItem;
pub(crate) use select::collect_rels;
use std::collections::HashMap;
use std::sync::Arc;

/// First column identity; anything below is a position.
pub(crate) const COLUMN_BASE: usize = 1 << 32;

/// A column identity (see the module's doc).
pub(crate) type ColId = usize;

/// What is known of a column identity.
#[derive(Clone, Debug)]
pub(crate) struct ColumnInfo {
    pub name: Arc<str>,
    pub ty: SqlType,
    pub origin: (u32, i16),
    /// Some expression refers to it: scans give it.
    pub used: bool,
    /// The statement names it, and does not only give it along: its role must be allowed to read it.
    pub named: bool,
    /// FROM item it belongs to; `usize::MAX` for computed ones.
    pub(crate) rel: usize,
}

/// A FROM item.
pub(crate) struct Rel {
    pub alias: Arc<str>,
    /// The name by which the statement knows it: a view's, for what the view reads.
    pub shown: Arc<str>,
    pub source: Source,
    /// First column identity; the item's columns follow each other.
    pub first: ColId,
    pub width: usize,
    /// Row id and version token wanted (targets of UPDATE, DELETE, FOR UPDATE; system columns): the two identities.
    /// Those of a table stand behind its columns' whether they are wanted or not.
    pub row_id: Option<ColId>,
    /// A scan gives its rows, with what is hidden of them.
    pub(crate) scanned: bool,
    /// Only the row on which this cursor stands is read.
    pub current_of: Option<crate::CursorName>,
    /// What row security asks of each row, before anything else does: every scan of the item has it first.
    pub guard: Vec<Expr>,
    /// Whose rights count where it stands; none is the role that runs the statement.
    pub as_role: Option<logstead_sql_types::value::Oid>,
}

/// Where a FROM item's rows come from.
pub(crate) enum Source {
    /// A stored table; column i is attribute i.
    Table(Arc<Relation>),
    /// A system relation or one row of a sequence.
    Virtual(Arc<Relation>, &'static logstead_sql_catalog::VirtualTable),
    /// A planned subquery; taken out when the block is planned.
    Plan(Option<Box<crate::Plan>>),
    /// A query that is bound, and planned with the block around it.
    Query(Option<Box<unplanned::Unplanned>>),
    /// WITH.
    Cte { slot: usize, rows: f64 },
    /// A function.
    Function {
        function: &'static logstead_sql_func::Function,
        args: Vec<Expr>,
        ordinality: bool,
        /// Columns that domains are asked about: each over a row of the function's.
        asked: Vec<(usize, Expr)>,
    },
}

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
    pub windows: Vec<window::Pending>,
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
    pub rows: f64,
    pub used: bool,
    /// The recursive term is being bound: rows so far come from the non-recursive term.
    pub(crate) recursive_now: bool,
    /// It gives rows: what changes something does with RETURNING.
    pub returns: bool,
    /// Its query, if it is read where it is named instead of being kept.
    pub inlined: Option<Arc<ast::Query>>,
}

/// The state of binding one statement.
pub(crate) struct Binder<'a> {
    pub cx: &'a PlanContext<'a>,
    pub text: &'a str,
    pub columns: Vec<ColumnInfo>,
    hidden_name: Option<Arc<str>>,
    pub(crate) rels: Vec<Rel>,
    pub frames: Vec<Frame>,
    /// Names of FROM items that subqueries of FROM around what is being bound do not see, for errors.
    unseen: Vec<Arc<str>>,
    pub params: Vec<Option<SqlType>>,
    /// Which of them are variables that the statement names.
    pub params_used: Vec<bool>,
    /// Rules of the domains met.
    domains: HashMap<logstead_sql_types::value::Oid, Arc<Bound<Arc<crate::expr::DomainRules>>>>,
    pub slots: usize,
    pub volatile: bool,
    pub read_only: bool,
    pub session_dependent: bool,
    pub tables_read: Vec<Arc<Relation>>,
    pub tables_written: Vec<Arc<Relation>>,
    pub tables_locked: Vec<Arc<Relation>>,
    /// Tables in which foreign keys look for rows, and those whose rows their actions change: by the rights of who owns
    /// them.
    pub(crate) judged_read: Vec<Arc<Relation>>,
    pub(crate) judged_written: Vec<Arc<Relation>>,
    /// What is done with which relations.
    pub uses: access::Uses,
    /// Where string literals stand, by the address of their text: errors of their input point there.
    pub literals: HashMap<usize, logstead_sql_parse::lowered::Span>,
    text_length: logstead_sql_parse::TextLength,
    /// The view whose query is being bound.
    view: Option<Arc<logstead_sql_catalog::View>>,
    /// Views being bound, outermost first.
    expanding: Vec<logstead_sql_types::value::Oid>,
    /// Tables named so far, while the query of a new view is bound.
    recorded: Option<Vec<view::Recorded>>,
    /// Literals of the query of a new view that mean what they mean now: where they stand, and what they came to.
    fixed: Vec<(logstead_sql_parse::lowered::Span, SqlType, Datum)>,
    /// Users' functions that the query of a new view calls.
    routines_kept: Vec<(Span, logstead_sql_types::value::Oid, String)>,
    /// Primary keys that the GROUP BY of a new view relies on.
    relied: Vec<logstead_sql_types::value::Oid>,
    /// Names of columns that stand for a view's.
    view_columns: HashMap<ColId, Arc<str>>,
    /// The view that a statement changes its table through.
    through: Option<Arc<updatable::Through>>,
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
    routine: Option<inlined::RoutineScope>,
    /// Functions whose bodies are being bound, outermost first.
    expanded: Vec<logstead_sql_types::value::Oid>,
    /// How many bodies have been bound.
    bodies: usize,
    /// The owner of the SECURITY DEFINER function that is being bound.
    pub definer: Option<logstead_sql_types::value::Oid>,
    /// The `search_path` of the function that is being bound, if it has one of its own.
    path: Option<std::rc::Rc<[String]>>,
    /// Settings that functions whose bodies are being bound have been given.
    set_around: Vec<String>,
    /// Values of calls of functions so far, for calls that are the same.
    inlined: Vec<inlined::KnownCall>,
    /// Users' functions called, each with whose rights count.
    pub(crate) routines_used: Vec<FunctionUse>,
    /// What is called may be a procedure: the statement is CALL.
    pub(crate) calls_procedure: bool,
    /// Tables that volatile functions read, with their names.
    pub(crate) read_by_volatile: Vec<(logstead_sql_types::value::Oid, String)>,
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
    /// Conditions that are bound in two forms, of which the planner chooses one.
    pub grouped: Vec<grouped::Grouped>,
    /// A second form is being bound: nothing in it has two.
    binds_again: bool,
    /// Rows of the table that was asked for last.
    pub(crate) rows_known: std::cell::Cell<Option<(logstead_sql_types::value::Oid, f64)>>,
    depth: usize,
}

/// Left of a stack when the binder goes no deeper: for the planner, and walks over what has been bound.
const STACK_BYTES_MIN: usize = 2 << 20;
/// Nesting from which on it is looked whether the statement is to end.
const DEPTH_QUICK: usize = 100;
/// Nesting of queries and expressions the binder walks on a thread's own stack, of which nobody knows how much is left.
const DEPTH_MAX: usize = 1_200;

impl<'a> Binder<'a> {
    pub(crate) fn new(cx: &'a PlanContext<'a>, text: &'a str) -> Binder<'a> {
        let declared = cx
            .param_types
            .iter()
            .map(|declared| {
                declared
                    .filter(|&oid| oid != 0 && oid != logstead_sql_types::value::oid::UNKNOWN)
                    .map(SqlType::of)
            })
            .collect();
        Binder {
            cx,
            collates: collation::is_named_in(text),
            text,
            columns: Vec::new(),
            hidden_name: None,
            rels: Vec::new(),
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
            judged_read: Vec::new(),
            judged_written: Vec::new(),
            uses: access::Uses::default(),
            literals: HashMap::new(),
            text_length: logstead_sql_parse::TextLength::default(),
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
            grouped: Vec::new(),
            binds_again: false,
            rows_known: std::cell::Cell::new(None),
            depth: 0,
        }
    }

    /// Position of a span's start, for errors.
    pub(crate) fn at(&self, span: Span) -> Option<usize> {
        (!span.is_empty()).then(|| self.text_length.position_of(self.text, span.start))
    }

    /// Position of a string literal, else `at`.
    pub(crate) fn literal_at(&self, text: &Arc<str>, at: Option<usize>) -> Option<usize> {
        let address = text.as_ptr().addr();
        let span = self.literals.get(&address).copied();
        span.and_then(|span| self.at(span)).or(at)
    }

    pub(crate) fn info(&self, id: ColId) -> &ColumnInfo {
        &self.columns[id - COLUMN_BASE]
    }

    /// Makes a column identity.
    pub(crate) fn column(
        &mut self,
        name: Arc<str>,
        ty: SqlType,
        origin: (u32, i16),
        rel: usize,
    ) -> ColId {
        self.columns.push(ColumnInfo {
            name,
            ty,
            origin,
            used: false,
            named: false,
            rel,
        });
        COLUMN_BASE + self.columns.len() - 1
    }

    /// Makes an identity for something computed.
    pub(crate) fn computed(&mut self, name: &str, ty: SqlType) -> ColId {
        let id = self.column(name.into(), ty, (0, 0), usize::MAX);
        self.columns[id - COLUMN_BASE].used = true;
        id
    }

    /// Scans must give a column that the statement does not name.
    pub(crate) fn give_column(&mut self, id: ColId) {
        self.columns[id - COLUMN_BASE].used = true;
    }

    /// Refers to a column: scans must give it, and it takes the privilege to read it.
    pub(crate) fn use_column(&mut self, id: ColId) -> Expr {
        let info = &mut self.columns[id - COLUMN_BASE];
        info.named = true;
        info.used = true;
        Expr::Column(id, info.ty)
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

    /// Bounds recursion, PostgreSQL's `check_stack_depth`: 54001 if little is left of the stack. Whoever plans a
    /// statement may give it more ([`logstead_sql_parse::planned_on_enough_stack`]).
    pub(crate) fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let is_enough = match logstead_fiber::remaining_stack() {
            Some(remaining) => remaining >= STACK_BYTES_MIN,
            None => self.depth < DEPTH_MAX,
        };
        if !is_enough {
            return Err(logstead_sql_types::error::too_deep());
        }
        // What is deep takes long to plan.
        if self.depth > DEPTH_QUICK {
            self.cx.session.interrupted()?;
        }
        self.depth += 1;
        let result = bind(self);
        self.depth -= 1;
        result
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
